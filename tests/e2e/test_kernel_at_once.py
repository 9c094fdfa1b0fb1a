"""Simultaneous calls, each with a plan of its own. The session's own locks are in none of them."""

import json
import shutil
from pathlib import Path

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .clients import ClaudeCode
from .ground import wait_for
from .kernel_work import ON
from .models import Step

# Writes a permitted and a locked file, and does not end before the other has begun.
BOTH = """\
import json, os, pathlib, time
names, other = json.loads(pathlib.Path("names.json").read_text())
said = []
for name in names:
    try:
        pathlib.Path(name).write_text("spoilt\\n")
    except OSError as error:
        said.append(os.strerror(error.errno) + " " + os.path.basename(name))
pathlib.Path("begun").touch()
while not os.path.exists(other):
    time.sleep(0.02)
pathlib.Path("said").write_text(json.dumps(said))
"""


@pytest.mark.ways("install")
def test_two_calls_in_one_answer(client: Client) -> None:
    """Each works in a repository of its own with a file locked by another session."""
    ground, checkout = client.ground, client.ground.checkout
    peer = ground.coordinator.peer_lock("notes.md")
    folders = {name: ground.root / name for name in ("one", "two")}
    for name, other in (("one", "two"), ("two", "one")):
        make(folders[name], [str(checkout / file) for file in ("notes.md", f"{name}.md")], folders[other] / "begun")
        ground.git(folders[name], "init", "-q")
        ground.coordinator.lock(peer, str(folders[name] / f"locked-{name}"), "careful surgery")
    calls = [client.shell(f"cd {folder} && python3 both.py") for folder in folders.values()]
    if isinstance(client, ClaudeCode):  # Claude Code runs foreground commands one after the other
        calls[0]["input"]["run_in_background"] = True
    try:
        with client.held("work", Step(calls=tuple(calls)), env=ON) as live:
            (session,) = ground.coordinator.sessions()
            ground.coordinator.lock(session["id"], "one.md", "my own")
            live.go_on()
        for name, folder in folders.items():
            assert wait_for((folder / "said").exists, 60), client.results("work")
            said = json.loads((folder / "said").read_text())
            assert said == ["Read-only file system notes.md", f"Read-only file system locked-{name}"], client.results(
                "work"
            )
            assert (folder / f"locked-{name}").read_text() == "as it was\n"
            assert_text(client, f"{name}.md", "spoilt\n")
    finally:
        for folder in folders.values():
            shutil.rmtree(folder)
    assert_untouched(client, "notes.md")


def make(folder: Path, names: list[str], other: Path) -> None:
    folder.mkdir()
    (folder / "both.py").write_text(BOTH)
    (folder / f"locked-{folder.name}").write_text("as it was\n")
    (folder / "names.json").write_text(json.dumps([[*names, f"locked-{folder.name}"], str(other)]))
