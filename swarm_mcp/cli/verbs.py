"""The verbs that there are: each is a module in ``commands``, named as the verb is.

Such a module has ``USAGES`` (see ``arguments``), ``run(args) -> int``, which carries the command out, and a docstring:
what the verb does, in a line that begins with its name, then what there is to know, and an example.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

# In the order of the help page.
VERBS = (
    "install", "uninstall", "status", "doctor", "demo",
    "lock", "unlock", "hold", "locks", "why", "log", "renew", "transfer", "request-lock", "steal", "restore",
    "instances", "whoami", "bootstrap", "register", "deregister",
    "messages", "send", "broadcast", "prompt-peer",
    "tasks", "request-task", "claim", "update-task", "dispatch", "cancel", "pause", "resume",
    "run", "runs", "logs", "harness",
    "watch", "kv", "inspect", "roles", "resolve-workspace-handle", "ui", "cleanup", "guard", "init", "loop",
    "serve", "hook", "work", "denied", "alive", "agent-ended", "altered", "bundle", "completion",
)  # fmt: skip
ALIASES = {"list-instances": "instances"}


def module_of(verb: str) -> ModuleType:
    """Load and return the module that carries out `verb`."""
    name = f"swarm_mcp.cli.commands.{verb.replace('-', '_')}"
    __import__(name)
    return sys.modules[name]


def summary_of(verb: str) -> str:
    """What `verb` does, in a few words; read without loading what the command needs."""
    folder = __file__.rpartition("verbs.py")[0]
    loader = __spec__.loader  # which reads from a zip archive as well
    source = loader.get_data(f"{folder}commands/{verb.replace('-', '_')}.py").decode("utf-8")  # type: ignore[union-attr]
    return source.split('"""')[1].partition("\n")[0].partition(": ")[2]
