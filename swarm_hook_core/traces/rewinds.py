"""Rewinds: a client has put files back to an earlier content, and has dropped others' lines with its own.

Clients restore whole files (`/rewind`, `/undo`, `/restore`), as they were before a call of the session. No hook tells
of that. So each turn begins with a look at the files that the session has written, if they have changed since its last
turn. (``rewinds`` has what follows for a file that has.) It is rewound if it has a content from before one of the
session's own writes. The lines of others that it had meanwhile are found in its last kept content:

- the end of a turn keeps the contents of the files written in it;
- a file that has changed since then is kept as the next turn begins, as a content for `swarm-mcp restore`.

Then the rewind is noted as an undo by the session, with a record: `swarm-mcp undo --undo ID` brings back others' lines.
The session's own lines stay rewound. Files that others wrote count too, if they went back at the same time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from swarm_hook_core.lookup import LockReader
from swarm_hook_core.paths import git_root
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    OWN_NS,
    journal,
    keeping,
    others_in,
    place_of,
    seen,
    versions,
)
from swarm_hook_core.traces.changed_lines import equal_parts, split_lines
from swarm_hook_core.traces.seen import CALLS
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Fold, NoLines
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.traces.versions.stored import Version, contents_of, journals_of, versions_of
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.watching.records import Snapshot, digest_of, full_resolved, read_resolved
from swarm_hook_core.wording import and_more

MOST = 50  # files of one session, the newest


def changed_since_turn(data: bytes, root: str) -> list[str]:
    """Return the files at and below `root`, written by the session with the journal `data`, that have changed since
    its last turn ended. Costs one look at the disk a file.
    """
    since_ns = _turn_ended(data)
    if not since_ns:
        return []
    entries = journal.newest_below(data, root, ("wrote",), MOST)
    return [entry.key for entry in entries if changed_ns(entry.key) > since_ns]


def _turn_ended(data: bytes) -> int:
    """Return the end of the last turn; of an interrupted one, the time until which its last call may have written."""
    for words, _raw in journal.heads(data[-journal.TAIL :], newest_first=True):
        if words[1] == b"over" and words[3] == b"-":
            return int(words[0])
        if words[1] in CALLS:
            return int(words[0]) + OWN_NS
    return 0


def changed_ns(path: str) -> int:
    """Return the file's time of change; of a missing file its folder's, 0 if that is missing too."""
    for place in (path, os.path.dirname(path)):
        try:
            return os.lstat(place).st_ctime_ns
        except OSError:
            continue  # missing
    return 0


def changed_at_turn(trail: Trail) -> tuple[list[str], str]:
    """Return the files of `changed_since_turn` in the session's work tree, and its root. Raises OSError."""
    root = os.path.realpath(git_root(trail.call.folder))
    return changed_since_turn(journal.read(trail.journal), root), root


def keep_at_end(trail: Trail) -> None:
    """Keep the contents that the turn's writes have left: so changes after it are told from them. Raises OSError."""
    seen.note_what_was_left(journal.read(trail.journal), trail)
    trail.leave()


# Files that have changed between two turns of a session: rewinds among them are noted, and told.

NEAR_NS = 2 * 10**9  # between the files of one rewind
NAMED = 5  # files in the words


