"""The page in a browser: its admission and limits, sessions, and uncommitted lines by author, as text."""

import html
import json
import os
import re
import time
from html import unescape

import pytest
from starlette.testclient import TestClient
from support.fixtures import Ground, wait_for
from support.world import World

from swarm_mcp.answers.people import People
from swarm_mcp.domain import Session
from swarm_mcp.errors import Deadlock, StoreUnavailable
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.view.overview import now
from swarm_mcp.view.overview.now import Line, Lines, Obstacle
from swarm_mcp.view.page.app import HEADERS, Keys, application
from swarm_mcp.view.page.rendering import environment

pytestmark = pytest.mark.slow


pytest.importorskip("jinja2", reason="pip install jinja2")

PORT = 4711
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"


def text_of(page: str) -> str:
    """Return the words of a page, without its drawings."""
    drawing = r'(?s)<svg class="timeline.*?\n</svg>\n'
    words = re.sub(r"</?(a|q|time|strong)\b[^>]*>", "", re.sub(drawing, "", page))
    words = re.sub(r"<[^>]*>", " ", words)
    return " ".join(html.unescape(words).split())


@pytest.fixture
def keys() -> Keys:
    return Keys(PORT)


@pytest.fixture
def stranger(ground: Ground, keys: Keys):
    app = application(lambda: Store(ground.database, read_only=True), keys)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


@pytest.fixture
def client(stranger: TestClient, keys: Keys) -> TestClient:
    assert stranger.get(f"/?token={keys.shown}").status_code == 200
    return stranger


def test_the_token_is_exchanged_for_a_cookie(stranger, keys: Keys):
    assert stranger.get("/").status_code == stranger.get("/?token=other").status_code == 403
    answer = stranger.get(f"/?token={keys.shown}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and keys.shown.lower() not in cookie
    assert stranger.get("/").status_code == 200


def test_the_token_that_opens_a_browser_does_so_once(stranger, keys: Keys):
    once = keys.once
    assert stranger.get(f"/?token={once}", follow_redirects=False).status_code == 303
    assert stranger.get(f"/?token={once}", follow_redirects=False).status_code == 403


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"host": "evil.example:4711"}, 421),
        ({"host": "127.0.0.1:80"}, 421),
        ({"host": f"localhost:{PORT}"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT}"}, 200),
    ],
)
@pytest.mark.sampled
def test_only_this_machines_own_page_may_ask(client: TestClient, keys: Keys, headers, status):
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    answer = client.get("/", headers={**headers, "cookie": cookies})
    assert answer.status_code == status
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert "'unsafe" not in answer.headers["content-security-policy"]


def test_it_can_only_be_read(client: TestClient):
    assert {client.request(method, "/").status_code for method in ("POST", "PUT", "DELETE")} == {405}
    assert client.get("/static/page.css").status_code == 200 and client.get("/static/../app.py").status_code == 404


def test_who_holds_what_is_there_without_scripts_and_goes(ground: Ground, client: TestClient, store: Store):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    ground.lock(ann, f"{ground.scope}/f", "busy")
    shown = client.get("/").text
    assert "claude-code 5f0c2f6e" in shown and "busy" in shown and ">f<" in shown.replace("\n", "")
    store.locks.release(ann, f"{ground.scope}/f")
    assert "busy" not in client.get("/").text
    part = client.get("/", headers={"hx-request": "true"}).text
    assert "<h1>" in part and "<html" not in part


def test_what_sessions_say_is_text(ground: Ground, client: TestClient):
    ann, bob = ground.session("ann", HOSTILE), ground.session("bob")
    ground.lock(ann, f"{ground.scope}/{HOSTILE.replace('/', '')}", HOSTILE)
    ground.swarm("lock", f"{ground.scope}/{HOSTILE.replace('/', '')}", "--as", bob["id"])
    shown = client.get("/").text
    assert "&lt;script&gt;" in shown and "refused" in shown
    assert "<script>alert" not in shown and "<img" not in shown and "\u202e" not in shown


@pytest.mark.slow
def test_of_very_many_locks_a_page_shows_some(ground: Ground, client: TestClient, ann: dict):
    for number in range(130):
        ground.lock(ann, f"{ground.scope}/{number}")
    shown = client.get("/", params={"scope": ground.scope}).text
    assert "130 locks" in shown and shown.count('<th scope="row">') == 100


