"""The guard: git refuses to commit and push files of another holder, and other hooks still work."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.altered import Listening
from support.files import files_at, folder_at, program_at, text_at
from support.fixtures import SWARM, Ground
from support.sessions import ROOT, fault_lines
from support.traced import note

from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces import place_of
from swarm_mcp.guard import hooks
from swarm_mcp.guard.check import refusals
from swarm_mcp.store.database import Database

pytestmark = pytest.mark.slow

RECORDS = '#!/bin/sh\necho "$(basename "$0") $*" >> "{log}"\ncat >> "{log}"\n{then}\n'


class Repo:
    """A real repository with one commit, and a person's work in it."""

    def __init__(self, top: Path, ground: Ground):
        self.top = top
        self.ground = ground

    def git(self, *words: str, ok: bool = True, **env: str) -> subprocess.CompletedProcess:
        done = subprocess.run(
            ["git", *words], cwd=self.top, capture_output=True, text=True, timeout=60, env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not ok or done.returncode == 0, done
        return done

    def commit(self, *names: str, **env: str) -> subprocess.CompletedProcess:
        """Change these files and try to commit everything."""
        for name in names:
            folder_at((self.top / name).parent)
            with (self.top / name).open("a") as file:
                file.write("x\n")
        self.git("add", "-A")
        return self.git("commit", "-m", "change", ok=False, **env)

    def guard(self, *words: str):
        """The command as a person gives it, while sessions are at work."""
        with pytest.MonkeyPatch.context() as person:
            person.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
            return self.ground.swarm("guard", *words, cwd=self.top)

    def insides(self) -> dict[str, bytes | None]:
        """Every file of the git folder that holds settings or hooks, and every file of the work tree."""
        kept = [self.top / ".git" / name for name in ("config", "hooks", "swarm-hooks", "swarm-guard.json")]
        found: dict[str, bytes | None] = {}
        for path in [*kept, *(p for p in self.top.iterdir() if p.name != ".git")]:
            for file in [path, *(path.rglob("*") if path.is_dir() else ())]:
                if file.exists():
                    found[str(file)] = file.read_bytes() if file.is_file() else None
        return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of each test, to be copied."""
    top = tmp_path_factory.mktemp("guarded")
    (top / "docs").mkdir()
    files_at(top, dict.fromkeys(("a.txt", "b.txt", "docs/c.txt"), "1\n"))
    person = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*person, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=top, check=True)
    return top


@pytest.fixture
def repo(ground: Ground, template: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    for name, value in {"AUTHOR": "A", "COMMITTER": "C"}.items():
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    shutil.rmtree(ground.repo)
    shutil.copytree(template, ground.repo, symlinks=True)
    return Repo(ground.repo, ground)


@pytest.fixture
def peer(repo: Repo) -> dict:
    """A session that holds a.txt."""
    row = repo.ground.session("peer", "identity:w claude-code platform:cli")
    repo.ground.lock(row, str(repo.top / "a.txt"), "renumbering")
    return row


def user_hook(folder: Path, name: str, log: Path, then: str = "") -> None:
    program_at(folder / name, RECORDS.format(log=log, then=then))


def test_only_the_locks_on_what_is_committed_are_read(repo: Repo, peer: dict, listening: Listening):
    for number in range(200):
        file = f"{repo.top}/src/{number}.py"
        columns = {"scope": repo.ground.scope, "instance_id": peer["id"], "type": "lock", "content": ""}
        repo.ground.add("context", id=f"lock-{number}", file=file, path_key=file, **columns)
    read = listening(Database, "rows")
    files_at(repo.top, dict.fromkeys(("a.txt", "docs/c.txt", "src/7.py"), "other words\n"))
    repo.git("add", "-A")
    found = refusals("pre-commit", str(repo.top))
    assert [refusal.file for refusal in found] == ["a.txt", "src/7.py"] and sum(len(call.result) for call in read) < 50


def test_a_person_s_commit_of_a_held_file_is_refused_and_says_by_whom(repo: Repo, peer: dict):
    assert repo.guard("install").code == 0
    before = repo.git("rev-parse", "HEAD").stdout
    done = repo.commit("a.txt", "b.txt")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "swarm guard: commit refused: a file is held by another session" and len(lines) <= 4
    assert "a.txt: held by claude-code " in lines[1] and '(note: "renumbering"; locked ' in lines[1]
    assert lines[1].endswith(" ago)")
    assert "SWARM_GUARD=off git commit" in lines[-1]
    assert repo.git("rev-parse", "HEAD").stdout == before
    repo.git("restore", "--staged", "a.txt")
    assert repo.git("commit", "-m", "only b").returncode == 0, "what nobody holds can be committed"
    repo.git("add", "-A")
    assert repo.git("commit", "-m", "x", SWARM_GUARD="off").returncode == 0, "the way past it, once"
    assert repo.commit("a.txt").returncode == 1
    assert repo.git("commit", "--no-verify", "-m", "x").returncode == 0


@pytest.fixture
def traces(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Live sessions of Codex that have changed files without a lock: a function of the session and its files."""
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "state"))

    def wrote(who: str, *names: str) -> dict:
        row = repo.ground.session(who, f"identity:w codex session:{who}", runtime="codex")
        for name in names:
            note(who, str(repo.top), "wrote", str(repo.top / name), time.time())
        return row

    return wrote


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["beside", "dispatcher"])
def test_with_auto_a_commit_meets_what_others_have_changed_without_a_lock(repo: Repo, traces, monkeypatch, way):
    if way == "dispatcher":
        user_hook(repo.top / ".git/hooks", "pre-commit", repo.top.parent / "log")
    assert repo.guard("install", "--auto").code == 0
    for level, refused in (("off", False), ("notice", False), ("keep", False), ("turn", True)):
        monkeypatch.setenv("SWARM_AUTO", level)
        traces("theirs", "a.txt", "b.txt")  # a committed change has no owner any more
        done = repo.commit("a.txt", "docs/c.txt")
        assert (done.returncode == 1) is refused, level
        said = "a.txt: changed by codex theirs " in done.stderr
        assert said is (level != "off") and "b.txt" not in done.stderr and "docs" not in done.stderr
        assert ("SWARM_GUARD=off git commit" in done.stderr) is refused
    assert done.stderr.startswith(
        "swarm guard: commit refused: a staged file has uncommitted changes of other sessions\n"
    )
    assert repo.git("commit", "-m", "x", CODEX_THREAD_ID="theirs").returncode == 0, "its own"
    assert repo.commit("a.txt", SWARM_GUARD="off").returncode == 0
    assert repo.commit("docs/c.txt").returncode == 0, "nobody else's"
    traces("theirs", "a.txt")
    assert repo.commit("a.txt").returncode == 1
    assert repo.guard("install").code == 0, "without --auto it is as before"
    assert repo.git("commit", "-m", "x").stderr == ""


