"""Plans: the read-only paths for one call, written before the call and read by the shell that runs it.

    <state>/kernel/<session>/<call>        a Plan: fields with a NUL after each
    <state>/kernel/<session>/<call>.sh     sourced by the shell of this call, if its client can be told so
    <state>/kernel/wired/<session>         sourced by all shells of the session while it has plans, otherwise

A session's folder exists only while it has plans. This module imports little: a command waits for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.paths import all_keys
from swarm_hook_core.state import (
    name_of,
    open_private,
    read_private,
    refuse_link,
    remove_older,
    state_dir,
    write_all,
    write_private,
)
from swarm_hook_core.watching.watch import files_of

MOST_PATHS = 1000
LARGEST = 64 << 20  # bytes of a plan
MOST_ATTEMPTS = 100  # tries to write a plan while ending calls remove the folder
NOT_HELD = "swarm: the kernel does not protect the locked files of others from this command"
LEFT_SECONDS = 600  # age at which a plan was surely read by its shell, even if the call's end was not reported
DROPPED_SECONDS = 86400  # after this silence a session will not ask for its plans any more
WIRED = "wired"  # the folder of the entries that shells source to look for plans
WIRED_SECONDS = 30 * 86400  # longer than any session lasts; a killed session reports no end

# Sourced by the shell of a command before the command. It starts the same shell again with the same text, through
# enter.py. The process id stays the same, and marks the second run. A login shell stays a login shell: functions
# defined by its profile would be missing otherwise.
_ENTER = """\
if [ "${{SWARM_KERNEL_LOOKED-}}" = $$ ]; then
    if [ -n "${{SWARM_KERNEL_HELD-}}" ]; then case $PATH in {bin}:*) ;; *) PATH={bin}:$PATH ;; esac; fi
elif [ -x {python} ] && [ -r {enter} ]; then
    if [ -n "${{BASH_EXECUTION_STRING-}}" ]; then
        if shopt -q login_shell; then set -- -lc; else set -- -c; fi
        SWARM_KERNEL_LOOKED=$$ exec {python} -E -s -S {enter} {plans} "$BASH" "$1" "$BASH_EXECUTION_STRING"
    elif [ -n "${{ZSH_EXECUTION_STRING-}}" ]; then
        if [[ -o login ]]; then set -- -lc; else set -- -c; fi
        SWARM_KERNEL_LOOKED=$$ exec {python} -E -s -S {enter} {plans} zsh "$1" "$ZSH_EXECUTION_STRING"
    fi
fi
"""


class Plan:
    """The paths that one call must not write.

    - runtime, session, agent: the call's session; `instance`: its row in the store
    - command: its text as made by `print_of`, by which its shell finds the plan; empty if the shell is told the plan
    - is_strict: True if the call must not run unless the kernel holds all of `paths`
    - roots: the folders around which locks were looked for
    - paths: absolute real paths of files and folders locked by others
    - store: the file with the locks: the call's own environment may name another one, or no store
    - words: the notice for the model after the call
    """

    __slots__ = ("runtime", "session", "instance", "agent", "command", "is_strict", "roots", "paths", "store", "words")

    def __init__(
        self, runtime: str, session: str, instance: str = "", agent: str = "", command: str = "",
        is_strict: bool = False, roots: Iterable[str] = (), paths: Iterable[str] = (), store: str = "",
    ):  # fmt: skip
        self.runtime = runtime
        self.session = session
        self.instance = instance
        self.agent = agent
        self.command = command
        self.is_strict = is_strict
        self.roots = list(roots)
        self.paths = list(paths)
        self.store = store
        self.words = ""

    def text(self) -> str:
        """Return the plan in the format of its file."""
        fields = [f"{name}={getattr(self, name)}" for name in _SINGLE]
        fields += ["strict=1"] * self.is_strict
        fields += [f"root={root}" for root in self.roots] + [f"path={path}" for path in self.paths]
        return "".join("{}\0".format(field.replace("\0", "")) for field in fields)


_SINGLE = ("runtime", "session", "instance", "agent", "command", "store")


def kernel_dir() -> str:
    """Return the folder of all plans, and of the probe's result."""
    return os.path.join(state_dir(), "kernel")


def folder_of(session_id: str) -> str:
    """Return the folder of a session's plans; it exists only while there are plans."""
    return os.path.join(kernel_dir(), name_of(session_id))


def wired_file(session_id: str) -> str:
    """Return the file that a session's shells source while it has plans; it exists once they were told to."""
    return os.path.join(kernel_dir(), WIRED, name_of(session_id))


