"""The server as the official SDK's own client sees it, in both eras of the protocol."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from support.fixtures import SWARM, Ground

from swarm_mcp.server.tools import all_tools

pytestmark = pytest.mark.slow

MODES = ["legacy", "2026-07-28"]


def client(ground: Ground, mode: str, **options) -> Client:
    """A connection to a server process of its own."""
    parameters = StdioServerParameters(
        command=SWARM[0], args=[*SWARM[1:], "serve"], cwd=ground.repo, env=dict(os.environ)
    )
    return Client(parameters, mode=mode, **options)


def value(result):
    assert not result.is_error, result
    return result.structured_content


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.thorough
def test_every_tool_answers_the_sdks_client(ground: Ground, mode: str):
    peer = ground.session("peer", "peer")
    called: set[str] = set()

    async def work() -> None:
        async with client(ground, mode) as server:

            async def call(tool: str, **arguments):
                called.add(tool)
                return await server.call_tool(tool, arguments)

            listed = (await server.list_tools()).tools
            assert [tool.name for tool in listed] == [name for name, tool in all_tools().items() if tool.is_listed]
            me = value(await call("register", directory=ground.scope, label="me"))["id"]
            assert value(await call("whoami"))["id"] == me
            assert {row["id"] for row in value(await call("list_instances"))["items"]} == {me, peer["id"]}
            assert value(await call("bootstrap"))["instance"]["id"] == me
            assert (await call("send_message", recipient=peer["id"], content="hello")).content
            assert value(await call("prompt_peer", recipient=peer["id"], message="look"))["message_sent"] is True
            assert value(await call("peek_peer", recipient=peer["id"]))["peeked"] is False
            assert value(await call("resolve_workspace_handle", handle="p", validate=False))["matches"] == []
            assert "1" in (await call("broadcast", content="all")).content[0].text
            assert value(await call("poll_messages"))["items"] == []
            task = value(await call("request_task", type="fix", title="one"))["task_id"]
            batch = [
                {"type": "test", "title": "two", "depends_on": [task]},
                {"type": "other", "title": "three", "approval_required": True},
            ]
            two, three = value(await call("request_task_batch", tasks=batch))["task_ids"]
            assert value(await call("claim_task", task_id=task))["ok"] is True
            assert value(await call("report_progress", task_id=task, summary="half"))["ok"] is True
            asked = value(await call("request_human_input", task_id=task, question="Which?", wait_seconds=0))
            assert asked["answer"] is None
            assert value(await call("complete_task", task_id=task, summary="whole"))["status"] == "done"
            assert value(await call("claim_next_task"))["task_id"] == two
            assert value(await call("update_task", task_id=two, status="done"))["ok"] is True
            assert value(await call("approve_task", task_id=three))["status"] == "open"
            assert value(await call("get_task", task_id=three))["title"] == "three"
            assert [row["id"] for row in value(await call("list_tasks", status="open"))["items"]] == [three]
            assert value(await call("lock_file", file="f"))["ok"] is True
            assert value(await call("get_file_lock", file="f"))["active"]["instance_id"] == me
            about_locks = (
                ("renew_lock", {"file": "f", "ttl_seconds": 600}, "lapses_in"),
                ("explain_lock", {"file": "f", "instance_id": peer["id"]}, "swarm lock blocked"),
                ("unlock_file", {"file": "f"}, "Unlocked f"),
                ("steal_lock", {"file": "f", "reason": "nobody has it"}, "taken"),
                ("transfer_lock", {"file": "f", "to": peer["id"]}, peer["id"]),
                ("request_lock", {"file": "f", "reason": "back, please"}, peer["id"]),
                ("lock_history", {"file": "f"}, "transferred"),
                ("pause_task", {"task_id": three}, "no worker"),
                ("resume_task", {"task_id": three}, "no worker"),
                ("commit", {"message": "mine"}, "git"),
                ("undo", {}, "git"),
                ("try", {"command": "true"}, "git"),
            )
            for tool, arguments, word in about_locks:
                assert word in (await call(tool, **arguments)).content[0].text, tool
            for tool in ("kv_set", "kv_append"):
                assert not (await call(tool, key="k", value="[1]")).is_error
            assert json.loads(value(await call("kv_get", key="k"))["value"]) == [1, [1]]
            assert [row["key"] for row in value(await call("kv_list"))["items"]] == ["k"]
            assert not (await call("kv_delete", key="k")).is_error
            assert value(await call("swarm_status"))["next_action"]["tool"] == "claim_next_task"
            assert value(await call("wait_for_activity", timeout_seconds=1))["timeout"] is True
            assert "error" in value(await call("dispatch", title="x", spawn=False))
            assert not (await call("remove_instance", instance_id=peer["id"], force=True)).is_error
            assert "eregistered" in (await call("deregister")).content[0].text
            assert "Not registered" in (await call("whoami")).content[0].text

    asyncio.run(work())
    assert called == set(all_tools())


@pytest.mark.parametrize("mode", MODES)
def test_resources_and_prompts(ground: Ground, mode: str):
    async def work() -> None:
        async with client(ground, mode) as server:
            resources = [str(item.uri) for item in (await server.list_resources()).resources]
            assert resources == ["swarm://inbox", "swarm://tasks", "swarm://instances"]
            (template,) = (await server.list_resource_templates()).resource_templates
            for uri in [*resources, template.uri_template.replace("{?file}", "?file=f")]:
                (content,) = (await server.read_resource(uri)).contents
                assert content.mime_type == "application/json" and json.loads(content.text) is not None
            for prompt in (await server.list_prompts()).prompts:
                assert (await server.get_prompt(prompt.name)).messages
            with pytest.raises(Exception, match="swarm://inbox"):
                await server.read_resource("swarm://else")

    asyncio.run(work())


def test_a_listener_of_the_new_era_hears_of_changes(ground: Ground):
    """Since 2026-07-28 a client listens to several resources with one request. The answer is a stream."""
    peer = ground.session("peer", "peer")

    async def work() -> None:
        async with client(ground, "2026-07-28") as server:
            await server.call_tool("register", {"directory": ground.scope})
            async with server.listen(resource_subscriptions=["swarm://lock?file=f", "swarm://inbox"]) as events:
                await asyncio.to_thread(ground.lock, peer, "f")
                event = await asyncio.wait_for(anext(aiter(events)), 60)
                assert event.uri == "swarm://lock?file=f"

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")
def test_a_subscriber_of_the_old_era_hears_of_changes(ground: Ground):
    peer = ground.session("peer", "peer")
    uri = "swarm://lock?file=f"

    async def work() -> None:
        changed = asyncio.Event()

        async def hear(message: object) -> None:
            if getattr(getattr(message, "params", None), "uri", None) == uri:
                changed.set()

        async with client(ground, "legacy", message_handler=hear) as server:
            await server.call_tool("register", {"directory": ground.scope})
            await server.subscribe_resource(uri)
            await asyncio.to_thread(ground.lock, peer, "f")
            await asyncio.wait_for(changed.wait(), 30)
            await server.unsubscribe_resource(uri)

    asyncio.run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_wait_ends_in_the_server_too(ground: Ground, mode: str):
    async def work() -> None:
        async with client(ground, mode) as server:
            await server.call_tool("register", {"directory": ground.scope})
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(server.call_tool("wait_for_activity", {"timeout_seconds": 0}), 0.5)
            # Mail that arrives now belongs to the next call, not to the cancelled wait.
            me = (await server.call_tool("whoami", {})).structured_content
            peer = await asyncio.to_thread(ground.session, "peer", "peer")
            with ground.store() as store:
                store.messages.send(peer, me["id"], "for whoever asks")
            await asyncio.sleep(0.3)
            (mail,) = (await server.call_tool("poll_messages", {})).structured_content["items"]
            assert mail["content"] == "for whoever asks"

    asyncio.run(work())


def test_nothing_is_left_behind_in_the_folder_it_runs_in(ground: Ground):
    async def work() -> None:
        async with client(ground, "auto") as server:
            await server.call_tool("register", {"directory": ground.scope})

    before = sorted(Path(ground.repo).rglob("*"))
    asyncio.run(work())
    assert sorted(Path(ground.repo).rglob("*")) == before
