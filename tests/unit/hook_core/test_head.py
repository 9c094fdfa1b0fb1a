"""HEAD is shared: commands that move it under other sessions, and commits to a branch that a session does not know."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from support.traced import Player, git
from support.world import some_time_passes

from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.head import Head, movement
from swarm_hook_core.traces.head.movement import Commit, movement_of
from swarm_hook_core.traces.meetings import Meetings
from swarm_mcp.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

# command: the deed and its target, or None if HEAD and branches stay
MOVEMENTS = {
    "switch other": ("switch", "other"),
    "switch -": ("switch", "-"),
    "switch -c new": ("switch", "new"),
    "switch main": None,
    "checkout other": ("switch", "other"),
    "checkout -b new": ("switch", "new"),
    "checkout main": None,
    "checkout notes.md": None,
    "checkout -- other": None,
    "checkout other -- notes.md": None,
    "checkout other notes.md": None,
    "checkout .": None,
    "checkout": None,
    "checkout HEAD~1": ("switch", "HEAD~1"),
    "checkout -p other": None,
    "checkout missing": None,
    "reset": None,
    "reset --hard": None,
    "reset HEAD": None,
    "reset main": None,
    "reset --soft HEAD~1": ("reset", "HEAD~1"),
    "reset --hard other": ("reset", "other"),
    "reset notes.md": None,
    "reset HEAD -- notes.md": None,
    "reset HEAD~1 notes.md": None,
    "rebase other": ("rebase", "other"),
    "rebase --abort": None,
    "rebase --continue": None,
    "commit --amend --no-edit": ("amend", ""),
    "commit -m x": None,
    "merge other": ("merge", "other"),
    "merge --abort": None,
    "pull": ("pull", ""),
    "pull --rebase": ("pull", ""),
    "branch -f other": ("move-branch", "other"),
    "branch -f new": None,
    "branch -m renamed": ("move-branch", "main"),
    "branch -m other renamed": None,
    "branch new": None,
    "branch -D other": None,
    "update-ref refs/heads/main HEAD~1": ("move-branch", "main"),
    "update-ref -m why HEAD HEAD~1": ("move-branch", "main"),
    "update-ref -d refs/heads/other": ("move-branch", "other"),
    "update-ref refs/heads/new HEAD": None,
    "update-ref refs/notes/x HEAD": None,
    "symbolic-ref HEAD refs/heads/other": ("switch", "other"),
    "symbolic-ref HEAD refs/heads/main": None,
    "symbolic-ref --short HEAD": None,
    "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main": None,
    "push": None,
    "cherry-pick other": None,
    "revert HEAD": None,
    "status": None,
}

# Git's times are whole seconds; a person's commit is older than the calls of a test.
PERSON = {**{f"GIT_{role}_{fact}": "person" for role in ("AUTHOR", "COMMITTER") for fact in ("NAME", "EMAIL")},
          "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}  # fmt: skip


@pytest.fixture
def repo(work: Path) -> Path:
    """The repository `work`, with a second commit, and a branch `other` on the first one."""
    git(work, "branch", "other")
    (work / "third.md").write_text("x\n")
    git(work, "add", "third.md")
    git(work, "commit", "-qm", "second")
    return work


@pytest.mark.parametrize("packed", [False, True])
def test_git_commands_that_move_head_are_known(packed: bool, repo: Path) -> None:
    if packed:
        git(repo, "pack-refs", "--all")
    head = heads.read(str(repo))
    assert head is not None and head.branch == "main" and head.commit == git(repo, "rev-parse", "HEAD").strip()
    found = {}
    for command in MOVEMENTS:
        words = command.split()
        movement = movement_of(GitCall(str(repo), words, command), words, str(repo), head)
        found[command] = (movement.deed, movement.target) if movement is not None else None
    assert found == MOVEMENTS


@pytest.mark.parametrize("command", [f"git {one}" for one in MOVEMENTS if MOVEMENTS[one] and one != "switch -"])
@pytest.mark.sampled
def test_what_moves_head_under_another_session_is_denied_once(command: str, repo: Path) -> None:
    me, peer = Player("claude-code", repo), Player("codex", repo)
    said = me.denied("Bash", {"command": command})
    assert said.startswith("swarm: Bash (`git") and "codex" in said and "the same command again goes ahead" in said
    assert "git worktree add" in said
    assert me.denied("Bash", {"command": command}) == "", "it has been told"
    assert peer.session_id


@pytest.mark.parametrize("command", [f"git {one}" for one in MOVEMENTS if not MOVEMENTS[one]])
@pytest.mark.sampled
def test_what_moves_nothing_passes(command: str, repo: Path) -> None:
    me, _peer = Player("claude-code", repo), Player("codex", repo)
    assert me.denied("Bash", {"command": command}) == ""


@pytest.fixture
def remote(repo: Path, tmp_path: Path) -> Path:
    """A remote of `repo` that has both branches."""
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(repo, "remote", "add", "origin", str(tmp_path / "remote"))
    amended = ["git", "commit", "-q", "--amend", "--no-edit"]
    subprocess.run(amended, cwd=repo, check=True, env={**os.environ, **PERSON})
    git(repo, "push", "-q", "-u", "origin", "main", "other")
    return tmp_path / "remote"


COMMIT = "echo x >> notes.md; git commit -qam"
AMEND = "git commit -q --amend --allow-empty -m amended"
# commands before the push, with their session; the push -> the words of its denial, empty if it passes
PUSHES = {
    "another session's commit": (["peer: %s theirs && git push -q", "me: git reset -q --hard HEAD~1"], "git push -f", "theirs"),
    "with a lease": (["peer: %s theirs && git push -q", AMEND], "git push --force-with-lease", "theirs"),
    "a plus": (["peer: %s theirs && git push -q", AMEND], "git push origin +main", "theirs"),
    "by its whole name": (["peer: %s theirs && git push -q", AMEND], "git push -f origin HEAD:refs/heads/main", "theirs"),
    "amended in the same call": (["peer: %s theirs && git push -q"], f"{AMEND} && git push -f", "theirs"),
    "a person's commit": (["person: %s theirs && git push -q", AMEND], "git push -f", "theirs"),
    "an earlier commit": ([AMEND], "git push -f", "second"),
    "commits of several": (
        ["me: %s mine", "peer: %s theirs && git push -q", "me: git reset -q --hard HEAD~2"], "git push -f", "theirs"
    ),
    "commits that are not known here": (["elsewhere: %s far && git push -q", AMEND], "git push -f", "not known here"),
    "unknown ones with a lease": (["elsewhere: %s far && git push -q", AMEND], "git push --force-with-lease", ""),
    "its own": (["me: %s mine && git push -q", AMEND], "git push -f", ""),
    "its own, rebased": (
        ["me: git switch -q -c topic && echo x > new.md && git add . && git commit -qm mine && git push -qu origin topic",
         "peer: git branch -f base other", "me: git rebase -q other"], "git push -f", ""
    ),
    "commits that nobody pushed": (["peer: %s theirs"], "git push -f", ""),
    "nothing": ([], "git push -f", ""),
    "a new branch": (["me: git switch -q -c topic"], "git push -f -u origin topic", ""),
    "a branch that is removed": ([], "git push -f origin :other", ""),
    "no such remote": ([], "git push -f nowhere", ""),
    "a dry run": (["peer: %s theirs && git push -q", AMEND], "git push -n -f", ""),
    "a plain push": (["peer: %s theirs"], "git push", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", PUSHES)
@pytest.mark.sampled
def test_a_forced_push_is_denied_once_if_it_drops_commits_of_others(case: str, repo: Path, remote: Path) -> None:
    me, peer = Player("claude-code", repo), Player("codex", repo)
    git(repo, "config", "user.name", "t")
    git(repo, "config", "user.email", "t@t")
    git(repo, "config", "push.default", "current")
    for line in PUSHES[case][0]:
        who, _, command = line.rpartition(": ")
        command = command.replace("%s", COMMIT)
        if who in ("", "me"):
            me.runs(command).startswith("denied") and me.runs(command)
        elif who == "peer":
            peer.runs(command).startswith("denied") and peer.runs(command)
        else:
            folder = repo
            if who == "elsewhere":
                git(repo, "clone", "-q", "-b", "main", str(remote), "../clone")
                folder = repo.parent / "clone"
            subprocess.run(["bash", "-c", command], cwd=folder, check=True, env={**os.environ, **PERSON})
    command, words = PUSHES[case][1:]
    said = me.denied("Bash", {"command": command})
    if said and "would drop" not in said and "not known here" not in said:
        said = me.denied("Bash", {"command": command})  # of HEAD it has been told
    assert words in said and bool(words) is bool(said), said
    if words:
        assert "codex" in said and "the same command again goes ahead" in said and "git" in said
    assert me.denied("Bash", {"command": command}) == ""


# seconds of the session's commands, of another session's, of the commit -> True if the session has made it
MAKERS = {((10,), (), 12): True, ((10,), (), 9): False, ((10, 20), (11,), 12): False, ((10, 20), (11,), 20): True,
          ((10,), (5,), 12): True, ((10,), (10,), 10): False, ((), (), 12): False, ((10,), (), 900): False,
          ((11,), (10,), 11): False, ((30,), (10,), 30): True}  # fmt: skip


@pytest.mark.parametrize(("own", "others", "at"), MAKERS)
def test_the_last_command_before_a_commit_has_made_it(own, others, at: int) -> None:
    journals = ["".join(f"{one}000000000 commits - Bash\0/r\n" for one in some).encode() for some in (own, others)]
    commits = movement.not_own([Commit("abc", at, "x")], journals[0], journals[1:])
    assert (commits == []) is MAKERS[own, others, at]


def test_a_session_alone_switches_as_it_likes(repo: Path, tmp_path: Path) -> None:
    me = Player("codex", repo)
    git(repo, "worktree", "add", "-q", "../tree", "other")
    Player("codex", tmp_path / "tree")
    for command in (
        "git switch -c new",
        "git commit --allow-empty -qm x",
        "git switch main",
        "git reset --soft HEAD~1",
    ):
        assert me.runs(command) == ""
    assert git(repo, "branch", "--show-current").strip() == "main"


def test_a_session_that_has_shown_no_sign_of_life_for_long_is_not_disturbed(repo: Path, store: Store) -> None:

    me, peer = Player("codex", repo), Player("codex", repo)
    store.database.connection.execute(
        "UPDATE swarm_sessions SET last_seen = ? WHERE instance_id = ?", (int(time.time()) - 8000, peer.row["id"])
    )
    assert me.runs("git switch other") == ""


@pytest.mark.parametrize("level", ["off", "notice"])
def test_below_keep_the_session_is_told_at_most(level: str, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", level)
    me, _peer = Player("codex", repo), Player("codex", repo)
    said = me.runs("git switch other")
    assert ("In the same work tree: codex" in said) is (level == "notice") and "denied" not in said
    assert me.runs("git switch main") == "", "told once"


def test_at_notice_a_removed_lock_and_a_stale_index_are_told_once(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    me, _peer = Player("codex", repo), Player("claude-code", repo)
    (repo / ".git" / "mine").touch()
    os.utime(repo / ".git" / "mine", (time.time() - 60,) * 2)
    (repo / ".git" / "index.lock").touch()
    for command, words in (
        ("GIT_INDEX_FILE=.git/mine git commit -qm mine", "older than the last move"),
        ("rm -f .git/index.lock", "the lock of a git command that may still run"),
    ):
        said, again = me.told("Bash", {"command": command}), me.told("Bash", {"command": command})
        assert words in said and "goes ahead" not in said, command
        assert words not in again, command


NEXT_CALLS = {
    "an edit": lambda peer: peer.edits("notes.md", "alpha", "mine"),
    "a command": lambda peer: peer.runs("ls > list.txt"),
    "a git command": lambda peer: peer.runs("git add notes.md"),
    "a turn": lambda peer: _turns(peer),
}


def _turns(player: Player) -> str:
    return session_events._head_of(player.core, SessionEvent(player.session_id, str(player.folder), "UserPromptSubmit"))


@pytest.mark.parametrize("call", NEXT_CALLS.values(), ids=NEXT_CALLS)
def test_the_others_are_told_at_their_next_call(call, repo: Path) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    assert _turns(me) == _turns(peer) == ""
    peer.runs("touch hers.md")
    me.runs("git switch other")
    assert me.runs("git switch other") == ""
    said = call(peer)
    assert "codex" in said and "switched this work tree" in said
    assert "it was on main, and is on other now" in said
    assert "switched" not in call(peer), "told once"
    assert me.runs("git switch main") == "" == _turns(me)


def test_an_edit_is_as_cheap_as_before_once_its_session_was_told(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    _turns(me), _turns(peer)
    me.runs("git switch other")
    assert me.runs("git switch other") == ""
    looks: list[object] = []
    monkeypatch.setattr(journal, "is_kept", True)
    monkeypatch.setattr(Meetings, "commit_with_hooks", lambda *given: looks.append(given))
    assert "switched this work tree" in peer.edits("notes.md", "alpha", "mine") and len(looks) == 1
    for path in Path(heads.heads_dir(str(repo))).glob("moved*"):
        os.utime(path, (1, 1))  # before the note of the change told, by any clock
    assert peer.edits("notes.md", "mine", "again") == "" and len(looks) == 1


def test_a_commit_to_another_branch_than_the_known_one_is_denied_once(repo: Path) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    _turns(me), _turns(peer)
    me.runs("git switch other")
    assert me.runs("git switch other") == ""
    peer.edits("sub/deep.md", "alpha", "mine")
    me.runs("git switch main && git switch other")
    _turns(peer)
    git(repo, "switch", "-q", "main")
    said = peer.runs("git commit -qam x")
    assert said.startswith("denied: ") and "by a person or a script" in said and "would commit to main" in said
    assert not peer.runs("git commit -qam x").startswith("denied")
    assert "x" in git(repo, "log", "-1", "--format=%s")


def test_the_mover_is_named_where_a_commit_is_denied(repo: Path) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    _turns(me), _turns(peer)
    me.runs("git switch other")
    me.runs("git switch other")
    said = peer.runs("git commit --allow-empty -qm x")
    assert said.startswith("denied: ") and "codex" in said and "switched this work tree" in said
    assert peer.runs("git commit --allow-empty -qm x") == ""


def test_what_the_session_itself_moved_is_no_surprise(repo: Path) -> None:
    me, _peer = Player("codex", repo), Player("claude-code", repo)
    _turns(me)
    me.runs("git switch other")
    assert me.runs("git switch other") == "" == me.runs("git commit --allow-empty -qm x")
    assert me.runs("git switch -q main; git commit --allow-empty -qm y") == ""


def test_a_command_that_failed_is_no_news(repo: Path) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    _turns(peer)
    me.runs("git switch other")
    assert me.denied("Bash", {"command": "git switch other"}) == ""
    assert peer.runs("git commit --allow-empty -qm x") == "" == peer.edits("notes.md", "alpha", "mine")


def test_a_lock_of_git_s_is_removed_at_the_second_attempt_while_it_is_fresh(repo: Path) -> None:
    me, _peer = Player("codex", repo), Player("claude-code", repo)
    lock = repo / ".git" / "index.lock"
    lock.touch()
    for command in ("rm -f .git/index.lock", "rm .git/*.lock"):
        said = me.denied("Bash", {"command": command})
        assert "the lock of a git command that may still run" in said, command
        lock.unlink()
        time.sleep(0.02)
        lock.touch()
    assert me.denied("Bash", {"command": "rm -f .git/index.lock"})
    assert me.runs("rm -f .git/index.lock") == "" and not lock.exists()
    lock.touch()
    os.utime(lock, (time.time() - 3600,) * 2)
    assert me.runs("rm -f .git/index.lock") == "", "an old one, and no git runs here"


GIT_LOCKS = {
    "HEAD.lock": "rm -f .git/HEAD.lock",
    "config.lock": "rm .git/config.lock",
    "refs/heads/main.lock": "find .git/refs -name '*.lock' -delete",
    "worktrees/wt/index.lock": "rm -f .git/worktrees/wt/index.lock",
    "packed-refs.lock": "find . -name '*.lock' -exec rm -f {} +",
}


@pytest.mark.parametrize("name", GIT_LOCKS)
def test_the_other_locks_of_git_s_are_held_alike(name: str, repo: Path) -> None:
    git(repo, "worktree", "add", "-q", "wt", "other")
    me, _peer = Player("codex", repo), Player("claude-code", repo / "wt" if "wt" in name else repo)
    lock = repo / ".git" / name
    assert me.denied("Bash", {"command": GIT_LOCKS[name]}) == "", "there is none"
    lock.touch()
    said = me.denied("Bash", {"command": GIT_LOCKS[name]})
    assert f"would remove {lock}, the lock of a git command" in said, said
    assert me.denied("Bash", {"command": GIT_LOCKS[name]}) == "", "it has been told"


def test_commits_that_only_this_head_has_are_named(repo: Path) -> None:
    me, peer = Player("codex", repo), Player("claude-code", repo)
    git(repo, "switch", "-q", "--detach")
    git(repo, "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    name = git(repo, "rev-parse", "--short", "HEAD").strip()
    said = me.denied("Bash", {"command": "git checkout other"})
    assert f'1 commit there is on no other branch or tag: {name} "Parse empty lines"' in said, said
    assert f"branch NAME {name}` keeps the commits" in said
    assert me.denied("Bash", {"command": "git checkout other"}) == ""
    git(repo, "commit", "-q", "--allow-empty", "-m", "More lines")
    assert '"More lines"' in me.denied("Bash", {"command": "git reset --hard other"}), "that is news"
    git(repo, "switch", "-qC", "feature")
    assert me.denied("Bash", {"command": "git checkout other"}) == "", "the branch has them"
    git(repo, "commit", "-q", "--allow-empty", "-m", "Third lines")
    assert '"Third lines"' in me.denied("Bash", {"command": "git reset --hard HEAD~1"})
    assert me.runs("git commit -q --allow-empty -m mine") == "" and peer.session_id
    assert "mine" not in me.denied("Bash", {"command": "git reset --soft HEAD~1"}), "its own commit"


def test_a_branch_of_another_work_tree_is_moved_at_the_second_attempt(repo: Path) -> None:
    git(repo, "worktree", "add", "-q", "wt", "other")
    git(repo / "wt", "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    me, _peer = Player("codex", repo), Player("claude-code", repo / "wt")
    for command in ("git update-ref -d refs/heads/other", "git -C wt reset --hard HEAD~1"):
        said = me.denied("Bash", {"command": command})
        assert "claude-code" in said and '"Parse empty lines"' in said, said
        assert me.denied("Bash", {"command": command}) == ""
        git(repo / "wt", "commit", "-q", "--allow-empty", "-m", "Parse empty lines")


def test_a_commit_from_a_private_index_that_is_older_than_head_is_denied_once(repo: Path) -> None:
    me, _peer = Player("codex", repo), Player("claude-code", repo)
    commit = "GIT_INDEX_FILE=.git/mine git commit -qm mine"
    assert me.runs("GIT_INDEX_FILE=.git/mine git read-tree HEAD") == ""
    os.utime(repo / ".git" / "mine", (time.time() - 60,) * 2)
    git(repo, "commit", "--allow-empty", "-qm", "theirs")
    assert "read-tree HEAD" in me.denied("Bash", {"command": commit})
    assert me.denied("Bash", {"command": commit}) == ""
    assert me.denied("Bash", {"command": f"export GIT_INDEX_FILE=.git/mine; git read-tree HEAD; {commit}"}) == ""


def test_a_pop_after_a_stash_with_nothing_in_it_is_denied_once(repo: Path) -> None:
    me, _peer = Player("codex", repo), Player("claude-code", repo)
    (repo / "notes.md").write_text("a person's\n")
    git(repo, "stash", "-q")
    command = "git stash && git log -1 && git stash pop"
    assert "had nothing to put aside" in me.denied("Bash", {"command": command})
    assert me.denied("Bash", {"command": command}) == ""
    (repo / "other.md").write_text("mine\n")
    assert me.denied("Bash", {"command": command}) == "", "it has something to put aside"


def test_notes_go_with_their_session_and_after_a_day(repo: Path) -> None:
    me = Player("codex", repo)
    _turns(me)
    assert heads.noted("codex", me.session_id, str(repo)) is not None
    heads.forget("codex", me.session_id)
    assert heads.noted("codex", me.session_id, str(repo)) is None
    heads.note_move("codex", me.session_id, str(repo), "switch", Head("main", ""))
    heads.prune(time.time() + 2 * heads.DAY_SECONDS)
    assert not os.path.exists(heads.heads_dir(str(repo)))


@pytest.mark.parametrize("state", ["detached", "unborn", "linked", "broken", "bare ref"])
def test_head_is_read_in_every_state(state: str, repo: Path, tmp_path: Path) -> None:
    top = repo
    if state == "detached":
        git(repo, "checkout", "-q", "--detach")
        expected: Head | None = Head("", git(repo, "rev-parse", "HEAD").strip())
    elif state == "unborn":
        git(repo, "switch", "-q", "--orphan", "new")
        expected = Head("new", "")
    elif state == "linked":
        git(repo, "worktree", "add", "-q", "../tree", "other")
        top = tmp_path.resolve() / "tree"
        expected = Head("other", git(repo, "rev-parse", "other").strip())
    elif state == "broken":
        (repo / ".git" / "HEAD").write_text("")
        expected = None
    else:
        (repo / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
        expected = None
    assert heads.read(str(top)) == expected


def test_what_git_s_local_files_hide_is_told_once(repo: Path) -> None:
    me = Player("codex", repo)
    assert _turns(me) == ""
    (me.folder / "idea.md").write_text("an idea\n")
    excluding = me.folder / ".git" / "info" / "exclude"
    excluding.parent.mkdir(exist_ok=True)
    some_time_passes()
    excluding.write_text("idea.md\n")
    assert "hides from `git status`: idea.md." in _turns(me) and _turns(me) == ""
    excluding.write_text("# nothing\n")
    assert _turns(me) == ""
    (excluding.parent / "attributes").write_text("*.md merge=ours\n")
    assert "info/attributes has changed" in _turns(me) and _turns(me) == ""
    git(me.folder, "config", "user.name", "another")
    assert _turns(me) == ""
    git(me.folder, "config", "core.worktree", str(me.folder.parent))
    assert "core.worktree of this repository is" in _turns(me) and _turns(me) == ""
