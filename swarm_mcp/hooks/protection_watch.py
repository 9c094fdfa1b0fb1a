"""Watches the protection of a checkout's sessions: settings, store and hooks, compared with their last known state.

A record in the state folder holds that state. Our own commands that lower a protection report it and update the record.
Any other loss (an edited setting, a replaced store, missing hooks) is found when a session starts or a prompt comes:
one event for people, and words for the sessions there.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import protected, settings
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.state import config_path, local_store, mark_of, read_private, state_dir, write_private
from swarm_mcp.domain import Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.store import Store

NAME = "protection"  # of the record in the state folder
LARGEST = 256 * 1024  # bytes of the record
MOST_CHECKOUTS, MOST_SCOPES = 200, 100
WEAKER = {
    "protect": settings.WORDS["protect"], "fail": ("open", "closed"), "fence": ("off", "on"), "merge": ("on", "off"),
    "strict": (False, True), "kernel": (False, True),
}  # fmt: skip


def tell_lowered(what: str, words: str, only_here: bool) -> None:
    """Tell people and sessions, in this checkout or in all, that a command has lowered `what`. Update the record."""

    try:
        if local_store():
            with Store() as store:
                for scope in [current_scope()] if only_here else store.instances.scopes(MOST_SCOPES):
                    store.protection.lowered(scope, None, what, words)
    except SwarmError:
        pass  # the setting itself has been changed, and `status` and `doctor` show it
    remember()


def remember() -> None:
    """Record the present state as the right one, because a person has just changed it."""
    record = _read()
    for scope in record["settings"]:
        record["settings"][scope] = _settings_of(scope)
    record["clients"] = _clients_now(record["clients"])
    _write(record)


def remember_guard(common: str, is_guarded: bool) -> None:
    """Note that the repository with this git folder is guarded, or that a person has taken the guard away."""
    record = _read()
    record["guards"].pop(common, None)
    if is_guarded:
        record["guards"][common] = True
    _write(record)


def look(store: Store, row: Session, marks: str) -> None:
    """Compare the protection of the session `row` with the record, and report losses.

    The file `marks` lists the files that were looked at, so that the next look waits until one has changed.
    """
    record = _read()
    before = dumps(record)
    found = [
        *_settings_lowered(record, row.scope),
        *_store_replaced(record, store),
        *_guard_gone(record, row.scope),
        *_clients_gone(record),
    ]
    for what, words in found:
        store.protection.lowered(row.scope, None, what, words)
    if dumps(record) != before:
        _write(record)
    try:
        write_private(marks, listed(store, row.scope))
    except OSError:
        return  # it is looked at again then


def listed(store: Store, scope: str) -> str:
    """Return the files that decide on the protection of sessions in `scope`, a line each, with a mark that changes with
    the file.
    """
    common = protected.git_folder(scope)
    hooks = [os.path.join(folder, name) for folder in ("hooks", protected.GUARD_FOLDER) for name in protected.GUARDED]
    of_git = []
    if common:
        of_git = [os.path.join(common, name) for name in ("config", *hooks)]
    paths = [config_path(), *of_git, *[path for path, _client in protected.settings_files()]]
    store_path = str(store.described().get("db_path") or "")
    lines = [str(store.events_so_far()), f"{mark_of(store_path, '@')} {store_path}"]
    return "\n".join([*lines, *(f"{mark_of(path)} {path}" for path in paths if "\n" not in path)])


# -------------------------------------------------------------------------- what is compared


def _settings_of(scope: str) -> dict[str, Any]:
    return {name: settings.in_file(name, scope).value for name in WEAKER}


def _settings_lowered(record: dict[str, Any], scope: str) -> list[tuple[str, str]]:
    known, now = record["settings"].get(scope), _settings_of(scope)
    if known == now:
        return []
    record["settings"][scope] = now
    while len(record["settings"]) > MOST_CHECKOUTS:
        record["settings"].pop(next(iter(record["settings"])))
    if not isinstance(known, dict):
        return []
    found = []
    for name, order in WEAKER.items():
        was = known.get(name)
        if was in order and order.index(now[name]) < order.index(was):
            at = _clock(config_path())
            how = f"{config_path()} was changed{at}, by no command of swarm's"
            found.append((name, f"`{name}` is {_said(now[name])} in this checkout, and was {_said(was)}: {how}"))
    return found


def _store_replaced(record: dict[str, Any], store: Store) -> list[tuple[str, str]]:
    path = str(store.described().get("db_path") or "")
    try:
        seen = os.stat(path)
    except OSError:  # a missing store is reported elsewhere
        return []
    mark, events = f"{seen.st_dev}:{seen.st_ino}", store.events_so_far()
    known = record["stores"].get(path)
    is_known = isinstance(known, list) and len(known) == 2 and isinstance(known[1], int)
    record["stores"] = {path: [mark, events]}
    # A new file may get the old one's number. But the numbers of events only grow, even after a cleanup.
    if not is_known or (known[0] == mark and events >= known[1]):
        return []
    return [("store", f"the store {path} was removed or replaced: locks and messages from before are gone")]


def _clients_gone(record: dict[str, Any]) -> list[tuple[str, str]]:
    known = record["clients"]
    now = _clients_now(known)
    record["clients"] = now
    return [
        ("hooks", f"{path} no longer holds swarm's plugin{_clock(path)}: writes of {client} are not checked any more")
        for path, client in protected.settings_files()
        if known.get(path, [0, 0, False])[2] and not now.get(path, [0, 0, False])[2]
    ]


def _clients_now(known: dict[str, Any]) -> dict[str, Any]:
    """Return the settings file of each client: time of its change, size, and True if swarm is in it."""
    found = {}
    for path, _client in protected.settings_files():
        try:
            seen = os.stat(path)
        except OSError:  # the client has no settings
            continue
        before = known.get(path)
        if isinstance(before, list) and before[:2] == [seen.st_mtime_ns, seen.st_size]:
            found[path] = before
        else:
            found[path] = [seen.st_mtime_ns, seen.st_size, protected.holds_swarm(path)]
    return found


def _guard_gone(record: dict[str, Any], scope: str) -> list[tuple[str, str]]:
    common = protected.git_folder(scope)
    if not common:
        return []
    was = bool(record["guards"].get(common)) or protected.has_guard_record(common)
    if protected.guard_is_wired(common):
        record["guards"][common] = True
        return []
    if not was or record["guards"].get(common) == "gone":
        return []
    from swarm_mcp.guard import hooks

    try:
        found = hooks.state(scope)
    except SwarmError:  # not in a repository
        return []
    if found.way in ("beside", "dispatcher"):
        record["guards"][common] = True
        return []
    record["guards"][common] = "gone"
    words = (
        f"the guard of commits and pushes in {scope} is out of force: git runs the hooks in {found.folder}, and the"
        " guard's are not among them (a hook manager that installs itself anew does that). A person brings it back:"
        " `swarm-mcp guard install`"
    )
    return [("guard", words)]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return {True: "on", False: "off"}.get(value, str(value))
    return str(value)


def _clock(path: str) -> str:
    try:
        return time.strftime(" at %H:%M", time.localtime(os.stat(path).st_mtime))
    except OSError:  # gone: no time to tell
        return ""


# -------------------------------------------------------------------------- the record


def _path() -> str:
    return os.path.join(state_dir(), NAME)


def _read() -> dict[str, Any]:
    """Return the record. Each part is an object, empty if it cannot be read."""
    found: object = None
    try:
        found = loads(read_private(_path(), LARGEST).decode())
    except (OSError, ValueError, RecursionError):
        found = None
    record: dict[str, Any] = {"settings": {}, "stores": {}, "clients": {}, "guards": {}}
    if isinstance(found, dict):
        record.update((name, found[name]) for name in record if isinstance(found.get(name), dict))
    return record


def _write(record: dict[str, Any]) -> None:
    try:
        write_private(_path(), dumps(record))
    except OSError:
        return  # nothing is remembered then: the next look finds the same once more
