"""lock: keep other sessions from writing files, or from changing the repository

Several FILEs are locked all together or not at all. A folder stands for all that is in it, now and later. The
locks hold for every writer on this machine until they are released, lapse, or the session ends; a person's, at a
terminal, are those of the shell and end with it. Locking again what one holds renews it; with or without --shared
it changes the mode, with no moment between in which somebody else could get it. With --git the lock is on `.git` at
the top of the work tree (`swarm-mcp lock .git` there is the same lock): until then no other session may commit,
stash, switch, merge or fetch there.

Exit 1 when another session holds one of them (with --wait: still holds it then), or when waiting would never end
because each in a circle of sessions waits for the next. With --json a refusal is {"error", "active", "queue"} or
{"error", "circle"} on standard output, an answer {"ok", "id", "fence"}, of the first lock, and "locks" where there
are several or more was asked for than a file. The fence is a number that grows with each grant.

example: swarm-mcp lock src/schema.sql src/migrations --wait 60 --note "renumbering migrations"
"""

from __future__ import annotations

import os

from swarm_hook_core.paths import git_root
from swarm_hook_core.untrusted_text import label, named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import Deadlock, LockRefused, SwarmError, UsageError
from swarm_mcp.lock_owner import dismiss, holder
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LockRequest, request
from swarm_mcp.views import seconds_since

MORE = ("--ttl", "--expect", "--wait", "--agent")

LOCKING = (
    Option("--note TEXT", "why; shown to whoever is denied"),
    Option("--shared", "keep the files still for reading: others may share them, nobody else may write them"),
    Option("--wait SECONDS", "where somebody has them, wait in line: first come, first served"),
    Option("--ttl SECONDS", "a lease: the locks lapse when this session shows no sign of life for so long"),
    Option("--expect SECONDS", "when you expect to be done, for others to plan with; nothing happens then"),
    Option("--exclusive", "refuse also where this session holds one of the files already"),
    Option("--task ID", "the task this is for", source=TASKS),
    Option("--agent ID", "for one of this session's subagents alone: keeps its siblings out as well"),
    Option(
        "--detach",
        "with --ttl: hold without any session; nothing renews it but `renew --as` the id that is printed",
    ),
    *ACTING,
)
USAGES = (
    Usage(
        Word("FILE", "the file to lock", repeated=True),
        Option(
            "--pattern",
            "each FILE is a pattern as git has them, relative to the scope; without --pattern and --path, what has * or"
            " ? in it and is no file is one",
        ),
        Option("--path", "each FILE is a path, whatever it looks like"),
        Option(
            "--logical",
            "in every work tree and clone of the repository that takes part: those where a session holds such a lock,"
            " and those with `git config swarm.logical true`, where every lock on a path is one",
        ),
        *LOCKING,
    ),
    Usage(
        Option("--git", "the git repository of this session's folder: index, HEAD, branches, stash", required=True),
        *LOCKING,
    ),
)


def run(args: Arguments) -> int:
    """Take the locks."""
    files = args.words
    with Store() as store:
        instance = holder(store, args)
        try:
            asked = request_of(args, instance, files or [repository_of(instance)], store.now())
            rows = obtained(store, instance, asked, args)
        except LockRefused as refusal:
            return refused_by(refusal, args, store, asked)
        except Deadlock as circle:
            return refused(args, "lock", circle.answer)
        finally:
            if args.given("--detach"):
                dismiss(store, instance)  # only where it got nothing
    if args.json and args.given("--detach"):
        show({**answer_of(rows, asked, in_full=True), "instance_id": instance["id"]})
    elif args.json:
        show(answer_of(rows, asked, in_full=len(files) > 1 or args.given("--shared") or any(map(args.given, MORE))))
    else:
        for row in rows:
            say(f"locked {row['file']}{' (shared)' if row['mode'] else ''}")
        if args.given("--detach"):
            say(f"held by {instance['id']}, for --as")
    return 0


def request_of(args, instance: dict, files: list[str], now: int, **more) -> LockRequest:
    """What the flags ask for; `more` as in ``LockRequest``. Raises SwarmError."""
    if args.given("--pattern") and args.given("--path"):
        raise UsageError("--pattern and --path exclude each other")
    if args.given("--shared") and args.given("--exclusive"):
        raise UsageError("--shared and --exclusive exclude each other")
    as_pattern = True if args.given("--pattern") else False if args.given("--path") else None
    given = {
        "note": args.value("--note"),
        "mode": "shared" if args.given("--shared") else "exclusive",
        "agent": args.value("--agent").strip(),
        "ttl": args.seconds_if_given("--ttl"),
        "expected_end": now + int(args.seconds("--expect")) if args.given("--expect") else None,
        "task_id": args.value("--task") or None,
        "once": args.given("--exclusive"),
        "logical": args.given("--logical"),
    }
    return request(instance, files, as_pattern, **{**given, **more})


def obtained(store, instance: dict, asked: LockRequest, args) -> list[dict]:
    """The locks' rows, after waiting where ``--wait`` says so."""
    seconds = args.seconds("--wait")
    if not seconds:
        return store.locks.acquire_all(instance, asked)
    from swarm_mcp.lock_wait import obtained

    return obtained(store, instance, asked, seconds)


def answer_of(rows: list[dict], asked: LockRequest, in_full: bool) -> dict:
    """``{ok, id, fence}`` of the first of `rows`; all of them as well where it is to be said `in_full`."""
    answer: dict = {"ok": True, "id": rows[0]["id"], "fence": rows[0]["fence"]}
    if in_full:
        answer["locks"] = [granted(row) for row in rows]
    return answer


def repository_of(instance: dict) -> str:
    """What stands for the repository that a session works in: ``.git`` at the top of its work tree.

    Raises SwarmError where its folder is in none.
    """
    folder = instance["file_root"] or instance["directory"]
    mark = os.path.join(git_root(folder), ".git")
    if not os.path.lexists(mark):
        raise SwarmError(f"{folder} is not in a git repository")
    return mark


def refused_by(refusal: LockRefused, args, store, asked: LockRequest, verb: str = "lock") -> int:
    """Say who holds what was asked for, and how many are in line for it; exit code 1."""
    from swarm_mcp.lock_wait import length_of_queue

    waiting, active = length_of_queue(store, asked), refusal.active
    if active.get("hidden"):
        who = "a session of another identity"
    else:
        owner = active["owner"]["label"]
        owner = label(owner) if owner else named(active["instance_id"])
        note = f": {quoted(active['content'])}" if active["content"] else ""
        since = active.get("created_at")
        age = f"for {duration(seconds_since(since, store.now()))}" if since else "who waited first"
        who = f"{owner}, {age}{note}"
    line = f"{waiting} wait{'s' if waiting == 1 else ''} for it; " if waiting else ""
    answer = {"error": str(refusal), "active": active, "queue": {"waiting": waiting, "join": "--wait SECONDS"}}
    said = f"{refusal} ({named(active['file'])} by {who}); {line}--wait SECONDS joins the line"
    return refused(args, verb, answer, said)
