"""The walk through a script finds the writes of each command; bash really runs it to confirm them."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.files import files_at
from support.fixtures import time_limit

from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import Effects, is_known
from swarm_hook_core.shell.walk import Walk
from swarm_hook_core.shell.words import fields
from swarm_hook_core.wildcards import match

FILES = {
    "a.py": "foo a.py\n",
    "b.py": "bar\n",
    "c d.txt": "",
    ".hidden": "",
    "names": "a.py\nb.py\n",
    "sub/m.py": "foo\n",
    "sub/n.js": "",
    "sub/deep/z.py": "",
    "write.sh": '#!/bin/sh\nfor f in "$@"; do echo > "$f.out"; done\n',
    "opaque": "#!/usr/bin/env python3\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files_at(tmp_path, FILES)
    (tmp_path / "home").mkdir()
    (tmp_path / "write.sh").chmod(0o755)
    return tmp_path


def found(command: str, folder: Path) -> tuple[set[str], list[str]]:
    """The files of `folder`, or named in it, that are certainly written; and why something else may be."""
    effects = effects_of(command, str(folder), {"HOME": str(folder / "home"), "PATH": os.environ["PATH"]})
    names = {os.path.normpath(os.path.join(write.folder, write.path)) for write in effects.writes}
    for path in (str(folder / name) for name in FILES):
        if any(path.startswith(tree.root.rstrip("/")) and tree.admits(path) is True for tree in effects.trees):
            names.add(path)
    inside = {os.path.relpath(name, folder) for name in names if name.startswith(str(folder) + "/")}
    return inside, [guess.why for guess in effects.guesses]


# Command -> files it writes, by kind. Nothing else may be found, nor guessed.
CERTAIN = {
    # redirections
    "echo > x": "x",
    ">x": "x",
    "echo hi >>x 2>y": "x y",
    "echo >|x; echo &>y; echo &>>z": "x y z",
    "echo >& x; echo 2>&1 >&2; echo >&-": "x",
    "cat <> x": "x",
    "{ echo; ls; } >x 2>&1 && (pwd) >y": "x y",
    "for i in 1; do echo; done > x < names | cat > y": "x y",
    "if true; then echo; fi >x; while false; do :; done >y; case a in b) ;; esac >z": "x y z",
    "f() { echo; } > x; f; f": "x",
    "exec >x 3>y; echo": "x y",
    "echo {fd}>x": "x",
    ">x echo a b": "x",
    "echo a >x b": "x",
    "cd sub && echo >x; echo >y": "sub/x sub/y",
    "(cd sub && echo >x); echo >y": "sub/x y",
    'echo > "$(echo x)"; echo > `echo y`': "x y",
    "echo 2>/dev/null >/dev/stdout": "",
    # here-documents
    "cat <<E > x && rm b.py; ls\n; rm a.py\nE\nrm y": "x b.py y",
    "cat > x <<'E' | tee y\n$(rm a.py)\nE": "x y",
    "cat <<E > x\n$(rm a.py) `rm b.py` \\$(rm no)\nE": "x a.py b.py",
    "cat <<-E > x\n\trm no\n\tE\nrm y": "x y",
    "cat <<A <<B > x\nrm no\nA\nrm no\nB\nrm y": "x y",
    "xargs rm <<< 'x y'": "x y",
    "git log --format=\"$(cat <<'E'\nit's ) \" fine\nE\n)\" > x": "x",
    # folders
    "cd sub; rm x; cd ..; rm y; cd -; rm z": "sub/x y sub/z",
    "cd sub | true; rm x; cd sub & rm y": "x y",
    "pushd sub; rm x; popd; rm y": "sub/x y",
    "cd sub || exit; rm x": "sub/x",
    "cd nowhere || rm x; cd nowhere && rm y; rm z": "x nowhere/y z",
    "mkdir -p p/q && cd $_ && echo >x": "p/q p/q/x",
    "cd ~ && rm x; rm ~+/y": "home/x home/y",
    "if [ -d sub ]; then cd sub; fi; rm x": "sub/x",
    # quoting, expansion
    r"""rm 'a b' "c d" e\ f g"h"'i' $'j\tk' $"l" """: "a b|c d|e f|ghi|j\tk|l",
    "rm a\\\nb": "ab",
    'x=1 y="2 3"; rm "$x" $y "$y" ${x}a ${z:-d} "${z:-e f}" ${x:+g}': "1|2|3|2 3|1a|d|e f|g",
    "x=p/q.tar.gz; rm ${x##*/} ${x%.*} ${x%%.*} ${x/q/r} ${x//[pq]/s} ${#x} ${x:0:1} ${x^^}": (
        "q.tar.gz p/q.tar p/q p/r.tar.gz s/s.tar.gz 10 p P/Q.TAR.GZ"
    ),
    "rm $((1 + 2 * 3)) $((x = 4, x << 1)) $x": "7 8 4",
    "rm {x,y}{1..3} {a..c}z": "x1 x2 x3 y1 y2 y3 az bz cz",
    "rm *.py [c]* '*.js' *.nope": "a.py|b.py|c d.txt|*.js|*.nope",
    "rm sub/*/*.py sub/[!m]*.js; cd sub; rm ?.py": "sub/deep/z.py sub/n.js sub/m.py",
    "shopt -s globstar; rm **/z.py sub/**/m.py": "sub/deep/z.py sub/m.py",
    "shopt -s extglob\nrm !(b|s*).py": "a.py",
    "set -f; rm *.py": "*.py",
    "a=(x 'y z'); a+=(w); rm \"${a[@]}\" ${a[0]}1 ${#a[@]}": "x|y z|w|x1|3",
    "declare -A m=([k]=v); rm ${m[k]} ${!m[@]}": "v k",
    "a[1]=x; a[0]=y; a[0]+=z; declare -A m; m[k]=v; m[k]+=w; rm ${a[1]} ${a[0]} ${m[k]}": "x yz vw",
    "command export v=x; rm $v": "x",
    "IFS=,; x=a,b; rm $x": "a b",
    'set -- x \'y z\'; rm "$@" $# $1a; shift; rm "$1"': "x|y z|2|xa",
    "rm $(cd sub && pwd)/x $(dirname p/q) $(basename p/q.c .c)": "sub/x p q",
    "rm <(echo) x >(cat > y)": "x y",
    # statements
    "rm x && rm y || rm z; rm v & rm w | rm u": "x y z v w u",
    "! rm x; time rm y; time { rm z; }; coproc X { rm v; }": "x y z v",
    "if a=1; then rm x; elif true; then rm y; else rm z; fi": "x y z",
    "if true; then f=x; else f=y; fi; rm $f": "x",
    "case ab in a) rm x;; a*) rm y;; *) rm z;; esac": "y",
    "case a in a) rm x;& b) rm y;; c) rm z;; esac": "x y",
    "for f in x 'y z'; do rm \"$f\"; done; for g; do rm g; done": "x|y z",
    "for f in x y; { rm $f; }": "x y",
    "for ((i = 0; i < 3; i++)); do rm $i; done": "0 1 2",
    "for f in a b c; do [ $f = b ] && continue; rm $f; done": "a c",
    "while :; do rm x; break; rm no; done": "x",
    "i=3; until [ $i -eq 0 ]; do rm f$i; i=$((i-1)); done": "f3 f2 f1",
    "while read -r f g; do rm $f; done < names": "a.py b.py",
    "while IFS= read -r f; do rm \"$f\"; done < <(printf '%s\\n' x y)": "x y",
    "IFS=, read -r p q <<< x,y; rm $p $q": "x y",
    'mapfile -t a < names; rm "${a[@]}"': "a.py b.py",
    "read -r -d '' s <<'E'\nrm x\nrm y\nE\nbash -c \"$s\"; IFS= read -r -d: f <<< z:u; rm $f": "x y z",
    "rm $(< names) `< names`": "a.py b.py",
    "f() { local v=$1; rm $v; }; v=y; f x; rm $v": "x y",
    "f() { cd sub; return; rm no; }; f; rm x": "sub/x",
    "rm x; exit; rm no": "x",
    "(exit); rm x": "x",
    "[ -f a.py ] || exit 1; [[ a == b ]] && rm x; rm y": "x y",
    "alias k='rm x'\nk y": "x y",
    "trap 'rm x' EXIT": "x",
    "unalias k; alias k='rm x' j='rm y'; unalias k; unalias -a; touch z": "z",
    "unset v; v=; rm $v x": "x",
    # programs that run others
    "sudo -u me env A=1 nice -n 5 timeout 3 rm x": "x",
    "env -C sub rm x; env X=y sh -c 'rm $X'": "sub/x y",
    "bash -ec 'cd sub; rm \"$1\" $0' x y": "sub/x sub/y",
    "bash <<E\nrm x\nE\necho 'rm y' | sh": "x y",
    "cat > s.sh <<'E'\nrm $1\nE\nbash s.sh x; sh ./s.sh y": "s.sh x y",
    "./write.sh p 'q r'": "p.out|q r.out",
    ". ./write.sh p": "p.out",
    "eval 'x=1; rm' '$x'": "1",
    "command rm x; \\rm y; builtin cd sub; rm z": "x y sub/z",
    "npx -y prettier@3 --write a.py; bunx @biomejs/biome format --write b.py": "a.py b.py",
    "uv run --with x black a.py; poetry run black b.py": "a.py b.py",
    "su me -c 'rm x'; script -c 'rm y' log; watch rm z; flock l rm w": "x y log z w l",
    "xargs -I{} sh -c 'rm {}' < names": "a.py b.py",
    "xargs -n1 rm < names; printf 'x\\0y z\\0' | xargs -0 rm": "a.py|b.py|x|y z",
    "echo x y | xargs -n 1 -P 4 touch; xargs -a names touch": "x y a.py b.py",
    "parallel rm {}.o ::: x y": "x.o y.o",
    "find . -name '*.py' -delete": "a.py b.py sub/m.py sub/deep/z.py",
    "find . -maxdepth 1 -name '*.py' ! -name 'b*' -exec rm {} +": "a.py",
    "find . \\( -name deep -prune \\) -o -name '*.py' -print | xargs rm": "a.py b.py sub/m.py",
    "find . -path './sub/*' -type f -print0 | xargs -0 rm": "sub/m.py sub/n.js sub/deep/z.py",
    "find sub -name deep -exec rm -rf {} +": "sub/deep/z.py",
    "find . -name m.py -execdir touch x {} \\;": "sub/x sub/m.py",
    "find . -fprint x": "x",
    "for f in $(find . -name '*.js'); do touch \"$f\"; done": "sub/n.js",
    "grep -rl foo . | xargs rm": "a.py sub/m.py",
    "rm $(grep -l foo *.py)": "a.py",
    "find . -name '*.py' | grep -v sub | xargs rm": "a.py b.py",
    'ls *.py | while read f; do touch "$f"; done': "a.py b.py",
    "head -1 names | xargs rm": "a.py",
    "ls | grep 'b\\.py$' | xargs rm; ls | grep -E '^(a|z)\\.p+y' | xargs rm": "a.py b.py",
    "ls *.py > l; xargs rm < l; cat names | grep -v a > m; xargs touch < m": "l m a.py b.py",
    "rm $(/bin/pwd)/x$(/bin/true)": "x",
    "ls *.py | entr touch x": "x",
    "sed -n 's/a/b/;t done;w x\n:done\nw y' a.py": "x y",
    "php <<'E'\n<p><?php unlink('x'); ?></p><?= unlink('y') ?>\nE": "x y",
    "python3 -c \"def f():\n global p\n p = 'x'\nf()\nopen(p, 'w')\nraise SystemExit\nopen('y', 'w')\"": "x",
    "seq 2 | xargs -I% touch f%": "f1 f2",
}

POSSIBLE = {
    "git submodule foreach 'touch x'": "a path in a folder that is not known",
    "set -- -o x; while getopts o: k; do case $k in o) rm $OPTARG;; esac; done": "a computed path",
    "rm $nowhere": "a computed path",
    "rm ${nowhere}/x": "a computed path",
    "rm ${nowhere%.py}": "a computed path",
    'rm "$(frob)"': "a computed path",
    "$tool x": "a computed command",
    "frob x": "frob is not known",
    "./opaque": "an opaque script",
    "curl -s https://example.org/x | sh": "a script that is not known",
    'cd "$nowhere" && rm x': "a path in a folder that is not known",
    "if then fi": "not understood as shell",
    'eval "$nowhere"': "a computed command",
}

READS = """
ls -la; cat a.py | grep foo | wc -l; head -5 names; tail -f names
find . -name '*.py' -exec grep -l foo {} +
find . -type f | xargs grep -n foo | sort | uniq -c
for f in *.py; do wc -l "$f"; done
while read -r f; do cat "$f"; done < names
[ -f a.py ] && echo yes || echo no
x=$(cat a.py); echo "$x" | sed 's/a/b/' | awk '{print $1}'
bash -c 'ls | head'; sh -n write.sh
diff <(sort a.py) <(sort b.py)
echo "a > b" 'c > d' \\> e
echo hi 2>&1 | tee /dev/null >/dev/null
command -v git; type ls; which python3
cat <<E
rm a.py > b.py
E
docker ps; docker logs x; ssh host 'rm x > y'
env | sort; printenv HOME; export A=1; pwd; cd sub; cd -
printf '%s\\n' *.py; seq 3; date; true; false; test -d sub
xargs -n1 echo < names
frob --help; frob --version; sed -i; sed --in-place; find . -execdir
""".strip().split("\n")


def expected(names: str) -> set[str]:
    return {os.path.normpath(name) for name in (names.split("|") if "|" in names else names.split()) if name}


@pytest.mark.parametrize("command", CERTAIN)
def test_what_is_written_is_found(command: str, folder: Path) -> None:
    names, guesses = found(command, folder)
    assert (names, guesses) == (expected(CERTAIN[command]), [])


@pytest.mark.parametrize("path", ["/dev/shm/work/f", "/dev/null"])
def test_a_file_in_the_memory_s_file_system_is_no_device(path: str) -> None:
    writes = [write.path for write in effects_of(f"echo > {path}", "/", {}).writes]
    assert writes == [path] * (path != "/dev/null")


@pytest.mark.parametrize("command", POSSIBLE)
def test_what_only_a_run_could_tell_is_a_guess(command: str, folder: Path) -> None:
    names, guesses = found(command, folder)
    assert not names
    assert POSSIBLE[command] in guesses


def test_reading_writes_nothing(folder: Path) -> None:
    for command in "\n".join(READS).replace("cat <<E\nrm a.py > b.py\nE\n", "").split("\n"):
        assert found(command, folder) == (set(), []), command
    assert found("cat <<E\nrm a.py > b.py\nE", folder) == (set(), [])


def test_a_variable_that_a_branch_has_set_is_possible(folder: Path) -> None:
    effects = effects_of("if frob --version; then f=a.py; else f=b.py; fi; rm $f", str(folder), {})
    (tree,) = effects.trees
    answers = {name: tree.admits(str(folder / name)) for name in FILES if str(folder / name).startswith(tree.root)}
    assert (answers.pop("a.py"), answers.pop("b.py")) == (None, None)
    assert set(answers.values()) == {False}


def test_zsh_does_not_split(folder: Path) -> None:
    command = "x='p q'; a=(v 'w z'); rm $x ${a[1]} $a; bash -c 'rm $x'; rm **/z.py"
    effects = effects_of(command, str(folder), {"SHELL": "/bin/zsh"})
    assert [write.path for write in effects.writes] == ["p q", "v", "v", "w z", "p", "q", "sub/deep/z.py"]


def test_more_names_than_are_followed_one_by_one(folder: Path) -> None:
    for number in range(400):
        (folder / f"f{number}.txt").touch()
    for command in ("rm f*.txt", "for f in f*.txt; do rm $f; done", "ls f*.txt | xargs rm"):
        effects = effects_of(command, str(folder), {})
        path = str(folder / "f399.txt")
        written = {os.path.join(write.folder, write.path) for write in effects.writes}
        assert path in written or any(tree.admits(path) is True for tree in effects.trees), command
        assert not any(tree.admits(str(folder / "a.py")) for tree in effects.trees), command


def test_derived_names_of_files_that_were_found(folder: Path) -> None:
    command = 'find . -name "*.js" | while read -r f; do mv "$f" "${f%.js}.ts"; done'
    assert "sub/n.ts" in found(command, folder)[0]
    for number in range(300):  # too many to be named one by one
        (folder / f"sub/{number}.js").write_text("")
    effects = effects_of(command, str(folder), {})
    assert any(tree.admits(str(folder / "sub/n.ts")) is True for tree in effects.trees)


WORDS = r"""
$x "$x" '$x' \$x "\a\"b" a\ b a"b c"d'e f' $'a\nb\x41\u00e9' "$y" $y x$y"z" $e "$e" $e$x ${e:-def}
"${e:-a b}" ${e:-"a b"} ${e:-a b}
${p##*/} ${p#*/} ${p%/*} ${p%%/*} ${p%.*} ${p//\//_} ${p/#\/usr/X} ${p/%gz/Z} ${#p} ${p:1:3} ${p: -2} ${x^} ${x/[el]/-}
"${arr[@]}" ${arr[@]} "${arr[*]}" ${#arr[@]} "${arr[@]:1}" ${arr[-1]} "${arr[@]/o/0}" "x${arr[@]}y"
"$@" $@ "$*" ${@:2}
$((n%4)) $((n>3?1:2)) $((2**8)) $((-7/2)) $((n==7 && !0)) $((n++))$n
{a,b}{1,2} {a,{b,c}} {01..03} {a..e..2} ${x}{1,2}
*.py "*.py" $g "$g" sub/* [ab].py [!a].py ~ ~/x "~" x=~/y $(echo $(echo n)) "$(printf 'a\nb\n\n')" `echo \`echo d\``
$(case a in a) echo yes;; esac) "$(echo "$(echo ")")")" "it's" 'a'\''b' a#b $ "$"
{a} {} "${undef:-'q'}" ${y// /_} ${y%% *}
${e:-a"b c"d e} ${e:-~/x} "${e:-~/x}" ${e:-x ~/y} "${e:-"$@"}" "${e:-a\}b}" ${e:-${x:-y} z} $n{a,b} ${p//"/"/_} "${x%'o'}" ${arr[n-6]}
"""
SETTING = (
    'x=hello y="a b  c" e= na=A nb=B p=/usr/lib/foo.tar.gz n=7 g="*.py"; arr=(one "two 2" three); set -- P1 "P 2" ""; '
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash on PATH to compare with")
def test_words_become_what_bash_makes_of_them(folder: Path) -> None:
    from swarm_hook_core.shell.parser import script_of

    (command,) = script_of("printf " + WORDS.replace("\n", " ")).statements
    words = command.words[1:]
    home = {"HOME": "/home/u", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    script = SETTING + "cd .\n" + "\n".join(f'printf "%s\\1" {word.raw}; printf "\\2"' for word in words)
    run = subprocess.run(["bash", "-c", script], cwd=folder, env=home, capture_output=True, timeout=60, check=True)
    truth = [one.split("\1")[:-1] for one in run.stdout.decode().split("\2")[:-1]]
    walk = Walk(Effects(), str(folder), home)
    walk.script(SETTING)
    for word, wanted in zip(words, truth, strict=True):
        assert (fields(walk, walk.scope, word) or [""]) == wanted, word.raw


def test_patterns() -> None:
    assert match("a.py", "*.py") and match(".py", "*.py") and not match("a.pyc", "*.py")
    assert match("x[1]", r"x\[1\]") and match("x]", "x[]]") and not match("xa", "x[!a-c]")
    assert match("aXbXc", "a*b*c") and not match("ab", "a?b")
    assert match("abab", "+(ab)", True) and match("c", "!(a|b)", True) and not match("a", "!(a|b)", True)
    started = time.monotonic()
    assert not match("a" * 400, "*a" * 60 + "b")
    assert time.monotonic() - started < time_limit(30)


def test_what_is_too_long_keeps_what_was_found(folder: Path) -> None:
    effects = effects_of("rm first; while true; do rm loop; done; rm last", str(folder), {})
    assert "first" in {write.path for write in effects.writes}
    assert effects.guesses


def test_what_a_process_holds_costs_a_walk_no_time(folder: Path) -> None:
    """Looking through all that a server holds for garbage takes longer than a walk may."""

    def look(phase: str, _info: dict) -> None:
        end = time.thread_time() + 0.005
        while phase == "start" and time.thread_time() < end:
            pass

    text = "for x in a b c d e f g h i; do echo > $x; done; touch last"
    effects_of(text, str(folder), {})  # its imports are loaded from then on
    usual = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(10)
    try:
        effects = effects_of(text, str(folder), {})
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*usual)
    assert len(effects.writes) == 10 and not effects.guesses and gc.isenabled()


def test_marks_do_not_come_from_the_command(folder: Path) -> None:
    effects = effects_of("rm \0?\0 x\0y", str(folder), {})
    assert {write.path for write in effects.writes} == {"?", "xy"}
    assert all(is_known(write.path) for write in effects.writes)
