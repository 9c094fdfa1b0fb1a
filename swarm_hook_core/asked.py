"""The check of a write that is only asked about: `swarm-mcp why` and the page ask for the answer of a hook.

The rules are those of the hooks (``check.rules``), with nothing left behind: no traces, records or counts. No
file is kept, no session registered, and no write of another session is waited for. Only the coordinator loads this.
"""

from __future__ import annotations

import os

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.check import Check, rules
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.lookup import Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import describe
from swarm_hook_core.traces.trail import Trail, asked_trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial

KINDS = {EDIT: "edit", REPLACE: "overwrite", REMOVE: "remove"}  # kinds of writes -> people's words for them
_TOOLS = {EDIT: "Write", REPLACE: "Write", REMOVE: "rm"}  # as the words of a refusal have them


class AskedCall(ToolCall):
    """A write that is asked about: `how` it writes absolute `path`, and the `folder` of its session.

    `reader_folder` is the folder of the reader of the answer; empty if it is not known: paths are whole then.
    """

    __slots__ = ("_reader_folder",)

    def __init__(self, path: str, how: str, session_id: str, folder: str, agent: str, reader_folder: str):
        ToolCall.__init__(
            self, how, {"path": path, "how": how}, session_id, folder, agent=agent, client_tool=_TOOLS[how]
        )
        self._reader_folder = reader_folder or path  # nothing lies below a file

    @property
    def reader_folder(self) -> str:
        """The folder in which the reader of the answer types the commands that it names."""
        return self._reader_folder


class Question(Check):
    """A call that is only asked about, by the session of the AskedCore that asks."""

    is_question = True
    core: AskedCore

    def find_trail(self) -> Trail | None:
        """Return a Trail that leaves nothing; None if the checkout wants no traces."""
        return asked_trail(self.config, self.call)

    def session_and_glance(self) -> tuple[Session, StoreReader]:
        """Return the session that is asked about."""
        return self.core.session, self.core.reader


class AskedCore(HookCore):
    """The check of writes by `session`, with its client's name `runtime` and its id there, `session_id`.

    prefix         of the client's environment variables
    reader         reads the store
    reader_folder  as of an AskedCall
    """

    def __init__(
        self,
        runtime: str,
        prefix: str,
        session_id: str,
        session: Session,
        reader: StoreReader,
        reader_folder: str = "",
    ):
        config = RuntimeConfig(
            runtime, prefix, "swarm", KINDS, extract_changes=lambda given: [(given["path"], given["how"])]
        )
        HookCore.__init__(self, config, driver=reader.driver, is_within=True)
        self.session = session
        self.reader = reader
        self._session_id = session_id
        self._reader_folder = reader_folder

    def verdicts(self, path: str, agent: str = "") -> dict[str, Verdict]:
        """Return the Verdict on each kind of write (`EDIT`, ...) to absolute `path` by the session, or its `agent`."""
        found: dict[str, Verdict] = {}
        for how in KINDS:
            call = self._call(path, how, agent)
            found[how] = verdict = self._verdict(call)
            is_plain = verdict.denial is None and not verdict.notice and self._is_alone(call, path)
            is_plain = is_plain and not os.path.lexists(path)  # a person's work is not lost by an edit
            if is_plain or (verdict.denial is not None and _is_for_all(verdict.denial)):
                return dict.fromkeys(KINDS, verdict)  # the kind of write makes no difference
        return found

    def _call(self, path: str, how: str, agent: str) -> ToolCall:
        folder = self.session.directory or os.path.dirname(path) or "/"
        return AskedCall(path, how, self._session_id, folder, agent, self._reader_folder)

    def _verdict(self, call: ToolCall) -> Verdict:
        try:
            return rules.ask(Question(self, call)) or Verdict()
        except Exception as error:
            from swarm_hook_core import fail_closed

            closed = fail_closed.verdict(self.config, call, error)
            return closed or Verdict(notice=f"swarm: this could not be checked ({describe(error)[:300]}).", failed=True)

    def _is_alone(self, call: ToolCall, path: str) -> bool:
        trail = asked_trail(self.config, call)
        try:
            return trail is None or trail.is_alone([os.path.realpath(path)])
        except (OSError, ValueError):  # a path that no file can have: each kind of write is asked about
            return False


def _is_for_all(denial: Denial) -> bool:
    """Return True if the denial is the same for each kind of write: it is for a lock, or for the work tree."""
    return not denial.question and (denial.loss is None or denial.loss.why in ("fence", "team"))
