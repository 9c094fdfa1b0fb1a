"""Settings of Codex for one run alone, with ``-c path=value``: values as TOML, MCP servers and our hooks among them.

Of TOML (https://toml.io/en/v1.0.0) only text, whole numbers, truth, lists and tables are needed, all on one line. Codex
splits the path at every dot, quoted or not, so names that are not plain words go into inline tables.

The environment and headers of a server count as secret, so argv carries names of variables only: a server of its own
process gets its variables through a shell that renames them (Codex passes variables on under their own names alone, and
Codex itself must not run under a server's PATH), one behind HTTP through ``bearer_token_env_var`` and
``env_http_headers``.

Codex runs a hook only if ``hooks.state`` has its hash. ``--dangerously-bypass-hook-trust`` would run every hook that it
finds, also those that the user has never seen, so we state the trust in ours alone: the key is
``/<session-flags>/config.toml:<event>:<group>:<hook>``, the hash is SHA-256 of the hook as JSON with sorted keys (found
out by comparing with the answer of ``codex app-server`` to ``hooks/list``; Codex 0.169). Since a hook with a wrong hash
is skipped silently, each build of Codex is asked once for its way of counting.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core.state import make_private, read_private, state_dir, write_private
from swarm_mcp.agents.harness.query import McpServer
from swarm_mcp.agents.harness.servers import HiddenValues
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.runtimes.codex import AppServer

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_LARGEST = (1 << 63) - 1


def override(path: str, value: object) -> str:
    """Return ``path=value``. Raises Refused where a part of the dotted `path` is no plain word."""
    if not all(_is_plain(part) for part in path.split(".")):
        raise Refused(f"{path[:60]!r} cannot be the name of a setting")
    return f"{path}={toml_value(value)}"


def toml_value(value: object) -> str:
    """Return `value` (text, bool, int, float, list, mapping of texts) as TOML. Raises Refused for all else."""
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, int) and -_LARGEST - 1 <= value <= _LARGEST:
        return str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        if math.isnan(value):
            return "nan"
        if value > 0:
            return "inf"
        return "-inf"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(name))} = {toml_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    raise Refused(f"{type(value).__name__} cannot be written as a setting")


def _key(name: str) -> str:
    """`name` as a key: bare where it may be, else quoted."""
    if _is_plain(name):
        return name
    return toml_text(name)


def toml_text(value: str) -> str:
    """Return `value` as a TOML basic string. Half of a surrogate pair becomes U+FFFD."""
    return '"' + "".join(_escaped(character) for character in value) + '"'


def _is_plain(name: str) -> bool:
    """Return True if `name` needs no quotes."""
    return bool(name) and not set(name) - _PLAIN


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character < " " or character == "\x7f":
        return f"\\u{ord(character):04x}"
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return character


# The environment that Codex gives a server by itself is next to nothing; the shell only puts names right.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BEARER = re.compile(r"Bearer +(\S.*)", re.IGNORECASE)
CLIENT_TOOLS = "client_tools"
ALWAYS_APPROVED = ("swarm", CLIENT_TOOLS)
LONGEST_CALL_SECONDS = 24 * 3600  # of a function of the caller; Codex would give up after a minute
START_SECONDS = 30  # swarm's server is up within one; a user's own may be fetched first


class Servers(NamedTuple):
    """The ``-c`` values, and the variables that they name."""

    overrides: tuple[str, ...]
    env: dict[str, str]


def server_overrides(servers: Mapping[str, McpServer], approved: bool, taken: Mapping[str, str]) -> Servers:
    """Return the settings that give `servers` to one run. Raises Refused for an impossible one.

    approved    every tool may be called unasked (there is no person to ask); swarm's own always may
    taken       name -> ``"command"`` or ``"url"`` of the servers in the user's settings: Codex joins two tables of
                one name, and refuses to start with a server of both kinds, so ours gets another name then
    """
    hidden = HiddenValues()
    tables: dict[str, dict[str, Any]] = {}
    for given, server in servers.items():
        if server.url:
            kind = "url"
        else:
            kind = "command"
        name = re.sub(r"[^A-Za-z0-9_-]", "_", given) or "server"
        while name in tables or taken.get(name, kind) != kind:
            name += "_run"
        if server.url:
            table = _remote(server, name, hidden)
        else:
            table = _local(server, given, name, hidden)
        table.update(enabled=True, required=False, startup_timeout_sec=START_SECONDS)
        if given == CLIENT_TOOLS:
            table["tool_timeout_sec"] = LONGEST_CALL_SECONDS
        if approved or given in ALWAYS_APPROVED:
            table["default_tools_approval_mode"] = "approve"
        tables[name] = table
    if not tables:
        return Servers((), {})
    settings = [f"mcp_servers={toml_value(tables)}"]
    # The agent's own commands have no business with secrets. This table is joined with the user's, `exclude` is not.
    secrets = dict.fromkeys(hidden.secrets(), "")
    if secrets:
        settings.append(f"shell_environment_policy={toml_value({'set': secrets})}")
    return Servers(tuple(settings), hidden.env)


def _remote(server: McpServer, name: str, hidden: HiddenValues) -> dict[str, Any]:
    table: dict[str, Any] = {"url": server.url}
    headers = {}
    for header, value in server.headers.items():
        if header.lower() == "authorization":
            bearer = _BEARER.fullmatch(value.strip())
        else:
            bearer = None
        if bearer:
            table["bearer_token_env_var"] = hidden.name_for(name, header, bearer.group(1))
        else:
            headers[header] = hidden.name_for(name, header, value)
    if headers:
        table["env_http_headers"] = headers
    return table


def _local(server: McpServer, given: str, name: str, hidden: HiddenValues) -> dict[str, Any]:
    table: dict[str, Any] = {"command": server.command, "args": list(server.args)}
    if server.cwd:
        table["cwd"] = server.cwd
    if server.env:
        odd = next((variable for variable in server.env if not _VARIABLE.fullmatch(variable)), None)
        if odd is not None:
            raise Refused(f"the MCP server {given[:40]!r} cannot have a variable called {odd[:40]!r}")
        names = hidden.names_for(name, server.env)
        renaming = "".join(f'export {variable}="${made_up}"; unset {made_up}; ' for variable, made_up in names.items())
        table.update(
            command="/bin/sh",
            args=["-c", renaming + 'exec "$0" "$@"', server.command, *server.args],
            env_vars=list(names.values()),
        )
    return table


def configured_servers(*files: str) -> dict[str, str]:
    """Return name -> ``"command"`` or ``"url"`` of the MCP servers in these TOML files; unreadable files have none.

    It looks at section headers only: Python 3.10 has no TOML parser, and the result only tells if a name is free.
    """
    found: dict[str, str] = {}
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:  # no settings
            continue
        name = ""
        for line in lines:
            header = re.match(r"""\s*\[\s*mcp_servers\s*\.\s*["']?([^"'\].]+?)["']?\s*\]""", line)
            if header or line.lstrip().startswith("["):
                if header:
                    name = header.group(1)
                else:
                    name = ""
            kind = re.match(r"\s*(command|url)\s*=", line)
            if name and kind:
                found[name] = kind.group(1)
    return found


def settings_files(home: str, cwd: str) -> tuple[str, str]:
    """Return the paths of the user's settings and the project's."""
    return os.path.join(home, "config.toml"), os.path.join(cwd, ".codex", "config.toml")


SOURCE = "/<session-flags>/config.toml"
ROOT = "${CLAUDE_PLUGIN_ROOT}"
# The same plugin in the user's own settings would run the same hooks, and the same server, once more.
WITHOUT_THE_USERS_COPY = "plugins=" + toml_value({"swarm@swarm": {"enabled": False}})
_REMEMBERED = "codex-hooks.json"
LARGEST_MEMORY = 1 << 20  # bytes
_ANSWER_SECONDS = 20


def plugin_hooks(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return event -> groups of hooks of the plugin in `folder`, with its path put in. Raises SwarmError."""
    path = folder / "integrations" / "codex" / "hooks.json"
    try:
        text = path.read_text(encoding="utf-8")
        # Inside double quotes of a shell command line, inside a JSON string.
        place = re.sub(r'([\\"$`])', r"\\\1", str(folder))
        hooks = json.loads(text.replace(ROOT, json.dumps(place)[1:-1]))["hooks"]
        return {str(event): [dict(group) for group in groups] for event, groups in hooks.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SwarmError(f"the hooks in {path} cannot be understood: {error}") from None


# The file with the addition to the system prompt. Its hook is the same in every run, and so is the hash.
WORDS = "SWARM_RUN_WORDS"
_SAY_WORDS = {
    "type": "command",
    "command": f'[ -z "${WORDS}" ] || cat "${WORDS}"; exit 0',
    "timeout": 10,
    "additionalContextLimit": 0,  # else Codex shows the model no more than the beginning
}


def with_words(hooks: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return `hooks` with one more: at a session's start it prints the file of `written_words`."""
    return {**hooks, "SessionStart": [*hooks.get("SessionStart", []), {"hooks": [dict(_SAY_WORDS)]}]}


def written_words(text: str, folder: Path) -> dict[str, str]:
    """Put `text`, the addition to the system prompt, into the run's folder; return the variable with its path."""
    told = {"hookEventName": "SessionStart", "additionalContext": text}
    path = str(folder / "words.json")
    write_private(path, json.dumps({"hookSpecificOutput": told}))
    return {WORDS: path}


def hook_overrides(hooks: Mapping[str, list[dict[str, Any]]], trust: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ``-c`` values that give Codex `hooks` and say that those with a hash in `trust` are trusted."""
    state = {key: {"trusted_hash": value} for key, value in trust.items()}
    return (*(override(f"hooks.{event}", groups) for event, groups in hooks.items()), override("hooks.state", state))


def hashes(hooks: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return key -> hash of every hook, as Codex computes them."""
    return {
        f"{SOURCE}:{_snake(event)}:{at}:{nth}": _hash(_snake(event), group, hook)
        for event, groups in hooks.items()
        for at, group in enumerate(groups)
        for nth, hook in enumerate(group["hooks"])
    }


def trust_for(program: str, hooks: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the hashes that this build of Codex expects: its own where it could be asked, else ours."""
    ours = hashes(hooks)
    # The facts behind the answer: the file of Codex, and our hooks
    try:
        path = os.path.realpath(program)
        facts = os.stat(path)
    except OSError:  # no such program
        build = ""
    else:
        # Not the time of the last change: npm sets that to one day in 1985.
        seen = json.dumps([path, facts.st_ino, facts.st_size, facts.st_ctime_ns, sorted(ours.items())])
        build = hashlib.sha256(seen.encode()).hexdigest()
    if not build:
        return ours
    remembered = _recall(build)
    if remembered is None:
        remembered = hashes_from_codex(program, hooks)
        if remembered.keys() != ours.keys():
            return ours  # it could not be asked, or not about all of them; the next run tries again
        _remember(build, remembered)
    return remembered


def hashes_from_codex(program: str, hooks: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the hashes that Codex itself computes, empty where it cannot be asked. About 0.6 s, in an empty home."""
    words = [part for value in hook_overrides(hooks, {}) for part in ("-c", value)]
    with tempfile.TemporaryDirectory(prefix="swarm-codex-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "CODEX_HOME": scratch}
        try:
            with AppServer(program, *words, env=env, seconds=_ANSWER_SECONDS, cwd=scratch) as server:
                listed = server.call("hooks/list", {}).get("data", [])
            return {
                hook["key"]: hook["currentHash"]
                for entry in listed
                for hook in entry.get("hooks", [])
                if str(hook.get("key", "")).startswith(f"{SOURCE}:")
            }
        except (SwarmError, OSError, KeyError, TypeError, AttributeError):  # a Codex without such answers
            return {}


def _hash(event: str, group: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    handler = {"type": hook["type"], "command": hook["command"], "timeout": hook["timeout"], "async": False}
    if "additionalContextLimit" in hook:
        handler["additionalContextLimit"] = hook["additionalContextLimit"]
    identity: dict[str, Any] = {"event_name": event, "hooks": [handler]}
    if "matcher" in group:
        identity["matcher"] = group["matcher"]
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def _recall(build: str) -> dict[str, str] | None:
    try:
        said = json.loads(read_private(os.path.join(state_dir(), _REMEMBERED), LARGEST_MEMORY).decode())
        if said["build"] == build:
            return {str(key): str(value) for key, value in said["hashes"].items()}
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # nothing remembered yet
        return None


def _remember(build: str, said: Mapping[str, str]) -> None:
    path = os.path.join(state_dir(), _REMEMBERED)
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        make_private(state_dir())
        with open(scratch, "w", encoding="utf-8") as file:
            json.dump({"build": build, "hashes": dict(said)}, file)
        os.replace(scratch, path)
    except OSError:
        pass  # asked again next time
