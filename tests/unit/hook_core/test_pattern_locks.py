"""A locked pattern keeps out the same as a lock on a file: writes, commands, git, and unseen writers."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import Ground, time_limit, wait_for
from support.judged import Scene
from support.sessions import after, captured, join, mistakes, new_session, run, start
from support.world import git

from swarm_hook_core import pattern_match
from swarm_hook_core.lookup import GLOB, Held, Peers
from swarm_hook_core.lookup.pattern_locks import covered
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.mcp_writers import effects_of_tool
from swarm_hook_core.paths import NO_CASE, keys_for
from swarm_hook_core.pattern_match import Cover
from swarm_hook_core.shell.model import Effects, Guess
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import watched_files
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


def take(store: Store, holder: dict, *files: str, **given) -> list[dict]:
    return store.locks.acquire_all(holder, request(holder, files, note="surgery", **given))


@pytest.fixture
def repo(ground: Ground) -> Path:
    """A repository with files of two kinds in folders, all committed."""
    folder = Path(ground.scope)
    git(folder, "init", "-q")
    for name in ("src/a.sql", "src/a.py", "src/deep/b.sql", "src/deep/b.py", "docs/c.md", "top.sql"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def beside(ground: Ground, repo: Path, *patterns: str, **given: Any) -> Scene:
    """A session, and a peer that holds `patterns` of the repository."""
    return Scene(ground, repo, *patterns, as_pattern=True, **given)


def test_a_pattern_that_fits_a_folder_does_not_hold_what_is_in_it(ground: Ground, repo: Path) -> None:
    peers = beside(ground, repo, "s*").peers
    assert peers.on([str(repo / "src")]) and peers.on([str(repo / "sql")])
    assert not peers.over([str(repo / "src/a.py")])
    with ground.store() as store:
        take(store, ground.session("me"), "src/a.py")  # as the store sees it, so do the hooks


def test_a_write_through_a_link_meets_the_pattern_of_where_it_leads(ground: Ground, repo: Path) -> None:
    (repo / "alias").symlink_to("src/deep")
    scene = beside(ground, repo, "src/**/*.sql")
    assert scene.judged("echo > alias/new.sql").denial
    assert scene.judged("echo > alias/new.py").denial is None


def test_the_key_says_whether_letter_case_counts() -> None:
    keys = (NO_CASE + "/r/src/A.SQL".lower(), "/r/src/A.SQL")
    assert covered("SRC/*.Sql", NO_CASE + "/r", f"{GLOB}{NO_CASE}/r/src", keys) == keys[:1]
    assert covered("src/*.sql", "/r", f"{GLOB}/r/src", keys) == ()
    assert covered("src/*.SQL", "/r", f"{GLOB}/r/src", keys) == keys[1:]


@pytest.mark.parametrize(
    ("pattern", "path", "is_met"),
    [("*.sql", "top.sql", True), ("*.sql", "src/deep/x.sql", True), ("./*.sql", "src/x.sql", False),
     ("src/", "src/x", True),
     ("src/deep/", "src/deep/n/m", True), ("**", "anything", True), ("src/[ab].py", "src/b.py", True),
     ("docs", "docs", True), ("src/[!a].py", "src/a.py", False), ("a/./b*", "a/b1", True),
     ("src/\\*", "src/*", True), ("src/\\*", "src/a", False)],
)  # fmt: skip
def test_a_pattern_is_found_by_whatever_it_covers(
    ground: Ground, repo: Path, pattern: str, path: str, is_met: bool
) -> None:
    peers = beside(ground, repo, pattern).peers
    assert bool(peers.on(keys_for(str(repo / path), "/"))) is is_met


def test_what_another_program_has_put_into_our_columns_costs_no_check(ground: Ground, repo: Path) -> None:
    scene = beside(ground, repo, "src/*.sql")
    key = str(repo / "src/a.sql")
    for column, value in (("pattern", b"\xff"), ("pattern", "[a"), ("base", 7), ("pattern", None), ("agent", 3.5)):
        before = ground.sql(f"SELECT {column} FROM context")[0][column]
        ground.sql(f"UPDATE context SET {column} = ?", value)
        found = scene.peers.on([key]), scene.peers.patterns([str(repo)])
        assert column == "agent" or found == ([], []), (column, value)
        ground.sql(f"UPDATE context SET {column} = ?", before)
    assert scene.peers.on([key])


def test_a_lapsed_pattern_is_not_there(ground: Ground, repo: Path) -> None:
    scene = beside(ground, repo, "src/*.sql", ttl=60.0)
    assert "lapses in" in scene.judged("echo > src/n.sql").denial.reason
    ground.sql("UPDATE context SET renewed = renewed - 61")
    assert scene.judged("echo > src/n.sql; rm -rf src").denial is None
    assert not scene.judged(Effects()).watched


@pytest.mark.parametrize(
    ("command", "met"),
    [("rm -rf src", "src/a.sql"), ("rm -r src/deep", "src/deep/b.sql"), ("rm -rf docs", ""), ("rm -rf .", "src/a.sql"),
     ("sed -i s/x/y/ src/*.py", ""), ("sed -i s/x/y/ src/*", "src/a.sql"), ("find . -name '*.py' -delete", ""),
     ("find src -name '*.sql' -delete", "src/a.sql"), ("mv src/a.py src/a.sql", "src/a.sql"),
     ("cp docs/c.md src/deep/new.sql", "src/deep/new.sql"), ("mv src other", "src/a.sql"),
     ("touch src/new.sql", "src/new.sql"),
     ("cp -r fresh/ src/", "src/fresh/n.sql"), ("cp -r docs src/", ""), ("mv fresh src/deep", "src/deep/fresh/n.sql"),
     ("cat src/a.sql", ""), ("rm src/a.sql", "src/a.sql"), ("chmod -R a+x src/deep", "src/deep/b.sql")],
)  # fmt: skip
def test_a_command_is_denied_where_it_writes_what_is_covered(
    ground: Ground, repo: Path, command: str, met: str
) -> None:
    (repo / "fresh").mkdir()
    (repo / "fresh/n.sql").write_text("x")
    denial = beside(ground, repo, "src/**/*.sql").judged(command).denial
    if met in ("src/a.sql",) and denial is not None and denial.path.endswith("deep/b.sql"):
        met = "src/deep/b.sql"  # a folder has no order
    assert (denial.path if denial else "") == (str(repo / met) if met else ""), denial and denial.reason
    if denial:
        assert f"(one of the locked {repo}/src/**/*.sql)" in denial.reason


@pytest.mark.parametrize("pattern", ["*.sql", "src/*.sql"])
def test_a_command_beside_nothing_but_a_pattern_is_read_all_the_same(ground: Ground, repo: Path, pattern: str) -> None:
    """From the client's own payload: a command without another place is read if something is locked around it."""
    me = new_session()
    assert start("claude-code", me, repo).context
    with Store() as store:
        take(store, join(store, repo), pattern, as_pattern=True)
    payload = {**captured("claude-code", "PreToolUse.Bash", repo), "session_id": me, "cwd": str(repo / "src")}
    for name, reason in (("new.sql", f"(one of the locked {repo}/{pattern})"), ("new.py", "")):
        payload["tool_input"] = {"command": f"touch {name}"}
        said = run("claude-code", "pre_tool_use", payload).reason
        assert reason in said and bool(said) is bool(reason)
    assert mistakes() == []


