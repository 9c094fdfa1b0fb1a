"""Cline: the entries for its plugin and its servers, and the writes of its tools."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.sessions import captured, hook_core

from swarm_hook_core.check import Writes
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.cline import PLUGIN_FILE, folder, servers_file

pytestmark = pytest.mark.thorough

CLINE = runtime("cline")
CORE = hook_core("cline")
PATCH = "*** Update File: a.md\n@@\n-x\n+y\n*** Update File: b.md\n*** Move to: c.md\n@@\n-x\n+y\n*** Delete File: d.md"


@pytest.fixture(scope="module")
def marketplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The local folder, without files that no test here starts."""
    place = tmp_path_factory.mktemp("marketplace")
    files = bundle.contents(place)
    for name in ("install.json", "package.json", PLUGIN_FILE, "integrations/cline/mcp.json"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(files[name])
    return place


@pytest.fixture(autouse=True)
def cline(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLINE_DIR", str(tmp_path / ".cline"))
    for name in ("CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / ".cline"


def test_what_is_found_amiss(marketplace: Path, cline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def found() -> list[str]:
        return [f"{one.status}: {one.message}" for one in CLINE.look(marketplace, Steps()).findings]

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert found() == ["warn: not installed"]
    CLINE.install(marketplace, Steps())
    assert found() == [f"ok: version {CLINE.version()}, at {marketplace}"]
    servers_file().write_text("{}")
    assert found()[1].startswith("warn: ") and "does not name it" in found()[1]
    (tmp_path / "bin" / "node").unlink()
    for name in ("CLINE_JS_RUNTIME_PATH", "BUN_EXEC_PATH", "npm_node_execpath", "NODE"):
        monkeypatch.delenv(name, raising=False)
    assert "Node.js" in found()[0] and found()[0].startswith("fail: ")
    settings = cline / "data" / "settings" / "global-settings.json"
    settings.write_text(json.dumps({"disabledPlugins": [str(marketplace / PLUGIN_FILE)]}))
    assert "switched off" in found()[0] and found()[0].startswith("fail: ")
    package = folder() / "package.json"
    package.write_text(package.read_text().replace(str(marketplace), "/nowhere"))
    assert "/nowhere" in found()[0] and found()[0].startswith("fail: ")


def test_the_folder_is_a_package_of_cline_s_with_its_skills(marketplace: Path):
    files = bundle.contents(None)
    (plugin,) = json.loads(files["package.json"])["cline"]["plugins"]
    assert plugin["paths"] == [f"./{PLUGIN_FILE}"] and PLUGIN_FILE in files
    assert "integrations/cline/package.json" not in files, "Cline would look for skills beside that"
    assert "skills/swarm/SKILL.md" in files and json.loads(files["package.json"])["pi"]


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("editor", {"path": "a.md", "new_text": "x"}, ["a.md"]),
        ("editor", {"path": "a.md", "old_text": "x", "new_text": "y", "insert_line": None}, ["a.md"]),
        ("apply_patch", {"input": f"*** Begin Patch\n{PATCH}\n*** End Patch"}, ["a.md", "b.md", "c.md", "d.md"]),
        ("apply_patch", f"apply_patch <<'EOF'\n*** Begin Patch\n{PATCH}\n*** End Patch\nEOF", ["a.md", "b.md", "c.md", "d.md"]),
        ("apply_patch", {"input": "*** Add File:   no envelope.md \r\n+x"}, ["no envelope.md"]),
        ("apply_patch", {"input": "no patch"}, []),
        ("editor", {"file": "a.md"}, []),
    ],
)  # fmt: skip
def test_paths(tool: str, given: Any, paths: list[str]):
    assert Writes(CORE.config, ToolCall(tool, given, cwd="/repo")).paths == [f"/repo/{path}" for path in paths]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"commands": ["one"]}, "one"),
        ({"commands": "one"}, "one"),
        ({"command": "one"}, "one"),
        ({"cmd": "one"}, "one"),
        ("one", "one"),
        ({"command": "touch", "args": ["a b"]}, "touch 'a b'"),
        ({"commands": {"command": "touch", "args": ["a"]}}, "touch a"),
        (["cd sub", "pwd > p"], "bash -c 'cd sub'\nbash -c 'pwd > p'"),
        ({"commands": ["cat > h <<-'END'", "text", " END ", {"command": "id"}]},
         "bash -c 'cat > h <<-'\"'\"'END'\"'\"'\ntext\n END '\nbash -c id"),
        ({"commands": ["cat <<END", {"command": "id"}, "END"]}, "bash -c 'cat <<END'\nbash -c id\nbash -c END"),
        ({"commands": [1, None]}, ""),
        ({}, ""),
        (None, ""),
    ],
)  # fmt: skip
def test_the_commands_of_a_call(given: Any, text: str, tmp_path: Path):
    read = CORE.config.dialect.read(captured("cline", "PreToolUse.run_commands", tmp_path, tool_input=given))
    assert (read["tool_name"], read["tool_input"]) == ("Bash", {"command": text})


def test_tools_of_servers_have_their_name_in_two_parts(tmp_path: Path):
    names = {"files__write_file": "mcp__files__write_file", "fetch_web_content": "fetch_web_content"}
    for name, known in names.items():
        assert (
            CORE.config.dialect.read(captured("cline", "PreToolUse.editor", tmp_path, tool_name=name))["tool_name"]
            == known
        )


def test_the_home_is_where_cline_has_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CLINE_DIR")
    assert folder() == Path(os.path.expanduser("~/.cline/plugins/swarm"))
    monkeypatch.setenv("CLINE_DATA_DIR", "/data")
    assert str(servers_file()) == "/data/settings/cline_mcp_settings.json"
    monkeypatch.setenv("CLINE_MCP_SETTINGS_PATH", "/servers.json")
    assert str(servers_file()) == "/servers.json"
