"""A session's terminal pane: to find it, look at it, and wake the agent in it.

The message itself is stored first. A pane only gets a fixed line about it. Text of another session is never typed: the
pane may be at a shell by now, and would run it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from swarm_hook_core.untrusted_text import token
from swarm_mcp import contributions
from swarm_mcp.answers.views import may_meet, short
from swarm_mcp.domain import REMOTE, Session, of_task, task_and_text
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import NAMES, harness_of
from swarm_mcp.runtimes.user_settings import Settings
from swarm_mcp.store import Store
from swarm_mcp.store.user_interface import pane_handles, pane_summary, whole_pane
from swarm_mcp.workspace.backends import SECONDS, Backend, Pane, PaneUnavailable
from swarm_mcp.workspace.backends import backend as backend_named

UNPUBLISHED = "no workspace identity is published for that instance"
ELSEWHERE = "it works on another machine of the team, which wakes it where it can"


class Unpublished(SwarmError):
    """The instance is in no known pane."""


class Reached(NamedTuple):
    """An instance's pane as it is now. `repaired`: it had another name, and the new one has been written back."""

    backend: Backend
    pane: Pane
    socket: str
    repaired: bool


def reach(store: Store, row: Session) -> Reached:
    """The pane of instance `row`. Raises Unpublished, PaneUnavailable."""
    known = store.panes.published(row.id)
    if not known:
        raise Unpublished(UNPUBLISHED)
    try:
        workspace = backend_named(known["backend"])
    except SwarmError as error:
        raise PaneUnavailable(str(error)) from None
    socket = socket_of(row, known)
    pane = workspace.resolve(known["handle"], socket)
    other = stranger_in(pane, row)
    if other:
        raise PaneUnavailable(f"pane {known['handle']} is that instance's no longer: {other}")
    found = {"pane_id": pane.handle, "workspace_id": pane.workspace_id, "tab_id": pane.tab_id}
    return Reached(workspace, pane, socket, store.panes.repair(row, known, found))


def facts(store: Store, row: Session, reached: Reached | None) -> dict[str, Any]:
    """Return the description of an instance's pane for answers: as `reached`, else as published, or empty."""
    known = store.panes.published(row.id)
    if not known:
        return {}
    shown = pane_summary(known)
    if reached:
        shown.update(workspace_handle=reached.pane.handle, pane_id=reached.pane.handle)
        if reached.pane.status:
            shown["agent_status"] = reached.pane.status
        if reached.repaired:
            shown["identity_repaired"] = True
    return shown


def socket_of(row: Session, known: dict[str, Any]) -> str:
    """Return the socket of a published pane's workspace: as published, in the environment, or in the profile."""
    text = known.get("socket_path")
    if isinstance(text, str) and text and "\0" not in text:
        return text
    return Settings(token(row.label or "", "identity")).first("HERDR_SOCKET_PATH")


def stranger_in(pane: Pane, row: Session) -> str:
    """Return the agent in `pane`, in words, if that is provably not instance `row`, or an empty text."""
    if pane.instance_id and pane.instance_id != row.id:
        return f"it reports to be instance {pane.instance_id}"
    # A workspace calls an agent by its command. Harnesses have the same names, and some labels hold them.
    kinds = {harness_of(name) for name in NAMES}
    origin = token(row.label or "", "origin")
    if origin in kinds:
        kind = origin
    else:
        kind = harness_of(origin)
    if kind and pane.agent in kinds and pane.agent != kind:
        return f"{pane.agent} runs there now, not {kind}"
    return ""


SOURCES = ("visible", "recent", "recent-unwrapped")
LINES = 80
MOST_LINES = 300


def peek(
    store: Store, sender: Session, recipient: Session, source: str = "recent", lines: int = LINES
) -> dict[str, Any]:
    """Return the text in the pane of `recipient`.

    ``{sender, recipient, peeked, source, lines}`` with ``text``, or ``peek_skipped`` (it published no pane), or
    ``peek_error``, and facts about its pane.
    """
    answer = {"sender": sender.id, "recipient": recipient.id, "peeked": False, "source": source, "lines": lines}
    reached = None
    try:
        reached = reach(store, recipient)
        answer["text"] = reached.backend.read(reached.pane.handle, source, lines, reached.socket)
        answer["peeked"] = True
    except Unpublished as reason:
        return {**answer, "peek_skipped": str(reason)}
    except PaneUnavailable as error:
        answer["peek_error"] = str(error)
    return {**answer, **facts(store, recipient, reached)}


# In a working pane the line lands amid a turn. In a blocked one Enter answers a question, such as that for a permission
# to run a command.
BUSY = {"working": "its agent is working", "blocked": "its agent waits for an answer in that pane"}


def prompt(
    store: Store,
    sender: Session,
    recipient_id: str,
    message: str,
    task_id: str = "",
    nudge: bool = True,
    force: bool = False,
) -> dict[str, Any]:
    """Store `message` for its recipient, marked ``[task:<id>] `` if a task is given, and `deliver` it.

    Raises the errors of ``store.messages.send``. The rest never fails.
    """
    if task_id.strip() and message.strip():
        content = of_task(task_id.strip(), message)
    else:
        content = message
    store.messages.send(sender, recipient_id, content)
    return deliver(store, sender, recipient_id, content, nudge, force)


