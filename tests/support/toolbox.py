"""Tools called without a server: a session, and the server's treatment of its calls."""

import json

from support.fixtures import Ground
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.tool import Answer, Call, answer_to
from swarm_mcp.server.tools import all_tools

TOOLS = all_tools()


class Hands:
    """One connection's calls. `row` is their instance, None for an unregistered connection."""

    def __init__(self, ground: Ground, row: dict | None = None, client: tuple[int, str] = (0, "")):
        self.ground = ground
        self.row = row
        self.session = CallingSession()
        self.session.client = client
        if row is not None:
            self.session.instance = lambda store, _meta: store.instances.live(row["id"])

    def answer(self, name: str, sent: bool = True, **arguments) -> Answer:
        """The answer of tool `name`; with `sent`, the client got it. Arguments outside the schema fail."""
        tool = TOOLS[name]
        assert set(arguments) <= set(tool.properties) and set(tool.required) <= set(arguments), (name, arguments)
        defaults = {key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}
        with self.ground.store() as store:
            try:
                answer = tool.call(Call(store, self.session, {}), {**defaults, **arguments})
            except SwarmError as error:
                answer = answer_to(error)
            if answer.on_sent and sent:
                answer.on_sent(store)
        return answer

    def value(self, name: str, **arguments):
        """The JSON of an answer that is no error."""
        answer = self.answer(name, **arguments)
        assert answer.value is not None and not answer.is_error, answer
        return json.loads(json.dumps(answer.value))

    def text(self, name: str, **arguments) -> str:
        """The sentence of an answer that is no error."""
        answer = self.answer(name, **arguments)
        assert answer.value is None and not answer.is_error, answer
        return answer.text
