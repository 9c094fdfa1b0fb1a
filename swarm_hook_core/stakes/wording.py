"""The words about uncommitted work of others: denials and notices for the model, questions for the person; advice.

The work of sessions and of persons is named in one sentence; the next ones say how to go on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from swarm_hook_core import REMOVE
from swarm_hook_core.denial import MANY, PERSON
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Held
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.stakes.owners import Author, Stake
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.file_changes import Patience, is_by
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.untrusted_text import as_word, command, cut, named, same_circle, token
from swarm_hook_core.wording import and_more, changed_by, holder, purpose

# path, quoted lines of its diff, True if they are all, True if it is the diff to what the session has seen
Changes = tuple[str, list[str], bool, bool]

LATE = (
    "Git was too slow to say if these files are still changed, so their sessions' own notes decide. Name your own"
    " files, if there are any."
)
OWN_COMMIT = (
    "`swarm-mcp commit -m TEXT [FILE...]`, or the tool commit, commits your own lines alone, in shared files too."
)
AGAIN = "If theirs are meant to go along, the same command again goes ahead."
PERSON_ALONE = "Past this only a person can go, by running it in a terminal of their own."
WAY_PAST = "`swarm-mcp protect off --for 5m`"
NAMED_SESSIONS = 3  # files of one session, and sessions, that are named
NAMED = 5  # files with a person's work in one message
NAMED_WITH_OWNERS = 3  # files of a message with all their owners
RUNS = 3  # runs of lines of one file
MOST_NAMED = 8  # files that a command names
# Forms that name the session's own files. verb -> (for tracked files, if some file is untracked); None: the verb does
# not touch such files.
_FORMS = {
    "add": ("git add {files}", "git add {files}"),
    "stage": ("git add {files}", "git add {files}"),
    "commit": ("git commit {files}", None),
    "stash": ("git stash push -- {files}", "git stash push -u -- {files}"),
    "checkout": ("git checkout -- {files}", None),
    "restore": ("git restore {files}", None),
    "reset": ("git restore --staged --worktree {files}", None),
    "checkout-index": ("git checkout -- {files}", None),
    "read-tree": ("git restore --staged --worktree {files}", None),
    "clean": (None, "git clean -f {files}"),
    "rm": ("git rm -f {files}", None),
}
# Verbs with an effect on the session's own changes that `swarm-mcp undo` has as well, in files shared with others too.
_UNDONE = {
    **dict.fromkeys(
        ("checkout", "restore", "reset", "checkout-index", "read-tree"),
        "Your own changes alone, in shared files too: `swarm-mcp undo {options}{files}`, or the tool undo.",
    ),
    "stash": "To put your own changes alone aside, in shared files too: `swarm-mcp undo {options}{files}`, or the tool"
    " undo; its answer says how to bring them back.",
}
_UNSURE = "Lines that may be another's stay."


class Theirs:
    """The work of others in some files, in words.

    traces   changes of other sessions
    persons  Stakes with a person's work
    identity the identity of the session that reads the words
    stakes   the changed files that were looked at
    count    of all changed files, if not all were looked at; else 0
    """

    def __init__(self, call: ToolCall, traces: list[Trace], persons: list[Stake], identity: str, now: float):
        self.call = call
        self.traces = traces
        self.persons = persons
        self._identity = identity
        self._now = now
        self.stakes: list[Stake] = []
        self.count = 0

    @property
    def paths(self) -> list[str]:
        """The files, without repeats."""
        return list(dict.fromkeys([*(one.path for one in self.traces), *(one.path for one in self.persons)]))

    def said(self) -> str:
        """Return the owners of the work, and its place."""
        of_persons = ""
        if self.persons:
            of_persons = f"a person's work that is not committed: {self.listed()}"
        if not self.traces:
            return of_persons
        of_sessions = f"others' uncommitted changes: {changed(self.traces, self._identity, self._now)}"
        parts = [of_sessions, of_persons]
        if self.count:
            parts.append(f"more, perhaps, of {self.count} changed files")
        return "; and ".join(filter(None, parts))

    def denial(self, by: str, deed: str, way: str, is_once: bool = False) -> str:
        """Return the denial of a call: the work that it affects, how to do without, and the way past it.

        `deed`: the call's effect, a verb; `way`: a sentence with a narrower command, or "". `is_once`: the same
        command again goes ahead.
        """
        fact = f"swarm: {self.call.client_tool}{_in_brackets(by)} would {deed} {self.said()}."
        nobody = bool(self.persons) and "No session at work has written it."
        if self.traces and self.persons:
            nobody = "No session at work has written the latter."
        if is_once:
            return joined(fact, nobody, way, OWN_COMMIT, AGAIN)
        if deed in ("stage", "commit"):
            way = joined(way, OWN_COMMIT)
        if not self.traces:
            return joined(fact, nobody, way, *self._leave_to_person())
        ask = asked_of(self.traces[0].held, self._identity)
        return joined(
            fact,
            nobody,
            way,
            f"Leave theirs as it is: go on without this command, or {ask} and try again once they have committed."
            f" {PERSON_ALONE}",
        )

    def _leave_to_person(self) -> list[str]:
        """Return the sentences that say how to go on beside a person's work."""
        it, as_it_is, stake, read = "it", "as it is", self.persons[0], ""
        if len(self.persons) > 1:
            it, as_it_is = "them", "as they are"
        if stake.is_replaced:
            look = self._look(one.spelled for one in self.persons[:NAMED])
            read = f"Read {it} first ({look}) and keep the lines that are there: that passes."
        return [
            read,
            f"Leave {it} {as_it_is}, or ask the person to commit {it}, or to do this in a terminal of their own, where"
            f" {WAY_PAST} lets you do it.",
        ]

    def shortly(self, deed: str) -> str:
        """Return the denial for a client with room for few words."""
        return (
            f"swarm: would {deed} a person's uncommitted work: {self.listed(1)}."
            f" Leave it, or ask the person to commit it, or to type {WAY_PAST}."
        )

    def question(self, deed: str, by: str) -> str:
        """Return the question to the person at the client about work of their own."""
        if deed == "throw away":
            deed = "discard"
        stake, author = self.persons[0], self.persons[0].author
        asked = f"swarm: {deed} your uncommitted work: {self.listed()}?"
        if len(self.persons) == 1 and author is not None:
            asked = f"swarm: {deed} {_in_question(stake, author)} {named(self._short(stake.path))} that you wrote?"
        return f"{asked}{_in_brackets(by)} A copy is kept for `swarm-mcp restore`."

    def line(self, by: str, deed: str, way: str, may: bool = False) -> str:
        """Return the notice about a call that goes ahead. `may`: the effect is not certain."""
        verb, _, rest = deed.partition(" ")
        does = f"{verb}{'es' if verb.endswith('h') else 's'} {rest}".rstrip()
        if may or not self.traces:
            does = f"may {deed}"
        kept = ""
        if self.persons and deed not in ("stage", "commit"):
            kept = "`swarm-mcp restore --list` shows the copies that were kept."
        who = "this call"
        if by:
            who = command(by)
        return joined(f"swarm: {who} {does} {self.said()}.", way, kept)

    def listed(self, most: int = NAMED) -> str:
        """Return ``a.txt: 4 lines (12 to 15); b.txt: a new file, 10 lines; and 3 more`` of a person's files."""
        some = [f"{named(self._short(one.path))}: {_in_list(one, one.author)}" for one in self.persons[:most]]
        if most > 1 and len(self.persons) > most:
            some.append(f"and {len(self.persons) - most} more")
        return "; ".join(some)

    # ------------------------------------------------------------------------------------------- files that are written

    def denial_of_write(self, how: str, by: str, times: int, changes: Sequence[Changes], also: str) -> str:
        """Return the denial of a call that would replace or remove files with changes that its session has not seen.

        times    number of recent denials of the session for the first file
        changes  the lost changes that are shown
        also     a sentence about further owners, or ""
        """
        first, others, paths = self.traces[0], self.traces[1:], self.paths[:NAMED]
        if times >= MANY:
            return self._denied_again(how, paths, times)
        fact = f"swarm: {self.call.client_tool}{_in_brackets(by)} would {_verb(how)} {named(first.path)}"
        if first.is_pending:
            return (
                f"{fact} at the very moment when {_writing(first, self._identity)}: one of the two changes would be"
                f" lost. {self._way(how, paths)}"
            )
        names = [f"{named(one.path)} (by {self._changed_by(one)})" for one in others[: NAMED - 1]]
        same = f" The same goes for {', '.join(names)}{and_more(len(others) - len(names))}." if names else ""
        return (
            f"{fact}, changed by {self._changed_by(first)}, after you last saw it, and not committed: their work would"
            f" be lost.{same}{also and f' {also}'}{_shown(changes)}{self._way(how, paths, changes)}"
        )

    def _changed_by(self, trace: Trace) -> str:
        return changed_by(trace.held, self._identity, self._now)

    def _denied_again(self, how: str, paths: list[str], times: int) -> str:
        """Return the denial of a call after many like it; in the end it asks the session to stop."""
        trace = self.traces[0]
        who = holder(trace.held, self._identity)[0]
        why, first = f"it has a change by {who} that you have not seen", ""
        if trace.is_pending:
            why, first = f"{who} is writing it", "wait until that is made, then "
        tool, look = self.call.client_tool, f"run {self._look(paths)}"
        fact = f"swarm: {tool} would {_verb(how)} {named(trace.path)}: denied {times} times, as {why}."
        fact += " Trying again changes nothing."
        if how == REMOVE and times < PERSON:
            return f"{fact[:-1]}: leave it to them, or {first or 'first '}{look}."
        if times >= PERSON:
            return f"{fact} Stop: {look}, or do the rest without this file and report that."
        return f"{fact[:-1]}: {first}write a text that keeps that change, or {look} first, or edit only your lines."

    def write_denied_shortly(self, how: str) -> str:
        """Return the same for a client with room for few words: the way out comes first."""
        trace = self.traces[0]
        who, look = cut(holder(trace.held, self._identity)[0], 40), f"run {self._look([trace.path])}"
        if trace.is_pending:
            return f"swarm: {who} is writing {named(trace.path)} at this very moment. Wait, read it, then try again."
        if how == REMOVE:
            return f"swarm: would remove a change by {who} that is not committed. Leave it, or first {look}."
        return f"swarm: would {_verb(how)} a change by {who} that is not committed. First {look}, then keep it."

    def _way(self, how: str, paths: list[str], changes: Sequence[Changes] = ()) -> str:
        """Return the advice: a text that keeps the `changes` shown, or a command that counts as a look.

        A client's own reading tool mostly has no hook. No text can keep the change of a file that is removed.
        """
        is_pending, look, it = self.traces[0].is_pending, f"run {self._look(paths)}", "it"
        if len(paths) > 1:
            it = "them"
        if how == REMOVE and is_pending:
            return (
                f"Leave {it}, or wait until the write is made, and {look}: if {it} may go, the removal passes then."
                " Until then this is denied each time, for two minutes at most if the end is not reported."
            )
        if how == REMOVE:
            return (
                f"Leave {it} to their author. If {it} may go all the same, first {look} (only a shell command that"
                f" shows all of {it} counts as a look here): then the removal passes."
            )
        if is_pending:
            return (
                f"Wait until it is made, {look}, then write a text that keeps it. Until then this is denied each time,"
                " for two minutes at most if its end is not reported. Or edit only your lines."
            )
        if {path for path, _lines, is_whole, _is_seen in changes if is_whole} == set(paths):
            return (
                f"Write a text that keeps {it}: that passes. To drop {it} on purpose, first {look}. Or edit only your"
                " lines, or leave it to them."
            )
        return (
            f"First {look} (only a shell command that shows all of {it}, or all changes in {it}, counts as a look"
            " here), then write a text that keeps their change: that passes. Or edit only your lines, or leave it to"
            " them."
        )

    def _look(self, paths: Iterable[str]) -> str:
        """Return the command that shows these files; after it the session may write them."""
        return f"`cat {' '.join(as_word(self._short(path)) for path in paths)}`"

    def _short(self, path: str) -> str:
        """Return `path`, which may count from the call's folder, relative to the reader's folder if it lies there."""
        return os.path.join(self.call.folder, path).removeprefix(self.call.reader_folder.rstrip("/") + "/")


