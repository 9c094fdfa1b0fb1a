"""The words for a refusal or a notice, alike on every screen: its reason, and the whole of it in one line."""

from __future__ import annotations

from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_hook_core.untrusted_text import cut, named, quoted
from swarm_hook_core.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from swarm_mcp.answers.incidents import Incident

LONGEST = 120  # characters of a command, of a note
_CHANGED = " changed{before} and has not committed"

# The reason of an incident -> the words before and after the name of the other session; one text without such a name.
REASONS: dict[str, tuple[str, str | None]] = {
    # locks
    "lock": ("held by ", "{through}"),
    "queue": ("", " waits for it, and is first in line"),
    "circle": ("it would have waited in a circle", None),
    "lapsed": ("its lock has lapsed, and ", " has locked it since"),
    "possible": ("{by} may write what ", " holds"),
    "kernel": ("the kernel kept it from writing what ", " holds"),
    "altered": ("{by} changed what ", " holds"),
    # uncommitted work of another session
    "uncommitted": ("it would {deed} what ", _CHANGED),
    "moment": ("", " was writing it at that moment"),
    "sweep": ("{by} would {deed} what ", f"{_CHANGED}{{more}}"),
    "tenant": ("it would {deed} the folder in which ", " works{more}"),
    "stash": ("{by} would {deed} what ", " put into the stash{before}"),
    "passed": ("it was let {deed} what ", _CHANGED),
    "merged": ("its text was merged with what ", _CHANGED),
    "elsewhere": ("", " has changed it on another machine, and not pushed"),
    # no session's
    "person": ("{by} would {deed} a person's uncommitted work{more}", None),
    "merged-person": ("its text was merged with a person's uncommitted work", None),
    "fence": ("{by} would write in another work tree", None),
    "head": ("{by} would change the HEAD, index or stash that sessions share here", None),
    "team": ("locks of other machines may be unknown here", None),
    "unchecked": ("it could not be checked{detail}", None),
    "reserved": ("only a person may do that{detail}", None),
}
OWNERLESS = tuple(reason for reason, (_before, after) in REASONS.items() if after is None)


_THROUGH = {
    "file": "", "folder": ", by the locked folder {file}", "pattern": ", by the pattern {file}",
    "repository": ", as {file} of another work tree", "overlap": ": {file}",
}  # fmt: skip


def through(lock: dict[str, Any], path: Callable[[str], str]) -> str:
    """Return the rule by which a lock of ``explaining.explanation`` holds; empty for a lock on the very file.

    `path` returns a path's name for the reader.
    """
    return _THROUGH.get(lock["rule"], "").format(file=named(path(lock["file"])))


def around_name(one: Incident, path: Callable[[str], str] = str) -> tuple[str, str | None]:
    """Return the words before and after the name of the other session; the whole text first, without one.

    `path` returns a path's name for the reader.
    """
    first, last = REASONS.get(one.reason, ("it was in the way of ", ""))
    command, before, more, note = cut(one.command, LONGEST), "", "", ""
    by, detail = "it", ""
    if command:
        by, detail = f"`{command}`", f": {command}"
    if one.changed_at:
        before = f" {duration(max(0, one.at - one.changed_at))} before"
    if one.also:
        more = f", and {one.also} more file{'s' * (one.also > 1)}"
    if one.note.strip():
        note = f": {quoted(one.note, LONGEST)}"
    lock = through({"rule": one.rule, "file": one.lock}, path)
    words = {"by": by, "deed": one.deed or "change", "before": before, "more": more, "detail": detail, "through": lock}
    if last is None:
        return first.format(**words) + note, None
    return first.format(**words), last.format(**words) + note


def why(one: Incident, path: Callable[[str], str] = str) -> str:
    """Return the reason: the short form."""
    before, after = around_name(one, path)
    if after is None:
        return before
    return f"{before}{one.other_name or UNNAMED}{after}"


def sentence(one: Incident, path: Callable[[str], str] = str, times: int = 1) -> str:
    """Return all of it but its time and level: the long form. `times`: the number of incidents like it."""
    file, who, often, by, again = "", one.name, f" ({times} times)" * (times > 1), "", ""
    if one.file:
        file = f"{path(one.file)} "
    if one.agent:
        who = f"{agent_name(one.agent)} of {who}"
    if one.tool:
        by = f", by {cut(one.tool, LONGEST)}"
    if one.repeated:
        again = f", and {one.repeated} more within the minute"
    return f"{file}to {who}{often}{by}: {why(one, path)}{again}"
