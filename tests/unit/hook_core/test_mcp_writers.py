"""MCP tools that write: their effects, and the user's own entries in ``config.json``."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.files import files_at, folder_at, json_at
from support.sessions import RUNTIMES, captured, fault_lines, mistakes, peer_locks, ready_store, run

from swarm_hook_core import settings
from swarm_hook_core.mcp_writers import effects_of_tool, is_writer, matches, plain

NAMES = {"claude-code": "mcp__plugin_probe_probe__write_file", "codex": "mcp__probe__write_file"}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A work tree with a.txt, docs/b.md and sub/a.txt."""
    folder = tmp_path.resolve() / "top"
    files_at(folder, dict.fromkeys(("a.txt", "docs/b.md", "sub/a.txt", ".git/HEAD"), "x\n"))
    return folder


def written(tool: str, given: dict, folder: Path) -> list[str]:
    """The certain paths, relative to `folder` where they lie in it; trees end with a slash."""
    effects = effects_of_tool(tool, given, str(folder))
    assert effects is not None and is_writer(tool)
    paths = [os.path.join(write.folder, write.path) for write in effects.writes]
    paths += [tree.root + "/" for tree in effects.trees if tree.admits(tree.root)]
    return [path.removeprefix(f"{folder}/") for path in paths]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_call_as_the_clients_hand_it_over(runtime: str, top: Path):
    payload = captured(runtime, f"PreToolUse.{NAMES[runtime]}", top)
    assert written(payload["tool_name"], payload["tool_input"], top) == ["m.txt"]
    assert written(payload["tool_name"], json.dumps(payload["tool_input"]), top) == ["m.txt"], "as a text"


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        # reference filesystem server, and its kin
        ("fs__write_file", {"path": "a.txt", "content": "x"}, "a.txt replace"),
        ("fs__write_file", {"path": "/abs/../x y", "content": "x"}, "/x y replace"),
        ("fs__edit_file", {"path": "a.txt", "edits": [{"oldText": "x", "newText": "y"}]}, "a.txt edit"),
        ("fs__edit_file", {"path": "a.txt", "edits": [], "dryRun": True}, ""),
        ("fs__edit_file", {"path": "a.txt", "edits": [], "dryRun": False}, "a.txt edit"),
        ("fs__create_directory", {"path": "new"}, "new edit"),
        ("fs__create_directory", {"path": "docs"}, ""),
        ("fs__move_file", {"source": "a.txt", "destination": "z.txt"}, "z.txt replace, a.txt/ remove"),
        ("fs__move_file", {"source": "a.txt", "destination": "docs"}, "docs/a.txt replace, a.txt/ remove"),
        ("fs__move_file", {"source": "docs", "destination": "doc"}, "doc replace, docs/ remove, doc/ replace"),
        ("fs__copy_file", {"source": "a.txt", "destination": "z.txt"}, "z.txt replace"),
        ("fs__rename_file", {"path": "docs/b.md", "new_name": "c.md"}, "docs/c.md replace, docs/b.md/ remove"),
        ("fs__delete_file", {"path": "docs"}, "docs/ remove"),
        ("fs__write_file", {"path": "file:///x/a%20b%C3%A9"}, "/x/a bé replace"),
        ("fs__write_file", {"path": "~/q"}, "~/q replace"),
        ("fs__write_multiple_files", {"files": [{"path": "a.txt"}, {"path": "q"}, 7, {}]}, "a.txt replace, q replace"),
        ("fs__delete_files", {"paths": ["a.txt", "q"]}, "a.txt/ remove, q/ remove"),
        ("fs__zip_files", {"input_files": ["a.txt"], "target_zip_file": "z.zip"}, "z.zip replace"),
        ("x__filesystem_write_file", {"path": "a.txt"}, "a.txt replace"),
        ("x__create-or-update-file", {"path": "a.txt"}, "a.txt edit"),
        # editors
        ("ed__str_replace_editor", {"command": "create", "path": "a.txt", "file_text": ""}, "a.txt replace"),
        ("ed__str_replace_editor", {"command": "undo_edit", "path": "a.txt"}, "a.txt edit"),
        ("ed__str_replace_based_edit_tool", {"command": "view", "path": "a.txt"}, ""),
        ("ed__edit_text_file_contents", {"files": [{"file_path": "a.txt", "patches": []}]}, "a.txt edit"),
        ("cc__Edit", {"file_path": "/r/a", "old_string": "x"}, "/r/a edit"),
        ("cc__NotebookEdit", {"notebook_path": "n.ipynb", "new_source": ""}, "n.ipynb edit"),
        ("serena__replace_symbol_body", {"name_path": "f", "relative_path": "a.txt", "body": ""}, "a.txt edit"),
        (
            "serena__replace_content",
            {"relative_path": "a.txt", "needle": "x", "repl": "y", "mode": "regex"},
            "a.txt edit",
        ),
        ("serena__insert_at_line", {"relative_path": "docs/b.md", "line": 0, "content": ""}, "docs/b.md edit"),
        ("serena__rename_symbol", {"relative_path": "a.txt", "name_path": "f", "new_name": "g"}, "a.txt edit"),
        ("dc__edit_block", {"file_path": "a.txt", "old_string": "x", "new_string": "y"}, "a.txt edit"),
        ("dc__write_pdf", {"path": "a.pdf", "content": [], "outputPath": "b.pdf"}, "b.pdf replace"),
        ("jetbrains__create_new_file", {"pathInProject": "q", "text": "", "projectPath": "/p"}, "/p/q replace"),
        ("jetbrains__replaceTextInFile", {"pathInProject": "a.txt", "oldText": "x"}, "a.txt edit"),
        (
            "jetbrains__apply_patch",
            {"input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"},
            "a.txt remove",
        ),
        (
            "jetbrains__apply_patch",
            {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n--- x\n+y\n--- /dev/null\n+++ b/new\n"},
            "a.txt edit, new edit",
        ),
        # notebooks
        ("jupyter__insert_cell", {"notebook_path": "n.ipynb", "cell_index": 1}, "n.ipynb edit"),
        ("nb__execute_cell", {"path": "n.ipynb", "cell_id": "3"}, "n.ipynb edit"),
        # the same tools in other words
        ("fs__write_file", {"path": "a.txt", "content": "x", "mode": "append"}, "a.txt edit"),
        ("fs__write_file", {"path": "a.txt", "content": "x", "mode": "rewrite"}, "a.txt replace"),
        ("fs__append_file", {"path": "a.txt"}, "a.txt edit"),
        ("fs__str_replace_editor", {"command": "str_replace", "path": "a.txt"}, "a.txt edit"),
        ("fs__apply_patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n"}, "a.txt edit"),
        ("fs__run_command", {"command": "echo > a.txt; rm docs/b.md"}, "a.txt replace, docs/b.md remove"),
    ],
)
def test_what_a_tool_changes_replaces_or_removes(tool: str, given: dict, expected: str, top: Path):
    effects = effects_of_tool(f"mcp__{tool}", given, str(top))
    assert effects is not None and is_writer(f"mcp__{tool}")
    found = [f"{os.path.join(write.folder, write.path)} {write.how}" for write in effects.writes]
    found += [f"{tree.root}/ {tree.how}" for tree in effects.trees if tree.admits(tree.root)]
    assert ", ".join(found).replace(f"{top}/", "").replace(os.environ["HOME"], "~") == expected


