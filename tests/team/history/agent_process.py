"""The team agent with leases as short as a storm's, and with a fault planted in it where one is named."""

import sys

from swarm_mcp.team import protocol

from .storm import LEASE, MIRROR_LEASE


def fresh_too_long() -> None:
    """Planted: a replica counts as fresh for longer than others wait for it."""
    from swarm_mcp.team.replica import Replica

    right = Replica.apply
    Replica.apply = lambda self, news, epoch, sent=None, lease=0.0: right(self, news, epoch, sent, 3 * MIRROR_LEASE)  # type: ignore[method-assign, assignment]


def settled_at_once() -> None:
    """Planted: a grant is said to hold on all machines before these know of it."""
    from swarm_mcp.team.talk import Following

    right = Following._granted
    Following._granted = lambda self, rows, ours, version: right(self, rows, ours, 0)  # type: ignore[method-assign]


def passes_over_some() -> None:
    """Planted: an agent drops some grants of others."""
    from swarm_mcp.team.replica import Replica

    right = Replica.granted

    def granted(self, body) -> None:  # type: ignore[no-untyped-def]
        if body["machine"] == self.machine or body["fence"] % 10:
            right(self, body)

    Replica.granted = granted  # type: ignore[method-assign]


def forgets_deliveries() -> None:
    """Planted: delivered messages are not remembered here."""
    from swarm_mcp.team import store_documents

    right = store_documents.note

    def note(tx, repository, kind, key, version, body):
        if kind != protocol.MESSAGE or body is not None:
            right(tx, repository, kind, key, version, body)

    store_documents.note = note


def voided_is_released() -> None:
    """Planted: locks that a new server does not know count as released."""
    from swarm_mcp.team.replica import Replica

    right = Replica._take_all
    Replica._take_all = lambda self, found, has_lost: right(self, found, False)  # type: ignore[method-assign]


def loses_in_silence() -> None:
    """Planted: the holder of a lock that is lost hears nothing of it."""
    from swarm_mcp.team.replica import Replica

    Replica.tell_holder = lambda *_: None  # type: ignore[method-assign]


def main() -> int:
    protocol.MIRROR_LEASE, protocol.SESSION_LEASE = MIRROR_LEASE, LEASE  # before other modules copy these values
    if planted := sys.argv[1]:
        globals()[planted]()
    from swarm_mcp.team.agent import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
