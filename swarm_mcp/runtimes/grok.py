"""Grok Build: links from its folders to the bundle's files, which run in place, and a server in its settings.

Its own `plugin install` copies a plugin and drops the comments of ``config.toml``.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import own_table
from swarm_mcp.runtimes.base import PLUGIN_ID, Finding, Look, Runtime, starts_our_hooks
from swarm_mcp.runtimes.bundle import LAUNCHER
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.installed import ROOT_VARIABLES, Installed
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.steps import Steps

FOLDER = "integrations/grok"
HOOKS = f"{FOLDER}/hooks.json"
SKILLS = ("swarm", "swarm-mcp")
SERVER = "mcp_servers.swarm"
MEND = "swarm-mcp install --client grok"


class Grok(Runtime):
    """The ``grok`` command."""

    name = executable = harness = "grok"
    title = "Grok Build"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before="partly: with the result of the first call, not at the start", told_after=YES, ends=YES,
        verified=Verified("1.0.41", "2026-11-23"),
    )  # fmt: skip
    shell_tool = "run_terminal_command"
    has_subagents = True
    session_variables = ("GROK_SESSION_ID", "GROK_AGENT", "GROK_HOOK_*", "GROK_WORKSPACE_ROOT")

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Name the folder in the hooks of a local bundle: they run from a link, without a variable that says it."""
        if place is None:
            return
        tree = json.loads(files[HOOKS])
        # Within quotation marks; Grok itself puts in what a $ names, whatever is before it.
        quoted = re.sub(r'([\\"`])', r"\\\1", str(place)).replace("$", "$(printf '\\044')")
        for hook in (hook for groups in tree["hooks"].values() for group in groups for hook in group["hooks"]):
            for variable in ROOT_VARIABLES:
                hook["command"] = hook["command"].replace(f"${{{variable}}}", quoted)
        files[HOOKS] = (json.dumps(tree, indent=2) + "\n").encode()

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        for link, target in _links(marketplace).items():
            if _leads_to(link) == target:
                continue
            if os.path.lexists(link) and not self._is_ours(link):
                raise ClientFailed(f"{link} is not ours; move it away and try again")
            with steps.step(f"linking {link} to {target}", f"linked {link} to {target}"):
                _link(link, target)
        launcher = marketplace / LAUNCHER
        body = f'command = "/bin/sh"\nargs = [{json.dumps(str(launcher), ensure_ascii=False)}, "serve"]\n'
        try:
            if own_table.put(_settings(), SERVER, body, LAUNCHER):
                steps.add(f"added the MCP server to {_settings()}")
        except SwarmError as error:  # the hooks hold without it
            steps.add(f"the MCP server could not be added: {error}")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        for link in _links(marketplace_folder()):
            if self._is_ours(link):
                with steps.step(f"removing {link}", f"removed {link}"):
                    link.unlink()
        if own_table.take_out(_settings(), SERVER, LAUNCHER):
            steps.add(f"removed the MCP server from {_settings()}")

    def traces(self) -> bool:
        return any(map(self._is_ours, _links(marketplace_folder()))) or own_table.has(_settings(), SERVER, LAUNCHER)

    def version(self) -> str:
        root = self._root()
        return str(read_record(root).get("version") or "") if root else ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = self._root()
        if root is None:
            text = "only in part installed: its hooks are missing" if self.traces() else "not installed"
            return Look([Finding("grok hooks", "warn", text, MEND), *_others(own=False)], None)
        found = [self._finding(root), *_others(own=True)]
        if not own_table.has(_settings(), SERVER, LAUNCHER):
            found.append(Finding("grok MCP server", "warn", f"not in {_settings()}", MEND))
        return Look(found, self.installed_at(root))

    def _finding(self, root: Path) -> Finding:
        if not (root / HOOKS).is_file():
            return Finding("grok hooks", "fail", f"{root} has no {HOOKS}", MEND)
        off = _disabled()
        if off:
            return Finding("grok hooks", "fail", f"switched off: {off}", "switch them on again: /hooks in a session")
        version = self.version()
        if version != __version__:
            return Finding("grok hooks", "warn", f"version {version} at {root}; this swarm-mcp is {__version__}", MEND)
        return Finding("grok hooks", "ok", f"version {version}, at {root}")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "hookEventName": "pre_tool_use", "hook_event_name": "PreToolUse", "session_id": session_id, "cwd": cwd,
            "tool_name": "write", "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "call_doctor",
            "toolInputTruncated": False,
        }  # fmt: skip

    # ---------------------------------------------------------------- innards

    def _root(self) -> Path | None:
        """The bundle that the hooks run from; None where they are not linked."""
        hooks = next(iter(_links(Path("/"))))
        target = _leads_to(hooks)
        return target.parents[2] if target and self._is_ours(hooks) else None

    @staticmethod
    def _is_ours(link: Path) -> bool:
        """Whether `link` leads into a bundle of ours, also into one that has gone."""
        target = _leads_to(link)
        if target is None:
            return False
        return marketplace_folder() in target.parents or any(read_record(parent) for parent in target.parents)


def _others(own: bool) -> list[Finding]:
    """What else of ours Grok reads, as it has Claude Code's settings for its own; `own`: whether it has our hooks."""
    files = [Path.home() / ".claude" / name for name in ("settings.json", "settings.local.json")]
    also = [f"hooks in {file}" for file in files if starts_our_hooks(file)]
    try:
        if PLUGIN_ID in files[0].read_text(encoding="utf-8", errors="replace"):
            also.append(f"Claude Code's plugin {PLUGIN_ID}")
    except OSError:
        pass
    if not also:
        return []
    what = "stand back, so that no write is checked twice" if own else "act as this client's where it runs them"
    return [Finding("grok, more than one", "info", f"{', '.join(also)}: they {what}")]


def _disabled() -> str:
    """The first of our hooks that a person has switched off in Grok; empty for none."""
    try:
        lines = (home() / "disabled-hooks").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in lines if "global/swarm:" in line), "")


def home() -> Path:
    """Return Grok's folder, which need not exist."""
    return Path(os.environ.get("GROK_HOME") or os.path.join(os.path.expanduser("~"), ".grok"))


def _settings() -> Path:
    return home() / "config.toml"


def _links(root: Path) -> dict[Path, Path]:
    """What is linked, the hooks first: the place in Grok's folder -> the bundle's file or folder."""
    skills = {home() / "skills" / name: root / "skills" / name for name in SKILLS}
    return {home() / "hooks" / "swarm.json": root / HOOKS, **skills}


def _leads_to(link: Path) -> Path | None:
    """Where a link points to, as it is written; None where it is no link."""
    try:
        return Path(os.readlink(link))
    except OSError:
        return None


def _link(link: Path, target: Path) -> None:
    """Put the link there in one step. Raises ClientFailed."""
    scratch = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        scratch.symlink_to(target)
        os.replace(scratch, link)
    except OSError as error:
        raise ClientFailed(f"cannot link {link}: {error.strerror}") from None
