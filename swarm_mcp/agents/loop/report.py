"""The output of a run: words as the bash harness prints them, or our events, one JSON line each."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any, TextIO

from swarm_hook_core.untrusted_text import safe
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Cost, Price
from swarm_mcp.agents.loop.messages import ModelCall
from swarm_mcp.agents.loop.prompts import structured
from swarm_mcp.agents.loop.providers import prices
from swarm_mcp.agents.loop.providers.protocol import Reply
from swarm_mcp.agents.loop.session import Session, scrub, scrub_data
from swarm_mcp.agents.loop.settings import LoopSettings

SHOWN_ARGUMENTS = 160


class Report:
    """The words of a run: the answer on standard output, its progress on standard error.

    At a terminal the model's text is shown as it comes, and its tokens and cost at the end. `session_id` is set once
    there is a session; `cost` is the cost so far.
    """

    def __init__(self) -> None:
        self.session_id = ""
        self.cost = Cost()
        self._model = self._provider = ""
        self._is_live = sys.stdout is not None and sys.stdout.isatty()
        # The unfinished word, this answer's text, and the last finished answer's text.
        self._coming = self._said = self._shown = ""
        self._writing = threading.RLock()

    def session(self, session: Session, settings: LoopSettings, tools: list[str], is_new: bool) -> None:
        """Report that a session begins or goes on."""
        self.session_id, self._model, self._provider = session.id, settings.model, settings.provider
        self.cost = self.cost._replace(model=settings.model)
        if is_new:
            self._note(f"session: {session.id}")
            self._note(f"provider: {settings.provider}")
            self._note(f"model: {settings.model}")

    def text(self, piece: str) -> None:
        """Report a piece of the model's text. Whole words are shown, so that secrets in them are found."""
        if not self._is_live:
            return
        with self._writing:
            whole = self._coming + piece
            ready = max(whole.rfind(" "), whole.rfind("\n")) + 1
            self._coming = whole[ready:]
            self._say(whole[:ready])

    def answered(self, reply: Reply, price: Price | None = None) -> None:
        """Report an answer of the model; `price` is its provider's own."""
        self.cost = prices.together(self.cost, prices.of_answer(reply, self._provider, price, self._model))
        if self._is_live:
            with self._writing:
                if not self._said and not self._coming:  # it came as a whole
                    self._say("".join(block.text for block in reply.blocks if block.kind == "text"))
                self._end_line()

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

    def custom(self, name: str, data: dict[str, Any]) -> None:
        """Report anything else."""
        self._note(f"{name}: {' '.join(f'{key}={value}' for key, value in data.items())}")

    def ended(self, ended: Any) -> None:
        """Report how the run ended."""
        if ended.error:
            self._note(f"error: {ended.error}")
        if ended.output and not (self._is_live and safe(scrub(ended.output)).split() == self._shown.split()):
            _print(safe(ended.output) if self._is_live else ended.output, sys.stdout)
        if self._is_live and self.cost.num_turns:
            self._note(took(self.cost))

    def _say(self, text: str) -> None:
        text = safe(scrub(text))
        self._said += text
        _print(text, sys.stdout, "")

    def _end_line(self) -> None:
        """End the line of the model's text."""
        if self._coming:
            self._say(self._coming)
        if self._said and not self._said.endswith("\n"):
            _print("", sys.stdout)
        if self._said:
            self._shown = self._said
        self._coming = self._said = ""

    def _note(self, line: str) -> None:
        with self._writing:
            if self._is_live:
                self._end_line()
            _print(safe(scrub(line)) if self._is_live else scrub(line), sys.stderr)


class JsonReport(Report):
    """The events."""

    def __init__(self) -> None:
        super().__init__()
        self._is_live = False
        self._by_schema = False
        self._open: dict[str, str] = {}

    def session(self, session: Session, settings: LoopSettings, tools: list[str], is_new: bool) -> None:
        self.session_id, self._model, self._provider = session.id, settings.model, settings.provider
        self.cost = self.cost._replace(model=settings.model)
        self._by_schema = bool(settings.config.get("output_schema"))
        more = {"model": settings.model, "cwd": session.cwd, "tools": tools, "provider": settings.provider}
        self._put(events.session_init(session.id, **more))

    def answered(self, reply: Reply, price: Price | None = None) -> None:
        super().answered(reply, price)
        for block in reply.blocks:
            if block.kind == "text":
                self._put(events.message("assistant", block.text))
            elif block.kind == "thinking" and block.text:
                self._put(events.message("assistant", block.text, thinking=True))
        usage = reply.usage
        known = [usage[name] for name in ("input", "cache_read", "cache_write") if usage.get(name) is not None]
        facts: dict[str, Any] = {"context_used_tokens": sum(known) if known else None, "context_total_tokens": None}
        facts.update(context_percent=None, output_tokens=usage.get("output"), spent=self.cost.to_dict())
        # Turns the loop counts itself.
        facts.update(cost_usd=self.cost.total_cost_usd, goes_on=any(block.call for block in reply.blocks))
        self._put(Event(events.CONTEXT_USAGE, facts))

    def tool_start(self, made: ModelCall) -> None:
        self._open[made.id] = made.name
        self._put(events.tool_start(made.id, made.name, made.input))

    def tool_end(self, call_id: str, name: str, result: str, is_error: bool) -> None:
        self._open.pop(call_id, None)
        self._put(events.tool_end(call_id, name, result, is_error))

    def retry(self, message: str, category: str, not_before: float | None) -> None:
        self._put(events.retry("loop.retry", {}, message, category, not_before))

    def custom(self, name: str, data: dict[str, Any]) -> None:
        self._put(events.custom(f"loop.{name}", data))

    def ended(self, ended: Any) -> None:
        for call_id, name in list(self._open.items()):
            self.tool_end(call_id, name, ended.error or "no result", True)
        if ended.error:
            self._put(events.error(ended.error, ended.category))
        output = ended.output or None
        more: dict[str, Any] = {"cost": self.cost.to_dict()}
        if self._by_schema and output:
            more["structured"] = structured(output)
        if ended.retry_not_before:
            more["retry_not_before"] = ended.retry_not_before
        self._put(events.result(output, bool(ended.error), ended.category if ended.error else None, **more))

    def _put(self, event: Event) -> None:
        line = json.dumps(scrub_data(event._replace(at=time.time()).to_dict()), ensure_ascii=False)
        with self._writing:
            _print(line, sys.stdout)


def took(cost: Cost) -> str:
    """Return tokens and time of a run in words, with dollars if they are known."""
    if cost.num_turns == 1:
        answers = "1 answer"
    else:
        answers = f"{cost.num_turns} answers"
    given = [cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens]
    words = [answers]
    if any(count is not None for count in (*given, cost.output_tokens)):
        words.append(f"{sum(count or 0 for count in given):,} tokens in, {cost.output_tokens or 0:,} out")
    if cost.total_cost_usd is not None:
        words.append(f"${cost.total_cost_usd:.4f}")
    return ", ".join(words)


def _print(line: str, to: TextIO, end: str = "\n") -> None:
    try:
        to.write(line.encode(getattr(to, "encoding", None) or "utf-8", "replace").decode("utf-8", "replace") + end)
        to.flush()
    except (OSError, ValueError):
        return  # the reader has gone; the session is written down all the same
