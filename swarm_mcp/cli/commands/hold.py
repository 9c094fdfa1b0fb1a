"""Running a command under locks: it ends when they are lost, and they are released when it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from swarm_hook_core import clock
from swarm_mcp import processes
from swarm_mcp.cli.arguments import DOING, LOCKS, TASKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.locking import NAME, acquire_shown, lock_request, process_holder, say_refused
from swarm_mcp.cli.output import complain, flush, refused
from swarm_mcp.domain import Lock, Session
from swarm_mcp.errors import Deadlock, LockRefused, Refused, StoreUnavailable, SwarmError
from swarm_mcp.processes import Reaper
from swarm_mcp.store import Store
from swarm_mcp.store.changes import Changes

# A command that runs while locks are held. It ends when they are lost, and they are released when it ends.
#
# The command has a process group of its own, and this group ends with this process in every case
# (``processes``). At a terminal the command stays in our group, so that it can read there and receives Ctrl-C.

LOST = 76
LOOK_SECONDS = 0.5  # between two looks at the locks while nothing is committed
SIGN_SECONDS = 10.0  # between two signs of life
LEASE_PARTS = 3  # signs of life in a lease
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
TYPED = ("SIGINT", "SIGQUIT")  # at a terminal the command gets these by itself


class Hold:
    """Locks (`rows`, as ``acquire_all`` gave them to `instance`) for as long as a command runs."""

    def __init__(self, store: Store, instance: Session, rows: list[Lock], grace: float):
        self.store = store
        self.instance = instance
        self.rows = rows
        self.grace = grace
        self.lost = ""  # the lost lock, with the reason
        leases = [row.ttl for row in rows if row.ttl]
        self._every = min([SIGN_SECONDS, *(ttl / LEASE_PARTS for ttl in leases)])
        self._patience = min(leases, default=0.0)
        self._sign = clock.now()

    def run(self, argv: list[str]) -> int:
        """Run `argv`; its exit code, 128 and the signal's number where one ended it, `LOST` where the locks are lost.

        Raises OSError where it cannot be started.
        """
        # True if a person types into our standard input, and this process is in the foreground
        try:
            ours = sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except (OSError, ValueError):  # no terminal
            ours = False
        with self.store.changes() as changes, Reaper() as reaper:
            if ours and os.getpgrp() == os.getpid():
                group = os.getpgrp()
            else:
                group = 0
            # The child tells the reaper before it begins: it ends with us though we are killed this very moment.
            with _passing_on(ours) as pass_on_to:
                child = subprocess.Popen(
                    argv, start_new_session=not ours, preexec_fn=lambda: reaper.watch(group or os.getpid())
                )
                pass_on_to(child)
                threading.Thread(target=_stop_after, args=(child, changes), daemon=True).start()
                while not changes.stopped and not self.lost:
                    changes.wait(min(LOOK_SECONDS, self._every / 2))
                    if not changes.stopped:
                        self._look()
                if self.lost:
                    self._end(child, ours)
                code = child.wait()
        if self.lost:
            return LOST
        if code < 0:
            return 128 - code
        return code

    def release(self) -> None:
        """Give the locks back, those that are still ours."""
        for row in self.rows:
            try:
                self.store.locks.release(self.instance, row.file, row.agent or "", row.fence)
            except Refused as refusal:
                self.lost = self.lost or str(refusal)

    # -------------------------------------------------------------- innards

    def _look(self) -> None:
        """Check that the locks are still held, and send the holder's heartbeat."""
        try:
            if clock.now() - self._sign >= self._every:
                self.store.instances.show_life(self.instance.id)
                self._sign = clock.now()
            held = self.store.locks.fences_held(
                self.instance.id, [row.fence for row in self.rows if row.fence is not None]
            )
            gone = [row.file for row in self.rows if row.fence not in held]
            if gone:
                self.lost = f"{gone[0]} is no longer held: the lock lapsed, or was taken or handed on"
            else:
                self.lost = ""
        except StoreUnavailable as error:
            # A lock without a lease lasts as long as this process.
            if self._patience and clock.now() - self._sign >= self._patience:
                self.lost = str(error)
        except SwarmError as error:
            self.lost = str(error)

    def _end(self, child: subprocess.Popen[Any], ours: bool) -> None:
        """TERM, then KILL: the command, and where it has a group of its own all of that."""
        for number, seconds in ((signal.SIGTERM, self.grace), (signal.SIGKILL, None)):
            if ours:
                child.send_signal(number)
            else:
                processes.send(child.pid, "", number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
                break
        if not ours:
            processes.end(child.pid, "", 0, self.grace)


def _stop_after(child: subprocess.Popen[Any], changes: Changes) -> None:
    child.wait()
    changes.stop()


@contextlib.contextmanager
def _passing_on(ours: bool) -> Iterator[Callable[[subprocess.Popen[Any]], None]]:
    """Pass signals on to a child. Call the yielded function with the child as soon as it exists.

    The block begins before the child does: a signal may come in the child's first moment.
    """
    children: list[subprocess.Popen[Any]] = []
    early: list[int] = []

    def pass_on(number: int, _frame: object) -> None:
        if not children:
            early.append(number)
            return
        (child,) = children
        if child.poll() is not None or (ours and signal.Signals(number).name in TYPED):
            return
        if ours:
            child.send_signal(number)
        else:
            processes.send(child.pid, "", number)

    def pass_on_to(child: subprocess.Popen[Any]) -> None:
        children.append(child)
        for number in early:
            pass_on(number, None)

    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # `nohup` means it
    before = {number: signal.signal(number, pass_on) for number in heard}
    try:
        yield pass_on_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
        NAME,
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
