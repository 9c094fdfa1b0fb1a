"""Running an agent command line, and watching it on a screen."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

from swarm_hook_core.environment import identity, is_word
from swarm_hook_core.untrusted_text import one_line, safe
from swarm_mcp.agents.harness import events, narration, registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter, left_out, require_possible
from swarm_mcp.agents.harness.conclusion import fits
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.membership import Membership, RunRow
from swarm_mcp.agents.harness.narration import Narrator, Told, changes_in_words, named_of
from swarm_mcp.agents.harness.outcome import UNSUPPORTED, Cost, RunResult, Unsupported, answer_text
from swarm_mcp.agents.harness.prompting import filled, template_values, with_system_prompt
from swarm_mcp.agents.harness.query import Query, build_config, parse_json, parse_object, query_of
from swarm_mcp.agents.harness.query_types import checked
from swarm_mcp.agents.harness.registry import command_of
from swarm_mcp.agents.harness.run import Run, ended_by_signals
from swarm_mcp.agents.harness.servers import servers_in
from swarm_mcp.answers.people import short
from swarm_mcp.cli import terminal
from swarm_mcp.cli.arguments import (
    EFFORTS,
    FOLDERS,
    JSON,
    MODES,
    ROLES,
    SCOPE,
    WORKER,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.output import complain, encodable, refused, say_text, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause, count, dollars, span
from swarm_mcp.domain import CANCEL, ENDED, new_id
from swarm_mcp.domain import Run as RunRecord
from swarm_mcp.errors import Refused, SwarmError, UsageError
from swarm_mcp.folders import clean, here, scope_of
from swarm_mcp.runtimes import started_by
from swarm_mcp.store import Store

# Options of both `run` and `dispatch` for the agent they start: prompt, skills, servers, variables, schema.

OPTIONS = (
    Option("--system-prompt TEXT", "more instructions for the agent, after the harness's own"),
    Option("--skill DIR", "a folder with a SKILL.md for the agent", repeatable=True, source=FOLDERS),
    Option("--schema FILE", "a JSON schema that the answer is to follow"),
    Option("--env KEY=VALUE", "a variable for the agent alone", repeatable=True),
    Option(
        "--mcp-config FILE",
        "more MCP servers for the agent, as a .mcp.json has them; ${NAME} in it is one of --env, or of this shell",
        repeatable=True,
    ),
)


def skills(args: Arguments) -> tuple[str, ...]:
    """Return the folders of `--skill`, absolute."""
    return tuple(clean(folder) for folder in args.all("--skill"))


def schema(args: Arguments) -> dict[str, Any]:
    """Return the schema of `--schema`; empty if it is not given. Raises UsageError."""
    path = args.value("--schema")
    if not path:
        return {}
    return _object("--schema", path, "JSON schema")


def variables(args: Arguments) -> dict[str, str]:
    """Return the variables of `--env`. Raises UsageError."""
    return dict(_pair(text) for text in args.all("--env"))


def servers(args: Arguments) -> dict[str, Any]:
    """Return name -> entry of the servers in the files of `--mcp-config`, the later before the earlier.

    Raises UsageError.
    """
    found: dict[str, Any] = {}
    for path in args.all("--mcp-config"):
        tree = _object("--mcp-config", path, "list of servers")
        listed = tree.get("mcpServers")
        if not isinstance(listed, dict):
            raise UsageError(f'--mcp-config: {path} has no "mcpServers"')
        found.update(listed)
    return found


def text_of(flag: str, path: str) -> str:
    """Return the text of the file that a flag names. Raises UsageError."""
    try:
        with open(clean(path), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{flag}: {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _object(flag: str, path: str, what: str) -> dict[str, Any]:
    found = parse_json(text_of(flag, path))
    if not isinstance(found, dict) or not found:
        raise UsageError(f"{flag}: {path} holds no {what}")
    return dict(found)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError("--env wants KEY=VALUE")  # the value is left out: it may be a secret
    return name, value


# A run on a screen: its events in colour with the time of day, and a line of totals below.

BLUE, GREEN, YELLOW, RED, GRAY = "34", "32", "33", "31", "90"
MOST_LINES, MOST_CHARACTERS = 12, 400  # of a command, a patch or a result, and of a line of it
SHORT_CALL = 160  # characters of a call's first line
ERASE = "\r\x1b[K"
TIME_WIDTH = len("12:34:56  ")
PATCH = {"+": GREEN, "-": RED}
COLOURS = {
    narration.BEGINS: BLUE, narration.SAYS: GREEN, narration.IS_TOLD: BLUE, narration.CALLS: YELLOW,
    narration.FAILS: RED, narration.DENIED: RED, narration.ERROR: RED, narration.WARNS: YELLOW, narration.NOTES: BLUE,
    narration.ENDS: BLUE,
}  # fmt: skip
MARKS = {
    narration.THINKS: "thinking: ", narration.IS_TOLD: "user: ", narration.GETS: "<- ", narration.FAILS: "<- failed: ",
    narration.COMPLAINS: "stderr: ", narration.PRINTS: "",
}  # fmt: skip


class Counts:
    """Totals of a run so far: tool calls, tokens, cost; and its model."""

    def __init__(self) -> None:
        self.tools = 0
        self.tokens: int | None = None
        self.cost: float | None = None
        self.model = ""

    def add(self, event: Event) -> None:
        """Count one event more."""
        data = event.data
        if event.kind == events.SESSION_INIT:
            self.model = str(data.get("model") or self.model)
        elif event.kind == events.TOOL_START:
            self.tools += 1
        elif event.kind == events.CONTEXT_USAGE:
            used, cost = data.get("context_used_tokens"), data.get("cost_usd")
            if isinstance(used, int):
                self.tokens = used
            if isinstance(cost, (int, float)):
                self.cost = float(cost)
        elif event.kind == events.RESULT:
            cost = _cost(data)
            if isinstance(cost.get("total_cost_usd"), (int, float)):
                self.cost = cost["total_cost_usd"]
            self.model = str(cost.get("model") or self.model)
            counts = [cost.get(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")]
            if any(isinstance(count, int) for count in counts):
                self.tokens = sum(count for count in counts if isinstance(count, int))

    def words(self) -> list[str]:
        """Tool calls, tokens and US dollars so far, and the model; unknown parts are left out."""
        parts = [count(self.tools, "tool")]
        if self.tokens is not None:
            parts.append(f"{_amount(self.tokens)} tokens")
        return parts + self.price()

    def price(self) -> list[str]:
        """The cost in US dollars and the model; unknown parts are left out."""
        parts = []
        if self.cost is not None:
            parts.append(dollars(self.cost))
        if self.model:
            parts.append(one_line(self.model))
        return parts


class Live:
    """Writes the events of a run to `stream`. Every method may be called from any thread.

    Without `colour` (``NO_COLOR``) no escape sequence is written. `progress` keeps a line at the end of a terminal,
    which `tick` updates. `debug` also shows events without a meaning to people. The run works in `folder`, with `model`
    if that is known beforehand, and began at `began` (Unix seconds; 0: now).
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool,
        progress: bool = False,
        debug: bool = False,
        folder: str = "",
        model: str = "",
        began: float = 0.0,
    ):
        self.stream, self.colour, self.debug = stream, colour, debug
        self.progress = progress
        self.counts = Counts()
        self.counts.model = model
        self._narrator = Narrator(folder)
        self._began = time.monotonic()
        if began:
            self._began -= max(0.0, time.time() - began)
        self._day = time.strftime("%Y-%m-%d")
        self._last_call = 0
        self._ended: dict[str, Any] = {}
        self._below = ""
        self._guard = threading.RLock()
        self._closed = False

    @classmethod
    def at_terminal(cls, stream: TextIO, *, counts: bool = True, **more: Any) -> Live:
        """Return one for `stream`: in colour and with the line that `counts` where it is a terminal that has both."""
        shown = stream.isatty()
        colour = shown and not os.environ.get("NO_COLOR")
        if stream is sys.stdout:
            colour = terminal.wanted()
        moves = counts and shown and os.environ.get("TERM") != "dumb"
        return cls(stream, colour=colour, progress=moves, debug=bool(os.environ.get("SWARM_DEBUG")), **more)

    @property
    def is_closed(self) -> bool:
        """True after `close`, and after the stream has failed."""
        return self._closed

    def show(self, event: Event) -> None:
        """One event. Never raises for a stream that has gone."""
        with self._guard:
            self.counts.add(event)
            if event.kind == events.RESULT:
                self._ended = event.data
            for told in self._narrator.tell(event):
                text = self.text(told)
                if text:
                    self._write(self._cleared() + text)
            self.tick()

    def text(self, told: Told) -> str:
        """The lines for one part of the narration, with their ends; empty if it is not shown."""
        if told.kind == narration.UNKNOWN and not self.debug:
            return ""
        colour = COLOURS.get(told.kind, GRAY)
        lines = [self._paint(line, colour) for line in self._lines(told)]
        lines += [self._paint(line, PATCH.get(line[:1], GRAY)) for line in _cut(told.patch)]
        time_of_day = self._time_of_day(told.at)
        return "".join(
            f"{line}\n" for line in (time_of_day + lines[0], *(" " * TIME_WIDTH + line for line in lines[1:]))
        )

    def tick(self) -> None:
        """Bring the line below up to date."""
        with self._guard:
            if not self.progress or self._closed:
                return
            shown = self.status()
            if shown == self._below:
                return
            if self.colour:
                self._write(ERASE + shown)
            else:
                self._write(f"\r{shown:<{len(self._below)}}")
            self._below = shown

    def status(self) -> str:
        """Seconds since the start, and the totals so far."""
        return "  ".join([span(time.monotonic() - self._began), *self.counts.words()])

    def close(self) -> None:
        """Take the line below away; nothing is written any more."""
        with self._guard:
            self._write(self._cleared())
            self._closed = True

    # -- lines ----------------------------------------------------------------------------------------------

    def _lines(self, told: Told) -> list[str]:
        """The lines of one part of the narration, cut if they are too long; the agent's own words stay whole."""
        if told.kind == narration.SAYS:
            return safe(told.text).rstrip().split("\n")
        if told.kind == narration.ENDS:
            return [f"{told.text}{self._sum()}"]
        if told.kind == narration.CALLS:
            self._last_call = told.number
            first, _, rest = told.text.partition("\n")
            if len(first) > SHORT_CALL:
                first = first[:SHORT_CALL] + "..."
            return [one_line(f"#{told.number} {first}"), *_cut(rest.split("\n") * bool(rest))]
        if told.kind not in MARKS:
            return [one_line(told.text)]
        mark = MARKS[told.kind]
        if told.number and told.number != self._last_call:
            mark = mark.replace("<-", f"<- #{told.number}")  # another call has begun since
        first, *more = _cut(told.text.rstrip().split("\n"))
        return [mark + first, *(" " * len(mark) + line for line in more)]

    def _sum(self) -> str:
        """The duration and the totals of the run, for its last line."""
        cost, took = _cost(self._ended), self._ended.get("duration_ms")
        counts: list[str] = []
        if self.counts.tools:
            counts.append(count(self.counts.tools, "tool"))
        if self._narrator.denials:
            counts.append(f"{self._narrator.denials} denied")
        for name, key in (("in", "input_tokens"), ("out", "output_tokens"), ("cached", "cache_read_tokens")):
            if isinstance(cost.get(key), int):
                counts.append(f"{name} {_amount(cost[key])}")
        line = ""
        if isinstance(took, (int, float)):
            line = f" in {span(took / 1000)}"
        return line + clause(": {}", ", ".join(counts + self.counts.price()))

    def _time_of_day(self, at: float) -> str:
        """The time in front of a line; before it the day, in a line of its own, where that is another."""
        if not at:
            return " " * TIME_WIDTH
        then = time.localtime(at)
        day, before = time.strftime("%Y-%m-%d", then), self._day
        self._day = day
        line = f"{self._paint(time.strftime('%H:%M:%S', then), GRAY)}  "
        if day != before:
            line = f"{day}\n{line}"
        return line

    def _paint(self, text: str, colour: str) -> str:
        if self.colour and text:
            return f"\x1b[{colour}m{text}\x1b[0m"
        return text

    def _cleared(self) -> str:
        below, self._below = self._below, ""
        if not below:
            return ""
        if self.colour:
            return ERASE
        return f"\r{' ' * len(below)}\r"

    def _write(self, text: str) -> None:
        if self._closed or not text:
            return
        try:
            self.stream.write(encodable(text, self.stream))
            self.stream.flush()
        except (OSError, ValueError):
            self._closed = True  # the terminal is gone; the run goes on


