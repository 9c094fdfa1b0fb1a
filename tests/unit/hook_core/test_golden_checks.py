"""Calls of all kinds through the whole hook: each answer, and each file left behind, is the recorded one.

``SWARM_GOLDEN=write`` records them anew, in tests/data/golden/checks.json.
"""

import io
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits
from support.kernel_calls import says
from support.sessions import ROOT, hook_core, join, ready_store
from support.state_files import lines_of_files, plain_names, without_inodes
from support.traced import checkout, git
from support.world import saves

from swarm_hook_core import clock, coordinator, greetings, registration
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.kernel import planning
from swarm_hook_core.process import host_id
from swarm_hook_core.state import config_path, state_dir, store_path
from swarm_mcp.store import Store, driver
from swarm_mcp.store.lock_request import request

# They take the name `command` from `coordinator` as they are loaded, which must not be while a test replaces it.
LOADED_BEFORE = (registration, greetings)
IS_RECORDING = os.environ.get("SWARM_GOLDEN") == "write"  # each test's own environment has no such variables
GOLDEN = ROOT / "tests" / "data" / "golden" / "checks.json"
ME, PEER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


class Scene:
    """One checkout, the session that calls (`ME`), and a peer of another client."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.monkeypatch = monkeypatch
        self.tmp = tmp_path.resolve()
        self.home = Path(os.environ["HOME"]).resolve()
        self.work = checkout(self.tmp / "work", "notes.md", "other.md", "sub/deep.md")
        self.runtime, self.session_id, self.agent = "claude-code", ME, ""
        self.is_within = False
        self.started: list[list[str]] = []
        monkeypatch.setattr("swarm_hook_core.process.start_detached", self.started.append)
        for module in (coordinator, *LOADED_BEFORE):
            monkeypatch.setattr(module, "command", lambda: ["/nowhere/swarm-mcp"])
        self.limits = Limits(monkeypatch)
        self.limits("swarm_hook_core.traces.meetings", WAIT_SECONDS=0.02)
        self.limits("swarm_hook_core.registration", DEADLINE_SECONDS=60.0)
        ready_store()
        with Store() as store:
            facts = {"runtime": "claude-code", "session_id": ME}
            self.me = join(store, self.work, "identity:p me", **facts)
            self.peer = join(store, self.work, "identity:p peer", runtime="codex", session_id=PEER)

    def env(self, **values: str) -> None:
        """Set variables of this process."""
        for name, value in values.items():
            self.monkeypatch.setenv(name, value)

    def peer_locks(self, name: str, **more: Any) -> None:
        """Have the peer lock a file."""
        with Store() as store:
            store.locks.acquire_all(self.peer, request(self.peer, [str(self.work / name)], note="busy with it", **more))

    def peer_locks_pattern(self, pattern: str) -> None:
        """Have the peer lock a pattern."""
        with Store() as store:
            store.locks.acquire_all(self.peer, request(self.peer, [pattern], as_pattern=True))

    def i_lock(self, name: str, agent: str = "") -> None:
        """Have this session, or its subagent, lock a file."""
        with Store() as store:
            store.locks.acquire_all(self.me, request(self.me, [str(self.work / name)], note="mine", agent=agent))

    def peer_writes(self, name: str = "notes.md", is_made: bool = True) -> None:
        """Have the peer write a file with a shell command; the check alone where it is not made."""
        self.hook("Bash", {"command": f"printf 'alpha\\nPEER\\n' > {name}"}, runtime="codex", session_id=PEER)
        if is_made:
            time.sleep(0.02)
            (self.work / name).write_text("alpha\nPEER\n")
            time.sleep(0.02)

    def i_read(self, name: str) -> None:
        """Have this session read a file."""
        self.hook("Bash", {"command": f"cat {name}"})
        time.sleep(0.02)

    def denied_before(self, times: int, tool: str, given: dict[str, Any]) -> None:
        """Have this session make the same call, denied each time, some times."""
        for _ in range(times):
            self.hook(tool, given)

    def has_mail(self) -> None:
        """Send this session a message."""
        with Store() as store:
            store.messages.send(self.peer, self.me.id, "are you done with it?")

    def kernel(self) -> None:
        """Have the kernel hold the locks of others, and this session's shells look for it."""
        self.env(SWARM_KERNEL="1")
        (self.work / "fix.py").write_text("import json\n[open(n, 'w') for n in json.load(open('names.json'))]\n")
        with self.monkeypatch.context() as patched:
            says()
            patched.setenv("CLAUDE_ENV_FILE", str(self.home / "env"))
            planning.wire(hook_core("claude-code").config, SessionEvent(ME, str(self.work), "SessionStart"))

    def team(self, fresh_seconds: float) -> None:
        """Have the checkout joined to a team that is known to be fresh for so long."""
        os.makedirs(Path(state_dir(), "team", "clones"))
        with Store(tells=False) as store, store.database.writing():
            top = (str(self.work),)
            store.database.change("INSERT INTO swarm_team_trees (top, repository) VALUES (?, 'example.org/a')", top)
            store.database.change(
                "INSERT INTO swarm_team_repositories (id, epoch, version, state, fresh_until, booted, said_at)"
                " VALUES ('example.org/a', 'e', 1, 'joined', ?, ?, ?)",
                (
                    clock.now() + fresh_seconds,
                    clock.boot(host_id()),
                    int(time.time()) - (900 if fresh_seconds < 0 else 0),
                ),
            )

    def breaks(self, place: str, error: type[Exception] = RuntimeError) -> None:
        """Have a part of the check fail."""

        def fails(*_given: object, **_more: object) -> None:
            raise error("no luck")

        self.monkeypatch.setattr(place, fails)

    def hook(self, tool: str, given: Any, runtime: str = "", session_id: str = "", **more: Any) -> dict[str, Any]:
        """One call through the hook before it: exit status and answer."""
        payload = {
            "session_id": session_id or self.session_id, "cwd": str(self.work), "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": given, "tool_use_id": "call-1", "agent_id": self.agent, **more,
        }  # fmt: skip
        config = hook_core(runtime or self.runtime).config
        core = HookCore(config, driver=driver.load(), is_within=self.is_within)
        out = io.StringIO()
        with self.monkeypatch.context() as patched:
            patched.setattr("sys.stdout", out)
            status = core.run_pre_tool_use_hook(io.StringIO(json.dumps(payload)))
        return {"status": status, "answer": json.loads(out.getvalue()) if out.getvalue() else None}

    def left(self) -> dict[str, list[str]]:
        """The files of the state folder, by name."""
        return lines_of_files(Path(state_dir()))

    def plain(self, value: Any) -> Any:
        """Return `value` without the parts that vary between runs and machines."""
        if isinstance(value, dict):
            return dict(sorted((self.plain(key), self.plain(one)) for key, one in value.items()))
        if isinstance(value, list):
            return [self.plain(one) for one in value]
        if not isinstance(value, str):
            return value
        for text, name in (
            (str(self.tmp), "<TMP>"), (str(self.home), "<HOME>"), (ME, "<ME>"), (PEER, "<PEER>"),
            (self.me.id, "<MY-ID>"), (self.peer.id, "<PEER-ID>"), (host_id(), "<HOST>"), (socket.gethostname(), "<HOST>"),
        ):  # fmt: skip
            value = value.replace(text, name)
        value = re.sub(r"%2F\S*%2F(work%2F\S*%l)\d+(-\d+(?=-[0-7]+-))?", r"<TMP>/\1<TIME>", value)
        value = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<UUID>", value)
        value = re.sub(r"\b(peer|me) [0-9a-f]{8}\b", r"\1 <ID>", value)
        value = re.sub(r"\b[0-9a-f]+\.[0-9a-f]{3,}\b", "<PLACE>", value)
        value = re.sub(r"-[0-9a-f]{6}$", "-<HASH>", value)
        value = re.sub(r"\b[0-9a-f]{12,}\b", "<HASH>", value)
        value = re.sub(r"(?<![\d.])\d+ (s|seconds?|min)\b", "<TIME>", value)
        value = re.sub(r"\b\d\d:\d\d(:\d\d)?\b", "<TIME>", value)
        value = re.sub(r"\b\d{4}-\d\d-\d\dT?", "<DATE>", value)
        value = re.sub(r"\.py\", line \d+|\.py:\d+", ".py:<LINE>", value)
        return without_inodes(re.sub(r"(?<![\w.])-?\d{5,}(\.\d+)?\b( \d+)?", "<N>", value))


