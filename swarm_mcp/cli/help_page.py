"""The pages of help: all verbs in their groups, one page for each verb, from its declaration, and the manual page."""

from __future__ import annotations

import re
import textwrap
from inspect import cleandoc

from swarm_mcp import __version__, contributions
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    FRONT,
    GROUPS,
    NOUNS,
    START,
    SUBJECTS,
    Arguments,
    Option,
    Usage,
    Word,
    called,
    declared,
    parse,
    verb_named,
    words_of,
)
from swarm_mcp.cli.commands.status import say_uncommitted
from swarm_mcp.cli.output import line_width, listing, say, say_help
from swarm_mcp.cli.terminal import paint
from swarm_mcp.cli.words import Reader, clause, count
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store

WIDEST = 100  # prose in longer lines is hard to read
MANUAL = 72  # cells of a line in the manual page, which indents
NARROWEST = 24  # cells of a text beside a name; in less room it stands below the name
LONGEST_VERB = 15  # that the others' column makes room for
LONGEST_NAME = 26  # of a word or flag in the list of them


def overview(room: int, every: bool = False) -> str:
    """The verbs in their groups, in lines of at most `room` cells; the rarer ones only with `every`."""
    room = min(room, WIDEST)
    groups: dict[str, dict[str, str]] = {group: {} for group in (GROUPS if every else FRONT)}
    groups[SUBJECTS].update(NOUNS)
    for verb in contributions.verbs():
        group, summary = declared(verb)
        if group in groups:
            groups[group][called(verb)] = summary
    names = [verb for verbs in groups.values() for verb in verbs if len(verb) <= LONGEST_VERB]
    column = max(map(len, names)) + 4
    lines = [*_wrapped("swarm-mcp: locks between agent sessions that share a checkout", room), ""]
    lines += [*_wrapped("usage: swarm-mcp COMMAND [WORDS] [--flags]", room), ""]
    for group, verbs in groups.items():
        lines += [paint(group, "heading"), *_table(verbs, column, room), ""]
    lines += _wrapped("`swarm-mcp COMMAND --help` explains a command, with an example.", room)
    more = "`swarm-mcp help --all` lists all commands."
    if every:
        more = "`swarm-mcp help --man | man -l -` is the manual page of all."
    lines += _wrapped(more, room)
    return "\n".join(lines)


def group_page(group: str, room: int) -> str:
    """The verbs of one group, as `overview` has them."""
    verbs = {
        verb: summary for verb in contributions.verbs() for its_group, summary in [declared(verb)] if its_group == group
    }
    return "\n".join([paint(group, "heading"), *_table(verbs, max(map(len, verbs)) + 4, min(room, WIDEST))])


def noun_page(noun: str, room: int) -> str:
    """The help page of a noun: its words."""
    room = min(room, WIDEST)
    rows = {f"{noun} {word}": declared(verb)[1] for word, verb in words_of(noun).items()}
    lines = [*_wrapped(f"{noun}: {NOUNS[noun]}", room), ""]
    lines += [*_wrapped(f"usage: swarm-mcp {noun} WORD ...", room), ""]
    lines += [*_table(rows, max(map(len, rows)) + 4, room), ""]
    return "\n".join([*lines, *_wrapped(f"`swarm-mcp {noun} WORD --help` explains one, with an example.", room)])


def page_of(verb: str, room: int = 80) -> str:
    """The help page of `verb`: its purpose, its usages, the meaning of each word and flag, and an example."""
    room = min(room, WIDEST)
    command = verb_named(verb)
    usages = [usage for usage in command.usages if not usage.hidden]
    summary, _, rest = cleandoc(command.help).partition("\n\n")
    begins = ["usage: ", *["       "] * len(usages)]
    name = called(verb)
    calls = [_call(name, usage, begin, room) for begin, usage in zip(begins, usages)]
    words = [word for usage in usages for word in usage.words]
    options = [option for usage in usages for option in usage.options]
    parts: list[Word | Option] = [*words, *sorted(options, key=lambda option: option in ACTING)]
    shown = _list([part for part in parts if not (isinstance(part, Option) and part.hidden)], room)
    hidden = _list([part for part in parts if isinstance(part, Option) and part.hidden and part.about], room)
    hidden = clause("Hooks add:\n{}", hidden)
    others = [alias for alias, meant in contributions.table("ALIASES").items() if meant == verb]
    if name != verb:
        others.insert(0, verb)
        summary = f"{name}{summary.removeprefix(verb)}"
    calls += [f"also:  swarm-mcp {alias}" for alias in others]
    blocks = ["\n".join(_wrapped(summary, room)), "\n".join(calls), shown, hidden]
    blocks += [_prose(block, room) for block in rest.split("\n\n")]
    return "\n\n".join(block for block in blocks if block)


def manual() -> str:
    """All help as one manual page, in roff: a section for each group, and in it each command's page."""
    lines = [f'.TH SWARM-MCP 1 "" "swarm-mcp {__version__}"', ".SH NAME"]
    lines += [r"swarm\-mcp \- locks between agent sessions that share a checkout", ".SH SYNOPSIS"]
    lines += [r"swarm\-mcp COMMAND [WORDS] [\-\-flags]"]
    for group in GROUPS:
        verbs = sorted((called(verb), verb) for verb in contributions.verbs() if declared(verb)[0] == group)
        lines += [f".SH {_roff(group.upper())}"] if verbs else []
        for name, verb in verbs:
            lines += [f".SS {_roff(name)}", ".nf", *map(_roff, page_of(verb, MANUAL).splitlines()), ".fi"]
    return "\n".join(lines)


