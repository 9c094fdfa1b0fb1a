"""find, fd, grep, rg and ag, and xargs, parallel and entr, which run commands with the names that are found.

A search is run as it stands, but does nothing to the files that it finds.

It is run when its result is first asked for, once, and changes nothing: actions are left out, and a search that would
start other programs (``--pre``, ``--pager``, settings in a file) is not run. What is not found out in time is unknown.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from shutil import which
from typing import Any

from swarm_hook_core import REMOVE, REPLACE, repository
from swarm_hook_core.paths import contains
from swarm_hook_core.process import Result, run
from swarm_hook_core.shell.call import Call, Options, split
from swarm_hook_core.shell.files import may_be_touched
from swarm_hook_core.shell.model import UNKNOWN, Found, Stream, absolute, is_known, joined, text_of
from swarm_hook_core.wildcards import escaped

Ask = Callable[[str], "list[str] | None"]

SECONDS = 0.3  # for a whole search; the same again for one file after another, if it takes longer
MOST_NAMES = 200  # that are followed one by one
IN_FOLDER = 'cd "$1" && shift && exec "$@"'
# Program -> short options by which it starts other programs, and the beginnings of long ones. Others are not run: ack's
# settings in a folder may name a pager, and zgrep is a script.
_STARTS_MORE = {
    **dict.fromkeys(("find", "gfind", "grep", "egrep", "fgrep", "ggrep"), ("", ())),
    "rg": ("z", ("--pre", "--hostname-bin", "--search-zip")),
    "ag": ("z", ("--pager", "--search-zip")),
    **dict.fromkeys(("fd", "fdfind"), ("xXl", ("--exec", "--list"))),
}


class Search:
    """The command `words`, which prints names that end with a NUL, in the folder of `call`; its files are under `root`.

    words_for  path -> the command that prints this name alone if the search finds it; None if there is no such command
    is_sure    False if commands that the search is run without decide about what is found
    """

    def __init__(
        self, call: Call, words: list[str], root: str, words_for: Ask | None = None, is_sure: bool = True
    ) -> None:
        self._call = call
        self._words = words
        self._root = root
        self._words_for = words_for
        self._is_sure = is_sure
        self._touched = call.walk.files.touched()
        self._names: list[str] | None = None
        self._paths: set[str | None] = set()
        self._is_late = False  # the whole search has taken all of its time
        self._left: float | None = None  # seconds to ask about single files; None before the search was run

    def names(self) -> list[str] | None:
        """Return the names as they are printed; None if they are unknown, or too many to be followed."""
        if not self._is_sure or may_be_touched(self._root, self._touched):
            return None
        names = self._all()
        if names is None or len(names) > MOST_NAMES:
            return None
        return names

    def admits(self, path: str) -> bool | None:
        """Return True if the file at absolute `path` is found; None if that is unknown."""
        if self._all() is not None:
            is_found: bool | None = path in self._paths
        else:
            is_found = self._one(path)
        if is_found:
            return self._is_sure or None
        if is_found is False and not may_be_touched(path, self._touched):
            return False
        return None

    def found(self) -> Found:
        """Return the result, which is not known before something asks."""
        return Found(self._root, self.admits, self.names)

    def _all(self) -> list[str] | None:
        if self._left is None:
            self._left = SECONDS
            self._names = self._printed()
            self._paths = {absolute(self._call.folder, name) for name in self._names or ()}
            if self._names is None and self._words_for is None and self._is_late:
                self._call.walk.effects.came_late(" ".join(self._words))
        return self._names

    def _printed(self) -> list[str] | None:
        begun = time.monotonic()
        names = printed(self._call, self._words, SECONDS)
        self._is_late = time.monotonic() - begun >= SECONDS
        return names

    def _one(self, path: str) -> bool | None:
        words = None
        if self._words_for is not None:
            words = self._words_for(path)
        if words is None or not self._left:
            return None
        if self._left < 0:
            self._call.walk.effects.came_late(" ".join(self._words))
            return None
        begun = time.monotonic()
        names = printed(self._call, words, self._left)
        self._left -= time.monotonic() - begun
        if names is None:
            return None
        return bool(names)


def printed(call: Call, words: list[str], seconds: float, text: str = "", end: str = "\0") -> list[str] | None:
    """Run a search on the input `text`; return its output, cut at each `end`. None if it cannot be run, or in time."""
    if call.folder is None or not all(map(is_known, words)) or _starts_more(call, words):
        return None
    result = _run_in(call.folder, words, seconds, text)
    if result.code not in (0, 1, 2) or (result.code and result.stderr and not result.stdout):
        return None  # with some output, it could not enter a folder, or read a file
    return result.stdout.split(end)[:-1]


def _run_in(folder: str, words: list[str], seconds: float, text: str) -> Result:
    return run(["/bin/sh", "-c", IN_FOLDER, "sh", folder, *words], seconds, stdin=text)


def _starts_more(call: Call, words: list[str]) -> bool:
    """Return True if a search may start programs of another kind."""
    if words[0] not in _STARTS_MORE:
        return True
    letters, beginnings = _STARTS_MORE[words[0]]
    if words[0] == "rg" and call.walk.scope.variable("RIPGREP_CONFIG_PATH"):
        return True
    short = [word for word in words[1:] if word[:1] == "-" and word[:2] != "--"]
    return any(not set(letters).isdisjoint(word) for word in short) or any(
        word.startswith(one) for word in words[1:] for one in beginnings
    )


# ------------------------------------------------------------------------------------------------- find

RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_ACTIONS = {
    "-print": 0, "-print0": 0, "-ls": 0, "-delete": 0, "-rm": 0, "-printf": 1, "-fprint": 1, "-fprint0": 1, "-fls": 1,
    "-fprintf": 2,
}  # fmt: skip
_REMOVES = ("-delete", "-rm")
# Commands of an -exec that may say no, so that later parts of the expression are skipped.
_ASKS = frozenset("grep egrep fgrep rg test [ sh bash zsh false diff cmp git file head awk".split())
_BEFORE_ROOTS = ("-H", "-L", "-P", "-E", "-X", "-s", "-x", "-d")


def find(call: Call) -> None:
    """Reports the effects of ``find``."""
    words = list(call.words)
    start = next((at for at, word in enumerate(words) if word not in _BEFORE_ROOTS), len(words))
    options, roots = words[:start], []
    while start < len(words) and not words[start].startswith("-") and words[start] not in ("(", "!", ")", ","):
        roots.append(words[start])
        start += 1
    parts = _parts(words[start:])
    actions = [part for part in parts if isinstance(part, list)]
    if not actions:
        actions = [["-print"]]
        parts = ["(", *(parts or ["-true"]), ")", actions[0]]
    streams: list[Stream | None] = []
    for place, action in enumerate(actions):
        earlier = [one for one in actions[:place] if one[0] in RUNS and one[-1] != "+"]
        is_sure = not any(one[1:2] and one[1].rpartition("/")[2] in _ASKS for one in earlier)
        founds: list[Found] = []
        for root in filter(None, roots or ["."]):  # there is no file of an empty name
            founds += _found(call, options, root, _printing(parts, action), is_sure)
        if action[0] in ("-print", "-print0"):
            streams.append(Stream(None, founds))
        elif action[0] in _REMOVES:
            _delete(call, founds)
        elif action[0].startswith("-f"):
            call.write((*action, UNKNOWN)[1], REPLACE)
        elif action[0] in RUNS:
            streams.append(_run_on(call, action, founds))
        else:
            streams.append(None)
    call.output = joined(streams)


def _parts(words: list[str]) -> list[str | list[str]]:
    """Return the words of an expression, those of each action in a list of their own."""
    parts: list[str | list[str]] = []
    at = 0
    while at < len(words):
        end = at + 1
        if words[at] in RUNS:
            while end < len(words) and words[end] != ";" and words[end - 1 : end + 1] != ["{}", "+"]:
                end += 1
            end = min(end + 1, len(words))
        elif words[at] in _ACTIONS:
            end += _ACTIONS[words[at]]
        if words[at] in RUNS or words[at] in _ACTIONS:
            parts.append(words[at:end])
        else:
            parts.append(words[at])
        at = end
    return parts


def _printing(parts: list[str | list[str]], action: list[str]) -> list[str]:
    """Return an expression that prints the files of `action`, and does nothing in place of the other actions."""
    words = []
    if any([one] in parts for one in _REMOVES):
        words.append("-depth")
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        elif part is action:
            words.append("-print0")
        else:
            words.append("-true")
    return words


def _found(call: Call, options: list[str], root: str, tests: list[str], is_sure: bool) -> list[Found]:
    where = absolute(call.folder, root)
    if where is None:
        return [Found(one.root, lambda _path: None) for one in call.found(root) or [Found("/")]]

    def words_for(path: str) -> list[str] | None:
        """Enter no folder but those on the way to `path`."""
        if not contains(where, path):
            return None
        names = [name for name in path[len(where.rstrip("/")) :].split("/") if name]
        ways = [root, *(os.path.join(root, *names[: depth + 1]) for depth in range(len(names)))]
        others = [word for way in ways for word in ("!", "-path", escaped(way))]
        target = ["-path", escaped(ways[-1])]
        return [call.name, *options, root, "(", *others, ")", "-prune", "-o", "(", *_only(tests, target), ")"]

    return [Search(call, [call.name, *options, root, *tests], where, words_for, is_sure).found()]


def _only(tests: list[str], target: list[str]) -> list[str]:
    """Return `tests` that print nothing but `target`."""
    printing = ["(", *target, "-print0", "-o", "-true", ")"]
    at = tests.index("-print0")
    return [*tests[:at], *printing, *tests[at + 1 :]]


def _names_of(founds: list[Found]) -> list[str] | None:
    """Return the names in `founds`, None if they cannot be listed."""
    text = text_of(Stream(None, founds))
    if text is None:
        return None
    return text.splitlines()


def _delete(call: Call, founds: list[Found]) -> None:
    names = _names_of(founds)
    if names is None:
        for one in founds:
            call.tree(one.root, one.admits, REMOVE)
        return
    for name in names:
        call.write(name, REMOVE)


def _run_on(call: Call, action: list[str], founds: list[Found]) -> Stream | None:
    """Run an ``-exec``, and return its output."""
    together = action[-1] == "+"
    words = action[1:]
    if together or action[-1] == ";":
        words = action[1:-1]
    in_place = action[0] in ("-execdir", "-okdir")  # it runs in the found file's folder
    names = None
    if in_place or not call.walk.only_reads(words):
        names = _names_of(founds)
    if not words or names is None:
        mark, where = call.walk.mark(founds), call.folder
        if in_place:
            where = None
        return call.walk.run([word.replace("{}", mark) for word in words], None, where)
    if in_place:
        for name in names:
            folder, last = os.path.split(absolute(call.folder, name) or name)
            call.walk.run([word.replace("{}", "./" + last) for word in words], None, folder)
        return None
    if together and names:
        at = [*words, "{}"].index("{}")
        return call.walk.run([*words[:at], *names, *words[at + 1 :]], None, call.folder)
    _run_each(call, names, lambda name: [word.replace("{}", name) for word in words])
    return call.output


# ------------------------------------------------------------------------------------------------- fd

_FD_TAKES = (
    "--extension --type --exclude --max-depth --min-depth --exact-depth --changed-within --changed-before --size"
    " --owner --color --threads --search-path --base-directory --format --max-results --ignore-file --path-separator"
).split()
_FD_RUNS = ("-x", "--exec", "-X", "--exec-batch")


def fd(call: Call) -> None:
    """Reports the effects of ``fd``."""
    words = list(call.words)
    at = next((at for at, word in enumerate(words) if word in _FD_RUNS), len(words))
    together, command = words[at : at + 1] in (["-X"], ["--exec-batch"]), words[at + 1 :]
    options = split(words[:at], "etEdSocj", _FD_TAKES)
    roots = options.operands[1:] + options.values("--search-path") or ["."]
    if not all(map(is_known, roots)):
        call.guess("a computed path")
        return
    found = Search(call, [call.name, "-0", *words[:at]], _around(call, roots)).found()
    if not command:
        call.says(None, found)
        return
    if command[-1] == ";":
        command.pop()
    if not any("{" in word for word in command):
        command.append("{}")
    names = _names_of([found])
    if names is None or (names and together):
        names = [call.walk.mark(found)]
    for name in _some_of(call, names):
        call.run([_placed(word, name) for word in command])


def _around(call: Call, roots: list[str]) -> str:
    """Return the folder that has all `roots` in it."""
    return os.path.commonpath([absolute(call.folder, root) or "/" for root in roots])


# ------------------------------------------------------------------------------------------------- grep and its kin

_TAKES = {"rg": "efmABCgtTdDjMrE", "ag": "ABCGmpW", "ack": "ABCm"}
_TAKES_LONG = (
    "--regexp --file --max-count --label --after-context --before-context --context --binary-files --devices"
    " --directories --include --exclude --exclude-dir --exclude-from --group-separator --color --colors --glob --iglob"
    " --type --type-add --type-not --max-depth --max-filesize --replace --encoding --engine --threads --sort --sortr"
    " --pre --ignore-file --path-separator"
).split()
_LISTS = ("-l", "--files-with-matches", "--files-without-match", "--files-without-matches")
_LISTS_OF = {"rg": ("--files",), "ag": ("-L", "-g"), "ack": ("-L", "-f", "-g")}
_WHOLE = frozenset("-n -H -h --line-number --with-filename --no-filename --color --colour".split())
# Options of ``rg`` that are followed where it is not installed, and those of them that grep has, too
_GREP_OPTIONS = {
    "-i": "-i",
    "--ignore-case": "-i",
    "-F": "-F",
    "--fixed-strings": "-F",
    "-w": "-w",
    "--word-regexp": "-w",
}
_FOLLOWED = frozenset(_GREP_OPTIONS) | frozenset(
    "-l --files-with-matches --files -e --regexp -g --glob -0 --null -n --line-number -H --with-filename".split()
)
# How to have names end with a NUL
_NUL = {"rg": "-0", "ag": "-0", **dict.fromkeys(("grep", "egrep", "fgrep", "ggrep"), "--null")}


def grep(call: Call) -> None:
    """Reports what ``grep``, ``rg``, ``ag`` and ``ack`` show, list, or let through."""
    options = split(call.words, _TAKES.get(call.name, "efmABCdD"), _TAKES_LONG)
    operands = list(options.operands)
    by_name = options.has("--files") or (call.name == "ack" and options.has("-f"))
    pattern = None
    if not by_name and not options.has("-e", "-f", "--regexp", "--file"):
        pattern = "".join(operands[:1])
        operands = operands[1:]
    walks = call.name in _TAKES or options.has("-r", "-R", "--recursive", "--dereference-recursive")
    walks = walks or "recurse" in options.values("-d", "--directories")
    if not options.has(*_LISTS, *_LISTS_OF.get(call.name, ("-L",))):
        if pattern in ("", "^") and not set(options.given) - _WHOLE:  # every line has that
            call.shows(operands)
        if not operands and call.stdin is not None and (call.name in _TAKES or not walks):
            _filter(call, options.has("-q"))
        return
    words = [call.name, *filter(None, [_NUL.get(call.name)]), *call.words]
    if all(map(is_known, operands)):
        alone = None
        if call.name not in _TAKES and not options.has("--exclude-dir", "--exclude-from"):
            alone = _alone(call, words, operands, walks)
        search = Search(call, words, _around(call, operands or ["."]), alone)
        if call.name == "rg" and which("rg") is None:
            search = _WithoutRipgrep(call, options, pattern, operands)
        call.says(None, search.found())
        return
    founds: list[Found] = []
    for word in operands:  # some are names of an earlier search
        inner = call.found(word)
        if inner is None:
            return
        founds += [_in_found(call, one, _without(words, operands)) for one in inner]
    call.says(None, founds)


class _WithoutRipgrep(Search):
    """A listing of ``rg`` where that is not installed, though the agent may have one: git's files, searched by grep."""

    def __init__(self, call: Call, options: Options, pattern: str | None, operands: list[str]) -> None:
        super().__init__(call, list(call.words), _around(call, operands or ["."]))
        self._options, self._operands = options, operands
        self._patterns = options.values("-e", "--regexp")
        if pattern is not None:
            self._patterns = [pattern]

    def _printed(self) -> list[str] | None:
        has, folder = self._options.has, self._call.folder
        known = all(map(is_known, [*self._words, *self._patterns]))
        is_followed = not set(self._options.given) - _FOLLOWED and "{" not in "".join(self._globs())
        if folder is None or not known or not is_followed:
            return None
        files = repository.ask(
            ["ls-files", "-z", "-co", "--exclude-standard", "--", *self._pathspecs()], folder, SECONDS
        )
        if files.code != 0:
            return None
        names = [name for name in files.stdout.split("\0") if name and os.path.isfile(os.path.join(folder, name))]
        if has("--files") or not names:
            return names
        words = [word for option, word in _GREP_OPTIONS.items() if has(option)]
        words += [word for pattern in self._patterns for word in ("-e", pattern)]
        if not has("-F", "--fixed-strings"):
            words.append("-P")
        given = "".join(name + "\0" for name in names)
        result = _run_in(folder, ["xargs", "-0", "grep", "-l", "--null", *words, "--"], SECONDS, given)
        if result.code not in (0, 1, 123):  # 123: one of several runs of grep has found nothing
            return None
        return result.stdout.split("\0")[:-1]

    def _globs(self) -> list[str]:
        return self._options.values("-g", "--glob")

    def _pathspecs(self) -> list[str]:
        globs = self._globs()
        wanted = [glob for glob in globs if glob[:1] != "!"] or ["*"]
        unwanted = [glob[1:] for glob in globs if glob[:1] == "!"] + [".*", ".*/**"]  # hidden files
        places = [os.path.join(root, "**", glob) for root in self._operands or [""] for glob in wanted]
        plain = [root for root in self._operands if not os.path.isdir(absolute(self._call.folder, root) or "")]
        return [f":(glob){place}" for place in places] + plain + [f":(exclude,glob)**/{glob}" for glob in unwanted]


