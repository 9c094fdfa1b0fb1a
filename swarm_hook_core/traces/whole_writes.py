"""Whole writes of a file: their new text, whether it keeps others' lines, and the merge of one that drops them.

Three texts are compared: the one that the session last saw, the present one, and the new one. The text that was seen is
the base for changes that others have made since. It is known from the versions that are kept before each write
(``versions``): another session's next write kept the text that this session had seen, or left. Where no version is
known, the last commit's text stands for it: then all that is not committed counts as others' changes.

The new text decides, not the number of attempts: one that has their changes in it loses nothing, also without a look at
the file. One that drops them is denied each time, until the session has looked; or it goes ahead *merged*, if the three
texts have no conflict: the client is given the merged text in place of the new one, in the input of the call. That is
done only where the client still asks its rules about the call (``RuntimeConfig.merges``), and if the setting `merge` is
on.

The model knows the text that it has sent. So after a merge its session counts as not having seen the others' changes,
until it looks at the file: its journal has an entry ``merged``, and the sent text is kept beside the versions, with the
mark ``%m``. Its next whole write is compared with that text, and merged again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from swarm_hook_core import REPLACE, environment, session_memory, settings, state
from swarm_hook_core.config import ALLOWED, PLUGIN, SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.denial import Loss, Notice, without_owner
from swarm_hook_core.git_repository import NoAnswer, Refused, committed_text
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.opaque_calls import effects_of
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.traces import (
    LATER,
    LOOK,
    MERGED,
    changed_lines,
    journal,
    keys_of,
    seen,
    state_of,
    version_path,
    versions,
)
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.versions.stored import version_at
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.watching.records import digest_of, parse, read_resolved
from swarm_hook_core.wording import holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.trail import Trail


SECONDS = 0.5  # for git's answer
LONGEST = 1024 * 1024  # bytes
# parameters that hold the text, in tools that write whole files
_KEYS = ("content", "contents", "file_text", "new_content", "text")
_ADD = "*** Add File: "
RUNS = 3  # runs of lines of one file that are named


class Known(NamedTuple):
    """The text that a session knows of a file; `is_seen`: it has seen that very text, else it is the last commit's.

    `text` is empty for a file that is neither seen nor committed.
    """

    text: str
    is_seen: bool


def known(meetings: Meetings, path: str) -> Known:
    """Return the Known text of the file at resolved `path` for the session of the call, else the last commit's."""
    data = _seen(meetings, path)
    if data is not None:
        return Known(_decoded(data), True)
    # The file's text in the last commit, or None
    try:
        committed = committed_text(path, SECONDS)
    except (NoAnswer, Refused):
        committed = None  # no answer, or not in the last commit
    return Known(committed or "", False)


def present(path: str) -> str | None:
    """Return the present text of the file at resolved `path`; None if it is gone, too large, or no plain file."""
    try:
        return _decoded(read_resolved(path, LONGEST)[1])
    except (OSError, ValueError):
        return None  # gone, too large, or not a plain file


def _seen(meetings: Meetings, path: str) -> bytes | None:
    """Return the content that the session has seen or left last, or None if no version of it is known."""
    own = meetings.journals.own(os.path.dirname(path))
    last = seen.last_known(own, keys_of(path), state_of(path))
    if last is None:
        return None
    place = meetings.trail.place_of(os.path.dirname(path))
    merged = seen.was_merged(own, keys_of(path), 0)
    if merged is not None:
        return _content(place, meetings.trail.own_name, path, merged.at_ns, MERGED)
    # ``[(name of the journal, entry)]`` of others' writes of the file
    writes_of_others = [
        (theirs.name, entry)
        for theirs in meetings.journals.of_others(place)
        for key in keys_of(path)
        for entry in journal.newest_first(theirs.data, key, ("wrote",))
    ]
    for name, entry in sorted(writes_of_others, key=lambda one: one[1].at_ns):
        if last.kind == "saw" and entry.text == last.text:
            return _content(place, name, path, entry.at_ns, LATER)
        if last.kind == "wrote" and entry.at_ns > last.at_ns:
            entries = (one for key in keys_of(path) for one in journal.newest_first(own, key, ("is",)))
            left = next((one for one in entries if last.at_ns < one.at_ns < entry.at_ns), None)
            data = _content(place, name, path, entry.at_ns, LATER)
            if left is None or (data is not None and _is_as_left(left, data)):
                return data
            return _content(place, meetings.trail.own_name, path, left.at_ns, LOOK)
    return None


