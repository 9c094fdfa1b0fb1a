"""Traces of work across machines: written and unpushed files, with their authors.

A session's trace is a document: ``{machine, files}``, `files` with the Unix seconds of the last write to each, by its
path from the top of the work tree. It is made from the journals of hooks (``swarm_hook_core.traces``) and from git. The
traces of other machines become journals beside those, so that a hook treats them as sessions of this machine, without a
connection or another query.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.clock import Budget
from swarm_hook_core.lookup import storable
from swarm_hook_core.state import make_private, state_dir, write_private
from swarm_hook_core.traces import KEEP, entry, first_line, journal_name, keys_of, others_in, place_of
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import OnlookersTrail
from swarm_mcp.domain import REMOTE
from swarm_mcp.store import Store
from swarm_mcp.team.parts import TeamDocuments
from swarm_mcp.team.protocol import KEPT, TRACE, DocumentRow, Item, item
from swarm_mcp.team.store_documents import canonical, path_at, place_in

Marks = dict[str, tuple[int, int]]

MOST_FILES = 100  # of one session, the last ones
LONGEST_PLACE = 1000  # characters
SECONDS = 0.3  # seconds of processor time, for commands that have not been analysed yet
PATIENCE_SECONDS = 0.05  # seconds for one look; slower results are posted after the next
PAUSE_SECONDS = 4.0  # between two looks at journals that grow all the time
GIT_SECONDS = 20.0  # seconds after which git is asked again without a grown journal: commits and pushes end traces
MOVED_SECONDS = 60  # so much later is worth telling of a file that is known to be written
_ELSEWHERE = REMOTE + "."  # with this the names of journals of other machines' sessions begin
_PAST_NS = 10 * 10**9  # these journals look older than they are: nothing in them is about to be made


class Traces:
    """The traces of one `repository`, in the work trees `tops` of this `machine`."""

    def __init__(self, store: Store, repository: str, machine: str, tops: Iterable[str]):
        self._store = store
        self._rows = TeamDocuments(store)
        self._repository = repository
        self._machine = machine
        self._tops = sorted(tops)
        self._own_end = canonical({"machine": machine})[1:]  # of the text of a body: names stand in order
        self._marks: Marks = {}
        self._looked = -GIT_SECONDS
        self._here: dict[str, dict[str, int]] = {}
        self._look: threading.Thread | None = None
        self._written: dict[str, str] | None = None  # path of a journal -> its source
        self._is_new = True  # True until the journals of others match the store

    # ---------------------------------------------------------------- of this machine

    def differences(self) -> list[Item]:
        """Return the changes that the server lacks, removals included."""
        here = self._found()
        known = {
            key: (row.version, json.loads(row.body)["files"])
            for key, row in self._rows.all_known(self._repository, TRACE).items()
            if row.body is not None and row.body.endswith(self._own_end)
        }
        wanted = [item(TRACE, key, version, None) for key, (version, _) in known.items() if key not in here]
        for key, files in here.items():
            version, there = known.get(key, (0, {}))
            if files.keys() != there.keys() or any(at - there[place] >= MOVED_SECONDS for place, at in files.items()):
                wanted.append(item(TRACE, key, version, {"machine": self._machine, "files": files}))
        return wanted

    def _found(self) -> dict[str, dict[str, int]]:
        """Return the recently written, unpushed files of each live session, with the time of the last write."""
        if self._look is None and self._is_to_look():
            self._look = threading.Thread(target=self._look_now, name="team traces", daemon=True)
            self._look.start()
        if self._look is not None:
            self._look.join(PATIENCE_SECONDS)
            if not self._look.is_alive():
                self._look = None
        return self._here

    def _is_to_look(self) -> bool:
        now = time.monotonic()
        if now - self._looked < PAUSE_SECONDS:
            return False
        marks = self._journal_marks()
        if marks == self._marks and (not marks or now - self._looked < GIT_SECONDS):
            return False
        self._marks, self._looked = marks, now
        return True

    def _look_now(self) -> None:
        """In a thread of its own, since git may take long, and others wait for locks to be confirmed."""
        try:
            if self._marks:
                self._here = self._asked()
            else:
                self._here = {}
        except Exception as error:  # the store is busy; the next look may do
            state.record_hourly("team", "traces", state.describe(error))

    def _journal_marks(self) -> Marks:
        found: Marks = {}
        for place in self._places():
            for path in others_in(place, ""):
                if not os.path.basename(path).startswith(_ELSEWHERE):
                    for file in (path, path + ".1"):
                        try:
                            there = os.stat(file)
                        except OSError:  # removed meanwhile
                            continue
                        found[file] = there.st_size, there.st_mtime_ns
        return found

    def _asked(self) -> dict[str, dict[str, int]]:
        oldest = time.time() - KEPT[TRACE]
        found: dict[str, dict[str, int]] = {}
        for top in self._tops:
            trail = OnlookersTrail("team", "traces", top, KEEP)
            try:
                with closing(self._store.as_hooks_read_it()) as reader:
                    traces = Meetings(trail, reader, time.time(), Budget(SECONDS)).unpushed_of_each_below(top)
            except (OSError, ValueError):
                continue  # the work tree, or a journal, has just gone
            for trace in sorted(traces, key=lambda one: -one.at_ns):
                place, at = place_in(trace.path, self._tops) or "", int(trace.at_ns / 1e9)
                files = found.setdefault(trace.held.instance_id, {})
                if at >= oldest and len(files) < MOST_FILES and 0 < len(place) <= LONGEST_PLACE and storable(place):
                    files[place] = max(at, files.get(place, 0))
        return {session: files for session, files in found.items() if files}

    # ------------------------------------------------------------ of other machines

    def take(self, row: DocumentRow) -> None:
        """Inside a transaction: a session's trace is new on the server, or was changed."""
        files = _files_in(row["body"])
        body = {"machine": row["machine"], "files": files}  # the server adds the author
        self._rows.note(self._repository, TRACE, row["key"], row["version"], canonical(body))
        self.changed()

    def changed(self) -> None:
        """Note that the journals of other machines' sessions differ from the store."""
        self._is_new = True

    def mirror(self) -> None:
        """Write the journals of other machines' sessions from the store. Outside of transactions; never fails."""
        if not self._is_new:
            return
        try:
            self._mirror()
        except OSError as error:
            state.record_hourly("team", "traces", state.describe(error))
            return  # tried again with the next change
        self._is_new = False

    def _mirror(self) -> None:
        if self._written is None:
            self._written = {path: "" for place in self._places() for path in _journals_in(place)}
        wanted: dict[str, tuple[str, str, dict[str, int]]] = {}
        for session, row in self._rows.all_known(self._repository, TRACE).items():
            if row.body is None or row.body.endswith(self._own_end):
                continue
            files = json.loads(row.body)["files"]
            for place in self._places() if files else ():
                wanted[os.path.join(place, journal_name(REMOTE, session))] = row.body, session, files
        for path in self._written.keys() - wanted.keys():
            _remove(path)
            del self._written[path]
        for path, (text, session, files) in wanted.items():
            if self._written.get(path) != text:
                self._write(path, session, files)
                self._written[path] = text

    def _write(self, path: str, session: str, files: dict[str, int]) -> None:
        """Put a journal in its place, whole and at once."""
        tops = self._places()[os.path.dirname(path)]
        lines = [b"\n", first_line(REMOTE, session, tops[0])]
        for place, at in sorted(files.items(), key=lambda one: one[1]):
            keys = [key for top in tops if (file := path_at(place, top)) for key in keys_of(file)]
            lines += [entry(at * 10**9, "far", "", "", key) for key in keys]
        make_private(os.path.dirname(path))
        # a file in the folder itself would count as a session's journal
        scratch = os.path.join(state_dir(), "team", "journal")
        write_private(scratch, b"".join(lines).decode("utf-8", "surrogateescape"))
        past = time.time_ns() - _PAST_NS
        os.utime(scratch, ns=(past, past))
        os.replace(scratch, path)

    def _places(self) -> dict[str, list[str]]:
        return _places_of(self._tops)


