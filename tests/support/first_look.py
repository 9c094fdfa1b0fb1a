"""Worlds around one call, asked twice: through the program in front of the check (``native/``), and through the check.

The program is the one at ``SWARM_FIRST_LOOK``, else the one in this installation; tests are skipped without it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.sessions import hook_core, join, ready_store
from swarm_hook_core import first_look, spawn
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

PROGRAM = os.environ.get("SWARM_FIRST_LOOK", "")
CONTRACT = str(first_look.CONTRACT)
HANDED_OVER = 77
# The suite tries the same examples each time; a run with another number of them tries others.
IS_SUITE = not {"SWARM_EXAMPLES", "SWARM_FIRST_LOOK_EXAMPLES"} & set(os.environ)
TIMED_BY_THE_KERNEL = re.compile("%inputs|locked[.]files")
ME, PEER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def not_a_pipe(path: Path) -> Path:
    """Return the path. Raises FileExistsError for a pipe: opening it would wait for its other end for ever."""
    if path.is_fifo():
        raise FileExistsError(path)
    return path


class Scene:
    """A home with a store and one checkout, with a session (`ME`) that calls beside a peer."""

    def __init__(self, folder: Path, runtime: str):
        self.folder, self.runtime = folder.resolve(), runtime
        self.home, self.work, self.other = self.folder / "home", self.folder / "work", self.folder / "other"
        for place in (self.work / ".git", self.work / "sub", self.work / "real", self.other / ".git", self.home):
            place.mkdir(parents=True)
        for name in ("notes.md", "other.md", "sub/deep.md", "real/file.md"):
            (self.work / name).write_text(f"{name}\n")
        (self.work / "long.md").write_text("a line\n" * 30)
        (self.work / "link.md").symlink_to("notes.md")
        (self.work / "linked").symlink_to("real")
        self.store = self.home / ".swarm-mcp" / "swarm.db"
        self.state = self.home / ".local" / "state" / "swarm-mcp"
        self.core, self.sessions = hook_core(runtime), {}
        self.peers_core = hook_core({"codex": "claude-code", "claude-code": "codex"}[runtime])

    @contextlib.contextmanager
    def environment(self) -> Iterator[None]:
        """Let this process be in the scene's home."""
        before = dict(os.environ)
        gone = ("SWARM_", "XDG_", "CURSOR_VERSION", "COPILOT_PROJECT_DIR", "GROK_HOOK_EVENT")
        for name in list(os.environ):
            if name.startswith(gone):
                del os.environ[name]
        os.environ.update(HOME=str(self.home), SWARM_DB_PATH=str(self.store))
        ppid, os.getppid = os.getppid, os.getpid  # the program's parent is this process
        started, spawn.start_detached = spawn.start_detached, lambda _argv: None
        try:
            yield
        finally:
            os.getppid, spawn.start_detached = ppid, started
            os.environ.clear()
            os.environ.update(before)

    def begin(self) -> None:
        """Register the two sessions."""
        self.store.parent.mkdir(parents=True)
        ready_store()
        with Store() as store:
            self.me = join(store, self.work, "identity:p me", runtime=self.runtime, session_id=ME)
            peer = self.peers_core.config.runtime_name
            self.peer = join(store, self.work, "identity:p peer", runtime=peer, session_id=PEER)

    def locks(self, who: dict[str, Any], path: Path | str, **more: Any) -> None:
        """Have a session lock a path."""
        with Store() as store:
            store.locks.acquire_all(who, request(who, [str(path)], note="busy", **more))

    def payload(self, tool: str, given: dict[str, Any], who: str = ME, **more: Any) -> bytes:
        """Return the payload of a call in the checkout."""
        outer = {"session_id": who, "cwd": str(self.work), "hook_event_name": "PreToolUse", "tool_name": tool}
        return json.dumps({**outer, "tool_input": given, "tool_use_id": "1", **more}).encode()

    def edit_of(self, path: str, runtime: str = "") -> tuple[str, dict[str, Any]]:
        """Return tool and input of an edit of one file."""
        if (runtime or self.runtime) == "codex":
            return "apply_patch", {"command": f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"}
        return "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}

    def asks(self, payload: bytes, is_peer: bool = False) -> tuple[int, str]:
        """Return status and output of the check in Python."""
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            core = (self.core, self.peers_core)[is_peer]
            status = core.run_pre_tool_use_hook(io.BytesIO(payload))
        return status, told.getvalue()

    def looks(self, payload: bytes, program: str = "") -> tuple[int, str]:
        """Return status and output of the program: 0 in silence, or `HANDED_OVER` with the payload given on."""
        check = ["/bin/sh", "-c", f"cat; exit {HANDED_OVER}"]
        done = subprocess.run(
            [program or PROGRAM, CONTRACT, self.runtime, *check], input=payload, capture_output=True, check=False
        )
        self.why = done.stderr.decode()
        if done.returncode == HANDED_OVER:
            assert done.stdout == payload
        else:
            assert (done.returncode, done.stdout) == (0, b"")
        return done.returncode, self.why

    def start(self, payload: bytes, runtime: str) -> subprocess.Popen[bytes]:
        """Start the program for a client's call; its status is that of `looks`."""
        check = ["/bin/sh", "-c", f"exit {HANDED_OVER}"]
        started = subprocess.Popen(
            [PROGRAM, CONTRACT, runtime, *check], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert started.stdin is not None
        started.stdin.write(payload)
        started.stdin.close()
        return started

    def pass_time(self, seconds: int) -> None:
        """Let all entries be so much older."""
        for path in (self.state / "traces").glob("*/*"):
            lines = not_a_pipe(path).read_bytes().split(b"\n")
            path.write_bytes(b"\n".join(_older(line, seconds * 10**9) for line in lines))

    def left(self, since_ns: int) -> dict[str, Any]:
        """Return all files of the state folder: mode, content, times; times after `since_ns` are shown as `T`.

        A version's own times are set, and exact. Those of other files are the kernel's, and lag behind the clock.
        """
        found = {}
        for path in sorted(self.state.rglob("*")):
            seen, name = path.lstat(), _timeless(str(path.relative_to(self.state)), since_ns)
            is_version = "kept" in name and path.is_file() and not TIMED_BY_THE_KERNEL.search(name)
            mtime, content = "", ""
            if is_version:
                mtime = _timeless(str(seen.st_mtime_ns), since_ns)
            if path.is_file():
                content = _timeless(path.read_bytes().decode("latin-1"), since_ns)
            found.setdefault(name, []).append((oct(seen.st_mode), mtime, content))
        return found

    def compare(self, payload: bytes) -> bool:
        """Ask both; return True if the program was silent. Then the check was, too, and has left the same.

        The check is asked before and after the program: some rules go by seconds, and these pass meanwhile.
        """
        kept = self.folder / "kept-state"
        shutil.rmtree(kept, ignore_errors=True)
        files = [path for path in self.state.rglob("*") if path.is_file()]
        times = {path: (found.st_atime_ns, found.st_mtime_ns) for path in files if (found := path.lstat())}
        if self.state.exists():
            shutil.copytree(self.state, kept, symlinks=True)
        self._restore(kept, times)
        before = self._answer(payload)
        self._restore(kept, times)
        begun = time.time_ns()
        status, _why = self.looks(payload)
        if status == HANDED_OVER:
            return False
        by_program = ((0, ""), self.left(begun))
        self._restore(kept, times)
        after = self._answer(payload)
        assert by_program in (before, after), _differing(by_program, after)
        return True

    def _answer(self, payload: bytes) -> tuple[tuple[int, str], dict[str, Any]]:
        """Return the answer of the check, and the files that it leaves."""
        begun = time.time_ns()
        return self.asks(payload), self.left(begun)

    def _restore(self, kept: Path, times: dict[Path, tuple[int, int]]) -> None:
        """Bring the state folder back as it was; `times`: those of each file's last reading and writing."""
        shutil.rmtree(self.state, ignore_errors=True)
        if kept.exists():
            shutil.copytree(kept, self.state, symlinks=True)
        for path, both in times.items():
            os.utime(path, ns=both)


def _differing(by_program: tuple[Any, dict[str, Any]], by_check: tuple[Any, dict[str, Any]]) -> list[Any]:
    names = sorted(by_program[1].keys() | by_check[1].keys())
    files = [(name, by_program[1].get(name), by_check[1].get(name)) for name in names]
    return [by_check[0], *(one for one in files if one[1] != one[2])]


def _timeless(text: str, since_ns: int) -> str:
    return re.sub(r"\d{19}", lambda found: "T" if int(found[0]) >= since_ns else found[0], text)


def _older(line: bytes, by_ns: int) -> bytes:
    number, blank, rest = line.partition(b" ")
    if not number.isdigit() or not blank:
        return line
    return b"%d %s" % (int(number) - by_ns, rest)
