"""OpenCode's own features: many sessions in one process, a folder for each command, a title for each session."""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from swarm_mcp.play.clients import SERVER
from swarm_mcp.play.models import play

from .checks import assert_denied, assert_text
from .ground import wait_for
from .marketplace import Marketplace
from .more import prepared
from .more.opencode import OpenCode
from .test_merged_writes import BEFORE, BOTH, FILE, KINDS, MINE, commit, permitted, play_a_merge, write_stale
from .test_own_commit import play_two_commits
from .test_persons_work import play_a_person_s_work
from .test_rewinds import undone

pytestmark = pytest.mark.xdist_group("more-opencode")
CHANGE = ("notes.md", "line one", "line two")


@pytest.fixture(scope="module")
def installed() -> Iterator[OpenCode]:
    with prepared("opencode") as opencode:
        assert isinstance(opencode, OpenCode)
        Marketplace(opencode.ground, "install").install("opencode")
        yield opencode


@pytest.fixture
def opencode(installed: OpenCode) -> Iterator[OpenCode]:
    installed.ground.renew()
    yield installed
    installed.ground.end_processes()


def test_sessions_of_one_process_are_told_apart(opencode: OpenCode) -> None:
    coordinator = opencode.ground.coordinator
    server = opencode.ground.start(["opencode", "serve", "--port", "0", "--hostname", "127.0.0.1"], keep_output=True)
    assert server.stdout
    address = next(line for line in server.stdout if "listening on" in line).split()[-1]

    def ask(script: str) -> str:
        prompt, attached = play(script), ("--attach", address)
        done = opencode.ground.run(opencode.command(prompt, None, None, attached), seconds=60)
        assert done.returncode == 0, done.stderr
        return opencode.session_in(done.stdout)

    opencode.models.script("one", *opencode.swarm_tools(("lock_file", {"file": "notes.md", "reason": "of the first"})))
    opencode.models.script("two", *opencode.swarm_tools(("whoami", {})), *opencode.change(*CHANGE))
    first, second = ask("one"), ask("two")
    (lock,) = coordinator.locks()
    ids = {session["id"] for session in coordinator.sessions()}
    assert len(ids) == 2 and json.loads(opencode.results("two")[0])["id"] in ids - {lock["instance_id"]}
    assert_denied(opencode, "two", "notes.md", holder=f"opencode {lock['instance_id'][:8]}", note="of the first")
    seen = json.dumps([exchange.body for exchange in opencode.models.exchanges(opencode.requests)])
    assert first not in seen and second not in seen, "which session calls is none of the model's business"

    removal = urllib.request.Request(f"{address}/session/{first}", method="DELETE")
    urllib.request.urlopen(removal, timeout=60).close()
    assert wait_for(lambda: not coordinator.locks(), 60) and len(coordinator.sessions()) == 1


def test_its_own_rewind_is_told_and_undone(opencode: OpenCode) -> None:
    path = opencode.ground.checkout / FILE
    path.write_text(BEFORE)
    commit(opencode, opencode.ground.checkout)
    server = opencode.ground.start(["opencode", "serve", "--port", "0", "--hostname", "127.0.0.1"], keep_output=True)
    assert server.stdout
    address = next(line for line in server.stdout if "listening on" in line).split()[-1]

    def ask(script: str, session: str | None = None) -> str:
        done = opencode.ground.run(opencode.command(play(script), session, None, ("--attach", address)), seconds=180)
        assert done.returncode == 0, done.stderr
        return opencode.session_in(done.stdout)

    look = opencode.shell(f"cat {FILE}")
    opencode.models.script("mine", look, opencode.replace(FILE, "line 8", "by me"))
    opencode.models.script("theirs", look, opencode.replace(FILE, "line 2", "by another"))
    opencode.models.script("next", opencode.shell("true"))
    first = ask("mine")
    ask("theirs")
    assert "by another" in path.read_text() and "by me" in path.read_text()
    with urllib.request.urlopen(f"{address}/session/{first}/message", timeout=60) as answer:
        message = json.load(answer)[0]["info"]["id"]
    revert = urllib.request.Request(
        f"{address}/session/{first}/revert",
        json.dumps({"messageID": message}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(revert, timeout=60).close()
    assert path.read_text() == BEFORE
    ask("next", first)
    assert undone(opencode, opencode.said("next")) == BEFORE.replace("line 2", "by another")


def test_a_command_in_another_folder(opencode: OpenCode) -> None:
    opencode.ground.coordinator.peer_lock("notes.md")
    call = opencode.shell("echo 'line two' > ../notes.md")
    opencode.run("work", {"name": "bash", "input": {**call["input"], "workdir": "sub"}})
    assert_denied(opencode, "work", "notes.md")


def test_what_the_model_is_told_is_no_part_of_the_title(opencode: OpenCode) -> None:
    opencode.run("work", opencode.create("free.md", "free\n"))
    assert_text(opencode, "free.md", "free\n")
    asked = [json.dumps(exchange.body) for exchange in opencode.models.exchanges(opencode.requests)]
    titles = [body for body in asked if "You are a title generator" in body]
    assert titles and not any("is registered as" in body for body in titles)
    assert all(body.count("is registered as") == 1 for body in asked if body not in titles)


def test_code_that_calls_tools_of_servers(opencode: OpenCode) -> None:
    """OpenCode's experimental code mode: one tool runs JavaScript, with those of the servers inside."""
    opencode.ground.coordinator.peer_lock("notes.md")
    opencode.add_server("files", SERVER["command"], SERVER["args"])
    given = json.dumps({"path": str(opencode.ground.checkout / "notes.md"), "content": "line two\n"})
    code = f"return await tools.files.write_file({given})"
    opencode.run("work", {"name": "execute", "input": {"code": code}}, env={"OPENCODE_EXPERIMENTAL_CODE_MODE": "1"})
    assert "swarm lock blocked mcp__files__write_file" in opencode.last_result("work")
    assert_text(opencode, "notes.md", "line one\n")


@pytest.mark.promise("a person's uncommitted work is not lost at keep, also beside one session")
def test_a_person_s_work_stays(opencode: OpenCode) -> None:
    play_a_person_s_work(opencode)


@pytest.mark.promise("a stale whole write keeps others' lines, and weakens no permission rule")
def test_two_sessions_commit_their_parts_of_one_file(opencode: OpenCode) -> None:
    play_two_commits(opencode)


def test_a_stale_text_is_merged(opencode: OpenCode) -> None:
    play_a_merge(opencode)


def test_twelve_rules_with_and_without_a_merge(opencode: OpenCode) -> None:
    files = {kind: [f"{kind}-1.md", f"{kind}/two.md", f"sub/{kind}-3.txt", f"{kind}-4.md"] for kind in KINDS}
    patterns = ["{}-1.md", "{}/*", "sub/{}-3.*", "{}-4*"]
    rules = {"*": "deny", **{pattern.format(kind): kind for kind in KINDS for pattern in patterns}}
    settings = opencode.ground.home / ".config" / "opencode" / "opencode.json"
    before = settings.read_text()
    settings.write_text(json.dumps({**json.loads(before), "permission": {"*": "allow", "edit": rules}}))
    try:
        everything = [file for some in files.values() for file in some] + ["none.md"]
        for script in ("merged", "unmerged"):
            text = MINE if script == "merged" else BOTH
            told = write_stale(opencode, script, everything, text)
            assert permitted(opencode, everything) == set(files["allow"]), told
    finally:
        settings.write_text(before)
