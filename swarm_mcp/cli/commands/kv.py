"""kv: values that sessions share

usage: swarm-mcp kv list [--prefix TEXT] [--scope DIR] [--json]
       swarm-mcp kv get KEY [--scope DIR] [--json]
       swarm-mcp kv set KEY VALUE [--as WHO] [--json]
       swarm-mcp kv append KEY JSON [--as WHO] [--json]
       swarm-mcp kv del KEY [--as WHO] [--json]

A key belongs to the identity that first sets it. `get` of a key that is not there prints nothing and
exits 1; with --json it prints null and exits 0. So does a key that belongs to another identity.

example: swarm-mcp kv set plan/latest "split the importer first"
"""

from __future__ import annotations

from swarm_mcp.actor import actor, viewer_identity
from swarm_mcp.cli.output import moment, say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store


def run(args) -> int:
    """Dispatch to the sub-command; ``list`` when none is given."""
    verb = args.words[0] if args.words else "list"
    actions = {"list": _list, "get": _get, "set": _set, "append": _append, "del": _delete}
    if verb not in actions:
        raise UsageError(f"Unknown kv subcommand: {verb} (list, get, set, append, del)")
    return actions[verb](args)


def _list(args) -> int:
    with Store(read_only=True) as store:
        rows = store.kv.items(current_scope(args.value("--scope")), args.value("--prefix"))
    if args.json:
        show(rows)
    elif not rows:
        say("(no kv entries)")
    else:
        for row in rows:
            say(f"  {row['key']}  ({moment(row['updated_at'])})")
    return 0


def _get(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv get KEY")
    with Store(read_only=True) as store:
        viewer = viewer_identity(store, args)
        row = store.kv.get(current_scope(args.value("--scope")), key, f"identity:{viewer}" if viewer else None)
    if args.json:
        show(row)
        return 0
    if row:
        say(row["value"])
    return 0 if row else 1


def _set(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv set KEY VALUE")
    if len(args.words) < 3:
        raise UsageError("missing the value: swarm-mcp kv set KEY VALUE")
    with Store() as store:
        store.kv.put(_placed(actor(store, args), args), key, args.words[2])
    return _done(args, {"ok": True, "key": key}, f"set {key}")


def _append(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv append KEY JSON")
    value = args.word(2, "the JSON value: swarm-mcp kv append KEY JSON")
    with Store() as store:
        length = store.kv.append(_placed(actor(store, args), args), key, value)
    return _done(args, {"ok": True, "key": key, "length": length}, f"appended to {key} (length={length})")


def _delete(args) -> int:
    key = args.word(1, "the key: swarm-mcp kv del KEY")
    with Store() as store:
        store.kv.delete(_placed(actor(store, args), args), key)
    return _done(args, {"ok": True, "key": key}, f"deleted {key}")


def _placed(instance: dict, args) -> dict:
    """The actor, writing into the scope that was asked for."""
    return {**instance, "scope": current_scope(args.value("--scope"))} if args.value("--scope") else instance


def _done(args, answer: dict, text: str) -> int:
    show(answer) if args.json else say(text)
    return 0
