"""The events of a session, as its client's hooks tell them: it begins, takes a turn, has subagents, ends.

Each function handles one event for the HookCore `core`, and prints the words for the model.
"""

import os
import time
from typing import Any

from swarm_hook_core import lifecycle
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.registration import NotRegistered
from swarm_hook_core.state import has_plans, local_store, state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.traces.news import News


def begins(core: "HookCore", event: "SessionEvent") -> None:
    """Register the session and print its context."""
    trouble, is_fetched = "", False
    _is_same_turn(core, event)
    try:
        words = "\n\n".join(filter(None, (lifecycle.start(core.config, event, core.registrar), _mail(core, event))))
    except NotRegistered as error:
        words, trouble, is_fetched = _unregistered(core, event, error)
    news = news_of_others(core, event)
    told = [words, core.words_now(event), news.words if news is not None else "", _head_of(core, event)]
    core.tell("SessionStart", event, "\n\n".join(filter(None, told)), trouble)
    _was_told(core, news)
    if core.config.kernel:
        _wire(core, event)
    if is_fetched:  # after it has been said
        from swarm_hook_core import own_release

        own_release.fetch()


def _wire(core: "HookCore", event: "SessionEvent") -> None:
    """Have the session's shells look for files that the kernel holds, if a person wants that."""
    if "CLAUDE_ENV_FILE" in os.environ:
        from swarm_hook_core.kernel import planning

        try:
            planning.wire(core.config, event)
        except OSError as error:
            core.record_fault("kernel", error)


def _unregistered(core: "HookCore", event: "SessionEvent", error: NotRegistered) -> "tuple[str, str, bool]":
    """Return words for the model and the user about a failed registration, and True if the command is to be fetched.

    The user is told once that the command is missing.
    """
    if core.registrar.command:
        return str(error), str(error), False
    from swarm_hook_core import own_release
    from swarm_hook_core.greetings import unregistered

    is_fetched = own_release.is_wanted(core.config.env_prefix, event.cwd) and bool(own_release.uv())
    words = unregistered(error.why, is_fetched)
    if own_release.is_news(is_fetched):
        return words, words, is_fetched
    return words, "", is_fetched


def takes_turn(core: "HookCore", event: "SessionEvent") -> None:
    """Renew the session at the beginning or end of a turn. A turn that begins once more, as it goes on, is the same."""
    if _is_same_turn(core, event):
        return
    # Keep the first words of the prompt, for people who look on
    if event.name == "UserPromptSubmit" and not event.agent and event.prompt and event.session_id:
        from swarm_hook_core import prompts

        try:
            prompts.note(core.config.runtime_name, event.session_id, event.prompt)
        except OSError as error:  # a turn begins in any case
            core.record_fault("prompt", error)
    rewound = _rewinds(core, event)
    _calls_are_over(core, event)
    words = [rewound, lifecycle.turn(core.config, event, core.registrar), core.words_now(event)]
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


def _rewinds(core: "HookCore", event: "SessionEvent") -> str:
    """Return the words about rewinds since the last turn, as a turn begins; keep what a turn has left, as it ends."""
    if event.name not in ("UserPromptSubmit", "Stop") or event.agent or not event.session_id:
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
            from swarm_hook_core.traces.rewound import Rewinds

            return Rewinds(trail, changed, root, core.store_reader()).words
    except Exception as error:  # a turn begins and ends in any case
        core.record_fault("rewinds", error)
    return ""


def _call_at(event: "SessionEvent", tool: str = "", agent: str = "") -> ToolCall:
    """Return a call in the folder of `event`, by which the traces of its session are found there."""
    return ToolCall(tool, None, event.session_id, event.cwd or os.getcwd(), event.name, agent)


def _calls_are_over(core: "HookCore", event: "SessionEvent") -> None:
    """Note that writes that the session, or its subagent, was allowed and has not made are not coming any more."""
    if event.name == "Notification" and event.source != lifecycle.IDLE:
        return
    try:
        if os.path.isdir(os.path.join(state_dir(), "traces")):
            from swarm_hook_core.traces.endings import turn_is_over

            turn_is_over(core, event)
    except Exception as error:
        core.record_fault("traces", error)


def _is_same_turn(core: "HookCore", event: "SessionEvent") -> bool:
    """Return True if the client repeats the beginning of a turn that the session is in already."""
    if "turn" not in core.config.dialect.fields or not event.session_id or event.source == "compact":
        return False
    from swarm_hook_core import scratch

    if event.name != "UserPromptSubmit" or not event.turn:
        scratch.end_turn(core.config, event.session_id)
        return False
    try:
        return not scratch.begin_turn(core.config, event.session_id, event.turn)
    except OSError as error:  # better a turn too many
        core.record_fault("turn", error)
        return False


def has_subagent(core: "HookCore", event: "SessionEvent") -> None:
    """Tell a subagent its id, or release the locks of one that has ended."""
    if event.name == "SubagentStart":
        from swarm_hook_core.greetings import subagent_greeting

        # Note that a subagent runs: from now on it and the rest of its session are peers (``traces.siblings``)
        try:
            from swarm_hook_core.traces.trail import trail_of

            trail = trail_of(core.config, _call_at(event, agent=event.agent))
            if trail is not None and event.agent:
                from swarm_hook_core.traces import siblings

                siblings.begin(trail, trail.place_of(trail.call.folder))
        except Exception as error:  # its first call notes it
            core.record_fault("traces", error)
        core.tell("SubagentStart", event, subagent_greeting(event.agent))
    else:
        try:
            lifecycle.end_subagent(core.config, event, core.coordinator, core.driver)
        finally:
            _calls_are_over(core, event)
        _drop_unheard(core, event)


def ends(core: "HookCore", event: "SessionEvent") -> None:
    """Deregister the session and remove its files."""
    core.words_now(event)  # first: deregistering forgets the session
    if core.config.kernel and has_plans():
        from swarm_hook_core.kernel import planning

        planning.forget(event.session_id)
    lifecycle.end(core.config, event, core.registrar, core.driver)
    _drop_unheard(core, event)


def _drop_unheard(core: "HookCore", event: "SessionEvent") -> None:
    """Forget the kept words for a session, or a subagent, that ends."""
    if core.config.dialect.unheard is not None:
        from swarm_hook_core import unheard

        unheard.take(core.config, event)


def news_of_others(core: "HookCore", event: "SessionEvent") -> "News | None":
    """Return the News of others' changes for a session that begins, or begins a turn; None for no news."""
    try:
        from swarm_hook_core.traces import OFF, level_of, others_in, own_journal

        call = _call_at(event)
        level = level_of(core.config, call)
        if level == OFF or not others_in(*os.path.split(own_journal(core.config, call))):
            return None
        from swarm_hook_core.traces.news import News
        from swarm_hook_core.traces.trail import Trail

        return News(Trail(core.config, call, level), core.store_reader(), time.time())
    except Exception as error:
        core.record_fault("traces", error)
        return None


def _head_of(core: "HookCore", event: "SessionEvent") -> str:
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


def _mail(core: "HookCore", event: "SessionEvent") -> str:
    """Return the words about the session's unread mail, if its registration has reported mail."""
    if not core.registrar.has_mail:
        return ""
    try:
        from swarm_hook_core.lookup.sqlite import StoreReader

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


def _was_told(core: "HookCore", news: "Any") -> None:
    core.registrar.told()
    if news is not None:
        news.told()
