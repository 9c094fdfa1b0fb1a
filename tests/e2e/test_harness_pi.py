"""pi with the plugin as a person installs it, and the harness `pi`: supervised runs, models scripted on loopback."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.query import READ_ONLY
from swarm_mcp.play.models import Step, play

from .ground import own_ground
from .marketplace import Marketplace
from .pi import MODEL, UNPRICED, Pi, alone
from .supervised_runs import (
    Supervised,
    as_own_environment,
    assert_abort_leaves_nothing,
    play_a_worker,
    porcelain,
)
from .test_merged_writes import play_a_merge
from .test_persons_work import play_a_person_s_work

HARNESS = registry.get("pi")
GREETING = "swarm: this session is registered as"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pi]:
    with own_ground("pi", clients=alone(tmp_path_factory.mktemp("clients"))) as ground:
        pi = Pi(ground)
        pi.prepare()
        yield pi


@pytest.fixture
def pi(shared: Pi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pi]:
    (shared.ground.home / ".pi" / "agent" / "settings.json").unlink(missing_ok=True)
    with as_own_environment(shared.ground, monkeypatch):
        yield shared


def start(pi: Pi, script: str, *steps: Any, **wanted: Any) -> Supervised:
    return Supervised(pi, script, *steps, **{"model": MODEL, **wanted})


def collide(pi: Pi, script: str) -> None:
    """A session of its own: a peer's file is denied to each tool, its own lock is not, and it goes on to the end."""
    ground = pi.ground
    ground.coordinator.lock(ground.coordinator.peer_lock("notes.md"), "sub/deep.md", "deep down")
    hidden = base64.b64encode(b"open('sub/deep.md', 'w').write('changed')").decode()
    pi.run(
        script, pi.create("@notes.md", "mine\n"), pi.replace("notes.md", "line one", "mine"),
        pi.shell("echo mine > notes.md"), *pi.swarm_tools(("lock_file", {"file": "other.md"})),
        pi.replace("other.md", "other", "changed"), pi.shell(f"echo {hidden} | base64 -d | python3"),
    )  # fmt: skip
    results = pi.results(script)
    for tool, result in zip(("write", "edit", "bash"), results, strict=False):
        assert result.startswith(f"swarm lock blocked {tool}"), result
        assert "careful surgery" in result or "denied 3 times" in result, result
    assert (ground.checkout / "notes.md").read_text() == "line one\n"
    assert '"ok": true' in results[3] and (ground.checkout / "other.md").read_text() == "changed\n"
    # Unpredictable writes are announced before and reported after.
    assert "compared afterwards" in results[5] and f"swarm-mcp restore {ground.checkout}/sub/deep.md" in results[5]
    assert ground.coordinator.sessions() == [], "the session is still registered"


def test_installed_as_a_person_does_it(pi: Pi) -> None:
    """From `swarm-mcp install` and from a clone of the repository; the doctor's proof; nothing left behind."""
    ground, settings = pi.ground, pi.ground.home / ".pi" / "agent" / "settings.json"
    Marketplace(ground, "install").install("pi")
    checks = {check["name"]: check for check in ground.coordinator.json("doctor", allowed=(0, 1))["checks"]}
    assert checks["pi package"]["status"] == checks["pi enforcement"]["status"] == "ok"
    collide(pi, "installed")
    assert GREETING in pi.context("installed")
    assert "removed the package" in ground.coordinator.text("uninstall", "--client", "pi")
    assert json.loads(settings.read_text()) == {"packages": []}
    ground.renew()
    clone = Marketplace(ground, "clone")._cloned()
    assert ground.run(["pi", "install", f"{clone}/integrations/pi"]).returncode == 0
    collide(pi, "cloned")


@requirement("A-44")
def test_a_worker_reaches_the_swarm_and_is_held_back_by_a_lock(pi: Pi, tmp_path: Path) -> None:
    calls = [*pi.swarm_tools(("whoami", {})), {"name": "mcp__client_tools__weigh", "input": {"what": "anchor"}}]
    made, result = play_a_worker(pi, tmp_path, calls, pi.create("notes.md", "mine\n"), model=MODEL)
    assert "swarm lock blocked write" in pi.results("work")[2]
    assert {"context_usage", "lock_denied", "pi.text_delta"} <= set(made.kinds())
    assert result.cost.total_cost_usd == pytest.approx(5 * (50 * 10 + 5 * 20) / 1e6) and result.cost.num_turns == 5


