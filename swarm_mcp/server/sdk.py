"""The official MCP SDK with our tools, resources and prompts on it."""

from __future__ import annotations

import asyncio
from functools import partial

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

from swarm_mcp import __version__
from swarm_mcp.errors import SwarmError
from swarm_mcp.server import guidance, resources
from swarm_mcp.server.calls import LONGEST_NAME, Calls, texts_of
from swarm_mcp.server.handshake_cache import HandshakeCache
from swarm_mcp.server.open_requests import OpenRequests
from swarm_mcp.server.resources import Subscriptions
from swarm_mcp.server.stdio import MESSAGE_BYTES, Backlog, Incoming, Outgoing
from swarm_mcp.server.tool import Answer

INSTRUCTIONS = (
    "Coordination between coding sessions that share files. Your own writes to a file that another session has"
    " locked are denied; lock_file keeps others from a file, folder or pattern of yours, or waits in line for it"
    " (wait_seconds); explain_lock says who holds what and who waits. Sessions also hand each other work (tasks),"
    " talk (messages) and wait for each other (wait_for_activity); bootstrap shows where things stand."
)


def serve(
    calls: Calls, handshakes: HandshakeCache, incoming: Incoming, outgoing: Outgoing, answered: list[object]
) -> None:
    """Serve until the client closes its end. `answered` are ids of requests that it will only be shown again."""
    asyncio.run(_serve(calls, handshakes, incoming, outgoing, answered))


async def _serve(calls: Calls, handshakes, incoming, outgoing, answered) -> None:
    replies: set[asyncio.Task] = set()  # the event loop itself would let go of them half-done

    def reply(message: dict) -> None:
        task = asyncio.get_running_loop().create_task(outgoing.reply(message))
        replies.add(task)
        backlog.add(MESSAGE_BYTES)
        task.add_done_callback(replied)

    def replied(task: asyncio.Task) -> None:
        replies.discard(task)
        backlog.add(-MESSAGE_BYTES)

    async def settled() -> None:
        await open_requests.settled()
        await asyncio.gather(*replies)

    backlog = incoming.backlog = Backlog()
    open_requests = OpenRequests(handshakes, answered, reply, partial(_waits, calls), calls.sent, calls.lost, backlog)
    incoming.admit, incoming.settled = open_requests.admit, settled
    outgoing.withheld, outgoing.sent = open_requests.withheld, open_requests.sent
    server = build(calls, open_requests)
    async with stdio_server(incoming, outgoing) as (reading, writing):
        await server.run(reading, _MeasuredStream(writing, backlog), server.create_initialization_options())


class _MeasuredStream:
    """The SDK's stream of messages for the client: of those that wait for others to be written, the size is noted."""

    def __init__(self, stream, backlog: Backlog):
        self._stream, self._backlog = stream, backlog
        self._waiting = 0

    async def send(self, item) -> None:
        size = len(item.message.model_dump_json(by_alias=True, exclude_unset=True)) if self._waiting else 0
        self._waiting += 1
        self._backlog.add(size)
        try:
            await self._stream.send(item)
        finally:
            self._waiting -= 1
            self._backlog.add(-size)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _MeasuredStream:
        return self

    async def __aexit__(self, *_exception) -> None:
        await self.aclose()


def _waits(calls: Calls, request: types.JSONRPCRequest) -> bool:
    """Whether a request is answered only when something happens."""
    params = request.params or {}
    name, arguments = params.get("name"), params.get("arguments")
    return request.method == "subscriptions/listen" or (
        request.method == "tools/call" and calls.is_waiting(name, arguments)
    )


def build(calls: Calls, open_requests: OpenRequests) -> Server:
    """The server. `open_requests` is told of answers whose delivery matters."""
    bus = InMemorySubscriptionBus()
    subscriptions = Subscriptions(calls, bus)
    listed = [types.Tool.model_validate(tool.described()) for tool in calls.tools.values() if not tool.hidden]

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx, params):
        if params.name not in calls.tools:
            known = ", ".join(calls.tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:LONGEST_NAME]!r}; there are {known}")
        answer = await calls.use(params.name, params.arguments or {}, dict(ctx.meta or {}))
        open_requests.expect(ctx.request_id, answer)
        return _result(answer)

    async def list_resources(ctx, params):
        return types.ListResourcesResult(resources=[types.Resource.model_validate(item) for item in resources.LISTED])

    async def list_templates(ctx, params):
        templates = [types.ResourceTemplate.model_validate(item) for item in resources.TEMPLATES]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(ctx, params):
        uri = str(params.uri)
        try:
            answer = await calls.run(lambda call: resources.read(call, uri), dict(ctx.meta or {}))
        except (resources.UnknownResource, SwarmError) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        value, *notes = texts_of(answer)
        content = [types.TextResourceContents(uri=uri, mime_type="application/json", text=value)]
        content += [types.TextResourceContents(uri=uri, mime_type="text/plain", text=note) for note in notes]
        return types.ReadResourceResult(contents=[*content])

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
        listed = [types.Prompt(name=p.name, title=p.title, description=p.description) for p in guidance.PROMPTS]
        return types.ListPromptsResult(prompts=listed)

    async def get_prompt(ctx, params):
        prompt = next((prompt for prompt in guidance.PROMPTS if prompt.name == params.name), None)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:LONGEST_NAME]!r}")
        content = types.TextContent(type="text", text=prompt.text)
        messages = [types.PromptMessage(role="user", content=content)]
        return types.GetPromptResult(description=prompt.description, messages=messages)

    return _Swarm(
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


class _Swarm(Server):
    """Its lists never change. Said otherwise, Claude Code listens for that from its first moment in every session."""

    def get_capabilities(self, *arguments, **options) -> types.ServerCapabilities:
        found = super().get_capabilities(*arguments, **options)
        for capability in (found.tools, found.prompts, found.resources):
            if capability is not None:
                capability.list_changed = False
        return found


def _result(answer: Answer):
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text) for text in texts_of(answer)]
    more: dict = {"is_error": True} if answer.is_error else {}
    if answer.value is not None:
        rest = answer.page.told() if answer.page else {}
        more["structured_content"] = answer.value if isinstance(answer.value, dict) else {"items": answer.value, **rest}
    return types.CallToolResult(content=content, **more)
