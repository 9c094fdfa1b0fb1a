"""Which tools write files, by the names that common MCP servers, and clients, give them.

Collected in 2026 from what these servers declare: the reference filesystem and git servers and their Go, Rust and
Python kin, Desktop Commander, Serena, the JetBrains IDEs, text-editor and notebook servers, ``claude mcp serve``,
git and terminal servers. The server's own name is a user's choice, so only the tool's counts.
"""

# Kind -> tools, as `plain` spells them. What each kind writes says `ToolEffects.as_<kind>`: `whole` gives a file other
# content in place of all that is in it, `file` changes some of it.
_KINDS = {
    "whole": "write_file write_files write_text_file write_multiple_files write create_file create_files"
    " create_text_file create_new_file create_new_file_with_text overwrite_file save_file put_file truncate_file"
    " replace_file_text_by_path file_write file_create",
    "file": "edit_file edit_files edit_text_file edit multi_edit edit_block edit_lines touch_file update_file"
    " append_file append_to_file append_text_file_contents modify_file patch_text_file_contents"
    " edit_text_file_contents delete_text_file_contents insert_text_file_contents replace_content replace_regex"
    " replace_lines replace_in_file replace_text_in_file replace_specific_text search_and_replace search_replace"
    " find_and_replace str_replace delete_lines insert_lines insert_line insert_at_line insert_into_file insert_content"
    " replace_symbol_body insert_after_symbol insert_before_symbol reformat_file format_file fast_apply file_edit"
    " file_append",
    "output": "write_pdf write_docx zip_files zip_directory create_zip create_archive",
    "remove": "delete_file delete_files remove_file remove_files delete_directory remove_directory delete_path delete"
    " remove file_delete",
    "move": "move_file move_files move_path move_directory rename_file rename_path move file_move",
    "copy": "copy_file copy_files copy_path copy_directory copy file_copy",
    "folder": "create_directory create_folder make_directory mkdir",
    "unpack": "unzip_file extract_zip extract_archive unzip",
    "editor": "str_replace_editor text_editor str_replace_based_edit_tool edit_tool file_editor",
    "notebook": "notebook_edit edit_notebook edit_cell insert_cell execute_cell delete_cell move_cell add_cell"
    " update_cell append_cell edit_cell_source overwrite_cell_source append_markdown_cell insert_markdown_cell"
    " insert_execute_code_cell append_execute_code_cell execute_cell_simple_timeout execute_cell_streaming"
    " execute_cell_with_progress convert_cell_type bulk_edit_cells clear_cell_outputs run_notebook_cell"
    " execute_notebook run_notebook save_notebook create_notebook edit_notebook_cell add_notebook_cell"
    " insert_notebook_cell delete_notebook_cell",
    "symbol": "rename_symbol rename_refactoring rename_element safe_delete_symbol safe_delete move_symbol"
    " inline_symbol",
    "unnamed": "replace_current_file_text replace_selected_text interact_with_process send_input send_to_terminal"
    " write_to_terminal",
    "patch": "apply_patch apply_diff apply_unified_diff",
    "shell": "bash shell run_command run_commands execute_command exec_command start_process run_process"
    " execute_shell_command run_shell_command shell_command shell_exec shell_execute execute_terminal_command"
    " run_terminal_command run_terminal_cmd run_in_terminal terminal terminal_execute cli_exec cli_exec_raw exec"
    " execute",
    "code": "execute_code execute_python run_python run_python_code python_repl execute_ipython execute_python_code",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}

# Words of a name that is not known by which a tool may be one that writes.
_WRITING = frozenset(
    "write edit rewrite overwrite create update append modify save put patch delete remove insert replace truncate"
    " format apply move rename copy mkdir touch generate scaffold refactor".split()
)
# Words before a known name with which it writes nothing: preview_edit_file.
_ONLY_LOOKS = frozenset(
    "preview dry check validate get list read can show explain simulate plan search find diff".split()
)

# The arguments of calls whose files are not this machine's: a forge's repository, a bucket, a sandbox.
REMOTE = (
    "owner", "repo", "project_id", "projectId", "repository_id", "repositoryId", "bucket", "sandbox_id", "sandboxId",
    "container_id", "containerId", "container", "host", "hostname", "connectionName", "drive_id", "driveId", "vm_id",
)  # fmt: skip


def kind_of(tool: str) -> str:
    """The kind of a client's tool or of ``mcp__<server>__<tool>``; empty where it is not known to write.

    It is a key of ``_KINDS``, ``git``, or ``unknown``: a tool that nobody here knows, with a name that sounds like
    writing.
    """
    server, _, name = tool[5:].partition("__") if tool.startswith("mcp__") else ("", "", tool)
    name = plain(name or server)
    if "swarm" in (plain(server) or name).split("_"):
        return ""  # our own server's tools write no file
    if name.startswith("git_"):
        from swarm_hook_core.mcp_writers.git import VERBS

        return "git" if name[4:] in VERBS else ""
    kind = _KIND_OF.get(name)
    if kind is not None:
        return kind
    # Some servers put their own name before each tool's: filesystem_write_file.
    words = name.split("_")
    for start in range(1, min(len(words) - 1, 6)):
        kind = _KIND_OF.get("_".join(words[start:]))
        if kind is not None:
            return "" if _ONLY_LOOKS.intersection(words[:start]) else kind
    return "unknown" if _WRITING.intersection(words) and not _ONLY_LOOKS.intersection(words) else ""


def plain(name: str) -> str:
    """A tool's name with words in lower case and ``_`` between: ``createNewFile``, ``create-new-file``."""
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
    """Whether the whole of `name` matches a pattern of ``*`` (any text) and ``?`` (one character)."""
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
