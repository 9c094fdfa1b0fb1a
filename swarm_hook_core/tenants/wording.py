"""The words about a folder with live sessions in it, for the session whose call takes it away."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_hook_core.traces.head.wording import AGAIN, working
from swarm_hook_core.untrusted_text import command, named, quoted
from swarm_hook_core.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.tenants.eviction import Eviction

MOST_COMMITS = 100  # that are counted
NAMED = 3  # commits, and folders, that are named


def of_call(tool: str, evictions: Sequence[Eviction], own_label: str, denies: bool, now: float) -> str:
    """Return the denial of a call that takes these folders away, or the notice about it."""
    parts = [_of_one(tool, one, own_label, denies, now) for one in evictions[:NAMED]]
    if len(evictions) > NAMED:
        parts.append(f"So it is with {len(evictions) - NAMED} more folders.")
    if denies:
        parts.append("Leave it, or ask that session first (send_message, or `swarm-mcp send`).")
        kept = next((one.commits for one in evictions if one.commits and one.main), None)
        if kept:
            parts.append(f"`git branch NAME {kept[0][0]}` keeps the commits.")
        parts.append(f"If it is meant, {AGAIN}, and that session is told.")
    return "swarm: " + " ".join(parts)


def _of_one(tool: str, one: Eviction, own_label: str, denies: bool, now: float) -> str:
    by, does, live, age = "", f"is to {one.deed}", "live", ""
    if one.by and not tool.endswith(one.by):
        by = f" ({command(one.by)})"
    if denies:
        does = f"would {one.deed}"
    if len(one.tenants) == 1:
        live = "lives"
    since = min((held.since for held in one.tenants if held.since), default=0)
    if since:
        age = f", since {duration(now - since)} ago"
    return f"{tool}{by} {does} {named(one.root)}, in which {working(one.tenants, own_label)} {live}{age}.{_lost(one)}"


def _lost(one: Eviction) -> str:
    """Return a sentence about the commits that no other ref has, with a blank before it; empty without any."""
    if one.commits is None:
        return " Git did not tell in time if commits there are on a branch."
    if not one.commits:
        return ""
    some = ", ".join(f"{named(name)} {quoted(subject)}" for name, subject in one.commits[:NAMED])
    if len(one.commits) == 1:
        return f" 1 commit there is on no other branch or tag: {some}."
    count = str(len(one.commits))
    if len(one.commits) == MOST_COMMITS:
        count += " or more"
    if len(one.commits) > NAMED:
        some += ", ..."
    return f" {count} commits there are on no other branch or tag: {some}."
