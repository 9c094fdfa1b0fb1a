"""What every client integration offers, and how it talks to the client's own command."""

from __future__ import annotations

import json
import shutil
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from swarm_hook_core.faults import describe
from swarm_mcp.errors import ClientFailed

PLUGIN = "swarm"
MARKETPLACE = "swarm"
PLUGIN_ID = f"{PLUGIN}@{MARKETPLACE}"
COMMAND_SECONDS = 90


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `status` is ok, info, warn or fail; `mend` the command that helps."""

    name: str
    status: str
    message: str
    mend: str = ""
    details: dict = field(default_factory=dict)


@dataclass(frozen=True)
class HookCommand:
    """A hook as the client would run it: a shell command line, and what the client adds to the environment."""

    event: str
    command: str
    environment: dict[str, str]


@dataclass(frozen=True)
class HookTool:
    """A hook that is a tool of the plugin's own MCP server.

    How the client starts that server, which tool it calls, and the tool's input with ``${field}`` of the
    payload in it.
    """

    event: str
    server: list[str]
    tool: str
    input: dict


class Client(ABC):
    """One agent client on this machine."""

    name: str
    title: str
    executable: str
    has_subagents = False  # whether it tells hooks of the agents that a session starts

    def program(self) -> str:
        """The client's command on PATH; empty where it is not installed."""
        return shutil.which(self.executable) or ""

    @abstractmethod
    def traces(self) -> bool:
        """Whether this client's own files show that it has the plugin, told without running it."""

    @abstractmethod
    def install(self, marketplace: Path) -> list[str]:
        """Put the plugin from `marketplace` in, or bring it up to date; what was done, in words."""

    @abstractmethod
    def uninstall(self) -> list[str]:
        """Take the plugin out, with all it left behind; what was done, in words."""

    @abstractmethod
    def findings(self, marketplace: Path) -> list[Finding]:
        """Whether the plugin is there, enabled, current, and its hooks will run."""

    @abstractmethod
    def hook_commands(self) -> list[HookCommand]:
        """The hooks of the installed plugin, as the client would run them."""

    @abstractmethod
    def plugin_root(self) -> Path | None:
        """The folder of the installed plugin that sessions run from; None where it is not installed."""

    def hook_tools(self) -> list[HookTool]:
        """The hooks of the installed plugin that are tools of its server."""
        root = self.plugin_root()
        if root is None:
            return []
        folder = root / "integrations" / self.name
        try:
            wired = json.loads((folder / "hooks.json").read_text(encoding="utf-8"))["hooks"]
            (server,) = json.loads((folder / "mcp.json").read_text(encoding="utf-8"))["mcpServers"].values()
            argv = [server["command"], *(_in_plugin(word, root) for word in server["args"])]
            return [
                HookTool(event, argv, hook["tool"], dict(hook["input"]))
                for event, groups in wired.items()
                for group in groups
                for hook in group["hooks"]
                if hook.get("type") == "mcp_tool"
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ClientFailed(f"the hooks in {folder} cannot be understood ({describe(error)})") from error

    @abstractmethod
    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        """What the client would send its PreToolUse hook for a write to `file`."""

    def shell_payload(self, session_id: str, cwd: str, command: str) -> dict:
        """The same for a shell command; both clients call that tool Bash."""
        payload = self.write_payload(session_id, cwd, cwd)
        return {**payload, "tool_name": "Bash", "tool_input": {"command": command}}

    # ---------------------------------------------------------------- innards

    @abstractmethod
    def _marketplace(self) -> str:
        """Where the client has the marketplace of our name from; empty where it has none."""

    def _point_to(self, marketplace: Path) -> list[str]:
        """Make `marketplace` the client's source of the plugin; what was done, in words."""
        source = self._marketplace()
        if source == str(marketplace):
            return []
        done = []
        if source:
            self._call("plugin", "marketplace", "remove", MARKETPLACE, "--json")
            done.append(f"removed the marketplace of the same name at {source}")
        self._call("plugin", "marketplace", "add", str(marketplace), "--json")
        return [*done, f"added the marketplace {marketplace}"]

    def _call(self, *words: str, accept: tuple[int, ...] = (0,)) -> tuple[int, dict | list | None, str]:
        """Run the client's command; exit code, parsed standard output, and its complaint if any."""
        argv = [self.program() or self.executable, *words]
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=COMMAND_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClientFailed(f"`{' '.join([self.executable, *words])}` could not be run: {error}") from error
        try:
            parsed = json.loads(done.stdout)
        except (ValueError, RecursionError):
            parsed = None
        complaint = (done.stderr.strip() or done.stdout.strip()).splitlines()
        text = complaint[-1][:300] if complaint else f"exit code {done.returncode}"
        if done.returncode not in accept:
            if isinstance(parsed, dict) and parsed.get("message"):
                text = str(parsed["message"])
            raise ClientFailed(f"`{' '.join([self.executable, *words])}` failed: {text}")
        return done.returncode, parsed, text


def _in_plugin(word: str, root: Path) -> str:
    """An argument of the plugin's server, as the client makes it out."""
    word = word.replace("${CLAUDE_PLUGIN_ROOT}", str(root))
    return str(root / word) if word.startswith("./") else word


def same_tree(left: Path, right: Path, names: list[str]) -> bool:
    """Whether both folders hold the same bytes under all of `names`."""
    for name in names:
        try:
            if (left / name).read_bytes() != (right / name).read_bytes():
                return False
        except OSError:
            return False
    return True
