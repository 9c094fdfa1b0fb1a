"""The step that makes a finished commit the branch's newest one, and mends the shared index; whole or not at all.

Both are files of git's, which no single system call can replace. So the order is: lock the index (`index.lock`, with
the mended index in it), move the branch, rename the lock to the index. A record, written first, tells of a step under
way. If the process dies, a guardian process waits for the lock on the record's folder, and completes the step if the
branch has moved, else takes the index's lock away. If the guardian dies as well, the next commit does that.

    <state folder>/commits/<digest of the work tree's git folder>/
        lock      held (flock) by the process at work, and by its `git update-ref`
        record    the step under way
        index     the private index; `mended`: the coming shared index; `tree`: files with parts of authors
        apart     a work tree for hooks
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

from swarm_hook_core.state import make_private, open_private, state_dir, write_private
from swarm_mcp.changes.commit.git import NO_FILE, Entry, Git, bring, last_words
from swarm_mcp.errors import Refused

Rewritten = dict[str, tuple[Entry, Entry]]  # path -> entry as staged, entry in the commit

try:
    import fcntl
except ImportError:  # Windows: two commits at one moment are told apart by git's own locks alone
    fcntl = None  # type: ignore[assignment]

_GUARDIAN = f"import sys; from {__name__} import guardian; guardian(*sys.argv[1:])"
SIDE = "index.swarm"  # beside git's index: its inode proves that a lock is ours
PATIENCE = 5.0  # seconds to wait for another git command's lock
GUARDIAN_SECONDS = 10.0
STALE_SECONDS = 2.0  # an update-ref holds its locks for milliseconds


class Moved(Exception):
    """The branch has another commit than the one that this commit was made for."""


class Workshop:
    """The private folder for commits of one work tree, locked; a ``with``. `own` is the work tree's git folder.

    On entry it clears up behind a process that died.
    """

    def __init__(self, top: str, own: str):
        self.top = top
        self.own = own
        self.folder = os.path.join(state_dir(), "commits", hashlib.sha256(os.fsencode(own)).hexdigest()[:32])
        self._handle = -1

    def __enter__(self) -> Workshop:
        make_private(self.folder)
        self._handle = open_private(self.path("lock"), os.O_RDWR | os.O_CREAT)
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.recover()
        return self

    def __exit__(self, *_failed: object) -> None:
        self.clear()
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        os.close(self._handle)

    @property
    def _side(self) -> str:
        return os.path.join(self.own, SIDE)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def clear(self) -> None:
        """Remove the files of a commit that is over."""
        for name in ("tree", "apart"):
            shutil.rmtree(self.path(name), ignore_errors=True)  # links in it go alone
        for name in ("index", "index.lock", "mended", "mended.lock"):
            _remove(self.path(name))

    # ------------------------------------------------------------------------------------------- landing

    def land(
        self, git: Git, old: str, new: str, subject: str, mend: Callable[[str], None], rewritten: Rewritten
    ) -> None:
        """Move HEAD's branch from `old` to `new`, and replace the shared index.

        ``mend(path)`` writes the coming index to `path`, while the present one is locked. `rewritten`: for files that
        the hooks have changed apart from the work tree (``git.bring``). Raises Moved, Refused.
        """
        index = git.path("index")
        side = self._side
        guardian = self._guard()
        try:
            inode = _make(side, index)
            record = {"index": index, "inode": inode, "old": old, "new": new, "rewritten": rewritten}
            write_private(self.path("record"), json.dumps(record))
            _lock(index, side)
            if git.head() != old:
                raise Moved
            mend(self.path("mended"))
            _fill(side, self.path("mended"))
            kind = "commit"
            if not old:
                kind = "commit (initial)"
            words = ["update-ref", "-m", f"{kind}: {subject}", "HEAD", new, old or "0" * len(new)]
            done = git.run(words, keeps=[self._handle])
            if done.returncode and git.head() != new:
                if git.head() != old:
                    raise Moved
                raise Refused(f"git update-ref: {last_words(done)}")
        finally:
            self.recover()
            if guardian is not None:
                self._dismiss(guardian)

    def recover(self) -> None:
        """Complete a step if its branch has moved; take back any other one. The record is enough for that."""
        try:
            with open(self.path("record"), encoding="utf-8") as file:
                record = json.load(file)
        except (OSError, ValueError, RecursionError):
            _remove(self._side)  # no step is under way; one may have been about to begin
            return
        lock, git = record["index"] + ".lock", Git(self.top)
        is_done = _is_in_history(git, record["new"])
        if _inode(lock) == record["inode"]:
            if is_done:
                os.replace(lock, record["index"])
            else:
                _remove(lock)
        _remove(self._side)
        self._remove_ref_locks(git, record)
        if is_done and record.get("rewritten"):
            bring(git, {path: (tuple(old), tuple(new)) for path, (old, new) in record["rewritten"].items()})
        _remove(self.path("record"))

    def _remove_ref_locks(self, git: Git, record: dict[str, Any]) -> None:
        """Remove the locks that a killed `git update-ref` of this step has left on HEAD and its branch."""
        branch = git.line("symbolic-ref", "-q", "HEAD")
        began = os.stat(self.path("record")).st_mtime
        for name in filter(None, (branch, "HEAD")):
            path = git.path(name) + ".lock"
            text = _text(path)
            if text is None or text not in ("", record["new"]):
                continue  # of another git command, or gone
            inode = _inode(path)
            end = time.monotonic() + STALE_SECONDS
            while _inode(path) == inode and time.monotonic() < end:
                time.sleep(0.05)
            if _inode(path) == inode and os.stat(path).st_mtime >= began - 1:
                _remove(path)

    def _guard(self) -> subprocess.Popen[bytes] | None:
        """Start the guardian; None without locks that end with their process."""
        if os.name != "posix":
            return None
        return subprocess.Popen(
            [sys.executable, "-c", _GUARDIAN, self.top, self.own],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _dismiss(self, guardian: subprocess.Popen[bytes]) -> None:
        guardian.kill()  # the step is over, or taken back
        try:
            guardian.wait(GUARDIAN_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it ends by itself


def guardian(top: str, own: str) -> None:
    """Wait until no process commits in the work tree `top`, then clear up behind one that died."""
    with Workshop(top, own):
        pass


def _make(side: str, index: str) -> int:
    """Make the empty file `side` with the permissions of the index; return its inode."""
    _remove(side)
    try:
        mode = os.stat(index).st_mode & 0o777
    except OSError:
        mode = 0o644  # no index yet
    handle = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        return os.fstat(handle).st_ino
    finally:
        os.close(handle)


def _lock(index: str, side: str) -> None:
    """Make `side` the lock of the index. Raises Refused if another git command keeps it locked."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            os.link(side, index + ".lock")
            return
        except FileExistsError:  # another git command is at work
            if time.monotonic() > end:
                raise Refused(locked(index)) from None
            time.sleep(0.05)


