"""The journals, versions and inputs of a place, each read once: for a question about many of its files.

A question about one file reads them as well. One about many files makes `Notes`, and hands them on to each `History`:
so it costs as much for each file, however many there are. Later entries and versions are not seen, but for
`Notes.rounds`.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator

from swarm_hook_core.paths import keys_for, real_paths
from swarm_hook_core.traces import (
    escaped,
    journal,
    kept_dir,
    names_in,
    place_of,
    seen,
    state_of,
    told_ends,
    version_name,
)
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.told_ends import Logs
from swarm_hook_core.traces.unread import Reading, UnreadCommands
from swarm_hook_core.traces.versions.locked import is_of
from swarm_hook_core.traces.versions.replay import Inputs
from swarm_hook_core.traces.versions.stored import Version, ended_at, found_at, journal_files, journals_of, kept_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.versions.acts import Act

_ENDING = {b"over", b"is", *seen.CALLS}  # kinds of entries that tell the end of an earlier call
_MANY = ("kept", "ran", "runs", "clears")  # kinds of entries that are no file's own
MOMENTS = 3  # looks at a file, while sessions go on to note something


class Ends:
    """The entries of a journal that tell the ends of earlier calls, sorted: each of thousands of calls asks."""

    def __init__(self) -> None:
        self._all: dict[bytes, list[int]] = {}  # agent -> times of entries of all kinds
        self._over: dict[bytes, list[int]] = {}  # agent -> times of the kind ``over``
        self._calls: dict[bytes, list[int]] = {}  # agent -> times of calls
        self._turns: dict[bytes, list[int]] = {}  # agent -> ends of turns
        self._noted: set[int] = set()  # ends that the hook after a call has noted

    def add(self, words: list[bytes]) -> None:
        """Add an entry by the four words of its head, if it tells an end."""
        if words[1] not in _ENDING:
            return
        at_ns = int(words[0])
        self._all.setdefault(words[2], []).append(at_ns)
        if words[1] == b"over":
            self._over.setdefault(words[2], []).append(at_ns)
            if words[3] != b"-":
                self._noted.add(at_ns)
            else:
                self._turns.setdefault(words[2], []).append(at_ns)
        elif words[1] != b"is":
            self._calls.setdefault(words[2], []).append(at_ns)

    def sort(self) -> None:
        """Sort the times, after the last `add`."""
        for by_agent in (self._all, self._over, self._calls, self._turns):
            for times in by_agent.values():
                times.sort()

    def of(self, entry: Entry) -> float:
        """Return the end of the call of `entry`, infinity if unknown.

        A later call of the same agent begins after it, unless the two may have run side by side.
        """
        agent = (entry.agent or "-").encode()
        later = _first_after(self._all.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._over.get(agent, []), entry.at_ns))

    def next_of(self, entry: Entry) -> float:
        """Return the time of the next call of the agent of `entry`, or of the turn's end; infinity if it is to come."""
        agent = (entry.agent or "-").encode()
        later = _first_after(self._calls.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._turns.get(agent, []), entry.at_ns))

    def is_noted(self, end_ns: float) -> bool:
        """Return True if the hook after a call has noted this end."""
        return end_ns in self._noted


