"""Orders to a user interface, the notes of `install` on an upgrade, and the comparison of recorded answers."""

import itertools
import json
import time
from pathlib import Path

import pytest
from support import many_processes as crowd
from support.captures import Names, Verdict, differences
from support.deviations import Deviation
from support.fixtures import Ground

from swarm_mcp.answers.size import width
from swarm_mcp.cli.commands import install
from swarm_mcp.runtimes import installed
from swarm_mcp.store import user_interface

COLUMNS = [
    "id", "scope", "created_by", "kind", "payload", "status", "claimed_by", "result", "error", "created_at",
    "started_at", "completed_at",
]  # fmt: skip
MOVE = ("ui", "move", "--target", "n", "--x", "1", "--y", "2")

# Takes the next order as an interface does, and ends it as it is told.
INTERFACE = """
gate()
with Store() as store:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        row = store.database.row("SELECT * FROM ui_commands WHERE status = 'pending'")
        if row:
            break
        time.sleep(0.005)
    with store.database.writing():
        store.database.change(
            "UPDATE ui_commands SET status = 'running', claimed_by = 'ui', started_at = unixepoch() WHERE id = ?",
            (row["id"],),
        )
    time.sleep(arguments["seconds"])
    with store.database.writing():
        store.database.change(
            "UPDATE ui_commands SET status = ?, result = ?, error = ?, completed_at = unixepoch() WHERE id = ?",
            (arguments["status"], arguments.get("result"), arguments.get("error"), row["id"]),
        )
    report({"payload": json.loads(row["payload"])})
"""


def test_an_order_is_one_row(ground: Ground):
    ann = ground.session("1")
    done = ground.swarm(*MOVE, "--wait", "0", "--as", ann["id"])
    assert (done.code, done.out) == (0, f"#1  [pending]  move_node  scope={ground.scope}\n")
    row = ground.swarm("ui", "get", "1", "--json").json
    assert list(row) == COLUMNS
    assert row == {
        "id": 1, "scope": ground.scope, "created_by": ann["id"], "kind": "move_node",
        "payload": {"target": "n", "x": 1, "y": 2}, "status": "pending", "claimed_by": None, "result": None,
        "error": None, "created_at": row["created_at"], "started_at": None, "completed_at": None,
    }  # fmt: skip
    assert ground.swarm("ui", "list", "--json").json == [row]
    (stored,) = ground.sql("SELECT payload FROM ui_commands")
    assert json.loads(stored["payload"]) == row["payload"]


@pytest.mark.parametrize(
    "argv, kind, payload",
    [
        (["move", "--target", "n", "--x", "-1.5", "--y", "2e2"], "move_node", {"target": "n", "x": -1.5, "y": 200}),
        (["organize"], "organize_nodes", {"kind": "grid"}),
        (["organize", "--kind", "tree"], "organize_nodes", {"kind": "tree"}),
        (["prompt", "--target", "n", "say", "this"], "send_prompt", {"target": "n", "text": "say this", "enter": True}),
        (["prompt", "--target", "n", "x", "--no-enter"], "send_prompt", {"target": "n", "text": "x", "enter": False}),
        (["spawn", "/a/b/../c"], "spawn_shell", {"cwd": "/a/c"}),
        (
            ["spawn", "/a", "--harness", "codex", "--role", "reviewer", "--label", "x y"],
            "spawn_shell", {"cwd": "/a", "harness": "codex", "role": "reviewer", "label": "x y"},
        ),
    ],
)  # fmt: skip
def test_every_kind_of_order(ground: Ground, argv: list[str], kind: str, payload: dict):
    row = ground.swarm("ui", *argv, "--wait", "0", "--json").json
    assert (row["kind"], row["payload"], row["created_by"], row["scope"]) == (kind, payload, None, ground.scope)


@pytest.mark.parametrize(
    "outcome, code, lines",
    [
        ({"status": "done", "result": '{"instance_id": "i"}'}, 0, ['  result: {"instance_id": "i"}']),
        ({"status": "done", "result": "as it is"}, 0, ["  result: as it is"]),
        ({"status": "done"}, 0, []),
        ({"status": "failed", "error": "no such node"}, 1, ["  error: no such node"]),
    ],
)  # fmt: skip
def test_the_outcome_is_waited_for(ground: Ground, outcome: dict, code: int, lines: list[str]):
    ground.session("1")
    with crowd.Crowd(INTERFACE, [{"seconds": 0.2, **outcome}]) as interface:
        interface.start()
        begun = time.monotonic()
        done = ground.swarm(*MOVE, "--wait", "60")
        assert time.monotonic() - begun < 60, "it does not sit out the time it may wait"
        (member,) = interface.finish()
    assert member.err == "" and member.reports[0]["payload"] == {"target": "n", "x": 1, "y": 2}
    assert done.code == code
    assert done.out.splitlines() == [f"#1  [{outcome['status']}]  move_node  scope={ground.scope}", *lines]


