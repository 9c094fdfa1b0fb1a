"""Each reason of a refusal or a notice, once: one event, and the same words on every screen."""

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient
from support.kernel_calls import Caller, says
from support.traced import Player, git
from support.world import saves

from swarm_hook_core import environment, state
from swarm_hook_core.check import rules
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import LEVELS, REASONS, Happening, incident_of, incidents, lately, sentence
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store
from swarm_mcp.view.page.app import Keys, application
from swarm_mcp.view.top import reading

pytestmark = pytest.mark.slow

REFUSED, NOTICE = "refused", "notice"
LINES = "".join(f"line {number}\n" for number in range(1, 10))


class Scene:
    """A session `me` and its `peer`, both in the checkout `work`."""

    def __init__(self, work: Path, monkeypatch: pytest.MonkeyPatch, folder: Path | None = None):
        self.work, self.patch = work, monkeypatch
        self.me, self.peer = Player("codex", folder or work, "identity:p me"), Player("codex", work, "identity:p peer")
        monkeypatch.chdir(folder or work)

    def tries(self, command: str) -> None:
        """Ask about a shell command of `me`, as its hook does."""
        self.uses("Bash", {"command": command})

    def uses(self, tool: str, given: dict[str, str], **more: Any) -> None:
        """Ask about a call of `me`."""
        self.me.core.judge(
            ToolCall(tool, given, self.me.session_id, str(self.me.folder), "PreToolUse", id="c-1", **more)
        )

    def plays(self, *steps: str) -> None:
        """Take steps: each is a name of a deed, and its words."""
        deeds: dict[str, Callable[[str], object]] = {
            "me-tries": self.tries,
            "me-runs": self.me.runs,
            "me-requests": lambda name: self.swarm("lock", name, "--as", self.me.id),
            "peer-locks": self.lock,
            "peer-edits": lambda name: self.peer.edits(name, "beta", "PEER"),
            "peer-runs": self.peer.runs,
            "peer-may-run": lambda command: self.peer.denied("Bash", {"command": command}),
            "level": lambda word: self.patch.setenv("SWARM_PROTECT", word),
        }
        for step in steps:
            deed, _, words = step.partition(" ")
            deeds[deed](words)

    def lock(self, name: str) -> None:
        """Let the peer lock a file."""
        with Store() as store:
            store.locks.acquire(self.peer.row, str(self.work / name), "busy")

    def swarm(self, *words: str) -> None:
        main([*words])


def of_a_person(scene: Scene) -> None:
    scene.me.runs("ls")
    saves(scene.work / "notes.md", "a person's\n")
    scene.tries("git checkout .")


def over_the_fence(scene: Scene) -> None:
    git(scene.work, "worktree", "add", "-q", "../side")
    beyond = Scene(scene.work, scene.patch, scene.work.parent / "side")
    scene.me = beyond.me
    scene.tries(f"echo x > {scene.work}/new.md")


def in_a_tree_of_the_peer(scene: Scene) -> None:
    git(scene.work, "worktree", "add", "-q", "../side")
    scene.peer = Player("codex", scene.work.parent / "side", "identity:p peer")
    scene.tries("git worktree remove ../side")


def broken(scene: Scene) -> None:
    def breaks(check: object) -> None:
        raise OSError("the disk is gone")

    scene.patch.setattr(rules, "judge", breaks)
    scene.tries("echo x > notes.md")
    Path(state.fault_log()).unlink()  # the fault is the play's own


def closed(scene: Scene) -> None:
    scene.patch.setenv("SWARM_FAIL", "closed")
    broken(scene)


def unchecked_beside_a_lock(scene: Scene) -> None:
    scene.lock("notes.md")
    broken(scene)


def fence_at_notice(scene: Scene) -> None:
    scene.patch.setenv("SWARM_PROTECT", "notice")
    over_the_fence(scene)


