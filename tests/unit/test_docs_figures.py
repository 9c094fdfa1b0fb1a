"""The figures in the promises are those of the code."""

from importlib import import_module

import pytest
from support.sessions import ROOT


@pytest.fixture(autouse=True)
def checks_wait() -> None:
    """The limits stay as they are."""


KIB, MIB = 1024, 1024 * 1024
MINUTE, HOUR, DAY = 60, 3600, 86400
CORE, OURS = "swarm_hook_core.", "swarm_mcp."

# A page, a sentence of it, and the figures in it: the module and name of each, and its value.
FIGURES = [
    ("SPEC.md", "for a busy store, in a check | 1 s; 0.12 s in the 30 s after a wait in vain",
     {CORE + "lookup.glance.SECONDS": 1, CORE + "lookup.glance.BUSY_SECONDS": 0.12, CORE + "lookup.glance.IN_VAIN_SECONDS": 30}),
    ("SPEC.md", "for the coordinator, in a check | 0.2 s", {CORE + "registration.DEADLINE_SECONDS": 0.2}),
    ("SPEC.md", "10 ms of processor time, imports apart", {CORE + "clock.SECONDS": 0.01}),
    ("SPEC.md", "for git's answers | 0.5 s; about a person's work 2 s",
     {CORE + "traces.file_changes.SECONDS": 0.5, CORE + "stakes.owners.SECONDS": 2}),
    ("SPEC.md", "at a session's start, a turn, its end | 5 s, 2 s, 0.9 s",
     {CORE + "session_events.START_SECONDS": 5, CORE + "session_events.TURN_SECONDS": 2, CORE + "session_events.END_SECONDS": 0.9}),
    ("SPEC.md", "of a command, for another writer of the store | 15 s", {OURS + "store.database.BUSY_SECONDS": 15}),
    ("SPEC.md", "of a patch in a shell command the first 2,000", {CORE + "check.MOST_PATCHED": 2000}),
    ("SPEC.md", "24 hours from its last sign of life", {CORE + "environment.DEFAULT_LEASE_SECONDS": DAY}),
    ("SPEC.md", "up to 1,000 existing ones, are read-only", {CORE + "kernel.plans.MOST_PATHS": 1000}),
    ("SPEC.md", "quotes that change, up to 40 lines", {CORE + "traces.changed_lines.MOST_LINES": 40}),
    ("SPEC.md", "at most ten minutes after its last write", {CORE + "state.TURN_SECONDS": 10 * MINUTE}),
    ("SPEC.md", "ends its turn, or two minutes are over", {CORE + "traces.others.OVERDUE_SECONDS": 2 * MINUTE}),
    ("SPEC.md", "while one runs, two minutes at most", {CORE + "traces.journal.ASIDE_SECONDS": 2 * MINUTE}),
    ("SPEC.md", "in at most five lines and nothing twice", {CORE + "traces.meetings.LINES": 5}),
    ("SPEC.md", "waits, two seconds at most, and is told", {CORE + "traces.meetings.WAIT_SECONDS": 2}),
    ("SPEC.md", "root of another session, seen within two hours", {CORE + "traces.head.LATELY_SECONDS": 2 * HOUR}),
    ("SPEC.md", "kept for seven days (1 MiB a file)",
     {CORE + "traces.versions.AGE_SECONDS": 7 * DAY, CORE + "traces.versions.LIMIT_BYTES": MIB}),
    ("SPEC.md", "after a commit at once, else within 0.5 s", {OURS + "locking.acquisition.LONGEST_NAP": 0.5}),
    ("SPEC.md", "30 s after a waiter's last sign of life", {OURS + "store.lock_listing.SILENT_SECONDS": 30}),
    ("SPEC.md", "ended tasks and refusals after a day, mail after an hour",
     {OURS + "store.cleanup.TASK_SECONDS": DAY, OURS + "store.refusals.KEPT_SECONDS": DAY,
      OURS + "store.cleanup.EVENT_SECONDS": DAY, OURS + "store.cleanup.MESSAGE_SECONDS": HOUR}),
    ("SPEC.md", "At most 1 MiB; its key 1,024 bytes",
     {OURS + "store.values.LONGEST_VALUE": MIB, OURS + "store.values.LONGEST_KEY": 1024}),
    ("SPEC.md", "answers with more than 100 KB", {OURS + "answers.size.ANSWER_BYTES": 100_000}),
    ("docs/limits.md", "files up to 1 MiB are kept, 256 MiB in all, for 7 days",
     {CORE + "traces.versions.LIMIT_BYTES": MIB, CORE + "traces.pruning.TOTAL_BYTES": 256 * MIB}),
    ("docs/locks.md", "`--ttl` (1 s to 30 days)",
     {OURS + "store.lock_request.SHORTEST_LEASE": 1, OURS + "store.lock_request.LONGEST_LEASE": 30 * DAY}),
    ("docs/locks.md", "200 files of a folder are noted, 400 in a call",
     {CORE + "watching.watch.FILES_IN_FOLDER": 200, CORE + "watching.watch.FILES_AT_ONCE": 400}),
    ("docs/locks.md", "40 locks and 60 files near them",
     {CORE + "watching.edits.MOST_LOCKS": 40, CORE + "watching.edits.MOST_FILES": 60}),
    ("docs/locks.md", "within a minute after the edit", {CORE + "watching.watch.EDIT_NS": MINUTE * 10**9}),
    ("docs/locks.md", "content up to 1 MiB", {CORE + "watching.records.HASHED_BYTES": MIB}),
    ("docs/locks.md", "at most 1,000 commits a push", {OURS + "guard.check.MOST_COMMITS": 1000}),
    ("docs/uncommitted-work.md", "up to 500 files and 32 MiB a call",
     {CORE + "stakes.verdict.MOST_FILES": 500, CORE + "stakes.verdict.MOST_BYTES": 32 * MIB}),
    ("docs/uncommitted-work.md", "Links and files up to 16 MiB come back whole", {OURS + "changes.dirty.LARGEST": 16 * MIB}),
    ("docs/uncommitted-work.md", "(its last 4 MiB)", {CORE + "traces.transcript.TAILS": (256 * KIB, 4 * MIB)}),
    ("docs/uncommitted-work.md", "more than 100 files of one call", {CORE + "traces.turn_files.MOST_FILES": 100}),
    ("docs/uncommitted-work.md", "binary files, over 50 files", {CORE + "traces.rewinds.MOST": 50}),
    ("docs/uncommitted-work.md", "two makers within three seconds", {CORE + "stakes.stash.TOGETHER_SECONDS": 3}),
    ("docs/locks.md", "At the third denial of one file within five minutes", {CORE + "denial.MANY": 3}),
    ("docs/locks.md", "At the tenth the session is told to stop", {CORE + "denial.PERSON": 10}),
    ("docs/team.md", "the short lease of its copy (5 s)", {OURS + "team.protocol.MIRROR_LEASE": 5}),
    ("docs/team.md", "`lock` says so within 2 s", {OURS + "team.agent_client.REACH_SECONDS": 2}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "sentence", "figures"), FIGURES, ids=[f"{page}: {said[:40]}" for page, said, _ in FIGURES]
)
def test_a_figure_is_that_of_the_code(page: str, sentence: str, figures: dict[str, object]):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence in text, "the page says it otherwise now: look at the figure, then mend this table"
    found = {}
    for name in figures:
        module, _, constant = name.rpartition(".")
        found[name] = getattr(import_module(module), constant)
    assert found == figures
