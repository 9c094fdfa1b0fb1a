"""Calls of two sessions that are checked at the same moment, before either has written: one of them waits its turn."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits, Listening
from support.traced import Player, git, note

from swarm_hook_core.traces import meetings, others, seen, state_of
from swarm_hook_core.traces.trail import Trail
from swarm_mcp.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

OVERWRITE = ("Bash", {"command": "printf 'mine\\n' > notes.md"})


def patch_of(player: Player) -> tuple[str, Any]:
    """A call that changes a line of the file, with the tool of the player's client."""
    if player.runtime == "codex":
        return "apply_patch", {
            "command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-beta\n+BETA\n*** End Patch\n"
        }
    path = str(player.folder / "notes.md")
    return "Edit", {"file_path": path, "old_string": "beta", "new_string": "BETA"}


def meanwhile(monkeypatch: pytest.MonkeyPatch, method: str, player: Player, deed: Callable[[], None]) -> None:
    """Do `deed` right after the first call of `player` has gone through this method of its Trail."""
    through, done = getattr(Trail, method), []

    def stopped(trail: Trail, *given: Any) -> Any:
        found = through(trail, *given)
        if trail.call.session_id == player.session_id and not done:
            done.append(True)
            deed()
        return found

    monkeypatch.setattr(Trail, method, stopped)


def at_work(player: Player) -> Player:
    """Let a session leave traces, and return it."""
    assert player.runs(f"echo x > of-{player.session_id}") == "" == player.runs("cat notes.md")
    return player


@pytest.fixture(params=["claude-code", "codex"])
def me(request: pytest.FixtureRequest, work: Path) -> Player:
    """A session of each client that has left traces here."""
    return at_work(Player(request.param, work))


@pytest.fixture
def peer(work: Path) -> Player:
    """Another session that has."""
    return at_work(Player("codex", work))


def said_to(player: Player, call: tuple[str, Any]) -> str:
    """Return the denial or notice for a call; "very moment" is in both if it met a pending write."""
    verdict = player.check(*call)
    return f"denied: {verdict.denial.reason}" if verdict.denial is not None else str(verdict.notice)


