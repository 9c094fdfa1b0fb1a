"""A team's server in memory, by ``swarm_mcp.team.protocol``, for tests of its callers."""

import copy
import itertools
import threading

from swarm_mcp.domain import CLAIMED, IN_PROGRESS
from swarm_mcp.team import TeamRefused, TeamUnreachable, protocol
from swarm_mcp.team.protocol import regions_meet

_BODY = ("place", "is_folder", "pattern", "base", "region", "mode", "agent", "note", "ttl", "expected_end", "task_id")


class FakeRepository:
    """One repository: its log and the state that follows from it."""

    def __init__(self) -> None:
        self.version = 0
        self.changes: list[dict] = []
        self.locks: dict[int, dict] = {}
        self.waits: dict[int, dict] = {}
        self.sessions: dict[str, dict] = {}
        self.mirrors: dict[str, dict] = {}
        self.documents: dict[tuple[str, str], dict] = {}


class FakeTeam:
    """The server. `clock`: its time, set by a test; `down`: unreachable; `kept`: the number of kept changes.

    `schema`: a test sets 1, for a server without documents.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, FakeRepository] = {}
        self.epoch = "first"
        self.grace = 0.0
        self.clock = 1000.0
        self.down = False
        self.kept = 10_000
        self.schema = protocol.COMPLETE_SCHEMA
        self.calls: list[str] = []
        self.changed = threading.Condition(threading.RLock())
        self._numbers = itertools.count(1)

    def restore(self, repository: str, version: int) -> None:
        """Restore an earlier state, as after a failover to an old copy."""
        with self.changed:
            one = self.repositories[repository]
            gone = [change for change in one.changes if change["version"] > version]
            one.changes = [change for change in one.changes if change["version"] <= version]
            one.version = version
            for change in gone:
                if change["kind"] == protocol.LOCK:
                    one.locks.pop(change["body"]["lock"], None)
            one.documents.clear()
            for change in one.changes:
                name = (change["body"].get("kind"), change["body"].get("key"))
                if change["kind"] == protocol.DOCUMENT:
                    one.documents[name] = {"based": -1, **copy.deepcopy(change["body"])}
                elif change["kind"] == protocol.DOCUMENT_GONE:
                    one.documents.pop(name, None)
            self.epoch += "'"

    def void(self, repository: str, grace: float = 60.0) -> None:
        """Forget all sessions and grants, as after ``--new-epoch``: for `grace` only earlier ones are confirmed."""
        with self.changed:
            one = self.repositories[repository]
            for rows in (one.changes, one.locks, one.waits, one.sessions):
                rows.clear()
            one.version += 1048576
            self.epoch += "'"
            self.grace = grace

    def server(self, machine: str, member: str = "me") -> "FakeServer":
        return FakeServer(self, machine, member)


class FakeServer:
    """One machine's ``TeamServer``."""

    def __init__(self, team: FakeTeam, machine: str, member: str = "me") -> None:
        self.team = team
        self.machine = machine
        self.member = member
        self.greeted: dict[str, float] = {}
        self.epochs: dict[str, str] = {}

    def hello(self, repository, acked=0, mark=0, epoch="", circle="", mirror_lease=protocol.MIRROR_LEASE):
        with self._call("hello"):
            if epoch not in ("", self.team.epoch):
                return {"ok": False, "why": protocol.EPOCH}
            self.team.repositories.setdefault(repository, FakeRepository())
            self.greeted[repository], self.epochs[repository] = mirror_lease, self.team.epoch
            one = self._one(repository)
            news = self._news(one, acked, mark)
            self._mirror(one, acked, mirror_lease)
            return {
                "repository": 1, "circle": circle, "channel": "team", "epoch": self.team.epoch, "schema": self.team.schema,
                "ok": True,
                "protocol": protocol.PROTOCOL, "news": news,
            }  # fmt: skip

    def beat(self, repository, acked, mark, sessions=()):
        with self._call("beat"):
            one = self._one(repository)
            if self.epochs[repository] != self.team.epoch:
                return {
                    "ok": False,
                    "why": protocol.EPOCH,
                    "epoch": self.team.epoch,
                    "news": {},
                    "joined": {},
                    "settled": 0,
                    "silent": [],
                }
            joined = {}
            for told in sessions:
                known = one.sessions.get(told["session"])
                if known and known["until"] < self.team.clock:
                    self._end_session(one, known, "lapsed")
                    known = None
                if known is None or known["label"] != told["label"]:
                    known = {
                        **(known or {"joined": one.version + 1}),
                        **told,
                        "machine": self.machine,
                        "member": self.member,
                    }
                    one.sessions[told["session"]] = known
                    self._log(one, protocol.SESSION, told["session"], known)
                known["until"] = self.team.clock + told["lease"]
                joined[told["session"]] = known["joined"]
            if acked is not None:
                self._mirror(one, acked, self.greeted[repository])
            news = (
                self._news(one, acked or 0, mark)
                if acked is not None
                else {"version": one.version, "mark": 0, "changes": [], "more": False}
            )
            return {
                "ok": True,
                "epoch": self.team.epoch,
                "news": news,
                "joined": joined,
                "settled": self._settled(one),
                "silent": [],
                "grace": self.team.grace,
            }

    def complete(self, repository):
        with self._call("complete"):
            self._log(self._one(repository), protocol.COMPLETE, "", {"machine": self.machine, "member": self.member})

    def acquire(self, repository, session, wants, seen, mark):
        with self._call("acquire"):
            one = self._one(repository)
            if self.epochs[repository] != self.team.epoch:
                return {"ok": False, "why": protocol.EPOCH}
            known = one.sessions.get(session)
            if known is None or known["until"] < self.team.clock:
                return {"ok": False, "why": protocol.UNKNOWN_SESSION}
            for change in one.changes:
                new = change["version"] > seen and change["kind"] == protocol.LOCK and change["session"] != session
                if new and any(regions_meet(change["body"]["region"], want["region"]) for want in wants):
                    return {"ok": False, "why": protocol.STALE, "news": self._news(one, seen, mark)}
            for want in wants:
                for row in one.locks.values():
                    is_plain = row["session"] != session and not row["pattern"] and not want["pattern"]
                    if is_plain and self._overlap(row, want) and not row["mode"] == want["mode"] == "shared":
                        return {"ok": False, "why": protocol.HELD, "by": copy.deepcopy(row)}
            if self.team.grace and not all(want["again"] for want in wants):
                return {"ok": False, "why": protocol.GRACE, "seconds": self.team.grace}
            fences, numbers = [], []
            for want in wants:
                key = (session, want["agent"], want["place"], want["pattern"], want["base"])
                row = next((row for row in one.locks.values() if self._key(row) == key), None)
                same = row is not None and all(row[name] == want[name] for name in ("mode", "is_folder", "note"))
                if row is None or not same:
                    fence = one.version + 1 if row is None or row["mode"] != want["mode"] else row["fence"]
                    row = {
                        **{name: want[name] for name in _BODY}, "lock": row["lock"] if row else next(self.team._numbers),
                        "fence": fence, "session": session, "machine": self.machine, "member": self.member,
                        "label": known["label"], "granted_at": self.team.clock,
                    }  # fmt: skip
                    one.locks[row["lock"]] = row
                    self._log(one, protocol.LOCK, session, row)
                fences.append(row["fence"])
                numbers.append(row["lock"])
            return {
                "ok": True,
                "fences": fences,
                "locks": numbers,
                "version": one.version,
                "settled": self._settled(one) >= one.version,
            }

    def release(self, repository, locks, reason="released"):
        with self._call("release"):
            one, last = self._one(repository), 0
            for number, fence in locks:
                row = one.locks.get(number)
                if row and row["fence"] == fence and row["machine"] == self.machine:
                    del one.locks[number]
                    last = self._log(one, protocol.UNLOCK, row["session"], {**row, "reason": reason, "by": ""})
            return last

    def transfer(self, repository, lock, fence, to_session):
        return self._move("transfer", repository, lock, fence, to_session, "transferred", "")

    def steal(self, repository, lock, fence, session, reason="", force=False):
        return self._move("steal", repository, lock, fence, session, "stolen", reason)

    def wait(self, repository, session, ticket, wants, mode, agent, seconds_left, seen, mark):
        with self._call("wait"):
            one = self._one(repository)
            known = one.sessions.get(session)
            if known is None:
                return {"ok": False, "why": protocol.UNKNOWN_SESSION}
            for change in one.changes:
                if change["version"] > seen and change["kind"] == protocol.WAIT and change["machine"] != self.machine:
                    return {"ok": False, "why": protocol.STALE, "news": self._news(one, seen, mark)}
            names = ("place", "is_folder", "pattern", "base", "region")
            row = {
                "number": one.version + 1, "session": session, "machine": self.machine, "member": self.member,
                "label": known["label"], "agent": agent, "ticket": ticket, "mode": mode, "since": self.team.clock,
                "until": None, "wants": [{name: want[name] for name in names} for want in wants],
            }  # fmt: skip
            one.waits[row["number"]] = row
            self._log(one, protocol.WAIT, session, row)
            return {"ok": True, "number": row["number"]}

    def leave(self, repository, numbers):
        with self._call("leave"):
            one = self._one(repository)
            for number in numbers:
                row = one.waits.pop(number, None)
                if row:
                    self._log(one, protocol.LEAVE, row["session"], {**row, "reason": "left"})
            return one.version

    def end(self, repository, sessions, reason="ended"):
        with self._call("end"):
            one = self._one(repository)
            for session in sessions:
                if session in one.sessions:
                    self._end_session(one, one.sessions[session], reason)
            return one.version

    def reap(self, repository):
        with self._call("reap"):
            one = self._one(repository)
            gone = [row for row in one.sessions.values() if row["until"] < self.team.clock]
            for row in gone:
                self._end_session(one, row, "lapsed")
            return [row["session"] for row in gone]

    def put(self, repository, items, seen, mark):
        with self._call("put"):
            one = self._one(repository)
            if self.team.schema < protocol.DOCUMENTS_SCHEMA:
                raise TeamRefused("there is no team here, or of another version", code="no_team")
            if self.epochs[repository] != self.team.epoch:
                return [{"ok": False, "why": protocol.EPOCH} for _ in items]
            return [self._put(one, copy.deepcopy(item)) for item in items]

    def _put(self, one, item):
        kind, key, body = item["kind"], item["key"], item["body"]
        if error := protocol.item_error(item):
            return {"ok": False, "why": protocol.REFUSED, "error": error}
        row = one.documents.get((kind, key), {"version": 0, "body": None, "machine": "", "member": "", "based": 0})
        is_mine = (row["machine"], row["member"]) == (self.machine, self.member)
        if row["body"] == body and (
            body is None or (is_mine and (kind == protocol.MESSAGE or row["based"] == item["seen"]))
        ):
            return {"ok": True, "version": row["version"]}
        if row["version"] != (0 if kind == protocol.MESSAGE else item["seen"]):
            told = {name: copy.deepcopy(row[name]) for name in ("version", "body", "machine", "member")}
            return {"ok": False, "why": protocol.STALE, **told}
        fields = body if isinstance(body, dict) else {}
        sender = one.sessions.get(fields.get("sender"))
        if kind == protocol.MESSAGE and sender and (sender["machine"], sender["member"]) != (self.machine, self.member):
            return {"ok": False, "why": protocol.REFUSED, "error": "a message's sender is a session of another machine"}
        if kind == protocol.TASK and row["version"] and body is not None:
            if self.team.grace and not item.get("again"):
                return {"ok": False, "why": protocol.GRACE, "seconds": self.team.grace}
            is_new = fields.get("assignee") != (row["body"] or {}).get("assignee")
            is_held = fields.get("status") in (CLAIMED, IN_PROGRESS)
            if is_held and is_new and fields.get("assignee") and fields["assignee"] not in one.sessions:
                return {"ok": False, "why": protocol.UNKNOWN_SESSION}
        told = {"kind": kind, "key": key, "version": one.version + 1, "machine": self.machine, "member": self.member}
        told["at"] = self.team.clock
        if body is None:
            del one.documents[kind, key]
            self._log(one, protocol.DOCUMENT_GONE, "", {**told, "reason": "removed"})
        else:
            one.documents[kind, key] = {**told, "body": body, "based": item["seen"]}
            self._log(one, protocol.DOCUMENT, "", {**told, "body": body})
        return {"ok": True, "version": one.version}

    def expire(self, repository, kind, key):
        """A test says that a document's time is over."""
        with self.team.changed:
            one = self.team.repositories[repository]
            row = one.documents.pop((kind, key))
            told = {name: row[name] for name in ("kind", "key", "machine", "member", "at")}
            self._log(one, protocol.DOCUMENT_GONE, "", {**told, "version": one.version + 1, "reason": "expired"})

    def settle(self, repository, version, seconds):
        with self._call("settle"):
            one = self._one(repository)
            return self.team.changed.wait_for(lambda: self._settled(one) >= version, seconds)

    def mine(self, repository):
        with self._call("mine"):
            return self._snapshot(self._one(repository), self.machine)

    def look(self, repository, circle=""):
        with self._call("look"):
            return {
                "version": 0,
                "mark": 0,
                "changes": [],
                "more": False,
                "all": self._snapshot(self.team.repositories[repository]),
            }

    def machines(self, repository, circle=""):
        with self._call("machines"):
            one = self._one(repository)
            return [
                {
                    "machine": name, "member": self.member, "acked": row["acked"], "lease": row["lease"],
                    "left": row["until"] - self.team.clock,
                    "sessions": sum(session["machine"] == name for session in one.sessions.values()),
                }
                for name, row in one.mirrors.items()
            ]  # fmt: skip

    def rest(self, repository):
        with self._call("rest"):
            self._one(repository).mirrors.pop(self.machine, None)
            self.team.changed.notify_all()

    def part(self, repository):
        with self._call("part"):
            one = self._one(repository)
            for row in [row for row in one.sessions.values() if row["machine"] == self.machine]:
                self._end_session(one, row, "left")
            one.mirrors.pop(self.machine, None)
            self.team.changed.notify_all()

    def listen(self, seconds):
        with self.team.changed:
            before = {name: self.team.repositories[name].version for name in self.greeted}

            def moved():
                return {
                    n: self.team.repositories[n].version
                    for n in before
                    if self.team.repositories[n].version != before[n]
                }

            self.team.changed.wait_for(lambda: bool(moved()) or self.team.down, seconds)
            if self.team.down:
                raise TeamUnreachable("the server does not answer")
            return moved()

    def close(self):
        return None

    def _call(self, name):
        return _Call(self, name)

    def _one(self, repository) -> FakeRepository:
        assert repository in self.greeted, "no hello before"
        return self.team.repositories[repository]

    def _log(self, one, kind, session, body) -> int:
        one.version += 1
        row = one.sessions.get(session, {})
        one.changes.append({
            "version": one.version, "kind": kind, "session": session, "machine": row.get("machine", self.machine),
            "member": self.member, "body": copy.deepcopy({**body, "machine": body.get("machine", self.machine)}),
        })  # fmt: skip
        self.team.changed.notify_all()
        return one.version

    def _news(self, one, acked, mark):
        news: dict = {"version": one.version, "mark": one.version * 7, "changes": [], "more": False}
        if acked == 0 or acked > one.version or mark != acked * 7 or one.version - acked > self.team.kept:
            return {**news, "all": self._snapshot(one)}
        new = [change for change in one.changes if change["version"] > acked][: protocol.MOST_CHANGES]
        if new and new[-1]["version"] < one.version:
            last = new[-1]["version"]
            news.update(version=last, mark=last * 7, more=True)
        return {**news, "changes": copy.deepcopy(new)}

    def _snapshot(self, one, machine=""):
        def of(rows):
            return [copy.deepcopy(row) for row in rows if machine in ("", row["machine"])]

        found = {
            "sessions": of(one.sessions.values()),
            "locks": of(one.locks.values()),
            "waits": of(one.waits.values()),
        }
        if not machine and self.team.schema >= protocol.DOCUMENTS_SCHEMA:
            rows = sorted(of(one.documents.values()), key=lambda row: row["version"])
            found["documents"] = [{name: row[name] for name in row if name != "based"} for row in rows]
        return found

    def _mirror(self, one, acked, lease):
        one.mirrors[self.machine] = {"acked": acked, "lease": lease, "until": self.team.clock + lease}
        self.team.changed.notify_all()

    def _settled(self, one):
        others = [
            row["acked"] for name, row in one.mirrors.items() if name != self.machine and row["until"] > self.team.clock
        ]
        return min(others, default=one.version)

    def _end_session(self, one, session, reason):
        name = session["session"]
        for number in [number for number, row in one.locks.items() if row["session"] == name]:
            row = one.locks.pop(number)
            self._log(one, protocol.UNLOCK, name, {**row, "reason": reason, "by": ""})
        for number in [number for number, row in one.waits.items() if row["session"] == name]:
            self._log(one, protocol.LEAVE, name, {**one.waits.pop(number), "reason": reason})
        self._log(one, protocol.GONE, name, {**session, "reason": reason})
        del one.sessions[name]

    def _move(self, call, repository, lock, fence, to, reason, said):
        with self._call(call):
            one = self._one(repository)
            row, taker = one.locks.get(lock), one.sessions.get(to)
            if row is None or row["fence"] != fence:
                return {"ok": False, "why": protocol.NOT_HELD}
            if taker is None:
                return {"ok": False, "why": protocol.UNKNOWN_SESSION}
            new = {
                **row,
                "session": to,
                "machine": taker["machine"],
                "label": taker["label"],
                "agent": "",
                "fence": one.version + 1,
            }
            one.locks[lock] = new
            self._log(one, protocol.LOCK, to, {**new, "was": row["session"], "reason": reason, "said": said})
            return {"ok": True, "version": one.version, "fence": new["fence"]}

    @staticmethod
    def _key(row):
        return row["session"], row["agent"], row["place"], row["pattern"], row["base"]

    @staticmethod
    def _overlap(row, want):
        def over(one, other):
            deep = one["is_folder"] or not one["place"]
            return (
                one["region"] == other["region"]
                or (deep and (other["region"] + "/").startswith(one["region"] + "/"))
                or not one["region"]
            )

        return over(row, want) or over(want, row)


class _Call:
    """One call: the server is reached, or not; a test may do something around it."""

    def __init__(self, server: FakeServer, name: str) -> None:
        self.server, self.name = server, name

    def __enter__(self) -> None:
        team = self.server.team
        if team.down:
            raise TeamUnreachable("the server does not answer")
        team.changed.acquire()
        team.calls.append(self.name)

    def __exit__(self, *_exception) -> None:
        self.server.team.changed.release()
