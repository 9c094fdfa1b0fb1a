"""A server of mcp-agent-mail on loopback, and calls of its tools as a session's client makes them."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

START = 120  # seconds that the server may take


class Mail:
    """The server of one home; its project is the checkout."""

    def __init__(self, home: Path, checkout: Path, env: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        argv = ["python", "-m", "mcp_agent_mail.http", "--host", "127.0.0.1", "--port", str(self._port)]
        self._process = subprocess.Popen(argv, cwd=home, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.project = str(checkout)
        end = time.monotonic() + START
        while True:
            try:
                self.call("ensure_project", human_key=self.project)
                return
            except (urllib.error.URLError, ConnectionError):
                if self._process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return a tool's answer. Raises URLError, and AssertionError for an error."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/mcp/",
            json.dumps(body).encode(),
            {"content-type": "application/json", "accept": "application/json, text/event-stream"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            result = json.load(answer)["result"]
        assert not result["isError"], result
        return dict(result["structuredContent"])

    def call_extended(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a tool that the server lists only on demand."""
        return self.call("call_extended_tool", tool_name=tool, arguments=arguments)

    def register(self) -> str:
        """Return the name of a new agent."""
        return str(
            self.call("register_agent", project_key=self.project, program="claude-code", model="scripted")["name"]
        )
