"""Harnesses of our own: they start a command inside its plan themselves, and no shell has to look for it."""

import os
import sys

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.planning import DIRECTLY, kept_out


def inside(place: str, argv) -> "list[str]":
    """Return the command line that runs `argv` where what the plan in the file `place` names is read-only."""
    enter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.py")
    return [sys.executable, "-E", "-s", "-S", enter, place, *argv]


def plan_place(call, config) -> str:
    """Return the file of a call's plan, which need not be there."""
    from swarm_hook_core.kernel.planning import name_of_call

    return os.path.join(plans.folder_of(call.session_id), name_of_call(config, call))


def plain_config(runtime: str) -> RuntimeConfig:
    """Return what is to be known of a session that is no client's, where parts of its commands are checked."""
    name = runtime.upper().replace("-", "_")
    return RuntimeConfig(runtime, name, f"swarm-{runtime}", (), lambda given: [], kernel=DIRECTLY)


def keeps_out(command: str, folder: str) -> str:
    """Return which of its programs does not work in a namespace of this user's, empty for none."""
    from swarm_hook_core.shell import effects_of

    return min(kept_out(effects_of(command, folder).programs), default="")


def plan_of_process(whose: "tuple[str, str, str]", folder: str, is_strict: bool, store: str):
    """Return ``(Plan or None, whether it names all that is held)`` for a process that works in `folder`.

    `whose`: the runtime and the id of its session, and that session's row in `store`.
    """
    from swarm_hook_core.kernel import reach
    from swarm_hook_core.paths import git_root

    plan = plans.Plan(*whose, is_strict=is_strict, roots=[git_root(folder)], store=store)
    plan.paths, are_all = reach.held_now(plan)
    return (plan if plan.paths else None), are_all
