"""Calls for the comparison of ``both_ways``: of every tool and event, plain, odd and broken, the same for each seed."""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from corpora import blocks

ME, AGENT = "0c8f6a52-6d2f-4a7e-9c0b-5f2f3c1d7e11", "agent-1"
CLIENTS = ("claude-code", "codex", "gemini", "opencode")
STATES = ("alone", "lock", "writer", "turn", "closed", "person", "all")
ODD_PATHS = (
    "link.md", "linked/file.md", "linked/../notes.md", "./notes.md", "sub//deep.md", "sub/../notes.md", "NOTES.md", "sub",
    "notes.md ", " notes.md", "sub/.git/config", ".git/config", "settings.json", "a b (1) [id]/$x.tsx", "100%/x%2Fy.md",
    "swarm.md", "ünï.md", "it's.md", "a\\b", "a\nb", "a\0b", "~/x", "", ".", "..", "node_modules/x.js", "x" * 170,
    "deep/" * 40 + "x", "../other/x.md", "/dev/null", "/", "x" * 5000, "notes.md/x", "sub/", "\ud800.md", "a\tb", "İ.md",
)  # fmt: skip
LOOKS = (
    "ls", "ls -la sub", "pwd", "cat notes.md", "git status", "git diff", "git log --oneline -3", "rg -n x sub", "head -5 notes.md",
    "wc -l notes.md", "ls; cat notes.md", "cat notes.md | head", "git status > x", "cat $(ls)", "git diff --output=x", "ls\nrm x",
    "rg --pre=sh x", "git -C /tmp status", "cat 'notes.md'", "ls  -l", " ls", "git status && make", "stat notes.md", "ls *.md",
    "git log -p", "FOO=1 ls", "cat < notes.md", "ls &", "git show HEAD:notes.md", "git branch", "git branch -D x", "find . -delete",
    "cat /dev/../" + "x/" * 40, "ls \u00e9", "", "true", "echo hello", "pytest -q", "tail -f notes.md", "file notes.md",
)  # fmt: skip
WRITES = (
    "make", "echo x > notes.md", "sed -i s/a/b/ sub/deep.md", "cp a.md $TARGET", "rm -rf real", "touch new.md", "rm notes.md",
    "mv other.md new.md", "echo 'x' > sub/{a,b}.md", "python - <<'E'\nopen('notes.md', 'w')\nE", "git checkout -- notes.md",
    "git stash", "git commit -am x", "git reset --hard",
)  # fmt: skip
FILES = (
    "free.py",
    "held.py",
    "written.py",
    "dirty.py",
    "src/app.py",
    "src/held/a.py",
    "new.py",
    "link.py",
    "linked/app.py",
    "Ünï.md",
)
NAMES = (
    *FILES, *ODD_PATHS, "src/../held.py", "./held.py", "src/./../held.py", "HELD.PY", "U\u0308ni\u0308.md", "held.py/", "src", "src/held",
    "/proc/self/cwd/held.py", "/dev/null", "~/held.py", "$HOME/held.py", "../repo/held.py", "../other/x.py", "held.py\0x",
    "\udcff.py", "linked/../held.py",
)  # fmt: skip
COMMANDS = (
    *LOOKS, *WRITES, "rm held.py", "rm -rf src", "sed -i s/a/b/ held.py", "cat > held.py <<'EOF'\nx\nEOF", "git checkout .",
    "git checkout -- written.py", "git stash", "git add -A && git commit -qm x", "git reset --hard", "git clean -fd", "git mv free.py b.py",
    "mv free.py held.py", "cp free.py held.py", "echo x > $TARGET", "rm $TARGET", "rm ~/held.py", "rm -rf $TMPDIR/src", "npm run build",
    "python3 - <<'E'\nopen('held.py','w').write('x')\nE", "python3 -c \"import os; os.remove('held.py')\"", "make", "cargo build",
    "cat <(cat ./src) > held.py", "echo x > /dev/stdout", "echo x | tee /dev/fd/2 held.py", "cd src && rm ../held.py", "pytest -q 2>&1 | tail -5",
    "git -C ../repo checkout held.py", "(cd ..; rm -rf repo)", "find . -name '*.py' -delete", "xargs rm < list", "for f in *.py; do rm $f; done",
    "prettier --write .", "swarm-mcp unlock held.py", "kill -9 1", "echo \ud800 > held.py", "cat held.py written.py", "git diff", "git log -p -1",
    "sed -n 1,5p held.py", "head -2 written.py", "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: held.py\n*** End Patch\nEOF",
    "rm -rf .git", "git worktree remove ../other", "tar xf a.tar", "unzip -o a.zip", "curl -o held.py http://127.0.0.1:9/", "ln -sf free.py held.py",
    "truncate -s0 held.py", "dd if=/dev/zero of=held.py count=1", "perl -pi -e s/a/b/ held.py", "install free.py held.py", "touch 'held.py'",
)  # fmt: skip
MCP_TOOLS = ("mcp__fs__write_file", "mcp__filesystem__edit_file", "mcp__fs__move_file", "mcp__git__git_checkout", "mcp__x__do", "mcp__fs__delete",
             "mcp__serena__replace_symbol_body", "mcp__fs__create_directory")  # fmt: skip