def test_a_folder_that_goes_into_the_pattern_s_own_is_met(ground: Ground, repo: Path) -> None:
    scene = beside(ground, repo, "s*")
    assert scene.judged("rm -rf src").denial.path == str(repo / "src")
    assert scene.judged("rm -rf src/deep").denial is None


def test_a_folder_too_large_to_look_through_may_hold_anything(ground: Ground, repo: Path, limits) -> None:
    scene = beside(ground, repo, "src/**/*.sql")
    (repo / "src/a.sql").unlink()
    limits(pattern_match, ENTRIES=1)
    verdict = scene.judged("rm -rf src")
    assert verdict.denial is None and [held.pattern for held in verdict.watched] == ["src/**/*.sql"]
    assert "there is more in that folder than could be looked through" in verdict.notice
    assert scene.judged("rm -rf src", strict=True).denial


def test_many_patterns_and_many_files_are_looked_through_within_bounds(ground: Ground, repo: Path) -> None:
    for number in range(600):
        (repo / f"src/deep/file{number}.txt").write_text("")
    scene = beside(ground, repo, *(f"src/**/none{number}*.sql" for number in range(40)))
    begun = time.monotonic()
    verdict = scene.judged("rm -rf src docs top.sql")
    assert verdict.denial is None and time.monotonic() - begun < time_limit(5)


