"""The provider of a run: by name, a ``.conf`` variant, or the first that is ready; and asking it.

A provider is built in, over HTTP, or an executable of a plugin.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from swarm_mcp.agents.harness.claude import Claude
from swarm_mcp.agents.harness.codex import PRICES
from swarm_mcp.agents.harness.outcome import TOKENS, Cost, Price, priced
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.agents.loop import protocols, settings, tools
from swarm_mcp.agents.loop.protocols import Anthropic, OpenAI, Reply, number_of
from swarm_mcp.agents.loop.session import ModelCall, learn, model_call
from swarm_mcp.agents.loop.settings import LoopFailure, LoopRun
from swarm_mcp.agents.loop.tools import BUILT_IN_PROVIDERS

# The cost of an answer in dollars: by the prices in a variant's file, else by the published ones.

# Models that were the loop's own defaults; the others are where the clients of their makers have them.
_EARLIER = {
    "claude-sonnet-4-6": Price(3.0, 0.30, 15.0, "2026-02-17", 3.75),
    "gpt-4o": Price(2.5, 1.25, 10.0, "2024-10-02"),
}


def of_variant(facts: Mapping[str, str]) -> Price | None:
    """Return the price in a variant's file, in dollars for a million tokens, or `None`."""
    given, out = number_of(facts, "price_input"), number_of(facts, "price_output")
    if given is None or out is None:
        return None
    cached = number_of(facts, "price_cached")
    return Price(given, given if cached is None else cached, out, "")


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


READY_SECONDS = 10.0


def built_in(name: str) -> Anthropic | OpenAI:
    """Return the protocol of that name; anthropic's for any other."""
    if name == "openai":
        return OpenAI()
    return Anthropic()


class Provider:
    """A provider: `name`, its `protocol` (and `protocol_name`), and its environment.

    `path` is its executable, empty for a built-in one. A variant may turn `streams` off, and have a `price` of its own.
    """

    def __init__(self, name: str, protocol_name: str, path: str, more: Mapping[str, str], streams: bool, model: str):
        self.name, self.protocol_name, self.path = name, protocol_name, path
        self.more, self.streams = dict(more), streams
        self.price: Price | None = None
        self.protocol = built_in(protocol_name)
        self.default_model = model

    def ask(self, loop: LoopRun, payload: dict[str, Any], early_calls: EarlyCalls) -> dict[str, Any]:
        """Return the answer to `payload`, as the protocol has it whole. Raises LoopFailure."""
        environ = {**loop.environment("send"), **self.more}
        streams = loop.settings.stream and self.streams
        if self.path:
            return ask(loop, self, payload, environ, streams, early_calls)
        missing = self.protocol.missing(environ)
        if missing:
            raise LoopFailure(f"{missing} is not set, which the provider {self.name} needs", "auth_failed")
        request = self.protocol.request(payload, environ, streams)
        if not streams:
            return protocols.whole(self.name, request, loop.report.retry)
        session = loop.session

        def say(text: str) -> None:
            session.stream("text", text=text)
            loop.report.text(text)

        sink = protocols.Sink(
            say,
            lambda text: session.stream("thinking", text=text),
            early_calls.begin,
        )
        return protocols.joined(self.name, request, lambda chunks: self.protocol.join(chunks, sink), loop.report.retry)


def first_ready(found: list[str], environ: Mapping[str, str]) -> str:
    """Return the first provider, by name, that is ready; empty without one."""
    paths = executables(found, environ)
    for name in sorted({*paths, *BUILT_IN_PROVIDERS}):
        if name in paths:
            if _flag(paths[name], "--ready", environ)[0] == 0:
                return name
        elif not missing(name, environ):
            return name
    return ""  # not a variant that merely finds a variable: that may be there for something else


def missing(name: str, environ: Mapping[str, str]) -> str:
    """Return the variables that a built-in provider lacks; empty if it is ready."""
    return built_in(name).missing(environ)


def resolve(name: str, found: list[str], environ: Mapping[str, str]) -> Provider:
    """Return the provider of that name. Raises LoopFailure."""
    if not name:
        wanted = "ANTHROPIC_API_KEY, OPENAI_API_KEY, or OPENAI_API_URL for a server of your own"
        raise LoopFailure(f"no provider is ready: set {wanted} (HARNESS_PROVIDER names one)", "auth_failed")
    if os.sep in name or name.startswith("."):
        raise LoopFailure(f"provider '{name[:60]}' not found", "not_installed")
    path = executables(found, environ).get(name, "")
    if path:
        said = dict(settings.pairs(_flag(path, "--defaults", environ)[1]))
        return Provider(name, said.get("protocol", name), path, {}, True, said.get("model", ""))
    if name in BUILT_IN_PROVIDERS:
        return Provider(name, name, "", {}, True, built_in(name).default_model)
    conf = variants(found).get(name)
    if not conf:
        raise LoopFailure(f"provider '{name[:60]}' not found", "not_installed")
    return _variant(name, conf, found, environ)


