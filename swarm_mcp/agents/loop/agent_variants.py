"""Kinds of agents, as ``agents/NAME.conf`` in any source, and ours: a reviewer, a planner and others.

A file has lines ``name=value``: ``description``; ``prompt``, which may have several lines and follows the system
prompt; ``mode`` (``read-only``; a variant never allows more than its run does); ``model`` and ``provider``, as
defaults; ``max_turns``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from swarm_mcp.agents.loop import conf_files
from swarm_mcp.agents.loop.settings import READ_ONLY, LoopFailure, LoopSettings


class AgentVariant(NamedTuple):
    """One kind of agent. An empty value leaves the choice to the run."""

    name: str
    description: str = ""
    prompt: str = ""
    mode: str = ""
    model: str = ""
    provider: str = ""
    max_turns: int = 0


def names(found: Iterable[str]) -> dict[str, str]:
    """Return name -> path of all variants; `found`: the sources."""
    return conf_files.named(found, "agents")


def read(name: str, found: Iterable[str]) -> AgentVariant:
    """Return the variant of that name. Raises LoopFailure."""
    listed = names(found)
    if name not in listed:
        raise LoopFailure(f"there is no variant '{name[:60]}'; there are {', '.join(listed)}")
    told: dict[str, list[str]] = {}
    for key, value in conf_files.read(listed[name]):
        told.setdefault(key, []).append(value)
    given = {key: "\n".join(values) for key, values in told.items()}
    most = given.get("max_turns", "")
    if given.get("mode", READ_ONLY) not in (READ_ONLY, "edit") or not (most or "0").isdecimal():
        # One that is spelt wrong must not be taken for leave to write.
        raise LoopFailure(f"{listed[name]}: mode is read-only or edit, and max_turns a number")
    texts = {key: given.get(key, "") for key in ("description", "prompt", "mode", "model", "provider")}
    return AgentVariant(name, **texts, max_turns=int(most or 0))


def put_on(settings: LoopSettings, variant: AgentVariant) -> None:
    """Apply a variant to a run. The run's own settings come first, except for the mode: the stricter one counts."""
    settings.variant, settings.words = variant.name, variant.prompt
    if variant.mode == READ_ONLY:
        settings.config["mode"] = READ_ONLY
    if not settings.provider and not settings.model:
        settings.provider, settings.model = variant.provider, variant.model
    most = settings.config.get("max_turns")
    if variant.max_turns and not (isinstance(most, int) and 0 < most < variant.max_turns):
        settings.config["max_turns"] = variant.max_turns
