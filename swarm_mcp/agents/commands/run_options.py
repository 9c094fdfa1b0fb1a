"""Options of both `run` and `dispatch` for the agent they start: prompt, skills, servers, variables, schema."""

from __future__ import annotations

from typing import Any

from swarm_mcp.agents.harness.query import parse_json
from swarm_mcp.cli.arguments import FOLDERS, Arguments, Option
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import clean

OPTIONS = (
    Option("--system-prompt TEXT", "more instructions for the agent, after the harness's own"),
    Option("--skill DIR", "a folder with a SKILL.md for the agent", repeatable=True, source=FOLDERS),
    Option("--schema FILE", "a JSON schema that the answer is to follow"),
    Option("--env KEY=VALUE", "a variable for the agent alone", repeatable=True),
    Option(
        "--mcp-config FILE",
        "more MCP servers for the agent, as a .mcp.json has them; ${NAME} in it is one of --env, or of this shell",
        repeatable=True,
    ),
)


def skills(args: Arguments) -> tuple[str, ...]:
    """Return the folders of `--skill`, absolute."""
    return tuple(clean(folder) for folder in args.all("--skill"))


def schema(args: Arguments) -> dict[str, Any]:
    """Return the schema of `--schema`; empty if it is not given. Raises UsageError."""
    path = args.value("--schema")
    if not path:
        return {}
    return _object("--schema", path, "JSON schema")


def variables(args: Arguments) -> dict[str, str]:
    """Return the variables of `--env`. Raises UsageError."""
    return dict(_pair(text) for text in args.all("--env"))


def servers(args: Arguments) -> dict[str, Any]:
    """Return name -> entry of the servers in the files of `--mcp-config`, the later before the earlier.

    Raises UsageError.
    """
    found: dict[str, Any] = {}
    for path in args.all("--mcp-config"):
        tree = _object("--mcp-config", path, "list of servers")
        listed = tree.get("mcpServers")
        if not isinstance(listed, dict):
            raise UsageError(f'--mcp-config: {path} has no "mcpServers"')
        found.update(listed)
    return found


def text_of(flag: str, path: str) -> str:
    """Return the text of the file that a flag names. Raises UsageError."""
    try:
        with open(clean(path), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{flag}: {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _object(flag: str, path: str, what: str) -> dict[str, Any]:
    found = parse_json(text_of(flag, path))
    if not isinstance(found, dict) or not found:
        raise UsageError(f"{flag}: {path} holds no {what}")
    return dict(found)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError("--env wants KEY=VALUE")  # the value is left out: it may be a secret
    return name, value
