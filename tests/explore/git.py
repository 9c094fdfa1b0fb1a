"""A stand-in for git about the ground: its first commit has the ground's files. No process is started.

A `Repository` has the newest commit and the objects, in a folder beside the ground. Hooks ask by `answers_in`; commands
that commit have a `Worker` in place of their own git. The index is a file, as in git.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from subprocess import CompletedProcess
from typing import Any

from explore.ground import FILES, TEXT, files
from swarm_hook_core.process import Result
from swarm_mcp.changes.commit.git import Git
from swarm_mcp.changes.commit.landing import Workshop

NEW = "0" * 40  # the object of a content that only the work tree has
PLAIN = "100644"
COMMAND_SECONDS = 0.002  # of a command that commits; others may go on meanwhile


def refuses(*_given: Any, **_more: Any) -> Result:
    """Answer as git does about an empty ``.git``."""
    return Result(128, "", "fatal: not a git repository")


def answers_in(work: str) -> Callable[..., Result]:
    """Return the function that answers for git in the folder `work`."""

    def run(argv: list[str], _seconds: float, stdin: str = "", **_more: Any) -> Result:
        words = _words(argv)
        found = _Git(work, words[1:], stdin).answer(words[0])
        if found is None:
            return Result(1, "", "")
        return Result(0, found, "")

    return run


def _words(argv: list[str]) -> list[str]:
    """Return the verb and the words after it, without git's own options."""
    at = 1
    while argv[at].startswith("-"):
        at += 1 + (argv[at] in ("-C", "-c"))
    return argv[at:]


