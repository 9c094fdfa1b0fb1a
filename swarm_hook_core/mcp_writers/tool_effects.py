"""The effects of one call of a tool, by the tool's kind (see ``arguments``), of calls within it too."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE, mcp_writers
from swarm_hook_core.mcp_writers import (
    ARCHIVES,
    CELLS,
    CODES,
    COMMANDS,
    FILE_NAMES,
    FOLDERS,
    LOOKS,
    NAMES,
    OUTPUT_FOLDERS,
    OUTPUTS,
    PATHS,
    ROOTS,
    SOURCES,
    TARGETS,
    WHOLES,
    first,
    is_own,
    local,
    parsed,
    patched,
    plain,
    quoted,
    reads,
    shell_text,
    values,
)
from swarm_hook_core.paths import git_root
from swarm_hook_core.repository import small_text, tree_over, trees_beside
from swarm_hook_core.settings import Writer
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import Effects, GitCall, Guess, Tree, Write
from swarm_hook_core.shell.programs.places import Counterpart


class ToolEffects:
    """The effects of one call, collected in `effects`.

    Each ``as_<kind>`` returns them, or None if the call writes no files.
    """

    def __init__(self, effects: Effects, tool: str, given: dict[str, Any], folder: str):
        self.effects = effects
        self.tool = tool
        self.by = tool.rpartition("__")[2] or tool
        self.given = given
        self.folder = folder

    def as_chosen(self, writer: Writer) -> Effects:
        """Return the effects that the user's own table gives."""
        if any(name in self.given and self.given[name] == value for name, value in writer.unless.items()):
            return self.effects
        for path in values(self.given, writer.paths):
            self._write(path)
        text = shell_text(self.given.get(writer.command)) if writer.command else ""
        if text:
            return self._shell(text, first(self.given, (writer.folder,) if writer.folder else FOLDERS))
        return self.effects

    def as_whole(self) -> Effects | None:
        appends = str(self.given.get("mode") or "").lower() in ("append", "a") or self.given.get("append") is True
        return self._file(EDIT if appends else REPLACE)

    def as_file(self) -> Effects | None:
        return self._file(EDIT)

    def _file(self, how: str) -> Effects | None:
        found = values(self.given, PATHS)
        for path in found:
            self._write(path, how)
        if not found:
            if "file" not in self.by.lower():
                return None  # an `edit` of something other than files
            self._guess("a file that its arguments do not name")
        return self.effects

    def as_output(self) -> Effects:
        self._write(first(self.given, (*OUTPUTS, *ARCHIVES)) or first(self.given, PATHS), REPLACE)
        return self._in_folders()

    def as_named_output(self) -> Effects:
        """Return the effects of a tool with any other name, by its arguments' names. One that reads may write too."""
        certain = not reads(self.tool)
        for path in values(self.given, OUTPUTS):
            if certain:
                self._write(path, REPLACE)
            else:
                self._perhaps(path)
        if certain:
            for path in values(self.given, FILE_NAMES):
                self._perhaps(path)
        return self._in_folders()

    def _in_folders(self) -> Effects:
        for path in values(self.given, OUTPUT_FOLDERS):
            self._perhaps(path)
        return self.effects

    def _perhaps(self, path: str) -> None:
        for place in self._places(path):
            self.effects.add(Tree(place, self.by, _nobody_knows))

    def as_tree(self) -> Effects:
        """Return the effects of a tool that may change any file in a folder, by default in the whole checkout."""
        for path in values(self.given, PATHS) or self._roots():
            self._perhaps(path)
        return self.effects

    def as_memory(self) -> Effects:
        """Return the file of a memory of Serena's: ``.serena/memories/NAME.md`` in the project or the home folder."""
        for key in ("memory_name", "memory_file_name", "old_name", "new_name"):
            name = self.given.get(key)
            if isinstance(name, str) and name.strip():
                folder = ".serena"
                if name.startswith("global/"):
                    folder = "~/.serena"
                path = f"{folder}/memories/{name.strip().removesuffix('.md')}.md"
                if key == "old_name" or self.by.startswith("delete"):
                    self._remove(path)
                else:
                    self._write(path)
        return self.effects

    def as_foreign(self) -> Effects:
        self._guess("a PowerShell command")
        return self.effects

    def as_remove(self) -> Effects | None:
        found = values(self.given, PATHS)
        if not found:
            return None  # a `delete` of something other than files
        if self.given.get("deleteFiles") is False:  # Xcode: removed from the project only, not from the disk
            self._guess("the project's list of its files")
            return self.effects
        for path in found:
            self._remove(path)
        return self.effects

    def as_move(self) -> Effects | None:
        return self._transfer(moves=str(self.given.get("operation") or "").lower() != "copy")

    def as_copy(self) -> Effects | None:
        return self._transfer(moves=False)

    def as_folder(self) -> Effects:
        for path in values(self.given, PATHS):
            for place in self._places(path):
                if not os.path.isdir(place):
                    self._write(place)
        return self.effects

    def as_unpack(self) -> Effects:
        target = first(self.given, ("target_path", "targetPath", "output", "output_dir", "destination", "dest"))
        for place in self._places(target or os.path.dirname(first(self.given, ("zip_file", *PATHS)) or "") or "."):
            self._guess("files of an archive", place)
        return self.effects

    def as_editor(self) -> Effects | None:
        command = str(self.given.get("command") or self.given.get("action") or "").lower()
        if command in LOOKS:
            return self.effects
        return self._file(REPLACE if command in WHOLES else EDIT)

    def as_notebook(self) -> Effects | None:
        found = values(self.given, PATHS)
        for path in found:
            self._write(path)
        if not found:
            known = self.tool.lower()
            if not ("notebook" in known or "jupyter" in known or any(name in self.given for name in CELLS)):
                return None  # probably a cell of a spreadsheet
            self._guess("the notebook that the server has open")
        if "exec" in self.by.lower() or "run" in self.by.lower():
            self._guess("code of a notebook")
            self._shell_in(first(self.given, CODES))
        return self.effects

    def as_symbol(self) -> Effects:
        for path in values(self.given, PATHS):
            self._write(path)
        root = next(iter(self._roots()))
        self._guess("references to a symbol, in any file", root)
        return self.effects

    def as_unnamed(self) -> Effects:
        self._guess("input to what runs already, or to what an editor has open")
        return self.effects

    def as_patch(self) -> Effects:
        text = first(self.given, ("input", "patch", "diff", "patch_text", "patchText", "content"))
        for path, how in patched(text):
            self._write(path, how)
        for path in values(self.given, PATHS):
            self._write(path)
        if not self.effects.writes:
            self._guess("a patch that cannot be read")
        return self.effects

    def as_git(self) -> Effects:
        place = os.path.join(self.folder, local(first(self.given, mcp_writers.GIT_FOLDERS)))
        name = plain(self.by)[4:]
        for words in mcp_writers.git_commands(name, self.given):
            self.effects.add(GitCall(os.path.normpath(place), words, self.by))
        return self.effects

    def as_worktree(self) -> Effects | None:
        """Return the effects of Claude Code's ExitWorktree: it may remove the work tree around, with its branch."""
        tree = tree_over(self.folder)
        if self.given.get("action") != "remove" or tree is None or tree.own == tree.common:
            return None
        main = next((top for top in trees_beside(tree) if top != tree.top), tree.top)
        branch = small_text(os.path.join(tree.own, "HEAD")).strip().removeprefix("ref: refs/heads/")
        force = ["--force"] if mcp_writers.is_on(self.given, ("discard_changes",)) else []
        self.effects.add(GitCall(main, ["worktree", "remove", *force, tree.top], self.by))
        self.effects.add(GitCall(main, ["branch", "-D", branch], self.by))
        return self.effects

    def as_shell(self) -> Effects | None:
        command = next((self.given[name] for name in COMMANDS if self.given.get(name)), None)
        text = ""
        if command:
            text = shell_text(command, self.given.get("args"))
        if text:
            return self._shell(text, first(self.given, FOLDERS))
        if first(self.given, ("code",)):
            return self.as_code()
        return None

    def as_code(self) -> Effects:
        is_own = not self.tool.startswith("mcp__")  # a client's own tool runs code like a command
        text = self._shell_in(first(self.given, CODES))
        language = str(self.given.get("language") or self.given.get("runtime") or "python").lower()
        if not is_own or not language.startswith("py"):
            self._guess("code that is run elsewhere than in the shell")
        if text and language.startswith("py"):
            # The working folder of a server's interpreter is unknown: only absolute paths are certain.
            self._shell(f"python3 -c {quoted(text)}", "", known=is_own)
        return self.effects

    def as_unknown(self) -> Effects | None:
        """Return the effects of an unknown tool with a name that suggests writing: any file in its arguments."""
        self.as_named_output()
        for path in values(self.given, (*PATHS, *TARGETS)):
            self._perhaps(path)
        found = self.effects.writes or self.effects.trees
        return self.effects if found else None  # without paths it writes something else: an issue, a page

    def _shell_in(self, code: str) -> str:
        """Add the effects of the shell commands in a cell or in code that calls tools; return the rest of the code."""
        commands, rest = _cell_commands(code)
        for text in [*commands, *_called_commands(rest)]:
            self._shell(text, first(self.given, FOLDERS))
        return rest

    def _transfer(self, moves: bool) -> Effects | None:
        sources, targets = values(self.given, SOURCES), values(self.given, TARGETS)[:1]
        if sources and targets and first(self.given, NAMES) == targets[0] and "/" not in targets[0]:
            targets = [os.path.join(os.path.dirname(sources[0]), targets[0])]  # a new name in the same folder
        if not sources or not targets:
            for path in values(self.given, (*SOURCES, *TARGETS)):
                self._write(path)
            if self.effects.writes:
                return self.effects
            return None
        for path in sources:
            if moves:
                self._remove(path)
            for target in targets:
                self._arrive(path, target)
        return self.effects

    def _arrive(self, source: str, target: str) -> None:
        """Add the arrival of `source` at `target`, as that name or inside that folder."""
        for place in self._places(target):
            if os.path.isdir(place):
                place = os.path.join(place, os.path.basename(local(source).rstrip("/")))
            self._write(place, REPLACE)
            for origin in self._places(source):
                if os.path.isdir(origin):
                    self.effects.add(Tree(place, self.by, Counterpart(origin, place), REPLACE))

    def _write(self, path: str, how: str = EDIT) -> None:
        for place in self._places(path):
            self.effects.add(Write(self.folder, place, self.by, how))

    def _remove(self, path: str) -> None:
        for place in self._places(path):
            self.effects.add(Tree(place, self.by, how=REMOVE))

    def _guess(self, why: str, folder: str = "") -> None:
        self.effects.add(Guess(why, folder, self.by))

    def _shell(self, text: str, folder: str, known: bool = True) -> Effects:
        place = None
        if known:
            place = os.path.normpath(os.path.join(self.folder, local(folder)))
        return self.take(effects_of(text, place))

    def take(self, found: Effects) -> Effects:
        """Add other Effects to these, and return them."""
        for name in ("writes", "trees", "git", "guesses", "reads"):
            for item in getattr(found, name):
                self.effects.add(item)
        self.effects.moves += found.moves
        self.effects.runs = self.effects.runs or found.runs
        return self.effects

    def _roots(self) -> list[str]:
        """Return the folders that a relative path may count from."""
        named = local(first(self.given, ROOTS))
        if os.path.isabs(named):
            return [os.path.normpath(named)]
        return list(dict.fromkeys((self.folder, git_root(self.folder))))

    def _places(self, path: str) -> list[str]:
        """Return the absolute paths that an argument may mean, empty if it names no local file."""
        path = local(path)
        if not path or "\0" in path:
            return []
        if os.path.isabs(path):
            return [os.path.normpath(path)]
        places = [os.path.normpath(os.path.join(root, path)) for root in self._roots()]
        there = [place for place in places if os.path.lexists(place)]
        return there or places


