"""The calls of `--part mix`: kinds with their counts in public transcripts of agents, and calls of our own of each kind.

Only calls that the plugin's hooks look at were counted: `Read` and `Grep` are not among them. Each repository counts the same,
however long its sessions are: a kind's weight is the mean of its shares, and its calls share that evenly. No command is
copied; ours have the shapes of those, with pipes, `2>&1`, lists and several lines a little less often. Codex reads files by
`sed -n`, where Claude Code has a tool.

Claude Code: kiliman/claude-transcript (5c7f1d1: four sessions, 691 calls, 500 of them counted) and
specstoryai/getspecstory (210d609: 219 sessions, 18,000 calls, 9,209 counted; 221 commands could not be read).
Codex: AcidicSoil/codex-session-viewer (2a6b193: one session, 246 calls, 237 counted) and specstoryai/getspecstory
(ten sessions, 176 calls, 162 counted). That is little for Codex: two projects, and its weights are rough. A patch by a shell
command counts as a patch.

A command's kind is that of the first rule that fits, in this order: a commit, a here-document, git that changes files, other
git that writes, `sed -i`, output to a file, files moved or removed, build and test, an interpreter, git that reads, search,
reading, loops. A commit with a here-document for its message is a commit.
"""

from typing import NamedTuple

# The counts of each kind in the repositories, in the order in which the text above names them.
COUNTED = {
    "claude-code": {
        "edit": (182, 4048), "write": (32, 241), "build and test": (60, 1696), "search": (30, 1708),
        "git that reads": (30, 291), "reading": (8, 311), "commit": (35, 2), "git that writes": (27, 45),
        "files moved or removed": (57, 68), "interpreter": (28, 36), "here-document": (0, 178),
        "output to a file": (0, 70), "loop": (0, 44), "sed -i": (0, 31), "git that changes files": (1, 9),
        "other": (10, 431),
    },
    "codex": {
        "patch": (91, 32), "MCP tool": (41, 0), "reading": (67, 77), "search": (27, 28), "build and test": (10, 7),
        "loop": (0, 9), "git that reads": (0, 8), "here-document": (0, 1), "other": (1, 0),
    },
}  # fmt: skip

# Files of the checkout that the calls are about.
FILES = (
    "README.md", "package.json", "src/app.py", "src/model.py", "src/report.py", "src/store/rows.py", "src/store/load.py",
    "src/web/page.ts", "src/web/list.ts", "tests/test_model.py", "tests/test_report.py", "docs/guide.md", "docs/format.md",
)  # fmt: skip
LINES = "\n".join(f"line {number} of a file of ordinary length" for number in range(1, 81)) + "\n"

# Each kind's calls; `{n}` is another number each time. Edits: the file, and the number of lines that change.
EDITS = (
    ("src/app.py", 1), ("src/app.py", 6), ("src/model.py", 2), ("src/model.py", 20), ("src/report.py", 1),
    ("src/store/rows.py", 4), ("src/store/load.py", 12), ("src/web/page.ts", 3), ("src/web/list.ts", 40),
    ("tests/test_model.py", 15), ("docs/guide.md", 2), ("package.json", 1),
)  # fmt: skip
# Writes of a whole file: its name, and its lines.
WRITES = (
    ("src/store/part_{n}.py", 60), ("tests/test_part_{n}.py", 90), ("docs/note_{n}.md", 30), ("src/web/view_{n}.ts", 120),
    ("docs/format.md", 50), ("tests/test_report.py", 70),
)  # fmt: skip
PATCHES = (
    *EDITS, ("src/web/page.ts", 30), ("src/app.py", 2), ("tests/test_{n}.py", 50), ("docs/patch_{n}.md", 25),
)  # fmt: skip
MCP_TOOLS = (
    ("mcp__notes__add", {"subject": "the report", "lines": ["it sums each week", "weeks begin on Monday"]}),
    ("mcp__tasks__set_status", {"id": "12.3", "status": "done", "folder": "{checkout}"}),
    ("mcp__docs__fetch", {"address": "https://docs.example.org/web/files"}),
    ("mcp__tasks__next", {"folder": "{checkout}"}),
)

