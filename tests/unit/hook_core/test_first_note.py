"""The first note of a session on a full disk: a journal with half a first line would be nobody's for ever."""

import errno
import os
from pathlib import Path

import pytest
from support.files import text_at

from swarm_hook_core import traces
from swarm_hook_core.traces import journal


def fills_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk take `count` bytes of the next write alone."""

    def write_all(handle: int, data: bytes) -> None:
        os.write(handle, data[:count])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(traces, "write_all", write_all)


def note(path: Path) -> None:
    entry = traces.entry(1, "wrote", "", "Edit", "/work/notes.md")
    traces.append(str(path), [entry], lambda: traces.first_line("codex", "the-session", "/work"))


@pytest.mark.parametrize("count", [0, 1, 12, 40])
def test_half_a_first_line_is_taken_back(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    with monkeypatch.context() as full:
        fills_after(count, full)
        with pytest.raises(OSError, match="No space"):
            note(path)
    note(path)
    assert journal.owner_of(path.read_bytes()) == ("codex", "the-session")


def test_what_was_noted_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = text_at(tmp_path / "journal", "")
    note(path)
    before = path.read_bytes()
    fills_after(9, monkeypatch)
    with pytest.raises(OSError, match="No space"):
        note(path)
    assert path.read_bytes().startswith(before)