def test_a_terminal_s_command_shows_what_it_prints(top: Path):
    effects = effects_of_tool("mcp__fs__run_command", {"command": "cat a.txt"}, str(top))
    assert effects is not None and [read.path for read in effects.reads] == ["a.txt"]


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("git_add", {"files": ["a.txt", "-x"]}, [["add", "--", "a.txt", "-x"]]),
        ("git_add", {}, [["add", "-A"]]),
        ("git_commit", {"message": "m"}, [["commit", "-m", "m"]]),
        ("git_commit", {"message": "m", "filesToStage": ["q"]}, [["add", "--", "q"], ["commit", "-m", "m"]]),
        ("git_checkout", {"branch_name": "topic"}, [["checkout", "topic"]]),
        ("git_checkout", {"target": "v", "paths": ["q"], "force": True}, [["checkout", "--force", "v", "--", "q"]]),
        ("git_checkout", {"branch": "new", "createBranch": True}, [["checkout", "-b", "new"]]),
        ("git_reset", {}, [["reset"]]),
        ("git_reset", {"mode": "hard", "target": "HEAD~1"}, [["reset", "--hard", "HEAD~1"]]),
        ("git_stash", {"mode": "list"}, []),
        ("git_stash", {"action": "pop", "stashRef": "stash@{0}"}, [["stash", "pop", "stash@{0}"]]),
        ("git_stash", {"mode": "drop", "stashRef": "stash@{1}"}, [["stash", "drop", "stash@{1}"]]),
        ("git_stash_clear", {}, [["stash", "clear"]]),
        ("git_stash_push", {"includeUntracked": True}, [["stash", "push", "-u"]]),
        ("git_clean", {"directories": True}, [["clean", "-f", "-d"]]),
        ("git_cherry_pick", {"commits": ["a", "b"]}, [["cherry-pick", "a", "b"]]),
        ("git_rebase", {"mode": "abort"}, [["rebase", "--abort"]]),
        ("git_merge", {"branch": "topic"}, [["merge", "topic"]]),
        ("git_pull", {"remote": "origin", "branch": "main"}, [["pull", "origin", "main"]]),
        ("git_restore", {"paths": ["a.txt"], "source": "HEAD~1"}, [["restore", "--source", "HEAD~1", "--", "a.txt"]]),
        ("git_command", {"args": ["git", "rm", "a.txt"]}, [["rm", "a.txt"]]),
    ],
)
def test_git_servers(tool: str, given: dict, expected: list[list[str]], top: Path):
    effects = effects_of_tool(f"mcp__git__{tool}", {"repo_path": "sub", **given}, str(top))
    assert effects is not None and [call.words for call in effects.git] == expected
    assert {call.folder for call in effects.git} <= {str(top / "sub")} and not effects.writes


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("fs__read_text_file", {"path": "a.txt"}),
        ("fs__list_directory", {"path": "docs"}),
        ("fs__preview_edit_file", {"path": "a.txt"}),
        ("git__git_status", {"repo_path": "."}),
        ("git__git_log", {"repo_path": "."}),
        ("github__create_or_update_file", {"owner": "o", "repo": "r", "path": "a.txt"}),
        ("gitlab__create_or_update_file", {"project_id": "7", "file_path": "a.txt"}),
        ("e2b__write_file", {"sandbox_id": "7", "path": "a.txt"}),
        ("ssh__execute_command", {"host": "far", "command": "rm a.txt"}),
        ("slack__edit", {"channel": "c", "text": "x"}),
        ("sheets__update_cell", {"spreadsheet": "s", "range": "A1"}),
        ("linear__delete", {"id": "x"}),
        ("swarm__lock_file", {"file": "a.txt"}),
        ("fs__write_file", "not an object"),
        ("fs__write_file", ["a.txt"]),
    ],
)
def test_what_is_none_of_ours(tool: str, given, top: Path):
    assert effects_of_tool(f"mcp__{tool}", given, str(top)) is None


