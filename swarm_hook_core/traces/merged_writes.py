"""Whole writes that go ahead merged: a stale text that would drop others' lines gets them instead.

Three texts are merged: the one that the session last saw, the present one, and the new one. Without a conflict the
client is given the merged text in place of the new one, in the input of the call. That is done only where the client
still asks its rules about the call (``RuntimeConfig.merges``), and if the setting `merge` is on. Else the call is
denied.

The model knows the text that it has sent. So its session counts as not having seen the others' changes, until it looks
at the file: its journal has an entry ``merged``, and the sent text is kept beside the versions, with the mark ``%m``.
Its next whole write is compared with that text, and merged again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from swarm_hook_core import environment, session_memory, settings, state
from swarm_hook_core.config import ALLOWED, PLUGIN, RuntimeConfig
from swarm_hook_core.denial import Loss, Notice, without_owner
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.state import open_in_private, write_all
from swarm_hook_core.traces import MERGED, changed_lines, texts, version_path
from swarm_hook_core.traces.changed_lines import runs_between
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.trail import Trail

RUNS = 3  # runs of lines of one file that are named


class Merge:
    """One merged text.

    path    the file, as the call names it: an absolute path
    present the text of the file
    sent    the text that the model has sent
    text    the merged text
    trace   the newest unseen write of another session in the file; None if it is a person's work
    """

    __slots__ = ("path", "present", "sent", "text", "trace")

    def __init__(self, path: str, present: str, sent: str, text: str, trace: Trace | None):
        self.path = path
        self.present = present
        self.sent = sent
        self.text = text
        self.trace = trace


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
    found.trace = found.trace or trace
    if resolved in trail.merges:
        return True
    is_taken = can_merge(trail.config, trail.call)
    if not is_taken or input_with(trail.config, trail.call, [*trail.merges.values(), found]) is None:
        trail.unmerged[resolved] = found  # for the denial
        return False
    trail.merges[resolved] = found
    return True


def _merge_of(meetings: Meetings, effects: Effects | None, path: str, resolved: str) -> Merge | None:
    """Return the Merge of the call's text, or None for a conflict, or if one of the three texts is not known."""
    new, present = texts.of_call(meetings.trail, effects, path), texts.present(resolved)
    if new is None or present is None:
        return None
    base = texts.known(meetings, resolved)
    if base.text == present or not (base.is_seen or base.text):
        return None  # nothing to merge, or no text in common
    merged = changed_lines.merge(base.text, present, new)
    if merged is None or not _is_utf8(merged):
        return None
    return Merge(path, present, new, merged, None)


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
        given = texts.replaced(config, call, given, merge.path, merge.text)
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
        path = version_path(trail.place_of(os.path.dirname(resolved)), trail.own_name, resolved)
        path += f"{MERGED}{at_ns}"
        handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(handle, merge.sent.encode("utf-8", "surrogateescape"))
            os.utime(path, ns=(at_ns, at_ns))
            os.chmod(path, 0o400)
        finally:
            os.close(handle)
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
    runs = runs_between(merge.sent, merge.text)
    said = [f"{first} to {last}" if first != last else str(first) for first, last in runs[:RUNS]]
    more = " and more" if len(runs) > RUNS else ""
    many = len(runs) > 1 or any(first != last for first, last in runs)
    return f"line{'s' if many else ''} {', '.join(said)}{more}"
