"""Shell commands of any size for ``large_calls``: by name, for a size in characters, the same each time."""

import random
from collections.abc import Callable, Iterator

SIZES = (4_000, 64_000, 256_000)
RANDOM_TEXTS = 48

# The repeated text of a command of a given size; `{n}` is its number.
REPEATED = {
    "short commands": "echo {n}\n",
    "commands that write": "echo {n} > out/f{n}.txt\n",
    "one file, written often": "echo {n} >> out/log.txt\n",
    "removed one by one": "rm -f out/f{n}.o\n",
    "programs nobody knows": "frobnicate{n} --in x{n}\n",
    "made folders": "mkdir -p out/d{n}\n",
    "moved files": "mv out/a{n} out/b{n}\n",
    "edited in place": "sed -i s/a/b/ out/f{n}.py\n",
    "assignments": "v{n}=value{n}\n",
    "assignments, used": "v{n}=out/x{n}; : > $v{n}\n",
    "array elements": "a[{n}]=x{n}\n",
    "exports": "export V{n}=x{n}\n",
    "conditions": "if [ -f x{n} ]; then rm x{n}; else touch y{n}; fi\n",
    "and, or": "test -f x{n} && rm x{n} || touch y{n}\n",
    "loops": "for i in a b c; do echo $i > out/$i{n}; done\n",
    "while loops": "while read -r l; do echo $l > out/l{n}; done < in{n}\n",
    "cases": "case $x in a{n}) rm a{n};; *) touch b;; esac\n",
    "functions": "f{n}() {{ rm x{n}; }}\n",
    "functions, called": "f{n}() {{ rm out/x{n}; }}; f{n}\n",
    "here-documents": "cat > out/h{n} <<EOF\nline {n}\nEOF\n",
    "here-documents, expanded": "cat > out/h{n} <<EOF\n$(echo {n}) $x ${{y:-z}}\nEOF\n",
    "here-strings": 'cat <<< "a {n}" > out/s{n}\n',
    "substitutions": "x=$(echo {n})\n",
    "substitutions that write": "x=$(echo {n} | tee out/t{n})\n",
    "backquotes": "x=`echo {n}`\n",
    "process substitutions": "diff <(cat a{n}) <(cat b{n}) > out/d{n}\n",
    "pipelines": "cat x{n} | sort | uniq | tee out/p{n}\n",
    "changed folders": "cd d{n} && touch x && cd ..\n",
    "subshells": "(cd out; touch s{n})\n",
    "groups": "{{ echo {n}; date; }} > out/g{n}\n",
    "background": "sleep {n} & \n",
    "arithmetic": "(( i{n} = {n} * 2 + 1 ))\n",
    "arithmetic words": "echo $(( {n} * 2 )) > out/a$(( {n} + 1 ))\n",
    "parameters": "echo ${{x{n}:-a}} ${{y%%.*}} ${{z//a/b}} > out/p{n}\n",
    "braces": "touch out/{{a,b,c}}{n}.{{x,y}}\n",
    "brace ranges": "touch out/r{{1..20}}-{n}\n",
    "wildcards": "rm -f out/*{n}*.o\n",
    "wildcards that match": "rm -f src/f{n}*.py\n",
    "quotes": "echo 'a'\"b\"\\c$'d\\n' > out/'q'\"{n}\"\n",
    "comments": "# a comment of some length about nothing, {n}\n",
    "evaluated": "eval 'echo {n} > out/e{n}'\n",
    "shells": "bash -c 'echo {n} > out/b{n}'\n",
    "python": 'python3 -c \'open("out/p{n}", "w").write("x")\'\n',
    "node": 'node -e \'require("fs").writeFileSync("out/n{n}", "x")\'\n',
    "perl": "perl -pi -e s/a/b/ out/f{n}\n",
    "git": "git checkout -- out/f{n}\n",
    "git added": "git add src/f{n}.py\n",
    "found": "find out -name 'f{n}*' -delete\n",
    "found, given on": "find out -name 'f{n}*' | xargs rm -f\n",
    "copies of folders": "cp -r d{n} out/d{n}\n",
    "archives": "tar xf a{n}.tar -C out\n",
    "names of source": "cp out/f{n}.py src/f{n}.py.new\n",
    "paths above": "touch ../../x{n}/../y{n}\n",
    "long pipes": "| cat ",
    "long and": "true && ",
    "long or": "false || ",
    "words": "w{n} ",
    "paths": "out/f{n} ",
    "quoted words": "'w {n}' ",
    "words with variables": "$x{n} ",
    "words with quotes": "a\"b $c\"'d' ",
    "words with braces": "{{a,b}}{n} ",
    "words with wildcards": "out/*{n} ",
    "words with substitutions": "$(echo {n}) ",
    "redirections": "> out/f{n} ",
    "letters": "x",
    "digits": "7",
    "backslashes": "\\x",
    "stars": "*",
    "stars between letters": "*a",
    "question marks": "?",
    "dots and slashes": "../",
    "long path": "ab/",
    "long quoted path": "'ab'/",
    "empty quotes": "''",
    "dollars": "$",
    "variables side by side": "$x",
    "equal signs": "a=",
    "tildes": "~/",
    "brackets": "[a]",
    "braces side by side": "{{a,b}}",
    "commas": ",a",
    "semicolons": ";",
    "newlines": "\n",
    "carriage returns": "x\r\n",
    "wide letters": "\U0001f389",
    "zero bytes": "\\0",
}

