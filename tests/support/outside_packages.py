"""A folder of installed packages, with others among them that bring harnesses."""

import os
from pathlib import Path

from support.fixtures import BARE_PYTHON, FOLDERS
from swarm_mcp.agents.harness import registry


def package(folder: Path, name: str, code: str, offered: str) -> None:
    """Put a package with one module into the folder, as an installer leaves it; `offered`: its entry points, a line each."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{offered}\n")


def installed_packages(place: Path) -> Path:
    """Make a folder of installed packages below `place`: links to all that this run has, and room for more."""
    folder = place / "site-packages"
    folder.mkdir()
    for found in FOLDERS:
        if os.path.isdir(found) and "python3" not in os.path.basename(found) and "lib-dynload" not in found:
            for entry in os.scandir(found):
                if not (folder / entry.name).exists():
                    (folder / entry.name).symlink_to(entry.path)
    return folder


def command(installed: Path) -> list[str]:
    """Return `swarm-mcp` as hooks and servers start it, from that folder."""
    code = f"import sys; sys.path[:0] = [{str(installed)!r}]; from swarm_mcp.cli.main import main; sys.exit(main())"
    return [*BARE_PYTHON, "-c", code]
