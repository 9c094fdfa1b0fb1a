"""A test if the kernel can hold files for this user's commands, made once and noted.

<state>/kernel/probe    ``<boot of the machine> <user> <why not, or empty>``
"""

from __future__ import annotations

import os
import sys

from swarm_hook_core.clock import boot
from swarm_hook_core.kernel import namespace
from swarm_hook_core.kernel.plans import kernel_dir
from swarm_hook_core.kernel.seatbelt import PROGRAM
from swarm_hook_core.process import host_id
from swarm_hook_core.spawn import run
from swarm_hook_core.state import read_private, write_private

SECONDS = 5.0
UNVERIFIED = "sandbox-exec is there; not tried on macOS yet"
# the obstacle -> its remedy
_MENDS = (
    ("apparmor_restrict_unprivileged_userns", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an"
     " AppArmor profile that lets this Python have user namespaces"),
    ("user.max_user_namespaces", "sudo sysctl -w user.max_user_namespaces=10000"),
    ("unprivileged_userns_clone", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("container", "run the container with --cap-add SYS_ADMIN, or a seccomp profile that lets it unshare and mount"),
    ("Linux", "a newer kernel"),
)  # fmt: skip


def works() -> bool:
    """Return True if the kernel can hold files here, by the noted result; test it if there is no result."""
    known = _known()
    return (again() if known is None else known) == ""


def again() -> str:
    """Test it, note the result and return it: the reason of a failure, or ""."""
    try:
        why = _tried()
        write_private(os.path.join(kernel_dir(), "probe"), f"{_mark()} {why}")
    except OSError as error:  # without a writable folder no plan can be written either
        return f"{kernel_dir()}: {error.strerror or error}"
    return why


def mend(why: str) -> str:
    """Return the remedy for a failure, or ""."""
    return next((what for mark, what in _MENDS if mark in why), "")


def _known() -> str | None:
    try:
        text = read_private(os.path.join(kernel_dir(), "probe"), 2000).decode()
    except (OSError, ValueError):
        return None  # never tested
    mark = _mark() + " "
    if text.startswith(mark):
        return text[len(mark) :].strip()
    return None


def _mark() -> str:
    """Return the conditions of the noted result: this boot of the machine, and this user."""
    return f"{boot(host_id()) or '-'} {os.geteuid()}"


def _tried() -> str:
    """Return the reason why nothing can be held here, or "", found by a process that tries it."""
    if sys.platform == "darwin":
        if os.path.exists(PROGRAM):
            return ""
        return f"there is no {PROGRAM}"
    if not sys.platform.startswith("linux"):
        return f"not tried on {sys.platform}"

    # in the state folder, as that belongs to the user
    canary = os.path.join(kernel_dir(), f"canary-{os.getpid()}")
    write_private(canary, "held\n")
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path[:0] = [{home!r}]; from swarm_hook_core.kernel import probe; probe.attempt({canary!r})"
    done = run([sys.executable, "-E", "-s", "-S", "-c", code], SECONDS)
    os.remove(canary)
    if done.code == 0:
        return ""
    said = " ".join((done.stdout or done.stderr).split()) or f"the attempt ended with {done.code}"
    return f"{said}{_reason()}"


def attempt(canary: str) -> None:
    """Hold the file `canary` and try to write it, in a process of its own. Prints the reason of a failure."""
    try:
        namespace.enter()
        namespace.hold(os.fsencode(canary))
    except OSError as error:
        print(error.strerror or error)
        os._exit(1)
    try:
        os.close(os.open(canary, os.O_WRONLY))
    except OSError:
        os._exit(0)
    print("a file that was made read-only could be written")
    os._exit(1)


def _reason() -> str:
    """Return the likely cause on this machine, in words."""
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdecimal())
    if release < (5, 12):
        return f" (Linux {os.uname().release}, and 5.12 is needed)"
    for name, stands, where in (
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        ("kernel.unprivileged_userns_clone", "0", "/proc/sys/kernel/unprivileged_userns_clone"),
        ("user.max_user_namespaces", "0", "/proc/sys/user/max_user_namespaces"),
    ):
        if os.geteuid() and _line(where) == stands:
            return f" ({name} is {stands})"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or "\nSeccomp:\t2" in _status():
        return " (a container, or another sandbox)"
    return ""


def _status() -> str:
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""  # not on this kernel


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(100).strip()
    except OSError:
        return ""  # not on this kernel
