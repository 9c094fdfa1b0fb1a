"""`make demo`, second half: the same denial in every real client here, with a scripted model.

A peer locks a file; the client's model, with the plugin installed as a person installs it, writes it. Private home,
loopback only. Exit 1 when a client let the write through.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from swarm_mcp.cli.progress import Progress

from .clients import CLIENTS
from .ground import Ground, Lacking
from .marketplace import Marketplace

EXECUTABLES = {"claude-code": "claude", "codex": "codex"}
NOTE = "renumbering migrations"


def main() -> int:
    fetched = Path(os.environ.get("SWARM_E2E_CLIENTS") or "/nonexistent") / ".bin"
    path = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{fetched}"
    found = {name: shutil.which(program, path=path) for name, program in EXECUTABLES.items()}
    here = {name: program for name, program in found.items() if program}
    if not here:
        print(
            "\nNo real client was found on PATH (`make e2e` fetches both and plays every scenario in them).", flush=True
        )
        return 0
    fine = True
    with tempfile.TemporaryDirectory(prefix="swarm-demo-") as folder:
        for name, program in here.items():
            # By a link of its own: a client's folder may hold another swarm-mcp or python3.
            (Path(folder) / EXECUTABLES[name]).symlink_to(os.path.realpath(program) if name != "codex" else program)
        for name in here:
            fine = play(name, Path(folder)) and fine
    return 0 if fine else 1


def play(name: str, clients: Path) -> bool:
    """Play one client's scene. Returns True if the write was denied and the file left alone."""
    with Progress() as progress:
        progress.say(f"\nThe same in the real {EXECUTABLES[name]} ({name}), installed by `swarm-mcp install`:")
        try:
            ground = Ground("demo", clients=clients)
        except Lacking as lacking:
            progress.say(f"   left out: {lacking}")
            return True
        return _scene(name, ground, progress)


def _scene(name: str, ground: Ground, progress: Progress) -> bool:
    who = f"   {EXECUTABLES[name]}"
    try:
        client = CLIENTS[name](ground)
        try:
            progress.begin("installing the plugin into a home of its own", who)
            client.prepare()
            Marketplace(ground, "install").install(name)
            progress.end("installed the plugin into a home of its own", who)
            ground.coordinator.peer_lock("notes.md", note=NOTE)
            before = (ground.checkout / "notes.md").read_bytes()
            progress.begin("running it; its model, which is scripted, writes a file that a peer has locked", who)
            client.run("demo", client.replace("notes.md", "line one", "line two"))
            progress.end("ran", who)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as trouble:
            # The person's own release of a client may want another set-up than the ones we drive.
            progress.end(f"could not be played: {' '.join(str(trouble).split())[:300]}", who)
            return True
        seen = " ".join(client.last_result("demo").replace(str(ground.root), "").split())
        progress.say(f"   the model reads: {seen}")
        fine = (ground.checkout / "notes.md").read_bytes() == before and NOTE in seen
        progress.say(f"   {'ok  denied, file untouched' if fine else 'NOT denied'}")
        return fine
    finally:
        ground.close()


if __name__ == "__main__":
    sys.exit(main())
