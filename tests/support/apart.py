"""A world with moments apart: for machines that know the author of each line."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from support.checkouts import ALONE, AMPLE
from support.sessions import ready_store
from swarm_hook_core import budget
from swarm_hook_core.shell import walk
from swarm_hook_core.traces import committed, journal, keeping, looks, meetings, seen, seen_text, sweeps
from swarm_hook_core.traces.versions import lines, pruning, reflog

TIMED = (budget, walk, sweeps, committed, looks, seen_text, lines, reflog)  # modules with `SECONDS`


@contextlib.contextmanager
def moments_apart() -> Iterator[Path]:
    """Give a folder with a home of its own, and remove it afterwards.

    File times are exact, no call runs beside another one, and git has ample time: a busy machine is no defect.
    """
    base = Path(tempfile.mkdtemp()).resolve()
    given = {"SWARM_STATE_DIR": base / "state", "SWARM_DB_PATH": base / "swarm.db", "HOME": base}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base)
        stack.enter_context(mock.patch.dict(os.environ, {name: str(value) for name, value in given.items()}))
        stack.enter_context(mock.patch.dict(os.environ, ALONE))
        for module, name in (
            (journal, "SLACK_NS"),
            (seen, "APART_NS"),
            (keeping, "NEAR_NS"),
            (meetings, "WAIT_SECONDS"),
        ):
            stack.enter_context(mock.patch.object(module, name, 0))
        for module in TIMED:
            stack.enter_context(mock.patch.object(module, "SECONDS", AMPLE))
        stack.enter_context(mock.patch.object(walk, "SECONDS_TO_PARSE", AMPLE))
        stack.enter_context(mock.patch.object(pruning, "GIT_SECONDS", AMPLE))
        ready_store()
        yield base


def tick(folder: Path) -> None:
    """Wait for the next tick of the kernel's file times."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        before = os.fstat(probe.fileno()).st_mtime_ns
        while os.fstat(probe.fileno()).st_mtime_ns == before:
            os.utime(probe.fileno())
