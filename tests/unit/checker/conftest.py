"""One client for the tests of a file: to make a plugin and sessions takes longer than a test."""

from collections.abc import Iterator

import pytest
from support.checker_client import Client, client_in


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client with a server."""
    with client_in(tmp_path_factory.mktemp("client")) as client:
        yield client


@pytest.fixture
def client(shared_client: Client) -> Client:
    """The client of this file, as at first."""
    shared_client.renew()
    return shared_client


@pytest.fixture
def broken_client(client: Client) -> Iterator[Client]:
    """The client for a test that damages the place of its checker: the server ends after the test."""
    yield client
    client.close()
