"""Gemini CLI's own features: paths mended before a write, and words that reach its model later."""

import json
from collections.abc import Iterator

import pytest

from .checks import assert_untouched
from .more import OtherClient
from .more.gemini import MODEL
from .terminal import Terminal
from .test_more_clients import Stock

pytestmark = pytest.mark.xdist_group("more-gemini")


@pytest.fixture(scope="module")
def stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


@pytest.fixture
def gemini(stock: Stock) -> Iterator[OtherClient]:
    client = stock.client("gemini")
    yield client
    client.ground.end_processes()


def test_paths_that_it_mends(gemini: OtherClient) -> None:
    """Without the plugin each of these calls writes one of the two files."""
    for file in ("notes.md", "sub/deep.md"):
        gemini.ground.coordinator.peer_lock(file)
    written = ["notes.md", "sub/../notes.md", "notes%2Emd", "@notes.md", "no\0tes.md"]
    changed = ["deep.md", "checkout/sub/deep.md", "ub/deep.md", "@deep.md"]
    calls = [gemini.create(path, "x\n") for path in written] + [gemini.replace(path, "deep", "x") for path in changed]
    in_folder = gemini.shell("echo x > deep.md")
    in_folder["input"]["dir_path"] = "sub"
    gemini.run("work", *calls, in_folder)
    told = gemini.results("work")
    assert len(told) == len(calls) + 1 and all("swarm lock blocked" in text for text in told), told
    assert_untouched(gemini, "notes.md")
    assert_untouched(gemini, "sub/deep.md")


def test_a_session_after_clear_is_another_and_is_told_so(gemini: OtherClient) -> None:
    ground = gemini.ground
    trusted = json.dumps({str(ground.checkout): "TRUST_FOLDER"})
    (ground.home / ".gemini" / "trustedFolders.json").write_text(trusted)
    terminal = Terminal(ground, ["gemini", "--yolo", "-m", MODEL], {})
    try:
        terminal.wait_for("Type your message", 40)
        gemini.turn(terminal, "one", gemini.create("one.md", "one\n"))
        (first,) = ground.coordinator.sessions()
        terminal.enter("/clear")
        terminal.wait_until_gone("The script one is over")
        gemini.turn(terminal, "two", gemini.create("two.md", "two\n"))
        (second,) = ground.coordinator.sessions()
        terminal.enter("/quit")
        terminal.wait_ended()
    finally:
        terminal.close()
    assert first["id"] != second["id"] and ground.coordinator.sessions() == []
    # On a terminal the first prompt may be on its way before the session's start has been answered.
    told = [json.dumps([exchange.body for exchange in gemini.exchanges(script)]) for script in ("one", "two")]
    assert first["id"] in told[0] and second["id"] in told[1]