def late(call: ToolCall, by: str, deed: str) -> str:
    """Return the denial of a git command that clearly discards changes, while git does not answer."""
    return (
        f"swarm: {call.client_tool} ({command(by)}) would {deed} all uncommitted changes, and git was too slow to say"
        " if any of them are a person's. Name your own files in the command, or ask the person to run it, or to type"
        f" {WAY_PAST}."
    )


def late_question(by: str, deed: str) -> str:
    """Return the question about such a command."""
    return f"swarm: {deed} all uncommitted changes here? {command(by)} would do that; git was too slow to list them."


def changed(traces: Sequence[Trace], identity: str, now: float) -> str:
    """Return the files with their sessions: a few of each, then the number of the rest."""
    writers: dict[tuple[str, str], list[Trace]] = {}
    for trace in traces:
        writers.setdefault((trace.held.instance_id, trace.held.agent), []).append(trace)
    parts = []
    for some in list(writers.values())[:NAMED_SESSIONS]:
        files = ", ".join(named(trace.path) for trace in some[:NAMED_SESSIONS])
        newest = max(some, key=lambda trace: trace.at_ns)
        parts.append(f"{files}{and_more(len(some) - NAMED_SESSIONS)} (by {changed_by(newest.held, identity, now)})")
    rest = sum(len(some) for some in list(writers.values())[NAMED_SESSIONS:])
    return "; ".join(parts) + (f"; and {rest} more of other sessions" if rest else "")


