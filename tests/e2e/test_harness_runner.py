"""Real clients under the runner: a supervisor that is killed leaves nothing, and a secret gets out nowhere."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.requirement import requirement

from swarm_hook_core.process import command_line
from swarm_mcp.play.models import play

from .client import Client
from .clients import ClaudeCode, Codex
from .ground import Ground, wait_for

# Starts the run in its first argument, prints each event as a line of JSON, and the result as the last one.
SUPERVISOR = """
import json, sys
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.membership import Membership
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run
told = json.loads(sys.argv[1])
adapter = registry.get(told["harness"])
spec = {name: told["query"]["cwd"] for name in ("scope", "cwd")}
place = Membership({**spec, "harness": told["harness"]}, label="role:worker")
run = Run(adapter, Query(scope=spec["scope"], **told["query"]), membership=place)
run.on_event(lambda event: print(json.dumps(event.to_dict()), flush=True)).on_meta(lambda meta: print(json.dumps(meta)))
print(json.dumps({"instance": place.instance_id, "record": run.record}), flush=True)
print(json.dumps(run.start().wait().to_dict()))
"""


@pytest.fixture(params=[ClaudeCode, Codex], ids=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> Iterator[Client]:
    made = request.param(Ground("harness-runner"))
    made.prepare()
    yield made
    made.ground.close()


def supervised(agent: Client, script: str, own: dict[str, str] | None = None, **query) -> subprocess.Popen:
    """Start a separate supervisor with a child that plays `script`."""
    harness = "codex" if isinstance(agent, Codex) else "claude"
    asked = {"prompt": play(script), "cwd": str(agent.ground.checkout), "mode": "yolo", **query}
    if isinstance(agent, Codex):
        asked["model"] = agent.plain_model
    # As root the client skips its checks in a sandbox only, and this is one.
    env = {**agent.ground.env, "IS_SANDBOX": "1", **(own or {})}
    words = [sys.executable, "-c", SUPERVISOR, json.dumps({"harness": harness, "query": asked})]
    return subprocess.Popen(words, env=env, cwd=agent.ground.checkout, stdout=subprocess.PIPE, start_new_session=True)


def test_a_supervisor_that_is_killed_leaves_no_child_and_no_lock(agent: Client) -> None:
    ground = agent.ground
    nap = f"sleep {200_000 + os.getpid()}"  # a duration of this test alone
    agent.models.script("endless", agent.shell(f"setsid {nap} & {nap}"))
    with supervised(agent, "endless") as process:
        instance = json.loads(process.stdout.readline())["instance"]
        assert wait_for(lambda: sum(command_line(pid).strip() == nap for pid in ground.own_processes()) == 2, 60)
        ground.coordinator.lock(instance, "notes.md", "mine while I live")
        assert [row["instance_id"] for row in ground.coordinator.locks()] == [instance]
        process.send_signal(signal.SIGKILL)
    gone = wait_for(lambda: not ground.own_processes(), 15)
    assert gone, [command_line(pid) for pid in ground.own_processes()]
    assert ground.coordinator.locks() == [] and ground.coordinator.sessions() == []


@pytest.mark.thorough
@requirement("A-40", "C-67")
def test_a_secret_gets_out_nowhere(agent: Client) -> None:
    """The secret is in the prompt, in the environment, in a tool's output, and in the client's words."""
    ground = agent.ground
    of_parent, of_query, shape = "parent-4f9d2c77aa31e05b", "query-9a8b7c6d5e4f3021", "ghp_" + "x1Y2z3W4" * 5
    secrets = (of_parent, of_query, shape)
    words = "echo $DEPLOY_TOKEN $MY_API_KEY; printf 'gh%s\\n' " + shape[2:]
    agent.models.script("leaky", agent.shell(words), agent.shell(f"echo {of_query}"))
    query = {"env": {"MY_API_KEY": of_query}, "prompt": f"{play('leaky')} Use {' '.join(secrets)}"}
    with supervised(agent, "leaky", {"DEPLOY_TOKEN": of_parent}, **query) as process:
        lines = process.stdout.read().decode().splitlines()
    assert process.returncode == 0
    first, result = json.loads(lines[0]), json.loads(lines[-1])
    assert not result["is_error"], result
    said = "\n".join([*lines, Path(first["record"]).read_text()])
    assert not [secret for secret in secrets if secret in said]
    assert "[REDACTED:DEPLOY_TOKEN]" in said and "[REDACTED:MY_API_KEY]" in said and "[REDACTED:github_token]" in said
    assert said.count('"type": "result"') == 2, "one told, one recorded"
    assert wait_for(lambda: not ground.own_processes(), 60)
