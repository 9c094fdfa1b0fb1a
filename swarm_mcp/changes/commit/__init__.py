"""A commit of one author's uncommitted changes alone, beside the changes of all others.

    parts          the changes of the author, of others, and of both
    git            git with the repository's own programs
    landing        the branch and the shared index, changed together or not at all

No file of the work tree is written, but for those that hooks rewrite, as for `git commit`. The shared index changes
only where the commit does.

The commit is made with a private index that others do not see. Hooks get that index (GIT_INDEX_FILE), as those of
`git commit` do; a hook that stages something changes the commit. If the work tree has other uncommitted changes than
the commit's, the hooks run in a work tree apart.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.state import make_private, write_private
from swarm_hook_core.traces import place_of, state_of
from swarm_hook_core.traces.journal import owner_of
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.traces.versions.stored import journals_of
from swarm_mcp.changes.authorship import committed
from swarm_mcp.changes.commit.git import (
    Git,
    differing,
    last_words,
    literal,
    patch_for,
    split,
)
from swarm_mcp.changes.commit.landing import Mending, Moved, Rewritten, Workshop
from swarm_mcp.changes.commit.parts import Part, Parts, Place
from swarm_mcp.changes.dirty import committed_file, dirty_files
from swarm_mcp.errors import Refused

# The commit object, by a private index.

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
        if _has_hooks(self._shared) and not _is_as_the_commit(self._git):
            self._git, self.is_apart = _make_apart(self._shared, self._git, self._workshop), True
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


# A work tree apart: exactly the content of the coming commit, for the repository's hooks.
#
# Hooks stage files (`git add -A`), put unstaged changes aside (pre-commit, lint-staged) and read files. Beside
# uncommitted changes of others they would take these along, or away for a while. So they run in a folder of their own
# then, with a git folder of its own that shares branches, settings and objects with the repository. `git worktree list`
# does not know it, and nothing of it is in the repository.
#
# Files that git ignores (``node_modules``, ``.venv``) are linked there, the topmost ones first. Submodules are empty,
# and files of git-lfs are pointers.

_MOST_LINKS = 1000
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")


def _has_hooks(git: Git) -> bool:
    """Return True if the repository has a hook that runs before a commit."""
    folder = git.path("hooks")
    if any(os.access(os.path.join(folder, name), os.X_OK) for name in _HOOKS):
        return True
    return bool(git.line("config", "--get-regexp", r"^hook\..*\.command$"))


def _is_as_the_commit(git: Git) -> bool:
    """Return True if the work tree has exactly the content of git's private index, ignored files aside."""
    words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
    return all(part[1] == " " for part in split(git.ask(*words)))


def _make_apart(shared: Git, private: Git, workshop: Workshop) -> Git:
    """Make the work tree apart, and return git in it. Raises Refused.

    `shared`: git in the shared work tree; `private`: git with the index of the coming commit.
    """
    if shared.line("config", "extensions.refStorage") == "reftable":
        raise Refused(
            "others have uncommitted changes here, and in a repository with reftable the hooks cannot run apart from"
            " them: commit when these are committed"
        )
    top = os.path.join(workshop.path("apart"), os.path.basename(shared.top) or "work")
    own = os.path.join(top, ".git")
    make_private(own)
    branch = shared.line("symbolic-ref", "-q", "HEAD")
    head = f"ref: {branch}" if branch else shared.head()
    common = os.path.join(shared.top, shared.ask("rev-parse", "--git-common-dir").rstrip("\n"))
    write_private(os.path.join(own, "HEAD"), head + "\n")
    write_private(os.path.join(own, "commondir"), os.path.realpath(common) + "\n")
    _copy_settings(shared, workshop.own, own)
    index = os.path.join(own, "index")
    shutil.copy2(private.index, index)
    settings = {"core.fsmonitor": "false"}
    git = Git(top, index, _with_settings(shared, settings))
    done = Git(top, index, {**git.environment, "GIT_LFS_SKIP_SMUDGE": "1"}).run(["checkout-index", "-a", "-f", "-u"])
    if done.returncode:
        raise Refused(f"the hooks' own work tree cannot be made: {last_words(done)}")
    links = _link_ignored(shared, top)
    if links:
        settings["core.excludesFile"] = os.path.join(own, "excludes")
        write_private(settings["core.excludesFile"], _excludes(shared, links))
    hooks = shared.path("hooks")
    if hooks.startswith(shared.top + os.sep) and not os.path.isdir(git.path("hooks")):
        settings["core.hooksPath"] = hooks  # neither in the commit nor ignored
    return Git(top, index, _with_settings(shared, settings))


