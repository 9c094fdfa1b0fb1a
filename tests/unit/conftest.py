"""Fixtures shared by the coordinator's tests."""

import importlib.util
import os
import py_compile
import re
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import checkouts, sessions
from support.altered import Limits
from support.checkers import Checker
from support.checkouts import ALONE, AMPLE
from support.files import folder_at
from support.fixtures import Ground
from support.patience import HURRY
from support.sessions import RUNTIMES, mistakes, ready_store
from support.traced import Player
from support.traced import checkout as checkout_in
from support.world import World

from swarm_hook_core import clock
from swarm_hook_core.shell import walk
from swarm_mcp.domain import Session
from swarm_mcp.store import Store

# Three marks say, beside a test or a file, that it is not run each time:
#
#     slow       a file that starts programs by the dozen, or waits; SWARM_FAST=1 leaves it out
#     thorough   a long test with a shorter one that is run each time, or a file about one client's installation or about
#                teams: ``runtimes/test_every_installation.py`` has all clients; SWARM_THOROUGH=1 runs them, as each night
#     sampled    a test with many variants that start programs: a third, chosen by name, is run each time, and all with
#                SWARM_THOROUGH=1, or if its file is named on the command line
#
# Nearly each slow file takes 1.5 s of processor time or more.
LEFT_OUT = {
    *(() if os.environ.get("SWARM_THOROUGH") else ("thorough",)),
    *(("slow",) if os.environ.get("SWARM_FAST") else ()),
}

SAMPLE = 3  # of so many variants of a sampled test one is run

# A checker answers for the hooks that tests start, as in a client with our server. SWARM_ALONE=1: they are processes of
# their own, nearly three times as long. @pytest.mark.alone("why") says that a test is about such processes.
HOOKS_ALONE = bool(os.environ.get("SWARM_ALONE"))
CHECKERS: list[Checker] = []  # of this process, once there is one

