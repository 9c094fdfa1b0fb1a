"""The owner of each uncommitted line, by the versions that sessions have kept."""

import os
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.files import program_at
from support.traced import Player, git, lines_of, notes_an_end
from support.world import saves, some_time_passes

from swarm_hook_core import traces
from swarm_hook_core.traces import journal, keeping, rewinds, seen
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.versions import notes
from swarm_hook_core.traces.versions.lines import Change, Fold, Line, NoLines
from swarm_hook_core.traces.versions.stored import versions_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]


def owners(file: Path, *players: Player) -> list[str]:
    """``text=owners`` of each line: `-` committed, the number of a player, `?` a person."""
    names = {player.session_id: str(number) for number, player in enumerate(players)}
    return [
        f"{line.text.decode().strip()}={'|'.join(names.get(one.session_id, '?') for one in line.authors) or '-'}"
        for line in lines_of(os.path.realpath(file))
    ]


def sessions(found: Change | Line) -> set[str]:
    """The sessions that may have made a change, or a line."""
    return {author.session_id for author in found.authors}


def test_a_session_alone(work: Path, me: Player) -> None:
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


def test_a_file_s_entries_are_parsed_once_whatever_their_number(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    players, parsed = [Player("codex", work), Player("claude-code", work)], [0]

    class Counted(journal.Entry):
        def __init__(self, line: bytes):
            parsed[0] += 1
            super().__init__(line)

    def cost(edits: int) -> int:
        for number in range(edits):
            said = players[number % 2].runs(f"cat notes.md; sed -i '1i line {number}' notes.md")
            assert not said.startswith("denied"), said
        with monkeypatch.context() as patched:
            patched.setattr(journal, "Entry", Counted)
            parsed[0] = 0
            assert owners(work / "notes.md", *players)[0].startswith(f"line {edits - 1}=")
        return parsed[0]

    few = cost(8)
    assert cost(24) < 6 * few  # four times as many edits by now; without the limit it is fifteen times


def test_a_line_that_two_may_have_written_says_so(work: Path) -> None:
    one, two, file = Player("codex", work), Player("codex", work), work / "notes.md"
    two.edits("other.md", "alpha", "x")
    one.check(
        "apply_patch", {"command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-gamma\n+BOTH\n*** End Patch"}
    )
    two.edits("notes.md", "gamma", "BOTH")  # while the other's write is still to come
    assert owners(file, one, two) == ["alpha=-", "beta=-", "BOTH=0|1"]


EDITS = {
    # the tool, its input for the content before, and the content that the client makes of it
    "Write": ("Write", {"content": "alpha\nMINE\ngamma\n"}, "alpha\nMINE\ngamma\n"),
    "Edit": ("Edit", {"old_string": "beta", "new_string": "MINE"}, "alpha\nMINE\ngamma\n"),
    "Edit, all": ("Edit", {"old_string": "a\n", "new_string": "A\n", "replace_all": True}, "alphA\nbetA\ngammA\n"),
    "Edit, a line removed": ("Edit", {"old_string": "beta", "new_string": ""}, "alpha\ngamma\n"),
    "MultiEdit": (
        "MultiEdit",
        {"edits": [{"old_string": "beta", "new_string": "b"}, {"old_string": "b\n", "new_string": "MINE\nMORE\n"}]},
        None,
    ),
    "Update": ("apply_patch", "*** Update File: notes.md\n@@\n alpha\n-beta\n+MINE\n", "alpha\nMINE\ngamma\n"),
    "Update, two hunks": (
        "apply_patch",
        "*** Update File: notes.md\n@@\n-alpha\n+ONE\n@@ beta\n-gamma\n+MINE\n*** End of File\n",
        "ONE\nbeta\nMINE\n",
    ),
    "Add": ("apply_patch", "*** Add File: notes.md\n+MINE\n+gamma\n", "MINE\ngamma\n"),
}


def tool_call(name: str, work: Path) -> tuple[str, str, dict[str, object]]:
    """Return the runtime, the tool and its input."""
    tool, given, _after = EDITS[name]
    if tool == "apply_patch":
        return "codex", tool, {"command": f"*** Begin Patch\n{given}*** End Patch\n"}
    return "claude-code", tool, {"file_path": str(work / "notes.md"), **given}


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("ends", ["lf", "crlf", "no end"])
@pytest.mark.parametrize("name", EDITS)
@pytest.mark.sampled
def test_a_person_s_edit_right_after_a_session_s_write_is_the_person_s(
    name: str, ends: str, beside: bool, work: Path
) -> None:
    file, peer = work / "notes.md", Player("codex", work)
    if beside:
        peer.edits("other.md", "alpha", "x")
    if ends == "crlf":
        file.write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")
        git(work, "commit", "-qam", "line ends")
    runtime, tool, given = tool_call(name, work)
    me = Player(runtime, work)
    verdict = me.check(tool, given)
    assert verdict is None or verdict.denial is None
    made = EDITS[name][2] or "alpha\nMINE\nMORE\ngamma\n"
    if ends == "crlf" and name != "Add":
        made = made.replace("\n", "\r\n")
    if ends == "no end":
        made = made[:-1]
    file.write_bytes(made.encode())
    person = "PERSON\r\n" if ends == "crlf" else "\nPERSON" if ends == "no end" else "PERSON\n"
    file.write_bytes(file.read_bytes() + person.encode())
    found = owners(file, me)
    assert found[-1] == "PERSON=?", found
    assert all(one.endswith(("=0", "=-")) for one in found[:-1]), found
    assert any(one.endswith("=0") for one in found[:-1]) or "removed" in name, found
    some_time_passes()
    me.runs("true")
    assert owners(file, me) == found, "the same after the session's next call"


@pytest.mark.parametrize("name", ["Write", "Edit", "Update"])
def test_a_call_that_was_never_made_has_no_lines(name: str, work: Path) -> None:
    runtime, tool, given = tool_call(name, work)
    me, file = Player(runtime, work), work / "notes.md"
    me.check(tool, given)
    file.write_text("alpha\nbeta\ngamma\nPERSON\n")
    assert owners(file, me) == ["alpha=-", "beta=-", "gamma=-", "PERSON=?"]


def test_a_call_of_which_nothing_is_left_may_have_removed_a_line(work: Path) -> None:
    runtime, tool, given = tool_call("Edit", work)
    me, file = Player(runtime, work), work / "notes.md"
    me.check(tool, given)
    file.write_text("alpha\nPERSON\ngamma\n")
    assert owners(file, me)[1] == "PERSON=?"
    (change,) = Fold(str(file)).changes()
    assert {one.session_id for one in change.removed[0].authors} == {me.session_id, ""}


@pytest.mark.parametrize("way", ["before", "between", "after"])
def test_edits_of_a_person_among_those_of_a_session(way: str, work: Path) -> None:
    me, file = Player("claude-code", work), work / "notes.md"
    for number, (old, new) in enumerate((("alpha", "ONE"), ("gamma", "TWO"))):
        if (way, number) in (("before", 0), ("between", 1)):
            file.write_text(file.read_text().replace("beta", "PERSON"))
        me.edits("notes.md", old, new)
    if way == "after":
        file.write_text(file.read_text().replace("beta", "PERSON"))
    assert owners(file, me) == ["ONE=0", "PERSON=?", "TWO=0"]


def test_a_whole_text_may_have_taken_over_a_person_s_line(work: Path) -> None:
    me, file = Player("claude-code", work), work / "notes.md"
    me.edits("notes.md", "alpha", "ONE")
    file.write_text(file.read_text() + "PERSON'S\n")
    me.writes("notes.md", file.read_text() + "TWO\n")
    assert "?" in owners(file, me)[3]


FORMATTED = {
    "another layout": ("call( one,two )", "call(one, two)", "LAID=0"),
    "another text": ("call(one)", "call(two)", "LAID=?"),
}


@pytest.mark.parametrize("name", FORMATTED)
def test_a_formatter_after_a_call_lays_out_the_call_s_own_lines(name: str, work: Path) -> None:
    me, file = Player("claude-code", work), work / "notes.md"
    before, after, expected = FORMATTED[name]
    me.edits("notes.md", "beta", before)
    file.write_text(file.read_text().replace(before, after))
    assert owners(file, me)[1] == expected.replace("LAID", after)


def test_a_patch_that_moves_and_changes_a_file_keeps_the_owners_of_its_lines(work: Path) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("notes.md", "alpha", "PEER")
    me.runs("cat notes.md")
    patch = "*** Begin Patch\n*** Update File: notes.md\n*** Move to: moved.md\n@@\n-gamma\n+MINE\n*** End Patch"
    assert me.told("apply_patch", {"command": patch}) == ""
    (work / "notes.md").unlink()
    (work / "moved.md").write_text("PEER\nbeta\nMINE\nPERSON\n")
    assert owners(work / "moved.md", me, peer) == ["PEER=1", "beta=0", "MINE=0", "PERSON=?"]


@pytest.mark.parametrize("is_made", [True, False])
def test_a_patch_that_deletes_a_file_has_removed_its_lines(is_made: bool, me: Player, file: Path) -> None:
    patch = "*** Begin Patch\n*** Delete File: notes.md\n*** End Patch\n"
    assert me.told("apply_patch", {"command": patch}) == ""
    file.unlink()
    if not is_made:  # the person's own, of the same name
        file.write_text("PERSON\n")
        assert owners(file, me) == ["PERSON=?"]
    (change,) = Fold(str(file)).changes()
    assert len(change.removed) == 3
    assert all(me.session_id in sessions(line) for line in change.removed)


COMMANDS = {
    "it appends": "echo MINE >> notes.md",
    "it appends elsewhere": "cd sub && echo MINE >> ../notes.md",
    "it edits in place": "sed -i '$a MINE' notes.md",
    "it cannot be read": "./gen.sh",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_a_session_alone_is_the_only_author_of_its_lines(name: str, work: Path) -> None:
    program_at(work / "gen.sh", "#!/bin/sh\necho MINE >> notes.md\n")
    me, file = Player("claude-code", work), work / "notes.md"
    if name == "it cannot be read":
        me.edits("notes.md", "beta", "BEFORE")
    saves(file, "PERSON\n" + file.read_text())
    ends(me, COMMANDS[name])
    me.runs("true")
    found = owners(file, me)
    assert found[-1] == "MINE=0", found
    assert found[0] == "PERSON=?"


BESIDE = {
    # when the peer's command runs, and the authors of the line
    "it runs": "MINE=0|1",
    "it has ended before": "MINE=0",
    "it begins afterwards": "MINE=0",
    "it only looks": "MINE=0",
}


@pytest.mark.parametrize("way", ["a command", "a tool without a known input"])
@pytest.mark.parametrize("when", BESIDE)
@pytest.mark.sampled
def test_beside_another_session_s_unread_command_either_may_have_written(
    when: str, way: str, work: Path, limits: Limits
) -> None:
    limits(seen, APART_NS=0)  # no call runs beside another one of its session
    limits(keeping, LONGEST_INPUT=0)
    me, peer, file = Player("claude-code", work), Player("claude-code", work), work / "notes.md"
    peer.edits("other.md", "alpha", "x")
    peer.runs("ls")
    command = "ls -l" if when == "it only looks" else "./gen.sh"
    if when == "it has ended before":
        ends(peer, command)
        peer.runs("ls")
        some_time_passes()
    elif when != "it begins afterwards":
        peer.check("Bash", {"command": command})
        some_time_passes()
    if way == "a command":
        me.runs("sed -i '$a MINE' notes.md")
    else:
        me.edits("notes.md", "gamma\n", "gamma\nMINE\n")
    if when == "it begins afterwards":
        some_time_passes()
        me.runs("cat notes.md")
        peer.check("Bash", {"command": command})
    assert "MINE\n" in file.read_text()
    assert owners(file, me, peer)[-1] == BESIDE[when]


def ends(me: Player, command: str) -> None:
    """Run a command, and let the hook after it note its end."""
    me.runs(command)
    notes_an_end()


@pytest.mark.parametrize("times", [1, 2])
def test_a_person_may_have_written_before_an_unread_command_in_files_that_the_session_never_wrote(
    times: int, work: Path
) -> None:
    program_at(work / "fmt.sh", "#!/bin/sh\nfor one in notes.md other.md; do echo END >> $one; done\n")
    me, file = Player("claude-code", work), work / "notes.md"
    file.write_text("PERSON\n" + file.read_text())
    for _time in range(times):
        ends(me, "./fmt.sh")
    assert "?" in owners(file, me)[0].partition("=")[2]


def test_a_person_may_have_written_before_an_unread_command_whose_state_was_pruned(work: Path) -> None:
    program_at(work / "gen.sh", "#!/bin/sh\necho MINE >> notes.md\n")
    me, file = Player("claude-code", work), work / "notes.md"
    me.edits("notes.md", "beta", "BEFORE")
    saves(file, "PERSON\n" + file.read_text())
    ends(me, "./gen.sh")
    me.runs("true")
    place = traces.place_of(str(work))
    kept = [one for one in versions_of(place, str(file)) if one.at_ns > versions_of(place, str(file))[0].at_ns]
    assert kept
    for one in kept:
        os.remove(one.path)
    assert owners(file, me)[0] == "PERSON=0|?"


def test_agents_of_one_session_are_told_apart(me: Player, file: Path) -> None:
    for number, agent in enumerate(("a", "b")):
        text = file.read_text()
        patch = f"*** Begin Patch\n*** Update File: notes.md\n@@\n+{number}\n*** End of File\n*** End Patch"
        me.check("apply_patch", {"command": patch}, agent)
        file.write_text(f"{text}{number}\n")
    assert [[one.agent for one in line.authors] for line in lines_of(str(file))][3:] == [["a"], ["b"]]


def test_what_a_session_removed_and_replaced(work: Path) -> None:
    me, peer, file = Player("codex", work), Player("codex", work), work / "notes.md"
    peer.edits("notes.md", "alpha\n", "")
    me.edits("notes.md", "gamma", "DELTA")
    one, two = Fold(str(file)).changes()
    assert [line.text for line in one.removed] == [b"alpha\n"] and sessions(one) == {peer.session_id}
    assert [line.text for line in (*two.removed, *two.added)] == [b"gamma\n", b"DELTA\n"]
    assert (one.old, one.new, two.old, two.new) == (0, 0, 2, 1)
    assert sessions(two) == {me.session_id}


def test_what_is_committed_has_no_owner_even_in_part(work: Path, me: Player, file: Path) -> None:
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
    (change,) = Fold(str(file)).changes()
    assert [line.text for line in change.removed] == [b"two\n"] and me.session_id in sessions(change.removed[0])


def test_a_moved_file_keeps_the_owners_of_its_lines(work: Path, me: Player, peer: Player) -> None:
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
@pytest.mark.sampled
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


@pytest.mark.parametrize("is_known", [True, False])
def test_a_late_write_is_the_session_s_if_its_input_is_known(is_known: bool, work: Path, limits: Limits) -> None:
    if not is_known:
        limits(keeping, LONGEST_INPUT=0)
    me, file = Player("codex", work), work / "notes.md"
    me.edits("notes.md", "alpha", "ONE")
    assert owners(file, me)[0] == "ONE=0"
    limits(notes, OWN_NS=-(10**9))  # the write seems to be late
    assert owners(file, me)[0] == ("ONE=0" if is_known else "ONE=0|?")


@pytest.mark.parametrize("is_another", [True, False])
def test_a_command_that_redirects_hides_no_change_before_it(is_another: bool, work: Path, limits: Limits) -> None:
    limits(seen, APART_NS=0)  # the second call is no parallel one
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
    assert (found[0], found[3]) == ("ONE=0", f"LAST={int(is_another)}")
    assert "?" in found[1] and "1" not in found[1], "`true` may have done it, too: its end is not known"


def test_without_a_noted_end_a_command_is_over_soon(work: Path, limits: Limits) -> None:
    me, file = Player("copilot", work), work / "notes.md"
    me.runs("sed -i s/alpha/ONE/ notes.md")
    assert owners(file, me)[0] == "ONE=0"
    limits(notes, OWN_NS=-(10**9))  # the change seems to be late
    assert owners(file, me)[0] == "ONE=0|?"


@pytest.mark.parametrize("is_noted", [True, False])
def test_after_a_noted_end_a_command_has_no_time_of_grace(is_noted: bool, limits, me: Player, file: Path) -> None:
    limits(notes, OWN_NS=1 << 60)
    me.runs("echo MINE >> notes.md")
    if is_noted:
        notes_an_end()
        some_time_passes()
    file.write_text(file.read_text() + "LATER\n")
    me.runs("true")
    assert owners(file, me)[-1] == ("LATER=0|?" if is_noted else "LATER=0")


@pytest.mark.parametrize("way", ["the turn has ended", "interrupted", "interrupted, later"])
def test_a_file_has_changed_since_a_turn_whose_calls_can_have_written_it_no_more(way: str, work: Path, limits) -> None:
    limits(rewinds, OWN_NS=1 << 60 if way == "interrupted" else 0)
    me = Player("codex", work)
    me.edits("notes.md", "alpha", "MINE")
    if way == "the turn has ended":
        limits(rewinds, OWN_NS=1 << 60)
        me.turn_ends()
    some_time_passes()
    (work / "notes.md").write_text("LATER\n")
    data = journal.read(os.path.join(traces.place_of(str(work)), traces.journal_name("codex", me.session_id)))
    changed = rewinds.changed_since_turn(data, str(work))
    assert changed == ([] if way == "interrupted" else [str(work / "notes.md")])
    assert rewinds.changed_since_turn(b"", str(work)) == []


def test_the_time_of_a_journal_is_that_of_its_newer_part(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert journal.changed_at(str(path)) == 0
    for name, at in (("journal.1", 1000), ("journal", 500)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
        assert journal.changed_at(str(path)) == 1000
    os.utime(path, (2000, 2000))
    assert journal.changed_at(str(path)) == 2000
    assert journal.changed_at(str(path / "below a file")) == float("inf"), "it cannot be told, so it may be now"
