"""The plugin as a client has it installed, how much of the client it covers, and what has changed since."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.state import describe
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.folders import plugin_folder

# The errors of reading a JSON file that has changed its form.
_NOT_AS_WRITTEN = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
ROOT_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "SWARM_PLUGIN_ROOT")  # commands find the plugin by them


@dataclass(frozen=True)
class HookCommand:
    """A hook as the client would run it: a shell command line, and the variables that the client adds."""

    event: str
    command: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Installed:
    """One client's installed plugin.

    `root`: the folder that its sessions run it from. `folder`: the client's own files in there. `told`: the hook
    commands if it is known that the client would run them; else they are read from `folder`.
    """

    root: Path
    folder: str
    told: list[HookCommand] | None = None

    def commands(self) -> list[HookCommand]:
        """Return the hooks that are commands, as the client would run them. Raises ClientFailed."""
        if self.told is not None:
            return self.told
        environment = {variable: str(self.root) for variable in ROOT_VARIABLES}
        return [HookCommand(event, str(hook.get("command")), environment) for event, hook in self._wired("command")]

    def asks_a_server(self) -> bool:
        """Return True for a plugin of an earlier release in which the MCP server checked writes."""
        try:
            return '"mcp_tool"' in (self.root / self.folder / "hooks.json").read_text(encoding="utf-8")
        except (OSError, ValueError):  # this client has its hooks elsewhere
            return False

    def _wired(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """``(event, hook)`` of each hook of this kind that the plugin wires. Raises ClientFailed."""
        path = self.root / self.folder / "hooks.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            hooks = [(event, dict(hook)) for event, _group, hook in hooks_in(tree)]
            return [(event, hook) for event, hook in hooks if hook["type"] == kind]
        except _NOT_AS_WRITTEN as error:
            raise ClientFailed(f"{path} cannot be understood ({describe(error)})") from error


def hooks_in(tree: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """``(event, group, hook)`` of each hook in a ``hooks.json`` of ours."""
    return [
        (event, group, hook) for event, groups in tree["hooks"].items() for group in groups for hook in group["hooks"]
    ]


def in_quotes(place: Path) -> str:
    """A path as it stands between the double quotes of a shell's command."""
    return re.sub(r'([\\"$`])', r"\\\1", str(place))


# The changelog of this installation: changes since an earlier release.

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"## \[?([^\]\s]+)\]?(?: - (\d{4}-\d{2}-\d{2}))?")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.+?[.!?])(?= [A-Z`\"])")


@dataclass(frozen=True)
class Entry:
    """One change: its release, its `kind` (Added, Changed, ...), and its text in one line."""

    release: str
    kind: str
    text: str

    @property
    def first_sentence(self) -> str:
        """Return the first sentence of the text."""
        found = _SENTENCE.match(self.text)
        if found:
            return found[1]
        return self.text


def file() -> Path:
    """Return where this installation has the changelog. Raises SwarmError where it has lost its files."""
    return Path(plugin_folder()) / "CHANGELOG.md"


def entries(text: str) -> list[Entry]:
    """Return every entry of a changelog, in its order."""
    found: list[Entry] = []
    release = kind = ""
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            release, kind = heading[1], ""
        elif line.startswith("### "):
            kind = line[4:].strip()
        elif line.startswith("- ") and kind:
            found.append(Entry(release, kind, _LINK.sub(r"\1", line[2:].strip())))
        elif line.startswith("  ") and line.strip() and kind and found:
            last = found.pop()
            found.append(Entry(last.release, last.kind, _LINK.sub(r"\1", f"{last.text} {line.strip()}")))
        elif line.startswith("## "):
            kind = ""
    return found


def since(version: str) -> list[Entry]:
    """Return the changes after release `version`, as far as this installation knows."""
    try:
        text = file().read_text(encoding="utf-8")
    except (OSError, UnicodeError, SwarmError):  # a checkout may lack it; news are no need
        return []
    return [entry for entry in entries(text) if entry.release == UNRELEASED or newer(entry.release, version)]


def newer(version: str, other: str) -> bool:
    """Return True if release `version` came after `other`."""
    return _numbers(version) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.partition("+")[0])[:3])


# How much of each client swarm can see and say: for `doctor`, and for the table in docs/clients.md.

YES = "yes"


class Verified(NamedTuple):
    """The release of a client that the tests ran with, the date (ISO), and what was new in it for swarm's promises.

    `make matrix` writes it. An empty `changed`: nothing, or no release before it was played.
    """

    version: str
    date: str
    changed: str = ""


class Coverage(NamedTuple):
    """The coverage of a client. Each field is ``yes``, or ``no`` or ``partly`` with a colon, the gap and the reason.

    edits        the client's tools for changing and writing files are checked before they do
    patches      so are its patches of several files, if its models have a tool for them
    shell        commands of its shell tool are read before they run
    other_tools  tools of other MCP servers are checked
    subagents    all of that also holds for the agents that a session starts
    told_before  the model hears our words at a session's start, and with a call that goes ahead
    told_after   the model hears of changes by a command to files of other sessions
    ends         the session's end is told, so that its locks go at once; else they go once its process has gone
    verified     None if this client could not be run: built from its documentation alone
    """

    edits: str
    patches: str
    shell: str
    other_tools: str
    subagents: str
    told_before: str
    told_after: str
    ends: str
    verified: Verified | None

    def said(self) -> tuple[str, ...]:
        """Return the texts of COLUMNS, in their order."""
        return (
            self.edits, self.patches, self.shell, self.other_tools, self.subagents, self.told_before, self.told_after,
            self.ends,
        )  # fmt: skip

    def gaps(self) -> list[str]:
        """Return the gaps, such as ``sub-agents (no: it has none)``."""
        return [f"{column} ({said})" for column, said in zip(COLUMNS, self.said()) if said != YES]


def held_by_the_kernel(config: RuntimeConfig) -> str:
    """Return the text of the column: can commands of a client run under the kernel's hold on locks of others?

    It is no field of Coverage, because a user without that setting misses nothing.
    """
    if config.kernel_versions:
        return f"partly: {', '.join(config.kernel_versions)} only"
    if config.kernel:
        return YES
    return "no"


# The fields but the last, as people read them.
COLUMNS = ("edits", "patches", "shell", "other MCP tools", "sub-agents", "told before", "told after", "ends")
