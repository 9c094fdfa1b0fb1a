"""The command `swarm-mcp worker loop`: one run of the agent, and what it tells of its parts.

A run: a prompt in, an answer out, an exit code. Each stage names the next; a stage without a next ends the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, NamedTuple, NoReturn, TextIO

from swarm_hook_core.untrusted_text import safe
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Price
from swarm_mcp.agents.loop import prompts, protocols, providers, session, settings, stages, tools
from swarm_mcp.agents.loop.prompts import structured
from swarm_mcp.agents.loop.protocols import Reply
from swarm_mcp.agents.loop.session import ModelCall, Session, model_call, scrub, scrub_data
from swarm_mcp.agents.loop.settings import FAILED, MODEL_FAILED, STOPPED, TOO_LONG, LoopFailure, LoopRun, LoopSettings
from swarm_mcp.agents.loop.stages import StageFailed
from swarm_mcp.agents.loop.swarm_session import SwarmSession
from swarm_mcp.agents.loop.tools import Servers
from swarm_mcp.errors import UsageError

# The output of a run: words as the bash harness prints them, or our events, one JSON line each.

SHOWN_ARGUMENTS = 160


class Report:
    """The words of a run: the answer on standard output, its progress on standard error.

    At a terminal the model's text is shown as it comes, and its tokens and cost at the end. `session_id` is set once
    there is a session; `cost` is the cost so far.
    """

    def __init__(self) -> None:
        self.session_id = ""
        self.cost = Cost()
        self._model = self._provider = ""
        self._is_live = sys.stdout is not None and sys.stdout.isatty()
        # The unfinished word, this answer's text, and the last finished answer's text.
        self._coming = self._said = self._shown = ""
        self._writing = threading.RLock()

    def session(self, session: Session, settings: LoopSettings, tools: list[str], is_new: bool) -> None:
        """Report that a session begins or goes on."""
        self.session_id, self._model, self._provider = session.id, settings.model, settings.provider
        self.cost = self.cost._replace(model=settings.model)
        if is_new:
            self._note(f"session: {session.id}")
            self._note(f"provider: {settings.provider}")
            self._note(f"model: {settings.model}")

    def text(self, piece: str) -> None:
        """Report a piece of the model's text. Whole words are shown, so that secrets in them are found."""
        if not self._is_live:
            return
        with self._writing:
            whole = self._coming + piece
            ready = max(whole.rfind(" "), whole.rfind("\n")) + 1
            self._coming = whole[ready:]
            self._say(whole[:ready])

    def answered(self, reply: Reply, price: Price | None = None) -> None:
        """Report an answer of the model; `price` is its provider's own."""
        self.cost = providers.together(self.cost, providers.of_answer(reply, self._provider, price, self._model))
        if self._is_live:
            with self._writing:
                if not self._said and not self._coming:  # it came as a whole
                    self._say("".join(block.text for block in reply.blocks if block.kind == "text"))
                self._end_line()

    def tool_start(self, made: ModelCall) -> None:
        """Report that a tool is called."""
        shown = json.dumps(made.input, ensure_ascii=False)
        self._note(f"── {made.name} {shown if len(shown) <= SHOWN_ARGUMENTS else shown[: SHOWN_ARGUMENTS - 1] + '…'}")

    def tool_end(self, call_id: str, name: str, result: str, is_error: bool) -> None:
        """Report that a tool call is over."""
        if is_error:
            self._note(f"   {name}: {(result.strip().splitlines() or ['failed'])[0][:SHOWN_ARGUMENTS]}")

    def retry(self, message: str, category: str, not_before: float | None) -> None:
        """Report that the model is asked again."""
        self._note(f"asking again: {message}")

    def custom(self, name: str, data: dict[str, Any]) -> None:
        """Report anything else."""
        self._note(f"{name}: {' '.join(f'{key}={value}' for key, value in data.items())}")

    def ended(self, ended: Any) -> None:
        """Report how the run ended."""
        if ended.error:
            self._note(f"error: {ended.error}")
        if ended.output and not (self._is_live and safe(scrub(ended.output)).split() == self._shown.split()):
            _print(safe(ended.output) if self._is_live else ended.output, sys.stdout)
        if self._is_live and self.cost.num_turns:
            self._note(took(self.cost))

    def _say(self, text: str) -> None:
        text = safe(scrub(text))
        self._said += text
        _print(text, sys.stdout, "")

    def _end_line(self) -> None:
        """End the line of the model's text."""
        if self._coming:
            self._say(self._coming)
        if self._said and not self._said.endswith("\n"):
            _print("", sys.stdout)
        if self._said:
            self._shown = self._said
        self._coming = self._said = ""

    def _note(self, line: str) -> None:
        with self._writing:
            if self._is_live:
                self._end_line()
            _print(safe(scrub(line)) if self._is_live else scrub(line), sys.stderr)


