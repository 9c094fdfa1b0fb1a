"""The files of a sandbox that the effects of a command meet: a peer's lock on one of them would deny the command."""

import functools
import os
from typing import NamedTuple

from swarm_hook_core.paths import contains, key_of, keys_for
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.shell.programs.git import touched_files

GIT_SECONDS = 5.0  # tests ask if git knows; its speed is measured elsewhere


class Met(NamedTuple):
    """Of some files (relative to the sandbox): those that are `certain`ly met, and those that `possibl`y are."""

    certain: set[str]
    possible: set[str]


def met(effects: Effects, root: str, files: list[str]) -> Met:
    """Return the effects of `effects` on `files` of the sandbox at `root`. Guesses are ignored."""
    certain: set[str] = set()
    possible: set[str] = set()
    where = {path: _keys(os.path.join(root, path)) for path in files}
    written = {key for write in effects.writes for key in keys_for(write.path, write.folder)}
    certain |= {path for path, keys in where.items() if not written.isdisjoint(keys)}
    for tree in effects.trees:
        for path in files:
            for below in _seen_from(tree.root, where[path]) if path not in certain else ():
                answer = tree.admits(below)
                if answer:
                    certain.add(path)
                elif answer is None:
                    possible.add(path)
    for call in effects.git:
        locked: dict[str, list[str]] = {}  # a link and its target are one lock
        for path in files:
            locked.setdefault(_resolved(os.path.join(root, path)), []).append(path)
        touch = touched_files.touched(call, list(locked), GIT_SECONDS)
        (possible if call.in_doubt else certain).update(path for key in touch.certain for path in locked[key])
        if touch.unsure:
            possible.update(files)
    return Met(certain, possible - certain)


@functools.cache
def _resolved(path: str) -> str:
    return os.path.realpath(path)


@functools.cache
def _keys(path: str) -> list[str]:
    # As a lock on it would be stored; of a link also the name of its own, since it is the link that `rm` removes.
    # Asked again and again of sandboxes that do not change.
    return list(dict.fromkeys((path, key_of(path))))


def _seen_from(tree: str, keys: list[str]) -> list[str]:
    roots = list(dict.fromkeys((tree, os.path.realpath(tree))))
    return list(dict.fromkeys(tree + key[len(root) :] for root in roots for key in keys if contains(root, key)))
