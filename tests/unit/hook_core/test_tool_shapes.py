"""Calls of other servers' and editors' tools in their declared form: the answer beside a lock on a.txt.

Denied: the tool certainly writes the file. Told: it may. Silent: it reads, or writes elsewhere. No reader is denied.
"""

from pathlib import Path
from typing import Any

import pytest

from swarm_hook_core.mcp_writers import effects_of_tool, is_writer

DENIED, TOLD, SILENT = "denied", "told", "silent"
A = "a.txt"
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch"
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
    (DENIED, "apply_patch", {"input": PATCH, "explanation": ""}),
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
