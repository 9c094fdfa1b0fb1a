"""The notes of `install` on an upgrade: short, the important first, empty without an upgrade."""

from pathlib import Path

import pytest

from swarm_mcp.answers.text_width import width
from swarm_mcp.cli import upgrade_notes
from swarm_mcp.runtimes import changelog

SECTIONS = """# Changelog

## [Unreleased]

## [0.3.0] - 2026-12-02

### Added
- An added thing. With more words on it.
- Another added thing.

### Changed
- What was one thing is another. Restart it.

### Fixed
- A fault is mended.

## [0.2.0] - 2026-12-01

### Changed
- An earlier change.
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes this release 0.3.0 with a changelog, SECTIONS by itself."""

    def make(text: str = SECTIONS) -> Path:
        (tmp_path / "CHANGELOG.md").write_text(text)
        monkeypatch.setattr(changelog, "plugin_folder", lambda: str(tmp_path))
        monkeypatch.setattr(upgrade_notes, "__version__", "0.3.0")
        return tmp_path / "CHANGELOG.md"

    return make


def test_an_upgrade_names_who_had_what_and_what_has_changed(release):
    release()
    assert upgrade_notes.lines({"Claude Code": "0.2.0", "Codex": "0.2.0"}, 100) == [
        "swarm 0.3.0 is installed; Claude Code and Codex had 0.2.0. Changes:",
        "  Changed: What was one thing is another.",
        "  Added: An added thing.",
        "  Added: Another added thing.",
        "  Fixed: A fault is mended.",
    ]


def test_the_client_with_the_oldest_release_decides_what_is_new(release):
    release()
    heading, *changes = upgrade_notes.lines({"Claude Code": "0.2.0", "Codex": "0.1.0"}, 100)
    assert heading == "swarm 0.3.0 is installed; Codex had 0.1.0; Claude Code had 0.2.0. Changes:"
    assert "  Changed: An earlier change." in changes


@pytest.mark.parametrize("room", [40, 80, 200])
def test_it_is_a_dozen_lines_at_most_and_each_kind_has_its_turn(release, room: int):
    many = "\n".join(
        f"- Change number {number} is one with quite a few words, so that it is folded." for number in range(40)
    )
    path = release(f"## [0.3.0] - 2026-12-02\n\n### Added\n{many}\n\n### Changed\n{many}\n\n### Fixed\n{many}\n")
    lines = upgrade_notes.lines({"Claude Code": "0.2.0"}, room)
    assert len(lines) <= upgrade_notes.ROWS
    assert [line for line in lines[:-1] if width(line) > room] == []
    kinds = [line.split(":")[0].strip() for line in lines if line.startswith(("  Changed:", "  Added:", "  Fixed:"))]
    assert set(kinds) == {"Changed", "Added", "Fixed"}
    assert lines[-1] == f"  and {120 - len(kinds)} more: {path}"


def test_a_first_installation_and_the_same_release_have_nothing_to_say(release):
    release()
    versions = upgrade_notes.upgraded({"claude-code": "", "codex": "0.3.0"})
    assert versions == {} and upgrade_notes.lines(versions, 80) == [] and upgrade_notes.as_json(versions) is None


def test_a_newer_release_is_named_and_no_change(release):
    release()
    assert upgrade_notes.lines({"Codex": "0.4.0"}, 80) == ["swarm 0.3.0 is installed; Codex had 0.4.0."]
    told = upgrade_notes.as_json({"codex": "0.4.0"})
    assert told == {"from": {"codex": "0.4.0"}, "to": "0.3.0", "changes": [], "not_shown": 0}


def test_programs_get_whole_entries(release):
    release()
    told = upgrade_notes.as_json({"claude-code": "0.1.0"})
    assert told and told["not_shown"] == 0
    assert told["changes"][0] == {
        "release": "0.3.0", "kind": "Changed", "text": "What was one thing is another. Restart it.",
    }  # fmt: skip
    assert len(told["changes"]) == 5
