"""The sandbox's content: `FILES`, and `MAKE_GIT`, a script that makes a repository of its folder ``repo``."""

_PATCH = """\
--- a/src/app.py
+++ b/src/app.py
@@ -1,5 +1,5 @@
 import os
 
-VERSION = "1.0.0"
+VERSION = "1.0.1"
 
 
--- /dev/null
+++ b/docs/patched.md
@@ -0,0 +1,2 @@
+# Patched
+new file
"""

_MAIL = """\
From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: Ann <ann@example.invalid>
Date: Mon, 1 Jan 2024 00:00:00 +0000
Subject: [PATCH] Guide: a better opening

---
 docs/guide.md | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/docs/guide.md b/docs/guide.md
--- a/docs/guide.md
+++ b/docs/guide.md
@@ -1,3 +1,3 @@
-# Guide
+# The guide
 
 Install it, then run it.
---
2.39.0
"""

_NOTEBOOK = """\
{"cells": [{"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [{"name": "stdout",
 "output_type": "stream", "text": ["4\\n"]}], "source": ["print(2 + 2)"]}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
 "nbformat": 4, "nbformat_minor": 2}
"""

FILES = {
    "repo/README.md": "# Widget\n\nA small tool. TODO: badges\n\nSee [the guide](docs/guide.md).\n",
    "repo/CHANGELOG.md": "# Changelog\n\n## 1.0.0\n- first\n",
    "repo/LICENSE": "MIT\n",
    "repo/Makefile": (
        "all: build/out.txt\n\nbuild/out.txt: src/app.py\n\tmkdir -p build\n\tcp src/app.py build/out.txt\n\n"
        "gen:\n\tpython3 scripts/gen.py\n\nfmt:\n\tsed -i 's/ *$$//' src/utils.py\n"
    ),
    "repo/.gitignore": "build/\n*.log\nnode_modules/\ndist/\n.env\n",
    "repo/.env": "PORT=8000\nDEBUG=false\n",
    "repo/.editorconfig": "root = true\n",
    "repo/package.json": (
        '{\n  "name": "widget",\n  "version": "1.0.0",\n  "scripts": {\n    "build": "node scripts/build.js",\n'
        '    "test": "node --version"\n  }\n}\n'
    ),
    "repo/pyproject.toml": '[project]\nname = "widget"\nversion = "1.0.0"\n',
    "repo/config.json": '{"port": 8000, "debug": false, "hosts": ["a", "b"]}\n',
    "repo/config.yaml": "port: 8000\ndebug: false\n",
    "repo/src/__init__.py": "",
    "repo/src/app.py": (
        "import os\n\nVERSION = \"1.0.0\"\n\n\ndef main():\n    print('hello', os.getcwd())   \n\n\n"
        'if __name__ == "__main__":\n    main()\n'
    ),
    "repo/src/utils.py": "import sys,os\ndef add( a,b ):\n    return a+b   \ndef old_name(): return sys.argv\n",
    "repo/src/core/__init__.py": "",
    "repo/src/core/engine.py": "from .model import Model\n\n\ndef run(old_name):\n    return Model(old_name)\n",
    "repo/src/core/model.py": "class Model:\n    def __init__(self, name):\n        self.name = name\n",
    "repo/src/index.js": "const x = 1;var y=2\nconsole.log( x+y )\n",
    "repo/src/index.ts": "export const a : number = 1\n",
    "repo/src/main.go": 'package main\nimport "fmt"\nfunc main() { fmt.Println("x") }\n',
    "repo/src/native.c": "int main(void){return 0;}\n",
    "repo/src/styles.css": "a{color:red}\n",
    "repo/tests/test_app.py": "def test_app():\n    assert True\n",
    "repo/tests/test_utils.py": "def test_utils():\n    assert 1 + 1 == 2\n",
    "repo/tests/data/sample.csv": "name,count\nb,2\na,1\nc,3\n",
    "repo/docs/guide.md": "# Guide\n\nInstall it, then run it.\n",
    "repo/docs/api.md": "# API\n\n`add(a, b)`\n",
    "repo/docs/My Notes.md": "notes\n",
    "repo/docs/it's.md": "apostrophe\n",
    "repo/docs/日本.md": "nihon\n",
    'repo/docs/"quoted".md': "quotes\n",
    "repo/docs/$price.md": "dollar\n",
    "repo/notebooks/explore.ipynb": _NOTEBOOK,
    "repo/scripts/build.sh": "#!/bin/sh\nset -e\nmkdir -p build\ndate > build/stamp.txt\n",
    "repo/scripts/build.js": "require('fs').writeFileSync('src/built.js', '1')\n",
    "repo/scripts/gen.py": "open('src/generated.py', 'w').write('X = 1\\n')\n",
    "repo/scripts/setup.sh": "#!/bin/bash\necho ready > docs/setup.txt\nsed -i 's/1.0.0/1.0.1/' package.json\n",
    "repo/linked": "-> src/core",
    "repo/latest.md": "-> docs/guide.md",
    "repo/data/a.txt": "gamma\nalpha\nbeta\n",
    "repo/data/b.txt": "one\ntwo\n",
    "repo/data/c.txt": "three\r\nfour\r\n",
    "repo/data/notes.bak": "old\n",
    "repo/fix.patch": _PATCH,
    "repo/mail.patch": _MAIL,
    "repo/build/out.o": "o\n",
    "repo/old.log": "log\n",
    "repo/scratch.txt": "untracked\nb\na\n",
    "repo/src/new_module.py": "NEW = 1\n",
    "other/notes.txt": "notes\n",
    "other/list.txt": "data/a.txt\ndata/b.txt\n",
    "other/pack/one.txt": "1\n",
    "other/pack/deep/two.txt": "2\n",
    "other/ed.script": "1d\nw\nq\n",
    "other/cmd.sed": "s/one/uno/\n",
    "web/page.html": "<p>page</p>\n",
    "web/data.json": '{"a": 1}\n',
    "home/.bashrc": "alias ll='ls -l'\n",
    "home/notes.md": "home notes\n",
    "home/.config/app.ini": "[app]\ncolor=blue\n",
    "home/.gitconfig": (
        "[user]\n\tname = Agent\n\temail = agent@example.invalid\n[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"
        '[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n[protocol "file"]\n\tallow = always\n'
    ),
    "home/.vimrc": "set viminfo= noswapfile\n",
    "tmp/.keep": "",
}

