"""The command `swarm-mcp try`: the choice of lines, one run, and the files of a kept one."""

from __future__ import annotations

import contextlib
import os
import time

from swarm_hook_core.repository import Tree, tree_over
from swarm_mcp.changes.commands.diff import own_session
from swarm_mcp.changes.commands.undo import session_with_changes
from swarm_mcp.changes.dirty import relative_names, top_over
from swarm_mcp.changes.owners import PERSONS, owners_for
from swarm_mcp.changes.tries import written
from swarm_mcp.changes.tries.folder import prune
from swarm_mcp.changes.tries.picture import Picture, Wanted
from swarm_mcp.changes.tries.running import COPY, Result, Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.changes.tries.trial import Trial, answer_whose, listed
from swarm_mcp.cli.arguments import ACTING, CHANGES, INSTANCES, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer, complain, say_patch, show
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.folders import clean, here
from swarm_mcp.store import Store

Session = tuple[str, str]

IGNORED = (
    "files that git ignores (builds, caches, dependencies) are the checkout's own, those made from others' lines, too"
)
_COMMAND = Word("COMMAND", "the command", repeated=True, behind=True)
_NET = Option("--net", "a network of its own: ports of the machine are free in it, and nothing else can be reached")


@verb(
    Usage(
        _COMMAND,
        Option("--mine", "your own lines (default)"),
        Option("--session WHO", "the lines of this session", repeatable=True, source=INSTANCES),
        Option("--person", "the lines that no session has written"),
        Option("--without WHO", "all but the lines of this session, or of `person`", repeatable=True, source=INSTANCES),
        Option("--head", "the last commit alone"),
        Option("--keep", "keep the files that the command writes, for --diff and --apply"),
        _NET,
        *ACTING,
    ),
    Usage(
        _COMMAND,
        Option("--whose", "find the authors whose lines make the command fail", required=True),
        Option("--lines", "find the very lines, too"),
        Option("--jobs N", "so many runs side by side (default: 1; they share ports and /tmp)"),
        _NET,
        *ACTING,
    ),
    Usage(
        Word("FILE", "a file or a folder", optional=True, repeated=True),
        Option("--diff", "the files that the command of your last --keep wrote, as a patch", required=True),
        *ACTING,
    ),
    Usage(
        Word("FILE", "a file or a folder", repeated=True),
        Option("--apply", "bring them into the checkout, as yours", required=True),
        *ACTING,
    ),
    refuses=True,
    group=CHANGES,
)
def try_(args: Arguments) -> int:
    """try: run a command on the last commit and your lines alone

    The command runs at this checkout's own path, on the last commit with the uncommitted lines of the chosen authors,
    as if the others had written nothing. It has your user, and its output and exit code are those of this command.
    Nothing in the checkout changes: files that the command writes there are gone with it, a commit too. Ignored ones
    (a build) are kept for the next try. Writes elsewhere are real, and ports are the machine's own.

    Lines that may be yours or another's are in, and are named. Lines without a known order beside those of others are
    left out, and are named. `swarm-mcp doctor` says how it works in this checkout.

    With --whose the command runs several times. The answer names the authors of the lines that make it fail, or says
    that it fails at the last commit already. Authors of lines that are only needed to get that far are named apart. A
    command that fails one time and not the other blames no author.

    With --json: {"exit", "way", "with", "without", "notes", "changed", "written", "output"}; with --whose: {"kind",
    "culprits", "needed", "runs", "text"}. "kind" is "green", "head", "flaky" or "lines".

    Exit: the command's own code, or 128 and the number of the signal that ended it; 126, 127 it cannot be run. With
    --whose: 0 it is green here, 1 it is red, 75 no answer. 1 for any other error.

    example: swarm-mcp try --head --json -- cat src/schema.sql
    """
    tree = tree_over(os.path.realpath(here()))
    if tree is None:
        raise Refused(f"{here()} is in no git repository: there is no last commit to try anything on")
    with Store() as store:
        if args.given("--diff") or args.given("--apply"):
            return _kept(args, store, tree)
        owners = owners_for(store, args)
        own = own_session(args, store)
        picture = Picture(tree.top)
        argv = args.words[len(args.words) - (args.behind or 0) :]
        command = Command(argv, os.path.realpath(here()), os.environ, has_network=not args.given("--net"))
        trial = Trial(tree, picture, owners, own)
        if args.given("--whose"):
            return answer_whose(args, trial, command)
        wanted = _wanted(args, trial)
    return _try(args, trial, wanted, command)


