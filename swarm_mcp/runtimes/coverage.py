"""How much of each client swarm can see and say: for `doctor`, and for the table in docs/clients.md."""

from __future__ import annotations

from typing import NamedTuple

from swarm_hook_core.config import RuntimeConfig

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
