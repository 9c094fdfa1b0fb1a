"""What one person sees and does in one repository, over the team's server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import named, quoted
from swarm_mcp.errors import TeamRefused, TeamUnreachable
from swarm_mcp.team.lfs.held import Held, held_by, label_of, session_of
from swarm_mcp.team.lfs.names import FileNames, meets
from swarm_mcp.team.protocol import (
    EPOCH,
    GRACE,
    HELD,
    UNKNOWN_SESSION,
    AcquireAnswer,
    LockRow,
    News,
    Snapshot,
    region_of,
    want,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.team.server import TeamServer

# Who holds a person's lock is no process that could end. It lasts until it is unlocked, over restarts of this server
# and while it is off: nobody else has the password with which one could vouch for them. Each request of theirs renews
# this lease, the longest that the team's server gives.
LEASE = 30 * 86400.0
SETTLE_SECONDS = 20.0  # longer than a mirror's lease, after which one that is silent does not count
GRACE_SECONDS = 10.0  # that a request waits for a server that has just started
ROUNDS = 20  # of looking and asking, while others change what is asked for
NOTE = "git lfs lock"
_NOT_GREETED = ("superseded", "hello_first")  # by another process such as this one, for the same role; by nobody yet


class AlreadyHeld(Exception):
    """Somebody has what is asked for; the text says who. `held`: what, None for somebody in line before."""

    def __init__(self, text: str, held: Held | None):
        super().__init__(text)
        self.held = held


class NotHeld(Exception):
    """The lock is gone, or somebody else's by now. The text says so."""


class NotPermitted(Exception):
    """The team's server says no. The text says to what."""


class Unreachable(Exception):
    """The team's server gives no answer, or not yet. The text says so."""


