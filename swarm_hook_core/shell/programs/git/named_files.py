"""Files named in git commands: by pathspecs, without asking git; and by words that git's `table` cannot describe."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from re import Pattern
from typing import Any

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.paths import contains
from swarm_hook_core.repository import SMALL, tree_at, trees_beside
from swarm_hook_core.shell.call import Call, Options
from swarm_hook_core.shell.model import Found, GitCall, absolute, edit_or_replace, is_known
from swarm_hook_core.shell.programs.engine import Reading
from swarm_hook_core.shell.programs.git.listings import cut, inside, tree_of, work_tree
from swarm_hook_core.shell.programs.git.table import asks, is_subcommand, options_of
from swarm_hook_core.shell.programs.patch import LONGEST, files_in

_MAGIC = {"top", "literal", "exclude"}  # words with other magic cannot be read


class Pathspec:
    """The pathspecs `words`, given in the folder `prefix` (relative to the top, empty for the top itself).

    `top`: absolute folder of the work tree; `found`: word -> the `Found`s that it stands for. No words: every file.
    `is_unsure`: one of the words cannot be read.
    """

    __slots__ = ("_items", "_top", "_folders", "is_unsure", "is_empty")

    def __init__(
        self, words: Iterable[str], prefix: str, top: str, found: Mapping[str, list[Found]] | None = None
    ) -> None:
        self._items: list[Any] = []  # (exclude, path or None, pattern or None, founds or None)
        self._top = top
        self._folders: dict[str, bool] = {}  # path -> True if a folder is there
        self.is_unsure = False
        self.is_empty = not words
        for word in words:
            if found and word in found:
                self._items.append((False, None, None, found[word]))
            elif not is_known(word):
                self.is_unsure = True
            else:
                self._read(word, prefix)
        if self._items and all(exclude for exclude, *_rest in self._items):
            self._items.append((False, prefix, None, None))

    def _read(self, word: str, prefix: str) -> None:
        magic, rest = _magic_of(word)
        if magic is None or "\\" in rest:
            self.is_unsure = True
            return
        path = _relative(rest, "" if "top" in magic else prefix, self._top)
        if path is None:
            return  # outside; git refuses it
        pattern = None
        if "literal" not in magic and any(letter in rest for letter in "*?["):
            pattern = re.compile(translate(path.replace("[^", "[!")))
        self._items.append(("exclude" in magic, path, pattern, None))

    def matches(self, path: str) -> bool | None:
        """Return True if the file `path` (relative to the top) matches, None if unknown."""
        if self.is_empty:
            return True
        answer: bool | None = False
        if self.is_unsure:
            answer = None
        for exclude, *item in self._items:
            verdict = self._verdict(path, *item)
            if exclude and verdict:
                return False
            if not exclude and (verdict or (verdict is None and answer is False)):
                answer = None
                if verdict:
                    answer = True
        return answer

    def names(self, path: str) -> bool:
        """Return True if a word spells `path`, or something in the folder `path`; a folder's own name is not enough."""
        if self.is_empty or (self.matches(path) is False and not self._may_be_inside(path)):
            return False
        for exclude, own, pattern, founds in self._items:
            if exclude:
                continue
            if founds and self._is_found(path, founds):
                return True
            if (
                own is not None
                and pattern is None
                and ((own == path and not self._is_folder(path)) or own.startswith(path + "/"))
            ):
                return True
        return False

    def literals(self) -> list[str]:
        """The files that words say by name, where they are no folders."""
        own = [path for exclude, path, pattern, _founds in self._items if path and pattern is None and not exclude]
        return [path for path in own if not self._is_folder(path) and self.matches(path)]

    def plain_paths(self) -> list[str]:
        """Return the files and folders that the words spell out; [] if a word is anything else."""
        plain = not self.is_unsure and all(not item[0] and item[1] is not None and not item[2] for item in self._items)
        if plain:
            return list(dict.fromkeys(path for _exclude, path, _pattern, _founds in self._items))
        return []

    def narrowed(self, paths: Iterable[str]) -> list[str]:
        """Return the parts of `paths` (files or folders, relative) to ask git about, for these pathspecs."""
        if self.is_empty:
            return list(paths)
        wanted: dict[str, Any] = {}
        for path in paths:
            for exclude, own, pattern, _founds in self._items:
                if exclude:
                    continue
                # An empty path is the whole work tree.
                inner = own is not None and pattern is None and (not path or own.startswith(path + "/"))
                if inner:
                    one = own
                elif self._may_meet(path):
                    one = path
                else:
                    one = None
                if one is not None:
                    wanted[one] = None
        return list(wanted)

    def _may_meet(self, path: str) -> bool:
        return self.matches(path) is not False or self._may_be_inside(path)

    def _may_be_inside(self, folder: str) -> bool:
        """Return True if a word may match something in `folder`, if that is a folder."""
        inside = folder and folder + "/"  # everything is in the top
        if any(own is not None and own.startswith(inside) for _exclude, own, _pattern, _founds in self._items):
            return self._is_folder(folder)
        return self._has_patterns() and self._is_folder(folder)

    def _has_patterns(self) -> bool:
        return any(own is None or pattern is not None for _exclude, own, pattern, _founds in self._items)

    def _is_folder(self, path: str) -> bool:
        if path not in self._folders:
            self._folders[path] = os.path.isdir(os.path.join(self._top, path))
        return self._folders[path]

    def _verdict(
        self, path: str, own: str | None, pattern: Pattern[str] | None, founds: list[Found] | None
    ) -> bool | None:
        if founds:
            return self._is_found(path, founds)
        if own == "" or path == own or (own is not None and path.startswith(own + "/")):
            return True
        return bool(pattern and pattern.fullmatch(path))

    def _is_found(self, path: str, founds: list[Found]) -> bool | None:
        whole = os.path.join(self._top, path)
        answer: bool | None = False
        for one in founds:
            root = os.path.realpath(one.root)
            verdict: bool | None = False
            if contains(root, whole):
                verdict = one.admits(whole)
            if verdict:
                return True
            if verdict is None:
                answer = None
        return answer


