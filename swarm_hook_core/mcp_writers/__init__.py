"""The effects of tools of MCP servers and clients, derived from their names and arguments.

    name ── kind_of ── tool_effects.ToolEffects ──▶ Effects (see ``swarm_hook_core.shell.model``)

``opaque_calls`` and ``check`` call this for each MCP call. `_KINDS` has the tools of common servers; users add to it in
``config.json`` (``swarm_hook_core.settings``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from swarm_hook_core import EDIT, REMOVE
from swarm_hook_core.json_text import loads_outer
from swarm_hook_core.patch import patch_changes
from swarm_hook_core.settings import Writer, current
from swarm_hook_core.shell.model import Effects


def is_writer(tool: str, tool_input: object = None, depth: int = 0) -> bool:
    """Return True if `effects_of_tool` may know effects of a tool with this name or input. Asks no store."""
    if kind_of(tool) or _chosen(tool) is not None:
        return True
    if not tool_input or is_own(tool):
        return False
    given = parsed(tool_input)
    if given is None:
        return False
    names = [*OUTPUTS, *OUTPUT_FOLDERS]
    if not reads(tool):
        names += FILE_NAMES
    return any(name in given for name in names) or any(
        is_writer(name, inner, depth + 1) for name, inner in _inner(given, depth)
    )


def effects_of_tool(tool: str, tool_input: object, folder: str, depth: int = 0) -> Effects | None:
    """Return the Effects of a call of `tool` in absolute `folder`, or None for a tool that is not known to write.

    A relative path counts from `folder` or from the git root over it, if only one of them has the file, else from both:
    servers start in either.
    """
    given = parsed(tool_input)
    chosen = _chosen(tool)
    kind = "" if chosen else kind_of(tool)
    if given is None or not (chosen or is_writer(tool, given)):
        return None
    from swarm_hook_core.mcp_writers.tool_effects import ToolEffects

    found = ToolEffects(Effects(), tool, given, folder)
    if chosen is not None:
        return found.as_chosen(chosen)
    nested = [effects_of_tool(name, inner, folder, depth + 1) for name, inner in _inner(given, depth)]
    known = [effects for effects in nested if effects is not None]
    for effects in known:
        found.take(effects)
    if known:
        return found.effects
    if kind != "git" and any(given.get(name) for name in REMOTE):
        return None
    if kind not in ("git", "shell", "code") and any(given.get(name) is True for name in DRY):
        return found.effects
    method: Callable[[], Effects | None] = getattr(found, f"as_{kind or 'named_output'}")
    return method()


def _inner(given: dict[str, Any], depth: int) -> list[tuple[str, dict[str, Any]]]:
    """Return ``[(tool, input)]`` of the calls within a call, with names like those of another server's tools."""
    from swarm_hook_core.mcp_writers.tool_effects import DEEPEST, calls_in

    if depth >= DEEPEST:
        return []
    found = calls_in(given)
    return [(name if name.startswith("mcp__") else f"mcp__inner__{name}", inner) for name, inner in found]


def _chosen(tool: str) -> Writer | None:
    """Return the first entry of the user's own table for `tool`, or None."""
    return next((writer for writer in current().writers if matches(writer.tool, tool)), None)


# The arguments with paths and commands.

MOST_PATHS = 1000  # of one call

# Arguments with paths, for tools without a more precise entry.
PATHS = (
    "path", "file_path", "filePath", "filepath", "file", "filename", "file_name", "fileName", "relative_path",
    "relativePath", "pathInProject", "path_in_project", "notebook_path", "notebookPath", "target_file", "targetFile",
    "target_filepath", "TargetFile", "AbsolutePath", "target_notebook", "absolute_path", "absolutePath", "uri",
    "fileUri", "file_uri", "paths[]", "file_paths[]", "filePaths[]",
    "files[]", "files[].path", "files[].file_path", "files[].filePath", "files[].file",
    "edits[].path",
    "edits[].file", "edits[].file_path", "edits[].filePath", "operations[].path", "operations[].file_path",
    "changes[].path", "changes[].file", "replacements[].filePath", "replacements[].file_path", "replacements[].path",
    "args[].path", "args.file[].path", "args.file.path", "dirPath", "directoryPath", "target_relative_path",
)  # fmt: skip
SOURCES = ("source", "source_path", "sourcePath", "src", "from", "from_path", "old_path", "oldPath",
           "sources[]", "path")  # fmt: skip
