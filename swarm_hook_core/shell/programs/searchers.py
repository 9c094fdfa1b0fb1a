"""Programs that search files. A listing search (`-l`) is run on the locked files alone, one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known
from swarm_hook_core.shell.options import Options, split
from swarm_hook_core.shell.programs.asked import Asked
from swarm_hook_core.wildcards import match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits


_GREP_TAKES = (
    "--regexp --file --max-count --label --after-context --before-context --context --binary-files --devices"
    " --directories --include --exclude --exclude-dir --exclude-from --group-separator --color"
).split()
_WHOLE = frozenset("-n -H -h --line-number --with-filename --no-filename --color --colour".split())
_RG_TAKES = (
    "--regexp --file --max-count --after-context --before-context --context --glob --iglob --type --type-not"
    " --max-depth --max-filesize --replace --encoding --engine --threads --sort --sortr --color --colors --pre"
    " --ignore-file --path-separator --type-add"
).split()


def grep(call: Call) -> None:
    rg = call.name in ("rg", "ag", "ack")
    takes = {"rg": "efmABCgtTdDjMrE", "ag": "ABCGmpW", "ack": "ABCm"}.get(call.name, "efmABCdD")
    options = split(call.words, takes, _RG_TAKES if rg else _GREP_TAKES)
    operands = list(options.operands)
    pattern = None
    if rg:
        from swarm_hook_core.shell.programs import ripgrep
    by_name = rg and (options.has("--files") or (call.name == "ack" and options.has("-f")))
    if rg and call.name != "rg" and options.has("-g"):
        pattern, operands = (operands or [""])[0], operands[1:]  # a pattern of names
    elif not options.has("-e", "-f", "--regexp", "--file") and not by_name:
        pattern = ""
        if operands:
            pattern = operands.pop(0)
    if rg:
        lists = ripgrep.lists(call, options)
    else:
        lists = options.has("-l", "-L", "--files-with-matches", "--files-without-match")
    recursive = options.has("-r", "-R", "--recursive", "--dereference-recursive")
    recursive = recursive or "recurse" in options.values("-d", "--directories")
    if not lists:
        if pattern in ("", "^") and not set(options.given) - _WHOLE:  # every line has that
            call.shows(operands)
        if not operands and call.stdin is not None and not recursive:
            _filter(call, options, pattern)
        return
    if rg:
        listed = ripgrep.found(call, options, operands, pattern)
        if listed is not None:
            call.says(None, listed)
        return
    if not all(map(is_known, [*options.values(*options.given), pattern or ""])):
        pattern = UNKNOWN
    founds: list[Any] = []
    matched = Asked(call, operands, pattern is None or is_known(pattern))
    for word in operands or ["."]:
        inner = call.found(word)
        path = absolute(call.folder, word)
        if inner:
            founds += [Found(one.root, _both(one.admits, matched)) for one in inner]
        elif path is None:
            return
        else:
            founds.append(Found(path, _both(_reached(path, recursive, options), matched)))
    call.says(None, founds)


def _reached(root: str, recursive: bool, options: Options) -> Admits:
    """Return a predicate: the search for files under `root` visits a path."""

    def admits(path: str) -> bool:
        if path == root:
            return True
        if not recursive or not path.startswith(root.rstrip("/") + "/"):
            return False
        names = path[len(root.rstrip("/")) + 1 :].split("/")

        without = options.values("--exclude-dir")
        return not any(match(name, one.rstrip("/")) for name in names[:-1] for one in without)

    return admits


def _both(one: Admits, other: Admits) -> Admits:
    def admits(path: str) -> bool | None:
        first = one(path)
        if first is False:
            return False
        second = other(path)
        if second is False:
            return False
        if first is None or second is None:
            return None
        return True

    return admits


_FILTERS = {*("-v", "-i", "-E", "-F", "-P", "-e", "-x", "-w", "-a", "-q"), "--invert-match", "--ignore-case"}


def _filter(call: Call, options: Options, pattern: str | None) -> None:
    """grep of its input: the names or lines that match."""
    if set(options.given) - _FILTERS:
        return
    if options.has("-q") or not call.walk.scope.heard:
        call.says("" if options.has("-q") else None)
        return
    if pattern is None:
        patterns = options.values("-e")
    else:
        patterns = [pattern]
    extended = call.name == "egrep" or call.name == "rg" or options.has("-E", "-P")
    literally = call.name == "fgrep" or options.has("-F")
    keeps = _line_test(patterns, extended, literally, options)
    stream = call.stdin
    if stream is None:
        return
    if stream.text is not None:
        lines = stream.text.splitlines()
        answers = [keeps(line) for line in lines]
        if None not in answers:
            call.says("".join(line + "\n" for line, answer in zip(lines, answers) if answer))
    elif stream.found is not None:
        folder = call.folder

        def named(path: str) -> bool | None:
            inside = path
            if folder is not None:
                inside = os.path.relpath(path, folder)
            forms = {path, inside, "./" + inside.lstrip("/")}
            answers = {keeps(form) for form in forms}
            if len(answers) == 1:
                return answers.pop()
            return None

        founds = [Found(one.root, _both(one.admits, named), _kept_names(one, keeps)) for one in stream.found]
        call.says(None, founds)


def _kept_names(found: Found, keeps: Admits) -> Callable[[], list[str] | None] | None:
    """The names of `found` that are kept, as ``Found.names``."""
    list_names = found.names
    if list_names is None:
        return None

    def names() -> list[str] | None:
        every = list_names()
        if every is None:
            return None
        answers = [keeps(name) for name in every]
        if None in answers:
            return None
        return [one for one, kept in zip(every, answers) if kept]

    return names


def _line_test(patterns: list[str], extended: bool, literally: bool, options: Options) -> Admits:
    """Return a function of a line: grep keeps it; None if unknown."""
    inverts = options.has("-v", "--invert-match")
    plain = not options.has("-i", "--ignore-case", "-w", "-x") and (
        literally or not any(mark in one.replace("\\.", "") for one in patterns for mark in "\\*[].+?(){}|")
    )
    if literally and plain:
        return lambda line: any(one in line for one in patterns) != inverts if is_known(line) else None

    def keeps(line: str) -> bool | None:
        if not is_known(line) or not all(map(is_known, patterns)):
            return None
        if plain:
            return any(_plain_match(line, one) for one in patterns) != inverts

        try:
            if literally:
                asked = [re.escape(one) for one in patterns]
            elif extended:
                asked = patterns
            else:
                asked = [_extended(one) for one in patterns]
            wanted = "|".join(f"(?:{one})" for one in asked)
            if len(wanted) > 200 or any(mark in wanted for mark in ("+)*", "*)*", "+)+", "*)+")):
                return None
            flags = 0
            if options.has("-i", "--ignore-case"):
                flags = re.IGNORECASE
            if options.has("-w"):
                wanted = rf"\b(?:{wanted})\b"
            found = (re.fullmatch if options.has("-x") else re.search)(wanted, line[:1000], flags)
        except (re.error, OverflowError, RecursionError):  # not a pattern for Python
            return None
        return bool(found) != inverts

    return keeps


def _plain_match(line: str, pattern: str) -> bool:
    """Return True if `line` matches a pattern of letters, with ``^`` before or ``$`` behind, without the slow
    ``re``.
    """
    first, last = pattern.startswith("^"), pattern.endswith("$")
    text = pattern[first : len(pattern) - last].replace("\\.", ".")
    if first:
        if last:
            return line == text
        return line.startswith(text)
    if last:
        return line.endswith(text)
    return text in line


def _extended(basic: str) -> str:
    """A basic regular expression as an extended one."""
    out, at = [], 0
    while at < len(basic):
        letter = basic[at]
        if letter == "\\" and at + 1 < len(basic):
            following = basic[at + 1]
            if following not in "(){}|+?":
                out.append("\\")
            out.append(following)
            at += 2
            continue
        if letter in "(){}|+?":
            out.append("\\")
        out.append(letter)
        at += 1
    return "".join(out)
