"""Output: lines in a pipe, tables at a terminal, and no text that acts on the terminal."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixtures import SWARM, Ground
from support.screen import read_terminal

from swarm_mcp.answers import size
from swarm_mcp.cli import terminal
from swarm_mcp.cli.output import one_line, safe

pytestmark = pytest.mark.slow

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nlocked \u202egnp.exe\u202c \x9b31m\u2028\x00\x7f\u200e\U000e0041"
SGR = re.compile(r"\x1b\[[0-9;]*m")
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def on_terminal(ground: Ground, *argv: str, columns: int = 100, **environment: str) -> str:
    """Return the output of the command on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONUTF8": "1", **environment}
    process = subprocess.Popen(
        [*SWARM, *argv], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, cwd=ground.repo, env=settings
    )
    os.close(theirs)
    parts = []
    while part := read_terminal(ours):
        parts.append(part)
    os.close(ours)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and err == b"", err
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.fixture
def busy(ground: Ground) -> Ground:
    """A scope with two sessions, locks, keys, a task and a message."""
    one = ground.session("s1", "identity:w role:planner", state="working")
    two = ground.session("s2", "identity:w role:reviewer")
    ground.lock(one, "src/schema.sql", "renumbering")
    ground.lock(two, "docs/説明書/とても長い名前のファイル.md", "翻訳中")
    with ground.store() as store:
        store.kv.put(one, "plan/latest", "x")
    ground.add("tasks", id="t-1", scope=ground.scope, type="fix", title="T", requester=one["id"], status="blocked")
    ground.add("messages", scope=ground.scope, sender=one["id"], recipient=two["id"], content="first\nsecond line")
    return ground


def test_a_pipe_gets_the_lines_and_a_terminal_the_table(busy: Ground):
    piped = busy.process("locks").out
    name = f"planner {busy.sql('SELECT id FROM instances ORDER BY rowid')[0]['id'][:8]}"
    assert piped.splitlines()[0] == f"  {name}  src/schema.sql  — renumbering"
    assert "\x1b" not in piped
    shown = on_terminal(busy, "locks", columns=250)
    head, first, second = SGR.sub("", shown).splitlines()
    assert head.split() == ["FILE", "WHO", "SINCE", "FENCE", "NOTE"]
    assert "\x1b[1m" in shown
    for heading, text in (("WHO", "planner"), ("NOTE", "renumbering")):
        assert first.index(text) == head.index(heading)
    # In cells, not characters: the wide names take two each.
    assert size.width(second[: second.index("reviewer")]) == head.index("WHO")
    assert size.width(second[: second.index("翻訳中")]) == head.index("NOTE")


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("verb", ["locks", "instances", "status", "inspect"])
@pytest.mark.sampled
def test_a_table_fits_the_terminal(busy: Ground, verb: str, columns: int):
    shown = SGR.sub("", on_terminal(busy, verb, columns=columns))
    rows = [line for line in shown.splitlines() if not line.startswith(("scope", "recent"))]
    assert rows and max(map(size.width, rows)) <= columns, shown


@pytest.mark.sampled
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_what_tells_rows_apart_is_never_cut(busy: Ground, columns: int):
    one = busy.sql("SELECT id FROM instances WHERE label LIKE '%planner%'")[0]["id"][:8]
    name = (
        "src/a-folder-of-many-words/another-one-below-it/and-a-last-one/a-file-with-a-name-that-no-line-has-room-for.py"
    )
    busy.lock(busy.session("s3", "identity:w role:tester"), name, "why " * 40)
    shown = SGR.sub("", on_terminal(busy, "locks", columns=columns))
    cells = [line.split("  ")[0] for line in shown.splitlines()]
    assert name in "".join(cells), shown
    assert f"planner {one}" in shown
    assert ("…" in shown) is (columns > 60), "with too little room for it, the note stands below"
    assert f"planner {one}" in SGR.sub("", on_terminal(busy, "status", columns=columns))


def test_columns_decides_where_it_is_set(busy: Ground):
    shown = SGR.sub("", on_terminal(busy, "locks", columns=200, COLUMNS="50"))
    assert max(map(size.width, shown.splitlines())) <= 50


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "0"}, False), ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False), ({"CLICOLOR": "0"}, False), ({"FORCE_COLOR": "0"}, False),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_colours_at_a_terminal(busy: Ground, environment: dict, coloured: bool):
    shown = on_terminal(busy, "instances", **environment)
    assert ("\x1b[" in shown) is coloured
    assert SGR.sub("", shown).splitlines()[1].split() == ["SESSION", "ID", "STATE", "SEEN", "PID", "DIRECTORY"]


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False), ({"CLICOLOR_FORCE": "1"}, True), ({"FORCE_COLOR": "1"}, True), ({"CLICOLOR_FORCE": "0"}, False),
        ({"FORCE_COLOR": ""}, False), ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_colours_in_a_pipe(busy: Ground, environment: dict, coloured: bool):
    out = busy.process("instances", env={**os.environ, **environment}).out
    assert ("\x1b[" in out) is coloured
    assert json.loads(busy.process("instances", "--json", env={**os.environ, **environment}).out)
    if not coloured:
        assert out.startswith(f"scope: {busy.scope}\n  ") and "ID" not in out


