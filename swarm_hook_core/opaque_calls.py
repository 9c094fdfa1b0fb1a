"""Calls that do not say which files they write: shell commands, and tools of other MCP servers.

Loaded only when another session holds a lock.
"""

import os

from swarm_hook_core import payload as payloads
from swarm_hook_core.decision import Verdict
from swarm_hook_core.targets import OPAQUE_TOOLS, shell_text

RELAY_SECONDS = 2.0
# For the coordinator that checks in a hook's place, so that it asks nobody else: when it was asked, in Unix seconds.
# What a client inherited from who knows where would otherwise switch its checks off for good.
RELAYED = "SWARM_HOOK_RELAYED"
RELAYED_SECONDS = 60


def verdict(core, payload: dict, session, peers, cwd: str, now: float):
    """The Verdict on such a call, by `core` (a HookCore). What it may write unseen is noted for afterwards.

    Where this interpreter has no grammar for shell commands, the coordinator's is asked for its answer.
    """
    tool, tool_input = payloads.text_field(payload, "tool_name"), payload.get("tool_input")
    command = shell_text(tool, tool_input)
    if command and not _concerns(command, session, cwd, peers):
        return Verdict()
    from swarm_hook_core.shell.grammar import GrammarMissing

    try:
        effects = _effects(tool, tool_input, command, cwd)
    except GrammarMissing:
        if _is_relayed(now):
            raise
        return _relayed(core, payload, now)
    if effects is None:
        return Verdict()
    from swarm_hook_core.settings import strict
    from swarm_hook_core.shell.collision import judge

    found = judge(session, tool, effects, cwd, peers, now, strict(core.config.env_prefix))
    if found.watched:
        from swarm_hook_core.watching import watch

        watch.begin(core.config, payload, found.watched, now)
    return found


def _effects(tool: str, tool_input, command: str, cwd: str):
    if command:
        from swarm_hook_core.shell import effects_of

        return effects_of(command, cwd)
    if tool in OPAQUE_TOOLS:
        from swarm_hook_core.shell.model import Effects, Guess

        effects = Effects()
        effects.guesses.append(Guess(f"a {tool} command", cwd))
        return effects
    from swarm_hook_core.mcp_writers import effects_of_tool

    return effects_of_tool(tool, tool_input, cwd)


def _concerns(command: str, session, cwd: str, peers) -> bool:
    """Whether `command` could reach any lock there is: one around its folder, or whatever it may lead to."""
    if any(mark in command for mark in ("/", "~", "$", "..", "cd", "`", "pushd")):
        return True
    from swarm_hook_core.decision import all_keys
    from swarm_hook_core.paths import git_root

    roots = all_keys(session, git_root(cwd), "/")
    return bool(peers.under(roots, 1) or peers.over(roots) or peers.patterns(roots))


def _is_relayed(now: float) -> bool:
    asked = os.environ.get(RELAYED, "")
    return asked.isdecimal() and abs(now - int(asked[:15])) < RELAYED_SECONDS


def _relayed(core, payload: dict, now: float):
    """The coordinator's answer to the same payload, as a Verdict; what it has to note it notes itself."""
    from swarm_hook_core import coordinator
    from swarm_hook_core.decision import Denial
    from swarm_hook_core.lookup.command import CoordinatorUnavailable

    argv = coordinator.command()
    if not argv:
        raise CoordinatorUnavailable("shell commands cannot be read: no grammar here, and no swarm-mcp")
    words = ["hook", "pre-tool-use", "--runtime", core.config.runtime_name]
    asked = {RELAYED: str(int(now))}
    done = coordinator.run([*argv, *words], RELAY_SECONDS, stdin=payloads.dumps(payload), **asked)
    if done.code != 0:
        raise CoordinatorUnavailable(f"swarm-mcp hook: {done.stderr.strip()[:200]}")
    if not done.stdout.strip():
        return Verdict()
    answer = payloads.parse(done.stdout)["hookSpecificOutput"]
    if answer.get("permissionDecision") == "deny":
        return Verdict(Denial("", None, answer["permissionDecisionReason"]))
    return Verdict(None, payloads.text_field(answer, "additionalContext"))
