"""Patches against the last commit, in the form that ``git apply`` takes, each hunk headed by its authors.

The heading stands behind the second ``@@``, where git expects the name of a function and ignores the text. A patch of
some pieces is complete in itself: applied to the last commit, it gives the commit with these pieces alone.
"""

from __future__ import annotations

import zlib
from base64 import b85encode
from collections.abc import Callable, Sequence

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository, blob, sizes
from swarm_hook_core.traces.changed_lines import split_lines
from swarm_hook_core.traces.versions.notes import Author
from swarm_mcp.changes.dirty import LARGEST, LINK, NONE, PLAIN, SECONDS, DirtyFile, filters_of, object_id, present
from swarm_mcp.changes.uncommitted import ChangedFile, Piece

Naming = Callable[[Sequence[Author]], str]  # all possible authors of one piece -> words for a heading

CONTEXT = 3  # unchanged lines around a change
NEAR = 2  # changes of different authors with so few unchanged lines between them share a hunk: git needs a context
KEPT, REMOVED, ADDED = b" ", b"-", b"+"
NO_NEWLINE = b"\\ No newline at end of file\n"
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
            '"': '\\"', "\\": "\\\\"}  # fmt: skip


class Row:
    """One line of a patched file: `mark` is KEPT, REMOVED or ADDED; `piece` is None for a kept line."""

    __slots__ = ("mark", "text", "piece")

    def __init__(self, mark: bytes, text: bytes, piece: Piece | None):
        self.mark = mark
        self.text = text
        self.piece = piece

    def shown(self) -> bytes:
        """Return the row as a patch has it."""
        if self.text.endswith(b"\n"):
            return self.mark + self.text
        return self.mark + self.text + b"\n" + NO_NEWLINE


def patch_of(one: ChangedFile, pieces: Sequence[Piece], naming: Naming, with_whole: bool = True) -> bytes:
    """Return the patch of these `pieces` of a file, in order; empty if there is nothing to patch.

    `with_whole`: with the change that no line shows: a new mode, an empty new file, the removal of an empty one.
    """
    file, is_all = one.file, len(pieces) == len(one.pieces)
    if one.reason or not (pieces or with_whole):
        return b""
    rows = _rows(file.head, pieces)
    old_mode, new_mode = file.old_mode, file.new_mode
    if old_mode and new_mode and not (with_whole and one.has_new_mode):
        new_mode = old_mode
    elif new_mode == NONE and not (is_all and with_whole):
        new_mode = old_mode  # others removed the other lines: the file stays
    head = header(file.name, old_mode, new_mode, file.old_id, _result(rows))
    if not pieces:
        return head
    return head + _sides(file.name, old_mode, new_mode) + b"".join(_hunks(rows, naming))


def hunks_of_link(name: str, old_mode: str, new_mode: str, old: bytes, new: bytes) -> bytes:
    """Return what follows the header of a symbolic link: its target is one line without an end."""
    removed = [Row(REMOVED, old, None)] * bool(old_mode)
    added = [Row(ADDED, new, None)] * bool(new_mode)
    ranges = f"@@ -{_range(0, len(removed))} +{_range(0, len(added))} @@\n".encode()
    return _sides(name, old_mode, new_mode) + ranges + b"".join(row.shown() for row in (*removed, *added))


def result_of(one: ChangedFile, pieces: Sequence[Piece]) -> bytes:
    """Return the last commit's content with these `pieces`, in order, as git stores it."""
    return _result(_rows(one.file.head, pieces))


def _result(rows: Sequence[Row]) -> bytes:
    return b"".join(row.text for row in rows if row.mark != REMOVED)


def quoted_name(name: str) -> str:
    """Return a path as git writes it in a patch: in quotes if it has quotes, backslashes or control characters."""
    if not any(sign in '"\\' or ord(sign) < 32 or ord(sign) == 127 for sign in name):
        return name
    return '"' + "".join(_ESCAPES.get(sign) or _octal(sign) for sign in name) + '"'


def _octal(sign: str) -> str:
    if ord(sign) < 32 or ord(sign) == 127:
        return f"\\{ord(sign):03o}"
    return sign


# ------------------------------------------------------------------------------------------- header


