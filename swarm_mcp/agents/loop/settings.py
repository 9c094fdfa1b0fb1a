"""A run of the loop and its settings (the environment as the bash harness reads it, one private file); why it fails."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from swarm_hook_core.environment import first_set
from swarm_mcp import __version__
from swarm_mcp.agents.harness.hs import nearest_sessions
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import names_in
from swarm_mcp.processes import Reaper

# Exit codes of `swarm-mcp worker loop`, beside those of every command.
FAILED, MODEL_FAILED, TOO_LONG, STOPPED = 1, 4, 5, 143


class LoopFailure(SwarmError):
    """A run cannot go on; the text says why, in one line.

    `category` is one of ``harness.outcome.ERRORS``; `exit_code` is that of `swarm-mcp worker loop`; `retry_not_before`
    is the Unix time until which an endpoint wants us to wait.
    """

    retry_not_before: float | None = None

    def __init__(self, text: str, category: str = "unknown", exit_code: int = FAILED):
        super().__init__(" ".join(text.split()) or "it failed without a word")
        self.category = category
        self.exit_code = exit_code


CONFIG_VARIABLE = "SWARM_LOOP_CONFIG"
MAX_TURNS, TOOL_SECONDS = 100, 120.0
DEPTH = 2  # of agents that agents start
ON_PATH = "path"  # the folder in the root that is the last on the PATH of everything a run starts
READ_ONLY = "read-only"


class LoopSettings:
    """One run's settings. Empty values count as not given.

    home, sessions   folders: ``HARNESS_HOME``; ``HARNESS_SESSIONS``, else the nearest ``.harness/sessions`` at or above
                     the present folder, else ``sessions`` in `home`
    root             folder of the built-in plugins (``HARNESS_ROOT`` of every plugin we start)
    model, provider, max_turns, log   ``HARNESS_MODEL`` and so on
    stream           read answers as they come (``HARNESS_STREAM``; on)
    depth            the number of agents above this one (``HARNESS_DEPTH``)
    predispatch      start tools while the answer is still coming (``HARNESS_PREDISPATCH``; on)
    config           the JSON object in the file that ``SWARM_LOOP_CONFIG`` names: ``mode``,
                     ``mcp_servers``, ``skills``, ``system_prompt``, ``append_system_prompt``, ``output_schema``,
                     ``max_turns``, ``fork`` (a resumed session goes on in a copy)
    """

    def __init__(self, root: str = ""):
        # The present folder, as its user spells it where that is still true
        try:
            now = os.getcwd()
        except OSError as error:
            raise LoopFailure(f"the present folder is gone: {error.strerror}") from None
        spelled = os.environ.get("PWD", "")
        if os.path.isabs(spelled) and os.path.realpath(spelled) == os.path.realpath(now):
            self.folder = spelled
        else:
            self.folder = now
        self.root = root
        self.home = _folder("HARNESS_HOME") or os.path.join(os.path.expanduser("~"), ".harness")
        self.sessions = _folder("HARNESS_SESSIONS") or nearest_sessions(self.folder, self.home)
        self.model, self.provider = first_set("HARNESS_MODEL"), first_set("HARNESS_PROVIDER")
        self.max_turns = int(number("HARNESS_MAX_TURNS", MAX_TURNS))
        self.log = first_set("HARNESS_LOG")
        self.stream, self.predispatch = not is_off("HARNESS_STREAM"), not is_off("HARNESS_PREDISPATCH")
        self.depth = int(number("HARNESS_DEPTH", 0))
        self.config = _config()

    @property
    def read_only(self) -> bool:
        """True if this run may write no file; its mode is else ``edit`` or ``yolo``."""
        return self.config.get("mode") == READ_ONLY

    def exported(self) -> dict[str, str]:
        """Return the variables that every plugin finds in its environment, beside those of its session and stage."""
        return {
            "HARNESS_ROOT": self.root,
            "HARNESS_HOME": self.home,
            "HARNESS_SESSIONS": self.sessions,
            "HARNESS_MODEL": self.model,
            "HARNESS_PROVIDER": self.provider,
            "HARNESS_MAX_TURNS": str(self.max_turns),
            "HARNESS_LOG": self.log or "/dev/stderr",
            "HARNESS_VERSION": f"swarm-mcp {__version__}",
        }


def number(name: str, default: float, environ: Mapping[str, str] = os.environ) -> float:
    """Return a variable's value as a number that is not negative, or `default`."""
    try:
        value = float(environ.get(name, "").strip() or default)
    except ValueError:  # not a number: as if it were not set
        return default
    if 0 <= value < 10**9:
        return value
    return default