Before = Callable[[Scene], object]
EDIT = ("Edit", {"file_path": "notes.md", "old_string": "beta", "new_string": "MINE"})
WRITE = ("Write", {"file_path": "notes.md", "content": "mine\n"})
SHELL = ("Bash", {"command": "echo mine > notes.md"})


def _patch(name: str = "notes.md") -> tuple[str, dict[str, str]]:
    return "apply_patch", {
        "command": f"*** Begin Patch\n*** Update File: {name}\n@@\n-beta\n+MINE\n*** Add File: new.md\n+x\n*** End Patch\n"
    }


def bash(command: str) -> tuple[str, dict[str, str]]:
    return "Bash", {"command": command}


def all_of(*steps: Before) -> Before:
    """Some steps, one after the other."""
    return lambda scene: [step(scene) for step in steps]


def level(word: str) -> Before:
    return lambda scene: scene.env(SWARM_PROTECT=word)


def nothing(scene: Scene) -> None:
    """Leave all as it is."""


def locked(scene: Scene) -> None:
    scene.peer_locks("notes.md")


def elsewhere(scene: Scene) -> None:
    scene.peer_locks("other.md")


def changed(scene: Scene) -> None:
    scene.peer_writes()


def by_codex(scene: Scene) -> None:
    scene.runtime, scene.session_id = "codex", "another"
    with Store() as store:
        join(store, scene.work, "identity:p other", runtime="codex", session_id="another")


