"""No tool and no resource answers with more than 100 KB unasked, however much there is: all that are registered."""

import asyncio
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.crowd import HUGE, LONG, ROWS, Crowd
from support.fixtures import Ground
from support.serving import Server
from support.toolbox import TOOLS, Hands

from swarm_mcp.answers.size import ANSWER_BYTES, LEAST, fitted, printed, sent
from swarm_mcp.server import resources
from swarm_mcp.server.service import result_of
from swarm_mcp.server.tool import Answer, Call, WaitingCall, answer_to, bounded

pytestmark = pytest.mark.slow

# Arguments for each tool, beside the defaults. A missing tool is called without arguments, or with `SAMPLES` for the
# required ones: a new tool is measured as well.
ARGUMENTS: dict[str, list[dict]] = {
    "bootstrap": [{"mark_read": False}, {"mark_read": False, "include_terminal": True}, {"terminal_limit": 10**6}],
    "explain_lock": [{"file": "src/**"}, {"file": "src/f1.py"}],
    "lock_history": [{"file": "src/hot.py", "limit": 200}],
    "poll_messages": [{}, {"limit": 200}],
    "request_lock": [{"file": "src"}],
    "lock_file": [{"file": "src"}, {"file": "new.py", "files": [f"new/{n}.py" for n in range(150)]}],
    "get_file_lock": [{"file": "src/f1.py"}],
    "wait_for_activity": [{"timeout_seconds": 1}],
    "register": [{"directory": "/x"}],
    "claim_next_task": [{"ignore_unread_messages": True}],
}
SAMPLES = {"string": "x", "number": 1, "integer": 1, "array": [], "object": {}, "boolean": True}
URIS = [*(item["uri"] for item in resources.LISTED), "swarm://lock?file=src/f1.py"]


def wire(answer: Answer) -> int:
    """The bytes of the line that the client gets, without the envelope."""
    return len(json.dumps(result_of(answer), ensure_ascii=False, separators=(",", ":")).encode())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    return Crowd(tmp_path_factory.mktemp("crowd"))


@pytest.fixture
def crowd(filled: Crowd, monkeypatch: pytest.MonkeyPatch) -> Hands:
    """A session in a scope with a lot of everything."""
    monkeypatch.setenv("SWARM_DB_PATH", filled.ground.database)
    filled.restore()
    return Hands(filled.ground, filled.me)


def asked(hands: Hands, name: str, arguments: dict) -> Answer:
    """Return the server's answer to this call."""
    tool = TOOLS[name]
    if not asyncio.iscoroutinefunction(tool.call):
        return bounded(hands.answer(name, **arguments))
    defaults = {key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}
    with hands.ground.store() as store:

        class Waiting(WaitingCall):
            async def run(self, function):
                return function(Call(store, hands.session, {}))

            async def changed(self, seconds):
                return False

            def when_cancelled(self, function):
                pass

        try:
            return bounded(asyncio.run(tool.call(Waiting(), {**defaults, **arguments})))
        except Exception as error:
            return bounded(answer_to(error))


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.sampled
def test_no_tool_answers_with_more_than_100_kb(crowd: Hands, name: str):
    needed = {one: TOOLS[name].properties[one].get("type", "string") for one in TOOLS[name].required}
    for given_ in ARGUMENTS.get(name, [{}]):
        arguments = {**{one: SAMPLES[kind] for one, kind in needed.items()}, **given_}
        if name == "dispatch":
            arguments["spawn"] = False
        answer = asked(crowd, name, arguments)
        assert wire(answer) <= ANSWER_BYTES, (name, arguments)


@pytest.mark.parametrize("uri", URIS)
def test_no_resource_has_more_than_100_kb(crowd: Hands, uri: str):
    with crowd.ground.store() as store:
        answer = resources.read(Call(store, crowd.session, {}), uri)
    assert sum(len(text.encode()) for text in answer.texts()) <= ANSWER_BYTES
    assert json.loads(answer.texts()[0])


