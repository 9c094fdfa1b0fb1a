"""The pages of a file and of a session show uncommitted lines by author, as text."""

from __future__ import annotations

import os
from html import unescape

import pytest
from starlette.testclient import TestClient
from support.fixtures import wait_for
from support.world import World

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
    app = application(lambda: Store(os.environ["SWARM_DB_PATH"], read_only=True, adopts=False), keys, "")
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
    assert f"+2 codex {me.id[:8]}" in text and "<code>MINE</code>" in text
    assert "+3 a person: <code><script>alert(1)</script>" in text
    # The changed files of a checkout are found in a thread of their own.
    wait_for(lambda: "What it has not committed" in page("/session", scope=scope, id=me.id))
    assert "+1 −1" in page("/session", scope=scope, id=me.id)
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


def test_git_is_asked_again_only_after_a_change(world: World, monkeypatch) -> None:
    asked: list[object] = []
    uncommitted = owned.uncommitted
    monkeypatch.setattr(owned, "uncommitted", lambda *words: asked.append(words) or uncommitted(*words))
    world.write("notes.md", "mine\n")
    path, session = str(world.repo / "notes.md"), ("codex", "none")
    for _ in range(3):
        assert owned.shares(str(world.repo), session, [path] * 9) == []
    assert len(asked) == 1
    world.write("notes.md", "more\n")
    owned.shares(str(world.repo), session, [path])
    assert len(asked) == 2
