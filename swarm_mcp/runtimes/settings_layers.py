"""The settings files of a client, as the client itself reads them: a later layer wins over an earlier one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.runtimes.base import Finding
from swarm_mcp.runtimes.json_editor import JsonText, object_of

_ON = ("1", "true", "yes", "on")  # values of a variable, as Claude Code and Qwen Code read them


class Layer(NamedTuple):
    """The settings in one file, or variables of the environment, which has no `file`.

    `is_policy`: only an administrator of the machine changes it. `fault`: why it cannot be read.
    """

    file: str
    settings: dict[str, Any]
    is_policy: bool = False
    fault: str = ""


def read(file: Path, is_policy: bool = False, parse: Callable[[str], Any] = json.loads) -> Layer:
    """Return the settings in a file. It has none if it is missing, or cannot be parsed: its client ignores it, too."""
    try:
        settings = object_of(parse(file.read_text(encoding="utf-8-sig", errors="replace")))
        return Layer(str(file), settings, is_policy)
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):  # nothing is set in it
        return Layer(str(file), {}, is_policy)
    except OSError as error:
        return Layer(str(file), {}, is_policy, str(error.strerror))


def with_comments(text: str) -> Any:
    """Parse JSON that may have comments. Raises ValueError."""
    return JsonText(text).tree


def last_of(layers: Sequence[Layer], *place: str, kind: type = bool) -> tuple[Any, Layer] | None:
    """Return the boolean at `place` that is in force, or the value of another `kind`, with its layer."""
    for layer in reversed(layers):
        found: Any = layer.settings
        for key in place:
            found = object_of(found).get(key)
        if isinstance(found, kind):
            return found, layer
    return None


def variables(layers: Iterable[Layer]) -> list[Layer]:
    """Return the variables that each layer sets, as its member ``env`` has them."""
    return [layer._replace(settings=object_of(layer.settings.get("env"))) for layer in layers]


def environment() -> Layer:
    """Return the variables of this process. A client that is started beside it has them, too."""
    return Layer("", dict(os.environ))


def variable_on(names: Sequence[str], sources: Sequence[Layer]) -> tuple[str, Layer] | None:
    """Return the first of the variables `names` that is on, with its layer, if there is one.

    The first of `sources` that sets a variable counts.
    """
    for name in names:
        source = next((source for source in sources if source.settings.get(name) not in (None, "")), None)
        if source and str(source.settings[name]).lower() in _ON:
            return name, source
    return None


def switched_off(client: str, layer: Layer, key: str, mend: str = "") -> Finding:
    """Return the finding that `key` in `layer` keeps the client from running hooks.

    The default `mend` takes the key away. A policy has no mend: only an administrator changes it.
    """
    name, what = f"{client} hooks", f"all hooks are switched off: {key}"
    if layer.is_policy:
        return Finding(name, "fail", f"{what} in {layer.file}, a policy that only an administrator can change")
    if layer.file:
        return Finding(name, "fail", f"{what} in {layer.file}", mend or f"take {key} out of {layer.file}")
    return Finding(name, "fail", f"{what} in the environment", mend or f"unset {key}")


def unread(client: str, layers: Sequence[Layer]) -> list[Finding]:
    """Return a finding about each layer that could not be read."""
    text = "cannot be read ({0}): hooks may be switched off in it"
    return [
        Finding(f"{client} settings", "warn", f"{layer.file} {text.format(layer.fault)}")
        for layer in layers
        if layer.fault
    ]
