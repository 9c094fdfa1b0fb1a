"""A child with all permissions, while the kernel holds the locks of others, if a person wants that.

``swarm_hook_core.kernel`` implements it. Locks taken after the child's start are not held for it; released ones become
writable.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from swarm_hook_core import faults, settings
from swarm_hook_core.kernel import direct, probe
from swarm_hook_core.state import store_path, write_private
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.domain.session import RUN_RUNTIME


class NotHeld(Exception):
    """The locks of others are not held, with the reason. `is_final`: the child must not start so."""

    def __init__(self, why: str, is_final: bool):
        super().__init__(why)
        self.is_final = is_final


def inside(query: Query, argv: list[str], folder: Path) -> list[str]:
    """Return the command line that starts the child of `query`: `argv` itself where there is nothing to be held.

    The plan is written into `folder`. Raises NotHeld.
    """
    if not query.instance_id or not settings.kernel("", query.cwd):
        return argv
    is_strict = settings.strict("", query.cwd)
    try:
        whose = RUN_RUNTIME, query.run_id, query.instance_id
        plan, are_all = direct.plan_of_process(whose, query.cwd, is_strict, store_path())
        if plan is None and are_all:
            return argv
        program = direct.keeps_out(shlex.join([os.path.basename(argv[0]), *argv[1:]]), query.cwd)
        if program:
            raise NotHeld(f"{program} does not work so", is_strict)
        if not probe.works():
            raise NotHeld("the kernel does not do it here: swarm-mcp doctor says why", is_strict)
        if plan is None or (is_strict and not are_all):
            raise NotHeld("some of it is not there yet, or is a pattern", is_strict)
        place = folder / "held"
        write_private(str(place), plan.text())
        return direct.inside(str(place), argv)
    except NotHeld:
        raise
    except Exception as error:
        faults.record(RUN_RUNTIME, "kernel", faults.describe(error))
        raise NotHeld(faults.describe(error), is_strict) from error
