"""The hooks of one runtime: a method for each event of a client's session, and for each call of a tool."""

from __future__ import annotations

import os
import time
from _thread import get_ident
from collections.abc import Callable
from typing import IO, Any

from swarm_hook_core import process, state
from swarm_hook_core.config import ALLOWED, BESIDE, SHELL_TOOLS, RuntimeConfig
from swarm_hook_core.hooks import SessionEvent, ToolCall, Verdict, answer, run, session_event, tool_call
from swarm_hook_core.lookup import FirstLook, LockReader, Session
from swarm_hook_core.state import has_plans, has_settings, is_awaited, is_watching, local_store, state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial, Notice


class HookCore:
    """The hooks of the runtime that `config` describes. Every ``run_*`` reads a payload and returns an exit status.

    A process that is not a hook asks `check` or `judge` about a ToolCall of its own. It gives what it has already:

    coordinator  the argv prefix of the coordinator's command
    driver       its SQLite module: two copies of SQLite on one file in one process undo each other's locks
    registrar    registers sessions without that command
    is_within    True if its calls are parts of one that was judged, and is watched, as a whole
    """

    def __init__(
        self, config: RuntimeConfig, coordinator: list[str] | None = None, driver: Any = None,
        registrar: Any = None, is_within: bool = False,
    ):  # fmt: skip
        self.is_within = is_within
        self.config = config
        self.coordinator = coordinator
        self.driver = driver
        self._registrar = registrar

    @property
    def registrar(self) -> Any:
        """The registrar of sessions: by default, the coordinator's command."""
        if self._registrar is None:
            from swarm_hook_core.registration import CommandRegistrar

            self._registrar = CommandRegistrar(self.config, self.coordinator)
        return self._registrar

    def store_reader(self) -> LockReader:
        """Return a reader of this machine's store: of the file that the registrar has open, if it has one."""
        opened: LockReader | None = self.registrar.reader()
        if opened:
            return opened
        from swarm_hook_core.lookup.sqlite import StoreReader

        return StoreReader(local_store(), self.driver)

    def run_session_start_hook(self, stdin: IO[Any]) -> int:
        """Register the session and print its context."""
        return run(self.config, "session_start", stdin, session_event, self._at_event("begins"))

    def run_session_end_hook(self, stdin: IO[Any]) -> int:
        """Deregister the session and remove its files."""
        return run(self.config, "session_end", stdin, session_event, self._at_event("ends"))

    def run_turn_hook(self, stdin: IO[Any]) -> int:
        """Renew the session at the beginning or end of a turn."""
        return run(self.config, "turn", stdin, session_event, self._at_event("takes_turn"))

    def run_pre_tool_use_hook(self, stdin: IO[Any]) -> int:
        """Deny a call by the rules of ``check.rules``."""
        return run(self.config, "pre_tool_use", stdin, tool_call, self._pre_tool_use, self._unread)

    def run_post_tool_use_hook(self, stdin: IO[Any]) -> int:
        """Report changes that a watched call has made to locked files."""
        return run(self.config, "post_tool_use", stdin, tool_call, self._post_tool_use)

    def run_subagent_hook(self, stdin: IO[Any]) -> int:
        """Tell a subagent its id, or release the locks of one that has ended."""
        return run(self.config, "subagent", stdin, session_event, self._at_event("has_subagent"))

    # ------------------------------------------------------------------------------------ a call, beforehand

    def check(self, call: ToolCall) -> Verdict | None:
        """Return the Verdict on a call; None if it needs none (``check.rules``).

        A fault beside locks of others becomes a Verdict that says so, or a denial if a person wants that
        (``fail_closed``). Any other fault is raised.
        """
        from swarm_hook_core.check import Check, rules

        check = Check(self, call)
        thread = get_ident()
        around = process.check_answers.get(thread)
        process.check_answers[thread] = {}
        try:
            return rules.judge(check)
        except Exception as error:
            from swarm_hook_core import fail_closed

            verdict = fail_closed.verdict(self.config, call, error) or rules.beside_locks(check, error)
            if verdict is None:
                raise
            return verdict
        finally:
            del process.check_answers[thread]
            if around is not None:  # of a check that this one is part of
                process.check_answers[thread] = around

    def judge(self, call: ToolCall) -> Verdict | None:
        """Return the Verdict of `check`; record a denial for people, and for the session that waits for the file."""
        verdict = self.check(call)
        if verdict is not None and verdict.denial is not None:
            self.note_denial(call, verdict.denial)
        self.report(verdict, call)
        return verdict

    def words_beside(self, verdict: Verdict, call: ToolCall) -> str:
        """Return the words for the model about a call that may pass, and about earlier calls; may be empty."""
        return "\n".join(filter(None, (verdict.notice, self.words_now(call))))

    def _pre_tool_use(self, call: ToolCall) -> int:
        call.takes_input = call.takes_input or self.config.merges in (BESIDE, ALLOWED)
        verdict = self.check(call)
        if verdict is None:
            self.tell("PreToolUse", call, "")
            return 0
        if verdict.denial is None:
            status = 0
            words = self.words_beside(verdict, call)
            if verdict.entry:
                self._precede(call, verdict.entry, words, verdict.input)
            elif verdict.input is not None:
                self._replace(call, verdict.input, words)
            else:
                self.tell("PreToolUse", call, words)
        else:
            status = self._deny(verdict.denial, call)
            try:
                self.note_denial(call, verdict.denial)
            except Exception as error:  # the answer is out
                self.record_fault("pre_tool_use", error)
        self.report(verdict, call)
        return status

    def _precede(self, call: ToolCall, entry: str, words: str, merged: object = None) -> None:
        """Have the client put a statement in front of the command. It would drop `words`: they come afterwards.

        merged  the input with merged texts, or None
        """
        from swarm_hook_core.kernel import plans
        from swarm_hook_core.kernel.planning import name_of_call, preceded

        try:
            plans.add_words(call.session_id, name_of_call(self.config, call), words)
        except OSError as error:  # the words are lost, the plan is not
            self.record_fault("kernel", error)
        given = call.input if merged is None else merged
        assert isinstance(given, dict)  # a plan has an entry only then
        allowed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        answer({"hookSpecificOutput": {**allowed, "updatedInput": preceded(given, entry)}})

    def _replace(self, call: ToolCall, given: object, words: str) -> None:
        """Have the client take `given` for the call's input. Its user's rules are asked as before."""
        from swarm_hook_core.traces.whole_writes import answered

        answer(answered(self.config, call, given, words))

    def _unread(self, error: Exception) -> int:
        """Answer for a payload that cannot be read: the call may be any, and may write."""
        from swarm_hook_core import fail_closed

        call = ToolCall("", None)
        verdict = fail_closed.verdict(self.config, call, error)
        if verdict is None or verdict.denial is None:
            return 0
        return self._deny(verdict.denial, call)

    def _deny(self, denial: Denial, call: ToolCall) -> int:
        if not denial.brief:
            self.shorten(denial, call)
        if self._asks_person(denial, call):
            answer(self.config.dialect.question("PreToolUse", denial.question))
            return 0
        answer(self.config.dialect.denial("PreToolUse", denial.brief or denial.reason))
        if denial.rest and call.session_id:
            from swarm_hook_core import session_memory

            try:
                session_memory.keep_words(self.config, call, denial.rest)
            except OSError as error:  # the denial itself is out
                self.record_fault("unheard", error)
        return self.config.dialect.denial_status

    def _asks_person(self, denial: Denial, call: ToolCall) -> bool:
        """Return True if the client asks its user, who decides: then nothing is denied."""
        return bool(denial.question) and self.config.asks is not None and self.config.asks(call)

    def shorten(self, denial: Denial, call: ToolCall, session: Session | None = None) -> None:
        """Give a denial a brief reason if its client has no room for the whole one. A lock's needs the `session`."""
        room = self.config.dialect.reason_length
        if 0 < room < len(denial.reason):
            from swarm_hook_core.denial import shorten

            shorten(denial, session, call, room)

    def mail_for(self, event: SessionEvent, store: FirstLook, session: Session) -> str:
        """Return the words about the session's unread mail, each message once; nearly always empty."""
        try:
            if not event.session_id or not store.newest_mail(session.instance_id):
                return ""
            from swarm_hook_core import session_memory
            from swarm_hook_core.lookup.sqlite import whole

            return session_memory.take_mail(self.config, event, whole(store), session)
        except Exception as error:  # it is told at the next event
            self.record_fault("mail", error)
            return ""

    def note_denial(self, call: ToolCall, denial: Denial) -> None:
        """Have the coordinator record the denial, and tell the session later that a locked file is free."""
        if self._asks_person(denial, call):
            return
        if (denial.held or denial.loss) is not None and denial.is_news:  # it has heard of the others
            from swarm_hook_core.coordinator import note_denial

            note_denial(self.config.runtime_name, call, denial)
        elif denial.deed:
            from swarm_hook_core.coordinator import note_attempt

            note_attempt(self.config.runtime_name, call, denial)

    def report(self, verdict: Verdict | None, call: ToolCall) -> None:
        """Have the notices of a call that goes ahead recorded.

        Tell the owners of uncommitted changes that the call overwrites them, or is denied for them repeatedly.
        """
        if verdict is None:
            return
        for notice in verdict.noted:
            if notice.is_news and verdict.denial is None:
                self._note(call, notice)
        evictions = [one for one in verdict.evictions if one.is_denied == (verdict.denial is not None)]
        if not (verdict.owners or evictions):
            return
        from swarm_hook_core.coordinator import tell_owners, tell_tenants

        try:
            tell_owners(self.config.runtime_name, call, verdict.owners, self.coordinator)
            tell_tenants(self.config.runtime_name, call, evictions, self.coordinator)
        except Exception as error:  # the verdict stands
            self.record_fault("traces", error)

    def _note(self, call: ToolCall, notice: Notice) -> None:
        from swarm_hook_core.coordinator import note_notice

        try:
            note_notice(self.config.runtime_name, call, notice)
        except OSError as error:  # the model was told
            self.record_fault("notices", error)

    # ------------------------------------------------------------------------------------- a call, afterwards

    def is_watching(self) -> bool:
        """Return True if any session's call is being watched."""
        return is_watching()

    def words_after(self, call: ToolCall) -> str:
        """Return the words about changes by a watched call that is over; nearly always empty."""
        from swarm_hook_core.watching import watch

        if is_awaited():
            self._ends(call)
        breaches = watch.finish(self.config, call)
        words = watch.report(self.config, call, breaches, self.coordinator, self.driver)
        if self.config.kernel and call.session_id and has_plans(call.session_id):
            from swarm_hook_core.kernel import planning

            words = "\n".join(filter(None, (words, planning.words_after(self, call))))
        if is_awaited():
            words = "\n".join(filter(None, (words, self._words_of_failure(call))))
        return words

    def _words_of_failure(self, call: ToolCall) -> str:
        from swarm_hook_core import failures

        try:
            return failures.words_after(self, call)
        except Exception as error:  # the command has failed all the same, and its agent reads why
            self.record_fault("failures", error)
            return ""

    def _ends(self, call: ToolCall) -> None:
        from swarm_hook_core.traces.endings import call_is_over

        try:
            call_is_over(self, call)
        except Exception as error:  # it is over by the session's next call in any case
            self.record_fault("traces", error)

    def words_now(self, event: SessionEvent) -> str:
        """Return the words about earlier watched calls without a reported end; nearly always empty."""
        if not is_watching():
            return ""
        from swarm_hook_core.watching import edits, watch

        try:
            breaches = watch.settle(self.config, event, time.time()) + edits.settle(self.config, event)
        except Exception as error:  # a broken record is no reason to stop the event
            self.record_fault("watch", error)
            return ""
        if not breaches:
            return ""
        return watch.report(self.config, event, breaches, self.registrar.command, self.driver)

    def _post_tool_use(self, call: ToolCall) -> None:
        if call.tool in SHELL_TOOLS and call.session_id and not call.goes_on:
            self._end_aside(call)
        name = "PostToolUse"
        if call.name == "PostToolUseFailure":
            name = call.name
        self.tell(name, call, self.words_after(call))

    def _end_aside(self, call: ToolCall) -> None:
        """Note the end of a commit during which a hook put changes aside."""
        text = None
        if isinstance(call.input, dict):
            text = call.input.get("command")
        if not isinstance(text, str) or not any(mark in text for mark in ("commit", "push", "lint-staged", "prek")):
            return
        from swarm_hook_core.traces.endings import commit_is_over

        try:
            commit_is_over(self.config, call, time.time())
        except Exception as error:  # the note ends by itself after a while
            self.record_fault("traces", error)

    # ---------------------------------------------------------------------------------------- other events

    def _at_event(self, name: str) -> Callable[[SessionEvent], None]:
        """Return the function `name` of ``session_events``, which is loaded when the event is known."""

        def body(event: SessionEvent) -> None:
            from swarm_hook_core import session_events

            getattr(session_events, name)(self, event)

        return body

    def tell(self, name: str, event: SessionEvent, text: str, for_user: str = "") -> None:
        """Print words for the model, and for the user, at an event called `name`; print nothing without a text.

        If the client drops words there, the model is told at the session's next event.
        """
        if event.session_id and (self.config.dialect.unheard is not None or self._has_kept_words()):
            text = self._heard(name, event, text)
        if (text or for_user) and not self._is_silent(event):
            answer(self.config.dialect.words(name, text, for_user))

    @staticmethod
    def _is_silent(event: SessionEvent) -> bool:
        """Return True while a person has switched swarm off in the session's folder."""
        if not has_settings():
            return False
        from swarm_hook_core.settings import is_silent

        return is_silent(event.cwd)

    def _has_kept_words(self) -> bool:
        """Return True if the client may have dropped words beside a merged text."""
        return self.config.merges == ALLOWED and os.path.isdir(os.path.join(state_dir(), "unheard"))

    def _heard(self, name: str, event: SessionEvent, text: str) -> str:
        """Return the words to print now, with those kept earlier; keep `text` if the client drops it at this event."""
        from swarm_hook_core import session_memory

        try:
            drops = self.config.dialect.unheard
            if drops is None or not drops(name, event.source):
                return "\n".join(filter(None, (session_memory.take_words(self.config, event), text)))
            if text:
                session_memory.keep_words(self.config, event, text)
            return ""
        except OSError as error:  # better told to a deaf client than kept nowhere
            self.record_fault("unheard", error)
            return text

    def record_fault(self, hook: str, error: BaseException) -> None:
        """Record a fault for `swarm-mcp doctor`."""

        state.record(self.config.runtime_name, hook, error)
