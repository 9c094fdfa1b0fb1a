"""The declaration of a verb, and parsing a command line by it."""

import pytest

from swarm_mcp.cli.arguments import JSON, Option, Usage, Word, choice, parse
from swarm_mcp.errors import UsageError

NOTE = Option("--note TEXT", "why")
FILES = (Usage(Word("FILE", "the file", repeated=True), NOTE, JSON),)
HOLD = (
    Usage(Word("FILE", "the file", repeated=True), Word("COMMAND", "the command", repeated=True, behind=True)),
    Usage(Option("--git", required=True), Word("COMMAND", "the command", repeated=True, behind=True)),
)
KEYS = (
    Usage(choice("list", optional=True), Option("--prefix TEXT")),
    Usage(choice("get"), Word("KEY", "the key")),
    Usage(choice("move"), Option("--x N", "to where", required=True), Option("--how HOW", choices=("up", "down"))),
)


@pytest.mark.parametrize(
    ("usages", "line", "words", "behind"),
    [
        (FILES, "a --note x b", ["a", "b"], None),
        (FILES, "a -- --json b", ["a", "--json", "b"], 2),
        (FILES, "a --", ["a"], 0),
        (HOLD, "a -- b --json -- c", ["a", "b", "--json", "--", "c"], 4),
        (HOLD, "--git -- b", ["b"], 1),
        (KEYS, "", [], None),
        (KEYS, "get k", ["get", "k"], None),
        (KEYS, "move --x 1 --how=up", ["move"], None),
    ],
)
def test_words(usages, line: str, words: list[str], behind: int | None):
    arguments = parse("verb", usages, line.split())
    assert (arguments.words, arguments.behind) == (words, behind)


@pytest.mark.parametrize(
    ("usages", "line", "said"),
    [
        (FILES, "", "missing the file: swarm-mcp verb FILE ..."),
        (FILES, "a --note", "--note wants a value"),
        (FILES, "a --json=1", "--json takes no value"),
        (FILES, "a --nte x", "Unknown flag: --nte (did you mean --note?)"),
        (FILES, "a --ttl 9", "Unknown flag: --ttl; verb takes --note, --json"),
        (HOLD, "a", "missing the command: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "a --", "missing the command: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "-- b", "missing the file: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "a --git -- b", "--git is not for `swarm-mcp verb FILE ... -- COMMAND ...`"),
        (KEYS, "gt", "unknown verb subcommand 'gt' (did you mean get?); choose from list, get, move"),
        (KEYS, "get", "missing the key: swarm-mcp verb get KEY"),
        (KEYS, "get k more", "'more' is one word too many; verb takes 2"),
        (KEYS, "get k -prefx", "'-prefx' is one word too many; verb takes 2"),
        ((Usage(JSON),), "-json", "'-json' is one word too many (did you mean --json?); verb takes none"),
        (KEYS, "get k --prefix x", "--prefix is not for `swarm-mcp verb get KEY`"),
        (KEYS, "move", "missing to where: swarm-mcp verb move --x N"),
        (KEYS, "move --x 1 --how dwn", "unknown how 'dwn' (did you mean down?); choose from up, down"),
    ],
)
def test_what_is_refused(usages, line: str, said: str):
    with pytest.raises(UsageError) as error:
        parse("verb", usages, line.split())
    assert str(error.value) == said


def test_a_blank_word_is_no_subcommand():
    with pytest.raises(UsageError, match="unknown verb subcommand ''; choose from list, get, move"):
        parse("verb", KEYS, [""])


def test_values():
    arguments = parse(
        "verb", (Usage(NOTE, Option("--at N", repeatable=True, also="--when")),), "--at 1 --when=2".split()
    )
    assert arguments.all("--at") == ["1", "2"] and arguments.value("--at") == "2" and arguments.number("--at") == 2
    assert arguments.value("--note") == "" and arguments.seconds_if_given("--note") is None
    assert arguments.seconds("--note", 5.0) == 5.0 and not arguments.given("--note") and not arguments.json
    assert parse("verb", FILES, ["f", "--note", "--json"]).value("--note") == "--json"
    assert parse("verb", FILES, ["f", "--note=--json=1"]).value("--note") == "--json=1"
    for text in ("1.5", "x", "9" * 30):
        wrong = parse("verb", (Usage(NOTE),), ["--note", text])
        with pytest.raises(UsageError):
            wrong.number("--note")
