"""Unread messages of a session, told to its model in one line at its next hook: each once.

They stay unread: a line is no delivery. The newest message that was told stands in a file of the session's own folder
(``scratch.MAIL``), because a hook may not write the store. Loaded only where there is unread mail.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import scratch
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.lookup import SOME_AGENT, LockReader, Session
from swarm_hook_core.naming import UNNAMED, holder_name
from swarm_hook_core.state import lock_alone, open_in_private, read_private, write_all
from swarm_hook_core.untrusted_text import quoted, same_circle, token

MOST = 50  # messages that are looked at for one line
SENDERS = 3  # that are named
EXCERPT = 240  # characters of the first message
SYSTEM = "system"  # the sender of swarm's own messages


def is_due(config: RuntimeConfig, event: SessionEvent, instance_id: str, newest: int) -> bool:
    """Return True if the message `newest` was not told to the session `instance_id`; subagents are told nothing."""
    if event.agent not in ("", SOME_AGENT):
        return False
    try:
        told = read_private(_path(config, event.session_id), 512)
        return newest > _told_in(told.decode(), instance_id)
    except (OSError, ValueError):  # nothing was told yet
        return True


def take(config: RuntimeConfig, event: SessionEvent, reader: LockReader, session: Session) -> str:
    """Return the line about unread mail that `session` has not been told, may be empty. It counts as told.

    `reader`: the store's LockReader. Raises OSError if the session's folder cannot be written: then nothing is told,
    because each hook would repeat it.
    """
    newest = reader.newest_mail(session.instance_id)
    if not newest or not is_due(config, event, session.instance_id, newest):
        return ""
    known = _advance(_path(config, event.session_id), session.instance_id, newest)
    rows = reader.unread_mail(session.instance_id, known, MOST)
    if rows:
        return line(rows, session.label)
    return ""


def line(rows: Any, label: str) -> str:
    """Return one line about unread messages, ``(sender, its label or None, text)`` each, the oldest first.

    `label` is the one of the reading session.
    """
    counts: dict[str, Any] = {}
    for sender, sender_label, _text in rows:
        name = _name(sender, sender_label, label)
        counts[name] = counts.get(name, 0) + 1
    if len(rows) == MOST:
        number = f"{MOST} or more"
    else:
        number = str(len(rows))
    names = [name if len(counts) == 1 else f"{many} from {name}" for name, many in list(counts.items())[:SENDERS]]
    if len(counts) > SENDERS:
        more = f" and {len(counts) - SENDERS} more senders"
    else:
        more = ""
    whose = f"{'from ' if len(counts) == 1 else ''}{', '.join(names)}{more}"
    first = quoted(rows[0][2] if isinstance(rows[0][2], str) else "", EXCERPT)
    if len(rows) == 1:
        which = "It says"
    else:
        which = f"The first, from {_name(rows[0][0], rows[0][1], label)}, says"
    return (
        f"swarm: {number} unread message{'' if len(rows) == 1 else 's'} for you, {whose}. {which}: {first}. To read"
        f" {'it' if len(rows) == 1 else 'them'} whole, call poll_messages, or run `swarm-mcp bootstrap`."
    )


def _name(sender: str, sender_label: str | None, label: str) -> str:
    """Return the name of a message's sender for the session with `label`."""
    if sender == SYSTEM:
        return "swarm"
    if sender_label is None:
        return "a session that has gone"
    if not same_circle(token(label, "identity"), token(sender_label, "identity")):
        return UNNAMED
    return holder_name(sender_label, sender)


def _path(config: RuntimeConfig, session_id: str) -> str:
    return os.path.join(scratch.folder_of(config, session_id), scratch.MAIL)


def _told_in(text: str, instance_id: str) -> int:
    """Return the newest message that was told, as the file says; 0 where it is about another instance, or torn."""
    whose, _, number = text.strip().partition(" ")
    if whose == instance_id and number.isdigit():
        return int(number)
    return 0


def _advance(path: str, instance_id: str, newest: int) -> int:
    """Note that all messages up to `newest` are told; return the number before. Of two hooks, one tells them."""
    handle = open_in_private(path, os.O_RDWR | os.O_CREAT)
    try:
        lock_alone(handle)  # Windows has none: two calls of one session at once may both tell it
        known = _told_in(os.read(handle, 512).decode("utf-8", "replace"), instance_id)
        if newest > known:
            os.lseek(handle, 0, os.SEEK_SET)
            os.ftruncate(handle, 0)
            write_all(handle, f"{instance_id} {newest}\n".encode())
        return known
    finally:
        os.close(handle)
