"""Keys of providers, kept as ``hs auth set`` keeps them: ``{provider: [{"type": "api_key", "key": KEY}]}``.

They are in ``.auth.json`` of the home folder alone, for their owner's eyes: no checkout brings any. Without a key
there, the bash harness's collection of all its places counts (``.auth-cache.json``, renewed only when that runs).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from swarm_hook_core.state import write_private
from swarm_mcp.errors import UsageError

FILE, GATHERED = ".auth.json", ".auth-cache.json"


def kept(environ: Mapping[str, str]) -> dict[str, str]:
    """Return provider -> key."""
    found: dict[str, str] = {}
    for name in (GATHERED, FILE):
        for provider, entries in _tree(_path(name, environ)).items():
            if isinstance(entries, list) and entries:
                first = entries[0]
            else:
                first = None
            if isinstance(first, dict):
                key = first.get("key") or first.get("token")
            else:
                key = ""
            if isinstance(key, str) and key:
                found[provider] = key
    return found


def keep(provider: str, key: str, environ: Mapping[str, str]) -> str:
    """Keep a provider's key instead of an earlier one; return the file. Raises UsageError for an empty key."""
    if not key or not key.isprintable() or " " in key:
        raise UsageError("that is no key: it is one line without blanks")
    return _change(environ, provider, [{"type": "api_key", "key": key}])


def forget(provider: str, environ: Mapping[str, str]) -> bool:
    """Forget a provider's key; return True if there was one."""
    if provider not in _tree(_path(FILE, environ)):
        return False
    _change(environ, provider, None)
    return True


def _change(environ: Mapping[str, str], provider: str, entries: list[Any] | None) -> str:
    path = _path(FILE, environ)
    tree = {**_tree(path), provider: entries}
    write_private(path, json.dumps({name: value for name, value in tree.items() if value is not None}, indent=2) + "\n")
    return path


def _path(name: str, environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("HARNESS_HOME") or os.path.expanduser("~/.harness"), name)


def _tree(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            tree = json.load(file)
    except (OSError, ValueError, RecursionError):  # no keys are kept
        return {}
    if isinstance(tree, dict):
        return tree
    return {}
