"""The listings of rg, fd, ag and their like, on a machine that may not have them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from corpora import finding, sandbox

from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.programs.ignoring import IgnoreRules

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
    "rg -lw ones | xargs touch": "README.md",
    "rg -lS One | xargs touch": "",
    "rg -l 't[w]o$' | xargs touch": "src/a.ts",
    "rg -lF 'one, ' | xargs touch": "README.md",
    "rg --files-without-match one src | xargs touch": "src/b.ts",
    "rg -l none | xargs touch": "",
    "rg --files -g '*.ts' | xargs touch": "src/a.ts src/b.ts",
    "rg --files -g '*.{md,py}' | xargs touch": "README.md src/x/c.py",
    "rg -l one -g '!src/x' src | xargs touch": "src/a.ts src/keep.log",
    "rg -l -t py one | xargs touch": "src/x/c.py",
    "rg -l -T ts one src | xargs touch": "src/keep.log src/x/c.py",
    "rg --files -d 1 | xargs touch": "README.md",
    "rg -u -l one dist src/x | xargs touch": "dist/a.js src/x/c.py",
    "rg -uu -l one .hid dist | xargs touch": ".hid/a.ts dist/a.js",
    "rg -l one .hid | xargs touch": ".hid/a.ts",
    "rg --hidden --files -g '*.ts' | xargs touch": ".hid/a.ts src/a.ts src/b.ts",
    "rg -L one src": "",
    "fd -e ts -e log -x touch": "src/a.ts src/b.ts src/keep.log",
    "fd -H -t f 'a.ts' | xargs touch": ".hid/a.ts src/a.ts",
    "fd -I . dist -0 | xargs -0 touch": "dist/a.js",
    "ag -l one src | xargs touch": IN_SRC,
    r"ag -g '\.ts$' | xargs touch": "src/a.ts src/b.ts",
    "grep -r --files-with-matches one src/x | xargs touch": "src/x/c.py",
    # An unsupported type may be written.
    "rg -l -t nosuchtype one src | xargs touch": f"| {IN_SRC}",
    r"rg -l '\p{Lu}?one' src/x | xargs touch": "| src/x/c.py",
    "rg -l -f patterns src/x | xargs touch": "| src/x/c.py",
    "rg -l --pre cat one src/x | xargs touch": "| src/x/c.py",
    "RIPGREP_CONFIG_PATH=x; rg -l one src/x | xargs touch": "| src/x/c.py",
    "ack -l one src/x | xargs touch": "| src/x/c.py",
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    top = tmp_path.resolve() / "box" / "repo"
    for name, text in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text + "\n")
    (top / ".git").mkdir()
    (top / ".gitignore").write_text(IGNORED)
    return top


def met(command: str, repo: Path) -> finding.Met:
    return finding.met(effects_of(command, str(repo), sandbox.environment(str(repo.parent))), str(repo), sorted(FILES))


@pytest.mark.parametrize("command", LISTED)
def test_what_is_listed_is_written(command: str, repo: Path) -> None:
    certain, _bar, possible = LISTED[command].partition("|")
    found = met(command, repo)
    assert (sorted(found.certain), sorted(found.possible)) == (certain.split(), possible.split())


def test_a_rule_above_the_root_about_which_releases_differ_makes_it_possible(repo: Path) -> None:
    """Ripgrep 13 holds a rule from above against ``src/src/x``, ripgrep 15 against ``src/x``."""
    (repo / ".gitignore").write_text("/src/x/\n")
    assert met("rg -l one src | xargs touch", repo) == ({"src/a.ts", "src/keep.log", "src/run.log"}, {"src/x/c.py"})
    assert met("rg -l one | xargs touch", repo)[0] == {
        "README.md",
        "dist/a.js",
        "src/a.ts",
        "src/keep.log",
        "src/run.log",
    }


def test_each_file_of_rules_counts_where_it_lies(repo: Path) -> None:
    (repo / "src/.ignore").write_text("*.ts\n")
    (repo / ".rgignore").write_text("!a.ts\n")
    assert met("rg --files src | xargs touch", repo)[0] == {"src/a.ts", "src/keep.log", "src/x/c.py"}
    (repo / ".git").rmdir()  # .gitignore counts in a repository
    assert met("rg --files src | xargs touch", repo)[0] == {"src/a.ts", "src/keep.log", "src/run.log", "src/x/c.py"}


RULES = (
    "*.log !keep.log", "dist/", "/dist", "src/*.ts", "**/x", "src/** !src/x/", "src/x/*", "*.[ct]s", "a.??", "!a.ts",
    "src/**/c.py", "x/", "s*c", "/*/x", "* !*/ !*.md",
)  # fmt: skip


def test_rules_are_read_as_git_reads_them(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    subprocess.run(["git", "init", "-q", str(top)], check=True, capture_output=True)
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    asked = ["git", "-C", str(top), "check-ignore", "--no-index", *FILES]
    for rules in RULES:
        (top / ".gitignore").write_text(rules.replace(" ", "\n") + "\n")
        ignored = subprocess.run(asked, capture_output=True, text=True).stdout.split()
        found = IgnoreRules(str(top), str(top), (".gitignore",), hidden=True)
        assert [name for name in FILES if not found.admits(str(top / name))] == ignored, rules
