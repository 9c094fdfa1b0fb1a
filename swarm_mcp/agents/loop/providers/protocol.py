"""The differences between the protocols of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from swarm_mcp.agents.loop.messages import Block, ModelCall, Turn


class Reply(NamedTuple):
    """A model's answer. `stop` is one of ``messages.STOPS``; `usage` has tokens by ``input`` (without cached ones),
    ``output``, ``cache_read``, ``cache_write``, as far as they are known.
    """

    blocks: tuple[Block, ...]
    stop: str
    model: str
    usage: Mapping[str, int]


class Request(NamedTuple):
    """An HTTP POST."""

    url: str
    headers: dict[str, str]
    body: dict[str, Any]


class Sink(NamedTuple):
    """The callbacks during an answer: for text, for thoughts, and for each complete call."""

    text: Callable[[str], None]
    thinking: Callable[[str], None]
    call: Callable[[ModelCall], None]


class ModelProtocol(ABC):
    """One protocol: `name`; `default_model`; `key`, the variable with the API key; `env`, its variables."""

    name = ""
    label = ""
    default_model = ""
    key = ""
    env = ""

    @abstractmethod
    def missing(self, environ: Mapping[str, str]) -> str:
        """Return the variables that this provider lacks; empty if it is ready."""

    @abstractmethod
    def messages(self, turns: Iterable[Turn]) -> list[dict[str, Any]]:
        """Return the conversation as this protocol has it."""

    @abstractmethod
    def request(self, payload: dict[str, Any], environ: Mapping[str, str], stream: bool) -> Request:
        """Return the request for `payload` (``model``, ``system``, ``messages``, ``tools``)."""

    @abstractmethod
    def read(self, response: dict[str, Any]) -> Reply:
        """Return an answer as a Reply. Raises LoopFailure for a malformed answer."""

    @abstractmethod
    def join(self, chunks: Iterable[dict[str, Any]], sink: Sink) -> dict[str, Any]:
        """Return the answer from the events of a stream. Raises LoopFailure where the stream ends early."""


def tokens(**given: object) -> dict[str, int]:
    """Return the known numbers of tokens."""
    return {name: value for name, value in given.items() if isinstance(value, int) and not isinstance(value, bool)}


def number(environ: Mapping[str, str], name: str) -> float | int | None:
    """Return a setting that is a number, or `None` if it is not set."""
    text = environ.get(name, "").strip()
    try:
        if text.lstrip("-").isdigit():
            return int(text)
        return float(text)
    except ValueError:  # not a number: as if it were not set
        return None


def sampling(environ: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return ``temperature``, ``top_p``, ``top_k`` where they are set."""
    wanted = {name: number(environ, f"{prefix}_{name.upper()}") for name in ("temperature", "top_p", "top_k")}
    return {name: value for name, value in wanted.items() if value is not None}
