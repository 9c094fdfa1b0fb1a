"""The machines of a clone as `status`, `top` and the page show them, from the store and the agent."""

import time

import pytest
from starlette.testclient import TestClient
from support.fixtures import Ground

from swarm_hook_core import clock
from swarm_hook_core.process import host_id
from swarm_mcp.answers.people import machines_of
from swarm_mcp.store import Store
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.view.page.app import Keys, application
from swarm_mcp.view.top import reading
from swarm_mcp.view.top.picture import Wish
from swarm_mcp.view.top.reading import Reader

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
REPOSITORY = "example.org/app"
HOSTILE = "<b>laptop</b>\x1b[2J"


class Played:
    """A joined clone, with two sessions on another machine, and its agent's status (None: no agent)."""

    def __init__(self, ground: Ground, monkeypatch: pytest.MonkeyPatch, answering):
        self.ground = ground
        self.says: dict | None = None
        self.questions: list[bool] = []
        (ground.folder / "state" / "team" / "clones").mkdir(parents=True)
        monkeypatch.setenv("SWARM_STATE_DIR", str(ground.folder / "state"))
        answering(self)
        with ground.store() as store, TeamRows(store).writing():
            TeamRows(store).set_trees({ground.scope: REPOSITORY})
            TeamRows(store).add_session("s1", "laptop", "codex session:5f0c2f6e", ground.scope)
            TeamRows(store).add_session("s2", "laptop", "claude-code session:11112222", ground.scope)
        self.fresh(60)

    def status(self, _seconds: float, machines: bool) -> dict | None:
        self.questions.append(machines)
        return self.says

    def fresh(self, seconds: float) -> None:
        """Make the copy fresh for so many seconds; the server's last word was a quarter of an hour ago."""
        known = {"fresh_until": clock.now() + seconds, "booted": clock.boot(host_id()), "said_at": time.time() - 900}
        with self.ground.store() as store, TeamRows(store).writing():
            TeamRows(store).note(REPOSITORY, state="following", **known)

    def agent(self, *machines: dict, error: str = "", looked: float | None = 1.0) -> None:
        """Let the agent run as the machine ``here``; `machines` is the server's list."""
        one = {"repository": REPOSITORY, "version": 100, "sessions": 1, "machines": machines, "looked": looked}
        repositories = [{**one, "round_trip": 0.004}]
        self.says = {
            "machine": "here",
            "servers": [
                {"error": "another server is not reached", "repositories": []},
                {"error": error, "repositories": repositories},
            ],
        }

    def now(self):
        with Store(self.ground.database, read_only=True) as store:
            return machines_of(store, self.ground.scope)


def machine(name: str, acked: int = 100, lease: float = 5.0, left: float = 4.0, sessions: int = 1) -> dict:
    row = {"machine": name, "member": "dana", "acked": acked, "lease": lease, "left": left}
    return {**row, "sessions": sessions}


ALL = machine("here"), machine("laptop", 97), machine("ci", 80, left=-200.0, sessions=0), machine("box", 1, 0.0, -60.0)


@pytest.fixture
def played(ground: Ground, monkeypatch: pytest.MonkeyPatch, answering) -> Played:
    return Played(ground, monkeypatch, answering)


def states(played: Played) -> dict[str, str]:
    found = played.now()
    assert found is not None
    return {one.name: f"{one.sessions} {one.state}" for one in found.machines}


def test_each_machine_says_whether_it_is_there_and_how_far_it_has_come(played):
    played.agent(*ALL)
    assert list(states(played).items()) == [
        ("here", "1 this one"),
        ("box", "1 ended 60 s ago"),
        ("ci", "0 silent for 3 min, 20 changes behind"),
        ("laptop", "2 there, 3 changes behind"),
    ]
    assert [one.name for one in played.now().machines if one.is_offline] == ["ci"]
    assert (played.now().freshness, played.now().error) == ("fresh, its server answers in 4 ms", "")
    assert all(played.questions)


def test_where_the_server_is_not_reached_nothing_is_said_of_the_others(played):
    played.fresh(-1)
    played.agent(*ALL, error="the server does not answer")
    assert states(played) == {
        "here": "1 this one", "box": "1 not known", "ci": "0 not known", "laptop": "2 not known",
    }  # fmt: skip
    found = played.now()
    assert found.freshness == "not fresh: its server was not heard of for 15 min"
    assert found.error == "the server does not answer"


def test_what_was_seen_a_while_ago_says_nothing(played):
    played.agent(*ALL, looked=20.0)
    assert states(played)["ci"] == "0 not known"
    played.agent(looked=None)
    assert states(played) == {"here": "1 this one", "laptop": "2 not known"}


def test_without_an_agent_the_machines_of_known_sessions_are_shown(played):
    assert states(played) == {"laptop": "2 not known"}
    assert played.now().freshness == "fresh"


def test_outside_of_a_team_nobody_is_asked(played, tmp_path):
    with Store(played.ground.database, read_only=True) as store:
        assert machines_of(store, str(tmp_path)) is None
    assert played.questions == []


def test_status_shows_them(played):
    played.agent(*ALL)
    said = played.ground.swarm("status").out
    assert "team: example.org/app, fresh, its server answers in 4 ms\n" in said
    assert "  machine  ci  dana  0 sessions  silent for 3 min, 20 changes behind\n" in said
    told = played.ground.swarm("status", "--json").json["team"]
    assert (told["fresh"], told["milliseconds"]) == (True, 4.0)
    assert told["machines"][2] == {
        "name": "ci", "person": "dana", "sessions": 0, "is_own": False, "silent_for": 200.0, "behind": 20,
        "has_ended": False, "state": "silent for 3 min, 20 changes behind",
    }  # fmt: skip
    played.fresh(-1)
    assert "not heard of for 15 min: swarm-mcp team status\n" in played.ground.swarm("status").out


def test_top_has_a_line_for_them_which_begins_with_those_that_are_away(played, monkeypatch):
    played.agent(*ALL)
    monkeypatch.chdir(played.ground.repo)
    monkeypatch.setenv("SWARM_DB_PATH", played.ground.database)

    class Args:
        def value(self, _name: str) -> str:
            return ""

    shown = Reader(played.ground.scope, Args()).read(Wish())
    assert shown.news == (
        "team example.org/app fresh, its server answers in 4 ms; ci silent for 3 min, 20 changes behind, box ended"
        " 60 s ago, laptop there, 3 changes behind"
    )
    sessions = {row.cells[0]: row.cells[1:3] for row in shown.tables[0].rows}
    assert sessions["codex 5f0c2f6e on laptop"] == ("live", ""), "when it was seen there is not told here"
    assert reading.machines(None) == ""


def test_the_page_has_a_table_of_them(played):
    played.agent(machine("here"), machine("ci", left=-200.0), machine(HOSTILE))
    keys = Keys(4711)
    app = application(lambda: Store(played.ground.database, read_only=True), keys)
    with TestClient(app, base_url="http://127.0.0.1:4711") as client:
        text = client.get(f"/?token={keys.shown}").text
        page = client.get("/session", params={"id": "s1"}).text
    assert "Machines of example.org/app: fresh, its server answers in 4 ms" in text
    assert '<tr class="conflict"><th scope="row">ci</th><td data-of="Person">dana</td>' in text
    assert '<td data-of="Sessions">1</td><td data-of="State">silent for 3 min</td></tr>' in text
    assert "&lt;b&gt;laptop" in text and HOSTILE not in text and "<b>laptop" not in text
    assert '<p class="faint">elsewhere</p>' in text
    assert "live, on another machine" in page
