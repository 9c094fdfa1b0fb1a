"""The order of events, loops, errors, figures, and sessions, for any output of a harness."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.harness_fixtures import OTHER, SESSION, Scripted, kinds
from support.replay import replay
from support.requirement import requirement

from swarm_mcp.agents.harness import conclusion, events, outcome, registry
from swarm_mcp.agents.harness.child import ToolLoopGuard
from swarm_mcp.agents.harness.events import LONGEST_OUTPUT, Ledger
from swarm_mcp.agents.harness.outcome import Cost, Ending, Price, error_of
from swarm_mcp.agents.harness.query import Query

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def admitted(*given: events.Event) -> list[events.Event]:
    ledger = Ledger("test")
    return [event for one in given for event in ledger.admit(one)] + list(ledger.close())


WORDS = st.sampled_from(["a", "b", ""])
EVENTS = st.lists(
    st.one_of(
        st.builds(events.session_init, WORDS),
        st.builds(events.message, st.sampled_from(["assistant", "user"]), WORDS),
        st.builds(events.tool_start, WORDS, WORDS, st.none()),
        st.builds(events.tool_end, WORDS, WORDS, WORDS),
        st.builds(events.result, WORDS),
        st.builds(events.error, WORDS, WORDS),
        st.builds(lambda kind: events.Event(kind, {}), st.sampled_from(events.KINDS)),
    )
)


@settings(max_examples=60)
@given(EVENTS)
@requirement("A-13", "A-16", "A-17")
def test_every_order_becomes_the_right_one(given_events):
    found = admitted(*given_events)
    names = kinds(found)
    spoken = [at for at, name in enumerate(names) if name in ("message", "tool_start", "tool_end")]
    assert names.count("session_init") <= 1 and "result" not in names
    assert not spoken or names.index("session_init") < spoken[0]
    open_calls: set = set()
    for event in found:
        call = event.data.get("tool_call_id")
        if event.kind == "tool_start":
            assert call and call not in open_calls
            open_calls.add(call)
        elif event.kind == "tool_end":
            assert event.data["tool_name"]
            open_calls.remove(call)
    assert not open_calls


@requirement("A-13")
def test_a_session_that_is_named_late_is_known_all_the_same():
    ledger = Ledger("test")
    told = [*ledger.admit(events.message("assistant", "hi")), *ledger.admit(events.session_init("s1"))]
    assert [event.kind for event in told] == ["session_init", "message", "custom"]
    assert told[0].data["session_id"] is None and told[2].data["name"] == "test.session" and ledger.session_id == "s1"


@requirement("A-37")
def test_the_last_words_stand_in_for_an_answer():
    ledger = Ledger("test")
    for event in (
        events.message("assistant", "first"), events.message("user", "no"), events.message("assistant", "  "),
        events.message("assistant", "hm", thinking=True), events.message("assistant", "sub", parent_tool_call_id="t"),
    ):  # fmt: skip
        list(ledger.admit(event))
    assert ledger.output == "first"
    list(ledger.admit(events.message("assistant", "x" * 2 * LONGEST_OUTPUT)))
    assert len(ledger.output) == LONGEST_OUTPUT
    list(ledger.admit(events.result("")))
    assert ledger.output.startswith("x")
    list(ledger.admit(events.result("the answer")))
    assert ledger.output == "the answer"


def streams() -> list[tuple[str, bytes, dict]]:
    found = []
    for path in sorted(GOLDEN.glob("*/*.jsonl")):
        meta = path.with_suffix("").with_suffix(".meta.json")
        about = json.loads(meta.read_text()) if meta.exists() else {}
        if path.parent.name in registry.names():
            found.append((path.parent.name, path.read_bytes(), about))
    return found


STREAMS = streams()
assert {name for name, _, _ in STREAMS} >= {"claude", "codex", "pi", "gemini", "opencode"}


def lasting(found) -> None:
    """Assert the invariants of every run."""
    names = [event.kind for event in found.events]
    assert names.count("result") == 1 and names[-1] == "result" and names.count("session_init") <= 1
    starts = [e.data["tool_call_id"] for e in found.events if e.kind == "tool_start"]
    ends = [e.data["tool_call_id"] for e in found.events if e.kind == "tool_end"]
    assert sorted(starts) == sorted(ends)
    assert all(event.kind in events.KINDS for event in found.events)
    assert not any(str(e.data.get("name", "")).endswith(".not_understood") for e in found.events), "a parser raised"
    assert found.result.error_category in (None, *outcome.ERRORS)
    assert bool(found.result.error_message) == found.result.is_error
    json.dumps([event.to_dict() for event in found.events] + [found.result.to_dict()], allow_nan=False)


@pytest.mark.parametrize("number", range(len(STREAMS)))
@requirement("A-17")
@pytest.mark.sampled
def test_recorded_streams_whole_and_cut_off(number):
    name, stream, about = STREAMS[number]
    adapter = registry.get(name)
    whole = replay(adapter, stream, str(about.get("stderr") or "").encode(), int(about.get("rc") or 0))
    lasting(whole)
    assert [e.kind for e in whole.events].count("raw_log") == len(stream.decode().splitlines())
    pieces = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    assert kinds(replay(adapter, b"", exit_code=whole.ending.exit_code or 0, pieces=pieces).events, "error") == kinds(
        replay(adapter, stream, exit_code=whole.ending.exit_code or 0).events, "error"
    )
    lines = stream.splitlines(keepends=True)
    for end in {0, len(lines) // 2, max(0, len(lines) - 1)}:
        lasting(replay(adapter, b"".join(lines[:end]) + b'{"type":"resu', exit_code=-9))


# As JSON, so that no two examples share a list.
ODD_TEXTS = (
    "null", "[]", "{}", "0", "-1", "1e400", "NaN", "true", '""', '"x"', "[null]", '{"type": 5}', "[[{}]]",
    '{"a": null}',
)  # fmt: skip
ODD = st.sampled_from(ODD_TEXTS).map(json.loads)


LINES = {
    name: sorted(
        {line for own, stream, _ in STREAMS if own == name for line in stream.decode().splitlines() if len(line) < 3000}
    )
    for name in {name for name, _, _ in STREAMS}
}
WORDS = (
    "type",
    "subtype",
    "message",
    "content",
    "usage",
    "session_id",
    "tool_use_id",
    "text",
    "id",
    "errors",
    "item",
    "result",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=6,
)


@st.composite
def mangled(draw: st.DrawFn, name: str) -> str:
    """A recorded line, cut, or with a member replaced or taken out somewhere."""
    line = draw(st.sampled_from(LINES[name]))
    if not line.startswith("{") or draw(st.booleans()):
        at = draw(st.integers(0, len(line)))
        return line[:at] + draw(st.text(max_size=3)) + line[at + draw(st.integers(0, 9)) :]
    tree = place = json.loads(line)
    for _ in range(draw(st.integers(0, 4))):
        inner = [v for v in (place.values() if isinstance(place, dict) else place) if isinstance(v, (dict, list)) and v]
        place = draw(st.sampled_from(inner)) if inner else place
    key = draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else draw(st.integers(0, len(place) - 1))
    if draw(st.integers(0, 3)):
        place[key] = draw(VALUES)
    else:
        del place[key]
    return json.dumps(tree)


def _replaced(value: object, odd: object) -> list:
    """Return `value` with `odd` in the place of each of its members in turn, at any depth."""
    members = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    found = []
    for key, member in members:
        for made in (odd, *_replaced(member, odd)):
            copy = value.copy()
            copy[key] = made
            found.append(copy)
    return found


@pytest.mark.parametrize("name", sorted(LINES))
@pytest.mark.parametrize("odd", [7, "x", [7], {}, None, True], ids=repr)
@requirement("D-07")
@pytest.mark.sampled
def test_no_member_of_another_type_makes_a_parser_raise(name, odd):
    seen, given = set(), []
    for line in LINES[name]:
        told = json.loads(line) if line.startswith("{") else {}
        kind = repr((told.get("type"), told.get("subtype"), *(told.get("item") or {}), told.get("error") is None))
        if told and kind not in seen:
            seen.add(kind)
            given += [json.dumps(made) for made in _replaced(told, odd)]
    lasting(replay(registry.get(name), "\n".join(given).encode()))


@pytest.mark.parametrize("name", sorted(LINES))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@requirement("A-21", "C-27", "C-71", "D-07")
@pytest.mark.sampled
def test_mangled_lines_never_make_a_parser_raise(name, data):
    odd = st.recursive(ODD, st.lists).map(json.dumps) | st.text(max_size=20)
    lines = data.draw(st.lists(mangled(name) | st.sampled_from(LINES[name]) | odd, max_size=10))
    noise, code = data.draw(st.binary()), data.draw(st.sampled_from([0, 1, -15]))
    lasting(replay(registry.get(name), "\n".join(lines).encode("utf-8", "replace"), noise, code))


def told(calls) -> list[tuple[int, str]]:
    guard = ToolLoopGuard()
    found = [(number, guard.saw(*call)) for number, call in enumerate(calls, 1)]
    return [(number, answer[0]) for number, answer in found if answer][:2]


@requirement("A-58")
def test_when_repeated_calls_count_as_a_loop():
    same, other = ("Read", {"a": 1, "b": {"c": 1, "d": 2}}), ("Read", {"b": {"d": 2, "c": 1}, "a": 1})
    assert told([same, other] * 10) == [(8, "warn"), (15, "stop")], "the order of keys makes no difference"
    assert told([("Read", {"a": 1}), ("Bash", {"a": 1})] * 10) == [(6, "warn"), (12, "stop")]
    change, command = ("file_change", {"path": "a"}), ("Bash", {"c": 1})
    assert told([change] * 30) == [(16, "warn"), (24, "stop")]
    assert told([change, command] * 20)[:2] == [(12, "warn"), (16, "warn")]
    assert told([("Read", {"a": number}) for number in range(100)]) == []
    assert told([("Read", {"a": number % 3}) for number in range(20)]) == []
    spread = [("Read", {"a": 0} if number % 6 == 0 else {"a": number}) for number in range(200)]
    assert told(spread) == [], "seven in forty are no loop"
    assert told([("Odd", {1: object()})] * 8)[0][1] == "warn"


@pytest.mark.parametrize(
    "ending, code",
    [
        (Ending(0), None),
        (Ending(0, result={"is_error": False}), None),
        (Ending(0, errors=({"message": "it went on", "category": "rate_limited"},)), None),
        (Ending(1), "process_crashed"),
        (Ending(-9, 9), "process_crashed"),
        (Ending(1, stderr="Error: thread/resume failed: no rollout found for thread id x"), "session_not_found"),
        (Ending(1, stderr="No conversation found with session ID: x"), "session_not_found"),
        (Ending(1, stderr="Error: Session ID x is already in use."), "session_in_use"),
        (Ending(0, result={"is_error": True, "output": "Credit balance is too low"}), "budget"),
        (Ending(0, result={"is_error": True, "output": "Overloaded"}), "rate_limited"),
        (Ending(1, result={"is_error": True, "error_category": "auth_failed"}), "auth_failed"),
        (Ending(1, errors=({"message": "hm", "category": "context_overflow"},)), "context_overflow"),
        (Ending(1, errors=({"message": None, "category": "made up"},)), "process_crashed"),
        (Ending(1, result={"is_error": True}), "unknown"),
    ],
)
@requirement("C-59", "D-04")
def test_codes(ending, code):
    found = error_of(ending)
    assert (found and found[0]) == code
    assert found is None or (found[1] and "\n" not in found[1])


PRICES = {"m-1": Price(2, 0.5, 8, "2026-11-01"), "m-1-mini": Price(1, 0, 4, "2026-11-01", cache_write=3)}


@pytest.mark.parametrize("name", ["m-1", "m-1-high", "m-1:low", "vendor/m-1", "m-1-20260101", "m-1 (max)", "m-1[1m]"])
@requirement("A-56")
def test_the_price_of_a_model_by_any_of_its_names(name):
    assert outcome.price_of(PRICES, name) is PRICES["m-1"]


@requirement("A-56", "D-19")
def test_dollars():
    assert outcome.price_of(PRICES, "m-1-mini-high") is PRICES["m-1-mini"]
    assert outcome.price_of(PRICES, "m-2") is outcome.price_of(PRICES, "") is outcome.price_of(PRICES, None) is None
    tokens = Cost(input_tokens=10, output_tokens=10, cache_read_tokens=10, cache_write_tokens=10)
    assert outcome.priced(tokens, PRICES, "m-1").total_cost_usd == pytest.approx(125e-6)
    assert outcome.priced(tokens, PRICES, "m-1-mini").total_cost_usd == pytest.approx(80e-6)
    assert outcome.priced(tokens, PRICES, "m-2").total_cost_usd is None
    assert outcome.priced(Cost(output_tokens=3), PRICES, "m-1").total_cost_usd is None, "half of it is not known"
    assert outcome.priced(tokens._replace(total_cost_usd=0.0), PRICES, "m-1").total_cost_usd == 0.0


def test_the_runs_own_part_of_the_costs():
    counted, before = Cost(1.5, 30, 20, None, 5), Cost(1.0, 10, 25, 1, None)
    assert outcome.own_part(counted, before, frozenset({"cost"})) == counted._replace(total_cost_usd=0.5)
    assert outcome.own_part(counted, before, frozenset({"tokens"})) == Cost(1.5, 20, 20, None, 5)
    assert outcome.own_part(counted, Cost(), frozenset({"cost", "tokens"})) == counted


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from([*Cost._fields, "x"]), ODD) | ODD)
@requirement("A-55")
def test_figures_are_figures_or_unknown(found):
    cost = outcome.cost_of(found)
    assert all(value is None or (isinstance(value, (int, float)) and value >= 0) for value in cost[:-1])
    assert outcome.cost_of(cost) == cost == outcome.cost_of(cost.to_dict())


CLEAN = st.characters(exclude_characters="\0", codec="utf-8")


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=20), st.text(CLEAN, min_size=1, max_size=200), st.text(CLEAN), st.floats(0, 1e6))
@requirement("C-04", "C-55")
def test_what_is_kept_of_a_session_comes_back(harness, session_id, cwd, dollars):
    session = conclusion.ResumableSession(harness, session_id, cwd, Cost(dollars))
    kept = conclusion.serialize(session)
    assert conclusion.deserialize(kept) == session == conclusion.deserialize(json.dumps(kept))


@settings(max_examples=40)
@given(st.recursive(ODD | st.text() | st.binary(), lambda inner: st.dictionaries(
    st.sampled_from(["harness", "session_id", "cwd", "cost"]), inner)))  # fmt: skip
@requirement("C-04")
def test_what_is_no_session_is_none(found):
    session = conclusion.deserialize(found)
    assert session is None or (session.harness and session.session_id and isinstance(session.cost, Cost))


@pytest.mark.parametrize(
    "session_id",
    ["--dangerously-skip-permissions", "../../x", "", "x" * 500, f"{SESSION}\n", f" {SESSION}", "-" + SESSION[1:]],
)
@pytest.mark.parametrize("pattern", [Scripted.session_pattern, "-.*"], ids=["uuid", "of options"])
@requirement("C-26")
def test_what_does_not_fit_never_reaches_argv(session_id, pattern):
    adapter = Scripted()
    adapter.session_pattern = pattern
    found = conclusion.decide(adapter, Query("p", "/", resume_session_id=session_id))
    assert found.session_id == "" and bool(found.refused) is bool(session_id)


@requirement("C-18", "C-54")
def test_which_session_is_continued(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    kept = conclusion.serialize(conclusion.ResumableSession("scripted", SESSION, str(link), Cost(1.0)))
    decide = conclusion.decide
    plain = Query("p", str(tmp_path))
    assert decide(Scripted(), plain, kept) == conclusion.Resumption(SESSION, before=Cost(1.0))
    named = Query("p", str(tmp_path), resume_session_id=OTHER)
    assert decide(Scripted(), named, kept) == conclusion.Resumption(OTHER), "what the other one cost is of no use"
    assert decide(Scripted(), Query("p", "/"), None) == conclusion.Resumption()
    assert decide(registry.get("process"), Query("p", "/", resume_session_id=SESSION)).refused

    class Elsewhere(Scripted):
        def can_resume(self, session_id, cwd):
            return not cwd

    found = decide(Elsewhere(), named)
    assert found.refused and not found.session_id and not found.forget, "it may be continued where it is at home"
    assert decide(Elsewhere(), named._replace(env={"CODEX_HOME": "/x"})).session_id == OTHER, "only trying tells"

    class Raising(Scripted):
        def can_resume(self, session_id, cwd):
            raise OSError

    assert decide(Raising(), plain, kept).session_id == SESSION
