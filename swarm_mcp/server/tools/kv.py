"""Tools about shared values: look up, set, add to a list, remove."""

from __future__ import annotations

from typing import Any

from swarm_mcp.server.tool import AFTER, LIMIT, Answer, Call, Tool, listed, text
from swarm_mcp.store.values import NotJson, identity_of

KEY = text("The key. Slashes group keys: `plan/latest`, `progress/<instance id>`.")


def _get(call: Call, arguments: dict[str, Any]) -> Answer:
    row, key = call.member(), arguments["key"]
    found = call.store.kv.get(row.scope, key, identity_of(row) or "")
    if found:
        return Answer(found, whole=True)
    return Answer(text=f'Key "{key}" not found')


def _set(call: Call, arguments: dict[str, Any]) -> Answer:
    row, key = call.member(), arguments["key"]
    call.store.kv.put(row, key, arguments["value"])
    return Answer(text=f'Set "{key}"')


def _append(call: Call, arguments: dict[str, Any]) -> Answer:
    row, key = call.member(), arguments["key"]
    try:
        length = call.store.kv.append(row, key, arguments["value"])
    except NotJson as error:
        return Answer(text=str(error))
    return Answer(text=f'Appended to "{key}" ({length} items)')


def _delete(call: Call, arguments: dict[str, Any]) -> Answer:
    row, key = call.member(), arguments["key"]
    there = call.store.kv.delete(row, key)
    return Answer(text=f'Deleted "{key}"' + ("" if there else "; it was not there"))


def _list(call: Call, arguments: dict[str, Any]) -> Answer:
    row, kv = call.member(), call.store.kv
    prefix, viewer = arguments.get("prefix", ""), identity_of(row) or ""
    rows = kv.walk(row.scope, prefix, viewer, arguments.get("after", ""))
    return listed(rows, dict, lambda: kv.count(row.scope, viewer, prefix), arguments)


TOOLS = (
    Tool(
        "kv_get",
        "Read one shared value of this scope: a plan, a setting, a peer's result. The answer has `value` (text, often"
        " JSON), the time of the last change and the owning identity. A missing key, or a key of another identity, is"
        " reported as not found.",
        {"key": KEY},
        _get,
        required=("key",),
        reads=True,
    ),
    Tool(
        "kv_set",
        "Publish a value under a key for every session of this scope, replacing an earlier one. For state that others"
        " look up (a plan, a port number, a decision); to tell one peer something, use send_message. The key belongs to"
        " the identity that first sets it; for others the answer has `error`.",
        {"key": KEY, "value": text("The value. Use JSON for anything with parts.")},
        _set,
        required=("key", "value"),
        idempotent=True,
    ),
    Tool(
        "kv_append",
        "Add one item to the list under a key, in one step, so that sessions adding at the same time lose nothing."
        " Use it, not kv_get and kv_set, for logs and collections. A missing key becomes a list of this item; a value"
        " that is no list becomes its first item.",
        {"key": KEY, "value": text('The item as JSON, such as `{"file": "a.py"}`, `"text"` with its quotes, or `3`.')},
        _append,
        required=("key", "value"),
        is_listed=False,
    ),
    Tool(
        "kv_delete",
        "Remove a key and its value for every session of this scope. A key of another identity stays, and the answer"
        " has `error`.",
        {"key": KEY},
        _delete,
        required=("key",),
        idempotent=True,
        destructive=True,
        is_listed=False,
    ),
    Tool(
        "kv_list",
        "The keys there are in this scope, with the time of their last change and without their values. `prefix` is"
        " exact: letter case counts and there are no wildcards.",
        {
            "prefix": text("Only keys that begin with exactly this text, such as `plan/`."),
            "limit": LIMIT,
            "after": AFTER,
        },
        _list,
        reads=True,
        is_listed=False,
    ),
)
