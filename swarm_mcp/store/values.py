"""Shared values: scope-wide, owned by the first identity that sets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from swarm_hook_core.environment import is_word
from swarm_hook_core.json_text import dumps, loads, quote
from swarm_hook_core.untrusted_text import token
from swarm_mcp.domain import KeyValue, Record, Session, length
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store import cursors, session_table
from swarm_mcp.store.database import Database, Transaction, range_end
from swarm_mcp.store.messages import without_walls

LONGEST_KEY, LONGEST_VALUE = 1024, 1 << 20  # bytes; a reader gets the whole value
ORPHAN_SECONDS = 3600  # a value outlives its session by that much
# Keys of a scope with a prefix, as a range of the index: no text of ours has the byte FF.
_BEGINS = "scope = ? AND key >= ? AND key < ? || CAST(x'ff' AS TEXT)"


class NotJson(SwarmError):
    """The text to add to a list is not JSON."""


def walk(
    tx: Transaction, scope: str, prefix: str = "", viewer: str | None = None, after: str = ""
) -> Iterator[tuple[str, KeyValue]]:
    """Yield ``{key, updated_at}`` of every key with this exact prefix that `viewer` may read, by key."""

    def read(behind: str, place: list[Any], number: int) -> list[KeyValue]:
        sql = f"SELECT key, updated_at, owner_identity FROM kv WHERE {_BEGINS} {behind} ORDER BY key LIMIT {number}"
        return tx.rows(sql, (scope, prefix, prefix, *place), KeyValue)

    for place, row in cursors.rows_after(after, (str,), "AND key > ?", read, lambda row: [row.key]):
        if _open_to(row, viewer):
            yield place, KeyValue(key=row.key, updated_at=row.updated_at)


def count(tx: Transaction, scope: str, viewer: str | None = None, prefix: str = "") -> int:
    """Return how many keys of a scope, with this exact prefix, `viewer` may read."""
    sql = f"SELECT owner_identity, count(*) AS n FROM kv WHERE {_BEGINS} GROUP BY owner_identity"
    rows = tx.rows(sql, (scope, prefix, prefix))
    return sum(row.n for row in rows if _open_to(row, viewer))


def get(tx: Transaction, scope: str, key: str, viewer: str | None = None) -> KeyValue | None:
    """Return ``{value, updated_at, owner_identity}``; None also if `viewer` may not read it."""
    row = tx.row("SELECT value, updated_at, owner_identity FROM kv WHERE scope = ? AND key = ?", (scope, key), KeyValue)
    if row and _open_to(row, viewer):
        return row
    return None


def put(db: Database, instance: Session, key: str, value: str) -> None:
    """Set a value. Raises Refused where another identity owns the key."""
    _require_key(key)
    _require_size(key, value)
    with db.writing() as tx:
        _owned(tx, instance, key)
        write(tx, instance, key, value)


def append(db: Database, instance: Session, key: str, value: str) -> int:
    """Add one JSON value to the list under `key`; return the list's new length.

    A value that is no list becomes its first item; text that is no JSON becomes a string. Numbers keep every digit they
    were written with. Raises NotJson, and Refused if another identity owns the key.
    """
    _require_key(key)
    try:
        item = compact_json(value)
    except ValueError as error:
        raise NotJson(f"Value must be valid JSON: {error}") from None
    with db.writing() as tx:
        row = _owned(tx, instance, key)
        text, length = appended_to(row and row.value, item)
        _require_size(key, text)
        _store(tx, instance.scope, key, text, identity_of(instance))
        payload = f'{{"appended": {item}, "length": {length}}}'
        tx.add_event(instance.scope, "kv.appended", instance.id, key, payload)
    return length


def delete(db: Database, instance: Session, key: str) -> bool:
    """Remove a key; return True if it was there. Raises Refused if another identity owns it."""
    with db.writing() as tx:
        row = _owned(tx, instance, key)
        if row:
            _delete(tx, instance.scope, key, row.value, instance.id)
    return row is not None


def write(tx: Transaction, instance: Session, key: str, value: str) -> None:
    """Inside a transaction: set a value for a session, with its event."""
    _store(tx, instance.scope, key, value, identity_of(instance))
    _set_event(tx, instance.scope, key, value, instance.id)


def declare(tx: Transaction, scope: str, key: str, value: str) -> None:
    """Inside a transaction: set a value without an owner, with its event."""
    _store(tx, scope, key, value, None)
    tx.change("UPDATE kv SET owner_identity = NULL WHERE scope = ? AND key = ?", (scope, key))
    _set_event(tx, scope, key, value, None)


def withdraw(tx: Transaction, scope: str, key: str) -> None:
    """Inside a transaction: remove a key of any owner, with its event."""
    row = get(tx, scope, key)
    if row:
        _delete(tx, scope, key, row.value, None)


def erase(tx: Transaction, key: str) -> None:
    """Inside a transaction: remove a key of any owner from every scope."""
    for row in tx.rows("SELECT scope FROM kv WHERE key = ?", (key,)):
        tx.change("DELETE FROM kv WHERE scope = ? AND key = ?", (row.scope, key))
        touch(tx, row.scope)


def touch(tx: Transaction, scope: str) -> None:
    """Inside a transaction: note that something in a scope has changed, for waiting sessions."""
    tx.change(
        "INSERT INTO kv_scope_updates (scope, changed_at) VALUES (?, ?)"
        " ON CONFLICT (scope) DO UPDATE SET changed_at = max(excluded.changed_at, changed_at + 1)",
        (scope, tx.now_ms()),
    )


def orphans(tx: Transaction, prefix: str, after: str, limit: int, scope: str | None) -> tuple[list[KeyValue], str]:
    """Return values under `prefix` of sessions that are not registered in their scope: ``[{scope, key}]``.

    Of the next `limit` keys behind `after`; with the last one looked at, empty at the end.
    """
    condition, values = ("AND scope = ?", [scope]) if scope is not None else ("", [])
    rows = tx.rows(
        "SELECT scope, key, updated_at, EXISTS (SELECT 1 FROM instances i WHERE i.scope = kv.scope"
        f" AND i.id = substr(kv.key, {len(prefix) + 1})) AS known FROM kv"
        f" WHERE key >= ? AND key < ? AND key > ? AND key <> 'plan/latest' {condition} ORDER BY key LIMIT {limit}",
        (prefix, range_end(prefix), after, *values),
        KeyValue,
    )
    old = tx.now() - ORPHAN_SECONDS
    found = [row for row in rows if not row.known and row.updated_at < old]
    return found, str(rows[-1].key) if len(rows) == limit else ""


def remove_orphans(tx: Transaction, rows: list[KeyValue], mode: str) -> list[str]:
    """Inside a transaction: delete the values that `orphans` found; return ``scope:key`` of each. `mode` is for the
    event.
    """
    removed: dict[str, list[str]] = {}
    for row in rows:
        tx.change("DELETE FROM kv WHERE scope = ? AND key = ?", (row.scope, row.key))
        removed.setdefault(row.scope, []).append(row.key)
    for scope, keys in removed.items():
        touch(tx, scope)
        payload = {"count": len(keys), "mode": mode, "keys": keys, "ttl_secs": ORPHAN_SECONDS}
        tx.add_event(scope, "cleanup.kv_deleted", "system", None, payload)
    return [f"{scope}:{key}" for scope, keys in removed.items() for key in keys]


def _owned(tx: Transaction, instance: Session, key: str) -> KeyValue | None:
    """Return the value under `key`. Raises Refused if this session may not change it."""
    row = get(tx, instance.scope, key)
    if row and not _open_to(row, identity_of(instance) or ""):
        raise Refused("KV key is owned by another identity")
    return row


def _store(tx: Transaction, scope: str, key: str, value: str, owner: str | None) -> None:
    tx.change(
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,"
        " owner_identity = coalesce(owner_identity, excluded.owner_identity)",
        (scope, key, value, owner, tx.now()),
    )
    touch(tx, scope)


def _delete(tx: Transaction, scope: str, key: str, value: str, actor: str | None) -> None:
    tx.change("DELETE FROM kv WHERE scope = ? AND key = ?", (scope, key))
    touch(tx, scope)
    payload = {"prior_value": value, "prior_length": length(value)}
    tx.add_event(scope, "kv.deleted", actor, key, payload)


def _set_event(tx: Transaction, scope: str, key: str, value: str, actor: str | None) -> None:
    tx.add_event(scope, "kv.set", actor, key, {"value": value, "length": length(value)})


def identity_of(instance: Session) -> str | None:
    """Return the owner that keys of this session get: ``identity:NAME``, or None."""
    name = token(instance.label or "", "identity")
    if name:
        return f"identity:{name}"
    return None


def _require_key(key: str) -> None:
    if not key.strip():
        raise SwarmError("a key needs a name")
    if size_of(key) > LONGEST_KEY:
        raise SwarmError(f"a key has at most {LONGEST_KEY} bytes, not {size_of(key)}")


def _require_size(key: str, value: str) -> None:
    if size_of(value) > LONGEST_VALUE:
        raise SwarmError(
            f"a value has at most {LONGEST_VALUE} bytes, and that of {key[:100]!r} would have {size_of(value)}:"
            " put it into a file and name that, or begin another key"
        )


def size_of(text: str) -> int:
    """Return the bytes of a text as it is stored."""
    return len(text.encode("utf-8", "surrogatepass"))


def _open_to(row: Record, viewer: str | None) -> bool:
    return viewer is None or row.owner_identity in (None, viewer) or without_walls()


# ------------------------------------------------------------- lists kept as JSON text
#
# A number read and written again changes: ``1.50`` loses a digit, ``1e400`` becomes infinite, and a program with
# 64-bit floats rounds large ids. So texts are checked and joined, never rebuilt.


def compact_json(text: str) -> str:
    """Return one JSON document without the blanks between its parts. Raises ValueError if `text` is no JSON."""
    import re

    _read(text)
    blanks = r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+'
    return re.sub(blanks, lambda found: found[1] or "", text)


def appended_to(kept: object, item: str) -> tuple[str, int]:
    """Return the list under a key with `item` (compact JSON) added, and its length.

    `kept` is the present value: a list, other JSON or plain text, which becomes the first item; or None.
    """
    if kept is None:
        return f"[{item}]", 1
    if isinstance(kept, str):
        text = kept
    else:
        text = str(kept)
    try:
        value = _read(text)
    except ValueError:  # plain text becomes the first item
        return f"[{_quoted(text)},{item}]", 2
    if not isinstance(value, list):
        return f"[{compact_json(text)},{item}]", 2
    inner = compact_json(text)[1:-1]
    return (f"[{inner},{item}]" if inner else f"[{item}]"), len(value) + 1


def appended_since(before: str | None, now: str) -> list[str]:
    """Return the items (compact JSON) that `appended_to` has added to `before` since; empty if it is another list."""
    first, items = items_of(before), items_of(now)
    if len(items) > len(first) and items[: len(first)] == first:
        return items[len(first) :]
    return []


def is_list(kept: str) -> bool:
    """Return True if a value is a list."""
    try:
        return isinstance(_read(kept), list)
    except ValueError:  # plain text
        return False


def joined(items: list[str]) -> str:
    """Return the list of these items as it is kept under a key."""
    return f"[{','.join(items)}]"


def items_of(kept: str | None) -> list[str]:
    """Return the items (compact JSON) of the list that a value is, or becomes when it is appended to."""
    from json import JSONDecoder

    if kept is None:
        return []
    try:
        value, text = _read(kept), compact_json(kept)
    except ValueError:  # plain text is one item
        return [_quoted(kept)]
    if not isinstance(value, list):
        return [text]
    decoder, found, place = JSONDecoder(parse_int=str, parse_float=str), [], 1
    while place < len(text) - 1:
        _, end = decoder.raw_decode(text, place)
        found.append(text[place:end])
        place = end + 1
    return found


def _read(text: str) -> object:
    import json

    try:
        # Digits are kept as text: an interpreter refuses whole numbers of more than 4300.
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _quoted(text: str) -> str:
    import json

    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)  # bytes that are no UTF-8, as another program stored them
    return json.dumps(text, ensure_ascii=False)


# Shared values that the store itself understands: the owner of a scope's plan, and the work tracker.
#
# ``owner/planner`` names the session that plans a scope: one at a time. ``config/work_tracker/<identity>`` (else
# ``/default``) names the work tracker, ``tracker/<provider>/<identity>/<task>`` a task's entry in it.

PLANNER_KEY = "owner/planner"
PLANNER_WORD = "role:planner"
TRACKER_KEY = "config/work_tracker/"
DEFAULT_TRACKER = "default"
# The name of a tracker's entry: only an explicit one, ``linear:ABC-1``, or the address of an issue on linear.app. A
# word with a dash and digits does not count; titles are full of UTF-8, SHA-256, ISO-8601 and GPT-4.
_ENTRY_KEY = r"[A-Za-z][A-Za-z0-9]*-[0-9]+"
_ENTRY = rf"(?<![\w.-])(?:linear:|(?:https?://)?(?:www\.)?linear\.app/[^\s/]+/issue/)({_ENTRY_KEY})(?![\w-])"


def plan_owner(tx: Transaction, scope: str) -> dict[str, Any] | None:
    """Return the plan's value; None if its owner has gone or plans no more, or there never was one."""
    value, before = _recorded(tx, scope), None
    while value and value != before:  # a session that has left just now has also handed the plan over
        row = session_table.live(tx, value["instance_id"])
        if row and row.scope == scope and plans(row.label):
            return value
        value, before = _recorded(tx, scope), value
    return None


