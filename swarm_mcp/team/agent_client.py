"""Requests to this machine's team agent, the one process here that speaks to the team's server.

It listens on a Unix socket in the state folder and answers one line of JSON with another. It is started on demand. This
module loads little, since ordinary verbs use it. No answer takes longer than its given time.

`confirm` returns a `Confirmation`: ``making`` is one of

  granted       the team has granted all of them: ``fences`` of each lock by its id; ``settled``: every machine knows
  held          another session has one of them: the rows have been removed here. ``by`` is the other's lock
                (``protocol.LockRow``); the store mostly has it by now, and refuses in its own words
  unreachable   they hold on this machine only: ``error`` says why. They are confirmed when the server is back, or
                removed, with a message to their holder
  local         none of them is in a team's repository
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, TypedDict

from swarm_hook_core import clock, repository
from swarm_hook_core.lookup import GLOB
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.process import host_id, start_detached
from swarm_hook_core.state import make_private, team_socket
from swarm_hook_core.wording import duration
from swarm_mcp.domain import Lock, Task, is_mutex, is_name
from swarm_mcp.errors import NotConfirmed
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store
from swarm_mcp.store.database import Database
from swarm_mcp.store.lock_request import name_folders
from swarm_mcp.team import store_rows
from swarm_mcp.team.memberships import memberships
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.store_rows import TeamRepository

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    class Confirmation(TypedDict):
        """The answer to `confirm`: see this module's beginning."""

        answer: str
        fences: NotRequired[dict[str, int]]
        settled: NotRequired[bool]
        by: NotRequired[dict[str, Any]]
        error: NotRequired[str]


REACH_SECONDS = 2.0  # until a verb says that the team cannot be reached
SETTLE_SECONDS = 8.0  # longer than a mirror's lease: after it, a grant counts even if other machines stay silent
START_PAUSE = 0.02
GRANTED, HELD, UNREACHABLE, LOCAL = "granted", "held", "unreachable", "local"
SETTLED, LOST = "settled", "lost"


def confirm(
    lock_ids: list[str], seconds: float = REACH_SECONDS, settle_seconds: float = SETTLE_SECONDS
) -> Confirmation:
    """Have the team grant these locks of this machine, all or none, within `seconds`.

    After a grant, wait up to `settle_seconds` more until it is settled.
    """
    asked = {"ask": "confirm", "locks": lock_ids, "seconds": seconds, "settle": settle_seconds}
    return _confirmed(asked, seconds, seconds + settle_seconds)


def confirm_documents(documents: list[tuple[str, str]], seconds: float = REACH_SECONDS) -> Confirmation:
    """Tell the team, within `seconds`, about the latest change to tasks here: ``[("task", id)]``.

    The ``making`` is `GRANTED`; `HELD`: another machine was first with one of them, and its version is here by now;
    `UNREACHABLE` with ``error``: the change is posted when the server is back, unless it is undone before; `LOCAL`: no
    team has a part in them.
    """
    return _confirmed({"ask": "confirm", "documents": documents, "seconds": seconds}, seconds, seconds)


def _confirmed(asked: dict[str, Any], start_seconds: float, seconds: float) -> Confirmation:
    try:
        answer: Any = _ask(asked, start_seconds, seconds)
        answer.setdefault("answer", UNREACHABLE)
        found: Confirmation = answer
        return found
    except OSError as error:
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            why = "the team agent does not start"
        elif isinstance(error, TimeoutError):
            why = "the team agent did not answer in time"
        else:
            why = str(error)
        return {"answer": UNREACHABLE, "error": why}


def poke() -> None:
    """Tell the agent that shared rows or memberships have changed. Never waits for it; never fails.

    A missing agent is started, and looks for itself.
    """
    try:
        with _connected() as connection:
            connection.settimeout(0.2)
            connection.sendall(b'{"ask": "poke"}\n')
    except OSError:
        try:
            start()
        except OSError:
            return  # the next request to the agent reports that it cannot be started


def status(seconds: float = REACH_SECONDS, starts: bool = False, machines: bool = False) -> dict[str, Any] | None:
    """Return the agent's status (``agent.Agent.status``), or None without an agent.

    With `machines` the agent keeps a list of machines for a while.
    """
    try:
        found: dict[str, Any] = _ask({"ask": "status", "machines": machines}, seconds if starts else 0.0, seconds)
        return found
    except OSError:  # no agent
        return None


def is_there() -> bool:
    """Return True if an agent listens."""
    try:
        _connected().close()
    except OSError:  # no agent
        return False
    return True


def stop(seconds: float = REACH_SECONDS) -> bool:
    """Have the agent end. Returns True if there was one."""
    try:
        _ask({"ask": "stop"}, 0.0, seconds)
    except OSError:  # no agent
        return False
    return True


