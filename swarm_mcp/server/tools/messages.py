"""Tools about messages: to one session, to all, and one's own mail."""

from __future__ import annotations

from typing import Any

from swarm_mcp import panes
from swarm_mcp.errors import Refused, UnknownInstance
from swarm_mcp.server.tool import Answer, Call, Tool, delivering, flag, number, of_page, text
from swarm_mcp.sessions.summary import mail_page

MOST_AT_ONCE = 200


def _send(call: Call, arguments: dict[str, Any]) -> Answer:
    me, recipient = call.member(), arguments["recipient"]
    if recipient == me.id:
        return Answer(text="Cannot send a message to yourself: that is this session's own id.")
    try:
        call.store.messages.send(me, recipient, arguments["content"])
    except (Refused, UnknownInstance) as reason:
        return Answer(text=str(reason))
    return Answer(text=f"Message sent to {recipient}")


def _broadcast(call: Call, arguments: dict[str, Any]) -> Answer:
    try:
        peers = call.store.messages.broadcast(call.member(), arguments["content"])
    except Refused as reason:
        return Answer(text=str(reason))
    return Answer(text=f"Broadcast sent to {len(peers)} instance(s)")


def _poll(call: Call, arguments: dict[str, Any]) -> Answer:
    me, mail = call.member(), call.store.messages
    if "message_id" in arguments:
        message = mail.get(me, arguments["message_id"])
        return Answer([message] if message else [], whole=True)
    found = mail_page(call.store, me, mail.take(me, arguments["limit"]), arguments["limit"])
    return of_page(found, "call again")._replace(**delivering([message["id"] for message in found.rows]))


def _prompt(call: Call, arguments: dict[str, Any]) -> Answer:
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
    return Answer(sent)


TOOLS = (
    Tool(
        "send_message",
        "Write to one other session. The message waits in its inbox until it polls, for at most an hour, and"
        " interrupts no session. Use prompt_peer if the other should start on it now, and request_task for work with an"
        " outcome to follow.",
        {
            "recipient": text("Instance id of the session to write to, from bootstrap."),
            "content": text(
                "The message. It sees your instance id, not your conversation: include everything it must know."
            ),
        },
        _send,
        required=("recipient", "content"),
    ),
    Tool(
        "prompt_peer",
        "Write to one other session and wake it: the message goes to its inbox, and if its terminal pane is known and"
        " idle, a line typed into that pane tells it to poll. The answer tells if it was woken; the message is there in"
        " any case.",
        {
            "recipient": text("Instance id of the session to write to, from bootstrap."),
            "message": text("The task or the news for it."),
            "task_id": text("Id of the task this is about; the message is marked with it."),
            "nudge": flag("Wake it. False only leaves the message.", True),
            "force": flag(
                "Wake it even while it works or waits for an answer in its terminal: this interrupts it, and may"
                " answer the question there. For urgent corrections only."
            ),
        },
        _prompt,
        required=("recipient", "message"),
    ),
    Tool(
        "broadcast",
        "Write the same message to every other session of this scope that is now registered, such as news of a frozen"
        " branch. Use send_message for a single session.",
        {"content": text("The message.")},
        _broadcast,
        required=("content",),
    ),
    Tool(
        "poll_messages",
        "Read this session's new messages, oldest first. Each is delivered once and then counts as read. Poll when you"
        " are told that mail waits, between steps of longer work, and before claiming a task: claims are refused while"
        " mail is unread. To wait for mail instead of asking again and again, call wait_for_activity.",
        {
            "limit": number(
                "At most so many; the rest stays for the next call.",
                exclusiveMinimum=0,
                maximum=MOST_AT_ONCE,
                default=50,
            ),
            "message_id": number(
                "One message to this session by its id, whole, read or not. For a message that `cut` lists: its"
                " `content` was too long for an answer."
            ),
        },
        _poll,
    ),
)
