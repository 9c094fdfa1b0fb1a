"""The validator of tool arguments agrees with the ``jsonschema`` package, in its verdicts and its words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from swarm_mcp.mcp.protocol import first_mismatch, fits
from swarm_mcp.server.tools import all_tools

SCHEMAS = {tool.name: tool.schema for tool in all_tools().values()}
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "fix", "grid", "a" * 200])
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["kind", "rows", "cols", "type", "title", "x"]), inner, max_size=3), max_leaves=8)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(SCHEMAS)), data=st.data())
def test_a_tools_arguments_are_judged_as_jsonschema_does(name: str, data: st.DataObject) -> None:
    schema = SCHEMAS[name]
    names = st.sampled_from([*schema["properties"], "odd"])
    arguments = data.draw(st.dictionaries(names, VALUES, max_size=4))
    errors = sorted(Draft202012Validator(schema).iter_errors(arguments), key=lambda error: len(error.path))
    found = first_mismatch(arguments, schema)
    assert (found is None) is (not errors)
    if found is not None:
        outermost = [error for error in errors if len(error.path) == len(errors[0].path)]
        assert (list(found.path), found.keyword, found.message) in [
            (list(error.path), error.validator, error.message) for error in outermost
        ], json.dumps(arguments)


@pytest.mark.parametrize(("value", "schema", "verdict"), [
    (1, {"type": "integer"}, True), (1.0, {"type": "integer"}, True), (True, {"type": "integer"}, False),
    (True, {"enum": [1]}, False), (1, {"enum": [True]}, False), (None, {"type": ["string", "null"]}, True),
    ([], {"minItems": 1}, False), ({"a": 1}, {"additionalProperties": {"type": "string"}}, False),
    ({}, {"required": ["a"]}, False), ("ab", {"maxLength": 1}, False), (0, {"exclusiveMinimum": 0}, False),
])  # fmt: skip
def test_keywords(value: object, schema: dict, verdict: bool) -> None:
    assert fits(value, schema) is verdict is Draft202012Validator(schema).is_valid(value)
