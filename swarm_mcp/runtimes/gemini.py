"""Gemini CLI: an extension that is linked runs in place, so upgrading the folder upgrades it."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

from swarm_hook_core.faults import describe
from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.runtimes.base import Finding, Look, Runtime, object_in
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.installed import HookCommand, Installed
from swarm_mcp.runtimes.linked_extension import LinkedExtension
from swarm_mcp.runtimes.steps import Steps

NAME = "swarm"  # of the extension, and of its hooks
FOLDER = "integrations/gemini"
LINK = ".gemini-extension-install.json"  # the file by which the client finds a linked extension
MEND = "swarm-mcp install --client gemini"
# Ours -> the client's, which also counts in milliseconds.
EVENTS = {
    "SessionStart": "SessionStart", "UserPromptSubmit": "BeforeAgent", "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool", "Stop": "AfterAgent", "SessionEnd": "SessionEnd",
}  # fmt: skip
# Where a hook answers nothing the client takes its complaints for the answer, and some statuses for a denial. One that
# takes too long it asks to end, and then waits for all that still hold its output.
_BOUNDED = "exec 2>/dev/null 3<&0; trap 'kill $!; exit 0' TERM; { %s; } <&3 3<&- & wait $!; exit 0"
_IN_PLUGIN = re.compile(r'"\$\{SWARM_PLUGIN_ROOT\}/([^"]*)"')
_FRONT_MATTER = re.compile(r"\A---\n.*?^description: ([^\n]*)\n.*?^---\n", re.DOTALL | re.MULTILINE)


class Gemini(Runtime):
    """The ``gemini`` command."""

    name = executable = harness = "gemini"
    title = "Gemini CLI"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before=YES, told_after=YES, ends=YES, verified=Verified("0.61.0", "2026-11-23"),
    )  # fmt: skip
    shell_tool = "run_shell_command"
    # As of release 0.61.0.
    first_questions = (
        ("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {"roots": {"listChanged": True}},
            "clientInfo": {"name": "swarm-mcp install", "version": __version__},
        }),
        ("notifications/initialized", {}),
        ("tools/list", {}),
    )  # fmt: skip
    # As of release 0.61.0, in its hooks and, the last ones, its shells.
    session_variables = (
        "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "GEMINI_PLANS_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CLI",
        "GEMINI_CLI_NO_RELAUNCH",
    )  # fmt: skip

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Make the folder an extension: the hooks as the client reads them, skills, and a command for one of them."""
        hooks = json.loads(files[f"{FOLDER}/hooks.json"])["hooks"]
        wired = {EVENTS[event]: _wired(groups, place) for event, groups in hooks.items()}
        files[f"{FOLDER}/hooks/hooks.json"] = _json({"hooks": wired})
        manifest = json.loads(files[f"{FOLDER}/gemini-extension.json"])
        servers = json.loads(files[f"{FOLDER}/mcp.json"].replace(b"${SWARM_PLUGIN_ROOT}", b"${extensionPath}/../.."))
        files[f"{FOLDER}/gemini-extension.json"] = _json({**manifest, "version": __version__, **servers})
        for name in [name for name in files if name.startswith("skills/")]:
            files[f"{FOLDER}/{name}"] = files[name].replace(b"folder two above", b"folder four above")
        files[f"{FOLDER}/commands/swarm.toml"] = _command(files[f"{FOLDER}/skills/swarm/SKILL.md"].decode())

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        # Its own `extensions link` also says that the folder it is started in may be trusted, and leaves a key behind.
        extension = _extension()
        if extension.source() != str(marketplace / FOLDER):
            if not self.traces() and any(extension.folder.glob("*")):
                mend = f"gemini extensions uninstall {NAME}"
                raise ClientFailed(f"{extension.folder} is another extension of that name; to take it out: {mend}")
            with steps.step(f"linking the extension in {marketplace}", f"linked the extension in {marketplace}"):
                extension.put(marketplace / FOLDER)
        return self._installed(marketplace)

    def uninstall(self, steps: Steps) -> None:
        if not self.traces():
            return
        with steps.step("removing the extension", "removed the extension"):
            _extension().remove()

    def traces(self) -> bool:
        return self._root() is not None

    def version(self) -> str:
        root = self._root()
        return _version_in(root) if root else ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = self._root()
        if root is None:
            return Look([Finding("gemini extension", "warn", "not installed", MEND)], None)
        return Look([_finding(root)], self._installed(root))

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "session_id": session_id, "transcript_path": "", "cwd": cwd, "hook_event_name": "BeforeTool",
            "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": "write_file",
            "tool_input": {"file_path": file, "content": "x"},
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _root(self) -> Path | None:
        """The folder of the bundle that the client has linked; None for none."""
        source = _extension().source()
        return Path(source.removesuffix(f"/{FOLDER}")) if source.endswith(f"/{FOLDER}") else None

    def _installed(self, root: Path) -> Installed:
        """The plugin in the folder `root`, with the hooks as the client will run them. Raises ClientFailed."""
        ours = {theirs: ours for ours, theirs in EVENTS.items()}
        file = root / FOLDER / "hooks" / "hooks.json"
        try:
            told = [
                HookCommand(ours[event], hook["command"].replace("${extensionPath}", str(root / FOLDER)), {})
                for event, groups in object_in(file).get("hooks", {}).items()
                for group in groups
                for hook in group["hooks"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ClientFailed(f"{file} cannot be understood ({describe(error)})") from error
        return self.installed_at(root, told)


def _finding(root: Path) -> Finding:
    """What there is to say of the extension that is linked from the bundle in `root`."""
    name, file = "gemini extension", home() / "settings.json"
    hooks, security = _settings_of("hooksConfig"), _settings_of("security")
    if not (root / FOLDER / "hooks" / "hooks.json").is_file():
        return Finding(name, "fail", f"{root} has no {FOLDER}/hooks/hooks.json", MEND)
    if hooks.get("enabled") is False:
        return Finding(name, "fail", f"all hooks are switched off ({file})", "remove hooksConfig.enabled")
    if NAME in (hooks.get("disabled") or ()):
        return Finding(name, "fail", f"its hooks are switched off ({file})", "/hooks enable-all, in a session")
    if _extension().is_disabled():
        return Finding(name, "fail", "linked, but disabled", f"gemini extensions enable {NAME}")
    if security.get("allowedExtensions"):
        return Finding(name, "warn", f"linked; {file} allows some extensions alone: see that it is among them")
    version = _version_in(root)
    if version != __version__:
        return Finding(name, "warn", f"version {version} at {root}; this swarm-mcp is {__version__}", MEND)
    return Finding(name, "ok", f"version {version}, linked from {root}")


def _settings_of(group: str) -> dict:
    """One group of the person's settings; empty where there is none."""
    found = _extension().settings().get(group)
    return found if isinstance(found, dict) else {}


def _wired(groups: list[dict], place: Path | None) -> list[dict]:
    """The hooks of one event as the client reads them; `place` as in ``Runtime.finish_bundle``."""

    def found(match: re.Match) -> str:
        return shlex.quote(f"{place}/{match[1]}") if place else f'"${{extensionPath}}/../../{match[1]}"'

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
    """The file of a command that has the model do what `skill` says."""
    found = _FRONT_MATTER.match(skill)
    if not found:
        raise SwarmError("the skill swarm has no front matter with a description")
    description, body = found.group(1), skill[found.end() :].strip()
    prompt = f"{body}\n\nThe words after /swarm: {{{{args}}}}"
    return f"description = {json.dumps(description)}\nprompt = '''\n{prompt}\n'''\n".encode()


def _version_in(root: Path) -> str:
    return str(object_in(root / FOLDER / "gemini-extension.json").get("version") or "")


def _json(tree: dict) -> bytes:
    return (json.dumps(tree, indent=2) + "\n").encode()


def _extension() -> LinkedExtension:
    return LinkedExtension(home(), NAME, LINK, home().parent)


def home() -> Path:
    """Return Gemini CLI's folder of settings, which need not exist."""
    return Path(os.environ.get("GEMINI_CLI_HOME", "").strip() or os.path.expanduser("~")) / ".gemini"
