"""The first answers of a new installation's server, prepared before a session waits for them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.serving import Server, loads_the_sdk

from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.transport import MCP_TOOL
from swarm_mcp.server import handshake_cache, priming

pytestmark = pytest.mark.slow

# As the real clients wrote them, one line each (Claude Code 2.1.330 in two modes, Codex 0.169.0).
ABOUT_CLAUDE = {
    "name": "claude-code", "title": "Claude Code", "version": "2.1.330",
    "description": "Anthropic's agentic coding tool", "websiteUrl": "https://claude.com/claude-code",
}  # fmt: skip
ELICITATION = {"form": {}, "url": {}}


def enveloped(**capabilities) -> dict:
    return {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": ABOUT_CLAUDE,
            "io.modelcontextprotocol/clientCapabilities": {
                "roots": {"listChanged": True}, "elicitation": ELICITATION, **capabilities,
            },
        }
    }  # fmt: skip


TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
CLAUDE = ("server/discover", "prompts/list", "resources/list", "tools/list")
CODEX = [
    ("initialize", {
        "protocolVersion": "2025-06-18", "capabilities": {"experimental": {"codex/auth-change": {}}, "elicitation": ELICITATION},
        "clientInfo": {"name": "codex-mcp-client", "title": "Codex", "version": "0.169.0"},
    }),
    ("tools/list", {"_meta": {"progressToken": 0}}),
]  # fmt: skip
SESSIONS = {
    "claude-code": [
        [(method, enveloped()) for method in CLAUDE],
        [(method, enveloped(**TASKS)) for method in CLAUDE],
    ],
    "codex": [CODEX],
}


class Bare(Server):
    """A server that has not been asked anything yet."""

    def begin_handshake(self) -> None:
        pass


@pytest.mark.parametrize("client", SESSIONS)
@pytest.mark.parametrize("transport", ["command", MCP_TOOL])
def test_a_clients_first_session_is_answered_from_the_record(ground: Ground, client: str, transport: str):
    folder = ground.folder / "marketplace"
    bundle.write(folder, local=True, transports={client: transport})
    assert priming.prime(runtime(client), folder, tell_failure=True) == []
    assert not os.path.exists(ground.database), "nobody registered"
    server = json.loads((folder / "integrations" / client / "mcp.json").read_text())["mcpServers"]["swarm"]
    for questions in SESSIONS[client]:
        with Bare(ground, [server["command"], *server["args"]]) as running:
            for method, params in questions:
                answer = running.ask(method, params)
                assert answer.get("tools") or method != "tools/list", answer
                assert "error" not in answer
            if transport == "command" and Path("/proc/self/maps").exists():
                assert not loads_the_sdk(running)
    assert handshake_cache.forget_records()


def test_a_server_that_cannot_be_prepared_keeps_nobody_from_installing(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    folder = ground.folder / "marketplace"
    assert priming.prime(runtime("codex"), folder) == []
    (told,) = priming.prime(runtime("codex"), folder, tell_failure=True)
    assert "FileNotFoundError" in told
    place = folder / "integrations" / "codex" / "mcp.json"
    place.parent.mkdir(parents=True)
    for command in (["false"], ["true"], ["no-such-command"], ["echo", "nonsense"], ["sleep", "20"]):
        place.write_text(json.dumps({"mcpServers": {"swarm": {"command": command[0], "args": command[1:]}}}))
        monkeypatch.setattr(priming, "SECONDS", 0.5)
        assert priming.prime(runtime("codex"), folder) == []
        assert len(priming.prime(runtime("codex"), folder, tell_failure=True)) == 1, command
    for text in ("", "[]", '{"mcpServers": {}}', '{"mcpServers": {"swarm": {"command": 7, "args": []}}}'):
        place.write_text(text)
        assert len(priming.prime(runtime("codex"), folder, tell_failure=True)) == 1, text
    assert priming.prime(runtime("pi"), folder, tell_failure=True) == []


def test_lists_are_said_not_to_change(ground: Ground):
    """Claude Code would otherwise listen for changes from its first moment, which takes the whole SDK."""
    with Bare(ground) as server:
        said = server.ask("server/discover", enveloped())["capabilities"]
        assert {name: said[name].get("listChanged") for name in ("tools", "prompts", "resources")} == dict.fromkeys(
            ("tools", "prompts", "resources"), False
        )
        assert said["resources"]["subscribe"] is True


def test_uninstalling_leaves_no_record(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    folder = Path(handshake_cache.records_folder())
    folder.mkdir(parents=True)
    (folder / "opening-0123.json").write_text("{}")
    monkeypatch.setenv("PATH", os.defpath)
    ground.swarm("uninstall", "--client", "codex")
    assert folder.exists(), "others may still be served"
    ground.swarm("uninstall", "--dry-run")
    assert folder.exists()
    assert ground.swarm("uninstall").code == 0
    assert not folder.exists()
