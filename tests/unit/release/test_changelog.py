"""The changelog: in the form of Keep a Changelog, and read as far back as an upgrade needs it."""

import re
from pathlib import Path

import pytest
from support import repository

from swarm_mcp import __version__
from swarm_mcp.runtimes import changelog
from swarm_mcp.runtimes.changelog import Entry, entries, newer, since

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
SAMPLE = """# Changelog

Words about it.

## [Unreleased]

### Added
- Something that
  takes [two](docs/lines.md) lines. And more of it.

## [0.10.0] - 2026-12-01

### Changed
- `x` is 0.4 s late: `y`.

### Fixed
- A fault

## 0.9.1 - 2026-11-30
### Added
- The beginning.
"""


def test_the_changelog_has_the_form_that_it_names():
    text = (repository.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    releases = []
    for heading in headings[1:]:
        found = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})", heading)
        assert found, heading
        releases.append((tuple(map(int, found[1].split("."))), found[2]))
    assert releases == sorted(releases, reverse=True), "the newest comes first"
    for part in text.split("\n## ")[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], "each kind once, in the usual order"
    listed = entries(text)
    assert len(listed) == len(re.findall(r"^- ", text, re.MULTILINE))
    firsts = [entry.first_sentence for entry in listed]
    assert len(set(firsts)) == len(firsts), "nothing is said twice"
    assert [one for one in firsts if len(one) > 250 or not one.endswith((".", "!", ")"))] == []


def test_entries_are_read_with_their_release_and_kind():
    assert entries(SAMPLE) == [
        Entry("Unreleased", "Added", "Something that takes two lines. And more of it."),
        Entry("0.10.0", "Changed", "`x` is 0.4 s late: `y`."),
        Entry("0.10.0", "Fixed", "A fault"),
        Entry("0.9.1", "Added", "The beginning."),
    ]
    assert [entry.first_sentence for entry in entries(SAMPLE)] == [
        "Something that takes two lines.", "`x` is 0.4 s late: `y`.", "A fault", "The beginning.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "count"),
    [("0.9.0", 4), ("0.9.1", 3), ("0.9.1rc1", 3), ("0.10.0", 1), ("1.0.0", 1), ("", 4), ("odd", 4)],
)
def test_what_is_newer_than_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, count: int):
    (tmp_path / "CHANGELOG.md").write_text(SAMPLE)
    monkeypatch.setattr(changelog, "plugin_folder", lambda: str(tmp_path))
    assert len(since(version)) == count


def test_an_installation_without_one_knows_of_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(changelog, "plugin_folder", lambda: str(tmp_path))
    assert since("0.1.0") == []


def test_releases_are_compared_by_their_numbers():
    assert newer("0.10.0", "0.9.12") and newer("1.0.0", "0.99.99")
    assert not newer("0.1.0", "0.1.0") and not newer("0.1", "0.2")


def test_the_installed_package_carries_it():
    carried = entries(changelog.file().read_text(encoding="utf-8"))
    assert len(carried) > 10
    assert not any(newer(entry.release, __version__) for entry in carried if entry.release != changelog.UNRELEASED)
