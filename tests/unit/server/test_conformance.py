"""Recorded tool calls, schemas and answers, word for word, and the records of earlier releases."""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import pytest
from support import captures, deviations
from support.captures import Names, Verdict, differences
from support.fixtures import SWARM, Ground
from support.mcp_golden import answers, conversations, place, without_tools
from support.requirement import requirement
from support.serving import Server

from swarm_mcp.agents import tools
from swarm_mcp.agents.dispatch import request
from swarm_mcp.server.app import forget_records

pytestmark = pytest.mark.slow


RECORD = captures.load("mcp")
# Each session has a client of its own between it and this test.
CLIENT = [sys.executable, "-c", f"import subprocess, sys; sys.exit(subprocess.call({[*SWARM, 'serve']!r}))"]


class Replay:
    """Three sessions on one store, and their names in the record."""

    def __init__(self, ground: Ground, servers: dict[str, Server]):
        self.ground = ground
        self.servers = servers
        self.names = Names(str(ground.folder))
        self.last_event = 0

    def differences(self, call: dict) -> list[str]:
        """Make one recorded call; how its answer and its events differ from the record."""
        answer = self.made(call)
        if call["n"] in deviations.PERSONS_CALLS:
            assert "error" in answer["structuredContent"] and not self.events()
            answer = self.made({**call, "arguments": {**call["arguments"], "force": True}})
            assert [event["type"] for event in self.events()] == ["protection.attempted"]
            self.by_a_person(self.names.fill(deviations.PERSONS_CALLS[call["n"]]))
        found = differences(call.get("isError", False), bool(answer.get("isError")), self.names, "isError")
        found += self.of_answer(call, answer)
        events = differences(call.get("events", []), self.events(), self.names, "events")
        return found + [difference for difference in events if not difference.startswith("order ")]

    def made(self, call: dict) -> dict:
        """The answer to one recorded call, made now."""
        server = self.servers[call["who"]]
        if "resource" in call:
            return server.ask("resources/read", {"uri": call["resource"]})
        number = server.begin("tools/call", {"name": call["tool"], "arguments": self.names.fill(call["arguments"])})
        if "meanwhile" in call:
            assert server.ask("ping") == {}  # the server has read the call
            time.sleep(0.3)  # it waits by now
            other = call["meanwhile"]
            self.servers[other["who"]].call(other["tool"], self.names.fill(other["arguments"]))
        return server.answer_to(number)

    def by_a_person(self, argv: list[str]) -> None:
        """Run our command as a person does, outside of all sessions' folders."""
        environment = {**os.environ, "SWARM_MCP_ALLOW_SPAWN": "1"}
        done = self.ground.process(*argv, cwd=self.ground.folder / "proj", env=environment)
        assert done.code == 0, done

    def of_answer(self, call: dict, answer: dict) -> list[str]:
        """Return the differences between the blocks of an answer and the recorded ones."""
        blocks, wanted = answer.get("content") or answer.get("contents") or [], call["answer"]
        found = [] if len(blocks) == len(wanted) else [f"blocks: {len(blocks)}, not {len(wanted)}"]
        for number, (block, pattern) in enumerate(zip(blocks, wanted)):
            place = "" if number == 0 else f"block{number}"
            if "json" not in pattern:
                found += differences(pattern["text"], block["text"], self.names, place or "text")
                continue
            try:
                value = json.loads(block["text"])
            except ValueError:
                found.append(f"{place}: text, not JSON: {block['text']}")
                continue
            found += differences(pattern["json"], value, self.names, place)
            compact = "\n" not in block["text"]
            if isinstance(value, dict) and value and compact != (pattern.get("layout") == "compact"):
                found.append(f"layout {place}: {'compact' if compact else 'indented'}")
            if block.get("mimeType") != pattern.get("mimeType"):
                found.append(f"mimeType: {block.get('mimeType')}")
            if "structuredContent" in answer and number == 0:
                structured = answer["structuredContent"]
                assert structured == (value if isinstance(value, dict) else {"items": value})
        return found

    def events(self) -> list[dict]:
        """The rows that have come to `events` since last asked."""
        rows = self.ground.sql(
            "SELECT id, type, actor, subject, payload FROM events WHERE id > ? ORDER BY id", self.last_event
        )
        self.last_event = rows[-1]["id"] if rows else self.last_event
        return [
            {**{key: row[key] for key in ("type", "actor", "subject")}, "payload": json.loads(row["payload"] or "null")}
            for row in rows
        ]


