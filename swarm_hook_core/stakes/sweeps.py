"""Git commands that would discard, stage or commit uncommitted changes of other sessions, or of persons.

Git says once for all changed files if a command loses them, or takes them along. Their owners decide: the command is
denied for a change of another session, or of a person. Commands that git itself would refuse are let pass
(``shell/programs/git/uncommitted``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from swarm_hook_core import EDIT, REMOVE
from swarm_hook_core.denial import Denial, Loss, Notice, without_owner
from swarm_hook_core.git_repository import MOST_PATHS, NoAnswer, Repository
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.json_text import loads
from swarm_hook_core.repository import small_text
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import Effects, GitCall, is_known
from swarm_hook_core.shell.programs.git import commit_hooks, touched_files, uncommitted
from swarm_hook_core.shell.programs.git.commit_hooks import (
    BY_FRAMEWORK,
    DEEPEST,
    FAILS_OVER_ALL,
    RUNNERS,
    SWITCHES,
    WHOLE,
    Hooks,
    hooks_folder,
)
from swarm_hook_core.shell.programs.git.listings import tree_of, work_tree
from swarm_hook_core.shell.programs.git.table import asks, only_reads, options_of
from swarm_hook_core.shell.walk import Walk
from swarm_hook_core.stakes import stash, wording
from swarm_hook_core.stakes.owners import BUILT, OWN, Authors, Changed, Stake, size_of, top_of
from swarm_hook_core.stakes.wording import Theirs, also_in
from swarm_hook_core.traces import NOTICE, OFF, TOLD_ALONG, TURN, seen
from swarm_hook_core.traces.elsewhere import deed_of
from swarm_hook_core.traces.file_changes import MOST, Patience
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.wording import way_past_hook, way_past_hooks

MOST_CALLS = 50  # git commands of one call
MOST_LOOKED = 100  # files of one command that are looked at first: if sessions' work is among them, the last ones
MOST_FILES = 500  # files of one command with their authors looked up, if no session's work settles it
FEW = wording.MOST_NAMED + 2  # files of one kind with their authors looked up, once the command is refused anyway
_KEEPS = ("commit", "push", "add", "stage", "apply", "update-index")  # git verbs that leave a person's content in place
_TAKES = ("commit", "add", "stage")
_OF_IGNORED = {"clean": ("-x", "-X"), "stash": ("-a", "--all"), "worktree": (), "submodule": (), "rm": ()}

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
UNCHECKED = ("pre-commit", "commit-msg", "pre-merge-commit", "pre-push")  # hooks that ``--no-verify`` leaves out
# The hooks of git commands, in their order: those before the command's own work, and those after it.
_OF_COMMITS = (("pre-commit", "prepare-commit-msg", "commit-msg"), ("post-commit",))
_HOOKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "commit": (_OF_COMMITS[0], ("post-commit", "post-rewrite")),
    **dict.fromkeys(("cherry-pick", "revert"), _OF_COMMITS),
    **dict.fromkeys(("checkout", "switch"), ((), ("post-checkout",))),
    "merge": (("pre-merge-commit",), ("post-merge",)),
    "pull": (("pre-merge-commit",), ("post-merge", "post-rewrite")),
    "rebase": (("pre-rebase",), ("post-checkout", "post-rewrite")),
    "am": (("applypatch-msg", "pre-applypatch"), ("post-applypatch",)),
    "push": (("pre-push",), ()),
}


class Sweeps:
    """The git commands of one call, in their order.

    refused      True if one of them is denied
    at_stake     Stakes that the commands lose, with their authors
    stashed_in   folders with a stash by one of the commands
    put_aside    work tree -> name of the hook manager that puts changes aside there during a command
    """

    def __init__(
        self, meetings: Meetings, authors: Authors, effects: Effects, changed: Changed, identity: str, now: float
    ):
        self.at_stake: list[Stake] = []
        self.stashed_in: list[str] = []
        self.put_aside: dict[str, str] = {}
        self._meetings = meetings
        self._authors = authors
        self._effects = effects
        self._changed = changed
        self._identity = identity
        self._now = now
        self._trail = meetings.trail
        self._call = meetings.trail.call
        self._denies = meetings.trail.level not in (OFF, NOTICE)
        self._has_begun = bool(
            effects.writes or effects.trees or effects.guesses
        )  # the files on disk may differ by now
        self._commits = any(one.words[0] == "commit" for one in effects.git)
        self._patience = Patience(meetings.trail.changes)
        self._words: list[str] = []  # the present command, aliases expanded
        self._files: dict[str, bool] = {}  # that it may affect -> True if git does not know the file
        self._is_settled = False  # True if the first of its files settle the answer
        self._staged: set[str] = set()  # by an earlier command of the call
        self._committed: set[str] = set()  # by an earlier one
        self._stamps: dict[str, list[str]] = {}  # place -> stamps of the journals that were read

    def verdict(self) -> Verdict:
        """Return the Verdict on the commands; empty if they affect nothing of others."""
        found = Verdict()
        for git_call in self._with_hooks():
            try:
                one = self._of(git_call)
            except NoAnswer:
                one = self._late(git_call)
            if one is not None:
                found.add(one)
            if found.denial is not None:
                found.notice, found.noted = "", []
                break
        return found

    def _with_hooks(self) -> Iterator[GitCall]:
        """Yield the commands, with those in the hooks that they run."""
        for git_call in self._effects.git[:MOST_CALLS]:
            top, before, after = tree_of(git_call), list[GitCall](), list[GitCall]()
            if top is not None and self._is_beside(top):
                repository = Repository(top, self._changed.left(), git_call.top, git_call.environment)
                try:
                    before, after = _hook_commands(git_call, git_call.words, repository)
                except NoAnswer:  # they are unknown
                    pass
            yield from (*before, git_call, *after)

    def is_current(self) -> bool:
        """Return True if no other session has noted anything since the verdict."""
        return all(self._meetings.journals.stamps(place) == stamps for place, stamps in self._stamps.items())

    def again(self, meetings: Meetings) -> Verdict:
        """Return the Verdict by new Meetings: another session has noted something since."""
        sweeps = Sweeps(meetings, Authors(meetings), self._effects, Changed(), self._identity, self._now)
        self._trail.sweeps = sweeps
        return sweeps.verdict()

    def note(self) -> None:
        """Note the stashes, and the changes that are put aside, of commands that go ahead."""
        for folder in self.stashed_in:
            self._trail.note_at(folder, "stash")
        for top, name in self.put_aside.items():
            self._trail.note_at(top, "aside", name)

    # ------------------------------------------------------------------------------------------- one command

    def _of(self, git_call: GitCall) -> Verdict | None:
        """Return the Verdict on the next command. Raises NoAnswer if git is too slow."""
        self._words = []
        words = touched_files.without_aliases(git_call, self._changed.left())
        if not words or only_reads(words) or not (asks(words) or words[0] == "worktree"):
            return None
        is_first, self._has_begun = not self._has_begun, True
        self._words = words
        if words[0] == "stash" and stash.verb_of(words) not in ("push", "save"):
            return None  # it takes entries out (``stash``)
        if not self._puts_aside(git_call) and words[0] == "push":
            return None  # it touches no file
        lost, taken = self._swept(git_call)
        if git_call.found and self._effects.late:
            raise NoAnswer("the list of its files came too late")
        pending = self._during_hooks(git_call)
        theirs = self._theirs(git_call, lost, words[0] not in _KEEPS, pending)
        self.at_stake += lost
        # Checked last: this searches the whole work tree, and would use up the time of the other questions.
        if words[0] == "stash" and not theirs.traces:
            left = self._changed.left()
            if stash.puts_aside(git_call, words, left, is_first):
                self.stashed_in.append(git_call.folder)
        if git_call.aside and not git_call.in_doubt and not (theirs.traces and self._denies):
            self.put_aside[tree_of(git_call) or git_call.folder] = git_call.aside
        found = None
        if self._trail.level != OFF and theirs.paths:
            found = self._loses(git_call, theirs, lost)
        elif self._trail.level != OFF:
            found = self._takes(git_call, taken)
        if found is None or found.denial is None:
            self._go_on(git_call, taken)
        return found

    def _swept(self, git_call: GitCall) -> tuple[list[Stake], list[Stake]]:
        """Return ``(lost, taken)``: changed files with changes that the command discards, and that it takes along.

        Of very many files the first ones alone, if sessions' changes among them settle the answer.
        """
        self._files = self._listed(git_call)
        self._is_settled = False
        # The files to look at first: some of the session's own, then those that others have written
        files = self._files
        if not self._denies or len(files) <= MOST_LOOKED:
            first = list(files)
        else:
            own = [path for path in files if self._authors.has_written(path)][:MOST]
            theirs = filter(self._meetings.is_named, files)
            first = list(dict.fromkeys([*own, *theirs, *files]))[:MOST_LOOKED]
        if len(first) < len(self._files):
            lost, taken = self._stakes(git_call, first)
            settling = lost
            if self._words[0] in _TAKES and not git_call.aside:
                settling = [*lost, *taken]
            self._authors.find_sessions(settling, are_changed=True)
            self._is_settled = any(one.trace is not None for one in settling)
            if self._is_settled:
                return lost, taken
        return self._stakes(git_call, list(self._files))

    def _listed(self, git_call: GitCall) -> dict[str, bool]:
        """Return ``{path: True if git does not know the file}`` of the files that the command may affect."""
        files: dict[str, bool] = {}
        by_top: dict[str, list[str]] = {}
        for root in uncommitted.roots(git_call):
            by_top.setdefault(top_of(root), []).append(root)
        for top, roots in by_top.items():
            for at in range(0, len(roots), MOST_PATHS) if top else ():
                some, with_new = roots[at : at + MOST_PATHS], self._words[0] != "commit" or bool(git_call.aside)
                files.update(self._changed.listed_below(top, *some, with_new=with_new))
        for root in (root for roots in by_top.values() for root in roots):
            is_beside = self._is_beside(root)
            if is_beside and _may_lose_ignored(self._words):
                files.update(
                    (trace.path, True) for trace in self._meetings.fresh_below(root) if trace.path not in files
                )
        return {path: is_new for path, is_new in files.items() if path not in self._committed}

    def _stakes(self, git_call: GitCall, files: list[str]) -> tuple[list[Stake], list[Stake]]:
        """Return ``(lost, taken)`` among these listed files. What this call has staged was reported with that."""
        paths = self._changed.certain(files)
        if not paths:
            return [], []
        lost, taken = uncommitted.swept(git_call, paths, self._changed.left())
        if self._words[0] == "commit":
            lost = [path for path in lost if path not in self._staged]  # they go into the commit
        taken = [path for path in taken if path not in self._staged]
        certain = not git_call.in_doubt
        return (
            [Stake(path, REMOVE, git_call.by, self._files[path], self._words, certain) for path in lost],
            [Stake(path, EDIT, git_call.by, self._files[path], self._words, certain) for path in taken],
        )

    def _is_beside(self, folder: str) -> bool:
        """Return True if other sessions have a journal in the place of `folder`, and are to be protected."""
        if self._trail.level == OFF:
            return False
        place = self._trail.place_of(folder)
        if place not in self._stamps:
            self._stamps[place] = self._meetings.journals.stamps(place)
        return bool(self._meetings.journals.of_others(place))

    def _during_hooks(self, git_call: GitCall) -> list[Trace]:
        """Return writes of other sessions that are to come while hooks of the command put changes aside."""
        top = tree_of(git_call)
        if top is None or not self._is_beside(top):
            git_call.aside = ""
            return []
        if self._puts_aside(git_call):
            return self._meetings.pending_below(top)
        return []

    def _puts_aside(self, git_call: GitCall) -> bool:
        """Return True if hooks of the command put changes aside while they run."""
        words, top = self._words, tree_of(git_call)
        hook = {"commit": "pre-commit", "push": "pre-push"}.get(words[0])
        if top and hook and not git_call.aside:
            repository = Repository(top, self._changed.left(), git_call.top, git_call.environment)
            try:
                git_call.aside = commit_hooks.putting_aside(git_call, options_of(words), repository, hook)
            except NoAnswer:
                git_call.aside = ""  # too slow: assume no files
        return bool(git_call.aside)

    def _go_on(self, git_call: GitCall, taken: list[Stake]) -> None:
        """Assume that the command has run, for the commands after it."""
        if self._is_settled and git_call is not self._effects.git[-1]:
            taken = self._stakes(git_call, list(self._files))[1]
        paths = [one.path for one in taken]
        if self._words[0] in ("add", "stage", "apply"):
            self._staged.update(paths)
        elif self._words[0] == "commit":
            self._committed.update(self._staged, paths)

    # ------------------------------------------------------------------------------------------- owners

    def _theirs(
        self, git_call: GitCall, stakes: list[Stake], with_persons: bool, pending: Iterable[Trace] = ()
    ) -> Theirs:
        """Return the work of others in the files. Once a session's settles the answer, persons' is sought in a few."""
        if self._trail.level != OFF and not self._is_settled:
            self._authors.find_sessions(stakes, are_changed=True)
        traces = [*(one.trace for one in stakes if one.trace is not None), *pending]
        traces = list({trace.path: trace for trace in traces}.values())
        if with_persons and not (git_call.in_doubt and self._denies):
            self._find_persons(stakes, bool(traces) and self._denies)
        persons = [one for one in stakes if one.is_persons] if with_persons else []
        theirs = Theirs(self._call, traces, persons, self._identity, self._now)
        theirs.stakes = stakes
        theirs.count = len(self._files) * self._is_settled
        return theirs

    def _find_persons(self, stakes: list[Stake], is_settled: bool) -> None:
        """Find the authors of the files that no other session has changed."""
        rest = [one for one in stakes if one.trace is None and size_of(one.path)][:MOST_FILES]
        sorted_: dict[bool, list[Stake]] = {True: [], False: []}
        for one in rest:
            sorted_[self._authors.has_written(one.path)].append(one)
        written, others = sorted_[True], sorted_[False]
        if is_settled:
            others = others[:FEW]
        self._authors.find(others)
        if is_settled or any(one.is_persons for one in others):
            written = written[:FEW]
        self._authors.find(written)

    def _went_on_with(self, stake: Stake) -> bool:
        """Return True if the session knows the other's change in the file, and no line there is the other's alone."""
        trace = stake.trace
        if trace is None or not self._meetings.went_on_with(trace):
            return False
        if not trace.journal or trace.held.kin:
            return True  # on another machine, or the session itself
        lines = self._patience.has_part(trace.path, trace.journal, is_sure=True)
        return lines is False or (lines is None and self._patience.left() > 0)  # without lines its last writer counts

    # ------------------------------------------------------------------------------------------- outcomes

    def _loses(self, git_call: GitCall, theirs: Theirs, lost: list[Stake]) -> Verdict | None:
        """Return the Verdict on a command that would lose work of others."""
        deed = deed_of(self._words)
        if git_call.aside:
            deed = "put aside"
        if self._denies and not git_call.in_doubt:
            return self._refused(git_call, theirs, deed, self._way(git_call, theirs, lost))
        return self._told(git_call, theirs, deed, self._way(git_call, theirs, lost))

    def _takes(self, git_call: GitCall, taken: list[Stake]) -> Verdict | None:
        """Return the Verdict on a command that takes work of others along: denied until its session was told."""
        words, deed = self._words, deed_of(self._words)
        theirs = self._theirs(git_call, taken, False)
        is_all = words[0] == "commit" or self._commits
        counted = [one for one in theirs.stakes if is_all or not _is_named(git_call, words, one)]
        own = [one for one in taken if one.trace is not None and self._authors.has_written(one.path)][:MOST]
        self._patience.prepare(one.path for one in own)
        passed = {one.path for one in own if self._went_on_with(one)}
        theirs.traces = [one for one in theirs.traces if one.path not in passed]
        always = self._denies and self._trail.level == TURN and any(
            not self._meetings.went_on_with(one) for one in theirs.traces
        )  # fmt: skip
        may_once = deed in ("stage", "commit") and not git_call.in_doubt
        is_news = may_once and self._is_untold(theirs)
        if may_once and words[0] in _TAKES:
            self._find_persons(counted, self._denies and (always or is_news))
            theirs.persons = [one for one in counted if one.is_persons]
        if not theirs.paths:
            return None
        is_news = may_once and self._is_untold(theirs)
        if is_news:
            for path in theirs.paths:
                self._trail.note(TOLD_ALONG, path)
        if always or (is_news and self._denies):
            return self._refused(git_call, theirs, deed, self._way(git_call, theirs, taken), is_once=not always)
        if not is_news:
            theirs.persons = []
        if not theirs.paths:
            return None
        return self._told(git_call, theirs, deed, self._way(git_call, theirs, taken))

    def _is_untold(self, theirs: Theirs) -> bool:
        """Return True if this session was not told yet that some of these changes would go along."""
        since = {**dict.fromkeys(theirs.paths, 0), **{trace.path: trace.at_ns for trace in theirs.traces}}
        own = self._meetings.journals.own
        return any(seen.is_untold(own(os.path.dirname(path)), path, at_ns, TOLD_ALONG) for path, at_ns in since.items())

    def _late(self, git_call: GitCall) -> Verdict | None:
        """Return the Verdict after git was too slow: decide by the words of the command, and by traces.

        If the words do not say that the command means one of their files, the model is told that it may.
        """
        words = self._words
        if not words:
            return None
        roots = [root for root in uncommitted.roots(git_call) if self._is_beside(root)]
        near = {trace.path: trace for root in roots for trace in self._meetings.fresh_below(root)}
        deed, (lost, taken) = deed_of(words), uncommitted.swept_by_words(git_call, words, list(near))
        theirs = Theirs(self._call, [near[path] for path in lost], [], self._identity, self._now)
        denies = self._denies and not git_call.in_doubt
        if not theirs.traces and self._trail.level == TURN:
            theirs.traces = [near[path] for path in taken if not self._meetings.went_on_with(near[path])]
        if theirs.traces:
            way = self._also(theirs, wording.LATE)
            if denies:
                return self._refused(git_call, theirs, deed, way)
            return self._told(git_call, theirs, deed, way)
        if denies and uncommitted.losing(git_call, words) is not None:
            denial = Denial(git_call.folder, None, wording.late(self._call, git_call.by, deed))
            denial.loss = without_owner("person", deed, git_call.by)
            denial.question = wording.late_question(git_call.by, deed)
            return Verdict(denial)
        if not near:
            return None
        theirs.traces = list(near.values())
        return self._told(git_call, theirs, deed, "", may=True)

    def _refused(self, git_call: GitCall, theirs: Theirs, deed: str, way: str, is_once: bool = False) -> Verdict | None:
        """Return the denial of a command. `is_once`: the same command again goes ahead."""
        if is_once and not self._trail.is_asked:
            try:
                self._trail.leave()
            except OSError:
                return None  # it could not be noted, and would be denied for ever
        self._authors.show_lines(theirs.persons)
        text = theirs.denial(git_call.by, deed, way, is_once)
        denial = Denial(theirs.paths[0], None, text, loss=_loss(theirs, deed, git_call.by))
        if not theirs.traces:
            denial.short = theirs.shortly(deed)
            denial.question = theirs.question(deed, git_call.by) * (not is_once)
        return Verdict(denial)

    def _told(self, git_call: GitCall, theirs: Theirs, deed: str, way: str, may: bool = False) -> Verdict:
        """Return the notice about a command that goes ahead."""
        self._authors.show_lines(theirs.persons)
        verdict = Verdict(None, theirs.line(git_call.by, deed, way, may or git_call.in_doubt))
        verdict.noted = [Notice(theirs.paths[0], _loss(theirs, deed, git_call.by), verdict.notice)]
        return verdict

    def _also(self, theirs: Theirs, way: str) -> str:
        """Return the advice behind the further owners of the first files."""
        return wording.joined(also_in(theirs.traces, self._meetings, self._patience, self._identity), way)

    def _way(self, git_call: GitCall, theirs: Theirs, stakes: list[Stake]) -> str:
        """Return the advice for the model: the same command for the session's own work alone."""
        if git_call.aside:
            return self._also(theirs, way_past_hooks(git_call.aside))
        if git_call.hook:
            return self._also(theirs, way_past_hook(git_call.hook, git_call.hook in UNCHECKED))
        own, mixed = [], []
        if tree_of(git_call) == work_tree(self._call.folder):  # elsewhere the files' relative names would be wrong
            paths = set(theirs.paths)
            mixed = [one.path for one in stakes if one.path in paths and self._authors.has_written(one.path)]
            own = [one for one in stakes if one.author is not None and one.path not in paths]
            own = [one for one in own if one.author is not None and one.author.who in (OWN, BUILT)]
        shared: list[str] = []
        is_unsure = False
        if wording.can_be_undone(self._words):
            self._patience.prepare([*mixed[:MOST], *(trace.path for trace in theirs.traces[:3])])
            shared, is_unsure = wording.shared_with(mixed[:MOST], self._trail.own_name, self._patience)
        changed = [one.path for one in own if not one.is_new]
        new = [one.path for one in own if one.is_new]
        folder = ""
        if git_call.folder == self._call.folder:
            folder = git_call.folder
        return self._also(theirs, wording.way(self._words, changed, new, folder, shared, is_unsure))


