"""Looks at another session's change: a read before the change does not count."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.worker import Worker, repository

pytestmark = pytest.mark.slow

OVERWRITE = "printf 'all new\\n' > src/app.py"


def test_a_read_after_the_check_and_before_the_write_saw_nothing(tmp_path: Path, repo: Path) -> None:
    """A hook runs before its call: meanwhile another session may read the file as it was."""
    place = repository(tmp_path.resolve() / "same", "src")
    writer, reader = Worker("claude-code", place, "keep"), Worker("codex", place, "keep")
    assert writer.checked(OVERWRITE)
    reader.turn("cat src/app.py")
    (place / "src/app.py").write_text("all new\n")
    # another text than the writer's, so that a whole write would destroy that
    reader.turn("printf 'of its own\\n' > src/app.py")
    assert [said.denied for said in reader.said] == [True], reader.said


def test_a_read_after_the_write_has_seen_it(tmp_path: Path, repo: Path) -> None:
    place = repository(tmp_path.resolve() / "same", "src")
    writer, reader = Worker("claude-code", place, "keep"), Worker("codex", place, "keep")
    writer.turn("edit one two src/app.py")
    reader.turn("cat src/app.py", OVERWRITE)
    assert reader.said == []


def test_who_is_denied_reads_again_and_writes(tmp_path: Path, repo: Path) -> None:
    """And is denied again once the other has written once more."""
    place = repository(tmp_path.resolve() / "same", "src")
    writer, reader = Worker("claude-code", place, "keep"), Worker("codex", place, "keep")
    writer.turn("edit one two src/app.py")
    reader.turn(OVERWRITE, "cat src/app.py", OVERWRITE)
    assert [(said.call, said.denied) for said in reader.said] == [(OVERWRITE, True)]
    writer.turn("edit new old src/app.py")
    reader.turn(OVERWRITE)
    assert [(said.call, said.denied) for said in reader.said] == [(OVERWRITE, True)] * 2
