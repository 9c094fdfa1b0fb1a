"""The answers of git that one check remembers: a file's content by its state, and settings."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from swarm_hook_core import caller, git, git_repository
from swarm_hook_core.git_repository import Repository


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Begin a check; return the verbs that git is started with."""
    found: list[str] = []
    ask = git.ask
    monkeypatch.setattr(git, "ask", lambda words, *more: (found.append(words[0]), ask(words, *more))[1])
    monkeypatch.setattr(caller, "answers", {})
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
    caller.answers = {}  # the next check
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


def test_a_file_of_this_very_moment_is_compared_each_time(
    file: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    caller.answers = None
    assert repository.setting("core.hooksPath") == "hooks"
