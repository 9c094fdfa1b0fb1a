"""Goes through a script as a shell would, without running any of it.

A branch that may be taken is walked like one that is; the resulting states are merged. Loops over known names go round
for each of them. Time and steps are bounded: the rest of the script then becomes a guess.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from swarm_hook_core import state, wildcards
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.files import Files, admits_pattern, expand_pattern
from swarm_hook_core.shell.lexer import DEEPEST, TooLong
from swarm_hook_core.shell.model import (
    LONGEST_BY,
    MOST_TEXT,
    UNKNOWN,
    Admits,
    Effects,
    Found,
    Guess,
    Input,
    Stream,
    Tree,
    Unknowns,
    absolute,
    at_most_possible,
    text_of,
)
from swarm_hook_core.shell.parser import script_of
from swarm_hook_core.shell.running import only_reads, run
from swarm_hook_core.shell.statements import DEEPEST as DEEPEST_STATEMENT
from swarm_hook_core.shell.statements import sequence
from swarm_hook_core.shell.syntax import Script
from swarm_hook_core.shell.variables import Scope, options_of

T = TypeVar("T")


SECONDS = 0.008  # of the check's Budget
SECONDS_TO_PARSE = 0.005  # of those, for a whole script; the part that was read in this time is walked
MOST_STEPS = 4000
STEPS_A_LOOK = 4  # at the clock


class Walk(Unknowns):
    """A walk that adds to `effects`. See the package's docstring; programs use the public methods.

    effects      the Effects found so far
    files        the files as the script has left them so far
    scope        the Scope of the command that is being run
    budget       the Budget of the effects; the walk may use it until `end`
    """

    def __init__(self, effects: Effects, folder: str | None, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.effects = effects
        self.budget = effects.budget
        self.files = Files(effects, self)
        effects.texts = self.files.contents
        # A folder of None is unknown.
        self.scope = Scope(folder and os.path.normpath(folder), ["bash"], environment)
        self.scope.options = options_of(environment.get("SHELL", "").rpartition("/")[2])
        self.depth = 0
        self.doubts = 0  # nesting depth of parts without certain effects
        self.steps = self.clock_at = 0
        self.fresh = 0  # paths given out for process substitutions
        self.met: set[str] = set()  # programs met so far
        # Returns the shell text of a call that runs the project's own code, empty if unknown. Hooks are read with it.
        self.project_script: Callable[[Call], str] | None = None
        self.end = self.budget.part(SECONDS)

    # Methods for programs

    def script(self, text: str) -> None:
        """Walk a whole script. Never raises."""
        try:
            self.evaluated(self.scope, text.replace("\0", ""))
        except (TooLong, RecursionError, MemoryError):
            self.guess(self.scope, "too long to be followed", "")
        except Exception as error:
            self.not_understood(self.scope, error, "")

    def nested(
        self,
        text: str,
        folder: str | None = None,
        words: Sequence[str] = (),
        stdin: Stream | None = None,
        shell: str = "",
    ) -> Stream | None:
        """Walk script `text` in a shell of its own (``bash -c``). Return the Stream it prints, or None.

        `shell`: its name, if it is a different shell than that of the script around it, without functions and aliases.
        """
        scope = self._inside(folder, stdin)
        scope.shown = scope.shown and not scope.spans  # it may print more than one file
        if shell:
            scope.options, scope.functions, scope.aliases = options_of(shell), {}, {}
        if words:
            scope.words = list(words)
        return self.evaluated(scope, text)

    def found(self, word: str, folder: str | None = None) -> list[Found] | None:
        """Call `Unknowns.found`, seen from the command's folder."""
        if folder is None:
            folder = self.scope.folder
        return super().found(word, folder)

    def run(self, words: list[str], stdin: Stream | None = None, folder: str | None = None) -> Stream | None:
        """Run the simple command `words`, already expanded. Return the Stream it prints, or None."""
        if words:
            return self.simple(self._inside(folder, stdin), words)
        return None

    def _inside(self, folder: str | None, stdin: Stream | None) -> Scope:
        """Return a shell in `folder` that reads `stdin` (None: this one's)."""
        scope = self.scope.fork()
        scope.folder = folder
        if stdin is not None:
            scope.stdin = Input(stdin)
        return scope

    def only_reads(self, words: list[str]) -> bool:
        """Call `running.only_reads`, for programs."""
        return only_reads(self, words)

    def simple(self, scope: Scope, words: list[str]) -> Stream | None:
        """Run `words` in `scope`: a function, a builtin of the shell, or a program."""
        self.spend()
        return self.within(scope, DEEPEST_STATEMENT, run, words)

    def within(
        self, scope: Scope, deepest: int, work: Callable[[Walk, Scope, T], Stream | None], given: Any
    ) -> Stream | None:
        """Return ``work(self, scope, given)``, run a level deeper. Raises TooLong below level `deepest`."""
        before, self.scope = self.scope, scope
        self.depth += 1
        try:
            if self.depth > deepest:
                raise TooLong
            return work(self, scope, given)
        finally:
            self.scope = before
            self.depth -= 1

    def spend(self, steps: int = 1) -> None:
        """Raises TooLong where the walk has gone on for long enough."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise TooLong
        if self.steps >= self.clock_at or not steps:  # reading the clock takes as long as some steps do
            self.clock_at = self.steps + STEPS_A_LOOK
            if time.thread_time() > self.end:
                raise TooLong

    def untimed(self, load: Callable[[], T]) -> T:
        """Return ``load()``. If it imports modules, its time is not held against the script."""
        before, modules = time.thread_time(), len(sys.modules)
        try:
            return load()
        finally:
            if len(sys.modules) > modules:
                self.forgive_import(time.thread_time() - before)

    def forgive_import(self, seconds: float) -> None:
        """Give back time that went only into importing."""
        self.end += self.budget.forgive_import(seconds)

    def forgive(self, seconds: float) -> None:
        """Give back time that went partly into importing, up to a limit."""
        self.end += self.budget.forgive(seconds)

    def in_doubt(self, work: Callable[..., Any], *given: Any) -> None:
        """Do ``work(self, *given)``: all that it finds is only possible."""
        effects = self.effects
        writes, trees, git = len(effects.writes), len(effects.trees), len(effects.git)
        self.doubts += 1
        try:
            work(self, *given)
        finally:
            self.doubts -= 1
            doubted = [Tree(one.root, one.by, at_most_possible(one.admits), one.how) for one in effects.trees[trees:]]
            if writes < len(effects.writes):
                known = {absolute(one.folder, one.path) for one in effects.writes[:writes]}
                for write in effects.writes[writes:]:
                    path = absolute(write.folder, write.path)
                    if path is not None and path not in known:
                        doubted.append(Tree(path, write.by, _possible_at(path), write.how))
            del effects.writes[writes:], effects.trees[trees:]
            for tree in doubted:
                effects.add(tree)
            for call in effects.git[git:]:
                call.in_doubt = True

    # State that words need

    def guess(self, scope: Scope, why: str, by: str) -> None:
        self.effects.add(Guess(why, scope.folder or "", by[:LONGEST_BY]))

    def not_understood(self, scope: Scope, error: BaseException, by: str) -> None:
        """A mistake of ours: a guess for the call, a fault for `doctor`."""

        state.record("shell", "pre_tool_use", f"`{by[:LONGEST_BY]}`: {state.describe(error)}")
        self.guess(scope, f"not understood ({type(error).__name__})", by)

    def listed(self, scope: Scope, wanted: str) -> list[str]:
        """The names that a shell pattern stands for; one mark where they are too many."""
        self.spend(2)
        names = expand_pattern(wanted, scope.folder, scope.options, self.spend)
        if names is not None:
            if self.files.contents:
                return names + self._made(wanted, scope, names)
            return names
        if scope.folder is None and not wanted.startswith("/"):
            return [UNKNOWN]
        parts = wanted.split("/")
        fixed = 0
        while fixed < len(parts) - 1 and not wildcards.is_magic(parts[fixed]):
            fixed += 1
        root = absolute(scope.folder, wildcards.literal("/".join(parts[:fixed]) + "/" * bool(fixed)) or ".")
        return [self.mark(Found(root or "/", admits_pattern(wanted, scope.folder or "/", scope.options)))]

    def _made(self, wanted: str, scope: Scope, names: list[str]) -> list[str]:
        """The names of files made by this script that a shell pattern stands for, but for `names`."""
        if scope.folder is None:
            return []
        self.spend(1 + len(self.files.contents) // 8)
        admits = admits_pattern(wanted, scope.folder, scope.options)
        made = [path for path in self.files.contents if admits(path)]
        start = ""
        if wanted[0] != "/":
            start = scope.folder.rstrip("/") + "/"
        return [path[len(start) :] for path in made if path[len(start) :] not in names]

    def substituted(self, scope: Scope, script: Script) -> str:
        """Return the text of ``$(script)``; its effects count."""
        inside = scope.fork()
        inside.heard, inside.shown = True, False
        stream = self.nested_in(inside, script)
        if stream is None:
            return UNKNOWN
        if stream.found is not None:
            text_of(stream)
        if stream.text is not None:
            if len(stream.text) <= MOST_TEXT:
                return stream.text.rstrip("\n")
            return UNKNOWN
        if stream.found is None:
            return UNKNOWN
        return self.mark(stream.found)

    def process(self, scope: Scope, script: Script, writes: bool) -> str:
        """A path that stands for ``<(script)`` or ``>(script)``."""
        inside = scope.fork()
        inside.heard, inside.shown = not writes, False
        stream = self.nested_in(inside, script)
        self.fresh += 1
        path = f"/dev/fd/{63 + self.fresh}"
        if not writes:
            self.files.contents[path] = stream
        return path

    def computed(self, scope: Scope, text: str) -> str:
        """The number that arithmetic `text` (expanded) amounts to, or UNKNOWN."""
        from swarm_hook_core.shell.conditions import computed

        return computed(self, scope, text)

    def evaluated(self, scope: Scope, text: str) -> Stream | None:
        """Walk the script `text` in `scope`. Return the Stream it prints, or None."""
        end = min(self.end, time.thread_time() + SECONDS_TO_PARSE)
        return self.nested_in(scope, script_of(text, end))

    def nested_in(self, scope: Scope, script: Script) -> Stream | None:
        """Walk `script` in `scope`. Return the Stream it prints, or None."""
        self.spend(3)
        if script.broken:
            self.guess(scope, "not understood as shell", " ".join(script.text.split()))
        stream = self.within(scope, DEEPEST, sequence, script.statements)
        if script.cut:
            raise TooLong
        return stream


def _possible_at(file: str) -> Admits:
    """The predicate of a file that may be written."""
    return lambda path: None if path == file else False
