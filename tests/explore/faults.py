"""Defects that are planted into the product, in this process alone: each has to be found (tests/unit/explore)."""

from collections.abc import Callable
from typing import Any

from explore.recipes import Focus
from explore.world import KILL
from swarm_hook_core.check import rules
from swarm_hook_core.traces import meetings, turn_files
from swarm_mcp.store import database, lock_finder, locks


def look_before_note() -> None:
    """A call looks at the turns of others before it notes that it takes a file."""
    take = turn_files.TurnFiles.take

    def take_after_a_look(self: Any, *given: Any) -> None:
        found = self._found()
        self._found = lambda: found
        take(self, *given)

    turn_files.TurnFiles.take = take_after_a_look  # type: ignore[method-assign]


def turns_overlooked() -> None:
    """A lock is given without a look at the files that others have for their turns."""
    lock_finder.has_turn_files = locks.has_turn_files = lambda: False


def no_look_after_commit() -> None:
    """A lock that is committed is not compared with a write that has begun meanwhile."""
    locks.has_yielded = lambda *_given: False  # type: ignore[assignment]


def check_before_note() -> None:
    """Locks of others are looked for before a call notes that it takes its files."""
    order = list(rules.RULES)
    taking = next(rule for rule in order if rule.function is rules.turn_files)
    order.remove(taking)
    order.append(taking)
    rules.RULES = tuple(order)


def no_second_look() -> None:
    """A session that is alone does not look once more after its note."""
    leave = rules._leave

    def alone(check: Any, trail: Any) -> bool:
        leave(check, trail)
        return True

    rules._is_left_alone = alone


def long_wait() -> None:
    """A write waits for another session's as long as that takes."""
    meetings.WAIT_SECONDS = 60.0


def no_transaction() -> None:
    """Statements of the store are no transaction."""
    database.Turn.__enter__ = lambda self: self.database  # type: ignore[method-assign]
    database.Turn.__exit__ = lambda self, *_exception: None  # type: ignore[method-assign]


def early_answer() -> None:
    """A change is acknowledged before its transaction is committed."""
    enter, leave = database.Turn.__enter__, database.Turn.__exit__
    left: list[Any] = []

    def late_enter(self: Any) -> Any:
        finish()
        return enter(self)

    def late_exit(self: Any, *given: Any) -> None:
        if given[0] is not None:
            leave(self, *given)
        else:
            left.append(self)

    def finish() -> None:
        while left:
            leave(left.pop(), None, None, None)

    close = database.Database.close
    database.Turn.__enter__, database.Turn.__exit__ = late_enter, late_exit  # type: ignore[method-assign]

    def late_close(self: Any) -> None:
        finish()
        close(self)

    database.Database.close = late_close  # type: ignore[method-assign]


def _tuned(sql: str) -> None:
    tune = database.Database._tune

    def other(self: Any, connection: Any) -> None:
        tune(self, connection)
        connection.execute(sql)

    database.Database._tune = other  # type: ignore[method-assign]


def no_sync() -> None:
    """The store is not synced before a checkpoint."""
    _tuned("PRAGMA synchronous = OFF")


def read_before_lock() -> None:
    """A transaction reads before it has the store's lock."""
    through = database.Database.try_to
    database.Database.try_to = lambda self, sql: through(self, sql.replace("BEGIN IMMEDIATE", "BEGIN"))  # type: ignore[method-assign]


LOCKS, EDITS_AT_TURN, EDITS_AT_KEEP, MAIL, LOCK_AT_TURN = 0, 1, 2, 3, 10  # of recipes.MEETINGS
# Each with the plans that can show it. They are a part of all plans.
FAULTS: dict[str, tuple[Callable[[], None], Focus]] = {
    "look_before_note": (look_before_note, Focus(EDITS_AT_TURN)),
    "turns_overlooked": (turns_overlooked, Focus(LOCK_AT_TURN)),
    "check_before_note": (check_before_note, Focus(EDITS_AT_TURN)),
    "no_look_after_commit": (no_look_after_commit, Focus(LOCK_AT_TURN)),
    "no_second_look": (no_second_look, Focus(EDITS_AT_KEEP)),
    "long_wait": (long_wait, Focus(EDITS_AT_KEEP, (KILL,))),
    "no_transaction": (no_transaction, Focus(MAIL, (KILL,))),
    "read_before_lock": (read_before_lock, Focus(LOCKS)),
    "no_sync": (no_sync, Focus(LOCKS, (KILL,), has_power_cuts=True)),
    "early_answer": (early_answer, Focus(MAIL, (KILL,))),
}


def plant(name: str) -> Focus:
    """Plant a fault; return the plans that show it."""
    function, focus = FAULTS[name]
    function()
    return focus