def asked_of(held: Held, identity: str) -> str:
    """Return how to reach the session that `held` names."""
    if held.kin:
        if held.agent:
            return "let that agent finish first"
        return "report to the main thread"
    if not same_circle(identity, token(held.label, "identity")):
        return "ask the person running theirs"
    return f"message their session (instance {named(held.instance_id)})"


def joined(*sentences: str | bool) -> str:
    """Return the sentences in one line, without those that are empty or False."""
    return " ".join(one for one in sentences if isinstance(one, str) and one)


def _in_list(stake: Stake, author: Author | None) -> str:
    """Return the person's part of a file in words, behind its name."""
    if author is None or author.lines is None:
        return "a new file" if stake.is_new else "uncommitted changes"
    if stake.is_new and not author.is_part:
        return f"a new file, {_lines(len(author.lines))}" if author.lines else "a new file"
    if author.lines:
        return f"{_lines(len(author.lines))} ({_runs(author.lines)})"
    if author.removed:
        return f"{_lines(author.removed)} taken out"
    return "its mode or type"


def _in_question(stake: Stake, author: Author) -> str:
    """Return the same in front of the file's name."""
    if stake.is_new and not author.is_part:
        return "the new file"
    if not author.lines:
        return "the uncommitted changes of"
    return f"{_lines(len(author.lines), ' uncommitted')} of"


