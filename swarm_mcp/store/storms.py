"""Storms: a session that tries a denied file again and again, and the word about it.

Hooks count (``swarm_hook_core.storms``); this module tells the holder, and later a person, once in a storm. A storm is
over when the file is free, has another holder, or has not been tried for some minutes.
"""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.lookup import plain
from swarm_hook_core.storms import MANY, PERSON, SECONDS
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.watching.report import quoted as as_word
from swarm_hook_core.wording import duration
from swarm_mcp.domain.lock import Denial, Lock
from swarm_mcp.domain.session import Session
from swarm_mcp.store import notices, session_table
from swarm_mcp.store.naming import known_as, may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.attempts import Attempt
    from swarm_mcp.store.database import Transaction

SHOWN_SECONDS = 3600  # after its last refusal a storm is shown no longer


def note(tx: Transaction, instance: Session, lock: Lock, key: str, attempt: Attempt) -> None:
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
    notices.post(
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
        notices.post(
            tx,
            lead,
            f"[auto] For the person you work for: {known_as(instance)} was refused {named(attempt.path or file)}"
            f" {_often(attempt)}, and goes on trying. It is held {held}{since}. Unless one of the two gives way, a"
            f" person has to say who goes first: `swarm-mcp why {as_word(attempt.path or file)}` shows it all, and"
            f" `swarm-mcp steal {as_word(file)} --force --reason TEXT` at a terminal takes the lock away.",
        )


def _often(attempt: Attempt) -> str:
    return f"{attempt.times} times within {duration(SECONDS)}"
