"""Mail between sessions, and what of it a session's next hook tells."""

from __future__ import annotations

from collections.abc import Iterator

from support.memory_store.tables import Part
from swarm_hook_core.naming import holder_name
from swarm_mcp.domain.message import SYSTEM, Message, Notice
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, UnknownInstance
from swarm_mcp.visibility import may_meet

CLAIM_SECONDS = 120  # then it is taken for lost on its way


class Messages(Part):
    def post(self, scope: str, sender: str, recipient: str, content: str) -> int:
        self.memory.mails = number = self.memory.mails + 1
        told = {"sender": sender, "recipient": recipient, "content": content, "created_at": self.store.now(), "read": 0}
        self.memory.messages.append(Message(id=number, **told))
        self.memory.add_event(scope, "message.sent", sender, recipient)
        return number

    def send(self, sender: Session, recipient_id: str, content: str) -> int:
        if not content.strip():
            raise Refused("an empty message cannot be sent")
        self.store.instances.show_life(sender["id"])
        recipient = self.store.instances.live(recipient_id)
        if recipient is None or recipient.scope != sender["scope"]:
            raise UnknownInstance(f"Instance {recipient_id} is not active in this scope")
        if not may_meet(sender["label"], recipient.label):
            raise Refused("works under another identity")
        return self.post(sender["scope"], sender["id"], recipient_id, content)

    def broadcast(self, sender: Session, content: str) -> list[str]:
        peers = [row for row in self.store.instances.in_scope(sender["scope"]) if row.id != sender["id"]]
        ids = [row.id for row in peers if may_meet(sender["label"], row.label)]
        for one in ids:
            self.post(sender["scope"], sender["id"], one, content)
        return ids

    def peek(self, instance: Session, limit: int = 50) -> list[Message]:
        mine = [mail for mail in self.memory.messages if mail.recipient == instance["id"] and not mail.read]
        past = self.store.now() - CLAIM_SECONDS
        return [mail for mail in mine if self.memory.taken.get(mail.id, past - 1) < past][:limit]

    def take(self, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
        mark = f"[task:{about}]" if about else ""
        taken = [mail for mail in self.peek(instance, 10**9) if mail.content.startswith(mark)][:limit]
        self.memory.taken.update(dict.fromkeys((mail.id for mail in taken), self.store.now()))
        return taken

    def acknowledge(self, ids: list[int]) -> None:
        mails = self.memory.messages
        self.memory.messages = [mail.replace(read=1) if mail.id in ids else mail for mail in mails]
        self.put_back(ids)

    def put_back(self, ids: list[int]) -> None:
        for number in ids:
            self.memory.taken.pop(number, None)

    def walk(
        self, scope: str, to: str = "", sender: str = "", viewer: str = "", after: str = ""
    ) -> Iterator[tuple[str, Message]]:
        rows = self._seen_in(scope, to, sender, viewer)[::-1]
        return self.behind(after, (int,), rows, lambda mail: [mail.id], falling=True)

    def count(self, scope: str, to: str = "", sender: str = "", viewer: str = "") -> int:
        return len(self._seen_in(scope, to, sender, viewer))

    def walk_unread(self, instance: Session, after: str = "") -> Iterator[tuple[str, Message]]:
        return self.behind(after, (int,), self.peek(instance, 10**9), lambda mail: [mail.id])

    def unread_count(self, instance: Session) -> int:
        return len(self.peek(instance, 10**9))

    def get(self, instance: Session, message_id: int) -> Message | None:
        mails = self.memory.messages
        return next((mail for mail in mails if (mail.id, mail.recipient) == (message_id, instance["id"])), None)

    def hand_over(self, sender: Session, recipient_id: str, content: str, same: str, read_too: bool) -> None:
        there = [mail for mail in self.memory.messages if (mail.sender, mail.recipient) == (sender["id"], recipient_id)]
        if not any(mail.content in (content, same) and mail.read <= read_too for mail in there):
            self.post(sender["scope"], sender["id"], recipient_id, content)

    def write_down(self, scope: str, sender_id: str, recipient_id: str, content: str) -> int:
        posted = self.post(scope, sender_id, recipient_id, content)
        self.acknowledge([posted])
        return posted

    def counts(self, scope: str, since: int, viewer: str = "") -> dict[str, int]:
        found = self._seen_in(scope, viewer=viewer)
        recent = [mail for mail in found if mail.created_at >= since]
        return {"unread": len([mail for mail in found if not mail.read]), "recent": len(recent)}

    def _seen_in(self, scope: str, to: str = "", sender: str = "", viewer: str = "") -> list[Message]:
        found = [mail for mail in self.memory.messages if to in ("", mail.recipient) and sender in ("", mail.sender)]
        return [mail for mail in found if self._is_open(mail, scope, viewer)]

    def _is_open(self, mail: Message, scope: str, viewer: str) -> bool:
        """Whether it is of this scope, and neither end of it a stranger to identity `viewer`."""
        ends = [row for row in map(self.store.instances.get, (mail.sender, mail.recipient)) if row]
        label = f"identity:{viewer}" if viewer else None
        return all(row.scope == scope and may_meet(label, row.label) for row in ends)


class Notices(Part):
    def take(self, instance: Session) -> list[Notice]:
        waiting = [mail for mail in self.store.messages.peek(instance, 10**9) if mail.id in self.memory.noticed]
        self.memory.taken.update(dict.fromkeys((mail.id for mail in waiting), self.store.now()))
        return [Notice(id=mail.id, text=mail.content + self._standing(instance, mail)) for mail in waiting]

    def are_messages_unread(self, instance: Session) -> bool:
        return any(mail.id not in self.memory.noticed for mail in self.store.messages.peek(instance, 10**9))

    def tell(self, instance: Session, content: str) -> bool:
        is_there = self.store.instances.get(instance.id) is not None
        if is_there:
            self.post(instance.scope, SYSTEM, instance.id, content)
        return is_there

    def post(self, scope: str, sender: str, recipient: str, content: str, file: str = "") -> int:
        number = self.store.messages.post(scope, sender, recipient, content)
        self.memory.noticed[number] = file
        return number

    def _standing(self, instance: Session, mail: Message) -> str:
        """Who holds the file that a notice is about, where that is not the one who is told."""
        file = self.memory.noticed[mail.id]
        held = self.store.locks.on(file) if file else []
        theirs = [lock for lock in held if lock.instance_id != instance["id"]]
        if theirs:
            return f" It is held by {holder_name(theirs[0].owner_label, theirs[0].instance_id)} now."
        return " Nobody holds it now." if file and not held else ""
