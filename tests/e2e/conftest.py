"""Fixtures: every scenario runs in each client, installed in each way a person installs it.

`client` is a real client on a fresh checkout and store. `@pytest.mark.only("codex")` narrows the clients,
`@pytest.mark.ways("none")` replaces the ways of installing, `@pytest.mark.from_git` and `@pytest.mark.from_clone` add
to them. A tool missing on the machine fails the test, it never skips. `@pytest.mark.thorough` scenarios have other
scenarios as samples: they run with SWARM_THOROUGH=1 only, and pytest prints the number of deselected ones.
`@pytest.mark.promise("...", only=("codex",))`: with `-m promise`, those alone that have one of these words in their id.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import Client
from .clients import CLIENTS
from .ground import Ground, Lacking, base_folder, own_ground, sweep
from .marketplace import Kind, Marketplace

WAYS: tuple[Kind, ...] = ("install", "git")
FAULTS = 2000  # characters of a faults file that a failing test shows: the last ones


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only(*clients): run in these clients only")
    config.addinivalue_line("markers", "ways(*kinds): install in these ways instead of the usual ones")
    config.addinivalue_line("markers", "from_git: where one way would do, run from a git marketplace as well")
    config.addinivalue_line("markers", "from_clone: run from a clone of this repository as well")
    config.addinivalue_line("markers", "each_way: also from a git marketplace each time, not in thorough runs alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    more = []
    if config.option.markexpr == "promise":
        more += [item for item in items if _is_shown_by_another(item)]
    if not os.environ.get("SWARM_THOROUGH"):
        more += [item for item in items if item.get_closest_marker("thorough") or _is_another_way(item)]
    config.hook.pytest_deselected(items=more)
    items[:] = [item for item in items if item not in more]


def _is_shown_by_another(item: pytest.Item) -> bool:
    promise = item.get_closest_marker("promise")
    words = promise.kwargs.get("only", ()) if promise else ()
    return bool(words) and not any(word in item.name for word in words)


def _is_another_way(item: pytest.Item) -> bool:
    return item.name.endswith("-git]") and not item.get_closest_marker("each_way")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    named = metafunc.definition.get_closest_marker("ways")
    ways: tuple[Kind, ...] = named.args if named else WAYS
    if ways == ("install",) and metafunc.definition.get_closest_marker("from_git"):
        ways = WAYS
    if ways == WAYS and metafunc.definition.get_closest_marker("from_clone"):
        ways += ("clone",)
    only = metafunc.definition.get_closest_marker("only")
    names = only.args if only else tuple(CLIENTS)
    if "newcomer" in metafunc.fixturenames:
        metafunc.parametrize("newcomer", names, indirect=True)
    elif "client" in metafunc.fixturenames:
        cases = [(way, name) for way in ways for name in names]
        metafunc.parametrize("client", cases, indirect=True, ids=[f"{name}-{way}" for way, name in cases])
    elif "both" in metafunc.fixturenames:
        metafunc.parametrize("both", ways, indirect=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the hooks' recorded faults to a failed test: hooks let calls pass in silence."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections += [(f"faults in {log}", text[-FAULTS:]) for log, text in _fault_logs().items()]


def _fault_logs() -> dict[Path, str]:
    """Return the faults files under the roots of this process's grounds, with their content."""
    try:
        logs = sorted(base_folder().glob(f"*-{os.getpid()}-*/home/**/faults.jsonl"))
        return {log: log.read_text(errors="replace") for log in logs}
    except (Lacking, OSError):  # the test reports it, or a dying process removes the file
        return {}


class Stock:
    """The grounds of one test worker, one for each way of installing, made when first asked for."""

    def __init__(self) -> None:
        sweep()
        self._grounds: dict[Kind, tuple[Ground, Marketplace]] = {}
        self._installed: dict[tuple[Kind, str], BaseException | None] = {}

    def client(self, kind: Kind, name: str) -> Client:
        """The client on the ground of `kind`. An installation that failed is not tried again."""
        if kind not in self._grounds:
            ground = Ground(kind, with_swarm=kind != "none")
            self._grounds[kind] = (ground, Marketplace(ground, kind))
        ground, marketplace = self._grounds[kind]
        client = CLIENTS[name](ground)
        if (kind, name) not in self._installed:
            self._installed[kind, name] = None
            try:
                client.prepare()
                marketplace.install(name)
            except Exception as raised:
                self._installed[kind, name] = raised
        failure = self._installed[kind, name]
        if failure:
            raise AssertionError(f"{name} by {kind}: the plugin could not be installed: {failure}") from failure
        return client

    def close(self) -> None:
        for ground, marketplace in self._grounds.values():
            marketplace.close()
            ground.close()


@pytest.fixture(scope="session")
def stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


def _fresh(stock: Stock, kind: Kind, *names: str) -> list[Client]:
    try:
        clients = [stock.client(kind, name) for name in names]
    except Lacking as lacking:
        absent = str(lacking)
    else:
        clients[0].ground.renew()
        return clients
    pytest.fail(absent, pytrace=False)


@pytest.fixture
def client(request: pytest.FixtureRequest, stock: Stock) -> Iterator[Client]:
    kind, name = request.param
    (client,) = _fresh(stock, kind, name)
    yield client
    client.ground.end_processes()


@pytest.fixture
def newcomer(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client on a ground of its own, with `swarm-mcp` on PATH and no plugin yet."""
    with own_ground("newcomer") as ground:
        client = CLIENTS[request.param](ground)
        client.prepare()
        yield client


@pytest.fixture
def both(request: pytest.FixtureRequest, stock: Stock) -> Iterator[dict[str, Client]]:
    """Both clients in one home, on one checkout and one store."""
    clients = _fresh(stock, request.param, *CLIENTS)
    yield {client.name: client for client in clients}
    clients[0].ground.end_processes()
