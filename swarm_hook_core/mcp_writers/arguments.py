"""Arguments of tool calls: the names of those with paths and commands, and their values."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from swarm_hook_core import EDIT, REMOVE
from swarm_hook_core.json_text import loads_outer
from swarm_hook_core.patch import patch_changes

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
