"""A user with an MCP server called `swarm` keeps it, and ours gets another name."""

import json
from pathlib import Path

import pytest
from support.files import text_at

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import bundle, client_settings, runtime, users_file
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.users_file import RECORD

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

THEIRS = '{"mcpServers": {"%s": {"command": "npx", "args": ["mine", "serve"]}}}'
TABLE = '[mcp_servers."%s"] # mine\ncommand = "npx"\nargs = ["mine", "serve"]\n'
# client -> its file of servers in the home, and a server of the user's in there
FILES = {
    "codex": (".codex/config.toml", TABLE),
    "copilot": (".copilot/mcp-config.json", THEIRS),
    "gemini": (".gemini/settings.json", "// mine\n" + THEIRS),
    "qwen": (".qwen/settings.json", THEIRS),
    "grok": (".grok/config.toml", TABLE),
    "cline": (".cline/data/settings/cline_mcp_settings.json", THEIRS),
    "hermes": (".hermes/config.yaml", "# mine\nmcp_servers:\n  %s: {command: npx}\n"),
    "auggie": (".augment/settings.json", THEIRS),
    "cursor": (".cursor/mcp.json", THEIRS),
    "pi": (".pi/agent/mcp.json", THEIRS),
}
# A server of ours that a user has entered by hand is another name for the same tools.
SAME = {
    "codex": '[mcp_servers.swarm]\ncommand = "swarm-mcp"\nargs = ["serve"]\n[other]\n',
    "gemini": '{"mcpServers": {"swarm": {"command": "/home/me/.local/bin/swarm-mcp", "args": ["serve"]}}}',
}


@pytest.fixture(autouse=True)
def here(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "QWEN_HOME", "GROK_HOME", "CLINE_DIR", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def put(client: str, text: str, home: Path) -> Path:
    return text_at(home / FILES[client][0], text)


@pytest.mark.parametrize("client", FILES)
def test_a_name_that_is_taken_is_left_to_the_user(client: str, home: Path, tmp_path: Path) -> None:
    names, clients = client_settings.other_names, [runtime(client)]
    assert names(clients, tmp_path) == {}
    put(client, FILES[client][1] % "other", home)
    assert names(clients, tmp_path) == {}
    path = put(client, FILES[client][1] % "swarm", home)
    assert names(clients, tmp_path) == {client: "swarm-locks"}
    warned = client_settings.server_finding(clients[0], tmp_path)
    assert warned and warned.status == "warn" and str(path) in warned.message and f"--client {client}" in warned.mend
    (tmp_path / RECORD).write_text(json.dumps({"name": "swarm", "files": [], "servers": {client: "swarm-locks"}}))
    fine = client_settings.server_finding(clients[0], tmp_path)
    assert fine and fine.status == "ok" and str(path) in fine.message and "swarm-locks" in fine.message
    path.unlink()
    assert names(clients, tmp_path) == {client: "swarm-locks"}, "once given it stays: a project may have the other"
    put(client, FILES[client][1] % "swarm-locks", home)
    assert names(clients, tmp_path) == {}, "back to the first that is free"


@pytest.mark.parametrize("client", SAME)
def test_a_server_of_ours_that_a_user_has_entered_is_no_other(client: str, home: Path) -> None:
    put(client, SAME[client], home)
    assert runtime(client).users_servers() == {}


def test_what_a_project_names_counts_where_the_installation_is_done(tmp_path: Path) -> None:
    text_at(tmp_path / ".gemini" / "settings.json", THEIRS % "swarm")
    assert list(runtime("gemini").users_servers()) == ["swarm"]


@pytest.mark.parametrize(
    "text",
    ["[a.b]\nx = 1\n", "[a.b.c]\nx = 1\n", "a.b = 1\n", "a = {b = 1}\n", '["a"."b"]\n', "[a]\nb = {}\n", "[a]\nb.x = 1\n"],
)  # fmt: skip
def test_a_table_is_seen_in_every_spelling(text: str) -> None:
    assert users_file.is_foreign(text, "a", "b", "") and not users_file.is_foreign(text, "a", "other", "")


def test_a_bundle_has_the_name_wherever_a_client_reads_it(tmp_path: Path) -> None:
    named = dict.fromkeys(["codex", "qwen", "gemini", "copilot", "hermes", "cline", "grok"], "swarm-locks")
    files = bundle.contents(tmp_path, named)
    for name in ("integrations/codex/mcp.json", "codex/integrations/codex/mcp.json", "integrations/cline/mcp.json",
                 "integrations/copilot/mcp.json", "integrations/hermes/mcp.json", "qwen-extension.json",
                 "integrations/gemini/gemini-extension.json"):  # fmt: skip
        assert list(json.loads(files[name])["mcpServers"]) == ["swarm-locks"], name
    assert list(json.loads(files["integrations/opencode/mcp.json"])["mcpServers"]) == ["swarm"]
    assert b"mcp__swarm[-_]locks__" in files["integrations/qwen/hooks.json"]
    assert b"mcp__swarm__" not in files["integrations/hermes/hooks.json"]
    assert json.loads(files[RECORD])["servers"] == named


@pytest.mark.parametrize("client", ["cline", "cursor", "grok"])
def test_both_are_in_the_file_and_only_ours_goes(client: str, home: Path, tmp_path: Path) -> None:
    before = FILES[client][1] % "swarm"
    path, place, installer = put(client, before, home), tmp_path / "bundle", runtime(client)
    bundle.write(place, local=True, servers=client_settings.other_names([installer], place))
    for _again in range(2):
        steps = Steps()
        installer.install(place, steps)
    assert steps.done == [] and "npx" in path.read_text() and "swarm-locks" in path.read_text()
    found = [one for one in installer.look(place, Steps()).findings if "server" in one.name]
    assert found == [], "nothing is amiss"
    installer.uninstall(Steps())
    assert path.read_text() == before


def test_a_name_in_the_file_from_before_is_replaced(home: Path, tmp_path: Path) -> None:
    """An installation had the name `swarm` before the user took it for another server."""
    cline, place = runtime("cline"), tmp_path / "bundle"
    bundle.write(place, local=True)
    cline.install(place, Steps())
    path = put("cline", THEIRS % "swarm", home)
    with pytest.raises(SwarmError, match="not swarm's"):
        cline.install(place, Steps())
    bundle.write(place, local=True, servers=client_settings.other_names([cline], place))
    cline.install(place, Steps())
    assert list(json.loads(path.read_text())["mcpServers"]) == ["swarm", "swarm-locks"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"type": "local", "command": ["npx", "mine"]}, True), ({"type": "remote", "url": "http://127.0.0.1/"}, True),
        ({"type": "local", "command": ["/bin/swarm-mcp", "serve"]}, False),
    ],
)  # fmt: skip
def test_of_opencode_whose_plugin_takes_a_free_name_itself_it_is_said(entry: dict, said: bool, home: Path) -> None:
    opencode = runtime("opencode")
    file = text_at(home / ".config" / "opencode" / "opencode.json", json.dumps({"mcp": {"swarm": entry}}))
    found = {one.name: one.message for one in opencode.beside(home)}
    assert ("opencode server name" in found) == said
    assert not said or str(file) in found["opencode server name"]
