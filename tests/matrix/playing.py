"""A release of a client in a private home, and the outcome of each scenario with each family of its models."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.client import Client
from e2e.clients import CLIENTS, ClaudeCode, Codex
from e2e.ground import Ground
from e2e.marketplace import Marketplace
from e2e.more import ground_for, other_client
from e2e.more.cline import Cline
from e2e.more.copilot import Copilot
from e2e.more.opencode import OpenCode
from e2e.pi import Pi, alone

from .scenarios import SCENARIOS, Family, NotThere, Played

Outcomes = dict[str, dict[str, str]]  # a model's name -> a scenario -> how it went
NOT_HELD, NOT_THERE, NOT_PLAYED = "NOT HELD", "not there", "not played"
NO_ANSWER = "no answer within its time"  # a fault
MOST = 300  # characters of a reason


@contextmanager
def installed(name: str, folder: Path) -> Iterator[Client]:
    """Yield a client with the plugin, put there by `swarm-mcp install`."""
    if name == "pi":
        ground = Ground("matrix_pi", clients=alone(folder))
        client: Client = Pi(ground)
    elif name in CLIENTS:
        ground = Ground(f"matrix_{name.replace('-', '_')}")
        client = CLIENTS[name](ground)
    else:
        ground = ground_for(name)
        client = other_client(name, ground)
    try:
        client.prepare()
        Marketplace(ground, "install").install(name)
        yield client
    finally:
        ground.close()


def choose(client: Client, family: Family) -> None:
    """Have the client's sessions from now on talk to a model of this family."""
    if isinstance(client, Copilot):
        client.fixed_model = family.model
    elif isinstance(client, (Cline, OpenCode)):
        client.plain_model = client.patch_model = client.model = family.model  # type: ignore[misc]
    elif isinstance(client, Codex):
        client.model, client.code_model = family.model, family.model if family.code_mode else ""  # type: ignore[misc]
    elif isinstance(client, ClaudeCode) or client.name == "gemini":
        client.model = family.model  # type: ignore[attr-defined]


def outcome(client: Client, family: Family, name: str) -> str:
    """Play a scenario; return ``held``, or one of the words above with the reason."""
    client.ground.renew()
    choose(client, family)
    before = _unanswered(client)
    try:
        return SCENARIOS[name](Played(client, family))
    except NotThere as lacking:
        return f"{NOT_THERE}: {lacking}"
    except AssertionError as error:
        if _unanswered(client) != before:  # on a busy machine: fails open, as it should
            return f"{NOT_PLAYED}: a check had no answer within the client's time: {_said(error)}"
        return f"{NOT_HELD}: {_said(error)}"
    except Exception as error:  # the client did not start, say: nothing is known about the promise
        return f"{NOT_PLAYED}: {type(error).__name__}: {_said(error)}"
    finally:
        client.ground.end_processes()


def _unanswered(client: Client) -> int:
    """Return how many checks of writes the client has given up so far."""
    faults = client.ground.home / ".local" / "state" / "swarm-mcp" / "faults.jsonl"
    if not faults.exists():
        return 0
    rows = map(json.loads, faults.read_text().splitlines())
    return sum(row["hook"] == "pre_tool_use" and row["fault"] == NO_ANSWER for row in rows)


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:MOST]


def outcomes(client: Client, family: Family, names: Iterable[str]) -> dict[str, str]:
    """Play these scenarios with a family; return how each of them went."""
    found = {}
    for name in names:
        found[name] = outcome(client, family, name)
        print(f"{client.name} {family.model}, {name}: {found[name]}", file=sys.stderr)
    return found