@requirement("P-26")
@pytest.mark.thorough
def test_every_recorded_call_is_answered_alike(ground: Ground, monkeypatch):
    for name, value in (("SWARM_HERDR_BIN", "no-herdr"), ("SWARM_DB_PATH", "swarm.db"), ("HOME", "")):
        monkeypatch.setenv(name, os.path.join(ground.folder, value).rstrip("/"))
    ground.database = os.environ["SWARM_DB_PATH"]
    for name in ("proj", "other"):
        (ground.folder / name / ".git").mkdir(parents=True)
    verdict = Verdict(deviations.MCP)
    with contextlib.ExitStack() as stack:
        servers = {
            who: stack.enter_context(Server(ground, CLIENT, cwd=ground.folder / place))
            for who, place in (("A", "proj"), ("B", "proj"), ("C", "other"))
        }
        replay = Replay(ground, servers)
        for call in RECORD["calls"]:
            where = f"{call['n']} {call['who']} {call.get('tool') or call['resource']}"
            verdict.judge(where, replay.differences(call))
        assert verdict.alike >= 93
        rows = ground.sql(
            "SELECT title, tracker_required, tracker_provider FROM tasks WHERE title LIKE 'ENG-%' ORDER BY rowid"
        )
        verdict.judge("tracked tasks", differences(RECORD["tracked_tasks"], rows, replay.names))
    verdict.deliver()


TOOLS_RECORD = captures.load("tools")


def without_prose(schema, named: bool = False):
    """Return a schema without its descriptions. `named`: this is an object's properties, with names of any kind."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if named or key not in ("description", "$schema", "title")}
        return {key: without_prose(value, key == "properties" and not named) for key, value in kept.items()}
    return [without_prose(value) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.slow
@requirement("P-26")
def test_every_tool_takes_what_the_record_says(ground: Ground):
    verdict, names = Verdict(deviations.TOOLS), Names("")
    with Server(ground, [*SWARM, "serve", "--all-tools"]) as server:
        listed = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
        welcome = server.welcome
        resources = server.ask("resources/list")["resources"]
        templates = server.ask("resources/templates/list")["resourceTemplates"]
        prompts = server.ask("prompts/list")["prompts"]
    assert set(listed) == {tool["name"] for tool in TOOLS_RECORD["tools"]} | set(deviations.MORE_TOOLS)
    for tool in TOOLS_RECORD["tools"]:
        ours = listed[tool["name"]]
        assert ours["description"]
        found = differences(tool["schema"], without_prose(ours["inputSchema"]), names)
        verdict.judge(tool["name"], [difference for difference in found if not difference.startswith("order ")])
        read_only = ours["annotations"]["readOnlyHint"]
        verdict.judge(tool["name"], differences(tool["readOnlyHint"], read_only, names, "readOnlyHint"))
    assert (welcome["serverInfo"]["name"], welcome["protocolVersion"]) == (
        TOOLS_RECORD["server"],
        TOOLS_RECORD["protocolVersion"],
    )
    found = differences(TOOLS_RECORD["capabilities"], welcome["capabilities"], names)
    verdict.judge("capabilities", [difference for difference in found if not difference.startswith("order ")])
    for kind, wanted, found in (
        ("resources", TOOLS_RECORD["resources"], resources),
        ("templates", TOOLS_RECORD["templates"], templates),
        ("prompts", [{"name": name} for name in TOOLS_RECORD["prompts"]], prompts),
    ):
        shown = [{key: item[key] for key in wanted[0]} for item in found]
        verdict.judge(kind, differences(wanted, shown, names))
    verdict.deliver()


def test_the_tool_has_the_defaults_of_a_dispatch() -> None:
    assert (tools.DEFAULT_TYPE, tools.DEFAULT_ROLE) == (request.DEFAULT_TYPE, request.DEFAULT_ROLE)


CONVERSATIONS = conversations()


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.sampled
def test_answers_are_as_recorded(name: str) -> None:
    tools = json.loads(place("tools").read_text(encoding="utf-8"))
    recorded = json.loads(place(name).read_text(encoding="utf-8"))
    found = without_tools(answers(CONVERSATIONS[name]), tools)
    for now, before in zip(found, recorded):
        assert now == before
    assert len(found) == len(recorded)


def test_uninstalling_leaves_no_record(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ["SWARM_STATE_DIR"], "server")
    folder.mkdir(parents=True)
    (folder / "opening-0123.json").write_text("{}")
    monkeypatch.setenv("PATH", os.defpath)
    ground.swarm("uninstall", "--client", "codex")
    assert folder.exists(), "others may still be served"
    ground.swarm("uninstall", "--dry-run")
    assert folder.exists()
    assert ground.swarm("uninstall").code == 0
    assert not folder.exists()


def test_other_files_stay(ground: Ground) -> None:
    folder = Path(os.environ["SWARM_STATE_DIR"], "server")
    folder.mkdir(parents=True)
    for name in ("opening-0123.json", "mine.txt"):
        (folder / name).write_text("{}")
    assert forget_records() and [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert not forget_records()
