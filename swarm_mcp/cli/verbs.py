"""The list of verbs, and the module in ``commands`` of each.

A verb is a function of its name (``_`` for ``-``) under ``@verb(...)``, the declaration of its usages; see
``arguments``. Its docstring is the help: a summary that begins with the verb's name, then the details and an example.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.cli.arguments import Verb

# In the order that those of one group have on the help page.
VERBS = {
    "install": "install",
    "uninstall": "install",
    "status": "status",
    "doctor": "doctor",
    "demo": "doctor",
    "lock": "lock",
    "unlock": "lock",
    "hold": "hold",
    "locks": "locks",
    "why": "lock_explaining",
    "log": "log",
    "renew": "lock",
    "transfer": "lock_handover",
    "request-lock": "lock_handover",
    "steal": "lock_handover",
    "restore": "restore",
    "instances": "instances",
    "whoami": "instances",
    "bootstrap": "sessions",
    "register": "sessions",
    "deregister": "sessions",
    "messages": "messages",
    "send": "messages",
    "broadcast": "messages",
    "prompt-peer": "messages",
    "tasks": "tasks",
    "task": "task",
    "request-task": "tasks",
    "claim": "tasks",
    "update-task": "tasks",
    "dispatch": "dispatch",
    "cancel": "workers",
    "pause": "workers",
    "resume": "workers",
    "merge": "merge",
    "run": "run",
    "runs": "runs",
    "logs": "runs",
    "harness": "harness",
    "watch": "watch",
    "top": "top",
    "page": "page",
    "team": "team",
    "kv": "kv",
    "inspect": "inspection",
    "roles": "roles",
    "resolve-workspace-handle": "ui",
    "ui": "ui",
    "cleanup": "doctor",
    "protect": "protect",
    "guard": "guard",
    "init": "files",
    "loop": "loop",
    "serve": "serve",
    "hook": "serve",
    "work": "workers",
    "denied": "reports",
    "attempted": "reports",
    "alive": "reports",
    "agent-ended": "reports",
    "altered": "reports",
    "overwritten": "reports",
    "bundle": "files",
    "fetched": "files",
    "completion": "completion",
}
ALIASES = {"list-instances": "instances", "ls": "locks", "auto": "protect"}
# Words of other tools that people type -> the verb for the same purpose.
OTHER_WORDS = {
    "release": "unlock", "free": "unlock", "drop": "unlock", "unhold": "unlock", "acquire": "lock", "take": "lock",
    "reserve": "lock", "who": "status", "state": "status", "info": "status", "ps": "runs", "sessions": "instances",
    "agents": "instances", "peers": "instances", "explain": "why", "blame": "log", "history": "log", "events": "log",
    "extend": "renew", "refresh": "renew", "give": "transfer", "handover": "transfer", "hand-over": "transfer",
    "ask": "request-lock", "undo": "restore", "revert": "restore",
    "recover": "restore", "message": "send", "msg": "send", "mail": "messages", "inbox": "messages", "wait": "watch",
    "follow": "watch", "kill": "cancel", "stop": "cancel", "abort": "cancel", "start": "dispatch", "spawn": "dispatch",
    "work-on": "dispatch", "check": "doctor", "test": "doctor", "verify": "doctor", "setup": "install",
    "add": "install", "enable": "install", "upgrade": "install", "update": "install", "remove": "uninstall",
    "level": "protect", "dashboard": "top", "web": "page", "clean": "cleanup",
    "gc": "cleanup", "prune": "cleanup", "hooks": "guard", "join": "team", "mcp": "serve", "server": "serve",
}  # fmt: skip


def verb_named(name: str) -> Verb:
    """Load the module that has the verb `name`, and return the verb."""
    module = f"swarm_mcp.cli.commands.{VERBS[name]}"
    __import__(module)
    found: Verb = getattr(sys.modules[module], name.replace("-", "_"))
    return found


def declared(name: str) -> tuple[str, str]:
    """Return the group of the verb `name` on the help page, and its summary.

    Both are read from the module's source: importing every verb would take long.
    """
    from swarm_mcp.cli import arguments

    folder = __file__.rpartition("verbs.py")[0]
    loader = __spec__.loader  # It also reads from a zip archive. The stubs know it without `get_data`, and as None.
    source = loader.get_data(f"{folder}commands/{VERBS[name]}.py").decode("utf-8")  # type: ignore[union-attr]
    head, _, body = source.partition(f'    """{name}: ')
    constant = head.rpartition("\n@verb(")[2].partition("group=")[2].partition(")")[0].strip(", \n")
    return getattr(arguments, constant), body.partition("\n")[0]


def summary_of(name: str) -> str:
    """Return the summary of the verb `name`."""
    return declared(name)[1]
