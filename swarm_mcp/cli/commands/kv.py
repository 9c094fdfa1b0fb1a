"""Values that sessions share."""

from __future__ import annotations

from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    DOING,
    KEYS,
    SESSIONS,
    Arguments,
    Option,
    Usage,
    Word,
    choice,
    verb,
)
from swarm_mcp.cli.output import answer, listing, refused, say_text, show
from swarm_mcp.cli.words import PAGES, Reader, clause, printed_page, say_page
from swarm_mcp.domain import Session
from swarm_mcp.errors import Refused
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import acting_session, viewer_identity
from swarm_mcp.store import Store

KEY, VALUE = Word("KEY", "the key", source=KEYS), Word("VALUE", "the value", may_be_blank=True)


@verb(
    Usage(
        choice("list", optional=True),
        Option("--prefix TEXT", "only keys that begin with TEXT"),
        *PAGES,
        ABSOLUTE,
        *ACTING,
        surplus=True,
    ),
    Usage(choice("get"), KEY, *ACTING, surplus=True),
    Usage(choice("set"), KEY, VALUE, *DOING, surplus=True),
    Usage(choice("append"), KEY, Word("JSON", "the JSON value"), *DOING, surplus=True),
    Usage(choice("del"), KEY, *DOING, surplus=True),
    group=SESSIONS,
)
def kv(args: Arguments) -> int:
    """kv: values that sessions share

    A key belongs to the identity that first sets it; other identities neither see nor change it. --prefix is taken as
    it is: letter case counts, and `_` and `%` are themselves. `append` adds one JSON value to the list under KEY; a
    value there that is no list becomes the first item of one.

    `get` of a key that is not there, or that belongs to another identity, prints nothing and exits 1; with --json it
    prints null and exits 0. A write to another identity's key changes nothing and exits 1, with --json as {"error"}.

    example: swarm-mcp kv set plan/latest "split the importer first"
    """
    actions = {"": _list, "list": _list, "get": _get, "set": _set, "append": _append, "del": _delete}
    try:
        return actions["".join(args.words[:1])](args)
    except Refused as refusal:
        return refused(args, "kv", refusal.answer, f"{refusal}: {args.words[1]}")


def _list(args: Arguments) -> int:
    scope, prefix = current_scope(args.value("--scope")), args.value("--prefix")
    with Store(read_only=True) as store:
        viewer = _viewer(store, args)
        found = printed_page(
            args, lambda after: store.kv.walk(scope, prefix, viewer, after), lambda row: row,
            lambda: store.kv.count(scope, viewer, prefix),
        )  # fmt: skip
        reader = Reader(args, store)

    def table() -> None:
        cells = [(row["key"], reader.when(row["updated_at"])) for row in found.rows]
        listing(("key", "changed"), cells, [f"  {key}  ({time})" for key, time in cells], empty="(no kv entries)")

    return say_page(args, found, table)


def _get(args: Arguments) -> int:
    key = args.words[1]
    with Store(read_only=True) as store:
        row = store.kv.get(current_scope(args.value("--scope")), key, _viewer(store, args))
    if args.json:
        show(row)
        return 0
    if row is None:
        return 1
    say_text(row.value)
    return 0


def _set(args: Arguments) -> int:
    key = args.words[1]
    with Store() as store:
        store.kv.put(_placed(acting_session(store, args), args), key, args.words[2])
    return answer(args, {"ok": True, "key": key}, f"set {key}")


def _append(args: Arguments) -> int:
    key = args.words[1]
    value = args.words[2]
    with Store() as store:
        length = store.kv.append(_placed(acting_session(store, args), args), key, value)
    return answer(args, {"ok": True, "key": key, "length": length}, f"appended to {key} (length={length})")


def _delete(args: Arguments) -> int:
    key = args.words[1]
    with Store() as store:
        store.kv.delete(_placed(acting_session(store, args), args), key)
    return answer(args, {"ok": True, "key": key}, f"deleted {key}")


def _viewer(store: Store, args: Arguments) -> str | None:
    """The identity of the reader, or None for a reader without one, who may read everything."""
    return clause("identity:{}", viewer_identity(store, args)) or None


def _placed(instance: Session, args: Arguments) -> Session:
    """Return the acting session, writing into the scope that was asked for."""
    if not args.value("--scope"):
        return instance
    return instance.replace(scope=current_scope(args.value("--scope")))
