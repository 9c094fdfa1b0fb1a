"""What the coordinator's tests share."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import signal
from pathlib import Path

import pytest
from support.fixtures import Ground

# Long tests of which a shorter one is run each time: with SWARM_THOROUGH=1 only; pytest says how many it deselected.
LONG = (
    "test_crashes.py::test_killed_before_each_statement[2]",
    "test_crashes.py::test_killed_before_each_statement[3]",
    "test_store_migrations.py::test_a_migration_that_is_killed_leaves_the_old_file_or_the_new_one[version-1]",
    "test_load.py::test_under_load_nothing_fails_nothing_is_lost_and_nothing_is_had_twice[rollback journal]",
    "test_many_servers.py::test_twenty_servers_commands_and_hooks",
    "test_bundle.py::test_there_is_no_moment_without_a_script",
    "test_deep_payloads.py::test_a_huge_input_is_read_in_time[100 MB]",
    "test_sibling_servers.py::test_killed_at_random_no_file_is_held_twice[long]",
    "test_locks.py::test_many_processes_for_some_seconds[32]",
)


# With SWARM_FAST=1 these are left out: they start programs by the dozen, or wait. Nearly each file here takes 1.5 s of
# the processor or more.
SLOW = (
    "activity", "agent_locks", "bundle", "changes", "command_line", "conformance_mcp", "crashes", "deep_payloads",
    "denials", "dispatch", "dispatch_tmux", "doctor", "effects_git", "effects_interpreters", "fail_open", "guard",
    "harness_child", "harness_cli", "harness_run", "harness_servers", "hold", "hook_launcher", "hook_tracker",
    "hooks", "hs_plugin", "layers", "leases", "load", "lock_machine", "lock_stress", "lock_waiting", "locks",
    "loop_plugins", "many_servers", "odd_rows", "others_words", "output", "patch", "pattern_locks", "priming",
    "sdk_client", "server", "server_hardship", "shell_corpus", "shell_hostile", "shell_programs", "sibling_servers",
    "spawning", "store_machine", "store_migrations", "store_schema", "store_turns", "task_claims", "terminals",
    "transport", "two_implementations", "unseen_trouble", "upkeep", "watch", "watched", "workspace",
)  # fmt: skip


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    slow = collection_path.stem.removeprefix("test_") in SLOW
    return True if slow and os.environ.get("SWARM_FAST") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("SWARM_THOROUGH"):
        return
    long = [item for item in items if item.nodeid.endswith(LONG)]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture
def usual_signals():
    """Programs that the test starts do as they please at SIGHUP and SIGINT, which may be ignored here.

    Under nohup SIGHUP comes ignored, in the background of a script SIGINT, and so it goes on to whatever is started.
    What is caught here, though to do nothing, does not go on.
    """
    ignored = [number for number in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


_compiled: dict[bytes, bytes] = {}


@pytest.fixture
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles get the bytecode of an earlier bundle, which takes no time."""
    compile_file = py_compile.compile

    def copied(file: str, **options) -> None:
        source, target = Path(file).read_bytes(), Path(importlib.util.cache_from_source(file))
        if source in _compiled:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(_compiled[source])
        else:
            compile_file(file, **options)
            _compiled[source] = target.read_bytes()

    monkeypatch.setattr(py_compile, "compile", copied)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Ground:
    """A checkout of one's own, and a store that is not there yet."""
    made = Ground(tmp_path.resolve())
    made.copies = not request.path.name.startswith(("test_store_", "test_crashes", "test_load"))
    monkeypatch.setenv("SWARM_DB_PATH", made.database)
    return made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, which is the present folder."""
    folder = (tmp_path / "project").resolve()
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def herdr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command ``herdr``, scripted."""
    from support.scripted_herdr import Herdr

    made = Herdr(tmp_path / "herdr")
    monkeypatch.setenv("SWARM_HERDR_BIN", str(made.program))
    return made


@pytest.fixture
def model(project: Path, monkeypatch: pytest.MonkeyPatch):
    """A scripted model that the loop asks, both as anthropic and as openai; no MCP servers."""
    from support.loop_fixtures import Model, settings

    served = Model()
    for name in [name for name in os.environ if name.startswith(("HARNESS_", "ANTHROPIC_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    for name, value in settings(served, project.parent).items():
        monkeypatch.setenv(name, value)
    yield served
    served.close()
