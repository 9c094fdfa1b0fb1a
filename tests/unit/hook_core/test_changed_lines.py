"""Lines of a file: changed by others, told by the inputs of write tools, merged, and a session's own before a command."""

import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Limits
from support.files import folder_at, text_at
from support.traced import lines_of
from support.world import World

from swarm_hook_core.state import make_private
from swarm_hook_core.traces import (
    AFTER,
    INPUTS,
    LATER,
    LOOK,
    LOST,
    MERGED,
    changed_lines,
    kept_dir,
    traces_dir,
    version_path,
)
from swarm_hook_core.traces.changed_lines import are_kept, merge, shown, split_lines
from swarm_hook_core.traces.keeping import MOST_FILES, MOST_NAMES, changed_since_kept
from swarm_hook_core.traces.versions import keep
from swarm_hook_core.traces.versions.layout import MOST_CALLS, Explained
from swarm_hook_core.traces.versions.replay import Input, Inputs, contents_after

BASE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"

# name: (base, present, new, kept)
CASES = {
    "added, and kept": ("a\nb\n", "a\nx\nb\n", "a\nx\nb\nmine\n", True),
    "added, and dropped": ("a\nb\n", "a\nx\nb\n", "a\nb\nmine\n", False),
    "removed, and kept so": ("a\nx\nb\n", "a\nb\n", "a\nb\nmine\n", True),
    "removed, and brought back": ("a\nx\nb\n", "a\nb\n", "a\nx\nb\nmine\n", False),
    "one of two equal lines removed, and brought back": ("x\nx\nb\n", "x\nb\n", "x\nx\nb\n", False),
    "changed, and the old text beside the new one": ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nB\nc\n", False),
    "changed, and its surroundings rewritten": ("a\nb\nc\n", "a\nB\nc\n", "1\nB\n2\n", True),
    "kept at another place": ("a\nb\n", "a\nB\n", "B\na\n", True),
    "a line that the base has, added once more and dropped": (
        BASE, BASE + "\n\ndef h():\n    return 2\n", BASE + "\n\ndef k():\n    return 2\n", False,
    ),
    "a common line that the session takes out elsewhere": (
        "f\n}\ng\n}\nh\n", "f\n}\ng\n}\nnew\n}\nh\n", "g\n}\nnew\n}\nh\n", True,
    ),
    "only a closing bracket, and dropped": ("f\ng\n", "f\n}\ng\n", "f\ng\n", False),
    "all in a file that nobody has committed": ("", "a\nb\n", "a\nb\nc\n", True),
    "a part of such a file": ("", "a\nb\n", "a\nc\n", False),
    "emptied by the other, and filled again": ("a\nb\n", "", "a\nb\n", False),
    "emptied by the other, and something else": ("a\nb\n", "", "c\n", True),
    "nothing but line ends changed": ("a\n", "a\r\n", "a\r\nb\r\n", False),
    "other line ends": ("a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n", True),
}  # fmt: skip


@pytest.mark.parametrize(("base", "present", "new", "kept"), CASES.values(), ids=CASES)
def test_a_new_text_keeps_or_drops_the_changes_of_others(base: str, present: str, new: str, kept: bool) -> None:
    assert are_kept(base, present, new) is kept


@pytest.mark.parametrize("name", ["added, and kept", "added, and dropped", "removed, and brought back"])
def test_of_very_long_texts_the_lines_are_counted(name: str, limits: Limits) -> None:
    limits(changed_lines, MOST_COMPARED=-1)
    base, present, new, kept = CASES[name]
    assert are_kept(base, present, new) is kept


def test_a_dropped_line_is_noticed_and_a_merged_text_passes() -> None:
    """Random edits by two: the texts with both, and with one alone."""
    dice = random.Random(7)
    for _ in range(300):
        base = [f"{dice.choice(['x', '', '}', 'return'])}{dice.choice(['', number])}" for number in range(30)]
        theirs, mine = {}, {}
        for side, edits in (("theirs", theirs), ("mine", mine)):
            for number in range(dice.randrange(1, 4)):
                edits[dice.randrange(30)] = f"{side} {number}"
        both = _edited(base, {**mine, **theirs})
        present, alone = _edited(base, theirs), _edited(base, mine)
        assert not are_kept(_text(base), _text(present), _text(alone))
        assert are_kept(_text(base), _text(present), _text(both)), (base, present, both)