def _nobody_knows(_path: str) -> None:
    """Accept files with "unknown", as a ``Tree.admits``."""


# Shell commands within code: those of a notebook's cell, and those that a script gives to tools.

_CELLS_OF_SHELL = ("%%bash", "%%sh", "%%zsh", "%%!", "%%system", "%%sx", "%%script bash", "%%script sh")
_LINES_OF_SHELL = ("!!", "!", "%sx ", "%system ")
_COMMAND_KEYS = ("command", "cmd")


def _cell_commands(code: str) -> tuple[list[str], str]:
    """Return ``([shell text], the rest)`` of the code of a cell: its ``!`` lines, or all of a ``%%bash`` cell."""
    if code.lstrip().startswith(_CELLS_OF_SHELL):
        return [code.lstrip().partition("\n")[2]], ""
    shell, rest = [], []
    for line in code.split("\n"):
        text = line.strip()
        name, equals, value = text.partition("=")
        if equals and name.strip().isidentifier() and value.lstrip().startswith("!"):
            text = value.lstrip()
        start = next((one for one in _LINES_OF_SHELL if text.startswith(one)), "")
        if text.startswith("%cd "):
            shell.append(text[1:])
        elif start:
            shell.append(text[len(start) :])
        else:
            rest.append(line)
    return (["\n".join(shell)] if shell else []), "\n".join(rest)


