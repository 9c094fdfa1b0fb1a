"""The hooks of one runtime: read a payload, act, answer, and whatever goes wrong, let the call pass."""

import os
import time

from swarm_hook_core import payload as payloads

DEADLINE_SECONDS = 0.2
NOTED_SECONDS = 60  # a denial noted this lately is not noted again


class HookCore:
    """The hooks of the runtime that `config` describes. Every ``run_*`` returns 0, the exit status.

    Standard input is the client's JSON payload; standard output stays empty but for the one object
    a client honours. Faults are recorded for `swarm-mcp doctor`, never shown.

    A process that is not a hook says what it has already: `coordinator`, the argv prefix of the command,
    and `driver`, its SQLite module. Two copies of SQLite on one file in one process undo each other's locks.
    """

    def __init__(self, config, coordinator=None, driver=None):
        self.config = config
        self.coordinator = coordinator
        self.driver = driver

    def run_session_start_hook(self, stdin) -> int:
        """Register the session and print its context."""
        return self._run("session_start", stdin, self._session_start)

    def run_session_end_hook(self, stdin) -> int:
        """Deregister the session and remove what it left."""
        return self._run("session_end", stdin, self._session_end)

    def run_turn_hook(self, stdin) -> int:
        """Renew the session at the beginning or end of a turn."""
        return self._run("turn", stdin, self._turn)

    def run_pre_tool_use_hook(self, stdin) -> int:
        """Deny a write to a file that another live session has locked."""
        return self._run("pre_tool_use", stdin, self._pre_tool_use)

    def run_post_tool_use_hook(self, stdin) -> int:
        """Tell who needs to know where a call that was watched has changed a file that a peer has locked."""
        return self._run("post_tool_use", stdin, self._post_tool_use)

    def run_subagent_hook(self, stdin) -> int:
        """Tell a subagent who it is, or release what one held that has ended."""
        return self._run("subagent", stdin, self._subagent)

    def check(self, payload: dict):
        """The Verdict on the tool call in `payload`; what it may write unseen is noted.

        Raises whatever goes wrong, but for a fault while others hold locks in reach: then the Verdict says so.
        """
        return self._checked(payload)[0]

    def judge(self, payload: dict):
        """As `check`; and a refusal is noted, so that whoever waits for the file is told when it is free."""
        verdict, session, view = self._checked(payload)
        if verdict is not None and verdict.denial is not None:
            self._note_refusal(payload, verdict.denial, session, view)
        return verdict

    def words_after(self, payload: dict) -> str:
        """What the model is told of a call that is over and was watched: what it changed. Nearly always empty."""
        from swarm_hook_core.watching import watch

        changes = watch.finish(self.config, payload, time.time())
        return watch.report(self.config, payload, changes, self.coordinator, self.driver)

    def words_now(self, payload: dict) -> str:
        """What the model is told of earlier calls whose end nobody has; nearly always empty."""
        return self._settle(payload)

    def is_watching(self) -> bool:
        """Whether any session's call is being watched."""
        return _is_watching()

    def words_beside(self, verdict, payload: dict) -> str:
        """What the model is told although the call may pass: its Verdict's notice, and what earlier calls have done."""
        return "\n".join(filter(None, (verdict.notice, self._settle(payload))))

    def _checked(self, payload: dict):
        """``check``, with the session and where its locks were looked for; None where the call cannot write."""
        try:
            return self._decided(payload)
        except Exception as error:
            from swarm_hook_core.unchecked_calls import beside_locks

            told = beside_locks(self, payload, error)
            if told is None:
                raise
            return told

    def _decided(self, payload: dict):
        tool, tool_input = payloads.text_field(payload, "tool_name"), payload.get("tool_input")
        if not self._may_write(tool, tool_input):
            return None, None, None
        session, view = self._session_and_view(payload, only_beside_locks=tool not in self.config.write_tools)
        if session is None:
            return None, None, None
        cwd = payloads.text_field(payload, "cwd") or os.environ.get("PWD", "/")
        self._note_own(payload, session, tool, cwd)
        from swarm_hook_core.decision import Verdict, decide
        from swarm_hook_core.lookup.peers import Peers

        now = time.time()
        peers = Peers(view, session.instance_id, now, payloads.text_field(payload, "agent_id"))
        denial = decide(self.config, session, tool, tool_input, cwd, peers.on, now, peers.waiting_for)
        if denial is not None or tool in self.config.write_tools or not peers.any():
            found = Verdict(denial)
        else:
            from swarm_hook_core.opaque_calls import verdict

            found = verdict(self, payload, session, peers, cwd, now)
        return self._with_news(payload, found, session, view), session, view

    def _with_news(self, payload: dict, verdict, session, view):
        """`verdict`, with what this session is to be told of its own locks; leases of it are renewed if it is time."""
        try:
            leases, has_news = view.vital(session.instance_id) if session.instance_id else ((), False)
            if not leases and not has_news:
                return verdict
            from swarm_hook_core import lease_renewal

            words = lease_renewal.see_to(self.config, payload, leases, has_news, self.coordinator)
        except Exception as error:
            self._note_fault("pre_tool_use", error)
            return verdict
        if words and verdict.denial is not None:
            verdict.denial.reason += "\n" + words  # a client that is denied a call is told nothing else
        elif words:
            verdict.notice = "\n".join(filter(None, (words, verdict.notice)))
        return verdict

    def write_paths_for_tool(self, tool_name: str, tool_input, cwd: str = "") -> list[str]:
        """Absolute paths that a tool call would write, from `cwd` (default: this process's)."""
        from swarm_hook_core.targets import absolute_paths

        return absolute_paths(self.config, tool_name, tool_input, cwd)

    def _run(self, hook: str, stdin, body) -> int:
        try:
            body(self.config.dialect.read(payloads.parse(payloads.read(stdin))))
        except Exception as error:
            self._note_fault(hook, error)
        return 0

    def _note_fault(self, hook: str, error: BaseException) -> None:
        from swarm_hook_core import faults

        faults.record(self.config.runtime_name, hook, faults.describe(error))

    def _session_start(self, payload: dict) -> None:
        from swarm_hook_core import lifecycle

        trouble = ""
        try:
            words = lifecycle.start(self.config, payload)
        except lifecycle.NotRegistered as error:
            words = trouble = str(error)
        text = "\n\n".join(filter(None, (words, self._settle(payload))))
        if text:
            payloads.answer("SessionStart", trouble, additionalContext=text)

    def _session_end(self, payload: dict) -> None:
        from swarm_hook_core import lifecycle

        self._settle(payload)  # first: afterwards nobody knows this session any more
        lifecycle.end(self.config, payload)

    def _turn(self, payload: dict) -> None:
        from swarm_hook_core import lifecycle

        text = "\n".join(filter(None, (lifecycle.turn(self.config, payload), self._settle(payload))))
        # The end of a turn has no use for words: a client that is told something then goes on working.
        if text and payloads.text_field(payload, "hook_event_name") == "UserPromptSubmit":
            payloads.answer("UserPromptSubmit", additionalContext=text)

    def _subagent(self, payload: dict) -> None:
        from swarm_hook_core import subagents

        if payloads.text_field(payload, "hook_event_name") == "SubagentStart":
            text = subagents.greeting(payload)
            if text:
                payloads.answer("SubagentStart", additionalContext=text)
        else:
            subagents.end(self.config, payload, self.coordinator, self.driver)

    def _note_own(self, payload: dict, session, tool: str, cwd: str) -> None:
        """While calls of others are being watched: what this session does itself is not theirs."""
        if session.instance_id and _is_watching():
            from swarm_hook_core.watching import watch

            writes = tool in self.config.write_tools
            files = self.write_paths_for_tool(tool, payload.get("tool_input"), cwd) if writes else ()
            watch.note_own(session.instance_id, files, self.config, payload)

    def _post_tool_use(self, payload: dict) -> None:
        text = self.words_after(payload)
        if text:
            failed = payloads.text_field(payload, "hook_event_name") == "PostToolUseFailure"
            payloads.answer("PostToolUseFailure" if failed else "PostToolUse", additionalContext=text)

    def _settle(self, payload: dict) -> str:
        """Tell of what earlier calls changed whose end nobody told; the words for this session's model."""
        if not _is_watching():
            return ""
        from swarm_hook_core.watching import watch

        try:
            changes = watch.settle(self.config, payload, time.time())
        except Exception as error:
            self._note_fault("watch", error)
            return ""
        return watch.report(self.config, payload, changes, self.coordinator, self.driver)

    def _pre_tool_use(self, payload: dict) -> None:
        verdict, session, view = self._checked(payload)
        if verdict is None:
            return
        denial = verdict.denial
        if denial is None:
            notice = self.words_beside(verdict, payload)
            if notice:
                payloads.answer("PreToolUse", additionalContext=notice)
        else:
            payloads.answer("PreToolUse", permissionDecision="deny", permissionDecisionReason=denial.reason)
            self._note_refusal(payload, denial, session, view)  # the answer is out

    def _note_refusal(self, payload: dict, denial, session, view) -> None:
        """Whoever waits for the file is told when it is free, if the coordinator knows."""
        held = denial.held
        if held is None:
            return  # the coordinator has refused, and noted it
        if view.was_denied(session.instance_id, held, time.time() - NOTED_SECONDS, denial.path):
            from swarm_hook_core import repeated_denials

            repeated_denials.note(session.instance_id, held.instance_id, *held.names)
        else:
            from swarm_hook_core.coordinator import note_denial

            note_denial(self.config.runtime_name, payload, held, denial.file, denial.path)

    def _may_write(self, tool: str, tool_input) -> bool:
        if tool in self.config.write_tools:
            return True
        from swarm_hook_core.targets import OPAQUE_TOOLS, SHELL_TOOLS

        if tool in SHELL_TOOLS or tool in OPAQUE_TOOLS:
            return True
        if not tool.startswith("mcp__"):
            return False
        from swarm_hook_core.mcp_writers import is_writer

        return is_writer(tool)

    def _session_and_view(self, payload: dict, only_beside_locks: bool = False):
        """This session and where to look for locks; ``(None, None)`` where either is out of reach.

        With `only_beside_locks` also where nobody has locked anything: there are many shell calls, and few locks.

        A session that the store has never seen is registered in passing. Where that fails or takes
        too long it is checked all the same: unknown to the store, it holds nothing there.
        """
        from swarm_hook_core.lookup.sqlite import StoreReader
        from swarm_hook_core.state import local_store

        runtime = self.config.runtime_name
        session_id = payloads.text_field(payload, "session_id")
        file = local_store()
        store = StoreReader(file, self.driver) if file else None
        if only_beside_locks and not (
            store.others_hold("") or store.has_news() if store else self._is_elsewhere(session_id)
        ):
            return None, None
        session = store.session(runtime, session_id) if store else None
        if session is not None:
            return session, store
        from swarm_hook_core import scratch
        from swarm_hook_core.coordinator import chosen_command
        from swarm_hook_core.lifecycle import join_in_passing

        end = time.monotonic() + DEADLINE_SECONDS
        saved = scratch.load(self.config, session_id)
        known = saved.get("instance_id")
        instance_id = known or join_in_passing(self.config, payload, DEADLINE_SECONDS, self.coordinator)
        file = local_store()
        if file:
            store = StoreReader(file, self.driver)
            session = store.session(runtime, session_id)
            if session is not None:
                return session, store
        if store is not None and store.is_ours and not (instance_id and chosen_command()):
            return self.unregistered(payload, instance_id), store
        if not instance_id:
            return None, None
        from swarm_hook_core.lookup.command import CommandReader

        saved = scratch.load(self.config, session_id)
        view = CommandReader(max(0.05, end - time.monotonic()), str(saved.get("scope") or ""))
        return self.unregistered(payload, instance_id), view

    def _is_elsewhere(self, session_id: str) -> bool:
        """Whether the store may be one that only the coordinator's command can reach."""
        from swarm_hook_core import scratch
        from swarm_hook_core.coordinator import chosen_command

        return bool(chosen_command() or scratch.load(self.config, session_id).get("instance_id"))

    def unregistered(self, payload: dict, instance_id: str):
        """A session as its own payload and environment describe it, where the store does not."""
        from swarm_hook_core import environment
        from swarm_hook_core.lookup.sqlite import Session
        from swarm_hook_core.paths import git_root

        identity, cwd = environment.identity(self.config.env_prefix), payloads.text_field(payload, "cwd")
        label = f"identity:{identity}" if identity else ""
        file_root = environment.file_root(self.config.env_prefix)
        return Session(instance_id, label, cwd, git_root(cwd) if cwd else "", file_root)


def _is_watching() -> bool:
    """As ``watching.records.is_watching``, without loading it: nearly always there is nothing to load it for."""
    from swarm_hook_core.state import watched_dir

    return os.path.isdir(watched_dir())
