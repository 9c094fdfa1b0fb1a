"""Workers' instructions: templates, system prompts, configurations, and the commands of a prompt."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Limits
from support.files import folder_at, text_at
from support.fixtures import Ground
from support.requirement import requirement

from swarm_mcp.agents.harness import prompting, query, registry
from swarm_mcp.agents.harness.adapter import Capabilities, HarnessAdapter, Launch
from swarm_mcp.agents.harness.prompting import slash_commands
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.errors import Refused

QUERY = Query(
    "x", "/r", instance_id="i1", scope="/srv/repo", role="reviewer", label="role:reviewer a", task_id="t1", run_id="r1"
)
TASK = {"id": "t1", "type": "fix", "title": "Mend it", "description": "The hinge squeaks.", "files": ["/r/a", "/r/b"]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=4), x, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(("template", "text"), [
    ("{{agentId}} {{ companyId }} {{runId}}", "i1 /srv/repo r1"),
    ("{{company.name}} {{agent.role}} {{agent.company_id}} {{run.harness}}", "repo reviewer /srv/repo codex"),
    ("{{task.title}}: {{task.files.1}} {{task.files.9}}|{{task.none.x}}|{{nothing}}", "Mend it: /r/b ||"),
    ("{{task.files}} {{context.flag}} {{context.n}} {{context.none}}", '["/r/a", "/r/b"] true 3 '),
    ("{{}} {{a b}} {{{agentId}}} {agentId}", "{{}} {{a b}} {i1} {agentId}"),
    ("{{context.evil}}", "{{agentId}}"),
])  # fmt: skip
@requirement("C-19")
def test_places_are_filled(template: str, text: str) -> None:
    context = {"flag": True, "n": 3, "none": None, "evil": "{{agentId}}"}
    assert prompting.filled(template, prompting.template_values(QUERY, "codex", task=TASK, context=context)) == text


@settings(max_examples=60, deadline=None)
@given(st.text() | st.from_regex(r"\{\{[a-z.0-9]{0,6}\}\}", fullmatch=True), JSON)
@requirement("C-19")
def test_no_template_and_no_values_break_it(template: str, value) -> None:
    assert isinstance(prompting.filled(template, {"a": value, "b": {"c": value}}), str)


@requirement("C-66")
def test_a_task_is_told_whole() -> None:
    text = prompting.task_prompt(TASK, "Oil the hinge.", query=QUERY)
    for part in (
        "i1",
        "r1",
        "Mend it",
        "Oil the hinge.",
        "The hinge squeaks.",
        "/r/a, /r/b",
        "Use the swarm-mcp skill",
    ):
        assert part in text
    assert "interrupted" not in text and "\n\n\n" not in text and "{{" not in text
    assert "Half is oiled." in prompting.task_prompt(TASK, "Oil it.", "Half is oiled.", query=QUERY)
    assert prompting.task_prompt(TASK, "The hinge squeaks.").count("squeaks") == 1


def test_a_template_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_text("Do {{task.title}} ({{message}})")
    monkeypatch.setenv("SWARM_WORKER_TEMPLATE", str(tmp_path / "t"))
    assert prompting.task_prompt(TASK, "now") == "Do Mend it (now)\n"
    assert prompting.task_prompt(TASK, "now", template="{{message}}") == "now\n"
    monkeypatch.setenv("SWARM_WORKER_TEMPLATE", str(tmp_path / "none"))
    with pytest.raises(Refused, match="SWARM_WORKER_TEMPLATE"):
        prompting.task_prompt(TASK)


@requirement("A-51")
def test_sections_stand_in_order_and_what_is_empty_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_at(tmp_path / "oiling")
    (folder / "SKILL.md").write_text("---\nname: oiling\ndescription: How to oil.\n---\nSECRET BODY")
    monkeypatch.setenv("SYSTEM_PROMPT", "House rules.")
    text = prompting.system_prompt(QUERY, skills=[str(folder)], tools=["weigh"], extra="Mind the paint.")
    order = ["reviewer", "session i1", "oiling: How to oil.", "weigh", "House rules.", "Mind the paint."]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "SECRET BODY" not in text
    monkeypatch.delenv("SYSTEM_PROMPT")
    assert prompting.system_prompt(Query("x", "/")) == ""
    assert prompting.system_prompt(Query("x", "/"), extra="only") == "only"


@requirement("A-51")
def test_sections_and_the_whole_are_capped(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    long = prompting.system_prompt(QUERY, extra="x" * 50_000)
    assert long.count("x") <= prompting.SECTION_LIMIT and "cut:" in long
    monkeypatch.setenv("SYSTEM_PROMPT", "y" * 20_000)
    limits(prompting, TOTAL_LIMIT=30_000)
    whole = prompting.system_prompt(QUERY, extra="x" * 20_000)
    assert len(whole) <= 30_000 and whole.endswith("characters more]")
    monkeypatch.setenv("SYSTEM_PROMPT", "y" * 100)
    assert "cut" not in prompting.system_prompt(QUERY)


class Quiet(HarnessAdapter):
    name = "quiet"

    def launch(self, query: Query, folder: Path) -> Launch:
        return Launch(("true",))

    def parse(self, line: str, state: dict) -> list:
        return []


@requirement("C-65")
def test_the_system_prompt_goes_only_to_harnesses_that_take_one() -> None:
    adapter = Quiet()
    assert prompting.with_system_prompt(QUERY, adapter) == QUERY
    adapter.capabilities = Capabilities(append_system_prompt=True)
    text = prompting.with_system_prompt(QUERY._replace(append_system_prompt="Mine."), adapter).append_system_prompt
    assert text.endswith("Mine.") and "swarm-mcp: How to work" in text
    adapter.capabilities = Capabilities(append_system_prompt=True, native_skills=True)
    assert "How to work" not in prompting.with_system_prompt(QUERY, adapter).append_system_prompt


@requirement("C-17")
def test_later_layers_win() -> None:
    context: dict[str, object] = {"wake_reason": "mail", "message_id": 7, "linked_task_ids": ["a", "b"]}
    context.update(approval_id=9, approval_status="approved")
    reached = QUERY._replace(api_url="http://127.0.0.1:1", api_key="tok", iteration=3)
    made = prompting.run_environment(reached, context)
    assert made["SWARM_MCP_INSTANCE_ID"] == "i1" and made["SWARM_TASK_ID"] == "t1" and made["SWARM_RUN_ID"] == "r1"
    assert made["SWARM_WAKE_REASON"] == "mail" and made["SWARM_WAKE_MESSAGE_ID"] == "7"
    assert made["SWARM_LINKED_TASK_IDS"] == "a,b"
    assert (made["SWARM_APPROVAL_ID"], made["SWARM_APPROVAL_STATUS"]) == ("9", "approved")
    assert (made["SWARM_API_URL"], made["SWARM_API_KEY"], made["SWARM_ITERATION"]) == ("http://127.0.0.1:1", "tok", "3")
    own = reached._replace(env={"SWARM_API_KEY": "mine", "SWARM_WAKE_REASON": "me", "X": "1"})
    made = prompting.run_environment(own, context)
    assert (made["SWARM_API_KEY"], made["SWARM_WAKE_REASON"], made["X"]) == ("mine", "me", "1")
    assert not [name for name in prompting.run_environment(QUERY) if "API" in name or "ITERATION" in name]


@settings(max_examples=150, deadline=None)
@given(JSON | st.binary(max_size=5) | st.just(object()))
@requirement("C-16")
def test_typed_reading_never_raises_and_keeps_its_type(value) -> None:
    assert isinstance(query.as_string(value, "f"), str)
    assert isinstance(query.as_number(value, 1.0), (int, float)) and math.isfinite(query.as_number(value, 1.0))
    assert isinstance(query.as_boolean(value, True), bool)
    assert all(isinstance(one, str) for one in query.as_string_array(value))
    assert isinstance(query.parse_object(value), dict)
    query.parse_json(value)
    asked = query.query_of("x", dict.fromkeys(Query._fields, value))
    assert isinstance(asked.cwd, str) and isinstance(asked.env, dict) and isinstance(asked.timeout_seconds, float)


@requirement("A-09", "C-02", "C-16")
def test_typed_reading() -> None:
    assert query.as_string("  ", "f") == "f" and query.as_string(3, "f") == "f" and query.as_string("a") == "a"
    assert query.as_number("2.5") == 2.5 and query.as_number(True, 9) == 9 and query.as_number("nan", 9) == 9
    assert query.as_boolean("Off", True) is False and query.as_boolean(1) is False and query.as_boolean("perhaps", True)
    assert query.as_string_array(["a", 1, ""]) == ("a",) and query.as_string_array("a", ("f",)) == ("f",)
    assert query.parse_object('{"a": 1}') == {"a": 1} and query.parse_object("[1]") == {}
    assert query.parse_json("{", 4) == 4 and query.parse_json("[1]") == [1]


@requirement("C-02")
def test_a_configuration_keeps_its_servers() -> None:
    listed = {
        "db": {"command": "db", "args": ["--x"], "env": {"A": "b"}, "cwd": "/srv"}, "odd": {"type": "ws", "url": "ws://x"},
        "web": {"type": "http", "url": "http://x", "headers": {"K": "v"}}, "none": 3,
    }  # fmt: skip
    asked = query.query_of(
        "p", {"mcp_servers": listed, "iteration": "2", "log_file": "/l", "api_url": "u", "api_key": "k"}
    )
    assert {name: server.to_dict() for name, server in asked.mcp_servers.items()} == {
        "db": listed["db"], "web": listed["web"],
    }  # fmt: skip
    assert (asked.iteration, asked.log_file, asked.api_url, asked.api_key) == (2, "/l", "u", "k")
    again = query.query_of("p", {"mcp_servers": asked.mcp_servers})
    assert again.mcp_servers == asked.mcp_servers


@requirement("C-31")
def test_a_configuration_has_no_empty_values_and_always_time_limits() -> None:
    built = query.build_config({"cwd": "/x", "model": "", "skills": (), "env": {}, "effort": None, "mode": "edit"})
    assert built == {"cwd": "/x", "mode": "edit", "timeout_seconds": 0.0, "grace_seconds": 15.0}
    assert query.build_config({"timeout_seconds": 0.0, "grace_seconds": 2})["grace_seconds"] == 2
    asked = query.query_of("p", {**built, "env": {"A": "b", "C": 1}, "skills": ["/s"], "timeout_seconds": "9"})
    assert (asked.cwd, asked.env, asked.skills, asked.timeout_seconds, asked.mode) == (
        "/x",
        {"A": "b"},
        ("/s",),
        9.0,
        "edit",
    )


# Harness -> the variable for its private folder, a skill in it, that skill's invocation, a command of the project's,
# that command's invocation.
PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", "skills", "/knots", ".claude/commands/boats/fold.md", "/boats:fold"),
    "codex": ("CODEX_HOME", "skills", "/knots", "", ""),
    "pi": ("PI_CODING_AGENT_DIR", "skills", "/skill:knots", ".pi/prompts/fold.md", "/fold"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/skills", "Use the skill knots.", ".gemini/commands/boats/fold.toml",
               "/boats:fold"),
    "opencode": ("XDG_CONFIG_HOME", "opencode/skills", "Use the skill knots.", "", ""),
    "hs": ("HARNESS_HOME", "skills", "Use the skill knots.", "", ""),
    "loop": ("HARNESS_HOME", "skills", "Use the skill knots.", "", ""),
}  # fmt: skip


def skill(folder: Path, about: str) -> None:
    text_at(folder / "SKILL.md", f"---\nname: {folder.name}\ndescription: {about}\n---\nBODY\n")


@pytest.mark.parametrize("name", PLACES)
@requirement("A-04")
def test_skills_and_commands_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, place, invocation, command, invoked = PLACES[name]
    monkeypatch.setenv(variable, str(tmp_path / "mine"))
    skill(tmp_path / "mine" / place / "knots", "Ties knots")
    work = folder_at(tmp_path / "work")
    if command:
        file = work / command
        file.parent.mkdir(parents=True)
        quote = '"' if command.endswith(".toml") else ""
        words = f"description {'=' if quote else ':'} {quote}Folds boats{quote}\n"
        file.write_text(words if quote else f"---\n{words}---\nFold.\n")
    found = {one.name: one for one in slash_commands(registry.get(name), str(work))}
    assert (found["knots"].invocation, found["knots"].description, found["knots"].kind) == (
        invocation, "Ties knots", "skill",
    )  # fmt: skip
    assert "swarm-mcp" in found, "a run has the swarm's own skill"
    if command:
        made = found[invoked.lstrip("/")]
        assert (made.invocation, made.description, made.kind) == (invoked, "Folds boats", "command")
        assert made.path == str(work / command)


@requirement("A-52")
def test_a_skill_of_the_run_goes_before_one_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "mine"))
    skill(tmp_path / "mine" / "skills" / "knots", "Theirs")
    skill(tmp_path / "knots", "The run's")
    (found,) = [
        one for one in slash_commands(registry.get("claude"), str(tmp_path), (str(tmp_path / "knots"),))
        if one.name == "knots"
    ]  # fmt: skip
    assert found.description == "The run's"


@requirement("A-04")
def test_every_harness_is_asked_and_any_command_has_none(ground: Ground) -> None:
    listed = ground.swarm("harness", "commands", "--json").json
    assert list(listed) == registry.names() and listed["process"] == []
    assert {"name", "invocation", "description", "kind", "path"} == set(listed["claude"][0])
    skill(ground.repo / ".claude" / "skills" / "knots", "Ties knots")
    done = ground.swarm("harness", "commands", "claude")
    assert done.code == 0 and "/knots" in done.out and "Ties knots" in done.out
    assert ground.swarm("harness", "commands", "process").out.strip() == "(none)"
