"""A person's alone: the files that keep sessions off each other's work, and the commands that switch that off.

A call of an agent that would certainly change one of these files, or run one of these commands, is denied. Loaded only
for a call that names something like it (the rule ``protections``).

    files     swarm's settings, store and state; the clients' settings and plugins that carry its hooks
    guard     the guard of a repository's commits
    commands  swarm's own verbs, git's settings, database programs
"""

import os
from collections.abc import Iterable

from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.protected import commands, files
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.protected.files import Matter


def denial_of(
    call: "ToolCall", targets: "Iterable[tuple[str, str, str]]", effects: "Effects | None"
) -> "Denial | None":
    """Return the Denial of a call that would weaken the protection of others, or None.

    targets  ``(folder, path, how)`` of the files that the call names
    effects  the Effects of a call without names, or None
    """
    matter, by = _in_targets(call, targets), ""
    if matter is None and effects is not None:
        matter, by = _in_effects(effects)
    if matter is None:
        return None

    part, about = "", named(matter.path)
    if matter.path == by:
        about = command(by)
    elif by:
        part = f" ({command(by)})"
    denial = Denial(
        matter.path, None,
        f"swarm blocked {call.client_tool}{part} for {about}: {matter.what}. That protects the work of all sessions,"
        f" and only a person changes it. Do not do it another way; go on without it. If the person who runs you wants"
        f" it, {matter.way}, in a terminal of their own.",
    )  # fmt: skip
    denial.deed = by or matter.path
    return denial


def _in_targets(call: "ToolCall", targets: "Iterable[tuple[str, str, str]]") -> "Matter | None":
    for folder, path, how in targets:
        found = files.matter_of(os.path.join(folder, path), how, call.input)
        if found is not None:
            return found
    return None


def _in_effects(effects: "Effects") -> "tuple[Matter | None, str]":
    """Return the first Matter, and the part of the command that it is about."""
    for words, folder, by in effects.deeds:
        found = commands.matter_of(words, folder, by)
        if found is not None:
            return found, by
    for write in effects.writes:
        path = os.path.join(write.folder, write.path)
        if "\0" in path:
            continue
        found = files.matter_of(path, write.how)
        if found is not None:
            return found, write.by
    for tree in effects.trees:
        found = files.matter_in_tree(tree)
        if found is not None:
            return found, tree.by
    return None, ""
