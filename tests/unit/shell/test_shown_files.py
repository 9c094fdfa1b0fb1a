"""Which files a command certainly shows to the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import MOST, Effects, Read


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ground")
    for name in ("f", "g", "sub/h", "names", ".git/HEAD"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("f\ng\n" if name == "names" else "x\n")
    return folder


def shown(command: str, folder: Path) -> str:
    found = effects_of(command, str(folder), {"HOME": str(folder / "home")})
    paths = [os.path.normpath(os.path.join(one.folder, one.path)) for one in found.reads]
    return " ".join(dict.fromkeys(os.path.relpath(path, folder) for path in paths))


ROWS = [
    # programs
    ("cat f", "f"),
    ("cat f g", "f g"),
    ("cat -n f", "f"),
    ("cat -- f", "f"),
    ("head f", "f"),
    ("head -n 20 f g", "f g"),
    ("head -20 f", "f"),
    ("head -c 100 f", "f"),
    ("tail -n +5 f", "f"),
    ("tail -f f", "f"),
    ("nl -ba f", "f"),
    ("less f", "f"),
    ("less -N +10 f", "+10 f"),
    ("more f", "f"),
    ("bat -l py --line-range 1:9 f", "f"),
    ("batcat f", "f"),
    ("tac f", "f"),
    ("jq . f", "f"),
    ("jq -r .a f g", "f g"),
    ("jq empty f", ""),
    ("cat f | jq .a", "f"),
    ("diff f g", "f g"),
    ("diff -u f g", "f g"),
    ("diff -q f g", ""),
    ("sed -n 1,20p f", "f"),
    ("sed -n -e 1p -e 3p f g", "f g"),
    ("sed s/a/b/ f", "f"),
    ("sed -i s/a/b/ f", ""),
    ("sed --in-place=.bak s/a/b/ f", ""),
    ("awk '{ print $1 }' f", "f"),
    ("awk -F: 'NR > 3' x=1 f", "f"),
    ("awk '{ print > \"out\" }' f", ""),
    ("awk -i inplace '{ print }' f", ""),
    ("grep x f", "f"),
    ("grep -n -A3 x f g", "f g"),
    ("grep -e x f", "f"),
    ("rg x f", "f"),
    ("grep -q x f", ""),
    ("grep -c x f", ""),
    ("grep -l x f", ""),
    ("grep x", ""),
    ("wc -l f", ""),
    ("ls f", ""),
    ("md5sum f", ""),
    ("test -f f", ""),
    ("cp f g", ""),
    ("rm f", ""),
    ("cat", ""),
    ("cat -", ""),
    ("cat --help", ""),
    # git
    ("git diff f", "f"),
    ("git diff -- f g", "f g"),
    ("git diff -U9 HEAD -- f", "HEAD f"),
    ("git -C sub diff h", "sub/h"),
    ("git diff", ""),
    ("git diff --stat f", ""),
    ("git diff --cached f", ""),
    ("git diff --name-only f", ""),
    ("git show :f", "f"),
    ("git show :0:f", "f"),
    ("cd sub; git show :./h", "sub/h"),
    ("cd sub; git show :f", "f"),
    ("git show HEAD:f", ""),
    ("git log -p f", "f"),
    ("git log -n 3 -p -- f", "f"),
    ("git log f", ""),
    ("git blame -L 1,3 f", "f"),
    ("git status f", ""),
    # what it is read from
    ("cat < f", "f"),
    ("head -3 < f", "f"),
    ("sed -n 1p < f", "f"),
    ("grep x < f", "f"),
    ("wc -l < f", ""),
    ("cat <<'E'\nf\nE", ""),
    # where it goes
    ("cat f > g", ""),
    ("cat f >> g", ""),
    ("cat f &> /dev/null", ""),
    ("cat f > /dev/null 2>&1", ""),
    ("cat f 2> /dev/null", "f"),
    ("cat f 2>&1", "f"),
    ("cat f >&2", "f"),
    ("cat f > /dev/stderr", "f"),
    ("{ cat f; echo; } > g", ""),
    ("x=$(cat f)", ""),
    ("echo $(cat f)", ""),
    ("wc -l <(cat f)", ""),
    ("cat f | wc -l", ""),
    ("cat f | python3 x.py", ""),
    ("cat f | xargs rm", ""),
    ("cat f | head", "f"),
    ("cat f | grep x | sed -n 1p", "f"),
    ("cat f | grep -c x", ""),
    ("cat f | grep -q x", ""),
    ("cat f | sort | uniq -c", "f"),
    ("cat f | head > g", ""),
    ("cat f | head 2>&1", "f"),
    ("cat f | head | wc", ""),
    ("cat f | less", "f"),
    ("cat f | tee g", "f"),
    ("cat f | tee g > /dev/null", ""),
    ("git diff f | head -50", "f"),
    ("git diff f | wc -l", ""),
    ("grep -n x f | cut -d: -f1", "f"),
    # whether it runs
    ("cat f; cat g", "f g"),
    ("cat f && cat g", "f g"),
    ("echo == && cat f && echo == && sed -n 1p g", "f g"),
    ("cd sub && cat h", "sub/h"),
    ("cd nowhere && cat h", ""),
    ("cd sub; cat h", "sub/h"),
    ("ls && cat f", "f"),
    ("git status && cat f", "f"),
    ("git diff f | head && cat g", "f g"),
    ("make && cat f", ""),
    ("make; cat f", "f"),
    ("make || cat f", ""),
    ("false || cat f", "f"),
    ("true || cat f", ""),
    ("test -f f && cat f", "f"),
    ("test -f $x && cat f", ""),
    ("grep -q x f && cat f", ""),
    ("[ -f f ] && cat f; cat g", "f g"),
    ("[ -f $x ] && cat f; cat g", "g"),
    ("[ -f f ] || exit 1; cat f", "f"),
    ("[ -f $x ] || exit 1; cat f", ""),
    ("make || exit 1; cat f", ""),
    ("cd sub || exit 1; cat h", "sub/h"),
    ("cat f || true; cat g", "f g"),
    ("set -e; make; cat f", ""),
    ("set -e; cat f; cat g", "f g"),
    ("if make; then cat f; else cat g; fi", ""),
    ("if true; then cat f; else cat g; fi", "f"),
    ("if false; then cat f; else cat g; fi; cat sub/h", "g sub/h"),
    ("if make; then echo; fi; cat f", "f"),
    ("if make; then exit; fi; cat f", ""),
    ("if cat f; then echo; fi", "f"),
    ("case $1 in a) cat f ;; esac; cat g", "g"),
    ("case a in a) cat f ;; b) cat g ;; esac", "f"),
    ("for n in f g; do cat $n; done", "f g"),
    ("for n in f g; do test -f $n && cat $n; done", "f g"),
    ("for n in f g; do make $n && cat $n; done", ""),
    ("for n in f g; do make || break; cat $n; done; cat names", ""),
    ("while make; do cat f; done; cat g", "g"),
    ("while read n; do cat $n; done < names", "f g"),
    ("cat f &", "f"),
    ("(cat f)", "f"),
    ("{ cat f; }", "f"),
    ("show() { cat f; }", ""),
    ("show() { cat $1; }; show f", "f"),
    ("cat $UNKNOWN_NAME", ""),
    # others that run them
    ("sudo cat f", "f"),
    ("bash -c 'cat f'", "f"),
    ("timeout 5 cat f", "f"),
    ("xargs cat < names", "f g"),
    ("cat names | xargs cat", "f g"),
    ("find . -name h -exec cat {} +", ""),
    ("ssh host cat f", ""),
    ("docker exec c cat f", ""),
    ("python3 -c \"import subprocess; subprocess.run(['cat', 'f'])\"", ""),
    ("python3 -c \"print(open('f').read())\"", ""),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_command_shows_files(row: tuple[str, str], ground: Path) -> None:
    assert shown(row[0], ground) == row[1]


def test_what_is_shown_is_bounded_and_no_guess() -> None:
    found = Effects()
    for number in range(MOST + 10):
        found.add(Read("/", f"f{number}"))
    assert len(found.reads) == MOST and not found.guesses