def _magic_of(word: str) -> tuple[set[str] | None, str]:
    """Return (set of magic words, the rest) of a pathspec; (None, "") for unsupported magic."""
    if not word.startswith(":") or word == ":":
        return set(), word.removeprefix(":")
    if word.startswith(":("):
        names, closing, rest = word[2:].partition(")")
        magic = {name for name in names.split(",") if name}
        if closing and magic <= _MAGIC:
            return (magic, rest)
        return (None, "")
    short = {"/": "top", "!": "exclude", "^": "exclude"}
    at, magic = 1, set()
    while at < len(word) and word[at] in short:
        magic.add(short[word[at]])
        at += 1
    return magic, word[at:].removeprefix(":")


def _relative(path: str, prefix: str, top: str) -> str | None:
    """Return `path`, written in `prefix`, relative to `top` (empty: all of it), or None if it is outside."""
    if os.path.isabs(path):
        folder, name = os.path.split(os.path.normpath(path))
        whole = os.path.normpath(os.path.join(os.path.realpath(folder), name))
    else:
        whole = os.path.normpath(os.path.join(top, prefix, path))
    if whole == top:
        return ""
    start = top.rstrip("/") + "/"
    if whole.startswith(start):
        return whole[len(start) :]
    return None


# Work trees that a git call removes with all that is in them: linked ones, and those of submodules.

MOST = 200  # submodules of one repository that are looked at


def removed_trees(call: GitCall, are_changed: bool = True) -> list[str]:
    """Return the tops, without links, of the work trees that GitCall `call` removes, changed or not.

    Empty for other calls, and where git refuses to remove a changed one; without `are_changed` it need not, and may
    move them as well. A computed name may be that of any of them.
    """
    words = call.words
    is_move = not are_changed and words[:2] == ["worktree", "move"]
    if not is_move and words[:2] not in (["worktree", "remove"], ["submodule", "deinit"]) and words[:1] != ["rm"]:
        return []
    options, top = options_of(words), tree_of(call)
    if top is None or (are_changed and not options.has("-f", "--force")):
        return []
    if words[0] == "worktree":
        named = options.operands[1:]
        if is_move:
            del named[1:]  # its new place
        return [tree for word in named for tree in _linked(call, word, top)]
    if words[0] == "submodule":
        return submodules(call.folder, top, options.operands[1:], call.found)
    if options.has("--cached"):
        return []
    folders = [absolute(call.folder, word) for word in options.operands if is_known(word)]
    return [os.path.realpath(one) for one in folders if one is not None and os.path.isfile(os.path.join(one, ".git"))]


