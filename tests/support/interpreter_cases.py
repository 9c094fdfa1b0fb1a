"""Code for interpreters, for tests of its analysis.

Its changes are written in it, or follow from existing files; ``*_READS`` change nothing; the changes of ``*_COMPUTED``
are not written in them, so that they can only be guessed. `COMMANDS` are whole commands.
"""

import io
import os
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

FILES = {
    "a.txt": "alpha\nbeta\n",
    "b.txt": "bravo\n",
    ".dot.txt": "hidden\n",
    "list.txt": "a.txt\nb.txt\n",
    "c.json": '{"name": "c", "n": 1}\n',
    "data.csv": "x,y\n1,2\n",
    "src/app.py": "import os\nVERSION = '1.0'\nfoo = 1\n",
    "src/util.py": "def foo():\n    return 'foo'\n",
    "src/deep/x.py": "bar = 2\n",
    "docs/a.md": "# A\nold\n",
    "docs/b.md": "# B\n",
    "docs/img/logo.svg": "<svg/>\n",
    "tree.xml": "<a><b/></a>\n",
}


def lay_out(folder: Path) -> None:
    """The files that the code works on."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "out").mkdir()
    with zipfile.ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr("in/z.txt", "z")
    with tarfile.open(folder / "t.tar", "w") as archive:
        member = tarfile.TarInfo("in/t.txt")
        archive.addfile(member, io.BytesIO(b""))
    with closing(sqlite3.connect(folder / "app.db")) as base, base:
        base.execute("CREATE TABLE t (x)")
    base.close()
    long_ago = 1_600_000_000
    for path in folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))


PYTHON = [
    "open('a.txt', 'w').write('x')",
    "with open('a.txt') as f, open('new.txt', mode='wt', encoding='utf8') as g:\n    g.write(f.read())",
    "import io, codecs\nio.open('n1', 'a').close()\ncodecs.open('n2', 'w', 'utf-8').close()",
    "p = 'src/app.py'\ns = open(p).read()\ns = s.replace('1.0', '2.0')\nopen(p, 'w').write(s)",
    "from pathlib import Path\np = Path('src') / 'app.py'\np.write_text(p.read_text().replace('1.0', '1.1'))",
    "import pathlib as pl\npl.Path('docs', 'a.md').write_bytes(b'x')",
    "from pathlib import Path\nPath('a.txt').rename('z.txt')\nPath('b.txt').unlink()\nPath('touched').touch()",
    "from pathlib import Path\nPath('a.txt').replace(Path('docs/b.md'))",
    "from pathlib import Path\nPath('newdir/x').mkdir(parents=True)\n(Path('newdir') / 'x' / 'f.txt').write_text('1')",
    "from pathlib import Path\nwith Path('a.txt').open('a') as f: print('more', file=f)",
    (
        "from pathlib import Path\np = Path('docs/a.md')\np.with_suffix('.txt').write_text('x')\n"
        "p.with_name('q.md').touch()"
    ),
    "from pathlib import Path\np = Path('docs/a.md')\n(p.parent / f'{p.stem}.bak').write_text(p.read_text())",
    "from pathlib import Path\nPath('link').symlink_to('a.txt')\nPath('a.txt').chmod(0o600)",
    (
        "from pathlib import Path\n(Path.cwd() / 'here.txt').write_text('x')\n"
        "(Path('.').resolve() / 'there.txt').write_text('x')"
    ),
    "import os\nos.remove('a.txt'); os.unlink('b.txt'); os.rename('c.json', 'd.json')",
    "import os\nos.makedirs('p/q/r'); os.rmdir('out'); os.symlink('a.txt', 'l'); os.link('b.txt', 'h')",
    "import os\nos.truncate('a.txt', 0); os.chmod('b.txt', 0o600); os.utime('c.json')",
    "from os import path, remove as rm\nrm(path.join('src', 'deep', 'x.py'))",
    "import os\nos.replace('docs', 'papers')",
    "import shutil\nshutil.copy('a.txt', 'copy.txt'); shutil.copy2('b.txt', 'out'); shutil.copyfile('a.txt', 'b.txt')",
    "import shutil\nshutil.move('a.txt', 'out'); shutil.move('b.txt', 'moved.txt')",
    "import shutil\nshutil.rmtree('docs'); shutil.copytree('src', 'src2')",
    "import shutil\nshutil.copytree('src', 'docs', dirs_exist_ok=True)",
    (
        "import json\nd = json.load(open('c.json'))\nd['n'] += 1\nwith open('c.json', 'w') as f:\n"
        "    json.dump(d, f, indent=2)"
    ),
    "import csv\nwith open('data.csv', 'a', newline='') as f: csv.writer(f).writerow([3, 4])",
    "for name in ['a.txt', 'b.txt']:\n    with open(name, 'a') as f:\n        f.write('x')",
    "for name, text in {'n1.txt': 'a', 'n2.txt': 'b'}.items(): open(name, 'w').write(text)",
    "for name, text in [('n1.txt', 'a'), ('n2.txt', 'b')]:\n    open(name, 'w').write(text)",
    "for i, name in enumerate(('x', 'y')): open(f'{name}{i}.txt', 'w').write(str(i))",
    "[open(f'{n:02d}.txt', 'w').close() for n in range(3)]",
    "names = []\nfor n in 'ab':\n    names.append(n + '.txt')\nfor n in names: open(n, 'a').write('1')",
    (
        "def edit(path, old, new):\n    s = open(path).read()\n    assert s.count(old) == 1, path\n"
        "    open(path, 'w').write(s.replace(old, new))\nedit('a.txt', 'alpha', 'ALPHA')\n"
        "edit('docs/a.md', '''old''', 'new')"
    ),
    (
        "from pathlib import Path\nROOT = Path('docs')\ndef write(name, text='x'):\n"
        "    (ROOT / name).write_text(text)\ndef main():\n    for n in ('a.md', 'new.md'):\n        write(n)\n"
        "if __name__ == '__main__':\n    main()"
    ),
    "import os\nos.chdir('docs')\nopen('a.md', 'w').write('x')",
    (
        "import os\nbase = 'docs'\nopen(os.path.join(base, 'a.md'), 'w').write('x')\n"
        "open('%s/%s.md' % (base, 'b'), 'w').write('y')\nopen('{}/n.md'.format(base), 'w').close()"
    ),
    "import sys\nname = sys.argv[1] if len(sys.argv) > 1 else 'default.txt'\nopen(name, 'w').write('x')",
    (
        "import subprocess\nsubprocess.run(['touch', 'sub.txt'], check=True)\n"
        "subprocess.check_call('rm a.txt', shell=True)"
    ),
    (
        "import subprocess\nsubprocess.run(['sed', '-i', 's/old/new/', 'a.md'], cwd='docs')\n"
        "subprocess.run(['cp', 'a.txt', 'cp.txt'])"
    ),
    "import os\nos.system('mv a.txt moved.txt')\nf = os.popen('tee t.txt', 'w'); f.write('x'); f.close()",
    "import glob\nfor p in glob.glob('*.txt'):\n    with open(p, 'a') as f: f.write('x')",
    "from pathlib import Path\n[p.unlink() for p in Path('docs').glob('*.md')]",
    "import glob, subprocess\nsubprocess.run(['touch', *glob.glob('*.txt')])",
    "import zipfile\nwith zipfile.ZipFile('made.zip', 'w') as z: z.write('a.txt')",
    "import tarfile\nwith tarfile.open('made.tgz', 'w:gz') as t: t.add('a.txt')",
    "import gzip\nwith gzip.open('a.gz', 'wt') as f: f.write('x')",
    "import sqlite3\nc = sqlite3.connect('app.db')\nc.execute('INSERT INTO t VALUES (1)')\nc.commit()",
    (
        "import sqlite3\nwith sqlite3.connect('new.db') as c:\n"
        "    c.executescript('create table x(y); insert into x values (1)')"
    ),
    "import logging\nlogging.basicConfig(filename='app.log', level='INFO')\nlogging.info('x')",
    (
        "import tempfile, os, shutil\nwith tempfile.NamedTemporaryFile('w', delete=False) as f:\n"
        "    f.write('x')\nshutil.move(f.name, 'from-temp.txt')"
    ),
    "__import__('os').remove('a.txt')",
    "import os\n(getattr(os, 'remove'))('a.txt')",
    "try:\n    open('missing')\nexcept OSError:\n    open('made-on-error.txt', 'w').close()",
    "import os\nif not os.path.exists('n.txt'):\n    open('n.txt', 'w').close()",
    "import contextlib, io\nwith open('stdout.txt', 'w') as f, contextlib.redirect_stdout(f): print('x')",
    (
        "from concurrent.futures import ThreadPoolExecutor\ndef w(n): open(n, 'w').close()\n"
        "with ThreadPoolExecutor() as e: list(map(w, ['t1', 't2']))"
    ),
    "import asyncio\nasync def main():\n    open('async.txt', 'w').close()\nasyncio.run(main())",
    (
        "import re\ns = open('src/app.py').read()\ns = re.sub(r\"VERSION = '.*?'\", \"VERSION = '3'\", s)\n"
        "open('src/app.py', 'w').write(s)"
    ),
    (
        "lines = open('a.txt').readlines()\nlines[0] = 'x\\n'\nlines.insert(1, 'y\\n')\n"
        "open('a.txt', 'w').writelines(lines)"
    ),
    (
        "import textwrap, pathlib\npathlib.Path('gen.py').write_text(textwrap.dedent('''\n    import os\n"
        "    os.remove('no')\n'''))"
    ),
    "import os\nimport os.path\nos.path.exists('a.txt') and os.remove('a.txt')",
    "with open('a.txt', 'r+') as f:\n    d = f.read()\n    f.seek(0); f.write(d.upper()); f.truncate()",
    (
        "import configparser\nc = configparser.ConfigParser()\nc['x'] = {'a': 'b'}\n"
        "with open('c.ini', 'w') as f: c.write(f)"
    ),
    "import pickle, base64\npickle.dump({}, open('p.pkl', 'wb'))\nopen('b.bin', 'wb').write(base64.b64decode('eA=='))",
    "x = lambda p: open(p, 'w').close()\nx('lam.txt')",
    (
        "import os\nopen(os.path.splitext('docs/a.md')[0] + '.html', 'w').close()\n"
        "open(os.path.dirname('docs/a.md') + '/x', 'w').close()"
    ),
    "import shutil, os\nfor f in ['a.txt', 'b.txt']:\n    shutil.copy(f, f + '.bak')\n    os.remove(f)",
    "print('x', file=open('printed.txt', 'w'))",
    "import sys\nsys.stdout = open('redirected.txt', 'w')\nprint('x')",
    (
        "from pathlib import Path\nbase = Path('docs')\nfor name in ('a', 'b'):\n"
        "    path = base / f'{name}.md'\n    if path.exists():\n        path.unlink()"
    ),
]

PYTHON += [
    (
        "from subprocess import run, PIPE\n"
        "out = run(['echo', 'n.txt'], stdout=PIPE, text=True).stdout.strip()\nopen('fixed.txt', 'w').write(out)"
    ),
    "for e in [{'file': 'a.txt', 'n': 1}, {'file': 'b.txt', 'n': 2}]:\n    open(e['file'], 'a').write('x')",
    "for name in '''\na.txt\nb.txt\n'''.strip().splitlines():\n    open(name, 'a').write('x')",
    (
        "from pathlib import Path\nfor p in map(Path, ['a.txt', 'docs/b.md']):\n    "
        "p.write_text(p.read_text().upper() + 'x')"
    ),
    "from shutil import *\nfrom os import *\ncopy('a.txt', 'n.txt')\nremove('b.txt')",
]
PYTHON_READS = [
    "print(open('a.txt').read())",
    "import json; print(json.load(open('c.json'))['name'])",
    "import json,sys; d=json.load(sys.stdin); print(d)",
    'import sys; sys.stdout.write(\'open("a.txt", "w")\')',
    "from pathlib import Path\nfor p in Path('.').rglob('*.py'):\n    print(p, len(p.read_text().splitlines()))",
    "import os\nfor r, d, f in os.walk('.'):\n    print(r, len(f))",
    "import re\ns = open('src/app.py').read()\nprint(re.findall(r'import (\\w+)', s), s.replace('a', 'b'))",
    "import ast\nprint(ast.dump(ast.parse(open('src/app.py').read())))",
    "import sqlite3\nprint(sqlite3.connect('app.db').execute('SELECT * FROM t').fetchall())",
    "import zipfile; print(zipfile.ZipFile('z.zip').namelist())",
    "import tarfile; print(tarfile.open('t.tar').getnames())",
    "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'x'), 'w').write('1')",
    "import tempfile\nf = tempfile.NamedTemporaryFile('w'); f.write('x')",
    "import csv\nfor row in csv.reader(open('data.csv')): print(row)",
    "def write(p): open(p, 'w')\nprint('not called')",
    "import subprocess; print(subprocess.check_output(['cat', 'a.txt'], text=True))",
    "import subprocess; subprocess.run('grep -c a a.txt; wc -l b.txt', shell=True)",
    "# open('a.txt', 'w')\nprint('''os.remove(\"a.txt\")''')",
    "import datetime; print(datetime.datetime.now().replace(microsecond=0))",
    "from pathlib import Path; print(Path('a.txt').stat().st_size, Path('a.txt').exists(), list(Path('.').iterdir()))",
    "import os; print(os.environ.get('HOME'), os.getcwd(), os.listdir('.'))",
    "import sys; print(sys.version); sys.exit(0)",
    "import os, sys\nif len(sys.argv) > 9:\n    os.remove('a.txt')",
    "s = 'a-b'.replace('-', '_'); print(s.title(), [c for c in s])",
    "import os\nos.makedirs('out', exist_ok=True)",
    "open('/dev/null', 'w').write('x')",
    "import io; b = io.StringIO(); b.write('x'); print(b.getvalue())",
    "import hashlib; print(hashlib.sha256(open('a.txt', 'rb').read()).hexdigest())",
    "from unittest import mock\nprint(mock)",
    "import difflib; print(list(difflib.unified_diff(open('a.txt').readlines(), open('b.txt').readlines())))",
    "print('%s and {}'.format(1) % 'x', f'{1:>{5}}', 2 ** 100)",
    "import urllib.parse; print(urllib.parse.quote('a b'))",
    "match = {'a': 1}\nmatch.update(b=2)\nprint(match)\nq = set(); q.add(1); q.remove(1)",
    "l = [3, 1]\nl.sort()\nl.remove(1)\nl.copy()\nprint(l)",
    "import this_module_does_not_exist",
    "open('a.txt', 'w'",
]

PYTHON_COMPUTED = [
    "import os\nfd = os.open('raw.bin', os.O_WRONLY | os.O_CREAT, 0o644)\nos.write(fd, b'x')\nos.close(fd)",
    (
        "from pathlib import Path\nfor p in Path('src').rglob('*.py'):\n    t = p.read_text()\n"
        "    if 'foo' in t:\n        p.write_text(t.replace('foo', 'baz'))"
    ),
    (
        "from pathlib import Path\nfor p in Path('.').glob('**/*.py'):\n    t = p.read_text()\n"
        "    n = t.replace('foo', 'baz')\n    if n != t:\n        p.write_text(n)"
    ),
    (
        "from pathlib import Path\nfor p in sorted(Path('docs').iterdir()):\n"
        "    if p.suffix != '.md': continue\n    p.write_text(p.read_text() + 'x')"
    ),
    (
        "import os\nfor root, dirs, files in os.walk('src'):\n    for name in files:\n"
        "        if name.endswith('.py'):\n            path = os.path.join(root, name)\n"
        "            s = open(path).read()\n            if 'foo' not in s:\n                continue\n"
        "            with open(path, 'w') as f:\n                f.write(s.replace('foo', 'x'))"
    ),
    "import os\nfor n in os.listdir('docs'):\n    if n.endswith('.md'):\n        os.remove(os.path.join('docs', n))",
    (
        "from pathlib import Path\n"
        "files = [p for p in Path('.').rglob('*') if p.is_file() and p.suffix == '.md']\nfor p in files:\n"
        "    p.write_text('x')"
    ),
    "import xml.etree.ElementTree as ET\nt = ET.parse('tree.xml')\nt.getroot().set('k', 'v')\nt.write('tree.xml')",
    "import os\nwith os.fdopen(os.open('fd.txt', os.O_RDWR | os.O_CREAT), 'w') as f: f.write('x')",
    # Limits of the analysis: fileinput, classes, functions that others call, names made of names of the disk.
    "import shutil\nshutil.make_archive('pack', 'zip', 'src')",
    "import glob, os\nfor p in sorted(glob.glob('docs/*.md')):\n    os.rename(p, p[:-3] + '.txt')",
    (
        "from pathlib import Path\nfor p in Path('docs').glob('*.md'):\n"
        "    (Path('out') / p.name).write_text(p.read_text())"
    ),
    "i = 0\nwhile i < 3:\n    open(f'w{i}.txt', 'w').close()\n    i += 1",
    "import fileinput, sys\nfor line in fileinput.input('a.txt', inplace=True): sys.stdout.write(line.upper())",
    (
        "import fileinput\nwith fileinput.input(files=('a.txt', 'b.txt'), inplace=1) as f:\n"
        "    for l in f: print(l, end='')"
    ),
    (
        "class Store:\n    def __init__(self, path):\n        self.path = path\n    def save(self):\n"
        "        with open(self.path, 'w') as f: f.write('s')\nStore('store.txt').save()"
    ),
    (
        "from dataclasses import dataclass\n@dataclass\nclass Edit:\n    path: str\n    text: str = ''\n"
        "for e in [Edit('a.txt', 'x'), Edit(path='n.txt')]:\n    open(e.path, 'w').write(e.text)"
    ),
    (
        "import threading\ndef w(p): open(p, 'w').close()\n"
        "ts = [threading.Thread(target=w, args=(n,)) for n in ('t1', 't2')]\n[t.start() for t in "
        "ts]\n[t.join() for t in ts]"
    ),
    (
        "from concurrent.futures import ThreadPoolExecutor as T\ndef w(p, t): open(p, 'w').write(t)\n"
        "with T() as pool:\n    pool.submit(w, 's1', 'x')\n    list(pool.map(lambda p: w(p, ''), ['s2', 's3']))"
    ),
    "import datetime; open(f'log-{datetime.date.today()}.txt', 'w').write('x')",
    "for line in open('list.txt'):\n    open(line.strip(), 'a').write('x')",
    "import sys\nfor l in sys.stdin: open(l.strip(), 'w')",
    "import random, os\nos.remove(random.choice(['a.txt', 'b.txt']))",
    "exec(open('src/app.py').read())",
    "import os; os.system(input())",
    "import json; json.dump({}, open(json.load(open('c.json'))['name'], 'w'))",
    "import sys; sys.path.insert(0, 'src'); import util",
    "import src.app",
    "import random\np = 'a.txt'\nif random.random() > 2: p = 'b.txt'\nopen(p, 'a').write('x')",
    "for n in range(2): open('%03d.txt' % n, 'w').write('x')",
    "exec(\"open('by-exec.txt', 'w').close()\")",
    "import subprocess\nfor n in subprocess.check_output(['cat', 'list.txt'], text=True).split(): open(n, 'a').write('x')",
]

NODE = [
    "require('fs').writeFileSync('a.txt', 'x')",
    (
        "const fs = require('fs'); const p = 'c.json'; const j = JSON.parse(fs.readFileSync(p)); j.n = "
        "2; fs.writeFileSync(p, JSON.stringify(j, null, 2) + '\\n')"
    ),
    "const {writeFileSync: w, rmSync} = require('fs'); w('q', '1'); rmSync('docs', {recursive: true})",
    "fs.promises.writeFile('p.txt', 'x').then(() => console.log('done'))",
    (
        "const fsp = require('fs').promises; (async () => { await fsp.appendFile('a.txt', 'x'); await "
        "fsp.unlink('b.txt') })()"
    ),
    (
        "fs.renameSync('a.txt', 'z.txt'); fs.copyFileSync('b.txt', 'bb.txt'); fs.mkdirSync('made/deep', "
        "{recursive: true})"
    ),
    "fs.createWriteStream('out.log', {flags: 'a'}).end('x')",
    "const fd = fs.openSync('o.txt', 'w'); fs.writeSync(fd, 'x'); fs.closeSync(fd); fs.openSync('a.txt', 'r')",
    "require('child_process').execSync('touch t.txt && rm a.txt')",
    "const {spawnSync} = require('child_process'); spawnSync('sed', ['-i', 's/old/new/', 'docs/a.md'])",
    "fs.writeFileSync(process.argv[1], 'x')",
    "process.chdir('docs'); fs.writeFileSync('a.md', 'x')",
    "fs.truncateSync('a.txt'); fs.symlinkSync('a.txt', 'l'); fs.cpSync('src', 'src3', {recursive: true})",
    "const p = require('path').resolve('docs', 'a.md'); fs.writeFileSync(p, 'x')",
    (
        "fs.writeFileSync('./src/app.py', fs.readFileSync('./src/app.py', 'utf8').split('\\n').map(l => "
        "l + ' // x').join('\\n'))"
    ),
    (
        "const {\n  appendFile: more,\n  rm\n} = require('fs/promises'); more('a.txt', 'x'); rm('b.txt');"
        "import('fs').then(m => m.rmSync('c.json'))"
    ),
]

NODE_READS = [
    "console.log(fs.readFileSync('a.txt', 'utf8').split('\\n').length)",
    "console.log(\"fs.writeFileSync('no.txt')\") // fs.writeFileSync('no.txt')",
    "/* fs.unlinkSync('a.txt') */ console.log(`fs.rmSync('b.txt')`)",
    "const j = require('./c.json'); console.log(j.name, Object.keys(j))",
    "const s = new Map(); s.delete('a.txt'); s.set('a.txt', 1); console.log([1].map(x => x + 1))",
    "console.log(require('child_process').execSync('cat a.txt').toString())",
    "fs.readdirSync('.').forEach(f => console.log(f, fs.statSync(f).size))",
    "const re = /fs.writeFileSync\\('x'/; console.log(re.exec('y'), 4 / 2 / 1)",
    "process.stdout.write('x'); console.log(process.version)",
    "fs.createReadStream('a.txt').pipe(process.stdout)",
    "const cp = require('child_process'); console.log(/a(.)/.test('ab'), cp.execFileSync('cat', ['a.txt']).length)",
]

NODE_COMPUTED = [
    (
        "const fs = require('node:fs'), path = require('path'); for (const f of ['n1', 'n2']) "
        "fs.writeFileSync(path.join('docs', f + '.md'), `x`)"
    ),
    "['a', 'b'].forEach(f => fs.appendFileSync(`${f}.txt`, 'x'))",
    (
        "const files = ['a.txt', 'b.txt'];\nfor (let f of files) {\n  let s = fs.readFileSync(f, 'utf8')\n"
        "  s = s.replace(/['\"]a/g, 'b')\n  fs.writeFileSync(f, s + 'x')\n}"
    ),
    "require('child_process').execFileSync('touch', ['x.txt'], {cwd: 'docs'})",
    # Parameters of functions are not followed, nor are maps.
    (
        "const edit = (p, a, b) => { const s = fs.readFileSync(p, 'utf8'); fs.writeFileSync(p, "
        "s.replace(a, b)) }; edit('a.txt', /alpha/, 'A'); edit('b.txt', 'bravo', 'B')"
    ),
    (
        "function save(name, text) {\n  fs.writeFileSync(name, text)\n}\n"
        "save('one.txt', 'a, b'); save('two.txt', \"it's\")"
    ),
    "for (const [p, s] of Object.entries({'n1.txt': 'a', 'n2.txt': 'b'})) { fs.writeFileSync(p, s) }",
    "fs.writeFileSync(`log-${Date.now()}.txt`, 'x')",
    "for (const f of fs.readdirSync('docs')) { if (f.endsWith('.md')) fs.appendFileSync('docs/' + f, 'x') }",
    "const f = 'a.txt'; const add = f => fs.appendFileSync(f, 'x'); add('b.txt')",
    "let p = 'a'; p += '.txt'; fs.appendFileSync(p, 'x')",
]

PERL = [
    "open(my $fh, '>', 'n.txt') or die $!; print $fh 'x'; close $fh",
    "open(F, '>>a.txt'); print F 1; close F",
    "unlink 'a.txt', 'b.txt'",
    "unlink('a.txt') or die; rename('b.txt', 'z.txt')",
    "system('touch t.txt'); `rm a.txt`; system 'cp', 'b.txt', 'c.txt'",
    (
        "my $p = 'docs/a.md'; open(my $in, '<', $p); local $/; my $s = <$in>; $s =~ s/old/new/; open(my "
        "$o, '>', $p); print $o $s"
    ),
    "use File::Copy; copy('a.txt', 'cc.txt'); move('b.txt', 'out')",
    "mkdir 'made'; rmdir 'out'; symlink 'a.txt', 'l'; chmod 0600, 'a.txt'",
    ("my $dir = 'docs'; open(my $o, '>', $dir . '/new.md') or die \"no $dir\"; print {$o} q{it's}; # unlink 'b.txt'"),
    "open(F, '>>', 'a.txt') || die; print F <<EOT;\nit's unlink('b.txt')\nEOT\nclose F; unlink 'c.json'",
]

PERL_COMPUTED = [
    "for my $f (qw(a b)) { open(my $h, '>>', \"$f.txt\") or die; print $h 1 }",
]

PERL_READS = [
    "open(my $f, '<', 'a.txt') or die; while (<$f>) { print if /a/ }",
    "print \"unlink 'a.txt'\\n\"; # unlink 'b.txt'",
    "$_ = 'x unlink y'; s/unlink 'a.txt'/b/; print q(open(F, '>a.txt'));",
    "print join(',', sort { $a <=> $b } (3, 1)), `cat a.txt`",
    "open(F, 'a.txt'); print <F>; my %h = (y => 1, s => 2); print $h{s}",
]

RUBY = [
    "File.write('a.txt', 'x')",
    "File.open('n.txt', 'w') { |f| f.puts 'x' }",
    (
        "require 'fileutils'; FileUtils.rm_rf 'docs'; FileUtils.mv('a.txt', 'b.txt'); FileUtils.mkdir_p "
        "'x/y'; FileUtils.touch %w[t1 t2]"
    ),
    "path = 'docs/a.md'\ns = File.read(path)\nFile.write(path, s.gsub(/ol'd|old/, 'new'))",
    "f = 'c.txt'; IO.write(f, <<~EOS)\n  it's File.delete('b.txt')\nEOS\nFile.delete('a.txt')",
    "system('touch t.txt'); `rm a.txt`; system('cp', 'b.txt', 'cp.txt')",
    "File.delete('a.txt', 'b.txt') if File.exist?('a.txt')",
    (
        "File.rename 'a.txt', 'z.txt'; Dir.mkdir 'made'; File.open(File.join('docs', 'n.md'), 'a') do |f|\n"
        "  f << 'x'\nend"
    ),
    "File.open('n.txt', 'w') do |f|\n  f.puts <<~EOS\n    it's File.delete('b.txt')\n  EOS\nend\nFile.delete('a.txt')",
]

RUBY_COMPUTED = [
    "%w[a b].each { |f| File.write(\"#{f}.txt\", 'x') }",
    "def edit(path, text)\n  File.write(path, text)\nend\nedit('one.txt', 'a')\nedit('two.txt', 'b')",
]

RUBY_READS = [
    "puts File.read('a.txt')",
    "File.open('a.txt').each { |l| puts l }; File.open('b.txt', 'r') { |f| f.read }",
    "puts \"File.delete('a.txt')\" # File.delete('b.txt')",
    "Dir['*.txt'].each { |f| puts f, File.size(f) }; h = {a: 1}; h.delete(:a)",
    "puts 'x'.sub(/File.write('a.txt')/, 'y'), 4 / 2",
    "=begin\nFile.delete('a.txt')\n=end\nputs 1",
]

PHP = [
    "file_put_contents('a.txt', 'x');",
    "$h = fopen('n.txt', 'w'); fwrite($h, 'x');",
    "rename('a.txt', 'z.txt'); copy('b.txt', 'cp.txt'); mkdir('made'); touch('t.txt');",
    "exec('touch e.txt'); shell_exec(\"rm a.txt\");",
    (
        "$d = 'docs'; $s = file_get_contents($d . '/a.md'); file_put_contents($d . '/a.md', "
        "str_replace('old', 'new', $s));"
    ),
]

PHP_COMPUTED = [
    "foreach (['a', 'b'] as $f) { unlink(\"$f.txt\"); }",
]

PHP_READS = [
    "echo file_get_contents('a.txt');",
    "echo \"unlink('a.txt')\"; // unlink('b.txt')\n# unlink('b.txt')",
    "$h = fopen('a.txt', 'r'); echo fgets($h);",
]

LUA = [
    "local f = io.open('n.txt', 'w'); f:write('x'); f:close()",
    "os.remove('a.txt') os.rename('b.txt', 'z.txt')",
    "os.execute('touch t.txt')",
]

LUA_COMPUTED = [
    "for _, n in ipairs({'x1', 'x2'}) do local f = io.open(n .. '.txt', 'a'); f:write(n); f:close() end",
]

LUA_READS = [
    "for l in io.lines('a.txt') do print(l) end",
    "print(io.open('a.txt'):read('a')) -- os.remove('b.txt')",
    "print([[os.remove('b.txt')]])",
]

COMMANDS = [
    "python3 - <<'EOF'\nopen('a.txt', 'w').write('x')\nEOF",
    "python3 <<'EOF' -\nfor n in ('a', 'b'):\n    open(n + '.txt', 'a').write('x')\nEOF",
    "echo \"open('a.txt', 'w')\" | python3",
    "printf '%s' \"open('a.txt', 'w')\" | python3 -u - arg",
    "python3 -Ic \"open('a.txt', 'w')\"; python3 -X utf8 -u -W ignore -c \"open('b.txt', 'w')\"",
    "python3 -c \"import sys; [open(n, 'w') for n in sys.argv[1:]]\" a.txt b.txt",
    "python3 -c 'import sys; open(sys.stdin.read().strip(), \"w\")' <<< a.txt",
    "F=a.txt python3 -c \"import os; open(os.environ['F'], 'w')\"",
    "f=b.txt; python3 -c \"open('$f', 'w')\"; cd docs && python3 -c \"open('a.md', 'w')\"",
    "python3 -c \"import os; open(os.path.expanduser('~/a.txt'), 'w')\"",
    "python3 -m json.tool c.json out.json",
    "node - <<'EOF'\nconst fs = require('fs')\nfs.writeFileSync('a.txt', 'x')\nEOF",
    (
        "node --input-type=module -e \"import fs, {rmSync as rm} from 'node:fs'; fs.writeFileSync('n', "
        "''); rm('a.txt')\""
    ),
    "node -p \"require('fs').appendFileSync('a.txt', 'x')\"",
]

COMMANDS_COMPUTED = [
    "python3 -m zipfile -c new.zip a.txt; python3 -m tarfile -c new.tar b.txt",
    "python3 -m timeit -n 1 -r 1 \"open('t.txt', 'w')\"",
    # Python's output is not followed, nor are rarely used modules.
    "rm $(python3 -c \"print('a.txt')\")",
    "python3 -m gzip a.txt",
    "python3 -m cProfile -o profile.bin -m this",
    "python3 -m zipapp src -m app:main -o app.pyz",
]

COMMAND_READS = [
    "python3 --version; python3 -V; python3 -m this",
    "python3 -m json.tool < c.json; cat c.json | python3 -m json.tool --indent 2",
    "cat c.json | python3 -c \"import json, sys; print(json.load(sys.stdin)['name'])\"",
    'python3 -c "import sys; print(sys.path)" | head -2; python3 -m zipfile -l z.zip; python3 -m site',
    "node --version; node -v; node --check src/app.py",
    "python3 - <<'EOF'\nimport os\nprint(os.listdir('src'), 'open(\"a.txt\", \"w\")')\nEOF",
]

OPAQUE = [
    "python3 src/app.py",
    "python3 -m some_tool a.txt",
    "python3 manage.py migrate",
    "curl -s https://example.org/x.py | python3",
    'python3 -c "$CODE"',
    "python2 -c \"print 'x'; open(n, 'w')\"",
    "node build.js",
    "node --require ./x.js y.js",
    "bun run.ts",
    "deno run -A x.ts",
    "ruby x.rb",
    "php artisan migrate",
    "lua x.lua",
    'osascript -e \'tell application "Finder" to delete file "a"\'',
    'Rscript -e \'writeLines("x", "a.txt")\'',
    "node -e \"require('./build.js')\"",
    "ruby -e 'load \"x.rb\"'",
]
