"""The folder of a command after a `cd` that may fail: certainly the new one, possibly the old one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_hook_core.shell import effects_of

# Command -> (files that are certainly written, files that possibly are): `old/f` and `old/sub` are there, no more.
CASES = {
    "mkdir -p new; cd new && touch a; echo > f": ("new new/a new/f", "f"),
    "mkdir -p new; cd new; echo > f": ("new new/f", "f"),
    "mkdir -p new && cd new && echo > f": ("new new/f", ""),
    "git clone https://host.invalid/new.git && cd new && make; echo > f": ("new/f", "f"),
    # It cannot fail, or surely does.
    "cd sub; echo > f": ("sub/f", ""),
    "cd sub && make; echo > f": ("sub/f", ""),
    "cd nowhere; echo > f": ("f", ""),
    "cd f; echo > g": ("g", ""),
    "mkdir -p sub; cd sub; echo > f": ("sub sub/f", ""),
    "rm -rf sub; cd sub; echo > g": ("sub/g", "g"),
    'cd ""; echo > f': ("f", ""),
    # The command before it may fail.
    "make && cd sub; echo > f": ("sub/f", "f"),
    "make && cd sub && echo > g; echo > f": ("sub/g sub/f", "f"),
    "make && exit; echo > f": ("f", ""),
    "echo start && cd sub && echo > g; echo > f": ("sub/g sub/f", ""),
    # The script handles the failure.
    "mkdir new; cd new || exit 1; echo > f": ("new new/f", ""),
    "mkdir new; cd new || { echo no; exit 1; }; echo > f": ("new new/f", ""),
    "mkdir new; cd new || true; echo > f": ("new new/f", "f"),
    "mkdir new; if cd new; then echo > a; else echo > b; fi": ("new new/a b", ""),
    "mkdir new; if ! cd new; then exit 1; fi; echo > f": ("new new/f", ""),
    "mkdir new; ! cd new && echo > f": ("new f", ""),
    "mkdir new; set -e; cd new; echo > f": ("new new/f", ""),
    "mkdir new; set -euo pipefail; cd new; echo > f": ("new new/f", ""),
    "mkdir new; set -e; cd new && make; echo > f": ("new new/f", "f"),
    # A shell of its own, a function, other shells' stacks.
    "mkdir new; (cd new; echo > a); echo > f": ("new new/a f", "a"),
    "mkdir new; (cd new && echo > a); echo > f": ("new new/a f", ""),
    "mkdir new; bash -c 'cd new; echo > a'; echo > f": ("new new/a f", "a"),
    "go() { mkdir $1; cd $1; }; go new; echo > f": ("new new/f", "f"),
    "go() { mkdir $1; cd $1; }; go new && echo > f": ("new new/f", ""),
    "mkdir new; pushd new; echo > a; popd; echo > f": ("new new/a f", "a"),
    "pushd nowhere; echo > a; popd; echo > f": ("a f", ""),
    "popd; echo > f": ("f", ""),
    "mkdir new; cd new; for i in 1 2; do echo > $i; done": ("new new/1 new/2", "1 2"),
    "mkdir new; cd new; { echo; } > f": ("new new/f", "f"),
    "mkdir new; cd new; rm sub/*; echo > /dev/null": ("new new/sub/*", ""),
    "mkdir new; cd new; rm *": ("new new/*", "f"),
    "mkdir new; cd new; cd deep; echo > f": ("new new/deep/f", "f new/f"),
    'if [ -n "$CI" ]; then cd sub; fi; echo > f': ("sub/f", "f"),
    '[ -n "$CI" ] && cd sub; echo > f': ("f", "sub/f"),
    # These fail as a whole, and write nothing where they are.
    "mkdir new; git -C new init; make -C new": ("new", ""),
    # `!` is not lost.
    "while ! false; do echo > f; break; done": ("f", ""),
    "if ! [ -f f ]; then exit; fi; echo > g": ("g", ""),
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "old" / "sub").mkdir(parents=True)
    (tmp_path / "old" / "f").write_text("")
    return tmp_path / "old"


@pytest.mark.parametrize("command", CASES)
def test_both_folders_are_judged(command: str, old: Path) -> None:
    certain, possible = CASES[command]
    effects = effects_of(command, str(old), {"HOME": str(old), "PATH": os.environ["PATH"]})
    written = {os.path.relpath(os.path.join(one.folder, one.path), old) for one in effects.writes}
    assert written == set(certain.split())
    places = {name: str(old / name) for one in CASES.values() for name in (one[1] + " a").split()}
    asked = {name for name, path in places.items() if any(tree.admits(path) is None for tree in trees(effects, path))}
    assert asked == set(possible.split())


def trees(effects, path: str):
    return [tree for tree in effects.trees if (path + "/").startswith(tree.root + "/") and "clone" not in tree.by]


def test_git_in_the_old_folder_is_only_possible(old: Path) -> None:
    effects = effects_of("mkdir new; cd new; git rm f", str(old), {})
    assert {(call.folder, call.in_doubt) for call in effects.git} == {(str(old / "new"), False), (str(old), True)}


def test_what_mktemp_has_made_is_there(old: Path) -> None:
    assert not effects_of('cd "$(mktemp -d)"; echo > f', str(old), {}).trees
