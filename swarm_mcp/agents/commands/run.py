"""Running an agent command line."""

from __future__ import annotations

import os
import sys
from typing import Any

from swarm_hook_core.environment import identity, is_word
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.agents.commands import run_options
from swarm_mcp.agents.commands.live import Counts, Live
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.checks import command_of
from swarm_mcp.agents.harness.errors import Unsupported
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.membership import Membership, RunRow
from swarm_mcp.agents.harness.outcome import UNSUPPORTED, RunResult, answer_text
from swarm_mcp.agents.harness.prompting import filled, template_values, with_system_prompt
from swarm_mcp.agents.harness.query import Query, build_config, query_of
from swarm_mcp.agents.harness.query_types import checked
from swarm_mcp.agents.harness.requirements import left_out, require_possible
from swarm_mcp.agents.harness.resumption import fits
from swarm_mcp.agents.harness.run import Run, ended_by_signals
from swarm_mcp.agents.harness.servers import servers_in
from swarm_mcp.answers.views import short
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
from swarm_mcp.cli.output import complain, refused, say_text, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.run import CANCEL
from swarm_mcp.errors import Refused, SwarmError, UsageError
from swarm_mcp.folders import clean, here, scope_of
from swarm_mcp.runtimes import started_by
from swarm_mcp.store import Store

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
        *run_options.OPTIONS,
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
    env = run_options.variables(args)
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
        "output_schema": run_options.schema(args),
        "skills": run_options.skills(args),
        "additional_directories": tuple(clean(folder) for folder in args.all("--add-dir")),
        "mcp_servers": servers_in(run_options.servers(args), {**os.environ, **env}),
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
    template = run_options.text_of("--template", args.value("--template"))
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
