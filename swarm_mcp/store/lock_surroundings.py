"""What a request for locks finds around it, told by one statement.

Most requests run into nothing: nobody waits, nothing that they meet is held, no lease has lapsed. One that knows so is
granted at once; whatever there is, is then asked about one by one.
"""

from __future__ import annotations

from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_mcp.domain.session import Session
from swarm_mcp.store.lock_finder import ON_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_candidates import Asking
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_request import Reach

MOST = 20  # locks of one request that are asked about together: SQLite takes no more than some hundred questions in one

_LOCK = "EXISTS (SELECT 1 FROM context WHERE type = 'lock' AND"
_SOME_OF_ALL = (
    "EXISTS (SELECT 1 FROM swarm_waiters) AS waiters, EXISTS (SELECT 1 FROM swarm_lapses) AS lapses,"
    f" {_LOCK} repository IS NOT NULL) AS logical,"
    f" EXISTS (SELECT 1 FROM context WHERE path_key IS NULL AND {ON_FILES}) AS keyless"
)
_SOME_OF_ITS_OWN = (
    f"{_LOCK} ttl IS NOT NULL AND instance_id = i.id) AS leased,"
    " EXISTS (SELECT 1 FROM swarm_denials WHERE instance_id = i.id) AS denied"
)


class Surroundings(Session):
    """The session that asks, as ``EVIDENCE`` has it, and what there is any of (1 or 0).

    waiters  places in the line, whoever waits there
    lapses   records of locks that lapsed under their holders
    logical  locks that hold in every work tree of a repository
    keyless  locks that another implementation has stored without a key
    leased   locks of this session that lapse
    denied   refusals of this session that it is to hear of
    met      locks that may meet what it asks for, in the same work tree, and keep it out or be its own
    """

    __slots__ = ()

    waiters: int
    lapses: int
    logical: int
    keyless: int
    leased: int
    denied: int
    met: int


def surroundings(
    db: Database, finder: LockFinder, instance: Session, reaches: tuple[Reach, ...], asking: Asking
) -> Surroundings:
    """Return what a request for these `reaches` finds around it; nothing at all where its session is not registered."""
    values: list = []
    asked: list[str] = []
    if len(reaches) <= MOST:
        for reach in reaches:
            rowids, own = finder.near(reach, asking)
            asked.append(rowids)
            values += own
    met = f"EXISTS ({' UNION ALL '.join(asked)})" if asked else "1"
    found = db.row(
        f"SELECT {EVIDENCE}, {_SOME_OF_ALL}, {_SOME_OF_ITS_OWN}, {met} AS met"
        " FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id WHERE i.id = ?",
        (*values, instance.id),
        Surroundings,
    )
    return found or Surroundings()