def test_a_tool_of_the_client_that_nobody_has_named_counts_as_one_of_a_server(top: Path):
    assert written("write_file", {"path": "a.txt"}, top) == ["a.txt"]
    assert written("files-write_file", {"path": "a.txt"}, top) == ["a.txt"], "as a client names a server's tool"
    for tool in ("read_file", "files-read_file", "task", "TodoRead", "swarm-kv_append", "swarm_update_task"):
        assert not is_writer(tool) and effects_of_tool(tool, {"path": "a.txt"}, str(top)) is None


@pytest.mark.parametrize("tool", ["RewriteEverything", "doc_update", "mcp__ide__saveBuffer", "ide-apply_fix"])
def test_an_unknown_tool_that_sounds_like_writing_may_write_what_it_names(tool: str, top: Path):
    assert is_writer(tool)
    effects = effects_of_tool(tool, {"target_file": "a.txt"}, str(top))
    assert effects is not None and not effects.writes
    assert [(tree.root, tree.admits(tree.root)) for tree in effects.trees] == [(str(top / "a.txt"), None)]
    assert effects_of_tool(tool, {"title": "a.txt"}, str(top)) is None, "it names no file"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_call_of_an_unknown_tool_goes_ahead_and_is_told_of_the_lock_that_it_may_meet(runtime: str, top: Path):
    ready_store()
    peer_locks(top, top / "m.txt", note="mine")
    payload = captured(runtime, f"PreToolUse.{NAMES[runtime]}", top)
    asked = {**payload, "tool_name": "RewriteSymbol", "tool_input": {"path": str(top / "m.txt"), "name": "f"}}
    said = json.loads(run(runtime, "pre_tool_use", asked).out)["hookSpecificOutput"]
    assert "permissionDecision" not in said and mistakes() == []
    assert "RewriteSymbol" in said["additionalContext"] and "m.txt" in said["additionalContext"]
    assert "swarm lock blocked" in run(runtime, "pre_tool_use", asked, {"SWARM_STRICT": "1"}).reason
    elsewhere = {**asked, "tool_input": {"path": str(top / "a.txt"), "name": "f"}}
    assert run(runtime, "pre_tool_use", elsewhere).out == ""


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("jupyter__overwrite_cell_source", {"cell_index": 1, "cell_source": ""}),
        ("dc__interact_with_process", {"pid": 1, "input": "echo x > a.txt"}),
        ("fs__write_file", {"target": 7}),
        ("jetbrains__replace_current_file_text", {"text": ""}),
        ("jetbrains__apply_patch", {"input": "what?"}),
        ("serena__rename_symbol", {"relative_path": "a.txt", "name_path": "f", "new_name": "g"}),
    ],
)
def test_what_is_only_possible(tool: str, given: dict, top: Path):
    effects = effects_of_tool(f"mcp__{tool}", given, str(top))
    assert effects is not None and [guess.why for guess in effects.guesses]


