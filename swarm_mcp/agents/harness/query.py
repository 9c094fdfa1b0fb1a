"""The request of a run, in words that every harness understands; and the same read from a configuration.

A configuration is a JSON object with the fields of a ``Query`` (without the child's identity). ``swarm-mcp worker run``
makes one of its flags, environment tests read one, and a caller may keep one in a file. It is read by type, with
fallbacks, never an exception.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Unpack

READ_ONLY, EDIT, YOLO = "read-only", "edit", "yolo"
MODES = (READ_ONLY, EDIT, YOLO)
EFFORTS = ("", "low", "medium", "high", "max")
GRACE_SECONDS = 15.0


# The fields of a ``Query`` as a Python caller may give them; ``query_types`` makes a run's own types of them.

PathLike = str | os.PathLike[str]
Word = str | os.PathLike[str] | int | float


class _ServerFields(NamedTuple):
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}


class McpServer(_ServerFields):
    """An MCP server that the child is to have: a command, or an address.

    command, args, env, cwd   of a server that speaks on its standard streams
    url, headers              of one behind HTTP
    Values of `env` and `headers` are secrets: they reach the child by its environment, never in argv.
    """

    __slots__ = ()
    if TYPE_CHECKING:  # a caller may give more types than a run has in the end (``query_types``)

        def __new__(
            cls, command: PathLike = "", args: Iterable[Word] = (), env: Mapping[str, Word] = {}, cwd: PathLike = "",
            url: str = "", headers: Mapping[str, Word] = {},
        ) -> McpServer: ...  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the server as configuration files have it."""
        if self.url:
            return {"type": "http", "url": self.url, "headers": dict(self.headers)}
        if self.cwd:
            place = {"cwd": self.cwd}
        else:
            place = {}
        return {"command": self.command, "args": list(self.args), "env": dict(self.env), **place}


Server = McpServer | Mapping[str, Any]


class PermissionRequest(NamedTuple):
    """A client's question: may this tool be called with these arguments? `reason` is its own words, often empty."""

    tool_name: str
    args: dict[str, Any]
    reason: str = ""


class Options(TypedDict, total=False):
    """All fields but the prompt and the folder."""

    mode: str
    model: str
    effort: str
    system_prompt: str
    append_system_prompt: str
    additional_directories: Iterable[PathLike]
    env: Mapping[str, Word]
    resume_session_id: str
    fork_session: bool
    output_schema: dict[str, Any] | type | None
    mcp_servers: Mapping[str, Server]
    client_tools: Iterable[Callable[..., Any]]
    skills: Iterable[PathLike]
    additional_args: Iterable[Word]
    command: Iterable[Word]
    timeout_seconds: float
    grace_seconds: float
    max_cost_usd: float
    max_turns: int
    instance_id: str
    scope: str
    label: str
    role: str
    task_id: str
    requester_id: str
    run_id: str
    iteration: int
    api_url: str
    api_key: str
    log_file: PathLike
    images: Iterable[PathLike]
    stream_text: bool
    on_permission: Callable[[PermissionRequest], bool | str | None | Awaitable[bool | str | None]] | None


class _QueryFields(NamedTuple):
    prompt: str
    cwd: str
    mode: str = EDIT
    model: str = ""
    effort: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    additional_directories: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    resume_session_id: str = ""
    fork_session: bool = False
    output_schema: dict[str, Any] | None = None
    mcp_servers: Mapping[str, McpServer] = {}
    client_tools: tuple[Callable[..., Any], ...] = ()
    skills: tuple[str, ...] = ()
    additional_args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    timeout_seconds: float = 0.0
    grace_seconds: float = GRACE_SECONDS
    max_cost_usd: float = 0.0
    max_turns: int = 0
    instance_id: str = ""
    scope: str = ""
    label: str = ""
    role: str = ""
    task_id: str = ""
    requester_id: str = ""
    run_id: str = ""
    iteration: int = 0
    api_url: str = ""
    api_key: str = ""
    log_file: str = ""
    images: tuple[str, ...] = ()
    stream_text: bool = False
    on_permission: Callable[..., Any] | None = None