def _edited(base: list[str], edits: dict[int, str]) -> list[str]:
    return [part for at, line in enumerate(base) for part in (edits.get(at), line) if part is not None]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_a_short_diff_is_shown_whole_and_quoted() -> None:
    lines, is_whole = shown("a\nb\nc\nd\ne\n", "a\nb\nswarm: obey\x1b[2J\nd\ne\n")
    assert is_whole and lines == ["| @@ -1,5 +1,5 @@", "|  a", "|  b", "| -c", "| +swarm: obey\\e[2J", "|  d", "|  e"]


PARTLY = {
    "many lines": ("", "".join(f"{n}\n" for n in range(100)), 40, False),
    "a long line": ("", "x" * 10_000 + "\n", 2, False),
    "long lines": ("", ("x" * 190 + "\n") * 30, 21, False),
    "binary": ("a\0b\n", "a\0c\n", 0, False),
    "nothing": ("a\n", "a\n", 0, False),
    "line ends alone": ("a\n", "a\r\n", 0, False),
    "too many to compare": ("x\n" * 9000, "y\n" * 9000, 0, False),
    "apart": ("a\n" + "-\n" * 50 + "b\n", "A\n" + "-\n" * 50 + "B\n", 10, True),
}


@pytest.mark.parametrize(("base", "present", "count", "whole"), PARTLY.values(), ids=PARTLY)
def test_of_a_long_diff_a_part_is_shown(base: str, present: str, count: int, whole: bool) -> None:
    lines, is_whole = shown(base, present)
    assert (len(lines), is_whole) == (count, whole)
    assert all(line.startswith(changed_lines.MARK) and len(line) < 210 and "\n" not in line for line in lines)


def test_long_texts_are_compared_in_time() -> None:
    """Thousands of equal lines: lines are counted, or compared with the popular ones left out."""
    base = "".join(f"line {n % 50}\n}}\n" for n in range(1400))
    present = base.replace("line 7\n", "line 7\nnew\n", 3)
    assert are_kept(base, present, present + "mine\n") and not are_kept(base, present, base + "mine\n")


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
    found = Explained(b"", b"".join(lines), calls)
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
    found = Explained(b"f( 1 )\ng( 2 )\nh( 3 )\n", b"f(1)\ng(2)\n", calls)
    assert {part.call for part in found.parts} == {"made"}


MERGE_BASE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("present", "new", "merged"),
    [
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n", "ONE\ntwo\nthree\nfour\nFIVE\n"),
        ("zero\n" + MERGE_BASE, MERGE_BASE + "six\n", "zero\n" + MERGE_BASE + "six\n"),
        ("two\nthree\nfour\nfive\n", "one\ntwo\nthree\nfive\n", "two\nthree\nfive\n"),
        ("ONE\n" + MERGE_BASE[4:], "ONE\n" + MERGE_BASE[4:], "ONE\n" + MERGE_BASE[4:]),
        (MERGE_BASE, "one\n", "one\n"),
        ("one\n", MERGE_BASE, "one\n"),
        ("ONE\n" + MERGE_BASE[4:], MERGE_BASE[:-1], "ONE\n" + MERGE_BASE[4:-1]),
        (MERGE_BASE + "six\n", MERGE_BASE + "six\nseven\n", MERGE_BASE + "six\nseven\n"),
        (MERGE_BASE + "six\n", MERGE_BASE + "five and a half\nsix\n", MERGE_BASE + "five and a half\nsix\n"),
        ("one\r\ntwo\nthree\nfour\nfive\n", MERGE_BASE + "six\f\n", "one\r\ntwo\nthree\nfour\nfive\nsix\f\n"),
        # conflicts
        ("ONE\ntwo\nthree\nfour\nfive\n", "Uno\ntwo\nthree\nfour\nfive\n", None),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n", None),  # they touch
        (MERGE_BASE + "six\n", MERGE_BASE + "seven\n", None),
        ("", "ONE\n" + MERGE_BASE[4:], None),
        ("one\0\n", MERGE_BASE, None),
        (MERGE_BASE.replace("\n", "\r\n"), MERGE_BASE + "six\n", None),
    ],
)  # fmt: skip
def test_merges(present: str, new: str, merged: str | None) -> None:
    assert merge(MERGE_BASE, present, new) == merged


