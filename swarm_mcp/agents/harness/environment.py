"""A child's equipment: its variables, private folder and plugin, and the kernel's hold on others' locks.

A worker started from inside a session would take that session for its own: its hooks would speak for the parent, and
its client would believe itself nested. Settings and credentials stay: they are the user's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from swarm_hook_core import settings, state
from swarm_hook_core.kernel import namespace, planning
from swarm_hook_core.process import gone, host_id, start_time
from swarm_hook_core.state import make_private, open_private, state_dir, store_path, write_private
from swarm_mcp import runtimes
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.domain import RUN_RUNTIME
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.installation import plugin_source
from swarm_mcp.processes import OUTLIVES, RUN_ID
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.users_file import RECORD, differing

# Of swarm itself, and of the terminal that a session sits in; `_OWN_ENDS` are of every runtime's own (SWARM_CC_LABEL).
_OWN = frozenset({
    "SWARM_MCP_INSTANCE_ID", "SWARM_TASK_ID", "SWARM_MCP_ALLOW_SPAWN", "SWARM_ALLOW_YOLO", "HERDR_PANE_ID",
    "HERDR_PANE", "SWARM_LOOP_CONFIG", "SWARM_RUN_WORDS", "SWARM_MCP_SESSION_ARGUMENT", "SWARM_ITERATION",
    RUN_ID, OUTLIVES,
})  # fmt: skip
API_KEY = "SWARM_API_KEY"
_OWN_ENDS = ("_LABEL", "_AGENT_ROLE")


def is_foreign(name: str) -> bool:
    """Return True for a variable that names the session of this process."""
    names, beginnings, kept = _of_the_runtimes()
    if name in _OWN or (name.startswith("SWARM_") and name.endswith(_OWN_ENDS)) or name in names:
        return True
    return name.startswith(beginnings) and name not in kept


@functools.cache
def _of_the_runtimes() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """Return the variables of all runtimes' sessions, their prefixes, and exceptions from these prefixes."""
    everyone = [runtimes.runtime(name) for name in runtimes.NAMES]
    listed = [name for runtime in everyone for name in runtime.session_variables]
    beginnings = tuple(name.removesuffix("*") for name in listed if name.endswith("*"))
    return frozenset(listed), beginnings, frozenset(name for runtime in everyone for name in runtime.kept_variables)


def without_session(environment: Mapping[str, str] | None = None, drop: Iterable[str] = ()) -> dict[str, str]:
    """Return `environment` (default: this process's) without foreign variables and without `drop`.

    A process that is to outlive the worker that starts it (another supervisor, a terminal server) is started with
    `independent`: all other processes of a run end with it.
    """
    unwanted = frozenset(drop)
    if environment is None:
        environment = os.environ
    return {name: value for name, value in environment.items() if not is_foreign(name) and name not in unwanted}


