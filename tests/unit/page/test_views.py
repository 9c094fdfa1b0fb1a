"""The pages about tasks and messages, workers, files and sessions: their content as text, in bounds, with links."""

import gc
import json
import os
import re
from html import unescape

import pytest
from starlette.testclient import TestClient
from support.fixtures import Ground

from swarm_hook_core.naming import UNNAMED
from swarm_mcp.agents.harness.events import Event, message, tool_end, tool_start
from swarm_mcp.locking.acquisition import LockWait
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request as wanted_by
from swarm_mcp.view.overview.cards import LAST_BYTES
from swarm_mcp.view.page import views
from swarm_mcp.view.page.app import VIEWS, Keys, application
from swarm_mcp.view.page.rendering import address

pytestmark = pytest.mark.slow
PORT = 4711
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2J"


class Pages:
    """The answers to an admitted browser."""

    def __init__(self, client: TestClient):
        self._client = client

    def any(self, path: str, /, **given):
        """Return the answer, an error too."""
        return self._client.get(path, params=given)

    def __call__(self, path: str, status: int = 200, /, **given) -> str:
        """The text of a page."""
        answer = self.any(path, **given) if given else self._client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text


@pytest.fixture
def page(ground: Ground, request: pytest.FixtureRequest):
    keys = Keys(PORT)
    viewer = getattr(request, "param", "")
    app = application(lambda: Store(ground.database, read_only=True), keys, viewer)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        assert client.get(f"/?token={keys.shown}").status_code == 200
        yield Pages(client)


