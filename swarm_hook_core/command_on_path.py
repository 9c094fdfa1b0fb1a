"""``swarm-mcp`` on PATH, told from other programs of that name, of which the package index has one.

What an installer makes of our entry point names the module that it starts, so it need not be run. A Python script
that does not is another program. What stands in for a command (of a version manager, or one's own) is asked, once
for each state of its file: it gets a word in the environment that only ours gives back.
``integrations/coordinator.sh`` does the same.
"""

import os
import time

NAME = "swarm-mcp"
MODULE = b"swarm_mcp.cli.main"
WORD = "SWARM_SAY_BACK"  # what `swarm-mcp --version` prints at its end
SECONDS = 1.5
REFUSED_SECONDS = 600  # an answer that was not ours is asked for again after this
_READ = 1024 * 1024


def find() -> "tuple[str, str]":
    """``(ours, another's)``: the first of PATH that is ours, and the first before it that is not; empty where none."""
    other = ""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, NAME)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            if is_ours(path):
                return path, other
            other = other or path
    return "", other


def is_ours(path: str) -> bool:
    """Whether the executable at `path` is this program, whatever its release."""
    try:
        with open(path, "rb") as file:
            text = file.read(_READ)
        found = os.stat(path)
    except OSError:
        return False
    if MODULE in text:
        return True
    if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
        return False
    state = f"{found.st_mtime_ns} {found.st_size} {path}"
    known = _remembered(state)
    if known is None:
        known = _says_back(path)
        _remember(f"{'ours' if known else 'other'} {state}")
    return known


def _says_back(path: str) -> bool:
    from swarm_hook_core.spawn import run

    word = f"{os.getpid()}-{time.time_ns()}"
    words = run([path, "--version"], SECONDS, **{WORD: word}).stdout.split()
    return words[:1] == [NAME] and words[-1] == word


def _memory() -> str:
    from swarm_hook_core.state import state_dir

    return os.path.join(state_dir(), "command")


def _remembered(state: str):
    """Whether the file in this `state` is ours, as far as it has been asked; else None."""
    try:
        with open(_memory(), encoding="utf-8", errors="surrogateescape") as file:
            answer, _, of = file.read(8192).rstrip("\n").partition(" ")
        age = time.time() - os.stat(_memory()).st_mtime
    except OSError:
        return None
    if of != state or (answer != "ours" and not 0 <= age < REFUSED_SECONDS):
        return None
    return answer == "ours"


def _remember(line: str) -> None:
    from swarm_hook_core.state import write_private

    try:
        write_private(_memory(), line + "\n")
    except OSError:
        return  # it is asked again then
