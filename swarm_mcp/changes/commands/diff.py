"""Uncommitted changes by author, as a patch."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from time import localtime, strftime
from typing import Any, NamedTuple

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.traces.versions.lines import Line, NoLines
from swarm_hook_core.traces.versions.notes import PERSON, Author
from swarm_hook_core.untrusted_text import named
from swarm_mcp.answers.people import short
from swarm_mcp.answers.size import width
from swarm_mcp.changes.authorship import Contributor, contributors_of
from swarm_mcp.changes.commit.parts import place_of
from swarm_mcp.changes.dirty import SECONDS, DirtyFile, committed_file, relative_names, top_over
from swarm_mcp.changes.owners import PERSONS, Owners, last_of, owners_for
from swarm_mcp.changes.patch import patch_of, quoted_name, whole_patch
from swarm_mcp.changes.uncommitted import ChangedFile, Piece, changed, chosen, owned_lines, uncommitted
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, CHANGES, INSTANCES, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import for_people, listing, say, say_patch, say_row, show
from swarm_mcp.cli.words import Reader, clause
from swarm_mcp.domain import REMOTE
from swarm_mcp.errors import SwarmError, UnknownInstance, UsageError
from swarm_mcp.folders import clean, current_scope, here
from swarm_mcp.sessions.acting import TERMINAL, find_acting_session, is_persons
from swarm_mcp.store import Store

Session = tuple[str, str]

_NO_ORDER = "left out, as the order of its authors' lines is not known"


@verb(
    Usage(
        Word("FILE", "a file or a folder", optional=True, repeated=True),
        Option(
            "--session WHO",
            "only what this session may have written, also one that has ended",
            repeatable=True,
            source=INSTANCES,
        ),
        Option("--mine", "only what this session may have written; of a person, as --person"),
        Option("--person", "only what a person may have written"),
        Option("--stat", "lines added and removed, by author and file"),
        *ACTING,
    ),
    group=CHANGES,
)
def diff(args: Arguments) -> int:
    """diff: the uncommitted changes of this work tree, by author, as a patch

    Each hunk is headed by its author: a session, one of its agents, or a person. "codex 5f0c2f6e or a person" says that
    either may have written it; such a hunk is in the patches of both. Untracked files are included, ignored ones are
    not. Without FILE: the whole work tree.

    The patch is against the last commit, and `git apply` takes it. That of one author, or of several chosen ones,
    applies to the last commit without the others' changes. Lines with no known order beside others' are not in it: a
    line that begins with "#" names them. So is a file without lines, with the sessions that may have written it. The
    patch has it whole if it is binary, a link, or over 1 MiB; a submodule, a file over 16 MiB, and one kept by git-lfs
    are only named.

    With --json: {"top", "files": [{"file", "old_mode", "new_mode", "reason", "authors", "hunks": [{"old_line",
    "removed", "new_line", "added", "ambiguous", "tied", "authors"}]}]}. A "tied" hunk has no order beside the one
    before it. Each author is {"name", "is_person", "runtime",
    "session_id", "instance_id", "agent", "tool", "at", "task"}; "hunks" are the smallest parts with the same authors.

    Exit 1 outside of a repository, for a FILE that is not there, or if git does not answer.

    example: swarm-mcp diff --stat
    """
    paths = [clean(word) for word in args.words]
    place = (paths or [here()])[0]
    if not os.path.isdir(place):
        place = os.path.dirname(place)
    top = top_over(place)
    names = relative_names(top, paths)
    files = uncommitted(top, names)
    for path, name in zip(paths, names):
        if not os.path.lexists(path) and not any(f"{one.file.name}/".startswith(f"{name}/") for one in files):
            raise SwarmError(f"{path} is not there, and has no uncommitted change")
    with Store(read_only=True) as store:
        owners = owners_for(store, args)
        sessions = _chosen(args, store, owners, files)
        if sessions is not None:
            files = [one for one in files if one.is_by(sessions)]
        if args.json:
            show({"top": top, "files": [_described(one, sessions, owners) for one in files]})
        elif args.given("--stat"):
            _say_stat(files, sessions, owners)
        else:
            for one in files:
                _say_file(top, one, sessions, owners)
            if not files and for_people():
                say("(no uncommitted changes)")
    return 0


def _chosen(args: Arguments, store: Store, owners: Owners, files: list[ChangedFile]) -> set[Session] | None:
    """Return the sessions that the options choose, None for all authors."""
    if not any(map(args.given, ("--session", "--mine", "--person"))):
        return None
    found: set[Session] = set()
    if args.given("--person"):
        found.add(PERSONS)
    if args.given("--session"):
        authors = [author for one in files for author in (*one.authors, *one.writers)]
        scope = current_scope(args.value("--scope"))
        found |= {owners.chosen(name, scope, authors) for name in args.all("--session")}
    if args.given("--mine"):
        found.add(own_session(args, store))
    return found


def own_session(args: Arguments, store: Store) -> Session:
    """Return the session that this command belongs to; a person's for a person."""
    try:
        row = find_acting_session(store, args, reads=True)
    except UnknownInstance:
        if args.value("--as") or not is_persons(store, current_scope(args.value("--scope"))):
            raise
        return PERSONS
    if row.runtime in (TERMINAL, REMOTE) or not row.session_id:
        return PERSONS
    return (row.runtime or "", row.session_id)


