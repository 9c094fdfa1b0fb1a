"""``swarm-mcp diff``: the patch of all authors is git's own, and that of one author stands alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.world import World, git, typed

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


CRLF = r"printf 'alpha\r\nbeta\r\n' > notes.md; git commit -qam crlf; printf 'alpha\r\nbeta\r\nlast' > notes.md"
SPARSE = r"git sparse-checkout set --no-cone /notes.md; printf 'alpha\nX\n' > notes.md"
REPOSITORIES = {
    "crlf_in_the_work_tree": r"git config core.autocrlf true; printf 'alpha\r\nMINE\r\ngamma\r\n' > notes.md",
    "crlf_everywhere": CRLF,
    "line_ends_converted_by_hand": r"printf 'alpha\r\nbeta\r\ngamma\r\n' > notes.md",
    "committed_with_crlf_then_autocrlf": f"{CRLF}; git config core.autocrlf true",
    "no_newline_at_the_end": r"""printf 'alpha\nbeta\ngamma' > notes.md; printf x > other.md; git commit -qam one
        printf 'alpha\nbeta\ngamma\ndelta' > notes.md; printf 'x\n' > other.md""",
    "a_file_renamed": "mv notes.md renamed.md",
    "a_mode_alone": "chmod 755 notes.md",
    "names_to_quote": r"""for name in 'with "quotes"' $'tab\there' 'back\slash' 'blank and é' $'line\nbreak'; do
        echo x > "$name"; done""",
    "new_and_gone": r"printf 'one\ntwo' > new.md; touch empty.md; rm other.md",
    "staged_and_changed_again": """echo staged > new.md; echo staged > notes.md; git add -A; echo later > new.md
        git rm -q --cached other.md""",
    "detached": r"git checkout -q --detach; printf 'alpha\nX\n' > notes.md",
    "many_changes_close_together": r"""seq 0 59 > notes.md; git commit -qam lines
        sed -i -E -e 41,43d -e '/^(0|2|5|9|10|20|27|35|59)$/ s/.*/<&>\nand more/' notes.md""",
    "binary_files": r"""printf '\0\1\2\200\377%.0s' {1..400} > old.bin; printf 'a\0b' > gone.bin; printf 'a\0b' > mode.bin
        git add .; git commit -qm binary
        printf 'x\0%.0s' {1..40} > old.bin; printf '\0' > new.bin; printf 'text\0no more' > notes.md
        rm gone.bin; chmod 755 mode.bin""",
    "links": """for name in kept gone file 'with blank'; do ln -s notes.md "$name"; done; git add .; git commit -qm links
        rm kept gone file notes.md 'with blank'; ln -s nowhere kept; ln -s 'a b' 'with blank'; echo 'a file' > file
        ln -s other.md notes.md; ln -s other.md new""",
    "large_files": r"""yes line | head -n 300000 > old.txt; git add .; git commit -qm large
        sed -i 's/.*/other/' old.txt; yes $'new\r' | head -n 300000 > new.txt""",
}


@pytest.mark.parametrize("made", REPOSITORIES)
@pytest.mark.sampled
def test_the_patch_leads_from_the_last_commit_to_the_work_tree(made: str, world: World) -> None:
    typed(world.repo, REPOSITORIES[made])
    found, expected = contents(applied(world, patch_of(world))), contents(world.repo)
    if "autocrlf" in (world.repo / ".git" / "config").read_text():  # git has checked out the other files so
        found, expected = {ORDINARY: found[ORDINARY]}, {ORDINARY: expected[ORDINARY]}
    assert found == expected


def test_a_sparse_checkout_has_no_removed_files(world: World) -> None:
    typed(world.repo, SPARSE)
    (file,) = world.swarm("diff").json["files"]
    assert file["file"] == str(world.repo / ORDINARY)


def test_before_the_first_commit_all_is_new(world: World) -> None:
    typed(world.repo, "echo alpha > notes.md; git update-ref -d HEAD")
    files = world.swarm("diff").json["files"]
    assert [os.path.basename(one["file"]) for one in files] == ["notes.md", "other.md", "deep.md"]
    assert not any(one["old_mode"] for one in files)


def test_a_linked_work_tree_is_one_of_its_own(world: World) -> None:
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", str(linked))
    (linked / ORDINARY).write_text("linked\n")
    assert patch_of(world) == b""
    assert contents(applied(world, patch_of(world, cwd=linked))) == contents(linked)


# kind -> commands that make a file so, its name, and the reason for the lack of lines
WITHOUT_LINES = {
    "binary": (r"printf 'a\0b' > notes.md", "notes.md", "binary"),
    "link": ("ln -s notes.md link", "link", "a symbolic link"),
    "large": ("yes x | head -n 1048576 > notes.md", "notes.md", "larger than 1024 KiB"),
    "submodule": (
        """git clone -q . inner; git -c protocol.file.allow=always submodule --quiet add "$PWD" inner
        git commit -qm inner; echo x > inner/notes.md; git -C inner commit -qam x""",
        "inner",
        "a submodule",
    ),
    "lfs_pointer": (
        r"""printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' > notes.md
        git commit -qam pointer; echo content > notes.md""",
        "notes.md",
        "a git-lfs pointer in the last commit",
    ),
    "lfs_filter": (
        "echo '*.bin filter=lfs' > .gitattributes; git add .; git commit -qm lfs; echo content > a.bin",
        "a.bin",
        "kept by git-lfs",
    ),
}


@pytest.mark.parametrize("kind", WITHOUT_LINES)
@pytest.mark.sampled
def test_a_file_without_lines_is_named(kind: str, world: World) -> None:
    makes, name, reason = WITHOUT_LINES[kind]
    typed(world.repo, makes)
    (file,) = world.swarm("diff").json["files"]
    assert (file["file"], file["reason"]) == (str(world.repo / name), reason)
    assert [one["name"] for one in file["authors"]] == ["a person"]
    assert patch_of(world).decode().startswith(f"# {name}: {reason}, ")
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
