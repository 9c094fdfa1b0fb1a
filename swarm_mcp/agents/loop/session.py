"""A session: a folder with ``session.conf`` and ``messages/NNNN-role.md``, as the bash harness writes them.

Secrets stay out: those of the environment and of servers, known shapes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from swarm_hook_core.state import make_private, write_private
from swarm_mcp.agents.harness.scrub import Scrubber
from swarm_mcp.agents.loop.settings import LoopFailure

# Messages of a session: their text in files, and the conversation that they are.
#
# A message is markdown with a head of ``name: value`` lines. A user's message and a tool's result are their text. An
# assistant's message is text, with a fenced block for each tool call (``tool_call id=ID name=NAME``, JSON inside) and
# each thought (``thinking signature=SIGNATURE``).

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


_known: list[Mapping[str, str]] = []
_made: list[Scrubber] = []


def learn(*environments: Mapping[str, str]) -> None:
    """Add variables or headers with values that may be secrets."""
    _known.extend(environments)
    _made.clear()


def scrub(text: str) -> str:
    """Return `text` without secrets."""
    return _scrubber().text(text)


def scrub_data(value: Any) -> Any:
    """Return the same JSON value without secrets."""
    return _scrubber().data(value)


def _scrubber() -> Scrubber:
    if not _made:
        _made.append(Scrubber(os.environ, *_known))
    return _made[0]


def history(folder: str) -> list[Message]:
    """Return every message of a session, in order; a file that cannot be read is left out."""
    found = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and not name.startswith("."))
    except OSError:  # no messages yet
        return []
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace", newline="\n") as file:
                found.append(parse(file.read()))
        except OSError:  # removed meanwhile
            continue
    return found


PATTERN = re.compile(r"\d{8}-\d{6}-\d+\Z")
TRIES = 50


class Session:
    """One session. `path` is its folder, `id` that folder's name, `conf` the content of ``session.conf``."""

    def __init__(self, path: str, conf: dict[str, str]):
        self.path, self.conf = path, conf
        self.id = os.path.basename(path)
        self.folder = os.path.join(path, "messages")
        self.early_results = os.path.join(path, ".tool_dispatch")
        self._writing = threading.Lock()

    @property
    def cwd(self) -> str:
        """The folder that the session works in."""
        return self.conf.get("cwd", "") or os.getcwd()

    def turns(self) -> list[Turn]:
        """Return the conversation so far."""
        return turns(history(self.folder))

    def add(self, role: str, text: str, **head: object) -> str:
        """Write the next message; its number, four digits."""
        with self._writing:
            number = f"{self._last() + 1:04d}"
            facts = {"role": role, "seq": number, "timestamp": now(), **head}
            whole = scrub(render(facts, text)).encode("utf-8", "replace").decode("utf-8")
            write_private(os.path.join(self.folder, f"{number}-{role}.md"), whole)
        return number

    def stream(self, kind: str, **facts: object) -> None:
        """Add an event to ``.stream`` for viewers. An error is ignored."""
        line = json.dumps(scrub_data({"type": kind, **facts}), ensure_ascii=False) + "\n"
        try:
            with open(os.path.join(self.path, ".stream"), "a", encoding="utf-8", errors="replace") as file:
                file.write(line)
        except OSError:  # viewers can do without
            return

    def new_turn(self) -> None:
        """Clear the streamed text and the results of calls, before the model is asked again."""
        shutil.rmtree(self.early_results, ignore_errors=True)
        try:
            open(os.path.join(self.path, ".stream"), "w").close()
        except OSError:  # viewers can do without
            return

    def put_result(self, call_id: str, text: str, error: bool) -> None:
        """Leave a call's result where the stage tool_exec looks for it."""
        whole = json.dumps({"result": scrub(text), "error": error})
        write_private(os.path.join(self.early_results, f"{call_id}.json"), whole)

    def take_result(self, call_id: str) -> tuple[str, bool] | None:
        """Return the stored result of a call as ``(text, is_error)``, or `None`."""
        try:
            with open(os.path.join(self.early_results, f"{call_id}.json"), encoding="utf-8", errors="replace") as file:
                found = json.load(file)
        except (OSError, ValueError, RecursionError):  # no result, or one that is half written
            return None
        if not isinstance(found, dict):
            return None
        return str(found.get("result") or ""), found.get("error") in (True, "true")

    def remember(self, **facts: str) -> None:
        """Change values in ``session.conf``."""
        if all(self.conf.get(name) == value for name, value in facts.items()):
            return
        self.conf.update(facts)
        write_private(
            os.path.join(self.path, "session.conf"),
            "".join(f"{name}={' '.join(str(value).splitlines())}\n" for name, value in self.conf.items()),
        )

    def _last(self) -> int:
        numbers = [name.partition("-")[0] for name in os.listdir(self.folder) if not name.startswith(".")]
        return max((int(text) for text in numbers if text.isascii() and text.isdigit()), default=0)


