"""Claude Code (``claude -p --output-format stream-json``), as of 2.1.330.

Its fitness is judged by files and variables; nothing is started.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_hook_core.environment import first_set
from swarm_mcp.agents.harness.adapter import (
    ERROR,
    INFO,
    PERMISSION_TOOL,
    PERMISSIONS,
    WARN,
    Capabilities,
    Check,
    CommandPlace,
    HarnessAdapter,
    Launch,
    asks,
)
from swarm_mcp.agents.harness.claude_stream import WINDOWS, cut_off, error_of, parse
from swarm_mcp.agents.harness.conclusion import fits
from swarm_mcp.agents.harness.environment import plugin_folder, written
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Ending, Price
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query, parse_object
from swarm_mcp.agents.harness.registry import environment_of
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
from swarm_mcp.runtimes.base import PLUGIN_ID
from swarm_mcp.runtimes.claude_code import home

# The start of Claude Code: its flags, and a run's private files.
#
# The effects of flags were measured on 2.1.330:
#
# - ``--plugin-dir`` replaces an installed plugin of the same name, also a disabled one, so that every hook is ours and
# runs once.
# - A server of ``--mcp-config`` comes before one of the same name in the user's or the project's files, and a plugin's
# server with
# the same command is left out. ``--strict-mcp-config`` would take away the user's own servers.
# - ``${NAME}`` in that file is expanded from the environment, once; ``cwd`` in it is ignored.
# - ``--tools`` takes tools away from sub-agents as well, over the user's settings.
# - A resumed session repeats its first system prompt unless ``--system-prompt-snapshot off``.
# - ``--max-turns``, ``--system-prompt-file`` and ``--append-system-prompt-file`` exist, though ``--help`` does not list
# them.

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
    # Write the system prompts to files: they may be too long for argv, and are private.
    words = []
    if query.system_prompt:
        words += ["--system-prompt-file", written(folder / "system.md", query.system_prompt)]
    if query.append_system_prompt:
        words += ["--append-system-prompt-file", written(folder / "append.md", query.append_system_prompt)]
    if words and query.resume_session_id:
        words += ["--system-prompt-snapshot", "off"]
    argv += words
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
    given = [name for name, server in query.mcp_servers.items() if foreign.get(name) != server and name != PERMISSIONS]
    allowed = [_all_of(name) for name in dict.fromkeys([OURS, PLUGIN_SERVER, *given])]
    more = first_set(ALLOW)
    if asks(query):
        asked = ["--permission-prompt-tool", f"mcp__{PERMISSIONS}__{PERMISSION_TOOL}"]
    else:
        asked = []
    return ["--permission-mode", "acceptEdits", *asked, "--allowedTools",
            ",".join([*allowed, *([more] if more else [])])]  # fmt: skip


def _all_of(server: str) -> str:
    return f"mcp__{_plain(server)}__*"


def _plain(name: str) -> str:
    """A server's name as the client has it in the names of tools."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


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
        patience = {"timeout": LONGEST_CALL_MS} if name in (CLIENT_TOOLS, PERMISSIONS) else {}
        return {"type": "http", "url": server.url, "headers": references, **patience}
    words = words_of(server)
    return {"type": "stdio", "command": words[0], "args": words[1:], "env": references}


DATED = "2026-10-10"


