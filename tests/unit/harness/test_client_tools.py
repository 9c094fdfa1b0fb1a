"""Python functions served to a child, and answers by schema as objects."""

import asyncio
import enum
import http.client
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.harness_fixtures import Scripted
from support.requirement import requirement

from swarm_mcp.agents.harness.adapter import Capabilities
from swarm_mcp.agents.harness.query_types import normalized, schema_for, structured
from swarm_mcp.agents.harness.servers import ToolServer, complaint_about, outcome_of, schema_of, tool_of
from swarm_mcp.errors import Refused
from swarm_mcp.harness import HarnessError, Query, Run


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def paint(wall: str, colour: Literal["red", "blue"] = "red", coats: int = 1, notes: list[str] | None = None) -> dict:
    """Paint a wall.

    Args:
        wall: the wall's name
        coats (int): how often
    """
    return {"wall": wall, "colour": colour, "coats": coats, "notes": notes}


def broken() -> str:
    """Always fails."""
    raise LookupError("no such wall")


async def slow(text: str) -> str:
    """Says it later."""
    await asyncio.sleep(0)
    return text


def test_a_signature_becomes_a_schema() -> None:
    tool = tool_of(paint)
    assert tool.name == "paint" and tool.description.startswith("Paint a wall.")
    properties = tool.schema["properties"]
    assert tool.schema["required"] == ["wall"] and tool.schema["additionalProperties"] is False
    assert properties["wall"] == {"type": "string", "description": "the wall's name"}
    assert properties["colour"] == {"enum": ["red", "blue"], "default": "red"}
    assert properties["coats"] == {"type": "integer", "description": "how often", "default": 1}
    assert {"type": "array", "items": {"type": "string"}} in properties["notes"]["anyOf"]