TARGETS = ("destination", "destination_path", "destinationPath", "dest", "dst", "to", "to_path", "new_path", "newPath",
            "target", "target_path", "targetPath", "new_name", "newName")  # fmt: skip
NAMES = ("new_name", "newName")
# Arguments with created files, for any tool; folders may get files of any name.
OUTPUTS = (
    "outputPath", "output_path", "outputFilePath", "output_file_path", "output", "output_file", "outputFile",
    "output_filename", "outputFilename", "out_path", "outPath", "out_file", "outFile", "outfile", "target_zip_file",
    "responseFilePath", "requestFilePath", "savePath", "save_path", "saveTo", "save_to", "saveAs", "save_as",
    "downloadPath", "download_path", "exportPath", "export_path", "destFile", "dest_file", "destPath", "dest_path",
    "dest",
)  # fmt: skip
ARCHIVES = ("zip_path", "zipPath")  # of tools that create one
OUTPUT_FOLDERS = (
    "outputDir", "output_dir", "outputDirectory", "output_directory", "outputFolder", "output_folder", "outDir",
    "out_dir", "saveDir", "save_dir", "downloadDir", "download_dir", "exportDir", "export_dir", "localPath",
    "dirForAssetWrites",
)  # fmt: skip
FILE_NAMES = ("filename", "fileName", "file_name")  # created files, or files to read
CODES = ("code", "cell_source", "cellSource", "source", "new_source", "cell_content", "script", "python_code")
CELLS = ("cell_index", "cellIndex", "cell_id", "cellId", "cell_type", "cellType", "cell_source", "notebook_name")
COMMANDS = ("command", "cmd", "commands", "script", "CommandLine", "command_line", "argv")
ROOTS = ("projectPath", "project_path", "project_root", "projectRoot")
FOLDERS = ("cwd", "workdir", "working_directory", "workingDirectory", "workingDir", "working_dir", "directory", "Cwd",
           "cd", *ROOTS)  # fmt: skip
DRY = ("dryRun", "dry_run", "preview", "previewOnly", "preview_only")
WHOLES = ("create", "write")  # editor commands that replace a file's whole content
LOOKS = ("view", "read", "list", "find", "search", "open", "show", "undo_list")  # editor commands that only read


def parsed(tool_input: object) -> dict[str, Any] | None:
    """Return the input as a dict, or None. Some transports give it as JSON text."""
    if isinstance(tool_input, str):
        try:
            tool_input = loads_outer(tool_input)
        except ValueError:
            return None  # not JSON
    if isinstance(tool_input, dict):
        return tool_input
    return None


def first(given: dict[str, Any], selectors: Iterable[str]) -> str:
    """Return the first text at `selectors`, or ""."""
    return next(iter(values(given, selectors)), "")


def values(given: dict[str, Any], selectors: Iterable[str]) -> list[str]:
    """Return the texts at `selectors` (``a``, ``a.b``, ``a[]``, ``a[].b``), without repeats."""
    found: dict[str, None] = {}
    for selector in selectors:
        reached: list[Any] = [given]
        for name in selector.split("."):
            many = name.endswith("[]")
            reached = [one.get(name.removesuffix("[]")) for one in reached if isinstance(one, dict)]
            if many:
                reached = [item for one in reached if isinstance(one, list) for item in one[:MOST_PATHS]]
        for one in reached:
            for text in one[:MOST_PATHS] if isinstance(one, list) else (one,):
                if isinstance(text, str) and text.strip() and len(found) < MOST_PATHS:
                    found.setdefault(text)
    return list(found)


def local(path: str) -> str:
    """Return `path` without ``file://`` and ``~``, or "" for an address of another kind."""
    path = path.strip()
    if path[:7].lower() == "file://":
        _host, slash, rest = path[7:].partition("/")
        path = _decoded(slash + rest)
    elif "://" in path:
        return ""
    if path.startswith("~"):
        return os.path.expanduser(path)
    return path


def _decoded(text: str) -> str:
    """Return percent-encoded UTF-8 as text."""
    if "%" not in text:
        return text
    raw, rest = b"", text
    while rest:
        before, percent, rest = rest.partition("%")
        raw += before.encode("utf-8", "surrogatepass")
        if percent:
            try:
                raw += bytes((int(rest[:2], 16),))
                rest = rest[2:]
            except ValueError:
                raw += b"%"
    return raw.decode("utf-8", "surrogateescape")


