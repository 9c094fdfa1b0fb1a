"""Files named in git commands that rows of git's `table` cannot describe (``do name``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.repository import SMALL, tree_at, trees_beside
from swarm_hook_core.shell.call import Call, Options
from swarm_hook_core.shell.model import Found, GitCall, absolute, edit_or_replace, is_known
from swarm_hook_core.shell.programs.engine import Reading
from swarm_hook_core.shell.programs.git.listings import cut, inside, tree_of, work_tree
from swarm_hook_core.shell.programs.git.pathspec import Pathspec
from swarm_hook_core.shell.programs.git.table import asks, is_subcommand, options_of
from swarm_hook_core.shell.programs.patch import LONGEST, files_in

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
