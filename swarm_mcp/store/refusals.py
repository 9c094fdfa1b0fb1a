"""Refusals: their record, the sessions that were kept from a file, and the words to them."""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.coordinator import LONGEST_WORDS, MOST_ALSO
from swarm_hook_core.denial import MANY, PERSON, STORM_SECONDS, add_count
from swarm_hook_core.lookup import ASKED, REQUESTS, plain
from swarm_hook_core.lookup.sqlite import SPELLED
from swarm_hook_core.paths import key_of
from swarm_hook_core.untrusted_text import as_word, named, quoted, token
from swarm_hook_core.wording import duration
from swarm_mcp.domain import MUTEX_PREFIX, Denial, Lock, Session, Waiter
from swarm_mcp.store import lock_finder, lock_listing, messages, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.lock_request import LockRequest, reach_in, rule
from swarm_mcp.store.messages import known_as, may_meet

TYPE_CHECKING = False


# Refused requests and writes, as they are noted. A lock that is granted loads nothing of this.

if TYPE_CHECKING:
    from swarm_hook_core import denial as denied

MOST_NAMED = 20  # of the files of one request, in the record of its refusal


class Attempt(NamedTuple):
    """A write, or a request for locks, that was refused; or a write that went ahead with a notice.

    tool    the tool of the write or the request
    path    the absolute path as it would have been written, empty for not known
    cwd     the folder of the call
    agent   the subagent that tried, empty for the session itself
    fence   of the lock that the hook saw in the way, None for not known
    mode    the kind of lock that was asked for, empty for a write
    wanted  the files of a request for several
    times   how many refused writes of `path` there were lately with this one, 0 for not known

    Of all but a lock in the way (``denial.Loss``):

    why         the kind of the obstacle, empty for a lock
    is_notice   True if the write went ahead, and its model was told
    deed        the effect of the call on it, as a verb
    command     the part of the command with that effect
    changed_at  Unix seconds: when the other session wrote, 0 for not known
    also        paths of more files that the call was refused for
    said        the words that the model was told
    """

    tool: str
    path: str = ""
    cwd: str = ""
    agent: str = ""
    fence: int | None = None
    mode: str = ""
    wanted: tuple[str, ...] = ()
    times: int = 0
    why: str = ""
    deed: str = ""
    command: str = ""
    changed_at: int = 0
    also: tuple[str, ...] = ()
    said: str = ""
    is_notice: bool = False


def of_denial(denial: denied.Denial, tool: str, cwd: str) -> Attempt:
    """Return the attempt that a check has refused, by `tool` in the folder `cwd`."""
    held, loss = denial.held, denial.loss
    if loss is None:
        if held is not None and isinstance(held.fence, int):
            fence = held.fence
        else:
            fence = None
        return Attempt(tool, denial.path, cwd, fence=fence, times=denial.times)
    told: dict[str, Any] = {
        "why": loss.why,
        "deed": loss.deed,
        "command": loss.by[:LONGEST_WORDS],
        "changed_at": loss.at,
    }
    said = denial.reason.partition("\n")[0][:LONGEST_WORDS]
    also = tuple(loss.also[:MOST_ALSO])
    return Attempt(tool, denial.path, cwd, times=denial.times, also=also, said=said, **told)


def of_request(instance: Session, wanted: LockRequest) -> Attempt:
    """Return the attempt of a session that asked for locks."""
    files = tuple(reach.file for reach in wanted.reaches)
    if len(files) > 1:
        more = files[:MOST_NAMED]
    else:
        more = ()
    return Attempt(wanted.tool, files[0], instance.directory, wanted.agent, None, wanted.mode, more)


