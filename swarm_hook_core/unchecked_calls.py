"""A call that could not be checked goes ahead, but not in silence where other sessions hold locks in its reach.

Loaded only when a check has failed.
"""

import os
import time

from swarm_hook_core.payload import text_field


def beside_locks(core, payload: dict, error: BaseException):
    """``(Verdict, session, view)`` of a call whose check ended in `error`: it says so, and locked files are watched.

    None where nobody holds a lock in its reach, or where that cannot be told either. `core` is a HookCore.
    """
    from swarm_hook_core import faults
    from swarm_hook_core.decision import Verdict

    try:
        session, view, locks = _locks_in_reach(core, payload)
        if not locks:
            return None
        words = _words(session, locks, faults.describe(error))
    except Exception as second:
        if faults.describe(second) != faults.describe(error):
            faults.record(core.config.runtime_name, "pre_tool_use", faults.describe(second))
        return None
    from swarm_hook_core.watching import watch

    watch.begin(core.config, payload, locks, time.time())
    faults.record(core.config.runtime_name, "pre_tool_use", faults.describe(error))
    return Verdict(None, words, locks, failed=True), session, view


def _locks_in_reach(core, payload: dict):
    """The session, where its locks were looked for, and what others hold around its folder or by name in the call."""
    from swarm_hook_core.decision import all_keys
    from swarm_hook_core.lookup.peers import Peers
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.paths import git_root
    from swarm_hook_core.state import local_store
    from swarm_hook_core.targets import shell_text

    file = local_store()
    if not file:
        return None, None, []
    view = StoreReader(file, core.driver)
    session = view.session(core.config.runtime_name, text_field(payload, "session_id"))
    session = session or core.unregistered(payload, "")
    peers = Peers(view, session.instance_id, time.time(), text_field(payload, "agent_id"))
    tool, tool_input = text_field(payload, "tool_name"), payload.get("tool_input")
    cwd = text_field(payload, "cwd") or os.environ.get("PWD", "/")
    folders = [cwd, *(os.path.dirname(path) for path in core.write_paths_for_tool(tool, tool_input, cwd))]
    roots = dict.fromkeys(key for folder in folders for key in all_keys(session, git_root(folder), "/"))
    found = peers.around(list(roots))
    command = shell_text(tool, tool_input)
    if command:
        found += [held for held in peers.under(["/"]) if held.file in command or os.path.dirname(held.file) in command]
    return session, view, list({(held.file, held.instance_id, held.agent): held for held in found}.values())


def _words(session, locks: list, why: str) -> str:
    from swarm_hook_core.labels import token
    from swarm_hook_core.shell.collision import named

    identity = token(session.label, "identity")
    return (
        f"swarm: this call could not be checked ({why[:300]}), and other sessions hold"
        f" {named(locks, identity, session.instance_id)}. It goes ahead, but it must leave those files alone, and they"
        " are compared afterwards. `swarm-mcp doctor` in a terminal says how to mend it."
    )
