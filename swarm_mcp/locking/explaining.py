"""Explanations of locks: the reason why a file can or cannot be written."""

from __future__ import annotations

import os
from contextlib import closing

from swarm_hook_core import clock
from swarm_hook_core.asked import KINDS, AskedCore
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.lookup import Session as Asker
from swarm_hook_core.lookup import plain
from swarm_mcp.domain.lock import Lock, Waiter
from swarm_mcp.domain.session import Session, nobody_in, onlooker
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.sessions.agents_shell import TERMINAL
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Reach, reach_of, rule, with_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_NAMED = 200  # locks, and waiters, of one explanation


def explanation(
    store: Store,
    place: Session,
    word: str,
    session: Session | None,
    agent: str,
    viewer: str,
    meets: bool = True,
    reader_folder: str = "",
) -> dict[str, Any]:
    """Return ``{file, pattern, held, waiting, write}`` for `word` in `place`, as identity `viewer` may see it.

    `place` is an instance, or any object with ``directory``, ``root``, ``file_root`` and ``scope``. `held` has the
    locks over the file in the shape of a listing, each with its ``rule`` (``lock_request.rule``) and ``yours``.
    `waiting` is the queue, first come first. `write` is the answer to a write by `session` (None: a session without
    locks) or its subagent `agent` now; None for a pattern. `held` and `waiting` have at most 200 rows; ``not_shown``
    counts the others. For a pattern, all locks would have to be compared: without `meets`, only those on that very
    pattern are found. `reader_folder`: as of `verdict`. Raises SwarmError. Changes nothing.
    """
    reach = with_names(reach_of(place, word), False)
    if not reach.pattern:
        found = store.locks.covering(reach)
    elif meets:
        found = store.locks.meeting(reach)
    else:
        found = store.locks.exactly(reach)
    line = store.queue.waiting_for(reach)
    left = {"held": len(found) - MOST_NAMED, "waiting": len(line) - MOST_NAMED}
    left = {name: number for name, number in left.items() if number > 0}
    return {
        "file": reach.file,
        "pattern": reach.pattern or None,
        "held": [_held(store, row, reach, session, viewer) for row in found[:MOST_NAMED]],
        "waiting": _waiting(store, line[:MOST_NAMED], reach, session, viewer),
        "write": None
        if reach.pattern or reach.key is None
        else verdict(store, session, reach.file, agent, viewer, reader_folder),
        **({"not_shown": left} if left else {}),
    }


def verdict(
    store: Store,
    session: Session | None,
    path: str,
    agent: str = "",
    viewer: str = "",
    reader_folder: str = "",
) -> dict[str, Any]:
    """Return the answer to a write of absolute `path`: ``{instance_id, label, agent, allowed, guarded, reason, ...}``.

    The hooks' own check decides (``asked``), for each of the `kinds` of writes, ``edit``, ``overwrite`` and ``remove``:
    ``{kind: {allowed, reason, told}}``; `told` is the notice to a model whose write goes ahead. `allowed` is True if
    all kinds go ahead; `reason` is that of the first refused one. `guarded`: hooks of ours see the write at all.
    ``holder_id`` names the owner of the lock or of the uncommitted work in the way; for a lock, ``lock_file`` and
    ``fence`` name it. Without a session, the words are those for a session of identity `viewer`.
    Commands in the words are typed in `reader_folder`; without it they have whole paths.
    """
    told: dict[str, Any] = {"instance_id": session and session.id, "label": session and session.label}
    told["agent"] = agent or None
    told.update(allowed=True, guarded=session is not None and _is_guarded(store, session), reason=None)
    free = {"allowed": True, "reason": None, "told": None}
    if not store.exists():
        return {**told, "kinds": {kind: dict(free) for kind in KINDS.values()}}
    row = session or nobody_in("")
    label = (session or onlooker(viewer)).label or ""
    who = Asker(row.id, label, row.directory, row.root, row.file_root)
    with closing(store.as_hooks_read_it()) as reader:
        found = AskedCore(*_client_of(store, session), who, reader, reader_folder).verdicts(path, agent)
    denials = [verdict.denial for verdict in found.values() if verdict.denial is not None]
    told["kinds"] = {
        KINDS[how]: {**free, "told": verdict.notice or None}
        if verdict.denial is None
        else {"allowed": False, "reason": verdict.denial.reason, "told": None}
        for how, verdict in found.items()
    }
    if not denials:
        return told
    first = denials[0]
    told.update(allowed=False, reason=first.reason)
    held = first.loss.held if first.loss else first.held
    if held is None:
        return told
    if held.instance_id and same_circle(token(who.label, "identity"), token(held.label, "identity")):
        told.update(holder_id=held.instance_id)
    if first.held is not None:
        told.update(lock_file=held.elsewhere or held.file, fence=held.fence)
    return told


def _client_of(store: Store, session: Session | None) -> tuple[str, str, str]:
    """Return a session's runtime, the prefix of its variables, and its client's id; made-up ones without a session."""
    found, prefix = store.instances.with_evidence(session.id) if session else None, "MCP"
    if found is None or not found.runtime or not found.session_id:
        return "swarm", prefix, f"asked-{os.getpid()}"
    if found.runtime in NAMES:
        prefix = hook_config(found.runtime).env_prefix
    return found.runtime, prefix, found.session_id


def _is_guarded(store: Store, session: Session) -> bool:
    found = store.instances.with_evidence(session.id)
    return found is not None and found.runtime not in (None, SERVER_RUNTIME, TERMINAL)


def _held(store: Store, row: Lock, reach: Reach, session: Session | None, viewer: str) -> dict[str, Any]:
    """A lock over the path, in the shape of a listing and more."""
    if reach.pattern and row.pattern:
        through = "pattern"
    elif reach.pattern:
        through = "overlap"
    else:
        through = rule(row, reach.file)
    shown = store.locks.listed(row, viewer)
    yours = session is not None and row.instance_id == session.id
    return {**shown, "mode": row.mode or "exclusive", "rule": through, "yours": yours}


def _waiting(
    store: Store, line: list[Waiter], reach: Reach, session: Session | None, viewer: str
) -> list[dict[str, Any]]:
    """Return ``{place, mode, files, waited, gives_up_in, yours, instance_id, label, agent}`` of each waiter in `line`.

    ``silent`` marks a waiter without a heartbeat for so long that others may pass it.
    """
    found = []
    for place, row in enumerate(line, 1):
        now = clock.now()
        shown: dict[str, Any] = {"place": place, "ticket": row.ticket, "mode": row.mode}
        shown["files"] = [plain(wanted.file) for wanted in row.reaches]
        shown["waited"] = round(max(0.0, now - row.since), 1)
        shown["gives_up_in"] = None if row.until is None else round(max(0.0, row.until - now), 1)
        shown["yours"] = session is not None and row.instance_id == session.id
        if store.queue.is_silent(row):
            shown["silent"] = True
        if same_circle(viewer, token(row.owner_label or "", "identity")):
            shown.update(instance_id=row.instance_id, label=row.owner_label, agent=row.agent or None)
        else:
            # A stranger's other files are hidden from the viewer.
            shown.update(hidden=True, files=[reach.file])
        found.append(shown)
    return found
