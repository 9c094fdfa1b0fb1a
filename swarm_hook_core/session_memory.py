"""What hooks remember of a session from one to the next: facts outside the store, and words that it still has to hear.

Only a convenience: a store in a local file knows every session by its id, and losing these files loses nothing. If the
coordinator keeps its store elsewhere, the facts hold our instance.

    <state>/<runtime's folder>/<session>/meta.json     facts
                                         renewed       as old as the last renewal that a hook of the session has started
                                         mail          the newest message that the session was told of
                                         turn          the client's id of the turn
    <state>/unheard/<runtime>.<session>[.<agent>]      words for the session, or its subagent
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import process, state
from swarm_hook_core.clock import left
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup import SOME_AGENT, LockReader, Session
from swarm_hook_core.state import (
    MOST_ATTEMPTS,
    is_at,
    lock_alone,
    name_of,
    open_in_private,
    open_private,
    read_all,
    read_private,
    remove_older,
    state_dir,
    write_all,
    write_private,
)
from swarm_hook_core.untrusted_text import TEXT, cut_text, quoted, same_circle, token

LARGEST = 64 * 1024  # bytes of the saved facts
_NAME = "meta.json"
_SERVER = "server"  # of earlier releases
_RENEWED = "renewed"  # as old as the last renewal that a hook of the session has started
_MAIL = "mail"  # the newest message that the session was told of
_TURN = "turn"


def folder_of(config: RuntimeConfig, session_id: str) -> str:
    """This session's folder."""
    return os.path.join(state_dir(), config.scratch_dir_name, name_of(session_id))


def load(config: RuntimeConfig, session_id: str) -> dict[str, Any]:
    """Return the saved facts about this session; empty if there are no such facts of ours."""
    try:
        saved = loads(read_private(os.path.join(folder_of(config, session_id), _NAME), LARGEST).decode())
    except (OSError, ValueError, RecursionError):  # nothing is saved, or it is torn
        return {}
    if isinstance(saved, dict) and saved.get("session_id") == session_id:
        return saved
    return {}


def save(config: RuntimeConfig, session_id: str, **facts: str) -> None:
    """Replace the saved facts about this session."""
    text = dumps({"session_id": session_id, **facts})
    write_private(os.path.join(folder_of(config, session_id), _NAME), text)


def remember(config: RuntimeConfig, session_id: str, **facts: Any) -> None:
    """Replace the saved facts as `save` does, or record that they cannot be written."""
    try:
        save(config, session_id, **facts)
    except OSError as error:
        state.record(config.runtime_name, "scratch", error)


def clear(config: RuntimeConfig, session_id: str) -> None:
    """Remove the saved facts, and the folder if nothing else is in it."""
    folder = folder_of(config, session_id)
    files = (os.path.join(folder, name) for name in (_NAME, _SERVER, _RENEWED, _MAIL, _TURN))
    for remove, path in (*((os.remove, file) for file in files), (os.rmdir, folder)):
        try:
            remove(path)
        except OSError:  # not there, or the folder is in use
            continue


def tried_lately(config: RuntimeConfig, session_id: str, seconds: float, now: float) -> bool:
    """Return True if a failed registration is less than `seconds` old, so that writes do not pay for each."""
    failed_at = load(config, session_id).get("failed_at")
    return isinstance(failed_at, (int, float)) and 0 <= now - failed_at < seconds


def begin_turn(config: RuntimeConfig, session_id: str, turn: str) -> bool:
    """Note that the session is in this turn of its client's; return True unless it was noted already."""
    path = os.path.join(folder_of(config, session_id), _TURN)
    if _line_in(path) == turn:
        return False
    write_private(path, turn + "\n")
    return True


def end_turn(config: RuntimeConfig, session_id: str) -> None:
    """Take that word back, and remove the folder if nothing else is in it: not every session's end is told."""
    folder = folder_of(config, session_id)
    try:
        os.remove(os.path.join(folder, _TURN))
        os.rmdir(folder)
    except OSError:  # other facts are in the folder
        return


