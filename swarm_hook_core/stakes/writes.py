"""The decision about the writes of a call beside other sessions, by the level in force.

Asked about each call that neither a lock nor work at stake (``verdict``) denies, if another session has a journal in
the same place.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import REMOVE, REPLACE, state
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import Held, LockReader, Session
from swarm_hook_core.traces import NOTICE, elsewhere, endings, journal, keeping, seen
from swarm_hook_core.traces.meetings import Meetings, note_looks
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.untrusted_text import token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial, Notice
    from swarm_hook_core.shell.model import Effects
    from swarm_hook_core.stakes.wording import Changes

Met = tuple[Trace, str, str]  # a trace, the deed of this call to its file, and the part of a command that does it

_DEEDS = {REPLACE: "overwrite", REMOVE: "remove"}
MOST_ELSEWHERE = 50  # files of one call that are looked up among writes on other machines
AGAIN_SECONDS = 600  # after this time a session is told again of the same session's writes on another machine


class Judgement:
    """The decision about one call that no lock denies; its traces go to its `trail`.

    `effects`: effects of a shell or MCP call, or None; `neighbours`: the sessions that share a HEAD with this one
    (``head``), if the call concerns it.
    """

    def __init__(
        self, session: Session, trail: Trail, effects: Effects | None, reader: LockReader, now: float,
        neighbours: dict[str, list[Held]] | None = None,
    ):  # fmt: skip
        self.session = session
        self.trail = trail
        self.config = trail.config
        self.call = trail.call
        self.targets = trail.targets_of(effects)
        self.effects = effects
        self.now = now
        self.reader = reader
        self.neighbours = neighbours or {}
        self.meetings = Meetings(trail, reader, now, effects.budget if effects is not None else None)
        self.cleared = elsewhere.places_of(effects)  # folders that the call clears; mostly empty
        self.denies = trail.level != NOTICE
        self.waits = self.denies and not trail.is_asked
        self.own_at_ns = 0  # time of the call's own entries
        self.shown: list[str] = []  # files with all their changes in the denial

    @property
    def identity(self) -> str:
        """The identity of the call's session, for the words about others."""
        return token(self.session.label, "identity")

    def verdict(self) -> Verdict:
        """Return the Verdict on the call."""
        found = Verdict(*self._outcome())
        found.owners, found.noted = self.trail.owners, self.trail.noted
        return found

    def _outcome(self) -> tuple[Denial | None, str]:
        """Look at the others' traces in turn, and note the outcome. The order matters:

        - The call's own writes are noted first: of two calls at the same moment, at least one sees the other's.
        - Calls and commits that run just now are waited for before files are compared: they may change these.
        - A denial takes the notes back, and ends the look: others must not wait for a call that is never made.
        - What a call overwrites knowingly is kept, and its writes are noted, once nothing denies it any more.
        """
        self.meetings.note_own_files(self.call.folder)
        self._note_first()
        if self.effects is None or not (self.effects.trees or self.effects.git or self.effects.reads):
            self.meetings.look_only_for(self.targets)
            if self._is_unmet():
                self._note_passed([])
                return None, ""
        clearings = [
            clearing
            for _path, resolved, how, _by in self.targets
            if how != REMOVE and (clearing := self.meetings.clearing(resolved, self.own_at_ns, self.waits))
        ]
        # Another session's commit that puts changes aside around one of the files, or None
        commits = (self.meetings.commit_with_hooks(target[1], self.waits) for target in self.targets)
        commit = next(filter(None, commits), None)
        if commit is not None and self.denies:
            self._take_back()
            return self._denial_during(*commit), ""
        lost, met = self._met_changes()
        swept = elsewhere.endangered(self.effects, self.meetings)
        if self.denies:
            lost += swept
        unnoted = ""
        if lost:
            denial = self._denial(lost)
            unnoted = self._note_denial(lost)
            if not unnoted:
                from swarm_hook_core.denial import MANY, PERSON

                # Have the file's owner, and later a person, told of a session that is denied again and again
                if denial.times in (MANY, PERSON) and not lost[0][0].held.kin:
                    self.trail.owners.append((*lost[0], "", denial.times))
                return denial, ""
            met += [one for one in lost if one not in swept]
        git_denial, git_words = self._git_commands()
        if git_denial is not None:
            self._take_back()
            return git_denial, ""
        self._note_overwritten()
        written = self._note_passed(met)
        far = self._written_elsewhere(written)
        words = [
            *self._met_words([*met, *swept], commit),
            unnoted,
            self._cleared_words(clearings),
            far,
            git_words,
        ]
        self.trail.noted += self._notices([*met, *swept], commit, clearings, words)
        return None, "\n".join(filter(None, words))

    # ------------------------------------------------------------------------------------------- what it meets

    def _is_unmet(self) -> bool:
        """Return True if no other session has a word of the call's files, as mostly, and none has moved HEAD."""
        if self.neighbours or self._moved_head():
            return False
        places = {self.trail.place_of(os.path.dirname(target[1])) for target in self.targets}
        return not any(map(self.meetings.journals.of_others, places))

    def _loses(self, how: str) -> bool:
        """Return True if a change of this kind destroys an unseen change, and the level denies that."""
        return self.denies and how in (REPLACE, REMOVE)

    def _met_changes(self) -> tuple[list[Met], list[Met]]:
        """Return others' unseen changes: those that the call would destroy, and those that it only meets."""
        lost: list[Met] = []
        met: list[Met] = []
        for path, resolved, how, by in self.targets:
            is_folder = os.path.isdir(resolved) and not os.path.islink(resolved)  # to make or remove it loses nothing
            is_lost = self._loses(how) and not is_folder
            trace = self.meetings.unseen(path, resolved, not is_lost)
            if trace is not None and trace.is_pending and self.waits:
                from swarm_hook_core.traces import whole_writes

                # A stale text that may be merged waits for the other write, as an edit does.
                if not is_lost or (how == REPLACE and whole_writes.can_merge(self.config, self.call)):
                    trace = self.meetings.wait_for_write(path, resolved, self.own_at_ns, once=not is_lost)
            if trace is None:
                continue
            if is_lost and not trace.is_pending and self._passes(path, resolved, how, trace):
                continue
            (lost if is_lost else met).append((trace, how, by))
        for tree in self.effects.trees if self.effects is not None else ():
            for trace in self.meetings.unseen_below(tree.root, tree.admits):
                (lost if self._loses(tree.how) else met).append((trace, tree.how, tree.by))
            if self.effects is not None and (tree.is_told or self.effects.late):
                in_doubt = self.meetings.unseen_below(tree.root, lambda path: tree.admits(path) is None)  # noqa: B023
                met += [(trace, tree.how, tree.by) for trace in in_doubt]
        return lost, met

    def _keeps(self, path: str, resolved: str, how: str) -> bool:
        """Return True if the new content of the file is known and keeps the other session's changes."""
        if how != REPLACE:
            return False
        from swarm_hook_core.traces import whole_writes

        return whole_writes.keeps(self.meetings, self.effects, path, resolved)

    def _passes(self, path: str, resolved: str, how: str, trace: Trace) -> bool:
        """Return True if the call's new content keeps the other session's changes, or is merged with them."""
        if how != REPLACE:
            return False
        from swarm_hook_core.traces import whole_writes

        return self._keeps(path, resolved, how) or whole_writes.is_merged(
            self.meetings, self.effects, path, resolved, trace
        )

    def _git_commands(self) -> tuple[Denial | None, str]:
        """Return ``(Denial or None, words)`` about changes that git commands of the call sweep up, and about HEAD."""
        denial = self._swept_since()
        if denial is not None:
            return denial, ""
        # ``(Denial or None, words)`` about a HEAD that the call moves, or that others have moved
        if self.effects is not None and self.neighbours:
            from swarm_hook_core.denial import Notice, without_owner
            from swarm_hook_core.traces.head.shared import Shared

            shared = Shared(self.session, self.trail, self.effects, self.neighbours, self.reader, self.now)
            denial, words = shared.verdict()
            if words:
                by = self.effects.git[0].by if self.effects.git else ""
                self.trail.noted.append(Notice(self.call.folder, without_owner("head", "change", by), words))
            return denial, words
        top = self._moved_head()
        if not top:
            return None, ""
        from swarm_hook_core.traces.head import news

        return None, news.beside(
            self.config.runtime_name, self.call.session_id, self.session, top, self.reader, self.now
        )

    def _moved_head(self) -> str:
        """Return the top of the call's work tree, if its HEAD was moved and the session was not told of it; or ""."""
        if self.trail.is_asked or not self.trail.is_head_moved():
            return ""
        from swarm_hook_core.traces import head

        top = head.top_of(self.call.folder)
        if top is None or not head.is_news(self.config.runtime_name, self.call.session_id, top):
            return ""
        return top

    def _swept_since(self) -> Denial | None:
        """Return the Denial of the git commands, if another session has noted something since they were judged."""
        sweeps = self.trail.sweeps
        if sweeps is not None and not sweeps.is_current():
            denial = sweeps.again(self.meetings).denial
            if denial is not None:
                return denial
            sweeps = self.trail.sweeps
        if sweeps is not None:
            sweeps.note()
        return None

    # ------------------------------------------------------------------------------------------- entries

    def _note_first(self) -> None:
        """Note the intended writes, and the folders to be cleared, before looking at others' traces."""
        self.own_at_ns = time.time_ns()
        for path in dict.fromkeys(target[1] for target in self.targets):
            self.trail.note("will", path, at_ns=self.own_at_ns)
        elsewhere.note(self.trail, "clears", self.cleared, self.own_at_ns)
        self.trail.leave_or_record()

    def _take_back(self) -> None:
        """Note that a denied call will not make its writes, nor clear folders."""
        for path in dict.fromkeys(target[1] for target in self.targets):
            self.trail.note("wont", path)
        elsewhere.note(self.trail, "spares", self.cleared)

    def _note_denial(self, lost: list[Met]) -> str:
        """Note that the call is denied for the Traces in `lost`. Return a notice if that cannot be noted, else "".

        Without notes a look at the file could not be noted either, and the call would be denied for ever: so it goes
        ahead. Raises NotChecked if the user's settings deny what cannot be checked.
        """
        for trace, _how, _by in lost:
            self.trail.note("met", trace.path, self.call.id or seen.NO_ID)
            if trace.path in self.shown:
                self.trail.note("told", trace.path)
            if trace.is_pending and not trace.is_checked and trace.journal and not self.trail.is_asked:
                self._await_end(trace.journal)
        self._take_back()
        try:
            self.trail.leave()
        except OSError as error:
            self.trail.record_fault(error)
            from swarm_hook_core import fail_closed
            from swarm_hook_core.stakes import wording

            fail_closed.demand(self.config, self.call, f"what others have changed: {state.describe(error)}")
            self.trail.drop()
            return wording.cannot_be_noted(error)
        return ""

    def _await_end(self, name: str) -> None:
        """Have the end of the other session's call noted, for its journal with this `name`."""
        try:
            endings.await_end(name)
        except OSError as error:  # the other session's next call notes its end anyway
            self.trail.record_fault(error)

    def _note_overwritten(self) -> None:
        """Keep copies of files with others' changes that the call destroys knowingly, and have their owners told."""
        if self.trail.is_asked:
            return

        for path, resolved, how, by in self.targets:
            if how not in (REPLACE, REMOVE):
                continue
            trace = self.meetings.newest_write(path, resolved)
            if trace is None:
                continue
            kept = keeping.lost(self.trail, resolved)
            if trace.held.kin or not self.meetings.is_theirs(trace):
                continue
            if resolved not in self.trail.merges and not self._keeps(path, resolved, how):
                self.trail.owners.append((trace, how, by, kept, 0))

    def _note_passed(self, met: list[Met]) -> list[str]:
        """Note the writes, notices and looks of a call that goes ahead; return the files that it certainly writes."""
        for trace, _how, _by in met:
            self.trail.note("met", trace.path, self.call.id or seen.NO_ID)
        written = list(dict.fromkeys(target[1] for target in self.targets))
        self.trail.wrote(dict.fromkeys([*written, *(trace.path for trace, _how, _by in met)]), is_beside_others=True)
        self.trail.note_unnamed(self.effects)
        if self.effects is not None and self.effects.reads:
            note_looks(self.trail, self.meetings, self.effects.reads, set(written))
        return written

    # ------------------------------------------------------------------------------------------- words

    def _denial(self, lost: list[Met]) -> Denial:
        """Return the Denial of a call that would destroy others' changes."""
        from swarm_hook_core.denial import MANY, Denial, Loss
        from swarm_hook_core.stakes import wording
        from swarm_hook_core.traces import whole_writes
        from swarm_hook_core.traces.file_changes import Patience

        trace, how, by = lost[0]
        traces = [one for one, _how, _by in lost]
        by_path = {one.path: one for one in (*traces, trace)}
        theirs = wording.Theirs(self.call, list(by_path.values()), [], self.identity, self.now)
        times = self.meetings.times_denied(trace.path, self.call.id) + 1
        changes = self._changes(traces)
        also = wording.also_in(traces, self.meetings, Patience(self.trail.changes), self.identity)
        words = theirs.denial_of_write(how, by, times, changes, also)
        if times < MANY:
            words += whole_writes.way(self.trail.unmerged)
        why = "moment" if trace.is_pending else "uncommitted"
        deed = _DEEDS.get(how, "overwrite")
        loss = Loss(why, trace.held, deed, by, trace.at_ns / 1e9, theirs.paths[1:])
        denial = Denial(trace.path, None, words, loss=loss)
        denial.times, denial.short = times, theirs.write_denied_shortly(how)
        room = self.config.dialect.reason_length
        if not 0 < room < len(words):  # else the client cuts the words
            self.shown = [path for path, _lines, is_whole, _is_seen in changes if is_whole]
        return denial

    def _changes(self, lost: list[Trace]) -> list[Changes]:
        """Return the changes that the call would destroy, for its denial: as many as there is room for."""
        from swarm_hook_core.stakes import wording
        from swarm_hook_core.traces import changed_lines, whole_writes

        found: list[Changes] = []
        room = changed_lines.MOST_LINES
        for trace in lost[: wording.NAMED]:
            present = whole_writes.present(trace.path)
            if trace.is_pending or present is None:
                continue
            known = whole_writes.known(self.meetings, trace.path)
            lines, is_whole = changed_lines.shown(known.text, present, room)
            room -= len(lines)
            found.append((trace.path, lines, is_whole, known.is_seen))
        return found

    def _denial_during(self, trace: Trace, name: str) -> Denial:
        """Return the Denial of a write during another session's commit with a hook `name` that puts changes aside."""
        from swarm_hook_core.denial import Denial, Loss
        from swarm_hook_core.stakes import wording

        words = wording.during_hooks(trace, name, self.identity)
        again = " Wait until that is over, mostly a few seconds, and try again; until then, files may have older text."
        loss = Loss("moment", trace.held, "overwrite", at=trace.at_ns / 1e9)
        return Denial(trace.path, None, f"swarm: {self.call.client_tool} was not run: {words}{again}", loss=loss)

    def _met_words(self, met: list[Met], commit: tuple[Trace, str] | None) -> list[str]:
        """Return the notices about changes that the call meets but does not destroy, and about a running commit."""
        if not met and commit is None:
            return []
        from swarm_hook_core.stakes import wording

        words = [wording.were_changed([trace for trace, _how, _by in met], self.identity, self.now)]
        if commit is not None:
            words.append("swarm: " + wording.during_hooks(*commit, self.identity))
        return words

    def _cleared_words(self, clearings: list[tuple[Trace, str, str]]) -> str:
        """Return the notice about files that the call writes while another call clears their folder; may be empty."""
        if not clearings:
            return ""
        from swarm_hook_core.stakes import wording

        return wording.are_cleared(clearings, self.identity)

    def _notices(
        self, met: list[Met], commit: tuple[Trace, str] | None, clearings: list[tuple[Trace, str, str]],
        words: list[str],
    ) -> list[Notice]:  # fmt: skip
        """Return the Notices to record: one for the changes that the call meets, one for a write in progress."""
        if not (met or commit or clearings):
            return []
        from swarm_hook_core.denial import Loss, Notice

        found, said = [], next(filter(None, words), "")
        if met:
            trace, how, by = met[0]
            deed, also = _DEEDS.get(how, "edit"), {one.path for one, _how, _by in met} - {trace.path}
            loss = Loss("uncommitted", trace.held, deed, by, trace.at_ns / 1e9, sorted(also))
            found.append(Notice(trace.path, loss, said))
        at_work = [one[0] for one in clearings[:1]]
        if commit:
            at_work.append(commit[0])
        for trace in at_work:
            found.append(Notice(trace.path, Loss("moment", trace.held, "edit", at=trace.at_ns / 1e9), said))
        return found

    def _written_elsewhere(self, written: list[str]) -> str:
        """Return the notice about unpushed writes of the same files on other machines; its session is told once."""
        far = [trace for resolved in written[:MOST_ELSEWHERE] for trace in self.meetings.on_other_machines(resolved)]
        if not far:
            return ""
        from swarm_hook_core.denial import Loss, Notice
        from swarm_hook_core.stakes import wording

        untold = [trace for trace in far if self._is_unheard(trace)]
        for trace in untold:
            self.trail.note("heard", trace.path, trace.held.instance_id)
        words = ""
        if untold:
            words = wording.were_written_elsewhere(untold, self.identity, self.now)
            loss = Loss("elsewhere", far[0].held, "edit", at=far[0].at_ns / 1e9)
            self.trail.noted.append(Notice(far[0].path, loss, words))
        return words

    def _is_unheard(self, trace: Trace) -> bool:
        """Return True if this session was not told lately of the same other session's writes to the file."""
        own = self.meetings.journals.own(os.path.dirname(trace.path))
        heard = journal.newest_first(own, trace.path, ("heard",))
        last = next((entry for entry in heard if entry.text == trace.held.instance_id), None)
        return last is None or (trace.at_ns > last.at_ns and self.now - last.at_ns / 1e9 > AGAIN_SECONDS)
