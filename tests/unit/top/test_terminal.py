"""`swarm-mcp top` at a real terminal: its screen, its keys, and the terminal's state after its end."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.busy_checkout import busy, session
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground, time_limit, wait_for
from support.full_screen import ALTERNATE, FullScreen
from support.screen import Played
from support.sessions import ROOT

from swarm_mcp.domain import Session
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import Attempt

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("usual_signals")]
CTRL_C, CTRL_Z, ESCAPE = "\x03", "\x1a", "\x1b"


def top(ground: Ground, *words: str, size: tuple[int, int] = (80, 24), argv: list[str] | None = None, **more) -> Played:
    """The command at a terminal of its own."""
    return Played(
        argv or [*SWARM, "top", *words],
        columns=size[0],
        rows=size[1],
        screen=FullScreen(*size),
        cwd=ground.repo,
        **more,
    )


def has(*words: str) -> Callable[[FullScreen], bool]:
    """Return a check that all of `words` are on the screen."""
    return lambda screen: all(word in screen.text for word in words)


def lacks(*words: str) -> Callable[[FullScreen], bool]:
    """Return a check that no word of `words` is on the screen."""
    return lambda screen: not any(word in screen.text for word in words)


def is_restored(played: Played) -> bool:
    """Return True if the terminal is as it was before: its modes, and the covered screen."""
    return played.screen.is_as_before() and played.screen.text == ""


def test_on_80_by_24_all_of_it_is_seen_and_follows(ground: Ground):
    one = busy(ground)
    with top(ground) as played:
        played.until(has("renumbering", "1. in line", "Edit:", "$0.1250", "? keys"))
        lines = {line[1:13].strip(): line for line in played.screen.lines if not line.startswith(">")}
        assert "claude-code 5f0c2f6e" in lines["src/store.py"] or "codex 77aa88bb" in lines["src/store.py"]
        text = played.screen.text
        assert re.search(r"claude-code 5f0c2f6e +\S+ +\S+ s +\S*store.py", text), "who holds what"
        assert re.search(r"claude-code a31c9d02 +waits .* src/store.py", text), "who waits for what"
        assert re.search(r"codex 77aa88bb .* Add an", text), "who does what"
        assert re.search(r"1\. in line +claude-code a31c9d02", text), "the line below the lock"
        assert re.search(r"codex 77aa88bb .*Edit: held by claude-code", text), "who was refused, and why"
        assert re.search(r"Add an index +\S+ +codex 77aa88bb +\$0\.1250", text), "the work with its cost"
        assert len(played.screen.lines) == 24 and all(len(line) <= 80 for line in played.screen.lines)
        with ground.store() as store:
            store.locks.release(Session(one), "src/store.py")
        ground.lock(one, "docs/api.md", "new words")
        played.until(has("docs/api.md", "new words"))
        played.types("q")
        assert played.ended() == 0
        assert is_restored(played)


@pytest.mark.parametrize("way", ["q", "Ctrl-C", "SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("where", ["panes", "page", "question"])
@pytest.mark.thorough
def test_however_it_ends_the_terminal_is_as_it_was(ground: Ground, way: str, where: str):
    one = busy(ground)
    with top(ground, "--as", one["id"]) as played:
        played.until(has("renumbering"))
        if where == "page":
            played.types("2w")
            played.until(has("Esc back", "held by"))
        elif where == "question":
            played.types("2u")
            played.until(has("y yes"))
        if way == "q":
            played.types("q" if where == "panes" else ESCAPE)
            if where != "panes":
                played.until(has("? keys"))
                played.until(lacks("y yes"))
                played.types("q")
        elif way == "Ctrl-C":
            played.types(CTRL_C)
        else:
            played.process.send_signal(getattr(signal, way))
        assert played.ended() == 0
        assert is_restored(played)


@pytest.mark.parametrize("where", ["reading", "drawing"])
def test_a_fault_of_ours_leaves_a_clean_terminal_and_a_report(ground: Ground, where: str):
    place = {
        "reading": ("swarm_mcp.view.top.reading", "Reader.read"),
        "drawing": ("swarm_mcp.view.top.pane", "Pane.render_line"),
    }[where]
    code = f"""
import sys; sys.path[:0] = {FOLDERS!r}
import os, {place[0]} as module
def fails(*_):
    secret = "of a session"
    raise ZeroDivisionError("a bug \\x1b[31m")
