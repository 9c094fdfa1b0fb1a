"""The first shell command after an installation, on a slow machine: all that reads it has to be compiled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.sessions import ROOT, captured, fault_lines, new_session, peer_locks, start

pytestmark = pytest.mark.slow

COMMANDS = (
    "echo 'line two' | tee notes.md",
    "sed -i 's/line one/line two/' notes.md",
    """python3 -c "open('notes.md', 'w').write('line two')" """,
    "cat > notes.md <<'EOF'\nline two\nEOF",
    "find . -name 'no*.md' -exec sed -i s/one/two/ {} +",
    "cp other.md notes.md",
)
# As hook.py is started, with a processor clock that goes so many times faster.
SLOWLY = """
import os, sys, time
hook, times = sys.argv.pop(1), float(sys.argv.pop(1))
clock = time.thread_time
begun = clock()
time.thread_time = lambda: begun + (clock() - begun) * times
sys.argv[0] = __file__ = hook
sys.path[0] = os.path.dirname(hook)
exec(compile(open(hook).read(), hook, "exec"))
"""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled
def test_what_has_to_be_loaded_first_does_not_let_a_write_pass(command: str, repo: Path, tmp_path: Path) -> None:
    me = new_session()
    start("codex", me, repo)
    (repo / "notes.md").write_text("line one\n")
    peer_locks(repo, repo / "notes.md")
    given = {
        "session_id": me,
        "cwd": str(repo),
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "x",
    }
    no_bytecode = ["-B", "-X", f"pycache_prefix={tmp_path / 'nothing'}"]
    hook = [str(ROOT / "integrations" / "hook.py"), "5", "codex", "pre_tool_use"]
    done = subprocess.run(
        [sys.executable, "-E", "-s", "-S", *no_bytecode, "-c", SLOWLY, *hook],
        input=json.dumps({**captured("codex", "PreToolUse.Bash", repo), **given}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "swarm lock blocked" in done.stdout, (done.stdout, done.stderr, fault_lines())
