"""Sessions and a person that change files in any order: the patches by author are git's diff, parted.

All patches together lead from the last commit to the work tree, byte for byte. A piece is in the patch of each of its
possible authors and in no other one; the pieces of all authors together are all pieces.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.apart import moments_apart
from support.traced import Player, checkout, git
from support.world import hunks_of, patch

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


@settings(
    max_examples=int(os.environ.get("SWARM_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(steps=STEPS)
def test_the_patches_by_author_are_git_s_diff_parted(steps: list[tuple[int, str, str, int, str]]) -> None:
    with moments_apart() as base:
        work = checkout(base / "work", *FILES[:2])
        players = [Player("codex", work), Player("claude-code", work)]
        for step in steps:
            _play(work, players, *step)
        _holds(base, work)


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
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    at = place % (len(lines) + 1)
    data = text.encode()
    if way == "append":
        lines.append(data)
    elif way == "overwrite":
        lines = [data]
    elif way in ("insert", "replace", "remove"):
        lines[at : at + (way != "insert")] = [] if way == "remove" else [data]
    if who:
        _ask(players[who - 1], path, way, b"".join(lines))
    if way == "delete":
        path.unlink(missing_ok=True)
    elif way == "mode" and path.exists():
        path.chmod(0o755 if place % 2 else 0o644)
    elif way == "rename" and path.exists():
        path.rename(work / "moved.md")
    elif way in ("insert", "replace", "remove", "append", "overwrite"):
        path.write_bytes(b"".join(lines))


def _ask(player: Player, path: Path, way: str, after: bytes) -> None:
    """Ask for the session's call, with its real input."""
    name = path.relative_to(player.folder).as_posix()
    if way == "mode":
        player.check("Bash", {"command": f"chmod +x {shlex.quote(name)}"})
    elif way == "delete" or (way == "rename" and player.runtime == "claude-code"):
        command = f"rm {shlex.quote(name)}" if way == "delete" else f"mv {shlex.quote(name)} moved.md"
        player.check("Bash", {"command": command})
    elif way == "rename":
        player.check("apply_patch", patch(f"*** Update File: {name}\n*** Move to: moved.md\n@@\n"))
    elif player.runtime == "claude-code":
        player.check("Write", {"file_path": str(path), "content": after.decode()})
    else:
        before = path.read_bytes().decode() if path.exists() else ""
        body = f"*** Update File: {name}\n{hunks_of(str(path), before, after.decode())}"
        if not before:
            body = f"*** Add File: {name}\n" + "".join(f"+{line}\n" for line in after.decode().split("\n")[:-1])
        player.check("apply_patch", patch(body))


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
            made = patch_of(one, part, lambda authors: "x", with_whole=not one.has_new_mode)
            clean = _applied(base, work, made) / one.file.name
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