def shell_text(command: object, args: object = ()) -> str:
    """Return a command as shell text. It is given as a text, a list of words, or a list of several commands."""
    words = []
    if isinstance(args, list) and all(isinstance(one, str) for one in args):
        words = args
    if isinstance(command, list):
        texts = [one for one in command if isinstance(one, str)]
        if len(texts) > 1 and all(" " in one for one in texts):
            return "\n".join(texts)
        if len(texts) != 1:
            return " ".join(map(quoted, texts + words))
        return texts[0]
    if not isinstance(command, str):
        return ""
    return " ".join([command, *map(quoted, words)])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def patched(text: str) -> list[tuple[str, str]]:
    """Return ``[(path, how)]`` of a patch, Codex's envelope or a unified diff; `how`: `EDIT`, ...."""
    if "*** Begin Patch" in text:
        try:
            return patch_changes(text)
        except ValueError:
            return []  # not a patch that can be parsed
    found: dict[str, str] = {}
    before = ""
    for line in text.splitlines():
        if line.startswith("+++ ") and before.startswith("--- "):
            for name in (before, line):
                path = name[4:].partition("\t")[0].strip().strip('"')
                if path.startswith(("a/", "b/")):
                    path = path[2:]
                if path and path != "/dev/null":
                    found.setdefault(path, EDIT)
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            how = EDIT
            if line.startswith("rename from "):
                how = REMOVE
            found.setdefault(line.partition(" ")[2].partition(" ")[2].strip(), how)
        before = line
    return list(found.items())


# Tools that write files, by the names that common MCP servers, clients and editors give them.
#
# Collected in 2026 from their declarations: the reference filesystem and git servers and their Go, Rust and Python kin,
# Desktop Commander, Serena, the JetBrains IDEs, Xcode, text-editor and notebook servers, ``claude mcp serve``, git and
# terminal servers, browsers (Playwright, Chrome's DevTools); VS Code, Cline and Roo, Cursor, Windsurf, Zed, Kiro,
# Augment, Continue, Void, Refact. The server's name is the user's choice, so only the tool's name counts.

