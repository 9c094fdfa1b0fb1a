"""The start of Claude Code: its flags, and a run's private files.

The effects of flags were measured on 2.1.330:

- ``--plugin-dir`` replaces an installed plugin of the same name, also a disabled one, so that every hook is ours and
  runs once.
- A server of ``--mcp-config`` comes before one of the same name in the user's or the project's files, and a plugin's
  server with
  the same command is left out. ``--strict-mcp-config`` would take away the user's own servers.
- ``${NAME}`` in that file is expanded from the environment, once; ``cwd`` in it is ignored.
- ``--tools`` takes tools away from sub-agents as well, over the user's settings.
- A resumed session repeats its first system prompt unless ``--system-prompt-snapshot off``.
- ``--max-turns``, ``--system-prompt-file`` and ``--append-system-prompt-file`` exist, though ``--help`` does not list
  them.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import re
from pathlib import Path

from swarm_hook_core.environment import first_set
from swarm_mcp.agents.harness.adapter import Launch
from swarm_mcp.agents.harness.permissions import SERVER, TOOL, asks
from swarm_mcp.agents.harness.plugin import plugin_folder
from swarm_mcp.agents.harness.private_folder import written
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query
from swarm_mcp.agents.harness.servers import (
    CLIENT_TOOLS,
    NOT_FOR_READERS,
    OURS,
    SWITCH,
    HiddenValues,
    names_in_mode,
    project_servers,
    words_of,
)
from swarm_mcp.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STREAM = ("-p", "--output-format", "stream-json", "--verbose")
# The tools of a read-only run: reading, searching, and errands of the same kind.
READING = ("Read", "Grep", "Glob", "Agent", "Skill", "ToolSearch", "WebFetch", "WebSearch")
# The plugin's own server. The client leaves it out while ours is the same.
PLUGIN_SERVER = "plugin_swarm_swarm"
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
ALLOW = "SWARM_HARNESS_CLAUDE_ALLOW"
# No update in the middle of a run, nor in twenty at once.
CALM = {"DISABLE_AUTOUPDATER": "1"}
# The client gives up on a call over HTTP after a minute. A person, or a function of the caller, may take longer.
LONGEST_CALL_MS = 24 * 3600 * 1000
LONGEST_WORD = 128 * 1024 - 1  # bytes of one word of argv (Linux: MAX_ARG_STRLEN)


def launch(query: Query, folder: Path, model: str) -> Launch:
    """Implement ``HarnessAdapter.launch``. Raises Refused for a schema that is too long for argv."""
    hidden = HiddenValues()
    servers = {name: _entry(name, query.mcp_servers[name], hidden) for name in names_in_mode(query)}
    env = hidden.env
    argv = [*(query.command or ("claude",)), *STREAM, "--plugin-dir", str(plugin_folder())]
    argv += ["--mcp-config", written(folder / "mcp.json", json.dumps({"mcpServers": servers}))]
    if query.mode == READ_ONLY or first_set(SWITCH).lower() in ("0", "false", "no", "off"):
        argv.append("--strict-mcp-config")
    argv += _permissions(query)
    if model:
        argv += ["--model", model]
    if query.effort:
        argv += ["--effort", query.effort]
    argv += _prompts(query, folder)
    if not query.resume_session_id:
        session = []
    else:
        session = ["--resume", query.resume_session_id, *(["--fork-session"] if query.fork_session else [])]
    argv += session
    directories = [*query.additional_directories, *_skills(query, folder)]
    if directories:
        argv += ["--add-dir", *directories]
    if query.output_schema is not None:
        text = json.dumps(query.output_schema)
        if len(text.encode()) > LONGEST_WORD:
            raise Refused(
                f"the output schema is too long for Claude Code's command line ({LONGEST_WORD} bytes at most)"
            )
        argv += ["--json-schema", text]
    if query.max_cost_usd > 0:
        argv += ["--max-budget-usd", f"{query.max_cost_usd:.10g}"]
    if query.max_turns > 0:
        argv += ["--max-turns", str(query.max_turns)]
    env.update({name: value for name, value in CALM.items() if not (query.env.get(name) or os.environ.get(name))})
    if query.stream_text:
        argv.append("--include-partial-messages")
    if query.images:
        argv += ["--input-format", "stream-json"]
        return Launch((*argv, *query.additional_args), env, _with_images(query))
    return Launch((*argv, *query.additional_args), env, query.prompt)


def _with_images(query: Query) -> str:
    """Return the prompt and its images as a line for ``--input-format stream-json``. Raises Refused."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": query.prompt}]
    for path in query.images:
        kind = mimetypes.guess_type(path)[0]
        if kind not in PICTURES:
            raise Refused(f"{path} is no picture that Claude Code takes: {', '.join(PICTURES)}")
        data = base64.b64encode(Path(query.cwd, path).read_bytes()).decode()
        parts.append({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
    return json.dumps({"type": "user", "message": {"role": "user", "content": parts}}) + "\n"


def _permissions(query: Query) -> list[str]:
    if query.mode == YOLO:
        return ["--dangerously-skip-permissions"]
    if query.mode == READ_ONLY:
        allowed = [*READING, _all_of(OURS), _all_of(PLUGIN_SERVER), _all_of(CLIENT_TOOLS)]
        return [
            "--permission-mode", "dontAsk", "--tools", ",".join(READING), "--allowedTools", ",".join(allowed),
            "--disallowedTools",
            ",".join(f"mcp__{server}__{tool}" for tool in NOT_FOR_READERS for server in (OURS, PLUGIN_SERVER)),
        ]  # fmt: skip
    # The project's servers are commands that a checkout brings along: the user's own rules decide on them.
    foreign = project_servers(query.cwd, query.env)
    given = [name for name, server in query.mcp_servers.items() if foreign.get(name) != server and name != SERVER]
    allowed = [_all_of(name) for name in dict.fromkeys([OURS, PLUGIN_SERVER, *given])]
    more = first_set(ALLOW)
    if asks(query):
        asked = ["--permission-prompt-tool", f"mcp__{SERVER}__{TOOL}"]
    else:
        asked = []
    return ["--permission-mode", "acceptEdits", *asked, "--allowedTools",
            ",".join([*allowed, *([more] if more else [])])]  # fmt: skip


def _all_of(server: str) -> str:
    return f"mcp__{_plain(server)}__*"


def _plain(name: str) -> str:
    """A server's name as the client has it in the names of tools."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _prompts(query: Query, folder: Path) -> list[str]:
    """Write the system prompts to files: they may be too long for argv, and are private."""
    words = []
    if query.system_prompt:
        words += ["--system-prompt-file", written(folder / "system.md", query.system_prompt)]
    if query.append_system_prompt:
        words += ["--append-system-prompt-file", written(folder / "append.md", query.append_system_prompt)]
    if words and query.resume_session_id:
        words += ["--system-prompt-snapshot", "off"]
    return words


def _skills(query: Query, folder: Path) -> list[str]:
    """A folder of links that the client finds skills in. Those that the plugin brings need no second mention."""
    brought = os.path.realpath(plugin_folder() / "skills")
    wanted = [path for path in query.skills if not _is_ours(path, brought)]
    if not wanted:
        return []
    home = folder / "skills" / ".claude" / "skills"
    home.mkdir(parents=True, mode=0o700)
    for path in wanted:
        (home / os.path.basename(os.path.normpath(path))).symlink_to(path)
    return [str(folder / "skills")]


def _is_ours(path: str, brought: str) -> bool:
    """Return True if the plugin has a skill of that name with the same words in it."""
    try:
        ours = Path(brought, os.path.basename(os.path.normpath(path)), "SKILL.md").read_bytes()
        return Path(path, "SKILL.md").read_bytes() == ours
    except OSError:  # one of the two is missing
        return False


def _entry(name: str, server: McpServer, hidden: HiddenValues) -> dict[str, Any]:
    values = hidden.names_in(name, server)
    references = {key: f"${{{variable}}}" for key, variable in values.items()}
    if server.url:
        patience = {"timeout": LONGEST_CALL_MS} if name in (CLIENT_TOOLS, SERVER) else {}
        return {"type": "http", "url": server.url, "headers": references, **patience}
    words = words_of(server)
    return {"type": "stdio", "command": words[0], "args": words[1:], "env": references}
