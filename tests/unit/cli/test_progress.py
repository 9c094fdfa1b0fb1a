"""Longer commands show their steps: at a terminal, in a pipe, and beside JSON."""

import json
import subprocess

import pytest
from support.fixtures import BARE_PYTHON, FOLDERS, Ground
from support.screen import Played, Screen

pytestmark = pytest.mark.slow

# Takes a step when a line is typed, so that a test decides how long each lasts.
SCENE = f"""
import sys
sys.path[:0] = {FOLDERS!r}
if "--without-rich" in sys.argv:
    sys.modules["rich"] = None
from swarm_mcp.cli.output import complain, say, show
from swarm_mcp.cli.progress import Progress
as_json = "--json" in sys.argv
with Progress(as_json) as progress:
    progress.begin("installing", "Codex")
    progress.begin("asking", "Claude Code")
    sys.stdin.readline()
    progress.end("installed", "Codex")
    complain("one thing is odd")
    sys.stdin.readline()
    progress.begin("trusting", "Codex")
    progress.note("in other words", "Claude Code")
    sys.stdin.readline()
    if "--fail" in sys.argv:
        raise SystemExit(3)
    progress.end("done", "Codex")
    progress.end(who="Claude Code")
show({{"ok": True}}) if as_json else say("all done")
"""
ARGV = [*BARE_PYTHON, "-c", SCENE]


def has(*lines: str):
    """A check that the last lines of the screen end with `lines`, in this order."""

    def there(screen: Screen) -> bool:
        shown = [line for line in screen.lines if line][-len(lines) :]
        return len(shown) == len(lines) and all(one.endswith(line) for one, line in zip(shown, lines))

    return there


def test_at_a_terminal_the_steps_under_way_stand_below_what_has_been_said():
    with Played(ARGV) as played:
        played.until(has("0s  Codex: installing", "0s  Claude Code: asking"))
        played.types("\n")
        played.until(has("Codex: installed", "one thing is odd", "Claude Code: asking"))
        played.types("\n")
        played.until(has("one thing is odd", "Claude Code: in other words", "Codex: trusting"))
        played.types("\n")
        assert played.ended() == 0
        said = [line for line in played.screen.lines if line]
        assert said[-1] == "all done" and said[-2].startswith("Codex: done") and said[-3] == "one thing is odd"
        assert not [line for line in said if "asking" in line or "trusting" in line]


def test_the_seconds_of_a_step_that_took_some_are_said_with_its_end():
    with Played(ARGV) as played:
        played.until(lambda screen: any(line.endswith("1s  Codex: installing") for line in screen.lines))
        played.types("\n\n\n")
        assert played.ended() == 0
        assert any(line.startswith("Codex: installed (") for line in played.screen.lines), played.screen.text


@pytest.mark.parametrize("columns", [20, 80])
def test_what_is_left_of_a_command_that_breaks_off_is_a_clean_terminal(columns: int):
    with Played([*ARGV, "--fail"], columns=columns) as played:
        played.until(lambda screen: "Codex" in screen.text)
        played.types("\n\n\n")
        assert played.ended() == 3
        assert played.screen.lines[-1] == "" and "trusting" not in played.screen.text
        assert not played.screen.broken


@pytest.mark.parametrize(("terminal", "words"), [("dumb", []), ("xterm", ["--without-rich"])])
def test_a_terminal_that_cannot_go_back_gets_plain_lines(terminal: str, words: list[str]):
    """So does one without rich: `doctor` must run where libraries are broken."""
    with Played([*ARGV, *words], env={"TERM": terminal}) as played:
        played.types("\n\n\n")
        assert played.ended() == 0
        assert "\x1b" not in played.raw
        said = [line for line in played.screen.lines if line]
        assert said == ["Codex: installing ...", "Claude Code: asking ...", "Codex: installed", "one thing is odd",
                        "Codex: trusting ...", "Codex: done", "all done"]  # fmt: skip


def test_in_a_pipe_each_step_is_a_line_when_it_begins_and_one_when_it_ends():
    with subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout

        def said(*expected: str) -> bool:
            # Were a line not handed over at once, this would wait for ever: the next step wants its answer first.
            return [process.stdout.readline().decode().rstrip("\n") for _ in expected] == list(expected)

        assert said("Codex: installing ...", "Claude Code: asking ...")
        for expected in (("Codex: installed",), ("Codex: trusting ...",), ("Codex: done", "all done")):
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert said(*expected)


def test_beside_json_only_a_terminal_on_standard_error_sees_the_steps():
    done = subprocess.run([*ARGV, "--json"], input=b"\n\n\n", capture_output=True)
    assert json.loads(done.stdout) == {"ok": True} and done.stderr == b"one thing is odd\n"
    with Played([*ARGV, "--json"], stdout=subprocess.PIPE) as played:
        played.until(has("Codex: installing", "Claude Code: asking"))
        played.types("\n\n\n")
        assert played.ended() == 0
        with played.process.stdout as out:
            assert json.loads(out.read()) == {"ok": True}
        assert [line for line in played.screen.lines if line] == ["one thing is odd"]


def test_doctor_says_what_it_looks_at(ground: Ground):
    done = ground.process("doctor", "--no-clients")
    assert "  [ .. ] swarm-mcp: looking at this installation ...\n" in done.out
    shown = ground.swarm("doctor", "--no-clients", "--json")
    assert shown.json["checks"] and shown.err == ""
