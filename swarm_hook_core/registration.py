"""Registration of a session: its facts, the coordinator's command that takes them, and a session that is not known."""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import clock, environment, session_memory, untrusted_text
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import chosen_command, command, find_on_path
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup import FirstLook, Held, LockReader, Session, ascii_lower
from swarm_hook_core.lookup.sqlite import StoreReader, whole
from swarm_hook_core.paths import git_root, key_of
from swarm_hook_core.process import Result, client_process, host_id, run
from swarm_hook_core.state import client_note, has_turn_files, local_store, name_of, record, write_private
from swarm_hook_core.wildcards import Cover


class NotRegistered(Exception):
    """The coordinator did not take the session; the message says why, or, at a session's start, all there is to say.

    `why` is the reason alone.
    """

    def __init__(self, message: str, why: str = ""):
        Exception.__init__(self, message)
        self.why = why or message


def described(config: RuntimeConfig, event: SessionEvent, state: str) -> dict[str, Any]:
    """Return the session of `event` as it is registered: its names, its folder, its `state` and its lease.

    client     pid and start time of the process that ends the session by its own end; ``(0, "")`` if unknown
    turn_over  the end of a turn (ns); 0 if the event is no such end

    Settings that are not set are empty.
    """
    prefix, session_id, cwd = config.env_prefix, event.session_id, event.cwd or os.getcwd()
    scope = environment.scope(prefix)
    return {
        "runtime": config.runtime_name,
        "session_id": session_id,
        "directory": cwd,
        "label": untrusted_text.compose(
            config.runtime_name,
            session_id,
            environment.identity(prefix),
            environment.mode(prefix),
            environment.role(prefix, cwd, scope),
            environment.label_override(prefix),
        ),
        "scope": scope,
        "file_root": environment.file_root(prefix),
        "lease_seconds": environment.lease_seconds(prefix),
        "state": state,
        "source": event.source,
        "client": client_process(config.client_marks),
        "pane": environment.pane(),
        "turn_over": 0,
    }


def note_client(config: RuntimeConfig, event: SessionEvent, pid: int) -> None:
    """Note the client process `pid` and the session's log: they tell the ends of its calls (``traces.transcript``).

    Raises OSError.
    """
    name = f"{name_of(config.runtime_name)}.{name_of(event.session_id)}"
    write_private(client_note(name), f"{pid} {config.transcript or '-'} {event.transcript}")


# Registration of sessions through the coordinator's command, which brings its own store.


class CommandRegistrar:
    """Registers and ends the sessions of the runtime `config`. `coordinator` is the command's argv, if it is known.

    ``swarm_mcp.hooks.session_hooks`` has the same methods without a command; `leave_running` means nothing there.
    """

    def __init__(self, config: RuntimeConfig, coordinator: list[str] | None = None):
        self.config = config
        self._coordinator = coordinator
        self.has_mail = False  # True if the session registered last has unread messages

    @property
    def command(self) -> list[str]:
        """Return the coordinator's argv prefix; empty if it is not installed."""
        return self._coordinator or command()

    @staticmethod
    def reader() -> None:
        """Return None: no store is open in this process."""

    def register(
        self,
        session: dict[str, Any],
        seconds: float,
        patience: float,
        tell: bool = False,
        leave_running: bool = False,
    ) -> dict[str, Any]:
        """Register or renew `session` (``registration.described``) and return the coordinator's row, with ``id``.

        That may take `seconds`, of them `patience` for a busy store; with `leave_running` the command may go on after
        that. With `tell` the row's ``messages`` are words for the model, and count as told. Raises NotRegistered.
        """
        argv = self.command
        if not argv:
            raise NotRegistered(_missing())
        lease, (pid, started) = session["lease_seconds"], session["client"]
        plain = [*argv, "register", session["directory"], "--label", session["label"], "--json"]
        plain += _flags(session, "scope", "file_root") + (["--lease-seconds", str(lease)] if lease else [])
        full = [*plain, *_flags(session, "runtime", "session_id", "state", "source", "pane")]
        full += ["--client", f"{pid}:{started}"] if pid else []
        if session["turn_over"] and has_turn_files():  # an earlier release does not know the word
            full += ["--turn-over", str(session["turn_over"])]
        full += ["--patience", str(patience), *(["--tell"] if tell else [])]
        done = run(full, seconds, leave_running)
        contract_only = bool(done.code) and "Unknown flag" in done.stderr
        if contract_only:
            # Another implementation knows only the contract: one row for each session, from our own record.
            known = session_memory.load(self.config, session["session_id"]).get("instance_id")
            done = run(plain + (["--adopt-instance-id", known] if known else []), seconds)
        row = _row(done)
        self.has_mail = row.get("has_mail") is True
        if contract_only:
            _publish_pane(argv, row, session["pane"], seconds)
        if os.environ.get("SWARM_MCP_BIN", "").strip() or contract_only:
            facts = {"instance_id": row["id"], "scope": str(row.get("scope") or ""), "label": session["label"]}
            session_memory.remember(self.config, session["session_id"], **facts)
        return row

    def tell_hooks_off(self, _session_id: str) -> None:
        """Do nothing: the command has no word for it. Doctor tells."""

    def told(self) -> None:
        """Note that the model has been told the notices of the last row. The command has done so already."""

    def end(self, session_id: str, client: tuple[int, str], seconds: float, patience: float) -> None:
        """End a session in this `client`, pid and start time. Raises NotRegistered."""
        argv, saved = self.command, session_memory.load(self.config, session_id)
        if not argv:
            raise NotRegistered("swarm-mcp was not found")
        pid, started = client
        words = ["--runtime", self.config.runtime_name, "--session-id", session_id, "--patience", str(patience)]
        words += ["--client", f"{pid}:{started}"] if pid else []
        done = run([*argv, "deregister", *words, "--json"], seconds)
        if done.code and "Unknown flag" in done.stderr and saved.get("instance_id"):
            # Another implementation of the contract: it knows instances, not sessions.
            instance, scope = saved["instance_id"], saved.get("scope", "")
            if scope:
                place = ["--scope", scope]
            else:
                place = []
            name = f"identity/workspace/herdr/{instance}"
            run([*argv, "kv", "del", name, "--as", instance, *place], seconds / 2)
            done = run([*argv, "deregister", "--as", instance, *place], seconds / 2)
        if done.code != 0:
            raise NotRegistered(_why(done))


