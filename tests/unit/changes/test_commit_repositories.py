"""`swarm-mcp commit` in repositories of all kinds: each with lines of two sessions in one file, and with hooks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.commits import commits, git, refusal
from support.files import program_at
from support.traced import Player
from support.world import file_times_catch_up, patch, some_time_passes, typed

pytestmark = pytest.mark.slow


SUBMODULE = """git -C .. init -q -b main inner; echo x > ../inner/inner.md
    git -C ../inner add .; git -C ../inner commit -qm start
    git -c protocol.file.allow=always submodule --quiet add "$PWD/../inner" inner; git commit -qm inner
    echo y > inner/inner.md; git -C inner commit -qam y"""
CRLF = r"for name in notes.md other.md; do printf 'alpha\r\nbeta\r\ngamma\r\n' > $name; done"
ODD = (
    "core.fsmonitor", "core.untrackedCache", "core.splitIndex", "core.quotePath", "core.safecrlf", "commit.verbose",
    "status.relativePaths", "diff.noprefix", "diff.mnemonicPrefix",
)  # fmt: skip

# kind -> commands in the folder `work` that make it, and its place then
KINDS = {
    "linked": ('git worktree add -q "$PWD/../linked" -b side', "../linked"),
    "linked_with_settings": (
        """git config extensions.worktreeConfig true; git worktree add -q "$PWD/../linked" -b side; cd ../linked
        git config --worktree user.name linked; git config --worktree core.worktree $PWD""",
        "../linked",
    ),
    "inside_a_submodule": (
        """git -C .. init -q -b main upper; cd ../upper
        git -c protocol.file.allow=always submodule --quiet add "$PWD/../work" inner; git commit -qm inner""",
        "../upper/inner",
    ),
    "beside_a_submodule": (SUBMODULE, ""),
    "sparse": ("git sparse-checkout set --no-cone /notes.md /other.md; test ! -e sub", ""),
    "detached": ("git checkout -q --detach", ""),
    "unborn": ("rm -rf .git; git init -q -b main", ""),
    "partial": (
        'git config uploadpack.allowFilter true; cd ..; git clone -q --filter=blob:none "file://$PWD/work" partial',
        "../partial",
    ),
    "shallow": ('cd ..; git clone -q --depth=1 "file://$PWD/work" shallow', "../shallow"),
    "sha256": (
        """git -C .. init -q -b main --object-format=sha256 new; cp notes.md other.md ../new; cd ../new
        git add .; git commit -qm start""",
        "../new",
    ),
    "crlf": (f"git config core.autocrlf true; {CRLF}; git add .", ""),  # the same to git
    "crlf_in_git": (f"{CRLF}; git -c core.autocrlf=false commit -qam crlf", ""),
    "odd_settings": (
        f"""for name in {" ".join(ODD)}; do git config $name true; done; git config color.ui always
        git config status.showUntrackedFiles no; git config diff.external false; git config index.version 4""",
        "",
    ),
    "blank_in_its_name": ("mv $PWD \"../a 'b' *ü\"", "../a 'b' *ü"),
}


def _edits(player: Player, old: bytes, new: bytes) -> None:
    """Change notes.md by the client's own tool, with the line ends that it has."""
    path = Path(player.folder, "notes.md")
    lines = "".join(f"+{line}\n" for line in new.decode().split("\n"))
    assert not player.denied("apply_patch", patch(f"*** Update File: notes.md\n@@\n-{old.decode()}\n{lines}"))
    file_times_catch_up()
    end = b"\r\n" if b"\r\n" in path.read_bytes() else b"\n"
    path.write_bytes(path.read_bytes().replace(old, new.replace(b"\n", end), 1))
    some_time_passes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_lines_of_two_in_one_file(work: Path, kind: str) -> None:
    makes, where = KINDS[kind]
    typed(work, makes)
    there = Path(os.path.normpath(work / where))
    hooks = Path(git(there, "rev-parse", "--path-format=absolute", "--git-path", "hooks").strip())
    hooks.mkdir(exist_ok=True)
    seen = work.parent / "seen"
    program_at(hooks / "pre-commit", f"#!/bin/sh\ncat notes.md >{seen}\ngit rev-parse --show-toplevel\ngit add -A\n")
    is_new = kind == "unborn"
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
        name, mine = "notes.md", "MINE\nbeta\ngamma\n".replace("\n", "\r\n" if kind == "crlf_in_git" else "\n")
    done = commits(me, there)
    assert git(there, "show", f"HEAD:{name}") == mine
    assert git(there, "show", "--format=", "--name-only", "HEAD").split() == [name]
    assert done.branch == git(there, "branch", "--show-current").strip()
    assert git(there, "diff", "--cached", "--name-only") == ""
    if not is_new:
        assert git(there, "-c", "status.showUntrackedFiles=all", "status", "--porcelain") == "".join(
            sorted([*before.splitlines(keepends=True), f" M {name}\n"], key=lambda line: line[3:])
        )
        assert seen.read_bytes().decode() == mine.replace("\n", "\r\n" if kind == "crlf" else "\n")
        commits(peer, there)
        assert git(there, "status", "--porcelain") == before


def test_files_of_git_lfs(work: Path) -> None:
    if shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    # older than the index, so that git need not compare contents
    typed(
        work,
        r"""git lfs install --local; git lfs track '*.bin'; printf '\0one' > a.bin; printf '\0two' > b.bin
        touch -t 202311142200 a.bin b.bin; git add .; git commit -qm lfs""",
    )
    peer, me = Player("codex", work), Player("codex", work)
    peer.runs("printf 'peer' > b.bin")
    me.runs("printf 'mine' > a.bin")
    program_at(work / ".git/hooks/pre-commit", "#!/bin/sh\ngit add -A\n")
    commits(me, work)
    assert git(work, "show", "HEAD:a.bin").startswith("version https://git-lfs")
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["a.bin"]
    assert git(work, "status", "--porcelain") == " M b.bin\n" and (work / "b.bin").read_bytes() == b"peer"
    me.runs("cat b.bin")
    me.runs("printf 'both' > b.bin")
    assert "b.bin (kept by git-lfs) (" in refusal(me, work)


def test_a_submodule_is_committed_if_it_is_named(work: Path) -> None:
    typed(work, SUBMODULE)
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
