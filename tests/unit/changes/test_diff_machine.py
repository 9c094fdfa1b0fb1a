"""Sessions and a person that change files in any order: the patches by author are git's diff, parted.

All patches together lead from the last commit to the work tree, byte for byte. A piece is in the patch of each of its
possible authors and in no other one; the pieces of all authors together are all pieces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.checkouts import ALONE, AMPLE
from support.sessions import ready_store
from support.traced import Player, checkout, git

from swarm_hook_core import budget, traces
from swarm_hook_core.shell import walk
from swarm_hook_core.traces import committed, journal, meetings, seen, sweeps
from swarm_mcp.changes.patch import patch_of, result_of
from swarm_mcp.changes.uncommitted import uncommitted

pytestmark = pytest.mark.slow

FILES = ("notes.md", "sub/deep.md", "new.md", 'a "b"\t.md')
TEXTS = ("x\n", "beta\n", "crlf\r\n", "a\rb\n", "", "one\ntwo\n", "no end")
WAYS = ("insert", "replace", "remove", "append", "overwrite", "delete", "mode", "rename", "commit", "stage")
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # 0 for the person, else a session
        st.sampled_from(FILES),
        st.sampled_from(WAYS),
        st.integers(0, 5),
        st.sampled_from(TEXTS),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(steps=STEPS)
def test_the_patches_by_author_are_git_s_diff_parted(steps: list[tuple[int, str, str, int, str]]) -> None:
    base = Path(tempfile.mkdtemp()).resolve()
    given_ = {"SWARM_STATE_DIR": base / "state", "SWARM_DB_PATH": base / "swarm.db", "HOME": base}
    patches = [
        mock.patch.dict(os.environ, {name: str(value) for name, value in given_.items()}),
        mock.patch.dict(os.environ, ALONE),
        mock.patch.object(journal, "SLACK_NS", 0),
        mock.patch.object(seen, "APART_NS", 0),
        mock.patch.object(traces, "OWN_NS", 0),
        mock.patch.object(meetings, "WAIT_SECONDS", 0),
        mock.patch.object(budget, "SECONDS", AMPLE),
        mock.patch.object(walk, "SECONDS", AMPLE),
        mock.patch.object(walk, "SECONDS_TO_PARSE", AMPLE),
        mock.patch.object(sweeps, "SECONDS", AMPLE),
        mock.patch.object(committed, "SECONDS", AMPLE),
    ]
    for patch in patches:
        patch.start()
    try:
        ready_store()
        work = checkout(base / "work", *FILES[:2])
        players = [Player("codex", work), Player("claude-code", work)]
        for step in steps:
            _play(work, players, *step)
        _holds(base, work)
    finally:
        for patch in reversed(patches):
            patch.stop()
        shutil.rmtree(base)


def _play(work: Path, players: list[Player], who: int, name: str, way: str, place: int, text: str) -> None:
    """Let the person or a session make one change; a session's call is checked first."""
    path = work / name
    if way == "commit":
        git(work, "add", "-A")
        git(work, "commit", "-q", "--allow-empty", "-m", "more")
        return
    if way == "stage":
        git(work, "add", "-A")
        return
    if who:
        player = players[who - 1]
        tool, given_ = "Edit", {"file_path": str(path), "old_string": "a", "new_string": "b"}
        if player.runtime == "codex":
            tool, given_ = (
                "apply_patch",
                {"command": f"*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch"},
            )
        player.check(tool, given_)
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    at = place % (len(lines) + 1)
    data = text.encode()
    if way == "delete":
        path.unlink(missing_ok=True)
    elif way == "mode" and path.exists():
        path.chmod(0o755 if place % 2 else 0o644)
    elif way == "rename" and path.exists():
        path.rename(work / "moved.md")
    elif way in ("insert", "replace", "remove", "append", "overwrite"):
        if way == "append":
            lines.append(data)
        elif way == "overwrite":
            lines = [data]
        else:
            lines[at : at + (way != "insert")] = [] if way == "remove" else [data]
        path.write_bytes(b"".join(lines))


def _holds(base: Path, work: Path) -> None:
    files = uncommitted(str(work))
    everything = b"".join(patch_of(one, one.pieces, lambda authors: "x") for one in files)
    assert _files(_applied(base, work, everything)) == _files(work)
    for one in files:
        sessions = {session for piece in one.pieces for session in piece.sessions}
        parts = {session: [piece for piece in one.pieces if session in piece.sessions] for session in sessions}
        for piece in one.pieces:
            assert piece.authors and sum(piece in part for part in parts.values()) == len(piece.sessions)
            assert piece.is_ambiguous is (len(piece.sessions) > 1)
        together = [piece for piece in one.pieces if any(piece in part for part in parts.values())]
        assert result_of(one, together) == (b"" if not one.file.new_mode else Path(one.file.path).read_bytes())
        for part in parts.values():
            patch = patch_of(one, part, lambda authors: "x", with_whole=not one.has_new_mode)
            clean = _applied(base, work, patch) / one.file.name
            assert result_of(one, part) == (clean.read_bytes() if clean.exists() else b"")


def _applied(base: Path, work: Path, patch: bytes) -> Path:
    """Return a clean checkout of the last commit with `patch` applied."""
    clean = base / "clean"
    if clean.exists():
        git(clean, "reset", "-q", "--hard")
        git(clean, "clean", "-qfd")
        git(clean, "pull", "-q")
    else:
        git(base, "clone", "-q", str(work), str(clean))
    if patch:
        done = subprocess.run(["git", "apply", "-"], cwd=clean, input=patch, capture_output=True)
        assert done.returncode == 0, (done.stderr, patch)
    return clean


def _files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
