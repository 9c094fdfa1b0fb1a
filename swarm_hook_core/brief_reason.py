"""The reason of a denial for a client that shows its model only a few words."""

from swarm_hook_core.labels import token
from swarm_hook_core.untrusted_text import cut, named, quoted
from swarm_hook_core.wording import holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.lookup import Session

PATH, WHO = 45, 40  # characters of a path, the last ones, and of a holder's name


def shorten(denial: "Denial", session: "Session | None", call: "ToolCall", room: int) -> None:
    """Set the ``brief`` reason of a `denial` that is longer than `room` characters, and its ``rest``.

    For a lock, ``brief`` has the file, the holder and the way out, and ``rest`` has the news behind the reason. For any
    other denial, ``brief`` is the beginning and ``rest`` the whole reason.
    """
    from swarm_hook_core.storms import MANY, PERSON

    reason, held = denial.reason, denial.held
    if held is None or session is None:
        denial.brief, denial.rest = cut(denial.short or reason, room), reason
        return
    denial.rest = reason.partition("\n")[2]
    who, why, ask = holder(held, token(session.label, "identity"), session.instance_id)
    path = denial.path.removeprefix(f"{call.folder}/")
    if len(path) > PATH:
        path = f"…{path[1 - PATH :]}"
    if denial.times >= MANY:
        times = f"denied {denial.times} times, "
    else:
        times = ""
    begin = f"swarm lock blocked {call.client_tool} for {named(path)}: {times}held by {cut(who, WHO)}"
    instead = f"work on something else, {ask.partition(' (')[0]}, or wait in line for it (lock_file with wait_seconds)"
    if denial.times >= PERSON:
        instead = "do what can be done without it, say in your answer what is left to do, and end the turn"
    end = f". Do not write it another way: {instead}."
    left = room - len(begin) - len(end) - len(" (note: )")
    if why and left > 10:
        note = f" (note: {quoted(held.note, left - len('...'))})"
    else:
        note = ""
    denial.brief = cut(begin + note + end, room)
