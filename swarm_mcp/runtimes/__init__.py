"""The registry of runtimes, the agent clients that have a plugin: a line each (see docs/dev/adding-a-runtime.md)."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.config import RuntimeConfig
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import config_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.runtimes.base import Runtime

# Name -> module and class, in the order of lists for people. They are imported on demand: servers, and commands that
# hooks start, hardly ever need one.
_CLASSES = {
    "claude-code": ("claude_code", "ClaudeCode"),
    "codex": ("codex", "Codex"),
    "copilot": ("copilot", "Copilot"),
    "gemini": ("gemini", "Gemini"),
    "qwen": ("gemini", "Qwen"),
    "grok": ("grok", "Grok"),
    "opencode": ("opencode", "OpenCode"),
    "kilo": ("opencode", "Kilo"),
    "kimi": ("kimi", "Kimi"),
    "cline": ("cline", "Cline"),
    "hermes": ("hermes", "Hermes"),
    "cursor": ("in_users_file", "Cursor"),
    "pi": ("pi", "Pi"),
    "omp": ("pi", "Omp"),
    "letta": ("in_users_file", "Letta"),
    "auggie": ("in_users_file", "Auggie"),
    "hs": ("hs", "Hs"),
}
NAMES = tuple(_CLASSES)
# Variables that clients set in their agents' shells: the session's whole id, and a sign of an agent's shell, with its
# runtime. They stand here because commands read them without loading a runtime.
SESSION_ID_VARIABLES = (
    "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "CODEX_SESSION_ID", "COPILOT_AGENT_SESSION_ID",
    "QWEN_CODE_SESSION_ID", "GROK_SESSION_ID", "OPENCODE_SESSION_ID", "KILO_SESSION_ID",
    "HERMES_SESSION_ID", "CURSOR_CONVERSATION_ID", "LETTA_PARENT_AGENT_ID", "LETTA_AGENT_ID", "SWARM_ACP_SESSION_ID",
)  # fmt: skip
SHELL_VARIABLES = {
    **dict.fromkeys(SESSION_ID_VARIABLES, ""), "CLAUDECODE": "claude-code", "CODEX_CI": "codex",
    "COPILOT_CLI": "copilot", "GEMINI_CLI": "gemini", "GROK_AGENT": "grok", "OPENCODE": "opencode", "KILO": "kilo",
    "CURSOR_AGENT": "cursor", "OMPCODE": "omp", "AUGMENT_AGENT": "auggie",
}  # fmt: skip
# The clients in which outdated texts can be merged (`RuntimeConfig.merges`), with the prefixes of their variables. Here
# for the same reason.
MERGING = {
    "claude-code": "CC", "codex": "CODEX", "copilot": "COPILOT", "gemini": "GEMINI", "opencode": "OPENCODE",
    "cline": "CLINE", "pi": "PI",
}  # fmt: skip
DEFAULT_HARNESS = "claude"
_runtimes: dict[str, Runtime] = {}


def runtime(name: str) -> Runtime:
    """Return the runtime called `name`. Raises UsageError."""
    _known(name)
    if name not in _runtimes:
        from importlib import import_module

        module, class_name = _CLASSES[name]
        _runtimes[name] = getattr(import_module(f"swarm_mcp.runtimes.{module}"), class_name)()
    return _runtimes[name]


def chosen(names: str) -> list[Runtime]:
    """Return runtimes by comma-separated names; ``all`` or nothing means every one that is installed here."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    if not words or words == ["all"]:
        return [found for found in map(runtime, NAMES) if found.program()]
    return [runtime(word) for word in words]


def hook_config(name: str) -> RuntimeConfig:
    """Return the runtime's RuntimeConfig. Raises UsageError."""
    _known(name)
    return config_of(name)


def _known(name: str) -> None:
    if name not in _CLASSES:
        raise UsageError(f"unknown client {name!r}; choose from {', '.join(NAMES)}, all")


def of_call(meta: dict[str, Any]) -> str:
    """Return the runtime that names the calling session in a tool call's metadata, or an empty text."""
    return next((name for name in NAMES if runtime(name).call_mark and runtime(name).call_mark in meta), "")


def harness_of(origin: str) -> str:
    """Return the harness that starts sessions of the runtime `origin` (from a label), or an empty text."""
    if origin in NAMES:
        return runtime(origin).harness
    return ""


def started_by(harness: str) -> str:
    """Return the runtime of the sessions that `harness` starts, or the harness's own name."""
    return next((name for name in NAMES if runtime(name).harness == harness), harness)
