"""Splitting a program's arguments into options and operands, as getopt does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Options:
    """`operands` in order; `given`: option -> list of its values (None for an option without a value).

    Short options are keyed ``-x``, long ones ``--name`` (also if written ``--name=value``).
    """

    __slots__ = ("operands", "given")

    def __init__(self, operands: list[str], given: dict[str, list[str | None]]) -> None:
        self.operands = operands
        self.given = given

    def has(self, *names: str) -> bool:
        """Return True if one of these options was given."""
        return any(name in self.given for name in names)

    def values(self, *names: str) -> list[str]:
        """The values given to these options, in the order of `names`."""
        return [value for name in names for value in self.given.get(name, ()) if value is not None]

    def value(self, *names: str) -> str | None:
        """Return the last value given to one of these options, or None."""
        found = self.values(*names)
        if found:
            return found[-1]
        return None


def split(
    words: Iterable[str],
    short: str = "",
    long: Iterable[str] = (),
    optional: str = "",
    stop_early: int = 0,
) -> Options:
    """Split `words` (without the program's name) into options and operands.

    `short`: letters of short options with a value (``-o x``, ``-ox``). `optional`: letters of options with an attached
    value or no value (``-i.bak``). `long`: long options with their value in the next word. `stop_early`: this many
    operands (True: one) end the options, as for programs that run others; 0: never.
    """
    operands: list[str] = []
    given: dict[str, list[str | None]] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word == "-" or not word.startswith("-"):
            operands.append(word)
            if stop_early and len(operands) >= stop_early:
                operands += rest
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            given.setdefault(name, []).append(_value_of(value if equals else None, name in long, rest))
        else:
            for place, letter in enumerate(word[1:], 2):
                values = given.setdefault(f"-{letter}", [])
                if letter in short:
                    values.append(word[place:] or next(rest, ""))
                    break
                if letter in optional:
                    values.append(word[place:] or None)
                    break
                values.append(None)
    return Options(operands, given)


def split_one_dash(
    words: Iterable[str],
    valued: Iterable[str],
    known: Iterable[str] = (),
    most_take: bool = False,
) -> Options:
    """Split `words` of a program whose long options have one dash, so that letters are not put together (gcc, go).

    `valued`: options with a value, in the next word or behind ``=``; those of one letter also right behind it. `known`:
    other options. `most_take`: an option in neither takes the next word, too (ffmpeg).
    """
    operands: list[str] = []
    given: dict[str, list[str | None]] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word == "-" or word[:1] != "-":
            operands.append(word)
        else:
            name, equals, value = word.partition("=")
            if name not in valued and name not in known:
                if name[:2] == "--":
                    other = name[1:]
                else:
                    other = "-" + name
                if other in valued or other in known:
                    name = other
                elif name[:2] in valued:
                    name, equals, value = name[:2], "=", word[2:]
            takes = name in valued or (most_take and name not in known)
            given.setdefault(name, []).append(_value_of(value if equals else None, takes, rest))
    return Options(operands, given)


def _value_of(attached: str | None, takes: bool, rest: Iterator[str]) -> str | None:
    """Return an option's value: the `attached` one, else the next word of `rest` if the option takes one."""
    if attached is None and takes:
        return next(rest, None)
    return attached