def _copy_settings(shared: Git, from_own: str, own: str) -> None:
    """Copy git's files of one work tree: its settings, and the paths of a sparse checkout."""
    for name in ("config.worktree", "info/sparse-checkout"):
        source, target = os.path.join(from_own, name), os.path.join(own, name)
        if os.path.isfile(source):
            make_private(os.path.dirname(target))
            shutil.copyfile(source, target)
    target = os.path.join(own, "config.worktree")
    if os.path.isfile(target):
        for name in ("core.worktree", "core.bare"):
            shared.run(["config", "--file", target, "--unset-all", name])


def _link_ignored(shared: Git, top: str) -> list[str]:
    """Link the ignored files and folders of the shared work tree into `top`; return their names."""
    words = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--no-empty-directory")
    names = [name.rstrip("/") for name in split(shared.ask(*words))]
    found = []
    for name in sorted(names, key=lambda one: one.count("/"))[:_MOST_LINKS]:
        link = os.path.join(top, name)
        if os.path.isdir(os.path.dirname(link)) and not os.path.lexists(link):
            try:
                os.symlink(os.path.join(shared.top, name), link)
            except OSError:
                break  # no links on this platform, or for this user
            found.append(name)
    return found


def _excludes(shared: Git, links: Iterable[str]) -> str:
    """Return the user's own ignore rules, and one for each link: rules for folders do not match it."""
    path = shared.line("config", "--type=path", "core.excludesFile")
    if not path:
        path = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "ignore")
    rules = ""
    try:
        with open(os.path.join(shared.top, path), encoding="utf-8", errors="surrogateescape") as file:
            rules = file.read()
    except OSError:
        pass  # the user has no rules
    return "\n".join([rules, *("/" + _escaped(name) for name in links), ""])


def _escaped(name: str) -> str:
    return "".join("\\" + sign if sign in "\\*?[ " else sign for sign in name)


def _with_settings(shared: Git, settings: dict[str, str]) -> dict[str, str]:
    """Return the environment that adds these settings to those that git's environment has already."""
    count = int(shared.environment.get("GIT_CONFIG_COUNT") or 0)
    found = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (name, value) in enumerate(settings.items(), count):
        found[f"GIT_CONFIG_KEY_{number}"] = name
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


# The commit of an author: prepared, tried, and landed.

TRIES = 3  # commits prepared anew, because the branch or a file has changed meanwhile
IN_PROGRESS = {
    "MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase", "CHERRY_PICK_HEAD":
    "a cherry-pick", "REVERT_HEAD": "a revert",
}  # fmt: skip


class Committed:
    """A finished commit, or the plan of one if `commit` is empty.

    branch     its branch; empty for a detached HEAD
    parts      the author's Parts in it
    left_out   Places of others
    staged     paths with staged content of others that was left as it was
    output     output of the repository's hooks
    rewritten  paths that the hooks have changed in the commit, and not in the work tree
    apply      a command that changes them there as well; empty if lines of others stand in the way
    """

    def __init__(self, commit: str, branch: str, parts: list[Part], left_out: list[Place]):
        self.commit = commit
        self.branch = branch
        self.parts = parts
        self.left_out = left_out
        self.staged: list[str] = []
        self.output = ""
        self.rewritten: list[str] = []
        self.apply = ""


class _Ready(NamedTuple):
    """A commit `made` on `head` that is not the branch's yet."""

    head: str
    made: str
    making: Making
    parts: Parts


