"""The recorded answers that releases with the official SDK left behind go with an uninstallation."""

import os
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_mcp.server.old_records import forget_records

pytestmark = pytest.mark.slow


def test_uninstalling_leaves_no_record(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ["SWARM_STATE_DIR"], "server")
    folder.mkdir(parents=True)
    (folder / "opening-0123.json").write_text("{}")
    monkeypatch.setenv("PATH", os.defpath)
    ground.swarm("uninstall", "--client", "codex")
    assert folder.exists(), "others may still be served"
    ground.swarm("uninstall", "--dry-run")
    assert folder.exists()
    assert ground.swarm("uninstall").code == 0
    assert not folder.exists()


def test_other_files_stay(ground: Ground) -> None:
    folder = Path(os.environ["SWARM_STATE_DIR"], "server")
    folder.mkdir(parents=True)
    for name in ("opening-0123.json", "mine.txt"):
        (folder / name).write_text("{}")
    assert forget_records() and [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert not forget_records()
