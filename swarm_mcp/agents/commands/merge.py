"""Listing the work trees of tasks, and merging their commits."""

from __future__ import annotations

from typing import Any

from swarm_mcp.agents.dispatch import task_trees
from swarm_mcp.agents.dispatch.merging import Merged, MergeStopped
from swarm_mcp.agents.dispatch.merging import merge as bring_back
from swarm_mcp.agents.dispatch.task_trees import TaskTree
from swarm_mcp.answers.views import short
from swarm_mcp.cli.arguments import DOING, TASKS, WORKER, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.lock_waits import acquire_shown
from swarm_mcp.cli.locking import process_holder, say_refused
from swarm_mcp.cli.output import complain, refused, say, show
from swarm_mcp.cli.words import clause, count
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import DONE
from swarm_mcp.errors import LockRefused, Refused, SwarmError, UsageError
from swarm_mcp.folders import here
from swarm_mcp.locking.acquisition import Taken, requested
from swarm_mcp.store import Store


@verb(
    Usage(
        Word("TASK", "id of a task, or the beginning; without one, list the work trees", optional=True, repeated=True,
             source=TASKS),
        Option("--all", "all work trees of done tasks, oldest first"),
        Option("--commit", "first commit the uncommitted changes in the task's work tree"),
        Option("--here", "onto the branch that is checked out here, though the task began on another"),
        Option("--wait SECONDS", "how long to wait in line for the locks (default: 0)"),
        *DOING,
    ),
    refuses=True,
    group=WORKER,
)  # fmt: skip
def merge(args: Arguments) -> int:
    """merge: merge the commits of workers with work trees of their own

    `swarm-mcp worker dispatch --worktree` gives a worker a work tree and a branch. merge puts the commits of that
    branch on top of the branch that is checked out here, in their order, and removes the work tree and its branch;
    commits and changes that are not in the result are never thrown away. Meanwhile it locks the repository and all
    files that it changes. Several tasks come in the order in which they were begun. Without a task, it lists the work
    trees and their states.

    On a conflict, or if a merge would overwrite uncommitted changes here, it stops, names the files, and leaves this
    work tree and the task's as they were. Exit 1 then, and if another session holds one of the files.

    example: swarm-mcp worker merge 6ff1c928
    """
    target = task_trees.work_tree_at(here())
    known = task_trees.task_trees(target)
    if not args.words and not args.given("--all"):
        return _list(args, known)
    if args.words and args.given("--all"):
        raise UsageError("--all and a task exclude each other")
    done: list[Merged] = []
    with Store() as store:
        chosen = _chosen(store, args.words, known)
        instance, agent = process_holder(store, args, ["merge"])
        holding = _Holding(args, store, instance, agent)
        try:
            for tree in chosen:
                try:
                    _require_ended(store, tree, instance)
                    merged = bring_back(tree, target, holding.take, args.given("--here"), args.given("--commit"))
                except LockRefused as refusal:
                    return say_refused(refusal, args, store, holding.wanted, "merge")
                except MergeStopped as stopped:
                    return _say_stopped(args, tree, stopped, done)
                finally:
                    holding.release()
                done.append(merged)
                _say_merged(args, tree, merged)
        finally:
            if not agent:
                store.instances.remove(instance.id)
    if args.json:
        show({"ok": True, "merged": [one.to_dict() for one in done]})
    elif not chosen:
        say("(no task with a work tree here is done)")
    return 0


class _Holding:
    """The locks of one merge; `wanted` is the last request."""

    def __init__(self, args: Arguments, store: Store, instance: Session, agent: str):
        self._args, self._store, self._instance, self._agent = args, store, instance, agent
        self._taken: list[Taken] = []

    def take(self, files: list[str]) -> None:
        """Lock the files at these absolute paths. Raises LockRefused."""
        facts = {"note": "swarm-mcp worker merge", "mode": "exclusive", "agent": self._agent, "tool": "merge"}
        self.wanted = requested(self._store, self._instance, files, False, None, **facts)
        self._taken.append(acquire_shown(self._args, self._store, self._instance, self.wanted))

    def release(self) -> None:
        """Release all locks of this merge."""
        for row in [row for taken in self._taken for row in taken]:
            try:
                self._store.locks.release(self._instance, row.file, row.agent or "", row.fence)
            except Refused:
                pass  # a person has taken it by force
        self._taken = []