def locked(index: str) -> str:
    """Return the words about an index that another git command has locked."""
    return (
        f"another git command has locked the index ({index}.lock): try again when it is over, or remove that file if"
        " no git runs here"
    )


def _fill(side: str, mended: str) -> None:
    with open(mended, "rb") as source, open(side, "r+b") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    found = os.stat(mended)
    os.utime(side, ns=(found.st_atime_ns, found.st_mtime_ns))  # git compares it with the times of files


def _is_in_history(git: Git, commit: str) -> bool:
    return git.run(["merge-base", "--is-ancestor", commit, "HEAD"]).returncode == 0


def _inode(path: str) -> int:
    """Return the inode of a file, 0 for a missing file."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0  # no such file


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return None  # no such lock


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # removed already


# The shared index after a commit that was made beside it.
#
# entry as in the old HEAD, or missing in both    the new commit's entry
# entry as in the new commit                      left
# another content was staged                      merged, three ways: old HEAD, entry, new commit
# the same, but it does not merge                 the new commit's entry if no other author has changed the file;
# else left, and named

_FILES = ("100644", "100755")


class Mending:
    """The change of the shared index from the commit `old` (empty: none) to `new`.

    `sole`: paths with no other author's changes. `left`: after the call, paths with staged content of others that does
    not merge.
    """

    def __init__(self, git: Git, old: str, new: str, sole: Collection[str]):
        self._git = git
        self._none = (NO_FILE, "0" * len(new))
        self._sole = sole
        self.left: list[str] = []
        self._changed = git.between(old or git.ask("mktree").strip(), new)

    @property
    def paths(self) -> list[str]:
        """The paths that the commit changes."""
        return list(self._changed)

    def write(self, path: str) -> None:
        """Write the coming shared index to `path`; the present one must be locked."""
        index = self._git.path("index")
        if os.path.exists(index):
            shutil.copy2(index, path)  # its time tells git the entries that may be older than their files
        git = self._git.with_index(path)
        entries = git.entries(list(self._changed))
        git.set_entries(self._mended(entries, os.path.dirname(path)))
        git.run(["update-index", "-q", "--refresh"])  # notes the files' times, so that git need not read them again

    def _mended(self, entries: dict[str, Entry], folder: str) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        self.left = []
        for path, (old, new) in self._changed.items():
            entry = entries.get(path, self._none)
            if entry == new:
                continue
            if entry == old or self._is_intent(entry, old):
                found[path] = new
                continue
            merged = self._merged(old, entry, new, folder)
            if merged is not None:
                found[path] = merged
            elif path in self._sole:
                found[path] = new
            else:
                self.left.append(path)
        return found

    def _is_intent(self, entry: Entry, old: Entry) -> bool:
        """Return True for an entry of ``git add -N``: empty, of a new file."""
        return old[0] == NO_FILE and self._git.line("cat-file", "-s", entry[1]) == "0"

    def _merged(self, old: Entry, entry: Entry, new: Entry, folder: str) -> Entry | None:
        """Return the merge of the two entries' contents, or None if they overlap. `folder`: for files in between."""
        if not all(one[0] in _FILES for one in (old, entry, new)):
            return None
        names = []
        base = os.path.join(folder, "tree", ".merge")
        make_private(base)
        for name, one in (("entry", entry), ("old", old), ("new", new)):
            names.append(os.path.join(base, name))
            with open(names[-1], "wb") as file:
                file.write(self._git.run(["cat-file", "blob", one[1]]).stdout)
        done = self._git.run(["merge-file", "-p", "-q", *names])
        if done.returncode:
            return None
        name = self._git.ask("hash-object", "-w", "--stdin", data=done.stdout).strip()
        return (new[0] if entry[0] == old[0] else entry[0]), name