def test_states_are_coloured_by_what_they_mean(busy: Ground):
    shown = on_terminal(busy, "inspect")
    assert "\x1b[35mblocked" in shown
    assert "\x1b[32mworking" in shown


@pytest.mark.parametrize("argv", [["tasks"], ["messages"], ["kv", "list"], ["ui", "list"]])
def test_every_listing_has_a_heading_at_a_terminal_and_none_in_a_pipe(busy: Ground, argv: list[str]):
    if argv[0] == "ui":
        busy.add("ui_commands", scope=busy.scope, created_by="x", kind="move_node", payload="{}", status="pending")
    heading = SGR.sub("", on_terminal(busy, *argv)).splitlines()[0]
    assert heading == heading.upper() and len(heading.split()) >= 2, heading
    assert heading not in busy.process(*argv).out


def test_a_message_is_shown_whole_below_its_row(busy: Ground):
    shown = SGR.sub("", on_terminal(busy, "messages", columns=60)).splitlines()
    assert shown[-2:] == ["    first", "    second line"]
    assert busy.process("messages").out.splitlines()[-2:] == ["    first", "    second line"]


@pytest.mark.parametrize(
    "argv",
    [["locks"], ["instances"], ["status"], ["inspect"], ["tasks"], ["messages"], ["kv", "list"], ["kv", "get", "k"],
     ["whoami", "--as", "bad"], ["whoami", "--as", "nobody"], ["lock", "f", "--as", "me"], ["doctor", "--no-clients"]],
)  # fmt: skip
@pytest.mark.parametrize("json_too", [False, True])
@pytest.mark.sampled
def test_nothing_of_another_session_acts_on_the_terminal(ground: Ground, argv: list[str], json_too: bool):
    me = ground.session("me", "me")
    ground.stranger("bad" + HOSTILE[:9].replace("\x1b", "\x9b"), label=f"name {HOSTILE}")
    bad = ground.sql("SELECT * FROM instances WHERE label LIKE 'name%'")[0]
    ground.sql(
        "INSERT INTO context (id, scope, instance_id, file, type, content) VALUES ('c', ?, ?, ?, 'lock', ?)",
        ground.scope, bad["id"], f"{ground.scope}/f", HOSTILE,
    )  # fmt: skip
    ground.add("tasks", id="t", scope=ground.scope, type="fix", title=HOSTILE, requester=bad["id"])
    ground.add("messages", scope=ground.scope, sender=bad["id"], recipient=me["id"], content=HOSTILE)
    ground.add("kv", scope=ground.scope, key="k", value=HOSTILE)
    ground.add("kv", scope=ground.scope, key=f"x{HOSTILE}", value="1")
    done = ground.process(*argv, *(["--json"] if json_too else []))
    assert not ACTING.search(done.out) and not ACTING.search(done.err), done
    assert "owned" in done.out + done.err or argv[0] in ("whoami", "doctor", "kv"), "the words were shown"
    assert done.err.count("\n") == (0 if not done.code or (json_too and done.out) else 1)
    assert "\nlocked \\" not in done.out or argv[0] in ("kv", "messages"), "a line that no row has"


@given(st.text())
def test_safe_text_is_itself_where_it_is_harmless_and_never_acts(text: str):
    assert not ACTING.search(safe(text))
    assert "\n" not in one_line(text) and "\t" not in one_line(text)
    if not ACTING.search(text) and all(unicodedata.category(c)[0] in "LMNPS" or c in " \n\t" for c in text):
        assert safe(text) == text


def test_emoji_and_other_scripts_stay_as_they_are():
    for text in ("naïve", "日本語", "👩‍💻 builds", "हिन्दी", "न्\u200dय", "a\u00a0b", "\u3000"):
        assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("", 0), ("日本", 4), ("e\u0301", 1), ("ｆｕ", 4), ("🙂", 2), ("a\u200db", 2)]
)
def test_width_is_counted_in_cells(text: str, cells: int):
    assert size.width(text) == cells


@given(st.text(max_size=30), st.integers(0, 20), st.booleans())
def test_clipped_text_fits_and_is_an_end_of_the_whole(text: str, room: int, keep_end: bool):
    cut = size.clipped(text, room, keep_end)
    assert size.width(cut) <= room
    if size.width(text) <= room:
        assert cut == text
    elif room:
        rest = cut.strip("…") if "…" not in text else None
        assert rest is None or (text.endswith(rest) if keep_end else text.startswith(rest))


