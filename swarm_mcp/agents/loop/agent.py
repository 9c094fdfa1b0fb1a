"""One run: a prompt in, an answer out, an exit code. Each stage names the next; a stage without a next ends the run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, NamedTuple

from swarm_mcp.agents.loop import calls, prompts, session, sources, stages, tools
from swarm_mcp.agents.loop.mcp_servers import Servers
from swarm_mcp.agents.loop.providers import choice
from swarm_mcp.agents.loop.providers.choice import Provider
from swarm_mcp.agents.loop.report import JsonReport, Report
from swarm_mcp.agents.loop.session import Session
from swarm_mcp.agents.loop.settings import FAILED, MODEL_FAILED, STOPPED, TOO_LONG, LoopFailure, LoopSettings
from swarm_mcp.agents.loop.sources import ON_PATH
from swarm_mcp.agents.loop.stages import StageFailed
from swarm_mcp.agents.loop.swarm_session import SwarmSession
from swarm_mcp.processes.reaper import Reaper

STEPS_PER_TURN = 3


class Ended(NamedTuple):
    """The end of a run: its text, and after a failure the error's text, category and exit code."""

    output: str
    error: str = ""
    category: str = ""
    exit_code: int = 0
    retry_not_before: float | None = None


class LoopRun:
    """One run: the state that its stages share. `provider` is set by the stage ``resolve``."""

    def __init__(self, settings: LoopSettings, report: Report, cwd: str):
        self.settings, self.report, self.cwd = settings, report, cwd
        self.session: Session | None = None
        self.provider: Provider | None = None
        self.sources: list[str] = []
        self.reaper = Reaper()
        self.swarm = SwarmSession()
        self.servers = Servers()
        self.greeting = ""
        self.early: dict[str, tuple[str, bool]] = {}  # results of calls that began before their answer was whole
        self.asked = 0  # how often a model was
        self.corrections = 0  # how often an answer had to be asked for again
        self._logging = threading.Lock()

    def refresh(self) -> None:
        """Look for plugins anew."""
        self.sources = sources.packs(self.settings.root)
        if os.path.isdir(self.settings.home):
            self.sources.append(self.settings.home)
        found = stages.run(self, "sources", {}, stages.OURS["sources"]).get("sources")
        if isinstance(found, list):
            self.sources = [str(path) for path in found]

    def stage(self, name: str, context: dict[str, Any]) -> dict[str, Any]:
        """Run one stage, after looking for plugins anew. Raises StageFailed."""
        self.refresh()
        return stages.run(self, name, context, stages.OURS.get(name, {}))

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

    def follow(self) -> Ended:
        """Go from ``start`` to the end; return how it ended."""
        state, steps = "start", 0
        context: dict[str, Any] = {}
        failure: dict[str, Any] = {}
        while True:
            try:
                result = self.stage(state, context)
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
            if steps > self.settings.max_turns * STEPS_PER_TURN:
                text = f"stopped after {steps - 1} steps (HARNESS_MAX_TURNS={self.settings.max_turns})"
                self.log(f"[harness] safety: {text}")
                return Ended("", text, "budget", TOO_LONG)

    def close(self) -> None:
        """End all processes that the run has started."""
        self.servers.close()
        self.reaper.close()


def _failed(context: dict[str, Any]) -> Ended:
    text = str(context.get("error") or context.get("output") or "a hook failed").removeprefix("error: ")
    code = context.get("exit_code")
    code, later = code if isinstance(code, int) else FAILED, context.get("retry_not_before")
    return Ended("", text, str(context.get("category") or "unknown"), code, later if isinstance(later, float) else None)


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


def _is_session(words: list[str]) -> bool:
    return bool(words and session.PATTERN.match(words[0]))


def _run(words: list[str], resume: str, wishes: Wishes, report: Report) -> Ended:
    settings = LoopSettings(sources.root())
    settings.model = wishes.model or settings.model
    if wishes.mode:
        settings.config["mode"] = wishes.mode
    if wishes.schema:
        settings.config["output_schema"] = wishes.schema
    _learn_secrets(settings.config.get("mcp_servers"))
    if not resume and _is_session(words):
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
    loop = LoopRun(settings, report, known.cwd if known else settings.folder)
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
            ended = loop.follow()
        finally:
            loop.session.stream("done")
            loop.swarm.leave()
    finally:
        loop.close()
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
    loop.refresh()
    asked = {"provider": settings.provider, "model": settings.model}
    if known and not settings.provider and _is_ready(loop, known.conf.get("provider", "")):
        asked = {"provider": known.conf["provider"], "model": settings.model or known.conf.get("model", "")}
    found = loop.stage("resolve", asked)
    settings.provider, settings.model = str(found.get("provider") or ""), str(found.get("model") or "")
    if loop.provider is None or loop.provider.name != settings.provider:
        loop.provider = choice.resolve(settings.provider, loop.sources, loop.environment("resolve"))


def _is_ready(loop: LoopRun, name: str) -> bool:
    try:
        found = choice.resolve(name, loop.sources, loop.environment("resolve"))
    except LoopFailure:  # the environment names no usable provider
        return False
    return bool(found.path) or not found.protocol.missing({**loop.environment("resolve"), **found.more})


def _tools(loop: LoopRun) -> list[str]:
    names = {*calls.found(loop), *tools.NAMES}
    return sorted(names & tools.READERS if loop.settings.read_only else names)


def _learn_secrets(servers: object) -> None:
    listed: list[Any] = []
    if isinstance(servers, dict):
        listed = list(servers.values())
    found = [server.get(part) for server in listed if isinstance(server, dict) for part in ("env", "headers")]
    session.learn(*(part for part in found if isinstance(part, dict)))


def _stop(*_signal: object) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a second one must not keep us from leaving in order
    raise Stopped
