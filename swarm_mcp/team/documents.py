"""Messages, tasks, values and traces of a repository: the changes to post, and the changes to apply.

A row here becomes a *body*, free of any machine's folders. The changes to post are the difference between the bodies
now and those at the last agreement with the server (``TeamDocuments(store)``). Verbs change rows only; after any
interruption, the difference is the remaining work.

After simultaneous changes here and on the server, a task gets the server's state, and the session that changed it here
is told; a set value is set once more, and an appended text is appended to the present value. An own change on the
server without its answer is no such case: the state here is newer then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from swarm_hook_core.untrusted_text import named, quoted
from swarm_mcp.domain import BLOCKED, CLAIMED, IN_PROGRESS, OPEN, STATUSES, SYSTEM, TERMINAL, Task, of_task
from swarm_mcp.store import Store
from swarm_mcp.store.values import appended_since, is_list, items_of, joined
from swarm_mcp.team.parts import TeamDocuments
from swarm_mcp.team.protocol import MESSAGE, TASK, TRACE, VALUE, DocumentRow, Item, PutAnswer, item, item_error
from swarm_mcp.team.store_documents import Known, canonical, path_at, place_in
from swarm_mcp.team.traces import Traces

# Bodies of documents: a task or a value as the team's server keeps it, free of any machine's folders.
#
# Also the comparison of two bodies: the later one, and the items that one list lacks.

_TEXTS = ("id", "type", "title", "requester", "status")
_MAYBE_TEXTS = (
    "description", "assignee", "result", "idempotency_key", "parent_task_id", "review_of_task_id", "fixes_task_id",
    "progress_summary", "blocked_reason", "tracker_provider",
)  # fmt: skip
_NUMBERS = ("created_at", "updated_at", "priority", "tracker_required")
_MAYBE_NUMBERS = ("progress_updated_at", "expected_next_update_at")
_TIMES = ("updated_at", "progress_updated_at", "expected_next_update_at")


def task_body(task: Task, top: str, left_out: int | None = None) -> dict[str, Any]:
    """Return a task as its document says it: files as places in the work tree with this `top`.

    Files outside of it are left out, and counted; `left_out`: how many were, where that is known.
    """
    places, outside = _places(task.files or [], top)
    body: dict[str, Any] = {name: task[name] for name in ("depends_on", *_TEXTS)}
    # Another program may have left something else there.
    body.update((name, task[name] if isinstance(task[name], str) else None) for name in _MAYBE_TEXTS)
    body.update((name, _whole(task[name])) for name in (*_NUMBERS, *_MAYBE_NUMBERS))
    body["files"] = places or None
    body["files_left_out"] = outside if left_out is None else left_out
    text = body["result"]

    def told(files: list[str]) -> list[str]:
        return _places(files, top)[0]

    body["result"] = _with_files(text, told)
    return body


def was_ended(here: dict[str, Any] | None, base: str | None, there: dict[str, Any]) -> bool:
    """Return True if a task was finished here by its holder, and only released there, as for a departed session."""
    if base:
        held = json.loads(base)
    else:
        held = {}
    return (
        here is not None
        and here["status"] in TERMINAL
        and held.get("status") in (CLAIMED, IN_PROGRESS)
        and here["assignee"] == held.get("assignee")
        and (there["status"], there["assignee"]) == (OPEN, None)
    )


def task_columns(body: Any, key: str, before: Task | None, top: str) -> dict[str, Any] | None:
    """Return a document's columns of a task, in the work tree with this `top`; None for an invalid document.

    `before` is the task as it is here: equal values stay as they are, and so do files outside of the work tree.
    """
    if not isinstance(body, dict) or body.get("id") != key or body.get("status") not in STATUSES:
        return None
    if not all(isinstance(body.get(name), str) for name in _TEXTS):
        return None
    if not all(isinstance(body.get(name), (str, type(None))) for name in _MAYBE_TEXTS):
        return None
    if not all(_is_number(body.get(name)) for name in _NUMBERS):
        return None
    if not all(body.get(name) is None or _is_number(body[name]) for name in _MAYBE_NUMBERS):
        return None
    columns = {name: body.get(name) for name in (*_TEXTS, *_MAYBE_TEXTS, *_NUMBERS, *_MAYBE_NUMBERS)}
    needed = body.get("depends_on")
    columns["depends_on"] = [one for one in needed if isinstance(one, str)] if isinstance(needed, list) else None
    given = body.get("files")
    if isinstance(given, list):
        paths = [path for one in given if (path := path_at(one, top))]
    else:
        paths = []
    outside = [file for file in (before.files or () if before else ()) if place_in(file, [top]) is None]
    columns["files"] = [*paths, *outside] or None
    text = body.get("result")

    def here(files: list[str]) -> list[str]:
        return [path for one in files if (path := path_at(one, top))]

    columns["result"] = _with_files(text, here)
    if before is not None:
        same = task_body(before, top)
        if same["files"] == body.get("files"):
            columns["files"] = before.files
        if same["result"] == body.get("result"):
            columns["result"] = before.result
    return columns


def _places(files: Iterable[str], top: str) -> tuple[list[str], int]:
    """Return those of these files that are in a work tree, from its top, and how many are not."""
    found = [place_in(file, [top]) for file in files]
    places = [one for one in found if one is not None]
    return places, len(found) - len(places)


def _with_files(text: str | None, change: Callable[[list[str]], list[str]]) -> str | None:
    """Return the result of a task with other names of the files that it says were changed (``complete_task``)."""
    if not text or not text.startswith("{") or '"files_changed"' not in text:
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # plain text
        return text
    files = found.get("files_changed")
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        return text
    found["files_changed"] = change(files)
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


VALUE_FIELDS = ("value", "owner_identity", "updated_at")


def value_body(value: Any) -> dict[str, Any]:
    return {**{name: value[name] for name in VALUE_FIELDS}, "updated_at": _whole(value["updated_at"]) or 0}


def is_value(body: Any) -> bool:
    return (
        isinstance(body, dict)
        and isinstance(body.get("value"), str)
        and isinstance(body.get("owner_identity"), (str, type(None)))
        and "owner_identity" in body
        and _is_number(body.get("updated_at"))
    )


def common_length(first: list[str], second: list[str]) -> int:
    """Return how many items both begin with."""
    return next(
        (place for place, pair in enumerate(zip(first, second)) if pair[0] != pair[1]), min(len(first), len(second))
    )


def missing_items(here: str, there: str) -> list[str] | None:
    """Return the items of a list here that are missing in one there; None if one of the two is no list."""
    if not (is_list(here) and is_list(there)):
        return None
    first, second = items_of(here), items_of(there)
    alike = common_length(first, second)
    left = second[alike:]
    found = []
    for one in first[alike:]:
        if one in left:
            left.remove(one)
        else:
            found.append(one)
    return found


def age(task: dict[str, Any] | None) -> tuple[int, int]:
    """Return a key that is greater for a later state of a task."""
    if task is None:
        return 0, 0
    ranks = {BLOCKED: 0, OPEN: 1, CLAIMED: 2, IN_PROGRESS: 3, **dict.fromkeys(TERMINAL, 4)}
    return task["updated_at"], ranks.get(task["status"], 0)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


def _whole(value: object) -> int | None:
    """Return a time, or a count, as a document has it: others may have stored a fraction."""
    if isinstance(value, (int, float)) and abs(value) < 2**62:
        return int(value)
    return None


def without_times(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _TIMES}


def text_of(body: object) -> str | None:
    try:
        if body is not None:
            return canonical(body)
        return None
    except (TypeError, ValueError, RecursionError):  # nothing that JSON can say
        return None


Ref = tuple[str, str]  # kind and key

AT_ONCE = 50  # items in one call, or transaction
MOST_REMEMBERED = 1000  # tasks that lost against the server, kept for a request still in progress
TASK_SECONDS = 86400  # an ended task of that age is about to be deleted here, and is not posted any more


class Wake(NamedTuple):
    """A session of this machine that is to be woken: for mail of `sender`, about `task`; `force`: even while busy."""

    recipient: str
    sender: str
    task: str
    force: bool


class Documents:
    """The documents of one `repository`, in the work trees `tops` of this `machine`; those of others are in `scope`.

    again     documents that the server had, and has lost
    gave_way  documents whose change here lost against the server's, with the message about it
    spared    documents with a waiting request that reports the loss itself: no message is sent
    refused   documents that the server rejects in their present form, with the reason
    is_due    rows here may differ since the last look, because of applied changes
    wakes     requests of other machines to wake sessions here, until done
    """

    def __init__(self, store: Store, repository: str, machine: str, tops: Iterable[str], scope: str):
        self._store = store
        self._rows = TeamDocuments(store)
        self.repository = repository
        self.machine = machine
        self.tops = sorted(tops)
        self.scope = scope
        self.again: set[Ref] = set()
        self.gave_way: dict[Ref, int] = {}
        self.spared: set[Ref] = set()
        self.refused: dict[Ref, tuple[str | None, str]] = {}
        self.is_due = False
        self.wakes: list[Wake] = []
        self._pending: set[Ref] = set()
        self.traces = Traces(store, repository, machine, self.tops)
        self._tasks_seen: dict[str, int] = {}  # scope -> `changed_at` of the last task looked at
        self._values_seen: int | None = None

    def look_anew(self) -> None:
        """Compare everything the next time."""
        self._tasks_seen.clear()
        self._values_seen = None

    # ------------------------------------------------------------ changes to post

    def differences(self) -> list[Item]:
        """Return the changes that the server lacks. Rejected documents are left out until they change."""
        rows, repository = self._rows, self.repository
        self.is_due = False
        for top in self.tops:
            for task in rows.tasks_since(top, self._tasks_seen.get(top, 0)):
                self._pending.add((TASK, task.id))
                self._tasks_seen[top] = max(self._tasks_seen.get(top, 0), task.changed_at)
        changed_at = rows.values_changed_at(self.scope)
        if changed_at != self._values_seen:
            there = {row.key for row in rows.values(self.scope)}
            self._pending |= {(VALUE, key) for key in there | rows.all_known(repository, VALUE).keys()}
            self._values_seen = changed_at
        values = sorted(ref for ref in self._pending if ref[0] == VALUE)
        tasks = rows.in_order(key for kind, key in self._pending if kind == TASK)
        wanted = []
        for ref in [*((TASK, key) for key in tasks), *values]:
            found = self.difference(ref)
            if found is not None and self._is_taken(found):
                wanted.append(found)
            else:
                self._pending.discard(ref)
        for row in rows.unposted(repository):  # last: they may be about the tasks
            found = item(MESSAGE, row.key, 0, json.loads(row.body or "null"), (MESSAGE, row.key) in self.again)
            if self._is_taken(found):
                wanted.append(found)
        return wanted + [one for one in self.traces.differences() if self._is_taken(one)]

    def difference(self, ref: Ref) -> Item | None:
        """Return the change of one task or value to post, or None."""
        kind, key = ref
        known = self._rows.known(self.repository, kind, key)
        body = self._body(ref, known)
        if body is None and (known is None or kind == TASK):
            return None  # a task is deleted for its age, by each machine and the server
        if body is not None and known is not None and canonical(body) == known.body:
            return None
        if body is None and known is not None and known.body is None:
            return None
        if (
            kind == TASK
            and known is None
            and body is not None
            and body["status"] in TERMINAL
            and body["updated_at"] < self._store.now() - TASK_SECONDS
        ):
            return None
        return item(kind, key, self.version(ref), body, ref in self.again)

    def done(self, one: Item, answer: PutAnswer) -> None:
        """Inside a transaction: the server has taken an item."""
        ref = (one["kind"], one["key"])
        self.again.discard(ref)
        self.gave_way.pop(ref, None)
        self.refused.pop(ref, None)
        if one["body"] is None and not answer["version"]:
            self._rows.forget(self.repository, *ref)
        else:  # also for a removed document, until the log confirms it: the log's earlier entries are skipped
            self._rows.note(self.repository, *ref, answer["version"], text_of(one["body"]))

    def refuse(self, one: Item, why: str) -> None:
        """The server does not take an item as it is."""
        self.refused[one["kind"], one["key"]] = (text_of(one["body"]), why)

    def _is_taken(self, one: Item) -> bool:
        ref = (one["kind"], one["key"])
        known = self.refused.get(ref)
        if known is not None and known[0] == text_of(one["body"]):
            return False
        why = item_error(one)
        if why:
            self.refuse(one, why)
        return not why

    def is_here(self, ref: Ref) -> bool:
        """Return True if this machine has this task or value of the team's."""
        return self._body(ref, None) is not None

    def version(self, ref: Ref) -> int:
        """Return the server's version of a document, as far as known here; 0: it has none."""
        known = self._rows.known(self.repository, *ref)
        if known is not None and known.body is not None:
            return abs(known.version)
        return 0

    def _body(self, ref: Ref, known: Known | None) -> dict[str, Any] | None:
        kind, key = ref
        if kind == TASK:
            task = self._rows.task(key)
            if task is not None and task.scope in self.tops:
                return self._task_body(task, known)
            return None
        value = self._rows.value(self.scope, key)
        if value is not None:
            return value_body(value)
        return None

    def _task_body(self, task: Task, known: Known | None) -> dict[str, Any]:
        told = json.loads(_base(known) or "{}")
        return task_body(task, task.scope, told.get("files_left_out"))

    # ------------------------------------------------------------- changes to apply

    def take(self, row: DocumentRow, is_all: bool = False, is_first: bool = False, has_lost: bool = False) -> None:
        """Apply a new or changed document of the server, inside a transaction. Applying it twice changes nothing.

        `is_all`: the document is part of a full list without its history. `is_first`: this machine has just joined, and
        its own rows may be old. `has_lost`: the server may have lost its latest changes.
        """
        kind, key = row["kind"], row["key"]
        known = self._rows.known(self.repository, kind, key)
        if (known is not None and abs(known.version) >= row["version"]) or not isinstance(row["body"], dict):
            return
        has_lost = has_lost or (known is not None and known.version < 0)
        if kind == MESSAGE:
            body = row["body"]
            if known is not None:  # delivered, or one's own
                self._rows.note(self.repository, MESSAGE, row["key"], row["version"], known.body)
                return
            sender, recipient_id, content = (body.get(name) for name in ("sender", "recipient", "content"))
            if not (isinstance(sender, str) and isinstance(recipient_id, str) and isinstance(content, str)):
                return
            recipient = self._rows.recipient(recipient_id)
            if recipient is None:
                return
            self._rows.note(self.repository, MESSAGE, row["key"], row["version"], None)
            if body.get("wake"):
                self.wakes.append(Wake(recipient.id, sender, str(body.get("task") or ""), bool(body.get("force"))))
                return
            file = path_at(body.get("file"), self._top_of(recipient.scope)) or ""
            self._rows.deliver(recipient, sender or SYSTEM, content, bool(body.get("told")), file)
        elif kind == TASK:
            self._take_task(row, known, is_first, has_lost)
        elif kind == VALUE and is_value(row["body"]):
            self._take_value(row, known, is_all, is_first, has_lost)
        elif kind == TRACE:
            self.traces.take(row)

    def take_gone(self, row: Any) -> None:
        """Inside a transaction: the server has a document no more."""
        kind, key = row["kind"], row["key"]
        known = self._rows.known(self.repository, kind, key)
        if known is None or abs(known.version) > row["version"] or (kind == MESSAGE and known.version == 0):
            return
        if kind == MESSAGE:
            self._rows.note(self.repository, kind, key, known.version, None)  # that it was delivered stays known
            return
        self._rows.forget(self.repository, kind, key)
        if kind == TRACE:
            self.traces.changed()
        elif kind == VALUE:
            value = self._rows.value(self.scope, key)
            if value is not None and canonical(value_body(value)) == known.body:
                self._rows.remove_value(self.scope, key)

    def take_all(self, rows: list[DocumentRow], has_lost: bool, is_first: bool) -> None:
        """These are all that the server has. `has_lost`: it is another one than before."""
        there = {(row["kind"], row["key"]): row for row in rows}
        with self._rows.writing():
            for kind in (MESSAGE, TASK, VALUE, TRACE):
                for key, known in self._rows.all_known(self.repository, kind).items():
                    row = there.get((kind, key))
                    if has_lost and kind == TRACE:
                        self._rows.forget(self.repository, kind, key)  # as it is by now it is taken, or posted
                        self.traces.changed()
                    elif has_lost:
                        self._recover(kind, key, known, row)
                    elif row is None and known.version:
                        self.take_gone({"kind": kind, "key": key, "version": abs(known.version)})
        for begin in range(0, len(rows), AT_ONCE):
            with self._rows.writing():
                for row in rows[begin : begin + AT_ONCE]:
                    self.take(row, True, is_first, has_lost)
        self.look_anew()

    def _recover(self, kind: str, key: str, known: Known, row: DocumentRow | None) -> None:
        """Post the local document once more, since the server may have lost it.

        Until then its known version is below 0, and others' versions are compared by age.
        """
        if kind == MESSAGE:
            if row is None and known.version and known.body is not None:
                self._rows.note(self.repository, kind, key, 0, known.body)
                self.again.add((kind, key))
            return
        version, body = 1, None
        if row is not None:
            version, body = row["version"], text_of(row["body"])
        if version > abs(known.version) or (version == known.version and body == known.body):
            return
        self._rows.note(self.repository, kind, key, -version, body)
        self.again.add((kind, key))

    def _put_again(self, ref: Ref) -> None:
        self._pending.add(ref)
        self.is_due = True

    # messages

    def _top_of(self, scope: str) -> str:
        if scope in self.tops:
            return scope
        return self.scope

    # tasks

    def _take_task(self, row: DocumentRow, known: Known | None, is_first: bool, has_lost: bool) -> None:
        ref = (TASK, row["key"])
        task = self._rows.task(row["key"])
        if task is not None and task.scope not in self.tops:  # of a tree that takes no part any more
            self._rows.move_task(task.id, self.scope)
            task = self._rows.task(task.id)
        columns = task_columns(row["body"], row["key"], task, self._top_of(task.scope if task else self.scope))
        if columns is None:
            return  # no task as this version knows them
        base, before = _base(known), None
        if task is not None:
            before = self._task_body(task, known)
        is_newer = (row["machine"] == self.machine and not is_first) or (has_lost and age(before) > age(columns))
        is_newer = is_newer or was_ended(before, base, columns)
        if before is not None and is_newer and canonical(before) != canonical(row["body"]):
            self._rows.note(self.repository, *ref, row["version"], canonical(row["body"]))
            self._put_again(ref)
            return
        taken = self._rows.take_task(self.repository, columns, self.scope, row["machine"])
        left_out = row["body"].get("files_left_out")
        told = task_body(taken, taken.scope, left_out if isinstance(left_out, int) else None)
        self._rows.note(self.repository, *ref, row["version"], canonical(told))
        if before is None or without_times(before) == without_times(told):
            return
        if canonical(before) != base:
            self.gave_way[ref] = 0 if ref in self.spared else self._tell_given_way(before, taken)
            if len(self.gave_way) > MOST_REMEMBERED:
                del self.gave_way[next(iter(self.gave_way))]
        elif before["assignee"] not in (None, taken.assignee) and taken.status not in TERMINAL:
            text = f"You have it no longer: the team has it as {self._standing(taken)}."
            self._rows.tell(before["assignee"], of_task(taken.id, f"[auto] {_titled(taken)}: {text}"))

    def unsay(self, ref: Ref) -> None:
        """Withdraw the message about a lost change inside a transaction: another part reports it."""
        message = self.gave_way.get(ref)
        if message:
            self._rows.unsay(message)
            self.gave_way[ref] = 0

    def _tell_given_way(self, before: dict[str, Any], task: Task) -> int:
        """Tell the session whose change to a task lost against the server's. Returns the message's id, or 0."""
        if before["status"] in (OPEN, BLOCKED) and before["assignee"] is None:
            return 0  # an automatic release, not a session's change
        whom = before["assignee"]
        if whom == task.assignee:
            whom = before["requester"]
        text = f"The team has it as {self._standing(task)}; its state {before['status']} was known here only."
        return self._rows.tell(whom, of_task(task.id, f"[auto] {_titled(task)}: {text} Look at it again."))

    def _standing(self, task: Task) -> str:
        if task.assignee is None or task.status in TERMINAL:
            return task.status
        holder = self._store.instances.get(task.assignee)
        return f"{task.status} by {named(holder.label or holder.id) if holder else task.assignee}"

    # values

    def _take_value(self, row: DocumentRow, known: Known | None, is_all: bool, is_first: bool, has_lost: bool) -> None:
        key, body = row["key"], row["body"]
        value = self._rows.value(self.scope, key)
        incoming = canonical({name: body[name] for name in VALUE_FIELDS})
        more: list[str] = []
        is_set = is_equal = False
        if value is not None:
            is_equal = canonical(value_body(value)) == incoming
            more, is_set = self._kept(value_body(value), is_equal, row, _base(known), is_all, is_first, has_lost)
        self._rows.note(self.repository, VALUE, key, row["version"], incoming)
        if more:
            columns = {**body, "value": joined([*items_of(body["value"]), *more])}
            self._rows.append_again(self.scope, key, columns, more)
        if more or is_set:
            self._put_again((VALUE, key))
        elif not is_equal:
            self._rows.take_value(self.scope, key, body, row["machine"])

    def _kept(
        self, before: dict[str, Any], is_equal: bool, row: DocumentRow, base: str | None,
        is_all: bool, is_first: bool, has_lost: bool,
    ) -> tuple[list[str], bool]:  # fmt: skip
        """Return the items of a value here that are to be appended to the server's, or True to set it as it is here.

        `before` is the value here, `base` the state at the last agreement; the others are as in `take`.
        """
        body = row["body"]
        if is_first and before["updated_at"] <= body["updated_at"]:
            # An append may fall between joining and the server's first answer.
            if self._rows.was_appended(self.scope, row["key"]):
                return missing_items(before["value"], body["value"]) or [], False
            return [], False
        if row["machine"] == self.machine:
            return [], not is_equal
        if body["owner_identity"] not in (None, before["owner_identity"]):
            return [], False  # it belongs to another identity by now
        if has_lost:
            lacking = missing_items(before["value"], body["value"])
            return lacking or [], lacking is None and before["updated_at"] > body["updated_at"]
        if canonical(before) == base:
            return [], False
        if not self._rows.was_appended(self.scope, row["key"]):
            return [], not is_equal
        since = json.loads(base or "{}").get("value")
        added = appended_since(since, before["value"])
        if not added:
            return [], not is_equal
        if is_all:  # the server may have these already from here, with its answer lost
            added = added[common_length(added, appended_since(since, body["value"])) :]
        return added, False


def _base(known: Known | None) -> str | None:
    """Return the state here at the last agreement with the server, as JSON text; None without one."""
    if known is None:
        return None
    return known.body


def _titled(task: Task) -> str:
    return f"{quoted(task.title)} (task_id: {task.id})"
