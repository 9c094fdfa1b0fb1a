"""The authors of committed lines, recorded in git notes: Agent Trace."""

from __future__ import annotations

import json
import os
import uuid

import pytest
from support.sessions import fault_lines
from support.world import Agent, World

from swarm_hook_core.state import fault_log
from swarm_mcp.changes.authorship import REF, committed, hooked

FILE = "notes.md"
OTHER = "other.md"


@pytest.fixture
def recording(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the world after a person has switched the record on."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    assert world.ground.swarm("protect", "authorship", "on").code == 0
    return world


def head(world: World) -> str:
    return world.git("rev-parse", "HEAD").strip()


def records(world: World, commit: str = "HEAD") -> list[dict]:
    listed = world.git("notes", f"--ref={REF}", "list").split()
    if head_of(world, commit) not in listed:
        return []
    return list(map(json.loads, world.git("notes", f"--ref={REF}", "show", commit).splitlines()))


def head_of(world: World, commit: str) -> str:
    return world.git("rev-parse", commit).strip()


def ranges(record: dict) -> dict[str, list[tuple[str, int, int]]]:
    """Return ``{path: [(type, first line, last line)]}`` of a record."""
    return {
        file["path"]: [
            (one["contributor"]["type"], span["start_line"], span["end_line"])
            for one in file["conversations"]
            for span in one["ranges"]
        ]
        for file in record["files"]
    }


def blamed(world: World, name: str = FILE) -> list[str | None]:
    """Return the type of each line's recorded contributor."""
    done = world.swarm("blame", name)
    assert not done.code, done.err
    lines = done.json["lines"]
    return [one["contributor"] and one["contributor"]["type"] for one in lines]


def plain_commit(world: World) -> None:
    """Commit everything as git does with the guard's hook."""
    world.commit()
    committed(str(world.repo))


def test_no_commit_has_a_note_until_a_person_switches_it_on(world: World, me: Agent, monkeypatch) -> None:
    me.edit(FILE, "beta", "MINE")
    assert world.ground.swarm("commit", "-m", "mine", "--as", me.id).code == 0
    assert not world.git("for-each-ref", REF)
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = world.ground.swarm("protect", "authorship", "on")
    assert refused.code == 1 and "an agent may not do that" in refused.err
    assert world.ground.swarm("protect", "authorship").out.startswith("the record of authors is off here")


@pytest.fixture
def me(world: World) -> Agent:
    return world.session("codex")


def test_a_session_s_commit_has_its_lines_with_session_and_model(recording: World, me: Agent) -> None:
    log = recording.folder / "rollout.jsonl"
    log.write_text('{"type":"turn_context","payload":{"model":"gpt-5.2-codex"}}\n')
    me.transcript = str(log)
    me.is_prompted()
    me.edit(FILE, "beta", "MINE\nMORE")
    recording.write(OTHER, "a person's\n")
    assert recording.ground.swarm("commit", "-m", "mine", "--as", me.id).code == 0
    (record,) = records(recording)
    assert ranges(record) == {FILE: [("ai", 2, 3)]}
    assert record["vcs"] == {"type": "git", "revision": head(recording)}
    assert record["version"] == "0.1" and uuid.UUID(record["id"])
    (one,) = record["files"][0]["conversations"]
    assert one["contributor"]["model_id"] == "openai/gpt-5.2-codex"
    assert one["related"] == [{"type": "session", "url": f"swarm-session:codex/{me.session_id}"}]
    assert str(recording.folder) not in json.dumps(record)
    assert blamed(recording) == [None, "ai", "ai", None]
    line = recording.ground.swarm("blame", FILE).out.splitlines()[1]
    assert f"codex {me.session_id[:8]} (openai/gpt-5.2-codex)" in line


def test_lines_of_a_person_and_of_both(recording: World, me: Agent) -> None:
    me.edit(FILE, "gamma", "gamma\nMINE")
    recording.write(FILE, "PERSON\nalpha\nbeta\ngamma\nMINE, edited\n")
    me.edit(OTHER, "alpha", "ALL MINE")
    plain_commit(recording)
    (record,) = records(recording)
    assert ranges(record) == {FILE: [("human", 1, 1), ("mixed", 5, 5)], OTHER: [("ai", 1, 1)]}
    assert f"codex {me.session_id[:8]} and a person" in recording.ground.swarm("blame", FILE).out


def test_amend_keeps_old_lines_and_adds_new_ones(recording: World, me: Agent) -> None:
    me.edit(FILE, "beta", "MINE")
    plain_commit(recording)
    old = head(recording)
    recording.write(FILE, "PERSON\nalpha\nMINE\ngamma\n")
    recording.git("commit", "-qa", "--amend", "-m", "amended")
    committed(str(recording.repo))
    assert not records(recording)  # git calls the next hook at once
    hooked("post-rewrite", str(recording.repo), [f"{old} {head(recording)}"])
    assert blamed(recording) == ["human", None, "ai", None]
    assert {one["vcs"]["revision"] for one in records(recording)} == {head(recording)}


def test_rebase_moves_the_ranges_and_a_squash_has_all(recording: World, me: Agent) -> None:
    me.edit(FILE, "beta", "MINE")
    plain_commit(recording)
    one = head(recording)
    me.edit(FILE, "gamma", "gamma\nLAST")
    plain_commit(recording)
    two = head(recording)
    recording.git("switch", "-qc", "base", "HEAD~2")
    recording.write(FILE, "FIRST\nalpha\nbeta\ngamma\n")
    recording.git("commit", "-qam", "base")
    recording.git("cherry-pick", "--no-commit", one, two)
    recording.git("commit", "-qm", "squashed")
    hooked("post-rewrite", str(recording.repo), [f"{one} {head(recording)}", f"{two} {head(recording)}"])
    assert blamed(recording) == [None, None, "ai", None, "ai"]
    assert len({record["id"] for record in records(recording)}) == 2


@pytest.mark.slow
def test_guarded_git_keeps_notes_by_rebase_amend_and_cherry_pick(recording: World, me: Agent, monkeypatch) -> None:
    recording.git("config", "commit.gpgsign", "false")
    assert recording.ground.swarm("guard", "install").code == 0
    me.edit(FILE, "beta", "MINE")
    recording.commit()
    picked = head(recording)
    assert blamed(recording) == [None, "ai", None]
    recording.git("commit", "-q", "--amend", "-m", "amended")
    assert blamed(recording) == [None, "ai", None]
    recording.git("switch", "-qc", "side", "HEAD~1")
    recording.write(FILE, "FIRST\nalpha\nbeta\ngamma\n")
    recording.commit()
    recording.git("cherry-pick", picked)
    assert blamed(recording) == ["human", None, "ai", None]
    recording.git("reset", "-q", "--hard", "HEAD~1")
    recording.git("switch", "-q", "main")
    recording.git("rebase", "-q", "side")
    assert blamed(recording) == ["human", None, "ai", None]
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    assert recording.ground.swarm("guard", "uninstall").code == 0
    assert not list((recording.repo / ".git/hooks").glob("post-*[!e]"))


def test_notes_of_others_are_read_and_nonsense_is_left_out(recording: World) -> None:
    recording.write(FILE, "alpha\nBETA\ngamma\n")
    recording.commit()
    first = head(recording)
    record = {
        "version": "0.1.0",
        "vcs": {"type": "git", "revision": first},
        "files": [{"path": FILE, "conversations": [{
            "contributor": {"type": "unknown"},
            "ranges": [{"start_line": 2, "end_line": 10**12}],
            "related": [{"type": "session", "url": "swarm-session:codex/5f0c2f6e77"}],
        }]}],
    }  # fmt: skip
    broken = [{"files": 3}, {"vcs": {"revision": first}, "files": [{"path": FILE, "conversations": [{"ranges": "x"}]}]}]
    text = "\n\n".join(json.dumps(one, indent=1) for one in [*broken, record])
    recording.git("notes", f"--ref={REF}", "add", "-m", text + "\n{", first)
    assert blamed(recording) == [None, "unknown", None]
    assert "codex 5f0c2f6e or a person" in recording.ground.swarm("blame", FILE).out
    # git's own notes.rewriteRef copies a note as it is
    recording.write(FILE, "ZERO\nalpha\nBETA\ngamma\n")
    recording.git("commit", "-qa", "--amend", "-m", "amended")
    recording.git("notes", f"--ref={REF}", "copy", first, "HEAD")
    assert blamed(recording) == [None, None, "unknown", None]


def test_a_fault_never_fails_a_commit(recording: World, me: Agent) -> None:
    (recording.repo / ".git/refs/notes").mkdir()
    (recording.repo / ".git/refs/notes/agent-trace.lock").touch()
    me.edit(FILE, "beta", "MINE")
    assert recording.ground.swarm("commit", "-m", "mine", "--as", me.id).code == 0
    assert not recording.git("for-each-ref", REF)
    (fault,) = fault_lines()
    assert fault["runtime"] == "authorship"
    os.remove(fault_log())
