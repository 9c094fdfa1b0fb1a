"""`status`, `task show`, `log` and listings: sessions, locks, tasks and events as they are shown."""

import json
import os
import re
import time
from types import SimpleNamespace

import pytest
from support import turns
from support.altered import Limits
from support.fixtures import Ground
from support.sessions import new_session, ready_store, start, write
from support.world import World

from swarm_mcp.answers import work as checkout_history
from swarm_mcp.answers.people import People
from swarm_mcp.cli.commands.log import since_when
from swarm_mcp.cli.help_page import show_front_page
from swarm_mcp.errors import UsageError
from swarm_mcp.runtimes import user_settings
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import work
from swarm_mcp.view.top.picture import Wish
from swarm_mcp.view.top.reading import Reader

DAY = 86400


@pytest.fixture
def checkout(ground: Ground) -> Ground:
    """Two sessions of one identity and one of another, with a lock, tasks, messages and values of each."""
    me, peer = ground.session("me", "identity:ours"), ground.session("peer", "identity:ours")
    stranger = ground.session("stranger", "identity:theirs")
    ground.lock(me, "a.txt")
    now = int(time.time())
    for number, status in enumerate(["open", "open", "in_progress", "done", "failed"]):
        ground.add(
            "tasks", id=f"task-{number}", scope=ground.scope, type="fix", title="T", requester=me["id"], status=status
        )
    ground.add("tasks", id="hidden", scope=ground.scope, type="fix", title="T", requester=stranger["id"])
    sent = [(me, peer, 0, now), (peer, me, 1, now), (peer, me, 0, now - 2 * DAY), (stranger, stranger, 0, now)]
    for sender, recipient, read, at in sent:
        ground.add(
            "messages", scope=ground.scope, sender=sender["id"], recipient=recipient["id"], content="words",
            read=read, created_at=at,
        )  # fmt: skip
    for key, owner in (("mine", "identity:ours"), ("everybody's", None), ("theirs", "identity:theirs")):
        ground.add("kv", scope=ground.scope, key=key, value="1", owner_identity=owner, updated_at=now)
    ground.add("kv", scope="/elsewhere", key="other", value="1", updated_at=now)
    return ground