def _cut(lines: Sequence[str]) -> list[str]:
    """The first lines, each cut where it is too long, and how many there are besides."""
    shown = [safe(line[:MOST_CHARACTERS]) + "..." * (len(line) > MOST_CHARACTERS) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... {len(lines) - MOST_LINES} lines more")
    return shown


def _amount(number: int) -> str:
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.1f}k"
    return f"{number / 1e6:.1f}M"


def _cost(data: dict[str, Any]) -> dict[str, Any]:
    """Return the cost in the data of an event; empty if it has none."""
    cost = data.get("cost")
    if isinstance(cost, Cost):
        return cost.to_dict()
    if isinstance(cost, dict):
        return cost
    return {}


TIMED_OUT, NOT_POSSIBLE = 124, 125  # the first as timeout(1) has it
POLL_SECONDS = 0.25
DEFAULT_ROLE = "run"  # not to be taken for a session that waits for work


@verb(
    Usage(
        Word("PROMPT", "the prompt; - reads it from standard input", optional=True, repeated=True),
        Option(
            "--harness NAME",
            "claude, codex, pi, ..., as in `swarm-mcp worker harness list` (default: HARNESS_PROVIDER, else claude)",
            source=(),
        ),
        Option("--watch", "show the events as they happen; at a terminal with a line of totals"),
        Option("--model M", "the model, as the harness names it", source=()),
        Option(
            "--mode MODE",
            "read-only may write no file, edit (default) may, yolo skips the harness's own checks; locks hold in all"
            " three",
            source=MODES,
        ),
        Option("--effort LEVEL", "how much to think: low, medium, high or max", source=EFFORTS),
        Option("--timeout S", "end it after S seconds (default: no limit)"),
        Option("--grace S", "time between TERM and KILL (default: 15)"),
        Option("--max-cost USD", "end it once it has cost that much"),
        Option("--max-turns N", "end it once the model has answered N times"),
        Option("--directory DIR", "where it works (default: here)", source=FOLDERS),
        Option(
            "--command WORDS",
            "the command of the harness `process`; for other harnesses, a command instead of their own",
        ),
        Option("--resume SESSION", "continue a session: its id, or the id of a run (swarm-mcp worker runs)", source=()),
        Option("--fork", "leave the session of --resume as it is, and continue a copy of it"),
        Option("--add-dir DIR", "one more folder that it may work in", repeatable=True, source=FOLDERS),
        Option(
            "--template FILE",
            "the prompt is this text, in which {{message}} is PROMPT; {{agentId}}, {{runId}}, {{run.cwd}}, ... as in a"
            " worker's",
        ),
        *OPTIONS,
        Option("--role ROLE", "its role among the other sessions (default: run)", source=ROLES),
        Option("--label TEXT", "more words for its label"),
        SCOPE,
        JSON,
    ),
    group=WORKER,
)
def run(args: Arguments) -> int:
    """run: run an agent on one prompt, and print its answer

    The agent is registered as a session of its own, and locks apply to it. While it works, standard error shows that;
    at a terminal with the totals so far. --json prints all facts about the run, and --watch then shows the events on
    standard error. Ctrl-C ends the agent with all its processes.

    If the harness lacks an ability that protects you (mode, limits, schema), the run is refused before it starts; for
    other missing abilities a line on standard error says that the option is left out. `swarm-mcp worker harness list`
    shows the abilities of each.

    Exit 0 for success, 1 for a failure (one line has the reason), 124 after --timeout, 125 if the harness lacks an
    ability, 130 interrupted.

    example: swarm-mcp worker run --watch --mode read-only "What is the oldest open question in SPEC.md?"
    """
    adapter = registry.get(args.value("--harness"))
    query = checked(_query(args, adapter))
    try:
        require_possible(adapter, query)
    except Unsupported as refusal:
        refused(args, "run", refusal.answer)
        return NOT_POSSIBLE
    for line in left_out(adapter, query):
        complain(f"swarm-mcp run: {line}")
    previous = None
    if args.value("--resume"):
        query, previous = _resumed(args, adapter, query)
    result, ended_by = _supervised(args, adapter, query, previous)
    was_shown = args.given("--watch") and result.output and result.result_json is None
    if args.json:
        show(result.to_dict())
    elif result.is_error:
        complain(f"swarm-mcp run: {result.error_category}: {one_line(result.error_message or '')}"
                 f" (swarm-mcp worker logs {result.run_id[:8]})")  # fmt: skip
    elif not was_shown:
        say_text(answer_text(result).rstrip("\n"))
    if ended_by:
        return 128 + ended_by
    if result.error_category == UNSUPPORTED:
        return NOT_POSSIBLE
    if result.timed_out:
        return TIMED_OUT
    return int(result.is_error)


