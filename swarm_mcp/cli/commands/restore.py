"""Restoring earlier contents of a file."""

from __future__ import annotations

from swarm_hook_core.wording import duration
from swarm_mcp.acting_session import surrounding_session
from swarm_mcp.answer_size import printed
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, LOCKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import listing, say, show
from swarm_mcp.cli.pages import say_rest
from swarm_mcp.cli.reader import Reader
from swarm_mcp.domain.session import Session
from swarm_mcp.paging import page
from swarm_mcp.restore import Choice, Restoring, everything
from swarm_mcp.store import Store
from swarm_mcp.views import seconds_since


@verb(
    Usage(
        Word("FILE", "the file to restore"),
        Option(
            "--list",
            "list the kept contents: time, size, session; without FILE of all files here",
        ),
        Option("--id N", "the content to restore (default: the one before the last change)"),
        Option("--to PATH", "write it there instead, and leave FILE as it is"),
        Option("--dry-run", "print the result, and do nothing"),
        Option("--force", "also remove a file that was not there before, or replace one that is too large to be kept"),
        ABSOLUTE,
        *ACTING,
    ),
    Usage(Option("--list", "the earlier contents of all files here", required=True), ABSOLUTE, *ACTING),
    group=LOCKS,
)
def restore(args: Arguments) -> int:
    """restore: bring back a file that another session's call has changed

    The present content of FILE is kept first, so the same command again undoes the restore. The holder of FILE is told.
    Contents are kept for 7 days, up to 1 MiB each and 64 MiB together: of locked files that another session's command
    has changed, and of files that a session overwrote or removed together with another session's uncommitted change.

    example: swarm-mcp restore src/schema.sql --list
    """
    if args.given("--list") and not args.words:
        with Store() as store:
            return _list(everything(store, _session(store, args)), args, Reader(args, store), of_all=True)
    word = args.words[0]
    with Store() as store:
        session = _session(store, args)
        restoring = Restoring(store, session, word)
        if args.given("--list"):
            return _list([(restoring.file, choice) for choice in restoring.choices()], args, Reader(args, store))
        choice = restoring.choose(args.value("--id"))
        if args.value("--to"):
            path = restoring.write_to(choice, args.value("--to"), args.given("--dry-run"))
            done = f"{path} has the content of {restoring.file} from {_when(choice, store.now())}"
        else:
            restoring.restore(choice, args.given("--force"), args.given("--dry-run"))
            verb = "is removed" if choice.removes else f"is as it was {_when(choice, store.now())}"
            done = f"{restoring.file} {verb}"
            done += "; the same command undoes it" if restoring.kept_now else ""
        done += f", {restoring.left_out}" if restoring.left_out else ""
    if args.json:
        show({"ok": True, "file": restoring.file, "dry_run": args.given("--dry-run"), **choice.described()})
    else:
        say(f"would do: {done}" if args.given("--dry-run") else done)
    return 0


def _session(store: Store, args) -> Session | None:
    """The session of --as, or the one around this command; None for a person at a terminal."""
    if args.value("--as"):
        from swarm_mcp.acting_session import find_acting_session

        return find_acting_session(store, args)
    return surrounding_session(store)


def _list(states: list[tuple[str, Choice]], args, reader: Reader, of_all: bool = False) -> int:
    rows = ({**choice.described(), **({"file": file} if of_all else {})} for file, choice in states)
    found = page((("", row) for row in rows), dict, lambda: len(states), measure=printed)
    if args.json:
        show(found.rows)
        say_rest(args, found)
        return 0
    cells, plain = [], []
    for file, choice in states[: len(found.rows)]:
        size = f"{choice.version.seen.size} bytes" if choice.version else "no file"
        at = reader.when(choice.at)
        own = [reader.path(file)] if of_all else []
        cells.append((choice.name, *own, at, size, choice.by))
        plain.append("  ".join([choice.name, *own, at, size, choice.by]).rstrip())
    headers = ("id", *(["file"] if of_all else []), "until", "size", "changed by")
    listing(headers, cells, plain, empty="(nothing is kept)")
    say_rest(args, found)
    return 0


def _when(choice: Choice, now: int) -> str:
    return f"{duration(seconds_since(choice.at, now))} ago"
