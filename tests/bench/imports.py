"""The imports of one check, by time."""

from __future__ import annotations

import subprocess

from .plugin import Plugin

# Runs an entry script as the interpreter would, then prints the loaded modules.
_LOADED = """\
import sys
path = sys.argv[1]
sys.path.insert(0, path.rpartition("/")[0])
before = set(sys.modules)
try:
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), {"__name__": "__main__", "__file__": path})
except SystemExit:
    pass
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
"""


def profile(plugin: Plugin, runtime: str, payload: bytes, env: dict[str, str], cwd: str) -> str:
    """Return ``-X importtime`` of one PreToolUse, dearest module first, and the modules that a check loads.

    Times are microseconds under the profiler. It costs time itself: compare them with each other only.
    """
    python, script = plugin.script(runtime, "PreToolUse")
    timed = _run([*python, "-X", "importtime", script], payload, env, cwd)
    rows = []
    for line in timed.splitlines():
        cost, _, rest = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and cost.strip().isdigit():
            total, _, name = rest.partition("|")
            rows.append((int(cost), int(total), name.strip()))
    rows.sort(reverse=True)
    loaded = _run([*python, "-c", _LOADED, script], payload, env, cwd).split()
    lines = [f"{runtime}: imports of one check, microseconds (self, with what it imports)"]
    lines += [f"{own:8} {total:8}  {name}" for own, total, name in rows[:30]]
    lines.append(f"{runtime}: {len(loaded)} modules beyond a bare interpreter's")
    lines.append("  " + " ".join(loaded))
    return "\n".join(lines)


def _run(argv: list[str], payload: bytes, env: dict[str, str], cwd: str) -> str:
    done = subprocess.run(argv, input=payload, capture_output=True, env=env, cwd=cwd, check=True)
    return done.stderr.decode()