def front_page(world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the page of `swarm-mcp` alone, as a terminal shows it."""
    with monkeypatch.context() as patch:
        patch.chdir(world.repo)
        capsys.readouterr()
        assert show_front_page() == 0
    return capsys.readouterr().out


def test_status_lists_the_uncommitted_files_of_sessions_and_of_a_person(world: World, capsys, monkeypatch) -> None:
    agent = world.session("codex", "agent0")
    agent.edit("notes.md", "alpha", "AGENT")
    world.write("other.md", "a person's\n")
    world.write("sub/deep.md", world.read("sub/deep.md") + "a person's\n")
    agent.edit("sub/deep.md", "alpha", "AGENT")
    world.write("made.md", "a person's\n")
    found = {
        (os.path.basename(one["file"]), one["instance_id"]): one for one in world.swarm("status").json["uncommitted"]
    }
    assert set(found) == {
        ("notes.md", agent.id), ("sub/deep.md"[4:], agent.id), ("other.md", None), ("deep.md", None), ("made.md", None),
    }  # fmt: skip
    assert found["other.md", None]["name"] == "a person" and found["other.md", None]["at"] > time.time() - 600
    listed = [line for line in world.ground.swarm("status").out.splitlines() if "not committed, by " in line]
    assert {line.partition(":")[0].split()[3] for line in listed} == {"a", "agent0"}, listed
    (persons,) = [line for line in listed if "by a person: " in line]
    assert set(persons.partition(": ")[2].split(", ")) == {"made.md", "sub/deep.md", "other.md"}
    of_person = {(str(world.repo / name), "a person") for name in ("made.md", "sub/deep.md", "other.md")}
    with world.store() as store:
        assert of_person < {(one.path, one.name) for one in work(store, str(world.repo), People(store)).edits}, (
            "the page"
        )
    shown = Reader(str(world.repo), SimpleNamespace(value=lambda _name: "")).read(Wish())
    (table,) = [one for one in shown.tables if one.name == "Uncommitted"]
    assert of_person < {(row.file, row.cells[1]) for row in table.rows}, "the full screen"
    front = front_page(world, capsys, monkeypatch).splitlines()
    assert [line for line in front if "not committed, by " in line] == listed
    # An agent that has ended leaves its lines, before and after its row goes.
    for gone in (
        "UPDATE swarm_sessions SET client_pid = 1, client_start = '0', host = (SELECT host FROM swarm_sessions)",
        "DELETE FROM instances",
        "DELETE FROM swarm_sessions",
    ):
        world.sql(gone)
        listed = [line for line in world.ground.swarm("status").out.splitlines() if "not committed, by " in line]
        (left,) = [line for line in listed if "by a person: " not in line]
        assert set(left.partition(": ")[2].split(", ")) == {"notes.md", "sub/deep.md"}
        ended = [one for one in world.swarm("status").json["uncommitted"] if one["name"] != "a person"]
        assert [one["instance_id"] for one in ended] == [None, None]
    logged = world.ground.swarm("log", "--limit", "100").out
    assert all(f"{name} by a person, not committed" in logged for name in ("made.md", "other.md", "sub/deep.md"))
    world.commit()
    assert world.swarm("status").json["uncommitted"] == []


def test_a_lowered_protection_is_said_on_each_first_screen(world: World, capsys, monkeypatch) -> None:
    world.session("codex", "agent0")
    scope, args = str(world.repo), SimpleNamespace(value=lambda _name: "")

    def screens() -> list[str]:
        printed = [world.ground.swarm(verb).out for verb in ("status", "log")]
        return [*printed, front_page(world, capsys, monkeypatch)]

    assert not any("protection is" in one for one in screens())
    assert world.swarm("status").json["protect"] == {"value": "keep", "source": "default"}
    user_settings.change_for_a_while("protect", "off", int(time.time()) + 300, scope)
    until = world.swarm("status").json["protect"]["until"]
    words = f"protection is off until {time.strftime('%H:%M:%S', time.localtime(until))}: swarm checks nothing"
    assert 200 < until - time.time() < 400 and user_settings.lowered(scope).startswith(words)
    assert all(words in one for one in screens())
    assert words in Reader(scope, args).read(Wish()).news
    user_settings.change("protect", "keep", scope)
    assert user_settings.lowered(scope) == ""


def test_status_counts_tasks_messages_and_values(checkout: Ground):
    found = checkout.swarm("status", "--json").json
    assert len(found["instances"]) == 3 and len(found["locks"]) == 1
    tasks = {status: number for status, number in found["tasks"].items() if number}
    assert tasks == {"open": 3, "in_progress": 1, "done": 1, "failed": 1}
    assert set(found["tasks"]) == {
        "open", "claimed", "in_progress", "done", "failed", "cancelled", "blocked", "approval_required",
    }  # fmt: skip
    assert found["open_tasks"] == {"open": 3, "in_progress": 1}
    assert found["messages"] == {"unread": 3, "recent": 3}
    assert found["values"] == 3


def test_status_in_words_has_the_same_numbers(checkout: Ground):
    lines = checkout.swarm("status").out.splitlines()
    assert lines[1] == "3 sessions, 1 lock, 3 values"
    assert lines[2] == "tasks: 3 open, 1 in_progress, 1 done, 1 failed"
    assert lines[3] == "messages: 3 unread, 3 in the last day"


def test_another_identity_is_not_counted(checkout: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_MCP_IDENTITY", "ours")
    monkeypatch.setenv("AGENT_IDENTITY", "ours")
    found = checkout.swarm("status", "--json").json
    assert found["tasks"]["open"] == 2
    assert found["messages"] == {"unread": 2, "recent": 2}
    assert found["values"] == 2


def test_an_empty_checkout_counts_nothing(ground: Ground):
    ground.session("me")
    found = ground.swarm("status", "--json").json
    assert not any(found["tasks"].values()) and found["messages"] == {"unread": 0, "recent": 0} and found["values"] == 0
    assert ground.swarm("status").out.splitlines()[1:2] == ["1 session, 0 locks"]
    assert not re.search("tasks|messages|merging|value", ground.swarm("status").out)


def test_a_task_is_shown_whole(ground: Ground, store: Store):
    asks, does = ground.session("1", "identity:p asks"), ground.session("2", "identity:p does")
    stranger = ground.session("3", "identity:q secret")
    made = store.tasks.request(
        asks, {"type": "fix", "title": "Mend it", "description": "first\nthen", "files": ["src/a.py"]}
    )["task"]
    store.messages.send(asks, does["id"], f"about {made['id']}\nplease")
    store.tasks.claim(does, made["id"], True)
    ground.sql(
        "UPDATE tasks SET progress_summary = 'half way', progress_updated_at = unixepoch() - 300, result = 'done'"
    )
    ground.add(
        "swarm_runs", id="12ab34cd-1", scope=ground.scope, task_id=made["id"], instance_id=does["id"], harness="codex",
        started_at=int(time.time()), updated_at=int(time.time()), cwd=ground.scope, state="running", cost_usd=0.25,
    )  # fmt: skip
    out = ground.swarm("task", made["id"][:8], "--as", does["id"]).out
    who, other = f"asks {asks['id'][:8]}", f"does {does['id'][:8]}"
    for words in (
        f"task {made['id']}  [in_progress]  fix, priority 0\n  Mend it\n", "  what:\n    first\n    then\n",
        f"; assigned to {other}\n", "  files: src/a.py\n", "  progress, 5 min ago: half way\n",
        "  result: done\n", "  run 12ab34cd: codex, running, ", "its worker has not ended yet; swarm-mcp worker logs 12ab34cd -f\n",
        f"{who} → {other}\n      about {made['id']}\n      please\n",
    ):  # fmt: skip
        assert words in out, (words, out)
    assert re.search(rf"^  asked by {re.escape(who)}, (now|\d+ s ago); ", out, re.MULTILINE), out
    shown = ground.swarm("task", made["id"], "--json", "--as", does["id"]).json
    assert list(shown) == ["task", "runs", "messages"] and shown["task"]["description"] == "first\nthen"
    assert ground.swarm("task", made["id"], "--as", stranger["id"]).code == 1
    assert "no task of this scope" in ground.swarm("task", "nothing").err


def test_all_locks_of_a_session_are_released_by_one_word(ground: Ground):
    me, other = ground.session("1", "me"), ground.session("2", "other")
    for file in ("a", "b/", "c*"):
        ground.lock(me, file)
    ground.swarm("lock", "mine", "--agent", "a1", "--as", me["id"])
    ground.lock(other, "theirs")
    done = ground.swarm("unlock", "--all", "--as", me["id"])
    assert done.code == 0 and done.out.count("unlocked ") == 3
    left = [lock["file"] for lock in ground.swarm("locks", "--json").json]
    assert sorted(left) == [f"{ground.scope}/mine", f"{ground.scope}/theirs"], "an agent's are its own"
    answer = ground.swarm("unlock", "--all", "--agent", "a1", "--as", me["id"], "--json").json
    assert answer == {"ok": True, "files": [f"{ground.scope}/mine"]}
    assert ground.swarm("unlock", "--all", "--as", me["id"]).out == "nothing was locked by this session\n"
    assert ground.swarm("unlock", "x", "--all", "--as", me["id"]).code == 2, "either all or some"


def test_where_nobody_is_status_says_what_to_do(ground: Ground):
    out = ground.swarm("status").out
    assert "Next steps" in out and "swarm-mcp lock FILE" in out
    ground.session("1", "me")
    assert "Next steps" not in ground.swarm("status").out


def test_paths_and_times_are_relative_unless_asked(ground: Ground):
    me = ground.session("1", "me")
    ground.lock(me, "src/f", "why")
    for verb in (["status"], ["locks"], ["why", "src/f"], ["inspect"]):
        out = ground.swarm(*verb).out
        assert "src/f" in out and f"{ground.scope}/src/f" not in out.partition("a write by")[0], out
        assert f"{ground.scope}/src/f" in ground.swarm(*verb, "--absolute").out
    ground.sql("UPDATE context SET created_at = unixepoch() - 300")
    assert "since 5 min ago, " in ground.swarm("why", "src/f").out
    assert "since 20" in ground.swarm("why", "src/f", "--absolute").out


@pytest.fixture
def file(ground: Ground) -> str:
    """A file that session `me` has written in its turn; `peer` is there too."""
    ground.session("me", "me", runtime="codex"), ground.session("peer", "peer", runtime="codex")
    path = str(ground.repo / "f")
    turns.write(("codex", "me"), path)
    return path


def test_listings_show_them(ground: Ground, file: str):
    assert "f  — editing it in this turn  [auto, " in ground.swarm("locks").out
    (row,) = json.loads(ground.swarm("locks", "--json").out)
    assert (row["file"], row["mode"], row["owner_label"]) == (file, "auto", "me")
    assert '("editing it in this turn")  [auto, ' in ground.swarm("status").out


def test_they_are_counted(ground: Ground, file: str):
    assert json.loads(ground.swarm("status", "--json").out)["lock_count"] == 1


def test_why_says_until_when(ground: Ground, file: str):
    told = ground.swarm("why", file).out
    assert "auto, held by me" in told
    assert re.search(r"until its turn ends, or in (9|10) min without a further write", told)
    assert "until its turn ends, at most 10 min after its last write to it" in told
    (held,) = json.loads(ground.swarm("why", file, "--json").out)["held"]
    assert held["mode"] == "auto"


def test_the_log_has_its_grant_and_its_end(ground: Ground, file: str):
    ground.swarm("locks")
    words = ("--runtime", "codex", "--session-id", "me", "--state", "idle", "--turn-over", str(time.time_ns()))
    assert ground.swarm("register", str(ground.repo), *words).code == 0
    begun, ended = ground.swarm("log", file).out.splitlines()
    assert "acquired" in begun and "mode auto" in begun
    assert "turn ended" in ended and "mode auto" in ended
    assert ground.swarm("locks").out == "(no locks)\n"


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


def test_a_change_that_is_not_committed_is_part_of_it(tmp_path, monkeypatch: pytest.MonkeyPatch):
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
