"""Declaring, parsing and finding verbs, the commands of the command line.

`verb` makes a function a verb and declares its usages, the forms in which it can be called. Parsing, help
(``help_page``), completion and the errors for a wrong command line follow from these; flags are listed in no other
place. Words and flags stand in any order; ``--flag value``, ``--flag=value`` and ``--`` (the rest are words) are
understood.

Hooks start commands that load this module, so it imports next to nothing (decision 0033 has the figures).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from swarm_mcp import contributions
from swarm_mcp.errors import UsageError
from swarm_mcp.store import BUSY_SECONDS

LARGEST = 10**12
# The groups of the help page. Each verb belongs to one; those in BEHIND are only in `help --all`.
START, LOCKS, CHANGES, SCREENS = "Start here", "Locks", "Uncommitted work", "On a screen"
SETUP, SUBJECTS, SESSIONS, MORE_LOCKS = "Setup", "By subject", "Sessions", "More about locks"
TASK, MSG, WORKER = "Tasks", "Messages", "Workers"  # verbs of a noun
MORE_SETUP, INTERNAL = "More about the setup", "For hooks and programs"
FRONT = (START, CHANGES, LOCKS, SCREENS, SETUP, SUBJECTS)
BEHIND = (TASK, MSG, WORKER, MORE_LOCKS, SESSIONS, MORE_SETUP, INTERNAL)
GROUPS = (*FRONT, *BEHIND)
# The sources of completion for a word or a value; a tuple of words is one as well.
FILES, FOLDERS, INSTANCES, TASKS, KEYS = "files", "folders", "instances", "tasks", "keys"
Source = str | tuple[str, ...]


class Word:
    """A positional word: `name` in usage lines, `about` for the help and for the error if it is missing.

    An `optional` word and all after it may be left out. A `repeated` word, the last, may be given any number of times.
    A `behind` word stands behind a ``--``. `choices` lists the allowed values. `source` says where completion finds
    candidates, and `statuses` limits tasks among them.
    """

    __slots__ = ("name", "about", "optional", "repeated", "behind", "may_be_blank", "choices", "source", "statuses")

    def __init__(
        self,
        name: str,
        about: str = "",
        *,
        optional: bool = False,
        repeated: bool = False,
        behind: bool = False,
        may_be_blank: bool = False,
        choices: tuple[str, ...] = (),
        source: Source = FILES,
        statuses: tuple[str, ...] = (),
    ):
        self.name, self.about, self.optional, self.repeated = name, about, optional, repeated
        self.behind, self.may_be_blank = behind, may_be_blank
        self.choices, self.source, self.statuses = choices, choices or source, statuses

    @property
    def shown(self) -> str:
        """The word as usage lines have it."""
        text = f"{'-- ' * self.behind}{self.name}{' ...' * self.repeated}"
        if self.optional:
            return f"[{text}]"
        return text


def choice(*words: str, about: str = "subcommand", optional: bool = False) -> Word:
    """A word that is one of `words`."""
    return Word("|".join(words), about, optional=optional, choices=words)


class Option:
    """A flag: `form` is its name and, unless it is a switch, a name for its value (``--note TEXT``).

    A `required` flag must have a value, a `repeatable` one may be given often. `also` is a second name. `choices` lists
    the allowed values. `source` says where completion finds values. A `hidden` flag is for hooks, or kept for old
    scripts: it is in no usage line.
    """

    __slots__ = ("form", "name", "value", "about", "required", "repeatable", "hidden", "also", "choices", "source")

    def __init__(
        self,
        form: str,
        about: str = "",
        *,
        required: bool = False,
        repeatable: bool = False,
        hidden: bool = False,
        also: str = "",
        choices: tuple[str, ...] = (),
        source: Source = FILES,
    ):
        self.form, self.about, self.required, self.repeatable = form, about, required, repeatable
        self.name, _, self.value = form.partition(" ")
        self.hidden, self.also, self.choices = hidden, also, choices
        self.source = choices or source

    @property
    def shown(self) -> str:
        """The flag as usage lines have it."""
        text = self.form
        if not self.required:
            text = f"[{text}]"
        return text + "..." * self.repeatable


class Usage:
    """One form of a command: its words in order, its options in any.

    With `surplus`, words too many are ignored. A `hidden` one is for programs: neither help nor completion has it.
    """

    __slots__ = ("words", "options", "surplus", "hidden")

    def __init__(self, *parts: Word | Option, surplus: bool = False, hidden: bool = False):
        self.words = tuple(part for part in parts if isinstance(part, Word))
        self.options = tuple(part for part in parts if isinstance(part, Option))
        self.surplus, self.hidden = surplus, hidden

    @property
    def most(self) -> int | None:
        """The largest number of words; None for any number."""
        if self.surplus or any(word.repeated and not word.behind for word in self.words):
            return None
        return len(self.words)

    def begins_with(self, word: str) -> bool:
        """Return True if `word` can be the first word of this usage."""
        return not self.words or not self.words[0].choices or word in self.words[0].choices

    def word_after(self, count: int) -> Word | None:
        """Return the word that follows `count` others, or None if the usage ends there."""
        if count < len(self.words):
            return self.words[count]
        if self.words and self.words[-1].repeated:
            return self.words[-1]
        return None


ROLES = ("planner", "implementer", "reviewer", "researcher", "generalist")
MODES, EFFORTS = ("read-only", "edit", "yolo"), ("low", "medium", "high", "max")  # of workers
# Options of many verbs.
JSON = Option("--json", "print JSON")
AS = Option(
    "--as WHO",
    "act as this session: the number in its name, the beginning of its id, or part of its label (default: this one)",
    source=INSTANCES,
)
SCOPE = Option(
    "--scope DIR", "the scope: the folder whose sessions see each other (default: the git root here)", source=FOLDERS
)
PERSON = Option("--person", "act as a person, also in a script; refused to agents")
ACTING = (AS, SCOPE, JSON)  # of verbs that act as a session, or show its view
DOING = (PERSON, *ACTING)  # of verbs that change something, as a session or a person
ABSOLUTE = Option("--absolute", "whole paths, and dates (UTC) instead of ages")
PLACE = (  # of verbs that register
    Option("--directory DIR", "where the session works", hidden=True, source=FOLDERS),
    Option("--label TEXT", 'words that name it, such as "identity:work role:reviewer"'),
    Option(
        "--file-root DIR", "the real folder of its files, for a worktree that stands for another folder", source=FOLDERS
    ),
)
RUNTIME = Option("--runtime NAME", "the session's client", required=True)
SESSION_ID = Option("--session-id ID", "the session's id there", required=True)
PATIENCE = Option("--patience SECONDS", "time to wait for a busy store (15)", hidden=True)
FENCE = Option("--fence N", "only the lock with this fence; exit 1 if it is no longer held")
AGENT = Option("--agent ID", "only the locks of this subagent of the session")


class Arguments:
    """The words and flags given to one command: `words` in order, flags by name.

    `behind`: the number of words behind a ``--``; None without a ``--``.
    """

    __slots__ = ("words", "behind", "_values")

    def __init__(self, words: list[str], values: dict[str, list[str]], behind: int | None = None):
        self.words = words
        self.behind = behind
        self._values = values

    @property
    def json(self) -> bool:
        """True if the answer is wanted as JSON."""
        return self.given("--json")

    def given(self, flag: str) -> bool:
        """Return True if the flag was given, even with an empty value."""
        return flag in self._values

    def value(self, flag: str) -> str:
        """The flag's value, the last where it was given often, empty where it was not given."""
        return self._values.get(flag, [""])[-1]

    def all(self, flag: str) -> list[str]:
        """Every value of a repeatable flag, in order."""
        return list(self._values.get(flag, []))

    def number(self, flag: str, default: int = 0) -> int:
        """The flag's value as a whole number, `default` where it was not given."""
        text = self.value(flag).strip()
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            number = LARGEST + 1  # refused below
        if abs(number) <= LARGEST:
            return number
        raise UsageError(f"{flag} wants a whole number, not {text[:40]!r}")

    def seconds(self, flag: str, default: float = 0.0) -> float:
        """The flag's value as a span in seconds, `default` where it was not given."""
        text = self.value(flag).strip()
        try:
            span = float(text or default)
        except ValueError:
            span = -1.0  # refused below
        if 0 <= span <= LARGEST:
            return span
        raise UsageError(f"{flag} wants seconds, not {text[:40]!r}")

    def number_if_given(self, flag: str) -> int | None:
        """As `number`; None if the flag was not given."""
        if not self.given(flag):
            return None
        return self.number(flag)

    def seconds_if_given(self, flag: str) -> float | None:
        """As `seconds`; None if the flag was not given."""
        if not self.given(flag):
            return None
        return self.seconds(flag)

    def process(self, flag: str) -> tuple[int, str]:
        """The process that the flag names as ``PID:START``; ``(0, "")`` where it was not given."""
        text = self.value(flag)
        if not text:
            return 0, ""
        pid, colon, started = text.partition(":")
        if not (colon and pid.isascii() and pid.isdigit() and len(pid) < 10):
            raise UsageError(f"{flag} wants PID:START")
        return int(pid), started

    @property
    def patience(self) -> float:
        """Seconds to wait for a busy store."""
        return min(self.seconds("--patience", BUSY_SECONDS), BUSY_SECONDS)


