"""The second layer for our own harnesses: they start a command inside its plan themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.kernel import plans, reach
from swarm_hook_core.kernel.planning import DIRECTLY, kept_out, name_of_call
from swarm_hook_core.kernel.plans import Plan
from swarm_hook_core.paths import git_root
from swarm_hook_core.shell import effects_of


def inside(place: str, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` with the paths of the plan in the file `place` read-only."""
    enter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.py")
    return [sys.executable, "-E", "-s", "-S", enter, place, *argv]


def plan_place(call: ToolCall, config: RuntimeConfig) -> str:
    """Return the path of a call's plan; the file need not exist."""
    return os.path.join(plans.folder_of(call.session_id), name_of_call(config, call))


def plain_config(runtime: str) -> RuntimeConfig:
    """Return a RuntimeConfig for a session without a client, for checking parts of its commands."""
    name = runtime.upper().replace("-", "_")
    return RuntimeConfig(runtime, name, f"swarm-{runtime}", (), lambda given: [], kernel=DIRECTLY)


def keeps_out(command: str, folder: str) -> str:
    """Return one of the command's programs that fails in a user namespace, or ""."""
    return min(kept_out(effects_of(command, folder).programs), default="")


def plan_of_process(whose: tuple[str, str, str], folder: str, is_strict: bool, store: str) -> tuple[Plan | None, bool]:
    """Return ``(Plan or None, True if it names all locks)`` for a process that works in `folder`.

    `whose`: the session's runtime, its id, and its row in `store`.
    """
    plan = plans.Plan(*whose, is_strict=is_strict, roots=[git_root(folder)], store=store)
    plan.paths, are_all = reach.held_now(plan)
    return (plan if plan.paths else None), are_all
