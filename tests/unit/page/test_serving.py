"""The process of the page: its address, its stream of changes, its end, and its restraint."""

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from support.fixtures import SWARM, Ground, time_limit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("usual_signals")]


class Served:
    """A served page: its `address`, and the answers for a browser that has opened it."""

    def __init__(self, ground: Ground, *words: str):
        self.process = subprocess.Popen(
            [*SWARM, "page", *words], cwd=ground.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        self.said = self.process.stdout.readline().strip()
        self.address = json.loads(self.said)["url"] if "--json" in words else self.said
        self.cookie = ""
        self._opened: list[http.client.HTTPConnection | http.client.HTTPResponse] = []

    def get(self, path: str) -> http.client.HTTPResponse:
        place = urlsplit(self.address)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
        self._opened.append(connection)
        connection.request("GET", path, headers={"cookie": self.cookie})
        answer = connection.getresponse()
        self._opened.append(answer)
        return answer

    def open(self) -> "Served":
        """Exchange the token for the cookie."""
        place = urlsplit(self.address)
        answer = self.get(f"{place.path}?{place.query}")
        assert answer.status == 303
        self.cookie = answer.getheader("set-cookie").partition(";")[0]
        return self

    def text(self, path: str = "/") -> str:
        answer = self.get(path)
        assert answer.status == 200
        return answer.read().decode()

    def close(self) -> None:
        for one in self._opened[::-1]:
            one.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its browser, too
        self.process.communicate()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def serve(ground: Ground):
    started: list[Served] = []

    def start(*words: str) -> Served:
        started.append(Served(ground, *(words or ("--no-open",))))
        return started[-1]

    yield start
    for one in started:
        one.close()


def wait_for_word(page: Served, stream: http.client.HTTPResponse, word: str) -> str:
    """Return the page's text once `word` is in it. The page is told of a change every 15 s in any case."""
    end = time.monotonic() + time_limit(60)
    while word not in (shown := page.text()):
        assert time.monotonic() < end, shown
        next_change(stream)
    return shown


def next_change(stream: http.client.HTTPResponse) -> str:
    while not (line := stream.readline().decode()).startswith("data:"):
        assert line
    return line


def test_it_prints_its_address_serves_and_ends_at_ctrl_c(ground: Ground, serve):
    page = serve()
    assert urlsplit(page.address).hostname == "127.0.0.1"
    assert page.get("/").status == 403
    assert "No session is here" in page.open().text()
    stream = page.get("/events")
    next_change(stream)
    assert page.end() == 0
    assert page.process.stderr.read() == ""


def test_its_address_for_programs_and_its_port(ground: Ground, serve):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    page = serve("--no-open", "--json", "--port", str(port))
    assert json.loads(page.said)["port"] == port == urlsplit(page.address).port
    second = ground.swarm("page", "--no-open", "--port", str(port))
    assert second.code == 1 and f"port {port} cannot be had" in second.err
    assert page.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_as_soon_as_it_has_said_its_address(ground: Ground, number):
    program = (
        "import os, sys; from swarm_mcp.view.page.app import serve\n"
        f"serve(0, False, lambda *_: os.kill(os.getpid(), {int(number)}), '', '', True)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ground.repo, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_commit_is_told_of_to_open_pages_and_asked_for_at_once(ground: Ground, serve, ann: dict):
    page = serve().open()
    stream = page.get("/events")
    next_change(stream)
    assert "why-it-is-held" not in page.text()
    ground.lock(ann, f"{ground.scope}/f", "why-it-is-held")
    wait_for_word(page, stream, "why-it-is-held")


def test_an_edit_that_nobody_locked_is_told_of(ground: Ground, serve):
    from support.sessions import write

    git = ["git", "-C", str(ground.repo), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    ground.session("ann")
    page = serve().open()
    stream = page.get("/events")
    next_change(stream)
    assert "edited-by-ann" not in page.text()
    file = f"{ground.scope}/edited-by-ann"
    assert write("claude-code", "ann", ground.scope, file).reason == ""
    with open(file, "a") as text:
        text.write("ann")
    wait_for_word(page, stream, "edited-by-ann")


def test_no_transaction_is_held_open_and_killing_it_loses_nothing(ground: Ground, serve, ann: dict):
    for number in range(20):
        ground.lock(ann, f"{ground.scope}/{number}")
    page = serve().open()
    streams = [page.get("/events") for _ in range(3)]
    for stream in streams:
        next_change(stream)
    assert "20 locks" in page.text()
    ground.lock(ann, f"{ground.scope}/another")
    with sqlite3.connect(ground.database) as writing:
        # Everything in the write-ahead log can be taken over, and the log emptied: there is no reader of an older
        # state.
        busy, *_ = writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy
    os.kill(page.process.pid, signal.SIGKILL)
    page.process.wait(timeout=60)
    assert ground.sql("PRAGMA integrity_check")[0]["integrity_check"] == "ok"
    assert len(ground.swarm("locks", "--json").json) == 21


def test_without_a_needed_package_it_says_what_to_install(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("swarm_mcp.view.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = ground.swarm("page", "--no-open")
    assert (done.code, done.out) == (1, "")
    assert "it needs the missing package jinja2" in done.err and "[page" in done.err


def test_a_store_that_is_made_or_replaced_later_is_followed(ground: Ground, serve):
    page = serve().open()
    stream = page.get("/events")
    next_change(stream)
    assert not os.path.exists(ground.database) and "No session is here" in page.text()
    ground.lock(ground.session("ann"), f"{ground.scope}/f", "in-the-first-store")
    wait_for_word(page, stream, "in-the-first-store")
    for name in os.listdir(os.path.dirname(ground.database)):
        if name.startswith(os.path.basename(ground.database)):
            os.unlink(os.path.join(os.path.dirname(ground.database), name))
    ground.lock(ground.session("bob"), f"{ground.scope}/f", "in-the-second-store")
    assert "in-the-first-store" not in wait_for_word(page, stream, "in-the-second-store")


def test_it_opens_the_browser_at_an_address_of_its_own(ground: Ground, serve, monkeypatch: pytest.MonkeyPatch):
    opened = ground.folder / "opened"
    browser = ground.folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened} && exec sleep 60\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    page = serve("--port", "0")
    wait_for(opened.exists)
    address = opened.read_text()
    # Others can read the browser's command line: its address opens the page once.
    assert address != page.address and urlsplit(address).port == urlsplit(page.address).port
    place = urlsplit(address)
    assert [page.get(f"/?{place.query}").status for _ in range(2)] == [303, 403]
    assert page.open().text()
    assert page.end() == 0
