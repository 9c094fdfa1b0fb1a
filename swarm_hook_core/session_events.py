"""The life of a session, as its client's hooks tell it: it begins, takes a turn, has subagents, ends.

Each function handles one event for the HookCore `core`, and prints the words for the model.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core import environment, session_memory, state
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import fetch, is_fetching_news, may_fetch, send, uv_path
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import client_process
from swarm_hook_core.registration import NotRegistered, described, note_client
from swarm_hook_core.state import has_plans, has_turn_files, local_store, state_dir
from swarm_hook_core.traces import traces_dir
from swarm_hook_core.untrusted_text import NOTE, cut_text, named

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.traces.meetings import News

# A registrar registers the session: ``registration.CommandRegistrar``, or an object with its methods.

IDLE = "idle_prompt"  # the notification that a client waits for a prompt
MOVED, RECONFIGURED = "PostToolUse", "ConfigChange"  # of Claude Code: it has entered a work tree; of its settings
ENDS = ("Stop", "StopFailure")  # of turns

# Seconds to wait for the coordinator, and seconds that it may wait for a busy store. The first covers a slow machine;
# the second is the price of a locked store at each start.
START_SECONDS, START_PATIENCE = 5.0, 0.8
TURN_SECONDS, TURN_PATIENCE = 2.0, 0.3
END_SECONDS, END_PATIENCE = 0.9, 0.4


def start(config: RuntimeConfig, event: SessionEvent, registrar: Any, state: str = "idle") -> str:
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


def turn(config: RuntimeConfig, event: SessionEvent, registrar: Any) -> str:
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


def _note_client(config: RuntimeConfig, event: SessionEvent, session: dict[str, Any]) -> None:
    try:
        note_client(config, event, session["client"][0])
    except OSError as error:  # a full disk: a call of the session ends with its next one
        _record(config, "session", str(error))


def end(config: RuntimeConfig, event: SessionEvent, registrar: Any, driver: Any = None) -> None:
    """Withdraw the session's publications, deregister it, and clear the files that it left.

    A session that another client still has open goes on.
    """
    from swarm_hook_core import greetings

    if not event.session_id:
        return
    try:
        registrar.end(event.session_id, client_process(config.client_marks), END_SECONDS, END_PATIENCE)
    except NotRegistered as error:
        _record(config, "session_end", str(error))
    session_memory.clear(config, event.session_id)
    greetings.forget(config.runtime_name, event.session_id)

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


def _is_known(config: RuntimeConfig, event: SessionEvent, driver: Any) -> bool:
    file = local_store()
    return bool(file) and StoreReader(file, driver).session(config.runtime_name, event.session_id) is not None


def end_subagent(
    config: RuntimeConfig, event: SessionEvent, coordinator: list[str] | None = None, driver: Any = None
) -> None:
    """Have the locks of a subagent that has ended released, by a command in the background. Raises OSError."""
    file = local_store() if event.session_id and event.agent else ""
    if not file:
        return
    store = StoreReader(file, driver)
    session = store.session(config.runtime_name, event.session_id)
    if session and (store.holds_as(session.instance_id, event.agent) or _has_turn_files(config, event)):
        words = ["--agent", event.agent]
        send(["agent-ended"], config.runtime_name, event.session_id, words, coordinator)


def _has_turn_files(config: RuntimeConfig, event: SessionEvent) -> bool:
    """Return True if the agent of an event has a file for its turn."""
    if not has_turn_files():
        return False
    from swarm_hook_core.traces import plain_word, turn_files

    whose = config.runtime_name, event.session_id, plain_word(event.agent)
    return any((one.runtime, one.session_id, one.agent) == whose for one in turn_files.lasting(time.time_ns()))


def _news(row: dict[str, Any]) -> str:
    notices = row.get("notices")
    if not isinstance(notices, list) or not notices:
        return ""

    return "\n".join(cut_text(text) for text in notices if isinstance(text, str))


def _make_tracker_known(config: RuntimeConfig, event: SessionEvent, registrar: Any, row: dict[str, Any]) -> str:
    """Publish the work tracker that is set for this session; a line about it for the model, or nothing."""
    from swarm_hook_core import greetings

    cwd = event.cwd or os.getcwd()
    found = greetings.configured(config.env_prefix, cwd, str(row.get("scope") or ""))
    if not found:
        return ""

    identity = environment.identity(config.env_prefix)
    if identity:
        why = greetings.publish(registrar.command, row, identity, found)
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


def _record(config: RuntimeConfig, hook: str, fault: str) -> None:
    state.record(config.runtime_name, hook, fault)


def begins(core: HookCore, event: SessionEvent) -> None:
    """Register the session and print its context."""
    trouble, is_fetched = "", False
    _is_same_turn(core, event)
    try:
        words = "\n\n".join(filter(None, (start(core.config, event, core.registrar), _mail(core, event))))
    except NotRegistered as error:
        words, trouble, is_fetched = _unregistered(core, event, error)
    news = news_of_others(core, event)
    told = [words, core.words_now(event), news.words if news is not None else "", _head_of(core, event)]
    core.tell("SessionStart", event, "\n\n".join(filter(None, told)), trouble)
    _was_told(core, news)
    if core.config.kernel:
        _wire(core, event)
    if is_fetched:  # after it has been said
        fetch()


def _wire(core: HookCore, event: SessionEvent) -> None:
    """Have the session's shells look for files that the kernel holds, if a person wants that."""
    if "CLAUDE_ENV_FILE" in os.environ:
        from swarm_hook_core.kernel import planning

        try:
            planning.wire(core.config, event)
        except OSError as error:
            core.record_fault("kernel", error)