def submodules(
    folder: str,
    top: str,
    words: Sequence[str],
    found: Mapping[str, list[Found]] | None = None,
    is_deep: bool = False,
) -> list[str]:
    """Return the tops of the checked out submodules in work tree `top` that `words`, said in `folder`, mean.

    No words mean all, as ``--all`` does. `is_deep`: with the submodules of submodules.
    """
    listed = [os.path.join(top, path) for path in _listed(os.path.join(top, ".gitmodules"))]
    trees = [os.path.realpath(one) for one in listed if os.path.lexists(os.path.join(one, ".git"))]
    trees = [tree for tree in trees if not words or any(_means(word, tree, folder, found or {}) for word in words)]
    for tree in trees if is_deep else ():  # the list grows meanwhile
        trees += submodules(tree, tree, ())[: MOST - len(trees)]
    return trees


def _means(word: str, tree: str, folder: str, found: Mapping[str, list[Found]]) -> bool:
    if not is_known(word):
        if word in found:
            return any(one.admits(tree) is not False for one in found[word])
        return True
    named = os.path.realpath(os.path.join(folder, word))
    return (tree + "/").startswith(named.rstrip("/") + "/") or any(sign in word for sign in ":*?[")


def _listed(path: str) -> list[str]:
    """The paths in a ``.gitmodules``, relative to the top."""
    try:
        if not os.path.isfile(path):
            return []
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(SMALL).split("\n")
    except OSError:  # unreadable: no submodule is known
        return []
    pairs = [line.partition("=") for line in lines]
    return [value.strip().strip('"') for name, equals, value in pairs if equals and name.strip() == "path"][:MOST]


def _linked(call: GitCall, word: str, top: str) -> list[str]:
    """The linked work trees of the repository that `word` stands for."""
    folder = None
    if is_known(word):
        folder = absolute(call.folder, word)
    if folder is not None and os.path.exists(os.path.join(folder, ".git")):
        return [os.path.realpath(folder)]
    tree = tree_at(top, is_real=True)
    trees = []
    if tree:
        trees = [one for one in trees_beside(tree) if os.path.isfile(os.path.join(one, ".git"))]
    if is_known(word):  # the end of its path is name enough
        return [one for one in trees if one.endswith("/" + word.strip("/"))][:1]
    founds = call.found.get(word)
    if founds is None:
        return trees
    return [one for one in trees if any(found.admits(one) is not False for found in founds)]


def clone(call: Call, reading: Reading) -> None:
    """``clone``: the folder that is named, or made of the address."""
    operands = reading.options.operands
    if len(operands) > 1:
        folder = operands[1]
    else:
        folder = _humanish((operands or [""])[0], reading.options.has("--bare"))
    if folder:
        call.tree(folder)


def _humanish(url: str, bare: bool) -> str:
    """The folder that ``git clone`` makes of `url`."""
    if not is_known(url):
        return ""
    name = url.rstrip("/")
    if name.endswith("/.git"):
        name = name[: -len("/.git")]
    name = name.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    for ending in (".git", ".bundle"):
        if name.endswith(ending):
            name = name[: -len(ending)]
    if bare and name:
        return f"{name}.git"
    return name


def init(call: Call, reading: Reading) -> None:
    """``init``: the folder of the repository, not of its work tree."""
    options = reading.options
    folder = (options.operands or ["."])[0]
    call.tree(folder if options.has("--bare") else options.value("--separate-git-dir") or folder + "/.git")


def add_submodule(call: Call, reading: Reading) -> None:
    """``submodule add``: its folder, and the list of them all."""
    rest = reading.options.operands
    if len(rest) > 1:
        folder = rest[1]
    else:
        folder = _humanish((rest or [""])[0], False)
    if folder:
        call.tree(folder)
        top = None
        if call.folder:
            top = work_tree(call.folder)
        call.write(os.path.join(top, ".gitmodules") if top else ".gitmodules")


