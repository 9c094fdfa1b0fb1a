"""Tasks as tools and commands show them, the sessions they wake, and sessions that move to another scope."""

from pathlib import Path

import pytest
from support.fixtures import Ground, Sleeper
from support.listings import rows_of
from support.scripted_herdr import Herdr
from support.task_fixtures import As, begun, mail, refused, request, status

from swarm_mcp.cli.commands.completion import candidates
from swarm_mcp.domain import TASK_COLUMNS, Session
from swarm_mcp.store import Store

PROMPT = {"message_sent": True, "nudged": False}


def shape(prompt: dict) -> dict:
    assert prompt.pop("nudge_skipped")
    return {name: prompt[name] for name in PROMPT}


def test_the_end_of_a_task_wakes_those_whose_tasks_may_begin(ground: Ground, store: Store) -> None:
    planner, worker, next_one = ground.session("p"), ground.session("w"), ground.session("n")
    task = begun(store, planner, worker)
    request(store, planner, depends_on=[task["id"]], assignee=next_one["id"])
    ended = As(ground, worker).update_task(task_id=task["id"], status="done").value
    ((woken,),) = [ended["unblocked_prompts"]]
    assert woken["recipient"] == next_one["id"] and shape(woken["prompt"]) == PROMPT


def test_no_command_shows_another_identitys_tasks(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = ground.session("p", "identity:home")
    ground.session("w", "identity:work")
    with ground.store() as store:
        hidden = begun(store, planner, planner, "SECRET")
        request(store, planner, "SECRET too")
        store.messages.send(planner, ground.session("q", "identity:home")["id"], "SECRET word")
    for identity, shown in (("work", False), ("home", True)):
        monkeypatch.setenv("AGENT_IDENTITY", identity)
        looked = ground.swarm("inspect", "--json").json
        assert [task["title"] for task in looked["tasks"]] == (["SECRET", "SECRET too"] if shown else [])
        assert bool(looked["messages"]) is shown
        assert ("SECRET" in ground.swarm("inspect").out) is shown
        assert ground.swarm("status", "--json").json["open_tasks"] == ({"open": 1, "in_progress": 1} if shown else {})
        monkeypatch.chdir(ground.repo)
        assert (hidden["id"] in [one.word for one in candidates(["update-task", ""])]) is shown


def test_a_lock_does_not_tell_of_another_identitys_task(ground: Ground, store: Store) -> None:
    owner, me = ground.session("o", "identity:home"), ground.session("me", "identity:work")
    nobody = ground.session("n")  # without an identity, so that it may meet both
    begun(store, owner, nobody, "SECRET")
    begun(store, me, nobody, "mine")
    store.locks.acquire(nobody, "f")
    (held,) = store.locks.on(f"{ground.scope}/f")
    active = store.locks.describe(held, "work")["active_tasks"]
    assert [task["title"] for task in active] == ["mine"]
    assert list(active[0]) == ["id", "type", "title", "status"]
    assert len(store.locks.describe(held, "")["active_tasks"]) == 2


def test_what_has_ended_is_listed_last(ground: Ground, planner: Session, store: Store) -> None:
    for title in ("one", "two", "three"):
        task = begun(store, planner, planner, title)
        if title != "two":
            store.tasks.end(planner, task["id"], "done")
    shown = ground.swarm("inspect", "--json").json["tasks"]
    assert [task["title"] for task in shown] == ["two", "one", "three"]
    assert list(shown[0]) == ["id", "type", "title", "status", "assignee", "requester"]


def test_a_task_is_requested_from_the_command_line(ground: Ground) -> None:
    planner, worker = ground.session("p", "planner"), ground.session("w", "the-worker")
    me = ("--as", planner["id"])
    made = ground.swarm("request-task", "implement", "Do", "it", "--file", "src/a.py", "--priority", "2", "--json", *me)
    assert made.code == 0
    assert list(made.json) == ["id", "status", "task"]
    task = made.json["task"]
    assert tuple(task) == TASK_COLUMNS
    assert (task["title"], task["files"], task["priority"]) == ("Do it", [f"{ground.scope}/src/a.py"], 2)
    plain = ground.swarm("request-task", "--type", "fix", "Other", *me)
    assert plain.out.startswith("created task ") and plain.out.endswith(" [open] Other\n")
    lone = ground.swarm("request-task", "Anything", "--idempotency-key", "k", "--json", *me).json
    assert (lone["task"]["type"], lone["task"]["title"]) == ("other", "Anything")
    again = ground.swarm("request-task", "fix", "x", "--idempotency-key", "k", *me)
    assert again.out == f"existing task {lone['id']} [open] Anything\n"
    more = ("--depends-on", f"{task['id']}, {lone['id']}", "--parent-task", lone["id"], "--assignee", "the-work")
    given = ground.swarm(
        "request-task", "test", "Assigned", *more, "--description", "d", "--no-nudge", "--json", *me
    ).json
    assert (given["status"], given["task"]["assignee"]) == ("blocked", worker["id"])
    assert given["task"]["depends_on"] == [task["id"], lone["id"]]
    assert (given["task"]["parent_task_id"], given["task"]["description"]) == (lone["id"], "d")
    assert shape(given["prompt"]) == PROMPT
    assert (
        ground.swarm("request-task", "fix", "x", "--approval-required", "--json", *me).json["status"]
        == "approval_required"
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("zzz", "t"), "unknown task type 'zzz'; choose from review, implement, fix, test, research, other"),
        (("fix",), "missing the title"),
        ((), "missing the title"),
        (("fix", "x", "--depends-on", "nope"), "Dependency task nope not found in scope"),
        (("fix", "x", "--parent-task", "nope"), "Parent task nope not found in scope"),
        (("fix", "x", "--assignee", "nobody"), "no session of this scope has 'nobody' for its id or in its label"),
        (("fix", "x", "--priority", "high"), "--priority wants a whole number"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_wrong_request_is_one_line(
    ground: Ground, planner: Session, words: tuple, complaint: str, form: tuple
) -> None:
    done = ground.swarm("request-task", *words, *form, "--as", planner["id"])
    code = 2 - bool({"nope", "nobody"} & set(words))  # 1: the store has no such task or session
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert done.err.startswith("swarm-mcp request-task: ") and complaint in done.err
    assert ground.sql("SELECT 1 FROM tasks") == []


def test_commands_wake_the_panes_of_those_they_tell(ground: Ground, herdr: Herdr) -> None:
    planner, worker, third = (
        ground.session(name, f"{name} origin:claude-code", pane={"pane_id": f"w1:{name}"})
        for name in ("planner", "worker", "third")
    )
    for name in ("planner", "worker", "third"):
        herdr.pane(f"w1:{name}")

    def woken() -> list[str]:
        sent = [words[1] for words in herdr.pane_calls() if words[0] == "send-text"]
        (herdr.folder / "calls.jsonl").unlink(missing_ok=True)
        return sent

    me = ("--as", planner["id"])
    task = ground.swarm("request-task", "fix", "x", "--assignee", worker["id"], "--json", *me).json
    assert task["prompt"]["nudged"] is True and woken() == ["w1:worker"]
    ground.swarm("request-task", "fix", "y", "--assignee", worker["id"], "--no-nudge", *me)
    assert woken() == []
    ground.swarm("request-task", "fix", "z", "--assignee", third["id"], "--depends-on", task["id"], "--no-nudge", *me)
    ground.swarm("update-task", task["id"], "--status", "done", "--as", worker["id"])
    assert woken() == ["w1:planner", "w1:third"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    folder = tmp_path / "elsewhere"
    (folder / ".git").mkdir(parents=True)
    return str(folder)


def test_who_was_started_anew_elsewhere_has_left(ground: Ground, elsewhere: str) -> None:
    planner, waiting = ground.session("p"), ground.session("waiting")
    with Sleeper() as before, Sleeper() as after, ground.store() as store:
        worker = ground.session("w", client=before.identity)
        doing, given = begun(store, planner, worker), request(store, planner, assignee=worker["id"])
        gate = request(store, planner, assignee=worker["id"], approval_required=True)
        store.locks.acquire(worker, "f")
        with pytest.raises(Exception, match="locked"):
            store.locks.acquire(waiting, "f")
        before.end()  # otherwise it would be a further client of the session
        moved = ground.session("w", directory=elsewhere, client=after.identity)
        assert (moved["id"], moved["scope"]) == (worker["id"], elsewhere)
        now = {task["id"]: (task["status"], task["assignee"]) for task in rows_of(store.tasks.walk(planner))}
        assert now == {
            doing["id"]: ("open", None),
            given["id"]: ("open", None),
            gate["id"]: ("approval_required", None),
        }
        assert store.locks.of(worker["id"]) == []
        (told,) = mail(store, waiting)
        assert "is free" in told and "works elsewhere now" in told
        with refused("Task not found"):
            store.tasks.end(moved, doing["id"], "done")
        assert store.tasks.claim(waiting, doing["id"], ignore_unread=True)["task"]["assignee"] == waiting["id"]


def test_who_only_changed_its_folder_goes_on(ground: Ground, planner: Session, elsewhere: str) -> None:
    with Sleeper() as client, ground.store() as store:
        worker = ground.session("w", client=client.identity)
        doing, given = begun(store, planner, worker), request(store, planner, assignee=worker["id"])
        asked = request(store, worker, "asked")
        store.locks.acquire(worker, "f")
        moved = ground.session("w", directory=elsewhere, client=client.identity)
        assert moved["scope"] == elsewhere != worker["scope"]
        assert [Path(lock["file"]).name for lock in store.locks.of(worker["id"])] == ["f"]
        assert store.tasks.seen(moved, doing["id"])["status"] == "in_progress"
        store.tasks.report_progress(moved, doing["id"], "half")
        assert store.tasks.end(moved, doing["id"], "done", "found it")["task"]["status"] == "done"
        assert store.tasks.claim(moved, given["id"], ignore_unread=True)["task"]["status"] == "in_progress"
        assert store.tasks.end(moved, asked["id"], "cancelled")["task"]["status"] == "cancelled"
        assert any("found it" in text for text in mail(store, planner))
        # Others' tasks of the old scope are hidden from it.
        with refused("Task not found"):
            store.tasks.claim(moved, request(store, planner)["id"])


def test_word_of_a_task_finds_a_session_where_it_is(ground: Ground, elsewhere: str) -> None:
    worker = ground.session("w")
    with Sleeper() as client, ground.store() as store:
        planner = ground.session("p", client=client.identity)
        early = begun(store, planner, worker, "early")
        late = begun(store, planner, worker, "late")
        store.tasks.end(worker, early["id"], "done", "before")
        moved = ground.session("p", directory=elsewhere, client=client.identity)
        ended = store.tasks.end(worker, late["id"], "done", "after")
        assert [recipient for recipient, _ in ended["notices"]] == [planner["id"]]
        inbox = [message["content"] for message in store.messages.take(moved)]
        assert [text.rpartition(" ")[2] for text in inbox] == ['"before"', '"after"']


def test_nobody_writes_to_a_session_that_another_program_has_removed(
    ground: Ground, store: Store, planner: Session, worker: Session
) -> None:
    first = begun(store, planner, planner)
    waiting = request(store, planner, assignee=worker["id"], depends_on=[first["id"]])
    ground.sql("DELETE FROM instances WHERE id = ?", worker["id"])
    ground.sql("DELETE FROM messages")
    assert store.tasks.end(planner, first["id"], "done")["unblocked"] == []
    assert status(store, waiting) == "claimed" and ground.sql("SELECT * FROM messages") == []
