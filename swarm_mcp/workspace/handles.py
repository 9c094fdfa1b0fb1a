"""From a workspace's handle to the session that is there."""

from __future__ import annotations

import time
from typing import Any

from swarm_mcp.answers.views import may_meet
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.user_interface import pane_handles, pane_summary, whole_pane
from swarm_mcp.workspace import backend as backend_named
from swarm_mcp.workspace.interface import SECONDS, Backend, Pane, PaneUnavailable
from swarm_mcp.workspace.panes import socket_of, stranger_in


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
