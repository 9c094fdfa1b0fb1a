"""Git as a worker: unlike ``swarm_hook_core.git`` it runs the repository's filters, hooks and signing program."""

from __future__ import annotations

import os
import subprocess

from swarm_mcp.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Entry = tuple[str, str]  # mode, object

# Variables of a git that runs around this command. They would lead to another repository or index.
LOCAL = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_NAMESPACE",
)  # fmt: skip
NO_FILE = "000000"  # the mode of a missing entry


class Git:
    """Git in the work tree `top`, with the index file `index`; an empty one is the shared index.

    `environment` is added to that of this process.
    """

    def __init__(self, top: str, index: str = "", environment: Mapping[str, str] | None = None):
        self.top = top
        self.index = index
        self.environment = {name: value for name, value in os.environ.items() if name not in LOCAL}
        self.environment.update(environment or {})
        if index:
            self.environment["GIT_INDEX_FILE"] = index

    def with_index(self, index: str) -> Git:
        """Return the same with another index file."""
        return Git(self.top, index)

    def with_more(self, environment: Mapping[str, str]) -> Git:
        """Return the same with more variables."""
        return Git(self.top, self.index, {**self.environment, **environment})

    def run(
        self, words: Sequence[str], data: bytes = b"", folder: str = "", keeps: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``git <words>`` with `data` as its input, and return the finished process.

        `keeps`: open files that git inherits.
        """
        return subprocess.run(
            ["git", "--no-pager", *words],
            cwd=folder or self.top,
            env=self.environment,
            input=data,
            capture_output=True,
            pass_fds=tuple(keeps),
            check=False,
        )

    def ask(self, *words: str, data: bytes = b"", folder: str = "") -> str:
        """Return git's output. Raises Refused with git's own words."""
        done = self.run(words, data, folder)
        if done.returncode:
            raise Refused(f"git {words[0]}: {last_words(done)}")
        return os.fsdecode(done.stdout)

    def line(self, *words: str) -> str:
        """Return the one line that git prints; empty if git says no."""
        done = self.run(words)
        if done.returncode:
            return ""
        return os.fsdecode(done.stdout).rstrip("\n")

    def path(self, name: str) -> str:
        """Return the absolute path of one of git's own files, such as ``index``."""
        return self.paths([name])[0]

    def paths(self, names: Sequence[str]) -> list[str]:
        """Return the same for several files."""
        words = [word for name in names for word in ("--git-path", name)]
        found = self.ask("rev-parse", *words).split("\n")
        return [os.path.join(self.top, path) for path in found[: len(names)]]

    def head(self) -> str:
        """Return the commit of HEAD; empty before the first one."""
        return self.line("rev-parse", "-q", "--verify", "HEAD^{commit}")

    def entries(self, paths: Sequence[str]) -> dict[str, Entry]:
        """Return ``{path: (mode, object)}`` of these paths in the index. An unmerged one has the mode ``""``."""
        found: dict[str, Entry] = {}
        for part in split(self.ask("ls-files", "-s", "-z", "--", *literal(paths))):
            head, _, path = part.partition("\t")
            mode, name, stage = head.split(" ")
            found[path] = (mode, name) if stage == "0" else ("", name)
        return found

    def set_entries(self, entries: Mapping[str, Entry]) -> None:
        """Write ``{path: (mode, object)}`` into the index; the mode NO_FILE removes the path."""
        lines = [f"{mode} {name}\t{path}\0" for path, (mode, name) in entries.items()]
        if lines:
            self.ask("update-index", "-z", "--replace", "--index-info", data=os.fsencode("".join(lines)))

    def between(self, old: str, new: str) -> dict[str, tuple[Entry, Entry]]:
        """Return ``{path: (old entry, new entry)}`` of the paths that differ between two trees or commits."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        parts = split(self.ask(*words))
        found: dict[str, tuple[Entry, Entry]] = {}
        for head, path in zip(parts[::2], parts[1::2]):
            old_mode, new_mode, old_name, new_name, _status = head[1:].split(" ")
            found[path] = ((old_mode, old_name), (new_mode, new_name))
        return found


def literal(paths: Sequence[str]) -> list[str]:
    """Return the paths as pathspecs without wildcards."""
    return [f":(top,literal){path}" for path in paths]


def split(text: str) -> list[str]:
    """Return the parts of a text. Each part ends in NUL."""
    return [part for part in text.split("\0") if part]


def last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the output of a failed program, as one line of at most 2,000 characters."""
    text = " ".join(os.fsdecode(done.stderr + b" " + done.stdout).split())
    if not text:
        return f"it ended with exit code {done.returncode} and no words"
    if len(text) > 2000:
        text = "... " + text[-2000:]
    return text
