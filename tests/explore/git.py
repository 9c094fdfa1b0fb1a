"""A stand-in for git's answers about the ground: one commit of its files, an index without changes. No process is started."""

import hashlib
import os
from collections.abc import Callable, Iterable
from typing import Any

from explore.ground import FILES, TEXT, files
from swarm_hook_core.process import Result

COMMIT = "c" * 40
NEW = "0" * 40  # the object of a content that only the work tree has


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


COMMITTED = object_of(TEXT.encode())


class _Git:
    """One question. `given`: the words after the verb."""

    def __init__(self, work: str, given: list[str], stdin: str):
        self.work, self.given, self.stdin = work, given, stdin
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
        return f"{COMMIT}\n"

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
            data = self._content(name)
            if data is None:
                found += [f":100644 000000 {COMMITTED} {NEW} D", name]
            elif data != TEXT.encode() and "--cached" not in self.given:
                found += [f":100644 100644 {COMMITTED} {NEW} M", name]
        return _joined(found)

    def hashed(self) -> str:
        return "".join(f"{object_of(self._content(name) or b'')}\n" for name in self.limits or self.stdin.split("\n"))

    def attributes(self) -> str:
        names = self.limits or self.stdin.split("\0")[:-1]
        wanted = [one for one in self.given if not one.startswith("-") and one not in names]
        return _joined(word for name in names for one in wanted for word in (name, one, "unspecified"))

    def parsed(self) -> str | None:
        if "--git-path" in self.given:
            return f".git/{self.given[-1]}\n"
        places = {"--show-toplevel": self.work, "--absolute-git-dir": f"{self.work}/.git", "--git-common-dir": ".git"}
        found = places.get(self.given[-1]) or self._object(self.given[-1])
        if not found:
            return None
        return f"{found}\n"

    def read(self) -> str | None:
        how = self.given[0]
        if not how.startswith("--batch"):
            if self._object(self.given[-1]) == COMMITTED:
                return TEXT
            return None
        said = ""
        for name in self.stdin.split("\n")[:-1]:
            found = self._object(name)
            if found is None:
                said += f"{name} missing\n"
            elif "=" in how:
                said += f"{len(TEXT)}\n"
            else:
                said += f"{found} blob {len(TEXT)}\n" + f"{TEXT}\n" * (how == "--batch")
        return said

    def tree(self) -> str:
        return _joined(f"100644 blob {COMMITTED} {len(TEXT):7}\t{name}" for name in self._limited(FILES))

    def _object(self, name: str) -> str | None:
        if name in ("HEAD", COMMIT):
            return COMMIT
        if name == COMMITTED or name.removeprefix("HEAD:") in FILES:
            return COMMITTED
        return None

    def _content(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.work, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None  # removed

    def _limited(self, names: Iterable[str]) -> list[str]:
        return [one for one in names if any(limit in ("", one) or one.startswith(f"{limit}/") for limit in self.limits)]


def _joined(words: Iterable[str]) -> str:
    return "".join(f"{word}\0" for word in words)
