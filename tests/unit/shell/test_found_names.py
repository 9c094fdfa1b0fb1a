"""Names that a search finds: each is written, a search without results writes nothing, and xargs splits names again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from corpora import finding, sandbox
from support.files import text_at

from swarm_hook_core.shell import effects_of

FILES = ("a.txt", "a", "b.txt", "two words.txt", "words.txt", "sub/c.txt", "sub/it's.txt", "keep/d.md", "empty/.keep")

# Each is really run, and must change the found files, no more; for `=`, these are only possible.
COMMANDS = r"""
find . -name '*\ *.txt' | xargs rm
find . -name '*\ *.txt' -print0 | xargs -0 rm
find . -name '*\ *.txt' | xargs -d '\n' rm
find . -name '*\ *.txt' | xargs -I{} mv {} {}.old
find . -name '*.txt' -not -name "*'*" | xargs -n 1 touch
find . -name '*.nope' | xargs touch a.txt
find . -name '*.nope' | xargs -r touch a.txt
find . -name '*.nope' | xargs -I{} cp {} a.txt
find . -name '*.nope' -exec mv {} a.txt \;
find . -name '*.nope' -exec touch a.txt {} +
find . -name '*.nope' -exec mv {} {}l \;
find . -name '*.nope' -delete
find "$1" | xargs -r touch
find "" -delete
rm -rf ""
cp *.nope a.txt
mv keep/*.nope a.txt
for f in $(find . -name '*.nope'); do touch a.txt; done
find . -name '*.nope' | while read -r f; do touch a.txt; done
rm -f $(find . -name '*\ *.txt')
find sub -type f | while read -r f; do mv "$f" "${f%.txt}.md"; done
find . -name '*.txt' -exec cp {} keep/ \;
find . -maxdepth 1 -name '*.txt' -exec touch {} +
find . -path ./sub -prune -o -name '*.txt' -print | grep b.txt | xargs touch
find . -name '*.txt' | sort | head -n 30 | grep -v "[' ]" | xargs touch
find . -name '*.txt' -exec sh -c 'mv "$1" "${1%.txt}.bak"' _ {} \;
find sub keep -type f -delete
mapfile -t all < <(find sub -name 'c*'); touch "${all[@]}"
mkdir new; touch new/x.txt; find new -name '*.txt' -delete
""".strip().split("\n")
POSSIBLE = ["find . -name '*.txt' | xargs touch"]  # stops at the open quote, in the order of the disk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        path = text_at(tmp_path / "box" / "repo" / name, "x\n")
        os.utime(path, (sandbox.LONG_AGO, sandbox.LONG_AGO))
    return tmp_path / "box"


def run(command: str, root: Path) -> set[str]:
    """Return the files that it really changes in the repository, in a copy of `root`."""
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    before = sandbox.Snapshot(str(copy))
    for name in ("home", "tmp"):
        (copy / name).mkdir()
    subprocess.run(["bash", "-c", command], cwd=copy / "repo", env=sandbox.environment(str(copy)), capture_output=True,
                   stdin=subprocess.DEVNULL)  # fmt: skip
    return {os.path.relpath(path, "repo") for path in before.changed(sandbox.Snapshot(str(copy)))[0]}


def met(command: str, root: Path, files) -> finding.Met:
    """Return the `files` of the repository in `root` that are written."""
    effects = effects_of(command, str(root / "repo"), sandbox.environment(str(root)))
    return finding.met(effects, str(root / "repo"), sorted(files))


@pytest.mark.sampled
@pytest.mark.skipif(shutil.which("xargs") is None, reason="compared with what is really done")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_found_is_what_is_written(command: str, root: Path) -> None:
    changed = run(command, root)
    certain, possible = met(command, root, changed | set(FILES))
    assert certain == changed
    assert not possible


@pytest.mark.parametrize("command", POSSIBLE)
def test_where_it_stops_nobody_knows(command: str, root: Path) -> None:
    certain, possible = met(command, root, FILES)
    assert not certain and possible >= {"a.txt", "sub/c.txt", "words.txt"}


def test_more_than_can_be_listed_go_by_the_expression(root: Path) -> None:
    for number in range(2000):
        (root / "repo/sub" / f"{number}.txt").touch()
    files = ["sub/7.txt", "two words.txt", "a"]
    assert met("find . -name '*.txt' | xargs rm", root, files) == ({"sub/7.txt"}, set())
    assert met("find . -name '*.txt' -delete", root, files) == ({"sub/7.txt", "two words.txt"}, set())
    assert met("find . -name '*.txt' -exec rm {} +", root, files) == ({"sub/7.txt", "two words.txt"}, set())


def test_what_an_earlier_part_may_have_made_is_found_too(root: Path) -> None:
    for before in ("python3 gen.py", "make", "git checkout topic", "touch sub/e.txt"):
        certain, possible = met(f"{before}; find . -name 'e.txt' -delete", root, ["sub/e.txt"])
        assert certain | possible, before


def test_renamed_files_are_possible(root: Path) -> None:
    for command in (r"rename 's/\.txt$/.md/' [ab].txt", "rename .txt .md a.txt b.txt"):
        assert met(command, root, list(FILES)) == (set(), {"a.txt", "b.txt"})
