"""What has happened in a run so far, and the order that its events keep.

Harnesses leave events out when they are ended, and repeat some. Listeners of a run can rely on this: one
``session_init``, before any message; a ``tool_end`` for every ``tool_start`` and none without; one ``result``, last.
"""

from __future__ import annotations

from collections.abc import Iterator

from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event

LONGEST_OUTPUT = 30000  # characters of the assistant's last words that stand in for an answer
MOST_ERRORS = 50


class Ledger:
    """One run. `session_id`, `model`, `last_words`, `result` (of the harness), `errors` as they are known so far.

    `trouble` is why the harness tries its last step again (``events.retry``), None where it has gone on since.
    """

    def __init__(self, name: str):
        self._name = name
        self._introduced = False
        self._open: dict[str, str] = {}  # call id -> tool
        self._calls = 0
        self.session_id: str | None = None
        self.model: str | None = None
        self.last_words = ""
        self.result: dict | None = None
        self.errors: list[dict] = []
        self.trouble: dict | None = None

    def admit(self, event: Event) -> Iterator[Event]:
        """Yield the events that are emitted for one that the adapter gave: usually that one."""
        kind, data = event.kind, event.data
        if kind == events.SESSION_INIT:
            yield from self._session(event)
        elif kind == events.RESULT:
            self.result = data  # of several the last one counts
        elif kind == events.TOOL_START:
            self.trouble = None
            yield from self._introduction()
            yield from self._start(event)
        elif kind == events.TOOL_END:
            yield from self._introduction()
            yield from self._end(event)
        else:
            if kind == events.MESSAGE:
                yield from self._introduction()
                self._listen(data)
            elif kind == events.ERROR and len(self.errors) < MOST_ERRORS:
                self.errors.append(data)
            elif kind == events.CUSTOM and "retry" in str(data.get("name")):
                again = data.get("data")
                self.trouble = again if isinstance(again, dict) and again.get("category") else self.trouble
            yield event

    def close(self) -> Iterator[Event]:
        """Yield the ends of tool calls that the harness left open."""
        for call_id, tool in list(self._open.items()):
            del self._open[call_id]
            yield events.tool_end(call_id, tool, "the run ended before this call did", True)

    def again(self) -> None:
        """Begin anew with another child; what was emitted stays emitted."""
        self.session_id, self.last_words, self.result, self.errors, self.trouble = None, "", None, [], None

    @property
    def output(self) -> str:
        """The answer: the harness's own, else the last words of the assistant."""
        own = (self.result or {}).get("output")
        return own if isinstance(own, str) and own.strip() else self.last_words

    # ------------------------------------------------------------------ parts

    def _session(self, event: Event) -> Iterator[Event]:
        given = event.data.get("session_id")
        before = self.session_id
        self.session_id = given if isinstance(given, str) and given else before
        model = event.data.get("model")
        self.model = model if isinstance(model, str) and model else self.model
        if not self._introduced:
            self._introduced = True
            yield event
        elif self.session_id != before:  # too late, or another one: it has to be known all the same
            yield events.custom(f"{self._name}.session", event.data)

    def _introduction(self) -> Iterator[Event]:
        if not self._introduced:
            self._introduced = True
            yield events.session_init(None)  # type: ignore[arg-type]  # it has none, or has not said

    def _start(self, event: Event) -> Iterator[Event]:
        self._calls += 1
        call_id = str(event.data.get("tool_call_id") or f"call-{self._calls}")
        if call_id not in self._open:
            tool = str(event.data.get("tool_name") or "unknown")
            self._open[call_id] = tool
            args = event.data.get("args")
            yield event._replace(data={**event.data, "tool_call_id": call_id, "tool_name": tool, "args": args})

    def _end(self, event: Event) -> Iterator[Event]:
        call_id = str(event.data.get("tool_call_id") or (next(iter(self._open)) if len(self._open) == 1 else ""))
        tool = self._open.pop(call_id, "")
        if not tool:
            return  # its end was told before, or its start never was
        data = {"result": "", "is_error": False, **event.data, "tool_call_id": call_id}
        yield event._replace(data={**data, "tool_name": event.data.get("tool_name") or tool})

    def _listen(self, data: dict) -> None:
        content = data.get("content")
        if data.get("role") != "assistant" or data.get("thinking") or not isinstance(content, str):
            return
        if data.get("parent_tool_call_id"):
            return  # a sub-agent's, and not for us
        if content.strip():
            self.trouble = None
            self.last_words = content[-LONGEST_OUTPUT:]
