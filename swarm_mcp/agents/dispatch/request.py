"""The request of a dispatch: its requester's rights, the command that would start its worker, its tracker."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from typing import Any, NamedTuple, Protocol

from swarm_hook_core.environment import is_on, is_word
from swarm_hook_core.untrusted_text import token
from swarm_mcp.agents.harness.adapter import left_out, require_possible
from swarm_mcp.agents.harness.environment import skill_folders
from swarm_mcp.agents.harness.query import EDIT, EFFORTS, MODES, READ_ONLY, YOLO, query_of
from swarm_mcp.agents.harness.record import read
from swarm_mcp.agents.harness.registry import chosen_name, get
from swarm_mcp.agents.harness.scrub import Scrubber
from swarm_mcp.agents.harness.servers import servers_in
from swarm_mcp.domain import MUTEX_PREFIX, Run, Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.runtimes.user_settings import Settings
from swarm_mcp.sessions.acting import TERMINAL, may_dispatch
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of

# Ways to start a worker: the interface of a spawner, the spawners by name, and the spawner of a user interface.
#
# A spawner only starts a worker. The worker shows up in the store, by registering under its reserved instance id.

# Name -> (module here, class). Each class is a `Spawner`.
SPAWNERS = {
    "process": ("processes", "Processes"),
    "swarm-ui": ("request", "UiShells"),
}
ALIASES = {"ui": "swarm-ui"}
# It starts a supervisor of ours (``supervision``): that gives the worker its instructions and ends its task.
SUPERVISED = "process"
RETIRED = ("tmux", "herdr")


class SpawnFailed(SwarmError):
    """No worker could be set going; the text says why, in one line."""


class WorkerSpec(NamedTuple):
    """A worker for a spawner to start.

    requester    row of the requesting session
    task_id      its task
    instance_id  reserved for it: it is to register with ``SWARM_MCP_INSTANCE_ID`` set to this
    role, harness, cwd, label, name, message, placement   as in a dispatch
    command      the words that start the harness; empty for its own
    title        of the task
    lock         name of the spawn lock under which it is started
    run          options of a supervised worker's run (``request.RUN_OPTIONS``)
    """

    requester: Session
    task_id: str
    instance_id: str
    role: str
    harness: str
    command: tuple[str, ...]
    cwd: str
    label: str = ""
    name: str = ""
    message: str = ""
    placement: dict[str, Any] = {}
    title: str = ""
    lock: str = ""
    run: dict[str, Any] = {}

    @property
    def label_words(self) -> str:
        """Return the words of its label that name its owner and its purpose."""
        identity = token(self.requester.label or "", "identity")
        return " ".join([*([f"identity:{identity}"] if identity else []), f"role:{self.role}", *self.label.split()])


class Spawner(Protocol):
    """One way to start workers. `patience` is how long a dispatch waits for the worker by default, in seconds."""

    patience: float

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Start `worker`, outside of any transaction. Returns facts to find it by; they also go into the answer.

        Called again for the same task after a crash, it must not start a second worker if it can see the first. Raises
        SpawnFailed.
        """

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return new facts about a started worker, None while it is starting.

        They go into the answer, with ``instance_id`` once the worker's is known. Raises SpawnFailed.
        """


def canonical(name: str) -> str:
    """Return a spawner's own name. Raises Refused for one that does not exist."""
    known = ALIASES.get(name, name)
    if known in RETIRED:
        raise Refused(
            f"{known} starts no workers any more: leave the spawner out, and watch with swarm-mcp worker logs TASK -f"
        )
    if known not in SPAWNERS:
        raise Refused(f'Unknown dispatch spawner "{name}". Registered spawners: {", ".join(SPAWNERS)}.')
    return known


def spawner(name: str) -> Spawner:
    """Return the spawner of a canonical name."""
    module, kind = SPAWNERS[name]
    full = f"swarm_mcp.agents.dispatch.{module}"
    __import__(full)
    made: Spawner = getattr(sys.modules[full], kind)()
    return made


