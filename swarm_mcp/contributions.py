"""The contributions of the packages: verbs, tools, doctor checks, reactions.

Each package lists its own in one module, `contributes`, as plain data; the coordinator's own stand below. Modules and
functions are named by text (``"package.module"``, ``"package.module:function"``), and loaded when they are used. This
module has the only list of the packages. docs/dev/architecture.md explains the parts; a part that a package does not
contribute to is left out:

  VERBS        verb -> the module with its function, in the order of the help page
  PLACES       verb of the package -> the verb of an earlier package that it stands behind on the help page
  NOUNS        noun -> {its word -> verb}: `task claim` is the verb `claim`
  ALIASES      second name -> verb
  OTHER_WORDS  a word of other tools that people type -> the verb for the same purpose
  RETIRED      a verb that is gone, or ``verb --option`` -> the advice to those who type it
  TOOLS        modules with MCP tools (their ``TOOLS``), in the order of the list
  CHECKS       name of a doctor check -> its function; see ``doctor.own_checks``
  REACTIONS    moment -> its function, ``"package.module:function"``; see `react`
  TABLES       table of the store -> its columns; INDEXES: index -> its table and columns (``store.schema``)

Hooks start commands that load this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.paths import git_root
from swarm_hook_core.state import shares_locks, state_dir

PACKAGES = ("swarm_mcp.changes", "swarm_mcp.agents", "swarm_mcp.team", "swarm_mcp.view")
# Packages with reactions. All of these are about other machines, with which clones here share their locks.
REACTING = ("swarm_mcp.team",)

# The moments of reactions, with the arguments and the answer of their functions.
COMMITTED = "committed"  # (db, tables): a transaction has changed rows of these tables; an empty name is any table
MESSAGE_ADDED = "message added"  # (tx, sender, recipient, content, told, file): True if it is posted to another machine
SESSION_WANTED = "session wanted"  # (store, sender, recipient, task_id, force): wake a session on another machine
LOCKS_GRANTED = "locks granted"  # (store, locks): a Confirmation (``locking.acquisition``), or None
TASK_CLAIMED = "task claimed"  # (store, task, prior_status): False if another machine was faster
PUSH_BEGINS = "push begins"  # (folder): words about locks that are unknown here, or an empty text
MACHINES = "machines"  # (store, scope): Machines (``answers.people``), or None
REPOSITORY_NAME = "repository name"  # (store, scope): the name of its repository that is equal on all machines, or None


UNCOMMITTED = "swarm_mcp.changes.uncommitted:uncommitted_files"  # (store, scope, people): ``answers.work.Edit``s
AUTHORSHIP = "swarm_mcp.changes.authorship:hooked"  # (hook, folder, lines): after git has made a commit
TRIES = "swarm_mcp.changes.tries.folder:of_scope"  # (scope): what `swarm-mcp try` keeps, in words
UNDOS = "swarm_mcp.changes.writing"  # the module with `recover`, for undos in this folder of the state folder


def put_undos_right() -> list[str]:
    """Complete or take back undos of killed processes. Return a line about each. Raises OSError.

    Without any undo it costs a look for their folder.
    """
    if not os.path.isdir(os.path.join(state_dir(), "undos")):
        return []
    lines: list[str] = module_named(UNDOS).recover()
    return lines


def tries(scope: str) -> str:
    """Return a line about what tries of a work tree keep; mostly "", for a look for their folder."""
    if not os.path.isdir(os.path.join(state_dir(), "tries")):
        return ""
    words: str = function_named(TRIES)(scope)
    return words


def uncommitted(store: object, scope: str, people: object) -> list[Any]:
    """Return an ``Edit`` (``answers.work``) for each uncommitted change of a session or a person, the newest first.

    None outside of a repository.
    """
    if not os.path.lexists(os.path.join(git_root(scope), ".git")):
        return []
    found: list[Any] = function_named(UNCOMMITTED)(store, scope, people)
    return found


def lists() -> Iterator[ModuleType]:
    """Yield this module, then load and yield the `contributes` module of each package.

    A verb that hooks start is found here, and no other list is loaded.
    """
    yield sys.modules[__name__]
    for package in PACKAGES:
        yield module_named(f"{package}.contributes")


def module_of(verb: str) -> str:
    """Return the name of the module that has `verb`, or an empty text if there is no such verb."""
    return next((one.VERBS[verb] for one in lists() if verb in getattr(one, "VERBS", ())), "")


def verbs() -> list[str]:
    """Return all verbs, in the order that those of one group have on the help page."""
    found: list[str] = []
    for one in lists():
        places, at = getattr(one, "PLACES", {}), len(found)
        for verb in getattr(one, "VERBS", ()):
            if verb in places:
                at = found.index(places[verb]) + 1
            found.insert(at, verb)
            at += 1
    return found


def table(part: str) -> dict[str, Any]:
    """Return a part that is a dictionary, such as ``"ALIASES"``, of all packages together."""
    return {name: value for one in lists() for name, value in getattr(one, part, {}).items()}


def nouns() -> dict[str, dict[str, str]]:
    """Return the words of each noun with their verbs, of all packages together: ``{"task": {"claim": "claim"}}``."""
    found: dict[str, dict[str, str]] = {}
    for one in lists():
        for noun, words in getattr(one, "NOUNS", {}).items():
            found.setdefault(noun, {}).update(words)
    return found


def names(part: str) -> list[str]:
    """Return a part that is a tuple, such as ``"TOOLS"``, of all packages together."""
    return [name for one in lists() for name in getattr(one, part, ())]


def module_named(name: str) -> ModuleType:
    """Load the module `name` and return it."""
    __import__(name)
    return sys.modules[name]


def function_named(name: str) -> Callable[..., Any]:
    """Load the function of a name such as ``package.module:function``."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(module_named(module), function)
    return found


