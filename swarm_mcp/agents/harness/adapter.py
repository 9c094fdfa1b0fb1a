"""The interface of an adapter: only the differences between harnesses. The runner (``run``) does the rest."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core import state
from swarm_hook_core.environment import first_set
from swarm_mcp.agents.harness import bridge, outcome
from swarm_mcp.agents.harness.environment import written
from swarm_mcp.agents.harness.events import KINDS, LONGEST_OUTPUT, RAW_LOG, Event, message, permission_asked
from swarm_mcp.agents.harness.outcome import Cost, Ending, Price, Unsupported
from swarm_mcp.agents.harness.query import EDIT, READ_ONLY, McpServer, PermissionRequest, Query, parse_object
from swarm_mcp.agents.harness.servers import ToolServer
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
    warning.
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


# The comparison of a run's request with its harness's abilities.
#
# A missing protection (a mode, a limit, the form of the answer, tools) is refused before anything starts. A missing
# convenience is left out, with a warning.

LEAST_COST = 1e-6  # dollars: less than that tells two costs from each other by rounding alone


def require_possible(adapter: HarnessAdapter, query: Query) -> None:
    """Raise Unsupported where the harness lacks something that protects."""
    asked = (
        (query.mode == READ_ONLY, "read_only", "mode read-only: nothing would keep it from writing"),
        (query.max_cost_usd > 0, "max_cost", "a cost limit: it does not report its cost in time"),
        (query.max_turns > 0, "max_turns", "a limit on its turns: it does not count them"),
        (query.output_schema is not None, "output_schema", "a schema for its answer"),
        (bool(query.client_tools), "client_tools", "client tools"),
        (bool(query.mcp_servers), "mcp", "MCP servers"),
        (query.on_permission is not None, "permissions", "on_permission: it asks for none"),
        (bool(query.images), "images", "images"),
        (query.fork_session and adapter.capabilities.resume, "fork", "a copy of a session: that one would go on"),
    )
    missing = [words for wanted, flag, words in asked if wanted and not getattr(adapter.capabilities, flag)]
    if missing:
        raise Unsupported(f"{adapter.name} cannot be given {', nor '.join(missing)} (swarm-mcp worker harness list)")


def left_out(adapter: HarnessAdapter, query: Query) -> list[str]:
    """Return a line for each request that the harness will ignore. `query` is without the run's own additions."""
    can = adapter.capabilities
    asked = (
        (query.model, can.model, "the model"),
        (query.effort, can.effort, "the effort"),
        (query.system_prompt, can.system_prompt, "that the system prompt takes the place of its own"),
        (query.append_system_prompt, can.append_system_prompt, "the system prompt"),
        (query.additional_directories, can.directories, "additional directories"),
        (query.stream_text, can.streaming_tokens, "that its text is to come in pieces"),
        (query.skills, can.native_skills or can.append_system_prompt, "skills"),
        (
            query.mcp_servers and query.mode == READ_ONLY,
            can.read_only_servers,
            f"in mode {READ_ONLY} the MCP servers {', '.join(query.mcp_servers)}",
        ),
    )
    return [f"{adapter.name} does not heed {words}" for wanted, able, words in asked if wanted and not able]


def limit_reached(query: Query, cost: object, turns: object) -> str:
    """Return the limit that a running run has reached, empty for none. `cost`: dollars, None: unknown."""
    if query.max_cost_usd:
        if not isinstance(cost, (int, float)):
            return "its cost is unknown (no price for its model), so a limit cannot be kept"
        if cost >= query.max_cost_usd:
            return f"it has cost ${cost:g}, and may cost at most ${query.max_cost_usd:g}"
    if query.max_turns and isinstance(turns, int) and turns >= query.max_turns:
        return f"it has taken {turns} turns, and may take at most {query.max_turns}"
    return ""


def schema_mismatch(query: Query, answer: object) -> str:
    """Return how the answer of a run that went well does not follow the query's schema, empty where it does."""
    if query.output_schema is None:
        return ""
    why = mismatch(answer, query.output_schema)
    if why:
        return f"the answer does not follow the schema: {why}"
    return ""


def limit_passed(query: Query, cost: float | None) -> str:
    """Return the limit that a finished run has passed, empty for none."""
    if query.max_cost_usd and cost is not None and cost > query.max_cost_usd + LEAST_COST:
        return f"it has cost ${cost:g}, and was to cost at most ${query.max_cost_usd:g}"
    return ""


def mismatch(found: object, wanted: dict[str, Any]) -> str:
    """Return an answer's deviation from the JSON schema `wanted`, empty for none. None stands for: no JSON at all.

    Without the jsonschema package only required names are checked.
    """
    if found is None:
        return "it is no JSON"
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        missing = [name for name in wanted.get("required", []) if not isinstance(found, dict) or name not in found]
        if missing:
            return f"it lacks {', '.join(map(str, missing))}"
        return ""
    try:
        error = next(iter(sorted(Draft202012Validator(wanted).iter_errors(found), key=lambda e: len(e.path))), None)
    except Exception:  # an invalid schema measures nothing
        return ""
    if error is None:
        return ""
    return f"{error.json_path}: {error.message[:200]}"


