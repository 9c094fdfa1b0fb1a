"""The files that a command certainly shows to the model."""

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
    """The files that it shows: with the lines shown if they are only some, ``~`` before a file's changes."""
    found = effects_of(command, str(folder), {"HOME": str(folder / "home")})
    words = []
    for one in found.reads:
        path = os.path.relpath(os.path.normpath(os.path.join(one.folder, one.path)), folder)
        cut = "".join(
            f"[{unit[0]}{'-'.join('' if number is None else str(number) for number in span)}]"
            for unit, *span in one.spans
        )
        words.append({"": "", "index": "~", "HEAD": "~~"}[one.since] + path + cut)
    return " ".join(dict.fromkeys(words))


ROWS = [
    # programs
    ("cat f", "f"),
    ("cat f g", "f g"),
    ("cat -n f", "f"),
    ("cat -- f", "f"),
    ("head f", "f[l1-10]"),
    ("head -n 20 f g", "f[l1-20] g[l1-20]"),
    ("head -20 f", "f[l1-20]"),
    ("head -c 100 f", "f[b100]"),
    ("tail -n +5 f", "f[l5-]"),
    ("tail -f f", "f[l10]"),
    ("nl -ba f", "f"),
    ("less f", "f"),
    ("less -N +10 f", "+10 f"),
    ("more f", "f"),
    ("bat -l py --line-range 1:9 f", ""),
    ("batcat f", "f"),
    ("tac f", ""),
    ("jq . f", "f"),
    ("jq -r .a f g", ""),
    ("jq empty f", ""),
    ("cat f | jq .a", ""),
    ("diff f g", ""),
    ("diff -u f g", ""),
    ("diff -q f g", ""),
    ("sed -n 1,20p f", "f[l1-20]"),
    ("sed -n -e 1p -e 3p f g", ""),
    ("sed s/a/b/ f", ""),
    ("sed -i s/a/b/ f", ""),
    ("sed --in-place=.bak s/a/b/ f", ""),
    ("awk '{ print $1 }' f", ""),
    ("awk -F: 'NR > 3' x=1 f", ""),
    ("awk '{ print > \"out\" }' f", ""),
    ("awk -i inplace '{ print }' f", ""),
    ("grep x f", ""),
    ("grep -n -A3 x f g", ""),
    ("grep -e x f", ""),
    ("rg x f", ""),
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
    ("git diff f", "~f"),
    ("git diff -- f g", "~f ~g"),
    ("git diff -U9 HEAD -- f", "~~f"),
    ("git -C sub diff h", "~sub/h"),
    ("git diff", ""),
    ("git diff --stat f", ""),
    ("git diff --cached f", ""),
    ("git diff --name-only f", ""),
    ("git show :f", ""),
    ("git show :0:f", ""),
    ("cd sub; git show :./h", ""),
    ("cd sub; git show :f", ""),
    ("git show HEAD:f", ""),
    ("git log -p f", ""),
    ("git log -n 3 -p -- f", ""),
    ("git log f", ""),
    ("git blame -L 1,3 f", ""),
    ("git status f", ""),
    ("tail -n 1 f", "f[l1]"),
    ("tail -n +1 f", "f"),
    ("head -n 0 f", "f[l1-0]"),
    ("head -n -0 f", "f"),
    ("head -n -2 f", ""),
    ("head -n 1k f", ""),
    ("head --lines=5 f", "f[l1-5]"),
    ("tail -c 5 f", "f[b5]"),
    ("sed -n '1,$p' f", "f[l1-]"),
    ("sed -n 5000,6000p f", "f[l5000-6000]"),
    ("sed -n '1,20p;21,40p' f", "f[l1-40]"),
    ("sed -n '1,20p;30,40p' f", ""),
    ("sed 20q f", "f[l1-20]"),
    ("sed -n '1,200p;20q' f", "f[l1-200][l1-20]"),
    ("sed -n /x/p f", ""),
    ("sed -n 1,20p f g", ""),
    ("sed -n '1,20p;w out' f", ""),
    ("awk 1 f", ""),
    ("jq -S . f", "f"),
    ("bat f", "f"),
    ("diff f f", ""),
    ("cmp f g", ""),
    ("grep '' f", "f"),
    ("grep -n ^ f", "f"),
    ("grep -v '' f", ""),
    ("git diff HEAD f", "~~f"),
    ("git diff @ -- f", "~~f"),
    ("git diff HEAD~1 -- f", ""),
    ("git diff HEAD~1 f", ""),
    ("git diff HEAD HEAD~1 -- f", ""),
    ("git diff --word-diff f", "~f"),
    ("git diff -w f", ""),
    ("git diff --no-index f g", ""),
    ("git blame f", "f"),
    ("git blame HEAD f", ""),
    ("cat f g | head -5", ""),
    ("{ cat f; cat g; } | head -5", ""),
    ("bash -c 'cat f; cat g' | head -5", ""),
    ("{ cat f; cat g; } | cat -n", "f g"),
    ("cat f | head -c 0", "f[b0]"),
    ("cat f | tail -n +1", "f"),
    ("nl -ba f | sed -n 5,9p", "f[l5-9]"),
    ("sed -n 1,50p f | head -5", "f[l1-5][l1-50]"),
    ("cat f | tee g | wc", ""),
    ("git diff f | cat", "~f"),
    # its input
    ("cat < f", "f"),
    ("head -3 < f", "f[l1-3]"),
    ("sed -n 1p < f", "f[l1-1]"),
    ("grep x < f", ""),
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
    ("cat f | head", "f[l1-10]"),
    ("cat f | grep x | sed -n 1p", ""),
    ("cat f | grep -c x", ""),
    ("cat f | grep -q x", ""),
    ("cat f | sort | uniq -c", ""),
    ("cat f | head > g", ""),
    ("cat f | head 2>&1", "f[l1-10]"),
    ("cat f | head | wc", ""),
    ("cat f | less", "f"),
    ("cat f | tee g", "f"),
    ("cat f | tee g > /dev/null", ""),
    ("git diff f | head -50", ""),
    ("git diff f | wc -l", ""),
    ("grep -n x f | cut -d: -f1", ""),
    # does it run?
    ("cat f; cat g", "f g"),
    ("cat f && cat g", "f g"),
    ("echo == && cat f && echo == && sed -n 1p g", "f g[l1-1]"),
    ("cd sub && cat h", "sub/h"),
    ("cd nowhere && cat h", ""),
    ("cd sub; cat h", "sub/h"),
    ("ls && cat f", "f"),
    ("git status && cat f", "f"),
    ("git diff f | head && cat g", "g"),
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