def _flags(session: dict[str, Any], *names: str) -> list[str]:
    return [word for name in names if session[name] for word in (f"--{name.replace('_', '-')}", session[name])]


def _missing() -> str:
    _ours, other = find_on_path()
    if other:
        return f"{other} is another program of that name"
    return "the swarm-mcp command was not found"


def _publish_pane(argv: list[str], row: dict[str, Any], pane: str, seconds: float) -> None:
    if not pane:
        return
    value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": pane, "pane_id": pane}
    if row.get("scope"):
        place = ["--scope", str(row["scope"])]
    else:
        place = []
    key = f"identity/workspace/herdr/{row['id']}"
    run([*argv, "kv", "set", key, dumps(value), "--as", row["id"], *place], seconds)


def _row(done: Result) -> dict[str, Any]:
    if done.code != 0:
        raise NotRegistered(_why(done))
    try:
        row = loads(done.stdout)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not row["id"]:
        raise NotRegistered("swarm-mcp register gave no usable answer")
    return row


def _why(done: Result) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if lines:
        return lines[-1][:240]
    return f"swarm-mcp exited with {done.code}"


# The session of a call that the store does not know: it is registered in passing, or checked all the same.

DEADLINE_SECONDS, PATIENCE = 0.2, 0.3  # for a session that has to be registered first; of these for a busy store


def _join_in_passing(
    config: RuntimeConfig, event: SessionEvent, seconds: float, coordinator: list[str] | None = None
) -> str:
    """Instance id of a session that the store does not know yet, registering it if need be.

    Empty where that fails; the next attempt then waits a few seconds, so that a broken coordinator
    is not paid for on every write.
    """
    session_id = event.session_id
    if not session_id or session_memory.tried_lately(config, session_id, 10.0, time.time()):
        return ""
    registrar = CommandRegistrar(config, coordinator)
    try:
        row = registrar.register(described(config, event, "working"), seconds, PATIENCE, leave_running=True)
        return str(row["id"])
    except NotRegistered as error:
        record(config.runtime_name, "pre_tool_use", f"session not registered: {error}")
        session_memory.remember(config, session_id, failed_at=int(time.time()))
        return ""


def session_of_call(config: RuntimeConfig, call: ToolCall, instance_id: str) -> Session:
    """A session as its own call and environment describe it, where the store does not."""
    identity, cwd = environment.identity(config.env_prefix), call.cwd
    if identity:
        label = f"identity:{identity}"
    else:
        label = ""
    return Session(instance_id, label, cwd, git_root(cwd) if cwd else "", environment.file_root(config.env_prefix))


