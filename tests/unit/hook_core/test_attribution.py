"""The owner of each uncommitted line, by the versions that sessions have kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.traced import Player, git

from swarm_hook_core.traces import seen
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.versions import steps
from swarm_hook_core.traces.versions.lines import NoLines, changes_by, changes_of, lines_of

pytestmark = pytest.mark.usefixtures("no_faults")


def owners(file: Path, *players: Player) -> list[str]:
    """``text=owners`` of each line: `-` committed, the number of a player, `?` a person."""
    names = {player.session_id: str(number) for number, player in enumerate(players)}
    return [
        f"{line.text.decode().strip()}={'|'.join(names.get(one.session_id, '?') for one in line.authors) or '-'}"
        for line in lines_of(str(file))
    ]


def test_a_session_alone(work: Path) -> None:
    me = Player("codex", work)
    (work / "notes.md").write_text("alpha\nMINE\nbeta\ngamma\n")
    me.edits("notes.md", "beta", "THEIRS")
    me.edits("notes.md", "gamma", "gamma\nMORE")
    assert owners(work / "notes.md", me) == ["alpha=-", "MINE=?", "THEIRS=0", "gamma=-", "MORE=0"]


def test_two_sessions_and_a_person(work: Path) -> None:
    one, two, file = Player("codex", work), Player("claude-code", work), work / "notes.md"
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    one.edits("notes.md", "beta", "beta\nAGAIN")
    assert owners(file, one, two) == ["ONE=0", "beta=-", "AGAIN=0", "TWO=1"]
    assert one.runs("true") == ""
    file.write_text(file.read_text() + "PERSON\n")
    two.edits("notes.md", "TWO", "TOO")
    assert owners(file, one, two) == ["ONE=0", "beta=-", "AGAIN=0", "TOO=1", "PERSON=?"]


def test_a_line_that_two_may_have_written_says_so(work: Path) -> None:
    one, two, file = Player("codex", work), Player("codex", work), work / "notes.md"
    two.edits("other.md", "alpha", "x")
    one.check("apply_patch", {"command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-alpha\n+A\n*** End Patch"})
    two.edits("notes.md", "gamma", "BOTH")  # while the other's write is still to come
    assert owners(file, one, two) == ["alpha=-", "beta=-", "BOTH=0|1"]


def test_agents_of_one_session_are_told_apart(work: Path) -> None:
    me, file = Player("codex", work), work / "notes.md"
    for number, agent in enumerate(("a", "b")):
        text = file.read_text()
        me.check(
            "apply_patch", {"command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-x\n+y\n*** End Patch"}, agent
        )
        file.write_text(f"{text}{number}\n")
    assert [[one.agent for one in line.authors] for line in lines_of(str(file))][3:] == [["a"], ["b"]]


def test_what_a_session_removed_and_replaced(work: Path) -> None:
    me, peer, file = Player("codex", work), Player("codex", work), work / "notes.md"
    peer.edits("notes.md", "alpha\n", "")
    me.edits("notes.md", "gamma", "DELTA")
    one, two = changes_of(str(file))
    assert [line.text for line in one.removed] == [b"alpha\n"] and one.is_only_by("codex", peer.session_id)
    assert [line.text for line in (*two.removed, *two.added)] == [b"gamma\n", b"DELTA\n"]
    assert (one.old, one.new, two.old, two.new) == (0, 0, 2, 1)
    assert two.is_only_by("codex", me.session_id) and not two.is_only_by("codex", peer.session_id)
    assert list(changes_by("codex", me.session_id, str(work))) == [str(file)]
    assert [change.old for change in changes_by("codex", peer.session_id, str(work))[str(file)]] == [0]


def test_what_is_committed_has_no_owner_even_in_part(work: Path) -> None:
    me, file = Player("codex", work), work / "notes.md"
    me.edits("notes.md", "alpha", "one")
    git(work, "commit", "-qam", "a part")
    me.edits("notes.md", "gamma", "two")
    assert owners(file, me) == ["one=-", "beta=-", "two=0"]


def test_a_committed_line_may_have_been_removed_by_a_later_call_without_a_version(work: Path) -> None:
    me, file = Player("codex", work), work / "notes.md"
    me.edits("notes.md", "alpha", "one")
    me.edits("notes.md", "one", "two")  # alone: no version of it
    git(work, "commit", "-qam", "a part")
    me.edits("notes.md", "two", "three")
    (change,) = changes_of(str(file))
    assert [line.text for line in change.removed] == [b"two\n"] and change.removed[0].may_be_by("codex", me.session_id)


def test_a_moved_file_keeps_the_owners_of_its_lines(work: Path) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("notes.md", "alpha", "PEER")
    me.edits("notes.md", "gamma", "MINE")
    patch = "*** Begin Patch\n*** Update File: notes.md\n*** Move to: moved.md\n@@\n beta\n*** End Patch"
    assert me.told("apply_patch", {"command": patch}) == ""
    (work / "notes.md").rename(work / "moved.md")
    assert owners(work / "moved.md", me, peer) == ["PEER=1", "beta=0", "MINE=0"]
    assert lines_of(str(work / "notes.md")) == []


def crlf(work: Path) -> None:
    git(work, "config", "core.autocrlf", "true")
    (work / "notes.md").write_bytes(b"alpha\r\nMINE\r\ngamma\r\n")


ODD = {
    "line ends that git converts": (crlf, ["alpha=-", "MINE=?", "gamma=-"]),
    "no line end at the end": (lambda work: (work / "notes.md").write_text("alpha\nx"), ["alpha=-", "x=?"]),
    "a lone CR": (lambda work: (work / "notes.md").write_bytes(b"alpha\na\rb\n"), ["alpha=-", "a\rb=?"]),
    "empty": (lambda work: (work / "notes.md").write_text(""), []),
    "missing": (lambda work: (work / "notes.md").unlink(), []),
    "mode bits alone": (lambda work: (work / "notes.md").chmod(0o755), ["alpha=-", "beta=-", "gamma=-"]),
    "not in a commit": (lambda work: git(work, "update-ref", "-d", "HEAD"), ["alpha=?", "beta=?", "gamma=?"]),
    "binary": (lambda work: (work / "notes.md").write_bytes(b"a\0b\n"), None),
    "too large": (lambda work: (work / "notes.md").write_bytes(b"x\n" * (1 << 20)), None),
    "a folder": (lambda work: ((work / "notes.md").unlink(), (work / "notes.md").mkdir()), None),
    "a pointer of git-lfs": (
        lambda work: (
            (work / "notes.md").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
            git(work, "commit", "-qam", "x"),
        ),
        None,
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files(odd: str, work: Path) -> None:
    make, expected = ODD[odd]
    make(work)
    if expected is None:
        with pytest.raises(NoLines):
            lines_of(str(work / "notes.md"))
    else:
        assert owners(work / "notes.md") == expected


def test_a_link_leads_to_its_file(work: Path) -> None:
    (work / "link.md").symlink_to("notes.md")
    me = Player("codex", work)
    me.edits("link.md", "alpha", "ONE")
    assert owners(work / "link.md", me) == ["ONE=0", "beta=-", "gamma=-"] == owners(work / "notes.md", me)


def test_outside_of_a_repository_each_line_has_an_owner(tmp_path: Path) -> None:
    me, file = Player("codex", tmp_path), tmp_path / "plain.txt"
    file.write_text("a person's\n")
    me.edits("plain.txt", "person's\n", "person's\nsession's\n")
    assert owners(file, me) == ["a person's=?", "session's=0"]


def test_a_command_with_unknown_files_may_have_written_while_it_ran(work: Path) -> None:
    me, peer, file = Player("codex", work), Player("codex", work), work / "notes.md"
    peer.writes("other.md", "theirs\n")
    me.check("Bash", {"command": "some-unknown-tool"})
    time.sleep(0.05)
    file.write_text(file.read_text() + "BUILT\n")
    assert owners(file, me)[-1] in ("BUILT=0|?", "BUILT=?|0"), "or a person did, meanwhile"


def test_a_change_long_after_a_session_s_last_write_may_be_a_person_s(work: Path, monkeypatch) -> None:
    me, file = Player("codex", work), work / "notes.md"
    me.edits("notes.md", "alpha", "ONE")
    assert owners(file, me)[0] == "ONE=0"
    monkeypatch.setattr(steps, "OWN_NS", -(10**9))  # the write seems to be late
    assert owners(file, me)[0] == "ONE=0|?"


@pytest.mark.parametrize("is_another", [True, False])
def test_a_command_that_was_not_read_may_hide_a_person_s_change_before_it(
    is_another: bool, work: Path, monkeypatch
) -> None:
    monkeypatch.setattr(seen, "APART_NS", 0)  # the second call is no parallel one
    me, file = Player("codex", work), work / "notes.md"
    me.edits("notes.md", "alpha", "ONE")
    me.runs("true")
    file.write_text(file.read_text().replace("beta", "PERSON"))
    if is_another:
        forget("codex", me.session_id)
    then = me
    if is_another:
        then = Player("codex", work)
    then.runs("echo LAST >> notes.md")
    found = owners(file, *dict.fromkeys((me, then)))
    assert all("?" in one and "0" in one for one in (found[0], found[1], found[3])), found
    assert is_another is ("1" in found[1])


def test_without_a_noted_end_a_command_is_over_soon(work: Path, monkeypatch) -> None:
    me, file = Player("copilot", work), work / "notes.md"
    me.runs("sed -i s/alpha/ONE/ notes.md")
    assert owners(file, me)[0] == "ONE=0"
    monkeypatch.setattr(steps, "OWN_NS", -(10**9))  # the change seems to be late
    assert owners(file, me)[0] == "ONE=0|?"
