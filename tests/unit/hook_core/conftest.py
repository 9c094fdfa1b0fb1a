"""Fixtures of the hook tests: repositories for their sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sessions import ready_store

from swarm_hook_core import coordinator
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store


class Commands(list[list[str]]):
    """The commands of the coordinator that hooks in this process start, as lists of words.

    No process is started; with `run` each runs to its end in this process.
    """

    run = False

    def start(self, words: list[str]) -> None:
        self.append(words)
        if self.run:
            assert main(words[1:]) == 0


@pytest.fixture
def store() -> Iterator[Store]:
    """The store of the home, or of `ground`, open for the time of the test."""
    ready_store()
    with Store() as opened:
        yield opened


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one folder, ``sub``, and an empty store."""
    ready_store()
    folder = tmp_path.resolve() / "repo"
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "sub").mkdir()
    return folder


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The commands that hooks start from now on."""
    made = Commands()
    monkeypatch.setattr("swarm_hook_core.process.start_detached", made.start)
    monkeypatch.setattr(coordinator, "command", lambda: ["swarm-mcp"])
    return made