class Verb:
    """One command: its `usages`, its `group` on the help page, the function that runs it and returns an exit code, and
    its help. `refuses` as in `verb`.
    """

    __slots__ = ("usages", "group", "run", "help", "refuses")

    def __init__(self, usages: tuple[Usage, ...], group: str, run: Callable[[Arguments], int], refuses: bool):
        self.usages, self.group, self.run, self.refuses = usages, group, run, refuses
        self.help = run.__doc__ or ""


def verb(*usages: Usage, refuses: bool = False, group: str) -> Callable[[Callable[[Arguments], int]], Verb]:
    """Make the function below a verb that can be called in these forms. Its docstring is the verb's help.

    `refuses`: the error Refused is answered as "VERB failed: ...", with --json as the object {"error", ...}; exit 1.

    `group` is one of GROUPS. It is the last argument, and the name of a constant above: the help page reads it from the
    source (``declared``).
    """
    return lambda run: Verb(usages, group, run, refuses)


def parse(verb: str, usages: Sequence[Usage], items: list[str]) -> Arguments:
    """Split a command's arguments, and see that one of its usages takes them. Raises UsageError."""
    arguments = _split(verb, usages, items)
    problems: list[str] = []
    for usage in usages:
        found = _problems(verb, usage, usages, arguments)
        if not found:
            return arguments
        if not problems or len(found) < len(problems):
            problems = found
    raise UsageError(problems[0])


