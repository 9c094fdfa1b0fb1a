"""Cline's own feature: the folder that a session is told to work in."""

from collections.abc import Iterator

import pytest

from .checks import assert_untouched
from .more import OtherClient
from .test_more_clients import Stock

pytestmark = pytest.mark.xdist_group("more-cline")


@pytest.fixture(scope="module")
def stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


@pytest.fixture
def cline(stock: Stock) -> Iterator[OtherClient]:
    client = stock.client("cline")
    yield client
    client.ground.end_processes()


@pytest.mark.parametrize("folder", ["sub", "./sub", "/checkout/sub"])
def test_paths_count_from_the_folder_it_is_given(cline: OtherClient, folder: str) -> None:
    cline.ground.coordinator.peer_lock("sub/deep.md")
    folder = folder.replace("/checkout", str(cline.ground.checkout))
    edit = {"name": "editor", "input": {"path": "deep.md", "old_text": "deep", "new_text": "mine"}}
    cline.run("work", edit, cline.shell("echo mine > deep.md"), extra=("-c", folder))
    assert all("swarm lock blocked" in text for text in cline.results("work")), cline.results("work")
    assert_untouched(cline, "sub/deep.md")
