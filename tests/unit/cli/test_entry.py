"""The entry of the command: bugs, version, help, and the cost of starting up."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Done, Ground

import swarm_mcp
from swarm_hook_core.state import state_dir
from swarm_mcp.cli.commands import locks

HEAVY = (
    "argparse",
    "jsonschema",
    "sqlite_utils",
    "uuid",
    "subprocess",
    "difflib",
    "platformdirs",
    "mcp",
)


def test_a_bug_exits_3_with_a_report_and_one_line(ground: Ground, failing):
    failing(locks.locks, "run", ZeroDivisionError("two\nlines"))
    done = ground.swarm("locks")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1 and "ZeroDivisionError: two lines" in done.err
    (report,) = Path(state_dir(), "crashes").iterdir()
    assert str(report) in done.err
    assert ", in fails\n" in report.read_text() and report.stat().st_mode & 0o077 == 0


def test_a_bug_without_room_for_a_report_is_still_one_line(ground: Ground, failing):
    Path(state_dir()).parent.mkdir(parents=True, exist_ok=True)
    Path(state_dir()).write_text("in the way")
    failing(locks.locks, "run", ZeroDivisionError("x"))
    done = ground.swarm("locks")
    assert done.code == 3 and done.err.count("\n") == 1 and "Traceback" not in done.err


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_version(ground: Ground, word: str):
    assert ground.swarm(word) == (0, f"swarm-mcp {swarm_mcp.__version__}\n", "")


def loaded_by(ground: Ground, argv: list[str]) -> tuple[Done, set[str]]:
    """Return the end of a command, and the modules that it has loaded."""
    code = (
        f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; code = main(sys.argv[1:]);"
        " print(sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = ground.process(*argv, program=[*BARE_PYTHON, "-c", code])
    return done, set(eval(done.err))


def test_the_version_loads_next_to_nothing(ground: Ground):
    done, loaded = loaded_by(ground, ["--version"])
    assert done.out.startswith("swarm-mcp ")
    assert len([name for name in loaded if name.startswith("swarm")]) <= 8 and not loaded & set(HEAVY)


@pytest.mark.parametrize("words", ["locks", "status", "lock f --detach --ttl 60"])
def test_a_machine_without_a_store_needs_no_slow_library(ground: Ground, words: str):
    done, loaded = loaded_by(ground, words.split())
    assert done.code == 0 and os.path.exists(ground.database) is ("--ttl" in words) and not loaded & set(HEAVY)


@pytest.mark.parametrize("verb", ["register", "deregister", "locks", "lock", "unlock", "status", "alive"])
def test_what_hooks_call_imports_nothing_slow(ground: Ground, verb: str):
    ground.session("s1", "someone")
    me = ground.session("s2", "me")
    argv = {
        "register": ["register", ground.scope, "--label", "me", "--runtime", "claude-code", "--session-id", "s2",
                     "--lease-seconds", "86400", "--client", "1:1", "--state", "working", "--pane", "p1", "--json"],
        "deregister": ["deregister", "--runtime", "claude-code", "--session-id", "s2", "--json"],
        "locks": ["locks", "--json"],
        "lock": ["lock", "a.txt", "--as", me["id"], "--json"],
        "unlock": ["unlock", "a.txt", "--as", me["id"], "--json"],
        "status": ["status"],
        "alive": ["alive", "--runtime", "claude-code", "--session-id", "s2"],
    }[verb]  # fmt: skip
    if verb == "unlock":
        ground.lock(me, "a.txt")
    done, loaded = loaded_by(ground, argv)
    assert done.code == 0 and (verb not in ("register", "deregister", "lock") or json.loads(done.out)["id"]), done
    assert loaded & set(HEAVY) == set()
    assert "swarm_mcp.store.database" in loaded  # the list is the real one


def test_a_store_that_is_new_is_made_by_the_first_register(ground: Ground):
    done = ground.process("register", "--json")
    assert done.code == 0 and os.path.exists(ground.database)
    assert ground.process("instances", "--json").json[0]["id"] == done.json["id"]


def test_nothing_is_read_from_standard_input(ground: Ground):
    done = subprocess.run([*SWARM, "locks"], stdin=subprocess.PIPE, capture_output=True, cwd=ground.repo, timeout=60)
    assert done.returncode == 0
    closed = ["/bin/sh", "-c", 'exec "$@" 0<&-', "sh", *SWARM, "locks"]
    assert subprocess.run(closed, capture_output=True, cwd=ground.repo, timeout=60).returncode == 0
