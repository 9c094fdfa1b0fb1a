"""Runs of a harness on a real client, supervised by this process. They must leave nothing behind."""

import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swarm_mcp.agents.commands.run import TIME_WIDTH, Live
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.membership import Membership
from swarm_mcp.agents.harness.outcome import BEGINS, RunResult
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.play.models import Gate, Step, play

from .client import Call, Client
from .ground import Ground, wait_for

LIMIT = 60.0  # seconds for one run on a machine that is busy
SECRET = "tok-4f9d2c77aa31e05b66"
# A picture of one dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def denials_shown(told: list[Any], folder: object) -> list[str]:
    """Return a person's view of our refusals in a run's events: one line each, without the words around them."""
    stream = io.StringIO()
    live = Live(stream, colour=False, folder=str(folder))
    for event in told:
        live.show(event)
    text = stream.getvalue()
    assert BEGINS not in text and "hook error" not in text and "PreToolUse" not in text, text
    assert f"{folder}/" not in text, text
    return [line[TIME_WIDTH:] for line in text.splitlines() if "denied:" in line]


@contextmanager
def as_own_environment(ground: Ground, monkeypatch: pytest.MonkeyPatch, **more: str) -> Iterator[None]:
    """This process has the ground's environment, and nothing else, on a fresh checkout: it supervises."""
    for name in list(os.environ):
        if name not in ground.env and not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    for name, value in {**ground.env, **more}.items():
        monkeypatch.setenv(name, value)
    ground.renew()
    yield
    ground.end_processes()


class Supervised:
    """A run in the client's checkout that plays `script`, and its events so far.

    `place`: its membership, if not a worker's; `previous`: the session parameters of the run before; `wanted`: fields
    of its Query.
    """

    def __init__(
        self,
        client: Client,
        script: str,
        *steps: Any,
        place: Membership | None = None,
        previous: dict | None = None,
        **wanted: Any,
    ) -> None:
        client.models.script(script, *steps)
        scope = str(client.ground.checkout)
        cwd = str(wanted.pop("cwd", scope))
        self.place = place or Membership({"scope": scope, "harness": client.harness, "cwd": cwd}, label="role:worker")
        query = Query(wanted.pop("prompt", play(script)), cwd, **{"scope": scope, **wanted})
        self.run = Run(registry.get(client.harness), query, membership=self.place, previous=previous)
        self.events: list[Any] = []
        self.run.on_event(self.events.append).start()

    def result(self) -> RunResult:
        """Return its result."""
        found = self.run.wait(LIMIT)
        assert found is not None, f"not over after {LIMIT:g} s; its record is {self.run.record}"
        return found

    def well(self) -> RunResult:
        """Return its result, and assert that it is no error."""
        found = self.result()
        assert not found.is_error, (found, [(event.kind, event.data) for event in self.events[-8:]])
        return found

    def kinds(self) -> list[str]:
        """The kinds of its events; of events that are the client's own, their names."""
        return [event.kind if event.kind != "custom" else event.data["name"] for event in self.events]

    def told(self, kind: str) -> list[dict]:
        """Return the data of its events of one kind, or of one name."""
        return [event.data for event, named in zip(self.events, self.kinds()) if kind in (named, event.kind)]

    def ends(self, tool: str = "") -> list[dict]:
        """The ends of all tool calls, or of those of one tool."""
        return [data for data in self.told("tool_end") if tool in ("", data["tool_name"])]


def play_a_worker(
    client: Client, folder: Path, calls: list[Call], write: Call, **wanted: Any
) -> tuple[Supervised, RunResult]:
    """One run: the swarm's own server, a client tool, another server, a skill, a peer's lock, no secret in argv.

    `calls`: of whoami and of the client tool weigh; `write`: one of notes.md, locked by a peer.
    """
    ground = client.ground
    ground.coordinator.peer_lock("notes.md")
    skill = folder / "extra"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: extra\ndescription: Folds paper boats\n---\nBODY-OF-THE-SKILL\n")
    asked: list[str] = []

    def weigh(what: str) -> str:
        """Weigh something."""
        asked.append(what)
        return f"{what}: 12 kg"

    words = ("-c", f'printf %s "$GIVEN_TOKEN" > {folder}/given; exec cat')
    servers = {"own": McpServer("/bin/sh", words, {"GIVEN_TOKEN": SECRET}), **wanted.pop("mcp_servers", {})}
    gate = Gate()
    made = Supervised(
        client, "work", *calls, write, Step(calls=(client.create("late.md", "late\n"),), gate=gate), mcp_servers=servers,
        client_tools=(weigh,), skills=(str(skill),), append_system_prompt='APPENDED ü\n"x"', **wanted,
    )  # fmt: skip
    assert gate.wait_reached(LIMIT)
    commands = ground.command_lines()
    gate.open()
    result = made.well()
    assert (result.exit_code, result.error_message, result.output) == (0, None, "The script work is over."), result
    ends = {end["tool_name"]: end["result"] for end in made.ends()}
    assert made.place.instance_id in next(said for tool, said in ends.items() if tool.endswith("whoami"))
    assert asked == ["anchor"] and "anchor: 12 kg" in next(
        said for tool, said in ends.items() if tool.endswith("weigh")
    )
    (denied,) = [text for text in client.results("work") if "swarm lock blocked" in text]
    assert "careful surgery" in denied
    (shown,) = denials_shown(made.events, ground.checkout)
    assert shown.startswith("denied: notes.md, held by night-shift ") and shown.endswith(" (careful surgery)")
    assert (ground.checkout / "notes.md").read_text() == "line one\n"
    assert (ground.checkout / "late.md").read_text() == "late\n", "it went on after the denial"
    assert (folder / "given").read_text() == SECRET
    assert commands and not [line for line in commands if SECRET in line or "APPENDED" in line or "<<play" in line]
    assert SECRET not in Path(made.run.record).read_text()
    context = client.context("work")
    assert "Folds paper boats" in context and "BODY-OF-THE-SKILL" not in context and 'APPENDED ü\n"x"' in context
    assert context.count("this session is registered as") == 1
    assert ground.coordinator.sessions() == [], "the worker is still registered"
    assert porcelain(ground) == ["?? late.md"], "something else was left in the checkout"
    kinds = made.kinds()
    assert kinds.count("session_init") == kinds.count("result") == 1
    assert result.cost.input_tokens and result.cost.output_tokens
    return made, result


def assert_abort_leaves_nothing(made: Supervised, ground: Ground) -> RunResult:
    """Once its command ``sleep 300`` runs, `made` is told twice to end: nothing of it is left."""
    assert wait_for(lambda: [line for line in ground.command_lines() if "sleep 300" in line], LIMIT)
    made.run.abort("enough")
    made.run.abort("enough")
    result = made.result()
    assert (result.error_category, result.error_message) == ("aborted", "enough")
    assert len(made.told("result")) == 1
    assert wait_for(lambda: not ground.own_processes(), 60), ground.command_lines()
    assert ground.coordinator.sessions() == []
    state = ground.home / ".local/state/swarm-mcp/running"
    assert not state.exists() or not list(state.iterdir()), "a run's private files are still there"
    return result


def porcelain(ground: Ground) -> list[str]:
    """Return git's status of the checkout."""
    told = subprocess.check_output(["git", "status", "--porcelain"], cwd=ground.checkout, env=ground.env, text=True)
    return sorted(told.splitlines())
