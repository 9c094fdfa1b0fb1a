"""What holds of each runtime's folder and module, whichever client it is."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from support.sessions import ROOT

from swarm_mcp.runtimes import NAMES, hook_config, runtime
from swarm_mcp.runtimes.coverage import YES

HOOKED = [name for name in NAMES if (ROOT / "integrations" / name / "hooks.json").exists()]


def wired(name: str, hook: str) -> list[dict[str, Any]]:
    """The groups of a runtime's hooks.json whose command starts `hook`."""
    tree = json.loads((ROOT / "integrations" / name / "hooks.json").read_text())
    groups = [group for groups in tree["hooks"].values() for group in groups]
    return [group for group in groups if f" {name} {hook}" in group["hooks"][0]["command"]]


@pytest.mark.parametrize("name", HOOKED)
@pytest.mark.parametrize("tool", ["save_everything", "RewriteSymbol", "apply_patch_set", "mcp__files__write_file"])
def test_an_unknown_tool_that_sounds_like_writing_is_checked(name: str, tool: str):
    groups = wired(name, "pre_tool_use")
    assert groups and any(re.search(group.get("matcher", ""), tool) for group in groups)


@pytest.mark.parametrize("name", HOOKED)
def test_its_own_tools_for_writing_and_for_commands_are_checked(name: str):
    config, groups = hook_config(name), wired(name, "pre_tool_use")
    tools = {*config.write_tools, runtime(name).shell_tool, *config.dialect.tools}
    assert [tool for tool in tools if not any(re.search(one.get("matcher", ""), tool) for one in groups)] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_it_covers_is_said_in_one_way(name: str):
    covered = runtime(name).coverage
    assert [said for said in covered.said() if said != YES and not re.match(r"(no|partly): \w", said)] == []


@pytest.mark.parametrize("name", HOOKED)
def test_the_shell_finds_its_word_in_variables(name: str):
    """Where no hook can run, a shell script says whether a person wants a denial (SWARM_CC_FAIL=closed)."""
    prefix = hook_config(name).env_prefix
    script = '. "$1/closed.sh"; fails_closed "$1/$2" && echo closed'
    argv = ["/bin/sh", "-c", script, "sh", str(ROOT / "integrations"), name]
    told = {f"SWARM_{prefix}_FAIL": "closed", "SWARM_MCP_BIN": "/any"}
    assert subprocess.run(argv, env=told, capture_output=True, text=True).stdout == "closed\n"
