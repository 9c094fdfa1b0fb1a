"""Harnesses by name: those of this package, and those of other installed packages.

A module is loaded at the first use of its harness: a broken one breaks no other. A package adds an adapter by an entry
point of the group ``swarm_mcp.harnesses``, with the harness's name and the adapter's class::

  [project.entry-points."swarm_mcp.harnesses"]
  parrot = "parrot_harness:Parrot"
"""

from __future__ import annotations

import functools
import os
import site
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import swarm_mcp
from swarm_hook_core.environment import first_set
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.checks import environment_test
from swarm_mcp.errors import Refused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Name -> (module, class). To add a harness: one module, one line here, and its recorded streams among the tests.
ADAPTERS: dict[str, tuple[str, str]] = {
    "claude": ("swarm_mcp.agents.harness.claude.adapter", "Claude"),
    "codex": ("swarm_mcp.agents.harness.codex.adapter", "Codex"),
    "pi": ("swarm_mcp.agents.harness.pi", "Pi"),
    "gemini": ("swarm_mcp.agents.harness.gemini", "Gemini"),
    "opencode": ("swarm_mcp.agents.harness.opencode", "OpenCode"),
    "hs": ("swarm_mcp.agents.harness.hs", "Hs"),
    "loop": ("swarm_mcp.agents.loop.adapter", "Loop"),
    "acp": ("swarm_mcp.agents.harness.acp", "Acp"),
    "process": ("swarm_mcp.agents.harness.adapter", "Process"),
}
DEFAULT = "claude"
GROUP = "swarm_mcp.harnesses"
_made: dict[str, HarnessAdapter] = {}


def names() -> list[str]:
    """Return the names of all harnesses: this package's, then those of others."""
    return [*ADAPTERS, *(name for name in sorted(_offered()) if name not in ADAPTERS)]


def has(name: str) -> bool:
    """Return True if there is a harness of that name."""
    return name in ADAPTERS or name in _offered()


def chosen_name(name: str = "") -> str:
    """Return the harness to use: `name`, else ``HARNESS_PROVIDER``, else claude. Raises Refused."""
    wanted = name.strip() or first_set("HARNESS_PROVIDER") or DEFAULT
    if not has(wanted):
        raise Refused(f'Unknown HARNESS_PROVIDER: "{wanted[:40]}". Supported: {", ".join(names())}')
    return wanted


def get(name: str) -> HarnessAdapter:
    """Return the adapter of that name. Raises Refused, and errors of its module."""
    wanted = chosen_name(name)
    if wanted not in _made:
        _made[wanted] = _of_this_package(wanted) if wanted in ADAPTERS else _of_another(_offered()[wanted])
    return _made[wanted]


def adapter_of(harness: object) -> HarnessAdapter:
    """Return the adapter that a caller gave, itself or by its name. Raises Refused for a wrong type, too."""
    if isinstance(harness, str):
        return get(harness)
    if isinstance(harness, HarnessAdapter):
        return harness
    raise Refused(f"a run wants a harness by its name, or an adapter, not {type(harness).__name__}")


def get_all(broken: Callable[[str, Exception], object] | None = None) -> list[HarnessAdapter]:
    """Return all adapters that can be loaded; `broken` is called with the name of each other and why."""
    found = []
    for name in names():
        try:
            found.append(get(name))
        except Exception as error:
            if broken:
                broken(name, error)
    return found


def check_all(config: Mapping[str, object] = {}) -> dict[str, dict[str, Any]]:
    """Return name -> findings about each harness on this machine (``checks.environment_test``)."""
    return {adapter.name: environment_test(adapter, config) for adapter in get_all()}


def register(adapter: HarnessAdapter) -> None:
    """Make another harness known to this process alone. Raises Refused where its name is taken."""
    if has(adapter.name):
        raise Refused(f"a harness called {adapter.name!r} is there already")
    kind = type(adapter)
    ADAPTERS[adapter.name] = (kind.__module__, kind.__name__)
    _made[adapter.name] = adapter


def _of_this_package(name: str) -> HarnessAdapter:
    module, kind = ADAPTERS[name]
    __import__(module)
    made: HarnessAdapter = getattr(sys.modules[module], kind)()
    return made


def _of_another(entry: EntryPoint) -> HarnessAdapter:
    """Return the adapter in the package of `entry`. Raises Refused for anything else."""
    kind = entry.load()
    if isinstance(kind, type):
        adapter = kind()
    else:
        adapter = kind
    if not isinstance(adapter, HarnessAdapter) or adapter.name != entry.name:
        raise Refused(f"{entry.value} is no adapter of a harness called {entry.name!r} (docs/dev/adding-a-harness.md)")
    return adapter


@functools.cache
def _offered() -> dict[str, EntryPoint]:
    """Name -> entry point of the adapters that other packages bring; looked up once in a process."""
    from importlib.metadata import entry_points

    if sys.flags.no_site:
        # Servers and supervisors are started so, for speed. Packages that are installed for being worked on are found
        # by the files that `site` reads.
        site.addsitedir(os.path.dirname(os.path.dirname(os.path.abspath(swarm_mcp.__file__))))
    return {entry.name: entry for entry in entry_points(group=GROUP)}
