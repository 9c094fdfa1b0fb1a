"""The pages of a file and of a session show uncommitted lines by author, as text."""

import os
import re
from html import unescape

import pytest
from starlette.testclient import TestClient
from support.fixtures import wait_for
from support.world import World

from swarm_mcp.answers.people import People
from swarm_mcp.store import Store
from swarm_mcp.view.overview import owned
from swarm_mcp.view.page.access import Keys
from swarm_mcp.view.page.app import application

pytestmark = pytest.mark.slow
PORT = 4711
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2J"


@pytest.fixture
def page(world: World):
    """The page of a world's store, for an admitted browser: `page(path, **parameters)` returns its text."""
    keys = Keys(PORT)
    app = application(lambda: Store(os.environ["SWARM_DB_PATH"], read_only=True), keys, "")
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        assert client.get(f"/?token={keys.shown}").status_code == 200

        def get(path: str, /, **given: str) -> str:
            answer = client.get(path, params=given)
            assert answer.status_code == 200, answer.text
            return answer.text

        yield get


def test_each_uncommitted_line_of_a_file_has_its_owner(world: World, page) -> None:
    world.write("notes.md", f"alpha\nbeta\n{HOSTILE}\n")
    me = world.session("codex")
    me.edit("notes.md", "beta", "MINE")
    scope = str(world.repo)
    text = page("/file", scope=scope, path=str(world.repo / "notes.md"))
    assert "<script>alert" not in text and "\u202e" not in text and "\x1b" not in text
    text = unescape(text)
    rows = re.findall(
        r'<tr class="(added|removed) (\w+)"><td class="number">(\d+)</td>.*?<b class="tag">(\w)</b>.*?<td class="text">(.*?)</td></tr>',
        text,
    )
    mine, persons = [next(row for row in rows if word in row[4]) for word in ("MINE", "alert(1)")]
    assert (mine[0], mine[2], persons[1], persons[2]) == ("added", "2", "person", "3") and mine[1] != "person"
    owners = dict(re.findall(r'<b class="tag">(\w)</b> <svg.*?</svg> (.*?) <span', text))
    assert owners[mine[3]] == f"codex {me.id[:8]}" and owners[persons[3]] == "a person"
    # The changed files of a checkout are found in a thread of their own.
    wait_for(lambda: "What it has not committed" in page("/session", scope=scope, id=me.id))
    assert "<ins>+1</ins> <del>−1</del>" in page("/session", scope=scope, id=me.id)
    world.commit()
    # A rendering is kept for five seconds, if the store has not changed.
    wait_for(
        lambda: "Lines that are not committed" not in page("/file", scope=scope, path=str(world.repo / "notes.md"))
    )


def test_a_file_without_lines_is_named_with_its_reason(world: World, page) -> None:
    world.session("codex")
    (world.repo / "notes.md").write_bytes(b"a\0b")
    text = page("/file", scope=str(world.repo), path=str(world.repo / "notes.md"))
    assert "no lines to tell apart (binary); perhaps written by a person" in text


def test_no_content_is_shown_of_files_elsewhere_or_ignored_ones(world: World, page) -> None:
    world.session("codex")
    world.write(".gitignore", "secret\n")
    world.write("secret", "PASSWORD\n")
    (world.folder / "outside").write_text("PASSWORD\n")
    (world.repo / "link").symlink_to(world.folder / "outside")
    for path in (world.repo / "secret", world.folder / "outside", world.repo / "link"):
        for scope in (str(world.repo), str(world.folder), "/"):
            assert "PASSWORD" not in page("/file", scope=scope, path=str(path)), (path, scope)


def test_git_is_asked_again_only_after_a_change(world: World, listening) -> None:
    asked = listening(owned, "changed_files")
    world.write("notes.md", "mine\n")
    with world.store() as store:
        given = store, People(store), str(world.repo), str(world.repo / "notes.md")
        for _ in range(3):
            assert owned.owned_file(*given).lines[-1].text == "mine"
        assert len(asked) == 1
        world.write("notes.md", "more\n")
        assert owned.owned_file(*given).lines[-1].text == "more"
    assert len(asked) == 2


def test_of_a_long_file_the_lines_around_a_change_are_shown(world: World) -> None:
    world.write("notes.md", "".join(f"line {number}\n" for number in range(40)))
    world.commit()
    me = world.session("codex")
    me.edit("notes.md", "line 5\n", "FIVE\n")
    me.edit("notes.md", "line 30\n", "")
    with world.store() as store:
        found = owned.owned_file(store, People(store), str(world.repo), str(world.repo / "notes.md"))
    assert [(one.kind, one.number, one.text) for one in found.lines] == [
        ("gap", 3, ""), *(("same", at, f"line {at - 1}") for at in (3, 4, 5)),
        ("removed", 6, "line 5"), ("added", 6, "FIVE"), *(("same", at, f"line {at - 1}") for at in (7, 8, 9)),
        ("gap", 28, ""), *(("same", at, f"line {at - 1}") for at in (28, 29, 30)),
        ("removed", 31, "line 30"), *(("same", at, f"line {at}") for at in (31, 32, 33)),
    ]  # fmt: skip
    assert list(found.owners.values()) == [3]
