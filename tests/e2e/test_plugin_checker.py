"""Plugins that live in their client's process ask the checker by themselves: no process is started for a hook."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground, own_ground, wait_for
from .marketplace import Marketplace
from .more import prepared
from .pi import Pi, alone
from .test_checker import answers, checkers

NAMES = ("pi", "opencode", "kilo", "omp", "cline")
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]
CHANGE = ("notes.md", "line one", "line two")


@pytest.fixture(scope="module", params=CASES)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with ExitStack() as stack:
        client: Client
        if request.param == "pi":
            ground = stack.enter_context(own_ground("pi", clients=alone(tmp_path_factory.mktemp("clients"))))
            client = Pi(ground)
            client.prepare()
        else:
            client = stack.enter_context(prepared(request.param))
        Marketplace(client.ground, "install").install(request.param)
        yield client


@pytest.fixture
def plugin(installed: Client) -> Iterator[Client]:
    installed.ground.renew()
    yield installed
    installed.ground.end_processes()


@contextmanager
def noted_processes(ground: Ground) -> Iterator[Path]:
    """Have each hook that is started as a process leave a line in the file that this returns."""
    log = ground.root / "processes"
    log.write_text("")
    files = [path for name in ("hooks.json", "hook.sh") for path in ground.home.rglob(name)]
    assert len({path.name for path in files}) == 2, "no plugin is installed"
    texts = [path.read_text() for path in files]
    try:
        for path, text in zip(files, texts):
            if path.name == "hook.sh":
                path.write_text(f'echo "$*" >>"{log}"\n{text}')
                continue
            tree = json.loads(text)
            for event, groups in tree["hooks"].items():
                for hook in (hook for group in groups for hook in group["hooks"]):
                    hook["command"] = f"echo {event} >>'{log}'; {hook['command']}"
            path.write_text(json.dumps(tree))
        yield log
    finally:
        for path, text in zip(files, texts):
            path.write_text(text)


def server_of(ground: Ground) -> int:
    """Return the pid of the MCP server that keeps the checker of this ground's client."""
    (lock,) = [path for path in ground.root.rglob("checkers/*.lock") if ground.checkout not in path.parents]
    return int(lock.read_text())


@pytest.mark.promise("a plugin in its client's process is answered by the checker, and denies a write to a locked file")
def test_checks_start_no_process(plugin: Client) -> None:
    ground = plugin.ground
    with noted_processes(ground) as log:
        writes = [plugin.create(f"{name}.md", f"{name}\n") for name in ("first", "second")]
        steps = [*writes, plugin.shell("cat second.md"), plugin.replace(*CHANGE)]
        with plugin.held("work", *steps, at=1) as live:
            ground.coordinator.peer_lock("notes.md")
            assert wait_for(lambda: bool(checkers(ground)), 60), "no checker was started"
            before, started = answers(ground), log.read_text()
            live.go_on()
            assert_denied(plugin, "work", "notes.md")
        assert_text(plugin, "second.md", "second\n")
        assert_text(plugin, "notes.md", "line one\n")
        lines = log.read_text().removeprefix(started).splitlines()
    assert not [line for line in lines if "tool" in line.lower()], lines
    assert answers(ground) >= before + 3


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lock_denies_where_no_checker_answers(plugin: Client, ends: signal.Signals) -> None:
    ground = plugin.ground
    with noted_processes(ground) as log:
        with plugin.held("work", plugin.create("first.md", "first\n"), plugin.replace(*CHANGE), at=1) as live:
            ground.coordinator.peer_lock("notes.md")
            assert wait_for(lambda: bool(checkers(ground)), 60), "no checker was started"
            stopped = [*checkers(ground), *([server_of(ground)] if ends == signal.SIGKILL else [])]
            for pid in stopped:
                os.kill(pid, ends)
            before = log.read_text()
            live.go_on()
            assert_denied(plugin, "work", "notes.md")
            for pid in stopped if ends == signal.SIGSTOP else ():
                os.kill(pid, signal.SIGCONT)
        assert_text(plugin, "notes.md", "line one\n")
        assert "pre_tool_use" in log.read_text().removeprefix(before), "a process has checked the write"
