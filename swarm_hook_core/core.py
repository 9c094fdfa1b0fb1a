"""The hooks of one runtime: what each event of a client's session, and each call of a tool, comes to."""

import os
import time

from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall, answer, run, session_event, tool_call
from swarm_hook_core.state import has_plans, is_awaited, is_in_team


class HookCore:
    """The hooks of the runtime that `config` describes. Every ``run_*`` returns its exit status.

    Standard input is the client's JSON payload. A process that is not a hook says what it has already: `coordinator`,
    the argv prefix of the command, `driver`, its SQLite module, and `registrar`, how sessions are registered without
    that command. Two copies of SQLite on one file in one process undo each other's locks. It asks with a
    ``hooks.ToolCall`` of its own making. `is_within`: it asks about a part of a call that is watched already.
    `is_asked`: nobody makes the calls that it is asked about (``asked``).
    """

    is_asked = False

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
        try:
            return self._decided(call)
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
            self._shorten(denial, call)
        answer(self.config.dialect.denial("PreToolUse", denial.brief or denial.reason))
        if denial.rest and call.session_id:
            from swarm_hook_core import unheard

            try:
                unheard.keep(self.config, call, denial.rest)
            except OSError as error:
                self.record_fault("unheard", error)
        return self.config.dialect.denial_status

    def _shorten(self, denial, call, session=None) -> None:
        """Have the denial say in few words what the client has no room for; `session`: where it is for a lock."""
        room = self.config.dialect.reason_length
        if 0 < room < len(denial.reason):
            from swarm_hook_core.brief_reason import shorten

            shorten(denial, session, call, room)

    def _decided(self, call):
        says_files = call.tool in self.config.write_tools
        if not says_files and not _may_write_unseen(self.config, call):
            if not call.tool:
                raise ValueError("the payload names no tool")
            return None
        effects = None
        if not self.is_within or self.is_asked:
            denial, effects = self._for_a_person(call, says_files)
            if denial is not None:
                from swarm_hook_core.decision import Verdict

                return Verdict(denial)
        trail = self.trail_of(call)
        is_read = not says_files and self._is_to_be_read(call, trail)
        session, reader = self._session_of(call, only_beside_locks=not says_files and not is_read)
        if reader is None:
            if session is not None and not self._leave_unread(trail):
                return self._decided(call)
            return None
        self._mark_own(call, session)
        if reader.others_hold(session.instance_id):
            session.mounts = reader.other_mounts(session.root)
        from swarm_hook_core.decision import Verdict, decide
        from swarm_hook_core.lookup import Peers

        now = time.time()
        if not says_files:
            from swarm_hook_core import opaque_calls

            if is_read and effects is None:
                effects = opaque_calls.effects_of(call)
                denial = self._denied_to_agents(call, (), effects)
                if denial is not None:
                    return Verdict(denial)
        claimed = self._claimed(call, effects, trail, reader, now)
        peers = Peers(reader, session.instance_id, now, call.agent, claimed)
        # Asked before the locks are looked at: if it was fresh then, they are all that there is.
        team_trees = reader.team_trees() if is_in_team() else ()
        verdict = Verdict(decide(self.config, session, call, peers, now))
        if verdict.denial is None and not says_files and peers.any() and opaque_calls.concerns(call, session, peers):
            effects = effects if is_read or effects is not None else opaque_calls.effects_of(call)
            if effects is not None:
                verdict = opaque_calls.judge(self.config, session, call, effects, peers, now)
        if verdict.denial is None and team_trees:
            from swarm_hook_core import team_freshness

            team_freshness.judge(self, call, effects, team_trees, verdict, now)
        if verdict.denial is None and verdict.plan is not None and not self.is_within:
            self._leave_plan(session, call, effects, peers, verdict, now)
        if verdict.denial is None:
            self._meet(session, call, effects, trail, reader, verdict, now)
        if verdict.denial is not None:
            self._count(call, verdict.denial, session, peers)
        if verdict.denial is not None and verdict.plan is not None and not self.is_within:
            self._drop_plan(call, verdict)
        if verdict.denial is not None and claimed is not None:
            claimed.take_back()
        elif verdict.denial is None and verdict.watched and not self.is_within:
            from swarm_hook_core.watching import watch

            watch.begin(self.config, call, verdict.watched, now)
        if verdict.denial is None and says_files and not self.is_within and peers.any():
            self._watch_edit(session, call, peers, verdict, now)
        self._add_news(call, verdict, peers, session)
        if verdict.denial is not None:
            self._shorten(verdict.denial, call, session)
        return verdict

    def _for_a_person(self, call, says_files: bool):
        """``(Denial or None, Effects or None)`` of a call that may weaken the protection of others: see ``protected``.

        A few looks at its text, and nothing is loaded, where it names nothing of the kind.
        """
        from swarm_hook_core.state import may_protect, speaks_of_protection

        try:
            if says_files:
                paths = [os.path.join(call.folder, path) for path in self.config.extract_paths(call.input)]
                if not any(may_protect(os.path.realpath(path)) for path in paths):
                    return None, None
                from swarm_hook_core.targets import changes

                return self._denied_to_agents(
                    call, changes(self.config, call.tool, call.input, call.folder), None
                ), None
            if not any(speaks_of_protection(text) for text in _texts_in(call.input)):
                return None, None
            from swarm_hook_core import opaque_calls

            effects = opaque_calls.effects_of(call)
            return self._denied_to_agents(call, (), effects), effects
        except ValueError:  # of input that cannot be read, the check itself speaks
            return None, None

    def _denied_to_agents(self, call, targets, effects):
        """The Denial of what only a person may do; None for none, and where that cannot be told."""
        from swarm_hook_core import protected

        try:
            return protected.denial_of(call, targets, effects)
        except Exception as error:  # what else the call does is looked at all the same
            self.record_fault("protected", error)
            return None

    def _watch_edit(self, session, call, peers, verdict, now: float) -> None:
        """Have locked files around an edit compared at the next hook: another plugin may run a formatter after it."""
        from swarm_hook_core.watching import edits, watch

        breaches = edits.begin(self.config, call, session, peers, now)
        words = watch.report(self.config, call, breaches, self.registrar.command if breaches else None, self.driver)
        verdict.notice = "\n".join(filter(None, (words, verdict.notice)))

    def _leave_plan(self, session, call, effects, peers, verdict, now: float) -> None:
        """Leave what the kernel is to hold; where that fails the call is judged as if it could hold nothing."""
        from swarm_hook_core.kernel import planning
        from swarm_hook_core.opaque_calls import judge

        try:
            verdict.entry = planning.leave(self.config, call, verdict.plan)
        except (OSError, ValueError) as error:  # a full disk; text that no file can hold
            self.record_fault("kernel", error)
            otherwise = judge(self.config, session, call, effects, peers, now, with_kernel=False)
            verdict.plan, verdict.denial, verdict.notice = None, otherwise.denial, otherwise.notice

    def _drop_plan(self, call, verdict) -> None:
        from swarm_hook_core.kernel import planning, plans

        plans.drop(call.session_id, planning.name_of_call(self.config, call))
        verdict.plan, verdict.entry = None, ""

    def trail_of(self, call):
        """The Trail of a call: where it leaves traces for others. None where this checkout wants none.

        Nor where there is no store, which says whose they are, and without which nobody would remove them.
        """
        from swarm_hook_core.state import local_store
        from swarm_hook_core.traces import OFF, level

        if not call.session_id or not local_store():
            return None
        found = level(self.config.env_prefix, call.folder)
        if found == OFF:
            return None
        from swarm_hook_core.traces import Trail

        return Trail(self.config, call, found)

    def _is_to_be_read(self, call, trail) -> bool:
        """Whether a call that does not say its files is looked at although nobody may hold a lock.

        A fault in what others have changed is no reason to pass over locks.
        """
        from swarm_hook_core.state import has_claims

        try:
            if trail is not None and (trail.is_by_turn or not trail.is_alone() or trail.may_lead_elsewhere()):
                return True
            if not has_claims():
                return False
            from swarm_hook_core.traces.claims import all_of_others

            return bool(all_of_others(self.config.runtime_name, call.session_id, call.agent, time.time_ns()))
        except Exception as error:
            self._traces_failed(call, error)
            return False

    def _claimed(self, call, effects, trail, reader, now: float):
        """What others have claimed for their turns (``Claimed``), where anybody has; after the call's own claims."""
        from swarm_hook_core.state import has_claims

        is_own = trail is not None and trail.is_by_turn
        if not is_own and not has_claims():
            return None
        from swarm_hook_core.traces.claimed import Claimed

        claimed = Claimed(self.config.runtime_name, call, reader, int(now * 1e9))
        if is_own:
            try:
                claimed.claim(trail.claims_of(effects))
            except Exception as error:
                self._traces_failed(call, error)
        return claimed

    def _traces_failed(self, call, error) -> None:
        """Record that what others have changed could not be looked at. Raises NotChecked where that is to deny."""
        from swarm_hook_core import fail_closed, faults

        self.record_fault("traces", error)
        fail_closed.demand(self.config, call, f"what others have changed: {faults.describe(error)}")

    def _leave_unread(self, trail) -> bool:
        """Leave the traces of a call that nobody has looked at: nobody holds a lock, or has left any traces here.

        Whether that is still so afterwards.
        """
        if trail is None:
            return True
        try:
            trail.note_unread()
        except Exception as error:
            self.record_fault("traces", error)
            return True
        return self._leave_alone(trail)

    def _leave_alone(self, trail) -> bool:
        """Leave the traces of a call that is alone; whether it still is."""
        self._leave(trail)
        try:
            return not trail.has_company()
        except Exception as error:
            self.record_fault("traces", error)
            return True

    def _leave(self, trail) -> None:
        try:
            trail.leave()
        except Exception as error:  # a full disk: the call itself was checked
            self.record_fault("traces", error)

    def _meet(self, session, call, effects, trail, reader, verdict, now: float) -> None:
        """Add to `verdict` what comes of writing what others have changed; leave the call's own traces."""
        if trail is None:
            return
        if effects is None and call.tool not in self.config.write_tools:
            if self._leave_unread(trail):
                return
            from swarm_hook_core.opaque_calls import effects_of

            effects = effects_of(call)
        try:
            if trail.note_alone(effects) and self._leave_alone(trail):
                return
            from swarm_hook_core.traces import verdict as by_level

            targets = trail.targets_of(effects)
            denial, words = by_level.judge(self.config, session, call, targets, effects, trail, reader, now)
            verdict.denial = denial
            verdict.notice = "\n".join(filter(None, (verdict.notice, words)))
            verdict.owners = trail.owners
        except Exception as error:
            self._traces_failed(call, error)
            return
        self._leave(trail)

    def _session_of(self, call, only_beside_locks: bool):
        """The Session that makes `call`, and its LockReader; ``(None, None)`` where either is out of reach.

        With `only_beside_locks` no reader where nobody has locked anything: there are many shell calls, and few locks.
        """
        from swarm_hook_core.lookup.sqlite import StoreReader
        from swarm_hook_core.state import local_store

        file = local_store()
        store = StoreReader(file, self.driver, waits=True) if file else None
        if store is not None:
            session = store.session(self.config.runtime_name, call.session_id)
            is_free = only_beside_locks and not (self._is_team_stale(store) or store.others_hold(""))
            if is_free and (session is None or not self._is_to_be_told(store, session, call)):
                return session, None
            if session is not None:
                return session, store
        from swarm_hook_core import sessions

        if store is None and only_beside_locks and not sessions.is_elsewhere(self.config, call.session_id):
            session, reader = None, None
        else:
            session, reader = sessions.join(self.config, call, store, self.coordinator, self.driver)
        if session is None:
            from swarm_hook_core import fail_closed

            fail_closed.demand(self.config, call, "the store cannot be reached, or does not know this session")
        return session, reader

    def _is_to_be_told(self, store, session, call) -> bool:
        """Whether there is something for the session to hear at this call: of its locks, or of its mail."""
        if store.has_news(session.instance_id):
            return True
        newest = store.newest_mail(session.instance_id)
        if not newest:
            return False
        from swarm_hook_core import unread_mail

        return unread_mail.is_due(self.config, call, session.instance_id, newest)

    def _is_team_stale(self, store) -> bool:
        """Whether locks of other machines may be missing in the store."""
        if not is_in_team():
            return False
        from swarm_hook_core.team_freshness import stale_trees

        return bool(stale_trees(store.team_trees()))

    def _mark_own(self, call, session) -> None:
        """While calls of others are being watched: what this session does itself is not theirs."""
        if not session.instance_id or not self.is_watching():
            return
        from swarm_hook_core.targets import absolute_paths
        from swarm_hook_core.watching import records

        says_files = call.tool in self.config.write_tools
        files = absolute_paths(self.config, call.tool, call.input, call.folder) if says_files else ()
        try:
            key = records.call_key(self.config.runtime_name, call)
            records.mark_own(session.instance_id, files, key, time.time_ns(), call.agent)
        except Exception as error:
            self.record_fault("watch", error)

    def _add_news(self, call, verdict, peers, session) -> None:
        """Put what this session is to be told of its locks and mail into `verdict`; renew its leases if it is time."""
        if not peers.own_id:
            return
        words = "\n".join(filter(None, (self._news_of_locks(call, peers), self.mail_for(call, peers.reader, session))))
        if words and verdict.denial is not None:
            verdict.denial.reason += "\n" + words  # a client that is denied a call is told nothing else
        elif words:
            verdict.notice = "\n".join(filter(None, (words, verdict.notice)))

    def _news_of_locks(self, call, peers) -> str:
        try:
            leases, has_news = peers.reader.leases_and_news(peers.own_id)
            if not leases and not has_news:
                return ""
            from swarm_hook_core import lease_renewal

            return lease_renewal.renew(self.config, call.session_id, leases, has_news, self.coordinator)
        except Exception as error:
            self.record_fault("pre_tool_use", error)
            return ""

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

    def _count(self, call, denial, session, peers) -> None:
        """Count a refusal; where it is one of many, it says so."""
        from swarm_hook_core import storms

        try:
            storms.weigh(denial, session, call, peers, peers.now)
        except Exception as error:
            self.record_fault("pre_tool_use", error)

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


def _may_write_unseen(config, call) -> bool:
    """Whether a call of a tool that does not say which files it writes may write some."""
    tool = call.tool
    if tool in SHELL_TOOLS or tool in OPAQUE_TOOLS:
        return True
    if not tool or tool in config.harmless_tools:
        return False
    from swarm_hook_core.mcp_writers import is_writer

    return is_writer(tool, call.input)


def _texts_in(given, depth: int = 6):
    """The texts in a tool's input."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (dict, list)) and depth:
        for value in given.values() if isinstance(given, dict) else given:
            yield from _texts_in(value, depth - 1)
