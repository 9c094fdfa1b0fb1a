"""All that differs between runtimes, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os.path import expanduser, join, normpath
from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import loads_outer

# The tools of clients that run commands: in a shell, and in a language without a reader here.
SHELL_TOOLS = frozenset({"Bash", "Monitor", "shell", "local_shell", "exec_command"})
OPAQUE_TOOLS = frozenset({"PowerShell"})

# Ways of another input to a client: without a decision; with the decision `allow`, and words at a later event; by a
# plugin of ours in the client's own process.
BESIDE, ALLOWED, PLUGIN = "beside", "allowed", "plugin"


class Frozen:
    """A record with fields that cannot change after they are set."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, **fields: object) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, fields[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")


def plain_denial(event: str, reason: str) -> dict[str, Any]:
    """Return the object that refuses a call, as Claude Code and Codex have it.

    Codex drops a denial that has any further top-level key, and both clients one that has ``decision`` beside it.
    """
    return {
        "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason,
        }
    }  # fmt: skip


def plain_question(event: str, text: str) -> dict[str, Any]:
    """Return the object with which Claude Code asks its user about a call."""
    return {
        "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "ask", "permissionDecisionReason": text,
        }
    }  # fmt: skip


def plain_words(event: str, text: str, for_user: str = "") -> dict[str, Any]:
    """Return the object that tells the model `text` and, at a session's start, shows the user a line."""
    if for_user:
        shown = {"systemMessage": for_user}
    else:
        shown = {}
    return {**shown, "hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def plain_replacement(event: str, given: object, words: str) -> dict[str, Any]:
    """Return the object by which Claude Code takes `given` as a call's input, and tells its model `words`."""
    return {"hookSpecificOutput": {"hookEventName": event, "updatedInput": given, "additionalContext": words}}


class Dialect(Frozen):
    """The client's spelling of hook payloads, and the answers that it accepts.

    The core's own words are those of Claude Code and Codex; a dialect maps those of another client to them.

    fields          the core's name of a field -> the client's, with a dot between levels
    tools, events   the client's name of a shell tool, of an event -> the core's
    mcp_tool        ``name -> "mcp__server__tool"`` for a tool of an MCP server, else empty; None if the client has
                    those names itself, or names that tell nothing
    input_is_text   True if the input of a tool comes as a JSON text
    command         the key of a shell command's text in the input of its tool
    amend           ``payload -> payload`` in the core's words, for all that the fields above cannot say; a payload
                    without a session's id is ignored
    denial          ``(event, reason) -> object`` that denies a call
    question        ``(event, text) -> object`` that has the client ask its user (``RuntimeConfig.asks``)
    words           ``(event, text, for_user) -> object`` that tells the model something
    replacement     ``(event, input, words) -> object`` that gives a call another input (``RuntimeConfig.merges``)
    denial_status   exit status of a hook that denies
    reason_length   most characters of a reason that reach the model; 0 for no limit
    unheard         ``(event, source) -> bool``, True if the client drops words to the model there; None if never
    """

    __slots__ = (
        "fields", "tools", "events", "mcp_tool", "input_is_text", "command", "amend", "denial", "question", "words",
        "replacement", "denial_status", "reason_length", "unheard",
    )  # fmt: skip
    fields: dict[str, str]
    tools: dict[str, str]
    events: dict[str, str]
    mcp_tool: Callable[[str], str] | None
    input_is_text: bool
    command: str
    amend: Callable[[dict[str, Any]], dict[str, Any]] | None
    denial: Callable[[str, str], dict[str, Any]]
    question: Callable[[str, str], dict[str, Any]]
    words: Callable[[str, str, str], dict[str, Any]]
    replacement: Callable[[str, object, str], dict[str, Any]]
    denial_status: int
    reason_length: int
    unheard: Callable[[str, str], bool] | None

    def __init__(
        self, fields: Any = (), tools: Any = (), events: Any = (), input_is_text: bool = False,
        denial: Any = plain_denial, words: Any = plain_words, denial_status: int = 0, mcp_tool: Any = None,
        amend: Any = None, reason_length: int = 0, unheard: Any = None, command: str = "command",
        question: Any = plain_question, replacement: Any = plain_replacement,
    ):  # fmt: skip
        super().__init__(
            fields=dict(fields), tools=dict(tools), events=dict(events), mcp_tool=mcp_tool,
            input_is_text=input_is_text, command=command, amend=amend, denial=denial, words=words,
            denial_status=denial_status, reason_length=reason_length, unheard=unheard, question=question,
            replacement=replacement,
        )  # fmt: skip

    def read(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return `payload` in the core's words; its ``client_tool`` is the name of a tool that has another there."""
        if self is PLAIN:
            return payload
        found = {**payload, **{name: _at(payload, place) for name, place in self.fields.items()}}
        called = found.get("tool_name")
        for key, names in (("tool_name", self.tools), ("hook_event_name", self.events)):
            told = found.get(key)
            if isinstance(told, str) and told in names:
                found[key] = names[told]
            elif key == "tool_name" and self.mcp_tool is not None and isinstance(told, str):
                found[key] = self.mcp_tool(told) or told
        if self.input_is_text and isinstance(found.get("tool_input"), str):
            try:
                found["tool_input"] = loads_outer(found["tool_input"])
            except ValueError:
                pass  # the search for paths finds no paths in it, and reports that
        given = found.get("tool_input")
        if self.command != "command" and isinstance(given, dict) and str(found.get("tool_name")) in SHELL_TOOLS:
            found["tool_input"] = {**given, "command": given.get(self.command)}
        if self.amend is not None:
            found = self.amend(found)
        if isinstance(called, str) and called != found.get("tool_name"):
            found["client_tool"] = called
        return found


def in_own_folder(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with the folder that a shell command runs in, where its input names one.

    Gemini CLI calls it ``dir_path``, its earlier releases and Qwen Code ``directory``, others ``cwd``.
    """
    tool_input, cwd = payload.get("tool_input"), payload.get("cwd")
    if isinstance(tool_input, dict):
        given = tool_input
    else:
        given = {}
    folder = next((given[key] for key in ("dir_path", "directory", "cwd") if isinstance(given.get(key), str)), None)
    if payload.get("tool_name") not in SHELL_TOOLS or not folder or not isinstance(cwd, str):
        return payload

    return {**payload, "cwd": normpath(join(cwd, expanduser(folder)))}


def server_and_tool(name: str) -> str:
    """Return ``mcp__server__tool`` for the tool of a server that a client calls ``server__tool``; empty for others."""
    if "__" in name and not name.startswith("mcp__"):
        return f"mcp__{name}"
    return ""


def _at(payload: object, place: str) -> object:
    """Return the value at `place` in `payload`, a name with dots between levels; None if it is missing."""
    for name in place.split("."):
        if isinstance(payload, dict):
            payload = payload.get(name)
        else:
            payload = None
    return payload


PLAIN = Dialect()


class RuntimeConfig(Frozen):
    """One agent runtime.

    runtime_name      word used in labels and as half of a session's key: ``claude-code``
    env_prefix        the PFX in ``SWARM_PFX_*`` variables: ``CC``
    scratch_dir_name  folder of this runtime under the state folder: ``swarm-cc``
    write_tools       names of the tools whose calls write files
    extract_paths     ``(tool_input) -> iterable of paths as spelled`` for a call of such a tool;
                      raises ``ValueError`` for an input that cannot be read; optional beside `extract_changes`
    replaces          the write tools that replace the whole file; all others change a part of it
    extract_changes   as `extract_paths`, but ``(path, how)`` (`EDIT`, ...), for a tool with several kinds; else None
    transcript        the form of the file in which the client logs the model's input, if its hooks get the path
                      (``traces.transcript.FORMS``); else empty
    harmless_tools    the client's own tools with names that sound like writing, but that write no file of a checkout
    client_marks      of a client that is a shell script: parts of its path, see
                      ``process.client_process``
    dialect           the client's spelling of payloads and answers, if it differs
    kernel            the way of a shell command into a namespace in which the kernel holds locked files
                      (``kernel.planning``): ``shell``, ``statement``, ``directly``; empty for no way
    asks              ``call -> bool``: True if the client asks its user where a hook wants that; None for never
    merges            the way of a merged text to the client (``traces.whole_writes``): BESIDE, ALLOWED, PLUGIN; empty
                      for no way that leaves its user's rules in force
    merge_versions    for BESIDE and ALLOWED: the client's releases in which that was seen
    kernel_versions   for ``statement``: the client's releases in which that was seen to leave its rules in force
    """

    __slots__ = (
        "runtime_name", "env_prefix", "scratch_dir_name", "write_tools", "extract_paths", "replaces",
        "extract_changes", "transcript", "harmless_tools", "client_marks", "dialect", "kernel", "kernel_versions",
        "asks", "merges", "merge_versions",
    )  # fmt: skip
    runtime_name: str
    env_prefix: str
    scratch_dir_name: str
    write_tools: frozenset[str]
    extract_paths: Callable[[object], Iterable[str]]
    replaces: frozenset[str]
    extract_changes: Callable[[object], Iterable[tuple[str, str]]] | None
    transcript: str
    harmless_tools: frozenset[str]
    client_marks: tuple[str, ...]
    dialect: Dialect
    kernel: str
    kernel_versions: tuple[str, ...]
    asks: Callable[[ToolCall], bool] | None
    merges: str
    merge_versions: tuple[str, ...]

    def __init__(
        self, runtime_name: str, env_prefix: str, scratch_dir_name: str, write_tools: Iterable[str],
        extract_paths: Any = None, client_marks: Iterable[str] = (), dialect: Dialect = PLAIN,
        replaces: Iterable[str] = (), extract_changes: Any = None, transcript: str = "",
        harmless_tools: Iterable[str] = (), kernel: str = "", kernel_versions: Iterable[str] = (),
        asks: Any = None, merges: str = "", merge_versions: Iterable[str] = (),
    ):  # fmt: skip
        super().__init__(
            runtime_name=runtime_name, env_prefix=env_prefix, scratch_dir_name=scratch_dir_name,
            write_tools=frozenset(write_tools), extract_paths=extract_paths or _paths_of(extract_changes),
            replaces=frozenset(replaces), extract_changes=extract_changes, transcript=transcript,
            harmless_tools=frozenset(harmless_tools), client_marks=tuple(client_marks), dialect=dialect, kernel=kernel,
            kernel_versions=tuple(kernel_versions), asks=asks, merges=merges,
            merge_versions=tuple(merge_versions),
        )  # fmt: skip

    def changes_of(self, tool: str, tool_input: object) -> list[tuple[str, str]]:
        """Return ``[(path as spelled, how)]`` (`EDIT`, ...) of a call of one of `write_tools`. Raises ValueError."""
        if self.extract_changes is not None:
            return list(self.extract_changes(tool_input))
        if tool in self.replaces:
            how = REPLACE
        else:
            how = EDIT
        return [(path, how) for path in self.extract_paths(tool_input)]


def _paths_of(extract_changes: Callable[[object], Iterable[tuple[str, str]]]) -> Callable[[object], Iterable[str]]:
    return lambda tool_input: [path for path, _how in extract_changes(tool_input)]


def paths_under_keys(*keys: str) -> Callable[[object], list[str]]:
    """An ``extract_paths`` for tools that name their file under one of `keys`, first found first."""

    def extract(tool_input: object) -> list[str]:
        if not isinstance(tool_input, dict):
            raise ValueError("tool input is not an object")
        found = [tool_input[key] for key in keys if key in tool_input]
        paths = [value for value in found if isinstance(value, str) and value.strip()]
        if not paths:
            raise ValueError("no path in tool input")
        return paths

    return extract


def patch_or_path(patch: str, key: str, whole: str) -> Callable[[object], list[tuple[str, str]]]:
    """An ``extract_changes`` for tools that take a patch with headers under the key `patch`, or a path under `key`.

    The path's file is replaced by a call with the key `whole`, else edited.
    """
    named = paths_under_keys(key)

    def extract(tool_input: object) -> list[tuple[str, str]]:
        text, how = None, EDIT
        if isinstance(tool_input, dict):
            text = tool_input.get(patch)
            if whole in tool_input:
                how = REPLACE
        if isinstance(text, str):
            from swarm_hook_core.patch import changes_by_headers

            return changes_by_headers(text)
        return [(path, how) for path in named(tool_input)]

    return extract


def changes_in_patch(tool_input: object) -> list[tuple[str, str]]:
    """An ``extract_changes`` for tools that take an apply_patch envelope."""
    from swarm_hook_core.patch import patch_changes

    changes: dict[str, Any] = {}
    for folder, text in _patches(tool_input):
        changes.update((join(folder, path) if folder else path, how) for path, how in patch_changes(text))
    return list(changes.items())


def _patches(tool_input: object) -> list[tuple[str | None, str]]:
    """Return ``(folder or None, text)`` of each envelope in `tool_input`. Raises ValueError if there is no envelope."""
    from swarm_hook_core.patch import PatchUnreadable, patches_in

    patches = patches_in(tool_input)
    if not patches:
        raise PatchUnreadable("no patch envelope in tool input")
    return patches