# Kind -> tools, as `plain` spells them. ``ToolEffects.as_<kind>`` has the effects of a kind: `whole` replaces a file's
# content, `file` changes a part of it.
_KINDS = {
    "whole": "write_file write_files write_text_file write_multiple_files write create_file create_files"
    " create_text_file create_new_file create_new_file_with_text overwrite_file save_file put_file truncate_file"
    " replace_file_text_by_path file_write file_create write_to_file write_text write_content write_new_file"
    " xcode_write"
    " save_to_file set_file_content set_file_contents set_file_text write_file_content write_file_contents rewrite_file"
    " create_textdoc hashline_write create_file_or_folder",
    "file": "edit_file edit_files edit_text_file edit multi_edit edit_block edit_lines touch_file update_file"
    " append_file append_to_file append_text_file_contents modify_file patch_text_file_contents"
    " edit_text_file_contents delete_text_file_contents insert_text_file_contents replace_content replace_regex"
    " replace_lines replace_in_file replace_text_in_file replace_specific_text search_and_replace search_replace"
    " find_and_replace str_replace delete_lines insert_lines insert_line insert_at_line insert_into_file insert_content"
    " replace_symbol_body insert_after_symbol insert_before_symbol reformat_file format_file fast_apply file_edit"
    " file_append replace_string_in_file multi_replace_string_in_file replace_string multi_replace_string"
    " insert_edit_into_file insert_edit replace_file_content multi_replace_file_content edit_existing_file edit_code"
    " single_find_and_replace xcode_update hashline_edit hashline_replace hashline_insert hashline_delete"
    " hashline_patch"
    " hashline_apply edit_hashline apply_hashline_edits apply_hashline_edit hash_edit edit_by_hash line_edit edit_line"
    " replace_line delete_line update_textdoc update_textdoc_by_lines update_textdoc_regex undo_textdoc undo_edit"
    " edit_file_fast_apply fs_append format_document organize_imports restore_file_from_disk",
    "tree": "replace_in_files replace_in_project search_and_replace_in_files find_and_replace_in_files",
    "output": "write_pdf write_docx zip_files zip_directory create_zip create_archive browser_take_screenshot"
    " browser_pdf_save browser_snapshot browser_console_messages browser_network_request browser_network_requests"
    " browser_evaluate browser_find browser_storage_state browser_start_video browser_stop_video take_screenshot"
    " take_snapshot take_heapsnapshot take_memory_snapshot performance_start_trace performance_stop_trace"
    " screencast_start",
    "remove": "delete_file delete_files remove_file remove_files delete_directory remove_directory delete_path delete"
    " remove file_delete xcode_rm rm unlink delete_file_or_folder remove_path delete_folder remove_folder trash_file",
    "move": "move_file move_files move_path move_directory rename_file rename_path move file_move xcode_mv mv"
    " move_folder rename_folder",
    "copy": "copy_file copy_files copy_path copy_directory copy file_copy",
    "folder": "create_directory create_folder make_directory mkdir xcode_make_dir make_dir",
    "unpack": "unzip_file extract_zip extract_archive unzip",
    "editor": "str_replace_editor text_editor str_replace_based_edit_tool edit_tool file_editor fs_write",
    "notebook": "notebook_edit edit_notebook edit_cell insert_cell execute_cell delete_cell move_cell add_cell"
    " update_cell append_cell edit_cell_source overwrite_cell_source append_markdown_cell insert_markdown_cell"
    " insert_execute_code_cell append_execute_code_cell execute_cell_simple_timeout execute_cell_streaming"
    " execute_cell_with_progress convert_cell_type bulk_edit_cells clear_cell_outputs run_notebook_cell"
    " execute_notebook run_notebook save_notebook create_notebook edit_notebook_cell add_notebook_cell"
    " insert_notebook_cell delete_notebook_cell edit_notebook_file",
    "symbol": "rename_symbol rename_refactoring rename_element safe_delete_symbol safe_delete move_symbol"
    " inline_symbol jet_brains_rename jet_brains_move apply_code_action execute_code_action apply_workspace_edit",
    "worktree": "exit_worktree",
    "memory": "write_memory edit_memory delete_memory rename_memory",
    "unnamed": "replace_current_file_text replace_selected_text interact_with_process send_input send_to_terminal"
    " write_to_terminal write_bash write_powershell",
    "foreign": "powershell run_powershell execute_powershell execute_pwsh run_pwsh pwsh run_powershell_command"
    " execute_powershell_command",
    "patch": "apply_patch apply_diff apply_unified_diff",
    "shell": "bash shell run_command run_commands execute_command exec_command start_process run_process"
    " execute_shell_command run_shell_command shell_command shell_exec shell_execute execute_terminal_command"
    " run_terminal_command run_terminal_cmd run_in_terminal terminal terminal_execute cli_exec cli_exec_raw exec"
    " execute execute_bash run_bash run_bash_command bash_run launch_process exec_shell run_shell",
    "code": "execute_code execute_python run_python run_python_code python_repl execute_ipython execute_python_code"
    " serena_repl run_code execute_javascript run_javascript execute_js run_js execute_typescript code_mode codemode",
}
# They only read, though they sound like writing.
_READERS = frozenset("browser_set_storage_state upload_file browser_file_upload set_config_value".split())
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}

# Words in unknown names that suggest writing.
_WRITING = frozenset(
    "write edit rewrite overwrite create update append modify save put patch delete remove insert replace truncate"
    " format apply move rename copy mkdir touch generate scaffold refactor add set fill merge split resize crop"
    " compress rotate export download".split()
)
# Words before a known name that make it read only: preview_edit_file.
_ONLY_LOOKS = frozenset(
    "preview dry check validate get list read can show explain simulate plan search find diff".split()
)
# Words in the names of tools that read the files in their arguments.
READS = _ONLY_LOOKS | frozenset(
    "load open view analyze analyse compare close query upload import parse lint inspect summarize describe count grep"
    " lookup fetch run set restore reveal".split()
)

# Arguments of calls whose files are not on this machine: a forge's repository, a bucket, a sandbox.
REMOTE = (
    "owner", "repo", "project_id", "projectId", "repository_id", "repositoryId", "bucket", "sandbox_id", "sandboxId",
    "container_id", "containerId", "container", "host", "hostname", "connectionName", "drive_id", "driveId", "vm_id",
)  # fmt: skip


