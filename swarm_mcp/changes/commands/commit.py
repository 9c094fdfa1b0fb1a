"""Committing the changes of one session alone."""

from __future__ import annotations

import os

from swarm_mcp.changes.commit import Commit
from swarm_mcp.changes.commit.answer import described, lines
from swarm_mcp.changes.commit.authors import Authorship
from swarm_mcp.cli.arguments import CHANGES, DOING, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer, say_text
from swarm_mcp.domain.session import Session
from swarm_mcp.folders import current_scope, here
from swarm_mcp.sessions.acting import OWN_ID, find_acting_session, is_persons, require_persons
from swarm_mcp.store import Store


@verb(
    Usage(
        Option(
            "-m TEXT", "the message; again for a further paragraph", required=True, repeatable=True, also="--message"
        ),
        Option("--dry-run", "print what would be committed, and do nothing"),
        Word("FILE", "only these files and folders", optional=True, repeated=True),
        *DOING,
    ),
    refuses=True,
    group=CHANGES,
)
def commit(args: Arguments) -> int:
    """commit: commit your own uncommitted changes, and no others

    Each uncommitted line has an author. The commit has this session's lines; of a person, at a terminal or in a script
    that no agent runs, the lines that no session wrote. Others' lines stay uncommitted, in the same files too, and are
    named. The work tree stays as it is, but for files that hooks rewrite, and what others have staged stays staged.
    Beside other changes hooks run in a copy with this commit's content alone. A place that several may have changed is
    refused.

    example: swarm-mcp commit -m "Parse empty lines" src/parse.py
    """
    with Store() as store:
        author = Authorship(store, _session(store, args))
        files = [os.path.join(os.getcwd(), word) for word in args.words]
        one = Commit(here(), author.is_own, author.named, args.all("-m"), files)
        done = one.plan() if args.given("--dry-run") else one.make()
        value = {**described(one, done), "dry_run": args.given("--dry-run")}
        if done.output.strip() and not args.json:
            say_text(done.output.rstrip("\n"))
        return answer(args, value, *lines(one, done))


def _session(store: Store, args: Arguments) -> Session | None:
    """Return the session with these changes, `None` for a person. Raises UnknownInstance, PersonOnly."""
    if args.given("--person"):
        require_persons(store, args)
        return None
    is_named = args.value("--as") or os.environ.get(OWN_ID, "").strip()
    if not is_named and is_persons(store, current_scope(args.value("--scope"))):
        return None
    return find_acting_session(store, args)
