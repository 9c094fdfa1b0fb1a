"""The recorded schemas of tools, resources and prompts: every name, type, enumeration, default and bound."""

import pytest
from support import captures, deviations
from support.captures import Names, Verdict, differences
from support.fixtures import SWARM, Ground
from support.requirement import requirement
from support.serving import Server

from swarm_mcp.agents.dispatch import request
from swarm_mcp.agents.tools import dispatch

pytestmark = pytest.mark.slow

RECORD = captures.load("tools")


def without_prose(schema, named: bool = False):
    """Return a schema without its descriptions. `named`: this is an object's properties, with names of any kind."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if named or key not in ("description", "$schema", "title")}
        return {key: without_prose(value, key == "properties" and not named) for key, value in kept.items()}
    return [without_prose(value) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.slow
@requirement("P-26")
def test_every_tool_takes_what_the_record_says(ground: Ground):
    verdict, names = Verdict(deviations.TOOLS), Names("")
    with Server(ground, [*SWARM, "serve", "--all-tools"]) as server:
        listed = {tool["name"]: tool for tool in server.ask("tools/list")["tools"]}
        welcome = server.welcome
        resources = server.ask("resources/list")["resources"]
        templates = server.ask("resources/templates/list")["resourceTemplates"]
        prompts = server.ask("prompts/list")["prompts"]
    assert set(listed) == {tool["name"] for tool in RECORD["tools"]} | set(deviations.MORE_TOOLS)
    for tool in RECORD["tools"]:
        ours = listed[tool["name"]]
        assert ours["description"]
        found = differences(tool["schema"], without_prose(ours["inputSchema"]), names)
        verdict.judge(tool["name"], [difference for difference in found if not difference.startswith("order ")])
        read_only = ours["annotations"]["readOnlyHint"]
        verdict.judge(tool["name"], differences(tool["readOnlyHint"], read_only, names, "readOnlyHint"))
    assert (welcome["serverInfo"]["name"], welcome["protocolVersion"]) == (RECORD["server"], RECORD["protocolVersion"])
    found = differences(RECORD["capabilities"], welcome["capabilities"], names)
    verdict.judge("capabilities", [difference for difference in found if not difference.startswith("order ")])
    for kind, wanted, found in (
        ("resources", RECORD["resources"], resources),
        ("templates", RECORD["templates"], templates),
        ("prompts", [{"name": name} for name in RECORD["prompts"]], prompts),
    ):
        shown = [{key: item[key] for key in wanted[0]} for item in found]
        verdict.judge(kind, differences(wanted, shown, names))
    verdict.deliver()


def test_the_tool_has_the_defaults_of_a_dispatch() -> None:
    assert (dispatch.DEFAULT_TYPE, dispatch.DEFAULT_ROLE) == (request.DEFAULT_TYPE, request.DEFAULT_ROLE)
