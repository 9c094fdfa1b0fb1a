"""A session's terminal pane: to find it, look at it, and wake the agent in it.

The message itself is stored first. A pane only gets a fixed line about it. Text of another session is never typed: the
pane may be at a shell by now, and would run it.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple, Protocol

from swarm_hook_core.json_text import loads
from swarm_hook_core.process import run
from swarm_hook_core.untrusted_text import token
from swarm_mcp import contributions
from swarm_mcp.answers.people import short
from swarm_mcp.domain import REMOTE, Session, of_task, task_and_text
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import NAMES, harness_of
from swarm_mcp.runtimes.json_editor import object_of, text_of
from swarm_mcp.runtimes.user_settings import Settings
from swarm_mcp.store import Store
from swarm_mcp.store.messages import may_meet
from swarm_mcp.store.user_interface import pane_handles, pane_summary, whole_pane

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


# The workspaces with panes. A backend is a class here and a line in `BACKENDS`.
#
# A backend talks to its program as a process of its own, never for longer than `SECONDS` at a time, and reports every
# failure as `PaneUnavailable`.

SECONDS = 5.0


class PaneUnavailable(SwarmError):
    """The workspace does not know the pane, or does not answer. The text says it in one line."""


class Pane(NamedTuple):
    """A pane as its workspace describes it now. Unknown fields are empty.

    `handle` is the pane's present name. `agent` is the kind of agent in it (``claude``, ``codex``), `status` its state:
    idle, working, blocked, done, unknown. `instance_id` is the instance that the agent itself has reported.
    """

    handle: str
    agent: str = ""
    status: str = ""
    instance_id: str = ""
    workspace_id: str = ""
    tab_id: str = ""


class Backend(Protocol):
    """One workspace program. `socket` says where its server listens, empty for the usual place."""

    name: str
    kinds: tuple[str, ...]

    def resolve(self, handle: str, socket: str = "") -> Pane:
        """The pane that `handle`, its present or an earlier name, means. Raises PaneUnavailable."""

    def wake(self, handle: str, text: str, socket: str = "") -> None:
        """Type one line into the pane and press Enter. Raises PaneUnavailable."""

    def read(self, handle: str, source: str, lines: int, socket: str = "") -> str:
        """Text of the pane: ``visible``, ``recent`` or ``recent-unwrapped``. Raises PaneUnavailable."""


# ---------------------------------------------------------------- Herdr

REPORTER = "swarm-mcp:"  # ``swarm-mcp:<runtime>:<instance>``: an agent's report of itself to herdr
LONGEST_ERROR = 200


class Herdr:
    """Herdr, a workspace of terminals for agents, asked through its command.

    ``herdr pane get`` prints ``{"result": {"pane": {pane_id, agent, agent_status, workspace_id, tab_id, ...}}}`` (0.7
    to 0.9); a failure is exit code 1 with ``{"error": {"code", "message"}}`` on standard error. A pane that was moved
    has a new id and answers to its old ones.
    """

    name = "herdr"
    kinds: tuple[str, ...] = ("pane",)

    def resolve(self, handle: str, socket: str = "") -> Pane:
        """See `Backend`."""
        try:
            answer = loads(self._run(socket, "get", _checked(handle)))
        except (ValueError, RecursionError):
            raise PaneUnavailable("herdr pane get did not answer with JSON") from None
        pane = _inside(_inside(answer, "result"), "pane")
        if not text_of(pane.get("pane_id")):
            raise PaneUnavailable(_complaint(answer) or "herdr pane get named no pane")
        return Pane(
            handle=text_of(pane.get("pane_id")),
            agent=text_of(pane.get("agent")),
            status=text_of(pane.get("agent_status")),
            instance_id=_reported(pane),
            workspace_id=text_of(pane.get("workspace_id")),
            tab_id=text_of(pane.get("tab_id")),
        )

    def wake(self, handle: str, text: str, socket: str = "") -> None:
        """See `Backend`."""
        self._run(socket, "send-text", _checked(handle), text)
        self._run(socket, "send-keys", handle, "enter")

    def read(self, handle: str, source: str, lines: int, socket: str = "") -> str:
        """See `Backend`."""
        argv = ("read", _checked(handle), "--source", source, "--lines", str(lines), "--format", "text")
        return self._run(socket, *argv)

    def _run(self, socket: str, *words: str) -> str:
        program = os.path.expanduser(os.environ.get("SWARM_HERDR_BIN", "").strip() or "herdr")
        settings = {}
        if socket:
            settings = {"HERDR_SOCKET_PATH": socket}
        done = run([program, "pane", *words], SECONDS, environment=settings)
        if done.code != 0:
            raise PaneUnavailable(f"herdr pane {words[0]} failed: {_reason(done)}")
        return str(done.stdout)


def _checked(handle: str) -> str:
    # Handles come from other sessions. None may pass for a flag, or for several words.
    if not handle.isprintable() or handle.startswith("-") or not handle.strip() or len(handle) > 200:
        raise PaneUnavailable(f"{handle[:40]!r} cannot be the name of a pane")
    return handle


def _reason(done: Any) -> str:
    for text in (done.stderr, done.stdout):
        try:
            known = ""
            if text.strip():
                known = _complaint(loads(text))
        except (ValueError, RecursionError):
            known = ""
        if known:
            return known
    lines = done.stderr.split("\n") + done.stdout.split("\n")
    return next((line.strip() for line in lines if line.strip()), f"exit code {done.code}")[:LONGEST_ERROR]


def _complaint(answer: object) -> str:
    error = _inside(answer, "error")
    return (text_of(error.get("message")) or text_of(error.get("code")))[:LONGEST_ERROR]


def _reported(pane: dict[str, Any]) -> str:
    session = _inside(pane, "agent_session")
    for text in (text_of(session.get("source")), text_of(session.get("value")), text_of(pane.get("source"))):
        if text.startswith(REPORTER):
            return text.rpartition(":")[2]
    return text_of(_inside(pane, "tokens").get("swarm_instance_id")) or text_of(pane.get("swarm_instance_id"))


def _inside(value: object, key: str) -> dict[str, Any]:
    found = object_of(value).get(key)
    return object_of(found)


BACKENDS: dict[str, Backend] = {"herdr": Herdr()}


def backend_named(name: str) -> Backend:
    """Return the backend of this name. Raises SwarmError without any."""
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise SwarmError(f'Unsupported workspace backend "{name}"; there is: {known}')
    return BACKENDS[name]
