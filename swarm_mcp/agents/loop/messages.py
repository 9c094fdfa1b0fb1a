"""Messages of a session: their text in files, and the conversation that they are.

A message is markdown with a head of ``name: value`` lines. A user's message and a tool's result are their text. An
assistant's message is text, with a fenced block for each tool call (``tool_call id=ID name=NAME``, JSON inside) and
each thought (``thinking signature=SIGNATURE``).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

_FENCE = re.compile(r"^(`{3,})(tool_call id=(?P<id>\S+) name=(?P<name>\S+)|thinking signature=(?P<signature>.*))$")
_LIKE_A_FENCE = re.compile(r"^`{3,}(tool_call|thinking) ", re.MULTILINE)
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}\Z")
INTERRUPTED = "error: the call was interrupted before it had a result"
STOPS = ("end", "tool_calls", "length", "error")


class ModelCall(NamedTuple):
    """A tool call. `id` and `name` are fit for file names and message heads."""

    id: str
    name: str
    input: dict[str, Any]


class Block(NamedTuple):
    """A part of an assistant's message: `kind` text, thinking (with its `signature`) or tool_call (with `call`)."""

    kind: str
    text: str = ""
    signature: str = ""
    call: ModelCall | None = None


class Message(NamedTuple):
    """One file: the values of its head, and its text."""

    head: dict[str, str]
    text: str

    @property
    def role(self) -> str:
        """``user``, ``assistant`` or ``tool_result``."""
        return self.head.get("role", "")


class Turn(NamedTuple):
    """A message as models want it: a user's `text`, an assistant's `blocks`, or the `results` of its calls.

    `results` are ``(call, text, is_error)``, one for each call of the turn before, in order.
    """

    role: str
    text: str = ""
    blocks: tuple[Block, ...] = ()
    results: tuple[tuple[ModelCall, str, bool], ...] = ()


def model_call(call_id: object, name: object, arguments: object) -> ModelCall:
    """Return a model's call with an id and a name that are safe in file names and message heads."""
    text = str(call_id or "")
    if not _PLAIN_ID.match(text):
        text = f"call_{zlib.crc32(text.encode('utf-8', 'replace')):08x}{len(text)}"
    plain = re.sub(r"[^A-Za-z0-9_.:-]", "_", str(name or ""))[:128].lstrip(".") or "unnamed"
    if isinstance(arguments, str):
        try:
            if arguments.strip():
                arguments = json.loads(arguments)
            else:
                arguments = {}
        except (ValueError, RecursionError):
            arguments = {"unreadable_arguments": arguments}
    return ModelCall(text, plain, arguments if isinstance(arguments, dict) else {"unreadable_arguments": arguments})


def render(head: dict[str, object], text: str) -> str:
    """Return a message as its file has it."""
    lines = [f"{name}: {' '.join(str(value).split())}" for name, value in head.items()]
    return "---\n" + "\n".join(lines) + f"\n---\n{text}\n"


def parse(text: str) -> Message:
    """Return a message from its file; a file without a head is text without a role."""
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        return Message({}, text)
    end = lines.index("---", 1)
    head = {}
    for line in lines[1:end]:
        name, _, value = line.partition(":")
        head[name.strip()] = value.strip()
    body = "\n".join(lines[end + 1 :])
    return Message(head, body[:-1] if body.endswith("\n") else body)


def written(blocks: Iterable[Block]) -> str:
    """Return an assistant's blocks as text."""
    parts = []
    for block in blocks:
        if block.kind == "tool_call" and block.call:
            arguments = json.dumps(block.call.input, ensure_ascii=False)
            parts.append(f"```tool_call id={block.call.id} name={block.call.name}\n{arguments}\n```")
        elif block.kind == "thinking":
            ticks = max((len(found) for found in re.findall(r"^`{3,}", block.text, re.MULTILINE)), default=2)
            fence = "`" * max(3, ticks + 1)
            parts.append(f"{fence}thinking signature={block.signature}\n{block.text}\n{fence}")
        elif block.text.strip():
            # A text that looks like one of our blocks must not be taken for one later.
            parts.append(_LIKE_A_FENCE.sub(lambda found: " " + found.group(), block.text.rstrip("\n")))
    return "\n\n".join(parts)


def blocks_of(message: Message) -> tuple[Block, ...]:
    """Return the blocks of an assistant's message."""
    found: list[Block] = []
    text: list[str] = []
    inside: list[str] = []
    opened = None
    for line in message.text.split("\n"):
        if opened is None:
            opened = _FENCE.match(line)
            if opened is None:
                text.append(line)
            else:
                _add_text(found, text)
                inside = []
        elif line == opened.group(1):
            found.append(_block(opened, "\n".join(inside)))
            opened = None
        else:
            inside.append(line)
    _add_text(found, text)
    return tuple(found)


def turns(messages: Iterable[Message]) -> list[Turn]:
    """Return the conversation so far. A call that was interrupted gets a result that says so."""
    found: list[Turn] = []
    waiting: list[ModelCall] = []
    results: dict[str, tuple[ModelCall, str, bool]] = {}

    def settle() -> None:
        if waiting:
            missing = {one.id: (one, INTERRUPTED, True) for one in waiting if one.id not in results}
            found.append(Turn("tool_result", results=tuple({**missing, **results}[one.id] for one in waiting)))
        waiting.clear()
        results.clear()

    for message in messages:
        if message.role == "tool_result":
            mine = next((one for one in waiting if one.id == message.head.get("call_id")), None)
            if mine:
                results[mine.id] = (mine, message.text, message.head.get("error") == "true")
            continue
        settle()
        if message.role == "user":
            found.append(Turn("user", message.text))
        elif message.role == "assistant":
            blocks = blocks_of(message)
            if blocks:
                found.append(Turn("assistant", blocks=blocks))
                waiting = list({block.call.id: block.call for block in blocks if block.call}.values())
    settle()
    return found


def _add_text(found: list[Block], lines: list[str]) -> None:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        found.append(Block("text", text))
    lines.clear()


def _block(opened: re.Match[str], inside: str) -> Block:
    if opened.group("id"):
        return Block("tool_call", call=model_call(opened.group("id"), opened.group("name"), inside))
    return Block("thinking", inside, opened.group("signature"))
