"""Git hooks that keep commits and pushes off files that others hold."""

from __future__ import annotations

from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp import projects
from swarm_mcp.cli.arguments import AS, FOLDERS, JSON, LOCKS, Arguments, Option, Usage, choice, verb
from swarm_mcp.cli.output import complain, say, show
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, here, scope_of
from swarm_mcp.views import seconds_since

NAMED = 5  # files that a refusal names


DIR = Option("--dir DIR", "the repository (default: the one here)", source=FOLDERS)


AUTO = Option("--auto", "also check for changes of other sessions without a lock (see `swarm-mcp auto`)")


@verb(
    Usage(choice("install", about="action"), AUTO, DIR, JSON),
    Usage(choice("uninstall", about="action"), DIR, JSON),
    Usage(
        choice("check", about="action"),
        Option(
            "--hook HOOK",
            "pre-commit (default): the staged files; pre-push: those of the commits named on standard input",
            choices=("pre-commit", "pre-push"),
        ),
        Option("--remote NAME", "of a push: where it goes"),
        AUTO,
        AS,
        DIR,
        JSON,
    ),
    group=LOCKS,
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

    The hooks run `check`. Exit 1 names each locked file, its holder and the reason; --json answers without conflicts as
    well.

    example: swarm-mcp guard install
    """
    action = args.words[0]
    folder = clean(args.value("--dir")) if args.value("--dir") else here()
    if action == "check":
        return _check(args, folder)
    from swarm_mcp.guard import hooks

    if action == "uninstall" or not args.given("--auto"):
        _require_person(action, folder)
    done = hooks.install(folder, args.given("--auto")) if action == "install" else hooks.uninstall(folder)
    from swarm_mcp.protection_watch import remember_guard

    remember_guard(hooks.git_folder(folder), action == "install")
    if action == "install":
        projects.note(scope_of(folder))
    if args.json:
        show({"ok": True, **done._asdict()})
    elif action == "uninstall":
        say(f"the guard is out of {done.folder}" if done.changed else "no guard was installed here")
    else:
        say(f"{'guarded by' if done.changed else 'guarded already by'} {done.folder}")
        if done.way == "dispatcher":
            say(f"hooks in {done.earlier} run first, as before")
        say(
            "a commit or push of files that another session has locked is refused; to skip the guard once:"
            " SWARM_GUARD=off git commit ..."
        )
    return 0


def _require_person(action: str, folder: str) -> None:
    """Raise PersonOnly if an agent would remove an installed guard, or the check that `--auto` has added."""
    from swarm_mcp.guard import hooks
    from swarm_mcp.person import require_person

    if action == "uninstall" and hooks.state(folder).way:
        require_person("swarm-mcp guard uninstall", "takes the guard of commits and pushes out of this repository")
    elif action == "install" and hooks.has_auto(folder):
        effect = "without --auto removes the check of changes that sessions have made without a lock"
        require_person("swarm-mcp guard install", effect)


def _check(args, folder: str) -> int:
    from swarm_mcp.guard.check import HOOKS, piped, refusals

    hook = args.value("--hook") or HOOKS[0]
    stdin = piped() if hook == "pre-push" else None
    unheard = ""
    try:
        if hook == "pre-push":
            from swarm_mcp.team.freshness import asked

            unheard = asked(folder)
        found = refusals(hook, folder, args.value("--as"), stdin, args.value("--remote"))
        changes = None
        if args.given("--auto") and hook == HOOKS[0] and not found:
            from swarm_mcp.guard.changes import changed_by_others

            changes = changed_by_others(folder, args.value("--as"))
    except (SwarmError, OSError) as error:
        if not args.value("--hook") or args.json:
            raise
        # Git waits for this answer: a guard that fails must not stop a commit.
        from swarm_hook_core import faults

        faults.record("guard", hook, faults.describe(error))
        return 0
    refused = bool(found) or (changes is not None and changes.refused)
    if args.json:
        told: dict = {} if changes is None else {"changed": [_changed(trace) for trace in changes.traces]}
        told.update({"team": unheard} if unheard else {})
        show({"ok": not refused, "hook": hook, "held": [_shown(refusal) for refusal in found], **told})
    elif found:
        _say_why(hook, found)
    elif changes is not None and changes.traces:
        _say_whose(changes)
    if unheard and not args.json:
        from swarm_mcp.guard.hooks import SAYS

        complain(f"{SAYS}{unheard}")
    return 1 if refused else 0


def _say_whose(changes) -> None:
    """Print the staged files with uncommitted changes of other sessions."""
    from os.path import relpath
    from time import time

    from swarm_hook_core.traces.wording import changed_by
    from swarm_mcp.guard.hooks import SAYS

    count = len(changes.traces)
    what = "a staged file has" if count == 1 else f"{count} staged files have"
    complain(f"{SAYS}{'commit refused: ' if changes.refused else ''}{what} uncommitted changes of other sessions")
    for trace in changes.traces[:NAMED]:
        file = named(relpath(trace.path, changes.top))
        complain(f"  {file}: changed by {changed_by(trace, changes.identity, time())}")
    if count > NAMED:
        complain(f"  and {count - NAMED} more")
    if changes.refused:
        complain(
            "Leave them out (git restore --staged FILE). To skip the guard once: SWARM_GUARD=off git commit ..."
            " (or --no-verify)"
        )
    else:
        complain("The commit takes them along; to leave one out: git reset --soft HEAD~1, git restore --staged FILE")


def _changed(trace) -> dict:
    held = trace.held
    return {"file": trace.path, "instance_id": held.instance_id, "changed_at": held.since}


def _say_why(hook: str, found: list) -> None:
    """The refusal, for a person or the model that reads git's output."""
    from time import time

    from swarm_mcp.guard.hooks import SAYS

    deed = hook.removeprefix("pre-")
    what = f"{len(found)} files are" if len(found) > 1 else "a file is" if found[0].file else "the repository is"
    how = "locked since" if all(refusal.lock.get("lapsed") for refusal in found) else "held"
    complain(f"{SAYS}{deed} refused: {what} {how} by another session")
    now = int(time())
    for refusal in found[:NAMED]:
        lock = refusal.lock
        who = holder_name(lock["owner_label"], lock["instance_id"])
        who = "a session of another identity" if lock.get("hidden") else who
        note = f"note: {quoted(lock['content'])}; " if lock["content"] else ""
        age = duration(seconds_since(lock["created_at"], now))
        place = named(refusal.file or ".git")
        if lock.get("lapsed"):
            complain(f"  {place}: your lock lapsed {age} ago, and {who} has locked it since; lock it again and read it")
        else:
            complain(f"  {place}: held by {who} ({note}locked {age} ago)")
    if len(found) > NAMED:
        complain(f"  and {len(found) - NAMED} more")
    complain(f"Wait for it, or leave it out. To skip the guard once: SWARM_GUARD=off git {deed} ... (or --no-verify)")


def _shown(refusal) -> dict:
    lock = refusal.lock
    holder = {"instance_id": lock["instance_id"], "holder": lock["owner_label"], "note": lock["content"]}
    return {"file": refusal.file, "lock": lock["file"], **holder, "locked_at": lock["created_at"],
            "hidden": bool(lock.get("hidden")), **({"lapsed": True} if lock.get("lapsed") else {})}  # fmt: skip