@pytest.mark.parametrize(("kind", "schema"), [
    (float, {"type": "number"}), (bool, {"type": "boolean"}), (Any, {}), (bytes, {}), (object, {}),
    (dict, {"type": "object"}), (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (tuple, {"type": "array"}), (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Colour, {"enum": ["red", "blue"]}),
])  # fmt: skip
def test_annotations(kind, schema: dict) -> None:
    assert schema_of(kind) == schema


def test_what_cannot_be_a_tool_is_refused() -> None:
    def star(*words: str) -> str:
        """Many."""
        return ""

    for function in (lambda: 1, star, print):
        with pytest.raises(Refused):
            tool_of(function)
    with pytest.raises(Refused, match="two client tools"):
        ToolServer([paint, paint])


def text_of(outcome: dict) -> tuple[str, bool]:
    return outcome["content"][0]["text"], outcome["isError"]


@requirement("D-16")
def test_a_call_that_works_and_calls_that_do_not() -> None:
    text, failed = text_of(outcome_of(tool_of(paint), {"wall": "north", "coats": 2}))
    assert not failed and json.loads(text)["coats"] == 2
    assert text_of(outcome_of(tool_of(slow), {"text": "later"})) == ("later", False)
    assert text_of(outcome_of(tool_of(broken), {})) == ("LookupError: no such wall", True)
    for arguments, why in (
        ({}, "missing argument: wall"), ({"wall": 1}, "wall does not fit"),
        ({"wall": "n", "x": 1}, "unknown argument: x"),
        ({"wall": "n", "coats": True}, "coats does not fit"), ({"wall": "n", "colour": "mauve"}, "colour does not fit"),
        ([], "must be an object"),
    ):  # fmt: skip
        text, failed = text_of(outcome_of(tool_of(paint), arguments))
        assert failed and why in text


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
NAMES = st.sampled_from(["wall", "colour", "coats", "notes", "x"])


@settings(max_examples=60, deadline=None)
@given(VALUES | st.dictionaries(NAMES, VALUES | st.lists(VALUES, max_size=3)))
@pytest.mark.thorough
def test_no_arguments_break_it(arguments) -> None:
    tool = tool_of(paint)
    fits = isinstance(arguments, dict) and not complaint_about(arguments, tool.schema)
    assert outcome_of(tool, arguments)["isError"] is not fits


@pytest.fixture
def tools():
    with ToolServer([paint, broken]) as served:
        yield served


def ask(tools: ToolServer, body: object, method: str = "POST", path: str = "/mcp", **headers: str) -> tuple[int, Any]:
    port = int(tools.server.url.rsplit(":", 1)[1].partition("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if isinstance(body, (bytes, str)) else json.dumps(body)
    given = {"Content-Type": "application/json", **tools.server.headers, **headers}
    connection.request(method, path, data, {name: value for name, value in given.items() if value})
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    return answer.status, json.loads(raw) if raw else None


def request(method: str, number: int | None = 1, **params: object) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}


CLIENT = {"capabilities": {}, "clientInfo": {"name": "a client", "version": "1"}}


def test_a_session_as_the_clients_hold_it(tools: ToolServer) -> None:
    assert tools.server.url.startswith("http://127.0.0.1:")
    status, probed = ask(tools, request("server/discover", 7))  # Claude Code tries a newer protocol first
    assert status == 200 and probed["error"]["code"] == -32601 and probed["id"] == 7
    status, opened = ask(tools, request("initialize", 0, protocolVersion="2025-11-25", **CLIENT))
    assert status == 200 and opened["result"]["protocolVersion"] == "2025-11-25"
    assert opened["result"]["capabilities"] == {"tools": {}}
    assert (
        ask(tools, request("initialize", 0, protocolVersion="1999", **CLIENT))[1]["result"]["protocolVersion"]
        == "2025-06-18"
    )
    assert ask(tools, request("notifications/initialized", None)) == (202, None)
    assert ask(tools, "", "GET") == (405, None) and ask(tools, "", "DELETE") == (200, None)
    _, listed = ask(tools, request("tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["paint", "broken"]
    _, called = ask(tools, request("tools/call", name="paint", arguments={"wall": "north"}))
    assert called["result"]["isError"] is False and "north" in called["result"]["content"][0]["text"]
    _, failed = ask(tools, request("tools/call", name="broken"))
    assert failed["result"] == {"content": [{"type": "text", "text": "LookupError: no such wall"}], "isError": True}
    assert ask(tools, request("tools/call", name="none"))[1]["error"]["code"] == -32602
    assert ask(tools, request("ping"))[1]["result"] == {}
    _, both = ask(tools, [request("ping", 1), request("notifications/x", None), request("ping", 2)])
    assert [one["id"] for one in both] == [1, 2]


@pytest.mark.parametrize(("headers", "path", "status"), [
    ({"Authorization": ""}, "/mcp", 401), ({"Authorization": "Bearer wrong"}, "/mcp", 401),
    ({"Authorization": "Bearer \xe9"}, "/mcp", 401), ({"Host": "evil.example:80"}, "/mcp", 403),
    ({"Origin": "http://evil.example"}, "/mcp", 403), ({}, "/other", 404),
])  # fmt: skip
@requirement("D-16")
def test_who_is_not_the_child_gets_nothing(tools: ToolServer, headers: dict, path: str, status: int) -> None:
    for method in ("POST", "GET", "DELETE"):
        assert ask(tools, request("tools/list"), method, path, **headers) == (status, None)


@pytest.mark.parametrize("body", ["", "{", "null", "3", '"x"', "[1]", '{"id": 1}', '{"method": 3, "id": 1}', "[" * 99])
def test_what_is_no_request_is_answered_as_such(tools: ToolServer, body: str) -> None:
    status, answer = ask(tools, body)
    assert status in (200, 400)
    assert (answer[0] if isinstance(answer, list) else answer)["error"]["code"] in (-32700, -32600)


@requirement("D-23")
def test_each_server_has_a_token_of_its_own_and_is_gone_after_its_end() -> None:
    with ToolServer([paint]) as one, ToolServer([paint]) as other:
        assert one.server.headers != other.server.headers and one.server.url != other.server.url
        status, _ = ask(one, request("ping"), **other.server.headers)
        assert status == 401
        port = int(one.server.url.rsplit(":", 1)[1].partition("/")[0])
        kept, headers = http.client.HTTPConnection("127.0.0.1", port, timeout=60), one.server.headers
        kept.request("POST", "/mcp", json.dumps(request("ping")), headers)
        kept.getresponse().read()
        before = threading.active_count()
        one.stop()
        one.stop()
        with pytest.raises((http.client.HTTPException, OSError)):
            kept.request("POST", "/mcp", json.dumps(request("ping")), headers)
            kept.getresponse()
        kept.close()
        with pytest.raises(ConnectionError):
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
    assert threading.active_count() <= before


pydantic = pytest.importorskip("pydantic")


@dataclass
class Part:
    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class Thing:
    title: str
    count: int
    colour: Colour
    size: Literal["s", "l"]
    parts: list[Part]
    owner: str | None
    prices: dict[str, float]
    pair: tuple[int, ...] = ()
    tags: set[str] = field(default_factory=set)
    about: Any = None


GOOD = {"title": "lamp", "count": 2, "colour": "red", "size": "s", "parts": [{"name": "bulb", "weight": 3}], "owner": None,
        "prices": {"eur": 35}, "pair": [1, 2], "tags": ["a", "a"], "about": {"x": 1}}  # fmt: skip
LAMP = Thing("lamp", 2, Colour.RED, "s", [Part("bulb", 3.0)], None, {"eur": 35.0}, (1, 2), {"a"}, {"x": 1})


class Model(pydantic.BaseModel):
    name: str
    price: float = 0.0
    part: "Model | None" = None


def test_a_dataclass() -> None:
    assert structured(Thing, GOOD) == LAMP
    Draft202012Validator.check_schema(schema_for(Thing))
    Draft202012Validator(schema_for(Thing)).validate(GOOD)
    least = {name: GOOD[name] for name in ("title", "count", "colour", "size", "parts", "owner", "prices")}
    assert structured(Thing, least).tags == set()
    assert isinstance(structured(Thing, GOOD).prices["eur"], float)


WRONG = [
    ("title", 7, "Thing.title of the answer wants text, not int"),
    ("count", True, "Thing.count of the answer wants a whole number, not bool"),
    ("count", 1.5, "Thing.count of the answer wants a whole number, not float"),
    ("colour", "green", "Thing.colour of the answer wants one of red, blue"),
    ("size", "m", "Thing.size of the answer wants one of s, l"),
    ("parts", {}, "Thing.parts of the answer wants a list, not dict"),
    ("parts", [{"name": "a"}, {"name": 7}], r"Thing.parts\[1\].name of the answer wants text, not int"),
    ("parts", [{}], r"the answer lacks Thing.parts\[0\].name"),
    ("owner", 7, "Thing.owner of the answer wants text, not int"),
    ("prices", {"eur": "x"}, r"Thing.prices\['eur'\] of the answer wants a number, not str"),
]


@pytest.mark.parametrize(("name", "value", "told"), WRONG)
def test_an_answer_that_does_not_fit_is_refused_by_its_field(name: str, value: object, told: str) -> None:
    with pytest.raises(Refused, match=told):
        structured(Thing, {**GOOD, name: value})


@pytest.mark.parametrize("value", [None, 7, "x", []])
def test_no_object_is_no_dataclass(value: object) -> None:
    with pytest.raises(Refused, match="Thing of the answer wants an object"):
        structured(Thing, value)


def test_a_pydantic_model() -> None:
    assert structured(Model, {"name": "lamp", "price": 35}) == Model(name="lamp", price=35.0)
    with pytest.raises(Refused, match="the answer is no Model"):
        structured(Model, {"price": 35})
    schema = schema_for(Model)
    inner = schema["$defs"]["Model"] if "$defs" in schema else schema
    assert inner["additionalProperties"] is False and inner["required"] == ["name", "price", "part"]


def test_a_type_that_is_no_model_is_refused() -> None:
    for kind in (int, dict, "x", Thing(*[None] * 7)):  # type: ignore[arg-type]
        with pytest.raises(Refused, match="a dataclass or a pydantic model"):
            structured(kind, GOOD)  # type: ignore[arg-type]


class Schemed(Scripted):
    capabilities = Capabilities(output_schema=True)


def test_a_run_by_a_dataclass(tmp_path: Path) -> None:
    query = Query("x", tmp_path, output_schema=Part)
    assert normalized(query).output_schema == schema_for(Part)
    adapter = Schemed("tell('result', '', False, None)")
    adapter.parse = lambda line, state: [_structured(event) for event in Scripted.parse(adapter, line, state)]  # type: ignore[method-assign]
    assert Run(adapter, query).result().structured(Part) == Part("bulb", 2.0)
    with pytest.raises(HarnessError, match="schema"):
        Run(Schemed("tell('result', 'none')"), query).result()


def _structured(event: Any) -> Any:
    return event._replace(data={**event.data, "structured": {"name": "bulb", "weight": 2}})