def leave(plan: Plan, name: str, alone: bool = False) -> str:
    """Write `plan` under this `name`; return the path that its shell is to source. Raises OSError.

    `alone`: the shell is told of this plan, and need not look for it among others. Otherwise an earlier plan of the
    same agent for the same text is removed: its call has ended, or cannot be told apart from this one.
    """
    folder = folder_of(plan.session)
    path = os.path.join(folder, name)
    if alone:
        entry = f"{path}.sh"
        _write(entry, _entry(path))
    else:
        entry = write_entry(plan.session)
        for other, earlier in _plans_in(folder):
            if (earlier.command, earlier.agent) == (plan.command, plan.agent) and other != name:
                _remove(folder, other)
    _write(path, plan.text())
    _sweep()
    return entry


def write_entry(session_id: str) -> str:
    """Write the text that all shells of a session source, unless it is there; return its path. Raises OSError."""
    entry, text = wired_file(session_id), _entry(folder_of(session_id))
    if _read(entry) == text.encode("utf-8", "surrogateescape"):
        os.utime(entry)
    else:
        _write(entry, text)
    return entry


def _write(path: str, text: str) -> None:
    for attempt in range(MOST_ATTEMPTS):
        try:
            write_private(path, text)
            return
        except FileNotFoundError:
            # the folder was removed with another call's last plan, or another thread has written it
            if attempt == MOST_ATTEMPTS - 1:
                raise


def add_words(session_id: str, name: str, words: str) -> None:
    """Add the notice for the model to a plan, for after the call. Raises OSError."""
    if words:
        handle = open_private(os.path.join(folder_of(session_id), name), os.O_WRONLY | os.O_APPEND)
        try:
            write_all(handle, f"words={words}\0".encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)


def _entry(plans: str) -> str:
    enter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.py")
    words = {"python": sys.executable, "enter": enter, "bin": git_folder(), "plans": plans}
    return _ENTER.format(**{name: in_quotes(word) for name, word in words.items()})


def in_quotes(path: str) -> str:
    """Return a path quoted for the shell, always with quotes: statements before a command are recognized by them."""
    return "'" + path.replace("'", "'\"'\"'") + "'"


def git_folder() -> str:
    """Return the folder of the ``git`` that asks the check first."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = os.path.join(home, "integrations", "kernel")
    if not os.path.isdir(folder):  # inside the coordinator's package
        folder = os.path.join(home, "swarm_mcp", "_plugin", "integrations", "kernel")
    return folder


def drop(session_id: str, name: str = "") -> None:
    """Remove this plan of a session, or all its plans, and the folder after the last."""
    _drop(folder_of(session_id), name)


def drop_earlier(session_id: str, before: float) -> None:
    """Remove the plans of a session older than `before` (Unix seconds): not every end of a call is reported."""
    folder = folder_of(session_id)
    for name, _ in _plans_in(folder):
        try:
            if os.lstat(os.path.join(folder, name)).st_mtime < before:
                _drop(folder, name)
        except OSError:
            continue  # gone already


def _drop(folder: str, name: str = "") -> None:
    try:
        for one in [name, f"{name}.sh"] if name else os.listdir(folder):
            _remove(folder, one)
        os.rmdir(folder)
    except OSError:
        pass  # missing, or other calls of the session have plans there


def _remove(folder: str, name: str) -> None:
    try:
        os.remove(os.path.join(folder, name))
    except OSError:
        pass  # removed with another call


def load(path: str) -> Plan | None:
    """Return the plan in the file at `path`, or None."""
    data = _read(path)
    if data is None:
        return None
    plan = Plan("", "")
    for field in data.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = field.partition("=")
        if name in _SINGLE:
            setattr(plan, name, value)
        elif name == "words":
            plan.words = value
        elif name == "strict":
            plan.is_strict = True
        elif name == "root":
            plan.roots.append(value)
        elif name == "path":
            plan.paths.append(value)
    if plan.session:
        return plan
    return None


def chosen(place: str, text: str) -> Plan | None:
    """Return the plan at `place`, a file; in a folder of plans, the one for the command in the shell text `text`.

    A client quotes a command and puts words around it: Claude Code has its shell ``eval`` it. Several commands with the
    same text get only the paths common to all their plans, since one may belong to another agent.
    """
    if not os.path.isdir(place):
        return load(place)
    seen = print_of(text)
    # the text of a short command occurs inside many others
    before = ""
    if "eval" in seen:
        before = "eval"
    plans = [plan for _, plan in _plans_in(place) if plan.command and before + plan.command in seen]
    longest = max((len(plan.command) for plan in plans), default=0)
    plans = [plan for plan in plans if len(plan.command) == longest]
    if not plans:
        return None
    plan = plans[-1]
    for other in plans[:-1]:
        plan.is_strict = plan.is_strict or other.is_strict
        common = set(other.paths)
        plan.paths = [path for path in plan.paths if path in common]
    return plan


def _plans_in(folder: str) -> list[tuple[str, Plan]]:
    """Return ``[(name, Plan)]`` for a folder."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.endswith((".sh", ".tmp")))
    except OSError:
        return []  # the session has no plans
    loaded = [(name, load(os.path.join(folder, name))) for name in names]
    return [(name, plan) for name, plan in loaded if plan is not None]


