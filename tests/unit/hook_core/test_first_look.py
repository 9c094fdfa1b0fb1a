"""The program in front of the check: if it lets a call pass in silence, so does the check, and leaves the same files.

``SWARM_FIRST_LOOK`` names the program. ``SWARM_THOROUGH=1`` tries thousands of scenes.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support.first_look import HANDED_OVER, IS_SUITE, ME, PEER, PROGRAM, Scene

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="no program: make native")]
EXAMPLES = int(os.environ.get("SWARM_FIRST_LOOK_EXAMPLES", "60"))

NAMES = ("notes.md", "other.md", "sub/deep.md", "real/file.md", "new.md", "new/folder/x.py")
SPELLINGS = (
    "link.md", "linked/file.md", "linked/../notes.md", "./notes.md", "sub//deep.md", "sub/../notes.md", "NOTES.md", "sub",
    "notes.md ", " notes.md", "sub/.git/config", ".git/config", "settings.json", "a b (1) [id]/$x.tsx", "100%/x%2Fy.md",
    "swarm.md", "ünï.md", "it's.md", "a\\b", "a\nb", "~/x", "", ".", "..", "node_modules/x.js", "x" * 170, "deep/" * 40 + "x",
    "../other/x.md",
)  # fmt: skip
COMMANDS = (
    "sed -n 1,12p long.md", "tail -18 long.md", "cat real/file.md",
    "ls", "cat notes.md", "git status", "make", "echo x > notes.md", "sed -i s/a/b/ sub/deep.md", "pytest -q tests/*.py",
    "cp a.md $TARGET", "rm -rf real", "grep -rn x . | head", "touch new.md", "mv other.md new.md", "echo 'x' > sub/{a,b}.md",
    "python - <<'E'\nopen('notes.md', 'w')\nE",
)  # fmt: skip
MARKS = (
    "watched",
    "watched-edits",
    "acting",
    "unheard",
    "claims",
    "team/clones",
    "awaited",
    "busy",
    "unknown",
    "heads",
    "faults.jsonl",
)
ENTRIES = (
    b"T clears - Bash\0WORK/sub\0remove\n", b"T aside - Bash\0WORK\0husky\n", b"T sprung - Edit\0WORK/x\n", b"torn",
    b"T far - Edit\0WORK/notes.md\0x\n", b"T will - Edit\0WORK/notes.md\0-\n", b"T ran - Bash\0WORK\0cp * x\n", b"\n\n",
    b"T saw - Read\0WORK/notes.md\0x\n", b"x wrote - Edit\0WORK/sub/deep.md\0-\n", b"T wrote - Edit\0WORK/s\xc3\xbc\0-\n",
)  # fmt: skip


@st.composite
def deeds(draw: st.DrawFn) -> tuple[str, Any]:
    """One thing that happens before the call."""
    kind = draw(
        st.sampled_from(
            (
                "own",
                "own",
                "peer",
                "peer",
                "own bash",
                "own bash",
                "peer bash",
                "lock",
                "mark",
                "entry",
                "time",
                "end",
                "change",
            )
        )
    )
    if kind in ("own", "peer", "change"):
        return kind, draw(st.sampled_from(NAMES))
    if kind in ("own bash", "peer bash"):
        return kind, draw(st.sampled_from(COMMANDS))
    if kind == "lock":
        place = draw(st.sampled_from((*NAMES, "sub", ".", "*.md", "../other/x.md", "../other")))
        return kind, (place, draw(st.booleans()))
    if kind == "mark":
        return kind, draw(st.sampled_from(MARKS))
    if kind == "entry":
        return kind, (draw(st.sampled_from(ENTRIES)), draw(st.booleans()), draw(st.sampled_from((0, 1, 5, 200, 90000))))
    return kind, draw(st.sampled_from((1, 3, 10, 200)))


def happens(scene: Scene, kind: str, about: Any) -> None:
    """Let a deed happen in the scene."""
    if kind in ("own", "peer"):
        who, core = (ME, scene.core) if kind == "own" else (PEER, scene.peers_core)
        tool, given_input = scene.edit_of(str(scene.work / about), core.config.runtime_name)
        if scene.asks(scene.payload(tool, given_input, who), kind == "peer") == (0, ""):
            (scene.work / about).parent.mkdir(parents=True, exist_ok=True)
            (scene.work / about).write_text(f"{about} by {kind} {time.time_ns()}")
    elif kind in ("own bash", "peer bash"):
        is_peer = kind == "peer bash"
        scene.asks(scene.payload("Bash", {"command": about}, (ME, PEER)[is_peer]), is_peer)
    elif kind == "change":
        (scene.work / about).parent.mkdir(parents=True, exist_ok=True)
        (scene.work / about).write_text(f"by a person {time.time_ns()}")
    elif kind == "lock":
        place, is_own = about
        try:
            scene.locks((scene.peer, scene.me)[is_own], scene.work / place, as_pattern="*" in place)
        except Exception:  # the other one has it
            return
    elif kind == "mark":
        (scene.state / about).parent.mkdir(parents=True, exist_ok=True)
        if "." in about:
            (scene.state / about).write_text("x\n")
        else:
            (scene.state / about).mkdir(exist_ok=True)
    elif kind == "entry":
        line, is_own, age = about
        at = str(time.time_ns() - age * 10**9).encode()
        for path in (scene.state / "traces").glob("*/*"):
            if path.name.endswith(ME) == is_own:
                with path.open("ab") as file:
                    file.write(b"\n" + line.replace(b"T ", at + b" ", 1).replace(b"WORK", bytes(scene.work)))
    elif kind == "time":
        scene.pass_time(about)
    elif kind == "end":
        (scene.state / "ended").mkdir(parents=True, exist_ok=True)
        (scene.state / "ended" / str(os.getpid())).touch()


def plain(scene: Scene, path: str) -> bytes:
    """Return the call as the client spells it."""
    return scene.payload(*scene.edit_of(path))


WAYS: dict[str, Callable[[Scene, str], bytes]] = {
    "plain": plain,
    "write": lambda scene, path: scene.payload("Write", {"file_path": path, "content": "x"}),
    "add": lambda scene, path: scene.payload(
        "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"}
    ),
    "multi": lambda scene, path: scene.payload(
        "MultiEdit", {"file_path": path, "edits": [{"old_string": "ä\\", "new_string": '"\x7f€😀', "n": 3, "x": None}]}
    ),
    "notebook": lambda scene, path: scene.payload("NotebookEdit", {"notebook_path": path, "new_source": "x"}),
    "several": lambda scene, path: scene.payload(
        "apply_patch",
        {
            "command": f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+*** b\n*** End of File\n"
            f"*** Add File: {path}.new\n+x ***\n*** Update File: sub/deep.md\n@@\n a\n+b\n*** End Patch"
        },
    ),
    "merging": lambda scene, path: scene.payload(
        "Edit", {"file_path": path, "old_string": "*** Move to: x", "new_string": "y"}
    ),
    "sorted": lambda scene, path: plain(scene, path).replace(
        b'"tool_input": {', b'"tool_input": {"z": {"b": 1, "a": [-0, 1.5]}, ', 1
    ),
    "escapes": lambda scene, path: plain(scene, path).replace(
        b'"tool_input": {', rb'"tool_input": {"z": "\/\u00E9\ud83d\ude00\ud800\u0000\b", ', 1
    ),
    "two": lambda scene, path: scene.payload(
        "apply_patch",
        {"command": f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** Delete File: notes.md\n*** End Patch"},
    ),
    "moved": lambda scene, path: scene.payload(
        "apply_patch",
        {"command": f"*** Begin Patch\n*** Update File: {path}\n*** Move to: notes.md\n@@\n-a\n+b\n*** End Patch"},
    ),
    "escaped": lambda scene, path: plain(scene, path).replace(b"/", rb"\/"),
    "unicode": lambda scene, path: plain(scene, path).replace(b"a", rb"\u0061"),
    "mark": lambda scene, path: b"\xef\xbb\xbf" + plain(scene, path),
    "behind": lambda scene, path: plain(scene, path) + b" x",
    "blanks": lambda scene, path: b" \n\t" + plain(scene, path).replace(b": ", b" :\n\t") + b"\r\n ",
    "twice": lambda scene, path: plain(scene, path)[:-1] + b', "session_id": "x"}',
    "two inputs": lambda scene, path: plain(scene, path)[:-1] + b', "tool_input": {"file_path": "/x"}}',
    "hidden": lambda scene, path: plain(scene, path).replace(
        b'"tool_input": {', rb'"tool_input": {"file\u005fpath": "notes.md", ', 1
    ),
    "more paths": lambda scene, path: plain(scene, path).replace(
        b'"tool_input": {', b'"tool_input": {"path": "notes.md", "input": "x", ', 1
    ),
    "latin": lambda scene, path: plain(scene, path).replace(b'"a"', b'"\xe9\xff"').replace(b"-a", b"-\xe9"),
    "agent": lambda scene, path: plain(scene, path)[:-1] + b', "agent_id": "a1", "agent_type": "x"}',
    "cut": lambda scene, path: plain(scene, path)[:-1],
    "nan": lambda scene, path: plain(scene, path)[:-1] + b', "x": NaN}',
    "numbers": lambda scene, path: plain(scene, path)[:-1] + b', "x": [-0.5e+3, 1E2, 0, {"y": [true, false, null]}]}',
    "bad number": lambda scene, path: plain(scene, path)[:-1] + b', "x": 01}',
    "nested": lambda scene, path: plain(scene, path)[:-1] + b', "x": ' + b"[" * 70 + b"]" * 70 + b"}",
    "huge": lambda scene, path: plain(scene, path)[:-1] + b', "x": "' + b"y" * (1 << 20) + b'"}',
    "unknown session": lambda scene, path: plain(scene, path).replace(ME.encode(), b"33333333-3333"),
    "odd folder": lambda scene, path: plain(scene, path).replace(
        json.dumps(str(scene.work)).encode(), json.dumps(str(scene.work) + "/linked/..").encode(), 1
    ),
    "sub folder": lambda scene, path: plain(scene, path).replace(
        json.dumps(str(scene.work)).encode(), json.dumps(str(scene.work / "sub")).encode(), 1
    ),
    "other folder": lambda scene, path: plain(scene, path).replace(
        json.dumps(str(scene.work)).encode(), json.dumps(str(scene.other)).encode(), 1
    ),
}


READS = (
    "ls", "ls -la sub", "pwd; ls", "cat notes.md", "cat notes.md sub/deep.md", "cat -n real/file.md", "nl -ba notes.md", "cat link.md",
    "cat linked/file.md", "cat missing.md", "cat ../other/x.md", "head -5 notes.md", "head -n 12 long.md", "head long.md sub/deep.md",
    "tail -18 long.md", "tail -n 40 long.md", "sed -n 13,40p long.md", "sed -n 1,12p long.md", "sed -n 12p long.md; cat notes.md",
    "head -3 long.md; tail -3 long.md", "head -0 long.md", "sed -n 9,3p long.md", "sed -n 1,5p missing.md", "head -5 sub", "sed -n 1,20p notes.md", "sed -n 5p notes.md",
    "grep -rn 'a line' sub | head -20", "rg -n \"x y\" sub", "git status --short && grep -rn 'a line' sub | head -20", "git log -3",
    "git --no-pager diff", "git diff HEAD", "git branch -a", "git stash list", "git stash", "git show HEAD:notes.md", "pytest -q",
    "python -m pytest tests", "pytest -q; ls", "find . -name '*.py'", "find . -name x -delete", "ls 2>/dev/null", "ls >/dev/null 2>&1",
    "ls >/dev/null foo", "ls > out.md", "echo x >> notes.md", "cd sub && ls", "cd sub && cat deep.md", "cd", "cat notes.md || ls",
    "grep -n a notes.md && cat notes.md", "wc -l notes.md && cat notes.md", "cat notes.md | wc -l", "sort -n | uniq -c", "sort -o x",
    "ls *", "ls ~", "cat *.md", "ls $HOME", "echo `ls`", "ls /tmp", "cat /work/notes.md", "echo 'it is'", "echo ''", "ls ''x",
    "grep '' notes.md", "which python", "diff --output=x a b", "ls;", "ls &&", "; ls", "ls & ls", "ls\nls", "sed -i s/a/b/ notes.md",
    "sed -n 1,5p notes.md | head", "cat notes.md > /dev/null", "echo rm", "grep rm notes.md", "ls swarm", "ls other", "echo delete",
    "git log --grep=commit", "head -n 3 notes.md", "tail -f notes.md", "cat -- notes.md", "cat ''", "true", "test -f notes.md",
)  # fmt: skip


@settings(max_examples=EXAMPLES, derandomize=IS_SUITE, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(("claude-code", "codex")),
    st.lists(deeds(), max_size=6),
    st.sampled_from(READS),
    st.sampled_from(({}, {}, {"description": "List files"}, {"timeout": 10, "run_in_background": True}, {"x": "rm ~"})),
)
def test_silence_about_commands_is_the_checks_own(
    runtime: str, before: list[tuple[str, Any]], command: str, more: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory(prefix="look", ignore_cleanup_errors=True) as folder:
        scene = Scene(Path(folder), runtime)
        with scene.environment():
            scene.begin()
            for kind, about in before:
                happens(scene, kind, about)
            is_silent = scene.compare(scene.payload("Bash", {"command": command, **more}))
            event(f"silent: {is_silent} {scene.why.strip()}")


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "deed",
    [None, ("own", "notes.md"), ("peer", "real/file.md"), ("lock", ("notes.md", False)), ("lock", ("notes.md", True))],
)
@pytest.mark.parametrize(
    "command", ["ls sub", "git status --short && grep -rn 'a line' sub | head -20", "cat notes.md"]
)
def test_reads_stay_silent(tmp_path: Path, runtime: str, deed: tuple[str, Any] | None, command: str) -> None:
    scene = Scene(tmp_path / "look", runtime)
    with scene.environment():
        scene.begin()
        happens(scene, "own", "other.md")
        if deed is not None:
            happens(scene, *deed)
        assert scene.compare(scene.payload("Bash", {"command": command})), scene.why


def test_parts_that_leave_no_gap_are_a_look(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "look", "codex")
    with scene.environment():
        scene.begin()
        happens(scene, "peer", "real/file.md")
        for command in ("sed -n 1,12p long.md", "head -5 long.md", "tail -12 long.md", "sed -n 13,20p long.md"):
            call = scene.payload("Bash", {"command": command})
            assert scene.compare(call), scene.why
        assert any(b" saw " in path.read_bytes() for path in scene.state.glob("traces/*/codex*"))


@settings(max_examples=EXAMPLES, derandomize=IS_SUITE, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(("claude-code", "codex")),
    st.lists(deeds(), max_size=7),
    st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(SPELLINGS)),
    st.one_of(st.just("plain"), st.just("plain"), st.just("plain"), st.sampled_from(sorted(WAYS))),
    st.booleans(),
)
def test_silence_is_the_checks_own(
    runtime: str, before: list[tuple[str, Any]], path: str, way: str, is_absolute: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="look", ignore_cleanup_errors=True) as folder:
        scene = Scene(Path(folder), runtime)
        with scene.environment():
            scene.begin()
            for kind, about in before:
                happens(scene, kind, about)
            spelled = path
            if is_absolute or runtime == "claude-code":
                spelled = f"{scene.work}/{path}"
            is_silent = scene.compare(WAYS[way](scene, spelled))
            event(f"silent: {is_silent} {scene.why.strip()}")


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "deed",
    [
        None,
        ("own", "notes.md"),
        ("peer", "real/file.md"),
        ("lock", ("../other/x.md", False)),
        ("lock", ("notes.md", False)),
        ("lock", ("new.md", False)),
    ],
)
def test_the_usual_calls_stay_silent(tmp_path: Path, runtime: str, deed: tuple[str, Any] | None) -> None:
    scene = Scene(tmp_path / "look", runtime)
    with scene.environment():
        scene.begin()
        happens(scene, "own", "other.md")
        if deed is not None:
            happens(scene, *deed)
        assert scene.compare(plain(scene, str(scene.work / "sub/deep.md"))), scene.why


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize("is_beside", [False, True])
def test_calls_in_a_row_stay_silent(tmp_path: Path, runtime: str, is_beside: bool) -> None:
    """A session's first write in a repository, its next ones beside a peer with a lock, and a whole file of its own."""
    scene = Scene(tmp_path / "look", runtime)
    path = str(scene.work / "new.md")
    whole = WAYS["write"] if runtime == "claude-code" else WAYS["add"]
    with scene.environment():
        scene.begin()
        scene.state.mkdir(parents=True, mode=0o700)  # as the hook at a session's start
        if is_beside:
            happens(scene, "peer", "notes.md")
            happens(scene, "lock", ("real/file.md", False))
            scene.pass_time(10)
        for number in range(3):
            assert scene.compare(whole(scene, path)), scene.why
            Path(path).write_text(f"text {number}\n")
            assert scene.compare(plain(scene, path)), scene.why
            Path(path).write_text(f"text {number}, edited\n")
            assert scene.compare(plain(scene, str(scene.work / "sub/deep.md"))), scene.why
            (scene.work / "sub/deep.md").write_text(f"text {number}\n")


