"""Sessions of the bash harness: a folder with ``session.conf`` and ``messages/NNNN-role.md``.

A message is frontmatter between two lines of ``---``, and its text. An assistant's text has blocks `` ```tool_call
id=ID name=NAME `` with JSON in them, and `` ```thinking signature=... ``. Source: docs/PROTOCOLS.md of wedow/harness.
Unreadable parts are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost
from swarm_mcp.agents.harness.query import parse_json, parse_object

LARGEST = 8 * 1024 * 1024  # bytes of a message that are read
CALL, THOUGHT, END = "```tool_call ", "```thinking", "```"


_COUNTS = ("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write")


class Message(NamedTuple):
    """One message: its frontmatter and its text."""

    facts: dict[str, str]
    text: str


class Reading:
    """The messages of a session, as they come; the first `skip` are old. Known so far: the assistant's `last_words`,
    its last `stop` reason, its `model` and `provider`, and its number of `turns`.
    """

    def __init__(self, path: str = "", skip: int = 0):
        self.path = path
        self.last_words = self.stop = self.model = self.provider = ""
        self.turns = 0
        self._skip = skip
        self._done: set[str] = set()
        self._counts: dict[str, int] = {}

    def news(self) -> list[Event]:
        """Return the events of messages that are new. One that is still being written is left for the next time."""
        told: list[Event] = []
        for name in files(self.path)[self._skip :]:
            if name in self._done:
                continue
            message = read(os.path.join(self.path, "messages", name))
            if message is None:
                break
            self._done.add(name)
            told += self._events(message)
        return told

    def cost(self, model: str | None) -> Cost:
        """Return the cost of all turns; None: not counted."""
        read, written, *cache = map(self._counts.get, _COUNTS)
        return Cost(None, read, written, cache[0], cache[1], self.turns or None, model)

    def error(self) -> str:
        """Return the last error in the session's stream file; empty for none."""
        try:
            with open(os.path.join(self.path, ".stream"), encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:  # no stream file
            return ""
        for line in reversed(lines):
            event = parse_object(line)
            if event.get("type") == "error":
                return str(event.get("message") or "")
        return ""

    def _events(self, message: Message) -> list[Event]:
        facts, role = message.facts, message.facts.get("role")
        if role == "assistant":
            return self._spoken(message)
        if role == "tool_result":
            failed = facts.get("error") == "true"
            return [events.tool_end(facts.get("call_id", ""), facts.get("tool", ""), message.text, failed)]
        return []  # the user's words are known

    def _spoken(self, message: Message) -> list[Event]:
        facts, told = message.facts, []
        self.turns += 1
        self.stop = facts.get("stop", "")
        self.model, self.provider = facts.get("model") or self.model, facts.get("provider") or self.provider
        counts = {name: int(text) for name, text in facts.items() if name.startswith("tokens_") and text.isdecimal()}
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        words = []
        for kind, content, head in blocks(message.text, self.stop in ("tool_calls", "")):
            if kind == "call":
                told.append(events.tool_start(head.get("id", ""), head.get("name", ""), content))
            elif content.strip():
                if kind == "thought":
                    thinking = {"thinking": True}
                else:
                    thinking = {}
                told.append(events.message("assistant", content.strip("\n"), **thinking))
                words += [] if thinking else [content.strip("\n")]
        self.last_words = "\n".join(words) or self.last_words
        if "tokens_in" in counts:
            used = counts["tokens_in"] + counts.get("tokens_cache_read", 0) + counts.get("tokens_out", 0)
            usage: dict[str, Any] = {"context_used_tokens": used, "context_total_tokens": None, "context_percent": None}
            spent = self.cost(self.model or None).to_dict()
            usage.update(output_tokens=counts.get("tokens_out"), spent=spent)
            told.append(Event(events.CONTEXT_USAGE, usage))
        return told


def blocks(text: str, has_calls: bool) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield ``(kind, content, head)`` of each part of a text: ``text``, ``thought`` or ``call``. A call's content is
    its parsed input (the text itself if it is no JSON), and its head has ``id`` and ``name``.
    """
    kind = "text"
    head: dict[str, str] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if has_calls and line.startswith(CALL):
            opened = "call"
        elif line.startswith(THOUGHT):
            opened = "thought"
        else:
            opened = ""
        if kind == "text" and opened:
            yield kind, "\n".join(lines), {}
            pairs = (word.partition("=") for word in line.split()[1:])
            kind, head, lines = opened, {name: value for name, _, value in pairs}, []
        elif kind != "text" and line == END:
            content = "\n".join(lines)
            yield kind, parse_json(content, content) if kind == "call" else content, head
            kind, head, lines = "text", {}, []
        else:
            lines.append(line)
    content = "\n".join(lines)
    yield kind, parse_json(content, content) if kind == "call" else content, head


def read(path: str) -> Message | None:
    """Return the message in a file; None for an incomplete one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST)
    except OSError:  # removed meanwhile
        return None
    begin, mark, rest = text.partition("---\n")
    head, closed, body = rest.partition("\n---\n")
    if begin.strip() or not mark or not closed:
        return None
    facts = dict(line.partition(": ")[::2] for line in head.splitlines())
    return Message({name: value.strip() for name, value in facts.items()}, body.removesuffix("\n"))


def files(path: str) -> list[str]:
    """Return the names of a session's messages, in order."""
    try:
        return sorted(name for name in os.listdir(os.path.join(path, "messages")) if name.endswith(".md"))
    except OSError:  # no messages yet
        return []


def settings(path: str) -> dict[str, str]:
    """Return the values in a session's ``session.conf``; empty without one."""
    try:
        with open(os.path.join(path, "session.conf"), encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").partition("=")[::2] for line in file)
    except OSError:  # no settings
        return {}


def folder_of(session_id: str, cwd: str, env: Mapping[str, str]) -> str:
    """Return where a session of that name is, for a harness started in `cwd`."""
    values = {**os.environ, **env}
    nested = values.get("HARNESS_PARENT_SESSION") and "HARNESS_SESSIONS" not in env
    if values.get("HARNESS_SESSIONS") and not nested:
        sessions = values["HARNESS_SESSIONS"]
    else:
        home = os.path.expanduser(values.get("HARNESS_HOME") or "~/.harness")
        sessions = nearest_sessions(os.path.abspath(cwd) if cwd else "", home)
    return os.path.join(sessions, session_id)


def nearest_sessions(folder: str, home: str) -> str:
    """Return the folder that keeps the sessions of a run in `folder`."""
    while folder != os.path.dirname(folder):
        candidate = os.path.join(folder, ".harness", "sessions")
        if os.path.isdir(candidate):
            return candidate
        folder = os.path.dirname(folder)
    return os.path.join(home, "sessions")
