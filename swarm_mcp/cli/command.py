"""Running one command, and the one place where errors become exit codes.

Exit codes: 0 done; 1 the request cannot be carried out; 2 the command line is wrong, and one line on standard error
says why for both; 3 a bug, with a report in the state folder; 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from swarm_hook_core.state import describe, state_dir, write_private
from swarm_mcp import __version__, contributions
from swarm_mcp.cli.arguments import NOUNS, called, is_verb, parse, retired, unknown, verb_named, words_of
from swarm_mcp.cli.output import complain, flush, forget_output, line_width, refused, say, say_help
from swarm_mcp.contributions import put_undos_right
from swarm_mcp.errors import PersonOnly, Refused, SwarmError, UsageError

# Errors that the owner of the machine can repair: no rights, a read-only or full file system, a file in place of a
# folder.
LEAST_ALIKE = 0.7  # of a mistyped word and the right one, as difflib counts; below that a hint would mislead
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR)


def run(items: list[str]) -> int:
    """Run the command of these words; the exit code."""
    # Clients start the server without arguments; a person at a terminal wants to know where they stand.
    alone = not items and sys.stdin is not None and sys.stdin.isatty()
    name, verb, rest = _found(items)
    if alone:
        name = ""
    try:
        if not items and not alone:
            complain(
                "swarm-mcp: no command, and standard input is not a terminal: serving MCP on standard input and output,"
                " like `swarm-mcp serve` (`swarm-mcp help` lists the commands)"
            )
        if alone:
            from swarm_mcp.cli.help_page import show_front_page

            code = show_front_page()
        else:
            code = _run(name, verb, rest)
        flush()
        return code
    except UsageError as error:
        return _fail(f"{_as_typed(name)}: {' '.join(str(error).split())}", _usage_code(verb))
    except SwarmError as error:
        return _fail(f"{_as_typed(name)}: {' '.join(str(error).split())}", 1)
    except BrokenPipeError:
        forget_output()
        return 0
    except KeyboardInterrupt:  # the exit code says it
        return 130
    except OSError as error:
        if error.errno in _NOT_OURS and error.filename:
            return _fail(f"{_as_typed(name)}: cannot use {os.fspath(error.filename)}: {error.strerror}", 1)
        return _fail(f"{_as_typed(name)}: internal error: {_report(verb, error)}", 3)
    except Exception as error:
        return _fail(f"{_as_typed(name)}: internal error: {_report(verb, error)}", 3)


def _found(items: list[str]) -> tuple[str, str, list[str]]:
    """Return the command as it was called, its verb and the words behind it. The verb may be unknown, or a noun."""
    first, rest = "serve", items[1:]
    if items:
        first = items[0]
    words = words_of(first)
    if rest and rest[0] in words:
        return f"{first} {rest[0]}", words[rest[0]], rest[1:]
    if not is_verb(first):
        first = contributions.table("ALIASES").get(first, first)
    return first, first, rest


def _usage_code(verb: str) -> int:
    """Return the exit code of a wrong command line: 2, but 1 for a hook, whose client takes 2 for a denial."""
    if verb == "hook":
        return 1
    return 2


def _run(name: str, verb: str, items: list[str]) -> int:
    if verb in ("help", "--help", "-h"):
        return _help(items)
    if verb in ("--version", "-v", "-V", "version"):
        return _version()
    if name in NOUNS and items[:1] in ([], ["--help"], ["-h"]):
        return _help([name])
    if name in NOUNS and not is_verb(verb):
        raise UsageError(retired(items[0]) or unknown(items[0], words_of(name), "word"))
    if not is_verb(verb):
        return _fail(f"swarm-mcp: {retired(verb) or _unknown(verb, items)}", _usage_code(verb))
    words = items[: [*items, "--"].index("--")]  # a flag behind a -- is for another command
    if "--help" in words or "-h" in words:
        return _help(name.split())
    command = verb_named(verb)
    try:
        arguments = parse(name, command.usages, items)
    except UsageError as error:
        raise UsageError("; ".join(filter(None, (str(error), retired(verb, items))))) from None
    # Put an undo right that was killed, before anything else reads its files. An error stays for the doctor.
    try:
        for line in put_undos_right():
            complain(f"swarm: {line}")
    except OSError:
        pass  # an unwritable folder; `doctor` says so
    try:
        return command.run(arguments)
    except Refused as refusal:
        if not command.refuses and not isinstance(refusal, PersonOnly):
            raise
        return refused(arguments, name, refusal.answer)


def _as_typed(name: str) -> str:
    return f"swarm-mcp {name}".rstrip()


def _version() -> int:
    from swarm_hook_core.coordinator import WORD

    say(" ".join(filter(None, ("swarm-mcp", __version__, os.environ.get(WORD, "")))))
    return 0


def _help(words: list[str]) -> int:
    from swarm_mcp.cli.help_page import manual, noun_page, overview, page_of

    if words == ["--man"]:
        say_help(manual())
        return 0
    room = line_width()
    name, verb, rest = _found([word for word in words if word != "--all"] or [""])
    if name in NOUNS and not rest:
        say_help(noun_page(name, room))
    elif is_verb(verb):
        say_help(page_of(verb, room))
    elif verb and not verb.startswith("-"):
        return _fail(f"swarm-mcp help: {_unknown(verb, [])}", _usage_code(verb))
    else:
        say_help(overview(room, every="--all" in words))
    return 0


def _unknown(verb: str, items: list[str]) -> str:
    from difflib import get_close_matches

    known = {word: word for word in (*contributions.verbs(), *contributions.table("ALIASES"), *NOUNS)}
    first = next((item for item in items if item in known), "")
    if verb.startswith("-") and first:
        return f"{verb!r} stands before the command; put flags after it: swarm-mcp {called(first)} ... {verb}"
    typed, meant = verb[:60].lower().replace("_", "-"), contributions.table("OTHER_WORDS")
    if typed in meant:  # by its meaning, not by its spelling
        close, known = [typed], meant
    else:
        close = get_close_matches(typed, sorted(known), 1, LEAST_ALIKE)
        if not close:
            close, known = get_close_matches(typed, sorted(meant), 1, LEAST_ALIKE), meant
    hint = "".join(f" (did you mean {called(known[word])}?)" for word in close)
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

    try:
        path = os.path.join(state_dir(), "crashes", f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt")
        write_private(path, f"swarm-mcp {verb}\n" + "".join(traceback.format_exception(error)))
    except OSError:
        return describe(error)
    return f"{describe(error)} (report: {path})"
