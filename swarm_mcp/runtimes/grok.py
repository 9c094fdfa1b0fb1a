"""Grok Build: links from its folders to files of the bundle, run in place, and a server in its settings.

Its own `plugin install` copies a plugin and drops the comments of ``config.toml``.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import claude_code, users_file
from swarm_mcp.runtimes.base import (
    PLUGIN_ID,
    Finding,
    InPlace,
    StatusLine,
    Steps,
    as_json,
    leads_to,
    put_link,
    says,
    starts_our_hooks,
    take_link,
)
from swarm_mcp.runtimes.bundle import LAUNCHER, SKILLS
from swarm_mcp.runtimes.client_settings import NAME, NAMES, in_bundle, read_layer, servers_in_toml, switched_off, unread
from swarm_mcp.runtimes.installed import ROOT_VARIABLES, YES, Coverage, Installed, Verified, hooks_in, in_quotes
from swarm_mcp.runtimes.users_file import read_record

FOLDER = "integrations/grok"
HOOKS = f"{FOLDER}/hooks.json"
POLICIES, POLICY_NAMES = Path("/etc/grok"), ("requirements.toml", "managed_config.toml")
# Any value but false counts (release 1.0.41).
_ONLY_MANAGED = ("allow_managed_hooks_only", "allowManagedHooksOnly")
_PIN = re.compile(r'^\s*"?(\w+)"?\s*=\s*([\w"]+)', re.MULTILINE)


class Grok(InPlace):
    """The ``grok`` command."""

    name = executable = harness = "grok"
    title = "Grok Build"
    oldest = "1.0.41"
    coverage = Coverage(
        edits=YES, patches="no: its models have no tool for them", shell=YES, other_tools=YES, subagents=YES,
        told_before="partly: with the result of the first call, not at the start", told_after=YES, ends=YES,
        verified=Verified("1.0.41", "2026-11-29"),
    )  # fmt: skip
    thing = "hooks"
    needed = HOOKS
    shell_tool = "run_terminal_command"
    has_subagents = True
    session_variables = ("GROK_SESSION_ID", "GROK_AGENT", "GROK_HOOK_*", "GROK_WORKSPACE_ROOT")

    def finish_bundle(self, files: dict[str, bytes], place: Path | None) -> None:
        """Name the folder in the hooks of a local bundle: they run from a link, without a variable that says it."""
        if place is None:
            return
        tree = json.loads(files[HOOKS])
        # Grok itself replaces a name after $, even one that is escaped.
        quoted = in_quotes(place).replace("\\$", "$(printf '\\044')")
        for _event, _group, hook in hooks_in(tree):
            for variable in ROOT_VARIABLES:
                hook["command"] = hook["command"].replace(f"${{{variable}}}", quoted)
        files[HOOKS] = as_json(tree)

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        for link, name in _links().items():
            if leads_to(link, name) == marketplace:
                continue
            if os.path.lexists(link) and not _is_ours(link, name):
                raise ClientFailed(f"{link} is not ours; move it away and try again")
            put_link(link, marketplace / name, steps)
        launcher = marketplace / LAUNCHER
        body = f'command = "/bin/sh"\nargs = [{json.dumps(str(launcher), ensure_ascii=False)}, "serve"]\n'
        table = _table(marketplace)
        try:
            for earlier in _servers():
                if earlier != table:
                    users_file.take_out(_settings(), earlier, LAUNCHER)
            if users_file.put(_settings(), table, body, LAUNCHER):
                steps.add(f"added the MCP server to {_settings()}")
        except SwarmError as error:  # the hooks hold without it
            steps.add(f"the MCP server could not be added: {error}")
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        for link, name in _links().items():
            if _is_ours(link, name):
                take_link(link, steps)
        for table in _servers():
            if users_file.take_out(_settings(), table, LAUNCHER):
                steps.add(f"removed the MCP server from {_settings()}")

    def traces(self) -> bool:
        return any(_is_ours(link, name) for link, name in _links().items()) or bool(_servers())

    def root(self) -> Path | None:
        hooks, name = next(iter(_links().items()))
        if _is_ours(hooks, name):
            return leads_to(hooks, name)
        return None

    def fault(self, root: Path) -> Finding | None:
        off = _disabled()
        if off:
            return self.said("fail", f"switched off: {off}", "switch them on again: /hooks in a session")
        return None

    def beside(self, root: Path | None) -> list[Finding]:
        """Report other hooks of ours that Grok reads, because it also reads Claude Code's settings, and the state of
        its server.
        """
        files = [Path.home() / ".claude" / name for name in ("settings.json", "settings.local.json")]
        also = [f"hooks in {file}" for file in files if starts_our_hooks(file)]
        also += [f"Claude Code's plugin {PLUGIN_ID}"] if says(files[0], PLUGIN_ID) else []
        found = self.more_than_one(also, root)
        if root:
            found += _off_by_policy()
        if root and _table(root) not in _servers():
            found.append(Finding("grok MCP server", "warn", f"not in {_settings()}", self.mend))
        return found

    def status_line(self) -> StatusLine:
        return StatusLine(_settings(), ("ui", "status_line"))

    def users_servers(self) -> dict[str, Path]:
        return servers_in_toml(_settings(), LAUNCHER)

    def write_payload(self, session_id: str, cwd: str, file: str) -> dict[str, Any]:
        return {
            "hookEventName": "pre_tool_use", "hook_event_name": "PreToolUse", "session_id": session_id, "cwd": cwd,
            "tool_name": "write", "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "call_doctor",
            "toolInputTruncated": False,
        }  # fmt: skip


def _off_by_policy() -> list[Finding]:
    """Return the finding that only hooks of policies run, and one about each policy that cannot be read."""
    known = [read_layer(file, is_policy=True, parse=_pins) for file in policy_files()]
    # Grok reads this one, too.
    known.append(read_layer(claude_code.POLICIES / "managed-settings.json", is_policy=True))
    for layer in known:
        for key in _ONLY_MANAGED:
            if layer.settings.get(key) not in (None, False):
                return [switched_off(Grok.name, layer, key), *unread(Grok.name, known)]
    return unread(Grok.name, known)


def policy_files() -> list[Path]:
    """Return the files of the machine's policies, and of an organization's as fetched. They need not exist."""
    return [folder / name for folder in (POLICIES, home()) for name in POLICY_NAMES]


def _pins(text: str) -> dict[str, bool]:
    """Return the keys of a TOML file, above its first table, with False for those that are false."""
    return {key: value != "false" for key, value in _PIN.findall(re.split(r"^\s*\[", text, flags=re.MULTILINE)[0])}


def _disabled() -> str:
    """Return the first of our hooks that is switched off in Grok, or an empty text."""
    try:
        lines = (home() / "disabled-hooks").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no hook was switched off
        return ""
    return next((line.strip() for line in lines if "global/swarm:" in line), "")


def home() -> Path:
    """Return Grok's folder. It need not exist."""
    return Path(os.environ.get("GROK_HOME") or os.path.join(os.path.expanduser("~"), ".grok"))


def _settings() -> Path:
    return home() / "config.toml"


def _table(root: Path) -> str:
    """The table that names our server in Grok's settings, as the bundle in `root` has it."""
    return f"mcp_servers.{in_bundle(root).get('grok', NAME)}"


def _servers() -> list[str]:
    """The tables of our server that are in Grok's settings."""
    tables = [f"mcp_servers.{name}" for name in NAMES]
    return [table for table in tables if users_file.has(_settings(), table, LAUNCHER)]


def _links() -> dict[Path, str]:
    """Return the links, the hooks first: place in Grok's folder -> file or folder of the bundle."""
    return {
        home() / "hooks" / "swarm.json": HOOKS, **{home() / "skills" / name: f"skills/{name}" for name in SKILLS},
    }  # fmt: skip


def _is_ours(link: Path, name: str) -> bool:
    """Return True if `link` leads to `name` in a bundle of ours, even a removed one."""
    root = leads_to(link, name)
    return root is not None and (root == marketplace_folder() or bool(read_record(root)))