def settle_plan(tx: Transaction, row: Session, before: Session | None = None) -> None:
    """Inside a transaction: a session joined or was renewed as `row`; `before` is its row until then.

    A planner takes a plan without an owner. A session that has stopped planning here leaves its plan to the next.
    """
    if before and plans(before.label) and (before.scope != row.scope or not plans(row.label)):
        leave_plan(tx, before)
    if plans(row.label) and not plan_owner(tx, row.scope):
        _assign(tx, row)


def leave_plan(tx: Transaction, row: Session) -> None:
    """Inside a transaction: session `row` has left its scope; where it owned the plan, the eldest planner does now.

    With no planner left, the key goes.
    """
    scope = row.scope
    value = _recorded(tx, scope)
    if not value or value["instance_id"] != row.id:
        return
    others = [peer for peer in session_table.in_scope(tx, scope) if peer.id != row.id]
    planners = [peer for peer in others if plans(peer.label)]
    if planners:
        _assign(tx, min(planners, key=lambda peer: (peer.registered_at, peer.id)))
    else:
        withdraw(tx, scope, PLANNER_KEY)


def _assign(tx: Transaction, row: Session) -> None:
    who = f'"instance_id":{quote(row.id)},"label":{quote(row.label or "")}'
    declare(tx, row.scope, PLANNER_KEY, f'{{{who},"assigned_at":{tx.now_ms()}}}')


