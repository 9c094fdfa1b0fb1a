"""The files that the command of a kept try wrote: as a patch, and back into the checkout.

<state>/tries/<work tree>/kept-<caller>/
    a/, b/    the files before and after the command, by their paths from the top
    try.json  its command and its files

Each caller has one. A file is brought back beside the lines that the checkout has got meanwhile, and those that the try
was without, merged in three ways. It counts as written by the caller; `swarm-mcp undo --undo ID` takes it back.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Sequence

from swarm_hook_core.repository import Tree
from swarm_hook_core.state import make_private, write_private
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_mcp.changes.commit.git import Git
from swarm_mcp.changes.dirty import present, state_now
from swarm_mcp.changes.planning import Plan
from swarm_mcp.changes.tries.folder import Folder, place_of, remove
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.changes.writing import LINK, FileUndo, Record, mode_of, mode_of_new_file, with_run_right
from swarm_mcp.domain import Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store import Store

LARGEST = 64 << 20  # bytes of written files that are kept


def folder_of(tree: Tree, caller: tuple[str, str]) -> str:
    """Return the folder of a caller's kept try, `caller`: its runtime and session id, empty for a person."""
    name = "-".join(caller).encode().hex()[:64] or "person"
    return os.path.join(place_of(tree.own), f"kept-{name}")


def keep(folder: Folder, root: str, names: Sequence[str], caller: tuple[str, str], argv: Sequence[str]) -> None:
    """Keep the files that a command wrote below `root`, in the place of the caller's last ones. Raises OSError."""
    kept = folder_of(folder.tree, caller)
    remove(kept)
    make_private(kept)
    total = 0
    for side in ("a", "b"):
        make_private(os.path.join(kept, side))
    for name in names:
        for side, path in (("a", folder.before(name)), ("b", os.path.join(root, name))):
            if not _is_file(path):
                continue
            total += os.lstat(path).st_size
            if total > LARGEST:
                remove(kept)
                raise Refused(f"the command wrote more than {LARGEST >> 20} MiB of files: they are not kept")
            target = os.path.join(kept, side, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
    write_private(os.path.join(kept, "try.json"), json.dumps({"argv": list(argv), "files": list(names)}))
    write_private(os.path.join(kept, "top"), folder.tree.top)
    write_private(os.path.join(kept, "lock"), "")


def _is_file(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False  # missing
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


class Written:
    """The files of a caller's kept try, those of `names` alone if there are any. Raises Refused without a kept try."""

    def __init__(self, tree: Tree, caller: tuple[str, str], names: Sequence[str] = ()):
        self._tree = tree
        self._kept = folder_of(tree, caller)
        try:
            with open(os.path.join(self._kept, "try.json"), encoding="utf-8", errors="surrogateescape") as file:
                found = [str(name) for name in json.load(file)["files"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise Refused("no try of yours is kept here: swarm-mcp try --keep -- COMMAND") from None
        missing = [name for name in names if not any(_is_at(one, name) for one in found)]
        if missing:
            raise Refused(f"the kept try wrote no {missing[0]}; it wrote {', '.join(found[:10]) or 'nothing'}")
        self.names = [one for one in found if not names or any(_is_at(one, name) for name in names)]

    def patch(self) -> bytes:
        """Return the files as a patch."""
        git, words = Git(self._tree.top), ["diff", "--no-index", "--binary", "--no-renames", "--no-ext-diff"]
        parts = []
        for name in self.names:
            sides = [os.path.join(side, name) for side in ("a", "b")]
            for number, side in enumerate(sides):
                if not os.path.lexists(os.path.join(self._kept, side)):
                    sides[number] = os.devnull
            more = ["--no-textconv", "--src-prefix=", "--dst-prefix=", *sides]
            parts.append(git.run([*words, *more], folder=self._kept).stdout)
        return b"".join(parts)

    def apply(self, store: Store, session: Session | None, folder: str) -> Record | None:
        """Bring all files back, or no file. Return None if the checkout has them already. Raises SwarmError."""
        undoing, caller = Undoing(store, session, folder), ("", "")
        if session is not None and session.session_id:
            caller = (session.runtime or "", session.session_id)
        try:
            return undoing.run(self._plan, caller, "", False)[1]
        except NotUndone as error:
            raise Refused(str(error).replace("nothing was undone", "nothing was brought back")) from None
        except OSError as error:
            raise SwarmError(f"nothing was brought back: {error.strerror or error}") from None

    def _plan(self) -> Plan:
        plan = Plan()
        plan.files = [one for name in self.names if (one := self._change_of(name)) is not None]
        return plan

    def _change_of(self, name: str) -> FileUndo | None:
        """Return the change that brings a file back. Raises Refused for a conflict."""
        one = FileUndo(os.path.join(self._tree.top, name))
        one.state = state_now(one.path)
        found, one.before = present(one.path)
        base, after = (present(os.path.join(self._kept, side, name)) for side in ("a", "b"))
        if found is not None:
            one.mode_before = mode_of(found)
        if after[0] is not None:
            one.after, one.mode_after = after[1], mode_of(after[0])
            if one.mode_after != LINK:
                own = one.mode_before
                if found is None or own == LINK:
                    own = mode_of_new_file()
                one.mode_after = with_run_right(own, bool(after[0].st_mode & stat.S_IXUSR))
        one.is_whole = LINK in (one.mode_before, one.mode_after) or any(
            len(data or b"") > LIMIT_BYTES for data in (one.before, one.after)
        )
        if (one.before, one.mode_before) == (one.after, one.mode_after):
            return None
        if one.before != base[1]:
            if None in (one.before, base[1], one.after) or one.is_whole:
                raise Refused(f"{name} has changed here in another way: bring it back by hand (try --diff {name})")
            one.after = self._merged(name, one.before or b"")
        return one

    def _merged(self, name: str, now: bytes) -> bytes:
        path = os.path.join(self._kept, "now")
        with open(path, "wb") as file:
            file.write(now)
        sides = [os.path.join(self._kept, side, name) for side in ("a", "b")]
        done = Git(self._tree.top).run(["merge-file", "-p", "-q", path, *sides])
        if done.returncode:
            raise Refused(f"{name} has other lines here in the same places: bring it back by hand (try --diff {name})")
        return done.stdout


def _is_at(name: str, place: str) -> bool:
    return not place or name == place or name.startswith(place.rstrip("/") + "/")
