"""What protects the sessions of a checkout, compared with what it was: what is found to be less is said.

A record in the state folder holds what was last seen. Commands of ours that lower something tell of it themselves, and
bring the record up to date. What they have not done (a setting that was edited, a store that was replaced, hooks that
are gone) is found when a session starts or a prompt comes: one event for people, and words for the sessions there.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import settings
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.protected import files, guard
from swarm_hook_core.state import config_path, mark_of, state_dir, write_private
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session

NAME = "protection"  # of the record in the state folder
LARGEST = 256 * 1024  # bytes of the record
MOST_CHECKOUTS, MOST_SCOPES = 200, 100
WEAKER = {"auto": settings.WORDS["auto"], "fail": ("open", "closed"), "strict": (False, True), "kernel": (False, True)}


def tell_lowered(what: str, words: str, only_here: bool) -> None:
    """Tell people and sessions, in this checkout or in all, that a command has lowered `what`; remember how it is."""
    from swarm_hook_core.state import local_store
    from swarm_mcp.folders import current_scope

    try:
        if local_store():
            with Store() as store:
                for scope in [current_scope()] if only_here else store.instances.scopes(MOST_SCOPES):
                    store.protection.lowered(scope, None, what, words)
    except SwarmError:
        pass  # the setting itself has been changed, and `status` and `doctor` show it
    remember()


def remember() -> None:
    """Take what there is now for what it should be: a person has just changed it."""
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
    """Find out what protects the session `row` less than it did, and tell.

    What was looked at is listed in the file `marks`, so that nobody looks again before it changes.
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
    """The files that say what protects the sessions of `scope`, with marks of what they are now, a line each."""
    common = guard.git_folder(scope)
    hooks = [os.path.join(folder, name) for folder in ("hooks", guard.GUARD_FOLDER) for name in guard.GUARDED]
    of_git = [os.path.join(common, name) for name in ("config", *hooks)] if common else []
    paths = [config_path(), *of_git, *[path for path, _client in files.settings_files()]]
    store_path = str(store.described().get("db_path") or "")
    lines = [str(store.events_so_far()), f"{mark_of(store_path, '@')} {store_path}"]
    return "\n".join([*lines, *(f"{mark_of(path)} {path}" for path in paths if "\n" not in path)])


# -------------------------------------------------------------------------- what is compared


def _settings_of(scope: str) -> dict:
    return {name: settings.in_file(name, scope).value for name in WEAKER}


def _settings_lowered(record: dict, scope: str) -> list[tuple[str, str]]:
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


def _store_replaced(record: dict, store: Store) -> list[tuple[str, str]]:
    path = str(store.described().get("db_path") or "")
    try:
        seen = os.stat(path)
    except OSError:
        return []
    mark, events = f"{seen.st_dev}:{seen.st_ino}", store.events_so_far()
    known = record["stores"].get(path)
    is_known = isinstance(known, list) and len(known) == 2 and isinstance(known[1], int)
    record["stores"] = {path: [mark, events]}
    # A new file may get the old one's number; but events are counted on, whatever is cleaned up.
    if not is_known or (known[0] == mark and events >= known[1]):
        return []
    return [("store", f"the store {path} was removed or replaced: locks and messages from before are gone")]


def _clients_gone(record: dict) -> list[tuple[str, str]]:
    known = record["clients"]
    now = _clients_now(known)
    record["clients"] = now
    return [
        ("hooks", f"{path} no longer holds swarm's plugin{_clock(path)}: writes of {client} are not checked any more")
        for path, client in files.settings_files()
        if known.get(path, [0, 0, False])[2] and not now.get(path, [0, 0, False])[2]
    ]


def _clients_now(known: dict) -> dict:
    """Each client's file of settings that is there: when it was changed, its size, and whether swarm stands in it."""
    found = {}
    for path, _client in files.settings_files():
        try:
            seen = os.stat(path)
        except OSError:
            continue
        before = known.get(path)
        if isinstance(before, list) and before[:2] == [seen.st_mtime_ns, seen.st_size]:
            found[path] = before
        else:
            found[path] = [seen.st_mtime_ns, seen.st_size, files.holds_swarm(path)]
    return found


def _guard_gone(record: dict, scope: str) -> list[tuple[str, str]]:
    common = guard.git_folder(scope)
    if not common:
        return []
    was = bool(record["guards"].get(common)) or guard.has_guard_record(common)
    if guard.guard_is_wired(common):
        record["guards"][common] = True
        return []
    if not was or record["guards"].get(common) == "gone":
        return []
    from swarm_mcp.guard import hooks

    try:
        found = hooks.state(scope)
    except SwarmError:
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
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _clock(path: str) -> str:
    try:
        return time.strftime(" at %H:%M", time.localtime(os.stat(path).st_mtime))
    except OSError:
        return ""


# -------------------------------------------------------------------------- the record


def _path() -> str:
    return os.path.join(state_dir(), NAME)


def _read() -> dict:
    """The record, each part an object; empty ones where there is none that can be read."""
    found: object = None
    try:
        with open(_path(), encoding="utf-8") as file:
            found = loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        found = None
    whole = found if isinstance(found, dict) else {}
    parts = {name: whole.get(name) for name in ("settings", "stores", "clients", "guards")}
    return {name: part if isinstance(part, dict) else {} for name, part in parts.items()}


def _write(record: dict) -> None:
    try:
        write_private(_path(), dumps(record))
    except OSError:
        return  # nothing is remembered then: the next look finds the same once more