@pytest.mark.parametrize("mine", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
@pytest.mark.parametrize("theirs", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
@pytest.mark.sampled
def test_one_that_is_checked_while_another_is_meets_it(mine, theirs, me, peer, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    meanwhile(monkeypatch, "leave", me, lambda: said.append(said_to(peer, theirs(peer))))
    my_answer = said_to(me, mine(me))
    assert "very moment" in said[0] and "notes.md" in said[0]
    assert said[0].startswith("denied: ") is (theirs is not patch_of), "no edit is denied for what is no lock"
    if theirs is patch_of:
        assert "very moment" in my_answer, "it goes ahead: so both have been told, or one is denied"
        return
    assert my_answer == "", "the other one was denied"
    (me.folder / "notes.md").write_text("by me\n")
    assert peer.runs("cat notes.md") == "" and peer.denied(*OVERWRITE) == "", "once it has read what was written"


def test_two_that_have_both_noted_theirs_are_both_denied_and_pass_one_after_the_other(
    monkeypatch, limits, me: Player, peer: Player
) -> None:
    said: list[str] = []

    def other() -> None:
        meanwhile(monkeypatch, "leave", peer, lambda: said.append(me.denied(*OVERWRITE)))
        said.append(peer.denied(*OVERWRITE))

    meanwhile(monkeypatch, "leave", me, other)
    me.denied(*OVERWRITE)
    assert any(said), "not all of them pass"
    limits(seen, APART_NS=0)
    for player in (me, peer):
        player.runs("true")  # the write that was let pass is over, and was not made
    assert me.denied(*OVERWRITE) == "" and "very moment" in peer.denied(*OVERWRITE)


def test_of_two_that_are_alone_and_begin_at_once_one_meets_the_other(work: Path, monkeypatch) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    said: list[str] = []
    meanwhile(monkeypatch, "note_alone", me, lambda: said.append(peer.denied(*patch_of(peer))))
    assert "very moment" in me.told(*patch_of(me)) and said == [""]


@pytest.mark.parametrize(
    ("step", "command"), [("note_alone", OVERWRITE[1]["command"]), ("note_unread", "printf x >> notes.md")]
)
def test_of_two_commands_of_sessions_that_are_alone_one_meets_the_other(step, command, work: Path, monkeypatch) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    call, said = ("Bash", {"command": command}), []
    meanwhile(monkeypatch, step, me, lambda: said.append(peer.told(*call)))
    mine = me.ask(*call)
    assert said == [""] and (mine.words or mine.notice), (
        "it was looked at once more, and met what the other one may have written"
    )


def test_an_edit_of_a_session_that_was_alone_waits_for_an_overwrite_noted_before_it(work: Path, monkeypatch) -> None:
    """The edit's own note, made while it believed itself alone, is no write: neither of the peer's nor of its own."""
    me, peer = Player("codex", work), Player("claude-code", work)
    notes, now, sleep, waited, said = work / "notes.md", time.time_ns, time.sleep, list[float](), list[str]()

    def earlier() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: now() - 10**8)
            said.append(peer.denied("Write", {"file_path": str(notes), "content": "theirs\n"}))

    def paused(seconds: float) -> None:
        if seconds != meetings.PAUSE:  # for git
            sleep(seconds)
            return
        waited.append(seconds)
        notes.write_text("theirs\nbeta\n")

    monkeypatch.setattr(meetings.time, "sleep", paused)
    meanwhile(monkeypatch, "note_alone", me, earlier)
    assert "was changed by" in me.told(*patch_of(me)) and said == [""]
    assert len(waited) == 1, "and no longer than until the overwrite was made"


def test_a_command_of_a_session_that_was_alone_is_nobody_s_obstacle_once_it_is_denied(work: Path, monkeypatch) -> None:
    """Its text was noted, for others to read, while the session believed itself alone; then another came, and a lock."""
    me, peer, done = Player("codex", work), Player("claude-code", work), list[bool]()

    def comes() -> None:
        assert peer.runs("cat notes.md") == ""
        with Store() as store:
            store.locks.acquire(store.instances.get(peer.id), str(work / "notes.md"), "busy")
        done.append(True)

    meanwhile(monkeypatch, "note_unread", me, comes)
    assert "busy" in me.denied("Bash", {"command": "printf x >> notes.md"}) and done
    assert peer.denied("Write", {"file_path": str(work / "notes.md"), "content": "theirs\n"}) == ""


def test_what_was_denied_is_nobody_s_obstacle(me: Player, peer: Player) -> None:
    third = Player("codex", me.folder)
    peer.edits("notes.md", "beta", "PEER")
    assert me.denied(*OVERWRITE), "it would lose what the peer wrote"
    assert "very moment" not in third.denied(*OVERWRITE), "the one that was denied writes nothing"


def test_at_notice_nobody_is_denied(me: Player, peer: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    said: list[str] = []
    meanwhile(monkeypatch, "leave", me, lambda: said.append(peer.denied(*OVERWRITE)))
    assert me.denied(*OVERWRITE) == "" and said == [""]


@pytest.mark.parametrize("theirs", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
def test_an_edit_waits_until_a_write_that_was_let_pass_before_it_is_made(theirs, me: Player, peer, monkeypatch) -> None:
    """Made before that one, it would be lost below it."""
    notes = me.folder / "notes.md"
    assert peer.denied(*theirs(peer)) == ""
    waited: list[float] = []

    def paused(seconds: float) -> None:
        waited.append(seconds)
        notes.write_text("theirs\nbeta\n")

    monkeypatch.setattr(meetings.time, "sleep", paused)
    said = me.told(*patch_of(me))
    assert waited, "the edit was let pass while an overwrite of the file was still to come"
    assert notes.read_text() == "theirs\nbeta\n" and ("was changed by" in said or me.runtime == "claude-code")


def written_at_waits(monkeypatch: pytest.MonkeyPatch, file: Path, text: str) -> list[float]:
    """Have the file written at each wait for a write; return the waits."""
    sleep, waited = time.sleep, list[float]()

    def paused(seconds: float) -> None:
        sleep(seconds)
        if seconds == meetings.PAUSE:
            waited.append(seconds)
            file.write_text(text)

    monkeypatch.setattr(meetings.time, "sleep", paused)
    return waited


@pytest.fixture
def closely(limits: Limits) -> None:
    """All calls follow closely, however slow the machine is."""
    for module in (seen, others):
        limits(module, OWN_NS=1 << 60)
    limits(meetings, WAIT_SECONDS=60)


@pytest.mark.parametrize("whose", ["its own", "a third's"])
@pytest.mark.usefixtures("closely")
def test_a_formatter_s_change_is_no_write_of_another_session(
    whose: str, me: Player, peer: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes between the check of the other's edit and that edit."""
    notes, writer = me.folder / "notes.md", me
    if whose != "its own":
        writer = at_work(Player("codex", me.folder))
    assert writer.edits("notes.md", "beta", "MINE") == ""
    assert "was changed by" in peer.will_put("notes.md", "PEER\nMINE\ngamma\n")
    notes.write_text("alpha\n    MINE\ngamma\n")
    waited = written_at_waits(monkeypatch, notes, "PEER\n    MINE\ngamma\n")
    assert "was changed by" in me.told(*edit_of(me, "notes.md"))
    assert waited, "the edit was let pass while another one of the file was still to come"


def test_a_write_is_awaited_also_if_a_later_call_is_checked_meanwhile(
    me: Player, peer: Player, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    """The later one waits for this one; the earlier one does not."""
    limits(meetings, WAIT_SECONDS=60)
    notes, third = me.folder / "notes.md", at_work(Player("codex", me.folder))
    assert peer.will_put("notes.md", "PEER\nbeta\ngamma\n") == ""
    waited = written_at_waits(monkeypatch, notes, "PEER\nbeta\ngamma\n")
    later = third.session_id, str(me.folder), "will", str(notes)
    meanwhile(monkeypatch, "leave", me, lambda: note(*later, time.time(), state_of(str(notes))))
    assert "very moment" in me.told(*edit_of(me, "notes.md"))
    assert waited


@pytest.mark.parametrize("tool", ["edits", "writes"])
@pytest.mark.usefixtures("closely")
def test_an_edit_made_behind_an_own_one_is_not_awaited(
    tool: str, me: Player, peer: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No formatter has changed the file: it is as the other's call leaves it, and no event need tell that call's end."""
    waited = list[float]()
    me.edits("notes.md", "beta", "MINE")
    if tool == "edits":
        peer.edits("notes.md", "alpha", "PEER")
    else:
        peer.writes("notes.md", "alpha\nMINE\nPEER\n")
    monkeypatch.setattr(meetings.time, "sleep", waited.append)
    assert "was changed by" in me.edits("notes.md", "MINE", "AGAIN") and meetings.PAUSE not in waited


def test_who_waits_reads_no_journal_again_that_has_not_changed(me, peer, limits: Limits, listening: Listening) -> None:
    """A large one would cost processor time all the while."""
    limits(meetings, WAIT_SECONDS=0.3)
    assert peer.denied(*OVERWRITE) == ""
    read, looked = listening(meetings.journal, "read"), listening(others.Journals, "stamps")
    me.told(*patch_of(me))
    assert len(looked) > len(read), "it looked whether anything had changed, and nothing had"
    assert len(read) < 6


def test_an_edit_does_not_wait_for_long(limits: Limits, me: Player, peer: Player) -> None:
    limits(meetings, WAIT_SECONDS=0.05)
    assert peer.denied(*OVERWRITE) == ""
    assert "at this very moment" in me.told(*patch_of(me)) or me.runtime == "claude-code"


CLEARS = {
    "rm": "rm -r docs", "mv": "mv docs elsewhere", "checkout": "git checkout -- .", "reset": "git reset --hard",
    "stash": "git stash", "named": "git checkout -- docs", "file": "git restore docs/deep.md", "switch": "git switch -f side",
}  # fmt: skip


@pytest.fixture
def deep(work: Path) -> Path:
    """A file in a folder of the checkout."""
    (work / "docs").mkdir()
    (work / "docs" / "deep.md").write_text("alpha\nbeta\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "deep")
    git(work, "branch", "side")
    return work / "docs" / "deep.md"


def edit_of(player: Player, name: str = "docs/deep.md") -> tuple[str, Any]:
    """A call that changes a line of that file."""
    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-beta\n+BETA\n*** End Patch\n"
    if player.runtime == "codex":
        return "apply_patch", {"command": patch}
    return "Edit", {"file_path": str(player.folder / name), "old_string": "beta", "new_string": "BETA"}


def shell(command: str) -> tuple[str, Any]:
    return "Bash", {"command": command}


def no_wait(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record waits, and end each at once as if its time were up."""
    waited: list[float] = []
    sleep = time.sleep

    def paused(seconds: float) -> None:
        if seconds != meetings.LONG_PAUSE:  # another wait, for example for git
            sleep(seconds)
            return
        waited.append(seconds)
        Limits(monkeypatch)(meetings, WAIT_SECONDS=0)

    monkeypatch.setattr(meetings.time, "sleep", paused)
    return waited


def stopped(monkeypatch: pytest.MonkeyPatch, player: Player, step: str, deed: Callable[[], None]) -> None:
    """Do `deed` while the check of this player's next call is at `step`."""
    if step == "noted":
        meanwhile(monkeypatch, "leave", player, deed)
    else:  # it has noted its writes, and has looked at those of others
        meanwhile(monkeypatch, "note_unnamed", player, deed)


@pytest.mark.parametrize("step", ["noted", "looked"])
@pytest.mark.parametrize("command", CLEARS.values(), ids=CLEARS.keys())
@pytest.mark.sampled
def test_what_clears_a_folder_while_an_edit_in_it_is_checked_meets_it(
    command, step, deep, me, peer, monkeypatch
) -> None:
    said: list[str] = []
    stopped(monkeypatch, me, step, lambda: said.append(said_to(peer, shell(command))))
    mine = said_to(me, edit_of(me))
    assert said[0].startswith("denied: ") and "very moment" in said[0] and "deep.md" in said[0], said
    assert mine == "", "the other one is denied"
    deep.write_text("alpha\nBETA\n")
    assert peer.denied(*shell(command)), "and meets what was written then"


@pytest.mark.parametrize("command", CLEARS.values(), ids=CLEARS.keys())
@pytest.mark.sampled
def test_an_edit_that_is_checked_after_what_clears_its_folder_was_looked_for_waits(
    command, deep, monkeypatch, me: Player, peer: Player
) -> None:
    """The other one has looked already, and passes: made before it, the edit would be lost."""
    said: list[str] = []
    waited = no_wait(monkeypatch)
    if command == CLEARS["switch"]:
        assert "would switch" in peer.denied(*shell(command)), "once, and then it may"
    stopped(monkeypatch, peer, "looked", lambda: said.append(said_to(me, edit_of(me))))
    assert peer.denied(*shell(command)) == ""
    assert waited and said == [""]


@pytest.mark.parametrize("command", CLEARS.values(), ids=CLEARS.keys())
@pytest.mark.sampled
def test_at_notice_it_is_told_and_nobody_waits(command, deep: Path, me, peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    waited = no_wait(monkeypatch)
    assert peer.denied(*shell(command)) == ""
    told = me.told(*edit_of(me))
    assert "at this very moment codex" in told and "about to" in told and "make it again" in told and not waited
    assert "is written at this very moment" in peer.told(*shell(command)), "and the other way round"


def test_a_folder_that_has_gone_by_now_keeps_nobody_waiting(deep, me, peer, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = no_wait(monkeypatch)
    assert peer.runs("rm -r docs") == ""
    assert me.denied(*shell("mkdir docs && echo x > docs/deep.md")) == "" and not waited


@pytest.mark.parametrize("theirs", ["git checkout -- notes.md", "git stash push -- notes.md", "rm -r elsewhere", "git stash list",
                                    "git checkout side", "git restore --staged .", "git clean -nd", "git reset"])  # fmt: skip
@pytest.mark.sampled
def test_who_writes_elsewhere_is_not_concerned(theirs, deep: Path, me, peer, monkeypatch: pytest.MonkeyPatch) -> None:
    (me.folder / "elsewhere").mkdir()
    waited = no_wait(monkeypatch)
    if theirs == "git checkout side":
        assert "would switch" in peer.denied(*shell(theirs)), "once, and then it may"
    assert peer.denied(*shell(theirs)) == ""
    assert said_to(me, edit_of(me)) == "" and not waited
    assert said_to(peer, shell(theirs)) == "", "nor is the command, by the edit"


def test_what_was_denied_clears_nothing(deep: Path, monkeypatch: pytest.MonkeyPatch, me: Player, peer: Player) -> None:
    third = Player("codex", me.folder)
    peer.edits("notes.md", "beta", "PEER")
    waited = no_wait(monkeypatch)
    assert "notes.md" in me.denied(*shell("git checkout -- .")), "it would lose what the peer wrote"
    assert third.told(*edit_of(third)) == "" and not waited


def test_git_clean_meets_a_new_file_that_is_still_to_come_and_leaves_one_alone_that_git_has(deep, me, peer) -> None:
    assert me.denied(*shell("echo x > docs/new.md")) == "" and me.denied(*edit_of(me)) == ""
    said = peer.denied(*shell("git clean -fd docs"))
    assert "new.md" in said and "deep.md" not in said


def test_a_command_that_nobody_has_read_clears_a_folder_too(deep: Path, work: Path, monkeypatch) -> None:
    """Its session was alone when it looked."""
    me, peer = Player("codex", work), Player("claude-code", work)
    waited = no_wait(monkeypatch)
    assert peer.denied(*shell("git checkout -- docs")) == ""
    assert me.told(*edit_of(me)) == "" and waited, "the edit waits for it"


def test_a_write_of_a_command_that_nobody_has_read_is_met_before_it_is_made(deep: Path, work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    assert peer.denied(*shell("echo x > docs/deep.md")) == ""
    assert "very moment" in me.denied(*shell("rm -r docs"))


def test_a_denied_edit_is_nobody_s_obstacle_to_a_sweep(deep: Path, me: Player, peer: Player) -> None:
    peer.edits("notes.md", "beta", "PEER")
    git(me.folder, "commit", "-qam", "a person's")
    peer.edits("docs/deep.md", "beta", "PEER")
    assert me.denied(*shell("echo x > docs/deep.md")), "it would lose what the peer wrote"
    third = Player("codex", me.folder)
    git(me.folder, "commit", "-qam", "a person's")
    assert third.denied(*shell("git stash")) == "", "the one that was denied writes nothing"
