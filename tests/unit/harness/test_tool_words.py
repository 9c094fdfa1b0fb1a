"""Tool calls in words: shells taken off, edits as patches, paths below the folder, under any harness's tool names."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_mcp.agents.harness.tool_words import Call, Folder, bare, call_in_words

pytestmark = pytest.mark.slow

SHOP = Folder("/src/shop")
PATCH = "*** Begin Patch\n*** Update File: /src/shop/a.py\n@@\n-one\n+two\n*** Add File: b.py\n+new\n*** End Patch\n"
LINES = ("*** Update File: a.py", "@@", "-one", "+two", "*** Add File: b.py", "+new")


@pytest.mark.parametrize(("command", "shown"), [
    ("/bin/bash -lc 'ls -la; cat x'", "ls -la; cat x"), ('bash -c "git commit -m \'x y\'"', "git commit -m 'x y'"),
    (["zsh", "-lc", "make check"], "make check"), (["git", "log", "a b"], "git log 'a b'"),
    ("bash script.sh -c x", "bash script.sh -c x"), ("make check", "make check"), ("echo 'open", "echo 'open"),
    ("bash -lc 'make' && rm x", "bash -lc 'make' && rm x"),
])  # fmt: skip
def test_the_shell_around_a_command_is_taken_off(command, shown: str) -> None:
    assert bare(command) == shown


@pytest.mark.parametrize(("name", "given", "call"), [
    ("Bash", {"command": "cd /src/shop && ls /src/shop/lib", "description": "x", "timeout": 9}, Call("$ ls lib")),
    ("exec", {"cmd": ["bash", "-lc", "cat <<X\na\nX"]}, Call("$ cat <<X", ("a", "X"))),
    ("Bash", {"command": "cd '/src/shop/'; make"}, Call("$ make")),
    ("Bash", {"command": "cd /src/shop2 && ls /other/src/shop/x"}, Call("$ cd /src/shop2 && ls /other/src/shop/x")),
    ("Edit", {"file_path": "/src/shop/a", "old_string": "x\n", "new_string": "y\nz"}, Call("Edit a", (), ("-x", "+y", "+z"), True)),
    ("edit", {"path": "a", "edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": ""}]},
     Call("edit a", (), ("-1", "+2", "-3"), True)),
    ("str_replace_based_edit_tool", {"command": "create", "path": "a", "file_text": "1\n\n2\n"},
     Call("str_replace_based_edit_tool a", (), ("+1", "+", "+2"), True)),
    ("write_file", {"filePath": "/src/shop/a", "content": "1"}, Call("write_file a", (), ("+1",), True)),
    ("apply_patch", {"patchText": PATCH}, Call("apply_patch a.py, b.py", (), LINES, True)),
    ("apply_patch", PATCH, Call("apply_patch a.py, b.py", (), LINES, True)),
    ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, Call("Bash a.py, b.py", (), (*LINES, "EOF"), True)),
    ("apply_patch", {"changes": [{"path": "/src/shop/a", "kind": "update"}, {"path": "b"}, 3]},
     Call("apply_patch update a, change b", is_edit=True)),
    ("Read", {"file_path": "/src/shop/a", "limit": 3}, Call("Read a limit=3")),
    ("mcp__x__y", {"n": 1, "text": "see /src/shop/a"}, Call("mcp__x__y n=1 text=see a")),
    ("list", None, Call("list")), ("odd", [1, "x"], Call('odd [1, "x"]')),
])  # fmt: skip
def test_what_a_call_does(name: str, given: object, call: Call) -> None:
    assert call_in_words(name, given, SHOP) == call


def test_the_folder_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = Folder(str(tmp_path / "link"))
    assert folder.short(f"{tmp_path}/link/a {tmp_path.resolve()}/real/b") == "a b"
    assert Folder("").short(f"{os.sep}a/b") == "/a/b"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["command", "path", "content", "edits", "changes"]) | st.text(), inner),
)  # fmt: skip


@pytest.mark.slow
@given(name=st.text(), given=JSON)
def test_nothing_that_a_model_sends_is_too_odd(name: str, given: object) -> None:
    words, more, patch, _ = call_in_words(name, given, SHOP)
    json.dumps([words, more, patch])