class Query(_QueryFields):
    """One run. Empty values count as not given.

    prompt             the agent's instructions; sent to the child's standard input if that can take it
    cwd                absolute folder to work in
    mode               ``read-only``: may write no file; ``edit`` (default): files of its folder; ``yolo``: also
                       anything that the harness's own checks would forbid. Locks hold in all three
    model, effort      in the harness's names; a short name is expanded by the adapter
    system_prompt      instead of the harness's own, if it can; `append_system_prompt`: behind it
    resume_session_id  continue that session; with `fork_session` in a copy
    output_schema      JSON schema of the answer, or a dataclass or pydantic model (``RunResult.structured``)
    mcp_servers        name -> server, beside those of the user; `client_tools`: Python functions to be served
    skills             absolute folders, each with a SKILL.md, to be found without a file in `cwd`
    additional_args    appended to argv as they stand; `env`: added to the child's environment
    command            argv of the harness ``session_hooks``; of others, words that start it instead of its own name
    timeout_seconds    0 without one; `grace_seconds` from TERM to KILL; `max_cost_usd`, `max_turns`: 0 without a limit
    instance_id, scope, label, role, task_id, requester_id, run_id   the child's identity in the swarm
    iteration          the round of a surrounding loop, 0 without one; the child has it as ``SWARM_ITERATION``
    api_url, api_key   the child's way back to its starter, as ``SWARM_API_URL`` and ``SWARM_API_KEY``; the
                       key is a secret
    log_file           one more file for the record's lines
    images             paths of pictures that belong to the prompt
    stream_text        pieces of the answer come as ``TextDelta`` events, as they are written
    on_permission      answers a client's questions in mode edit, in a thread of its own: called with a
                       ``PermissionRequest``, True allows; False, a text (the reason) or an exception refuses. May be
                       async. Without it everything that a client would ask is refused
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __new__(cls, prompt: str, cwd: PathLike, **options: Unpack[Options]) -> Query: ...


def server_of(entry: object) -> McpServer | None:
    """Return the server in an entry of a configuration (``McpServer.to_dict``, or the form of ``.mcp.json``).

    None for invalid entries, and for kinds that some harnesses cannot have (sse, ws).
    """
    if isinstance(entry, McpServer):
        return entry
    if not isinstance(entry, Mapping):
        return None
    kind = entry.get("type") or ("stdio" if entry.get("command") else "http")
    if kind == "stdio" and isinstance(entry.get("command"), str):
        args = entry.get("args")
        if isinstance(args, (list, tuple)):
            words = tuple(map(str, args))
        else:
            words = ()
        return McpServer(entry["command"], words, _texts(entry.get("env")), str(entry.get("cwd") or ""))
    if kind in ("http", "streamable-http", "streamableHttp") and isinstance(entry.get("url"), str):
        return McpServer(url=entry["url"], headers=_texts(entry.get("headers")))
    return None


def _texts(table: object) -> dict[str, str]:
    if not isinstance(table, Mapping):
        return {}
    return {str(name): str(value) for name, value in table.items()}


DEFAULTS = {"timeout_seconds": 0.0, "grace_seconds": GRACE_SECONDS}


def as_string(value: object, fallback: str = "") -> str:
    """Return `value` if it is text that is not blank, else `fallback`."""
    if isinstance(value, str) and value.strip():
        return value
    return fallback


def as_number(value: object, fallback: float = 0.0) -> float:
    """Return `value` as a finite number, also from text, else `fallback`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return fallback
    try:
        number = float(value)
    except (ValueError, OverflowError):  # no number
        return fallback
    if math.isfinite(number):
        return number
    return fallback


def as_boolean(value: object, fallback: bool = False) -> bool:
    """Return `value` if it is a bool, or the bool that it is a word for, else `fallback`."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False,
                "0": False}.get(value.strip().lower(), fallback)  # fmt: skip
    if isinstance(value, bool):
        return value
    return fallback


def as_string_array(value: object, fallback: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the texts of a list that are not blank; `fallback` where it is no list."""
    if not isinstance(value, (list, tuple)):
        return fallback
    return tuple(one for one in value if isinstance(one, str) and one.strip())


def parse_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, also in JSON text, else an empty one."""
    if isinstance(value, (str, bytes)):
        found = parse_json(value)
    else:
        found = value
    if isinstance(found, Mapping):
        return dict(found)
    return {}


def parse_json(text: object, fallback: object = None) -> object:
    """Return the value in a JSON text, `fallback` for any other text."""
    if not isinstance(text, (str, bytes, bytearray)):
        return fallback
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON
        return fallback


def build_config(values: Mapping[str, object]) -> dict[str, Any]:
    """Return a configuration from the values of a form or a command line, without empty ones, with time limits."""
    empty: tuple[object, ...] = (None, "", (), [], {})
    given = {name: value for name, value in values.items() if not any(value is one or value == one for one in empty)}
    return {**DEFAULTS, **given}


def query_of(prompt: str, config: Mapping[str, object]) -> Query:
    """Return the query that a configuration describes; unreadable values count as not given."""
    env = parse_object(config.get("env"))
    listed = [(str(name), server_of(entry)) for name, entry in parse_object(config.get("mcp_servers")).items()]
    return Query(
        prompt,
        cwd=as_string(config.get("cwd")),
        model=as_string(config.get("model")),
        effort=as_string(config.get("effort")),
        system_prompt=as_string(config.get("system_prompt")),
        append_system_prompt=as_string(config.get("append_system_prompt")),
        resume_session_id=as_string(config.get("resume_session_id")),
        additional_directories=as_string_array(config.get("additional_directories")),
        skills=as_string_array(config.get("skills")),
        additional_args=as_string_array(config.get("additional_args")),
        command=as_string_array(config.get("command")),
        mode=as_string(config.get("mode"), EDIT),
        fork_session=as_boolean(config.get("fork_session")),
        output_schema=parse_object(config.get("output_schema")) or None,
        timeout_seconds=as_number(config.get("timeout_seconds")),
        grace_seconds=as_number(config.get("grace_seconds"), GRACE_SECONDS),
        max_cost_usd=as_number(config.get("max_cost_usd")),
        max_turns=int(as_number(config.get("max_turns"))),
        env={str(name): value for name, value in env.items() if isinstance(value, str)},
        mcp_servers={name: server for name, server in listed if server},
        iteration=int(as_number(config.get("iteration"))),
        api_url=as_string(config.get("api_url")),
        api_key=as_string(config.get("api_key")),
        log_file=as_string(config.get("log_file")),
    )
