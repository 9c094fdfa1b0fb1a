"""Taking back a session's uncommitted work."""

from __future__ import annotations

import os
import time

from swarm_mcp.changes.commit import Commit, described, lines
from swarm_mcp.changes.commit.parts import Authorship
from swarm_mcp.changes.owners import PERSONS
from swarm_mcp.changes.planning import Plan
from swarm_mcp.changes.tries.running import tester
from swarm_mcp.changes.undoing import NotUndone, Undoing, patch_of, turn_began
from swarm_mcp.changes.writing import Record
from swarm_mcp.cli.arguments import CHANGES, DOING, INSTANCES, JSON, SCOPE, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.commands.log import since_when
from swarm_mcp.cli.output import answer, complain, say, say_text, show
from swarm_mcp.domain import Session
from swarm_mcp.errors import PersonOnly, SwarmError, UsageError
from swarm_mcp.folders import clean, current_scope, file_of, here
from swarm_mcp.sessions.acting import (
    OWN_ID,
    find_acting_session,
    is_person,
    is_persons,
    require_persons,
    session_of_caller,
)
from swarm_mcp.store import Store

_FILES = Word("FILE", "only this file, or the files of this folder", optional=True, repeated=True)
_COMMON = (
    Option("--dry-run", "print the changes as a patch, and do nothing"),
    Option("--partial", "if lines of others are in the way, undo the rest"),
    SCOPE,
    JSON,
)


@verb(
    Usage(
        _FILES,
        Option("--session WHO", "the session, by its name or id (default: this one)", source=INSTANCES),
        Option("--since WHEN", "only what it did since then: a time of day (8:00), or an age (10m, 2h, 1d)", source=()),
        Option("--turn", "only what it did in its last turn"),
        Option("--person", "the lines that no session has written, in each FILE; refused to agents"),
        Option("--all", "with --person: in all files of the scope"),
        *_COMMON,
    ),
    Usage(_FILES, Option("--undo ID", "take back the undo with this id", required=True, source=()), *_COMMON),
    group=CHANGES,
)
def undo(args: Arguments) -> int:
    """undo: take back one session's or a person's uncommitted changes alone

    Its added lines go, its removed lines come back, in all files or in none. Files that it made are removed, files that
    it removed come back. Lines of other sessions and of people stay, byte for byte. Where they stand in the way the
    command says which lines they are and whose, and changes nothing.

    An agent may take back its own session's work, a person that of any session; a script of a person says whose. With
    --person the lines go that no session has written, in the named files. `undo --undo ID` takes an undo back.

    With --json: {"ok", "id", "dry_run", "files": [{"path", "removed", "created"}], "left": [{"path", "lines", "why"}],
    "patch"}; "patch" is there with --dry-run.

    example: swarm-mcp undo --since 10m src
    """
    folder = current_scope(args.value("--scope"))
    if args.given("--turn") and args.given("--since"):
        raise UsageError("--turn and --since exclude each other")
    if args.given("--person"):
        _require_files(args)
    try:
        return _undo(args, folder)
    except NotUndone as error:
        if args.json:
            show({"ok": False, **error.answer})
        else:
            for line in error.lines:
                complain(line)
        return 1


def _require_files(args: Arguments) -> None:
    """Raise UsageError for ``--person`` beside the choice of a session's work, and without files."""
    for other in ("--session", "--since", "--turn"):
        if args.given(other):
            raise UsageError(f"--person and {other} exclude each other")
    if bool(args.words) == args.given("--all"):
        raise UsageError("--person wants each FILE, or --all for all files of the scope")


def _undo(args: Arguments, folder: str) -> int:
    with Store() as store:
        session = _caller(store, args, folder)
        undoing = Undoing(store, session, folder)
        for line in undoing.messages:
            say(line)
        only = [os.path.realpath(file_of(session, clean(word)) if session else clean(word)) for word in args.words]
        is_partial, is_dry = args.given("--partial"), args.given("--dry-run")
        if args.given("--undo"):
            earlier = undoing.record_called(args.value("--undo"))
            whose = earlier.whose
            plan, record = undoing.run(lambda: undoing.plan_back(earlier, only, is_partial), whose, earlier.id, is_dry)
        else:
            whose, since = PERSONS, 0
            if not args.given("--person"):
                whose = _whose(undoing, args)
                since = _since(args, whose, folder)
            plan, record = undoing.run(lambda: undoing.plan(whose, only, since, is_partial), whose, "", is_dry)
        for path in only:
            if not plan.files and not os.path.lexists(path):
                raise SwarmError(f"{path} is not there, and nothing of it can be taken back")
        return _say(args, undoing, plan, whose, record)


