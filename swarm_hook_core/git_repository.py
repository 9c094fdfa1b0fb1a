"""A repository, asked without changing anything in it.

Measured with git 2.39: ``git diff`` between index and work tree rewrites the index even with ``GIT_OPTIONAL_LOCKS=0``;
its plumbing (``diff-files``, ``diff-index``) never does, and compares times and sizes only. The files that these call
modified are compared by content here (``hash-object`` without ``-w``).
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from swarm_hook_core import paths, process, repository
from swarm_hook_core.repository import NO_PROGRAMS, small_text, tree_over
from swarm_hook_core.state import read_private

MOST_PATHS = 400  # more are not named to git one by one
_RAW = ("--raw", "-z", "--abbrev=64", "--no-renames", *NO_PROGRAMS)
_REGULAR = ("100644", "100755")
HIDDEN_SECONDS = 86400  # for so long a hidden file stays protected
MOST_EXCLUDED = 65536  # characters of ``info/exclude``
SLACK_NS = 20_000_000  # a file that was changed just now may be changed again without another time of change


class NoAnswer(Exception):
    """git did not answer in time, or cannot be run."""


class Refused(Exception):
    """git answered that it will not: no such revision, no such file. `code`: its exit code."""

    def __init__(self, text: str, code: int = 128) -> None:
        super().__init__(text)
        self.code = code


def committed_text(path: str, seconds: float) -> str:
    """Return the text of the file at absolute `path`, links resolved, in the last commit. Raises NoAnswer.

    Raises Refused if the last commit has no such file, or there is no commit or no repository.
    """
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        raise Refused("no work tree")
    return Repository(tree.top, seconds).ask("cat-file", "blob", f"HEAD:{os.path.relpath(path, tree.top)}")


def is_as_committed(path: str, seconds: float) -> bool:
    """Return True if the file at absolute `path`, links resolved, may equal its content in the last commit.

    False for a file that git changes on its way, and in a partial clone without that content. Raises NoAnswer, and
    Refused if there is no repository or no such file in the last commit.
    """
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        raise Refused("no work tree")
    repository, name = Repository(tree.top, seconds), os.path.relpath(path, tree.top)
    if repository.has_filter(name):
        return False
    committed = repository.ask("rev-parse", "--verify", "-q", f"HEAD:{name}").strip()
    try:
        repository.ask("cat-file", "-e", committed)
    except Refused:
        return False  # nor does git fetch it for a hook
    return True


class Repository:
    """The work tree `top` (resolved), asked until `seconds` are over.

    Paths are relative to `top`. A question with `paths` is limited to these, and to the files under them.
    """

    def __init__(
        self, top: str, seconds: float, settings: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.top = top
        self._settings = list(settings)
        self._environment = environment or {}
        self._end = time.monotonic() + seconds
        self.ignores_case = False
        if sys.platform == "darwin":
            self.ignores_case = paths.ignores_case(top)

    def ask(self, *words: str, stdin: str = "") -> str:
        """Return git's output on the input `stdin`. Raises Refused, NoAnswer."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise NoAnswer("out of time")
        result = repository.ask(words, self.top, left, self._settings, self._environment, stdin)
        if result.code is None:
            raise NoAnswer(result.stderr)
        if result.code != 0:
            raise Refused(result.stderr, result.code)
        text: str = result.stdout
        return text

    def names(self, *words: str, paths: Collection[str]) -> list[str]:
        """Return the NUL-separated names that git prints about `paths`; [] without paths."""
        if paths:
            return _split(self.ask(*words, *self._limits(paths)))
        return []

    def differing(self, old: str, new: str, paths: Collection[str]) -> list[str]:
        """Files that differ between two trees."""
        return self.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, paths=paths)

    def since_fork(self, ours: str, theirs: str, paths: Collection[str]) -> list[str]:
        """Files that `theirs` changed since it and `ours` parted."""
        options = ("--name-only", "-z", "--no-renames", *NO_PROGRAMS)
        return self.names("diff", *options, f"{ours}...{theirs}", paths=paths)

    def changed_in(self, revisions: Sequence[str], paths: Collection[str], mainline: bool = False) -> list[str]:
        """Files that these commits change; a range says all its commits."""
        walk = []
        if not any(".." in one or one.startswith("^") for one in revisions):
            walk = ["--no-walk"]
        options = ["--format=", "--name-only", "-z", "--no-renames", *NO_PROGRAMS, "--root", "--full-history"]
        if mainline:
            options.append("-m")
        return self.names("log", *options, *walk, *revisions, paths=paths)

    def authored(self, paths: Collection[str], since: int) -> dict[str, Any]:
        """Return the time (Unix seconds) of the newest commit of HEAD to each of these files, among the commits since
        then.

        The author's time is used: it survives a rebase or an amendment, which make the commit anew.
        """
        options = ("--format=%x01%at", "--name-only", "-z", "--no-renames", *NO_PROGRAMS, "--root")
        if not paths:
            return {}
        output = self.ask("log", *options, f"--since={since}", "HEAD", *self._limits(paths))
        found: dict[str, Any] = {}
        for block in output.split("\x01")[1:]:
            time_, _, names = block.partition("\0")
            if time_.isdigit():
                found.update((name, max(int(time_), found.get(name, 0))) for name in _split(names.lstrip("\n")))
        return found

    def unpushed(self, paths: Collection[str], since: int) -> list[str]:
        """Return the files changed by commits of HEAD that are on no remote's branch, among the commits since then.

        `since` is in Unix seconds.
        """
        options = ("--format=", "--name-only", "-z", "--no-renames", *NO_PROGRAMS, "--root", f"--since={since}")
        return self.names("log", *options, "HEAD", "--not", "--remotes", paths=paths)

    def staged(self, paths: Collection[str], tree: str = "HEAD") -> list[str]:
        """Return the files whose entry in the index differs from `tree`."""
        try:
            return self.names("diff-index", "--cached", "-z", "--name-only", "--no-renames", tree, paths=paths)
        except Refused:
            return self.tracked(paths)  # no commit yet

    def tracked(self, paths: Collection[str]) -> list[str]:
        """Files in the index."""
        return self.names("ls-files", "-z", "-c", "--full-name", paths=paths)

    def untracked(self, paths: Collection[str], with_ignored: bool = False) -> list[str]:
        """Files that are not in the index."""
        ignored = []
        if not with_ignored:
            ignored = ["--exclude-standard"]
        return self.names("ls-files", "-z", "-o", "--full-name", *ignored, paths=paths)

    def new(self, paths: Collection[str]) -> list[str]:
        """Return the untracked files that are work: those that git shows, and the `hidden` ones."""
        return [*self.untracked(paths), *self.hidden(paths)]

    def hidden(self, paths: Collection[str]) -> list[str]:
        """Return the files that are not in the index, and that ``info/exclude`` alone has hidden within the last day.

        A line that is written there makes no cache of a file with work in it. Files made after it are not among them.
        """
        tree = tree_over(self.top)
        if tree is None:
            return []
        excluding = os.path.join(tree.common, "info", "exclude")
        try:
            at = os.stat(excluding).st_mtime
            lines = read_private(excluding, MOST_EXCLUDED, follows=True).decode("utf-8", "replace").splitlines()
        except OSError:
            return []  # there is none
        if at < time.time() - HIDDEN_SECONDS or all(not line.strip() or line.startswith("#") for line in lines):
            return []
        found = self.names("ls-files", "-z", "-o", "-i", "--full-name", f"--exclude-from={excluding}", paths=paths)
        kept = [name for name in found if self._is_older(name, at)]
        if not kept:
            return []
        # a file that another rule hides as well was hidden before
        rules = ["--exclude-per-directory=.gitignore"]
        everywhere = os.path.expanduser(self.setting("core.excludesFile") or "~/.config/git/ignore")
        if os.path.isfile(everywhere):
            rules.append(f"--exclude-from={everywhere}")
        return self.names("ls-files", "-z", "-o", "--full-name", *rules, paths=kept[:MOST_PATHS])

    def _is_older(self, name: str, at: float) -> bool:
        try:
            return os.lstat(os.path.join(self.top, name)).st_mtime < at
        except OSError:
            return False  # gone

    def modified(self, paths: Collection[str]) -> list[str]:
        """Return the files of the index whose content in the work tree differs or is gone."""
        return self.by_content(_rows(self.names("diff-files", *_RAW, paths=paths)))

    def against(self, tree: str, paths: Collection[str], additions: bool = True) -> list[str]:
        """Files of the index or of `tree` that are not in the work tree as `tree` has them.

        Without `additions`, not those that `tree` lacks.
        """
        return self.by_content([row for row in self.rows_against(tree, paths) if additions or row[3] != "A"])

    def rows_against(self, tree: str, paths: Collection[str]) -> list[tuple[str, str, str, str, str, str]]:
        """Return ``[(path, old object, new object, status, old mode, new mode)]`` of files that may differ from `tree`.

        A file that is only younger than the index knows is among them (`by_content`).
        """
        return _rows(self.names("diff-index", *_RAW, tree, paths=paths))

    def shown(self, folder: str, *words: str) -> list[str]:
        """Return the files that ``git <words>``, a diff, finds different, asked in `folder`."""
        return self.by_content(_rows(_split(self.ask("-C", folder, words[0], *_RAW, *words[1:]))))

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return True if `new` has `old` in its history."""
        try:
            self.ask("merge-base", "--is-ancestor", old, new)
        except Refused:  # exit code 1 is git's no
            return False
        return True

    def setting(self, name: str) -> str:
        """Return the last value of a setting, or empty. A check asks once for each."""
        known, key = self._known(), (*self._place(), name)
        if key not in known:
            try:
                known[key] = self.ask("config", "--get", name).rstrip("\n")
            except Refused:  # the setting is not set
                known[key] = ""
        return known[key]

    def note(self, name: str) -> str:
        """Return the text of one of git's own files (``rebase-merge/orig-head``), or empty."""
        path = os.path.join(self.top, self.ask("rev-parse", "--git-path", name).rstrip("\n"))
        return small_text(path).strip()

    # -------------------------------------------------------------- innards

    def by_content(self, rows: list[tuple[str, str, str, str, str, str]]) -> list[str]:
        """The paths of `rows` (see `_rows`), without files that are only younger than the index knows."""
        doubtful = {
            row[0]: row[1]
            for row in rows
            if row[3] == "M" and not row[2].strip("0") and row[4] == row[5] and row[4] in _REGULAR
        }
        same: set[str] = set()
        if doubtful:
            same = self._same(doubtful)
        return list(dict.fromkeys(row[0] for row in rows if row[0] not in same))

    def _same(self, objects: dict[str, str]) -> set[str]:
        """Return the `objects` (path -> object) whose file has that content. Files that a filter would change are not
        read.
        """
        paths = [path for path in objects if os.path.isfile(os.path.join(self.top, path)) and "\n" not in path]
        paths = paths[:MOST_PATHS]
        if not paths:
            return set()
        known, states = self._known(), {path: self._state(path) for path in paths}
        keys = {path: (*self._place(), path, *states[path]) for path in paths}
        unknown = [path for path in paths if keys[path] not in known]
        plain = self.without_filter(unknown) if unknown else []
        hashes = dict.fromkeys(unknown, "")
        if plain:
            try:
                hashes.update(zip(plain, self.ask("hash-object", "--", *plain).split("\n")))
            except Refused:  # a file has vanished: none counts as the same
                return set()
        found = {path: known[key] if key in known else hashes[path] for path, key in keys.items()}
        newest_ns = time.time_ns() - SLACK_NS
        known.update((keys[path], made) for path, made in hashes.items() if states[path][0] < newest_ns)
        return {path for path, made in found.items() if made == objects[path]}

    def _known(self) -> dict[tuple[object, ...], str]:
        """Return the answers of this check so far; a new dictionary outside of a check."""
        return process.check_answers.get(get_ident(), {})

    def _place(self) -> tuple[object, ...]:
        return (self.top, *self._settings, *sorted(self._environment.items()))

    def _state(self, path: str) -> tuple[int, int, int]:
        """Return a mark of the file's content: its time of change, and more. It differs after any later change."""
        try:
            found = os.stat(os.path.join(self.top, path))
        except OSError:
            return (sys.maxsize, 0, 0)  # it has vanished
        return (found.st_ctime_ns, found.st_ino, found.st_size)

    def has_filter(self, path: str) -> bool:
        """Return True if git has a program change the content of the file at `path` on its way into the index."""
        return not self.without_filter([path])

    def without_filter(self, paths: list[str]) -> list[str]:
        """Return those of the files that no program of git's changes on their way into the index."""
        output = _split(self.ask("check-attr", "-z", "filter", "--", *paths))
        return [path for path, value in zip(output[::3], output[2::3]) if value in ("unspecified", "unset")]

    def _limits(self, paths: Collection[str]) -> list[str]:
        if len(paths) > MOST_PATHS:
            return ["--"]
        magic = ":(top,literal)"
        if self.ignores_case:
            magic = ":(top,literal,icase)"
        return ["--", *(magic + path for path in paths)]