LISTS = {
    "list_instances": ("id", {f"peer-{number:03}" for number in range(ROWS)}),
    "list_tasks": ("id", {f"task-open-None-{number}" for number in range(ROWS)}),
    "kv_list": ("key", {f"k/{number}/{LONG}" for number in range(ROWS)}),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_goes_on_from_its_cursor_until_each_row_was_had_once(crowd: Hands, name: str):
    key, wanted = LISTS[name]
    found, after, asked_ = [], {}, 0
    total = None
    while asked_ == 0 or after:
        answer = asked(crowd, name, after)
        found += [row[key] for row in answer.value]
        told = result_of(answer)["structuredContent"]
        assert told["total"] >= ROWS and total in (None, told["total"])
        assert answer.texts()[-1].startswith(f"{len(answer.value)} of {told['total']}")
        total, asked_ = told["total"], asked_ + 1
        after = {"after": told["next"]} if "next" in told else {}
    assert asked_ > 1 and len(found) == len(set(found)) == total and wanted <= set(found)


def test_every_tool_that_lists_rows_takes_limit_and_after():
    """A tool with a list as its answer has rows that may grow."""
    assert {name for name, tool in TOOLS.items() if "after" in tool.properties} == {*LISTS, "lock_history"}
    assert all("limit" in TOOLS[name].properties for name in (*LISTS, "lock_history", "poll_messages"))


def test_mail_is_had_to_the_last_message_and_what_was_cut_by_its_id(crowd: Hands):
    found, lengths = [], []
    while mail := asked(crowd, "poll_messages", {}).value:
        found += [message["id"] for message in mail]
        lengths += [message["cut"]["content"] for message in mail if "cut" in message]
    assert len(found) == len(set(found)) == ROWS and lengths == [len(HUGE)]
    (whole,) = asked(crowd, "poll_messages", {"message_id": found[0]}).value
    assert whole["content"] == HUGE
    assert asked(crowd, "poll_messages", {"message_id": 10**6}).value == []


@pytest.mark.parametrize("name", ["bootstrap", "wait_for_activity"])
def test_mail_that_an_answer_has_no_room_for_is_not_read(crowd: Hands, name: str):
    answer = asked(crowd, name, {})
    mail = answer.value["unread_messages" if name == "bootstrap" else "messages"]
    left = answer.value["not_shown"]["unread_messages" if name == "bootstrap" else "messages"]
    assert 0 < len(mail) < ROWS and left == ROWS - len(mail)
    with crowd.ground.store() as store:
        assert store.messages.unread_count(crowd.row) == ROWS - len(mail)


def test_what_is_asked_for_by_its_name_is_whole(crowd: Hands):
    with crowd.ground.store() as store:
        store.kv.put(crowd.row, "huge", HUGE)
    assert asked(crowd, "kv_get", {"key": "huge"}).value["value"] == HUGE
    assert asked(crowd, "get_task", {"task_id": "task-open-None-0"}).value["description"] == HUGE
    first = asked(crowd, "list_tasks", {"status": "open"}).value[0]
    assert first["cut"] == {"description": len(HUGE)} and HUGE.startswith(first["description"])


def test_the_rest_of_a_summary_is_said_in_numbers(crowd: Hands):
    value = asked(crowd, "swarm_status", {}).value
    there = {"peers": ROWS, "unread_messages": ROWS, "held_locks": ROWS, "assigned_tasks": ROWS}
    for name, number in there.items():
        assert len(value[name]) + value["not_shown"][name] == number, name
    assert value["next_action"]["tool"] == "poll_messages"


def test_a_small_answer_is_what_it_was(ground: Ground):
    mine = Hands(ground, ground.session("1", "one"))
    for name in ("list_instances", "list_tasks", "kv_list", "poll_messages", "swarm_status", "bootstrap"):
        answer = asked(mine, name, {})
        assert answer.page is None and answer.notes == ()
        assert "not_shown" not in json.dumps(answer.value) and "cut" not in json.dumps(answer.value)


def test_pages_of_a_resource(crowd: Hands):
    found, uri = [], "swarm://inbox"
    with crowd.ground.store() as store:
        call = Call(store, crowd.session, {})
        while uri:
            answer = resources.read(call, uri)
            found += [message["id"] for message in answer.value]
            uri = f"swarm://inbox?after={answer.page.next}" if answer.page and answer.page.next else ""
        assert len(found) == len(set(found)) == ROWS
        assert len(resources.read(call, "swarm://instances?limit=3").value) == 3


def test_the_line_that_a_client_gets_is_as_long_as_that(ground: Ground):
    with Server(ground) as server:
        me = server.value("register", {"directory": ground.scope})
        with ground.store() as store, store.database.writing():
            for number in range(400):
                store.database.change(
                    "INSERT INTO tasks (id, scope, type, title, requester) VALUES (?, ?, 'fix', ?, ?)",
                    (f"t{number:03}", ground.scope, LONG, me["id"]),
                )
        answer = server.ask("tools/call", {"name": "list_tasks", "arguments": {}})
        assert 60_000 < len(json.dumps(answer, ensure_ascii=False).encode()) <= ANSWER_BYTES
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]["items"]
        (one,) = server.ask("resources/read", {"uri": "swarm://tasks"})["contents"]
        assert len(one["text"].encode()) <= ANSWER_BYTES


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=12), inner, max_size=8),
    max_leaves=30,
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(max_size=12), values, max_size=8))
@example({"escaped twice": '"\\' * 1000})
@pytest.mark.thorough
def test_the_size_is_that_of_the_line(value: dict):
    assert abs(wire(Answer(value)) - sent(value)) < 150 + sent(value) / 10
    assert printed(value) >= len(json.dumps(value, indent=2))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(max_size=12), values, max_size=8), st.integers(600, 5000))
def test_what_is_cut_fits_and_says_so(value: dict, most: int):
    cut = fitted(value, most)
    assert sent(cut) <= most
    assert cut is value or sent(value) > most
    for name in set(value) & set(cut) - {"not_shown", "cut"}:
        if isinstance(value[name], list):
            there = cut.get("not_shown", {}).get(name, 0) + len(cut[name])
            assert there == len(value[name]), "each row is there, or counted"
        elif isinstance(value[name], str) and cut[name] != value[name]:
            assert value[name].startswith(cut[name]) and cut["cut"][name] == len(value[name])


def test_a_long_list_and_a_long_text_share_what_there_is():
    rows, text = [{"n": number} for number in range(10_000)], "y" * 500_000
    cut = fitted({"ok": True, "rows": rows, "text": text, "few": [1, 2]})
    assert (cut["ok"], cut["few"]) == (True, [1, 2])
    assert cut["rows"] == rows[: len(cut["rows"])] and len(cut["rows"]) > 500
    assert cut["not_shown"] == {"rows": 10_000 - len(cut["rows"])} and cut["cut"] == {"text": 500_000}
    assert 0.7 * ANSWER_BYTES < sent(cut) <= ANSWER_BYTES and len(cut["text"]) > LEAST