def start() -> None:
    """Start the agent, detached. Where one runs already the new one ends at once. Raises OSError."""
    start_detached([*coordinator_command(), "team", "agent"])


def _ask(asked: dict[str, Any], start_seconds: float, seconds: float) -> Any:
    """Return the agent's answer, within `seconds` from now. Raises OSError.

    One that does not run is started, and waited for `start_seconds` at most; 0: it is not.
    """
    begun = time.monotonic()
    started = False
    while True:
        try:
            connection = _connected()
            break
        except OSError:
            if time.monotonic() - begun >= start_seconds:
                raise
            if not started:
                start()
                started = True
            time.sleep(START_PAUSE)
    with connection:
        connection.settimeout(max(0.05, begun + seconds - time.monotonic()))
        connection.sendall(json.dumps(asked).encode() + b"\n")
        received = b""
        while not received.endswith(b"\n"):
            connection.settimeout(max(0.05, begun + seconds + 0.2 - time.monotonic()))
            some = connection.recv(65536)
            if not some:
                raise ConnectionError("the team agent has ended")
            received += some
    try:
        answer = json.loads(received)
    except (ValueError, RecursionError):
        raise ConnectionError("the team agent has given no answer") from None
    if isinstance(answer, dict):
        return answer
    return {}


def _connected() -> socket.socket:
    path = team_socket()
    if hasattr(os, "getuid") and os.lstat(os.path.dirname(path)).st_uid != os.getuid():
        raise PermissionError(f"{os.path.dirname(path)} belongs to somebody else")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(0.5)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def listening() -> socket.socket:
    """Return the agent's own end of the socket. For the elected agent only: it replaces another's socket."""
    path = team_socket()
    make_private(os.path.dirname(path))
    if os.path.lexists(path):
        os.remove(path)
    here = socket.socket(socket.AF_UNIX)
    here.bind(path)
    os.chmod(path, 0o600)
    here.listen(64)
    return here


# The freshness of this machine's copy of a team's locks, for verbs; hooks have ``swarm_hook_core.team``.

ASK_SECONDS = 2.0
LOOK_SECONDS = 0.2


def is_fresh(found: TeamRepository) -> bool:
    """Return True if every lock that counts elsewhere is known here."""
    if found.fresh_until is None or found.booted != clock.boot(host_id()):
        return False
    return found.fresh_until >= clock.now()


def known_here(store: Store, folder: str) -> dict[str, Any] | None:
    """Return ``{repository, fresh, said_at}`` of the work tree around `folder`; None outside of a team.

    `said_at`: Unix seconds of the server's last word.
    """
    tree = repository.tree_over(folder)
    if tree is not None:
        name = TeamRows(store).trees().get(tree.top)
    else:
        name = None
    if name is None:
        return None
    found = TeamRows(store).repositories().get(name)
    return {"repository": name, "fresh": found is not None and is_fresh(found), "said_at": found and found.said_at}


def repository_name(store: Store, scope: str) -> str | None:
    """Return the team's name for the repository of the work tree `scope`, or None."""
    return TeamRows(store).trees().get(scope)


def unheard_for(said_at: int | None) -> str:
    """Return for how long a server was not heard of, in words."""
    if said_at:
        return f"for {duration(time.time() - said_at)}"
    return "since this clone has joined"


def asked(folder: str, seconds: float = ASK_SECONDS) -> str:
    """Bring the locks in the work tree around `folder` up to date.

    Returns a text for people if that fails within `seconds`; empty for success, and outside of teams.
    """
    with Store(read_only=True) as store:
        known = known_here(store, folder)
        if known is None or wait_until_fresh(store, known["repository"], seconds):
            return ""
    silence = unheard_for(known["said_at"])
    return f"the team's server was not heard of {silence}: locks of other machines since then are unknown here"


def wait_until_fresh(store: Store, name: str, seconds: float) -> bool:
    """Wait until the copy of the repository called `name` is fresh, for at most `seconds`. Returns True if it is."""
    end = time.monotonic() + seconds
    with store.changes() as changes:
        is_poked = False
        while True:
            found = TeamRows(store).repositories().get(name)
            if found is not None and is_fresh(found):
                return True
            if not is_poked:
                poke()
                is_poked = True
            left = end - time.monotonic()
            if left <= 0:
                return False
            changes.wait(min(left, LOOK_SECONDS))
            store.refresh()


# Changes to this machine's rows that its team agent has to know of at once.
#
# The agent posts locks, queue places, tasks, values and messages. It names the living sessions with each of its beats,
# so a change to a session is no news for it. But a session needs an agent: where the copy of the team's locks is no
# longer fresh, the agent may have been killed, and a session's next sign of life starts another.

