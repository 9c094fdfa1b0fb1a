"""What can be seen of pi on this machine: accounts, settings, models. Nothing is written, nothing asks the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.harness.adapter import INFO, WARN, Check
from swarm_mcp.harness.configuration import parse_object

# Variables that pi takes a key from, by its own help (0.74.2).
KEYS = tuple(
    f"{name}_API_KEY"
    for name in (
        "ANTHROPIC", "OPENAI", "AZURE_OPENAI", "DEEPSEEK", "GEMINI", "GROQ", "CEREBRAS", "XAI", "FIREWORKS", "TOGETHER",
        "OPENROUTER", "AI_GATEWAY", "ZAI", "MISTRAL", "MINIMAX", "MOONSHOT", "OPENCODE", "KIMI", "CLOUDFLARE", "XIAOMI",
    )
) + ("ANTHROPIC_OAUTH_TOKEN", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK")  # fmt: skip
LIST_SECONDS = 15.0
_SIZES = {"K": 1_000, "M": 1_000_000}


def checks(config: Mapping[str, object], instructions: str) -> list[Check]:
    """Return whether pi's settings can be read, and whether any account for a model is in sight."""
    found, places = [], []
    for name in ("settings.json", "auth.json", "models.json"):
        tree, fault = _read(agent_folder() / name)
        if fault:
            found.append(Check("pi_settings_unreadable", WARN, f"{agent_folder() / name}: {fault}", "mend the file"))
        if name == "auth.json" and tree:
            places.append(f"{name} ({', '.join(sorted(tree))})")
        if name == "models.json" and isinstance(tree.get("providers"), dict) and tree["providers"]:
            places.append(f"{name} ({', '.join(sorted(tree['providers']))})")
    env = {**os.environ, **parse_object(config.get("env"))}
    places += [key for key in KEYS if str(env.get(key) or "").strip()]
    if places:
        found.append(Check("pi_credentials", INFO, f"accounts for models: {'; '.join(places)}"))
    else:
        found.append(Check("pi_credentials_missing", WARN, "no account for a model is in sight", instructions))
    return found


def listed_models(program: str) -> list[dict]:
    """Return the models that pi has accounts for, as it lists them; none where it cannot be run."""
    path = shutil.which(program)
    if not path:
        return []
    argv = [path, "--offline", "--no-extensions", "--list-models"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            timeout=LIST_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split() for line in (done.stdout or done.stderr).splitlines()]
    at = next((number for number, row in enumerate(rows) if row[:3] == ["provider", "model", "context"]), None)
    listed = rows[at + 1 :] if at is not None else []
    return [
        {"name": f"{row[0]}/{row[1]}", "short": row[1], "context_tokens": _size(row[2])}
        for row in listed
        if len(row) >= 3
    ]


def _size(text: str) -> int | None:
    """``200K`` as a number."""
    try:
        return int(float(text.rstrip("KM")) * _SIZES.get(text[-1:], 1))
    except ValueError:
        return None


def _read(path: Path) -> tuple[dict, str]:
    """The object in a file, and what is wrong with it; a file that is not there has neither."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, " ".join(str(error).split())
    return (tree, "") if isinstance(tree, dict) else ({}, "is not a JSON object")


def agent_folder() -> Path:
    """Return pi's configuration folder, which need not exist."""
    chosen = os.environ.get("PI_CODING_AGENT_DIR", "").strip()
    return Path(os.path.expanduser(chosen or "~/.pi/agent"))