class Rewinds:
    """The rewinds of files of the session of `trail`, noted, as `words` for its model; empty for no rewind."""

    def __init__(self, trail: Trail, changed: list[str], root: str, reader: LockReader):
        self.words = ""
        self._trail = trail
        self._reader = reader
        self._files: list[dict[str, Any]] = []
        self._lost: dict[str, dict[tuple[str, str], int]] = {}  # path -> author -> number of lines
        times = [changed_ns(path) for path in changed if self._is_rewound(path, True)]
        place = trail.place_of(trail.call.folder)
        for path in self._of_others(place, root, changed) if times else ():
            if min(abs(changed_ns(path) - at) for at in times) < NEAR_NS:
                self._is_rewound(path, False)
        if self._files:
            # Write down the undo, and put it into words
            own = [self._trail.config.runtime_name, self._trail.call.session_id]
            sessions = [author for lost in self._lost.values() for author in lost if author[1]]
            name, whose = os.urandom(4).hex(), list(sessions[0]) if len(set(sessions)) == 1 else own
            keeping.write(keeping.record_of(self._files, id=name, whose=whose, by=own, at=time.time()))
            self._say(name)

    def _of_others(self, place: str, root: str, known: list[str]) -> list[str]:
        found: dict[str, None] = {}
        for path in others_in(place, self._trail.own_name):
            entries = journal.newest_below(journal.read(path), root, ("wrote",), MOST)
            found.update((entry.key, None) for entry in entries if entry.key not in known)
        return list(found)

    def _is_rewound(self, path: str, is_own: bool) -> bool:
        """Return True if the file has an earlier content; note it if lines of others are lost."""
        try:
            present = read_resolved(path, LIMIT_BYTES)[1]
        except (FileNotFoundError, NotADirectoryError):
            present = None  # removed
        except OSError:
            return False  # a folder, a link, too large
        place = place_of(os.path.dirname(path))
        last = next(iter(contents_of(path)), None)
        content = last.content() if last is not None else None
        if last is None or content is None or content == present:
            return False
        earlier = [one for one in versions_of(place, path) if one.at_ns < last.at_ns]
        if is_own:
            earlier = [one for one in earlier if one.journal == self._trail.own_name and not one.is_look]
        if not any(_has(one, present) for one in earlier):
            if is_own and present is not None:
                keeping.lost(self._trail, path)  # another's change, for the next look
            return False
        if self._is_written_since(place, path, last):
            return False  # what it had before is not known
        self._note(path, last, content, present)
        return True

    def _is_written_since(self, place: str, path: str, last: Version) -> bool:
        """Return True if a call was let write the file after its `last` kept content: then that is not its last."""
        newest = (journal.newest(data, path, ("wrote",)) for data in journals_of(place).values())
        at_ns = max((entry.at_ns for entry in newest if entry is not None), default=0)
        return at_ns > last.at_ns or (at_ns == last.at_ns and not last.is_look)

    # ------------------------------------------------------------------------------------------- notes

    def _note(self, path: str, last: Version, content: bytes, present: bytes | None) -> None:
        """Note the rewind as an undo of the session's own lines, and one of others' lines after it."""
        at_ns, size = time.time_ns(), len(content)
        state = Snapshot(0o100000 | last.mode, size, last.at_ns, last.at_ns, 0, digest_of(content))
        self._keep(path, content, f"{LOOK}{at_ns}", at_ns, last.mode, str(state))
        self._trail.leave()
        try:
            rest, lost = self._without_own(Fold(path, until_ns=at_ns), present or b"")
        except NoLines:
            return  # binary
        if not lost:
            return
        if rest != content:
            state = Snapshot(state.mode, len(rest), at_ns, at_ns, 0, digest_of(rest))
            self._keep(path, rest, f"{AFTER}{at_ns + 1}", at_ns + 1, last.mode, str(state))
            self._keep(path, rest, f"{LOOK}{at_ns + 2}", at_ns + 2, last.mode, str(state))
            at_ns += 2
        self._trail.note("wrote", path, "0 0 0", at_ns)
        self._keep(path, present, f"{AFTER}{at_ns + 1}", at_ns + 1, 0, str(full_resolved(path)))
        self._trail.leave()
        self._lost[path] = lost
        self._files.append(
            keeping.file_of(
                path=path, before=True, after=present is not None, mode_before=last.mode | 0o200, at_ns=at_ns
            )
        )

    def _keep(self, path: str, data: bytes | None, mark: str, at_ns: int, mode: int, state: str) -> None:
        """Keep `data`, or the present file without a `mode`, as a version of this `mark`, with its entry."""
        target = self._trail.version_path(path) + mark
        if mode and data is not None:
            versions.keep_text(data, target, at_ns, mode)
        else:
            versions.keep(path, target, at_ns)
        self._trail.note("is", path, state, at_ns)

    def _without_own(self, fold: Fold, present: bytes) -> tuple[bytes, dict[tuple[str, str], int]]:
        """Return the `present` content with the lost lines of others in it, and the number of these by author."""
        now, before = split_lines(present), [one.text for one in fold.alive]
        lost: dict[tuple[str, str], int] = {}
        removed = {one.text: one.removed_by for one in fold.removed}
        rest: list[bytes] = []
        old = new = 0
        for old_start, new_start, size in [*(equal_parts(before, now) or ()), (len(before), len(now), 0)]:
            back = [(text, self._others(removed.get(text, ()))) for text in now[new:new_start]]
            gone = [(one.text, found) for one in fold.alive[old:old_start] if (found := self._others(one.authors))]
            rest += [text for text, authors in back if not authors]
            rest += [text for text, _authors in gone]
            for _text, authors in gone or back:
                for author in authors[:1]:
                    lost[author] = lost.get(author, 0) + 1
            rest += now[new_start : new_start + size]
            old, new = old_start + size, new_start + size
        return b"".join(rest), lost

    def _others(self, authors: Sequence[Author]) -> list[tuple[str, str]]:
        """Return the other sessions, or person, among the authors of a line; none of a line of the last commit."""
        own = (self._trail.config.runtime_name, self._trail.call.session_id)
        return [one.session for one in authors if one.session != own]

    # ------------------------------------------------------------------------------------------- record and words

    def _say(self, name: str) -> None:
        start, parts = self._trail.call.folder.rstrip("/") + "/", []
        for path, lost in list(self._lost.items())[:NAMED]:
            whose = " and ".join(
                f"{count} line{'s' if count > 1 else ''} of {self._called(one)}" for one, count in lost.items()
            )
            parts.append(f"{whose} in {named(path.removeprefix(start))}")
        self.words = (
            f"swarm: a rewind of this client took back {', '.join(parts)}{and_more(len(self._lost) - NAMED)}: tell your"
            f" user. `swarm-mcp undo --undo {name}` brings these lines back, and nothing of this session."
        )

    def _called(self, author: tuple[str, str]) -> str:
        if not author[1]:
            return "a person"
        session = self._reader.session(*author)
        return f"{author[0]} {session.instance_id[:8]}" if session is not None else f"an ended session of {author[0]}"


def _has(version: Version, content: bytes | None) -> bool:
    """Return True if the version has this content, or stands for a missing file and that is None."""
    if content is None:
        return not version.exists
    return version.exists and version.size == len(content) and version.content() == content
