"""A provider that is an executable: the payload on its standard input, the model's answer on its output.

One whose text has the word ``--stream`` is given that flag, writes events to the session's ``.stream`` and each call,
as soon as it is whole, as a line of JSON to the pipe that ``HARNESS_TOOL_FIFO`` names.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping

from swarm_mcp.loop import subprocesses
from swarm_mcp.loop.conversation import model_call
from swarm_mcp.loop.failure import LoopFailure

LARGEST = 1 << 20


def ask(loop, provider, payload: dict, environ: Mapping[str, str], streams: bool, early_calls) -> dict:
    """Return the answer. Raises LoopFailure with what the provider says on standard error, or as ``{"error"}``."""
    argv = [provider.path]
    text = json.dumps(payload, ensure_ascii=False)
    if streams and _takes_stream(provider.path):
        with tempfile.TemporaryDirectory(prefix="swarm-loop-") as folder:
            fifo = os.path.join(folder, "calls")
            os.mkfifo(fifo, 0o600)
            # Open for reading and writing, so that it does not end before the provider has begun.
            handle = os.open(fifo, os.O_RDWR)
            reader = threading.Thread(target=_read_calls, args=(os.dup(handle), early_calls), daemon=True)
            reader.start()
            try:
                ran = subprocesses.run(
                    [*argv, "--stream"], text, env={**environ, "HARNESS_TOOL_FIFO": fifo}, cwd=loop.settings.folder
                )
            finally:
                os.write(handle, b"\n\0\n")
                reader.join()
                os.close(handle)
    else:
        ran = subprocesses.run(argv, text, env=environ, cwd=loop.settings.folder)
    loop.log(ran.err)
    found = _object(ran.out)
    if ran.code:
        said = str(found["error"]) if found and found.get("error") else ran.err.strip() or f"exited {ran.code}"
        category = "rate_limited" if found and found.get("error_type") == "rate_limit" else _category(said)
        raise LoopFailure(f"{provider.name}: {said[-500:]}", category)
    if found is None:
        raise LoopFailure(f"provider {provider.name} returned no JSON object: {ran.out[:200]}")
    return found


def _read_calls(handle: int, early_calls) -> None:
    with open(handle, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("\0"):
                return
            found = _object(line)
            if found:
                early_calls.begin(model_call(found.get("id"), found.get("name"), found.get("input")))


def _takes_stream(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"--stream" in file.read(LARGEST)
    except OSError:
        return False


def _object(text: str) -> dict | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _category(said: str) -> str:
    words = said.lower()
    if "api key" in words or "not set" in words or "authentication" in words or "401" in words:
        return "auth_failed"
    return "rate_limited" if "rate limit" in words or "429" in words else "unknown"