def _pieces(one: ChangedFile, sessions: Collection[Session] | None) -> list[Piece]:
    return [piece for piece in one.pieces if sessions is None or not piece.sessions.isdisjoint(sessions)]


def _has_whole(one: ChangedFile, sessions: Collection[Session] | None) -> bool:
    """Return True if the change that no line shows is wanted."""
    return sessions is None or any(author.session in sessions for author in one.whole_authors)


# ------------------------------------------------------------------------------------------- as a patch


def _say_file(top: str, one: ChangedFile, sessions: Collection[Session] | None, owners: Owners) -> None:
    name, has_whole = quoted_name(one.file.name), _has_whole(one, sessions)
    if one.reason:
        say_patch(f"# {name}: {one.reason}, {_whole(one)} by {owners.names(one.whole_authors)}\n".encode())
        say_patch(whole_patch(top, one))
        return
    if sessions is None:
        sessions = {author.session for author in one.authors}
    pieces, parted = chosen(one.pieces, lambda piece: not piece.sessions.isdisjoint(sessions))
    for some in parted:
        place = place_of(some, one.file)
        place.path = name
        say_patch(f"# {place.words}: {_NO_ORDER}: {owners.names(place.authors)}\n".encode())
    if parted and not pieces and not one.has_new_mode:
        return
    if has_whole and (one.has_new_mode or not one.pieces):
        say_patch(f"# {name}: {_whole(one)} by {owners.names(one.whole_authors)}\n".encode())
    # A file is new or gone with its lines, by any of their authors.
    with_whole = has_whole or not one.has_new_mode
    say_patch(patch_of(one, pieces, owners.names, with_whole))


def _whole(one: ChangedFile) -> str:
    """Return the kind of a change that no line shows."""
    if not one.file.old_mode:
        return "new"
    if not one.file.new_mode:
        return "removed"
    if one.has_new_mode and not one.reason:
        return f"mode {one.file.old_mode} to {one.file.new_mode}"
    return "changed"


# ------------------------------------------------------------------------------------------- as numbers, as JSON


def _say_stat(files: list[ChangedFile], sessions: Collection[Session] | None, owners: Owners) -> None:
    cells: list[tuple[object, ...]] = []
    for one in files:
        counts: dict[str, list[int]] = {}
        for piece in _pieces(one, sessions):
            count = counts.setdefault(owners.names(piece.authors), [0, 0])
            count[0] += len(piece.added)
            count[1] += len(piece.removed)
        path = named(one.file.name)
        cells += [(who, path, f"+{added}", f"-{removed}", None) for who, (added, removed) in counts.items()]
        if _has_whole(one, sessions) and (one.reason or one.has_new_mode or not one.pieces):
            note = ", ".join(filter(None, (_whole(one), one.reason)))
            cells.append((owners.names(one.whole_authors), path, None, None, note))
    cells.sort(key=lambda row: str(row[0]))
    plain = ["  ".join(str(cell) for cell in row if cell is not None) for row in cells]
    listing(("who", "file", "added", "removed", "what"), cells, plain, empty="(no uncommitted changes)")


