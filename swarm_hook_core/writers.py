"""What a tool of an MCP server would write, told from its name and its arguments.

`writer_table` knows the names of common servers, a person adds to it in ``config.json`` (`settings`). Loaded on
the way of each MCP call: ``re``, ``json``, ``fnmatch`` and ``typing`` are left out here as everywhere in a check.
"""

import os

from swarm_hook_core.writer_table import REMOTE, kind_of, matches, plain

MOST_PATHS = 1000

# The arguments in which paths are found, wherever a server's tool says no better.
PATHS = (
    "path", "file_path", "filePath", "filepath", "file", "filename", "file_name", "fileName", "relative_path",
    "relativePath", "pathInProject", "path_in_project", "notebook_path", "notebookPath", "target_file", "targetFile",
    "target_filepath", "absolute_path", "absolutePath", "uri", "fileUri", "file_uri", "paths[]", "file_paths[]",
    "filePaths[]", "files[]", "files[].path", "files[].file_path", "files[].filePath", "files[].file", "edits[].path", "edits[].file", "edits[].file_path",
    "edits[].filePath", "operations[].path", "operations[].file_path", "changes[].path", "changes[].file",
)  # fmt: skip
_SOURCES = ("source", "source_path", "sourcePath", "src", "from", "from_path", "old_path", "oldPath", "sources[]", "path")
_TARGETS = ("destination", "destination_path", "destinationPath", "dest", "dst", "to", "to_path", "new_path", "newPath",
            "target", "target_path", "targetPath", "new_name", "newName")  # fmt: skip
_OUTPUTS = ("outputPath", "output_path", "output", "output_file", "outputFile", "target_zip_file", "zip_path", "zipPath")
_CELLS = ("cell_index", "cellIndex", "cell_id", "cellId", "cell_type", "cellType", "cell_source", "notebook_name")
_COMMANDS = ("command", "cmd", "commands", "script")
_ROOTS = ("projectPath", "project_path", "project_root", "projectRoot")
_FOLDERS = ("cwd", "workdir", "working_directory", "workingDirectory", "workingDir", "working_dir", "directory", *_ROOTS)
_DRY = ("dryRun", "dry_run", "preview", "previewOnly", "preview_only")
_LOOKS = ("view", "read", "list", "find", "search", "open", "show", "undo_list")  # commands of text editors


def is_writer(tool: str) -> bool:
    """Whether `effects_of_tool` has anything to say of a tool of this name. Cheap; asks no store."""
    return bool(kind_of(tool)) or _chosen(tool) is not None


def effects_of_tool(tool: str, tool_input, folder: str):
    """The Effects of a call of `tool`, made in absolute `folder`; None where it is no writing tool that we know.

    A relative path counts from `folder` or from the git root over it, whichever has the file, else from both: servers
    start in either. Raises ``effects.grammar.GrammarMissing`` for a tool that runs shell text.
    """
    given = _parsed(tool_input)
    chosen = _chosen(tool)
    kind = "" if chosen else kind_of(tool)
    if given is None or not (chosen or kind):
        return None
    from swarm_hook_core.effects.model import Effects

    deed = _Deed(Effects(), tool, given, folder)
    if chosen is not None:
        return deed.as_chosen(chosen)
    if kind != "git" and any(given.get(name) for name in REMOTE):
        return None
    if kind not in ("git", "shell", "code") and any(given.get(name) is True for name in _DRY):
        return deed.effects
    return getattr(deed, f"as_{kind}")()


