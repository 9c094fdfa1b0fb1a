"""Codex's own record of a session: ``$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl``.

Codex writes it line by line. It is only read here, for facts missing in the stream: the model, the use of its context,
and the session's first folder (codex-rs/protocol: ``RolloutItem``; seen with 0.169).
"""

from __future__ import annotations

import glob
import json
import os
from typing import Any, NamedTuple

from swarm_mcp.agents.harness.outcome import count_of
from swarm_mcp.agents.harness.query import parse_object

LARGEST = 64 << 20  # bytes of the end of a record that are looked at


class Turn(NamedTuple):
    """The newest turn in a record; None: unknown."""

    model: str | None = None
    used_tokens: int | None = None
    window_tokens: int | None = None
    session_usage: dict[str, Any] | None = None  # tokens of the whole session so far


def path_of(session_id: str, codex_home: str) -> str | None:
    """Return the path of a session's record, or None. `session_id` fits the session pattern."""
    pattern = os.path.join(glob.escape(codex_home), "sessions", "*", "*", "*", f"rollout-*-{session_id}.jsonl*")
    return max(glob.glob(pattern), default=None)


def folder_of(path: str) -> str | None:
    """Return the session's first folder; None if its record lacks it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = json.loads(file.readline(1 << 20))
        return str(first["payload"]["cwd"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # no record, or a torn one
        return None


def last_turn(path: str) -> Turn:
    """Return the newest turn in the record at `path`."""
    model, usage, window, total = None, None, None, None
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST))
            for line in file:
                if b'"turn_context"' in line:
                    model = _dict(_payload(line, "turn_context")).get("model") or model
                elif b'"token_count"' in line:
                    info = _dict(_dict(_payload(line, "event_msg")).get("info"))
                    usage = _dict(info.get("last_token_usage")).get("total_tokens", usage)
                    window = info.get("model_context_window", window)
                    total = _dict(info.get("total_token_usage")) or total
    except OSError:  # no record
        return Turn()
    return Turn(model if isinstance(model, str) else None, count_of(usage), count_of(window), total)


def _payload(line: bytes, kind: str) -> object:
    found = parse_object(line)
    if found.get("type") == kind:
        return found.get("payload")
    return None


def _dict(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {}