def _described(one: ChangedFile, sessions: Collection[Session] | None, owners: Owners) -> dict[str, Any]:
    file = one.file
    authors = one.authors
    if one.reason:
        authors = one.whole_authors
    return {
        "file": file.path,
        "old_mode": file.old_mode or None,
        "new_mode": file.new_mode or None,
        "reason": one.reason or None,
        "authors": [owners.described(author) for author in authors],
        "hunks": [
            {
                "old_line": piece.old + 1,
                "removed": [_text(line) for line in piece.removed],
                "new_line": piece.new + 1,
                "added": [_text(line) for line in piece.added],
                "ambiguous": piece.is_ambiguous,
                "tied": piece.is_tied,
                "authors": [owners.described(author) for author in piece.authors],
            }
            for piece in _pieces(one, sessions)
        ],
    }


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


# The author of each line of a file.

TAB = 4  # cells of a tab in a line
SHORT_COMMIT = 8


class Commit:
    """The commit that brought a line: its `id`, its author's name, the time in Unix seconds.

    `file`: the file's name there, while git's answer is read.
    """

    __slots__ = ("id", "author", "at", "file")

    def __init__(self, commit_id: str):
        self.id = commit_id
        self.author = ""
        self.at = 0
        self.file = ""


class CommittedLine(NamedTuple):
    """The commit of a line, and its recorded contributor there, None without a record."""

    commit: Commit
    contributor: Contributor | None = None


UNKNOWN = CommittedLine(Commit(""))  # git does not answer

Commits = dict[int | None, CommittedLine]  # by a line's index in the last commit


@verb(
    Usage(
        Word("FILE", "the file; FILE:LINE and FILE:FIRST-LAST are some of its lines"),
        Option("--uncommitted", "only lines that are not committed"),
        ABSOLUTE,
        *ACTING,
    ),
    group=CHANGES,
)
def blame(args: Arguments) -> int:
    """blame: the author of each line of a file, committed or not

    An uncommitted line has its session (and agent) or "a person", the time and tool of the call that wrote it, and the
    task that the session had then. "codex 5f0c2f6e or a person" says that either may have written it. A committed line
    has its commit, author and date, as `git blame` has them, and its recorded authors (`protect --authorship on`).

    With --json: {"file", "reason", "authors", "lines": [{"line", "text", "committed", "authors", "commit", "author",
    "at", "contributor"}]}. "authors" are those of `diff --json`; a recorded "contributor" is {"type", "model_id",
    "sessions"}. A file without lines has a "reason", such as "binary", and in
    "authors" the sessions that may have written it.

    Exit 1 outside of a repository, or if git does not answer.

    example: swarm-mcp blame src/schema.sql:12-20
    """
    path, first, last = _place(args.words[0])
    top = top_over(os.path.dirname(path))
    if not os.path.isfile(path):
        raise SwarmError(f"{path} is no file")
    (name,) = relative_names(top, [path])
    file = committed_file(top, name)
    with Store(read_only=True) as store:
        owners = owners_for(store, args)
        lines: list[Line] = []
        try:
            if not file.reason:
                lines = owned_lines(file)
        except NoLines as error:
            file.reason = str(error)
        except OSError as error:
            raise SwarmError(f"cannot read {path}: {error.strerror or error}") from None
        if file.reason:
            return _say_reason(args, file, owners)
        commits: Commits = {}
        if not args.given("--uncommitted") and any(line.head is not None for line in lines):
            commits = _commits(top, name)
        numbered = [
            (number, line)
            for number, line in enumerate(lines, 1)
            if first <= number <= last and (line.head is None or not args.given("--uncommitted"))
        ]
        if len(lines) < first > 1:
            raise SwarmError(f"{path} has no line {first}: it has {len(lines)}")
        if args.json:
            rows = [_described_line(number, line, commits, owners) for number, line in numbered]
            show({"file": path, "reason": None, "authors": [], "lines": rows})
        else:
            _say_lines(numbered, commits, owners, Reader(args, store))
    return 0