class _Deed:
    """One call on its way to Effects. Each ``as_<kind>`` returns them, or None where the call writes nothing here."""

    def __init__(self, effects, tool: str, given: dict, folder: str):
        self.effects = effects
        self.tool = tool
        self.by = tool.rpartition("__")[2] or tool
        self.given = given
        self.folder = folder

    def as_chosen(self, writer):
        """What a person's own table says."""
        if any(name in self.given and self.given[name] == value for name, value in writer.unless.items()):
            return self.effects
        for path in _values(self.given, writer.paths):
            self._write(path)
        command = self.given.get(writer.command) if writer.command else None
        if command:
            return self._shell(_shell_text(command, None), _first(self.given, (writer.folder,) if writer.folder else _FOLDERS))
        return self.effects

    def as_file(self):
        found = _values(self.given, PATHS)
        for path in found:
            self._write(path)
        if not found:
            if "file" not in self.by.lower():
                return None  # an `edit` of something else than files
            self._guess("a file that its arguments do not name")
        return self.effects

    def as_output(self):
        self._write(_first(self.given, _OUTPUTS) or _first(self.given, PATHS))
        return self.effects

    def as_remove(self):
        found = _values(self.given, PATHS)
        if not found:
            return None  # a `delete` of something else than files
        for path in found:
            self._tree(path)
        return self.effects

    def as_move(self):
        return self._transfer(moves=True)

    def as_copy(self):
        return self._transfer(moves=False)

    def as_folder(self):
        for path in _values(self.given, PATHS):
            for place in self._places(path):
                if not os.path.isdir(place):
                    self._write(place)
        return self.effects

    def as_unpack(self):
        target = _first(self.given, ("target_path", "targetPath", "output", "output_dir", "destination", "dest"))
        for place in self._places(target or os.path.dirname(_first(self.given, ("zip_file", *PATHS)) or "") or "."):
            self._guess("files of an archive", place)
        return self.effects

    def as_editor(self):
        if str(self.given.get("command") or self.given.get("action") or "").lower() in _LOOKS:
            return self.effects
        return self.as_file()

    def as_notebook(self):
        found = _values(self.given, PATHS)
        for path in found:
            self._write(path)
        if not found:
            known = self.tool.lower()
            if not ("notebook" in known or "jupyter" in known or any(name in self.given for name in _CELLS)):
                return None  # a cell of a spreadsheet, perhaps
            self._guess("the notebook that the server has open")
        if "exec" in self.by.lower() or "run" in self.by.lower():
            self._guess("code of a notebook")
        return self.effects

    def as_symbol(self):
        for path in _values(self.given, PATHS):
            self._write(path)
        root = next(iter(self._roots()))
        self._guess("references to a symbol, in any file", root)
        return self.effects

    def as_unnamed(self):
        self._guess("input to what runs already, or to what an editor has open")
        return self.effects

    def as_patch(self):
        text = _first(self.given, ("input", "patch", "diff", "patch_text", "patchText", "content"))
        for path in _patched(text) if text else ():
            self._write(path)
        for path in _values(self.given, PATHS):
            self._write(path)
        if not self.effects.writes:
            self._guess("a patch that cannot be read")
        return self.effects

    def as_git(self):
        from swarm_hook_core.effects.model import GitCall
        from swarm_hook_core.writer_git import FOLDERS, commands

        place = os.path.join(self.folder, _local(_first(self.given, FOLDERS)) or "")
        name = plain(self.tool[5:].partition("__")[2])[4:]
        for words in commands(name, self.given):
            self.effects.add(self.effects.git, GitCall(os.path.normpath(place), words, self.by))
        return self.effects

    def as_shell(self):
        command = next((self.given[name] for name in _COMMANDS if self.given.get(name)), None)
        text = _shell_text(command, self.given.get("args")) if command else ""
        return self._shell(text, _first(self.given, _FOLDERS)) if text else None

    def as_code(self):
        text = _first(self.given, ("code", "script", "source", "python_code"))
        language = str(self.given.get("language") or self.given.get("runtime") or "python").lower()
        self._guess("code that is run elsewhere than in the shell")
        if text and language.startswith("py"):
            # Where the interpreter stands nobody knows, so that only absolute paths count as certain.
            self._shell(f"python3 -c {_quoted(text)}", "", known=False)
        return self.effects

    def _transfer(self, moves: bool):
        sources, targets = _values(self.given, _SOURCES), _values(self.given, _TARGETS)[:1]
        if not sources or not targets:
            for path in _values(self.given, (*_SOURCES, *_TARGETS)):
                self._write(path)
            return self.effects if self.effects.writes else None
        for path in sources:
            if moves:
                self._tree(path)
            for target in targets:
                self._arrive(path, target)
        return self.effects

    def _arrive(self, source: str, target: str) -> None:
        """`source` comes to `target`: under that name, or into that folder."""
        from swarm_hook_core.effects.model import Tree

        for place in self._places(target):
            if os.path.isdir(place):
                place = os.path.join(place, os.path.basename(_local(source).rstrip("/")))
            self._write(place)
            for origin in self._places(source):
                if os.path.isdir(origin):
                    arrives = _arrivals(origin, place)
                    self.effects.add(self.effects.trees, Tree(place, self.by, arrives))

    def _write(self, path: str) -> None:
        from swarm_hook_core.effects.model import Write

        for place in self._places(path):
            self.effects.add(self.effects.writes, Write(self.folder, place, self.by))

    def _tree(self, path: str) -> None:
        from swarm_hook_core.effects.model import Tree

        for place in self._places(path):
            self.effects.add(self.effects.trees, Tree(place, self.by))

    def _guess(self, why: str, folder: str = "") -> None:
        from swarm_hook_core.effects.model import Guess

        self.effects.add(self.effects.guesses, Guess(why, folder, self.by))

    def _shell(self, text: str, folder: str, known: bool = True):
        from swarm_hook_core.effects import effects_of

        place = os.path.normpath(os.path.join(self.folder, _local(folder) or "")) if known else None
        found = effects_of(text, place)
        for name in ("writes", "trees", "git", "guesses"):
            for item in getattr(found, name):
                self.effects.add(getattr(self.effects, name), item)
        self.effects.runs = self.effects.runs or found.runs
        return self.effects

    def _roots(self) -> list[str]:
        """Where a relative path may count from."""
        from swarm_hook_core.paths import git_root

        named = _local(_first(self.given, _ROOTS))
        if os.path.isabs(named):
            return [os.path.normpath(named)]
        return list(dict.fromkeys((self.folder, git_root(self.folder))))

    def _places(self, path: str) -> list[str]:
        """The absolute paths that an argument may mean; none where it names no local file."""
        path = _local(path)
        if not path or "\0" in path:
            return []
        if os.path.isabs(path):
            return [os.path.normpath(path)]
        places = [os.path.normpath(os.path.join(root, path)) for root in self._roots()]
        there = [place for place in places if os.path.lexists(place)]
        return there or places