WHOLE = (b"", b"{", b"[]", b"null", b"\xff\xfe{", b"{}", b'{"tool_name": 5}', b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900, b"{} {}",
         b'{"tool_name": "Bash", "tool_input": "rm held.py"}', b'{"tool_input": {"command": 1e400}, "tool_name": "Bash"}',
         b'\xef\xbb\xbf{"tool_name": "Bash"}', b'{"x": ' + b"9" * 6000 + b"}", b'{"a": "\x01"}', b"{'a': 1}", b'{"a": NaN}')  # fmt: skip
# Where the home is not ours, state and store are all the same.
PINNED: dict[str, str | None] = {
    "SWARM_STATE_DIR": "HOMEDIR/.local/state/swarm-mcp",
    "SWARM_DB_PATH": "HOMEDIR/.swarm-mcp/swarm.db",
}
# Changes of the environment of a call; None takes a variable away.
VARIABLES: tuple[dict[str, str | None], ...] = (
    {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {"SWARM_PROTECT": "off"}, {"SWARM_PROTECT": "turn"}, {"SWARM_CC_PROTECT": "turn"},
    {"SWARM_PROTECT": "notice"}, {"SWARM_FAIL": "closed"}, {"SWARM_AUTO": "notice"}, {"HOME": "REPO", **PINNED}, {"HOME": "", **PINNED},
    {"HOME": None, **PINNED}, {"HOME": "HOMEDIR/nowhere"}, {"XDG_STATE_HOME": "HOMEDIR/.local/state"}, {"TMPDIR": "REPO"}, {"TARGET": "held.py"}, {"TARGET": "written.py"}, {"PATH": "/usr/bin:/bin"}, {"PATH": "/nowhere"},
    {"PATH": None}, {"GIT_DIR": "REPO/.git"}, {"GIT_WORK_TREE": "REPO/src"}, {"GIT_DIR": "/nowhere"}, {"GIT_INDEX_FILE": "REPO/x"},
    {"SWARM_DB_PATH": "HOMEDIR/nowhere/swarm.db"}, {"SWARM_DB_PATH": "~/.swarm-mcp/swarm.db"}, {"TZ": "Asia/Tokyo"}, {"LANG": "C"}, {"LC_ALL": "POSIX"},
    {"PWD": "REPO/src"}, {"PWD": None}, {"XDG_CONFIG_HOME": "relative"}, {"SWARM_MCP_BIN": "/bin/true"}, {"ODD": "a\udcffb"}, {"IFS": "x"},
    {"CDPATH": "REPO"}, {"SWARM_MCP_INSTANCE_ID": "x"}, {"SWARM_CC_ROLE": "planner"}, {"CLAUDE_CONFIG_DIR": "REPO"}, {"COLUMNS": "3"},
)  # fmt: skip
IN_A_ROW = 30  # calls in one state: another one takes a while to put in place
DAMAGES = ("empty", "cut", "noise", "folder", "pipe", "link", "gone", "closed", "twice")


class Case(NamedTuple):
    """One call. `state`: of `STATES`; `changes`: of the environment; `damage`: kind and number of a file, if any."""

    client: str
    event: str
    payload: bytes
    state: str
    changes: dict[str, str | None]
    folder: str
    damage: tuple[str, int] | None


def cases(seed: int, count: int) -> Iterator[Case]:
    """Yield `count` calls. ``REPO`` stands for the repository's folder."""
    draw = random.Random(seed)
    every = [block.text for folder in blocks.FOLDERS for block in blocks.load(folder)]
    state = ""
    for number in range(count):
        if not number % IN_A_ROW:
            state = draw.choice(STATES)
        client = draw.choice((*CLIENTS, *CLIENTS[:2]))
        event = draw.choice(("pre_tool_use",) * 20 + ("post_tool_use",) * 8 + ("turn", "subagent"))
        damage = (draw.choice(DAMAGES), draw.randrange(1000)) if draw.random() < 0.08 else None
        folder = draw.choice(("REPO",) * 9 + ("REPO/src", "/", "OTHER"))
        payload = _payload(draw, client, event, every, folder)
        yield Case(client, event, payload, state, draw.choice(VARIABLES), folder, damage)


def _payload(draw: random.Random, client: str, event: str, every: list[str], folder: str) -> bytes:
    chance = draw.random()
    if chance < 0.02:
        return draw.choice(WHOLE)
    value: dict[str, Any] = {"session_id": ME, "cwd": folder, "transcript_path": "/nowhere/t.jsonl"}
    if event in ("pre_tool_use", "post_tool_use"):
        value.update(_call(draw, client, event, every))
    elif event == "turn":
        name = draw.choice(("UserPromptSubmit", "Stop", "Notification", "Interrupt"))
        value.update(hook_event_name=name, prompt="go on", notification_type=draw.choice(("idle_prompt", "x")))
    else:
        value.update(hook_event_name=draw.choice(("SubagentStart", "SubagentStop")), agent_id=AGENT)
    if draw.random() < 0.08:
        value.pop(draw.choice(("cwd", "session_id", "transcript_path")))
    if draw.random() < 0.04:
        value["cwd"] = draw.choice(
            ("REPO/linked", "REPO/src/..", "/nowhere", "", "relative", "REPO/held.py", 7, None, "REPO\0", "\ud800")
        )
    if draw.random() < 0.04:
        value["session_id"] = draw.choice(("", "other-session", "x" * 300, "a/b", 5, "\ud800", "peer-session"))
    if draw.random() < 0.03:
        value["session_id"], value["agent_id"] = ME, draw.choice((AGENT, "agent-2", ""))
    text = json.dumps(value, ensure_ascii=draw.random() < 0.8)
    if draw.random() < 0.01:
        text = (
            text[:-1] + f', "tool_name": "{draw.choice(("Bash", "Edit", "Nothing"))}", "cwd": "REPO/src"}}'
        )  # keys twice
    if draw.random() < 0.01:
        text = text[: draw.randrange(len(text))]
    if draw.random() < 0.0005:
        text = text[:-1] + ', "more": "' + "x" * 20_000_000 + '"}'
    return text.encode("utf-8", "surrogatepass")


def _call(draw: random.Random, client: str, event: str, every: list[str]) -> dict[str, Any]:
    kind = draw.choices(("shell", "write", "patch", "mcp", "other"), (46, 30, 10, 8, 6))[0]
    call_id = draw.choice(("t1", "t2", "toolu_" + str(draw.randrange(10**6))))
    name = draw.choice(NAMES) if draw.random() < 0.6 else draw.choice(FILES)
    path = name if draw.random() < 0.3 or name[:1] in "/~$" else f"REPO/{name}"
    tool, given = "Read", {"file_path": path}
    if kind == "shell":
        text = draw.choice(every) if draw.random() < 0.6 else draw.choice(COMMANDS)
        if draw.random() < 0.1:
            text = draw.choice(("cd src; ", "set -e\n", "FOO=1 ", "( ", "sudo ", "timeout 5 ")) + text
        if draw.random() < 0.1:
            text += draw.choice(
                (" > held.py", " && rm -f held.py", " | tee written.py", "\n" + draw.choice(COMMANDS), " &", " )")
            )
        text = text.replace("@ROOT@", "ROOT").replace("@PORT@", "9")
        tool, given = {"gemini": "run_shell_command", "opencode": "bash"}.get(client, "Bash"), {"command": text}
        if draw.random() < 0.05:
            given["run_in_background"] = True
    elif kind == "write":
        tool = draw.choice(("Edit", "Edit", "Write", "MultiEdit", "NotebookEdit"))
        given = {
            "Edit": {"file_path": path, "old_string": draw.choice(("a\n", "b", "", "nowhere")), "new_string": draw.choice(("c\n", "", "a\n"))},
            "Write": {"file_path": path, "content": draw.choice(("", "a\nb\nc\n", "x" * 5000, "a\nneu\nc\n"))},
            "MultiEdit": {"file_path": path, "edits": [{"old_string": "a", "new_string": "x"}, {"old_string": "b", "new_string": ""}]},
            "NotebookEdit": {"notebook_path": path, "new_source": "x", "cell_id": "1"},
        }[tool]  # fmt: skip
        if client == "gemini":
            tool = {"Edit": "replace", "Write": "write_file"}.get(tool, tool)
        elif client == "opencode":
            tool = tool.lower()
    elif kind == "patch":
        head = draw.choice(("Add File", "Update File", "Delete File"))
        more = f"*** Move to: {draw.choice(FILES)}\n" if draw.random() < 0.2 and head == "Update File" else ""
        body = {"Add File": "+x\n", "Update File": "@@\n-a\n+c\n", "Delete File": ""}[head]
        text = f"*** Begin Patch\n*** {head}: {name}\n{more}{body}*** End Patch\n"
        tool, given = "apply_patch", {"command": text if draw.random() < 0.9 else text[:-15]}
    elif kind == "mcp":
        tool = draw.choice(MCP_TOOLS)
        given = draw.choice(({"path": path}, {"file": path, "content": "x"}, {"source": path, "destination": f"REPO/{draw.choice(FILES)}"},
                             {"repo_path": "REPO", "branch_name": "main"}, {"relative_path": name}, {}))  # fmt: skip
    elif draw.random() < 0.5:
        tool = draw.choice(("Grep", "Task", "WebFetch", "ToolSearch", "Nothing", "", "Monitor"))
        given = draw.choice(({}, None, [], "x", 5, {"command": "rm held.py"}, {"file_path": path}))
    said = {"pre_tool_use": "PreToolUse", "post_tool_use": draw.choice(("PostToolUse", "PostToolUseFailure"))}[event]
    found = {
        "hook_event_name": said,
        "tool_name": tool,
        "tool_input": given,
        "tool_use_id": call_id,
        "permission_mode": "default",
    }
    if event == "post_tool_use":
        found["tool_response"] = draw.choice(({"stdout": "x"}, "done", None, {"backgroundTaskId": "b1"}))
    return found