def _line_in(path: str) -> str:
    """Return the text of a file of one short line; may be empty."""
    try:
        return read_private(path, 512).decode().strip()
    except (OSError, ValueError):  # there is no such file
        return ""


# The session's own leases, renewed on its way past a check, and news about them.
#
# The hook itself writes nothing: the coordinator's command does, in the background if it only renews.

TELL_SECONDS = 0.8  # for the coordinator's news; after that, the next hook asks again
RENEWALS = 3  # signs of life in the time of a lease


def renew(
    config: RuntimeConfig,
    session_id: str,
    leases: list[Any],
    has_news: bool,
    coordinator: list[str] | None = None,
) -> str:
    """Renew this session's locks if a third of a lease is over; return words for its model, nearly always empty.

    `leases` has ``(ttl, renewed, booted, wall_until)`` of each lock with a lease. `has_news`: the coordinator has news
    of locks for the session. Raises OSError.
    """
    from swarm_hook_core.coordinator import command

    argv = coordinator or command()
    if not argv or not session_id:
        return ""
    words = [*argv, "alive", "--runtime", config.runtime_name, "--session-id", session_id]
    here, now = process.host_id(), time.time()
    spans = [(lease[0], span) for lease in leases if (span := left(lease, here, now)) is not None]
    if has_news or any(span <= 0 for _ttl, span in spans):
        done = process.run([*words, "--tell"], TELL_SECONDS)
        if done.code == 0:
            return cut_text(done.stdout.strip(), 10 * TEXT)
        return ""
    due = [ttl for ttl, span in spans if span <= ttl * (1 - 1 / RENEWALS)]
    if due and _is_first_renewal(config, session_id, min(due) / RENEWALS):
        process.start_detached(words)
    return ""


def _is_first_renewal(config: RuntimeConfig, session_id: str, seconds: float) -> bool:
    """Return True if no other hook of this session has started that within `seconds`."""
    mark = os.path.join(folder_of(config, session_id), _RENEWED)
    try:
        if 0 <= time.time() - os.stat(mark).st_mtime < seconds:
            return False
    except OSError:
        pass  # the first time

    try:
        write_private(mark, "")
    except OSError:
        return True  # a command too many costs less than a lock
    return True


# Unread messages of a session, told to its model in one line at its next hook: each once.
#
# They stay unread: a line is no delivery. The newest that was told stands in a file: a hook may not write the store.

MOST_MAIL = 50  # messages that are looked at for one line
SENDERS = 3  # that are named
EXCERPT = 240  # characters of the first message
SYSTEM = "system"  # the sender of swarm's own messages


def is_mail_due(config: RuntimeConfig, event: SessionEvent, instance_id: str, newest: int) -> bool:
    """Return True if the message `newest` was not told to the session `instance_id`; subagents are told nothing."""
    if event.agent not in ("", SOME_AGENT):
        return False
    try:
        told = read_private(_mail_file(config, event.session_id), 512)
        return newest > _told_in(told.decode(), instance_id)
    except (OSError, ValueError):  # nothing was told yet
        return True


def take_mail(config: RuntimeConfig, event: SessionEvent, reader: LockReader, session: Session) -> str:
    """Return the line about unread mail that `session` has not been told, may be empty. It counts as told.

    `reader`: the store's LockReader. Raises OSError if the session's folder cannot be written: then nothing is told,
    because each hook would repeat it.
    """
    newest = reader.newest_mail(session.instance_id)
    if not newest or not is_mail_due(config, event, session.instance_id, newest):
        return ""
    known = _advance(_mail_file(config, event.session_id), session.instance_id, newest)
    rows = reader.unread_mail(session.instance_id, known, MOST_MAIL)
    if rows:
        return _mail_line(rows, session.label)
    return ""


