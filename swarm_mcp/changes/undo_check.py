"""The doctor's check of undos that were interrupted: it finishes them, puts them back, or names those it cannot."""

from __future__ import annotations

import os

from swarm_mcp.changes.records import AGE_SECONDS, unreadable
from swarm_mcp.changes.writing import recover
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes.base import Finding

DAYS = AGE_SECONDS // 86400


def findings(_asked: Asked) -> list[Finding]:
    """Return a finding for interrupted undos that were put right, and one for each that cannot be; mostly []."""
    try:
        told = recover()
    except OSError as error:
        return [Finding("undo", "warn", f"an interrupted undo cannot be put right: {error}", "swarm-mcp undo")]
    found = [Finding("undo", "warn", "; ".join(told))] if told else []
    return [*found, *(_unreadable(folder) for folder in unreadable())]


def _unreadable(folder: str) -> Finding:
    message = (
        f"the undo {os.path.basename(folder)} was interrupted, and its plan cannot be read: some of its files may be"
        f" undone, others not. {folder} has their contents, before and after it, for {DAYS} days"
    )
    return Finding("undo", "warn", message, f"swarm-mcp diff, to compare; then rm -r {folder}")