def by_person(scene: Scene) -> None:
    saves(scene.work / "notes.md", "alpha\nPERSON\n")


def in_linked_tree(scene: Scene) -> None:
    scene.limits("swarm_hook_core.fence", APART_NS=0)
    linked = scene.tmp / "linked"
    git(scene.work, "worktree", "add", "-q", str(linked))
    scene.work, scene.session_id = linked, "linked"
    with Store() as store:
        join(store, linked, "identity:p linked", runtime="claude-code", session_id="linked")


def strict(scene: Scene) -> None:
    scene.env(SWARM_STRICT="1")


def closed(scene: Scene) -> None:
    scene.env(SWARM_FAIL="closed")


def within(scene: Scene) -> None:
    scene.is_within = True


def as_agent(scene: Scene) -> None:
    scene.agent = "agent-1"


def breaks(place: str, error: type[Exception] = RuntimeError) -> Before:
    return lambda scene: scene.breaks(f"swarm_hook_core.{place}", error)


# name -> (the preparation, the call)
CASES: dict[str, tuple[Before, tuple[str, Any]]] = {
    # a client's own tools
    "edit alone": (nothing, EDIT),
    "edit beside a lock elsewhere": (elsewhere, EDIT),
    "edit of a locked file": (locked, EDIT),
    "edit of a file with a shared lock": (lambda s: s.peer_locks("notes.md", mode="shared"), EDIT),
    "edit of a file under a locked folder": (
        lambda s: s.peer_locks("sub"), ("Edit", {"file_path": "sub/deep.md", "old_string": "a", "new_string": "b"})),
    "edit of a file of a locked pattern": (lambda s: s.peer_locks_pattern("*.md"), EDIT),
    "edit of one's own locked file": (lambda s: s.i_lock("notes.md"), EDIT),
    "edit of a file that another agent of the session holds": (
        all_of(lambda s: s.i_lock("notes.md", "agent-2"), as_agent), EDIT),
    "edit by a subagent alone": (as_agent, EDIT),
    "edit that was denied twice": (all_of(locked, lambda s: s.denied_before(2, *EDIT)), EDIT),
    "edit with mail": (all_of(elsewhere, lambda s: s.has_mail()), EDIT),
    "denied edit with mail": (all_of(locked, lambda s: s.has_mail()), EDIT),
    "patch alone": (by_codex, _patch()),
    "patch of a locked file": (all_of(locked, by_codex), _patch()),
    "patch beside a change": (all_of(changed, by_codex), _patch()),
    # changes of others
    "edit of a changed file": (changed, EDIT),
    "edit of a changed file, strict": (all_of(changed, strict), EDIT),
    "edit of a file about to change": (lambda s: s.peer_writes(is_made=False), EDIT),
    "overwriting a changed file": (changed, WRITE),
    "overwriting a changed file that was read": (all_of(changed, lambda s: s.i_read("notes.md")), WRITE),
    "overwriting a changed file, notice": (all_of(level("notice"), changed), WRITE),
    "overwriting a changed file, off": (all_of(changed, level("off")), WRITE),
    "overwriting a changed file, turn": (all_of(level("turn"), changed), WRITE),
    "edit of a file of a turn": (all_of(level("turn"), changed, level("keep")), EDIT),
    "edit that takes a file": (level("turn"), EDIT),
    "denied edit that takes a file": (all_of(locked, level("turn")), EDIT),
    "shell write that takes a file": (level("turn"), SHELL),
    "overwriting what is committed again": (
        all_of(changed, lambda s: git(s.work, "commit", "-qam", "done")), WRITE),
    "edit elsewhere beside a change": (lambda s: s.peer_writes("other.md"), EDIT),
    # a person's changes, and what the sessions of a repository share
    "overwriting a person's change": (by_person, WRITE),
    "overwriting a person's change, notice": (all_of(level("notice"), by_person), WRITE),
    "edit of a person's change": (by_person, EDIT),
    "git checkout of a person's change": (by_person, bash("git checkout notes.md")),
    "switching the branch beside a session": (nothing, bash("git switch -c mine")),
    "edit in another work tree": (in_linked_tree, ("Edit", {**EDIT[1], "file_path": "../work/notes.md"})),
    # shell commands
    "ls alone": (nothing, bash("ls -l")),
    "shell write alone": (nothing, SHELL),
    "shell write alone, off": (level("off"), SHELL),
    "shell read beside a lock": (locked, bash("cat notes.md")),
    "shell write of a locked file": (locked, SHELL),
    "shell write beside a lock": (elsewhere, SHELL),
    "shell write of a changed file": (changed, SHELL),
    "shell edit of a changed file": (changed, bash("echo more >> notes.md")),
    "removing a changed folder": (lambda s: s.peer_writes("sub/deep.md"), bash("rm -r sub")),
    "removing a folder with a lock": (lambda s: s.peer_locks("sub/deep.md"), bash("rm -r sub")),
    "git checkout of a changed file": (changed, bash("git checkout notes.md")),
    "git stash beside a change": (changed, bash("git stash")),
    "git commit -a beside a change": (changed, bash("git commit -am x")),
    "git status beside a change": (changed, bash("git status")),
    "git checkout beside a lock": (locked, bash("git checkout .")),
    "guess beside a lock": (elsewhere, bash("./build.sh")),
    "guess beside a lock, strict": (all_of(elsewhere, strict), bash("./build.sh")),
    "guess beside a change": (changed, bash("./build.sh")),
    "PowerShell beside a lock": (elsewhere, ("PowerShell", {"command": "make gen"})),
    "shell patch of a locked file": (
        all_of(locked, by_codex), bash("apply_patch <<'EOF'\n" + _patch()[1]["command"] + "EOF")),
    "shell write by argv": (all_of(locked, by_codex), ("shell", {"command": ["bash", "-lc", "echo > notes.md"]})),
    # tools of other MCP servers
    "MCP write alone": (nothing, ("mcp__fs__write_file", {"path": "notes.md", "content": "x"})),
    "MCP write of a locked file": (locked, ("mcp__fs__write_file", {"path": "notes.md", "content": "x"})),
    "MCP write of a changed file": (changed, ("mcp__fs__write_file", {"path": "notes.md", "content": "x"})),
    "MCP read beside a lock": (locked, ("mcp__fs__read_file", {"path": "notes.md"})),
    "MCP git beside a change": (changed, ("mcp__git__git_reset", {"repo_path": "."})),
    # actions for persons only
    "edit of swarm's settings": (nothing, ("Edit", {"file_path": "{config}", "old_string": "a", "new_string": "b"})),
    "shell write of swarm's settings": (nothing, bash("cd {folder}; echo > config.json")),
    "removing the store": (elsewhere, bash("cd ~/store; rm swarm.db")),
    "lowering the level": (changed, bash("swarm-mcp protect off")),
    "lowering the level, by the old name": (changed, bash("swarm-mcp auto off")),
    "lowering the level, in words that are put together": (changed, bash("a=protect; swarm-mc''p $a off")),
    "removing the home from a variable": (changed, bash("cd {folder}/../.. && rm -rf state")),
    "protection that fails": (breaks("protected.denial_of"), bash("swarm-mcp protect off")),
    # the kernel
    "kernel holds": (all_of(elsewhere, lambda s: s.kernel()), bash("python3 fix.py")),
    "kernel holds, then a change denies": (
        all_of(elsewhere, changed, lambda s: s.kernel()), bash("python3 fix.py; echo mine > notes.md")),
    "kernel cannot leave its plan": (
        all_of(elsewhere, lambda s: s.kernel(), breaks("kernel.plans.leave", OSError), strict), bash("python3 fix.py")),
    "kernel cannot leave its plan, and a change denies": (
        all_of(elsewhere, changed, lambda s: s.kernel(), breaks("kernel.plans.leave", OSError)),
        bash("python3 fix.py; echo mine > notes.md")),
    "git within a watched command": (all_of(changed, within), bash("git checkout notes.md")),
    "protected command within a watched command": (within, bash("swarm-mcp protect off")),
    "guess within a watched command": (all_of(elsewhere, within), bash("./build.sh")),
    # a team
    "fresh team": (lambda s: s.team(60), EDIT),
    "stale team": (lambda s: s.team(-1), EDIT),
    "stale team, shell": (lambda s: s.team(-1), SHELL),
    "stale team, strict": (all_of(lambda s: s.team(-1), strict), SHELL),
    "stale team, a command that writes nothing": (all_of(lambda s: s.team(-1), strict), bash("ls")),
    "stale team beside a lock": (all_of(elsewhere, lambda s: s.team(-1)), EDIT),
    "team that fails": (all_of(lambda s: s.team(-1), breaks("team.concern")), EDIT),
    "team that fails, closed": (all_of(lambda s: s.team(-1), closed, breaks("team.concern")), EDIT),
    # faults
    "traces that fail": (all_of(changed, breaks("stakes.writes.Judgement")), WRITE),
    "traces that fail, closed": (all_of(changed, closed, breaks("stakes.writes.Judgement")), WRITE),
    "locks that fail": (all_of(locked, breaks("lookup.Peers.on")), EDIT),
    "locks that fail, closed": (all_of(locked, closed, breaks("lookup.Peers.on")), EDIT),
    "counting that fails": (all_of(locked, breaks("denial.weigh")), EDIT),
    "notes for a turn that fail": (all_of(level("turn"), breaks("traces.turn_files.TurnFiles.take")), EDIT),
    "a session that nobody knows": (lambda s: setattr(s, "session_id", "unknown-session"), EDIT),
    "a session that nobody knows, beside its lock": (
        all_of(locked, lambda s: setattr(s, "session_id", "unknown-session")), EDIT),
    "no session": (all_of(locked, lambda s: setattr(s, "session_id", "")), EDIT),
    "edit without a path": (nothing, ("Edit", {})),
    "edit without a path, closed": (all_of(elsewhere, closed), ("Edit", {})),
    "edit with an odd path": (elsewhere, ("Edit", {"file_path": "a\0b"})),
    "shell without a command": (locked, ("Bash", {})),
    "shell that cannot be parsed": (locked, bash("echo 'mine > notes.md")),
    "input that is a list": (locked, ("Edit", [])),
    "no tool": (locked, ("", {})),
    "harmless tool": (locked, ("TodoWrite", {"todos": []})),
    "unknown tool": (locked, ("Frobnicate", {"path": "notes.md"})),
    "no store": (lambda s: os.remove(store_path()), EDIT),
    "no store, shell": (lambda s: os.remove(store_path()), SHELL),
    "broken store": (all_of(locked, lambda s: Path(store_path()).write_text("no store " * 100)), EDIT),
    "broken store, closed": (
        all_of(locked, closed, lambda s: Path(store_path()).write_text("no store " * 100)), EDIT),
}  # fmt: skip


