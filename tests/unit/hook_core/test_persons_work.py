"""A person's uncommitted work beside one session: commands that would lose it, and those that may pass."""

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.files import folder_at, text_at
from support.sessions import captured, run
from support.traced import Player, git, lines_of, lost_in, notes_an_end
from support.world import commit_all, saves, some_time_passes, typed

from swarm_hook_core.traces import pruning
from swarm_hook_core.traces.versions import notes
from swarm_hook_core.watching.records import read

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

AFTERNOON = "alpha\nbeta\nafter\nnoon\nof\nwork\ngamma\n"


@pytest.fixture
def me(work: Path) -> Player:
    """A session that is alone, in a folder where a person has changed `notes.md` and made `new.md`."""
    player = Player("codex", work)
    player.runs("ls")
    (work / "notes.md").write_text(AFTERNOON)
    (work / "new.md").write_text("one\ntwo\n")
    some_time_passes()  # more than the slack between our clock and the kernel's
    return player


DESTROYERS = {
    "checkout of a file": "git checkout -- notes.md",
    "checkout of all": "git checkout .",
    "restore": "git restore notes.md",
    "hard reset": "git reset --hard",
    "stash": "git stash",
    "stash with untracked": "git stash push -u -- new.md",
    "clean": "git clean -fd",
    "forced switch": "git switch -f main",
    "remove": "rm notes.md",
    "remove untracked": "rm -f new.md",
    "remove all": "rm -rf ./*",
    "overwrite": "echo x > notes.md",
    "overwrite an untracked file": "cat > new.md <<'EOF'\nx\nEOF",
    "copy over": "cp other.md notes.md",
    "move over": "mv other.md new.md",
    "find": "find . -name '*.md' -delete",
    "truncate": "truncate -s 0 notes.md",
    "git rm": "git rm -f notes.md",
    "in another folder": "cd sub && git checkout ..",
    "python": "python3 -c \"open('notes.md', 'w').write('x')\"",
}


@pytest.mark.parametrize("command", DESTROYERS.values(), ids=DESTROYERS)
@pytest.mark.sampled
def test_a_command_that_would_lose_a_person_s_work_is_denied_to_a_session_that_is_alone(
    command: str, me: Player, work: Path
) -> None:
    before = {path: path.read_text() for path in work.glob("*.md")}
    for _ in range(2):
        said = me.runs(command)
        assert said.startswith("denied: ") and "a person's work" in said and "protect off --for" in said
    assert {path: path.read_text() for path in work.glob("*.md")} == before
    if "new.md" not in said:
        assert "notes.md: 4 lines (3 to 6)" in said


def saved(path: Path, text: str) -> None:
    """Save a file as an editor does that reports it (`swarm-mcp lsp`)."""
    before = notes.Content(time.time_ns(), *read(str(path)))
    path.write_text(text)
    notes.note_save(str(path), before, notes.Content(time.time_ns(), *read(str(path))))


@pytest.mark.parametrize("is_written_by_session", [False, True])
@pytest.mark.parametrize("is_reported", [False, True])
def test_a_save_while_a_command_runs_is_a_person_s_if_the_editor_reports_it(
    is_reported: bool, is_written_by_session: bool, work: Path
) -> None:
    me = Player("codex", work)
    if is_written_by_session:
        me.edits("notes.md", "beta", "mine")
    me.ask("Bash", {"command": "./build --all"})  # it runs, and may write anything
    some_time_passes()
    (saved if is_reported else Path.write_text)(work / "notes.md", AFTERNOON)
    some_time_passes()
    assert me.runs("git checkout -- notes.md").startswith("denied: ") == is_reported
    assert ("notes.md" in me.runs("cat > notes.md <<'EOF'\nx\nEOF")) == is_reported


