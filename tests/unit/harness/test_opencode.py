"""The harness opencode without OpenCode: a run's configuration, a read-only run's rights, its costs."""

import json
from pathlib import Path

import pytest
from support.recordings import Recordings, ended

from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes.opencode import PLUGIN_FILE, OpenCode

RECORDED = Recordings("opencode")
SECRET = "hunter2-hunter2-hunter2"
opencode = RECORDED.adapter


@pytest.fixture(autouse=True)
def _plugin(plugin_of) -> None:
    plugin_of("opencode")


def launched(tmp_path: Path, **wanted: object):
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    made = opencode.launch(Query("hello", str(tmp_path), **wanted), folder)
    return made, json.loads(made.env["OPENCODE_CONFIG_CONTENT"])


def test_a_plain_run(tmp_path: Path) -> None:
    made, config = launched(tmp_path, mcp_servers={"swarm": McpServer("serve", ("--x",), {"API_TOKEN": SECRET})})
    assert made.argv == ("opencode", "run", "--format", "json") and made.stdin == "hello"
    assert config["plugin"] == [(plugin_source() / PLUGIN_FILE).as_uri()]
    server = config["mcp"]["swarm"]
    assert server["command"] == ["serve", "--x"] and SECRET not in json.dumps(config)
    assert made.env[server["environment"]["API_TOKEN"].removeprefix("{env:").removesuffix("}")] == SECRET
    assert config["permission"] == {"swarm_*": "allow"} and "agent" not in config


def test_a_plugin_that_is_installed_is_not_loaded_twice(tmp_path: Path) -> None:
    OpenCode().link().parent.mkdir(parents=True)
    OpenCode().link().symlink_to(plugin_source() / PLUGIN_FILE)
    assert "plugin" not in launched(tmp_path)[1]


def test_flags(tmp_path: Path) -> None:
    session = "ses_dff8d2488ffe123FlN7NnwSNjW"
    made, config = launched(
        tmp_path, mode=YOLO, model="a/b", resume_session_id=session, fork_session=True, skills=("/s/one",),
        additional_directories=("/beside",), append_system_prompt="Be.", command=("npx", "opencode"),
        mcp_servers={"web": McpServer(url="http://127.0.0.1:1", headers={"Authorization": SECRET})},
    )  # fmt: skip
    assert made.argv[:4] == ("npx", "opencode", "run", "--format") and "--auto" in made.argv
    assert made.argv[-5:] == ("-m", "a/b", "--session", session, "--fork")
    assert config["skills"] == {"paths": ["/s/one"]}
    assert config["permission"]["external_directory"] == {"/beside/**": "allow"}
    assert Path(config["instructions"][0]).read_text() == "Be."
    assert config["mcp"]["web"]["type"] == "remote" and SECRET not in json.dumps(config)


def test_a_reader_is_an_agent_of_its_own(tmp_path: Path) -> None:
    servers = {name: McpServer("x", cwd="/srv") for name in ("swarm", "client_tools", "files")}
    made, config = launched(tmp_path, mode=READ_ONLY, mcp_servers=servers, system_prompt="All {of} it")
    agent = config["agent"][made.argv[made.argv.index("--agent") + 1]]
    rules = agent["permission"]
    assert list(rules)[0] == "*" and rules["*"] == rules["swarm_dispatch"] == "deny", "the last that fits counts"
    assert list(rules).index("swarm_dispatch") > list(rules).index("swarm_*")
    assert not {"write", "edit", "bash", "task", "patch"} & set(rules)
    assert list(config["mcp"]) == ["swarm", "client_tools"] and config["mcp"]["swarm"]["command"][-2:] == ["/srv", "x"]
    assert Path(agent["prompt"][6:-1]).read_text() == "All {of} it"


def test_costs_are_added_up_and_one_without_a_price_makes_them_unknown() -> None:
    def step(cost: object, reason: str = "tool-calls") -> str:
        tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 3}}
        return json.dumps({"type": "step_finish", "part": {"reason": reason, "tokens": tokens, "cost": cost}})

    for costs, total in (((0.5, 0.25), 0.75), ((0.5, 0), None), ((None, 1), None), ((True,), None)):
        lines = [*map(step, costs[:-1]), step(costs[-1], "stop")]
        found = RECORDED.parsed(lines)
        cost = found[-1].data["cost"]
        assert cost["total_cost_usd"] == total, costs
        assert (cost["input_tokens"], cost["output_tokens"]) == (5 * len(costs), 3 * len(costs))
        assert [event.data["goes_on"] for event in found[:-1]] == [True] * (len(costs) - 1) + [False]


def test_what_ends_without_an_answer_has_failed() -> None:
    assert opencode.error_of(ended([], 0)) == ("process_crashed", "opencode ended without an answer")
    assert RECORDED.parsed([json.dumps({"type": "step_start", "part": {}})]) == []
