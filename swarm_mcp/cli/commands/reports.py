"""Reports from hooks: signs of life, ended subagents, denied writes, changed files."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import REMOVE, REPLACE
from swarm_mcp.answers.timeline import OWNERLESS, REASONS
from swarm_mcp.cli.arguments import (
    FOLDERS,
    INTERNAL,
    JSON,
    PATIENCE,
    RUNTIME,
    SESSION_ID,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.output import answer, flush, say_text, show
from swarm_mcp.domain import Session
from swarm_mcp.errors import SwarmError, UsageError
from swarm_mcp.folders import clean
from swarm_mcp.locking import explaining
from swarm_mcp.sessions.acting import require_same_client
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import Attempt

NO_SESSION = "no such session"


@verb(
    Usage(
        Word("FILE", "the locked file"),
        RUNTIME,
        SESSION_ID,
        Option("--holder INSTANCE", f"the session that held it; not for {', '.join(OWNERLESS)}"),
        Option("--tool NAME", "the tool that was to write"),
        Option("--target PATH", "the path that would have been written, where that is another one"),
        Option("--directory DIR", "the working folder of the call", source=FOLDERS),
        Option("--agent ID", "the subagent that tried it"),
        Option("--fence N", "the number of the lock in the way"),
        Option("--times N", "how many denials of that path there were within minutes, this one included"),
        Option("--why KIND", f"the obstacle, if it was not a lock: {', '.join(REASONS)}"),
        Option("--notice", "the call went ahead, and its model was told; with --why"),
        Option("--deed VERB", "the effect that the call would have had on --holder's uncommitted work"),
        Option("--command TEXT", "the part of the command that does so"),
        Option("--changed SECONDS", "when that work was done, Unix time"),
        Option("--also PATH", "one more denied file of the same call", repeatable=True),
        Option("--said TEXT", "the text that the session got"),
        Option(
            "--scope DIR", "the checkout of a commit; --session-id is an instance then, or no session", source=FOLDERS
        ),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def denied(args: Arguments) -> int:
    """denied: note that a session was denied a file (hooks call this)

    With --why the reason was not a lock, but work of --holder: an uncommitted change of FILE (uncommitted), a write in
    progress (moment), changes that a git command would sweep up (sweep), or an entry in the stash (stash); or it was
    no session's: a person's work (person), another work tree (fence), the HEAD that sessions share (head), a failed
    check (unchecked). That is only recorded, and so is a notice.

    Without --why, FILE is the locked path. For the record (swarm-mcp log): --target, the path of the denied write, if
    it is another one; --directory, its working folder; --agent, the subagent; --fence, the number of the lock in the
    way.

    The session gets one message when the file is free, and at once if it is free already. From the third time on
    (--times) the holder gets one, and at the tenth the sessions with mode:gateway of the same identity: once, until the
    file is left alone for five minutes. A session that is not registered is no error.

    example: swarm-mcp denied src/schema.sql --runtime codex --session-id 0199-5c --holder 41d2 --tool apply_patch
    """
    file, held, line = _path(args.words[0]), None, NO_SESSION
    with Store(busy_seconds=args.patience) as store:
        row = _session(store, args)
        if args.value("--scope"):
            row = store.instances.get(args.value("--session-id"))
            store.denials.note(row, args.value("--scope"), file, args.value("--holder"), _attempt(args, file))
            line = f"noted: {file}"
        elif row:
            held = store.denials.report(row, file, args.value("--holder"), _attempt(args, file))
            line = f"noted: {file}"
            if not held:
                line = f"free already: {file}"
    return answer(args, {"ok": row is not None, "id": row and row.id, "file": file, "held": held}, line)


def _session(store: Store, args: Arguments) -> Session | None:
    """Return the session of --runtime and --session-id, or None if it is not registered."""
    return store.instances.of_session(args.value("--runtime"), args.value("--session-id"))


def _path(word: str) -> str:
    """Return the path of a hook's word. Hooks resolve paths; an absolute one stays as it is."""
    if os.path.isabs(word):
        return word
    return clean(word)


def _attempt(args: Arguments, file: str) -> Attempt:
    fence, times = args.number("--fence"), args.number("--times")
    path = _path(args.value("--target") or file)
    tool, folder, agent = (args.value(flag) for flag in ("--tool", "--directory", "--agent"))
    why = args.value("--why")
    if why and why not in REASONS:
        raise UsageError(f"--why wants one of {', '.join(REASONS)}, not {why[:40]!r}")
    if why not in OWNERLESS and not args.value("--holder"):
        raise UsageError("--holder is needed: the session that held the file")
    facts: dict[str, Any] = {name: args.value(f"--{name}") for name in ("deed", "command", "said")}
    facts.update(why=why, changed_at=args.number("--changed"), also=tuple(args.all("--also")))
    facts.update(is_notice=bool(why) and args.given("--notice"))
    return Attempt(tool, path, folder, agent, fence or None, times=times, **facts)