def test_a_session_s_line_stays_its_own_after_a_save(work: Path) -> None:
    me = Player("codex", work)
    me.edits("notes.md", "beta", "mine")
    me.ask("Bash", {"command": "./build --all"})
    saved(work / "notes.md", "alpha\nmine\nperson\ngamma\n")
    authors = [[one.session for one in line.authors] for line in lines_of(str(work / "notes.md"))]
    assert authors == [[], [("codex", me.session_id)], [("", "")], []]


@pytest.mark.parametrize("command", DESTROYERS.values(), ids=DESTROYERS)
@pytest.mark.sampled
def test_the_session_s_own_work_may_go(command: str, work: Path) -> None:
    me = Player("codex", work)
    assert me.edits("notes.md", "beta", "mine") == me.writes("new.md", "one\ntwo\n") == ""
    assert me.runs(command) == ""


PASSES = {
    "looks": ["cat notes.md", "git status --short", "git diff", "ls"],
    "an edit": ["sed -i s/alpha/ALPHA/ notes.md", "echo more >> notes.md"],
    "adds": ["git add notes.md", "echo x > own.md && git add own.md", "git reset -q"],
    "takes back own files": ["echo x > own.md", "echo y > own.md", "rm own.md"],
    "moves it": ["mv notes.md moved.md"],
    "stashes own": ["echo x > own.md", "git stash push -q -u -- own.md", "git stash pop -q"],
    "another file": ["git checkout -- other.md", "rm -f missing.md", "git stash list", "git clean -n"],
    "switches": ["git switch -c side", "git switch main"],
    "overwrites what it has read": ["cat notes.md", "echo x > notes.md"],
}


@pytest.mark.parametrize("commands", PASSES.values(), ids=PASSES)
@pytest.mark.sampled
def test_what_loses_nothing_of_a_person_passes_in_silence(commands: list[str], me: Player) -> None:
    for command in commands:
        assert me.runs(command) == "", command


ALONG = {
    "adds and commits": ["git add -A", "git commit -qm all", "git checkout -- notes.md"],
    "all in one": ["git add -A && git -c user.name=t -c user.email=t@t commit -qm all && git reset --hard"],
    "commits all": ["git commit -qam all", "git checkout -- notes.md"],
    "commits a file": ["git commit -qm one notes.md", "git checkout -- notes.md"],
    "commits what is staged": ["git add notes.md", "git commit -qm one", "git checkout -- notes.md"],
}


@pytest.mark.parametrize("commands", ALONG.values(), ids=ALONG)
@pytest.mark.sampled
def test_a_person_s_work_goes_along_once_the_session_was_told(commands: list[str], me: Player, work: Path) -> None:
    git(work, "config", "user.name", "t")
    git(work, "config", "user.email", "t@t")
    told = []
    for command in commands:
        said = me.runs(command)
        if said:
            told.append(said)
            assert me.runs(command) == "", command
    assert len(told) == 1 and told[0].startswith("denied: ") and "notes.md: 4 lines (3 to 6)" in told[0], told
    assert "`swarm-mcp commit -m TEXT [FILE...]`" in told[0] and "the same command again goes ahead" in told[0]


def test_own_work_is_committed_in_silence(work: Path) -> None:
    me = Player("codex", work)
    git(work, "config", "user.name", "t")
    git(work, "config", "user.email", "t@t")
    assert me.edits("notes.md", "beta", "mine") == me.writes("new.md", "one\ntwo\n") == ""
    for command in ("git add -A", "git commit -qm all", "echo x > new.md", "git commit -qam more"):
        assert me.runs(command) == "", command


