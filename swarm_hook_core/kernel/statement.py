"""Codex: a statement before the command has its shell look for the plan, and the user's rules allow it.

The command itself stays unchanged after it, so that the client's rules still see it; ``bash -c '...'`` around it would
hide it from them. Approvals and forbidding rules were seen to hold with such a statement in certain releases. In other
releases no statement is added.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from swarm_hook_core import environment
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.kernel.plans import in_quotes, kernel_dir, print_of
from swarm_hook_core.opaque_calls import shell_text
from swarm_hook_core.state import PLAIN

# Codex: user rules that may let a command out of the sandbox, which a statement before the command would undo.
#
# Codex runs a command outside its sandbox if an ``allow`` rule matches each of its parts; no rule matches the
# statement. Rules that ask or forbid hold in spite of the statement. The rules are Starlark, a subset of Python:
# ``prefix_rule(pattern=["make", ["a", "b"]], decision="allow")``.

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


SHELLS = ("bash", "zsh")  # shells that know their own command text, and can run it again


def may_precede(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if a statement may be put before this call's command."""
    command = shell_text(call.tool, call.input)
    if not isinstance(call.input, dict) or not isinstance(call.input.get("command"), str) or not command.strip():
        return False
    if "apply_patch" in command or "applypatch" in command:
        return False  # Codex applies a patch itself if it finds one in a command
    if _shell() not in SHELLS or environment.client_version(config) not in config.kernel_versions:
        return False

    return not may_allow(command, call.folder)


def preceded(tool_input: dict[str, Any], entry: str) -> dict[str, Any]:
    """Return the input of a call with the statement before its command."""
    return {**tool_input, "command": f". {in_quotes(entry)}; {tool_input['command']}"}


def without(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with its command as it was before the statement was added; ``Dialect.amend`` of Codex.

    Only for a call that has ended: before that the command is all from the model, and all of it is checked.
    """
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict) or payload.get("hook_event_name") == "PreToolUse":
        return payload
    command, ours = tool_input.get("command"), ". " + in_quotes(os.path.join(kernel_dir(), ""))[:-1]
    if not isinstance(command, str) or not command.startswith(ours):
        return payload
    name, mark, rest = command[len(ours) :].partition(".sh'; ")
    if not mark or name.count("/") != 1 or set(name) - PLAIN - set("_/"):
        return payload
    return {**payload, "tool_input": {**tool_input, "command": rest}}


def _shell() -> str:
    """Return the name of the shell that runs this user's commands."""
    import pwd

    try:
        return os.path.basename(pwd.getpwuid(os.getuid()).pw_shell)
    except KeyError:
        return os.path.basename(os.environ.get("SHELL", ""))  # a user without an account entry
