"""Denials and notices about git commands that would discard or take along others' uncommitted changes."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.wording import and_more, changed_by
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held

LATE = (
    "Git was too slow to say if these files are still changed, so their sessions' own notes decide. Name your own"
    " files, if there are any."
)
OWN_COMMIT = (
    "`swarm-mcp commit -m TEXT [FILE...]`, or the tool commit, commits your own lines alone, in shared files too."
)
AGAIN = "If theirs are meant to go along, the same command again goes ahead."
PERSON_ALONE = "Past this only a person can go, by running it in a terminal of their own."
WAY_PAST = "`swarm-mcp protect off --for 5m`"
NAMED = 3  # files of one session, and sessions, that are named


def denial(
    tool: str, by: str, deed: str, traces: list[Trace], way: str, identity: str, now: float, is_once: bool = False
) -> str:
    """Return the denial of a command that affects others' work: whose, a narrower command, and the way past it.

    `deed`: the command's effect on the files of `traces`, a verb; `way`: a sentence or "". `is_once`: the same command
    again goes ahead.
    """
    whose = changed(traces, identity, now)
    if is_once:
        return joined(
            f"swarm: {tool} ({command(by)}) would {deed} others' uncommitted changes: {whose}.", way, OWN_COMMIT, AGAIN
        )
    if deed in ("stage", "commit"):
        way = joined(way, OWN_COMMIT)
    ask = asked_of(traces[0].held, identity)
    return joined(
        f"swarm: {tool} ({command(by)}) would {deed} others' uncommitted changes: {whose}.",
        way,
        f"Leave theirs as it is: go on without this command, or {ask} and try again once they have committed."
        f" {PERSON_ALONE}",
    )


def line(by: str, deed: str, traces: list[Trace], way: str, identity: str, now: float, may: bool = False) -> str:
    """Return the notice about a call that goes ahead. `may`: the effect is not certain."""
    verb, _, rest = deed.partition(" ")
    if may:
        does = f"may {deed}"
    else:
        does = f"{verb}{'es' if verb.endswith('h') else 's'} {rest}".rstrip()
    whose = changed(traces, identity, now)
    return joined(f"swarm: {command(by)} {does} others' uncommitted changes: {whose}.", way)


def changed(traces: list[Trace], identity: str, now: float) -> str:
    """Return the files with their sessions: a few of each, then the number of the rest."""
    writers: dict[tuple[str, str], list[Trace]] = {}
    for trace in traces:
        writers.setdefault((trace.held.instance_id, trace.held.agent), []).append(trace)
    parts = []
    for some in list(writers.values())[:NAMED]:
        files = ", ".join(named(trace.path) for trace in some[:NAMED])
        newest = max(some, key=lambda trace: trace.at_ns)
        parts.append(f"{files}{and_more(len(some) - NAMED)} (by {changed_by(newest, identity, now)})")
    rest = sum(len(some) for some in list(writers.values())[NAMED:])
    return "; ".join(parts) + (f"; and {rest} more of other sessions" if rest else "")


def asked_of(held: Held, identity: str) -> str:
    """Return how to reach the session that `held` names."""
    if held.kin:
        return "let that agent finish first" if held.agent else "report to the main thread"
    if not same_circle(identity, token(held.label, "identity")):
        return "ask the person running theirs"
    return f"message their session (instance {named(held.instance_id)})"


def joined(*sentences: str | bool) -> str:
    """Return the sentences in one line, without those that are empty or False."""
    return " ".join(one for one in sentences if isinstance(one, str) and one)
