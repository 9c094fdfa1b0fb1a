"""A world with moments apart: for machines that know the author of each line."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

from support.checkouts import ALONE, AMPLE
from support.sessions import ready_store
from swarm_hook_core import clock
from swarm_hook_core.shell import walk
from swarm_hook_core.stakes import owners
from swarm_hook_core.traces import file_changes, journal, meetings, pruning, seen, whole_writes
from swarm_hook_core.traces.versions import lines, steps

TIMED = (clock, walk, owners, file_changes, whole_writes, lines, steps)  # modules with `SECONDS`


@contextlib.contextmanager
def home_apart(**variables: str) -> Iterator[Path]:
    """Give a folder with a home and an empty store of its own, and remove it afterwards; with more `variables`.

    Commands are parsed to the end and git has ample time: a busy machine is no defect.
    """
    base = Path(tempfile.mkdtemp()).resolve()
    given = {"SWARM_STATE_DIR": base / "state", "SWARM_DB_PATH": base / "swarm.db", "HOME": base, **ALONE, **variables}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base)
        stack.enter_context(mock.patch.dict(os.environ, {name: str(value) for name, value in given.items()}))
        for module in TIMED:
            stack.enter_context(mock.patch.object(module, "SECONDS", AMPLE))
        stack.enter_context(mock.patch.object(walk, "SECONDS_TO_PARSE", AMPLE))
        stack.enter_context(mock.patch.object(pruning, "GIT_SECONDS", AMPLE))
        ready_store()
        yield base


@contextlib.contextmanager
def without(*spans: tuple[ModuleType, str]) -> Iterator[None]:
    """Set spans of time, each a module and a name, to 0."""
    with contextlib.ExitStack() as stack:
        for module, name in spans:
            stack.enter_context(mock.patch.object(module, name, 0))
        yield


EXACT = ((journal, "SLACK_NS"), (meetings, "WAIT_SECONDS"))  # file times are exact, and no call runs beside another one
NEAR = ((seen, "APART_NS"),)


@contextlib.contextmanager
def moments_apart() -> Iterator[Path]:
    """Give a home apart in which each moment is far from the next one."""
    with home_apart() as base, without(*EXACT, *NEAR):
        yield base


def tick(folder: Path) -> None:
    """Wait for the next tick of the kernel's file times."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        before = os.fstat(probe.fileno()).st_mtime_ns
        while os.fstat(probe.fileno()).st_mtime_ns == before:
            os.utime(probe.fileno())
