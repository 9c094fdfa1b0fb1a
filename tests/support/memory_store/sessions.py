"""Sessions that join, move and leave."""

from __future__ import annotations

from collections.abc import Iterator

from support.memory_store.tables import Part
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import clients_in, departed, living
from swarm_hook_core.process import gone
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import DETACHED, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store.sessions import Registration

GONE_EVIDENCE = (
    "host", "client_pid", "client_start", "terminal_pid", "terminal_start", "state", "last_seen", "lease_seconds",
    "adopted", "heartbeat", "lease_until", "other_clients", "runtime",
)  # fmt: skip
SERVER_RUNTIME = "mcp-server"


class Sessions(Part):
    def get(self, instance_id: str) -> Session | None:
        return self.memory.sessions.get(instance_id)

    def live(self, instance_id: str) -> Session | None:
        row = self.get(instance_id)
        return row if row and not self._has_gone(row) else None

    def in_scope(self, scope: str) -> list[Session]:
        return [row for row in self._live() if row.scope == scope]

    def on_all_machines(self, scope: str) -> list[Session]:
        return self.in_scope(scope)

    def walk(self, scope: str, after: str = "") -> Iterator[tuple[str, Session]]:
        rows = self.in_scope(scope)
        numbers = {row.id: self.number_of(row.id) for row in self.memory.sessions.values()}
        return self.behind(after, (int, int), rows, lambda row: [row.registered_at, numbers[row.id]])

    def alike(self, scope: str, text: str) -> list[Session]:
        return [row for row in self.in_scope(scope) if row.id.startswith(text) or text in (row.label or "")]

    def count(self, scope: str, words: str = "", viewer: str = "") -> int:
        rows = [row for row in self.memory.sessions.values() if row.scope == scope and words in (row.label or "")]
        return len([row for row in rows if same_circle(viewer, token(row.label or "", "identity"))])

    def scopes(self, limit: int) -> list[str]:
        seen: dict[str, int] = {}
        for row in self.memory.sessions.values():
            seen[row.scope] = max(seen.get(row.scope, 0), row.heartbeat)
        return sorted(seen, key=lambda scope: (-seen[scope], scope))[:limit]

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        rows = self.memory.sessions.values()
        return next((row for row in rows if (row.runtime, row.session_id) == (runtime, session_id)), None)

    def of_session_id(self, session_id: str) -> list[Session]:
        return [row for row in self._live() if row.session_id == session_id]

    def of_client(self, pid: int, started: str) -> list[Session]:
        return [row for row in self._live() if pid and (pid, started) in clients_of(row)]

    def with_evidence(self, instance_id: str) -> Session | None:
        return self.get(instance_id)

    def is_session(self, instance_id: str) -> bool:
        row = self.get(instance_id)
        return row is not None and row.session_id is not None

    def terminal_of(self, runtime: str, session_id: str) -> tuple[int, str]:
        row = self.of_session(runtime, session_id)
        if row is None or not row.terminal_pid or gone(row.host, row.terminal_pid, row.terminal_start, self.store.here):
            return 0, ""
        return row.terminal_pid, row.terminal_start

    def beside(self, instance: Session) -> list[Session]:
        return [row for row in self.in_scope(instance.scope) if row.id != instance.id]

    def held_beside(self, instance: Session, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        theirs = [lock for lock in self.store.locks.everywhere() if lock.instance_id != instance["id"]]
        theirs = [lock for lock in theirs if lock.scope == instance["scope"]]
        shown = [self.store.locks.listed(lock, viewer_identity) for lock in theirs[:limit]]
        names = ("file", "content", "owner_label", "instance_id")
        return len(theirs), [{name: lock.get(name) for name in names} for lock in shown]

    def gone(self) -> list[Session]:
        return [row for row in self.memory.sessions.values() if self._has_gone(row)]

    def register(self, request: Registration) -> Session:
        known = self.of_session(request.runtime, request.session_id) if request.session_id else None
        for row in self.gone():
            if row is not known:
                self._leave(row, "reclaimed")
        known = known or self._reserved(request)
        client, now = request.client, self.store.now()
        others = [one for one in clients_of(known) if one != client] if known and request.session_id else []
        others = living(self.store.here, others, self.store.here)
        if known and known.scope != request.scope and client not in clients_of(known) and not others:
            self.store.locks.drop(self.store.locks.of(known.id), "moved")
        row = Session(
            id=known.id if known else request.preassigned_id or request.adopt_id or new_id(),
            scope=request.scope, directory=request.directory, root=request.directory, file_root=request.file_root,
            pid=client[0], label=request.label or (known.label if known else None),
            registered_at=known.registered_at if known else now,
            heartbeat=now, adopted=0 if request.lease_seconds else 1,
            lease_until=now + request.lease_seconds if request.lease_seconds else None,
            runtime=request.runtime or None, session_id=request.session_id or None,
            host=self.store.here if request.session_id else None, client_pid=client[0], client_start=client[1],
            other_clients=" ".join(f"{pid}:{started}" for pid, started in others) or None,
            terminal_pid=request.terminal[0], terminal_start=request.terminal[1],
            state=request.state, last_seen=now if request.session_id else None, lease_seconds=request.lease_seconds,
        )  # fmt: skip
        self.memory.sessions[row.id] = row
        if request.turn_over:
            self.store.automatic_locks.end(row, "", request.turn_over)
        self.memory.add_event(row.scope, "instance.registered", row.id, row.id, label=row.label)
        if request.pane:
            self.store.panes.publish(row, request.pane)
        self.store.planner.settle(row, known)
        return row

    def adopt(self, row: Session, instance_id: str) -> Session | None:
        reserved = self.get(instance_id)
        if (
            reserved is None
            or reserved.session_id
            or (reserved.scope, reserved.directory) != (row.scope, row.directory)
        ):
            return None
        memory, old = self.memory, row.id
        memory.sessions[instance_id] = row.replace(id=instance_id, label=reserved.label or row.label)
        memory.locks = {
            name: (lock.replace(instance_id=instance_id) if lock.instance_id == old else lock, reach)
            for name, (lock, reach) in memory.locks.items()
        }
        memory.messages = [
            mail.replace(recipient=instance_id) if mail.recipient == old else mail for mail in memory.messages
        ]
        for task in memory.tasks.values():
            changed = {name: instance_id for name in ("assignee", "requester") if task[name] == old}
            memory.tasks[task.id] = task.replace(**changed)
        self._leave(row, "deregistered")
        return memory.sessions[instance_id]

    def remove(self, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
        row = self.get(instance_id)
        if row:
            self._leave(row, reason)
            if by:
                self.store.messages.broadcast(by, f"[auto] {row.id} was removed.")
        return row is not None

    def rename_session(self, instance_id: str, name: str, new_name: str) -> bool:
        row = self.get(instance_id)
        if row is None or (row.runtime, row.session_id) != (SERVER_RUNTIME, name):
            return False
        self.memory.sessions[instance_id] = row.replace(session_id=new_name)
        return True

    def end_session(self, row: Session, client: tuple[int, str] = (0, "")) -> bool:
        known = self.get(row.id)
        left = [other for other in clients_of(known) if other != client] if known and client[0] else []
        left = living(self.store.here, left, self.store.here)
        if known and left:
            (pid, started), *others = left
            listed = " ".join(f"{pid}:{started}" for pid, started in others) or None
            self.memory.sessions[row.id] = known.replace(
                pid=pid, client_pid=pid, client_start=started, other_clients=listed
            )
            return False
        if self.store.runs.take_back(row.id):
            return False
        self.remove(row.id)
        return True

    def forget(self, instance_id: str) -> None:
        row = self.get(instance_id)
        if row and row.runtime == DETACHED and not self.store.locks.of(instance_id):
            self._leave(row, "deregistered")

    def show_life(self, instance_id: str) -> None:
        row = self.get(instance_id)
        is_open = row and (not row.client_pid or living(self.store.here, clients_of(row), self.store.here))
        if row is None or not (is_open if row.last_seen is not None else not self._has_gone(row)):
            raise SwarmError(f"instance {instance_id} is no longer registered; register again")
        now = self.store.now()
        if row.last_seen is not None:
            until = now + row.lease_seconds if row.lease_seconds else row.lease_until
            self.memory.sessions[row.id] = row.replace(heartbeat=now, last_seen=now, lease_until=until)
        self.store.leases.renew(instance_id)

    def _live(self) -> list[Session]:
        return [row for row in self.memory.sessions.values() if not self._has_gone(row)]

    def _reserved(self, request: Registration) -> Session | None:
        """The row that is waiting for this session, if it is nobody's yet."""
        row = self.get(request.preassigned_id or request.adopt_id)
        return row if row and not (request.session_id and row.session_id) else None

    def _has_gone(self, row: Session) -> bool:
        return departed({name: row.get(name) for name in GONE_EVIDENCE}, self.store.now(), self.store.here)

    def _leave(self, row: Session, reason: str) -> None:
        self.memory.denied = {key: by for key, by in self.memory.denied.items() if key[0] != row.id}
        self.store.locks.drop(self.store.locks.of(row.id), reason)
        self.store.tasks.release_all(row)
        self.memory.messages = [mail for mail in self.memory.messages if mail.recipient != row.id]
        self.memory.line = [place for place in self.memory.line if place.instance_id != row.id]
        self.memory.lapsed = [lapse for lapse in self.memory.lapsed if lapse.instance_id != row.id]
        self.memory.sessions.pop(row.id, None)
        self.store.planner.leave(row)
        kind = "instance.stale_reclaimed" if reason == "reclaimed" else "instance.deregistered"
        self.memory.add_event(row.scope, kind, row.id, row.id, label=row.label)


def clients_of(row: Session) -> list:
    """Pid and start time of each client that has a session open, the last that spoke first."""
    own = [(row.client_pid, row.client_start)] if row.get("client_pid") else []
    return [*own, *clients_in(row.get("other_clients"))]
