"""Answers by schema as objects: dataclasses of every shape, pydantic models, and answers that do not fit."""

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from support.harness_fixtures import Scripted

from swarm_mcp.agents.harness.adapter import Capabilities
from swarm_mcp.agents.harness.query_types import normalized
from swarm_mcp.agents.harness.structured import schema_for, structured
from swarm_mcp.harness import HarnessError, Query, Refused, Run

pydantic = pytest.importorskip("pydantic")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


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
