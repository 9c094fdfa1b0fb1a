"""The user's settings for a play: copies that reach the model on loopback alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.play.scene import SERVICE
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.settings_layers import Layer, with_comments

# Keys of settings that lead a client to a real service, or to an account there.
_SERVICE_KEYS = re.compile(
    r"^(\w+Helper|\w+AuthRefresh|awsCredentialExport|forceLogin\w*|selectedType|enforcedType|modelProviders|telemetry"
    r"|\w*proxy|\w*base_?url|\w*api_?key|\w*endpoint)$",
    re.IGNORECASE,
)


def _is_of_a_service(key: str) -> bool:
    return bool(_SERVICE_KEYS.match(key) or SERVICE.search(key))


def _service_keys(settings: dict[str, Any]) -> list[str]:
    """Return the keys of these settings, at any depth, that lead to a real service."""
    found = []
    for key, value in settings.items():
        if _is_of_a_service(key):
            found.append(key)
        elif isinstance(value, dict):
            found += [f"{key}.{below}" for below in _service_keys(value)]
    return found


def refuse_services(policies: Sequence[Layer]) -> None:
    """Raise ClientFailed if a policy, which the copies cannot change, leads to a real service."""
    for layer in policies:
        for key in _service_keys(layer.settings):
            text = f"{key} in {layer.file}, a policy, may lead it to a real service, and cannot be overridden"
            raise ClientFailed(text)


def sealed(text: str, **more: Any) -> str:
    """Return the text of a settings file without the keys that lead to a real service, and with these besides."""
    try:
        settings = object_of(with_comments(text))
    except ValueError:  # the client passes over it, too
        return text
    return json.dumps(_merged(_without_services(settings), more))


def _without_services(settings: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in settings.items() if not _is_of_a_service(key)}
    return {key: _without_services(value) if isinstance(value, dict) else value for key, value in kept.items()}


def _merged(settings: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(settings)
    for key, value in more.items():
        merged[key] = _merged(object_of(settings.get(key)), value) if isinstance(value, dict) else value
    return merged
