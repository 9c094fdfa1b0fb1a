"""A run as text for people: each event once, tool calls in words, or a transcript.

Harnesses repeat some events, and word some for programs. A refusal of ours is one `DENIED`, from the result of a call,
from standard error or both; a call is told by its effect, with a number of its own; the result of a
successful edit is left out, since the edit was told; paths are relative to the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Denial, denial_in, reason_in
from swarm_mcp.agents.harness.query import parse_json, parse_object

# A tool call in words for people: a command without the shell around it, an edit as a patch, paths below the folder.
#
# Tools are recognised by their input, in any harness: a command, a patch, a path with an old and a new text, a path
# with a content.

PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path", "filename", "file")
OLD, NEW = ("old_string", "oldString", "oldText", "old_str"), ("new_string", "newString", "newText", "new_str")
CONTENTS = ("content", "contents", "file_text", "new_source")
PATCHES = ("input", "patch", "patchText", "patch_text", "command", "diff")
COMMANDS = ("command", "cmd", "script")
UNSAID = ("description", "replace_all", "replaceAll", "timeout", "workdir", "command_line")
_PATCH = re.compile(r"^(?:\*\*\* Begin Patch|diff --git |--- \S)", re.MULTILINE)
_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(.+)$", re.MULTILINE)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_SCRIPT = re.compile(r"-[a-z]*c")


class Call(NamedTuple):
    """The effect of a call: `words` in a line, the further lines of a command (`more`), or an edit, with the known
    lines of its `patch`, each with ``+``, ``-`` or a blank before it.
    """

    words: str
    more: tuple[str, ...] = ()
    patch: tuple[str, ...] = ()
    is_edit: bool = False


class Folder:
    """The folder of a run. Its name is left out of texts for people."""

    def __init__(self, path: str = ""):
        if path:
            names = sorted({name.rstrip("/") for name in (path, os.path.realpath(path))})
        else:
            names = []
        one = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._inside: re.Pattern[str] | None = None
        self._there: re.Pattern[str] | None = None
        if one:
            self._inside = re.compile(rf"(?<![\w./-])(?:{one})/")
            self._there = re.compile(rf"cd (['\"]?)(?:{one})/?\1 *(?:&&|;) *")

    def short(self, text: str) -> str:
        """Return a text with the names of files in the folder as they are there."""
        if self._inside:
            return self._inside.sub("", text)
        return text

    def command(self, text: str) -> str:
        """Return a command without going to the folder, where it is carried out anyway."""
        found = self._there and self._there.match(text)
        if found:
            text = text[found.end() :]
        return self.short(text)


def call_in_words(name: str, given: object, folder: Folder) -> Call:
    """Return the effect of a call of the tool `name`. Never raises, for any input `given`."""
    if not isinstance(given, Mapping):
        if given is None:
            text = ""
        elif isinstance(given, str):
            text = given
        else:
            text = _json(given)
        if _PATCH.search(text):
            return _patch(name, text, folder)
        return Call(f"{name} {folder.short(text)}".rstrip())
    path = next((given[key] for key in PATHS if isinstance(given.get(key), str) and given[key]), "")
    patch = next((given[key] for key in PATCHES if isinstance(given.get(key), str) and _PATCH.search(given[key])), "")
    if patch:
        return _patch(name, patch, folder)
    if isinstance(given.get("changes"), list):
        return Call(f"{name} {', '.join(_changes(given['changes'], folder))}".rstrip(), is_edit=True)
    if path:
        changed = tuple(_changed(given))
    else:
        changed = ()
    if changed:
        return Call(f"{name} {folder.short(path)}", patch=changed, is_edit=True)
    command = next((given[key] for key in COMMANDS if not path and given.get(key)), None)
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        first, *more = folder.command(bare(command)).split("\n")
        return Call(f"$ {first}", tuple(more))
    rest = [f"{key}={_word(one)}" for key, one in given.items() if key not in UNSAID and one is not path]
    return Call(" ".join([name, *([folder.short(path)] if path else []), *map(folder.short, rest)]))


def edited(given: object) -> list[str]:
    """Return the files that a call edits, as it names them; none for other calls. Never raises."""
    if not isinstance(given, Mapping):
        if isinstance(given, str) and _PATCH.search(given):
            return _FILE.findall(given)
        return []
    patch = next((given[key] for key in PATCHES if isinstance(given.get(key), str) and _PATCH.search(given[key])), "")
    path = next((given[key] for key in PATHS if isinstance(given.get(key), str) and given[key]), "")
    changes = given.get("changes")
    if isinstance(changes, list):
        listed = [one.get("path") for one in changes if isinstance(one, Mapping)]
    else:
        listed = []
    if path and any(True for _ in _changed(given)):
        own = [path]
    else:
        own = []
    return [name.strip() for name in (*_FILE.findall(patch), *listed, *own) if isinstance(name, str) and name.strip()]


def commanded(given: object) -> str:
    """Return the command line of a call, without the shell around it; empty for none. Never raises."""
    if isinstance(given, Mapping):
        command = next((given[key] for key in COMMANDS if given.get(key)), "")
    else:
        command = ""
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        return bare(command)
    return ""


def bare(command: str | list[str]) -> str:
    """Return a command line without the shell that it was handed to: ``bash -lc 'make check'`` is ``make check``."""
    try:
        if isinstance(command, str):
            words = shlex.split(command)
        else:
            words = command
    except ValueError:  # no shell words
        return str(command)
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and _SCRIPT.fullmatch(words[1]):
        return words[2]
    if isinstance(command, str):
        return command
    return shlex.join(command)


def _patch(name: str, text: str, folder: Folder) -> Call:
    begin = _PATCH.search(text)
    text = folder.short(text[begin.start() if begin else 0 :])
    files = dict.fromkeys(file.strip() for file in _FILE.findall(text))
    lines = [line for line in text.rstrip().split("\n") if line.strip() not in ("*** Begin Patch", "*** End Patch")]
    return Call(f"{name} {', '.join(files)}".rstrip(), patch=tuple(lines), is_edit=True)


def _changes(found: list[Any], folder: Folder) -> Iterator[str]:
    for one in found:
        if isinstance(one, Mapping) and isinstance(one.get("path"), str):
            yield f"{one.get('kind') or 'change'} {folder.short(one['path'])}"


def _changed(given: Mapping[str, Any]) -> Iterator[str]:
    """The lines of an edit, or of a new file."""
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        if isinstance(edit, Mapping):
            yield from _signed("-", next((edit[key] for key in OLD if isinstance(edit.get(key), str)), ""))
            yield from _signed("+", next((edit[key] for key in NEW if isinstance(edit.get(key), str)), ""))
    yield from _signed("+", next((given[key] for key in CONTENTS if isinstance(given.get(key), str)), ""))


def _signed(sign: str, text: str) -> Iterator[str]:
    if text:
        return (sign + line for line in text.removesuffix("\n").split("\n"))
    return iter(())


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return _json(value)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):  # no JSON value
        return str(value)


# Events as entries of a transcript, for people.
#
# An entry has ``kind`` and ``ts`` (Unix seconds), and:
#
# | kind | more fields |
# |---|---|
# | ``init`` | ``session_id``, ``model`` |
# | ``assistant``, ``thinking``, ``user`` | ``text`` |
# | ``tool_call`` | ``id``, ``name``, ``input`` |
# | ``tool_result`` | ``id``, ``name``, ``content``, ``is_error`` |
# | ``result`` | ``text``, ``input_tokens``, ``output_tokens``, ``cached_tokens``, ``cost_usd`` (None: unknown),
# ``subtype``, ``is_error``, ``errors`` |
# | ``stderr``, ``stdout`` | ``text``: an unparsed line |
# | ``system`` | ``text``, ``name``: anything else |

KINDS = (
    "init", "assistant", "thinking", "user", "tool_call", "tool_result", "result", "stderr", "system", "stdout",
)  # fmt: skip


def to_transcript(event: Event) -> list[dict[str, Any]]:
    """Return the entries of one event: mostly one. Never raises, for any data.

    A line of the harness makes an entry only if its events do not tell its content: a line of standard output that is
    not JSON, and an unmarked line of standard error.
    """
    data: dict[str, Any] = event.data if isinstance(event.data, dict) else {}
    maker = _MAKERS.get(event.kind)
    kind, fields = maker(data) if maker else ("system", {"name": event.kind, "text": _text(data)})
    if kind:
        return [{"kind": kind, "ts": event.at, **fields}]
    return []


def transcript(source: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Yield the entries of many events, in order."""
    for event in source:
        yield from to_transcript(event)


