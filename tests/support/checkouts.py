"""Real repositories to ask about, with branches, a remote, a stash and work in progress."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.shell.programs.git.touched_files import touched

AMPLE = 300.0  # seconds for a question; its speed is not tested here
ALONE = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
ODD = 'odd "näme".txt'


class Checkout:
    """A real repository; files are named relative to its top."""

    def __init__(self, top: Path, committed: frozenset[str] = frozenset()):
        self.top = top
        self.committed = committed  # every file that some commit or stash has

    def git(self, *words: str, check: bool = True, folder: str = "") -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.top / folder, env={**os.environ, **ALONE}, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, (words, done.stderr)
        return os.fsdecode(done.stdout)

    def write(self, **files: str) -> None:
        for name, text in files.items():
            self.put(name, text)

    def put(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str, **files: str) -> None:
        for name, text in files.items():
            self.put({"c": "src/c.py", "d": "src/d.py", "new": "src/new.py", "odd": ODD}.get(name, f"{name}.txt"), text)
        self.git("add", "-A")
        self.git("commit", "-qm", message, "--date", "1600000000 +0000")  # long before any write here

    def ask(self, line: str, locked=None, folder: str = "", **more):
        """The Touch of ``git <line>``, where peers hold `locked` (default: everything), relative to the top."""
        words = shlex.split(line) if isinstance(line, str) else line
        call = GitCall(str(self.top / folder), words, line, **more)
        held = self.everything() if locked is None else locked
        touch = touched(call, [str(self.top / name) for name in held], AMPLE)
        touch.certain = {os.path.relpath(path, self.top) for path in touch.certain}
        return touch

    def everything(self) -> set[str]:
        """Every file there is or was, and some that there may be."""
        return {*self.committed, *self.files(), "z.txt", "src/a.txt", "src/b.txt", "lib/c.py", "lib/d.py"}

    def files(self) -> dict[str, bytes]:
        found = {}
        for folder, folders, names in os.walk(self.top):
            if ".git" in folders:
                folders.remove(".git")
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, self.top)] = Path(path).read_bytes()
        return found

    def entries(self, *question: str) -> dict[str, str]:
        """Return file -> its entry in the index (or a tree)."""
        listed = (row.split("\t", 1) for row in self.git(*question, check=False).split("\0") if row)
        return {name: entry for entry, name in listed}

    def footprint(self) -> dict[str, tuple]:
        """Everything that could be seen to have changed, git's own files included."""
        found = {}
        for folder, _folders, names in os.walk(self.top):
            for name in [*names, "."]:
                status = os.stat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (status.st_mtime_ns, status.st_ino, status.st_size)
        return found


def changed(before: dict, after: dict) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def made_in(base: Path) -> dict[str, Checkout]:
    """`clean`: branches, a remote that is ahead, a stash; `dirty`: the same with work in progress; and `torn`."""
    clean = Checkout(base / "clean")
    clean.top.mkdir()
    clean.git("init", "-q", "-b", "main", "--template=")
    clean.git("config", "maintenance.auto", "false")
    clean.put(".gitignore", "*.log\n")
    clean.commit("one", a="a\n" * 9, b="b\n", c="c\n", d="d\n", odd="o\n", staged="s\n", ren="r\n")
    clean.git("checkout", "-qb", "feature")
    clean.commit("two", a="a\n" * 9 + "feature\n", new="n\n")
    clean.commit("three", odd="o2\n")
    clean.git("checkout", "-qb", "clash", "main")
    clean.commit("clash", c="clash\n")
    clean.git("checkout", "-q", "main")
    clean.commit("four", c="c2\n")
    clean.git("clone", "-q", "--bare", ".", str(base / "origin.git"))
    clean.git("checkout", "-qb", "ahead")
    clean.commit("five", d="d2\n")
    clean.git("push", "-q", str(base / "origin.git"), "ahead:main", "ahead:elsewhere")
    clean.git("checkout", "-q", "main")
    clean.git("branch", "-qD", "ahead")
    clean.git("remote", "add", "origin", str(base / "origin.git"))
    clean.git("fetch", "-q")
    clean.git("branch", "-q", "-u", "origin/main")
    clean.write(**{"ren.txt": "stashed\n", "kept.txt": "untracked, stashed\n"})
    clean.git("stash", "push", "-qu")
    clean.git("config", "alias.ci", "commit -a")
    clean.git("config", "alias.st", "status -sb")
    clean.git("config", "alias.wild", "!rm -rf .")
    clean.git("repack", "-adq")  # few files to copy
    (clean.top / "sub").mkdir()
    (clean.top / ".git" / "hooks").mkdir()
    listed = clean.git("log", "--all", "--format=", "--name-only", "-z", "-m").replace("\n", "").split("\0")
    clean.committed = frozenset(listed) - {""}
    dirty = Checkout(base / "dirty", clean.committed)
    shutil.copytree(clean.top, dirty.top, symlinks=True)
    dirty.write(**{"b.txt": "half done\n", "staged.txt": "s2\n", "u.txt": "u\n", "i.log": "i\n", "n/x.txt": "x\n"})
    dirty.git("add", "staged.txt")
    os.utime(dirty.top / "a.txt")  # as good as unchanged
    torn = Checkout(base / "torn", clean.committed)
    shutil.copytree(clean.top, torn.top, symlinks=True)
    torn.git("merge", "-q", "clash", check=False)
    return {"clean": clean, "dirty": dirty, "torn": torn}


def copied(template: Checkout, top: Path) -> Checkout:
    """A copy of `template` at `top`, to do with as one likes."""
    shutil.copytree(template.top, top, symlinks=True)
    return Checkout(top, template.committed)
