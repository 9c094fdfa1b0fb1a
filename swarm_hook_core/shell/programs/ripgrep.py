"""rg, ag and ack: the files that they list, by their ignore rules and by the text of each locked file.

A plain pattern is searched here; for one that Python's expressions cannot express, the program itself is run, if it is
installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import Found, absolute, is_known
from swarm_hook_core.shell.options import Options
from swarm_hook_core.shell.programs.asked import Asked
from swarm_hook_core.shell.programs.ignoring import IgnoreRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits


MOST_BYTES = 1024 * 1024  # of a file that is read
LONGEST_LINE = 4000  # characters that an expression is tried on
LONGEST_PATTERN = 300

# Options of the output's form, which do not change the set of files.
_PLAIN = frozenset(
    "-l -n -N -H -I -c -o -q -0 -a -p -A -B -C -j -M -r --files --files-with-matches --files-without-match --null"
    " --line-number --no-line-number --with-filename --no-filename --heading --no-heading --color --colors --column"
    " --count --only-matching --text --sort --sortr --threads --trim --no-messages --max-columns --replace --stats"
    " --no-config --path-separator --max-count -m --context --after-context --before-context --print0 --nocolor"
    " --nogroup --nofilter --noenv --mmap --no-mmap --line-buffered --block-buffered --one-file-system"
    " --print-long-lines --no-ignore-messages --pretty".split()
)
# Those that are read below.
_READ = frozenset(
    "-e --regexp -F --fixed-strings -Q --literal -i --ignore-case -s --case-sensitive -S --smart-case -w --word-regexp"
    " -x --line-regexp -v --invert-match -L --files-without-matches -g --glob --iglob --glob-case-insensitive -t --type"
    " -T --type-not -u --unrestricted -. --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-dot"
    " --no-ignore-global --no-ignore-exclude --no-ignore-parent --no-ignore-files --follow -f -d --max-depth -P --pcre2"
    " --perl-regexp --skip-vcs-ignores -E --extended-regexp -R --recurse -G --file-search-regex --ignore-dir".split()
)

_LIST_NAMES = {"ag": ("-g",), "ack": ("-g", "-f")}  # options to list names without searching the files


def lists(call: Call, options: Options) -> bool:
    """Return True if it prints names of files and nothing else."""
    names = ("-l", "--files", "--files-with-matches", "--files-without-match", "--files-without-matches")
    return options.has(*names) or (call.name != "rg" and options.has("-L", *_LIST_NAMES[call.name]))


def found(call: Call, options: Options, operands: list[str], pattern: str | None) -> list[Found] | None:
    """Return the Founds of the listed files; None if the places are unknown."""
    search = _Search(call, options, operands, pattern)
    founds = []
    for word in operands or ["."]:
        inner = call.found(word)
        path = absolute(call.folder, word)
        if inner:
            founds += [Found(one.root, _all((one.admits, search.content))) for one in inner]
        elif path is None:
            return None
        else:
            founds.append(Found(path, _all((search.place(path), search.content))))
    return founds


def _all(tests: Sequence[Admits]) -> Admits:
    """Return a function of a path: True if all `tests` say so, False if one denies it, else None."""

    def admits(path: str) -> bool | None:
        answer: bool | None = True
        for test in tests:
            verdict = test(path)
            if verdict is False:
                return False
            if verdict is None:
                answer = None
        return answer

    return admits


class _Search:
    """One search: `place` selects the files that it visits, `content` those in which it finds something."""

    def __init__(self, call: Call, options: Options, operands: list[str], pattern: str | None) -> None:
        self.call, self.options = call, options
        self.roots = [path for path in (absolute(call.folder, word) for word in operands) if path]
        self.is_rg = call.name == "rg"
        has = options.has
        if pattern is not None:
            self.patterns = [pattern]
        else:
            self.patterns = options.values("-e", "--regexp")
        self.by_name = has("--files") or not self.is_rg and has(*_LIST_NAMES[call.name])
        known = all(map(is_known, [*options.values(*options.given), *self.patterns]))
        self.can = known and not set(options.given) - _PLAIN - _READ
        if call.walk.scope.variable("RIPGREP_CONFIG_PATH") or has("-G", "--file-search-regex", "--ignore-dir"):
            self.can = False
        self.can = self.can and not (has("-f") and call.name != "ack")  # patterns that stand in a file
        self.without = has("--files-without-match", "--files-without-matches") or not self.is_rg and has("-L")
        self.inverts = has("-v", "--invert-match")
        self.tests: list[Callable[[str], bool | None] | None] | None = (
            None  # of one line; made when the first file is asked about
        )
        self.ask = Asked(call, operands, known)

    # Places

    def place(self, root: str) -> Admits:
        """Return a function of a path: the search under `root` visits it."""
        has, values, call = self.options.has, self.options.values, self.call
        unrestricted = len(self.options.given.get("-u", ())) + len(self.options.given.get("--unrestricted", ()))
        if self.is_rg:
            files = [".rgignore", ".ignore", ".gitignore"]
        else:
            files = [".agignore", ".ignore", ".gitignore"]
        if call.name == "ack" or unrestricted or has("--no-ignore"):
            files = []
        if has("--no-ignore-vcs", "--skip-vcs-ignores"):
            files = [one for one in files if one != ".gitignore"]
        if has("--no-ignore-dot"):
            files = [one for one in files if one == ".gitignore"]
        globs: list[str] = []
        if self.is_rg:
            globs = [*values("-g", "--glob"), *values("--iglob")]
        rules = IgnoreRules(
            root,
            call.folder,
            files,
            hidden=has("--hidden", "-.") or unrestricted > self.is_rg or call.name == "ack",
            globs=globs,
            fold=has("--iglob", "--glob-case-insensitive"),
            types=values("-t", "--type"),
            without=values("-T", "--type-not"),
            home=call.walk.scope.known_text("HOME"),
            config=call.walk.scope.known_text("XDG_CONFIG_HOME"),
            follows=has("--follow") or (self.is_rg and has("-L")),
            roots=self.roots,
        )
        ways = ("--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude", "--no-hidden")
        unsure = call.name == "ack" or has(*ways)
        deepest = self.options.value("-d", "--max-depth") or ""

        def admits(path: str) -> bool | None:
            if deepest and path != root:
                if not deepest.isdecimal():
                    return None
                if path[len(root.rstrip("/")) + 1 :].count("/") >= int(deepest):
                    return False
            verdict = rules.admits(path)
            if verdict and (unsure or not self.can):
                return None
            return verdict

        return admits

    # Contents

    def content(self, path: str) -> bool | None:
        """Return True if the file at `path` is listed, wherever it lies; None if unknown."""
        if not os.path.isfile(path):
            return False
        if self.by_name:
            if not self.patterns:
                return True
            if self.can:
                return self._line_holds(os.path.relpath(path, self.call.folder or "/"))
            return None
        verdict = None
        if self.can:
            verdict = self._read(path)
        if verdict is None:
            return self.ask(path)
        return verdict

    def _read(self, path: str) -> bool | None:
        try:
            with open(path, "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError:  # unreadable: the search's answer is unknown
            return None
        if len(data) > MOST_BYTES or b"\0" in data:
            return None
        lines = data.decode("utf-8", "replace").split("\n")
        if lines[-1] == "":
            lines.pop()
        answers = None
        for line in lines:
            verdict = self._line_holds(line)
            if verdict is None:
                return None
            if verdict != self.inverts:
                answers = True
                break
        return bool(answers) != self.without

    def _line_holds(self, line: str) -> bool | None:
        """Return True if one line matches a pattern; None if unknown."""
        if self.tests is None:
            self.tests = self._made_tests()
        for test in self.tests:
            verdict = None
            if test is not None:
                verdict = test(line)
            if verdict is not False:
                return verdict
        return False

    def _made_tests(self) -> list[Callable[[str], bool | None] | None]:
        has = self.options.has
        return [
            _line_test(
                one, self._ignores_case(), has("-F", "--fixed-strings", "-Q", "--literal"), has("-w", "--word-regexp"),
                has("-x", "--line-regexp"),
            )
            for one in self.patterns
        ]  # fmt: skip

    def _ignores_case(self) -> bool:
        """Return True if letter case does not count; by default ag decides by the pattern."""
        has = self.options.has
        if has("-i", "--ignore-case"):
            return True
        smart = has("-S", "--smart-case") or (self.call.name == "ag" and not has("-s", "--case-sensitive"))
        return smart and not any(letter.isupper() for one in self.patterns for letter in one)


# Syntax of Rust's expressions that differs from Python's, and repetitions that could take for ever.
_FOREIGN = ("\\<", "\\>", "\\p", "\\P", "\\x{", "\\z", "\\K", "\\Q", "\\b{", "(?R", "(?x")
_FOREIGN_CLASSES = ("[[", "&&", "~~", "--")
_SLOW = ("+)*", "*)*", "+)+", "*)+", "})*", "})+", "*){", "+){")
_MAGIC = frozenset("\\*[].+?(){}|^$")


def _line_test(
    pattern: str, folds: bool, literally: bool, by_word: bool, whole: bool
) -> Callable[[str], bool | None] | None:
    """Return a function of a line: `pattern` matches it; None for an unsupported pattern."""
    if not by_word and not whole and (literally or not _MAGIC.intersection(pattern)):
        wanted = pattern
        if folds:
            wanted = pattern.lower()
        return lambda line: wanted in (line.lower() if folds else line)
    foreign = (*_FOREIGN, *_SLOW, *(_FOREIGN_CLASSES if "[" in pattern else ()))
    if len(pattern) > LONGEST_PATTERN or (not literally and any(mark in pattern for mark in foreign)):
        return None

    text = f"(?:{re.escape(pattern) if literally else pattern})"
    if by_word:
        text = rf"(?<!\w)(?:{text})(?!\w)"
    try:
        found = re.compile(text, re.IGNORECASE if folds else 0)
    except (re.error, OverflowError, RecursionError):  # not a pattern for Python
        return None
    if whole:
        test = found.fullmatch
    else:
        test = found.search
    return lambda line: bool(test(line)) if len(line) <= LONGEST_LINE else None
