"""A call that could not be checked: it is denied if a person has asked for that, with ``SWARM_FAIL=closed``.

Else it goes ahead, but not in silence where other sessions hold locks in its reach.

Loaded only after a check has failed. Before the first use of swarm there is no store to check against, and no call is
denied. ``integrations/unchecked.sh`` does the same if no hook can run.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.check import Writes
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.denial import Denial, Notice, without_owner
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.opaque_calls import shell_text
from swarm_hook_core.paths import all_keys, git_root
from swarm_hook_core.settings import CLOSED, Setting, fail
from swarm_hook_core.state import config_path, local_store, store_path
from swarm_hook_core.traces.versions.locked import Kept
from swarm_hook_core.untrusted_text import cut_text, token
from swarm_hook_core.watching import watch
from swarm_hook_core.wording import named_locks


class NotChecked(Exception):
    """A check could not be made; the message says why."""


def verdict(config: RuntimeConfig, call: ToolCall, error: BaseException) -> Verdict | None:
    """Return the Verdict on `call` after its check ended in `error`: a denial, unless it writes nothing. Record the
    error.

    None if no person has asked for denials: the caller then decides about the error.
    """
    found = _closed(config, call)
    if found is None:
        return None

    if isinstance(error, NotChecked):
        why = str(error)
    else:
        why = state.describe(error)
    may_write = _may_write(config, call)
    if may_write:
        denied = "denied, as it could not be checked: "
    else:
        denied = ""
    state.record(config.runtime_name, "pre_tool_use", denied + why)
    if not may_write:
        return Verdict(failed=True)
    unknown = without_owner("unchecked", "write", why)
    denial = Denial(_file_of(config, call), None, _words(call.client_tool, why, found), loss=unknown)
    return Verdict(denial, failed=True)


def demand(config: RuntimeConfig, call: ToolCall, why: str) -> None:
    """Raise NotChecked, which becomes a denial, if a person wants a call denied that cannot be checked."""
    if _closed(config, call) is not None:
        raise NotChecked(why)


def _closed(config: RuntimeConfig, call: ToolCall) -> Setting | None:
    """Return the Setting that denies unchecked calls; None if it is off, or there is no store to check against."""
    if not has_store():
        return None

    found = fail(config.env_prefix, call.folder)
    if found.value == CLOSED:
        return found
    return None


def has_store() -> bool:
    """Return True if there is a store, even a broken one, or a coordinator of one's own choice."""
    try:
        os.lstat(store_path())
    except FileNotFoundError:  # no local store
        from swarm_hook_core.coordinator import chosen_command

        return bool(chosen_command())
    except (OSError, ValueError):
        return True  # the store may be there
    return True


def _may_write(config: RuntimeConfig, call: ToolCall) -> bool:
    """Return True if `call` may write. A shell command that is read and writes nothing goes ahead."""
    if not call.tool or call.tool in config.write_tools:
        return True
    try:
        from swarm_hook_core.opaque_calls import effects_of, patched

        if patched(call.tool, call.input, call.folder):
            return True
        effects = effects_of(call)
    except Exception:
        return True  # it cannot be read: perhaps that is why there was no check
    return effects is not None and (effects.size > 0 or effects.runs)


def _file_of(config: RuntimeConfig, call: ToolCall) -> str:
    """Return the first file that a write tool names, for the record; else empty."""
    try:
        if call.tool in config.write_tools:
            return next((os.path.join(call.folder, path) for path in config.extract_paths(call.input)), "")
    except Exception:
        return ""  # an input that cannot be read
    return ""


def _words(tool: str, why: str, found: Any) -> str:
    if found.source == "checkout":
        whose = f'"fail" is "closed" for {found.folder} in {config_path()}'
        way = 'set that to "open"'
    elif found.source == "user":
        whose = f'"fail" is "closed" in {config_path()}'
        way = 'set that to "open"'
    else:
        whose = f"{found.source} is {found.value}"
        way = f"start the client without {found.source}, or with {found.source}=open"
    return (
        f"swarm: this {tool or 'tool'} call was denied because it could not be checked against other sessions' locks"
        f" ({cut_text(why[:300])}), and {whose}. Nothing was written. Try once more; if it is denied again, tell the"
        f" user: `swarm-mcp doctor` says what is broken and how to mend it, and to let writes pass unchecked, {way}."
    )


def beside_locks(config: RuntimeConfig, call: ToolCall, error: BaseException, driver: Any = None) -> Verdict | None:
    """Return the Verdict on a call after its check ended in `error`: it says so, and locked files are watched.

    None if no other session has a lock in its reach, or that is not known either.
    """
    try:
        session, locks = _locks_in_reach(config, call, driver)
        if session is None or not locks:
            return None
        words = _words_beside(session, locks, state.describe(error))
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
    from swarm_hook_core.registration import session_of_call

    file = local_store()
    if not file:
        return None, []
    reader = StoreReader(file, driver, waits=True)
    session = reader.session(config.runtime_name, call.session_id) or session_of_call(config, call, "")
    peers = Peers(reader, session.instance_id, time.time(), call.agent)
    folders = [call.folder, *map(os.path.dirname, Writes(config, call).paths)]
    roots = dict.fromkeys(key for folder in folders for key in all_keys(session, git_root(folder), "/"))
    found = peers.around(list(roots))
    command = shell_text(call.tool, call.input)
    if command:
        found += [held for held in peers.under(["/"]) if held.file in command or os.path.dirname(held.file) in command]
    return session, list({held.mark: held for held in found}.values())


def _words_beside(session: Session, locks: list[Held], why: str) -> str:
    identity = token(session.label, "identity")
    return (
        f"swarm: this call could not be checked ({why[:300]}), and other sessions hold"
        f" {named_locks(locks, identity, session.instance_id)}. It goes ahead, but it must leave those files alone, and"
        " they are compared afterwards. `swarm-mcp doctor` in a terminal says how to mend it."
    )