def _lines(count: int, kind: str = "") -> str:
    if count == 1:
        return f"1{kind} line"
    return f"{count}{kind} lines"


def _in_brackets(by: str) -> str:
    if not by:
        return ""
    return f" ({command(by)})"


def _runs(numbers: list[int]) -> str:
    """Return ``12 to 15, 20 and more`` for sorted line numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [" to ".join(map(str, dict.fromkeys(run))) for run in runs[:RUNS]]
    listed = ", ".join(said)
    if len(runs) > RUNS:
        listed += " and more"
    return listed


def also_in(traces: Sequence[Trace], meetings: Meetings, patience: Patience, identity: str) -> str:
    """Return the sentence about further owners of uncommitted lines in the files of `traces`; mostly empty.

    A Trace names the last writer of its file, and `blame` all of them: so a message does.
    """
    parts, traces = [], traces[:NAMED_WITH_OWNERS]
    patience.prepare(trace.path for trace in traces)
    for trace in traces:
        lines = patience.lines_of(trace.path) or ()
        certain = [line.author for line in lines if line.author is not None]
        sessions = {author.session for author in certain}
        owners = []
        for theirs in meetings.journals.of_others(meetings.trail.place_of(os.path.dirname(trace.path))):
            if theirs.name != trace.journal and not theirs.kin and journal.owner_of(theirs.data) in sessions:
                owners += [holder(Held(trace.path, *writer), identity)[0] for writer in [theirs.writer] if writer]
        if any(author.is_person for author in certain):
            owners.append("a person")
        if owners:
            parts.append(f"{named(trace.path)} has lines of {' and of '.join(owners)}, too.")
    return " ".join(parts)


def _shown(changes: Sequence[Changes]) -> str:
    """Return the changes as quoted lines: another session's words, each behind a mark."""
    parts = []
    for path, lines, is_whole, is_seen in changes:
        if lines:
            since = "you last saw it" if is_seen else "the last commit"
            first = "" if is_whole else "the first "
            parts.append(f"Changed in {named(path)} since {since} ({first}{len(lines)} lines of diff, quoted):")
            parts += lines
    return "\n".join(["", *parts, ""]) if parts else " "


