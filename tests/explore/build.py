"""Compiles the library that explored processes preload, and the program in front of the check as a dynamic one."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "native"
PROGRAM = "swarm_check-explored"
FLAGS = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-function"]


def library() -> Path:
    """Return the preloaded library, compiled once for each state of its sources."""
    words = [*_native().compiler_here(), *FLAGS]
    sources = [HERE / "calls.c", HERE / "clock.c"]
    made = _made("library", words, [*sources, HERE / "schedule.h"], ".so")
    if not made.exists():
        new = made.with_suffix(f".{os.getpid()}")
        subprocess.run([*words, "-o", str(new), *map(str, sources), "-ldl", "-lpthread"], check=True)
        new.replace(made)
    return made


def first_look() -> str:
    """Return the program in front of the check that `make` has linked for this; empty: schedules go without it."""
    made = _folder() / PROGRAM
    if made.is_file() and made.stat().st_size:
        return str(made)
    return ""


def _native() -> ModuleType:
    spec = importlib.util.spec_from_file_location("native_build", NATIVE / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["native_build"] = module
    spec.loader.exec_module(module)
    return module


def _made(kind: str, words: list[str], sources: list[Path], ending: str) -> Path:
    """Return the place for the file that these words make of these sources."""
    digest = hashlib.sha256(repr(words).encode())
    for source in sources:
        digest.update(source.read_bytes())
    return _folder() / f"{kind}-{digest.hexdigest()[:16]}{ending}"


def _folder() -> Path:
    """Return the folder of the installed program in front of the check, else one in the user's cache."""
    named = Path(os.environ.get("SWARM_FIRST_LOOK", ""))
    if named.is_absolute():  # else there is no program
        return named.parent
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swarm-mcp" / "explore"
    base.mkdir(parents=True, exist_ok=True)
    return base


if __name__ == "__main__":  # python -m explore.build OUT: link the program so that it can preload the library
    _native().build(Path(sys.argv[1]), _native().compiler_here(), is_static=False)
