"""What programs do with their arguments: a row of `table` each. A program without one is a guess."""

from swarm_hook_core.shell.programs.rows import row_of


class Program:
    """What is known of a program.

    does     a function of a `Call`, which says through it what is written, guessed, run or printed
    module   the module that knows its arguments where they are a language of their own, else empty
    reads    whether it writes nothing, whatever its arguments
    runs     whether it may run other commands
    """

    __slots__ = ("does", "module", "reads", "runs")

    def __init__(self, does, module: str, reads: bool, runs: bool) -> None:
        self.does = does
        self.module = module
        self.reads = reads
        self.runs = runs


_met: "dict[str, Program | None]" = {}


def program(name: str) -> "Program | None":
    """The Program `name` (a base name), or None where nothing is known of it."""
    if name not in _met:
        _met[name] = _found(name) or _found(name.rstrip("0123456789.-"))  # python3.12, gcc-13
    return _met[name]


def _found(name: str) -> "Program | None":
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


def _function(name: str):
    """The function that a row calls ``name``."""
    from swarm_hook_core.shell.programs import functions

    return getattr(functions, name)