def test_what_auto_finds_as_json_and_for_a_session(repo: Repo, traces, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_AUTO", "turn")
    row, mine = traces("theirs", "a.txt", "b.txt"), traces("mine", "docs/c.txt")
    files_at(repo.top, dict.fromkeys(("a.txt", "b.txt", "docs/c.txt"), "2\n"))
    repo.git("add", "-A")
    done = repo.guard("check", "--auto", "--json", "--as", mine["id"])
    changed = {(one["file"], one["instance_id"]) for one in done.json["changed"]}
    assert done.code == 1 and not done.json["ok"] and not done.json["held"]
    assert changed == {(str(repo.top / name), row["id"]) for name in ("a.txt", "b.txt")}
    assert "changed" not in repo.guard("check", "--json", "--as", mine["id"]).json
    traces("mine", "a.txt", "b.txt")
    done = repo.guard("check", "--auto", "--json", "--as", mine["id"])
    assert done.code == 0 and done.json == {"ok": True, "hook": "pre-commit", "held": [], "changed": []}
    repo.ground.sql("UPDATE swarm_sessions SET lease_seconds = 10")
    repo.ground.backdate(row, 3600)
    repo.ground.backdate(mine, 3600)
    assert repo.guard("check", "--auto").code == 0, "who has gone is not at work"


def test_auto_says_a_lock_first_and_lets_pass_where_traces_cannot_be_read(repo: Repo, peer: dict, traces, monkeypatch):
    monkeypatch.setenv("SWARM_AUTO", "turn")
    traces("theirs", "a.txt", "b.txt")
    assert repo.guard("install", "--auto").code == 0
    done = repo.commit("a.txt", "b.txt")
    assert done.returncode == 1 and "a.txt: held by" in done.stderr and "b.txt" not in done.stderr
    repo.ground.sql("DELETE FROM context")
    place = Path(place_of(str(repo.top)))
    shutil.rmtree(place)
    place.write_text("no folder")
    assert repo.git("commit", "-m", "x").returncode == 0


def test_auto_records_that_the_traces_could_not_be_read(repo: Repo, traces, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_AUTO", "turn")
    traces("theirs", "a.txt")
    (journal,) = Path(place_of(str(repo.top))).iterdir()
    journal.unlink()
    journal.mkdir()
    assert repo.guard("install", "--auto").code == 0
    assert repo.commit("a.txt").returncode == 0
    (fault,) = fault_lines()
    traces("another", "b.txt")
    (repo.top / "b.txt").write_text("once more")
    monkeypatch.setenv("SWARM_FAIL", "closed")  # is about writes: a commit is let go where nothing can be seen
    done = repo.commit("b.txt")
    assert done.returncode == 1 and "b.txt: changed by codex another" in done.stderr, "it hides no other session's"
    assert fault["runtime"] == "guard" and fault["hook"] == "pre-commit" and "NotOrdinary" in fault["fault"]


def test_what_hold_runs_commits_what_hold_keeps(repo: Repo):
    """The commit comes from the process that holds, for any session."""
    assert repo.guard("install").code == 0
    session = repo.ground.session("s", "s")
    for number, words in enumerate([("--as", session["id"]), ()]):
        (repo.top / "a.txt").write_text(f"{number}\n")
        commit = ("git", "commit", "-am", "change")
        done = repo.ground.process("hold", "a.txt", *words, "--", *commit, cwd=repo.top, stdin=subprocess.DEVNULL)
        assert done.code == 0, done
    repo.ground.lock(session, str(repo.top / "a.txt"))
    assert repo.commit("a.txt").returncode == 1


def test_the_holder_commits_its_own_files_and_sub_shells_know_it(repo: Repo, peer: dict):
    repo.guard("install")
    assert repo.commit("a.txt", CLAUDE_CODE_SESSION_ID="peer").returncode == 0
    other = repo.ground.session("other", "codex platform:cli", runtime="codex")
    assert repo.commit("a.txt", CODEX_THREAD_ID="other").returncode == 1
    assert repo.git("commit", "-m", "x", SWARM_MCP_INSTANCE_ID=peer["id"]).returncode == 0
    assert other["id"] != peer["id"]


def test_sessions_of_another_identity_and_of_the_dead(repo: Repo, peer: dict):
    (repo.top / "a.txt").write_text("2\n")
    repo.git("add", "-A")
    repo.ground.session("mine", "identity:other codex")
    done = repo.ground.swarm("guard", "check", "--as", "identity:other", cwd=repo.top)
    assert done.code == 1 and "another identity" in done.err and "renumbering" not in done.err
    repo.ground.sql("UPDATE swarm_sessions SET lease_seconds = 10")
    repo.ground.backdate(peer, 3600)
    assert repo.guard("check").code == 0, "a session that has gone holds nothing"


@pytest.mark.parametrize(
    ("locked", "change", "refused"),
    [
        ("a.txt", ["git", "rm", "-q", "a.txt"], True),
        ("a.txt", ["git", "mv", "a.txt", "z.txt"], True),
        ("z.txt", ["git", "mv", "a.txt", "z.txt"], True),
        ("docs", ["sh", "-c", "echo 2 > docs/c.txt"], True),
        ("doc", ["sh", "-c", "echo 2 > docs/c.txt"], False),
        (".", ["sh", "-c", "echo 2 > b.txt"], True),
        (".git", ["sh", "-c", "echo 2 > b.txt"], True),
        ("link/c.txt", ["sh", "-c", "echo 2 > docs/c.txt"], True),
        ("../elsewhere", ["sh", "-c", "echo 2 > b.txt"], False),
        ("a.txt", ["sh", "-c", "echo 2 > a.txt; chmod +x b.txt"], True),
    ],
)
@pytest.mark.sampled
def test_what_counts_as_held(repo: Repo, locked: str, change: list[str], refused: bool):
    os.symlink("docs", repo.ground.folder / "link")
    os.symlink(repo.top / "docs", repo.top / "link")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "link")
    row = repo.ground.session("peer")
    repo.ground.lock(row, os.path.normpath(repo.top / locked))
    subprocess.run(change, cwd=repo.top, check=True, capture_output=True)
    repo.git("add", "-A")
    done = repo.guard("check", "--json")
    assert (done.code == 1) is refused, done
    assert done.json["ok"] is not refused and bool(done.json["held"]) is refused
    if refused:
        held = done.json["held"][0]
        assert held["instance_id"] == row["id"] and held["lock"] == os.path.normpath(repo.top / locked)


def test_an_unstaged_change_of_a_held_file_stops_nobody(repo: Repo, peer: dict):
    repo.guard("install")
    (repo.top / "a.txt").write_text("half done\n")
    (repo.top / "b.txt").write_text("2\n")
    repo.git("add", "b.txt")
    assert repo.git("commit", "-m", "b").returncode == 0
    assert repo.git("commit", "-a", "-m", "all", ok=False).returncode == 1, "the index of `commit -a` is looked at"
    assert repo.git("commit", "-m", "named", "--", "a.txt", ok=False).returncode == 1


def test_pushes(repo: Repo, tmp_path: Path):
    repo.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    repo.git("push", "-q", "origin", "main")
    repo.guard("install")
    repo.commit("a.txt")
    row = repo.ground.session("peer")
    repo.ground.lock(row, str(repo.top / "a.txt"))
    done = repo.git("push", "origin", "main", ok=False)
    assert done.returncode == 1 and "swarm guard: push refused" in done.stderr and "a.txt" in done.stderr
    repo.git("checkout", "-q", "-b", "topic", "HEAD^")
    repo.commit("b.txt")
    assert repo.git("push", "-q", "origin", "topic").returncode == 0, "a new branch without the held file"
    repo.git("merge", "-q", "main", "-m", "m", SWARM_GUARD="off")
    assert repo.git("push", "origin", "topic", ok=False).returncode == 1, "now it has it"
    assert repo.git("push", "-q", "origin", "topic", SWARM_GUARD="off").returncode == 0
    assert repo.git("push", "-q", "origin", "main").returncode == 0, "the remote has these commits by now"
    repo.ground.lock(row, str(repo.top / ".git"))
    assert repo.git("push", "origin", ":topic", ok=False).returncode == 1, "the repository itself is held"


def test_whatever_is_broken_lets_the_commit_pass(repo: Repo, peer: dict, tmp_path: Path):
    repo.guard("install")
    slow = text_at(tmp_path / "slow", "#!/bin/sh\nexec sleep 30\n")
    broken = text_at(tmp_path / "broken", "#!/bin/sh\necho 'No module named swarm_mcp' >&2\nexit 1\n")
    for path in (slow, broken):
        path.chmod(0o755)
    for command in (str(broken), "/nowhere/swarm-mcp", "'"):
        assert repo.commit("a.txt", SWARM_MCP_BIN=command).returncode == 0, command
    hook = repo.top / ".git" / "hooks" / "pre-commit"
    text = hook.read_text()

    def limit(seconds: int) -> None:
        limited = text.replace("timeout -k 1 5 ", f"timeout -k 1 {seconds} ")
        hook.write_text(limited.replace("@ARGV' 5 ", f"@ARGV' {seconds} "))

    limit(1)
    assert repo.commit("a.txt", SWARM_MCP_BIN=str(slow)).returncode == 0, "time is limited"
    limit(60)
    assert repo.commit("a.txt", SWARM_DB_PATH=str(tmp_path / "none.db")).returncode == 0
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "garbage.db").write_text("no database at all, but long enough to look like one to somebody")
    assert repo.commit("a.txt", SWARM_DB_PATH=str(tmp_path / "garbage.db")).returncode == 0
    log = Path(os.environ["SWARM_STATE_DIR"]) / "faults.jsonl"
    assert '"runtime": "guard"' in log.read_text(), "it is recorded for the doctor"
    assert repo.commit("a.txt").returncode == 1, "and all the time the guard was in force"


