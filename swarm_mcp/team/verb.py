"""Sharing locks with other machines."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from swarm_hook_core import repository
from swarm_hook_core.repository import Tree
from swarm_hook_core.state import state_dir
from swarm_hook_core.wording import duration
from swarm_mcp.cli.arguments import FOLDERS, JSON, SUBJECTS, Arguments, Option, Usage, Word, choice, verb
from swarm_mcp.cli.output import complain, listing, say, show
from swarm_mcp.cli.words import clause, said_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, here
from swarm_mcp.locking.acquisition import logical_of, set_logical
from swarm_mcp.sessions.acting import require_person
from swarm_mcp.store import Store
from swarm_mcp.team import agent, agent_client, memberships
from swarm_mcp.team.agent_client import wait_until_fresh
from swarm_mcp.team.memberships import Membership, checked_server, machine, membership_of
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.places import GIVEN, RepositoryIdentity, checked, described, identify, upstream_of
from swarm_mcp.team.standing import known_epoch, standing

# Joining and leaving of a team. Leaving undoes all that joining did.

FIRST_SECONDS = 15.0  # for all that is held elsewhere to come over
LEAVE_SECONDS = 10.0
LOOK_SECONDS = 0.2


class Joined(NamedTuple):
    """The result of joining: the membership, and `is_new`."""

    membership: Membership
    is_new: bool


def tree_in(folder: str) -> Tree:
    """Return the work tree around `folder`. Raises SwarmError outside of any."""
    found = repository.tree_over(os.path.realpath(folder), is_real=True)
    if found is None:
        raise SwarmError(f"{folder} is not in a git repository")
    return found


def join(tree: Tree, server: str, given: str = "") -> Joined:
    """Let the clone of work tree `tree` share its locks over `server` (a ``checked_server``).

    `given`: a person's name for its repository. The server is asked first: nothing is recorded about one that is
    unreachable or denies access. Raises SwarmError.
    """
    if given:
        identity = RepositoryIdentity(checked(given), GIVEN)
    else:
        identity = identify(tree)
    known = memberships.membership_of(tree)
    if known is not None and (known.server, known.repository) != (server, identity.id):
        raise SwarmError(
            f"this clone has joined {known.server} as {known.repository}: `swarm-mcp team leave` comes first"
        )
    _ask(server, identity.id)
    if known is not None:
        return Joined(known, False)
    before = logical_of(tree)
    sets = before is None or not repository.opted_in(tree)
    membership = Membership(
        tree.common, tree.top, identity.id, identity.source, server, int(time.time()), sets, before if sets else None
    )
    memberships.remember(membership)  # first: after any interruption, leaving undoes it
    if sets:
        set_logical(tree.common, "true")
    return Joined(membership, True)


def awaited(membership: Membership, seconds: float = FIRST_SECONDS) -> str:
    """Wait until the locks of other machines are known here. Returns the obstacle, empty for none."""
    with Store() as store:
        if wait_until_fresh(store, membership.repository, seconds):
            return ""
    if agent_client.status() is None:
        return "the team agent does not start: `swarm-mcp team agent` in a terminal says why"
    return f"nothing was heard of the server in {seconds:.0f} s; `swarm-mcp team status` says more"


def leave(membership: Membership) -> str:
    """Let a clone leave: nothing that joining has made or set is left.

    Returns the reason if the server could not be told, else an empty text. Raises SwarmError.
    """
    tops = membership.tops
    if membership.set_logical and membership.is_there:
        tree = Tree(membership.top, membership.common, membership.common)
        if logical_of(tree) == "true":  # otherwise a person has changed the setting since
            set_logical(membership.common, membership.logical)
    # The obstacle between the team agent and a server; empty without one
    server = membership.server
    told = agent_client.status()
    if told is None:
        unheard = "no team agent was running"
    else:
        of_server = [one for one in told.get("servers", []) if one["server"] == server]
        unheard = next((one["error"] for one in of_server if one["state"] != "following"), "")
    memberships.forget(membership)
    agent_client.poke()
    with Store() as store, store.changes() as changes:
        end = time.monotonic() + LEAVE_SECONDS
        while set(tops) & TeamRows(store).trees().keys():
            if time.monotonic() >= end:  # there is no agent, and none starts
                rows = TeamRows(store)
                with rows.writing():
                    rows.leave(tops)
                    rows.set_trees({top: name for top, name in rows.trees().items() if top not in tops})
                break
            changes.wait(LOOK_SECONDS)
            store.refresh()
    if any((one.server, one.repository) == (server, membership.repository) for one in memberships.memberships()):
        return unheard  # another clone on this machine stays
    try:
        _give_back(server, membership.repository)  # whatever the team agent has told it
    except SwarmError as error:
        return unheard or str(error)
    return ""


def _ask(server: str, repository_id: str) -> None:
    """Ask the server for the repository once. Raises SwarmError: it cannot be reached, or does not let us in."""
    from swarm_mcp.team.server import TeamServer, require_session

    require_session(server)
    asked = TeamServer(server, memberships.machine())
    try:
        asked.machines(repository_id)
    finally:
        asked.close()


def _give_back(server: str, repository_id: str) -> None:
    """Remove all that this machine has there on the server, so that others have it at once. Raises SwarmError."""
    from swarm_mcp.team.server import TeamServer

    asked = TeamServer(server, memberships.machine())
    try:
        asked.hello(repository_id)
        asked.part(repository_id)
    finally:
        asked.close()


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
        from swarm_mcp.team.server import CIRCLE, FIRST_CIRCLE, init  # loads psycopg

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
    tree = tree_in(folder)
    done = join(tree, checked_server(args.words[1]), args.value("--repository"))
    one = done.membership
    error = awaited(one)
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
    tree = tree_in(folder)
    one = membership_of(tree)
    if one is None:
        raise SwarmError(f"the clone of {said_path(tree.top)} has joined no team")
    effect = "ends the sharing of locks with other machines for all sessions here"
    require_person("swarm-mcp team leave", effect, state_dir())
    left = leave(one)
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
