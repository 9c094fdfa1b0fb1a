"""Work for several agent clients side by side, with a line for every step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from swarm_hook_core.faults import describe
from swarm_mcp.cli.progress import Progress
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes import hook_config
from swarm_mcp.runtimes.base import Runtime
from swarm_mcp.runtimes.side_by_side import Interrupted, SideBySide
from swarm_mcp.runtimes.steps import Begun, Steps


def for_each(
    clients: list[Runtime],
    work: Callable[[Runtime, Steps], None],
    ending: Callable[[dict[str, Any]], str],
    progress: Progress,
) -> list[dict[str, Any]]:
    """Do `work` for all of `clients`; return ``{"client", "ok", "steps", "error"}`` for each.

    A failure for one client does not stop the others. `ending` turns a result into the last line about its client.
    """
    results: dict[str, dict[str, Any]] = {
        client.name: {"client": client.name, "ok": True, "steps": [], "error": None} for client in clients
    }

    def work_for(client: Runtime, tell: Callable[[str], None]) -> None:
        result, steps = results[client.name], Steps(tell)
        try:
            work(client, steps)
        except Interrupted:
            raise
        except ClientFailed as error:
            result.update(ok=False, error=str(error))
        except Exception as error:
            result.update(ok=False, error=describe(error))
        result["steps"] = steps.done
        tell(ending(result))

    loaded_before_threads(clients)
    with SideBySide(clients, work_for) as working:
        for client, words in working.told():
            if isinstance(words, Begun):
                progress.begin(words, client.title)
            else:
                progress.end(words, client.title)
    return list(results.values())


def loaded_before_threads(clients: list[Runtime]) -> None:
    """Load the clients' hook settings before the threads start: imports in several threads block each other."""
    for client in clients:
        with suppress(Exception):  # the client's own thread meets it again, and reports it
            hook_config(client.name)
