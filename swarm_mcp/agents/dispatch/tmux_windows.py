"""Workers to watch: the supervisor of ``processes``, in a tmux window of its own.

The window opens in the dispatcher's tmux session, else in one called ``swarm``, made if missing. It stays after the
worker's end, to be read; the oldest such windows close when new ones open.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time

from swarm_hook_core.labels import token
from swarm_hook_core.process import start_time
from swarm_hook_core.spawn import Result, run
from swarm_hook_core.state import make_private, state_dir
from swarm_mcp.agents.dispatch.assignment import assignment_of
from swarm_mcp.agents.dispatch.processes import HAND_OVER_SECONDS, Processes, environment, require_startable
from swarm_mcp.agents.dispatch.spawners import SpawnFailed, WorkerSpec, ignored_in, printed_by, shown_name
from swarm_mcp.agents.harness.environment import is_foreign
from swarm_mcp.domain.record import new_id
from swarm_mcp.installation import coordinator_command
from swarm_mcp.processes.leftover_processes import OUTLIVES
from swarm_mcp.runtimes.profiles import Settings
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SESSION = "swarm"
SECONDS = 10.0
KEPT_WINDOWS = 8  # of workers that have ended
MARK = "@swarm_run"  # a tmux option of our panes: the run's id
FORMAT = "#{session_id} #{pane_id} #{pane_pid}"
UNSUPPORTED = ("workspace", "tab", "group", "max_panes_per_tab", "layout")
# Variables of the window itself.
OF_THE_WINDOW = (
    "TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "SHLVL", "PWD",
)  # fmt: skip


class TmuxWindows(Processes):
    """The spawner ``tmux``."""

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        require_startable(store, worker)
        run_id = new_id()
        env = {name: value for name, value in environment().items() if name not in OF_THE_WINDOW}
        text = assignment_of(worker, run_id, env=env).to_text()
        settings = Settings(token(worker.requester.label or "", "identity"))
        tmux = _Tmux(os.path.expanduser(settings.first("SWARM_TMUX_BIN") or "tmux"))
        with _Pipe() as pipe:
            words = [*coordinator_command(), "work", "--watch", "--from", pipe.path]
            session, pane, pid = tmux.open(worker, words)
            try:
                pipe.write(text.encode())
            except SpawnFailed:
                tmux.forget(pane)
                raise
        tmux.keep(session, pane, run_id)
        facts = {"instance_id": worker.instance_id, "run_id": run_id, "pane_id": pane}
        supervisor = [store.here, pid, start_time(pid)]
        return {**facts, **ignored_in(worker.placement, UNSUPPORTED), "supervisor": supervisor}


class _Tmux:
    """The command. It finds its server by itself: ``TMUX`` names the one around us, else it is the user's default."""

    def __init__(self, program: str):
        self.program = program

    def open(self, worker: WorkerSpec, words: list[str]) -> tuple[str, str, int]:
        """Open a window that runs `words`; return its session, its pane, the pid in it. Raises SpawnFailed."""
        name = shown_name(worker.name or f"{worker.role}: {worker.title}")
        # tmux would expand such characters in a folder's name. The supervisor is told the folder by other means.
        if worker.cwd.isprintable() and not set("#%;") & set(worker.cwd):
            folder = worker.cwd
        else:
            folder = "/"
        named, here = ["-n", name or SESSION], ["-c", folder]
        report = ["-d", "-P", "-F", FORMAT, *here]
        beside = worker.placement.get("parent_pane_id") or ""
        if beside:
            if worker.placement.get("split_direction") == "down":
                across = []
            else:
                across = ["-h"]
            return _opened(self.ask("split-window", *across, "-t", _target(beside), *report, "--", *words))
        if os.environ.get("TMUX", "").strip():
            return _opened(self.ask("new-window", *report, *named, "--", *words))
        for _ in range(2):  # another dispatch may make the session at the same moment
            if self.tries("has-session", "-t", f"={SESSION}"):
                return _opened(self.ask("new-window", "-t", f"={SESSION}:", *report, *named, "--", *words))
            try:
                size = ["-x", "200", "-y", "50"]
                return _opened(self.ask("new-session", "-s", SESSION, *size, *report, *named, "--", *words))
            except SpawnFailed as error:
                failure = error
        raise failure

    def keep(self, session: str, pane: str, run_id: str) -> None:
        """Let the pane stay when its worker has ended, and see to it that not too many do."""
        self.tries("set-option", "-p", "-t", pane, "remain-on-exit", "on")
        self.tries("set-option", "-p", "-t", pane, MARK, run_id)
        try:
            listed = self.ask("list-panes", "-s", "-t", session, "-F", f"#{{pane_dead}} #{{pane_id}} #{{{MARK}}}")
        except SpawnFailed:  # the session has ended
            return
        ended = [words[1] for words in map(str.split, listed.splitlines()) if len(words) == 3 and words[0] == "1"]
        for old in sorted(ended, key=lambda pane_id: int(pane_id[1:]))[:-KEPT_WINDOWS]:
            self.forget(old)

    def forget(self, pane: str) -> None:
        """Close a pane."""
        self.tries("kill-pane", "-t", pane)

    def tries(self, *words: str) -> bool:
        """Run the command; return True for success."""
        return bool(self._run(words).code == 0)

    def ask(self, *words: str) -> str:
        """Run the command and return its output. Raises SpawnFailed."""
        return printed_by(self._run(words), self.program, f"tmux {words[0]}", "SWARM_TMUX_BIN")

    def _run(self, words: tuple[str, ...]) -> Result:
        # A server started here outlives us, and hands its environment to every later window.
        foreign = [word for name in os.environ if is_foreign(name) for word in ("-u", name)]
        return run([*(["env", *foreign, f"{OUTLIVES}=1"] if foreign else []), self.program, *words], SECONDS)


class _Pipe:
    """A named pipe, private to this user, that is gone once it has been read."""

    def __enter__(self) -> _Pipe:
        try:
            make_private(state_dir())
            self._folder = tempfile.mkdtemp(prefix="assignment-", dir=state_dir())
            self.path = os.path.join(self._folder, "pipe")
            os.mkfifo(self.path, 0o600)
        except OSError as error:
            raise SpawnFailed(f"the state folder cannot be used: {error}") from None
        return self

    def __exit__(self, *_exception: object) -> None:
        os.remove(self.path)
        os.rmdir(self._folder)

    def write(self, data: bytes) -> None:
        """Hand over `data`. Raises SpawnFailed if it is not read in time."""
        until = time.monotonic() + HAND_OVER_SECONDS
        file = -1
        try:
            while data:
                try:
                    if file < 0:
                        file = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                    data = data[os.write(file, data) :]
                    continue
                except OSError as error:
                    if error.errno not in (errno.ENXIO, errno.EAGAIN):
                        raise SpawnFailed("the worker's supervisor ended before it had its instructions") from None
                if time.monotonic() > until:
                    raise SpawnFailed("the worker's supervisor did not take its instructions")
                time.sleep(0.01)
        finally:
            if file >= 0:
                os.close(file)


def _opened(report: str) -> tuple[str, str, int]:
    words = report.split()
    if len(words) != 3 or not words[2].isdigit():
        raise SpawnFailed("tmux did not say which pane it opened")
    return words[0], words[1], int(words[2])


def _target(text: str) -> str:
    # Given by a model: it must not pass for a flag, a format, or another command.
    if text.startswith("-") or not text.isprintable() or set("#%;") & set(text.removeprefix("%")):
        raise SpawnFailed(f"{text[:40]!r} cannot be the name of a pane")
    return text
