"""Settings of a run as somebody else wrote them down: read by type, with fallbacks, never an exception.

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
    """`value` if it is text that is not blank."""
    return value if isinstance(value, str) and value.strip() else fallback


def as_number(value: object, fallback: float = 0.0) -> float:
    """`value` as a finite number, also where it is one in text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return fallback
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return fallback
    return number if math.isfinite(number) else fallback


def as_boolean(value: object, fallback: bool = False) -> bool:
    """`value` if it is a truth value, or a word for one."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False,
                "0": False}.get(value.strip().lower(), fallback)  # fmt: skip
    return value if isinstance(value, bool) else fallback


def as_string_array(value: object, fallback: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The texts of a list, others and blank ones left out; `fallback` where it is no list."""
    if not isinstance(value, (list, tuple)):
        return fallback
    return tuple(one for one in value if isinstance(one, str) and one.strip())


def parse_object(value: object) -> dict:
    """`value` if it is an object, were it in JSON text; else an empty one."""
    found = parse_json(value) if isinstance(value, str) else value
    return dict(found) if isinstance(found, Mapping) else {}


def parse_json(text: object, fallback: object = None) -> object:
    """What JSON text says."""
    if not isinstance(text, (str, bytes, bytearray)):
        return fallback
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return fallback


def build_config(values: Mapping[str, object]) -> dict:
    """A configuration from what a form or a command line has: what is empty is left out, the time limits are set."""
    empty = (None, "", (), [], {})
    given = {name: value for name, value in values.items() if not any(value is one or value == one for one in empty)}
    return {**DEFAULTS, **given}


def query_of(prompt: str, config: Mapping[str, object]) -> HarnessQuery:
    """The query that a configuration describes; what cannot be read counts as not given."""
    texts = ("cwd", "model", "effort", "system_prompt", "append_system_prompt", "resume_session_id")
    lists = ("additional_directories", "skills", "additional_args", "command")
    env = parse_object(config.get("env"))
    return HarnessQuery(
        prompt,
        mode=as_string(config.get("mode"), EDIT),
        fork_session=as_boolean(config.get("fork_session")),
        output_schema=parse_object(config.get("output_schema")) or None,
        timeout_seconds=as_number(config.get("timeout_seconds")),
        grace_seconds=as_number(config.get("grace_seconds"), GRACE_SECONDS),
        max_cost_usd=as_number(config.get("max_cost_usd")),
        max_turns=int(as_number(config.get("max_turns"))),
        env={str(name): value for name, value in env.items() if isinstance(value, str)},
        **{name: as_string(config.get(name)) for name in texts},
        **{name: as_string_array(config.get(name)) for name in lists},
    )