KIND = "spawn_shell"


class UiShells:
    """The spawner ``swarm-ui``. It asks; the interface, if one runs, starts the shell."""

    patience = 5.0

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        row: Any = self._under_way(store, worker)
        if row is None:
            payload: dict[str, Any] = {"cwd": worker.cwd, "harness": worker.harness, "role": worker.role}
            payload.update(task_id=worker.task_id, instance_id=worker.instance_id)
            for name in ("label", "name", "message", "placement"):
                if getattr(worker, name):
                    payload[name] = getattr(worker, name)
            row = store.ui_commands.enqueue(worker.requester.scope, worker.requester.id, KIND, payload)
        return {"ui_command_id": row["id"], "instance_id": row["payload"]["instance_id"]}

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Implement ``spawners.Spawner``."""
        row = store.ui_commands.get(facts["ui_command_id"])
        if row is None:
            raise SpawnFailed(f"ui command {facts['ui_command_id']} is not there any more")
        if row.status == "failed":
            raise SpawnFailed(row.error or f"ui command {row.id} failed and did not say why")
        if isinstance(row.result, dict):
            known = row.result.get("instance_id")
        else:
            known = None
        worker = store.instances.live(known if isinstance(known, str) else facts["instance_id"])
        if worker:
            return {"instance_id": worker.id, "ui_command": row}
        if row.status == "done":
            return {"ui_command": row}
        return None

    def _under_way(self, store: Store, worker: WorkerSpec) -> dict[str, Any] | None:
        """The order for the same task of a dispatcher that was killed right after it had put it there."""
        for status in ("pending", "running"):
            for row in store.ui_commands.recent(worker.requester.scope, status, -1):
                payload = row.payload
                same = isinstance(payload, dict) and payload.get("task_id") == worker.task_id
                if same and row.kind == KIND and isinstance(payload.get("instance_id"), str):
                    return row
        return None


GENERALIST = "generalist"
DEFAULT_TYPE = "implement"
DEFAULT_ROLE = "implementer"


class DispatchRequest(NamedTuple):
    """One dispatch, as a tool call or a command line asks for it. Empty values count as not given.

    message, description   the worker's instructions; the task's text. Each defaults to the other, then to the title
    files                  as the requester spells them
    spawn, force_spawn     False: start no worker; True: start a worker even if one lives
    wait_seconds           for a started worker to come up; None: the spawner's default
    promote                True, False, or None to leave the work tracker to its policy
    resume                 id, or the beginning of the id, of a task to go on with after its worker has gone
    model ... fresh        options of a supervised worker's run (``spawners.SUPERVISED``); `command` is one
                           line, split as a shell does; `fresh` starts without the session of the task's earlier run
    append_system_prompt, skills, output_schema, env, mcp_servers   further options; skills are folders, servers
                           stand as in a ``.mcp.json``, with ``${NAME}`` of `env` or of this process
    retries                further attempts of the worker after a failed run, with the reason told
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
    placement: dict[str, Any] = {}
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
    retries: int = 0
    append_system_prompt: str = ""
    skills: tuple[str, ...] = ()
    output_schema: dict[str, Any] = {}
    env: dict[str, Any] = {}
    mcp_servers: dict[str, Any] = {}

    @property
    def wants_new_worker(self) -> bool:
        """Return True if it has options for a new worker: live sessions were started without them."""
        said = (self.harness, self.command, self.model, self.mode, self.effort, self.timeout_seconds, self.max_cost_usd,
                self.append_system_prompt, self.skills, self.output_schema, self.env, self.mcp_servers)  # fmt: skip
        return self.spawn and (self.force_spawn or any(said))

    def key(self, requester: Session, repository: str = "") -> str:
        """Return the key of equal dispatches: the given key, else scope, identity, type, title and role.

        `repository`: the name of the scope's repository that is equal on all machines; empty if they share nothing.
        """
        if self.idempotency_key.strip():
            return self.idempotency_key.strip()
        identity = token(requester.label or "", "identity")
        place = repository or requester.scope
        parts = (place, f"identity:{identity}" if identity else "", self.type, self.title, self.role)
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
        append_system_prompt=request.append_system_prompt.strip(),
        env={str(name): str(value) for name, value in request.env.items()},
    )
    if not request.title and not request.resume:
        raise Refused("a dispatch needs a title")
    if not is_word(request.role):
        raise Refused(f"{request.role[:40]!r} is not a role (letters, digits, _ . -)")
    return request


