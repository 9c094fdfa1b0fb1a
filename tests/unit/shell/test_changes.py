"""The fate of the old text of a file that a command writes: changed, replaced or removed.

A row: a command, and its files with their fates: ``a=`` is an edit, ``a!`` replaces, ``a-`` removes; a slash behind the
name: with all that is in it, or as the disk tells.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from swarm_hook_core.shell import effects_of

SIGNS = {"edit": "=", "replace": "!", "remove": "-"}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ground")
    for name in ("f", "g", "h.py", "src/one.py", "src/two.py", "dest/f", "names"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("f\ng\n" if name == "names" else "x\n")
    with tarfile.open(folder / "p.tgz", "w:gz") as archive:
        archive.add(folder / "f", "f")
    return folder


def changes(command: str, folder: Path) -> str:
    found = effects_of(command, str(folder), {"HOME": str(folder / "home")})
    told = [(os.path.normpath(os.path.join(one.folder, one.path)), SIGNS[one.how]) for one in found.writes]
    told += [(one.root, "/" + SIGNS[one.how]) for one in found.trees]
    return " ".join(dict.fromkeys(os.path.relpath(path, folder) + sign for path, sign in told))


ROWS = [
    # redirections
    ("echo x > f", "f!"),
    ("echo x >| f", "f!"),
    ("make &> f", "f!"),
    ("make >& f", "f!"),
    (": > f", "f!"),
    ("> f", "f!"),
    ("echo x >> f", "f="),
    ("make &>> f", "f="),
    ("read x <> f", "f="),
    ("make 2> f", "f!"),
    ("make 2>> f", "f="),
    ("cat > f <<'E'\nx\nE", "f!"),
    ("cat >> f <<'E'\nx\nE", "f="),
    ("{ echo a; echo b; } > f", "f!"),
    ("for i in 1 2; do echo $i; done >> f", "f="),
    ("exec > f; echo", "f!"),
    ("echo a | cat > f", "f!"),
    ("echo > f; echo >> f", "f! f="),
    # text that goes to files
    ("make | tee f", "f!"),
    ("make | tee -a f", "f="),
    ("make | tee --append f g", "f= g="),
    ("sort -o f g", "f!"),
    ("sort -o f f", "f="),
    ("sort f -o f", "f="),
    ("sort f -o ./f", "f="),
    ("sort -u f g -o g", "g="),
    ("sort f | sponge f", "f="),
    ("uniq f g", "g!"),
    ("dd if=g of=f", "f!"),
    ("dd if=g of=f conv=notrunc", "f="),
    ("split -l1 f pre", "./!"),
    ("iconv -f latin1 f -o f", "f="),
    ("iconv -f latin1 g -o f", "f!"),
    ("curl -o f http://h/x", "f!"),
    ("curl -O http://h/f", "f!"),
    ("wget -O f http://h/x", "f!"),
    ("wget http://h/f", "f.1="),
    ("wget -a log http://h/z", "log= z="),
    ("pandoc f -o g", "g!"),
    ("gcc -o f main.c", "f!"),
    ("gcc -c h.c", "h.o!"),
    ("jq . f > f.new && mv f.new f", "f.new! f.new- f="),
    ("sed s/a/b/ f > t && cp t f", "t! f="),
    ("sed s/a/b/ < f > t; mv t f", "t! t- f="),
    ('echo "$(jq . f)" > f', "f="),
    ("echo $(sed s/a/b/ g) > f", "f!"),
    ('printf %s "$(< f)" > f', "f="),
    ('echo "$(sed s/a/b/ f)" > t && mv t f', "t! t- f="),
    ("head -n 5 f > t; echo x >> t; mv t f", "t! t= t- f="),
    ("sort f | uniq > t && mv t f", "t! t- f="),
    ("grep -v x g > t && mv t f", "t! t- f!"),
    ("echo x > t && mv t f", "t! t- f!"),
    ("tac ./f >> t && mv t ./f", "t= t- f="),
    ("sort f > t; cat t > f", "t! f="),
    ("cp f t; sort t > u; mv u f", "t! t/f! u! u- f="),
    # files
    ("rm f", "f-"),
    ("rm -f f g", "f- g-"),
    ("rm -r src", "src/-"),
    ("rmdir src", "src-"),
    ("unlink f", "f-"),
    ("shred f", "f-"),
    ("touch f", "f="),
    ("mkdir new", "new="),
    ("chmod +x f", "f="),
    ("truncate -s 0 f", "f!"),
    ("ln -s g f", "f="),
    ("ln -sf g f", "f!"),
    ("ln g new", "new= new/g="),
    ("trash f", "f/-"),
    ("gio remove f", "f/-"),
    ("gio rename f new", "f- new!"),
    ("sort f | tee t > /dev/null && mv t f", "t! t- f="),
    ("sort g | tee t > /dev/null && mv t f", "t! t- f!"),
    ("dos2unix f", "f="),
    ("cp g f", "f!"),
    ("cp -n g f", ""),
    ("cp -n g new", "new= new/g="),
    ("cp g dest", "dest/g!"),
    ("cp f g dest", "dest/f! dest/g!"),
    ("cp -r src dest", "dest/src/!"),
    ("cp -rn src dest", "dest/src/="),
    ("cp -b g f", "f! f~!"),
    ("install g f", "f!"),
    ("mv g f", "g- f!"),
    ("mv -n g f", ""),
    ("mv -n g new", "g- new= new/g="),
    ("mv g dest", "g- dest/g!"),
    ("mv src new", "new! new/src! src/- new/! new/src/!"),
    ("rsync g f", "f!"),
    ("rsync --ignore-existing g new", "new= new/g="),
    ("rsync -a src/ dest/", "dest/!"),
    ("rsync -a --delete src/ dest/", "dest/!"),
    ("rsync --remove-source-files g f", "f! g/-"),
    ("scp host:g f", "f!"),
    ("cmake -E rename g f", "g- f!"),
    ("cp ./*.py dest", "dest/h.py!"),
    # archives
    ("tar xzf p.tgz", "./!"),
    ("tar xkzf p.tgz", "./="),
    ("tar cf a.tar f", "a.tar!"),
    ("tar rf a.tar f", "a.tar="),
    ("tar cf a.tar f --remove-files", "a.tar! f/-"),
    ("unzip p.zip", "./!"),
    ("unzip -n p.zip", "./="),
    ("zip a.zip f", "a.zip="),
    ("zip -m a.zip f", "a.zip= f/-"),
    ("gzip f", "f- f.gz="),
    ("gzip -f f", "f- f.gz!"),
    ("gzip -k f", "f.gz="),
    ("gunzip f.gz", "f.gz- f="),
    ("7z x a.7z", "./!"),
    # programs that change a file in place
    ("sed -i s/a/b/ f", "f="),
    ("sed -i.bak s/a/b/ f", "f= f.bak!"),
    ("sed 's/a/b/w out' f", "out!"),
    ("perl -pi -e s/a/b/ f", "f="),
    ("awk -i inplace '{ print }' f", "f="),
    ("awk '{ print > \"out\" }' f", "out!"),
    ("awk '{ print >> \"out\" }' f", "out="),
    ("black h.py", "h.py="),
    ("ruff format src", "src/="),
    ("prettier --write f", "f="),
    ("gofmt -w h.go", "h.go="),
    ("ed f <<'E'\ns/a/b/\nw\nE", "f="),
    ("vim -es f -c wq", "f="),
    ("vim -es f -c 'w g'", "g!"),
    ("yq -i .a=1 f", "f="),
    ("patch f < /dev/null", "f="),
    ("patch -p0 <<'E'\n--- f\n+++ f\n@@ -1 +1 @@\n-x\n+y\nE", "f="),
    ("patch -p1 <<'E'\ndiff --git a/f b/h\nrename from f\nrename to h\nE", "f- h="),
    ("patch -p1 <<'E'\ndiff --git a/f b/f\nrename from f\nrename to f\nE", "f="),
    ("git apply <<'E'\ndiff --git a/f b/h\nrename from f\nrename to h\nE", "f- h="),
    ("git apply -R <<'E'\ndiff --git a/h b/f\nrename from h\nrename to f\nE", "h= f-"),
    ("convert f f", "f="),
    ("convert f g", "g!"),
    ("sqlite3 f 'INSERT INTO t VALUES (1)'", "f="),
    ("npm init", "package.json="),
    ("sd a b f", "f="),
    ("ruby -i -pe '$_' f", "f="),
    ("perl -i.bak -pe s/a/b/ f", "f= f.bak!"),
    # programs that are not known: nothing says that anything is lost
    ("frob --output f", "f="),
    ("frob -o f", "f="),
    # others that run commands
    ("find src -name '*.py' -delete", "src/one.py- src/two.py-"),
    ("find src -type f -exec rm {} +", "src/one.py- src/two.py-"),
    ("find src -name one.py -exec sed -i s/a/b/ {} \\;", "src/one.py="),
    ("find . -name f -fprint out", "out!"),
    ("cat names | xargs rm", "f- g-"),
    ("echo f g | xargs sed -i s/a/b/", "f= g="),
    ("ls src/*.py | xargs -I{} cp g {}", "src/one.py! src/two.py!"),
    ("grep -rl x src | xargs rm", "src/one.py- src/two.py-"),
    ("sudo rm f", "f-"),
    ("bash -c 'rm f; echo > g'", "f- g!"),
    ("env A=1 tee f < g", "f!"),
    ("if true; then rm f; fi", "f-"),
    ("false && cat <(rm f)", "f-"),
    ("for n in f g; do mv $n $n.old; done", "f- f.old! f.old/f! g- g.old! g.old/g!"),
    ("parallel rm ::: f g", "f- g-"),
    ("git archive -o f HEAD", "f!"),
    # Codex's own command
    (
        "apply_patch <<'E'\n*** Begin Patch\n*** Add File: n\n+x\n*** Update File: f\n@@\n-x\n+y\n*** Delete File: g\n*** End Patch\nE",
        "n! f= g-",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_command_changes_replaces_or_removes(row: tuple[str, str], ground: Path) -> None:
    assert sorted(changes(row[0], ground).split()) == sorted(row[1].split())


PYTHON = [
    ("open('f', 'w').write('x')", "f!"),
    ("open('f', 'wb')", "f!"),
    ("open('f', 'w+')", "f!"),
    ("open('f', 'a')", "f="),
    ("open('f', 'r+')", "f="),
    ("open('new', 'x')", "new="),
    ("open('f')", ""),
    ("s = open('f').read(); open('f', 'w').write(s)", "f="),
    ("s = open('g').read(); open('f', 'w').write(s)", "f!"),
    ("import os; os.remove('f'); os.unlink('g')", "f- g-"),
    ("import os; os.rename('g', 'f')", "g- f!"),
    ("import os; os.replace('g', 'f')", "g- f!"),
    ("import os; os.truncate('f', 0)", "f!"),
    ("import os; os.chmod('f', 1)", "f="),
    ("import os; os.makedirs('new')", "new="),
    ("import os; os.symlink('g', 'new')", "new="),
    ("import shutil; shutil.rmtree('src')", "src/-"),
    ("import shutil; shutil.copy('g', 'f')", "f!"),
    ("import shutil; shutil.copyfile('g', 'f')", "f!"),
    ("import shutil; shutil.move('g', 'f')", "g- f!"),
    ("import shutil; shutil.move('g', 'dest')", "g- dest/g!"),
    ("import shutil; shutil.copytree('src', 'dest')", "dest/!"),
    ("from pathlib import Path; Path('f').write_text('x')", "f!"),
    ("from pathlib import Path; Path('f').unlink()", "f-"),
    ("from pathlib import Path; p = Path('f'); p.write_text(p.read_text().replace('a', 'b'))", "f="),
    ("from pathlib import Path; p = Path('f'); p.write_bytes(p.read_bytes())", "f="),
    ("from pathlib import Path; Path('f').open('a')", "f="),
    ("from pathlib import Path; Path('g').rename('f')", "g- f!"),
    ("from pathlib import Path; Path('f').touch()", "f="),
    ("from pathlib import Path; Path('f').open('w')", "f!"),
    ("import json\nwith open('f') as r: d = json.load(r)\nd['a'] = 1\nwith open('f', 'w') as w: json.dump(d, w)", "f="),
    ("import json\nd = {}\nwith open('f', 'w') as w: json.dump(d, w)", "f!"),
    ("import os\ns = open('f').read()\nopen('t', 'w').write(s)\nos.replace('t', 'f')", "t! t- f="),
    ("def edit(p):\n    s = open(p).read()\n    open(p, 'w').write(s)\nedit('f'); edit('g')", "f= g="),
    ("import pandas as pd; d = pd.read_csv('f'); d.to_csv('f')", "f="),
    ("import pandas as pd; pd.DataFrame().to_csv('f.csv')", "f.csv!"),
    ("from pathlib import Path\nfor p in Path('src').glob('*.py'): p.write_text(p.read_text() + 'x')", "src/="),
    ("from pathlib import Path\nfor p in Path('src').glob('*.py'): p.write_text('x')", "src/!"),
    ("import glob, os\nfor p in glob.glob('src/*.py'): os.remove(p)", "src/-"),
    ("import subprocess; subprocess.run(['rm', 'f'])", "f-"),
    ("import os; os.system('echo > f')", "f!"),
    ("import logging; logging.basicConfig(filename='f')", "f="),
    ("import zipfile; zipfile.ZipFile('a.zip', 'a')", "a.zip="),
    ("import zipfile; zipfile.ZipFile('a.zip', 'w')", "a.zip!"),
    ("import urllib.request as u; u.urlretrieve('http://h', 'f')", "f!"),
]


@pytest.mark.parametrize("row", PYTHON, ids=lambda row: row[0][:60])
def test_python_code_changes_replaces_or_removes(row: tuple[str, str], ground: Path) -> None:
    assert changes(f"python3 - <<'EOF'\n{row[0]}\nEOF\n", ground) == row[1]


SCANNED = [
    ("node", "fs.writeFileSync('f', 'x')", "f!"),
    ("node", "fs.appendFileSync('f', 'x')", "f="),
    ("node", "fs.unlinkSync('f')", "f-"),
    ("node", "fs.writeFileSync('f', fs.readFileSync('f', 'utf8').trim())", "f="),
    ("node", "const s = fs.readFileSync('g'); fs.writeFileSync('f', s)", "f!"),
    ("node", "fs.readFileSync('f')", ""),
    ("node", "fs.writeFileSync('f', 'x', {flag: 'a'})", "f="),
    ("node", "fs.rmSync('src', {recursive: true})", "src/-"),
    ("node", "fs.renameSync('g', 'f')", "g- f!"),
    ("node", "fs.copyFileSync('g', 'f')", "f!"),
    ("node", "fs.openSync('f', 'w')", "f!"),
    ("node", "fs.openSync('f', 'a')", "f="),
    ("node", "fs.chmodSync('f', 0)", "f="),
    ("node", "const read = require('fs').readFileSync; read(x)", ""),
    ("ruby", "File.write('f', 'x')", "f!"),
    ("ruby", "File.write('f', File.read('f').upcase)", "f="),
    ("ruby", "File.delete('f')", "f-"),
    ("ruby", "File.open('f', 'a')", "f="),
    ("ruby", "File.open('f', 'w')", "f!"),
    ("ruby", "FileUtils.rm_rf('src')", "src/-"),
    ("ruby", "FileUtils.cp('g', 'f')", "f!"),
    ("ruby", "FileUtils.touch('f')", "f="),
    ("ruby", "FileUtils.mv('g', 'f')", "g- f!"),
    ("perl", "open(F, '>', 'f')", "f!"),
    ("perl", "open(F, '>>', 'f')", "f="),
    ("perl", "open(F, '> f')", "f!"),
    ("perl", "unlink 'f'", "f-"),
    ("perl", "open(F, '<', 'f'); open(G, '>', 'f')", "f="),
    ("perl", "rename 'g', 'f'", "g- f!"),
    ("perl", "open(F, '+<', 'f')", "f="),
    ("php", "file_put_contents('f', 'x');", "f!"),
    ("php", "file_put_contents('f', 'x', FILE_APPEND);", "f="),
    ("php", "unlink('f');", "f-"),
    ("php", "file_put_contents('f', strtoupper(file_get_contents('f')));", "f="),
    ("lua", "os.remove('f')", "f-"),
    ("lua", "io.open('f', 'w')", "f!"),
    ("lua", "io.open('f', 'a')", "f="),
]


@pytest.mark.parametrize("row", SCANNED, ids=lambda row: row[1][:60])
def test_other_code_changes_replaces_or_removes(row: tuple[str, str, str], ground: Path) -> None:
    option = "-r" if row[0] == "php" else "-e"
    quoted = row[1].replace("'", "'\"'\"'")
    assert changes(f"{row[0]} {option} '{quoted}'", ground) == row[2]


def test_what_is_only_possible_says_the_same(ground: Path) -> None:
    for command, sign in (("cd src && cd deep; rm f", "-"), ("cd src && cd deep; echo >> f", "=")):
        assert {told[-1] for told in changes(command, ground).split()} == {sign}
