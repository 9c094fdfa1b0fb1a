"""The agent's talk with one of the team's servers, and each repository that it follows there.

One thread follows the log and posts, one waits for changes, and one for grants to settle.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from swarm_hook_core import clock, state
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.domain import Lock, Session, of_task
from swarm_mcp.errors import SwarmError
from swarm_mcp.panes import deliver
from swarm_mcp.store import Store
from swarm_mcp.team import TeamRefused, TeamUnreachable, agent_client, protocol
from swarm_mcp.team.documents import Wake
from swarm_mcp.team.mirror import BEAT_SECONDS, DUE, MOST_TRIES, Claim, Mirror, Posting, claims, difference
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.protocol import LockRow
from swarm_mcp.team.replica import REFUSED, UNREACHABLE, Replica

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_mcp.team.agent_client import Confirmation
    from swarm_mcp.team.server import TeamServer

# One repository in the team agent: apply the server's log, post local changes, have locks confirmed.
#
# For one thread: it calls `follow` again and again, and `confirm` on request. Every failure raises TeamUnreachable or
# TeamRefused and may be repeated: all state here is also in the store or on the server.

STALE_PAUSE = 0.005
MOST_DROPPED = 1000  # Conflicting locks, with the lock that won each conflict.


class Following:
    """A `replica` and its `server`, kept equal; `mirror` is their link."""

    def __init__(self, store: Store, server: TeamServer, replica: Replica):
        self._rows = TeamRows(store)
        self.replica = replica
        self.mirror = Mirror(store, server, replica)
        self._posting = Posting(store, self.mirror)

    def follow(self, poked: bool = False, beat: bool = True) -> None:
        """Apply the server's changes and post those made here (after a `poked` notification, or now and then)."""
        mirror, posting = self.mirror, self._posting
        if not mirror.is_greeted:
            poked = beat = True

        def look() -> None:
            if beat:
                if mirror.has_lost_sessions():
                    # departed sessions come after their changes, since their departure releases their tasks
                    posting.post()
                mirror.beat_until_even()
            if poked or posting.is_due():
                posting.post()

        mirror.at_one_server(look)

    # ---------------------------------------------------------------- locks

    def confirm(self, lock_ids: Collection[str], until: float) -> tuple[Confirmation, int]:
        """Have the team grant these locks of one session, all or none, before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm``, and the version that must settle; 0 for none.
        """
        self.replica.spared |= set(lock_ids)
        for row in self._rows.of_ids(lock_ids):
            self.replica.dropped.pop(row.id, None)  # of an earlier request; the lock has outlived it
        try:
            if not self.mirror.is_greeted:
                self.follow(poked=True)
            return self.mirror.at_one_server(lambda: self._confirmed(list(lock_ids), until))
        finally:
            self.replica.spared -= set(lock_ids)
            if len(self.replica.dropped) > MOST_DROPPED:
                self.replica.dropped.clear()

    def withdraw(self, lock_ids: Collection[str]) -> None:
        """Remove those of these locks that are in this repository: others of the same request were refused."""
        rows = [row for row in self._rows.of_ids(lock_ids) if row.machine is None]
        mine = [row for claim in claims(rows, self.replica.tops) for row in claim.rows]
        if mine:
            self.replica.spared |= {row.id for row in mine}
            with self._rows.writing():
                self._rows.drop(mine, "team")
                for row in mine:
                    words = "is given up: another lock of the same request was not granted. Do not write it."
                    self.replica.tell_holder(row, f"[auto] Your lock on {named(plain(row.file))} {words}")
            self.replica.spared -= {row.id for row in mine}
            self._posting.compare_anew()

    def end_request(self, lock_ids: Collection[str], is_answered: bool) -> None:
        """Tell the holders of these locks that they are lost, unless the request was answered so."""
        untold = [self.replica.untold.pop(one) for one in lock_ids if one in self.replica.untold]
        if untold and not is_answered:
            with self._rows.writing():
                for holder, text, file in untold:
                    self._rows.tell(holder, text, file)

    def _confirmed(self, lock_ids: list[str], until: float) -> tuple[Confirmation, int]:
        mirror, replica = self.mirror, self.replica
        is_looked_at_again = False
        for _ in range(MOST_TRIES):
            rows = [row for row in self._rows.of_ids(lock_ids) if row.machine is None]
            held = claims(rows, replica.tops, mirror.again)
            ours = {row.id for claim in held for row in claim.rows}
            lost = [replica.dropped[one] for one in lock_ids if one in replica.dropped]
            if lost or len(rows) < len(set(lock_ids)):  # gone before it was asked for, to whomever
                return self._refused(held, next(iter(lost), None))
            if not held:
                return {"answer": agent_client.LOCAL}, 0
            if all(row.team_fence for claim in held for row in claim.rows) and self._is_posted(held):
                # A grant's version is its fence; this replica may not have come to it yet.
                return self._granted(rows, ours, max(row.team_fence or 0 for claim in held for row in claim.rows))
            other = replica.in_the_way(row for claim in held for row in claim.rows)
            if other is not None:
                return self._refused(held, other)
            if mirror.introduce({claim.session for claim in held}) and not is_looked_at_again:
                is_looked_at_again = True
                continue
            answer = self._posting.acquire(held)
            why = answer.get("why")
            if answer["ok"]:
                rows = [row for row in self._rows.of_ids(ours) if row.machine is None]
                return self._granted(rows, ours, 0 if answer.get("settled") else answer["version"])
            if why == protocol.HELD:
                mirror.beat_until_even()  # so that the store knows it as well, and says so in its words
                return self._refused(held, answer.get("by"))
            if why == protocol.GRACE and clock.now() + answer.get("seconds", 1.0) >= until:
                return {"answer": agent_client.UNREACHABLE, "error": _only_earlier(answer.get("seconds", 1.0))}, 0
            if clock.now() >= until:
                break
            if why == protocol.GRACE:
                time.sleep(min(answer.get("seconds", 0.0), 0.5))
                mirror.beat_until_even()  # grants wait for what this machine hears of the others, too
            else:
                time.sleep(STALE_PAUSE)
        raise TeamUnreachable("others change the same files all the time")

    def _refused(self, held: list[Claim], by: LockRow | None) -> tuple[Confirmation, int]:
        self._posting.refuse(held, by)
        return {"answer": agent_client.HELD, "by": dict(by or {})}, 0

    def _granted(self, rows: list[Lock], ours: set[str], version: int) -> tuple[Confirmation, int]:
        fences = {row.id: row.team_fence or 0 for row in rows if row.id in ours}
        is_settled = version <= self.mirror.settled
        return {"answer": agent_client.GRANTED, "fences": fences, "settled": is_settled}, 0 if is_settled else version

    def _is_posted(self, held: list[Claim]) -> bool:
        found = difference(held, [], self.replica.own, {})
        return not found.acquires and not found.transfers and not found.known

    # ------------------------------------------------------------ documents

    def confirm_documents(self, refs: Collection[tuple[str, str]], until: float) -> Confirmation:
        """Post the changes made here to these tasks (kind and key), before `until` (``clock.now``).

        Returns the answer for ``agent_client.confirm_documents``.
        """
        documents = self.replica.documents
        documents.spared |= set(refs)
        try:
            if not self.mirror.is_greeted:
                self.follow()
            return self.mirror.at_one_server(lambda: self._documents_confirmed(list(refs), until))
        finally:
            documents.spared -= set(refs)

    def _documents_confirmed(self, refs: list[tuple[str, str]], until: float) -> Confirmation:
        documents, posting = self.replica.documents, self._posting
        refs = [ref for ref in refs if self.mirror.shares and documents.is_here(ref)]
        if not refs:
            return {"answer": agent_client.LOCAL}
        for ref in refs:
            if documents.difference(ref) is not None:
                documents.gave_way.pop(ref, None)
        for _ in range(MOST_TRIES):
            wanted = [one for ref in refs if (one := documents.difference(ref)) is not None]
            if any(ref in documents.gave_way for ref in refs):
                with self._rows.writing():
                    for ref in refs:
                        documents.unsay(ref)
                return {"answer": agent_client.HELD}
            if not wanted:
                return {"answer": agent_client.GRANTED}
            if clock.now() >= until:
                break
            posting.put(wanted)
            if all((one["kind"], one["key"]) in documents.refused for one in wanted):
                return {"answer": agent_client.LOCAL}  # too large to be posted: it stays on this machine
            if clock.now() < posting.grace_until:
                if posting.grace_until >= until:
                    error = _only_earlier(posting.grace_until - clock.now())
                    return {"answer": agent_client.UNREACHABLE, "error": error}
                time.sleep(0.1)
        raise TeamUnreachable("others change the same task all the time")


