"""Git hooks that keep commits and pushes off files that others hold."""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import settings, state
from swarm_hook_core.naming import holder_name
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.wording import changed_by, duration
from swarm_mcp import contributions
from swarm_mcp.cli.arguments import AS, FOLDERS, JSON, SUBJECTS, Arguments, Option, Usage, choice, verb
from swarm_mcp.cli.output import answer, complain, show
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, here, scope_of
from swarm_mcp.guard import hooks, projects
from swarm_mcp.guard.check import AFTER_COMMITS, HOOKS, Changes, Refusal, changed_by_others, piped, record, refusals
from swarm_mcp.guard.hooks import SAYS
from swarm_mcp.hooks.protection_watch import remember_guard
from swarm_mcp.sessions.acting import require_person
from swarm_mcp.store.messages import seconds_since

NAMED = 5  # files that a refusal names
DIR = Option("--dir DIR", "the repository (default: the one here)", source=FOLDERS)
AUTO = Option("--auto", "also check for changes of other sessions without a lock (see `swarm-mcp protect`)")


@verb(
    Usage(choice("install", about="action"), AUTO, DIR, JSON),
    Usage(choice("uninstall", about="action"), DIR, JSON),
    Usage(
        choice("check", about="action"),
        Option(
            "--hook HOOK",
            "pre-commit (default): the staged files; pre-push: those of the commits named on standard input; the others"
            " record the authors of a finished commit (see `swarm-mcp protect --authorship`)",
            choices=(*HOOKS, *AFTER_COMMITS),
        ),
        Option("--remote NAME", "of a push: where it goes"),
        AUTO,
        AS,
        DIR,
        JSON,
    ),
    group=SUBJECTS,
)
def guard(args: Arguments) -> int:
    """guard: git hooks that refuse to commit or push locked files

    For people, editors and other tools, which write without our hooks. `install` adds to the existing hooks (husky,
    lefthook, core.hooksPath, your own) and replaces none of them; `uninstall` restores the earlier state. Your own
    locks never stop your commits; a lock on .git stops every commit and push. To skip the guard once: SWARM_GUARD=off
    git commit ..., or git commit -n. If your lock on a file has lapsed and another session has locked the file since,
    lock it again before you commit it: your view of the file is old.

    --auto also checks the staged files for uncommitted changes of other live sessions: at level `turn` the commit is
    refused, at `notice` and `keep` it goes ahead with a warning. `install` without --auto removes that check. Only a
    person may remove anything: refused (exit 1) from an agent's shell.

    In a clone that has joined a team, a push asks the team's server first, and prints a notice if it cannot be reached.

    While the authors of commits are recorded (`swarm-mcp protect --authorship on`), `install` adds the hooks for that.

    The hooks run `check`. Exit 1 names each locked file, its holder and the reason; --json answers without conflicts as
    well.

    example: swarm-mcp guard install
    """
    action = args.words[0]
    folder = here()
    if args.value("--dir"):
        folder = clean(args.value("--dir"))
    if action == "check":
        return _check(args, folder)
    if action == "uninstall" or not args.given("--auto"):
        # Raise PersonOnly if an agent would remove an installed guard, or the check that `--auto` has added
        if action == "uninstall" and hooks.state(folder).way:
            require_person("swarm-mcp guard uninstall", "takes the guard of commits and pushes out of this repository")
        elif action == "install" and hooks.has_auto(folder):
            effect = "without --auto removes the check of changes that sessions have made without a lock"
            require_person("swarm-mcp guard install", effect)
    if action == "install":
        done = hooks.install(folder, args.given("--auto"), settings.authorship("", folder).value == "on")
        projects.note(scope_of(folder))
    else:
        done = hooks.uninstall(folder)
    remember_guard(hooks.git_folder(folder), action == "install")
    return answer(args, {"ok": True, **done._asdict()}, *_outcome(action, done))


def _outcome(action: str, done: hooks.Outcome) -> list[str]:
    """Return the outcome of `install` or `uninstall` in lines for people."""
    if action == "uninstall" and done.changed:
        return [f"the guard is out of {done.folder}"]
    if action == "uninstall":
        return ["no guard was installed here"]
    lines = [f"guarded already by {done.folder}"]
    if done.changed:
        lines = [f"guarded by {done.folder}"]
    if done.way == "dispatcher":
        lines.append(f"hooks in {done.earlier} run first, as before")
    skip = "to skip the guard once: SWARM_GUARD=off git commit ..."
    return [*lines, f"a commit or push of files that another session has locked is refused; {skip}"]


