"""Searches are run as they stand: the found files are written; a search itself starts nothing and changes nothing."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from corpora import finding, sandbox
from support.files import folder_at, program_at, text_at

from swarm_hook_core.shell import effects_of

FILES = {
    "src/a.ts": "one two", "src/b.ts": "three", "src/x/c.py": "one", "src/run.log": "one", "src/keep.log": "one",
    "dist/a.js": "one", ".hid/a.ts": "one", "README.md": "one, and ones",
}  # fmt: skip
IGNORED = "/dist/\n*.log\n!keep.log\n"
IN_SRC = "src/a.ts src/keep.log src/x/c.py"

# command -> certain writes; after a bar possible ones
LISTED = {
    "rg -l one src | xargs sed -i 's/one/uno/g'": IN_SRC,
    "sed -i s/one/uno/ $(rg -l one src)": IN_SRC,
    "for f in $(rg -l one src); do sed -i s/one/uno/ $f; done": IN_SRC,
    'rg -l one src | while read -r f; do sed -i s/one/uno/ "$f"; done': IN_SRC,
    "rg --null -l one src | xargs -0 sed -i s/one/uno/": IN_SRC,
    "rg -l0 one src | xargs -0 -n1 sed -i s/one/uno/": IN_SRC,
    "rg one --files-with-matches src | xargs -I{} sed -i s/one/uno/ {}": IN_SRC,
    "perl -pi -e 's/one/uno/' $(rg -l one src)": IN_SRC,
    'mapfile -t all < <(rg -l one src); sed -i s/one/uno/ "${all[@]}"': IN_SRC,
    "rg -l one src | parallel sed -i s/one/uno/ {}": IN_SRC,
    "rg --files src | rg -v b.ts | xargs touch": IN_SRC,
    "rg -l one | grep -v src | xargs touch": "README.md",
    "rg -il ONE src/x | xargs touch": "src/x/c.py",
    "rg -lS One | xargs touch": "",
    r"rg -l 't[w]o$' | xargs touch": "src/a.ts",
    "rg --files-without-match one src | xargs touch": "src/b.ts",
    "rg -l none | xargs touch": "",
    "rg --files -g '*.{md,py}' | xargs touch": "README.md src/x/c.py",
    "rg -l -T ts one src | xargs touch": "src/keep.log src/x/c.py",
    "rg --hidden --files -g '*.ts' | xargs touch": ".hid/a.ts src/a.ts src/b.ts",
    r"rg -l '\p{Ll}ne' src/x | xargs touch": "src/x/c.py",
    "rg -L one src": "",
    "fd -e ts -e log -x touch": "src/a.ts src/b.ts src/keep.log",
    "fd -H -t f 'a.ts' | xargs touch": ".hid/a.ts src/a.ts",
    "fd -I . dist -0 | xargs -0 touch": "dist/a.js",
    "fd -g 'c.*' src -X rm": "src/x/c.py",
    "fd -g 'c.*' src -x mv {} {//}/../a.ts": "src/a.ts src/x/c.py",
    "fd -g '*.nope' -x cp {} README.md": "",
    "ag -l one src/x | xargs touch": "src/x/c.py",
    r"ag -g '\.ts$' | xargs touch": "src/a.ts src/b.ts",
    "grep -r --files-with-matches one src/x | xargs touch": "src/x/c.py",
    "grep -rl one src --include='*.ts' | xargs touch": "src/a.ts",
    "grep -rl one src --exclude-dir=x | xargs touch": "src/a.ts src/keep.log src/run.log",
    "find src -name '*.ts' | xargs grep -l one | xargs touch": "src/a.ts",
    "grep -l one $(find src -name '*.ts') | xargs touch": "src/a.ts",
    "printf 'src/a.ts\\nsrc/b.ts\\n' | grep -E '/[b-z]' | xargs touch": "src/b.ts",
    # These are not run: their results are possible.
    "rg -l --pre cat one src/x | xargs touch": "| src/x/c.py",
    "RIPGREP_CONFIG_PATH=x; rg -l one src/x | xargs touch": "| src/x/c.py",
    "ack -l one src/x | xargs touch": "| src/x/c.py",
    "rg -lz one src/x | xargs touch": "| src/x/c.py",
}
PROGRAMS = {"fd": ("fd", "fdfind")}  # names that distributions give a program


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = folder_at(tmp_path / "programs")
    for name, called in PROGRAMS.items():
        found = next(filter(None, map(shutil.which, called)), None)
        if found:
            (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", f"{programs}:/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin")
    top = tmp_path.resolve() / "box" / "repo"
    for name, text in FILES.items():
        text_at(top / name, text + "\n")
    (top / ".git").mkdir()
    (top / ".gitignore").write_text(IGNORED)
    return top


def met(command: str, repo: Path, files=FILES) -> finding.Met:
    return finding.met(effects_of(command, str(repo), sandbox.environment(str(repo.parent))), str(repo), sorted(files))


@pytest.mark.parametrize("command", LISTED)
def test_what_is_listed_is_written(command: str, repo: Path) -> None:
    missing = [name for name in ("rg", "fd", "ag") if f"{name} " in command and not shutil.which(name)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed (apt-get install ripgrep fd-find silversearcher-ag)")
    certain, _bar, possible = LISTED[command].partition("|")
    found = met(command, repo)
    assert (sorted(found.certain), sorted(found.possible)) == (certain.split(), possible.split())


# For these, git and grep stand in where rg is not installed: clients bring one along that hooks do not find.
WITHOUT_RG = [command for command in LISTED if command.startswith("rg ") and not set(command.split()) & {
    "-il", "-lS", "--files-without-match", "-T", "--hidden", "-L", "--pre", "-lz", "-v", "'*.{md,py}'"}]  # fmt: skip


@pytest.mark.parametrize("command", WITHOUT_RG)
def test_git_and_grep_stand_in_for_a_missing_rg(command: str, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = folder_at(repo.parent / "without-rg")
    for name in ("git", "grep", "xargs"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    shutil.rmtree(repo / ".git")
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    certain, _bar, possible = LISTED[command].partition("|")
    found = met(command, repo)
    assert (sorted(found.certain), sorted(found.possible)) == (certain.split(), possible.split())


def test_a_program_that_is_not_there_makes_its_result_possible(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo / "nowhere"))
    assert "src/x/c.py" in met("rg -l one src/x | xargs touch", repo).possible
    assert "src/x/c.py" in met("fd . src/x | xargs touch", repo).possible


# A search that would start `trap`, or write `trap`, if it were run as it stands.
TRAPS = [
    "find . -exec ./trap {} ;", "find . -name a.ts -ok ./trap ;", "find . -execdir ./trap {} +", "find . -fprint trap",
    "find . -fls trap", "find . -fprintf trap %p", "find . -fprint0 trap", "find . -name x -o -exec ./trap ;",
    "find . ( -exec ./trap ; )", "fd . -x ./trap", "fd -Hx ./trap", "fd . --exec=./trap", "fd -HX ./trap", "fd -l",
    "fd --exec-batch ./trap", "rg -l one --pre ./trap", "rg -l one --pre=./trap", "rg -l --hostname-bin=./trap one",
    "ag -l one --pager ./trap", "ag -l one --pager=./trap", "ack -l one", "grep -l one src/a.ts > trap",
]  # fmt: skip


@pytest.mark.parametrize("command", TRAPS)
def test_a_search_starts_nothing_and_writes_nothing(command: str, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_at(repo / "trap.sh", f"#!/bin/sh\ntouch {shlex.quote(str(repo))}/sprung\n")
    (repo / ".ackrc").write_text(f"--pager={program}\n")
    words = shlex.split(command.replace("./trap", str(program)))
    line = " ".join(word if word == ">" else shlex.quote(word) for word in words)
    before = sorted(path for path in repo.rglob("*"))
    for after in ("| xargs touch", "", "| while read f; do rm $f; done"):
        met(f"{line} {after}", repo)
    assert sorted(path for path in repo.rglob("*")) == before


def test_what_takes_too_long_is_asked_for_file_by_file(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole search has no answer; questions about single files have one."""
    from swarm_hook_core.shell.programs import searches

    real, asked = searches.run, []

    for command, certain in {
        "find . -name '*.ts' -not -path './src/b*' -delete": {".hid/a.ts", "src/a.ts"},
        "find ./src -maxdepth 1 -type f -name '*.ts' -exec rm {} +": {"src/a.ts", "src/b.ts"},
        "find . -path ./src/x -prune -o -name '*.py' -print | xargs rm": set(),
    }.items():
        asked.clear()
        with monkeypatch.context() as patched:
            patched.setattr(searches, "run", lambda *given, **more: _no_answer(asked, real, *given, **more))
            found = met(command, repo)
        assert (found.certain, found.possible) == (certain, set()), command


def _no_answer(asked: list[object], real, words: list[str], *rest: object, **more: object):
    """Give no answer to the first question."""
    asked.append(words)
    result = real(words, *rest, **more)
    if len(asked) == 1:
        result.code = None
    return result
