"""Code with a writer that cannot be resolved always makes a guess, in every disguise."""

from __future__ import annotations

import shlex

import pytest

from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.inline.python_library import METHODS, WRITERS
from swarm_hook_core.shell.inline.scanner import calls_of

NOT_KNOWN = "import random, functools, threading, asyncio\nx = random.choice(open('names').read().split())\n"
# Arguments that a row's action needs besides unknown ones, for the call to write at all.
MORE = {
    "open": "x, mode='w'",
    "archive": "x, mode='w'",
    "guess": "x, x, inplace=True",
    "write": "filename=x",  # of those that write only where they are told to
}
DRESSED = {
    "plain": "{call}",
    "function": "def f(y):\n    def g():\n        {call}\n    g()\nf(x)",
    "function with branches": "def f(y):\n    if y:\n        return\n    for z in y:\n        {call}\nf(x)",
    "decorated function": "@app.command()\ndef f():\n    {call}",
    "method": "class C(Base):\n    def __init__(self):\n        pass\n    def f(self):\n        {call}\nC().f()",
    "static method": "class C:\n    @staticmethod\n    def f():\n        {call}",
    "nested class": "class C:\n    class D:\n        async def f(self):\n            {call}",
    "comprehension": "[{call} for y in x]",
    "nested comprehension": "y = {{z: [{call} for a in b] for z, b in x.items() if z}}",
    "lambda handed over": "sorted(x, key=lambda y: {call})",
    "lambda in a dict": "{{'a': lambda: {call}}}[x]()",
    "lambda of an attribute": "x.on_change = lambda: {call}",
    "thread": "def f():\n    {call}\nthreading.Thread(target=f).start()",
    "partial": "def f(y):\n    {call}\nfunctools.partial(f, x)()",
    "coroutine": "async def f():\n    {call}\nasyncio.run(f())",
    "generator": "def f():\n    yield {call}\nlist(f())",
    "condition": "y = {call} if x else None",
    "assignment within": "if (y := {call}):\n    pass",
    "argument": "print(len(str({call})))",
    "default": "def f(y={call}):\n    pass\nf()",
    "loop": "while x:\n    {call}",
    "handler": "try:\n    x()\nexcept OSError:\n    pass\nelse:\n    {call}\nfinally:\n    pass",
    "match": "match x:\n    case [y, *z]:\n        {call}",
    "deletion": "with x as y:\n    del y[{call}]",
    "exec": "exec({text})",
    "format": "y = f'{{{call}}}'",
    "recursion": "def f(n):\n    if n:\n        return f(n - 1)\n    {call}\nf(40)",
}
# Functions that are in no table: the words of their names tell that they may write.
UNLISTED = [
    "import zipapp\nzipapp.create_archive('src', x)",
    "import readline\nreadline.write_history_file(x)",
    "from setuptools._distutils.file_util import copy_file\ncopy_file('a', 'b.txt')",
    "import scipy.io.wavfile as w\nw.write('a.wav', 1, x)",
    "import soundfile\nsoundfile.write(x, 1, 2)",
    "import nbformat\nnbformat.write({}, 'a.ipynb')",
    "from huggingface_hub import snapshot_download\nsnapshot_download(x)",
    "import py7zr\npy7zr.unpack_7zarchive('a.7z', 'out')",
    "from pkg import remove_tree\nlist(map(remove_tree, ['src']))",
]
# Writers that are reached by another name.
HIDDEN = [
    "import os\nfor name in x:\n    getattr(os, name)('a')",
    "globals()['op' + x]('a', 'w')",
    "import sys\nsys.modules['os'].remove(x)",
    "import os\nlist(map(os.remove, x))",
    "import os\nd = {'r': os.remove}\nd[x]('a.txt')",
    "import functools\nw = functools.partial(open, mode='w')\nw(x)",
    "import os as o\nr = o.remove\nr(x)",
    "from os import *\nremove(x)",
    "import importlib\nimportlib.import_module(x).run()",
    "exec(x)",
    "import sqlite3\nsqlite3.connect(database=x).execute('INSERT INTO t VALUES (1)')",
    "import sqlite3\nsqlite3.connect('a.db').cursor().execute(x)",
    "import subprocess\nsubprocess.run(x)",
    "import pathlib\nlist(map(pathlib.Path.unlink, x))",
    "class W:\n    pass\nW.w = open\nW.w(x, 'w')",
    "import glob\nfor _, p in list(zip(glob.glob('*'), ['a', 'b']))[1:]: open(p, 'w')",
    "import glob\nfor p in glob.glob('*.no') or [x]: open(p, 'w')",
]


