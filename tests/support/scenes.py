"""Worlds around one call: a home with a store, and a checkout with a session that calls beside a peer."""

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.sessions import hook_core, join, ready_store
from swarm_hook_core import process
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

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
        ppid, os.getppid = os.getppid, os.getpid  # this process is the client
        started, process.start_detached = process.start_detached, lambda _argv: None
        try:
            yield
        finally:
            os.getppid, process.start_detached = ppid, started
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
        """Return status and output of the check."""
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            core = (self.core, self.peers_core)[is_peer]
            status = core.run_pre_tool_use_hook(io.BytesIO(payload))
        return status, told.getvalue()

    def pass_time(self, seconds: int) -> None:
        """Let all entries be so much older."""
        for path in (self.state / "traces").glob("*/*"):
            lines = not_a_pipe(path).read_bytes().split(b"\n")
            path.write_bytes(b"\n".join(_older(line, seconds * 10**9) for line in lines))


def _older(line: bytes, by_ns: int) -> bytes:
    number, blank, rest = line.partition(b" ")
    if not number.isdigit() or not blank:
        return line
    return b"%d %s" % (int(number) - by_ns, rest)
