"""A session's life as its client's hooks tell it: joins, works, rests, leaves."""

import os
import time

from swarm_hook_core import environment, faults, labels, scratch
from swarm_hook_core.coordinator import command
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.spawn import run
from swarm_hook_core.untrusted_text import LABEL, NAME, NOTE, cut, cut_text, named

# How long to wait for the coordinator, and how long the coordinator may wait for a busy store. The
# first covers a slow machine; the second is what a store that somebody holds would cost each time.
START_SECONDS, START_PATIENCE = 5.0, 0.8
TURN_SECONDS, TURN_PATIENCE = 2.0, 0.3
END_SECONDS, END_PATIENCE = 0.9, 0.4
LONGEST_ENTRY = LABEL + NAME + NOTE  # characters of what is said of one peer or lock
MENDING = "Run `swarm-mcp doctor` in a terminal to see why and how to mend it."
INSTALLING = (
    "To mend it install swarm-mcp from the repository of this plugin (`pipx install FOLDER` of a clone), not from the"
    " package index, which has another program of that name; then start a new session."
)


class NotRegistered(Exception):
    """The coordinator did not take the session; the message says why."""


def start(config, event, state: str = "idle") -> str:
    """Register the session, whatever the source, and say so in words for the model. `state`: what it does by now.

    Raises NotRegistered, recorded already, with those words.
    """
    session_id = event.session_id
    if not session_id:
        faults.record(config.runtime_name, "session_start", "no session id in the payload")
        return ""
    try:
        row = register(config, event, START_SECONDS, START_PATIENCE, state, tell=True)
    except NotRegistered as error:
        faults.record(config.runtime_name, "session_start", str(error))
        raise NotRegistered(unregistered(str(error))) from None
    news = _news(row)
    return greeting(row) + _make_tracker_known(config, event, row) + (f"\n\n{news}" if news else "")


def unregistered(why: str) -> str:
    """What user and model are told of a session that the coordinator does not know: what is checked all the same."""
    words = f"swarm: this session could not be registered ({why})."
    if not _is_store_at_hand():
        return f"{words} File locks are NOT enforced for it. {MENDING}"
    checked = "What its file tools and shell commands write is checked against the locks of others all the same"
    mend = MENDING if command() else INSTALLING
    return f"{words} {checked}; it can lock nothing itself, and others do not see it. {mend}"


def _is_store_at_hand() -> bool:
    """Whether checks can read the locks without the coordinator, or will as soon as there are any."""
    from swarm_hook_core.coordinator import chosen_command
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.state import local_store, store_path

    try:
        file = local_store()
        if not file:
            return not chosen_command() and not os.path.lexists(store_path())
        StoreReader(file).others_hold("")
    except Exception as error:
        faults.record("store", "session_start", faults.describe(error))
        return False
    return True


def turn(config, event) -> str:
    """Renew the session at a turn's boundary: working when it begins, idle when it ends.

    What its model is to be told of its locks when a turn begins; nearly always nothing.
    """
    if not event.session_id:
        return ""
    working = event.name == "UserPromptSubmit"
    try:
        row = register(config, event, TURN_SECONDS, TURN_PATIENCE, "working" if working else "idle", tell=working)
    except NotRegistered as error:
        faults.record(config.runtime_name, "turn", str(error))
        return ""
    return _news(row)


def end(config, event) -> None:
    """Withdraw what the session published, deregister it, and clear its scratch."""
    session_id = event.session_id
    if not session_id:
        return
    argv = command()
    saved = scratch.load(config, session_id)
    try:
        if not argv:
            raise NotRegistered("swarm-mcp was not found")
        key = ["--runtime", config.runtime_name, "--session-id", session_id, *_client(config)]
        done = run([*argv, "deregister", *key, "--patience", str(END_PATIENCE), "--json"], END_SECONDS)
        if done.code and "Unknown flag" in done.stderr and saved.get("instance_id"):
            # Another implementation of the contract: it knows instances, not sessions.
            instance, scope = saved["instance_id"], saved.get("scope", "")
            place = ["--scope", scope] if scope else []
            name = f"identity/workspace/herdr/{instance}"
            run([*argv, "kv", "del", name, "--as", instance, *place], END_SECONDS / 2)
            done = run([*argv, "deregister", "--as", instance, *place], END_SECONDS / 2)
        if done.code != 0:
            raise NotRegistered(_why(done))
    except NotRegistered as error:
        faults.record(config.runtime_name, "session_end", str(error))
    scratch.clear(config, session_id)