# -- the query --------------------------------------------------------------------------------------


def _query(args: Arguments, adapter: HarnessAdapter) -> Query:
    """Return the query of this command line. Raises SwarmError."""
    cwd = clean(args.value("--directory") or here())
    role = args.value("--role").strip().lower() or DEFAULT_ROLE
    if not is_word(role):
        raise UsageError(f"{role[:40]!r} is not a role (letters, digits, _ . -)")
    if args.given("--fork") and not args.value("--resume"):
        raise UsageError("--fork wants --resume SESSION")
    env = variables(args)
    config = build_config({
        "cwd": cwd,
        "model": args.value("--model"),
        "mode": args.value("--mode"),
        "effort": args.value("--effort"),
        "append_system_prompt": args.value("--system-prompt"),
        "timeout_seconds": args.seconds("--timeout"),
        "max_cost_usd": args.seconds("--max-cost"),
        "max_turns": args.number("--max-turns"),
        "grace_seconds": args.seconds("--grace", 15.0),
        "output_schema": schema(args),
        "skills": skills(args),
        "additional_directories": tuple(clean(folder) for folder in args.all("--add-dir")),
        "mcp_servers": servers_in(servers(args), {**os.environ, **env}),
        "env": env,
    })  # fmt: skip
    query = query_of(_prompt(args), config)._replace(
        fork_session=args.given("--fork"),
        command=_command(args, adapter),
        instance_id=new_id(),
        run_id=new_id(),
        scope=scope_of(cwd, args.value("--scope") or os.environ.get("SWARM_MCP_SCOPE", "")),
        role=role,
    )
    labels = [clause("identity:{}", identity("MCP")), "platform:cli", f"role:{role}",
              f"origin:{started_by(adapter.name)}", f"run:{short(query.run_id)}", args.value("--label")]  # fmt: skip
    query = query._replace(label=" ".join(" ".join(labels).split()))
    if not args.value("--template"):
        return query
    template = text_of("--template", args.value("--template"))
    return query._replace(prompt=filled(template, template_values(query, adapter.name, message=query.prompt)))