def links(text: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"]*)"', text)]


def words(text: str) -> str:
    """Return the readable text of a page."""
    main = text.partition("<main")[2].partition(">")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def is_tame(text: str) -> bool:
    return "<script>alert" not in text and "<img" not in text and "\u202e" not in text and "\x1b" not in text


def run(ground: Ground, worker, **columns) -> dict:
    spec = {
        "id": "0a1b2c3d-run",
        "scope": ground.scope,
        "instance_id": worker.id,
        "harness": "codex",
        "cwd": ground.scope,
    }
    with ground.store() as store:
        return store.runs.begin({**spec, **columns})


def record(ground: Ground, *events: Event) -> str:
    """Add events to the record of a run; its path."""
    path = ground.folder / "records" / "run" / "20261123T000000Z-run.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lines:
        lines.writelines(json.dumps(one._replace(at=1.0).to_dict()) + "\n" for one in events)
    return str(path)


def said(text: str) -> Event:
    return message("assistant", text)


def test_tasks_and_messages_of_a_checkout(ground: Ground, page, store: Store):
    ann, bob = ground.session("ann", "claude-code session:aaaa1111"), ground.session("bob", "codex session:bbbb2222")
    task = store.tasks.request(ann, {"type": "fix", "title": "Mend it", "assignee": bob.id})["task"]
    store.messages.send(bob, ann.id, "I have begun")
    shown = page("/work", scope=ground.scope)
    assert "Mend it" in shown and "I have begun" in shown and "not read yet" in shown
    assert "claude-code aaaa1111" in shown and "codex bbbb2222" in shown
    assert f"/task?scope={ground.scope}&id={task.id}".replace("/", "%2F").replace("%2Ftask", "/task") in links(shown)
    assert "Mend it" in page("/work")


def test_one_task_whole(ground: Ground, page, store: Store, ann: dict, bob: dict):
    first = store.tasks.request(ann, {"type": "fix", "title": "First"})["task"]
    spec = {
        "type": "fix",
        "title": "Mend it",
        "description": "all of\nit",
        "files": ["src/a.py"],
        "depends_on": [first.id],
    }
    task = store.tasks.request(ann, spec)["task"]
    store.messages.send(ann, bob.id, f"[task:{task.id}] look here")
    run(ground, bob, task_id=task.id, cost_usd=0.25, model="m-1")
    shown = page("/task", scope=ground.scope, id=task.id)
    for text in (
        "Task Mend it",
        "all of\nit",
        "src/a.py",
        "look here",
        "$0.2500",
        "m-1",
        f"swarm-mcp worker cancel {task.id[:8]}",
    ):
        assert text in shown
    assert any(one.startswith("/task?") and one.endswith(first.id) for one in links(shown))
    assert any(one.startswith("/worker?") for one in links(shown))
    assert "Task Mend it" in page("/task", scope=ground.scope, id=task.id[:12])
    assert f"about task {task.id[:8]}" in words(shown)
    assert "no task of this scope" in page("/task", 404, scope=ground.scope, id="nothing")


def test_of_many_tasks_and_messages_some_are_shown_and_the_others_reached(ground, page, limits, store: Store, ann, bob):
    for number in range(60):
        store.tasks.request(ann, {"type": "fix", "title": f"T{number:02}"})
        store.messages.send(ann, bob.id, f"M{number:02}")
    shown = page("/work", scope=ground.scope)
    assert len(re.findall(r">T\d\d<", shown)) == 50 and "and 10 more" in shown
    assert shown.count('<li id="message-') == 50 and "M59" in shown and "M09" not in shown
    (older,) = [one for one in links(shown) if "after=" in one]
    assert "M09<" in page(older) and "M10<" not in page(older) and "The newest messages" in page(older)
    limits(views, TASKS_OF_MANY=3)
    ground.session("cy", directory=str(ground.folder))
    assert len(re.findall(r">T\d\d<", page("/work"))) == 3


def test_workers_and_what_they_cost(ground: Ground, page):
    bob = ground.session("bob")
    run(ground, bob, cost_usd=1.5, model="m-1", state="running")
    shown = page("/workers", scope=ground.scope)
    assert "codex 0a1b2c3d" in shown and "$1.50" in shown and "running" in shown
    assert "/worker?" in " ".join(links(shown))


def test_the_transcript_of_a_worker(ground: Ground, page, store: Store):
    bob = ground.session("bob")
    path = record(
        ground,
        said("I look first"),
        tool_start("1", "Bash", {"command": "ls -l"}),
        tool_end("1", "Bash", "no", is_error=True),
    )
    usage = {"input_tokens": 1200, "output_tokens": 34}
    run(ground, bob, record=path, usage=usage, state="running")
    shown = words(page("/worker", id="0a1b2c3d-run"))
    for text in (
        "Says I look first",
        "Calls Bash command: ls -l",
        "Error of Bash no",
        "input tokens 1,200",
        "It is at work",
    ):
        assert text in shown
    record(ground, said("then I mend"))
    store.runs.update("0a1b2c3d-run", state="ended", cost_usd=0.5, result={"output": "all mended"})
    shown = words(page("/worker", id="0a1b2c3d-run"))
    assert "then I mend" in shown and "all mended" in shown and "$0.50" in shown and "It has ended" in shown
    assert "no such worker" in page("/worker", 404, id="nothing")


def test_of_a_long_transcript_the_end_is_shown(ground: Ground, page):
    bob = ground.session("bob")
    path = record(ground, *(said(f"word {number} " + "x" * 6000) for number in range(views.ENTRIES + 50)))
    assert os.path.getsize(path) > LAST_BYTES
    run(ground, bob, record=path)
    shown = page("/worker", id="0a1b2c3d-run")
    assert f"word {views.ENTRIES + 49} " in shown and "word 1 " not in shown and "All of it" in shown
    assert len(shown) < LAST_BYTES


def test_who_holds_a_file_who_waits_and_what_has_happened(ground: Ground, page, store: Store):
    ann, bob = ground.session("ann", "claude-code session:aaaa1111"), ground.session("bob")
    path = f"{ground.scope}/src/f"
    ground.lock(ann, path, "busy with it")
    assert ground.swarm("lock", path, "--as", bob.id).code == 1
    LockWait(bob, wanted_by(bob, [path]), 60).advance(store)
    for given in ({"path": "src/f", "scope": ground.scope}, {"path": "src/f"}, {"path": path}):
        shown = page("/file", **given)
        read = words(shown)
        assert "claude-code aaaa1111 , exclusive: busy with it" in read
        assert "Who waits for it" in read and "would be refused" in read and "swarm lock blocked Write" in read
        assert "was refused src/f" in read and "locked src/f" in read
        assert any(one.startswith("/session?") and one.endswith(ann.id) for one in links(shown))
    store.locks.release(ann, path)
    assert "No session holds it" in page("/file", path=path)


def test_a_file_in_a_locked_folder_says_so(ground: Ground, page, ann: dict):
    os.makedirs(f"{ground.scope}/src")
    ground.lock(ann, f"{ground.scope}/src/")
    assert "by the locked folder src" in words(page("/file", path="src/f", scope=ground.scope))


def test_which_file_is_meant_is_asked_where_it_is_not_clear(ground: Ground, page):
    assert "Type the name of a file" in page("/file")
    ground.session("ann")
    ground.session("bob", directory=str(ground.folder))
    shown = page("/file", path="src/f")
    assert "In which checkout" in shown and len([one for one in links(shown) if "path=src" in one]) == 2


@pytest.mark.parametrize(
    "path", ["\0", "a\0b", "x" * 9000, "/../..", "\udcff", "*.py", "~", HOSTILE, "/dev/full", "a\nb", "/", "."]
)
@pytest.mark.sampled
def test_whatever_is_asked_as_a_path_is_answered(ground: Ground, page, path):
    ground.session("ann")
    for scope in ("", ground.scope):
        answer = page.any(address("/file", path=path, scope=scope))
        assert answer.status_code in (200, 404) and is_tame(answer.text)


def test_the_log_of_a_file_is_read_in_parts(ground: Ground, page, limits):
    limits(views, EVENTS=3)
    ann, path = ground.session("ann"), f"{ground.scope}/f"
    for _ in range(4):
        ground.lock(ann, path)
        with ground.store() as store:
            store.locks.release(ann, path)
    shown = page("/file", path=path)
    log = shown.partition('class="log"')[2]
    assert log.count("<li>") == 3
    (older,) = [one for one in links(shown) if "after=" in one]
    assert page(older).partition('class="log"')[2].count("<li>") == 3 and "The newest" in page(older)


def test_one_session_whole(ground: Ground, page, store: Store):
    ann, bob = ground.session("ann", "claude-code session:aaaa1111"), ground.session("bob")
    held, wanted = f"{ground.scope}/held", f"{ground.scope}/wanted"
    ground.lock(ann, held, "mine")
    ground.lock(bob, wanted)
    LockWait(ann, wanted_by(ann, [wanted]), 60).advance(store)
    store.tasks.request(bob, {"type": "fix", "title": "For ann", "assignee": ann.id})
    store.messages.send(bob, ann.id, "to ann")
    store.messages.send(ann, bob.id, "from ann")
    shown = words(page("/session", id=ann.id))
    assert shown.startswith("Session claude-code aaaa1111")
    for text in ("held", "mine", "What it waits for", "wanted", "For ann", "to ann", "from ann", "locked held"):
        assert text in shown
    assert "that session is unknown" in page("/session", 404, id="nobody")


def test_a_session_that_has_gone_is_still_known_by_what_it_did(ground: Ground, page, store: Store):
    ann = ground.session("ann", "claude-code session:aaaa1111")
    ground.lock(ann, f"{ground.scope}/f")
    store.instances.remove(ann.id)
    shown = words(page("/session", id=ann.id, scope=ground.scope))
    assert "it has gone" in shown and "locked f" in shown and "left" in shown
    assert shown.startswith("Session claude-code aaaa1111")


def test_nothing_that_anybody_says_is_more_than_text(ground: Ground, page, store: Store):
    ann, bob = ground.session("ann", HOSTILE), ground.session("bob", HOSTILE)
    path = f"{ground.scope}/{HOSTILE.replace('/', '')}"
    ground.lock(ann, path, HOSTILE)
    ground.swarm("lock", path, "--as", bob.id, "--note", HOSTILE)
    spec = {"type": "fix", "title": HOSTILE, "description": HOSTILE, "files": [HOSTILE], "assignee": bob.id}
    task = store.tasks.request(ann, spec)["task"]
    store.tasks.claim(bob, task.id, ignore_unread=True)
    store.tasks.report_progress(bob, task.id, HOSTILE, blocked_reason=HOSTILE)
    store.messages.send(ann, bob.id, f"{task.id} {HOSTILE}")
    events = said(HOSTILE), tool_start("1", HOSTILE, {HOSTILE: HOSTILE}), tool_end("1", HOSTILE, HOSTILE)
    result = {"output": HOSTILE, "error_message": HOSTILE, "is_error": True, "error_category": HOSTILE}
    run(
        ground,
        bob,
        task_id=task.id,
        record=record(ground, *events),
        model=HOSTILE,
        usage={HOSTILE: 1},
        result=result,
        state="ended",
    )
    asked = [
        ("/work", {}), ("/work", {"scope": ground.scope}), ("/task", {"id": task.id, "scope": ground.scope}),
        ("/workers", {}), ("/worker", {"id": "0a1b2c3d-run"}), ("/file", {"path": path}), ("/session", {"id": ann.id}),
        ("/session", {"id": bob.id}),
    ]  # fmt: skip
    for path, given in asked:
        shown = page(path, **given)
        assert is_tame(shown), path
        assert "&lt;script&gt;" in shown, path
    for path in ("/work", "/task", "/workers", "/worker", "/file", "/session"):
        for given in (
            {"id": HOSTILE},
            {"path": HOSTILE},
            {"scope": HOSTILE},
            {"id": HOSTILE, "scope": HOSTILE, "path": HOSTILE},
        ):
            answer = page.any(path, **given)
            assert answer.status_code in (200, 404) and is_tame(answer.text), (path, given)


@pytest.mark.parametrize("page", ["mine"], indirect=True)
def test_of_another_identity_nothing_is_told_but_that_it_is_there(ground: Ground, page):
    ann = ground.session("ann", "identity:other secret-name")
    ground.lock(ann, f"{ground.scope}/f", "secret note")
    assert not set(re.findall("secret[^<]*", page("/file", path="f", scope=ground.scope)))
    assert UNNAMED in page("/file", path="f", scope=ground.scope)
    assert "secret" not in page("/session", id=ann.id)


def test_a_pattern_is_shown_with_the_locks_on_itself(ground: Ground, page, ann: dict, bob: dict):
    ground.swarm("lock", "src/*.py", "--as", ann.id, "--note", "all of them")
    ground.lock(bob, f"{ground.scope}/docs/a.py", "only one")
    assert "all of them" in page("/file", path="src/*.py", scope=ground.scope)
    shown = page("/file", path="*/a.py", scope=ground.scope)
    assert "only one" not in shown and "No session holds this very pattern" in shown
    assert "swarm-mcp why '*/a.py'" in words(shown)


def test_each_view_answers_before_there_is_a_store(ground: Ground, page):
    for view in VIEWS:
        for given in ({}, {"id": "x"}, {"path": "f", "scope": ground.scope}):
            assert page.any(view.path, **given).status_code in (200, 404), view.path
    assert not os.path.exists(ground.database)


ODD = ("", "text", 1.5, -1, 2**62, b"\xff", None)


def test_what_other_programs_have_stored_as_no_time_and_no_text_breaks_no_page(ground: Ground, page, ann: dict):
    ground.lock(ann, f"{ground.scope}/f", "n")
    for number, odd in enumerate(ODD):
        task = {"id": f"t{number}", "scope": ground.scope, "requester": ann.id, "type": "fix", "title": f"T{number}"}
        ground.add(
            "tasks", **task, files=odd, depends_on=odd, description=odd, progress_summary=odd, progress_updated_at=odd
        )
        ground.stranger(f"s{number}", label=odd)
        lock = {"id": f"l{number}", "type": "lock", "scope": ground.scope, "instance_id": f"s{number}"}
        ground.add("context", **lock, file=f"{ground.scope}/g{number}", content="" if odd is None else odd)
        if odd is not None:
            ground.stranger(f"o{number}", heartbeat=odd, registered_at=odd)
            ground.sql("UPDATE context SET created_at = ? WHERE id = ?", odd, f"l{number}")
            about = {"scope": ground.scope, "created_at": odd}
            ground.add("messages", **about, sender=ann.id, recipient=ann.id, content=odd)
            event = {"type": "context.lock_acquired", "actor": ann.id, "subject": f"{ground.scope}/f", "payload": odd}
            ground.add("events", **about, **event)
    ground.add(
        "tasks", **{**task, "id": "json", "files": '[1, null, {"a": 2}]', "depends_on": "[3]", "created_at": "never"}
    )
    asked = [
        (path, {"scope": scope}) for path in ("/", "/timeline", "/queues", "/work") for scope in ("", ground.scope)
    ]
    asked += [("/session", {"id": one}) for one in (ann.id, *(f"s{number}" for number in range(len(ODD))), "o1")]
    asked += [("/file", {"path": f"{ground.scope}/g{number}"}) for number in range(len(ODD))]
    asked += [
        ("/task", {"scope": ground.scope, "id": one}) for one in ("json", *(f"t{number}" for number in range(len(ODD))))
    ]
    for path, given in asked:
        assert page(path, **given), given


def test_what_a_page_has_opened_of_the_store_is_closed_in_its_own_thread(ground: Ground, page):
    ground.lock(ground.session("ann"), f"{ground.scope}/f")
    assert "would be refused" in page("/file", path="f", scope=ground.scope)
    gc.collect()  # in this thread, where SQLite refuses to close it


def test_a_files_page_names_commands_for_the_top_of_its_checkout(world):
    world.session("codex", "peer").edit("sub/deep.md")
    keys, database = Keys(PORT), world.ground.database
    app = application(lambda: Store(database, read_only=True), keys, "")
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.get(f"/?token={keys.shown}")
        for asked in ({"path": str(world.repo / "sub/deep.md")}, {"path": "sub/deep.md", "scope": str(world.repo)}):
            shown = unescape(Pages(client)("/file", **asked))
            assert "run `cat sub/deep.md`" in shown, shown
            assert "quoted):\n| @@ -1,3 +1,3 @@\n|  alpha\n| -beta\n| +PEER\n" in shown