class JsonReport(Report):
    """The events."""

    def __init__(self) -> None:
        super().__init__()
        self._is_live = False
        self._by_schema = False
        self._open: dict[str, str] = {}

    def session(self, session: Session, settings: LoopSettings, tools: list[str], is_new: bool) -> None:
        self.session_id, self._model, self._provider = session.id, settings.model, settings.provider
        self.cost = self.cost._replace(model=settings.model)
        self._by_schema = bool(settings.config.get("output_schema"))
        more = {"model": settings.model, "cwd": session.cwd, "tools": tools, "provider": settings.provider}
        self._put(events.session_init(session.id, **more))

    def answered(self, reply: Reply, price: Price | None = None) -> None:
        super().answered(reply, price)
        for block in reply.blocks:
            if block.kind == "text":
                self._put(events.message("assistant", block.text))
            elif block.kind == "thinking" and block.text:
                self._put(events.message("assistant", block.text, thinking=True))
        usage = reply.usage
        known = [usage[name] for name in ("input", "cache_read", "cache_write") if usage.get(name) is not None]
        facts: dict[str, Any] = {"context_used_tokens": sum(known) if known else None, "context_total_tokens": None}
        facts.update(context_percent=None, output_tokens=usage.get("output"), spent=self.cost.to_dict())
        # Turns the loop counts itself.
        facts.update(cost_usd=self.cost.total_cost_usd, goes_on=any(block.call for block in reply.blocks))
        self._put(Event(events.CONTEXT_USAGE, facts))

    def tool_start(self, made: ModelCall) -> None:
        self._open[made.id] = made.name
        self._put(events.tool_start(made.id, made.name, made.input))

    def tool_end(self, call_id: str, name: str, result: str, is_error: bool) -> None:
        self._open.pop(call_id, None)
        self._put(events.tool_end(call_id, name, result, is_error))

    def retry(self, message: str, category: str, not_before: float | None) -> None:
        self._put(events.retry("loop.retry", {}, message, category, not_before))

    def custom(self, name: str, data: dict[str, Any]) -> None:
        self._put(events.custom(f"loop.{name}", data))

    def ended(self, ended: Any) -> None:
        for call_id, name in list(self._open.items()):
            self.tool_end(call_id, name, ended.error or "no result", True)
        if ended.error:
            self._put(events.error(ended.error, ended.category))
        output = ended.output or None
        more: dict[str, Any] = {"cost": self.cost.to_dict()}
        if self._by_schema and output:
            more["structured"] = structured(output)
        if ended.retry_not_before:
            more["retry_not_before"] = ended.retry_not_before
        self._put(events.result(output, bool(ended.error), ended.category if ended.error else None, **more))

    def _put(self, event: Event) -> None:
        line = json.dumps(scrub_data(event._replace(at=time.time()).to_dict()), ensure_ascii=False)
        with self._writing:
            _print(line, sys.stdout)