def _only_earlier(seconds: float) -> str:
    return f"the team's server confirms earlier locks only, for {duration(seconds + 1)} more"


LOOK_SECONDS = 5.0  # seconds between two searches for joined clones, without a notification
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)  # after the first, second... try at a server that is not reached
REFUSED_SECONDS = 30.0  # until a server that lets us not in is asked again
LISTEN_SECONDS = 20.0
SETTLE_SECONDS = 1.0  # seconds of one question about settled grants
MACHINES_SECONDS = 5.0  # seconds between two lists of machines, while a viewer is present
LOOKED_SECONDS = 30.0  # seconds after its last query during which a viewer counts as present
MOST_SECONDS = 60.0
MOST_SHOWN = 20  # documents that the server does not take


class _Request:
    """One request to confirm locks or documents, and its answer once `done`."""

    def __init__(self, locks: list[str], documents: list[tuple[str, str]], until: float):
        self.locks, self.documents, self.until = locks, documents, until
        self.answer: dict[str, Any] | None = None
        self.version: dict[str, int] = {}  # repository -> version that must settle
        self.is_to_settle = False  # True if there was such a version
        self.done = threading.Event()
        self.settled = threading.Event()


class Talk:
    """The conversation between this machine and one server, in threads of its own."""

    def __init__(self, server: str, name: str, connect: Callable[[str, str], Any]):
        self.server = server
        self._machine = name
        self._connect = connect
        self._line: Any = None
        self._parts: dict[str, list[str]] = {}
        self._taken: dict[str, list[str]] | None = None  # those that are followed
        self._followed: dict[str, Following] = {}
        self._changed = threading.Condition()
        self._requests: deque[_Request] = deque()
        self._unsettled: list[_Request] = []
        self._poked = self._stopped = self._is_left = False
        self._hinted: set[str] = set()
        self._looked_on = -LOOKED_SECONDS  # time of the last request for machines
        self._state, self._error, self._failures, self._again_at = "joining", "", 0, 0.0
        self._threads = [
            threading.Thread(target=target, daemon=True, name=f"team {target.__name__.strip('_')}")
            for target in (self._follow, self._listen, self._settle)
        ]
        for thread in self._threads:
            thread.start()

    # ------------------------------------------------------- from other threads

    def set_parts(self, parts: dict[str, list[str]]) -> None:
        """Follow these repositories, in these work trees of this machine."""
        with self._changed:
            if parts != self._parts:
                self._parts = parts
                self._poked = True
                self._changed.notify_all()

    def await_parts(self, seconds: float) -> None:
        """Wait until only those are followed that `set_parts` has named."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken is self._parts or self._stopped, seconds)

    def poke(self) -> None:
        with self._changed:
            self._poked = True
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def leave(self) -> None:
        """Stop, and tell the server that this machine takes part no longer."""
        self._is_left = True
        self.stop()

    def join(self, seconds: float) -> None:
        self._threads[0].join(seconds)

    def confirm(
        self, locks: list[str], documents: list[tuple[str, str]], seconds: float, settle: float
    ) -> dict[str, Any]:
        """Have these locks granted, or documents taken, within `seconds`; then wait for `settle` until that counts."""
        request = _Request(locks, documents, clock.now() + seconds)
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
        is_done = request.done.wait(seconds)
        error = self._error or "the team's server does not answer"
        answer = self._answered(request, {"answer": agent_client.UNREACHABLE, "error": error})
        if is_done and request.is_to_settle and request.settled.wait(settle):
            answer["settled"] = True
        return answer

    def _answered(self, request: _Request, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a request: this one, unless its asker has given up and was given another."""
        with self._changed:
            request.answer = request.answer or answer
            return request.answer

    def _answer(self, request: _Request, answer: dict[str, Any]) -> None:
        is_answered = self._answered(request, answer)["answer"] == agent_client.HELD
        for one in self._followed.values():
            one.end_request(request.locks, is_answered)
        request.done.set()

    def look_at_machines(self, seconds: float) -> None:
        """Note that a viewer is present, so that machines are listed. Without a list yet, wait `seconds` for it."""
        with self._changed:
            self._looked_on = clock.now()
            if self._is_to_look() and not self._failures:
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._stopped or self._failures or not self._is_to_look(), seconds)

    def status(self) -> dict[str, Any]:
        repositories = []
        for name, one in list(self._followed.items()):
            mirror = one.mirror
            facts = {"repository": name, "work_trees": one.replica.tops, "version": one.replica.version}
            facts.update(sessions=mirror.sessions, settled=mirror.settled, beaten=mirror.beaten)
            facts.update(machines=mirror.machines, looked=None, round_trip=mirror.round_trip)
            if mirror.looked is not None:
                facts["looked"] = clock.now() - mirror.looked
            refused = [[*ref, why] for ref, (_, why) in list(one.replica.documents.refused.items())]
            repositories.append({**facts, "shares": mirror.shares, "not_shared": refused[:MOST_SHOWN]})
        return {"server": self.server, "state": self._state, "error": self._error, "repositories": repositories}

    # ---------------------------------------------------------------- following

    def _follow(self) -> None:
        try:
            with Store(tells=False) as store:
                while not self._stopped:
                    self._wait()
                    if not self._stopped:
                        self._step(store)
                self._end()
        except Exception as error:  # a bug here must be seen, and must not keep up verbs for ever
            self._fail("failed", error)
            state.record("team", "agent", state.describe(error))
            os._exit(1)

    def _wait(self) -> None:
        """Wait for a request, a change at the server, or the next heartbeat."""
        with self._changed:
            now = clock.now()
            beats = [one.mirror.beaten + BEAT_SECONDS for one in self._followed.values()] or [now + LOOK_SECONDS]
            due = min(beats)
            if self._failures:
                due = self._again_at
            called = self._poked or self._hinted or self._is_to_look()
            if not (self._requests or self._stopped or (called and not self._failures)):
                self._changed.wait(max(0.0, min(due - now, LOOK_SECONDS)))

    def _step(self, store: Store) -> None:
        with self._changed:
            requests, poked, hinted = list(self._requests), self._poked, self._hinted
            self._requests.clear()
            self._poked, self._hinted = False, set()
        try:
            if self._line is None:
                self._line = self._connect(self.server, self._machine)
            self._take_part(store)
            for request in requests:
                if request.locks:
                    self._grant(request)
                else:
                    self._take(request)
            if self._failures and not requests and clock.now() < self._again_at:
                return
            now = clock.now()
            for name, one in self._followed.items():
                is_due = now - one.mirror.beaten >= BEAT_SECONDS * DUE
                one.follow(poked, beat=is_due or name in hinted or not one.mirror.is_greeted)
            self._wake_up()
            if self._is_to_look():
                for one in self._followed.values():
                    one.mirror.look_at_machines()
                with self._changed:
                    self._changed.notify_all()
            self._state, self._error, self._failures = "following", "", 0
        except (TeamUnreachable, TeamRefused) as error:
            self._lose(error)
            self._give_up(requests)
        except SwarmError as error:  # the store is busy, or not there
            self._fail("the store cannot be used", error)
            self._give_up(requests)
            state.record_hourly("team", "agent", str(error))

    def _wake_up(self) -> None:
        """Wake sessions in their panes, as other machines have asked. This may take a while."""
        for one in self._followed.values():
            wakes, one.replica.documents.wakes = one.replica.documents.wakes, []
            if wakes:
                threading.Thread(target=_wake, args=(wakes,), daemon=True).start()

    def _is_to_look(self) -> bool:
        """Return True if a viewer is present and the list of machines is old."""
        now = clock.now()
        if now - self._looked_on >= LOOKED_SECONDS:
            return False
        looked = [one.mirror.looked for one in list(self._followed.values()) if one.mirror.is_greeted]
        return any(at is None or now - at >= MACHINES_SECONDS for at in looked)

    def _take_part(self, store: Store) -> None:
        """Follow the joined repositories, in their present work trees."""
        parts = self._parts
        for name in self._followed.keys() - parts.keys():
            gone = self._followed.pop(name)
            try:
                if gone.mirror.is_greeted:
                    self._line.part(name)
            except (TeamUnreachable, TeamRefused):
                continue  # the command that left tells it
        for name, tops in parts.items():
            known = self._followed.get(name)
            if known is not None and known.replica.tops == sorted(tops):
                continue
            if known is not None:  # the new work tree needs all that there is
                with TeamRows(store).writing():
                    known.replica.forget()
            self._followed[name] = Following(store, self._line, Replica(store, name, self._machine, tops))
        with self._changed:
            self._taken = parts
            self._changed.notify_all()

    def _grant(self, request: _Request) -> None:
        """Answer a request: of all repositories that its locks are in, one that refuses refuses all."""
        found: dict[str, Any] = {"answer": agent_client.LOCAL}
        for name, one in self._followed.items():
            answer, version = one.confirm(request.locks, request.until)
            told: dict[str, Any] = {**answer}
            if told["answer"] == agent_client.LOCAL:
                continue
            if version:
                request.version[name] = version
            if found["answer"] == agent_client.GRANTED and told["answer"] == agent_client.GRANTED:
                told["fences"] = {**found["fences"], **told["fences"]}
                told["settled"] = told["settled"] and found["settled"]
            found = told
            if told["answer"] != agent_client.GRANTED:
                for other in self._followed.values():
                    other.withdraw(request.locks)
                request.version.clear()
                break
        if request.version:
            request.is_to_settle = True  # before the thread that settles empties that
            with self._changed:
                self._unsettled.append(request)
                self._changed.notify_all()
        self._answer(request, found)

    def _take(self, request: _Request) -> None:
        """Answer a request about documents: each is of one repository at most."""
        found: dict[str, Any] = {"answer": agent_client.LOCAL}
        for one in self._followed.values():
            if clock.now() >= request.until:
                found = {"answer": agent_client.UNREACHABLE, "error": "the team's server does not answer"}
                break
            answer = one.confirm_documents(request.documents, request.until)
            if answer["answer"] != agent_client.LOCAL:
                found = {**answer}
        self._answer(request, found)

    def _give_up(self, requests: list[_Request]) -> None:
        for request in requests:
            if not request.done.is_set():
                self._answer(request, {"answer": agent_client.UNREACHABLE, "error": self._error})

    def _lose(self, error: SwarmError) -> None:
        # One that was away for long has been forgotten, and greets anew.
        is_refused = isinstance(error, TeamRefused) and error.answer.get("code") != "hello_first"
        self._fail("refused" if is_refused else "unreachable", error)
        if is_refused:
            self._again_at = clock.now() + REFUSED_SECONDS
        for one in self._followed.values():
            one.mirror.lose()
            if self._failures == 1:
                try:
                    one.replica.not_fresh(REFUSED if is_refused else UNREACHABLE)
                except SwarmError:
                    continue  # its time is soon over by itself

    def _fail(self, state: str, error: BaseException) -> None:
        self._state, self._error = state, str(error)
        pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._again_at = clock.now() + pause

    def _end(self) -> None:
        """This machine's copies are not kept up any longer: first they say so here, then the server hears of it."""
        for name, one in self._followed.items():
            try:
                if not self._is_left:
                    one.replica.not_fresh(UNREACHABLE, at_once=True)
                if not one.mirror.is_greeted:
                    continue
                if self._is_left:
                    self._line.part(name)
                else:
                    self._line.rest(name)
            except SwarmError:
                continue  # the server finds it out by itself
        if self._line is not None:
            self._line.close()

    # ------------------------------------------------------------ the other threads

    def _listen(self) -> None:
        """Wait at the server for changes, and have them followed at once."""
        while not self._stopped:
            line = self._line
            if line is None or not any(one.mirror.is_greeted for one in list(self._followed.values())):
                self._pause(0.2)
                continue
            try:
                found = line.listen(LISTEN_SECONDS)
            except (TeamUnreachable, TeamRefused):
                self._pause(1.0)
                continue
            news = {
                name
                for name, version in found.items()
                if name in self._followed and self._followed[name].replica.version < version
            }
            if news:
                with self._changed:
                    self._hinted |= news
                    self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, max(0.0, end - time.monotonic()))

    def _settle(self) -> None:
        """Wait until grants count everywhere, and notify the waiting requests."""
        while not self._stopped:
            with self._changed:
                if not self._unsettled:
                    self._changed.wait(LISTEN_SECONDS)
                    continue
                waiting = list(self._unsettled)
            first = waiting[0]
            try:
                for name, version in list(first.version.items()):
                    if self._line.settle(name, version, SETTLE_SECONDS):
                        for one in waiting:
                            if one.version.get(name, version + 1) <= version:
                                del one.version[name]
            except (TeamUnreachable, TeamRefused):
                self._pause(0.2)
            with self._changed:
                done = [one for one in waiting if not one.version]
                old = [one for one in waiting if clock.now() - one.until > MOST_SECONDS]
                self._unsettled = [one for one in self._unsettled if one not in done and one not in old]
                if first in self._unsettled and len(self._unsettled) > 1:
                    self._unsettled.append(self._unsettled.pop(0))
            for one in done:
                one.settled.set()


def _wake(wakes: list[Wake]) -> None:
    """Wake those of these sessions that still have mail."""
    try:
        with Store(tells=False) as store:
            for one in wakes:
                row = store.instances.live(one.recipient)
                if row is not None and store.messages.unread_count(row):
                    # the machine that wrote the message has checked that the two may meet
                    sender = Session(id=one.sender, label=row.label)
                    deliver(store, sender, row.id, of_task(one.task, "") if one.task else "", force=one.force)
    except SwarmError as error:
        state.record_hourly("team", "agent", str(error))