def _chosen(tool: str):
    """The first entry of the person's own table for `tool`, or None."""
    from swarm_hook_core.settings import current

    return next((writer for writer in current().writers if matches(writer.tool, tool)), None)


def _parsed(tool_input):
    """The input as an object; None where it is none. Some transports hand it over as JSON text."""
    if isinstance(tool_input, str):
        from swarm_hook_core.payload import loads

        try:
            tool_input = loads(tool_input)
        except (ValueError, RecursionError):
            return None
    return tool_input if isinstance(tool_input, dict) else None


def _first(given: dict, selectors) -> str:
    return next(iter(_values(given, selectors)), "")


def _values(given: dict, selectors) -> list[str]:
    """The texts found at `selectors` (``a``, ``a.b``, ``a[]``, ``a[].b``), without repeats; a list counts where one text would."""
    found: dict = {}
    for selector in selectors:
        values = [given]
        for name in selector.split("."):
            many = name.endswith("[]")
            values = [value.get(name.removesuffix("[]")) for value in values if isinstance(value, dict)]
            if many:
                values = [one for value in values if isinstance(value, list) for one in value[:MOST_PATHS]]
        for value in values:
            for one in value[:MOST_PATHS] if isinstance(value, list) else (value,):
                if isinstance(one, str) and one.strip() and len(found) < MOST_PATHS:
                    found.setdefault(one)
    return list(found)


def _local(path: str) -> str:
    """`path` without ``file://`` and ``~``; empty where it is an address of another kind."""
    path = path.strip()
    if path[:7].lower() == "file://":
        rest = path[7:]
        path = _decoded(rest[rest.find("/") :] if "/" in rest else "")
    elif "://" in path:
        return ""
    return os.path.expanduser(path) if path.startswith("~") else path


def _decoded(text: str) -> str:
    """Percent-encoded UTF-8 as text."""
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


def _shell_text(command, args) -> str:
    """A command as shell text: a text, a list of words, or a list of several commands."""
    words = args if isinstance(args, list) and all(isinstance(one, str) for one in args) else []
    if isinstance(command, list):
        texts = [one for one in command if isinstance(one, str)]
        if len(texts) > 1 and all(" " in one for one in texts):
            return "\n".join(texts)
        return " ".join(map(_quoted, texts + words)) if len(texts) != 1 else texts[0]
    if not isinstance(command, str):
        return ""
    return " ".join([command, *map(_quoted, words)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _patched(text: str) -> list[str]:
    """The files that a patch names: Codex's envelope, or a unified diff."""
    if "*** Begin Patch" in text:
        from swarm_hook_core.patch import patch_paths

        try:
            return patch_paths(text)
        except ValueError:
            return []
    found: dict = {}
    before = ""
    for line in text.splitlines():
        if line.startswith("+++ ") and before.startswith("--- "):
            for name in (before, line):
                path = name[4:].partition("\t")[0].strip().strip('"')
                if path and path != "/dev/null":
                    found.setdefault(path[2:] if path.startswith(("a/", "b/")) else path)
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            found.setdefault(line.partition(" ")[2].partition(" ")[2].strip())
        before = line
    return list(found)


def _arrivals(origin: str, place: str):
    """Of a folder that is moved or copied: what lies under `origin` comes to lie under `place`."""
    return lambda path: os.path.lexists(origin + path[len(place) :])