def create(sessions: str, cwd: str, model: str, provider: str, parent: str = "") -> Session:
    """Make a new session in the folder `sessions`. Raises LoopFailure."""
    try:
        make_private(sessions)
        path = _new_folder(sessions)
        os.mkdir(os.path.join(path, "messages"), 0o700)
        session = Session(path, {})
        session.remember(id=session.id, model=model, provider=provider, created=now(), cwd=cwd, parent=parent)
    except OSError as error:
        raise LoopFailure(f"no session can be kept in {sessions}: {error.strerror or error}") from None
    return session


def find(sessions: str, session_id: str) -> Session:
    """Return the session of that id. Raises LoopFailure for an unknown id."""
    path = os.path.join(sessions, session_id)
    if not PATTERN.match(session_id) or not os.path.isdir(path):
        raise LoopFailure(f"session '{session_id[:60]}' not found in {sessions}", "session_not_found")
    conf = {}
    try:
        with open(os.path.join(path, "session.conf"), encoding="utf-8", errors="replace") as file:
            for line in file.read().splitlines():
                name, equals, value = line.partition("=")
                if equals:
                    conf[name] = value
        os.makedirs(os.path.join(path, "messages"), 0o700, exist_ok=True)
    except OSError as error:
        raise LoopFailure(f"session '{session_id}' cannot be read: {error.strerror or error}") from None
    return Session(path, conf)


def fork(sessions: str, found: Session) -> Session:
    """Make a copy of a session, with an id of its own. Raises LoopFailure."""
    copy = create(sessions, found.cwd, found.conf.get("model", ""), found.conf.get("provider", ""), found.id)
    try:
        for name in sorted(os.listdir(found.folder)):
            with open(os.path.join(found.folder, name), encoding="utf-8", errors="replace", newline="\n") as file:
                write_private(os.path.join(copy.folder, name), file.read())
    except OSError as error:
        raise LoopFailure(f"session '{found.id}' cannot be copied: {error.strerror or error}") from None
    return copy


def ids(sessions: str) -> list[str]:
    """Return the ids of all sessions in a folder, the one that was changed last first."""
    try:
        with os.scandir(sessions) as entries:
            found = [(entry.stat().st_mtime_ns, entry.name) for entry in entries if PATTERN.match(entry.name)]
    except OSError:  # no sessions yet
        return []
    return [name for _, name in sorted(found, reverse=True)]


def now() -> str:
    """Return this moment as message heads have it: local time to the second, with its zone."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return f"{text[:-2]}:{text[-2:]}"


def _new_folder(sessions: str) -> str:
    for _ in range(TRIES):
        # Three random digits: two machines may share a home, and pids are used again.
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}{int.from_bytes(os.urandom(2), 'big') % 1000:03d}"
        path = os.path.join(sessions, name)
        try:
            os.mkdir(path, 0o700)
            return path
        except FileExistsError:  # another process took the number
            continue
    raise OSError(f"no free name in {sessions}")
