"""The paths that the kernel holds for a session, and the calls that may run because of it."""

import errno
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.altered import Failing
from support.fixtures import wait_for
from support.kernel_calls import OPAQUE, Caller, says
from support.sessions import fault_lines, join, peer_locks
from support.traced import git

from swarm_hook_core.kernel import planning, plans
from swarm_hook_core.kernel.planning import may_allow
from swarm_hook_core.kernel.plans import MOST_PATHS, NOT_HELD, Plan, held_now, paths_of, still_held
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import start_time
from swarm_hook_core.state import has_plans, watched_dir
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

ME = "my-session"


def reach(folder: Path, me: Any, agent: str = "", *others: Path) -> tuple[list[str], bool]:
    """Return the paths to hold, by names within `folder`, and True if they are complete."""
    reader = StoreReader(os.environ["SWARM_DB_PATH"])
    session = reader.session("claude-code", ME) or Session(me["id"])
    peers = Peers(reader, me["id"], time.time(), agent)
    found, are_all = paths_of(session, peers, [str(folder), *map(str, others)])
    return sorted(os.path.relpath(path, folder) for path in found), are_all


def lock(row: Any, *files: Path | str, **given: Any) -> None:
    with Store() as store:
        store.locks.acquire_all(row, request(row, [str(file) for file in files], **given))


@pytest.fixture
def me(work: Path) -> Any:
    with Store() as store:
        return join(store, work, "me", runtime="claude-code", session_id=ME)


def test_what_peers_hold_and_not_what_is_its_own(work: Path, me: Any, tmp_path: Path) -> None:
    assert reach(work, me) == ([], True)
    peer_locks(work, work / "notes.md")
    lock(me, work / "other.md")
    (tmp_path / "elsewhere").write_text("x")
    peer_locks(tmp_path, tmp_path / "elsewhere")
    assert reach(work, me) == (["notes.md"], True)
    assert reach(work, me, "", tmp_path) == (["../elsewhere", "notes.md"], True)


def test_what_its_own_other_agents_hold(work: Path, me: Any) -> None:
    lock(me, work / "notes.md", agent="a1")
    lock(me, work / "other.md", agent="a2")
    lock(me, work / "sub" / "deep.md")
    assert reach(work, me) == (["notes.md", "other.md"], True)
    assert reach(work, me, "a1") == (["other.md"], True), "what the session itself holds is for all its agents"


def test_what_it_reads_with_others_is_left_out(work: Path, me: Any, store: Store) -> None:
    peer = join(store, work)
    lock(peer, work / "notes.md", work / "other.md", mode="shared")
    assert reach(work, me) == (["notes.md", "other.md"], True)
    lock(me, work / "notes.md", mode="shared")
    assert reach(work, me) == (["other.md"], True)


def test_a_locked_folder_is_one_path_and_one_over_the_checkout_another(work: Path, me: Any) -> None:
    peer = peer_locks(work, work / "sub")
    assert reach(work, me) == (["sub"], True)
    lock(peer, work.parent)
    assert reach(work, me) == (["..", "sub"], True)


def test_of_a_pattern_the_files_that_are_there_which_may_not_be_all(work: Path, me: Any, store: Store) -> None:
    peer = join(store, work)
    store.locks.acquire_all(peer, request(peer, ["*.md"], as_pattern=True))
    found, are_all = reach(work, me)
    assert found == ["notes.md", "other.md", "sub/deep.md"] and not are_all


def test_what_is_not_there_cannot_be_held(work: Path, me: Any) -> None:
    (work / "dangling.md").symlink_to("nowhere")
    for name in ("to-come.md", "no/such/folder", "dangling.md", "notes.md"):
        peer_locks(work, work / name)
    assert reach(work, me) == (["notes.md"], False)


def test_a_link_is_held_where_it_leads(work: Path, me: Any) -> None:
    (work / "link.md").symlink_to("sub/deep.md")
    peer_locks(work, work / "link.md")
    assert reach(work, me) == (["sub/deep.md"], True)
    (work / "way").symlink_to("sub")
    (work / "sub" / "other.md").write_text("x")
    peer_locks(work, work / "way" / "other.md")
    assert reach(work, me)[0] == ["sub/deep.md", "sub/other.md"], "a folder on the way is a link"


