"""A model's pause belongs to no call: a person's changes in it are the person's."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.fixtures import SWARM
from support.traced import Player, lines_of, notes_an_end
from support.transcripts import Log
from support.world import TEXT, saves, some_time_passes

from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.registration import note_client
from swarm_hook_core.state import ended_mark, make_private
from swarm_hook_core.traces import journal_name, meetings, place_of, transcript
from swarm_hook_core.traces.journal import read
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.transcript import Logs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

SAVED = TEXT + "a person's\n"
DESTROYERS = {
    "checkout of a file": "git checkout other.md",
    "checkout": "git checkout .",
    "restore": "git restore other.md",
    "stash": "git stash",
    "clean": "git clean -fd",
    "remove": "rm other.md",
    "remove a new file": "rm new.md",
    "overwrite": "echo x > other.md",
}
RUNTIMES = ("claude-code", "codex")


class Session(Player):
    """A session with a client that logs its calls."""

    def __init__(self, runtime: str, folder: Path, logs: Path):
        super().__init__(runtime, folder)
        self.log = Log(logs, runtime, self.session_id)
        self.transcript = str(self.log.path)
        self.is_prompted()

    def writes_with(self, way: str, name: str = "notes.md") -> None:
        """Write a file, with the client's own tool or a command; the call is over then, in the log too."""
        call = self.log.begins()
        if way == "a tool":
            assert self.edits(name, "beta", "MINE") == ""
        else:
            assert self.runs(f"echo mine > {name}") == ""
            self.call_ends()
            notes_an_end()  # to a check in this process, another one is the client
        self.log.ends(call)
        some_time_passes()


@pytest.fixture(params=RUNTIMES)
def me(request: pytest.FixtureRequest, work: Path, tmp_path: Path) -> Session:
    return Session(request.param, work, tmp_path / "logs")


def save(work: Path) -> None:
    """Save two files, as a person does."""
    (work / "other.md").write_text(SAVED)
    saves(work / "new.md", "a person's\n")


@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside a peer"])
@pytest.mark.parametrize("way", ["a tool", "a command"])
@pytest.mark.parametrize("command", DESTROYERS.values(), ids=DESTROYERS)
@pytest.mark.sampled
def test_a_person_s_save_in_a_pause_is_protected(
    command: str, way: str, is_beside: bool, me: Session, work: Path
) -> None:
    if is_beside:
        Player("codex", work).edits("sub/deep.md", "alpha", "PEER")
    me.writes_with(way)
    save(work)
    said = me.runs(command)
    assert said.startswith("denied: ") and "a person's work" in said, said
    assert (work / "other.md").read_text() == SAVED and (work / "new.md").exists()


@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside a peer"])
@pytest.mark.parametrize(
    ("long", "is_protected"),
    [("sleep 60; cat notes.md", True), ("sleep 60; echo mine >> notes.md", True), ("./build.sh; cat notes.md", False)],
)
@pytest.mark.parametrize("command", ["git checkout other.md", "rm other.md"])
@pytest.mark.sampled
def test_a_person_s_save_during_a_command_that_writes_other_files_is_protected(
    command: str, long: str, is_protected: bool, is_beside: bool, me: Session, work: Path
) -> None:
    """A command that cannot be read may have written any file: its changes may be thrown away."""
    if is_beside:
        Player("codex", work).edits("sub/deep.md", "alpha", "PEER")
    call = me.log.begins()
    assert me.denied("Bash", {"command": long}) == ""
    save(work)
    me.call_ends()
    notes_an_end()
    me.log.ends(call)
    some_time_passes()
    assert bool(me.denied("Bash", {"command": command})) == is_protected


@pytest.mark.parametrize("way", ["a tool", "a command"])
def test_a_person_s_save_of_the_same_file_is_protected(way: str, me: Session, work: Path) -> None:
    me.writes_with(way)
    saves(work / "notes.md", (work / "notes.md").read_text() + "a person's\n")
    assert me.runs("git checkout notes.md").startswith("denied: ")


def test_an_earlier_pause_counts_too(me: Session, work: Path) -> None:
    me.writes_with("a tool")
    save(work)
    me.writes_with("a tool", "sub/deep.md")
    assert me.runs("git checkout .").startswith("denied: ")


@pytest.mark.parametrize("way", ["a tool", "a command"])
def test_what_a_call_and_the_client_s_hooks_have_written_is_the_session_s(way: str, me: Session, work: Path) -> None:
    call = me.log.begins()
    if way == "a tool":
        assert me.edits("notes.md", "beta", "MINE") == ""
    else:
        assert me.runs("echo mine > notes.md") == ""
        notes_an_end()
    save(work)  # by a hook of the client: its result comes after that
    me.log.ends(call)
    some_time_passes()
    assert me.runs("git checkout . && git clean -fdq") == ""


