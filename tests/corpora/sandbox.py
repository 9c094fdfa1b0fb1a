"""A folder as an agent finds one: a git repository, a home, a folder beside it; and the changes of a command there.

root/repo        the repository, where commands run; branches, a stash, a remote that is one commit ahead
root/origin.git  its remote
root/other       a plain folder
root/web         the files that the loopback server serves
root/home        HOME
root/tmp         TMPDIR
"""

import contextlib
import functools
import hashlib
import http.server
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator

from corpora.ground import FILES, MAKE_GIT

# Caches of tools; they are never locked.
CACHES = (
    "home/.cache/",
    "home/.npm/",
    "home/.viminfo",
    "home/.wget-hsts",
    "home/.local/share/",
    "home/.config/go/",
    "home/.terraform.d/",
)
CACHE_FOLDERS = ("/.ruff_cache/", "/.pytest_cache/", "/.mypy_cache/", "/__pycache__/")
LONG_AGO = 1_700_000_000
SECONDS = 30


def environment(root: str) -> dict[str, str]:
    """The variables that commands start with: nothing of this process but where programs are."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": f"{root}/home",
        "TMPDIR": f"{root}/tmp",
        "USER": "agent",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "PWD": f"{root}/repo",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")),
    }


def make(root: str) -> None:
    """Make the sandbox at `root`, which must not exist yet."""
    os.makedirs(root)
    for path, text in FILES.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if text.startswith("-> "):
            os.symlink(text[3:].strip(), full)
            continue
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        if path.endswith(".sh"):
            os.chmod(full, 0o755)
        os.utime(full, (LONG_AGO, LONG_AGO))
    shell(MAKE_GIT, root, check=True)


def copy(root: str, to: str) -> None:
    """A fresh copy of the sandbox `root` at `to`, dates and links included."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(root, to, symlinks=True)


def shell(text: str, root: str, check: bool = False) -> int:
    """Run bash text in the repository of sandbox `root`; its exit status."""
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=f"{root}/repo",
        env=environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"{text!r} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.returncode


def files(root: str) -> list[str]:
    """Every file and link of the sandbox, relative to `root`, without git's own and without caches."""
    return sorted(path for path, _ in _walk(root, internal=False) if not _is_cache(path))


def folders(files: list[str]) -> list[str]:
    """The folders that these files lie in, below the sandbox's first ones."""
    return sorted({"/".join(path.split("/")[:depth]) for path in files for depth in range(2, path.count("/") + 1)})


class Snapshot:
    """The files of a sandbox as they are now."""

    def __init__(self, root: str):
        self.states = {path: _state(os.path.join(root, path), status) for path, status in _walk(root)}

    def changed(self, later: "Snapshot") -> tuple[list[str], bool]:
        """Files made, removed or changed until `later` (content, mode, date or link), and True if git's own changed."""
        paths = self.states.keys() | later.states.keys()
        differing = sorted(path for path in paths if self.states.get(path) != later.states.get(path))
        writes = [path for path in differing if not _is_internal(path) and not _is_cache(path)]
        return writes, any(_is_internal(path) and not path.endswith("/index") for path in differing)


def _is_internal(path: str) -> bool:
    return "/.git/" in path or path.startswith("origin.git/")


def _is_cache(path: str) -> bool:
    return path.startswith(CACHES) or any(folder in path for folder in CACHE_FOLDERS)


def _walk(root: str, internal: bool = True) -> Iterator[tuple[str, os.stat_result]]:
    stack = [root]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    if internal or not entry.name.endswith(".git"):
                        stack.append(entry.path)
                else:
                    yield entry.path[len(root) + 1 :], status


def _state(path: str, status: os.stat_result):
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(path)
    content = ""
    if stat.S_ISREG(status.st_mode):
        with contextlib.suppress(PermissionError), open(path, "rb") as file:
            content = hashlib.sha1(file.read()).hexdigest()
    return status.st_mode, status.st_mtime_ns, status.st_size, content


@contextlib.contextmanager
def web(folder: str) -> Iterator[int]:
    """A web server on loopback over `folder`; its port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_words) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
