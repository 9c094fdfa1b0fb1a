"""The screen of `swarm-mcp top` and its actions, with a store behind it, through Textual's own pilot."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest
from support.altered import Limits
from support.busy_checkout import busy, session
from support.command_line import option
from support.fixtures import Ground, time_limit
from textual.pilot import Pilot

from swarm_mcp.agents.harness.events import message
from swarm_mcp.answers.work import Edit
from swarm_mcp.cli.arguments import parse, verb_named
from swarm_mcp.domain import Session, onlooker
from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import Attempt
from swarm_mcp.view.overview import now
from swarm_mcp.view.top import app, picture, reading
from swarm_mcp.view.top.app import Top
from swarm_mcp.view.top.pane import Question
from swarm_mcp.view.top.picture import Picture, Row, Wish
from swarm_mcp.view.top.reading import ALL, Reader

pytestmark = pytest.mark.slow
HOSTILE = "[red]x[/red] [@click=app.quit]y[/] \x1b]0;title\x07\x1b[2J \u202egnp.exe \u200b\r\n$(id) {{7*7}}"


@pytest.fixture(autouse=True)
def nobody_around(monkeypatch: pytest.MonkeyPatch, ground: Ground):
    """The viewer is no session, unless the test says so; typed paths count from the checkout."""
    monkeypatch.chdir(ground.repo)
    monkeypatch.setattr("swarm_mcp.view.top.reading.surrounding_session", lambda store: None)


def made(ground: Ground, *words: str) -> Top:
    """The screen as the command makes it with these words."""
    args = parse("top", verb_named("top").usages, list(words))
    acting = option("--as", args.value("--as"))
    return Top(ALL, Reader(ground.scope, args).read, acting, [], Wish(everywhere=args.given("--all")))


def played(app: Top, play: Callable[[Pilot], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    """Run `play` on the screen."""

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await play(pilot)

    asyncio.run(run())


def seen(app: Top) -> str:
    """The screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def until(pilot: Pilot, condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until `condition` holds."""
    end = asyncio.get_running_loop().time() + time_limit(seconds)
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"not within {seconds} s; the screen:\n{seen(pilot.app)}"
        await pilot.pause(0.02)


def shows(pilot: Pilot, *words: str) -> Callable[[], bool]:
    """Return a check that all of `words` are on the screen."""
    return lambda: all(word in seen(pilot.app) for word in words)


async def line_with(pilot: Pilot, word: str) -> str:
    """Wait for a line with this word, and return the first one."""
    await until(pilot, shows(pilot, word))
    return lines_with(pilot.app, word)[0]


def lines_with(app: Top, word: str) -> list[str]:
    return [line for line in seen(app).splitlines() if word in line]


def test_an_empty_store_says_what_to_do(ground: Ground):
    async def play(pilot: Pilot) -> None:
        await until(
            pilot, shows(pilot, "no session is here", "nothing is locked", "no write has been refused", "no tasks")
        )

    played(made(ground), play)


def test_who_holds_waits_is_refused_and_works_appears_and_goes(ground: Ground):
    one, two = session(ground, "5f0c2f6e"), session(ground, "77aa88bb", runtime="codex")

    async def play(pilot: Pilot) -> None:
        app = pilot.app
        await until(pilot, shows(pilot, "claude-code 5f0c2f6e", "codex 77aa88bb", "nothing is locked"))
        ground.lock(one, "src/a.py", "renumbering")
        await until(pilot, shows(pilot, "src/a.py", '"renumbering"'))
        assert "claude-code 5f0c2f6e" in await line_with(pilot, '"renumbering"')
        with ground.store() as store:
            store.denials.report(Session(two), f"{ground.scope}/src/a.py", one["id"], Attempt("Edit"))
        await until(pilot, shows(pilot, "Refused 1", "Edit"))
        assert "codex 77aa88bb" in await line_with(pilot, "Edit")
        with ground.store() as store:
            spec = {"type": "implement", "title": "Add an index", "description": "x"}
            task = store.tasks.request(Session(one), spec)["task"]
            store.tasks.claim(Session(two), task["id"], True)
        await until(pilot, shows(pilot, "Work 1", "in_progress"))
        # As a task, and as what the session does.
        await until(pilot, lambda: len(lines_with(app, "Add an")) == 2)
        with ground.store() as store:
            store.locks.release(Session(one), "src/a.py")
        await until(pilot, shows(pilot, "nothing is locked"))

    played(made(ground), play)


def test_those_who_wait_stand_below_the_lock_in_their_order(ground: Ground, store: Store):
    one, two, three = (session(ground, name) for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc"))
    ground.lock(one, "a.py")
    from swarm_mcp.store.lock_request import request

    for waiting in (two, three):
        store.queue.join(Session(waiting), request(Session(waiting), ["a.py"]), 60.0)

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "1. in line", "2. in line", "waits", "Locks 1 "))
        lines = seen(pilot.app).splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith(" a.py"))
        assert "aaaaaaaa" in lines[at] and "bbbbbbbb" in lines[at + 1] and "cccccccc" in lines[at + 2]
        assert "Locks 1 " in seen(pilot.app), "waiters are no locks"
        assert "waits" in await line_with(pilot, "bbbbbbbb")

    played(made(ground), play)


def test_words_of_sessions_are_text_and_nothing_else(ground: Ground, store: Store):
    one = ground.session("5f0c2f6e-1", label=f"origin:claude-code {HOSTILE}")
    ground.lock(one, "[bold]a[/bold]\x1b[31m.py", HOSTILE)
    spec = {"type": "implement", "title": HOSTILE, "description": "x"}
    store.tasks.request(Session(one), spec)

    async def play(pilot: Pilot) -> None:
        app = pilot.app
        await until(pilot, shows(pilot, "[bold]a[/bold]\\e[31m.py", "[red]x[/red]", "\\e]0;title\\x07"))
        await pilot.press("2", "w")
        await until(pilot, shows(pilot, "swarm-mcp why", "held by", "[red]x[/red]"))
        await pilot.press("escape", "4", "enter")
        await until(pilot, shows(pilot, "swarm-mcp task"))
        await pilot.press("escape", "slash", *"[red]x")
        await until(pilot, shows(pilot, 'rows with "[red]x"'))
        assert app.is_running
        for char in seen(app):
            assert char == "\n" or char.isprintable(), repr(char)

    played(made(ground), play, size=(200, 50))


def test_words_narrow_the_rows_and_escape_shows_all_again(ground: Ground):
    one, two = session(ground, "5f0c2f6e"), session(ground, "77aa88bb", runtime="codex")
    ground.lock(one, "a.py")
    ground.lock(two, "b.py")

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "a.py", "b.py"))
        await pilot.press("slash", *"codex")
        await until(pilot, lambda: "a.py" not in seen(pilot.app) and "b.py" in seen(pilot.app))
        await pilot.press("enter")
        assert not pilot.app.query_one("#words").display
        await pilot.press("q" if not pilot.app.panes[0].has_focus else "escape")
        await until(pilot, shows(pilot, "a.py", "b.py"))
        await pilot.press("1", "home", "enter")  # a session: its own rows
        await until(pilot, shows(pilot, "rows with"))

    played(made(ground), play)


def test_ones_own_lock_is_released_after_a_question(ground: Ground):
    me, other = session(ground, "5f0c2f6e"), session(ground, "77aa88bb")
    ground.lock(me, "mine.py")
    ground.lock(other, "theirs.py")

    def held() -> set[str]:
        with ground.store(read_only=True) as store:
            return {row["file"].rpartition("/")[2] for row in store.locks.held(ground.scope)}

    async def play(pilot: Pilot) -> None:
        app = pilot.app
        await until(pilot, shows(pilot, "mine.py", "theirs.py", "you (claude-code 5f0c2f6e)"))
        await pilot.press("2")
        pane = app.panes[1]
        rows = {row.file.rpartition("/")[2]: row.key for row in pane.table.rows}
        pane.choose(rows["theirs.py"])
        await pilot.press("u")
        await until(pilot, shows(pilot, "not your lock"))
        pane.choose(rows["mine.py"])
        for no in ("n", "escape", "enter"):
            await pilot.press("u")
            await until(pilot, lambda: isinstance(app.screen, Question))
            assert "Unlock" in seen(app)
            await pilot.press(no)
            await until(pilot, lambda: not isinstance(app.screen, Question))
        assert held() == {"mine.py", "theirs.py"}
        await pilot.press("u", "y")
        await until(pilot, lambda: held() == {"theirs.py"})
        await until(pilot, shows(pilot, "unlocked"))

    played(made(ground, "--as", me["id"]), play)


def test_of_many_locks_all_are_counted_and_it_is_said_how_many_were_looked_through(ground: Ground, limits: Limits):
    one = session(ground, "5f0c2f6e")
    for number in range(9):
        ground.lock(one, f"file{number}.py")
    limits(now, COUNTED=5)
    limits(reading, ROWS=4, SEARCHED=6)

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "Locks 9, 5 not shown"))
        await pilot.press("slash", *"file8")
        await until(pilot, shows(pilot, "Locks 1 of the newest 6"))
        await pilot.press("escape", "slash", *"file0")
        await until(pilot, shows(pilot, "Locks 0 of the newest 6", "nothing with these words"))
        await pilot.press("escape", "f")
        await until(pilot, shows(pilot, "who holds this file?"))
        await pilot.press(*"file0.py", "enter")
        await until(pilot, shows(pilot, "swarm-mcp why file0.py", "held by claude-code 5f0c2f6e"))

    played(made(ground), play)


def test_what_is_new_is_seen_but_where_a_row_has_been_chosen(ground: Ground):
    one = session(ground, "5f0c2f6e")
    ground.lock(one, "first.py")

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "first.py"))
        for number in range(30):
            ground.lock(one, f"new{number}.py")
        await until(pilot, shows(pilot, "new29.py", "Locks 31"))
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.panes[1].row.file.endswith("new29.py"))
        ground.lock(one, "newest.py")
        await until(pilot, shows(pilot, "Locks 32"))
        assert pilot.app.panes[1].row.file.endswith("new29.py"), "what a key is meant for stays"

    played(made(ground), play)


def test_what_has_happened_here_is_a_key_away(ground: Ground):
    busy(ground)

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "renumbering"))
        await pilot.press("t")
        await until(pilot, shows(pilot, "swarm-mcp log", "refused", "src/store.py"))
        await pilot.press("escape", "3", "l")
        await until(pilot, shows(pilot, "swarm-mcp log src/store.py", "refused"))
        await pilot.press("escape", "3", "enter")
        await until(pilot, shows(pilot, "swarm-mcp why src/store.py", "would be refused"))
        await pilot.press("escape", "3", "b")
        await until(pilot, shows(pilot, "swarm-mcp blame src/store.py --uncommitted"))
        await pilot.press("escape", "1", "b")
        await until(pilot, shows(pilot, "swarm-mcp diff --stat --session"))

    played(made(ground), play)


def test_what_a_session_has_changed_last_is_what_it_does(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    one = session(ground, "5f0c2f6e")
    found = [Edit(f"{ground.scope}/src/{name}.py", one["id"], "x", 1, "Edit") for name in ("newest", "older")]
    sizes = {"a journal": (1, 1)}
    monkeypatch.setattr(reading, "journal_marks", lambda scope: dict(sizes))
    monkeypatch.setattr(reading, "uncommitted_files", lambda store, scope, people: found)

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "changed src/newest.py +1"))
        del found[:]
        sizes["a journal"] = (2, 2)
        ground.lock(one, "a.py")
        await until(pilot, lambda: "changed" not in seen(pilot.app))

    played(made(ground), play, (120, 30))


def test_unread_messages_and_uncommitted_files_have_rows(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    one, two = session(ground, "5f0c2f6e"), session(ground, "77aa88bb", "codex")
    edit = Edit(f"{ground.scope}/src/new.py", one["id"], "claude-code 5f0c2f6e", 1, "Edit")
    monkeypatch.setattr(reading, "journal_marks", lambda scope: {"a journal": (1, 1)})
    monkeypatch.setattr(reading, "uncommitted_files", lambda store, scope, people: [edit])
    with ground.store() as store:
        store.messages.send(Session(one), two["id"], "the queue has moved")

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "Uncommitted 1", "Unread 1", "the queue has moved"))
        line = await line_with(pilot, "the queue has moved")
        assert line.index("codex 77aa88bb") < line.index("claude-code 5f0c2f6e"), "to, from"
        await until(pilot, lambda: any(line.rstrip().endswith("Edit") for line in lines_with(pilot.app, "src/new.py")))
        await pilot.press("5")
        await until(pilot, lambda: pilot.app.panes[4].row.file == edit.path)
        with ground.store() as store:
            store.messages.acknowledge([row.id for row in store.messages.take(store.instances.get(two["id"]))])
        await until(pilot, shows(pilot, "Unread 0", "every message has been read"))

    played(made(ground), play, (120, 30))


def test_what_is_refused_at_keep_and_what_was_told_have_rows(ground: Ground, store: Store):
    one, two = session(ground, "5f0c2f6e"), session(ground, "77aa88bb", "codex")
    refused = Attempt("Bash", why="uncommitted", deed="overwrite")
    told = Attempt("Bash", why="sweep", deed="stage", command="git add -A", is_notice=True)
    for name, attempt in (("a.py", refused), ("b.py", told)):
        store.denials.report(Session(two), f"{ground.scope}/{name}", one["id"], attempt)

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "Refused 2"))
        assert "Bash: it would overwrite what claude-code 5f0c2f6e changed" in await line_with(pilot, " a.py")
        assert "told, Bash: `git add -A` would stage what" in await line_with(pilot, " b.py")

    played(made(ground), play, (140, 30))


def test_the_keys_and_the_last_line_fit_into_80_columns(ground: Ground):
    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "nothing is locked"))
        assert app.LINE in seen(pilot.app)
        await pilot.press("question_mark")
        await until(pilot, lambda: all(line in seen(pilot.app) for line in app.PAGE.splitlines()))

    played(made(ground), play, (80, 24))


def test_a_task_is_called_off_after_a_question(ground: Ground):
    me = busy(ground)

    def status() -> str:
        with ground.store(read_only=True) as store:
            ((_, task),) = store.tasks.walk(onlooker("", ground.scope))
            return task.status

    async def play(pilot: Pilot) -> None:
        app = pilot.app
        await until(pilot, shows(pilot, "Add an index", "$0.1250"))
        await pilot.press("1", "x")
        await until(pilot, shows(pilot, "choose a worker or a task first"))
        await pilot.press("4", "x")
        await until(pilot, shows(pilot, "Call off this task"))
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(app.screen, Question))
        assert status() == "in_progress"
        await pilot.press("x", "y")
        await until(pilot, lambda: status() == "cancelled")

    played(made(ground, "--as", me["id"]), play)


def test_all_scopes_or_this_one(ground: Ground):
    elsewhere = ground.folder / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    ground.lock(session(ground, "5f0c2f6e"), "here.py")
    ground.lock(session(ground, "77aa88bb", directory=str(elsewhere)), "there.py")

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "here.py", "there.py", "all checkouts of this machine (2)"))
        await pilot.press("a")
        await until(pilot, lambda: "there.py" not in seen(pilot.app) and "here.py" in seen(pilot.app))

    played(made(ground, "--all"), play)


def test_the_transcript_of_a_worker_is_followed_as_it_grows(ground: Ground):
    me, record = session(ground, "5f0c2f6e"), ground.folder / "record.jsonl"

    def says(text: str) -> None:
        with record.open("a") as lines:
            lines.write(json.dumps(message("assistant", text)._replace(at=1.0).to_dict()) + "\n")

    says(f"I look first {HOSTILE}")
    with ground.store() as store:
        run = {"id": "12ab34cd-0000", "scope": ground.scope, "instance_id": me["id"], "harness": "codex"}
        store.runs.begin({**run, "cwd": ground.scope, "cost_usd": 0.125, "record": str(record), "state": "running"})

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "worker codex", "running", "$0.1250"))
        await pilot.press("4", "enter")
        await until(pilot, shows(pilot, "swarm-mcp worker logs 12ab34cd-0000 --follow", "I look first", "[red]x[/red]"))
        says("then I mend")
        await until(pilot, shows(pilot, "then I mend"))
        with ground.store() as store:
            store.runs.update("12ab34cd-0000", state="ended", result={"output": "all mended"})
        await pilot.press("q")
        await until(pilot, shows(pilot, "worker codex", "done"))

    played(made(ground), play)


def test_trouble_with_the_store_is_said_and_goes(ground: Ground, limits: Limits):
    limits(picture, REST_SECONDS=0.05)
    broken = threading.Event()

    def read(wish: Wish) -> Picture:
        if broken.is_set():
            raise StoreUnavailable("the database is locked \x1b[31m[red]")
        row = Row("1", ("codex 77aa88bb", "working", "1 s", "", "", ""))
        return Picture("a scope", (ALL[0]._replace(rows=(row,), number=1), *ALL[1:]))

    async def play(pilot: Pilot) -> None:
        await until(pilot, shows(pilot, "codex 77aa88bb"))
        broken.set()
        await until(pilot, shows(pilot, "cannot be read", "the database is locked \\e[31m[red]", "codex 77aa88bb"))
        broken.clear()
        await until(pilot, lambda: "cannot be read" not in seen(pilot.app))

    played(Top(ALL, read, [], [], Wish()), play)


def test_a_fault_of_ours_ends_the_screen_first(ground: Ground):
    def read(wish: Wish) -> Picture:
        raise ValueError("a bug")

    app = Top(ALL, read, [], [], Wish())

    async def play(pilot: Pilot) -> None:
        await until(pilot, lambda: app.failure)

    played(app, play)
    assert isinstance(app.failure, ValueError)


@pytest.mark.parametrize("size", [(80, 24), (20, 5), (200, 60), (3, 1)])
def test_any_size_of_terminal_will_do(ground: Ground, size: tuple[int, int]):
    ground.lock(session(ground, "5f0c2f6e"), "a.py", "a note")

    async def play(pilot: Pilot) -> None:
        await until(pilot, lambda: pilot.app.panes[0].table.rows)
        for key in ("tab", "down", "z", "pagedown", "end", "home", "z", "question_mark", "escape", "2", "3", "4"):
            await pilot.press(key)
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert all(len(line) <= 40 for line in seen(pilot.app).splitlines())

    played(made(ground), play, size)
