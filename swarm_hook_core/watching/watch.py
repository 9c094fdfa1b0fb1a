"""Watch locked files during a call that cannot be parsed.

`begin` notes the files' states before the call and keeps their contents, `finish` compares them after it. Calls without
a reported end (killed, interrupted, in the background) are compared by `settle` at the session's next hook.

A comparison shows only that a file changed *while* a call ran, not the writer. Changes that the holder may have made
are left out: ``records.mark_own`` marks its calls, and changes during one of them are not held against this session.
There are no marks for holder's calls that began before any call was watched, and for people with an editor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from swarm_hook_core import state
from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.json_text import dumps
from swarm_hook_core.lookup import Held
from swarm_hook_core.paths import NO_CASE, key_of
from swarm_hook_core.state import is_watching
from swarm_hook_core.watching import records
from swarm_hook_core.watching.records import (
    HASHED_BYTES,
    Record,
    Snapshot,
    difference,
    full,
    glance,
    is_as_noted,
    parse,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.wildcards import Cover

# The files compared for a lock: those that it covers when a call begins, and those that have appeared later.

# of `.git`; the other files change by reading alone
_REPOSITORY = ("HEAD", "packed-refs", "config", "refs", "hooks", "info")
ENTRIES_SEEN = 2000  # entries of a locked folder's tree, before it counts as too large
FILES_IN_FOLDER = 200  # files of a locked folder, in order of names
PATTERN_SECONDS = 0.05  # for all patterns of one call


def files_of(
    locks: Sequence[Held], room: int, is_file: Callable[[str], bool] = lambda path: False
) -> Iterator[tuple[Held, str, str, list[str], bool]]:
    """Yield ``(lock, place, its key, files, True if complete)`` for each of `locks` (Held), files in order of names.

    At most `room` files in all. `place`: the folder of the files, or the file itself. ``is_file(path)`` is True if that
    is known to be a plain file.
    """
    patterns = [lock for lock in locks if lock.pattern]
    covered = {}
    if patterns:
        covered = dict(zip(map(id, patterns), _pattern_files(patterns)))
    for lock in locks:
        if id(lock) in covered:
            place, key, files, complete = covered[id(lock)]
            most = min(room, FILES_IN_FOLDER)
            files, complete = files[:most] if complete else [], complete and len(files) <= most
        else:
            place, key = lock.file, lock.names[-1] if len(lock.names) > 1 and lock.names[-1] else key_of(lock.file)
            if is_file(place):
                files, complete = [place][:room], room > 0
            else:
                files, complete = _files_at(place, room)
        room -= len(files)
        yield lock, place, key, files, complete


def _files_at(file: str, room: int) -> tuple[list[str], bool]:
    """Return ``(files to watch for a lock on `file`, in order; True if complete)``."""
    place = file
    if glance(file).is_link:
        place = os.path.realpath(file)
        if not os.path.isdir(place):
            return [file, place][:room], room > 1
    if not os.path.isdir(place):
        return [file][:room], room > 0
    if os.path.basename(place) == ".git":
        tops = [os.path.join(place, name) for name in _REPOSITORY]
    else:
        tops = [place]
    found, complete = _files_below(tops)
    found.sort()
    room = min(room, FILES_IN_FOLDER)
    return found[:room], complete and len(found) <= room


def key_of_file(file: str, key: str, path: str) -> str:
    """Return the key of `path`, found by `_files_at` for a lock on `file` with this key."""
    if path == file:
        return key
    if path.startswith(file + os.sep):
        folder = file
    else:
        folder = key
    # no link was followed on the way down: the rest of the path is the rest of the key
    if key.startswith(NO_CASE):
        return key_of(path)
    return key + path[len(folder) :]


def _files_below(tops: list[str]) -> tuple[list[str], bool]:
    """Return ``(files below these folders, True if complete)``, without the insides of repositories."""
    found, pending, seen = [], list(tops), 0
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except NotADirectoryError:
            found.append(folder)
            continue
        except OSError:
            continue  # unreadable, or gone just now
        for entry in entries:
            seen += 1
            if seen > ENTRIES_SEEN:
                return found, False
            if not entry.is_dir(follow_symlinks=False):
                found.append(entry.path)
            elif entry.name != ".git":
                pending.append(entry.path)
    return found, True


def new_files(lock: dict[str, Any], known: set[str]) -> tuple[str, list[str]]:
    """Return ``(place, files)`` that have appeared in a locked folder or under a locked pattern since the note."""
    until, place = lock["until"], lock["file"]
    if until == "":
        return place, []
    if lock.get("pattern"):
        place, _key, paths, _all = _pattern_files([_Remembered(lock)])[0]
        paths = paths[:FILES_IN_FOLDER]
    elif os.path.isdir(place):
        paths, _ = _files_at(place, FILES_IN_FOLDER)
    else:
        return place, []
    return place, [path for path in paths if path not in known and (until is None or path < until)]


def _pattern_files(locks: Sequence[Any]) -> list[tuple[str, str, list[str], bool]]:
    """Return ``[(folder, its key, files, True if complete)]`` for `locks` with ``views``, ``pattern`` and ``base``.

    `folder`: the folder of all files of the pattern, as the lock spells it. Unreadable folders give no files.
    """
    from swarm_hook_core.wildcards import Cover, covered_below

    covers = [Cover(lock) for lock in locks]
    folders = [_folder_of(cover) for cover in covers]
    starts = [
        (cover, folder, cover.places_at(cover.folder))
        for cover, folder in zip(covers, folders)
        if cover.segments is not None
    ]
    found: dict[int, list[str]] = {id(cover): [] for cover in covers}
    cut = set()
    for path, cover in covered_below(starts, PATTERN_SECONDS):
        if not path:
            cut.add(id(cover))
        elif os.path.islink(path) or not os.path.isdir(path):
            found[id(cover)].append(path)
    return [
        (folder, cover.folder, sorted(found[id(cover)]), id(cover) not in cut) for cover, folder in zip(covers, folders)
    ]


class _Remembered:
    """A lock on a pattern, from a record."""

    __slots__ = ("file", "pattern", "base")

    def __init__(self, facts: dict[str, Any]):
        self.file, self.pattern, self.base = facts["file"], facts["pattern"], facts["base"]


def _folder_of(cover: Cover) -> str:
    from swarm_hook_core.wildcards import literal_prefix

    pattern, file = cover.held.pattern, cover.held.file
    if not isinstance(pattern, str):
        return cover.folder[cover.folder.find("/") :]
    place = file.removesuffix(pattern.lstrip("/"))
    if place == file:
        return cover.folder[cover.folder.find("/") :]
    return os.path.join(place.rstrip("/") or "/", literal_prefix(pattern)).rstrip("/") or "/"


FILES_AT_ONCE = 400
MOST_REMEMBERED = 1000  # files
KEEPING_SECONDS = 0.04  # for all copies of one call; further files are watched without a copy
BACKGROUND_SECONDS = 3600  # longest watch of a background command
UNTOLD_SECONDS = 600  # longest watch of a command without a reported end, after the end of its turn
FRESH_SECONDS = 1.0  # a call that new may be the one that asks
EDIT_NS = 60 * 10**9  # after an edit, changes count as made by a formatter run by the client
SLACK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
COMMAND_LENGTH = 200

_ENDS = ("SessionEnd", "SessionStart")


class Breach(NamedTuple):
    """A locked file that changed while a call ran.

    - file, key: the file and its key; `lock`: the lock's own file
    - holder, agent, label, note: the lock's session (instance), its sub-agent (or ""), and their texts
    - kind: see ``records.difference``; `at`: time in Unix seconds
    - kept: path of the earlier content, or "": then `why` gives the reason
    - tool, command, ended: the call, and True if it has ended; `edit`: True if it was an edit
    """

    file: str
    key: str
    lock: str
    holder: str
    agent: str
    label: str
    note: str
    kind: str
    kept: str
    why: str
    at: float
    tool: str
    command: str
    ended: bool
    edit: bool


def begin(config: RuntimeConfig, call: ToolCall, held: Sequence[Held], now: float, store: Callable[[], Any]) -> None:
    """Note the files that a call may touch, which goes ahead while others hold the locks `held` (``reader.Held``).

    `store`: opens the store of their contents (``traces.versions.stored.Kept``; `traces` imports this package).
    """
    try:
        _begin(config, call, held, now, store)
    except Exception as error:
        record_fault(config, error)


def finish(config: RuntimeConfig, call: ToolCall) -> list[Breach]:
    """Return the breaches during `call`, which has ended, and remove its record."""
    key = records.call_key(config.runtime_name, call)
    if not call.goes_on:
        records.mark_end(key, time.time_ns())
    for name in records.ended(call.session_id, key, call.id):
        record = records.take(call.session_id, name)
        if record is not None:  # otherwise another hook was faster: each end of equal calls takes one record
            return _settled(config, record, not call.goes_on, call.goes_on)
    return []


def settle(config: RuntimeConfig, event: SessionEvent, now: float) -> list[Breach]:
    """Return the breaches of this session's earlier calls without a reported end. For its other hooks."""
    session_id = event.session_id
    if not session_id or not is_watching():
        return []
    # A compacted session goes on, and so may its commands.
    hook = "Stop" if event.source == "compact" else event.name
    breaches: list[Breach] = []
    for name in records.names_of(session_id):
        if hook == "PreToolUse" and records.age_of(name, now) < FRESH_SECONDS:
            continue
        if records.is_taken(name) and not records.is_stale(name, now):
            continue  # another hook has it
        record = records.take(session_id, name)
        if record is not None:
            over = _is_over(record, hook, now)
            breaches += _settled(config, record, over, record.facts.get("background"))
    if hook in _ENDS:
        records.sweep(now)  # leftovers of killed hooks must not keep all hooks looking
    return breaches