def _loss(theirs: Theirs, deed: str, by: str) -> Loss:
    """Return the Loss for the record of a verdict."""
    if not theirs.traces:
        return without_owner("person", deed, by, theirs.paths[1:])
    first = theirs.traces[0]
    return Loss("sweep", first.held, deed, by, first.at_ns / 1e9, theirs.paths[1:])


def _is_named(git_call: GitCall, words: list[str], stake: Stake) -> bool:
    """Return True if ``git add`` names this very file: the session has chosen it."""
    named = [word for word in words[1:] if word[:1] != "-"]
    return any(os.path.realpath(os.path.join(git_call.folder, word)) == stake.path for word in named)


def _may_lose_ignored(words: list[str]) -> bool:
    """Return True if ``git <words>`` may lose files that git ignores."""
    options = _OF_IGNORED.get(words[0])
    return options is not None and (not options or options_of(words).has(*options))


# ------------------------------------------------------------------------------------------------ hooks of git commands
#
# They are read as scripts: the shell reader follows the hook, scripts of ``package.json`` and recipes of a makefile. No
# hook is run.


def _hook_commands(call: GitCall, words: list[str], repository: Repository) -> tuple[list[GitCall], list[GitCall]]:
    """Return the git commands in the hooks of ``git <words>``: those that run before its own work, and after it.

    One that puts changes aside around a commit or push sets ``call.aside``. Raises NoAnswer.
    """
    found: tuple[list[GitCall], list[GitCall]] = [], []
    names = _HOOKS.get(words[0])
    folder = hooks_folder(repository) if names else ""
    options, settings = options_of(words), {**os.environ, **call.environment}
    is_unchecked = options.has("--no-verify") or (words[0] == "commit" and options.has("-n"))
    if not folder or names is None or any(settings.get(name) == value for name, value in SWITCHES.items()):
        return found
    for place, some in enumerate(names):
        for hook in some:
            path = os.path.join(folder, hook)
            if (is_unchecked and hook in UNCHECKED) or not os.access(path, os.X_OK):
                continue
            for one in _effects(repository.top, settings, hook, path).git:
                if hook in UNCHECKED and (one.aside or one.words[0] == "stash"):
                    name = _aside(one)
                    if name == FAILS_OVER_ALL or not (words[0] == "commit" and options.has("-a", "--all")):
                        call.aside = call.aside or name
                    continue
                one.hook, one.by = hook, f"{one.by}, in the hook {hook} of {call.by}"
                one.in_doubt = one.in_doubt or call.in_doubt
                found[place].append(one)
    return found


