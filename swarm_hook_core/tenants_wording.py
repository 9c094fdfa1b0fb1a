"""The words about a work tree with live sessions in it, for the session whose call takes it away."""

from __future__ import annotations

from swarm_hook_core.traces.head.wording import AGAIN, working
from swarm_hook_core.untrusted_text import command, named, quoted
from swarm_hook_core.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.tenants import Eviction

MOST_COMMITS = 100  # that are counted
NAMED = 3  # commits, and folders, that are named


def of_call(tool: str, evictions: Sequence[Eviction], own_label: str, denies: bool, now: float) -> str:
    """Return the denial of a call that takes these folders away, or the notice about it."""
    parts = [_of_one(tool, one, own_label, denies, now) for one in evictions[:NAMED]]
    if len(evictions) > NAMED:
        parts.append(f"So it is with {len(evictions) - NAMED} more work trees.")
    if denies:
        kept = next((one for one in evictions if one.commits and one.main), None)
        keep = ""
        if kept is not None and kept.commits:
            keep = f" `git branch NAME {kept.commits[0][0]}` keeps the commits."
        parts.append(
            f"Leave it, or ask that session first (send_message, or `swarm-mcp send`).{keep} If it is meant, {AGAIN},"
            " and that session is told."
        )
    return "swarm: " + " ".join(parts)


def _of_one(tool: str, one: Eviction, own_label: str, denies: bool, now: float) -> str:
    by = f" ({command(one.by)})" if one.by and not tool.endswith(one.by) else ""
    would = f"would {one.deed}" if denies else f"takes away ({one.deed})"
    live = "lives" if len(one.tenants) == 1 else "live"
    since = min((held.since for held in one.tenants if held.since), default=0)
    age = f", since {duration(now - since)} ago" if since and now else ""
    return (
        f"{tool}{by} {would} {named(one.root)}, in which {working(one.tenants, own_label)} {live}{age}."
        f"{commits(one.commits)}"
    )


def commits(found: Sequence[tuple[str, str]] | None) -> str:
    """Return a sentence about commits that no other ref has, with a blank before it; empty without any."""
    if found is None:
        return " Git did not tell in time if commits there are on a branch."
    if not found:
        return ""
    some = ", ".join(f"{named(name)} {quoted(subject)}" for name, subject in found[:NAMED])
    count, more = f"{len(found)}", ""
    if len(found) == MOST_COMMITS:
        count = f"{MOST_COMMITS} or more"
    if len(found) > NAMED:
        more = ", ..."
    one = len(found) == 1
    return f" {count} commit{'' if one else 's'} there {'is' if one else 'are'} on no other branch or tag: {some}{more}."
