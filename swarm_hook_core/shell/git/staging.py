"""add, commit, rm, mv, update-index: what takes files into the index, out of it, or to another place."""

import os

from swarm_hook_core.shell.git.words import cut
from swarm_hook_core.shell.model import is_known


def add(q) -> None:
    """``add``: a half-done file that differs from the index; an unchanged one is left alone."""
    o = q.options
    everything = o.has("-A", "--all", "--no-ignore-removal", "-u", "--update", "--renormalize")
    one_by_one = o.has("-p", "--patch", "-i", "--interactive", "-e", "--edit")
    if not (o.operands or everything or one_by_one or o.has("--pathspec-from-file")):
        return
    specs = q.specs(o.operands)
    changed = q.chosen(specs, q.repository.modified)
    if one_by_one:
        q.maybe(changed)
        return
    q.hit(changed)
    if not o.has("-u", "--update", "--renormalize"):
        forced = o.has("-f", "--force")
        q.hit(q.chosen(specs, lambda paths: q.repository.untracked(paths, forced)))
    if o.has("--chmod"):
        q.hit(q.named(specs))


def commit(q) -> None:
    """``commit``: what is staged of the locked files, and with -a or paths what is not."""
    o = q.options
    if o.has("-p", "--patch", "--interactive"):
        q.maybe(q.repository.modified(q.locked))
    if o.operands or o.has("--pathspec-from-file"):
        specs = q.specs(o.operands)
        q.hit(q.chosen(specs, lambda paths: q.repository.against("HEAD", paths)))
        if not o.has("-i", "--include"):
            return
    q.hit(q.repository.staged(q.locked))
    if o.has("-a", "--all"):
        q.hit(q.repository.modified(q.locked))


def remove(q) -> None:
    """``rm``: tracked files; with --cached it takes a peer's file out of the index."""
    specs = q.specs(q.options.operands)
    if specs.is_empty:
        return
    q.hit(q.named(specs))
    q.hit(q.chosen(specs, q.repository.tracked))


def move(q) -> None:
    """``mv``: files and folders, both where they were and where they get."""
    *sources, target = q.options.operands or [""]
    if not sources:
        return
    words = [*sources, target]
    if not all(is_known(word) for word in words):
        q.cannot_tell()
    into = is_known(target) and os.path.isdir(os.path.join(q.call.folder, target))
    for source in sources:
        if source in q.call.found:
            specs = q.specs([source])
            q.hit(path for path in q.locked if specs.matches(path))
            if q.covers:
                q.hit(q.chosen(specs, q.repository.tracked))
        elif is_known(source):
            old = _seen_from_top(q, source)
            new = os.path.join(target, os.path.basename(source.rstrip("/"))) if into else target
            if old is not None:
                _rename(q, old, _seen_from_top(q, new) if is_known(target) else None)


def _rename(q, old, new) -> None:
    """The file or folder `old` becomes `new`: all that is in it goes, and arrives."""
    q.hit(path for path in (old, new) if path is not None and path in q.locked)
    if q.covers:
        moved = q.repository.tracked([old])
        q.hit(moved)
        q.hit(new + path[len(old) :] for path in moved if new is not None)
    for path in q.locked:
        for folder in (old, new):
            if folder is None:
                continue
            if path.startswith(folder + "/") and q.is_there(old + path[len(folder) :]):
                q.hit([path])
            elif folder.startswith(path + "/"):
                q.hit([folder])


def _seen_from_top(q, word: str):
    """`word` relative to the top of the work tree, None where it is outside."""
    relative = os.path.relpath(os.path.join(q.repository.top, q.prefix, word), q.repository.top)
    return None if relative == "." or relative.startswith("../") else relative


def update_index(q) -> None:
    """``update-index``: the files it is given."""
    if q.options.has("--stdin", "--index-info", "--cacheinfo", "--again", "-g"):
        q.cannot_tell()
    before, after = cut(q.words[1:])
    words = [word for word in before if not word.startswith("-")] + (after or [])
    if words:
        q.hit(q.named(q.specs(words)))
