"""Watching what a call does to files that peers have locked, where nobody can see it beforehand.

`begin` notes what the files are before the call and keeps what is in them, `finish` compares after it. Calls whose
end no client tells (killed, interrupted, in the background) are compared by `settle` at the session's next hook.

Only that a file changed *while* a call ran can be seen, never by whom. What the holder may have done itself is left
out: ``records.mark_own`` marks its calls, and what changed while one of them ran is not held against the peer. A call
of the holder's that had begun before anything was watched has no mark, nor has a person with an editor.
"""

import os
import time

from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS
from swarm_hook_core.state import is_watching
from swarm_hook_core.watching import records, watched_files
from swarm_hook_core.watching.snapshot import Snapshot, difference, full, glance, parse

FILES_AT_ONCE = 400
KEEPING_SECONDS = 0.04  # for all copies of one call; what is left over is watched, but not kept
BACKGROUND_SECONDS = 3600  # a command known to run in the background is watched for so long
UNTOLD_SECONDS = 600  # one whose end was never told, past the end of its turn
FRESH_SECONDS = 1.0  # a call that began just now, perhaps the very one that asks
EDIT_NS = 60 * 10**9  # after an edit, in which what a client runs after it may change files
SLACK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
COMMAND_LENGTH = 200

_ENDS = ("SessionEnd", "SessionStart")


class Breach:
    """A locked file that changed while a call ran.

    `file` and its `key`; the lock's own file (`lock`), `holder` (instance), its `agent` (empty: the session itself),
    `label` and `note`; `kind` as ``snapshot.difference`` has it; `kept`, path of the earlier content, empty where
    there is none and `why` says so;
    `at`, when, in Unix seconds; the `tool` and `command` of the call, and whether it has `ended`; `edit`: it was one.
    """

    __slots__ = ("file", "key", "lock", "holder", "agent", "label", "note", "kind", "kept", "why", "at", "tool",
                 "command", "ended", "edit")  # fmt: skip

    def __init__(self, **facts):
        for name in self.__slots__:
            setattr(self, name, facts[name])


def begin(config, call, held, now: float) -> None:
    """A call of this session goes ahead while peers hold `held` (a list of ``reader.Held``): note what it may touch."""
    try:
        _begin(config, call, held, now)
    except Exception as error:
        _fault(config, error)


def finish(config, call, now: float) -> list:
    """`call` has ended: the breaches while it ran. Its record goes."""
    key = records.call_key(config.runtime_name, call)
    if not call.goes_on:
        records.mark_end(key, time.time_ns())
    for name in records.ended(call.session_id, key, call.id):
        record = records.take(call.session_id, name)
        if record is not None:  # else another hook was faster: of calls alike, each end takes one
            return _settled(config, record, now, not call.goes_on, call.goes_on)
    return []


def settle(config, event, now: float) -> list:
    """The breaches of earlier calls of this session whose end nobody has told. For its other hooks."""
    session_id = event.session_id
    if not session_id or not is_watching():
        return []
    # A session that is being compacted goes on, and so may its commands.
    hook = "Stop" if event.source == "compact" else event.name
    breaches: list = []
    for name in records.names_of(session_id):
        if hook == "PreToolUse" and records.age_of(name, now) < FRESH_SECONDS:
            continue
        if records.is_taken(name) and not records.is_stale(name, now):
            continue  # a hook is at it
        record = records.take(session_id, name)
        if record is not None:
            over = _is_over(record, hook, now)
            breaches += _settled(config, record, now, over, record.facts.get("background"))
    if hook in _ENDS:
        records.sweep(now)  # what killed hooks have left must not keep everybody's hooks looking
    return breaches


def report(config, event, breaches: list, coordinator=None, driver=None) -> str:
    """Have the holders told of `breaches`, by a command that nobody waits for; the words for this session's model.

    Empty where there is nothing to say. `coordinator` is the command's argv prefix, `driver` the SQLite module,
    where the caller has them. Never raises.
    """
    if not breaches:
        return ""
    try:
        from swarm_hook_core.watching.report import tell

        return tell(config, event.session_id, breaches, coordinator, driver)
    except Exception as error:
        _fault(config, error)
        return ""


# ------------------------------------------------------------------------------------------------- beforehand


def _begin(config, call, held, now: float) -> None:
    session_id = call.session_id
    if not session_id or not held:
        return
    names = records.names_of(session_id)
    for name in names[: max(0, len(names) - records.RECORDS_AT_ONCE + 1)]:
        records.drop(os.path.join(records.folder_of(session_id), name))
    now_ns = time.time_ns()
    locks = locks_as_they_are(held, now, FILES_AT_ONCE)
    facts = {
        "runtime": config.runtime_name,
        "tool": call.tool,
        "command": _command_of(call.input),
        "id": call.id,
        "began": now_ns,
        "background": False,
        "locks": locks,
    }
    records.write(session_id, records.call_key(config.runtime_name, call), call.id, facts, now_ns)
    records.sweep(now)


def locks_as_they_are(held, now: float, most: int) -> list:
    """Return what is noted of each of `held`, and of its files, at most so many; what is in them is kept."""
    from swarm_hook_core.watching.kept import Kept

    keeper = _Keeper(Kept(now))
    locks = []
    for one, place, key, paths, complete in watched_files.files_of(held, most):
        entries = []
        for path in paths:
            path_key = watched_files.key_of_file(place, key, path)
            entries.append([path, path_key, *keeper.look_at(path, path_key)])
        facts = {"file": one.file, "key": key, "holder": one.instance_id, "agent": one.agent, "label": one.label}
        if one.pattern:
            facts.update(pattern=one.pattern, base=one.base)
        facts.update(note=" ".join(one.note.split())[:COMMAND_LENGTH], entries=entries)
        # Up to which name all files are known, so that others are new: to the end, or the last that there was room for.
        facts["until"] = None if complete else paths[-1] if paths else ""
        locks.append(facts)
    return locks


