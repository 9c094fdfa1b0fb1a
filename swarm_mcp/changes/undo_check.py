"""The doctor's check of undos that were interrupted: it finishes them, or puts their files back."""

from __future__ import annotations

from swarm_mcp.changes.writing import recover
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes.base import Finding


def findings(_asked: Asked) -> list[Finding]:
    """Return a finding if an undo was interrupted, else []."""
    try:
        told = recover()
    except OSError as error:
        return [Finding("undo", "warn", f"an interrupted undo cannot be put right: {error}", "swarm-mcp undo")]
    return [Finding("undo", "warn", "; ".join(told))] if told else []