def took(cost: Cost) -> str:
    """Return tokens and time of a run in words, with dollars if they are known."""
    if cost.num_turns == 1:
        answers = "1 answer"
    else:
        answers = f"{cost.num_turns} answers"
    given = [cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens]
    words = [answers]
    if any(count is not None for count in (*given, cost.output_tokens)):
        words.append(f"{sum(count or 0 for count in given):,} tokens in, {cost.output_tokens or 0:,} out")
    if cost.total_cost_usd is not None:
        words.append(f"${cost.total_cost_usd:.4f}")
    return ", ".join(words)


def _print(line: str, to: TextIO, end: str = "\n") -> None:
    try:
        to.write(line.encode(getattr(to, "encoding", None) or "utf-8", "replace").decode("utf-8", "replace") + end)
        to.flush()
    except (OSError, ValueError):
        return  # the reader has gone; the session is written down all the same


STEPS_PER_TURN = 3


class Ended(NamedTuple):
    """The end of a run: its text, and after a failure the error's text, category and exit code."""

    output: str
    error: str = ""
    category: str = ""
    exit_code: int = 0
    retry_not_before: float | None = None


def _follow(loop: LoopRun) -> Ended:
    """Go from ``start`` to the end; return how it ended."""
    state, steps = "start", 0
    context: dict[str, Any] = {}
    failure: dict[str, Any] = {}
    while True:
        try:
            result = _stage(loop, state, context)
        except StageFailed as failed:
            if state == "error":
                return _failed(failure)
            state, context, failure = "error", failed.context, failed.context
            continue
        following = result.pop("next_state", None)
        if not following or not isinstance(following, str):
            if failure:
                return _failed(failure)
            return Ended(str(result.get("output") or ""))
        if following == "error":
            failure = result
        elif following != "done":
            failure = {}  # a hook of the stage error has dealt with it
        state, context = following, result
        steps += 1
        if steps > loop.settings.max_turns * STEPS_PER_TURN:
            text = f"stopped after {steps - 1} steps (HARNESS_MAX_TURNS={loop.settings.max_turns})"
            loop.log(f"[harness] safety: {text}")
            return Ended("", text, "budget", TOO_LONG)


def _failed(context: dict[str, Any]) -> Ended:
    text = str(context.get("error") or context.get("output") or "a hook failed").removeprefix("error: ")
    code = context.get("exit_code")
    code, later = code if isinstance(code, int) else FAILED, context.get("retry_not_before")
    return Ended("", text, str(context.get("category") or "unknown"), code, later if isinstance(later, float) else None)


def _stage(loop: LoopRun, name: str, context: dict[str, Any]) -> dict[str, Any]:
    """Run one stage, after looking for plugins anew. Raises StageFailed."""
    _refresh(loop)
    return stages.run(loop, name, context, stages.OURS.get(name, {}))


def _refresh(loop: LoopRun) -> None:
    """Look for plugins anew."""
    loop.sources = tools.packs(loop.settings.root)
    if os.path.isdir(loop.settings.home):
        loop.sources.append(loop.settings.home)
    found = stages.run(loop, "sources", {}, stages.OURS["sources"]).get("sources")
    if isinstance(found, list):
        loop.sources = [str(path) for path in found]


class Stopped(BaseException):
    """A signal has asked this process to end."""


class Wishes(NamedTuple):
    """The options of a command line; an empty one leaves the choice to the environment."""

    mode: str = ""
    model: str = ""
    schema: dict[str, Any] = {}


