"""What a dispatch asks for, and who may ask."""

from __future__ import annotations

from typing import NamedTuple

from swarm_hook_core.environment import is_on, is_word
from swarm_hook_core.labels import token
from swarm_mcp.actor import TERMINAL
from swarm_mcp.errors import Refused

GENERALIST = "generalist"
DEFAULT_TYPE = "implement"
DEFAULT_ROLE = "implementer"


class Order(NamedTuple):
    """One dispatch. Empty values count as not given; `wait_seconds` None means the spawner's own patience.

    `promote` is True, False, or None to leave the work tracker to its policy; `files` are as the requester
    spells them. With `spawn` off nobody is started; `force_spawn` passes live workers over, and whoever says how a
    worker is to be started (`wants_new_worker`) passes those over that do not have the task yet. `resume` is a task that
    is there already (its id or the beginning of it), to be gone on with. `model` to `fresh` are for the run of a
    worker that this package supervises itself: `command` is a line for a shell-like splitting, `fresh` leaves the
    task's earlier session alone.
    """

    title: str
    message: str = ""
    description: str = ""
    type: str = DEFAULT_TYPE
    role: str = DEFAULT_ROLE
    files: tuple[str, ...] = ()
    priority: int = 0
    depends_on: tuple[str, ...] = ()
    idempotency_key: str = ""
    parent_task_id: str = ""
    approval_required: bool = False
    spawn: bool = True
    force_spawn: bool = False
    spawner: str = ""
    harness: str = ""
    cwd: str = ""
    label: str = ""
    name: str = ""
    wait_seconds: float | None = None
    placement: dict = {}
    completion_wait_seconds: float = 0.0
    nudge: bool = True
    force: bool = False
    promote: bool | None = None
    promote_identifier: str = ""
    resume: str = ""
    model: str = ""
    mode: str = ""
    effort: str = ""
    timeout_seconds: float = 0.0
    max_cost_usd: float = 0.0
    command: str = ""
    fresh: bool = False

    def wants_new_worker(self) -> bool:
        """Whether it says how a worker is to be started: what no session that lives already was started with."""
        said = (self.harness, self.command, self.model, self.mode, self.effort, self.timeout_seconds, self.max_cost_usd)
        return self.spawn and (self.force_spawn or any(said))

    def key(self, requester: dict) -> str:
        """What makes two dispatches the same one: the given key, else scope, identity, type, title and role."""
        if self.idempotency_key.strip():
            return self.idempotency_key.strip()
        import hashlib

        identity = token(requester["label"] or "", "identity")
        parts = (requester["scope"], f"identity:{identity}" if identity else "", self.type, self.title, self.role)
        return "dispatch:" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def scrubbed(order: Order) -> tuple[Order, bool]:
    """The order with its title and description as they may be kept for everybody to read; whether secrets were in it.

    The worker is told the message as it stands.
    """
    shown = order._replace(title=scrubbed_text(order.title), description=scrubbed_text(order.description))
    return shown, shown != order or scrubbed_text(order.message) != order.message


def scrubbed_text(text: str) -> str:
    """`text` without the secrets that this process knows."""
    import os

    from swarm_mcp.harness.scrub import Scrubber

    return Scrubber(os.environ).text(text)


def checked(order: Order) -> Order:
    """The order with its words trimmed. Raises Refused where it cannot be meant."""
    order = order._replace(
        title=order.title.strip(),
        role=order.role.strip().removeprefix("role:").lower() or DEFAULT_ROLE,
        type=order.type.strip() or DEFAULT_TYPE,
        message=order.message.strip() or order.description.strip() or order.title.strip(),
        description=order.description.strip() or order.message.strip() or order.title.strip(),
        spawner=order.spawner.strip(),
        harness=order.harness.strip(),
        label=" ".join(order.label.split()),
        name=" ".join(order.name.split()),
        resume=order.resume.strip(),
        model=order.model.strip(),
        mode=order.mode.strip(),
        effort=order.effort.strip(),
    )
    if not order.title and not order.resume:
        raise Refused("a dispatch needs a title")
    if not is_word(order.role):
        raise Refused(f"{order.role[:40]!r} is not a role (letters, digits, _ . -)")
    return order


def may_dispatch(requester: dict) -> bool:
    """Whether a session may hand out work to sessions that it starts."""
    return is_on("SWARM_MCP_ALLOW_SPAWN") or "mode:gateway" in (requester["label"] or "").split()


def require_gateway(requester: dict) -> None:
    """Raises Refused where `may_dispatch` says no."""
    if not may_dispatch(requester):
        raise Refused(
            f"dispatch is gateway-only: {requester['label'] or requester['id']} has no mode:gateway in its label."
            " Register the session that leads with it, or set SWARM_MCP_ALLOW_SPAWN=1 in a shell you trust;"
            " any session may hand over work with request_task"
        )


def may_go_wild(requester: dict) -> bool:
    """Whether a session may start workers whose harness checks nothing (mode yolo): a person, or one that is let."""
    return is_on("SWARM_ALLOW_YOLO") or requester.get("runtime") == TERMINAL
