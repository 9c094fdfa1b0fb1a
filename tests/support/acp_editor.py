"""An editor that drives an agent by the Agent Client Protocol: it allows all, writes files and runs commands."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

Message = dict[str, Any]


class AcpEditor:
    """An agent behind `process`, and one session of it in `folder`.

    writes  offer to read and write files, and to run commands for the agent
    """

    def __init__(self, process: subprocess.Popen[str], folder: Path, writes: bool = True):
        assert process.stdin and process.stdout
        self.process, self._folder, self._count = process, folder, 0
        self._to_agent, self._from_agent = process.stdin, process.stdout
        self._terminals: dict[str, subprocess.Popen[str]] = {}
        self.asked: list[Message] = []  # the requests of the agent
        self.heard: list[Message] = []  # all its messages
        files = {"readTextFile": writes, "writeTextFile": writes}
        self.ask("initialize", protocolVersion=1, clientCapabilities={"fs": files, "terminal": writes})
        self.session: str = self.ask("session/new", cwd=str(folder), mcpServers=[])["sessionId"]

    def prompt(self, text: str) -> Message:
        """Give the agent a prompt, and return the result of its turn."""
        return self.ask("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])

    def close(self) -> int:
        """Close the agent's input, as an editor that quits does, and return the exit code."""
        self._to_agent.close()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            self._from_agent.close()
            for terminal in self._terminals.values():
                terminal.wait()
                terminal.stdout.close()  # type: ignore[union-attr]  # it is a pipe

    def ask(self, method: str, **params: object) -> Message:
        """Return the result of a request; requests of the agent meanwhile are answered."""
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        for line in self._from_agent:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # some agents print a line or two of their own
            self.heard.append(message)
            if "method" in message and "id" in message:
                self.asked.append(message)
                self._answer(message)
            elif message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"] or {})
        raise AssertionError(f"the agent ended at {method}: {self.heard[-3:]}")

    def _send(self, message: Message) -> None:
        self._to_agent.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._to_agent.flush()

    def _answer(self, request: Message) -> None:
        known = getattr(self, "_on_" + request["method"].replace("/", "_"), None)
        if known is None:
            answer: Message = {"error": {"code": -32601, "message": "not supported"}}
        else:
            try:
                answer = {"result": known(**request["params"])}
            except OSError as error:
                answer = {"error": {"code": -32603, "message": str(error)}}
        self._send({"id": request["id"], **answer})

    def _on_fs_read_text_file(self, path: str, **_given: object) -> Message:
        file = Path(path)
        return {"content": file.read_text() if file.exists() else ""}  # as an editor shows a file that is not saved yet

    def _on_fs_write_text_file(self, path: str, content: str, **_given: object) -> Message:
        Path(path).write_text(content)
        return {}

    def _on_session_request_permission(self, options: list[Message], **_given: object) -> Message:
        (choice, *_) = [option["optionId"] for option in options if option["kind"] == "allow_once"]
        return {"outcome": {"outcome": "selected", "optionId": choice}}

    def _on_terminal_create(
        self,
        command: str,
        args: list[str] | None = None,
        cwd: str | None = None,
        env: list[dict[str, str]] | None = None,
        **_given: object,
    ) -> Message:
        variables = {one["name"]: one["value"] for one in env or ()}
        process = subprocess.Popen(
            [command, *(args or [])], cwd=cwd or self._folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, shell=not args, env={**os.environ, **variables},
        )  # fmt: skip
        name = f"term_{len(self._terminals) + 1}"
        self._terminals[name] = process
        return {"terminalId": name}

    def _on_terminal_wait_for_exit(self, **given: Any) -> Message:
        return {"exitCode": self._terminals[given["terminalId"]].wait(), "signal": None}

    def _on_terminal_output(self, **given: Any) -> Message:
        process = self._terminals[given["terminalId"]]
        out, _nothing = process.communicate()
        return {"output": out, "truncated": False, "exitStatus": {"exitCode": process.returncode, "signal": None}}

    def _on_terminal_release(self, **_given: object) -> Message:
        return {}

    def _on_terminal_kill(self, **given: Any) -> Message:
        self._terminals[given["terminalId"]].kill()
        return {}
