"""Kimi Code: an entry in its list of plugins names the bundle, run in place.

Its own `/plugins install` copies a plugin, and runs only at a terminal.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import PLUGIN, Finding, InPlace, StatusLine, Steps, as_failure, as_json
from swarm_mcp.runtimes.bundle import COORDINATOR, LAUNCHER
from swarm_mcp.runtimes.client_settings import NAME
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified, hooks_in
from swarm_mcp.runtimes.json_editor import list_of, object_of
from swarm_mcp.runtimes.users_file import EditedJson, Entry, object_in

FOLDER = "integrations/kimi"
MANIFEST = "kimi.plugin.json"


class Kimi(InPlace):
    """The ``kimi`` command."""

    name = executable = harness = "kimi"
    title = "Kimi Code"
    oldest = "0.25.0"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before="no: with the next prompt", told_after="no: with the next prompt",
        ends="partly: the end of a run with -p is not told", verified=Verified("2.1.0", "2026-11-30"),
    )  # fmt: skip
    needed = MANIFEST
    has_subagents = True
    session_variables = ("KIMI_PLUGIN_ROOT",)  # of its hooks; its shells have none

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Write the plugin's manifest: it has the hooks in it, and its server is started in the bundle's folder."""
        root, hooks = "${KIMI_PLUGIN_ROOT}", []
        for event, group, hook in hooks_in(json.loads(files[f"{FOLDER}/hooks.json"])):
            command = hook["command"].replace("${SWARM_PLUGIN_ROOT}", root)
            told = {"event": event, "command": command, "timeout": hook["timeout"]}
            hooks.append({**told, **({"matcher": group["matcher"]} if "matcher" in group else {})})
        server = {"command": "sh", "args": [LAUNCHER if place else COORDINATOR, "serve"]}
        files[MANIFEST] = as_json({
            "name": PLUGIN, "version": __version__, "description": "Peer locks for coding agents.",
            "skills": ["./skills"], "mcpServers": {NAME: server}, "hooks": hooks,
        })  # fmt: skip

    @as_failure()
    def install(self, marketplace: Path, steps: Steps) -> Installed:
        found = _record()
        if found and not _is_ours(found):
            raise ClientFailed(f"{_plugins()} has another plugin {PLUGIN!r}; remove it and try again")
        return self.put_entries(_entries(marketplace), marketplace, steps)

    @as_failure()
    def uninstall(self, steps: Steps) -> None:
        self.take_entries_out(_entries(marketplace_folder()), steps)

    def root(self) -> Path | None:
        found = _record()
        return Path(str(found["root"])) if _is_ours(found) else None

    def fault(self, root: Path) -> Finding | None:
        if _record().get("enabled") is True:
            return None
        return self.said("fail", "installed but disabled", "in a session of Kimi: /plugins")

    def status_line(self) -> StatusLine:
        return StatusLine(home() / "tui.toml", ("status_line",), says_type=False)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "hook_event_name": "PreToolUse", "session_id": session_id, "cwd": cwd, "client_type": "kimi_code_cli",
            "tool_name": "Write", "tool_input": {"path": file, "content": "x"}, "tool_call_id": "call_doctor",
        }  # fmt: skip


def _record() -> dict[str, Any]:
    """Return the client's record of a plugin of our name, or an empty one."""
    plugins = [object_of(one) for one in list_of(object_in(_plugins()).get("plugins"))]
    return next((one for one in plugins if one.get("id") == PLUGIN), {})


def _is_ours(record: object) -> bool:
    found = object_of(record)
    root = Path(str(found.get("root")))
    return found.get("id") == PLUGIN and (root == marketplace_folder() or (root / FOLDER / "hooks.json").is_file())


def _entries(marketplace: Path) -> EditedJson:
    """Return our entry in the client's list of plugins."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    since = str(_record().get("installedAt") or now)
    value = {
        "id": PLUGIN, "root": str(marketplace), "source": "local-path", "enabled": True, "installedAt": since,
        "originalSource": str(marketplace),
    }  # fmt: skip
    return EditedJson(_plugins(), [Entry(("plugins",), value, is_element=True)], {"version": 1}, _is_ours)


def _plugins() -> Path:
    """Return the client's list of plugins. It need not exist."""
    return home() / "plugins" / "installed.json"


def home() -> Path:
    return Path(os.environ.get("KIMI_CODE_HOME", "").strip() or os.path.expanduser("~/.kimi-code"))
