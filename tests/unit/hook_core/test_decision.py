"""The decision all runtimes share, and the files and tools that it is about."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement
from support.sessions import ROOT

from swarm_hook_core.check import Writes
from swarm_hook_core.collisions import denied_by_lock
from swarm_hook_core.config import RuntimeConfig, changes_in_patch, paths_under_keys
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Held, Session
from swarm_hook_core.mcp_writers import effects_of_tool, is_writer
from swarm_hook_core.paths import key_of
from swarm_hook_core.traces import transcript
from swarm_hook_core.wording import duration

CLAUDE = RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write", "Edit"}, paths_under_keys("file_path"))
CODEX = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, extract_changes=changes_in_patch)
ME = Session("me", "identity:work claude-code platform:cli", "/repo", "/repo", "/repo")
NOW = 1_800_000_000


def lock(file: str, by: str = "peer", label: str = "identity:work codex", note: str = "", age: int = 60) -> Held:
    return Held(file, by, label, note, NOW - age)


class Among:
    """The locks of peers, as ``Peers`` tells of them; refuses nonsense questions."""

    def __init__(self, *held: Held):
        self.held = held

    def any(self) -> bool:
        return bool(self.held)

    def on(self, keys: list[str], over: list[str]) -> list[Held]:
        asked = [*keys, *over]
        assert keys and len(set(asked)) == len(asked)
        return [one for one in self.held if key_of(one.file) in asked]

    def waiting_for(self, path: str) -> int:
        return 0


def decided(
    config: RuntimeConfig, tool: str, tool_input: Any, *held: Held, session: Session = ME, cwd: str = "/repo"
) -> Denial | None:
    writes = Writes(config, ToolCall(tool, tool_input, cwd=cwd))
    denial = denied_by_lock(writes, session, Among(*held), NOW)
    assert denial is None or isinstance(denial, Denial)
    return denial


def decide_write(path: str, *held: Held, session: Session = ME, cwd: str = "/repo") -> Denial | None:
    return decided(CLAUDE, "Write", {"file_path": path}, *held, session=session, cwd=cwd)


def test_a_lock_that_was_taken_through_another_mount_of_the_folder() -> None:
    session = Session("me", "identity:work codex", "/repo", "/repo")
    session.mounts = ["/mnt/repo"]
    for path, locked in (("/repo/a", "/mnt/repo/a"), ("sub/a", "/mnt/repo/sub"), ("/repo/a", "/repo/a")):
        assert decide_write(path, lock(locked), session=session), path
    for path, locked in (("/repository/a", "/mnt/repository/a"), ("/repo/a", "/mnt/repo/b"), ("/a", "/mnt/repo/a")):
        assert decide_write(path, lock(locked), session=session) is None, path


def reason_for(*, mine: str, theirs: str, note: str = "", age: int = 60) -> str:
    session = Session("me", mine, "/repo", "/repo", "/repo")
    denial = decide_write("/repo/f", lock("/repo/f", "peer-instance", theirs, note, age), session=session)
    assert denial
    return str(denial.reason)


def patch(*hunks: str) -> dict[str, str]:
    return {"command": "*** Begin Patch\n" + "".join(hunks) + "*** End Patch\n"}


@requirement("P-09", "P-14")
def test_one_s_own_lock_lets_pass() -> None:
    assert decide_write("/repo/f", lock("/repo/f", by="me")) is None
    assert decide_write("/repo/f", lock("/repo/f", by="me"), lock("/repo/f", by="peer")), "another scope's lock, say"


@pytest.mark.parametrize(
    ("config", "tool", "tool_input"),
    [
        *(
            (CLAUDE, "Write", odd)
            for odd in (None, [], "x", {}, {"file_path": ""}, {"file_path": 3}, {"path": "/repo/f"})
        ),
        *((CODEX, "apply_patch", odd) for odd in (None, [], "", "*** Begin", {}, {"command": 3}, {"command": "rm x"})),
    ],
)
def test_a_write_whose_paths_cannot_be_read_is_an_error(config: RuntimeConfig, tool: str, tool_input: Any) -> None:
    with pytest.raises(ValueError):
        decided(config, tool, tool_input)


@pytest.mark.parametrize("locked", ["a", "b", "c", "d"])
def test_every_file_of_a_patch_counts(locked: str) -> None:
    call = patch("*** Add File: a\n+x\n", "*** Update File: b\n*** Move to: c\n@@\n-x\n+y\n", "*** Delete File: d\n")
    denial = decided(CODEX, "apply_patch", call, lock(f"/repo/{locked}"))
    assert denial and denial.path == f"/repo/{locked}"
    assert decided(CODEX, "apply_patch", call, lock("/repo/e")) is None


@pytest.mark.parametrize("odd", [chr(0xDCFF), chr(0xD800), "a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_does_not_shield_the_next(odd: str) -> None:
    call = patch(f"*** Add File: {odd}\n+x\n", "*** Add File: b\n+x\n")
    denial = decided(CODEX, "apply_patch", call, lock("/repo/b"))
    assert denial and denial.path == "/repo/b"


def test_a_worktree_s_lock_is_found_where_its_files_really_are() -> None:
    me = Session("me", "", "/wt", "/wt", "/main")
    assert decide_write("/wt/f", lock("/main/f"), session=me, cwd="/wt")
    assert decide_write("f", lock("/main/f"), session=me, cwd="/wt")
    assert decide_write("/wt/..f", lock("/main/..f"), session=me, cwd="/wt")
    assert decide_write("/wt/f", lock("/wt/f"), session=me, cwd="/wt"), "its own place counts as well"
    assert decide_write("/elsewhere/f", lock("/main/f"), session=me, cwd="/wt") is None


def test_the_reason_tells_a_model_what_it_needs() -> None:
    text = reason_for(mine="identity:work a", theirs="identity:work codex role:x", note="renumbering\nit", age=720)
    begin = (
        "swarm lock blocked Write for f: held by codex peer-ins (wait in line for it: `swarm-mcp lock f --wait 60`; "
    )
    assert text.startswith(begin)
    assert 'note: "renumbering it"' in text
    assert "locked 12 min ago" in text
    assert "peer-instance" in text, "whom to message"
    for way in ("work on something else", "message the holder", "wait"):
        assert way in text
    assert "\n" not in text


def test_a_long_note_is_cut() -> None:
    text = reason_for(mine="", theirs="", note="n" * 5000)
    assert len(text) < 700 and "nnn…" in text


@pytest.mark.parametrize("label", ["", None])
def test_a_nameless_holder_is_named_by_its_instance(label: Any) -> None:
    text = reason_for(mine="", theirs=label)
    assert "held by session peer-ins (" in text and "message the holder (instance peer-instance)" in text


secrets = st.text("abcXYZ0189", min_size=12, max_size=20)


@given(secrets, secrets, secrets, secrets, st.integers(0, 10**7))
def test_identities_hide_who_and_why_never_whether(mine: str, theirs: str, word: str, note: str, age: int) -> None:
    if mine == theirs:
        return
    text = reason_for(mine=f"identity:{mine} x", theirs=f"codex identity:{theirs} role:{word}", note=note, age=age)
    assert text.startswith("swarm lock blocked Write for f: held by ")
    for secret in (theirs, word, note, "peer-instance", "codex"):
        assert secret not in text.replace("/repo/f", "")
    assert f"locked {duration(age)} ago" in text


@given(
    st.sampled_from([("", ""), ("", "identity:b "), ("identity:a ", ""), ("identity:a ", "identity:a ")]),
    secrets,
    secrets,
)
def test_where_identities_do_not_differ_all_is_said(circle: tuple[str, str], word: str, note: str) -> None:
    text = reason_for(mine=circle[0] + "x", theirs=f"{circle[1]}codex role:{word}", note=note)
    assert "held by codex peer-ins (" in text and f'note: "{note}"' in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"),
        (172799, "47 h"), (172800, "2 days"), (10**7, "115 days"), (1.9, "1 s"),
    ],
)  # fmt: skip
def test_a_span_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


PATCH = "*** Begin Patch\n*** Add File: n\n+hi\n*** Update File: f\n@@\n-x\n+z\n*** Delete File: g\n*** End Patch\n"
PATCHED = "n replace, f edit, g remove"


def config_of(runtime: str) -> RuntimeConfig:
    config: RuntimeConfig = runpy.run_path(str(ROOT / "integrations" / runtime / "runtime.py"))["RUNTIME"]
    return config


def writes_of(runtime: str, tool: str, tool_input: Any) -> Writes:
    return Writes(config_of(runtime), ToolCall(tool, tool_input, cwd="/repo"))


@pytest.mark.parametrize(
    ("runtime", "tool", "tool_input", "expected"),
    [
        ("claude-code", "Write", {"file_path": "a"}, "a replace"),
        ("claude-code", "Edit", {"file_path": "a"}, "a edit"),
        ("claude-code", "MultiEdit", {"file_path": "a"}, "a edit"),
        ("claude-code", "NotebookEdit", {"notebook_path": "a.ipynb"}, "a.ipynb edit"),
        ("claude-code", "Read", {"file_path": "a"}, ""),
        ("claude-code", "Bash", {"command": "rm a"}, ""),  # that is the shell's reader's
        ("codex", "apply_patch", {"input": PATCH}, PATCHED),
        ("codex", "apply_patch", ["apply_patch", PATCH], PATCHED),
        ("codex", "apply_patch", {"command": ["bash", "-c", f"apply_patch <<'E'\n{PATCH}E\n"]}, PATCHED),
        ("codex", "Bash", {"command": f"apply_patch <<'E'\n{PATCH}E\n"}, PATCHED),
        ("codex", "Bash", {"command": f"cd sub && apply_patch <<'E'\n{PATCH}E\n"}, PATCHED),
        ("codex", "Bash", {"command": f"echo; apply_patch <<'E'\n{PATCH}E\n"}, ""),
        ("hs", "write_file", {"path": "a"}, "a replace"),
        ("hs", "str_replace", {"path": "a"}, "a edit"),
        ("pi", "write", {"path": "a"}, "a replace"),
        ("pi", "edit", {"path": "@a"}, "a edit"),
    ],
)
def test_a_call_changes_replaces_or_removes_its_files(runtime: str, tool: str, tool_input: Any, expected: str) -> None:
    writes = writes_of(runtime, tool, tool_input)
    assert ", ".join(f"{path} {how}" for _folder, path, how in writes.changes) == expected
    assert [(folder, path) for folder, path, _how in writes.changes] == writes.named


def test_a_patch_in_another_folder_is_seen_from_there() -> None:
    found = writes_of("codex", "Bash", {"command": f"cd sub && apply_patch <<'E'\n{PATCH}E\n"}).changes
    assert {folder for folder, _path, _how in found} == {"/repo/sub"}


def test_a_call_whose_paths_cannot_be_read_is_no_call_without_paths() -> None:
    with pytest.raises(ValueError):
        list(writes_of("claude-code", "Write", {}).changes)
    with pytest.raises(ValueError):
        list(writes_of("codex", "apply_patch", {"input": "hello"}).changes)


@pytest.mark.parametrize("runtime", ["claude-code", "codex", "hs", "pi", "qwen"])
def test_what_is_said_of_write_tools_is_said_of_tools_that_there_are(runtime: str) -> None:
    config = config_of(runtime)
    assert config.replaces <= config.write_tools
    assert not config.transcript or config.transcript in transcript.FORMS


DENIED, TOLD, SILENT = "denied", "told", "silent"
A = "a.txt"
PATCH_OF_A = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch"
TWO = [{"filePath": "b.txt", "oldString": "x"}, {"filePath": A, "oldString": "x"}]

# verdict, tool, input
SHAPES: list[tuple[str, str, dict[str, Any]]] = [
    # a call within a call
    (DENIED, "CallMcpTool", {"server": "filesystem", "toolName": "write_file", "arguments": {"path": A}}),
    (DENIED, "mcp__proxy__use_tool", {"tool_name": "filesystem__write_file", "arguments": {"path": A}}),
    (DENIED, "mcp__MCP_DOCKER__mcp-exec", {"name": "write_file", "arguments": {"path": A}}),
    (DENIED, "mcp__hub__call_tool", {"tool": "fs.edit_file", "args": {"path": A}}),
    (DENIED, "mcp__hub__execute", {"toolName": "fs:write_file", "input": '{"path": "a.txt"}'}),
    (DENIED, "mcp__hub__invoke", {"tool": "write_file", "path": A}),
    (DENIED, "mcp__hub__batch", {"calls": [{"name": "read_file", "args": {}}, {"name": "rm", "params": {"path": A}}]}),
    (DENIED, "mcp__rpc__send", {"method": "tools/call", "params": {"name": "write_file", "arguments": {"path": A}}}),
    (DENIED, "mcp__hub__run", {"name": "bash", "arguments": {"command": "echo > a.txt"}}),
    (SILENT, "CallMcpTool", {"server": "filesystem", "toolName": "read_file", "arguments": {"path": A}}),
    (SILENT, "CallMcpTool", {"server": "swarm", "toolName": "update_task", "arguments": {"path": A}}),
    (SILENT, "mcp__hub__create_label", {"name": "a label", "params": {"path": "b.txt"}}),
    # VS Code
    (DENIED, "create_file", {"filePath": A, "content": ""}),
    (DENIED, "replace_string_in_file", {"filePath": A, "oldString": "x", "newString": "y"}),
    (DENIED, "multi_replace_string_in_file", {"explanation": "", "replacements": TWO}),
    (DENIED, "copilot_multiReplaceString", {"replacements": TWO}),
    (DENIED, "insert_edit_into_file", {"filePath": A, "code": "", "explanation": ""}),
    (DENIED, "apply_patch", {"input": PATCH_OF_A, "explanation": ""}),
    (DENIED, "edit_notebook_file", {"filePath": A, "editType": "insert"}),
    (DENIED, "vscode_renameSymbol", {"symbol": "f", "newName": "g", "filePath": A}),
    (DENIED, "run_in_terminal", {"command": "rm a.txt", "explanation": ""}),
    # Xcode
    (DENIED, "mcp__xcode__XcodeWrite", {"filePath": A, "content": "", "tabIdentifier": "w"}),
    (DENIED, "mcp__xcode__XcodeUpdate", {"filePath": A, "oldString": "x", "newString": "y"}),
    (DENIED, "mcp__xcode__XcodeRM", {"path": A, "deleteFiles": True}),
    (TOLD, "mcp__xcode__XcodeRM", {"path": A, "deleteFiles": False}),
    (DENIED, "mcp__xcode__XcodeMV", {"sourcePath": A, "destinationPath": "b.swift"}),
    (SILENT, "mcp__xcode__XcodeMV", {"sourcePath": A, "destinationPath": "b.swift", "operation": "copy"}),
    (SILENT, "mcp__xcode__XcodeRead", {"filePath": A}),
    # Serena
    (DENIED, "mcp__serena__create_text_file", {"relative_path": A, "content": ""}),
    (DENIED, "mcp__serena__safe_delete_symbol", {"name_path_pattern": "f", "relative_path": A}),
    (DENIED, "mcp__serena__jet_brains_rename", {"relative_path": A, "name_path": "f", "new_name": "g"}),
    (DENIED, "mcp__serena__jet_brains_move", {"relative_path": "b.txt", "target_relative_path": A}),
    (DENIED, "mcp__serena__jet_brains_inline_symbol", {"relative_path": A, "name_path": "f"}),
    (DENIED, "mcp__serena__jet_brains_safe_delete", {"relative_path": A, "name_path": "f"}),
    (TOLD, "mcp__serena__rename_symbol", {"relative_path": "b.txt", "name_path": "f", "new_name": "g"}),
    (TOLD, "mcp__serena__replace_in_files", {"needle": "x", "repl": "y", "relative_path": "."}),
    (SILENT, "mcp__serena__replace_in_files", {"needle": "x", "repl": "y", "dry_run": True}),
    (SILENT, "mcp__serena__write_memory", {"memory_name": "notes", "content": A}),
    (SILENT, "mcp__serena__find_referencing_symbols", {"name_path": "f", "relative_path": A}),
    # Cline, Roo, Windsurf, Zed, Kiro, Continue, Void, hashlines
    (DENIED, "write_to_file", {"path": A, "content": "y"}),
    (DENIED, "write_to_file", {"TargetFile": A, "CodeContent": "", "Overwrite": True}),
    (DENIED, "replace_in_file", {"path": A, "diff": "------- SEARCH"}),
    (DENIED, "apply_diff", {"path": A, "diff": "<<<<<<< SEARCH"}),
    (DENIED, "apply_diff", {"args": {"file": [{"path": A, "diff": []}]}}),
    (DENIED, "insert_content", {"path": A, "line": 1, "content": ""}),
    (DENIED, "run_command", {"CommandLine": "rm a.txt", "Cwd": "."}),
    (DENIED, "terminal", {"command": "rm a.txt", "cd": "."}),
    (DENIED, "fs_write", {"command": "create", "path": A, "file_text": ""}),
    (DENIED, "edit_existing_file", {"filepath": A, "changes": ""}),
    (DENIED, "delete_file_or_folder", {"uri": A}),
    (DENIED, "mcp__hashline__hashline_edit", {"path": A, "edits": []}),
    (DENIED, "mcp__edit__apply_hashline_edits", {"file": A, "edits": []}),
    (TOLD, "mcp__win__run_powershell", {"command": "Remove-Item a.txt"}),
    (TOLD, "write_bash", {"shellId": "1", "input": "rm a.txt\n"}),
    # outputs by their names, for every name of the tool
    (DENIED, "mcp__playwright__browser_take_screenshot", {"filename": A}),
    (DENIED, "mcp__playwright__browser_snapshot", {"filename": A}),
    (DENIED, "mcp__playwright__browser_storage_state", {"filename": A}),
    (DENIED, "mcp__chrome__take_screenshot", {"filePath": A, "format": "png"}),
    (TOLD, "mcp__chrome__get_network_request", {"reqid": 1, "responseFilePath": A}),
    (DENIED, "mcp__pandoc__convert_contents", {"contents": "x", "output_file": A}),
    (DENIED, "mcp__figma__render_node", {"node": "1", "outputFilePath": A}),
    (DENIED, "mcp__tts__speak", {"text": "x", "savePath": A}),
    (DENIED, "mcp__mermaid__diagram", {"code": "x", "dest": A}),
    (DENIED, "mcp__img__generate_image", {"prompt": "x", "output_path": A}),
    (TOLD, "mcp__img__optimize", {"input": "x", "outputDir": "."}),
    (TOLD, "mcp__chart__plot", {"data": [], "filename": A}),
    (TOLD, "mcp__pdf__read_pdf_pages", {"path": "b.pdf", "output_path": A}),
    (TOLD, "mcp__excel__set_cell", {"filepath": A, "cell": "A1", "value": 1}),
    # readers
    (SILENT, "mcp__playwright__browser_set_storage_state", {"filename": A}),
    (SILENT, "mcp__playwright__browser_run_code_unsafe", {"filename": A}),
    (SILENT, "mcp__playwright__browser_file_upload", {"paths": [A]}),
    (SILENT, "mcp__playwright__browser_take_screenshot", {"type": "png"}),
    (SILENT, "mcp__chrome__upload_file", {"uid": "1", "filePath": A}),
    (SILENT, "mcp__chrome__compare_heapsnapshots", {"filePath": A, "otherFilePath": "b"}),
    (SILENT, "mcp__log__analyze_log", {"filename": A}),
    (SILENT, "mcp__fs__read_file", {"path": A}),
    (SILENT, "mcp__fs__search_files", {"path": ".", "pattern": A}),
    (SILENT, "mcp__agent__define", {"tools": [{"name": "write_file", "parameters": {"path": A}}]}),
]  # fmt: skip


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "top"
    (folder / ".git").mkdir(parents=True)
    (folder / A).write_text("x\n")
    return folder


def verdict(tool: str, given: dict[str, Any], top: Path) -> str:
    """Return the answer to the call beside a lock on a.txt."""
    if not is_writer(tool, given):
        return SILENT
    effects = effects_of_tool(tool, given, str(top))
    if effects is None:
        return SILENT
    file = str(top / A)
    answers = [tree.admits(file) for tree in effects.trees if f"{file}/".startswith(tree.root + "/")]
    if any((top / write.path).resolve() == top / A for write in effects.writes) or True in answers:
        return DENIED
    return TOLD if effects.guesses or None in answers else SILENT


@pytest.mark.parametrize(("expected", "tool", "given"), SHAPES, ids=[f"{one[1]}-{one[0]}" for one in SHAPES])
def test_what_a_call_comes_to_beside_a_lock(expected: str, tool: str, given: dict[str, Any], top: Path) -> None:
    assert verdict(tool, given, top) == expected


@pytest.mark.parametrize("change", [{"content": "x"}, {"needle": "x", "repl": "y"}])
def test_a_memory_is_a_file(change: dict[str, str], top: Path) -> None:
    tool = "mcp__serena__" + ("write_memory" if "content" in change else "edit_memory")
    effects = effects_of_tool(tool, {"memory_name": "topic/notes", **change}, str(top))
    assert effects and [write.path for write in effects.writes] == [f"{top}/.serena/memories/topic/notes.md"]
    moved = effects_of_tool("rename_memory", {"old_name": "a", "new_name": "global/b"}, str(top))
    assert moved and [tree.root for tree in moved.trees] == [f"{top}/.serena/memories/a.md"]
    assert [write.path.endswith("/.serena/memories/global/b.md") for write in moved.writes] == [True]


def test_calls_within_calls_end(top: Path) -> None:
    given: dict[str, Any] = {"path": A}
    for _deep in range(50):
        given = {"name": "write_file", "arguments": given}
    assert verdict("mcp__hub__call", given, top) == TOLD, "deeper than is looked"
    assert verdict("mcp__hub__call", {"calls": [{"name": "x", "args": {}}] * 9999}, top) == SILENT