def executables(found: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return name -> path of the plugins' providers, without the built-in ones."""
    ours = os.path.join(environ.get("HARNESS_ROOT") or os.devnull, "")
    paths = tools.executables(found, "providers")
    return {name: path for name, path in paths.items() if not path.startswith(ours) and not name.endswith(".conf")}


def variants(found: list[str]) -> dict[str, str]:
    """Return name -> path of the ``.conf`` files, ours and of all sources; the last of a name."""
    return settings.named(found, "providers")


def _variant(name: str, conf: str, found: list[str], environ: Mapping[str, str]) -> Provider:
    """A provider like another, at another address and with a key of its own, never the other's."""
    facts = dict(settings.read(conf))
    protocol = facts.get("protocol", "")
    path = executables(found, environ).get(protocol, "")
    if protocol not in BUILT_IN_PROVIDERS and not path:
        raise LoopFailure(f"{conf}: protocol={protocol or '(missing)'} is no provider", "not_installed")
    prefix = protocol.upper().replace("-", "_")
    key = environ.get(facts.get("auth_env", ""), "").strip()
    if facts.get("auth_env") and not key:
        raise LoopFailure(f"{facts['auth_env']} is not set: {name} needs it", "auth_failed")
    if key:
        learn({f"{prefix}_API_KEY": key})
    more = {f"{prefix}_API_KEY": key, f"{prefix}_AUTH_TOKEN": ""}
    for setting, variable in (("url", "API_URL"), ("max_tokens", "MAX_TOKENS")):
        if facts.get(setting):
            more[f"{prefix}_{variable}"] = facts[setting]
    streams = facts.get("stream", "").lower() not in ("0", "false", "no", "off")
    made = Provider(name, protocol, path, more, streams, facts.get("model", ""))
    made.price = of_variant(facts)
    return made


def _flag(path: str, flag: str, environ: Mapping[str, str]) -> tuple[int, str]:
    ran = tools.run_command([path, flag], env=environ, cwd=os.getcwd(), seconds=READY_SECONDS)
    return ran.code, ran.out


LARGEST = 1 << 20


class EarlyCalls(Protocol):
    """A receiver of calls that come before the end of an answer."""

    def begin(self, made: ModelCall) -> None:
        """Take a complete call."""


def ask(
    loop: LoopRun,
    provider: Provider,
    payload: dict[str, Any],
    environ: Mapping[str, str],
    streams: bool,
    early_calls: EarlyCalls,
) -> dict[str, Any]:
    """Return the answer. Raises LoopFailure with the provider's error, from standard error or ``{"error"}``."""
    argv = [provider.path]
    text = json.dumps(payload, ensure_ascii=False)
    if streams and _takes_stream(provider.path):
        with tempfile.TemporaryDirectory(prefix="swarm-loop-") as folder:
            fifo = os.path.join(folder, "calls")
            os.mkfifo(fifo, 0o600)
            # Open for reading and writing, so that it does not end before the provider has begun.
            handle = os.open(fifo, os.O_RDWR)
            reader = threading.Thread(target=_read_calls, args=(os.dup(handle), early_calls), daemon=True)
            reader.start()
            try:
                ran = tools.run_command(
                    [*argv, "--stream"], text, env={**environ, "HARNESS_TOOL_FIFO": fifo}, cwd=loop.settings.folder
                )
            finally:
                os.write(handle, b"\n\0\n")
                reader.join()
                os.close(handle)
    else:
        ran = tools.run_command(argv, text, env=environ, cwd=loop.settings.folder)
    loop.log(ran.err)
    found = parse_object(ran.out)
    if ran.code:
        said = str(found.get("error") or "") or ran.err.strip() or f"exited {ran.code}"
        category = _category(said)
        if found.get("error_type") == "rate_limit":
            category = "rate_limited"
        raise LoopFailure(f"{provider.name}: {said[-500:]}", category)
    if not found:
        raise LoopFailure(f"provider {provider.name} returned no JSON object: {ran.out[:200]}")
    return found


def _read_calls(handle: int, early_calls: EarlyCalls) -> None:
    with open(handle, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("\0"):
                return
            found = parse_object(line)
            if found:
                early_calls.begin(model_call(found.get("id"), found.get("name"), found.get("input")))


def _takes_stream(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"--stream" in file.read(LARGEST)
    except OSError:  # an unreadable provider fails when it is started
        return False


def _category(said: str) -> str:
    words = said.lower()
    if "api key" in words or "not set" in words or "authentication" in words or "401" in words:
        return "auth_failed"
    if "rate limit" in words or "429" in words:
        return "rate_limited"
    return "unknown"