def lock_and_wait(ground: Ground, store: Store, *names: str) -> list[Session]:
    """The first of these sessions holds ``f``, the others wait for it in turn."""
    sessions = [ground.session(name, f"claude-code session:{name}") for name in names]
    ground.lock(sessions[0], f"{ground.scope}/f", "busy")
    for one in sessions[1:]:
        assert LockWait(one, request(one, [f"{ground.scope}/f"]), 60).advance(store) is None
    return sessions


def test_the_timeline_tells_what_happened_in_words_and_in_a_picture(ground: Ground, client: TestClient, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")  # stealing is for people alone
    ann, bob = (ground.session(name, f"claude-code session:{name}") for name in ("ann", "bob"))
    file = f"{ground.scope}/f"
    ground.lock(ann, file, "mine")
    assert ground.swarm("lock", file, "--as", bob.id).code == 1
    assert ground.swarm("transfer", file, "--to", bob.id, "--as", ann.id).code == 0
    assert ground.swarm("steal", file, "--force", "--reason", "it hangs", "--as", ann.id).code == 0
    shown = client.get("/timeline").text
    words = text_of(shown)
    for told in (
        "claude-code ann locked f: mine",
        "claude-code bob was refused f: held by claude-code ann",
        "claude-code ann handed f over to claude-code bob",
        "claude-code bob got f from claude-code ann",
        "claude-code ann took f by force from claude-code bob: it hangs",
        "claude-code bob lost f to claude-code ann, who took it by force",
    ):
        assert told in words, words
    assert shown.count('<text class="lane"') == 2
    assert 'class="mark denied"' in shown and 'class="mark stolen"' in shown
    assert 'line class="passage given" x1="' in shown and 'line class="passage stolen"' in shown
    assert "style=" not in shown and "<script>" not in shown


def test_the_timeline_around_a_moment_leaves_out_what_was_before_and_after(ground: Ground, client: TestClient, ann):
    ground.lock(ann, f"{ground.scope}/old", "note-of-old")
    ground.sql("UPDATE events SET created_at = created_at - 7200")
    ground.lock(ann, f"{ground.scope}/new", "note-of-new")
    now = int(ground.sql("SELECT max(created_at) AS at FROM events")[0]["at"])
    around = text_of(client.get("/timeline", params={"at": now - 7200, "span": 300}).text)
    assert "note-of-old" in around and "note-of-new" not in around and "Later" in around
    latest = text_of(client.get("/timeline").text)
    assert "note-of-new" in latest and "locked old" not in latest and "Later" not in latest
    day = text_of(client.get("/timeline", params={"span": 86400, "scope": ground.scope}).text)
    assert "note-of-old" in day and "note-of-new" in day
    for odd in ({"at": "x"}, {"span": "-1"}, {"at": 1, "span": 10**30}, {"at": 2**39}, {"event": "e"}):
        assert client.get("/timeline", params=odd).status_code == 200


def test_a_timeline_of_six_minutes_is_drawn_on_six_minutes(ground: Ground, client: TestClient):
    ground.lock(ground.session("ann"), f"{ground.scope}/migrations/**", "")
    ground.sql("UPDATE events SET created_at = created_at - 340")
    shown = client.get("/timeline", params={"scope": ground.scope}).text
    begin = re.search(r"<p>(\S+ \S+) to now", shown)
    assert begin and 300 < time.time() - time.mktime(time.strptime(begin[1], "%Y-%m-%d %H:%M:%S")) < 500
    assert environment().filters["last"]("/w/migrations/**") == "migrations/**"


def test_lines_show_who_waits_behind_whom(ground: Ground, client: TestClient, store: Store):
    lock_and_wait(ground, store, "ann", "bob", "cid")
    words = text_of(client.get("/queues").text)
    assert "claude-code bob f in repo" in words and "claude-code ann, who holds f" in words
    assert "claude-code bob, who came before" in words
    assert "waited for" in client.get("/timeline").text
    assert "No session waits" in client.get("/queues", params={"scope": "/elsewhere"}).text


def test_circles_are_marked(ground: Ground, client: TestClient, monkeypatch: pytest.MonkeyPatch, store: Store):
    ann, bob = lock_and_wait(ground, store, "ann", "bob")
    ground.lock(bob, f"{ground.scope}/g")
    # The store refuses a circle; one made by another program is shown all the same.
    ground.sql("UPDATE swarm_waiters SET instance_id = instance_id")
    shown = Lines([line_of(ann, bob), line_of(bob, ann)], 0, [[ann.id, bob.id]])
    monkeypatch.setattr("swarm_mcp.view.page.views.lines", lambda *_: shown)
    words = text_of(client.get("/queues").text)
    assert "claude-code ann waits for claude-code bob waits for claude-code ann" in words
    assert words.count("(in a circle)") == 2


def line_of(who: Session, other: dict) -> Line:
    obstacles = (Obstacle(other.id, "claude-code bob", "", "/f", "lock"),)
    return Line(1, who.scope, who.id, "claude-code ann", "", "exclusive", ("/f",), 3.0, None, False, obstacles)


def test_who_was_refused_since_it_would_have_closed_a_circle_stands_among_the_lines(ground: Ground, client, store):
    ann, bob = lock_and_wait(ground, store, "ann", "bob")
    ground.lock(bob, f"{ground.scope}/g")
    with pytest.raises(Deadlock):
        LockWait(ann, request(ann, [f"{ground.scope}/g"]), 60).advance(store)
    words = text_of(client.get("/queues").text)
    assert "claude-code ann was refused g: it would have waited in a circle" in words


@pytest.mark.parametrize("path", ["/", "/timeline", "/timeline?span=86400", "/queues"])
def test_every_link_leads_somewhere_and_nothing_needs_scripts(ground: Ground, client: TestClient, path, store: Store):
    lock_and_wait(ground, store, "ann", "bob")
    assert ground.swarm("lock", f"{ground.scope}/f", "--as", ground.session("cid").id).code == 1
    page = client.get(path).text
    links = set(re.findall(r'(?:href|src)="([^"]+)"', page))
    assert links and all(client.get(html.unescape(link)).status_code == 200 for link in links)
    assert not re.search(r"\son\w+=|javascript:|style=", page)


@pytest.mark.parametrize("path", ["/", "/timeline", "/queues"])
def test_strangers_have_no_names_and_no_notes(ground: Ground, keys: Keys, path, store: Store):
    ann, bob = ground.session("ann", "identity:a ann"), ground.session("bob", "identity:b secret-name")
    ground.lock(bob, f"{ground.scope}/f", "secret-note")
    assert LockWait(ann, request(ann, [f"{ground.scope}/f"]), 60).advance(store) is None
    app = application(lambda: Store(ground.database, read_only=True), keys, "a")
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        shown = client.get(f"/?token={keys.shown}") and client.get(path).text
    assert "ann" in shown and "secret" not in shown


def test_all_checkouts_of_the_machine_are_on_one_page(ground: Ground, client: TestClient, limits):
    places = []
    for name in ("one", "two", "three"):
        (ground.folder / name / ".git").mkdir(parents=True)
        session = ground.session(name, directory=str(ground.folder / name))
        ground.lock(session, f"{session.scope}/f", f"note-{name}")
        places.append(session.scope)
    words = text_of(client.get("/").text)
    assert "Checkouts of this machine" in words and all(f"{place} 1 1 0 0" in words for place in places)
    assert all(f"note-{name}" in words for name in ("one", "two", "three"))
    alone = text_of(client.get("/", params={"scope": places[0]}).text)
    assert "note-one" in alone and "note-two" not in alone and "Checkouts of this machine" not in alone
    limits("swarm_mcp.view.page.views", MOST_CHECKOUTS=2)
    words = text_of(client.get("/queues").text) and text_of(client.get("/", params={"again": "1"}).text)
    assert "There are more checkouts" in words
    assert len([name for name in ("one", "two", "three") if f"note-{name}" in words]) == 2


def test_a_store_that_cannot_be_read_is_said(ground: Ground, keys: Keys):
    def fails() -> Store:
        raise StoreUnavailable("the store is kept by another <b>program</b>")

    with TestClient(application(fails, keys), base_url=f"http://127.0.0.1:{PORT}") as client:
        answer = client.get(f"/?token={keys.shown}")
    assert answer.status_code == 503
    assert "the store is kept by another &lt;b&gt;program" in answer.text


@pytest.mark.parametrize(
    "kind, payload, words",
    [
        ("lock_released", {"released": 1}, "ann released f"),
        ("lock_released", {"released": 1, "reason": "lapsed"}, "ann showed no life for too long: its lock on f lapsed"),
        ("lock_released", {"released": 1, "reason": "reclaimed"}, "ann had gone: its lock on f was removed"),
        ("lock_released", {"released": 1, "reason": "turn_ended"}, "ann ended its turn, and with it its lock on f"),
        ("lock_released", {"released": 1, "reason": "transferred", "to": "bob"}, "ann handed f over to bob"),
        ("lock_acquired", {"waited": 30}, "ann locked f after waiting 30 s"),
        ("lock_acquired", {"was": "exclusive"}, "ann renewed its lock on f"),
        ("lock_acquired", {"was": "exclusive", "mode": "shared"}, "ann now holds f shared"),
        ("lock_requested", {"holder": "bob", "content": "please"}, "ann asked bob for f: please"),
        ("lock_breached", {"holder": "bob"}, "ann was told of f: it changed what bob holds"),
        ("lock_denied", {"holder": "bob"}, "ann was refused f: held by bob"),
        (
            "write_denied",
            {"holder": "bob", "reason": "uncommitted", "deed": "remove"},
            "ann was refused f: it would remove what bob changed and has not committed",
        ),
        ("write_denied", {"holder": "bob", "reason": "moment"}, "ann was refused f: bob was writing it at that moment"),
        (
            "write_denied",
            {"holder": "bob", "reason": "sweep", "deed": "put aside", "command": "git stash", "also": ["/g"]},
            "ann was refused f: `git stash` would put aside what bob changed and has not committed, and 1 more file",
        ),
        (
            "write_denied",
            {"reason": "person", "deed": "throw away", "command": "git checkout ."},
            "ann was refused f: `git checkout .` would throw away a person's uncommitted work",
        ),
        ("lock_deadlock", {}, "ann was refused f: it would have waited in a circle"),
        ("restored", {}, "ann restored f"),
    ],
)
@pytest.mark.sampled
def test_everything_that_happens_to_a_lock_has_a_sentence(ground: Ground, client: TestClient, kind, payload, words):
    people = {name: ground.session(name, f"claude-code session:{name}").id for name in ("ann", "bob")}
    payload = {name: people.get(value, value) if isinstance(value, str) else value for name, value in payload.items()}
    ground.sql(
        "INSERT INTO events (scope, type, actor, subject, payload, created_at) VALUES (?, ?, ?, ?, ?, unixepoch())",
        ground.scope, f"context.{kind}", people["ann"], f"{ground.scope}/f", json.dumps(payload),
    )  # fmt: skip
    pages = [("/timeline", {}), ("/file", {"path": "f"}), *([("/", {})] if kind.endswith("_denied") else [])]
    for address, asked in pages:
        shown = client.get(address, params={"scope": ground.scope, **asked}).text
        assert words in text_of(shown).replace("claude-code ", ""), address


OWNED_HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2J"


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
    world.write("notes.md", f"alpha\nbeta\n{OWNED_HOSTILE}\n")
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
    asked = listening(now, "changed_files")
    world.write("notes.md", "mine\n")
    with world.store() as store:
        given = store, People(store), str(world.repo), str(world.repo / "notes.md")
        for _ in range(3):
            assert now.owned_file(*given).lines[-1].text == "mine"
        assert len(asked) == 1
        world.write("notes.md", "more\n")
        assert now.owned_file(*given).lines[-1].text == "more"
    assert len(asked) == 2


def test_of_a_long_file_the_lines_around_a_change_are_shown(world: World) -> None:
    world.write("notes.md", "".join(f"line {number}\n" for number in range(40)))
    world.commit()
    me = world.session("codex")
    me.edit("notes.md", "line 5\n", "FIVE\n")
    me.edit("notes.md", "line 30\n", "")
    with world.store() as store:
        found = now.owned_file(store, People(store), str(world.repo), str(world.repo / "notes.md"))
    assert [(one.kind, one.number, one.text) for one in found.lines] == [
        ("gap", 3, ""), *(("same", at, f"line {at - 1}") for at in (3, 4, 5)),
        ("removed", 6, "line 5"), ("added", 6, "FIVE"), *(("same", at, f"line {at - 1}") for at in (7, 8, 9)),
        ("gap", 28, ""), *(("same", at, f"line {at - 1}") for at in (28, 29, 30)),
        ("removed", 31, "line 30"), *(("same", at, f"line {at}") for at in (31, 32, 33)),
    ]  # fmt: skip
    assert list(found.owners.values()) == [3]