def _caller(store: Store, args: Arguments, folder: str) -> Session | None:
    """Return the agent's session that gives this command; None for a person. Raises UnknownInstance, PersonOnly."""
    if args.given("--person"):
        require_persons(store, args)
        return None
    if is_persons(store, folder):
        return None
    return session_of_caller(store, folder)


def _whose(undoing: Undoing, args: Arguments) -> tuple[str, str]:
    """Return the session with the work to take back. Raises SwarmError."""
    session, named = undoing.session, None
    if args.given("--session"):
        named = undoing.session_called(args.value("--session"))
    if session is None:
        if not named and not is_person(undoing.store):
            raise SwarmError("say whose work a script takes back: --session WHO, or --person with FILE or --all")
        return named or undoing.only_session()
    own = (session.runtime or "", session.session_id or "")
    if named not in (None, own):
        raise PersonOnly(
            "an agent may undo its own session's work alone; a person can undo that of others, in a terminal of their"
            " own"
        )
    return own


def _since(args: Arguments, whose: tuple[str, str], folder: str) -> int:
    if args.given("--turn"):
        return turn_began(whose, folder)
    return since_when(args.value("--since"), time.time()) * 10**9


def _say(args: Arguments, undoing: Undoing, plan: Plan, whose: tuple[str, str], record: Record | None) -> int:
    left = [(one, undoing.words_for(one, whose)) for one in plan.problems]
    value = {
        "ok": True,
        "id": record and record.id,
        "dry_run": args.given("--dry-run"),
        "files": [
            {"path": one.path, "removed": one.after is None, "created": one.before is None} for one in plan.files
        ],
        "left": [{"path": one.path, "lines": one.lines, "why": words.lstrip(": ")} for one, words in left],
    }
    if args.given("--dry-run"):
        value["patch"] = patch_of(plan.files, undoing.folder)
        if not args.json:
            say_text(str(value["patch"]).rstrip("\n") or "nothing to undo")
            return 0
    if not args.json:
        for one, words in left:
            say(f"left: {os.path.relpath(one.path, undoing.folder)}{words}")
    return answer(args, value, summary(plan, record, undoing.folder))


def summary(plan: Plan, record: Record | None, folder: str) -> str:
    """Return one line about an undo that was done, or had nothing to do."""
    if record is None:
        return "nothing to undo"
    names = [os.path.relpath(one.path, folder) for one in plan.files]
    more = ""
    if len(names) > 10:
        more = f" and {len(names) - 10} more"
    return f"undone in {', '.join(names[:10])}{more}; `swarm-mcp undo --undo {record.id}` takes that back"


# Committing the changes of one session alone.


_MESSAGE = Option(
    "-m TEXT", "the message; again for a further paragraph", required=True, repeatable=True, also="--message"
)
_ONLY = Word("FILE", "only these files and folders", optional=True, repeated=True)


@verb(
    Usage(_MESSAGE, Option("--dry-run", "print what would be committed, and do nothing"), _ONLY, *DOING),
    Usage(
        _MESSAGE,
        Option("--try COMMAND", "run a shell command on its very files first; commit if it is green", required=True),
        _ONLY,
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

    With --try a shell command runs first, as by `swarm-mcp try`, on the files of the commit: as its hooks have left
    them, without uncommitted lines and untracked files. It runs again if the branch or files have changed meanwhile.

    Exit: 0 committed. 1 nothing is committed: it was refused, or the command of --try has failed. With --json its exit
    code is "exit".

    example: swarm-mcp commit -m "Parse empty lines" src/parse.py
    """
    with Store() as store:
        author = Authorship(store, session_with_changes(store, args))
        files = [os.path.join(os.getcwd(), word) for word in args.words]
        one = Commit(here(), author.is_own, author.named, args.all("-m"), files)
        if args.given("--try"):
            done = one.make(tester(one.tree, here(), args.value("--try"), args.json))
        elif args.given("--dry-run"):
            done = one.plan()
        else:
            done = one.make()
        value = {**described(one, done), "dry_run": args.given("--dry-run")}
        if done.output.strip() and not args.json:
            say_text(done.output.rstrip("\n"))
        return answer(args, value, *lines(one, done))


def session_with_changes(store: Store, args: Arguments) -> Session | None:
    """Return the session with these changes, `None` for a person. Raises UnknownInstance, PersonOnly."""
    if args.given("--person"):
        require_persons(store, args)
        return None
    is_named = args.value("--as") or os.environ.get(OWN_ID, "").strip()
    if not is_named and is_persons(store, current_scope(args.value("--scope"))):
        return None
    return find_acting_session(store, args)