def _unregistered(core: HookCore, event: SessionEvent, error: NotRegistered) -> tuple[str, str, bool]:
    """Return words for the model and the user about a failed registration, and True if the command is to be fetched.

    The user is told once that the command is missing.
    """
    if core.registrar.command:
        return str(error), str(error), False
    from swarm_hook_core.greetings import unregistered

    is_fetched = may_fetch(core.config.env_prefix, event.cwd) and bool(uv_path())
    words = unregistered(error.why, is_fetched)
    if is_fetching_news(is_fetched):
        return words, words, is_fetched
    return words, "", is_fetched


def takes_turn(core: HookCore, event: SessionEvent) -> None:
    """Renew the session at the beginning or end of a turn. A turn that begins once more, as it goes on, is the same."""
    if event.name in (MOVED, RECONFIGURED):
        if event.session_id and not event.agent:
            _goes_on(core, event)
        return
    if event.agent and event.name in ENDS:
        _calls_are_over(core, event)  # its session's turn goes on
        return
    if _is_same_turn(core, event):
        return
    # Keep the first words of the prompt, for people who look on
    if event.name == "UserPromptSubmit" and not event.agent and event.prompt and event.session_id:
        from swarm_hook_core import greetings

        try:
            greetings.note(core.config.runtime_name, event.session_id, event.prompt)
        except OSError as error:  # a turn begins in any case
            core.record_fault("prompt", error)
    rewound = _rewinds(core, event)
    _calls_are_over(core, event)
    words = [rewound, turn(core.config, event, core.registrar), core.words_now(event)]
    if event.name == "UserPromptSubmit":
        words.append(_mail(core, event))
    if core.config.kernel and has_plans(event.session_id):
        from swarm_hook_core.kernel import plans

        plans.drop_earlier(event.session_id, time.time() - plans.LEFT_SECONDS)
    if event.name != "UserPromptSubmit":
        core.registrar.told()
        return  # at a turn's end words are of no use: a client that is told something then goes on working
    news = news_of_others(core, event)
    words += [news.words if news is not None else "", _head_of(core, event)]
    core.tell("UserPromptSubmit", event, "\n".join(filter(None, words)))
    _was_told(core, news)


def _goes_on(core: HookCore, event: SessionEvent) -> None:
    """Register the folder that the session has entered, or tell others that its hooks have been switched off.

    The client shows no words of these hooks, neither to its model nor to its user.
    """
    try:
        if event.name == RECONFIGURED:
            core.registrar.tell_hooks_off(event.session_id)
        else:
            core.registrar.register(
                {**described(core.config, event, "working"), "source": ""}, TURN_SECONDS, TURN_PATIENCE
            )
    except NotRegistered as error:
        _record(core.config, "turn", str(error))


def _rewinds(core: HookCore, event: SessionEvent) -> str:
    """Return the words about rewinds since the last turn, as a turn begins; keep what a turn has left, as it ends."""
    if event.name not in ("UserPromptSubmit", *ENDS) or event.agent or not event.session_id:
        return ""
    try:
        from swarm_hook_core.traces import OFF, UNDO, level_of, own_journal

        call = _call_at(event, UNDO)
        level = level_of(core.config, call)
        if level == OFF or not os.path.exists(own_journal(core.config, call)):
            return ""  # it has written nothing here
        from swarm_hook_core.traces.rewinds import changed_at_turn, keep_at_end
        from swarm_hook_core.traces.trail import Trail

        trail = Trail(core.config, call, level)
        if event.name != "UserPromptSubmit":
            keep_at_end(trail)
            return ""
        changed, root = changed_at_turn(trail)
        if changed:
            from swarm_hook_core.traces.rewinds import Rewinds

            return Rewinds(trail, changed, root, core.store_reader()).words
    except Exception as error:  # a turn begins and ends in any case
        core.record_fault("rewinds", error)
    return ""