def _chosen(store: Store, references: list[str], known: list[TaskTree]) -> list[TaskTree]:
    """Return the work trees of the referenced tasks, oldest first; without references those of all done tasks."""
    if not references:
        return [tree for tree in known if (row := store.tasks.get(tree.scope, tree.task_id)) and row.status == DONE]
    found = []
    for reference in references:
        matches = [tree for tree in known if tree.task_id == reference]
        matches = matches or [tree for tree in known if tree.task_id.startswith(reference)]
        if len(matches) > 1:
            ids = ", ".join(tree.task_id for tree in matches)
            raise SwarmError(f"the ids of several tasks begin with {reference[:60]!r}: {ids}")
        if not matches:
            raise SwarmError(
                f"no task {reference[:60]!r} has a work tree of this repository; swarm-mcp worker merge lists them"
            )
        found += matches
    return [tree for tree in known if tree in found]


def _require_ended(store: Store, tree: TaskTree, instance: Session) -> None:
    worker = task_trees.worker_of(store, tree, but=instance.id)
    if worker:
        raise MergeStopped(
            tree, f"{worker} is at work in its work tree", [], f"swarm-mcp worker logs {short(tree.task_id)} -f"
        )


def _list(args: Arguments, known: list[TaskTree]) -> int:
    rows: list[dict[str, Any]] = []
    with Store(read_only=True) as store:
        for tree in known:
            worker = task_trees.worker_of(store, tree)
            task = store.tasks.get(tree.scope, tree.task_id)
            row: dict[str, Any] = {
                "task_id": tree.task_id, "title": tree.title, "status": task and task.status, "path": tree.top,
                "branch": tree.branch, "into": tree.into or None, "commits": None, "uncommitted": None,
                "worker": worker or None,
            }  # fmt: skip
            if tree.is_there:
                state = task_trees.state_of(tree)
                row.update(branch=state.branch or tree.branch, commits=state.commits, uncommitted=state.files)
            rows.append(row)
    if args.json:
        show(rows)
        return 0
    if not rows:
        say("(no task has a work tree of this repository)")
    for row in rows:
        say(f"{short(row['task_id'])}  [{row['status'] or 'gone'}]  {row['title']}")
        say(f"  {row['path']}, branch {row['branch']}{_state(row)}")
    return 0


def _state(row: dict[str, Any]) -> str:
    if row["commits"] is None:
        return "; the folder is gone (git worktree prune)"
    state = f": {count(row['commits'], 'commit')} for {row['into'] or 'no branch'}"
    if row["uncommitted"]:
        state += f", {count(len(row['uncommitted']), 'file')} not committed"
    return state + clause("; {} is at it", row["worker"])


def _say_merged(args: Arguments, tree: TaskTree, merged: Merged) -> None:
    if args.json:
        return
    to = merged.to or "this commit"
    say(f"{short(tree.task_id)}: {count(len(merged.commits), 'commit')} brought to {to}: {tree.title}")
    for line in merged.commits:
        say(f"  {line}")
    for line in merged.left:
        complain(f"swarm-mcp merge: {line}")


def _say_stopped(args: Arguments, tree: TaskTree, stopped: MergeStopped, done: list[Merged]) -> int:
    answer = {**stopped.answer, "merged": [one.to_dict() for one in done]}
    code = refused(args, "merge", answer, f"task {short(tree.task_id)}: {stopped}")
    if not args.json:
        for file in stopped.files:
            complain(f"  {file}")
        if stopped.next_step:
            complain(f"next: {stopped.next_step}")
    return code
