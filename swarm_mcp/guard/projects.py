"""Projects with files of swarm's: git hooks of `swarm-mcp guard`, and the output of `swarm-mcp init`.

No plugin owns these files, so they stay when the plugins go. Their places are noted in the state folder, and looked up
in the folders that sessions have worked in.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import NamedTuple

from swarm_hook_core.state import state_dir, store_path, write_private
from swarm_mcp.errors import SwarmError
from swarm_mcp.guard import hooks
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes import client_settings
from swarm_mcp.store import Store

MOST_SCOPES = 200  # places of sessions that are looked at, beside those that are noted
SKILLS = ("swarm-mcp", "swarm")
_INIT_SERVERS = ".mcp.json"


class Left(NamedTuple):
    """Files of swarm's in one project: its `folder`, their kind, and the command that removes them."""

    folder: str
    what: str
    mend: str


def note(folder: str) -> None:
    """Remember that the project in `folder` has something of swarm's. Without a state folder it is not remembered."""
    known = _noted()
    if folder in known:
        return
    try:
        write_private(_file(), json.dumps([*known, folder], indent=2) + "\n")
    except OSError:  # a full disk: the guard works all the same
        return


def left() -> list[Left]:
    """Return swarm's files in all noted projects, and forget projects without any."""
    noted = _noted()
    found: list[Left] = []
    # The places that sessions have worked in, as far as the store knows them
    if not os.path.exists(store_path()):
        scopes = []
    else:
        try:
            with Store(read_only=True) as store:
                scopes = store.instances.scopes(MOST_SCOPES)
        except SwarmError:  # doctor reports a broken store
            scopes = []
    for folder in dict.fromkeys([*noted, *scopes]):
        found += _in(folder)
    having = [one.folder for one in found]
    remaining = [folder for folder in noted if folder in having]
    if remaining != noted:
        try:
            write_private(_file(), json.dumps(remaining) + "\n") if remaining else os.remove(_file())
        except OSError:
            pass  # it is looked at again the next time
    return found


def take_out() -> list[str]:
    """Remove everything that `left` finds. Returns the failures, in sentences."""
    failed = []
    for one in left():
        try:
            if one.mend.startswith("swarm-mcp guard"):
                hooks.uninstall(one.folder)
            else:
                _take_init(Path(one.folder))
        except (SwarmError, OSError) as error:
            failed.append(f"{one.folder}: {error}")
    return failed


# ---------------------------------------------------------------- innards


def _file() -> str:
    return os.path.join(state_dir(), "projects.json")


def _noted() -> list[str]:
    try:
        with open(_file(), encoding="utf-8") as file:
            listed = json.load(file)
    except (OSError, ValueError, RecursionError):  # missing, or edited by hand
        return []
    if isinstance(listed, list):
        return [folder for folder in listed if isinstance(folder, str)]
    return []


def _in(folder: str) -> list[Left]:
    found = []
    if _is_guarded(folder):
        mend = f"swarm-mcp guard uninstall --dir {shlex.quote(folder)}"
        found.append(Left(folder, "git hooks of `swarm-mcp guard`, which let everything pass without swarm", mend))
    files = _of_init(Path(folder))
    if files:
        what = f"{', '.join(files)}, from `swarm-mcp init`"
        found.append(Left(folder, what, "swarm-mcp uninstall --projects"))
    return found


def _is_guarded(folder: str) -> bool:
    if not os.path.lexists(os.path.join(folder, ".git")):
        return False
    try:
        return bool(hooks.state(folder).way)
    except (SwarmError, OSError):  # no repository any more
        return False


def _of_init(folder: Path) -> list[str]:
    """The files of a project that `swarm-mcp init` wrote, or has an entry in, relative to it."""
    if client_settings.has_server(folder / _INIT_SERVERS):
        found = [_INIT_SERVERS]
    else:
        found = []
    return found + [f".claude/skills/{name}" for name in SKILLS if _is_our_copy(folder, name)]


def _is_our_copy(folder: Path, name: str) -> bool:
    """Return True if the project has this skill of ours as it was copied."""
    copy, source = folder / ".claude" / "skills" / name, plugin_source() / "skills" / name
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    try:
        return not copy.is_symlink() and all(
            (copy / path.relative_to(source)).read_bytes() == path.read_bytes() for path in files
        )
    except OSError:  # incomplete, so not ours
        return False


def _take_init(folder: Path) -> None:
    for name in SKILLS:
        if _is_our_copy(folder, name):
            copy, source = folder / ".claude" / "skills" / name, plugin_source() / "skills" / name
            for path in sorted(source.rglob("*"), reverse=True):
                here = copy / path.relative_to(source)
                here.unlink() if path.is_file() else _drop(here)
            for made in (copy, copy.parent, copy.parent.parent):
                _drop(made)
    client_settings.take_server(folder / _INIT_SERVERS)


def _drop(folder: Path) -> None:
    """Remove a folder that is empty."""
    try:
        folder.rmdir()
    except OSError:  # it has other files
        return
