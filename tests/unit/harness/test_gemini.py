"""The harness gemini without Gemini CLI: a run's home, a read-only run's rights, its stream's oddities."""

import json
from pathlib import Path

import pytest
from support.files import folder_at
from support.recordings import Recordings, ended, named

from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query
from swarm_mcp.runtimes import bundle

pytestmark = pytest.mark.slow

RECORDED = Recordings("gemini")
SECRET = "hunter2-hunter2-hunter2"
gemini = RECORDED.adapter


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin of this checkout; a run only reads it."""
    made = tmp_path_factory.mktemp("plugin").resolve() / "bundle"
    bundle.write(made, local=True)
    return made


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugin: Path, plugin_of) -> Path:
    """A person's home with settings; the plugin of this checkout."""
    plugin_of("gemini", plugin)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "person"))
    folder = tmp_path / "person" / ".gemini"
    (folder / "skills" / "knots").mkdir(parents=True)
    (folder / "oauth_creds.json").write_text("{}")
    own = {"type": "command", "name": "mine", "command": "true"}
    settings = {
        "hooks": {"BeforeTool": [{"hooks": [own]}]}, "hooksConfig": {"disabled": ["old"]}, "model": {"name": "x"},
        "mcpServers": {"docs": {"command": "docs"}, "swarm": {"command": "an older one"}},
    }  # fmt: skip
    (folder / "settings.json").write_text(f"// mine\n{json.dumps(settings)}\n")
    return folder


def launched(tmp_path: Path, **wanted: object):
    folder = folder_at(tmp_path / "run")
    made = gemini.launch(Query("hello", str(tmp_path), **wanted), folder)
    return made, Path(made.env["GEMINI_CLI_HOME"]) / ".gemini"


def test_a_run_has_the_persons_home_with_settings_of_its_own(home: Path, tmp_path: Path) -> None:
    before = (home / "settings.json").read_bytes()
    skill = folder_at(tmp_path / "knots")
    made, own = launched(
        tmp_path, skills=(str(skill),), append_system_prompt="Be.", max_turns=3,
        mcp_servers={"swarm": McpServer("serve", ("--x",), {"API_TOKEN": SECRET}, cwd="/srv")},
    )  # fmt: skip
    assert (home / "settings.json").read_bytes() == before
    assert (own / "oauth_creds.json").resolve() == home / "oauth_creds.json"
    assert (own / "tmp").resolve() == home / "tmp" and (home / "tmp").is_dir(), "sessions would be lost with the run"
    assert (own / "skills" / "knots").resolve() == skill, "the run's skill goes before the person's"
    text = (own / "settings.json").read_text()
    settings = json.loads(text)
    assert SECRET not in text + " ".join(made.argv)
    server = settings["mcpServers"]["swarm"]
    assert (server["command"], server["args"], server["cwd"], server["trust"]) == ("serve", ["--x"], "/srv", True)
    assert made.env[server["env"]["API_TOKEN"][2:-1]] == SECRET
    assert settings["mcpServers"]["docs"] == {"command": "docs"}
    assert settings["model"] == {"name": "x", "maxSessionTurns": 3}
    assert settings["hooksConfig"] == {"enabled": True, "disabled": ["old", "swarm"]}
    names = [hook["name"] for group in settings["hooks"]["BeforeTool"] for hook in group["hooks"]]
    assert names == ["mine", "swarm-run"]
    said = settings["hooks"]["SessionStart"][-1]["hooks"][0]["command"]
    assert said.startswith("cat ") and "Be." in Path(said[4:]).read_text()


def test_a_person_without_a_home_gets_one_for_sessions_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "nobody"))
    launched(tmp_path)
    assert [path.name for path in (tmp_path / "nobody" / ".gemini").iterdir()] == ["tmp"]


def test_modes(tmp_path: Path) -> None:
    servers = {name: McpServer("x") for name in ("swarm", "client_tools", "files")}

    def argv(mode: str) -> tuple[str, ...]:
        made, own = launched(tmp_path / mode, mode=mode, mcp_servers=servers)
        given = json.loads((own / "settings.json").read_text())["mcpServers"]
        assert ("files" in given) is (mode != READ_ONLY)
        return made.argv

    for mode in ("edit", YOLO, READ_ONLY):
        (tmp_path / mode).mkdir()
    assert "auto_edit" in argv("edit")
    assert "yolo" in argv(YOLO)
    words = argv(READ_ONLY)
    rules = Path(words[words.index("--admin-policy") + 1]).read_text()
    assert "write_file" not in rules and 'toolName = "*"\ndecision = "deny"\npriority = 1\n' in rules
    assert (
        'mcpName = "swarm"\ntoolName = ["dispatch", "commit", "undo", "try"]\ndecision = "deny"\npriority = 900'
        in rules
    )
    assert 'mcpName = "files"' not in rules


def test_a_reader_whose_rules_are_ignored_is_ended(tmp_path: Path) -> None:
    line = "Security Warning: Ignoring --admin-policy because system policies are already defined in /etc/x"
    (event,) = gemini.parse_stderr(line, {"query": Query("p", str(tmp_path), mode=READ_ONLY)})
    assert event.data["final"] and event.data["category"] == "unsupported"
    assert gemini.parse_stderr(line, {"query": Query("p", str(tmp_path))}) == []


def test_pieces_are_one_message_until_something_else_comes() -> None:
    def piece(text: str) -> str:
        return json.dumps({"type": "message", "role": "assistant", "content": text, "delta": True})

    call = json.dumps({"type": "tool_use", "tool_id": "1", "tool_name": "t", "parameters": {}})
    found = RECORDED.parsed([piece("one "), piece("two"), call, piece("three")])
    assert [e.data["content"] for e in found if e.kind == "message"] == ["one two", "three"]
    assert [named(e) for e in found if e.kind != "custom"] == ["message", "tool_start", "message"]


def test_what_ends_without_a_result_has_failed() -> None:
    assert gemini.error_of(ended([], 0)) == ("process_crashed", "gemini ended without a result")
    turns = "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns."
    assert gemini.error_of(ended([], 53, turns)) == ("budget", turns)