def react(moment: str, *arguments: object) -> Any:
    """Call the packages' functions for this `moment`. Return the first answer but None, or None.

    None is called while no clone on this machine shares its locks. That costs one look at the disk.
    """
    if shares_locks():
        return react_to_row(moment, *arguments)
    return None


def react_to_row(moment: str, *arguments: object) -> Any:
    """Do as `react`, where a row of the store already says that a package is concerned."""
    for package in REACTING:
        name = module_named(f"{package}.contributes").REACTIONS.get(moment)
        answer = function_named(name)(*arguments) if name else None
        if answer is not None:
            return answer
    return None


def tell_committed(database: Any, tables: set[str]) -> None:
    """Tell the packages that a transaction has changed rows of `tables`. Their faults are recorded, not raised."""
    try:
        react_to_row(COMMITTED, database, tables)
    except Exception as error:  # the change itself is done
        state.record_hourly("store", COMMITTED, state.describe(error))


# The coordinator's own verbs, tools and doctor checks.

# In the order that those of one group have on the help page.
VERBS = {
    "install": "swarm_mcp.cli.commands.install",
    "uninstall": "swarm_mcp.cli.commands.install",
    "status": "swarm_mcp.cli.commands.status",
    "doctor": "swarm_mcp.cli.commands.doctor",
    "demo": "swarm_mcp.cli.commands.doctor",
    "lock": "swarm_mcp.cli.commands.lock",
    "unlock": "swarm_mcp.cli.commands.lock",
    "hold": "swarm_mcp.cli.commands.hold",
    "locks": "swarm_mcp.cli.commands.locks",
    "why": "swarm_mcp.cli.commands.lock_explaining",
    "log": "swarm_mcp.cli.commands.log",
    "renew": "swarm_mcp.cli.commands.lock",
    "transfer": "swarm_mcp.cli.commands.lock",
    "request-lock": "swarm_mcp.cli.commands.lock",
    "steal": "swarm_mcp.cli.commands.lock",
    "restore": "swarm_mcp.cli.commands.restore",
    "instances": "swarm_mcp.cli.commands.sessions",
    "whoami": "swarm_mcp.cli.commands.sessions",
    "bootstrap": "swarm_mcp.cli.commands.sessions",
    "register": "swarm_mcp.cli.commands.sessions",
    "deregister": "swarm_mcp.cli.commands.sessions",
    "messages": "swarm_mcp.cli.commands.messages",
    "send": "swarm_mcp.cli.commands.messages",
    "broadcast": "swarm_mcp.cli.commands.messages",
    "prompt-peer": "swarm_mcp.cli.commands.messages",
    "tasks": "swarm_mcp.cli.commands.tasks",
    "request-task": "swarm_mcp.cli.commands.tasks",
    "claim": "swarm_mcp.cli.commands.tasks",
    "update-task": "swarm_mcp.cli.commands.tasks",
    "answer": "swarm_mcp.cli.commands.tasks",
    "watch": "swarm_mcp.cli.commands.watch",
    "kv": "swarm_mcp.cli.commands.kv",
    "inspect": "swarm_mcp.cli.commands.status",
    "statusline": "swarm_mcp.cli.commands.status",
    "resolve-workspace-handle": "swarm_mcp.cli.commands.ui",
    "ui": "swarm_mcp.cli.commands.ui",
    "cleanup": "swarm_mcp.cli.commands.doctor",
    "protect": "swarm_mcp.cli.commands.protect",
    "guard": "swarm_mcp.cli.commands.guard",
    "init": "swarm_mcp.cli.commands.install",
    "serve": "swarm_mcp.cli.commands.serve",
    "hook": "swarm_mcp.cli.commands.serve",
    "denied": "swarm_mcp.cli.commands.reports",
    "attempted": "swarm_mcp.cli.commands.reports",
    "alive": "swarm_mcp.cli.commands.reports",
    "agent-ended": "swarm_mcp.cli.commands.reports",
    "altered": "swarm_mcp.cli.commands.reports",
    "overwritten": "swarm_mcp.cli.commands.reports",
    "evicted": "swarm_mcp.cli.commands.reports",
    "bundle": "swarm_mcp.cli.commands.install",
    "fetched": "swarm_mcp.cli.commands.install",
    "completion": "swarm_mcp.cli.commands.completion",
}
NOUNS = {
    "task": {"list": "tasks", "request": "request-task", "claim": "claim", "end": "update-task", "answer": "answer"},
    "msg": {"list": "messages", "send": "send", "all": "broadcast", "wake": "prompt-peer"},
}
ALIASES = {"list-instances": "instances", "ls": "locks", "auto": "protect"}
OTHER_WORDS = {
    "release": "unlock", "free": "unlock", "unlock-all": "unlock", "rm": "unlock", "freeze": "lock",
    "guarded": "locks", "holders": "locks", "held": "locks", "queue": "locks", "show": "status", "overview": "status",
    "session": "instances", "tail": "watch", "feed": "watch", "monitor": "watch", "tell": "send", "say": "send",
    "notify": "send", "todo": "tasks", "jobs": "tasks", "lint": "doctor", "config": "doctor", "settings": "doctor",
    "pause-swarm": "protect off --for 1h", "silence": "protect off --for 1h", "mute": "protect off --for 1h",
    "snooze": "protect off --for 1h", "switch-off": "protect off --for 1h", "turn-off": "protect off --for 1h",
    "quiet": "protect off --for 1h", "bypass": "protect off --for 1h", "skip": "protect off --for 1h",
    "unprotect": "protect off", "on": "protect keep", "switch-on": "protect keep", "unmute": "protect keep",
    "drop": "unlock", "unhold": "unlock", "acquire": "lock", "take": "lock", "reserve": "lock", "who": "status",
    "state": "status", "info": "status", "sessions": "instances", "agents": "instances", "peers": "instances",
    "explain": "why", "history": "log", "events": "log", "extend": "renew", "refresh": "renew", "give": "transfer",
    "handover": "transfer", "hand-over": "transfer", "ask": "request-lock", "revert": "undo", "recover": "restore",
    "message": "send", "mail": "messages", "inbox": "messages", "wait": "watch", "follow": "watch", "check": "doctor",
    "test": "doctor", "verify": "doctor", "setup": "install", "add": "install", "enable": "install",
    "upgrade": "install", "update": "install", "remove": "uninstall", "level": "protect", "list": "locks",
    "disable": "protect off", "off": "protect off", "clean": "cleanup", "gc": "cleanup", "prune": "cleanup",
    "hooks": "guard", "mcp": "serve", "server": "serve",
}  # fmt: skip
TOOLS = (
    "swarm_mcp.server.tools.instances",
    "swarm_mcp.server.tools.locks",
    "swarm_mcp.server.tools.messages",
    "swarm_mcp.server.tools.tasks",
    "swarm_mcp.server.tools.kv",
    "swarm_mcp.server.tools.activity",
)
CHECKS = {
    "binary": "swarm_mcp.doctor.own_checks:binary",
    "database": "swarm_mcp.doctor.own_checks:database",
    "scope": "swarm_mcp.doctor.own_checks:scope",
    "instances": "swarm_mcp.doctor.own_checks:instances",
    "skill_discovery": "swarm_mcp.doctor.own_checks:skills",
    "plugin_discovery": "swarm_mcp.doctor.own_checks:plugins",
    "env": "swarm_mcp.doctor.own_checks:environment",
    "libraries": "swarm_mcp.doctor.own_checks:libraries",
    "sqlite": "swarm_mcp.doctor.own_checks:journal",
    "checker": "swarm_mcp.doctor.own_checks:checkers",
    "state": "swarm_mcp.doctor.own_checks:state",
    "settings": "swarm_mcp.doctor.own_checks:settings",
    "protect": "swarm_mcp.doctor.own_checks:protection",
    "merge": "swarm_mcp.doctor.own_checks:merging",
    "authorship": "swarm_mcp.doctor.own_checks:authorship",
    "fail": "swarm_mcp.doctor.own_checks:failed_checks",
    "guard": "swarm_mcp.doctor.own_checks:guard",
    "kernel": "swarm_mcp.doctor.own_checks:kernel_hold",
    "faults": "swarm_mcp.doctor.own_checks:faults",
}
