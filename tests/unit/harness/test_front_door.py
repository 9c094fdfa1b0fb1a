"""The public interface ``swarm_mcp.harness``: events, results, conversations, and the programs of its page."""

import ast
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.harness_fixtures import OTHER, PRELUDE, PYTHON, SESSION, Scripted, kinds, run_of
from support.loop_fixtures import Fail, Model, Say, settings
from support.python_page import PAGE, SECRET, programs, write
from support.requirement import requirement

import swarm_mcp.harness as front_door
from swarm_mcp.agents.harness.adapter import Launch
from swarm_mcp.agents.harness.query_types import checked, normalized
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.errors import Refused
from swarm_mcp.harness import Cost, Event, HarnessError, McpServer, Query, Run, RunResult, Session, Unsupported

pytestmark = pytest.mark.slow

GOOD = "tell('init', 's-1'); tell('say', 'hello'); tell('result', 'all done')"
LONG = "tell('say', 'hello'); time.sleep(60)"
IN_ORDER = ["session_init", "message", "result"]


def test_every_name_is_there_and_typed() -> None:
    """Type checkers see the same names as the running program."""
    tree = ast.parse(Path(front_door.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {(alias.name, node.module) for node in block.body if isinstance(node, ast.ImportFrom)
             for alias in node.names}  # fmt: skip
    homes = {(name, home) for home, names in front_door._HOMES.items() for name in names}
    homes |= {(name, "swarm_mcp.agents.harness") for name in ("events", "registry")}
    assert typed == homes
    assert sorted(name for name, _ in typed) == sorted(front_door.__all__) == dir(front_door)
    for name, home in homes:
        __import__(home)
        assert getattr(front_door, name) is getattr(sys.modules[home], name), name
    with pytest.raises(ImportError, match="no_such_name"):
        exec("from swarm_mcp.harness import no_such_name")


@requirement("C-01")
def test_it_loads_only_what_is_asked_for() -> None:
    script = (
        "import sys; from swarm_mcp.harness import Query\n"
        "print(*sorted(name for name in sys.modules if name.startswith('swarm_mcp.agents.harness')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["swarm_mcp.agents.harness", "swarm_mcp.agents.harness.query"]


def test_events_in_a_loop(tmp_path: Path) -> None:
    run = run_of(Scripted(GOOD), tmp_path)
    seen = list(run.events())
    assert kinds(seen) == IN_ORDER
    assert run.result().output == "all done"
    assert list(run.events()) == []  # it is over


def test_two_loops_get_every_event_each(tmp_path: Path) -> None:
    run = run_of(Scripted(GOOD), tmp_path)
    first, second = run.events(), run.events()
    assert kinds(list(first)) == IN_ORDER == kinds(list(second))


def test_events_beside_other_work_of_an_event_loop(tmp_path: Path) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async def main() -> tuple[list[Event], RunResult]:
        other = asyncio.create_task(beat())
        run = run_of(Scripted("tell('init', 's-1'); time.sleep(0.5); " + GOOD.partition(";")[2]), tmp_path)
        seen = [event async for event in run.events()]
        result = await run
        other.cancel()
        return seen, result

    seen, result = asyncio.run(main())
    assert kinds(seen) == IN_ORDER and result.output == "all done"
    assert beats > 1, "the loop was not blocked"


@requirement("A-28")
def test_many_runs_side_by_side(tmp_path: Path) -> None:
    async def main() -> list[RunResult]:
        runs = [run_of(Scripted(f"tell('result', 'number {number}')"), tmp_path) for number in range(4)]
        return await asyncio.gather(*runs)

    assert [result.output for result in asyncio.run(main())] == [f"number {number}" for number in range(4)]


@pytest.mark.parametrize("leave", ["break", "raise"])
def test_leaving_the_block_ends_the_run(tmp_path: Path, leave: str) -> None:
    run = run_of(Scripted(LONG), tmp_path, grace_seconds=2.0)
    try:
        with run:
            for event in run.events():
                if event.kind == "message":
                    if leave == "raise":
                        raise ZeroDivisionError
                    break
    except ZeroDivisionError:
        pass
    found = run.wait(0)
    assert found is not None and found.error_category == "aborted"


def test_leaving_the_block_of_an_event_loop_ends_the_run(tmp_path: Path) -> None:
    async def main() -> RunResult | None:
        async with run_of(Scripted(LONG), tmp_path, grace_seconds=2.0) as run:
            async for event in run.events():
                if event.kind == "message":
                    break
        return run.wait(0)

    found = asyncio.run(main())
    assert found is not None and found.error_category == "aborted"


def test_who_is_cancelled_while_waiting_ends_the_run(tmp_path: Path) -> None:
    async def main() -> Run:
        run = run_of(Scripted(LONG), tmp_path, grace_seconds=2.0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.ensure_future(run), 0.5)
        return run

    found = asyncio.run(main()).wait(60)
    assert found is not None and found.error_category == "aborted"


@requirement("D-05")
def test_failures_are_exceptions(tmp_path: Path) -> None:
    async def awaited(run: Run) -> RunResult:
        return await run

    query = Query("do it", str(tmp_path))
    for ask in (lambda run: run.result(), lambda run: asyncio.run(awaited(run))):
        with pytest.raises(HarnessError) as caught:
            ask(Run(Scripted("sys.exit(3)"), query))
        assert caught.value.code == "process_crashed" and caught.value.result.exit_code == 3
        run = Run(Scripted(GOOD), query._replace(mode="read-only"))
        with pytest.raises(Unsupported, match="mode read-only"):
            ask(run)
        assert list(tmp_path.iterdir()) == [] and not Path(run.record).exists()
    for senseless in ({"prompt": ""}, {"timeout_seconds": -1}, {"cwd": "/no-such-folder"}):
        with pytest.raises(Refused):
            Run(Scripted(GOOD), query._replace(**senseless)).events()


def test_a_harness_by_its_name(tmp_path: Path) -> None:
    query = Query("", str(tmp_path), command=("echo", "hello"))
    assert Run("process", query).result().output == "hello"
    with pytest.raises(Refused, match="Unknown HARNESS_PROVIDER"):
        Run("no-such", query)


def test_what_is_obviously_meant_is_taken(tmp_path: Path) -> None:
    """Paths, lists, numbers as texts, and servers as `.mcp.json` has them."""
    look = "tell('result', os.getcwd() + ' ' + os.environ['PORT'] + ' ' + os.environ['RATE'])"
    query = Query("x", tmp_path, env={"PORT": 8080, "RATE": 0.5}, log_file=tmp_path / "log", additional_args=[7])
    assert Run(Scripted(look), query).result().output == f"{tmp_path.resolve()} 8080 0.5"
    assert (tmp_path / "log").exists()
    servers = {
        "one": {"command": Path("/bin/cat"), "args": [tmp_path, 3], "env": {"N": 1}, "cwd": tmp_path},
        "two": {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X-N": 2}},
        "three": McpServer(Path("/bin/cat"), [tmp_path], {"N": 1}, cwd=tmp_path),
    }
    found = normalized(Query("x", tmp_path, mcp_servers=servers, skills=[tmp_path])).mcp_servers
    assert found["one"] == McpServer("/bin/cat", (str(tmp_path), "3"), {"N": "1"}, str(tmp_path))
    assert found["two"] == McpServer(url="http://127.0.0.1:1/", headers={"X-N": "2"})
    assert found["three"] == McpServer("/bin/cat", (str(tmp_path),), {"N": "1"}, str(tmp_path))


WRONG = {
    "cwd": (None, 7, b"/tmp"), "effort": ("much",), "prompt": (None, 7), "model": (3,), "mode": (None, ["edit"], "wild"), "task_id": (7,),
    "env": ({"A": None}, {"A": True}, {7: "x"}, [("A", "b")]), "fork_session": ("yes",),
    "additional_directories": ("/tmp", [None]), "additional_args": ("--x", 7, [["--x"]]), "skills": ({"a": 1},),
    "timeout_seconds": ("5", True, float("nan"), float("inf"), None), "grace_seconds": (float("nan"),),
    "max_turns": (1.5, "3", 10**30), "max_cost_usd": (float("nan"),), "output_schema": ("{}", [], int, {"a": {1}}, {1: object()}),
    "log_file": (7, "/no-such-folder/log"),
    "client_tools": ((7,), "x"), "mcp_servers": ({"s": 7}, {"s": {}}, {"s": {"command": 7}}, {"s": {"type": "ws"}},
    {"s": {"command": "x", "env": {"A": None}}}, {"s": {"command": "x", "args": "y"}}, ["x"]),
}  # fmt: skip


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, some in WRONG.items() for value in some])
def test_a_field_of_a_wrong_type_is_refused_by_its_name(field: str, value: object, tmp_path: Path) -> None:
    before = len(recorded_faults())
    query = Query("x", str(tmp_path))._replace(**{field: value})
    with pytest.raises(Refused, match=field):
        Run(Scripted(GOOD), query).result()
    with pytest.raises(Refused, match=field):
        checked(query)
    assert len(recorded_faults()) == before


@pytest.mark.parametrize("name", ["previous", "membership", "record_folder"])
def test_a_wrong_argument_of_a_run_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"{name} wants"):
        Run(Scripted(GOOD), Query("x", tmp_path), **{name: 7})


def test_a_listener_that_is_no_function_is_refused(tmp_path: Path) -> None:
    run = Run(Scripted(GOOD), Query("x", tmp_path))
    for name in ("on_event", "on_log", "on_meta"):
        with pytest.raises(Refused, match=f"{name} wants a function, not int"):
            getattr(run, name)(7)


def test_a_function_that_cannot_be_a_tool_is_refused_before_the_start(tmp_path: Path) -> None:
    run = Run(Scripted(GOOD), Query("x", tmp_path, client_tools=[lambda: 1]))
    with pytest.raises(Refused, match="cannot be the name of a tool"):
        run.start()
    assert not os.path.exists(run.record)


def test_no_query_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="wants a Query, not dict"):
        Run(Scripted(GOOD), {"prompt": "x", "cwd": str(tmp_path)})