def object_of(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Repository:
    """The commits of the work tree `work`. A tree is ``{name: object}``. No call in here is a stop."""

    def __init__(self, work: str):
        self.folder = f"{os.path.dirname(work)}.git"

    def begin(self) -> None:
        """Begin with the first commit alone."""
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        text = self.add(TEXT.encode())
        self.move("", self.commit(dict.fromkeys(FILES, text), "", "first"))

    def add(self, data: bytes) -> str:
        """Keep an object; return its name."""
        made = object_of(data)
        with open(os.path.join(self.folder, made), "wb") as file:
            file.write(data)
        return made

    def object(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                return file.read()
        except OSError:
            return None  # no such object

    def commit(self, tree: dict[str, str], parent: str, message: str) -> str:
        made = self.add(json.dumps(tree, sort_keys=True).encode())
        return self.add(json.dumps({"tree": made, "parent": parent, "message": message}).encode())

    def facts(self, commit: str) -> dict[str, Any]:
        """Return tree, parent and message of a commit."""
        found: dict[str, Any] = json.loads(self.object(commit) or b"{}")
        return found

    def tree(self, name: str) -> dict[str, str]:
        """Return the tree of a commit, or the tree of this name."""
        found = self.facts(name)
        if "parent" in found:
            return self.tree(found["tree"])
        return found

    def move(self, old: str, new: str) -> bool:
        """Make `new` the newest commit, if that is `old`."""
        if self.head() != old:
            return False
        with open(os.path.join(self.folder, "head"), "w", encoding="ascii") as file:
            file.write(new)
        return True

    def head(self) -> str:
        return (self.object("head") or b"").decode()

    def history(self) -> list[str]:
        """Return all commits of the branch, the newest first."""
        found, one = [], self.head()
        while one:
            found.append(one)
            one = self.facts(one)["parent"]
        return found

    def named(self, name: str) -> str | None:
        """Return the object of a name such as ``HEAD:notes.md``."""
        commit, _, path = name.partition(":")
        if commit in ("HEAD", "HEAD^{commit}"):
            commit = self.head()
        if commit.endswith("^{tree}"):
            return str(self.facts(commit.removesuffix("^{tree}"))["tree"])
        if path:
            return self.tree(commit).get(path)
        return commit if self.object(commit) is not None else None


class _Git:
    """One question of a hook. `given`: the words after the verb."""

    def __init__(self, work: str, given: list[str], stdin: str):
        self.work, self.given, self.stdin = work, given, stdin
        self.there = Repository(work)
        self.committed = self.there.tree(self.there.head())
        behind = given[given.index("--") + 1 :] if "--" in given else []
        self.limits = [one.replace(":(top,literal)", "") for one in behind]

    def answer(self, verb: str) -> str | None:
        """Return git's output; None for a refusal. Raises KeyError for a question that is new here."""
        return {
            "ls-files": self.listed, "diff-index": self.changed, "diff-files": self.changed,
            "hash-object": self.hashed, "check-attr": self.attributes, "rev-parse": self.parsed,
            "cat-file": self.read, "ls-tree": self.tree, "config": self.no, "log": self.nothing,
            "rev-list": self.first, "diff": self.staged,
        }[verb]()  # fmt: skip

    def no(self) -> None:
        return None

    def nothing(self) -> str:
        return ""

    def first(self) -> str:
        return f"{self.there.head()}\n"

    def staged(self) -> str:
        """Return the files that a commit would have: sessions of `dealings.commits` have added one."""
        return _joined(FILES[:1])

    def listed(self) -> str:
        if "-o" not in self.given:
            return _joined(self._limited(FILES))
        names = [path[len(self.work) + 1 :] for path in files(self.work)]
        return _joined(self._limited(name for name in names if name not in FILES and not name.startswith(".git/")))

    def changed(self) -> str:
        found = []
        for name in self._limited(FILES):
            data = content(self.work, name)
            if data is None:
                found += [f":100644 000000 {self.committed[name]} {NEW} D", name]
            elif object_of(data) != self.committed[name] and "--cached" not in self.given:
                found += [f":100644 100644 {self.committed[name]} {NEW} M", name]
        return _joined(found)

    def hashed(self) -> str:
        names = self.limits or self.stdin.split("\n")
        return "".join(f"{object_of(content(self.work, name) or b'')}\n" for name in names)

    def attributes(self) -> str:
        names = self.limits or self.stdin.split("\0")[:-1]
        wanted = [one for one in self.given if not one.startswith("-") and one not in names]
        return _joined(word for name in names for one in wanted for word in (name, one, "unspecified"))

    def parsed(self) -> str | None:
        if "--git-path" in self.given:
            return f".git/{self.given[-1]}\n"
        places = {"--show-toplevel": self.work, "--absolute-git-dir": f"{self.work}/.git", "--git-common-dir": ".git"}
        found = places.get(self.given[-1]) or self.there.named(self.given[-1])
        if not found:
            return None
        return f"{found}\n"

    def read(self) -> str | None:
        how = self.given[0]
        if not how.startswith("--batch"):
            data = self._object(self.given[-1])
            return None if data is None else data.decode()
        said = ""
        for name in self.stdin.split("\n")[:-1]:
            data = self._object(name)
            if data is None:
                said += f"{name} missing\n"
            elif "=" in how:
                said += f"{len(data)}\n"
            else:
                said += f"{object_of(data)} blob {len(data)}\n" + f"{data.decode()}\n" * (how == "--batch")
        return said

    def tree(self) -> str:
        rows = []
        for name in self._limited(FILES):
            made = self.committed[name]
            rows.append(f"100644 blob {made} {len(self.there.object(made) or b''):7}\t{name}")
        return _joined(rows)

    def _object(self, name: str) -> bytes | None:
        return self.there.object(self.there.named(name) or "none")

    def _limited(self, names: Iterable[str]) -> list[str]:
        return [one for one in names if any(limit in ("", one) or one.startswith(f"{limit}/") for limit in self.limits)]


def _joined(words: Iterable[str]) -> str:
    return "".join(f"{word}\0" for word in words)


def begin(work: str) -> None:
    """Make the repository of the work tree anew, and its index as committed."""
    there = Repository(work)
    there.begin()
    Worker(work)._put(there.tree(there.head()))


def act_for_commands() -> None:
    """Stand in for the git of commands that commit. No guardian waits for the end of one: the next commit clears up."""
    Git.run = _run  # type: ignore[method-assign]
    Workshop._guard = lambda _workshop: None  # type: ignore[method-assign]


def _run(git: Git, *given: Any, **more: Any) -> CompletedProcess[bytes]:
    return Worker(git.top, git.environment.get("GIT_INDEX_FILE", "")).command(*given, **more)


def content(work: str, name: str) -> bytes | None:
    """Return the content of a file of the work tree."""
    try:
        with open(os.path.join(work, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None  # removed


class Worker(Git):
    """Git in the hand of a command that commits."""

    def command(
        self, words: Sequence[str], data: bytes = b"", folder: str = "", keeps: Sequence[int] = ()
    ) -> CompletedProcess[bytes]:
        """Run ``git <words>``. Raises KeyError for a command that is new here."""
        time.sleep(COMMAND_SECONDS)
        self.there, self.data = Repository(self.top), data
        verb = {
            "rev-parse": self.parsed, "symbolic-ref": self.branch, "read-tree": self.begun, "status": self.changed,
            "diff-index": self.nothing, "diff": self.nothing, "update-index": self.updated, "hash-object": self.hashed,
            "ls-files": self.listed, "diff-tree": self.between_trees, "write-tree": self.written,
            "checkout-index": self.checked_out, "check-ignore": self.ignored,
            "commit-tree": self.committed, "update-ref": self.moved, "merge-base": self.is_known, "cat-file": self.read,
            "config": self.no, "var": self.person, "hook": self.nothing, "stripspace": lambda _words: data,
            "merge-file": self.no,
        }[words[0]]  # fmt: skip
        found = verb(list(words))
        return CompletedProcess(["git", *words], int(found is None), found or b"", b"")

    def no(self, _words: list[str]) -> None:
        return None

    def nothing(self, _words: list[str]) -> bytes:
        return b""

    def person(self, _words: list[str]) -> bytes:
        return b"A Person <person@localhost> 1 +0000\n"

    def branch(self, words: list[str]) -> bytes:
        return b"main\n" if "--short" in words else b"refs/heads/main\n"

    def parsed(self, words: list[str]) -> bytes | None:
        if "--git-path" in words:
            return "".join(f".git/{name}\n" for name in words[2::2]).encode()
        found = self.there.named(words[-1])
        return found and f"{found}\n".encode()

    @property
    def _index(self) -> str:
        return self.index or os.path.join(self.top, ".git", "index")

    def _entries(self) -> dict[str, str]:
        if not os.path.exists(self._index):
            return {}  # a new one
        with open(self._index, encoding="ascii") as file:
            found: dict[str, str] = json.load(file)
        return found

    def _put(self, entries: dict[str, str]) -> bytes:
        with open(f"{self._index}.lock", "w", encoding="ascii") as file:
            json.dump(entries, file)
        os.replace(f"{self._index}.lock", self._index)
        return b""

    def begun(self, words: list[str]) -> bytes:
        return self._put(self.there.tree(words[-1]))

    def changed(self, _words: list[str]) -> bytes:
        entries = self._entries()
        names = [name for name in FILES if object_of(content(self.top, name) or b"") != entries[name]]
        return _joined(f" M {name}" for name in names).encode()

    def checked_out(self, words: list[str]) -> bytes | None:
        """Write files of the index behind a prefix."""
        entries, names = self._entries(), self.data.decode().split("\0")[:-1]
        if not entries.keys() >= {*names}:
            return None
        for name in names:
            path = words[-1].removeprefix("--prefix=") + name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(self.there.object(entries[name]) or b"")
        return b""

    def ignored(self, _words: list[str]) -> bytes | None:
        return _joined(name for name in self.data.decode().split("\0")[:-1] if name.endswith(".o")).encode() or None

    def updated(self, words: list[str]) -> bytes:
        if "--refresh" in words:
            return b""
        entries = self._entries()
        for row in self.data.decode().split("\0")[:-1]:
            if "--index-info" in words:
                facts, _, name = row.partition("\t")
                entries[name] = facts.split()[1]
            else:
                entries[row] = self.there.add(content(self.top, row) or b"")
        return self._put(entries)

    def hashed(self, words: list[str]) -> bytes:
        found = []
        for path in self.data.decode().split("\n")[:-1]:
            with open(path, "rb") as file:
                found.append(self.there.add(file.read()))
        assert "--stdin-paths" in words, words
        return "".join(f"{made}\n" for made in found).encode()

    def listed(self, words: list[str]) -> bytes:
        entries = self._entries()
        names = [one.replace(":(top,literal)", "") for one in words[words.index("--") + 1 :]]
        return _joined(f"{PLAIN} {entries[name]} 0\t{name}" for name in names).encode()

    def between_trees(self, words: list[str]) -> bytes:
        old, new = (self.there.tree(name) for name in words[-2:])
        names = [name for name in FILES if old[name] != new[name]]
        rows = [(f":{PLAIN} {PLAIN} {old[name]} {new[name]} M", name) for name in names]
        return _joined(word for row in rows for word in row).encode()

    def written(self, _words: list[str]) -> bytes:
        return f"{self.there.add(json.dumps(self._entries(), sort_keys=True).encode())}\n".encode()

    def committed(self, words: list[str]) -> bytes:
        parent = words[words.index("-p") + 1]
        return f"{self.there.commit(self.there.tree(words[1]), parent, self.data.decode().strip())}\n".encode()

    def moved(self, words: list[str]) -> bytes | None:
        new, *old = words[words.index("HEAD") + 1 :]
        return b"" if self.there.move(*old or [self.there.head()], new) else None

    def is_known(self, words: list[str]) -> bytes | None:
        return b"" if words[2] in self.there.history() else None

    def read(self, words: list[str]) -> bytes | None:
        return self.there.object(words[-1])
