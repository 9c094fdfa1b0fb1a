"""Steps of a file, by inputs of write tools and by journals: torn ones, very many calls, lists in lists."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.world import World

from swarm_hook_core.state import make_private
from swarm_hook_core.traces import INPUTS, kept_dir, traces_dir
from swarm_hook_core.traces.versions.explained import MOST_CALLS, explain
from swarm_hook_core.traces.versions.lines import lines_of
from swarm_hook_core.traces.versions.replay import Input, Inputs, contents_after

WHOLE = b'5 7 Write\0/repo\0{"content": "x"}'


@pytest.mark.parametrize("end", range(len(b"5 7 Write"), len(WHOLE)))
def test_an_input_that_is_torn_anywhere_is_none(end: int) -> None:
    folder = os.path.join(kept_dir("place"), "codex.mine")
    make_private(folder)
    Path(folder, INPUTS).write_bytes(WHOLE[:end] + b"\n" + WHOLE.replace(b"5 7", b"8 9") + b"\n")
    inputs = Inputs("place", "codex.mine")
    assert inputs.at(6) is None
    later = inputs.at(8)
    assert later is not None and later.given == {"content": "x"}


def appended(line: bytes) -> Any:
    return lambda content: [(content or b"") + line]


def test_lines_of_the_first_of_very_many_calls_are_no_other_call_s() -> None:
    lines = [f"line {number}\n".encode() for number in range(MOST_CALLS + 3)]
    calls = [(number, appended(line), False) for number, line in enumerate(lines)]
    found = explain(b"", b"".join(lines), calls)
    assert len(found.parts) == MOST_CALLS and found.parts[-1].content == b"".join(lines)
    first = found.parts[0]
    assert {first.call, *first.others} == set(range(4)), "it has the lines of all four"
    assert not any(part.others for part in found.parts[1:])


def test_lists_in_lists_without_end_are_no_edits() -> None:
    edit = {"old_string": "a", "new_string": "b"}
    given: dict[str, Any] = {"files": [{"path": "x", "edits": [edit]}]}
    assert contents_after(Input("Edit", "/repo", given), "/repo/x", b"a\n", lambda _path: None) == [b"b\n"]
    for _level in range(2000):
        given = {"edits": [given]}
    assert contents_after(Input("Edit", "/repo", given), "/repo/x", b"a\n", lambda _path: None) == []


@pytest.mark.usefixtures("checks_have_time", "no_faults")
def test_a_journal_that_is_torn_in_its_last_look_tells_the_lines_all_the_same(world: World) -> None:
    me = world.session("codex")
    assert not me.edit("notes.md", "beta", "MINE").denied
    me.turn_ends()
    (path,) = (one for one in Path(traces_dir()).rglob("codex.*") if b" is - " in one.read_bytes())
    data = path.read_bytes()
    begin = data.rindex(b"\n", 0, data.rindex(b" is - ")) + 1
    line = data[begin:].partition(b"\n")[0]
    for end, byte in enumerate(line):
        if byte in b" \0":
            path.write_bytes(data[:begin] + line[: end + 1])
            assert [one.text for one in lines_of(str(world.repo / "notes.md")) if not one.is_committed] == [b"MINE\n"]


def test_a_call_that_is_still_to_come_has_removed_no_line_that_is_there_in_a_new_layout() -> None:
    calls = [
        ("open", lambda content: [content.replace(b"g( 2 )\n", b"")], True),
        ("made", lambda content: [content.replace(b"h( 3 )\n", b"")], False),
    ]
    found = explain(b"f( 1 )\ng( 2 )\nh( 3 )\n", b"f(1)\ng(2)\n", calls)
    assert {part.call for part in found.parts} == {"made"}
