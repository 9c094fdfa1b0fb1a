"""A machine with its replica in memory: the smallest one that keeps the promises of `TeamServer`'s protocol.

The real team agent does the same over the local store, and is judged by the same storms. The comparison shows the cause
of a double holder.
"""

import json
import sys
import threading
import time
from pathlib import Path

from support.history import SHARED, reaches

from swarm_hook_core import clock
from swarm_mcp.errors import SwarmError
from swarm_mcp.team import protocol
from swarm_mcp.team.protocol import LockRow, News
from swarm_mcp.team.server import TeamServer

from .storm import LEASE, MIRROR_LEASE
from .workers import WORLD, Taken, work

TRIES = 20  # at a grant that is stale over and over


class Claim:
    """A row that the machine has for one of its own sessions: not confirmed while `fence` is 0."""

    def __init__(self, session: str, place: str, mode: str):
        self.session, self.place, self.mode = session, place, mode
        self.fence = self.lock = 0
        self.again = False


class ServerMachine:
    """One machine with its sessions: a thread that follows the log, and threads that take places for the sessions."""

    pause = 0.002

    def __init__(self, conninfo: str, repository: str, number: int, is_over):
        self.sessions = [f"M{number}-{one}" for one in range(3)]
        self._repository, self._name, self._is_over = repository, f"M{number}", is_over
        self._state = threading.RLock()
        self._claims: dict[tuple[str, str], Claim] = {}
        self._remote: dict[int, LockRow] = {}
        self._own: dict[int, LockRow] = {}  # the server's rows of our locks
        self._joined: dict[str, int] = {}
        self._good_until: dict[str, float] = {}
        self._fresh_until, self._version, self._mark, self._epoch = 0.0, 0, 0, ""
        self._server = TeamServer(conninfo, self._name)

    # ------------------------------------------------------------------ deeds of sessions

    def take(self, session: str, place: str, mode: str) -> Taken | None:
        claim = Claim(session, place, mode)
        with self._state:
            if session not in self._joined or self._others(session, place, mode):
                return None
            self._claims[session, place] = claim
        try:
            version = self._confirm(claim)
        except SwarmError:
            version = 0
        if not version:
            with self._state:
                self._claims.pop((session, place), None)
            return None
        return Taken(claim.fence, self._is_settled(version))

    def holds(self, session: str, place: str, fence: int) -> bool:
        with self._state:
            claim = self._claims.get((session, place))
            return claim is not None and claim.fence == fence and clock.now() < self._good_until.get(session, 0.0)

    def give_back(self, session: str, place: str, fence: int) -> None:
        with self._state:
            claim = self._claims.pop((session, place), None)
        if claim and claim.fence == fence:
            try:
                self._server.release(self._repository, [(claim.lock, fence)])
            except SwarmError:
                return  # the comparison does it

    def look(self, file: str) -> tuple[float, set[str]]:
        with self._state:
            theirs = {row["session"] for row in self._remote.values() if reaches(_place(row), file)}
            ours = {one.session for one in self._claims.values() if reaches(one.place, file)}
            return self._fresh_until, theirs | ours

    # ------------------------------------------------------------------ grants

    def _confirm(self, claim: Claim) -> int:
        """Return the version of the grant, 0 if another session has it."""
        for _ in range(TRIES):
            with self._state:
                if self._others(claim.session, claim.place, claim.mode):
                    return 0
                joined, epoch = self._joined.get(claim.session), self._epoch
                seen, mark = self._version, self._mark
                wanted = _want(claim)
            answer = self._server.acquire(self._repository, claim.session, [wanted], seen, mark)
            with self._state:
                if answer["ok"]:
                    is_gone = self._version >= answer["version"] and answer["locks"][0] not in self._own
                    if is_gone or joined != self._joined.get(claim.session) or epoch != self._epoch:
                        return 0  # it was void before it was here; the comparison releases its rest
                    claim.fence, claim.lock = answer["fences"][0], answer["locks"][0]
                    return answer["version"]
                if answer["why"] != protocol.STALE:
                    return 0
                if answer["news"]["version"] > self._version and epoch == self._epoch:
                    self._apply(answer["news"])
        return 0

    def _is_settled(self, version: int) -> bool:
        try:
            return self._server.settle(self._repository, version, 2 * MIRROR_LEASE)
        except SwarmError:
            return False

    # ------------------------------------------------------------------ the replica

    def run(self) -> None:
        """Beat, apply news, and release unused locks, until the end with nothing left."""
        while True:
            try:
                self.step()
                if self._is_over() and not self._own:
                    return
                self._server.listen(MIRROR_LEASE / 3)
            except SwarmError as error:
                print(f"{clock.now():.3f} {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                time.sleep(0.05)

    def step(self) -> None:
        """Beat until there is no more news, release unused locks, and remove silent sessions."""
        self._beat()
        self._compare()
        self._server.reap(self._repository)

    def _beat(self) -> None:
        if not self._epoch:
            answer = self._server.hello(self._repository, mirror_lease=MIRROR_LEASE)
            with self._state:
                self._epoch, self._version = answer["epoch"], 0
                self._apply(answer["news"])
        while True:
            sent = clock.now()
            answer = self._server.beat(self._repository, self._version, self._mark, self._named(sent))
            with self._state:
                if not answer["ok"]:
                    self._void()
                    return
                for session, joined in answer["joined"].items():
                    if self._joined.get(session, joined) != joined:
                        self._void(session)
                    self._joined[session] = joined
                    self._good_until[session] = sent + LEASE * (1 - protocol.MARGIN)
                self._apply(answer["news"])
                if not answer["news"]["more"] and not answer["grace"]:
                    self._fresh_until = sent + MIRROR_LEASE * (1 - protocol.MARGIN)
                if not answer["news"]["changes"] and "all" not in answer["news"]:
                    return

    def _named(self, now: float) -> list[dict]:
        """Return the sessions of a beat at `now`."""
        return [{"session": one, "label": one, "lease": LEASE} for one in self.sessions]

    def _lose(self, claim: Claim) -> None:
        """Remove a claim after its end at the server."""
        del self._claims[claim.session, claim.place]

    def _void(self, session: str = "") -> None:
        """Void the server's grants: all, or those of one session."""
        for claim in list(self._claims.values()):
            if session in ("", claim.session):
                self._lose(claim)
        if not session:
            print(f"{clock.now():.3f} a new epoch after {self._epoch} at {self._version}", file=sys.stderr, flush=True)
            self._epoch, self._version, self._mark, self._fresh_until = "", 0, 0, 0.0
            self._joined.clear()
            self._good_until.clear()

    def _apply(self, news: News) -> None:
        if "all" in news:
            self._remote, self._own = {}, {}
            for row in news["all"]["locks"]:
                self._put(row)
        elif news["version"] < self._version:
            return
        for change in news["changes"]:
            if change["version"] <= self._version:
                continue  # another answer brought it
            row = change["body"]
            if change["kind"] in (protocol.LOCK, protocol.UNLOCK):
                self._remote.pop(row["lock"], None)
                self._own.pop(row["lock"], None)
            if change["kind"] == protocol.LOCK:
                self._put(row)
            for claim in [one for one in self._claims.values() if one.lock == row.get("lock")]:
                is_over = change["kind"] == protocol.UNLOCK and claim.fence == row["fence"]
                is_stolen = change["kind"] == protocol.LOCK and claim.fence < row["fence"]
                if is_over or is_stolen:
                    self._lose(claim)
        self._version, self._mark = news["version"], news["mark"]

    def _put(self, row: LockRow) -> None:
        (self._own if row["machine"] == self._name else self._remote)[row["lock"]] = row

    def _compare(self) -> None:
        with self._state:
            left = [
                (row["lock"], row["fence"])
                for row in self._own.values()
                if (row["session"], _place(row)) not in self._claims
            ]
        if left:
            self._server.release(self._repository, left)
            self._beat()

    def _others(self, session: str, place: str, mode: str) -> bool:
        theirs = [(row["session"], _place(row), row["mode"]) for row in self._remote.values()]
        ours = [(one.session, one.place, one.mode) for one in self._claims.values()]
        return any(
            other != session
            and not (mode == its_mode == SHARED)
            and any(reaches(place, file) and reaches(its_place, file) for file in WORLD)
            for other, its_place, its_mode in theirs + ours
        )


def _want(claim: Claim):
    if "*" in claim.place:
        return protocol.want(pattern=claim.place, mode=claim.mode, again=claim.again)  # type: ignore[arg-type]
    return protocol.want(claim.place, is_folder="." not in claim.place, mode=claim.mode, again=claim.again)  # type: ignore[arg-type]


def _place(row) -> str:
    return row.get("pattern") or row.get("place", "")


def is_fresh_too_long() -> None:
    """Planted: a replica counts as fresh for longer than others wait for it."""
    protocol.MARGIN = -2.0


def main() -> None:
    told = json.loads(sys.argv[1])
    if told.get("planted"):
        globals()[told["planted"]]()
    stop = Path(told["stop"])
    machine = ServerMachine(told["conninfo"], told["repository"], told["number"], stop.exists)
    runner = threading.Thread(target=machine.run)
    runner.start()
    work(machine, stop.exists, Path(told["report"]), told["seed"])
    runner.join()


if __name__ == "__main__":
    main()
