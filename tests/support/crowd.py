"""A scope with a lot of everything: rows by the dozen, each long, and one of each kind that is huge."""

import json
from pathlib import Path

from support.fixtures import Ground

ROWS = 150
LONG = 'a "quoted" \\ word, [ä☃]\n' * 20  # a text that JSON makes longer
HUGE = "x" * 300_000


class Crowd:
    """A ground in `folder` with such a scope, filled once, and its session `me`. `restore` undoes a test's changes."""

    def __init__(self, folder: Path):
        self.ground = Ground(folder.resolve())
        self.me = self.ground.session("me", "me")
        fill(self.ground, self.me["id"])
        self.ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        self._store = Path(self.ground.database)
        self._filled = self._store.read_bytes()

    def restore(self) -> None:
        """Put the store back as it was filled."""
        for file in self._store.parent.iterdir():
            file.unlink()
        self._store.write_bytes(self._filled)


def fill(ground: Ground, me: str) -> None:
    """Fill the scope of `ground`: `me`, an instance's id, has mail, locks and tasks; others have more."""
    ground.store().close()
    with ground.store() as store, store.database.writing():
        change, until, scope = store.database.change, store.now() + 9999, ground.scope
        for number in range(ROWS):
            text = HUGE if number == 0 else LONG
            change(
                "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, adopted, lease_until)"
                " VALUES (?, ?, ?, ?, ?, 1, ?, 0, ?)",
                (f"peer-{number:03}", scope, scope + LONG, scope, scope, "peer " + LONG[:150], until),
            )
            for holder, status in ((None, "open"), (me, "in_progress"), ("peer-001", "in_progress"), (None, "done")):
                change(
                    "INSERT INTO tasks (id, scope, type, title, description, requester, assignee, status, files, priority)"
                    " VALUES (?, ?, 'fix', ?, ?, 'peer-001', ?, ?, ?, ?)",
                    (
                        f"task-{status}-{holder}-{number}", scope, f"{number} {LONG}", text, holder, status,
                        json.dumps([f"{scope}/src/f{number}.py"]), -number,
                    ),
                )  # fmt: skip
            change(
                "INSERT INTO messages (scope, sender, recipient, content) VALUES (?, 'peer-001', ?, ?)",
                (scope, me, text),
            )
            change("INSERT INTO kv (scope, key, value) VALUES (?, ?, ?)", (scope, f"k/{number}/{LONG}", text))
            for holder in (me, "peer-001", "peer-002"):
                change(
                    "INSERT INTO context (id, scope, instance_id, file, type, content, mode)"
                    " VALUES (?, ?, ?, ?, 'lock', ?, 'shared')",
                    (f"l-{holder}-{number}", f"{scope}-{holder}", holder, f"{scope}/src/f{number}.py", LONG),
                )
            change(
                "INSERT INTO events (scope, type, actor, subject, payload)"
                " VALUES (?, 'context.lock_acquired', 'peer-001', ?, ?)",
                (scope, f"{scope}/src/hot.py", json.dumps({"content": text})),
            )
            change(
                "INSERT INTO swarm_runs (id, scope, instance_id, harness, cwd, state, result, started_at, updated_at,"
                " ended_at) VALUES (?, ?, 'peer-001', 'process', ?, 'ended', ?, ?, 1, 1)",
                (f"run-{number}", scope, scope, json.dumps({"output": text}), number),
            )
            change(
                "INSERT INTO ui_commands (scope, kind, payload) VALUES (?, 'send_prompt', ?)",
                (scope, json.dumps({"text": text})),
            )
