"""A work tree apart: exactly the content of the coming commit, for the repository's hooks.

Hooks stage files (`git add -A`), put unstaged changes aside (pre-commit, lint-staged) and read files. Beside
uncommitted changes of others they would take these along, or away for a while. So they run in a folder of their own
then, with a git folder of its own that shares branches, settings and objects with the repository. `git worktree list`
does not know it, and nothing of it is in the repository.

Files that git ignores (``node_modules``, ``.venv``) are linked there, the topmost ones first. Submodules are empty, and
files of git-lfs are pointers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from swarm_hook_core.paths import FolderOf
from swarm_hook_core.state import make_private, write_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes.dirty import present, state_now
from swarm_mcp.changes.records import with_run_right
from swarm_mcp.errors import Refused

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_mcp.changes.commit.landing import Workshop

# Git as a worker: unlike ``repository.ask`` it runs the repository's filters, hooks and signing program.

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


MOST_LINKS = 1000
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")


def has_hooks(git: Git) -> bool:
    """Return True if the repository has a hook that runs before a commit."""
    folder = git.path("hooks")
    if any(os.access(os.path.join(folder, name), os.X_OK) for name in HOOKS):
        return True
    return bool(git.line("config", "--get-regexp", r"^hook\..*\.command$"))


def is_as_the_commit(git: Git) -> bool:
    """Return True if the work tree has exactly the content of git's private index, ignored files aside."""
    words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
    return all(part[1] == " " for part in split(git.ask(*words)))


def make_apart(shared: Git, private: Git, workshop: Workshop) -> Git:
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
    for name in sorted(names, key=lambda one: one.count("/"))[:MOST_LINKS]:
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


# Files that the hooks have rewritten in a work tree apart: the shared work tree gets the same, as after `git commit`.
#
# Only files that still are as they were staged are replaced. A file with lines of others, or changed meanwhile, is
# left.

_FILES = ("100644", "100755")
_PROGRAM = "100755"
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def bring(git: Git, changes: Mapping[str, tuple[Entry, Entry]]) -> None:
    """Replace the files that are as in the first entry by the second one. Calling it again does no harm."""
    done = [path for path, (old, new) in changes.items() if _replace(git, path, old, new)]
    if done:
        git.run(["update-index", "-q", "--refresh"])


def differing(git: Git, changes: Mapping[str, tuple[Entry, Entry]]) -> list[str]:
    """Return the paths that are not as in the second entry."""
    return [path for path, (_old, new) in changes.items() if _present(git, path) != _comparable(new)]


def patch_for(git: Git, changes: Mapping[str, tuple[Entry, Entry]], folder: str) -> bytes:
    """Return a patch that makes these changes in the shared work tree, merged with the lines of others there.

    Files without such a merge are left out. `folder`: for files in between.
    """
    sides = [os.path.join(folder, name) for name in ("a", "b")]
    for path, (old, new) in changes.items():
        texts = _merged(git, path, old, new, folder)
        for side, text in zip(sides, texts):
            make_private(os.path.dirname(os.path.join(side, path)))
            with open(os.path.join(side, path), "wb") as file:
                file.write(text)
    words = ["diff", "--no-index", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
    made = git.run([*words, "--src-prefix=", "--dst-prefix=", "a", "b"], folder=folder)
    return made.stdout


def _merged(git: Git, path: str, old: Entry, new: Entry, folder: str) -> tuple[bytes, ...]:
    """Return ``(present content, the same with the change)``, or () if it does not merge."""
    if old[0] not in _FILES or new[0] not in _FILES:
        return ()
    names = [os.path.join(folder, name) for name in ("present", "old", "new")]
    make_private(folder)
    try:
        found, data = present(os.path.join(git.top, path))
    except OSError:
        return ()  # unreadable
    if found is None or data is None or not stat.S_ISREG(found.st_mode):
        return ()  # removed meanwhile
    for name, text in zip(names, (data, _content(git, path, old), _content(git, path, new))):
        with open(name, "wb") as file:
            file.write(text)
    made = git.run(["merge-file", "-p", "-q", *names])
    if made.returncode:
        return ()
    return data, made.stdout


def _content(git: Git, path: str, entry: Entry) -> bytes:
    """Return the content of an entry as the work tree has it."""
    return git.run(["cat-file", "--filters", f"--path={path}", entry[1]]).stdout


def _replace(git: Git, path: str, old: Entry, new: Entry) -> bool:
    absolute = os.path.join(git.top, path)
    state = state_now(absolute)
    if new[0] not in (*_FILES, NO_FILE) or _present(git, path) != _comparable(old):
        return False
    try:
        with FolderOf(absolute, makes=new[0] != NO_FILE) as (name, folder):
            if new[0] == NO_FILE:
                if state_of(name, folder) != state:
                    return False
                os.unlink(name, dir_fd=folder)
                return True
            return _put(name, folder, state, _content(git, path, new), new[0] == _PROGRAM)
    except OSError:
        return False  # the answer names the file


def _put(name: str, folder: int | None, state: str, content: bytes, is_program: bool) -> bool:
    """Give the file this content in one step. Return False if it is in another state. Raises OSError."""
    scratch = f"{name}.swarm-{os.getpid()}"
    handle = os.open(scratch, _MAKE, 0o666, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            with contextlib.suppress(FileNotFoundError):
                mode = stat.S_IMODE(os.lstat(name, dir_fd=folder).st_mode)  # of the file in its place
            os.chmod(scratch if folder is None else handle, with_run_right(mode, is_program))
        if state_of(name, folder) != state:
            return False
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch, dir_fd=folder)


def _present(git: Git, path: str) -> Entry:
    """Return the entry that git would make of the present file; without mode for a link, a folder, or over 16 MiB."""
    found, data = present(os.path.join(git.top, path))
    if found is None:
        return (NO_FILE, "")  # removed
    if data is None or not stat.S_ISREG(found.st_mode):
        return ("", "")
    name = os.fsdecode(git.run(["hash-object", "--stdin", f"--path={path}"], data).stdout).strip()
    return (_FILES[bool(found.st_mode & stat.S_IXUSR)], name)


def _comparable(entry: Entry) -> Entry:
    return (NO_FILE, "") if entry[0] == NO_FILE else entry
