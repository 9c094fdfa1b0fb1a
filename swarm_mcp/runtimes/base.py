"""What every runtime offers the coordinator, and how it talks to the client's own command."""

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
# What reading a JSON file of another shape than was written raises.
_NOT_AS_WRITTEN = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
ROOT_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "SWARM_PLUGIN_ROOT")  # by which commands find the plugin


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `status` is ok, info, warn or fail; `mend` the command that helps."""

    name: str
    status: str
    message: str
    mend: str = ""
    details: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Terminal:
    """The process in front of one session, and the pane it was started in (empty for none)."""

    pid: int
    started: str
    pane: dict[str, str]


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


@dataclass(frozen=True)
class CheckTool:
    """How a client that can ask a tool of an MCP server in a hook asks ours.

    `server`: what it calls the plugin's server. `session_id`: where a hook's command finds the session's id without
    reading its input, as a word of the shell. `fields` of the payload that are asked besides the usual: a variable
    that a payload lacks makes some clients drop the whole hook.
    """

    server: str
    session_id: str
    fields: tuple[str, ...] = ()


class Runtime(ABC):
    """One agent client, as it is on this machine.

    `name` is also that of its folder under ``integrations/`` and the word in labels; `title` is for people,
    `executable` its command, `harness` the one that starts sessions of it, `shell_tool` its tool for commands.
    """

    name: str
    title: str
    executable: str
    harness: str
    shell_tool = "Bash"
    manifests: tuple[str, ...] = ()  # folders of the bundle's root that are the client's own
    has_subagents = False  # whether it tells hooks of the agents that a session starts
    check_tool: CheckTool | None = None  # how its check may ask a tool of the session's server; None where it cannot
    first_questions: tuple[tuple[str, dict], ...] = ()  # what it asks a server at the start of every session
    call_mark = ""  # a key of a tool call's metadata that is there where this client says which session calls
    # Variables that say which of its sessions a process is part of, as its hooks and shells were seen to have them; a
    # star stands for any end. A worker that has them would take that session for its own.
    session_variables: tuple[str, ...] = ()
    kept_variables: tuple[str, ...] = ()  # credentials and settings that the stars above would take along
    earlier_check = ""  # the script that checked a write before `hook.py`, which running sessions may have wired

    @property
    def folder(self) -> str:
        """The runtime's folder in a bundle and in the source."""
        return f"integrations/{self.name}"

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

    def finish_bundle(self, files: dict[str, bytes], interpreter: str) -> None:  # noqa: B027
        """Change what is this client's own in the `files` of a bundle (name -> content); most have nothing.

        `interpreter`: the Python that a local bundle names; empty in a portable one.
        """

    def terminal_of(self, session_id: str) -> Terminal | None:
        """The terminal that shows a session of the client's background server; None where it cannot be told."""
        return None

    @abstractmethod
    def plugin_root(self) -> Path | None:
        """The folder of the installed plugin that sessions run from; None where it is not installed."""

    def hook_commands(self) -> list[HookCommand]:
        """The hooks of the installed plugin that are commands, as the client would run them. Raises ClientFailed."""
        root = self.plugin_root()
        environment = {variable: str(root) for variable in ROOT_VARIABLES}
        found = self._wired(root, "command") if root else []
        return [HookCommand(event, str(hook.get("command")), environment) for event, hook in found]

    def hook_tools(self) -> list[HookTool]:
        """The hooks of the installed plugin that are tools of its server. Raises ClientFailed."""
        root = self.plugin_root()
        found = self._wired(root, "mcp_tool") if root and self.check_tool else []
        if root is None or not found:
            return []
        try:
            tree = json.loads((root / self.folder / "mcp.json").read_text(encoding="utf-8"))
            (server,) = tree["mcpServers"].values()
            argv = [server["command"], *(_in_plugin(word, root) for word in server["args"])]
            return [HookTool(event, argv, hook["tool"], dict(hook["input"])) for event, hook in found]
        except _NOT_AS_WRITTEN as error:
            raise ClientFailed(f"{root / self.folder} cannot be understood ({describe(error)})") from error

    @abstractmethod
    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        """What the client would send its PreToolUse hook for a write to `file`."""

    def shell_payload(self, session_id: str, cwd: str, command: str) -> dict:
        """The same for a shell command."""
        payload = self.write_payload(session_id, cwd, cwd)
        return {**payload, "tool_name": self.shell_tool, "tool_input": {"command": command}}

    # ---------------------------------------------------------------- innards

    def _wired(self, root: Path, kind: str) -> list[tuple[str, dict]]:
        """``(event, hook)`` of each hook of this kind that the plugin at `root` wires. Raises ClientFailed."""
        path = root / self.folder / "hooks.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            hooks = [
                (event, dict(hook))
                for event, groups in tree["hooks"].items()
                for group in groups
                for hook in group["hooks"]
            ]
            return [(event, hook) for event, hook in hooks if hook["type"] == kind]
        except _NOT_AS_WRITTEN as error:
            raise ClientFailed(f"{path} cannot be understood ({describe(error)})") from error

    def _marketplace(self) -> str:
        """Where the client has the marketplace of our name from; empty where it has none, or knows no such thing."""
        return ""

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


def object_in(path: Path) -> dict:
    """Return the JSON object in a file; empty where there is none that can be read."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _in_plugin(word: str, root: Path) -> str:
    """An argument of the plugin's server, as the client makes it out."""
    word = word.replace("${CLAUDE_PLUGIN_ROOT}", str(root))
    return str(root / word) if word.startswith("./") else word