def _without(words: list[str], operands: list[str]) -> list[str]:
    """Return the words without the operands, which stand last."""
    words = list(words)
    for word in operands:
        del words[len(words) - 1 - words[::-1].index(word)]
    return words


def _alone(call: Call, words: list[str], operands: list[str], walks: bool) -> Ask:
    """Return the question of ``grep`` about one file."""
    rest = _without(words, operands)
    if "--" not in rest:
        rest.append("--")
    places = [absolute(call.folder, one) or "/" for one in operands or ["."]]

    def words_for(path: str) -> list[str] | None:
        is_met = path in places or (walks and any(contains(place, path) for place in places))
        if is_met and os.path.isfile(path):
            return [*rest, path]
        return [*rest, os.devnull]

    return words_for


def _in_found(call: Call, one: Found, words: list[str]) -> Found:
    """Return those of the files `one` in which the search `words` finds something."""
    names = one.names and one.names()
    if names == []:
        return Found(one.root, lambda _path: False)
    if names is not None:
        return Search(call, [*words, *names], one.root).found()
    asked = Search(call, [*words, UNKNOWN], one.root, lambda path: [*words, path])

    def admits(path: str) -> bool | None:
        is_there = one.admits(path)
        if is_there is False:
            return False
        holds = asked.admits(path)
        if is_there is None and holds:
            return None
        return holds

    return Found(one.root, admits)


