"""Finding a verb by its name, or by a noun and a word.

A verb is a function of its name (``_`` for ``-``; ``try_``, as Python has that word) under ``@verb(...)``, the
declaration of its usages; see ``arguments``. Its docstring is the help: a summary that begins with the verb's name,
then the details and an example.
The packages list their verbs; see ``contributions``.
"""

from __future__ import annotations

from collections.abc import Sequence

from swarm_mcp import contributions
from swarm_mcp.cli import arguments
from swarm_mcp.cli.arguments import Verb


def is_verb(name: str) -> bool:
    """Return True if there is a verb `name`."""
    return bool(contributions.module_of(name))


# Nouns, with verbs of their own: `swarm-mcp task claim`. Older scripts call the verb alone.
NOUNS = {
    "task": "the tasks that sessions give each other",
    "msg": "the messages between sessions",
    "worker": "agents that work on tasks on their own",
}


def words_of(noun: str) -> dict[str, str]:
    """Return the words of a noun with their verbs; empty for another word."""
    if noun not in NOUNS:
        return {}  # so a verb without a noun loads one list only
    return contributions.nouns()[noun]


def called(verb: str) -> str:
    """Return the words for a verb behind ``swarm-mcp``: ``task claim`` for a noun's verb, else its name."""
    for noun, words in contributions.nouns().items():
        for word, meant in words.items():
            if meant == verb:
                return f"{noun} {word}"
    return verb


def all_verbs() -> list[str]:
    """Return all verbs, in the order that those of one group have on the help page."""
    return contributions.verbs()


def aliases() -> dict[str, str]:
    """Return the second names of verbs: name -> verb."""
    return contributions.table("ALIASES")


def other_words() -> dict[str, str]:
    """Return words of other tools that people type: word -> the verb for the same purpose."""
    return contributions.table("OTHER_WORDS")


def retired(verb: str, items: Sequence[str] = ()) -> str:
    """Return the advice for a verb that is gone, or for such an option of it in `items`; else an empty text."""
    instead = contributions.table("RETIRED")
    found = [word for word in (verb, *(f"{verb} {item}" for item in items)) if word in instead]
    return "".join(f"{word!r} is gone: {instead[word]}" for word in found[:1])


def verb_named(name: str) -> Verb:
    """Load the module that has the verb `name`, and return the verb."""
    module = contributions.module_named(contributions.module_of(name))
    attribute = name.replace("-", "_")
    found: Verb = getattr(module, attribute, None) or getattr(module, f"{attribute}_")  # a word of Python, as `try`
    return found


def declared(name: str) -> tuple[str, str]:
    """Return the group of the verb `name` on the help page, and its summary.

    Both are read from the module's source: importing every verb would take long.
    """
    from importlib.util import find_spec

    module = contributions.module_of(name)
    spec = find_spec(module)
    # The loader also reads from a zip archive. The stubs know it without `get_source`, and as None.
    source = spec.loader.get_source(module)  # type: ignore[union-attr]
    head, _, body = source.partition(f'    """{name}: ')
    constant = head.rpartition("\n@verb(")[2].partition("group=")[2].partition(")")[0].strip(", \n")
    return getattr(arguments, constant), body.partition("\n")[0]


def summary_of(name: str) -> str:
    """Return the summary of the verb `name`."""
    return declared(name)[1]