class RepositoryLocks:
    """The locks of one repository for the person with `role`, as which `server` is connected.

    `files`: the names of files in it, None where no clone is known.
    """

    def __init__(self, server: TeamServer, repository: str, role: str, files: FileNames | None):
        self._server, self._repository, self._files = server, repository, files
        self.role, self._session = role, session_of(role)
        self._is_greeted = False
        self._seen: tuple[int, int] | None = None  # version and mark of the last look

    def held(self) -> list[Held]:
        """Return all locks, each on its own path. Those of this person are good for another lease."""
        rows = self._look()["all"]["locks"]
        if any(row["session"] == self._session for row in rows):
            self._register()
        return [held_by(row) for row in rows]

    def held_by_file(self, ref: str) -> list[Held]:
        """Return all locks, each on its own path and on every other file that it is known to reach.

        `ref`: the branch that is pushed to, empty where that is not known.
        """
        locks = self.held()
        if self._files:
            return [*locks, *self._files.reached(locks, ref)]
        return locks

    def is_own(self, held: Held) -> bool:
        """Whether it is this person's, taken with git-lfs. What an agent of theirs holds is that agent's."""
        return held.row["session"] == self._session

    def take(self, path: str) -> Held:
        """Lock the file `path` from the top. Raises AlreadyHeld, also where this person has it.

        Returned is what counts for everybody: each machine of the team knows it, or has been silent for its lease.
        """
        wanted = want(path, note=NOTE)
        for _ in range(ROUNDS):
            news = self._look()
            self._refuse_if_held(path, news["all"])
            self._register()
            answer = self._asked(self._server.acquire, self._session, [wanted], news["version"], news["mark"])
            if answer["ok"]:
                return self._settled(answer)
            if answer["why"] == HELD:
                raise _already_held(path, answer["by"])
            self._prepare(answer)
        raise Unreachable(f"others keep changing what is held at {named(path)}: try again")

    def give_back(self, held: Held) -> None:
        """Release a lock of this person. Raises NotHeld where it has gone meanwhile."""
        self._release(held.row["lock"], held.row["fence"])

    def take_away(self, held: Held) -> None:
        """Release a lock of somebody else, who is told by whom. Raises NotHeld where it has gone meanwhile."""
        lock, fence, reason = held.row["lock"], held.row["fence"], "git lfs unlock --force"
        for _ in range(ROUNDS):
            self._register()
            answer = self._asked(self._server.steal, lock, fence, self._session, reason=reason, force=True)
            if answer["ok"]:
                return self._release(lock, answer["fence"])
            if answer["why"] not in (GRACE, EPOCH, UNKNOWN_SESSION):
                break
            self._prepare(answer)
        raise _gone(held.path)

    # ------------------------------------------------------------ the team's server

    def _look(self) -> News:
        news = _translated(self._server.look, self._repository)
        if news is None:
            raise NotPermitted(f"{self.role} sees no repository {named(self._repository)} on the team's server")
        self._seen = news["version"], news["mark"]
        return news

    def _asked(self, call: Callable[..., Any], *values: Any, **more: Any) -> Any:
        """Return what a call of the team's server says; before the first it is told who speaks. It is no mirror."""
        for _ in range(ROUNDS):
            if not self._is_greeted:
                _translated(self._server.hello, self._repository, mirror_lease=0.0)
                self._is_greeted = True
            try:
                return _translated(call, self._repository, *values, **more)
            except _NotGreeted:
                self._is_greeted = False
        raise Unreachable(f"another process keeps speaking for {self.role}: run one `team lfs` a team")

    def _register(self) -> None:
        """Have the session there in which this person holds locks, and its lease begin anew."""
        session = {"session": self._session, "label": label_of(self.role), "lease": LEASE}
        for _ in range(ROUNDS):
            version, mark = self._seen or (None, 0)  # so that it is not told everything once more
            answer = self._asked(self._server.beat, version, mark, [session])
            if answer["ok"]:
                if self._session not in answer["joined"]:
                    raise NotPermitted(f"somebody else's session is called {self._session} on the team's server")
                return
            self._prepare(answer)
        raise Unreachable("the team's server keeps being put back: try again")

    def _prepare(self, answer: Mapping[str, Any]) -> None:
        """Do what a refusal wants, before the same is asked again."""
        if answer["why"] == EPOCH:
            self._is_greeted, self._seen = False, None
        if answer["why"] != GRACE:
            return
        if answer["seconds"] > GRACE_SECONDS:
            raise Unreachable(f"the team's server has just started: try again in {answer['seconds']:.0f} s")
        time.sleep(max(answer["seconds"], 0.05))

    def _settled(self, answer: AcquireAnswer) -> Held:
        """Return what was granted, once it counts for every machine; else give it back, and raise Unreachable."""
        lock, fence = answer["locks"][0], answer["fences"][0]
        if answer["settled"] or self._asked(self._server.settle, answer["version"], SETTLE_SECONDS):
            for row in self._look()["all"]["locks"]:
                if (row["lock"], row["fence"]) == (lock, fence):
                    return held_by(row)
            raise Unreachable("somebody has taken the lock away at once: try again")
        with contextlib.suppress(NotHeld):
            self._release(lock, fence)
        raise Unreachable("a machine of the team has not taken notice of the lock in time: try again")

    def _release(self, lock: int, fence: int) -> None:
        if not self._asked(self._server.release, [(lock, fence)]):
            raise _gone("the lock")

    def _refuse_if_held(self, path: str, there: Snapshot) -> None:
        for row in there["locks"]:
            if meets(path, row) and (row["session"] != self._session or row["region"] == region_of(path)):
                raise _already_held(path, row)
        for waiting in there["waits"]:
            if any(meets(path, part) for part in waiting["wants"]):
                who = f"{waiting['member']}: {holder_name(waiting['label'], waiting['session'])}"
                raise AlreadyHeld(f"{named(path)} is free, and {who} waits for it and is first", None)


class _NotGreeted(Exception):
    """The team's server does not know that this process speaks for its machine."""


def _already_held(path: str, row: LockRow) -> AlreadyHeld:
    held = held_by(row)
    if held.path == path:
        over = ""
    else:
        over = f" by a lock on {named(held.path)}"
    if row["note"] and row["note"] != NOTE:
        note = f", who says: {quoted(row['note'])}"
    else:
        note = ""
    return AlreadyHeld(f"{named(path)} is held{over} by {held.owner}{note}", held)


def _gone(what: str) -> NotHeld:
    return NotHeld(f"{named(what)} is not, or no longer, held so")


def _translated(call: Callable[..., Any], *values: Any, **more: Any) -> Any:
    try:
        return call(*values, **more)
    except TeamRefused as error:
        code = error.answer.get("code")
        if code in _NOT_GREETED:
            raise _NotGreeted from None
        raise (Unreachable if code == "no_team" else NotPermitted)(str(error)) from None
    except TeamUnreachable as error:
        raise Unreachable(str(error)) from None