def _content(place: str, name: str, path: str, at_ns: int, mark: str) -> bytes | None:
    """Return the version that a session kept of the file with its entry of the time `at_ns`, or None.

    `name`: that of its journal; `mark`: the kind of version, as in its file name.
    """
    first = version_path(place, name, path)
    version = version_at(f"{first}{mark}{at_ns}")
    if version is None and mark == LATER:
        version = version_at(first)
    if version is None or version.at_ns != at_ns:
        return None
    try:
        return version.content()
    except OSError:
        return None  # removed just now


def _is_as_left(left: Entry, data: bytes) -> bool:
    """Return True if `data` is the content that the session's own write left, by its entry `left`."""
    found = parse(left.text)
    return found.size == len(data) and found.digest in ("", digest_of(data))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# ------------------------------------------------------------------------------------------------ new texts


def keeps(meetings: Meetings, effects: Effects | None, path: str, resolved: str) -> bool:
    """Return True if the new content is known and keeps all that others have changed since the session saw the file.

    `path`: as named by the call; `resolved`: without links; `effects`: effects of a shell or MCP call, or None.
    """
    new, now = of_call(meetings.trail, effects, path), present(resolved)
    if new is None or now is None:
        return False
    last = known(meetings, resolved)
    if last.text == now:
        return last.is_seen  # else something beside the text has changed, such as the file's mode
    return changed_lines.are_kept(last.text, now, new)


def of_call(trail: Trail, effects: Effects | None, path: str) -> str | None:
    """Return the new text that a call will put in place of the file, or None if it is not known."""
    if effects is None:
        # The new text from the input of a tool that writes whole files, or None
        given = trail.call.input
        if isinstance(given, str):
            return _added_in(given, path, trail.call.folder)
        if not isinstance(given, dict):
            return None
        if trail.call.tool in trail.config.replaces:
            texts = [text for key in _KEYS if isinstance(text := given.get(key), str)]
            return texts[0] if len(texts) == 1 else None
        patches = [value for value in given.values() if isinstance(value, str) and _ADD in value]
        return _added_in(patches[0], path, trail.call.folder) if len(patches) == 1 else None
    return _of_script(effects, path)


def replaced(config: RuntimeConfig, call: ToolCall, given: object, path: str, text: str) -> object:
    """Return the input `given` of a tool with `text` as the new content of the file; None if that has no place in it.

    config, call, path  as of `input_with`; `given`: the call's input, perhaps with other files replaced already
    """
    if isinstance(given, str):
        return _with_added(given, path, call.folder, text)
    if not isinstance(given, dict):
        return None
    if call.tool in SHELL_TOOLS:
        return _with_document(call, given, path, text)
    if call.tool in config.replaces:
        keys = [key for key in _KEYS if isinstance(given.get(key), str)]
        return {**given, keys[0]: text} if len(keys) == 1 else None
    patches = [key for key, value in given.items() if isinstance(value, str) and _ADD in value]
    patch = _with_added(given[patches[0]], path, call.folder, text) if len(patches) == 1 else None
    return {**given, patches[0]: patch} if patch is not None else None


def _with_document(call: ToolCall, given: dict[str, Any], path: str, text: str) -> object:
    """Return the input of a shell tool with `text` in the here-document that is the file's new text, or None.

    Only a quoted here-document, that is in the command once, is replaced; it goes into that file alone, or into a draft
    of it. Then the command is read again: it has to write the very text.
    """
    command = given.get("command")
    if not isinstance(command, str):
        return None
    read = effects_of(ToolCall(call.tool, given, call.session_id, call.cwd))
    before = _of_script(read, path) if read is not None else None
    if read is None or not (len(read.writes) == 1 or os.path.normpath(path) in read.copied):
        return None  # it goes into other files, too
    if not before or command.count(f"\n{before}") != 1:
        return None
    start, _, end = command.partition(f"\n{before}")
    word = end.partition("\n")[0]
    if not word.isalnum() or not any(f"<<{mark}{word}{mark}" in start.rpartition("\n")[2] for mark in ("'", '"')):
        return None
    changed = {**given, "command": f"{start}\n{text}{end}"}
    again = effects_of(ToolCall(call.tool, changed, call.session_id, call.cwd))
    is_same = again is not None and len(again.writes) == len(read.writes)
    return changed if is_same and again is not None and _of_script(again, path) == text else None


