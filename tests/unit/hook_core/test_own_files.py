"""The session's own files before an unread command: the changed ones, and the bound of that look."""

import os
import time
from pathlib import Path

import pytest

from swarm_hook_core.traces import AFTER, LATER, LOOK, LOST, MERGED, kept_dir, version_path
from swarm_hook_core.traces.keeping import MOST_FILES, MOST_NAMES, changed_since_kept
from swarm_hook_core.traces.versions import keep

SECOND = 10**9
OWN = "codex.me"
# Marks of further versions, and True if such a version shows that the file is unchanged.
FURTHER = {LATER: True, LOOK: True, AFTER: True, LOST: False, MERGED: False}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "place")


def kept(place: str, path: Path, at_ns: int, mark: str = "", facts: str = "") -> Path:
    """Keep a version of the file at `path`, of time `at_ns`."""
    first = version_path(place, OWN, str(path))
    name = f"{first}{mark}{at_ns}{facts}" if mark else first
    assert keep(str(path), name, at_ns)
    return Path(name)


def changed(place: str) -> list[str] | None:
    return changed_since_kept(os.path.join(kept_dir(place), OWN))


@pytest.mark.parametrize("name", ["f.py", "100 %.py", "a%w12", "a%2Fb", "%l1"])
@pytest.mark.parametrize("mark", FURTHER)
def test_a_file_counts_as_changed_since_its_newest_version(name: str, mark: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("text\n")
    now = time.time_ns()
    kept(place, path, now - 60 * SECOND)
    assert changed(place) == [str(path)], "it has changed after its first version"
    facts = "-1-644-00" if mark == LOST else ""
    kept(place, path, now + SECOND, mark, facts)
    assert changed(place) == ([] if FURTHER[mark] else [str(path)])


def test_a_file_that_is_gone_has_changed_if_it_was_there(place: str, tmp_path: Path) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("text\n")
    for path in (there, missing):
        kept(place, path, time.time_ns())
    there.unlink()
    assert changed(place) == [str(there)]


@pytest.mark.parametrize(
    ("files", "each", "known"), [(MOST_FILES, 1, True), (MOST_FILES + 1, 1, False), (2, MOST_NAMES, False)]
)
def test_more_files_or_versions_than_a_quick_look_takes_are_unknown(
    files: int, each: int, known: bool, place: str, tmp_path: Path
) -> None:
    later = time.time_ns() + SECOND
    for number in range(files):
        path = tmp_path / f"f{number}"
        path.write_text("text\n")
        kept(place, path, later)
        for step in range(1, each):
            kept(place, path, later + step, LATER)
    assert changed(place) == ([] if known else None)


def test_a_name_without_its_path_leaves_the_files_unknown(place: str, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 200)
    path.write_text("text\n")
    kept(place, path, time.time_ns() + SECOND)
    assert changed(place) is None
