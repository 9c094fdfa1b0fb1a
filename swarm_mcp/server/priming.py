"""Having the first server of an installation answer before the first session waits for it.

The record of ``handshake_cache`` is made by whoever asks first. Right after an installation that is us: each
client's own questions, in the form it asks them, put to the very command that the client will start.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from swarm_mcp.runtimes.base import Runtime

SECONDS = 30.0


def prime_all(runtimes: list[Runtime], marketplace: Path, tell_failure: bool = False) -> dict[str, list[str]]:
    """Do as `prime` for several, by their names. One after another: each server adds to the record that it has read."""
    return {runtime.name: prime(runtime, marketplace, tell_failure) for runtime in runtimes}


def prime(runtime: Runtime, marketplace: Path, tell_failure: bool = False) -> list[str]:
    """Have the server that `runtime` is to start from the installed folder answer its first questions once.

    What was done, as steps of an installation. Nothing depends on it: a failure is a step only where
    `tell_failure` asks for it.
    """
    questions = runtime.first_questions
    try:
        asked = sum(not method.startswith("notifications/") for method, _ in questions)
        if not questions or _answers(_command(marketplace / runtime.folder), questions) == asked:
            return []
        failure = "it left questions unanswered"
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        failure = f"{type(error).__name__}: {error}"
    return [f"the server's first answers could not be prepared ({failure})"] if tell_failure else []


def _command(folder: Path) -> list[str]:
    tree = json.loads((folder / "mcp.json").read_text(encoding="utf-8"))
    (server,) = tree["mcpServers"].values()
    return [server["command"], *server["args"]]


def _answers(command: list[str], questions: tuple[tuple[str, dict], ...]) -> int:
    """How many of `questions` the server answered."""
    messages = [
        {"jsonrpc": "2.0", **({} if method.startswith("notifications/") else {"id": number}), "method": method}
        | ({"params": params} if params else {})
        for number, (method, params) in enumerate(questions)
    ]
    environment = {name: value for name, value in os.environ.items() if name != "SWARM_MCP_INSTANCE_ID"}
    done = subprocess.run(
        command, input="".join(json.dumps(message) + "\n" for message in messages), capture_output=True, text=True,
        encoding="utf-8", timeout=SECONDS, cwd=tempfile.gettempdir(), env=environment, check=True,
    )  # fmt: skip
    return sum("result" in json.loads(line) for line in done.stdout.splitlines())
