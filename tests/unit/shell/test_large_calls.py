"""Very large calls: effects found before a limit stay certain, the rest is a guess, and no shape takes too long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench import large_shapes
from support.files import files_at
from support.fixtures import Ground
from support.judged import Scene
from support.world import git

from swarm_hook_core import check, clock, collisions, opaque_calls
from swarm_hook_core.clock import Budget
from swarm_hook_core.collisions import denied_by_lock
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.paths import real_paths
from swarm_hook_core.shell import effects_of, lexer, model, running
from swarm_hook_core.shell.model import Effects, GitCall, Guess, Tree, Write
from swarm_hook_core.shell.parser import script_of
from swarm_hook_core.shell.programs.git import named_files, touched_files
from swarm_hook_core.shell.walk import Walk
from swarm_hook_core.watching import records

pytestmark = pytest.mark.slow

SECONDS_A_CALL = 1e-7  # of a function, by the clock of the test below
SECONDS = clock.SECONDS + clock.SECONDS_TO_LOAD + 0.01
SIZE = 64_000


def written(effects: Effects) -> list[str]:
    return [one.path for one in effects.writes]


def test_what_was_read_of_a_long_script_counts_and_the_rest_is_a_guess(tmp_path: Path, limits):
    limits(lexer, MOST_STEPS=1000, STEPS_A_LOOK=50)
    found = effects_of("touch first\n" + "echo hello\n" * 5000 + "touch last\n", str(tmp_path))
    assert written(found) == ["first"]
    assert [one.why for one in found.guesses] == ["too long to be followed"]


def test_of_a_command_that_was_not_read_to_its_end_nothing_counts(tmp_path: Path, limits):
    """Otherwise the last word read would be taken for the target of `cp`."""
    limits(lexer, MOST_STEPS=1000, STEPS_A_LOOK=50)
    found = effects_of("touch first; cp " + "name " * 5000 + "folder", str(tmp_path))
    assert written(found) == ["first"] and len(found.guesses) == 1


def test_a_script_is_cut_when_its_time_is_over():
    script = script_of("touch first\n" + "echo hello\n" * 5000, end=time.thread_time())
    assert script.cut and len(script.statements) < 500
    assert not script_of("touch first\n").cut


def test_a_script_within_a_script_that_is_cut_is_a_guess_and_keeps_what_was_before(tmp_path: Path, limits):
    limits(lexer, MOST_STEPS=2000)
    found = effects_of("touch first; bash -c 'touch inner\n" + "echo x\n" * 5000 + "'", str(tmp_path))
    assert written(found)[:1] == ["first"] and found.guesses


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.thorough
def test_no_shape_of_a_large_command_takes_more_than_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits):
    """The clock counts calls of functions, which are the same on any machine."""
    over, calls = {}, [0]

    def count(_frame, event, _function):
        calls[0] += event in ("call", "c_call")

    monkeypatch.setattr(time, "thread_time", lambda: calls[0] * SECONDS_A_CALL)
    monkeypatch.setattr(large_shapes, "SIZES", (SIZE,))
    limits(large_shapes, RANDOM_TEXTS=1)
    for name, text in large_shapes.commands():
        calls[0] = 0
        sys.setprofile(count)
        try:
            effects_of(text, str(tmp_path))
        finally:
            sys.setprofile(None)
        if calls[0] * SECONDS_A_CALL > SECONDS:
            over[name] = round(calls[0] * SECONDS_A_CALL, 3)
    assert over == {}


def test_a_part_of_a_check_has_what_is_left_and_a_little_in_any_case(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: now[0])
    check = Budget()
    assert check.part() == clock.SECONDS and check.part(0.001) == clock.LEAST_SECONDS
    now[0] = clock.SECONDS - 0.001
    assert check.part() == check.part(1.0) == now[0] + clock.LEAST_SECONDS
    assert check.forgive(0.002) == 0.002 and check.end == clock.SECONDS + 0.002
    assert check.forgive(1.0) == clock.SECONDS_TO_LOAD - 0.002 and check.forgive(1.0) == 0


def test_of_a_command_with_very_many_words_nothing_is_looked_at(tmp_path: Path, limits):
    limits(running, MOST_WORDS=3)
    found = effects_of("touch a b; touch a b c d; cat a b c d; touch e", str(tmp_path))
    assert written(found) == ["a", "b", "e"]
    assert [one.why for one in found.guesses] == ["more words than are looked at"]


def test_that_there_were_more_effects_is_said_once(limits):
    limits(model, MOST=2)
    found = Effects()
    for number in range(9):
        found.add(Write("/", f"{number}", "x"))
    assert written(found) == ["0", "1"] and [one.why for one in found.guesses] == [model.MORE]


def test_loading_is_forgiven_so_much_and_no_more():
    one = Walk(Effects(), "/", {})
    end = one.end
    for _ in range(10):
        one.forgive(0.02)
    assert one.end == pytest.approx(end + clock.SECONDS_TO_LOAD)


def test_what_is_nothing_but_importing_is_forgiven_and_shows_how_long_more_of_it_takes():
    one = Walk(Effects(), "/", {})
    end, of_all = one.end, one.budget.end
    one.forgive_import(0.3)
    assert (one.end, one.budget.end) == (pytest.approx(end + 0.3), pytest.approx(of_all + 0.3))
    one.forgive(5.0)
    assert one.end == pytest.approx(end + 0.3 + 0.3 + clock.SECONDS_TO_LOAD)


@pytest.fixture
def repo(ground: Ground) -> Path:
    """A repository with some files that were changed after their commit."""
    folder = Path(ground.scope)
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    files_at(folder, dict.fromkeys(("src/a.py", "src/b.py", "src/c.py", "docs/d.md"), "x\n"))
    for words in (["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    files_at(folder, dict.fromkeys(("src/a.py", "src/b.py", "src/c.py"), "y\n"))
    return folder


FILES = ("src/a.py", "src/b.py", "src/c.py")


def test_a_write_that_there_was_time_for_denies_and_those_behind_it_are_possible(ground: Ground, repo: Path, limits):
    limits(collisions, FIRST_TARGETS=2)
    scene = Scene(ground, repo, *FILES)
    free, locked = Write(str(repo), "free", "x"), Write(str(repo), "src/b.py", "x")
    assert scene.judged(free, free, free, locked).denial.path == str(repo / "src/b.py")
    limits(clock, LEAST_SECONDS=-1, SECONDS=-1)
    assert scene.judged(free, locked, free).denial.path == str(repo / "src/b.py")
    late = scene.judged(free, free, locked)
    assert late.denial is None and "more than there is time to look at" in late.notice and len(late.watched) == 3


def test_a_tree_is_asked_about_all_locks_not_only_the_first(ground: Ground, repo: Path, limits):
    limits(collisions, FIRST_LOCKS=1)
    scene = Scene(ground, repo, *FILES)
    last = Tree(str(repo / "src"), "x", lambda path: path.endswith("c.py"))
    assert scene.judged(last).denial.path == str(repo / "src/c.py")
    assert scene.judged(Tree(str(repo / "src"), "x", lambda path: False)).denial is None


def test_a_tree_that_there_is_no_time_for_is_possible(ground: Ground, repo: Path, limits):
    limits(clock, LEAST_SECONDS=-1, SECONDS=-1)
    assert Scene(ground, repo, *FILES).judged(Tree(str(repo / "src"), "x")).denial, "the first are looked at"
    limits(collisions, FIRST_LOCKS=1)
    late = Scene(ground, repo, *FILES).judged(Tree(str(repo / "src"), "x"))
    assert late.denial is None and len(late.watched) == 3


@pytest.mark.parametrize("words", (["checkout", "src/c.py"], ["checkout", "."], ["add", "src/c.py"], ["stash"]))
def test_git_is_asked_about_all_locks_not_only_the_first(ground: Ground, repo: Path, limits, words: list[str]):
    limits(collisions, FIRST_LOCKS=1)
    denial = Scene(ground, repo, *FILES).judged(GitCall(str(repo), words, "git")).denial
    assert denial.path in {str(repo / file) for file in FILES}
    assert "c.py" in denial.path or words[-1] != "src/c.py"


@pytest.mark.parametrize(
    ("words", "named"),
    (
        (["checkout", "--", "src/c.py"], ["src/c.py"]),
        (["checkout", "HEAD", "--", "src", "docs/d.md"], ["src", "docs/d.md"]),
        (["add", "-f", "./src/../src/c.py", "/outside"], ["src/c.py"]),
        (["restore", "-s", "HEAD", "src"], ["src"]),
        (["rm", "--", "src/a.py"], ["src/a.py"]),
        (["add", "."], [""]),
        (["branch", "new"], []),
        (["add", "src/*.py"], None),
        (["add", ":(exclude)docs"], None),
        (["add", "src/c.py", "\0"], None),
        (["add", "-A"], None),
        (["add", "--pathspec-from-file=x", "y"], None),
        (["checkout", "src/c.py"], None),  # it may be a branch
        (["checkout", "-p", "--", "src/c.py"], None),
        (["commit", "src/c.py"], None),
        (["stash"], None),
        (["an-alias", "src/c.py"], None),
        (["add", *map(str, range(named_files.MOST_NAMED + 1))], None),
        ([], None),
    ),
)
def test_the_places_that_a_git_call_is_confined_to(ground: Ground, repo: Path, words: list[str], named):
    top = str(repo)
    expected = [] if named is None else [f"{top}/{name}".rstrip("/") for name in (*named, ".git")]
    assert named_files.places(GitCall(top, words, "git"), top) == expected


@pytest.mark.parametrize("locked", ("src/c.py", "src", "src/*.py", ".git"))
def test_of_many_locks_a_git_call_that_names_its_file_is_asked_about_those_on_over_and_below_it(
    ground: Ground, repo: Path, limits, locked: str
):
    limits(collisions, FIRST_LOCKS=1)
    scene = Scene(ground, repo, "a/first", locked)
    for words in (["checkout", "--", "src/c.py"], ["add", "src"], ["rm", "src/c.py"]):
        assert scene.judged(GitCall(str(repo), words, "git")).denial is not None, words
    for words in (["branch", "x"], ["checkout", "--", "docs/d.md"]):
        denial = scene.judged(GitCall(str(repo), words, "git")).denial
        assert (denial is not None) == (locked == ".git"), words


@pytest.mark.parametrize("locked", ("src/c.py", "src", "src/*.py", ".git"))
@pytest.mark.parametrize("most", (touched_files.MOST_PATHS, 0))
@pytest.mark.sampled
def test_of_many_locks_a_git_call_is_asked_about_those_on_files_that_git_lists(
    ground: Ground, repo: Path, limits, locked: str, most: int
):
    limits(collisions, FIRST_LOCKS=1)
    limits(touched_files, MOST_PATHS=most)
    git(repo, "commit", "-qam", "all that is changed")
    (repo / "docs/d.md").write_text("nobody's\n")
    scene = Scene(ground, repo, "a/first", locked)
    calls = [GitCall(str(repo), words, "git") for words in (["add", "-A"], ["add", "."], ["commit", "-qam", "x"])]
    for call in calls:
        assert (scene.judged(call).denial is not None) == (locked == ".git"), call.words
    (repo / "src/c.py").write_text("half done\n")
    for call in calls:
        assert scene.judged(call).denial is not None, call.words
    git(repo, "add", "src/c.py")
    staged = GitCall(str(repo), ["commit", "-qm", "x"], "git")
    assert scene.judged(staged).denial is not None
    git(repo, "commit", "-qm", "x")
    for call in (*calls, staged):
        assert (scene.judged(call).denial is not None) == (locked == ".git"), call.words


def test_of_very_many_git_calls_the_first_are_looked_at(ground: Ground, repo: Path, limits):
    limits(clock, LEAST_SECONDS=-1, SECONDS=-1)
    scene = Scene(ground, repo, "src/c.py")
    other, call = (GitCall(str(repo), ["checkout", file], "git") for file in ("docs/d.md", "src/c.py"))
    assert scene.judged(*[other] * (collisions.FEW_GIT_CALLS - 1), call).denial is not None
    late = scene.judged(*[other] * collisions.FEW_GIT_CALLS, call)
    assert late.denial is None and len(late.watched) == 1


def test_guesses_in_very_many_places_are_told_of_all_the_same(ground: Ground, repo: Path, limits):
    limits(collisions, MOST_PLACES=2)
    guesses = [Guess("x", f"/nowhere/{number}") for number in range(5)] + [Guess("y", str(repo))]
    assert "src/a.py" in Scene(ground, repo, "src/a.py").judged(*guesses).notice


def test_many_targets_are_asked_about_in_parts_and_the_first_that_is_held_is_named(ground: Ground, repo: Path, limits):
    limits(collisions, FIRST_TARGETS=1)
    scene = Scene(ground, repo, "src/b.py", "src/c.py", "docs")
    for names, place, path in (
        (["a", "b", "src/c.py", "src/b.py"], 2, "src/c.py"),
        (["a", "docs/x", "src/b.py"], 1, "docs/x"),
        (["src/b.py"], 0, "src/b.py"),
    ):
        targets = [(str(repo), name) for name in names]
        found = collisions.first_collision(scene.session, targets, scene.peers)
        assert (found[0], found[2]) == (str(repo / path), place)
    assert collisions.first_collision(scene.session, [(str(repo), "x")] * 20, scene.peers) is None


@pytest.mark.parametrize("locked", ("src/b.py", "src/new/x", "src", "src/*.py", "docs/d.md", ""))
@pytest.mark.sampled
def test_of_many_targets_in_a_folder_those_are_asked_about_that_may_be_locked(
    ground: Ground, repo: Path, limits, locked: str
):
    """One question tells that the others are free; its answer is the same as asking about each."""
    limits(collisions, FIRST_TARGETS=1)
    limits(collisions, FEW=2)
    (repo / "src/link.py").symlink_to("../docs/d.md")
    scene = Scene(ground, repo, *filter(None, [locked]))
    for folder, start in ((str(repo), "src/"), (str(repo / "src"), ""), ("/", str(repo / "docs/../src") + "/")):
        names = ["free", "a.py", "B.PY", "c.py", "link.py", " b.py", "b.py", "new", "other", "d.md"]
        targets = [(folder, start + name) for name in names]
        asked = collisions.to_ask(targets, range(1, len(targets)), scene.peers)
        found = collisions.first_collision(scene.session, targets, scene.peers)
        each = [collisions.first_collision(scene.session, [one], scene.peers) for one in targets]
        first = next((place for place, one in enumerate(each) if one), None)
        assert (found and found[2]) == first, (start, found)
        if locked in ("src/b.py", ""):
            assert not {"c.py", "new", "other", "d.md"} & {names[place] for place in asked}, start


@pytest.mark.parametrize("locked", ("a", "a/b/c/d/e/f/g", "a/b/c/d/e/f/g/h/i", "src/a.py"))
def test_a_lock_on_a_folder_far_over_a_path_is_found(ground: Ground, repo: Path, limits, locked: str):
    limits(collisions, DEEP=len(repo.parts) + 1)
    scene = Scene(ground, repo, locked)
    found = collisions.first_collision(scene.session, [(str(repo), "a/b/c/d/e/f/g/h/i/file")], scene.peers)
    assert (found is not None) == (locked != "src/a.py")


def test_a_patch_in_a_shell_that_codex_would_read_itself_is_looked_at_to_its_bound(ground: Ground, repo: Path, limits):
    limits(model, MOST=3)
    limits(check, MOST_PATCHED=3)
    scene = Scene(ground, repo, "src/a.py")
    config = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, lambda _input: [])

    def verdict(*names: str):
        body = "".join(f"*** Update File: {name}\n@@\n-x\n+y\n" for name in names)
        command = f"cd src && apply_patch <<'EOF'\n*** Begin Patch\n{body}*** End Patch\nEOF\n"
        call = ToolCall("Bash", {"command": command}, "me", str(repo))
        denial = denied_by_lock(check.Writes(config, call), scene.session, scene.peers, time.time())
        effects = opaque_calls.effects_of(call)
        found = collisions.judge_call(config, scene.session, call, effects, scene.peers, time.time())
        return check.Verdict(denial, found.notice, found.watched)

    assert verdict("b.py", "a.py").denial.reason.startswith("swarm lock blocked Bash for src/a.py: held by")
    assert verdict("b.py", "c.py").denial is verdict("b.py").denial is None
    assert verdict("w", "x", "a.py", "z").denial is not None
    late = verdict("w", "x", "y", "a.py")
    assert late.denial is None and len(late.watched) == 1 and model.MORE in late.notice


def test_a_lock_without_a_key_is_found_among_many_names(ground: Ground, repo: Path):
    """Stored as another implementation does, by a path with a link in it."""
    scene = Scene(ground, repo)
    (repo / "link").symlink_to(repo / "src")
    peer = ground.session("peer")
    for number, file in enumerate(("link/a.py", "other")):
        ground.add(
            "context",
            id=str(number),
            scope=ground.scope,
            instance_id=peer["id"],
            file=str(repo / file),
            type="lock",
            content="",
        )
    keys = [str(repo / "src" / name) for name in ("v.py", "w.py", "x.py", "y.py", "a.py")]
    assert [held.names[-1] for held in scene.peers.on(keys)] == [keys[-1]]


def test_paths_are_resolved_as_the_system_does(tmp_path: Path):
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real/file").symlink_to("deep/target")
    (tmp_path / "circle").symlink_to("circle")
    real = real_paths()
    for name in (
        "real/x", "folder/x", "folder/deep/x", "folder/file", "real/file", "folder", "folder/..", "folder/../x", "circle",
        "circle/x", "none/x/y", "folder/./deep", "real/", ".", "", "folder//deep",
    ):  # fmt: skip
        path = f"{tmp_path}/{name}"
        assert real(path) == os.path.realpath(path) == real(path), name
    for path in ("/", "/x", "//x", "x", ""):
        assert real(path) == os.path.realpath(path)


def test_a_call_with_very_many_files_marks_that_it_may_write_anything(monkeypatch, limits, tmp_path: Path):
    limits(records, MOST_MARKS=2)
    said: list[str] = []
    monkeypatch.setattr(records, "_append", lambda name, lines: said.extend(lines))
    records.mark_own("me", ["/a", "/b"], "call", 1)
    assert len(said) == 2 and not any("*" in line for line in said)
    records.mark_own("me", ["/a", "/b", "/c"], "call", 2)
    assert said[2:] == ["2 * call\n"]
