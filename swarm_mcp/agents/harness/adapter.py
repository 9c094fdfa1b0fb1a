"""The interface of an adapter: only the differences between harnesses. The runner (``run``) does everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core.environment import first_set
from swarm_mcp.agents.harness import outcome
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Ending, Price
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.errors import Refused


class Launch(NamedTuple):
    """The start of a child: argv, additions to its environment, and its standard input.

    `drop` names variables of this process to hide from the child, beside those of a session (``environment``). `notes`
    are lines for the watching person, as if the child had written them to standard error.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    stdin: str = ""
    drop: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


SETTINGS = ("Modes:", "Settings:", "Where SWARM_KERNEL")  # beginnings of lines after those about the choice
INFO, WARN, ERROR = "info", "warn", "error"  # levels of a check


class Check(NamedTuple):
    """One finding about this machine. `code` never changes for the same finding; `level` is info, warn or error."""

    code: str
    level: str
    message: str
    hint: str = ""
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON object, without empty fields."""
        return {name: value for name, value in self._asdict().items() if value}


class CommandPlace(NamedTuple):
    """A folder of commands for prompts: files with this `ending`, or, if that is empty, folders of skills."""

    folder: str
    ending: str = ""


class Capabilities(NamedTuple):
    """The abilities of a harness. Each true flag has a test. A request beyond them is refused, or left out with a
    warning (``requirements``).
    """

    resume: bool = False
    fork: bool = False
    read_only: bool = False
    system_prompt: bool = False  # instead of its own
    append_system_prompt: bool = False
    mcp: bool = False
    client_tools: bool = False
    native_skills: bool = False
    output_schema: bool = False
    streaming_tokens: bool = False
    cost: bool = False  # reports the cost of a run
    locks: bool = False  # its writes are checked against locks before they happen
    model: bool = False  # uses the model that it is told to
    effort: bool = False
    directories: bool = False  # may be given more folders than its own
    max_cost: bool = False  # stops at a cost, or reports the cost so far in its context_usage events
    max_turns: bool = False  # the same of its turns
    read_only_servers: bool = False  # has the servers of the query in mode read-only, too
    permissions: bool = False  # asks ``on_permission``
    images: bool = False


class HarnessAdapter(ABC):
    """One harness.

    Class attributes: `name` (a short word), `label` for people, `program` (the command on PATH; ``""`` for a part of
    this package), `doc` (plain text with the lines "Use when ..." and "Do not use when ...", and every setting with its
    default), `instructions` (installing and signing in), `models` (short name -> name; the first is no default),
    `prices` (model -> Price), `capabilities`, `cumulative` (those of ``"cost"``, ``"tokens"`` that count a resumed
    session's whole life), `home_variables` (the names of variables for its settings folder), `session_pattern` (regular
    expression of this harness's session ids; other texts never reach argv), `tells_stderr` (the events of a line of
    standard error tell all of it), `is_opaque` (the child's writes are unchecked), `example` (of the command
    that it has to be given; empty: it has its own).
    """

    name = ""
    label = ""
    program = ""
    doc = ""
    instructions = ""
    models: Mapping[str, str] = {}
    prices: Mapping[str, Price] = {}
    capabilities = Capabilities()
    cumulative: frozenset[str] = frozenset()
    home_variables: tuple[str, ...] = ()
    tells_stderr = False
    is_opaque = False
    example = ""
    session_pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

    @property
    def use_when(self) -> str:
        """The sentences of `doc` for a model that chooses: from "Use when" to the settings, on one line."""
        lines = self.doc.splitlines()
        first = next((place for place, line in enumerate(lines) if line.startswith("Use when")), len(lines))
        last = next((place for place in range(first, len(lines)) if lines[place].startswith(SETTINGS)), len(lines))
        return " ".join(lines[first:last])

    def require_command(self, words: Sequence[str]) -> None:
        """Raise Refused for a harness that has to be given a command, and has got none."""
        if self.example and not words:
            variable = f"SWARM_HARNESS_{self.name.upper()}"
            raise Refused(f"the harness {self.name} needs a command: --command '{self.example}', or {variable}")

    @abstractmethod
    def launch(self, query: Query, folder: Path) -> Launch:
        """Return the start of a child for `query`.

        `folder` is private to this run (mode 0700, outside the checkout) and always removed after the run:
        configuration files, skills and schemas go there. Nothing else is written.
        """

    @abstractmethod
    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        """Return the events of one line of standard output. `state` is this run's memory.

        `state` begins with ``query`` (the launched Query) and ``folder`` (the run's private folder).

        Never raises: an unknown line becomes ``custom`` (known format, unknown kind) or nothing. The runner itself
        makes ``raw_log``. A ``result`` may come more than once; the last one counts.
        """

    def parse_stderr(self, line: str, state: dict[str, Any]) -> list[Event]:
        """Return the events of a line of standard error, beside the runner's own ``raw_stderr``. Never raises.

        Of a harness that `tells_stderr` a line that makes events is not shown to people besides.
        """
        return []

    def recorded(self, line: str) -> str:
        """Return a line of standard output in the form for ``raw_log`` and the record. May raise.

        For a harness that repeats itself: an omitted part must stand in another line. Called before secrets are
        removed, so do not cut inside a text.
        """
        return line

    def finish(self, state: dict[str, Any]) -> list[Event]:
        """Return the events that are only known once standard output has ended. Never raises."""
        return []

    def error_of(self, ending: Ending) -> tuple[str, str] | None:
        """Return the error code and a line with the reason, None for a successful run.

        Not called if the runner itself ended the run (abort, timeout, tool loop), nor for a missing program.
        """
        return outcome.error_of(ending)

    def unknown_session(self, ending: Ending) -> bool:
        """Return True if the run failed because the session to resume does not exist (any more)."""
        found = self.error_of(ending)
        return found is not None and found[0] == outcome.SESSION_NOT_FOUND

    def can_resume(self, session_id: str, cwd: str) -> bool | None:
        """Return True if that session can be continued in `cwd` (empty: anywhere); None if only an attempt can tell.

        Never runs the harness.
        """
        return None

    def session_cost(self, session_id: str) -> Cost:
        """Return the session's cost so far, in the harness's own count, as far as its record has it.

        Never runs the harness.
        """
        return Cost()

    def format_command(self, name: str) -> str:
        """Return how a prompt invokes the skill or command `name`."""
        return f"/{name}"

    def command_places(self, cwd: str) -> list[CommandPlace]:
        """Return where this harness, working in `cwd`, finds skills and commands, beside those of a run; the first
        place that has a name counts. The folders need not exist."""
        return []

    def checks(self, config: Mapping[str, object]) -> list[Check]:
        """Return findings about this harness on this machine, beside those of ``checks.common``: without side effects,
        in well under 5 s. `config` has ``cwd`` and the fields of a query. Never raises over a finding.
        """
        return []

    def listed_models(self) -> list[dict[str, Any]]:
        """Return the models to choose from: ``{"name", "short", "context_tokens"}``, without the network."""
        return [{"name": name, "short": short, "context_tokens": None} for short, name in self.models.items()]

    def model(self, query: Query) -> str:
        """Return the model to ask for, expanded: the query's, else ``MODEL_OVERRIDE``, else ``<NAME>_DEFAULT_MODEL``.

        Empty: the harness's own default.
        """
        own = f"{self.name.upper().replace('-', '_')}_DEFAULT_MODEL"
        chosen = query.model.strip() or first_set("MODEL_OVERRIDE", own)
        return self.models.get(chosen, chosen)
