"""Locks on patterns: patterns have git's meaning, and a check finds the covered files in little time."""

import itertools
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files import files_at, text_at
from support.fixtures import Ground, time_limit, wait_for
from support.judged import Scene
from support.sessions import after, captured, join, mistakes, new_session, run, start
from support.world import commit_all, git

from swarm_hook_core import wildcards
from swarm_hook_core.lookup import GLOB, Held, Peers
from swarm_hook_core.lookup.sqlite import StoreReader, covered
from swarm_hook_core.mcp_writers import effects_of_tool
from swarm_hook_core.paths import NO_CASE, keys_for
from swarm_hook_core.shell.model import Effects, Guess
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import watch
from swarm_hook_core.wildcards import (
    LONGEST,
    Cover,
    PatternUnreadable,
    covers,
    literal_prefix,
    of_path,
    overlap,
    parsed,
)
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
        text_at(folder / name, "x\n")
    commit_all(folder, "first")
    return folder


def beside(ground: Ground, repo: Path, *patterns: str, **given: Any) -> Scene:
    """A session, and a peer that holds `patterns` of the repository."""
    return Scene(ground, repo, *patterns, as_pattern=True, **given)


def test_a_pattern_that_fits_a_folder_does_not_hold_what_is_in_it(ground: Ground, repo: Path, store: Store) -> None:
    peers = beside(ground, repo, "s*").peers
    assert peers.on([str(repo / "src")]) and peers.on([str(repo / "sql")])
    assert not peers.over([str(repo / "src/a.py")])
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
@pytest.mark.sampled
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
@pytest.mark.sampled
def test_a_command_is_denied_where_it_writes_what_is_covered(
    ground: Ground, repo: Path, command: str, met: str
) -> None:
    text_at(repo / "fresh/n.sql", "x")
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
    limits(wildcards, ENTRIES=1)
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
@pytest.mark.sampled
def test_git_is_asked_what_it_would_do_to_what_is_covered(ground: Ground, repo: Path, command: str, met: str) -> None:
    git(repo, "checkout", "-qb", "other")
    (repo / "src/new.sql").write_text("new\n")
    commit_all(repo, "second")
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


def test_what_fits_a_locked_pattern_is_compared_after_an_opaque_call(ground: Ground, repo: Path, store: Store) -> None:
    """Changed, removed and new files of the pattern are told; the content before is kept."""
    me = new_session()
    assert start("claude-code", me, repo).context
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
    for number in range(watch.FILES_IN_FOLDER + 20):
        (repo / f"src/file{number:03}.sql").write_text("")
    held = beside(ground, repo, "src/*.sql").peers.patterns([str(repo)])
    ((_held, place, key, files, complete),) = watch.files_of(held, 1000)
    assert (place, key, complete) == (str(repo / "src"), str(repo / "src"), False)
    assert len(files) == watch.FILES_IN_FOLDER


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


def test_a_store_without_the_columns_is_read_as_ever(ground: Ground, repo: Path, store: Store) -> None:
    """Version 3 has keys and no more than paths; another release's reader must find all that stands there."""
    scene = beside(ground, repo)
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


# Names of a small tree, for all features of wildcards and classes: dots, dashes, brackets, digits, several levels.
NAMES = ["a", "b", "ab", "abc", "a.b", ".a", "a-b", "[a]", "]", "7", "A", "a*b", "-", "!x", "^", "z.sql"]
FILES = [
    *NAMES, *(f"{folder}/{name}" for folder in ("a", "ab", "src") for name in NAMES if name != folder),
    "src/deep/a", "src/deep/z.sql", "src/deep/more/z.sql", "src/deep/more/ab", "x/src/deep/a", "x/src/a",
]  # fmt: skip
FILES = [file for file in FILES if not any(other.startswith(file + "/") for other in FILES)]

PARTS = ["a", "b", "?", "*", "**", "***", "a*", "*b", "?b", "*.sql", "[ab]", "[!a]", "[^a]b", "[a-c]*", "[]a]", "[]-]",
         "[!]a]", "[a-]", "[--0]", "[[:alpha:]]", "[[:digit:]-]", "[[:upper:][:punct:]]", "[z-a]", "[\\]]", "\\*",
         "a\\*b", "\\[a\\]", "a**", "**b", "src", "deep", ".*", "*.*", "[a-b-c]", "*[.]*", "?*?", "[[:space:]a]",
         "[[a]"]  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wild")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=environment)
    files_at(folder, dict.fromkeys(FILES, "x"))
    subprocess.run(["git", "-C", str(folder), "add", "-A", "-f"], check=True, env=environment)
    return folder


