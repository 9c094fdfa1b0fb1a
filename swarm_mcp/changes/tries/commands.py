"""`swarm-mcp try`, and the tool of the same name."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import NamedTuple

from swarm_hook_core.repository import tree_over
from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes.commands.diff import own_session
from swarm_mcp.changes.commands.undo import session_with_changes
from swarm_mcp.changes.dirty import relative_names, top_over
from swarm_mcp.changes.owners import PERSONS, Owners, owners_for
from swarm_mcp.changes.tries import whose, written
from swarm_mcp.changes.tries.folder import place_of, prune
from swarm_mcp.changes.tries.picture import Picture, groups_of
from swarm_mcp.changes.tries.running import COPY, Result, Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.cli.arguments import ACTING, CHANGES, INSTANCES, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer, complain, say, say_patch, show
from swarm_mcp.errors import Refused, SwarmError, UsageError
from swarm_mcp.folders import clean, current_scope, here
from swarm_mcp.server.tool import Answer, Tool, WaitingCall, flag, number, text, texts
from swarm_mcp.store import Store

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from swarm_hook_core.repository import Tree
    from swarm_hook_core.traces.versions.acts import Author
    from swarm_mcp.changes.tries.picture import Chosen, Group, Wanted
    from swarm_mcp.changes.tries.whose import Blame, Failure

    Session = tuple[str, str]

NAMED = 5  # files that a line names
NO_ANSWER = 75
TOLD = "told"  # a file in the work tree's place: its ignored files have been spoken of
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
            return _whose(args, trial, command)
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


class Trial:
    """The commands on one picture of a work tree, for the session `own`."""

    def __init__(self, tree: Tree, picture: Picture, owners: Owners, own: Session):
        self.tree = tree
        self.picture = picture
        self.own = own
        self._owners = owners
        for author in self._authors():
            owners.name(author)  # it is known from now on, without the store

    def _authors(self) -> list[Author]:
        """Return the authors of all changes, and of lines that others have rewritten."""
        found = [author for some in self.picture.authors.values() for author in some]
        return [*found, *(author for one in self.picture.changed for pair in one.rewritten for author in pair)]

    def session_called(self, word: str, args: Arguments) -> Session:
        """Return the session that a word of the command line names; ``person`` for a person's."""
        if word.strip() in ("person", "a person"):
            return PERSONS
        return self._owners.chosen(word, current_scope(args.value("--scope")), self._authors())

    def name(self, group: Group) -> str:
        """Return the possible makers of a change in words: ``you or codex 5f0c2f6e``."""
        return " or ".join(dict.fromkeys(map(self._name, self.picture.authors[group])))

    def _name(self, author: Author) -> str:
        if author.session == self.own:
            return "you"
        return self._owners.name(author)

    def files(self, group: Group) -> str:
        """Return the files with changes of a group in words."""
        return listed(self.picture.groups[group])

    def named(self, groups: Sequence[Group]) -> str:
        """Return groups with their files in words."""
        return "; ".join(f"{self.name(group)} ({self.files(group)})" for group in groups)

    def parted(self, wanted: Wanted) -> tuple[list[Group], list[Group]]:
        """Return the groups that are wanted, and the others."""
        groups = list(self.picture.groups)
        return [one for one in groups if wanted(one)], [one for one in groups if not wanted(one)]

    def notes(self, wanted: Wanted, chosen: Chosen) -> list[str]:
        """Return lines about the content, for a reader of the answer."""
        inside, outside = self.parted(wanted)
        found = [f"the last commit with {self.named(inside) or 'no uncommitted lines'}"]
        if outside:
            found[0] += f"; without {self.named(outside)}"
        doubtful = [group for group in inside if len(group) > 1]
        if doubtful:
            found.append(f"not certain, and in: the lines of {self.named(doubtful)}")
        found += [
            f"left out, as its lines have no known order: {place.words} ({self._owners.names(place.authors)})"
            for place in chosen.unplaced
        ]
        return [*found, *self._rewritten(inside)]

    def _rewritten(self, inside: Sequence[Group]) -> list[str]:
        """Return lines about the chosen authors' lines that other authors have replaced."""
        counts: dict[tuple[str, str, str], int] = {}
        sessions = {session for group in inside for session in group}
        for one in self.picture.changed:
            for author, other in one.rewritten:
                if author.session in sessions and other.session not in sessions:
                    key = (self._name(author), one.file.name, self._name(other))
                    counts[key] = counts.get(key, 0) + 1
        return [
            f"{count} line{'s' * (count > 1)} of {who} in {named(name)} {('was', 'were')[count > 1]} rewritten by"
            f" {other}: the present ones are by {other}"
            for (who, name, other), count in counts.items()
        ]

    def is_first(self) -> bool:
        """Return True if nothing was tried in this work tree yet."""
        path = os.path.join(place_of(self.tree.own), TOLD)
        if os.path.exists(path):
            return False
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8"):
            pass
        return True

    def run(self, wanted: Wanted, command: Command, only: Callable[[str, int], bool] | None = None) -> Run:
        """Return a run of the command on the wanted lines. Its output is caught."""
        return Run(self.tree, self.picture, self.picture.content(wanted, only), command, is_caught=True)


