"""A command in the queue for locks: shows the holder it waits for."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.lookup import plain
from swarm_mcp.cli.reader import Reader
from swarm_mcp.domain.lock import Waiter
from swarm_mcp.locking.acquisition import Taken, acquire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.cli.arguments import Arguments
    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store import Store
    from swarm_mcp.store.lock_request import LockRequest


def acquire_shown(args: Arguments, store: Store, instance: Session, wanted: LockRequest, aside: bool = False) -> Taken:
    """As ``lock_acquisition.acquire``, waiting as long as --wait says; `aside` as in ``Progress``."""
    seconds = args.seconds("--wait")
    if not seconds:
        return acquire(store, instance, wanted, seconds)
    from swarm_mcp.cli.progress import Progress

    reader = Reader(args, store, token(instance.label or "", "identity"))
    with Progress(args.json, aside) as progress:

        def tell(obstacle: Lock | Waiter) -> None:
            who = reader.known(obstacle.owner_label, obstacle.instance_id)
            if isinstance(obstacle, Waiter):
                progress.begin(f"waiting in the queue behind {who}")
            else:
                progress.begin(f"waiting for {reader.path(plain(obstacle.file))}, held by {who}")

        taken = acquire(store, instance, wanted, seconds, tell)
        progress.end()
        return taken
