"""A conversation with one agent: each prompt continues the session of the one before."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.outcome import Cost, RunResult, added
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.resumption import session_given
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.errors import Refused

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from swarm_mcp.agents.harness.query_options import Options, PathLike

_OWN = ("resume_session_id", "fork_session")


class Session:
    """A conversation with `harness` (a name or an adapter) in `cwd`; `options` are fields of a ``Query``.

    ``async with Session("codex", cwd=path) as session: result = await session.ask("...")``. `previous` continues an
    earlier one: a ``RunResult``, its ``session_params``, this class's `previous`, or the harness's own session id.
    Leaving the block ends a prompt that is still being answered. The session itself stays with the harness.
    """

    def __init__(
        self,
        harness: HarnessAdapter | str,
        cwd: PathLike,
        *,
        previous: Mapping[str, Any] | RunResult | str | None = None,
        record_folder: PathLike = "",
        **options: Unpack[Options],
    ):
        """Raises Refused for an unknown harness, or an unknown option."""
        harness = registry.adapter_of(harness)
        self._adapter, self._cwd, self._folder = harness, cwd, record_folder
        self._options: dict[str, Any] = {**options}
        session_given(harness, previous)  # refused now, not at the first prompt
        self._previous: Any = previous
        self._is_fork = False
        self._is_closed = False
        self._turn: Run | None = None
        self._results: list[RunResult] = []
        self._lock = threading.RLock()
        self._query("", {})

    async def ask(self, prompt: str, **changes: Unpack[Options]) -> RunResult:
        """Return the answer's result; `changes` are options for this prompt alone. Raises as ``Run.result`` does."""
        return await self.run(prompt, **changes)

    def run(self, prompt: str, **changes: Unpack[Options]) -> Run:
        """Return the run for a prompt, not yet started: for its events, or ``.result()`` without an event loop.

        Its start raises Refused while this session is answering an earlier prompt.
        """
        return _Turn(self, self._query(prompt, {**changes}))

    def fork(self) -> Session:
        """Return a conversation that knows all that was said here, and goes its own way from its first prompt on."""
        with self._lock:
            self._settle()
            made = Session(self._adapter, self._cwd, previous=self._previous, record_folder=self._folder,
                           **self._options)  # fmt: skip
            made._is_fork = self._previous is not None
            return made

    @property
    def results(self) -> tuple[RunResult, ...]:
        """The results so far, failed ones too."""
        with self._lock:
            self._settle()
            return tuple(self._results)

    @property
    def cost(self) -> Cost:
        """The sum over `results`; a figure that one result lacks is None."""
        return functools.reduce(added, [result.cost for result in self.results] or [Cost(0.0, 0, 0, 0, 0, 0)])

    @property
    def previous(self) -> dict[str, Any] | None:
        """The session as a JSON object, to be continued later, in any process; None before the first answer."""
        with self._lock:
            self._settle()
            known = session_given(self._adapter, self._previous)
            return known and {**known._asdict(), "cost": known.cost.to_dict()}

    @property
    def session_id(self) -> str | None:
        """The harness's name of the session, None before the first answer."""
        return (self.previous or {}).get("session_id")

    def close(self) -> None:
        """End a prompt that is being answered, without waiting, and refuse further ones."""
        with self._lock:
            self._is_closed = True
            if self._turn is not None:
                self._turn.abort("its session was closed")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
        if self._turn is not None:
            self._turn.wait()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()
        if self._turn is not None:
            await self._turn.ended()

    # ------------------------------------------------------------------ parts

    def _query(self, prompt: str, changes: dict[str, Any]) -> Query:
        given = {**self._options, **changes}
        wrong = next((name for name in given if name not in Query._fields or name in _OWN), None)
        if wrong:
            raise Refused(f"{wrong!r} is no option of a session (docs/dev/python.md)")
        return Query(prompt, self._cwd, **given)

    def _settle(self) -> None:
        """Take in the result of the last prompt, if it is over."""
        result = self._turn.wait(0) if self._turn is not None else None
        if result is None:
            return
        self._turn = None
        self._results.append(result)
        if result.session_params:
            self._previous, self._is_fork = result.session_params, False
        elif result.clear_session:
            self._previous, self._is_fork = None, False

    def _begin(self, turn: _Turn) -> tuple[Any, bool]:
        """Make `turn` the prompt that is being answered; return the session to continue, and True for a copy of it."""
        self._settle()
        if self._is_closed:
            raise Refused("this session is closed")
        if self._turn is not None and self._turn is not turn:
            raise Refused("this session is still answering an earlier prompt: wait for it, or ask a fork()")
        self._turn = turn
        return self._previous, self._is_fork


class _Turn(Run):
    """One prompt of a session. It continues the session as it is at its start."""

    def __init__(self, session: Session, query: Query):
        super().__init__(session._adapter, query, record_folder=session._folder)
        self._session = session

    def start(self) -> Run:
        with self._session._lock:
            if self._thread is None:
                previous, is_fork = self._session._begin(self)
                self._continue(previous, is_fork)
            try:
                return super().start()
            finally:
                if self._thread is None:  # refused
                    self._session._turn = None
