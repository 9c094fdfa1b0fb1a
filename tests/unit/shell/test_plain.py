"""Commands that a look at their text tells to write nothing: going through them says the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_hook_core.budget import Budget
from swarm_hook_core.shell import effects_of, plain
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.shell.walk import Walk

PROGRAMS = (
    "ls pwd echo true wc stat basename dirname realpath readlink whoami id uname cat head tail nl sed git".split()
)
WORDS = (
    "a.txt src/b.py ../c /d -n -ba -5 12 3,9p 2p -i -e -o -f -c -s -w --output=x --output -O --ext-diff status log diff"
    " show stash -- - -la --help --version 'a' \"b.txt\" '3,9p' = x=y + @ % , : --textconv --no-index -p --stat +2"
).split()


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(PROGRAMS), st.lists(st.sampled_from(WORDS), max_size=5))
def test_what_is_told_of_a_plain_command_is_what_going_through_it_tells(name: str, words: list[str]) -> None:
    command = " ".join([name, *words])
    told = plain.shown(command)
    if told is None:
        return
    effects = Effects()
    effects.budget = Budget(60)
    Walk(effects, "/work", {}).script(command)
    assert not (effects.writes or effects.trees or effects.git or effects.guesses or effects.runs), command
    assert [(read.folder, read.path, read.spans) for read in effects.reads] == [("/work", *one) for one in told], (
        command
    )


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat notes.md", ["notes.md"]),
        ("sed -n '1,200p' src/a.py", ["src/a.py"]),
        ("head -n 20 a b", ["a", "b"]),
        ("nl -ba 'a.py'", ["a.py"]),
        ("ls -la src", []),
        ("git status --short", []),
        ("git diff --stat", []),
    ],
)
def test_everyday_looks_are_plain(command: str, files: list[str]) -> None:
    assert [file for file, _spans in plain.shown(command) or ()] == files
    assert [(read.folder, read.path) for read in effects_of(command, "/w", {}).reads] == [
        ("/w", file) for file in files
    ]


@pytest.mark.parametrize(
    "command",
    [
        "", "ls > a", "ls; rm a", "ls && rm a", "ls\nrm a", "cat $(rm a)", "cat `rm a`", "x=1 ls", "sed -n 'w a' b",
        "sed -n 1p", "sed -i 1p a", "git log --output=a", "git diff -- a", "git stash", "cat a*", "cat ~/a", "./ls", "cat 'a b'",
        "rm a", "ls | tee a", "cat {a,b}", "tail -f a", "echo !!", "cat 'a",
    ],
)  # fmt: skip
def test_others_are_gone_through(command: str) -> None:
    assert plain.shown(command) is None
