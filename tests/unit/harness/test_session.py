"""Conversations: each prompt continues the session of the one before, costs add up, forks go their own way."""

import asyncio
import json
from pathlib import Path

import pytest
from support.harness_fixtures import OTHER, PRELUDE, PYTHON, SESSION, Scripted

from swarm_mcp.agents.harness.adapter import Launch
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.harness import Cost, HarnessError, Refused, RunResult, Session

pytestmark = pytest.mark.slow


class Talker(Scripted):
    """Answers with its prompt, in the session that it was given: a copy of one is OTHER, a new one SESSION."""

    cumulative = frozenset()

    def launch(self, query: Query, folder: Path) -> Launch:
        self.launched.append(query)
        session = OTHER if query.fork_session else query.resume_session_id or SESSION
        script = (
            f"tell('init', {session!r}); said = sys.stdin.read()\n"
            "if said == 'fail': sys.exit(3)\n"
            "while said == 'stay': time.sleep(0.05)\n"
            "tell('result', said, False, {'total_cost_usd': 0.5, 'input_tokens': 10, 'output_tokens': 1})"
        )
        return Launch((*PYTHON, "-c", PRELUDE + script), stdin=query.prompt)


def asked(adapter: Talker) -> list[tuple[str, str, bool]]:
    return [(query.prompt, query.resume_session_id, query.fork_session) for query in adapter.launched]


def test_each_prompt_continues_the_session(tmp_path: Path) -> None:
    adapter = Talker()

    async def main() -> None:
        async with Session(adapter, cwd=tmp_path, env={"N": 1}) as session:
            assert session.previous is None and session.session_id is None and session.cost.total_cost_usd == 0
            first = await session.ask("one")
            assert (first.output, session.session_id) == ("one", SESSION)
            assert (await session.ask("two", model="m-2")).output == "two"
            assert (
                session.cost._replace(model=None) == Cost(1.0, 20, 2)
                and session.results[0] == first
                and len(session.results) == 2
            )

    asyncio.run(main())
    assert asked(adapter) == [("one", "", False), ("two", SESSION, False)]
    assert [query.model for query in adapter.launched] == ["", "m-2"] and adapter.launched[1].env["N"] == "1"


def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    adapter = Talker()

    async def main() -> None:
        async with Session(adapter, cwd=tmp_path) as session:
            await session.ask("one")
            async with session.fork() as other:
                assert other.session_id == SESSION and other.results == ()
                await asyncio.gather(session.ask("two"), other.ask("three"))
                await other.ask("four")
                assert (session.session_id, other.session_id) == (SESSION, OTHER)
                assert other.cost.total_cost_usd == 1.0

    asyncio.run(main())
    assert asked(adapter)[0] == ("one", "", False)
    assert sorted(asked(adapter)[1:3]) == [("three", SESSION, True), ("two", SESSION, False)]
    assert asked(adapter)[3] == ("four", OTHER, False)


def test_a_fork_of_nothing_is_a_new_session(tmp_path: Path) -> None:
    adapter = Talker()
    with Session(adapter, cwd=tmp_path).fork() as session:
        assert session.run("one").result().session_id == SESSION
    assert asked(adapter) == [("one", "", False)]


def test_it_goes_on_later_by_json_a_result_or_an_id(tmp_path: Path) -> None:
    adapter = Talker()
    with Session(adapter, cwd=tmp_path) as session:
        result = session.run("one").result()
        saved = json.loads(json.dumps(session.previous))
    assert saved == result.session_params
    for previous in (saved, json.dumps(saved), result, SESSION):
        with Session(adapter, cwd=tmp_path, previous=previous) as again:
            assert again.session_id == SESSION
            assert again.run("two").result().session_id == SESSION
    assert asked(adapter)[1:] == [("two", SESSION, False)] * 4


def test_a_failed_prompt_does_not_end_the_conversation(tmp_path: Path) -> None:
    adapter = Talker()

    async def main() -> None:
        async with Session(adapter, cwd=tmp_path) as session:
            with pytest.raises(HarnessError):
                await session.ask("fail")
            assert (await session.ask("two")).output == "two"
            assert [result.is_error for result in session.results] == [True, False]
            assert session.cost.total_cost_usd is None, "the failed one's is unknown"

    asyncio.run(main())
    assert asked(adapter) == [("fail", "", False), ("two", SESSION, False)]


def test_one_prompt_at_a_time_and_none_after_the_end(tmp_path: Path) -> None:
    adapter = Talker()

    async def main() -> RunResult | None:
        async with Session(adapter, cwd=tmp_path, grace_seconds=2.0) as session:
            with pytest.raises(Refused, match="needs a prompt"):
                await session.ask(" ")
            running = session.run("stay").start()
            with pytest.raises(Refused, match="still answering"):
                await session.ask("two")
        with pytest.raises(Refused, match="closed"):
            await session.ask("three")
        return running.wait(0)

    ended = asyncio.run(main())
    assert ended is not None and ended.error_category == "aborted", "leaving the block ends it"
    assert len(adapter.launched) <= 1


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"previous": 7}, "previous wants .*, not int"),
        ({"promt": "x"}, "'promt' is no option"),
        ({"resume_session_id": SESSION}, "'resume_session_id' is no option"),
        ({"harness": "no-such"}, "Unknown HARNESS_PROVIDER"),
        ({"harness": 7}, "a harness by its name, or an adapter, not int"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(wanted: dict, told: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=told):
        Session(**{"harness": Talker(), "cwd": tmp_path, **wanted})
