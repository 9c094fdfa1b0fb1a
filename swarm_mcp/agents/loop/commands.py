"""The commands of `swarm-mcp worker loop` other than running the agent."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn, cast

from swarm_mcp.agents.loop import protocols, providers, session, settings, stages, subprocesses, tools
from swarm_mcp.agents.loop.agent import LoopRun, Report
from swarm_mcp.agents.loop.session import model_call
from swarm_mcp.agents.loop.settings import LoopFailure, LoopSettings
from swarm_mcp.errors import UsageError
from swarm_mcp.processes import Reaper

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
    loop.refresh()
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
    ran = subprocesses.run([path, "--describe"], env=loop.environment(), cwd=loop.cwd, seconds=stages.SCHEMA_SECONDS)
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
    class StandaloneRun:
        """The environment as a run, for a built-in tool that is started alone."""

        settings = LoopSettings(os.environ.get("HARNESS_ROOT", ""))
        sources = [path for path in os.environ.get("HARNESS_SOURCES", "").split(":") if path]
        reaper = Reaper()
        path = os.environ.get("HARNESS_SESSION", "")
        session: Any = None
        cwd = os.environ.get("HARNESS_CWD") or _session_folder(path) or os.getcwd()

        @staticmethod
        def environment(stage: str = "") -> dict[str, str]:
            return dict(os.environ)

    try:
        given = json.load(sys.stdin)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        print(f"error: {name} wants a JSON object on standard input")
        return 1
    if StandaloneRun.path:
        StandaloneRun.session = session.Session(StandaloneRun.path, {})
    if name == "agent" and StandaloneRun.session is None:
        print("error: there is no session (HARNESS_SESSION) for it to be under")
        return 1
    if StandaloneRun.settings.read_only and name not in tools.READERS:
        print(f"error: this run is read-only; {name} is not available")
        return 1
    try:
        text, error = tools.run(cast(Any, StandaloneRun), model_call("call", name, given))
    finally:
        StandaloneRun.reaper.close()
    print(text)
    if error:
        return 1
    return 0


def _session_folder(path: str) -> str:
    if not path:
        return ""
    try:
        return session.find(os.path.dirname(path), os.path.basename(path)).cwd
    except LoopFailure:  # the session is gone; the present folder serves
        return ""
