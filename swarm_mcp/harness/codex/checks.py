"""What can be seen of Codex on this machine: whether it is signed in, and whether our hooks would run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from swarm_mcp.errors import SwarmError
from swarm_mcp.harness.adapter import ERROR, INFO, WARN, Check
from swarm_mcp.harness.codex import hooks as codex_hooks
from swarm_mcp.harness.codex import overrides, rollout

_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN")


def checks(program: str, env: Mapping[str, str], cwd: str) -> list[Check]:
    """Return the findings. `program`: the path of Codex, empty for none; `env`: what a child has besides."""
    codex_home = rollout.home(env)
    named = env.get("CODEX_HOME") or os.environ.get("CODEX_HOME")
    if named and not os.path.isdir(named):
        text = f"CODEX_HOME is {named}, which is no folder"
        return [Check("codex_home_missing", ERROR, text, "make it, or unset it")]
    found = [_signed_in(codex_home, env), _plugin(), *_clashes(codex_home, cwd)]
    return found + (_hooks(program) if program else [])


def _signed_in(codex_home: str, env: Mapping[str, str]) -> Check:
    settings, _ = overrides.settings_files(codex_home, "")
    if os.path.isfile(os.path.join(codex_home, "auth.json")):
        return Check("codex_signed_in", INFO, f"credentials in {codex_home}/auth.json")
    name = next((key for key in _KEYS if env.get(key) or os.environ.get(key, "").strip()), "")
    if name:
        return Check("codex_key", INFO, f"credentials in {name}")
    for variable in _provider_keys(settings):
        if env.get(variable) or os.environ.get(variable, "").strip():
            return Check("codex_provider_key", INFO, f"credentials of a provider of its settings in {variable}")
    hint = "codex login, or set CODEX_API_KEY, or the env_key of a model provider in config.toml"
    return Check("codex_signed_out", WARN, "no credentials for Codex were found", hint)


def _provider_keys(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return re.findall(r"""^\s*env_key\s*=\s*["']([A-Za-z_][A-Za-z0-9_]*)["']""", file.read(), re.MULTILINE)
    except OSError:
        return []


def _plugin() -> Check:
    from swarm_mcp import runtimes

    if runtimes.runtime("codex").traces():
        return Check("codex_plugin", INFO, "the plugin is installed; workers run with a copy of their own instead")
    hint = "swarm-mcp install --client codex"
    return Check("codex_plugin_missing", INFO, "the plugin is not installed: only workers obey locks", hint)


def _clashes(codex_home: str, cwd: str) -> list[Check]:
    taken = overrides.configured_servers(*overrides.settings_files(codex_home, cwd))
    if taken.get("swarm") != "url":
        return []
    text = "its settings have an MCP server called swarm at an address; that of workers is called swarm_run"
    return [Check("codex_server_renamed", WARN, text, "codex mcp remove swarm")]


def _hooks(program: str) -> list[Check]:
    """Whether this build of Codex counts the trust in hooks as we do: it skips what it does not trust silently."""
    from swarm_mcp.installation import plugin_source

    try:
        hooks = codex_hooks.plugin_hooks(plugin_source())
    except SwarmError as error:
        return [Check("codex_hooks_broken", ERROR, str(error), "install swarm-mcp again")]
    said, ours = codex_hooks.hashes_from_codex(program, hooks), codex_hooks.hashes(hooks)
    if not said:
        text = "codex app-server could not be asked about hooks; locks may not hold in workers"
        return [Check("codex_hooks_unknown", WARN, text, "codex features list shows whether hooks are on")]
    if said.keys() != ours.keys():
        text = f"Codex sees {len(said)} of our {len(ours)} hooks; locks may not hold in workers"
        return [Check("codex_hooks_missing", WARN, text, "use a Codex that knows all of them: 0.169 does")]
    if said != ours:
        text = "this Codex counts the trust in hooks in another way; workers give it as it wants it"
        return [Check("codex_hooks_counted", INFO, text)]
    return [Check("codex_hooks", INFO, f"{len(ours)} hooks, handed over and trusted for each run alone")]
