"""What a run cost: its own part of the session's figures, and dollars from tokens where the harness tells none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swarm_mcp.harness.adapter import Price
from swarm_mcp.harness.outcome import Cost

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_EFFORT = re.compile(r"(?:[-:@](?:none|minimal|low|medium|high|xhigh|max)|\s*\([a-z]+\)|\[[0-9a-z]+\])$", re.I)
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")


def cost_of(found: object) -> Cost:
    """Return a cost from what an adapter or an earlier run's parameters say; what is no number is unknown."""
    if isinstance(found, Cost):
        found = found.to_dict()
    if not isinstance(found, Mapping):
        return Cost()
    figures = {name: _figure(found.get(name)) for name in (*TOKENS, "num_turns")}
    dollars, model = _figure(found.get("total_cost_usd"), whole=False), found.get("model")
    return Cost(total_cost_usd=dollars, model=model if isinstance(model, str) else None, **figures)


def own_part(counted: Cost, before: Cost, cumulative: frozenset[str]) -> Cost:
    """Return this run's part of what a harness `counted` over a session; `before` is what it counted last time."""
    names = (("total_cost_usd",) if "cost" in cumulative else ()) + (TOKENS if "tokens" in cumulative else ())
    return counted._replace(**{name: _less(getattr(counted, name), getattr(before, name)) for name in names})


def priced(cost: Cost, prices: Mapping[str, Price], model: str | None) -> Cost:
    """Return `cost` with dollars: the harness's own, else from the table; None for an unlisted model."""
    price = price_of(prices, model or cost.model)
    tokens = [getattr(cost, name) for name in TOKENS]
    if cost.total_cost_usd is not None or price is None or tokens[0] is None or tokens[1] is None:
        return cost
    given, out, read, written = (count or 0 for count in tokens)
    write_price = price.input if price.cache_write is None else price.cache_write
    dollars = given * price.input + read * price.cached + written * write_price + out * price.output
    return cost._replace(total_cost_usd=round(dollars / 1_000_000, 8))


def price_of(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """Return the price of a model, whatever effort, date, or provider its name has besides."""
    name = (model or "").strip()
    while name:
        for wanted in (name, name.rpartition("/")[2]):
            if wanted in prices:
                return prices[wanted]
        shorter = _EFFORT.sub("", name)
        shorter = _DATE.sub("", name) if shorter == name else shorter
        if shorter == name:
            return None
        name = shorter
    return None


def _figure(value: object, whole: bool = True):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return None
    return int(value) if whole else float(value)


def _less(counted, before):
    if counted is None or before is None or counted < before:  # a smaller one was counted from the beginning
        return counted
    return counted - before if isinstance(counted, int) else round(counted - before, 10)
