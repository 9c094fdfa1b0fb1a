"""A call that could not be checked goes ahead, but not in silence where other sessions hold locks in its reach.

Loaded only when a check has failed.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import session_events, state
from swarm_hook_core.check import Writes
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.denial import Notice, without_owner
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.opaque_calls import shell_text
from swarm_hook_core.paths import all_keys, git_root
from swarm_hook_core.state import local_store
from swarm_hook_core.traces.versions.locked import Kept
from swarm_hook_core.untrusted_text import token
from swarm_hook_core.watching import watch
from swarm_hook_core.wording import named_locks


def beside_locks(config: RuntimeConfig, call: ToolCall, error: BaseException, driver: Any = None) -> Verdict | None:
    """Return the Verdict on a call after its check ended in `error`: it says so, and locked files are watched.

    None if no other session has a lock in its reach, or that is not known either.
    """
    try:
        session, locks = _locks_in_reach(config, call, driver)
        if session is None or not locks:
            return None
        words = _words(session, locks, state.describe(error))
    except Exception as second:
        if state.describe(second) != state.describe(error):
            state.record(config.runtime_name, "pre_tool_use", second)
        return None

    watch.begin(config, call, locks, time.time(), Kept)
    state.record(config.runtime_name, "pre_tool_use", error)

    verdict = Verdict(None, words, locks, failed=True)
    unknown = without_owner("unchecked", "write", state.describe(error))
    verdict.noted = [Notice(locks[0].file, unknown, words)]
    return verdict


def _locks_in_reach(config: RuntimeConfig, call: ToolCall, driver: Any) -> tuple[Session | None, list[Held]]:
    """Return the session, and the locks of others around its folder or by name in the call."""

    file = local_store()
    if not file:
        return None, []
    reader = StoreReader(file, driver, waits=True)
    session = reader.session(config.runtime_name, call.session_id) or session_events.unregistered(config, call, "")
    peers = Peers(reader, session.instance_id, time.time(), call.agent)
    folders = [call.folder, *map(os.path.dirname, Writes(config, call).paths)]
    roots = dict.fromkeys(key for folder in folders for key in all_keys(session, git_root(folder), "/"))
    found = peers.around(list(roots))
    command = shell_text(call.tool, call.input)
    if command:
        found += [held for held in peers.under(["/"]) if held.file in command or os.path.dirname(held.file) in command]
    return session, list({held.mark: held for held in found}.values())


def _words(session: Session, locks: list[Held], why: str) -> str:
    identity = token(session.label, "identity")
    return (
        f"swarm: this call could not be checked ({why[:300]}), and other sessions hold"
        f" {named_locks(locks, identity, session.instance_id)}. It goes ahead, but it must leave those files alone, and"
        " they are compared afterwards. `swarm-mcp doctor` in a terminal says how to mend it."
    )
