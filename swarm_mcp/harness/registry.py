"""Harnesses by name. A module is loaded when its harness is asked for: one that is broken breaks no other."""

from __future__ import annotations

import sys

from swarm_hook_core.environment import first_set
from swarm_mcp.errors import Refused
from swarm_mcp.harness.adapter import HarnessAdapter

# Name -> (module, class). To add a harness: one module, one line here, and its recorded streams among the tests.
ADAPTERS: dict[str, tuple[str, str]] = {
    "claude": ("swarm_mcp.harness.claude.adapter", "Claude"),
    "codex": ("swarm_mcp.harness.codex.adapter", "Codex"),
    "pi": ("swarm_mcp.harness.pi.adapter", "Pi"),
    "hs": ("swarm_mcp.harness.hs.adapter", "Hs"),
    "loop": ("swarm_mcp.loop.adapter", "Loop"),
    "process": ("swarm_mcp.harness.process_adapter", "Process"),
}
DEFAULT = "claude"
_made: dict[str, HarnessAdapter] = {}


def names() -> list[str]:
    """Return the names of all harnesses."""
    return list(ADAPTERS)


def chosen_name(name: str = "") -> str:
    """Return the harness to use: `name`, else ``HARNESS_PROVIDER``, else claude. Raises Refused."""
    wanted = name.strip() or first_set("HARNESS_PROVIDER") or DEFAULT
    if wanted not in ADAPTERS:
        raise Refused(f'Unknown HARNESS_PROVIDER: "{wanted[:40]}". Supported: {", ".join(ADAPTERS)}')
    return wanted


def get(name: str) -> HarnessAdapter:
    """Return the adapter of that name. Raises Refused."""
    wanted = chosen_name(name)
    if wanted not in _made:
        module, kind = ADAPTERS[wanted]
        __import__(module)
        _made[wanted] = getattr(sys.modules[module], kind)()
    return _made[wanted]


def register(adapter: HarnessAdapter) -> None:
    """Make another harness known to this process. Raises Refused where its name is taken."""
    if adapter.name in ADAPTERS:
        raise Refused(f"a harness called {adapter.name!r} is there already")
    kind = type(adapter)
    ADAPTERS[adapter.name] = (kind.__module__, kind.__name__)
    _made[adapter.name] = adapter