def _place(word: str) -> tuple[str, int, int]:
    """Return the real path of ``FILE``, ``FILE:LINE`` or ``FILE:FIRST-LAST``, and its first and last line."""
    path, found = clean(word), re.fullmatch(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?", word)
    if found is None or os.path.lexists(path):
        return os.path.realpath(path), 1, sys.maxsize
    first, last = int(found[2]), int(found[3] or found[2])
    if not 1 <= first <= last:
        raise UsageError(f"{word}: lines count from 1, and the first one stands first")
    return os.path.realpath(clean(found[1])), first, last


def _say_reason(args: Arguments, file: DirtyFile, owners: Owners) -> int:
    one = changed(file)
    authors: tuple[Author, ...] = (PERSON,)
    if one is not None:
        authors = one.whole_authors
    if args.json:
        described = [owners.described(author) for author in authors]
        show({"file": file.path, "reason": file.reason, "authors": described, "lines": []})
    else:
        say(f"{file.name}: {file.reason}: it has no lines to tell apart; perhaps written by {owners.names(authors)}")
    return 0


def _say_lines(numbered: list[tuple[int, Line]], commits: Commits, owners: Owners, reader: Reader) -> None:
    if not numbered:
        say("(no uncommitted lines)")
        return
    rows = []
    for number, line in numbered:
        text = line.text.decode("utf-8", "replace").rstrip("\r\n").expandtabs(TAB)
        columns, style = _committed(commits.get(line.head, UNKNOWN)), "faint"
        if line.authors:
            columns, style = _uncommitted(line, owners, reader), "name"
        rows.append((columns, style, number, text))
    widths = [max(width(row[0][at]) for row in rows) for at in range(3)]
    digits = len(str(numbered[-1][0]))
    for columns, style, number, text in rows:
        cells = [(_padded(column, room), "faint") for column, room in zip(columns, widths) if room]
        cells[0] = (cells[0][0], style)
        say_row((*cells, (f"{number:>{digits}}", "faint"), (text, "")))


def _uncommitted(line: Line, owners: Owners, reader: Reader) -> tuple[str, str, str]:
    """Return the authors, the time, and the tool with the task, of an uncommitted line."""
    last, when = last_of(line.authors), ""
    task = owners.task(last)
    if last.at_ns:
        when = reader.when(last.at_ns // 10**9)
    return owners.names(line.authors), when, f"{last.tool}{clause(' (task {})', task and short(task.id))}".strip()


def _committed(line: CommittedLine) -> tuple[str, str, str]:
    """Return the commit with its author, the date, and the recorded contributor, of a committed line."""
    commit, by = line
    if line is UNKNOWN:
        return "committed", "", ""
    words = ""
    if by is not None:
        words = by.words
    return f"{commit.id[:SHORT_COMMIT]} {commit.author}", strftime("%Y-%m-%d", localtime(commit.at)), words


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - width(text))


def _described_line(number: int, line: Line, commits: Commits, owners: Owners) -> dict[str, Any]:
    commit, by = commits.get(line.head, UNKNOWN)
    return {
        "line": number,
        "text": line.text.decode("utf-8", "replace"),
        "committed": line.head is not None,
        "authors": [owners.described(author) for author in line.authors],
        "commit": commit.id or None,
        "author": commit.author or None,
        "at": commit.at or None,
        "contributor": by and {"type": by.kind, "model_id": by.model_id or None, "sessions": list(by.sessions)},
    }


def _commits(top: str, name: str) -> Commits:
    """Return the facts of each line of the file in the last commit, by index; empty if git does not answer."""
    try:
        output = Repository(top, SECONDS).ask("blame", "--porcelain", "HEAD", "--", name)
    except (NoAnswer, Refused):
        return {}  # a very long history, or a commit that is not in this clone
    found: dict[int, tuple[str, str, int]] = {}  # index -> commit, file and line there
    known: dict[str, Commit] = {}
    commit, index, number = Commit(""), 0, 0
    for line in output.split("\n"):
        key, _, value = line.partition(" ")
        if line.startswith("\t"):  # the line's text
            found[index] = commit.id, commit.file, number
        elif len(key) >= 40 and value[:1].isdigit():
            commit = known.setdefault(key, Commit(key))
            number, index = int(value.split(" ")[0]), int(value.split(" ")[1]) - 1
        elif key == "filename":
            commit.file = value
        elif key == "author":
            commit.author = value
        elif key == "author-time" and value.isdigit():
            commit.at = int(value)
    try:
        recorded = contributors_of(top, set(found.values()))
    except (NoAnswer, Refused):
        recorded = {}
    return {index: CommittedLine(known[line[0]], recorded.get(line)) for index, line in found.items()}
