"""Who is to hold what a command locks: a session, a person's shell, or nobody but the lease."""

from __future__ import annotations

from swarm_hook_core.environment import identity
from swarm_mcp.actor import TERMINAL, person
from swarm_mcp.domain.session import DETACHED
from swarm_mcp.errors import UsageError
from swarm_mcp.scope import current_scope, here
from swarm_mcp.store.registration import Registration, new_id


def holder(store, args) -> dict:
    """The instance that a command locks for: with ``--detach`` a new one that lives as long as its leases.

    Else as ``actor.person``. Raises UsageError, UnknownInstance.
    """
    if not args.given("--detach"):
        return person(store, args)
    if not args.given("--ttl"):
        raise UsageError("--detach wants --ttl SECONDS: without a process only a lease ends the lock")
    if args.value("--as") or args.value("--agent"):
        raise UsageError("--detach is for nobody's session: leave out --as and --agent")
    who = identity("MCP")
    words = [f"identity:{who}"] if who else []
    return store.instances.register(
        Registration(
            here(),
            label=" ".join([*words, DETACHED, f"origin:{TERMINAL}"]),
            scope=current_scope(args.value("--scope")),
            runtime=DETACHED,
            session_id=new_id(),
        )
    )


def dismiss(store, instance: dict) -> None:
    """Forget a holder that was made for locks that it did not get."""
    store.instances.forget(instance["id"])
