"""The place of the coordinator's command, ``swarm-mcp``. ``errands`` sends it.

There are other programs of that name, one of them on the package index. ``swarm-locks``, the name of our distribution,
is a second name of the command that no other program has. Installers' scripts for our entry point name the module that
they start, so they need not be run. Any other Python script is another program. A stand-in for a command (of a version
manager, or one's own) is run, once for each state of its file: it gets a word in the environment that only our command
gives back. ``integrations/coordinator.sh`` does the same.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import DISTRIBUTION  # a second name of the command
from swarm_hook_core.json_text import loads
from swarm_hook_core.state import read_private, state_dir, write_private

NAME = "swarm-mcp"
MODULE = b"swarm_mcp.cli.main"
WORD = "SWARM_SAY_BACK"  # variable with the word that `swarm-mcp --version` prints at its end
SECONDS = 1.5
REFUSED_SECONDS = 600  # an answer that was not ours is asked for again after this
MOST_ALSO = 20  # further files of a refusal that it records
LONGEST_WORDS = 1000  # characters of the words to a model, and of a command, that it records
_READ = 1024 * 1024


_own: list[str] = []  # the command of this process's installation, where `use` has told it


def use(words: list[str]) -> None:
    """Have `command` return this argv prefix in place of a plugin's record: this process is of no plugin."""
    _own[:] = words


def command() -> list[str]:
    """Return the coordinator's argv prefix; empty if there is no coordinator.

    In order: ``SWARM_MCP_BIN`` (words as a shell splits them), the command that `swarm-mcp install` wrote into the
    plugin, ``swarm-mcp`` or ``swarm-locks`` on PATH if that is this program, and the release that uv has fetched.
    """
    return chosen_command() or _installed() or _on_path() or _fetched()


def chosen_command() -> list[str]:
    """Return the command in ``SWARM_MCP_BIN``, if it can be run; else empty."""
    setting = os.environ.get("SWARM_MCP_BIN", "").strip()
    if not setting:
        return []
    words = setting.split()
    if any(mark in setting for mark in "'\"\\"):
        import shlex

        try:
            words = shlex.split(setting)
        except ValueError:  # an open quote
            return []
    return _words_on_path(words)


def recorded(name: str) -> object:
    """Return the value that `swarm-mcp install` recorded as `name` at the plugin's root; None if it cannot be read."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(root, "install.json")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:  # nothing is recorded
        return None

    try:
        record = loads(text)
    except (ValueError, RecursionError):  # a person has edited it
        return None
    if isinstance(record, dict):
        return record.get(name)
    return None


def _installed() -> list[str]:
    """The command that `swarm-mcp install` recorded at the plugin's root, if it still exists."""
    words = _own or recorded("coordinator")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return []
    needed = [word for word in words if os.path.isabs(word)]
    if all(os.path.exists(word) for word in needed):
        return words
    return []


def _on_path() -> list[str]:
    ours, _other = find_on_path()
    if ours:
        return [ours]
    return []


def _fetched() -> list[str]:
    from swarm_hook_core import own_release

    return own_release.command()


def _words_on_path(words: list[str]) -> list[str]:
    if not words:
        return []
    first = words[0]
    if first.endswith((".ts", ".js")) and os.path.isfile(first):
        program = _words_on_path(["bun" if first.endswith(".ts") else "node"])
        if program:
            return program + words
        return []
    if os.sep in first:
        if os.access(first, os.X_OK) and not os.path.isdir(first):
            return words
        return []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, first)
        if folder and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return [candidate, *words[1:]]
    return []


def find_on_path() -> tuple[str, str]:
    """Return ``(ours, other)``: the first command on PATH that is ours, and the first one before it that is not."""
    other = ""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in (NAME, DISTRIBUTION) if folder else ():
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                if is_ours(path):
                    return path, other
                other = other or path
    return "", other


def is_ours(path: str) -> bool:
    """Return True if the executable at `path` is this program, of any release."""
    try:
        with open(path, "rb") as file:
            text = file.read(_READ)
        found = os.stat(path)
    except OSError:  # it has just gone
        return False
    if MODULE in text:
        return True
    if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
        return False
    state = f"{found.st_mtime_ns} {found.st_size} {path}"
    known = _remembered(state)
    if known is None:
        from swarm_hook_core.process import run

        word = f"{os.getpid()}-{time.time_ns()}"
        words = run([path, "--version"], SECONDS, environment={WORD: word}).stdout.split()
        known = words[:1] == [NAME] and words[-1] == word
        _remember(f"{'ours' if known else 'other'} {state}")
    return known


def _memory() -> str:
    return os.path.join(state_dir(), "command")


def _remembered(state: str) -> bool | None:
    """Return True or False if the file in this `state` was run before, else None."""
    try:
        memory = read_private(_memory(), 8192).decode("utf-8", "surrogateescape")
        answer, _, of = memory.rstrip("\n").partition(" ")
        age = time.time() - os.stat(_memory()).st_mtime
    except OSError:  # it was never asked
        return None
    if of != state or (answer != "ours" and not 0 <= age < REFUSED_SECONDS):
        return None
    return answer == "ours"


def _remember(line: str) -> None:
    try:
        write_private(_memory(), line + "\n")
    except OSError:
        return  # it is asked again then