def join(
    config: RuntimeConfig,
    call: ToolCall,
    store: FirstLook | None,
    coordinator: list[str] | None = None,
    driver: Any = None,
) -> tuple[Session | None, LockReader | None]:
    """Return ``(Session, LockReader)`` of a session that `store` (may be None) does not know; else both None.

    It is registered in passing. If that fails or takes too long it is checked all the same: unknown to the store, it
    has no locks there.
    """
    end = time.monotonic() + DEADLINE_SECONDS
    known = session_memory.load(config, call.session_id).get("instance_id")
    instance_id = known or _join_in_passing(config, call, DEADLINE_SECONDS, coordinator)
    file = local_store()
    if file:
        store = StoreReader(file, driver, waits=True)
        session = store.session(config.runtime_name, call.session_id)
        if session is not None:
            return session, store
    if store is not None and store.is_ours and not (instance_id and chosen_command()):
        return session_of_call(config, call, instance_id), whole(store)
    if not instance_id:
        return None, None

    scope = str(session_memory.load(config, call.session_id).get("scope") or "")
    return session_of_call(config, call, instance_id), CommandReader(max(0.05, end - time.monotonic()), scope)


def is_elsewhere(config: RuntimeConfig, session_id: str) -> bool:
    """Return True if the store may be one that only the coordinator's command can reach."""
    return bool(chosen_command() or session_memory.load(config, session_id).get("instance_id"))


# Asking the coordinator's command for the locks, where its store is no local SQLite file.


class CoordinatorUnavailable(Exception):
    """The command gave no usable list in time; the message says why."""


class CommandReader(LockReader):
    """The answers of one ``swarm-mcp locks --json`` of the session's `scope`.

    The contract's command lists one scope, so locks of other scopes are not seen this way. Nor are facts that only the
    store knows: work trees, waiting sessions, denials, leases of one's own.
    """

    def __init__(self, seconds: float, scope: str):
        argv = command()
        if not argv:
            raise CoordinatorUnavailable("swarm-mcp was not found")
        done = run([*argv, "locks", "--json", *(["--scope", scope] if scope else [])], seconds)
        if done.code != 0:
            raise CoordinatorUnavailable(f"swarm-mcp locks: {done.stderr.strip()[:200]}")
        try:
            rows = loads(done.stdout)
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list):
            raise CoordinatorUnavailable("swarm-mcp locks gave no list")
        self.rows = [row for row in rows if isinstance(row, dict) and isinstance(row.get("file"), str)]

    def locks_on(self, keys: list[str]) -> list[Held]:
        names = {ascii_lower(os.path.basename(key)) for key in keys}
        found = []
        for row in self.rows:
            file = row["file"]
            if row.get("type", "lock") != "lock" or row.get("pattern"):
                continue
            if file not in keys and ascii_lower(os.path.basename(file)) not in names:
                continue
            if file in keys:
                key = file
            else:
                key = key_of(file)
            if key in keys:
                found.append(self._held(row, key))
        return found

    def patterns_over(self, keys: list[str]) -> list[Held]:
        found = []
        for held in self._patterns():
            cover = Cover(held)
            names = tuple(key for key in keys if cover.has(key))
            if names:
                held.names = names
                found.append(held)
        return found

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        found = [held for held in self._patterns() if held.instance_id != own_id or held.agent]
        if not found:
            return found

        return [held for held in found if (cover := Cover(held)) and any(map(cover.leads_to, folders))]

    def _patterns(self) -> list[Held]:
        return [self._held(row, row["file"]) for row in self.rows if isinstance(row.get("pattern"), str)]

    def _held(self, row: dict[str, Any], key: str) -> Held:
        pattern, base = row.get("pattern"), None
        lease: tuple[Any, ...] = (None,) * 4
        if isinstance(pattern, str):
            place = row["file"].removesuffix(pattern.lstrip("/"))
            if place != row["file"]:
                base = key_of(place)
        if isinstance(row.get("lapses_in"), (int, float)):
            lease = (row["lapses_in"], clock.now(), clock.boot(host_id()), None)
        holder: Any = row.get("instance_id")
        return Held(
            row["file"], holder, "identity:?" if row.get("hidden") else row.get("owner_label"),
            row.get("content"), row.get("created_at"), names=(key,), agent=row.get("agent"), mode=row.get("mode"),
            expected_end=row.get("expected_end"), pattern=pattern, base=base, fence=row.get("fence"), lease=lease,
        )  # fmt: skip

    def others_hold(self, own_id: str) -> bool:
        return any(row.get("instance_id") != own_id or row.get("agent") for row in self.rows)

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        roots = tuple(folder.rstrip("/") + "/" for folder in folders)
        agents = (None, own_agent)
        others = [row for row in self.rows if row.get("instance_id") != own_id or row.get("agent") not in agents]
        rows = [row for row in others if row["file"].startswith(roots) and not row.get("pattern")]
        return [self._held(row, row["file"]) for row in rows[:limit] if row.get("type", "lock") == "lock"]
