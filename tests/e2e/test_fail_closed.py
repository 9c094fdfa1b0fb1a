"""SWARM_FAIL=closed: an unchecked call is denied, and the model reads the reason and the user's remedy."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .ground import Ground
from .test_fail_open import Broken, store_held_by_another, store_is_a_folder, store_is_garbage, store_out_of_reach

pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")
CLOSED = {"SWARM_FAIL": "closed"}
NEEDED = ("could not be checked", "SWARM_FAIL is closed", "Nothing was written", "user")


def assert_denied_unchecked(client: Client, script: str, *words: str) -> None:
    assert_untouched(client, "notes.md")
    told = client.last_result(script)
    for needed in (*NEEDED, *words):
        assert needed in told, f"the denial does not say {needed!r}: {told!r}"


@contextmanager
def plugin_is_broken(ground: Ground) -> Iterator[Broken]:
    """Remove a file of the installed plugin from all of the client's copies."""
    cores = [path for path in ground.root.rglob("swarm_hook_core/core.py") if ground.checkout not in path.parents]
    assert cores, "no plugin is installed"
    for path in cores:
        path.rename(path.with_name("core.py.away"))
    compiled = [path for core in cores for path in (core.parent / "__pycache__").glob("core.*")]
    for path in compiled:
        path.rename(path.with_name(f"away.{path.name}"))
    try:
        yield {}
    finally:
        for path in cores:
            path.with_name("core.py.away").rename(path)
        for path in compiled:
            path.with_name(f"away.{path.name}").rename(path)


FAULTS: list[Callable[[Ground], AbstractContextManager[Broken]]] = [
    store_is_garbage,
    store_is_a_folder,
    store_out_of_reach,
    store_held_by_another,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_write_that_cannot_be_checked_is_denied(
    client: Client, fault: Callable[[Ground], AbstractContextManager[Broken]]
) -> None:
    with fault(client.ground) as env:
        client.run("work", client.replace(*CHANGE), env={**env, **CLOSED})
        assert_denied_unchecked(client, "work", "swarm-mcp doctor", "SWARM_FAIL=open")
        client.run("open", client.replace(*CHANGE), env=env)
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.promise("SWARM_FAIL=closed denies a write that could not be checked", only=("codex",))
def test_for_writes_and_shells(client: Client) -> None:
    with store_is_garbage(client.ground):
        client.run("work", client.replace(*CHANGE), client.shell("echo two > notes.md"), env=CLOSED)
        assert_denied_unchecked(client, "work")
        assert sum("could not be checked" in told for told in client.results("work")) == 2
        client.run("look", client.shell("cat notes.md"), env=CLOSED)
    assert "line one" in client.last_result("look"), "what is read and writes nothing goes ahead"


def test_a_broken_plugin_denies(client: Client) -> None:
    client.run("usual", client.create("usual.md", "usual\n"), env=CLOSED)
    assert_text(client, "usual.md", "usual\n")
    with plugin_is_broken(client.ground):
        client.run("work", client.replace(*CHANGE), env=CLOSED)
        assert_denied_unchecked(client, "work", "files of the plugin are missing or broken", "swarm-mcp install")
        client.run("open", client.replace(*CHANGE))
    assert_text(client, "notes.md", "line two\n")


def test_it_is_set_for_the_checkout(client: Client) -> None:
    path = client.ground.home / ".config" / "swarm-mcp" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"checkouts": {str(client.ground.checkout): {"fail": "closed"}}}))
    try:
        with store_is_garbage(client.ground):
            client.run("work", client.replace(*CHANGE))
            assert_untouched(client, "notes.md")
            told = client.last_result("work")
            assert "could not be checked" in told and str(path) in told and str(client.ground.checkout) in told
    finally:
        path.unlink()


def test_nothing_is_denied_where_nobody_has_used_swarm_or_all_is_well(client: Client) -> None:
    client.run("first", client.create("plan.md", "mine\n"), env={**CLOSED, "SWARM_MCP_BIN": "/nonexistent/swarm-mcp"})
    client.run("work", client.replace(*CHANGE), env=CLOSED)
    assert_text(client, "plan.md", "mine\n")
    assert_text(client, "notes.md", "line two\n")
