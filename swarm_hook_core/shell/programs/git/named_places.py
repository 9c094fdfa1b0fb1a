"""The few paths that a git call is confined to by its own words, told without asking git or looking at locks."""

from __future__ import annotations

import os

from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.shell.programs.git.command_line import cut, inside
from swarm_hook_core.shell.programs.git.pathspec import Pathspec
from swarm_hook_core.shell.programs.git.table import asks, is_subcommand, options_of

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