def test_a_callers_listener_that_raises_is_no_fault_of_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_event: object) -> None:
        raise RuntimeError("the caller's own fault")

    run = Run(Scripted(GOOD), Query("x", str(tmp_path))).on_event(broken)
    assert not run.result().is_error
    assert recorded_faults() == [] and "the caller's own fault" in caplog.text and "broken" in caplog.text


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
            assert session.cost._replace(model=None) == Cost(1.0, 20, 2) and session.results[0] == first
            assert len(session.results) == 2

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


PROGRAMS = programs()


@pytest.fixture
def model() -> Iterator[Model]:
    served = Model()
    yield served
    served.close()


class Ground:
    """A folder with a program in it, and an environment with its model."""

    def __init__(self, folder: Path, model: Model):
        self.folder = folder
        self.environment = {
            **os.environ,
            **settings(model, folder),
            "STOCK_TOKEN": SECRET,
            "SWARM_HARNESS_PROJECT_SERVERS": "0",
        }
        del self.environment["SWARM_LOOP_CONFIG"]  # each run has its own
        write(folder)

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / f"{name}.py"
        path.write_text(PROGRAMS[name])
        return subprocess.run([sys.executable, str(path), *words], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=90)  # fmt: skip

    def printed(self, name: str, *words: str) -> str:
        done = self.run(name, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def ground(tmp_path: Path, model: Model) -> Ground:
    return Ground(tmp_path, model)


def test_the_page_has_a_program_for_each_use() -> None:
    assert set(PROGRAMS) == {"shop", "server", "schema", "talk"}
    assert all(len(text.splitlines()) <= 25 for text in PROGRAMS.values())
    named = [
        name for name in front_door.__all__ if f"`{name}" in PAGE.read_text() or name in "".join(PROGRAMS.values())
    ]
    assert {"Run", "Query", "McpServer", "HarnessError", "Price", "priced", "events_in", "to_envelope"} <= set(named)


@pytest.mark.thorough
def test_a_client_tool(ground: Ground, model: Model) -> None:
    call = ("mcp__client_tools__price_of", {"item": "lamp", "count": 2})
    model.script = [Say(calls=(call,)), Say("They are 70.")]
    assert ground.printed("shop", "loop") == "They are 70.\n"
    assert model.told() == ["70.0"]


def test_a_failure(ground: Ground, model: Model) -> None:
    model.script = [Fail(401, {"type": "authentication_error", "message": "invalid x-api-key"})]
    done = ground.run("shop", "loop")
    assert done.returncode == 1 and done.stderr.startswith("auth_failed: loop: ")


@pytest.mark.thorough
def test_a_server_with_a_secret(ground: Ground, model: Model) -> None:
    model.script = [Say(calls=(("mcp__stock__count", {}),)), Say("There are some.")]
    told = f"{len(SECRET)} lamps"
    assert ground.printed("server", "loop") == f"mcp__stock__count: {told}\nThere are some.\n"
    assert model.told() == [told]


@pytest.mark.thorough
def test_an_answer_by_a_schema(ground: Ground, model: Model) -> None:
    model.script = [Say('{"name": "lamp", "price": 35}')]
    assert ground.printed("schema", "loop") == "lamp for 35.00\n"
    model.script = [Say('{"name": "lamp"}')]
    done = ground.run("schema", "loop")
    assert done.returncode == 1 and "schema" in done.stderr


def test_a_conversation(ground: Ground, model: Model) -> None:
    model.script = [Say("It is fine.")]
    assert ground.printed("talk", "loop") == "It is fine.\nIt is fine.\nIt is fine.\n200\n"
