"""Reading no more than is needed: the index of a journal's files, git's remembered answers, commands by a glance."""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core import git_repository, process, repository, traces
from swarm_hook_core.check import Check, may_destroy, rules
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.core import HookCore
from swarm_hook_core.git_repository import Repository
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.stakes.owners import _Events
from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import journal

# Parts of a journal: entries, some of other kinds, some torn.
LINES = (
    b"1 wrote - Edit\0/repo/a.py\0state\n", b"2 wrote - Edit\0/repo/b.py\0state\n", b"3 will - Edit\0/repo/a.py\0state\n",
    b"4 ran - Bash\0/repo\0make\n", b"5 wrote - Edit\0/repo/a.p", b"6 wrote - Edit\0", b"\n", b"y\0new\n", b"wrote x\0a\n",
)  # fmt: skip
NAMES = [f"file-{number}.py" for number in range(12)]


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(journal, "is_kept", True)
    for kept in (journal._indexes, journal._own, journal._short):
        kept.clear()
    yield
    for kept in (journal._indexes, journal._own, journal._short):
        kept.clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "codex.peer"


class Journal:
    """A journal at `path`; its entries are told apart by their number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 10**18

    def add(self, name: str, kind: str = "wrote", text: str = "1 2 3", torn: bool = False) -> None:
        self.number += 1
        line = f"{self.number} {kind} - Edit\0/repo/src/{name}\0{text}\n"
        with self.path.open("a") as file:
            file.write("\n" + (line[:-9] if torn else line))

    def withdraw(self, name: str) -> None:
        self.add(name, "ran")
        with self.path.open("a") as file:
            file.write(f"\n{self.number} wont - Edit\0/repo/src/{name}\0wrote\n")


def _asked(path: Path) -> list[bool]:
    return [journal.may_concern(str(path), [name.encode()]) for name in NAMES]


def _in_entries(path: Path) -> list[bool]:
    data = journal.joined(*journal.parts(str(path)))
    return [any(mark in data for mark in (*journal.OF_MANY, name.encode())) for name in NAMES]


def test_a_journal_that_grows_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    parts = journal.parts
    monkeypatch.setattr(journal, "parts", lambda name: (reads.append(name), parts(name))[1])
    there = Journal(path)
    for name in NAMES:
        there.add(name)
        assert _asked(path) == _in_entries(path)
    assert len(reads) == 1 + len(NAMES)  # once for the index, and by `_in_entries`


def test_a_journal_that_was_written_anew_at_the_same_place_is_read_anew(path: Path) -> None:
    there = Journal(path)
    for name in NAMES[:6]:
        there.add(name)
    assert _asked(path) == [True] * 6 + [False] * 6
    inode, size = path.stat().st_ino, path.stat().st_size
    os.truncate(path, 0)
    while path.stat().st_size <= size:
        there.add(NAMES[7])
    assert path.stat().st_ino == inode
    assert _asked(path) == [name == NAMES[7] for name in NAMES]


def test_a_withdrawn_command_concerns_nothing(path: Path) -> None:
    there = Journal(path)
    there.add(NAMES[0])
    assert _asked(path)[1] is False
    there.withdraw(NAMES[1])
    assert _asked(path) == _in_entries(path) == [True] + [False] * 11


def test_a_folder_in_the_place_of_a_journal_is_told(path: Path) -> None:
    Journal(path).add(NAMES[0])
    assert _asked(path)[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(NotOrdinary):
        _asked(path)


def test_a_withdrawal_is_of_one_agent_s_entry() -> None:
    """Two agents may have written the same file down in one moment."""
    theirs, mine = (b"1 takes %s Write\0/repo/a.py\n" % agent for agent in (b"y", b"-"))
    data = theirs + mine + b"1 wont - Write\0/repo/a.py\0wrote\n"
    assert journal.joined(data, b"").split() == theirs.split()


def _own_is_as_read(path: Path) -> None:
    """The journal that is kept, and all made of it, are as those of a whole reading."""
    data, whole = journal.read_own(str(path)), journal.joined(*journal.parts(str(path)))
    assert data == whole == journal.read(str(path))
    for kind in (b"wrote", b"ran", b"clears", b"aside", b"far", b"wont"):
        assert journal.has_kind(data, kind) >= (b" " + kind + b" " in whole)
    found = [
        journal.made_of(one, "events", _Events, lambda events, added: events.add(added, ["Edit"]))
        for one in (data, whole)
    ]
    assert found[0].of == found[1].of


def test_the_own_journal_is_read_once_while_it_grows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    parts = journal.parts
    there = Journal(path)
    there.add(NAMES[0])
    monkeypatch.setattr(journal, "parts", lambda name: (reads.append(name), parts(name))[1])
    for name in NAMES:
        there.add(name)
        journal.read_own(str(path))
    assert len(reads) == 1 and journal.read_own(str(path)) is journal.read_own(str(path))
    _own_is_as_read(path)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled
def test_the_index_answers_as_the_entries_do(path: Path, seed: int) -> None:
    """Entries are added, also torn ones; parts are rotated, cut, replaced and removed."""
    chance, there = random.Random(seed), Journal(path)
    for _ in range(150):
        deed = chance.choice(["add"] * 8 + ["torn", "rotate", "cut", "replace", "remove", "withdraw", "many"])
        name = chance.choice(NAMES)
        if deed == "add" or not path.exists():
            there.add(name)
        elif deed == "torn":
            there.add(name, torn=True)
        elif deed == "rotate":
            os.replace(path, f"{path}.1")
        elif deed == "cut":
            os.truncate(path, path.stat().st_size // 2)
            there.add(name, text="x" * chance.choice((1, 4000)))
        elif deed == "replace":
            new = Journal(path.with_name("new"))
            new.number = there.number
            new.add(name, text="y" * chance.choice((1, 9000)))
            os.replace(new.path, path)
            there.number = new.number
        elif deed == "remove":
            for part in (path, Path(f"{path}.1")):
                part.unlink(missing_ok=True)
        elif deed == "withdraw":
            there.withdraw(name)
        elif chance.random() < 0.3:
            there.add(name, kind=chance.choice(["ran", "clears", "aside", "far"]))
        assert _asked(path) == _in_entries(path), deed
        _own_is_as_read(path)


@given(st.lists(st.tuples(st.sampled_from(LINES), st.booleans()), max_size=12), st.sampled_from((1, 40, 1000)))
def test_the_newest_entries_of_a_journal_that_grows_are_those_of_a_whole_reading(
    added: list[tuple[bytes, bool]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(journal, "is_kept", True)
        patched.setattr(journal, "MOST_PATHS", most)
        patched.setattr(journal, "_newest", {})
        data = b"\n"
        for line, is_anew in added:
            data = (b"\n" if is_anew else data) + line
            for kinds in (("wrote",), ("wrote", "will")):
                assert list(journal.newest_lines(data, kinds).items()) == _read_whole(data, kinds)


def _read_whole(data: bytes, kinds: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    found: dict[bytes, bytes] = {}
    for line in data.split(b"\n"):
        head, _, rest = line.partition(b"\0")
        if rest and head.split(b" ")[1:2] and head.split(b" ")[1].decode() in kinds and head.count(b" ") > 1:
            found[rest.partition(b"\0")[0]] = line
    return list(found.items())


def test_a_checker_lists_journals_anew_once_one_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "is_answering", lambda: True)
    listed: list[str] = []
    names_in = traces.names_in
    monkeypatch.setattr(traces, "names_in", lambda folder: (listed.append(folder), names_in(folder))[1])
    place = str(tmp_path)

    def others() -> list[str]:
        return [os.path.basename(path) for path in traces.others_in(place, "codex.me")]

    for name in ("codex.me", "codex.peer"):
        (tmp_path / name).touch()
    assert others() == others() == ["codex.peer"]
    assert len(listed) == 2, "a change in the same tick would not show"
    os.utime(place, (1, 1))
    assert others() == others() == ["codex.peer"] and len(listed) == 3
    (tmp_path / "codex.third").touch()
    assert others() == ["codex.peer", "codex.third"]
    os.utime(place, (2, 2))
    others().clear()
    assert others() == ["codex.peer", "codex.third"] and len(listed) == 5, "the list is the caller's own"
    assert traces.others_in(place, "codex.peer") == [f"{place}/codex.me", f"{place}/codex.third"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Begin a check; return the verbs that git is started with."""
    found: list[str] = []
    ask = repository.ask
    monkeypatch.setattr(repository, "ask", lambda words, *more: (found.append(words[0]), ask(words, *more))[1])
    monkeypatch.setattr(process, "check_answers", {threading.get_ident(): {}})
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A committed file that git takes for changed until it has compared the content."""
    path = tmp_path / "a.txt"
    path.write_text("text\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    os.utime(path, (1, 1))
    return path


def _pass(path: Path) -> None:
    """Wait until a change of the file has another time than the last one."""
    while time.time_ns() - path.stat().st_ctime_ns <= 2 * git_repository.SLACK_NS:
        time.sleep(0.001)


def test_a_content_is_compared_once_in_a_check(file: Path, asked: list[str]) -> None:
    _pass(file)
    for _ in range(3):
        assert Repository(str(file.parent), 10).modified(["a.txt"]) == []
    assert (asked.count("hash-object"), asked.count("check-attr")) == (1, 1)
    process.check_answers[threading.get_ident()] = {}  # the next check
    Repository(str(file.parent), 10).modified(["a.txt"])
    assert asked.count("hash-object") == 2


def test_a_file_that_changes_during_the_check_is_compared_anew(file: Path, asked: list[str]) -> None:
    _pass(file)
    repository = Repository(str(file.parent), 10)
    assert repository.modified(["a.txt"]) == []
    file.write_text("else\n")  # as long
    assert repository.modified(["a.txt"]) == ["a.txt"]
    file.write_text("text\n")
    assert repository.modified(["a.txt"]) == []


def test_a_file_of_this_very_moment_is_compared_each_time(file: Path, asked: list[str], monkeypatch) -> None:
    """Two changes within one tick of the file system's clock have the same time."""
    monkeypatch.setattr(git_repository, "SLACK_NS", 10**15)
    repository = Repository(str(file.parent), 10)
    assert repository.modified(["a.txt"]) == repository.modified(["a.txt"]) == []
    assert asked.count("hash-object") == 2


