"""The commit itself: a private index with the parts, the repository's hooks, the message, the signed commit object.

Nothing of it is seen by others: objects without a reference, and an index of its own. Hooks get that index
(GIT_INDEX_FILE), as those of `git commit` do; a hook that stages something changes the commit. If the work tree has
other uncommitted changes than the commit's, the hooks run in a work tree apart.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from swarm_hook_core.state import make_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes.commit.apart import (
    Git,
    has_hooks,
    is_as_the_commit,
    last_words,
    literal,
    make_apart,
    patch_for,
    split,
)
from swarm_mcp.changes.commit.landing import Moved, Rewritten, Workshop
from swarm_mcp.changes.commit.parts import Part
from swarm_mcp.errors import Refused

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_mcp.changes.commit import Commit, Committed

MESSAGE = "COMMIT_EDITMSG"  # git's own name: hooks look for it
PATCH = "hooks.patch"  # kept until the next commit


class Making:
    """The making of a commit on `head` (empty: the first one), in the `workshop`.

    output     output of the hooks
    subject    first line of the message, once it is made
    is_apart   True if the hooks run in a work tree apart
    rewritten  files that the hooks have changed in the commit: ``{path: (entry as staged, entry in the commit)}``
    """

    def __init__(self, git: Git, workshop: Workshop, head: str):
        self.output = ""
        self.subject = ""
        self.is_apart = False
        self.rewritten: Rewritten = {}
        self._head = head
        self._shared = git
        self._workshop = workshop
        workshop.clear()
        index, private = git.path("index"), workshop.path("index")
        if os.path.exists(index):
            shutil.copy2(index, private)  # its time tells git the entries that may be older than their files
        self._git = git.with_index(private)
        if head:
            self._git.ask("read-tree", "--reset", head)
        else:
            self._git.ask("read-tree", "--empty")

    def dirty(self, paths: Sequence[str]) -> list[str]:
        """Return the paths, from the top, of uncommitted files at and below `paths`; an empty list means all."""
        limits = ["--", *literal(paths)]
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
        found = [part[3:].rstrip("/") for part in split(self._git.ask(*words, *limits))]
        words = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=A")
        tree = self._head or self._git.ask("mktree").strip()
        found += split(self._shared.ask(*words, tree, *limits))  # staged in spite of an ignore rule
        return list(dict.fromkeys(found))

    def stage(self, parts: Sequence[Part]) -> None:
        """Put the parts into the private index, as `git add` would. Raises Moved if a file has changed meanwhile."""
        whole = [part for part in parts if part.content is None]
        if whole:
            data = os.fsencode("".join(part.path + "\0" for part in whole))
            self._git.ask("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=data)
        if any(part.state and state_of(os.path.join(self._git.top, part.path)) != part.state for part in parts):
            raise Moved  # its new lines may be another author's
        pieces = [part for part in parts if part.content is not None]
        if not pieces:
            return
        names = []
        make_private(self._workshop.path("tree"))
        for number, part in enumerate(pieces):
            names.append(os.path.join(self._workshop.path("tree"), str(number)))
            with open(names[-1], "wb") as file:
                file.write(part.content or b"")
        data = os.fsencode("".join(name + "\n" for name in names))
        objects = self._git.ask("hash-object", "-w", "--no-filters", "--stdin-paths", data=data).split()
        self._git.set_entries({part.path: (part.mode, name) for part, name in zip(pieces, objects)})

    def commit(self, messages: Sequence[str]) -> str:
        """Run the hooks, and return the new commit's name. Raises Refused if a hook or the signing fails."""
        staged = self._require_change("the parts are as committed, but for line ends")
        if has_hooks(self._shared) and not is_as_the_commit(self._git):
            self._git, self.is_apart = make_apart(self._shared, self._git, self._workshop), True
        environment = self._author()
        try:
            self.hook("pre-commit", environment=environment)
        except Refused as error:
            raise Refused(f"{error}{self._changed_apart(staged)}", output=self.output) from None
        tree = self._require_change("the pre-commit hook has taken all changes out")
        if tree != staged:
            self.rewritten = self._git.between(staged, tree)
        path = self._git.path(MESSAGE)
        with open(path, "wb") as file:
            file.write(self._clean(os.fsencode("\n\n".join(text.strip("\n") for text in messages) + "\n")))
        self.hook("prepare-commit-msg", path, "message", environment=environment)
        self.hook("commit-msg", path, environment=environment)
        with open(path, "rb") as file:
            text = self._clean(file.read())
        if not text.strip():
            raise Refused("the message is empty after the hooks")
        self.subject = " ".join(os.fsdecode(text.strip().partition(b"\n\n")[0]).split())
        words = ["commit-tree", tree]
        if self._head:
            words += ["-p", self._head]
        if self._git.line("config", "--type=bool", "commit.gpgSign") == "true":
            words.append("-S")
        done = self._shared.with_more(environment).run([*words, "-F", "-"], text)
        if done.returncode:
            raise Refused(f"git commit-tree: {last_words(done)}")
        return os.fsdecode(done.stdout).strip()

    def _require_change(self, words: str) -> str:
        """Return the tree of the private index. Raises Refused with these `words` if it is that of HEAD."""
        tree = self._git.ask("write-tree").strip()
        if self._head and tree == self._git.line("rev-parse", f"{self._head}^{{tree}}"):
            raise Refused(f"nothing to commit: {words}")
        return tree

    def keep_patch(self, changes: Rewritten) -> str:
        """Keep a patch that makes these changes of hooks in the shared work tree; return the command that applies it.

        The command is empty if no change fits there.
        """
        patch = patch_for(self._shared, changes, self._workshop.path("tree"))
        if not patch:
            return ""
        with open(self._workshop.path(PATCH), "wb") as file:
            file.write(patch)
        return shlex.join(["git", "-C", self._shared.top, "apply", self._workshop.path(PATCH)])

    def _changed_apart(self, staged: str) -> str:
        """Return words about changes that a failed hook has made in the work tree apart."""
        if not self.is_apart:
            return ""
        self._git.run(["add", "-u"])
        changes = self._git.between(staged, self._git.ask("write-tree").strip())
        if not changes:
            return ""
        words = f"; it has changed {', '.join(list(changes)[:10])} in a copy of the work tree"
        command = self.keep_patch(changes)
        if command:
            words += f": `{command}` changes the files here, too"
        return words

    def hook(self, name: str, *words: str, is_shared: bool = False, environment: dict[str, str] | None = None) -> None:
        """Run a hook of the repository, if it has one. Raises Refused with its output if it fails.

        `is_shared`: with the shared index, after the commit; then a failure changes nothing.
        """
        more = {"GIT_EDITOR": ":", **(environment or {})}
        git = self._git.with_more(more)
        if is_shared:
            git = self._shared.with_more(more)
        done = git.run(["hook", "run", "--ignore-missing", name, "--", *words])
        if done.returncode and b"'hook' is not a git command" in done.stderr:
            done = self._run_by_path(git, name, words)  # git before 2.36
        text = os.fsdecode(done.stderr + done.stdout)
        self.output += text
        if done.returncode and not is_shared:
            raise Refused(f"the {name} hook failed: {last_words(done)}", output=text)

    def _run_by_path(self, git: Git, name: str, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        path = git.path(f"hooks/{name}")
        if not os.access(path, os.X_OK):
            return subprocess.CompletedProcess([path], 0, b"", b"")
        return subprocess.run([path, *words], cwd=git.top, env=git.environment, capture_output=True, check=False)

    def _clean(self, text: bytes) -> bytes:
        """Return a message as `commit.cleanup` has it for one that no editor showed."""
        mode = self._git.line("config", "commit.cleanup") or "default"
        if mode == "verbatim":
            return text
        words = ["stripspace"]
        if mode == "strip":
            words.append("-s")
        return self._git.run(words, text).stdout

    def _author(self) -> dict[str, str]:
        """Return the author for hooks and the commit, as variables. Raises Refused if git knows no author."""
        self._git.ask("var", "GIT_COMMITTER_IDENT")
        person, _, date = self._git.ask("var", "GIT_AUTHOR_IDENT").strip().rpartition("> ")
        name, _, address = person.partition(" <")
        return {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address, "GIT_AUTHOR_DATE": f"@{date}"}


# The answer of a commit, for the command and for the tool.


def described(commit: Commit, done: Committed) -> dict[str, Any]:
    """Return a finished or planned commit as an object for programs."""
    value: dict[str, Any] = {
        "ok": True,
        "commit": done.commit or None,
        "branch": done.branch or None,
        "files": [{"file": one.path, "added": one.added, "removed": one.removed} for one in done.parts],
        "left_out": [{"place": one.words, "by": commit.named(one.authors)} for one in done.left_out],
    }
    if done.staged:
        value["staged_by_others"] = done.staged
    if done.output.strip():
        value["hooks"] = done.output.strip()
    if done.rewritten:
        value["changed_by_hooks"] = {"files": done.rewritten, "apply": done.apply or None}
    return value


def lines(commit: Commit, done: Committed) -> list[str]:
    """Return the same as lines for a reader."""
    where = f"on {done.branch or 'a detached HEAD'}"
    names = ", ".join(one.path for one in done.parts[:10])
    if len(done.parts) > 10:
        names += f" and {len(done.parts) - 10} more"
    if done.commit:
        found = [f"committed {done.commit[:12]} {where}: {names}"]
    else:
        found = [f"would commit {where}: {names}"]
    if done.left_out:
        found.append(f"left out: {commit.listed(done.left_out)}")
    if done.staged:
        found.append(
            f"staged content of others that does not fit to this commit was left: {', '.join(done.staged)}"
            " (`git diff --cached` shows it)"
        )
    if done.rewritten:
        found.append(f"the hooks changed {', '.join(done.rewritten[:10])} in the commit, not in the work tree")
        if done.apply:
            found[-1] += f": `{done.apply}` changes it here, too"
    return found
