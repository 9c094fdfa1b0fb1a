"""Settings of a run that were written down elsewhere: read by type, with fallbacks, never an exception.

A configuration is a JSON object with the fields of a ``HarnessQuery`` (without who the child is), and is what
``swarm-mcp run`` makes of its flags, what environment tests look at and what a caller may keep in a file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from swarm_mcp.harness.query import EDIT, GRACE_SECONDS, HarnessQuery

DEFAULTS = {"timeout_seconds": 0.0, "grace_seconds": GRACE_SECONDS}


def as_string(value: object, fallback: str = "") -> str:
    """Return `value` if it is text that is not blank, else `fallback`."""
    return value if isinstance(value, str) and value.strip() else fallback


def as_number(value: object, fallback: float = 0.0) -> float:
    """Return `value` as a finite number, also from text, else `fallback`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return fallback
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return fallback
    return number if math.isfinite(number) else fallback


def as_boolean(value: object, fallback: bool = False) -> bool:
    """Return `value` if it is a bool, or the bool that it is a word for, else `fallback`."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False,
                "0": False}.get(value.strip().lower(), fallback)  # fmt: skip
    return value if isinstance(value, bool) else fallback


def as_string_array(value: object, fallback: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the texts of a list that are not blank; `fallback` where it is no list."""
    if not isinstance(value, (list, tuple)):
        return fallback
    return tuple(one for one in value if isinstance(one, str) and one.strip())


def parse_object(value: object) -> dict:
    """Return `value` if it is an object, also in JSON text, else an empty one."""
    found = parse_json(value) if isinstance(value, str) else value
    return dict(found) if isinstance(found, Mapping) else {}


def parse_json(text: object, fallback: object = None) -> object:
    """Return what JSON text says, `fallback` where it is none."""
    if not isinstance(text, (str, bytes, bytearray)):
        return fallback
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return fallback


def build_config(values: Mapping[str, object]) -> dict:
    """Return a configuration from the values of a form or a command line, without empty ones, with time limits."""
    empty: tuple[object, ...] = (None, "", (), [], {})
    given = {name: value for name, value in values.items() if not any(value is one or value == one for one in empty)}
    return {**DEFAULTS, **given}


def query_of(prompt: str, config: Mapping[str, object]) -> HarnessQuery:
    """Return the query that a configuration describes; what cannot be read counts as not given."""
    env = parse_object(config.get("env"))
    return HarnessQuery(
        prompt,
        cwd=as_string(config.get("cwd")),
        model=as_string(config.get("model")),
        effort=as_string(config.get("effort")),
        system_prompt=as_string(config.get("system_prompt")),
        append_system_prompt=as_string(config.get("append_system_prompt")),
        resume_session_id=as_string(config.get("resume_session_id")),
        additional_directories=as_string_array(config.get("additional_directories")),
        skills=as_string_array(config.get("skills")),
        additional_args=as_string_array(config.get("additional_args")),
        command=as_string_array(config.get("command")),
        mode=as_string(config.get("mode"), EDIT),
        fork_session=as_boolean(config.get("fork_session")),
        output_schema=parse_object(config.get("output_schema")) or None,
        timeout_seconds=as_number(config.get("timeout_seconds")),
        grace_seconds=as_number(config.get("grace_seconds"), GRACE_SECONDS),
        max_cost_usd=as_number(config.get("max_cost_usd")),
        max_turns=int(as_number(config.get("max_turns"))),
        env={str(name): value for name, value in env.items() if isinstance(value, str)},
    )