def test_relative_paths_count_from_the_folder_and_from_the_git_root(top: Path):
    sub, call = top / "sub", "mcp__fs__write_file"
    assert written(call, {"path": "docs/b.md"}, sub) == [str(top / "docs/b.md")], "where it is"
    assert written(call, {"path": "a.txt"}, sub) == ["a.txt", str(top / "a.txt")], "either may be meant"
    assert written(call, {"path": "new"}, sub) == ["new", str(top / "new")]
    assert written(call, {"path": str(top / "new")}, sub) == [str(top / "new")]


@pytest.mark.parametrize(
    "tool, given, expected",
    [
        ("mcp__ide__executeCode", {"code": "!git checkout -- ."}, ["git checkout -- ."]),
        ("mcp__jupyter__insert_execute_code_cell", {"cell_index": 0, "cell_source": "!git stash"}, ["git stash"]),
        ("mcp__jupyter__execute_ipython", {"code": "x = 1\nlines = !git clean -f"}, ["git clean -f"]),
        ("mcp__jupyter__execute_code", {"code": "%%bash\ncd sub\ngit stash"}, ["git stash"]),
        ("mcp__x__code_mode", {"code": "await tools.bash({ command: 'git stash' })"}, ["git stash"]),
        ("mcp__x__execute", {"code": 'a(); b({"cmd": "git reset --hard"})'}, ["git reset --hard"]),
        ("mcp__jupyter__insert_cell", {"cell_index": 0, "cell_source": "!git stash"}, []),
        ("mcp__ide__executeCode", {"code": "print('!git stash')"}, []),
    ],
)
def test_shell_commands_in_code(tool: str, given: dict, expected: list[str], top: Path):
    effects = effects_of_tool(tool, given, str(top))
    assert [" ".join(["git", *one.words]) for one in (effects.git if effects else ())] == expected


