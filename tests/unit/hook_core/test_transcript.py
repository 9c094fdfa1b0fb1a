"""Reads with the client's own tool, without a hook, are found in the client's transcript."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.altered import Limits
from support.files import text_at
from support.sessions import ready_store
from support.traced import Player, checkout
from support.transcripts import Blocks, Parts
from support.world import World

from swarm_hook_core.traces import transcript
from swarm_hook_core.traces.transcript import Transcript

TEXT = "alpha\nbeta\ngamma\n"
CHANGED = "alpha\nPEER\ngamma\n"
CLIENTS = {"claude-code": ("blocks", Blocks, "Write", "Edit"), "qwen": ("parts", Parts, "write_file", "edit")}


@pytest.fixture(params=CLIENTS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Blocks:
    """An empty transcript in each client's format; `form` is its name."""
    form, kind, *_tools = CLIENTS[request.param]
    made: Blocks = kind(tmp_path / "transcripts")
    made.form = form  # type: ignore[attr-defined]
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "notes.md").write_text(CHANGED)
    return tmp_path.resolve() / "notes.md"


def shown(written: Blocks, file: Path, agent: str = "", id: str = "") -> bool:
    call = SimpleNamespace(folder=str(file.parent), session_id="", agent=agent, transcript=str(written.path), id=id)
    config = SimpleNamespace(transcript=written.form)  # type: ignore[attr-defined]
    return Transcript(config, call).has_shown(str(file), os.path.realpath(file))


def read_at(written: Blocks, file: Path, text: str) -> None:
    """Read the file with another text; it has the present one after that."""
    file.write_text(text)
    written.reads(file)
    file.write_text(CHANGED)


def far_from_the_end(written: Blocks, file: Path, lines: int) -> None:
    written.reads(file)
    with written.path.open("a") as out:
        out.write((json.dumps({"type": "other", "text": "x" * 1000}) + "\n") * lines)


def linked(file: Path) -> Path:
    """Return another name of the file, through a link to its folder."""
    (file.parent / "by").symlink_to(file.parent)
    return file.parent / "by" / "notes.md"


def behind_a_cut_line(written: Blocks, file: Path) -> None:
    written.reads(file)
    written.path.write_text(f'{written.path.read_text()}{{"notes.md": \n[1]\n{{"message": "notes.md"}}\n"notes.md"\n')


def of_another(written: Blocks, file: Path) -> None:
    other = text_at(file.parent / "sub" / "notes.md", CHANGED)
    written.reads(other)


Deed = Callable[[Blocks, Path], object]
LOOKS: list[tuple[str, bool, Deed]] = [
    ("nothing", False, lambda written, file: None),
    ("nothing of a file that was emptied", False, lambda written, file: bool(file.write_text(""))),
    ("read", True, lambda written, file: written.reads(file)),
    ("read before the change", False, lambda written, file: read_at(written, file, TEXT)),
    ("then cut off by another", False, lambda written, file: read_at(written, file, CHANGED + "more\n")),
    ("a part", False, lambda written, file: written.reads(file, 1, 1)),
    ("the other part", False, lambda written, file: written.reads(file, 2, 2)),
    ("in pages", True, lambda written, file: (written.reads(file, 1, 2), written.reads(file, 3, 2))),
    ("by another name of its folder", True, lambda written, file: written.reads(linked(file))),
    ("a read that failed", False, lambda written, file: written.reads(file, error="File does not exist.")),
    ("another file of that name", False, of_another),
    ("lines that are no entries", True, behind_a_cut_line),
    ("far from the end", True, lambda written, file: far_from_the_end(written, file, 400)),
    ("farther than is read", False, lambda written, file: far_from_the_end(written, file, 4200)),
    ("by a sub-agent only", False, lambda written, file: written.reads(file, agent="a1")),
]


@pytest.mark.parametrize(("expected", "look"), [case[1:] for case in LOOKS], ids=[case[0] for case in LOOKS])
def test_a_file_was_shown_where_each_of_its_lines_was(written: Blocks, file: Path, expected: bool, look: Deed) -> None:
    look(written, file)
    assert shown(written, file) is expected


