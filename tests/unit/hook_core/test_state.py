"""The places of this user's state, and their permissions."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from swarm_hook_core.state import append_line, lock_alone, make_private, state_dir, store_path, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_places_are_where_their_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_STATE_DIR", "/some/state")
    monkeypatch.setenv("SWARM_DB_PATH", "/some/where.db")
    assert (state_dir(), store_path()) == ("/some/state", "/some/where.db")
    monkeypatch.setenv("SWARM_DB_PATH", "  ")
    assert store_path() == os.path.join(os.environ["HOME"], ".swarm-mcp", "swarm.db")


def test_a_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    make_private(str(tmp_path / "a" / "b"))
    assert mode(tmp_path / "a" / "b") == 0o700
    for name, after in (("swarm-cc", 0o700), ("Documents", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
        make_private(str(tmp_path / name))
        assert mode(tmp_path / name) == after, "closed where it is ours by name; a person's folder is theirs"


def test_the_umask_does_not_decide(tmp_path: Path) -> None:
    for umask in (0, 0o777):
        folder = tmp_path / oct(umask)
        before = os.umask(umask)
        try:
            make_private(str(folder))
        finally:
            os.umask(before)
        assert mode(folder) == 0o700
    before = os.umask(0)
    try:
        write_private(str(tmp_path / "s" / "f"), "x")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "s"), mode(tmp_path / "s" / "f")) == (0o700, 0o600)


@pytest.mark.skipif(os.name == "nt", reason="no such locks")
def test_a_lock_that_is_kept_is_no_longer_waited_for(tmp_path: Path) -> None:
    one, other = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    lock_alone(one)
    with pytest.raises(BlockingIOError):
        lock_alone(other, 0.0)
    os.close(one)
    lock_alone(other, 0.0)
    os.close(other)


def test_somebody_else_s_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s").mkdir(mode=0o755)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(PermissionError):
        make_private(str(tmp_path / "s"))
    assert mode(tmp_path / "s") == 0o755, "and left as it is"


@pytest.mark.parametrize("target", ["there", "not-there"])
def test_a_link_is_refused(target: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    (tmp_path / "s").symlink_to(tmp_path / target)
    with pytest.raises(OSError):
        write_private(str(tmp_path / "s" / "f"), "x")
    assert os.listdir(tmp_path / "there") == [] and not (tmp_path / "not-there").exists()
    assert mode(tmp_path / "there") == 0o755


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(OSError):
        make_private(str(tmp_path / "s"))
    assert (tmp_path / "s").read_text() == "mine"


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "s" / "f"
    write_private(str(path), "a" * 100_000)
    write_private(str(path), "b\udcff")
    assert path.read_bytes() == b"b\xff"
    assert os.listdir(path.parent) == ["f"], "nothing is left beside it"


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s" / "f"
    write_private(str(path), "old")

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError):
            write_private(str(path), "new")
    assert path.read_text() == "old"
    write_private(str(path), "newer")
    assert path.read_text() == "newer", "what the failure left must not stand in the way"
    assert os.listdir(path.parent) == ["f"]


@pytest.mark.parametrize("step", ["lstat", "chmod", "open"])
def test_a_folder_that_another_process_removes_is_made_again(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real, removed = str(tmp_path / "over" / "folder"), getattr(os, step), []
    if step == "lstat":
        make_private(folder)

    def after_the_other(*given: Any, **more: Any) -> Any:
        if not removed and os.path.isdir(folder):
            removed.append(folder)
            os.rmdir(folder)
        return real(*given, **more)

    monkeypatch.setattr(os, step, after_the_other)
    write_private(os.path.join(folder, "file"), "text")
    assert removed and (tmp_path / "over" / "folder" / "file").read_text() == "text"


def test_two_processes_rotate_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = str(tmp_path / "lines"), os.write
    append_line(path, "the first", 1000)

    def before_the_other(handle: int, data: Any) -> int:
        written = real(handle, data)
        monkeypatch.undo()
        append_line(path, "the other's", 1)  # it is full for both
        append_line(path, "after that", 1000)
        return written

    monkeypatch.setattr(os, "write", before_the_other)
    append_line(path, "the last", 1)
    assert (tmp_path / "lines.1").read_text() == "the first\nthe last\nthe other's\n"
    assert (tmp_path / "lines").read_text() == "after that\n"