def _split(verb: str, usages: Sequence[Usage], items: list[str]) -> Arguments:
    options = {name: one for usage in usages for one in usage.options for name in (one.name, one.also) if name}
    words: list[str] = []
    values: dict[str, list[str]] = {}
    behind = None
    rest = iter(items)
    for item in rest:
        name, equals, value = item.partition("=")
        if item == "--":
            last = list(rest)
            words, behind = words + last, len(last)
        elif name in options:
            option = options[name]
            if equals and not option.value:
                raise UsageError(f"{name} takes no value")
            if option.value and not equals:
                try:
                    value = next(rest)
                except StopIteration:
                    raise UsageError(f"{name} wants a value") from None
            values.setdefault(option.name, []).append(value)
        elif item.startswith("--"):
            shown = [one for one, option in options.items() if not option.hidden]
            raise UsageError(
                f"Unknown flag: {name[:60]}" + (meant(name, shown) or f"; {verb} takes {', '.join(shown) or 'none'}")
            )
        else:
            words.append(item)
    return Arguments(words, values, behind)


def _problems(verb: str, usage: Usage, usages: Sequence[Usage], arguments: Arguments) -> list[str]:
    """Return the errors of `arguments` as this `usage`, the most important first; empty if they fit."""
    first = "".join(arguments.words[:1])
    if arguments.words and not usage.begins_with(first):
        firsts = [word for one in usages if one.words and not one.hidden for word in one.words[0].choices]
        # As this usage nothing else can be said of them.
        return [unknown(first, firsts, f"{verb} {usage.words[0].about}")] * (len(arguments.words) + 9)
    form = " ".join(["swarm-mcp", verb, *(word.shown for word in usage.words)])
    found = _wrong_words(verb, usage, arguments, form)
    for option in usage.options:
        value = arguments.value(option.name).strip()
        if option.required and not (value or (arguments.given(option.name) and not option.value)):
            found.append(f"missing {option.about or 'it'}: {form} {option.form}")
        if value and option.choices and value not in option.choices:
            found.append(unknown(value, option.choices, option.name[2:]))
    known = {option.name for option in usage.options}
    others = dict.fromkeys(option.name for one in usages for option in one.options if option.name not in known)
    return found + [f"{name} is not for `{form}`" for name in others if arguments.given(name)]


