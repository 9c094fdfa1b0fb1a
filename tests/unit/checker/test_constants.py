"""Names and numbers that stand in more than one language: the checker's, and those of its relays."""

import re
from pathlib import Path

import pytest

from swarm_hook_core import __version__
from swarm_mcp import checker

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
