"""The table of programs: it is whole, its language works as its head says, and the page about it is true."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.files import files_at

from swarm_hook_core import shell
from swarm_hook_core.shell import programs
from swarm_hook_core.shell.programs import functions, table

ROOT = Path(__file__).parents[3]
TABLES = list(programs._tables())
LINES = [line for text in TABLES for line in text.split("\n")]
HEADS = [line.partition(":")[0].split() for line in LINES if line[:1] not in ("", " ", "#")]


def cases(row: programs.Case) -> Iterator[programs.Case]:
    yield row.parse()
    for case in row.cases:
        yield from cases(case)


def test_a_program_has_one_row() -> None:
    names = [name for head in HEADS for name in head]
    assert len(names) == len(set(names))
    for head in HEADS:
        assert all(programs.row_of(name).whens == head for name in head)
    for name in ("frob", "over", "=FILE", "x*", "unless", "#", "", "rm grm"):
        assert programs.row_of(name) is None
    assert len(TABLES) == 1 + len(table.FAMILIES) and max(map(len, LINES)) <= 120


def test_rows_say_what_the_engine_knows() -> None:
    for name, *_others in HEADS:
        for case in cases(programs.row_of(name)):
            assert set(case.options.values()) <= {
                "",
                "=",
                "?",
                "=FILE",
                "=CHANGED",
                "=DIR",
                "=INSTEAD",
                "=IN",
                "?=IN",
            }, name
            assert not [option for option in case.options if option[0] != "-" and name != "dd"], (name, case.options)
            for verb, targets in case.effects:
                assert bool(targets) == (verb not in ("project", "put", "passes", "passes-names", "moves")), name
                odd = [one for one in targets if one[-1] == "=" or one.count("{") != one.count("}")]
                assert verb == "guess" or not odd, name
                assert verb != "do" or callable(getattr(functions, targets[0])), name
                assert verb != "language" or callable(programs.program(name).does), name


# Rows, and behind each `$` a command with its effects: `?` possibly, `~` a guess, `@` runs the project.
LANGUAGE = """
frob: write {}
  $ frob a b/c -x -- -y: a b/c -y
  $ frob - http://host/x: -
frob: -xy,--long= write {1} maybe {2-}
  $ frob -x a b -ya c e: b ?c ?e
  $ frob --long a b --long=c: b
frob: -i? write {}
  $ frob -i b -ia c: b c
frob: -o=FILE --dir=DIR -q=INSTEAD -C=IN write {} {.}.log
  $ frob -o a b.c: a b.c b.log
  $ frob -q a b.c -C d: d/a
  $ frob b.c --dir d: b.c b.log ?d/x ?d/x.py ?d/sub/y.py
frob: onedash -name,-x= -v write {}
  $ frob -name a --name b -x=c -xd -vv e: e
frob: onedash valued -v -i= write {}
  $ frob -i a -v b -q c d: b d
frob: strict --known write {}
  $ frob --known a: a
  $ frob --other a: a ~
frob: unless -n --dry only -w write {}
  $ frob -w a: a
  $ frob a: -
  $ frob -w -n a: -
frob: default . skip 1 needs 2 write {}
  $ frob a b c: b c
  $ frob a: -
frob: -f= drop run,r over .py
  $ frob run b/c.py: b/c.py
  $ frob r d: d/x.py d/sub/y.py
frob: flat .py
  $ frob d: d/x.py
