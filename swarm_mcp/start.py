"""The start of a command in a virtual environment that needs no more of `site` than one folder of packages."""

import sys

WITHOUT_SITE = ("lock", "unlock", "locks", "ls", "status", "renew", "why", "--version", "-v", "-V", "version")
# What installers put beside packages: nothing that a command needs.
HARMLESS = {"distutils-precedence.pth", "_virtualenv.pth"}


def begin_alone(packages: str) -> bool:
    """Prepare this process for its command where that needs no more of `site` than the folder `packages`.

    Return False where `site` has to do more: for another kind of command, for packages of the system or of a checkout,
    and for other programs' hooks into `site`.
    """
    if sys.argv[1:2] == [] or sys.argv[1] not in WITHOUT_SITE or __file__ != f"{packages}/swarm_mcp/start.py":
        return False
    from os import listdir

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
    return True