def test_what_passes_is_kept_first(me: Player, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in ("notice", "off"):
        (work / "notes.md").write_text(AFTERNOON)
        (work / "new.md").write_text("one\ntwo\n")
        monkeypatch.setenv("SWARM_AUTO", level)
        said = me.runs("git checkout . && git clean -fdq")
        assert not said.startswith("denied") and ("notes.md: 4 lines" in said) is (level == "notice")
        assert not (work / "new.md").exists()
        assert lost_in(work) == {"notes.md": AFTERNOON.encode(), "new.md": b"one\ntwo\n"}


def test_older_lines_of_a_person_stay_theirs_in_a_file_that_the_session_edits(me: Player, work: Path) -> None:
    assert me.edits("notes.md", "gamma", "mine") == ""
    said = me.runs("git checkout -- notes.md")
    assert said.startswith("denied: ") and "notes.md: 4 lines (3 to 6)" in said
    assert me.edits("new.md", "two", "2") == ""
    assert "new.md: 1 line (1)" in me.runs("rm new.md")


def test_a_person_s_later_change_of_the_session_s_file_is_theirs(work: Path) -> None:
    me = Player("claude-code", work)
    me.edits("notes.md", "beta", "mine")
    me.runs("git status")
    (work / "notes.md").write_text(AFTERNOON)
    assert me.runs("git checkout .").startswith("denied: ")


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_whole_file_is_overwritten_only_after_it_was_read(runtime: str, work: Path) -> None:
    me = Player(runtime, work)
    me.runs("ls")
    (work / "notes.md").write_text(AFTERNOON)
    said = me.writes("notes.md", "other\n")
    assert said.startswith("denied: ") and "`cat notes.md`" in said and "(3 to 6)" in said
    assert me.writes("notes.md", "other\n").startswith("denied: "), "the same again"
    assert me.writes("notes.md", AFTERNOON + "more\n") == "", "it keeps the lines"
    (work / "notes.md").write_text(AFTERNOON + "and more\n")
    me.runs("sed -n 1,200p notes.md")
    assert me.writes("notes.md", "other\n") == ""


# Earlier commands, the file that is replaced or removed then -> True if git is asked about it.
ASKS = {
    "a new file": ([], "fresh.txt", False),
    "its own file": (["write: fresh.txt"], "fresh.txt", False),
    "its own file again": (["write: fresh.txt", "write: fresh.txt"], "fresh.txt", False),
    "its own file in the place of another": (["cat notes.md", "write: notes.md"], "notes.md", False),
    "a file that it has read": (["cat notes.md"], "notes.md", False),
    "an unread file": ([], "notes.md", True),
    "a file of its own with a person's lines": (["edit: notes.md"], "notes.md", True),
    "its own file, changed by a person": (["write: notes.md", "person: notes.md"], "notes.md", True),
}


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize("case", ASKS)
@pytest.mark.sampled
def test_git_is_asked_only_about_files_that_the_session_does_not_know(
    case: str, runtime: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Player(runtime, work)
    me.runs("ls")
    saves(work / "notes.md", AFTERNOON)
    deeds, name, asks = ASKS[case]
    for deed in deeds:
        kind, _, file = deed.rpartition(": ")
        if kind == "write":
            me.writes(file, f"of mine {time.time()}\n")
        elif kind == "edit":
            assert me.edits(file, "gamma", "mine") == ""
        elif kind == "person":
            saves(work / file, AFTERNOON)
        else:
            assert me.runs(deed) == ""
    started: list[list[str]] = []
    spawn = os.posix_spawnp

    def noted(program: str, argv: list[str], *rest: Any, **more: Any) -> int:
        started.append(argv)
        return spawn(program, argv, *rest, **more)

    monkeypatch.setattr(os, "posix_spawnp", noted)
    place = str(work / name) if runtime == "claude-code" else name
    assert bool(me.denied(*me.writing(place, "another text\n"))) is asks and bool(started) is asks, started
    started.clear()
    if "read" not in case and "new" not in case:
        assert bool(me.denied("Bash", {"command": f"rm {name}"})) is asks and bool(started) is asks, started


@pytest.mark.parametrize(
    ("entry", "mode", "decision"),
    [
        ("cli", "default", "ask"), ("cli", "acceptEdits", "ask"), ("cli", "bypassPermissions", "ask"),
        ("cli", "auto", "ask"), ("cli", "dontAsk", "deny"), ("sdk-cli", "default", "deny"),
    ],
)  # fmt: skip
def test_claude_code_asks_its_user_only_at_a_terminal(entry: str, mode: str, decision: str, work: Path) -> None:
    """Contents that the person may let go are kept before the question; denied files stay."""
    me = Player("claude-code", work)
    me.runs("ls")
    saves(work / "notes.md", AFTERNOON)
    payload = captured("claude-code", "PreToolUse.Bash", work, session_id=me.session_id)
    payload.update(cwd=str(work), permission_mode=mode, tool_input={"command": "git checkout -- notes.md"})
    ran = run("claude-code", "pre_tool_use", payload, {"CLAUDE_CODE_ENTRYPOINT": entry, "SWARM_MCP_BIN": ""})
    answer = json.loads(ran.out)["hookSpecificOutput"]
    assert answer["permissionDecision"] == decision
    assert ("discard 4 uncommitted lines of" in answer["permissionDecisionReason"]) is (decision == "ask")
    assert lost_in(work) == ({"notes.md": AFTERNOON.encode()} if decision == "ask" else {})


def test_what_was_read_and_is_overwritten_is_kept(me: Player, work: Path) -> None:
    (work / ".gitignore").write_text(".env\n")
    saves(work / ".env", "KEY=1\n")
    me.runs("cat .env notes.md")
    assert me.runs("echo x > .env; echo x > notes.md") == ""
    kept = lost_in(work)
    assert kept[".env"] == b"KEY=1\n" and kept["notes.md"] == AFTERNOON.encode()


def test_the_denial_names_the_same_command_for_the_session_s_own_files(me: Player, work: Path) -> None:
    me.edits("other.md", "beta", "mine")
    said = me.runs("git checkout .")
    assert "`git checkout -- other.md`" in said and "other.md:" not in said
    assert me.runs("git checkout -- other.md") == "" and "mine" not in (work / "other.md").read_text()


@pytest.mark.parametrize("command", ["git clean -fdq", "rm -rf out", "git checkout .", "rm out/a.txt"])
def test_what_a_command_of_the_session_has_made_is_its_own(command: str, work: Path) -> None:
    (work / "gen.py").write_text("import os; os.makedirs('out', exist_ok=True); open('out/a.txt', 'w').write('x')\n"
                                 "open('notes.md', 'a').write('generated')\n")  # fmt: skip
    git(work, "add", "gen.py")
    git(work, "commit", "-qm", "gen")
    me = Player("codex", work)
    me.runs("python3 gen.py")
    assert me.runs(command) == ""


def test_ignored_files_are_not_protected_but_kept(me: Player, work: Path) -> None:
    (work / ".gitignore").write_text(".env\n")
    (work / ".env").write_text("KEY=1\n")
    assert me.runs("rm .env") == "" and not (work / ".env").exists()
    pruning.prune_versions(time.time())
    assert lost_in(work) == {".env": b"KEY=1\n"}


def test_outside_of_a_repository_nothing_is_protected(me: Player, tmp_path: Path) -> None:
    file = text_at(tmp_path / "list.txt", "x\n")
    assert me.runs(f"rm {shlex.quote(str(file))}") == ""


OWN_SWEEPS = (
    "git checkout -- other.md", "git checkout .", "git restore other.md", "git reset --hard -q", "git stash -qu",
    "git switch -q -f -c side", "rm other.md", "echo y > other.md",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("begin", ["", "git checkout -q -f HEAD; "])
def test_a_session_alone_may_throw_away_its_own_again_and_again(me: Player, work: Path, begin: str) -> None:
    git(work, "checkout", "-q", "-f", "HEAD")  # the person's work is gone
    git(work, "clean", "-fdq")
    for command in OWN_SWEEPS:
        assert me.runs(f"{begin}printf 'alpha\nMINE\nMORE\n' > other.md; echo x > own.md") == ""
        assert me.runs(command) == "", command


def test_of_two_sessions_each_may_throw_away_its_own(me: Player, work: Path) -> None:
    peer = Player("claude-code", work)
    assert peer.edits("other.md", "beta", "PEER") == ""
    said = me.runs("git checkout -- other.md")
    assert said.startswith("denied: ") and "person" not in said.split("Past this")[0]
    assert peer.runs("git checkout -- other.md") == ""
    assert peer.runs("git checkout -- notes.md").startswith("denied: ")


@pytest.mark.parametrize("level", ["keep", "turn"])
def test_a_session_alone_may_replace_what_its_command_has_shown(level: str, work: Path, monkeypatch) -> None:
    """At `turn` each command is parsed, also without company."""
    monkeypatch.setenv("SWARM_AUTO", level)
    (work / "notes.md").write_text("a person's\n")
    me = Player("codex", work)
    assert me.writes("notes.md", "mine\n").startswith("denied: ")
    assert me.runs("cat notes.md") == "" == me.writes("notes.md", "mine\n")


# commands before, each of a person or of the session; the command -> denied "always", "once", or "" for never
STASHES = {
    "dropped": (["person: git stash -q"], "git stash drop", "always"),
    "cleared": (["person: git stash -qu"], "git stash clear", "always"),
    "popped": (["person: git stash -q"], "git stash pop", "once"),
    "to a branch": (["person: git stash -q"], "git stash branch side", "once"),
    "popped by number": (["person: git stash -q", "me: echo x >> other.md && git stash -q"], "git stash pop 1", "once"),
    "after an empty stash": (["person: git stash -q"], "git stash && git log -1 && git stash pop", "once"),
    "its own above it": (["person: git stash -q", "me: echo x >> other.md && git stash -q"], "git stash drop", ""),
    "made and popped in one call": (["person: git stash -q"], "echo x >> other.md; git stash && git stash pop", ""),
    "applied": (["person: git stash -q"], "git stash apply", ""),
    "shown": (["person: git stash -q"], "git stash show -p", ""),
    "no such entry": (["person: git stash -q"], "git stash drop 7", ""),
    "its own": (["me: echo x >> other.md && git stash -q -- other.md"], "git stash drop", ""),
    "made by its script": (["me: echo x >> other.md; sh -c 'git stash -q -- other.md'"], "git stash drop", ""),
}  # fmt: skip


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside a peer"])
@pytest.mark.parametrize("case", STASHES)
@pytest.mark.sampled
def test_a_stash_entry_that_no_session_has_made_is_a_person_s(
    case: str, is_alone: bool, me: Player, work: Path
) -> None:
    deeds, command, denied = STASHES[case]
    git(work, "config", "user.name", "t")
    git(work, "config", "user.email", "t@t")
    if not is_alone:
        assert Player("claude-code", work).runs("ls > list.txt; rm list.txt") == ""
    for deed in deeds:
        who, _, words = deed.partition(": ")
        if who == "me":
            assert me.runs(words) == "", words
        else:  # an entry's time is in whole seconds
            past = {
                **os.environ,
                "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
                "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
            }
            paths = ["--", "notes.md"]
            if "-qu" in words:
                paths.append("new.md")
            subprocess.run([*words.replace("stash", "stash push").split(), *paths], cwd=work, env=past, check=True)
    said = me.denied("Bash", {"command": command})
    assert bool(said) is bool(denied), said
    again = me.runs(command)
    assert again.startswith("denied: ") is (denied == "always"), again
    if denied:
        assert "No session at work has made it" in said and "notes.md" in said and "stash@{" in said
        assert ("the same command again goes ahead" in said) is (denied == "once")
        assert ("had nothing to put aside" in said) is ("empty" in case)
    if denied == "once":
        assert lost_in(work)["notes.md"] == AFTERNOON.encode()


def test_entries_that_pass_are_kept_with_all_their_files(me: Player, work: Path, monkeypatch) -> None:
    git(work, "stash", "-q", "-u")
    monkeypatch.setenv("SWARM_PROTECT", "notice")
    assert "No session at work has made" in me.runs("git stash clear")
    assert lost_in(work) == {"notes.md": AFTERNOON.encode(), "new.md": b"one\ntwo\n"}


LINK, CHANGED_LINK = "ln -s mine.md link", "ln -sf mine.md known"
SUBMODULE, MODE, IGNORED = 'echo "a person\'s" > mod/f.md', "chmod 755 notes.md", 'echo "a person\'s" > trace.log'
INTENDED = 'echo "a person\'s" > intended.md; git add -N intended.md'
SPARSE = "git sparse-checkout set --no-cone '/*' '!/sub/'"
ODD = {
    # the person's work, a command that leaves it alone, one that loses it (if any)
    "link beside its target": (LINK, "git stash push -- mine.md", "git stash -u"),
    "link, reset": (LINK, "git checkout -- mine.md", "git clean -fd"),
    "link, removed": (LINK, "git restore mine.md", "rm link"),
    "changed link": (CHANGED_LINK, "git checkout HEAD -- mine.md", "git checkout ."),
    "changed link, stash": (CHANGED_LINK, "git stash push -- mine.md", "git stash"),
    "submodule": (SUBMODULE, "git checkout .", "git -C mod checkout ."),
    "submodule, removed": (SUBMODULE, "git stash", "rm -rf mod"),
    "submodule, forced": (SUBMODULE, "git clean -fd", "git submodule deinit -f mod"),
    "mode alone": (MODE, "git stash push -- mine.md", "git stash"),
    "mode alone, checkout": (MODE, "git checkout -- mine.md", "git checkout ."),
    "ignored": (IGNORED, "git stash -u", ""),
    "ignored, clean": (IGNORED, "git clean -fdx", ""),
    "intent to add": (INTENDED, "git checkout -- mine.md", "git reset --hard"),
    "intent to add, removed": (INTENDED, "git restore mine.md", "rm -f intended.md"),
    "sparse": (SPARSE, "git checkout .", ""),
    "sparse, reset": (SPARSE, "git reset --hard", ""),
    "sparse, stash": (SPARSE, "git stash", ""),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("loses", [False, True], ids=["passes", "denied"])
@pytest.mark.sampled
def test_links_submodules_modes_and_the_like(case: str, loses: bool, work: Path, tmp_path: Path) -> None:
    """The session has changed `mine.md` itself; a person's odd change beside it is protected, and nothing else."""
    made, passing, losing = ODD[case]
    (work / "mine.md").write_text("committed\n")
    (work / "known").symlink_to("notes.md")
    (work / ".gitignore").write_text("*.log\n")
    if made == SUBMODULE:
        inner = folder_at(tmp_path / "inner")
        git(inner, "init", "-q")
        (inner / "f.md").write_text("f\n")
        commit_all(inner, "f")
        git(work, "submodule", "add", "-q", str(inner), "mod")
    commit_all(work, "more")
    me = Player("codex", work)
    me.writes("mine.md", "my own\n")
    me.runs("ls")
    typed(work, made)
    some_time_passes()
    if loses and losing:
        said = me.denied("Bash", {"command": losing})
        assert "a person's work" in said, (losing, said)
    elif not loses:
        assert me.denied("Bash", {"command": passing}) == "", passing


def test_a_line_that_a_person_has_removed_beside_the_session_s_own_stays_removed(work: Path) -> None:
    me = Player("codex", work)
    saves(work / "notes.md", "beta\ngamma\n")
    assert me.edits("notes.md", "gamma", "MINE") == ""
    assert "notes.md: 1 line taken out" in me.runs("git checkout -- notes.md")
    assert (work / "notes.md").read_text() == "beta\nMINE\n"


def test_a_person_s_line_in_a_file_that_a_command_of_the_session_has_added_to(work: Path) -> None:
    me = Player("codex", work)
    saves(work / "notes.md", "alpha\nbeta\ngamma\na person's\n")
    assert me.runs("echo mine >> notes.md") == ""
    assert "notes.md: 1 line (4)" in me.runs("git checkout -- notes.md")
    assert "a person's" in (work / "notes.md").read_text()


def test_an_alias_that_takes_a_person_s_entry_out_of_the_stash(me: Player, work: Path) -> None:
    git(work, "stash", "-q")
    git(work, "config", "alias.unstash", "stash pop")
    git(work, "config", "alias.forget", "stash drop")
    assert "No session at work has made it" in me.runs("git unstash") and "notes.md" in me.runs("git forget")


@pytest.mark.parametrize("command", ["rm notes.md", "rm -r *.md"])
def test_a_person_s_line_in_a_file_of_another_session_is_protected(command: str, work: Path) -> None:
    """A look at another session's change lets a removal pass; a person's line needs the person."""
    me, peer = Player("codex", work), Player("claude-code", work)
    assert peer.edits("notes.md", "beta", "PEER") == ""
    notes_an_end()
    some_time_passes()
    saves(work / "notes.md", "alpha\nPEER\ngamma\na person's\n")
    me.runs("cat notes.md")
    for _ in range(2):
        said = me.runs(command)
        assert said.startswith("denied: ") and "notes.md: 1 line (4)" in said, said


def test_a_refusal_names_all_owners_of_a_file_as_blame_does(work: Path) -> None:
    me, first, last = Player("codex", work), Player("claude-code", work), Player("codex", work)
    assert first.edits("notes.md", "beta", "FIRST") == ""
    notes_an_end()
    some_time_passes()
    saves(work / "notes.md", "alpha\nFIRST\ngamma\na person's\n")
    last.edits("notes.md", "gamma", "LAST")
    some_time_passes()
    for said in (me.runs("git checkout ."), me.denied(*me.writing("notes.md", "other\n"))):
        assert all(owner in said for owner in ("(by codex", "has lines of claude-code", "a person")), said


def test_a_refusal_for_a_person_s_file_names_the_sessions_whose_files_would_go_too(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    assert peer.edits("other.md", "beta", "PEER") == ""
    saves(work / "notes.md", AFTERNOON)
    said = me.runs("git checkout .")
    assert "would throw away others' uncommitted changes: " in said and "other.md (by claude-code" in said
    assert "a person's work that is not committed: notes.md: 4 lines (3 to 6)" in said


@pytest.mark.parametrize("command", ["git add -A", "git commit -qam all"])
def test_a_command_that_takes_work_of_all_along_is_denied_once(command: str, work: Path) -> None:
    """Its denial says that the same command again goes ahead."""
    me, peer = Player("codex", work), Player("claude-code", work)
    assert me.edits("sub/deep.md", "beta", "MINE") == peer.edits("other.md", "beta", "PEER") == ""
    saves(work / "notes.md", AFTERNOON)
    said = me.runs(command)
    assert "a person's work" in said and "other.md (by claude-code" in said and "same command again goes ahead" in said
    assert not me.runs(command).startswith("denied: ")


@pytest.mark.parametrize(
    "command", ["rm -f new.md", "git clean -fdx", "git clean -fdX", "rm -rf ./*", "echo x > new.md"]
)
@pytest.mark.sampled
def test_a_file_that_was_hidden_from_git_is_still_its_person_s(command: str, me: Player, work: Path) -> None:
    assert me.runs("echo new.md >> .git/info/exclude") == ""
    (work / "cache").mkdir()
    assert me.runs("echo cache/ >> .git/info/exclude") == ""
    saves(work / "cache" / "made later", "x\n")
    said = me.runs(command)
    assert said.startswith("denied: ") and "new.md" in said and "a person's work" in said
    assert (work / "new.md").read_text() == "one\ntwo\n"
    assert me.runs("git clean -fdx -- cache") == "" and me.runs("git clean -fd -- new.md") == ""


def test_what_a_rule_of_all_hides_is_a_cache_as_before(me: Player, work: Path) -> None:
    (work / ".gitignore").write_text("new.md\n")
    saves(work / ".git" / "info" / "exclude", "new.md\n")
    assert me.runs("rm -f new.md") == ""