def print_of(text: str) -> str:
    """Return shell text without white space, quotes and backslashes: the same however it is quoted.

    Claude Code redirects the input of a pipe's first command from /dev/null; that is removed too.
    """
    return "".join(text.translate(_DROPPED).split()).replace("</dev/null", "")


_DROPPED = {ord(letter): None for letter in "'\"\\\0"}


def _read(path: str) -> bytes | None:
    try:
        return read_private(path, LARGEST)
    except OSError:
        return None  # missing, or not readable


def _sweep() -> None:
    """Remove the plans of sessions killed a day ago or more, and the entries of much older ones."""
    now = time.time()
    for name in _names(kernel_dir()):
        if name != WIRED and _is_older(os.path.join(kernel_dir(), name), now - DROPPED_SECONDS):
            _drop(os.path.join(kernel_dir(), name))
    remove_older(os.path.join(kernel_dir(), WIRED), now - WIRED_SECONDS)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # missing


def _is_older(path: str, before: float) -> bool:
    try:
        return os.lstat(path).st_mtime < before
    except OSError:
        return False  # gone already


# The paths that the kernel holds for a call: locks of other sessions within its reach.


def paths_of(session: Session, peers: Peers, roots: Iterable[str]) -> tuple[list[str], bool]:
    """Return ``(absolute real paths, True if complete)`` of the locks of `peers` around the folders `roots`.

    A locked folder is one path. Missing files, and files that may come to match a pattern, cannot be held. Locks that
    the session shares are left out.
    """
    locks: dict[tuple[str, str, str], Held] = {}
    complete = True
    for root in roots:
        found, more = peers.first_around(all_keys(session, root, "/"), MOST_PATHS)
        complete = complete and not more
        locks.update(((held.file, held.instance_id, held.agent), held) for held in found)
    paths: dict[str, None] = {}
    folders: dict[str, str] = {}
    for held in locks.values():
        if held.mode == "shared" and _is_shared(held, peers):
            continue
        if held.pattern:
            complete = False
            for _held, _place, _key, files, _all in files_of([held], MOST_PATHS):
                paths.update((os.path.realpath(file), None) for file in files)
            continue
        path = _real(held.file, folders)
        if path:
            paths[path] = None
        else:
            complete = False
    return list(paths)[:MOST_PATHS], complete and len(paths) <= MOST_PATHS


def _real(path: str, folders: dict[str, str]) -> str:
    """Return the real path of the file at `path`, or "" for a missing one.

    `folders` caches real paths of folders: thousands of locks mostly lie in few, and each path step costs a look at the
    disk.
    """
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        found = os.path.realpath(path)
        if os.path.lexists(found):
            return found
        return ""
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    found = os.path.join(folders[folder], name)
    if os.path.islink(found):
        found = os.path.realpath(found)
    if os.path.lexists(found):
        return found
    return ""


def _is_shared(held: Held, peers: Peers) -> bool:
    """Return True if the session of `peers` has the same shared lock."""
    own = peers.reader.locks_on(list(held.names))
    return any(one.instance_id == peers.own_id and one.agent in ("", peers.own_agent) for one in own)


def held_now(plan: Plan) -> tuple[list[str], bool]:
    """Return the present result of `paths_of` for a plan's session. Raises the error that prevents it.

    A session that has ended is kept out by all locks.
    """
    session, peers = _asked(plan)
    if peers:
        return paths_of(session, peers, plan.roots)
    return ([], True)


def still_held(plan: Plan) -> set[str]:
    """Return the paths still locked against a plan's session, perhaps with others. Raises as `held_now` does."""
    session, peers = _asked(plan)
    if not peers:
        return set()
    found = set(paths_of(session, peers, plan.roots)[0])
    if len(found) < MOST_PATHS:
        return found

    for path in plan.paths:  # among very many locks the first may be others now
        if path not in found and peers.over(all_keys(session, path, "/")):
            found.add(path)
    return found


def _asked(plan: Plan) -> tuple[Session, Peers | None]:
    """Return ``(Session, Peers)`` of a plan's session; Peers is None without a store."""

    refuse_link(plan.store)
    if not os.path.isfile(plan.store):
        return Session(plan.instance), None
    reader = StoreReader(plan.store)
    session = reader.session(plan.runtime, plan.session) or Session(plan.instance)
    return session, Peers(reader, plan.instance, time.time(), plan.agent)