def in_submodules(call: Call, reading: Reading) -> None:
    """``submodule foreach``: shell text that runs in each checked out submodule."""
    options = reading.options
    top = work_tree(call.folder) if call.folder else None
    folders: list[str | None] = []
    if call.folder and top:
        folders += submodules(call.folder, top, (), is_deep=options.has("--recursive"))
    for folder in (folders or [None]) if options.operands else ():
        Call(call.walk, call.name, call.words, folder, None).script(" ".join(options.operands))


def format_patch(call: Call, reading: Reading) -> None:
    """``format-patch``: numbered files."""
    ending = reading.options.value("--suffix") or ".patch"
    _made_in_folder(call, reading, lambda name: name[:4].isdigit() and name.endswith(ending))


def report(call: Call, reading: Reading) -> None:
    """``bugreport``, ``diagnose``: a file that is named by the time."""
    _made_in_folder(call, reading, lambda name: name.startswith("git-"))


def _made_in_folder(call: Call, reading: Reading, admits_name: Callable[[str], bool]) -> None:
    folder = reading.options.value("-o", "--output-directory") or "."
    root = absolute(call.folder, folder)
    call.tree(
        folder,
        lambda path: path == root or os.path.dirname(path) == root and admits_name(os.path.basename(path)),
        REPLACE,
    )


def removed_submodules(call: Call, reading: Reading) -> None:
    """``submodule deinit -f``, ``rm -f``: the work trees of submodules, with their uncommitted changes."""
    if reading.options.has("-f", "--force") and call.folder is not None:
        for tree in removed_trees(GitCall(call.folder, call.words, call.by)):
            call.tree(tree, how=REMOVE)


def patch(call: Call, reading: Reading) -> None:
    """``apply``, ``am``: the files that a patch is about; `am` takes all of them from the top of the work tree."""
    named, founds, is_whole = _patched(call, reading.options)
    for path, how in named:
        call.write(path, how)
    for about, how in founds:
        call.tree(about.root, about.admits, how)
    if not is_whole:
        call.guess("a patch that cannot be read yet")


def patched(call: Call, options: Options) -> tuple[list[str], list[Found]] | None:
    """Return ``(absolute paths, Founds)`` of the files that ``apply`` with these options changes; None if unknown."""
    named, founds, is_whole = _patched(call, options)
    if not is_whole or call.folder is None:
        return None
    here = os.path.realpath(call.folder)
    return [os.path.normpath(os.path.join(here, path)) for path, _how in named], [about for about, _how in founds]


def _patched(call: Call, options: Options) -> tuple[list[tuple[str, str]], list[tuple[Found, str]], bool]:
    """Return ``([(path, how)], [(Found, how)], True if that is all)`` of the files in the patches."""
    always_from_top = call.words[0] == "am"
    named: list[tuple[str, str]] = []
    founds: list[tuple[Found, str]] = []
    is_whole = True
    top, here = None, ""
    if call.folder:
        top = work_tree(call.folder)
        here = os.path.realpath(call.folder)
    strip, under = options.value("-p"), options.value("--directory") or ""
    prefix = ""
    if top and here != top:
        prefix = os.path.relpath(here, top)
    for source in options.operands or ["-"]:
        text = _text(call, source)
        if text is None:
            about = None
            if source == "-":
                about = getattr(call.stdin, "about", None)
            if about is not None:
                loses = options.has("-R", "--reverse") and getattr(call.stdin, "of_work_tree", False)
                founds.append((about, edit_or_replace(not loses)))
            else:
                is_whole = False
            continue
        parts = None
        if strip and strip.isdigit():
            parts = int(strip)
        backwards = options.has("-R", "--reverse")
        for path, from_top, how in files_in(text, parts, under, "" if always_from_top else prefix, backwards):
            if not _is_wanted(path, options):
                continue
            if top is None or not (from_top or always_from_top):
                named.append((path, how))
                continue
            whole = os.path.join(top, path)
            if always_from_top or here == top or whole.startswith(here + "/"):
                named.append((whole, how))
    return named, founds, is_whole


