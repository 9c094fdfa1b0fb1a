"""Very large calls: what was certain before a limit stays so, the rest is a guess, and no shape takes more than its share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench import large_shapes
from support.fixtures import Ground

from swarm_hook_core import decision
from swarm_hook_core.lookup import Peers, Session, sqlite
from swarm_hook_core.paths import real_paths
from swarm_hook_core.shell import collision, effects_of, walk, word_reader
from swarm_hook_core.shell.model import Effects, GitCall, Guess, Tree, Write
from swarm_hook_core.shell.parser import script_of
from swarm_hook_core.shell.programs.git import named_places
from swarm_hook_core.shell.walk import Walk
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import records

SECONDS_A_CALL = 1e-7  # of a function, by the clock of the test below
SECONDS = walk.SECONDS + walk.SECONDS_TO_LOAD + 0.01
SIZE = 64_000


# -- reading ----------------------------------------------------------------------------------------


def written(effects: Effects) -> list[str]:
    return [one.path for one in effects.writes]


def test_what_was_read_of_a_long_script_counts_and_the_rest_is_a_guess(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(word_reader, "MOST_STEPS", 1000)
    monkeypatch.setattr(word_reader, "STEPS_A_LOOK", 50)
    found = effects_of("touch first\n" + "echo hello\n" * 5000 + "touch last\n", str(tmp_path))
    assert written(found) == ["first"]
    assert [one.why for one in found.guesses] == ["too long to be followed"]


def test_of_a_command_that_was_not_read_to_its_end_nothing_counts(tmp_path: Path, monkeypatch):
    """Else the last word that was read would be taken for what `cp` writes."""
    monkeypatch.setattr(word_reader, "MOST_STEPS", 1000)
    monkeypatch.setattr(word_reader, "STEPS_A_LOOK", 50)
    found = effects_of("touch first; cp " + "name " * 5000 + "folder", str(tmp_path))
    assert written(found) == ["first"] and len(found.guesses) == 1


def test_a_script_is_cut_when_its_time_is_over():
    script = script_of("touch first\n" + "echo hello\n" * 5000, end=time.thread_time())
    assert script.cut and len(script.statements) < 500
    assert not script_of("touch first\n").cut


def test_a_script_within_a_script_that_is_cut_is_a_guess_and_keeps_what_was_before(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(word_reader, "MOST_STEPS", 2000)
    found = effects_of("touch first; bash -c 'touch inner\n" + "echo x\n" * 5000 + "'", str(tmp_path))
    assert written(found)[:1] == ["first"] and found.guesses


@pytest.mark.slow
def test_no_shape_of_a_large_command_takes_more_than_its_share(tmp_path: Path, monkeypatch):
    """By a clock that goes with the calls of functions, which are the same on any machine."""
    over, calls = {}, [0]

    def count(_frame, event, _function):
        calls[0] += event in ("call", "c_call")

    monkeypatch.setattr(time, "thread_time", lambda: calls[0] * SECONDS_A_CALL)
    monkeypatch.setattr(large_shapes, "SIZES", (SIZE,))
    monkeypatch.setattr(large_shapes, "RANDOM_TEXTS", 1)
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


def test_loading_is_forgiven_so_much_and_no_more():
    one = Walk(Effects(), "/", {})
    end = one.end
    for _ in range(10):
        one.forgive(0.02)
    assert one.end == pytest.approx(end + walk.SECONDS_TO_LOAD)


# -- meeting locks ----------------------------------------------------------------------------------


@pytest.fixture
def repo(ground: Ground) -> Path:
    """A repository with some files that were changed after their commit."""
    folder = Path(ground.scope)
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    for name in ("src/a.py", "src/b.py", "src/c.py", "docs/d.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x\n")
    for words in (["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    for name in ("src/a.py", "src/b.py", "src/c.py"):
        (folder / name).write_text("y\n")
    return folder


class Scene:
    """A session that wants to do something, and a peer that holds `locked`."""

    def __init__(self, ground: Ground, repo: Path, *locked: str):
        self.repo = str(repo)
        me, peer = ground.session("me"), ground.session("peer")
        for file in locked:
            ground.lock(peer, str(repo / file))
        self.session = Session(me["id"], me["label"], self.repo, self.repo)
        self.peers = Peers(sqlite.StoreReader(store_path()), me["id"], time.time())

    def judged(self, *items):
        found = Effects()
        for item in items:
            found.add(item)
        return collision.judge(self.session, "Bash", found, self.repo, self.peers, time.time())


FILES = ("src/a.py", "src/b.py", "src/c.py")


def test_a_write_that_there_was_time_for_denies_and_those_behind_it_are_possible(
    ground: Ground, repo: Path, monkeypatch
):
    monkeypatch.setattr(collision, "WRITES_AT_ONCE", 2)
    scene = Scene(ground, repo, *FILES)
    free, locked = Write(str(repo), "free", "x"), Write(str(repo), "src/b.py", "x")
    assert scene.judged(free, free, free, locked).denial.path == str(repo / "src/b.py")
    monkeypatch.setattr(collision, "SECONDS", -1)
    assert scene.judged(free, locked, free).denial.path == str(repo / "src/b.py")
    late = scene.judged(free, free, locked)
    assert late.denial is None and "more than there is time to look at" in late.notice and len(late.watched) == 3


def test_a_tree_is_asked_about_all_locks_not_only_the_first(ground: Ground, repo: Path, monkeypatch):
    monkeypatch.setattr(collision, "FIRST_LOCKS", 1)
    scene = Scene(ground, repo, *FILES)
    last = Tree(str(repo / "src"), "x", lambda path: path.endswith("c.py"))
    assert scene.judged(last).denial.path == str(repo / "src/c.py")
    assert scene.judged(Tree(str(repo / "src"), "x", lambda path: False)).denial is None


def test_a_tree_that_there_is_no_time_for_is_possible(ground: Ground, repo: Path, monkeypatch):
    monkeypatch.setattr(collision, "SECONDS", -1)
    late = Scene(ground, repo, *FILES).judged(Tree(str(repo / "src"), "x"))
    assert late.denial is None and len(late.watched) == 3


@pytest.mark.parametrize("words", (["checkout", "src/c.py"], ["checkout", "."], ["add", "src/c.py"], ["stash"]))
def test_git_is_asked_about_all_locks_not_only_the_first(ground: Ground, repo: Path, monkeypatch, words: list[str]):
    monkeypatch.setattr(collision, "FIRST_LOCKS", 1)
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
        (["add", *map(str, range(named_places.MOST_NAMED + 1))], None),
        ([], None),
    ),
)
def test_the_places_that_a_git_call_is_confined_to(ground: Ground, repo: Path, words: list[str], named):
    top = str(repo)
    expected = [] if named is None else [f"{top}/{name}".rstrip("/") for name in (*named, ".git")]
    assert named_places.places(GitCall(top, words, "git"), top) == expected


@pytest.mark.parametrize("locked", ("src/c.py", "src", "src/*.py", ".git"))
def test_of_many_locks_a_git_call_that_names_its_file_is_asked_about_those_on_over_and_below_it(
    ground: Ground, repo: Path, monkeypatch, locked: str
):
    monkeypatch.setattr(collision, "FIRST_LOCKS", 1)
    scene = Scene(ground, repo, "a/first", locked)
    for words in (["checkout", "--", "src/c.py"], ["add", "src"], ["rm", "src/c.py"]):
        assert scene.judged(GitCall(str(repo), words, "git")).denial is not None, words
    for words in (["branch", "x"], ["checkout", "--", "docs/d.md"]):
        denial = scene.judged(GitCall(str(repo), words, "git")).denial
        assert (denial is not None) == (locked == ".git"), words


def test_of_very_many_git_calls_the_first_are_looked_at(ground: Ground, repo: Path, monkeypatch):
    monkeypatch.setattr(collision, "SECONDS", -1)
    scene = Scene(ground, repo, "src/c.py")
    other, call = (GitCall(str(repo), ["checkout", file], "git") for file in ("docs/d.md", "src/c.py"))
    assert scene.judged(*[other] * (collision.FEW_GIT_CALLS - 1), call).denial is not None
    late = scene.judged(*[other] * collision.FEW_GIT_CALLS, call)
    assert late.denial is None and len(late.watched) == 1


def test_guesses_in_very_many_places_are_told_of_all_the_same(ground: Ground, repo: Path, monkeypatch):
    monkeypatch.setattr(collision, "MOST_PLACES", 2)
    guesses = [Guess("x", f"/nowhere/{number}") for number in range(5)] + [Guess("y", str(repo))]
    assert "src/a.py" in Scene(ground, repo, "src/a.py").judged(*guesses).notice


def test_many_targets_are_asked_about_in_parts_and_the_first_that_is_held_is_named(ground: Ground, repo, monkeypatch):
    monkeypatch.setattr(decision, "FIRST_TARGETS", 1)
    scene = Scene(ground, repo, "src/b.py", "src/c.py", "docs")
    for names, place, path in (
        (["a", "b", "src/c.py", "src/b.py"], 2, "src/c.py"),
        (["a", "docs/x", "src/b.py"], 1, "docs/x"),
        (["src/b.py"], 0, "src/b.py"),
    ):
        targets = [(str(repo), name) for name in names]
        found = decision.first_collision(scene.session, targets, scene.peers.on)
        assert (found[0], found[2]) == (str(repo / path), place)
    assert decision.first_collision(scene.session, [(str(repo), "x")] * 20, scene.peers.on) is None


def test_a_lock_without_a_key_is_found_among_many_names(ground: Ground, repo: Path):
    """As another implementation stores it, by a path with a link in it."""
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


def test_a_call_with_very_many_files_marks_that_it_may_write_anything(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(records, "MOST_MARKS", 2)
    said: list[str] = []
    monkeypatch.setattr(records, "_append", lambda name, lines: said.extend(lines))
    records.mark_own("me", ["/a", "/b"], "call", 1)
    assert len(said) == 2 and not any("*" in line for line in said)
    records.mark_own("me", ["/a", "/b", "/c"], "call", 2)
    assert said[2:] == ["2 * call\n"]