def merged(scene: Scene) -> None:
    scene.patch.setattr(environment, "client_version", lambda config: (*config.merge_versions, "")[0])
    (scene.work / "notes.md").write_text(LINES)
    git(scene.work, "commit", "-qam", "lines")
    scene.me = Player("claude-code", scene.work, "identity:p me")
    scene.me.runs("cat notes.md")
    scene.peer.edits("notes.md", "line 2", "PEER")
    tool, given = scene.me.writing(str(scene.work / "notes.md"), LINES.replace("line 8", "mine"))
    scene.uses(tool, given, takes_input=True)


def guarded(scene: Scene) -> None:
    scene.lock("notes.md")
    (scene.work / "notes.md").write_text("a person's\n")
    git(scene.work, "add", "notes.md")
    scene.swarm("guard", "check", "--hook", "pre-commit")


def held_by_the_kernel(scene: Scene) -> None:
    says()
    caller = Caller(scene.work, scene.patch)
    scene.me = caller  # type: ignore[assignment]
    scene.lock("notes.md")
    caller.check()
    assert "the kernel kept" in caller.after("OSError: [Errno 30] Read-only file system: 'notes.md'")


def altered(scene: Scene) -> None:
    scene.lock("notes.md")
    session = ["--runtime", "codex", "--session-id", scene.me.session_id, "--tool", "Bash", "--command", "make"]
    change = ["--holder", scene.peer.id, "--kind", "changed", "--kept=", "--at", "1"]
    scene.swarm("altered", str(scene.work / "notes.md"), *session, *change)


class Case(NamedTuple):
    """A play, or its steps, and the level, the kind, and the words of its event. `{peer}`: the peer's name."""

    play: Callable[[Scene], None] | tuple[str, ...]
    level: str
    kind: str
    words: str


