"""`swarm-mcp commit` in repositories of all kinds: each with lines of two sessions in one file, and with hooks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commits import commits, git, refusal
from support.traced import Player, checkout
from support.world import file_times_catch_up, patch, ready_store, some_time_passes

pytestmark = pytest.mark.slow

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md", "sub/deep.md")


def _linked(work: Path) -> Path:
    git(work, "worktree", "add", "-q", str(work.parent / "linked"), "-b", "side")
    return work.parent / "linked"


def _linked_with_settings(work: Path) -> Path:
    git(work, "config", "extensions.worktreeConfig", "true")
    linked = _linked(work)
    git(linked, "config", "--worktree", "user.name", "linked")
    git(linked, "config", "--worktree", "core.worktree", str(linked))
    return linked


def _inside_a_submodule(work: Path) -> Path:
    upper = checkout(work.parent / "upper", "top.md")
    git(upper, *ALLOW, "submodule", "--quiet", "add", str(work), "inner")
    git(upper, "commit", "-qm", "inner")
    return upper / "inner"


def _beside_a_submodule(work: Path) -> Path:
    inner = checkout(work.parent / "inner", "inner.md")
    git(work, *ALLOW, "submodule", "--quiet", "add", str(inner), "inner")
    git(work, "commit", "-qm", "inner")
    (work / "inner/inner.md").write_text("x\n")
    git(work / "inner", "commit", "-qam", "x")
    return work


def _sparse(work: Path) -> Path:
    git(work, "sparse-checkout", "set", "--no-cone", "/notes.md", "/other.md")
    assert not (work / "sub").exists()
    return work


def _detached(work: Path) -> Path:
    git(work, "checkout", "-q", "--detach")
    return work


def _unborn(work: Path) -> Path:
    shutil.rmtree(work / ".git")
    git(work, "init", "-q", "-b", "main")
    return work


def _partial(work: Path) -> Path:
    git(work, "config", "uploadpack.allowFilter", "true")
    git(work.parent, "clone", "-q", "--filter=blob:none", f"file://{work}", "partial")
    return work.parent / "partial"


def _shallow(work: Path) -> Path:
    git(work.parent, "clone", "-q", "--depth=1", f"file://{work}", "shallow")
    return work.parent / "shallow"


def _sha256(work: Path) -> Path:
    git(work.parent, "init", "-q", "--object-format=sha256", "new")
    return checkout(work.parent / "new", "notes.md", "other.md")


def _crlf(work: Path) -> Path:
    git(work, "config", "core.autocrlf", "true")
    for name in ("notes.md", "other.md"):
        (work / name).write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")
    git(work, "add", ".")  # the same to git
    return work


def _crlf_in_git(work: Path) -> Path:
    for name in ("notes.md", "other.md"):
        (work / name).write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")
    git(work, "-c", "core.autocrlf=false", "commit", "-qam", "crlf")
    return work


def _odd_settings(work: Path) -> Path:
    for name, value in (
        ("core.fsmonitor", "true"), ("core.untrackedCache", "true"), ("core.splitIndex", "true"),
        ("core.quotePath", "true"), ("status.relativePaths", "true"), ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"), ("color.ui", "always"), ("status.showUntrackedFiles", "no"),
        ("commit.verbose", "true"), ("diff.external", "false"), ("index.version", "4"), ("core.safecrlf", "true"),
    ):  # fmt: skip
        git(work, "config", name, value)
    return work


def _blank_in_its_name(work: Path) -> Path:
    return work.rename(work.parent / "a 'b' *ü")


KINDS: list[Callable[[Path], Path]] = [
    _linked, _linked_with_settings, _inside_a_submodule, _beside_a_submodule, _sparse, _detached, _unborn, _partial,
    _shallow, _sha256, _crlf, _crlf_in_git, _odd_settings, _blank_in_its_name,
]  # fmt: skip


def _edits(player: Player, old: bytes, new: bytes) -> None:
    """Change notes.md by the client's own tool, with the line ends that it has."""
    path = Path(player.folder, "notes.md")
    lines = "".join(f"+{line}\n" for line in new.decode().split("\n"))
    assert not player.denied("apply_patch", patch(f"*** Update File: notes.md\n@@\n-{old.decode()}\n{lines}"))
    file_times_catch_up()
    end = b"\r\n" if b"\r\n" in path.read_bytes() else b"\n"
    path.write_bytes(path.read_bytes().replace(old, new.replace(b"\n", end), 1))
    some_time_passes()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