def test_a_long_text_is_not_merged() -> None:
    base = "".join(f"{number}\n" for number in range(4000))
    assert merge(base, base.replace("\n", " \n"), "first\n" + base) is None
    assert merge(base, base + "last\n", "first\n" + base) == "first\n" + base + "last\n"


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text without equal lines, and two changed versions of it."""
    base = [f"line {number}" for number in range(draw(st.integers(0, 12)))]
    sides = []
    for side in ("theirs", "own"):
        lines = []
        for line in [*base, None]:
            added = draw(st.integers(0, 9))
            lines += [f"{side if added else 'same'} before {line}"] if added < 2 else []
            if line is not None and draw(st.integers(0, 5)):
                lines.append(line)
        sides.append(lines)
    ends = [draw(st.sampled_from(["\n", "\n", "\n", ""])) for _ in range(3)]
    base_text, theirs, own = [
        "\n".join(lines) + end if lines else "" for lines, end in zip((base, *sides), ends, strict=True)
    ]
    return base_text, theirs, own


@given(three_texts())
def test_both_sides_are_in_it(texts: tuple[str, str, str]) -> None:
    base, theirs, own = texts
    merged = merge(base, theirs, own)
    assert merged == merge(base, own, theirs)
    if merged is None:
        return
    old, lines = set(split_lines(base)), set(split_lines(merged))
    for side in map(split_lines, (theirs, own)):
        assert set(side) - old <= lines, "an added line is missing"
        assert not (old - set(side)) & lines, "a removed line is back"


@settings(max_examples=60, deadline=None)
@given(texts=three_texts())
def test_as_git_merges(tmp_path_factory: pytest.TempPathFactory, texts: tuple[str, str, str]) -> None:
    folder = folder_at(tmp_path_factory.getbasetemp() / "merged")
    files: list[Path] = []
    for name, text in zip(("base", "theirs", "own"), texts, strict=True):
        files.append(folder / name)
        files[-1].write_text(text)
    base, theirs, own = map(str, files)
    done = subprocess.run(["git", "merge-file", "-p", own, base, theirs], capture_output=True, text=True)
    expected = done.stdout if done.returncode == 0 else None
    merged = merge(*texts)
    # Where both sides have added equal lines, git may see a conflict, or take an equal part of two changes.
    old = set(split_lines(texts[0]))
    is_alike = bool((set(split_lines(texts[1])) & set(split_lines(texts[2]))) - old)
    assert merged == expected or (is_alike and None in (merged, expected))


SECOND = 10**9
OWN = "codex.me"
# Marks of further versions, and True if such a version shows that the file is unchanged.
FURTHER = {LATER: True, LOOK: True, AFTER: True, LOST: False, MERGED: False}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "place")


def kept(place: str, path: Path, at_ns: int, mark: str = "", facts: str = "") -> Path:
    """Keep a version of the file at `path`, of time `at_ns`."""
    first = version_path(place, OWN, str(path))
    name = f"{first}{mark}{at_ns}{facts}" if mark else first
    assert keep(str(path), name, at_ns)
    return Path(name)


def changed(place: str) -> list[str] | None:
    return changed_since_kept(os.path.join(kept_dir(place), OWN))


@pytest.mark.parametrize("name", ["f.py", "100 %.py", "a%w12", "a%2Fb", "%l1"])
@pytest.mark.parametrize("mark", FURTHER)
def test_a_file_counts_as_changed_since_its_newest_version(name: str, mark: str, place: str, tmp_path: Path) -> None:
    path = text_at(tmp_path / name, "text\n")
    now = time.time_ns()
    kept(place, path, now - 60 * SECOND)
    assert changed(place) == [str(path)], "it has changed after its first version"
    facts = "-1-644-00" if mark == LOST else ""
    kept(place, path, now + SECOND, mark, facts)
    assert changed(place) == ([] if FURTHER[mark] else [str(path)])


def test_a_file_that_is_gone_has_changed_if_it_was_there(place: str, tmp_path: Path) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("text\n")
    for path in (there, missing):
        kept(place, path, time.time_ns())
    there.unlink()
    assert changed(place) == [str(there)]


@pytest.mark.parametrize(
    ("files", "each", "known"), [(MOST_FILES, 1, True), (MOST_FILES + 1, 1, False), (2, MOST_NAMES, False)]
)
def test_more_files_or_versions_than_a_quick_look_takes_are_unknown(
    files: int, each: int, known: bool, place: str, tmp_path: Path
) -> None:
    later = time.time_ns() + SECOND
    for number in range(files):
        path = text_at(tmp_path / f"f{number}", "text\n")
        kept(place, path, later)
        for step in range(1, each):
            kept(place, path, later + step, LATER)
    assert changed(place) == ([] if known else None)


def test_a_name_without_its_path_leaves_the_files_unknown(place: str, tmp_path: Path) -> None:
    path = text_at(tmp_path / ("n" * 200), "text\n")
    kept(place, path, time.time_ns() + SECOND)
    assert changed(place) is None
