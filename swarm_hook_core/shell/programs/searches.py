"""find and fd: the files they find, and the commands that they run on them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, Found, Stream, absolute, is_known, joined, text_of
from swarm_hook_core.shell.options import Options, split
from swarm_hook_core.shell.programs.find_expression import RUNS, Action, Expression, names_below
from swarm_hook_core.shell.programs.ignoring import IgnoreRules
from swarm_hook_core.shell.programs.xargs import placed, run_each, some_of
from swarm_hook_core.wildcards import match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits


LONGEST_REGEX = 200  # characters


def find(call: Call) -> None:
    words, follows = list(call.words), False
    while words and words[0] in ("-H", "-L", "-P", "-E", "-X", "-s", "-x", "-d"):
        follows = words.pop(0) == "-L" or follows
    roots: list[str] = []
    while words and not words[0].startswith("-") and words[0] not in ("(", "!", ")", ","):
        roots.append(words.pop(0))
    expression = Expression(words, call.folder, follows)
    roots = roots or ["."]
    printed: list[Any] = []
    for action in expression.actions:
        founds = _founds(call, expression, action, roots)
        if action.kind in ("-print", "-print0"):
            printed.append(None if founds is None else Stream(None, founds))
        elif action.kind == "-delete":
            _delete(call, roots, founds)
        elif action.kind.startswith("-f"):
            call.write(action.words[0], REPLACE)
        elif action.kind in RUNS:
            printed.append(_run_on(call, action, founds))
        elif action.kind in ("-ls", "-printf"):
            printed.append(None)
    call.output = joined(printed)


def _founds(call: Call, expression: Expression, action: Action, roots: list[str]) -> list[Found] | None:
    """Return the files of `action` as a list of Founds; None if a root is unknown."""
    founds: list[Any] = []
    for operand in filter(None, roots):  # there is no file of an empty name
        root = absolute(call.folder, operand)
        if root is None:
            inner = call.found(operand)
            if inner is None:
                return None
            founds += [Found(one.root, lambda _path: None) for one in inner]
            continue
        founds.append(_found(call, expression, action, operand, root))
    return founds


def _found(call: Call, expression: Expression, action: Action, operand: str, root: str) -> Found:
    def names() -> list[str] | None:
        return expression.names(action, operand, root, call.walk)

    return Found(root, expression.reaches(action, operand, root), names)


def _names_of(founds: list[Found] | None) -> list[str] | None:
    """Return the names in `founds`, None if they cannot be listed."""
    text = None
    if founds is not None:
        text = text_of(Stream(None, founds))
    if text is None:
        return None
    return text.splitlines()


def _delete(call: Call, roots: list[str], founds: list[Found] | None) -> None:
    names = _names_of(founds)
    for name in roots if founds is None else names or ():
        if names:
            call.write(name, REMOVE)
        else:
            call.tree(name, how=REMOVE)
    for one in founds or () if names is None else ():
        call.tree(one.root, one.admits, REMOVE)


def _run_on(call: Call, action: Action, founds: list[Found] | None) -> Stream | None:
    """Run an ``-exec``, and return its output."""
    together = action.words[-1:] == ["+"]
    if together or action.words[-1:] == [";"]:
        words = action.words[:-1]
    else:
        words = action.words
    in_place = action.kind in ("-execdir", "-okdir")  # it runs in the found file's folder
    names = None
    if in_place or not call.walk.only_reads(words):
        names = _names_of(founds)
    if not words or names is None:
        mark = UNKNOWN
        if founds is not None:
            mark = call.walk.mark(founds)
        folder = None
        if not in_place:
            folder = call.folder
        return call.walk.run([word.replace("{}", mark) for word in words], None, folder)
    if in_place:
        for name in names:
            folder, last = os.path.split(absolute(call.folder, name) or name)
            call.walk.run([word.replace("{}", "./" + last) for word in words], None, folder)
        return None
    if together and names:
        if "{}" in words:
            at = words.index("{}")
        else:
            at = len(words)
        return call.walk.run([*words[:at], *names, *words[at + 1 :]], None, call.folder)
    run_each(call, names, lambda name: [word.replace("{}", name) for word in words])
    return call.output


_FD_TAKES = (
    "--extension --type --exclude --max-depth --min-depth --exact-depth --changed-within --changed-before --size"
    " --owner --color --threads --search-path --base-directory --format --max-results --ignore-file --path-separator"
).split()


def fd(call: Call) -> None:
    words, command, together = list(call.words), [], False
    at = next((at for at, word in enumerate(words) if word in ("-x", "--exec", "-X", "--exec-batch")), len(words))
    words, command, together = words[:at], words[at + 1 :], words[at : at + 1] in (["-X"], ["--exec-batch"])
    options = split(words, "etEdSocj", _FD_TAKES)
    wanted, *roots = options.operands or [""]
    founds: list[Any] = []
    absolutes = [path for path in (absolute(call.folder, one) for one in roots) if path]
    for operand in roots + options.values("--search-path") or ["."]:
        root = absolute(call.folder, operand)
        if root is None:
            call.guess("a computed path")
            return
        admits = _fd_admits(call, root, wanted, options, absolutes)
        founds.append(Found(root, admits, _fd_listed(call, root, operand, admits)))
    if not command:
        call.says(None, founds)
        return
    if command[-1] == ";":
        command.pop()
    if not any("{" in word for word in command):
        command.append("{}")
    names = _names_of(founds)
    if names is None or (names and together):
        names = [call.walk.mark(founds)]
    for name in some_of(call, names):
        call.run([placed(word, name) for word in command])


def _fd_listed(call: Call, root: str, operand: str, admits: _FdAdmits) -> Callable[[], list[str] | None]:
    def look(names: list[str]) -> tuple[bool | None, bool | None]:
        path = os.path.join(root, *names)
        is_folder = os.path.isdir(path)
        if not names:
            return False, is_folder
        if not is_folder or os.path.islink(path):
            return admits(path), False
        return admits(path), admits.rules.admits(path)

    if operand == ".":
        operand = ""
    return lambda: names_below(call.walk, root, operand, look)


class _FdAdmits:
    """The files that fd finds: a function of a path, and the `rules` for ignored and hidden files."""

    def __init__(self, rules: IgnoreRules, matches: Admits) -> None:
        self.rules = rules
        self.matches = matches

    def __call__(self, path: str) -> bool | None:
        verdict = self.matches(path)
        if verdict is False:
            return False
        reached = self.rules.admits(path)
        if reached is False:
            return False
        if reached is None:
            return None
        return verdict


def _fd_rules(call: Call, root: str, options: Options, roots: list[str]) -> IgnoreRules:
    files = [".fdignore", ".ignore", ".gitignore"]
    if options.has("--no-ignore-vcs"):
        files.pop()
    if options.has("-I", "--no-ignore", "-u", "--unrestricted"):
        files = []
    home, config = call.walk.scope.known_text("HOME"), call.walk.scope.known_text("XDG_CONFIG_HOME")
    rules = IgnoreRules(
        root, call.folder, files, options.has("-H", "--hidden", "-u", "--unrestricted"), home=home, config=config,
        follows=options.has("-L", "--follow"), finds_links=True, roots=roots,
    )  # fmt: skip
    own = os.path.join(config or os.path.join(home, ".config"), "fd", "ignore")
    if options.has("--ignore-file", "--no-ignore-parent") or (files and os.path.exists(own)):
        rules.is_followed = False
    return rules


def _fd_admits(call: Call, root: str, wanted: str, options: Options, roots: list[str]) -> _FdAdmits:
    inside = root.rstrip("/") + "/"
    extensions = tuple("." + one.lower().lstrip(".") for one in options.values("-e", "--extension"))
    types = options.values("-t", "--type")
    depth = options.value("-d", "--max-depth") or ""
    excluded = [one for one in options.values("-E", "--exclude") if is_known(one)]
    unsure = options.has("--size", "-S", "--changed-within", "--changed-before", "--owner", "-o", "-p", "--full-path")
    unsure = unsure or not set(types) <= {"f", "file"}

    def admits(path: str) -> bool | None:
        names = path[len(inside) :].split("/")
        if (
            not path.startswith(inside)
            or (extensions and not names[-1].lower().endswith(extensions))
            or any(match(name, one) for one in excluded for name in names)
            or (types and not {"f", "file", "e", "empty", "x", "executable"}.intersection(types) and _is_plain(path))
            or (depth.isdecimal() and len(names) > int(depth))
        ):
            return False
        matched: bool | None = True
        if wanted not in ("", "."):
            matched = _fd_matches(names[-1], wanted, options)
        if unsure and matched is not False:
            return None
        return matched

    return _FdAdmits(_fd_rules(call, root, options, roots), admits)


def _is_plain(path: str) -> bool:
    return not os.path.isdir(path) and not os.path.islink(path)


def _fd_matches(name: str, wanted: str, options: Options) -> bool | None:
    if not is_known(wanted) or len(wanted) > LONGEST_REGEX:
        return None
    if options.has("-i", "--ignore-case") or (wanted == wanted.lower() and not options.has("-s", "--case-sensitive")):
        name = name.lower()
        if wanted == wanted.lower() or options.has("-g", "--glob"):
            wanted = wanted.lower()
    if options.has("-g", "--glob"):
        if "{" in wanted:
            return None
        return match(name, wanted)
    if options.has("-F", "--fixed-strings"):
        return wanted in name

    try:
        return bool(re.search(wanted, name, re.IGNORECASE if options.has("-i", "--ignore-case") else 0))
    except re.error:  # not a pattern for Python
        return None