COMMANDS = {
    "claude-code": {
        "build and test": (
            "npm test", "npm run build", "npm run lint 2>&1 | tail -20", "npm install", "npm run build && npm test",
            "npx tsc --noEmit 2>&1 | head -30", "python -m pytest -q", "python -m pytest tests/test_model.py -x -q 2>&1 | tail -40",
            "cd src && python -m pytest -q ../tests 2>&1 | tail -5", "go build ./...", "go test ./store/... -run TestRows -v 2>&1 | head -60",
            "go vet ./... && go test ./...", "cargo test --quiet 2>&1 | grep -v '^running'", "make test",
            "cd src/web && npm start &", "ruff check src && mypy src; echo \"status $?\"",
        ),
        "search": (
            "ls -la src", "ls src/store tests", "grep -rn 'def load' src", "grep -n 'class Row' src/store/rows.py",
            "grep -rn 'week' src --include='*.py' | head -20", "find . -name '*.py' -not -path './node_modules/*' | head -50",
            "rg -n 'total' src | head -20 && cat src/model.py", "find src -type f | xargs grep -l 'sum' 2>/dev/null",
            "grep -n 'import' src/app.py; echo ---; grep -n 'import' src/model.py", "ls -la docs 2>/dev/null || echo none",
            "cd src\ngrep -n 'def ' app.py\necho '--- the model'\ngrep -n 'def ' model.py", "tree -L 2 src",
            "grep -c '' src/report.py tests/test_report.py",
        ),
        "git that reads": (
            "git status", "git diff", "git log --oneline -10", "git diff --stat HEAD~1 2>/dev/null | tail -5",
            "git show HEAD:src/app.py | head -40", "git status --short && git diff --cached",
        ),
        "reading": (
            "head -50 src/model.py", "sed -n '20,60p' src/report.py", "cat package.json", "wc -l src/*.py | sort -n | tail -3",
            "tail -20 docs/guide.md; sed -n '1,5p' README.md",
        ),
        "commit": (
            "git commit -m 'report: weeks begin on Monday'",
            "git add -A && git commit -m 'model: rows keep their order'",
            "git commit -m \"$(cat <<'EOF'\nreport: one sum for each week\n\n- the model has the weeks\n- rows without a day are left out\nEOF\n)\"",
        ),
        "git that writes": ("git add -A", "git add src/app.py src/model.py", "git push origin HEAD"),
        "files moved or removed": (
            "rm src/store/load.py", "rm -rf build dist", "mkdir -p src/store/parts", "mv src/web/list.ts src/web/rows.ts",
            "cp docs/guide.md docs/guide_{n}.md", "mkdir -p out && touch out/.keep && chmod +x bin/run",
        ),
        "interpreter": (
            "python -c 'import json; print(json.load(open(\"package.json\"))[\"name\"])'", "node src/web/page.ts 2>&1 | head -50",
            "python src/app.py --week 12",
        ),
        "here-document": (
            "cat > docs/short_{n}.md <<'EOF'\n# Weeks\n\nA week begins on Monday.\nIts rows are summed by day.\nEOF",
            "python - <<'EOF'\nimport pathlib\ntext = pathlib.Path('src/model.py').read_text()\nprint(text.count('week'))\nEOF",
        ),
        "output to a file": ("python -m pytest -q > /tmp/tests_{n}.txt 2>&1; tail -3 /tmp/tests_{n}.txt",),
        "loop": ("for f in src/*.py; do echo \"== $f\"; grep -n 'def ' \"$f\"; done",),
        "sed -i": ("sed -i 's/ordinary/usual/' src/report.py",),
        "git that changes files": ("git checkout src/web/list.ts",),
        "other": ("which node && node --version", "gh pr view 12 --json title,body 2>&1 | head -40"),
    },
    "codex": {
        "reading": (
            "cat package.json", "cat src/app.py", "cat docs/guide.md", "sed -n '1,200p' src/app.py", "sed -n '1,240p' src/model.py",
            "sed -n '40,80p' src/report.py", "sed -n '120,230p' src/web/page.ts", "sed -n '1,200p' README.md",
            "sed -n '1,160p' tests/test_model.py", "sed -n '20,60p' docs/format.md", "nl -ba src/app.py | sed -n '30,60p'",
            "nl -ba src/store/rows.py | sed -n '1,80p'", "nl -ba docs/guide.md | sed -n '20,60p'", "head -40 src/store/load.py",
            "tail -30 tests/test_report.py", "sed -n '1,40p' src/app.py && sed -n '60,80p' src/app.py",
            "sed -n '1,120p' src/web/list.ts", "cat src/store/rows.py", "wc -l src/*.py", "sed -n '1,80p' 'docs/format.md'",
        ),
        "search": (
            "ls -la", "ls -la docs", "rg -n 'total' src", "rg -n \"def load|class Row\" src", "rg -n 'week' -S README.md docs || true",
            "rg --files src", "rg -n 'import' src/app.py", "rg -n \"sum\\(\" src | sed -n '1,200p'", "find src -maxdepth 2 -type f",
            "LC_ALL=C rg -n '[^ -~]' docs/guide.md || true", "grep -rn 'row' src/store", "ls src && rg -n 'report' -S src docs || true",
        ),
        "build and test": (
            "npm run -s typecheck", "npm run -s test -- --pool=threads", "npm run -s typecheck && npm run -s test", "python -m pytest -q",
            "go test ./...",
        ),
        "loop": (
            "for f in docs/*.md; do echo \"== $f\"; rg '^#' \"$f\"; done", "for f in src/app.py src/model.py; do sed -n '1,40p' $f; done",
            "for f in src/store/*.py; do wc -l \"$f\"; done",
        ),
        "git that reads": ("git status --short", "git diff -- src/app.py", "git log --oneline -5"),
        "here-document": ("python - <<'EOF'\nfrom pathlib import Path\nprint(len(Path('src/app.py').read_text()))\nEOF",),
        "other": ("pwd",),
    },
}  # fmt: skip


