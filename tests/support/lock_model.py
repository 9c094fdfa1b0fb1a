"""The behaviour of locks, in plain sets: the model for ``test_lock_machine``'s comparison with the store and the hooks.

A lock's reach is the set of its paths in a small world; two locks meet if their sets do. Nothing in here comes from the
code under test. Names are relative to one folder.
"""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

FOLDERS = ("a", "a/sub", "b", "b/sub")  # on disk; `new` is not there yet
PATHS = (
    *FOLDERS, "new", "new/sub", "x.py", "y.sql", "x.txt",
    "a/x.py", "a/y.sql", "a/x.sql", "a/x.txt", "a/sub/x.py", "a/sub/z.sql", "a/sub/x.txt",
    "b/x.py", "b/y.sql", "b/x.txt", "b/sub/x.py", "b/sub/z.sql", "b/sub/x.txt",
    "new/x.py", "new/y.sql", "new/x.txt", "new/sub/x.py", "new/sub/z.sql", "new/sub/x.txt",
)  # fmt: skip
PLAIN = ("x.py", "a/x.py", "a/sub/x.py", "b/y.sql", "b/sub/x.py", "new/x.py", "a", "a/sub", "b/", "b/sub", "new/")
PATTERNS = ("*.sql", "a/**", "a/*", "a/*.py", "**/sub/*", "new/**/x.py", "[ab]/x.*", "b/s*/", "x.*")
NAMES = PLAIN + PATTERNS
FILES = tuple(name for name in PLAIN if "." in name)
SHARED, AUTO = "shared", "auto"
TURN_LEASE = 600.0  # of a file that a session has for its turn, from its last write
SILENT = 30.0  # seconds without a heartbeat after which others pass a waiter
Holder = tuple[str, str]  # a session and one of its agents, empty for all


class No(Exception):
    """This has to be refused. `by`: the sessions that may be named as the reason."""

    def __init__(self, *by: str):
        super().__init__(*by)
        self.by = by


class Circle(No):
    """Waiting for this would close a circle."""


@cache
def reach(name: str) -> frozenset[str]:
    """The paths of the world that a lock of this name holds."""
    if name in PLAIN:
        top = name.rstrip("/")
        return frozenset(path for path in PATHS if path == top or path.startswith(top + "/"))
    parts = name.strip("/").split("/")
    if "/" not in name.rstrip("/"):
        parts = ["**", *parts]
    if name.endswith("/"):
        parts.append("**")
    return frozenset(path for path in PATHS if _fits(parts, path.split("/")))


def _fits(pattern: list[str], parts: list[str]) -> bool:
    if not pattern or not parts:
        return pattern == parts
    if pattern[0] == "**":
        return len(pattern) == 1 or any(_fits(pattern[1:], parts[skipped:]) for skipped in range(len(parts)))
    return fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])


def overlap(left, right) -> bool:
    """Return True if some path has a name in both."""
    return any(reach(one) & reach(other) for one in left for other in right)


@dataclass(eq=False)
class Grant:
    """A lock: holder, name, mode and number. `renewed`: its holder's last heartbeat before it."""

    holder: Holder
    name: str
    mode: str
    fence: int
    ttl: float | None
    renewed: float

    def keeps_out(self, holder: Holder, mode: str) -> bool:
        """Return True if it keeps `holder` from an overlapping lock."""
        session, agent = self.holder
        if session == holder[0] and agent in ("", holder[1]):
            return False
        return not self.mode == mode == SHARED


@dataclass(eq=False)
class Wait:
    """A place in the queue; `until` is its end, None for never; `fence` the last number at its beginning.

    `seen`: its last heartbeat.
    """

    holder: Holder
    names: tuple[str, ...]
    mode: str
    ttl: float | None
    until: float | None
    fence: int
    seen: float


