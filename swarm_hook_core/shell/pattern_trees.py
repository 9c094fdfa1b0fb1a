"""Which locked pattern a command meets that writes a whole folder: the files on the disk say, and what is to arrive."""

from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.pattern_match import ENTRIES, SECONDS, Cover, covered_below, start_of
from swarm_hook_core.wildmatch import folded


def met_by(tree, patterns, keys, admits, seconds: float = SECONDS):
    """``((path, held) or None, [(held, why)])``: what `tree` certainly writes of what `patterns` (Held) cover, and may.

    `keys` are those of its root; ``admits(tree, path)`` as ``Tree.admits``. A folder with more than can be looked
    through in `seconds` may hold anything.
    """
    covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    unsure: dict = {}
    starts = [start for cover in covers if (start := start_of(cover, tree.root, keys))]
    for path, cover in covered_below(starts, seconds=seconds):
        told = admits(tree, path) if path else None
        if told:
            return (path, cover.held), []
        if told is None:
            more = "" if path else ": there is more in that folder than could be looked through"
            unsure[id(cover)] = (cover.held, f"`{tree.by}`{more}")
    arrives = getattr(tree.admits, "arrives", None)
    for number, path in enumerate(arrives() if arrives else ()):
        if number == ENTRIES:
            unsure.update({id(cover): (cover.held, f"`{tree.by}`: it brings very many files") for cover in covers})
            break
        rest = path[len(tree.root) :]
        for cover in covers:
            told = any(cover.has(_joined(key, rest)) for key in keys) and admits(tree, path)
            if told:
                return (path, cover.held), []
            if told is None:
                unsure.setdefault(id(cover), (cover.held, f"`{tree.by}`"))
    return None, list(unsure.values())


def _joined(key: str, rest: str) -> str:
    return key + (folded(rest) if key.startswith(NO_CASE) else rest)
