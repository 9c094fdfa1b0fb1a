"""The session of a call that the store does not know: it is registered in passing, or checked all the same."""

import time
from typing import Any

from swarm_hook_core import environment, scratch
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import chosen_command
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lifecycle import join_in_passing
from swarm_hook_core.lookup import Session
from swarm_hook_core.lookup.command import CommandReader
from swarm_hook_core.lookup.sqlite import StoreReader, whole
from swarm_hook_core.paths import git_root
from swarm_hook_core.state import local_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import LockReader

DEADLINE_SECONDS = 0.2  # for a session that has to be registered first


def unregistered(config: "RuntimeConfig", call: "ToolCall", instance_id: str) -> Session:
    """A session as its own call and environment describe it, where the store does not."""
    identity, cwd = environment.identity(config.env_prefix), call.cwd
    if identity:
        label = f"identity:{identity}"
    else:
        label = ""
    return Session(instance_id, label, cwd, git_root(cwd) if cwd else "", environment.file_root(config.env_prefix))


def join(
    config: "RuntimeConfig",
    call: "ToolCall",
    store: "Any",
    coordinator: "list[str] | None" = None,
    driver: "Any" = None,
) -> "tuple[Session | None, LockReader | None]":
    """Return ``(Session, LockReader)`` of a session that `store` (may be None) does not know; else both None.

    It is registered in passing. If that fails or takes too long it is checked all the same: unknown to the store, it
    has no locks there.
    """
    end = time.monotonic() + DEADLINE_SECONDS
    known = scratch.load(config, call.session_id).get("instance_id")
    instance_id = known or join_in_passing(config, call, DEADLINE_SECONDS, coordinator)
    file = local_store()
    if file:
        store = StoreReader(file, driver, waits=True)
        session = store.session(config.runtime_name, call.session_id)
        if session is not None:
            return session, store
    if store is not None and store.is_ours and not (instance_id and chosen_command()):
        return unregistered(config, call, instance_id), whole(store)
    if not instance_id:
        return None, None

    scope = str(scratch.load(config, call.session_id).get("scope") or "")
    return unregistered(config, call, instance_id), CommandReader(max(0.05, end - time.monotonic()), scope)


def is_elsewhere(config: "RuntimeConfig", session_id: str) -> bool:
    """Return True if the store may be one that only the coordinator's command can reach."""
    return bool(chosen_command() or scratch.load(config, session_id).get("instance_id"))