def test_a_call_without_a_result_goes_on(me: Session, work: Path) -> None:
    me.log.begins()
    assert me.ask("Bash", {"command": "./build"}).silent
    save(work)
    assert me.runs("git checkout .") == ""


@pytest.mark.parametrize("name", ["other.md", "notes.md"])
def test_without_a_log_a_write_tool_counts_for_its_own_files_alone(name: str, work: Path) -> None:
    me = Player("claude-code", work)
    me.edits("notes.md", "beta", "MINE")
    saves(work / name, (work / name).read_text() + "MORE\n")
    assert me.runs(f"git checkout {name}").startswith("denied: ") == (name == "other.md")


def marks_an_end(whose: Player, agent: str = "") -> None:
    """Leave the mark of a plugin: the last open call of this session and agent has ended."""
    make_private(os.path.dirname(ended_mark()))
    Path(ended_mark()).write_bytes(f"{whose.session_id}\0{agent}".encode())


@pytest.mark.parametrize("agent", ["", "helper"])
def test_a_plugin_s_mark_ends_the_write_of_its_session_and_agent(agent: str, work: Path) -> None:
    me, other = Player("opencode", work), Player("opencode", work)
    me.edit("notes.md", "beta", "MINE", agent)
    marks_an_end(other if agent == "" else me)  # of another session, or of the main thread
    saved = (work / "notes.md").read_text() + "MORE\n"
    saves(work / "notes.md", saved)
    assert not me.ask("bash", {"command": "git checkout notes.md"}, agent).denied
    me.edit("notes.md", "beta", "MINE", agent)
    marks_an_end(me, agent)
    saves(work / "notes.md", saved)
    assert me.ask("bash", {"command": "git checkout notes.md"}, agent).denied


def test_an_end_of_another_session_is_left_to_that(work: Path) -> None:
    """The plugin's process has several sessions: each takes its own mark."""
    me, other = Player("opencode", work), Player("opencode", work)
    other.edit("other.md", "beta", "OTHER")
    marks_an_end(other)
    me.edit("notes.md", "beta", "MINE")
    assert Path(ended_mark()).exists()
    other.edit("sub/deep.md", "beta", "OTHER")
    assert not Path(ended_mark()).exists()
    journals = {one.session_id: read(os.path.join(place_of(str(work)), journal_name(one.runtime, one.session_id)))
                for one in (me, other)}  # fmt: skip
    assert b" over " not in journals[me.session_id] and b" over " in journals[other.session_id]


def test_a_patch_counts_for_all_its_files(work: Path) -> None:
    me = Player("codex", work)
    body = "".join(f"*** Update File: {name}\n@@\n-beta\n+MINE\n" for name in ("notes.md", "other.md"))
    assert me.told("apply_patch", {"command": f"*** Begin Patch\n{body}*** End Patch\n"}) == ""
    for name in ("notes.md", "other.md"):
        (work / name).write_text(TEXT.replace("beta", "MINE"))
    some_time_passes()
    assert me.runs("git checkout .") == ""


@pytest.mark.parametrize("runtime", [*RUNTIMES, "opencode"])
def test_the_end_of_a_session_s_last_call_outlives_it(runtime: str, work: Path, tmp_path: Path) -> None:
    """A log tells it, or a plugin's mark. With the session its note of both goes."""
    if runtime == "opencode":
        me = Player(runtime, work)
        note_client(me.core.config, SessionEvent(me.session_id, str(work), "UserPromptSubmit"), os.getppid())
        assert me.ask("Bash", {"command": "echo mine >> notes.md"}).silent
        marks_an_end(me)
    else:
        me = Session(runtime, work, tmp_path / "logs")
        call = me.log.begins()
        assert me.ask("Bash", {"command": "echo mine >> notes.md"}).silent
        some_time_passes()  # the log has milliseconds
        me.log.ends(call)
    some_time_passes()
    saves(work / "notes.md", TEXT + "a person's\n")
    assert possible_owners(work / "notes.md") == [{runtime, ""}]
    forget(me.runtime, me.session_id)
    assert possible_owners(work / "notes.md") == [{runtime, ""}]


def possible_owners(file: Path) -> list[set[str]]:
    """Return the clients, or ``""`` for a person, of each uncommitted line."""
    return [{author.runtime for author in line.authors} for line in lines_of(str(file)) if line.authors]


