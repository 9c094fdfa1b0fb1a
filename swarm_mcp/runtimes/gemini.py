"""Gemini CLI: an extension that is linked runs in place, so upgrading the folder upgrades it."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from swarm_hook_core.paths import contains
from swarm_hook_core.state import describe
from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.runtimes.base import Finding, Steps, as_json, object_in
from swarm_mcp.runtimes.in_place import InPlace, LinkedExtension, root_of
from swarm_mcp.runtimes.installed import YES, Coverage, HookCommand, Installed, Verified, hooks_in
from swarm_mcp.runtimes.json_editor import list_of, object_of
from swarm_mcp.runtimes.server_name import servers_in_json
from swarm_mcp.runtimes.settings_layers import Layer, last_of, switched_off, unread

NAME = "swarm"  # of the extension, and of its hooks
FOLDER = "integrations/gemini"
LINK = ".gemini-extension-install.json"  # the client finds a linked extension by this file
HOOKS = f"{FOLDER}/hooks/hooks.json"
PROJECT = 2  # among the layers of settings
# Our event -> the client's. The client counts in milliseconds, too.
EVENTS = {
    "SessionStart": "SessionStart", "UserPromptSubmit": "BeforeAgent", "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool", "Stop": "AfterAgent", "SessionEnd": "SessionEnd",
}  # fmt: skip
# Where a hook answers nothing the client takes its complaints for the answer, and some statuses for a denial. One that
# takes too long it asks to end, and then waits for all that still hold its output.
_BOUNDED = "exec 2>/dev/null 3<&0; trap 'kill $!; exit 0' TERM; { %s; } <&3 3<&- & wait $!; exit 0"
_IN_PLUGIN = re.compile(r'"\$\{SWARM_PLUGIN_ROOT\}/([^"]*)"')
_FRONT_MATTER = re.compile(r"\A---\n.*?^description: ([^\n]*)\n.*?^---\n", re.DOTALL | re.MULTILINE)


class Gemini(InPlace):
    """The ``gemini`` command."""

    name = executable = harness = "gemini"
    title = "Gemini CLI"
    oldest = "0.45.2"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before=YES, told_after=YES, ends=YES, verified=Verified("0.61.0", "2026-11-29"),
    )  # fmt: skip
    thing = "extension"
    needed = HOOKS
    shell_tool = "run_shell_command"
    # As of release 0.61.0, in its hooks and, the last ones, its shells.
    session_variables = (
        "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CLI",
        "GEMINI_CLI_NO_RELAUNCH",
    )  # fmt: skip

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Make the folder an extension: the hooks as the client reads them, skills, and a command for one of them."""
        hooks = json.loads(files[f"{FOLDER}/hooks.json"])["hooks"]
        wired = {EVENTS[event]: _wired(groups, place) for event, groups in hooks.items()}
        files[HOOKS] = as_json({"hooks": wired})
        manifest = json.loads(files[f"{FOLDER}/gemini-extension.json"])
        servers = json.loads(files[f"{FOLDER}/mcp.json"].replace(b"${SWARM_PLUGIN_ROOT}", b"${extensionPath}/../.."))
        files[f"{FOLDER}/gemini-extension.json"] = as_json({**manifest, "version": __version__, **servers})
        for name in [name for name in files if name.startswith("skills/")]:
            files[f"{FOLDER}/{name}"] = files[name].replace(b"folder two above", b"folder four above")
        files[f"{FOLDER}/commands/swarm.toml"] = _command(files[f"{FOLDER}/skills/swarm/SKILL.md"].decode())

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        # Its own `extensions link` also says that the folder it is started in may be trusted, and leaves a key behind.
        extension = _extension()
        if extension.source() != str(marketplace / FOLDER):
            if not self.traces() and any(extension.folder.glob("*")):
                raise extension.foreign(self.executable)
            with steps.step(f"linking the extension in {marketplace}", f"linked the extension in {marketplace}"):
                extension.put(marketplace / FOLDER)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        if not self.traces():
            return
        with steps.step("removing the extension", "removed the extension"):
            _extension().remove()

    def root(self) -> Path | None:
        return root_of(_extension().source(), FOLDER)

    def fault(self, root: Path) -> Finding | None:
        if _extension().is_disabled(here()):
            return self.said("fail", "linked, but disabled here", f"gemini extensions enable {NAME}")
        for layer in layers():
            if object_of(layer.settings.get("security")).get("allowedExtensions"):
                text = f"linked; {layer.file} allows some extensions alone: see that it is among them"
                return self.said("warn", text)
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Report the layers of settings that keep hooks from running."""
        if root is None:
            return []
        every = layers()
        is_trusted, known = trusts(here(), every), every
        if not is_trusted:
            known = [*every[:PROJECT], *every[PROJECT + 1 :]]
        found, off = unread(self.name, known), _off(known)
        if off is None and is_trusted is None:
            off = _off(every)
            if off:
                off = replace(off, status="warn", message=f"if you trust this folder when it asks, {off.message}")
        if off:
            found.append(off)
        return found

    def installed_at(self, root: Path, told: list[HookCommand] | None = None) -> Installed:
        """The plugin in the folder `root`, with the hooks as the client will run them. Raises ClientFailed."""
        ours = {theirs: ours for ours, theirs in EVENTS.items()}
        file = root / HOOKS
        try:
            told = [
                HookCommand(ours[event], hook["command"].replace("${extensionPath}", str(root / FOLDER)), {})
                for event, _group, hook in hooks_in(object_in(file) or {"hooks": {}})
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ClientFailed(f"{file} cannot be understood ({describe(error)})") from error
        return super().installed_at(root, told)

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", Path(here(), ".gemini/settings.json"), home() / "settings.json")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "hook_event_name": "BeforeTool",
            "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": "write_file",
            "tool_input": {"file_path": file, "content": "x"},
        }  # fmt: skip


def layers() -> list[Layer]:
    """Return the layers of settings here: the machine's defaults, the user's, the project's, the machine's policy."""
    return _extension().layers("GEMINI_CLI", "gemini-cli", "GeminiCli")


def trusts(folder: str, every: Sequence[Layer]) -> bool | None:
    """Return True if the client trusts a folder, False if not, and None if it would ask.

    It reads the settings of a project that it trusts. `every`: the layers of settings.
    """
    chosen = os.environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    if os.environ.get("GEMINI_RESTRICTED_MODE") == "true" or chosen == "false":
        return False
    enabled = last_of([*every[:PROJECT], *every[PROJECT + 1 :]], "security", "folderTrust", "enabled")
    if chosen == "true" or (enabled and not enabled[0]):
        return True
    longest, found = -1, ""
    for rule, level in object_in(trusted_folders()).items():
        place = rule
        if level == "TRUST_PARENT":
            place = os.path.dirname(rule)
        if len(rule) > longest and contains(os.path.realpath(place), os.path.realpath(folder)):
            longest, found = len(rule), level
    return {"TRUST_FOLDER": True, "TRUST_PARENT": True, "DO_NOT_TRUST": False}.get(found)


def trusted_folders() -> Path:
    """Return the file of the folders that the user trusts. It need not exist."""
    return Path(os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home() / "trustedFolders.json")


def _off(known: Sequence[Layer]) -> Finding | None:
    """Return the finding that these layers keep our hooks from running, if they do."""
    enabled = last_of(known, "hooksConfig", "enabled")
    if enabled and not enabled[0]:
        return switched_off(Gemini.name, enabled[1], "hooksConfig.enabled")
    for layer in known:
        if NAME in list_of(object_of(layer.settings.get("hooksConfig")).get("disabled")):
            return switched_off(Gemini.name, layer, f"hooksConfig.disabled has {NAME}", f"take {NAME} out of it")
    return None


def _wired(groups: list[dict[str, Any]], place: Path | None) -> list[dict[str, Any]]:
    """The hooks of one event as the client reads them; `place` as in ``Runtime.finish_bundle``."""

    def found(match: re.Match[str]) -> str:
        if place:
            return shlex.quote(f"{place}/{match[1]}")
        return f'"${{extensionPath}}/../../{match[1]}"'

    return [
        {
            **group,
            "hooks": [
                {
                    "type": hook["type"],
                    "name": NAME,
                    "command": _BOUNDED % _IN_PLUGIN.sub(found, hook["command"]),
                    "timeout": hook["timeout"] * 1000,
                }
                for hook in group["hooks"]
            ],
        }
        for group in groups
    ]


def _command(skill: str) -> bytes:
    """Return the file of a command that has the model do as `skill` says."""
    found = _FRONT_MATTER.match(skill)
    if not found:
        raise SwarmError("the skill swarm has no front matter with a description")
    description, body = found.group(1), skill[found.end() :].strip()
    prompt = f"{body}\n\nThe words after /swarm: {{{{args}}}}"
    return f"description = {json.dumps(description)}\nprompt = '''\n{prompt}\n'''\n".encode()


def _extension() -> LinkedExtension:
    return LinkedExtension(home(), NAME, LINK)


def home() -> Path:
    """Return Gemini CLI's folder of settings. It need not exist."""
    return Path(os.environ.get("GEMINI_CLI_HOME", "").strip() or os.path.expanduser("~")) / ".gemini"
