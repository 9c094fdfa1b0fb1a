"""Admission to the page in a browser: by its address only, and for no web page of another origin."""

import http.server
import threading

import pytest

from .chromium import FOREIGN_NAME

NOTE = "a-secret-note"


@pytest.fixture
def held(ground):
    ground.lock(ground.session("ann"), f"{ground.scope}/f", NOTE)


@pytest.fixture
def elsewhere():
    """Another web page of this machine, empty; its address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>another</title><link rel=icon href='data:,'>")

        def log_message(self, *_words) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_address_without_its_token_or_with_another_opens_nothing(held, browse, served):
    tab = browse()
    for path in ("/", "/?token=guessed", "/file?path=f", "/events"):
        answer = tab.page.goto(served.origin + path)
        assert answer.status == 403 and NOTE not in tab.page.content()
    tab.open().shows(NOTE)
    assert "token" not in tab.page.url
    assert browse(viewport={"width": 800, "height": 600}).page.goto(served.origin).status == 403  # another browser


def test_under_another_name_it_is_not_served(held, browse, served):
    tab = browse()
    for address in (served.origin, served.address):
        answer = tab.page.goto(address.replace("127.0.0.1", FOREIGN_NAME))
        assert answer.status == 421 and NOTE not in tab.page.content()


def test_another_web_page_reads_nothing_of_it(held, browse, served, elsewhere):
    tab = browse().open()
    tab.shows(NOTE)
    tab.page.goto(elsewhere)
    read = tab.page.evaluate(
        """async (origin) => {
            const tried = [];
            for (const given of [{credentials: 'include'}, {credentials: 'include', mode: 'no-cors'}, {method: 'POST', mode: 'no-cors'}])
                tried.push(await fetch(origin + '/', given).then((answer) => answer.text(), () => 'refused'));
            await new Promise((done) => {
                const script = document.createElement('script');
                script.onload = script.onerror = (event) => { tried.push(event.type); done(); };
                script.src = origin + '/static/live.js';
                document.body.append(script);
            });
            await new Promise((done) => {
                const stream = new EventSource(origin + '/events', {withCredentials: true});
                stream.onmessage = stream.onerror = (event) => { tried.push(event.type); stream.close(); done(); };
            });
            return tried;
        }""",
        served.origin,
    )
    assert read == ["refused", "", "", "error", "error"] or read == ["refused", "refused", "refused", "error", "error"]
    frame = tab.page.evaluate(
        """(origin) => new Promise((done) => {
            const frame = document.createElement('iframe');
            frame.onload = () => done(frame.contentDocument === null);
            frame.src = origin + '/';
            document.body.append(frame);
        })""",
        served.origin,
    )
    assert frame and all(NOTE not in one.content() for one in tab.page.frames)
