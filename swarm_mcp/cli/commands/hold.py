"""Running a command under locks."""

from __future__ import annotations

import errno
import os
import shutil
import signal

from swarm_mcp.cli.arguments import DOING, LOCKS, TASKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.hold_command import LOST, Hold
from swarm_mcp.cli.lock_waits import acquire_shown
from swarm_mcp.cli.locking import lock_request, process_holder, say_refused
from swarm_mcp.cli.output import complain, flush, refused
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.store import Store

NOT_IN_TIME, CANNOT_RUN, NOT_FOUND = 75, 126, 127
COMMAND = Word("COMMAND", "the command", repeated=True, behind=True)
HOLDING = (
    Option("--wait SECONDS", "how long to wait in line for them (default: 0)"),
    Option("--ttl SECONDS", "a lease that hold renews: the locks lapse if this process is stopped for that long"),
    Option("--grace SECONDS", "time between TERM and KILL after a lock is lost (default: 5)"),
    Option("--shared", "keep the files still for reading, as in `swarm-mcp lock`"),
    Option("--note TEXT", "the reason; shown to denied sessions"),
    Option("--expect SECONDS", "when you expect to be done, so that others can plan"),
    *DOING,
)


@verb(
    Usage(
        Word("FILE", "the path to hold", repeated=True),
        COMMAND,
        Option("--pattern", "each FILE is a pattern, as in `swarm-mcp lock`"),
        Option("--path", "each FILE is a path, even with * or ? in it"),
        Option("--exclusive", "refuse also if this session holds one of the files already"),
        Option("--logical", "in every work tree and clone of the repository, as in `swarm-mcp lock`"),
        Option("--task ID", "the task this is for", source=TASKS),
        *HOLDING,
    ),
    Usage(
        COMMAND,
        Option("--git", "hold the git repository of this session's folder", required=True),
        *HOLDING,
    ),
    group=LOCKS,
)
def hold(args: Arguments) -> int:
    """hold: run a command while holding locks

    Takes the locks, all or none, runs the command, passes signals on to it, and releases the locks when the command
    ends, however it ends. The locks belong to this process alone: other commands and agents of the same session are
    kept out as well. The command itself may write the locked files. If a lock is lost meanwhile (lapsed, stolen or
    transferred), the command is ended with its whole process group; processes in a session of their own (setsid) go on
    without the locks. Outside of any session hold registers one of its own.

    Exit: the command's own code, or 128 and the number of the signal that ended it; 75 the locks could not be had in
    time, or waiting for them would never end; 76 a lock was lost; 126 the command cannot be run; 127 there is no such
    command; 1 any other error.

    example: swarm-mcp hold migrations --wait 300 --note "renumbering" -- make migrate
    """
    behind = args.behind or 0
    files, argv = args.words[:-behind], args.words[-behind:]
    missing = _unrunnable(argv[0])
    if missing:
        reason = {NOT_FOUND: errno.ENOENT, CANNOT_RUN: errno.EACCES}[missing]
        complain(f"hold failed: {argv[0]}: {os.strerror(reason)}")
        return missing
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupted)  # while we wait, so that nothing of ours is left behind
    with Store() as store:
        instance, agent = process_holder(store, args, argv)
        try:
            wanted = lock_request(args, store, instance, files, agent=agent, tool="hold")
            try:
                taken = acquire_shown(args, store, instance, wanted, aside=True)
            except LockRefused as refusal:
                say_refused(refusal, args, store, wanted, "hold")
                return NOT_IN_TIME
            except Deadlock as circle:
                refused(args, "hold", circle.answer)
                return NOT_IN_TIME
            if taken.confirmation is not None and not taken.confirmation.is_everywhere:
                complain(f"hold: held {taken.confirmation.said}")
            return _run(store, instance, taken, argv, args.seconds("--grace", 5.0))
        finally:
            if not agent:
                store.instances.remove(instance.id)


def _run(store: Store, instance: Session, rows: list[Lock], argv: list[str], grace: float) -> int:
    hold = Hold(store, instance, rows, grace)
    flush()
    try:
        code = hold.run(argv)
    except OSError as error:
        complain(f"hold failed: {argv[0]}: {error.strerror or error}")
        code = CANNOT_RUN
        if isinstance(error, FileNotFoundError):
            code = NOT_FOUND
    finally:
        hold.release()
    if hold.lost:
        complain(f"hold: {hold.lost}")
        return LOST
    return code


def _unrunnable(program: str) -> int:
    """Why `program` cannot be run, as an exit code; 0 where it can."""
    if shutil.which(program):
        return 0
    if os.path.dirname(program) and os.path.exists(program):
        return CANNOT_RUN
    return NOT_FOUND


def _interrupted(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
