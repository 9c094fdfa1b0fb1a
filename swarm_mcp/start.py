"""The start of a short process of the coordinator: a hook, or a command that answers at once.

Python searches folders for a module, with steps around it: that takes longer than to run most of ours. Here the
bytecode that the installer has compiled is run at once (``lean.import_by``); a module without fresh bytecode is
imported as usual. ``os`` is loaded as far as needed. Servers and other long commands start as any program does.
"""

import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from swarm_hook_core.lean import Found

SHORT = {
    "hook", "lock", "unlock", "locks", "ls", "status", "renew", "why", "register", "deregister", "denied", "attempted",
    "alive", "agent-ended", "altered", "overwritten", "evicted",
}  # fmt: skip
WITHOUT_SITE = ("lock", "unlock", "locks", "ls", "status", "renew", "why", "--version", "-v", "-V", "version")
# What installers put beside packages: nothing that a command needs.
HARMLESS = {"distutils-precedence.pth", "_virtualenv.pth"}
PACKAGES = ("swarm_mcp", "swarm_hook_core")
LARGEST = 1 << 18  # bytes of a module's bytecode
HEADER = 16  # bytes before the code: magic number, flags, time and size of the source


def begin() -> None:
    """Prepare this process for its command, before ``os`` is loaded: a short one loads its modules cheaply."""
    words = sys.argv[1:]
    flags = sys.flags
    if (
        not words
        or words[0] not in SHORT
        or "posix" not in sys.builtin_module_names
        or "--help" in words
        or "-h" in words
    ):
        return
    if sys.implementation.name == "cpython" and not (flags.optimize or sys.pycache_prefix):
        from swarm_hook_core.lean import import_by

        import_by(Bytecode(__file__[: -len("/swarm_mcp/start.py")]).find)


def begin_alone(packages: str) -> bool:
    """Prepare this process for its command where that needs no more of `site` than the folder `packages`.

    Return False where `site` has to do more: for another kind of command, for packages of the system or of a checkout,
    and for other programs' hooks into `site`.
    """
    if sys.argv[1:2] == [] or sys.argv[1] not in WITHOUT_SITE or __file__ != f"{packages}/swarm_mcp/start.py":
        return False
    from posix import listdir

    try:
        with open(f"{packages.rpartition('/lib/')[0]}/pyvenv.cfg", encoding="utf-8") as file:
            if "include-system-site-packages = false" not in file.read():
                return False
        if {name for name in listdir(packages) if name.endswith(".pth")} - HARMLESS:
            return False
    except (OSError, ValueError):  # no virtual environment, or one that cannot be read: `site` may know it
        return False
    sys.path.remove(packages)
    sys.path.append(packages)  # where `site` puts it
    begin()
    return True


class Bytecode:
    """The compiled modules of our packages in the folder `root`."""

    def __init__(self, root: str):
        import os  # `lean` has loaded it

        self.root, self.os = root, os
        self.ending = f".{sys.implementation.cache_tag}.pyc"
        self.magic: bytes = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER

    def find(self, name: str) -> "Found | None":
        """Return what runs a module of ours; None for any other, and for one without fresh bytecode."""
        package, _, rest = name.partition(".")
        if package not in PACKAGES:
            return None
        folder, _, last = f"{self.root}/{name.replace('.', '/')}".rpartition("/")
        try:
            return (*self._read(folder, last), [])
        except FileNotFoundError:  # it is a package, or has not been compiled
            folder = f"{folder}/{last}"
        except (OSError, ValueError, EOFError, TypeError):  # not fresh, or torn
            return None
        try:
            return (*self._read(folder, "__init__"), [folder])
        except (OSError, ValueError, EOFError, TypeError):  # not fresh, or torn
            return None

    def _read(self, folder: str, file: str) -> "tuple[str, CodeType]":
        os, source = self.os, f"{folder}/{file}.py"
        handle = os.open(f"{folder}/__pycache__/{file}{self.ending}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(handle, LARGEST)
        finally:
            os.close(handle)
        found = os.stat(source)
        time, size = int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF
        # As Python does by default: flags of 0, and the source as it was.
        if data[:HEADER] != self.magic + (time << 32 | size << 64).to_bytes(12, "little"):
            raise ValueError(f"{source} has changed")
        return source, loads(memoryview(data)[HEADER:])