def report(
    config: RuntimeConfig,
    event: SessionEvent,
    breaches: list[Breach],
    coordinator: Sequence[str] | None = None,
    driver: Any = None,
) -> str:
    """Tell the holders of `breaches` by a detached command; return the notice for this session's model, or "".

    `coordinator` is the command's argv prefix, `driver` the SQLite module, if the caller has them. Never raises.
    """
    if not breaches:
        return ""
    try:
        from swarm_hook_core.watching.report import tell

        return tell(config, event.session_id, breaches, coordinator, driver)
    except Exception as error:
        record_fault(config, error)
        return ""


# ------------------------------------------------------------------------------------------------- beforehand


def _begin(config: RuntimeConfig, call: ToolCall, held: Sequence[Held], now: float, store: Callable[[], Any]) -> None:
    session_id = call.session_id
    if not session_id or not held:
        return
    names = records.names_of(session_id)
    for name in names[: max(0, len(names) - records.RECORDS_AT_ONCE + 1)]:
        records.drop(os.path.join(records.folder_of(session_id), name))
    now_ns = time.time_ns()
    look = look_at(held, FILES_AT_ONCE, store())
    facts = {
        "runtime": config.runtime_name,
        "tool": call.tool,
        "command": _command_of(call.input),
        "id": call.id,
        "began": now_ns,
        "background": False,
        "locks": look.locks,
    }
    records.write(session_id, records.call_key(config.runtime_name, call), call.id, facts, now_ns, look.text)
    records.sweep(now)