def _called_commands(code: str) -> list[str]:
    """Return the literal texts that code gives to tools as their command: ``tools.bash({command: "git stash"})``."""
    found = []
    for key in _COMMAND_KEYS if "(" in code else ():
        for part in code.split(key)[1 : MOST + 1]:
            rest = part.lstrip("'\" ")
            mark = rest[1:].lstrip()[:1] if rest[:1] == ":" else ""
            if mark and mark in "'\"`":
                text = rest.partition(mark)[2]
                found.append(text.replace(f"\\{mark}", "\0").partition(mark)[0].replace("\0", mark))
    return found


# Calls within a call: servers and clients that call tools of others by name.

MOST = 100  # calls within one call
DEEPEST = 3  # levels of nesting
_NAMES = ("toolName", "tool_name", "tool", "name", "function", "method")
_ARGUMENTS = ("arguments", "args", "input", "params", "parameters", "tool_input", "toolInput", "tool_args", "toolArgs")
# Beside one of these, the other arguments may be the tool's own; `name` is too common for that.
_FLAT = ("toolName", "tool_name", "tool")
_LISTS = ("calls", "tool_calls", "toolCalls", "operations", "requests", "actions", "steps", "invocations", "batch")


def calls_in(given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return ``[(name, arguments)]`` of the calls in `given`, the input of a call; mostly empty."""
    found: list[tuple[str, dict[str, Any]]] = []
    server = given.get("server") or given.get("serverName") or given.get("server_name")
    if isinstance(server, str) and is_own(server):
        return found
    for one in [given, *(item for key in _LISTS for item in _list(given.get(key)))]:
        name, inner = _call(one)
        if name and len(found) < MOST:
            found.append((name, inner))
    return found


def _list(value: object) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [item for item in value[:MOST] if isinstance(item, dict)]
    return []


def _call(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return ``(name, arguments)`` of the call that `given` describes, or ("", {})."""
    key = next((key for key in _NAMES if isinstance(given.get(key), str) and given[key]), "")
    if not key:
        function = given.get("function")
        if isinstance(function, dict):
            return _call(function)
        return ("", {})
    for place in _ARGUMENTS:
        value = given.get(place)
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            inner = parsed(value)
        else:
            inner = value
        if isinstance(inner, dict):
            return given[key], inner
    rest = {}
    if key in _FLAT:
        rest = {name: value for name, value in given.items() if name != key}
    if rest:
        return (given[key], rest)
    return ("", {})
