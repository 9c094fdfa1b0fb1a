"""`swarm-mcp why`: the same decision as the hook's, with all facts behind it."""

import json
import os
import re
from pathlib import Path

import pytest
from support.fixtures import SWARM, Ground, Sleeper, take
from support.screen import Played
from support.sessions import RUNTIMES, join, new_session, ready_store, start, write
from support.toolbox import Hands

from swarm_hook_core import clock
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


def why(ground: Ground, *words: str, cwd: Path | None = None) -> dict:
    done = ground.swarm("why", *words, "--json", cwd=cwd)
    assert done.code == 0, done
    return done.json


def ageless(told: dict) -> str:
    """An answer without how long ago anything was: two questions may fall into different seconds."""
    return re.sub(r"\d+(\.\d+)? s\b", "N s", json.dumps(told, sort_keys=True))


# A peer's locks -> the file that is written, and the expected decision.
CASES = {
    "a file": (("src/f",), {}, "src/f", True),
    "its neighbour": (("src/f",), {}, "src/fg", False),
    "a folder over it": (("src",), {}, "src/new/g", True),
    "a pattern": (("src/**/*.sql",), {}, "src/a/b.sql", True),
    "a pattern that does not fit": (("src/**/*.sql",), {}, "src/a/b.py", False),
    "a shared lock": (("src/f",), {"mode": "shared"}, "src/f", True),
    "what a lease keeps": (("src/f",), {"ttl": 60.0}, "src/f", True),
    "what has lapsed": (("src/f",), {"ttl": 1.0}, "src/f", False),
    "what is below": (("src/f",), {}, "src", False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled
def test_it_says_what_the_hook_says(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    held, given, file, refused = CASES[case]
    runtime = RUNTIMES[len(case) % 2]
    ready_store()
    me = new_session()
    assert start(runtime, me, tmp_path).context
    ground = Ground.__new__(Ground)
    ground.repo = tmp_path
    with Store() as store:
        peer = join(store, tmp_path, "peer-label")
        take(store, peer, *held, note="busy", **given)
        if case == "what has lapsed":
            with store.database.writing():
                store.database.change("UPDATE context SET renewed = ?, wall_until = 1", (clock.now() - 2,))
        mine = store.instances.of_session(runtime, me)
        own = f"{case}-own"
        take(store, mine, own)
    told = why(ground, file, "--as", mine["id"])
    reason = write(runtime, me, tmp_path, tmp_path / file).reason
    tool = {"claude-code": "Write", "codex": "apply_patch"}[runtime]
    assert bool(reason) == refused
    said = (told["write"]["reason"] or "").replace("blocked Write", f"blocked {tool}")
    assert re.sub(r"\d+ s\b", "N s", said) == re.sub(r"\d+ s\b", "N s", reason)
    assert told["write"]["allowed"] is not refused and told["write"]["guarded"] is True
    assert bool(told["held"]) == refused
    assert why(ground, own, "--as", mine["id"])["write"]["allowed"] is True, "one's own"
    assert why(ground, own, "--as", peer["id"])["write"]["holder_id"] == mine["id"]


def test_everything_over_a_path_with_the_rule_through_which_it_holds(ground: Ground, store: Store):
    one, two = ground.session("1", "identity:p one"), ground.session("2", "identity:p two")
    now = ground.sql("SELECT unixepoch() AS now")[0]["now"]
    for number, (file, given) in enumerate(
        {"src/f": {"ttl": 60.0}, "src": {"expected_end": now + 600}, "src/*": {"agent": "a-1"}}.items()
    ):
        take(store, one, file, mode="shared", note=f"note {number}", **given)
    take(store, two, "src/f", mode="shared")
    take(store, two, "elsewhere")
    told = why(ground, "src/../src/f", "--as", two["id"])
    assert told["file"] == f"{ground.scope}/src/f" and told["pattern"] is None
    held = {(lock["rule"], lock["owner_label"]): lock for lock in told["held"]}
    assert set(held) == {
        ("file", "identity:p one"), ("folder", "identity:p one"), ("pattern", "identity:p one"),
        ("file", "identity:p two"),
    }  # fmt: skip
    file = held["file", "identity:p one"]
    assert (file["mode"], file["content"], file["yours"], file["ttl"]) == ("shared", "note 0", False, 60.0)
    assert 50 < file["lapses_in"] <= 60 and file["fence"] == 1 and file["created_at"] >= now
    assert held["folder", "identity:p one"]["expected_end"] == now + 600
    assert held["pattern", "identity:p one"]["agent"] == "a-1"
    assert held["pattern", "identity:p one"]["pattern"] == "src/*"
    assert held["file", "identity:p two"]["yours"] is True
    assert told["write"]["allowed"] is False and told["write"]["instance_id"] == two["id"]
    text = ground.swarm("why", "src/f", "--as", two["id"]).out
    for words in (
        "by the locked folder src:", "by the pattern src/*", f"agent a-1 of one {one['id'][:8]}",
        "(this session)", "lapses in", "expected to end in", "fence 1", '"note 0"', "would be refused: swarm lock",
    ):  # fmt: skip
        assert words in text, words


def test_who_waits_in_which_order(ground: Ground, store: Store):
    holder, one, two = (ground.session(name, f"identity:p {name}") for name in ("holder", "one", "two"))
    stranger = ground.session("stranger", "identity:q secret")
    take(store, holder, "src/f")
    for waiter, files in ((two, ["src"]), (stranger, ["src/f", "private"]), (one, ["src/f"])):
        store.queue.join(waiter, request(waiter, files), 60)
    store.queue.join(one, request(one, ["other"]), None)
    told = why(ground, "src/f", "--as", one["id"])
    assert [(wait["place"], wait.get("label")) for wait in told["waiting"]] == [
        (1, "identity:p two"), (2, None), (3, "identity:p one"),
    ]  # fmt: skip
    assert [wait["yours"] for wait in told["waiting"]] == [False, False, True]
    assert told["waiting"][1]["hidden"] is True and "private" not in str(told) and "secret" not in str(told)
    assert 0 <= told["waiting"][0]["waited"] < 30 < told["waiting"][0]["gives_up_in"] <= 60
    assert "2. in line: another identity" in ground.swarm("why", "src/f", "--as", one["id"]).out


def test_a_path_that_nobody_holds_and_no_store_at_all(ground: Ground):
    told = why(ground, "nowhere/f")
    assert told["held"] == told["waiting"] == [] and told["write"]["allowed"] is True
    assert told["write"]["instance_id"] is None and not os.path.exists(ground.database)
    one = ground.session("1", "one")["id"]
    out = ground.swarm("why", "nowhere/f", "--as", one).out
    assert "  not locked" in out and "a write by one " in out and "would go ahead" in out


def test_a_session_that_no_hooks_guard_is_not_stopped_by_any(ground: Ground):
    ground.lock(ground.session("1", "one"), "f")
    bare = ground.plain("bare")
    told = why(ground, "f", "--as", bare["id"])
    assert (told["write"]["allowed"], told["write"]["guarded"]) == (False, False)
    said = ground.swarm("why", "f", "--as", bare["id"]).out
    assert "a write by bare " in said and "would go ahead: that session has no hooks of ours" in said
    assert "a write by bare" not in said.partition("would be refused")[0].partition("would go ahead")[2], "one verdict"


def test_a_pattern_is_explained_by_what_meets_it(ground: Ground):
    one = ground.session("1", "one")
    ground.lock(one, "src/a.sql")
    ground.lock(one, "doc")
    told = why(ground, "src/*.sql")
    assert [lock["file"] for lock in told["held"]] == [f"{ground.scope}/src/a.sql"]
    assert told["pattern"] == "src/*.sql" and told["write"] is None and told["held"][0]["rule"] == "overlap"


def test_what_is_of_another_identity_has_no_name(ground: Ground):
    ground.session("me", "identity:p me")
    ground.lock(ground.session("1", "identity:q secret-name"), "f", "secret-note")
    for more in ((), ("--json",)):
        done = ground.swarm("why", "f", "--as", "identity:p", *more)
        assert done.code == 0 and "secret" not in done.out
        assert ('"hidden": true' if more else "held by another identity") in done.out


def test_what_a_dead_session_held_is_free(ground: Ground):
    with Sleeper() as client:
        ground.lock(ground.session("1", "one", client=client.identity), "f")
        assert why(ground, "f")["held"]
    told = why(ground, "f")
    assert told["held"] == [] and told["write"]["allowed"] is True


def test_the_tool_answers_as_the_command_does(ground: Ground):
    one, two = ground.session("1", "identity:p one"), ground.session("2", "identity:p two")
    ground.lock(one, "src")
    told = Hands(ground, two).value("explain_lock", file="src/f")
    assert told["held"][0]["rule"] == "folder" and told["write"]["allowed"] is False
    assert ageless(told) == ageless(why(ground, "src/f", "--as", two["id"]))
    of_one = Hands(ground, two).value("explain_lock", file="src/f", instance_id=one["id"])
    assert of_one["write"]["allowed"] is True and of_one["write"]["label"] == "identity:p one"
    assert Hands(ground, two).answer("explain_lock", file="f", instance_id="nobody").is_error


def test_bad_input_is_one_line(ground: Ground):
    for code, *words in ((2,), (1, "f", "--as", "nobody"), (1, "x" * 5000), (2, "a", "b")):
        done = ground.swarm("why", *words)
        assert done.code == code and done.err.count("\n") == 1 and not done.out, words


def test_to_somebody_without_a_session_a_refusal_names_no_stranger(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    holder = ground.session("stranger", "identity:q secret-name")
    ground.session("another", "identity:q")  # a single session would be taken for the caller
    ground.lock(holder, f"{ground.scope}/f", "secret note")
    monkeypatch.setenv("AGENT_IDENTITY", "p")
    told = ground.swarm("why", "f")
    assert "would be refused" in told.out and "secret" not in told.out
    assert "secret" not in ground.swarm("why", "f", "--json").out


def test_the_refusal_has_real_lines_and_commands_for_the_folder_of_the_reader(world) -> None:
    peer = world.session("codex", "peer")
    world.session(label="another")
    peer.edit("sub/deep.md")
    world.write("other.md", "a person's\n")
    places = {"": "sub/deep.md", "sub": "deep.md", "docs": "../sub/deep.md"}
    (world.repo / "docs").mkdir()
    for folder, name in places.items():
        told = world.ground.swarm("why", os.path.join(world.repo, "sub/deep.md"), cwd=world.repo / folder)
        lines = told.out.splitlines()
        assert told.code == 0 and "\\n" not in told.out, told.out
        assert lines[0] == name and f"run `cat {name}`" in told.out, told.out
        assert any(line.startswith(f"Changed in {name} since ") for line in lines), told.out
        assert "| +PEER" in lines and str(world.repo) not in told.out, told.out
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    told = world.ground.swarm("why", str(world.repo / "sub/deep.md"), cwd=elsewhere)
    assert f"run `cat {world.repo}/sub/deep.md`" in told.out
    ours = world.ground.swarm("why", "../other.md", cwd=world.repo / "sub").out
    assert "a person's work that is not committed: ../other.md" in ours and "`cat ../other.md`" in ours, ours


def test_what_a_model_is_told_has_the_readers_paths_and_lines_that_end_at_words(world) -> None:
    peer = world.session("codex", "peer")
    world.session(label="another")
    peer.edit("sub/deep.md")
    with Played([*SWARM, "why", "sub/deep.md"], cwd=world.repo) as played:
        assert played.ended() == 0
    told = played.raw.replace("\r\n", "\n").partition("the model would be told: ")[2]
    assert told.startswith("swarm: sub/deep.md was changed by")
    words = told.split()
    assert max(map(len, played.raw.splitlines())) <= played.columns and {"committed:", "again"} <= set(words), told


def test_the_tool_names_commands_for_the_folder_of_its_session(world) -> None:
    peer = world.session("codex", "peer")
    peer.edit("sub/deep.md")
    for folder, name in {"": "sub/deep.md", "sub": "deep.md"}.items():
        me = world.session(label="me", folder=world.repo / folder)
        path = str(world.repo / "sub/deep.md")
        for asks in ({}, {"instance_id": peer.id}, {"instance_id": me.id}):
            write = Hands(world.ground, me.row).value("explain_lock", file=path, **asks)["write"]
            assert (write["reason"] is None) is (asks == {"instance_id": peer.id})
            assert write["reason"] is None or f"run `cat {name}`" in write["reason"], write
