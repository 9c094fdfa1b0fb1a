"""The common part of the real clients: sessions of every kind, and the requests to their models."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from swarm_mcp.play import clients as played
from swarm_mcp.play.clients import Call
from swarm_mcp.play.models import Gate, Step, play

from .ground import Ground, kill_group
from .terminal import Terminal

TURN = 240.0  # seconds that one turn may take before the test gives up


class Run(NamedTuple):
    """A one-shot session that came to its end."""

    session: str
    seconds: float
    out: str
    err: str


class Live:
    """A session held at a gate, so that it stays alive while the test looks around."""

    def __init__(self, process: subprocess.Popen[str], gate: Gate) -> None:
        self.process, self.gate = process, gate

    def go_on(self) -> None:
        """Let the model answer, and wait for the session's end."""
        self.gate.open()
        code = self.process.wait(TURN)
        assert code == 0, f"the client exited {code}"

    def interrupt(self) -> None:
        """SIGINT as a terminal sends it: to the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, as the kernel or an impatient person does it: no hook runs."""
        kill_group(self.process)


class Client(played.Client):
    harness: ClassVar[str]  # that drives it
    prefix: ClassVar[str]  # of the environment variables that are this runtime's alone
    ready: ClassVar[str]  # a pattern on the screen of an interactive session that takes input
    compacted: ClassVar[str]  # a pattern on the screen once /compact is done
    leave: ClassVar[str]  # a person's words to quit

    ground: Ground

    # -- differences --

    def prepare(self) -> None:
        """Write the settings that a person would have after the first start."""
        raise NotImplementedError

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        raise NotImplementedError

    def interactive_command(self) -> list[str]:
        raise NotImplementedError

    def enough_to_compact(self) -> list[Call]:
        """Return calls that fill a session until the client has something to compact."""
        return []

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        """The calls of these tools (name, arguments) of the plugin's MCP server, one after another."""
        raise NotImplementedError

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        """The calls that have a sub-agent, called `name`, play `script`, and wait for its end: the first starts it."""
        raise NotImplementedError

    # -- sessions --

    def ask(
        self,
        prompt: str,
        *,
        resume: str | None = None,
        fork: str | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        extra: tuple[str, ...] = (),
    ) -> Run:
        """One prompt, one session, to its end."""
        began = time.monotonic()
        done = self.ground.run(self.command(prompt, resume, fork, extra), env=env, cwd=cwd, seconds=TURN)
        seconds = time.monotonic() - began
        assert done.returncode == 0, f"{self.name} exited {done.returncode}: {(done.stderr or done.stdout)[-800:]}"
        return Run(self.session_in(done.stdout), seconds, done.stdout, done.stderr)

    def session_in(self, stream: str) -> str:
        """The session's id out of the client's stream of JSON lines."""
        return _session_id(stream)

    def run(self, script: str, *steps: Step | Call, **options: Any) -> Run:
        """Write the script and play it in a session of its own."""
        self.models.script(script, *steps)
        return self.ask(play(script), **options)

    @contextmanager
    def held(
        self,
        script: str,
        *steps: Step | Call,
        at: int = 0,
        env: dict[str, str] | None = None,
        resume: str | None = None,
        extra: tuple[str, ...] = (),
    ) -> Iterator[Live]:
        """A session stopped before the model's answer number `at`; `resume`: the one to go on with."""
        self.models.script(script, *steps)
        gate = self.hold(script, at)
        live = Live(self.ground.start(self.command(play(script), resume, None, extra), env=env), gate)
        try:
            assert gate.wait_reached(), f"{self.name} never asked for answer {at} of {script}"
            yield live
        finally:
            live.kill()

    def hold(self, script: str, at: int) -> Gate:
        """A gate before the model's answer number `at` of a script that is being played."""
        gate, play_list = Gate(), self.models.scripts[script]
        play_list[at] = play_list[at]._replace(gate=gate)
        return gate

    @contextmanager
    def interactive(self, env: dict[str, str] | None = None, command: list[str] | None = None) -> Iterator[Terminal]:
        terminal = Terminal(self.ground, command or self.interactive_command(), env or {})
        try:
            terminal.wait_for(self.ready, 30)
            yield terminal
        finally:
            terminal.close()

    def turn(self, terminal: Terminal, script: str, *steps: Step | Call) -> None:
        """One turn of an interactive session, until the model has had its last word."""
        self.models.script(script, *steps)
        terminal.enter(play(script))
        terminal.wait_for(rf"The script {script} is over", TURN)

    # -- requests to the model --

    def last_result(self, script: str) -> str:
        results = self.results(script)
        assert results, f"no tool result of {script} reached the model"
        return results[-1]

    def said(self, script: str) -> str:
        """All that the model of `script` was given, as JSON."""
        return json.dumps([exchange.body for exchange in self.exchanges(script)])

    def context(self, script: str) -> str:
        """All that the model was given with its first request of `script`."""
        exchanges = self.exchanges(script)
        assert exchanges, f"{script} never reached the model"
        return "\n".join(_strings(exchanges[0].body))

    def offers(self, script: str, tool: str) -> bool:
        """Return True if the requests of `script` have a tool of this name."""
        bodies = [exchange.body for exchange in self.exchanges(script)]
        return any(
            f'"name": "{tool}"' in json.dumps([body.get("tools"), body.get("tool_definitions")]) for body in bodies
        )

    def call_seconds(self, script: str) -> list[float]:
        """For each answer of the model, the seconds until the client came back with results."""
        times = [exchange.at for exchange in self.exchanges(script)]
        return [after - before for before, after in zip(times, times[1:], strict=False)]


def _session_id(stream: str) -> str:
    """The session's id out of a client's stream of JSON lines."""
    for line in stream.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        session = event.get("thread_id") or event.get("session_id") or event.get("sessionId")
        session = session or (event.get("id") if event.get("type") == "session" else None)  # pi
        if session:
            return str(session)
    raise AssertionError(f"no session id in the client's output: {stream[:400]}")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