def independent(drop: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a process that is to outlive the run that starts it."""
    return {**without_session(drop=drop), OUTLIVES: "1"}


def swarm_variables(query: Query) -> dict[str, str]:
    """Return the variables that name the child for its hooks and its MCP server; unknown ones are left out."""
    known = {
        "SWARM_MCP_INSTANCE_ID": query.instance_id,
        "SWARM_MCP_SCOPE": query.scope,
        "SWARM_MCP_LABEL": query.label,
        "SWARM_AGENT_ROLE": query.role,
        "SWARM_TASK_ID": query.task_id,
        RUN_ID: query.run_id,
        "SWARM_ITERATION": str(query.iteration or ""),
        "SWARM_API_URL": query.api_url,
        API_KEY: query.api_key,
    }
    return {name: value for name, value in known.items() if value}


def added(query: Query, own: Mapping[str, str]) -> dict[str, str]:
    """Return the additions to this process's environment for a child of `query`; `own` is the adapter's and wins.

    The run's id cannot be overridden: stray descendants are found by it.
    """
    return {**swarm_variables(query), **query.env, **own, RUN_ID: query.run_id}


# A private folder for one run, removed with the run.
#
# A killed supervisor cannot remove its folder; the next run does, on proof that the process is gone. The folder lies in
# the state folder, never in a checkout: its files may hold addresses, configuration, and a prompt.

OWNER = "owner"
FORGOTTEN_SECONDS = 3600  # a folder that never came to have an owner


def place() -> str:
    """Return where these folders lie."""
    return os.path.join(state_dir(), "running")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder of mode 0700 that is removed at the end of the block. Raises OSError."""
    make_private(place())
    sweep()
    outer = tempfile.mkdtemp(prefix="run-", dir=place())
    try:
        pid = os.getpid()
        write_private(os.path.join(outer, OWNER), f"{pid}\n{start_time(pid)}\n{host_id()}\n")
        inner = os.path.join(outer, "files")
        os.mkdir(inner, 0o700)
        yield Path(inner)
    finally:
        remove(outer)


def written(path: Path, text: str) -> str:
    """Write a private file with this text, and return its path, for settings that name it."""
    write_private(str(path), text)
    return str(path)


def sweep() -> list[str]:
    """Remove the folders of supervisors that are provably gone. The paths that were removed."""
    removed, here = [], host_id()
    try:
        names = os.listdir(place())
    except OSError:  # no folders yet
        return []
    for name in names:
        folder = os.path.join(place(), name)
        if name.startswith("run-") and _left(folder, here):
            remove(folder)
            removed.append(folder)
    return removed


def remove(folder: str) -> None:
    """Remove a folder and its content, read-only parts included. Never raises, never follows a link."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        for inner, _folders, _files in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(inner, stat.S_IRWXU)
        time.sleep(0.01)  # a process may still be writing there


def _left(folder: str, here: str) -> bool:
    try:
        with open(os.path.join(folder, OWNER), encoding="utf-8") as file:
            pid, started, host = file.read(4096).splitlines()[:3]
        return gone(host, int(pid), started, here)
    except (OSError, ValueError):
        try:
            return os.stat(folder).st_mtime < time.time() - FORGOTTEN_SECONDS
        except OSError:  # removed meanwhile
            return False


# A child's equipment from us: the plugin with the hooks, if the user's own configuration lacks it, and skills.

FOLDER = "plugin"


def plugin_folder() -> Path:
    """Return the folder of an up-to-date local bundle, in this user's state folder.

    A client that runs from it may be at work while a newer installation brings it up to date: files are replaced
    one by one, whole. Raises SwarmError where the folder cannot be written.
    """
    import fcntl

    target = Path(state_dir()) / FOLDER
    try:
        if _is_current(target):
            return target
        make_private(str(target.parent))
        # Many workers may start at once: one of them writes, the others find it done.
        with open(open_private(f"{target}.lock", os.O_WRONLY | os.O_CREAT), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_current(target):
                bundle.write(target, local=True, force=True)
    except OSError as error:
        raise SwarmError(f"the plugin for workers cannot be written to {target}: {error.strerror or error}") from None
    return target


def _is_current(target: Path) -> bool:
    """Return True if every file of the bundle has its right bytes; the record is written last."""
    return (target / RECORD).is_file() and not differing(target, bundle.contents(target))


OURS = "swarm-mcp"
FILE = "SKILL.md"


def skill_folders(query: Query) -> tuple[str, ...]:
    """Return the absolute folders of all skills, ours and the query's. One of the query's may replace ours.

    Raises Refused for a folder of the query without a skill, and for two skills of one name.
    """
    found = {OURS: str(plugin_source() / "skills" / OURS)}
    named: dict[str, str] = {}
    for given in query.skills:
        folder = os.path.normpath(os.path.join(query.cwd, os.path.expanduser(given)))
        name = os.path.basename(folder)
        if not os.path.isfile(os.path.join(folder, FILE)):
            raise Refused(f"{given[:200]} is no skill: it has no {FILE}")
        if named.setdefault(name, folder) != folder:
            raise Refused(f"two skills are called {name[:40]!r}: {named[name]} and {folder}")
    return tuple({**found, **named}.values())


def described(folder: str) -> tuple[str, str]:
    """Return name and description of a skill, from the frontmatter of its SKILL.md; empty where missing."""
    facts = {"name": os.path.basename(folder), "description": ""}
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8", errors="replace") as file:
            head = file.read(16384)
    except OSError:  # without a description
        return facts["name"], ""
    if head.startswith("---"):
        for line in head.split("---", 2)[1].splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() in facts and value.strip():
                facts[key.strip()] = value.strip().strip("'\"")
    return facts["name"], facts["description"]


# A child with all permissions, while the kernel holds the locks of others, if a person wants that.
#
# ``swarm_hook_core.kernel`` implements it. Locks taken after the child's start are not held for it; released ones
# become writable.


class NotHeld(Exception):
    """The locks of others are not held, with the reason. `is_final`: the child must not start so."""

    def __init__(self, why: str, is_final: bool):
        super().__init__(why)
        self.is_final = is_final


def inside(query: Query, argv: list[str], folder: Path) -> list[str]:
    """Return the command line that starts the child of `query`: `argv` itself where there is nothing to be held.

    The plan is written into `folder`. Raises NotHeld.
    """
    if not query.instance_id or not settings.kernel("", query.cwd):
        return argv
    is_strict = settings.strict("", query.cwd)
    try:
        whose = RUN_RUNTIME, query.run_id, query.instance_id
        plan, are_all = planning.plan_of_process(whose, query.cwd, is_strict, store_path())
        if plan is None and are_all:
            return argv
        program = planning.keeps_out(shlex.join([os.path.basename(argv[0]), *argv[1:]]), query.cwd)
        if program:
            raise NotHeld(f"{program} does not work so", is_strict)
        if not namespace.works():
            raise NotHeld("the kernel does not do it here: swarm-mcp doctor says why", is_strict)
        if plan is None or (is_strict and not are_all):
            raise NotHeld("some of it is not there yet, or is a pattern", is_strict)
        place = folder / "held"
        write_private(str(place), plan.text())
        return planning.inside(str(place), argv)
    except NotHeld:
        raise
    except Exception as error:
        state.record(RUN_RUNTIME, "kernel", state.describe(error))
        raise NotHeld(state.describe(error), is_strict) from error
