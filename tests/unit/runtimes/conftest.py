"""Fixtures for the tests of single clients."""

from pathlib import Path

import pytest
from support.sessions import ready_store

from swarm_mcp.runtimes import bundle


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a folder in it, beside a store; that of `ground`, where a test has both."""
    ready_store()
    (tmp_path / "repo" / ".git").mkdir(parents=True, exist_ok=True)
    (tmp_path / "repo" / "sub").mkdir()
    return tmp_path / "repo"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local bundle, in a folder with a name that a shell would read otherwise."""
    root = tmp_path_factory.mktemp("plugin").resolve() / "a $HOME `b'c"
    bundle.write(root, local=True)
    return root