@pytest.mark.parametrize(
    "text", ["", "one line", "tab\tin it\n1\t2\n", "a\r\nb\r\n", "\ufeffmark\n", "\u00e4\u2028\u00fc\x85\n", "1\n\n\n"]
)
def test_texts_of_all_kinds_are_known_again(written: Blocks, file: Path, text: str) -> None:
    file.write_text(text.lstrip("\ufeff").replace("\r\n", "\n"))  # as clients show it
    written.reads(file)
    file.write_bytes(text.encode())
    assert shown(written, file)


@pytest.mark.parametrize("name", ['a "b".md', "back\\slash.md", "\u00fc\u2028.md", "[x]*.md"])
def test_names_of_all_kinds_are_found(written: Blocks, file: Path, name: str) -> None:
    odd = file.with_name(name)
    odd.write_text(CHANGED)
    written.reads(odd)
    assert shown(written, odd)


def test_a_sub_agent_knows_what_it_has_read_itself(written: Blocks, file: Path) -> None:
    written.reads(file)
    assert not shown(written, file, "a1")
    written.reads(file, agent="a1")
    assert shown(written, file, "a1")
    assert not shown(written, file, "a2")


def in_pauses(monkeypatch: pytest.MonkeyPatch, limits: Limits, *deeds: Callable[[], object]) -> list[float]:
    """Have `deeds` done in the pauses of a check, one in each. Return a list of the pauses, filled as it goes on."""
    paused: list[float] = []

    def pause(seconds: float) -> None:
        if seconds == transcript.PAUSE:  # not another part's
            deeds[len(paused)]()
            paused.append(seconds)

    monkeypatch.setattr(transcript.time, "sleep", pause)
    limits(transcript, PATIENCE=60)
    return paused


def nothing() -> None:
    """Is done in a pause without a write of the client."""