def _wrong_words(verb: str, usage: Usage, arguments: Arguments, form: str) -> list[str]:
    given, found, most = arguments.words, [], usage.most
    if usage.words and usage.words[-1].behind:
        behind = arguments.behind or 0
        given, command = given[: len(given) - behind], given[len(given) - behind :]
        if not command:
            found.append(f"missing {usage.words[-1].about}: {form}")
        most = most and most - 1
    for at, word in enumerate(usage.words):
        if word.behind:
            break
        if at >= len(given) or not (given[at].strip() or word.may_be_blank):
            if not word.optional:
                found.append(f"missing {word.about or word.name}: {form}")
            break
        if word.choices and given[at] not in word.choices:
            found.append(unknown(given[at], word.choices, f"{verb} {word.about}"))
    if most is not None and len(given) > most:
        surplus = given[most]
        names = [option.name for option in usage.options if not option.hidden]
        hint = ""
        if surplus.startswith("-"):
            hint = meant(f"--{surplus.lstrip('-')}", names)
        found.append(f"{surplus[:60]!r} is one word too many{hint}; {verb} takes {most or 'none'}")
    return found


def one_of(word: str, known: Collection[str], what: str) -> str:
    """`word`, where it is one of `known`; else UsageError with those there are and the likely one."""
    if word in known:
        return word
    raise UsageError(unknown(word, known, what))


def unknown(word: str, known: Collection[str], what: str) -> str:
    """The error for a `word` outside of `known`, with the most similar known word."""
    return f"unknown {what} {word[:60]!r}{meant(word, known)}; choose from {', '.join(known)}"


def meant(word: str, known: Collection[str]) -> str:
    """Return `` (did you mean X?)`` with the known word most like `word`, or an empty text if none is similar."""
    from difflib import get_close_matches

    found = get_close_matches(word[:60], sorted(known), 1, 0.6)
    if not found:
        return ""
    return f" (did you mean {found[0]}?)"


# Finding a verb by its name, or by a noun and a word.
#
# The packages list their verbs (``contributions``): a verb is a function of its name in the listed module (``_`` for
# ``-``; ``try_``, as Python has that word) under ``@verb(...)``. Its docstring is the help: a summary that begins with
# the verb's name, then the details and an example.

# Nouns, with verbs of their own: `swarm-mcp task claim`. Older scripts call the verb alone.
NOUNS = {
    "task": "the tasks that sessions give each other",
    "msg": "the messages between sessions",
    "worker": "agents that work on tasks on their own",
}


def is_verb(name: str) -> bool:
    """Return True if there is a verb `name`."""
    return bool(contributions.module_of(name))


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
    return globals()[constant], body.partition("\n")[0]
