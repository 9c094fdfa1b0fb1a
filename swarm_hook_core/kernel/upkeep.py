"""The process that made a namespace for a command, and stays in it to keep its mounts in line with the locks.

It ends with the last process in the namespace. Where a lock ends, its file is writable in there again; where the holder
has put another file in the place of the locked one, as editors save, that one is held. The kernel wakes it for the
second. Files that are locked while the command runs are left alone: they may be the command's own doing, by way of an
agent that it starts.
"""

import os
import select
import time

from swarm_hook_core.kernel import namespace

STORE_SECONDS = 0.25  # how often it is looked whether the store has changed
LOCKS_SECONDS = 1.0  # and how often at the locks whatever happens: leases lapse, holders die
# Times what the last look at the locks took: until the next one whatever happens, and until one at what has changed. A
# thousand of them take long enough that a server which runs all day would otherwise have a busy companion.
REST, REST_AFTER_CHANGE = 100, 10


def run(plan, command: int, ready: int) -> None:
    """Hold what `plan` names, say so to `ready`, and stay. Never returns.

    What is said: ``held <own pid>``, ``nothing``, or ``failed <why>``. `command`: the process that is to join. It is
    left nothing of this one: no open file, no child.
    """
    try:
        os.setsid()
        try:
            namespace.enter()
            held = _hold(plan)
            said = f"held {os.getpid()}" if held else "nothing"
        except OSError as error:
            held, said = [], f"failed {error.strerror or error}"
        _write(ready, said)
        if held:
            _leave_files()
            _Upkeep(plan, held, command).stay()
    except BaseException as error:
        _record(plan, error)
    os._exit(0)


def _hold(plan) -> list:
    """Make the paths of `plan` read-only; those that are. Raises OSError where the kernel does not do it at all.

    One that has gone meanwhile is no failure. Of a strict plan each that is there has to be held.
    """
    held, failed = [], None
    for path in sorted(plan.paths, key=len):  # a folder before what is in it
        raw = os.fsencode(path)
        try:
            namespace.hold(raw)
            held.append(raw)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed = error
            if plan.is_strict or not held:
                raise
    if failed is not None:
        _record(plan, failed)
    return held


def _leave_files() -> None:
    """Let go of all files that the command's process has open: who reads its output waits for their end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)
    os.closerange(3, 65536)
    os.chdir("/")


class _Upkeep:
    def __init__(self, plan, held: list, command: int):
        self.plan = plan
        self.planned = list(held)
        self.held = set(held)
        self.poll = select.poll()
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.poll.register(self.mounts, select.POLLPRI)
        self.waited: dict = {}  # handle of a process that is in the namespace -> its number
        self._wait_for(command)
        self.looked = self.took = 0.0
        self.lacks = False  # whether something that is to be held is not there
        self.has_failed = False  # to look at the locks: recorded once
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
        except (OSError, AttributeError):  # it has ended
            return
        self.waited[handle] = process
        self.poll.register(handle, select.POLLIN)

    def _others_are_here(self) -> bool:
        """Whether any other process is in this namespace; those are then waited for."""
        here, seen = os.readlink("/proc/self/ns/mnt"), {str(os.getpid())}
        while not self.waited:
            # One that ends while it is looked for may have started another since the list was made.
            new = {name for name in os.listdir("/proc") if name.isdecimal()} - seen
            if not new:
                return False
            seen |= new
            for name in new:
                try:
                    is_here = os.readlink(f"/proc/{name}/ns/mnt") == here
                except OSError:
                    continue
                if is_here:
                    self._wait_for(int(name))
        return True

    def _hold_again(self) -> None:
        """Hold what has lost its mount: another file was put in the place of the one that was held."""
        self.lacks = False
        os.lseek(self.mounts, 0, os.SEEK_SET)
        there = namespace.mount_points(b"".join(iter(lambda: os.read(self.mounts, 1 << 16), b"")))
        for path in self.planned:
            if path in self.held and path not in there:
                try:
                    namespace.hold(path)
                except FileNotFoundError:
                    self.lacks = True  # its name is free at the moment, and nothing tells when it is not
                except OSError as error:
                    _record(self.plan, error)

    def _follow_locks(self) -> None:
        """Let go of what nobody holds against this session any more; hold again what somebody does."""
        now, mark = time.monotonic(), _store_mark(self.plan)
        rest = max(LOCKS_SECONDS, REST * self.took) if mark == self.mark else REST_AFTER_CHANGE * self.took
        if now < self.looked + rest:
            return
        self.mark, spent = mark, time.process_time()
        try:
            wanted = _wanted(self.plan)
        except Exception as error:  # a busy store: what is held stays so
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


def _wanted(plan) -> set:
    """The paths that this session is kept from now."""
    from swarm_hook_core.kernel import reach

    return {os.fsencode(path) for path in reach.still_held(plan)}


def _store_mark(plan) -> tuple:
    found: tuple = ()
    for end in ("", "-wal"):
        try:
            state = os.stat(plan.store + end)
            found += (state.st_mtime_ns, state.st_size, state.st_ino)
        except OSError:
            found += (None,)
    return found


def _record(plan, error: BaseException) -> None:
    try:
        from swarm_hook_core import faults

        faults.record(plan.runtime, "kernel", faults.describe(error))
    except Exception:
        pass  # nobody listens to this process


def _write(handle: int, text: str) -> None:
    os.write(handle, text.encode("utf-8", "surrogateescape"))
    os.close(handle)
