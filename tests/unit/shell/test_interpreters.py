"""The effects found in code for interpreters, compared with a real run of the code."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from support import interpreter_cases as cases
from support.checkouts import AMPLE
from support.fixtures import time_limit

from swarm_hook_core import clock
from swarm_hook_core.shell import effects_of, walk
from swarm_hook_core.shell.model import absolute

pytestmark = pytest.mark.slow

HOWS = {
    "python": ["python3", "-c"],
    "node": ["node", "-e"],
    "perl": ["perl", "-e"],
    "ruby": ["ruby", "-e"],
    "php": ["php", "-r"],
    "lua": ["lua", "-e"],
}
LISTS = {
    "python": (cases.PYTHON, cases.PYTHON_READS, cases.PYTHON_COMPUTED),
    "node": (cases.NODE, cases.NODE_READS, cases.NODE_COMPUTED),
    "perl": (cases.PERL, cases.PERL_READS, cases.PERL_COMPUTED),
    "ruby": (cases.RUBY, cases.RUBY_READS, cases.RUBY_COMPUTED),
    "php": (cases.PHP, cases.PHP_READS, cases.PHP_COMPUTED),
    "lua": (cases.LUA, cases.LUA_READS, cases.LUA_COMPUTED),
    "command": (cases.COMMANDS, cases.COMMAND_READS, cases.COMMANDS_COMPUTED),
}


QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# Many times ``python3 -c`` in one process, each in a child of its own.
MANY = """
import json, os, sys
for folder, code in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        os.chdir(folder)
        sys.argv = ["-c", "arg.txt"] if ".argv[1]" in code else ["-c"]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        sys.exit()
    os.waitpid(child, 0)
"""


class Found(NamedTuple):
    """Files of the folder, relative: those that a command certainly writes, and those that it may write."""

    certain: set[str]
    possible: set[str]
    guesses: list[str]


def environment(folder: Path) -> dict[str, str]:
    here = os.path.dirname(sys.executable)  # a python3 that starts at once
    path = f"{here}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}


def files_of(folder: Path) -> dict[str, tuple[int, ...]]:
    """Relative name -> values that change with the file; without folders."""
    found = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            state = os.lstat(path)
            found[os.path.relpath(path, folder)] = (state.st_mtime_ns, state.st_size, state.st_mode, state.st_ino)
    return found


def command_for(language: str, code: str) -> str:
    if language == "command":
        return code
    return shlex.join([*HOWS[language], code, *(["arg.txt"] if ".argv[1]" in code else [])])


def changed_by(command: str, folder: Path) -> set[str]:
    """The files that `command` changes when it is run in `folder`."""
    cases.lay_out(folder)
    before = files_of(folder)
    subprocess.run(["bash", "-c", command], cwd=folder, env=environment(folder), timeout=60, **QUIET)
    return changes(before, files_of(folder))


def changed_by_python(codes: list[str], folders: list[Path]) -> list[set[str]]:
    """The same for each of `codes`."""
    for folder in folders:
        cases.lay_out(folder)
    before = [files_of(folder) for folder in folders]
    jobs = json.dumps(list(zip(map(str, folders), codes)))
    subprocess.run([sys.executable, "-c", MANY, jobs], env=environment(folders[0]), timeout=100, check=True, **QUIET)
    return [changes(state, files_of(folder)) for state, folder in zip(before, folders)]


def changes(before: dict, after: dict) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def found_in(command: str, folder: Path, names: set[str]) -> Found:
    """Return the analysis of `command` in `folder`; trees are asked about the files called `names`."""
    effects = effects_of(command, str(folder), environment(folder))
    certain = {os.path.relpath(absolute(write.folder, write.path) or "", folder) for write in effects.writes}
    possible = set()
    for name in names:
        path = folder / name
        answers = [tree.admits(str(path)) for tree in effects.trees if path.is_relative_to(tree.root)]
        if True in answers:
            certain.add(name)
        elif None in answers:
            possible.add(name)
    return Found(certain, possible, [guess.why for guess in effects.guesses])


@pytest.fixture(scope="module", params=list(LISTS))
def language(request, tmp_path_factory):
    """A language, with the outcome of each of its cases: code -> (files changed, files that were there, Found)."""
    name = request.param
    program = "bash" if name == "command" else HOWS[name][0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: its package gives what this runs")
    base = tmp_path_factory.mktemp(name).resolve()
    every = [code for group in LISTS[name] for code in group]
    commands = [command_for(name, code) for code in every]
    folders = [base / f"run-{place}" for place in range(len(every))]
    if name == "python":
        changed = changed_by_python(every, folders)
    else:
        with ThreadPoolExecutor(4) as pool:
            changed = list(pool.map(changed_by, commands, folders))
    outcomes = {}
    with pytest.MonkeyPatch.context() as patched:  # each is read to its end, on a busy machine as well
        for module, limit in ((clock, "SECONDS"), (walk, "SECONDS"), (walk, "SECONDS_TO_PARSE")):
            patched.setattr(module, limit, AMPLE)
        for place, (code, command) in enumerate(zip(every, commands)):
            folder = base / f"look-{place}"
            cases.lay_out(folder)
            there = set(files_of(folder))
            outcomes[code] = (changed[place], there, found_in(command, folder, there | changed[place]))
    return name, outcomes


@pytest.mark.sampled
def test_what_the_code_writes_is_found(language) -> None:
    name, outcomes = language
    for code in LISTS[name][0]:
        changed, there, found = outcomes[code]
        assert changed - found.certain == set(), code
        assert changed or "mkdir" in code, code
        assert (found.certain & there) - changed == set(), f"denied without need: {code}"
        assert not found.guesses, (code, found.guesses)


def test_code_that_only_reads_is_left_alone(language) -> None:
    name, outcomes = language
    for code in LISTS[name][1]:
        changed, _, found = outcomes[code]
        assert changed == set(), code
        assert found == Found(set(), set(), []), code


def test_what_only_a_run_can_tell_is_a_guess(language) -> None:
    name, outcomes = language
    for code in LISTS[name][2]:
        changed, there, found = outcomes[code]
        assert found.guesses or changed <= found.possible, code
        assert found.certain & there <= changed, code


@pytest.mark.parametrize("command", cases.OPAQUE)
def test_an_opaque_script_is_a_guess(command, tmp_path) -> None:
    cases.lay_out(tmp_path)
    (tmp_path / "build.js").write_text("")
    found = found_in(command, tmp_path, set(cases.FILES))
    assert found.guesses and not found.certain


@pytest.mark.parametrize("command", ["python3 -m unittest", "python3 -m pytest -q", "node --test", "bun test"])
def test_the_projects_own_tests_are_watched_without_a_word(command, tmp_path) -> None:
    effects = effects_of(command, str(tmp_path), environment(tmp_path))
    assert effects.runs and not effects.writes


SCRIPT = """
import argparse, pathlib, sys
HERE = pathlib.Path(__file__).parent
def report(path):
    path.write_text("x")
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    report(HERE / "report.txt")
    open("a.txt", "a").close()
    if args.purge:
        pathlib.Path("b.txt").unlink()
