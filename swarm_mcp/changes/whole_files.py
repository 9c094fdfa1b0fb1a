"""The undo of a file without versions: a symbolic link, or a file over 1 MiB. It is taken back whole, or not at all.

The session alone must have changed it since the last commit. Its state before is that of the first version, if that was
kept: mostly "no file". Else it is the last commit's, if the file was as in git's index when the session began: the
journal's note of its state then, and git's own, are compared.
"""

from __future__ import annotations

import os

from swarm_hook_core.git_objects import blob, sizes
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces import NO_FILE, journal_name
from swarm_hook_core.traces.versions.acts import PERSON, Act
from swarm_hook_core.traces.versions.notes import Notes
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.changes.present import LARGEST, present, state_now
from swarm_mcp.changes.problems import NOT_KEPT, TOO_EARLY, Problem
from swarm_mcp.changes.records import LINK, FileUndo, mode_of, mode_of_new_file, with_run_right

SECONDS = 5.0  # for git's answer about one file
TOO_LARGE = "larger than 16 MiB"
CHANGED = "changed since that undo"


class NoSuchUndo(Exception):
    """The file cannot be taken back whole; `problem` says why."""

    def __init__(self, problem: Problem):
        super().__init__(problem.reason)
        self.problem = problem


def undo_of(path: str, session: tuple[str, str], since_ns: int, settled_ns: int, notes: Notes) -> FileUndo | None:
    """Return the undo of the file at `path`; None if the session has not changed it since it was `settled_ns`.

    `settled_ns`: time of the last commit with the file, or of the last undo of it. Raises NoSuchUndo, OSError.
    """
    one, found = _present(path)
    if one.mode_before < 0:
        return None  # a folder; its files come by themselves
    acts = [act for act in History(path, b"", found, notes=notes).acts if act.at_ns > settled_ns]
    own = [act for act in acts if act.author.session == session]
    if not own or own[-1].at_ns < since_ns:
        return None
    if own[0].at_ns < since_ns:
        raise NoSuchUndo(Problem(path, [], (), TOO_EARLY))
    others = [act.author for act in acts if act.author.session != session]
    if found is not None and not any(act.has_certainly_written_at(found.st_ctime_ns) for act in own):
        others.append(PERSON)
    if others:
        raise NoSuchUndo(Problem(path, [], others))
    if one.before is None and found is not None:
        raise NoSuchUndo(Problem(path, [], (), TOO_LARGE))
    versions = notes.of(os.path.dirname(path)).versions(path)
    first = next((version for version in versions if version.at_ns > settled_ns), None)
    if first is not None and first.is_whole:
        one.after = first.content() if first.exists else None
        one.mode_after = first.mode | 0o200 if first.exists else 0
    else:
        state = _state_before(path, session, own[0], notes)
        if state != NO_FILE:
            _take_committed(one, state)
    return one if (one.before, one.mode_before) != (one.after, one.mode_after) else None


def back_of(file: FileUndo) -> FileUndo | None:
    """Return the undo of `file`, an undo with its contents; None if it is done already. Raises NoSuchUndo, OSError."""
    if file.is_now(file.before, file.mode_before):
        return None
    if not file.is_now(file.after, file.mode_after):
        raise NoSuchUndo(Problem(file.path, [], (), CHANGED))
    one = FileUndo(file.path)
    one.is_whole, one.state = True, state_now(file.path)
    one.before, one.mode_before = file.after, file.mode_after
    one.after, one.mode_after = file.before, file.mode_before
    return one


def _present(path: str) -> tuple[FileUndo, os.stat_result | None]:
    """Return the undo of the file with its state now, and its facts, None if it is missing."""
    one = FileUndo(path)
    one.is_whole, one.state = True, state_now(path)
    found, one.before = present(path)
    if found is not None:
        one.mode_before = mode_of(found)
    return one, found


def _state_before(path: str, session: tuple[str, str], act: Act, notes: Notes) -> str:
    """Return the file's state (``state_of``) before this call, as the journal noted it, or ""."""
    noted = notes.of(os.path.dirname(path)).journals.get(journal_name(*session))
    entries = noted.of_file(path, ("wrote",)) if noted is not None else ()
    return next((entry.text for entry in entries if entry.at_ns == act.at_ns), "")


def _take_committed(one: FileUndo, state: str) -> None:
    """Make the last commit's content the result, if the file in this `state` had it. Raises NoSuchUndo."""
    missing = NoSuchUndo(Problem(one.path, [], (), NOT_KEPT))
    tree = tree_over(os.path.dirname(one.path))
    if tree is None or not state:
        raise missing
    repository, name = Repository(tree.top, SECONDS), os.path.relpath(one.path, tree.top).replace(os.sep, "/")
    try:
        index = repository.ask("ls-files", "-s", "--debug", "--", f":(literal){name}").split()
        listed = repository.ask("ls-tree", "HEAD", "--", name).split()
        if not listed or index[:2] != [listed[0], listed[2]] or not _is_state(index, state):
            raise missing
        size = sizes(repository, [listed[2]])[0]
        if size is None or size > LARGEST:
            raise missing
        content = blob(repository, listed[2])
    except (Refused, NoAnswer):
        raise missing from None
    if len(content) != int(state.rpartition(" ")[2]):
        raise missing  # git changes it on its way
    one.after = content
    if listed[0] == "120000":
        one.mode_after = LINK
    else:
        kept = one.mode_before if one.before is not None and one.mode_before != LINK else mode_of_new_file()
        one.mode_after = with_run_right(kept, listed[0] == "100755")


def _is_state(index: list[str], state: str) -> bool:
    """Return True if git's index, as ``ls-files --debug`` prints it, notes the file in this state."""
    facts = dict(zip(index, index[1:]))
    seconds, _, nanoseconds = facts.get("ctime:", "").partition(":")
    changed, _, rest = state.partition(" ")
    size = rest.rpartition(" ")[2]
    return changed == f"{seconds}{nanoseconds:0>9}" and size == facts.get("size:")
