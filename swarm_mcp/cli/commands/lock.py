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

from swarm_mcp.acting_session import discard_lock_holder, lock_holder
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.locking import lock_request, say_refused
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.lock_acquisition import acquire, granted_answer
from swarm_mcp.store import Store

# Who gives one of these, or several files, is answered with all there is to say of each lock.
MORE = ("--ttl", "--expect", "--wait", "--agent", "--shared", "--detach")

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
        instance = lock_holder(store, args)
        try:
            wanted = lock_request(args, store, instance, files)
            rows = acquire(store, instance, wanted, args.seconds("--wait"))
        except LockRefused as refusal:
            return say_refused(refusal, args, store, wanted, "lock")
        except Deadlock as circle:
            return refused(args, "lock", circle.answer)
        finally:
            if args.given("--detach"):
                discard_lock_holder(store, instance)  # only where it got nothing
    if args.json:
        answer = granted_answer(rows, len(files) > 1 or any(map(args.given, MORE)))
        show({**answer, "instance_id": instance.id} if args.given("--detach") else answer)
    else:
        for row in rows:
            say(f"locked {row.file}{' (shared)' if row.mode else ''}")
        if args.given("--detach"):
            say(f"held by {instance.id}, for --as")
    return 0
