"""Who was kept from which file, and which held files changed all the same."""

from __future__ import annotations

from support.memory_store.tables import Part
from swarm_hook_core.labels import token
from swarm_hook_core.paths import key_of
from swarm_hook_core.storms import MANY, PERSON
from swarm_mcp.domain.lock import Breach, Denial
from swarm_mcp.domain.session import Session
from swarm_mcp.store.lock_request import Attempt, reach_in


class Denials(Part):
    def report(self, instance: Session, file: str, holder_id: str, tried: Attempt | str) -> bool:
        theirs = [lock for lock in self.store.locks.on(file) if lock.instance_id != instance["id"]]
        if theirs:
            self.add(instance, file, theirs[0].instance_id)
            if isinstance(tried, Attempt):
                self.store.storms.note(instance, file, theirs[0].instance_id, tried.times)
        elif holder_id != instance["id"]:
            self.store.notices.post(instance["scope"], "system", instance["id"], f"[auto] {file} is free.")
        return bool(theirs)

    def files(self, instance_id: str, limit: int) -> list[str]:
        return [file for who, file in self.memory.denied if who == instance_id][:limit]

    def add(self, instance: Session, file: str, holder_id: str) -> None:
        self.memory.denied[instance["id"], file] = holder_id
        self.memory.add_event(instance["scope"], "context.lock_denied", instance["id"], file, holder=holder_id)

    def tell(self) -> None:
        """Tell those who were refused a file that nobody holds or waits for any more."""
        for who, file in list(self.memory.denied):
            session = self.store.instances.live(who)
            reach = reach_in({"file": file, "path_key": None, "pattern": None})
            busy = [lock for lock in self.store.locks.on(file) if lock.instance_id != who] if session else []
            if session and reach and not busy and not self.store.queue.waiting_for(reach):
                del self.memory.denied[who, file]
                self.memory.storms.pop((who, file), None)
                self.store.notices.post(session.scope, "system", who, f"[auto] {file} is free.")


class Storms(Part):
    def known(self, scope: str, limit: int) -> list[Denial]:
        found = []
        for (who, file), times in self.memory.storms.items():
            session = self.store.instances.get(who)
            if session and session.scope == scope and times >= PERSON and (who, file) in self.memory.denied:
                told = {"instance_id": who, "file": file, "holder_id": self.memory.denied[who, file], "times": times}
                found.append(Denial(**told, label=session.label))
        return found[:limit]

    def note(self, instance: Session, file: str, holder_id: str, times: int) -> None:
        before = self.memory.storms.get((instance["id"], file), 0)
        if times < MANY or times <= before:
            return
        self.memory.storms[instance["id"], file] = times
        text = f"[auto] {instance['label']} was refused {file} {times} times."
        if before < MANY:
            self.store.messages.post(instance["scope"], "system", holder_id, text)
        for lead in self.store.instances.in_scope(instance["scope"]):
            same = token(lead.label or "", "identity") == token(instance["label"] or "", "identity")
            if before < PERSON <= times and same and "mode:gateway" in (lead.label or "") and lead.id != instance["id"]:
                self.store.messages.post(instance["scope"], "system", lead.id, text)


class Protection(Part):
    def attempted(self, scope: str, actor: str | None, deed: str, path: str = "", tool: str = "") -> bool:
        now = self.store.now()
        same = [
            one for one in self.memory.events
            if (one.type, one.actor, one.subject) == ("protection.attempted", actor, path or deed)
            and one.created_at > now - 60
        ]  # fmt: skip
        if not same:
            told = {"deed": deed, "path": path, "tool": tool}
            told = {name: value for name, value in told.items() if value}
            self.memory.add_event(scope, "protection.attempted", actor, path or deed, **told)
        return not same

    def lowered(self, scope: str, actor: str | None, what: str, words: str) -> None:
        self.memory.add_event(scope, "protection.lowered", actor, what, deed=words)
        for row in self.store.instances.in_scope(scope):
            if row.id != actor and row.last_seen is not None:
                self.store.messages.post(scope, "system", row.id, f"[auto] {words}")


class Breaches(Part):
    def report(self, writer: Session | None, tool: str, command: str, changes: list[dict]) -> list[int]:
        numbers = []
        for change in changes:
            holder = self.store.instances.live(change["holder_id"])
            held = [lock for lock in self.store.locks.on(change["file"]) if holder and lock.instance_id == holder.id]
            if held and not self._is_known(writer, change):
                numbers.append(self._add(held[0].scope, writer, change, tool, command))
                text = f"[auto] {change['file']}, which you hold, {change['kind']}."
                self.store.messages.post(held[0].scope, "system", change["holder_id"], text)
        return numbers

    def restored(self, restorer: Session | None, file: str, kept: str, source: str, scope: str) -> int:
        held = self.store.locks.on(file)
        change = {"file": file, "kind": "restored", "kept": kept, "at": self.store.now()}
        change["holder_id"] = held[0].instance_id if held else ""
        for lock in held:
            if restorer is None or lock.instance_id != restorer["id"]:
                text = f"[auto] Somebody has restored an earlier content of {file}, which you hold."
                self.store.messages.post(lock.scope, "system", lock.instance_id, text)
        return self._add(restorer["scope"] if restorer else scope, restorer, change, "restore", "")

    def of(self, file: str, keys: list[str]) -> list[Breach]:
        return [one for one in self.memory.breaches[::-1] if one.file == file or one.path_key in keys]

    def known(self, scope: str) -> list[Breach]:
        return [one for one in self.memory.breaches[::-1] if one.scope == scope]

    def _add(self, scope: str, writer: Session | None, change: dict, tool: str, command: str) -> int:
        number = len(self.memory.breaches) + 1
        who = {"writer_id": writer and writer["id"], "writer_label": writer and writer["label"]}
        row = {name: change[name] for name in ("file", "holder_id", "kind", "kept")}
        key, at = change.get("key") or key_of(change["file"]), int(change["at"])
        call = {"tool": tool, "command": command}
        self.memory.breaches.append(Breach(id=number, scope=scope, path_key=key, altered_at=at, **row, **who, **call))
        return number

    def _is_known(self, writer: Session | None, change: dict) -> bool:
        """Whether another of the calls that ran at once has told of this change."""
        same = (change["file"], change["kind"], change["kept"], writer and writer["id"])
        return any((one.file, one.kind, one.kept, one.writer_id) == same for one in self.memory.breaches)
