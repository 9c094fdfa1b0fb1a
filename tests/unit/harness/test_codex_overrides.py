"""A reader of TOML reads back our TOML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement
from support.toml_reader import reader

from swarm_mcp.agents.harness.codex import overrides
from swarm_mcp.errors import Refused

WRITABLE = st.recursive(
    st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(), WRITABLE)
@requirement("D-15")
def test_what_is_written_as_toml_is_read_back(name: str, value: object) -> None:
    toml = reader()
    line = f"{overrides._key(name)} = {overrides.toml_value(value)}"
    assert "\n" not in line and "\0" not in line
    assert toml.loads(line) == {name: value}


HALVES = st.characters(min_codepoint=0xD700, max_codepoint=0xE100, categories=("Cs", "Lo", "Co"))


@given(st.text(alphabet=HALVES, min_size=1))
def test_halves_of_characters_become_something_that_can_be_written(value: str) -> None:
    read = reader().loads(f"x = {overrides.toml_value(value)}")["x"]
    assert len(read) == len(value) and read.encode()


@pytest.mark.parametrize("value", [None, object(), {"a": None}, 1 << 63, b"x"])
@requirement("D-15")
def test_what_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        overrides.toml_value(value)


@pytest.mark.parametrize("path", ["", "a.", "a b", 'a."b.c"', "é"])
def test_a_setting_has_a_plain_name(path: str) -> None:
    with pytest.raises(Refused):
        overrides.override(path, 1)