frob: write {last} {1/} {1//}/z {1/.} {1?.zip}
  $ frob b/c.d e: b/c.d b/z c c.d e
  $ frob b/c: b/c b/c.zip b/z c
frob: -o= write {-o.}.d or {/.}.d {*.go/.} {:}
  $ frob -o x.o b/c.go: c x.d
  $ frob b/c.py:q: c.d q
frob: write {url}
  $ frob http://host/a/b.c?d#e host: b.c
frob: guess why not
  $ frob: ~
frob: project
  $ frob -o f: f ?f @
  $ frob help: -
frob: write z
  add: write {}
  list: nothing
  set get: write y
    -n: nothing
    *: write x
  $ frob: z
  $ frob add a: a
  $ frob list: -
  $ frob set: y
  $ frob set -n: -
  $ frob get a: x
  $ frob other a: ~
  $ frob add --help: -
frob: -v= write {1}
  -d --delete: tree {1}
  + -k: write k
  <: nothing
  $ frob -v x a: a
  $ frob -d -k d: d/x d/x.py d/sub/y.py k
  $ echo | frob a: -
frob: --*_out= maybe {--*_out} existing {}
  $ frob --py_out=d there a: there ?d/x ?d/x.py ?d/sub/y.py
frob: run touch {}
  $ frob a b: a b
frob: put
  $ frob a b d: d/a d/b
  $ frob h:q/a .: a
  $ frob a h:: -
frob: tree d/*.py
  $ frob: d/x.py d/sub/y.py
frob: reads -o
  $ frob -o f: -
  $ frob --output f: f ?f
  $ frob --fix f: ~
frob: ends -u=FILE -C=IN skip 1 run {}
  $ frob -u w 5 touch -c there: w there
  $ frob 5 A=b touch -c there x: there
  $ frob -C d 5 touch x.py: d/x.py
frob: -x= text {-x}
  $ frob -x 'touch a' -x 'touch b': a b
frob: nothing
  # a note within a row
  sub: run touch {rest}
    # another one
  far: elsewhere nothing
  $ frob sub -c there x: there
  $ frob far -o f: -
frob: -o= write {-o=}
  $ frob -o json=a -o json: a
frob: manifest lock
  $ cd d && frob: lock
frob: write frame%03d.png
  $ frob: ?there ?Pipfile ?d/x ?d/x.py ?d/sub/y.py
"""


def rows_and_commands() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    row: list[str] = []
    for line in LANGUAGE.strip().split("\n"):
        if line.startswith("frob:"):
            row = []
        if line.startswith("  $ "):
            command, _, wanted = line[4:].rpartition(": ")
            found.append(("\n".join(row), command, wanted))
        else:
            row.append(line)
    return found


def told(row: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the effects of `command` in `folder` once `row` is in the table."""
    monkeypatch.setattr(programs, "ROWS", f"\n{row}\n{table.ROWS}")
    monkeypatch.setattr(programs, "_met", {})
    files_at(folder, dict.fromkeys(("there", "Pipfile", "d/x", "d/x.py", "d/sub/y.py"), ""))
    effects = shell.effects_of(command, str(folder), {})
    words = {os.path.relpath(os.path.join(one.folder, one.path), folder) for one in effects.writes}
    for file in filter(Path.is_file, folder.rglob("*")):
        answers = [one.admits(str(file)) for one in effects.trees if f"{file}/".startswith(one.root + "/")]
        name = str(file.relative_to(folder))
        words |= {name} if True in answers else {"?" + name} if None in answers else set()
    for one in effects.trees:
        if not os.path.exists(one.root):
            words.add(("" if one.admits(one.root) else "?") + os.path.relpath(one.root, folder))
    words |= {"~"} if effects.guesses else set()
    words |= {"@"} if effects.runs else set()
    return " ".join(sorted(words)) or "-"


@pytest.mark.parametrize(("row", "command", "wanted"), rows_and_commands())
def test_the_language(row: str, command: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(told(row, command, tmp_path, monkeypatch).split()) == set(wanted.split())


def test_the_page_about_adding_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/dev/adding-a-program.md").read_text()
    row = text.partition("```\n")[2].partition("```")[0].strip()
    examples = ast.literal_eval(text.partition("```python\nROWS = ")[2].partition("```")[0])
    assert len(examples) == 3
    for command, wanted in examples:
        assert told(row, command, tmp_path, monkeypatch) == (wanted or "-")
