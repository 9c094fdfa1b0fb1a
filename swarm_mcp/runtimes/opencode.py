"""OpenCode: a link in its plugin folder to the plugin in the local folder, which runs in place.

Everything else (MCP server, skills) the plugin tells OpenCode itself, so that no file of the user's is changed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import Finding, Look, Runtime
from swarm_mcp.runtimes.coverage import YES, Coverage, Verified
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.runtimes.steps import Steps

PLUGIN_FILE = "integrations/opencode/index.ts"
MEND = "swarm-mcp install --client opencode"
SLOW_START = (
    "OpenCode has yet to fetch @opencode-ai/plugin from npm, as it does for any plugin, and waits for that: its first"
    " start may take minutes, and without a network every start"
)


class OpenCode(Runtime):
    """The ``opencode`` command."""

    name = executable = harness = "opencode"
    title = "OpenCode"
    coverage = Coverage(
        edits=YES, patches=YES, shell=YES, other_tools=YES, subagents=YES, told_before=YES, told_after=YES, ends=YES,
        verified=Verified("1.18.33", "2026-11-23"),
    )  # fmt: skip
    shell_tool = "bash"
    has_subagents = True
    session_variables = ("OPENCODE", "OPENCODE_PID", "OPENCODE_SESSION_ID")

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        root = marketplace.resolve()
        if _root() != root:
            if _root() is None and os.path.lexists(link()):
                raise ClientFailed(f"{link()} is not ours; move it away and try again")
            with steps.step(f"linking the plugin as {link()}", f"linked the plugin as {link()}"):
                _put_link(root / PLUGIN_FILE)
            if _starts_slowly():
                steps.add(SLOW_START)
        return self.installed_at(root)

    def uninstall(self, steps: Steps) -> None:
        if _root() is None:
            return
        with steps.step(f"removing {link()}", f"removed {link()}"):
            try:
                link().unlink()
            except OSError as error:
                raise ClientFailed(f"{link()} cannot be removed: {error.strerror}") from error
            for folder in (link().parent, link().parent.parent):
                with suppress(OSError):  # something else is in it
                    folder.rmdir()

    def traces(self) -> bool:
        return _root() is not None

    def version(self) -> str:
        root = _root()
        return str(read_record(root).get("version") or "") if root else ""

    def look(self, marketplace: Path, steps: Steps) -> Look:
        root = _root()
        if root is None:
            return Look([Finding("opencode plugin", "warn", "not installed", MEND)], None)
        slow = [Finding("opencode start", "info", SLOW_START)] if _starts_slowly() else []
        return Look([self._finding(root), *slow], self.installed_at(root))

    def _finding(self, root: Path) -> Finding:
        if not (root / PLUGIN_FILE).is_file():
            return Finding("opencode plugin", "fail", f"{link()} leads to {root}, which has no {PLUGIN_FILE}", MEND)
        version = self.version()
        if version and version != __version__:
            wrong = f"version {version} at {root}; this swarm-mcp is {__version__}"
            return Finding("opencode plugin", "warn", wrong, MEND)
        return Finding("opencode plugin", "ok", f"version {version or __version__}, at {root}")

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict:
        return {
            "session_id": session_id, "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "write",
            "tool_input": {"filePath": file, "content": "x"}, "tool_use_id": "call_doctor",
        }  # fmt: skip


def link() -> Path:
    """Return the name that OpenCode finds the plugin by; there need be none."""
    base = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return Path(base) / "opencode" / "plugin" / "swarm-mcp.ts"


def _starts_slowly() -> bool:
    return not (link().parent.parent / "node_modules").is_dir()


def _root() -> Path | None:
    """The folder that the plugin runs from, which may have gone; None where it is not installed."""
    try:
        target = os.path.join(link().parent, os.readlink(link()))
    except OSError:
        return None
    if not target.endswith(f"/{PLUGIN_FILE}"):
        return None
    return Path(os.path.realpath(target.removesuffix(f"/{PLUGIN_FILE}")))


def _put_link(target: Path) -> None:
    """Make the link, in the place of an earlier one at once. Raises ClientFailed."""
    scratch = link().with_name(f".{link().name}.{os.getpid()}")
    try:
        link().parent.mkdir(parents=True, exist_ok=True)
        scratch.symlink_to(target)
        os.replace(scratch, link())
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise ClientFailed(f"{link()} cannot be made: {error.strerror}") from error
