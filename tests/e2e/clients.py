"""The two real clients: their set-up, their start, and their ways to write.

Both classes have the same interface, so that a test says `client.replace("notes.md", ...)` and means the tool of that
client's model.
"""

import json
from typing import Any

from swarm_mcp.play import makers
from swarm_mcp.play.models import play

from .client import Call, Client
from .ground import Ground

SERVER_START = 4  # seconds that the plugin's MCP server may take on a busy machine


class ClaudeCode(makers.ClaudeCode, Client):
    harness = "claude"
    prefix = "CC"
    ready = r"accept edits on"
    compacted = r"Compacted|Conversation compacted"
    leave = "/exit"

    def prepare(self) -> None:
        self.reach_loopback()

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        argv = ["claude", "-p", prompt, "--output-format", "stream-json", "--verbose", *self._chosen, *extra]
        if resume or fork:
            argv += ["--resume", str(resume or fork)]
        return [*argv, "--fork-session"] if fork else argv

    # Has releases since 2.1.332 offer a tool for scripts that call the others.
    scripting = ("--settings", json.dumps({"env": {"CLAUDE_CODE_EXPERIMENTAL_CODE_MODE": "1"}}))
    _server = "mcp__plugin_swarm_swarm"
    _permissions = ("--permission-mode", "acceptEdits", "--allowed-tools", f"Bash,{_server}")

    @property
    def _chosen(self) -> tuple[str, ...]:
        return (*self._permissions, *(("--model", self.model) if self.model else ()))

    def interactive_command(self) -> list[str]:
        return ["claude", *self._chosen]

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        made: list[Call] = [{"name": f"{self._server}__{tool}", "input": arguments} for tool, arguments in calls]
        # Tools of servers are not offered until they were looked up.
        query = "select:" + ",".join(call["name"] for call in made)
        return [{"name": "ToolSearch", "input": {"query": query}}, *made]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general-purpose"}
        return [{"name": "Agent", "input": task}]


class Codex(makers.Codex, Client):
    harness = "codex"
    prefix = "CODEX"
    ready = r"Ask Codex to do anything|\? for shortcuts"
    compacted = r"[Cc]ontext compacted"
    leave = "/quit"

    def __init__(self, ground: Ground, model: str = makers.Codex.plain_model) -> None:
        super().__init__(ground)
        self.model = model

    def prepare(self) -> None:
        self.ground.env["E2E_MODEL_KEY"] = "dummy"
        folder = self.ground.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            f"""\
model = "{self.code_model}"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.loopback]
name = "loopback"
base_url = "http://127.0.0.1:{self.models.port}/v1"
wire_api = "responses"
env_key = "E2E_MODEL_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{self.ground.checkout}"]
trust_level = "trusted"
"""
        )

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["resume"] if resume else ["fork"] if fork else []
        session = [str(resume or fork)] if which else []
        return ["codex", "exec", *which, "--json", "-m", self.model, *extra, *session, prompt]

    def interactive_command(self) -> list[str]:
        # The newest model: an older one makes the client open with advice to change it.
        self.model = self.code_model
        return ["codex", "--no-daemon"]

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        # Codex does not wait for servers; a model needs longer for its first word than they to start.
        wait = self.shell(f"sleep {SERVER_START}")
        return [wait, *(call for tool, given in calls for call in self.server_tool("swarm", tool, given))]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"message": play(script), "task_name": name, "fork_turns": "none"}
        return [
            {"name": "spawn_agent", "namespace": "collaboration", "arguments": task},
            {"name": "wait_agent", "namespace": "collaboration", "arguments": {"timeout_ms": 15000}},
        ]


CLIENTS: dict[str, type[Client]] = {client.name: client for client in (ClaudeCode, Codex)}