def leave(gone: Iterable[str], tops: Iterable[str]) -> None:
    """Remove the journals of other machines' sessions in work trees that take part no more; `tops`: those that do."""
    for place in _places_of(gone).keys() - _places_of(tops).keys():
        for path in _journals_in(place):
            _remove(path)


def _places_of(tops: Iterable[str]) -> dict[str, list[str]]:
    """Return the folders of journals of these work trees, with the tops of those."""
    found: dict[str, list[str]] = {}
    for top in tops:
        try:
            found.setdefault(place_of(top), []).append(top)
        except OSError:
            continue  # it has gone
    return found


def _journals_in(place: str) -> list[str]:
    """Return the journals of other machines' sessions in this folder."""
    return [path for path in others_in(place, "") if os.path.basename(path).startswith(_ELSEWHERE)]


def _files_in(body: Any) -> dict[str, int]:
    """Return the files that a trace's document says."""
    if isinstance(body, dict):
        given = body.get("files")
    else:
        given = None
    if not isinstance(given, dict):
        return {}
    return {
        place: at
        for place, at in list(given.items())[:MOST_FILES]
        if isinstance(at, int) and 0 <= at < 2**33 and place and len(place) <= LONGEST_PLACE and path_at(place, "/x")
    }


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        return  # it has gone; or it stays until it is old
