"""add, commit, rm, mv, update-index: what takes files into the index, out of it, or to another place."""

import os

from swarm_hook_core.shell.git.command_line import cut
from swarm_hook_core.shell.model import is_known


def add(question) -> None:
    """``add``: a half-done file that differs from the index; an unchanged one is left alone."""
    options = question.options
    everything = options.has("-A", "--all", "--no-ignore-removal", "-u", "--update", "--renormalize")
    one_by_one = options.has("-p", "--patch", "-i", "--interactive", "-e", "--edit")
    if not (options.operands or everything or one_by_one or options.has("--pathspec-from-file")):
        return
    specs = question.specs(options.operands)
    changed = question.chosen(specs, question.repository.modified)
    if one_by_one:
        question.maybe(changed)
        return
    question.hit(changed)
    if not options.has("-u", "--update", "--renormalize"):
        forced = options.has("-f", "--force")
        question.hit(question.chosen(specs, lambda paths: question.repository.untracked(paths, forced)))
    if options.has("--chmod"):
        question.hit(question.named(specs))


def commit(question) -> None:
    """``commit``: what is staged of the locked files, and with -a or paths what is not."""
    options = question.options
    if options.has("-p", "--patch", "--interactive"):
        question.maybe(question.repository.modified(question.locked))
    if options.operands or options.has("--pathspec-from-file"):
        specs = question.specs(options.operands)
        question.hit(question.chosen(specs, lambda paths: question.repository.against("HEAD", paths)))
        if not options.has("-i", "--include"):
            return
    question.hit(question.repository.staged(question.locked))
    if options.has("-a", "--all"):
        question.hit(question.repository.modified(question.locked))


def remove(question) -> None:
    """``rm``: tracked files; with --cached it takes a peer's file out of the index."""
    specs = question.specs(question.options.operands)
    if specs.is_empty:
        return
    question.hit(question.named(specs))
    question.hit(question.chosen(specs, question.repository.tracked))


def move(question) -> None:
    """``mv``: files and folders, both where they were and where they get."""
    *sources, target = question.options.operands or [""]
    if not sources:
        return
    words = [*sources, target]
    if not all(is_known(word) for word in words):
        question.cannot_tell()
    into = is_known(target) and os.path.isdir(os.path.join(question.call.folder, target))
    for source in sources:
        if source in question.call.found:
            specs = question.specs([source])
            question.hit(path for path in question.locked if specs.matches(path))
            if question.covers:
                question.hit(question.chosen(specs, question.repository.tracked))
        elif is_known(source):
            old = _seen_from_top(question, source)
            new = os.path.join(target, os.path.basename(source.rstrip("/"))) if into else target
            if old is not None:
                _rename(question, old, _seen_from_top(question, new) if is_known(target) else None)


def _rename(question, old, new) -> None:
    """The file or folder `old` becomes `new`: all that is in it goes, and arrives."""
    question.hit(path for path in (old, new) if path is not None and path in question.locked)
    if question.covers:
        moved = question.repository.tracked([old])
        question.hit(moved)
        question.hit(new + path[len(old) :] for path in moved if new is not None)
    for path in question.locked:
        for folder in (old, new):
            if folder is None:
                continue
            if path.startswith(folder + "/") and question.is_there(old + path[len(folder) :]):
                question.hit([path])
            elif folder.startswith(path + "/"):
                question.hit([folder])


def _seen_from_top(question, word: str):
    """`word` relative to the top of the work tree, None where it is outside."""
    relative = os.path.relpath(os.path.join(question.repository.top, question.prefix, word), question.repository.top)
    return None if relative == "." or relative.startswith("../") else relative


def update_index(question) -> None:
    """``update-index``: the files it is given."""
    if question.options.has("--stdin", "--index-info", "--cacheinfo", "--again", "-g"):
        question.cannot_tell()
    before, after = cut(question.words[1:])
    words = [word for word in before if not word.startswith("-")] + (after or [])
    if words:
        question.hit(question.named(question.specs(words)))
