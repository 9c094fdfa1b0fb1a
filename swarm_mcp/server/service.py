"""The coordinator's tools, resources and prompts as methods of an MCP server."""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.mcp.protocol import INVALID_PARAMS, ProtocolError, Request
from swarm_mcp.mcp.server import Call, Reply, Server
from swarm_mcp.server import resources
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.resources import LISTED, TEMPLATES
from swarm_mcp.server.tool import Answer, Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.server.calls import Calls, Subscriptions

LONGEST_NAME = 60  # characters of a client's text in an error
INSTRUCTIONS = (
    "Coordination between coding sessions that share files. Your writes to a file that another session has locked are"
    " denied. lock_file keeps others from a file, folder or pattern, or waits in line for it (wait_seconds);"
    " explain_lock names holders and waiters. Sessions also hand each other work (tasks), talk (messages) and wait for"
    " each other (wait_for_activity); bootstrap shows the state of all."
)
# The lists never change. For a list that may change, Claude Code listens from the first moment of every session.
CAPABILITIES = {
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": True},
    "tools": {"listChanged": False},
}


class Service:
    """One connection's methods. Each list's module is loaded by the first request for it, and asyncio by a call.

    `lists_all`: the list of tools has those that only front ends need, too.
    """

    def __init__(self, session: CallingSession, lists_all: bool = False):
        self._session = session
        self._lists_all = lists_all
        self._tools: dict[str, Tool] = {}
        self._calls: Calls | None = None
        self._subscriptions: Subscriptions | None = None
        lists = {
            "tools/list": self._list_tools, "resources/list": _list_resources, "prompts/list": _list_prompts,
            "resources/templates/list": _list_templates, "prompts/get": _get_prompt,
        }  # fmt: skip
        self.slow = {
            "tools/call": self._call_tool, "resources/read": self._read, "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe, "subscriptions/listen": self._listen,
        }  # fmt: skip
        info = {"name": "swarm", "version": __version__}
        self.server = Server(info, CAPABILITIES, {**lists, **self.slow}, INSTRUCTIONS)

    def waits(self, request: Request) -> bool:
        """Return True for a request that stays unanswered until something happens."""
        if request.method == "subscriptions/listen":
            return True
        params = request.params
        return request.method == "tools/call" and self.calls.is_waiting(params.get("name"), params.get("arguments"))

    def finish(self, seconds: float) -> None:
        """Wait at most `seconds` until delivered answers are noted in the store."""
        if self._calls is not None:
            self._calls.finish(seconds)

    @property
    def tools(self) -> dict[str, Tool]:
        """All tools by name, in the order of the list."""
        if not self._tools:
            from swarm_mcp.server.tools import all_tools

            self._tools = all_tools()
        return self._tools

    @property
    def calls(self) -> Calls:
        """The workers for tool calls."""
        if self._calls is None:
            from swarm_mcp.server.calls import Calls

            self._calls = Calls(self._session, self.tools)
        return self._calls

    @property
    def subscriptions(self) -> Subscriptions:
        """The connection's subscriptions to resources."""
        if self._subscriptions is None:
            from swarm_mcp.server.calls import Subscriptions

            self._subscriptions = Subscriptions(self.calls)
        return self._subscriptions

    def _list_tools(self, _call: Call) -> dict[str, Any]:
        return {"tools": [tool.described() for tool in self._listed()]}

    def _listed(self) -> list[Tool]:
        """Return the tools that a client is shown."""
        return [tool for tool in self.tools.values() if tool.is_listed or self._lists_all]

    async def _call_tool(self, call: Call) -> Reply:
        name = call.params["name"]
        if name not in self.tools:
            text = (
                f"there is no tool {name[:LONGEST_NAME]!r}; there are {', '.join(tool.name for tool in self._listed())}"
            )
            raise ProtocolError(INVALID_PARAMS, text)
        calls = self.calls
        answer = await calls.use(name, call.params.get("arguments") or {}, call.meta)
        return Reply(result_of(answer), lambda: calls.sent(answer), lambda: calls.lost(answer))

    async def _read(self, call: Call) -> Reply:
        uri = call.params["uri"]
        try:
            answer = await self.calls.run(lambda made: resources.read(made, uri), call.meta)
        except (resources.UnknownResource, SwarmError) as error:
            raise ProtocolError(INVALID_PARAMS, str(error)) from None
        value, *notes = answer.texts()
        content = [{"uri": uri, "mimeType": "application/json", "text": value}]
        content += [{"uri": uri, "mimeType": "text/plain", "text": note} for note in notes]
        return Reply({"contents": content})

    async def _subscribe(self, call: Call) -> Reply:
        uri = call.params["uri"]
        if not resources.is_known(uri):
            raise ProtocolError(INVALID_PARAMS, str(resources.UnknownResource(uri)))
        await self.subscriptions.add(uri, call)
        return Reply({})

    async def _unsubscribe(self, call: Call) -> Reply:
        self.subscriptions.remove(call.params["uri"])
        return Reply({})

    async def _listen(self, call: Call) -> Reply:
        return Reply(await self.subscriptions.listen(call))


