"""Parsing and dispatch, and the one place where errors become exit codes.

Exit codes: 0 done; 1 the request cannot be carried out, one line on standard error says why;
3 a bug, with a report in the state folder; 130 interrupted.
"""

from __future__ import annotations

import sys

from swarm_mcp.cli.arguments import nearest, parse
from swarm_mcp.cli.output import say
from swarm_mcp.errors import SwarmError

# Verb -> module in ``commands``. The order is that of the help page.
COMMANDS = {
    "install": "install",
    "uninstall": "uninstall",
    "status": "status",
    "doctor": "doctor",
    "demo": "demo",
    "lock": "lock",
    "unlock": "unlock",
    "locks": "locks",
    "instances": "instances",
    "whoami": "whoami",
    "bootstrap": "bootstrap",
    "register": "register",
    "deregister": "deregister",
    "messages": "messages",
    "send": "send",
    "broadcast": "broadcast",
    "prompt-peer": "prompt_peer",
    "tasks": "tasks",
    "request-task": "request_task",
    "claim": "claim",
    "update-task": "update_task",
    "dispatch": "dispatch",
    "watch": "watch",
    "kv": "kv",
    "inspect": "inspect",
    "roles": "roles",
    "resolve-workspace-handle": "resolve_workspace_handle",
    "ui": "ui",
    "cleanup": "cleanup",
    "init": "init",
    "serve": "serve",
    "hook": "hook",
    "denied": "denied",
    "bundle": "bundle",
    "completion": "completion",
}
ALIASES = {"list-instances": "instances"}


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    items = list(sys.argv[1:] if argv is None else argv)
    if not items:
        # Clients start the server without arguments; a person at a terminal wants to know what there is.
        items = ["help"] if sys.stdin is not None and sys.stdin.isatty() else ["serve"]
    verb = ALIASES.get(items[0], items[0])
    try:
        code = _dispatch(verb, items[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SwarmError as error:
        return _complain(f"swarm-mcp {verb}: {' '.join(str(error).split())}", 1)
    except BrokenPipeError:
        _forget_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the edge: a bug must not show as a traceback
        return _complain(f"swarm-mcp {verb}: internal error: {_report(verb, error)}", 3)


def module_of(verb: str):
    """The module that carries out `verb`: ``run(args) -> int``, its help in the docstring."""
    name = f"swarm_mcp.cli.commands.{COMMANDS[verb]}"
    __import__(name)
    return sys.modules[name]


def _dispatch(verb: str, items: list[str]) -> int:
    if verb in ("help", "--help", "-h"):
        return _help(items)
    if verb in ("--version", "-V", "version"):
        from swarm_mcp import __version__

        say(f"swarm-mcp {__version__}")
        return 0
    if verb not in COMMANDS:
        near = nearest(verb, [*COMMANDS, *ALIASES])
        hint = f"; did you mean {near}?" if near else ""
        return _complain(f"swarm-mcp: unknown command {verb!r}{hint} (swarm-mcp help lists them)", 1)
    wants_help = any(item in ("--help", "-h") for item in items[: items.index("--") if "--" in items else None])
    if wants_help:
        return _help([verb])
    return module_of(verb).run(parse(items))


def _complain(line: str, code: int) -> int:
    try:
        print(line, file=sys.stderr)
    except (OSError, ValueError):
        pass  # nobody is listening; the exit code still tells
    return code


def _help(words: list[str]) -> int:
    verb = ALIASES.get(words[0], words[0]) if words else ""
    if verb in COMMANDS:
        say(module_of(verb).__doc__.strip())
        return 0
    say("swarm-mcp: peer locking for coding-agent sessions\n\nusage: swarm-mcp COMMAND [WORDS] [--flags]\n")
    for name in COMMANDS:
        first = module_of(name).__doc__.strip().splitlines()[0]
        say(f"  {name:<12} {first.split(': ', 1)[-1]}")
    say("\nswarm-mcp COMMAND --help shows a command's flags and an example; --json gives JSON everywhere.")
    return 0


def _report(verb: str, error: Exception) -> str:
    import os
    import time
    import traceback

    from swarm_hook_core.faults import describe
    from swarm_hook_core.state import state_dir, write_private

    try:
        path = os.path.join(state_dir(), "crashes", f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt")
        write_private(path, f"swarm-mcp {verb}\n" + "".join(traceback.format_exception(error)))
    except OSError:
        return describe(error)
    return f"{describe(error)} (report: {path})"


def _forget_output() -> None:
    """The reader has left; keep the interpreter's own flush at exit from complaining."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
