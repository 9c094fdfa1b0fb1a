"""The team's verbs over an open store: `TeamRows` and `TeamDocuments`, made from it wherever they are needed.

As in the store itself, the module of a verb is loaded when the verb is first called.
"""

from __future__ import annotations

from swarm_mcp.store import Store, lock_finder, lock_rows, reactions
from swarm_mcp.store.database import Turn
from swarm_mcp.store.store import Part, verb
from swarm_mcp.team import store_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store import locks
    from swarm_mcp.team import store_documents
else:
    from swarm_mcp.store.store import LazyModule, lock_finder, lock_rows, locks, reactions

    store_documents = LazyModule("swarm_mcp.team.store_documents")
    store_rows = LazyModule("swarm_mcp.team.store_rows")


class _OfStore(Part):
    def __init__(self, store: Store):
        super().__init__(store.database)

    def writing(self) -> Turn:
        """Return a transaction, for several of these verbs together."""
        return self._database.writing()


class TeamRows(_OfStore):
    """Locks and places of other machines, as rows of this store."""

    repositories = verb(store_rows.repositories)
    trees = verb(store_rows.trees)
    set_trees = verb(store_rows.set_trees)
    leave = verb(store_rows.leave)
    note = verb(store_rows.note)
    own_locks = verb(store_rows.own_locks)
    of_ids = verb(store_rows.of_ids)
    reaped = verb(locks.reaped)
    live = verb(lock_rows.live)
    own_places = verb(store_rows.own_places)
    living_in = verb(store_rows.living_in)
    renumber = verb(store_rows.renumber)
    confirm = verb(store_rows.confirm)
    restore = verb(store_rows.restore)
    void_grants = verb(store_rows.void_grants)
    place_posted = verb(store_rows.place_posted)
    met = verb(store_rows.met)
    drop = verb(reactions.end_locks)
    tell = verb(store_rows.tell)
    mirrored = verb(store_rows.mirrored)
    same = verb(lock_finder.same)
    add_lock = verb(store_rows.add_lock)
    grant_anew = verb(store_rows.grant_anew)
    take_over = verb(store_rows.take_over)
    add_session = verb(store_rows.add_session)
    mirrored_sessions = verb(store_rows.mirrored_sessions)
    miss_session = verb(store_rows.miss_session)
    missing_sessions = verb(store_rows.missing_sessions)
    gather_sessions = verb(store_rows.gather_sessions)
    remove_session = verb(store_rows.remove_session)
    mirrored_places = verb(store_rows.mirrored_places)
    add_place = verb(store_rows.add_place)
    drop_own_place = verb(store_rows.drop_own_place)
    drop_places = verb(store_rows.drop_places)


class TeamDocuments(_OfStore):
    """Messages, tasks and values that machines of a team share."""

    known = verb(store_documents.known)
    all_known = verb(store_documents.all_known)
    note = verb(store_documents.note)
    forget = verb(store_documents.forget)
    begin_anew = verb(store_documents.begin_anew)
    forget_old = verb(store_documents.forget_old)
    unposted = verb(store_documents.unposted)
    recipient = verb(store_documents.recipient)
    deliver = verb(store_documents.deliver)
    task = verb(store_documents.task)
    tasks_since = verb(store_documents.tasks_since)
    in_order = verb(store_documents.in_order)
    assignees = verb(store_documents.assignees)
    take_task = verb(store_documents.take_task)
    move_task = verb(store_documents.move_task)
    values_changed_at = verb(store_documents.values_changed_at)
    values = verb(store_documents.shared_values)
    value = verb(store_documents.shared_value)
    was_appended = verb(store_documents.was_appended)
    take_value = verb(store_documents.take_value)
    append_again = verb(store_documents.append_again)
    remove_value = verb(store_documents.remove_value)
    tell = verb(store_documents.tell)
    unsay = verb(store_documents.unsay)
