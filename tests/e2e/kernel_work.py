"""Programs with unpredictable writes, and the kernel's leftovers."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .ground import Ground, wait_for

ON = {"SWARM_KERNEL": "1"}
# A program that takes its file names from data: they stand nowhere in the command.
FIX = """\
import json, pathlib
for name in json.loads(pathlib.Path("names.json").read_text()):
    try:
        pathlib.Path(name).write_text("spoilt\\n")
    except OSError as error:
        print(error)
"""
STATIC = """\
#include <errno.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    FILE *file = fopen("notes.md", "w");
    if (!file) { printf("static: %s\\n", strerror(errno)); return 0; }
    fputs("spoilt\\n", file);
    return fclose(file);
}
"""
# The same for the programs that it runs.
RUN = """\
import json, pathlib, subprocess, sys
sys.exit(subprocess.run(json.loads(pathlib.Path(sys.argv[0] + ".json").read_text())).returncode)
"""
WORDS = "the kernel kept this command"


def script(ground: Ground, name: str, words: list[str]) -> str:
    """Return the command of a program that runs `words`, read from data beside it."""
    (ground.checkout / name).write_text(RUN)
    (ground.checkout / f"{name}.json").write_text(json.dumps(words))
    return f"python3 {name}"


def fill(ground: Ground, *names: str) -> None:
    """Put FIX and the names of the files that it is to spoil into the checkout."""
    (ground.checkout / "fix.py").write_text(FIX)
    (ground.checkout / "names.json").write_text(json.dumps(names))


def static(folder: Path) -> str:
    """The command for a program that no library of ours could hold back; empty where nothing here can make one."""
    compiler = shutil.which("cc")
    if not compiler:
        return ""
    (folder / "spoil.c").write_text(STATIC)
    made = subprocess.run([compiler, "-static", "-o", "spoil", "spoil.c"], cwd=folder, capture_output=True)
    return "" if made.returncode else "./spoil"


def kernel_state(ground: Ground) -> Path:
    return ground.home / ".local" / "state" / "swarm-mcp" / "kernel"


def left(ground: Ground) -> list[str]:
    """Return the sessions' leftovers of kernel plans: plans, and marks for shells that look for some."""
    there = kernel_state(ground)
    return sorted(str(path.relative_to(there)) for path in there.rglob("*") if path.parent != there)


def mounts(ground: Ground) -> list[str]:
    """Return the mounts of this ground outside of our namespaces: there must be none."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(ground.root) in line]


@contextmanager
def nothing_left(ground: Ground) -> Iterator[None]:
    """All that happens within has ended at its end: no plan, no process, no mount is left of it."""
    before = left(ground)
    yield
    assert wait_for(lambda: set(left(ground)) <= set(before), 60), left(ground)
    assert wait_for(lambda: not ground.own_processes(), 60), ground.command_lines()
    assert not mounts(ground)
