"""Why a file can or cannot be written: who holds what over it, through which rule, who waits, what would happen now."""

from __future__ import annotations

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.decision import decide
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.lookup import Peers, plain
from swarm_hook_core.lookup import Session as Asker
from swarm_mcp.acting_session import TERMINAL
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import Session, nobody_in
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import Reach, reach_of, rule, with_names

TOOL = "Write"
_WRITES = RuntimeConfig("swarm", "MCP", "swarm", {TOOL}, paths_under_keys("file_path"))


def explanation(store: Store, place: Session, word: str, session: Session | None, agent: str, viewer: str) -> dict:
    """``{file, pattern, held, waiting, write}`` for what `word` means in `place`, as identity `viewer` may know it.

    `place` is an instance, or what stands for one (``directory``, ``root``, ``file_root``, ``scope``). `held`: the
    locks over it in the shape of a listing, each with its ``rule`` (``attempts.rule``) and ``yours``. `waiting`:
    who is in line, first come first. `write`: what would happen if `session` (None: one that holds nothing), or
    its subagent `agent`, wrote it now; None for a pattern. Raises SwarmError. Changes nothing.
    """
    reach = with_names(reach_of(place, word), False)
    found = store.locks.meeting(reach) if reach.pattern else store.locks.covering(reach)
    return {
        "file": reach.file,
        "pattern": reach.pattern or None,
        "held": [_held(store, row, reach, session, viewer) for row in found],
        "waiting": _waiting(store, reach, session, viewer),
        "write": None if reach.pattern or reach.key is None else verdict(store, session, reach.file, agent),
    }


def verdict(store: Store, session: Session | None, path: str, agent: str = "") -> dict:
    """What a write to absolute `path` would meet: ``{instance_id, label, agent, allowed, guarded, reason, ...}``.

    The hooks' own code decides, over the same questions to the same file. `guarded`: whether hooks of ours would ask
    at all. Of a refusal ``holder_id``, ``lock_file`` and ``fence`` say by what.
    """
    told: dict = {"instance_id": session and session.id, "label": session and session.label}
    told["agent"] = agent or None
    told.update(allowed=True, guarded=session is not None and _is_guarded(store, session), reason=None)
    if not store.exists():
        return told
    row, now = session or nobody_in(""), time.time()
    who = Asker(row.id, row.label or "", row.directory, row.root, row.file_root)
    peers = Peers(store.as_hooks_read_it(), who.instance_id, now, agent)
    call = ToolCall(TOOL, {"file_path": path}, cwd=os.path.dirname(path), agent=agent)
    denial = decide(_WRITES, who, call, peers, now)
    if denial is not None:
        told.update(allowed=False, reason=denial.reason)
        if same_circle(token(who.label, "identity"), token(denial.held.label, "identity")):
            told.update(holder_id=denial.held.instance_id)
        told.update(lock_file=denial.held.elsewhere or denial.held.file, fence=denial.held.fence)
    return told


def _is_guarded(store: Store, session: Session) -> bool:
    found = store.instances.with_evidence(session.id)
    return found is not None and found.runtime not in (None, SERVER_RUNTIME, TERMINAL)


def _held(store: Store, row: Lock, reach: Reach, session: Session | None, viewer: str) -> dict:
    """A lock over the path, in the shape of a listing and more."""
    through = "pattern" if reach.pattern and row.pattern else "overlap" if reach.pattern else rule(row, reach.file)
    shown = store.locks.listed(row, viewer)
    yours = session is not None and row.instance_id == session.id
    return {**shown, "mode": row.mode or "exclusive", "rule": through, "yours": yours}


def _waiting(store: Store, reach: Reach, session: Session | None, viewer: str) -> list[dict]:
    """``{place, mode, files, waited, gives_up_in, yours, instance_id, label, agent}`` of everybody in line.

    ``silent`` where it has shown no life for so long that it keeps nobody off what is free.
    """
    found = []
    for place, row in enumerate(store.queue.waiting_for(reach), 1):
        now = clock.now()
        shown: dict = {"place": place, "ticket": row.ticket, "mode": row.mode}
        shown["files"] = [plain(wanted.file) for wanted in row.reaches]
        shown["waited"] = round(max(0.0, now - row.since), 1)
        shown["gives_up_in"] = None if row.until is None else round(max(0.0, row.until - now), 1)
        shown["yours"] = session is not None and row.instance_id == session.id
        if store.queue.is_silent(row):
            shown["silent"] = True
        if same_circle(viewer, token(row.owner_label or "", "identity")):
            shown.update(instance_id=row.instance_id, label=row.owner_label, agent=row.agent or None)
        else:
            # What else a stranger wants is none of the viewer's business.
            shown.update(hidden=True, files=[reach.file])
        found.append(shown)
    return found
