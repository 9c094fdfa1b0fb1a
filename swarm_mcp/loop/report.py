"""The output of a run: words as the bash harness prints them, or our events, one JSON line each."""

from __future__ import annotations

import json
import sys
import threading
import time

from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import Cost
from swarm_mcp.loop.session import ModelCall, scrub, scrub_data

SHOWN_ARGUMENTS = 160


class Report:
    """The words: the answer on standard output, what happens on standard error."""

    def session(self, session, settings, tools: list[str], is_new: bool) -> None:
        """Report that a session begins or goes on."""
        if is_new:
            self._note(f"session: {session.id}")
            self._note(f"provider: {settings.provider}")
            self._note(f"model: {settings.model}")

    def answered(self, reply) -> None:
        """Report an answer of the model."""

    def tool_start(self, made: ModelCall) -> None:
        """Report that a tool is called."""
        shown = json.dumps(made.input, ensure_ascii=False)
        self._note(f"── {made.name} {shown if len(shown) <= SHOWN_ARGUMENTS else shown[: SHOWN_ARGUMENTS - 1] + '…'}")

    def tool_end(self, call_id: str, name: str, result: str, is_error: bool) -> None:
        """Report that a tool call is over."""
        if is_error:
            self._note(f"   {name}: {(result.strip().splitlines() or ['failed'])[0][:SHOWN_ARGUMENTS]}")

    def retry(self, message: str, category: str, not_before: float | None) -> None:
        """Report that the model is asked again."""
        self._note(f"asking again: {message}")

    def custom(self, name: str, data: dict) -> None:
        """Report anything else."""
        self._note(f"{name}: {' '.join(f'{key}={value}' for key, value in data.items())}")

    def ended(self, ended) -> None:
        """Report how the run ended."""
        if ended.error:
            self._note(f"error: {ended.error}")
        if ended.output:
            _print(ended.output, sys.stdout)

    def _note(self, line: str) -> None:
        _print(scrub(line), sys.stderr)


class JsonReport(Report):
    """The events."""

    def __init__(self):
        self._cost = Cost()
        self._turns = 0
        self._by_schema = False
        self._open: dict[str, str] = {}
        self._writing = threading.Lock()

    def session(self, session, settings, tools: list[str], is_new: bool) -> None:
        self._cost = self._cost._replace(model=settings.model)
        self._by_schema = bool(settings.config.get("output_schema"))
        more = {"model": settings.model, "cwd": session.cwd, "tools": tools, "provider": settings.provider}
        self._put(events.session_init(session.id, **more))

    def answered(self, reply) -> None:
        self._turns += 1
        for block in reply.blocks:
            if block.kind == "text":
                self._put(events.message("assistant", block.text))
            elif block.kind == "thinking" and block.text:
                self._put(events.message("assistant", block.text, thinking=True))
        usage = reply.usage
        self._cost = Cost(
            None,
            _sum(self._cost.input_tokens, usage.get("input")),
            _sum(self._cost.output_tokens, usage.get("output")),
            _sum(self._cost.cache_read_tokens, usage.get("cache_read")),
            _sum(self._cost.cache_write_tokens, usage.get("cache_write")),
            self._turns,
            reply.model or self._cost.model,
        )
        known = [usage.get(name) for name in ("input", "cache_read", "cache_write") if usage.get(name) is not None]
        facts = {"context_used_tokens": sum(known) if known else None, "context_total_tokens": None}
        facts.update(context_percent=None, output_tokens=usage.get("output"), spent=self._cost.to_dict())
        self._put(Event(events.CONTEXT_USAGE, facts))

    def tool_start(self, made: ModelCall) -> None:
        self._open[made.id] = made.name
        self._put(events.tool_start(made.id, made.name, made.input))

    def tool_end(self, call_id: str, name: str, result: str, is_error: bool) -> None:
        self._open.pop(call_id, None)
        self._put(events.tool_end(call_id, name, result, is_error))

    def retry(self, message: str, category: str, not_before: float | None) -> None:
        self._put(events.retry("loop.retry", {}, message, category, not_before))

    def custom(self, name: str, data: dict) -> None:
        self._put(events.custom(f"loop.{name}", data))

    def ended(self, ended) -> None:
        for call_id, name in list(self._open.items()):
            self.tool_end(call_id, name, ended.error or "no result", True)
        if ended.error:
            self._put(events.error(ended.error, ended.category))
        output = ended.output or None
        more: dict = {"cost": self._cost.to_dict()}
        if self._by_schema and output:
            from swarm_mcp.loop.prompts import structured

            more["structured"] = structured(output)
        if ended.retry_not_before:
            more["retry_not_before"] = ended.retry_not_before
        self._put(events.result(output, bool(ended.error), ended.category if ended.error else None, **more))

    def _put(self, event: Event) -> None:
        line = json.dumps(scrub_data(event._replace(at=time.time()).to_dict()), ensure_ascii=False)
        with self._writing:
            _print(line, sys.stdout)


def _sum(before: int | None, more: object) -> int | None:
    return before if not isinstance(more, int) else (before or 0) + more


def _print(line: str, to) -> None:
    try:
        to.write(line.encode(getattr(to, "encoding", None) or "utf-8", "replace").decode("utf-8", "replace") + "\n")
        to.flush()
    except (OSError, ValueError):
        return  # nobody listens any more; the session is written down all the same