class Claude(HarnessAdapter):
    """The harness ``claude``."""

    name = "claude"
    label = "Claude Code"
    program = "claude"
    home_variables = ("CLAUDE_CONFIG_DIR",)
    instructions = (
        "npm install -g @anthropic-ai/claude-code, then run `claude` once and sign in with /login;"
        " without a terminal: CLAUDE_CODE_OAUTH_TOKEN (from `claude setup-token`) or ANTHROPIC_API_KEY"
    )
    # The client's own aliases stay as they are: it knows their meaning at this user's provider.
    models = {
        "opus": "opus", "sonnet": "sonnet", "haiku": "haiku", "fable": "fable",
        "fable-5.1": "claude-fable-5-1", "opus-5.5": "claude-opus-5-5", "opus-5": "claude-opus-5",
        "sonnet-5.5": "claude-sonnet-5-5", "haiku-5.5": "claude-haiku-5-5", "haiku-4.5": "claude-haiku-4-5",
    }  # fmt: skip
    # Published list prices, for results without a cost. Haiku 5.5 is missing: its price depends on the length of the
    # prompt, and a sum of tokens does not tell that.
    prices = {
        "claude-fable-5-1": Price(10.0, 0.25, 50.0, DATED, 12.5),
        "claude-opus-5-5": Price(4.0, 0.2, 20.0, DATED, 5.0),
        "claude-opus-5": Price(5.0, 0.5, 25.0, DATED, 6.25),
        "claude-opus-4-8": Price(5.0, 0.5, 25.0, DATED, 6.25),
        "claude-sonnet-5-5": Price(2.0, 0.1, 10.0, DATED, 2.5),
        "claude-sonnet-5": Price(2.0, 0.2, 10.0, DATED, 2.5),
        "claude-haiku-4-5": Price(1.0, 0.1, 5.0, DATED, 1.25),
    }
    capabilities = Capabilities(
        resume=True, fork=True, read_only=True, system_prompt=True, append_system_prompt=True, mcp=True,
        client_tools=True, native_skills=True, output_schema=True, cost=True, locks=True, model=True, effort=True,
        directories=True, max_cost=True, max_turns=True, streaming_tokens=True, permissions=True, images=True,
    )  # fmt: skip
    # total_cost_usd goes on counting over resumed and forked sessions; tokens are counted per run.
    cumulative = frozenset({"cost"})
    doc = """\
Runs Claude Code without a terminal, with the swarm's hooks and tools, whatever the user's own settings have.
Use when the work is programming in a checkout, or anything that Claude Code does well by itself.
Do not use when a person must be asked in the middle: a call that needs a permission is refused (from Python,
on_permission decides), and the agent goes on. Do not use when commands must run confined: it has no sandbox here.
Modes: edit (default) writes files of its folder and uses the swarm's tools and the servers of the query; commands
run as far as the user's own permission rules and the client's list of harmless commands allow. read-only has no tool
that writes or runs commands, and no servers but the swarm's. yolo (dangerous) asks for nothing; locks still hold.
Settings: model (the client's default; CLAUDE_DEFAULT_MODEL), effort (the model's), mode (edit), timeout_seconds
(0: none), grace_seconds (15), max_cost_usd (0: none), max_turns (0: none), env, additional_args,
additional_directories, output_schema, resume_session_id, fork_session (false), system_prompt (the client's own),
append_system_prompt, mcp_servers, skills, command (claude).
SWARM_HARNESS_CLAUDE_ALLOW: more tools that mode edit may use, as the client writes them: "Bash(make *),WebFetch".
SWARM_HARNESS_PROJECT_SERVERS=0: no servers but the swarm's and those of the query."""

    def launch(self, query: Query, folder: Path) -> Launch:
        return launch(query, folder, self.model(query))

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        return parse(line, state)

    def finish(self, state: dict[str, Any]) -> list[Event]:
        return cut_off(state)

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        return error_of(ending)

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return True if the session's transcript exists and is of this folder: the client would continue any."""
        if not fits(self, session_id):
            return False
        try:
            # The folders are named by cwd, in a way that is the client's own.
            with os.scandir(home() / "projects") as folders:
                files = [os.path.join(entry.path, f"{session_id}.jsonl") for entry in folders]
        except OSError:  # no sessions yet
            return False
        began = [_folder_of(file) for file in files if os.path.isfile(file)]
        return any(not (cwd and folder) or os.path.realpath(folder) == os.path.realpath(cwd) for folder in began)

    def command_places(self, cwd: str) -> list[CommandPlace]:
        folders = (str(home()), os.path.join(cwd, ".claude"))
        return [
            *(CommandPlace(os.path.join(folder, "skills")) for folder in folders),
            *(CommandPlace(os.path.join(folder, "commands"), ".md") for folder in reversed(folders)),
        ]

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        env = environment_of(config)
        folder = home(env)
        settings, troubles = _settings(folder, config.get("cwd"))
        found = [*_sign_in(env, folder, settings, self.instructions), *_plugin(settings), *_hooks(settings, config)]
        if config.get("mode") != YOLO or os.geteuid() != 0 or env.get("IS_SANDBOX"):
            root = []
        else:
            text = "as root the client refuses --dangerously-skip-permissions (mode yolo)"
            root = [
                Check("claude_root", WARN, text, "run as another user; in a throw-away container, set IS_SANDBOX=1")
            ]
        return [*troubles, *found, *root]

    def listed_models(self) -> list[dict[str, Any]]:
        return [{**model, "context_tokens": WINDOWS.get(model["name"])} for model in super().listed_models()]


