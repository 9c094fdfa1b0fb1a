"""The MCP servers, skills and hooks of a child: their precedence, and others' files left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.files import folder_at, text_at
from support.requirement import requirement
from support.serving import INITIALIZE, INITIALIZED, call, lines

from swarm_mcp.agents.harness.environment import described, plugin_folder, skill_folders
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.servers import (
    HiddenValues,
    own_server,
    project_file,
    project_servers,
    servers_for,
)
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow

ME = "11111111-1111-4111-8111-111111111111"


def query(cwd: Path, **more) -> Query:
    given = {"instance_id": ME, "scope": str(cwd), "task_id": "t1", "run_id": "r1", "role": "tester", "label": "a b"}
    return Query("do it", str(cwd), **{**given, **more})


def wrote(folder: Path, servers: object) -> Path:
    return text_at(folder / ".mcp.json", servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))


@requirement("A-46")
def test_the_coordinators_server_speaks_for_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_DB_PATH", str(tmp_path / "swarm.db"))
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "the-parent")
    server = own_server(query(tmp_path))
    assert server.args[-1] == "serve" and os.path.isabs(server.command)
    assert server.env["SWARM_MCP_INSTANCE_ID"] == ME and server.env["SWARM_MCP_DIRECTORY"] == str(tmp_path)
    assert server.env["SWARM_TASK_ID"] == "t1" and server.env["SWARM_DB_PATH"] == str(tmp_path / "swarm.db")
    # Like Codex's servers: with next to no environment beside these values.
    done = subprocess.run(
        [server.command, *server.args], input=lines(INITIALIZE, INITIALIZED, call(2, "whoami")), timeout=30,
        capture_output=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **server.env}, cwd="/",
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert ME in json.dumps(next(one for one in answers if one.get("id") == 2)["result"])


@requirement("A-45")
def test_the_query_goes_before_ours_and_ours_before_the_projects(tmp_path: Path) -> None:
    file = wrote(tmp_path, {"swarm": {"command": "old"}, "docs": {"command": "docs"}, "mine": {"command": "theirs"}})
    before = file.read_bytes(), file.stat().st_mtime_ns
    found = servers_for(query(tmp_path / "sub", mcp_servers={"mine": McpServer(command="mine")}))
    assert {name: server.command for name, server in found.items() if name != "swarm"} == {
        "docs": "docs", "mine": "mine",
    }  # fmt: skip
    assert found["swarm"].args[-1] == "serve"
    assert servers_for(query(tmp_path, mcp_servers={"swarm": McpServer(url="http://x")}))["swarm"].url == "http://x"
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


@requirement("A-45")
def test_only_the_nearest_file_counts_and_only_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, {"far": {"command": "x"}})
    near = wrote(tmp_path / "a" / "b", {"near": {"command": "x"}})
    (tmp_path / "a/b/c").mkdir()
    assert list(project_servers(str(tmp_path / "a/b/c"))) == ["near"]
    assert list(project_servers(str(tmp_path / "a"))) == ["far"]
    if os.getuid() == 0:
        os.chown(near, 4321, -1)  # root's own are taken from any user
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4321)
    assert project_file(str(near.parent)) != near


def test_a_setting_leaves_the_projects_servers_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(tmp_path, {"docs": {"command": "docs"}})
    monkeypatch.setenv("SWARM_HARNESS_PROJECT_SERVERS", "0")
    assert list(servers_for(query(tmp_path))) == ["swarm"]


@pytest.mark.parametrize("text", [
    "", "{", "[]", '{"mcpServers": []}', '{"mcpServers": {"a": 1, "b": {}}}', "[" * 100000,
    '{"mcpServers": {"a": {"type": "sse", "url": "http://x"}, "b": {"type": "ws"}}}',
])  # fmt: skip
def test_a_file_that_says_nothing_is_none(tmp_path: Path, text: str) -> None:
    wrote(tmp_path, text)
    assert project_servers(str(tmp_path)) == {}


def test_variables_are_put_in_but_secrets_never_where_argv_shows_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PLACE", "/opt")
    monkeypatch.setenv("API_TOKEN", "hush")
    wrote(tmp_path, {
        "one": {
            "command": "${PLACE}/x", "args": ["--at", "${NONE:-there}", "${API_TOKEN}"], "env": {"T": "${API_TOKEN}"},
        },
        "two": {"type": "http", "url": "https://h/${PLACE}", "headers": {"Authorization": "Bearer ${API_TOKEN}"}},
        "three": {"url": "https://h/${UNSET}"},
    })  # fmt: skip
    found = project_servers(str(tmp_path))
    assert found["one"] == McpServer("/opt/x", ("--at", "there", "${API_TOKEN}"), {"T": "hush"})
    assert found["two"] == McpServer(url="https://h//opt", headers={"Authorization": "Bearer hush"})
    assert found["three"].url == "https://h/${UNSET}"
    assert project_servers(str(tmp_path), {"PLACE": "/mine"})["one"].command == "/mine/x"


@requirement("A-53")
def test_our_skill_is_always_among_them_and_can_be_replaced(tmp_path: Path) -> None:
    (ours,) = skill_folders(query(tmp_path))
    name, about = described(ours)
    assert name == "swarm-mcp" and "lock" in about
    own = folder_at(tmp_path / "skills" / "swarm-mcp")
    (own / "SKILL.md").write_text("---\nname: swarm-mcp\ndescription: 'mine'\n---\nbody: no\n")
    assert skill_folders(query(tmp_path, skills=(str(own),))) == (str(own),)
    assert described(str(own)) == ("swarm-mcp", "mine") and described("/none/x") == ("x", "")


def test_what_is_no_skill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no SKILL.md"):
        skill_folders(query(tmp_path, skills=(str(tmp_path),)))
    for place in ("a/s", "b/s"):
        text_at(tmp_path / place / "SKILL.md", "x")
    with pytest.raises(Refused, match="two skills are called 's'"):
        skill_folders(query(tmp_path, skills=(str(tmp_path / "a/s"), str(tmp_path / "b/s"))))


def test_the_plugin_is_made_once_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "state"))
    script = "from swarm_mcp.agents.harness.environment import plugin_folder; print(plugin_folder())"
    racing = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    folders = {process.communicate()[0].strip() for process in racing}
    assert folders == {str(plugin_folder())} and all(process.returncode == 0 for process in racing)
    folder = plugin_folder()
    hooks = folder / "integrations/claude-code/hooks.json"
    before, times = hooks.read_bytes(), {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert plugin_folder() == folder and {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times
    hooks.write_text("{}")
    assert plugin_folder() == folder and hooks.read_bytes() == before


def test_an_address_is_no_secret_and_one_with_a_password_is() -> None:
    hidden = HiddenValues()
    named = {
        purpose: hidden.name_for("swarm", purpose, value)
        for purpose, value in {
            "SWARM_API_URL": "http://127.0.0.1:7777/api", "DATABASE_URL": "postgresql://me:hunter2-9x@db/x",
            "SWARM_API_KEY": "x", "FOLDER": "/srv",
        }.items()
    }  # fmt: skip
    kinds = {purpose: name.rpartition("_")[2] for purpose, name in named.items()}
    assert kinds == {"SWARM_API_URL": "VALUE", "DATABASE_URL": "SECRET", "SWARM_API_KEY": "SECRET", "FOLDER": "VALUE"}
