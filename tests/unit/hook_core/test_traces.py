"""Files that sessions write without locks: traces of others that a call meets, and the decision about it."""

import json
import os
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.altered import Clocks, Limits, Listening
from support.files import folder_at, text_at
from support.requirement import requirement
from support.sessions import argv, join, ready_store
from support.traced import Player, git
from support.transcripts import Blocks

from swarm_hook_core import clock, paths, session_events, shell, traces
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.state import lock_alone, rotate
from swarm_hook_core.traces import endings, journal, meetings, others, turn_files, unread
from swarm_mcp.store import Store

PAIRS = [(one, other) for one in ("claude-code", "codex") for other in ("claude-code", "codex")]


pytestmark = pytest.mark.usefixtures("no_faults")

OVERWRITES = {
    "here-document": "cat > notes.md <<'EOF'\nalpha\nbeta\ndelta\nEOF",
    "copy": "cp other.md notes.md",
    "move over": "mv other.md notes.md",
    "remove": "rm notes.md",
    "tee": "printf 'x' | tee notes.md",
    "move away": "mv notes.md elsewhere.md",
    "folder": "rm -rf ../work/*.md",
}


# Each command between two clients, and one between all.
@pytest.mark.parametrize(
    ("way", "clients"),
    [*zip(OVERWRITES, PAIRS * 2), *(("here-document", pair) for pair in PAIRS[1:])],
)
@pytest.mark.sampled
def test_what_would_be_overwritten_is_denied_until_the_session_has_looked(
    way: str, clients: tuple[str, str], work: Path
) -> None:
    me, peer = (Player(client, work) for client in clients)
    command = OVERWRITES[way]
    assert me.runs("cat notes.md") == ""
    assert peer.edits("notes.md", "beta", "PEER") == ""
    said = me.runs(command)
    assert said.startswith("denied: ") and "`cat notes.md`" in said and "after you last saw it" in said
    assert me.runs(command).startswith("denied: "), "the same once more, and it has not looked"
    assert me.runs("rm -f notes.md").startswith("denied: "), "nor does another way help"
    assert "PEER" in (work / "notes.md").read_text()
    assert me.runs("cat notes.md") == ""
    assert me.runs(command) == "", "it has read the file since"