def deliver(
    store: Store, sender: Session, recipient_id: str, message: str, nudge: bool = True, force: bool = False
) -> dict[str, Any]:
    """Wake the recipient of a stored message. Not inside a transaction.

    ``{message_sent, sender, recipient, nudged}`` with ``nudge_skipped`` or ``nudge_error`` if it was not woken, and
    facts about its pane. Takes up to 15 s if the workspace hangs. `force` also wakes a session that is at work. A
    session of another machine is woken by that machine.
    """
    answer = {"message_sent": True, "sender": sender.id, "recipient": recipient_id, "nudged": False}
    if not nudge:
        return {**answer, "nudge_skipped": "nudge=false"}
    row = store.instances.live(recipient_id)
    if row is None or not may_meet(sender.label, row.label):
        return {**answer, "nudge_skipped": "that instance is not active"}
    if row.runtime == REMOTE:
        contributions.react_to_row(
            contributions.SESSION_WANTED, store, sender.id, row.id, task_and_text(message)[0], force
        )
        return {**answer, "nudge_skipped": ELSEWHERE}
    reached = None
    try:
        reached = reach(store, row)
        if not force and reached.pane.status in BUSY:
            answer["nudge_skipped"] = f"{BUSY[reached.pane.status]}; force=true wakes it all the same"
        else:
            reached.backend.wake(reached.pane.handle, _line(sender, message), reached.socket)
            answer["nudged"] = True
    except Unpublished as reason:
        return {**answer, "nudge_skipped": str(reason)}
    except PaneUnavailable as error:
        answer["nudge_error"] = str(error)
    return {**answer, **facts(store, row, reached)}


def _line(sender: Session, message: str) -> str:
    """Return the typed line. Of the message it holds the task alone, and no character that a shell would act on."""
    task_id = _harmless(task_and_text(message)[0])
    if task_id:
        task = f" about task {task_id}"
    else:
        task = ""
    return f"Swarm message from session {_harmless(short(sender.id))}{task}. Call poll_messages to read it."


def _harmless(text: str) -> str:
    return "".join(c for c in text[:64] if c.isascii() and (c.isalnum() or c in "-_"))


# From a workspace's handle to the session that is there.


def resolve(
    store: Store, scope: str, viewer_label: str | None, handle: str, backend: str = "herdr", kind: str = "pane",
    validate: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Return the instance of `scope` in the pane `handle`, among those that `viewer_label` may meet.

    ``{backend, handle_kind, handle, canonical_handle, instance_id, ambiguous, matches}`` with ``probe_error`` if the
    workspace could not be asked. ``instance_id`` is None unless exactly one instance matches. With `validate` the
    workspace is asked for the pane's present name and agent, and published panes of instances are corrected. Raises
    SwarmError for an unknown backend or kind.
    """
    workspace = backend_named(backend)
    if kind not in workspace.kinds:
        known = ", ".join(workspace.kinds)
        raise SwarmError(f'{backend} has no handles of kind "{kind}"; there is: {known}')
    handle = handle.strip()
    if not handle:
        raise SwarmError("a blank handle names nothing")
    here = [(row, value) for row, value in _published(store, scope, viewer_label) if value["backend"] == backend]
    answer: dict[str, Any] = {"backend": backend, "handle_kind": kind, "handle": handle, "canonical_handle": handle}
    pane, error = None, ""
    if validate:
        try:
            # The socket for `handle`: that of the instance that published it, else the first published one
            exact = [pair for pair in here if handle in pane_handles(pair[1])]
            pane = workspace.resolve(
                handle, next((socket for row, value in [*exact, *here] if (socket := socket_of(row, value))), "")
            )
        except PaneUnavailable as reason:
            error = str(reason)
    if pane:
        names = {handle, pane.handle}
    else:
        names = {handle}
    found = [(row, value) for row, value in here if pane_handles(value) & names]
    if pane:
        answer["canonical_handle"] = pane.handle
        found = found or _moved(workspace, here, pane.handle)
        found = [(row, value) for row, value in found if not stranger_in(pane, row)]
    matches = [_match(store, row, value, pane) for row, value in found]
    answer.update(instance_id=matches[0]["instance_id"] if len(matches) == 1 else None)
    answer.update(ambiguous=len(matches) > 1, matches=matches)
    if error:
        return {**answer, "probe_error": error}
    return answer


def _published(store: Store, scope: str, viewer_label: str | None) -> list[tuple[Session, dict[str, Any]]]:
    known = store.panes.all_published()  # few sessions of many publish any
    rows = [row for row in map(store.instances.live, known) if row and row.scope == scope]
    rows = sorted((row for row in rows if may_meet(viewer_label, row.label)), key=lambda row: row.registered_at)
    return [(row, known[row.id]) for row in rows]


def _moved(
    workspace: Backend, here: list[tuple[Session, dict[str, Any]]], wanted: str
) -> list[tuple[Session, dict[str, Any]]]:
    """Return the instances with a published pane that is called `wanted` by now. Asks about each, for 5 s in all."""
    end = time.monotonic() + SECONDS
    found = []
    for row, value in here:
        if time.monotonic() >= end:
            break
        try:
            pane = workspace.resolve(value["handle"], socket_of(row, value))
        except PaneUnavailable:  # the pane may have closed
            continue
        if pane.handle == wanted:
            found.append((row, value))
    return found


def _match(store: Store, row: Session, value: dict[str, Any], pane: Pane | None) -> dict[str, Any]:
    repaired = False
    if pane:
        now = {"pane_id": pane.handle, "workspace_id": pane.workspace_id, "tab_id": pane.tab_id}
        repaired = store.panes.repair(row, value, now)
        if repaired:
            value = store.panes.published(row.id)
        value = {**value, "handle": pane.handle, "pane_id": pane.handle}
    shown = {"instance_id": row.id, "label": row.label, **pane_summary(value), **whole_pane(row.id, value)}
    if repaired:
        return {**shown, "identity_repaired": True}
    return shown
