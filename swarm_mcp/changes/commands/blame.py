"""The author of each line of a file."""

from __future__ import annotations

import os
from time import localtime, strftime

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.traces.versions.acts import PERSON
from swarm_hook_core.traces.versions.lines import NoLines
from swarm_mcp.answers.text_width import width
from swarm_mcp.answers.views import short
from swarm_mcp.changes.dirty import SECONDS, committed_file, relative_names, top_over
from swarm_mcp.changes.owners import Owners, last_of, owners_for
from swarm_mcp.changes.uncommitted import changed, owned_lines
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, CHANGES, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import say, say_row, show
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import clause
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_hook_core.traces.versions.acts import Author
    from swarm_mcp.changes.dirty import DirtyFile
    from swarm_mcp.changes.uncommitted import OwnedLine

TAB = 4  # cells of a tab in a line
SHORT_COMMIT = 8


class Commit:
    """The commit that brought a line: its `id`, its author's name, the time in Unix seconds."""

    __slots__ = ("id", "author", "at")

    def __init__(self, commit_id: str):
        self.id = commit_id
        self.author = ""
        self.at = 0


UNKNOWN = Commit("")  # git does not answer

if TYPE_CHECKING:
    Commits = dict[int | None, Commit]  # by a line's index in the last commit


@verb(
    Usage(
        Word("FILE", "the file"),
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
    has its commit, author and date, as `git blame` has them.

    With --json: {"file", "reason", "authors", "lines": [{"line", "text", "committed", "authors", "commit", "author",
    "at"}]}. "authors" are those of `diff --json`. A file without lines has a "reason", such as "binary", and in
    "authors" the sessions that may have written it.

    Exit 1 outside of a repository, or if git does not answer.

    example: swarm-mcp blame src/schema.sql --uncommitted
    """
    path = os.path.realpath(clean(args.words[0]))
    top = top_over(os.path.dirname(path))
    if not os.path.isfile(path):
        raise SwarmError(f"{path} is no file")
    (name,) = relative_names(top, [path])
    file = committed_file(top, name)
    with Store(read_only=True) as store:
        owners = owners_for(store, args)
        lines: list[OwnedLine] = []
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
        if not args.given("--uncommitted") and any(line.at_head is not None for line in lines):
            commits = _commits(top, name)
        numbered = [
            (number, line)
            for number, line in enumerate(lines, 1)
            if line.at_head is None or not args.given("--uncommitted")
        ]
        if args.json:
            rows = [_described(number, line, commits, owners) for number, line in numbered]
            show({"file": path, "reason": None, "authors": [], "lines": rows})
        else:
            _say_lines(numbered, commits, owners, Reader(args, store))
    return 0


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


def _say_lines(numbered: list[tuple[int, OwnedLine]], commits: Commits, owners: Owners, reader: Reader) -> None:
    if not numbered:
        say("(no uncommitted lines)")
        return
    rows = []
    for number, line in numbered:
        text = line.text.decode("utf-8", "replace").rstrip("\r\n").expandtabs(TAB)
        columns, style = _committed(commits.get(line.at_head, UNKNOWN)), "faint"
        if line.authors:
            columns, style = _uncommitted(line, owners, reader), "name"
        rows.append((columns, style, number, text))
    widths = [max(width(row[0][at]) for row in rows) for at in range(3)]
    digits = len(str(numbered[-1][0]))
    for columns, style, number, text in rows:
        cells = [(_padded(column, room), "faint") for column, room in zip(columns, widths) if room]
        cells[0] = (cells[0][0], style)
        say_row((*cells, (f"{number:>{digits}}", "faint"), (text, "")))


def _uncommitted(line: OwnedLine, owners: Owners, reader: Reader) -> tuple[str, str, str]:
    """Return the authors, the time, and the tool with the task, of an uncommitted line."""
    last, when = last_of(line.authors), ""
    task = owners.task(last)
    if last.at_ns:
        when = reader.when(last.at_ns // 10**9)
    return owners.names(line.authors), when, f"{last.tool}{clause(' (task {})', task and short(task.id))}".strip()


def _committed(commit: Commit) -> tuple[str, str, str]:
    """Return the commit with its author, and the date, of a committed line."""
    if commit is UNKNOWN:
        return "committed", "", ""
    return f"{commit.id[:SHORT_COMMIT]} {commit.author}", strftime("%Y-%m-%d", localtime(commit.at)), ""


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - width(text))


def _described(number: int, line: OwnedLine, commits: Commits, owners: Owners) -> dict[str, Any]:
    commit = commits.get(line.at_head, UNKNOWN)
    return {
        "line": number,
        "text": line.text.decode("utf-8", "replace"),
        "committed": line.at_head is not None,
        "authors": [owners.described(author) for author in line.authors],
        "commit": commit.id or None,
        "author": commit.author or None,
        "at": commit.at or None,
    }


def _commits(top: str, name: str) -> Commits:
    """Return the Commit of each line of the file in the last commit, by index; empty if git does not answer."""
    try:
        output = Repository(top, SECONDS).ask("blame", "--porcelain", "HEAD", "--", name)
    except (NoAnswer, Refused):
        return {}  # a very long history, or a commit that is not in this clone
    found: Commits = {}
    known: dict[str, Commit] = {}
    commit = Commit("")
    for line in output.split("\n"):
        key, _, value = line.partition(" ")
        if line.startswith("\t"):
            continue  # the line's text
        if len(key) >= 40 and value[:1].isdigit():
            commit = known.setdefault(key, Commit(key))
            found[int(value.split(" ")[1]) - 1] = commit
        elif key == "author":
            commit.author = value
        elif key == "author-time" and value.isdigit():
            commit.at = int(value)
    return found
