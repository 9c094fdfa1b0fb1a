"""Calls that do not say which files they write: shell commands, and tools of other MCP servers.

Loaded only when another session holds a lock.
"""

from swarm_hook_core.config import OPAQUE_TOOLS
from swarm_hook_core.decision import Verdict
from swarm_hook_core.targets import shell_text


def judge(config, session, call, peers, now: float):
    """The Verdict on such a call. What it may write unseen is watched."""
    command = shell_text(call.tool, call.input)
    if command and not _concerns(command, session, call.folder, peers):
        return Verdict()
    effects = effects_of_call(call, command)
    if effects is None:
        return Verdict()
    from swarm_hook_core.settings import strict
    from swarm_hook_core.shell import collision

    found = collision.judge(
        session, call.tool, effects, call.folder, peers, now, strict(config.env_prefix, call.folder)
    )
    if found.watched:
        from swarm_hook_core.watching import watch

        watch.begin(config, call, found.watched, now)
    return found


def effects_of_call(call, command: str):
    """The Effects of such a call, of which `command` is the shell text, if any; None where it writes nothing."""
    if command:
        from swarm_hook_core.shell import effects_of

        return effects_of(command, call.folder)
    if call.tool in OPAQUE_TOOLS:
        from swarm_hook_core.shell.model import Effects, Guess

        effects = Effects()
        effects.guesses.append(Guess(f"a {call.tool} command", call.folder))
        return effects
    from swarm_hook_core.mcp_writers import effects_of_tool

    return effects_of_tool(call.tool, call.input, call.folder)


def _concerns(command: str, session, cwd: str, peers) -> bool:
    """Whether `command` could reach any lock there is: one around its folder, or whatever it may lead to."""
    if any(mark in command for mark in ("/", "~", "$", "..", "cd", "`", "pushd")):
        return True
    from swarm_hook_core.decision import all_keys
    from swarm_hook_core.paths import git_root

    roots = all_keys(session, git_root(cwd), "/")
    return bool(peers.under(roots, 1) or peers.over(roots) or peers.patterns(roots))