def _split(text: str) -> list[str]:
    return [part for part in text.split("\0") if part]


def _rows(parts: list[str]) -> list[tuple[str, str, str, str, str, str]]:
    """(path, old object, new object, status, old mode, new mode) of each file in a raw diff."""
    rows = []
    for head, path in zip(parts[::2], parts[1::2]):
        old_mode, new_mode, old, new, status = head[1:].split(" ")
        rows.append((path, old, new, status[:1], old_mode, new_mode))
    return rows


# Contents of git's objects: of files in the last commit, of many by a few questions.


def committed_contents(paths: Iterable[str], seconds: float, most_bytes: int) -> dict[str, bytes]:
    """Return ``{path: content in the last commit}`` of absolute `paths`, links resolved; empty without such a file.

    Files are left out that git changes on their way, that are larger than `most_bytes` there, or that are not in this
    clone; and all files of a repository that does not answer in `seconds`.
    """
    found: dict[str, bytes] = {}
    by_top: dict[str, dict[str, str]] = {}
    for path in paths:
        tree = tree_over(os.path.dirname(path))
        if tree is None:
            found[path] = b""
        else:
            by_top.setdefault(tree.top, {})[os.path.relpath(path, tree.top)] = path
    for top, names in by_top.items():
        try:
            contents = _committed_in(Repository(top, seconds), list(names), most_bytes)
        except (NoAnswer, Refused):
            continue  # too slow, or no repository that git accepts
        found.update((names[name], data) for name, data in contents.items())
    return found


