"""Denials: sessions that were kept from a file (``refusals``), and the word to them once it is free.

A row stands from the refusal until the file is free (then its session gets one message), until the session itself gets
the lock, or until the session ends. A file with waiters in line (``lock_queue``) is not free: the word comes when the
file has no holder and no waiter.
"""

from __future__ import annotations

from swarm_hook_core import repeated_denials
from swarm_hook_core.lookup import ASKED, REQUESTS
from swarm_hook_core.lookup.sqlite import SPELLED
from swarm_hook_core.paths import key_of
from swarm_hook_core.storms import SECONDS
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.domain.lock import MUTEX_PREFIX, Denial, Lock, Waiter
from swarm_mcp.domain.session import Session
from swarm_mcp.store import lock_finder, lock_queue, notices, session_table
from swarm_mcp.store.attempts import Attempt
from swarm_mcp.store.lock_request import reach_in
from swarm_mcp.store.naming import known_as, may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Transaction

KEPT_SECONDS = 86400  # then no session waits any more, and cleanup forgets it
KNOWN_SECONDS = 60  # a refusal repeated within this time is not written down again

# Reason of a release, as events have it -> words about the holder.
_WAYS = {
    "": "{who} released {it}",
    "task_terminal": "the task that {who} held {it} for has ended",
    "dispatch_task_terminal": "the task that {who} held {it} for has ended",
    "deregistered": "{who} has left",
    "moved": "{who} works elsewhere now",
    "reclaimed": "{who} is gone",
    "ended": "the command for which {who} held {it} has ended",
    "lapsed": "the lease of {who} on {it} has lapsed",
    "stolen": "it was taken from {who}",
    "turn_ended": "the turn in which {who} wrote {it} has ended",
    "agent_ended": "the agent of {who} that held {it} has ended",
}
_ADVICE = "Read before you write: the contents may have changed. To keep a file to yourself, lock it."
LOOKED_AT_ONCE = 1000  # refusals that are checked for a free file: the newest

# Of swarm_denials as `d`: there is no lock by that name any more.
_FREE = (
    "NOT EXISTS (SELECT 1 FROM context c WHERE c.type = 'lock' AND c.path_key IN (d.path_key, d.file))"
    f" AND NOT EXISTS (SELECT 1 FROM context c WHERE c.type = 'lock' AND {SPELLED} AND c.file = d.file)"
)


def are_recent(tx: Transaction, instance_id: str) -> bool:
    """Return True if a refusal of this session was written down so recently that a repetition `is_known`."""
    sql = "SELECT 1 FROM swarm_denials WHERE instance_id = ? AND denied_at > ? LIMIT 1"
    return tx.row(sql, (instance_id, tx.now() - KNOWN_SECONDS)) is not None


def is_known(tx: Transaction, instance: Session, lock: Lock | Waiter, path: str, tool: str) -> bool:
    """Return True if this session's refusal of `path` by this lock's holder was written down just now.

    A refused write stands for a refused request for the lock as well (`tool` tells them apart), but not the other way
    round: a request must not hide a write.
    """
    others = (ASKED,) if tool in REQUESTS else REQUESTS
    row = tx.row(
        "SELECT denied_at FROM swarm_denials WHERE instance_id = ? AND path_key = ? AND holder_id = ?"
        f" AND (path IS NULL OR ? IN ('', path)) AND coalesce(tool, '') NOT IN ({','.join('?' * len(others))})",
        (instance.id, key_of_lock(lock), lock.instance_id, path, *others),
    )
    return row is not None and 0 <= tx.now() - row.denied_at < KNOWN_SECONDS


def count(instance: Session, lock: Lock | Waiter) -> None:
    """A refusal that `is_known` is no second event, but counts."""
    repeated_denials.note(instance.id, lock.instance_id, key_of_lock(lock))


def await_lock(tx: Transaction, instance: Session, lock: Lock) -> None:
    """Inside a transaction: `instance` has asked the holder of `lock` for it, and is told when it is free.

    Nothing was refused. An earlier refusal says more, and stays.
    """
    values = (instance.id, key_of_lock(lock), lock.instance_id)
    sql = "SELECT 1 FROM swarm_denials WHERE instance_id = ? AND path_key = ? AND holder_id = ?"
    if tx.row(sql, values) is None:
        wait(tx, instance, lock, Attempt(ASKED))


