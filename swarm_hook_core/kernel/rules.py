"""Codex: user rules that may let a command out of the sandbox, which a statement before the command would undo.

Codex runs a command outside its sandbox if an ``allow`` rule matches each of its parts; no rule matches the statement.
Rules that ask or forbid hold in spite of the statement. The rules are Starlark, a subset of Python:
``prefix_rule(pattern=["make", ["a", "b"]], decision="allow")``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from swarm_hook_core.kernel.plans import print_of

LARGEST = 1 << 20


def may_allow(command: str, folder: str) -> bool:
    """Return True if a rule in force in `folder` may allow `command`. An unreadable rule may."""
    files = [file for place in _places(folder) for file in _files(place)]
    if not files:
        return False
    seen = print_of(command)
    return any(_allows(file, seen) for file in files)


def _places(folder: str) -> Iterator[str]:
    """Yield the folders of rules: the machine's, the user's, and those of the projects around `folder`."""
    yield "/etc/codex/rules"
    yield os.path.join(os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex"), "rules")
    while True:
        yield os.path.join(folder, ".codex", "rules")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _files(place: str) -> list[str]:
    try:
        return [os.path.join(place, name) for name in os.listdir(place) if name.endswith(".rules")]
    except OSError:
        return []  # no rules there


def _allows(file: str, seen: str) -> bool:
    """Return True if a rule in `file` may allow a command: the command has all the rule's words.

    `seen`: the command's text from `print_of`.
    """
    import ast

    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read(LARGEST))
        rules = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_rule(node.func)]
        if len(rules) < sum(_is_rule(node) for node in ast.walk(tree)):
            return True  # a rule under another name
        for rule in rules:
            given = {one.arg: ast.literal_eval(one.value) for one in rule.keywords}
            if rule.args or given.get("decision", "allow") == "allow":
                words = [[word] if isinstance(word, str) else word for word in given["pattern"]]
                if all(any(print_of(one) in seen for one in word) for word in words):
                    return True
        return False
    except (OSError, ValueError, KeyError, TypeError, SyntaxError, RecursionError):
        return True  # unreadable: it may allow the command


def _is_rule(node: object) -> bool:
    return getattr(node, "id", "") == "prefix_rule"
