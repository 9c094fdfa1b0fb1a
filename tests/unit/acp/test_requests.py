"""The agent's requests as calls of the hook core."""

from pathlib import Path

import pytest

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.mcp_writers import effects_of_tool
from swarm_mcp.agents import acp_guard
from swarm_mcp.agents.acp_guard import CONFIG, Made


def asked(tmp_path: Path, **tool_call) -> Made | None:
    return acp_guard.asked(tool_call, str(tmp_path))


def changes(made: Made | None) -> list[tuple[str, str]]:
    assert made is not None
    return CONFIG.changes_of(made.tool, made.input)


def test_a_file_that_the_editor_writes_is_replaced() -> None:
    given = {"sessionId": "s", "path": "/x/a.md", "content": "new"}
    made = acp_guard.call_of({"method": "fs/write_text_file", "params": given})
    assert changes(made) == [("/x/a.md", REPLACE)] and made and made.input["content"] == "new"


@pytest.mark.parametrize(
    "given, command",
    [
        ({"command": "echo x > a"}, "echo x > a"),
        ({"command": "sh", "args": ["-c", "echo 'x' > a"], "cwd": "/y"}, "sh -c 'echo '\"'\"'x'\"'\"' > a'"),
    ],
)
def test_a_terminal_is_a_shell_command(given: dict, command: str) -> None:
    made = acp_guard.call_of({"method": "terminal/create", "params": {"sessionId": "s", **given}})
    assert made == Made("terminal/create", "Bash", {"command": command}, given.get("cwd", ""))


def test_a_diff_edits_a_file_if_its_old_text_is_a_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwo\n")

    def how(old: str | None) -> str:
        diff = {"type": "diff", "path": "a.md", "oldText": old, "newText": "new"}
        ((_path, found),) = changes(asked(tmp_path, kind="edit", content=[diff]))
        return found

    assert how("one") == EDIT
    assert how("one\ntwo\n") == REPLACE  # the whole file
    assert how("another\n") == REPLACE  # a whole file, as it was once
    assert how(None) == REPLACE


def test_several_diffs_are_one_call(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwo\n")
    diffs = [{"type": "diff", "path": path, "oldText": "one", "newText": "1"} for path in ("a.md", "b.md")]
    assert changes(asked(tmp_path, kind="edit", content=diffs)) == [("a.md", EDIT), ("b.md", EDIT)]


@pytest.mark.parametrize("kind, how", [("edit", EDIT), ("delete", REMOVE), ("move", REMOVE)])
def test_without_a_diff_the_places_and_the_input_name_the_files(tmp_path: Path, kind: str, how: str) -> None:
    made = asked(tmp_path, kind=kind, locations=[{"path": "/x/a"}], rawInput={"file_path": "/x/b", "path": 3})
    assert changes(made) == [("/x/a", how), ("/x/b", how)]


def effects(tmp_path: Path, **tool_call) -> list[tuple[str, str]]:
    made = asked(tmp_path, **tool_call)
    assert made is not None
    found = effects_of_tool(made.tool, made.input, str(tmp_path))
    assert found is not None
    return sorted([(one.path, one.how) for one in found.writes] + [(one.root, one.how) for one in found.trees])


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "other", "title": "files_write_file", "rawInput": {"path": "/x/a", "content": ""}},
        {"title": "write", "rawInput": {"filePath": "/x/a", "content": ""}},  # no kind, and a name of ours
        {"title": "Write a file", "_meta": {"toolName": "mcp__files__write_file"}, "rawInput": {"uri": "file:///x/a"}},
        {"kind": "other", "title": "Tool: files/write_file",
         "rawInput": {"server": "files", "tool": "write_file", "arguments": {"path": "/x/a"}}},
        {"title": "write_file (files MCP Server)",
         "content": [{"type": "content", "content": {"type": "text", "text": '{"path": "/x/a"}'}}]},
    ],
)  # fmt: skip
def test_a_tool_of_another_server_is_read_as_hooks_read_it(tmp_path: Path, call: dict) -> None:
    assert effects(tmp_path, **call) == [("/x/a", REPLACE)]


