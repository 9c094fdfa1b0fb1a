"""Ends of calls as their client tells them: by its hook after a call, and by its log of the conversation.

    <state folder>/ended/<pid>                  its mtime is the end of the last call of the client with this process;
                                                a plugin notes the session and its agent in it
    <state folder>/ended/<runtime>.<session>    the session's client process, the form and the path of its log: noted as
                                                the session starts, and at each prompt (``registration``)

The next check of a session notes the first kind of end in the journal (``Trail.leave``). Until then each reader of the
journal adds it (`with_mark`). No hook runs after an edit in Claude Code and Codex, or after a call that the client or
its user has refused. The log has a result of each call, written after all hooks of the client, also its formatters.
The pause in which a model thinks lies between that result and the next call.

The log is read only where a change may fall into such a pause, or where another session's write is still to come.
"""

from __future__ import annotations

import os

from swarm_hook_core.state import client_note, end_by_mark, read_private
from swarm_hook_core.traces import append, first_line, journal, plain_word, seen
from swarm_hook_core.traces import entry as new_entry
from swarm_hook_core.traces.journal import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.transcript_ends import Logs

LONGEST_NOTE = 8192  # bytes


def forget_client(name: str) -> None:
    """Remove the note of a session that has ended, by the `name` of its journal."""
    try:
        os.remove(client_note(name))
    except OSError:
        return  # it was never noted


def _client_of(name: str) -> tuple[int, str, str]:
    """Return ``(process, form of its log, its path)`` of the client with the journal `name`; 0, "" if unknown."""
    try:
        words = read_private(client_note(name), LONGEST_NOTE).decode("utf-8", "surrogateescape").split(" ", 2)
        return int(words[0]), words[1], words[2]
    except (OSError, ValueError, IndexError):
        return 0, "", ""  # its client has told nothing


def marked_ns(session_id: str, agent: str, client_pid: int) -> int:
    """Return the end of the agent's last call by the client's mark; 0 if that goes on, or if its end is noted.

    A mark without names counts for each agent.
    """
    at_ns, whose, by = end_by_mark(client_pid)
    if not whose or (whose == session_id and plain_word(by) == plain_word(agent)):
        return at_ns
    return 0


def with_mark(name: str, data: bytes) -> bytes:
    """Return the entries `data` of the journal `name`, with the end of its last call if only a mark tells it yet."""
    pid = _client_of(name)[0]
    if not pid:
        return data
    ended_ns, whose, agent = end_by_mark(pid)
    if not ended_ns or whose not in ("", journal.owner_of(data)[1]):
        return data
    last = _last_call(data, plain_word(agent) if whose else "")
    if last is None or last.at_ns >= ended_ns:
        return data
    return data + b"\n" + new_entry(ended_ns, "over", last.agent, last.tool, "/")


def note_last_end(path: str, name: str) -> None:
    """Note the end of the session's last call in its journal at `path`, before the note goes. Never raises."""
    try:
        data = journal.read(path)
        last = _last_call(data)
        if last is None:
            return
        ended_ns = end_of(name, data, last)
        if ended_ns > last.at_ns:
            end = new_entry(ended_ns, "over", last.agent, last.tool, "/")
            append(path, [end], lambda: first_line(*journal.owner_of(data), "/"))
    except OSError:
        return  # a missing journal, or a full disk


def end_of(name: str, data: bytes, call: Entry) -> int:
    """Return the end of a call with an entry in the journal `name`, as the client tells it; 0 if it is not known."""
    session_id = journal.owner_of(data)[1]
    logs = logs_of(name, session_id)
    if logs is not None:
        return logs.end_of(call.agent, call.at_ns)
    pid = _client_of(name)[0]
    if not pid:
        return 0
    ended_ns = marked_ns(session_id, call.agent, pid)
    if ended_ns > call.at_ns:
        return ended_ns
    return 0


def logs_of(name: str, session_id: str) -> Logs | None:
    """Return the logs of the session with the journal `name`; None for a client without ends in its logs."""
    _pid, form, path = _client_of(name)
    if not path:
        return None
    from swarm_hook_core.traces.transcript_ends import FORMS, Logs

    if form not in FORMS:
        return None
    return Logs(form, path, session_id)


def _last_call(data: bytes, agent: str = "") -> Entry | None:
    """Return the entry of the last call in a journal. `agent`: only of this one, as entries name it."""
    for raw in reversed(data[-seen.OWN_TAIL :].split(b"\n")):
        words = raw.partition(b"\0")[0].split(b" ")
        if len(words) == 4 and words[1] in seen.CALLS and agent.encode() in (b"", words[2]):
            try:
                return journal.Entry(raw)
            except ValueError:
                continue  # torn
    return None
