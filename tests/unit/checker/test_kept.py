"""Nothing of a call outlives it in a checker; its names and numbers are the same in each language."""

import contextlib
import json
import os
import re
import sqlite3
import sys
from pathlib import Path

import pytest
from support.checker_client import Client

from swarm_hook_core import __version__, settings
from swarm_hook_core.process import tried_ns
from swarm_hook_core.shell import programs
from swarm_hook_core.traces import journal
from swarm_mcp import checker
from swarm_mcp.checker import process

LONGEST = 25 * 1024 * 1024  # bytes of a checker that it does not share
CALLS = 300


@pytest.mark.slow
@pytest.mark.thorough
def test_a_checker_keeps_no_file_open_and_no_process_and_little_memory(client: Client) -> None:
    checker = client.warm()
    files = _open_files(checker)
    calls = [client.edit("free.py"), client.edit("held.py"), client.bash("npm test"), ("pre_tool_use", b"{"), ("post_tool_use", b"[]"),
             client.event("turn", hook_event_name="Stop"), client.tool("Bash", {"command": 5}), client.bash("git checkout .")]  # fmt: skip
    for number in range(CALLS):
        client.ask(calls[number % len(calls)] if number % 3 else client.bash(f"program{number} > new.py"))
    client.warm()
    assert client.checker() == checker
    # SQLite itself keeps a few handles of a file that another connection has open, and takes them for the next ones.
    left = _open_files(checker)
    assert set(left) == set(files) and len(left) <= len(files) + 3, left
    client.wait_for("the end of its errands", lambda: not Path(f"/proc/{checker}/task/{checker}/children").read_text())
    assert _unshared(checker) < LONGEST
    libraries = set(re.findall(r"\S*sqlite3\S*\.so\S*", Path(f"/proc/{checker}/maps").read_text()))
    assert len({os.path.basename(library) for library in libraries if "_sqlite3" not in library}) <= 1, libraries


@pytest.mark.slow
def test_a_store_in_the_place_of_another_is_read(client: Client) -> None:
    """A checker keeps its connection to the store from call to call."""
    checker = client.warm()
    assert client.ask(client.edit("held.py")).is_denied
    store, new = client.home / ".swarm-mcp/swarm.db", client.home / "new.db"
    with contextlib.closing(sqlite3.connect(store)) as before, contextlib.closing(sqlite3.connect(new)) as after:
        before.backup(after)
        after.execute("DELETE FROM context WHERE type = 'lock'")
        after.commit()
    os.replace(new, store)
    for ending in ("-wal", "-shm"):
        Path(f"{store}{ending}").unlink(missing_ok=True)
    answer = client.ask(client.edit("held.py"))
    assert (answer.is_denied, answer.alone) == (False, [])
    peer = json.loads(client.swarm("register", str(client.repo), "--label", "role:peer", "--json"))["id"]
    client.swarm("lock", "held.py", "--as", peer)
    assert client.ask(client.edit("held.py")).is_denied
    assert client.checker() == checker


@pytest.mark.slow
def test_a_store_that_is_written_over_in_place_is_read(client: Client) -> None:
    """As from a copy, `cp copy swarm.db`, without its log: the file is the same, and its contents are others."""
    checker = client.warm()
    assert client.ask(client.edit("held.py")).is_denied
    store, copy = client.home / ".swarm-mcp/swarm.db", client.home / "copy.db"
    with contextlib.closing(sqlite3.connect(store)) as before, contextlib.closing(sqlite3.connect(copy)) as after:
        before.backup(after)
        after.execute("DELETE FROM context WHERE type = 'lock'")
        after.commit()
        after.execute("VACUUM")
    inode = store.stat().st_ino
    store.write_bytes(copy.read_bytes())
    for ending in ("-wal", "-shm"):
        Path(f"{store}{ending}").unlink(missing_ok=True)
    assert store.stat().st_ino == inode
    answer = client.ask(client.edit("held.py"))
    assert (answer.is_denied, answer.alone, client.faults()) == (False, [], [])
    assert client.ask(client.event("turn", hook_event_name="Stop")).alone == [] and client.faults() == []
    assert client.checker() == checker


def test_known_programs_are_bounded() -> None:
    for number in range(2 * programs.MOST_MET):
        programs.program(f"program-{number}")
    assert len(programs._met) <= programs.MOST_MET


def test_settings_that_look_as_before_are_read_again(home: Path) -> None:
    path = Path(settings.config_path())
    path.parent.mkdir(parents=True)
    path.write_text('{"protect": "keep"}')
    assert settings.current().user == {"protect": "keep"}
    state = os.stat(path)
    path.write_text('{"protect": "turn"}')
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    process.forget()
    assert settings.current().user == {"protect": "turn"}


def test_the_environment_of_a_call_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environb)
    odd = [b"A=1", b"A=2", b"no sign", b"=x", b"B=\xff\xfe", b"C=", b"D=a=b", b"TZ=Asia/Tokyo"]
    try:
        process.put_on(odd)
        assert dict(os.environb) == {b"A": b"1", b"B": b"\xff\xfe", b"C": b"", b"D": b"a=b", b"TZ": b"Asia/Tokyo"}
    finally:
        process.put_on([name + b"=" + value for name, value in before.items()])
    assert dict(os.environb) == before


