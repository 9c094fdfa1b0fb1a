"""``python`` as a command: which code it runs, and what is known of modules that are run with ``-m``."""

import time
from _ast import PyCF_ONLY_AST
from warnings import catch_warnings, simplefilter

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known
from swarm_hook_core.shell.programs.python.code import SECONDS, Code

LONGEST = 64 * 1024  # characters of code that are followed
MOST_DENSE = 5000  # signs and words that make parsing slow: some 4 µs each
_DENSE = (*";,\n([{=.+-*/<>:", " and ", " or ", " in ", " is ", " not ", " if ")
COMPUTED = "Python code that writes a computed path"
OPAQUE = "an opaque script"

_READ_ONLY = frozenset(
    "this http.server calendar site sysconfig platform pprint tokenize dis ast inspect antigravity ensurepip keyword"
    " token tabnanny symtable pickletools pyclbr filecmp difflib base64 quopri uu locale textwrap help py_compile"
    " compileall flake8 pylint pyflakes pycodestyle pydocstyle bandit vulture mccabe radon pipdeptree pip_audit asyncio"
    " pstats smtpd nntplib ftplib webbrowser".split()
)
# Modules that are programs of their own: ``python -m black`` is ``black``
_PROGRAMS = {"pre_commit": "pre-commit", "sphinx": "sphinx-build", "cmakelang": "cmake-format", "sqlite3": "sqlite3"}
_PROGRAMS |= {
    name: name
    for name in (
        "black ruff isort autopep8 yapf autoflake pyupgrade docformatter mdformat djlint sqlfluff nbstripout jupytext"
        " pip pytest tox nox mypy pyright coverage mkdocs poetry pipenv hatch uv"
    ).split()
}
# In what ``compile`` says of code that an older or a newer Python may run.
_OF_ANOTHER_AGE = ("Missing parentheses in call", "multiple exception types", "leading zeros", "f-string", "except*")


class Live:
    """Where followed code (``code.Code``) leaves its effects: the call that it is the code of.

    `minds_doubt`: writes behind a condition that nobody knows are not reported; for scripts, which are a guess anyhow.
    """

    def __init__(self, call, minds_doubt=False):
        self.call = call
        self.minds_doubt = minds_doubt
        self.guessed: set = set()

    def mark(self, found) -> str:
        return self.call.walk.mark(found)

    def variable(self, name: str):
        """The environment variable `name`, or None where it is not known."""
        found = self.call.walk.variable(self.call.walk.scope, name)
        return found if isinstance(found, str) else None

    def write(self, path: str, code) -> None:
        call = self.here(code)
        if self.minds_doubt and code.is_doubtful():
            return
        if is_known(path) or call.found(path) is not None:
            if absolute(call.folder, path) is not None or call.found(path) is not None:
                call.write(path)
                return
        self.guess(COMPUTED)

    def tree(self, path: str, code, admits=None) -> None:
        call = self.here(code)
        if self.minds_doubt and code.is_doubtful():
            return
        if absolute(call.folder, path) is None and call.found(path) is None:
            self.guess(COMPUTED)
        else:
            call.tree(path, admits)

    def has_made(self, path: str) -> bool:
        """Whether the command line has put something at absolute `path`."""
        return path in self.call.walk.contents

    def runs_project(self) -> None:
        self.call.runs_project()

    def guess(self, why: str) -> None:
        if why not in self.guessed:
            self.guessed.add(why)
            self.call.guess(why)

    def run(self, words: list, stdin, folder, code):
        """Run a command; what it prints, or None."""
        if self.minds_doubt and code.is_doubtful():
            return None
        call = self.here(code)
        call.run(words, self._given(stdin, code), folder)
        return call.output.text if call.output is not None else None

    def script(self, text: str, folder, code, stdin=None):
        """Run shell text; what it prints, or None."""
        if self.minds_doubt and code.is_doubtful():
            return None
        call = self.here(code, folder)
        call.script(text, (), self._given(stdin, code))
        return call.output.text if call.output is not None else None

    def _given(self, stdin, code):
        """The Stream that a command of the code reads: `stdin`, or where it is None what the code left of its own."""
        if stdin is None:
            return None if code.stdin is None else Stream(code.stdin)
        return Stream(stdin if is_known(stdin) else None)

    def here(self, code, folder=None) -> Call:
        """The call, in the folder that the code has moved to."""
        where = code.folder if folder is None else absolute(code.folder, folder)
        return Call(self.call.walk, self.call.name, self.call.words, where, self.call.stdin)


def python(call) -> None:
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


def _deciding(word: str):
    """What an option cluster such as ``-Ic`` or ``-uc'code'`` decides: ``-c`` or ``-m`` with what is attached to it."""
    if word.startswith("--"):
        return "", ""
    for place, letter in enumerate(word[1:], 1):
        if letter in "cm":
            return f"-{letter}", word[place + 1 :]
        if letter in "XW":
            return "", ""
    return "", ""


def _at(words, place: int) -> str:
    return words[place] if place < len(words) else ""


def _text(stream):
    return None if stream is None else stream.text


def run_file(call, words) -> None:
    """A script file: opaque, but what a small one writes by name is as certain as in the command."""
    if words[1:] in (["--help"], ["-h"]):
        call.runs_project()
    else:
        call.guess(OPAQUE)
    path = absolute(call.folder, words[0])
    stream = None if path is None else call.walk.text_of(path)
    if stream is not None and stream.text is not None:
        follow(call, stream.text, list(words), _text(call.stdin), path)


