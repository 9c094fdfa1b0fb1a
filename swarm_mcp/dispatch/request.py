"""What a dispatch asks for, and who may ask for what.

A worker is held to its mode by its harness. A worker that it starts in turn would be held to that one's own mode, so
what a worker asks for is compared here with what it may do itself. This keeps agents to what their tools allow; who has
a shell has other ways.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.environment import is_on, is_word
from swarm_hook_core.labels import token
from swarm_mcp.acting_session import TERMINAL
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused
from swarm_mcp.harness.query import EDIT, MODES, YOLO

GENERALIST = "generalist"
DEFAULT_TYPE = "implement"
DEFAULT_ROLE = "implementer"


class DispatchRequest(NamedTuple):
    """One dispatch, as a tool call or a command line asks for it. Empty values count as not given.

    message, description   what the worker is told; what the task says. Each defaults to the other, then to the title
    files                  as the requester spells them
    spawn, force_spawn     False: start nobody; True: start a worker even if one lives
    wait_seconds           for a started worker to come up; None: as long as its spawner needs
    promote                True, False, or None to leave the work tracker to its policy
    resume                 id, or the beginning of the id, of a task whose worker has gone and that is to go on
    model ... fresh        how the run of a worker that is supervised (``spawners.SUPERVISED``) goes; `command` is one
                           line, split as a shell does; `fresh` leaves the session of the task's earlier run alone
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

    @property
    def wants_new_worker(self) -> bool:
        """Whether it says how a worker is to be started: sessions that already live were not started like that."""
        said = (self.harness, self.command, self.model, self.mode, self.effort, self.timeout_seconds, self.max_cost_usd)
        return self.spawn and (self.force_spawn or any(said))

    def key(self, requester: Session) -> str:
        """Return what makes two dispatches the same one: the given key, else scope, identity, type, title and role."""
        if self.idempotency_key.strip():
            return self.idempotency_key.strip()
        import hashlib

        identity = token(requester.label or "", "identity")
        parts = (requester.scope, f"identity:{identity}" if identity else "", self.type, self.title, self.role)
        return "dispatch:" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class PublicTexts(NamedTuple):
    """The texts of a dispatch as others may read them; secrets that this process knows are masked."""

    title: str
    description: str
    message: str


def checked(request: DispatchRequest) -> DispatchRequest:
    """Return the request with its words trimmed and its defaults filled in. Raises Refused for a senseless one."""
    title, message, description = request.title.strip(), request.message.strip(), request.description.strip()
    request = request._replace(
        title=title,
        role=request.role.strip().removeprefix("role:").lower() or DEFAULT_ROLE,
        type=request.type.strip() or DEFAULT_TYPE,
        message=message or description or title,
        description=description or message or title,
        spawner=request.spawner.strip(),
        harness=request.harness.strip(),
        label=" ".join(request.label.split()),
        name=" ".join(request.name.split()),
        resume=request.resume.strip(),
        model=request.model.strip(),
        mode=request.mode.strip(),
        effort=request.effort.strip(),
    )
    if not request.title and not request.resume:
        raise Refused("a dispatch needs a title")
    if not is_word(request.role):
        raise Refused(f"{request.role[:40]!r} is not a role (letters, digits, _ . -)")
    return request


def public_texts(request: DispatchRequest) -> PublicTexts:
    """Return the texts of a dispatch without secrets."""
    from swarm_mcp.harness.scrub import Scrubber

    scrubbed = Scrubber(os.environ).text
    return PublicTexts(scrubbed(request.title), scrubbed(request.description), scrubbed(request.message))


def public_text(text: str) -> str:
    """Return one text without the secrets that this process knows."""
    from swarm_mcp.harness.scrub import Scrubber

    return Scrubber(os.environ).text(text)


# ------------------------------------------------------------------ permission


def may_dispatch(requester: Session) -> bool:
    """Return whether a session may hand out work to sessions that it starts."""
    return is_on("SWARM_MCP_ALLOW_SPAWN") or "mode:gateway" in (requester.label or "").split()


def require_gateway(requester: Session) -> None:
    """Raise Refused for a session that may not dispatch."""
    if not may_dispatch(requester):
        raise Refused(
            f"dispatch is gateway-only: {requester.label or requester.id} has no mode:gateway in its label."
            " Register the session that leads with it, or set SWARM_MCP_ALLOW_SPAWN=1 in a shell you trust;"
            " any session may hand over work with request_task"
        )


def may_use_yolo(requester: Session) -> bool:
    """Return whether a session may start workers in mode yolo: a person, or any where SWARM_ALLOW_YOLO is on."""
    return is_on("SWARM_ALLOW_YOLO") or requester.runtime == TERMINAL


def require_own_limits(store, requester: Session, request: DispatchRequest) -> None:
    """Raise Refused where `requester` is a supervised worker and asks for more than its own run may do."""
    run = store.runs.of_instance(requester.id)
    if run is None:
        return
    own = mode_of(run)
    asked = request.mode or EDIT
    if MODES.index(asked) > MODES.index(own):
        raise Refused(f"a worker of mode {own} can have none of mode {asked} started; ask for mode {own}")
    if request.command and own != YOLO:
        raise Refused(f"a worker of mode {own} cannot say which command is started")


def mode_of(run: Run) -> str:
    """Return the mode of a run, read from the beginning of its record; the default where that cannot be read."""
    from swarm_mcp.harness.record import read

    try:
        first = next(read(run.record or ""), {})
    except OSError:
        return EDIT
    return first["mode"] if first.get("mode") in MODES else EDIT
