"""The files for the shell of a call: written, found by the right command only, and removed afterwards."""

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.plans import Plan, chosen, drop, drop_earlier, folder_of, kernel_dir, leave, load, print_of
from swarm_hook_core.state import has_plans

COMMANDS = ["make", "make test", "./b 'x y'", "python3 -c \"print('a')\"", "a | b\nc", "printf 'é\\n' > \"$x\""]


def plan(command: str, *paths: str, agent: str = "", session: str = "s", strict: bool = False) -> Plan:
    return Plan("claude-code", session, "i", agent, print_of(command), strict, ["/r"], paths, "/store")


def quoted_by_claude(command: str) -> str:
    """A command as Claude Code has its shell run it; a pipe's first command gets no input."""
    quoted = "'" + command.replace("'", "'\"'\"'") + "'"
    if "|" in command:
        quoted = quoted.replace("|", "< /dev/null |", 1)
    return f"source /snap.sh 2>/dev/null || true && if [ -e x ]; then . x; fi && eval {quoted} < /dev/null && pwd -P >| /tmp/cwd"


def paths_for(command: str, session: str = "s") -> list[str] | None:
    found = chosen(folder_of(session), quoted_by_claude(command))
    return found.paths if found else None


def test_a_plan_comes_back_as_it_was_left() -> None:
    odd = ["/a b/c'd\"e", "/line\nbreak", "/=path=x", "/\udcff", "/é"]
    left = plan("make é", *odd, agent="a1", strict=True)
    leave(left, "call-1")
    found = load(os.path.join(folder_of("s"), "call-1"))
    assert found is not None
    assert [getattr(found, name) for name in Plan.__slots__] == [getattr(left, name) for name in Plan.__slots__]
    plans.add_words("s", "call-1", "wait\nfor é")
    found = load(os.path.join(folder_of("s"), "call-1"))
    assert found is not None and found.words == "wait\nfor é" and found.paths == odd


