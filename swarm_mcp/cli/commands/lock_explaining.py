"""Explaining the locks on a path, and the decision on a write to it."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.naming import agent_name
from swarm_hook_core.untrusted_text import named, quoted, token
from swarm_hook_core.wording import duration
from swarm_mcp.answers.timeline import as_json, sentence, through, until
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, START, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.locking import NAME, files_in
from swarm_mcp.cli.output import say, say_prose, show
from swarm_mcp.cli.words import HIDDEN, Reader, clause
from swarm_mcp.domain import nobody_in
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.explaining import explanation, incidents_about
from swarm_mcp.sessions.acting import find_acting_session, onlooker_identity
from swarm_mcp.store import Store

Row = dict[str, Any]

_NOT_SHOWN = {"held": "locks", "waiting": "in line"}


@verb(
    Usage(Word("PATH", "the path"), NAME, Option("--agent ID", "the subagent that would write"), ABSOLUTE, *ACTING),
    group=START,
)
def why(args: Arguments) -> int:
    """why: the locks on a path, its queue, and if you may write it now

    First come the locks that cover the path, each with its rule: on the file itself, on a folder above it, by a
    pattern, or on the same file of another work tree; with its holder, mode, fence, age and end. Then comes the queue
    in its order. Last comes the decision on an edit, an overwrite and a removal by this session (or WHO, or its
    subagent ID): the hooks' own check decides, and it also knows uncommitted changes of other sessions. PATH need not
    exist, nor be locked. For a pattern, the locks that overlap it are listed. Below stand the last refusals and notices
    about it, of the past hour.

    With --json: {"file", "pattern", "held", "waiting", "write", "incidents"}; "incidents" are those refusals and
    notices, in the shape of `refusals` of `status`; "write" is null for a pattern, else {"instance_id",
    "label", "agent", "allowed", "guarded", "reason", "kinds"} and, for a denial, "holder_id" and of a lock "lock_file",
    "fence". "kinds" has "edit", "overwrite" and "remove", each {"allowed", "reason", "told"}; "allowed" is true if all
    of them are.

    example: swarm-mcp why src/schema.sql --as 41d2
    """
    (word,) = files_in(args, args.words)
    with Store(read_only=True) as store:
        try:
            session = find_acting_session(store, args, reads=True)
        except UnknownInstance:  # a person outside of any session may ask as well
            if args.value("--as"):
                raise
            session = None
        # A relative path in a shell belongs to its folder; only --as means the other session's folder.
        place = nobody_in(here(), current_scope(args.value("--scope")))
        if session is None:
            viewer = onlooker_identity(store)
        else:
            viewer = token(session.label or "", "identity")
            if args.value("--as"):
                place = session
        found = explanation(store, place, word, session, args.value("--agent"), viewer, reader_folder=here())
        reader = Reader(args, store, viewer)
        lately = incidents_about(store, place, word, reader.people)
        if args.json:
            show({**found, "incidents": [as_json(one) for one in lately]})
            return 0
        _say_why(found, reader)
        for one in lately:
            say(f"  {one.last.level} {reader.when(one.last.at)}  {sentence(one.last, reader.path, one.times)}")
    return 0


def _say_why(found: Row, reader: Reader) -> None:
    say(reader.path(found["file"]))
    for lock in found["held"]:
        _say_lock(lock, reader)
    if not found["held"]:
        say("  not locked")
    for one in found["waiting"]:
        who = _named(one, reader)
        wants = f"wants {one['mode']} {', '.join(named(reader.path(file)) for file in one['files'])}"
        silent = "; it shows no sign of life, so the lock goes to the next one" * bool(one.get("silent"))
        say(f"  {one['place']}. in line: {who}, for {duration(one['waited'])}, {wants}{silent}")
    for name, number in found.get("not_shown", {}).items():
        say(f"  and {number} more {_NOT_SHOWN[name]}")
    if found["write"]:
        _say_write(found["write"], reader)


def _say_lock(lock: Row, reader: Reader) -> None:
    line = f"  {lock['mode']}, held by {_named({**lock, 'label': lock['owner_label']}, reader)}"
    if lock["yours"] and lock["instance_id"] != reader.own_id:
        line += " (this session)"
    line += through(lock, reader.path)
    if lock["content"]:
        line += f": {quoted(lock['content'])}"
    say(line)
    since = f"    since {reader.when(lock['created_at'])}, {until(lock, reader.now)}"
    say(since + clause("; fence {}", lock.get("fence")))


def _named(one: Row, reader: Reader) -> str:
    if one.get("hidden"):
        return HIDDEN
    name = reader.known(one["label"], one["instance_id"])
    if one.get("agent"):
        return f"{agent_name(one['agent'])} of {name}"
    return name


def _say_write(write: Row, reader: Reader) -> None:
    reason = reader.prose(write["reason"] or "")
    who = "a session that holds nothing"
    if write["instance_id"]:
        who = _named(write, reader)
    if not write["allowed"] and write["instance_id"] and not write["guarded"]:
        say(f"a write by {who} would go ahead: that session has no hooks of ours")
        say_prose(f"a session with our hooks would be refused: {reason}")
        return
    refused = [kind for kind, one in write["kinds"].items() if not one["allowed"]]
    if not refused:
        say(f"a write by {who} would go ahead")
    elif len(refused) == len(write["kinds"]):
        say_prose(f"a write by {who} would be refused: {reason}")
    else:
        free = " or ".join(kind for kind in write["kinds"] if kind not in refused)
        say(f"to {free} it would go ahead for {who}")
        say_prose(f"to {' or '.join(refused)} it would be refused: {reason}")
    notices = dict.fromkeys(one["told"] for one in write["kinds"].values() if one["told"])
    for words in notices:
        say_prose(f"the model would be told: {reader.prose(words)}")
