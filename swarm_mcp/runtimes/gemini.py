"""Gemini CLI and its fork Qwen Code: an extension that is linked runs in place, so upgrading its folder upgrades it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarm_hook_core.paths import contains
from swarm_hook_core.state import describe
from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.base import Finding, InPlace, StatusLine, Steps, as_failure, as_json, root_of
from swarm_mcp.runtimes.client_settings import (
    Layer,
    environment_layer,
    last_of,
    read_layer,
    servers_in_json,
    switched_off,
    unread,
    variable_layers,
    variable_on,
    with_comments,
)
from swarm_mcp.runtimes.installed import YES, Coverage, HookCommand, Installed, Verified, hooks_in
from swarm_mcp.runtimes.json_editor import list_of, object_of
from swarm_mcp.runtimes.users_file import object_in, write_whole

NAME = "swarm"  # of the extension, and of its hooks in Gemini
FOLDER = "integrations/gemini"
_LINK = ".gemini-extension-install.json"  # the client finds a linked extension by this file
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


def _extension() -> _LinkedExtension:
    return _LinkedExtension(home(), NAME, _LINK)


def home() -> Path:
    """Return Gemini CLI's folder of settings. It need not exist."""
    return Path(os.environ.get("GEMINI_CLI_HOME", "").strip() or os.path.expanduser("~")) / ".gemini"


# Qwen Code.

QWEN_MANIFEST = "qwen-extension.json"
_QWEN_LINK = ".qwen-extension-install.json"
QWEN_HOOKS = "integrations/qwen/hooks.json"
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
    needed = QWEN_HOOKS
    shell_tool = "run_shell_command"
    manifests = (QWEN_MANIFEST,)
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
        tree = json.loads(files[QWEN_MANIFEST])
        for server in tree["mcpServers"].values():
            server["command"], *server["args"] = [*coordinator_command(), "serve"]
        files[QWEN_MANIFEST] = as_json(tree)
        tree = json.loads(files[QWEN_HOOKS])
        for _event, _group, hook in hooks_in(tree):
            hook["command"] = hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", "${SWARM_PLUGIN_ROOT}")
            hook["env"] = {"SWARM_PLUGIN_ROOT": str(place)}
        files[QWEN_HOOKS] = as_json(tree)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        extension = _qwen_extension()
        if extension.source() != str(marketplace):
            if not extension.source() and extension.folder.exists():
                self._remove_copy(extension, steps)
            elif extension.source() and not self.traces():
                raise extension.foreign(self.executable)
            with steps.step(f"linking the extension in {marketplace}", f"linked the extension in {marketplace}"):
                extension.put(marketplace)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        extension = _qwen_extension()
        if not self.traces():
            return
        if not extension.source():
            self._remove_copy(extension, steps)
            return
        with steps.step("removing the extension", "removed the extension"):
            extension.remove()

    def root(self) -> Path | None:
        extension = _qwen_extension()
        source = extension.source()
        if source:
            root = Path(source)
        else:
            root = extension.folder
        if _is_our_qwen(root) or (source and not root.exists()):
            return root
        return None

    def fault(self, root: Path) -> Finding | None:
        extension = _qwen_extension()
        if object_in(root / QWEN_MANIFEST).get("hooks") != QWEN_HOOKS:
            text = f"{root} has the hooks of another client: no write is checked here"
            return self.said("fail", text, self.mend)
        if extension.is_disabled(here()):
            return self.said("fail", "installed, but disabled here", f"qwen extensions enable {NAME}")
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Report the layers of settings that keep hooks from running."""
        if root is None:
            return []
        known = qwen_layers()
        off, found = last_of(known, "disableAllHooks"), unread(self.name, known)
        bare = variable_on(_BARE, [environment_layer(), *_variables_in_files(), *variable_layers(reversed(known))])
        if off and off[0]:
            found.append(switched_off(self.name, off[1], "disableAllHooks"))
        elif bare:
            found.append(switched_off(self.name, bare[1], bare[0]))
        return found

    def status_line(self) -> StatusLine:
        return StatusLine(qwen_home() / "settings.json", ("ui", "statusLine"), has_comments=True)

    def users_servers(self) -> dict[str, Path]:
        return servers_in_json("mcpServers", Path(here(), ".qwen/settings.json"), qwen_home() / "settings.json")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "hook_event_name": "PreToolUse",
            "permission_mode": "auto_edit", "tool_name": "write_file",
            "tool_input": {"file_path": file, "content": "x"},
            "tool_use_id": "toolu_doctor", "tool_call_id": "call_doctor",
        }  # fmt: skip

    def _remove_copy(self, extension: _LinkedExtension, steps: Steps) -> None:
        """Have the client remove a copy that a person has installed. Raises ClientFailed if that is another plugin."""
        if not _is_our_qwen(extension.folder):
            raise extension.foreign(self.executable)
        with steps.step(f"removing the copy in {extension.folder}", f"removed the copy in {extension.folder}"):
            self._call("extensions", "uninstall", NAME)


def qwen_layers() -> list[Layer]:
    """Return the layers of settings here: the machine's defaults, the user's, the project's, the machine's policy."""
    return _qwen_extension().layers("QWEN_CODE", "qwen-code", "QwenCode")


def _variables_in_files() -> Iterator[Layer]:
    """Yield the variables in the files from which a session that starts in this folder takes some."""
    folder = Path(here())
    for place in (folder, *folder.parents):
        for file in (place / ".qwen" / ".env", place / ".env"):
            yield read_layer(file, parse=lambda text: dict(_ASSIGNED.findall(text)))
    yield read_layer(qwen_home() / ".env", parse=lambda text: dict(_ASSIGNED.findall(text)))


def _is_our_qwen(root: Path) -> bool:
    return (root / "integrations" / "hook.sh").is_file()


def _qwen_extension() -> _LinkedExtension:
    return _LinkedExtension(qwen_home(), NAME, _QWEN_LINK)


def qwen_home() -> Path:
    """Return Qwen Code's configuration folder. It need not exist."""
    chosen = os.environ.get("QWEN_HOME", "").strip()
    return Path(os.path.expanduser(chosen or "~/.qwen"))