def is_off(name: str) -> bool:
    """Return True if a variable switches something off."""
    return first_set(name).lower() in ("0", "false", "no", "off")


def _folder(name: str) -> str:
    value = first_set(name)
    if value:
        return os.path.abspath(os.path.expanduser(value))
    return ""


def _config() -> dict[str, Any]:
    path = first_set(CONFIG_VARIABLE)
    if not path:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise LoopFailure(f"{CONFIG_VARIABLE}: {path}: {error}") from None
    if not isinstance(found, dict):
        raise LoopFailure(f"{CONFIG_VARIABLE}: {path} holds no JSON object")
    return found


# Variants of providers, as ``.conf`` files of lines ``name=value`` in ``providers/``.
#
# Some are part of this package; a file of the same name in any source takes their place.

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")
LARGEST = 65536


def named(found: Iterable[str], kind: str) -> dict[str, str]:
    """Return name -> path of the files in the folder `kind`, ours and of the sources `found`; the last of a name."""
    listed: dict[str, str] = {}
    for source in (BUNDLED, *found):
        folder = os.path.join(source, kind)
        names = [name for name in names_in(folder) if name.endswith(".conf")]
        listed.update({name.removesuffix(".conf"): os.path.join(folder, name) for name in names})
    return dict(sorted(listed.items()))


def read(path: str) -> list[tuple[str, str]]:
    """Return the names and values of a file, in order. Raises LoopFailure."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return pairs(file.read(LARGEST))
    except OSError as error:
        raise LoopFailure(f"{path}: {error.strerror}") from None


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of lines ``name=value``; others, and comments, are left out."""
    parted = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [(name.strip(), value.strip()) for name, equals, value in parted if equals]


# The state of a run.


class LoopRun:
    """One run: the state that its stages and tools share.

    `session` is a Session once there is one, `provider` a Provider from the stage ``resolve`` on. `report`, `swarm` and
    `servers` are a Report, a SwarmSession and Servers; their modules take a run themselves.
    """

    def __init__(self, settings: LoopSettings, report: Any, cwd: str, swarm: Any = None, servers: Any = None):
        self.settings, self.report, self.cwd, self.swarm, self.servers = settings, report, cwd, swarm, servers
        self.session: Any = None
        self.provider: Any = None
        self.sources: list[str] = []  # the places of plugins
        self.reaper = Reaper()
        self.greeting = ""
        self.early: dict[str, tuple[str, bool]] = {}  # results of calls that began before their answer was whole
        self.asked = 0  # how often a model was
        self.corrections = 0  # how often an answer had to be asked for again
        self._logging = threading.Lock()

    def environment(self, stage: str = "") -> dict[str, str]:
        """Return the environment of everything that the run starts."""
        told = {
            **self.settings.exported(),
            "HARNESS_SOURCES": ":".join(self.sources),
            "HARNESS_STAGE": stage,
            "HARNESS_CWD": self.cwd,
        }
        if self.session:
            told["HARNESS_SESSION"] = self.session.path
        if self.settings.root:
            ours = os.path.join(self.settings.root, ON_PATH)
            told["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{ours}"
        return {**os.environ, **told}

    def log(self, text: str) -> None:
        """Write the standard error of plugins to ``HARNESS_LOG``, else to our own."""
        if not text.strip():
            return
        if not text.endswith("\n"):
            text += "\n"
        with self._logging:
            try:
                if not self.settings.log or self.settings.log == "/dev/stderr":
                    print(text, end="", file=sys.stderr, flush=True)
                else:
                    with open(self.settings.log, "a", encoding="utf-8", errors="replace") as file:
                        file.write(text)
            except (OSError, ValueError):  # a log that cannot be written must not end the run
                return
