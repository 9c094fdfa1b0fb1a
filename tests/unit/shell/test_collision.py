"""The effects of a call meet the locks of others: some deny, some are only worth a line."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from support.files import files_at
from support.fixtures import Ground
from support.judged import Scene
from support.sessions import RUNTIMES, new_session, peer_locks, ready_store, start, write

from swarm_hook_core.collisions import judge
from swarm_hook_core.lookup import NEAR, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.paths import above, below
from swarm_hook_core.shell.model import Effects, GitCall, Guess, Tree, Write
from swarm_hook_core.state import fault_log, store_path


@pytest.fixture
def repo(ground: Ground, tmp_path: Path) -> Path:
    """A repository with some files; its session is ``me``."""
    folder = Path(ground.scope)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    files_at(folder, dict.fromkeys(("src/a.py", "src/deep/b.py", "docs/c.md"), "x\n"))
    return folder


def effects(*items) -> Effects:
    found = Effects()
    for item in items:
        found.add(item)
    return found


def test_a_certain_write_denies_and_names_the_part_that_does_it(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src/a.py")
    denial = scene.judged(
        effects(Write(str(repo), "docs/c.md", "x"), Write(str(repo / "src"), "a.py", "sed -i"))
    ).denial
    assert denial.path == str(repo / "src/a.py") and "(`sed -i`)" in denial.reason and "surgery" in denial.reason
    assert scene.judged(effects(Write(str(repo), "a.py", "x"))).denial is None


@pytest.mark.parametrize("locked", ["src", "src/deep"])
def test_a_lock_on_a_folder_holds_what_is_in_it_and_what_is_not_yet(ground: Ground, repo: Path, locked: str) -> None:
    scene = Scene(ground, repo, locked)
    denial = scene.judged(effects(Write(str(repo), "src/deep/new.py", "x"))).denial
    assert f"(in the locked folder {repo / locked})" in denial.reason
    assert scene.judged(effects(Write(str(repo), "src.py", "x"))).denial is None


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_client_s_own_write_tools_are_kept_off_a_locked_folder(runtime: str, tmp_path: Path) -> None:
    ready_store()
    me = new_session()
    assert start(runtime, me, tmp_path).context
    (tmp_path / "sub").mkdir()
    peer_locks(tmp_path, tmp_path / "sub")
    assert "in the locked folder" in write(runtime, me, tmp_path, tmp_path / "sub" / "new.py").reason
    assert write(runtime, me, tmp_path, tmp_path / "new.py").reason == ""


@pytest.mark.parametrize(
    ("root", "locked", "met"),
    [("src", "src/a.py", True), ("src", "src/deep/b.py", True), ("docs", "src/a.py", False),
     ("src/a.py", "src/a.py", True),
     ("sr", "src/a.py", False), ("src/deep", "src", True), ("", "docs/c.md", True)],
)  # fmt: skip
def test_a_tree_meets_what_lies_under_it(ground: Ground, repo: Path, root: str, locked: str, met: bool) -> None:
    verdict = Scene(ground, repo, locked).judged(effects(Tree(str(repo / root), "rm -r")))
    assert (verdict.denial is not None) is met


def test_a_tree_asks_its_predicate_of_the_path_as_it_is_spelled_there(ground: Ground, repo: Path) -> None:
    (repo / "alias").symlink_to("src")
    scene, asked = Scene(ground, repo, "src/a.py", "src/deep/b.py"), []

    def admits(path: str) -> bool:
        asked.append(path)
        return path.endswith("b.py")

    denial = scene.judged(effects(Tree(str(repo / "alias"), "find", admits))).denial
    assert denial.path == str(repo / "alias/deep/b.py")
    assert set(asked) == {str(repo / "alias/a.py"), str(repo / "alias/deep/b.py")}
    assert scene.judged(effects(Tree(str(repo), "find", lambda path: False))).denial is None


def test_what_a_predicate_cannot_tell_is_a_line_and_a_watch(ground: Ground, repo: Path) -> None:
    verdict = Scene(ground, repo, "src/a.py").judged(effects(Tree(str(repo), "find -newer x", lambda path: None)))
    assert verdict.denial is None and [held.file for held in verdict.watched] == [str(repo / "src/a.py")]
    assert "src/a.py" in verdict.notice and "`find -newer x`" in verdict.notice and "\n" not in verdict.notice


def test_a_locked_folder_is_looked_through_for_what_a_predicate_admits(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src")
    denial = scene.judged(effects(Tree(str(repo), "find -name b.py", lambda path: path.endswith("b.py")))).denial
    assert denial.path == str(repo / "src/deep/b.py") and "in the locked folder" in denial.reason
    assert scene.judged(effects(Tree(str(repo), "find -name z", lambda path: path.endswith("z")))).denial is None


def test_a_guess_is_a_line_near_locks_and_nothing_far_from_them(ground: Ground, repo: Path, tmp_path: Path) -> None:
    scene = Scene(ground, repo, "src/a.py")
    guess = effects(Guess("an opaque script", str(repo / "docs"), "./build"))
    verdict = scene.judged(guess)
    assert verdict.denial is None and "`./build`: an opaque script" in verdict.notice and "surgery" in verdict.notice
    assert [held.file for held in verdict.watched] == [str(repo / "src/a.py")]
    (tmp_path / "elsewhere").mkdir()
    far = scene.judged(effects(Guess("an opaque script", str(tmp_path / "elsewhere"))), cwd=tmp_path / "elsewhere")
    assert (far.denial, far.notice, list(far.watched)) == (None, "", [])


def test_strict_denies_what_is_only_possible(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src/a.py")
    denial = scene.judged(effects(Guess("an opaque script", str(repo), "./build")), strict=True).denial
    assert "swarm lock blocked" in denial.reason and "SWARM_STRICT" in denial.reason
    assert scene.judged(effects(), strict=True).denial is None


def test_the_project_s_own_code_is_watched_without_a_word(ground: Ground, repo: Path) -> None:
    scene, tests = Scene(ground, repo, "src/a.py"), effects()
    tests.runs = True
    verdict = scene.judged(tests, strict=True)
    assert verdict.denial is None and verdict.notice == "" and len(verdict.watched) == 1


def test_git_is_asked_only_beside_locks(ground: Ground, repo: Path, failing) -> None:
    from swarm_hook_core.shell.programs.git import touched_files

    call = effects(GitCall(str(repo), ["checkout", "--", "src/a.py"], "git checkout -- src/a.py"))
    denial = Scene(ground, repo, "src/a.py").judged(call).denial
    assert denial.path == str(repo / "src/a.py")
    failing(touched_files, "touched", pytest.fail.Exception("nothing is locked there"))
    other = repo.parent / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    call = effects(GitCall(str(other), ["reset", "--hard"], "git reset --hard"))
    session = Session("nobody", "", str(other), str(other))
    peers = Peers(StoreReader(store_path()), "nobody", time.time())
    assert judge(session, "Bash", call, str(other), peers, time.time()).denial is None


def test_git_knows_a_file_that_was_locked_through_a_link(ground: Ground, repo: Path) -> None:
    (repo / "alias").symlink_to("src")
    subprocess.run(["git", "-C", str(repo), "add", "-A"], check=True)
    call = effects(GitCall(str(repo), ["stash"], "git stash"))
    subprocess.run(
        ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"], check=True
    )
    scene = Scene(ground, repo, "alias/a.py")
    assert scene.judged(call).denial is None
    (repo / "src/a.py").write_text("half done\n")
    assert scene.judged(call).denial.path == str(repo / "src/a.py")


def test_a_lock_on_the_repository_denies_what_changes_it(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, ".git")
    for words in (["commit", "-m", "x"], ["add", "docs/c.md"], ["stash"], ["fetch"], ["branch", "new"]):
        assert scene.judged(effects(GitCall(str(repo), words, "git"))).denial, words
    assert scene.judged(effects(Write(str(repo), ".git/index.lock", "rm"))).denial
    assert scene.judged(effects(Write(str(repo), "src/a.py", "rm"))).denial is None


def test_a_session_that_has_gone_holds_nothing(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src/a.py")
    ground.sql("UPDATE swarm_sessions SET last_seen = 1, lease_seconds = 1, client_pid = 0 WHERE session_id = 'peer'")
    assert scene.judged(effects(Tree(str(repo), "rm -r"), Guess("a script", str(repo)))).denial is None


def test_locks_below_a_folder_are_found_through_an_index(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src/a.py", "src/deep/b.py", "docs/c.md", "src.py")
    reader = StoreReader(store_path())
    below_src = {held.file for held in reader.locks_under([str(repo / "src")], scene.me["id"], NEAR)}
    assert below_src == {str(repo / "src/a.py"), str(repo / "src/deep/b.py")}
    assert reader.locks_under([str(repo / "src")], ground.session("peer")["id"], NEAR) == []
    assert len(reader.locks_under([str(repo)], scene.me["id"], 2)) == 2
    assert reader.others_hold(scene.me["id"]) and not reader.others_hold(ground.session("peer")["id"])
    plans = ground.sql(
        "EXPLAIN QUERY PLAN SELECT 1 FROM context c WHERE c.type = 'lock' AND c.instance_id <> 'x'"
        " AND c.path_key >= '/a/' AND c.path_key < '/a0'"
    )
    assert "swarm_lock_key_idx" in plans[0]["detail"], plans


def test_rows_without_a_key_are_never_read_one_by_one(ground: Ground, repo: Path) -> None:
    """Another implementation may have 100 000 of them: read one by one they cost a second."""
    scene = Scene(ground, repo, "src/a.py", "src/c.py")
    reader, asked = StoreReader(store_path()), []
    reader.connection.set_trace_callback(asked.append)
    reader.locks_on([str(repo / "src/b.py")])
    # there is no such lock: names are not asked about
    assert len([sql for sql in asked if "path_key IS NULL" in sql]) == 1
    asked.clear()
    ground.sql("UPDATE context SET path_key = NULL WHERE file = ?", str(repo / "src/c.py"))
    reader.locks_on([str(repo / "src/b.py"), str(repo / "src"), str(repo)])
    reader.locks_under([str(repo / "src"), f"nocase:{repo}/src"], scene.me["id"], NEAR)
    reader.connection.set_trace_callback(None)
    unkeyed = [sql for sql in asked if "path_key IS NULL" in sql]
    assert len(unkeyed) == 6
    for sql in unkeyed:
        plan = reader.connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()[0][3]
        one_step = sql.endswith("LIMIT 1") and "(path_key=?)" in plan
        assert one_step or "swarm_lock_name_idx" in plan or "swarm_lock_spelling_idx" in plan, plan


def test_of_many_foreign_locks_of_one_name_few_are_looked_at_and_that_is_recorded_once(
    ground: Ground, repo: Path
) -> None:
    Scene(ground, repo, "src/a.py")
    (repo / "link").symlink_to("src")
    ground.sql("UPDATE context SET path_key = NULL, file = ?", str(repo / "link/a.py"))
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
        " INSERT INTO context (id, scope, instance_id, file, type, content)"
        " SELECT 'other ' || i, '/s', instance_id, '/other/' || i || '/a.py', 'lock', '' FROM n, context LIMIT 100"
    )
    for _ in range(2):
        assert [held.file for held in StoreReader(store_path()).locks_on([str(repo / "src/a.py")])] == [
            str(repo / "link/a.py")
        ]
    with open(fault_log()) as recorded:
        assert ["share one name" in line for line in recorded] == [True]


def test_a_foreign_row_without_a_key_is_found_below_its_folder(ground: Ground, repo: Path) -> None:
    scene = Scene(ground, repo, "src/a.py")
    ground.sql("UPDATE context SET path_key = NULL")
    assert scene.judged(effects(Tree(str(repo / "src"), "rm -r src"))).denial


@pytest.mark.parametrize(
    ("key", "folders"), [("/a/b/c", ["/a/b", "/a"]), ("nocase:/a/b", ["nocase:/a"]), ("/a", []), ("relative", [])]
)
def test_the_folders_over_a_key(key: str, folders: list[str]) -> None:
    assert above(key) == folders


def test_below() -> None:
    assert (below("/a/b", "/a"), below("/a", "/a"), below("/ab", "/a"), below("nocase:/a/b", "nocase:/a")) == (
        "/b", "", None, "/b",
    )  # fmt: skip