def test_a_write_after_the_peers_stays_silent_once_it_was_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "look", "claude-code")
    with scene.environment():
        scene.begin()
        happens(scene, "own", "other.md")
        happens(scene, "peer", "notes.md")
        scene.pass_time(200)
        edit = plain(scene, str(scene.work / "notes.md"))
        assert not scene.compare(edit)
        scene.asks(edit)
        (scene.work / "notes.md").write_text("by both\n")
        assert scene.compare(edit), scene.why


def test_another_contract_sends_each_call_to_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.first_look.CONTRACT", "0")
    scene = Scene(tmp_path / "look", "claude-code")
    with scene.environment():
        scene.begin()
        happens(scene, "own", "other.md")
        assert scene.looks(plain(scene, str(scene.work / "sub/deep.md")))[0] == HANDED_OVER


MOMENTS = int(os.environ.get("SWARM_FIRST_LOOK_MOMENTS", "40"))


@pytest.mark.parametrize("both", [True, False])
def test_of_two_writers_at_one_moment_one_meets_the_other(tmp_path: Path, both: bool) -> None:
    """Both begin at once, on one side or on both through the program: never are both silent."""
    scene = Scene(tmp_path / "look", "claude-code")
    theirs = scene.peers_core.config.runtime_name
    with scene.environment():
        scene.begin()
        happens(scene, "own", "other.md")
        happens(scene, "peer", "real/file.md")
        for moment in range(
            MOMENTS if both else max(1, MOMENTS // 20)
        ):  # the check waits two seconds for a pending write
            path = f"{scene.work}/at-{moment}.md"
            mine = scene.start(plain(scene, path), "claude-code")
            tool, given_input = scene.edit_of(path, theirs)
            payload = scene.payload(tool, given_input, PEER)
            other = scene.start(payload, theirs) if both else None
            if other is None:
                met = scene.asks(payload, is_peer=True) != (0, "")
            else:
                met = other.wait() == HANDED_OVER
            assert mine.wait() == HANDED_OVER or met, path
