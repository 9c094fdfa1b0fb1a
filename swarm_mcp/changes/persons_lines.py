"""The plan to take back a person's uncommitted lines: those that no session has written.

The lines are the pieces that ``swarm-mcp diff --person`` shows. Lines of sessions beside them stay, byte for byte. A
piece that a session may have written as well stands in the way, and so does a file without lines (binary, a link, over
1 MiB).
"""

from __future__ import annotations

from swarm_hook_core.traces.equal_lines import split_lines
from swarm_mcp.changes.commit.parts import A_MODE, REMOVED, Group
from swarm_mcp.changes.commit.whole import mode_writers
from swarm_mcp.changes.dirty import NONE, PROGRAM, relative_names, top_over
from swarm_mcp.changes.pieces import spliced, tied
from swarm_mcp.changes.planning import Plan
from swarm_mcp.changes.present import present, state_now
from swarm_mcp.changes.problems import Problem
from swarm_mcp.changes.records import FileUndo, mode_of, mode_of_new_file, with_run_right
from swarm_mcp.changes.uncommitted import ChangedFile, uncommitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.traces.versions.acts import Author
    from swarm_mcp.changes.dirty import DirtyFile
    from swarm_mcp.changes.pieces import Piece

WHOLE = "it has no lines to take back; `git checkout -- FILE` is for the whole file"


def plan_persons(folder: str, only: list[str]) -> Plan:
    """Return the plan to take back a person's lines in the files `only`, absolute, or below `folder` without any.

    Raises SwarmError, OSError.
    """
    top, plan = top_over(folder), Plan()
    for changed in uncommitted(top, relative_names(top, only or [folder]), plan.notes):
        if changed.reason:
            if any(author.is_person for author in changed.whole_authors):
                plan.problems.append(Problem(changed.file.path, [], _others(changed.whole_authors), WHOLE))
        else:
            _add(plan, changed)
    return plan


def _add(plan: Plan, changed: ChangedFile) -> None:
    """Add the undo of one file with lines, and its problems. Raises OSError."""
    file, one = changed.file, _present(changed.file)
    groups = [Group(some, _is_persons) for some in tied(changed.pieces)]
    own = [piece for group in groups if group.is_own for piece in group.pieces]
    shared = [group for group in groups if not group.is_own and not group.is_others]
    is_all = all(group.is_own for group in groups) and bool(groups or not changed.writers)
    if file.new_mode == NONE and is_all:
        one.after, one.mode_after = file.head, with_run_right(mode_of_new_file(), file.old_mode == PROGRAM)
    elif file.new_mode == NONE and (own or shared):
        plan.problems.append(Problem(file.path, [], changed.authors, REMOVED))
    elif file.old_mode == NONE and is_all:
        one.after, one.mode_after = None, 0
    elif file.new_mode != NONE:
        plan.problems += [_problem(file, group) for group in shared]
        one.after = _without(one.before or b"", own, file.converts)
        _take_mode_back(plan, changed, one)
    if (one.after, one.mode_after) != (one.before, one.mode_before):
        plan.files.append(one)


def _take_mode_back(plan: Plan, changed: ChangedFile, one: FileUndo) -> None:
    """Give the undo the file's committed right to be run, if a person alone has changed it."""
    if not changed.has_new_mode:
        return
    writers = mode_writers(changed.file, plan.notes)
    if writers and all(map(_is_persons, writers)):
        one.mode_after = with_run_right(one.mode_before, changed.file.old_mode == PROGRAM)
    elif any(map(_is_persons, writers)):
        plan.problems.append(Problem(one.path, [], writers, A_MODE))


def _present(file: DirtyFile) -> FileUndo:
    """Return the undo of the file, with its content and permissions as they are now. Raises OSError."""
    one = FileUndo(file.path)
    one.state = state_now(file.path)
    found, one.before = present(file.path)
    if found is not None:
        one.mode_before = one.mode_after = mode_of(found)
    one.after = one.before
    return one


def _without(content: bytes, pieces: Sequence[Piece], converts: bool) -> bytes:
    """Return the present content with the committed lines in the place of these pieces, in order."""
    changes = ((piece.new, len(piece.added), [_in_tree(text, converts) for text in piece.removed]) for piece in pieces)
    return spliced(split_lines(content), changes)


def _in_tree(text: bytes, converts: bool) -> bytes:
    """Return a committed line as git writes it into the work tree."""
    if converts and text.endswith(b"\n"):
        return text[:-1].removesuffix(b"\r") + b"\r\n"
    return text


def _problem(file: DirtyFile, group: Group) -> Problem:
    place = group.place(file)
    return Problem(file.path, list(range(place.first, place.last + 1)), group.authors)


def _others(authors: Sequence[Author]) -> list[Author]:
    return [author for author in authors if not author.is_person]


def _is_persons(author: Author) -> bool:
    return author.is_person