def test_what_the_dead_and_the_silent_held_is_free(work: Path, me: Any) -> None:
    client = subprocess.Popen(["sleep", "600"])
    started = start_time(client.pid)
    peer_locks(work, work / "notes.md", client=(client.pid, started))
    lock(peer_locks(work, work / "other.md"), work / "sub" / "deep.md", ttl=1.0)
    assert reach(work, me)[0] == ["notes.md", "other.md", "sub/deep.md"]
    client.kill()
    client.wait()
    wait_for(lambda: reach(work, me) == (["other.md"], True))


def test_what_is_locked_in_another_work_tree_for_all_of_them(work: Path, me: Any, tmp_path: Path, store: Store) -> None:
    second = tmp_path.resolve() / "second"
    git(work, "config", "swarm.logical", "true")
    git(work, "worktree", "add", "-q", str(second))
    peer = join(store, second)
    lock(peer, second / "notes.md")
    assert reach(work, me) == (["notes.md"], True), "the file of this one"
    git(work, "config", "swarm.logical", "false")
    assert reach(work, me) == ([], True)


@pytest.mark.slow
def test_a_thousand_at_most(work: Path, me: Any, store: Store) -> None:
    peer = join(store, work)
    (work / "many").mkdir()
    files = [work / "many" / str(number) for number in range(MOST_PATHS + 50)]
    for file in files:
        file.touch()
    for begin in range(0, len(files), 200):
        lock(peer, *files[begin : begin + 200])
    found, are_all = reach(work, me)
    assert len(found) == MOST_PATHS and not are_all
    # Among many locks the first may change; those of a plan stay held while they are locked.
    plan = Plan("claude-code", ME, me["id"], roots=[str(work)], store=os.environ["SWARM_DB_PATH"])
    plan.paths = [str(file) for file in files[-3:]]
    assert set(plan.paths) <= still_held(plan)
    store.locks.release(peer, plan.paths[0])
    assert not still_held(plan) & {plan.paths[0]} and set(plan.paths[1:]) <= still_held(plan)


def test_what_a_plan_comes_to_now(work: Path, me: Any) -> None:
    peer_locks(work, work / "notes.md")
    store = os.environ["SWARM_DB_PATH"]
    plan = Plan("claude-code", ME, me["id"], roots=[str(work)], store=store)
    assert held_now(plan) == ([str(work / "notes.md")], True)
    plan.session = "one-that-has-ended"
    assert held_now(plan) == ([str(work / "notes.md")], True)
    plan.store = "/none"
    assert held_now(plan) == ([], True)


def test_a_store_in_the_place_of_which_is_a_link_is_not_followed(work: Path, me: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.environ["SWARM_DB_PATH"])
    with pytest.raises(OSError, match="symbolic link"):
        held_now(Plan("claude-code", "s", me["id"], roots=[str(work)], store=str(tmp_path / "link")))