def kind_of(tool: str) -> str:
    """Return the kind of a client's tool or of ``mcp__<server>__<tool>``, or "" if it is not known to write.

    It is a key of ``_KINDS``, or ``git``, or ``unknown`` for an unknown tool with a name that suggests writing.
    """
    server, _, name = tool[5:].partition("__") if tool.startswith("mcp__") else ("", "", tool)
    name = plain(name or server)
    if "swarm" in (plain(server) or name).split("_"):
        return ""  # our own server's tools write no files
    if name.startswith("git_"):
        if name[4:] in _VERBS:
            return "git"
        return ""
    if name in _READERS:
        return ""
    kind = _KIND_OF.get(name)
    if kind is not None:
        return kind
    # Some servers put their own name before each tool's: filesystem_write_file.
    words = name.split("_")
    for start in range(1, min(len(words) - 1, 6)):
        kind = _KIND_OF.get("_".join(words[start:]))
        if kind is not None:
            if _ONLY_LOOKS.intersection(words[:start]):
                return ""
            return kind
    if _WRITING.intersection(words) and not _ONLY_LOOKS.intersection(words):
        return "unknown"
    return ""


def reads(tool: str) -> bool:
    """Return True if the tool's name suggests reading."""
    return bool(READS.intersection(plain(tool.rpartition("__")[2] or tool).split("_")))


def is_own(tool: str) -> bool:
    """Return True for a tool of our own server; they write no files."""
    if tool.startswith("mcp__"):
        server = tool[5:].partition("__")[0]
    else:
        server = tool
    return "swarm" in plain(server).split("_")


def plain(name: str) -> str:
    """Return a tool's name in lower case with ``_`` between words, from ``createNewFile`` or ``create-new-file``."""
    found = ""
    before = ""
    for letter in name:
        if letter.isupper():
            if before and (before.islower() or before.isdigit()):
                found += "_"
            found += letter.lower()
        else:
            found += letter if letter.isalnum() else "_"
        before = letter
    return found


def matches(pattern: str, name: str) -> bool:
    """Return True if all of `name` matches a pattern of ``*`` (any text) and ``?`` (one character)."""
    at = place = 0
    star, mark = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, mark = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return not pattern[at:].strip("*")


# Tools of git servers, as the git commands that they run.
#
# ``git_add {repo_path, files}`` of the reference server, ``git_checkout {path, target}`` and others.

GIT_FOLDERS = ("repo_path", "repoPath", "path", "directory", "repository", "repo_dir", "cwd",
           "working_directory", "workingDir")  # fmt: skip
_FILES = ("files", "paths", "file_paths", "filePaths", "file", "pathspec")
_TARGETS = (
    "target", "branch_name", "branchName", "branchOrPath", "branch", "ref", "commits", "commit", "commitRef",
    "commitHash", "revision", "upstream", "source_branch", "stashRef",
)  # fmt: skip
_TREES = ("worktreePath", "worktree_path", "worktree", "target_path", "targetPath")
_MODES = ("mode", "action", "operation", "subcommand")
_CREATES = ("create", "createBranch", "create_branch", "newBranch")
_FORCES = ("force", "discard_changes", "discardChanges")

# A tool's name behind ``git_`` -> the git command. Tools that only read, or only add a name, are left out.
_VERBS = {
    "add": "add", "add_all": "add", "stage": "add", "unstage": "reset", "commit": "commit", "commit_signed": "commit",
    "amend": "commit", "add_or_commit": "commit", "checkout": "checkout", "switch": "switch", "reset": "reset",
    "restore": "restore", "stash": "stash", "stash_push": "stash", "stash_save": "stash", "stash_pop": "stash",
    "stash_apply": "stash", "stash_drop": "stash", "stash_clear": "stash", "clean": "clean", "merge": "merge",
    "rebase": "rebase", "cherry_pick": "cherry-pick",
    "revert": "revert", "pull": "pull", "push": "push", "rm": "rm", "remove": "rm", "mv": "mv", "move": "mv",
    "worktree": "worktree", "worktree_remove": "worktree", "worktree_move": "worktree", "worktree_prune": "worktree",
    "apply": "apply", "am": "am", "command": "", "run": "", "execute": "",
}  # fmt: skip


