"""Claude Code (``claude -p --output-format stream-json``), as of 2.1.330.

Its fitness is judged by files and variables; nothing is started.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.agents.harness.adapter import (
    ERROR,
    INFO,
    WARN,
    Capabilities,
    Check,
    CommandPlace,
    HarnessAdapter,
    Launch,
)
from swarm_mcp.agents.harness.checks import environment_of
from swarm_mcp.agents.harness.claude.errors import error_of
from swarm_mcp.agents.harness.claude.launch import launch
from swarm_mcp.agents.harness.claude.stream import WINDOWS, cut_off, parse
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Ending, Price
from swarm_mcp.agents.harness.query import YOLO, Query, parse_object
from swarm_mcp.agents.harness.resumption import fits
from swarm_mcp.runtimes.base import PLUGIN_ID
from swarm_mcp.runtimes.claude_code import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