def run(words: list[str], wishes: Wishes, *, as_json: bool = False, resume: str = "") -> int:
    """Carry out ``[SESSION] [WORDS]`` and return the exit code. The prompt is the words, else standard input.

    With `resume`, or where the first word is a session's id, that session continues. An unknown session is an error.
    """
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        report: Report = Report()
        if as_json:
            report = JsonReport()
        ended = carry_out(words, resume, wishes, report)
        report.ended(ended)
        return ended.exit_code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def carry_out(words: list[str], resume: str, wishes: Wishes, report: Report) -> Ended:
    """Carry out one prompt, and return how it ended; nothing is raised."""
    try:
        return _run(words, resume, wishes, report)
    except StageFailed as failed:
        code = failed.context.get("exit_code")
        text, category = str(failed.context.get("error")), str(failed.context.get("category") or "unknown")
        return Ended("", text, category, code if isinstance(code, int) else 1, failed.context.get("retry_not_before"))
    except LoopFailure as error:
        return Ended("", str(error), error.category, error.exit_code, error.retry_not_before)
    except Stopped:  # a person ended it
        return Ended("", "the run was ended from outside", "aborted", STOPPED)
    except KeyboardInterrupt:  # a person ended it
        return Ended("", "interrupted", "aborted", 130)


def _run(words: list[str], resume: str, wishes: Wishes, report: Report) -> Ended:
    settings = LoopSettings(tools.root())
    settings.model = wishes.model or settings.model
    if wishes.mode:
        settings.config["mode"] = wishes.mode
    if wishes.schema:
        settings.config["output_schema"] = wishes.schema
    _learn_secrets(settings.config.get("mcp_servers"))
    if not resume and words and session.PATTERN.match(words[0]):
        resume, words = words[0], words[1:]
    if resume:
        known = session.find(settings.sessions, resume)
    else:
        known = None
    if known and settings.config.get("fork"):
        known = session.fork(settings.sessions, known)
    if words:
        prompt = " ".join(words)
    elif sys.stdin is None or sys.stdin.isatty():
        prompt = ""
    else:
        prompt = sys.stdin.read()
    if not prompt.strip() and not known:
        raise LoopFailure("the task is missing: swarm-mcp worker loop [SESSION] WORDS, or the words on standard input")
    loop = LoopRun(settings, report, known.cwd if known else settings.folder, SwarmSession(), Servers())
    try:
        _resolve(loop, known)
        loop.session = known or session.create(
            settings.sessions, settings.folder, settings.model, settings.provider,
            os.environ.get("HARNESS_PARENT_SESSION", ""),
        )  # fmt: skip
        loop.session.remember(model=settings.model, provider=settings.provider)
        report.session(loop.session, settings, _tools(loop), not known)
        if prompt.strip():
            loop.session.add("user", prompts.with_skill(loop, prompt))
        try:
            ended = _follow(loop)
        finally:
            loop.session.stream("done")
            loop.swarm.leave()
    finally:
        loop.servers.close()
        loop.reaper.close()
    if wishes.schema and not ended.error:
        wrong = prompts.mismatched(settings, ended.output)
    else:
        wrong = ""
    if wrong:
        return Ended(ended.output, f"the answer does not follow the schema: {wrong}", "schema_mismatch", MODEL_FAILED)
    return ended


def _resolve(loop: LoopRun, known: session.Session | None) -> None:
    """Choose provider and model: from the environment, else from the session, else the first that is ready."""
    settings = loop.settings
    _refresh(loop)
    asked = {"provider": settings.provider, "model": settings.model}
    if known and not settings.provider and _is_ready(loop, known.conf.get("provider", "")):
        asked = {"provider": known.conf["provider"], "model": settings.model or known.conf.get("model", "")}
    found = _stage(loop, "resolve", asked)
    settings.provider, settings.model = str(found.get("provider") or ""), str(found.get("model") or "")
    if loop.provider is None or loop.provider.name != settings.provider:
        loop.provider = providers.resolve(settings.provider, loop.sources, loop.environment("resolve"))


def _is_ready(loop: LoopRun, name: str) -> bool:
    try:
        found = providers.resolve(name, loop.sources, loop.environment("resolve"))
    except LoopFailure:  # the environment names no usable provider
        return False
    return bool(found.path) or not found.protocol.missing({**loop.environment("resolve"), **found.more})