# the place of hooks that are there before, and their names
LAYS = {
    "none": ("", ()),
    "samples": ("", ()),
    "own": (".git/hooks", ("pre-commit", "commit-msg", "pre-push", "reference-transaction")),
    "husky": (".husky/_", ("pre-commit", "commit-msg", "pre-push")),
    "shared": ("~/my hooks", ("pre-commit", "commit-msg", "pre-push")),
}


def lay_hooks(repo: Repo, lay: str, log: Path) -> None:
    place, names = LAYS[lay]
    for name in names:
        user_hook(repo.top / os.path.expanduser(place), name, log)
    if lay == "none":
        shutil.rmtree(repo.top / ".git" / "hooks")
    elif lay == "samples":
        text_at(repo.top / ".git" / "hooks" / "pre-commit.sample", "sample")
    elif lay == "husky":
        config = repo.top / ".git" / "config"
        config.write_text(config.read_text() + "[core]\n\t; by husky\n\thooksPath=.husky/_   # theirs\n")
    elif lay == "shared":
        repo.git("config", "--global", "core.hooksPath", place)


@pytest.mark.parametrize("lay", LAYS)
@pytest.mark.sampled
def test_hooks_that_are_there_run_as_before_and_uninstall_leaves_no_trace(repo: Repo, lay: str, tmp_path: Path):
    log = tmp_path / "log"
    lay_hooks(repo, lay, log)
    before = repo.insides()
    first = repo.guard("install", "--json").json
    assert first["changed"] and first["way"] == ("beside" if lay in ("none", "samples") else "dispatcher")
    assert {name: data for name, data in repo.insides().items() if name in before and "/config" not in name} == {
        name: data for name, data in before.items() if "/config" not in name
    }, "no hook and no file of the work tree is touched"
    assert repo.git("status", "--porcelain").stdout == ("?? .husky/\n" if lay == "husky" else "")
    assert repo.guard("install", "--json").json == {**first, "changed": False}, "again changes nothing"
    row = repo.ground.session("peer")
    repo.ground.lock(row, str(repo.top / "a.txt"))
    assert repo.commit("a.txt").returncode == 1
    told = log.read_text() if log.exists() else ""
    assert told.count("pre-commit \n") == (first["way"] == "dispatcher") and "commit-msg" not in told
    assert repo.git("commit", "-m", "x", SWARM_GUARD="off").returncode == 0
    told = log.read_text() if log.exists() else ""
    if first["way"] == "dispatcher":
        assert told.count("pre-commit \n") == 2 and "commit-msg .git/COMMIT_EDITMSG" in told
        assert ("reference-transaction" in told) is (lay == "own")
    assert repo.guard("uninstall", "--json").json["changed"]
    after = repo.insides()
    assert {name: after.get(name) for name in before if name.startswith(str(repo.top / ".git"))} == {
        name: data for name, data in before.items() if name.startswith(str(repo.top / ".git"))
    }
    assert set(after) == set(before)
    assert repo.commit("a.txt").returncode == 0
    assert repo.guard("uninstall", "--json").json["changed"] is False