def test_a_call_whose_folder_is_gone_leaves_the_next_one_alone(tmp_path: Path) -> None:
    here, argv = os.getcwd(), sys.argv
    around = process.Surroundings([b"A=1"], os.fsencode(tmp_path / "gone"), ["x"], sys.stdout)  # type: ignore[arg-type]
    before = [name + b"=" + value for name, value in os.environb.items()]
    try:
        with pytest.raises(FileNotFoundError), around:
            pass
    finally:
        process.put_on(before)
    assert (os.getcwd(), sys.argv) == (here, argv)


def test_lines_that_a_try_has_left_are_not_left_again() -> None:
    data = b"5 wrote - Edit\0a\0-\n20 wrote - Edit\0b\0-\n21 wont - Edit\0b\0\n"
    new = [b"30 wrote - Edit\0a\0-\n", b"30 wrote - Edit\0b\0-\n", b"30 wrote - Edit\0c\0-\n"]
    assert journal.after_a_try(data, new, 10, 30) == [new[0], new[2]]


def test_a_write_that_a_try_has_left_of_another_state_is_taken_back() -> None:
    data = b"20 wrote - Edit\0a\0old\n21 wrote - Edit\0b\0old\n22 wrote - Write\0a\0old\n35 wrote - Edit\0a\0late\n"
    new = [b"40 wrote - Edit\0a\0new\n"]
    taken_back = [b"20 wont - Edit\0a\0wrote\n", b"20 before - Edit\0a\0old\n"]
    assert journal.after_a_try(data, new, 10, 30) == [*taken_back, *new]


def test_what_a_try_has_left_is_no_earlier_call_of_its_hook() -> None:
    data = (
        b"5 session - pi\0s\n5 wrote - Edit\0a\0-\n20 session - pi\0s\n20 wrote - Edit\0b\0-\n30 wrote - Edit\0c\0-\n"
    )
    own = b"5 session - pi\0s\n5 wrote - Edit\0a\0-\n20 session - pi\0s\n30 wrote - Edit\0c\0-\n"
    assert journal.without_a_try(data, 10, 30) == own


def test_only_a_try_of_now_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for told in ("", "1", "x", "9" * 30, "-5"):
        monkeypatch.setenv("SWARM_TRIED_NS", told)
        assert tried_ns() == 0


def _open_files(pid: int) -> list[str]:
    found = [os.readlink(f"/proc/{pid}/fd/{handle}") for handle in os.listdir(f"/proc/{pid}/fd")]
    return sorted(name for name in found if name.startswith("/"))


def _unshared(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(size) for size in re.findall(r"^Private_\w+: +(\d+)", text, re.MULTILINE))


ROOT = Path(__file__).resolve().parents[3]
IN_C, IN_PYTHON, IN_SHELL, IN_PLUGINS = (
    (ROOT / name).read_text() for name in ("native/relay.c", "integrations/relay.py", "integrations/hook.sh", "integrations/checker.ts")
)  # fmt: skip


def in_c(name: str) -> int:
    """Return a number that the relay in C defines."""
    found = re.search(rf"^#define {name} (\d+)", IN_C, re.MULTILINE)
    assert found, name
    return int(found[1])


def in_python(name: str) -> float:
    """Return a number that the relay in Python assigns."""
    found = re.search(rf"^(?:\w+, )*{name}(?:, \w+)* = ([\d., ]+?)(?:  #.*)?$", IN_PYTHON, re.MULTILINE)
    assert found, name
    names = found[0].partition(" = ")[0].split(", ")
    return float(found[1].split(", ")[names.index(name)])


def test_the_relay_in_c_is_short() -> None:
    assert len(IN_C.splitlines()) <= 300


@pytest.mark.parametrize(
    ("text", "assigned"),
    [(IN_PYTHON, 'RELEASE = "'), (IN_PLUGINS, 'const RELEASE = "'), (IN_SHELL, "release=")],
    ids=["relay.py", "checker.ts", "hook.sh"],
)
def test_each_names_the_release_of_the_checker(text: str, assigned: str) -> None:
    (found,) = re.findall(rf"^{assigned}([\d.]+)", text, re.MULTILINE)
    assert found == __version__


def test_both_relays_wait_as_long_and_look_as_far() -> None:
    assert in_c("ANCESTORS") == in_python("ANCESTORS")
    for name in ("BEGIN", "CHECK", "EVENT"):
        assert in_c(f"{name}_MS") == 1000 * in_python(f"{name}_SECONDS")


def test_all_relays_ask_about_the_events_that_a_checker_answers() -> None:
    events = list(checker.EVENTS)
    assert re.findall(r'"(\w+)"', re.findall(r"^EVENTS = \((.*)\)", IN_PYTHON, re.MULTILINE)[0]) == events
    assert f"case $alone$event in {' | '.join(events)})" in IN_SHELL
