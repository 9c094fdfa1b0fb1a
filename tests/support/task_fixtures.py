"""The actors of the task tests: sessions that hand work to each other, and tools called as a session."""

from contextlib import contextmanager
from typing import Any

import pytest

from support.fixtures import Ground
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.server.tool import Answer, Call, answer_to
from swarm_mcp.server.tools.tasks import TOOLS
from swarm_mcp.store import Store

_TOOLS = {tool.name: tool for tool in TOOLS}


def request(store: Store, requester: dict, title: str = "T", **spec: Any) -> dict:
    """Create a task; it."""
    return store.tasks.request(requester, {"type": "implement", "title": title, **spec})["task"]


def begun(store: Store, requester: dict, worker: dict, title: str = "T", **spec: Any) -> dict:
    """A task in progress at `worker`."""
    return store.tasks.claim(worker, request(store, requester, title, **spec)["id"], ignore_unread=True)["task"]


def status(store: Store, task: dict) -> str:
    row = store.database.row("SELECT status FROM tasks WHERE id = ?", (task["id"],))
    assert row
    return str(row["status"])


def events(store: Store, task: dict, kind: str = "task.") -> list[dict]:
    """Events about one task, oldest first, payload parsed."""
    import json

    rows = store.database.rows(
        "SELECT type, actor, payload FROM events WHERE subject = ? AND type LIKE ? ORDER BY id",
        (task["id"], f"{kind}%"),
    )
    return [{**row, "payload": json.loads(row["payload"])} for row in rows]


def mail(store: Store, recipient: dict) -> list[str]:
    """Return a session's inbox, read messages included."""
    rows = store.database.rows("SELECT content FROM messages WHERE recipient = ? ORDER BY id", (recipient["id"],))
    return [row["content"] for row in rows]


def read_mail(store: Store, recipient: dict) -> None:
    store.messages.acknowledge([message["id"] for message in store.messages.take(recipient, 200)])


@contextmanager
def refused(words: str):
    """The block is refused with a sentence that has `words`; gives the `answer` when it is over."""
    answer: dict = {}
    with pytest.raises(Refused, match=words) as caught:
        yield answer
    answer.update(caught.value.answer)


class As:
    """One session calling tools: ``As(ground, row).claim_task(task_id=...)``."""

    def __init__(self, ground: Ground, row: dict | None):
        self.ground = ground
        self.row = row

    def instance(self, _store: Store, _meta: dict) -> dict | None:
        """Answer the server's question about the calling session."""
        return self.row

    def __getattr__(self, name: str):
        tool = _TOOLS[name]

        def answer(**arguments: Any) -> Answer:
            defaults = {key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}
            with self.ground.store() as store:
                try:
                    given = tool.call(Call(store, self, {}), {**defaults, **arguments})
                except SwarmError as error:
                    return answer_to(error)
            assert isinstance(given, Answer)
            return given

        return answer
