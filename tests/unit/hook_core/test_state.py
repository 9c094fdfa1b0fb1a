"""The places of this user's state, the record of faults inside hooks, and the scratch folders of sessions."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Failing
from support.requirement import requirement

from swarm_hook_core import session_memory
from swarm_hook_core.config import RuntimeConfig, changes_in_patch
from swarm_hook_core.session_memory import clear, folder_of, load, save, tried_lately
from swarm_hook_core.state import (
    HOUR,
    LIMIT_BYTES,
    append_line,
    describe,
    fault_log,
    lock_alone,
    make_private,
    record,
    record_hourly,
    state_dir,
    store_path,
    write_private,
)


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
def test_a_folder_that_another_process_removes_is_made_again(step: str, tmp_path: Path, monkeypatch) -> None:
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


def lines(path: str) -> list[dict[str, object]]:
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def test_a_fault_is_one_line() -> None:
    before = int(time.time())
    record("codex", "turn", "it\nbroke")
    (line,) = lines(fault_log())
    assert before <= int(str(line.pop("at"))) <= time.time()
    assert line == {"runtime": "codex", "hook": "turn", "fault": "it\nbroke"}
    found = os.stat(fault_log())
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(fault_log())).st_mode) == 0o700


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_recorded(fault: str) -> None:
    record("codex", "turn", fault)
    assert lines(fault_log())[-1]["fault"] == fault[:500]


def test_what_every_check_meets_is_recorded_once_an_hour() -> None:
    for _ in range(2):
        record_hourly("store", "pre_tool_use", "many")
    assert [line["fault"] for line in lines(fault_log())] == ["many"]
    then = time.time() - HOUR - 1
    os.utime(fault_log(), (then, then))
    record_hourly("store", "pre_tool_use", "many")
    assert len(lines(fault_log())) == 2


def test_the_record_is_bounded() -> None:
    longest = "\u2028" * 10_000  # six bytes each when written
    for number in range(200):
        record("codex", "turn", f"{number} {longest}")
    folder = Path(fault_log()).parent
    assert sorted(path.name for path in folder.iterdir()) == ["faults.jsonl", "faults.jsonl.1"]
    assert all(path.stat().st_size <= LIMIT_BYTES + 4096 for path in folder.iterdir())
    newest = [str(line["fault"]).split()[0] for line in lines(fault_log() + ".1") + lines(fault_log())]
    assert newest == [str(number) for number in range(200 - len(newest), 200)], "the newest are the ones that stay"
    assert len(newest) >= 30


def test_lines_of_hooks_that_fail_together_do_not_mix() -> None:
    work = (
        "import sys\nfrom swarm_hook_core.state import record\n"
        "for n in range(50): record(sys.argv[1], 'turn', f'{n} ' + 'x' * 300)"
    )
    workers = [subprocess.Popen([sys.executable, "-c", work, str(w)]) for w in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    found = [(line["runtime"], str(line["fault"]).split()[0]) for line in lines(fault_log())]
    assert sorted(found) == sorted((str(w), str(n)) for w in range(6) for n in range(50))


def test_the_record_stays_whole_while_many_hooks_turn_it_over() -> None:
    work = (
        "import sys\nfrom swarm_hook_core import state\nstate.LIMIT_BYTES = 4000\n"
        "for n in range(100): state.record(sys.argv[1], 'turn', f'{n} ' + 'x' * 300)"
    )
    workers = [subprocess.Popen([sys.executable, "-c", work, str(w)]) for w in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    kept = [path for path in (fault_log(), fault_log() + ".1") if os.path.exists(path)]
    assert kept
    for path in kept:
        assert os.path.getsize(path) < 8000
        lines(path)


@pytest.mark.parametrize("obstacle", ["file", "link", "folder", "nowhere"])
def test_where_nothing_can_be_written_nothing_happens(obstacle: str, tmp_path: Path, monkeypatch) -> None:
    place = tmp_path / "state"
    if obstacle == "file":
        place.write_text("")
    elif obstacle == "link":
        place.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        (tmp_path / "elsewhere").mkdir()
    elif obstacle == "folder":
        (place / "faults.jsonl").mkdir(parents=True)
    monkeypatch.setenv("SWARM_STATE_DIR", "/proc/nowhere" if obstacle == "nowhere" else str(place))
    record("codex", "turn", "lost")
    assert not list(tmp_path.glob("elsewhere/*"))


def test_a_full_disk_is_no_error(failing: Failing) -> None:
    failing(os, "write", OSError(28, "No space left on device"))
    record("codex", "turn", "lost")
    assert os.path.getsize(fault_log()) == 0


def test_an_exception_in_one_line() -> None:
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(KeyError()) == "KeyError:"


CONFIG = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, extract_changes=changes_in_patch)
PLAIN = "01a20081-270c-7251-afea-bde51fc291c9"
HOSTILE = [
    "../..", "..", ".", "", "/etc", "/", "a/b", "a\0b", "\0", "x" * 10_240, "\ud800", "\udcff" * 40, "é", "~", "con",
    "-rf", "*", "meta.json", "a\nb", "\\..\\..", "_" + PLAIN, PLAIN + "/..", " ",
]  # fmt: skip


def box() -> Path:
    return Path(os.environ["SWARM_STATE_DIR"]) / "swarm-codex"


def everything(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("session_id", [PLAIN, *HOSTILE])
def test_a_session_s_folder_is_one_below_ours(session_id: str, home: Path) -> None:
    bystander = home / "bystander"
    bystander.write_text("here")
    assert os.path.dirname(os.path.normpath(folder_of(CONFIG, session_id))) == str(box())
    save(CONFIG, session_id, instance_id="i")
    assert load(CONFIG, session_id) == {"session_id": session_id, "instance_id": "i"}
    (folder,) = box().iterdir()
    assert folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert set(everything(home)) == {str(bystander), str(folder / "meta.json")}
    clear(CONFIG, session_id)
    assert everything(home) == {str(bystander): b"here"} and not folder.exists()


@settings(max_examples=60)
@given(
    st.text(st.characters(exclude_categories=[]), max_size=80),
    st.text(st.characters(exclude_categories=[]), max_size=80),
)
def test_any_two_sessions_are_kept_apart(one: str, other: str) -> None:
    shutil.rmtree(box(), ignore_errors=True)
    save(CONFIG, one, instance_id="1")
    assert os.path.dirname(folder_of(CONFIG, one)) == str(box())
    if one != other:
        assert load(CONFIG, other) == {}
        clear(CONFIG, other)
        assert load(CONFIG, one)["instance_id"] == "1"


@requirement("P-14")
def test_a_record_of_another_session_is_not_believed() -> None:
    save(CONFIG, PLAIN, instance_id="i")
    record = Path(folder_of(CONFIG, PLAIN)) / "meta.json"
    record.write_text(json.dumps({"session_id": "another", "instance_id": "peer"}))
    assert load(CONFIG, PLAIN) == {}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"instance_id": "peer"}', b"[" * 100_000]
)
def test_a_broken_record_is_none(content: bytes) -> None:
    save(CONFIG, PLAIN, instance_id="i")
    (Path(folder_of(CONFIG, PLAIN)) / "meta.json").write_bytes(content)
    assert load(CONFIG, PLAIN) == {}


def test_a_record_that_is_a_folder_is_none() -> None:
    (Path(folder_of(CONFIG, PLAIN)) / "meta.json" / "x").mkdir(parents=True)
    assert load(CONFIG, PLAIN) == {}
    clear(CONFIG, PLAIN)
    assert (Path(folder_of(CONFIG, PLAIN)) / "meta.json" / "x").is_dir()


def test_clearing_removes_only_what_we_made(tmp_path: Path) -> None:
    save(CONFIG, PLAIN, instance_id="i")
    folder = Path(folder_of(CONFIG, PLAIN))
    (folder / "notes.txt").write_text("a person's")
    clear(CONFIG, PLAIN)
    assert os.listdir(folder) == ["notes.txt"]
    shutil.rmtree(folder)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_text("kept")
    folder.symlink_to(tmp_path / "precious")
    clear(CONFIG, PLAIN)
    assert (tmp_path / "precious" / "f").read_text() == "kept"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    box().mkdir(parents=True)
    Path(folder_of(CONFIG, PLAIN)).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        save(CONFIG, PLAIN, instance_id="i")
    assert os.listdir(tmp_path / "precious") == []


def test_a_failed_attempt_is_remembered_for_a_while() -> None:
    assert not tried_lately(CONFIG, PLAIN, 10, 1000)
    save(CONFIG, PLAIN, failed_at=995)
    assert tried_lately(CONFIG, PLAIN, 10, 1000)
    assert not tried_lately(CONFIG, PLAIN, 10, 1005)
    assert not tried_lately(CONFIG, PLAIN, 10, 990), "a clock set back must not switch the check off"
    assert not tried_lately(CONFIG, "another", 10, 1000)
    session_memory.save(CONFIG, PLAIN, failed_at="now")
    assert not tried_lately(CONFIG, PLAIN, 10, 1000)
