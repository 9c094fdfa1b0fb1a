"""The two real clients: their set-up, their start, and their ways to write.

Both classes have the same interface, so that a test says `client.replace("notes.md", ...)` and means the tool of that
client's model.
"""

import json
from pathlib import Path
from typing import Any

from .client import Call, Client
from .ground import Ground
from .models import play

SERVER_START = 4  # seconds that the plugin's MCP server may take on a busy machine


class ClaudeCode(Client):
    name = "claude-code"
    harness = "claude"
    prefix = "CC"
    requests = "/messages"
    ready = r"accept edits on"
    compacted = r"Compacted|Conversation compacted"
    leave = "/exit"
    model = ""  # the client's own choice

    def prepare(self) -> None:
        key = "dummy-key-for-loopback"
        self.ground.env.update(
            ANTHROPIC_BASE_URL=f"http://127.0.0.1:{self.models.port}",
            ANTHROPIC_API_KEY=key,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
            DISABLE_TELEMETRY="1",
        )
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
            "projects": {str(self.ground.checkout): {"hasTrustDialogAccepted": True}},
        }
        (self.ground.home / ".claude.json").write_text(json.dumps(settings))

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

    def create(self, path: str, text: str) -> Call:
        return {"name": "Write", "input": {"file_path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "Edit", "input": {"file_path": self.absolute(path), "old_string": old, "new_string": new}}

    def read(self, path: str) -> Call:
        return {"name": "Read", "input": {"file_path": self.absolute(path)}}

    def look(self, path: str) -> list[Call]:
        return [self.read(path)]

    def change(self, path: str, old: str, new: str) -> list[Call]:
        return [self.read(path), self.replace(path, old, new)]

    def change_cell(self, path: str, cell: str, source: str) -> list[Call]:
        """The notebook tool is looked up before its first use, and wants the file to have been read."""
        change = {"notebook_path": self.absolute(path), "cell_id": cell, "new_source": source}
        search = {"name": "ToolSearch", "input": {"query": "select:NotebookEdit"}}
        return [search, self.read(path), {"name": "NotebookEdit", "input": change}]

    def shell(self, command: str) -> Call:
        return {"name": "Bash", "input": {"command": command, "description": "As scripted"}}

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        made: list[Call] = [{"name": f"{self._server}__{tool}", "input": arguments} for tool, arguments in calls]
        # Tools of servers are not offered until they were looked up.
        query = "select:" + ",".join(call["name"] for call in made)
        return [{"name": "ToolSearch", "input": {"query": query}}, *made]

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"description": f"one {name}", "prompt": play(script), "subagent_type": "general-purpose"}
        return [{"name": "Agent", "input": task}]


class Codex(Client):
    name = harness = "codex"
    prefix = "CODEX"
    requests = "/responses"
    ready = r"Ask Codex to do anything|\? for shortcuts"
    compacted = r"[Cc]ontext compacted"
    leave = "/quit"

    plain_model = "gpt-5.5"  # gets `apply_patch` and `exec_command` as tools of their own
    code_model = "gpt-6.1-sol"  # gets one tool that runs JavaScript, with the others inside

    def __init__(self, ground: Ground, model: str = plain_model) -> None:
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

    def patch(self, body: str) -> Call:
        """A call of apply_patch with `body` between the markers."""
        text = f"*** Begin Patch\n{body}\n*** End Patch\n"
        if self.model == self.code_model:
            return self.script(f"text(await tools.apply_patch({json.dumps(text)}));")
        return {"name": "apply_patch", "input": text}

    def script(self, code: str) -> Call:
        """Return the call of a script (JavaScript, with the other tools in `tools`), as `code_model` makes it."""
        return {"name": "exec", "input": code}

    def create(self, path: str, text: str) -> Call:
        lines = "\n".join(f"+{line}" for line in text.splitlines())
        return self.patch(f"*** Add File: {path}\n{lines}")

    def replace(self, path: str, old: str, new: str) -> Call:
        return self.patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}")

    def shell(self, command: str, workdir: Path | None = None) -> Call:
        arguments = {"cmd": command, **({"workdir": str(workdir)} if workdir else {})}
        if self.model == self.code_model:
            return self.script(f"text(await tools.exec_command({json.dumps(arguments)}));")
        return {"name": "exec_command", "arguments": arguments}

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        # Codex does not wait for servers; a model needs longer for its first word than they to start.
        wait = self.shell(f"sleep {SERVER_START}")
        return [wait, *(self._swarm_tool(tool, arguments) for tool, arguments in calls)]

    def _swarm_tool(self, tool: str, arguments: dict[str, Any]) -> Call:
        if self.model == self.code_model:
            call = f"tools.mcp__swarm__{tool}({json.dumps(arguments, ensure_ascii=False)})"
            return self.script(f"text(JSON.stringify(await {call}));")
        return {"name": tool, "namespace": "mcp__swarm", "arguments": arguments}

    def sub_agent(self, script: str, name: str = "errand") -> list[Call]:
        task = {"message": play(script), "task_name": name, "fork_turns": "none"}
        return [
            {"name": "spawn_agent", "namespace": "collaboration", "arguments": task},
            {"name": "wait_agent", "namespace": "collaboration", "arguments": {"timeout_ms": 15000}},
        ]


CLIENTS: dict[str, type[Client]] = {client.name: client for client in (ClaudeCode, Codex)}