class _Keeper:
    """Looks at files and keeps what is in them, within the time of one call: the first in any case."""

    def __init__(self, kept):
        self.kept = kept
        self.end: float | None = None

    def look_at(self, path: str, key: str) -> list:
        """``[str(snapshot), name of the kept version or "", why it was not kept or ""]``."""
        from swarm_hook_core.watching.kept import FILE_BYTES, NotKept

        seen = glance(path)
        why = ""
        if seen.is_link:
            seen = full(path)
        if not seen.exists:
            return [str(seen), "", "there was no such file"]
        if not seen.is_plain:
            return [str(seen), "", "it was no plain file"]
        version = self.kept.version_of(key, seen)
        if version is None:
            if seen.size > FILE_BYTES:
                why = f"it was larger than {FILE_BYTES // 1024} KiB"
            elif self.end is not None and time.monotonic() > self.end:
                why = "there was no time to keep it"
            else:
                self.end = self.end or time.monotonic() + KEEPING_SECONDS
                try:
                    version = self.kept.keep(key, path)
                except (NotKept, OSError) as error:
                    why = f"it could not be kept: {error}"
        if version is None:
            return [str(seen), "", why]
        if version.seen.mtime_ns != seen.mtime_ns & ((1 << 64) - 1):
            seen = glance(path)  # written to between the two looks
        seen.digest = version.seen.digest
        return [str(seen), version.name, ""]


def _command_of(tool_input) -> str:
    """The call in one line: a shell's command, else what the input holds."""
    command = tool_input
    if isinstance(tool_input, dict):
        command = tool_input.get("command", tool_input.get("cmd", tool_input))
    if isinstance(command, list):
        command = " ".join(str(word) for word in command)
    if not isinstance(command, str):
        from swarm_hook_core.json_text import dumps

        command = dumps(command)
    line = " ".join(command[: 20 * COMMAND_LENGTH].split())
    return line if len(line) <= COMMAND_LENGTH else line[: COMMAND_LENGTH - 1] + "…"


# ------------------------------------------------------------------------------------------------- afterwards


def _settled(config, record, now: float, ends: bool, background) -> list:
    """The breaches in a record that is ours; it goes where its call `ends`, else it waits for the next time."""
    try:
        breaches = compare(record.facts, ends)
    except Exception as error:
        _fault(config, error)
        breaches, ends = [], True
    if ends:
        records.drop(record.path)
        return breaches
    record.facts["background"] = bool(background)
    try:
        records.put_back(record)
    except OSError as error:
        _fault(config, error)
    return breaches


def compare(facts: dict, ends: bool) -> list:
    """What has changed since these facts were noted, which are brought up to the present."""
    from swarm_hook_core.watching.kept import folder

    breaches, kept_in = [], folder()
    for lock in facts["locks"]:
        known = {entry[0] for entry in lock["entries"]}
        place, new = watched_files.new_files(lock, known)
        for path in new:
            key = watched_files.key_of_file(place, lock["key"], path)
            lock["entries"].append([path, key, str(Snapshot()), "", "there was no such file"])
        for entry in list(lock["entries"]):
            path, key, before, kept, why = entry
            kind, present = difference(parse(before), path)
            if not kind:
                continue
            at_ns = present.ctime_ns or time.time_ns()
            first_ns = at_ns - SLACK_NS if present.exists else facts["began"]  # nothing says when a file went
            agent, is_edit = lock.get("agent", ""), facts.get("edit", False)
            if is_edit and at_ns > facts["began"] + EDIT_NS:
                entry[2:] = [str(present), "", "it changed long after the edit"]
                continue
            if records.acted(lock["holder"], path, facts["began"], first_ns, at_ns + SLACK_NS, agent, is_edit):
                entry[2:] = [str(present), "", "its holder wrote it while the command ran"]
                continue
            lock["entries"].remove(entry)  # told once for each call
            place = os.path.join(kept_in, kept) if kept else ""
            if place and not os.path.isfile(place):
                place, why = "", "it had to make room for others"
            breaches.append(
                Breach(
                    file=path, key=key, lock=lock["file"], holder=lock["holder"], agent=agent, label=lock["label"],
                    note=lock["note"], kind=kind, kept=place, why=why, at=at_ns / 1e9, tool=facts["tool"],
                    command=facts["command"], ended=ends, edit=is_edit,
                )
            )  # fmt: skip
    return breaches


def _is_over(record, hook: str, now: float) -> bool:
    """Whether a call whose end was not told is taken for ended at this hook of its session."""
    age = now - record.facts.get("began", 0) / 1e9
    if hook in _ENDS or age > BACKGROUND_SECONDS:
        return True
    if hook == "PreToolUse":
        return False  # it may be running beside the one that begins now
    # A turn begins or ends. A shell's command may outlive it, a tool's call does not.
    is_shell = record.facts.get("tool") in SHELL_TOOLS | OPAQUE_TOOLS
    return not record.facts.get("background") and (not is_shell or age > UNTOLD_SECONDS)


def _fault(config, error: BaseException) -> None:
    from swarm_hook_core import faults

    faults.record(config.runtime_name if config else "", "watch", faults.describe(error))