def _recorded(tx: Transaction, scope: str) -> dict[str, Any] | None:
    row = tx.row("SELECT value FROM kv WHERE scope = ? AND key = ?", (scope, PLANNER_KEY))
    try:
        if row:
            value = loads(row.value)
        else:
            value = None
    except (ValueError, TypeError, RecursionError):  # another program's value: no owner
        return None
    if isinstance(value, dict) and isinstance(value.get("instance_id"), str):
        return value
    return None


def tracker_of(tx: Transaction, instance: Session) -> dict[str, Any] | None:
    """Return the tracker for this session's work, ``{key, value, updated_at}``, or None.

    `value` is the parsed JSON, or the text itself if it is not JSON. An identity may read its tracker whoever owns the
    key: it is configuration, not a secret.
    """
    identity = token(instance.label or "", "identity")
    for name in (identity, DEFAULT_TRACKER):
        if name:
            row = get(tx, instance.scope, TRACKER_KEY + name)
        else:
            row = None
        if row:
            return {"key": TRACKER_KEY + name, "value": _parsed(row.value), "updated_at": row.updated_at}
    return None


def link_entry(
    db: Database, instance: Session, provider: str, task_id: str, identifier: str, url: str = ""
) -> dict[str, Any]:
    """Note that a task is entry `identifier` of the tracker; return the stored value.

    ``{identifier, [url], linked_at}``, `linked_at` in ms. Raises SwarmError for a session without an identity: the
    tracker belongs to an identity.
    """
    entry: dict[str, Any] = {"identifier": identifier}
    if url:
        entry["url"] = url
    entry["linked_at"] = db.now_ms()
    put(db, instance, _entry_key(instance, provider, task_id), dumps(entry))
    return entry