# The text before and behind the repeated text of a name above.
AROUND = {
    "long pipes": ("cat x ", "> out/y"),
    "long and": ("", "rm out/x"),
    "long or": ("", "rm out/x"),
    "words": ("rm -f ", ""),
    "paths": ("rm -f ", ""),
    "quoted words": ("rm -f ", ""),
    "words with variables": ("rm -f ", ""),
    "words with quotes": ("rm -f ", ""),
    "words with braces": ("rm -f ", ""),
    "words with wildcards": ("rm -f ", ""),
    "words with substitutions": ("rm -f ", ""),
    "redirections": ("echo ", ""),
    "letters": ("rm -f ", ""),
    "digits": ("rm -f x", ""),
    "backslashes": ("rm -f ", ""),
    "stars": ("rm -f src/", ""),
    "stars between letters": ("rm -f src/", "b"),
    "question marks": ("rm -f src/", ""),
    "dots and slashes": ("touch ", "x"),
    "long path": ("touch ", "x"),
    "long quoted path": ("touch ", "x"),
    "empty quotes": ("touch x", ""),
    "dollars": ("touch ", ""),
    "variables side by side": ("x=a; touch ", ""),
    "equal signs": ("", "b touch x"),
    "tildes": ("touch ", "x"),
    "brackets": ("rm -f src/", ""),
    "braces side by side": ("touch ", ""),
    "commas": ("touch {a", "}"),
    "zero bytes": ("printf '", "' > out/z"),
}

# (opening, inside, closing), nested so deep that the whole has the size.
NESTED = {
    "nested substitutions": ("$(echo ", "x", ")"),
    "nested quotes and substitutions": ('"$(echo ', "x", ')"'),
    "nested subshells": ("( ", "rm out/x", " )"),
    "nested groups": ("{ ", "rm out/x;", " };"),
    "nested defaults": ("${x:-", "y", "}"),
    "nested arithmetic": ("$((1+", "1", "))"),
    "nested parentheses of arithmetic": ("(1+", "1", ")"),
    "nested braces": ("{a,", "b", "}"),
    "nested conditions": ("if true; then ", "rm out/x;", " fi;"),
    "nested loops": ("for i in 1 2; do ", "rm out/x;", " done;"),
    "nested cases": ("case x in x) ", "rm out/x;;", " esac;;"),
    "nested functions": ("f() { ", "rm out/x;", " };"),
    "nested extended patterns": ("+(a|", "b", ")"),
    "nested process substitutions": ("cat <(", "rm out/x", ")"),
    "nested arrays": ("a=(", "b", ")"),
    "nested tests": ("! ( ", "a", " )"),
    "nested backquotes": ("`echo \\", "x", "\\`"),
}
BEFORE = {
    "nested substitutions": "echo > ",
    "nested quotes and substitutions": "echo > ",
    "nested defaults": "echo > ",
    "nested arithmetic": "echo > ",
    "nested parentheses of arithmetic": "echo > x$(( ",
    "nested braces": "rm ",
    "nested extended patterns": "shopt -s extglob; rm ",
    "nested tests": "[[ ",
}
BEHIND = {"nested parentheses of arithmetic": " ))", "nested tests": " ]]"}

