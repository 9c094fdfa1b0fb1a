"""Compiles the library that explored processes preload."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-function"]


def library() -> Path:
    """Return the preloaded library, compiled once for each state of its sources."""
    words = [*_compiler(), *FLAGS]
    sources = [HERE / "calls.c", HERE / "clock.c"]
    digest = hashlib.sha256(repr(words).encode())
    for source in (*sources, HERE / "schedule.h"):
        digest.update(source.read_bytes())
    made = _folder() / f"library-{digest.hexdigest()[:16]}.so"
    if not made.exists():
        new = made.with_suffix(f".{os.getpid()}")
        subprocess.run([*words, "-o", str(new), *map(str, sources), "-ldl", "-lpthread"], check=True)
        new.replace(made)
    return made


def _compiler() -> list[str]:
    given = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(given[0]):
        return given
    return [sys.executable, "-m", "ziglang", "cc"]


def _folder() -> Path:
    """Return the folder of the relay that is tested, else one in the user's cache."""
    named = Path(os.environ.get("SWARM_RELAY", ""))
    if named.is_absolute():  # else there is no relay in C
        return named.parent
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swarm-mcp" / "explore"
    base.mkdir(parents=True, exist_ok=True)
    return base
