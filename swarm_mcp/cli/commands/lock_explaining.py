"""Why a path can or cannot be written, and what has happened to its locks."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.naming import agent_name
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.acting_session import find_acting_session, onlooker_identity, viewer_identity
from swarm_mcp.answer_size import printed
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, LOCKS, START, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import say, say_row, show
from swarm_mcp.cli.pages import AFTER
from swarm_mcp.cli.reader import HIDDEN, Reader
from swarm_mcp.domain.lock import AUTO
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.errors import UnknownInstance, UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.lock_explaining import explanation, history
from swarm_mcp.overview.explained import through, until
from swarm_mcp.store import Store


@verb(
    Usage(Word("PATH", "the path"), Option("--agent ID", "by which subagent the write would be"), ABSOLUTE, *ACTING),
    group=START,
)
def why(args: Arguments) -> int:
    """why: who holds a path, who waits, and whether you may write it now

    Each lock over the path is listed with the rule through which it holds: on the file itself, on a folder over it, by
    a pattern, or on the same file of another work tree; since when, until when, in which mode, by which session (or
    agent of it), with which fence. Then those who wait, first come first. At last, what would happen to a write by this
    session, by WHO, or by its subagent ID, if it came now: the hooks' own code is asked. PATH need not exist, and need
    not be locked; for a pattern, the locks are those that meet it.

    With --json: {"file", "pattern", "held", "waiting", "write"}; "write" is null for a pattern, else {"instance_id",
    "label", "agent", "allowed", "guarded", "reason"} and, where refused, "holder_id", "lock_file", "fence".

    example: swarm-mcp why src/schema.sql --as 41d2
    """
    word = args.words[0]
    with Store(read_only=True) as store:
        try:
            session = find_acting_session(store, args)
        except UnknownInstance:
            if args.value("--as"):
                raise
            session = None
        viewer = token(session.label or "", "identity") if session else onlooker_identity(store)
        # A word in a shell counts from where it is typed; only who speaks for another means that one's folder.
        place = session if session and args.value("--as") else nobody_in(here(), current_scope(args.value("--scope")))
        found = explanation(store, place, word, session, args.value("--agent"), viewer)
        if args.json:
            show(found)
            return 0
        _say_why(found, Reader(args, store, viewer))
    return 0


def _say_why(found: dict, reader: Reader) -> None:
    say(reader.path(found["file"]))
    for lock in found["held"]:
        _say_lock(lock, reader)
    if not found["held"]:
        say("  nobody holds it")
    for one in found["waiting"]:
        who = HIDDEN if one.get("hidden") else _named(one, reader)
        wants = f"wants {one['mode']} {', '.join(named(reader.path(file)) for file in one['files'])}"
        silent = "; it shows no life, so it is passed over when that is free" if one.get("silent") else ""
        say(f"  {one['place']}. in line: {who}, for {duration(one['waited'])}, {wants}{silent}")
    for name, number in found.get("not_shown", {}).items():
        say(f"  and {number} more {'locks' if name == 'held' else 'in line'}")
    if found["write"]:
        _say_write(found["write"], found["file"], reader)


def _say_lock(lock: dict, reader: Reader) -> None:
    who = HIDDEN if lock.get("hidden") else _named({**lock, "label": lock["owner_label"]}, reader)
    mine = " (this session)" if lock["yours"] and lock["instance_id"] != reader.own_id else ""
    note = f": {quoted(lock['content'])}" if lock["content"] else ""
    say(f"  {lock['mode']}, held by {who}{mine}{through(lock, reader.path)}{note}")
    fence = f"; fence {lock['fence']}" if lock.get("fence") else ""
    say(f"    since {reader.when(lock['created_at'])}, {until(lock, reader.now)}{fence}")


def _named(one: dict, reader: Reader) -> str:
    name = reader.known(one["label"], one["instance_id"])
    return f"{agent_name(one['agent'])} of {name}" if one.get("agent") else name


def _say_write(write: dict, path: str, reader: Reader) -> None:
    reason = (write["reason"] or "").replace(named(path), named(reader.path(path)))
    if write["instance_id"]:
        who = _named(write, reader)
    else:
        who = "a session that holds nothing"
    if write["allowed"]:
        say(f"a write by {who} would go ahead")
    elif write["guarded"] or not write["instance_id"]:
        say(f"a write by {who} would be refused: {reason}")
    else:
        say(f"a write by {who} would go ahead: no hooks of ours guard that session")
        say(f"a session that they guard would be refused: {reason}")


DEFAULT, MOST = 20, 1000


STYLES = {
    "acquired": "held", "denied": "bad", "altered": "bad", "deadlock": "bad", "stolen": "bad", "lapsed": "bad",
    "released": "good", "restored": "good", "transferred": "good",
}  # fmt: skip


@verb(
    Usage(
        Word("PATH", "the path"),
        Option("--limit N", f"the newest N events, 1 to {MOST} ({DEFAULT})"),
        AFTER,
        ABSOLUTE,
        *ACTING,
    ),
    group=LOCKS,
)
def log(args: Arguments) -> int:
    """log: the history of a path's locks

    Who locked it and released it, whose lock lapsed, was handed over or taken, who was denied and why, and when it was
    altered under a lock or restored: under whatever spelling of the path, through folders over it, patterns that cover
    it, and other work trees. The newest N (20) events, the newest last; events are kept for about a day. What sessions
    of another identity are called and say is not shown.

    With --json: {"file", "events": [{"id", "at", "what", "rule", "file", "instance_id", "label", "details"}]}. The
    details of a denial hold what the decision came from: path, tool, cwd, session, denied_agent, the lock's id, fence,
    mode, agent and pattern, its holder, and "rule". "repeated" counts the same denial within the next minute, which is
    no event of its own. "next", where it is there, is the cursor that --after takes for what came before.

    example: swarm-mcp log src/schema.sql --limit 50
    """
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
        viewer = viewer_identity(store, args)
        found = history(store, place, word, viewer, limit, args.value("--after"), printed)
        if args.json:
            show(found)
            return 0
        reader = Reader(args, store, viewer)
        told = [
            (event["what"], reader.when(event["at"]), _told(event, found["file"], reader)) for event in found["events"]
        ]
    if not told:
        say(f"(nothing is known of {reader.path(found['file'])})")
    longest = max((len(at) for _what, at, _words in told), default=0)
    for what, at, words in told:
        say_row(((f"{at:<{longest}}", "faint"), (f"{what:<11}", STYLES.get(what, "name")), (words, "")))
    if found.get("next") and (args.given("--after") or len(found["events"]) < limit):
        say(f"there may be more before: --after {found['next']}")
    return 0


def _told(event: dict, path: str, reader: Reader) -> str:
    """An event in one line."""
    details, parts = event["details"], []
    who = HIDDEN if event.get("hidden") else reader.known(event["label"], event["instance_id"] or "?")
    what = event["what"]
    if what == "denied":
        agent = f", {agent_name(details['denied_agent'])}" if details.get("denied_agent") else ""
        tried = f"{details.get('tool') or 'a write'} of {reader.path(details.get('path') or event['file'])}"
        parts.append(f"to {who}{agent}, by {tried}")
        is_known = details.get("holder_label") or details.get("holder")
        holder = reader.known(details.get("holder_label"), details.get("holder") or "?") if is_known else HIDDEN
        parts.append(f"held by {holder}{_through(event, path, reader)}")
        if event.get("repeated"):
            parts.append(f"and {event['repeated']} more within the minute")
    elif what == "deadlock":
        names = [
            HIDDEN if one.get("hidden") else reader.known(one.get("label"), one.get("instance_id") or "?")
            for one in details.get("circle", ())
        ]
        parts.append(" waits for ".join([*names, *names[:1]]))
    else:
        agent = f", {agent_name(details['agent'])}" if details.get("agent") else ""
        while_ran = "while " if what == "altered" else "by "
        parts.append(
            f"{while_ran}{who}{' ran a call' if what == 'altered' else ''}{agent}{_through(event, path, reader)}"
        )
        if details.get("mode") and (what == "acquired" or details["mode"] == AUTO):
            parts.append(f"mode {details['mode']}")
        for name, words in (("to", "to"), ("from", "from"), ("by", "by"), ("holder", "from")):
            if details.get(name) and what != "altered":
                parts.append(f"{words} {reader.called(details[name])}")
        if details.get("reason") and details["reason"].replace("_", " ") != what:
            parts.append(details["reason"])
    if details.get("fence"):
        parts.append(f"fence {details['fence']}")
    note = details.get("content") or details.get("note") or details.get("why")
    return "; ".join(parts) + (f": {note}" if note else "")


def _through(event: dict, path: str, reader: Reader) -> str:
    where = {"folder": "the folder ", "pattern": "the pattern ", "repository": "another work tree's "}
    if event["rule"] in where and event["file"] != path:
        return f" through {where[event['rule']]}{reader.path(event['file'])}"
    return "" if event["rule"] != "queue" else ", who waits for it longer"