def test_a_result_that_is_not_noted_yet_is_waited_for(
    written: Blocks, file: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    def results() -> None:
        written.calls -= 1  # the same call
        written.reads(file)

    paused = in_pauses(monkeypatch, limits, nothing, results)
    written.calls_read(file)
    assert shown(written, file)
    assert len(paused) == 2


@pytest.mark.parametrize("agent", ["", "a1"])
@pytest.mark.parametrize("has_read", [True, False])
def test_reads_are_looked_for_until_the_transcript_tells_of_the_call_itself(
    tmp_path: Path, file: Path, has_read: bool, agent: str, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    """Claude Code writes it a moment late, and makes the file with the first lines of a session or an agent."""
    written = Blocks(tmp_path / "transcripts")
    written.form = "blocks"  # type: ignore[attr-defined]
    other = file.with_name("other.md")
    other.write_text(CHANGED)

    def flush() -> None:
        written.reads(file if has_read else other, agent=agent)
        written.add({"the call": "call_now"}, agent)

    paused = in_pauses(monkeypatch, limits, nothing, lambda: written.reads(other, agent=agent), flush)
    for _again in range(2):  # the second check finds all there
        assert shown(written, file, agent, "call_now") is has_read
        assert len(paused) == 3


def test_a_result_that_never_comes_is_not_waited_for_long(written: Blocks, file: Path, limits: Limits) -> None:
    limits(transcript, PATIENCE=0.05)
    written.calls_read(file)
    assert not shown(written, file)


def test_what_is_no_ordinary_file_is_not_read(written: Blocks, file: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "none", Path("/dev/zero"), Path("relative")):
        written.path = path
        assert not shown(written, file)


def test_large_files_are_not_compared(written: Blocks, file: Path, limits: Limits) -> None:
    written.reads(file)
    limits(transcript, LARGEST=5)
    assert not shown(written, file)


def test_what_takes_long_ends(written: Blocks, file: Path, limits: Limits) -> None:
    written.reads(file)
    limits(transcript, MOST_SECONDS=0)
    call = SimpleNamespace(folder=str(file.parent), session_id="", agent="", transcript=str(written.path), id="")
    one = Transcript(SimpleNamespace(transcript=written.form), call)  # type: ignore[attr-defined]
    assert [one.has_shown(str(file), str(file)) for _ in range(2)] == [True, False]


def test_what_claude_code_attaches_and_writes_counts(tmp_path: Path, file: Path) -> None:
    written = Blocks(tmp_path / "transcripts")
    written.form = "blocks"  # type: ignore[attr-defined]
    for holder in (
        {"attachment": {"type": "file", "content": {"file": {"filePath": str(file), "content": CHANGED}}}},
        {"toolUseResult": {"type": "update", "filePath": str(file), "content": CHANGED}},
    ):
        text_at(written.path, json.dumps(holder) + "\n")
        assert shown(written, file), holder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "sub/deep.md")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_the_session_has_not_been_shown_is_not_overwritten(client: str, work: Path, tmp_path: Path) -> None:
    """With any guard of the client's own, and with each of its models."""
    _form, kind, write, edit = CLIENTS[client]
    me, peer = Player(client, work), Player("codex", work)
    told = kind(tmp_path / "transcripts")
    me.transcript = str(told.path)
    file = work / "notes.md"
    whole = {"file_path": str(file), "content": "MINE\nbeta\ngamma\n"}
    part = {"file_path": str(file), "old_string": "gamma", "new_string": "x"}

    told.reads(file)
    peer.edits("notes.md", "beta", "PEER")
    assert "would overwrite" in me.denied(write, whole)  # X3: its read was before that
    peer.edits("notes.md", "PEER", "PEERS")
    told.reads(file, 1, 1)
    assert me.denied(write, whole)  # Y2: it has seen one line of it
    peer.edits("sub/deep.md", "beta", "PEER")
    assert "was changed by" in me.told(edit, {**part, "file_path": str(work / "sub" / "deep.md")})
    told.reads(file)
    assert me.told(edit, part) == me.told(write, whole) == ""
    assert me.told("Bash", {"command": "echo x > notes.md"}) == ""  # in either way


def test_only_what_may_be_lost_is_waited_for(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    me, told, changed = Player("claude-code", work), Blocks(tmp_path / "transcripts"), work / "notes.md"
    me.transcript = str(told.path)
    changed.write_text(CHANGED)  # a person's
    paused = in_pauses(monkeypatch, limits, lambda: told.reads(changed))
    for file, pauses in (work / "sub" / "deep.md", 0), (changed, 1):
        assert me.ask("Write", {"file_path": str(file), "content": "MINE\n"}, id="call_now").silent
        assert len(paused) == pauses


def test_an_edit_that_is_told_of_a_change_does_not_wait(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    me, paused = Player("claude-code", work), in_pauses(monkeypatch, limits, nothing)
    me.transcript = str(tmp_path / "late.jsonl")
    Player("codex", work).edits("notes.md", "beta", "PEER")
    edit = {"file_path": str(work / "notes.md"), "old_string": "gamma", "new_string": "x"}
    assert "was changed by" in me.ask("Edit", edit, id="call_now").notice and not paused


def test_what_was_read_may_be_removed_with_its_folder(work: Path, tmp_path: Path) -> None:
    me, peer = Player("claude-code", work), Player("codex", work)
    told = Blocks(tmp_path / "transcripts")
    me.transcript = str(told.path)
    peer.edits("sub/deep.md", "beta", "PEER")
    told.reads(work / "sub" / "deep.md")
    assert me.runs("rm -rf sub") == ""


@pytest.mark.parametrize("level", ["notice", "keep"])
def test_without_a_transcript_the_client_is_not_trusted(level: str, work: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", level)
    me, peer = Player("claude-code", work), Player("codex", work)
    me.transcript = str(tmp_path / "none.jsonl")
    peer.edits("notes.md", "beta", "PEER")
    verdict = me.check("Write", {"file_path": str(work / "notes.md"), "content": "MINE\n"})
    assert (verdict.denial is not None) == (level != "notice")
    assert "was changed by" in verdict.notice or level != "notice"


def test_a_read_after_the_check_and_before_the_write_saw_nothing(world: World) -> None:
    """A hook runs before its call: meanwhile another session may read the file as it was."""
    writer, reader = world.session("claude-code"), world.session("codex")
    assert not writer.ask("Bash", {"command": "printf 'all new\\n' > notes.md"}).denied
    assert reader.bash("cat notes.md").silent
    world.write("notes.md", "all new\n")
    # another text than the writer's, so that a whole write would destroy that
    assert reader.bash("printf 'of its own\\n' > notes.md").denied
    assert reader.bash("cat notes.md").silent and reader.bash("printf 'of its own\\n' > notes.md").silent