def _with_added(patch: str, path: str, folder: str, text: str) -> str | None:
    """Return the envelope with `text` in place of the one that `_added_in` returns; None if it cannot have it."""
    parts = patch.split(_ADD)
    found = [number for number, part in enumerate(parts) if number and _names(part, folder) == path]
    if len(found) != 1 or text[-1:] != "\n":
        return None  # the last line of an added file always has an end
    header, *lines = parts[found[0]].split("\n")
    after = next((number for number, line in enumerate(lines) if line[:1] != "+"), len(lines))
    added = [f"+{line}" for line in text[:-1].split("\n")]
    parts[found[0]] = "\n".join([header, *added, *lines[after:]])
    return _ADD.join(parts)


def _names(part: str, folder: str) -> str:
    """Return the path in the header that `part` of an envelope begins with."""
    return os.path.join(folder, part.partition("\n")[0].strip())


def _added_in(patch: str, path: str, folder: str) -> str | None:
    """Return the text that an apply_patch envelope gives the file with an "Add File" header; None without one."""
    parts = [part for part in patch.split(_ADD)[1:] if _names(part, folder) == path]
    if len(parts) != 1:
        return None
    lines = []
    for line in parts[0].split("\n")[1:]:
        if line[:1] != "+":
            break
        lines.append(line[1:])
    return "\n".join([*lines, ""])


def _of_script(effects: Effects, path: str) -> str | None:
    """Return the new text if exactly one statement of a script writes it, or None."""
    whole = os.path.normpath(path)
    writes = [one for one in effects.writes if os.path.normpath(os.path.join(one.folder, one.path)) == whole]
    if len(writes) != 1 or writes[0].how != REPLACE:
        return None
    stream = effects.copied.get(whole) or effects.texts.get(whole)
    text: str | None = stream.text if stream is not None else None
    return text if text is not None and "\0" not in text else None


# ------------------------------------------------------------------------------------------------ merges


class Merge(NamedTuple):
    """One merged text.

    path    the file, as the call names it: an absolute path
    present the text of the file
    sent    the text that the model has sent
    text    the merged text
    trace   the newest unseen write of another session in the file; None if it is a person's work
    """

    path: str
    present: str
    sent: str
    text: str
    trace: Trace | None


def is_merged(
    meetings: Meetings, effects: Effects | None, path: str, resolved: str, trace: Trace | None = None
) -> bool:  # fmt: skip
    """Merge the call's text of a file, and collect that in the trail. Return False if it has to be denied.

    effects  of a shell or MCP call, or None
    path     as the call names it; `resolved`: without links
    trace    the newest unseen write of another session; None for a person's work
    """
    trail = meetings.trail
    found = trail.merges.get(resolved) or trail.unmerged.get(resolved) or _merge_of(meetings, effects, path, resolved)
    if found is None:
        return False
    found = found._replace(trace=found.trace or trace)
    if resolved in trail.merges:
        trail.merges[resolved] = found
        return True
    is_taken = can_merge(trail.config, trail.call)
    if not is_taken or input_with(trail.config, trail.call, [*trail.merges.values(), found]) is None:
        trail.unmerged[resolved] = found  # for the denial
        return False
    trail.merges[resolved] = found
    return True


def _merge_of(meetings: Meetings, effects: Effects | None, path: str, resolved: str) -> Merge | None:
    """Return the Merge of the call's text, or None for a conflict, or if one of the three texts is not known."""
    new, now = of_call(meetings.trail, effects, path), present(resolved)
    if new is None or now is None:
        return None
    base = known(meetings, resolved)
    if base.text == now or not (base.is_seen or base.text):
        return None  # nothing to merge, or no text in common
    merged = changed_lines.merge(base.text, now, new)
    if merged is None or not _is_utf8(merged):
        return None
    return Merge(path, now, new, merged, None)


