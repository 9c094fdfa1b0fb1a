"""The command line as the verbs declare it, for tests that go through all of it."""

from swarm_mcp import contributions
from swarm_mcp.cli.arguments import verb_named

VERBS = contributions.verbs()


def option(name: str, value: object) -> list[str]:
    """Return an option with its value, as words of a command line; no words for an empty value."""
    return [name, str(value)] if value else []


def flags_of(verb: str) -> dict[str, bool]:
    """Return every flag of a verb by its names, hidden ones too; True for one with a value."""
    options = [option for usage in verb_named(verb).usages for option in usage.options]
    return {name: bool(one.value) for one in options for name in (one.name, one.also) if name} | {"--help": False}


FLAGS = sorted({flag for verb in VERBS for flag in flags_of(verb)})