def _filled(value: Any, scene: Scene) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, scene) for key, one in value.items()}
    if isinstance(value, str) and ("{config}" in value or "{folder}" in value):
        return value.format(config=config_path(), folder=Path(config_path()).parent)
    return value


def played(name: str, scene: Scene) -> dict[str, Any]:
    """Return the result of a case: the answer, and the changes in the state folder."""
    before, (tool, given) = CASES[name]
    before(scene)
    del scene.started[:]
    there = scene.left()
    ran = scene.hook(tool, _filled(given, scene))
    left = scene.left()
    names = plain_names({**there, **left})
    gone = sorted(names[path] for path in set(there) - set(left))
    added = {}
    for path, lines in left.items():
        before_it = there.get(path)
        if before_it != lines:
            is_longer = before_it is not None and lines[: len(before_it)] == before_it
            added[names[path]] = lines[len(before_it or ()) :] if is_longer else lines
    found: dict[str, Any] = scene.plain({**ran, "left": added, "gone": gone, "started": scene.started})
    return found


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Create files with the recorded permissions: the names of kept copies contain them."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled
def test_a_call_comes_to_what_is_recorded(name: str, tmp_path: Path, monkeypatch, checks_have_time: None) -> None:
    found = played(name, Scene(tmp_path, monkeypatch))
    if IS_RECORDING:
        cases = {**recorded(), name: found}
        GOLDEN.write_text(json.dumps({name: cases[name] for name in CASES if name in cases}, indent=1) + "\n")
    assert found == recorded()[name]


def test_each_recorded_case_is_played() -> None:
    assert list(recorded()) == list(CASES)
