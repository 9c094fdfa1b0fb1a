"""The hooks' behaviour inside an installed plugin, on the standard library alone.

A checker has all of it loaded (``swarm_mcp.checker``). A hook that runs as a process loads what its call needs: modules
that would cost it much more are imported in the functions that need them, and so are those that would make a circle.
"""

from __future__ import annotations

__version__ = "0.1.0"
DISTRIBUTION = "swarm-locks"  # the coordinator's name on the package index
__all__ = ["DISTRIBUTION", "EDIT", "REMOVE", "REPLACE", "HookCore", "RuntimeConfig", "__version__"]

# The ways in which a write changes a file, as seen from the uncommitted work in it.
EDIT = "edit"  # keeps the rest of the file; the default of a write that is not known to lose it
REPLACE = "replace"  # other content comes in its place, whole
REMOVE = "remove"  # the file is gone from its place


def __getattr__(name: str) -> object:
    # Lazy, so that the coordinator can use one module of this package without paying for the rest.
    if name == "HookCore":
        from swarm_hook_core.core import HookCore

        return HookCore
    if name == "RuntimeConfig":
        from swarm_hook_core.config import RuntimeConfig

        return RuntimeConfig
    raise AttributeError(name)
