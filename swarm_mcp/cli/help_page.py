"""The help of the command line: one page of all verbs, and one of each, made from what its module declares."""

from __future__ import annotations

import textwrap
from inspect import cleandoc

from swarm_mcp.cli.arguments import ACTING, Option, Usage, Word
from swarm_mcp.cli.terminal import clipped
from swarm_mcp.cli.verbs import VERBS, summary_of, verb_named

WIDTH = 110
WIDEST_NAME = 26  # of a word or flag in the list of them


def overview(room: int) -> list[str]:
    """The lines that say which verbs there are, each in at most `room` cells; 0 for any number."""
    longest = max(map(len, VERBS))
    lines = [f"  {verb:<{longest}}  {summary_of(verb)}" for verb in VERBS]
    return [
        "swarm-mcp: peer locking and coordination for coding-agent sessions",
        "",
        "usage: swarm-mcp COMMAND [WORDS] [--flags]",
        "",
        *(clipped(line, room or len(line)) for line in lines),
        "",
        "swarm-mcp COMMAND --help shows a command's flags and an example; --json gives JSON everywhere.",
    ]


def page_of(verb: str) -> str:
    """The help of `verb`: what it does, how it is called, what each word and flag means, and an example."""
    command = verb_named(verb)
    usages = [usage for usage in command.usages if not usage.hidden]
    summary, _, rest = cleandoc(command.help).partition("\n\n")
    calls = [_call(verb, usage, "usage: " if at == 0 else "       ") for at, usage in enumerate(usages)]
    words = [word for usage in usages for word in usage.words]
    options = [option for usage in usages for option in usage.options]
    parts: list[Word | Option] = [*words, *sorted(options, key=lambda option: option in ACTING)]
    shown = _list([part for part in parts if not (isinstance(part, Option) and part.hidden)])
    hidden = _list([part for part in parts if isinstance(part, Option) and part.hidden and part.about])
    blocks = [summary, "\n".join(calls), shown, f"Hooks add:\n{hidden}" if hidden else "", rest]
    return "\n\n".join(block for block in blocks if block)


def _call(verb: str, usage: Usage, begin: str) -> str:
    head = f"{begin}swarm-mcp {verb}"
    before = [word.shown for word in usage.words if not word.behind]
    flags = [option.shown for option in usage.options if not option.hidden]
    behind = [word.shown for word in usage.words if word.behind]
    # What belongs together is not parted at the end of a line.
    text = " ".join(part.replace(" ", "\0") for part in (*before, *flags, *behind))
    lines = textwrap.wrap(text, WIDTH - len(head) - 1, break_long_words=False, break_on_hyphens=False) or [""]
    indent = "\n" + " " * (len(head) + 1)
    return f"{head} {indent.join(lines)}".replace("\0", " ").rstrip()


def _list(parts: list[Word | Option]) -> str:
    """The words and flags that have something to be said of them, each once, aligned."""
    about: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Option):
            about.setdefault(f"{part.also}, {part.form}" if part.also == "-f" else part.form, part.about)
        elif not part.choices:
            about.setdefault(part.name, part.about)
    rows = [(name, text) for name, text in about.items() if text]
    column = min(max((len(name) for name, _ in rows), default=0), WIDEST_NAME) + 4
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - column, break_long_words=False, break_on_hyphens=False)
        head = f"  {name}"
        if len(head) + 2 > column:
            lines.append(head)
        else:
            lines.append(f"{head:<{column}}{wrapped.pop(0)}")
        lines += [" " * column + line for line in wrapped]
    return "\n".join(lines)