module.{place[1]} = fails
from swarm_mcp.cli.main import main
sys.exit(main(["top"]))
"""
    busy(ground)
    with top(ground, argv=[*BARE_PYTHON, "-c", code]) as played:
        assert played.ended() == 3
        assert played.screen.is_as_before()
        said = played.screen.text
        assert "swarm-mcp top: internal error" in said and "of a session" not in said and "Traceback" not in said


def test_a_terminal_that_is_closed_ends_it_and_what_it_started(ground: Ground):
    busy(ground)
    with top(ground) as played:
        played.until(has("renumbering"))
        played.types("4\r")
        played.until(has("swarm-mcp worker logs 12ab34cd-0000 --follow"))
        wait_for(lambda: children(played.process.pid))
        (child,) = children(played.process.pid)
        played.hangs_up()
        played.process.wait(timeout=time_limit(60))
        wait_for(lambda: not os.path.exists(f"/proc/{child}") or "Z" in status(child))


def children(pid: int) -> list[int]:
    """The processes that process `pid` has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [one for one, parent in pairs if parent == pid]


def status(pid: int) -> str:
    """The state of a process, in a letter."""
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout


def test_a_window_of_another_size_is_filled_anew(ground: Ground):
    busy(ground)
    with top(ground) as played:
        played.until(has("renumbering", "? keys"))
        for columns, rows in ((120, 40), (40, 10), (80, 24)):
            played.resizes(columns, rows)
            played.until(lambda screen: screen.lines and "? keys" in screen.lines[-1] and has("a31c9d02")(screen))
            assert len(played.screen.lines) == rows
        played.types("q")
        assert played.ended() == 0


def is_prompting(screen: FullScreen) -> bool:
    """Return True if a shell waits for a command: an ending program may throw away earlier input."""
    return ALTERNATE not in screen.modes and screen.text.endswith("prompt>")


def test_ctrl_z_gives_the_terminal_back_until_fg(ground: Ground):
    busy(ground)
    shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    with top(ground, argv=shell, env={"PS1": "prompt> "}) as played:
        played.until(has("prompt>"))
        played.types(" ".join(map(quoted, [*SWARM, "top"])) + "\n")
        played.until(has("renumbering", "? keys"))
        played.types(CTRL_Z)
        played.until(lambda screen: is_prompting(screen) and "Stopped" in screen.text)
        assert played.screen.is_as_before()
        played.types("fg\n")
        played.until(lambda screen: ALTERNATE in screen.modes and has("renumbering", "? keys")(screen))
        ground.lock(session(ground, "0badcafe"), "later.py")
        played.until(has("later.py"))
        played.types("q")
        played.until(is_prompting)
        played.types("exit $?\n")
        assert played.ended() == 0 and played.screen.is_as_before()


def quoted(word: str) -> str:
    """A word as a shell takes it."""
    import shlex

    return shlex.quote(word)


@pytest.mark.sampled
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "vt100"}, {"CLICOLOR": "0"}])
def test_without_colours_it_says_the_same(ground: Ground, environment: dict[str, str]):
    busy(ground)
    with top(ground, env=environment) as played:
        played.until(has("renumbering", "1. in line", "waits", "Edit:", "$0.1250"))
        played.types("2w")
        played.until(has("Esc back", "exclusive"))
        played.types(ESCAPE)
        played.until(has("? keys"))
        played.types("?")
        played.until(has("Ctrl-C"))
        played.types(CTRL_C)
        assert played.ended() == 0 and not played.screen.colours


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_cannot_be_filled_is_told_in_one_line(ground: Ground, environment: dict[str, str]):
    busy(ground)
    with top(ground, env=environment) as played:
        assert played.ended() == 1
        said = " ".join(played.screen.text.split())
        assert said.startswith("swarm-mcp top: ") and "swarm-mcp status" in said and "\x1b" not in played.raw


def test_where_standard_output_is_no_terminal_one_line_says_so(ground: Ground):
    done = ground.process("top")
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1 and "swarm-mcp status" in done.err


def test_without_textual_one_line_says_how_to_install_it(ground: Ground):
    code = f"""
import sys; sys.path[:0] = {FOLDERS!r}; sys.modules["textual"] = None
from swarm_mcp.cli.main import main
sys.exit(main(["top"]))
"""
    with top(ground, argv=[*BARE_PYTHON, "-c", code]) as played:
        assert played.ended() == 1
        said = " ".join(played.screen.text.split())
        # The named installer and its source depend on this installation.
        hint = re.search(r"missing package Textual: (.+); swarm-mcp status shows the same as lines$", said)
        assert hint and re.search(r" install (--force )?'?\S.*\[top\]'?$", hint[1]), said


