"""Denies a call that could not be checked, if a person has asked for that: ``SWARM_FAIL=closed``.

Loaded only after a check has failed. Before the first use of swarm there is no store to check against, and no call is
denied. ``integrations/unchecked.sh`` does the same if no hook can run.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.denial import Denial, without_owner
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.settings import CLOSED, Setting, fail
from swarm_hook_core.state import config_path, store_path
from swarm_hook_core.untrusted_text import cut_text


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
