"""The command that a refusal advises passes the check, and `swarm-mcp why` gives the check's answer."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.advice import advice_passes, advised, files_advised, promise_is_kept
from support.altered import Limits
from support.sessions import fault_lines
from support.shared_scenes import in_both_clients
from support.traced import Player, git
from support.world import TEXT, Agent, World

from swarm_hook_core.traces import file_changes
from swarm_mcp.cli.main import main
from swarm_mcp.locking.explaining import verdict
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


SWEEPS = [
    "git checkout .",
    "git checkout -- .",
    "git checkout HEAD -- .",
    "git checkout -f",
    "git checkout-index -fa",
    "git read-tree -u --reset HEAD",
    "git restore .",
    "git restore -SW .",
    "git reset --hard",
    "git reset --hard feature",
    "git checkout -f feature",
    "git switch -f feature",
    "git stash",
    "git stash -u",
    "git stash push -m text",
    "git clean -fd",
    "git add -A",
    "git add .",
    "git add -u",
    "git commit -a -m text",
    "git commit -am text",
    "git add -A && git commit -m text",
    "git rm -rf .",
    "rm -r ./*",
    "cd sub && git checkout ..",
    "find . -name '*.txt' -delete",
]


class Scene(NamedTuple):
    """Files by the authors of their changes: ``b``: the session that is asked, ``a``: a peer, ``p``: a person.

    A name of two letters is a file with changes of both. `new`: files that git does not know; the others are committed.
    """

    changed: str
    new: str = ""


SCENES = {
    "a peer and a person": Scene("a p"),
    "a peer alone": Scene("a", "a1"),
    "a person alone": Scene("p", "p1"),
    "a peer, a person and the session": Scene("a b p", "a1 b1 p1"),
    "a file of a peer and the session": Scene("ab b p"),
    "a file of a person and the session": Scene("pb a b"),
    "files of all pairs": Scene("ab pa pb", "b1"),
    "one file of each pair, no own one": Scene("ab pb p", "a1"),
}
# Others are parts of these.
SAMPLE = (
    "a person alone",
    "a peer, a person and the session",
    "files of all pairs",
    "one file of each pair, no own one",
)


def played(world: World, scene: Scene, runtime: str) -> Agent:
    """Let a person, a peer and the session change the files of a scene, in this order; return the session."""
    names = [*scene.changed.split(), *scene.new.split()]
    for name in scene.changed.split():
        world.write(f"{name}.txt", TEXT)
    world.commit("start")
    world.git("branch", "feature", "HEAD~1")
    for name in names:
        if "p" in name:
            world.write(f"{name}.txt", TEXT.replace("alpha", "a person's"))
    agents = {"a": world.session("codex"), "b": world.session(runtime)}
    for letter, agent in agents.items():
        agent.bash("ls")
        for name in names:
            if letter not in name:
                continue
            if name in scene.new.split():
                agent.write(f"{name}.txt", TEXT)
            else:
                agent.edit(f"{name}.txt", {"a": "beta", "b": "gamma"}[letter], f"by {letter}")
    return agents["b"]


@pytest.mark.parametrize(
    ("name", "runtime"),
    [pytest.param(*case, marks=[] if case[0] in SAMPLE else pytest.mark.thorough) for case in in_both_clients(SCENES)],
)
@pytest.mark.sampled
def test_an_advised_command_names_the_session_s_own_files_and_passes(
    name: str, runtime: str, world: World, limits: Limits
) -> None:
    limits(file_changes, LINES_SECONDS=60.0)
    scene = SCENES[name]
    me = played(world, scene, runtime)
    mixed_or_own = {f"{one}.txt" for one in (*scene.changed.split(), *scene.new.split()) if "b" in one}
    seen = 0
    for command in SWEEPS:
        for _ in range(3):  # the second and third rule may speak once the first has been told
            verdict = me.ask("Bash", {"command": command})
            said = f"{verdict.words}\n{verdict.notice}"
            if not said.strip():
                break
            seen += 1
            assert set(map(os.path.basename, files_advised(said))) <= mixed_or_own, (command, said)
            advice_passes(me, said)
    assert seen > len(SWEEPS) / 2


def test_the_session_s_own_files_are_still_advised(world: World) -> None:
    me = played(world, SCENES["a peer, a person and the session"], "codex")
    assert advised(me.ask("Bash", {"command": "git checkout ."}).words) == ["git checkout -- b.txt"]
    assert advised(me.ask("Bash", {"command": "git stash -u"}).words) == ["git stash push -u -- b.txt b1.txt"]
    assert advised(me.ask("Bash", {"command": "git add -A"}).words) == ["git add b.txt b1.txt"]


def test_an_advised_undo_takes_back_the_session_s_own_lines_in_a_shared_file(world: World) -> None:
    me = played(world, SCENES["one file of each pair, no own one"], "codex")
    (command,) = advised(me.ask("Bash", {"command": "git stash"}).words)
    program, *words = command.split()
    assert program == "swarm-mcp" and world.swarm(*words, "--session", me.id).code == 0
    assert world.read("ab.txt") == TEXT.replace("beta", "by a")
    assert world.read("pb.txt") == TEXT.replace("alpha", "a person's")
    assert world.read("a1.txt") == TEXT


def beside_a_peer(world: World, runtime: str) -> Agent:
    """Return a session beside a peer that has changed a file."""
    me, peer = world.session(runtime), world.session("codex")
    me.bash("ls")
    assert not peer.edit("notes.md", "beta", "PEER").denied
    return me


def beside_a_person(world: World, runtime: str) -> Agent:
    """Return a session beside a person that has changed a file."""
    me = world.session(runtime)
    me.bash("ls")
    world.write("notes.md", TEXT.replace("beta", "a person's"))
    return me


def beside_both(world: World, runtime: str) -> Agent:
    """Return a session beside a peer and a person, each with a file of their own."""
    me = beside_a_peer(world, runtime)
    world.write("other.md", TEXT.replace("beta", "a person's"))
    return me


def beside_an_entry(world: World, runtime: str) -> Agent:
    """Return a session beside a stash entry that no session has made."""
    me = beside_a_person(world, runtime)
    past = {**os.environ, "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", *identity, "stash", "-q"], cwd=world.repo, env=past, check=True)
    return me


def beside_a_commit(world: World, runtime: str) -> Agent:
    """Return a session beside a peer that has committed."""
    me = beside_a_peer(world, runtime)
    world.commit("a peer's")
    return me


WRITE = ""  # the client's own tool puts a text into the whole file
# form of a refusal -> the others, the command
FORMS: dict[str, tuple[Any, str]] = {
    "a removal of a peer's change": (beside_a_peer, "rm notes.md"),
    "a folder with a peer's change": (beside_a_peer, "rm -r ./*"),
    "a whole text over a peer's change": (beside_a_peer, WRITE),
    "a redirection over a peer's change": (beside_a_peer, "cat > notes.md <<'EOF'\nx\nEOF"),
    "a whole text over a person's change": (beside_a_person, WRITE),
    "a copy over a person's change": (beside_a_person, "cp other.md notes.md"),
    "a person's work staged": (beside_a_person, "git add -A"),
    "a person's work committed": (beside_a_person, "git commit -qam x"),
    "a peer's work committed": (beside_a_peer, "git commit -qam x"),
    "work of both staged": (beside_both, "git add -A"),
    "an entry of the stash": (beside_an_entry, "git stash pop"),
    "a moved branch": (beside_a_commit, "git reset --soft HEAD~1"),
    "a peer's commit amended": (beside_a_commit, "git commit --amend --no-edit"),
    "another branch": (beside_a_commit, "git checkout feature"),
}


@pytest.mark.parametrize(("form", "runtime"), in_both_clients(FORMS))
@pytest.mark.sampled
def test_the_promise_of_a_refusal_is_kept(form: str, runtime: str, tmp_path: Path) -> None:
    world = World(tmp_path, "notes.md", "other.md")
    world.git("branch", "feature")
    others, command = FORMS[form]
    me = others(world, runtime)
    tool: str = "Bash"
    given: Any = {"command": command}
    if command == WRITE:
        tool, given = me.writing(str(world.repo / "notes.md") if runtime == "claude-code" else "notes.md")
    promise_is_kept(me, tool, given, me.ask(tool, given).words)


KINDS = {
    "edit": ("apply_patch", {"command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-gamma\n+x\n*** End Patch\n"}),
    "overwrite": ("Bash", {"command": "echo x > notes.md"}),
    "remove": ("Bash", {"command": "rm notes.md"}),
}
# A state -> the level, and the kinds of writes that are refused.
STATES = {
    "nothing": ("keep", set()),
    "a change of a peer": ("keep", {"overwrite", "remove"}),
    "a change of a peer, below keep": ("notice", set()),
    "a change that this session has read": ("keep", set()),
    "a committed change": ("keep", set()),
    "a change of its own": ("keep", set()),
    "a write that is on its way": ("keep", {"overwrite", "remove"}),
    "a lock": ("keep", {"edit", "overwrite", "remove"}),
    "a turn of a peer": ("turn", {"edit", "overwrite", "remove"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.sampled
def test_what_it_says_is_what_the_check_says(state: str, kind: str, work: Path, monkeypatch, limits) -> None:
    level, refused = STATES[state]
    monkeypatch.setenv("SWARM_AUTO", level)
    limits("swarm_hook_core.traces.meetings", WAIT_SECONDS=0.05)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    me.runs("cat notes.md")
    if "change" in state and "own" not in state:
        peer.edits("notes.md", "beta", "PEER")
    if "read" in state:
        me.runs("cat notes.md")
    elif "committed" in state:
        git(work, "commit", "-qam", "done")
    elif "own" in state:
        me.edits("notes.md", "beta", "MINE")
    elif "lock" in state:
        with Store() as store:
            store.locks.acquire(peer.row, str(work / "notes.md"))
    elif "turn" in state:
        peer.edits("notes.md", "beta", "PEER")
    elif "way" in state:
        assert peer.denied("Bash", {"command": "sleep 9; echo x > notes.md"}) == ""
    before = _state_files()
    with Store(read_only=True) as store:
        session = store.instances.get(me.row["id"])
        told = verdict(store, session, str(work / "notes.md"), viewer="p")
        again = verdict(store, session, str(work / "notes.md"), viewer="p")
    assert _state_files() == before, "nobody has made a call"
    assert {name for name, one in told["kinds"].items() if not one["allowed"]} == refused
    assert {name: one["allowed"] for name, one in again["kinds"].items()} == {
        name: one["allowed"] for name, one in told["kinds"].items()
    }
    assert told["allowed"] is (not refused) and bool(told["reason"]) is bool(refused)
    if refused:
        assert told["holder_id"] == peer.row["id"]
    reason = me.denied(*KINDS[kind])
    assert bool(reason) is (kind in refused), reason


def _state_files() -> dict[str, int]:
    root = Path(os.environ["SWARM_STATE_DIR"])
    return {str(path): path.stat().st_size for path in sorted(root.rglob("*")) if path.is_file()}


def test_why_says_of_each_kind_what_comes_of_it(work: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(work)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    peer.edits("notes.md", "beta", "PEER")
    assert main(["why", "notes.md", "--as", me.row["id"]]) == 0
    said = capsys.readouterr().out
    name = f"peer {peer.row['id'][:8]}"
    assert f"to edit it would go ahead for me {me.row['id'][:8]}" in said
    assert (
        f"to overwrite or remove it would be refused: swarm: Write would overwrite notes.md, changed by {name}" in said
    )
    assert "the model would be told: swarm: " in said and f"was changed by {name}" in said
    assert main(["why", "notes.md", "--as", peer.row["id"]]) == 0
    assert "would go ahead" in (own := capsys.readouterr().out) and "refused" not in own
    monkeypatch.setenv("AGENT_IDENTITY", "q")
    assert main(["why", "notes.md"]) == 0
    strange = capsys.readouterr().out
    assert "a session that holds nothing" in strange and "refused" in strange and "peer" not in strange
    assert main(["why", "notes.md", "--json", "--as", me.row["id"]]) == 0
    told = json.loads(capsys.readouterr().out)["write"]
    assert told["allowed"] is False and told["kinds"]["edit"]["allowed"] is True and told["holder_id"] == peer.row["id"]
    assert fault_lines() == []