def cannot_be_noted(error: OSError) -> str:
    """Return the notice that a call goes ahead over another's change, because nothing can be noted."""
    why = error.strerror or type(error).__name__
    return (
        f"swarm: this call would be denied, but nothing can be written into swarm's state folder ({why}), so it"
        " goes ahead: keep the change of the other session. `swarm-mcp doctor` says more; tell the user."
    )


def are_cleared(clearings: list[tuple[Trace, str, str]], identity: str) -> str:
    """Return one line per file that the call writes while another call clears its folder.

    `clearings`: results of ``Meetings.clearing``.
    """
    lines = []
    for trace, deed, place in clearings[:NAMED]:
        who = holder(trace.held, identity)[0]
        what = f"{deed} {'everything in' if deed == REMOVE else 'the changes in'} {named(place)}"
        lines.append(
            f"swarm: {named(trace.path)}: at this very moment {who} is about to {what}{purpose(trace.held, identity)}."
            " Read the file again afterwards: if your change is missing, make it again."
        )
    return "\n".join(lines)


def were_written_elsewhere(traces: list[Trace], identity: str, now: float) -> str:
    """Return one line per file that the call writes and that sessions on other machines have written."""
    lines = [
        f"swarm: {named(trace.path)} was written by {changed_by(trace.held, identity, now)}, and that is not pushed:"
        " the two changes meet when one of you pulls. Keep yours small there, or agree with them first."
        for trace in traces[:NAMED]
    ]
    return "\n".join([*lines, *_so_were(len(traces) - NAMED)])


def during_hooks(trace: Trace, name: str, identity: str) -> str:
    """Return the reason not to write the file now: during another session's commit `name` puts changes aside."""
    who = holder(trace.held, identity)[0]
    return (
        f"{who} is committing or pushing in this work tree, and its hooks ({cut(name, 40)}) put changes aside or reset"
        f" files at the end: a change written to {named(trace.path)} now may be lost."
    )


def were_changed(traces: list[Trace], identity: str, now: float) -> str:
    """Return one line per file that the call goes ahead to write although others have changed it."""
    lines = []
    for trace in traces[:NAMED]:
        if trace.is_pending:
            what = f"is written at this very moment: {_writing(trace, identity)}. Read it again afterwards"
            lines.append(f"swarm: {named(trace.path)} {what}: if one of the two changes is missing, make it again.")
        else:
            what = f"was changed by {changed_by(trace.held, identity, now)}, and that is not committed"
            way = "read it again before you go on with it, and keep their change."
            lines.append(f"swarm: {named(trace.path)} {what}: {way}")
    return "\n".join([*lines, *_so_were(len(traces) - NAMED)])


def _so_were(more: int) -> list[str]:
    if more > 0:
        return [f"swarm: so were {more} more files that this call writes."]
    return []