def _command(args: Arguments, adapter: HarnessAdapter) -> tuple[str, ...]:
    """Return the words that start the harness; empty for its own name."""
    settings = {}
    if args.value("--command"):
        settings["command"] = args.value("--command")
    words = command_of(adapter, settings)
    if words == (adapter.program,):
        return ()
    return words


def _prompt(args: Arguments) -> str:
    if args.words == ["-"]:
        if sys.stdin is None:
            raise UsageError("standard input is closed")
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    if not args.words and not args.value("--command"):
        raise UsageError("missing the prompt: swarm-mcp worker run PROMPT..., or - for standard input")
    return " ".join(args.words)


def _resumed(args: Arguments, adapter: HarnessAdapter, query: Query) -> tuple[Query, dict[str, Any] | None]:
    """Return the query, continuing the session of --resume, and the facts known about that session. Raises Refused."""
    reference = args.value("--resume").strip()
    with Store(read_only=True) as store:
        try:
            row = store.runs.find(query.scope, reference)
        except Refused:  # it may be the id of a session
            if not fits(adapter, reference):
                raise SwarmError(f"{reference[:60]!r} is neither a run here nor a session of {adapter.name}") from None
            # Its last run here recorded its folder and its cost.
            return query._replace(resume_session_id=reference), store.runs.of_session(adapter.name, reference)
    params = row.session_params
    if not params:
        raise SwarmError(f"run {row.id} has no session that could be resumed")
    if params.get("harness", adapter.name) != adapter.name:
        raise SwarmError(f"that session is one of {params['harness']}: add --harness {params['harness']}")
    return query._replace(resume_session_id=str(params.get("session_id") or "")), params