def header(name: str, old_mode: str, new_mode: str, old_id: str, result: bytes) -> bytes:
    """Return the first lines of a file's patch. `NONE` is the mode of a missing file; `result`: the new content."""
    words = [f"diff --git {quoted_name('a/' + name)} {quoted_name('b/' + name)}"]
    new_id = object_id(result, old_id)
    nothing = "0" * len(new_id)
    if old_mode == NONE:
        words += [f"new file mode {new_mode or PLAIN}", f"index {nothing}..{new_id}"]
    elif new_mode == NONE:
        words += [f"deleted file mode {old_mode}", f"index {old_id}..{nothing}"]
    elif old_mode != new_mode:
        words += [f"old mode {old_mode}", f"new mode {new_mode}"]
        if old_id != new_id:
            words.append(f"index {old_id}..{new_id}")
    else:
        words.append(f"index {old_id}..{new_id} {old_mode}")
    return ("\n".join(words) + "\n").encode("utf-8", "surrogateescape")


def _sides(name: str, old_mode: str, new_mode: str) -> bytes:
    sides = (_side("a/", name, old_mode), _side("b/", name, new_mode))
    return f"--- {sides[0]}\n+++ {sides[1]}\n".encode("utf-8", "surrogateescape")


def _side(prefix: str, name: str, mode: str) -> str:
    """Return the name on one side of a patch. A tab ends a name with blanks."""
    if mode == NONE:
        return "/dev/null"
    quoted = quoted_name(prefix + name)
    if " " in name and not quoted.startswith('"'):
        return quoted + "\t"
    return quoted


# ------------------------------------------------------------------------------------------- hunks


def _rows(head: bytes, pieces: Sequence[Piece]) -> list[Row]:
    lines = split_lines(head)  # as the comparison of versions has them
    rows: list[Row] = []
    at = 0
    for piece in pieces:
        rows += [Row(KEPT, text, None) for text in lines[at : piece.old]]
        rows += [Row(REMOVED, text, piece) for text in piece.removed]
        rows += [Row(ADDED, text, piece) for text in piece.added]
        at = piece.old + len(piece.removed)
    rows += [Row(KEPT, text, None) for text in lines[at:]]
    return _with_line_ends(rows)


def _with_line_ends(rows: list[Row]) -> list[Row]:
    """Return the rows with a line end after each line but the last one, as lines of others may have brought it."""
    last = max((at for at, row in enumerate(rows) if row.mark != REMOVED), default=-1)
    found = []
    for at, row in enumerate(rows):
        if row.mark == REMOVED or row.text.endswith(b"\n") or at == last:
            found.append(row)
        elif row.mark == ADDED:
            found.append(Row(ADDED, row.text + b"\n", row.piece))
        else:
            piece = next((one.piece for one in rows[at:] if one.piece is not None), None)
            found += [Row(REMOVED, row.text, piece), Row(ADDED, row.text + b"\n", piece)]
    return found


