"""Qwen Code: an extension that is linked runs in place, so upgrading its folder upgrades it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swarm_mcp.folders import here
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.base import Finding, StatusLine, Steps, as_json, object_in
from swarm_mcp.runtimes.in_place import InPlace, LinkedExtension
from swarm_mcp.runtimes.installed import YES, Coverage, Installed, Verified, hooks_in
from swarm_mcp.runtimes.server_name import servers_in_json
from swarm_mcp.runtimes.settings_layers import (
    Layer,
    environment,
    last_of,
    read,
    switched_off,
    unread,
    variable_on,
    variables,
)

NAME = "swarm"  # of our extension
MANIFEST = "qwen-extension.json"
LINK = ".qwen-extension-install.json"
HOOKS = "integrations/qwen/hooks.json"
_BARE = ("QWEN_CODE_SIMPLE", "QWEN_CODE_SAFE_MODE")  # without hooks, as of release 0.24.4
_ASSIGNED = re.compile(r"""^\s*(?:export\s+)?(\w+)\s*=\s*["']?([^"'\s#]*)""", re.MULTILINE)


class Qwen(InPlace):
    """The ``qwen`` command."""

    name = executable = harness = "qwen"
    title = "Qwen Code"
    oldest = "0.23.4"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before=YES, told_after=YES, ends="partly: the end of a run with -p is not told",
        verified=Verified("0.24.4", "2026-11-29"),
    )  # fmt: skip
    thing = "extension"
    needed = HOOKS
    shell_tool = "run_shell_command"
    manifests = (MANIFEST,)
    has_subagents = True
    # As of release 0.24.4.
    session_variables = (
        "QWEN_CODE_SESSION_ID", "QWEN_CODE_PROMPT_ID", "QWEN_CODE_AGENT_ID", "QWEN_CODE_LAUNCHER_PID",
        "QWEN_CODE_PROJECT_DIR", "QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR",
        "QWEN_CODE_NO_RELAUNCH", "QWEN_CODE_PRIVATE_RELAUNCH_ENV_PROVENANCE", "QWEN_CODE_STARTUP_VERSION",
    )  # fmt: skip

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Name this installation in the extension's manifest, and the folder of the bundle for its hooks.

        The client itself would write the folder into the commands, unquoted.
        """
        if place is None:
            return
        tree = json.loads(files[MANIFEST])
        for server in tree["mcpServers"].values():
            server["command"], *server["args"] = [*coordinator_command(), "serve"]
        files[MANIFEST] = as_json(tree)
        tree = json.loads(files[HOOKS])
        for _event, _group, hook in hooks_in(tree):
            hook["command"] = hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", "${SWARM_PLUGIN_ROOT}")
            hook["env"] = {"SWARM_PLUGIN_ROOT": str(place)}
        files[HOOKS] = as_json(tree)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        extension = _extension()
        if extension.source() != str(marketplace):
            if not extension.source() and extension.folder.exists():
                self._remove_copy(extension, steps)
            elif extension.source() and not self.traces():
                raise extension.foreign(self.executable)
            with steps.step(f"linking the extension in {marketplace}", f"linked the extension in {marketplace}"):
                extension.put(marketplace)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        extension = _extension()
        if not self.traces():
            return
        if not extension.source():
            self._remove_copy(extension, steps)
            return
        with steps.step("removing the extension", "removed the extension"):
            extension.remove()

    def root(self) -> Path | None:
        extension = _extension()
        source = extension.source()
        if source:
            root = Path(source)
        else:
            root = extension.folder
        if _is_ours(root) or (source and not root.exists()):
            return root
        return None

    def fault(self, root: Path) -> Finding | None:
        extension = _extension()
        if object_in(root / MANIFEST).get("hooks") != HOOKS:
            text = f"{root} has the hooks of another client: no write is checked here"
            return self.said("fail", text, self.mend)
        if extension.is_disabled(here()):
            return self.said("fail", "installed, but disabled here", f"qwen extensions enable {NAME}")
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Report the layers of settings that keep hooks from running."""
        if root is None:
            return []
        known = layers()
        off, found = last_of(known, "disableAllHooks"), unread(self.name, known)
        bare = variable_on(_BARE, [environment(), *_variables_in_files(), *variables(reversed(known))])
        if off and off[0]:
            found.append(switched_off(self.name, off[1], "disableAllHooks"))
        elif bare:
            found.append(switched_off(self.name, bare[1], bare[0]))
        return found

    def status_line(self) -> StatusLine:
        return StatusLine(home() / "settings.json", ("ui", "statusLine"), has_comments=True)

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", Path(here(), ".qwen/settings.json"), home() / "settings.json")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "permission_mode": "auto_edit", "tool_name": "write_file",
            "tool_input": {"file_path": file, "content": "x"},
            "tool_use_id": "toolu_doctor", "tool_call_id": "call_doctor",
        }  # fmt: skip

    def _remove_copy(self, extension: LinkedExtension, steps: Steps) -> None:
        """Have the client remove a copy that a person has installed. Raises ClientFailed if that is another plugin."""
        if not _is_ours(extension.folder):
            raise extension.foreign(self.executable)
        with steps.step(f"removing the copy in {extension.folder}", f"removed the copy in {extension.folder}"):
            self._call("extensions", "uninstall", NAME)


def layers() -> list[Layer]:
    """Return the layers of settings here: the machine's defaults, the user's, the project's, the machine's policy."""
    return _extension().layers("QWEN_CODE", "qwen-code", "QwenCode")


def _variables_in_files() -> Iterator[Layer]:
    """Yield the variables in the files from which a session that starts in this folder takes some."""
    folder = Path(here())
    for place in (folder, *folder.parents):
        for file in (place / ".qwen" / ".env", place / ".env"):
            yield read(file, parse=lambda text: dict(_ASSIGNED.findall(text)))
    yield read(home() / ".env", parse=lambda text: dict(_ASSIGNED.findall(text)))


def _is_ours(root: Path) -> bool:
    return (root / "integrations" / "hook.sh").is_file()


def _extension() -> LinkedExtension:
    return LinkedExtension(home(), NAME, LINK)


def home() -> Path:
    """Return Qwen Code's configuration folder. It need not exist."""
    chosen = os.environ.get("QWEN_HOME", "").strip()
    return Path(os.path.expanduser(chosen or "~/.qwen"))
