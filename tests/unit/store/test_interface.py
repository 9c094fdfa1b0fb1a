"""The embedded store is what its interface says."""

from __future__ import annotations

import importlib
import inspect

import pytest

from swarm_mcp.store import interface
from swarm_mcp.store.connection import GROUPS

CLASSES = {kind: f"swarm_mcp.store.{module}" for module, kind in GROUPS.values()}
METHODS = [
    (group, name)
    for group, protocol in inspect.getmembers(interface, inspect.isclass)
    if protocol is not interface.Protocol
    for name, _ in inspect.getmembers(protocol, inspect.isfunction)
    if not name.startswith("_")
]


def test_every_group_that_is_asked_for_has_an_interface() -> None:
    described = {group for group, _ in METHODS}
    assert set(CLASSES) - described == {"Upkeep"}, "which only the store itself and `cleanup` know"
    assert described <= set(CLASSES)


@pytest.mark.parametrize(("group", "name"), METHODS)
def test_a_method_takes_what_its_interface_says(group: str, name: str) -> None:
    promised = list(inspect.signature(getattr(getattr(interface, group), name)).parameters)
    kind = getattr(importlib.import_module(CLASSES[group]), group)
    kept = list(inspect.signature(getattr(kind, name)).parameters.values())
    assert [parameter.name for parameter in kept[: len(promised)]] == promised
    assert all(parameter.default is not parameter.empty for parameter in kept[len(promised) :])
