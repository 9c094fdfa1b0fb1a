"""lock: keep other sessions from writing a file, or from changing the repository

usage: swarm-mcp lock FILE [--note TEXT] [--exclusive] [--task ID] [--as WHO] [--json]
       swarm-mcp lock --git [--note TEXT] [--exclusive] [--task ID] [--as WHO] [--json]

  --git         the git repository of this session's folder: index, HEAD, branches, stash
  --note TEXT   why; shown to whoever is denied
  --exclusive   refuse also where this session holds the file already
  --task ID     the task this is for

The lock holds for every writer on this machine until it is released or the session ends. With --git it is
on `.git` at the top of the work tree (`swarm-mcp lock .git` there is the same lock): until then no other
session may commit, stash, switch, merge or fetch there. Exit 1 when another session holds the file; with
--json the refusal is {"error", "active"} on standard output.

example: swarm-mcp lock src/schema.sql --note "renumbering migrations"
"""

from __future__ import annotations

import os

from swarm_hook_core.decision import duration
from swarm_hook_core.paths import git_root
from swarm_mcp.actor import actor
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import LockRefused, SwarmError, UsageError
from swarm_mcp.shapes import seconds_since
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Take the lock."""
    file = wanted(args, "the file to lock: swarm-mcp lock FILE")
    with Store() as store:
        instance = actor(store, args)
        file = file or repository_of(instance)
        try:
            lock = store.locks.acquire(
                instance, file, args.value("--note"), args.has("--exclusive"), args.value("--task") or None
            )
        except LockRefused as refusal:
            return _refused(refusal, args, store.now())
    if args.json:
        show({"ok": True, "id": lock["id"]})
    else:
        say(f"locked {lock['file']}")
    return 0


def wanted(args, what: str) -> str:
    """The file that the command line names (`what`, for the error), empty for ``--git``. Raises UsageError."""
    if not args.has("--git"):
        return args.word(0, what)
    if args.words:
        raise UsageError("--git is instead of a file: give one of the two")
    return ""


def repository_of(instance: dict) -> str:
    """What stands for the repository that a session works in: ``.git`` at the top of its work tree.

    Raises SwarmError where its folder is in none.
    """
    folder = instance["file_root"] or instance["directory"]
    mark = os.path.join(git_root(folder), ".git")
    if not os.path.lexists(mark):
        raise SwarmError(f"{folder} is not in a git repository")
    return mark


def _refused(refusal: LockRefused, args, now: int) -> int:
    active = refusal.active
    if active.get("hidden"):
        who = "a session of another identity"
    else:
        owner = active["owner"]["label"] or active["instance_id"]
        note = f": {active['content']}" if active["content"] else ""
        who = f"{owner}, for {duration(seconds_since(active['created_at'], now))}{note}"
    answer = {"error": str(refusal), "active": active}
    return refused(args, "lock", answer, f"{refusal} ({active['file']} by {who})")
