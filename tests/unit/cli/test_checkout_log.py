"""`swarm-mcp log` without a PATH: the newest events of the agents here, and the number of the others."""

import re
import time

import pytest
from support.altered import Limits
from support.fixtures import Ground
from support.sessions import new_session, ready_store, start, write

from swarm_mcp.answers import checkout_history
from swarm_mcp.cli.checkout_log import since_when
from swarm_mcp.errors import UsageError


@pytest.fixture
def morning(ground: Ground) -> Ground:
    """A holder and one that is refused, and a task that is done."""
    ann, bob = ground.session("ann", "identity:p ann"), ground.session("bob", "identity:p bob")
    ground.lock(ann, f"{ground.scope}/src/schema.sql", "renumbering")
    assert ground.swarm("lock", "src/schema.sql", "--as", bob["id"]).code == 1
    asked = ground.swarm("request-task", "fix", "Mend it", "--as", ann["id"], "--json").json
    assert ground.swarm("claim", asked["id"], "--as", bob["id"]).code == 0
    assert ground.swarm("update-task", asked["id"], "--status", "done", "--as", bob["id"]).code == 0
    assert ground.swarm("unlock", "src/schema.sql", "--as", ann["id"]).code == 0
    return ground


def names(ground: Ground) -> tuple[str, str]:
    ids = [row["id"][:8] for row in ground.sql("SELECT id FROM instances ORDER BY rowid")]
    return f"ann {ids[0]}", f"bob {ids[1]}"


def told(ground: Ground, *words: str) -> list[str]:
    done = ground.swarm("log", *words)
    assert (done.code, done.err) == (0, ""), done
    return done.out.splitlines()


def test_it_tells_what_happened_oldest_first_after_a_line_of_numbers(morning: Ground):
    ann, bob = names(morning)
    head, *lines = told(morning)
    assert head.startswith(f"in {morning.scope} since 24 h ago: 2 sessions joined, 1 lock taken, 1 refusal, ")
    assert head.endswith("3 changes to tasks, 1 released")
    kinds = [re.sub(r"^(now|\d+ \w+ ago) +", "", line).split()[0] for line in lines]
    assert kinds == ["joined", "joined", "acquired", "refused", "task", "task", "task", "released"]
    assert lines[2].endswith(f"acquired  src/schema.sql by {ann}: renumbering")
    assert lines[3].endswith(f'refused   src/schema.sql to {bob}, by lock_file: held by {ann}: "renumbering"')
    assert lines[4].endswith(f" created by {ann}: Mend it") and lines[6].endswith(f" done by {bob}: Mend it")
    below = morning.repo / "src"
    below.mkdir()
    assert any(f"  schema.sql by {ann}" in line for line in morning.swarm("log", cwd=below).out.splitlines())


def test_it_is_bounded_and_says_how_much_came_before(morning: Ground):
    head, rest, *lines = told(morning, "--limit", "3")
    assert head == told(morning)[0] and len(lines) == 3
    assert rest == "5 before these: swarm-mcp log --limit 8"
    shown = morning.swarm("log", "--limit", "3", "--json").json
    assert (shown["before"], shown["scope"], len(shown["events"])) == (5, morning.scope, 3)
    assert shown["counts"]["denied"] == 1 and "is_cut" not in shown
    assert [one["what"] for one in shown["events"]] == ["task", "task", "released"]
    for words in (["--limit", "0"], ["--after", "x"], ["--since", "soon"], ["--since", "25:00"]):
        assert morning.swarm("log", *words).code == 2


def test_of_a_busy_day_so_many_events_are_counted_and_no_more(morning: Ground, limits: Limits):
    limits(checkout_history, COUNTED=4)
    head, rest, *lines = told(morning, "--limit", "3")
    assert rest == "more than 1 before these: swarm-mcp log --limit 4" and len(lines) == 3
    assert "joined" not in head and head.endswith("since 24 h ago: 3 changes to tasks, 1 released")
    assert morning.swarm("log", "--json").json["is_cut"] is True


def test_only_what_came_since_then(morning: Ground):
    morning.sql("UPDATE events SET created_at = created_at - 7200 WHERE type LIKE 'instance.%'")
    head, first, *_ = told(morning, "--since", "1h")
    assert "joined" not in head and "  acquired  " in first
    assert len(told(morning, "--since", "3h")) == 9
    assert told(morning, "--since", "1h", "--scope", "/elsewhere")[0].startswith("(nothing has happened in /elsewhere")
    history = morning.swarm("log", "src/schema.sql", "--json").json["events"]
    morning.sql("UPDATE events SET created_at = created_at - 7200 WHERE type = 'context.lock_acquired'")
    later = morning.swarm("log", "src/schema.sql", "--since", "90m", "--json").json["events"]
    assert [one["id"] for one in later] == [one["id"] for one in history[1:]]


def test_strangers_have_no_names_no_notes_and_no_tasks(morning: Ground):
    stranger = morning.session("eve", "identity:q eve")
    shown = morning.swarm("log", "--as", stranger["id"]).out
    assert "ann" not in shown and "renumbering" not in shown and "Mend it" not in shown
    assert "acquired  src/schema.sql by another identity" in shown


def test_a_change_that_is_not_committed_is_part_of_it(tmp_path, monkeypatch):
    ready_store()
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    monkeypatch.chdir(repo)
    session = new_session()
    start("claude-code", session, repo)
    assert write("claude-code", session, repo, repo / "new.py").reason == ""
    (repo / "new.py").write_text("x = 1\n")
    ground = Ground.__new__(Ground)
    ground.repo = repo
    head, *lines = told(ground)
    assert "1 file changed" in head
    assert [line for line in lines if f"changed   new.py by claude-code {session[:8]}, not committed" in line], lines


def test_a_hostile_note_acts_on_nothing(ground: Ground):
    me = ground.session("me", "me")
    ground.lock(me, f"{ground.scope}/f", "\x1b[2Jgone\n9 h ago  stolen   everything")
    shown = ground.swarm("log").out
    assert "\x1b" not in shown and len(shown.splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90), ("2m", 120), ("2 min", 120), ("3h", 10800), ("1d", 86400), ("11:00", 3600), ("13:00", 82800)],
)
def test_since_is_a_span_or_the_last_time_it_was_that_late(text: str, ago: int):
    noon = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
    assert noon - since_when(text, noon) == ago


@pytest.mark.parametrize("text", ["yesterday", "8", "-1h", "8:60", "24:00", "h", "9" * 20 + "h", "1e3s"])
def test_what_is_no_moment_is_refused(text: str):
    with pytest.raises(UsageError, match="--since wants"):
        since_when(text, 1e9)
