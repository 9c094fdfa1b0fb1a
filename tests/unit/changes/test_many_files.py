"""Questions about many changed files: the reads and questions do not grow with their number."""

from __future__ import annotations

import os
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.many_files import ManyFiles
from support.world import World

from swarm_hook_core import repository, traces
from swarm_hook_core.shell.programs.git import uncommitted
from swarm_hook_core.stakes import sweeps
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import file_changes
from swarm_hook_core.traces.versions import notes
from swarm_mcp.changes.commit.git import Git
from swarm_mcp.store.database import Transaction

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]
FEW, MANY = 40, 80
TIMES = 32 + 3 * 8  # bytes of the time of an entry, in three lists


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count folders of ours that are listed, journals and inputs that are opened, processes of git, and
    queries of the store.
    """
    found: Counter[str] = Counter()
    state = state_dir() + os.sep

    def counting(kind: str, real: Callable[..., Any], is_it: Callable[..., bool]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            found[kind] += is_it(*given)
            return real(*given, **named)

        return call

    def is_journal(path: Any, *_more: Any) -> bool:
        text = os.fsdecode(path)
        is_input = text.endswith(("%inputs", "%inputs.1", "%journal", "%journal.1"))
        return text.startswith(state) and (is_input or f"{os.sep}traces{os.sep}" in text)

    def is_ours(path: Any = ".") -> bool:
        return os.fsdecode(path).startswith(state)

    with (
        mock.patch.object(os, "listdir", counting("folders", os.listdir, is_ours)),
        mock.patch.object(os, "open", counting("journals", os.open, is_journal)),
        mock.patch.object(repository, "run", counting("git", repository.run, lambda *_given: True)),
        mock.patch.object(Git, "run", counting("git", Git.run, lambda *_given: True)),
        mock.patch.object(Transaction, "rows", counting("queries", Transaction.rows, lambda *_given: True)),
    ):
        yield found


QUESTIONS: dict[str, Callable[[ManyFiles], Any]] = {
    "diff": lambda many: many.world.swarm("diff"),
    "diff --mine": lambda many: many.world.swarm("diff", "--mine", as_=many.sessions[0]),
    "commit": lambda many: many.world.swarm("commit", "-m", "x", "--dry-run", as_=many.sessions[0]),
    "undo": lambda many: many.world.swarm("undo", "--session", many.sessions[1].session_id, "--dry-run"),
    "undo of the one session": lambda many: many.world.swarm("undo", "--dry-run"),
    "log": lambda many: many.world.swarm("log"),
    "status": lambda many: many.world.swarm("status"),
    "why": lambda many: many.world.swarm("why", many.names[0]),
    "blame": lambda many: many.world.swarm("blame", many.names[0]),
    "restore --list": lambda many: many.world.swarm("restore", "--list"),
    "checkout": lambda many: many.sessions[0].ask("Bash", {"command": "git checkout ."}),
    "stash": lambda many: many.sessions[1].ask("Bash", {"command": "git stash"}),
    "add": lambda many: many.sessions[2].ask("Bash", {"command": "git add -A"}),
    "add, though told": lambda many: many.sessions[2].ask("Bash", {"command": "git add -A"}),
}


def test_each_question_reads_and_asks_as_often_about_twice_as_many_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(file_changes, "LINES_SECONDS", 600.0)
    counts: dict[str, list[Counter[str]]] = {name: [] for name in QUESTIONS}
    grounds = [ManyFiles(tmp_path / str(number), number, shared=number) for number in (FEW, MANY)]
    for many in grounds:
        for name, question in QUESTIONS.items():
            with counted() as found:
                answer = question(many)
            assert getattr(answer, "code", 0) in (0, 1), (name, answer)
            counts[name].append(found)
    more = {name: f"{few} for {FEW} files, {many} for {MANY}" for name, (few, many) in counts.items() if many - few}
    assert more == {}


@pytest.mark.sampled
def test_what_is_noted_takes_little_more_room_than_it_is_long(tmp_path: Path) -> None:
    # In many small pieces it would leave a checker's memory full of holes.
    place = traces.place_of(str(World(tmp_path, "notes.md").repo))
    lines = [traces.entry(number, "wrote", "-", "Edit", f"/repo/{number % 50}.py", "state") for number in range(20_000)]
    traces.append(os.path.join(place, "codex.peer"), lines, lambda: traces.first_line("codex", "peer", "/repo"))
    versions = Path(traces.kept_dir(place), "codex.peer")
    versions.mkdir(parents=True)
    for number in range(2000):
        (versions / f"{traces.version_name('/repo/1.py')}{number}").touch()
    length = sum(map(len, lines)) + sum(map(len, os.listdir(versions)))
    tracemalloc.start()
    try:
        noted = notes.PlaceNotes(place)
        room, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(list(noted.journals["codex.peer"].of_file("/repo/7.py", ("wrote",)))) == 400
    assert room < 2 * length + TIMES * len(lines), (room, length)


@pytest.mark.parametrize("command", ["git checkout .", "git stash", "git add -A"])
def test_a_refusal_compares_the_first_of_very_many_files_alone(tmp_path: Path, monkeypatch, command: str) -> None:
    monkeypatch.setattr(file_changes, "LINES_SECONDS", 600.0)
    monkeypatch.setattr(sweeps, "MOST_LOOKED", 8)
    many, counts = ManyFiles(tmp_path, FEW, shared=3), []

    def swept(call: Any, files: list[str], seconds: float) -> Any:
        counts.append(len(files))
        return real(call, files, seconds)

    real = uncommitted.swept
    monkeypatch.setattr(uncommitted, "swept", swept)
    verdict = many.sessions[1].ask("Bash", {"command": command})
    assert verdict.denied and counts == [8] and f"more, perhaps, of {FEW} changed files" in verdict.words, verdict
    if "-A" in command:
        assert f"of {FEW} changed files" in many.sessions[1].ask("Bash", {"command": command}).notice
        after = many.sessions[1].ask("Bash", {"command": f"{command} && git commit -qm all && git checkout ."})
        assert not after.denied, "all of them are committed by then"


def test_a_change_that_only_a_command_tells_is_found_behind_the_first_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sweeps, "MOST_LOOKED", 4)
    names = [f"{number}.md" for number in range(9)]
    world = World(tmp_path, *names)
    peer, me = world.session("codex"), world.session("claude-code")
    for name in names[:8]:
        me.edit(name)
    assert not peer.bash("echo PEER >> 8.md").denied
    for command in ("git checkout .", "git stash", "git add -A"):
        verdict = me.ask("Bash", {"command": command})
        assert verdict.denied and "8.md (by codex" in verdict.words, verdict


MOST_GITS = {
    "git checkout .": 13, "git stash": 12, "git add -A": 16, "git commit -m x": 6, "git push": 5,
    "git add -A && git commit -m x": 16,
}  # fmt: skip


@pytest.mark.parametrize("command", MOST_GITS)
@pytest.mark.sampled
def test_a_check_asks_git_once_about_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(file_changes, "LINES_SECONDS", 600.0)
    many = ManyFiles(tmp_path, FEW, shared=2)
    with counted() as found:
        many.sessions[1].ask("Bash", {"command": command})
    assert found["git"] <= MOST_GITS[command] + 2  # files as young as the index are compared by their contents
