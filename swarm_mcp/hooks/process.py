"""A hook of a plugin as a process of the coordinator: ``swarm-mcp hook EVENT --runtime NAME [--within SECONDS]``.

An installed plugin starts the hooks of a session's life so (``integrations/hook.sh``), because one interpreter is
enough for them. The client waits for each, so their command line has a reader of its own.
"""

from __future__ import annotations

import os
import sys

from swarm_mcp.contributions import put_undos_right
from swarm_mcp.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any


HOOKS = ("session-start", "session-end", "pre-tool-use", "post-tool-use", "turn", "subagent")
_LIFE = ("session-start", "session-end", "turn")


def as_wired(words: list[str]) -> int | None:
    """Run the hook of exactly this command line, as plugins have it. Return its status, or None for another line."""
    if len(words) != 5 or words[1::2] != ["--runtime", "--within"]:
        return None
    hook, seconds = words[0].replace("_", "-"), words[4]
    if hook not in _LIFE or not seconds.replace(".", "", 1).isdecimal():
        return None
    end_within(float(seconds))
    return run(hook, words[2])


def run(hook: str, runtime: str) -> int:
    """Run one hook on standard input and output; its exit status. Raises UsageError before it reads anything."""
    from swarm_mcp.runtimes import hook_config

    config = hook_config(runtime)
    if hook not in _LIFE or os.environ.get("SWARM_MCP_BIN", "").strip():
        import shlex

        from swarm_hook_core.core import HookCore
        from swarm_mcp.installation import coordinator_command
        from swarm_mcp.runtimes import runtime as runtime_called

        if hook == "subagent" and not runtime_called(runtime).has_subagents:
            raise UsageError(f"{runtime} has no such hook: {hook}")
        # An installed plugin knows its coordinator from its own record; here it is this very installation.
        os.environ.setdefault("SWARM_MCP_BIN", shlex.join(coordinator_command()))
        status: int = getattr(HookCore(config), f"run_{hook.replace('-', '_')}_hook")(sys.stdin)
        return status
    from swarm_mcp.store import driver

    return run_in_store(runtime, hook.replace("-", "_"), sys.stdin, driver.load())


def run_in_store(runtime: str, event: str, payload: IO[Any], driver: Any) -> int:
    """Run a hook of a session's life, which registers the session in the store itself; its exit status.

    `driver`: the SQLite module of this process.
    """
    from swarm_hook_core.core import HookCore
    from swarm_mcp.hooks.session_hooks import StoreRegistrar
    from swarm_mcp.runtimes import hook_config

    registrar = StoreRegistrar(runtime)
    core = HookCore(hook_config(runtime), driver=driver, registrar=registrar)
    status: int = getattr(core, f"run_{event}_hook")(payload)
    try:
        registrar.close()
        put_undos_right()
    except Exception as error:  # the hook is done; were this told by the status, the plugin would run it once more
        from swarm_hook_core import faults

        faults.record(runtime, event, faults.describe(error))
    return status


def end_within(seconds: float) -> None:
    """Have this process killed when the time is over, at any point: the store loses nothing by it."""
    # `signal` offers the same, at the cost of enums (a millisecond). It is CPython's own, and in no stubs.
    import _signal  # type: ignore[import-not-found]

    if hasattr(_signal, "setitimer"):
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, seconds)
