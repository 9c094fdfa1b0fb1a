"""The decision about a call that would lose uncommitted work of others, by the level in force.

From `keep` on the call is denied, or the person is asked if it is theirs and the client can ask. Below, it goes ahead:
at `notice` its model is told. Contents that may go, and that are neither in git nor certainly the session's own, are
kept first.
"""

from __future__ import annotations

import os

from swarm_hook_core import REMOVE
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import LockReader, Session
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.stakes.owners import BUILT, PERSON, Authors, Changed, Files, Stake
from swarm_hook_core.traces import NOTICE, OFF, keeping
from swarm_hook_core.traces.meetings import Meetings, has_read
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.untrusted_text import token

MOST_FILES = 500  # files of one call with an author looked up, and with contents kept
MOST_BYTES = 32 * 1024 * 1024  # contents of one call: older ones are not all pushed out by it


class Judgement:
    """The decision about one call.

    `effects`: effects of a shell or MCP call; None: the call names its files, and only persons' work is looked at.
    """

    def __init__(self, session: Session, trail: Trail, effects: Effects | None, reader: LockReader, now: float):
        self.trail = trail
        self.effects = effects
        self.now = now
        self.identity = token(session.label, "identity")
        self.meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
        self.authors, self.changed = Authors(self.meetings), Changed()
        self.is_noted = trail.level != OFF  # else the session's own calls are not known, nor kept as versions
        self.at_stake: list[Stake] = []

    def verdict(self) -> Verdict:
        """Return the Verdict, empty if no work of others is at stake, and keep the contents that may go."""
        # Few of these files have changes: a file without any is not worth a wait.
        files = Files(
            self.trail, self.effects, self.changed,
            is_own=lambda one: self.is_noted and self.authors.is_own(one.path),
            was_read=lambda one: self._was_read(one, False),
        )  # fmt: skip
        verdict = self._of_files(list(files.found.values())[:MOST_FILES])
        if verdict.denial is None and self.effects is not None and self.effects.git:
            for found in (self._of_stash(), self._of_git()):
                if found is not None and verdict.denial is None:
                    verdict.add(found)
        may_pass = verdict.denial is None or (verdict.denial.question and self.trail.can_ask)
        if may_pass and not self.trail.is_asked:
            kept = [one for one in self.at_stake if one.author is not None and one.author.who in (PERSON, BUILT)]
            # Keep the contents of these files for `swarm-mcp restore`, up to the limits
            trail = self.trail
            stakes = [*kept, *files.free]
            left = MOST_BYTES
            for path in list(dict.fromkeys(stake.path for stake in stakes))[:MOST_FILES]:
                try:
                    size = os.lstat(path).st_size
                except (OSError, ValueError):
                    continue  # gone
                if size <= left and keeping.lost(trail, path):
                    left -= size
        return verdict

    def _was_read(self, stake: Stake, waits: bool = True) -> bool:
        """Return True if the call replaces a whole file that its session has read as it is now."""
        is_replaced = self.is_noted and stake.is_replaced
        return is_replaced and has_read(self.meetings, stake.spelled, stake.path, waits)

    def _is_kept(self, stake: Stake) -> bool:
        """Return True if the call's new content of the file keeps all uncommitted lines."""
        if not stake.is_replaced:
            return False
        from swarm_hook_core.traces import whole_writes

        return whole_writes.keeps(self.meetings, self.effects, stake.spelled, stake.path)

    def _is_merged(self, stake: Stake) -> bool:
        """Return True if the call's new content of the file is merged with the uncommitted lines."""
        if not stake.is_replaced:
            return False
        from swarm_hook_core.traces import whole_writes

        return whole_writes.is_merged(self.meetings, self.effects, stake.spelled, stake.path)

    def _of_files(self, stakes: list[Stake]) -> Verdict:
        """Return the Verdict about a person's work in files that the call names, or in folders that it removes."""
        if not stakes:
            return Verdict()
        trail = self.trail
        self.authors.find_sessions(stakes)
        self.authors.find(stakes)
        self.at_stake = [one for one in stakes if not self._is_kept(one)]
        persons = [one for one in self.at_stake if one.is_persons]
        if trail.level not in (OFF, NOTICE):
            persons = [one for one in persons if one.is_certain and not self._was_read(one)]
            persons = [one for one in persons if not self._is_merged(one)]
        if not persons or trail.level == OFF:
            return Verdict()
        from swarm_hook_core.denial import Denial, Notice, without_owner
        from swarm_hook_core.stakes.wording import Theirs, also_in, changed, joined
        from swarm_hook_core.traces import whole_writes
        from swarm_hook_core.traces.file_changes import Patience

        self.authors.show_lines(persons)
        theirs, first = Theirs(trail.call, [], persons, self.identity, self.now), persons[0]
        deed = "overwrite"
        if first.how == REMOVE:
            deed = "remove"
        loss = without_owner("person", deed, first.by, theirs.paths[1:])
        if trail.level == NOTICE:
            verdict = Verdict(None, theirs.line("", deed, ""))
            verdict.noted = [Notice(first.path, loss, verdict.notice)]
            return verdict
        traces, also = [one.trace for one in persons if one.trace is not None], ""
        if traces:
            more = also_in(traces, self.meetings, Patience(trail.changes), self.identity)
            theirs_too = changed(traces, self.identity, self.now)
            also = joined(f"Others' uncommitted changes would go, too: {theirs_too}.", more)
        text = theirs.denial(first.by, deed, also) + whole_writes.way(trail.unmerged)
        denial = Denial(first.path, None, text, loss=loss)
        denial.short, denial.question = theirs.shortly(deed), theirs.question(deed, first.by)
        return Verdict(denial)

    def _of_git(self) -> Verdict:
        """Return the Verdict on the git commands."""
        from swarm_hook_core.stakes.sweeps import Sweeps

        assert self.effects is not None
        sweeps = Sweeps(self.meetings, self.authors, self.effects, self.changed, self.identity, self.now)
        self.trail.sweeps = sweeps
        verdict = sweeps.verdict()
        self.at_stake += sweeps.at_stake
        return verdict

    def _of_stash(self) -> Verdict | None:
        """Return the Verdict on the call's stash commands, or None."""
        from swarm_hook_core.shell.programs.git.table import is_subcommand

        assert self.effects is not None
        if not any(one.words[0] == "stash" or not is_subcommand(one.words[0]) for one in self.effects.git):
            return None
        from swarm_hook_core.stakes import stash

        return stash.judge(self.meetings, self.authors, self.effects, self.identity, self.now)