class Look(NamedTuple):
    """A look at the locks `held`: the facts of these `locks` and of their files, and the same as JSON `text`."""

    held: list[Held]
    locks: list[dict[str, Any]]
    text: str


_looks: dict[int, Look] = {}  # the last ones, by the most files of one


def look_at(held: Sequence[Held], most: int, kept: Any, untouched: object = None) -> Look:
    """Return a look at the locks `held` and at most `most` of their files; keep the contents in `kept`.

    The result may not be changed: a checker's next call mostly has the same. `untouched`: locks just found unchanged.
    """
    last = _looks.get(most)
    if last is not None and last.held == held and (last.locks is untouched or _are_untouched(last.locks)):
        entries = (entry for lock in last.locks for entry in lock["entries"])
        if all(map(_Keeper.remembers, entries)):
            return last
    locks = _locks_as_they_are(held, most, kept)
    _looks[most] = Look(list(held), locks, records.json_of(locks))
    return _looks[most]


def _locks_as_they_are(held: Sequence[Held], most: int, kept: Any) -> list[dict[str, Any]]:
    keeper = _Keeper(kept)
    locks = []
    for one, place, key, paths, complete in files_of(held, most, keeper.knows):
        entries = []
        for path in paths:
            path_key = key_of_file(place, key, path)
            entries.append([path, path_key, *keeper.look_at(path)])
        facts: dict[str, Any] = {
            "file": one.file,
            "key": key,
            "holder": one.instance_id,
            "agent": one.agent,
            "label": one.label,
        }
        if one.pattern:
            facts.update(pattern=one.pattern, base=one.base)
        facts.update(note=" ".join(one.note.split())[:COMMAND_LENGTH], entries=entries)
        # Files after this name count as new: None if all are known, else the last one that there was room for.
        facts["until"] = None if complete else (paths or [""])[-1]
        locks.append(facts)
    return locks