def git_commands(name: str, given: dict[str, Any]) -> list[list[str]]:
    """Return the words after ``git`` for each command that the tool ``git_<name>`` runs, mostly one."""
    verb = _VERBS[name]
    if not verb:
        words = _list_at(given, ("args", "arguments", "command"))
        if len(words) == 1 and " " in words[0]:
            try:
                words = shlex.split(words[0])
            except ValueError:
                words = words[0].split()
        if words[:1] == ["git"]:
            words = words[1:]
        if words:
            return [words]
        return []
    files, target = _list_at(given, _FILES), _list_at(given, _TARGETS)
    mode = (_list_at(given, _MODES) or [""])[0].lower().removeprefix("--")
    if verb == "add" or (name == "add_or_commit" and mode == "add"):
        return [["add", *(_operands(files) or ["-A"])]]
    if verb == "commit":
        return _commit(name, given, files)
    if verb == "worktree":
        return _worktree(name[len("worktree_") :] or mode, given)
    if verb == "stash":
        return _stash(name[len("stash_") :] or mode or "push", target, given)
    if verb in ("merge", "rebase", "cherry-pick", "revert") and mode in ("abort", "continue", "skip", "quit"):
        return [[verb, f"--{mode}"]]
    words = [verb]
    if verb == "reset" and mode in ("hard", "mixed", "soft", "merge", "keep"):
        words.append(f"--{mode}")
    elif verb == "clean":
        words += ["-f"] + [flag for flag, names in _CLEANS if is_on(given, names)]
        if is_on(given, ("dryRun", "dry_run")):
            words.append("-n")
    elif verb in ("checkout", "switch") and is_on(given, _CREATES):
        words.append("-b" if verb == "checkout" else "-c")
    elif verb == "restore" and is_on(given, ("staged",)):
        words.append("--staged")
    elif verb == "rm" and is_on(given, ("cached",)):
        words.append("--cached")
    elif verb in ("pull", "push"):
        return [[verb, *_list_at(given, ("remote",)), *_list_at(given, ("branch",))]]
    elif verb == "mv":
        return [["mv", *_list_at(given, ("source", "from")), *_list_at(given, ("destination", "to"))]]
    elif verb == "apply":
        return [["apply", *_list_at(given, ("patch_file", "patchFile", "patch_path"))]]
    if verb in ("checkout", "reset") and is_on(given, _FORCES):
        words.append("--force" if verb == "checkout" else "--hard")
    if verb == "restore":
        source = _list_at(given, ("source",))
        if source:
            words += ["--source", source[0]]
        return [[*words, "--", *files]]
    return [[*words, *target, *_operands(files)]]


def _operands(files: list[str]) -> list[str]:
    """Return the words for `files` at the end of a command."""
    if files:
        return ["--", *files]
    return []


_CLEANS = (("-d", ("directories", "includeDirectories")), ("-x", ("ignored", "removeIgnored")))


def _commit(name: str, given: dict[str, Any], files: list[str]) -> list[list[str]]:
    staged = _list_at(given, ("filesToStage", "files_to_stage"))
    words = ["commit", "-m", (_list_at(given, ("message",)) or [""])[0]]
    if is_on(given, ("all", "stageAll", "a")):
        words.insert(1, "-a")
    if name == "amend" or is_on(given, ("amend",)):
        words.insert(1, "--amend")
    if files:
        words += ["--", *files]
    if staged:
        return [["add", "--", *staged], words]
    return [words]


def _stash(mode: str, target: list[str], given: dict[str, Any]) -> list[list[str]]:
    if mode not in ("push", "save", "pop", "apply", "branch", "drop", "clear"):
        return []  # list, show
    if mode not in ("push", "save"):
        return [["stash", mode, *target]]
    if is_on(given, ("includeUntracked", "include_untracked", "u")):
        return [["stash", mode, "-u"]]
    return [["stash", mode]]


def _worktree(mode: str, given: dict[str, Any]) -> list[list[str]]:
    if mode == "prune":
        return [["worktree", "prune"]]
    folders = _list_at(given, _TREES)[:1]
    if mode not in ("remove", "move") or not folders:
        return []  # list, add, lock
    if mode == "move":
        folders += _list_at(given, ("newPath", "new_path", "destination"))[:1]
    elif is_on(given, _FORCES):
        folders.insert(0, "--force")
    return [["worktree", mode, *folders]]


def _list_at(given: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Return the value of the first of these arguments that is present, as a list of texts."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return [value]
        if isinstance(value, list) and any(isinstance(one, str) for one in value):
            return [one for one in value if isinstance(one, str)]
    return []


def is_on(given: dict[str, Any], names: Iterable[str]) -> bool:
    return any(given.get(name) is True for name in names)
