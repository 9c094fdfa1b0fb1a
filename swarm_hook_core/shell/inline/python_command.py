"""``python`` as a command: finds the code that it runs, and knows the modules run with ``-m``."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.inline.python import follow
from swarm_hook_core.shell.model import Stream, absolute, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs import program

OPAQUE = "an opaque script"

_READ_ONLY = frozenset(
    "this http.server calendar site sysconfig platform pprint tokenize dis ast inspect antigravity ensurepip keyword"
    " token tabnanny symtable pickletools pyclbr filecmp difflib base64 quopri uu locale textwrap help py_compile"
    " compileall flake8 pylint pyflakes pycodestyle pydocstyle bandit vulture mccabe radon pipdeptree pip_audit asyncio"
    " pstats smtpd nntplib ftplib webbrowser pydoc".split()
)
# Modules that are programs of their own: ``python -m black`` is ``black``
_PROGRAMS = {"pre_commit": "pre-commit", "sphinx": "sphinx-build", "cmakelang": "cmake-format", "sqlite3": "sqlite3",
             "swarm_mcp": "swarm-mcp"}  # fmt: skip
_PROGRAMS |= {
    name: name
    for name in (
        "black ruff isort autopep8 yapf autoflake pyupgrade docformatter mdformat djlint sqlfluff nbstripout jupytext"
        " pip pytest tox nox mypy pyright coverage mkdocs poetry pipenv hatch uv"
    ).split()
}


def python(call: Call) -> None:
    """``python [option] ... [-c code | -m module | file | -] [argument] ...``"""
    words, at = call.words, 0
    while at < len(words):
        word = words[at]
        if word in ("-V", "--version", "-VV", "-h", "--help", "-?", "--help-all", "--help-env", "--help-xoptions"):
            return
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            at += 2
            continue
        if word == "-" or not word.startswith("-"):
            break
        kind, attached = _deciding(word)
        if kind == "-c":
            code, rest = (attached, words[at + 1 :]) if attached else (_at(words, at + 1), words[at + 2 :])
            return follow(call, code, ["-c", *rest], _text(call.stdin))
        if kind == "-m":
            module, rest = (attached, words[at + 1 :]) if attached else (_at(words, at + 1), words[at + 2 :])
            return run_module(call, module, rest)
        at += 1
    rest = words[at:]
    if not rest or rest[0] in ("-", "/dev/stdin"):
        text = _text(call.stdin)
        if text is None:
            call.guess("Python code that is not known" if call.stdin is not None or rest else OPAQUE)
            return
        follow(call, text, rest or [""], "")
        return
    run_file(call, rest)


def _deciding(word: str) -> tuple[str, str]:
    """Return ``-c`` or ``-m`` and the text attached to it, for an option cluster such as ``-Ic`` or ``-uc'code'``."""
    if word.startswith("--"):
        return "", ""
    for place, letter in enumerate(word[1:], 1):
        if letter in "cm":
            return f"-{letter}", word[place + 1 :]
        if letter in "XW":
            return "", ""
    return "", ""


def _at(words: list[str], place: int) -> str:
    if place < len(words):
        return words[place]
    return ""


def _text(stream: Stream | None) -> str | None:
    if stream is None:
        return None
    return stream.text


def run_file(call: Call, words: list[str]) -> None:
    """Run a script file. It is opaque, but a small one's literal writes are as certain as in the command."""
    if words[1:] in (["--help"], ["-h"]):
        call.runs_project()
        return
    call.guess(OPAQUE)
    path = absolute(call.folder, words[0])
    stream = None
    if path is not None:
        stream = call.walk.files.text_of(path)
    if stream is not None and stream.text is not None:
        follow(call, stream.text, list(words), _text(call.stdin), path)


def run_module(call: Call, module: str, rest: list[Any]) -> None:
    """``python -m module rest``"""
    if not is_known(module):
        call.guess(OPAQUE)
        return
    special = _MODULES.get(module)
    if special is not None:
        special(call, rest)
        return
    is_writing = module == "pydoc" and "-w" in rest
    if (module in _READ_ONLY and not is_writing) or rest[:1] in (["--version"], ["--help"]):
        return

    name = _PROGRAMS.get(module.partition(".")[0], "")
    if name and program(name) is not None:
        call.run([name, *rest], call.stdin)
    else:
        call.guess(OPAQUE)


def _json_tool(call: Call, rest: list[str]) -> None:
    found = split(rest, long=("--indent",))
    if len(found.operands) > 1 and found.operands[1] != "-":
        call.write(found.operands[1])


def _environment_made(call: Call, rest: list[str]) -> None:
    for folder in split(rest, short="p", long=("--prompt", "--python", "--system-site-packages")).operands:
        call.tree(folder)


def _archive(call: Call, rest: list[str]) -> None:
    if {"-l", "--list", "-t", "--test"}.isdisjoint(rest):
        call.guess("packs or unpacks an archive")


def _tests(call: Call, rest: list[str]) -> None:
    call.runs_project()


_MODULES = {
    "json.tool": _json_tool,
    "json": _json_tool,
    "venv": _environment_made,
    "virtualenv": _environment_made,
    "zipfile": _archive,
    "tarfile": _archive,
    "unittest": _tests,
    "doctest": _tests,
}
