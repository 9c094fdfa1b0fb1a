"""Limits on the clock, raised: on a busy machine they would decide tests. Speed is measured in tests/bench.

A check that has no answer in time goes on without it. Tests in this process raise the limits of `HURRY`. Programs in
processes of their own come from a copy of the installation, or of a plugin, whose limits are raised: `patient_programs`,
`raise_limits`. Nothing in the product can be told to wait longer.
"""

import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from support.checkouts import AMPLE
from swarm_hook_core import (
    clock,
    collisions,
    coordinator,
    environment,
    registration,
    session_events,
    session_memory,
    wildcards,
)
from swarm_hook_core.lookup import glance, sqlite
from swarm_hook_core.shell import walk
from swarm_hook_core.shell.programs import archives, searches
from swarm_hook_core.shell.programs.git import listings
from swarm_hook_core.stakes import owners, stash
from swarm_hook_core.traces import elsewhere, file_changes, pruning, transcript, whole_writes
from swarm_hook_core.traces.head import movement, shared
from swarm_hook_core.traces.versions import lines, steps
from swarm_hook_core.watching import watch

# Seconds on the clock, not of processor time, after which a check goes on without an answer.
HURRY: dict[ModuleType, str] = {
    **dict.fromkeys(
        (elsewhere, environment, coordinator, listings, movement, searches, stash, whole_writes),
        "SECONDS",
    ),
    archives: "LISTING_SECONDS",
    collisions: "GIT_SECONDS TREE_SECONDS",
    file_changes: "SECONDS LINES_SECONDS",
    owners: "SECONDS SECONDS_TO_SHOW",
    pruning: "GIT_SECONDS",
    shared: "ALIAS_SECONDS",
    transcript: "MOST_SECONDS",
    watch: "KEEPING_SECONDS PATTERN_SECONDS",
    sqlite: "GIT_SECONDS",
    wildcards: "SEARCH_SECONDS",
}  # fmt: skip

# What only processes meet besides: the start of one's session, a store that others write, and processor time.
PROCESSES: dict[ModuleType, str] = {
    **dict.fromkeys((lines, steps, glance), "SECONDS"),
    clock: "SECONDS",
    glance: "BUSY_SECONDS",
    session_memory: "TELL_SECONDS",
    session_events: "START_SECONDS START_PATIENCE TURN_SECONDS TURN_PATIENCE END_SECONDS END_PATIENCE",
    registration: "DEADLINE_SECONDS PATIENCE",
    walk: "SECONDS SECONDS_TO_PARSE",
}

# The launcher ends a coordinator that takes longer.
LAUNCHER = "integrations/hook.sh"  # of the plugin
_WITHIN = re.compile(r"\bwithin=[\d.]+")


def patient_programs(folder: Path) -> Path:
    """Copy the installed swarm to `folder`, with ample limits; return the folder of its program `swarm-mcp`."""
    installed = Path(sysconfig.get_path("purelib"))
    packages, programs = folder / "packages", folder / "bin"
    packages.mkdir(parents=True)
    programs.mkdir()
    for entry in installed.iterdir():
        if entry.name not in ("swarm_mcp", "swarm_hook_core"):
            (packages / entry.name).symlink_to(entry)
        else:
            shutil.copytree(entry, packages / entry.name)  # with the times that its bytecode goes by
    raise_limits(packages, packages / "swarm_mcp" / "_plugin")
    code = f"import sys; sys.path[:0] = [{str(packages)!r}]; from swarm_mcp.cli.main import main; sys.exit(main())"
    program = programs / "swarm-mcp"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-S", "-c", code])} "$@"\n')
    program.chmod(0o755)
    return programs


def raise_limits(packages: Path, plugin: Path) -> None:
    """Raise the limits in copies of the hooks' package, in the folder `packages`, and of the plugin."""
    for module, names in (*HURRY.items(), *PROCESSES.items()):
        assert all(hasattr(module, name) for name in names.split()), (module, names)
        file = packages / f"{module.__name__.replace('.', '/')}.py"
        with open(file, "a", encoding="utf-8") as source:  # a limit is read at each use
            source.writelines(f"{name} = {AMPLE}\n" for name in names.split())
    text, raised = _WITHIN.subn(f"within={AMPLE:.0f}", (plugin / LAUNCHER).read_text(encoding="utf-8"))
    assert raised == 3, "the launcher states its limits otherwise"
    (plugin / LAUNCHER).write_text(text, encoding="utf-8")
