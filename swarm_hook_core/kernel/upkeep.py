"""The process that made a namespace for a command, and stays in it to keep its mounts in line with the locks.

It ends with the last process in the namespace. When a lock ends, its file becomes writable in there; when the holder
has replaced a locked file, as editors do on saving, the new file is held. The kernel reports replacements; lock changes
are polled. Files locked while the command runs are left alone: the locks may be the command's own, through an agent
that it starts.
"""

from __future__ import annotations

import os
import select
import time

from swarm_hook_core.kernel import namespace, plans
from swarm_hook_core.kernel.plans import Plan

STORE_SECONDS = 0.25  # interval of looks at the store's files
LOCKS_SECONDS = 1.0  # interval of looks at the locks: leases lapse and holders die without a change of the store
# Pauses as multiples of the duration of the last look at the locks: without a change of the store, and after one. With
# a thousand locks a look is slow, and would keep a processor busy beside a server that runs all day.
REST, REST_AFTER_CHANGE = 100, 10


def run(plan: Plan, command: int, ready: int) -> None:
    """Hold the paths of `plan`, report to the file `ready`, and stay. Never returns.

    Reports: ``held <own pid>``, ``nothing``, or ``failed <why>``. `command`: the process that will join. It inherits no
    open file and no child from this one.
    """
    try:
        os.setsid()
        try:
            namespace.enter()
            held = _hold(plan)
            report = "nothing"
            if held:
                report = f"held {os.getpid()}"
        except OSError as error:
            held, report = [], f"failed {error.strerror or error}"
        os.write(ready, report.encode("utf-8", "surrogateescape"))
        os.close(ready)
        if held:
            # Close all files of the command's process: readers of its output wait for the last writer to close
            nowhere = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(nowhere, handle)
            os.closerange(3, 65536)
            os.chdir("/")
            _Upkeep(plan, held, command).stay()
    except BaseException as error:
        _record(plan, error)
    os._exit(0)


def _hold(plan: Plan) -> list[bytes]:
    """Make the paths of `plan` read-only; return those held. Raises OSError if the kernel cannot hold any.

    A path that is gone meanwhile is no failure. For a strict plan, each existing path must be held.
    """
    held, failed = [], None
    for path in sorted(plan.paths, key=len):  # a folder before its files
        raw = os.fsencode(path)
        try:
            namespace.hold(raw)
            held.append(raw)
        except FileNotFoundError:
            continue  # gone meanwhile
        except OSError as error:
            failed = error
            if plan.is_strict or not held:
                raise
    if failed is not None:
        _record(plan, failed)
    return held


class _Upkeep:
    def __init__(self, plan: Plan, held: list[bytes], command: int):
        self.plan = plan
        self.planned = list(held)
        self.held = set(held)
        self.poll = select.poll()
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.poll.register(self.mounts, select.POLLPRI)
        self.waited: dict[int, int] = {}  # pidfd of a process in the namespace -> its pid
        self._wait_for(command)
        self.looked = self.took = 0.0
        self.lacks = False  # True if a file to be held is missing
        self.has_failed = False  # a failed look at the locks: recorded once
        self.mark = _store_mark(plan)

    def stay(self) -> None:
        while True:
            for handle, _ in self.poll.poll(STORE_SECONDS * 1000):
                if handle in self.waited:
                    self.poll.unregister(handle)
                    os.close(handle)
                    del self.waited[handle]
                else:
                    self._hold_again()
            if not self.waited and not self._others_are_here():
                return
            if self.lacks:
                self._hold_again()
            self._follow_locks()

    def _wait_for(self, process: int) -> None:
        try:
            handle = os.pidfd_open(process)
        except (OSError, AttributeError):  # the process has ended, or this Python lacks pidfd_open
            return
        self.waited[handle] = process
        self.poll.register(handle, select.POLLIN)

    def _others_are_here(self) -> bool:
        """Return True if another process is in this namespace, and wait for those found."""
        here, seen = os.readlink("/proc/self/ns/mnt"), {str(os.getpid())}
        while not self.waited:
            # A process that ends during the search may have started another after the listing.
            new = {name for name in os.listdir("/proc") if name.isdecimal()} - seen
            if not new:
                return False
            seen |= new
            for name in new:
                try:
                    is_here = os.readlink(f"/proc/{name}/ns/mnt") == here
                except OSError:
                    continue  # it has ended, or belongs to another user
                if is_here:
                    self._wait_for(int(name))
        return True

    def _hold_again(self) -> None:
        """Hold paths that have lost their mount because another file was put in their place."""
        self.lacks = False
        os.lseek(self.mounts, 0, os.SEEK_SET)
        there = namespace.mount_points(b"".join(iter(lambda: os.read(self.mounts, 1 << 16), b"")))
        for path in self.planned:
            if path in self.held and path not in there:
                try:
                    namespace.hold(path)
                except FileNotFoundError:
                    self.lacks = True  # missing at present, and nothing will tell when it returns
                except OSError as error:
                    _record(self.plan, error)

    def _follow_locks(self) -> None:
        """Release paths that are no longer locked against this session; hold those again that are."""
        now, mark = time.monotonic(), _store_mark(self.plan)
        if mark == self.mark:
            rest = max(LOCKS_SECONDS, REST * self.took)
        else:
            rest = REST_AFTER_CHANGE * self.took
        if now < self.looked + rest:
            return
        self.mark, spent = mark, time.process_time()
        try:
            wanted = {os.fsencode(path) for path in plans.still_held(self.plan)}
        except Exception as error:  # a busy store: the held paths stay held
            if not self.has_failed:
                self.has_failed = True
                _record(self.plan, error)
            return
        finally:
            self.looked, self.took = time.monotonic(), time.process_time() - spent
        for path in reversed(self.planned):
            if path in self.held and path not in wanted:
                try:
                    namespace.release(path)
                except OSError:
                    pass  # it has gone with the file
                self.held.discard(path)
        self.held.update(path for path in self.planned if path in wanted)
        self._hold_again()


def _store_mark(plan: Plan) -> tuple[int | None, ...]:
    found: tuple[int | None, ...] = ()
    for end in ("", "-wal"):
        try:
            state = os.stat(plan.store + end)
            found += (state.st_mtime_ns, state.st_size, state.st_ino)
        except OSError:
            found += (None,)
    return found


def _record(plan: Plan, error: BaseException) -> None:
    try:
        from swarm_hook_core import state

        state.record(plan.runtime, "kernel", error)
    except Exception:
        pass  # nobody listens to this process
