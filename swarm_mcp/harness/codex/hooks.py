"""Our hooks for one run of Codex, without a word in the user's settings: ``-c hooks.EVENT=[...]``, with their trust.

Codex runs a hook only where ``hooks.state`` has its hash. ``--dangerously-bypass-hook-trust`` would run every hook
that it finds, also those that the user has never looked at, so we state the trust in ours alone: the key is
``/<session-flags>/config.toml:<event>:<group>:<hook>``, the hash is SHA-256 of the hook as JSON with sorted keys
(found out by comparing with what ``codex app-server`` answers to ``hooks/list``; Codex 0.169). Since a hook with a
wrong hash is skipped without a sound, each build of Codex is asked once whether it counts the same way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.errors import SwarmError
from swarm_mcp.harness.codex.overrides import override, toml_value

SOURCE = "/<session-flags>/config.toml"
ROOT = "${CLAUDE_PLUGIN_ROOT}"
# The same plugin in the user's own settings would run the same hooks, and the same server, once more.
WITHOUT_THE_USERS_COPY = "plugins=" + toml_value({"swarm@swarm": {"enabled": False}})
_REMEMBERED = "codex-hooks.json"
_ANSWER_SECONDS = 20


def plugin_hooks(folder: Path) -> dict[str, list[dict]]:
    """Return event -> groups of hooks of the plugin in `folder`, with its path put in. Raises SwarmError."""
    path = folder / "integrations" / "codex" / "hooks.json"
    try:
        text = path.read_text(encoding="utf-8")
        # Inside double quotes of a shell command line, which is inside a JSON string.
        place = re.sub(r'([\\"$`])', r"\\\1", str(folder))
        hooks = json.loads(text.replace(ROOT, json.dumps(place)[1:-1]))["hooks"]
        return {str(event): [dict(group) for group in groups] for event, groups in hooks.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SwarmError(f"the hooks in {path} cannot be understood: {error}") from None


def hook_overrides(hooks: Mapping[str, list[dict]], trust: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ``-c`` values that give Codex `hooks` and say that those with a hash in `trust` are trusted."""
    state = {key: {"trusted_hash": value} for key, value in trust.items()}
    return (*(override(f"hooks.{event}", groups) for event, groups in hooks.items()), override("hooks.state", state))


def hashes(hooks: Mapping[str, list[dict]]) -> dict[str, str]:
    """Return key -> hash of every hook, as Codex computes them."""
    return {
        f"{SOURCE}:{_snake(event)}:{at}:{nth}": _hash(_snake(event), group, hook)
        for event, groups in hooks.items()
        for at, group in enumerate(groups)
        for nth, hook in enumerate(group["hooks"])
    }


def trust_for(program: str, hooks: Mapping[str, list[dict]]) -> dict[str, str]:
    """Return the hashes that this build of Codex expects: its own where it could be asked, else ours."""
    ours = hashes(hooks)
    build = _build(program, ours)
    if not build:
        return ours
    remembered = _recall(build)
    if remembered is None:
        remembered = hashes_from_codex(program, hooks)
        if remembered.keys() != ours.keys():
            return ours  # it could not be asked, or not about all of them; the next run tries again
        _remember(build, remembered)
    return remembered


def hashes_from_codex(program: str, hooks: Mapping[str, list[dict]]) -> dict[str, str]:
    """Return the hashes that Codex itself computes, empty where it cannot be asked. About 0.6 s, in an empty home."""
    import tempfile

    from swarm_mcp.runtimes.codex import AppServer

    words = [part for value in hook_overrides(hooks, {}) for part in ("-c", value)]
    with tempfile.TemporaryDirectory(prefix="swarm-codex-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "CODEX_HOME": scratch}
        try:
            with AppServer(program, *words, env=env, seconds=_ANSWER_SECONDS, cwd=scratch) as server:
                listed = server.call("hooks/list", {}).get("data", [])
            return {
                hook["key"]: hook["currentHash"]
                for entry in listed
                for hook in entry.get("hooks", [])
                if str(hook.get("key", "")).startswith(f"{SOURCE}:")
            }
        except (SwarmError, OSError, KeyError, TypeError, AttributeError):
            return {}


def _hash(event: str, group: Mapping, hook: Mapping) -> str:
    handler = {"type": hook["type"], "command": hook["command"], "timeout": hook["timeout"], "async": False}
    identity: dict = {"event_name": event, "hooks": [handler]}
    if "matcher" in group:
        identity["matcher"] = group["matcher"]
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def _build(program: str, ours: Mapping[str, str]) -> str:
    """What the answer hangs on: which file Codex is, and which hooks they are."""
    try:
        path = os.path.realpath(program)
        facts = os.stat(path)
    except OSError:
        return ""
    # Not the time of the last change: npm sets that to one day in 1985.
    seen = json.dumps([path, facts.st_ino, facts.st_size, facts.st_ctime_ns, sorted(ours.items())])
    return hashlib.sha256(seen.encode()).hexdigest()


def _recall(build: str) -> dict[str, str] | None:
    from swarm_hook_core.state import state_dir

    try:
        with open(os.path.join(state_dir(), _REMEMBERED), encoding="utf-8") as file:
            said = json.load(file)
        return {str(key): str(value) for key, value in said["hashes"].items()} if said["build"] == build else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _remember(build: str, said: Mapping[str, str]) -> None:
    from swarm_hook_core.state import make_private, state_dir

    path = os.path.join(state_dir(), _REMEMBERED)
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        make_private(state_dir())
        with open(scratch, "w", encoding="utf-8") as file:
            json.dump({"build": build, "hashes": dict(said)}, file)
        os.replace(scratch, path)
    except OSError:
        pass  # asked again next time