def _wanted(args: Arguments, trial: Trial) -> Wanted:
    """Return the choice of the options. Raises UsageError."""
    if args.given("--head") or args.given("--without"):
        chosen_by = next(name for name in ("--head", "--without") if args.given(name))
        for other in ("--mine", "--session", "--person", "--without"):
            if args.given(other) and other != chosen_by:
                raise UsageError(f"{chosen_by} and {other} exclude each other")
    if args.given("--head"):
        return lambda _group: False
    if args.given("--without"):
        gone = {trial.session_called(word, args) for word in args.all("--without")}
        return lambda group: not group <= gone
    chosen: set[Session] = {trial.session_called(word, args) for word in args.all("--session")}
    if args.given("--person"):
        chosen.add(PERSONS)
    if args.given("--mine") or not chosen:
        chosen.add(trial.own)
    return lambda group: not group.isdisjoint(chosen)


# ------------------------------------------------------------------------------------------- one run


def _try(args: Arguments, trial: Trial, wanted: Wanted, command: Command) -> int:
    chosen = trial.picture.content(wanted)
    notes = [f"try: {note}" for note in trial.notes(wanted, chosen)]
    with Run(trial.tree, trial.picture, chosen, command, is_caught=args.json) as run:
        if not args.json:
            for note in notes:
                complain(note)
        run.begin()
        if trial.is_first():
            notes.append(f"try: {IGNORED}")
            if not args.json:
                complain(notes[-1])
        result = run.end()
        after = _words_after(result)
        if args.given("--keep") and run.folder is not None:
            written.keep(run.folder, run.root, result.written, trial.own, command.argv)
            after.append("try: kept; `swarm-mcp try --diff` shows it, `swarm-mcp try --apply FILE` brings it here")
        elif result.written:
            after.append(f"try: not kept: the command wrote {listed(result.written)} (--keep keeps it)")
    _prune_some()
    if not args.json:
        for note in after:
            complain(note)
        return result.code
    inside, outside = trial.parted(wanted)
    value = {
        "exit": result.code, "way": result.way,
        "with": trial.described(inside), "without": trial.described(outside),
        "notes": [note.removeprefix("try: ") for note in (*notes[1:], *after)], "changed": result.changed,
        "written": result.written, "output": result.output.decode(errors="replace"),
    }  # fmt: skip
    show(value)
    return result.code


def _words_after(result: Result) -> list[str]:
    found = []
    if result.changed:
        found.append(
            f"try: {listed(result.changed)} changed in the checkout meanwhile, and the command may have seen it: try"
            " again"
        )
    if result.way == COPY:
        found.append("try: it ran in a copy of the checkout, as there are no namespaces here")
    return found


def _prune_some() -> None:
    """Remove the files of old tries."""
    with contextlib.suppress(OSError):
        prune(time.time())


# ------------------------------------------------------------------------------------------- written files


def _kept(args: Arguments, store: Store, tree: Tree) -> int:
    names = relative_names(top_over(here()), [clean(word) for word in args.words])
    if args.given("--diff"):
        patch = written.Written(tree, own_session(args, store), names).patch()
        if args.json:
            return answer(args, {"patch": patch.decode(errors="replace")})
        say_patch(patch)
        return 0
    session = session_with_changes(store, args)
    one = written.Written(tree, own_session(args, store), names)
    record = one.apply(store, session, tree.top)
    if record is None:
        return answer(args, {"files": [], "id": None}, "nothing to bring: the checkout has it already")
    brought = [os.path.relpath(file.path, tree.top) for file in record.files]
    words = f"brought {listed(brought)}; `swarm-mcp undo --undo {record.id}` takes that back"
    return answer(args, {"files": brought, "id": record.id}, words)
