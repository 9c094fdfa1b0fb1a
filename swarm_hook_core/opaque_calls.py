"""Calls that do not say which files they write: shell commands, and tools of other MCP servers.

Loaded only where another session holds a lock, or has written something in the same repository.
"""

from swarm_hook_core.config import OPAQUE_TOOLS
from swarm_hook_core.targets import shell_text


def effects_of(call):
    """The Effects of such a call, as far as they can be told beforehand; None where it writes nothing."""
    effects = _seen_of(call)
    if call.is_cut:
        from swarm_hook_core.shell.model import Effects, Guess

        effects = effects or Effects()
        effects.guesses.append(Guess(f"the rest of a long {call.client_tool} call", call.folder))
    return effects


def _seen_of(call):
    command = shell_text(call.tool, call.input)
    if command:
        from swarm_hook_core.shell import effects_of

        return effects_of(command, call.folder)
    if call.tool in OPAQUE_TOOLS:
        from swarm_hook_core.shell.model import Effects, Guess

        effects = Effects()
        effects.guesses.append(Guess(f"a {call.client_tool} command", call.folder))
        return effects
    from swarm_hook_core.mcp_writers import effects_of_tool

    return effects_of_tool(call.tool, call.input, call.folder)


def judge(config, session, call, effects, peers, now: float):
    """The Verdict on a call with these Effects beside the locks of others."""
    from swarm_hook_core.settings import strict
    from swarm_hook_core.shell import collision

    is_strict = strict(config.env_prefix, call.folder)
    return collision.judge(session, call.client_tool, effects, call.folder, peers, now, is_strict)


def concerns(call, session, peers) -> bool:
    """Whether the call could reach any lock there is: one around its folder, or whatever a command may lead to."""
    command = shell_text(call.tool, call.input)
    if call.is_cut or not command or any(mark in command for mark in ("/", "~", "$", "..", "cd", "`", "pushd")):
        return True
    from swarm_hook_core.collisions import all_keys
    from swarm_hook_core.paths import git_root

    roots = all_keys(session, git_root(call.folder), "/")
    return bool(peers.under(roots, 1) or peers.over(roots) or peers.patterns(roots))
