"""Git commands that meet others' uncommitted changes: denials, notices, and their words."""

import os
import shlex
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import traced
from support.checkouts import AMPLE, Checkout, copied
from support.traced import note
from support.world import World

from swarm_hook_core import collisions, fence, repository
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.process import host_id
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.programs.git import listings, uncommitted
from swarm_hook_core.stakes import owners, stash
from swarm_hook_core.stakes.owners import OWN, Author, Authors, Changed, Stake
from swarm_hook_core.stakes.sweeps import Sweeps
from swarm_hook_core.traces import (
    file_changes,
    journal_name,
    place_of,
)
from swarm_hook_core.traces.file_changes import FileChanges
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import Trail

pytestmark = pytest.mark.slow

CONFIG = SimpleNamespace(runtime_name="codex", write_tools=(), asks=None)
ALIVE = {
    "host": host_id(), "client_pid": os.getpid(), "client_start": "", "terminal_pid": None, "terminal_start": None,
    "state": "busy", "last_seen": time.time(), "lease_seconds": 3600, "adopted": 1, "heartbeat": 0, "lease_until": None,
    "other_clients": None, "runtime": "codex",
}  # fmt: skip


class Reader:
    """The store, as far as it knows sessions; those in `gone` it does not know any more."""

    def __init__(self):
        self.gone: set[str] = set()

    def holder(self, runtime: str, session_id: str):
        return None if session_id in self.gone else (f"id-{session_id}", f"{runtime} session:{session_id}", ALIVE)

    def purpose_of(self, instance_id: str) -> str:
        return "the parser" if instance_id == "id-peer" else ""


class OfSessions(Authors):
    """No file is a person's."""

    def find(self, stakes: list[Stake], seconds: float = 0.0) -> None:
        for one in stakes:
            one.author = Author(OWN if self.has_written(one.path) else "nobody's")


class Beside:
    """The session `me` in a checkout with writes of others."""

    def __init__(self, here: Checkout, level: str = "keep"):
        self.here = here
        self.level = level
        self.reader = Reader()

    def wrote(self, who: str, *names: str, at: float = 0, top: str = "") -> None:
        """Note that the session `who` has written these files, in their present state."""
        top = top or str(self.here.top)
        for name in names:
            note(who, top, "wrote", os.path.join(top, name), at or time.time() - 630)

    def asked(self, command: str, folder: str = "") -> tuple[str, str]:
        """Return a command's denial or "", and the notice."""
        cwd = str(self.here.top / folder)
        call = ToolCall("Bash", {"command": command}, "me", cwd)
        trail = Trail(CONFIG, call, self.level)
        now = time.time()
        effects, meetings = effects_of(command, cwd), Meetings(trail, self.reader, now)
        verdict = stash.judge(meetings, Authors(meetings), effects, "", now) or Verdict()
        if verdict.denial is None:
            sweeps = Sweeps(meetings, OfSessions(meetings), effects, Changed(), "", now)
            verdict.add(sweeps.verdict())
            if verdict.denial is None:
                sweeps.note()
        trail.leave()
        if verdict.denial is not None:
            return verdict.denial.reason, ""
        return "", verdict.notice

    def denied(self, command: str, folder: str = "") -> str:
        """Why it is denied: it must be, with nothing said beside it."""
        denial, words = self.asked(command, folder)
        assert denial and not words, (command, words)
        return denial

    def told(self, command: str, folder: str = "") -> str:
        """Return the notice about a command that must pass."""
        denial, words = self.asked(command, folder)
        assert not denial, denial
        return words

    def told_after_denial(self, command: str) -> str:
        """Return the notice about a command that is denied until its session was told of all that goes along."""
        for _ in range(3):
            denial, words = self.asked(command)
            if not denial:
                return words
            assert "the same command again goes ahead" in denial and "`swarm-mcp commit -m TEXT" in denial
        raise AssertionError(command)