COLUMNS = st.sampled_from(["file", "who", "note", "since", "mode", "title", "message", "pid"])


@given(st.lists(st.tuples(st.integers(0, 200), COLUMNS), min_size=1, max_size=8), st.integers(10, 200))
def test_widths_shrink_only_as_far_as_needed(columns: list[tuple[int, str]], limit: int):
    widths, names = [cells for cells, _ in columns], [name for _, name in columns]
    fitted = terminal.fitted(widths, names, limit)
    room = limit - terminal.GAP * (len(widths) - 1)
    assert all(new <= old for new, old in zip(fitted, widths))
    if sum(widths) <= room:
        assert fitted == widths
    elif sum(min(w, terminal.NARROWEST) for w in widths) <= room:
        assert sum(fitted) == room
    assert all(new == old or new >= terminal.NARROWEST for new, old in zip(fitted, widths))
    cut = [name for name, new, old in zip(names, fitted, widths) if new < old]
    for name, new, old in zip(names, fitted, widths):
        if name in ("since", "mode", "pid") and new < old:  # short columns give only after all others
            texts = [at for at, one in enumerate(names) if one in terminal.TEXTS]
            assert all(fitted[at] <= terminal.NARROWEST for at in texts), cut


@given(st.text("ab /-\u8aac", max_size=60), st.integers(2, 30))
def test_what_is_parted_is_all_there(text: str, room: int):
    parts = size.parted(text, room)
    assert all(size.width(part) <= room for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_a_note_without_room_stands_below_its_row(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    row = (
        "src/importers/legacy/excel_95_reader.py",
        "claude-code 5f0c2f6e",
        "4 s ago",
        7,
        "moving the reader of old spreadsheets",
    )
    headers = ("file", "who", "since", "fence", "note")
    monkeypatch.setenv("COLUMNS", "68")
    assert terminal.lay_out(headers, [row, ("b", "a terminal 8e3c69bd", "now", 8, None)]) == [
        "FILE                                   WHO                   SINCE",
        "src/importers/legacy/                  claude-code 5f0c2f6e  4 s ago",
        "excel_95_reader.py",
        "    moving the reader of old spreadsheets",
        "b                                      a terminal 8e3c69bd   now",
    ]
    monkeypatch.setenv("COLUMNS", "105")
    head, first, _ = terminal.lay_out(headers, [row, ("b", "a terminal 8e3c69bd", "now", 8, None)])
    assert head.split() == ["FILE", "WHO", "SINCE", "NOTE"] and "4 s ago  moving the reader of old spreads…" in first


def test_numbers_stand_to_the_right_and_empty_columns_are_left_out(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = terminal.lay_out(("n", "pane", "name"), [(5, None, "a"), (1234, "", "b")])
    assert lines == ["   N  NAME", "   5  a", "1234  b"]


@pytest.mark.parametrize("verb", ["locks", "register", "deregister", "denied", "instances", "kv", "lock"])
@pytest.mark.sampled
def test_a_pipe_loads_nothing_that_costs(ground: Ground, verb: str):
    from support.fixtures import BARE_PYTHON, FOLDERS

    me = ground.session("s", "me")
    of_session = ["--runtime", "claude-code", "--session-id", "s"]
    argv = {
        "lock": ["lock", "f", "--as", me["id"]],
        "kv": ["kv", "list"],
        "deregister": ["deregister", *of_session],
        "denied": ["denied", "f", *of_session, "--holder", "h"],
    }.get(verb, [verb])
    code = (
        f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; code = main(sys.argv[1:]);"
        " print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = ground.process(*argv, program=[*BARE_PYTHON, "-c", code])
    loaded = set(done.err.split())
    assert done.code == 0 and "swarm_mcp.cli.output" in loaded
    assert not loaded & {"shutil", "unicodedata", "difflib", "argparse"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, a device that is always full (Linux)")
@pytest.mark.parametrize("argv", [["instances"], ["locks", "--json"], ["help"]])
def test_a_full_disk_is_one_line_and_exit_1(ground: Ground, argv: list[str]):
    ground.session("s", "me")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*SWARM, *argv], stdout=full, stderr=subprocess.PIPE, cwd=ground.repo, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1 and b"cannot write the answer" in done.stderr, done


@given(st.text("ab 翻-é", max_size=80), st.integers(8, 40))
def test_prose_is_folded_between_words_and_none_is_lost(line: str, room: int):
    parts = size.folded(line, room)
    assert " ".join(" ".join(parts).split()) == " ".join(line.split())
    longest = max([size.width(word) for word in line.split()], default=0)
    margin = len(line) - len(line.lstrip(" "))
    if margin + 2 + longest <= room:
        assert max(map(size.width, parts)) <= room


def test_a_word_that_fits_nowhere_stays_where_it_is():
    assert size.folded("scope: /a/very/long/path and more", 12) == ["scope: /a/very/long/path", "  and more"]