def public_texts(request: DispatchRequest) -> PublicTexts:
    """Return the texts of a dispatch without secrets."""
    scrubbed = Scrubber(os.environ).text
    return PublicTexts(scrubbed(request.title), scrubbed(request.description), scrubbed(request.message))


def public_text(text: str) -> str:
    """Return one text without the secrets that this process knows."""
    return Scrubber(os.environ).text(text)


# ------------------------------------------------------------------ permission


NO_YOLO = "mode yolo is for a person at a terminal, or where SWARM_ALLOW_YOLO=1 allows it"


def require_gateway(requester: Session) -> None:
    """Raise Refused for a session that may not dispatch."""
    if not may_dispatch(requester):
        raise Refused(
            f"dispatch is gateway-only: {name_of(requester)} has no mode:gateway in its label."
            " Register the session that leads with it, or set SWARM_MCP_ALLOW_SPAWN=1 in a shell you trust;"
            " any session may hand over work with request_task"
        )


def may_use_yolo(requester: Session) -> bool:
    """Return True if a session may start workers in mode yolo: a person, or any under SWARM_ALLOW_YOLO."""
    return is_on("SWARM_ALLOW_YOLO") or requester.runtime == TERMINAL


def require_own_limits(store: Store, requester: Session, request: DispatchRequest) -> None:
    """Raise Refused where `requester` is a supervised worker and asks for more than its own run may do."""
    run = store.runs.of_instance(requester.id)
    if run is None:
        return
    own = mode_of(run)
    asked = request.mode or EDIT
    if MODES.index(asked) > MODES.index(own):
        raise Refused(f"a worker of mode {own} can have none of mode {asked} started; ask for mode {own}")
    if own == YOLO:
        return
    if request.command:
        raise Refused(f"a worker of mode {own} cannot say which command is started")
    if request.mcp_servers or request.env:  # a server is a command, and PATH finds one
        raise Refused(f"a worker of mode {own} can give another neither MCP servers nor variables")


def mode_of(run: Run) -> str:
    """Return the mode of a run, read from the beginning of its record; the default where that cannot be read."""
    mode = _asked_of(run).get("mode")
    if mode in MODES:
        return str(mode)
    return EDIT


def _asked_of(run: Run) -> dict[str, Any]:
    """Return the query of a run, from the first line of its record; empty if that is unreadable."""
    try:
        return next(read(run.record or ""), {})
    except OSError:  # the record is gone
        return {}


def as_before(request: DispatchRequest, harness: str, last: Run | None) -> DispatchRequest:
    """Return the request with the options of its task's `last` run, except for those it sets itself.

    Folder and read-only mode belong to the task; model and effort carry over to the same harness only.
    """
    if last is None:
        return request
    told = _asked_of(last)
    same = last.harness == harness
    return request._replace(
        cwd=request.cwd or (last.cwd if os.path.isdir(last.cwd or "") else ""),
        mode=request.mode or (READ_ONLY if told.get("mode") == READ_ONLY else ""),
        model=request.model or (str(told.get("model") or "") if same else ""),
        effort=request.effort or (str(told.get("effort") or "") if same else ""),
    )