def test_a_move_names_both_ends(tmp_path: Path) -> None:
    found = effects(tmp_path, kind="move", title="Rename", rawInput={"from": "/x/a", "to": "/x/b"})
    assert found == [("/x/a", REMOVE), ("/x/b", REPLACE)]


PATCH = "*** Begin Patch\n*** Update File: /x/a\n@@\n-one\n+two\n*** End Patch\n"


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"path": "/x/a", "content": "new"}, [("/x/a", REPLACE)]),
        ({"edits": [{"path": "/x/a"}], "path": "/x/a"}, [("/x/a", EDIT)]),
        ({"file_path": "/x/a", "old_string": "one", "new_string": "two"}, [("/x/a", EDIT)]),
        ({"patch": PATCH}, [("/x/a", EDIT)]),
        ({"from": "/x/a", "to": "/x/b"}, [("/x/a", REMOVE), ("/x/b", REPLACE)]),
    ],
)
def test_a_call_without_kind_and_name_is_read_by_its_arguments(tmp_path: Path, given: dict, expected: list) -> None:
    assert effects(tmp_path, title="Change the text of it", rawInput=given) == expected
    assert asked(tmp_path, title="Look at it", rawInput={"path": "/x/a", "query": "one"}) is None
    made = asked(tmp_path, title="Run it", rawInput={"command": "rm a", "cwd": "/y"})
    assert made == Made("command", "Bash", {"command": "rm a"}, "/y")


@pytest.mark.parametrize(
    "given",
    [
        {"edits": [{"path": "/x/a"}]},
        {"changes": [{"file": "/x/a"}]},
        {"changes": {"/x/a": {"type": "update"}}},
        {"uri": "file:///x/a"},
        {"input": PATCH},
    ],
)
def test_an_edit_names_its_files_as_other_tools_do(tmp_path: Path, given: dict) -> None:
    assert changes(asked(tmp_path, kind="edit", rawInput=given)) == [("/x/a", EDIT)]


@pytest.mark.parametrize(
    "given, command",
    [
        ({"rawInput": {"command": "rm a"}, "title": "Remove a"}, "rm a"),
        ({"rawInput": {"command": ["rm", "a b"], "cwd": "/y"}}, "rm 'a b'"),
        ({"title": "rm a"}, "rm a"),
    ],
)
def test_a_command_is_in_the_input_or_is_the_title(tmp_path: Path, given: dict, command: str) -> None:
    made = asked(tmp_path, kind="execute", **given)
    assert made and made.input == {"command": command}
    assert made.folder == given.get("rawInput", {}).get("cwd", "")


@pytest.mark.parametrize(
    "odd",
    [
        {"title": "swarm_lock_file", "rawInput": {"path": "/x/a"}},
        {"title": "mcp__swarm__undo", "rawInput": {"files": ["/x/a"]}},
        {"kind": "search", "title": "Update of things", "rawInput": {"path": "/x/a"}},
        {"kind": "other", "title": "read_file", "rawInput": {"path": "/x/a"}},
        {"content": [{"type": "content", "content": {"type": "text", "text": "{no json"}}, {"content": 3}]},
        {}, {"kind": "read", "locations": [{"path": "/x/a"}]}, {"kind": "edit"}, {"kind": "execute"},
        {"kind": 3, "content": 4, "locations": "x", "rawInput": []}, {"kind": "edit", "content": [{"type": "diff"}]},
    ],
)  # fmt: skip
def test_a_call_that_names_no_write_is_none(tmp_path: Path, odd: dict) -> None:
    assert asked(tmp_path, **odd) is None


@pytest.mark.parametrize("params", [None, [], {}, {"path": 3}, {"command": None, "args": 4}])
def test_odd_requests_are_no_calls(params: object) -> None:
    for method in acp_guard.WATCHED:
        assert acp_guard.call_of({"method": method, "params": params}) is None