def test_nothing_in_a_command_becomes_a_field_of_its_plan() -> None:
    leave(plan("make\0session=\0path=/etc", "/f"), "call-1")
    found = load(os.path.join(folder_of("s"), "call-1"))
    assert found is not None and (found.session, found.paths) == ("s", ["/f"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_known_however_it_is_quoted(command: str) -> None:
    leave(plan(command, "/f"), "call-1")
    assert paths_for(command) == ["/f"]
    assert chosen(folder_of("s"), f"eval {shlex.quote(command)}")
    assert chosen(folder_of("s"), command), "and by a shell that is given no more"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_text_is_known(command: str) -> None:
    assert print_of(command.replace("|", "x")) in print_of(quoted_by_claude(command.replace("|", "x")))


def test_calls_at_the_same_time_have_their_own() -> None:
    for number, command in enumerate(COMMANDS):
        leave(plan(command, f"/{number}"), f"call-{number}")
    assert [paths_for(command) for command in COMMANDS] == [[f"/{number}"] for number in range(len(COMMANDS))]
    assert paths_for("cat make") is None and paths_for("ls") is None
    drop("s", "call-0")
    assert paths_for("make") is None and paths_for("make test") == ["/1"]


def test_the_longest_command_that_fits_is_the_one() -> None:
    leave(plan("make", "/short"), "call-1")
    leave(plan("make && make test", "/long"), "call-2")
    assert paths_for("make && make test") == ["/long"] and paths_for("make") == ["/short"]


def test_a_short_command_is_not_found_in_another_s_text() -> None:
    leave(plan("./b", "/f"), "call-1")
    assert paths_for("cat ./build.log") is None and paths_for("echo x > ./b") is None
    assert paths_for("./b") == ["/f"]


def test_of_two_agents_with_one_command_each_may_write_what_the_other_is_kept_from() -> None:
    leave(plan("make", "/both", "/of-b", agent="a"), "call-1")
    leave(plan("make", "/of-a", "/both", agent="b", strict=True), "call-2")
    found = chosen(folder_of("s"), "make")
    assert found is not None and found.paths == ["/both"] and found.is_strict


def test_a_command_that_is_run_again_has_the_newest_plan() -> None:
    leave(plan("make", "/old"), "call-1")
    leave(plan("make", "/new"), "call-2")
    assert paths_for("make") == ["/new"] and os.listdir(folder_of("s")) == ["call-2"]
    leave(plan("make", "/newer"), "call-2")
    assert paths_for("make") == ["/newer"]


def test_sessions_do_not_take_each_other_s() -> None:
    leave(plan("make", "/f", session="one/../two"), "call-1")
    assert paths_for("make", "two") is None and paths_for("make", "one/../two") == ["/f"]
    assert os.path.dirname(folder_of("one/../two")) == kernel_dir()


def test_with_the_last_plan_the_folder_goes() -> None:
    leave(plan("make"), "call-1")
    leave(plan("test"), "call-2")
    drop("s", "call-1")
    assert has_plans("s")
    drop("s", "call-2")
    drop("s", "call-2")
    assert not has_plans("s") and os.path.exists(plans.wired_file("s")), "its shells go on looking"


def test_a_plan_that_is_told_to_its_shell_has_an_entry_of_its_own() -> None:
    entry = leave(plan("make", "/f"), "call-1", alone=True)
    other = leave(plan("make", "/g"), "call-2", alone=True)
    assert entry != other and sorted(os.listdir(folder_of("s"))) == ["call-1", "call-1.sh", "call-2", "call-2.sh"]
    found = chosen(os.path.join(folder_of("s"), "call-1"), "whatever")
    assert found is not None and found.paths == ["/f"]
    drop("s", "call-1")
    drop("s", "call-2")
    assert not has_plans("s")


def test_plans_of_calls_whose_end_nobody_told_go_with_time() -> None:
    for number in range(3):
        leave(plan(f"make {number}"), f"call-{number}")
    for number in range(2):
        os.utime(os.path.join(folder_of("s"), f"call-{number}"), (1000 + number, 1000 + number))
    drop_earlier("s", 1001)
    assert sorted(os.listdir(folder_of("s"))) == ["call-1", "call-2"]


def test_what_sessions_have_left_that_were_killed_goes_with_another_s() -> None:
    for session in ("killed", "long-ago", "lives"):
        leave(plan("make", session=session), "call-1")
    os.utime(folder_of("killed"), (1000, 1000))
    os.utime(folder_of("long-ago"), (1000, 1000))
    os.utime(plans.wired_file("long-ago"), (1000, 1000))
    os.utime(os.path.join(kernel_dir(), "wired"), (1000, 1000))
    leave(plan("make"), "call-1")
    assert sorted(os.listdir(kernel_dir())) == ["lives", "s", "wired"]
    assert sorted(os.listdir(os.path.join(kernel_dir(), "wired"))) == ["killed", "lives", "s"]


def test_a_plan_is_left_however_many_calls_end_meanwhile(monkeypatch) -> None:
    """Each of them may take the folder away just then; a busy machine had it three times in a row."""
    write, failures = plans.write_private, []

    def interrupted(path: str, text: str) -> None:
        if len(failures) < 10:
            failures.append(path)
            raise FileNotFoundError(2, "No such file or directory", path)
        write(path, text)

    monkeypatch.setattr(plans, "write_private", interrupted)
    leave(plan("make", "/f"), "call-1")
    assert paths_for("make") == ["/f"] and len(failures) == 10


@pytest.mark.parametrize("data", [b"", b"\0\0", b"session=\0", b"\xff\xfe\0nonsense", b"path=/f\0", b"x" * 1_000_000])
def test_a_file_that_is_no_plan_is_passed_over(data: bytes) -> None:
    leave(plan("make", "/f"), "call-1")
    Path(folder_of("s"), "call-0").write_bytes(data)
    Path(folder_of("s"), "call-2").mkdir()
    (Path(folder_of("s")) / "call-3").symlink_to("call-1")
    assert paths_for("make") == ["/f"]
    assert load(os.path.join(folder_of("s"), "call-0")) is None and load(os.path.join(folder_of("s"), "none")) is None


def test_a_plan_that_is_left_while_the_last_one_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    leave(plan("first", "/x"), "one")
    remove, left = os.remove, []

    def remove_slowly(path: str) -> None:
        if not left:
            left.append(path)
            leave(plan("second", "/x"), "two")
        remove(path)

    monkeypatch.setattr(os, "remove", remove_slowly)
    plans.drop("s", "one")
    folder = plans.folder_of("s")
    assert os.listdir(folder) == ["two"] and os.path.exists(plans.wired_file("s")), "its shell finds its plan"
    plans.drop("s", "two")
    assert not os.path.exists(folder)