def _hunks(rows: list[Row], naming: Naming) -> list[bytes]:
    """Return the hunks: changes of the same authors that are near each other, and adjacent ones of all authors."""
    groups: list[list[int]] = []  # [first row, row behind the last]
    sessions: frozenset[tuple[str, str]] = frozenset()
    for at, row in enumerate(rows):
        if row.piece is None:
            continue
        gap = at - sum(one[1] for one in groups[-1:])
        if groups and (gap <= NEAR or (gap <= 2 * CONTEXT and sessions == row.piece.sessions)):
            groups[-1][1] = at + 1
            sessions |= row.piece.sessions
        else:
            groups.append([at, at + 1])
            sessions = row.piece.sessions
    found, free = [], 0  # the first row that is in no hunk yet
    for index, (begin, end) in enumerate(groups):
        following = [*groups, [len(rows) + CONTEXT]][index + 1][0]
        first = max(free, begin - CONTEXT)
        free = min(len(rows), end + min(CONTEXT, (following - end + 1) // 2))
        found.append(_hunk(rows, first, free, naming))
    return found


def _hunk(rows: list[Row], first: int, end: int, naming: Naming) -> bytes:
    old = sum(row.mark != ADDED for row in rows[:first])
    new = sum(row.mark != REMOVED for row in rows[:first])
    part = rows[first:end]
    old_count = sum(row.mark != ADDED for row in part)
    new_count = sum(row.mark != REMOVED for row in part)
    ranges = f"@@ -{_range(old, old_count)} +{_range(new, new_count)} @@"
    heading = " ".join(_heading(part, old, new, naming).split())
    head = f"{ranges} {heading}".rstrip() + "\n"
    return head.encode("utf-8", "surrogateescape") + b"".join(row.shown() for row in part)


def _range(start: int, count: int) -> str:
    if count == 0:
        return f"{start},0"
    if count == 1:
        return str(start + 1)
    return f"{start + 1},{count}"


def _heading(part: list[Row], old: int, new: int, naming: Naming) -> str:
    """Return the authors of a hunk; with the lines of each, if they differ."""
    spans: list[tuple[str, bytes, int, int]] = []  # authors, mark, first line, last line
    for row in part:
        old, new = old + (row.mark != ADDED), new + (row.mark != REMOVED)
        if row.piece is None:
            continue
        number = new
        if row.mark == REMOVED:
            number = old
        words = naming(row.piece.authors)
        if spans and spans[-1][:2] == (words, row.mark) and spans[-1][3] == number - 1:
            spans[-1] = (*spans[-1][:3], number)
        else:
            spans.append((words, row.mark, number, number))
    every = dict.fromkeys(words for words, *_rest in spans)
    if len(every) == 1:
        return "".join(every)
    return "; ".join(
        f"{mark.decode()}{first}{f'-{last}' if last > first else ''} {words}" for words, mark, first, last in spans
    )


# The patch of a file without lines, in git's form: a binary file, a symbolic link, a file over 1 MiB.
#
# A change between a file and a link is the removal of the one and the creation of the other, as in git.

LINE = 52  # bytes in one line of a binary patch
_PATCHED = ("binary", "a symbolic link", "larger than ")  # beginnings of reasons; filters, submodules have no patch


def whole_patch(top: str, one: ChangedFile) -> bytes:
    """Return the patch of a file in the work tree `top`; empty if git's own would not have the present content."""
    file = one.file
    if not one.reason.startswith(_PATCHED):
        return b""
    try:
        repository = Repository(top, SECONDS)
        old = _committed(repository, file)
        new = present(file.path)[1] if file.new_mode else b""
        if old is None or new is None or (file.new_mode and not _is_stored_so(repository, file, new)):
            return b""
    except (NoAnswer, Refused, OSError):
        return b""  # gone, unreadable, or not in this clone: it is named all the same
    kinds = {mode == LINK for mode in (file.old_mode, file.new_mode) if mode}
    if len(kinds) == 1:
        return _patch(file, file.old_mode, file.new_mode, old, new)
    return _patch(file, file.old_mode, NONE, old, b"") + _patch(file, NONE, file.new_mode, b"", new)


def _committed(repository: Repository, file: DirtyFile) -> bytes | None:
    """Return the content in the last commit, empty without a file there; None if it is too large, or missing here."""
    if not file.old_id:
        return b""
    size = sizes(repository, [file.old_id])[0]
    if size is None or size > LARGEST:
        return None
    return blob(repository, file.old_id)


def _is_stored_so(repository: Repository, file: DirtyFile, content: bytes) -> bool:
    """Return True if git stores this present content as it is."""
    if file.new_mode == LINK:
        return True
    if "\n" in file.name or filters_of(repository, [file]):
        return False
    made = repository.ask("hash-object", "--stdin-paths", stdin=f"{file.name}\n").strip()
    return made == object_id(content, made)


def _patch(file: DirtyFile, old_mode: str, new_mode: str, old: bytes, new: bytes) -> bytes:
    head = header(file.name, old_mode, new_mode, file.old_id, new)
    if old == new and old_mode and new_mode:
        return head
    if LINK in (old_mode, new_mode):
        return head + hunks_of_link(file.name, old_mode, new_mode, old, new)
    return head + b"GIT binary patch\n" + _literal(new) + _literal(old)


def _literal(content: bytes) -> bytes:
    """Return the content as a binary patch has it: compressed, each line with its length in front."""
    packed, lines = zlib.compress(content), [b"literal %d\n" % len(content)]
    for start in range(0, len(packed), LINE):
        part = packed[start : start + LINE]
        size = ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27
        lines.append(bytes([size]) + b85encode(part, pad=True) + b"\n")
    return b"".join([*lines, b"\n"])