# -- the run ----------------------------------------------------------------------------------------


def _say_lost_session(event: Event) -> None:
    """Print on standard error that the session of --resume is not continued, with any output option."""
    if event.kind == "error" and event.data.get("category") == "session_not_found":
        complain(f"swarm-mcp run: {one_line(str(event.data.get('message')))}")


def _say_dead_servers(event: Event) -> None:
    """Print on standard error the MCP servers that did not start, with any output option."""
    if event.kind == events.CUSTOM and str(event.data.get("name")).endswith(".mcp_failed"):
        told = event.data["data"]
        for server in [told] if isinstance(told, dict) else told:
            why = one_line(str(server.get("error") or "its client does not say why"))
            complain(f"swarm-mcp run: the MCP server {one_line(str(server.get('name')))} did not start: {why}")


def _supervised(
    args: Arguments, adapter: HarnessAdapter, query: Query, previous: dict[str, Any] | None
) -> tuple[RunResult, int]:
    """Run the agent; return the result, and the number of the signal that ended the run (0 for none)."""
    spec = {
        "id": query.run_id,
        "scope": query.scope,
        "harness": adapter.name,
        "model": query.model or None,
        "cwd": query.cwd,
        "requester": os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip() or None,
    }
    member = Membership(spec, query.label, query.instance_id)
    run = Run(adapter, with_system_prompt(query, adapter), membership=member, previous=previous)
    member.spec["record"] = run.record
    run_row = RunRow(query.run_id)
    run.on_event(run_row.note)
    display: WatchedRun | CountedRun = CountedRun(args.json, query.run_id, adapter.name)
    if args.given("--watch"):
        display = WatchedRun(args.json, query.cwd, adapter.model(query))
    run.on_event(display.note)
    run.on_event(_say_lost_session)
    run.on_event(_say_dead_servers)
    try:
        with ended_by_signals(run) as caught:
            run.start()
            while (result := run.wait(POLL_SECONDS)) is None:
                if run.child:
                    run_row.begun()
                    display.tick()
                if run_row.asked() == CANCEL:
                    run.abort("cancelled")
    except BaseException:
        run.abort("its supervisor failed")
        run.wait()
        raise
    finally:
        display.close()
    run_row.close(result)
    return result, sum(caught[:1])