class Call(NamedTuple):
    """One call: its kind, its share of all calls of its client, and the words that the client sends to hooks.

    writes   files that the call itself changes, and that change between its two hooks here
    """

    kind: str
    weight: float
    tool: str
    given: dict[str, object]
    writes: tuple[str, ...] = ()


def calls(client: str) -> list[Call]:
    """Return the calls of a client, of which the weights are 1 together."""
    found: list[tuple[str, str, dict[str, object], tuple[str, ...]]] = []
    if client == "codex":
        found += [("patch", "apply_patch", {"command": _patch(name, count)}, (name,)) for name, count in PATCHES]
        found += [("MCP tool", tool, dict(given), ()) for tool, given in MCP_TOOLS]
    else:
        found += [("edit", "Edit", _edit(name, count), (name,)) for name, count in EDITS]
        found += [
            ("write", "Write", {"file_path": f"{{checkout}}/{name}", "content": LINES[: 40 * count] + "{n}\n"}, (name,))
            for name, count in WRITES
        ]
    for kind, commands in COMMANDS[client].items():
        found += [(kind, "Bash", {"command": command}, _written(kind, command)) for command in commands]
    kinds = [kind for kind, *_ in found]
    weights = _weights(client)
    return [Call(kind, weights[kind] / kinds.count(kind), *rest) for kind, *rest in found]  # type: ignore[arg-type]


def _weights(client: str) -> dict[str, float]:
    """Return the mean of each kind's shares in the repositories."""
    totals = [sum(counts) for counts in zip(*COUNTED[client].values(), strict=True)]
    return {
        kind: sum(count / total for count, total in zip(counts, totals, strict=True)) / len(totals)
        for kind, counts in COUNTED[client].items()
    }


def _edit(name: str, count: int) -> dict[str, object]:
    old = "\n".join(LINES.splitlines()[20 : 20 + count])
    return {"file_path": f"{{checkout}}/{name}", "old_string": old, "new_string": old.replace("file", "text {n}")}


def _patch(name: str, count: int) -> str:
    if "{n}" in name:
        added = "\n".join(f"+{line}" for line in LINES.splitlines()[:count])
        return f"*** Begin Patch\n*** Add File: {name}\n{added}\n*** End Patch\n"
    lines = LINES.splitlines()
    around = lines[19], lines[20 + count]
    change = [*(f"-{line}" for line in lines[20 : 20 + count]), *(f"+{line} {{n}}" for line in lines[20 : 20 + count])]
    body = "\n".join([f" {around[0]}", *change, f" {around[1]}"])
    return f"*** Begin Patch\n*** Update File: {name}\n@@\n{body}\n*** End Patch\n"


def _written(kind: str, command: str) -> tuple[str, ...]:
    """Return the files that a shell command writes in the checkout."""
    if kind == "sed -i":
        return (command.split()[-1],)
    if command.startswith(("cat > docs", "cp docs")):
        return (command.split("\n")[0].removesuffix(" <<'EOF'").split()[-1],)
    return ()