def wait(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> None:
    """Inside a transaction: have `instance` told once the file of `lock` is free."""
    tool = attempt.tool
    key, now = key_of_lock(lock), tx.now()
    tx.change(
        "INSERT OR REPLACE INTO swarm_denials"
        " (instance_id, path_key, scope, file, holder_id, tool, denied_at, path, times)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT times FROM swarm_denials WHERE instance_id = ? AND path_key = ?"
        " AND holder_id = ? AND denied_at >= ?))",
        (
            instance.id,
            key,
            instance.scope,
            lock.file,
            lock.instance_id,
            tool,
            now,
            attempt.path or None,
            *(instance.id, key, lock.instance_id, now - SECONDS),  # a storm goes on
        ),
    )


def forget(tx: Transaction, instance_id: str, keys: list[str] | None = None) -> None:
    """Inside a transaction: forget the refusals of this session for these files (None: for all)."""
    condition, values = "instance_id = ?", [instance_id]
    if keys is not None:
        condition += f" AND path_key IN ({','.join('?' * len(keys))})"
        values += keys
    tx.change(f"DELETE FROM swarm_denials WHERE {condition}", values)


def tell(tx: Transaction, locks: list[Lock], reason: str) -> None:
    """Inside a transaction that has just deleted `locks`: one message to each session they had kept out.

    Where a session is just taking the place of a dead holder (`taker`), the file is not free.
    `reason` as in the event of the release, empty for an ordinary one.
    """
    freed = []
    for lock in locks:
        for denial in tx.rows(
            "SELECT * FROM swarm_denials WHERE path_key = ? ORDER BY denied_at, instance_id",
            (key_of_lock(lock),),
            Denial,
        ):
            if denial.path_key in tx.taker[1]:
                _waits_for(tx, denial, tx.taker[0])
            elif denial.instance_id != lock.instance_id:
                freed.append((denial, lock.instance_id))
    _settle(tx, freed, reason)


def follow(tx: Transaction, key: str, holder_id: str) -> None:
    """Inside a transaction: the lock with this key has a new holder, without having been free."""
    tx.change("UPDATE swarm_denials SET holder_id = ?, times = NULL WHERE path_key = ?", (holder_id, key))


def are_due(tx: Transaction) -> bool:
    """Return True if `settle` has anything to do."""
    return bool(_silently_freed(tx, 1))


def files(tx: Transaction, instance_id: str, limit: int) -> list[str]:
    """Return files that this session was refused and has not heard of since."""
    rows = tx.rows("SELECT file FROM swarm_denials WHERE instance_id = ? LIMIT ?", (instance_id, limit))
    return [row.file for row in rows]


def settle(tx: Transaction, limit: int = 100) -> None:
    """Inside a transaction: tell sessions whose file is free, though no release was seen here."""
    _settle(tx, [(denial, denial.holder_id) for denial in _silently_freed(tx, limit)], "freed")


def settle_of(tx: Transaction, holder_id: str, reason: str) -> None:
    """Inside a transaction: do so for files that were denied for this session, and that it has no longer.

    `reason` as in `tell`.
    """
    theirs = tx.rows(f"SELECT * FROM swarm_denials d WHERE d.holder_id = ? AND {_FREE}", (holder_id,), Denial)
    _settle(tx, [(denial, holder_id) for denial in theirs], reason)


def settle_some(tx: Transaction, after: str, limit: int) -> str:
    """Inside a transaction: do so for the next `limit` refusals behind `after`, however many there are.

    Return the last one looked at, empty at the end.
    """
    chosen = f"SELECT rowid FROM swarm_denials WHERE rowid > ? ORDER BY rowid LIMIT {limit}"
    rows = tx.rows(chosen, (int(after or 0),))
    if rows:
        sql = f"SELECT * FROM swarm_denials d WHERE d.rowid IN ({chosen}) AND d.denied_at > ? AND {_FREE}"
        free = tx.rows(sql, (int(after or 0), tx.now() - KEPT_SECONDS), Denial)
        _settle(tx, [(denial, denial.holder_id) for denial in free], "freed")
    if len(rows) == limit:
        return str(rows[-1].rowid)
    return ""


def forget_old(tx: Transaction, limit: int) -> int:
    """Inside a transaction: forget refusals of a day ago, `limit` at most (-1: all); how many went."""
    chosen = f"SELECT rowid FROM swarm_denials WHERE denied_at < ? ORDER BY denied_at LIMIT {limit}"
    past = tx.now() - KEPT_SECONDS
    return tx.change(f"DELETE FROM swarm_denials WHERE rowid IN ({chosen})", (past,))


def _silently_freed(tx: Transaction, limit: int) -> list[Denial]:
    newest = "SELECT * FROM swarm_denials WHERE denied_at > ? ORDER BY denied_at DESC LIMIT ?"
    values = (tx.now() - KEPT_SECONDS, LOOKED_AT_ONCE, limit)
    return tx.rows(f"SELECT * FROM ({newest}) d WHERE {_FREE} LIMIT ?", values, Denial)


def _settle(tx: Transaction, freed: list[tuple[Denial, str]], reason: str) -> None:
    """Forget the denials of files that are free, each with the file's former holder, and tell the sessions."""
    of_pairs: dict[tuple[str, str], list[Denial]] = {}
    for denial, former_holder in freed:
        of_pairs.setdefault((denial.instance_id, former_holder), []).append(denial)
    for (instance_id, holder_id), denials in of_pairs.items():
        instance = session_table.live(tx, instance_id)
        free = [denial for denial in denials if _is_free(tx, denial, instance_id)]
        forget(tx, instance_id, [denial.path_key for denial in free])
        told = [denial for denial in free if not _waiting_for(tx, denial)]  # else by its own wait
        if instance and told:
            post(tx, instance, told, session_table.get(tx, holder_id), reason)


def _is_free(tx: Transaction, denial: Denial, instance_id: str) -> bool:
    """Return True if no other session holds the file, by any name, or waits for it; else that one is waited for."""
    held = lock_finder.on(tx, denial.file)
    theirs = [row for row in (*held, *_waiting_for(tx, denial)) if row.instance_id != instance_id]
    if theirs:
        _waits_for(tx, denial, theirs[0].instance_id)
    return not theirs


def _waiting_for(tx: Transaction, denial: Denial) -> list[Waiter]:
    if not tx.row("SELECT 1 FROM swarm_waiters LIMIT 1"):
        return []  # the common case
    row = {"file": denial.file, "path_key": denial.path_key, "pattern": None}
    reach = reach_in(row)
    if reach:
        places = lock_queue.waiting_for(tx, reach)
    else:
        places = []
    return [place for place in places if not lock_queue.is_silent(tx, place)]


def _waits_for(tx: Transaction, denial: Denial, holder_id: str) -> None:
    tx.change(
        "UPDATE swarm_denials SET holder_id = ?1, times = NULL"
        " WHERE instance_id = ?2 AND path_key = ?3 AND holder_id <> ?1",
        (holder_id, denial.instance_id, denial.path_key),
    )


def post(tx: Transaction, instance: Session, denials: list[Denial], holder: Session | None, reason: str) -> None:
    """Inside a transaction: tell `instance` that the files of these `denials` are free; `reason` as in `tell`."""
    if len(denials) == 1:
        it = "it"
    else:
        it = "them"
    if holder is None:
        who = f"the session that held {it}"
    elif may_meet(instance.label, holder.label):
        who = known_as(holder)
    else:
        who = "a session of another identity"
    how = _WAYS.get(reason, "{who} no longer holds {it}").format(who=who, it=it)
    if len(denials) == 1:
        (denial,) = denials
        since = duration(tx.now() - denial.denied_at)
        asked = f"You asked for it {since} ago."
        if denial.tool != ASKED:
            by = f" by {named(denial.tool)}" if denial.tool else ""
            asked = f"Your write{by} was refused {since} ago."
        text = f"[auto] {named(denial.file)} is free: {how}. {asked} {_ADVICE}"
    else:
        files = "\n".join(f"- {named(denial.file)}" for denial in denials)
        text = f"[auto] Files that you were refused are free: {how}.\n{files}\n{_ADVICE}"
    notices.post(tx, instance, text)


def key_of_lock(lock: Lock | Waiter) -> str:
    """Return what a lock's file is known by here: its key; the name itself for a mutex, which is no file."""
    if key := lock.get("path_key"):
        return str(key)
    if lock.file.startswith(MUTEX_PREFIX):
        return lock.file
    return key_of(lock.file)
