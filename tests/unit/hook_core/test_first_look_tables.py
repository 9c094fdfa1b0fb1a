"""Tables of the program in front of the check (``native/``), compared with those of the check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swarm_hook_core import first_look
from swarm_hook_core.check import company, rules
from swarm_hook_core.shell import plain
from swarm_hook_core.traces import unread

NATIVE = Path(__file__).resolve().parents[3] / "native"


def listed(file: str, name: str) -> set[str]:
    """Return the texts of a table in a source of the program."""
    source = (NATIVE / file).read_text()
    found = re.search(rf"\b{name}\[\] = \{{(.*?)\}};", source, re.DOTALL)
    assert found, name
    texts = re.findall(r'"((?:[^"\\]|\\.)*)"', found[1])
    return {text.encode().decode("unicode_escape") for text in texts}


def test_contract() -> None:
    assert f"#define CONTRACT {first_look.CONTRACT}\n" in (NATIVE / "swarm_check.h").read_text()


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("READERS", plain.READERS),
        ("READERS_BUT", plain.READERS_BUT),
        ("SHOW", plain.SHOW),
        ("SUCCEED", plain.SUCCEED),
        ("FIND_WRITES", set(plain.WRITE_BY["find"])),
        ("RG_WRITES", set(plain.WRITE_BY["rg"])),
        ("GIT_LOOKS", plain.GIT_LOOKS),
        ("GIT_WRITES", set(plain.GIT_WRITES)),
        ("GIT_BRANCH", set(plain.GIT_LISTS["branch"])),
        ("TESTS", plain.TESTS),
    ],
)
def test_plain_commands(name: str, theirs: set[str]) -> None:
    assert listed("shell.c", name) == set(theirs)


def test_the_rest_of_plain_commands() -> None:
    assert plain.GIT_LISTS.keys() == {"branch", "remote", "stash"}
    assert (plain.GIT_LISTS["remote"], plain.GIT_LISTS["stash"]) == (("-v",), ("list",))
    assert plain.WRITE_BY.keys() == {"find", "rg"}
    source = (NATIVE / "shell.c").read_text()
    for program, letters in plain.FILTERS.items():
        found = re.search(rf'#define {program.upper()}_LETTERS "(.*)"', source)
        assert found and set(found[1]) == letters
    found = re.search(r'#define LETTERS "(.*)"', source)
    assert found and set(found[1]) == plain._LETTERS


def test_marks_for_a_closer_look() -> None:
    assert listed("destroyers.c", "programs") == company.PROGRAMS
    assert listed("destroyers.c", "in_place") == set(company.IN_PLACE)
    assert listed("destroyers.c", "inside") == set(company.INLINE)
    assert listed("destroyers.c", "harmless") <= company.HARMLESS
    marks = listed("destroyers.c", "of_protection")
    for word in (*rules._WORDS, *rules._REMOVING):
        assert any(mark in word for mark in marks), word
    assert listed("command.c", "of_head") == set(company._OF_HEAD)


def test_unparsed_commands() -> None:
    assert listed("others.c", "wide") == {mark.decode() for mark in unread._STAND_FOR_MANY}
    assert listed("others.c", "looks") == {word.decode() for word in unread._LOOK}
    assert listed("others.c", "goes_on") == {mark.decode() for mark in unread._GO_ON}


def test_settings() -> None:
    assert listed("ground.c", "odd_ends") == set(rules._SETTINGS)
