"""The effects of programs, by their arguments: a row of `table` each. A program without a row is a guess."""

from __future__ import annotations

from swarm_hook_core.shell.programs.rows import row_of

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Program:
    """A known program.

    does     a function of a `Call`; through the call it reports the writes, guesses, runs and output
    module   the module that parses its arguments if they are a language of their own, else empty
    reads    True if it writes nothing, with any arguments
    runs     True if it may run other commands
    """

    __slots__ = ("does", "module", "reads", "runs")

    def __init__(self, does: Callable[..., Any], module: str, reads: bool, runs: bool) -> None:
        self.does = does
        self.module = module
        self.reads = reads
        self.runs = runs


_met: dict[str, Program | None] = {}


def program(name: str) -> Program | None:
    """Return the Program `name` (a base name), or None if it is unknown."""
    if name not in _met:
        _met[name] = _found(name) or _found(name.rstrip("0123456789.-"))  # python3.12, gcc-13
    return _met[name]


def _found(name: str) -> Program | None:
    row = row_of(name)
    if row is None:
        return None
    flags, effects = row.parse().flags, row.effects
    runs = "ends" in flags or any(verb in ("run", "text") for verb, _targets in effects)
    if effects and effects[0][0] == "language":
        module, function = effects[0][1][0].split(".")
        language = __import__(f"swarm_hook_core.shell.programs.{module}", fromlist=[function])
        return Program(getattr(language, function), module, "reads" in flags, runs)
    from swarm_hook_core.shell.programs import engine

    return Program(lambda call: engine.follow(call, row, _function), "", "reads" in flags, runs)


def _function(name: str) -> Callable[..., None]:
    """The function that a row calls ``name``."""
    from swarm_hook_core.shell.programs import functions

    function: Callable[..., None] = getattr(functions, name)
    return function