def listed(names: Sequence[str]) -> str:
    """Return some names in words."""
    words = ", ".join(map(named, names[:NAMED]))
    if len(names) > NAMED:
        words += f" and {len(names) - NAMED} more"
    return words


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
    prune_some()
    if not args.json:
        for note in after:
            complain(note)
        return result.code
    inside, outside = trial.parted(wanted)
    value = {
        "exit": result.code, "way": result.way,
        "with": _described(trial, inside), "without": _described(trial, outside),
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


def _described(trial: Trial, groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [{"who": trial.name(group), "files": trial.picture.groups[group]} for group in groups]


def prune_some() -> None:
    """Remove the files of old tries."""
    with contextlib.suppress(OSError):
        prune(time.time())


# ------------------------------------------------------------------------------------------- whose


class _Moving(Exception):
    """Files have changed during a run."""


def _whose(args: Arguments, trial: Trial, command: Command) -> int:
    jobs = args.number("--jobs", 1)
    if jobs < 1:
        raise UsageError("--jobs wants a number from 1 on")
    for last in (False, True):
        try:
            blame, lines = _searched(trial, command, jobs, args.given("--lines"))
            break
        except _Moving as error:
            if last:
                raise Refused(f"no answer: {error} changed in the checkout meanwhile, again and again") from None
            trial.picture = Picture(trial.tree.top)
    words = _blamed(trial, blame, lines)
    if args.json:
        value: dict[str, Any] = {"kind": blame.kind, "runs": blame.runs, "text": words}
        for name, groups in (("culprits", blame.culprits), ("needed", blame.needed)):
            value[name] = _described(trial, groups)  # type: ignore[arg-type]
        if args.given("--lines"):
            value["lines"] = lines
        show(value)
    else:
        say(f"{words} ({blame.runs} runs)")
        for line in lines:
            say(line)
    return {whose.GREEN: 0, whose.FLAKY: NO_ANSWER}.get(blame.kind, 1)


def _searched(trial: Trial, command: Command, jobs: int, has_lines: bool) -> tuple[Blame, list[str]]:
    def ask(contents: Sequence[frozenset[Group]]) -> list[Failure]:
        found: list[Failure] = []
        for at in range(0, len(contents), jobs):
            with contextlib.ExitStack() as stack:
                runs = [stack.enter_context(trial.run(some.__contains__, command)) for some in contents[at : at + jobs]]
                for run in runs:
                    run.begin()
                found += [_failure(run.end()) for run in runs]
        return found

    search = whose.Search(list(trial.picture.groups), ask, jobs)
    blame = search.result()
    if not has_lines or blame.kind != whose.LINES:
        return blame, []
    return blame, _lines(trial, command, blame)


def _failure(result: Result) -> Failure:
    if result.changed:
        raise _Moving(listed(result.changed))
    return whose.failure(result.code, result.output)


class _Hunk(NamedTuple):
    """Pieces of a file that can only be chosen together."""

    name: str
    numbers: tuple[int, ...]
    words: str


def _lines(trial: Trial, command: Command, blame: Blame) -> list[str]:
    """Return the places of the culprits' lines that the failure needs."""
    guilty = frozenset(blame.culprits)
    left: frozenset[Any] = guilty | frozenset(blame.needed)
    hunks = []
    for one in trial.picture.changed:
        for numbers in groups_of(one.pieces):
            pieces = [one.pieces[number] for number in numbers]
            if any(piece.sessions in guilty for piece in pieces):
                first, last = pieces[0].new + 1, pieces[-1].new + len(pieces[-1].added)
                hunks.append(_Hunk(one.file.name, numbers, _at(named(one.file.name), first, last)))
    every = {(hunk.name, number) for hunk in hunks for number in hunk.numbers}

    def failure(some: Sequence[_Hunk]) -> Failure:
        kept = {(hunk.name, number) for hunk in some for number in hunk.numbers}
        with trial.run(left.__contains__, command, lambda *one: one in kept or one not in every) as run:
            run.begin()
            return _failure(run.end())

    before = failure(hunks)
    return [hunk.words for hunk in whose.smallest(hunks, lambda some: failure(some) == before)]


def _at(name: str, first: int, last: int) -> str:
    if last < first:
        return f"{name}: lines removed after line {last}"
    if last == first:
        return f"{name}:{first}"
    return f"{name}:{first}-{last}"


def _blamed(trial: Trial, blame: Blame, lines: Sequence[str]) -> str:
    """Return the answer as a sentence."""
    if blame.kind == whose.GREEN:
        return "green here: no uncommitted lines make it fail"
    if blame.kind == whose.FLAKY:
        return "no answer: it failed in different ways, or not at all, on the very same files"
    if blame.kind == whose.HEAD:
        return "red already at the last commit"
    culprits: list[Any] = list(blame.culprits)
    words = [f"{_possessive(trial.name(group))} lines of {trial.files(group)}" for group in culprits]
    if len(words) == 1 and blame.is_green_without:
        found = f"red with {words[0]}; green without them"
    elif len(words) == 1:
        found = f"red with {words[0]}; without them it fails in another way"
    elif blame.is_green_without:
        found = f"red only together: {', and '.join(words)}; green without either"
    else:
        found = f"red with {', and with '.join(words)}; without one of them it fails in another way"
    if blame.needed:
        found += f"; only needed to get that far: {trial.named(list(blame.needed))}"  # type: ignore[arg-type]
    return found


def _possessive(name: str) -> str:
    if name == "you":
        return "your"
    return f"{name}'s"


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


# ------------------------------------------------------------------------------------------- the tool

OUTPUT = 30_000  # characters of a command's output in an answer: its end


async def _try_tool(call: WaitingCall, arguments: dict[str, Any]) -> Answer:
    import asyncio

    row = await call.run(lambda now: now.member())
    folder = os.path.join(row.directory, arguments.get("folder", ""))
    words = [sys.executable, "-m", "swarm_mcp", "try", "--as", row.id, "--json"]
    if arguments["whose"]:
        words.append("--whose")
    else:
        words += [word for name in arguments.get("sessions", ()) for word in ("--session", name)]
        words += [word for name in arguments.get("without", ()) for word in ("--without", name)]
        words += [f"--{name}" for name in ("person", "head", "keep") if arguments[name]]
        words += ["--mine"] * (bool(arguments.get("sessions", ())) and arguments["mine"])
    shell = ["--", "/bin/sh", "-c", arguments["command"]]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *words, *shell, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), arguments["seconds"])
    except asyncio.TimeoutError:
        raise Refused(f"the command was ended after {arguments['seconds']} seconds") from None
    finally:
        if child.returncode is None:
            child.terminate()  # it ends the command and all its processes
            await child.wait()
    try:
        value = json.loads(out)
    except (ValueError, RecursionError):
        raise SwarmError(err.decode(errors="replace").strip()[-1000:] or "it could not be tried") from None
    if len(value.get("output", "")) > OUTPUT:
        value["output"] = f"[...]{value['output'][-OUTPUT:]}"
    return Answer(value)


TOOLS = (
    Tool(
        "try",
        "Run a command (tests, a build) on the last commit with this session's uncommitted lines alone, at the"
        " checkout's own path, as if the other agents had written nothing. Use it when something fails beside others'"
        " uncommitted lines, before you mend it; with `whose` it says whose lines make it fail. Nothing in the checkout"
        " changes.",
        {
            "command": text("A shell command."),
            "whose": flag("Find the authors whose lines make it fail. It runs several times."),
            "sessions": texts("The lines of these sessions instead of your own."),
            "mine": flag("Your own lines beside those of `sessions`."),
            "person": flag("The lines that no session has written."),
            "without": texts("All lines but those of these sessions (or `person`)."),
            "head": flag("The last commit alone."),
            "keep": flag("Keep what it writes: `swarm-mcp try --diff` and `--apply FILE`."),
            "folder": text("A folder in the work tree. Default: the folder where this session works.", default=""),
            "seconds": number("End it after so many seconds.", minimum=1, maximum=3600, default=600),
        },
        _try_tool,
        required=("command",),
        destructive=True,
    ),
)
