"""The page in a browser: who may open it, what it lets a browser do, and what it shows of whom."""

from __future__ import annotations

import pytest
from support.fixtures import Ground

pytest.importorskip("jinja2", reason="pip install jinja2")

from starlette.testclient import TestClient

from swarm_mcp.page.access import HEADERS, Keys
from swarm_mcp.page.app import application
from swarm_mcp.store import Store

PORT = 4711
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"


@pytest.fixture
def keys() -> Keys:
    return Keys(PORT)


@pytest.fixture
def stranger(ground: Ground, keys: Keys):
    app = application(lambda: Store(ground.database, read_only=True, adopts=False), keys)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


@pytest.fixture
def client(stranger: TestClient, keys: Keys) -> TestClient:
    assert stranger.get(f"/?token={keys.shown}").status_code == 200
    return stranger


def test_the_token_is_exchanged_for_a_cookie(stranger, keys):
    assert stranger.get("/").status_code == stranger.get("/?token=other").status_code == 403
    answer = stranger.get(f"/?token={keys.shown}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and keys.shown.lower() not in cookie
    assert stranger.get("/").status_code == 200


def test_the_token_that_opens_a_browser_does_so_once(stranger, keys):
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
def test_only_this_machines_own_page_may_ask(client, keys, headers, status):
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    answer = client.get("/", headers={**headers, "cookie": cookies})
    assert answer.status_code == status
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert "'unsafe" not in answer.headers["content-security-policy"]


def test_it_can_only_be_read(client):
    assert {client.request(method, "/").status_code for method in ("POST", "PUT", "DELETE")} == {405}
    assert client.get("/static/page.css").status_code == 200 and client.get("/static/../app.py").status_code == 404


def test_who_holds_what_is_there_without_scripts_and_goes(ground, client):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    ground.lock(ann, f"{ground.scope}/f", "busy")
    shown = client.get("/").text
    assert "claude-code 5f0c2f6e" in shown and "busy" in shown and ">f<" in shown.replace("\n", "")
    with ground.store() as store:
        store.locks.release(ann, f"{ground.scope}/f")
    assert "busy" not in client.get("/").text
    part = client.get("/", headers={"hx-request": "true"}).text
    assert "<h1>" in part and "<html" not in part


def test_what_sessions_say_is_text(ground, client):
    ann, bob = ground.session("ann", HOSTILE), ground.session("bob")
    ground.lock(ann, f"{ground.scope}/{HOSTILE.replace('/', '')}", HOSTILE)
    ground.swarm("lock", f"{ground.scope}/{HOSTILE.replace('/', '')}", "--as", bob["id"])
    shown = client.get("/").text
    assert "&lt;script&gt;" in shown and "refused" in shown
    assert "<script>alert" not in shown and "<img" not in shown and "\u202e" not in shown


def test_of_very_many_locks_a_page_shows_some(ground, client):
    ann = ground.session("ann")
    for number in range(130):
        ground.lock(ann, f"{ground.scope}/{number}")
    shown = client.get("/", params={"scope": ground.scope}).text
    assert "130 locks" in shown and shown.count('<th scope="row">') == 101
