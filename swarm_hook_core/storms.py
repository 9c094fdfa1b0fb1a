"""Storms: a session that tries the same file again and again, although it is denied.

From the third denial within a few minutes on it is told so, in fewer words. The coordinator then tells the holder, and
at the tenth the person (``swarm_mcp.store.storms``). Hooks' denials are counted beside the store; nothing is counted
for a call that may pass.
"""

from swarm_hook_core import repeated_denials
from swarm_hook_core.labels import token
from swarm_hook_core.paths import key_of
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration, holder, joining, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial, Notice
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.lookup import Peers, Session

SECONDS = 300  # seconds in which denials of one file are counted together
MANY, PERSON = 3, 10  # denials: of a storm, and where a person has to hear of it
NOTED_SECONDS = 60  # a denial noted this lately is not noted again


def weigh(denial: "Denial", session: "Session", call: "ToolCall", peers: "Peers", now: float) -> None:
    """Count a `denial` of `call`: set its `times` and `is_news`, and its reason where it is of a storm."""
    if denial.loss is not None:
        weigh_loss(denial, session, call, now)
        return
    held = denial.held
    if held is None or not peers.own_id:
        return
    is_known = peers.was_denied(held, denial.path, NOTED_SECONDS)
    denial.is_news = not is_known
    if not denial.certain:
        if is_known:
            repeated_denials.note(peers.own_id, held.instance_id, *held.names)
        return
    earlier, most, first = repeated_denials.lately(peers.own_id, held.instance_id, denial.path, now - SECONDS, call.id)
    denial.times = times = earlier + 1
    denial.is_news = denial.is_news or any(most < number <= times for number in (MANY, PERSON))
    if times >= MANY:
        denial.reason = _words(denial, session, call.client_tool, now - first, peers.waiting_for(denial.path), now)
    more = {"path": denial.path, "times": times, "event": not is_known, "call": call.id}
    repeated_denials.note(peers.own_id, held.instance_id, *held.names, **more)


def weigh_loss(denial: "Denial", session: "Session", call: "ToolCall", now: float) -> None:
    """Count a `denial` of `call` for its ``loss``: set its `times`, unless they are known, and its `is_news`."""
    loss, own_id = denial.loss, session.instance_id
    if not own_id:
        denial.is_news = False  # there is no session to record it for
        return
    assert loss is not None
    whose = own_id, loss.held.instance_id, denial.path
    denial.times = denial.times or repeated_denials.lately(*whose, now - SECONDS, call.id)[0] + 1
    denial.is_news = not repeated_denials.is_recorded(*whose, now - NOTED_SECONDS)

    more = {"path": denial.path, "times": denial.times, "event": denial.is_news, "call": call.id}
    repeated_denials.note(own_id, loss.held.instance_id, key_of(denial.path), **more)


def weigh_notice(notice: "Notice", session: "Session", now: float) -> None:
    """Set the `is_news` of a `notice`: the same is recorded once within `NOTED_SECONDS`."""
    own_id, holder_id = session.instance_id, notice.loss.held.instance_id
    mark = f"{notice.loss.why} {notice.path}"
    notice.is_news = bool(own_id) and not repeated_denials.is_recorded(
        own_id, holder_id, mark, now - NOTED_SECONDS, "notice"
    )
    if notice.is_news:
        repeated_denials.note(own_id, holder_id, notice=mark, event=True)


def _words(denial: "Denial", session: "Session", tool: str, span: float, waiting: int, now: float) -> str:
    """Return the shorter reason for a model that has read the whole one: count, holder, end, way out.

    `waiting`: the number of sessions that wait for the file already.
    """
    held, times = denial.held, denial.times
    assert held is not None
    who, _why, _ask = holder(held, token(session.label, "identity"), session.instance_id)
    said = (
        f"swarm lock blocked {tool} for {named(denial.path)}: denied {times} times within {duration(max(span, 1))},"
        f" held by {who} ({until(held, now)}). Trying again changes nothing, nor does another way to write it."
    )
    if times >= PERSON:
        return f"{said} Stop: do what can be done without it, say in your answer what is left to do, and end the turn."
    if held.instance_id == session.instance_id:
        return f"{said} Leave it to that agent, and work on something else."
    return f"{said} Work on something else: you get a message when it is free. Or {joining(waiting)}, once."
