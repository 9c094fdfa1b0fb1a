"""Listing commands: at most 100 KB without --limit, the number of the other rows, and pages."""

import json
import re

import pytest
from support.command_line import option
from support.crowd import HUGE, LONG, ROWS, Crowd
from support.fixtures import Ground

from swarm_mcp import contributions
from swarm_mcp.answers.size import ANSWER_BYTES
from swarm_mcp.cli.arguments import verb_named

VERBS = contributions.verbs()

pytestmark = pytest.mark.slow

# Verbs that change something, never end, or ask other programs.
NO_LISTING = {
    "install", "uninstall", "doctor", "demo", "lock", "unlock", "hold", "renew", "transfer", "request-lock", "steal",
    "register", "deregister", "send", "broadcast", "prompt-peer", "request-task", "claim", "update-task", "dispatch",
    "cancel", "pause", "resume", "run", "watch", "guard", "init", "loop", "serve", "hook", "work", "denied", "alive", "lsp",
    "agent-ended", "altered", "attempted", "overwritten", "evicted", "bundle", "fetched", "completion", "cleanup", "harness", "roles",
    "resolve-workspace-handle", "logs", "acp", "poll", "answer",
    "locks",  # all of them, printed as they are read
    "diff", "blame",  # whole, as git's are: a patch that is cut applies to nothing
    "commit", "undo", "try", "statusline",
    "top", "page",  # a full screen, and a server
}  # fmt: skip
WORDS = {
    "task": ["task-open-None-0"], "why": ["src/f1.py"], "log": ["src/hot.py"], "restore": ["--list"], "team": ["status"],
}  # fmt: skip
# Verbs that list -> their words, and the key of a row.
PAGED = {
    "tasks": ([], "id"), "messages": ([], "id"), "kv": (["list"], "key"), "instances": ([], "id"), "runs": ([], "id"),
    "ui": (["list"], "id"),
}  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    return Crowd(tmp_path_factory.mktemp("crowd"))


@pytest.fixture
def crowd(filled: Crowd, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("SWARM_DB_PATH", filled.ground.database)
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", filled.me["id"])
    filled.restore()
    return filled.ground


@pytest.mark.parametrize("verb", sorted(set(VERBS) - NO_LISTING))
@pytest.mark.parametrize("form", ["--json", ""])
@pytest.mark.sampled
def test_no_command_lists_more_than_100_kb_unasked(crowd: Ground, verb: str, form: str):
    done = crowd.swarm(verb, *WORDS.get(verb, []), *([form] if form else []))
    assert done.code == 0, done.err
    assert 0 < len(done.out.encode()) <= ANSWER_BYTES


def test_the_verbs_with_pages_are_those():
    def has_pages(verb: str) -> bool:
        return any(option.name == "--after" for usage in verb_named(verb).usages for option in usage.options)

    assert {verb for verb in VERBS if has_pages(verb)} == {*PAGED, "log"}


@pytest.mark.parametrize("verb", PAGED)
def test_pages_of_a_command_have_each_row_once(crowd: Ground, verb: str):
    words, key = PAGED[verb]
    found, after, pages = [], "", 0
    while pages == 0 or after:
        done = crowd.swarm(verb, *words, "--json", *option("--after", after))
        rows = [row[key] for row in done.json]
        found += reversed(rows) if verb == "messages" else rows
        assert len(done.out.encode()) <= ANSWER_BYTES
        told = re.fullmatch(r"(\d+) of (\d+) shown(?:; for more: --after (\w+))?\n", done.err)
        assert told and int(told[1]) == len(rows)
        after, pages = told[3] or "", pages + 1
        assert int(told[2]) >= ROWS
    assert pages > 1 and len(found) == len(set(found)) == int(told[2])


@pytest.mark.parametrize("verb", PAGED)
def test_who_says_how_many_gets_them_whole(crowd: Ground, verb: str):
    words, _ = PAGED[verb]
    every = crowd.swarm(verb, *words, "--json", "--limit", "-1")
    assert len(every.json) >= ROWS and every.err == "" and "cut" not in every.json[0]
    few = crowd.swarm(verb, *words, "--json", "--limit", "2")
    assert (len(few.json), few.err) == (2, "")
    begun = crowd.swarm(verb, *words, "--json", "--limit", "2", "--after", "")
    assert begun.json == few.json and "--after" in begun.err
    text = crowd.swarm(verb, *words, "--limit", "2")
    assert re.search(r"^2 of \d+ shown; for more: --after \w+$", text.out, re.M) and text.err == ""


def test_a_message_that_is_cut_says_so_and_is_had_whole_by_its_id(crowd: Ground):
    first = crowd.swarm("messages", "--json", "--limit", "-1").json[0]["id"]
    shown = crowd.swarm("messages", "--json", "--after", json.dumps([first + 1]).encode().hex()).json
    assert shown[0]["cut"] == {"content": len(HUGE)} and len(shown[0]["content"]) < len(HUGE)
    (whole,) = crowd.swarm("messages", "--json", "--id", str(first)).json
    assert whole["content"] == HUGE
    assert crowd.swarm("messages", "--id", "999999").out == "(no messages)\n"


def test_inspect_says_how_many_more_there_are_of_each_kind(crowd: Ground):
    shown = crowd.swarm("inspect", "--json").json
    left = shown["not_shown"]
    assert len(shown["tasks"]) + left["tasks"] == 4 * ROWS
    assert len(shown["kv"]) + left["kv"] == ROWS
    assert len(shown["instances"]) + left["instances"] == ROWS + 1
    text = crowd.swarm("inspect").out
    assert re.search(rf"^tasks \(\d+ of {4 * ROWS}\):$", text, re.M)
    few = crowd.swarm("inspect", "--json", "--limit", "3").json
    assert [len(few[kind]) for kind in ("instances", "messages", "tasks", "kv")] == [3, 3, 3, 3]
    assert few["not_shown"]["tasks"] == 4 * ROWS - 3


def test_the_history_goes_on_from_its_cursor(crowd: Ground):
    found, after = [], []
    while True:
        shown = crowd.swarm("log", "src/hot.py", "--json", "--limit", "40", *after).json
        found += [event["id"] for event in reversed(shown["events"])]
        if "next" not in shown:
            break
        after = ["--after", shown["next"]]
    assert len(found) == len(set(found)) == ROWS and found == sorted(found, reverse=True)


def test_what_is_no_cursor_is_refused(crowd: Ground):
    done = crowd.swarm("tasks", "--after", "x")
    assert done.code == 2 and "is no place in this listing" in done.err and LONG not in done.err


def test_names_of_many_sessions_are_not_all_told(crowd: Ground, monkeypatch):
    monkeypatch.delenv("SWARM_MCP_INSTANCE_ID")
    done = crowd.swarm("whoami", "--as", "peer-0")
    assert done.code == 1 and "is how several ids begin" in done.err and done.err.endswith("and others\n")
    assert len(done.err) < 30_000
