"""Sharing locks with other machines."""

from __future__ import annotations

import time
from typing import Any

from swarm_hook_core.state import state_dir
from swarm_hook_core.wording import duration
from swarm_mcp.cli.arguments import FOLDERS, JSON, SUBJECTS, Arguments, Option, Usage, Word, choice, verb
from swarm_mcp.cli.output import complain, listing, say, show
from swarm_mcp.cli.words import clause, said_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, here
from swarm_mcp.sessions.person import require_person
from swarm_mcp.team import agent, agent_client, joining
from swarm_mcp.team.memberships import checked_server, machine, membership_of
from swarm_mcp.team.repository_identity import described, upstream_of
from swarm_mcp.team.standing import known_epoch, standing

DIR = Option("--dir DIR", "a folder of the clone (default: the one here)", source=FOLDERS)
SERVER = Word(
    "SERVER", "postgresql://USER@HOST/DATABASE without a password, or a service of ~/.pg_service.conf", source=()
)


@verb(
    Usage(
        choice("join", about="action"),
        SERVER,
        Option("--repository NAME", "the repository's name on the server, the same in every clone of it"),
        DIR,
        JSON,
    ),
    Usage(choice("leave", about="action"), DIR, JSON),
    Usage(choice("status", about="action"), JSON),
    Usage(
        choice("init", about="action"),
        SERVER,
        Option("--circle NAME", "the group of people that see each other's locks (default: everybody)"),
        Option("--new-epoch", "the server was restored: declare all its grants void"),
        JSON,
    ),
    Usage(
        choice("agent", about="action"),
        Option("--stop", "end the one that runs; it starts again as soon as it is needed"),
        hidden=True,
    ),
    group=SUBJECTS,
)
def team(args: Arguments) -> int:
    """team: the same locks on every machine, through a PostgreSQL server

    `join` shares the locks of this clone, with all its work trees, over SERVER: with every clone of the same repository
    that has joined, on any machine. The repository's name is the first of these that is there: swarm.repository in a
    committed .swarmconfig, the URL of the remote, the first commit. A password belongs into ~/.pgpass or a service
    file, never into SERVER. `leave` undoes all of it. Only a person may leave: refused (exit 1) from an agent's shell.

    Locks are taken here first, and hold on all machines once `lock` says so. If the server cannot be reached they hold
    on this machine only, and `lock` says so within 2 s. When the server is back, each lock is confirmed, or lost to the
    session that had the file first, and its holder is told. Checks read a local copy of the other machines' locks:
    `status` shows its age, and the people on the team. Exit 1 from `status` if something is wrong.

    `init` is for administrators of the server: it creates or updates the schema swarm_team there, with a role for each
    circle (CREATE ROLE dana LOGIN IN ROLE swarm_team_everybody). It needs the rights to create both, and refuses a
    server that was restored since this machine knew it.

    example: swarm-mcp team status
    """
    action = args.words[0]
    if action == "agent":
        if args.given("--stop"):
            return int(not agent_client.stop())
        return agent.run()
    if action == "status":
        return _status(args)
    if action == "init":
        from swarm_mcp.team.migrations import CIRCLE, FIRST_CIRCLE, init  # loads psycopg

        server = checked_server(args.words[1])
        made = init(server, args.value("--circle") or FIRST_CIRCLE, known_epoch(server), args.given("--new-epoch"))
        if args.json:
            show({"ok": True, **made._asdict()})
            return 0
        say(f"{server} is set up" + (clause(": {}", ", ".join(made.applied)) or " already"))
        if args.given("--new-epoch"):
            say("all its earlier grants are void")
        say(f'give people a role in {CIRCLE}{made.circle}: CREATE ROLE dana LOGIN IN ROLE "{CIRCLE}{made.circle}";')
        return 0
    folder = here()
    if args.value("--dir"):
        folder = clean(args.value("--dir"))
    if action == "join":
        return _join(args, folder)
    return _leave(args, folder)


def _join(args: Arguments, folder: str) -> int:
    tree = joining.tree_in(folder)
    done = joining.join(tree, checked_server(args.words[1]), args.value("--repository"))
    one = done.membership
    error = joining.awaited(one)
    upstream = upstream_of(tree)
    if args.json:
        value = {
            "ok": not error, "repository": one.repository, "source": one.source, "server": one.server,
            "machine": machine(), "work_trees": one.tops, "new": done.is_new,
        }  # fmt: skip
        if error:
            value["error"] = error
        show(value)
        return int(bool(error))
    joined = "joined already"
    if done.is_new:
        joined = "joined"
    say(f"{joined} {one.server} as {machine()}")
    say(f"this is {one.repository} there, by {described(one.source)}")
    if upstream and upstream != one.repository:
        say(f"the remote upstream is {upstream}: clones of that are another repository. To share locks with them:")
        say(f"  swarm-mcp team leave && swarm-mcp team join SERVER --repository {upstream}")
    for top in one.tops:
        say(f"locks in {said_path(top)} hold on all its machines")
    if error:
        complain(f"team: {error}")
    return int(bool(error))


def _leave(args: Arguments, folder: str) -> int:
    tree = joining.tree_in(folder)
    one = membership_of(tree)
    if one is None:
        raise SwarmError(f"the clone of {said_path(tree.top)} has joined no team")
    effect = "ends the sharing of locks with other machines for all sessions here"
    require_person("swarm-mcp team leave", effect, state_dir())
    left = joining.leave(one)
    if args.json:
        value = {"ok": True, "repository": one.repository, "server": one.server}
        if left:
            value["error"] = left
        show(value)
        return 0
    say(f"left {one.server}: the locks of {one.repository} are this machine's own again")
    if left:
        say(f"the server could not be told ({left}): it releases the locks of this machine when their lease ends")
    return 0


def _status(args: Arguments) -> int:
    found = standing()
    if args.json:
        show(found)
        return int(not found["ok"])
    if not found["repositories"]:
        say("no clone on this machine has joined a team")
        return 0
    running = "no team agent is running"
    if found["agent"]:
        running = f"team agent running (process {found['agent']['pid']})"
    say(f"machine {found['machine']}, {running}")
    for one in found["repositories"]:
        say()
        _say_repository(one)
    return int(not found["ok"])


def _say_repository(one: dict[str, Any]) -> None:
    heard = "never heard of"
    if one["said_at"]:
        heard = f"last heard of {duration(time.time() - one['said_at'])} ago"
    say(f"{one['repository']}, by {one['named_by']}")
    if one["would_be"]:
        say(f"  it would be {one['would_be']} if it joined now")
    say(f"  server: {one['server']}, " + (one["error"] or f"reached in {one['milliseconds']:.0f} ms"))
    fresh, behind = "fresh", clause(", {} changes behind", one["behind"])
    if not one["fresh"]:
        fresh = f"not fresh, {heard}"
    say(f"  local copy: {fresh}, change {one['version']}{behind}")
    if one["only_here"]:
        say(f"  on this machine only: {one['only_here']}")
    for top in one["work_trees"]:
        say(f"  work tree: {said_path(top)}")
    rows = []
    for row in one["machines"]:
        state, changes = "there", "-"
        if row["is_own"]:
            state = "this one"
        elif row["left"] <= 0:
            state = f"silent for {duration(-row['left'])}"
        if row["lease"]:
            changes = str(row["behind"])
        rows.append((row["machine"], row["member"], str(row["sessions"]), state, changes))
    if rows:
        listing(("MACHINE", "PERSON", "SESSIONS", "STATE", "BEHIND"), rows, ["  ".join(row) for row in rows])