# Denials: sessions that were kept from a file, and the word to them once it is free.
#
# A row stands from the refusal until the file is free (then its session gets one message), until the session itself
# gets the lock, or until the session ends. A file with waiters in line (``lock_listing``) is not free: the word comes
# when the file has no holder and no waiter.

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

    A write by another tool is another refusal. A refused write stands for a refused request for the lock as well
    (`tool` tells them apart), but not the other way round: a request must not hide a write.
    """
    others = (ASKED,) if tool in REQUESTS else REQUESTS
    row = tx.row(
        "SELECT denied_at FROM swarm_denials WHERE instance_id = ? AND path_key = ? AND holder_id = ?"
        f" AND (path IS NULL OR ? IN ('', path)) AND coalesce(tool, '') NOT IN ({','.join('?' * len(others))})"
        " AND (? OR coalesce(tool, '') IN ('', ?))",
        (instance.id, key_of_lock(lock), lock.instance_id, path, *others, tool in REQUESTS, tool),
    )
    return row is not None and 0 <= tx.now() - row.denied_at < KNOWN_SECONDS


def count(instance: Session, lock: Lock | Waiter) -> None:
    """A refusal that `is_known` is no second event, but counts."""
    add_count(instance.id, lock.instance_id, key_of_lock(lock))


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
            *(instance.id, key, lock.instance_id, now - STORM_SECONDS),  # a storm goes on
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
        places = lock_listing.waiting_for(tx, reach)
    else:
        places = []
    return [place for place in places if not lock_listing.is_silent(tx, place)]


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
        text = f"[auto] {named(plain(denial.file))} is free: {how}. {asked} {_ADVICE}"
    else:
        files = "\n".join(f"- {named(plain(denial.file))}" for denial in denials)
        text = f"[auto] Files that you were refused are free: {how}.\n{files}\n{_ADVICE}"
    messages.post_notice(tx, instance, text)


def key_of_lock(lock: Lock | Waiter) -> str:
    """Return what a lock's file is known by here: its key; the name itself for a mutex, which is no file."""
    if key := lock.get("path_key"):
        return str(key)
    if lock.file.startswith(MUTEX_PREFIX):
        return lock.file
    return key_of(lock.file)


WRITE_DENIED = "context.write_denied"  # the event of a refusal for another reason than a lock
WRITE_NOTICED = "context.write_noticed"  # of a write that went ahead, with words for its model