def _tools(loop: LoopRun) -> list[str]:
    names = {*stages.found(loop), *tools.NAMES}
    return sorted(names & tools.READERS if loop.settings.read_only else names)


def _learn_secrets(servers: object) -> None:
    listed: list[Any] = []
    if isinstance(servers, dict):
        listed = list(servers.values())
    found = [server.get(part) for server in listed if isinstance(server, dict) for part in ("env", "headers")]
    session.learn(*(part for part in found if isinstance(part, dict)))


def _stop(*_signal: object) -> None:
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)  # a second one must not keep us from leaving in order
    raise Stopped


# The other commands of `swarm-mcp worker loop`.


DESCRIBED = {
    "agent": "run the agent (default)",
    "session": "list | show ID | dir [ID]",
    "tools": "the tools there are, and where they come from",
    "hooks": "the hooks of every stage, in the order they run",
    "help": "commands, providers and their variables",
    "version": "which version this is",
}


def prepared() -> LoopRun:
    """Return a run that asks no model, to look at its parts."""
    settings = LoopSettings(tools.root())
    loop = LoopRun(settings, Report(), settings.folder)
    _refresh(loop)
    return loop


def override(name: str, loop: LoopRun) -> str:
    """Return a plugin's executable for this command, or an empty text."""
    return tools.executables(loop.sources, "commands").get(name, "")


def execute(path: str, words: list[str], loop: LoopRun) -> NoReturn:
    """Become the executable `path`."""
    os.execve(path, [path, *words], loop.environment())


def show_session(words: list[str]) -> list[str]:
    """Return the lines of ``session list | show ID | dir [ID]``."""
    settings = LoopSettings()
    verb, session_id = (words + ["list"])[0], (words + ["", ""])[1]
    if verb == "list":
        return session.ids(settings.sessions) or ["(no sessions)"]
    if verb == "dir":
        return [session.find(settings.sessions, session_id).path if session_id else settings.sessions]
    if verb != "show" or not session_id:
        raise UsageError("usage: swarm-mcp worker loop session list | show ID | dir [ID]")
    found = session.find(settings.sessions, session_id)
    names = sorted(name for name in os.listdir(found.folder) if name.endswith(".md"))
    return [*(f"{name}={value}" for name, value in found.conf.items()), f"messages={len(names)}", *names]


def show_tools(loop: LoopRun) -> list[str]:
    """Return a line for each tool: its name, its source, its purpose."""
    paths = stages.found(loop)
    lines = []
    for name in sorted({*paths, *tools.NAMES}):
        path = paths.get(name)
        if stages.is_ours(loop, name, path):
            lines.append(f"{name:<14} (built in)  {tools.schema(name)['description']}")
        else:
            lines.append(f"{name:<14} {path}  {_said(str(path), loop)}")
    return lines


def show_hooks(loop: LoopRun) -> list[str]:
    """Return every stage with its hooks."""
    lines = []
    for stage in stages.STAGES:
        found = stages.hooks_of(stage, loop.sources, stages.OURS[stage])
        lines += [stage, *(f"  {name:<16} {stages.described(hook)}" for name, hook in found.items())]
    return lines


def show_help(loop: LoopRun) -> list[str]:
    """Return the lines of the help: commands, providers, variables."""
    environ = loop.environment()
    lines = ["usage: swarm-mcp worker loop [COMMAND] [SESSION] [WORDS] [--json]", "", "commands:"]
    for name in sorted({*DESCRIBED, *tools.executables(loop.sources, "commands")}):
        path = override(name, loop)
        said = DESCRIBED.get(name, "")
        if path:
            said = _said(path, loop)
        lines.append(f"  {name:<10} {said}")
    lines += ["", "providers:"]
    for name in tools.BUILT_IN_PROVIDERS:
        protocol = providers.built_in(name)
        missing = providers.missing(name, environ)
        if missing:
            state = f"needs {missing}"
        else:
            state = "ready"
        lines += [f"  {name:<10} {protocol.label} ({state}; model {protocol.default_model})"]
        lines += [f"      {line}" for line in protocol.env.splitlines()]
    lines += [f"  {name:<10} {path}" for name, path in providers.executables(loop.sources, environ).items()]
    for name, path in providers.variants(loop.sources).items():
        facts = dict(settings.read(path))
        if facts.get("auth_env"):
            needs = f" ({facts['auth_env']})"
        else:
            needs = ""
        lines.append(f"  {name:<10} {facts.get('description') or path}{needs}")
    return lines


