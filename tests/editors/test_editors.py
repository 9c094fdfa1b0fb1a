"""The language server in real editors, without a window: hints that come and go, a lens, a save that is a person's."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import SWARM, time_limit
from support.world import World

HERE = Path(__file__).parent
SECONDS = 60.0
EDITORS = {
    "neovim": ("nvim", ["--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", str(HERE / "neovim.lua")]),
    "emacs": ("emacs", ["--batch", "-l", str(HERE / "emacs.el")]),
}


class Played:
    """An editor with the file of a test, and the moments that its script has left."""

    def __init__(self, name: str, world: World, edited: Path):
        program, words = EDITORS[name]
        self.moments = world.folder / "moments"
        self.moments.mkdir()
        environment = {
            **os.environ, "MOMENTS": str(self.moments), "MOMENTS_MS": str(int(time_limit(SECONDS) * 1000)),
            "EDITED": str(edited), "SERVER": json.dumps([*SWARM, "lsp"]),
        }  # fmt: skip
        self.process = subprocess.Popen(
            [program, *words], cwd=world.repo, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def moment(self, name: str) -> Any:
        """Wait for a moment; return the editor's findings then."""
        path = self.moments / name
        self.until(path.exists)
        return json.loads(path.read_text())

    def until(self, is_so: Callable[[], object]) -> None:
        end = time.monotonic() + time_limit(SECONDS)
        while not is_so():
            assert self.process.poll() is None, self._said()
            assert time.monotonic() < end, "it takes too long"
            time.sleep(0.05)

    def ended(self) -> int:
        """Let the editor go; its exit code."""
        (self.moments / "over").touch()
        said = self._said()
        assert self.process.returncode == 0, said
        return self.process.returncode

    def _said(self) -> str:
        out, _err = self.process.communicate(timeout=time_limit(SECONDS))
        late = self.moments / "late"
        return out.decode("utf-8", "replace") + (late.read_text() if late.exists() else "")


@pytest.fixture(params=EDITORS)
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, Any, Played]]:
    """A world with a session that holds `notes.md` and has changed its second line, and an editor with that file."""
    program = EDITORS[request.param][0]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed here")
    world = World(tmp_path, "notes.md")
    peer = world.session("codex")
    peer.edit("notes.md", "beta", "theirs")
    world.lock(peer, "notes.md", "renumbering migrations")
    peer.ask("Bash", {"command": "./build --all"})  # it runs, and may write anything
    played = Played(request.param, world, world.repo / "notes.md")
    yield world, peer, played
    if played.process.poll() is None:
        played.process.kill()
        played.process.wait()


def test_an_editor_shows_who_holds_and_who_changed(played: tuple[World, Any, Played]) -> None:
    world, peer, editor = played
    who = f"codex {peer.id[:8]}"
    opened = [(hint[0], hint[1].rpartition("swarm: ")[2]) for hint in editor.moment("opened")]
    assert sorted(opened) == [
        (1, f"held by {who}: renumbering migrations"),
        (2, f"{who} changed line 2, not committed"),
    ]
    assert world.swarm("unlock", "notes.md", as_=peer).code == 0
    ((line, _words, *_severity),) = editor.moment("unlocked")
    assert line == 2
    title, answer = editor.moment("lens")
    assert title == "swarm: blame" and who in answer
    editor.moment("saved")

    def is_noted() -> bool:
        rows = {row["line"]: row["authors"] for row in world.swarm("blame", "notes.md", "--uncommitted").json["lines"]}
        return [author["name"] for author in rows[3]] == ["a person"] and rows[2][0]["name"] == who

    editor.until(is_noted)
    assert world.read("notes.md") == "alpha\ntheirs\ntyped by a person\n"
    assert editor.ended() == 0
