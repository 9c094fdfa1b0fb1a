"""What the command line and the MCP server ask of a store, whatever keeps it.

The embedded store (``connection.Store`` and the groups beside it) is the one implementation today.
Rows are dicts with the contract's column names; times are Unix seconds. Methods raise
``SwarmError``s, in particular ``StoreUnavailable``.
"""

from __future__ import annotations

from typing import Protocol


class Instances(Protocol):
    """Sessions that take part."""

    def register(self, request) -> dict:
        """Add or adopt an instance (``registration.Registration``); its row."""

    def remove(self, instance_id: str, reason: str) -> bool:
        """Remove an instance and whatever it holds; whether it was there."""

    def get(self, instance_id: str) -> dict | None:
        """One row."""

    def live(self, instance_id: str) -> dict | None:
        """One row, None where that session has gone."""

    def in_scope(self, scope: str) -> list[dict]:
        """Live rows of a scope, in order of registration."""

    def of_session(self, runtime: str, session_id: str) -> dict | None:
        """The row of a runtime's session."""


class Locks(Protocol):
    """Files that are held."""

    def acquire(self, instance: dict, file: str, note: str, exclusive: bool, task_id: str | None) -> dict:
        """Take a lock; its row. Raises LockRefused."""

    def release(self, instance: dict, file: str) -> int:
        """Give up this instance's lock on a file; how many rows went."""

    def held(self, scope: str | None, viewer_identity: str) -> list[dict]:
        """Locks of a scope with their owners as `viewer_identity` may see them, oldest first."""

    def on(self, file: str) -> list[dict]:
        """Locks on one file, in whatever scope."""


class Logical(Protocol):
    """Locks that hold in every work tree of a repository."""

    def meeting(self, reach) -> list[dict]:
        """Locks that meet `reach` through another work tree, live or not."""

    def covering(self, reach) -> list[dict]:
        """Locks of other work trees that hold the path of `reach` here, live or not."""


class LockQueue(Protocol):
    """Who waits for which locks."""

    def ahead_of(self, instance: dict, wanted) -> dict | None:
        """The live waiter that has a right to some of what is wanted before this request."""


class Leases(Protocol):
    """Locks that lapse."""

    def renew(self, instance_id: str) -> None:
        """A sign of life of this session, which keeps its locks."""

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        """Renew a session's locks if it is time; seconds until it will be again, None where it has no lease."""

    def renew_lock(self, instance: dict, file: str, agent: str, fence: int | None, ttl: float | None) -> dict:
        """Renew one lock; its row. Raises Refused where that grant is not this session's any more."""

    def next_due(self) -> float | None:
        """Seconds until somebody is to be warned, or a lease is over; None where there is no lease."""

    def some(self) -> bool:
        """Warn of leases that are nearly over, let go what has lapsed; whether there was any."""


class Lapses(Protocol):
    """Locks that lapsed under their holders."""

    def overtaken(self, instance_id: str) -> list[dict]:
        """What this session held until it lapsed, and somebody else has had since."""


class Notices(Protocol):
    """What a session's next hook tells its model."""

    def post(self, instance: dict, content: str, file: str, sender: str) -> int:
        """A message that the next hook is to tell; its id."""

    def take(self, instance: dict) -> list[dict]:
        """Claim what there is to tell."""


class Handovers(Protocol):
    """A lock's way to another holder."""

    def transfer(self, instance: dict, file: str, to_id: str, agent: str, fence: int | None, note: str) -> dict:
        """Give a lock to another session; its row."""

    def request(self, instance: dict, file: str, reason: str) -> list[dict]:
        """Ask whoever holds a file for it; the locks in the way."""

    def steal(self, instance: dict, file: str, reason: str, force: bool, ttl: float | None) -> dict:
        """Take a lock from who has gone, or with `force` from who has not; ``{lock, taken}``."""


class KeyValues(Protocol):
    """Shared values, owned by the identity that first set them. Writes raise Refused where that is another one."""

    def items(self, scope: str, prefix: str, viewer: str | None) -> list[dict]:
        """Keys with their times, as far as `viewer` (None: everybody) may read them."""

    def get(self, scope: str, key: str, viewer: str | None) -> dict | None:
        """One value."""

    def put(self, instance: dict, key: str, value: str) -> None:
        """Set a value."""

    def append(self, instance: dict, key: str, value: str) -> int:
        """Add one JSON value to a list; its length."""

    def delete(self, instance: dict, key: str) -> bool:
        """Remove a key; whether it was there."""


class Messages(Protocol):
    """Mail between sessions. What is taken counts as read once it is acknowledged."""

    def send(self, sender: dict, recipient_id: str, content: str) -> int:
        """One message; its id. Raises UnknownInstance or Refused."""

    def broadcast(self, sender: dict, content: str) -> list[str]:
        """One message to every session of the scope that the sender may meet; their ids."""

    def take(self, instance: dict, limit: int, about: str) -> list[dict]:
        """Unread messages for this session (`about`: a task's id, or empty), nobody else's until acknowledged."""

    def acknowledge(self, ids: list[int]) -> None:
        """Mark messages read: the answer with them has been written."""

    def put_back(self, ids: list[int]) -> None:
        """Leave messages to the next poll: the answer with them will not be written."""

    def peek(self, instance: dict, limit: int) -> list[dict]:
        """What `take` would give, left where it is."""

    def recent(self, scope: str, limit: int, to: str, sender: str, viewer: str) -> list[dict]:
        """The newest messages of a scope, oldest first, as identity `viewer` may read them."""


