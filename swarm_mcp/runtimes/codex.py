"""Codex: copies the plugin into its cache and runs its hooks only when the whole copy is trusted.

Its app-server (``codex app-server``) is the supported way to list and trust hooks without a terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_hook_core.process import start_time
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.mcp.client import ANSWER_SECONDS, RpcChild
from swarm_mcp.runtimes.base import MARKETPLACE, PLUGIN_ID, Finding, Look, Runtime, Steps, Terminal, as_json
from swarm_mcp.runtimes.client_settings import servers_in_toml
from swarm_mcp.runtimes.installed import YES, Coverage, HookCommand, Installed, Verified, in_quotes
from swarm_mcp.runtimes.json_editor import list_of, object_of
from swarm_mcp.runtimes.users_file import differing, object_in, read_files, read_record, remove_folder
from swarm_mcp.store.user_interface import pane_in

# ---------------------------------------------------------------- the terminal of a session in the shared daemon

# Interactive `codex` runs its sessions in one background app-server. Every hook gets the environment of the terminal
# that happened to start it, and a thread stays for 60 s after its terminal has gone. The control socket (WebSocket over
# a Unix socket in CODEX_HOME, one JSON-RPC message a text frame) lists the MCP servers of a thread. One of them,
# ``codex_tui``, is served by the thread's own terminal: the process that listens on its port is that terminal.
#
# Measured on codex-cli 0.169.0. None of this is documented: any unexpected answer means "not known". The session then
# ends with the daemon's own end of it, or with its lease.

TERMINAL_SECONDS = 1.0  # for one answer
# The daemon reports the client that initialised last in the user agent of its model requests. Those
# requests are the terminal's, so they must go on saying so; a name of ours there would be wrong.
CLIENT_NAME = "codex-tui"


def terminal_of(session_id: str) -> Terminal | None:
    """Return the terminal that shows this session, or None if it is not known."""
    home = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    try:
        port = _terminal_port(os.path.join(home, "app-server-control", "app-server-control.sock"), session_id)
        pid = 0
        if port:
            pid = _listener(port)
    except (OSError, ValueError, KeyError, TypeError, ClientFailed):  # an undocumented answer changed
        return None
    started = ""
    if pid:
        started = start_time(pid)
    if started in ("", "-"):
        return None
    return Terminal(pid, started, _pane_of(pid))


def _terminal_port(path: str, session_id: str) -> int:
    with _ControlSocket(path) as control:
        answer = control.call("initialize", {"clientInfo": {"name": CLIENT_NAME, "version": _version(path)}})
        if "result" not in answer:
            return 0
        control.send({"method": "initialized", "params": {}})
        query = {"threadId": session_id, "serverName": "codex_tui", "detail": "toolsAndAuthOnly"}
        answer = control.call("mcpServerStatus/list", query)
    for server in answer.get("result", {}).get("data", []):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/?", str(server.get("httpOrigin") or ""))
        if server.get("name") == "codex_tui" and found:
            return int(found[1])
    return 0


def _version(path: str) -> str:
    """The daemon's release, as its folder names it, for the user agent."""
    record = os.path.join(os.path.dirname(os.path.dirname(path)), "app-server-daemon", "daemon.pid")
    try:
        with open(record, encoding="utf-8") as file:
            pid = json.load(file)["pid"]
        found = re.search(r"(\d+\.\d+\.\d+)", os.readlink(f"/proc/{pid}/exe"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found:
        return found[1]
    return "0.169.0"


def _listener(port: int) -> int:
    """Return the pid of the process of this user that listens on this loopback port, or 0."""
    wanted = f":{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file]
    inodes = {f"socket:[{row[9]}]" for row in rows if len(row) > 9 and row[3] == "0A" and row[1].endswith(wanted)}
    for name in os.listdir("/proc") if inodes else ():
        if not name.isdigit():
            continue
        try:
            for handle in os.scandir(f"/proc/{name}/fd"):
                if os.readlink(handle.path) in inodes:
                    return int(name)
        except OSError:  # ended, or of another user
            continue
    return 0


def _pane_of(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            items = file.read().decode("utf-8", "replace").split("\0")
    except OSError:  # gone, or no /proc
        return {}
    return pane_in(dict(item.partition("=")[::2] for item in items))


class _ControlSocket:
    """A WebSocket client for one exchange, on the daemon's Unix socket."""

    def __init__(self, path: str):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TERMINAL_SECONDS)
        self._received = b""
        self._count = 0
        try:
            self._socket.connect(path)
            self._socket.sendall(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: c3dhcm0tbWNwLXNlc3Npb24=\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            while b"\r\n\r\n" not in self._received:
                self._receive()
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise ClientFailed("the daemon did not accept a control connection")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> _ControlSocket:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params})
        while True:
            message = self._message()
            if message.get("id") == self._count and "method" not in message:
                return message

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        # Clients must mask; a zero mask leaves the bytes as they are.
        if len(data) > 125:
            length = struct.pack(">BH", 0xFE, len(data))
        else:
            length = bytes([0x80 | len(data)])
        self._socket.sendall(b"\x81" + length + b"\0\0\0\0" + data)

    def _message(self) -> dict[str, Any]:
        while True:
            first, second = self._take(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._take(8))
            data = self._take(length)
            if first & 0x0F == 1:
                parsed = json.loads(data)
                if isinstance(parsed, dict):
                    return parsed

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            self._receive()
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def _receive(self) -> None:
        chunk = self._socket.recv(65536)
        if not chunk:
            raise ClientFailed("the daemon closed the control connection")
        self._received += chunk


# The folder of a local bundle that Codex installs as the plugin. It holds the files that Codex reads, and no code.
#
# Before it starts a hook, Codex reads all files of its copy of the plugin to compare them with the trusted ones. The
# whole plugin would cost each call several milliseconds. So the copy is small, and its hooks name the bundle's own
# folder. The code runs in place there, as it does for Claude Code.

_FOLDER = "codex/"
_MARKETPLACE = ".agents/plugins/marketplace.json"
_HOOKS = "integrations/codex/hooks.json"
_READ_BY_CODEX = (".codex-plugin/", _HOOKS, "integrations/codex/mcp.json", "skills/")
_ROOT = "${CLAUDE_PLUGIN_ROOT}"


def add(files: dict[str, bytes], place: Path) -> None:
    """Add the folder to the `files` of a bundle that is to lie in `place`, and have Codex's marketplace name it."""
    small = {name: content for name, content in files.items() if name.startswith(_READ_BY_CODEX)}
    root = json.dumps(in_quotes(place))[1:-1]  # within a JSON string
    small[_HOOKS] = small[_HOOKS].replace(_ROOT.encode(), root.encode())
    files.update({_FOLDER + name: content for name, content in small.items()})
    marketplace = json.loads(files[_MARKETPLACE])
    for plugin in marketplace["plugins"]:
        plugin["source"]["path"] = f"./{_FOLDER}"
    files[_MARKETPLACE] = as_json(marketplace)


def files_of(marketplace: Path) -> dict[str, bytes]:
    """Return the files of Codex's plugin in a marketplace folder, by their names in its copy. Empty if the folder is
    not whole.
    """
    whole = read_files(marketplace)
    return {name.removeprefix(_FOLDER): content for name, content in whole.items() if name.startswith(_FOLDER)}


def earlier_folder(marketplace: Path) -> Path:
    """Return the folder of an earlier release. Its files now lie in the marketplace folder itself."""
    return marketplace.with_name("codex-plugin")


class AppServer(RpcChild):
    """One running app-server, ended on exit of the ``with`` block."""

    def __init__(
        self,
        program: str,
        *words: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ):
        """`words` follow the command's name."""
        super().__init__("codex app-server", [program, "app-server", *words], env, cwd, seconds)

    def __enter__(self) -> AppServer:
        about = {"clientInfo": {"name": "swarm-mcp", "version": "0"}, "capabilities": {"experimentalApi": True}}
        try:
            self.call("initialize", about)
            self.tell("initialized", {})
        except ClientFailed:
            self.__exit__()
            raise
        return self

    def hooks(self, plugin_id: str) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the hooks of one plugin, and the client's complaints."""
        data = self.call("hooks/list", {}).get("data", [])
        hooks = {hook["key"]: hook for entry in data for hook in entry.get("hooks", [])}
        complaints = [str(text) for entry in data for text in [*entry.get("warnings", []), *entry.get("errors", [])]]
        return [hook for hook in hooks.values() if hook.get("pluginId") == plugin_id], complaints

    def trusted(self) -> list[str]:
        """Return the keys of all hooks that the user's configuration has a word on, there or not."""
        config = self.call("config/read", {}).get("config") or {}
        return list((config.get("hooks") or {}).get("state") or {})

    def off(self) -> tuple[str, str]:
        """Return the setting that keeps the plugin's hooks from running in this folder, and its file.

        Both are empty without one; the file is also empty if the client does not name it.
        """
        requirements = object_of(self.call("configRequirements/read", {}).get("requirements"))
        if requirements.get("allowManagedHooksOnly") is True:
            return "allow_managed_hooks_only", POLICY
        required = object_of(requirements.get("featureRequirements"))
        read = self.call("config/read", {"cwd": here()})
        config, origins = object_of(read.get("config")), object_of(read.get("origins"))
        for feature in ("hooks", "plugins"):
            if required.get(feature) is False:
                return f"features.{feature} = false", POLICY
            if object_of(config.get("features")).get(feature) is False:
                return f"features.{feature} = false", setting_file(origins.get(f"features.{feature}"))
        if object_of(object_of(config.get("plugins")).get(PLUGIN_ID)).get("enabled") is False:
            return f"enabled = false for {PLUGIN_ID}", setting_file(origins.get(f"plugins.{PLUGIN_ID}.enabled"))
        return "", ""

    def edit(self, *edits: tuple[str, object, str]) -> None:
        """Change the user's configuration: ``(key path, value, upsert or replace)`` each."""
        changes = [{"keyPath": path, "value": value, "mergeStrategy": how} for path, value, how in edits]
        self.call("config/batchWrite", {"edits": changes, "reloadUserConfig": True})


EVENTS = {
    "preToolUse": "PreToolUse",
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "userPromptSubmit": "UserPromptSubmit",
    "stop": "Stop",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
}


POLICY = "a policy of this machine or its organization"
MANAGED = ("/etc/codex/config.toml", "/etc/codex/managed_config.toml")


class Codex(Runtime):
    """The ``codex`` command."""

    name = executable = harness = "codex"
    title = "Codex"
    oldest = "0.138.0"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("0.171.0", "2026-11-29"),
    )  # fmt: skip
    manifests = (".codex-plugin", ".agents")
    has_subagents = True
    # As of release 0.169.0.
    # As of release 0.169.0.
    session_variables = (
        "CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TURN_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_PLUGIN_ROOT",
        "CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_PERMISSION_PROFILE", "PLUGIN_ROOT", "PLUGIN_DATA",
        "CODEX_SNAPSHOT_*", "CODEX_SHELL_SNAPSHOT_*",
    )  # fmt: skip
    call_mark = "x-codex-turn-metadata"

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Have Codex install a plugin without code from a local bundle; from a published one, all of it."""
        if place:
            add(files, place)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        self._point_to(marketplace, self._marketplace(steps), steps)
        # A copy that is the same stays untouched: replacing it would silence hooks in running sessions.
        if not self._is_current(marketplace):
            upgrade = self._copy() is not None
            with steps.step(f"installing {PLUGIN_ID}", f"installed {PLUGIN_ID}"):
                self._call("plugin", "add", PLUGIN_ID, "--json")
            if upgrade:
                steps.add("Codex sessions that are running now have lost their hooks: restart them")
        steps.begin("asking which of its hooks it trusts")
        with AppServer(self.program()) as server:
            hooks = self._trusted(server, steps)
        remove_folder(earlier_folder(marketplace))
        copy = self._copy()
        if copy is None:
            raise ClientFailed("Codex has no copy of the plugin after installing it")
        return self.installed_at(copy, _commands(hooks))

    def uninstall(self, steps: Steps) -> None:
        steps.begin("asking which hooks it has")
        with AppServer(self.program()) as server:
            hooks = server.hooks(PLUGIN_ID)[0]
            # With those that an earlier release had, and this one has not.
            keys = [key for key in server.trusted() if key.startswith(f"{PLUGIN_ID}:")]
            if hooks or self._copy() is not None:
                with steps.step(f"removing {PLUGIN_ID}", f"removed {PLUGIN_ID}"):
                    self._call("plugin", "remove", PLUGIN_ID, "--json")
            steps.begin("removing the marketplace")
            code, _, _ = self._call("plugin", "marketplace", "remove", MARKETPLACE, "--json", accept=(0, 1))
            if code == 0:
                steps.add("removed the marketplace")
            if keys:
                with steps.step("withdrawing the trust in its hooks", "withdrew the trust in its hooks"):
                    server.edit(*[(f'hooks.state."{key}"', None, "replace") for key in keys])
                    if not server.trusted():
                        server.edit(("hooks.state", None, "replace"))
        remove_folder(earlier_folder(marketplace_folder()))
        shutil.rmtree(Path(home()) / "plugins/cache" / MARKETPLACE, ignore_errors=True)
        shutil.rmtree(Path(home()) / "plugins/data" / f"swarm-{MARKETPLACE}", ignore_errors=True)

    def traces(self) -> bool:
        return self._copy() is not None

    def version(self) -> str:
        copy = self._copy()
        if copy:
            return str(object_in(copy / ".codex-plugin" / "plugin.json").get("version") or "")
        return ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        mend = "swarm-mcp install --client codex"
        copy = self._copy()
        if copy is None:
            return Look([Finding("codex plugin", "warn", "not installed", mend)], None)
        steps.begin("asking which of its hooks it trusts")
        with AppServer(self.program()) as server:
            hooks, complaints = server.hooks(PLUGIN_ID)
            key, file, unknown = "", "", []
            try:
                key, file = server.off()
            except ClientFailed as error:  # an earlier release
                unknown = [Finding("codex settings", "warn", f"hooks may be switched off in them: {error}")]
        found = [Finding("codex plugin", "ok", f"at {copy}"), *unknown]
        if read_record(marketplace) and not self._is_current(marketplace):
            found[0] = Finding("codex plugin", "warn", f"{copy} differs from the files of this swarm-mcp", mend)
        off = [hook["key"] for hook in hooks if hook.get("enabled") is False]
        untrusted = [hook for hook in hooks if hook.get("trustStatus") != "trusted"]
        if key and (file == POLICY or file in MANAGED):
            text = f"switched off: {key}, by {file}, which only an administrator can change"
            found.append(Finding("codex hooks", "fail", text))
        elif key:
            place = file or "Codex's configuration"
            found.append(Finding("codex hooks", "fail", f"switched off: {key} in {place}", f"take it out of {place}"))
        elif not hooks:
            why = ""
            if complaints:
                why = f": {complaints[0]}"
            found.append(Finding("codex hooks", "fail", f"Codex finds no hooks in the plugin{why}", mend))
        elif untrusted:
            state = untrusted[0].get("trustStatus")
            text = f"{len(untrusted)} of {len(hooks)} hooks are {state}: Codex skips them silently"
            found.append(Finding("codex hooks", "fail", text, mend))
        elif off:
            found.append(Finding("codex hooks", "fail", f"switched off: {off[0]}", "codex, then /hooks"))
        else:
            found.append(Finding("codex hooks", "ok", f"{len(hooks)} hooks, all trusted"))
        return Look(found, self.installed_at(copy, _commands(hooks)))

    def users_servers(self) -> dict[str, Path]:
        return {**servers_in_toml(Path(here(), ".codex/config.toml")), **servers_in_toml(Path(home()) / "config.toml")}

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        patch = f"*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch\n"
        return {
            "session_id": session_id, "turn_id": "doctor", "transcript_path": None, "cwd": cwd,
            "hook_event_name": "PreToolUse", "model": "doctor", "permission_mode": "default",
            "tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "call_doctor",
        }  # fmt: skip

    def terminal_of(self, session_id: str) -> Terminal | None:
        return terminal_of(session_id)

    # ---------------------------------------------------------------- innards

    def _trusted(self, server: AppServer, steps: Steps) -> list[dict[str, Any]]:
        """Trust the plugin's hooks that are not trusted yet; return all of its hooks."""
        hooks, complaints = server.hooks(PLUGIN_ID)
        if not hooks:
            raise ClientFailed(f"Codex finds no hooks in the plugin: {'; '.join(complaints) or 'no reason given'}")
        waiting = {h["key"]: {"trusted_hash": h["currentHash"]} for h in hooks if h.get("trustStatus") != "trusted"}
        if not waiting:
            return hooks
        steps.begin("trusting its hooks")
        server.edit(("hooks.state", waiting, "upsert"))
        # The server says yes to anything. Only a second look shows that the trust holds.
        hooks = server.hooks(PLUGIN_ID)[0]
        left = [hook["key"] for hook in hooks if hook.get("trustStatus") != "trusted"]
        if left:
            raise ClientFailed(
                f"{len(left)} hooks stay untrusted and will be skipped; start `codex` and choose to trust them"
            )
        steps.add(f"trusted {len(waiting)} hooks of {PLUGIN_ID}")
        return hooks

    def _copy(self) -> Path | None:
        """Return the plugin's folder in Codex's cache, or None if it is not installed."""
        base = Path(home()) / "plugins/cache" / MARKETPLACE / "swarm"
        copies = sorted((path for path in base.glob("*") if path.is_dir()), key=lambda path: path.stat().st_mtime)
        if copies:
            return copies[-1]
        return None

    def _is_current(self, marketplace: Path) -> bool:
        copy, wanted = self._copy(), files_of(marketplace)
        return copy is not None and bool(wanted) and not differing(copy, wanted)

    def _marketplace(self, steps: Steps) -> str:
        """Return the source of the client's marketplace of our name, or an empty text."""
        steps.begin("asking which marketplaces it has")
        _, listed, _ = self._call("plugin", "marketplace", "list", "--json", accept=(0, 1))
        entries = object_of(listed).get("marketplaces")
        for entry in list_of(entries):
            if isinstance(entry, dict) and entry.get("name") == MARKETPLACE:
                return str((entry.get("marketplaceSource") or {}).get("source") or entry.get("root"))
        return ""


def _commands(hooks: list[dict[str, Any]]) -> list[HookCommand]:
    """Return the commands among the hooks that Codex lists. They hold whole paths."""
    return [
        HookCommand(EVENTS.get(hook["eventName"], hook["eventName"]), hook["command"], {})
        for hook in hooks
        if hook.get("command")
    ]


def setting_file(origin: object) -> str:
    """Return the file of a setting, from the client's word on its origin."""
    layer = object_of(object_of(origin).get("name"))
    folder = layer.get("dotCodexFolder")
    if isinstance(folder, str):
        return os.path.join(folder, "config.toml")
    return str(layer.get("file") or "")


def home(env: Mapping[str, str] = {}) -> str:
    """Return Codex's home folder, for a child that has `env` besides."""
    return (
        env.get("CODEX_HOME")
        or os.environ.get("CODEX_HOME")
        or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".codex")
    )