def end_subagent(config, event, coordinator=None, driver=None) -> None:
    """Have the locks of a subagent that has ended released, by a command that nobody waits for. Raises OSError."""
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.spawn import start_detached
    from swarm_hook_core.state import local_store

    file = local_store() if event.session_id and event.agent else ""
    if not file:
        return
    store = StoreReader(file, driver)
    session = store.session(config.runtime_name, event.session_id)
    argv = coordinator or command()
    if session and argv and store.holds_as(session.instance_id, event.agent):
        words = ["--runtime", config.runtime_name, "--session-id", event.session_id, "--agent", event.agent]
        start_detached([*argv, "agent-ended", *words])


def join_in_passing(config, event, seconds: float, coordinator: "list[str] | None" = None) -> str:
    """Instance id of a session that the store does not know yet, registering it if need be.

    Empty where that fails; the next attempt then waits a few seconds, so that a broken coordinator
    is not paid for on every write.
    """
    session_id = event.session_id
    if not session_id:
        return ""
    if scratch.tried_lately(config, session_id, 10.0, time.time()):
        return ""
    try:
        row = register(config, event, seconds, TURN_PATIENCE, "working", leave_running=True, coordinator=coordinator)
        return row["id"]
    except NotRegistered as error:
        faults.record(config.runtime_name, "pre_tool_use", f"session not registered: {error}")
        _remember(config, session_id, failed_at=int(time.time()))
        return ""


def register(
    config,
    event,
    seconds: float,
    patience: float,
    state: str,
    leave_running: bool = False,
    coordinator: "list[str] | None" = None,
    tell: bool = False,
) -> dict:
    """Register or renew this session; the coordinator's row, with at least ``id``.

    `coordinator` is its argv prefix, where the caller knows it; with `tell` the row's ``notices`` are what the model
    is to be told, and count as told. Raises NotRegistered.
    """
    argv = coordinator or command()
    if not argv:
        raise NotRegistered(_missing())
    session_id = event.session_id
    cwd = event.cwd or os.getcwd()
    prefix = config.env_prefix
    scope, file_root = environment.scope(prefix), environment.file_root(prefix)
    label = labels.compose(
        config.runtime_name,
        session_id,
        environment.identity(prefix),
        environment.mode(prefix),
        environment.role(prefix, cwd, scope),
        environment.label_override(prefix),
    )
    lease = environment.lease_seconds(prefix)
    plain = [*argv, "register", cwd, "--label", label, "--json"]
    settings = {"--scope": scope, "--file-root": file_root, "--lease-seconds": str(lease) if lease else ""}
    for flag, value in settings.items():
        plain += [flag, value] if value else []
    pane = environment.pane()
    full = [*plain, "--runtime", config.runtime_name, "--session-id", session_id, "--state", state, *_client(config)]
    full += ["--patience", str(patience)]
    source = event.source
    full += ["--source", source] if source else []
    full += ["--tell"] if tell else []
    done = run(full + (["--pane", pane] if pane else []), seconds, leave_running)
    contract_only = bool(done.code) and "Unknown flag" in done.stderr
    if contract_only:
        done = _register_plainly(config, session_id, plain, seconds)
    row = _row(done)
    if contract_only:
        _publish_pane(argv, row, pane, seconds)
    if not os.environ.get("SWARM_MCP_BIN", "").strip() and not contract_only:
        return row
    _remember(config, session_id, instance_id=row["id"], scope=str(row.get("scope") or ""), label=label)
    return row


def _missing() -> str:
    from swarm_hook_core.coordinator import find_on_path

    _ours, other = find_on_path()
    return f"{other} is another program of that name" if other else "the swarm-mcp command was not found"


def _remember(config, session_id: str, **facts) -> None:
    """Save to scratch, which must never cost anything when it cannot be written."""
    try:
        scratch.save(config, session_id, **facts)
    except OSError as error:
        faults.record(config.runtime_name, "scratch", faults.describe(error))


def _news(row: dict) -> str:
    notices = row.get("notices")
    return "\n".join(cut_text(text) for text in notices if isinstance(text, str)) if isinstance(notices, list) else ""


