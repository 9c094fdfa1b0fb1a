"""A symbolic link that has taken the place of a folder, or takes it between two steps: nothing behind it is touched.

What lies behind the link has the very names and contents of the checkout, so that only the path can tell them apart.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from support.commits import git, hook, of
from support.files import folder_at, text_at
from support.swapped import Swap
from support.traced import lines_of
from support.world import TEXT, Agent, World

from swarm_hook_core import paths
from swarm_hook_core.paths import BeyondLink
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import state_of
from swarm_hook_core.traces.versions import keep
from swarm_hook_core.traces.versions.stored import Kept, contents_below
from swarm_hook_core.watching.records import read_resolved
from swarm_mcp.changes.commit.git import Git
from swarm_mcp.changes.commit.git import bring as bring_there
from swarm_mcp.changes.writing import LINK, ChangedMeanwhile, FileUndo, Record, write
from swarm_mcp.errors import SwarmError
from swarm_mcp.locking.restore import Restoring

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]
SECRET = "a secret\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "notes.md", "sub/deep.md", "sub/er/file.md")


@pytest.fixture
def me(world: World) -> Agent:
    return world.session("codex")


def link_in(world: World, **files: str) -> Swap:
    """Put a link in the place of ``sub``; it leads out of the checkout, to a folder with these files."""
    outside = folder_at(world.folder / "outside")
    for name, text in files.items():
        (outside / name.replace("_", ".")).write_text(text)
    swap = Swap(world.repo / "sub", outside)
    swap.make()
    return swap


def contents_kept(world: World) -> list[bytes]:
    return [one.content() for found in contents_below(str(world.folder)).values() for one in found]


# ------------------------------------------------------------------------------------------- a link that is there


def test_an_undo_writes_nothing_behind_it(world: World, me: Agent) -> None:
    me.edit("sub/deep.md", "beta", "MINE")
    me.edit("notes.md", "beta", "MINE")
    swap = link_in(world, deep_md=world.read("sub/deep.md"))
    done = world.swarm("undo", "--session", me.session_id)
    assert done.code == 1 and "sub/deep.md: it is beyond a symbolic link" in done.json["error"], done.out
    assert swap.seen() == swap.before and "MINE" in world.read("notes.md")
    done = world.swarm("undo", "--session", me.session_id, "--partial")
    assert done.code == 0 and swap.seen() == swap.before and world.read("notes.md") == TEXT


def test_an_undo_removes_nothing_behind_it(world: World, me: Agent) -> None:
    me.write("sub/new.md", "made\n")
    me.write("own.md", "made\n")
    swap = link_in(world, new_md="made\n")
    done = world.swarm("undo", "--session", me.session_id)
    assert done.code == 0, done.out
    assert swap.seen() == swap.before and not (world.repo / "own.md").exists()


def test_an_undo_makes_no_folder_behind_it(world: World, me: Agent) -> None:
    me.bash("rm sub/er/file.md")
    swap = link_in(world)
    done = world.swarm("undo", "--session", me.session_id)
    assert done.code == 1 and "sub/er/file.md: it is beyond a symbolic link" in done.json["error"], done.out
    assert swap.seen() == swap.before


def test_an_undo_is_taken_back_in_the_checkout_alone(world: World, me: Agent) -> None:
    me.edit("sub/deep.md", "beta", "MINE")
    undone = world.swarm("undo", "--session", me.session_id).json
    swap = link_in(world, deep_md=TEXT)
    done = world.swarm("undo", "--undo", undone["id"])
    assert done.code == 1 and "beyond a symbolic link" in done.json["error"], done.out
    assert swap.seen() == swap.before


def test_an_undo_of_a_link_in_a_folder_removes_nothing_behind_it(world: World, me: Agent) -> None:
    me.bash("ln -s nowhere sub/link")
    swap = link_in(world)
    os.symlink("nowhere", swap.outside / "link")
    world.swarm("undo", "--session", me.session_id)
    assert os.readlink(swap.outside / "link") == "nowhere"


def test_an_undo_never_follows_a_link_in_the_place_of_the_file(world: World, me: Agent) -> None:
    me.edit("notes.md", "beta", "MINE")
    outside = text_at(world.folder / "outside.md", world.read("notes.md"))
    (world.repo / "notes.md").unlink()
    (world.repo / "notes.md").symlink_to(outside)
    world.swarm("undo", "--session", me.session_id, "--partial")
    assert outside.read_text() == "alpha\nMINE\ngamma\n"


def test_nothing_behind_it_is_kept_or_shown(world: World, me: Agent) -> None:
    peer = world.session("claude-code")
    peer.edit("notes.md")
    me.edit("sub/deep.md", "beta", "MINE")
    link_in(world, deep_md=SECRET)
    peer.bash("python3 -c pass")
    me.bash("python3 -c pass")
    me.turn_ends()
    me.edit("notes.md", "alpha", "MINE")
    for verb in ("diff", "blame"):
        done = world.swarm(verb, *(["sub/deep.md"] if verb == "blame" else []))
        assert "secret" not in done.out, verb
    assert world.swarm("commit", "-m", "mine", "notes.md", as_=me).code == 0
    assert SECRET.encode() not in contents_kept(world) and "secret" not in world.git("show", "HEAD")


def test_a_link_above_the_checkout_is_no_matter(world: World, me: Agent) -> None:
    (world.folder / "there").symlink_to(world.repo)
    me.edit("sub/deep.md", "beta", "MINE")
    done = world.swarm("undo", "--session", me.session_id, cwd=world.folder / "there" / "sub")
    assert done.code == 0 and world.read("sub/deep.md") == TEXT, done.out
    done = world.swarm("restore", "deep.md", cwd=world.folder / "there" / "sub")
    assert done.code == 0 and "MINE" in world.read("sub/deep.md"), done.out


def test_a_restore_through_a_link_of_the_checkout_is_one_of_the_file_itself(world: World, me: Agent) -> None:
    (world.repo / "link").symlink_to("sub")
    me.edit("sub/deep.md", "beta", "MINE")
    done = world.swarm("restore", "link/deep.md")
    assert done.code == 0 and world.read("sub/deep.md") == TEXT, done.out


# ------------------------------------------------------------------------------------------- a link that comes meanwhile


def race(world: World, **files: str) -> Swap:
    outside = world.folder / "outside"
    (outside / "er").mkdir(parents=True)
    for name, text in files.items():
        (outside / name.replace("_", ".")).write_text(text)
    return Swap(world.repo / "sub", outside)


@pytest.mark.parametrize("deed", ["changed", "removed", "made", "made with its folder", "made a link"])
@pytest.mark.sampled
def test_an_undo_while_it_comes(world: World, deed: str) -> None:
    swap = race(world, deep_md=TEXT)
    name = {"made": "sub/new.md", "made with its folder": "sub/in/new.md", "made a link": "sub/link"}.get(deed)
    path = world.repo / (name or "sub/deep.md")

    def undo() -> None:
        path.unlink(missing_ok=True)
        if not name:
            path.write_text(TEXT)
        record = Record("0123abcd", ("codex", "theirs"), ("", ""))
        one = FileUndo(str(path))
        one.before, one.after = None if name else TEXT.encode(), None if deed == "removed" else b"other\n"
        one.mode_before = 0 if name else path.stat().st_mode & 0o777
        one.mode_after = LINK if deed == "made a link" else 0o644 * (one.after is not None)
        one.state = state_of(one.path)
        record.files.append(one)
        with contextlib.suppress(OSError, ChangedMeanwhile):
            write(record)

    for number in swap.before_each_call(undo):
        assert swap.seen() == swap.before, f"the link came before call {number}"
    assert number > 20, "each step has been met"


def test_a_restore_while_it_comes(world: World, me: Agent) -> None:
    me.edit("sub/deep.md", "beta", "MINE")
    mine = world.read("sub/deep.md")
    swap = race(world, deep_md=SECRET)
    kept = Path(state_dir(), "kept")
    shutil.copytree(kept, world.folder / "kept")

    def restore() -> None:
        (world.repo / "sub/deep.md").write_text(mine)
        with world.store() as store, contextlib.suppress(SwarmError):
            restoring = Restoring(store, None, str(world.repo / "sub/deep.md"))
            restoring.restore(restoring.choose(""), force=False, dry_run=False)

    for number in swap.before_each_call(restore):
        assert swap.seen() == swap.before, f"the link came before call {number}"
        assert SECRET.encode() not in contents_kept(world)
        world.sql("DELETE FROM swarm_alterations")  # what a restore leaves would give the next one more calls
        shutil.rmtree(kept)
        shutil.copytree(world.folder / "kept", kept)
    assert number > 20, "each step has been met"


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_commit_s_rewritten_file_while_it_comes(world: World, is_removed: bool) -> None:
    git_there = Git(str(world.repo))
    old = git_there.entries(["sub/deep.md"])["sub/deep.md"]
    new = ("100644", git_there.ask("hash-object", "-w", "--stdin", data=b"neat\n").strip())
    swap = race(world, deep_md=TEXT)
    change = {"sub/deep.md": (old, ("000000", "0" * 40) if is_removed else new)}

    def bring() -> None:
        (world.repo / "sub/deep.md").write_text(TEXT)
        bring_there(git_there, change)

    for number in swap.before_each_call(bring):
        assert swap.seen() == swap.before, f"the link came before call {number}"
    assert number > 5


def test_a_version_while_it_comes(world: World, tmp_path: Path) -> None:
    swap = race(world, deep_md=SECRET)
    source, targets = world.repo / "sub/deep.md", tmp_path / "targets"
    targets.mkdir()
    read: list[bytes] = []

    def look() -> None:
        keep(str(source), str(targets / str(len(os.listdir(targets)))), 10**18)
        for reads in (lambda: read_resolved(str(source))[1], lambda: Kept().keep(str(source)) and b""):
            with contextlib.suppress(OSError):
                read.append(reads())

    for _number in swap.before_each_call(look):
        assert SECRET.encode() not in read
    # One without a mode says that there was no file.
    kept = [path.read_bytes() for path in targets.iterdir() if path.stat().st_mode & 0o400]
    assert TEXT.encode() in kept and SECRET.encode() not in kept


def test_lines_behind_it_are_no_lines_of_the_file(world: World) -> None:
    link_in(world, deep_md=SECRET)
    assert lines_of(str(world.repo / "sub/deep.md")) == []
    with pytest.raises(BeyondLink, match="beyond a symbolic link"):
        read_resolved(str(world.repo / "sub/deep.md"))


def test_a_hook_s_rewritten_file_is_not_written_behind_it(world: World, me: Agent) -> None:
    peer = world.session("claude-code")
    peer.edit("notes.md")
    me.edit("sub/deep.md", "beta", "MINE")
    outside = folder_at(world.folder / "outside")
    (outside / "deep.md").write_text(world.read("sub/deep.md"))
    swap = f"mv {world.repo}/sub {world.folder}/aside; ln -s {outside} {world.repo}/sub"
    hook(world.repo, "pre-commit", f"sed -i.bak s/MINE/NEAT/ sub/deep.md; rm sub/*.bak; git add -A; {swap}")
    of(me, world.repo).make()
    assert git(world.repo, "show", "HEAD:sub/deep.md") == "alpha\nNEAT\ngamma\n"
    assert os.listdir(outside) == ["deep.md"] and "MINE" in (outside / "deep.md").read_text()


def test_a_system_without_open_folders_looks_first(world: World, me: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_HAS_HANDLES", False)
    me.bash("rm sub/er/file.md")
    (world.repo / "sub/er").rmdir()
    me.edit("sub/deep.md", "beta", "MINE")
    undone = world.swarm("undo", "--session", me.session_id).json
    assert len(undone["files"]) == 2 and world.read("sub/er/file.md") == world.read("sub/deep.md") == TEXT
    swap = link_in(world, deep_md=TEXT)
    done = world.swarm("undo", "--undo", undone["id"])
    assert done.code == 1 and "beyond a symbolic link" in done.json["error"] and swap.seen() == swap.before, done.out
