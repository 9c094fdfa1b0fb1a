"""why: who holds what over a path, who waits, and what would happen to a write now

Each lock over the path is listed with the rule through which it holds: on the file itself, on a folder over it, by
a pattern, or on the same file of another work tree; since when, until when, in which mode, by which session (or
agent of it), with which fence. Then those who wait, first come first. At last, what would happen to a write by this
session, by WHO, or by its subagent ID, if it came now: the hooks' own code is asked. PATH need not exist, and need
not be locked; for a pattern, the locks are those that meet it.

With --json: {"file", "pattern", "held", "waiting", "write"}; "write" is null for a pattern, else {"instance_id",
"label", "agent", "allowed", "guarded", "reason"} and, where refused, "holder_id", "lock_file", "fence".

example: swarm-mcp why src/schema.sql --as 41d2
"""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.untrusted_text import label, named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.acting_session import find_acting_session, onlooker_identity
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import moment, say, show
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.explain import explanation
from swarm_mcp.scope import current_scope, here
from swarm_mcp.store import Store
from swarm_mcp.views import short

THROUGH = {
    "file": "", "folder": ", by the locked folder {file}", "pattern": ", by the pattern {file}",
    "repository": ", as {file} of another work tree", "overlap": ": {file}",
}  # fmt: skip

USAGES = (Usage(Word("PATH", "the path"), Option("--agent ID", "by which subagent the write would be"), *ACTING),)


def run(args: Arguments) -> int:
    """Print the explanation."""
    word = args.words[0]
    with Store(read_only=True) as store:
        now = store.now()
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
    say(found["file"])
    for lock in found["held"]:
        _say_lock(lock, now)
    if not found["held"]:
        say("  nobody holds it")
    for one in found["waiting"]:
        who = "another identity" if one.get("hidden") else _named(one)
        wants = f"wants {one['mode']} {', '.join(map(named, one['files']))}"
        silent = "; it shows no life, so it is passed over when that is free" if one.get("silent") else ""
        say(f"  {one['place']}. in line: {who}, for {duration(one['waited'])}, {wants}{silent}")
    if found["write"]:
        _say_write(found["write"])
    return 0


def _say_lock(lock: dict, now: int) -> None:
    who = "another identity" if lock.get("hidden") else _named({**lock, "label": lock["owner_label"]})
    mine = " (this session)" if lock["yours"] else ""
    note = f": {quoted(lock['content'])}" if lock["content"] else ""
    say(f"  {lock['mode']}, held by {who}{mine}{THROUGH.get(lock['rule'], '').format(file=named(lock['file']))}{note}")
    until = f"lapses in {duration(lock['lapses_in'])} unless renewed" if "lapses_in" in lock else "until it is released"
    if lock.get("expected_end"):
        away = lock["expected_end"] - now
        until += f", expected to end {f'in {duration(away)}' if away > 0 else f'{duration(-away)} ago'}"
    fence = f"; fence {lock['fence']}" if lock.get("fence") else ""
    say(f"    since {moment(lock['created_at'])} ({duration(now - lock['created_at'])} ago), {until}{fence}")


def _named(one: dict) -> str:
    name = f"{label(one['label']) if one['label'] else 'a session without a label'} ({short(one['instance_id'])})"
    return f"agent {named(one['agent'])} of {name}" if one.get("agent") else name


def _say_write(write: dict) -> None:
    if write["instance_id"]:
        who = _named({**write, "label": write["label"]})
    else:
        who = "a session that holds nothing"
    if write["allowed"]:
        say(f"a write by {who} would go ahead")
    elif write["guarded"] or not write["instance_id"]:
        say(f"a write by {who} would be refused: {write['reason']}")
    else:
        say(f"a write by {who} would go ahead: no hooks of ours guard that session")
        say(f"a session that they guard would be refused: {write['reason']}")
