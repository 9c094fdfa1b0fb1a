"""The cost of an answer in dollars: by the prices in a variant's file, else by the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarm_mcp.agents.harness.claude.adapter import Claude
from swarm_mcp.agents.harness.codex.adapter import PRICES
from swarm_mcp.agents.harness.outcome import TOKENS, Cost, Price, priced
from swarm_mcp.agents.loop.providers.protocol import Reply, number
from swarm_mcp.agents.loop.sources import BUILT_IN_PROVIDERS

# Models that were the loop's own defaults; the others are where the clients of their makers have them.
_EARLIER = {
    "claude-sonnet-4-6": Price(3.0, 0.30, 15.0, "2026-02-17", 3.75),
    "gpt-4o": Price(2.5, 1.25, 10.0, "2024-10-02"),
}


def of_variant(facts: Mapping[str, str]) -> Price | None:
    """Return the price in a variant's file, in dollars for a million tokens, or `None`."""
    given, out = number(facts, "price_input"), number(facts, "price_output")
    if given is None or out is None:
        return None
    cached = number(facts, "price_cached")
    written = number(facts, "price_cache_write")
    return Price(given, given if cached is None else cached, out, facts.get("price_dated", ""), written)


def published(provider: str) -> Mapping[str, Price]:
    """Return model -> price for one of the providers that speak for a maker; a variant's seller has others."""
    if provider not in BUILT_IN_PROVIDERS:
        return {}
    return {**_EARLIER, **Claude.prices, **PRICES}


def of_answer(reply: Reply, provider: str, price: Price | None, asked: str) -> Cost:
    """Return tokens and dollars of an answer; dollars only with a known price. `asked` is the model in the request."""
    tokens = {f"{name}_tokens": reply.usage.get(name) for name in ("input", "output", "cache_read", "cache_write")}
    model = reply.model or asked
    cost = Cost(None, **tokens, num_turns=1, model=model)
    return priced(cost, {model: price} if price else published(provider), model)


def together(before: Cost, cost: Cost) -> Cost:
    """Return the sum of two costs: the known tokens, and dollars if both have a price."""
    tokens: dict[str, Any] = {name: _sum(getattr(before, name), getattr(cost, name)) for name in TOKENS}
    known = not before.num_turns or before.total_cost_usd is not None
    dollars = None
    if known and cost.total_cost_usd is not None:
        dollars = _sum(before.total_cost_usd, cost.total_cost_usd)
    return Cost(dollars, **tokens, num_turns=(before.num_turns or 0) + 1, model=cost.model or before.model)


def _sum(before: float | None, more: float | None) -> float | None:
    if more is None:
        return before
    return (before or 0) + more