def test_a_text_of_a_session_is_no_command_to_the_terminal(ground: Ground, store: Store):
    hostile = (
        "\x1b]0;title\x07\x1b[2J\x1b[?1049l\x9b31m\x90q\x9c \u202egnp.exe \u2066\u200b\r\n\x08[red]" + "long " * 300
    )
    one = ground.session("5f0c2f6e-1", label=f"origin:claude-code {hostile}")
    ground.lock(one, "\x1b[31ma\u202e.py", hostile)
    two = session(ground, "77aa88bb", "codex")
    file = f"{ground.scope}/\x1b[31ma\u202e.py"
    store.denials.report(Session(two), file, one["id"], Attempt(hostile[:200]))
    asked = {"type": "implement", "title": hostile, "description": hostile}
    task = store.tasks.request(Session(one), asked)["task"]
    store.tasks.claim(Session(two), task["id"], True)
    with top(ground, size=(100, 30)) as played:
        played.until(has("a\\u202e.py", "Refused 1", "Work 1"))
        for keys, there in (("2w", "swarm-mcp why"), ("3w", "swarm-mcp why"), ("3l", "swarm-mcp log"), ("4\r", "task")):
            played.types(keys)
            played.until(has(there, "Esc back"))
            played.types(ESCAPE)
            played.until(has("? keys"))
        played.types(CTRL_C)
        assert played.ended() == 0 and is_restored(played)
    assert "\u202e" not in played.raw and "\u2066" not in played.raw and "\u200b" not in played.raw
    assert not re.search("[\x80-\x9f\x08]", played.raw) and "title\x07" not in played.raw


def test_it_keeps_nobody_from_writing_and_no_log_from_shrinking(ground: Ground):
    one = busy(ground)
    with ground.store() as store, top(ground) as played:
        played.until(has("renumbering"))
        for number in range(5):
            store.locks.acquire(Session(one), f"new{number}.py")
            played.until(has(f"new{number}.py"))
        # An open transaction, a reader's too, keeps the log from being emptied.
        (result,) = ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        assert result["busy"] == 0
        played.types("q")
        assert played.ended() == 0


def test_keys_come_to_what_a_person_wants_to_know(ground: Ground):
    one = busy(ground)
    with top(ground, "--as", one["id"]) as played:
        played.until(has("renumbering", "$0.1250"))
        played.types("/codex")
        played.until(has('rows with "codex"'))
        played.until(lacks("1. in line"))
        played.types(ESCAPE)
        played.until(has("1. in line"))
        played.types("2w")
        played.until(has("swarm-mcp why src/store.py", "renumbering the"))
        played.types("q4\r")
        played.until(has("swarm-mcp worker logs 12ab34cd-0000 --follow"))
        played.types("q2u")
        played.until(has("Unlock", "y yes"))
        played.types("y")
        played.until(has("Locks 0", "1. in line for src/store.py"))
        played.types("q")
        assert played.ended() == 0


@pytest.mark.thorough
def test_idle_it_takes_next_to_no_time(ground: Ground):
    busy(ground)
    with top(ground) as played:
        played.until(has("renumbering", "$0.1250"))
        before = processor_ticks(played.process.pid)
        if before is None:
            pytest.skip("this system does not say what a process has used")
        played.watch(3.0)
        assert processor_ticks(played.process.pid) - before < 0.3 * os.sysconf("SC_CLK_TCK")
        played.types("q")
        assert played.ended() == 0


def processor_ticks(pid: int) -> int | None:
    """Return a process's processor time; None if unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return None
    return int(fields[11]) + int(fields[12])


def test_the_picture_in_the_documents_is_of_today(tmp_path: Path):
    """But for how long ago something was."""
    recorder = ROOT / "tests" / "documents" / "top_picture.py"
    target = tmp_path / "top.svg"
    subprocess.run(
        [sys.executable, "-B", str(recorder), str(target)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        check=True,
    )

    def said(file: Path) -> list[str]:
        drawn = ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")
        return [re.sub(r"\d+ (s|min)\b|\s+", "", " ".join(text.itertext())) for text in drawn]

    assert said(ROOT / "docs" / "images" / "top.svg") == said(target), "run: make picture"