# (before, line, behind): one text that an interpreter or a here-document is given.
CODE = {
    "here-document": ("cat > out/x <<'EOF'\n", "a line of {n} with 'quotes' $(and) more\n", "EOF\n"),
    "expanded here-document": ("cat > out/x <<EOF\n", "a line of {n} with $x and $(echo y)\n", "EOF\n"),
    "plain expanded here-document": ("cat > out/x <<EOF\n", "a line of {n} with nothing in it\n", "EOF\n"),
    "here-document for a shell": ("bash <<'EOF'\n", "echo {n} > out/f{n}\n", "EOF\n"),
    "here-document for python": ("python3 - <<'EOF'\n", "open('out/f{n}', 'w').write('x')\n", "EOF\n"),
    "here-document of SQL": ("sqlite3 out/x.db <<'EOF'\n", "INSERT INTO t VALUES ({n}, 'x');\n", "EOF\n"),
    "indented here-document": ("cat > out/x <<-EOF\n", "\ta line of {n}\n", "\tEOF\n"),
    "python calls": ('python3 -c "\n', "print({n})\n", '"'),
    "python writes": ("python3 -c '\n", 'open("out/f{n}", "w")\n', "'"),
    "python values": ("python3 -c 'x = [", '"value {n}", ', ']\nopen(x[0], "w")\''),
    "python functions": ("python3 -c '\n", 'def f{n}(p):\n    open(p, "w")\nf{n}("out/f{n}")\n', "'"),
    "python sums": ("python3 -c 'x = 0", " + {n}", "'"),
    "python attributes": ("python3 -c 'x", ".a{n}", "'"),
    "python comparisons": ("python3 -c '\n", 'if x{n} == {n}: open(x{n}, "w")\n', "'"),
    "python string": ('python3 -c \'\nopen("out/x", "w").write("""', "a line of {n}\n", '""")\n\''),
    "broken python": ("python3 -c '\n", "x = (\n", "'"),
    "node writes": ("node -e '\n", 'fs.writeFileSync("out/f{n}", "x");\n', "'"),
    "node calls": ("node -e '\n", "console.log({n});\n", "'"),
    "node templates": ("node -e '\n", "x{n} = `a ${{b{n}}} c`;\n", "'"),
    "node functions": ("node -e '\n", "const f{n} = (p) => fs.rmSync(p);\n", "'"),
    "node parentheses": ("node -e '", "(", "'"),
    "ruby writes": ("ruby -e '\n", 'File.write("out/f{n}", "x")\n', "'"),
    "perl writes": ("perl -e '\n", 'open(F{n}, ">out/f{n}");\n', "'"),
    "php writes": ("php -r '\n", 'file_put_contents("out/f{n}", "x");\n', "'"),
    "awk writes": ("awk '\n", '{{ print > "out/f{n}" }}\n', "' x"),
    "sed commands": ("sed -i '", "s/a{n}/b{n}/;", "' out/x"),
    "sed writes": ("sed -n '", "w out/w{n}\n", "' x"),
    "jq program": ("jq '", ".a{n} | ", ".' x > out/y"),
    "for words": ("for f in ", "w{n} ", "; do rm out/$f; done"),
    "for words, twice": ("for f in ", "w{n} ", "; do for g in a b; do cp $f out/$g; done; done"),
    "for files": ("for f in ", "src/f{n}.py ", "; do cp $f out/; done"),
    "files that are locked, behind": ("rm -f ", "out/f{n}.o ", " src/f7.py"),
    "array": ("a=(", "w{n} ", '); rm -f "${a[@]}"'),
    "case alternatives": ("case $x in ", "a{n}|", "z) rm out/x;; esac"),
    "test terms": ("[[ ", "$a{n} == b && ", "c ]] && rm out/x"),
    "patch for git": ("git apply <<'EOF'\n", "--- a/out/f{n}\n+++ b/out/f{n}\n@@ -1 +1 @@\n-a\n+b\n", "EOF\n"),
    "patch": ("patch -p1 <<'EOF'\n", "--- a/out/f{n}\n+++ b/out/f{n}\n@@ -1 +1 @@\n-a\n+b\n", "EOF\n"),
    "apply_patch in a shell": (
        "apply_patch <<'EOF'\n*** Begin Patch\n",
        "*** Add File: out/f{n}\n+x\n",
        "*** End Patch\nEOF\n",
    ),
    "list of names": ("xargs rm -f <<'EOF'\n", "out/f{n}\n", "EOF\n"),
    "lines that are read": ("while read -r f; do rm -f out/$f; done <<'EOF'\n", "w{n}\n", "EOF\n"),
    "encoded": ("echo ", "YWJjZGVmZ2hpamts", " | base64 -d > out/x"),
    "JSON": ('curl -d \'{"a": [', '{{"b": {n}}}, ', "1]}' http://127.0.0.1/ > out/x"),
    "separator of its own": ("IFS=w; x='", "a{n}w", "'; rm -f $x"),
    "long value": ("x='", "value ", "'; for w in $x; do rm out/$w; done"),
    "trimmed value": ("x='", "ab", "'; echo > out/${x%%*c*d} > out/${x//b*a/c}"),
    "sequence": ("for i in $(seq 1 1", "0", "); do rm out/$i; done"),
}
_TEXT = "'\"`$(){}[]<>|&;*?!#~\\ \n\tabc=EOF0123/-."
_PIECES = (
    "rm ", "x ", "> ", "$(", ")", "'", '"', "<<EOF\n", "\nEOF\n", "; ", "| ", "{ ", "} ", "for i in ", "do ", "done ",
    "\\", "$x", "${x", "}", "if ", "then ", "fi ", "case x in ", "esac ", "((", "))", "[[ ", "]] ", "`", "&& ", "|| ",
    "cd a ", "src/f1.py ", "a=b ", "{a,b}", "*", "\n", "python3 -c ", "git ", "find . ", "-delete ", "sed -i ", "xargs ",
)  # fmt: skip


