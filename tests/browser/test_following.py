"""The page follows changes, in every tab, and says so when its server has gone."""

import os
from contextlib import contextmanager

import pytest
from support.sessions import start, write

from swarm_mcp.agents.harness.events import message


def test_who_holds_what_appears_and_goes(ground, tab):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    tab.is_live()
    ground.lock(ann, f"{ground.scope}/src/a.py", "why-it-is-held")
    tab.shows("why-it-is-held")
    assert tab.page.get_by_role("rowheader", name="src/a.py").is_visible()
    with ground.store() as store:
        store.locks.release(ann, f"{ground.scope}/src/a.py")
    tab.shows_no("why-it-is-held")


def test_a_denial_appears(ground, tab):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    ground.lock(ann, f"{ground.scope}/a.py", "mine")
    start("claude-code", "bob", ground.scope)  # a busy machine does not record the denial of an unknown session
    tab.is_live()
    assert "swarm lock blocked" in write("claude-code", "bob", ground.scope, f"{ground.scope}/a.py").reason
    tab.shows("was refused")


@pytest.mark.thorough
def test_an_edit_that_nobody_locked_appears(ground, tab):
    ground.session("ann")
    tab.is_live()
    file = f"{ground.scope}/edited-by-ann"
    assert write("claude-code", "ann", ground.scope, file).reason == ""
    with open(file, "a") as text:
        text.write("ann")
    tab.shows("edited-by-ann")


def test_a_worker_is_followed_as_it_works(ground, tab):
    bob = ground.session("bob")
    record = ground.folder / "record.jsonl"
    record.write_text("")
    spec = {"id": "0a1b2c3d-run", "scope": ground.scope, "instance_id": bob.id, "harness": "codex", "cwd": ground.scope}
    with ground.store() as store:
        store.runs.begin({**spec, "record": str(record)})
    tab.go("/worker?id=0a1b2c3d-run").is_live()
    from swarm_hook_core.json_text import dumps

    with record.open("a") as lines:
        lines.write(dumps(message("assistant", "what the worker says").to_dict()) + "\n")
    tab.shows("what the worker says")
    with ground.store() as store:
        store.runs.update("0a1b2c3d-run", state="ended", cost_usd=0.25)
    tab.shows("$0.2500")


@contextmanager
def news_while_pressed(tab):
    """Press the mouse on its target during the block; changes made in here reach the browser."""
    tab.page.mouse.down()
    with tab.page.expect_response(lambda _: True):
        yield
    tab.page.mouse.up()


def test_a_link_that_is_pressed_is_followed_whatever_happens_meanwhile(ground, tab):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    ground.lock(ann, f"{ground.scope}/a.py")
    tab.is_live()
    tab.page.get_by_role("link", name="a.py").first.hover()
    with news_while_pressed(tab):
        ground.lock(ann, f"{ground.scope}/b.py", "why-it-is-held")
    tab.shows("Who holds it")


PRESS_AT_ONCE = """new MutationObserver((_, observer) => {
    window.pressed = document.querySelector("main a");
    if (!window.pressed) return;
    observer.disconnect();
    window.pressed.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}));
}).observe(document, {childList: true, subtree: true})"""


@pytest.mark.thorough
def test_a_link_that_is_pressed_before_the_page_is_whole_stays(ground, browse):
    ground.lock(ground.session("ann"), f"{ground.scope}/a.py")
    tab = browse()
    tab.page.add_init_script(PRESS_AT_ONCE)
    with tab.page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true") as asked_anew:
        tab.open()
    asked_anew.value.finished()
    tab.is_live()
    tab.page.evaluate("new Promise(done => setTimeout(done))")  # the answer's own event comes first
    assert tab.page.evaluate("window.pressed.isConnected")


@pytest.mark.thorough
def test_what_has_come_while_a_button_was_pressed_appears_once_it_is_not(ground, tab):
    ann = ground.session("ann", "claude-code session:5f0c2f6e")
    tab.is_live()
    tab.page.get_by_role("main").hover()
    with news_while_pressed(tab):
        ground.lock(ann, f"{ground.scope}/a.py", "why-it-is-held")
    tab.shows("why-it-is-held")


def test_what_is_read_and_where_stays_through_changes(ground, tab):
    ann = ground.session("ann")
    ground.lock(ann, f"{ground.scope}/first")
    tab.is_live().shows("first")
    tab.page.get_by_role("link", name="first").first.focus()
    ground.lock(ann, f"{ground.scope}/second")
    tab.shows("second")
    assert tab.page.evaluate("document.activeElement.textContent") == "first"


@pytest.mark.thorough
def test_twenty_tabs_follow_by_one_stream(ground, browse):
    ann = ground.session("ann")
    tabs = [browse().open("/") for _ in range(20)]  # a browser lets itself have six connections to a server
    for one in tabs:
        one.page.bring_to_front()
        one.is_live()
    ground.lock(ann, f"{ground.scope}/seen-by-all")
    for one in tabs:
        one.page.bring_to_front()
        one.shows("seen-by-all")
        assert one.complaints == []


def test_a_page_whose_server_has_gone_says_so_and_stays(ground, served, browse):
    ground.lock(ground.session("ann"), f"{ground.scope}/still-there")
    tab = browse().open().is_live()
    tab.shows("still-there")
    served.kill()
    tab.page.get_by_role("status").get_by_text("not connected").wait_for()
    tab.shows("still-there")
    assert not os.path.exists(f"{ground.database}-journal") and ground.integrity() == "ok"
