"""The least of an MCP client: lines over pipes, with the time each answer took."""

import json
import subprocess
import time
from pathlib import Path

from .plugin import WrongAnswer


class Client:
    """A server that was started for this client. `first_answer` is in seconds from start to answered `initialize`."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str):
        self.number = 0
        self.name = Path(argv[-1]).name
        began = time.perf_counter()
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
        self.ask("initialize", about)
        self.first_answer = time.perf_counter() - began
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: dict) -> tuple[float, dict]:
        """Seconds that a call took, and its result. Raises WrongAnswer for an error of any kind."""
        result, seconds = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError") or "error" in (result.get("structuredContent") or {}):
            raise WrongAnswer(f"{tool} {arguments}: {result}")
        return seconds, result

    def ask(self, method: str, params: dict) -> tuple[dict, float]:
        """The result of a request, and the seconds it took."""
        self.number += 1
        began = time.perf_counter()
        self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()  # type: ignore[union-attr]
            if not line:
                raise WrongAnswer(f"{self.name} ended in the middle of {method}")
            if f'"id":{self.number}' not in line.decode().replace('"id": ', '"id":'):
                continue  # a notification
            seconds = time.perf_counter() - began
            answer = json.loads(line)
            if "error" in answer:
                raise WrongAnswer(f"{method}: {answer['error']}")
            return answer["result"], seconds

    def memory(self) -> tuple[int, int]:
        """Resident and proportional bytes; zeros where the system does not tell (Linux does)."""
        try:
            lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # the process has ended
            return 0, 0
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
        return sizes["Rss"], sizes["Pss"]

    def close(self) -> None:
        """Close its input, and so end it."""
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait(10)
        self.process.stdout.close()  # type: ignore[union-attr]

    def _send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_exception) -> None:
        self.close()