class Tasks(Protocol):
    """Work that sessions hand to each other. What the rules forbid raises Refused.

    A change returns the messages that it stored for others, ``[(recipient id, text)]``, for waking them.
    """

    def get(self, scope: str, task_id: str) -> dict | None:
        """One task, whoever may see it."""

    def seen(self, viewer: dict, task_id: str) -> dict | None:
        """One task as far as the viewer may see it."""

    def listed(self, viewer: dict, status: str, assignee: str, requester: str) -> list[dict]:
        """The viewer's scope's tasks that it may see, most urgent first."""

    def in_order(self, viewer: dict, status: str) -> list[dict]:
        """The same in order of creation."""

    def counts(self, viewer: dict) -> dict[str, int]:
        """How many of them there are, by status."""

    def current(self, viewer: dict, include_terminal: bool, terminal_limit: int) -> dict:
        """The same by status, with the number of those that ended."""

    def claimable(self, instance: dict, limit: int) -> list[dict]:
        """The next few that `claim_next` would choose from."""

    def request(self, requester: dict, spec: dict, notify: bool) -> dict:
        """Create a task, or find the one with its idempotency key: ``{task, existing, notices}``."""

    def request_batch(self, requester: dict, specs: list[dict]) -> dict:
        """Create several or none: ``{tasks, notices}``."""

    def claim(self, instance: dict, task_id: str, ignore_unread: bool) -> dict:
        """Begin one task: ``{task, prior_status}``."""

    def claim_next(self, instance: dict, types: list[str] | None, files: list[str] | None, ignore_unread: bool) -> dict:
        """Begin the most urgent one that fits."""

    def reserve(self, task_id: str, worker: dict) -> dict:
        """Keep an open task for a worker; the task."""

    def report_progress(self, actor: dict, task_id: str, summary: str, blocked_reason, expected_next_update_at) -> dict:
        """Say how far a task is; its progress columns."""

    def approve(self, actor: dict, task_id: str) -> dict:
        """Let a task begin that waits for approval: ``{task, notices}``."""

    def end(self, actor: dict, task_id: str, status: str, result: str | None) -> dict:
        """Take a task to its end: ``{task, notices, unblocked}``."""

    def complete(self, actor: dict, task_id: str, record: dict, status: str) -> dict:
        """`end` with a structured result, and that as ``result`` besides."""


class Planner(Protocol):
    """Which session owns a scope's plan."""

    def owner(self, scope: str) -> dict | None:
        """``{instance_id, label, assigned_at}``, None where nobody plans."""


class Tracker(Protocol):
    """The work tracker of an identity, and its entries for tasks."""

    def of(self, instance: dict) -> dict | None:
        """The tracker that this session's work is tracked in: ``{key, value, updated_at}``."""

    def entry(self, instance: dict, provider: str, task_id: str) -> dict | None:
        """The entry that a task belongs to."""

    def link(self, instance: dict, provider: str, task_id: str, identifier: str, url: str) -> dict:
        """Remember a task's entry; what was stored."""


class Activity(Protocol):
    """What has changed since when, as one session may know it."""

    def moment(self, instance: dict):
        """Now (``activity.Moment``)."""

    def since(self, instance: dict, before):
        """What is new since `before` (``activity.News``), with the moment up to which."""

    def sweep(self) -> None:
        """Notice what nobody announces: sessions that died, locks that went without a word."""


class Denials(Protocol):
    """Who was kept from which file, to be told when it is free."""

    def report(self, instance: dict, file: str, holder_id: str, tried) -> bool:
        """Write down a refusal that happened elsewhere (`tried`: an ``attempts.Attempt``, or by which tool).

        Whether somebody still holds the file.
        """


class Alterations(Protocol):
    """Locked files that changed under their holders, and what was restored of them."""

    def report(self, writer: dict | None, tool: str, command: str, changes: list[dict]) -> list[int]:
        """Write down what changed while a session's call ran, and tell the holders; the new rows' ids."""

    def restored(self, restorer: dict | None, file: str, kept: str, source: str, scope: str) -> int:
        """Write down that a file was brought back, and tell who holds it; the row's id."""

    def of(self, file: str, keys: list[str]) -> list[dict]:
        """All that happened to a file, by this name or by any of these keys, newest first."""


class Runs(Protocol):
    """Children that agent command lines were started as."""

    def begin(self, spec: dict) -> dict:
        """Write down a run that this process will supervise; its row."""

    def update(self, run_id: str, **columns: object) -> dict | None:
        """Change columns of a run; its row."""

    def ask(self, run_id: str, control: str) -> dict:
        """Ask the supervisor to cancel, pause or resume; the row. Raises Refused."""

    def get(self, run_id: str) -> dict | None:
        """One run."""

    def find(self, scope: str, reference: str) -> dict:
        """The newest run with this id, of this task, or whose id or task's begins so. Raises Refused."""

    def of_task(self, scope: str, task_id: str) -> list[dict]:
        """The runs of a task, newest first."""

    def recent(self, scope: str, limit: int) -> list[dict]:
        """The newest runs, of one scope or of all, newest first."""

    def live(self, scope: str) -> list[dict]:
        """Runs that have not ended, newest first."""

    def session_of(self, task_id: str, harness: str) -> dict | None:
        """What it takes to continue the last session of a task in that harness."""

    def admit(self, instance_id: str, client: tuple[int, str]) -> dict | None:
        """The run under way of that instance, if that process is its child."""

    def take_back(self, instance_id: str) -> bool:
        """A session of the run's child has ended; whether the instance is a run's."""


class UiCommands(Protocol):
    """Orders to an external user interface."""

    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> dict:
        """Add one; its row."""

    def get(self, command_id: int) -> dict | None:
        """One row."""

    def recent(self, scope: str, status: str, limit: int) -> list[dict]:
        """The newest rows of a scope, newest first."""

    def outcome(self, command_id: int, seconds: float) -> dict:
        """The row once the order is carried out or has failed, or as it is after so long."""
