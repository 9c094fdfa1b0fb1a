"""The files written by a call of a client's own tools, and the effect on their content."""

import runpy
from typing import Any

import pytest
from support.sessions import ROOT

from swarm_hook_core.check import Writes
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces import told_ends, transcript

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
    assert not config.transcript or config.transcript in {*transcript.FORMS, *told_ends.FORMS}