def listed(repository: Path, pattern: str) -> set[str]:
    """Return git's list for it, with ``**`` as in .gitignore, counted from the top."""
    done = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z", "--", f":(top,glob){pattern}"], capture_output=True, check=True
    )
    return {name for name in done.stdout.decode().split("\0") if name}


def ignored(repository: Path, pattern: str) -> set[str]:
    """Return the files that git ignores by a .gitignore with that one line, independent of the index."""
    (repository / ".git/info/exclude").write_text(pattern + "\n")
    done = subprocess.run(
        ["git", "-C", str(repository), "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(FILES), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return {name for name in done.stdout.split("\0") if name}


def ours(pattern: str) -> set[str]:
    segments = parsed(pattern)
    return {file for file in FILES if covers(segments, file)}


def with_inside(pattern: str) -> set[str]:
    """Return the same with everything in covered folders, as .gitignore has it."""
    segments = parsed(pattern)
    found = set()
    for file in FILES:
        parts = file.split("/")
        if any(covers(segments, "/".join(parts[: end + 1])) for end in range(len(parts))):
            found.add(file)
    return found


ANCHORED = ["/".join(parts) for parts in itertools.product(["a", "src", "*", "**", "?*"], PARTS)]
DEEPER = ["src/**/*.sql", "**/deep/**", "src/**", "**/src/**/a", "src/*/*/z.sql", "src/**/**/z.sql", "x/**/deep/?",
          "**/more/*", "*/deep/*", "**/*", "a/**/b", "src/***/a", "x/**/**/a"]  # fmt: skip


def test_a_pattern_with_a_slash_is_git_s_glob_pathspec(repository: Path) -> None:
    # A process each, so a sample. A pathspec that is a folder's own name covers its content, as a lock on it does.
    for pattern in [*DEEPER, *(one for one in ANCHORED[::4] if wildcards.is_pattern(one))]:
        assert ours(pattern) == listed(repository, pattern), pattern


@pytest.mark.parametrize("end", ["", "/"])
def test_a_pattern_without_a_slash_counts_at_every_depth_as_in_gitignore(repository: Path, end: str) -> None:
    for pattern in [part for part in PARTS if not part.startswith("!")]:
        expected = ignored(repository, pattern + end)
        if end:  # the content of such folders; these are no files
            assert ours(pattern + end) == expected, pattern
        else:
            assert with_inside(pattern) == expected, pattern


def test_one_that_starts_or_has_a_slash_counts_from_its_base(repository: Path) -> None:
    for pattern in ("/a.b", "/*.sql", "src/z.sql", "/src/*", "deep/a", "/src/", "src/deep/", "src/**/", "./src/a",
                    "src//a"):  # fmt: skip
        assert with_inside(pattern) >= ours(pattern)
        if "//" not in pattern and not pattern.startswith("."):
            assert with_inside(pattern) == ignored(repository, pattern), pattern
    assert ours("./src/a") == ours("src//a") == ours("/src/./a") == {"src/a"} & set(FILES) | ours("src/a")


@pytest.mark.parametrize("pattern", ["", "/", "//", "./", "!a", "a/../b", "..", "[a", "a[", "a\\", "[[:what:]]", "a\0b",
                                     "x" * (LONGEST + 1), "[", "[]", "[!]", "[a/b]"])  # fmt: skip
def test_what_is_no_pattern_says_so(pattern: str) -> None:
    with pytest.raises(PatternUnreadable):
        parsed(pattern)


def test_letter_case_and_forms_of_letters_count_only_where_they_do_on_the_disk() -> None:
    assert covers(parsed("SRC/*.Sql", True), "src/a.sql") and not covers(parsed("SRC/*.Sql"), "src/a.sql")
    assert covers(parsed("[[:upper:]]*", True), "abc") and not covers(parsed("[[:upper:]]*"), "abc")
    assert covers(parsed("caf\u0065\u0301*", True), "caf\u00e9.md")


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("src/**/*.sql", "src"), ("*.sql", ""), ("src/deep/a*", "src/deep"), ("/src/x", "src"), ("s[r]c/x/y", ""),
     ("src/", ""), ("a/b/", "a/b"), ("./a//b/*", "a/b"), ("**/a", ""), ("a\\*/b", ""), ("a/b\\?/c", "a")],
)  # fmt: skip
def test_the_folder_that_all_is_in(pattern: str, folder: str) -> None:
    assert literal_prefix(pattern) == folder
    for file in ("src/a.sql", "src/deep/ab", "a/b/c", "src/x", "x/a"):
        if folder and covers(parsed(pattern), file):
            assert file.startswith(folder + "/")