def follow(call, source: str, argv: list, stdin=None, file=None) -> None:
    """Tell through `call` what Python code `source` does. Never raises for what is in it."""
    if source == UNKNOWN:
        call.guess("computed Python code")
        return
    source, marks = _without_marks(source)
    started = time.thread_time()
    try:
        tree = parsed(source)
    except OverflowError:
        call.guess("Python code that is too long to follow")
        return
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = str(error)
        of_another_age = call.name.startswith("python2") or any(part in said for part in _OF_ANOTHER_AGE)
        if marks or not isinstance(error, SyntaxError) or of_another_age:
            call.guess("Python code that cannot be read")
        return
    # The walk has its own time; late in it there is little left for code.
    seconds = SECONDS / 10 if started > call.walk.end else max(SECONDS / 4, SECONDS - time.thread_time() + started)
    code = Code(Live(call, file is not None), call.folder, argv, file, stdin, seconds=seconds)
    code.marks = marks
    code.run(tree)
    if file is None and code.printed is not None and not code.outlet.guessed:
        call.says("".join(code.printed))


def parsed(source: str):
    """The syntax tree of `source`. Raises OverflowError where it is too long to be read in time, or as ``compile``."""
    if len(source) > LONGEST or sum(map(source.count, _DENSE)) > MOST_DENSE:
        raise OverflowError
    with catch_warnings():
        simplefilter("ignore")
        return compile(source, "<code>", "exec", PyCF_ONLY_AST)


def _without_marks(source: str):
    """`source` with a name in place of each mark, and what each of these names stands for."""
    if is_known(source):
        return source, {}
    parts, marks = source.split("\0"), {}
    for place in range(1, len(parts), 2):
        name = f"_swarm_mark_{place}_"
        marks[name] = f"\0{parts[place]}\0"
        parts[place] = name
    return "".join(parts), marks


def run_module(call, module: str, rest: list) -> None:
    """``python -m module rest``"""
    if not is_known(module):
        call.guess(OPAQUE)
        return
    special = _MODULES.get(module)
    if special is not None:
        special(call, rest)
        return
    if module in _READ_ONLY or any(word in ("--version", "--help") for word in rest[:1]):
        return
    from swarm_hook_core.shell.programs import program

    name = _PROGRAMS.get(module.partition(".")[0], "")
    if name and program(name) is not None:
        call.run([name, *rest], call.stdin)
    else:
        call.guess(OPAQUE)


def _json_tool(call, rest) -> None:
    from swarm_hook_core.shell.options import split

    found = split(rest, long=("--indent",))
    if len(found.operands) > 1 and found.operands[1] != "-":
        call.write(found.operands[1])


def _environment_made(call, rest) -> None:
    from swarm_hook_core.shell.options import split

    for folder in split(rest, short="p", long=("--prompt", "--python", "--system-site-packages")).operands:
        call.tree(folder)


def _archive(call, rest, unpacks) -> None:
    for place, word in enumerate(rest):
        if word in ("-c", "--create") and place + 1 < len(rest):
            call.write(rest[place + 1])
        elif word in ("-e", "--extract") and place + 1 < len(rest):
            where = rest[place + 2] if place + 2 < len(rest) else "."
            call.run([*unpacks[:-1], rest[place + 1], unpacks[-1], where])


def _gzip(call, rest) -> None:
    undo = any(word in ("-d", "--decompress") for word in rest)
    for word in rest:
        if not word.startswith("-"):
            call.write(word.removesuffix(".gz") if undo else f"{word}.gz")


def _timed(call, rest) -> None:
    at, codes = 0, []
    while at < len(rest):
        word = rest[at]
        if word in ("-s", "--setup") and at + 1 < len(rest):
            codes.append(rest[at + 1])
            at += 1
        elif word in ("-n", "-r", "-u", "--number", "--repeat", "--unit"):
            at += 1
        elif not word.startswith("-"):
            codes.append(word)
        at += 1
    follow(call, "\n".join(codes), ["-c"])


def _profiled(call, rest) -> None:
    """``cProfile``, ``pdb``, ``trace``, ``coverage run``-likes: options, then a script or ``-m module``."""
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        if rest[at] == "-m":
            run_module(call, _at(rest, at + 1), rest[at + 2 :])
            return
        if rest[at] in ("-o", "--outfile"):
            call.write(_at(rest, at + 1))
        if rest[at] in ("-o", "-s", "-c", "--outfile", "--sort", "--command"):
            at += 1
        at += 1
    if at < len(rest):
        run_file(call, rest[at:])


def _tested(call, _rest) -> None:
    call.runs_project()


def _converted(call, rest) -> None:
    if any(word.startswith("-w") or word == "--write" for word in rest):
        for word in rest:
            if not word.startswith("-"):
                call.tree(word, lambda path: None if path.endswith(".py") else False)


def _documented(call, rest) -> None:
    if rest[:1] == ["-w"]:
        for word in rest[1:]:
            call.write(f"{word}.html")


def _zipapp(call, rest) -> None:
    from swarm_hook_core.shell.options import split

    found = split(rest, short="opm", long=("--output", "--python", "--main"))
    made = found.value("-o", "--output")
    if made is not None:
        call.write(made)
    elif found.operands and not found.has("--info"):
        call.write(found.operands[0].rstrip("/") + ".pyz")


_MODULES = {
    "json.tool": _json_tool,
    "json": _json_tool,
    "venv": _environment_made,
    "virtualenv": _environment_made,
    "zipfile": lambda call, rest: _archive(call, rest, ("unzip", "-o", "-d")),
    "tarfile": lambda call, rest: _archive(call, rest, ("tar", "-xf", "-C")),
    "gzip": _gzip,
    "timeit": _timed,
    "cProfile": _profiled,
    "profile": _profiled,
    "pdb": _profiled,
    "trace": _profiled,
    "unittest": _tested,
    "doctest": _tested,
    "lib2to3": _converted,
    "pydoc": _documented,
    "zipapp": _zipapp,
}
