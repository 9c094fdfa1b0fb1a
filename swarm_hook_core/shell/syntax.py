"""The parser's output: statements, the words in them, the parts of the words.

    Script ─ statements ─ Command ─ words ─ parts: text, Literal, Double, Parameter, Substitution, Calculation, Array

Only the walk can expand a word (`words`).
"""

from __future__ import annotations

from typing import Any


class Node:
    """A part of a script; made of the values of its fields, in the order of their declaration."""

    fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any) -> None:
        vars(self).update(zip(self.fields, values))


class Script(Node):
    """A script, or the inside of a substitution. `broken`: some of it is no shell, as a quote that is never closed.

    `cut`: it is longer than can be read, and these are its first statements.
    """

    statements: list[Node]
    broken: bool
    cut: bool
    text: str


# Words


class Word(Node):
    """One word: `raw` as it was written, and its `parts`; unquoted text is a str."""

    raw: str
    parts: list[str | Node]

    def __init__(self, raw: str, parts: list[str | Node]) -> None:  # quicker: there are many
        self.raw = raw
        self.parts = parts


class Literal(Node):
    """Text that stands for itself: in single quotes, behind a backslash."""

    text: str


class Double(Node):
    """``"parts"``; text in it is a str."""

    parts: list[str | Node]


class Parameter(Node):
    """``${flag name[index] operator argument operator other}``, or ``$name``.

    flag      ``$`` without braces; ``#`` its length, ``!`` an indirection, ``=`` split in zsh, too; else empty
    name      empty if it cannot be read
    other     the replacement behind ``/``, the length behind ``:``; else None
    """

    flag: str
    name: str
    index: Word | None
    operator: str
    argument: Word
    other: Word | None


class Substitution(Node):
    """``$(script)`` with a `kind` of ``$``, ``<(script)`` and ``>(script)``."""

    kind: str
    script: Script


class Calculation(Node):
    """``$((word))``."""

    word: Word


class Array(Node):
    """``(words)`` behind ``name=``."""

    words: list[Word]


# Statements


class Redirect(Node):
    """One redirection. `fd`: the descriptor before it, mostly empty; `body`: the here-document, unchanged."""

    fd: str
    operator: str
    word: Word
    body: str | None


class Command(Node):
    """A simple command: assignments and words in order, and its redirections."""

    words: list[Word]
    redirects: list[Redirect]


class Test(Node):
    """``[[ words ]]``; its operators are words, too."""

    words: list[Word]


class Arithmetic(Node):
    """``(( word ))``."""

    word: Word


class Redirected(Node):
    """A compound command, a test or a calculation with redirections of its own."""

    inner: Node
    redirects: list[Redirect]


class Background(Node):
    """``inner &``."""

    inner: Node


class Negated(Node):
    """``! inner``."""

    inner: Node


class Pipeline(Node):
    """``a | b | c``."""

    parts: list[Node]


class Chain(Node):
    """``first && a || b``; `rest`: pairs of an operator and the command after it."""

    first: Node
    rest: list[tuple[str, Node]]


class Group(Node):
    """``{ body; }``."""

    body: list[Node]


class Subshell(Node):
    """``( body )``."""

    body: list[Node]


class If(Node):
    """`clauses`: pairs of a condition and a body; `otherwise`: the body of ``else``, or None."""

    clauses: list[tuple[list[Node], list[Node]]]
    otherwise: list[Node] | None


class Case(Node):
    """`items`: ``(patterns, body, True if it falls through to the next item)``."""

    word: Word
    items: list[tuple[list[Word], list[Node], bool]]


class For(Node):
    """``for name in words`` (and ``select``)."""

    name: str
    words: list[Word]
    body: list[Node]


class While(Node):
    """A loop; `until`: it ends once its condition is met; `step`: arithmetic done after each round, or None."""

    condition: list[Node]
    body: list[Node]
    until: bool
    step: Word | None


class Function(Node):
    """``name() body``."""

    name: str
    body: Node