def _writing(trace: Trace, identity: str) -> str:
    who = holder(trace.held, identity)[0]
    return f"{who} is writing it{purpose(trace.held, identity)}"


def _verb(how: str) -> str:
    return "remove" if how == REMOVE else "overwrite"


# ------------------------------------------------------------------------------------------------ narrower commands
#
# Forms of git commands that would affect others' uncommitted changes: the same for the session's own work.


def can_be_undone(words: list[str]) -> bool:
    """Return True if ``git <words>`` does to the session's own changes what `swarm-mcp undo` does."""
    if words[0] not in _UNDONE:
        return False
    options = options_of(words)
    if words[0] == "restore":
        return options.value("-s", "--source") in (None, "HEAD")
    if words[0] == "checkout" and "--" in words:
        before = [word for word in words[1 : words.index("--")] if word[:1] != "-"]
        return before in ([], ["HEAD"])
    return True


def shared_with(paths: Sequence[str], name: str, patience: Patience) -> tuple[list[str], bool]:
    """Return ``(files, is_unsure)``: those of `paths` with changes of the session with the journal `name` beside
    others'.

    A file counts without lines, and without time to look it up. `is_unsure`: some of the lines may be this session's
    or of another session, and nothing tells that in time.
    """
    files, is_unsure = [], False
    for path in paths:
        if not patience.left():
            files.append(path)
            is_unsure = True
            continue
        lines = patience.lines_of(path)
        if lines is None or any(is_by(line, name, is_sure=True) for line in lines):
            files.append(path)
            is_unsure = is_unsure or any(is_by(line, name) and line.author is None for line in lines or ())
    return files, is_unsure


def way(words: list[str], changed: list[str], new: list[str], folder: str, shared: list[str], is_unsure: bool) -> str:
    """Return a sentence with the command to run instead of ``git <words>``, or "".

    `changed`, `new`: files in question (absolute) with changes of this session alone, tracked and untracked. They are
    named relative to `folder`, or absolute if that is empty. `shared`, `is_unsure`: as `shared_with` returns them, for
    a command that `can_be_undone`; else empty.
    """
    refusing = _refusing(words)
    if refusing:
        return f"`{refusing}` leaves them alone: git refuses where it would touch them."
    if words[0] == "worktree":
        return "Name the work trees that are your own, one by one."
    if shared:
        form, options = _UNDONE[words[0]], ""
        if is_unsure:
            form, options = f"{form} {_UNSURE}", "--partial "
        return form.format(files=_named([*shared, *changed], folder), options=options)
    own = _narrow(words, changed, new, folder)
    if own:
        return f"For your own files alone: `{own}`."
    if words[0] in _FORMS:
        return "Name your own files, if there are any."
    if words[0] in ("rebase", "merge", "pull") and "--abort" not in words and "--skip" not in words:
        return "In a work tree of your own (`git worktree add`) nothing needs to be put aside."
    return ""


def _narrow(words: list[str], changed: list[str], new: list[str], folder: str) -> str:
    form, form_for_new = _FORMS.get(words[0], (None, None))
    files = [*(changed if form else ()), *(new if form_for_new else ())]
    chosen = (form_for_new if new and form_for_new else form) or ""
    if files:
        return chosen.format(files=_named(files, folder))
    return ""


def _refusing(words: list[str]) -> str:
    """Return a command of the same purpose that git refuses if it would touch uncommitted changes, or ""."""
    options = options_of(words)
    target = ""
    if options.operands and is_known(options.operands[0]):
        target = options.operands[0]
    if not target or "--" in words:
        return ""

    if words[0] == "reset" and target != "HEAD":
        return f"git reset --keep {as_word(target)}"
    if words[0] == "switch" or (words[0] == "checkout" and options.has("-f", "--force")):
        return f"git {words[0]} {as_word(target)}"
    return ""


def _named(files: list[str], folder: str) -> str:
    some = [cut(as_word(os.path.relpath(file, folder) if folder else file), 500) for file in files[:MOST_NAMED]]
    return " ".join(some) + (" ..." if len(files) > MOST_NAMED else "")
