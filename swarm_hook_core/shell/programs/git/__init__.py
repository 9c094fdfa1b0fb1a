"""git: files named in the command are writes, listings are Founds, and git itself is asked about the rest.

git <words> ── table ──┬── named_files   files that its own words and pathspecs name, patches that it applies
                       ├── listings      its output, for the command that reads it
                       └── a GitCall ── touched_files ──▶ Touch, once a peer has a lock there

- work_tree_verbs: the files that each subcommand would touch
- `git_repository`: the git processes that answer, read-only and in time
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import GitCall, absolute, is_known
from swarm_hook_core.shell.programs.engine import Reading
from swarm_hook_core.shell.programs.git import table
from swarm_hook_core.shell.programs.git.listings import without_global_options
from swarm_hook_core.shell.programs.git.table import options_of

_MOVES = frozenset(
    "bisect checkout cherry-pick commit fetch merge pull rebase reset revert stash switch am update-ref"
    " symbolic-ref".split()
)
_NAMES = frozenset("branch tag replace remote".split())  # move nothing, but may give a name another meaning
_RUNS_HOOKS = frozenset("am checkout cherry-pick commit merge pull push rebase revert switch worktree".split())
_OF_BRANCHLESS = frozenset("branchless undo hide unhide move restack sync sw next prev reword amend record".split())
_ENTERS_SUBMODULES = frozenset("checkout read-tree reset restore submodule switch".split())
_LEAVES_HOOKS_OUT = ("HUSKY", "LEFTHOOK", "OVERCOMMIT_DISABLE", "SKIP_SIMPLE_GIT_HOOKS")
_ABOUT_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


def git(call: Call) -> None:
    folders, top, words = without_global_options(call.words)
    if not words:
        return
    folder = call.folder
    for one in folders:
        if is_known(one):
            folder = absolute(folder, one)
        else:
            folder = None
    if not is_known(words[0]):
        call.guess("a computed git command")
        return
    if words[0] == "config":
        call.walk.effects.add_deed(["git", *words], folder, call.by)
    inner = Call(call.walk, call.name, words, folder, call.stdin)
    top = _seen_from(folder, top)
    reading = table.reading_of(inner, words, _function)
    _made(inner, reading, top)
    call.output = inner.output
    if table.only_reads(words, reading) or _is_elsewhere(words):
        return
    if folder is None:
        call.guess(f"git {words[0]}, in a folder that is not known")
        return
    if words[0] in _RUNS_HOOKS:
        call.runs_project()
    effects = call.walk.effects
    after = any(_moves(earlier.words, words) for earlier in effects.git)
    if any((one.folder, one.words, one.after) == (folder, words, after) for one in effects.git):
        return  # a loop; it would only be asked again
    found = {word: founds for word in words if not is_known(word) and (founds := call.found(word))}
    made = GitCall(folder, words, call.by, top, _environment(call, folder), found, after)
    if words[0] == "apply":
        from swarm_hook_core.shell.programs.git.named_files import patched

        made.patch = patched(inner, options_of(words))
    effects.add(made)
    if words[0] in _OF_BRANCHLESS:
        call.moves()
    if words[0] in _ENTERS_SUBMODULES:
        from swarm_hook_core.shell.programs.git.uncommitted import within_submodules

        for inside in within_submodules(made):
            effects.add(inside)


def _moves(earlier: list[str], words: list[str]) -> bool:
    """Return True if ``git <earlier>`` may have changed the meaning of the revisions in ``git <words>``."""
    if earlier[0] in _MOVES:
        return True
    if earlier[0] in ("read-tree", "update-index"):  # the index is not known any more
        return True
    if earlier[0] in ("restore", "apply") and options_of(earlier).has("-S", "--staged", "--cached", "--index", "-3"):
        return True
    return earlier[0] in _NAMES and any(word in words[1:] for word in earlier[1:] if word[:1] != "-")


def _made(call: Call, reading: Reading | None, top: list[str]) -> None:
    """Report the files that its words name, and its output."""
    from swarm_hook_core.shell.programs.git import listings

    if reading is not None:
        reading.say()
    tell = listings.TELLERS.get(call.words[0])
    if tell is not None and call.folder is not None:
        tell(call, top)


def _function(name: str) -> Callable[..., None]:
    from swarm_hook_core.shell.programs.git import named_files

    function: Callable[..., None] = getattr(named_files, name)
    return function


def _is_elsewhere(words: list[str]) -> bool:
    """Return True if it changes settings outside of any repository, or files outside of one."""
    if words[0] == "config":
        return options_of(words).has("--global", "--system", "-f", "--file")
    return words[0] == "apply" and not options_of(words).has("--index", "--cached", "-3", "--3way")


def _seen_from(folder: str | None, top: Sequence[str]) -> list[str]:
    """Global options, with the paths in them absolute."""
    absolute_ones = []
    for word in top:
        name, equals, value = word.partition("=")
        if name in ("--git-dir", "--work-tree") and is_known(value):
            word = f"{name}={absolute(folder, value) or value}"
        absolute_ones.append(word)
    return absolute_ones


def _environment(call: Call, folder: str) -> dict[str, str]:
    """Return the repository's and the hooks' variables that the command sets, with absolute paths."""
    chosen = {}
    for name in _ABOUT_REPOSITORY:
        value = call.walk.scope.variable(name)
        if isinstance(value, str) and value and is_known(value) and value != os.environ.get(name):
            chosen[name] = os.path.join(folder, value)
    if call.words[:1] != ["commit"]:
        return chosen
    for name in _LEAVES_HOOKS_OUT:
        value = call.walk.scope.variable(name)
        if isinstance(value, str) and is_known(value):
            chosen[name] = value
    return chosen