@pytest.mark.parametrize("end", ["its notice", "a stop", "none"])
@pytest.mark.sampled
def test_a_command_in_the_background_may_write_until_its_own_end(end: str, me: Session, work: Path) -> None:
    call = me.log.begins()
    assert me.ask("Bash", {"command": "./serve"}).silent
    notes_an_end()  # at its launch
    some_time_passes()
    me.log.goes_on(call)
    some_time_passes()
    other = me.log.begins()
    assert me.runs("ls") == ""
    notes_an_end()
    me.log.ends(other)
    some_time_passes()
    saves(work / "notes.md", TEXT + "in the background\n")
    if end == "its notice":
        me.log.ends_apart(call)
    elif end == "a stop":
        me.log.stops(call)
    some_time_passes()
    saves(work / "other.md", TEXT + "afterwards\n")
    assert possible_owners(work / "notes.md") == [{me.runtime, ""}]
    assert possible_owners(work / "other.md") == [{me.runtime, ""} if end == "none" else {""}]
    assert me.runs("git checkout other.md").startswith("denied: ")


class Slow:
    """A clock: its pauses end with the client's next line in its log."""

    def __init__(self, path: Path, lines: str):
        self.path, self.lines, self.time_ns = path, lines, time.time_ns

    def sleep(self, seconds: float) -> None:
        with self.path.open("a") as out:
            out.write(self.lines)
        self.lines = ""


def test_a_result_that_is_about_to_be_logged_is_waited_for(
    me: Session, work: Path, limits: Limits, monkeypatch
) -> None:
    limits(transcript, PATIENCE_NS=60 * 10**9)
    call = me.log.begins()
    assert me.edits("notes.md", "beta", "MINE") == ""
    later = Log(me.log.path.parent, me.runtime, "later")
    later.ends(call)  # it has its time now, and is on the disk later
    some_time_passes()
    save(work)
    monkeypatch.setattr(transcript, "time", Slow(me.log.path, later.path.read_text()))
    assert me.runs("git checkout .").startswith("denied: ")


def test_an_agent_has_a_log_of_its_own(me: Session, work: Path) -> None:
    main = me.log
    call = main.begins()  # it has an agent work
    log = main.of_agent("helper")
    inner = log.begins()
    given = me.writing(notes_of(me, work), TEXT + "MINE\n")
    if me.runtime == "codex":
        me.transcript = str(log.path)  # Codex tells an agent's own
    assert me.told(*given, agent="helper") == ""
    saves(work / "notes.md", TEXT + "MINE\n")
    log.ends(inner)
    some_time_passes()
    save(work)
    verdict = me.ask("Bash", {"command": "git checkout other.md"}, agent="helper")
    assert verdict.denied and "a person's work" in verdict.words
    main.ends(call)


def notes_of(me: Session, work: Path) -> str:
    """Return the path of notes.md as the session's client names files."""
    if me.runtime == "claude-code":
        return str(work / "notes.md")
    return "notes.md"


@pytest.mark.parametrize(
    "words", [["blame", "notes.md"], ["diff"], ["commit", "-m", "mine"]], ids=lambda words: words[0]
)
@pytest.mark.sampled
def test_an_interrupted_command_is_over_for_the_command_line_too(words: list[str], me: Session, work: Path) -> None:
    """Esc: no hook tells that end, the client's log does."""
    call = me.log.begins()
    assert me.ask("Bash", {"command": "./build"}).silent
    some_time_passes()  # the log has milliseconds
    me.log.ends(call, "[Request interrupted by user for tool use]", is_error=True)
    some_time_passes()
    saves(work / "notes.md", TEXT + "a person's\n")
    acting = ["--as", me.id] if words[0] == "commit" else []
    done = subprocess.run([*SWARM, *words, "--json", *acting], cwd=work, capture_output=True, text=True, check=False)
    if words[0] == "commit":
        assert done.returncode == 1 and "nothing" in done.stdout + done.stderr, done
    else:
        assert "a person" in done.stdout and me.runtime not in done.stdout, done.stdout


@pytest.mark.parametrize("way", ["replaces", "edits", "removes"])
@pytest.mark.sampled
def test_a_write_that_its_client_has_refused_is_not_awaited(way: str, me: Session, work: Path) -> None:
    peer = Player("claude-code", work)
    call = me.log.begins()
    path = notes_of(me, work)
    assert me.ask(*me.writing(path)).silent
    some_time_passes()  # the log has milliseconds
    me.log.ends(call, "The user doesn't want to proceed with this tool use.", is_error=True)
    some_time_passes()
    if way == "replaces":
        assert peer.writes("notes.md", "x\n") == ""
    elif way == "edits":
        assert peer.edits("notes.md", "beta", "PEER") == ""
    else:
        assert peer.runs("rm notes.md") == ""