def test_nobody_there_is_no_failure_and_costs_the_time_given(ground: Ground, listening):
    ground.session("1")
    looks = listening(user_interface, "get")
    begun = time.monotonic()
    done = ground.swarm(*MOVE, "--wait", "0.5", "--json")
    assert (done.code, done.json["status"]) == (0, "pending")
    assert time.monotonic() - begun >= 0.5
    assert len(looks) <= 4, "waiting is not looking again and again"


def test_only_gateways_spawn(ground: Ground, monkeypatch):
    worker, gateway = ground.session("1", "worker"), ground.session("2", "x mode:gateway")
    text = ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"])
    assert (text.code, text.out) == (1, "") and "mode:gateway" in text.err
    refusal = ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"], "--json")
    assert refusal.code == 1 and list(refusal.json) == ["error"]
    assert ground.sql("SELECT * FROM ui_commands") == []
    assert ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", gateway["id"]).code == 0
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    assert ground.swarm("ui", "spawn", "/a", "--wait", "0", "--as", worker["id"]).code == 0


def test_listing_by_status_scope_and_number(ground: Ground):
    assert ground.swarm("ui", "list").out == "(no ui commands)\n"
    for place in (ground.scope, ground.scope, str(ground.folder)):
        ground.swarm(*MOVE, "--wait", "0", "--scope", place)
    failed = "status = 'failed', claimed_by = 'u', completed_at = 1, error = 'why'"
    ground.sql(f"UPDATE ui_commands SET {failed} WHERE id = 1")
    assert [row["id"] for row in ground.swarm("ui", "list", "--json").json] == [2, 1]
    assert [row["id"] for row in ground.swarm("ui", "commands", "--json", "--limit", "1").json] == [2]
    assert [row["id"] for row in ground.swarm("ui", "--json", "--status", "failed").json] == [1]
    assert ground.swarm("ui", "list", "--status", "failed").out.splitlines() == [
        f"#1  [failed]  move_node  scope={ground.scope}", "  error: why",
    ]  # fmt: skip


def test_what_an_interface_wrote_may_be_anything(ground: Ground):
    ground.session("1")
    ground.swarm(*MOVE, "--wait", "0")
    ground.sql("UPDATE ui_commands SET payload = 'no json', result = '[1' WHERE id = 1")
    row = ground.swarm("ui", "get", "1", "--json").json
    assert (row["payload"], row["result"]) == ("no json", "[1")