def _is_wanted(path: str, options: Options) -> bool:
    if any(fnmatchcase(path, one) for one in options.values("--exclude")):
        return False
    included = options.values("--include")
    return not included or any(fnmatchcase(path, one) for one in included)


def _text(call: Call, source: str) -> str | None:
    """Return the patch in `source` (``-``: standard input), or None if it cannot be read yet."""
    if source == "-":
        if call.stdin:
            return call.stdin.text
        return None
    stream = call.walk.files.text_of(source, call.folder)
    if stream is not None:
        return stream.text
    path = absolute(call.folder, source)
    if path is None or path in call.walk.files.contents:
        return None  # something that this script has put there
    try:
        if not os.path.isfile(path):  # a pipe would keep us waiting
            return None
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(LONGEST)
    except (OSError, ValueError):  # unreadable, so the patch is unknown
        return None


# With these `diff` shows all changed lines; with others it may leave some out, or show no line.
_SHOW_ALL = frozenset(
    "-p -u -U --unified --patch --patch-with-stat --color --no-color --no-ext-diff --no-textconv --word-diff --minimal"
    " --patience --histogram --function-context -W --no-renames --no-prefix --no-pager --text -a".split()
)


def show_changes(call: Call, reading: Reading) -> None:
    """``diff FILE``: its changes since it was staged or since the last commit."""
    before, dashes, after = _cut_at_dashes(call.words)
    named = [word for word in reading.options.operands if word in before]
    if set(reading.options.given) - _SHOW_ALL or call.folder is None:
        return
    since = "index"
    if named[:1] in (["HEAD"], ["@"]):
        since = "HEAD"
    files = named
    if since == "HEAD":
        files = named[1:]
    if files and (dashes or not all(os.path.lexists(os.path.join(call.folder, word)) for word in files)):
        return  # another revision: the changes since then may differ from the changes since the last commit
    call.shows([*files, *after], (), since)


def _cut_at_dashes(words: list[str]) -> tuple[list[str], bool, list[str]]:
    before = words
    if "--" in words:
        before = words[: words.index("--")]
    return before, len(before) < len(words), words[len(before) + 1 :]


def show_blamed(call: Call, reading: Reading) -> None:
    """``blame FILE``: the whole of it as it is, each line with its commit."""
    if len(reading.options.operands) == 1 and not reading.options.has("-L", "-S", "--contents", "--reverse"):
        call.shows(reading.options.operands)


def settings(call: Call, reading: Reading) -> None:
    """``config``: a file that is named, or the user's own."""
    for path in reading.options.values("-f", "--file"):
        call.write(path)
    if reading.options.has("--global"):
        variable = call.walk.scope.known_text
        home = variable("HOME")
        own = variable("GIT_CONFIG_GLOBAL") or os.path.join(home, ".gitconfig")
        beside = os.path.join(variable("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
        if not os.path.exists(own) and os.path.exists(beside):
            own = beside
        call.write(own)


# The few paths that a git call is confined to by its own words, told without asking git or looking at locks.

MOST_NAMED = 8
_BY_PATHSPEC = frozenset("add stage restore rm".split())


def places(call: GitCall, top: str) -> list[str]:
    """Return absolute paths that contain every file that GitCall `call` may touch in the work tree `top`; [] if
    unknown.

    They are the files and folders that its words spell out, and the repository.
    """
    words = call.words
    if not words:
        return []
    if is_subcommand(words[0]) and not asks(words):
        return [os.path.join(top, ".git")]
    _before, after = cut(words[1:])
    options = options_of(words)
    if options.has("--pathspec-from-file"):
        return []
    if words[0] == "checkout":
        named = []
        if not options.has("-p", "--patch", "-b", "-B", "--orphan"):
            named = after or []
    else:
        if words[0] in _BY_PATHSPEC:
            named = options.operands
        else:
            named = []
    if not 0 < len(named) <= MOST_NAMED:
        return []
    specs = Pathspec(named, inside(call.folder, top), top, call.found)
    paths = specs.plain_paths()
    return paths and [os.path.join(top, path) if path else top for path in (*paths, ".git")]
