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
from collections.abc import Mapping
from typing import Any

from swarm_hook_core.state import make_private, write_private
from swarm_mcp.agents.harness.scrub import Scrubber
from swarm_mcp.agents.loop.messages import Message, Turn, parse, render, turns
from swarm_mcp.agents.loop.settings import LoopFailure

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
        write_private(os.path.join(self.path, "session.conf"), _lines(self.conf))

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


def _lines(conf: dict[str, str]) -> str:
    return "".join(f"{name}={' '.join(str(value).splitlines())}\n" for name, value in conf.items())
