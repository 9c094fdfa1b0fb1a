"""The writes reported for each program, and, if it is installed, its real writes.

A row: a command, the files that it certainly writes (``?`` in front: possibly; ``~``: it is a guess, ``@``: it runs the
project's code), and the text of its standard input. More of them are in ``tests/corpora/shell``.
"""

import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from support.files import files_at

from swarm_hook_core.shell import effects_of

DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-alpha\n+changed\n"
CONTEXT = (
    "*** a.txt.old\t2020-01-01\n--- a.txt\t2020-01-02\n" + "*" * 15 + "\n*** 1 ****\n! alpha\n--- 1 ----\n! other\n"
)
NEW = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n"
GONE = "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-beta\n"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory):
    """A folder with files, folders, archives and diffs in it. Nothing runs there."""
    folder = tmp_path_factory.mktemp("ground")
    files = {
        "a.txt": "alpha\n",
        "b.txt": "beta\n",
        "c.csv": "2\n1\n2\n",
        "src/one.py": "x = 1\n",
        "src/sub/two.py": "y = 2\n",
        "dest/one.py": "old\n",
        "dest/a.txt": "old\n",
        "dest/src/one.py": "older\n",
        "dest/other.js": "z\n",
        "d.diff": DIFF,
        "new.diff": NEW,
        "script.sed": "s/a/b/\nw by-script.txt\n",
        "w.awk": '{ print > "by-awk.txt" }\n',
        "main.c": "int main(void){return 0;}\n",
        "main.go": "package main\n\nfunc main() {}\n",
        "pyproject.toml": "",
    }
    files_at(folder, files)
    with tarfile.open(folder / "p.tgz", "w:gz") as archive:
        archive.add(folder / "a.txt", "a.txt")
        archive.add(folder / "src", "top/src")
    with zipfile.ZipFile(folder / "p.zip", "w") as archive:
        archive.write(folder / "a.txt", "a.txt")
        archive.write(folder / "src/one.py", "src/one.py")
    return folder