"""


def test_what_a_script_file_writes_by_name_is_found_but_not_what_it_only_may(tmp_path) -> None:
    cases.lay_out(tmp_path)
    (tmp_path / "src/s.py").write_text(SCRIPT)
    found = found_in("python3 src/s.py", tmp_path, set())
    assert found.certain == {"src/report.txt", "a.txt"}
    assert found.guesses == ["an opaque script"]
    assert found_in("python3 src/s.py --help", tmp_path, set()).certain == set()


def test_a_script_that_the_command_itself_makes_is_followed(tmp_path) -> None:
    cases.lay_out(tmp_path)
    found = found_in("cat > s.py <<'EOF'\nopen('a.txt', 'w')\nEOF\npython3 s.py && rm s.py", tmp_path, set())
    assert found.certain == {"s.py", "a.txt"}


def test_a_loop_over_files_is_certain_without_a_condition(tmp_path) -> None:
    cases.lay_out(tmp_path)
    code = "from pathlib import Path\nfor p in Path('src').glob('*.py'):\n    {}p.write_text('x')\n"
    files = {"src/app.py", "src/util.py"}
    for condition, certain in (("", files), ("if 'foo' in p.read_text(): ", set())):
        found = found_in(shlex.join(["python3", "-c", code.format(condition)]), tmp_path, set(cases.FILES))
        assert (found.certain, found.possible) == (certain, files - certain)


def test_tree_effects_of_modules(tmp_path) -> None:
    cases.lay_out(tmp_path)
    for command, root in (
        ("python3 -m venv .venv", ".venv"),
        ("python3 -c \"import shutil; shutil.unpack_archive('t.tar', 'out')\"", "out"),
        ("python3 -c \"import zipfile; zipfile.ZipFile('z.zip').extractall('out')\"", "out"),
    ):
        effects = effects_of(command, str(tmp_path), environment(tmp_path))
        assert [os.path.relpath(tree.root, tmp_path) for tree in effects.trees] == [root], command


HOSTILE = {
    "python3 -c": [
        "for i in range(300):\n for j in range(300):\n  for k in range(300):\n   open(f'{i}{j}{k}', 'w')",
        "def f(n):\n f(n + 1); f(n + 1)\nf(0)",
        "x = 'ab'\n" + "x = x + x\n" * 60 + "open(x, 'w')",
        "x = 9 ** 9 ** 9; y = [0] * 10 ** 9; z = 'a'.rjust(10 ** 9) + f'{1:999999999}'",
        "x = []\nx.append(x)\nd = {}\nd['d'] = d\nif x == [x] or d == {'d': d}: print(x, d)",
        "x" + ".b" * 32000,
        "-" * 60000 + "1",
        "x;" * 30000,
        "x = '" + "a" * 30000 + "'\nopen('" + "{0}" * 10000 + "'.format(x), 'w')",
        "x = '" + "9" * 50000 + "'\nfor i in range(300): int(x)",
        "import glob\nfor p in glob.glob('/usr/**/*', recursive=True): open(p + 'x', 'w')",
        "while True:\n  i += 1",
    ],
    "node -e": [
        "f(" * 20000,
        "a=b;" * 16000,
        '"${a}"' * 9000,
        "[1].forEach(f=>" * 4000,
        "/" * 60000,
        "a" * 60000,
        "\n" * 60000,
    ]
    + ["import " + " " * 60000, "await\t" * 10000, "require( " * 7000, "{a," * 20000, "a, " * 20000],
    "perl -e": ["open(" * 12000, "q(" * 30000, "'" * 60001, "$" * 60000],
    "ruby -e": ["<<A\n" * 15000, '"#{' * 20000, "%w[" * 20000],
}


@pytest.mark.sampled
@pytest.mark.parametrize(("how", "code"), [(how, code) for how, codes in HOSTILE.items() for code in codes])
def test_hostile_code_ends_in_time(how, code, tmp_path) -> None:
    effects_of(f"{how} 1", str(tmp_path))  # a module that is loaded once does not count
    best = math.inf
    for _ in range(3):
        start = time.thread_time()
        effects = effects_of(f"{how} {shlex.quote(code)}", str(tmp_path))
        best = min(best, time.thread_time() - start)
    assert best < time_limit(1)  # the goal is 0.05; what grows with the square takes minutes
    assert not any("not understood" in guess.why for guess in effects.guesses)
