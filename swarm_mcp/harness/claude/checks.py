"""Whether Claude Code could work here: files and variables are read, nothing is started."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.harness.adapter import ERROR, INFO, WARN, Check
from swarm_mcp.harness.query import YOLO
from swarm_mcp.runtimes.base import PLUGIN_ID

KEY = "ANTHROPIC_API_KEY"
TOKENS = ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN")
PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
LARGEST = 4 << 20


def checks(config: Mapping[str, object], instructions: str) -> list[Check]:
    """Implement ``HarnessAdapter.checks``; `instructions` say how to sign in."""
    more = config.get("env")
    env = {**os.environ, **(more if isinstance(more, Mapping) else {})}
    folder = configuration_folder(env)
    settings, troubles = _settings(folder, config.get("cwd"))
    found = [*_sign_in(env, folder, settings, instructions), *_plugin(settings), *_hooks(settings, config)]
    return [*troubles, *found, *_root(env, config)]


def _sign_in(env: Mapping[str, str], folder: Path, settings: list[dict], instructions: str) -> list[Check]:
    told = {name for name in (KEY, *TOKENS, *PROVIDERS) if str(env.get(name) or "").strip()}
    account = _account(env, folder)
    subscribed = bool(account.get("oauthAccount")) or (folder / ".credentials.json").is_file()
    if KEY in told:
        rather = "unset it to work on the subscription" if subscribed else "nothing, if that is what is wanted"
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
    level = WARN if sys.platform == "darwin" else ERROR
    return [Check("claude_not_signed_in", level, "no sign-in was found", hint, instructions)]


def _plugin(settings: list[dict]) -> list[Check]:
    enabled = [tree["enabledPlugins"] for tree in settings if isinstance(tree.get("enabledPlugins"), dict)]
    if any(plugins.get(PLUGIN_ID) is True for plugins in enabled):
        return [Check("claude_plugin", INFO, "the swarm plugin is installed; workers run the copy of this package")]
    hint = "swarm-mcp install --client claude-code"
    text = "the swarm plugin is not installed: workers bring it along, sessions of your own do without"
    return [Check("claude_plugin_missing", INFO, text, hint)]


def _hooks(settings: list[dict], config: Mapping[str, object]) -> list[Check]:
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


def _root(env: Mapping[str, str], config: Mapping[str, object]) -> list[Check]:
    if config.get("mode") != YOLO or os.geteuid() != 0 or env.get("IS_SANDBOX"):
        return []
    text = "as root the client refuses --dangerously-skip-permissions (mode yolo)"
    return [Check("claude_root", WARN, text, "run as another user; in a throw-away container, set IS_SANDBOX=1")]


def _settings(folder: Path, cwd: object) -> tuple[list[dict], list[Check]]:
    """The settings files of user and project that can be read, and what is wrong with the others."""
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


def _account(env: Mapping[str, str], folder: Path) -> dict:
    """What the client remembers of its sign-in."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    for path in (folder / ".claude.json",) if env.get("CLAUDE_CONFIG_DIR") else (home / ".claude.json",):
        try:
            return _read(path)
        except (OSError, ValueError):
            continue
    return {}


def _read(path: Path) -> dict:
    with open(path, "rb") as file:
        text = file.read(LARGEST)
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    if not isinstance(tree, dict):
        raise ValueError("it does not hold a JSON object")
    return tree


def configuration_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder where Claude Code keeps settings and transcripts."""
    home = env.get("HOME") or os.path.expanduser("~")
    return Path(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"))
