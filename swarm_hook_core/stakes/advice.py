"""Narrower forms of git commands that would affect others' uncommitted changes: the same for one's own work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from shlex import quote

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.traces.file_changes import Patience, is_by
from swarm_hook_core.untrusted_text import cut

MOST_NAMED = 8  # files that a command names

# Forms that name the session's own files. verb -> (for tracked files, if some file is untracked); None: the verb does
# not touch such files.
_FORMS = {
    "add": ("git add {files}", "git add {files}"),
    "stage": ("git add {files}", "git add {files}"),
    "commit": ("git commit {files}", None),
    "stash": ("git stash push -- {files}", "git stash push -u -- {files}"),
    "checkout": ("git checkout -- {files}", None),
    "restore": ("git restore {files}", None),
    "reset": ("git restore --staged --worktree {files}", None),
    "checkout-index": ("git checkout -- {files}", None),
    "read-tree": ("git restore --staged --worktree {files}", None),
    "clean": (None, "git clean -f {files}"),
    "rm": ("git rm -f {files}", None),
}


# Verbs with an effect on the session's own changes that `swarm-mcp undo` has as well, in files shared with others too.
_UNDONE = {
    **dict.fromkeys(
        ("checkout", "restore", "reset", "checkout-index", "read-tree"),
        "Your own changes alone, in shared files too: `swarm-mcp undo {options}{files}`, or the tool undo.",
    ),
    "stash": "To put your own changes alone aside, in shared files too: `swarm-mcp undo {options}{files}`, or the tool"
    " undo; its answer says how to bring them back.",
}
_UNSURE = "Lines that may be another's stay."


def can_be_undone(words: list[str]) -> bool:
    """Return True if ``git <words>`` does to the session's own changes what `swarm-mcp undo` does."""
    if words[0] not in _UNDONE:
        return False
    options = options_of(words)
    if words[0] == "restore":
        return options.value("-s", "--source") in (None, "HEAD")
    if words[0] == "checkout" and "--" in words:
        before = [word for word in words[1 : words.index("--")] if word[:1] != "-"]
        return before in ([], ["HEAD"])
    return True


def shared_with(paths: Sequence[str], name: str, patience: Patience) -> tuple[list[str], bool]:
    """Return ``(files, is_unsure)``: those of `paths` with changes of the session with the journal `name` beside
    others'.

    A file counts without lines, and without time to look it up. `is_unsure`: some of the lines may be this session's
    or of another session, and nothing tells that in time.
    """
    files, is_unsure = [], False
    for path in paths:
        if not patience.left():
            files.append(path)
            is_unsure = True
            continue
        lines = patience.lines_of(path)
        if lines is None or any(is_by(line, name, is_sure=True) for line in lines):
            files.append(path)
            is_unsure = is_unsure or any(is_by(line, name) and line.author is None for line in lines or ())
    return files, is_unsure


def way(words: list[str], changed: list[str], new: list[str], folder: str, shared: list[str], is_unsure: bool) -> str:
    """Return a sentence with the command to run instead of ``git <words>``, or "".

    `changed`, `new`: files in question (absolute) with changes of this session alone, tracked and untracked. They are
    named relative to `folder`, or absolute if that is empty. `shared`, `is_unsure`: as `shared_with` returns them, for
    a command that `can_be_undone`; else empty.
    """
    refusing = _refusing(words)
    if refusing:
        return f"`{refusing}` leaves them alone: git refuses where it would touch them."
    if words[0] == "worktree":
        return "Name the work trees that are your own, one by one."
    if shared:
        form, options = _UNDONE[words[0]], ""
        if is_unsure:
            form, options = f"{form} {_UNSURE}", "--partial "
        return form.format(files=_named([*shared, *changed], folder), options=options)
    own = _narrow(words, changed, new, folder)
    if own:
        return f"For your own files alone: `{own}`."
    if words[0] in _FORMS:
        return "Name your own files, if there are any."
    if words[0] in ("rebase", "merge", "pull") and "--abort" not in words and "--skip" not in words:
        return "In a work tree of your own (`git worktree add`) nothing needs to be put aside."
    return ""


def _narrow(words: list[str], changed: list[str], new: list[str], folder: str) -> str:
    form, form_for_new = _FORMS.get(words[0], (None, None))
    files = [*(changed if form else ()), *(new if form_for_new else ())]
    chosen = (form_for_new if new and form_for_new else form) or ""
    if files:
        return chosen.format(files=_named(files, folder))
    return ""


def _refusing(words: list[str]) -> str:
    """Return a command of the same purpose that git refuses if it would touch uncommitted changes, or ""."""
    options = options_of(words)
    target = ""
    if options.operands and is_known(options.operands[0]):
        target = options.operands[0]
    if not target or "--" in words:
        return ""

    if words[0] == "reset" and target != "HEAD":
        return f"git reset --keep {quote(target)}"
    if words[0] == "switch" or (words[0] == "checkout" and options.has("-f", "--force")):
        return f"git {words[0]} {quote(target)}"
    return ""


def _named(files: list[str], folder: str) -> str:
    some = [cut(quote(os.path.relpath(file, folder) if folder else file), 500) for file in files[:MOST_NAMED]]
    return " ".join(some) + (" ..." if len(files) > MOST_NAMED else "")