@pytest.fixture
def caller(work: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    monkeypatch.setenv("SWARM_STRICT", "1")
    return Caller(work, monkeypatch)


def test_it_passes_where_all_is_held(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert not caller.denied() and caller.plan().is_strict and caller.held() == ["notes.md"]


def test_it_is_denied_where_not_all_can_be_held(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    peer_locks(work, work / "to-come.md")
    assert "SWARM_STRICT" in caller.denied() and caller.plan() is None


def test_it_is_denied_where_a_pattern_is_locked(caller: Caller, work: Path, store: Store) -> None:
    peer = join(store, work)
    store.locks.acquire_all(peer, request(peer, ["*.md"], as_pattern=True))
    assert "SWARM_STRICT" in caller.denied() and not has_plans(caller.session_id)


def test_it_is_denied_where_the_kernel_cannot_or_the_command_may_not_enter(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert "SWARM_STRICT" in caller.denied(f"{OPAQUE}; swarm-mcp locks")
    says("Operation not permitted")
    assert "SWARM_STRICT" in caller.denied() and not has_plans(caller.session_id)


def test_what_is_certain_is_denied_as_ever(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    said = caller.denied(f"{OPAQUE}; echo x > notes.md")
    assert said.startswith("swarm lock blocked Bash (") and "SWARM_STRICT" not in said
    assert not has_plans(caller.session_id)


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")]
)
def test_a_plan_that_cannot_be_left_is_none(
    caller: Caller, work: Path, monkeypatch: pytest.MonkeyPatch, failing: Failing, error: Exception, is_strict: bool
) -> None:
    """The disk is full: the call is judged as if the kernel could hold nothing, and denied means not watched either."""
    monkeypatch.setenv("SWARM_STRICT", str(int(is_strict)))
    peer_locks(work, work / "notes.md")

    failing(plans, "_write", error)
    verdict = caller.check()
    assert verdict.plan is None and (verdict.denial is not None) is is_strict
    assert "The kernel" not in verdict.notice and bool(verdict.notice) is not is_strict
    assert os.path.isdir(watched_dir()) is not is_strict
    (line,) = fault_lines()
    assert line["hook"] == "kernel" and type(error).__name__ in line["fault"]
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


def test_a_lone_surrogate_in_a_command_is_judged_as_ever(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert "SWARM_STRICT" in caller.denied(f"{OPAQUE} '\ud800'")
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


PLAN = Plan("codex", "s", roots=["/srv/project"], paths=["/srv/project/notes.md", "/mnt/other/place"])


@pytest.mark.parametrize(
    ("said", "is_ours"),
    [
        ("OSError: [Errno 30] Read-only file system: 'notes.md'", True),
        ("rm: cannot remove 'tree/held.md': Device or resource busy", True),
        ("/srv/project/build.sh: line 3: notes.md: Read-only file system", True),
        ("touch: /mnt/other/place/in: Read-only file system", True),
        ("write failed: EROFS", True),
        ("OSError: [Errno 30] Read-only file system: '/home/me/.cache/x'", False),
        ("mkdir: cannot create directory '/opt/x': Read-only file system", False),
        (f"{NOT_HELD}: unshare: Operation not permitted\nOSError: [Errno 30] Read-only file system: 'notes.md'", False),
        ("all is well", False),
    ],
)
def test_an_error_of_the_kernel_s_is_ours_or_not(said: str, is_ours: bool) -> None:
    assert planning._is_by_us(PLAN, f"begins\n{said}\nends") is is_ours


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rules of the user's."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    file = tmp_path / "codex" / "rules" / "default.rules"
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    "rule, commands",
    [
        (
            'prefix_rule(pattern=["make", "all"], decision="allow")',
            ["make all", "cd sub; make  'all' -s", "m\\ake all"],
        ),
        ('prefix_rule(pattern=["make", ["one", "two"]])', ["make one", "make two"]),
        ('# mine\nprefix_rule(\n    pattern = ["make"],\n    justification = "x",\n)', ["make", "make one"]),
    ],
)
def test_an_allowed_command(rules: Path, rule: str, commands: list[str]) -> None:
    rules.write_text(rule)
    assert [command for command in commands if not may_allow(command, "/")] == []
    assert not may_allow("npm run all", "/")


@pytest.mark.parametrize("decision", ["prompt", "forbidden"])
def test_what_asks_or_forbids_lets_nothing_out(rules: Path, decision: str) -> None:
    rules.write_text(f'prefix_rule(pattern=["make"], decision="{decision}")')
    assert not may_allow("make", "/")


@pytest.mark.parametrize(
    "text",
    [
        'prefix_rule(pattern=["npm"',
        'WORDS = ["npm"]\nprefix_rule(pattern=WORDS)',
        'prefix_rule(["npm"], "allow")',
        'rule = prefix_rule\nrule(pattern=["make"])',
    ],
)
def test_what_cannot_be_read_may_allow_anything(rules: Path, text: str) -> None:
    rules.write_text(text)
    assert may_allow("make", "/")


def test_the_rules_of_a_project(tmp_path: Path, rules: Path) -> None:
    project = tmp_path / "project"
    (project / ".codex" / "rules").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / ".codex" / "rules" / "ours.rules").write_text('prefix_rule(pattern=["make"])')
    assert may_allow("make", str(project / "sub"))
    assert not may_allow("make", str(tmp_path))