@pytest.fixture
def state(tmp_path: Path, checks_have_time, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def beside(checkout, state):
    """The checkout `dirty`: peer has written b.txt, staged.txt, u.txt, i.log; this session a.txt and mine.txt."""

    def made(level: str = "keep") -> Beside:
        here = checkout("dirty")
        here.write(**{"a.txt": "mine\n", "mine.txt": "new\n"})
        found = Beside(here, level)
        found.wrote("peer", "b.txt", "staged.txt", "u.txt", "i.log")
        found.wrote("me", "a.txt", "mine.txt")
        return found

    return made


LOSES = """
git checkout -- b.txt
git checkout b.txt
git checkout .
git checkout HEAD -- .
git checkout -f
git checkout -f feature
git switch -f feature
git switch --discard-changes feature
git restore .
git restore b.txt
git restore -SW staged.txt
git reset --hard
git reset --hard HEAD~1
git reset --merge
git stash
git stash push -m words
git stash -u
git stash push -- b.txt
git stash save words
git clean -fd
git clean -fdx
git rm -f b.txt
git checkout-index -fa
git read-tree -u --reset HEAD
git rebase --autostash feature
git pull --autostash
git -c rebase.autoStash=true rebase feature
cd src && git checkout ..
git fetch && git reset --hard origin/main
if true; then git stash; fi
"""
TAKES = """
git add -A
git add .
git add -u
git add b.txt
git commit -am x
git commit -m x
git commit b.txt -m x
git mv b.txt c.txt
"""
NEITHER = """
git status
git checkout feature
git switch feature
git merge feature
git rebase feature
git pull
git cherry-pick feature
git restore --staged .
git reset
git rm b.txt
git add a.txt mine.txt
git commit a.txt -m x
git stash push -- a.txt
git checkout -- a.txt
git stash list
git fetch
git push
git branch topic
git clean -fd src
"""


def rows(text: str) -> list[str]:
    return [row for row in text.splitlines() if row]


@pytest.mark.sampled
@pytest.mark.parametrize("level", ["notice", "keep", "turn"])
def test_each_verb_at_each_level(beside, level: str):
    here = beside(level)
    for command in rows(LOSES):
        said = here.told(command) if level == "notice" else here.denied(command)
        assert "others' uncommitted changes" in said and "peer" in said, command
    for command in rows(TAKES):
        said = {"notice": here.told, "keep": here.told_after_denial, "turn": here.denied}[level](command)
        assert "others' uncommitted changes" in said and "peer" in said, command
    for command in rows(NEITHER):
        assert here.told(command) == "", command


def test_the_words_of_a_denial_and_of_a_line(here: Beside):
    top = here.here.top
    denial = here.denied("git stash -u")
    assert denial == (
        f"swarm: Bash (`git stash -u`) would put aside others' uncommitted changes: {top}/b.txt,"
        f' {top}/staged.txt, {top}/u.txt (by codex peer 10 min ago (working on "the parser")).'
        " For your own files alone: `git stash push -u -- a.txt mine.txt`. Leave theirs as it is: go on without this"
        " command, or message their session (instance id-peer) and try again once they have committed. Past this only"
        " a person can go, by running it in a terminal of their own."
    )
    assert here.denied("git add -A") == (
        f"swarm: Bash (`git add -A`) would stage others' uncommitted changes: {top}/b.txt, {top}/u.txt"
        ' (by codex peer 10 min ago (working on "the parser")). For your own files alone: `git add a.txt mine.txt`.'
        " `swarm-mcp commit -m TEXT [FILE...]`, or the tool commit, commits your own lines alone, in shared files too."
        " If theirs are meant to go along, the same command again goes ahead."
    )
    assert here.told("git add -A") == (
        f"swarm: `git add -A` stages others' uncommitted changes: {top}/b.txt, {top}/u.txt"
        ' (by codex peer 10 min ago (working on "the parser")). For your own files alone: `git add a.txt mine.txt`.'
    )


@pytest.mark.parametrize(
    ("command", "way"),
    [
        ("git stash", "`git stash push -- a.txt`"),
        ("git checkout .", "`git checkout -- a.txt`"),
        ("git restore .", "`git restore a.txt`"),
        ("git reset --hard", "`git restore --staged --worktree a.txt`"),
        ("git reset --hard feature", "`git reset --keep feature`"),
        ("git clean -fd", "`git clean -f mine.txt`"),
        ("git checkout -f feature", "`git checkout feature`"),
        ("git switch -f feature", "`git switch feature`"),
        ("git rm -rf .", "`git rm -f a.txt`"),
        ("git rebase --autostash feature", "git worktree add"),
        ("git add .", "`git add a.txt mine.txt`"),
        ("git commit -am x", "`git commit a.txt`"),
        ("git add -u", "`git add a.txt`"),
        ("git checkout -- b.txt", "Name your own files, if there are any."),
        ("git commit b.txt -m x", "Name your own files, if there are any."),
        ("git stash -a", "`git stash push -u -- a.txt mine.txt`"),
    ],
)
@pytest.mark.sampled
def test_the_narrow_form_names_one_s_own_files(beside, command: str, way: str):
    here = beside("turn")
    assert way in here.denied(command)


def test_the_narrow_form_is_one_that_passes_and_does_it(beside):
    here = beside("turn")
    theirs = {name: text for name, text in here.here.files().items() if name not in ("a.txt", "mine.txt")}
    for command in rows(LOSES + TAKES):
        own = here.denied(command).partition("For your own files alone: `")[2].partition("`")[0]
        for part in own.split(" && ") if own else ():
            words = shlex.split(part)
            assert words[0] == "git" and here.told(part if "commit" not in part else f"{part} -m x") == "", command
    assert {name: text for name, text in here.here.files().items() if name in theirs} == theirs


def test_without_files_of_one_s_own_it_is_said_to_name_them(here: Beside):
    here.here.git("checkout", "--", "a.txt")
    os.remove(here.here.top / "mine.txt")
    assert "Name your own files, if there are any." in here.denied("git stash")
    assert "Name your own files, if there are any." in here.denied("git add -A")


def test_files_are_named_as_the_command_sees_them(here: Beside):
    assert "`git checkout -- ../a.txt`" in here.denied("git checkout -- ..", "src")
    assert f"`git checkout -- {here.here.top}/a.txt`" in here.denied("cd src && git checkout -- ..")
    here.here.write(**{"it's odd.txt": "x\n"})
    here.wrote("me", "it's odd.txt")
    assert "'it'\"'\"'s odd.txt'" in here.denied("git add -A")


def test_of_many_files_and_sessions_a_few_are_named(here: Beside):
    names = [f"many/{number:02}.txt" for number in range(30)]
    for name in names:
        here.here.put(name, "x\n")
    for number in range(5):
        here.wrote(f"peer{number}", *names[number * 4 : number * 4 + 4])
    here.wrote("me", *names[20:])
    told = here.denied("git add many")
    assert told.count("many/2") == 8 and told.count("many/0") + told.count("many/1") == 3 * 3
    assert "and 1 more (by codex" in told and "and 8 more of other sessions" in told
    assert "..." in told and len(told) < 2500


def test_a_file_of_both_may_be_committed_by_who_wrote_it_last_but_not_thrown_away(beside):
    here = beside("turn")
    now = time.time()
    here.wrote("me", "src/c.py", at=now - 60)
    here.here.put("src/c.py", "of both\n")
    here.wrote("peer", "src/c.py", at=now - 30)
    assert "src/c.py (by codex peer" in here.denied("git commit src/c.py -m x")
    assert here.denied("git add src/c.py") and here.denied("git checkout -- src/c.py")
    here.wrote("me", "src/c.py", at=now)
    assert here.told("git commit src/c.py -m x") == "" and here.told("git add src/c.py") == ""
    assert "src/c.py (by codex peer" in here.denied("git checkout -- src/c.py")


SAID_BY_GIT_ALONE = ("git -c rebase.autoStash=true rebase feature", "git commit -m x")


@pytest.mark.parametrize("level", ["keep", "turn"])
def test_where_git_does_not_say_in_time_the_trace_alone_decides(beside, limits, level: str):
    here = beside(level)
    limits(owners, SECONDS=-AMPLE)
    for command in rows(LOSES + TAKES):
        if command == "git mv b.txt c.txt":  # its words say all that there is to know
            assert "Git did not" not in "".join(here.asked(command))
        elif command in SAID_BY_GIT_ALONE or (level == "keep" and command in rows(TAKES)):
            assert " may " in here.told(command), command
        else:
            assert "peer" in (said := here.denied(command)) and "Git was too slow" in said, command
    for command in rows(NEITHER):
        assert "peer" not in here.asked(command)[0] or command in ("git clean -fd src",), command
    assert here.told("git add a.txt") == "" and here.told("git fetch") == ""


def test_where_git_answers_nothing_at_all_a_known_change_is_kept(work, limits):
    me, peer = traced.Player("codex", work), traced.Player("claude-code", work)
    peer.edits("notes.md", "beta", "PEER")
    limits(owners, SECONDS=0.0)
    limits(file_changes, SECONDS=0.0)
    limits(collisions, GIT_SECONDS=0.0)
    for command in (
        "git checkout .",
        "git stash",
        "git reset --hard",
        "git checkout -- notes.md",
        "git stash; git pull",
    ):
        assert me.runs(command).startswith("denied: swarm: Bash (`git "), command
    assert "git was too slow to say if any of them are a person's" in me.runs("git checkout -- other.md")
    assert "PEER" in (work / "notes.md").read_text()


@pytest.mark.parametrize("command", ["git stash", "git checkout .", "git restore notes.md other.md third.md"])
def test_a_client_that_waits_5_seconds_gets_the_denial_before_the_lines_of_all_files(
    tmp_path, limits, monkeypatch, command
):
    names = ("notes.md", "other.md", "third.md")
    work = World(tmp_path, *names).repo
    me, peer = traced.Player("codex", work), traced.Player("claude-code", work)
    for name in names:
        peer.edits(name, "beta", "PEER")
        me.edits(name, "gamma", "MINE")
    looked_up = slow_lines(limits, monkeypatch)
    said = me.runs(command)
    assert said.startswith("denied: ") and len(looked_up) == 1, said
    assert "`swarm-mcp undo --partial " in said and all(name in said for name in names), said


def test_a_commit_of_shared_files_is_told_before_the_lines_of_all_files(tmp_path: Path, limits, monkeypatch):
    names = ("notes.md", "other.md", "third.md")
    work = World(tmp_path, *names).repo
    me, peer = traced.Player("codex", work), traced.Player("claude-code", work)
    for name in names:
        peer.edits(name, "beta", "PEER")
        me.runs(f"cat {name}")
        me.edits(name, "gamma", "MINE")
    looked_up = slow_lines(limits, monkeypatch)
    command = "git -c user.name=t -c user.email=t@t commit -qam x"
    said = me.runs(command)
    assert said.startswith("denied: ") and "the same command again goes ahead" in said and len(looked_up) == 1, said
    assert not me.runs(command).startswith("denied: ") and not traced.git(work, "status", "--porcelain").strip()


def slow_lines(limits, monkeypatch) -> list[str]:
    """Have the lines of each file take two seconds. Return the growing list of the files looked up."""
    limits(file_changes, LINES_SECONDS=0.5)
    clock, looked_up, changes_of = [100.0], [], FileChanges.of

    def slow(changes: FileChanges, path: str, seconds: float):
        clock[0] += 2
        looked_up.append(path)
        return changes_of(changes, path, seconds)

    monkeypatch.setattr(FileChanges, "of", slow)
    monkeypatch.setattr(file_changes, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return looked_up


def test_nothing_that_takes_long_is_asked_before_what_is_to_be_told(monkeypatch: pytest.MonkeyPatch, here: Beside):
    asked: list[str] = []
    monkeypatch.setattr(stash, "puts_aside", lambda *_given: asked.append("whole tree") or True)
    assert here.denied("git stash") and not asked
    assert here.told("git stash push -- a.txt") == "" and asked


def test_git_is_asked_as_often_about_many_named_files_as_about_one(beside, monkeypatch):
    here = beside("notice")
    names = [f"many/{number}.txt" for number in range(3)]
    for name in names:
        here.here.put(name, "x\n")
    here.wrote("peer", *names)
    asked: list[str] = []
    ask = repository.ask
    monkeypatch.setattr(repository, "ask", lambda words, *more: (asked.append(words[0]), ask(words, *more))[1])
    assert "many/0.txt" in here.told("git add many/0.txt")
    of_one, asked[:] = asked.count("ls-files"), []
    assert "many/0.txt" in here.told(f"git add {' '.join(names)}")
    assert asked.count("ls-files") == of_one > 0


def test_commands_that_nobody_read_count_where_the_work_tree_takes_too_long_to_go_through(monkeypatch, here: Beside):
    top = str(here.here.top)
    here.here.put("src/c.py", "theirs\n")
    note("peer", top, "ran", top, time.time() - 5, "make; cd src && echo theirs >c.py")
    monkeypatch.setattr(uncommitted, "changed_in", lambda *_given: None)
    assert "src/c.py (by codex peer" in here.denied("git checkout -- src")


def test_what_is_committed_and_who_has_gone_do_not_count(here: Beside):
    here.here.git("add", "b.txt", "staged.txt")
    here.here.git("commit", "-qm", "theirs")
    assert here.told("git stash") == ""
    assert "u.txt" in here.denied("git clean -fd")
    here.reader.gone.add("peer")
    assert here.told("git clean -fd") == ""


def test_traces_on_files_that_are_committed_hide_no_changed_one(here: Beside):
    here.wrote("peer", "a.txt", "src/c.py", "src/d.py", ".gitignore", at=time.time() - 5)  # later, and committed
    assert "b.txt" in here.denied("git checkout HEAD -- 'b*'")


def test_what_was_committed_since_is_not_theirs_any_more(here: Beside):
    here.here.git("add", "b.txt")
    here.here.git("commit", "-qm", "theirs", "b.txt")
    here.here.put("b.txt", "mine\n")
    assert here.told("git checkout -- b.txt") == "" and "b.txt" not in here.denied("git reset --hard")
    here.here.put("src/c.py", "theirs\n")
    here.wrote("peer", "src/c.py", at=time.time() - 10)
    here.here.git("commit", "-q", "--amend", "--no-edit", "src/c.py", "--date", f"{int(time.time()) - 20} +0000")
    here.here.put("src/c.py", "theirs again\n")
    assert here.denied("git checkout -- src"), "an amended commit is as old as it was"


def test_what_one_command_commits_the_next_cannot_lose(here: Beside):
    told = here.told_after_denial("git add -A && git commit -m x && git checkout -f feature")
    assert told.count("swarm:") == 2 and "stages" in told and "commits" in told
    assert here.told("git add -A && git commit -qam x").count("swarm:") == 2


def test_what_commands_wrote_that_nobody_had_read_counts_as_well(here: Beside):
    top = str(here.here.top)
    here.here.put("src/c.py", "theirs\n")
    note("peer", top, "ran", top, time.time() - 5, "cat src/c.py")
    assert here.told("git checkout -- src") == ""
    note("peer", top, "ran", top, time.time() - 5, "cd src && echo theirs >c.py")
    assert "src/c.py (by codex peer" in here.denied("git checkout -- src")
    here.here.git("commit", "-qam", "theirs")
    assert here.told("git checkout HEAD~1 -- src") == ""


def test_what_may_not_run_here_is_a_line_at_most(here: Beside):
    told = here.told("cd $SOMEWHERE; git -C $TOP stash; cd nowhere && git stash")
    assert "would" not in told


def test_another_work_tree_of_the_repository_is_another_place_for_files(tmp_path: Path, here: Beside):
    here.here.git("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
    linked = Beside(Checkout(tmp_path / "linked"))
    assert linked.told("git stash -u") == "" and linked.told("git add -A") == ""
    linked.here.write(**{"b.txt": "half done\n"})
    linked.wrote("peer", "b.txt")
    assert "linked/b.txt" in linked.denied("git stash -u") and "linked/b.txt" in linked.denied("git add -A")
    assert "linked/b.txt" in here.denied(f"git worktree remove --force {tmp_path}/linked")
    assert here.told(f"git worktree remove {tmp_path}/linked") == "", "git refuses"


LOOPS = """
git worktree list --porcelain | awk '/^worktree/{print $2}' | grep linked | xargs -I{} git worktree remove --force {}
for w in $(git worktree list --porcelain | grep '^worktree' | cut -d' ' -f2); do git worktree remove --force "$w"; done
git worktree list | tail -n +2 | while read w rest; do git worktree remove -f "$w"; done
find .. -maxdepth 1 -name 'linked*' | xargs -n1 git worktree remove --force
git worktree remove --force linked
"""


def test_work_trees_of_which_the_names_are_computed_may_be_any(tmp_path: Path, here: Beside):
    for name in ("linked", "other"):
        here.here.git("worktree", "add", "-q", "--detach", str(tmp_path / name), "feature")
    linked = Beside(Checkout(tmp_path / "linked"))
    for command in rows(LOOPS):
        assert here.told(command) == "", command
    linked.here.write(**{"b.txt": "half done\n"})
    linked.wrote("peer", "b.txt")
    for command in rows(LOOPS):
        said = here.denied(command)
        assert "linked/b.txt (by codex peer" in said and "Name the work trees that are your own" in said, command
    for command in ('git worktree remove "$W"', f"git worktree remove -f {tmp_path}/other", "git worktree prune"):
        assert here.told(command) == "", command


def test_a_submodule_that_is_taken_out_with_a_peer_s_change(work, tmp_path: Path, limits):
    limits(fence, APART_NS=0)
    inner = traced.checkout(tmp_path / "inner", "deep.md", "own.md")
    allowed = ("-c", "protocol.file.allow=always")
    traced.git(work, *allowed, "submodule", "--quiet", "add", str(inner), "module")
    traced.git(work, "commit", "-qm", "module")
    me, peer = traced.Player("codex", work), traced.Player("claude-code", work / "module")
    assert "in which claude-code" in me.denied("Bash", {"command": "git submodule deinit -f module"})
    for command in ("git submodule deinit -f module", "git submodule deinit --all --force", "git rm -rf module"):
        assert me.told("Bash", {"command": command}) == "", command
    peer.edits("deep.md", "beta", "PEER")
    for command in ("git submodule deinit -f module", "git submodule deinit --all --force", "git rm -rf module"):
        for _ in range(2):
            assert "module/deep.md" in me.denied("Bash", {"command": command}), command
    for command in ("git submodule deinit module", "git submodule status", "git rm -r --cached module"):
        assert me.told("Bash", {"command": command}) == "", command
    assert "PEER" in (work / "module" / "deep.md").read_text()


IN_SUBMODULES = rows("""
    git submodule foreach 'git checkout .'
    git submodule foreach --recursive git reset --hard
    git submodule foreach 'git clean -fdx; git stash'
    git submodule update --force
    git submodule update --init --force --recursive -j 4 module
    git reset --hard --recurse-submodules
    git checkout -f --recurse-submodules main
    git checkout --recurse-submodules -- .
    git restore --recurse-submodules module
    git switch --discard-changes --recurse-submodules main
    git read-tree -u --reset --recurse-submodules HEAD
    git -c submodule.recurse=true reset --hard
""")
OUTSIDE_SUBMODULES = rows("""
    git submodule foreach 'git status --short'
    git submodule update --init --recursive
    git reset --hard
    git checkout -f main
    git -c submodule.recurse=true reset --hard --no-recurse-submodules
    git restore --recurse-submodules notes.md
    git submodule sync --recursive
""")


def test_commands_that_reach_into_submodules_lose_no_line_there(work, tmp_path: Path, limits):
    limits(fence, APART_NS=0)
    inner = traced.checkout(tmp_path / "inner", "deep.md", "own.md")
    traced.git(work, "submodule", "--quiet", "add", str(inner), "module")
    traced.git(work, "commit", "-qm", "module")
    me, peer = traced.Player("codex", work), traced.Player("claude-code", work / "module")
    peer.edits("deep.md", "beta", "PEER")
    for command in IN_SUBMODULES:
        for _ in range(2):
            assert "module/deep.md" in me.denied("Bash", {"command": command}), command
    for command in OUTSIDE_SUBMODULES:
        assert me.told("Bash", {"command": command}) == "", command


def test_a_person_s_line_in_a_submodule_is_held_for_a_session_that_is_alone(work, tmp_path: Path):
    inner = traced.checkout(tmp_path / "inner", "deep.md")
    traced.git(work, "submodule", "--quiet", "add", str(inner), "module")
    traced.git(work, "commit", "-qm", "module")
    me = traced.Player("codex", work)
    (work / "module" / "deep.md").write_text("mine\n")
    for command in (IN_SUBMODULES[0], IN_SUBMODULES[3], IN_SUBMODULES[5]):
        assert "a person's work" in me.denied("Bash", {"command": command}), command


def test_a_submodule_with_a_session_is_set_to_another_commit_at_the_second_attempt(work, tmp_path: Path):
    inner = traced.checkout(tmp_path / "inner", "deep.md")
    traced.git(work, "submodule", "--quiet", "add", str(inner), "module")
    traced.git(work, "commit", "-qm", "module")
    module = work / "module"
    me, _peer = traced.Player("codex", work), traced.Player("claude-code", module)
    assert me.denied("Bash", {"command": "git submodule update"}) == "", "it is at that commit"
    traced.git(module, "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    for command in (
        "git submodule update",
        "git reset --hard --recurse-submodules",
        "git checkout --recurse-submodules HEAD",
    ):
        traced.git(module, "checkout", "-q", "--detach")
        traced.git(module, "commit", "-q", "--allow-empty", "-m", command)
        said = me.denied("Bash", {"command": command})
        assert f"would switch the work tree {module}" in said and f'"{command}"' in said, (command, said)
        assert me.denied("Bash", {"command": command}) == ""


@pytest.mark.parametrize("level", ["keep", "turn"])
def test_a_patch_into_the_index_takes_along_what_it_is_about(beside, limits, level: str):
    here = beside(level)
    limits(listings, SECONDS=AMPLE)
    (here.here.top / "x.patch").write_text("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+c\n")
    (here.here.top / "own.patch").write_text("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+c\n")
    for command in ("git apply --cached x.patch && git commit -m x", "git diff b.txt | git apply --cached"):
        asking = {"turn": here.denied}.get(level, here.told_after_denial)
        said = asking(command)
        assert "b.txt (by codex peer" in said and ("stage others" in said or "stages others" in said), command
    assert here.told("git apply --cached own.patch") == ""


@pytest.fixture
def here(beside) -> Beside:
    """That checkout, at the usual level."""
    return beside()


@pytest.fixture
def trees(templates, tmp_path: Path, state):
    """Two work trees of one repository with nothing in the stash; the session `peer` is in the second."""

    def made(level: str = "keep") -> tuple[Beside, Checkout]:
        here = copied(templates["clean"], tmp_path / "copy")
        here.git("stash", "clear")
        here.git("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
        return Beside(here, level), Checkout(tmp_path / "linked")

    return made


def put_aside(beside: Beside, tree: Checkout, who: str, at: float) -> None:
    """Have the session `who` stash a change in `tree` at this time."""
    tree.put("b.txt", f"{at}\n")
    note(who, str(tree.top), "stash", str(tree.top), at)
    stamp = f"{int(at) + 1} +0000"
    os.environ["GIT_COMMITTER_DATE"] = os.environ["GIT_AUTHOR_DATE"] = stamp
    try:
        tree.git("stash", "push", "-q")
    finally:
        del os.environ["GIT_COMMITTER_DATE"], os.environ["GIT_AUTHOR_DATE"]


@pytest.mark.parametrize("level", ["notice", "keep", "turn"])
def test_an_entry_that_another_session_has_put_into_the_stash(trees, level: str):
    here, linked = trees(level)
    put_aside(here, linked, "peer", time.time() - 30)
    for command in (
        "git stash pop",
        "git stash drop",
        "git stash clear",
        "git stash branch x",
        "git stash pop stash@{0}",
    ):
        said = here.told(command) if level == "notice" else here.denied(command)
        assert "stash@{0} (by codex peer" in said, command
    assert "stash@{0} (by codex peer" in here.told("git stash apply")
    for command in (
        "git stash list",
        "git stash show",
        "git stash pop 1",
        "git stash drop stash@{4}",
        "git stash push",
    ):
        assert here.told(command) == "", command


def test_one_s_own_entries_are_one_s_own_and_named(trees):
    here, linked = trees()
    now = time.time()
    put_aside(here, here.here, "me", now - 300)
    put_aside(here, linked, "peer", now - 200)
    put_aside(here, here.here, "me", now - 100)
    for command in ("git stash pop", "git stash pop stash@{2}", "git stash drop 2", "git stash apply --index"):
        assert here.told(command) == "", command
    denial = here.denied("git stash pop 1")
    assert "Yours: stash@{0}, stash@{2}, by the numbers of now." in denial and "stash@{1} (by codex" in denial
    assert "stash@{1}" in here.denied("git stash clear")


def test_the_words_about_an_entry(trees):
    here, linked = trees()
    put_aside(here, linked, "peer", time.time() - 570)
    assert here.denied("git stash pop") == (
        "swarm: Bash (`git stash pop`) would take out a stash entry that is not yours: stash@{0} (by codex"
        " peer 9 min ago). It has b.txt. All work trees of a repository share it. Leave theirs where it is, or message their"
        " session (instance id-peer). Past this only a person can go, by running it in a terminal of their own."
    )


def test_an_entry_that_no_session_at_work_has_made(trees):
    here, linked = trees()
    now = time.time()
    linked.put("b.txt", "a person's\n")
    linked.git("stash")
    assert "No session at work has made it" in here.denied("git stash pop") and here.told("git stash pop") == ""
    linked.git("stash", "clear")
    put_aside(here, linked, "peer", now - 30)
    here.reader.gone.add("peer")
    assert "No session at work has made it" in here.denied("git stash drop")
    here.reader.gone.clear()
    assert "by codex peer" in here.denied("git stash drop")
    linked.git("stash", "drop", "-q")
    put_aside(here, linked, "peer", now - 5000)  # long before the present entry
    linked.git("stash", "drop", "-q")
    linked.put("b.txt", "a person's\n")
    linked.git("stash")
    here.reader.gone.add("peer")
    assert "No session at work has made it" in here.denied("git stash clear")


def test_one_note_stands_for_one_entry(trees):
    here, linked = trees()
    now = time.time()
    put_aside(here, linked, "peer", now - 30)
    linked.put("b.txt", "a person's\n")
    linked.git("stash")
    assert "by codex peer" not in here.denied("git stash pop") and "by codex peer" in here.denied("git stash pop 1")


def test_the_first_of_several_owners_is_named_with_the_number_of_the_rest(trees):
    here, linked = trees()
    put_aside(here, linked, "peer", time.time() - 30)
    linked.put("b.txt", "a person's\n")
    linked.git("stash")
    assert " ago) and 1 more" in here.denied("git stash clear")


def test_of_two_sessions_that_put_aside_at_once_nobody_knows_whose_is_which(trees):
    here, linked = trees()
    now = time.time()
    note("me", str(here.here.top), "stash", str(here.here.top), now - 31)
    put_aside(here, linked, "peer", now - 30)
    assert here.told("git stash pop") == ""


def test_what_a_command_puts_aside_itself_it_may_bring_back(trees):
    here, linked = trees()
    put_aside(here, linked, "peer", time.time() - 30)
    assert here.denied("git stash && git pull && git stash pop"), "there is nothing to put aside: it brings back peer's"
    here.here.put("b.txt", "mine\n")
    assert here.told("git stash && git pull && git stash pop") == ""
    assert here.told("echo x >c.txt; git stash -u; git pull; git stash pop") == ""
    assert here.denied("git stash && git pull && git stash pop 1")


def test_a_stash_is_noted_and_known_too_where_nobody_had_read_the_command(trees):
    here, linked = trees()
    here.here.put("b.txt", "mine\n")
    assert here.told("git stash -q") == ""
    own = Path(place_of(str(here.here.top)), journal_name("codex", "me"))
    assert own.read_bytes().count(b" stash ") == 1
    assert here.told("git stash list; git stash create; git stash drop") == ""
    assert own.read_bytes().count(b" stash ") == 1
    own.unlink()
    linked.put("b.txt", "theirs\n")
    note("peer", str(linked.top), "ran", str(linked.top), time.time(), "make && git stash -q")
    linked.git("stash", "-q")
    assert "stash@{0} (by codex peer" in here.denied("git stash pop")
    note("me", str(here.here.top), "ran", str(here.here.top), time.time() + 4, "git stash")
    assert here.denied("git stash pop"), "that one came later"


@pytest.mark.parametrize(("mine", "theirs"), [("claude-code", "codex"), ("codex", "claude-code")])
def test_one_session_sweeps_while_another_is_at_work(work, mine, theirs):
    me, peer = traced.Player(mine, work), traced.Player(theirs, work)
    peer.edits("notes.md", "beta", "PEER")
    me.edits("other.md", "beta", "MINE")
    for command in (
        "git stash",
        "git checkout .",
        "git checkout -- notes.md",
        "git reset --hard",
        "git restore notes.md",
    ):
        for _ in range(2):  # as long as the trace stands
            assert me.runs(command).startswith("denied: swarm: Bash (`git "), command
    assert "PEER" in (work / "notes.md").read_text() and "MINE" in (work / "other.md").read_text()
    assert "`git stash push -- other.md`" in me.runs("git stash")
    assert me.runs("git add -A").startswith("denied: swarm: Bash (`git add -A`) would stage others' uncommitted")
    assert "stages others' uncommitted changes" in me.runs("git add -A") and "`git add" not in me.runs(
        "git add other.md"
    )
    traced.git(work, "reset", "-q")
    assert peer.runs("git stash push -q -- notes.md") == ""
    assert "stash@{0}" in me.runs("git stash pop") and "PEER" not in (work / "notes.md").read_text()
    assert peer.runs("git stash pop") == "" and "PEER" in (work / "notes.md").read_text()
    assert me.runs("git stash push -- other.md") == "" and "MINE" not in (work / "other.md").read_text()
    assert me.runs("git stash pop") == "" and "MINE" in (work / "other.md").read_text()


def test_a_stash_beside_somebody_s_lock_is_noted_though_nobody_else_has_written(work, tmp_path: Path, store):
    me, peer = traced.Player("codex", work), traced.Player("codex", work)
    store.locks.acquire(peer.row, str(tmp_path / "elsewhere.txt"))
    assert me.edits("notes.md", "beta", "MINE") == ""
    assert me.runs("cd .; git stash -q") == ""
    assert "stash@{0}" in peer.runs("git stash drop")
