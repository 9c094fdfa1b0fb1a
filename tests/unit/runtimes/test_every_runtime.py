"""What holds of each runtime's folder and module, whichever client it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement
from support.sessions import ROOT, ready_store

from swarm_hook_core.hooks import tool_call
from swarm_hook_core.targets import shell_text
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
@requirement("P-02", "P-03")
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


def told_by_the_shell(folder: Path, name: str, *words: str, payload: str = "{}") -> str:
    """What `hook.sh` in `folder` tells a client where no hook can run, and a person wants calls denied then."""
    ready_store()
    done = subprocess.run(
        ["/bin/sh", str(folder / "hook.sh"), name, *words], input=payload, capture_output=True, text=True, check=True,
        env={**os.environ, "SWARM_FAIL": "closed"},
    )  # fmt: skip
    return done.stdout


def texts(tree: Any) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(tree, dict):
        return [text for one in tree.values() for text in texts(one)]
    return [tree] if isinstance(tree, str) else []


@pytest.mark.parametrize("name", HOOKED)
def test_where_no_hook_can_run_a_denial_is_one_that_the_client_takes(name: str):
    answer = json.loads(told_by_the_shell(ROOT / "integrations", name, "pre_tool_use", "broken"))
    (reason,) = [text for text in texts(answer) if "could not be checked" in text]
    denial = hook_config(name).dialect.denial("PreToolUse", reason)
    assert {**denial, **answer} == denial  # a denial may say its reason twice, printf fills it in once


@pytest.mark.parametrize("name", HOOKED)
def test_where_no_hook_can_run_the_model_is_told_once(name: str):
    answer = json.loads(told_by_the_shell(ROOT / "integrations", name, "session_start", "/no/python"))
    told = [text for text in texts(answer) if "NOT enforced" in text]
    assert [text.count("NOT enforced") for text in told] == [1] * len(set(told))
    assert sum("Tell the user" in text for text in told) == 1


@pytest.mark.parametrize(
    ("payload", "is_denied"),
    [
        ('{"tool": {"name": "look"}}', False), ('{"tool": {"name": "mcp__fs__read"}}', False),
        ('{"tool": {"name": "put_file"}}', True), ('{"tool": {"name": ""}}', True), ("{}", True),
    ],
)  # fmt: skip
def test_where_no_hook_can_run_the_readers_that_a_client_names_go_ahead(payload: str, is_denied: bool, tmp_path: Path):
    for script in ("hook.sh", "closed.sh", "state.sh"):
        shutil.copy(ROOT / "integrations" / script, tmp_path)
    (tmp_path / "editor").mkdir()
    (tmp_path / "editor" / "runtime.py").write_text('    env_prefix="ED",\n')
    (tmp_path / "editor" / "answers.sh").write_text("tool_key=name readers='look find'\n")
    assert bool(told_by_the_shell(tmp_path, "editor", "pre_tool_use", "broken", payload=payload)) == is_denied


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_command_that_doctor_asks_about_is_read_as_one(name: str):
    payload = runtime(name).shell_payload("me", "/x", "echo x > f")
    call = tool_call(hook_config(name).dialect.read(payload))
    assert (call.tool, call.client_tool) == ("Bash", runtime(name).shell_tool)
    assert "echo x > f" in shell_text(call.tool, call.input)