@pytest.mark.parametrize("level", ["off", "notice"])
def test_below_keep_nothing_is_denied(level: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", level)
    me, peer = Player("codex", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "beta", "PEER")
    said = me.runs(OVERWRITES["here-document"])
    assert not said.startswith("denied") and ("was changed by" in said) is (level == "notice")
    assert "delta" in (work / "notes.md").read_text()


def test_an_edit_goes_ahead_and_its_model_is_told_once(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    peer.edits("notes.md", "beta", "PEER")
    said = me.edits("notes.md", "gamma", "delta")
    assert said.count("\n") == 0 and "was changed by" in said and "read it again" in said
    assert me.edits("notes.md", "delta", "epsilon") == ""
    peer.edits("notes.md", "PEER", "AGAIN")
    assert "was changed by" in me.edits("notes.md", "epsilon", "zeta")


def test_of_many_files_those_are_found_that_a_journal_has(work: Path, limits: Limits) -> None:
    limits(others, FEW_FILES=1)
    me, peer = Player("codex", work), Player("claude-code", work)
    me.runs("cat notes.md other.md sub/deep.md")
    peer.edits("sub/deep.md", "beta", "PEER")
    said = me.runs("rm -f new.md notes.md other.md sub/deep.md")
    assert said.startswith("denied: ") and "sub/deep.md" in said


@requirement("P-13")
def test_a_session_alone_is_told_nothing_and_leaves_its_traces(work: Path, me: Player) -> None:
    for _ in range(3):
        assert (
            me.writes("notes.md", "one\n") == me.runs("echo two > other.md") == me.edits("notes.md", "one", "1") == ""
        )
        (work / "notes.md").write_text("one\n")
    (place,) = Path(traces.traces_dir()).iterdir()
    (file,) = place.iterdir()
    data = journal.read(str(file))
    assert journal.owner_of(data) == ("codex", me.session_id)
    assert journal.newest(data, str(work / "notes.md"), ("wrote",)).tool == "apply_patch"
    assert file.stat().st_mode & 0o777 == 0o600 and place.stat().st_mode & 0o777 == 0o700


def test_a_patch_in_a_command_is_noted_once_in_each_of_its_files(work: Path) -> None:
    me, both = (
        Player("claude-code", work),
        "*** Update File: other.md\n@@\n-a\n+b\n*** Update File: notes.md\n@@\n-a\n+b\n",
    )
    with Store(str(ready_store())) as store:
        store.locks.acquire(join(store, work), "sub/deep.md")  # so that commands beside it are read
    me.told("Bash", {"command": f"apply_patch <<'EOF'\n*** Begin Patch\n{both}*** End Patch\nEOF\n"})
    (file,) = Path(traces.traces_dir()).glob("*/claude-code.*")
    noted = [entry.key for entry in journal.entries(file.read_bytes().split(b"\n")) if entry.kind == "wrote"]
    assert sorted(noted) == [str(work / "notes.md"), str(work / "other.md")]


def test_what_a_session_wrote_while_it_was_alone_is_found_in_its_commands(work: Path, peer: Player) -> None:
    peer.runs("sed -i s/beta/PEER/ notes.md")
    me = Player("codex", work)
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    assert me.runs("echo fresh > other.md") == ""


ALONE = {
    "and then looked at": ["sed -i s/beta/PEER/ notes.md", *["cat notes.md", "grep -c a notes.md"] * 5],
    "and then run": ["sed -i s/beta/PEER/ notes.md", *[f"python3 notes.md {n} 2> log" for n in range(5)]],
    "by a pattern": ["sed -i s/beta/PEER/ *.md"],
    "by a loop": ["for n in notes other; do echo PEER > $n.md; done"],
    "by a search": ["grep -rl beta . | xargs sed -i 's/alpha/PEER alpha/'"],
    "by a copy of folders": ["mkdir new; echo PEER > new/notes.md", "cp -r new/. ."],
    "by git mv": [
        "sed -i s/beta/PEER/ other.md; git rm -q --cached notes.md; rm notes.md",
        "git mv -f other.md notes.md",
    ],
    "in a long text": ["cat > long <<'EOF'\n" + "x" * 20_000 + "\nEOF\necho PEER > notes.md"],
}


@pytest.mark.parametrize("commands", ALONE.values(), ids=ALONE)
@pytest.mark.sampled
def test_what_was_written_by_a_session_alone_is_found_however_it_wrote(commands, work: Path, peer: Player) -> None:
    for command in commands:
        assert peer.runs(command) == ""
    assert "PEER" in (work / "notes.md").read_text()
    me = Player("codex", work)
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    assert me.runs("echo x > log.txt") == ""


def test_what_git_has_moved_is_met_where_it_is_now(me: Player, peer: Player) -> None:
    me.runs("echo x > sub/deep.md")
    peer.edits("notes.md", "beta", "PEER")
    assert peer.runs("git mv notes.md moved.md; git mv other.md sub") == ""
    assert me.runs("git checkout moved.md").startswith("denied: ")
    assert me.runs("echo x > moved.md").startswith("denied: ")


def test_what_a_copy_of_folders_wrote_beside_others_is_theirs_no_less(me: Player, peer: Player) -> None:
    me.runs("true")
    me.edits("other.md", "beta", "x")
    peer.runs("mkdir new; echo PEER > new/notes.md")
    assert "denied" not in peer.runs("cp -r new/notes.md new/more.md; cp -r new/. .")
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")


@pytest.mark.parametrize("undo", ["commit", "checkout", "by hand"])
def test_what_is_committed_or_undone_is_nobodys_any_more(undo: str, work: Path, me: Player, peer: Player) -> None:
    before = (work / "notes.md").read_text()
    peer.edits("notes.md", "beta", "PEER")
    if undo == "commit":
        git(work, "commit", "-qam", "theirs")
    elif undo == "checkout":
        git(work, "checkout", "--", "notes.md")
    else:
        (work / "notes.md").write_text(before)
    assert me.runs(OVERWRITES["here-document"]) == ""


def test_commands_of_others_are_read_in_the_time_that_the_check_has_left() -> None:
    reading = unread.Reading(clock.Budget(seconds=1e-9), os.path.realpath)
    command, another = (journal.Entry(b"1 ran - Bash\0/work\0echo two > other.md" + more) for more in (b"", b" "))
    assert reading.written_by(command)[0] == [("/work", "other.md")]
    end = time.thread_time() + clock.LEAST_SECONDS
    while time.thread_time() < end:
        pass
    assert reading.written_by(another)[0] == [], "there is no time left"
    assert reading.written_by(command)[0] == [("/work", "other.md")], "what has been read is known"
    assert unread.Reading(clock.Budget(), os.path.realpath).written_by(command)[0] != []


def test_a_session_that_has_gone_keeps_nobody(work: Path, me: Player) -> None:
    gone = Player("codex", work, client=(2**22 + 1, "0"))
    gone.edits("notes.md", "beta", "PEER")
    assert "a person's work" in me.runs(OVERWRITES["here-document"]), "the work itself stays protected"
    me.runs("cat notes.md")
    assert me.runs(OVERWRITES["here-document"]) == ""


def test_a_write_that_was_let_pass_just_now_counts_before_it_is_made(work: Path) -> None:
    """Its client is about to write: a change made meanwhile would be lost, or destroy that write."""
    me, peer = Player("codex", work), Player("claude-code", work)
    me.runs("cat notes.md")
    assert peer.told("Edit", {"file_path": str(work / "notes.md"), "old_string": "a", "new_string": "b"}) == ""
    assert me.runs(OVERWRITES["copy"]).startswith("denied: ")
    assert me.runs("cat notes.md") == "" and me.runs(OVERWRITES["copy"]).startswith("denied: "), "it is still to come"
    _turns(peer)
    assert me.runs(OVERWRITES["copy"]) == "", "it will not be made"


def test_a_command_that_nobody_had_read_is_read_once_for_all_files_of_a_call(work: Path, listening: Listening) -> None:
    peer = Player("codex", work)
    commands = [
        "echo PEER >> notes.md; echo PEER >> other.md",
        "printf x >> sub/deep.md; echo two >> notes.md",
    ]
    for command in commands:
        assert peer.runs(command) == ""
    read = listening(shell, "effects_of")
    hunks = "".join(f"*** Add File: {name}\n+x\n" for name in ("notes.md", "other.md", "sub/deep.md", "new.md"))
    for _ in range(2):
        me = Player("codex", work)
        assert "notes.md" in me.denied("apply_patch", {"command": f"*** Begin Patch\n{hunks}*** End Patch\n"})
        counts = Counter(call.given[0] for call in read)
        assert counts == dict.fromkeys(commands, 2), "once for the files, once for their lines"
        read.clear()


@pytest.fixture
def later(clocks: Clocks) -> Callable[[float], None]:
    """Have so many seconds pass, by the clock of the hooks."""
    passed: list[float] = []

    def pass_seconds(seconds: float) -> None:
        passed.append(seconds)
        clocks.ahead(wall=sum(passed))

    return pass_seconds


def _turns(player: Player, name: str = "Stop", agent: str = "") -> None:
    """A turn of the player's session, or of its subagent, begins or ends."""
    event = SessionEvent(player.session_id, str(player.folder), name, agent=agent)
    session_events._calls_are_over(player.core, event)


def _is_told_the_end(player: Player, tool: str, given: object) -> None:
    player.core.words_after(ToolCall(tool, given, player.session_id, str(player.folder), "PostToolUse"))


COPY = ("Bash", {"command": "cp missing notes.md"})
ENDS = {
    "next call": lambda peer: peer.runs("true"),
    "next write": lambda peer: peer.writes("new.md", "x\n"),
    "turn": _turns,
    "interrupted, then prompted": lambda peer: _turns(peer, "UserPromptSubmit"),
    "call": lambda peer: _is_told_the_end(peer, *COPY),
}


@pytest.mark.parametrize("is_alone", [False, True], ids=["beside", "alone"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.sampled
def test_a_write_that_was_let_pass_and_not_made_is_met_until_its_end_is_told(end, is_alone, work: Path, later) -> None:
    """It may have failed, or been refused by a person. A look meanwhile shows the old text, and changes nothing."""
    later(1)  # a file that is made in the same tick of the clock as the call could be the call's own
    peer = Player("claude-code", work)
    if not is_alone:
        Player("codex", work).runs("true")
    assert peer.told(*COPY) == ""
    me = Player("codex", work)
    for _ in range(2):
        assert me.runs("cat notes.md") == ""
        assert "very moment" in me.runs("echo mine > notes.md")
    later(20)
    assert "very moment" in me.runs("echo mine > notes.md")
    end(peer)
    assert me.runs("echo mine > notes.md") == "", "it is over, and nothing has come of it"


def test_it_is_met_for_two_minutes_where_nothing_tells_its_end(later, me: Player, peer: Player) -> None:
    me.runs("true")
    assert peer.told(*COPY) == ""
    later(others.OVERDUE_SECONDS - 10)
    assert "very moment" in me.denied("Bash", {"command": "echo mine > notes.md"})
    later(20)
    assert me.denied("Bash", {"command": "echo mine > notes.md"}) == ""


def test_calls_that_are_made_side_by_side_say_nothing_of_each_other_s_end(me: Player, peer: Player) -> None:
    me.runs("true")
    assert peer.told(*COPY) == "" == peer.told("Bash", {"command": "echo x > other.md"})
    assert "very moment" in me.runs("echo mine > notes.md")


def test_what_lands_late_is_not_lost_to_one_who_has_read_meanwhile(work: Path, me: Player, peer: Player) -> None:
    """A build comes before the copy, say, or a person is asked."""
    me.runs("cat notes.md")
    assert peer.told("Bash", {"command": "sleep 2; cp other.md notes.md"}) == ""
    assert me.runs("cat notes.md") == "" and me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    (work / "notes.md").write_text("PEER\n")
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: "), "what has come of it was not seen"
    assert me.runs("cat notes.md") == "" == me.runs(OVERWRITES["here-document"])


def test_which_of_two_that_began_at_once_has_landed_nobody_knows(work: Path, later, me: Player, peer: Player) -> None:
    """An edit passes beside a write that is to come: that the file has changed then may be the edit alone."""
    me.runs("true")
    assert peer.told("Bash", {"command": "sleep 3; cp other.md notes.md"}) == ""
    with pytest.MonkeyPatch.context() as patch:
        Limits(patch)(meetings, WAIT_SECONDS=0)
        assert "very moment" in me.edits("notes.md", "beta", "mine")
    assert me.runs("cat notes.md") == "" and "very moment" in me.runs("rm notes.md")
    (work / "notes.md").write_text("PEER\n")
    later(2)
    peer.runs("true")
    assert "very moment" not in (said := me.runs("rm notes.md")) and said.startswith("denied: ")


def test_an_agent_s_end_says_nothing_of_the_others(work: Path, later: Callable[[float], None]) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    me.runs("true")
    assert peer.denied(*COPY, agent="one") == ""
    later(2)
    _turns(peer)
    peer.runs("true")
    assert "very moment" in me.runs("echo mine > notes.md")
    _turns(peer, "SubagentStop", "one")
    assert me.runs("echo mine > notes.md") == ""


LOOKS = {
    "cat notes.md": True, "git diff notes.md": True, "git diff HEAD -- notes.md": True, "sed -n 1,200p notes.md": True,
    "head -n 50 notes.md": True, "cat notes.md | head -n 30": True, "sed -n 1,2p notes.md; sed -n '3,$p' notes.md": True,
    "head -n 1 notes.md; tail -n 2 notes.md": True, "git blame notes.md": True, "cat ./sub/../notes.md": True,
    "grep nothing notes.md": False, "grep PEER notes.md": False, "tail -n 1 notes.md": False, "head -n 0 notes.md": False,
    "sed -n 5000,6000p notes.md": False, "cat notes.md | head -c 0": False, "diff notes.md notes.md": False,
    "cat notes.md > /dev/null": False, "wc notes.md": False, "git diff --stat notes.md": False, "git log -p notes.md": False,
    "git show :notes.md": False, "sed -n 1,1p notes.md; sed -n 3,3p notes.md": False, "cat other.md": False,
    "git diff HEAD~1 -- notes.md": False, "head -n 2 notes.md; git status": False,
}  # fmt: skip


@pytest.mark.parametrize(("look", "counts"), LOOKS.items(), ids=LOOKS)
@pytest.mark.sampled
def test_a_look_is_the_whole_file_or_all_that_has_changed(look: str, counts: bool, me: Player, peer: Player) -> None:
    assert me.runs("cat notes.md") == ""
    assert peer.edits("notes.md", "beta", "PEER") == ""
    assert me.runs(look) == ""
    assert me.runs("echo x > notes.md").startswith("denied: ") is not counts


def test_a_difference_that_leaves_something_out_is_no_look(work: Path, me: Player, peer: Player) -> None:
    me.runs("cat notes.md")
    peer.edits("notes.md", "beta", "PEER")
    git(work, "add", "notes.md")
    peer.runs("echo new > added.md")
    assert me.runs("git diff notes.md added.md") == "", "what is staged, or not in git, is not in it"
    assert me.runs("echo x > notes.md").startswith("denied: ") and me.runs("echo x > added.md").startswith("denied: ")
    assert me.runs("git diff HEAD notes.md; cat added.md") == ""
    assert me.runs("echo x > notes.md") == "" == me.runs("echo x > added.md")


def test_a_link_is_looked_at_through_itself(me: Player, peer: Player) -> None:
    me.runs("true")
    assert peer.runs("ln -s notes.md link") == ""
    assert me.runs("rm link").startswith("denied: ")
    assert me.runs("cat link") == "" == me.runs("rm link")


def test_a_text_that_keeps_the_other_s_lines_is_let_pass_without_a_look(
    work: Path, me: Player, peer: Player, limits: Limits
) -> None:
    """Its session may have read the file with a tool of its client's that no hook tells of."""
    limits(meetings, WAIT_SECONDS=0)  # for the ends of commands
    me.runs("true")
    peer.edits("notes.md", "beta", "PEER")
    assert me.writes("notes.md", "alpha\nmine\n").startswith("denied: ")
    assert me.writes("notes.md", "alpha\nbeta\nPEER\n").startswith("denied: "), "it took that out"
    assert me.writes("notes.md", "mine\nPEER\n") == ""
    peer.edits("notes.md", "PEER", "PEER AGAIN")
    assert me.runs("printf 'PEER AGAIN %s' x > notes.md").startswith("denied: ")
    assert me.runs("cat > notes.md <<'EOF'\nhers and\nPEER AGAIN\nmine\nEOF") == ""
    for verb in ("cp", "mv"):
        peer.edits("notes.md", "PEER AGAIN", f"PEER AGAIN {verb}")
        draft = "printf '%s\\n' {} > draft.md && {} draft.md notes.md"
        assert me.runs(draft.format("mine PEER", verb)).startswith("denied: ")
        assert me.runs(draft.format(f"'hers and' mine 'PEER AGAIN {verb}'", verb)) == ""
        (work / "draft.md").unlink(missing_ok=True)
        peer.edits("notes.md", f"PEER AGAIN {verb}", "PEER AGAIN")
    peer.runs("printf 'one\\ntwo\\n' > untracked.md")
    assert me.writes("untracked.md", "one\n").startswith("denied: ")
    assert me.writes("untracked.md", "one\ntwo\nthree\n") == ""


def test_who_is_denied_again_and_again_hears_it_in_fewer_words_and_others_hear_of_it(me: Player, peer: Player) -> None:
    me.runs("true")
    peer.edits("notes.md", "beta", "PEER")
    call = ("Bash", {"command": "echo x > notes.md"})
    verdicts = [me.check(*call) for _ in range(11)]
    reasons = [verdict.denial.reason for verdict in verdicts]
    assert "times" not in reasons[1] and all(len(one) < 0.7 * len(reasons[0]) for one in reasons[2:])
    assert "denied 3 times" in reasons[2] and all("`cat notes.md`" in one for one in reasons)
    assert "Stop" in reasons[9] and "Stop" not in reasons[8]
    told = [(place + 1, one[4], one[0].held.instance_id) for place, one in _owners(verdicts)]
    assert told == [(3, 3, peer.row["id"]), (10, 10, peer.row["id"])]
    assert me.runs("cat notes.md") == ""
    peer.edits("notes.md", "PEER", "AGAIN")
    assert "times" not in me.denied(*call), "it is counted anew"


def _owners(verdicts) -> list:
    return [(place, one) for place, verdict in enumerate(verdicts) for one in verdict.owners]


@pytest.mark.parametrize("level", ["notice", "keep"])
def test_the_owner_hears_once_that_its_text_is_overwritten_and_kept(level: str, work: Path, monkeypatch) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    me.runs("true")
    peer.edits("notes.md", "beta", "PEER")
    peer.edits("other.md", "beta", "PEER")
    monkeypatch.setenv("SWARM_AUTO", level)
    assert me.runs("cat notes.md; cat other.md") == ""
    verdict = me.check("Bash", {"command": "cp sub/deep.md notes.md"})
    ((trace, how, by, kept, times),) = verdict.owners
    assert (trace.path, how, by, times) == (str(work / "notes.md"), "replace", "cp sub/deep.md notes.md", 0)
    assert trace.held.instance_id == peer.row["id"] and "PEER" in Path(kept).read_text()
    me.runs("cp sub/deep.md notes.md")
    assert me.check("Bash", {"command": "rm notes.md"}).owners == [], "that is its own by now"
    assert me.check(*patch_that_adds("other.md", "alpha\nPEER\n")).owners == [], "it keeps the other's lines"
    git(work, "commit", "-qam", "a person's")
    assert me.check("Bash", {"command": "rm other.md"}).owners == [], "nothing is lost that is committed"


def patch_that_adds(name: str, text: str) -> tuple[str, dict[str, str]]:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    return "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {name}\n{lines}*** End Patch\n"}


def test_a_write_that_was_let_pass_and_never_made_is_no_change(work: Path, later, me: Player, peer: Player) -> None:
    git(work, "config", "core.fileMode", "false")
    (work / "notes.md").write_text("not committed, by a person\n")
    old = time.time() - 100
    os.utime(work / "notes.md", (old, old))
    time.sleep(0.05)  # the clock of file times must have moved on
    for player in (me, peer):
        assert player.runs("cat notes.md") == ""  # they may replace the person's work
    assert peer.told("apply_patch", {"command": "*** Begin Patch\n*** Add File: notes.md\n+x\n*** End Patch\n"}) == ""
    later(2)
    peer.runs("true")
    assert me.runs(OVERWRITES["here-document"]) == ""


def test_a_change_that_came_after_a_look_counts_although_it_was_allowed_before(work: Path) -> None:
    """A person may have been asked in between."""
    me, peer = Player("codex", work), Player("codex", work)
    me.runs("true")
    peer.told("apply_patch", {"command": "*** Begin Patch\n*** Add File: notes.md\n+PEER\n*** End Patch\n"})
    me.runs("cat notes.md")
    time.sleep(0.05)
    (work / "notes.md").write_text("PEER\n")
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")


@pytest.mark.parametrize("hours", [-1, 1], ids=["lead", "lag"])
def test_the_clock_of_a_file_system_need_not_go_as_ours(hours: int, work: Path, clocks: Clocks) -> None:
    clocks.ahead(wall=hours * 3600)
    me, peer = Player("codex", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.writes("notes.md", "PEER\n")
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    me.runs("cat notes.md")
    assert me.runs(OVERWRITES["here-document"]) == ""


@pytest.mark.parametrize("fails", ["mv nothing notes.md", "git apply < /dev/null; false && true > notes.md"])
def test_a_write_that_failed_hides_none_before_it(fails: str, me: Player, peer: Player) -> None:
    me.runs("true")
    peer.edits("notes.md", "beta", "PEER")
    time.sleep(0.05)
    peer.runs(fails)
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    assert me.runs("git reset --hard").startswith("denied: ")


def test_who_was_refused_its_own_write_has_seen_nothing_by_it(work: Path, tmp_path: Path) -> None:
    """A person may say no to a call that the check has let pass."""
    me, peer = Player("claude-code", work), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    transcript = Blocks(tmp_path / "transcripts")
    transcript.reads(work / "notes.md")
    me.transcript = str(transcript.path)
    edit = {"file_path": str(work / "notes.md"), "old_string": "gamma", "new_string": "x"}
    assert me.told("Edit", edit) == ""
    transcript.path.unlink()
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")


def test_what_one_has_written_among_found_files_is_no_surprise(me: Player, peer: Player) -> None:
    peer.edits("sub/deep.md", "beta", "PEER")
    assert "was changed by" in me.runs("grep -rl gamma sub | xargs sed -i s/gamma/delta/")
    time.sleep(0.05)
    assert me.runs("echo x > sub/deep.md") == ""


def test_all_files_that_would_be_lost_are_named(me: Player, peer: Player) -> None:
    for name in ("notes.md", "other.md", "sub/deep.md"):
        peer.edits(name, "beta", "PEER")
    said = me.runs("rm -f notes.md other.md; rm -rf sub")
    assert said.startswith("denied: ") and all(name in said for name in ("notes.md", "other.md", "sub/deep.md"))
    for number in range(6):
        peer.writes(f"new-{number}.md", "x\n")
    said = me.runs("rm -f new-*.md")
    assert said.startswith("denied: ") and "and 1 more." in said


def test_ones_own_write_is_no_surprise(work: Path, me: Player, peer: Player) -> None:
    peer.edits("notes.md", "beta", "PEER")
    assert "was changed by" in me.edits("notes.md", "gamma", "delta")
    time.sleep(0.05)
    os.utime(work / "notes.md")
    assert me.runs("true") == ""
    time.sleep(0.05)
    assert me.runs(OVERWRITES["here-document"]) == ""


def test_the_content_that_a_told_session_overwrites_is_kept(work: Path) -> None:
    from swarm_hook_core.traces.versions.stored import contents_of

    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    text = (work / "notes.md").read_bytes()
    assert me.runs(OVERWRITES["here-document"]).startswith("denied: ")
    assert me.runs("cat notes.md") == "" == me.runs(OVERWRITES["here-document"])
    copies = [one for one in contents_of(str(work / "notes.md")) if one.content() == text]
    assert [one.is_lost for one in copies if one.is_lost] == [True] and len(copies) == 2
    assert len({os.stat(one.path).st_ino for one in copies}) == 1, "kept once: for `restore`, and as a version"


@pytest.mark.parametrize("target", ["notes.md", "./notes.md", "link/notes.md"])
def test_a_patch_that_moves_a_file_onto_itself_removes_it(target: str, work: Path) -> None:
    (work / "link").symlink_to(".")
    me, peer = Player("codex", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "beta", "PEER")
    patch = f"*** Begin Patch\n*** Update File: notes.md\n*** Move to: {target}\n@@\n-alpha\n+x\n*** End Patch"
    denial = me.denied("apply_patch", {"command": patch})
    assert "notes.md" in denial and "after you last saw it" in denial


def test_where_nothing_can_be_noted_no_call_is_denied_for_ever(work: Path, me: Player, peer: Player) -> None:
    """A look could not be noted either. No file may grow here, for any user, as on a full disk."""
    me.runs("cat notes.md")
    peer.edits("notes.md", "beta", "PEER")
    payload = {"session_id": me.session_id, "cwd": str(work), "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    payload["tool_input"] = {"command": "echo x > notes.md"}  # type: ignore[assignment]
    hook = shlex.join(argv("codex", "pre_tool_use"))

    def asked(before: str = "", **env: str) -> dict[str, str]:
        done = subprocess.run(
            ["bash", "-c", f"{before} exec {hook}"], input=json.dumps(payload).encode(), capture_output=True, check=True,
            env={**os.environ, **env},
        )  # fmt: skip
        return dict(json.loads(done.stdout)["hookSpecificOutput"]) if done.stdout else {}

    for _ in range(2):
        said = asked("ulimit -f 0;")
        assert "permissionDecision" not in said and "was changed by" in said["additionalContext"], said
        assert "File too large" in said["additionalContext"] and "swarm-mcp doctor" in said["additionalContext"]
    assert asked("ulimit -f 0;", SWARM_FAIL="closed")["permissionDecision"] == "deny"
    assert asked()["permissionDecision"] == "deny", "once it can be noted"


def test_the_end_of_a_turn_is_noted_whole_by_a_disk_that_takes_a_part_at_a_time(work: Path, monkeypatch) -> None:
    me, write = Player("codex", work), os.write
    me.edits("notes.md", "beta", "MINE")
    with monkeypatch.context() as there:
        there.setattr(os, "write", lambda handle, data: write(handle, bytes(data)[:9]))
        endings.turn_is_over(me.core, SessionEvent(me.session_id, str(work), "Stop"))
    (found,) = Path(traces.traces_dir()).rglob(f"codex.{me.session_id}")
    assert found.read_bytes().endswith(f" over - -\0{work}\n".encode())


def test_a_folder_that_is_mounted_twice_is_one(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link stands for the second mount: it has the same device and inode, and its path is not resolved here."""
    (tmp_path / "again").symlink_to(work)
    resolve = os.path.realpath
    again = str(tmp_path.resolve() / "again")
    me, peer = Player("codex", work), Player("codex", Path(again))

    def mounted(path: str, **given: bool) -> str:
        return path if (str(path) + "/").startswith(again + "/") else resolve(path, **given)

    with monkeypatch.context() as there:
        there.setattr(os.path, "realpath", mounted)
        there.setattr(paths, "_resolved", mounted)
        assert peer.edits("notes.md", "beta", "PEER") == ""
        assert peer.runs("mkdir -p new; echo x > new/made.md") == ""
    said = me.runs("cp other.md notes.md")
    assert said.startswith("denied: ") and f"{work}/notes.md" in said
    for command in ("git stash", "git checkout .", "rm -r new", "git clean -fd"):
        assert me.runs(command).startswith("denied: "), command
    assert me.runs("cat notes.md") == "" and me.runs("cp other.md notes.md") == ""
    with Store() as store, monkeypatch.context() as there:
        there.setattr(paths, "_resolved", mounted)
        there.setattr(os.path, "realpath", mounted)
        store.locks.acquire(peer.row, f"{again}/other.md")
        store.locks.acquire(peer.row, f"{again}/folder/")
    for command in ("echo x >> other.md", "git checkout HEAD -- other.md", "rm -r ../work", "mkdir -p folder/new"):
        said = me.denied("Bash", {"command": command})
        assert "swarm lock blocked" in said, command
    assert peer.row["root"] == again


def test_a_file_that_no_repository_has_is_kept_as_well(tmp_path: Path) -> None:
    ready_store()
    folder = folder_at(tmp_path / "plain")
    (folder / "notes.md").write_text("alpha\nbeta\n")
    me, peer = Player("codex", folder), Player("claude-code", folder)
    peer.edits("notes.md", "beta", "PEER")
    assert me.runs("echo x > notes.md").startswith("denied: ")


def test_an_ignored_file_is_kept_as_well(work: Path) -> None:
    (work / ".gitignore").write_text("secret.env\n")
    (work / "secret.env").write_text("A=1\n")
    git(work, "add", ".gitignore")
    git(work, "commit", "-qm", "ignore")
    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("secret.env", "A=1", "A=2")
    assert me.runs("echo B=1 > secret.env").startswith("denied: ")


def test_a_session_of_another_identity_stays_unnamed(work: Path, me: Player) -> None:
    peer = Player("codex", work, "identity:q codex secret-words")
    peer.edits("notes.md", "beta", "PEER")
    said = me.runs(OVERWRITES["copy"])
    assert said.startswith("denied: ") and "a session of another identity" in said and "secret-words" not in said


def test_work_trees_do_not_meet_in_their_files(work: Path, tmp_path: Path) -> None:
    git(work, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    me, peer = Player("codex", tmp_path.resolve() / "tree"), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    assert me.runs(OVERWRITES["here-document"]) == ""


def test_the_other_spelling_of_a_file_is_the_same_file(work: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(work)
    me, peer = Player("codex", tmp_path.resolve() / "link"), Player("claude-code", work)
    peer.edits("sub/deep.md", "beta", "PEER")
    assert me.runs("echo x > sub/../sub/deep.md").startswith("denied: ")


def test_what_is_done_to_a_link_is_not_done_to_its_file(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    assert me.runs("ln -s notes.md link.md") == ""  # a link of its own
    peer.edits("notes.md", "beta", "PEER")
    assert me.denied("Bash", {"command": "cp other.md link.md"})
    peer.edits("notes.md", "PEER", "AGAIN")
    for command in ("ln -sf other.md link.md", "rm link.md", "ln -s notes.md link.md", "mv other.md link.md"):
        assert me.runs(command) == "", command
    assert "AGAIN" in (work / "notes.md").read_text()


def test_a_journal_is_rotated_and_nothing_is_lost_in_it(limits: Limits, me: Player, peer: Player) -> None:
    limits(traces, JOURNAL_BYTES=2000)
    me.runs("true")
    peer.edits("notes.md", "beta", "PEER")
    for number in range(40):
        peer.runs(f"echo {number} > file-{number}")
    assert any(name.endswith(".1") for name in os.listdir(next(Path(traces.traces_dir()).iterdir())))
    assert me.runs("echo x > file-39").startswith("denied: ")


def test_a_journal_that_is_rotated_while_it_is_read_is_met_whole(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "codex.one"
    path.write_bytes(b"\n" + traces.line("wrote", "/a/b", CALL))

    def rotates_behind(file: str, *words: object, **given: object):
        try:
            return open(file, *words, **given)
        finally:
            if path.exists():
                path.rename(f"{path}.1")

    monkeypatch.setattr(journal, "open", rotates_behind, raising=False)
    assert journal.newest(journal.read(str(path)), "/a/b", ("wrote",)) is not None


def test_of_two_calls_that_find_a_journal_too_long_one_rotates_it(tmp_path: Path) -> None:
    path = text_at(tmp_path / "codex.one", "many entries")
    first, second = (os.open(path, os.O_RDWR) for _ in range(2))
    rotate(str(path), first)
    os.close(first)
    rotate(str(path), second)
    path.write_text("a new one")
    rotate(str(path), second)
    os.close(second)
    assert (path.read_text(), Path(f"{path}.1").read_text()) == ("a new one", "many entries")


def test_a_journal_that_another_process_keeps_locked_is_not_waited_for(tmp_path: Path) -> None:
    path = text_at(tmp_path / "codex.one", "many entries")
    mine, theirs = (os.open(path, os.O_RDWR) for _ in range(2))
    lock_alone(theirs)
    rotate(str(path), mine)
    assert os.listdir(tmp_path) == [path.name]
    os.close(theirs)
    rotate(str(path), mine)
    os.close(mine)
    assert os.listdir(tmp_path) == [f"{path.name}.1"]


CALL = ToolCall("apply_patch", {}, agent="agent-1")


@pytest.mark.parametrize("key", ["/a/b", "/a/with\nnewline", "/a/back\\slash\\n", "/a/\udcff", "/a/ü b"])
def test_an_entry_reads_as_it_was_written(key: str) -> None:
    data = b"\n" + traces.line("wrote", key, CALL) + traces.line("saw", key + "x", CALL)
    entry = journal.newest(data, key, ("wrote",))
    assert (entry.key, entry.kind, entry.agent, entry.tool) == (key, "wrote", "agent-1", "apply_patch")
    assert journal.newest(data, key, ("saw",)) is None


def test_what_a_full_disk_has_torn_costs_one_entry() -> None:
    whole = traces.line("wrote", "/a/b", CALL)
    for cut in range(1, len(whole)):
        data = b"\n" + whole[:cut] + b"\n" + traces.line("wrote", "/a/c", CALL)
        assert journal.newest(data, "/a/c", ("wrote",)).key == "/a/c"
        assert journal.newest(data, "/a/b", ("wrote",)) is None or cut == len(whole) - 1


@pytest.mark.parametrize("kind", ["aside", "clears", "far", "ran"])
def test_a_long_journal_is_searched_for_kinds_that_few_have_only_if_it_has_one(kind: str) -> None:
    long = b"\n" + traces.line("wrote", "/a/b", CALL) * 4000
    assert len(long) > journal.LONG
    assert journal.rare(long) == b""
    assert journal.rare(long + traces.line(kind, "/a", CALL) + long).endswith(long)
    assert journal.rare(b"\n" + traces.line("wrote", "/a/b", CALL)) != b""


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "turn")


# The clients differ in their tools, and not in their shells.
FIRST = [("claude-code", "tool"), ("codex", "tool"), ("claude-code", "shell")]
SECOND = [("claude-code", "tool"), *(("codex", way) for way in ("tool", "shell", "tree", "append"))]


@pytest.mark.parametrize(("theirs", "first"), FIRST)
@pytest.mark.parametrize(("mine", "second"), SECOND)
@pytest.mark.sampled
def test_the_first_write_of_a_turn_keeps_all_others_off(mine, theirs, first, second, work: Path, turn: None) -> None:
    me, peer = Player(mine, work), Player(theirs, work)
    if first == "tool":
        assert peer.edits("notes.md", "beta", "PEER") == ""
    else:
        assert peer.runs("sed -i s/beta/PEER/ notes.md") == ""
    if second == "tool":
        said = me.edits("notes.md", "gamma", "delta")
    else:
        said = me.runs({"shell": "echo x > notes.md", "tree": "rm -rf .", "append": "echo x >> notes.md"}[second])
    assert said.startswith("denied: ") and "until its turn ends" in said
    assert peer.edits("notes.md", "PEER", "AGAIN") == "", "its own turn goes on"
    assert me.edits("other.md", "gamma", "delta") == "", "and so does the other's, elsewhere"


@pytest.mark.parametrize(("text", "loses"), [("1 mine\n", True), ("1 theirs\n", False), ("1 theirs\n1 mine\n", False)])
def test_after_a_turn_s_end_a_stale_text_loses_what_it_lacks(text: str, loses: bool, work: Path, turn: None) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    peer.writes("count", "0\n")
    assert me.runs("cat count") == ""
    peer.writes("count", "1 theirs\n")
    turn_files.end("codex", peer.session_id)
    assert me.writes("count", text).startswith("denied: ") is loses


def test_who_is_denied_has_taken_nothing(work: Path, turn: None) -> None:
    me, peer, third = Player("codex", work), Player("codex", work), Player("claude-code", work)
    peer.edits("notes.md", "beta", "PEER")
    both = "*** Begin Patch\n*** Update File: other.md\n@@\n-beta\n+x\n*** Update File: notes.md\n@@\n-a\n+b\n*** End Patch\n"
    assert me.denied("apply_patch", {"command": both})
    assert third.edits("other.md", "beta", "THIRD") == ""


def test_an_agents_turn_is_its_own(work: Path, turn: None) -> None:
    me = Player("claude-code", work)
    edit = {"file_path": str(work / "notes.md"), "old_string": "beta", "new_string": "x"}
    assert me.denied("Edit", edit, agent="one") == ""
    assert "until its turn ends" in me.denied("Edit", edit, agent="two")
    assert me.denied("Edit", edit) != "", "the session's own thread as well"
    other = {**edit, "file_path": str(work / "other.md")}
    assert me.denied("Edit", other) == "" and me.denied("Edit", other, agent="two") == ""


def test_a_file_is_free_when_its_session_has_gone(work: Path, turn: None, me: Player) -> None:
    gone = Player("codex", work, client=(2**22 + 1, "0"))
    gone.edits("notes.md", "beta", "PEER")
    assert me.edits("notes.md", "gamma", "delta") == ""


def test_a_lock_that_somebody_took_comes_before_a_turn_s_file(work: Path, turn: None, store: Store) -> None:
    me, peer, third = Player("codex", work), Player("codex", work), Player("codex", work)
    store.locks.acquire(peer.row, str(work / "notes.md"), "mine")
    assert me.edits("notes.md", "beta", "x").startswith("denied: ")
    assert peer.edits("notes.md", "beta", "y") == ""
    store.locks.release(peer.row, str(work / "notes.md"))
    assert "was changed by" in third.edits("notes.md", "alpha", "z"), "who lets go of a file does so altogether"
