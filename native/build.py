"""Builds swarm_relay, the command of a hook: one small file for each platform.

    python native/build.py OUT             for this machine, with `cc` (or `CC`), else with ziglang
    python native/build.py OUT TARGET...   with ziglang, from the package index; OUT is a folder with one for each then

``CFLAGS`` are added.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "relay.c"
# Targets of zig, and the tags of their wheels. A static program asks for no C library, so its wheel is for both kinds.
PLATFORMS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos.11.0": "macosx_11_0_x86_64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
}
FLAGS = ["-O2", "-s", "-std=c11", "-Wall", "-Wextra"]


def build(out: Path, compiler: list[str], is_static: bool, seconds: float | None = None) -> None:
    """Write the program to `out`. Raises OSError, SubprocessError."""
    flags = [*FLAGS, *shlex.split(os.environ.get("CFLAGS", "")), *(["-static"] if is_static else [])]
    new = out.with_name(f"{out.name}.{os.getpid()}")
    words = [*compiler, *flags, "-o", str(new.resolve()), str(SOURCE)]
    subprocess.run(words, check=True, timeout=seconds, capture_output=seconds is not None)
    new.replace(out)


def build_here(out: str | Path, seconds: float | None = None) -> str:
    """Write the program for this machine to `out`. Return the reason why that is not possible, or an empty text.

    It is static where a static C library is there: the interpreter of a dynamic program costs more than its work.
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        return f"no C compiler ({compiler[0]}) was found"
    for is_static in (sys.platform == "linux" and "-fsanitize" not in os.environ.get("CFLAGS", ""), False):
        try:
            build(Path(out), compiler, is_static, seconds)
            return ""
        except (OSError, subprocess.SubprocessError):
            continue
    return f"the C compiler ({compiler[0]}) could not compile it"


def main() -> None:
    """Build for this machine, or for the targets."""
    out, *targets = sys.argv[1:]
    if not targets:
        why = build_here(out, 60)
        if why:
            zig = [sys.executable, "-m", "ziglang", "cc"]
            is_linux = sys.platform == "linux"
            if is_linux:
                zig += ["-target", f"{os.uname().machine}-linux-musl"]
            build(Path(out), zig, is_linux)
    for target in targets:
        Path(out).mkdir(parents=True, exist_ok=True)
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        build(Path(out) / f"swarm_relay-{target}", compiler, "linux" in target)


if __name__ == "__main__":
    main()
