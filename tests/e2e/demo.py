"""`make demo`, second half: the same refusals in every real client here, with a scripted model.

The plugin is installed as a person installs it. A person has added four lines, and the model types `git checkout .`;
then a peer locks a file, and the model writes it. Private home, loopback only. Exit 1 if a client let one of them pass.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from swarm_mcp.cli.progress import Progress

from .client import Client
from .clients import CLIENTS
from .ground import Ground, Lacking
from .marketplace import Marketplace

EXECUTABLES = {"claude-code": "claude", "codex": "codex"}
NOTE = "renumbering migrations"
YOURS = "other\nfour\nlines\nof\nyours\n"  # the file is committed with its first line


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
    """Play one client's scenes. Returns True if both calls were refused, and the files left alone."""
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
            progress.begin(
                "running it; its model, which is scripted, types `git checkout .` over four lines of yours", who
            )
            (ground.checkout / "other.md").write_text(YOURS)
            client.run("sweep", client.shell("git checkout ."))
            progress.end("ran", who)
            kept = (ground.checkout / "other.md").read_text() == YOURS
            fine = _told(client, "sweep", "a person's work", kept, "your four lines are still there", progress)
            progress.begin("running it; its model writes a file that a peer has locked", who)
            ground.coordinator.peer_lock("notes.md", note=NOTE)
            before = (ground.checkout / "notes.md").read_bytes()
            client.run("lock", client.replace("notes.md", "line one", "line two"))
            progress.end("ran", who)
            untouched = (ground.checkout / "notes.md").read_bytes() == before
            return _told(client, "lock", NOTE, untouched, "the file is untouched", progress) and fine
        except (AssertionError, OSError, subprocess.TimeoutExpired) as trouble:
            # The person's own release of a client may want another set-up than the ones we drive.
            progress.end(f"could not be played: {' '.join(str(trouble).split())[:300]}", who)
            return True
    finally:
        ground.close()


def _told(client: Client, script: str, reason: str, stayed: bool, claim: str, progress: Progress) -> bool:
    """Show the words that the model of `script` got. Returns True if they have `reason`, and the file stayed."""
    seen = " ".join(client.last_result(script).replace(str(client.ground.root), "").split())
    progress.say(f"   the model reads: {seen}")
    fine = stayed and reason in seen
    progress.say(f"   {f'ok  refused; {claim}' if fine else 'NOT refused'}")
    return fine


if __name__ == "__main__":
    sys.exit(main())
