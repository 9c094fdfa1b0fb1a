"""An ordinary user is held as root is, by way of a user namespace."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from .checks import assert_text, assert_untouched
from .clients import CLIENTS, Codex
from .ground import base_folder, client_folder, own_ground
from .kernel_work import ON, WORDS, fill
from .marketplace import Marketplace
from .models import play

USER = "54321"
AS_USER = ("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups")


def unlocked(folder: Path, needed: list[Path]) -> list[str]:
    """Return the words before a command that run it as USER, with its needed files in folders that only root may enter.

    That happens in a mount namespace of the command's own, without effect out here. `folder`: an empty one.
    """
    lines = ["set -e"]
    for number, (top, path) in enumerate((top, path) for path in needed if (top := closed(path))):
        kept = folder / str(number)
        kept.mkdir()
        lines.insert(1, f"mount --bind {quote(str(path))} {kept}")
        if f"mount -t tmpfs -o mode=755 e2e {quote(str(top))}" not in lines:
            lines.append(f"mount -t tmpfs -o mode=755 e2e {quote(str(top))}")
        lines.append(f"mkdir -p {quote(str(path))}; mount --move {kept} {quote(str(path))}")
    lines.append('exec "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *AS_USER]


def closed(path: Path) -> Path | None:
    """The folder above `path` that lets no other user in."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)


@pytest.mark.parametrize("name", CLIENTS)
def test_an_ordinary_user(name: str) -> None:
    if os.geteuid():
        pytest.skip("not root: as an ordinary user all of these tests have run")
    if not shutil.which("setpriv") or subprocess.run([*AS_USER, "unshare", "-Ur", "true"]).returncode:
        pytest.skip("no setpriv here, or no user namespaces for ordinary users")
    with own_ground("user") as ground:
        client = CLIENTS[name](ground)
        client.prepare()
        Marketplace(ground, "install").install(name)
        fill(ground, "notes.md", "other.md")
        ground.coordinator.peer_lock("notes.md")
        base_folder().chmod(0o711)
        for path in (ground.root, *ground.root.rglob("*")):
            os.chown(path, int(USER), int(USER), follow_symlinks=False)
        client.models.script("work", client.shell("id -u; python3 fix.py"))
        needed = [client_folder().parent, Path(sys.prefix), Path(sys.base_prefix)]
        needed += [Path(folder).parent for folder in ground._node()]
        (ground.root / "kept").mkdir()
        before = unlocked(ground.root / "kept", needed)
        extra = ("-s", "workspace-write") if isinstance(client, Codex) else ()
        done = ground.run([*before, *client.command(play("work"), None, None, extra)], env=ON)
        assert done.returncode == 0, done.stderr or done.stdout
        told = client.last_result("work")
        assert USER in told and "Read-only file system: 'notes.md'" in told
        assert_untouched(client, "notes.md")
        assert_text(client, "other.md", "spoilt\n")
        assert WORDS in client.said("work")
