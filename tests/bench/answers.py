"""The size and cost of answers beside 100,000 rows of everything: part of ``--part listings``.

Every registered tool is asked in this process for a long answer, and every resource is read; every listing command runs
as a process of its own. Goals: no answer of the server above 100 KB in the client's view (structured content and text
together), and none of a command without a request for more.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from swarm_mcp.answers.size import ANSWER_BYTES
from swarm_mcp.server import resources
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.service import result_of
from swarm_mcp.server.tool import Answer, Call, WaitingCall, bounded
from swarm_mcp.server.tools import all_tools
from swarm_mcp.store import Store

from . import stores
from .plugin import WrongAnswer

ROWS = 100_000
ME = "holder-0"
SAMPLES = {"string": "x", "number": 1, "integer": 1, "array": [], "object": {}, "boolean": True}
# The arguments of each tool beside its defaults; tools that only change things, or ask other programs, are left out.
ARGUMENTS: dict[str, dict] = {
    "bootstrap": {"include_terminal": True},
    "poll_messages": {"limit": 200},
    "explain_lock": {"file": "pkg0"},
    "lock_history": {"file": "src/hot.py", "limit": 200},
    "request_lock": {"file": "pkg0"},
    "get_file_lock": {"file": "pkg0/module_1.py"},
    "lock_file": {"file": "pkg0/module_1.py"},
    "wait_for_activity": {"timeout_seconds": 1},
    "claim_next_task": {"ignore_unread_messages": True},
    "resolve_workspace_handle": {"handle": "w1:p1", "validate": False},
}
LEFT_OUT = ("deregister", "remove_instance", "dispatch", "broadcast")
COMMANDS = (
    "inspect --json", "inspect", "tasks --json", "tasks --json --status open", "messages --json", "kv list --json",
    "instances --json", "runs --json", "ui list --json", "log src/hot.py --json --limit 1000",
    "bootstrap --as holder-0 --limit 1000",
)  # fmt: skip
COMMAND_CPU = 1.0  # seconds of processor time, and MB, of a command that lists
COMMAND_MEMORY = 80.0
Run = Callable[[str, str, Callable[[bytes], bool]], tuple[float, float, float]]


class Answers:
    """The measurements, on one store; missed goals are in `missed`."""

    def __init__(self, root: Path, checkout: str, run: Run):
        self.path, self.checkout, self.run = str(root / "answers.db"), checkout, run
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        stores.fill_lists(self.path, self.checkout, ROWS)
        try:
            self._server()
            self._commands()
        finally:
            os.remove(self.path)

    # ------------------------------------------------------------- the server

    def _server(self) -> None:
        print(f"answers, {ROWS:,} rows of everything        KB  cpu ms")
        session = CallingSession()
        session.client = (0, "")
        session.instance = lambda store, _meta: store.instances.live(ME)  # type: ignore[method-assign]
        with Store(self.path) as store:
            call = Call(store, session, {})
            for name, tool in all_tools().items():
                if name not in LEFT_OUT:
                    needed = {one: SAMPLES[tool.properties[one].get("type", "string")] for one in tool.required}
                    given = {**needed, **ARGUMENTS.get(name, {})}
                    self._answer(name, lambda tool=tool, given=given: _called(tool, call, given))
            for uri in (*(item["uri"] for item in resources.LISTED), f"swarm://lock?file={self.checkout}/pkg0"):
                place = uri.partition("?")[0]
                self._answer(
                    place, lambda uri=uri: sum(len(text.encode()) for text in resources.read(call, uri).texts())
                )
        print(flush=True)

    def _answer(self, name: str, ask: Callable[[], int]) -> None:
        began = time.process_time()
        size = ask()
        cpu = 1000 * (time.process_time() - began)
        print(f"{name:36} {size / 1000:8.1f} {cpu:7.1f}", flush=True)
        if size > ANSWER_BYTES:
            self.missed.append(f"{name}: an answer of {size / 1000:.1f} KB, limit {ANSWER_BYTES / 1000:g}")

    # --------------------------------------------------------------- commands

    def _commands(self) -> None:
        print(f"commands, {ROWS:,} rows of everything       KB   cpu s     MB")
        for words in COMMANDS:
            sizes: list[int] = []

            def is_right(output: bytes, sizes: list[int] = sizes) -> bool:
                sizes.append(len(output))
                return bool(output)

            cpu, memory, _ = self.run(self.path, words, is_right)
            print(f"{words:36} {sizes[0] / 1000:8.1f} {cpu:7.2f} {memory:6.1f}", flush=True)
            asked_for = "--limit" in words  # as many as it said
            for what, value, most in (
                ("KB", 0 if asked_for else sizes[0] / 1000, ANSWER_BYTES / 1000),
                ("s of processor time", cpu, COMMAND_CPU),
                ("MB", memory, COMMAND_MEMORY),
            ):
                if value > most:
                    self.missed.append(f"swarm-mcp {words}: {value:.2f} {what}, limit {most:g}")
        print(flush=True)


def _called(tool, call: Call, given: dict) -> int:
    """The bytes of the answer as the client gets it."""
    arguments = {**{key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}, **given}
    if asyncio.iscoroutinefunction(tool.call):
        answer = asyncio.run(tool.call(_Waiting(call), arguments))
    else:
        try:
            answer = tool.call(call, arguments)
        except Exception as error:
            answer = Answer({"error": str(error)})
    sent = json.dumps(result_of(bounded(answer)), ensure_ascii=False, separators=(",", ":")).encode()
    if json.loads(sent).get("isError"):
        raise WrongAnswer(f"{tool.name}: {sent[:300]!r}")
    return len(sent)


class _Waiting(WaitingCall):
    def __init__(self, call: Call):
        self._call = call

    async def run(self, function):
        return function(self._call)

    async def changed(self, seconds):
        return False