def greeting(row: dict) -> str:
    """What the model is told at the start of a session."""
    name, scope = cut(str(row.get("label") or "unnamed"), LABEL), named(str(row.get("scope") or ""))
    lines = [f"swarm: this session is registered as `{name}`, instance `{row['id']}`, scope {scope}."]
    summary = row.get("summary")
    if isinstance(summary, dict):
        lines.append(_peers(summary) + " " + _locks(summary))
    lines.append(
        "Every session here may write any file that no other session has locked. Lock a file, folder or pattern"
        " before work that others must not disturb, with the swarm MCP tool lock_file (or `swarm-mcp lock FILE"
        " --note WHY`), and release it with unlock_file. A write that is denied names the holder: do other work, or"
        " wait in line (lock_file with wait_seconds)."
        " The skill swarm-mcp says when to lock and when not."
    )
    return "\n".join(lines)


def subagent_greeting(agent_id: str) -> str:
    """What a subagent is told when it starts: its id, and what that is good for. Empty where it has none."""
    agent = cut(agent_id, LABEL)
    if not agent:
        return ""
    return (
        f"swarm: you are agent `{agent}` of this session. What the session locks is yours to write, and its other"
        f" agents'. To keep a file from those as well, lock it for yourself: lock_file with agent_id `{agent}`, or"
        f" `swarm-mcp lock FILE --agent {agent}`. Such locks end with you, or with unlock_file."
    )


def _peers(summary: dict) -> str:
    names, count = summary.get("peers") or [], summary.get("peer_count") or 0
    if not count:
        return "No other session is here now."
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"Other sessions here: {_joined(names)}{more}."


def _locks(summary: dict) -> str:
    locks, count = summary.get("locks") or [], summary.get("lock_count") or 0
    if not count:
        return "Nothing is locked."
    more = f" and {count - len(locks)} more" if count > len(locks) else ""
    return f"Locked now: {_joined(locks)}{more}."


def _joined(texts) -> str:
    """What the coordinator says of several, bounded once more: it may be another implementation's, or an older one."""
    return "; ".join(cut(text, LONGEST_ENTRY) for text in texts if isinstance(text, str)) if texts else ""


def _make_tracker_known(config, event, row: dict) -> str:
    """Publish the work tracker that is set for this session; a line about it for the model, or nothing."""
    from swarm_hook_core import work_tracker

    cwd = event.cwd or os.getcwd()
    found = work_tracker.configured(config.env_prefix, cwd, str(row.get("scope") or ""))
    if not found:
        return ""
    identity = environment.identity(config.env_prefix)
    why = work_tracker.publish(command(), row, identity, found) if identity else ""
    if why:
        faults.record(config.runtime_name, "session_start", f"work tracker not published: {why}")
    server = found.get("mcp") or found.get("mcp_server")
    through = f", reached through the MCP server {named(server, NOTE)}" if isinstance(server, str) else ""
    return f"\nWork here is tracked in {found['provider']}{through}: name a task's entry when you complete it."


def _client(config) -> list[str]:
    from swarm_hook_core.process import client_process

    pid, started = client_process(config.client_marks)
    return ["--client", f"{pid}:{started}"] if pid else []


def _register_plainly(config, session_id: str, plain: list[str], seconds: float):
    """For an implementation that knows only the contract: one row a session, from our own record."""
    known = scratch.load(config, session_id).get("instance_id")
    return run(plain + (["--adopt-instance-id", known] if known else []), seconds)


def _publish_pane(argv: list[str], row: dict, pane: str, seconds: float) -> None:
    if not pane:
        return
    value = {"schema_version": 1, "backend": "herdr", "handle_kind": "pane", "handle": pane, "pane_id": pane}
    place = ["--scope", str(row["scope"])] if row.get("scope") else []
    key = f"identity/workspace/herdr/{row['id']}"
    run([*argv, "kv", "set", key, dumps(value), "--as", row["id"], *place], seconds)


def _row(done) -> dict:
    if done.code != 0:
        raise NotRegistered(_why(done))
    try:
        row = loads(done.stdout)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not row["id"]:
        raise NotRegistered("swarm-mcp register gave no usable answer")
    return row


def _why(done) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1][:240] if lines else f"swarm-mcp exited with {done.code}"