# --------------------------------------------------------------------------------------------- one kind


def _init(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "init", {"session_id": _text(data.get("session_id")), "model": _text(data.get("model"))}


def _message(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if data.get("thinking"):
        kind = "thinking"
    elif data.get("role") == "user":
        kind = "user"
    else:
        kind = "assistant"
    return kind, {"text": _text(data.get("content"))}


def _tool_call(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tool_call", {
        "id": _text(data.get("tool_call_id")), "name": _text(data.get("tool_name")), "input": data.get("args"),
    }  # fmt: skip


def _tool_result(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tool_result", {
        "id": _text(data.get("tool_call_id")),
        "name": _text(data.get("tool_name")),
        "content": _text(data.get("result")),
        "is_error": bool(data.get("is_error")),
    }


def _result(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    cost: Any = data.get("cost")
    if hasattr(cost, "_asdict"):
        cost = cost._asdict()
    elif not isinstance(cost, dict):
        cost = {}
    category, is_error = data.get("error_category"), bool(data.get("is_error"))
    return "result", {
        "text": _text(data.get("output")),
        "input_tokens": cost.get("input_tokens"),
        "output_tokens": cost.get("output_tokens"),
        "cached_tokens": cost.get("cache_read_tokens"),
        "cost_usd": cost.get("total_cost_usd"),
        "subtype": _text(category) or ("error" if is_error else "success"),
        "is_error": is_error,
        "errors": [_text(data.get("error_message") or category)] if is_error else [],
    }


def _error(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    category = _text(data.get("category")) or "error"
    return "system", {"name": "error", "text": f"{category}: {_text(data.get('message'))}"}


def _raw(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    text = _text(data.get("content"))
    if not text.strip():
        return "", {}
    if isinstance(parse_json(text), dict):
        return ("", {})
    return ("stdout", {"text": text})


def _stderr(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if data.get("told"):
        return "", {}
    return "stderr", {"text": _text(data.get("content"))}


def _custom(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if _text(data.get("name")).endswith(".reasoning") and isinstance(data.get("data"), dict):
        return "thinking", {"text": _text(data["data"].get("text"))}
    return "system", {"name": _text(data.get("name")) or "custom", "text": _text(data.get("data"))}


def _context(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    used, total = data.get("context_used_tokens"), data.get("context_total_tokens")
    if used is None:
        shown = ""
    elif total is None:
        shown = f"{used} tokens"
    else:
        shown = f"{used} of {total} tokens"
    if shown:
        return ("system", {"name": events.CONTEXT_USAGE, "text": shown})
    return ("", {})


def _permission(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    answer = "yes" if data.get("is_allowed") else _text(data.get("answer")) or "no"
    asked = f"{_text(data.get('tool_name'))} {_text(data.get('args'))}"
    return "system", {"name": events.PERMISSION_ASKED, "text": f"{asked}: {answer}"}


def _compaction(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    before = data.get("pre_compact_tokens")
    if before is None:
        size = ""
    else:
        size = f" at {before} tokens"
    return "system", {"name": events.COMPACTION, "text": f"{_text(data.get('compact_trigger')) or 'auto'}{size}"}


_MAKERS = {
    events.SESSION_INIT: _init,
    events.MESSAGE: _message,
    events.TOOL_START: _tool_call,
    events.TOOL_END: _tool_result,
    events.RESULT: _result,
    events.ERROR: _error,
    events.RAW_LOG: _raw,
    events.RAW_STDERR: _stderr,
    events.CUSTOM: _custom,
    events.CONTEXT_USAGE: _context,
    events.COMPACTION: _compaction,
    events.PERMISSION_ASKED: _permission,
}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):  # no JSON value
        return str(value)[:1000]


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
