"""The models that Codex offers, their prices, and the sizes of their contexts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from swarm_mcp.harness.adapter import Price

SHORT = {
    "sol": "gpt-6.1-sol",
    "terra": "gpt-6.1-terra",
    "luna": "gpt-6-luna",
    "astra": "gpt-6-astra",
}
# Standard service, requests of up to 272,000 tokens of input, as on developers.openai.com/api/docs/pricing at the
# date given. What was asked of a long request, a fast or a flexible service, a region or a subscription is not in
# the stream, so none of it is in here. A model that is not listed costs None.
PRICES = {
    "gpt-6.1-sol": Price(2.0, 0.10, 10.0, "2026-10-01", cache_write=2.50),
    "gpt-6.1-terra": Price(1.0, 0.05, 5.0, "2026-10-26", cache_write=1.25),
    "gpt-6-sol": Price(2.0, 0.20, 10.0, "2026-09-22", cache_write=2.50),
    "gpt-6-luna": Price(0.10, 0.01, 0.50, "2026-09-22", cache_write=0.125),
    "gpt-6-astra": Price(10.0, 1.0, 50.0, "2026-09-05", cache_write=12.50),
    "gpt-5.6-sol": Price(5.0, 0.50, 30.0, "2026-08-01", cache_write=6.25),
    "gpt-5.6-terra": Price(2.0, 0.20, 12.0, "2026-08-01", cache_write=2.50),
    "gpt-5.6-luna": Price(0.20, 0.02, 1.20, "2026-08-01", cache_write=0.25),
    "gpt-5.5": Price(5.0, 0.50, 30.0, "2026-06-04"),
}
# `codex debug models --bundled` of 0.169, for where Codex itself cannot be asked.
WINDOWS = {name: 500_000 if name == "gpt-6.1-terra" else 272_000 for name in PRICES}
_WITHOUT_MAX = frozenset({"gpt-5.5"})
_LIST_SECONDS = 5


def effort(asked: str, model: str) -> str:
    """Return Codex's name of an effort: ``max`` is ``xhigh`` of models that have nothing above it."""
    return "xhigh" if asked == "max" and model in _WITHOUT_MAX else asked


def listed_models(words: Sequence[str]) -> list[dict]:
    """Return ``{"name", "short", "context_tokens"}`` of each model to choose from; `words` start Codex."""
    shorts = {name: short for short, name in SHORT.items()}
    windows: Mapping[str, int | None] = _catalog(words) or WINDOWS
    return [{"name": name, "short": shorts.get(name, ""), "context_tokens": window} for name, window in windows.items()]


def _catalog(words: Sequence[str]) -> dict[str, int | None]:
    """Name -> window, as the installed Codex has it built in; empty where it cannot be asked."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="swarm-codex-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "CODEX_HOME": scratch}
        try:
            done = subprocess.run(
                [*words, "debug", "models", "--bundled"], cwd=scratch, env=env, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=_LIST_SECONDS, start_new_session=True,
            )  # fmt: skip
            models = json.loads(done.stdout)["models"]
            return {str(m["slug"]): m.get("context_window") for m in models if m.get("visibility") != "hide"}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, subprocess.TimeoutExpired, RecursionError):
            return {}