# Any command as a harness: its output is the answer; lines of JSON in our form are taken as events.


class Process(HarnessAdapter):
    """The harness ``session_hooks``."""

    name = "process"
    label = "Any command"
    instructions = "Name the command: swarm-mcp worker run --harness process --command 'make check'"
    capabilities = Capabilities()
    is_opaque = True
    example = "make check"
    doc = """\
Runs one command and watches it like any other worker. The prompt is its standard input; what it prints is the
answer. A line that is a JSON object with a "type" among our events counts as that event.
Use when the work is a script, a build, a test run, or an agent that has no adapter.
Do not use when the program has an adapter: its sessions, costs and locks are then known. Nothing keeps a command from
writing, so mode read-only is refused; so are limits on cost and turns, schemas, servers and client tools.
Where SWARM_KERNEL is on, what others have locked as it starts is read-only for it.
Settings: command (required; SWARM_HARNESS_PROCESS), env, timeout_seconds (0: none), grace_seconds (15)."""

    def launch(self, query: Query, folder: Path) -> Launch:
        self.require_command(query.command)
        return Launch((*query.command, *query.additional_args), stdin=query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        found = parse_object(line)
        if found.get("type") in KINDS and found["type"] != RAW_LOG:
            return [Event(found["type"], {k: v for k, v in found.items() if k not in ("type", "timestamp")})]
        kept = state["text"] = state.get("text", "") + line + "\n"
        if len(kept) > 2 * LONGEST_OUTPUT:  # its output may be endless; the end of it is the answer
            state["text"] = kept[-LONGEST_OUTPUT:]
        return []

    def finish(self, state: dict[str, Any]) -> list[Event]:
        text = state.get("text", "").strip("\n")[-LONGEST_OUTPUT:]
        if text.strip():
            return [message("assistant", text)]
        return []


# Questions of a client, if it may do something, as calls of a Python function of the caller.
#
# A harness asks over MCP: a server of the run's own, ``PERMISSIONS``, with the one tool ``PERMISSION_TOOL``. Only the
# harness calls it; the model may not. Without such a function everything that a client would ask is refused.


PERMISSIONS, PERMISSION_TOOL = "swarm_permissions", "ask"
REFUSED = "refused by the program that started this run"


def asks(query: Query | None) -> bool:
    """Return True where the client's questions are answered by a function; elsewhere the client refuses by itself."""
    return query is not None and query.on_permission is not None and query.mode == EDIT


class PermissionServer:
    """The questions of one run, answered by `decide` in a thread for each. ``with`` it, `server` is its address.

    `tell` gets each question with its answer, in that thread, before the client does.
    """

    def __init__(
        self, decide: Callable[[PermissionRequest], Any], tell: Callable[[Event], object] = lambda _event: None
    ):
        self._decide, self._tell = decide, tell

        def ask(tool_name: str, input: dict[str, Any], tool_use_id: str = "", reason: str = "") -> str:
            """Ask the program that started this run if a tool may be called. For the client alone."""
            refused = decided(self._decide, PermissionRequest(tool_name, input, reason))
            self._tell(permission_asked(tool_use_id, tool_name, input, reason, refused))
            if refused is None:
                return json.dumps({"behavior": "allow", "updatedInput": input})
            return json.dumps({"behavior": "deny", "message": refused})

        self._tools = ToolServer((ask,))

    def __enter__(self) -> PermissionServer:
        self._tools.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tools.stop()

    @property
    def server(self) -> McpServer:
        """Return how a child reaches it."""
        return self._tools.server


def bridged(
    harness: str, folder: Path, query: Query, settings: dict[str, Any]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command line of the bridge of `harness` with these settings, and the secret for its questions."""
    secrets, address, server = {}, "", query.mcp_servers.get(PERMISSIONS)
    if server:
        address, secrets[bridge.TOKEN] = server.url, server.headers["Authorization"]
    path = written(folder / "bridge.json", json.dumps({**settings, "permissions": address}))
    return bridge.argv_of(harness, path), secrets


def refusal_in(line: dict[str, Any]) -> Event:
    """Return the event in a bridge's line about a question without an answer (``bridge.REFUSED``)."""
    call_id, name, reason = (str(line.get(key) or "") for key in ("tool_use_id", "tool_name", "reason"))
    return permission_asked(call_id, name, line.get("input"), reason, REFUSED)


def decided(decide: Callable[[PermissionRequest], Any], request: PermissionRequest) -> str | None:
    """Return why a request is refused, None for an allowed one. Only True allows; an exception refuses."""
    try:
        answer = decide(request)
        if inspect.isawaitable(answer):
            import asyncio

            async def waited() -> Any:
                return await answer

            answer = asyncio.run(waited())
    except Exception as error:
        import logging

        logging.getLogger("swarm_mcp.agents.harness").error("on_permission of a run has raised", exc_info=True)
        return f"{REFUSED}: {state.describe(error)}"
    if answer is True:
        return None
    return answer if isinstance(answer, str) and answer.strip() else REFUSED