def test_a_write_that_is_not_over_is_awaited(me: Session, work: Path, limits: Limits) -> None:
    limits(meetings, WAIT_SECONDS=0.1)
    peer = Player("claude-code", work)
    me.log.begins()
    path = notes_of(me, work)
    assert me.ask(*me.writing(path)).silent
    assert "denied each time, for two minutes" in peer.runs("rm notes.md")


def test_the_note_of_a_client_goes_with_its_session(me: Session, work: Path) -> None:
    name = journal_name(me.runtime, me.session_id)
    assert name in os.listdir(os.path.dirname(ended_mark()))
    forget(me.runtime, me.session_id)
    assert name not in os.listdir(os.path.dirname(ended_mark()))


class Told:
    """A log with lines a second apart. `at`: the present second."""

    def __init__(self, folder: Path, runtime: str):
        self.at = 1000
        self.log = Log(folder, runtime, clock=self._next)
        self.form = {"claude-code": "blocks", "codex": "rollout"}[runtime]

    def _next(self) -> float:
        self.at += 1
        return self.at

    def end_of(self, call_at: float) -> float:
        """Return the end of a call that was checked at that second; 0 if unknown."""
        return Logs(self.form, str(self.log.path), "s").of("").end_of(int(call_at * 1e9)) / 1e9


@pytest.fixture
def codex(tmp_path: Path) -> Told:
    return Told(tmp_path, "codex")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_calls_of_one_message_end_with_the_last_of_them(runtime: str, tmp_path: Path) -> None:
    it = Told(tmp_path, runtime)
    one, two = it.log.begins("m"), it.log.begins("m")
    begun = it.at + 0.5
    it.log.ends(two)
    assert it.end_of(begun) == 0
    it.log.ends(one)
    assert it.end_of(begun) == it.at


def test_a_lost_result_is_over_with_the_next_message(tmp_path: Path) -> None:
    it = Told(tmp_path, "claude-code")
    it.log.begins()
    begun = it.at + 0.5
    it.log.ends(it.log.begins())
    assert it.end_of(begun) == it.at


RUNS_ON = "Chunk ID: 1\nWall time: 10 seconds\nProcess running with session ID 7\n"


def test_a_command_that_runs_on_is_over_when_it_has_run(codex: Told) -> None:
    call = codex.log.begins()
    begun = codex.at + 0.5
    codex.log.ends(call, RUNS_ON)
    codex.log.ends(codex.log.begins(name="write_stdin"), RUNS_ON)
    assert codex.end_of(begun) == 0
    codex.log.has_run(call, codex.at + 1 - begun)
    assert codex.end_of(begun) == codex.at
    over = codex.at
    codex.log.ends(codex.log.begins(name="write_stdin"), "Process exited with code 0\n")
    assert codex.end_of(begun) == over


def test_the_hooks_after_a_command_belong_to_it(codex: Told) -> None:
    call = codex.log.begins()
    begun = codex.at + 0.5
    codex.log.has_run(call, 0.1)
    assert codex.end_of(begun) == 0
    codex.log.ends(call)
    assert codex.end_of(begun) == codex.at


def test_a_command_inside_of_a_script_is_over_when_it_has_run(codex: Told) -> None:
    call = codex.log.begins()
    begun = codex.at + 0.5
    codex.log.ends(call, "Script completed\n")
    assert codex.end_of(begun) == codex.at
    codex.log.has_run("exec-1", codex.at + 1 - begun)
    assert codex.end_of(begun) == codex.at


def test_a_command_in_the_background_is_over_with_another_call(codex: Told) -> None:
    server = codex.log.begins()
    begun = codex.at + 0.5
    codex.log.ends(server, RUNS_ON)
    codex.log.ends(codex.log.begins())
    over = codex.at
    codex.log.has_run(server, codex.at + 1 - begun)
    assert codex.end_of(begun) == over


def test_a_long_log_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = Told(tmp_path, "claude-code")
    first = it.log.begins()
    begun = it.at + 0.5
    it.log.ends(first)
    over = it.at
    for _ in range(20):
        it.log.ends(it.log.begins(), "x" * 1000)
    monkeypatch.setattr(transcript, "TAILS", ((4096, 1 << 20)))
    assert it.end_of(begun) == over
    monkeypatch.setattr(transcript, "TAILS", ((4096, 8192)))
    assert it.end_of(begun) == 0, "too far back"
    assert it.end_of(it.at - 0.5) == it.at


@pytest.mark.parametrize("text", ["", "no JSON", '{"timestamp": 1}', '{"timestamp":"x","message":{"content":[]}}'])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_log_of_another_format_has_no_ends(runtime: str, text: str, tmp_path: Path) -> None:
    it = Told(tmp_path, runtime)
    if text:
        it.log.path.write_text(f'{text} "tool_use" "call_id"\n{text}\n')
    assert it.end_of(1) == 0