def _aside(call: GitCall) -> str:
    """Return the name of the tool that puts changes aside by this command of a hook; empty if it does not."""
    verb = (call.words[1:2] or ["push"])[0]
    leaves_them = any(option in call.by for option in ("--no-stash", *WHOLE))
    if (call.aside and leaves_them) or not (verb in ("push", "save") or verb[:1] == "-"):
        return ""
    return call.aside or "git stash"


def _effects(top: str, settings: dict[str, str], hook: str, path: str) -> Effects:
    """Return the Effects of the hook at `path`, by the shell reader. A framework's script is not read."""
    found = Effects()
    text = Hooks(top, settings, hook).script(path)
    if text and not any(mark in text for mark in BY_FRAMEWORK):
        walk = Walk(found, top, settings)
        walk.project_script = _project_script
        walk.script(text)
    return found


def _project_script(call: Call) -> str:
    """Return the shell text that a runner's task stands for: ``npm run NAME``, ``make TARGET``; empty if unknown."""
    operands = [word for word in call.words if word[:1] != "-" and is_known(word)]
    folder = call.folder or "/"
    if call.name in RUNNERS:
        if operands[:1] in (["run"], ["run-script"]):
            operands = operands[1:]
        name = {"t": "test", "tst": "test"}.get((operands or [""])[0], (operands or [""])[0])
        try:
            scripts: Any = loads(small_text(os.path.join(folder, "package.json")))
            scripts = scripts["scripts"]
            return "\n".join(scripts[one] for one in (f"pre{name}", name, f"post{name}") if one in scripts)
        except (ValueError, KeyError, TypeError, RecursionError):  # no manifest, or no scripts in it
            return ""
    if call.name in ("make", "gmake"):
        targets = [word for word in operands if "=" not in word]
        text = "\n".join(small_text(os.path.join(folder, name)) for name in _MAKEFILES)
        return "\n".join(_recipe(text, target, 0) for target in targets or [""])
    return ""


def _recipe(makefile: str, target: str, depth: int) -> str:
    """Return the commands of a target, those of its prerequisites first; without a name, of the first one."""
    lines = makefile.replace("\\\n", " ").split("\n")
    for at, line in enumerate(lines):
        names, colon, needed = line.partition(":")
        is_rule = colon and line[:1] not in ("\t", ".", "#", " ") and not needed.startswith("=")
        if not is_rule or (target and target not in names.split()) or depth > DEEPEST:
            continue
        found = [_recipe(makefile, one, depth + 1) for one in needed.split()]
        for command in lines[at + 1 :]:
            if command[:1] != "\t":
                break
            found.append(command.strip().lstrip("@-+").replace("$(MAKE)", "make").replace("$$", "$"))
        return "\n".join(found)
    return ""
