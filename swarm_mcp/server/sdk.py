"""The official MCP SDK with our tools, resources and prompts on it."""

from __future__ import annotations

import asyncio
import json

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

from swarm_mcp import __version__
from swarm_mcp.server import prompts, resources
from swarm_mcp.server.calls import Calls, texts_of
from swarm_mcp.server.opening import METHODS, Opening
from swarm_mcp.server.session import CallingSession
from swarm_mcp.server.subscriptions import Subscriptions
from swarm_mcp.server.tool import Answer
from swarm_mcp.server.tools import all_tools
from swarm_mcp.server.wire import Incoming, Outgoing

INSTRUCTIONS = (
    "Coordination between coding sessions that share files. Your own writes to a file that another session has"
    " locked are denied; lock_file keeps others from a file of yours. Sessions also hand each other work (tasks),"
    " talk (messages) and wait for each other (wait_for_activity); bootstrap shows where things stand."
)


def serve(
    session: CallingSession, opening: Opening, incoming: Incoming, outgoing: Outgoing, with_check: bool
) -> None:
    """Serve until the client closes its end."""
    asyncio.run(_serve(session, opening, incoming, outgoing, with_check))


async def _serve(session, opening: Opening, incoming: Incoming, outgoing: Outgoing, with_check: bool) -> None:
    calls = Calls(session, all_tools(with_check=True) if with_check else all_tools())
    server, receipts = build(calls)
    _record(opening, incoming, outgoing, receipts)
    async with stdio_server(incoming, outgoing) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def build(calls: Calls) -> tuple[Server, Receipts]:
    """The server, and what waits for its answers to be written."""
    receipts = Receipts(calls)
    bus = InMemorySubscriptionBus()
    subscriptions = Subscriptions(calls, bus)
    listed = [types.Tool.model_validate(tool.described()) for tool in calls.tools.values()]

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx, params):
        if params.name not in calls.tools:
            known = ", ".join(calls.tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; there are {known}")
        answer = await calls.use(params.name, params.arguments or {}, dict(ctx.meta or {}))
        receipts.expect(ctx.request_id, answer)
        return _result(answer)

    async def list_resources(ctx, params):
        return types.ListResourcesResult(resources=[types.Resource(**item) for item in resources.LISTED])

    async def list_templates(ctx, params):
        templates = [types.ResourceTemplate(**item) for item in resources.TEMPLATES]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(ctx, params):
        uri = str(params.uri)
        try:
            text = await calls.run(lambda call: resources.read(call, uri), dict(ctx.meta or {}))
        except resources.UnknownResource as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        contents = [types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        return types.ReadResourceResult(contents=contents)

    async def subscribe(ctx, params):
        uri = str(params.uri)
        if not resources.is_known(uri):
            raise MCPError(types.INVALID_PARAMS, str(resources.UnknownResource(uri)))
        await subscriptions.add(uri, ctx.session, dict(ctx.meta or {}))
        return types.EmptyResult()

    async def unsubscribe(ctx, params):
        subscriptions.remove(str(params.uri))
        return types.EmptyResult()

    listen = ListenHandler(bus)

    async def listen_to(ctx, params):
        wanted = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        async with subscriptions.published(wanted, dict(ctx.meta or {})):
            return await listen(ctx, params)

    async def list_prompts(ctx, params):
        listed = [types.Prompt(name=p.name, title=p.title, description=p.description) for p in prompts.PROMPTS]
        return types.ListPromptsResult(prompts=listed)

    async def get_prompt(ctx, params):
        prompt = next((prompt for prompt in prompts.PROMPTS if prompt.name == params.name), None)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")
        content = types.TextContent(type="text", text=prompt.text)
        messages = [types.PromptMessage(role="user", content=content)]
        return types.GetPromptResult(description=prompt.description, messages=messages)

    server = Server(
        "swarm",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listen_to,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    return server, receipts


class Receipts:
    """Answers whose delivery matters, until they have been written to the client."""

    def __init__(self, calls: Calls):
        self._calls = calls
        self._expected: dict[object, Answer] = {}
        self._running: set[asyncio.Task] = set()

    def expect(self, request_id: object, answer: Answer) -> None:
        """Note that `answer` is about to be written as the response to this request."""
        if answer.on_sent:
            self._expected[request_id] = answer

    def written(self, message: dict) -> None:
        """A message has been handed to the client."""
        answer = self._expected.pop(message.get("id"), None) if "method" not in message else None
        if answer is not None:
            task = asyncio.get_running_loop().create_task(self._calls.sent(answer))
            self._running.add(task)
            task.add_done_callback(self._running.discard)


def _result(answer: Answer):
    content = [types.TextContent(type="text", text=text) for text in texts_of(answer)]
    more: dict = {"is_error": True} if answer.is_error else {}
    if answer.value is not None:
        more["structured_content"] = answer.value if isinstance(answer.value, dict) else {"items": answer.value}
    return types.CallToolResult(content=content, **more)


def _record(opening: Opening, incoming: Incoming, outgoing: Outgoing, receipts: Receipts) -> None:
    """Have the answers to opening questions written down as they pass by."""
    asked: dict[str, dict] = {}

    def admit(line: str) -> bool:
        message = _parsed(line) if any(method in line for method in METHODS) else {}
        if message.get("method") in METHODS and "id" in message:
            asked[json.dumps(message["id"])] = message
        # The SDK drops a line with half a character in it, and the client would wait for ever.
        return "\\ud" not in line.lower() or not _refuse_half_characters(line, outgoing)

    def sent(message: dict) -> None:
        receipts.written(message)
        request = asked.pop(json.dumps(message.get("id")), None) if asked and "method" not in message else None
        if request is not None and isinstance(message.get("result"), dict):
            key = opening.key(request)
            opening.note(request, message["result"])
            if key:
                opening.learn(key, message["result"])

    incoming.admit = admit
    outgoing.sent = sent


def _parsed(line: str) -> dict:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _refuse_half_characters(line: str, outgoing: Outgoing) -> bool:
    message = _parsed(line)
    try:
        json.dumps(message, ensure_ascii=False).encode("utf-8")
        return False
    except UnicodeEncodeError:
        error = {"code": types.INVALID_PARAMS, "message": "the request holds text that is not valid UTF-8"}
        outgoing.send({"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        return True
