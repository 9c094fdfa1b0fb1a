"""Everyday commands that a first look recognises: going through them says the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from corpora import blocks
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Limits

from swarm_hook_core import EDIT
from swarm_hook_core.budget import Budget
from swarm_hook_core.shell import effects_of, plain, walk
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.shell.programs import table
from swarm_hook_core.shell.walk import Walk

TABLES = (plain.READERS, plain.READERS_BUT, plain.SHOW, plain.WRITE_BY, plain.FILTERS)
PROGRAMS = sorted(set().union(*TABLES)) + "git git-stash git pytest python3 cd echo cat grep wc stat id file".split()
WRITERS = ("echo", "echo", "cp", "mv", "printf", "cat", "rm", "ls")
WORDS = (
    "a.txt src/b.py ../c /d -n -ba -5 12 3,9p 2p -i -e -o -f -c -s -w -r -l -u -a -k -v -q -x -m -C -O -p --output=x"
    " --output --ext-diff --textconv --no-index --stat --oneline --no-pager --pre --tb=short --help --version -- - -la"
    " status log diff show branch stash list remote rev-parse ls-files blame pytest tests HEAD HEAD~2 -exec -delete"
    " -name 'a' \"b.txt\" '3,9p' 'a b' '*.py' *.py a* ~ '^' '' '.*$' = x=y + @ % , : +2"
).split(" ")
OPERATORS = ("&&", ";", "|", "||", "\n", "2>/dev/null", "2>&1", ">/dev/null", "&>/dev/null", ">> out", ">> 'x y'")
AMPLE = 600.0  # seconds
COMMAND = st.tuples(st.sampled_from(PROGRAMS), st.lists(st.sampled_from(WORDS), max_size=4))


@pytest.fixture(scope="module", autouse=True)
def time_to_read() -> Iterator[None]:
    """Commands are read to their end: on a busy machine a pause of this process takes longer than a check may."""
    with pytest.MonkeyPatch.context() as patch:
        Limits(patch)(walk, SECONDS=AMPLE, SECONDS_TO_PARSE=AMPLE)
        yield


def told(effects: Effects) -> dict[str, Any]:
    """Return the parts of Effects that decide about a call; the names of programs do not."""
    kinds = (effects.writes, effects.trees, effects.git, effects.guesses, effects.reads)
    lists = [[tuple(_comparable(getattr(one, name)) for name in one.__slots__) for one in kind] for kind in kinds]
    return {
        "lists": lists,
        "texts": {path: stream and (stream.text, stream.found, stream.file) for path, stream in effects.texts.items()},
        "copied": effects.copied,
        "deeds": effects.deeds,
        "runs": effects.runs,
    }


def _comparable(part: Any) -> Any:
    """Return the kind of a tree's predicate, and any other part of an effect itself."""
    return type(part).__name__ if callable(part) else part


def gone_through(command: str, folder: str = "/work") -> dict[str, Any]:
    effects = Effects(Budget(60))
    Walk(effects, folder, {}).script(command)
    return told(effects)


@settings(max_examples=600, deadline=None)
@given(COMMAND, st.lists(st.tuples(st.sampled_from(OPERATORS), COMMAND), max_size=3), st.sampled_from(("", ";", "&&")))
def test_what_is_told_of_a_plain_command_is_what_going_through_it_tells(first: Any, more: Any, end: str) -> None:
    parts = [" ".join([name, *words]) for name, words in (first, *(one[1] for one in more))]
    command = parts[0] + "".join(f" {one[0]} {part}" for one, part in zip(more, parts[1:], strict=True)) + end
    if plain.look(command) is not None:
        assert told(effects_of(command, "/work", {}, budget=Budget(60))) == gone_through(command)