class JournalNotes:
    """The entries `data` of the journal `name` in `place`, by file; and the inputs beside the versions.

    owner  ``(runtime, session id)``
    ends   the ends of its calls
    """

    def __init__(self, place: str, name: str, data: bytes):
        self.name = name
        self.data = data
        self.owner = journal.owner_of(data)
        self.ends = Ends()
        self._of_file: dict[bytes, list[bytes]] = {}
        self._of_kind: dict[str, list[bytes]] = {kind: [] for kind in _MANY}
        self._parsed: dict[str, list[Entry]] = {}  # results of `of_kind`
        self._last: tuple[str, list[Entry]] = ("", [])  # the file asked about last, and its entries
        self.inputs = Inputs(place, name)
        self._reading = Reading(None, real_paths())
        self._commands = UnreadCommands(data, self._reading, most_files=None)
        self._logs: Logs | None = None
        of_kind = {kind.encode(): lines for kind, lines in self._of_kind.items()}
        for words, raw in journal.heads(self.data):
            self.ends.add(words)
            if words[1] in of_kind:
                of_kind[words[1]].append(raw)
            self._of_file.setdefault(raw.partition(b"\0")[2].partition(b"\0")[0], []).append(raw)
        self.ends.sort()

    @property
    def logs(self) -> Logs:
        """The logs of the client. They tell the end of an interrupted call, after which no hook runs."""
        if self._logs is None:
            self._logs = told_ends.logs_of(self.name, self.owner[1])
        return self._logs

    def of_file(self, path: str, kinds: Collection[str]) -> Iterator[Entry]:
        """Return the entries of these kinds about the path with this key, the newest first."""
        if self._last[0] != path:  # the questions about one file come together
            self._last = path, list(journal.entries(reversed(self._of_file.get(escaped(path), []))))
        return (entry for entry in self._last[1] if entry.kind in kinds)

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the entries of one of the kinds ``kept``, ``ran``, ``runs``, ``clears``, the newest first."""
        if kind not in self._parsed:
            self._parsed[kind] = list(journal.entries(reversed(self._of_kind[kind])))
        return self._parsed[kind]

    def commands_that_wrote(self, path: str) -> list[Entry]:
        """Return the unparsed commands that wrote the file at `path`. Parsing has a time of its own for each file."""
        if not self._of_kind["ran"]:
            return []
        self._reading.begin_anew()
        return self._commands.that_wrote(keys_for(path, "/", self._reading.real))


class PlaceNotes:
    """Everything noted in one `place`.

    journals  ``{name: JournalNotes}``
    ended     ``{name: time}`` of the ends of sessions
    commands  commands with unknown files, as `Acts` makes them once
    """

    def __init__(self, place: str):
        self.place = place
        # A new journal changes the folder. Looks at folders with many versions would cost each file its own.
        paths = [place, *(path for _name, path in journal_files(place))]
        self._states = {path: state_of(path) for path in paths}
        self.journals = {name: JournalNotes(place, name, data) for name, data in journals_of(place).items()}
        self.ended = ended_at(place)
        self._kept_before = {
            (name, entry.at_ns) for name, noted in self.journals.items() for entry in noted.of_kind("kept")
        }
        self.commands: list[Act] | None = None
        self._base = base = kept_dir(place)
        self._names = {name: sorted(names_in(os.path.join(base, name))) for name in names_in(base)}  # of versions
        self._kept: dict[str, tuple[list[int], list[tuple[str, Version]]]] = {}

    def is_current(self) -> bool:
        """Return True if nothing was noted here since then."""
        return all(state_of(path) == state for path, state in self._states.items())

    def owner_by(self, name: str) -> tuple[str, str]:
        """Return ``(runtime, session id)`` of the session with this journal; its id may be abridged there."""
        if name in self.journals and self.journals[name].owner[1]:
            return self.journals[name].owner
        runtime, _, session_id = name.partition(".")
        return runtime, session_id

    def has_kept(self, name: str, at_ns: int) -> bool:
        """Return True if the session's own files were kept before its command of this time (``keeping``)."""
        return (name, at_ns) in self._kept_before

    def versions(self, path: str) -> list[Version]:
        """Return the versions of the file as ``stored.versions_of``, also half and missing copies, the oldest first."""
        found, first = [], version_name(path)
        for name, names in self._names.items():
            for at in range(bisect_left(names, first), len(names)):
                if not names[at].startswith(first):
                    break
                if is_of(names[at], first):
                    found.append(found_at(f"{self._base}/{name}/{names[at]}"))
        return sorted((one for one in found if one is not None and not one.is_lost), key=lambda one: one.at_ns)

    def kept_between(self, name: str, since_ns: int, until_ns: int) -> list[tuple[str, Version]]:
        """Return ``[(path, version)]`` of the versions that a session has kept between the two times."""
        if name not in self._kept:
            found = sorted(kept_by(self.place, name), key=lambda one: one[1].at_ns)
            self._kept[name] = [version.at_ns for _path, version in found], found
        times, found = self._kept[name]
        return found[bisect_left(times, since_ns) : bisect_right(times, until_ns)]


class Notes:
    """The notes of all places that one question meets."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}  # folder -> its place
        self._places: dict[str, PlaceNotes] = {}

    def of(self, folder: str) -> PlaceNotes:
        """Return the notes of the place of files in `folder`. Raises OSError."""
        if folder not in self._folders:
            self._folders[folder] = place_of(folder)
        place = self._folders[folder]
        if place not in self._places:
            self._places[place] = PlaceNotes(place)
        return self._places[place]

    def rounds(self, folder: str) -> Iterator[None]:
        """Yield once for each look at a file in `folder` and at the notes of it, until both are of one moment.

        A write is noted before it is made. So a look is over if nothing was noted since the notes were read; else they
        are read anew. The last of `MOMENTS` looks is taken as it is. Raises OSError.
        """
        for _moment in range(MOMENTS):
            place = self.of(folder)
            yield
            if place.is_current():
                return
            self._places.pop(place.place, None)


def _first_after(times: list[int], at_ns: int) -> float:
    """Return the first of the sorted `times` after `at_ns`, infinity without any."""
    index = bisect_right(times, at_ns)
    return times[index] if index < len(times) else float("inf")
