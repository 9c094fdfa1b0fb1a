"""Faults between machines and their server: swallowing links, stopped processes, clock changes, full disks.

Each of them can be undone, by its `close` or at the end of its context.
"""

import contextlib
import mmap
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

TO_SERVER, FROM_SERVER = "to the server", "from the server"


class SwallowingProxy:
    """A TCP link to a server on loopback that can be cut silently: nothing moves, and nothing is closed.

    Data sent meanwhile goes on when the link is healed, as with TCP's repetitions, so that a request may reach the
    server long after its caller has given up. Cut in one direction, requests are carried out and their answers are
    lost.
    """

    def __init__(self, host: str, port: int):
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._cut: frozenset[str] = frozenset()
        self._is_closed = False
        self._open: set[socket.socket] = set()
        self._stalled: set[socket.socket] = set()
        threading.Thread(target=self._listen, daemon=True).start()

    def cut(self, *directions: str) -> None:
        """Let nothing through in `directions`; in neither without an argument."""
        self._cut = frozenset(directions or (TO_SERVER, FROM_SERVER))

    def stall(self) -> None:
        """Let nothing through on the connections that there are; new ones work."""
        self._stalled = set(self._open)

    def heal(self) -> None:
        self._cut, self._stalled = frozenset(), set()

    def lead_to(self, port: int) -> None:
        """Lead new connections to another server on that host."""
        self._server = (self._server[0], port)

    def break_all(self) -> None:
        """End every connection, as a router does that forgets them."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_closed = True
        self._listener.close()
        self.break_all()

    def __enter__(self) -> "SwallowingProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the listener is closed
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        while TO_SERVER in self._cut and not self._is_closed:
            time.sleep(0.01)  # a connection that begins in a cut does not come about
        try:
            server = socket.create_connection(self._server, 2)
        except OSError:
            client.close()
            return
        ends = {client: (server, TO_SERVER), server: (client, FROM_SERVER)}
        self._open.update(ends)
        with client, server, selectors.DefaultSelector() as ready:
            for one in ends:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(one, selectors.EVENT_READ)
            with contextlib.suppress(OSError):
                while not self._is_closed:
                    for key, _ in ready.select(0.5):
                        other, direction = ends[key.fileobj]  # type: ignore[index]
                        if direction in self._cut or key.fileobj in self._stalled:
                            time.sleep(0.005)
                            continue
                        data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                        if not data:
                            return
                        other.sendall(data)
        self._open.difference_update(ends)


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes as a laptop's sleep does, and let them go on; those that have ended meanwhile do not matter."""
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class ServerClock:
    """The time of day of one program, set forward and back while it runs. Other programs' time is left alone.

    The program is started with `environment`. A small library stands before the C library's; it is compiled here, so
    there is no ServerClock without a C compiler (`ServerClock.missing`).
    """

    SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *offset;
__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("SHIFTED_CLOCK");
  int opened = file ? open(file, O_RDONLY) : -1;
  void *page = opened < 0 ? MAP_FAILED : mmap(0, sizeof(double), PROT_READ, MAP_SHARED, opened, 0);
  if (page != MAP_FAILED) offset = page;
  if (opened >= 0) close(opened);
}
static double shift(void) { return offset ? *offset : 0; }
int clock_gettime(clockid_t which, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, which, now);
  if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += (long)shift();
  return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
  now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *where) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (where) *where = exact.tv_sec;
  return exact.tv_sec;
}
"""

    @staticmethod
    def missing() -> str:
        """Return the missing requirements on this machine, else an empty text."""
        if os.uname().sysname != "Linux":
            return "a server's clock is set on Linux only"
        return "" if shutil.which("cc") else "no C compiler to make the library that sets a server's clock"

    def __init__(self, folder: Path):
        source, library, offset = folder / "shifted_clock.c", folder / "shifted_clock.so", folder / "shifted_clock"
        source.write_text(self.SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        offset.write_bytes(struct.pack("d", 0.0))
        offset.chmod(0o644)
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(offset)}
        with offset.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)
        self.offset = 0.0  # seconds from the right time

    def move(self, seconds: float) -> None:
        """Set the time of day forward by whole `seconds`, or back where they are negative."""
        self.offset += seconds
        self._page[:] = struct.pack("d", self.offset)


class SmallDisk:
    """A file system of its own of a few megabytes, to be filled up. Needs root (`SmallDisk.missing`)."""

    @staticmethod
    def missing() -> str:
        """Return the missing requirements on this machine, else an empty text."""
        if os.uname().sysname != "Linux" or os.geteuid() != 0:
            return "a small file system is mounted by root on Linux only"
        if not shutil.which("mount"):
            return "no mount"
        probe = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/tmp"], capture_output=True
        )
        return "" if probe.returncode == 0 else "root may not mount here"

    def __init__(self, folder: Path, megabytes: int):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "none", folder], check=True)

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.folder / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(1 << 12))

    def empty(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)


class Network:
    """Network namespaces on one switch: the server's host and machines with plugs to pull. Needs root.

    The host is 10.x.y.1, machine N is 10.x.y.(N + 2). Data of a machine with a pulled plug goes nowhere, silently for
    both ends.
    """

    @staticmethod
    def missing() -> str:
        """Return the missing requirements on this machine, else an empty text."""
        if os.uname().sysname != "Linux" or os.geteuid() != 0 or not shutil.which("ip"):
            return "network namespaces need root on Linux, and the program ip"
        probe = subprocess.run(
            ["unshare", "--net", "ip", "link", "add", "probe", "type", "bridge"], capture_output=True
        )
        return "" if probe.returncode == 0 else "root may not make networks here"

    def __init__(self, machines: int):
        mark = f"{os.getpid() % 100000:05d}"
        self._switch, self._net = f"swb{mark}", f"10.{200 + os.getpid() // 250 % 50}.{os.getpid() % 250}"
        self.host = f"{self._net}.1"
        self._names: list[str] = []
        # A fixed address: the default is the lowest one of the plugged interfaces, and changes with a pulled plug.
        address = f"02:00:00:00:{os.getpid() >> 8 & 255:02x}:{os.getpid() & 255:02x}"
        self._ip("link", "add", self._switch, "address", address, "type", "bridge")
        self._ip("address", "add", f"{self.host}/24", "dev", self._switch)
        self._ip("link", "set", self._switch, "up")
        for number in range(machines):
            name, plug = f"swarm{mark}-{number}", f"swp{mark}{number}"
            self._ip("netns", "add", name)
            self._names.append(name)
            self._ip("link", "add", plug, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._ip("link", "set", plug, "master", self._switch, "up")
            for words in (
                ("address", "add", f"{self._net}.{number + 2}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                self._ip("-n", name, *words)

    def inside(self, number: int) -> list[str]:
        """Return the words that run a command on machine `number`."""
        return ["ip", "netns", "exec", self._names[number]]

    def pull(self, number: int) -> None:
        self._ip("link", "set", self._plug(number), "nomaster")

    def plug_in(self, number: int) -> None:
        self._ip("link", "set", self._plug(number), "master", self._switch)

    def close(self) -> None:
        for name in self._names:
            self._ip("netns", "delete", name)
        self._ip("link", "delete", self._switch)

    def _plug(self, number: int) -> str:
        return f"swp{self._switch[3:]}{number}"

    @staticmethod
    def _ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
