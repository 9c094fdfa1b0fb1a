"""One checkout with its store, sessions at work in it, and people beside them.

::

    world = World(tmp_path, "notes.md")
    peer = world.session("codex")
    assert not peer.edit("notes.md").denied
    me = world.session()
    assert "notes.md" in me.bash("git checkout .").words
    world.write("notes.md", "a person's text\n")
    assert world.swarm("lock", "notes.md", as_=me).code == 0
    (lock,) = world.swarm("locks").json

An event in, a verdict out; a verb in, JSON out. The check runs inside this process, and a passed call is made for real.
"""

import difflib
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.command_line import flags_of, option
from support.fixtures import Done, Ground
from support.sessions import ROOT, Ran, captured, hook_core, join, new_session, ready_store, run
from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.traces import journal
from swarm_mcp.store import Store, driver

TEXT = "alpha\nbeta\ngamma\n"  # of every file at first
PERSON = [
    *("-c", "user.name=t", "-c", "user.email=t@t"),
    *("-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"),
]


class Verdict(NamedTuple):
    """The answer to a call: `words` are the denial's text, `notice` is for the model of a passed call."""

    denied: bool
    words: str
    notice: str

    @property
    def silent(self) -> bool:
        """True if the call may go ahead without a word."""
        return not self.denied and not self.notice


class Agent:
    """A session of `runtime` in `folder`, with the store's `row` of it.

    `bash`, `edit` and `write` ask the check, make the call if it may pass, and return the Verdict.
    """

    def __init__(self, runtime: str, folder: Path, label: str = "", **given: Any):
        self.runtime, self.folder, self.transcript = runtime, folder, ""
        self.session_id = new_session()
        self.core = hook_core(runtime)
        self.core.driver = driver.load()
        facts = {"runtime": runtime, "session_id": self.session_id, **given}
        with Store() as store:
            self.row = join(store, folder, label or f"identity:p {runtime}", **facts)
        self.id = str(self.row["id"])

    def check(self, tool: str, given: Any, agent: str = "", **more: Any) -> Any:
        """Return the core's own Verdict on a call that is not made; None if it needs none."""
        facts = {"cwd": str(self.folder), "transcript": self.transcript, "agent": agent, **more}
        return self.core.check(ToolCall(tool, given, self.session_id, **facts))

    def ask(self, tool: str, given: Any, agent: str = "", **more: Any) -> Verdict:
        """Return the verdict on a call that is not made."""
        verdict = self.check(tool, given, agent, **more)
        if verdict is None:
            return Verdict(False, "", "")
        if verdict.denial is not None:
            return Verdict(True, verdict.denial.reason, verdict.notice)
        return Verdict(False, "", verdict.notice)

    def writing(self, path: str, text: str = "written\n") -> tuple[str, dict[str, str]]:
        """Return the client's own tool, and its input, that puts `text` into a whole file."""
        if self.runtime == "claude-code":
            return "Write", {"file_path": path, "content": text}
        *lines, rest = text.split("\n")
        added = "".join(f"+{line}\n" for line in (*lines, rest) if line or line is not rest)
        return "apply_patch", patch(f"*** Add File: {path}\n{added}")

    def bash(self, command: str) -> Verdict:
        """Run a shell command."""
        verdict = self.ask("Bash", {"command": command})
        if not verdict.denied:
            file_times_catch_up()
            subprocess.run(["bash", "-c", command], cwd=self.folder, check=False, capture_output=True)
            some_time_passes()
        return verdict

    def edit(self, name: str, old: str = "beta", new: str = "PEER", agent: str = "") -> Verdict:
        """Put `new` in the place of the first `old` of a file, with the client's own tool."""
        path = os.path.join(self.folder, name)
        if self.runtime == "claude-code":
            verdict = self.ask("Edit", {"file_path": path, "old_string": old, "new_string": new}, agent)
        elif self.runtime == "opencode":
            verdict = self.ask("edit", {"filePath": path, "oldString": old, "newString": new}, agent)
        else:
            verdict = self.ask("apply_patch", patch(f"*** Update File: {name}\n{hunks_of(path, old, new)}"))
        return self._made(verdict, path, lambda: Path(path).read_text().replace(old, new, 1))

    def write(self, name: str, text: str = "written\n") -> Verdict:
        """Put `text` in the place of a whole file, with the client's own tool."""
        path = os.path.join(self.folder, name)
        verdict = self.ask(*self.writing(path if self.runtime == "claude-code" else name, text))
        return self._made(verdict, path, lambda: text)

    def _made(self, verdict: Verdict, path: str, text: Any) -> Verdict:
        if not verdict.denied:
            file_times_catch_up()
            Path(path).write_text(text())
            some_time_passes()
        return verdict

    def turn_ends(self) -> None:
        """Let the session's turn end."""
        session_events.takes_turn(self.core, SessionEvent(self.session_id, str(self.folder), "Stop"))

    def is_prompted(self) -> None:
        """Tell the hook of a turn's beginning: it notes this process as the client, and the log of the session."""
        ran = self.fire("turn", "UserPromptSubmit", transcript_path=self.transcript)
        assert ran.code == 0, ran.err

    def call_ends(self) -> None:
        """Run the hook after a call, as the client does. It leaves the time."""
        hook = ["/bin/sh", str(ROOT / "integrations" / "hook.sh"), self.runtime, "post_tool_use"]
        subprocess.run(hook, input=b"{}", check=True)
        some_time_passes()

    def fire(self, hook: str, payload: str, **more: Any) -> Ran:
        """Run the real hook process `hook` on the captured payload of that name, with `more` in it."""
        given = captured(self.runtime, payload, self.folder, session_id=self.session_id, **more)
        return run(self.runtime, hook, given)