def test_a_guess_near_a_pattern_is_a_line_a_watch_and_in_strict_mode_a_denial(ground: Ground, repo: Path) -> None:
    scene, guess = beside(ground, repo, "src/**/*.sql"), Effects()
    guess.guesses.append(Guess("an opaque script", str(repo / "docs"), "./build"))
    verdict = scene.judged(guess)
    assert verdict.denial is None and "/src/**/*.sql (held by" in verdict.notice and len(verdict.watched) == 1
    assert "SWARM_STRICT" in scene.judged(guess, strict=True).denial.reason


def test_a_tool_of_another_server_is_kept_off_as_well(ground: Ground, repo: Path) -> None:
    scene = beside(ground, repo, "src/**/*.sql")
    for path, met in (("src/new.sql", True), ("src/new.py", False)):
        found = effects_of_tool("mcp__files__write_file", {"path": str(repo / path), "content": "x"}, str(repo))
        assert (scene.judged(found).denial is not None) is met
    given = {"source": str(repo / "src"), "destination": str(repo / "x")}
    assert scene.judged(effects_of_tool("mcp__files__move_file", given, str(repo))).denial


@pytest.mark.parametrize(
    ("command", "met"),
    [("git checkout other", "src/new.sql"), ("git merge other", "src/new.sql"), ("git switch other", "src/new.sql"),
     ("git stash", "src/a.sql"), ("git add -A", "src/a.sql"), ("git commit -am x", "src/a.sql"),
     ("git add src/a.sql", "src/a.sql"),
     ("git reset --hard", "src/a.sql"), ("git checkout -- src/deep/b.sql", "src/deep/b.sql"), ("git rm -q top.sql", ""),
     ("git rm -rq src/deep", "src/deep/b.sql"), ("git mv docs/c.md src/c.sql", "src/c.sql"), ("git mv docs docs2", ""),
     ("git mv src/deep src/low", "src/deep/b.sql"), ("git clean -fdx", "src/deep/wild.sql"), ("git status", ""),
     ("git checkout -- docs", ""), ("git checkout third", ""), ("git branch x", ""), ("git add docs", ""),
     ("git restore src", "src/a.sql"), ("git add src/deep/wild.sql", "src/deep/wild.sql"), ("git commit -m x", "")],
)  # fmt: skip
def test_git_is_asked_what_it_would_do_to_what_is_covered(ground: Ground, repo: Path, command: str, met: str) -> None:
    git(repo, "checkout", "-qb", "other")
    (repo / "src/new.sql").write_text("new\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "second")
    git(repo, "checkout", "-q", "main")
    git(repo, "checkout", "-qb", "third")
    (repo / "docs/c.md").write_text("other\n")
    git(repo, "commit", "-qam", "third")
    git(repo, "checkout", "-q", "main")
    (repo / "src/a.sql").write_text("half done\n")
    (repo / "src/deep/wild.sql").write_text("not known yet\n")
    (repo / "docs/d.md").write_text("mine\n")
    verdict = beside(ground, repo, "src/**/*.sql").judged(command)
    assert (verdict.denial.path if verdict.denial else "") == (str(repo / met) if met else ""), verdict.notice


def test_a_pattern_over_everything_is_no_lock_on_the_repository_itself(ground: Ground, repo: Path) -> None:
    scene = beside(ground, repo, "**")
    assert scene.judged("git branch x; git tag y; git fetch").denial is None
    (repo / "docs/c.md").write_text("changed\n")
    assert scene.judged("git add docs").denial


def test_what_fits_a_locked_pattern_is_compared_after_an_opaque_call(ground: Ground, repo: Path) -> None:
    """Changed, removed and new files of the pattern are told; the content before is kept."""
    me = new_session()
    assert start("claude-code", me, repo).context
    with Store() as store:
        peer = join(store, repo)
        take(store, peer, "src/**/*.sql")
    payload = {**captured("claude-code", "PreToolUse.Bash", repo), "session_id": me, "tool_name": "PowerShell"}
    payload.update(tool_input={"command": "make gen"}, tool_use_id="call-1")
    noticed = run("claude-code", "pre_tool_use", payload)
    assert "src/**/*.sql (held by peer" in noticed.out and mistakes() == []
    (repo / "src/a.sql").write_text("mine\n")
    (repo / "src/a.py").write_text("mine\n")
    (repo / "src/deep/b.sql").unlink()
    (repo / "src/deep/fresh.sql").write_text("mine\n")
    said = after("claude-code", payload)
    for words in ("a.sql changed", "deep/b.sql was removed", "deep/fresh.sql was created", "has locked"):
        assert words in said, said
    assert "a.py" not in said
    rows = wait_for(lambda: (found := ground.sql("SELECT * FROM swarm_alterations")) and len(found) == 3 and found)
    assert {Path(row["kept"]).read_text() for row in rows if row["kept"]} == {"x\n"}


def test_a_watched_pattern_has_no_more_files_than_the_watch_has_room_for(ground: Ground, repo: Path) -> None:
    for number in range(watched_files.FILES_IN_FOLDER + 20):
        (repo / f"src/file{number:03}.sql").write_text("")
    held = beside(ground, repo, "src/*.sql").peers.patterns([str(repo)])
    ((_held, place, key, files, complete),) = watched_files.files_of(held, 1000)
    assert (place, key, complete) == (str(repo / "src"), str(repo / "src"), False)
    assert len(files) == watched_files.FILES_IN_FOLDER


def test_the_commit_guard_knows_patterns(ground: Ground, repo: Path) -> None:
    beside(ground, repo, "src/**/*.sql")
    (repo / "src/deep/new.sql").write_text("x")
    (repo / "src/a.py").write_text("changed")
    git(repo, "add", "-A")
    refused = ground.swarm("guard", "check", "--hook", "pre-commit", "--json")
    assert refused.code == 1
    assert [one["file"] for one in refused.json["held"]] == ["src/deep/new.sql"]
    git(repo, "reset", "-q", "src/deep/new.sql")
    assert ground.swarm("guard", "check", "--hook", "pre-commit", "--json").code == 0


def test_a_store_without_the_columns_is_read_as_ever(ground: Ground, repo: Path) -> None:
    """Version 3 has keys and no more than paths; another release's reader must find all that stands there."""
    scene = beside(ground, repo)
    with ground.store() as store:
        take(store, scene.peer, str(repo / "src/a.sql"))
    for index in ground.sql("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'context'"):
        if any(f"{word}" in (index["sql"] or "") for word in ("repository", "ttl", "pattern", "agent", "base")):
            ground.sql(f"DROP INDEX {index['name']}")
    for trigger in ground.sql("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')"):
        ground.sql(f"DROP TRIGGER IF EXISTS {trigger['name']}")
    there = {row["name"] for row in ground.sql("SELECT name FROM pragma_table_info('context')")}
    ours = "mode agent pattern base ttl renewed booted wall_until expected_end fence repository warned"
    for column in there & set(ours.split()):
        ground.sql(f"ALTER TABLE context DROP COLUMN {column}")
    key = str(repo / "src/a.sql")
    for peers in (scene.peers, scene.peers):
        held = peers.on([key])[0]
        assert (held.file, held.mode, held.agent, held.pattern) == (key, None, "", None)
        assert (held.lease, held.expected_end) == (None, None)
        assert peers.under([str(repo)]) and not peers.patterns([str(repo)])
    assert scene.peers.under([str(repo)]), "asked for the first time, too"
    assert not Peers(StoreReader(store_path()), scene.peer["id"], time.time()).any()
    assert scene.judged("rm -rf src").denial and scene.judged("rm -rf docs").denial is None


def test_what_a_cover_makes_of_a_base_that_is_the_root() -> None:
    cover = Cover(Held("/etc/*.conf", "x", pattern="etc/*.conf", base="/", fence=1))
    assert cover.has("/etc/a.conf") and cover.folder == "/etc" and cover.leads_to("/") and cover.leads_to("/etc")
    assert not cover.leads_to("/usr") and not cover.has("/etc/x/a.conf")
    assert os.sep == "/"