_LETTERS = st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]"])
_SEGMENT = st.one_of(st.just("**"), st.lists(_LETTERS, min_size=1, max_size=4).map("".join))
_PATTERN = st.builds(
    lambda parts, front, back: front + "/".join(parts) + back,
    st.lists(_SEGMENT, min_size=1, max_size=4), st.sampled_from(["", "/"]), st.sampled_from(["", "/"]),
)  # fmt: skip
_PATH = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=5).map("/".join)


@settings(max_examples=150, deadline=None)
@given(left=_PATTERN, right=_PATTERN, path=_PATH)
def test_two_patterns_overlap_where_one_path_is_covered_by_both(left: str, right: str, path: str) -> None:
    one, other = parsed(left), parsed(right)
    both = covers(one, path) and covers(other, path)
    meets = overlap(one, other)
    assert meets == overlap(other, one), "it does not matter which was first"
    assert meets or not both


TWO_LETTERS = ["a", "b", "aa", "ab", "ba", "bb"]
SMALL = ["/".join(parts) for depth in (1, 2, 3) for parts in itertools.product(TWO_LETTERS, repeat=depth)]


@settings(max_examples=150, deadline=None)
@given(left=st.lists(st.sampled_from(["a", "*", "?", "**", "b*", "ab"]), min_size=1, max_size=2).map("/".join),
       right=st.lists(st.sampled_from(["b", "*", "a?", "**", "*a"]), min_size=1, max_size=2).map("/".join))  # fmt: skip
def test_two_patterns_that_overlap_have_a_path_in_common(left: str, right: str) -> None:
    """Of patterns so small every possible meeting shows in paths of two letters and three names."""
    one, other = parsed(left), parsed(right)
    assert overlap(one, other) == any(covers(one, path) and covers(other, path) for path in SMALL), (left, right)


@settings(max_examples=120, deadline=None)
@given(pattern=_PATTERN, path=_PATH)
def test_a_path_is_a_pattern_that_covers_only_itself(pattern: str, path: str) -> None:
    segments = parsed(pattern)
    assert overlap(segments, of_path(path)) == overlap(of_path(path), segments) == covers(segments, path)
    if any(covers(segments, f"{path}/{rest}") for rest in ("a", "b", "a/b", "ab/a/c")) or covers(segments, path):
        assert overlap(segments, of_path(path, deep=True))


@settings(max_examples=80, deadline=None)
@given(pattern=_PATTERN, path=_PATH)
def test_going_down_name_by_name_comes_to_the_same(pattern: str, path: str) -> None:
    segments = parsed(pattern)
    places = wildcards.beginning(segments)
    for name in path.split("/"):
        places = wildcards.step(segments, places, name)
    assert (len(segments) in places) == covers(segments, path)


HOSTILE = [
    "*a" * (LONGEST // 2), "**/" * (LONGEST // 3) + "a", "*/" * (LONGEST // 2), "[a-z]*" * (LONGEST // 6),
    "?*" * (LONGEST // 2), "a*" * (LONGEST // 2 - 1) + "b", "**/a*" * (LONGEST // 5) + "/b", "[!" + "a-z" * 160 + "]",
    "*" * LONGEST, "a/" * (LONGEST // 2 - 1) + "*", "*" + "a" * 120 + "?" + "a" * 120 + "b*", "*" + "a?" * 120 + "b*",
    "*?" + "?a" * 120 + "c*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Processor time, since a busy machine is not the pattern's fault; the bounds are those of a slow one."""
    paths = ["a" * 255, "/".join(["a" * 254] * 16), "/".join("a" * 2000), "a" * 4096]
    begun = time.process_time()
    segments = parsed(pattern)
    for path in paths:
        covers(segments, path)
    assert time.process_time() - begun < 1.0
    for other in (*HOSTILE[:3], *HOSTILE[-2:]):
        begun = time.process_time()
        overlap(segments, parsed(other))
        assert time.process_time() - begun < 2.0, other
