"""One run: a prompt in, an answer out, an exit code."""

from __future__ import annotations

import os
import signal
import sys

from swarm_mcp.loop import builtin_plugins, scrubbing, session, skills
from swarm_mcp.loop.failure import STOPPED, LoopFailure
from swarm_mcp.loop.machine import Ended, LoopRun
from swarm_mcp.loop.pipeline import StageFailed
from swarm_mcp.loop.report import JsonReport, Report
from swarm_mcp.loop.settings import LoopSettings


class Stopped(BaseException):
    """A signal has asked this process to end."""


def run(words: list[str], *, as_json: bool = False, resume: str = "", mode: str = "", model: str = "") -> int:
    """Carry out ``[SESSION] [WORDS]`` and return the exit code. The prompt is the words, else standard input.

    With `resume`, or where the first word is a session's id, that session continues. An unknown session is an error.
    """
    report = JsonReport() if as_json else Report()
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        ended = _run(words, resume, {"mode": mode, "model": model}, report)
    except StageFailed as failed:
        code = failed.context.get("exit_code")
        text, category = str(failed.context.get("error")), str(failed.context.get("category") or "unknown")
        ended = Ended("", text, category, code if isinstance(code, int) else 1, failed.context.get("retry_not_before"))
    except LoopFailure as error:
        ended = Ended("", str(error), error.category, error.exit_code, error.retry_not_before)
    except Stopped:
        ended = Ended("", "the run was ended from outside", "aborted", STOPPED)
    except KeyboardInterrupt:
        ended = Ended("", "interrupted", "aborted", 130)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    report.ended(ended)
    return ended.exit_code


def _run(words: list[str], resume: str, given: dict[str, str], report: Report) -> Ended:
    settings = LoopSettings(builtin_plugins.root())
    settings.model = given["model"] or settings.model
    if given["mode"]:
        settings.config["mode"] = given["mode"]
    _learn_secrets(settings.config.get("mcp_servers"))
    if not resume and words and session.PATTERN.match(words[0]):
        resume, words = words[0], words[1:]
    known = session.find(settings.sessions, resume) if resume else None
    if known and settings.config.get("fork"):
        known = session.fork(settings.sessions, known)
    prompt = " ".join(words) if words else "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    if not prompt.strip() and not known:
        raise LoopFailure("what is to be done? swarm-mcp loop [SESSION] WORDS, or the words on standard input")
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
            loop.session.add("user", skills.resolved(loop, prompt))
        try:
            return loop.follow()
        finally:
            loop.session.stream("done")
            loop.swarm.leave()
    finally:
        loop.close()


def _resolve(loop: LoopRun, known: session.Session | None) -> None:
    """Provider and model: what the environment says, else what the session had, else whatever is ready."""
    settings = loop.settings
    loop.refresh()
    asked = {"provider": settings.provider, "model": settings.model}
    if known and not settings.provider and _is_ready(loop, known.conf.get("provider", "")):
        asked = {"provider": known.conf["provider"], "model": settings.model or known.conf.get("model", "")}
    found = loop.stage("resolve", asked)
    settings.provider, settings.model = str(found.get("provider") or ""), str(found.get("model") or "")
    if loop.provider is None or loop.provider.name != settings.provider:
        from swarm_mcp.loop.providers import choice

        loop.provider = choice.resolve(settings.provider, loop.sources, loop.environment("resolve"))


def _is_ready(loop: LoopRun, name: str) -> bool:
    from swarm_mcp.loop.providers import choice

    try:
        found = choice.resolve(name, loop.sources, loop.environment("resolve"))
    except LoopFailure:
        return False
    return bool(found.path) or not found.protocol.missing({**loop.environment("resolve"), **found.more})


def _tools(loop: LoopRun) -> list[str]:
    from swarm_mcp.loop import calls, tools

    names = {*calls.found(loop), *tools.NAMES}
    return sorted(names & tools.READERS if loop.settings.read_only else names)


def _learn_secrets(servers: object) -> None:
    listed = servers.values() if isinstance(servers, dict) else ()
    found = [server.get(part) for server in listed if isinstance(server, dict) for part in ("env", "headers")]
    scrubbing.learn(*(part for part in found if isinstance(part, dict)))


def _stop(*_signal) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a second one must not keep us from leaving in order
    raise Stopped