def _check(args: Arguments, folder: str) -> int:
    hook, session = args.value("--hook") or HOOKS[0], args.value("--as")
    if hook in AFTER_COMMITS:
        lines: list[str] = []
        if hook == "post-rewrite":
            lines = list(piped() or ())
        contributions.function_named(contributions.AUTHORSHIP)(hook, folder, lines)
        return 0
    stdin, offline, changes = None, "", None
    if hook == "pre-push":
        stdin = piped()
    try:
        if hook == "pre-push":
            offline = contributions.react(contributions.PUSH_BEGINS, folder) or ""
        found = refusals(hook, folder, session, stdin, args.value("--remote"))
        if args.given("--auto") and hook == HOOKS[0] and not found:
            changes = changed_by_others(folder, session)
    except (SwarmError, OSError) as error:
        if not args.value("--hook") or args.json:
            raise
        # Git waits for this answer: a guard that fails must not stop a commit.
        state.record("guard", hook, state.describe(error))
        return 0
    refused = bool(found) or (changes is not None and changes.refused)
    if args.json:
        result = {"ok": not refused, "hook": hook, "held": [_lock_as_json(refusal) for refusal in found]}
        if changes is not None:
            result["changed"] = [_change_as_json(trace) for trace in changes.traces]
        if offline:
            result["team"] = offline
        show(result)
        return int(refused)
    if found:
        _say_locks(hook, found)
    elif changes is not None and changes.traces:
        _say_changes(changes)
    if args.value("--hook"):
        record(hook, folder, session, found, changes)
    if offline:
        complain(f"{SAYS}{offline}")
    return int(refused)


def _say_changes(changes: Changes) -> None:
    """Print the staged files with uncommitted changes of other sessions."""
    number = len(changes.traces)
    files = "a staged file has"
    if number > 1:
        files = f"{number} staged files have"
    refused = "commit refused: " * changes.refused
    complain(f"{SAYS}{refused}{files} uncommitted changes of other sessions")
    for trace in changes.traces[:NAMED]:
        file = named(os.path.relpath(trace.path, changes.top))
        complain(f"  {file}: changed by {changed_by(trace.held, changes.identity, time.time())}")
    if number > NAMED:
        complain(f"  and {number - NAMED} more")
    if changes.refused:
        complain(
            "Leave them out (git restore --staged FILE). To skip the guard once: SWARM_GUARD=off git commit ..."
            " (or --no-verify)"
        )
    else:
        complain("The commit takes them along; to leave one out: git reset --soft HEAD~1, git restore --staged FILE")


def _change_as_json(trace: Trace) -> dict[str, Any]:
    holder = trace.held
    return {"file": trace.path, "instance_id": holder.instance_id, "changed_at": holder.since}


def _say_locks(hook: str, found: list[Refusal]) -> None:
    """Print the refusal, for a person or the model that reads git's output."""
    command = hook.removeprefix("pre-")
    subject = "the repository is"
    if len(found) > 1:
        subject = f"{len(found)} files are"
    elif found[0].file:
        subject = "a file is"
    state = "held"
    if all(refusal.lock.get("lapsed") for refusal in found):
        state = "locked since"
    complain(f"{SAYS}{command} refused: {subject} {state} by another session")
    for refusal in found[:NAMED]:
        complain(f"  {named(refusal.file or '.git')}: {_lock_in_words(refusal.lock)}")
    if len(found) > NAMED:
        complain(f"  and {len(found) - NAMED} more")
    complain(
        f"Wait for it, or leave it out. To skip the guard once: SWARM_GUARD=off git {command} ... (or --no-verify)"
    )


def _lock_in_words(lock: dict[str, Any]) -> str:
    holder = "a session of another identity"
    if not lock.get("hidden"):
        holder = holder_name(lock["owner_label"], lock["instance_id"])
    age = duration(seconds_since(lock["created_at"], int(time.time())))
    if lock.get("lapsed"):
        return f"your lock lapsed {age} ago, and {holder} has locked it since; lock it again and read it"
    note = ""
    if lock["content"]:
        note = f"note: {quoted(lock['content'])}; "
    return f"held by {holder} ({note}locked {age} ago)"


def _lock_as_json(refusal: Refusal) -> dict[str, Any]:
    lock = refusal.lock
    holder = {"instance_id": lock["instance_id"], "holder": lock["owner_label"], "note": lock["content"]}
    row = {"file": refusal.file, "lock": lock["file"], **holder, "locked_at": lock["created_at"]}
    row["hidden"] = bool(lock.get("hidden"))
    if lock.get("lapsed"):
        row["lapsed"] = True
    return row
