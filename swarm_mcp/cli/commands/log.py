"""log: the history of a path's locks

Who locked it and released it, whose lock lapsed, was handed over or taken, who was denied and why, and when it was
altered under a lock or restored: under whatever spelling of the path, through folders over it, patterns that cover
it, and other work trees. The newest N (20) events, the newest last; events are kept for about a day. What sessions
of another identity are called and say is not shown.

With --json: {"file", "events": [{"id", "at", "what", "rule", "file", "instance_id", "label", "details"}]}. The
details of a denial hold what the decision came from: path, tool, cwd, session, denied_agent, the lock's id, fence,
mode, agent and pattern, its holder, and "rule". "repeated" counts the same denial within the next minute, which is
no event of its own.

example: swarm-mcp log src/schema.sql --limit 50
"""

from __future__ import annotations

from swarm_mcp.acting_session import find_acting_session, viewer_identity
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import moment, say, say_row, show
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.errors import UsageError
from swarm_mcp.lock_history import history
from swarm_mcp.scope import current_scope, here
from swarm_mcp.store import Store
from swarm_mcp.views import short

DEFAULT, MOST = 20, 1000
STYLES = {
    "acquired": "held", "denied": "bad", "altered": "bad", "deadlock": "bad", "stolen": "bad", "lapsed": "bad",
    "released": "good", "restored": "good", "transferred": "good",
}  # fmt: skip

USAGES = (
    Usage(Word("PATH", "the path"), Option("--limit N", f"the newest N events, 1 to {MOST} ({DEFAULT})"), *ACTING),
)


def run(args: Arguments) -> int:
    """Print the history."""
    word = args.words[0]
    limit = args.number("--limit", DEFAULT)
    if not 1 <= limit <= MOST:
        raise UsageError(f"--limit wants 1 to {MOST}, not {limit}")
    with Store(read_only=True) as store:
        place = (
            find_acting_session(store, args)
            if args.value("--as")
            else nobody_in(here(), current_scope(args.value("--scope")))
        )
        found = history(store, place, word, viewer_identity(store, args), limit)
    if args.json:
        show(found)
        return 0
    if not found["events"]:
        say(f"(nothing is known of {found['file']})")
    for event in found["events"]:
        parts = ((moment(event["at"]), "faint"), (f"{event['what']:<11}", STYLES.get(event["what"], "name")))
        say_row((*parts, (_told(event, found["file"]), "")))
    return 0


def _told(event: dict, path: str) -> str:
    """An event in one line."""
    details, parts = event["details"], []
    who = "another identity" if event.get("hidden") else event["label"] or short(event["instance_id"] or "?")
    what = event["what"]
    if what == "denied":
        agent = f", agent {details['denied_agent']}" if details.get("denied_agent") else ""
        tried = f"{details.get('tool') or 'a write'} of {details.get('path') or event['file']}"
        parts.append(f"to {who}{agent}, by {tried}")
        holder = details.get("holder_label") or short(details.get("holder") or "") or "another identity"
        parts.append(f"held by {holder}{_through(event, path)}")
        if event.get("repeated"):
            parts.append(f"and {event['repeated']} more within the minute")
    elif what == "deadlock":
        names = [one.get("label") or short(one.get("instance_id") or "") or "another identity"
                 for one in details.get("circle", ())]  # fmt: skip
        parts.append(" waits for ".join([*names, *names[:1]]))
    else:
        agent = f", agent {details['agent']}" if details.get("agent") else ""
        while_ran = "while " if what == "altered" else "by "
        parts.append(f"{while_ran}{who}{' ran a call' if what == 'altered' else ''}{agent}{_through(event, path)}")
        parts += [f"{name} {details[name]}" for name in ("mode",) if details.get(name) and what == "acquired"]
        for name, words in (("to", "to"), ("from", "from"), ("by", "by"), ("holder", "from")):
            if details.get(name) and what != "altered":
                parts.append(f"{words} {short(details[name])}")
        if details.get("reason") and details["reason"] != what:
            parts.append(details["reason"])
    if details.get("fence"):
        parts.append(f"fence {details['fence']}")
    note = details.get("content") or details.get("note") or details.get("why")
    return "; ".join(parts) + (f": {note}" if note else "")


def _through(event: dict, path: str) -> str:
    where = {"folder": "the folder ", "pattern": "the pattern ", "repository": "another work tree's "}
    if event["rule"] in where and event["file"] != path:
        return f" through {where[event['rule']]}{event['file']}"
    return "" if event["rule"] != "queue" else ", who waits for it longer"
