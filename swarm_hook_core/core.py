"""The hooks of one runtime: what each event of a client's session, and each call of a tool, comes to."""

import os
import time

from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall, answer, run, session_event, tool_call
from swarm_hook_core.state import has_plans, is_awaited


class HookCore:
    """The hooks of the runtime that `config` describes. Every ``run_*`` returns its exit status.

    Standard input is the client's JSON payload. A process that is not a hook says what it has already: `coordinator`,
    the argv prefix of the command, `driver`, its SQLite module, and `registrar`, how sessions are registered without
    that command. Two copies of SQLite on one file in one process undo each other's locks. It asks with a
    ``hooks.ToolCall`` of its own making. `is_within`: it asks about a part of a call that is watched already.
    `is_asked`: nobody makes the calls that it is asked about (``asked``).
    """

    def __init__(self, config, coordinator=None, driver=None, registrar=None, is_within=False):
        self.is_within = is_within
        self.config = config
        self.coordinator = coordinator
        self.driver = driver
        self._registrar = registrar

    @property
    def registrar(self):
        """How sessions are registered: by the coordinator's command, unless this process knows better."""
        if self._registrar is None:
            from swarm_hook_core.command_registrar import CommandRegistrar

            self._registrar = CommandRegistrar(self.config, self.coordinator)
        return self._registrar

    def run_session_start_hook(self, stdin) -> int:
        """Register the session and print its context."""
        return run(self.config, "session_start", stdin, session_event, self._at_event("begins"))

    def run_session_end_hook(self, stdin) -> int:
        """Deregister the session and remove what it left."""
        return run(self.config, "session_end", stdin, session_event, self._at_event("ends"))

    def run_turn_hook(self, stdin) -> int:
        """Renew the session at the beginning or end of a turn."""
        return run(self.config, "turn", stdin, session_event, self._at_event("takes_turn"))

    def run_pre_tool_use_hook(self, stdin) -> int:
        """Deny a write to a file that another live session has locked."""
        return run(self.config, "pre_tool_use", stdin, tool_call, self._pre_tool_use, self._unread)

    def run_post_tool_use_hook(self, stdin) -> int:
        """Tell who needs to know where a call that was watched has changed a file that a peer has locked."""
        return run(self.config, "post_tool_use", stdin, tool_call, self._post_tool_use)

    def run_subagent_hook(self, stdin) -> int:
        """Tell a subagent who it is, or release what one held that has ended."""
        return run(self.config, "subagent", stdin, session_event, self._at_event("has_subagent"))

    # ------------------------------------------------------------------------------------ a call, beforehand

    def check(self, call):
        """The Verdict on a ToolCall, None where it cannot write; what it may write unseen is watched.

        Raises whatever goes wrong, but for a fault while others hold locks in reach, which the Verdict says, and where
        such a call is to be denied (``fail_closed``).
        """
        from swarm_hook_core.check import Check, rules

        try:
            return rules.judge(Check(self, call))
        except Exception as error:
            from swarm_hook_core import fail_closed, unchecked_calls

            verdict = fail_closed.verdict(self.config, call, error)
            if verdict is not None:
                return verdict
            verdict = unchecked_calls.beside_locks(self.config, call, error, self.driver)
            if verdict is None:
                raise
            return verdict

    def judge(self, call):
        """As `check`; and a refusal is recorded, so that people see it and the session hears when the file is free."""
        verdict = self.check(call)
        if verdict is not None and verdict.denial is not None:
            self._note_refusal(call, verdict.denial)
        self.tell_owners(verdict, call)
        return verdict

    def words_beside(self, verdict, call) -> str:
        """What the model is told although the call may pass: its Verdict's notice, and what earlier calls have done."""
        return "\n".join(filter(None, (verdict.notice, self.words_now(call))))

    def write_paths_for_tool(self, tool_name: str, tool_input, cwd: str = "") -> list[str]:
        """Absolute paths that a tool call would write, from `cwd` (default: this process's)."""
        from swarm_hook_core.targets import absolute_paths

        return absolute_paths(self.config, tool_name, tool_input, cwd or os.getcwd())

    def _pre_tool_use(self, call) -> int:
        verdict = self.check(call)
        denial = verdict.denial if verdict is not None else None
        if denial is None:
            words = self.words_beside(verdict, call) if verdict is not None else ""
            if verdict is not None and verdict.entry:
                status = self._precede(call, verdict.entry, words)
            else:
                status = 0
                self.tell("PreToolUse", call, words)
            self.tell_owners(verdict, call)
            return status
        status = self._deny(denial, call)
        try:
            self._note_refusal(call, denial)
        except Exception as error:  # the answer is out
            self.record_fault("pre_tool_use", error)
        self.tell_owners(verdict, call)
        return status

    def _precede(self, call, entry: str, words: str) -> int:
        """Have the client put a statement in front of the command; `words`, which it would drop, come afterwards."""
        from swarm_hook_core.kernel import plans
        from swarm_hook_core.kernel.planning import name_of_call
        from swarm_hook_core.kernel.statement import preceded

        try:
            plans.add_words(call.session_id, name_of_call(self.config, call), words)
        except OSError as error:
            self.record_fault("kernel", error)
        told = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        answer({"hookSpecificOutput": {**told, "updatedInput": preceded(call.input, entry)}})
        return 0

    def _unread(self, error) -> int:
        """The payload cannot be read: whatever the call is, it may write."""
        from swarm_hook_core import fail_closed

        call = ToolCall("", None)
        verdict = fail_closed.verdict(self.config, call, error)
        return self._deny(verdict.denial, call) if verdict is not None else 0

    def _deny(self, denial, call) -> int:
        if not denial.brief:
            self.shorten(denial, call)
        answer(self.config.dialect.denial("PreToolUse", denial.brief or denial.reason))
        if denial.rest and call.session_id:
            from swarm_hook_core import unheard

            try:
                unheard.keep(self.config, call, denial.rest)
            except OSError as error:
                self.record_fault("unheard", error)
        return self.config.dialect.denial_status

    def shorten(self, denial, call, session=None) -> None:
        """Have the denial say in few words what the client has no room for; `session`: where it is for a lock."""
        room = self.config.dialect.reason_length
        if 0 < room < len(denial.reason):
            from swarm_hook_core.brief_reason import shorten

            shorten(denial, session, call, room)

    def mail_for(self, event, reader, session) -> str:
        """What the model is told of the session's unread mail, each message once; nearly always nothing."""
        try:
            if not event.session_id or not reader.newest_mail(session.instance_id):
                return ""
            from swarm_hook_core import unread_mail

            return unread_mail.take(self.config, event, reader, session)
        except Exception as error:
            self.record_fault("mail", error)
            return ""

    def _note_refusal(self, call, denial) -> None:
        """Have the coordinator record the refusal, and tell the session later when a locked file is free."""
        if (denial.held or denial.loss) is not None and denial.is_news:  # of others the coordinator has heard
            from swarm_hook_core.coordinator import note_denial

            note_denial(self.config.runtime_name, call, denial)
        elif denial.deed:
            from swarm_hook_core.coordinator import note_attempt

            note_attempt(self.config.runtime_name, call, denial)

    def tell_owners(self, verdict, call) -> None:
        """Have those told whose uncommitted changes the call overwrites, or is denied for again and again."""
        if verdict is None or not verdict.owners:
            return
        from swarm_hook_core.traces.owners import tell

        try:
            tell(self.config, call, verdict.owners, self.coordinator)
        except Exception as error:
            self.record_fault("traces", error)

    # ------------------------------------------------------------------------------------- a call, afterwards

    def is_watching(self) -> bool:
        """Whether any session's call is being watched."""
        from swarm_hook_core.state import is_watching

        return is_watching()

    def words_after(self, call) -> str:
        """What the model is told of a call that is over and was watched: what it changed. Nearly always empty."""
        from swarm_hook_core.watching import watch

        if is_awaited():
            self._ends(call)
        breaches = watch.finish(self.config, call, time.time())
        words = watch.report(self.config, call, breaches, self.coordinator, self.driver)
        if self.config.kernel and call.session_id and has_plans(call.session_id):
            from swarm_hook_core.kernel import refused

            words = "\n".join(filter(None, (words, refused.words_after(self, call))))
        return words

    def _ends(self, call) -> None:
        from swarm_hook_core.traces.endings import call_is_over

        try:
            call_is_over(self, call)
        except Exception as error:  # it is over by the session's next call in any case
            self.record_fault("traces", error)

    def words_now(self, event) -> str:
        """What the model is told of earlier calls whose end nobody told; nearly always empty."""
        if not self.is_watching():
            return ""
        from swarm_hook_core.watching import edits, watch

        try:
            breaches = watch.settle(self.config, event, time.time()) + edits.settle(self.config, event)
        except Exception as error:
            self.record_fault("watch", error)
            return ""
        return watch.report(self.config, event, breaches, self.registrar.command if breaches else None, self.driver)

    def _post_tool_use(self, call) -> None:
        if call.tool in SHELL_TOOLS and call.session_id and not call.goes_on:
            self._end_aside(call)
        failed = call.name == "PostToolUseFailure"
        self.tell("PostToolUseFailure" if failed else "PostToolUse", call, self.words_after(call))

    def _end_aside(self, call) -> None:
        """Note that a commit is over during which a hook put changes aside."""
        text = call.input.get("command") if isinstance(call.input, dict) else ""
        if not isinstance(text, str) or not any(mark in text for mark in ("commit", "push", "lint-staged", "prek")):
            return
        from swarm_hook_core.traces import asides

        try:
            asides.end(self.config, call, time.time())
        except Exception as error:
            self.record_fault("traces", error)

    # ---------------------------------------------------------------------------------------- other events

    def _at_event(self, name: str):
        """What ``session_events`` does at the event with this `name`, loaded once it is told."""

        def body(event) -> None:
            from swarm_hook_core import session_events

            getattr(session_events, name)(self, event)

        return body

    def tell(self, name: str, event, text: str, for_user: str = "") -> None:
        """Print words for the model, and for the user, at an event called `name`; nothing where there is no text.

        What the client would drop there, the model is told at the session's next event at which it listens.
        """
        if self.config.dialect.unheard is not None and event.session_id:
            text = self._heard(name, event, text)
        if text or for_user:
            answer(self.config.dialect.words(name, text, for_user))

    def _heard(self, name: str, event, text: str) -> str:
        """What of `text` the model hears at this event, and what has been kept for it."""
        from swarm_hook_core import unheard

        try:
            if not self.config.dialect.unheard(name, event.source):
                return "\n".join(filter(None, (unheard.take(self.config, event), text)))
            if text:
                unheard.keep(self.config, event, text)
            return ""
        except OSError as error:
            self.record_fault("unheard", error)
            return text

    def record_fault(self, hook: str, error: BaseException) -> None:
        """Write down what went wrong, where `swarm-mcp doctor` shows it."""
        from swarm_hook_core import faults

        faults.record(self.config.runtime_name, hook, faults.describe(error))