class _Keeper:
    """Looks at files and keeps their contents within the time limit of one call; the first file in any case.

    A checker remembers the copies of files that did not change since.
    """

    # path -> result of `look_at`: of a missing file, or with a copy that is surely of that content
    _remembered: dict[str, list[str]] = {}

    def __init__(self, kept: Any):
        self.kept = kept
        self.end: float | None = None
        self._known: set[str] = set()  # paths whose `_remembered` results still hold

    def knows(self, path: str) -> bool:
        """Return True if a file is as it is remembered, or missing still."""
        last = self._remembered.get(path)
        if last is not None and is_as_noted(path, last[0]) and (not last[1] or os.path.lexists(last[1])):
            self._known.add(path)
        return path in self._known

    @classmethod
    def remembers(cls, entry: list[str]) -> bool:
        """Return True if the entry of a file in a record is as remembered, and its copy is there."""
        path, _key, *found = entry
        return cls._remembered.get(path) == found and (not found[1] or os.path.lexists(found[1]))

    def look_at(self, path: str) -> list[str]:
        """Return ``[str(snapshot), path of the kept copy or "", reason for no copy or ""]``."""
        if path in self._known:
            return list(self._remembered[path])
        seen = glance(path)
        why = ""
        if seen.is_link:
            seen = full(path)
        if not seen.exists:
            return self._remember(path, [str(seen), "", "there was no such file"])
        if not seen.is_plain:
            return [str(seen), "", "it was no plain file"]
        try:
            copy = self.kept.copy_of(path, seen)
            if copy is not None:
                seen.digest = copy.digest
                return self._remember(path, [str(seen), copy.path, ""])
            if seen.size > HASHED_BYTES:
                why = f"it was larger than {HASHED_BYTES // 1024} KiB"
            elif self.end is not None and time.monotonic() > self.end:
                why = "there was no time to keep it"
            else:
                self.end = self.end or time.monotonic() + KEEPING_SECONDS
                seen, copy = self.kept.keep(path)
        except OSError as error:
            why = f"it could not be kept: {error}"
        if why or copy is None:
            return [str(seen), "", why]
        seen.digest = copy.digest
        return [str(seen), copy.path, ""]

    def _remember(self, path: str, found: list[str]) -> list[str]:
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
            self._known.clear()
        self._remembered[path] = found
        return list(found)


def _command_of(tool_input: object) -> str:
    """Return the call in one line: a shell's command, or the input as JSON."""
    command = tool_input
    if isinstance(tool_input, dict):
        command = tool_input.get("command", tool_input.get("cmd", tool_input))
    if isinstance(command, list):
        command = " ".join(str(word) for word in command)
    if not isinstance(command, str):
        command = dumps(command)
    line = " ".join(command[: 20 * COMMAND_LENGTH].split())
    if len(line) <= COMMAND_LENGTH:
        return line
    return line[: COMMAND_LENGTH - 1] + "…"


# ------------------------------------------------------------------------------------------------- afterwards


