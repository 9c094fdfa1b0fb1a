"""The state of a shell at one point of a script: its folder, variables, functions, standard input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Union

from swarm_hook_core.shell.model import UNKNOWN, Input, is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Span
    from swarm_hook_core.shell.syntax import Node

    Variable = Union[str, list[str], dict[str, str], None]


# Variables that a shell computes each time.
_COMPUTED = frozenset(
    "RANDOM SRANDOM SECONDS LINENO BASHPID PPID EPOCHSECONDS EPOCHREALTIME BASH_SOURCE FUNCNAME REPLY"
    " PIPESTATUS".split()
)

MOST_FOLDERS = 2  # where a shell may be as well; those beyond are forgotten


def options_of(shell: str) -> set[str]:
    """Options that a shell of this name starts with. `zsh` is one here: it splits and matches no variables."""
    if shell == "zsh":
        return {"zsh", "globstar"}
    return set()


class Scope:
    """The state of one shell.

    folder     absolute, or None after a `cd` to an unknown place
    environment  variables that the first shell starts with
    variables  name -> text, list (array) or dict (associative one); others may be in the environment
    words      positional parameters, ``$0`` first
    status     of the last command: True, False, or None if only a run could tell
    predicate  True if the last command asks a question (`test`, `grep`), so that a failure is likely
    tried      the missing folder of a `cd` that has just failed; else None
    if_failed  folders of the shell in case the last command failed, if different from `folder`
    elsewhere  other possible folders of the shell, since an earlier `cd` may have failed
    heard      True if the output goes to another command, or into a variable or a file
    shown      True if the output is certainly shown to the model, as far as the shell can tell
    spans      the lines of it that are shown, as ``showing`` has them; empty for all
    line       (folder, words) of each command so far whose output goes the same way; None if not recorded
    ended      ``exit``, ``return``, ``break`` or ``continue`` if nothing after this point is run; else empty
    """

    __slots__ = (
        "folder", "environment", "previous", "stack", "variables", "functions", "aliases", "words", "stdin", "status",
        "predicate", "tried", "if_failed", "elsewhere", "ended", "options", "locals", "last", "heard",
        "shown", "spans", "line",
    )  # fmt: skip

    def __init__(self, folder: str | None, words: list[str], environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.previous: str | None = None
        self.stack: list[str | None] = []
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.words: list[str] = words
        self.stdin = Input(None)
        self.status: bool | None = True
        self.predicate = False
        self.tried: str | None = None
        self.if_failed: tuple[str | None, ...] = ()
        self.elsewhere: tuple[str, ...] = ()
        self.ended = ""
        self.options: set[str] = set()
        self.locals: dict[str, Variable] | None = None  # name -> value before, in a function
        self.heard = False
        self.shown = True
        self.spans: tuple[Span, ...] = ()
        self.line: list[tuple[str | None, list[str]]] | None = None
        self.last = ""  # last word of the last command

    def variable(self, name: str) -> Variable:
        """Return the value of variable `name`: text, list, dict, or None if it is not set as far as is known."""
        current = self.variables.get(name)
        if current is not None or name in self.variables:
            return current
        if name == "PWD":
            return self.folder or UNKNOWN
        if name == "OLDPWD":
            return self.previous or UNKNOWN
        if name in _COMPUTED:
            return UNKNOWN
        return self.environment.get(name)

    def known_text(self, name: str) -> str:
        """Return the text of variable `name`; empty if it is not set, is unknown, or is a list."""
        value = self.variable(name)
        if isinstance(value, str) and is_known(value):
            return value
        return ""

    def parameter(self, name: str, missing: str | None = UNKNOWN) -> str | list[str] | None:
        """Return the text of ``$name``, or a list for ``$@``. `missing`: for unset names; a profile may set them."""
        if name.isdecimal():
            place = 99999
            if len(name) < 6:
                place = int(name)
            if place < len(self.words):
                return self.words[place]
            if UNKNOWN in self.words[1:]:
                return UNKNOWN
            if missing is UNKNOWN:
                return ""
            return missing
        if name in ("@", "*"):
            return self.words[1:]
        if name == "#":
            if UNKNOWN not in self.words:
                return str(len(self.words) - 1)
            return UNKNOWN
        if name == "?":
            if self.status is None:
                return UNKNOWN
            if self.status:
                return "0"
            return "1"
        if name in ("$", "!", "-"):
            return UNKNOWN
        if name == "_":
            return self.last
        current = self.variable(name)
        if isinstance(current, list):
            if "zsh" in self.options:
                return current
            if current:
                return current[0]
            return ""
        if isinstance(current, dict):
            return current.get("0", "")
        if current is None:
            return missing
        return current

    def separators(self) -> str:
        """Return the letters at which unquoted text is split: ``$IFS``."""
        current = self.variables.get("IFS")
        if isinstance(current, str) and is_known(current):
            return current
        return " \t\n"

    def fork(self) -> Scope:
        """A shell that starts from this one's state and does not change it."""
        other = Scope(self.folder, self.words, self.environment)
        other.previous, other.stack, other.stdin = self.previous, list(self.stack), self.stdin
        other.variables, other.functions = dict(self.variables), dict(self.functions)
        other.aliases, other.options, other.locals = dict(self.aliases), set(self.options), self.locals
        other.status, other.predicate, other.last = self.status, self.predicate, self.last
        other.heard, other.shown, other.spans, other.line = self.heard, self.shown, self.spans, self.line
        other.if_failed, other.elsewhere = self.if_failed, self.elsewhere
        return other

    def failed(self) -> Scope:
        """A shell as this one is if its last command failed."""
        other = self.fork()
        if self.if_failed:
            other.folder, other.if_failed = self.if_failed[0], ()
            other.may_be_in(self.if_failed[1:])
        return other

    def may_be_in(self, folders: Iterable[str | None]) -> None:
        """The shell may be in these folders as well."""
        new = dict.fromkeys([*self.elsewhere, *folders])
        self.elsewhere = tuple(one for one in new if one is not None and one != self.folder)[:MOST_FOLDERS]

    def adopt(self, other: Scope) -> None:
        """Go on from the state of `other`, but keep this shell's own `shown` and `spans`."""
        shown, spans = self.shown, self.spans
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
        self.shown, self.spans = shown, spans

    def merge(self, others: list[Scope], mark_of_values: Callable[[list[str]], str]) -> None:
        """Go on from any of `others`; `mark_of_values(list of texts)` stands for one of several."""
        live = [one for one in others if not one.ended]
        self.shown = self.shown and len(live) == len(others)  # the next command may not be reached
        if not live:
            self.adopt(others[0])
            return
        self.adopt(live[0])
        self.if_failed = ()
        folders = [one for other in live for one in (other.folder, *other.if_failed, *other.elsewhere)]
        if any(other.folder is None for other in live):
            self.folder = None
        self.may_be_in(folders)
        for other in live[1:]:
            if other.words != self.words:
                self.words = self.words[:1] + [UNKNOWN]
            if other.variables != self.variables:
                names = dict.fromkeys([*self.variables, *other.variables])
                self.variables = {
                    name: _either(self.variables.get(name), other.variables.get(name), mark_of_values) for name in names
                }
            self.functions = {**other.functions, **self.functions}
            if other.status != self.status:
                self.status = None


def _either(one: Variable, another: Variable, mark_of_values: Callable[[list[str]], str]) -> Variable:
    """Return a variable's value after two branches that leave `one` and `another` (None: unchanged)."""
    if one == another:
        return one
    if not isinstance(one, str) or not isinstance(another, str):
        known = another
        if isinstance(one, str):
            known = one
        if isinstance(known, str) and known.startswith("-"):
            return known
        return UNKNOWN
    if all(not text or text.startswith("-") for text in (one, another)):
        return max(one, another, key=len)  # `flag=` or `flag=-v`: no operand either way
    return mark_of_values([one, another])
