"""Tenants: live sessions of others in a folder that a call removes or moves away, mostly a linked work tree.

The call is denied once, for each commit there and each agent: then its session knows of the tenants, and of the commits
that would be lost with the tree. The same call again goes ahead. The tenants hear of both (`Eviction`). At `notice` the
session is told, and the call goes ahead. The session's journal has an entry about it, of kind ``lives``.

A session lives where it is registered (its root), while its client runs. A session that the caller has started itself
does not count.

    fates    what the call does to a folder
    losses   the commits that go with it
    wording  denials and notices
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import fence
from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import HOLD, TERMINAL, Held
from swarm_hook_core.process import ancestors, host_id
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.stakes.verdict import judge as of_others
from swarm_hook_core.stakes.writes import judge as of_sessions
from swarm_hook_core.tenants import fates, losses
from swarm_hook_core.tenants.eviction import Eviction
from swarm_hook_core.tenants.wording import of_call
from swarm_hook_core.traces import NOTICE, journal
from swarm_hook_core.traces.head import LATELY_SECONDS
from swarm_hook_core.traces.quiet_trails import asked_trail
from swarm_hook_core.traces.trail import Trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Check

KIND = "lives"  # of the journal's entry: `key` is the tenants' folder, `text` the commit there and the call's id
WHY = "tenant"  # of the Loss
NO_ID = "-"
APART_NS = 10**9  # calls closer than this may run side by side: the model has not read the denial of the first yet
NOT_LIVING = (TERMINAL, HOLD, "team")  # runtimes: a person's terminal, a command with a lock, another machine's session


def judge(check: Check, effects: Effects) -> Verdict | None:
    """Return the Verdict on a call that takes away a folder of other live sessions, or None."""
    trail = check.trail
    if trail is None:
        return None
    found = _evictions(check, effects)
    if not found:
        return None
    for one in found:
        losses.find(one, effects)
    untold = [one for one in found if not _was_told(check.call, trail, one)]
    denies = bool(untold) and trail.level != NOTICE
    for one in found:
        one.is_denied = denies
    first = (untold or found)[0]
    loss = Loss(WHY, first.tenants[0], first.deed, first.by, also=[one.root for one in found if one is not first])
    words = of_call(check.call.client_tool, untold or found, check.session.label, denies, check.now)
    verdict = Verdict()
    if denies:
        # Note that the session was told
        for one in found:
            text = f"{one.head or NO_ID} {check.call.id or NO_ID}"
            trail.note_at(one.root, KIND, text, place=_place(trail, one))
        trail.leave()
        verdict.denial = Denial(first.root, None, "\n".join([words, *_other_denials(check, effects)]), loss=loss)
    else:
        verdict.noted = [Notice(first.root, loss, words)]
        if untold:
            verdict.notice = words
    verdict.evictions = found
    return verdict


# ------------------------------------------------------------------------------------------------ who lives where


def _evictions(check: Check, effects: Effects) -> list[Eviction]:
    """Return the Evictions of the call, one for each folder with tenants."""
    by_root: dict[str, Eviction | None] = {}
    for row in check.reader.other_sessions(check.config.runtime_name, check.call.session_id, 0.0):
        if not isinstance(row["root"], str) or not row["root"] or row["runtime"] in NOT_LIVING:
            continue
        root = os.path.realpath(row["root"])
        if root not in by_root:
            by_root[root] = fates.eviction_of(root, effects)
        eviction = by_root[root]
        if eviction is not None and _lives(check, row, root):
            note = check.reader.purpose_of(row["id"])
            eviction.tenants.append(Held(root, row["id"], row["label"], note, row["registered_at"]))
    return [eviction for eviction in by_root.values() if eviction is not None and eviction.tenants]


def _lives(check: Check, row: Any, root: str) -> bool:
    """Return True if the session of `row` is another's, and its client runs."""
    here, pid = host_id(), row["client_pid"] or 0
    if departed(row, check.now, here):
        return False
    if row["host"] != here or not pid:  # no process to look at
        return bool(row["last_seen"] > check.now - LATELY_SECONDS)
    own = check.reader.holder(check.config.runtime_name, check.call.session_id)
    if own is None or not own[2]["client_pid"]:
        return True
    own_pid = own[2]["client_pid"]
    if pid == own_pid:
        return root != os.path.realpath(check.session.root)  # else an earlier conversation of the same client
    return own_pid not in ancestors(below=pid)


# ------------------------------------------------------------------------------------------------ told once


def _was_told(call: ToolCall, trail: Trail, eviction: Eviction) -> bool:
    """Return True if the agent of the call was told of this eviction in an earlier call, and no commit came since.

    Two processes may answer one call: an entry with its id is no earlier call. Raises OSError.
    """
    own, now_ns = journal.read(os.path.join(_place(trail, eviction), trail.own_name)), time.time_ns()
    for entry in journal.newest_first(own, eviction.root, (KIND,)):
        head, _, call_id = entry.text.partition(" ")
        if entry.agent == call.agent and head == (eviction.head or NO_ID):
            return now_ns - entry.at_ns > APART_NS and (not call.id or call_id != call.id)
    return False


def _place(trail: Trail, eviction: Eviction) -> str:
    """Return the journals' folder for the eviction; its own folder may have gone already."""
    if os.path.isdir(eviction.root):
        return trail.place_of(eviction.root)
    return trail.place_of(eviction.main or trail.call.folder)


def _other_denials(check: Check, effects: Effects) -> list[str]:
    """Return the reasons of the fence, for which it has then been told, and of the rules about uncommitted work."""
    verdicts: list[Verdict | None] = []
    try:
        if check.is_in_linked_tree():
            verdicts.append(fence.judge(check))
        trail = asked_trail(check.config, check.call)
        if trail is not None:
            verdicts.append(of_others(check.session, trail, effects, check.reader, check.now))
            trail = asked_trail(check.config, check.call)
            assert trail is not None
            verdicts.append(of_sessions(check.session, trail, effects, check.reader, check.now))
    except Exception as error:  # they are asked again as the call comes again
        check.core.record_fault("traces", error)
    reasons = [one.denial.reason for one in verdicts if one is not None and one.denial is not None]
    return list(dict.fromkeys(reasons))
