"""``swarm-mcp diff``: the patch of all authors is git's own, and that of one author stands alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.world import World, git

pytestmark = pytest.mark.slow

ORDINARY = "notes.md"


def applied(world: World, patch: bytes, tree: Path | None = None) -> Path:
    """Return a clean checkout of the last commit with the patch applied."""
    source, clean = tree or world.repo, world.folder / "clean"
    shutil.rmtree(clean, ignore_errors=True)
    git(world.folder, "clone", "-q", "-n", str(source), str(clean))
    for name in ("core.autocrlf",):
        value = subprocess.run(["git", "config", name], cwd=source, capture_output=True, text=True).stdout.strip()
        if value:
            git(clean, "config", name, value)
    git(clean, "checkout", "-q", git(source, "rev-parse", "HEAD").strip())
    if patch:
        done = subprocess.run(["git", "apply", "-"], cwd=clean, input=patch, capture_output=True)
        assert done.returncode == 0, (done.stderr, patch)
    return clean


def contents(folder: Path) -> dict[str, tuple[bytes, bool | None]]:
    """Return ``{name: (content, may be run)}`` of the files below `folder`; of a link ``(target, None)``."""
    found: dict[str, tuple[bytes, bool | None]] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_symlink():
            found[str(name)] = (os.fsencode(os.readlink(path)), None)
        elif path.is_file() and ".git" not in name.parts:
            found[str(name)] = (path.read_bytes(), os.access(path, os.X_OK))
    return found


def patch_of(world: World, *argv: str, cwd: Path | None = None) -> bytes:
    done = world.ground.swarm("diff", *argv, cwd=cwd)
    assert done.code == 0, done.err
    return done.out.encode("utf-8", "surrogateescape")


def crlf_in_the_work_tree(world: World) -> None:
    world.git("config", "core.autocrlf", "true")
    (world.repo / ORDINARY).write_bytes(b"alpha\r\nMINE\r\ngamma\r\n")


def crlf_everywhere(world: World) -> None:
    (world.repo / ORDINARY).write_bytes(b"alpha\r\nbeta\r\n")
    world.commit()
    (world.repo / ORDINARY).write_bytes(b"alpha\r\nbeta\r\nlast")


def line_ends_converted_by_hand(world: World) -> None:
    (world.repo / ORDINARY).write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")


def committed_with_crlf_then_autocrlf(world: World) -> None:
    crlf_everywhere(world)
    world.git("config", "core.autocrlf", "true")


def no_newline_at_the_end(world: World) -> None:
    world.write(ORDINARY, "alpha\nbeta\ngamma")
    world.write("other.md", "x")
    world.commit()
    world.write(ORDINARY, "alpha\nbeta\ngamma\ndelta")
    world.write("other.md", "x\n")


def a_file_renamed(world: World) -> None:
    (world.repo / ORDINARY).rename(world.repo / "renamed.md")


def a_mode_alone(world: World) -> None:
    (world.repo / ORDINARY).chmod(0o755)


def names_to_quote(world: World) -> None:
    for number, name in enumerate(['with "quotes"', "tab\there", "back\\slash", "blank and é", "line\nbreak"]):
        (world.repo / name).write_text(f"{number}\n")


def new_and_gone(world: World) -> None:
    world.write("new.md", "one\ntwo")
    world.write("empty.md", "")
    (world.repo / "other.md").unlink()


def staged_and_changed_again(world: World) -> None:
    world.write("new.md", "staged\n")
    world.write(ORDINARY, "staged\n")
    world.git("add", "-A")
    world.write("new.md", "later\n")
    world.git("rm", "-q", "--cached", "other.md")


def before_the_first_commit(world: World) -> None:
    world.write(ORDINARY, "alpha\n")
    world.git("update-ref", "-d", "HEAD")


def detached(world: World) -> None:
    world.git("checkout", "-q", "--detach")
    world.write(ORDINARY, "alpha\nX\n")


def sparse(world: World) -> None:
    world.git("sparse-checkout", "set", "--no-cone", "/notes.md")
    world.write(ORDINARY, "alpha\nX\n")


def many_changes_close_together(world: World) -> None:
    lines = [f"{number}\n" for number in range(60)]
    world.write(ORDINARY, "".join(lines))
    world.commit()
    for number in (0, 2, 5, 9, 10, 20, 27, 35, 59):
        lines[number] = f"<{number}>\nand more\n"
    del lines[40:43]
    world.write(ORDINARY, "".join(lines))


def binary_files(world: World) -> None:
    (world.repo / "old.bin").write_bytes(bytes(range(256)) * 9)
    (world.repo / "gone.bin").write_bytes(b"a\0b")
    (world.repo / "mode.bin").write_bytes(b"a\0b")
    world.commit()
    (world.repo / "old.bin").write_bytes(b"x\0" * 40)
    (world.repo / "new.bin").write_bytes(b"\0")
    (world.repo / ORDINARY).write_bytes(b"text\0no more")
    (world.repo / "gone.bin").unlink()
    (world.repo / "mode.bin").chmod(0o755)


def links(world: World) -> None:
    for name in ("kept", "gone", "file", "with blank"):
        (world.repo / name).symlink_to(ORDINARY)
    world.commit()
    for name in ("kept", "gone", "file", ORDINARY, "with blank"):
        (world.repo / name).unlink()
    (world.repo / "kept").symlink_to("nowhere")
    (world.repo / "with blank").symlink_to("a b")
    (world.repo / "file").write_text("now a file\n")
    (world.repo / ORDINARY).symlink_to("other.md")
    (world.repo / "new").symlink_to("other.md")


def large_files(world: World) -> None:
    (world.repo / "old.txt").write_bytes(b"line\n" * 300_000)
    world.commit()
    (world.repo / "old.txt").write_bytes(b"other\n" * 300_000)
    (world.repo / "new.txt").write_bytes(b"new\r\n" * 300_000)


REPOSITORIES = [
    crlf_in_the_work_tree, crlf_everywhere, line_ends_converted_by_hand, committed_with_crlf_then_autocrlf,
    no_newline_at_the_end, a_file_renamed, a_mode_alone, names_to_quote, new_and_gone, staged_and_changed_again, detached,
    many_changes_close_together, binary_files, links, large_files,
]  # fmt: skip


@pytest.mark.parametrize("made", REPOSITORIES, ids=lambda made: made.__name__)
@pytest.mark.sampled
def test_the_patch_leads_from_the_last_commit_to_the_work_tree(made, world: World) -> None:
    made(world)
    found, expected = contents(applied(world, patch_of(world))), contents(world.repo)
    if "autocrlf" in (world.repo / ".git" / "config").read_text():  # git has checked out the other files so
        found, expected = {ORDINARY: found[ORDINARY]}, {ORDINARY: expected[ORDINARY]}
    assert found == expected


def test_a_sparse_checkout_has_no_removed_files(world: World) -> None:
    sparse(world)
    (file,) = world.swarm("diff").json["files"]
    assert file["file"] == str(world.repo / ORDINARY)


def test_before_the_first_commit_all_is_new(world: World) -> None:
    before_the_first_commit(world)
    files = world.swarm("diff").json["files"]
    assert [os.path.basename(one["file"]) for one in files] == ["notes.md", "other.md", "deep.md"]
    assert not any(one["old_mode"] for one in files)


def test_a_linked_work_tree_is_one_of_its_own(world: World) -> None:
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", str(linked))
    (linked / ORDINARY).write_text("linked\n")
    assert patch_of(world) == b""
    assert contents(applied(world, patch_of(world, cwd=linked))) == contents(linked)


def binary(world: World) -> Path:
    path = world.repo / ORDINARY
    path.write_bytes(b"a\0b")
    return path


def link(world: World) -> Path:
    path = world.repo / "link"
    path.symlink_to(ORDINARY)
    return path


def large(world: World) -> Path:
    path = world.repo / ORDINARY
    path.write_bytes(b"x\n" * (1 << 20))
    return path


def lfs_pointer(world: World) -> Path:
    world.write(ORDINARY, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    world.commit()
    return world.write(ORDINARY, "content\n")


def lfs_filter(world: World) -> Path:
    world.write(".gitattributes", "*.bin filter=lfs\n")
    world.commit()
    return world.write("a.bin", "content\n")


def submodule(world: World) -> Path:
    git(world.folder, "clone", "-q", str(world.repo), str(world.repo / "inner"))
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.repo), "inner")
    world.commit()
    (world.repo / "inner" / ORDINARY).write_text("x\n")
    git(world.repo / "inner", "commit", "-qam", "x")
    return world.repo / "inner"


WITHOUT_LINES = {
    binary: "binary", link: "a symbolic link", large: "larger than 1024 KiB", submodule: "a submodule",
    lfs_pointer: "a git-lfs pointer in the last commit", lfs_filter: "kept by git-lfs",
}  # fmt: skip


@pytest.mark.parametrize("made", WITHOUT_LINES, ids=lambda made: made.__name__)
@pytest.mark.sampled
def test_a_file_without_lines_is_named(made, world: World) -> None:
    path = made(world)
    (file,) = world.swarm("diff").json["files"]
    assert (file["file"], file["reason"]) == (str(path), WITHOUT_LINES[made])
    assert [one["name"] for one in file["authors"]] == ["a person"]
    assert patch_of(world).decode().startswith(f"# {path.name}: {WITHOUT_LINES[made]}, ")
    assert "a person" in world.ground.swarm("diff", "--stat").out


def test_a_binary_file_names_the_sessions_that_may_have_written_it(world: World) -> None:
    me = world.session()
    assert not me.write("data.bin", "a\0b").denied
    (file,) = world.swarm("diff").json["files"]
    assert [one["session_id"] for one in file["authors"]] == [me.session_id, None]


def test_outside_of_a_repository_it_says_so(world: World) -> None:
    for argv in (["diff"], ["blame", "plain.txt"]):
        (world.folder / "plain.txt").write_text("x\n")
        done = world.ground.swarm(*argv, cwd=world.folder)
        assert done.code == 1 and "is in no git repository" in done.err and done.err.count("\n") == 1


# ------------------------------------------------------------------------------------------- by author


def test_each_author_s_patch_stands_alone(world: World) -> None:
    world.write(ORDINARY, "alpha\nbeta\nPERSON\n")
    one, two = world.session("codex"), world.session()
    one.edit(ORDINARY, "alpha", "ONE")
    two.edit(ORDINARY, "beta", "TWO\nMORE")
    two.write("new.md", "two's\n")
    expected = {
        ("--session", one.id): "ONE\nbeta\ngamma\n",
        ("--session", two.session_id): "alpha\nTWO\nMORE\ngamma\n",
        ("--person",): "alpha\nbeta\nPERSON\n",
        ("--mine", "--as", one.id): "ONE\nbeta\ngamma\n",
        ("--person", "--session", two.id): "alpha\nTWO\nMORE\nPERSON\n",
        (): "ONE\nTWO\nMORE\nPERSON\n",
    }
    for argv, text in expected.items():
        clean = applied(world, patch_of(world, *argv))
        assert (clean / ORDINARY).read_text() == text, argv
        assert (clean / "new.md").exists() is (two.id in argv or two.session_id in argv or not argv), argv


BRANCHES = "if x:\n    g()\nelse:\n    h()\nend()\n"


def test_a_line_beside_another_s_removal_keeps_its_side(world: World) -> None:
    world.write(ORDINARY, BRANCHES)
    world.commit()
    one, two, three = world.session("codex"), world.session(), world.session("codex")
    one.edit(ORDINARY, "    g()\n", "    g()\n    log(x)\n")
    two.edit(ORDINARY, "else:\n    h()\n", "")
    three.edit(ORDINARY, "end()\n", "end()\nTHREE\n")
    expected = {
        (one.id,): "if x:\n    g()\n    log(x)\nelse:\n    h()\nend()\n",
        (two.id,): "if x:\n    g()\nend()\n",
        (one.id, two.id): "if x:\n    g()\n    log(x)\nend()\n",
        (one.id, three.id): "if x:\n    g()\n    log(x)\nelse:\n    h()\nend()\nTHREE\n",
    }
    for sessions, text in expected.items():
        words = [word for session in sessions for word in ("--session", session)]
        assert (applied(world, patch_of(world, *words)) / ORDINARY).read_text() == text, sessions
    assert world.swarm("commit", "-m", "one", "--as", one.id).code == 0
    assert world.git("show", f"HEAD:{ORDINARY}") == expected[one.id,]


def test_lines_without_a_place_of_their_own_are_named(world: World) -> None:
    world.write(ORDINARY, BRANCHES)
    world.commit()
    one, two = world.session("codex"), world.session()
    two.edit(ORDINARY, "else:\n    h()\n", "")
    one.edit(ORDINARY, "    g()\n", "    g()\n    log(x)\n")  # nothing tells if that is before `else` or behind it
    for session in (one, two):
        (said,) = patch_of(world, "--session", session.id).decode().splitlines()
        assert said.startswith(f"# {ORDINARY} line 3: left out, as the order"), said
        assert one.id[:8] in said and two.id[:8] in said, said
    clean = applied(world, patch_of(world, "--session", one.id, "--session", two.id))
    assert (clean / ORDINARY).read_text() == world.read(ORDINARY)
    (file,) = world.swarm("diff", "--session", one.id).json["files"]
    assert [hunk["tied"] for hunk in file["hunks"]] == [False]


def test_a_hunk_is_headed_by_its_authors(world: World) -> None:
    world.write(ORDINARY, "".join(f"{number}\n" for number in range(20)))
    world.commit()
    world.write(ORDINARY, world.read(ORDINARY).replace("17\n", "PERSON\n").replace("4\n", "BESIDE\n", 1))
    me = world.session("codex")
    me.edit(ORDINARY, "3\n", "MINE\n")
    me.edit(ORDINARY, "10\n", "MORE\n")
    name = f"codex {me.id[:8]}"
    heads = [line.rpartition("@@ ")[2] for line in patch_of(world).decode().split("\n") if line.startswith("@@")]
    assert heads == [f"-4 {name}; +4 {name}; -5 a person; +5 a person", name, "a person"]
    stat = world.ground.swarm("diff", "--stat").out.splitlines()
    assert stat == [f"a person  {ORDINARY}  +2  -2", f"{name}  {ORDINARY}  +2  -2"]


def test_a_line_that_two_may_have_written_is_in_the_patches_of_both(world: World) -> None:
    one, two = world.session("codex"), world.session("codex")
    two.edit("other.md", "alpha", "x")
    one.ask(
        "apply_patch", {"command": f"*** Begin Patch\n*** Update File: {ORDINARY}\n@@\n-gamma\n+BOTH\n*** End Patch"}
    )
    two.edit(ORDINARY, "gamma", "BOTH")  # while the other's write is still to come
    for session in (one, two):
        patch = patch_of(world, "--session", session.id, ORDINARY).decode()
        assert "+BOTH\n" in patch and " or codex " in patch
    (file,) = world.swarm("diff", ORDINARY).json["files"]
    assert [hunk["ambiguous"] for hunk in file["hunks"]] == [True]


def test_a_session_that_has_ended_is_named(world: World) -> None:
    me = world.session("codex")
    me.edit(ORDINARY, "alpha", "MINE")
    with world.store() as store:
        store.instances.remove(me.id)
    for reference in (me.session_id, me.session_id[:8], f"codex {me.session_id[:8]}"):
        assert f"@@ codex {me.session_id[:8]}" in patch_of(world, "--session", reference).decode()
    done = world.ground.swarm("diff", "--session", "nobody")
    assert done.code == 1 and "no session of this scope has 'nobody'" in done.err


def test_lines_of_another_identity_are_not_named(world: World) -> None:
    me = world.session("codex", "identity:work codex")
    me.edit(ORDINARY, "alpha", "MINE")
    other = world.session("codex", "identity:home codex")
    (file,) = world.swarm("diff", as_=other).json["files"]
    assert file["authors"] == [{"name": "a session of another identity", "hidden": True}]


def test_files_and_folders_limit_it(world: World) -> None:
    for name in (ORDINARY, "sub/deep.md", "sub/new.md"):
        world.write(name, "x\n")
    for argv, cwd, expected in (
        (["sub"], None, ["sub/deep.md", "sub/new.md"]),
        (["deep.md"], world.repo / "sub", ["sub/deep.md"]),
        (["."], world.repo / "sub", ["sub/deep.md", "sub/new.md"]),
        ([ORDINARY, "sub/new.md"], None, [ORDINARY, "sub/new.md"]),
    ):
        files = world.swarm("diff", *argv, cwd=cwd).json["files"]
        assert [os.path.relpath(one["file"], world.repo) for one in files] == expected
    assert world.swarm("diff", str(world.folder)).code == 1