class World:
    """A checkout `repo` under `folder` with committed files of the given names, and an empty store."""

    def __init__(self, folder: Path, *names: str):
        self.folder = folder.resolve()
        self.ground = Ground(self.folder)
        self.ground.database = str(ready_store())  # the home's own
        self.repo = self.ground.repo
        os.rmdir(self.repo / ".git")
        checkout(self.repo, *names)

    def session(self, runtime: str = "claude-code", label: str = "", folder: Path | None = None, **given: Any) -> Agent:
        """Begin a session, by default in the checkout."""
        return Agent(runtime, folder or self.repo, label, **given)

    def swarm(self, *argv: str, as_: Agent | None = None, cwd: Path | None = None) -> Done:
        """Run a verb, as the session `as_` if given, with ``--json`` where the verb has it: `code`, `json`, `out`."""
        acting = option("--as", as_ and as_.id)
        as_json = ["--json"] if "--json" in flags_of(argv[0]) and "--json" not in argv else []
        return self.ground.swarm(*argv, *acting, *as_json, cwd=cwd)

    def store(self) -> Store:
        """Open the store."""
        return self.ground.store()

    def sql(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Run one statement on the store's file, as another implementation would."""
        return self.ground.sql(statement, *values)

    def lock(self, agent: Agent, name: str, note: str = "busy") -> None:
        """Let `agent` lock a file."""
        with self.store() as store:
            store.locks.acquire(store.instances.get(agent.id), str(self.repo / name), note)

    def write(self, name: str, text: str) -> Path:
        """Write a file without any hook, as a person does."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file_times_catch_up()
        path.write_text(text)
        some_time_passes()
        return path

    def read(self, name: str) -> str:
        """Return a file's text."""
        return (self.repo / name).read_text()

    def git(self, *words: str) -> str:
        """Return git's output in the checkout. Whatever comes after a commit is later than it, by file times too."""
        said = git(self.repo, *words)
        if "commit" in words:
            some_time_passes()
        return said

    def commit(self, message: str = "a person's") -> None:
        """Commit everything in the checkout."""
        self.git("add", "-A")
        self.git("commit", "-qm", message)


def patch(body: str) -> dict[str, str]:
    """Return the input of `apply_patch` for one file section."""
    return {"command": f"*** Begin Patch\n{body}*** End Patch\n"}


def hunks_of(path: str, old: str, new: str) -> str:
    """Return the hunks of a patch that puts `new` in the place of the first `old` of the file at `path`."""
    try:
        before = Path(path).read_text()
    except OSError:
        before = ""
    if old not in before:
        return f"@@\n-{old}\n+{new}\n"
    lines = difflib.ndiff(before.splitlines(), before.replace(old, new, 1).splitlines())
    return "@@\n" + "".join(f"{line[0]}{line[2:]}\n" for line in lines if line[0] != "?")


def some_time_passes() -> None:
    """Let the next event be later by the kernel's file times too, as between two calls of a model."""
    time.sleep(journal.SLACK_NS / 1e9)
    file_times_catch_up()


def file_times_catch_up() -> None:
    """Wait for the next tick of the kernel's file times: later writes are not older than this call."""
    with tempfile.TemporaryFile() as probe:
        before = os.fstat(probe.fileno()).st_mtime_ns
        while os.fstat(probe.fileno()).st_mtime_ns == before:
            os.utime(probe.fileno())


def git(folder: Path, *words: str) -> str:
    """Return git's output in `folder`."""
    return subprocess.run(["git", *PERSON, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit_all(folder: Path, message: str) -> None:
    """Commit everything in `folder`."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def saves(path: Path, text: str) -> None:
    """Save a file without any hook, as a person does; the next event is later."""
    path.write_text(text)
    some_time_passes()


def typed(folder: Path, commands: str) -> None:
    """Run shell commands in `folder`, as a person types them; each must succeed."""
    done = subprocess.run(["bash", "-euc", commands], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, (commands, done.stderr)


def checkout(folder: Path, *names: str) -> Path:
    """A repository in `folder` with one commit of files with these names, three lines each."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name in names or ("notes.md",):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TEXT)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "start")
    return folder
