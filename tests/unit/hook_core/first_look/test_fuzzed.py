"""Payloads and journals with random changes, read by the program's parts under sanitizers; `make fuzz` is the long form."""

from __future__ import annotations

import random
import runpy
import shutil
import sys
from pathlib import Path

import pytest

FUZZ = runpy.run_path(str(Path(__file__).parents[4] / "native" / "fuzz" / "fuzz.py"))
INPUTS = 3000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the target wraps functions of the C library as GNU's linker does"
    ),
    pytest.mark.skipif(not shutil.which("cc"), reason="no compiler with sanitizers"),
]


def test_changed_payloads_and_journals_find_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path) if len(str(tmp_path)) < 40 else "/tmp")
    program = tmp_path / "target"
    FUZZ["build"](program, ["cc"], by_hand=True)
    pick = random.Random(1)
    inputs = [*FUZZ["SEEDS"], *(FUZZ["mutated"](pick, FUZZ["SEEDS"]) for _ in range(INPUTS))]
    done = FUZZ["fed"](program, inputs)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-3000:]
