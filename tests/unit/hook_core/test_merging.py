"""Three-way merges of a file: both sides' changes, as git merges them, or none."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_hook_core.traces.changed_lines import merge
from swarm_hook_core.traces.equal_lines import split_lines

BASE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("present", "new", "merged"),
    [
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n", "ONE\ntwo\nthree\nfour\nFIVE\n"),
        ("zero\n" + BASE, BASE + "six\n", "zero\n" + BASE + "six\n"),
        ("two\nthree\nfour\nfive\n", "one\ntwo\nthree\nfive\n", "two\nthree\nfive\n"),
        ("ONE\n" + BASE[4:], "ONE\n" + BASE[4:], "ONE\n" + BASE[4:]),
        (BASE, "one\n", "one\n"),
        ("one\n", BASE, "one\n"),
        ("ONE\n" + BASE[4:], BASE[:-1], "ONE\n" + BASE[4:-1]),
        (BASE + "six\n", BASE + "six\nseven\n", BASE + "six\nseven\n"),
        (BASE + "six\n", BASE + "five and a half\nsix\n", BASE + "five and a half\nsix\n"),
        ("one\r\ntwo\nthree\nfour\nfive\n", BASE + "six\f\n", "one\r\ntwo\nthree\nfour\nfive\nsix\f\n"),
        # conflicts
        ("ONE\ntwo\nthree\nfour\nfive\n", "Uno\ntwo\nthree\nfour\nfive\n", None),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n", None),  # they touch
        (BASE + "six\n", BASE + "seven\n", None),
        ("", "ONE\n" + BASE[4:], None),
        ("one\0\n", BASE, None),
        (BASE.replace("\n", "\r\n"), BASE + "six\n", None),
    ],
)  # fmt: skip
def test_merges(present: str, new: str, merged: str | None) -> None:
    assert merge(BASE, present, new) == merged


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
    folder = tmp_path_factory.getbasetemp() / "merged"
    folder.mkdir(exist_ok=True)
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