@pytest.mark.parametrize(
    "argv",
    [
        ["zzz"], ["get"], ["get", "x"], ["get", "9" * 30], ["list", "--status", "open"], ["spawn"], ["prompt", "x"],
        ["prompt", "--target", "n"], ["move", "--x", "1", "--y", "1"], ["move", "--target", "n", "--x", "1"],
        ["move", "--target", "n", "--x", "nan", "--y", "1"], ["move", "--target", "n", "--x", "inf", "--y", "1"],
        ["organize", "--wait", "-1"], ["organize", "--as", "nobody"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_missing_or_wrong_is_said_in_one_line(ground: Ground, argv: list[str]):
    ground.session("1")
    done = ground.swarm("ui", *argv)
    code = 2 - bool({"nobody", "open"} & set(argv))
    assert (done.code, done.out) == (code, "") and len(done.err.splitlines()) == 1
    assert ground.sql("SELECT * FROM ui_commands") == []


SECTIONS = """# Changelog

## [Unreleased]

## [0.3.0] - 2026-12-02

### Added
- An added thing. With more words on it.
- Another added thing.

### Changed
- What was one thing is another. Restart it.

### Fixed
- A fault is mended.

## [0.2.0] - 2026-12-01

### Changed
- An earlier change.
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes this release 0.3.0 with a changelog, SECTIONS by itself."""

    def make(text: str = SECTIONS) -> Path:
        (tmp_path / "CHANGELOG.md").write_text(text)
        monkeypatch.setattr(installed, "plugin_folder", lambda: str(tmp_path))
        monkeypatch.setattr(install, "__version__", "0.3.0")
        return tmp_path / "CHANGELOG.md"

    return make


def test_an_upgrade_names_who_had_what_and_what_has_changed(release):
    release()
    assert install.lines({"Claude Code": "0.2.0", "Codex": "0.2.0"}, 100) == [
        "swarm 0.3.0 is installed; Claude Code and Codex had 0.2.0. Changes:",
        "  Changed: What was one thing is another.",
        "  Added: An added thing.",
        "  Added: Another added thing.",
        "  Fixed: A fault is mended.",
    ]


def test_the_client_with_the_oldest_release_decides_what_is_new(release):
    release()
    heading, *changes = install.lines({"Claude Code": "0.2.0", "Codex": "0.1.0"}, 100)
    assert heading == "swarm 0.3.0 is installed; Codex had 0.1.0; Claude Code had 0.2.0. Changes:"
    assert "  Changed: An earlier change." in changes


@pytest.mark.parametrize("room", [40, 80, 200])
def test_it_is_a_dozen_lines_at_most_and_each_kind_has_its_turn(release, room: int):
    many = "\n".join(
        f"- Change number {number} is one with quite a few words, so that it is folded." for number in range(40)
    )
    path = release(f"## [0.3.0] - 2026-12-02\n\n### Added\n{many}\n\n### Changed\n{many}\n\n### Fixed\n{many}\n")
    lines = install.lines({"Claude Code": "0.2.0"}, room)
    assert len(lines) <= install.ROWS
    assert [line for line in lines[:-1] if width(line) > room] == []
    kinds = [line.split(":")[0].strip() for line in lines if line.startswith(("  Changed:", "  Added:", "  Fixed:"))]
    assert set(kinds) == {"Changed", "Added", "Fixed"}
    assert lines[-1] == f"  and {120 - len(kinds)} more: {path}"


def test_a_first_installation_and_the_same_release_have_nothing_to_say(release):
    release()
    versions = install.upgraded({"claude-code": "", "codex": "0.3.0"})
    assert versions == {} and install.lines(versions, 80) == [] and install.as_json(versions) is None


def test_a_newer_release_is_named_and_no_change(release):
    release()
    assert install.lines({"Codex": "0.4.0"}, 80) == ["swarm 0.3.0 is installed; Codex had 0.4.0."]
    told = install.as_json({"codex": "0.4.0"})
    assert told == {"from": {"codex": "0.4.0"}, "to": "0.3.0", "changes": [], "not_shown": 0}


def test_programs_get_whole_entries(release):
    release()
    told = install.as_json({"claude-code": "0.1.0"})
    assert told and told["not_shown"] == 0
    assert told["changes"][0] == {
        "release": "0.3.0", "kind": "Changed", "text": "What was one thing is another. Restart it.",
    }  # fmt: skip
    assert len(told["changes"]) == 5


ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    ("pattern", "actual", "found"),
    [
        ({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, []),
        ({"a": 1}, {"a": True}, ["a: is true, not 1"]),
        ({"a": 1}, {"a": "1"}, ['a: is "1", not 1']),
        ({"a": None}, {"a": 0}, ["a: is 0, not null"]),
        ({"a": 1}, {}, ["missing a"]),
        ({}, {"a": 1}, ["extra a"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["order : b a"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b: is 2, not 1"]),
        ([1, 2], [1], ["missing 1: 2"]),
        ([{"k": 1}, {"k": 2}], [dict.fromkeys("abcdefg", 0), {"k": 1}, {"k": 2}], ["extra 0: *"]),
        ({"<set>": [1, 2]}, [2, 1], []),
        ({"<set>": [1, 2]}, [2, 3], ["0: is 3, not 1"]),
        ({"<json>": {"a": 1}}, '{"a": 1}', []),
        ({"<json>": {"a": 1}}, "{", ['*: is "{", not JSON']),
        ("<ROOT>/a", "/r/a", []),
        ("<ROOT>/a", "/s/a", ['*: is "/s/a", *']),
        ("<n> of <prose>", "3 of these", []),
        ("<n> of <prose>", "three of these", ["*"]),
        ("a\n<time>\nb", "a\n2026-01-02 03:04:05\nx\nb", ['extra 2: "x"']),
        ("<sec>", int(time.time()), []),
        ("<sec>", int(time.time() * 1000), ["*"]),
        ("<ms>", int(time.time()), ["*"]),
        ("<pid>", 0, ["*"]),
        ("<n>", True, ["*"]),
        ("<any>", {"what": "ever"}, []),
        (["<id 1>", "<id 2>", "<id 1:8>"], [ONE, TWO, ONE[:8]], []),
        (["<id 1>", "<id 2>"], [ONE, ONE], ["1: *"]),
        (["<id 1>", "<id 1>"], [ONE, TWO], ["1: *"]),
        (["<no 1>", "x<no 1>"], [4, "x4"], []),
        (["<no 1>", "x<no 1>"], [4, "x5"], ["1: *"]),
    ],
    ids=itertools.count(),  # the clock is in some values; every worker must know a case by the same name
)  # fmt: skip
def test_differences(pattern, actual, found: list[str]):
    verdict = Verdict(tuple(Deviation("*", difference, "") for difference in found))
    verdict.judge("here", differences(pattern, actual, Names("/r")))
    verdict.deliver()


def test_ids_of_the_record_become_those_of_the_run():
    names = Names("/r")
    assert names.fits("created <id 7>", f"created {ONE}")
    assert names.fill({"a": ["<id 7>", "<id 7:8>", "<ROOT>/x", 3]}) == {"a": [ONE, ONE[:8], "/r/x", 3]}


def test_a_difference_without_a_reason_and_a_reason_without_a_difference_both_fail():
    with pytest.raises(AssertionError, match="here | extra a"):
        judged = Verdict(())
        judged.judge("here", ["extra a"])
        judged.deliver()
    with pytest.raises(AssertionError, match="said to differ"):
        Verdict((Deviation("*", "extra a", "because"),)).deliver()