def _filter(call: Call, is_quiet: bool) -> None:
    """Report what a search in its input lets through: lines, or names of an earlier search."""
    stream = call.stdin
    if is_quiet or stream is None or not call.walk.scope.heard or call.name not in _NUL:
        if is_quiet:
            call.says("")
        return

    def kept(lines: list[str]) -> list[str] | None:
        text = "".join(line + "\n" for line in lines)
        if not lines:
            return []
        if not is_known(text):
            return None
        return printed(call, [call.name, *call.words], SECONDS, text, "\n")

    if stream.text is not None:
        lines = kept(stream.text.splitlines())
        if lines is not None:
            call.says("".join(line + "\n" for line in lines))
    elif stream.found is not None:
        call.says(None, [_kept(call, one, kept) for one in stream.found])


def _kept(call: Call, one: Found, kept: Callable[[list[str]], list[str] | None]) -> Found:
    """Return those of the files `one` whose names pass the filter `kept`."""

    def names() -> list[str] | None:
        every = one.names and one.names()
        if every is None:
            return None
        return kept(every)

    def admits(path: str) -> bool | None:
        is_there = one.admits(path)
        if is_there is False:
            return False
        if is_there is None and call.walk.effects.late:
            return None
        inside = os.path.relpath(path, call.folder or "/")
        forms = list(dict.fromkeys((path, inside, "./" + inside)))
        passed = kept(forms)
        if passed == []:
            return False
        if passed != forms:  # it depends on how the name is written
            return None
        return is_there

    return Found(one.root, admits, names)


