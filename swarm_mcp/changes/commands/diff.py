"""Uncommitted changes by author, as a patch."""

from __future__ import annotations

import os

from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes.commit.parts import Group
from swarm_mcp.changes.dirty import relative_names, top_over
from swarm_mcp.changes.owners import PERSONS, Owners, owners_for
from swarm_mcp.changes.patch import patch_of, quoted_name
from swarm_mcp.changes.pieces import chosen
from swarm_mcp.changes.uncommitted import uncommitted
from swarm_mcp.changes.whole_patch import whole_patch
from swarm_mcp.cli.arguments import ACTING, CHANGES, INSTANCES, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import for_people, listing, say, say_patch, show
from swarm_mcp.domain.session import REMOTE
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import clean, current_scope, here
from swarm_mcp.sessions.acting import find_acting_session, is_persons
from swarm_mcp.sessions.agents_shell import TERMINAL
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from swarm_mcp.changes.pieces import Piece
    from swarm_mcp.changes.uncommitted import ChangedFile

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

    Exit 1 outside of a repository, or if git does not answer.

    example: swarm-mcp diff --stat
    """
    paths = [clean(word) for word in args.words]
    place = (paths or [here()])[0]
    if not os.path.isdir(place):
        place = os.path.dirname(place)
    top = top_over(place)
    files = uncommitted(top, relative_names(top, paths))
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
        found.add(_own(args, store))
    return found


def _own(args: Arguments, store: Store) -> Session:
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
    pieces, parted = chosen(one.pieces, sessions)
    for some in parted:
        group = Group(some, lambda author: author.session in sessions)
        place = group.place(one.file)
        place.path = name
        say_patch(f"# {place.words}: {_NO_ORDER}: {owners.names(group.authors)}\n".encode())
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
