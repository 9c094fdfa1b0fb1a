"""Qwen Code: an extension that is linked runs in place, so upgrading its folder upgrades it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.base import Finding, Look, Runtime, object_in
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.linked_extension import LinkedExtension
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.steps import Steps

NAME = "swarm"  # of our extension
MANIFEST = "qwen-extension.json"
LINK = ".qwen-extension-install.json"
HOOKS = "integrations/qwen/hooks.json"
MEND = "swarm-mcp install --client qwen"


class Qwen(Runtime):
    """The ``qwen`` command."""

    name = executable = harness = "qwen"
    title = "Qwen Code"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before=YES, told_after=YES, ends="partly: the end of a run with -p is not told",
        verified=Verified("0.24.4", "2026-11-23"),
    )  # fmt: skip
    shell_tool = "run_shell_command"
    manifests = (MANIFEST,)
    has_subagents = True
    # As of release 0.24.4.
    first_questions = (
        ("initialize", {
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}, "roots": {},
            },
            "clientInfo": {"name": "swarm-mcp install", "version": __version__},
        }),
        ("notifications/initialized", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("tools/list", {}),
    )  # fmt: skip
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
        files[MANIFEST] = _json(tree)
        tree = json.loads(files[HOOKS])
        for hook in (hook for groups in tree["hooks"].values() for group in groups for hook in group["hooks"]):
            hook["command"] = hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", "${SWARM_PLUGIN_ROOT}")
            hook["env"] = {"SWARM_PLUGIN_ROOT": str(place)}
        files[HOOKS] = _json(tree)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        extension = _extension()
        if extension.source() != str(marketplace):
            if not extension.source() and extension.folder.exists():
                self._remove_copy(extension, steps)
            elif extension.source() and not self.traces():
                raise ClientFailed(_foreign(extension))
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

    def traces(self) -> bool:
        return _root() is not None

    def version(self) -> str:
        root = _root()
        return _version_in(root) if root else ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = _root()
        if root is None:
            return Look([Finding("qwen extension", "warn", "not installed", MEND)], None)
        finding = _finding(root)
        return Look([finding], self.installed_at(root) if (root / HOOKS).is_file() else None)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "permission_mode": "auto_edit", "tool_name": "write_file",
            "tool_input": {"file_path": file, "content": "x"},
            "tool_use_id": "toolu_doctor", "tool_call_id": "call_doctor",
        }  # fmt: skip

    def _remove_copy(self, extension: LinkedExtension, steps: Steps) -> None:
        """Have the client remove what a person had it install. Raises ClientFailed where that is not this plugin."""
        if not _is_ours(extension.folder):
            raise ClientFailed(_foreign(extension))
        with steps.step(f"removing the copy in {extension.folder}", f"removed the copy in {extension.folder}"):
            self._call("extensions", "uninstall", NAME)


def _finding(root: Path) -> Finding:
    """What there is to say of the extension in the folder `root`."""
    name, extension = "qwen extension", _extension()
    said = extension.home / "settings.json"
    if not (root / HOOKS).is_file():
        return Finding(name, "fail", f"{root} has no {HOOKS}", MEND)
    if object_in(root / MANIFEST).get("hooks") != HOOKS:
        return Finding(name, "fail", f"{root} has the hooks of another client, which check no write here", MEND)
    if extension.settings().get("disableAllHooks") is True:
        return Finding(name, "fail", f"all hooks are switched off ({said})", "unset disableAllHooks")
    if extension.is_disabled():
        return Finding(name, "fail", "installed, but disabled", f"qwen extensions enable {NAME}")
    version = _version_in(root)
    if version != __version__:
        return Finding(name, "warn", f"version {version} at {root}; this swarm-mcp is {__version__}", MEND)
    return Finding(name, "ok", f"version {version}, at {root}")


def _root() -> Path | None:
    """The folder that the client runs our extension from; None where it has none."""
    extension = _extension()
    source = extension.source()
    root = Path(source) if source else extension.folder
    return root if _is_ours(root) or (source and not root.exists()) else None


def _is_ours(root: Path) -> bool:
    return (root / "integrations" / "hook.sh").is_file()


def _foreign(extension: LinkedExtension) -> str:
    mend = f"qwen extensions uninstall {NAME}"
    return f"{extension.folder} is another extension of that name; to take it out: {mend}"


def _version_in(root: Path) -> str:
    return str(read_record(root).get("version") or object_in(root / MANIFEST).get("version") or "")


def _extension() -> LinkedExtension:
    return LinkedExtension(home(), NAME, LINK, Path.home())


def home() -> Path:
    """Return Qwen Code's configuration folder, which need not exist."""
    chosen = os.environ.get("QWEN_HOME", "").strip()
    return Path(os.path.expanduser(chosen or "~/.qwen"))


def _json(tree: dict) -> bytes:
    return (json.dumps(tree, indent=2) + "\n").encode()
