"""The way of a check's call through the code: ``python -m tests.bench.flow [CHECKOUT]``.

For each case three figures of one real check, from ``run_pre_tool_use_hook`` to its answer: *stays*, the number of
times that the control enters another module of the hook core; *rooms*, the number of different modules; *returns*,
stays in a module that had been left before. And *handed*: calls of functions with the payload, or the `ToolCall` made
of it, as an argument; *read*: lookups of the payload's fields.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {
    "write, nothing near": ("Write", {"file_path": "free.txt", "content": "x"}),
    "write, denied": ("Write", {"file_path": "held.txt", "content": "x"}),
    "shell, denied": ("Bash", {"command": "echo x > held.txt"}),
    "shell, watched": ("Bash", {"command": "make all"}),
}
PROFILE = """
import io, json, os, sys
root, given = sys.argv[1:3]
sys.path.insert(0, root)
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore
try:
    from swarm_hook_core import hooks as payloads
    name = "loads_object"
except ImportError:
    from swarm_hook_core import payload as payloads
    name = "loads_outer"
core = HookCore(RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write"}, paths_under_keys("file_path")))
visits, reads, handed, last = [], [0], [0], [None]

class Payload(dict):
    def get(self, *words):
        reads[0] += 1
        return dict.get(self, *words)
    def __getitem__(self, key):
        reads[0] += 1
        return dict.__getitem__(self, key)

def parsed(text, loads=getattr(payloads, name)):
    value = loads(text)
    return Payload(value) if isinstance(value, dict) and "tool_name" in value else value

setattr(payloads, name, parsed)

def watch(frame, event, _argument):
    name = frame.f_code.co_filename
    if event == "call" and "swarm_hook_core" in name and not frame.f_code.co_name.startswith("<"):
        if name != last[0]:
            visits.append(name)
        count = frame.f_code.co_argcount
        values = [frame.f_locals.get(word) for word in frame.f_code.co_varnames[:count]]
        if any(isinstance(one, Payload) or type(one).__name__ == "ToolCall" for one in values):
            handed[0] += 1
    if "swarm_hook_core" in name and event in ("call", "return"):
        back = frame if event == "call" else frame.f_back
        while back is not None and "swarm_hook_core" not in back.f_code.co_filename:
            back = back.f_back
        last[0] = back.f_code.co_filename if back is not None else None

out, sys.stdout = sys.stdout, io.StringIO()
sys.setprofile(watch)
core.run_pre_tool_use_hook(io.StringIO(given))
sys.setprofile(None)
answer, sys.stdout = sys.stdout.getvalue(), out
short = "deny" if '"deny"' in answer else "words" if answer else "pass"
print(json.dumps([short, len(visits), len(set(visits)), handed[0], reads[0]]))
"""


def main(root: str) -> None:
    """Print the table for the checkout at `root`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "work"
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        env = {**os.environ, "HOME": name, "SWARM_STATE_DIR": f"{name}/state", "SWARM_DB_PATH": f"{name}/swarm.db"}
        env["PYTHONPATH"] = root

        def swarm(*words: str) -> dict[str, object]:
            done = subprocess.run(
                [sys.executable, "-m", "swarm_mcp", *words, "--json"],
                cwd=folder, env=env, capture_output=True, text=True, check=True,
            )  # fmt: skip
            row = json.loads(done.stdout)
            return row if isinstance(row, dict) else {}

        for session in ("me", "peer"):
            row = swarm("register", str(folder), "--runtime", "claude-code", "--session-id", session)
        swarm("lock", str(folder / "held.txt"), "--as", str(row["id"]), "--note", "measured")
        for case, (tool, tool_input) in CASES.items():
            payload = {"session_id": "me", "cwd": str(folder), "hook_event_name": "PreToolUse", "tool_name": tool}
            given = json.dumps({**payload, "tool_input": tool_input, "tool_use_id": case})
            words = [sys.executable, "-c", PROFILE, root, given]
            done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=True)
            answer, stays, rooms, handed, read = json.loads(done.stdout)
            print(f"{case:22} {answer:6} stays {stays:5} rooms {rooms:3} returns {stays - rooms:5} "
                  f"handed {handed:3} read {read:3}")  # fmt: skip


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")))
