"""The scenes of the demo: your uncommitted lines, another agent's, and a lock."""

from __future__ import annotations

import subprocess
import time

from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.doctor.demo import Stage
    from swarm_mcp.doctor.played_session import PlayedSession

SCHEMA, IMPORTER = "schema.sql", "importer.py"
TABLE = "create table orders (id integer);\n"
YOURS = """\
alter table orders add column total numeric;
alter table orders add column paid_at timestamp;
create index orders_total on orders (total);
create index orders_paid_at on orders (paid_at);
"""
EMPTY = "def parse(line):\n    return line\n"
THEIRS = '    return line.strip().split(";")\n'
SWEEP = "git checkout ."
OTHER_SWEEPS = ("git stash", "git reset --hard", "git restore .", f"rm {SCHEMA}")
NOTE = "renumbering migrations"
SHELL_WRITES = (
    "for f in *.sql; do sed -i.bak 's/orders/sales/' \"$f\"; done",
    f"echo 'drop table orders;' | tee {SCHEMA}",
    f"python3 -c \"open('{SCHEMA}', 'w').write('')\"",
    f"cd .. && mv shop/{SCHEMA} shop/old.sql",
)
WAIT = 20  # seconds


def lay_out(stage: Stage) -> None:
    """Make the folder with its two files."""
    stage.folder.mkdir()
    (stage.folder / SCHEMA).write_text(TABLE, encoding="utf-8")
    (stage.folder / IMPORTER).write_text(EMPTY, encoding="utf-8")


def your_work(stage: Stage) -> None:
    """Play one agent beside a person's uncommitted lines."""
    stage.git("init", "--quiet", "--template=")
    stage.git("add", ".")
    stage.git("commit", "--quiet", "--message=begin")
    (stage.folder / SCHEMA).write_text(TABLE + YOURS, encoding="utf-8")
    stage.heading("1. One agent, and your uncommitted lines")
    stage.tell(f"You have added four lines to {SCHEMA}:", SCHEMA)
    stage.shown(YOURS)
    codex = stage.session("codex")
    stage.tell("Codex would like to start over:", "Codex")
    stage.typed(SWEEP)
    stage.refused(lambda: codex.shell(SWEEP), f"{SCHEMA}: 4 lines (2 to 5)")
    stage.check("your four lines are still there", stage.text(SCHEMA) == TABLE + YOURS)
    stage.note("codex: its hook reads other commands")
    refused = all(codex.shell(command) for command in OTHER_SWEEPS)
    stage.check(f"{', '.join(OTHER_SWEEPS)}: refused too", refused)
    stage.check("an edit beside your lines passes", not codex.edit(SCHEMA, "id integer", "id bigint"))


def an_agents_work(stage: Stage) -> None:
    """Play the same beside the uncommitted lines of another agent."""
    stage.git("commit", "--quiet", "--allow-empty", "--all", "--message=orders are paid")
    claude, codex = stage.session("claude-code"), stage.session("codex")
    stage.heading("2. Two agents")
    stage.tell(f"You commit. Then Claude Code changes {IMPORTER}:", "Claude Code")
    is_written = not claude.edit(IMPORTER, "    return line\n", THEIRS)
    changed = stage.text(IMPORTER)
    stage.shown(THEIRS)
    stage.tell("Codex again:", "Codex")
    stage.typed(SWEEP)
    stage.refused(lambda: codex.shell(SWEEP), f"shop/{IMPORTER} (by claude-code 5f0c2f6e")
    stage.check("Claude Code's line is still there", is_written and stage.text(IMPORTER) == changed != EMPTY)
    stage.check(f"writing {IMPORTER} anew without having read it: refused too", bool(codex.shell(f": > {IMPORTER}")))
    own = not claude.shell(f"git checkout {IMPORTER}") and stage.text(IMPORTER) == EMPTY
    stage.check("Claude Code itself may throw its line away", own)


def a_lock(stage: Stage) -> None:
    """Play a lock, its queue, and the end of the client that holds it."""
    claude, codex = stage.session("claude-code"), stage.session("codex")
    before = stage.text(SCHEMA)
    stage.heading("3. A lock, for a file that must not change")
    stage.tell("Claude Code locks it:", "Claude Code")
    stage.typed(f'swarm-mcp lock {SCHEMA} --note "{NOTE}"')
    with Store(str(stage.store)) as store:
        store.locks.acquire(claude.row(store), SCHEMA, NOTE)
    stage.tell("Codex edits it:", "Codex")
    stage.refused(lambda: codex.edit(SCHEMA, "orders (id", "sales (id"), NOTE)
    stage.note("codex: its hook reads the commands")
    refused = all(codex.shell(command) for command in SHELL_WRITES)
    untouched = stage.text(SCHEMA) == before
    stage.check("a loop of sed -i, tee, python3 -c, mv: refused too; file untouched", refused and untouched)
    passes = not codex.shell(f"grep -c orders {SCHEMA}") and not codex.edit(IMPORTER, "line\n", "line.strip()\n")
    stage.check("reading it, and writing another file, pass", passes)
    stage.note("codex: waiting for the lock")
    woken = _wait(stage, claude, codex)
    writes = woken < WAIT and not codex.edit(SCHEMA, "orders (id", "sales (id")
    stage.check(f"Codex waits for it, has the lock {woken * 1000:.0f} ms after its release, and writes", writes)
    codex.kill()
    passes = not claude.edit(SCHEMA, "sales (id", "bills (id")
    stage.check("Codex is killed with the lock: the lock ends, and Claude Code writes", passes)


def _wait(stage: Stage, holder: PlayedSession, waiter: PlayedSession) -> float:
    """Have a command of `waiter` wait for the lock, then release it.

    Returns the seconds from the release to the end of the waiting command; infinite if it got no lock.
    """
    with Store(str(stage.store)) as store:
        argv = [*coordinator_command(), "lock", SCHEMA, "--wait", str(WAIT), "--as", waiter.row(store).id]
        waiting = subprocess.Popen(argv, cwd=stage.folder, env=stage.environment, stdout=subprocess.DEVNULL)
        end = time.monotonic() + WAIT
        while not store.queue.waiting() and time.monotonic() < end:
            time.sleep(0.01)
        store.locks.release(holder.row(store), SCHEMA)
        begun = time.monotonic()
        has_it = waiting.wait(WAIT + 10) == 0
        return time.monotonic() - begun if has_it else float("inf")