@dataclass
class Model:
    """All sessions, locks and waits at the time `now` (seconds). `lease` is that of a session.

    `homes`: the machine of each session, empty for one machine; `here`: the asked machine. Automatic locks, and the
    silence of a waiter, are known on their own machine alone. An automatic lock has no number, and is shown by no listing
    while other locks are on its file.
    """

    lease: float
    now: float = 0.0
    seen: dict[str, float] = field(default_factory=dict)  # session -> its last sign of life
    dead: set[str] = field(default_factory=set)  # proved to be
    grants: list[Grant] = field(default_factory=list)
    queue: list[Wait] = field(default_factory=list)  # first come, first
    fence: int = 0  # the last number
    homes: dict[str, int] = field(default_factory=dict)
    here: int = 0

    def waiting(self) -> list[Wait]:
        """Return the present waiters, first come, first."""
        return [wait for wait in self.queue if not self.has_gone(wait.holder[0])]

    def has_gone(self, session: str) -> bool:
        """Return True if a session no longer counts: dead, or silent for its lease. A silent one may come back."""
        return session not in self.seen or session in self.dead or self.seen[session] + self.lease < self.now

    def is_lost(self, session: str) -> bool:
        """Return True if a session can do nothing any more."""
        return session not in self.seen or session in self.dead

    def live(self) -> list[Grant]:
        """The locks that hold here and now, as listings show them."""
        live = self._all_live()
        asked = [grant.name for grant in live if grant.mode != AUTO]
        return [grant for grant in live if grant.mode != AUTO or not overlap([grant.name], asked)]

    def _all_live(self) -> list[Grant]:
        live = [grant for grant in self.grants if not self.has_gone(grant.holder[0])]
        return [grant for grant in live if grant.mode != AUTO or self.is_here(grant.holder)]

    def is_here(self, holder: Holder) -> bool:
        return self.homes.get(holder[0], 0) == self.here

    def held(self, session: str, agent: str, name: str) -> list[Grant]:
        """Return a session's locks (only those of one agent, if named) with that very name."""
        mine = [grant for grant in self.live() if grant.name == name and grant.holder[0] == session]
        return [grant for grant in mine if agent in ("", grant.holder[1])]

    def may_write(self, session: str, agent: str, path: str) -> bool:
        """Return True if there is no lock of another on that path, shared or not."""
        return not any(
            path in reach(grant.name) and (grant.holder[0] != session or grant.holder[1] not in ("", agent))
            for grant in self._all_live()
        )

    def keeping(self, holder: Holder, names, mode: str) -> list[Grant]:
        """Return the locks that keep `holder` from these."""
        return [grant for grant in self.live() if overlap([grant.name], names) and grant.keeps_out(holder, mode)]

    def ahead(self, holder: Holder, names, mode: str, place: Wait | None = None) -> list[Wait]:
        """Return the active waiters for some of these before `place` (None: all) that go first."""
        return [wait for wait in self._before(holder, names, mode, place) if not self._is_silent(wait)]

    def _before(self, holder: Holder, names, mode: str, place: Wait | None) -> list[Wait]:
        before = self.waiting()
        if place in before:
            before = before[: before.index(place)]
        return [wait for wait in before if wait.holder != holder and self._goes_before(wait, holder, names, mode)]

    def _is_silent(self, wait: Wait) -> bool:
        return self.is_here(wait.holder) and self.now - wait.seen >= SILENT

    def _goes_before(self, wait: Wait, holder: Holder, names, mode: str) -> bool:
        common = [name for name in names if overlap([name], wait.names)]
        if not common or wait.mode == mode == SHARED:
            return False
        kept = self.keeping(wait.holder, wait.names, wait.mode)
        if any(grant.holder == holder and grant.fence <= wait.fence for grant in kept):
            return False  # it waits for this very holder, and would for itself
        enough = ("exclusive", AUTO, mode)
        own = {grant.name for grant in self.live() if grant.holder == holder and grant.mode in enough}
        return not own.issuperset(common)

    def awaited(self, wait: Wait) -> list[Holder]:
        """Return the direct obstacles of a wait."""
        found = [grant.holder for grant in self.keeping(wait.holder, wait.names, wait.mode)]
        return found + [other.holder for other in self.ahead(wait.holder, wait.names, wait.mode, wait)]

    def in_circle(self, wait: Wait) -> bool:
        """Return True if the waiter waits, through others, for itself."""
        reached: set[Holder] = set()
        pending = self.awaited(wait)
        while pending:
            holder = pending.pop()
            if holder not in reached:
                reached.add(holder)
                for other in self.waiting():
                    pending += self.awaited(other) if other.holder == holder else []
        return wait.holder in reached

    def pass_time(self, seconds: float) -> None:
        """Leases lapse and waits end."""
        self.now += seconds
        self.grants = [grant for grant in self.grants if grant.ttl is None or self.now < grant.renewed + grant.ttl]
        self.queue = [wait for wait in self.queue if wait.until is None or self.now <= wait.until]

    def sign_of_life(self, session: str) -> None:
        """The session acts: its locks are renewed."""
        if self.is_lost(session):
            raise No(*self.seen)
        self.seen[session] = self.now
        for grant in self.grants:
            if grant.holder[0] == session and grant.mode != AUTO:
                grant.renewed = self.now

    def write(self, holder: Holder, name: str) -> None:
        """A hook lets `holder` write a file at level `turn`, or `No`: from then on it has that for its turn."""
        if not self.may_write(*holder, name):
            raise No(*self.seen)
        self.grants = [
            one for one in self.grants if (one.name, one.mode) != (name, AUTO) or not self._is_lost_to(one, holder)
        ]
        mine = [one for one in self.grants if (one.name, one.mode, one.holder[0]) == (name, AUTO, holder[0])]
        if mine:
            mine[0].renewed = self.now
        else:
            self.grants.append(Grant(holder, name, AUTO, 0, TURN_LEASE, self.now))

    def _is_lost_to(self, grant: Grant, holder: Holder) -> bool:
        """Return True if a gone session loses the file for its turn to the writer `holder` on the same machine."""
        return self.has_gone(grant.holder[0]) and self.homes.get(grant.holder[0], 0) == self.homes.get(holder[0], 0)

    def end_turn(self, holder: Holder) -> None:
        """Free the turn locks of `holder`."""
        self.grants = [grant for grant in self.grants if (grant.holder, grant.mode) != (holder, AUTO)]

    def end_agent(self, holder: Holder) -> None:
        """Free all locks of an ended agent."""
        self.grants = [grant for grant in self.grants if grant.holder != holder]

    def acquire(self, holder: Holder, names, mode: str, ttl: float | None, place: Wait | None = None) -> list[Grant]:
        """All of these, or `No`; the grants."""
        if self.is_lost(holder[0]):
            raise No(*self.seen)
        by = [grant.holder for grant in self.keeping(holder, names, mode)]
        by += [wait.holder for wait in self.ahead(holder, names, mode, place)]
        if by:
            raise No(*(session for session, _agent in by))
        for wait in self._before(holder, names, mode, place):
            self.queue.remove(wait)  # silent, and passed over
        self.sign_of_life(holder[0])
        if place:
            self.queue.remove(place)
        return [self._grant(holder, name, mode, ttl) for name in dict.fromkeys(names)]

    def _grant(self, holder: Holder, name: str, mode: str, ttl: float | None) -> Grant:
        for grant in self.grants:
            if (grant.holder, grant.name) == (holder, name) and grant.mode != AUTO:
                if grant.mode != mode:
                    self.fence += 1
                    grant.fence = self.fence
                grant.mode, grant.ttl, grant.renewed = mode, ttl, self.now
                return grant
        self.fence += 1
        self.grants.append(Grant(holder, name, mode, self.fence, ttl, self.now))
        return self.grants[-1]

    def give_back(self, grants: list[Grant], agent: str = "") -> None:
        """These are given up by their holder, with what it has of the same name for its turn (one `agent`'s)."""
        self.grants = [grant for grant in self.grants if grant not in grants]
        for given in grants:
            self._end_for_turn(given.holder[0], agent, given.name)

    def _end_for_turn(self, session: str, agent: str, name: str) -> None:
        ended = [one for one in self.grants if (one.mode, one.name, one.holder[0]) == (AUTO, name, session)]
        self.grants = [one for one in self.grants if one not in ended or agent not in ("", one.holder[1])]

    def transfer(self, grant: Grant, to: str) -> None:
        """Give a lock to another session, past all waiters; its own lock there is merged."""
        taker, giver = (to, ""), grant.holder[0]
        others = [other for other in self.keeping(taker, [grant.name], grant.mode) if other is not grant]
        named = self.held(*grant.holder, grant.name)
        if self.is_lost(grant.holder[0]) or to == grant.holder[0] or named != [grant] or others:
            raise No(to, *self.seen)
        theirs = [g for g in self.grants if (g.holder, g.name) == (taker, grant.name) and g.mode != AUTO]
        if not self.is_here(taker) and (grant.mode == AUTO or theirs):
            raise No(to)  # another machine gets the team's rows, and merges nothing
        self.sign_of_life(grant.holder[0])
        self.grants = [g for g in self.grants if g not in theirs]
        self.fence += 1
        if grant.mode == AUTO:  # it is a lock first, and then another's
            self.fence += 1
            self.grants.remove(grant)
            grant = Grant(taker, grant.name, "exclusive", self.fence, None, self.now)
            self.grants.append(grant)
        self._end_for_turn(giver, "", grant.name)
        grant.holder, grant.fence, grant.renewed = taker, self.fence, self.now

    def join(self, holder: Holder, names, mode: str, ttl: float | None, seconds: float | None) -> Wait:
        """A place at the end of the queue; Circle where waiting would never end."""
        self.sign_of_life(holder[0])
        self.queue = self.waiting()
        wait = Wait(holder, names, mode, ttl, None if seconds is None else self.now + seconds, self.fence, self.now)
        self.queue.append(wait)
        if self.in_circle(wait):
            self.queue.remove(wait)
            raise Circle
        return wait

    def forget(self, session: str) -> None:
        """It has left, or was found to have gone: nothing of it remains."""
        self.seen.pop(session, None)
        self.dead.discard(session)
        self.grants = [grant for grant in self.grants if grant.holder[0] != session]
        self.queue = [wait for wait in self.queue if wait.holder[0] != session]