UNKNOWN = ""  # the name of a table that the store could not tell from its statement
POSTED = frozenset(
    ("context", "kv", "kv_scope_updates", "swarm_team_documents", "swarm_team_trees", "swarm_waiters", "tasks", UNKNOWN)
)
SESSIONS = frozenset(("instances", "swarm_sessions"))


def tell_agent(db: Database, tables: set[str]) -> None:
    """Tell the agent of a commit that has changed rows of `tables`, if it has to know; start a missing one."""
    if not POSTED.isdisjoint(tables) or (not SESSIONS.isdisjoint(tables) and _is_missed(db)):
        poke()


def _is_missed(db: Database) -> bool:
    """Return True if a session works in a joined work tree, and the copy of the team's locks there is not fresh."""
    known, copies = store_rows.trees(db), store_rows.repositories(db)
    if known and all(name in copies and is_fresh(copies[name]) for name in known.values()):
        return False
    # Not of `known`: the agent writes these rows, and may not have come to it.
    return bool(store_rows.living_in(db, [top for one in memberships() if one.is_there for top in one.tops]))


# The team's confirmation of locks and task claims that were just granted on this machine.


class TeamGrant(NamedTuple):
    """The team's answer about locks that were taken here.

    state   `SETTLED`: they hold on all machines. `GRANTED`: they will, once every machine knows of them. `LOST`:
            another machine was faster, and they are not held here any more. `UNREACHABLE`: they hold on this machine
            only, and the team is asked later
    fences  the team's number of each, by the lock's id; locks outside of joined work trees have none
    why     the obstacle to asking the team, for people
    """

    state: str
    fences: dict[str, int] = {}
    why: str = ""

    def shown(self, lock: Lock) -> dict[str, Any]:
        """Return the field that it adds to the answer for `lock`."""
        if self.state == UNREACHABLE:
            return {"team": {"reachable": False, "error": self.why}}
        return {"team": {"fence": self.fences.get(lock.id), "settled": self.state == SETTLED}}

    def facts(self, lock: Lock) -> dict[str, Any]:
        """Return the team's number of `lock` as a field, if it has one."""
        if lock.id in self.fences:
            return {"team_fence": self.fences[lock.id]}
        return {}

    @property
    def is_lost(self) -> bool:
        """Return True if another machine was faster."""
        return self.state == LOST

    @property
    def is_everywhere(self) -> bool:
        """Return True if they hold on all machines."""
        return self.state == SETTLED

    @property
    def said(self) -> str:
        """Return the text beside the lock about the machines that it holds on."""
        if self.state == UNREACHABLE:
            return f"on this machine only: {self.why or 'the team was not reached'}"
        if self.state == SETTLED:
            return "on all machines"
        return "in the team; not every machine knows of it yet"


def confirm_locks(store: Store, rows: list[Lock]) -> TeamGrant | None:
    """Have the team confirm locks that were just taken; None for locks outside of a team.

    Takes 2 seconds at most if the server is unreachable, and up to the lease of a mirror (some seconds) if another
    machine sleeps or is cut off.
    """
    tops = TeamRows(store).trees()
    concerned = [row.id for row in rows if _may_concern(row, tops)]
    if not concerned:
        return None
    told = confirm(concerned)
    if told["answer"] == LOCAL:
        return None
    if told["answer"] == HELD:
        return TeamGrant(LOST)
    if told["answer"] == GRANTED:
        return TeamGrant(SETTLED if told.get("settled") else GRANTED, told.get("fences", {}))
    return TeamGrant(UNREACHABLE, why=told.get("error", ""))


def confirm_task(store: Store, task: Task, prior_status: str) -> bool:
    """Return True if the task is the same on all machines; False if another machine was faster and has changed it.

    Raises NotConfirmed, with the claim taken back, if the team's server cannot be reached.
    """
    if task.scope not in TeamRows(store).trees():
        return True
    told = confirm_documents([("task", task.id)])
    if told["answer"] == UNREACHABLE:
        store.tasks.take_back(task, prior_status)
        why = told.get("error", "")
        raise NotConfirmed(
            "the team's server cannot be reached, so nobody can know whether another machine has claimed it"
            + (f" ({why})" if why else "")
        )
    return told["answer"] != HELD


def _may_concern(row: Lock, tops: Iterable[str]) -> bool:
    """Return True if a lock may lie in one of these work trees."""
    if is_mutex(row.file) or row.path_key is None:
        return False
    if is_name(row.file):
        return any(row.path_key.startswith(folder + "/") for top in tops for folder in name_folders(top))
    key = row.path_key.removeprefix(GLOB)
    is_folded = key.startswith(NO_CASE)
    path = key.removeprefix(NO_CASE).rstrip("/") + "/"
    return any(path.startswith((top.casefold() if is_folded else top).rstrip("/") + "/") for top in tops)