def _said(path: str, loop: LoopRun) -> str:
    """The first line that an executable prints about itself."""
    ran = tools.run_command([path, "--describe"], env=loop.environment(), cwd=loop.cwd, seconds=stages.SCHEMA_SECONDS)
    return ran.out.strip().partition("\n")[0]


def tool(words: list[str]) -> int:
    """Run ``tool NAME --schema | --describe | --exec``: a built-in tool as an executable, for other plugins."""
    name, flag = (words + ["", ""])[:2]
    if name not in tools.NAMES:
        raise UsageError(f"no such tool: {name[:60]!r}")
    if flag == "--schema":
        print(json.dumps(tools.schema(name)))
    elif flag == "--describe":
        print(tools.schema(name)["description"])
    elif flag == "--exec":
        return _execute(name)
    else:
        raise UsageError(f"usage: {name} --schema | --describe | --exec")
    return 0


def provider(words: list[str]) -> int:
    """Run ``provider NAME [--describe | --ready | --defaults | --env | --stream]``, one of ours as an executable."""
    name, flag = (words + ["", ""])[:2]
    if name not in tools.BUILT_IN_PROVIDERS:
        raise UsageError(f"no such provider: {name[:60]!r}")
    protocol = providers.built_in(name)
    if flag == "--ready":
        if protocol.missing(os.environ):
            return 1
        return 0
    told = {"--describe": protocol.label, "--defaults": f"model={protocol.default_model}", "--env": protocol.env}
    if flag in told:
        print(told[flag])
        return 0
    missing = protocol.missing(os.environ)
    if missing:
        raise LoopFailure(f"{missing} is not set", "auth_failed")
    payload = json.load(sys.stdin)
    # The caller waits for all of the answer, so it need not be streamed.
    print(json.dumps(protocols.whole(name, protocol.request(payload, os.environ, False))))
    return 0


def _execute(name: str) -> int:
    try:
        given = json.load(sys.stdin)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        print(f"error: {name} wants a JSON object on standard input")
        return 1
    path = os.environ.get("HARNESS_SESSION", "")
    cwd = os.environ.get("HARNESS_CWD") or _session_folder(path) or os.getcwd()
    loop = _StandaloneRun(LoopSettings(os.environ.get("HARNESS_ROOT", "")), None, cwd)
    loop.sources = [source for source in os.environ.get("HARNESS_SOURCES", "").split(":") if source]
    if path:
        loop.session = session.Session(path, {})
    if name == "agent" and loop.session is None:
        print("error: there is no session (HARNESS_SESSION) for it to be under")
        return 1
    if loop.settings.read_only and name not in tools.READERS:
        print(f"error: this run is read-only; {name} is not available")
        return 1
    try:
        text, error = tools.run(loop, model_call("call", name, given))
    finally:
        loop.reaper.close()
    print(text)
    if error:
        return 1
    return 0


class _StandaloneRun(LoopRun):
    """The environment as a run, for a built-in tool that is started alone."""

    def environment(self, stage: str = "") -> dict[str, str]:
        return dict(os.environ)


def _session_folder(path: str) -> str:
    if not path:
        return ""
    try:
        return session.find(os.path.dirname(path), os.path.basename(path)).cwd
    except LoopFailure:  # the session is gone; the present folder serves
        return ""