def test_an_earlier_hook_decides_and_hears_what_git_says(repo: Repo, peer: dict, tmp_path: Path):
    log, folder = tmp_path / "log", repo.top / ".git" / "hooks"
    user_hook(folder, "pre-commit", log, "exit 7")
    user_hook(folder, "pre-push", log)
    (folder / "commit-msg").write_text("#!/bin/sh\nexit 9\n")  # not executable: git passes it over
    (folder / "commit-msg").chmod(0o644)
    repo.guard("install")
    hook = repo.top / ".git" / "swarm-hooks"
    assert subprocess.run([hook / "pre-commit"], cwd=repo.top, stdin=subprocess.DEVNULL).returncode == 7
    assert repo.commit("a.txt").returncode == 1 and "swarm guard" not in repo.commit("a.txt").stderr
    (folder / "pre-commit").unlink()
    assert "swarm guard" in repo.commit("a.txt").stderr, "hooks are looked up when they are needed"
    repo.git("commit", "-m", "x", SWARM_GUARD="off")
    repo.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    done = repo.git("push", str(tmp_path / "remote.git"), "main", ok=False)
    assert done.returncode == 1 and "swarm guard: push refused" in done.stderr
    told = log.read_text()
    assert f"pre-push {tmp_path / 'remote.git'}" in told and "\nrefs/heads/main " in told and "0" * 40 in told


