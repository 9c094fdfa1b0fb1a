"""Restoring earlier contents of a file."""

from __future__ import annotations

from swarm_hook_core.wording import duration
from swarm_mcp.answers.size import page, printed
from swarm_mcp.cli.arguments import ABSOLUTE, CHANGES, DOING, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import agreed, answer, listing, refused
from swarm_mcp.cli.words import Reader, clause, say_page
from swarm_mcp.domain import Session
from swarm_mcp.errors import UsageError
from swarm_mcp.locking.restore import Choice, Restoring, everything
from swarm_mcp.sessions.acting import find_acting_session, require_persons, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.store.messages import seconds_since


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
        Option(
            "--force",
            "no question; also remove a file that was not there before, or replace one that is too large to be kept",
        ),
        ABSOLUTE,
        *DOING,
    ),
    Usage(Option("--list", "the earlier contents of all files here", required=True), ABSOLUTE, *DOING),
    group=CHANGES,
)
def restore(args: Arguments) -> int:
    """restore: bring back a file that another session's call has changed

    The present content of FILE is kept first, so the same command again undoes the restore. The holder of FILE is told.
    At a terminal you are asked first if uncommitted changes of others are in FILE. Contents are kept for 7 days, up to
    1 MiB each and 256 MiB together: of files before a session wrote or removed them, and of locked files that another
    session's command has changed.

    example: swarm-mcp restore src/schema.sql --list
    """
    for other in ("--id", "--to"):
        if args.given("--list") and args.given(other):
            raise UsageError(f"--list and {other} exclude each other")
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
            owners = restoring.owners()
            question = (
                f"{restoring.file} has uncommitted changes of {' and '.join(owners)}. Replace them? A copy is kept."
            )
            if owners and not args.given("--force") and not args.given("--dry-run") and agreed(question) is False:
                return refused(args, "restore", {"error": f"{restoring.file} is left as it is"})
            restoring.restore(choice, args.given("--force"), args.given("--dry-run"))
            done = f"{restoring.file} is as it was {_when(choice, store.now())}"
            if choice.removes:
                done = f"{restoring.file} is removed"
            done += clause(", without the uncommitted changes of {}", " and ".join(owners))
            if restoring.kept_now:
                done += "; the same command undoes it"
        done += clause(", {}", restoring.left_out)
    if args.given("--dry-run"):
        done = f"would do: {done}"
    value = {"ok": True, "file": restoring.file, "dry_run": args.given("--dry-run"), **choice.described()}
    return answer(args, value, done)


def _session(store: Store, args: Arguments) -> Session | None:
    """Return the session of --as, or the one around this command; None for a person. Raises PersonOnly, UsageError."""
    if args.given("--person"):
        require_persons(store, args)
        return None
    if args.value("--as"):
        return find_acting_session(store, args)
    return surrounding_session(store)


def _list(states: list[tuple[str, Choice]], args: Arguments, reader: Reader, of_all: bool = False) -> int:
    rows = [choice.described() for _file, choice in states]
    if of_all:
        rows = [{**row, "file": file} for row, (file, _choice) in zip(rows, states)]
    found = page((("", row) for row in rows), dict, lambda: len(states), measure=printed)

    def table() -> None:
        cells, plain = [], []
        for file, choice in states[: len(found.rows)]:
            size = "no file"
            if choice.content:
                size = f"{choice.content.size} bytes"
            row = [choice.name, reader.when(choice.at), size, choice.by]
            if of_all:
                row.insert(1, reader.path(file))
            cells.append(tuple(row))
            plain.append("  ".join(row).rstrip())
        headers = ["id", "kept", "size", "changed by"]
        if of_all:
            headers.insert(1, "file")
        listing(tuple(headers), cells, plain, empty="(nothing is kept)")

    return say_page(args, found, table)


def _when(choice: Choice, now: int) -> str:
    return f"{duration(seconds_since(choice.at, now))} ago"
