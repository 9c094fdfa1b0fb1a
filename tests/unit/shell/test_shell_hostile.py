"""Commands made to hurt their reader: the analysis ends, soon, with an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SECONDS = 0.05
SLACK = 20  # a busy machine's; what grows with the square takes minutes
MEMORY = 1 << 30  # bytes of address space


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, str]]:
    """Name of a command -> processor seconds it took, and its error."""
    folder = tmp_path_factory.mktemp("hostile")
    os.mkfifo(folder / "fifo")
    # A process of its own, so that exhausted memory ends there.
    done = subprocess.run(
        [sys.executable, "-B", "-m", "corpora.hostile", str(folder / "fifo"), str(MEMORY), str(SECONDS)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    return json.loads(done.stdout)


def test_nothing_is_raised(told: dict[str, tuple[float, str]]) -> None:
    assert not {name: error for name, (_seconds, error) in told.items() if error}


def test_it_ends_soon(told: dict[str, tuple[float, str]]) -> None:
    slowest = sorted(((seconds, name) for name, (seconds, _error) in told.items()), reverse=True)
    print(f"{len(told)} commands;", ", ".join(f"{name}: {seconds * 1000:.0f} ms" for seconds, name in slowest[:8]))
    assert not {name: seconds for seconds, name in slowest if seconds > SECONDS * SLACK}
