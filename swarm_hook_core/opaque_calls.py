"""Calls without names of files: shell commands, and tools of other MCP servers.

Loaded only if another session holds a lock, or has written something in the same repository.
"""

from __future__ import annotations

from swarm_hook_core import settings, state
from swarm_hook_core.collisions import all_keys
from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.paths import git_root
from swarm_hook_core.shell import collision
from swarm_hook_core.shell.model import Effects, Guess
from swarm_hook_core.targets import shell_text


def effects_of(call: ToolCall) -> Effects | None:
    """Return the Effects of such a call, as far as they can be told beforehand; None if it writes nothing."""
    effects = _seen_of(call)
    if call.is_cut:
        effects = effects or Effects()
        effects.guesses.append(Guess(f"the rest of a long {call.client_tool} call", call.folder))
    return effects


def _seen_of(call: ToolCall) -> Effects | None:
    command = shell_text(call.tool, call.input)
    if command:
        from swarm_hook_core.shell import effects_of

        return effects_of(command, call.folder)
    if call.tool in OPAQUE_TOOLS:
        effects = Effects()
        effects.guesses.append(Guess(f"a {call.client_tool} command", call.folder))
        return effects
    from swarm_hook_core.mcp_writers import effects_of_tool

    return effects_of_tool(call.tool, call.input, call.folder)


def judge(
    config: RuntimeConfig,
    session: Session,
    call: ToolCall,
    effects: Effects,
    peers: Peers,
    now: float,
    with_kernel: bool = True,
) -> Verdict:
    """Return the Verdict on a call with these Effects beside the locks of others.

    An unreadable command may run in spite of a strict setting, if the kernel holds all locked files meanwhile.
    """
    is_strict = settings.strict(config.env_prefix, call.folder)
    if with_kernel and config.kernel and call.tool in SHELL_TOOLS and settings.kernel(config.env_prefix, call.folder):
        verdict = collision.judge(session, call.client_tool, effects, call.folder, peers, now)
        if verdict.denial is None and verdict.watched:
            try:
                from swarm_hook_core.kernel.planning import plan_of

                verdict.plan = plan_of(config, call, session, effects, peers, is_strict)
            except Exception as error:  # the call is judged as if the kernel could hold nothing
                state.record(config.runtime_name, "kernel", error)
                verdict.plan = None
        if verdict.plan is not None:
            verdict.notice += " The kernel keeps them read-only for this call." if verdict.notice else ""
            return verdict
        if not is_strict:
            return verdict
    return collision.judge(session, call.client_tool, effects, call.folder, peers, now, is_strict)


def concerns(call: ToolCall, session: Session, peers: Peers) -> bool:
    """Return True if the call could reach any lock: one around its folder, or any place that a command may lead to."""
    command = shell_text(call.tool, call.input)
    if call.is_cut or not command or any(mark in command for mark in ("/", "~", "$", "..", "cd", "`", "pushd")):
        return True

    roots = all_keys(session, git_root(call.folder), "/")
    return bool(peers.under(roots, 1) or peers.over(roots) or peers.patterns(roots))
