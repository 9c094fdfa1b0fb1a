"""A run as text for people: each event, told once.

Harnesses repeat some events, and word some for programs. A refusal of ours is one `DENIED`, from the result of a call,
from standard error or both; a call is told by its effect (``tool_words``), with a number of its own; the result of a
successful edit is left out, since the edit was told; paths are relative to the folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.denials import Denial, denial_in, reason_in
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.agents.harness.tool_words import Folder, call_in_words
from swarm_mcp.agents.harness.transcript import to_transcript

BEGINS, SAYS, THINKS, IS_TOLD = "begins", "says", "thinks", "is told"
CALLS, GETS, FAILS, DENIED = "calls", "gets", "fails", "denied"
PRINTS, COMPLAINS, NOTES, WARNS, ERROR, ENDS = "prints", "complains", "notes", "warns", "error", "ends"
UNKNOWN = "unknown"  # an event that only its harness knows, for debugging
WITHIN = ("swarm.not_heeded", "swarm.tool_loop_warning", "swarm.record_full", "swarm.leftovers_ended")


class Told(NamedTuple):
    """One told event: its `kind`, its time (Unix seconds, 0: unknown) and the text; for a call its `number` and its
    `patch`, with lines that begin with ``+``, ``-`` or a blank.
    """

    kind: str
    at: float
    text: str
    number: int = 0
    patch: tuple[str, ...] = ()


class Narrator:
    """The narrator of one run in `folder`; `calls` and `denials` count the told ones."""

    def __init__(self, folder: str = ""):
        self._folder = Folder(folder)
        self._numbers: dict[str, int] = {}  # call id -> its number
        self._edits: set[str] = set()  # ids of calls with a result of no news
        self._refusals: dict[Denial, dict[str, int]] = {}  # the number of each refusal, by its source
        self._error = ""
        self._changes: object = None
        self._said = _digest("")  # of all words of standard output
        self._has_said = False
        self.calls = self.denials = 0

    def tell(self, event: Event) -> list[Told]:
        """Return the texts for an event, mostly one or none. Never raises, for any data."""
        if event.kind == events.ERROR:
            self._error = str(event.data.get("message") or "")
        elif event.kind == events.RESULT:
            self._changes = event.data.get("changes")
        return [told for entry in to_transcript(event) for told in self._of_entry(entry)]

    def _of_entry(self, entry: dict[str, Any]) -> list[Told]:
        kind, at = entry["kind"], entry["ts"]
        if kind == "init":
            if entry["model"]:
                model = f" with {entry['model']}"
            else:
                model = ""
            if entry["session_id"]:
                return [Told(BEGINS, at, f"session {entry['session_id']}{model}")]
            return []
        if kind == "tool_call":
            return [self._call(entry)]
        if kind == "tool_result":
            return self._result(entry)
        if kind == "result":
            return [*self._end(entry), *(Told(NOTES, at, line) for line in changes_in_words(self._changes))]
        if kind == "system":
            return self._note(entry)
        if kind == "stderr":
            if reason_in(entry["text"]):
                return self._denied(kind, entry["text"], at)
            if entry["text"].strip():
                return [Told(COMPLAINS, at, self._folder.short(entry["text"]))]
            return []
        if self._is_echo(entry):
            return []
        kinds = {"assistant": SAYS, "thinking": THINKS, "user": IS_TOLD, "stdout": PRINTS}
        if kind == "user":
            text = self._folder.short(entry["text"])
        else:
            text = entry["text"]
        return [Told(kinds[kind], at, text)]

    def _call(self, entry: dict[str, Any]) -> Told:
        self.calls += 1
        self._numbers[entry["id"]] = self.calls
        call = call_in_words(entry["name"], entry["input"], self._folder)
        if call.is_edit:
            self._edits.add(entry["id"])
        text = "\n".join((call.words.replace("\n", "\\n"), *call.more))
        return Told(CALLS, entry["ts"], text, self.calls, call.patch)

    def _result(self, entry: dict[str, Any]) -> list[Told]:
        number = self._numbers.pop(entry["id"], 0)
        is_edit, text = entry["id"] in self._edits, entry["content"]
        self._edits.discard(entry["id"])
        if entry["is_error"] and reason_in(text):
            return self._denied("result", text, entry["ts"])
        if entry["is_error"]:
            return [Told(FAILS, entry["ts"], self._folder.short(text) or "(it did not say why)", number)]
        if is_edit:
            return []
        return [Told(GETS, entry["ts"], self._folder.short(text) or "(nothing)", number)]

    def _denied(self, source: str, text: str, at: float) -> list[Told]:
        """A refusal, unless another `source` (result, event, stderr) has told it already."""
        denial = denial_in(text) or Denial()
        denial = denial._replace(file=self._folder.short(denial.file))
        times = self._refusals.setdefault(denial, {})
        times[source] = times.get(source, 0) + 1
        if any(count >= times[source] for name, count in times.items() if name != source):
            return []
        self.denials += 1
        return [Told(DENIED, at, denial.line())]

    def _note(self, entry: dict[str, Any]) -> list[Told]:
        name, text, at = entry["name"], entry["text"], entry["ts"]
        if name == "lock_denied":
            return self._denied("event", _message_of(text), at)
        if name == events.CONTEXT_USAGE:
            return []  # counted, not told
        if name == "error":
            return [Told(ERROR, at, text)]
        if name in (events.COMPACTION, events.PERMISSION_ASKED) or name in WITHIN or "retry" in name:
            if name in (events.COMPACTION, events.PERMISSION_ASKED):
                kind = NOTES
            else:
                kind = WARNS
            return [Told(kind, at, f"{name.rpartition('.')[2].replace('_', ' ')}: {_message_of(text)}")]
        return [Told(UNKNOWN, at, f"{name}: {text}")]

    def _end(self, entry: dict[str, Any]) -> list[Told]:
        if not entry["is_error"]:
            return [Told(ENDS, entry["ts"], "done")]
        ended = [Told(ENDS, entry["ts"], "ended")]
        if self._error and self._error in entry["errors"]:
            return ended  # why was told a moment ago
        return [Told(ERROR, entry["ts"], f"failed: {'; '.join(entry['errors']) or entry['subtype']}"), *ended]

    def _is_echo(self, entry: dict[str, Any]) -> bool:
        """Return True for a repetition of plain standard output (the answer of the harness `process`)."""
        if entry["kind"] == "stdout":
            _add_words(self._said, entry["text"])
            self._has_said = True
            return False
        if entry["kind"] != "assistant" or not self._has_said:
            return False
        return bool(_digest(entry["text"]).digest() == self._said.digest())


MOST_NAMED = 12


def named_of(names: Sequence[str], more: int = 0) -> str:
    """Return names in a line: the first of very many, and how many there are `more`."""
    if len(names) > MOST_NAMED:
        left = len(names) - MOST_NAMED + more
    else:
        left = more
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left else "")


def changes_in_words(found: object) -> list[str]:
    """Return lines for a run's changes, given as ``outcome.Changes`` in JSON; none for no changes."""
    if not isinstance(found, dict):
        return []
    files, commits = (
        [one for one in found.get(name) or () if isinstance(one, str)] for name in ("files", "commits")
    )  # fmt: skip
    more = found.get("more_files")
    if files:
        lines = [f"changed {named_of(files, more if isinstance(more, int) else 0)}"]
    else:
        lines = []
    lines += [f"commit {line}" for line in commits[:MOST_NAMED]]
    return [*lines, *([f"and {len(commits) - MOST_NAMED} commits more"] if len(commits) > MOST_NAMED else [])]


def _message_of(text: str) -> str:
    """Return the message in the data of a harness's own event; all data without one."""
    found = parse_object(text).get("message")
    if isinstance(found, str):
        return found
    return text


def _digest(text: str) -> Any:
    """Return a digest that tells the words of `text` from others, at any length."""
    found = hashlib.blake2b()
    _add_words(found, text)
    return found


def _add_words(digest: Any, text: str) -> None:
    digest.update("".join(f"{word}\n" for word in text.split()).encode("utf-8", "surrogatepass"))