def _roff(line: str) -> str:
    """Return a line of text as roff prints it, signs that can be copied included."""
    text = line.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{text}" if text.startswith(".") else text


def _prose(block: str, room: int) -> str:
    """A paragraph of a docstring in lines of at most `room` cells. Indented lines stay as they are."""
    lines: list[str] = []
    flowing: list[str] = []
    for line in [*block.splitlines(), ""]:
        own = line.startswith((" ", "example: ")) or not line
        if own and flowing:
            lines += _wrapped(" ".join(flowing), room)
            flowing = []
        if line.startswith(" "):
            lines += _wrapped(line, room, " " * (len(line) - len(line.lstrip()) + 2))
        elif own and line:
            lines += _example(line, room)
        elif line:
            flowing.append(line)
    return "\n".join(lines)


def _example(line: str, room: int) -> list[str]:
    """A command that can be pasted, in lines of at most `room` cells: parted between words, with a backslash."""
    words = re.sub(r"\"[^\"]*\"|'[^']*'", lambda quoted: quoted[0].replace(" ", "\0"), line)
    *lines, last = _wrapped(words, room - 2, "    ")
    return [part.replace("\0", " ") for part in (*(f"{part} \\" for part in lines), last)]


def _call(verb: str, usage: Usage, begin: str, room: int) -> str:
    head = f"{begin}swarm-mcp {verb}"
    before = [word.shown for word in usage.words if not word.behind]
    flags = [option.shown for option in usage.options if not option.hidden]
    behind = [word.shown for word in usage.words if word.behind]
    # An option and its value stay on one line.
    parts = [part.replace(" ", "\0") for part in (*before, *flags, *behind)]
    needed = max(NARROWEST, *map(len, parts), 0)
    margin = len(head) + 1
    if room - len(head) <= needed:
        margin = len(begin) + 4
    return "\n".join(_wrapped(" ".join([head, *parts]), room, " " * margin)).replace("\0", " ")


def _list(parts: list[Word | Option], room: int) -> str:
    """The words and flags that have something to be said of them, each once, aligned."""
    about: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Option) and len(part.also) == 2:
            about.setdefault(f"{part.also}, {part.form}", part.about)
        elif isinstance(part, Option):
            about.setdefault(part.form, part.about)
        elif not part.choices:
            about.setdefault(part.name, part.about)
    rows = {name: text for name, text in about.items() if text and text != f"the {name.lower()}"}
    column = min(max(map(len, rows), default=0), LONGEST_NAME) + 4
    return "\n".join(_table(rows, column, room))


def _table(rows: dict[str, str], column: int, room: int) -> list[str]:
    """Names and, from `column` on, their texts; below the names where that leaves too little room beside them."""
    if room - column < NARROWEST:
        column = 6
    lines = []
    for name, text in rows.items():
        head = f"  {name}"
        if len(head) + 2 > column:
            lines += [head, *_wrapped(" " * column + text, room, " " * column)]
        else:
            lines += _wrapped(f"{head:<{column}}{text}", room, " " * column)
    return lines


def _wrapped(text: str, room: int, indent: str = "") -> list[str]:
    """`text` in lines of at most `room` cells, the further ones indented; no word is parted."""
    return textwrap.wrap(text, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


# The front page of `swarm-mcp` without arguments at a terminal: the state of this checkout, and the first commands.

MOST_LOCKS, MOST_AUTHORS = 5, 3  # the whole page shall fit a terminal of 24 lines


def show_front_page() -> int:
    """Say it; the exit code."""
    args = parse("", [Usage(ABSOLUTE, *ACTING)], [])
    say(f"swarm-mcp {__version__} in {current_scope()}")
    code = 0
    try:
        _say_standing(args)
    except SwarmError as error:
        say(f"The state cannot be read: {error}. Next: swarm-mcp doctor")
        code = 1
    say()
    say_help(group_page(START, line_width()))
    say()
    say("`swarm-mcp help` lists all commands, `swarm-mcp COMMAND --help` explains one.")
    return code


def _say_standing(args: Arguments) -> None:
    scope = current_scope()
    with Store(read_only=True) as store:
        viewer, waiting = viewer_identity(store, args), store.queue.lengths()
        reader = Reader(args, store, viewer)
        sessions = store.instances.count(scope)
        total, locks = store.locks.foremost(scope, viewer, MOST_LOCKS, reader.own_id, waiting)
        shown = [(reader.path(lock["file"]), reader.holder(lock), reader.when(lock["created_at"])) for lock in locks]
        edited = contributions.uncommitted(store, scope, reader.people)
    if not sessions and not total:
        say(f"No sessions and no locks here. {_first_step()}")
    else:
        say(f"{count(sessions, 'session')}, {count(total, 'lock')}")
    say_uncommitted(edited, user_settings.lowered(scope), reader, MOST_AUTHORS)
    listing(
        ("file", "who", "since", "waits"),
        [(*row, waiting.get(lock["id"], "")) for row, lock in zip(shown, locks)],
        [f"  {file}  by {who}, {since}" for file, who, since in shown],
    )
    if total > len(locks):
        say(f"and {count(total - len(locks), 'more lock')}: swarm-mcp locks")


def _first_step() -> str:
    if marketplace_folder().exists():
        return "An agent that you start here takes part by itself."
    return "Begin with: swarm-mcp install"