def test_what_others_change_meanwhile_is_kept(repo: Repo, tmp_path: Path):
    user_hook(repo.top / ".git" / "hooks", "pre-commit", tmp_path / "log")
    repo.guard("install")
    repo.git("config", "user.nickname", "x")
    assert repo.guard("uninstall").code == 0
    assert repo.git("config", "user.nickname").stdout == "x\n"
    assert repo.git("config", "core.hooksPath", ok=False).stdout == ""
    repo.guard("install")
    repo.git("config", "core.hooksPath", ".husky/_")  # husky was installed after us
    assert hooks.state(str(repo.top)).way == "passed over"
    told = repo.ground.swarm("doctor", "--no-clients", cwd=repo.top).out
    assert "[WARN] guard: git looks for hooks in .husky/_" in told
    repo.guard("uninstall")
    assert repo.git("config", "core.hooksPath").stdout == ".husky/_\n"
    repo.guard("install")
    user_hook(repo.top / ".git" / "swarm-hooks", "commit-msg", tmp_path / "log")
    done = repo.guard("uninstall")
    assert done.code == 1 and "commit-msg" in done.err, "somebody's hook in our folder is not thrown away"
    assert hooks.state(str(repo.top)).way == "dispatcher", "and the guard stays in force"
    theirs = repo.top / ".git" / "swarm-hooks" / "commit-msg"
    before = theirs.read_bytes()
    assert repo.guard("install").code == 1 and theirs.read_bytes() == before, "nor is it written over"