def record(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> None:
    """Inside a transaction: write down that `instance` was kept from the file of `lock`."""
    wait(tx, instance, lock, attempt)
    _say(tx, instance, lock, attempt)


def report(db: Database, instance: Session, file: str, holder_id: str, attempt: Attempt) -> bool:
    """Write down a refusal that happened elsewhere: absolute `file`, held by `holder_id`.

    Return True if the file is still held; else the session is told at once that it is free. Of a refusal without a lock
    (``Attempt.why``), `holder_id` is the session with the uncommitted work; it is only an event.
    """
    if attempt.why:
        with db.writing() as tx:
            _note(tx, instance, instance.scope, file, holder_id, attempt)
        return False
    with db.writing() as tx:
        held = lock_finder.on(tx, file)
        held.sort(key=lambda lock: (lock.instance_id != holder_id, lock.fence != attempt.fence))
        theirs = [lock for lock in held if lock.instance_id != instance.id]
        if holder_id == instance.id:
            report_sibling(tx, instance, [lock for lock in held if lock.agent], attempt)
        elif theirs:
            if not is_known(tx, instance, theirs[0], attempt.path, attempt.tool):
                record(tx, instance, theirs[0], attempt)
            elif attempt.times < MANY:  # a hook that tells of a storm has counted the call itself
                count(instance, theirs[0])

            note_storm(tx, instance, theirs[0], key_of_lock(theirs[0]), attempt)
        else:
            # Inside a transaction: record a refusal whose lock has gone by now
            holder, path = session_table.get(tx, holder_id), attempt.path or file
            payload: dict[str, Any] = {
                "holder": holder_id,
                "holder_label": holder and holder.label,
                "key": key_of(file),
            }
            payload.update(tool=attempt.tool, path=path, path_key=key_of(path), cwd=attempt.cwd, fence=attempt.fence)
            payload.update(denied_agent=attempt.agent, rule="file" if path == file else "", **_client_of(tx, instance))
            told = {name: value for name, value in payload.items() if value}
            tx.add_event(instance.scope, "context.lock_denied", instance.id, file, told)
            denial = Denial(file=file, tool=attempt.tool, denied_at=tx.now(), holder_id=holder_id)
            post(tx, instance, [denial], session_table.get(tx, holder_id), "freed")
    return bool(theirs)


def report_sibling(tx: Transaction, instance: Session, held: list[Lock | Waiter], attempt: Attempt) -> None:
    """Inside a transaction: record that one of the session's agents was refused a file of another of its agents.

    It is for the record alone: a message to the session would reach all of its agents.
    """
    others = [lock for lock in held if (lock.instance_id, lock.agent) != (instance.id, attempt.agent)]
    if not others:
        return
    same = tx.row(
        "SELECT 1 FROM events WHERE created_at > ? AND type = 'context.lock_denied' AND actor = ? AND subject = ?",
        (tx.now() - KNOWN_SECONDS, instance.id, others[0].file),
    )
    count(instance, others[0]) if same else _say(tx, instance, others[0], attempt)


def note(
    db: Database, instance: Session | None, scope: str, file: str, holder_id: str, attempt: Attempt
) -> None:  # fmt: skip
    """Write down a refusal or notice that leaves no session waiting. Arguments as of `report`.

    Without an `instance` it was a person.
    """
    with db.writing() as tx:
        _note(tx, instance, scope, file, holder_id, attempt)


def _note(
    tx: Transaction, instance: Session | None, scope: str, file: str, holder_id: str, attempt: Attempt
) -> None:  # fmt: skip
    """Inside a transaction: record a refused write, or one with a notice, that met something of `holder_id`.

    An empty `holder_id` stands for a person, or for no owner (``Attempt.why``). The same file denied to the same tool
    and command is recorded once in ``denials.KNOWN_SECONDS``; a notice about a file is, whatever the command.
    """
    kind, actor = WRITE_DENIED, None
    if attempt.is_notice:
        kind = WRITE_NOTICED
    if instance is not None:
        actor = instance.id
    same = tx.row(
        "SELECT 1 FROM events WHERE created_at > ? AND type = ? AND actor IS ? AND subject = ?"
        " AND coalesce(json_extract(payload, '$.holder'), '') = ? AND json_extract(payload, '$.reason') = ?"
        " AND (? OR (coalesce(json_extract(payload, '$.tool'), '') = ?"
        " AND coalesce(json_extract(payload, '$.command'), '') = ?))",
        (
            *(tx.now() - KNOWN_SECONDS, kind, actor, file, holder_id, attempt.why),
            *(attempt.is_notice, attempt.tool, attempt.command),
        ),
    )
    if same:
        return  # the hook that denied it has counted it
    owner, key = None, key_of(file)
    if holder_id:
        owner = session_table.get(tx, holder_id)
    payload: dict[str, Any] = {
        "holder": holder_id,
        "holder_label": owner and owner.label,
        "key": key,
        "tool": attempt.tool,
    }
    payload.update(path=file, path_key=key, cwd=attempt.cwd, denied_agent=attempt.agent, reason=attempt.why)
    payload.update(deed=attempt.deed, command=attempt.command, changed_at=attempt.changed_at)
    payload.update(also=list(attempt.also), said=attempt.said)
    if instance is not None:
        payload.update(_client_of(tx, instance))
    told = {name: value for name, value in payload.items() if value}
    tx.add_event(scope, kind, actor, file, told)


def _say(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> None:
    payload: dict[str, Any] = {"holder": lock.instance_id, "holder_label": lock.owner_label}
    payload.update(key=key_of_lock(lock), tool=attempt.tool, lock=lock.id)
    payload.update(note=lock.content, locked_at=lock.created_at)
    payload.update(_facts(tx, instance, lock, attempt))
    tx.add_event(instance.scope, "context.lock_denied", instance.id, lock.file, payload)


def _facts(tx: Transaction, instance: Session, lock: Lock | Waiter, attempt: Attempt) -> dict[str, Any]:
    """Return the words of the event beyond its holder: ``{path, rule, session, cwd, ...}``; nothing that is not known.

    `lock` may also be a waiter that goes first.
    """
    path = attempt.path or lock.file
    told: dict[str, Any] = {"path": path, "path_key": key_of(path), "rule": rule(lock, path), "cwd": attempt.cwd}
    told.update(fence=lock.get("fence"), mode=lock.get("mode"), agent=lock.get("agent"), ttl=lock.get("ttl"))
    told.update(pattern=lock.get("pattern"), base=lock.get("base"), repository=lock.get("repository"))
    told.update(ticket=lock.get("ticket"), seen_fence=attempt.fence)
    told.update(denied_agent=attempt.agent, wanted_mode=attempt.mode, wanted=list(attempt.wanted))
    told.update(_client_of(tx, instance))
    if attempt.fence == lock.get("fence"):
        told["seen_fence"] = None
    return {name: value for name, value in told.items() if value}


def _client_of(tx: Transaction, instance: Session) -> dict[str, Any]:
    """Return ``{session: [runtime, id]}``: what the session's client calls it. Nothing where no client has it."""
    found = tx.row("SELECT runtime, session_id FROM swarm_sessions WHERE instance_id = ?", (instance.id,))
    if found:
        return {"session": [found.runtime, found.session_id]}
    return {}


# Storms: a session that tries a denied file again and again, and the word about it.
#
# Hooks count (``swarm_hook_core.denial``); this module tells the holder, and later a person, once in a storm.
# A storm is over when the file is free, has another holder, or has not been tried for some minutes.

SHOWN_SECONDS = 3600  # after its last refusal a storm is shown no longer


def note_storm(tx: Transaction, instance: Session, lock: Lock, key: str, attempt: Attempt) -> None:
    """Inside a transaction: `instance`, refused under `key`, tries again and again a file that `lock` holds.

    The lock's holder is told, and after more tries the leads of the session's identity: each once in a storm.
    """
    if attempt.times < MANY:
        return
    values = (instance.id, key)
    row = tx.row("SELECT times FROM swarm_denials WHERE instance_id = ? AND path_key = ?", values)
    before = (row and row.times) or 0
    if row is None or attempt.times <= before:
        return
    sql = "UPDATE swarm_denials SET times = ? WHERE instance_id = ? AND path_key = ?"
    tx.change(sql, (attempt.times, *values))
    holder = session_table.live(tx, lock.instance_id)
    if holder and before < MANY:
        _tell_holder(tx, instance, holder, lock, attempt)
    if before < PERSON <= attempt.times:
        _tell_person(tx, instance, holder, lock, attempt)


def known(tx: Transaction, scope: str, limit: int, least: int = PERSON) -> list[Denial]:
    """Return refusals in a scope that a person should know of, the last one first, with both sessions' labels.

    `least`: so often the session was refused the file.
    """
    return tx.rows(
        "SELECT d.*, i.label, h.label AS holder_label FROM swarm_denials d JOIN instances i ON i.id = d.instance_id"
        " LEFT JOIN instances h ON h.id = d.holder_id"
        " WHERE d.denied_at > ? AND d.times >= ? AND d.scope = ? ORDER BY d.denied_at DESC LIMIT ?",
        (tx.now() - SHOWN_SECONDS, least, scope, limit),
        Denial,
    )


def _tell_holder(tx: Transaction, instance: Session, holder: Session, lock: Lock, attempt: Attempt) -> None:
    file = plain(lock.file)
    met = may_meet(instance.label, holder.label)
    if met:
        who = known_as(instance)
    else:
        who = "a session of another identity"
    if attempt.path in ("", file):
        through = ""
    else:
        through = f", which your lock on {named(file)} covers"
    hand = f" or hand it over (`swarm-mcp transfer {as_word(file)} --to {instance.id}`, or transfer_lock)"
    if met:
        tell = "; if not, tell that session until when you need it."
    else:
        tell = "."
    messages.post_notice(
        tx,
        holder,
        f"[auto] {who} was refused {named(attempt.path or file)}{through} {_often(attempt)}, and waits for it. When"
        f" you can spare it, release it (unlock_file){hand if met else ''}{tell}",
    )


def _tell_person(tx: Transaction, instance: Session, holder: Session | None, lock: Lock, attempt: Attempt) -> None:
    file, identity = plain(lock.file), token(instance.label or "", "identity")
    if holder and may_meet(f"identity:{identity}", holder.label):
        if lock.content.strip():
            why = f", note {quoted(lock.content)}"
        else:
            why = ""
        held = f"by {known_as(holder)}{why}"
    else:
        if holder:
            held = "by a session of another identity"
        else:
            held = "by a session that has gone"
    if lock.created_at:
        since = f" since {duration(tx.now() - lock.created_at)} ago"
    else:
        since = ""
    for lead in session_table.in_scope(tx, instance.scope):
        words = (lead.label or "").split()
        if lead.id == instance.id or "mode:gateway" not in words or token(lead.label or "", "identity") != identity:
            continue
        messages.post_notice(
            tx,
            lead,
            f"[auto] For the person you work for: {known_as(instance)} was refused {named(attempt.path or file)}"
            f" {_often(attempt)}, and goes on trying. It is held {held}{since}. Unless one of the two gives way, a"
            f" person has to say who goes first: `swarm-mcp why {as_word(attempt.path or file)}` shows it all, and"
            f" `swarm-mcp steal {as_word(file)} --force --reason TEXT` at a terminal takes the lock away.",
        )


def _often(attempt: Attempt) -> str:
    return f"{attempt.times} times within {duration(STORM_SECONDS)}"