def _settled(config: RuntimeConfig, record: Record, ends: bool, background: object) -> list[Breach]:
    """Return the breaches in a taken record. It is removed if its call `ends`, else put back."""
    facts, is_untouched = record.facts, False
    breaches: list[Breach] = []
    try:
        is_untouched = are_untouched(facts)
        if not is_untouched:
            facts = records.facts_in(record.path, for_good=True) or {}
            breaches = compare(facts, ends)
    except Exception as error:
        record_fault(config, error)
        ends = True
    if ends:
        records.drop(record.path)
        return breaches
    is_unchanged = is_untouched and facts.get("background") == bool(background)
    try:
        records.put_back(Record(record.path, {**facts, "background": bool(background)}), is_unchanged)
    except OSError as error:
        record_fault(config, error)
    return breaches


def compare(facts: dict[str, Any], ends: bool) -> list[Breach]:
    """Return the changes since these facts were noted; bring the facts up to date."""
    breaches = []
    for lock in facts["locks"]:
        if _is_untouched_file(lock):
            continue
        known = {entry[0] for entry in lock["entries"]}
        place, new = new_files(lock, known)
        for path in new:
            key = key_of_file(place, lock["key"], path)
            lock["entries"].append([path, key, str(Snapshot()), "", "there was no such file"])
        for entry in list(lock["entries"]):
            path, key, before, kept, why = entry
            if is_as_noted(path, before):
                continue
            kind, present = difference(parse(before), path)
            if not kind:
                continue
            at_ns = present.ctime_ns or time.time_ns()
            first_ns = at_ns - SLACK_NS if present.exists else facts["began"]  # the time of a removal is unknown
            agent, is_edit = lock.get("agent", ""), facts.get("edit", False)
            if is_edit and at_ns > facts["began"] + EDIT_NS:
                entry[2:] = [str(present), "", "it changed long after the edit"]
                continue
            if records.acted(lock["holder"], path, facts["began"], first_ns, at_ns + SLACK_NS, agent, is_edit):
                entry[2:] = [str(present), "", "its holder wrote it while the command ran"]
                continue
            lock["entries"].remove(entry)  # reported once for each call
            if kept and not os.path.isfile(kept):
                kept, why = "", "it had to make room for others"
            breaches.append(
                Breach(
                    file=path, key=key, lock=lock["file"], holder=lock["holder"], agent=agent, label=lock["label"],
                    note=lock["note"], kind=kind, kept=kept, why=why, at=at_ns / 1e9, tool=facts["tool"],
                    command=facts["command"], ended=ends, edit=is_edit,
                )
            )  # fmt: skip
    return breaches


def are_untouched(facts: dict[str, Any]) -> bool:
    """Return True if `compare` would find nothing, and leave the facts as they are."""
    return _are_untouched(facts["locks"])


def _are_untouched(locks: list[dict[str, Any]]) -> bool:
    return all(map(_is_untouched_file, locks))


def _is_untouched_file(lock: dict[str, Any]) -> bool:
    """Return True if a lock is on one file, which nothing has changed since it was noted. Mostly it is so."""
    entries = lock["entries"]
    return len(entries) == 1 and entries[0][0] == lock["file"] and is_as_noted(lock["file"], entries[0][2])


def _is_over(record: Record, hook: str, now: float) -> bool:
    """Return True if a call without a reported end counts as ended at this hook of its session."""
    age = now - record.facts.get("began", 0) / 1e9
    if hook in _ENDS or age > BACKGROUND_SECONDS:
        return True
    if hook == "PreToolUse":
        return False  # it may run in parallel to the call that begins now
    # At the beginning or end of a turn: a shell's command may outlive the turn, a tool's call does not.
    is_shell = record.facts.get("tool") in SHELL_TOOLS | OPAQUE_TOOLS
    return not record.facts.get("background") and (not is_shell or age > UNTOLD_SECONDS)


def record_fault(config: RuntimeConfig, error: BaseException) -> None:
    """Record a fault of a watch: the call goes on."""

    state.record(config.runtime_name, "watch", error)