def commands() -> Iterator[tuple[str, str]]:
    """Each shape in each size: name and shell text."""
    for size in SIZES:
        for name, text in REPEATED.items():
            before, behind = AROUND.get(name, ("", ""))
            yield f"{name} {size:,}", before + _filled(text, size) + behind
        for name, (opens, inside, closes) in NESTED.items():
            depth = size // (len(opens) + len(closes))
            text = opens * depth + inside + closes * depth
            yield f"{name} {size:,}", BEFORE.get(name, "") + text + BEHIND.get(name, "")
        for name, (before, line, behind) in CODE.items():
            yield f"{name} {size:,}", before + _filled(line, size) + behind
    for number in range(RANDOM_TEXTS):
        for kind, make in _RANDOM.items():
            chance = random.Random(f"{kind} {number}")
            yield f"random {kind} {number}", make(chance, SIZES[number % len(SIZES)])


def _filled(text: str, size: int) -> str:
    parts, length, number = [], 0, 0
    while length < size:
        parts.append(text.format(n=number))
        length += len(parts[-1])
        number += 1
    return "".join(parts)


def _letters(chance: random.Random, size: int) -> str:
    return "".join(chance.choices(_TEXT, k=size))


def _pieces(chance: random.Random, size: int) -> str:
    return "".join(chance.choices(_PIECES, k=size // 4))


def _mixed(chance: random.Random, size: int) -> str:
    """Return lines of several shapes, some of them cut short."""
    lines = [text for text in REPEATED.values() if text.endswith("\n")]
    parts, length = [], 0
    while length < size:
        line = chance.choice(lines).format(n=chance.randrange(1000))
        parts.append(line[: chance.randrange(len(line))] if chance.random() < 0.02 else line)
        length += len(parts[-1])
    return "".join(parts)


_RANDOM: dict[str, Callable[[random.Random, int], str]] = {"letters": _letters, "pieces": _pieces, "lines": _mixed}