def _list_resources(_call: Call) -> dict[str, Any]:
    return {"resources": LISTED}


def _list_templates(_call: Call) -> dict[str, Any]:
    return {"resourceTemplates": TEMPLATES}


def _list_prompts(_call: Call) -> dict[str, Any]:
    listed = [{"name": one.name, "title": one.title, "description": one.description} for one in PROMPTS]
    return {"prompts": listed}


def _get_prompt(call: Call) -> dict[str, Any]:
    name = call.params["name"]
    for prompt in PROMPTS:
        if prompt.name == name:
            content = {"type": "text", "text": prompt.text}
            return {"description": prompt.description, "messages": [{"role": "user", "content": content}]}
    raise ProtocolError(INVALID_PARAMS, f"there is no prompt {name[:LONGEST_NAME]!r}")


def result_of(answer: Answer) -> dict[str, Any]:
    """Return a tool's answer as the result of ``tools/call``."""
    content = [{"type": "text", "text": text} for text in answer.texts()]
    result: dict[str, Any] = {"content": content, "isError": answer.is_error}
    if isinstance(answer.value, dict):
        result["structuredContent"] = answer.value
    elif answer.value is not None:
        if answer.page:
            rest = answer.page.told()
        else:
            rest = {}
        result["structuredContent"] = {"items": answer.value, **rest}
    return result


# Prompts that a person can choose.


class Prompt(NamedTuple):
    """A prompt that a person can put into a session, one user message without arguments.

    `name` and `title` stand in the client's menu, `text` is the message.
    """

    name: str
    title: str
    description: str
    text: str


SETUP = """\
Join the swarm with this session, and report its state.

1. Call `whoami`. If it says that you are not registered, call `register` with the absolute path of the
   folder you work in as `directory`. Sessions whose client has the swarm plugin are registered already.
2. Call `bootstrap`. Read the unread messages first; they may change what you should do.
3. Tell me in a few lines: your instance and scope, the other sessions, the locks and their holders, the open tasks,
   and the next step you propose.

Take no task and no lock yet."""

PROTOCOL = """\
Work with the other sessions of this scope by these rules until I say otherwise.

- Begin and resume with `bootstrap`. Answer unread messages before you take on anything.
- Edits need no lock. Lock a file with `lock_file` where it must stay still for longer, and give it back with
  `unlock_file` as soon as that is done.
- Do as a denial says, and never write the file some other way. After a change by another session: read the file again,
  then write. After a lock: do other work, you get a message when the file is free; if you can do nothing without it,
  wait in line (`lock_file` with `wait_seconds`).
- Work for others is a task: `request_task` (or `request_task_batch`), with the files it concerns and what it
  depends on. Take work with `claim_next_task`, report with `report_progress` when it takes long or is blocked, end
  it with `complete_task`: your work, the changed files, the tests and their results.
- A change that matters gets a review: a task of type `review` with `review_of_task_id`. Each finding becomes a
  task of type `fix` with `fixes_task_id`.
- Tell a peer something with `send_message`; use `prompt_peer` when it should look now.
- Call `wait_for_activity` only while others have to finish something for you: a task you handed out, a review you
  asked for, a lock you need. Otherwise end your turn; messages wait for you.
- `swarm_status` names your next step when you are unsure."""

PROMPTS = (
    Prompt("setup", "Join the swarm", "Register this session and report the other sessions, locks and tasks.", SETUP),
    Prompt("protocol", "Work in the swarm", "The rules of working with other sessions, for this session.", PROTOCOL),
)