def test_shell_servers(top: Path):
    for tool, arguments in [
        ("mcp__dc__start_process", {"command": "echo x > a.txt", "timeout_ms": 1}),
        ("mcp__sh__execute_command", {"command": "tee", "args": ["a.txt"], "cwd": str(top)}),
        ("mcp__sh__shell_execute", {"command": ["rm", "a.txt"], "directory": "."}),
        ("mcp__jetbrains__execute_terminal_command", {"command": "touch a.txt", "projectPath": str(top)}),
        ("mcp__cc__Bash", {"command": "cp docs/b.md a.txt"}),
        ("mcp__x__cli_exec", {"workingDirectory": str(top), "commands": ["ls -l", "touch a.txt"]}),
    ]:
        assert written(tool, arguments, top)[:1] in (["a.txt"], ["a.txt/"]), tool
    effects = effects_of_tool("mcp__sh__execute_command", {"command": "cat a.txt"}, str(top))
    assert effects is not None and not (effects.writes or effects.trees or effects.guesses)
    code = {"code": f"open({str(top / 'a.txt')!r}, 'w'); open('b', 'w')"}
    assert written("mcp__py__run_python_code", code, top) == ["a.txt"], "where a kernel stands nobody knows"
    own = {"code": "open('a.txt', 'w').write('x')"}
    assert written("execute_code", own, top) == ["a.txt"], "a client's own tool runs it as it does commands"
    effects = effects_of_tool("execute_code", {"code": "print(1)"}, str(top))
    assert effects is not None and not (effects.writes or effects.trees or effects.guesses)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write ``config.json``."""
    folder = folder_at(tmp_path / "config")
    monkeypatch.setenv("SWARM_CONFIG_DIR", str(folder))

    def write(value) -> Path:
        path = json_at(folder / "config.json", value)
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + write.count))  # type: ignore[attr-defined]
        write.count += 1  # type: ignore[attr-defined]
        return path

    write.count = 1  # type: ignore[attr-defined]
    return write


def test_a_person_adds_tools(config, top: Path):
    pages = {"tool": "mcp__wiki__*", "paths": ["target", "pages[].path", "a.b"], "unless": {"dryRun": True}}
    config({"writers": [pages, {"tool": "mcp__fs__write_file", "paths": []}, {"tool": "own_*", "paths": ["f"]}]})
    call = "mcp__wiki__publish"
    page = {"target": "q", "pages": [{"path": "a.txt"}, {"no": 1}], "a": {"b": "c"}}
    assert written(call, page, top) == ["q", "a.txt", "c"]
    assert written(call, {"target": "q", "dryRun": True}, top) == []
    assert written("mcp__fs__write_file", {"path": "a.txt"}, top) == [], "and says that one does not write"
    assert written("own_tool", {"f": "a.txt"}, top) == ["a.txt"]
    assert not is_writer("mcp__other__publish")
    config({})
    assert not is_writer(call) and is_writer("mcp__fs__write_file")


def test_a_person_s_shell_tool(config, top: Path):
    config({"writers": [{"tool": "mcp__box__go", "command": "line", "folder": "where"}]})
    assert written("mcp__box__go", {"line": "touch a.txt", "where": "sub"}, top) == ["sub/a.txt"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nonsense", "not JSON"), ("{", "not JSON"), ("[]", "not an object"), ("{}x", "after the JSON"),
        ('{"strct": true}', "'strct' is no setting"), ('{"strict": "yes"}', "strict is neither"),
        ('{"writers": {}}', "writers is no list"), ('{"writers": [7]}', "writer 1: not an object"),
        ('{"writers": [{"paths": ["p"]}]}', "tool is missing"),
        ('{"writers": [{"tool": "t"}]}', "neither paths nor command"),
        ('{"writers": [{"tool": "t", "paths": "p"}]}', "no list"),
        ('{"writers": [{"tool": "t", "path": ["p"]}]}', "'path' is not known"),
        ('{"writers": [{"tool": "t", "paths": [], "unless": []}]}', "unless is no object"), ("[" * 100_000, ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_recorded_once_and_left_out(config, text: str, fault: str):
    config(text)
    for _ in range(3):
        settings._last = (None, None)  # as in a new process
        assert not is_writer("mcp__wiki__publish") and not settings.strict("CC")
    (line,) = fault_lines()
    assert fault in line["fault"] and "config.json" in line["fault"] and line["hook"] == "config"
    config(text + " ")
    assert not is_writer("x") and len(fault_lines()) == 2, "edited and still wrong is news"


def test_the_good_part_of_a_file_counts(config):
    config({"strict": True, "writers": [{"tool": "t"}, {"tool": "own", "paths": ["p"]}]})
    assert settings.strict("CC") and is_writer("own") and len(fault_lines()) == 1


def test_strict_is_overridden_by_the_environment(config, monkeypatch: pytest.MonkeyPatch):
    assert not settings.strict("CC")
    config({"strict": True})
    assert settings.strict("CC")
    monkeypatch.setenv("SWARM_STRICT", "0")
    assert not settings.strict("CC")
    monkeypatch.setenv("SWARM_CC_STRICT", "on")
    assert settings.strict("CC") and not settings.strict("CODEX")


def test_the_doctor_shows_the_file_and_what_is_wrong_with_it(config):
    from swarm_mcp.doctor import own_checks

    def finding():
        return next(one for one in own_checks.findings("") if one.name == "settings")

    assert finding().status == "ok" and "none" in finding().message
    path = config({"strict": True, "writers": [{"tool": "own", "paths": ["p"]}]})
    assert finding().status == "ok" and f"{path}: strict, 1 writers" in finding().message
    config({"strict": 1})
    assert finding().status == "warn" and "neither true nor false" in finding().message and str(path) in finding().mend


@given(st.text("ab*?", max_size=7), st.text("ab", max_size=7))
def test_patterns_match_as_fnmatch_has_it(pattern: str, name: str):
    import fnmatch

    assert matches(pattern, name) is fnmatch.fnmatchcase(name, pattern)


def test_hostile_patterns_end_soon():
    assert not matches("*a" * 200, "a" * 4000 + "b")


def test_names_are_compared_word_by_word():
    for name in ("createNewFile", "create-new-file", "create_new_file", "CreateNewFile"):
        assert plain(name) == "create_new_file"


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6), st.just("a\0b"), st.just("file://x%zz")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "file", "b"]), inner),
    max_leaves=6,
)
KEYS = ["path", "files", "edits", "source", "destination", "repo_path", "input", "mode", "message", "notebook_path"]


@given(st.sampled_from(["write_file", "move_file", "git_add", "git_commit", "apply_patch", "insert_cell", "text_editor",
                        "delete_file", "rename_symbol", "create_directory", "unzip", "git_command"]),
       st.dictionaries(st.sampled_from(KEYS), VALUES))  # fmt: skip
def test_no_input_is_too_odd(tool: str, given: dict):
    effects = effects_of_tool(f"mcp__x__{tool}", given, "/nowhere")
    for write in effects.writes if effects else ():
        assert os.path.isabs(write.path) and "\0" not in write.path