def test_work_trees_and_submodules(repo: Repo, tmp_path: Path):
    user_hook(repo.top / ".git" / "hooks", "pre-commit", tmp_path / "log")
    repo.git("worktree", "add", "-q", str(tmp_path / "tree"))
    tree = Repo(tmp_path / "tree", repo.ground)
    assert tree.guard("install").code == 0
    row = repo.ground.session("peer")
    repo.ground.lock(row, str(tmp_path / "tree" / "a.txt"))
    assert tree.commit("a.txt").returncode == 1
    assert repo.commit("a.txt").returncode == 0, "a lock is on a path: another work tree has another file"
    assert (tmp_path / "log").read_text().count("pre-commit \n") == 2
    repo.ground.lock(row, str(repo.top / ".git"))
    tree.git("reset", "-q")
    assert tree.guard("check").code == 1, "the repository is one for all of its work trees"
    assert repo.guard("uninstall").code == 0
    assert tree.commit("a.txt").returncode == 0
    repo.ground.swarm("unlock", str(repo.top / ".git"), "--as", row["id"])

    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo.top), "sub")
    sub = Repo(repo.top / "sub", repo.ground)
    assert sub.guard("install", "--json").json["folder"] == str(repo.top / ".git" / "modules" / "sub" / "hooks")
    repo.ground.lock(row, str(repo.top / "sub" / "b.txt"))
    assert sub.commit("b.txt").returncode == 1 and sub.guard("uninstall").code == 0
    assert sub.git("commit", "-m", "x").returncode == 0


