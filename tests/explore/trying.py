"""A session that tries a command on its own lines, and a stand-in for the kernel's view of the checkout.

In the view a file is the one in the upper folder of the try, else the checkout's, as it is when the command reads it.
The command reads all files, and adds a line to each in the view: the checkout, and the next view, may not have it. The
index in the view is left out: no role stages files.
"""

import io
import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from typing import Any

from explore.git import Repository
from explore.ground import FILES, files
from explore.process import CLIENT_SECONDS, Process
from swarm_hook_core.repository import Tree, tree_at
from swarm_mcp.answers.people import People
from swarm_mcp.changes.commands import tries as command_line
from swarm_mcp.changes.owners import Owners
from swarm_mcp.changes.tries import running, space, trial
from swarm_mcp.changes.tries.folder import place_of
from swarm_mcp.changes.tries.picture import Picture
from swarm_mcp.changes.tries.running import OVERLAY, Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.changes.tries.trial import Trial
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.store import Store

MADE = "made"  # a line that the command writes, and the name of a file that git ignores
DOUBT = "doubt"  # lines are in that may be of another author
LEFT = {"lock", "top", "bytes", "record", f"upper/{MADE}.o"}  # of a folder of a try, and git's objects
PIDS = itertools.count(1 << 30)  # of no process


class Kernel:
    """The view of a try. `say` is told of all that the command reads."""

    def __init__(self, say: Callable[..., None]):
        self._say = say
        self._begun: dict[int, tuple[Run, Command]] = {}
        space.begin, space.attend, space.end = self.begin, self.attend, lambda _pid: None  # type: ignore[assignment]

    def begin(self, _mounts: Any, prepare: Any, command: Command) -> int:
        """Write the content of the try into the upper folder, as the mounts would."""
        run: Run = prepare.__self__
        assert run.folder is not None
        run.folder.place(run.folder.at("upper"), is_copy=False)
        pid = next(PIDS)
        self._begun[pid] = run, command
        return pid

    def attend(self, pid: int) -> int:
        """Read each file, and write into it. The command fails if a line begins with its second word."""
        run, command = self._begun.pop(pid)
        assert run.folder is not None
        is_red = False
        for name in FILES:
            time.sleep(CLIENT_SECONDS)
            upper = run.folder.at("upper", name)
            place = upper if os.path.lexists(upper) else os.path.join(command.folder, name)
            with open(place, encoding="utf-8") as file:
                text = file.read()
            self._say("ran", name, *text.split())
            is_red = is_red or any(line.startswith(command.argv[1]) for line in text.split())
            with open(upper, "w", encoding="utf-8") as file:
                file.write(f"{text}{MADE}\n")
        with open(run.folder.at("upper", f"{MADE}.o"), "w", encoding="utf-8") as file:
            file.write(MADE)
        if is_red:
            os.write(command.output, b"error: a line is wrong\n")
        return int(is_red)


def act_for_the_kernel() -> None:
    """Have each try use an overlay. The kernel is not asked if it has one."""
    running.ways = lambda _tree: [OVERLAY]


class Tries:
    """The tries of a session. A line begins with the number of its process."""

    def __init__(self, me: Process, store: Store):
        self.me, self.store = me, store
        self.kernel = Kernel(me.say)

    def _trial(self, word: str) -> tuple[Trial, Command]:
        top = self.me.ground.work
        tree = tree_at(top)
        assert tree is not None
        owners, own = Owners(self.store, People(self.store, "", self.me.id)), ("claude-code", self.me.session_id)
        return Trial(tree, Picture(top), owners, own), Command(["check", word], top, os.environ)

    def of_own(self) -> None:
        """Run a command that passes on the own lines."""
        self.me.say("tests", "own")
        args, said = Arguments([], {"--json": [""]}), io.StringIO()
        trial, command = self._trial("-")
        with redirect_stdout(said):
            command_line._try(args, trial, command_line._wanted(args, trial), command)
        found = json.loads(said.getvalue())
        self.me.say("tested", *found["changed"], *[DOUBT] * ("not certain" in said.getvalue()))

    def whose(self) -> None:
        """Find the authors of the lines of another process, with a command that fails on them."""
        other = int(not self.me.number)
        self.me.say("seeks", other)
        try:
            blame = trial._searched(*self._trial(f"{other}."), 1, False)[0]
        except trial._Moving:
            self.me.say("moved")
        else:
            named = ["+".join(sorted(session or "person" for _runtime, session in group)) for group in blame.culprits]
            self.me.say("blames", blame.kind, *named)


def tries(me: Process) -> None:
    """Edit a file and try a command on the own lines; write it by a command, and try again; then blame others."""
    with Store(me.ground.store) as store:
        mine = Tries(me, store)
        me.write(FILES[0], "Edit", f"{me.number}.0\n")
        mine.of_own()
        me.build(f"{me.number}.1")
        mine.of_own()
        mine.whose()


def left_by_tries(top: str, is_again: bool) -> list[str]:
    """Return the files that tries have left, in a few words each. `is_again`: after one more try in each folder."""
    tree = tree_at(top)
    assert tree is not None
    place = place_of(tree.own)
    folders = sorted(os.listdir(place)) if os.path.isdir(place) else []
    numbers = [name for name in folders if name.isdigit()]
    found = _ran_on_another_content(tree, len(numbers)) if is_again else []
    for number in numbers:
        folder = os.path.join(place, number, "")
        names = {path.removeprefix(folder) for path in files(folder[:-1])}
        found += [f"{name} of a try is left behind" for name in sorted(names - LEFT) if not name.endswith(".tmp")]
    more = set(os.listdir(place)).difference(folders) if folders else ()
    return [*found, *(f"a try is still going on: the next one made the folder {name}" for name in sorted(more))]


def _ran_on_another_content(tree: Tree, count: int) -> list[str]:
    """Try the last commit, so many times at once; return the texts that are not as in it, in a few words each."""
    picture, there, read = Picture(tree.top), Repository(tree.top), list[tuple[str, ...]]()
    Kernel(lambda _ran, *words: read.append(words))
    sleep, time.sleep = time.sleep, lambda _seconds: None
    try:
        with ExitStack() as stack:
            for _number in range(count):
                chosen, command = picture.content(lambda _group: False), Command(["check", "-"], tree.top, {})
                run = stack.enter_context(Run(tree, picture, chosen, command))
                run.begin()
                run.end()
    finally:
        time.sleep = sleep
    committed = {name: (there.object(made) or b"").decode().split() for name, made in there.tree(there.head()).items()}
    return [f"a try of the last commit ran on {words}" for words in read if [*words[1:]] != committed[words[0]]]