class CountedRun:
    """A run without --watch: one step on standard error, with totals at a terminal."""

    def __init__(self, as_json: bool, run_id: str, harness: str):
        self._progress = Progress(as_json, aside=True, margin="swarm-mcp run: ")
        self._counts, self._has_begun = Counts(), False
        self._words = f"{harness} is working (swarm-mcp worker logs {run_id[:8]} -f)"

    def note(self, event: Event) -> None:
        """Count one event."""
        self._counts.add(event)

    def tick(self) -> None:
        """Update the line."""
        if not self._has_begun:
            self._has_begun = True
            self._progress.begin(self._words)
        self._progress.note("  ".join([self._words, *self._counts.words()]))

    def close(self) -> None:
        """Take the line away."""
        self._progress.end()
        self._progress.__exit__()


class WatchedRun:
    """A run with --watch: every event, and at a terminal a line of totals below."""

    def __init__(self, as_json: bool, folder: str, model: str):
        stream = sys.stdout
        if as_json:
            stream = sys.stderr
        self._live = stream and Live.at_terminal(stream, folder=folder, model=model)

    def note(self, event: Event) -> None:
        """Show one event."""
        if self._live:
            self._live.show(event)

    def tick(self) -> None:
        """Update the line of totals."""
        if self._live:
            self._live.tick()

    def close(self) -> None:
        """Take the line of totals away."""
        if self._live:
            self._live.close()


