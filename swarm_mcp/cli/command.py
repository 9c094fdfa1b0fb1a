"""Running one command, and the one place where errors become exit codes.

Exit codes: 0 done; 1 the request cannot be carried out, one line on standard error says why;
3 a bug, with a report in the state folder; 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from swarm_hook_core.state import state_dir, write_private
from swarm_mcp.cli.arguments import meant, parse
from swarm_mcp.cli.output import complain, flush, forget_output, line_width, refused, say, say_help
from swarm_mcp.cli.verbs import aliases, all_verbs, is_verb, other_words, verb_named
from swarm_mcp.cli.words import clause
from swarm_mcp.errors import PersonOnly, Refused, SwarmError

# Errors that the owner of the machine can repair: no rights, a read-only or full file system, a file in place of a
# folder.
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR)


def run(items: list[str]) -> int:
    """Run the command of these words; the exit code."""
    # Clients start the server without arguments; a person at a terminal wants to know where they stand.
    alone = not items and sys.stdin is not None and sys.stdin.isatty()
    verb = "serve"
    if items:
        verb = _verb(items[0])
    elif alone:
        verb = ""
    try:
        if not items and not alone:
            complain(
                "swarm-mcp: no command, and standard input is not a terminal: serving MCP on standard input and output,"
                " like `swarm-mcp serve` (`swarm-mcp help` lists the commands)"
            )
        if alone:
            code = _front_page()
        else:
            code = _run(verb, items[1:])
        flush()
        return code
    except SwarmError as error:
        return _fail(f"{_called(verb)}: {' '.join(str(error).split())}", 1)
    except BrokenPipeError:
        forget_output()
        return 0
    except KeyboardInterrupt:  # the exit code says it
        return 130
    except OSError as error:
        if error.errno in _NOT_OURS and error.filename:
            return _fail(f"{_called(verb)}: cannot use {os.fspath(error.filename)}: {error.strerror}", 1)
        return _fail(f"{_called(verb)}: internal error: {_report(verb, error)}", 3)
    except Exception as error:
        return _fail(f"{_called(verb)}: internal error: {_report(verb, error)}", 3)


def _verb(word: str) -> str:
    """Return the verb of a word, which may be an alias."""
    if is_verb(word):
        return word
    return aliases().get(word, word)


def _run(verb: str, items: list[str]) -> int:
    if verb in ("help", "--help", "-h"):
        return _help(items)
    if verb in ("--version", "-v", "-V", "version"):
        return _version()
    if not is_verb(verb):
        return _fail(f"swarm-mcp: {_unknown(verb, items)}", 1)
    words = items[: [*items, "--"].index("--")]  # a flag behind a -- is for another command
    if "--help" in words or "-h" in words:
        return _help([verb])
    command = verb_named(verb)
    arguments = parse(verb, command.usages, items)
    try:
        return command.run(arguments)
    except Refused as refusal:
        if not command.refuses and not isinstance(refusal, PersonOnly):
            raise
        return refused(arguments, verb, refusal.answer)


def _front_page() -> int:
    from swarm_mcp.cli.front_page import show_front_page

    return show_front_page()


def _called(verb: str) -> str:
    return f"swarm-mcp {verb}".rstrip()


def _version() -> int:
    from swarm_hook_core.coordinator import WORD
    from swarm_mcp import __version__

    say(" ".join(filter(None, ("swarm-mcp", __version__, os.environ.get(WORD, "")))))
    return 0


def _help(words: list[str]) -> int:
    verb = _verb("".join(words[:1]))
    if verb and not is_verb(verb) and not verb.startswith("-"):
        return _fail(f"swarm-mcp help: {_unknown(verb, [])}", 1)
    from swarm_mcp.cli.help_page import overview, page_of

    room = line_width()
    if is_verb(verb):
        say_help(page_of(verb, room))
    else:
        say_help(overview(room, every="--all" in words))
    return 0


def _unknown(verb: str, items: list[str]) -> str:
    known = [*all_verbs(), *aliases()]
    first = next((item for item in items if item in known), "")
    if verb.startswith("-") and first:
        return f"{verb!r} stands before the command; put flags after it: swarm-mcp {first} ... {verb}"
    other = other_words().get(verb.lower(), "")
    hint = clause(" (did you mean {}?)", other) or meant(verb, known)
    return f"unknown command {verb!r}{hint} (swarm-mcp help lists them)"


def _fail(line: str, code: int) -> int:
    try:
        flush()  # the output before the failure comes first
    except (OSError, SwarmError):  # `line` tells the first failure
        forget_output()
    complain(line)
    return code


def _report(verb: str, error: Exception) -> str:
    import traceback  # loads what no command needs that ends well

    from swarm_hook_core.faults import describe

    try:
        path = os.path.join(state_dir(), "crashes", f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt")
        write_private(path, f"swarm-mcp {verb}\n" + "".join(traceback.format_exception(error)))
    except OSError:
        return describe(error)
    return f"{describe(error)} (report: {path})"