def _call_at(event: SessionEvent, tool: str = "", agent: str = "") -> ToolCall:
    """Return a call in the folder of `event`, by which the traces of its session are found there."""
    return ToolCall(tool, None, event.session_id, event.cwd or os.getcwd(), event.name, agent)


def _calls_are_over(core: HookCore, event: SessionEvent) -> None:
    """Note that writes that the session, or its subagent, was allowed and has not made are not coming any more."""
    if event.name == "Notification" and event.source != IDLE:
        return
    try:
        if os.path.isdir(os.path.join(state_dir(), "traces")):
            from swarm_hook_core.traces.endings import turn_is_over

            turn_is_over(core, event)
    except Exception as error:
        core.record_fault("traces", error)


def _is_same_turn(core: HookCore, event: SessionEvent) -> bool:
    """Return True if the client repeats the beginning of a turn that the session is in already."""
    if "turn" not in core.config.dialect.fields or not event.session_id or event.source == "compact":
        return False

    if event.name != "UserPromptSubmit" or not event.turn:
        session_memory.end_turn(core.config, event.session_id)
        return False
    try:
        return not session_memory.begin_turn(core.config, event.session_id, event.turn)
    except OSError as error:  # better a turn too many
        core.record_fault("turn", error)
        return False


def has_subagent(core: HookCore, event: SessionEvent) -> None:
    """Tell a subagent its id, or release the locks of one that has ended."""
    if event.name == "SubagentStart":
        from swarm_hook_core.greetings import subagent_greeting

        # Note that a subagent runs: from now on it and the rest of its session are peers (``traces.others``)
        try:
            from swarm_hook_core.traces.trail import trail_of

            trail = trail_of(core.config, _call_at(event, agent=event.agent))
            if trail is not None and event.agent:
                from swarm_hook_core.traces import others

                others.begin(trail, trail.place_of(trail.call.folder))
        except Exception as error:  # its first call notes it
            core.record_fault("traces", error)
        core.tell("SubagentStart", event, subagent_greeting(event.agent))
    else:
        try:
            end_subagent(core.config, event, core.coordinator, core.driver)
        finally:
            _calls_are_over(core, event)
        _drop_unheard(core, event)


def ends(core: HookCore, event: SessionEvent) -> None:
    """Deregister the session and remove its files."""
    core.words_now(event)  # first: deregistering forgets the session
    if core.config.kernel and has_plans():
        from swarm_hook_core.kernel import planning

        planning.forget(event.session_id)
    end(core.config, event, core.registrar, core.driver)
    _drop_unheard(core, event)


def _drop_unheard(core: HookCore, event: SessionEvent) -> None:
    """Forget the kept words for a session, or a subagent, that ends."""
    if core.config.dialect.unheard is not None:
        from swarm_hook_core import session_memory

        session_memory.take_words(core.config, event)


def news_of_others(core: HookCore, event: SessionEvent) -> News | None:
    """Return the News of others' changes for a session that begins, or begins a turn; None for no news."""
    try:
        from swarm_hook_core.traces import OFF, level_of, others_in, own_journal

        call = _call_at(event)
        level = level_of(core.config, call)
        if level == OFF or not others_in(*os.path.split(own_journal(core.config, call))):
            return None
        from swarm_hook_core.traces.meetings import News
        from swarm_hook_core.traces.trail import Trail

        return News(Trail(core.config, call, level), core.store_reader(), time.time())
    except Exception as error:
        core.record_fault("traces", error)
        return None


def _head_of(core: HookCore, event: SessionEvent) -> str:
    """Return the words about a HEAD that was moved since the session last knew it; have the present one noted."""
    try:
        from swarm_hook_core.traces import OFF, level_of

        call = _call_at(event)
        if level_of(core.config, call) == OFF:
            return ""
        from swarm_hook_core.traces.head import news

        return news.at_turn(core.config.runtime_name, event.session_id, call.folder, core.driver)
    except Exception as error:
        core.record_fault("head", error)
        return ""


def _mail(core: HookCore, event: SessionEvent) -> str:
    """Return the words about the session's unread mail, if its registration has reported mail."""
    if not core.registrar.has_mail:
        return ""
    try:
        file = local_store()
        if not file:
            return ""
        reader = StoreReader(file, core.driver)
        session = reader.session(core.config.runtime_name, event.session_id)
        if session is None:
            return ""
        return core.mail_for(event, reader, session)
    except Exception as error:
        core.record_fault("mail", error)
        return ""


def _was_told(core: HookCore, news: Any) -> None:
    core.registrar.told()
    if news is not None:
        news.told()
