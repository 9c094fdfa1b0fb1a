"""What can be seen of the bash harness on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.errors import Refused
from swarm_mcp.harness.adapter import ERROR, INFO, WARN, Check, HarnessAdapter
from swarm_mcp.harness.checks import command_of
from swarm_mcp.harness.hs.worker_plugin import PACK, is_installed
from swarm_mcp.runtimes.hs import GUARDED, home, root_of, shadows

NEEDED = ("bash", "jq", "curl")
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_URL", "HARNESS_PROVIDER")


def checks(adapter: HarnessAdapter, config: Mapping[str, object]) -> list[Check]:
    """Implement ``HarnessAdapter.checks``."""
    env = config.get("env")
    values = {**os.environ, **(env if isinstance(env, Mapping) else {})}
    missing = [name for name in NEEDED if not shutil.which(name, path=values.get("PATH"))]
    found = [Check(f"{name}_missing", ERROR, f"hs needs {name}", f"install {name}") for name in missing]
    return [*found, _provider(values), _guards(adapter, config, values)]


def _provider(values: Mapping[str, str]) -> Check:
    named = [name for name in _KEYS if values.get(name, "").strip()]
    if named:
        return Check("provider", INFO, f"{named[0]} is set")
    if (home() / ".auth-cache.json").is_file():
        return Check("provider", INFO, f"signed in: {home() / '.auth-cache.json'}")
    hint = "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or run: hs auth"
    return Check("no_provider", WARN, "no provider of the harness has credentials here", hint)


def _guards(adapter: HarnessAdapter, config: Mapping[str, object], values: Mapping[str, str]) -> Check:
    """Whether a worker's writes are checked: by the plugin that it is given, else by one that is installed."""
    try:
        words = command_of(adapter, config)
    except Refused:
        words = ()
    program = shutil.which(words[0], path=values.get("PATH")) if words else None
    if program and root_of(program):
        return Check("guarded", INFO, f"workers find the guards in front of every {', '.join(GUARDED)}")
    plugin = home() / "plugins" / PACK
    if not is_installed():
        why = "where the harness is installed cannot be told, so a worker cannot be given the guards"
        hint = "set HARNESS_ROOT to its folder, or: swarm-mcp install --client hs"
        return Check("unguarded", WARN, why, hint)
    before = shadows(str(config.get("cwd") or Path.cwd()), plugin)
    if before:
        return Check("guard_shadowed", WARN, f"{before[0]} stands in front of the guard of its name", "rename it")
    return Check("guarded", INFO, f"the guards in {plugin} are in front")