def part(call: Call) -> None:
    """cut, sed and awk print parts of the lines of their input: the names in the output of `git status`."""
    stream = call.stdin
    if stream is None or stream.text is not None or not stream.found or not all(map(is_known, call.words)):
        return
    listers = [one.names for one in stream.found]
    if call.folder is None or None in listers or call.name.lstrip("g") not in _PRINTS_PARTS:
        return
    folder, words, found = call.folder, [call.name, *call.words], stream.found

    def names() -> list[str] | None:
        every = [list_names and list_names() for list_names in listers]
        lines = [line for some in every for line in some or ()]
        if None in every or len(lines) > MOST_NAMES:
            return None
        result = _run_in(folder, words, SECONDS, "".join(f"{line}\n" for line in lines))
        if result.code != 0:
            return None
        return result.stdout.splitlines()

    def admits(path: str) -> bool | None:
        every = names()
        if every is None:
            return None
        return path in {absolute(folder, name) for name in every}

    call.says(None, Found(found[0].root, admits, names))


_PRINTS_PARTS = ("cut", "sed", "awk", "mawk", "nawk", "tr")


# xargs, parallel and entr: commands that are run with words from elsewhere.

MOST_RUNS = 24  # of one command with different names, before the rest goes through it as one


def _some_of(call: Call, names: list[Any]) -> list[Any]:
    """`names`; those beyond `MOST_RUNS` as one word that stands for them all."""
    if len(names) <= MOST_RUNS or not all(isinstance(one, str) and is_known(one) for one in names):
        return names[: 2 * MOST_RUNS]
    return [*names[: MOST_RUNS // 2], call.walk.each_of(names[MOST_RUNS // 2 :])]


def _run_each(call: Call, items: list[Any], words_for: Callable[[Any], list[str]]) -> None:
    """Run the words of `words_for(item)` for each item."""
    printed: list[Any] = []
    for one in _some_of(call, items):
        call.run(words_for(one))
        printed.append(call.output)
    call.output = joined(printed)


def _placed(word: str, name: str) -> str:
    """`word` with the places for `name` filled, ``{/}`` by its last part and so on; parts of a mark are unknown."""
    last = name.rpartition("/")[2]
    parts = {
        "{/.}": os.path.splitext(last)[0],
        "{//}": os.path.dirname(name) or ".",
        "{/}": last,
        "{.}": os.path.splitext(name)[0],
    }
    for place, part in parts.items():
        if place in word:
            word = word.replace(place, part if is_known(name) else UNKNOWN)
    return word.replace("{}", name)


def xargs(call: Call) -> None:
    takes = "--max-args --max-procs --max-lines --max-chars --delimiter --arg-file --process-slot-var".split()
    options = split(call.words, "IJRLnPsdEaS", takes, optional="ile", stop_early=True)
    source = options.value("-a", "--arg-file")
    if source:
        stream = call.walk.files.text_of(source, call.folder)
    else:
        stream = call.stdin
    place = options.value("-I", "-J", "-i", "--replace") or ("{}" if options.has("-i", "--replace") else None)
    by_line = options.has("-0", "--null", "-d", "--delimiter") or place is not None
    words = options.operands or ["echo"]
    if call.walk.only_reads(words) and stream is not None and stream.text is None and stream.found is not None:
        names = [call.walk.mark(stream.found)]
    else:
        names = _names(call, stream, by_line, options.value("-d", "--delimiter"))
    size = options.value("-n", "--max-args", "-L", "--max-lines") or ""
    if place is not None:
        _run_each(call, names, lambda name: [word.replace(place, name) for word in words])
    elif size.isdecimal() and 0 < int(size) < len(names) <= MOST_RUNS * int(size):
        groups = [names[at : at + int(size)] for at in range(0, len(names), int(size))]
        _run_each(call, groups, lambda group: [*words, *group])
    elif names or not options.has("-r", "--no-run-if-empty"):
        call.run([*words, *names])


def _names(call: Call, stream: Stream | None, by_line: bool, delimiter: str | None = None) -> list[str]:
    """The words that come in: known ones, or a mark."""
    if stream is None or (stream.text is None and stream.found is None):
        return [UNKNOWN]
    text = text_of(stream)
    if text is None:
        founds = stream.found or []
        if not by_line:
            founds = [_whole(call, one) for one in founds]
        return [call.walk.mark(founds)]
    if delimiter and delimiter not in ("\\n", "\n", "\\0"):
        names = text.rstrip("\n").split(delimiter)
    elif by_line:
        names = text.split("\n")
    else:
        names, breaks_off = _as_xargs(text)
        if breaks_off and stream.found is not None:  # some of them were used before, in the order of the disk
            return [call.walk.some_of([*names, *text.split()])]
    return [name for name in names if name]


def _whole(call: Call, found: Found) -> Found:
    """Return the part of `found` that xargs takes for single words: names without blanks, quotes and backslashes."""

    def admits(path: str) -> bool | None:
        name = path
        if call.folder and path.startswith(call.folder):
            name = path[len(call.folder) :]
        if any(mark in name for mark in " \t\n'\"\\"):
            return False
        return found.admits(path)

    return Found(found.root, admits)


def _as_xargs(text: str) -> tuple[list[str], bool]:
    """Split `text` as xargs does. Return (words, True if an open quote stops it)."""
    try:
        return shlex.split(text), False
    except ValueError:  # a quote is open
        return text.split(), True


_PARALLEL_TAKES = "--jobs --colsep --arg-file --joblog --delay --timeout --retries --results --workdir --halt".split()


def parallel(call: Call) -> None:
    options = split(call.words, "jPIanNdCSL", _PARALLEL_TAKES, stop_early=True)
    words, _mark, given = "\n".join(options.operands).partition("\n:::\n")
    names = given.split("\n") if given else _names(call, call.stdin, by_line=True)
    command = words.split("\n")
    if set(options.given) - {"-j", "--jobs", "-0"} or ":::" in given or set(words).intersection("\"'`$|&;<>()"):
        call.guess("runs commands for names")
        return
    if "{" not in words:
        command.append("{}")
    _run_each(call, names, lambda name: [_placed(word, name) for word in command])


def entr(call: Call) -> None:
    """Runs its command when files change."""
    words = split(call.words, "", (), stop_early=True).operands
    if words:
        call.run([UNKNOWN if word == "/_" else word for word in words])
