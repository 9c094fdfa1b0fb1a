"""Commands made to hurt their reader, and a process that reads them: ``python -m corpora.hostile``."""

import json
import os
import random
import resource
import sys
import time

from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import MOST

SHELL = "'\"`$(){}[]<>|&;*?!#~\\ \n\tabc=EOF0123/-"
PIECES = [
    "rm ",
    "x ",
    "> ",
    "$(",
    ")",
    "'",
    '"',
    "<<EOF\n",
    "EOF\n",
    "; ",
    "| ",
    "{ ",
    "} ",
    "for i in ",
    "do ",
    "done ",
    "\\",
    "$x",
    "${",
    "}",
]


def cases(fifo: str) -> dict[str, str]:
    """Name -> command. `fifo`: a named pipe without a writer."""
    chance = random.Random(4)
    made = {
        "empty": "",
        "blank": " \n\t " * 1000,
        "bytes": bytes(chance.randrange(256) for _ in range(20000)).decode("latin-1"),
        "surrogates": "echo x > '\udcff\ud800' \udc80" * 50,
        "NULs": "echo x > a\0b; rm \0" * 200,
        "marks": "echo > \0?\0 \0found 1\0 > \0",
        "single quotes": "'" * 9999,
        "double quotes": '"' * 9999,
        "open quote": "echo 'x > y; rm -rf " * 3000,
        "open double quote": 'echo "$(rm "' * 3000,
        "backslashes": "\\" * 50001,
        "$(": "$(" * 20000,
        "(": "(" * 20000,
        "{": "{ " * 20000,
        "`": "`" * 20001,
        "$((": "$((" * 10000,
        "${": "${a:-" * 10000,
        "[[": "[[ " * 10000,
        "closed $(": "$(" * 3000 + "rm x" + ")" * 3000,
        "closed (": "(" * 3000 + "rm x" + ")" * 3000,
        "closed ${": "echo > " + "${a:-" * 2000 + "x" + "}" * 2000,
        "closed $((": "echo $((" + "(" * 5000 + "1" + ")" * 5000 + "))",
        "nested quotes": "echo " + '"$(echo ' * 500 + "x" + ')"' * 500,
        "if": "if true; then " * 3000 + "rm x;" + "fi;" * 3000,
        "while": "while true; do " * 3000,
        "case": "case x in x) " * 3000,
        "long word": "rm " + "a" * 1_000_000,
        "long path": "rm " + "a/" * 30000,
        "long name": "> " + "../" * 20000 + "x",
        "many words": "rm " + "x " * 200_000,
        "redirections": "echo " + "> f " * 10_000,
        "other redirections": "".join(f"> f{n} " for n in range(10_000)),
        "pipes": "cat x" + " | cat" * 20_000,
        "short pipes": "a" + "|b" * 149,
        "few pipes, often": ("a" + "|b" * 20 + "\n") * 7,
        "and": "true" + " && true" * 20_000,
        "semicolons": ";" * 50_000,
        "ampersands": "& " * 20_000,
        "lines": "rm x\n" * 12_000,
        "writes": "".join(f"echo > f{n}\n" for n in range(4000)),
        "here-documents": "".join(f"cat <<E{n} > f{n}\nx\nE{n}\n" for n in range(2500)),
        "here-documents on a line": "cat "
        + "".join(f"<<E{n} " for n in range(2000))
        + "\n"
        + "".join(f"E{n}\n" for n in range(2000)),
        "unended here-documents": "cat <<EOF\n" * 4000,
        "deep here-documents": "".join(f"bash <<'E{n}'\n" for n in range(300))
        + "rm x\n"
        + "".join(f"E{n}\n" for n in range(299, -1, -1)),
        "here-document, 1 MB": "cat > x <<'EOF'\n" + "line > $(rm y) 'quote\n" * 50_000 + "EOF\n",
        "here-document expanded, 1 MB": "cat > x <<EOF\n" + "line $(echo y) $z\n" * 60_000 + "EOF\n",
        "1 MB": "echo hello > file.txt; " * 45_000,
        "1 MB of python": "python3 - <<'EOF'\n" + "open('x', 'w').write('y')\n" * 40_000 + "EOF\n",
        "deep python": "python3 -c '" + "(" * 5000 + ")" * 5000 + "'",
        "deep python lists": "python3 -c 'x = " + "[" * 150 + "]" * 150 + "'",
        "long python": "python3 -c 'x = " + "1 + " * 5000 + "1'",
        "python loops": "python3 -c '"
        + "\n".join(" " * n + "for i in range(10**9):" for n in range(15))
        + "\n"
        + " " * 15
        + 'open(str(i), "w")\'',
        "python strings": 'python3 -c \'x = "a"\n' + "x = x + x\n" * 60 + 'open(x, "w")\'',
        "python product": 'python3 -c \'open("a" * 10**10, "w"); open(str(9**9**9), "w"); open("%999999999d" % 1, "w")\'',
        "python recursion": "python3 -c 'def f(x):\n f(x); f(x)\nf(1)'",
        "node": "node -e '" + "fs.writeFileSync(`${a}`, " * 3000 + "'",
        "perl": "perl -e '" + 'open(F, ">$x"); ' * 3000 + "'",
        "awk": "awk '" + '{ print > "f" } ' * 3000 + "'",
        "sed": "sed -i '" + "s/a/b/w f;" * 5000 + "' x",
        "sed blocks": "sed -n '" + "{" * 10000 + "'",
        "brace range": "rm {1..999999}",
        "brace ranges": "rm " + "{1..9999}" * 5,
        "brace range, letters": "rm {a..z}{a..z}{a..z}{a..z}{a..z}",
        "huge brace range": "touch {1..99999999999999999999}",
        "negative step": "touch {9..1..-0} {1..9..0}",
        "brace product": "rm " + "{a,b}" * 30,
        "nested braces": "rm " + "{a," * 3000 + "b" + "}" * 3000,
        "open braces": "rm " + "{a," * 5000,
        "globs": "rm /*/*/*/*/*",
        "deep glob": "shopt -s globstar; rm /**/*/**/*",
        "star glob": "rm " + "*a" * 60 + "b",
        "glob classes": "rm " + "[a-z]" * 3000,
        "open class": "rm " + "[" * 5000,
        "extended glob": "shopt -s extglob; rm " + "+(a|" * 300 + "b" + ")" * 300,
        "catastrophic extglob": "shopt -s extglob; case aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac in +(+(+(a)))b) rm x;; esac; x="
        + "a" * 5000
        + "; echo > ${x%%+(+(a))b}",
        "pattern trims": "x=" + "a" * 20000 + "; echo > ${x%%*b*c*d}${x##*b*c*d}${x//a*b/c}",
        "replace grows": "x=aaaaaaaaaa; " + "x=${x//a/aaaaaaaaaa}; " * 30 + "echo > $x",
        "variable doubles": "x=aa; " + "x=$x$x; " * 60 + "echo > $x",
        "words double": "x='a a'; " + 'x="$x $x"; ' * 40 + "rm $x",
        "array doubles": "x=(a a); " + 'x=("${x[@]}" "${x[@]}"); ' * 40 + 'rm "${x[@]}"',
        "arithmetic": "echo > f$((9**9**9**9)) > g$((1<<99999999)) > h$((" + "1+" * 5000 + "1))",
        "division": "echo > f$((1/0)) > g$((1%0)) > h$(( -9223372036854775808 / -1 ))",
        "printf": "echo > $(printf '%999999999d' 1) > $(printf '%*d' 999999999 1) > $(printf 'x%.0s' {1..99999})",
        "seq": "for i in $(seq 1 1000000000); do rm f$i; done; seq 1e9 | xargs rm",
        "yes": "rm $(yes | head -n 1000000000)",
        "loops": "".join(f"for v{n} in 1 2 3 4 5 6 7 8 9; do " for n in range(12)) + "rm x;" + "done;" * 12,
        "loop product": "for a in {1..2000}; do for b in {1..2000}; do echo > $a$b; done; done",
        "endless loop": "while true; do rm x; done; until false; do :; done; for ((;;)); do rm y; done",
        "counted loop": "for ((i=0; i<1000000000; i++)); do echo > f$i; done",
        "while counted": "i=0; while [ $i -lt 1000000000 ]; do i=$((i+1)); echo > f$i; done",
        "recursion": "f() { f; f; }; f",
        "growing recursion": 'f() { f "$@" "$@"; }; f a',
        "mutual recursion": "f() { g; g; }; g() { f; f; }; f",
        "function builds functions": "f() { eval 'f() { f; }'; f; }; f",
        "fork bomb": ":(){ :|:& };:",
        "eval of eval": 'x=\'eval "$x"\'; eval "$x"',
        "eval grows": "x='x=$x$x; eval $x'; eval $x",
        "trap": "trap 'trap \"$x\" EXIT; rm y' EXIT",
        "alias": "alias a=b b=a; a",
        "bash -c of itself": 'bash -c \'bash -c "bash -c \\"rm x\\""\' ' * 200,
        "deep bash -c": "bash -c " * 3000 + "x",
        "deep env": "env " * 20000 + "rm x",
        "deep sudo": "sudo nohup nice timeout 5 " * 4000 + "rm x",
        "deep xargs": "xargs " * 10000 + "rm",
        "deep find": "find . -exec " * 3000 + "rm {} \\;",
        "find words": "find / " + "-o -name x " * 10000 + "-delete",
        "find parentheses": "find . " + "\\( " * 5000 + "-delete",
        "find /": "find / -name '*.py' -exec sed -i s/a/b/ {} +; rm -rf /; grep -rl x / | xargs rm; cat $(find / -type f) > y",
        "cd": "cd .. && " * 3000 + "rm x",
        "cd loops": "while cd ..; do rm x; done; pushd . " * 100,
        "cd that may fail": "mkdir x; " + "cd x; for i in 1 2 3; do touch a; cd y; done; " * 3000,
        "cd that may fail, nested": "mkdir x; " + "cd x; { touch a; " * 50 + "}; " * 50,
        "cd that may fail, asked": "mkdir x; " + "if ! cd x; then touch a; elif cd y; then " * 50 + "b; " + "fi; " * 50,
        "cd that may fail, 256 KB": "mkdir x; cd x; " + "find . -delete; cp a b; " * 10_000,
        "found, often": "find / -name '*a*' | xargs rm; " * 500,
        "found in loops": "for f in $(find /usr); do for g in $(find /usr); do cp $f $g; done; done",
        "found by the found": "find /usr -exec bash -c 'find /usr -exec rm {} +' \\;",
        "found one by one": "find /usr /etc -maxdepth 2 | while read -r f; do find $f | xargs -n 1 mv $f; done",
        "rename": "rename 's/" + "(a*)*" * 20 + "b/c/' " + "a" * 200 + "; rename 's/" + ".*" * 50 + "/b/' " + "a" * 300,
        "output options": "frob " + "-o x " * 20_000 + "; frob " + "--output-dir " * 20_000,
        "negations": "! " * 30_000 + "rm x; " + "while ! a; do " * 3000,
        "indirection": "a=b; b=a; echo > ${!a} ${!b}; " * 200,
        "self default": "echo > ${x:=${x:=${x:=y}}}" * 500,
        "IFS": "IFS=a; x=" + "ab" * 20000 + "; rm $x",
        "read": "read -r " + "a " * 5000 + "<<< '" + "x " * 5000 + "'; rm $a",
        "substitutions": "rm " + "$(cat x) " * 5000,
        "process substitutions": "cat " + "<(rm x) " * 3000 + " >(cat > y)" * 1000,
        "git": "git checkout -- x; " * 2000,
        "archives": "tar xf /dev/zero; unzip /dev/urandom; patch < /dev/zero; tar xzf /dev/random",
        "devices": "sed -i -f /dev/zero x; xargs -a /dev/zero rm; source /dev/zero; bash /dev/zero; cat /dev/zero | xargs rm",
        "fifo": "bash " + fifo + "; source " + fifo + "; patch < " + fifo + "; tar xf " + fifo + "; python3 " + fifo,
        "here-string": "bash <<< " + "'bash <<< " * 500,
        "comments": "# " * 50000,
        "control characters": "".join(map(chr, range(1, 32))) * 500,
        "emoji": "rm " + "\U0001f389" * 20000,
        "combining": "rm " + "e\u0301" * 20000,
        "right to left": "\u202e" * 5000 + "rm x > y",
        "carriage returns": "rm x\r\n" * 5000,
        "coprocesses": "coproc rm x; " * 2000,
        "selects": "select x in a b; do rm $x; done; " * 1000,
        "arrays": "declare -A a; " + "a[$((x++))]=y; " * 3000,
        "test": "[[ " + "a && " * 5000 + "b ]]",
        "test groups": "[ " + "! " * 10000 + "a ]",
        "assignment words": "a=b " * 10000 + "rm x",
        "tilde": "rm ~" + "x" * 10000 + " ~root ~nobody ~+ ~- ~9",
    }
    for number in range(40):
        made[f"noise {number}"] = "".join(chance.choice(SHELL) for _ in range(chance.choice((50, 500, 5000))))
    for number in range(20):
        made[f"pieces {number}"] = "".join(chance.choice(PIECES) for _ in range(800))
    return made


def main(fifo: str, memory: str, seconds: str) -> int:
    """Read each within `memory` bytes of address space; print name -> (processor seconds, error) as JSON.

    A command that takes longer than `seconds` is read once more, and the shorter time counts.
    """
    environment = {"HOME": os.getcwd(), "PATH": os.environ.get("PATH", "")}
    effects_of(
        "echo x > y; python3 -c 'open(1)'; git status; cp a b; sed -i s/a/b/ c; perl -e 1; node -e 1", os.getcwd(), {}
    )
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    told = {}
    for name, command in cases(fifo).items():
        spent, error = _read(command, environment)
        if spent > float(seconds) and not error:
            again, error = _read(command, environment)
            spent = min(spent, again)
        told[name] = (spent, error)
    print(json.dumps(told))
    return 0


def _read(command: str, environment: dict[str, str]) -> tuple[float, str]:
    started = time.process_time()
    try:
        effects = effects_of(command, os.getcwd(), environment)
        held = max(map(len, (effects.writes, effects.trees, effects.git, effects.guesses)))
        error = "" if held <= MOST + 2 else f"{held} effects"
    except BaseException as caught:
        error = f"{type(caught).__name__}: {caught}"[:200]
    return time.process_time() - started, error


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
