"""The hooks' behaviour inside an installed plugin, on the standard library alone.

Import cost is this package's first concern, because a check runs before every write. A bare interpreter starts in about
9 ms; ``json``, ``re``, ``typing``, ``pathlib``, ``dataclasses``, ``functools``, ``subprocess`` and ``tempfile`` each
cost 2 to 15 ms more. Modules on the path of a check therefore import none of them, and everything else is imported
where it is first needed.
"""

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
