"""The traces of sessions: each session notes its writes, so that others do not destroy uncommitted changes.

A *trace* is an entry about one write in a *journal*. Hooks write nothing into the store: each session appends to
journals of its own, one per repository.

Files: ``<state folder>/traces/<place>/<runtime>.<session>``. A *place* is a repository with all its work trees, or a
folder outside of any repository. It is named by device and inode of that folder. ``journal`` describes the format.

Noted before a call runs: the files that it will write, each with its state at that time (``state_of``: change time,
inode, size); a shell command whole, unparsed, if the session is alone in the place; commits, stashes and removals of
folders. Noted later: looks at files (``seen``, ``meetings``), and the state in which the session's own writes left them
(``is``).

Compared when a call of another session writes the same file: the noted state and the present one tell if the write was
made; git tells if it is committed or undone; the session's own journal tells if it has seen the change since. The level
in force then decides: deny the call, or let it pass and tell its model.

This module holds the names of places, journals and versions, and the form of an entry. `trail` and `keeping` are the
path of every write, also of a session that is alone. The others are loaded when another session has a journal in the
same place:

    trail       the files that one call names, and its entries until they are appended
    keeping     the contents that one call keeps
    journal     format of the journals, and searches in them
    elsewhere   other repositories with journals, and commands that may reach them
    meetings    the traces of others for one call; files that a command shows; news at a turn's start. It composes
      others      the journals of a place: the session's own, and each living other's
      unread      shell commands that ran unparsed
      seen        the session's own knowledge of a file
      transcript  files that the client has shown to its model, and ends of calls, as the client tells them
      endings     ends of calls, turns, and commits with hooks: after them no write is pending
    whole_writes  new texts of whole files: if they keep others' lines, or go ahead merged with them
    changed_lines the lines that others have changed: kept, merged and quoted
    file_changes  the lines of files, with their owners; questions to git about files
    turn_files  files that sessions have for their turns, at level ``turn``
    rewinds     files that a client has put back to an earlier content
    pruning     removal of old journals and versions
    versions    the contents of files before writes, and the authors of lines
    head        the HEAD that the sessions of a work tree share
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from swarm_hook_core import process
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.paths import NO_CASE, keys_for
from swarm_hook_core.repository import tree_at
from swarm_hook_core.state import (
    PLAIN,
    NotOrdinary,
    clear_place,
    config_path,
    local_store,
    name_of,
    open_in_private,
    rotate,
    state_dir,
    write_all,
)

# Levels of protection; each one includes those before it.
OFF, NOTICE, KEEP, TURN = LEVELS = ("off", "notice", "keep", "turn")
DEFAULT = KEEP

JOURNAL_BYTES = 256 * 1024  # of a journal; a longer one is renamed to ``.1`` and begun anew
LONGEST_TEXT = 16 * 1024  # characters of an unparsed command
MOST = 400  # files of one call with an entry each
DEEP = 30  # parent folders of a file; the top of a deeper one is searched from the root down
FEW = 3  # files of one call; up to here no cache of resolved folders is loaded
AGENTS = ".agents"  # behind a journal's name: the file of the session's agents in that place (``others``)
OWN_NS = 2 * 10**9  # the longest time from the check of a call to its write, if neither input nor end is known
INPUTS = "%inputs"  # beside versions: the inputs of the session's write tools (``versions.replay``)
LONGEST_INPUT, LIMIT_INPUTS = 256 * 1024, 1024 * 1024  # characters of one; bytes of the file before it is begun anew
LONGEST_NAME = 160  # bytes of the name of a version
# Marks in the names of versions; a path has no such text. MERGED: a text that was written merged with others' changes.
LATER, LOOK, AFTER, LOST, WHOLE, CUT, MERGED = "%w", "%i", "%a", "%l", "%c", "%t", "%m"
UNDO = "swarm:undo"  # the tool of an undo, in entries
TOLD_ALONG = "along"  # kind of an entry: the session was told that its git command takes the file along
PATH = "%p"  # after a first version's name that was cut: the file with the whole path
NO_FILE = "-"  # the state of a missing file, in an entry
_WITHOUT_VERSIONS = ("/node_modules/", "/.venv/", "/__pycache__/", "/.git/")  # caches and git's own files
_WORD = PLAIN | frozenset("_.:/@")
IGNORES_CASE = sys.platform in ("darwin", "win32")  # file systems of these are mostly case-insensitive


def level(prefix: str, folder: str) -> str:
    """Return the level in force in `folder`, for the runtime with `prefix` in its variables. Never raises.

    ``settings.protect`` lists the sources. Without any setting this costs one look at the disk.
    """
    for name in (f"SWARM_{prefix}_PROTECT", f"SWARM_{prefix}_AUTO", "SWARM_PROTECT", "SWARM_AUTO"):
        word = os.environ.get(name, "").strip().lower()
        if word in LEVELS:
            return word
        if word:
            break  # an invalid level: ``settings.protect`` reports it
    else:
        try:
            os.stat(config_path())
        except (OSError, ValueError):
            return DEFAULT  # no settings file
    from swarm_hook_core.settings import protect

    return str(protect(prefix, folder).value)


def level_of(config: RuntimeConfig, call: ToolCall) -> str:
    """Return the level in force for a call. OFF without a session or a store: nothing else says whose a trace is."""
    if not call.session_id or not local_store():
        return OFF
    return level(config.env_prefix, call.folder)


def own_journal(config: RuntimeConfig, call: ToolCall) -> str:
    """Return the path of the session's journal in the place of the call's folder. It need not exist."""
    return os.path.join(place_of(call.folder), journal_name(config.runtime_name, call.session_id))


def traces_dir() -> str:
    """Return the folder of all places. It need not exist."""
    return os.path.join(state_dir(), "traces")


def place_of(folder: str) -> str:
    """Return the place of files in absolute `folder`, named by device and inode of the repository's common git folder.

    The place need not exist. Raises OSError if the folder's parents cannot be read.
    """
    top, found = tree_top(folder)
    if found is None:
        return _named(os.stat(top))
    if found.st_mode & 0o170000 != 0o040000:  # a ``.git`` file: a linked work tree
        tree = tree_at(top)
        found = os.stat(tree.common if tree is not None else top)
    return _named(found)


def tree_top(folder: str) -> tuple[str, os.stat_result | None]:
    """Return ``(top of the work tree around absolute `folder`, stat of its .git)``.

    Outside of any work tree: ``(nearest existing folder, None)``.
    """
    if folder.count("/") > DEEP:
        # `folder`, or its nearest existing parent, searched from the root down
        found = ""
        for name in folder.split("/")[1:]:
            if not os.path.exists(f"{found}/{name}"):
                break
            found += f"/{name}"
        folder = found or "/"
    probe = folder
    while True:
        try:
            return probe, os.stat(probe.rstrip("/") + "/.git")
        except OSError:
            over = os.path.dirname(probe)
        if over == probe:
            break
        probe = over
    while folder != probe and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder, None


def _named(found: os.stat_result) -> str:
    return os.path.join(traces_dir(), f"{found.st_dev:x}.{found.st_ino:x}")


def has_versions(path: str) -> bool:
    return not any(part in path for part in _WITHOUT_VERSIONS)


def kept_dir(place: str) -> str:
    """Return the folder of the versions of files in `place` (``versions``). It need not exist."""
    return os.path.join(state_dir(), "kept", os.path.basename(place))


def version_path(place: str, own_name: str, path: str) -> str:
    """Return the path of the first version that the session with this journal has kept of the file at `path`."""
    return os.path.join(kept_dir(place), own_name, version_name(path))


def version_name(path: str) -> str:
    """Return the name of the first version of the file at `path`, the same for each session."""
    name = path.replace("%", "%25").replace("/", "%2F")
    if os.name == "nt":
        name = name.replace("\\", "%5C").replace(":", "%3A")
    if len(name) > LONGEST_NAME or IGNORES_CASE or not name.isascii():
        # `name` if it fits, else its beginning; marked with checksums of `path`
        from binascii import crc32

        raw = path.encode("utf-8", "surrogateescape")
        sums = f"{crc32(raw):08x}{crc32(raw[::-1]):08x}"
        data = os.fsencode(name)
        if len(data) <= LONGEST_NAME:
            return f"{name}{WHOLE}{sums}"
        return f"{data[:LONGEST_NAME].decode('ascii', 'replace').replace(chr(0xFFFD), '_')}{CUT}{sums}"
    return name


def journal_name(runtime: str, session_id: str) -> str:
    """Return the file name of a session's journal, the same in each place."""
    return f"{name_of(runtime)}.{name_of(session_id)}"


