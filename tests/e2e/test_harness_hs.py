"""The plugin of the bash harness at work: in the loop of this package, and in `hs` itself where it is on PATH.

Models are scripted on loopback, both kinds of API, streamed and whole: calls reach tools by different ways then.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.membership import Membership
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.play.models import Gate, ModelServer, Step, play
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.hs import plugin_files
from swarm_mcp.runtimes.users_file import put_folder
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

from .ground import processes_of, wait_for
from .supervised_runs import denials_shown

SWARM = os.environ.get("SWARM_E2E_BIN") or os.path.join(os.path.dirname(sys.executable), "swarm-mcp")
SECONDS = 240.0  # for one run: the harness starts hundreds of processes
GREETING = "swarm: this session is registered as"
PATHS = {"openai": "/chat/completions", "anthropic": "/messages"}
# The states of the harness that the plugin is for: where the interface was first described, and its last release.
PINS = {"0.1": "92ca92b5de23390acabec2f24d321b2d3ea199cb", "0.2": "4c0357f6c6a18245cfc0242b4ac2e27968c33c08"}
HOW_TO_GET_HS = (
    "hs {0} is not on this machine: git clone https://github.com/wedow/harness hs/{0} && git -C hs/{0} checkout -q {1};"
    " SWARM_E2E_HS=$PWD/hs names the folder; it needs bash 4, jq and curl"
)
WAYS = [("openai", True), ("openai", False), ("anthropic", True), ("anthropic", False)]


class Place:
    """A checkout beside a home with the plugin in it, a store, and a model."""

    def __init__(self, folder: Path, models: ModelServer):
        self.repo, self.home, self.models = folder / "repo", folder / "home", models
        (self.repo / "sub").mkdir(parents=True)
        for name in ("held.md", "free.md"):
            (self.repo / name).write_text("before\n")
        subprocess.run(["git", "init", "-q", str(self.repo)], check=True)
        (self.home / "bin").mkdir(parents=True)
        knots = self.home / ".harness" / "skills" / "knots"
        knots.mkdir(parents=True)  # without any skill 0.1 fails by itself
        (knots / "SKILL.md").write_text("---\nname: knots\ndescription: Ties knots\n---\n")
        (self.home / "bin" / "swarm-mcp").symlink_to(SWARM)
        address = f"http://127.0.0.1:{models.port}/v1"
        self.env = {
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}", "HOME": str(self.home), "LANG": "C.UTF-8",
            "SWARM_DB_PATH": str(folder / "swarm.db"), "SWARM_STATE_DIR": str(folder / "state"),
            "OPENAI_API_KEY": "k", "OPENAI_API_URL": f"{address}/chat/completions", "HARNESS_MODEL": "m",
            "ANTHROPIC_API_KEY": "k", "ANTHROPIC_API_URL": f"{address}/messages", "HARNESS_RETRIES": "0",
        }  # fmt: skip
        self.store = str(folder / "swarm.db")

    def install(self) -> None:
        """Do `swarm-mcp install --client hs`. It needs hs."""
        put_folder(self.home / ".harness" / "plugins" / "swarm", plugin_files(bundle.contents(self.home / "bundle")))

    def whole_answers(self, provider: str) -> dict[str, str]:
        """Have the harness ask for answers in one piece, as it does for a provider without streaming."""
        path = self.home / ".harness" / "providers" / provider
        path.parent.mkdir(parents=True)
        path.write_text(f'#!/bin/sh\nexec "$HARNESS_ROOT/plugins/{provider}/providers/{provider}" "$@"\n')
        path.chmod(0o755)
        return {"HARNESS_STREAM": "0"}  # the loop's switch

    def peer_locks(self, name: str) -> None:
        with Store(self.store) as store:
            peer = store.instances.register(Registration(str(self.repo), label="the peer", lease_seconds=3600))
            store.locks.acquire(peer, str(self.repo / name), "mine")

    def instances(self) -> list[str]:
        with Store(self.store) as store:
            return [str(row["label"]) for row in store.instances.in_scope(str(self.repo))]

    def results(self, provider: str, script: str) -> list[str]:
        """Return the results of the model's calls in `script`."""
        dialect = ModelServer.dialects[PATHS[provider]]
        found = [e for e in self.models.exchanges(PATHS[provider]) if dialect.position(e.body).script == script]
        return dialect.results(found[-1].body)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    models = ModelServer()
    yield Place(tmp_path.resolve(), models)
    models.close()


