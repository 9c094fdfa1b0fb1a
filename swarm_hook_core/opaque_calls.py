"""Calls that do not say which files they write: shell commands, and tools of other MCP servers.

Loaded only when another session holds a lock.
"""

from swarm_hook_core import payload as payloads
from swarm_hook_core.decision import Verdict
from swarm_hook_core.targets import OPAQUE_TOOLS, shell_text


def verdict(core, payload: dict, session, peers, cwd: str, now: float):
    """The Verdict on such a call, by `core` (a HookCore). What it may write unseen is noted for afterwards."""
    tool, tool_input = payloads.text_field(payload, "tool_name"), payload.get("tool_input")
    command = shell_text(tool, tool_input)
    if command and not _concerns(command, session, cwd, peers):
        return Verdict()
    effects = _effects(tool, tool_input, command, cwd)
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