def names_in(folder: str) -> list[str]:
    """Return the names in a folder; none if it is missing. Raises OSError if it cannot be listed."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []  # nothing was noted there yet


def others_in(place: str, own_name: str) -> list[str]:
    """Return the paths of all other sessions' journals in `place`, and of the own session's file of running agents.

    A checker lists a place anew once something was added, renamed or removed there.
    """
    try:
        found = os.stat(place)
    except OSError:
        return _others_in(place, own_name)  # nothing was noted there yet
    mark, name = (found.st_dev, found.st_ino, found.st_mtime_ns), (place, own_name)
    last = _listed.get(name)
    if last is not None and last[0] == mark and process.is_answering():
        return list(last[1])
    is_settled = found.st_mtime_ns < time.time_ns() - SETTLED_NS
    others = _others_in(place, own_name)
    if is_settled:  # any later change has another time
        _listed.clear()
        _listed[name] = mark, others
    return list(others)


SETTLED_NS = 2 * 10**9  # a folder without a change for so long shows the next one by its time
_listed: dict[tuple[str, str], tuple[tuple[int, int, int], list[str]]] = {}  # the last result of `others_in`


def _others_in(place: str, own_name: str) -> list[str]:
    own, agents, start = (own_name, own_name + ".1"), own_name + AGENTS, os.path.join(place, "")
    found = [name for name in names_in(place) if name not in own and (name == agents or not name.endswith(AGENTS))]
    return sorted({start + name.removesuffix(".1") for name in found})


def opened(path: str, flags: int = 0) -> int:
    """Open a file of ours to write it. An empty folder, a link or a pipe in its place goes: it would stop all notes."""
    flags |= os.O_WRONLY | os.O_CREAT
    try:
        return open_in_private(path, flags)
    except NotOrdinary:
        clear_place(path)
        return open_in_private(path, flags)


def append(path: str, lines: list[bytes], first: Callable[[], bytes]) -> None:
    """Append entries to the journal at `path`. `first` gives the `first_line` of a new one. Raises OSError."""
    handle = opened(path, os.O_APPEND)
    try:
        size = os.fstat(handle).st_size
        begin = first() if not size else b""
        try:
            write_all(handle, b"\n" + begin + b"".join(lines))  # a new line: a full disk may have torn the last one
        except OSError:
            if os.fstat(handle).st_size <= len(begin):
                os.ftruncate(handle, 0)  # a journal with half a first line would be nobody's
            raise
        if size > JOURNAL_BYTES:
            rotate(path, handle)
    finally:
        os.close(handle)


def line(kind: str, key: str, call: ToolCall, text: str = "", at_ns: int = 0) -> bytes:
    """Return one entry about `call`. `at_ns`: by default the present time."""
    return entry(at_ns or time.time_ns(), kind, call.agent, call.tool, key, text)


def entry(at_ns: int, kind: str, agent: str, tool: str, key: str, text: str = "") -> bytes:
    """Return one entry as a line of a journal; see ``journal`` for the format."""
    data = f"{at_ns} {kind} {plain_word(agent)} {plain_word(tool)}".encode("ascii", "replace")
    data += b"\0" + escaped(key)
    if text:
        data += b"\0" + escaped(text[:LONGEST_TEXT])
    return data + b"\n"


def escaped(text: str) -> bytes:
    """Return `text` as bytes with backslash, newline and NUL escaped."""
    data = text.encode("utf-8", "surrogatepass")
    if b"\\" in data or b"\n" in data or b"\0" in data:
        data = data.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\0", b"\\0")
    return data


def state_of(path: str, folder: int | None = None) -> str:
    """Return a string that changes whenever the file at `path` is modified or replaced; ``-`` for a missing file.

    States are only compared for equality: the file system's clock may differ from ours. `folder`: as in ``os.lstat``.
    """
    try:
        there = os.lstat(path, dir_fd=folder)
    except (OSError, ValueError):
        return NO_FILE  # missing, or a path that cannot exist
    return f"{there.st_ctime_ns} {there.st_ino} {there.st_size}"


def first_line(runtime: str, session_id: str, top: str) -> bytes:
    """Return a journal's first entry: its session, and a folder of its place."""
    first = f"{time.time_ns()} session - {plain_word(runtime)}".encode("ascii", "replace")
    return first + b"\0" + escaped(session_id) + b"\0" + escaped(top) + b"\n"


def plain_word(text: str) -> str:
    """Return `text` as one word of safe characters, ``-`` if it is empty."""
    if not text:
        return "-"
    if not set(text) - _WORD:
        return text
    return "".join(letter if letter in _WORD else "_" for letter in text)


def keys_of(path: str) -> list[str]:
    """Return the keys for entries about the file at `path`."""
    if not IGNORES_CASE:
        return [path]

    return [path, *(key for key in keys_for(path, "/") if key.startswith(NO_CASE))]
