"""The page acts for a person: once a command was shown, and for a form of that very browser alone."""

import asyncio
import html
import os
import re
import signal

import pytest
from starlette.testclient import TestClient
from support.altered import Limits
from support.world import World

from swarm_mcp.store import Store
from swarm_mcp.view.page import app as page_app
from swarm_mcp.view.page.app import Keys, application

pytestmark = pytest.mark.slow
PORT = 4711
ORIGIN = f"http://127.0.0.1:{PORT}"


class Browser:
    """An admitted browser: `ask` reads a page, `send` sends the form that it shows."""

    def __init__(self, client: TestClient, keys: Keys):
        self.client = client
        client.cookies.clear()
        assert client.get(f"/?token={keys.shown}").status_code == 200
        self.cookies = dict(client.cookies)

    def ask(self, **given: str) -> str:
        return html.unescape(self.client.get("/do", params=given).text)

    def form(self, **given: str) -> dict[str, str]:
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.ask(**given)))

    def send(self, form: dict[str, str], **headers: str) -> tuple[int, str]:
        given = {"origin": ORIGIN, **headers}
        answer = self.client.post("/do", data=form, headers={name: one for name, one in given.items() if one})
        return answer.status_code, html.unescape(answer.text)


@pytest.fixture
def keys() -> Keys:
    return Keys(PORT)


@pytest.fixture
def browser(world: World, keys: Keys):
    app = application(lambda: Store(os.environ["SWARM_DB_PATH"], read_only=True), keys, is_persons=True)
    with TestClient(app, base_url=ORIGIN) as client:
        yield Browser(client, keys)


def held(world: World) -> list[str]:
    with world.store() as store:
        return [row["file"] for _, row in store.locks.walk(str(world.repo))]


def test_a_lock_is_released_once_the_person_has_seen_what_happens(world: World, browser: Browser):
    agent, path = world.session("codex", "agent0"), str(world.repo / "notes.md")
    world.lock(agent, "notes.md")
    asked = {"deed": "unlock", "scope": str(world.repo), "session": agent.id, "path": path}
    shown = browser.ask(**asked)
    assert "Release the lock on notes.md?" in shown and f"--as {agent.id} -- {path}" in re.sub("<[^>]*>", "", shown)
    assert held(world) == [path], "asking changes nothing"
    status, told = browser.send(browser.form(**asked))
    assert status == 200 and "Done." in told and held(world) == []
    status, told = browser.send(browser.form(**asked))
    assert "It was not done." in told and "was not locked" in told


def test_a_form_counts_from_its_own_browser_and_our_own_page_alone(world: World, browser: Browser, keys: Keys):
    agent, path = world.session("codex", "agent0"), str(world.repo / "notes.md")
    world.lock(agent, "notes.md")
    form = browser.form(deed="unlock", scope=str(world.repo), session=agent.id, path=path)
    refused = [
        browser.send({**form, "key": ""}), browser.send({**form, "key": keys.shown}),
        browser.send({name: one for name, one in form.items() if name != "key"}),
        browser.send(form, origin="http://evil.example"), browser.send(form, origin="null"),
        browser.send(form, origin=""), browser.send(form, origin=f"http://localhost:{PORT}"),
        browser.send(form, **{"sec-fetch-site": "same-site"}), browser.send(form, **{"sec-fetch-site": "cross-site"}),
    ]  # fmt: skip
    other = Browser(browser.client, keys)
    refused.append(other.send(form))  # a key of another browser
    other.client.cookies.clear()
    refused.append(other.send(form))
    assert {status for status, _ in refused} == {403} and held(world) == [path]
    assert other.client.post("/", headers={"origin": ORIGIN}).status_code == 405
    browser.client.cookies.update(browser.cookies)
    assert browser.send(form)[0] == 200 and held(world) == []


def test_what_is_no_command_of_the_page_is_refused(world: World, browser: Browser):
    scope, path = str(world.repo), str(world.repo / "notes.md")
    for given in (
        {"deed": "uninstall", "scope": scope}, {"deed": "unlock", "scope": scope, "session": "--all", "path": path},
        {"deed": "unlock", "scope": scope, "session": "a", "path": "notes.md"}, {"deed": "undo", "scope": "", "session": "a"},
        {"deed": "undo", "scope": scope, "session": "a b"}, {"deed": "restore", "scope": scope, "path": path, "id": "-x"},
    ):  # fmt: skip
        assert browser.client.get("/do", params=given).status_code == 400, given


def test_a_last_turn_is_undone_and_a_kept_content_restored(world: World, browser: Browser):
    agent, scope, path = world.session("codex", "agent0"), str(world.repo), str(world.repo / "notes.md")
    before = world.read("notes.md")
    agent.edit("notes.md", "alpha", "AGENT")
    asked = {"deed": "undo", "scope": scope, "session": agent.id}
    shown = browser.ask(**asked)
    assert "-AGENT" in shown and "+alpha" in shown and "AGENT" in world.read("notes.md")
    assert "Done." in browser.send(browser.form(**asked))[1] and world.read("notes.md") == before
    kept = browser.client.get("/kept", params={"scope": scope, "path": path}).text
    ids = re.findall(r'<th scope="row">(\w+)</th>', kept)
    assert ids and "codex" in kept
    done = [browser.send(browser.form(deed="restore", scope=scope, path=path, id=one))[1] for one in ids]
    assert all("Done." in one for one in done)


def test_a_holder_is_asked_and_a_worker_answered(world: World, browser: Browser):
    agent, scope, path = world.session("codex", "agent0"), str(world.repo), str(world.repo / "notes.md")
    world.lock(agent, "notes.md")
    with world.store() as store:
        me = store.instances.get(agent.id)
        task = store.tasks.request(me, {"type": "fix", "title": "T", "assignee": agent.id})["task"]
        store.tasks.claim(me, task.id, ignore_unread=True)
        store.questions.ask(me, task.id, "Which of the two?")
    now = browser.client.get("/", params={"scope": scope}).text
    assert "Which of the two?" in now and "1 needs you" in re.sub("<[^>]*>", "", now)
    asked = browser.form(deed="ask", scope=scope, path=path)
    assert "Done." in browser.send({**asked, "text": "two minutes"})[1]
    answer = browser.form(deed="answer", scope=scope, task=task.id)
    assert "Which of the two?" in browser.ask(deed="answer", scope=scope, task=task.id)
    assert "It was not done." in browser.send({**answer, "text": " "})[1]
    told = browser.send({**answer, "text": "--the newer one"})[1]
    assert "Done." in told, re.sub("<[^>]*>", "", told)
    with world.store() as store:
        assert [one.answer for one in store.questions.of_task(task.id)] == ["--the newer one"]
        assert "two minutes" in store.messages.peek(me)[-1]["content"]


def test_a_client_that_takes_nothing_is_let_go(limits: Limits, usual_signals: None):
    limits(page_app, CLIENT_SECONDS=0.3)
    ended = asyncio.Event()

    async def app(scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(50_000_000), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async def play() -> None:
        listens = page_app.listening(0)
        going = asyncio.ensure_future(page_app.serve_until_ended(app, listens, lambda: None))
        reader, writer = await asyncio.open_connection(*listens.getsockname(), limit=1)
        reader._transport.pause_reading()
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await asyncio.wait_for(ended.wait(), 60)
        os.kill(os.getpid(), signal.SIGINT)
        await going
        writer.close()

    asyncio.run(play())