def test_setting_from_elsewhere_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    before = repo.insides()
    for name, value in {"COUNT": "1", "KEY_0": "core.hooksPath", "VALUE_0": "/x"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    done = repo.guard("install")
    assert done.code == 1 and "unset it first" in done.err and repo.insides() == before
    assert repo.ground.swarm("guard", "install", cwd=repo.ground.folder).code == 1, "no repository"


def test_the_framework_s_entry_is_the_same_guard(repo: Repo, peer: dict):
    entry = next(line for line in (ROOT / ".pre-commit-hooks.yaml").read_text().splitlines() if "entry: " in line)
    script = ROOT / entry.partition("entry: ")[2]
    assert script.read_text() == hooks.framework() and os.access(script, os.X_OK)
    (repo.top / "a.txt").write_text("2\n")
    repo.git("add", "-A")

    def framework(**env: str) -> subprocess.CompletedProcess:
        env = {**os.environ, "SWARM_MCP_BIN": shlex.join(SWARM), **env}
        return subprocess.run([script], cwd=repo.top, env=env, capture_output=True, text=True, timeout=60)

    assert framework().returncode == 1 and "a.txt" in framework().stderr
    assert framework(SWARM_GUARD="off").returncode == 0
    repo.git("commit", "-q", "-m", "x")
    assert framework().returncode == 0
    push = {"PRE_COMMIT_REMOTE_NAME": "origin", "PRE_COMMIT_TO_REF": "HEAD", "PRE_COMMIT_FROM_REF": "HEAD^"}
    assert framework(**push).returncode == 1
    assert framework(**{**push, "PRE_COMMIT_FROM_REF": "HEAD"}).returncode == 0
    assert framework(PRE_COMMIT_REMOTE_NAME="origin", PRE_COMMIT_LOCAL_BRANCH="refs/heads/main").returncode == 1


@pytest.mark.parametrize("hook", ["pre-commit", "pre-push"])
def test_nothing_that_the_repository_names_is_run_by_a_check(repo: Repo, peer: dict, hook: str, tmp_path: Path):
    sprung, trap = tmp_path / "sprung", tmp_path / "trap"
    program_at(trap, f'#!/bin/sh\necho "$@" >> {sprung}\ncat\n')
    repo.git("commit", "-q", "--allow-empty", "-m", "second")
    repo.commit("docs/c.txt")
    for setting in ("core.fsmonitor", "core.pager", "core.editor", "diff.external", "diff.any.command",
                    "diff.any.textconv", "filter.any.clean", "gpg.program", "core.sshCommand"):  # fmt: skip
        repo.git("config", setting, str(trap))
    for setting in ("log.showSignature", "remote.origin.promisor", "index.threads"):
        repo.git("config", setting, "true")
    # A folder of the last commit is missing, and may be had from a remote that is a command.
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "remote.origin.url", f"ext::{trap} fetch")
    repo.git("config", "protocol.ext.allow", "always")
    (repo.top / ".gitattributes").write_text("* diff=any filter=any\n")
    shutil.copy(trap, repo.top / ".git" / "hooks" / "post-index-change")
    (repo.top / "a.txt").write_text("2\n")
    missing = repo.git("rev-parse", "HEAD:docs").stdout.strip()
    (repo.top / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    sprung.unlink(missing_ok=True)
    commit = repo.git("rev-parse", "HEAD").stdout.strip()
    told = f"refs/heads/main {commit} refs/heads/main {'0' * 40}\n"
    done = repo.ground.process("guard", "check", "--hook", hook, cwd=repo.top, input=told.encode())
    assert not sprung.exists(), (sprung.read_text(), done)
    assert done.code in (0, 1)


def test_a_repository_whose_path_has_a_newline(repo: Repo, tmp_path: Path):
    """Beside it lies another one. Its path is the first line of the tested one."""
    for folder in ("left", "left\nright", "blank \u2028 "):
        shutil.copytree(repo.top, tmp_path / folder, symlinks=True)
    odd = Repo(tmp_path / "left\nright", repo.ground)
    user_hook(odd.top / ".git" / "hooks", "pre-commit", tmp_path / "log")
    other = Repo(tmp_path / "left", repo.ground)
    before, odd_before = other.insides(), odd.insides()
    assert odd.guard("install", "--json").json["folder"] == str(odd.top / ".git" / "swarm-hooks")
    assert other.insides() == before
    row = repo.ground.session("peer")
    repo.ground.lock(row, str(odd.top / "a.txt"))
    assert odd.commit("a.txt").returncode == 1
    assert other.commit("a.txt").returncode == 0
    tree = Repo(tmp_path / "tree\nof it", repo.ground)
    odd.git("worktree", "add", "-q", "-b", "tree", str(tree.top))
    repo.ground.lock(row, str(tree.top / "b.txt"))
    assert tree.commit("b.txt").returncode == 1, "linked work trees have the same hooks"
    assert tree_over(str(tree.top)).common == str(odd.top / ".git")
    odd.git("worktree", "remove", "--force", str(tree.top))
    assert odd.guard("uninstall").code == 0
    assert {name: odd.insides().get(name) for name in odd_before if "/.git/" in name} == {
        name: data for name, data in odd_before.items() if "/.git/" in name
    }
    blank = Repo(tmp_path / "blank \u2028 ", repo.ground)
    assert blank.guard("install", "--json").json["folder"] == str(blank.top / ".git" / "hooks")


@pytest.mark.thorough
def test_odd_names_of_files_and_branches(repo: Repo, tmp_path: Path):
    repo.guard("install")
    row = repo.ground.session("peer")
    for name in ("\nfirst", "in\nside", "\u2028", "a\x85b"):
        repo.ground.lock(row, str(repo.top / name))
        assert repo.commit(name).returncode == 1, repr(name)
        assert repo.git("commit", "-m", "x", SWARM_GUARD="off").returncode == 0
        branch = "b\u3000\u2028" + str(len(name))
        repo.git("switch", "-q", "-C", branch)
        repo.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
        done = repo.git("push", str(tmp_path / "remote.git"), branch, ok=False)
        assert "swarm guard: push refused" in done.stderr, repr(name)
        assert repo.git("push", "--no-verify", str(tmp_path / "remote.git"), branch).returncode == 0
        repo.git("push", "-q", "--no-verify", str(tmp_path / "remote.git"), f":{branch}")


def test_a_configuration_that_is_a_link_stays_one(repo: Repo, tmp_path: Path):
    config, real = repo.top / ".git" / "config", tmp_path / "dotfiles" / "config"
    real.parent.mkdir()
    config.rename(real)
    config.symlink_to(real)
    before = real.read_bytes()
    user_hook(repo.top / ".git" / "hooks", "pre-commit", tmp_path / "log")
    assert repo.guard("install", "--json").json["way"] == "dispatcher"
    assert config.is_symlink() and b"swarm-hooks" in real.read_bytes()
    assert repo.guard("uninstall").code == 0
    assert config.is_symlink() and real.read_bytes() == before