def _mail_line(rows: Any, label: str) -> str:
    """Return one line about unread messages, ``(sender, its label or None, text)`` each, the oldest first.

    `label` is the one of the reading session.
    """
    counts: dict[str, Any] = {}
    for sender, sender_label, _text in rows:
        name = _sender_name(sender, sender_label, label)
        counts[name] = counts.get(name, 0) + 1
    if len(rows) == MOST_MAIL:
        number = f"{MOST_MAIL} or more"
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
        which = f"The first, from {_sender_name(rows[0][0], rows[0][1], label)}, says"
    return (
        f"swarm: {number} unread message{'' if len(rows) == 1 else 's'} for you, {whose}. {which}: {first}. To read"
        f" {'it' if len(rows) == 1 else 'them'} whole, call poll_messages, or run `swarm-mcp bootstrap`."
    )


def _sender_name(sender: str, sender_label: str | None, label: str) -> str:
    """Return the name of a message's sender for the session with `label`."""
    if sender == SYSTEM:
        return "swarm"
    if sender_label is None:
        return "a session that has gone"
    from swarm_hook_core.naming import UNNAMED, holder_name

    if not same_circle(token(label, "identity"), token(sender_label, "identity")):
        return UNNAMED
    return holder_name(sender_label, sender)


def _mail_file(config: RuntimeConfig, session_id: str) -> str:
    return os.path.join(folder_of(config, session_id), _MAIL)


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


# Words to a model at an event with an answer that its client drops: kept for the session's next event.
#
# The folder exists only while there are such words. A hook that finds no folder has nothing to do.

LONGEST_WORDS = 20_000  # characters that a session is told at once, the newest
LARGEST_WORDS = 4 << 20  # bytes that are read for that
DROPPED_SECONDS = 86400  # a session silent for so long will not ask


def keep_words(config: RuntimeConfig, event: SessionEvent, words: str) -> None:
    """Keep `words` for the session, or the subagent, of an event, behind earlier words. Raises OSError."""
    remove_older(_words_folder(), time.time() - DROPPED_SECONDS)
    path = _words_file(config, event)
    for _ in range(MOST_ATTEMPTS):
        handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            lock_alone(handle)
            if is_at(path, handle):
                write_all(handle, f"{words}\n".encode("utf-8", "surrogateescape"))
                return
        finally:
            os.close(handle)
    raise OSError(f"{path} was taken all the time")


def take_words(config: RuntimeConfig, event: SessionEvent) -> str:
    """Return the kept words for the session or subagent of an event, nearly always empty. They count as told."""
    if not os.path.isdir(_words_folder()):
        return ""
    path, words = _words_file(config, event), ""
    taken = f"{path}.{os.getpid()}"
    try:
        os.rename(path, taken)  # of two hooks at once one has it
    except OSError:  # nothing is kept
        return ""
    try:
        words = _words_in(taken)
    except OSError:  # a link or a pipe stands there, and would stay: no hook asks for it under this name again
        pass
    try:
        os.remove(taken)
        os.rmdir(_words_folder())
    except OSError:
        pass  # others have words there
    return words[-LONGEST_WORDS:]


def _words_in(taken: str) -> str:
    """Return the words in a taken file, once no hook that has opened it before adds to it any more."""
    handle = open_private(taken, os.O_RDONLY)
    try:
        try:
            lock_alone(handle)
        except OSError:
            pass  # the other hook was stopped: the words before are read all the same
        return read_all(handle, LARGEST_WORDS).decode("utf-8", "surrogateescape").strip()
    finally:
        os.close(handle)


def _words_folder() -> str:
    return os.path.join(state_dir(), "unheard")


def _words_file(config: RuntimeConfig, event: SessionEvent) -> str:
    whose = f"{config.runtime_name}.{name_of(event.session_id)}"
    return os.path.join(_words_folder(), f"{whose}.{name_of(event.agent)}" if event.agent else whose)
