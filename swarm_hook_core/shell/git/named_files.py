"""The files that git's own words name: what it is told to write, and new folders."""

import os

from swarm_hook_core.shell.git.command_line import only_reads, work_tree
from swarm_hook_core.shell.git.patches import LONGEST, files_in
from swarm_hook_core.shell.model import absolute, is_known


def _value_of(*names):
    """Of a subcommand that writes the files given to the options `names`."""

    def write(call, options) -> None:
        for path in options.values(*names):
            call.write(path)

    return write


def _bundle(call, options) -> None:
    if options.operands[:1] == ["create"] and len(options.operands) > 1 and options.operands[1] != "-":
        call.write(options.operands[1])


def _clone(call, options) -> None:
    if not options.operands:
        return
    folder = options.operands[1] if len(options.operands) > 1 else _humanish(options.operands[0], options.has("--bare"))
    if folder:
        call.tree(folder)


def _humanish(url: str, bare: bool) -> str:
    """The folder that ``git clone`` makes of `url`."""
    if not is_known(url):
        return ""
    name = url.rstrip("/")
    name = name[: -len("/.git")] if name.endswith("/.git") else name
    name = name.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    for ending in (".git", ".bundle"):
        name = name[: -len(ending)] if name.endswith(ending) else name
    return f"{name}.git" if bare and name else name


def _init(call, options) -> None:
    folder = options.operands[0] if options.operands else "."
    if options.has("--bare"):
        call.tree(folder)
    else:
        call.tree(options.value("--separate-git-dir") or folder + "/.git")


def _worktree(call, options) -> None:
    verb, *rest = options.operands or [""]
    if verb in ("add", "remove") and rest:
        call.tree(rest[0])
    elif verb == "move":
        for folder in rest[:2]:
            call.tree(folder)


def _submodule(call, options) -> None:
    verb, *rest = options.operands or [""]
    if verb == "add" and rest:
        folder = rest[1] if len(rest) > 1 else _humanish(rest[0], False)
        if folder:
            call.tree(folder)
        top = work_tree(call.folder) if call.folder else None
        call.write(os.path.join(top, ".gitmodules") if top else ".gitmodules")
    elif verb == "foreach" and rest:
        from swarm_hook_core.shell.call import Call

        text = rest[0] if len(rest) == 1 else " ".join(rest)
        Call(call.walk, call.name, call.words, None, None).script(text)  # in folders that only git knows


def _format_patch(call, options) -> None:
    if options.has("--stdout"):
        return
    if options.has("--output"):
        call.write(options.value("--output"))
        return
    folder = options.value("-o", "--output-directory") or "."
    root, ending = absolute(call.folder, folder), options.value("--suffix") or ".patch"

    def admits(path: str) -> bool:
        name = os.path.basename(path)
        return path == root or (os.path.dirname(path) == root and name[:4].isdigit() and name.endswith(ending))

    call.tree(folder, admits)


def _apply(call, options) -> None:
    if options.has("--check", "--stat", "--numstat", "--summary") and not options.has("--apply"):
        return
    if not options.has("--cached"):
        _patches(call, options, options.operands or ["-"], always_from_top=False)


def _am(call, options) -> None:
    if options.has("--abort", "--continue", "--skip", "--quit", "-r", "--resolved", "--show-current-patch", "--retry"):
        return
    _patches(call, options, options.operands or ["-"], always_from_top=True)


def _patches(call, options, sources, always_from_top: bool) -> None:
    top = work_tree(call.folder) if call.folder else None
    strip, under = options.value("-p"), options.value("--directory") or ""
    here = os.path.realpath(call.folder) if top else ""
    prefix = os.path.relpath(here, top) if top and here != top else ""
    for source in sources:
        text = _text(call, source)
        if text is None:
            about = getattr(call.stdin, "about", None) if source == "-" else None
            if about is not None:
                call.tree(about.root, about.admits)
            else:
                call.guess("a patch that cannot be read yet")
            continue
        parts = int(strip) if strip and strip.isdigit() else None
        for path, from_top in files_in(text, parts, under, "" if always_from_top else prefix):
            if not _is_wanted(path, options):
                continue
            if top is None or not (from_top or always_from_top):
                call.write(path)
                continue
            whole = os.path.join(top, path)
            if always_from_top or here == top or whole.startswith(here + "/"):
                call.write(whole)


def _is_wanted(path: str, options) -> bool:
    from fnmatch import fnmatchcase

    if any(fnmatchcase(path, one) for one in options.values("--exclude")):
        return False
    included = options.values("--include")
    return not included or any(fnmatchcase(path, one) for one in included)


def _text(call, source: str):
    """The patch in `source` (``-``: what is piped in), or None where nobody can read it yet."""
    if source == "-":
        return call.stdin.text if call.stdin else None
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
    except (OSError, ValueError):
        return None


def _config(call, options) -> None:
    if only_reads(call.words):
        return
    for path in options.values("-f", "--file"):
        call.write(path)
    if options.has("--global"):
        home = _variable(call, "HOME")
        own = _variable(call, "GIT_CONFIG_GLOBAL") or os.path.join(home, ".gitconfig")
        beside = os.path.join(_variable(call, "XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
        call.write(beside if not os.path.exists(own) and os.path.exists(beside) else own)


def _variable(call, name: str) -> str:
    value = call.walk.scope.variable(name)
    return value if isinstance(value, str) and is_known(value) else ""


def _mailsplit(call, options) -> None:
    for word in call.words[1:]:
        if word.startswith("-o"):
            call.tree(word[2:])


def _rebase(call, options) -> None:
    for text in options.values("-x", "--exec"):
        call.script(text)


def _bisect(call, options) -> None:
    if call.words[1:2] == ["run"] and len(call.words) > 2:
        call.runs_project()
        call.run(call.words[2:])


def _report(call, options) -> None:
    folder = options.value("-o", "--output-directory") or "."
    root = absolute(call.folder, folder)
    call.tree(folder, lambda path: os.path.dirname(path) == root and os.path.basename(path).startswith("git-"))


def _each(call, paths) -> None:
    for path in paths:
        call.write(path)


def _tracks(operands) -> bool:
    return operands[:1] in (["track"], ["untrack"]) and len(operands) > 1


WRITERS = {
    "am": _am,
    "apply": _apply,
    "archive": _value_of("-o", "--output"),
    "bisect": _bisect,
    "bugreport": _report,
    "bundle": _bundle,
    "clone": _clone,
    "config": _config,
    "diagnose": _report,
    "diff": _value_of("--output"),
    "diff-files": _value_of("--output"),
    "diff-index": _value_of("--output"),
    "diff-tree": _value_of("--output"),
    "format-patch": _format_patch,
    "init": _init,
    "init-db": _init,
    "interpret-trailers": lambda call, options: _each(call, options.operands if options.has("--in-place") else []),
    "lfs": lambda call, options: _each(call, [".gitattributes"] if _tracks(options.operands) else []),
    "log": _value_of("--output"),
    "mailinfo": lambda call, options: _each(call, options.operands[:2]),
    "mailsplit": _mailsplit,
    "merge-file": lambda call, options: _each(call, [] if options.has("-p", "--stdout") else options.operands[:1]),
    "rebase": _rebase,
    "rev-list": _value_of("--output"),
    "show": _value_of("--output"),
    "submodule": _submodule,
    "whatchanged": _value_of("--output"),
    "worktree": _worktree,
}
