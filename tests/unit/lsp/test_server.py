"""The language server over real pipes: its hints in an editor, and actions that it never takes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editor import ALL, Editor, uri_of
from support.world import TEXT, World

from swarm_mcp.view import lsp
from swarm_mcp.view.lsp import Desk, opened, path_of

pytestmark = pytest.mark.slow

NOTES = "notes.md"


@pytest.fixture
def editor(world: World) -> Iterator[Editor]:
    editor = Editor(world.repo)
    yield editor
    assert editor.close() == (0, "")


def test_a_lock_is_shown_while_the_file_is_open(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    uri = editor.open(world.repo / NOTES)
    world.lock(peer, NOTES, "renumbering\nmigrations")
    assert editor.hints(uri, lambda said: said == [f"1-1: held by codex {peer.id[:8]}: renumbering migrations"])
    assert world.swarm("unlock", NOTES, as_=peer).code == 0
    assert editor.hints(uri, lambda said: not said) == []


def test_lines_of_sessions_are_shown_where_they_are_in_the_editor(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    path = world.repo / NOTES
    uri = editor.open(path)
    peer.edit(NOTES, "beta", "one\ntwo")
    assert editor.hints(
        uri, lambda said: said == [f"2-2: codex {peer.id[:8]} changed lines 2 to 3 on the disk, not committed"]
    )
    editor.type(uri, path.read_text())  # the editor reads it again
    theirs = f"2-3: codex {peer.id[:8]} changed lines 2 to 3, not committed"
    assert editor.hints(uri, lambda said: said == [theirs])
    editor.type(uri, "typed\nmore\n", {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}})
    assert editor.hints(uri, lambda said: said and said[0].startswith("4-5: "))[0].endswith(
        "changed lines 4 to 5, not committed"
    )
    editor.type(uri, "alpha\ngamma\n")
    assert editor.hints(uri, lambda said: not said) == []
    editor.type(uri, path.read_text())
    assert editor.hints(uri, len)
    world.git("commit", "-qam", "theirs")
    assert editor.hints(uri, lambda said: not said) == []


def test_removed_lines_and_files_without_lines_have_a_hint(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    peer.bash(f"sed -i /beta/d {NOTES}")
    uri = editor.open(world.repo / NOTES)
    assert editor.hints(uri, lambda said: said == [f"2-2: codex {peer.id[:8]} removed 1 line here, not committed"])


@pytest.mark.parametrize(
    ("encodings", "width"), [(["utf-16"], 3), (["utf-8", "utf-16"], 5), (["utf-32"], 2), (None, 3)], ids=str
)
@pytest.mark.thorough
def test_columns_count_as_the_editor_counts(encodings: list[str] | None, width: int, world: World) -> None:
    peer = world.session("codex")
    peer.edit(NOTES, "beta", "\U0001f40dx")
    editor = Editor(world.repo, {**ALL, **({"general": {"positionEncodings": encodings}} if encodings else {})})
    uri = editor.open(world.repo / NOTES)
    editor.hints(uri, len)
    assert editor.shown[uri][0]["range"] == {
        "start": {"line": 1, "character": 0}, "end": {"line": 1, "character": width}
    }  # fmt: skip
    assert editor.close() == (0, "")


def test_lenses_and_their_commands(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    peer.edit(NOTES, "beta", "theirs")
    world.lock(peer, NOTES, "busy")
    uri = editor.open(world.repo / NOTES)
    editor.hints(uri, lambda said: len(said) == 2)
    lenses = editor.ask("textDocument/codeLens", textDocument={"uri": uri})
    assert [lens["command"]["title"] for lens in lenses] == ["swarm: why", "swarm: blame"]
    why, blame = (
        editor.ask(
            "workspace/executeCommand", command=lens["command"]["command"], arguments=lens["command"]["arguments"]
        )
        for lens in lenses
    )
    assert f"exclusive, held by codex {peer.id[:8]}" in why
    assert f"codex {peer.id[:8]}" in blame and "theirs" in blame and "alpha" not in blame
    assert (3, why) in editor.messages and (3, blame) in editor.messages
    assert editor.requests.count("workspace/codeLens/refresh") >= 1
    free = editor.open(world.write("free.md", TEXT))
    assert editor.ask("textDocument/codeLens", textDocument={"uri": free}) == []


def test_a_save_is_warned_about_once_for_each_reason(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    path = world.repo / NOTES
    uri = editor.open(path)
    editor.type(uri, "mine\n")
    world.lock(peer, NOTES, "busy")
    for _ in range(2):
        assert editor.ask("textDocument/willSaveWaitUntil", textDocument={"uri": uri}, reason=1) is None
    assert editor.messages == [(2, f"swarm: {NOTES} is held by codex {peer.id[:8]}: busy")]
    assert world.swarm("unlock", NOTES, as_=peer).code == 0
    peer.edit(NOTES, "beta", "theirs")

    def is_warned() -> bool:  # on a busy machine a save is not held up until git has answered
        editor.ask("textDocument/willSaveWaitUntil", textDocument={"uri": uri}, reason=1)
        return len(editor.messages) > 1

    editor.until(is_warned, lambda: editor.messages)
    assert editor.messages[1:] == [
        (
            2,
            f"swarm: {NOTES} was changed on the disk by codex {peer.id[:8]} since this editor read it: saving replaces that",
        )
    ]
    assert path.read_text() == TEXT.replace("beta", "theirs")


def test_a_save_is_a_person_s_at_once(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    path = world.repo / NOTES
    uri = editor.open(path)
    peer.edit("other.md", "", "x")
    peer.ask("Bash", {"command": "./build --all"})  # it runs, and may write anything
    mine = TEXT.replace("beta", "mine")
    editor.type(uri, mine)
    editor.save(uri, path, mine)

    def is_noted() -> bool:
        (row,) = world.swarm("blame", NOTES, "--uncommitted").json["lines"]
        return [author["name"] for author in row["authors"]] == ["a person"]

    editor.until(is_noted, lambda: world.ground.swarm("blame", NOTES).out)
    assert "a person's work" in peer.bash(f"git checkout -- {NOTES}").words
    assert editor.messages == []


def test_a_look_at_the_disk_between_a_write_and_its_message_hides_no_save(world: World) -> None:
    world.session("codex").edit("other.md", "", "x")
    path = world.repo / NOTES
    document = opened(uri_of(path), TEXT)
    assert document is not None
    document.text = TEXT.replace("beta", "mine")
    document.begin_save()
    path.write_text(document.text)
    document.compare()  # a poll, or hints after a pause
    assert lsp.note(document)
    document.begin_save()
    document.compare()
    assert not lsp.note(document)  # the second save changed nothing


def test_saves_of_an_agent_s_editor_are_not_a_person_s(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = world.session("codex")
    peer.ask("Bash", {"command": "./build --all"})
    monkeypatch.setenv("CLAUDECODE", "1")
    editor = Editor(world.repo)
    uri = editor.open(world.repo / NOTES)
    editor.type(uri, "alpha\nmine\n")
    editor.save(uri, world.repo / NOTES, "alpha\nmine\n")
    monkeypatch.delenv("CLAUDECODE")
    assert editor.close() == (0, "")
    assert not list(world.folder.glob("**/person.undo"))


OTHERS = {
    "no checkout": "file:///{folder}/loose.md",
    "an unnamed buffer": "untitled:Untitled-1",
    "git's own file": "file:///{folder}/repo/.git/COMMIT_EDITMSG",
    "a folder": "file:///{folder}/repo",
    "another machine": "file://server/share/notes.md",
    "a NUL": "file:///{folder}/repo/a%00b",
    "nothing": "",
}


@pytest.mark.parametrize("uri", OTHERS.values(), ids=OTHERS)
@pytest.mark.thorough
def test_files_of_no_checkout_are_ignored(uri: str, editor: Editor, world: World) -> None:
    uri = uri.format(folder=world.folder)
    document = {"uri": uri, "languageId": "text", "version": 1, "text": "x"}
    editor.tell("textDocument/didOpen", textDocument=document)
    editor.tell("textDocument/didSave", textDocument={"uri": uri})
    assert editor.ask("textDocument/codeLens", textDocument={"uri": uri}) == []
    assert editor.ask("textDocument/willSaveWaitUntil", textDocument={"uri": uri}, reason=1) is None
    editor.tell("textDocument/didClose", textDocument={"uri": uri})
    assert editor.shown == {} and editor.messages == []


@pytest.mark.thorough
def test_a_malformed_uri_is_a_line_in_the_editor_s_log(world: World) -> None:
    editor = Editor(world.repo)
    document = {"uri": "http://[", "languageId": "text", "version": 1, "text": "x"}
    editor.tell("textDocument/didOpen", textDocument=document)  # pygls itself does not understand it
    assert editor.ask("textDocument/codeLens", textDocument={"uri": "http://["}) == []
    assert editor.shown == {} and editor.messages == []
    code, log = editor.close()
    assert (code, log.count("\n")) == (0, 1) and "Invalid IPv6 URL" in log


@pytest.mark.thorough
def test_odd_files_and_names(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    odd = world.write("odd #1; é%.md", TEXT)
    (world.repo / "link.md").symlink_to(NOTES)
    big = world.write("big.md", "x\n" * 600_000)
    for name in (odd.name, NOTES, big.name):
        world.lock(peer, name)
    for path in (odd, world.repo / "link.md", big):
        assert editor.hints(editor.open(path), len)[0].startswith("1-1: held by codex"), path
    new = editor.open(world.repo / "new.md", "typed")
    peer.write("new.md", "a\nb\n")
    editor.type(new, "a\nb\n")
    theirs = f"1-2: codex {peer.id[:8]} changed lines 1 to 2, not committed"
    assert editor.hints(new, lambda said: said == [theirs])


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: x\r\n\r\n",
        b"what?\r\n\r\n",
        b"Content-Length: 2\r\n\r\n[]",
        b'Content-Length: 17\r\n\r\n{"jsonrpc":"2.0"}',
        b"Content-Length: 4\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n\xff\xfe\x00\x01",
    ],
    ids=repr,
)
@pytest.mark.thorough
def test_broken_input_does_no_harm(sent: bytes, world: World) -> None:
    editor = Editor(world.repo)
    uri = editor.open(world.repo / NOTES)
    editor.write(sent)
    editor.tell("textDocument/didChange", textDocument={"uri": uri, "version": 2}, contentChanges=[
        {"text": "x", "range": {"start": {"line": 900, "character": 7}, "end": {"line": 901, "character": 2}}}
    ])  # fmt: skip
    editor.tell("textDocument/didSave", textDocument=7)
    assert "error" in editor.answer("textDocument/unknown", {})
    assert "error" in editor.answer("workspace/executeCommand", {"command": "swarm.why", "arguments": [1, 2, 3]})
    assert (
        editor.ask("workspace/executeCommand", command="swarm.why", arguments=["untitled:x"]) == "untitled:x is no file"
    )
    world.lock(world.session("codex"), NOTES)
    assert editor.hints(uri, len)
    assert editor.messages == []
    assert editor.close()[0] == 0


def test_it_ends_with_its_editor(world: World) -> None:
    editor = Editor(world.repo)
    editor.open(world.repo / NOTES)
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    editor.process.stdin = None
    assert editor.ended() == (1, "")


def test_exit_without_shutdown_is_a_failure(world: World) -> None:
    editor = Editor(world.repo)
    editor.tell("exit")
    assert editor.ended() == (1, "")


def test_the_store_is_only_read(editor: Editor, world: World) -> None:
    peer = world.session("codex")
    peer.edit(NOTES, "beta", "theirs")
    world.lock(peer, NOTES)
    before = _rows(world)
    uri = editor.open(world.repo / NOTES)
    editor.hints(uri, lambda said: len(said) == 2)
    editor.type(uri, "mine\n")
    editor.save(uri, world.repo / NOTES, "mine\n")
    editor.hints(uri, lambda said: "removed 1 line" in said[-1])
    assert _rows(world) == before


def _rows(world: World) -> object:
    tables = [row["name"] for row in world.sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {table: world.sql(f"SELECT * FROM {table}") for table in tables}


def test_without_the_package_the_next_step_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pygls.lsp.server", None)
    monkeypatch.delitem(__import__("sys").modules, "swarm_mcp.view.lsp", raising=False)
    done = world.ground.swarm("lsp")
    assert done.code == 1 and done.err.count("\n") == 1
    assert "it needs the missing package pygls" in done.err and "[lsp]" in done.err


def test_uris_name_paths(tmp_path: Path) -> None:
    for name in ("a b", "é", "a#b", "a?b", "a%b", "a;b=c"):
        assert path_of(uri_of(tmp_path / name)) == str(tmp_path / name)
    assert path_of("file:///tmp/a#b?c") == "/tmp/a#b?c"


def test_what_is_under_way_when_the_editor_leaves_ends_in_silence() -> None:
    async def left() -> bool:
        desk = Desk("", False, print)
        desk.close()
        late = asyncio.create_task(desk.run(print, "not said"))
        await asyncio.wait([late])
        return late.cancelled()

    assert asyncio.run(left()), "an exception would be text in the editor's log"
