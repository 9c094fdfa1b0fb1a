"""A private home for every unit test, and a wall around the real one.

The end-to-end tests make their own homes for the clients they start, so only the wall is theirs.
"""

import gc
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from support.altered import Clocks, Failing, Limits, Listening

from swarm_mcp.runtimes import SHELL_VARIABLES

FOREIGN_PREFIXES = ("SWARM_", "HERDR_", "CLAUDE", "CODEX_", "COPILOT_", "CURSOR_", "HERMES_", "GEMINI_", "XDG_")
FOREIGN_NAMES = (
    "AGENT_IDENTITY", "TERMINAL_CWD", "PYTHONHOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR",
    "CLICOLOR", "CLICOLOR_FORCE",
)  # fmt: skip
# A busy machine is no defect: speed is measured in tests/bench. The suite tries the same examples each time, so that a run
# tells about the change that it is run for; a run with a number of examples (SWARM_EXAMPLES and others) tries others.
OTHER_EXAMPLES = any(name == "SWARM_THOROUGH" or name.endswith("_EXAMPLES") for name in os.environ)
settings.register_profile("swarm", deadline=None, derandomize=not OTHER_EXAMPLES)
settings.load_profile("swarm")

REAL_HOME = os.path.expanduser("~")
FORBIDDEN = tuple(
    os.path.join(REAL_HOME, name)
    for name in (
        ".swarm-mcp",
        ".local/state/swarm-mcp",
        ".local/share/swarm-mcp",
        ".claude",
        ".codex",
        ".copilot",
        ".gemini",
    )
)


def _guard_real_home(event: str, arguments: tuple[object, ...]) -> None:
    # The home that this test run was started with holds a person's sessions and locks.
    if event in ("open", "os.mkdir", "os.remove", "os.rename", "sqlite3.connect") and arguments:
        path = arguments[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(path, (str, os.PathLike)):
            text = os.fspath(path).removeprefix("file:")
            if any(text == folder or text.startswith(folder + "/") for folder in FORBIDDEN):
                raise AssertionError(f"a test reached for the real home: {text}")


sys.addaudithook(_guard_real_home)


def pytest_collection_finish() -> None:
    """Once the tests' own bytecode is found or written, put the bytecode of their subprocesses into the usual place."""
    sys.pycache_prefix = None
    sys.dont_write_bytecode = True  # hooks that a test imports lie in the checkout
    gc.freeze()  # thousands of tests were collected: no use in looking through them again and again


_numbers = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own. Pytest's own fixture looks through all earlier ones to find a free number."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name[:30])
    return tmp_path_factory.mktemp(f"{name}{next(_numbers)}", numbered=False)


@pytest.fixture(autouse=True)
def home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path | None:
    """The private home: state, store and client configuration all lie under it. Not in tests/e2e."""
    if "e2e" in request.path.parts:
        return None
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES or name in SHELL_VARIABLES:
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp(f"home{next(_numbers)}", numbered=False)
    monkeypatch.setenv("SWARM_UVX", "off")  # no test has uv fetch anything, where a machine has it
    for name, place in {
        "HOME": "",
        "XDG_STATE_HOME": ".local/state",
        "XDG_DATA_HOME": ".local/share",
        "XDG_CACHE_HOME": ".cache",
        "XDG_CONFIG_HOME": ".config",
        "SWARM_STATE_DIR": "state/swarm-mcp",
        "SWARM_DB_PATH": "store/swarm.db",
        "CLAUDE_CONFIG_DIR": ".claude",
        "CODEX_HOME": ".codex",
    }.items():
        monkeypatch.setenv(name, str(folder / place))
    # `python3` and `swarm-mcp` as a person would type them are the ones under test.
    scripts = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", scripts + os.pathsep + os.environ.get("PATH", os.defpath))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return folder


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    """Sets limits of the product for this test; see ``support.altered``."""
    return Limits(monkeypatch)


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Listening:
    """Notes the calls of a function of the product, and lets them through; see ``support.altered``."""
    return Listening(monkeypatch)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Turns the clocks of this process for this test; see ``support.altered``."""
    return Clocks(monkeypatch)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Lets calls of a function of the product fail for this test; see ``support.altered``."""
    return Failing(monkeypatch)
