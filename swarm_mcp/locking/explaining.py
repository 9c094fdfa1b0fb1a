"""Explanations of locks: why a file can or cannot be written, and the history of its locks."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE, clock, denial, fail_closed, repository
from swarm_hook_core.check import Check, rules
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.core import HookCore
from swarm_hook_core.denial import PERSON, STORM_SECONDS, Denial
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import GLOB, plain
from swarm_hook_core.lookup import Session as Asker
from swarm_hook_core.lookup.sqlite import StoreReader, covered
from swarm_hook_core.paths import above
from swarm_hook_core.process import SERVER_RUNTIME
from swarm_hook_core.state import describe
from swarm_hook_core.traces.trail import Trail, asked_trail
from swarm_hook_core.untrusted_text import as_word, command, named, quoted, same_circle, token
from swarm_hook_core.wildcards import literal_prefix
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import People
from swarm_mcp.answers.size import Measure, cursor, page, place_of, sent
from swarm_mcp.answers.timeline import Group, event_shown, grouped, happening, incident_of, learn_labels
from swarm_mcp.domain import Event, Lock, Session, Waiter, is_name, nobody_in, onlooker
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.sessions.acting import TERMINAL
from swarm_mcp.store import Store
from swarm_mcp.store.activity import payload_of
from swarm_mcp.store.lock_request import Reach, reach_of, rule, tree_of, with_names
from swarm_mcp.store.messages import known_as, may_meet
from swarm_mcp.store.refusals import KNOWN_SECONDS, Attempt

_KINDS = {EDIT: "edit", REPLACE: "overwrite", REMOVE: "remove"}  # kinds of writes -> people's words for them
_TOOLS = {EDIT: "Write", REPLACE: "Write", REMOVE: "rm"}  # as the words of a refusal have them
MOST_NAMED = 200  # locks, and waiters, of one explanation


def explanation(
    store: Store,
    place: Session,
    word: str,
    session: Session | None,
    agent: str,
    viewer: str,
    meets: bool = True,
    reader_folder: str = "",
) -> dict[str, Any]:
    """Return ``{file, pattern, held, waiting, write}`` for `word` in `place`, as identity `viewer` may see it.

    `place` is an instance, or any object with ``directory``, ``root``, ``file_root`` and ``variables``. `held` has the
    locks over the file in the shape of a listing, each with its ``rule`` (``lock_request.rule``) and ``yours``.
    `waiting` is the queue, first come first. `write` is the answer to a write by `session` (None: a session without
    locks) or its subagent `agent` now; None for a pattern. `held` and `waiting` have at most 200 rows; ``not_shown``
    counts the others. For a pattern, all locks would have to be compared: without `meets`, only those on that very
    pattern are found. `reader_folder`: as of `verdict`. Raises SwarmError. Changes nothing.
    """
    reach = with_names(reach_of(place, word), False)
    if not reach.pattern:
        found = store.locks.covering(reach)
    elif meets:
        found = store.locks.meeting(reach)
    else:
        found = store.locks.exactly(reach)
    line = store.queue.waiting_for(reach)
    left = {"held": len(found) - MOST_NAMED, "waiting": len(line) - MOST_NAMED}
    left = {name: number for name, number in left.items() if number > 0}
    return {
        "file": reach.file,
        "pattern": reach.pattern or None,
        "held": [_held(store, row, reach, session, viewer) for row in found[:MOST_NAMED]],
        "waiting": _waiting(store, line[:MOST_NAMED], reach, session, viewer),
        "write": None
        if reach.pattern or reach.key is None or is_name(reach.file)
        else verdict(store, session, reach.file, agent, viewer, reader_folder),
        **({"not_shown": left} if left else {}),
    }


def verdict(
    store: Store,
    session: Session | None,
    path: str,
    agent: str = "",
    viewer: str = "",
    reader_folder: str = "",
) -> dict[str, Any]:
    """Return the answer to a write of absolute `path`: ``{instance_id, label, agent, allowed, guarded, reason, ...}``.

    The hooks' own check decides, for each of the `kinds` of writes, ``edit``, ``overwrite`` and ``remove``:
    ``{kind: {allowed, reason, told}}``; `told` is the notice to a model whose write goes ahead. `allowed` is True if
    all kinds go ahead; `reason` is that of the first refused one. `guarded`: hooks of ours see the write at all.
    ``holder_id`` names the owner of the lock or of the uncommitted work in the way; for a lock, ``lock_file`` and
    ``fence`` name it. Without a session, the words are those for a session of identity `viewer`.
    Commands in the words are typed in `reader_folder`; without it they have whole paths.
    """
    told: dict[str, Any] = {"instance_id": session and session.id, "label": session and session.label}
    told["agent"] = agent or None
    told.update(allowed=True, guarded=session is not None and _is_guarded(store, session), reason=None)
    free = {"allowed": True, "reason": None, "told": None}
    if not store.exists():
        return {**told, "kinds": {kind: dict(free) for kind in _KINDS.values()}}
    row = session or nobody_in("")
    label = (session or onlooker(viewer)).label or ""
    who = Asker(row.id, label, row.directory, row.root, row.file_root)
    with closing(store.as_hooks_read_it()) as reader:
        found = _AskedCore(*_client_of(store, session), who, reader, reader_folder).verdicts(path, agent)
    denials = [verdict.denial for verdict in found.values() if verdict.denial is not None]
    told["kinds"] = {
        _KINDS[how]: {**free, "told": verdict.notice or None}
        if verdict.denial is None
        else {"allowed": False, "reason": verdict.denial.reason, "told": None}
        for how, verdict in found.items()
    }
    if not denials:
        return told
    first = denials[0]
    told.update(allowed=False, reason=first.reason)
    held = first.loss.held if first.loss else first.held
    if held is None:
        return told
    if held.instance_id and same_circle(token(who.label, "identity"), token(held.label, "identity")):
        told.update(holder_id=held.instance_id)
    if first.held is not None:
        told.update(lock_file=held.elsewhere or held.file, fence=held.fence)
    return told


def _client_of(store: Store, session: Session | None) -> tuple[str, str, str]:
    """Return a session's runtime, the prefix of its variables, and its client's id; made-up ones without a session."""
    found, prefix = store.instances.with_evidence(session.id) if session else None, "MCP"
    if found is None or not found.runtime or not found.session_id:
        return "swarm", prefix, f"asked-{os.getpid()}"
    if found.runtime in NAMES:
        prefix = hook_config(found.runtime).env_prefix
    return found.runtime, prefix, found.session_id


def _is_guarded(store: Store, session: Session) -> bool:
    found = store.instances.with_evidence(session.id)
    return found is not None and found.runtime not in (None, SERVER_RUNTIME, TERMINAL)


def _held(store: Store, row: Lock, reach: Reach, session: Session | None, viewer: str) -> dict[str, Any]:
    """A lock over the path, in the shape of a listing and more."""
    if reach.pattern and row.pattern:
        through = "pattern"
    elif reach.pattern:
        through = "overlap"
    else:
        through = rule(row, reach.file)
    shown = store.locks.listed(row, viewer)
    yours = session is not None and row.instance_id == session.id
    return {**shown, "mode": row.mode or "exclusive", "rule": through, "yours": yours}


def _waiting(
    store: Store, line: list[Waiter], reach: Reach, session: Session | None, viewer: str
) -> list[dict[str, Any]]:
    """Return ``{place, mode, files, waited, gives_up_in, yours, instance_id, label, agent}`` of each waiter in `line`.

    ``silent`` marks a waiter without a heartbeat for so long that others may pass it.
    """
    found = []
    for place, row in enumerate(line, 1):
        now = clock.now()
        shown: dict[str, Any] = {"place": place, "ticket": row.ticket, "mode": row.mode}
        shown["files"] = [plain(wanted.file) for wanted in row.reaches]
        shown["waited"] = round(max(0.0, now - row.since), 1)
        shown["gives_up_in"] = None if row.until is None else round(max(0.0, row.until - now), 1)
        shown["yours"] = session is not None and row.instance_id == session.id
        if store.queue.is_silent(row):
            shown["silent"] = True
        if same_circle(viewer, token(row.owner_label or "", "identity")):
            shown.update(instance_id=row.instance_id, label=row.owner_label, agent=row.agent or None)
        else:
            # A stranger's other files are hidden from the viewer.
            shown.update(hidden=True, files=[reach.file])
        found.append(shown)
    return found


# The history of a file's locks, and the last refusals and notices about it.

AT_ONCE = 1000  # events that are read together, the newest first
MOST_READ = 20_000  # events that one answer looks through; the cursor behind them goes on
HOUR_SECONDS, INCIDENTS = 3600, 5
FEW_EVENTS, FEW_READ = 100, 2000  # events of one path, and those looked through for them, for its last incidents
# Kinds that are about one file alone: a lock on a folder over it is no part of them.
_OF_ONE_FILE = ("lock_denied", "write_denied", "write_noticed", "lock_breached", "restored")


def history(
    store: Store,
    place: Session,
    word: str,
    viewer: str,
    limit: int,
    after: str = "",
    measure: Measure = sent,
    most_read: int = MOST_READ,
) -> dict[str, Any]:
    """Return ``{file, events}`` for `word` in `place` (as for ``explanation``): the newest `limit`, oldest first.

    An event is ``{id, at, what, rule, file, instance_id, label, details}``. `rule` says how it concerns the path, as in
    ``lock_request.rule``. Names and notes of sessions with another identity than `viewer` are left out. At most
    `most_read` events are read; ``next`` is then the cursor for `after`, to read the earlier ones. Raises SwarmError.
    """
    reach = reach_of(place, word)
    names, known = _Names(reach), store.activity.acquaintance(f"identity:{viewer}" if viewer else None)
    found: list[tuple[Any, ...]] = []
    begin = place_of(after, (int,))
    before, read = begin[0] if begin else None, 0
    while len(found) < limit and read < most_read:
        rows = store.activity.of_locks(before, AT_ONCE)
        found += [(row, payload, how) for row in rows if (how := names.concern(row, payload := payload_of(row)))]
        before, read = rows[-1].id if rows else before, read + AT_ONCE
        if len(rows) < AT_ONCE:
            read = 0
            break
    cut = len(found) > limit
    found = found[:limit]
    learn_labels(store, known, [(row, payload) for row, payload, _how in found])
    shown = [event_shown(known, *one) for one in reversed(found)]
    _count(shown, found)
    fits = page((("", one) for one in reversed(shown)), dict, lambda: 0, measure=measure).rows
    last = None  # event that was read
    if len(fits) < len(shown) or cut:
        last = fits[-1]["id"]
    elif read:
        last = before
    answer = {"file": reach.file, "events": fits[::-1]}
    if last is not None and store.activity.of_locks(last, 1):
        answer["next"] = cursor(last)
    return answer


def incidents_about(store: Store, place: Session, word: str, people: People) -> list[Group]:
    """Return the last refusals and notices of the past hour about `word` in `place` (as for `history`)."""
    if not store.exists():
        return []
    events = history(store, place, word, people.viewer, FEW_EVENTS, most_read=FEW_READ)["events"]
    found = [incident_of(happening(one, people, place.scope), one.get("repeated", 0)) for one in reversed(events)]
    return grouped([one for one in found if one and one.at > store.now() - HOUR_SECONDS], INCIDENTS)


class _Names:
    """All that a path is called in events."""

    def __init__(self, reach: Reach):
        self.reach = reach
        self.own = {*reach.keys, *([reach.key] if reach.key else [])}
        if not is_name(reach.file):  # another repository may have a name like it
            self.own.add(reach.file)
        self.over = {folder for name in self.own for folder in above(name)}
        self.in_repository: set[str] = set()
        if reach.key is not None and not reach.pattern and (tree := tree_of(reach)):
            self.in_repository = {name for key in (*self.own, *self.over) for name in repository.names_of(key, tree)}

    def concern(self, row: Event, payload: dict[str, Any]) -> str:
        """Return the rule by which an event concerns the path, or an empty text."""
        kind, subject, key = row.type.partition(".")[2], plain(row.subject or ""), payload.get("key")
        if self.reach.pattern:
            same = (payload.get("pattern"), payload.get("base")) == (self.reach.pattern, self.reach.base)
            if same or subject == self.reach.file:
                return "pattern"
            return ""
        if kind == "lock_denied" and (payload.get("path") in self.own or payload.get("path_key") in self.own):
            return payload.get("rule") or "file"
        if kind in ("write_denied", "write_noticed") and self.own.intersection(_texts(payload.get("also"))):
            return "file"
        if subject in self.own or (isinstance(key, str) and key in self.own):
            return "file"
        if kind in _OF_ONE_FILE:
            return ""
        if subject in self.over or (isinstance(key, str) and key in self.over):
            if not payload.get("pattern"):
                return "folder"
            return ""
        pattern, base = payload.get("pattern"), payload.get("base")
        if isinstance(pattern, str) and isinstance(base, str) and self._covers(pattern, base):
            return "pattern"
        if payload.get("repository") in self.in_repository:
            return "repository"
        return ""

    def _covers(self, pattern: str, base: str) -> bool:
        prefix, folder = literal_prefix(pattern), base
        if prefix:
            folder = f"{base.rstrip('/')}/{prefix}"
        return bool(covered(pattern, base, GLOB + folder, list(self.own)))


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [one for one in value if isinstance(one, str)]
    return []


def _count(shown: list[dict[str, Any]], found: list[tuple[Any, ...]]) -> None:
    """Count how often each denial was repeated within its pause (``repeats``); a repeat adds no event."""
    if not any(one["what"] == "denied" for one in shown):
        return
    known = denial.all_counts()
    events = [(one, row, payload) for one, (row, payload, _how) in zip(shown, reversed(found))]
    for at, (one, row, payload) in enumerate(events):
        if one["what"] != "denied":
            continue
        same = [
            later["at"] for later, other, told in events[at + 1 :]
            if later["what"] == "denied" and (other["actor"], told.get("key")) == (row["actor"], payload.get("key"))
        ]  # fmt: skip
        end = min([*same, one["at"] + KNOWN_SECONDS + 1])
        again = denial.counted(known, row["actor"], payload.get("holder") or "", payload.get("key"), one["at"], end)
        if again:
            one["repeated"] = again


# Notices about a session's uncommitted changes: another session has overwritten them, or tries to.


def tell_of_loss(
    store: Store, writer: Session | None, owner_id: str, file: str, is_removed: bool, kept: str, made: tuple[str, str]
) -> list[str]:
    """Tell the owner of a change that `writer` was let overwrite or remove it; the ids of the sessions that were told.

    `kept`: where the content before is, empty where it is not kept; `made`: the tool of the call, and the command.
    """
    tool, line = made
    if writer is not None:
        deed = "remove" if is_removed else "overwrite"
        passed = Attempt(tool, file, why="passed", deed=deed, command=line, is_notice=True)
        store.denials.note(writer, writer.scope, file, owner_id, passed)
    owner = store.instances.live(owner_id)
    if owner is None:
        return []
    by = ""
    if writer is None or may_meet(writer.label, owner.label):
        if line:
            by = f" ({command(line)})"
        elif tool:
            by = f" ({named(tool)})"
        else:
            by = ""
    undo = f"The content before is kept: `swarm-mcp restore {as_word(file)}` brings it back."
    what = f"was let {'remove' if is_removed else 'overwrite'} {named(file)}{by}"
    text = (
        f"[auto] {_name(writer, owner)} {what}, which you changed and have not committed."
        f" {undo if kept else 'The content before could not be kept.'} Read the file before you go on with it."
    )
    if store.notices.tell(owner, text):
        return [owner.id]
    return []


def tell_of_denials(store: Store, writer: Session | None, owner_id: str, file: str, times: int) -> list[str]:
    """Tell the owner of a change, or from so many `times` on a person, that `writer` tries again and again."""
    if writer is None:
        return []
    owner, told = store.instances.live(owner_id), []
    often = f"{times} times within {duration(STORM_SECONDS)}"
    if times < PERSON:
        if owner is not None:
            text = (
                f"[auto] {_name(writer, owner)} was denied {often} to overwrite {named(file)}, which you changed"
                " and have not committed. When you are done with it, commit it, or tell that session."
            )
            told += [owner.id] if store.notices.tell(owner, text) else []
        return told
    identity = token(writer.label or "", "identity")
    for lead in store.instances.in_scope(writer.scope):
        words = (lead.label or "").split()
        if lead.id == writer.id or "mode:gateway" not in words or token(lead.label or "", "identity") != identity:
            continue
        if owner is not None:
            whose = _name(owner, writer)
        else:
            whose = "a session that has gone"
        text = (
            f"[auto] For the person you work for: {known_as(writer)} was denied {often} to overwrite"
            f" {named(file)}, and goes on trying: {whose} has changed it and not committed it. A person has to say"
            " whose change goes first."
        )
        told += [lead.id] if store.notices.tell(lead, text) else []
    return told


def tell_of_eviction(
    store: Store, writer: Session | None, owner_id: str, folder: str, call: tuple[str, str, bool], commits: list[str],
    main: str,
) -> list[str]:  # fmt: skip
    """Tell the session that works in `folder` of a call by `writer` that takes it away; the ids of those told.

    `call`: its deed as a verb, its command, True if it was denied; `commits`: name and subject of those that no other
    ref has; `main`: a folder of the same repository that stays, or empty.
    """
    owner = store.instances.live(owner_id)
    if owner is None:
        return []
    deed, line, is_denied = call
    by, kept = "", ""
    if line and (writer is None or may_meet(writer.label, owner.label)):
        by = f" ({command(line)})"
    if commits:
        names = [one.partition(" ") for one in commits]
        listed = ", ".join(f"{named(name)} {quoted(subject)}" for name, _blank, subject in names)
        where = f" -C {as_word(main)}" if main else ""
        kept = f" On no other branch or tag: {listed}; `git{where} branch NAME {named(names[0][0])}` keeps them."
    if is_denied:
        what = f"was stopped once from a call that would {deed} {named(folder)}{by}, in which you work"
        rest = " It may make the call again: commit, and tell that session if you still need the folder."
    else:
        what = f"makes a call to {deed} {named(folder)}{by}, in which you work"
        rest = " Look if the folder is still there before you go on."
    text = f"[auto] {_name(writer, owner)} {what}.{kept}{rest}"
    return [owner.id] if store.notices.tell(owner, text) else []


def _name(session: Session | None, reader: Session) -> str:
    if session is None:
        return "A session unknown here"
    if may_meet(session.label, reader.label):
        return known_as(session)
    return "A session of another identity"


# The check of a write that is only asked about. Its rules are those of the hooks (``check.rules``), with nothing left
# behind: no traces, records or counts. No file is kept, no session registered, no write of another session waited for.


class _AskedCall(ToolCall):
    """A write that is asked about: `how` it writes absolute `path`, and the `folder` of its session.

    `reader_folder` is the folder of the reader of the answer; empty if it is not known: paths are whole then.
    """

    __slots__ = ("_reader_folder",)

    def __init__(self, path: str, how: str, session_id: str, folder: str, agent: str, reader_folder: str):
        ToolCall.__init__(
            self, how, {"path": path, "how": how}, session_id, folder, agent=agent, client_tool=_TOOLS[how]
        )
        self._reader_folder = reader_folder or path  # nothing lies below a file

    @property
    def reader_folder(self) -> str:
        """The folder in which the reader of the answer types the commands that it names."""
        return self._reader_folder


class _Question(Check):
    """A call that is only asked about, by the session of the _AskedCore that asks."""

    is_question = True
    core: _AskedCore

    def find_trail(self) -> Trail | None:
        """Return a Trail that leaves nothing; None if the checkout wants no traces."""
        return asked_trail(self.config, self.call)

    def session_and_glance(self) -> tuple[Asker, StoreReader]:
        """Return the session that is asked about."""
        return self.core.session, self.core.reader


class _AskedCore(HookCore):
    """The check of writes by `session`, with its client's name `runtime` and its id there, `session_id`.

    prefix         of the client's environment variables
    reader         reads the store
    reader_folder  as of an _AskedCall
    """

    def __init__(
        self,
        runtime: str,
        prefix: str,
        session_id: str,
        session: Asker,
        reader: StoreReader,
        reader_folder: str = "",
    ):
        config = RuntimeConfig(
            runtime, prefix, "swarm", _KINDS, extract_changes=lambda given: [(given["path"], given["how"])]
        )
        HookCore.__init__(self, config, driver=reader.driver, is_within=True)
        self.session = session
        self.reader = reader
        self._session_id = session_id
        self._reader_folder = reader_folder

    def verdicts(self, path: str, agent: str = "") -> dict[str, Verdict]:
        """Return the Verdict on each kind of write (`EDIT`, ...) to absolute `path` by the session, or its `agent`."""
        found: dict[str, Verdict] = {}
        for how in _KINDS:
            call = self._call(path, how, agent)
            found[how] = verdict = self._verdict(call)
            is_plain = verdict.denial is None and not verdict.notice and self._is_alone(call, path)
            is_plain = is_plain and not os.path.lexists(path)  # a person's work is not lost by an edit
            if is_plain or (verdict.denial is not None and _is_for_all(verdict.denial)):
                return dict.fromkeys(_KINDS, verdict)  # the kind of write makes no difference
        return found

    def _call(self, path: str, how: str, agent: str) -> ToolCall:
        folder = self.session.directory or os.path.dirname(path) or "/"
        return _AskedCall(path, how, self._session_id, folder, agent, self._reader_folder)

    def _verdict(self, call: ToolCall) -> Verdict:
        try:
            return rules.ask(_Question(self, call)) or Verdict()
        except Exception as error:
            closed = fail_closed.verdict(self.config, call, error)
            return closed or Verdict(notice=f"swarm: this could not be checked ({describe(error)[:300]}).", failed=True)

    def _is_alone(self, call: ToolCall, path: str) -> bool:
        trail = asked_trail(self.config, call)
        try:
            return trail is None or trail.is_alone([os.path.realpath(path)])
        except (OSError, ValueError):  # a path that no file can have: each kind of write is asked about
            return False


def _is_for_all(denial: Denial) -> bool:
    """Return True if the denial is the same for each kind of write: it is for a lock, or for the work tree."""
    return not denial.question and (denial.loss is None or denial.loss.why in ("fence", "team"))
