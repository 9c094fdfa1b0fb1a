"""Hooks of git commands, read as scripts: the git commands in them.

The shell reader follows the hook, scripts of ``package.json`` and recipes of a makefile. No hook is run.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.git_repository import Repository
from swarm_hook_core.json_text import loads
from swarm_hook_core.repository import small_text
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import Effects, GitCall, is_known
from swarm_hook_core.shell.programs.git.commit_hooks import (
    BY_FRAMEWORK,
    DEEPEST,
    FAILS_OVER_ALL,
    RUNNERS,
    SWITCHES,
    WHOLE,
    Hooks,
    hooks_folder,
)
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.shell.walk import Walk

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
UNCHECKED = ("pre-commit", "commit-msg", "pre-merge-commit", "pre-push")  # hooks that ``--no-verify`` leaves out
# The hooks of git commands, in their order: those before the command's own work, and those after it.
_OF_COMMITS = (("pre-commit", "prepare-commit-msg", "commit-msg"), ("post-commit",))
_HOOKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "commit": (_OF_COMMITS[0], ("post-commit", "post-rewrite")),
    **dict.fromkeys(("cherry-pick", "revert"), _OF_COMMITS),
    **dict.fromkeys(("checkout", "switch"), ((), ("post-checkout",))),
    "merge": (("pre-merge-commit",), ("post-merge",)),
    "pull": (("pre-merge-commit",), ("post-merge", "post-rewrite")),
    "rebase": (("pre-rebase",), ("post-checkout", "post-rewrite")),
    "am": (("applypatch-msg", "pre-applypatch"), ("post-applypatch",)),
    "push": (("pre-push",), ()),
}


def commands(call: GitCall, words: list[str], repository: Repository) -> tuple[list[GitCall], list[GitCall]]:
    """Return the git commands in the hooks of ``git <words>``: those that run before its own work, and after it.

    One that puts changes aside around a commit or push sets ``call.aside``. Raises NoAnswer.
    """
    found: tuple[list[GitCall], list[GitCall]] = [], []
    names = _HOOKS.get(words[0])
    folder = hooks_folder(repository) if names else ""
    options, settings = options_of(words), {**os.environ, **call.environment}
    is_unchecked = options.has("--no-verify") or (words[0] == "commit" and options.has("-n"))
    if not folder or names is None or any(settings.get(name) == value for name, value in SWITCHES.items()):
        return found
    for place, some in enumerate(names):
        for hook in some:
            path = os.path.join(folder, hook)
            if (is_unchecked and hook in UNCHECKED) or not os.access(path, os.X_OK):
                continue
            for one in _effects(repository.top, settings, hook, path).git:
                if hook in UNCHECKED and (one.aside or one.words[0] == "stash"):
                    name = _aside(one)
                    if name == FAILS_OVER_ALL or not (words[0] == "commit" and options.has("-a", "--all")):
                        call.aside = call.aside or name
                    continue
                one.hook, one.by = hook, f"{one.by}, in the hook {hook} of {call.by}"
                one.in_doubt = one.in_doubt or call.in_doubt
                found[place].append(one)
    return found


def _aside(call: GitCall) -> str:
    """Return the name of the tool that puts changes aside by this command of a hook; empty if it does not."""
    verb = (call.words[1:2] or ["push"])[0]
    leaves_them = any(option in call.by for option in ("--no-stash", *WHOLE))
    if (call.aside and leaves_them) or not (verb in ("push", "save") or verb[:1] == "-"):
        return ""
    return call.aside or "git stash"


def _effects(top: str, settings: dict[str, str], hook: str, path: str) -> Effects:
    """Return the Effects of the hook at `path`, by the shell reader. A framework's script is not read."""
    found = Effects()
    text = Hooks(top, settings, hook).script(path)
    if text and not any(mark in text for mark in BY_FRAMEWORK):
        walk = Walk(found, top, settings)
        walk.project_script = _project_script
        walk.script(text)
    return found


def _project_script(call: Call) -> str:
    """Return the shell text that a runner's task stands for: ``npm run NAME``, ``make TARGET``; empty if unknown."""
    operands = [word for word in call.words if word[:1] != "-" and is_known(word)]
    folder = call.folder or "/"
    if call.name in RUNNERS:
        if operands[:1] in (["run"], ["run-script"]):
            operands = operands[1:]
        name = {"t": "test", "tst": "test"}.get((operands or [""])[0], (operands or [""])[0])
        try:
            scripts: Any = loads(small_text(os.path.join(folder, "package.json")))
            scripts = scripts["scripts"]
            return "\n".join(scripts[one] for one in (f"pre{name}", name, f"post{name}") if one in scripts)
        except (ValueError, KeyError, TypeError, RecursionError):  # no manifest, or no scripts in it
            return ""
    if call.name in ("make", "gmake"):
        targets = [word for word in operands if "=" not in word]
        text = "\n".join(small_text(os.path.join(folder, name)) for name in _MAKEFILES)
        return "\n".join(_recipe(text, target, 0) for target in targets or [""])
    return ""


def _recipe(makefile: str, target: str, depth: int) -> str:
    """Return the commands of a target, those of its prerequisites first; without a name, of the first one."""
    lines = makefile.replace("\\\n", " ").split("\n")
    for at, line in enumerate(lines):
        names, colon, needed = line.partition(":")
        is_rule = colon and line[:1] not in ("\t", ".", "#", " ") and not needed.startswith("=")
        if not is_rule or (target and target not in names.split()) or depth > DEEPEST:
            continue
        found = [_recipe(makefile, one, depth + 1) for one in needed.split()]
        for command in lines[at + 1 :]:
            if command[:1] != "\t":
                break
            found.append(command.strip().lstrip("@-+").replace("$(MAKE)", "make").replace("$$", "$"))
        return "\n".join(found)
    return ""