class Commit:
    """The commit of an author in the work tree around absolute `folder`.

    is_own    function of an Author: True for the author of the commit
    named     function of a list of Authors that returns them in words
    messages  paragraphs of the commit message
    files     absolute paths of files and folders; empty: all
    """

    def __init__(
        self,
        folder: str,
        is_own: Callable[[Author], bool],
        named: Callable[[Sequence[Author]], str],
        messages: Sequence[str],
        files: Sequence[str] = (),
    ):
        tree = tree_over(os.path.realpath(folder))
        if tree is None:
            raise Refused(f"{folder} is in no work tree of a git repository")
        if not any(text.strip() for text in messages):
            raise Refused("the message is empty: -m TEXT")
        self.tree: Tree = tree
        self._git = Git(tree.top)
        self._is_own = is_own
        self.named = named
        self._messages = list(messages)
        self._files = [self._inside(file) for file in files]

    def make(self, test: Callable[[str, str], None] | None = None) -> Committed:
        """Make the commit. Raises Refused: nothing has changed then.

        `test`: called with the names of HEAD and of the new commit before that is the branch's. It may raise Refused,
        and Moved if it has to be made anew. Other commits do not wait for it.
        """
        for _try in range(TRIES):
            try:
                with Workshop(self.tree.top, self.tree.own) as workshop:
                    ready = self._prepare(workshop)
                    if test is None:
                        return self._land(workshop, ready)
                test(ready.head, ready.made)
                with Workshop(self.tree.top, self.tree.own) as workshop:
                    return self._land(workshop, ready)
            except Moved:
                continue  # the next try begins with the new HEAD
        raise Refused("the branch or the files have changed meanwhile, again and again: try again")

    def plan(self) -> Committed:
        """Return the commit as it would be made. Raises Refused."""
        with Workshop(self.tree.top, self.tree.own) as workshop:
            head = self._git.head()
            parts = self._parts(Making(self._git, workshop, head))
            return Committed("", self._branch(), parts.own, parts.left_out)

    def _prepare(self, workshop: Workshop) -> _Ready:
        head = self._git.head()
        making = Making(self._git, workshop, head)
        parts = self._parts(making)
        making.stage(parts.own)
        began_ns = time.time_ns()
        made = making.commit(self._messages)
        if making.rewritten and not making.is_apart and self._others_wrote(began_ns):
            raise Moved  # a hook may have staged it: the next try has the hooks in a work tree apart
        return _Ready(head, made, making, parts)

    def _land(self, workshop: Workshop, ready: _Ready) -> Committed:
        head, made, making, parts = ready
        others = {place.path for place in parts.left_out}
        mending = Mending(self._git, head, made, {part.path for part in parts.own} - others)
        rewritten = making.rewritten if making.is_apart else {}
        workshop.land(self._git, head, made, making.subject, mending.write, rewritten)
        making.hook("post-commit", is_shared=True)
        committed(self.tree.top)
        done = Committed(made, self._branch(), parts.own, parts.left_out)
        done.staged = mending.left
        done.output = making.output
        done.rewritten = differing(self._git, rewritten)
        if done.rewritten:
            done.apply = making.keep_patch(rewritten)
        return done

    def _others_wrote(self, since_ns: int) -> bool:
        """Return True if another session may have written in this work tree since then."""
        for data in journals_of(place_of(self.tree.top)).values():
            owner, last = owner_of(data), data.rstrip(b"\n").rpartition(b"\n")[2].partition(b" ")[0]
            if owner[1] and not self._is_own(Author(*owner)) and last.isdigit() and int(last) >= since_ns:
                return True
        return False

    def _parts(self, making: Making) -> Parts:
        """Return the Parts of all files in question. Raises Refused for overlaps, and if nothing is the author's."""
        self._require_rest()
        parts, named = Parts(self._git, self._is_own), set(self._files)
        paths = making.dirty(self._files)
        states = {path: state_of(os.path.join(self.tree.top, path)) for path in paths}
        known = {file.name.rstrip("/"): file for file in dirty_files(self.tree.top, self._files) if states}
        for path, state in states.items():
            file = known.get(path) or committed_file(self.tree.top, path)
            parts.add(file, state, path in named)
        if parts.overlaps:
            raise Refused(self._overlapping(parts), overlaps=[one.words for one in parts.overlaps])
        if not parts.own:
            more = ""
            if parts.left_out:
                more = f": {self.listed(parts.left_out)}"
            raise Refused(f"nothing of yours to commit{more}", left_out=[one.words for one in parts.left_out])
        return parts

    def _require_rest(self) -> None:
        """Raise Refused in the middle of a merge or the like, and if the index is locked."""
        for path, deed in zip(self._git.paths(list(IN_PROGRESS)), IN_PROGRESS.values()):
            if os.path.exists(path):
                raise Refused(f"{deed} is in progress here: finish or abort it first (`git status`)")
        unmerged = split(self._git.ask("diff", "--name-only", "--diff-filter=U", "-z", "--", *literal(self._files)))
        if unmerged:
            raise Refused(f"{unmerged[0]} has conflicts that are not resolved in the index: `git add` it first")

    def _overlapping(self, parts: Parts) -> str:
        bad = {one.path for one in parts.overlaps}
        free = [part.path for part in parts.own if part.path not in bad]
        way = "commit it with their consent (`git commit FILE`)"
        if free:
            way = f"name the other files ({', '.join(free[:5])}), or {way}"
        return f"the same place may have changes of yours and of others: {self.listed(parts.overlaps)}; {way}"

    def listed(self, places: Sequence[Place]) -> str:
        """Return at most ten Places in words, with their authors."""
        words = [f"{one.words} ({self.named(one.authors)})" for one in places[:10]]
        if len(places) > 10:
            words.append(f"and {len(places) - 10} more")
        return "; ".join(words)

    def _branch(self) -> str:
        return self._git.line("symbolic-ref", "-q", "--short", "HEAD")

    def _inside(self, file: str) -> str:
        """Return the path of an absolute `file` from the top. Raises Refused for a file outside."""
        folder, name = os.path.split(os.path.normpath(file))
        folder = os.path.realpath(folder)
        path = os.path.relpath(os.path.join(folder, name), self.tree.top)
        if path.startswith("..") or os.path.isabs(path):
            raise Refused(f"{file} is outside of the work tree {self.tree.top}")
        if path == ".":
            return ""
        inner = tree_over(folder)
        if inner is not None and inner.top != self.tree.top:
            raise Refused(f"{path} is in another repository, {inner.top}: commit it there, by a call of its own")
        return path


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