KEY = "ANTHROPIC_API_KEY"
TOKENS = ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN")
PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
LARGEST = 4 << 20
BEGINNING = 1 << 20  # bytes at the beginning of a transcript that are searched for its folder


def _sign_in(env: Mapping[str, str], folder: Path, settings: list[dict[str, Any]], instructions: str) -> list[Check]:
    told = {name for name in (KEY, *TOKENS, *PROVIDERS) if str(env.get(name) or "").strip()}
    account = _account(env, folder)
    subscribed = bool(account.get("oauthAccount")) or (folder / ".credentials.json").is_file()
    if KEY in told:
        if subscribed:
            rather = "unset it to work on the subscription"
        else:
            rather = "nothing, if that is what is wanted"
        text = f"{KEY} is set: runs are billed to that key by use, not to a subscription"
        return [Check("claude_api_key", WARN, text, rather)]
    if told:
        return [Check("claude_signed_in", INFO, f"signed in by {', '.join(sorted(told))}")]
    if subscribed or account.get("primaryApiKey"):
        return [Check("claude_signed_in", INFO, f"signed in, as {folder} has it")]
    if any(tree.get("apiKeyHelper") for tree in settings):
        return [Check("claude_signed_in", INFO, "a command of the settings brings the key (apiKeyHelper)")]
    hint = f"any of: `claude` and /login, {', '.join((*TOKENS, KEY))}, apiKeyHelper in settings.json"
    # A Mac keeps the sign-in in its keychain, and looking there would ask the user.
    if sys.platform == "darwin":
        level = WARN
    else:
        level = ERROR
    return [Check("claude_not_signed_in", level, "no sign-in was found", hint, instructions)]


def _plugin(settings: list[dict[str, Any]]) -> list[Check]:
    enabled = [tree["enabledPlugins"] for tree in settings if isinstance(tree.get("enabledPlugins"), dict)]
    if any(plugins.get(PLUGIN_ID) is True for plugins in enabled):
        return [Check("claude_plugin", INFO, "the swarm plugin is installed; workers run the copy of this package")]
    hint = "swarm-mcp install --client claude-code"
    text = "the swarm plugin is not installed: workers bring it along, sessions of your own do without"
    return [Check("claude_plugin_missing", INFO, text, hint)]


def _hooks(settings: list[dict[str, Any]], config: Mapping[str, object]) -> list[Check]:
    found = []
    if any(tree.get("disableAllHooks") is True for tree in settings):
        text = "hooks are switched off: locks do not hold workers back"
        found.append(Check("claude_hooks_off", WARN, text, "take disableAllHooks out of settings.json"))
    words = config.get("additional_args")
    silent = {"--bare", "--safe-mode"} & set(map(str, words if isinstance(words, (list, tuple)) else ()))
    if silent:
        text = f"{sorted(silent)[0]} switches hooks off: locks do not hold workers back"
        found.append(Check("claude_hooks_off", WARN, text, "leave it out of additional_args"))
    return found


def _folder_of(transcript: str) -> str:
    """Return the folder where a session began, as the first line of its transcript that has one says; else empty."""
    try:
        with open(transcript, "rb") as file:
            lines = file.read(BEGINNING).split(b"\n")
    except OSError:  # removed meanwhile
        return ""
    for line in lines:
        if b'"cwd"' in line:
            folder = parse_object(line).get("cwd")
        else:
            folder = None
        if isinstance(folder, str) and folder:
            return folder
    return ""


def _settings(folder: Path, cwd: object) -> tuple[list[dict[str, Any]], list[Check]]:
    """Return the readable settings files of user and project, and the faults of the others."""
    places = [folder / "settings.json"]
    if isinstance(cwd, str) and cwd:
        places += [Path(cwd, ".claude", name) for name in ("settings.json", "settings.local.json")]
    trees, troubles = [], []
    for path in places:
        try:
            if path.is_file():
                trees.append(_read(path))
        except (OSError, ValueError) as error:
            text = f"{path} cannot be read, and the client will ignore it"
            troubles.append(Check("claude_settings_unreadable", WARN, text, "mend or remove it", str(error)[:200]))
    return trees, troubles


def _account(env: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return the client's record of its sign-in."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    for path in (folder / ".claude.json",) if env.get("CLAUDE_CONFIG_DIR") else (home / ".claude.json",):
        try:
            return _read(path)
        except (OSError, ValueError):  # not there, or not JSON
            continue
    return {}


def _read(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(LARGEST)
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    if not isinstance(tree, dict):
        raise ValueError("it does not hold a JSON object")
    return tree
