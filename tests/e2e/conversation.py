"""A session of many turns without a terminal, as editors and other programs have it with a client.

Claude Code reads prompts as JSON lines from its input; Codex's app-server is asked for turns. The session lives until
it is closed or killed, so that a turn's end and a session's end are different things, as they are at a terminal.
"""

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from swarm_mcp.play.models import Step, play

from .client import TURN, Client
from .ground import kill_group

Message = dict[str, Any]


class Conversation:
    """One session of `client`; `say` begins a turn, `wait` returns when it has ended."""

    def __init__(self, client: Client, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self.client, self.cwd = client, cwd or client.ground.checkout
        self._heard: list[Message] = []
        self._news = threading.Condition()
        self._ended = False
        self._turns = 0  # begun
        self._asked = 0
        self._thread = ""
        self.process = client.ground.start(self._command(), env=env, cwd=self.cwd, talk=True)
        threading.Thread(target=self._listen, daemon=True).start()
        if self._is_codex:
            self._open_thread()

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *failure: object) -> None:
        self.kill() if failure[0] else self.close()

    @property
    def _is_codex(self) -> bool:
        return self.client.name == "codex"

    def _command(self) -> list[str]:
        if self._is_codex:
            return ["codex", "app-server"]
        lines = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        return [*self.client.interactive_command(), "-p", *lines]

    # -- turns --

    def run(self, script: str, *steps: Step | Message) -> None:
        """One turn that plays `script`, to its end."""
        self.begin(script, *steps)
        self.wait()

    def begin(self, script: str, *steps: Step | Message) -> None:
        """Begin a turn that plays `script`."""
        self.client.models.script(script, *steps)
        self.say(play(script))

    def say(self, prompt: str, message: str = "") -> None:
        """Begin a turn with this prompt; `message`: Claude Code's id of it, for `rewind`."""
        self._turns += 1
        if self._is_codex:
            words = [{"type": "text", "text": prompt}]
            self._turn = self._call("turn/start", {"threadId": self._thread, "input": words})["turn"]["id"]
        else:
            named = {"uuid": message} if message else {}
            self._send({"type": "user", **named, "message": {"role": "user", "content": prompt}})

    def wait(self, seconds: float = TURN) -> None:
        """Until every turn that was begun has ended."""
        with self._news:
            over = self._news.wait_for(lambda: self._ended or self._ends() >= self._turns, seconds)
        assert over and not self._ended, f"{self.client.name}: a turn did not end; last heard: {self._heard[-3:]}"

    def _ends(self) -> int:
        kinds = ("result", "turn/completed")
        return sum((heard.get("type") or heard.get("method")) in kinds for heard in self._heard)

    def interrupt(self) -> None:
        """Break the turn off, as Esc does at a terminal."""
        if self._is_codex:
            self._call("turn/interrupt", {"threadId": self._thread, "turnId": self._turn})
        else:
            self._asked += 1
            request = {"subtype": "interrupt"}
            self._send({"type": "control_request", "request_id": f"ask-{self._asked}", "request": request})

    def rewind(self, message: str) -> Message:
        """Have Claude Code put the files back as they were at this message, as /rewind does; return its answer."""
        self._asked += 1
        name, request = f"ask-{self._asked}", {"subtype": "rewind_files", "user_message_id": message}
        self._send({"type": "control_request", "request_id": name, "request": request})

        def answers() -> list[Message]:
            return [heard["response"] for heard in self._heard if heard.get("type") == "control_response"]

        def answered() -> list[Message]:
            return [one for one in answers() if one.get("request_id") == name]

        with self._news:
            self._news.wait_for(lambda: self._ended or answered(), TURN)
        return dict(answered()[0])

    # -- the end --

    def close(self) -> None:
        """Leave, as a person does at the end."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """SIGKILL: no hook runs."""
        kill_group(self.process)

    # -- lines --

    def _open_thread(self) -> None:
        about = {"name": "swarm-e2e", "version": "0"}
        self._call("initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized", "params": {}})
        model = {"cwd": str(self.cwd), "model": getattr(self.client, "model", None)}
        self._thread = self._call("thread/start", model)["thread"]["id"]

    def _call(self, method: str, params: Message) -> Message:
        self._asked += 1
        number = self._asked
        self._send({"id": number, "method": method, "params": params})
        with self._news:
            self._news.wait_for(lambda: self._ended or self._answer(number) is not None, TURN)
        answer = self._answer(number)
        assert answer and "error" not in answer, f"{method}: {answer}"
        return dict(answer["result"])

    def _answer(self, number: int) -> Message | None:
        return next((heard for heard in self._heard if heard.get("id") == number and "method" not in heard), None)

    def _send(self, message: Message) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                heard = json.loads(line)
            except ValueError:
                continue
            with self._news:
                self._heard.append(heard)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
