"""Output at terminals of 80 and of 120 columns: whole words, names, short paths and ages."""

import os
import re
import time

import pytest
from support.fixtures import SWARM, Ground
from support.screen import Played

from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

LONG = "src/importers/spreadsheets/legacy-formats/excel_95_binary_reader.py"
NOTE = "moving the reader of old spreadsheets to the new interface, which takes until this evening"
LABEL = "identity:p {0} platform:cli origin:{0} session:{1}"
SCREENS = [
    [], ["status"], ["locks"], ["locks", "--file", "schema.sql"], ["instances"], ["why", "schema.sql"], ["why", LONG],
    ["log"], ["log", "schema.sql"], ["log", LONG, "--limit", "5"], ["tasks"], ["task", "t-1"], ["messages"], ["runs"], ["auto"],
    ["inspect"], ["kv", "list"], ["bootstrap", "--as", "5f0c2f6e"], ["watch", "--since", "0", "--timeout", "0"],
    ["lock", "new.txt", "--as", "5f0c2f6e"], ["unlock", "--all", "--as", "5f0c2f6e"], ["whoami", "--as", "5f0c2f6e"],
]  # fmt: skip
WIDE = [["status"], ["locks"], ["why", LONG], ["log"], ["inspect"]]  # the widest ones
NAMING = ("", "status", "locks", "instances", "why", "log", "messages", "inspect", "watch", "task", "whoami")
REFUSED = [["lock", LONG], ["unlock", "schema.sql"], ["steal", "schema.sql"], ["transfer", "schema.sql", "--to", "me"]]


@pytest.fixture
def shop(ground: Ground) -> Ground:
    """A checkout with two working agents and a waiting third."""
    claude, codex = (
        ground.session(f"s{number}", LABEL.format(client, session))
        for number, (client, session) in enumerate([("claude-code", "5f0c2f6e"), ("codex", "9b41d7e2")])
    )
    other = ground.session("s9", LABEL.format("claude-code", "9d0c2f6e"))
    ground.lock(claude, "schema.sql", "renumbering migrations")
    ground.lock(claude, LONG, NOTE)
    with ground.store() as store:
        store.locks.acquire_all(codex, request(codex, ["docs"], mode="shared", note="reading"))
        store.queue.join(other, request(other, ["schema.sql"]), 60)
        task = {"type": "implement", "title": "Split the importer into one module for each format", "files": [LONG]}
        made = store.tasks.request(claude, {**task, "description": NOTE})["task"]
        store.tasks.claim(codex, made["id"], True)
        store.messages.send(claude, codex["id"], f"{NOTE}\nsecond line")
        store.kv.put(claude, "plan/latest", NOTE)
    ground.sql("UPDATE tasks SET id = 't-1'")
    ground.swarm("lock", LONG, "--as", codex["id"])
    ground.add(
        "swarm_runs", id="12ab34cd-1", scope=ground.scope, task_id="t-1", instance_id=codex["id"], harness="codex",
        started_at=int(time.time()), updated_at=int(time.time()), cwd=ground.scope, state="running", cost_usd=0.25,
    )  # fmt: skip
    return ground


def screen_of(ground: Ground, argv: list[str], columns: int, code: int = 0) -> Played:
    with Played([*SWARM, *argv], columns=columns, cwd=ground.repo) as played:
        assert played.ended() == code, played.screen.text
        # Only the place of this test has a name that no line has room for.
        broken = [word for word in played.screen.broken if "/pytest" not in word and word not in ground.scope]
        assert broken == [], played.screen.text
        assert all(len(line) <= columns for line in played.screen.lines)
        return played


@pytest.mark.parametrize(("columns", "screens"), [(80, SCREENS), (120, WIDE)])
def test_every_screen_is_in_whole_words_and_names(shop: Ground, columns: int, screens: list[list[str]]):
    for argv in screens:
        shown = screen_of(shop, argv, columns).screen.text
        assert not re.search(r"\d+ ?[a-z]*…|\d…", shown), "ages and numbers are never cut"
        assert not re.search(r"origin:|platform:|session:|\b1[789]\d{8}\b", shown), shown
        assert (argv[0] if argv else "") not in NAMING or "claude-code 5f0c2f6e" in " ".join(shown.split()), shown
        if argv and argv[0] in ("status", "locks", "log", "why"):
            assert f"{shop.scope}/" not in re.sub(r"\s+", "", shown), "paths are near"


def test_a_refusal_is_too(shop: Ground):
    for argv in REFUSED:
        shown = screen_of(shop, [*argv, "--as", "9b41d7e2"], 80, code=1).screen.text
        assert "origin:" not in shown and "platform:" not in shown, shown


def test_watch_says_that_it_waits_behind_what_was(shop: Ground):
    lines = screen_of(shop, ["watch", "--since", "0", "--timeout", "0"], 80).screen.lines
    assert [line for line in lines if line][-1] == "waiting for something to happen ..."
    assert any(line.split() == ["TIME", "WHAT"] for line in lines)


@pytest.mark.parametrize("columns", [1, 12, 30])
def test_a_terminal_may_be_as_narrow_as_it_likes(shop: Ground, columns: int):
    with Played([*SWARM, "log", LONG], columns=columns, cwd=shop.repo) as played:
        assert played.ended() == 0
        assert LONG in "".join(played.screen.text.split())


def test_in_a_pipe_with_colours_no_line_is_folded_and_no_path_parted(shop: Ground):
    out = shop.process("log", LONG, env={**os.environ, "FORCE_COLOR": "1"}).out
    assert "\x1b[" in out and LONG in out and NOTE in out


def test_watch_tells_every_change_of_a_lock(ground: Ground):
    one, two = ground.session("1", "identity:p one"), ground.session("2", "identity:p two")
    ground.lock(one, "f")
    assert ground.swarm("request-lock", "f", "--as", two["id"]).code == 0
    assert ground.swarm("transfer", "f", "--to", two["id"], "--as", one["id"]).code == 0
    shown = ground.swarm("watch", "--since", "0", "--timeout", "0").out
    assert f"asked     one {one['id'][:8]} for f, by two {two['id'][:8]}" in shown, shown
    assert "context" not in shown