# An extension as Gemini CLI and Qwen Code have it linked: a folder under its name, with a file that says where it is.
#
# Their own commands write the same file. They also ask, take seconds, and bring the person's settings up to date.


@dataclass(frozen=True)
class _LinkedExtension:
    """The extension `name` of the client that keeps its settings in `home`.

    `link`: the name of the file that says where it is.
    """

    home: Path
    name: str
    link: str

    @property
    def folder(self) -> Path:
        """Return the client's folder for it. It need not exist."""
        return self.home / "extensions" / self.name

    def source(self) -> str:
        """The folder that it is linked to; empty where it is not there, or a copy."""
        told = object_in(self.folder / self.link)
        source = told.get("source")
        if told.get("type") == "link" and isinstance(source, str):
            return source
        return ""

    @as_failure()
    def put(self, source: Path) -> None:
        """Link it to the folder `source`. Raises ClientFailed."""
        text = json.dumps({"source": str(source), "type": "link"}, indent=2)
        write_whole(self.folder / self.link, text.encode())

    def foreign(self, client: str) -> ClientFailed:
        """Return the error for another extension in its place. `client` is the client's command."""
        mend = f"{client} extensions uninstall {self.name}"
        return ClientFailed(f"{self.folder} is another extension of that name; to take it out: {mend}")

    def remove(self) -> None:
        """Take the link away, and the folders around it that are empty then."""
        (self.folder / self.link).unlink()
        for folder in (self.folder, self.folder.parent, self.home):
            try:
                folder.rmdir()
            except OSError:
                break  # it holds other files

    def is_disabled(self, folder: str) -> bool:
        """Return True if a person has disabled it for sessions in `folder`. The last rule that fits counts."""
        rules = object_of(object_in(self.folder.parent / "extension-enablement.json").get(self.name))
        place, found = f"{folder.rstrip('/')}/", False
        for rule in map(str, list_of(rules.get("overrides"))):
            place_of_rule = rule.removeprefix("!")
            if place == place_of_rule or (place_of_rule[-1:] == "*" and place.startswith(place_of_rule[:-1])):
                found = rule.startswith("!")
        return found

    def layers(self, variable: str, on_linux: str, on_mac: str) -> list[Layer]:
        """Return the layers of settings for a session that starts in this folder.

        `variable`: the beginning of the variables that name the machine's files. Else those are in the folder
        `on_linux` of ``/etc``, or in `on_mac` of the Mac's library.
        """
        folder = Path("/Library/Application Support", on_mac) if sys.platform == "darwin" else Path("/etc", on_linux)
        policy = Path(os.environ.get(f"{variable}_SYSTEM_SETTINGS_PATH") or folder / "settings.json")
        defaults = os.environ.get(f"{variable}_SYSTEM_DEFAULTS_PATH") or policy.with_name("system-defaults.json")
        users, projects = self.home / "settings.json", Path(here(), self.home.name, "settings.json")
        files = [(Path(defaults), True), (users, False), (projects, False), (policy, True)]
        return [read_layer(file, is_policy, with_comments) for file, is_policy in files]