def state(folder) -> dict:
    """Relative name -> values that change if the file is touched."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in files + [one for one in folders if os.path.islink(os.path.join(at, one))]:
            path = os.path.join(at, name)
            seen = os.lstat(path)
            found[os.path.relpath(path, folder)] = (seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size)
    return found


def text_of(row) -> str:
    """The shell text of a row."""
    return row[0] if len(row) < 3 else f"{row[0]} <<'EOF'\n{row[2]}EOF\n"


def told(effects, folder, names) -> tuple[set, set]:
    """Of `names`: those certainly written, and those that may be."""
    certain = {os.path.relpath(os.path.join(one.folder, one.path), folder) for one in effects.writes}
    possible = set()
    for name in names:
        path = os.path.join(folder, name)
        for tree in effects.trees:
            if path == tree.root or path.startswith(tree.root.rstrip("/") + "/"):
                met = tree.admits(path)
                if met:
                    certain.add(name)
                elif met is None:
                    possible.add(name)
    return certain, possible - certain


ROWS = [
    # copies
    ("cp a.txt b.txt", "b.txt"),
    ("cp a.txt dest", "dest/a.txt"),
    ("cp -t dest a.txt b.txt", "dest/a.txt dest/b.txt"),
    ("cp --target-directory=dest a.txt", "dest/a.txt"),
    ("cp -T a.txt b.txt", "b.txt"),
    ("cp -n a.txt dest", ""),
    ("cp -b a.txt b.txt", "b.txt b.txt~"),
    ("cp -S .bak a.txt b.txt", "b.txt b.txt.bak"),
    ("cp -r src dest", "dest/src/one.py dest/src/sub/two.py"),
    ("cp -rT src dest", "dest/one.py dest/sub/two.py"),
    ("cp -a src/. dest", "dest/one.py dest/sub/two.py"),
    ("cp -rn src/. dest", "dest/sub/two.py"),
    ("cp --parents src/one.py dest", "dest/src/one.py"),
    ("mv a.txt b.txt", "a.txt b.txt"),
    ("mv a.txt b.txt dest/", "a.txt b.txt dest/a.txt dest/b.txt"),
    ("mv -n a.txt dest", ""),
    ("mv src elsewhere", "src/one.py src/sub/two.py elsewhere elsewhere/src elsewhere/one.py elsewhere/sub/two.py"),
    ("ln -s a.txt link", "link link/a.txt"),
    ("ln -sf a.txt dest", "dest/a.txt"),
    ("ln -s src/one.py", "one.py"),
    ("ln -sfT a.txt b.txt", "b.txt"),
    ("install -m 755 a.txt dest", "dest/a.txt"),
    ("install -Dm644 a.txt new/deep/name.txt", "new/deep/name.txt"),
    ("install -d made", "made"),
    ("rsync -a src/ dest/", "dest/one.py dest/sub/two.py"),
    ("rsync -a src dest", "dest/src/one.py dest/src/sub/two.py"),
    ("rsync -a --delete src/ dest", "dest/one.py dest/a.txt dest/src/one.py dest/other.js dest/sub/two.py"),
    ("rsync -a --delete --exclude=*.js src/ dest", "dest/one.py dest/a.txt dest/src/one.py dest/sub/two.py"),
    ("rsync -a --exclude sub src/ dest/", "dest/one.py"),
    ("rsync -an --delete src/ dest/", ""),
    ("rsync a.txt host:b.txt", ""),
    ("rsync -a host:x/ dest/", "?dest/one.py ?dest/a.txt ?dest/src/one.py ?dest/other.js"),
    ("rsync --remove-source-files a.txt dest/", "a.txt dest/a.txt"),
    # names made of the input's, and outputs that one subcommand or option alone writes
    ("circo -Tpng -O a.gv", "a.gv.png"),
    ("fdp -O a.gv", "a.gv.dot"),
    ("sfdp -Tsvg a.gv", ""),
    ("twopi -Tsvg -o b.svg a.gv", "b.svg"),
    ("uuencode a.txt a.txt", ""),
    ("uuencode -o b.txt a.txt a.txt", "b.txt"),
    ("pip-compile dev.in", "dev.txt"),
    ("pip-compile pyproject.toml", "requirements.txt"),
    ("pip-compile -n dev.in", ""),
    ("flex a.l", "lex.yy.c"),
    ("flex -t a.l", ""),
    ("ld -v", ""),
    ("qpdf p.pdf --pages . 1-3 -- q.pdf", "q.pdf"),
    ("qpdf --replace-input p.pdf", "p.pdf"),
    ("qpdf --check p.pdf", ""),
    ("pdflatex -jobname=out p.tex", "out.pdf out.log out.aux @"),
    ("psql -L b.txt -c 'select 1'", "b.txt"),
    ("plutil a.plist", ""),
    ("plutil -convert xml1 a.plist", "a.plist"),
    ("plutil -extract key xml1 a.plist", "a.plist"),
    ("plutil -extract key xml1 -o - a.plist", ""),
    ("plutil -extract key raw a.plist", ""),
    ("pr -o 5 a.txt", ""),
    ("composer config name", ""),
    ("composer config name a/b", "composer.json"),
    ("terraform providers", ""),
    ("terraform providers lock", ".terraform.lock.hcl"),
    ("dart compile exe -o out a.dart", "out @"),
    ("dart create dest", "?dest/one.py ?dest/a.txt ?dest/src/one.py ?dest/other.js"),
    ("gh codespace cp -e remote:a.txt dest/a.txt", "?dest/a.txt"),
    ("gh codespace list", ""),
    ("devbox update", "~"),
    ("dotnet add package X", "~"),
    ("pnpm audit", ""),
    ("pnpm audit fix", "package.json pnpm-lock.yaml"),
    ("pnpm audit --fix", "?package.json ?pnpm-workspace.yaml ?pnpm-lock.yaml"),
    ("pnpm link -g X", "package.json pnpm-lock.yaml"),
    ("dpkg -x p.deb dest", "?dest/one.py ?dest/a.txt ?dest/src/one.py ?dest/other.js"),
    ("dpkg -b dest", "dest.deb"),
    ("dpkg -l", ""),
    ("helm repo index dest", "dest/index.yaml"),
    ("helm repo list", ""),
    ("grype -o json=a.txt -o table dir:.", "a.txt"),
    # wrappers, runners, containers
    ("timeout -k 5 10 touch -c a.txt", "a.txt"),
    ("env -u X -C dest A=b touch one.py", "dest/one.py"),
    ("env -S 'touch new.txt'", "new.txt"),
    ("sudo -u me -- rm a.txt", "a.txt"),
    ("sudo -e a.txt b.txt", "a.txt b.txt"),
    ("sudo sed -e s/a/b/ a.txt", ""),
    ("nohup git log --output=x.log", "x.log"),
    ("flock x.lock -c 'touch a.txt'", "x.lock a.txt"),
    ("flock a.txt touch b.txt", "b.txt"),
    ("script -qc 'touch b.txt' out.txt", "out.txt b.txt"),
    ("watch -n 5 touch a.txt", "a.txt"),
    ("hyperfine --export-json o.json -p 'touch a.txt' 'touch b.txt'", "o.json a.txt b.txt"),
    ("ssh -o A=b host sort -o a.txt b.txt", ""),
    ("su me -c 'touch a.txt'", "a.txt"),
    ("gtime -o t.txt touch a.txt", "t.txt a.txt"),
    ("npx -p x @scope/prettier@2 --write dest/other.js", "dest/other.js"),
    ("uv run --with x black a.py", "a.py"),
    ("uv run -m black a.py", "a.py"),
    ("uv add x", "pyproject.toml uv.lock"),
    ("uv add --frozen x", ""),
    ("uv version", ""),
    ("uv frob", "~"),
    ("poetry -C dest lock", "poetry.lock"),
    ("docker run --rm -v ./dest:/x -it image touch y", "?dest/one.py ?dest/a.txt ?dest/src/one.py ?dest/other.js"),
    ("docker run -v name:/x -v ./dest:/y:ro image sort -o a.txt", ""),
    ("docker cp box:/x dest", "dest/one.py dest/a.txt dest/src/one.py dest/other.js"),
    ("docker compose -f x.yml run --rm app sort -o a.txt", "@"),
    ("docker ps -a", ""),
    ("cargo +nightly new app", "app/Cargo.toml app/src/main.rs app/src/lib.rs app/.gitignore"),
    ('node -p -e \'require("fs").writeFileSync("f.txt", 1)\'', "f.txt"),
    # files
    ("rm a.txt", "a.txt"),
    ("rm -rf src", "src/one.py src/sub/two.py"),
    ("rm -- -f", "-f"),
    ("touch a.txt new.txt", "a.txt new.txt"),
    ("touch -c new.txt", ""),
    ("touch -r a.txt b.txt", "b.txt"),
    ("touch -d yesterday b.txt", "b.txt"),
    ("truncate -s 0 a.txt", "a.txt"),
    ("chmod +x a.txt", "a.txt"),
    ("chmod -x a.txt b.txt", "a.txt b.txt"),
    ("chmod -R u+w src", "src/one.py src/sub/two.py"),
    ("chmod --reference=a.txt b.txt", "b.txt"),
    ("shred -u a.txt", "a.txt"),
    ("mkfifo pipe", "pipe"),
    ("unlink a.txt", "a.txt"),
    ("rename 's/\\.txt$/.md/' a.txt", "~ ?a.txt"),
    ("rename -n 's/a/b/' a.txt", ""),
    # filters
    ("tee -a b.txt dest/one.py", "b.txt dest/one.py", "x\n"),
    ("dd if=a.txt of=b.txt", "b.txt"),
    ("sort -o c.csv c.csv", "c.csv"),
    ("sort -u c.csv -o out.csv", "out.csv"),
    ("sort -k 1,1 c.csv", ""),
    ("uniq c.csv out.csv", "out.csv"),
    ("uniq -c c.csv", ""),
    ("sponge a.txt", "a.txt", "x\n"),
    ("split -l 1 c.csv part-", "part-aa ?part-ab"),
    ("split -d -a 3 -l 2 c.csv", "?x000"),
    ("csplit c.csv 2", "xx00 ?xx01"),
    ("xxd a.txt", ""),
    ("xxd a.txt b.txt", "b.txt"),
    ("xxd -c 4 a.txt", ""),
    ("iconv -f utf-8 -t utf-16 -o b.txt a.txt", "b.txt"),
    ("shuf -n 1 c.csv", ""),
    ("shuf c.csv -o c.csv", "c.csv"),
    ("base64 -w 0 a.txt", ""),
    ("openssl enc -base64 -in a.txt -out b.txt", "b.txt"),
    ("tree -o listing.txt", "listing.txt"),
    ("tree -L 2", ""),
    # sed
    ("sed -i s/a/b/ a.txt b.txt", "a.txt b.txt"),
    ("sed -i.bak -e s/a/b/ a.txt", "a.txt a.txt.bak"),
    ("sed -ibak/* s/a/b/ a.txt", "a.txt bak/a.txt"),
    ("sed -n -i 's/a/b/p' a.txt", "a.txt"),
    ("sed -Ei 's/(a)/b/' a.txt", "a.txt"),
    ("sed -i '' -e s/a/b/ a.txt", "a.txt"),
    ("sed -i .bak s/a/b/ a.txt", "a.txt a.txt.bak"),
    ("sed --in-place=.old -f script.sed a.txt", "a.txt a.txt.old by-script.txt"),
    ("sed -n '1,5p' a.txt", ""),
    ("sed s/write/wide/w a.txt", ""),
    ("sed 's/a/b/w out.txt' a.txt", "out.txt"),
    ("sed -n '/a/w out.txt' a.txt", "out.txt"),
    ("sed -n '/[/w]x/p;s|a|w b|p' a.txt", ""),
    ("sed '1i\\\nw words' a.txt", ""),
    ("sed -e '/x/{p;d' -e '}' -e 'y/abc/wxy/' a.txt", ""),
    ("sed -n -e '1{w out.txt' -e '}' a.txt", "out.txt"),
    ("sed -n '$!{1!G;h};${p;w out.txt\n}' a.txt", "out.txt"),
    ("sed -f script.sed a.txt", "by-script.txt"),
    ("sed 's/a/b/w /dev/stderr' a.txt", ""),
    # perl
    ("perl -pi -e s/a/b/ a.txt", "a.txt"),
    ("perl -i.bak -ne print a.txt", "a.txt a.txt.bak"),
    ("perl -pie s/a/b/ a.txt", "a.txt a.txte ~"),
    ("perl -0777 -i -pe s/a/b/ a.txt b.txt", "a.txt b.txt"),
    ("perl -lane 'print $F[0]' a.txt", ""),
    ('perl -e \'open(my $f, ">", "out.txt"); print $f 1\'', "out.txt"),
    ("perl -e 'open(F, \">>out.txt\"); print F 1'", "out.txt"),
    ('perl -e \'open(F, "<", "a.txt"); print <F>\'', ""),
    ('perl -e \'unlink "a.txt", "b.txt"\'', "a.txt b.txt"),
    ('perl -e \'rename "a.txt", "moved.txt"\'', "a.txt moved.txt"),
    ("perl -e 'open(my $f, \">\", $ENV{OUT})'", "~"),
    ("perl -e 'system(\"touch made.txt\")'", "made.txt"),
    ("perl -MList::Util=sum -e 'print sum(1,2)'", ""),
    ("perl tool.pl a.txt", "~"),
    ("perl -c tool.pl", ""),
    ("perl", "out.txt", 'open(F, ">out.txt"); print F 1;'),
    # awk
    ("awk '{print $1}' a.txt", ""),
    ("awk '{print > \"out.txt\"}' a.txt", "out.txt"),
    ('awk \'{print >> "b.txt"; close("b.txt")}\' a.txt', "b.txt"),
    ("awk '$1 > 2 {print} /a>\"b\"/ {n++} END {print (n > 1)}' a.txt", ""),
    ("awk '{print > $1\".txt\"}' a.txt", "~"),
    ("awk -v out=out.txt '{print > out}' a.txt", "out.txt"),
    ('awk \'BEGIN {f = "out.txt"} {printf("%s", $1) > f}\' a.txt', "out.txt"),
    ('awk \'{print > ("out" ".txt")}\' a.txt', "out.txt"),
    ("awk '{print > \"/dev/stderr\"}' a.txt", ""),
    ("awk '{print | \"sort -o out.txt\"}' a.txt", "out.txt"),
    ("awk 'BEGIN {while (\"cat a.txt\" | getline x) print x}'", ""),
    ("awk 'BEGIN {system(\"touch made.txt\")}'", "made.txt"),
    ('awk \'{a = 4 / 2; b = "> x"} # > "y"\n\' a.txt', ""),
    ("awk -f w.awk a.txt", "by-awk.txt"),
    ("gawk -i inplace '{print}' a.txt b.txt", "a.txt b.txt"),
    ("gawk -i inplace -v INPLACE_SUFFIX=.bak '{print}' a.txt", "a.txt a.txt.bak"),
    # editors
    ("ed -s a.txt", "a.txt", "1s/a/b/\nw\nq\n"),
    ("ed -s a.txt", "", "1p\nq\n"),
    ("ed -s a.txt", "out.txt", "w out.txt\nq\n"),
    ("ed -s a.txt", "~ ?a.txt", "/a/w out.txt\nq\n"),
    ("ex -sc '%s/a/b/|x' a.txt", "a.txt"),
    ("ex -s a.txt", "a.txt", "%s/a/b/\nwq\n"),
    ("vim -es -c '%s/a/b/' -c wq a.txt", "a.txt"),
    ("vim -e -s -c 'w out.txt' -c q a.txt", "out.txt"),
    ("vim -es -c 'argdo %s/a/b/e' -c q a.txt b.txt", "~ ?a.txt ?b.txt"),
    ("vim -es -c '1p' -c 'q!' a.txt", ""),
    ("nvim --headless -c 'normal ggdd' -c wqa a.txt", "a.txt ~"),
    ("vim a.txt", "?a.txt"),
    ("nano a.txt", "?a.txt"),
    ("emacs --batch a.txt -f save-buffer", "~ ?a.txt"),
    ('emacs --batch --eval \'(write-region "x" nil "out.txt")\'', "~"),
    ("emacs +12 a.txt", "?a.txt"),
    # patch
    ("patch -p1 -i d.diff", "a.txt"),
    ("patch -p1", "a.txt", DIFF),
    ("patch", "a.txt", DIFF),
    ("patch -p1 --dry-run -i d.diff", ""),
    ("patch -b -p1", "a.txt a.txt.orig", DIFF),
    ("patch -p1", "made.txt", NEW),
    ("patch -p1", "b.txt", GONE),
    ("patch -R -p1 -i new.diff", "made.txt"),
    ("patch", "a.txt", CONTEXT),
    ("patch b.txt d.diff", "b.txt"),
    ("patch -o out.txt a.txt d.diff", "out.txt"),
    ("patch -d dest -p1 -i ../d.diff", "dest/a.txt"),
    ("patch -p1 -i later.diff", "~"),
    # archives
    ("tar xzf p.tgz", "a.txt top/src/one.py top/src/sub/two.py"),
    ("tar -xf p.tgz -C dest", "dest/a.txt dest/top/src/one.py dest/top/src/sub/two.py"),
    ("tar -C dest --strip-components=1 -xzf p.tgz top", "dest/src/one.py dest/src/sub/two.py"),
    ("tar xf p.tgz a.txt", "a.txt"),
    ("tar tzf p.tgz", ""),
    ("tar xzOf p.tgz a.txt", ""),
    ("tar czf out.tgz src", "out.tgz"),
    ("tar cf - src", ""),
    ("tar -xkf p.tgz -C dest", "dest/top/src/one.py dest/top/src/sub/two.py"),
    ("tar -c --remove-files -f out.tar a.txt", "out.tar a.txt"),
    ("tar cf - src a.txt | (cd dest && tar xf -)", "dest/src/one.py dest/src/sub/two.py dest/a.txt"),
    ("tar xz -C dest < p.tgz", "dest/a.txt dest/top/src/one.py dest/top/src/sub/two.py"),
    ("cat p.tgz | tar xzf - a.txt", "a.txt"),
    ("curl -s http://127.0.0.1:9/ | tar x -C src", "?src/one.py ?src/sub/two.py"),
    ("unzip -o p.zip", "a.txt src/one.py"),
    ("unzip -oq p.zip -d dest", "dest/a.txt dest/src/one.py"),
    ("unzip -n p.zip", ""),
    ("unzip -l p.zip", ""),
    ("unzip -p p.zip a.txt", ""),
    ("unzip -o p.zip src/*", "src/one.py"),
    ("zip -qr out.zip src", "out.zip"),
    ("zip -qm out a.txt", "out.zip a.txt"),
    ("7z x -y -odest p.zip", "dest/a.txt dest/src/one.py"),
    ("ar rcs lib.a a.txt", "lib.a"),
    ("jar xf p.zip", "a.txt src/one.py"),
    ("jar cf out.jar src", "out.jar"),
    ("gzip a.txt", "a.txt a.txt.gz"),
    ("gzip -k a.txt", "a.txt.gz"),
    ("gzip -c a.txt", ""),
    ("gzip -l p.tgz", ""),
    ("gunzip p.tgz", "p.tgz p.tar"),
    ("xz -k a.txt", "a.txt.xz"),
    ("zstd -q a.txt", "a.txt.zst"),
    ("zstd -q --rm a.txt -o b.zst", "a.txt b.zst"),
    ("bzip2 a.txt", "a.txt a.txt.bz2"),
    # transfer
    ("curl -s http://127.0.0.1:9/x -o out.txt", "out.txt"),
    ("curl -sO http://127.0.0.1:9/x/name.txt?q=1", "name.txt"),
    ("curl -s --output-dir dest -o y.txt http://127.0.0.1:9/", "dest/y.txt"),
    ("curl -fsSL http://127.0.0.1:9/x", ""),
    ("curl -o - http://127.0.0.1:9/x", ""),
    ("wget -q -O out.txt http://127.0.0.1:9/x", "out.txt"),
    ("wget -qO- http://127.0.0.1:9/x", ""),
    ("wget -q -P dest http://127.0.0.1:9/n.txt", "dest/n.txt"),
    ("wget -q http://127.0.0.1:9/a.txt", "a.txt.1"),
    ("scp host:x.txt dest", "dest/x.txt"),
    ("scp a.txt host:", ""),
    ("gh pr view 12", ""),
    ("gh pr checkout 12", "~"),
    # formatters
    ("black src dest/one.py", "src/one.py src/sub/two.py dest/one.py"),
    ("black --check src", ""),
    ("black -q -", ""),
    ("ruff check --fix .", "src/one.py src/sub/two.py dest/one.py dest/src/one.py"),
    ("ruff check src", ""),
    ("ruff format src", "src/one.py src/sub/two.py"),
    ("ruff format --diff src", ""),
    ("isort a.py", "a.py"),
    ("prettier --write 'dest/**/*.js'", "dest/other.js"),
    ("prettier --write dest", "dest/other.js"),
    ("prettier --check dest", ""),
    ("prettier -w --print-width 100 'src/{one,two}.py'", "src/one.py"),
    ("eslint --fix dest", "dest/other.js"),
    ("eslint dest", ""),
    ("gofmt -w main.go", "main.go"),
    ("gofmt -l .", ""),
    ("gofmt -w .", "main.go"),
    ("clang-format -i --style=Google main.c", "main.c"),
    ("clang-format main.c", ""),
    ("clang-format-15 -i main.c", "main.c"),
    ("biome check --write dest", "dest/other.js"),
    ("biome check dest", ""),
    ("biome lint --apply dest/other.js", "dest/other.js"),
    ("yq -i '.a = 1' c.yaml", "c.yaml"),
    ("yq eval -i '.a = 1' c.yaml", "c.yaml"),
    ("yq .a c.yaml", ""),
    ("sd alpha beta a.txt", "a.txt"),
    ("terraform fmt", ""),
    ("autopep8 -ir src", "src/one.py src/sub/two.py"),
    ("stylua --check .", ""),
    ("rubocop -a x.rb", "x.rb"),
    ("jq . c.json", ""),
    # projects
    ("make all", "@"),
    ("make -n all", ""),
    ("pytest -q tests", "@"),
    ("pytest --junitxml=out.xml", "out.xml @"),
    ("cargo test", "@"),
    ("cargo fmt -- --check", ""),
    ("cargo add serde", "Cargo.toml Cargo.lock"),
    ("npm test", "@"),
    ("npm run build", "@"),
    ("npm install left-pad", "package.json package-lock.json"),
    ("npm install", "package-lock.json"),
    ("npm ci", ""),
    ("npm ls --all", ""),
    ("npm view react version", ""),
    ("yarn add x", "package.json yarn.lock"),
    ("yarn prettier --write dest/other.js", "dest/other.js"),
    ("npm install -g left-pad", ""),
    ("npm --prefix dest uninstall x", "dest/package.json dest/package-lock.json"),
    ("npm init", "package.json"),
    ("npm init vite", "~"),
    ("npm pkg get name", ""),
    ("yarn", "yarn.lock"),
    ("pnpm exec prettier --write dest/other.js", "dest/other.js"),
    ("pip install -r requirements.txt", ""),
    ("pip install --target dest x", "?dest/one.py ?dest/a.txt ?dest/src/one.py ?dest/other.js ?dest"),
    ("pip install -e .", "@"),
    ("bundle add rake", "Gemfile Gemfile.lock"),
    ("composer require x/y", "composer.json composer.lock"),
    ("cargo new app", "app/Cargo.toml app/src/main.rs app/src/lib.rs app/.gitignore"),
    ("terraform plan -out=p.plan", "p.plan"),
    ("terraform -chdir=dest init", "dest/.terraform.lock.hcl"),
    ("dart pub get", "pubspec.lock"),
    ("mix format b.txt", "b.txt"),
    ("cmake -E copy a.txt b.txt", "b.txt"),
    ("coverage xml", "coverage.xml"),
    ("dotnet add package x --version 1.0", "~"),
    ("yarn workspace app add x", "@"),
    ("direnv exec . touch new.txt", "new.txt"),
    ("mise exec node@20 -- touch new.txt", "new.txt"),
    ("gh release download v1 -O out.txt", "out.txt"),
    ("aws s3 cp s3://bucket/x.txt dest", "dest/x.txt"),
    ("aws s3 rm s3://bucket/x.txt", ""),
    ("ssh-keygen -f key", "key key.pub"),
    ("gpg -a --detach-sign a.txt", "a.txt.asc"),
    ("gpg --output out.txt --decrypt a.txt.gpg", "out.txt"),
    ("magick a.png -resize 50% b.png", "b.png"),
    ("javac -d dest Main.java", ""),
    ("pdflatex --output-directory=dest p.tex", "dest/p.pdf dest/p.log dest/p.aux @"),
    ("typst compile p.typ", "p.pdf"),
    ("dos2unix -n a.txt b.txt", "b.txt"),
    ("setfacl -m u:me:rw a.txt", "a.txt"),
    ("mktemp ./x.XXXX", "x.XXXX"),
    ("uudecode a.txt", "~"),
    ("tmux send-keys x", "~"),
    ("pre-commit run", "~"),
    ("jupytext --to py b.ipynb", "b.py"),
    ("go mod tidy", "go.mod go.sum"),
    ("go build -o out.bin ./...", "out.bin @"),
    ("go fmt ./...", "main.go"),
    ("go vet ./...", "@"),
    ("tsc --noEmit", ""),
    ("mypy src", ""),
    ("gcc -c main.c", "main.o"),
    ("gcc main.c -o prog", "prog"),
    ("gcc main.c", "a.out"),
    ("gcc -E main.c", ""),
    ("gcc --version", ""),
    ("sqlite3 x.db 'select 1'", "x.db"),
    ("sqlite3 a.txt 'select 1'", ""),
    ("sqlite3 x.db 'create table t (a)'", "x.db"),
    ("sqlite3 a.txt .schema", ""),
    ("sqlite3 x.db", "x.db", "-- a note\nselect 1;\ncreate table t (a);\n"),
    ("sqlite3 -readonly x.db 'select 1'", ""),
    ("protoc --descriptor_set_out=out.pb x.proto", "out.pb"),
    ("pandoc a.txt -o out.html", "out.html"),
    ("ffmpeg -y -i in.mp4 -ss 1 out.mp3", "out.mp3"),
    ("convert in.png -resize 50% out.png", "out.png"),
    ("brew install x", ""),
    ("apt-get update", ""),
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_is_told_is_what_is_meant(ground, row):
    effects = effects_of(text_of(row), str(ground))
    wanted = row[1].split()
    sure = {word for word in wanted if word[0] not in "?~@"}
    certain, possible = told(effects, ground, set(state(ground)) | {word.lstrip("?") for word in wanted})
    assert certain == sure
    assert possible == {word[1:] for word in wanted if word[0] == "?"}
    assert bool(effects.guesses) == ("~" in wanted)
    assert effects.runs == ("@" in wanted)


# Programs that need nothing but files, and are quick: these are run as well.
_REAL = (
    *("cp mv ln install rsync rm touch truncate chmod shred mkfifo unlink tee dd sort uniq split csplit xxd".split()),
    *("iconv sed perl awk gawk ed ex patch tar unzip zip gzip gunzip xz bzip2 zstd ar sqlite3 gofmt".split()),
)


@pytest.mark.parametrize("name", _REAL)
@pytest.mark.sampled
def test_what_was_really_written_was_told(ground, tmp_path, name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; its package usually has the same name")
    environment = {**os.environ, "HOME": str(tmp_path), "LC_ALL": "C"}
    for number, row in enumerate(row for row in ROWS if row[0].split()[0] == name and "host:" not in row[0]):
        effects = effects_of(text_of(row), str(ground))
        copy = tmp_path / str(number)
        shutil.copytree(ground, copy, symlinks=True)
        before = state(copy)
        command = ["bash", "-c", text_of(row)]
        subprocess.run(command, cwd=copy, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=environment)
        after = state(copy)
        changed = {file for file in {*before, *after} if after.get(file) != before.get(file) and not _is_beside(file)}
        certain, possible = told(effects, ground, changed)
        assert changed <= certain | possible or effects.guesses, row[0]


def _is_beside(name: str) -> bool:
    """Files that patch leaves for hunks that fail: they are never locked."""
    return name.endswith((".rej", ".orig"))
