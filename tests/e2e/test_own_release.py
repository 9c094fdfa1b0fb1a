"""The plugin from the repository alone, on a machine without swarm-mcp: with uv, without it, and without a network."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_hook_core import DISTRIBUTION, __version__

from .checks import assert_text
from .client import Client
from .clients import CLIENTS
from .coordinator import PATIENCE, Coordinator
from .ground import Ground, Lacking, wait_for
from .marketplace import Marketplace
from .package_index import PackageIndex, uv_folder, wheels

CHANGE = ("notes.md", "line one", "line two")
FETCHED = f"release {__version__} of `{DISTRIBUTION}`"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    index = PackageIndex(wheels(tmp_path_factory.mktemp("wheels")))
    yield index
    index.close()


@pytest.fixture(params=list(CLIENTS))
def stranger(request: pytest.FixtureRequest, index: PackageIndex) -> Iterator[Client]:
    """A client with the plugin from the repository, in a home and on a PATH without swarm-mcp, and with uv."""
    try:
        ground = Ground("stranger", with_swarm=False)
        (ground.bin / "uv").symlink_to(uv_folder() / "uv")
    except Lacking as lacking:
        pytest.fail(str(lacking), pytrace=False)
    index.is_down, index.asked[:] = False, []
    del ground.env["SWARM_UVX"]
    ground.env.update(UV_DEFAULT_INDEX=index.url, UV_PYTHON_DOWNLOADS="never", UV_HTTP_TIMEOUT="5")
    client = CLIENTS[request.param](ground)
    client.prepare()
    marketplace = Marketplace(ground, "repository")
    marketplace.install(client.name)
    assert ground.run(["/bin/sh", "-c", "command -v swarm-mcp swarm-locks"]).stdout == "", "none on PATH"
    yield client
    marketplace.close()
    ground.close()


def launcher(ground: Ground) -> Path:
    return ground.home / ".local/state/swarm-mcp/fetched" / f"swarm-mcp-{__version__}"


def first_words(client: Client) -> str:
    """Return the screen of a session opened by a person, after one turn."""
    with client.interactive() as terminal:
        client.turn(terminal, f"hello-{time.monotonic_ns()}")
        return " ".join(terminal.screen().split())


def test_with_uv_the_second_session_has_the_tools_and_its_locks_hold(stranger: Client, index: PackageIndex) -> None:
    ground = stranger.ground
    words = first_words(stranger)
    assert "fetched in the background" in words and "SWARM_UVX=off" in words, words
    assert wait_for(lambda: os.access(launcher(ground), os.X_OK), PATIENCE)
    assert any(DISTRIBUTION in path.replace("_", "-") for path in index.asked)
    index.is_down = True  # later sessions ask no index
    coordinator = Coordinator(launcher(ground), ground.checkout, ground.env)
    lock = stranger.swarm_tools(("lock_file", {"file": "notes.md", "reason": "careful surgery"}))
    with stranger.held("holding", *lock, at=len(lock)) as live:
        assert [row["content"] for row in coordinator.locks()] == ["careful surgery"], stranger.results("holding")
        assert "fetched in the background" not in stranger.context("holding")
        stranger.run("writing", stranger.replace(*CHANGE))
        assert "swarm lock blocked" in stranger.last_result("writing")
        assert_text(stranger, "notes.md", "line one\n")
        live.go_on()
    assert coordinator.sessions() == []
    stranger.run("afterwards", stranger.replace(*CHANGE))
    assert_text(stranger, "notes.md", "line two\n")
    doctor = {check["name"]: check for check in coordinator.json("doctor", allowed=(0, 1))["checks"]}
    assert "fetched by uv" in doctor["binary"]["message"]
    assert "fetched by uv" in doctor[f"{stranger.name} command"]["message"], doctor
    assert doctor[f"{stranger.name} enforcement"]["status"] == "ok", doctor[f"{stranger.name} enforcement"]


def test_without_uv_the_user_is_told_once_and_nothing_else_breaks(stranger: Client, index: PackageIndex) -> None:
    (stranger.ground.bin / "uv").unlink()
    assert f"pipx install {DISTRIBUTION}" in first_words(stranger)
    assert "pipx install" not in first_words(stranger)
    stranger.run("work", stranger.replace(*CHANGE))
    assert_text(stranger, "notes.md", "line two\n")
    assert "pipx install" in stranger.context("work"), "the model knows why it cannot lock"
    assert index.asked == [] and not launcher(stranger.ground).exists()


def test_without_a_network_nothing_waits_and_writes_go_on(stranger: Client, index: PackageIndex) -> None:
    index.is_down = True
    stranger.run("work", stranger.replace(*CHANGE))
    assert_text(stranger, "notes.md", "line two\n")
    assert wait_for(lambda: index.asked, PATIENCE), "it was tried, by a process of its own"
    stranger.run("again", stranger.replace("notes.md", "line two", "line three"))
    assert_text(stranger, "notes.md", "line three\n")
    assert max(stranger.call_seconds("again")) < PATIENCE / 10
    assert not launcher(stranger.ground).exists()


def test_switched_off_nothing_is_fetched(stranger: Client, index: PackageIndex) -> None:
    stranger.ground.env["SWARM_UVX"] = "off"
    stranger.run("work", stranger.replace(*CHANGE))
    assert_text(stranger, "notes.md", "line two\n")
    assert "pipx install" in stranger.context("work") and FETCHED not in stranger.context("work")
    assert index.asked == []
