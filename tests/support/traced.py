"""Sessions that write in one checkout with no lock taken, played through the check in this process."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from support.sessions import hook_core, join, new_session
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces import journal, journal_name, place_of
from swarm_mcp.store import Store, driver


class Player:
    """A session of `runtime` in `folder`: each method makes a call, or returns a check's answer."""

    def __init__(self, runtime: str, folder: Path, label: str = "", **given: Any):
        self.runtime = runtime
        self.folder = folder
        self.session_id = new_session()
        self.transcript = ""  # path of its client's transcript, if a test has written one
        self.core = hook_core(runtime)
        self.core.driver = driver.load()
        with Store() as store:
            facts = {"runtime": runtime, "session_id": self.session_id, **given}
            self.row = join(store, folder, label or f"identity:p {runtime}", **facts)

    def check(self, tool: str, given: Any, agent: str = "") -> Any:
        """The Verdict on a call."""
        call = ToolCall(tool, given, self.session_id, str(self.folder), agent=agent, transcript=self.transcript)
        return self.core.check(call)

    def denied(self, tool: str, given: Any, agent: str = "") -> str:
        """Why a call is denied, empty where it may pass."""
        verdict = self.check(tool, given, agent)
        return verdict.denial.reason if verdict is not None and verdict.denial is not None else ""

    def told(self, tool: str, given: Any, agent: str = "") -> str:
        """Return the text for the model of a call that must pass."""
        verdict = self.check(tool, given, agent)
        assert verdict is None or verdict.denial is None, verdict.denial.reason
        return verdict.notice if verdict is not None else ""

    def runs(self, command: str) -> str:
        """Run a shell command if the check lets it pass. Returns the text for the model, after ``denied:`` for a
        denial.
        """
        verdict = self.check("Bash", {"command": command})
        if verdict is not None and verdict.denial is not None:
            return f"denied: {verdict.denial.reason}"
        _file_times_catch_up()
        subprocess.run(["bash", "-c", command], cwd=self.folder, check=False, capture_output=True)
        _some_time_passes()
        return verdict.notice if verdict is not None else ""

    def edits(self, name: str, old: str, new: str) -> str:
        """Change some text of a file with the client's own tool; returns the same as `runs`."""
        path = os.path.join(self.folder, name)
        if self.runtime == "claude-code":
            verdict = self.check("Edit", {"file_path": path, "old_string": old, "new_string": new})
        else:
            patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n"
            verdict = self.check("apply_patch", {"command": patch})
        return self._made(verdict, path, Path(path).read_text().replace(old, new, 1))

    def writes(self, name: str, text: str) -> str:
        """Put other text in the place of a whole file with the client's own tool; as `edits`."""
        path = os.path.join(self.folder, name)
        if self.runtime == "claude-code":
            verdict = self.check("Write", {"file_path": path, "content": text})
        else:
            lines = "".join(f"+{line}\n" for line in text.splitlines())
            verdict = self.check(
                "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {name}\n{lines}*** End Patch\n"}
            )
        return self._made(verdict, path, text)

    def _made(self, verdict: Any, path: str, text: str) -> str:
        if verdict.denial is not None:
            return f"denied: {verdict.denial.reason}"
        _file_times_catch_up()
        Path(path).write_text(text)
        _some_time_passes()
        return str(verdict.notice)


def _some_time_passes() -> None:
    """Let the next event be later by the kernel's file times too, as between two calls of a model."""
    time.sleep(journal.SLACK_NS / 1e9)
    _file_times_catch_up()


def _file_times_catch_up() -> None:
    """Wait for the next tick of the kernel's file times: later writes are not older than this call."""
    with tempfile.TemporaryFile() as probe:
        before = os.fstat(probe.fileno()).st_mtime_ns
        while os.fstat(probe.fileno()).st_mtime_ns == before:
            os.utime(probe.fileno())


def git(folder: Path, *words: str) -> str:
    """Return git's output in `folder`."""
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def checkout(folder: Path, *names: str) -> Path:
    """A repository in `folder` with one commit of files with these names, three lines each."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name in names or ("notes.md",):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("alpha\nbeta\ngamma\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "start")
    return folder


def note(who: str, folder: str, kind: str, key: str, at: float, text: str = "", runtime: str = "codex") -> None:
    """Add an entry to the journal of session `who`."""
    path = Path(place_of(folder), journal_name(runtime, who))
    path.parent.mkdir(parents=True, exist_ok=True)
    first = "" if path.exists() else f"1 session - {runtime}\0{who}\n"
    with open(path, "a") as file:
        file.write(f"{first}{int(at * 1e9)} {kind} - Bash\0{key}{text and chr(0) + text}\n")