def test_a_setting_is_asked_once_in_a_check_and_anew_in_the_next(file: Path, asked: list[str]) -> None:
    repository = Repository(str(file.parent), 10)
    assert repository.setting("core.hooksPath") == repository.setting("core.hooksPath") == ""
    assert asked == ["config"]
    subprocess.run(["git", "-C", repository.top, "config", "core.hooksPath", "hooks"], check=True)
    process.check_answers.clear()
    assert repository.setting("core.hooksPath") == "hooks"


def test_checks_that_overlap_in_two_threads_leave_no_answers_behind(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Semaphore(0)
    ends = {"first": threading.Event(), "second": threading.Event()}

    def judge(check: Check) -> None:
        begun.release()
        ends[check.call.session_id].wait(60)

    monkeypatch.setattr(rules, "judge", judge)
    core = HookCore(RuntimeConfig("codex", "SWARM_CODEX_", "swarm", {}))
    found: list[threading.Thread] = []
    for session in ends:
        call = ToolCall("Bash", {"command": "ls"}, session, "/")
        found.append(threading.Thread(target=core.check, args=(call,)))
        found[-1].start()
        assert begun.acquire(timeout=60)
    for thread, end in zip(found, ends.values()):
        end.set()
        thread.join(60)
    repository = Repository(str(file.parent), 10)
    for value in ("", "hooks"):
        assert repository.setting("core.hooksPath") == value
        subprocess.run(["git", "-C", repository.top, "config", "core.hooksPath", "hooks"], check=True)


HARMLESS = [
    "ls -la", "cat a.txt", "git status", "git status --short && git diff", "git log --oneline -5 | head",
    "git add a.txt", "git -C sub diff", "pytest -q", "npm test 2>&1 | tail -5", "make 2>/dev/null",
    "grep -rn 'x => y' src", "python3 -c 'print(1 >= 0)'", "echo x >> a.txt", "pytest > new-file.log", "cargo build",
    "git stash list", "git branch -a", "git push origin main", "find . -name '*.py'", "sed -n 1,20p a.txt",
    "git worktree list", "git config user.name", "node -e 'console.log(1)'", "mkdir -p a/b", "touch x",
]  # fmt: skip
DESTROYERS = [
    "rm a.txt", "/bin/rm -rf .", "sudo rm x", "git checkout .", "git -C sub checkout -- a", "git reset --hard",
    "git restore .", "git stash", "git clean -fd", "git switch -f main", "git co .", "git rebase -i HEAD~2", "mv a b",
    "cp a b", "echo x > a.txt", "echo x >a.txt", "cat <<EOF > a.txt\nx\nEOF", "printf x | tee a.txt", "find . -delete",
    "find . -exec rm {} +", "xargs rm < list", "sed -i s/a/b/ a.txt", "perl -pi -e s/a/b/ a.txt", "cd sub && echo > new",
    "python3 -c \"open('a.txt', 'w')\"", "node -e \"fs.writeFileSync('a.txt', '')\"", "truncate -s0 a.txt", ": > a.txt",
    "git --no-pager -c a=b checkout .", "true;git reset --hard", "$(git checkout .)", "`git stash`", "> $FILE",
    "git worktree remove --force ../x", "git add -A", "git add . && x", "git commit -m 'remove > and rm'", "echo x >| a.txt", "dd if=b of=a.txt", "(cd x; rm y)", "git pull --autostash",
]  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS)
def test_a_common_command_is_not_read(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert not may_destroy(command, str(tmp_path))


@pytest.mark.parametrize("command", DESTROYERS)
def test_a_command_that_may_destroy_is_read(command: str, tmp_path: Path) -> None:
    from swarm_hook_core.check import _DESTROYERS as MARKS

    (tmp_path / "a.txt").write_text("x")
    assert may_destroy(command, str(tmp_path)) and any(mark in command for mark in MARKS)