# The outcome of a worker's task in lines for people: report, changes, tests, cost.


def report_lines(result: str | None) -> list[str]:
    """Return the lines of a task's result: one for each part of a report (``complete_task``), else its own lines."""
    text = (result or "").strip()
    if not text:
        return []
    report = parse_object(text)
    if not isinstance(report.get("summary"), str):
        return text.split("\n")
    lines = [*report["summary"].strip().split("\n")]
    files, followups = _texts(report.get("files_changed")), _texts(report.get("followups"))
    if files:
        lines.append(f"files it names: {named_of(files)}")
    tests = report.get("tests")
    if not isinstance(tests, list):
        tests = []
    for test in tests:
        if isinstance(test, dict):
            notes = clause(" ({})", test.get("notes"))
            lines.append(
                f"tests {test.get('status') or 'unknown'}: {test.get('command') or '(unknown command)'}{notes}"
            )
    return [*lines, *(f"left to do: {text}" for text in followups)]


def run_lines(row: RunRecord) -> list[str]:
    """Return lines on the changes, duration and cost of a run; unknown parts are left out."""
    if row.state != ENDED:
        return [f"its worker has not ended yet; swarm-mcp worker logs {short(row.id)} -f"]
    result = row.result or {}
    lines = changes_in_words(result.get("changes"))
    return [*lines, f"{_taken(row, result)}; swarm-mcp worker logs {short(row.id)}"]


def _taken(row: RunRecord, result: dict[str, Any]) -> str:
    usage = row.usage or {}
    known = (("input", "in"), ("output", "out"), ("cached", "cached"))
    tokens = [f"{usage[name]} tokens {words}" for name, words in known if isinstance(usage.get(name), int)]
    took, parts = result.get("duration_ms"), []
    if isinstance(took, (int, float)):
        parts.append(f"took {span(took / 1000)}")
    if row.model:
        parts.append(row.model)
    return ", ".join([*parts, *tokens, f"cost {dollars(row.cost_usd)}"])


def _texts(found: object) -> list[str]:
    if not isinstance(found, list):
        return []
    return [text for text in found if isinstance(text, str)]