@pytest.fixture(params=PINS)
def hs(request: pytest.FixtureRequest) -> str:
    """The real command, of each state that the plugin is for."""
    version = request.param
    found = Path(os.environ.get("SWARM_E2E_HS") or "/nonexistent") / version / "bin" / "hs"
    if not found.is_file() or not all(map(shutil.which, ("jq", "curl"))):
        pytest.skip(HOW_TO_GET_HS.format(version, PINS[version]))
    return str(found)


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def hold_to_it(place: Place, command: list[str], provider: str, streamed: bool, knows_our_skill: bool = True) -> None:
    """A peer's file stays as it is, the run goes on, and the model reads why."""
    place.install()
    place.peer_locks("held.md")
    env = {**place.env, "HARNESS_PROVIDER": provider, **({} if streamed else place.whole_answers(provider))}
    both = (call("write_file", path="held.md", content="taken"), call("write_file", path="sub/new.md", content="mine"))
    shell = call("bash", command="echo x | tee -a held.md; echo y")
    place.models.script("s", Step(calls=both), shell, Step(text="Over."))
    done = subprocess.run([*command, play("s")], cwd=place.repo, env=env, stdin=subprocess.DEVNULL, timeout=SECONDS,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Over.\n"), done
    requests = place.models.exchanges(PATHS[provider])
    assert len(requests) == 3 and {bool(request.body.get("stream")) for request in requests} == {streamed}
    assert (place.repo / "held.md").read_text() == "before\n"
    assert (place.repo / "sub" / "new.md").read_text() == "mine"
    refused, written, in_shell = place.results(provider, "s")
    for text in (refused, in_shell):
        assert text.startswith("swarm lock blocked") and str(place.repo / "held.md") in text and "the peer" in text
    assert "sub/new.md" in written
    told = json.dumps(requests[0].body)
    assert told.count(GREETING) == 1 and ("How to work beside other coding sessions" in told) is knows_our_skill
    assert place.instances() == ["the peer"], "the session has left"
    assert not (Path(place.env["SWARM_STATE_DIR"]) / "faults.jsonl").exists()


@pytest.mark.parametrize(("provider", "streamed"), WAYS)
@requirement("B-40")
def test_the_plugin_holds_in_the_loop(place: Place, provider: str, streamed: bool) -> None:
    hold_to_it(place, [SWARM, "loop", "agent"], provider, streamed)


# 0.1 streams at a terminal alone.
@pytest.mark.parametrize(
    ("hs", "provider", "streamed"), [(hs, *way) for hs in PINS for way in WAYS if hs != "0.1" or not way[1]],
    indirect=["hs"],
)  # fmt: skip
@requirement("B-40")
def test_the_plugin_holds_in_hs(place: Place, hs: str, provider: str, streamed: bool) -> None:
    hold_to_it(place, [hs, "agent"], provider, streamed, knows_our_skill=not hs.endswith("/0.1/bin/hs"))


@requirement("B-41")
def test_a_hook_alone_vetoes_calls_that_are_not_streamed(place: Place, hs: str) -> None:
    """Without the guards among the tools: whole answers alone pass the hook, hence the guards."""
    place.install()
    for guard in (place.home / ".harness" / "plugins" / "swarm" / "tools").iterdir():
        guard.unlink()
    place.peer_locks("held.md")
    steps = (call("write_file", path="held.md", content="taken"), call("write_file", path="sub/new.md", content="mine"))
    place.models.script("s", Step(calls=steps), Step(text="Over."))
    env = {**place.env, "HARNESS_PROVIDER": "openai", **place.whole_answers("openai")}
    done = subprocess.run([hs, "agent", play("s")], cwd=place.repo, env=env, stdin=subprocess.DEVNULL, timeout=SECONDS,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Over.\n"), done
    assert (place.repo / "held.md").read_text() == "before\n"
    assert (place.repo / "sub" / "new.md").read_text() == "mine"
    refused, _ = place.results("openai", "s")
    assert refused.startswith("swarm lock blocked") and "the peer" in refused


def test_a_run_of_hs_is_supervised(place: Place, hs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed: the worker is given the plugin, before a tool that the project itself brings along."""
    for name in list(os.environ):
        if not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    for name, value in {**place.env, "HARNESS_PROVIDER": "anthropic"}.items():
        monkeypatch.setenv(name, value)
    local = place.repo / ".harness" / "tools" / "write_file"
    local.parent.mkdir(parents=True)
    local.write_text("#!/bin/sh\ncase $1 in --schema) echo '{\"name\": \"write_file\", \"input_schema\": {}}' ;;\n"
                     "*) cat >/dev/null; echo taken > held.md ;; esac\n")  # fmt: skip
    local.chmod(0o755)
    place.peer_locks("held.md")
    adapter, told = registry.get("hs"), []
    spec = {"scope": str(place.repo), "harness": "hs", "cwd": str(place.repo)}
    place.models.script("work", call("write_file", path="held.md", content="x"), Step(text="Refused."))
    query = Query(play("work"), str(place.repo), scope=str(place.repo), append_system_prompt="Be brief, hs.",
                  command=(hs,))  # fmt: skip
    result = Run(adapter, query, membership=Membership(spec, "worker")).on_event(told.append).start().wait(SECONDS)
    assert result and not result.is_error and result.output == "Refused.", result
    assert (place.repo / "held.md").read_text() == "before\n"
    ends = [event.data for event in told if event.kind == "tool_end"]
    assert [end["is_error"] for end in ends] == [True] and "swarm lock blocked write_file" in ends[0]["result"]
    (shown,) = denials_shown(told, place.repo)
    assert shown.startswith('denied: held.md, held by "the peer" ') and shown.endswith(" (mine)")
    assert "Be brief, hs." in json.dumps(place.models.exchanges("/messages")[0].body)
    assert adapter.can_resume(str(result.session_id), str(place.repo)) and result.cost.input_tokens == 100
    assert not (place.home / ".harness" / "plugins").exists() and place.instances() == ["the peer"]

    gate = Gate()
    place.models.script("hang", Step(text="never", gate=gate))
    query = query._replace(prompt=play("hang"), grace_seconds=1)
    run = Run(adapter, query, membership=Membership(spec, "worker")).start()
    assert gate.wait_reached(SECONDS)
    (mine,) = [label for label in place.instances() if label != "the peer"]
    assert mine.startswith("worker ") and "origin:hs" in mine and run.child, "its hooks are of the run's instance"
    run.abort("enough")
    result = run.wait(SECONDS)
    assert result and result.error_category == "aborted"
    gate.open()
    assert wait_for(lambda: processes_of(place.home) in ([], [os.getpid()]), 60), "nothing of it is left, curl neither"
    assert place.instances() == ["the peer"]


def test_a_killed_hs_leaves_no_lock(place: Place, hs: str) -> None:
    place.install()
    gate = Gate()
    place.models.script("s", call("bash", command="swarm-mcp lock held.md --note mine"), Step(text="never", gate=gate))
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    env = {**place.env, "HARNESS_PROVIDER": "openai"}
    process = subprocess.Popen([hs, "agent", play("s")], cwd=place.repo, env=env, start_new_session=True, **silent)
    try:
        assert gate.wait_reached(SECONDS)
        with Store(place.store) as store:
            assert len(store.locks.on(str(place.repo / "held.md"))) == 1
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        gate.open()
    with Store(place.store) as store:
        assert len(store.instances.gone()) == 1 and place.instances() == []
