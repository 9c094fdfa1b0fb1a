"""The life of a session, as its client's hooks tell it: it joins, works, rests, leaves.

A registrar registers the session: ``command_registrar.CommandRegistrar``, or an object with its methods.
"""

import os
import time
from typing import Any

from swarm_hook_core import environment
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import client_process
from swarm_hook_core.registration import NotRegistered, described, note_client
from swarm_hook_core.state import has_turn_files, local_store
from swarm_hook_core.traces import traces_dir
from swarm_hook_core.untrusted_text import NOTE, cut_text, named

IDLE = "idle_prompt"  # the notification that a client waits for a prompt

# Seconds to wait for the coordinator, and seconds that it may wait for a busy store. The first covers a slow machine;
# the second is the price of a locked store at each start.
START_SECONDS, START_PATIENCE = 5.0, 0.8
TURN_SECONDS, TURN_PATIENCE = 2.0, 0.3
END_SECONDS, END_PATIENCE = 0.9, 0.4


def start(config: "RuntimeConfig", event: "SessionEvent", registrar: "Any", state: str = "idle") -> str:
    """Register the session for any source, and return words for the model. `state`: its state from now on.

    Raises NotRegistered, recorded already, with those words.
    """
    from swarm_hook_core import greetings

    if not event.session_id:
        _record(config, "session_start", "no session id in the payload")
        return ""
    session = described(config, event, state)
    _note_client(config, event, session)
    try:
        row = registrar.register(session, START_SECONDS, START_PATIENCE, tell=True)
    except NotRegistered as error:
        _record(config, "session_start", str(error))
        raise NotRegistered(greetings.unregistered(str(error)), str(error)) from None
    news = _news(row)
    tracked = _make_tracker_known(config, event, registrar, row)
    return greetings.greeting(row) + tracked + (f"\n\n{news}" if news else "")


def turn(config: "RuntimeConfig", event: "SessionEvent", registrar: "Any") -> str:
    """Renew the session at a turn's boundary and return words for the model, nearly always empty.

    It works when the turn begins, and is idle when it ends. A client that
    does not report an interrupted turn notifies of being idle.
    """
    if not event.session_id or (event.name == "Notification" and event.source != IDLE):
        return ""
    working = event.name == "UserPromptSubmit"
    session = described(config, event, "working" if working else "idle")
    session.update(source="", turn_over=time.time_ns())
    if working:
        _note_client(config, event, session)
    try:
        return _news(registrar.register(session, TURN_SECONDS, TURN_PATIENCE, tell=working))
    except NotRegistered as error:
        _record(config, "turn", str(error))
        return ""


def _note_client(config: "RuntimeConfig", event: "SessionEvent", session: "dict[str, Any]") -> None:
    try:
        note_client(config, event, session["client"][0])
    except OSError as error:  # a full disk: a call of the session ends with its next one
        _record(config, "session", str(error))


def end(config: "RuntimeConfig", event: "SessionEvent", registrar: "Any", driver: "Any" = None) -> None:
    """Withdraw the session's publications, deregister it, and clear the files that it left.

    A session that another client still has open goes on.
    """
    from swarm_hook_core import prompts, scratch

    if not event.session_id:
        return
    try:
        registrar.end(event.session_id, client_process(config.client_marks), END_SECONDS, END_PATIENCE)
    except NotRegistered as error:
        _record(config, "session_end", str(error))
    scratch.clear(config, event.session_id)
    prompts.forget(config.runtime_name, event.session_id)

    if not os.path.isdir(traces_dir()):
        return
    if not _is_known(config, event, driver):
        from swarm_hook_core.traces.pruning import forget

        forget(config.runtime_name, event.session_id)
    elif has_turn_files():
        from swarm_hook_core.traces import turn_files

        try:
            turn_files.end(config.runtime_name, event.session_id)
        except OSError as error:  # they are free in ten minutes
            _record(config, "session_end", f"the end of its turn was not noted: {error}")


def _is_known(config: "RuntimeConfig", event: "SessionEvent", driver: "Any") -> bool:
    file = local_store()
    return bool(file) and StoreReader(file, driver).session(config.runtime_name, event.session_id) is not None


def end_subagent(
    config: "RuntimeConfig", event: "SessionEvent", coordinator: "list[str] | None" = None, driver: "Any" = None
) -> None:
    """Have the locks of a subagent that has ended released, by a command in the background. Raises OSError."""
    file = local_store() if event.session_id and event.agent else ""
    if not file:
        return
    store = StoreReader(file, driver)
    session = store.session(config.runtime_name, event.session_id)
    if session and (store.holds_as(session.instance_id, event.agent) or _has_turn_files(config, event)):
        from swarm_hook_core.errands import send

        words = ["--agent", event.agent]
        send(["agent-ended"], config.runtime_name, event.session_id, words, coordinator)


def join_in_passing(
    config: "RuntimeConfig", event: "SessionEvent", seconds: float, coordinator: "list[str] | None" = None
) -> str:
    """Instance id of a session that the store does not know yet, registering it if need be.

    Empty where that fails; the next attempt then waits a few seconds, so that a broken coordinator
    is not paid for on every write.
    """
    from swarm_hook_core import scratch
    from swarm_hook_core.command_registrar import CommandRegistrar

    session_id = event.session_id
    if not session_id or scratch.tried_lately(config, session_id, 10.0, time.time()):
        return ""
    registrar = CommandRegistrar(config, coordinator)
    try:
        row = registrar.register(described(config, event, "working"), seconds, TURN_PATIENCE, leave_running=True)
        return str(row["id"])
    except NotRegistered as error:
        _record(config, "pre_tool_use", f"session not registered: {error}")
        scratch.remember(config, session_id, failed_at=int(time.time()))
        return ""


def _has_turn_files(config: "RuntimeConfig", event: "SessionEvent") -> bool:
    """Return True if the agent of an event has a file for its turn."""
    if not has_turn_files():
        return False
    from swarm_hook_core.traces import plain_word, turn_files

    whose = config.runtime_name, event.session_id, plain_word(event.agent)
    return any((one.runtime, one.session_id, one.agent) == whose for one in turn_files.lasting(time.time_ns()))


def _news(row: "dict[str, Any]") -> str:
    notices = row.get("notices")
    if not isinstance(notices, list) or not notices:
        return ""

    return "\n".join(cut_text(text) for text in notices if isinstance(text, str))


def _make_tracker_known(config: "RuntimeConfig", event: "SessionEvent", registrar: "Any", row: "dict[str, Any]") -> str:
    """Publish the work tracker that is set for this session; a line about it for the model, or nothing."""
    from swarm_hook_core import work_tracker

    cwd = event.cwd or os.getcwd()
    found = work_tracker.configured(config.env_prefix, cwd, str(row.get("scope") or ""))
    if not found:
        return ""

    identity = environment.identity(config.env_prefix)
    if identity:
        why = work_tracker.publish(registrar.command, row, identity, found)
    else:
        why = ""
    if why:
        _record(config, "session_start", f"work tracker not published: {why}")
    server = found.get("mcp") or found.get("mcp_server")
    if isinstance(server, str):
        through = f", reached through the MCP server {named(server, NOTE)}"
    else:
        through = ""
    return f"\nWork here is tracked in {found['provider']}{through}: name a task's entry when you complete it."


def _record(config: "RuntimeConfig", hook: str, fault: str) -> None:
    from swarm_hook_core import faults

    faults.record(config.runtime_name, hook, fault)