LOCKED, EDITED = "peer-locks notes.md", "peer-edits notes.md"
WRITES, SWEEPS = "me-tries echo x > notes.md", "me-tries git checkout ."
CASES = {
    "lock": Case((LOCKED, WRITES), REFUSED, "lock", 'held by {peer}: "busy"'),
    "folder": Case(("peer-locks sub", "me-tries echo x > sub/deep.md"), REFUSED, "lock", "held by {peer}, by the locked folder "),
    "request": Case((LOCKED, "me-requests notes.md"), REFUSED, "lock", 'held by {peer}: "busy"'),
    "uncommitted": Case((EDITED, WRITES), REFUSED, "uncommitted", "it would overwrite what {peer} changed"),
    "removed": Case((EDITED, "me-tries rm notes.md"), REFUSED, "uncommitted", "it would remove what {peer} changed"),
    "moment": Case(("peer-may-run sleep 9; echo x > notes.md", WRITES), REFUSED, "moment", "{peer} was writing it at that moment"),
    "sweep": Case((EDITED, SWEEPS), REFUSED, "sweep", "`git checkout .` would throw away what {peer} changed"),
    "commit": Case((EDITED, "me-tries git commit -qam x"), REFUSED, "sweep", "`git commit -qam x` would commit what {peer} changed"),
    "stash": Case((EDITED, "peer-runs git stash", "me-tries git stash drop"), REFUSED, "stash", "`git stash drop` would throw away what {peer} put into the stash"),
    "person": Case(of_a_person, REFUSED, "person", "`git checkout .` would throw away a person's uncommitted work"),
    "head": Case(("me-tries git switch -q -c side",), REFUSED, "head", "`git switch -q -c side` would change the HEAD, index or stash that"),
    "tenant": Case(in_a_tree_of_the_peer, REFUSED, "tenant", "it would remove the folder in which {peer} works"),
    "fence": Case(over_the_fence, REFUSED, "fence", "would write in another work tree"),
    "closed": Case(closed, REFUSED, "unchecked", "it could not be checked: OSError: the disk is gone"),
    "reserved": Case(("me-tries swarm-mcp protect off",), REFUSED, "reserved", "only a person may do that: swarm-mcp protect off"),
    "guard": Case(guarded, REFUSED, "lock", 'held by {peer}'),
    "kernel": Case(held_by_the_kernel, REFUSED, "kernel", "the kernel kept it from writing what {peer} holds"),
    "unchecked": Case(unchecked_beside_a_lock, NOTICE, "unchecked", "it could not be checked: OSError: the disk is gone"),
    "possible": Case((LOCKED, "me-tries some-formatter"), NOTICE, "possible", "`some-formatter` may write what {peer} holds"),
    "met": Case((EDITED, "me-tries sed -i s/alpha/A/ notes.md"), NOTICE, "uncommitted", "would edit what {peer} changed"),
    "sweep, told": Case(("level notice", EDITED, SWEEPS), NOTICE, "sweep", "`git checkout .` would throw away what {peer} changed"),
    "fence, told": Case(fence_at_notice, NOTICE, "fence", "would write in another work tree"),
    "merged": Case(merged, NOTICE, "merged", "its text was merged with what {peer} changed"),
    "passed": Case((EDITED, "me-runs cat notes.md", WRITES), NOTICE, "passed", "it was let overwrite what {peer} changed"),
    "altered": Case(altered, NOTICE, "altered", "`make` changed what {peer} holds"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def commands_run_here(commands: Any) -> None:
    """The commands that hooks start run to their end in this process."""
    commands.run = True


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 0
    return str(capsys.readouterr().out)


@pytest.fixture
def browser() -> Iterator[TestClient]:
    """A browser with the page."""
    keys = Keys(4711)
    with TestClient(application(lambda: Store(read_only=True), keys), base_url="http://127.0.0.1:4711") as client:
        assert client.get(f"/?token={keys.shown}", follow_redirects=False).status_code == 303
        yield client


def page(browser: TestClient, address: str, **asked: str) -> str:
    """Return the words of a view of the page."""
    text = browser.get(address, params=asked).text
    return " ".join(html.unescape(re.sub(r"</?(a|q|time)\b[^>]*>", "", text)).split())


def screens(capsys: pytest.CaptureFixture[str], browser: TestClient, scope: str, file: str) -> dict[str, str]:
    """Return all that each screen says."""
    watch = ["watch", "--timeout", "0", "--since", "0"]
    verbs = [["status"], ["log"], watch] + [["why", file], ["log", file]] * bool(file)
    found = {" ".join(words): printed(capsys, *words) for words in verbs}
    for words in verbs:
        text = printed(capsys, *words, "--json")
        told = [json.loads(line) for line in text.splitlines()] if words == watch else json.loads(text)
        found[f"{' '.join(words)} --json"] = "\n".join(_reasons(told))
    with Store() as store:
        rows = reading._incident_table(
            incidents(store, scope, People(store, "p"), 0, 10), store.now(), reading.Places(scope)
        )
    found["top"] = "\n".join(" ".join(row.cells) for row in rows)
    found["now"], found["timeline"] = page(browser, "/", scope=scope), page(browser, "/timeline", scope=scope)
    if file:
        found["file"] = page(browser, "/file", scope=scope, path=file)
    return found


def _reasons(told: object) -> list[str]:
    """Return the words and the keys of all incidents in JSON."""
    if isinstance(told, list):
        return [one for part in told for one in _reasons(part)]
    if not isinstance(told, dict):
        return []
    own = [f"{told['level']} {told['kind']} {told['reason']}"] if {"level", "kind", "reason"} <= set(told) else []
    return own + [one for part in told.values() for one in _reasons(part)]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.sampled
def test_a_refusal_or_notice_is_one_event_with_the_same_words_on_every_screen(
    case: Case, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], browser: TestClient
) -> None:
    scene = Scene(work, monkeypatch)
    if isinstance(case.play, tuple):
        scene.plays(*case.play)
    else:
        case.play(scene)
    scope = str(scene.me.folder)
    with Store() as store:
        (found,) = incidents(store, scope, People(store, "p"), 0, 10)
    assert (found.level, found.reason) == (case.level, case.kind), found
    expected = case.words.format(peer=f"peer {scene.peer.id[:8]}")
    file = found.file
    for screen, shown in screens(capsys, browser, scope, file).items():
        assert expected in shown, (screen, shown)
        if screen.endswith("--json"):
            assert f"{case.level} {case.kind} " in shown, (screen, shown)
        elif screen.split()[0] in ("status", "log", "why", "watch"):
            assert case.level in shown, (screen, shown)


def test_only_the_same_call_on_the_same_file_is_a_repeat(work: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    scene = Scene(work, monkeypatch)
    of_a_person(scene)
    commands = ("git checkout .", "git checkout .", "git stash", "git reset --hard", "echo 'one\ntwo' > notes.md")
    for command in commands:
        scene.tries(command)
    scene.lock("sub")
    scene.tries("echo x > sub/deep.md")
    scene.uses("apply_patch", {"command": "*** Begin Patch\n*** Delete File: sub/deep.md\n*** End Patch\n"})
    with Store() as store:
        found = incidents(store, str(work), People(store, "p"), 0, 20)
        of_person = [one.command for one in found if one.reason == "person"]
        assert len(of_person) == 4 and len(set(of_person)) == 4, of_person
        assert sorted(one.tool for one in found if one.reason == "lock") == ["Bash", "apply_patch"]
        assert sum(one.times for one in lately(store, str(work), People(store, "p"), 0, 20, REFUSED)) == len(found) == 6
    for words in (("log",), ("status",), ("why", "notes.md")):
        assert "\\n" not in printed(capsys, *words), words


PLAYED = {case.kind for case in CASES.values()}
AS_WRITTEN = sorted(set(REASONS) - PLAYED)


@pytest.mark.parametrize("reason", AS_WRITTEN)
@pytest.mark.sampled
def test_so_is_one_of_any_other_reason(reason: str, work: Path, monkeypatch, capsys, browser: TestClient) -> None:
    """Their plays take a queue, a team or a lapse: other tests have these."""
    scene = Scene(work, monkeypatch)
    file = str(work / "notes.md")
    payload = {"holder": scene.peer.id, "reason": reason, "tool": "Bash", "path": file}
    with Store() as store, store.database.writing() as tx:
        tx.add_event(str(work), "context.write_denied", scene.me.id, file, payload)
    peer = f"peer {scene.peer.id[:8]}"
    before, after = REASONS[reason]
    blank = dict.fromkeys(("through", "before", "more", "detail"), "")
    words = before.format(by="it", deed="change", **blank)
    if after is not None:
        words += peer + after.format(by="it", deed="change", **blank)
    for screen, shown in screens(capsys, browser, str(work), file).items():
        assert words in shown, (screen, shown)


@pytest.mark.parametrize("what", sorted(LEVELS))
@pytest.mark.parametrize("details", [{}, {"reason": 7, "also": "x", "changed_at": "soon", "path": None}])
def test_an_event_of_another_program_is_shown_all_the_same(what: str, details: dict[str, Any]) -> None:
    one = incident_of(Happening(1, "/s", 9, what, "", "another identity", "/s/f", "", "", 0.0, "", details))
    assert one is not None and sentence(one).startswith("/s/f to another identity: ")


def test_a_notice_is_recorded_once_a_minute_and_never_counts_as_a_denial(work: Path, monkeypatch) -> None:
    scene = Scene(work, monkeypatch)
    scene.lock("notes.md")
    for _again in range(4):
        scene.tries("some-formatter")
    with Store() as store:
        assert len(incidents(store, str(work), People(store, "p"), 0, 10)) == 1
    denial = scene.me.core.judge(
        ToolCall("Bash", {"command": "echo x > notes.md"}, scene.me.session_id, str(work))
    ).denial
    assert denial.times == 1