def test_sessions_are_resumed_and_every_refusal_is_noticed(pi: Pi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session goes on with its own cost; one of another folder, or that is not there, is never taken for it.

    Where the look at pi's files says nothing, pi is asked: it exits with 0 and no event, and the prompt is no consent.
    """
    ground = pi.ground
    ground.coordinator.text("bundle", str(ground.root / "portable"))
    packages = {"packages": [str(ground.root / "portable")]}
    (ground.home / ".pi" / "agent" / "settings.json").write_text(json.dumps(packages))
    made = start(pi, "one")
    first = made.result()
    greetings = [data for data in made.told("custom") if GREETING in json.dumps(data)]
    assert len(greetings) == 1, "installed and named on the command line, it acts once"
    again = start(pi, "two", previous=first.session_params, system_prompt="ALL OF IT").result()
    assert again.session_id == first.session_id and not again.clear_session
    assert again.cost.total_cost_usd == pytest.approx(first.cost.total_cost_usd), "not this run's alone"
    assert len(pi.exchanges("two")[-1].body["messages"]) > len(pi.exchanges("one")[-1].body["messages"])
    assert "ALL OF IT" in pi.context("two")
    lost = "0b0e7a52-4f0f-4e3b-9a53-1f5b5d1c2a10"
    made = start(pi, "three", resume_session_id=lost)
    unknown = made.result()
    assert unknown.clear_session and unknown.session_id not in (lost, first.session_id) and not unknown.is_error
    assert [data["category"] for data in made.told("error")] == ["session_not_found"]
    monkeypatch.setattr(HARNESS, "can_resume", lambda session_id, cwd: None)
    wanted = {"resume_session_id": str(first.session_id), "prompt": f"yes\n{play('four')}"}
    away = start(pi, "four", Step(text="four"), cwd=ground.checkout / "sub", **wanted).result()
    assert (away.is_error, away.clear_session, away.attempts) == (False, True, 2), away
    assert away.session_id != first.session_id and "<<play one>>" not in pi.context("four")


@requirement("A-08")
def test_abort_leaves_nothing(pi: Pi) -> None:
    made = start(pi, "work", pi.shell("sleep 301 & exec sleep 300"))
    assert_abort_leaves_nothing(made, pi.ground)


@pytest.mark.thorough
@requirement("D-22")
def test_a_fork_that_only_reads_writes_nothing(pi: Pi) -> None:
    """A copy of a session with its past, in a mode that leaves no tool to write; a model without a price."""
    first = start(pi, "one").result()
    steps = [pi.create("a.md", "x"), pi.shell("echo x > b.md"), {"name": "read", "input": {"path": "notes.md"}}]
    steps += pi.swarm_tools(("whoami", {}), ("dispatch", {"title": "write it for me"}))
    wanted = {"previous": first.session_params, "fork_session": True, "model": UNPRICED}
    made = start(pi, "read", *steps, mode=READ_ONLY, **wanted)
    fork = made.result()
    assert not fork.is_error and porcelain(pi.ground) == []
    refused = {end["tool_name"] for end in made.ends() if end["is_error"]}
    assert refused == {"write", "bash", "mcp__swarm__dispatch"}
    assert fork.session_id != first.session_id and "<<play one>>" in pi.context("read")
    assert fork.cost.total_cost_usd is None and fork.cost.input_tokens == 6 * 50


@pytest.mark.thorough
def test_a_model_that_is_not_there_is_said_in_a_line(pi: Pi) -> None:
    result = start(pi, "none", model="nowhere/none").result()
    assert (result.is_error, result.exit_code) == (True, 1) and "nowhere/none" in str(result.error_message)


def test_what_is_broken_on_our_side_costs_nothing(pi: Pi) -> None:
    """No coordinator, no Python, a broken store: pi works as if swarm were not there."""
    ground = pi.ground
    bundle = ground.root / "portable"
    ground.coordinator.text("bundle", str(bundle))
    bare = ground.root / "bare"
    bare.mkdir()
    for name in ("node", "sh", "env", "bash", "git", "cat"):
        found = next(Path(folder) / name for folder in ground.path if (Path(folder) / name).exists())
        (bare / name).symlink_to(found)
    (bare / "pi").symlink_to(next(Path(folder) / "pi" for folder in ground.path if (Path(folder) / "pi").exists()))
    extension = ("-e", str(bundle / "integrations/pi/index.ts"))
    steps = [pi.create("bare.md", "x"), pi.shell("echo x > more.md")]
    done = pi.run("bare", *steps, env={"PATH": str(bare)}, extra=extension)
    assert done.err == "" and porcelain(ground) == ["?? bare.md", "?? more.md"]
    ground.renew()
    ground.store.write_bytes(b"this was a database once\n" * 500)
    done = pi.run("broken", pi.create("broken.md", "x"), pi.shell("echo x > more.md"), extra=extension)
    assert done.err == "" and porcelain(ground) == ["?? broken.md", "?? more.md"]
    assert "could not be registered" in pi.context("broken")


def test_a_stale_text_is_merged(pi: Pi) -> None:
    """pi has no permission rules that could be weakened."""
    Marketplace(pi.ground, "install").install("pi")
    play_a_merge(pi)


@pytest.mark.promise("a person's uncommitted work is not lost at keep, also beside one session")
def test_a_person_s_work_stays(pi: Pi) -> None:
    pi.ground.renew()
    Marketplace(pi.ground, "install").install("pi")
    play_a_person_s_work(pi)