def entry_of(tx: Transaction, instance: Session, provider: str, task_id: str) -> dict[str, Any] | None:
    """Return the value that `link_entry` has stored for a task, or None."""
    if not token(instance.label or "", "identity") or not is_word(provider):
        return None
    row = get(tx, instance.scope, _entry_key(instance, provider, task_id))
    if row:
        value = _parsed(row.value)
    else:
        value = None
    if isinstance(value, dict) and isinstance(value.get("identifier"), str):
        return value
    return None


def _entry_key(instance: Session, provider: str, task_id: str) -> str:
    identity = token(instance.label or "", "identity")
    if not identity:
        raise SwarmError("a session without an identity has no tracker to link a task to")
    if not is_word(provider):
        raise SwarmError(f"{provider[:40]!r} is not the name of a tracker (letters, digits, _ . -)")
    return f"tracker/{provider}/{identity}/{task_id}"


def plans(label: str | None) -> bool:
    """Return True if a label marks its session as a planner."""
    return PLANNER_WORD in (label or "").split()


def names_entry(text: str | None) -> bool:
    """Return True if `text` names an entry."""
    return bool(entry_in(text))


def entry_in(text: str | None) -> str:
    """Return the first entry that `text` names, such as ``ABC-1``; else an empty text."""
    # Most texts are told apart by this alone, and `re` costs commands a few milliseconds.
    if not text or "linear" not in text.lower():
        return ""
    import re

    found = re.search(_ENTRY, text, re.IGNORECASE)
    if found:
        return found[1].upper()
    return ""


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):  # plain text, and no JSON
        return text