HOWS = (REPLACE, REMOVE)


@verb(
    Usage(
        Word("DEED", "the action that was tried"),
        RUNTIME,
        SESSION_ID,
        Option("--tool NAME", "the tool that was to do it"),
        Option("--target PATH", "the file that it would have changed"),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def attempted(args: Arguments) -> int:
    """attempted: note an attempt at an action reserved for people (hooks call this)

    People see it in `swarm-mcp log`, `top` and `page`. A session that is not registered is no error.

    example: swarm-mcp attempted "swarm-mcp protect off" --runtime codex --session-id 0199-5c --tool Bash
    """
    line = NO_SESSION
    with Store(busy_seconds=args.patience) as store:
        row = _session(store, args)
        if row:
            line = f"noted: {args.words[0]}"
            store.protection.attempted(row.scope, row.id, args.words[0], args.value("--target"), args.value("--tool"))
    return answer(args, {"ok": row is not None, "id": row and row.id}, line)


KINDS = ("changed", "replaced", "created", "removed")


@verb(
    Usage(
        Word("FILE", "the file that changed", repeated=True),
        RUNTIME,
        SESSION_ID,
        Option("--tool NAME", "the tool that was called"),
        Option("--command TEXT", "the command of the shell"),
        Option("--holder INSTANCE", "the holder of FILE", repeatable=True),
        Option("--kind KIND", f"the kind of change: {', '.join(KINDS)}", repeatable=True),
        Option("--kept PATH", "the path of the earlier content; may be empty", repeatable=True),
        Option("--at SECONDS", "when, Unix time", repeatable=True),
        Option("--key KEY", "the earlier identity of FILE", repeatable=True),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def altered(args: Arguments) -> int:
    """altered: tell a holder that a call has changed its file (hooks call this)

    Each FILE has its own --holder, --kind (changed, replaced, created, removed), --kept (the path of the earlier
    content, may be empty), --at (Unix time of the change) and --key (an earlier identity of FILE), in the same order.
    Files without a lock at that time are left out.

    example: swarm-mcp altered f --runtime codex --session-id 1 --tool Bash --holder 2 --kind changed --kept= --at 0
    """
    changes = _changes(args)
    with Store(busy_seconds=args.patience) as store:
        writer = _session(store, args)
        added = store.breaches.report(writer, args.value("--tool"), args.value("--command"), changes)
    return answer(args, {"ok": True, "ids": added}, f"told of {len(added)} of {len(changes)} changes")


def _changes(args: Arguments) -> list[dict[str, Any]]:
    flags = ("--holder", "--kind", "--kept", "--at")
    columns = [args.all(flag) for flag in flags]
    for flag, values in zip(flags, columns):
        if len(values) != len(args.words):
            raise UsageError(f"{flag} is needed once for each file")
    changes = []
    keys = args.all("--key") or [""] * len(args.words)  # hooks of an earlier release have no --key
    if len(keys) != len(args.words):
        raise UsageError("--key is needed once for each file, or not at all")
    for word, holder, kind, kept, at, key in zip(args.words, *columns, keys):
        if kind not in KINDS:
            raise UsageError(f"--kind wants one of {', '.join(KINDS)}, not {kind[:40]!r}")
        try:
            moment = float(at)
        except ValueError:
            moment = -1.0  # refused below
        if not 0 <= moment <= 10**12:
            raise UsageError(f"--at wants Unix seconds, not {at[:40]!r}")
        changes.append({"file": _path(word), "holder_id": holder, "kind": kind, "kept": kept, "at": moment, "key": key})
    return changes


@verb(
    Usage(
        RUNTIME,
        SESSION_ID,
        Option("--tell", "print the session's notices about its locks: each once"),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def alive(args: Arguments) -> int:
    """alive: report a sign of life, and renew the session's locks (hooks call this)

    Lapsed locks stay lapsed: their session is told, with the name of the present holder. A session that is not
    registered is no error.

    example: swarm-mcp alive --runtime codex --session-id 0199-5c
    """
    with Store(busy_seconds=args.patience) as store:
        row = _session(store, args)
        if row:
            store.instances.show_life(row.id)
        store.leases.some()
        with telling(store, args.given("--tell") and row or None) as notices:
            if args.json:
                show({"ok": row is not None, "id": row and row.id, "notices": notices})
            elif notices:
                say_text("\n".join(notices))
    return 0


class telling:
    """The notices for `instance` (None: no notices), for a block that writes them. After it they count as delivered."""

    def __init__(self, store: Store, instance: Session | None):
        self._store = store
        self._taken = []
        if instance:
            self._taken = store.notices.take(instance)

    def __enter__(self) -> list[str]:
        return [notice.text for notice in self._taken]

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        ids = [notice.id for notice in self._taken]
        if kind is not None:
            self._store.messages.put_back(ids)
            return
        try:
            is_written = flush()
        except (OSError, SwarmError):
            self._store.messages.put_back(ids)
            raise
        if is_written:
            self._store.messages.acknowledge(ids)
        else:
            self._store.messages.put_back(ids)


@verb(
    Usage(
        Word("FILE", "the file that has the change"),
        RUNTIME,
        SESSION_ID,
        Option("--owner INSTANCE", "the session with the uncommitted change of FILE", required=True),
        Option("--how HOW", f"the effect of the call: {', '.join(HOWS)}", required=True),
        Option("--kept PATH", "the path of the kept earlier content, if there is one"),
        Option("--times N", "the number of denials so far; without it the call was allowed"),
        Option("--tool NAME", "the tool that was called"),
        Option("--command TEXT", "the command of the shell"),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def overwritten(args: Arguments) -> int:
    """overwritten: tell a session that its change is overwritten (hooks call this)

    The owner gets one message with the overwritten or removed file, the session that did it, and the command that
    restores it. With --times the call was denied so often that the owner is told; from the tenth time on the sessions
    with mode:gateway of the same identity are told instead.

    example: swarm-mcp overwritten /w/f --runtime codex --session-id 0199-5c --owner 41d2 --how replace
    """
    file, how, times = _path(args.words[0]), args.value("--how"), args.number("--times")
    if how not in HOWS:
        raise UsageError(f"--how wants one of {', '.join(HOWS)}, not {how[:40]!r}")
    with Store(busy_seconds=args.patience) as store:
        writer, owner = _session(store, args), args.value("--owner")
        if times:
            told = explaining.tell_of_denials(store, writer, owner, file, times)
        else:
            made = (args.value("--tool"), args.value("--command"))
            told = explaining.tell_of_loss(store, writer, owner, file, how == REMOVE, args.value("--kept"), made)
    return answer(args, {"ok": bool(told), "told": told}, f"told {len(told)}")


@verb(
    Usage(
        Word("FOLDER", "the folder in which the session works"),
        RUNTIME,
        SESSION_ID,
        Option("--owner INSTANCE", "the session that works there", required=True),
        Option("--deed VERB", "the effect of the call on the folder", required=True),
        Option("--denied", "the call was denied, and may come again; without it the call was allowed"),
        Option("--commit TEXT", "a commit that no other ref has: its name and subject", repeatable=True),
        Option("--main DIR", "a folder of the same repository that stays"),
        Option("--command TEXT", "the command of the shell"),
        PATIENCE,
        JSON,
    ),
    group=INTERNAL,
)
def evicted(args: Arguments) -> int:
    """evicted: tell a session that its folder goes (hooks call this)

    The owner gets one message with the folder, the session whose call it is, the commits that would be lost, and the
    command that keeps them.

    example: swarm-mcp evicted /w/tree --runtime codex --session-id 0199-5c --owner 41d2 --deed remove
    """
    folder = _path(args.words[0])
    call = (args.value("--deed"), args.value("--command"), args.given("--denied"))
    with Store(busy_seconds=args.patience) as store:
        told = explaining.tell_of_eviction(
            store,
            _session(store, args),
            args.value("--owner"),
            folder,
            call,
            args.all("--commit"),
            args.value("--main"),
        )
    return answer(args, {"ok": bool(told), "told": told}, f"told {len(told)}")


@verb(
    Usage(RUNTIME, SESSION_ID, Option("--agent ID", "the subagent that has ended", required=True), PATIENCE, JSON),
    group=INTERNAL,
)
def agent_ended(args: Arguments) -> int:
    """agent-ended: release the locks of a subagent that has ended (hooks call this)

    The locks of its session stay. A session that is not registered is no error.

    example: swarm-mcp agent-ended --runtime codex --session-id 0199-5c --agent 0199-77
    """
    files, line = [], NO_SESSION
    with Store(busy_seconds=args.patience) as store:
        row = _session(store, args)
        if row:
            require_same_client(store, row)
            files = store.locks.release_of_agent(row, args.value("--agent"))
            line = f"released {len(files)}"
    return answer(args, {"ok": row is not None, "id": row and row.id, "released": files}, line)
