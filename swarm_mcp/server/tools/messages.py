"""Tools about messages: to one session, to all, and one's own mail."""

from __future__ import annotations

from swarm_mcp.errors import Refused, UnknownInstance
from swarm_mcp.mail import mail_page
from swarm_mcp.server.tool import Answer, Call, Tool, delivering, flag, number, of_page, text
from swarm_mcp.team.telling import tell_team
from swarm_mcp.workspace import panes

MOST_AT_ONCE = 200


def _send(call: Call, arguments: dict) -> Answer:
    me, recipient = call.member(), arguments["recipient"]
    if recipient == me.id:
        return Answer(text="Cannot send a message to yourself: that is this session's own id.")
    try:
        call.store.messages.send(me, recipient, arguments["content"])
    except (Refused, UnknownInstance) as reason:
        return Answer(text=str(reason))
    tell_team()
    return Answer(text=f"Message sent to {recipient}")


def _broadcast(call: Call, arguments: dict) -> Answer:
    try:
        peers = call.store.messages.broadcast(call.member(), arguments["content"])
    except Refused as reason:
        return Answer(text=str(reason))
    tell_team()
    return Answer(text=f"Broadcast sent to {len(peers)} instance(s)")


def _poll(call: Call, arguments: dict) -> Answer:
    me, mail = call.member(), call.store.messages
    if "message_id" in arguments:
        message = mail.get(me, arguments["message_id"])
        return Answer([message] if message else [], whole=True)
    found = mail_page(call.store, me, mail.take(me, arguments["limit"]), arguments["limit"])
    return of_page(found, "call again")._replace(**delivering([message["id"] for message in found.rows]))


def _prompt(call: Call, arguments: dict) -> Answer:
    me, recipient = call.member(), arguments["recipient"]
    if recipient == me.id:
        return Answer({"error": "Cannot prompt yourself: that is this session's own id."})
    task_id = arguments.get("task_id") or ""
    try:
        sent = panes.prompt(
            call.store, me, recipient, arguments["message"], task_id, arguments["nudge"], arguments["force"]
        )
    except (Refused, UnknownInstance) as reason:
        return Answer({"error": str(reason)})
    tell_team()
    return Answer(sent)


TOOLS = (
    Tool(
        "send_message",
        "Write to one other session. The message waits in its inbox until it polls, and is kept for an hour;"
        " nobody is interrupted. Use prompt_peer where the other should start on it now, and request_task for"
        " work whose outcome you want to follow.",
        {
            "recipient": text("Instance id of the session to write to, from list_instances."),
            "content": text("What to tell it. It sees your instance id, not your conversation: say what it must know."),
        },
        _send,
        required=("recipient", "content"),
    ),
    Tool(
        "prompt_peer",
        "Write to one other session and wake it: the message goes to its inbox, and if its terminal pane is known"
        " and it is not busy there, a line typed into that pane tells it to poll. The answer says whether it was"
        " woken; the message is there in any case.",
        {
            "recipient": text("Instance id of the session to write to, from list_instances."),
            "message": text("What it should do or know."),
            "task_id": text("Id of the task this is about; the message is marked with it."),
            "nudge": flag("Wake it. False only leaves the message.", True),
            "force": flag(
                "Wake it even while it works or waits for an answer in its terminal, which interrupts it and may"
                " answer the question there. For urgent corrections only."
            ),
        },
        _prompt,
        required=("recipient", "message"),
    ),
    Tool(
        "broadcast",
        "Write the same message to every other session of this scope that is now registered. For what all must"
        " know, such as a frozen branch; one session is better reached with send_message.",
        {"content": text("What to tell them.")},
        _broadcast,
        required=("content",),
    ),
    Tool(
        "poll_messages",
        "Read this session's new messages, oldest first. Each is delivered once and then counts as read. Poll when"
        " you are told that mail waits, between steps of longer work, and before claiming a task, which is refused"
        " while mail is unread. To wait for mail instead of asking again and again, call wait_for_activity.",
        {
            "limit": number(
                "At most so many; the rest stays for the next call.",
                exclusiveMinimum=0,
                maximum=MOST_AT_ONCE,
                default=50,
            ),
            "message_id": number(
                "One message to this session by its id, whole, read or not: for one whose `content` was too long for an"
                " answer, which `cut` says."
            ),
        },
        _poll,
    ),
)
