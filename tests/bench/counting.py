"""Instructions of a command in user space, by ``valgrind --tool=callgrind``: the same on a busy machine, to 1 %."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from .plugin import WrongAnswer

TOOL = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes"]


class Counted(NamedTuple):
    """A command's instructions, those of its children included, and its answer."""

    instructions: int
    output: bytes


def can_count() -> bool:
    """Return True if the counter is installed."""
    return shutil.which("valgrind") is not None


def count(argv: list[str], sent: bytes, env: dict[str, str], cwd: str) -> Counted:
    """Run a command under the counter, with `sent` on its standard input.

    A program that executes another one in its place is not counted, nor is a child that outlives the command.
    """
    with tempfile.TemporaryDirectory(prefix="counted-", dir=env.get("TMPDIR"), ignore_cleanup_errors=True) as folder:
        words = [*TOOL, f"--log-file={folder}/%p", *argv]
        done = subprocess.run(words, input=sent, capture_output=True, env=env, cwd=cwd)
        total = 0
        for log in sorted(Path(folder).iterdir()):
            text = log.read_text(errors="replace")
            found = re.search(r"Collected : (\d+)", text)
            if found:
                total += int(found[1])
    if not total:
        raise WrongAnswer(f"{argv} was not counted: {done.stderr[-500:]!r}")
    return Counted(total, done.stdout)
