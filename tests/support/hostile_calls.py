"""Strategies of Hypothesis: payloads of calls, and deeds around them, of every kind that may deceive a first look."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.scenes import ME

NAMES = ("notes.md", "other.md", "sub/deep.md", "real/file.md", "new.md", "new/folder/x.py")
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
MARKS = (
    "watched",
    "watched-edits",
    "unheard",
    "claims",
    "team/clones",
    "awaited",
    "busy",
    "unknown",
    "heads",
    "faults.jsonl",
)
VARIABLES = (
    {"SWARM_AUTO": "notice"}, {"SWARM_PROTECT": "off"}, {"SWARM_CC_PROTECT": "turn"}, {"SWARM_FAIL": "closed"}, {"SWARM_X": ""},
    {"CURSOR_VERSION": "1"}, {"COPILOT_PROJECT_DIR": "/x"}, {"GROK_HOOK_EVENT": "x"}, {"XDG_CONFIG_HOME": "relative"},
    {"XDG_STATE_HOME": ""}, {"HOME": "/nowhere"}, {"HOME": ""}, {"SWARM_DB_PATH": "~/x"}, {"SWARM_DB_PATH": "/nowhere/swarm.db"},
)  # fmt: skip

# Every kind that a journal may hold (``traces.journal``), and some unknown ones.
KINDS = (
    "wrote", "saw", "part", "met", "told", "merged", "is", "over", "will", "wont", "clears", "spares", "aside", "back", "before",
    "kept", "ran", "moved", "runs", "commits", "stash", "far", "fence", "along", "heard", "session", "sprung", "",
)  # fmt: skip
ENTRY_KEYS = (
    "WORK/notes.md", "WORK/other.md", "WORK/sub/deep.md", "WORK/new.md", "WORK", "WORK/sub", "OTHER/x.md", "notes.md", "",
    "nocase:WORK/notes.md", "WORK/ünï.md", "WORK/link.md", "/", "WORK/a\\nb", "WORK/NOTES.md", "WORK/node_modules/x",
)  # fmt: skip
ENTRY_TEXTS = (
    "",
    "-",
    "1 2 3",
    "STATE",
    "x",
    "33188 9 1 1 1 abc",
    "husky",
    "remove",
    *LOOKS[:12],
    *WRITES[:8],
    "cat WORK/notes.md",
)
AGES = (0, 0, 5, 60, 200, 4000, 90000, -5)  # seconds
ODD_LINES = (b"torn", b"\n\n", b"x wrote - Edit\0k\n", b"T wrote - Edit\n", b"T wrote Edit\0k\n", b"T  wrote - Edit\0WORK/notes.md\0-\n",
             b"99999999999999999999 wrote - Edit\0WORK/notes.md\0-\n", b"-1 ran - Bash\0WORK\0cp * x\n", b"T ran - Bash\0WORK\0cp * \xff\n",
             b"T wrote - Edit\0WORK/notes.md", b"T ran - Bash\0WORK\0cp \0 * x\n", b"\0\0\0\n", b"T wrote - Edit\0WORK/notes.md\0-\r\n",
             b"+5 wrote - Edit\0WORK/notes.md\0-\n", b"1_0 wrote - Edit\0WORK/notes.md\0-\n", b"T aside - Bash\0WORK\0x\n")  # fmt: skip
LOCK_PLACES = (
    "notes.md",
    "sub/deep.md",
    "sub",
    ".",
    "new.md",
    "link.md",
    "linked",
    "*.md",
    "**/x.py",
    "../other/x.md",
    "../other",
    "NOTES.md",
)


@st.composite
def entries(draw: st.DrawFn) -> tuple[str, Any]:
    """An entry in a journal: of the session, of its peer, or of a third one."""
    whose = draw(st.sampled_from(("own", "own", "peer", "peer", "third", "part", "peer part")))
    if draw(st.integers(0, 5)) == 0:
        line = draw(st.sampled_from(ODD_LINES))
    else:
        agent = draw(st.sampled_from(("-", "-", "-", "a1")))
        kind, key, text = (draw(st.sampled_from(words)) for words in (KINDS, ENTRY_KEYS, ENTRY_TEXTS))
        line = f"T {kind} {agent} Edit\0{key}{text and chr(0) + text}\n".encode()
    return "entry", (whose, line, draw(st.sampled_from(AGES)))


@st.composite
def locks(draw: st.DrawFn) -> tuple[str, Any]:
    """A row of a lock, as our store or another program may leave it."""
    more: dict[str, Any] = {}
    for column, values in {
        "agent": (None, None, None, "a1", ""), "mode": (None, "exclusive", "shared", "auto", 7), "ttl": (None, None, 60.0, 0.0),
        "path_key": ("KEY", "KEY", "KEY", None, "nocase", "glob", "other"), "repository": (None, None, None, "r"),
        "type": ("lock", "lock", "lock", "note"), "pattern": (None, None, "*.md"), "machine": (None, None, "m"),
        "wall_until": (None, 1.0), "expected_end": (None, 1),
    }.items():  # fmt: skip
        more[column] = draw(st.sampled_from(values))
    whose = draw(st.sampled_from(("peer", "peer", "own", "gone", "unknown")))
    return "row", (draw(st.sampled_from(LOCK_PLACES)), whose, more)


ROWS = (
    ("notice", "own"), ("notice", "peer"), ("message", "own"), ("message", "peer"), ("message", "read"), ("message", "all"),
    ("peer has gone", ""), ("unregistered", ""), ("a root", "same"), ("a root", "linked"), ("a root", "odd"),
    ("file root", "odd"), ("a directory", "odd"), ("peer's session row has gone", ""), ("third", ""), ("third", "elsewhere"),
)  # fmt: skip


# Deeds that leave most calls to the program, and all of them.
MILD = ("own", "own", "peer", "change", "entry", "entry", "time", "time", "end", "settled", "row", "store", "own bash")
ALL = (*MILD, "peer", "peer bash", "lock", "mark", "entry", "file", "journal", "variable", "settings")


@st.composite
def deeds(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[str, Any]:
    """One thing of these kinds that happened before the call."""
    kind = draw(st.sampled_from(kinds))
    if kind in ("own", "peer", "change"):
        return kind, draw(st.sampled_from(NAMES))
    if kind in ("own bash", "peer bash"):
        return kind, draw(st.sampled_from(LOOKS + WRITES))
    if kind == "lock":
        return kind, (draw(st.sampled_from(LOCK_PLACES)), draw(st.booleans()))
    if kind == "row":
        return draw(locks())
    if kind == "entry":
        return draw(entries())
    choices: dict[str, tuple[Any, ...]] = {
        "store": ROWS,
        "mark": MARKS,
        "time": (5, 60, 200, 4000),
        "end": ("own", "old", "other"),
        "file": tuple((name, how) for name in ("notes.md", "sub/deep.md", "new.md")
                      for how in ("link", "folder", "gone", "pipe", "large", "unreadable", "hard link", "empty", "dangling", "run")),
        "settled": tuple((head, key) for head in ("0", "1", "10000", "99999999", "x", "", "1" * 12)
                         for key in ("", "WORK/notes.md", "nocase:WORK/notes.md", "WORK/other.md")),
        "journal": tuple((whose, how) for whose in ("own", "peer", "third", "agents", "own part")
                         for how in ("gone", "empty", "link", "folder", "pipe", "no first line", "large", "other folder", "linked folder", "cut")),
        "variable": VARIABLES,
        "settings": ("{}", '{"protect": "off"}', "torn"),
    }  # fmt: skip
    return kind, draw(st.sampled_from(choices[kind]))


# ------------------------------------------------------------------------------------------------ payloads

MEMBERS: dict[str, tuple[Any, ...]] = {
    "agent_id": ("a1", "", None), "agent": ("x",), "agent_type": ("x",), "tool_response": ({}, None), "error": ("x", None),
    "transcript_path": ("/x", None, 7), "permission_mode": ("default",), "tool_use_id": ("1", 7, ""), "hook_event_name": ("PostToolUse",),
    "turn_id": ("t",), "model": ("m",), "client_tool": ("Write",), "input_is_cut": (True, False), "session_id": ("x", ME, None),
    "cwd": ("/", "sub", None), "tool_name": ("Read", "Edit", "Bash"), "takes_input": (True,), "x": ([1, {"y": [None]}], 1.5e300, "\ud800"),
    "command": ("ls",), "file_path": ("notes.md",), "tool_input": ({}, None, []), "workdir": ("/",), "timestamp": ("",),
}  # fmt: skip
INNER: dict[str, tuple[Any, ...]] = {
    "path": ("notes.md", None), "notebook_path": ("x",), "file": ("notes.md",), "filepath": ("notes.md",), "edits": ([], [{"file_path": "x"}]),
    "file_path": ("notes.md", 7, None, "real/file.md"), "command": ("rm x", ["rm", "x"], None), "content": ("x\ny", 7), "input": ("x",),
    "old_string": ("a", None), "replace_all": (True, "x"), "description": ("x",), "timeout": (7,), "run_in_background": (True, False),
    "workdir": ("/", "sub"), "cmd": ("x",), "patch": ("x",), "dangerouslyDisableSandbox": (True,),
}  # fmt: skip
ENDS = (*(b"",) * 12, b"\n", b" ", b" x", b"{}", b"\0", b"]")
STARTS = (*(b"",) * 20, b" \n", b"\xef\xbb\xbf", b"\0", b"[", b"\xff\xfe", b",")


def _spelled(draw: st.DrawFn, text: str, is_odd: bool) -> str:
    """Return a JSON string, plain or with escapes that mean the same."""
    plain = json.dumps(text, ensure_ascii=draw(st.booleans()))
    if not is_odd:
        return plain
    sign = draw(st.sampled_from("/_aeps:n"))
    way = draw(
        st.sampled_from(
            (f"\\u{ord(sign):04x}", f"\\u{ord(sign):04X}", "\\" + sign, f"\\U{ord(sign):04x}", sign + "\x01", "\\ud800")
        )
    )
    return plain.replace(sign, way, draw(st.sampled_from((1, -1))))


def _object(draw: st.DrawFn, members: list[tuple[str, Any]], is_odd: bool) -> str:
    if is_odd:
        members = draw(st.permutations(members))
    parts = []
    for name, value in members:
        bends_name, bends_value = is_odd and draw(st.integers(0, 9)) == 0, is_odd and draw(st.integers(0, 5)) == 0
        if isinstance(value, _Given):
            shown = value.text
        elif isinstance(value, str):
            shown = _spelled(draw, value, bends_value)
        else:
            shown = json.dumps(value)
        colon = draw(st.sampled_from((":", ": ", " :\n\t"))) if is_odd else ": "
        parts.append(f"{_spelled(draw, name, bends_name)}{colon}{shown}")
    return "{" + ", ".join(parts) + "}"


class _Given:
    """A value that is JSON already."""

    def __init__(self, text: str):
        self.text = text


def _patch(draw: st.DrawFn, path: str) -> str:
    verb = draw(st.sampled_from(("Update", "Update", "Update", "Add", "Delete", "Patch")))
    body = draw(st.sampled_from(("@@\n-a\n+b\n", "@@\n-a\n+b\n", "+x\n", "@@\n-é\n+\x1b\n", "*** Move to: notes.md\n@@\n-a\n+b\n", "",
                                 "@@\n a\n*** Delete File: notes.md\n", "@@\n-a\n+*** Add File: x\n", "@@\n-a\n+b\n*** End of File\n", "\r\n")))  # fmt: skip
    begin = draw(
        st.sampled_from(
            ("*** Begin Patch\n",) * 6 + ("*** Begin Patch\r\n", "", " *** Begin Patch\n", "\n*** Begin Patch\n")
        )
    )
    end = draw(
        st.sampled_from(("*** End Patch",) * 3 + ("*** End Patch\n", "*** End Patch\nx", "", "*** End Patch \n", "***"))
    )
    return f"{begin}*** {verb} File: {path}\n{body}{end}"


@st.composite
def payloads(draw: st.DrawFn, runtime: str, work: str) -> bytes:
    """A call of a client, as it spells it, or in an odd spelling."""
    path = draw(
        st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(ODD_PATHS))
    )
    if runtime == "claude-code" or draw(st.booleans()):
        path = f"{work}/{path}" if draw(st.integers(0, 9)) or runtime == "codex" else path
    is_odd = draw(st.integers(0, 3)) == 0
    tools = {
        "claude-code": ("Edit", "Edit", "Edit", "Write", "Bash", "MultiEdit", "NotebookEdit", "Read"),
        "codex": ("apply_patch",) * 3 + ("Bash", "shell", "Edit"),
    }
    tool = draw(st.sampled_from(tools[runtime]))
    given: list[tuple[str, Any]] = [
        ("file_path", path),
        ("old_string", "a"),
        ("new_string", draw(st.sampled_from(("b", "é\u2028", "\x7f", "x" * 3000)))),
    ]
    if tool == "Write":
        given = [("file_path", path), ("content", "x\n")]
    elif tool in ("Bash", "shell"):
        given = [("command", draw(st.sampled_from(LOOKS + WRITES[:4])))]
        if draw(st.booleans()):
            given.append(("description", "look"))
    elif tool == "apply_patch":
        given = [("command", _patch(draw, path))]
    folder = work
    if is_odd:
        folder = draw(
            st.sampled_from(
                (work,) * 5
                + (
                    work + "/sub",
                    work + "/linked",
                    work + "/linked/..",
                    work + "/",
                    "/nowhere",
                    work + "/../other",
                    "relative",
                )
            )
        )
        for name in draw(st.lists(st.sampled_from(sorted(INNER)), max_size=2)):
            given.append((name, draw(st.sampled_from(INNER[name]))))
    outer: list[tuple[str, Any]] = [
        ("session_id", ME),
        ("cwd", folder),
        ("hook_event_name", "PreToolUse"),
        ("tool_name", tool),
    ]
    inner: Any = _Given(_object(draw, given, is_odd))
    if is_odd and draw(st.integers(0, 11)) == 0:
        inner = draw(
            st.sampled_from(
                (
                    None,
                    [],
                    "x",
                    7,
                    {},
                    _Given("[" * 70 + "]" * 70),
                    _Given("{" * 30),
                    _Given("01"),
                    _Given("NaN"),
                    _Given("'x'"),
                )
            )
        )
    outer.append(("tool_input", inner))
    if is_odd:
        for name in draw(st.lists(st.sampled_from(sorted(MEMBERS)), max_size=2)):
            outer.append((name, draw(st.sampled_from(MEMBERS[name]))))
        if draw(st.integers(0, 40)) == 0:
            outer.append(("huge", "y" * (1 << 20)))
    data = _object(draw, outer, is_odd).encode("utf-8", "surrogatepass")
    if is_odd:
        data = draw(st.sampled_from(STARTS)) + data + draw(st.sampled_from(ENDS))
        if draw(st.integers(0, 11)) == 0:
            data = data[: draw(st.integers(0, len(data)))]
        if draw(st.integers(0, 11)) == 0:
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at + draw(st.integers(0, 2)) :]
    return data
