"""A release of a client in a private home, and the outcome of each scenario with each family of its models."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.client import Client
from e2e.clients import CLIENTS, ClaudeCode, Codex
from e2e.ground import Ground
from e2e.marketplace import Marketplace
from e2e.more import ground_for, other_client
from e2e.more.cline import Cline
from e2e.more.copilot import Copilot
from e2e.more.opencode import OpenCode
from e2e.pi import Pi, alone

from swarm_mcp.play.playing import ASKED, DENIED, KEPT
from swarm_mcp.play.playing import CLIENTS as PLAYED

from .releases import families
from .scenarios import HELD, LOCKED_FILES, SCENARIOS, Family, NotThere, Played

Outcomes = dict[str, dict[str, str]]  # a model's name -> a scenario, or a permission mode -> how it went
MODE, BY_DEFAULT = "mode ", "mode by default"
ONLY = "one"  # the mode of a client without modes
ITSELF = "; refused by the client itself: "
STAYS = "stays"  # a person's line, without a word of ours
PLAY_SECONDS = 3600
FOR_ROOT = {"IS_SANDBOX": "1"}  # or Claude Code refuses root its mode `bypassPermissions`
MODES = Path(__file__).with_name("modes.py")
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


def outcomes(client: Client, family: Family, names: Iterable[str], mode: str = "all") -> dict[str, str]:
    """Play these scenarios with a family; return how each of them went. `mode`: for `swarm-mcp doctor --play`."""
    found = {}
    for name in names:
        if name == LOCKED_FILES and client.name in PLAYED:
            found.update(in_modes(client, family, mode))
        else:
            found[name] = outcome(client, family, name)
    for name, said in found.items():
        print(f"{client.name} {family.model}, {name}: {said}", file=sys.stderr)
    return found


def in_modes(client: Client, family: Family, mode: str) -> dict[str, str]:
    """Play a client by `swarm-mcp doctor --play`. Return how it went in all, and in each permission mode."""
    client.ground.renew()
    model = family.model if len(families(client.name)) > 1 else ""
    argv = [sys.executable, str(MODES), client.name, mode, model]
    done = client.ground.run(argv, env=FOR_ROOT, seconds=PLAY_SECONDS)
    if done.returncode or not done.stdout:
        return {LOCKED_FILES: f"{NOT_PLAYED}: {done.stderr.strip()[-MOST:]}"}
    found = {LOCKED_FILES: HELD}
    for status, message, details in map(json.loads, done.stdout.splitlines()):
        if "mode" not in details:
            return {LOCKED_FILES: f"{NOT_PLAYED}: {message}"}
        named = details["mode"] or ONLY
        if details["by_default"]:
            found[BY_DEFAULT] = named
        found[f"{MODE}{named}"] = _in_mode(status, message, details)
        if status == "fail":
            found[LOCKED_FILES] = f"{NOT_HELD}: {message[:MOST]}"
    return found


def _in_mode(status: str, message: str, details: dict[str, Any]) -> str:
    """Return the end of a person's line in one mode, and the ways of writing that our hooks denied."""
    if "not_played" in details:
        return f"{NOT_THERE}: {details['not_played'][:MOST]}"
    if status == "fail":
        return f"{NOT_HELD}: {message[:MOST]}"
    line = details["persons_line"] if details["persons_line"] in (ASKED, KEPT) else STAYS
    denied = [way for way, end in details["ways"].items() if end == DENIED]
    others = [way for way in details["ways"] if way not in denied]
    return f"{line}: {', '.join(denied)}" + f"{ITSELF}{', '.join(others)}" * bool(others)