MAKE_GIT = r"""
set -e
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
zip -q -X vendor.zip -j ../other/pack/one.txt data/b.txt 2>/dev/null \
  || python3 -m zipfile -c vendor.zip ../other/pack/one.txt data/b.txt
tar -C ../other --owner=0 --group=0 -czf vendor.tar.gz pack
printf 'compressed\n' > plain.txt && gzip -n plain.txt
git init -q .
git add -A . && git reset -q scratch.txt src/new_module.py fix.patch mail.patch 2>/dev/null || true
git rm -q --cached scratch.txt src/new_module.py fix.patch mail.patch 2>/dev/null || true
git commit -q -m 'First' && git tag v1.0
echo '- second' >> CHANGELOG.md && git commit -q -a -m 'Second'
git checkout -q -b feature && echo 'FEATURE = 1' > src/feature.py && echo '# feature' >> src/app.py
git add src/feature.py src/app.py && git commit -q -m 'Feature'
git checkout -q -b topic main && echo 'Topic.' >> docs/guide.md && git commit -q -a -m 'Topic'
git checkout -q -b clash main && sed -i.orig 's/1.0.0/2.0.0/' src/app.py && rm src/app.py.orig
git commit -q -a -m 'Clash'
git checkout -q -b ahead main && echo 'More.' >> docs/api.md && echo new > docs/pulled.md && git add docs/pulled.md
git commit -q -a -m 'Ahead' && git init -q --bare ../origin.git && git remote add origin ../origin.git
git push -q origin ahead:main && git fetch -q origin
git checkout -q main && git branch -q -D ahead && git branch -q -u origin/main
echo 'def stashed(): pass' >> src/utils.py && git stash -q
find . ../other ../web ../home ../tmp -path ./.git -prune -o -type f \
  -exec touch -h -d '2023-11-14T22:13:20Z' {} +
git update-index -q --refresh || true
git gc -q 2>/dev/null || true
"""
