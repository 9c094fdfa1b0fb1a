"""What programs do with their arguments: a row of `table` each, or, for languages of their own, a module.

A program that is in neither is a guess.
"""

from swarm_hook_core.shell.programs.table import MODULE_OF


class Program:
    """What is known of a program.

    does     a function of a `Call`, which says through it what is written, guessed, run or printed
    module   the module of a language of its own; empty for one of the table
    reads    whether it writes nothing, whatever its arguments
    runs     whether it may run other commands
    """

    __slots__ = ("does", "module", "reads", "runs")

    def __init__(self, does, module: str = "", reads: bool = False, runs: bool = False) -> None:
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
    module = MODULE_OF.get(name)
    if module is not None:
        run = __import__(f"swarm_hook_core.shell.programs.{module}", fromlist=["RUN"]).RUN
        return Program(run[name], module, module in ("listers", "searchers"), module in ("shells", "searches", "xargs"))
    from swarm_hook_core.shell.programs import engine
    from swarm_hook_core.shell.programs.rows import row_of

    row = row_of(name)
    if row is None:
        return None
    flags = row.parse().flags
    runs = "ends" in flags or any(verb in ("run", "text") for verb, _targets in row.effects)
    return Program(lambda call: engine.follow(call, row, _function), reads="reads" in flags, runs=runs)


def _function(name: str):
    """The function that a row calls ``name``."""
    from swarm_hook_core.shell.programs import functions

    return getattr(functions, name)
