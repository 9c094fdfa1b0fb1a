"""kv: values that sessions share

usage: swarm-mcp kv list [--prefix TEXT] [--scope DIR] [--json]
       swarm-mcp kv get KEY [--scope DIR] [--json]
       swarm-mcp kv set KEY VALUE [--as WHO] [--json]
       swarm-mcp kv append KEY JSON [--as WHO] [--json]
       swarm-mcp kv del KEY [--as WHO] [--json]

A key belongs to the identity that first sets it; others neither see nor change it. --prefix is exact:
letter case counts, `_` and `%` are themselves. `append` adds one JSON value to the list under KEY, digit
for digit; what was there and is no list becomes its first item.

`get` of a key that is not there, or that another identity owns, prints nothing and exits 1; with --json it
prints null and exits 0. A write to another identity's key changes nothing and exits 1, with --json as
{"error"}.

example: swarm-mcp kv set plan/latest "split the importer first"
"""

from __future__ import annotations

from swarm_mcp.actor import person, viewer_identity
from swarm_mcp.cli.arguments import one_of
from swarm_mcp.cli.output import listing, moment, refused, say, say_text, show
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store

WORDS = None


def run(args) -> int:
    """Dispatch to the sub-command; ``list`` when none is given."""
    actions = {"list": _list, "get": _get, "set": _set, "append": _append, "del": _delete}
    try:
        return actions[one_of(args.words[0] if args.words else "list", actions, "kv subcommand")](args)
    except Refused as refusal:
        return refused(args, "kv", refusal.answer, f"{refusal}: {args.words[1]}")


def _list(args) -> int:
    with Store(read_only=True) as store:
        rows = store.kv.items(current_scope(args.value("--scope")), args.value("--prefix"), _viewer(store, args))
    if args.json:
        show(rows)
        return 0
    cells = [(row["key"], moment(row["updated_at"])) for row in rows]
    listing(("key", "time"), cells, [f"  {key}  ({time})" for key, time in cells], empty="(no kv entries)")
    return 0


def _get(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv get KEY")
    with Store(read_only=True) as store:
        row = store.kv.get(current_scope(args.value("--scope")), key, _viewer(store, args))
    if args.json:
        show(row)
        return 0
    if row:
        say_text(row["value"])
    return 0 if row else 1


def _set(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv set KEY VALUE")
    if len(args.words) < 3:
        raise UsageError("missing the value: swarm-mcp kv set KEY VALUE")
    with Store() as store:
        store.kv.put(_placed(person(store, args), args), key, args.words[2])
    return _done(args, {"ok": True, "key": key}, f"set {key}")


def _append(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv append KEY JSON")
    value = args.word(2, "the JSON value: swarm-mcp kv append KEY JSON")
    with Store() as store:
        length = store.kv.append(_placed(person(store, args), args), key, value)
    return _done(args, {"ok": True, "key": key, "length": length}, f"appended to {key} (length={length})")


def _delete(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv del KEY")
    with Store() as store:
        store.kv.delete(_placed(person(store, args), args), key)
    return _done(args, {"ok": True, "key": key}, f"deleted {key}")


def _viewer(store, args) -> str | None:
    """The identity that reads, None for an onlooker who has none and may read everything."""
    name = viewer_identity(store, args)
    return f"identity:{name}" if name else None


def _placed(instance: dict, args) -> dict:
    """The actor, writing into the scope that was asked for."""
    return {**instance, "scope": current_scope(args.value("--scope"))} if args.value("--scope") else instance


def _done(args, answer: dict, text: str) -> int:
    show(answer) if args.json else say(text)
    return 0
