"""A program between a run and an agent that is driven by JSON-RPC on its standard streams, for one turn.

Start it as ``python -I -S bridge.py HARNESS FILE``, by `argv_of`, with the prompt on standard input. It prints the
events of the turn, one line of JSON each. `Bridge` has the part common to the protocols; the ``bridge`` module of each
harness has the rest. FILE holds the settings: `argv` of the agent, `permissions` (the address of
``permissions.PermissionServer``; without it each question is refused), and more for that module. Only the standard
library is loaded: it starts at once.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
import urllib.request
from typing import Any

TOKEN = "SWARM_RUN_PERMISSIONS_SECRET"  # the Authorization header for `permissions`
REFUSED = "permission.refused"  # type of the line for a question without an answer
NO_METHOD = -32601  # JSON-RPC's code for an unknown method

Message = dict[str, Any]


class Bridge:
    """One turn of one session. `settings`: the content of FILE. `header`: the Authorization header for questions."""

    initialize: Message = {}  # the parameters of the first request
    version: Message = {}  # members of each message
    agent: subprocess.Popen[str]  # started when secrets have left this program's environment

    def __init__(self, settings: Message, prompt: str, header: str):
        self.settings, self.prompt, self._header = settings, prompt, header
        self.exit_code: int | None = None  # set at the end of the turn
        self._writing = threading.Lock()

    def converse(self) -> int:
        """Carry the turn out; return the exit code of this program."""
        self.agent = subprocess.Popen(
            self.settings["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
        self.ask("initialize", self.initialize)
        assert self.agent.stdout and self.agent.stdin
        for line in self.agent.stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):  # some agents print lines of their own
                continue
            if isinstance(message, dict):
                self.take(message)
            if self.exit_code is not None:
                break
        try:
            self.agent.stdin.close()
        except OSError:  # it has ended
            pass
        code = self.end()
        if self.exit_code is None:
            return code or 1
        return self.exit_code

    def take(self, message: Message) -> None:
        """Act on a message of the agent."""
        raise NotImplementedError

    def end(self) -> int:
        """Wait for the end of the agent after that of its input; return its exit code."""
        return self.agent.wait()

    def ask(self, method: str, params: Message) -> None:
        """Send a request; its id is its method."""
        self.send({"id": method, "method": method, "params": params})

    def send(self, message: Message) -> None:
        """Send a message to the agent."""
        assert self.agent.stdin
        try:
            with self._writing:
                self.agent.stdin.write(json.dumps({**self.version, **message}) + "\n")
                self.agent.stdin.flush()
        except (OSError, ValueError):  # it has ended, and the end of its output tells so
            pass

    def refuse_method(self, request: Any, why: str) -> None:
        """Answer a request for an unknown method."""
        self.send({"id": request, "error": {"code": NO_METHOD, "message": why}})

    def is_allowed(self, question: Message) -> bool:
        """Ask the program that started the run about a tool call; False without one.

        `question`: `tool_use_id`, `tool_name`, `input`, `reason`.
        """
        if not self.settings.get("permissions"):
            print_line({"type": REFUSED, **question})
            return False
        params = {"name": "ask", "arguments": question}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": self._header}
        asked = urllib.request.Request(self.settings["permissions"], json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
                told = json.load(answer)["result"]["content"][0]["text"]
            return bool(json.loads(told).get("behavior") == "allow")
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            print_line({"type": REFUSED, **question})
            print(f"the permission could not be asked for: {error}", file=sys.stderr)
            return False


def print_line(line: Message) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


def argv_of(harness: str, path: str) -> tuple[str, ...]:
    """Return the command line of this program. `path`: FILE."""
    return (sys.executable, "-I", "-S", __file__, harness, path)


def main(harness: str, path: str) -> int:
    """Run the program; return its exit code."""
    module = importlib.import_module(f"swarm_mcp.agents.harness.{harness}.bridge")
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    header = os.environ.pop(TOKEN, "")
    bridge: Bridge = module.TurnBridge(settings, sys.stdin.read(), header)
    return bridge.converse()


if __name__ == "__main__":
    package_folder = __file__
    for _up in "swarm_mcp/agents/harness/bridge.py".split("/"):
        package_folder = os.path.dirname(package_folder)
    sys.path.append(package_folder)  # `-I -S` leaves it out
    sys.exit(main(*sys.argv[1:]))
