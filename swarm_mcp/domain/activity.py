"""The last moment that a session has seen, and the news since."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple


class Moment(NamedTuple):
    """The last moment that a session has seen: each field grows, or at least differs, with a change of its kind."""

    event: int
    message: int
    task: int
    instances: tuple[int, int]
    kv: int


class News(NamedTuple):
    """The news, and their moment. `locks` as ``wait_for_activity`` shows them."""

    moment: Moment
    messages: bool = False
    tasks: bool = False
    instances: bool = False
    kv: bool = False
    locks: tuple[dict[str, Any], ...] = ()

    @property
    def changes(self) -> list[str]:
        """The contract's names of the kinds of news."""
        found = {
            "new_messages": self.messages,
            "task_updates": self.tasks,
            "instance_changes": self.instances,
            "kv_updates": self.kv,
            "lock_updates": bool(self.locks),
        }
        return [name for name, is_new in found.items() if is_new]