# The fields of a request that say how a supervised worker's run goes.
RUN_OPTIONS = (
    "model", "mode", "effort", "timeout_seconds", "max_cost_usd", "fresh", "retries", "append_system_prompt",
    "skills", "output_schema", "env", "mcp_servers",
)  # fmt: skip


def run_facts(request: DispatchRequest) -> dict[str, Any]:
    """Return the run's options for a supervisor: the given fields, in JSON's types.

    Raises Refused for an invalid server.
    """
    facts = {name: getattr(request, name) for name in RUN_OPTIONS if getattr(request, name)}
    if request.mcp_servers:
        servers = servers_in(request.mcp_servers, {**os.environ, **request.env})
        facts["mcp_servers"] = {name: server.to_dict() for name, server in servers.items()}
    return facts


class WorkerCommand(NamedTuple):
    """`words` start the harness; empty for a supervised harness that knows its own. `warnings`: a line for each thing
    that the request asks for and the harness ignores."""

    spawner: str
    harness: str
    words: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_supervised(self) -> bool:
        """Return True if a supervisor of ours looks after the worker."""
        return self.spawner == SUPERVISED


def worker_command(request: DispatchRequest, requester: Session) -> WorkerCommand:
    """Return the command for a request. Raises Refused where no worker could be started like this."""
    settings = Settings(token(requester.label or "", "identity"))
    spawner = canonical(request.spawner or settings.spawner)
    harness = request.harness or settings.harness(requester.label or "")
    if spawner != SUPERVISED:
        if any(getattr(request, name) for name in (*RUN_OPTIONS, "command")):
            raise Refused(
                f"{spawner} starts a harness as it is: model, mode, effort, limits, command, words, skills, schema,"
                f" variables, servers and fresh are for {SUPERVISED}"
            )
        return WorkerCommand(spawner, harness, tuple(settings.harness_command(harness)))
    if request.command:
        try:
            words = tuple(shlex.split(request.command))
        except ValueError as error:
            raise Refused(f"--command cannot be split into words: {error}") from None
        if not words:
            raise Refused("--command has no words")
    else:
        words = tuple(settings.harness_command(harness))
    if not request.command and words == (harness,):
        words = ()
    if not request.spawn:
        return WorkerCommand(spawner, harness, words)
    harness = _harness_name(harness, words)
    if request.mode not in ("", *MODES):
        raise Refused(f"unknown mode {request.mode[:40]!r}; choose from {', '.join(MODES)}")
    if request.effort not in EFFORTS:
        raise Refused(f"unknown effort {request.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
    if request.mode == YOLO and not may_use_yolo(requester):
        raise Refused(NO_YOLO)
    query = query_of("", {**run_facts(request), "cwd": request.cwd or requester.directory})
    skill_folders(query)
    require_possible(get(harness), query)
    return WorkerCommand(spawner, harness, words, tuple(left_out(get(harness), query)))


def _harness_name(name: str, words: tuple[str, ...]) -> str:
    """The harness by its own name. Raises Refused."""
    harness = chosen_name(name)
    get(harness).require_command(words)
    return harness


# The decision if a dispatched task belongs in the work tracker. It depends on the given facts alone and has no effect.
#
# The first applicable rule decides. Necessary conditions come first, then the person's word, then the task's own text,
# then the repository's settings, and last the size.
#
# rule                     decision                        precedence
# no identity              missing_identity_label
# no tracker               no_tracker_configured
# the tracker is another's identity_mismatch
# told not to              operator_suppressed             operator
# an entry was named       explicit_identifier    link     operator
# only coordination files  synthetic_resource              task
# told to                  operator_requested     create   operator
# its text names an entry  explicit_identifier    link     task
# the parent has an entry  parent_binding_inherited link   parent
# the parent has none      parent_routine_skipped          parent
# review, other            type_not_promotable             type
# "always"                 repo_default_always    create   repository
# "explicit-only"          repo_explicit_only              repository
# large enough             medium_or_larger       create   size
# else                     trivial_inline_edit             size

# A review is a step of the task that it reviews, and "other" is housekeeping: neither is work of its own.
PROMOTABLE_TYPES = ("implement", "fix", "test", "research")
LONG_TITLE, LONG_DESCRIPTION = 60, 80  # characters; above these, work is of medium size


class Parent(NamedTuple):
    """The task that a task is part of: its need of a tracker entry, and its entry."""

    tracked: bool
    entry: dict[str, Any] | None = None


class Work(NamedTuple):
    """The facts of a decision.

    identity      name of the requester's identity, may be empty
    tracker       value of the configured tracker: ``{provider, [identity, default_promotion,
                  promotable_types]}`` or the text ``provider[:server]``; None without one
    promote       the requester's word: True, False, or None for nothing
    identifier    the entry that the requester named, may be empty
    mentioned     the entry that the task's own text names, may be empty
    """

    identity: str
    tracker: object
    type: str
    title: str
    description: str = ""
    files: tuple[str, ...] = ()
    promote: bool | None = None
    identifier: str = ""
    mentioned: str = ""
    parent: Parent | None = None


def decide(work: Work) -> dict[str, Any]:
    """Return ``{promote, reason, identity, provider}``, and, as they apply, ``mode``, ``precedence``, ``identifier``,
    ``existing_binding`` (the parent's entry, shared by the task).
    """
    provider = provider_of(work.tracker)
    if isinstance(work.tracker, dict):
        settings = work.tracker
    else:
        settings = {}

    def answer(promote: bool, reason: str, precedence: str = "", **more: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {"promote": promote}
        if promote:
            shown["mode"] = "link" if more.get("identifier") else "create"
        shown.update(reason=reason, identity=work.identity or None, provider=provider or None)
        if precedence:
            shown["precedence"] = precedence
        return {**shown, **more}

    def deny(reason: str, precedence: str = "") -> dict[str, Any]:
        return answer(False, reason, precedence)

    owner = settings.get("identity")
    if not work.identity:
        return deny("missing_identity_label")
    if not provider:
        return deny("no_tracker_configured")
    if isinstance(owner, str) and owner.removeprefix("identity:") not in ("", work.identity):
        return deny("identity_mismatch")
    if work.promote is False:
        return deny("operator_suppressed", "operator")
    if work.identifier:
        return answer(True, "explicit_identifier", "operator", identifier=work.identifier)
    if work.files and all(path.startswith(MUTEX_PREFIX) for path in work.files):
        return deny("synthetic_resource", "task")
    if work.promote:
        return answer(True, "operator_requested", "operator")
    if work.mentioned:
        return answer(True, "explicit_identifier", "task", identifier=work.mentioned)
    if work.parent and work.parent.entry:
        entry = work.parent.entry
        return answer(
            True, "parent_binding_inherited", "parent", identifier=entry["identifier"], existing_binding=entry
        )
    if work.parent and not work.parent.tracked:
        return deny("parent_routine_skipped", "parent")
    types = settings.get("promotable_types")
    if work.type not in (types if isinstance(types, list) else PROMOTABLE_TYPES):
        return deny("type_not_promotable", "type")
    default = settings.get("default_promotion")
    if default == "always":
        return answer(True, "repo_default_always", "repository")
    if default == "explicit-only":
        return deny("repo_explicit_only", "repository")
    large = len(work.files) > 1 or len(work.description) > LONG_DESCRIPTION or len(work.title) > LONG_TITLE
    if large:
        return answer(True, "medium_or_larger", "size")
    return deny("trivial_inline_edit", "size")


def provider_of(tracker: object) -> str:
    """Return the provider's name in a configured tracker's value; empty if it names no usable one."""
    if isinstance(tracker, dict):
        tracker = tracker.get("provider")
    if isinstance(tracker, str):
        name = tracker.partition(":")[0].strip()
    else:
        name = ""
    if is_word(name):
        return name
    return ""
