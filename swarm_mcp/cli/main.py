"""Parsing and dispatch, and the one place where errors become exit codes.

Exit codes: 0 done; 1 the request cannot be carried out, one line on standard error says why;
3 a bug, with a report in the state folder; 130 interrupted.
"""

from __future__ import annotations

import sys

from swarm_mcp.cli.arguments import SWITCHES, VALUE_FLAGS, meant, parse
from swarm_mcp.cli.output import complain, flush, for_people, forget_output, say, say_text
from swarm_mcp.errors import SwarmError, UsageError

# Verb -> module in ``commands``. The order is that of the help page.
COMMANDS = {
    "install": "install",
    "uninstall": "uninstall",
    "status": "status",
    "doctor": "doctor",
    "demo": "demo",
    "lock": "lock",
    "unlock": "unlock",
    "hold": "hold",
    "locks": "locks",
    "why": "why",
    "log": "log",
    "renew": "renew",
    "transfer": "transfer",
    "request-lock": "request_lock",
    "steal": "steal",
    "restore": "restore",
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
    "cancel": "cancel",
    "pause": "pause",
    "resume": "resume",
    "run": "run",
    "runs": "runs",
    "logs": "logs",
    "harness": "harness",
    "watch": "watch",
    "kv": "kv",
    "inspect": "inspect",
    "roles": "roles",
    "resolve-workspace-handle": "resolve_workspace_handle",
    "ui": "ui",
    "cleanup": "cleanup",
    "guard": "guard",
    "init": "init",
    "loop": "loop",
    "serve": "serve",
    "hook": "hook",
    "work": "work",
    "denied": "denied",
    "alive": "alive",
    "agent-ended": "agent_ended",
    "altered": "altered",
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
        flush()
        return code
    except SwarmError as error:
        return _complain(f"swarm-mcp {verb}: {' '.join(str(error).split())}", 1)
    except BrokenPipeError:
        forget_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _complain(f"swarm-mcp {verb}: internal error: {_report(verb, error)}", 3)


def module_of(verb: str):
    """The module that carries out `verb`.

    Its ``run(args) -> int`` is the command, ``WORDS`` the most words it takes (None: any number), its
    docstring the help.
    """
    name = f"swarm_mcp.cli.commands.{COMMANDS[verb]}"
    __import__(name)
    return sys.modules[name]


def page_of(verb: str) -> str:
    """The help of `verb`: its module's docstring, read without loading what the command needs."""
    folder = __file__.rpartition("main.py")[0]
    source = __spec__.loader.get_data(f"{folder}commands/{COMMANDS[verb]}.py").decode("utf-8")
    return source.split('"""')[1].strip()


def summary_of(verb: str) -> str:
    """What `verb` does, in a few words."""
    return page_of(verb).partition("\n")[0].partition(": ")[2]


def _dispatch(verb: str, items: list[str]) -> int:
    if verb in ("help", "--help", "-h"):
        return _help(items)
    if verb in ("--version", "-V", "version"):
        import os

        from swarm_hook_core.command_on_path import WORD
        from swarm_mcp import __version__

        say(" ".join(filter(None, ("swarm-mcp", __version__, os.environ.get(WORD, "")))))
        return 0
    if verb not in COMMANDS:
        return _complain(f"swarm-mcp: {_unknown(verb, items)}", 1)
    if _wants_help(items):
        return _help([verb])
    module = module_of(verb)
    args = parse(items)
    most = getattr(module, "WORDS", None)
    if most is not None and len(args.words) > most:
        raise UsageError(_one_too_many(verb, most, args.words[most]))
    return module.run(args)


def _wants_help(items: list[str]) -> bool:
    return any(item in ("--help", "-h") for item in items[: items.index("--") if "--" in items else None])


def _unknown(verb: str, items: list[str]) -> str:
    first = next((item for item in items if item in COMMANDS or item in ALIASES), "")
    if verb.startswith("-") and first:
        return f"{verb!r} stands before the command; put flags behind it: swarm-mcp {first} ... {verb}"
    return f"unknown command {verb!r}{meant(verb, [*COMMANDS, *ALIASES])} (swarm-mcp help lists them)"


def _one_too_many(verb: str, most: int, word: str) -> str:
    hint = meant(f"--{word.lstrip('-')}", VALUE_FLAGS | SWITCHES) if word.startswith("-") else ""
    return f"{word[:60]!r} is one word too many{hint}; {verb} takes {most or 'none'}"


def _complain(line: str, code: int) -> int:
    try:
        flush()  # what was said before the failure comes first
    except (OSError, SwarmError):
        forget_output()
    complain(line)
    return code


def _help(words: list[str]) -> int:
    verb = ALIASES.get(words[0], words[0]) if words else ""
    if verb in COMMANDS:
        say_text(page_of(verb))
        return 0
    if verb and not verb.startswith("-"):
        return _complain(f"swarm-mcp help: {_unknown(verb, [])}", 1)
    from swarm_mcp.cli.table import clipped, terminal_width

    room = terminal_width() if for_people() else 0
    say_text("swarm-mcp: peer locking and coordination for coding-agent sessions\n")
    say_text("usage: swarm-mcp COMMAND [WORDS] [--flags]\n")
    longest = max(map(len, COMMANDS))
    for name in COMMANDS:
        line = f"  {name:<{longest}}  {summary_of(name)}"
        say(clipped(line, room or len(line)))
    say_text("\nswarm-mcp COMMAND --help shows a command's flags and an example; --json gives JSON everywhere.")
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