def can_merge(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if the client takes another input without weakening its user's rules, and that is wanted."""
    if not config.merges or not call.takes_input:
        return False
    if settings.merge(config.env_prefix, call.folder).value != "on":
        return False
    return config.merges == PLUGIN or _release(config) in config.merge_versions


def _release(config: RuntimeConfig) -> str:
    try:
        return environment.client_version(config)
    except (OSError, ValueError):
        return ""  # unknown: no release that was tested


def _is_utf8(text: str) -> bool:
    """Return True if `text` can be handed to a client; bytes of other encodings cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False  # bytes of another encoding
    return True


# ------------------------------------------------------------------------------------------------ the answer


def input_with(config: RuntimeConfig, call: ToolCall, merges: Iterable[Merge]) -> object:
    """Return the call's input with the merged texts in it, or None if it has no place for one."""
    given = call.input
    for merge in merges:
        given = replaced(config, call, given, merge.path, merge.text)
        if given is None:
            return None
    return given


def answered(config: RuntimeConfig, call: ToolCall, given: object, words: str) -> dict[str, Any]:
    """Return the object by which the client takes `given` as the call's input, and tells its model `words`.

    A client that drops words there is told them at its session's next event.
    """
    drops = config.dialect.unheard
    if config.merges != ALLOWED and not (drops is not None and drops("PreToolUse", "")):
        return config.dialect.replacement("PreToolUse", given, words)

    try:
        session_memory.keep_words(config, call, words)
    except OSError as error:  # the words are lost, the merge is not
        state.record(config.runtime_name, "unheard", error)
    if config.merges != ALLOWED:
        return config.dialect.replacement("PreToolUse", given, "")
    output = {"hookEventName": "PreToolUse", "updatedInput": given, "permissionDecision": "allow"}
    return {"hookSpecificOutput": output}


# ------------------------------------------------------------------------------------------------ notes and words


def note(trail: Trail) -> None:
    """Note that the session has not seen its merged texts, and keep the texts that it has sent."""
    if trail.is_asked:
        return

    for resolved, merge in trail.merges.items():
        at_ns = time.time_ns()
        sent = merge.sent.encode("utf-8", "surrogateescape")
        versions.keep_text(sent, f"{trail.version_path(resolved)}{MERGED}{at_ns}", at_ns)
        trail.note("merged", resolved, at_ns=at_ns)


def words(merges: dict[str, Merge], identity: str) -> str:
    """Return the notice about the merged texts of a call (``Trail.merges``)."""
    lines = []
    for resolved, merge in merges.items():
        owner = "a person's" if merge.trace is None else f"{holder(merge.trace.held, identity)[0]}'s"
        diff, is_whole = changed_lines.shown(merge.sent, merge.text)
        lines.append(
            f"swarm: your text of {named(resolved)} was merged with {owner} change of {_lines(merge)}, which you had"
            " not seen: the file has both. Keep that change in your next text of the file."
        )
        if diff:
            first = "" if is_whole else "the first "
            lines += [f"The file beside your text ({first}{len(diff)} lines of diff, quoted):", *diff]
    return "\n".join(lines)


def notices(merges: dict[str, Merge], said: str) -> list[Notice]:
    """Return the Notices to record about the merged texts of a call."""
    found = []
    for resolved, merge in merges.items():
        loss = without_owner("merged-person", "merge")
        if merge.trace is not None:
            loss = Loss("merged", merge.trace.held, "merge", at=merge.trace.at_ns / 1e9)
        found.append(Notice(resolved, loss, said))
    return found


def way(unmerged: dict[str, Merge]) -> str:
    """Return the part of a denial about texts that could be merged (``Trail.unmerged``), or "": the diff to each."""
    parts, room = [], changed_lines.MOST_LINES
    for resolved, merge in unmerged.items():
        diff, is_whole = changed_lines.shown(merge.present, merge.text, room)
        room -= len(diff)
        if diff:
            first = "" if is_whole else "the first "
            parts.append(
                f"\nYour text of {named(resolved)} and that change merge without conflict: make yours by an edit, which"
                f" passes. From the present file to the merged text ({first}{len(diff)} lines of diff, quoted):"
            )
            parts += diff
    return "\n".join(parts)


def _lines(merge: Merge) -> str:
    """Return ``lines 10 to 14``: those of the merged text that the sent one has not."""
    runs = changed_lines.runs_between(merge.sent, merge.text)
    said = [f"{first} to {last}" if first != last else str(first) for first, last in runs[:RUNS]]
    more = " and more" if len(runs) > RUNS else ""
    many = len(runs) > 1 or any(first != last for first, last in runs)
    return f"line{'s' if many else ''} {', '.join(said)}{more}"