@pytest.mark.sampled
def test_lines_of_two_in_one_file(work: Path, kind: Callable[[Path], Path]) -> None:
    there = kind(work).resolve()
    hooks = Path(git(there, "rev-parse", "--path-format=absolute", "--git-path", "hooks").strip())
    hooks.mkdir(exist_ok=True)
    seen = work.parent / "seen"
    (hooks / "pre-commit").write_text(f"#!/bin/sh\ncat notes.md >{seen}\ngit rev-parse --show-toplevel\ngit add -A\n")
    (hooks / "pre-commit").chmod(0o755)
    is_new = kind is _unborn
    before = git(there, "status", "--porcelain").replace("?? ./\n", "")
    peer, me = Player("codex", there), Player("codex", there)
    if is_new:
        me.runs("cat notes.md other.md")
        me.writes("new.md", "alpha\nMINE\n")
        peer.edits("new.md", "alpha\n", "alpha\nPEER\n")
        name, mine = "new.md", "alpha\nMINE\n"
    else:
        _edits(peer, b"beta", b"beta\nPEER")
        _edits(me, b"alpha", b"MINE")
        name, mine = "notes.md", "MINE\nbeta\ngamma\n".replace("\n", "\r\n" if kind is _crlf_in_git else "\n")
    done = commits(me, there)
    assert git(there, "show", f"HEAD:{name}") == mine
    assert git(there, "show", "--format=", "--name-only", "HEAD").split() == [name]
    assert done.branch == git(there, "branch", "--show-current").strip()
    assert git(there, "diff", "--cached", "--name-only") == ""
    if not is_new:
        assert git(there, "-c", "status.showUntrackedFiles=all", "status", "--porcelain") == "".join(
            sorted([*before.splitlines(keepends=True), f" M {name}\n"], key=lambda line: line[3:])
        )
        assert seen.read_bytes().decode() == mine.replace("\n", "\r\n" if kind is _crlf else "\n")
        commits(peer, there)
        assert git(there, "status", "--porcelain") == before


def _lfs(work: Path) -> None:
    if shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    git(work, "lfs", "install", "--local")
    git(work, "lfs", "track", "*.bin")
    (work / "a.bin").write_bytes(b"\0one")
    (work / "b.bin").write_bytes(b"\0two")
    for name in ("a.bin", "b.bin"):  # older than the index, so that git need not compare contents
        os.utime(work / name, (1_700_000_000, 1_700_000_000))
    git(work, "add", ".")
    git(work, "commit", "-qm", "lfs")


def test_files_of_git_lfs(work: Path) -> None:
    _lfs(work)
    peer, me = Player("codex", work), Player("codex", work)
    peer.runs("printf 'peer' > b.bin")
    me.runs("printf 'mine' > a.bin")
    (work / ".git/hooks/pre-commit").write_text("#!/bin/sh\ngit add -A\n")
    (work / ".git/hooks/pre-commit").chmod(0o755)
    commits(me, work)
    assert git(work, "show", "HEAD:a.bin").startswith("version https://git-lfs")
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["a.bin"]
    assert git(work, "status", "--porcelain") == " M b.bin\n" and (work / "b.bin").read_bytes() == b"peer"
    me.runs("cat b.bin")
    me.runs("printf 'both' > b.bin")
    assert "b.bin (kept by git-lfs) (" in refusal(me, work)


def test_a_submodule_is_committed_if_it_is_named(work: Path) -> None:
    _beside_a_submodule(work)
    me = Player("codex", work)
    me.edits("notes.md", "alpha", "MINE")
    assert [one.words for one in commits(me, work).left_out] == ["inner (a submodule: name it to commit it)"]
    commits(me, work, "inner")
    assert git(work, "status", "--porcelain") == ""
    assert "is in another repository" in refusal(me, work, "inner/inner.md")


def test_a_rebase_in_progress(work: Path) -> None:
    git(work, "checkout", "-q", "-b", "side")
    for branch in ("side", "main"):
        git(work, "checkout", "-q", branch)
        (work / "notes.md").write_text(f"{branch}\n")
        git(work, "commit", "-qam", branch)
    git(work, "rebase", "side", fails=True)
    me = Player("codex", work)
    me.edits("other.md", "alpha", "MINE")
    assert "a rebase is in progress" in refusal(me, work)