# These begin first: the last worker would be at them when the others are done.
LONGEST = ("test_store_machine.py", "test_lock_machine.py", "test_sweeps.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files out before they are imported: importing them takes as long as the quick ones' tests."""
    if not collection_path.name.startswith("test_") or _is_named(collection_path, config):
        return None
    marks = re.search(r"^pytestmark = (.*)", collection_path.read_text(), re.MULTILINE)
    return True if marks and any(f"mark.{name}" in marks[1] for name in LEFT_OUT) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    beside = set() if os.environ.get("SWARM_THOROUGH") else _outside_samples(items, config)
    left_out = [item for item in items if item.nodeid in beside or _is_left_out(item, config)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.path.name not in LONGEST)


def _outside_samples(items: list[pytest.Item], config: pytest.Config) -> set[str]:
    """Return the ids of the variants of `sampled` tests that are not run each time."""
    variants: dict[tuple[Path, str], list[str]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not _is_named(item.path, config):
            variants.setdefault((item.path, item.name.partition("[")[0]), []).append(item.nodeid)
    # by the sum of the name, so that no parameter is always the same in the sample, and a new variant moves no other
    ordered = [sorted(ids, key=lambda name: zlib.crc32(name.encode())) for ids in variants.values()]
    return {one for ids in ordered for one in ids[(len(ids) + SAMPLE - 1) // SAMPLE :]}


def _is_left_out(item: pytest.Item, config: pytest.Config) -> bool:
    own = {mark.name for mark in item.iter_markers()}
    if _is_named(item.path, config):
        own -= {mark.name for mark in item.parent.iter_markers()} if item.parent is not None else set()
    return not own.isdisjoint(LEFT_OUT)


def _is_named(path: Path, config: pytest.Config) -> bool:
    """Return True if the file is named on the command line: then its mark does not leave it out."""
    return any(config.invocation_params.dir / word.partition("::")[0] == path for word in config.args)


@pytest.fixture(autouse=True)
def answered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the checker of this process answer for the hooks of the test."""
    if not HOOKS_ALONE and not request.node.get_closest_marker("alone"):
        monkeypatch.setattr(sessions, "checker", the_checker)


def the_checker() -> Checker:
    """Return the checker of this process; the first hook starts it."""
    if not CHECKERS:
        CHECKERS.append(Checker())
    return CHECKERS[0]


def pytest_sessionfinish() -> None:
    for checker in CHECKERS:
        checker.close()


@pytest.fixture(autouse=True)
def own_group_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a test sends a signal to pid 0, its own process group: that would stop or end all tests."""
    send = os.kill

    def kill(pid: int, number: int) -> None:
        assert pid or not number, f"signal {number} for the own process group: no such process was found"
        send(pid, number)

    monkeypatch.setattr(os, "kill", kill)


@pytest.fixture
def usual_signals():
    """Let started programs have their usual SIGHUP and SIGINT, though these may be ignored here.

    Under nohup SIGHUP comes ignored, in the background of a script SIGINT, and children inherit that. A caught signal,
    even with an empty handler, is not inherited.
    """
    ignored = [number for number in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


_compiled: dict[bytes, bytes] = {}


@pytest.fixture(autouse=True, scope="session")
def compiled_once() -> Iterator[None]:
    """Bundles get the bytecode of an earlier bundle, to save time."""
    compile_file = py_compile.compile

    def copied(file: str, **options) -> None:
        source, target = Path(file).read_bytes(), Path(importlib.util.cache_from_source(file))
        if source in _compiled:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(_compiled[source])
        else:
            compile_file(file, **options)
            _compiled[source] = target.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(py_compile, "compile", copied)
        yield


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Ground:
    """A checkout of one's own, and a store that is not there yet."""
    made = Ground(tmp_path.resolve())
    made.copies = not request.path.name.startswith("test_store_")
    monkeypatch.setenv("SWARM_DB_PATH", made.database)
    return made


@pytest.fixture
def ann(ground: Ground) -> Session:
    """A session in the checkout of `ground`."""
    return ground.session("ann")


@pytest.fixture
def bob(ground: Ground) -> Session:
    """Another one there."""
    return ground.session("bob")


@pytest.fixture
def store(ground: Ground) -> Iterator[Store]:
    """The store of `ground`, open for the time of the test."""
    with ground.store() as opened:
        yield opened


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, checkouts.Checkout]:
    """Repositories to ask about, not to be changed: see ``checkouts.made_in``."""
    return checkouts.made_in(tmp_path_factory.mktemp("templates"))


@pytest.fixture
def checkout(templates: dict[str, checkouts.Checkout], tmp_path: Path):
    """A copy of one of them, by its name."""
    return lambda name: checkouts.copied(templates[name], tmp_path / "copy")


@pytest.fixture
def no_faults() -> Iterator[None]:
    """After the test, the hooks have recorded no faults, except for those of a busy machine."""
    yield
    assert mistakes() == []


@pytest.fixture(autouse=True)
def checks_wait(limits: Limits) -> None:
    """A check in this process waits for its answers, git's and others'; a test may set a limit of its own."""
    for module, names in HURRY.items():
        limits(module, **dict.fromkeys(names.split(), AMPLE))


@pytest.fixture
def checks_have_time(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    """A check reads its command to the end, and git reads no settings of this machine.

    This process is no hook: it may collect the garbage of a thousand tests in the midst of a check.
    """
    limits(clock, SECONDS=AMPLE)
    limits(walk, SECONDS=AMPLE, SECONDS_TO_PARSE=AMPLE)
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def world(tmp_path: Path, checks_have_time: None, no_faults: None) -> World:
    """A checkout with three committed files, for sessions and persons at work; see ``support.world``."""
    return World(tmp_path, "notes.md", "other.md", "sub/deep.md")


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    """A repository with three committed files and an empty store, for sessions without a fault."""
    ready_store()
    return checkout_in(tmp_path.resolve() / "work", "notes.md", "other.md", "sub/deep.md")


@pytest.fixture
def me(work: Path) -> Player:
    """A session in `work`."""
    return Player("codex", work)


@pytest.fixture
def peer(work: Path) -> Player:
    """Another session in `work`."""
    return Player("codex", work)


@pytest.fixture
def file(work: Path) -> Path:
    """The file notes.md of `work`."""
    return work / "notes.md"


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    """Each runtime with hooks as commands of ours, one after the other."""
    return str(request.param)


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered harnesses of this test alone, none of them made yet."""
    from swarm_mcp.agents.harness import registry

    monkeypatch.setattr(registry, "ADAPTERS", dict(registry.ADAPTERS))
    monkeypatch.setattr(registry, "_made", {})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout as the present folder."""
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
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs, first on a PATH without an agent's client."""
    folder = folder_at(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


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