def _says_something(code: str, folder) -> bool:
    effects = effects_of(shlex.join(["python3", "-c", NOT_KNOWN + code]), str(folder), {})
    return bool(effects.guesses or effects.writes or effects.trees or effects.git or effects.runs)


def _calls() -> list[str]:
    """Return a call of each writer in the tables, with unknown arguments."""
    calls = []
    for dotted, (action, *details) in WRITERS.items():
        if action == "chdir":
            continue
        module = dotted.rpartition(".")[0]
        named = f"__import__({module!r}, fromlist=['x']).{dotted.rpartition('.')[2]}" if module else dotted
        more = MORE.get(action) if action != "write" or details[0] == 99 else None
        calls.append(f"{named}(x, x, x)" if more is None else f"{named}({more})")
    for name, (kind, place, *_how) in METHODS.items():
        calls.append(f"x.{name}({'x' if place or kind == 'argument' else ''})")
    return calls


@pytest.mark.parametrize("dress", DRESSED)
@pytest.mark.sampled
def test_a_writer_of_an_unknown_path_is_never_silent(dress, tmp_path) -> None:
    silent, every = [], _calls()
    # All of them plain; of each dress every third will do, since together they take every call several times.
    for call in every if dress == "plain" else every[list(DRESSED).index(dress) % 3 :: 3]:
        code = DRESSED[dress].format(call=call, text=repr(call))
        if not _says_something(code, tmp_path):
            silent.append(call)
    assert not silent


@pytest.mark.parametrize("code", HIDDEN + UNLISTED)
def test_a_writer_by_another_name_is_never_silent(code, tmp_path) -> None:
    assert _says_something(code, tmp_path)


# How each language runs code, defines a function of parameters, calls one, and names a mode that writes.
SCANNED = {
    "javascript": (["node", "-e"], "import fs from 'fs'; export async function f(x) { await %s }", "%s(x, x, x)"),
    "ruby": (["ruby", "-e"], "def f(x)\n  %s\nend", "%s(x, x, x)"),
    "perl": (["perl", "-e"], "sub f { my ($x) = @_; %s; }", "%s($x, $x, $x)"),
    "php": (["php", "-r"], "function f($x) { return %s; }", "%s($x, $x, $x)"),
    "lua": (["lua", "-e"], "local function f(x) return %s end", "%s(x, x, x)"),
}


@pytest.mark.parametrize("language", SCANNED)
def test_a_scanned_writer_of_an_unknown_path_is_never_silent(language, tmp_path) -> None:
    how, within, called = SCANNED[language]
    silent = []
    for name, action in calls_of(language).items():
        if action == "chdir" or action.startswith("read "):
            continue
        call = called % (f"child_process{name}" if name[0] == "." else f"$x{name}" if name[:2] == "->" else name)
        for code in (call, within % call):
            effects = effects_of(shlex.join([*how, code]), str(tmp_path), {})
            if not (effects.guesses or effects.writes or effects.trees or effects.runs):
                silent.append(code)
    assert not silent


@pytest.mark.parametrize("module", ["fs", "node:fs", "fs/promises", "fs-extra", "graceful-fs"])
@pytest.mark.parametrize("given", ["require('%s')", "(await import('%s'))", "require('%s').promises"])
@pytest.mark.parametrize("path", ["'a.txt'", "x"])
def test_a_writer_of_a_module_without_a_name_is_never_silent(module, given, path, tmp_path) -> None:
    for function in ("rm", "unlinkSync", "chmod", "writeFile"):
        code = f"{given % module}.{function}({path}, 1)"
        effects = effects_of(shlex.join(["node", "-e", code]), str(tmp_path), {})
        assert effects.guesses or effects.writes or effects.trees, code


def test_a_command_run_by_a_module_without_a_name_is_read(tmp_path) -> None:
    for code in (
        "require('child_process').exec('rm a.txt')",
        "require('node:child_process').execFile('rm', ['a.txt'])",
    ):
        assert [one.path for one in effects_of(shlex.join(["node", "-e", code]), str(tmp_path), {}).writes] == ["a.txt"]
