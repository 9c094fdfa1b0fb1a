"""The command line: words and flags, in any order.

Every flag is known to every command, as the contract has it; a command ignores what it has no use
for. ``--flag value``, ``--flag=value`` and ``--`` (the rest are words) are understood.
"""

from __future__ import annotations

from swarm_mcp.errors import UsageError
from swarm_mcp.store import BUSY_SECONDS

LARGEST = 10**12

VALUE_FLAGS = frozenset(
    {
        "--adopt-instance-id", "--agent", "--as", "--assignee", "--at", "--backend", "--client", "--command",
        "--completion-wait", "--depends-on", "--description", "--dir", "--directory", "--effort", "--env", "--expect",
        "--fence", "--file", "--file-root", "--from", "--grace", "--harness", "--holder", "--hook", "--host", "--id",
        "--idempotency-key", "--kept", "--key", "--kind", "--label", "--lease-seconds", "--limit", "--max-cost",
        "--max-turns", "--message", "--mode", "--model", "--name", "--note", "--pane", "--parent-task", "--patience",
        "--prefix", "--priority", "--reason", "--remote", "--resume", "--role", "--runtime", "--schema", "--scope",
        "--session-id", "--since", "--skill", "--source", "--spawner", "--state", "--status", "--system-prompt", "--target",
        "--task", "--timeout", "--to", "--tool", "--transport", "--ttl", "--type", "--wait", "--wait-for-completion", "--x",
        "--y",
    }
)  # fmt: skip
REPEATABLE = frozenset({"--at", "--env", "--file", "--holder", "--kept", "--key", "--kind", "--skill"})
SWITCHES = frozenset(
    {
        "--approval-required", "--detach", "--dry-run", "--exclusive", "--follow", "--force", "--force-spawn",
        "--fresh", "--git", "--help", "--json", "--list", "--local", "--logical", "--no-clients", "--no-enter",
        "--no-nudge", "--no-skill", "--no-skills", "--no-spawn", "--path", "--pattern", "--shared", "--tell", "--watch",
    }
)  # fmt: skip


class Arguments:
    """Parsed arguments of one command: `words` in order, flags by name.

    `behind`: how many of the words stand behind a ``--``; None where there is none.
    """

    __slots__ = ("words", "behind", "_values", "_switches")

    def __init__(self, words: list[str], values: dict[str, list[str]], switches: set[str], behind: int | None = None):
        self.words = words
        self.behind = behind
        self._values = values
        self._switches = switches

    @property
    def json(self) -> bool:
        """Whether the answer is to be JSON."""
        return "--json" in self._switches

    def has(self, switch: str) -> bool:
        """Whether this switch was given."""
        return switch in self._switches

    def value(self, flag: str) -> str:
        """The flag's value, the last where it was given often, empty where it was not given."""
        return self._values.get(flag, [""])[-1]

    def given(self, flag: str) -> bool:
        """Whether this flag was given, were it with an empty value."""
        return flag in self._values

    def all(self, flag: str) -> list[str]:
        """Every value of a repeatable flag, in order."""
        assert flag in REPEATABLE
        return list(self._values.get(flag, []))

    def number(self, flag: str, default: int = 0) -> int:
        """The flag's value as a whole number, `default` where it was not given."""
        text = self.value(flag).strip()
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            number = LARGEST + 1
        if abs(number) <= LARGEST:
            return number
        raise UsageError(f"{flag} wants a whole number, not {text[:40]!r}")

    def seconds(self, flag: str, default: float = 0.0) -> float:
        """The flag's value as a span in seconds, `default` where it was not given."""
        text = self.value(flag).strip()
        try:
            span = float(text) if text else default
        except ValueError:
            span = -1.0
        if 0 <= span <= LARGEST:
            return span
        raise UsageError(f"{flag} wants seconds, not {text[:40]!r}")

    def process(self, flag: str) -> tuple[int, str]:
        """The process that the flag names as ``PID:START``; ``(0, "")`` where it was not given."""
        text = self.value(flag)
        pid, colon, started = text.partition(":")
        if text and not (colon and pid.isascii() and pid.isdigit() and len(pid) < 10):
            raise UsageError(f"{flag} wants PID:START")
        return (int(pid), started) if text else (0, "")

    @property
    def patience(self) -> float:
        """How long to wait for a busy store, in seconds."""
        return min(self.seconds("--patience", BUSY_SECONDS), BUSY_SECONDS)

    def word(self, index: int, what: str) -> str:
        """The positional word at `index`; `what` it is, for the error where it is missing."""
        if index >= len(self.words) or not self.words[index].strip():
            raise UsageError(f"missing {what}")
        return self.words[index]


def parse(items: list[str]) -> Arguments:
    """Split a command's arguments. Raises UsageError."""
    words: list[str] = []
    values: dict[str, list[str]] = {}
    switches: set[str] = set()
    behind = None
    rest = iter(items)
    for item in rest:
        if item == "--":
            last = list(rest)
            words, behind = words + last, len(last)
        elif item == "-h":
            switches.add("--help")
        elif not item.startswith("--"):
            words.append(item)
        else:
            name, equals, value = item.partition("=")
            if name in SWITCHES and not equals:
                switches.add(name)
            elif name in VALUE_FLAGS:
                if not equals:
                    try:
                        value = next(rest)
                    except StopIteration:
                        raise UsageError(f"{name} wants a value") from None
                values.setdefault(name, []).append(value)
            elif name in SWITCHES:
                raise UsageError(f"{name} takes no value")
            else:
                raise UsageError(f"Unknown flag: {name}{meant(name, VALUE_FLAGS | SWITCHES)}")
    return Arguments(words, values, switches, behind)


def one_of(word: str, known, what: str) -> str:
    """`word`, where it is one of `known`; else UsageError with those there are and the likely one."""
    if word in known:
        return word
    raise UsageError(f"unknown {what} {word[:60]!r}{meant(word, known)}; choose from {', '.join(known)}")


def meant(word: str, known) -> str:
    """`` (did you mean X?)`` with the known word most like `word`, empty where none comes close."""
    from difflib import get_close_matches

    found = get_close_matches(word[:60], sorted(known), 1, 0.6)
    return f" (did you mean {found[0]}?)" if found else ""