NAMES = (
    "a.txt b.txt src src/ src/b.py src/new.py new new/ new/x . .. ../a.txt ./a.txt src/../a.txt link dead /etc/x -f -p -v -n -t"
    " -r -b -- - '' 'two words' 'a  b' '*.txt' '{a,b}' 'ä' 'x=y' =x ^ 'a\\nb' -n -e a,b x:y host:a ~ %1 +a @"
).split(" ")
OUTPUTS = ("> a.txt", ">b.txt", ">> a.txt", "> src", "> 'two words'", "> ./src/new.py", "> ../../dev/null", ">| a.txt")
LONG = "'" + 30 * "long " + "'"
STATEMENT = st.tuples(
    st.sampled_from(WRITERS), st.lists(st.sampled_from((*NAMES, LONG)), max_size=4),
    st.sampled_from(("", "", *OUTPUTS)), st.sampled_from(("", "2>/dev/null", "2>&1")),
)  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with files, a folder, and two links."""
    folder = tmp_path_factory.mktemp("work") / "checkout"
    (folder / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/b.py"):
        (folder / name).write_text("a line\n")
    (folder / "link").symlink_to("src")
    (folder / "dead").symlink_to("nowhere")
    return str(folder)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(STATEMENT, st.sampled_from((" && ", "; ", " | ", " || ", "\n"))), min_size=1, max_size=2))
def test_what_is_told_of_plain_writes_is_what_going_through_them_tells(checkout: str, parts: Any) -> None:
    command = ""
    for (name, words, output, errors), end in parts:
        command += " ".join(filter(None, (name, *words, output, errors))) + end
    command = command.rstrip("&;| \n")
    if plain.look(command) is not None:
        assert told(effects_of(command, checkout, {}, budget=Budget(60))) == gone_through(command, checkout)


@pytest.mark.parametrize(
    "command",
    [
        "echo x > f", "echo 'a line' >src/b.py", 'echo "it is" > \'two words\' 2>/dev/null', "echo > f", "cp a.txt new",
        "cp -f a.txt src", "cp a.txt src/", "cp src/b.py .", "mv a.txt new", "mv -f a.txt src/b.py", "mv a.txt link",
        f"echo {LONG} > new", f"echo {LONG} >> {LONG}", f"cp a.txt {LONG}", "git status && echo x > f", "echo x > f\nls",
    ],
)  # fmt: skip
def test_everyday_writes_are_plain(checkout: str, command: str) -> None:
    found = plain.look(command)
    assert found is not None and found.writes == 1
    assert told(effects_of(command, checkout, {}, budget=Budget(60))) == gone_through(command, checkout)


@pytest.mark.parametrize(
    "command",
    [
        "echo -n x > f", "echo -e x > f", "echo x > /dev/null > f", "echo x > /tmp/f", "echo x > -", "echo x >& f", "echo x >| f",
        "echo * > f", "echo x > f*", "ls > f", "cat a > f", "echo x > f | cat", "echo x | cat > f", "echo x > f || ls",
        "cd src && echo x > f", "echo x > f; echo y >> f", "echo x > f && cp f g", "cp a b; mv b c", "cp a", "cp a b c",
        "cp -r a b", "cp -n a b", "cp -t a b", "cp a b > c", "cp a* b", "cp a b >/dev/null", "cp /a b", "cp a ''", "mv a =b",
        "cp a b | cat", "ls | cp a b", "cp a b || ls", "cd x; mv a b", "echo x 1> f", "echo x <> f", "echo x > f > g",
    ],
)  # fmt: skip
def test_other_writes_are_gone_through(command: str) -> None:
    assert plain.look(command) is None


def test_a_folder_that_is_moved_is_gone_through(checkout: str) -> None:
    effects = effects_of("mv src new", checkout, {}, budget=Budget(60))
    assert [tree.root for tree in effects.trees] and told(effects)["texts"] == gone_through("mv src new", checkout)[
        "texts"
    ]


def test_a_device_is_no_file() -> None:
    assert effects_of("echo x > ../dev/null", "/work", {}, budget=Budget(60)).writes == []
    assert effects_of("cp a b", "/dev", {}, budget=Budget(60)).writes == []


def test_the_first_look_is_right_about_all_recorded_commands() -> None:
    """The corpus of commands, and all that it writes: a first look that finds less would let a conflict pass."""
    every = [block.text for folder in blocks.FOLDERS for block in blocks.load(folder)]
    seen = [command for command in every if plain.look(command) is not None]
    assert len(seen) > 100
    assert [
        command
        for command in seen
        if told(effects_of(command, "/work", {}, budget=Budget(60))) != gone_through(command)
    ] == []


@pytest.mark.parametrize("name", sorted(set().union(*TABLES)))
def test_the_first_look_knows_no_program_that_the_reader_has_no_row_for(name: str) -> None:
    """A reader is one in both tables."""
    row = next(
        (line for line in table.ROWS.replace("\n    ", " ").splitlines() if name in line.partition(":")[0].split()), ""
    )
    assert row, name
    if name in plain.READERS | plain.READERS_BUT:
        assert "reads" in row.split()


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat notes.md", ["notes.md"]),
        ("sed -n '1,200p' src/a.py", ["src/a.py"]),
        ("head -n 20 a b", ["a", "b"]),
        ("nl -ba 'a.py'", ["a.py"]),
        ("cat 'a b' && git status", ["a b"]),
        ("ls -la src", []),
        ("git status --short && grep -rn 'a line' src | head -20", []),
        ("git --no-pager log --oneline -5 2>/dev/null", []),
        ("cd src && rg 'x.*y$' -g '*.py' | sort | uniq -c", []),
        ("find . -name '*.py' | wc -l", []),
        ("python -m pytest -q tests 2>&1 | tail -5", []),
    ],
)
def test_everyday_looks_are_plain(command: str, files: list[str]) -> None:
    found = plain.look(command)
    assert found is not None and [file for file, _spans in found.shown] == files
    assert [(read.folder, read.path) for read in effects_of(command, "/w", {}).reads] == [
        ("/w", file) for file in files
    ]


def test_a_line_is_added_to_a_file_without_the_reader() -> None:
    found = plain.look("echo 'a line' >> 'notes of today.md'")
    assert found is not None
    assert found.outputs == [("notes of today.md", EDIT, "echo a line >> notes of today.md", None)]


@pytest.mark.parametrize(
    "command",
    [
        "", "ls > a", "ls; rm a", "ls && rm a", "ls\nrm a", "cat $(rm a)", "cat `rm a`", "x=1 ls", "sed -n 'w a' b",
        "sed -i 1p a", "git log --output=a", "git diff -- a", "git stash", "cat a*", "cat ~/a", "./ls", "ls >> $a",
        "rm a", "ls | tee a", "cat {a,b}", "tail -f a", "echo !!", "cat 'a", "find . -delete", "rg --pre x y", "sort -o a",
        "cd a && echo b >> c", "echo a >> b*", "echo a 1>> b", "ls &", "ls <<< a", "ls # a", 'echo "$(rm a)"', "(ls)",
        "pytest --junitxml=a", "git branch a", "cat a | head", "uniq a b", "wc --output=x", "cat a | xargs rm",
    ],
)  # fmt: skip
def test_others_are_gone_through(command: str) -> None:
    assert plain.look(command) is None
