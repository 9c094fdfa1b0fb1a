"""From an instance to the pane it is in: what it published, asked of its workspace, and checked."""

from __future__ import annotations

from typing import NamedTuple

from swarm_hook_core.labels import token
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import NAMES, OTHERS, harness_of
from swarm_mcp.settings import Settings
from swarm_mcp.store import Store
from swarm_mcp.store.user_interface import pane_summary
from swarm_mcp.workspace import backend
from swarm_mcp.workspace.interface import Backend, Pane, PaneUnavailable

UNPUBLISHED = "no workspace identity is published for that instance"


class Unpublished(SwarmError):
    """The instance is in no pane that anybody knows of."""


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
        workspace = backend(known["backend"])
    except SwarmError as error:
        raise PaneUnavailable(str(error)) from None
    socket = socket_of(row, known)
    pane = workspace.resolve(known["handle"], socket)
    other = stranger_in(pane, row)
    if other:
        raise PaneUnavailable(f"pane {known['handle']} is that instance's no longer: {other}")
    return Reached(workspace, pane, socket, _repaired(store, row, known, pane))


def facts(store: Store, row: Session, reached: Reached | None) -> dict:
    """How answers describe an instance's pane: as `reached`, else as published; empty where it is neither."""
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


def socket_of(row: Session, known: dict) -> str:
    """Where the workspace of a published pane listens: as published, in the environment, in the profile."""
    text = known.get("socket_path")
    if isinstance(text, str) and text and "\0" not in text:
        return text
    return Settings(token(row.label or "", "identity")).first("HERDR_SOCKET_PATH")


def stranger_in(pane: Pane, row: Session) -> str:
    """Who is in `pane` now, in words, where that is provably not instance `row`; else empty."""
    if pane.instance_id and pane.instance_id != row.id:
        return f"it reports to be instance {pane.instance_id}"
    # A workspace calls an agent by its command, which is also what harnesses are called; some labels say that.
    kinds = {harness_of(name) for name in (*NAMES, *OTHERS)}
    origin = token(row.label or "", "origin")
    kind = origin if origin in kinds else harness_of(origin)
    if kind and pane.agent in kinds and pane.agent != kind:
        return f"{pane.agent} runs there now, not {kind}"
    return ""


def _repaired(store: Store, row: Session, known: dict, pane: Pane) -> bool:
    found = {"pane_id": pane.handle, "workspace_id": pane.workspace_id, "tab_id": pane.tab_id}
    return store.panes.repair(row, known, found)