def _committed_in(repository: Repository, names: list[str], most_bytes: int) -> dict[str, bytes]:
    plain = repository.without_filter(names)
    try:
        rows = repository.ask("ls-tree", "-l", "-z", "--full-tree", "HEAD", "--", *plain).split("\0")[:-1]
    except Refused:
        rows = []  # no commit yet
    objects, others = {}, set()
    for row in rows:
        facts, _, name = row.partition("\t")
        _mode, _kind, made, size = facts.split()
        if size.isdigit() and int(size) <= most_bytes:
            objects[name] = made
        else:
            others.add(name)
    contents = blobs(repository, list(dict.fromkeys(objects.values())))
    found = {name: contents[objects[name]] if name in objects else b"" for name in plain if name not in others}
    return {name: data for name, data in found.items() if data is not None}


def blob(repository: Repository, name: str) -> bytes:
    """Return the content of the file that git knows by this `name`: an object's id, or ``HEAD:a.txt``.

    Raises Refused if git has no such file, NoAnswer.
    """
    return _bytes(repository.ask("cat-file", "blob", name))


def blobs(repository: Repository, names: Sequence[str]) -> dict[str, bytes | None]:
    """Return ``{name: content}`` of many files, by one question; None for a name without a file. Raises NoAnswer.

    Raises Refused if there is no repository.
    """
    found: dict[str, bytes | None] = {name: _odd(repository, name) for name in names if "\n" in name}
    plain = [name for name in names if "\n" not in name]
    data, at = b"", 0
    if plain:
        data = _bytes(repository.ask("cat-file", "--batch", stdin="".join(f"{name}\n" for name in plain)))
    for name in plain:
        begin = data.index(b"\n", at) + 1
        words = data[at:begin].split()
        found[name], at = None, begin
        if len(words) == 3 and words[2].isdigit():  # else "missing", or "ambiguous"
            at += int(words[2]) + 1
            if words[1] == b"blob":
                found[name] = data[begin : at - 1]
    return found


def sizes(repository: Repository, names: Sequence[str]) -> list[int | None]:
    """Return the size of each object, by its id or as ``HEAD:a.txt``; None for one that is not in this clone.

    Raises Refused if there is no repository, NoAnswer.
    """
    plain = [name for name in names if "\n" not in name]
    asked = "".join(f"{name}\n" for name in plain)
    answers = repository.ask("cat-file", "--batch-check=%(objectsize)", stdin=asked).split("\n")
    found = {name: int(answer) if answer.isdigit() else None for name, answer in zip(plain, answers)}
    return [found[name] if name in found else _odd_size(repository, name) for name in names]


def _odd_size(repository: Repository, name: str) -> int | None:
    """Return the size of a file with a line end in its name, which git does not take among others."""
    try:
        return int(repository.ask("cat-file", "-s", name))
    except Refused:
        return None  # no such file


def _odd(repository: Repository, name: str) -> bytes | None:
    """Return the content of a file with a line end in its name, which git does not take among others."""
    try:
        return blob(repository, name)
    except Refused:
        return None  # no such file


def _bytes(output: str) -> bytes:
    return output.encode("utf-8", "surrogateescape")
