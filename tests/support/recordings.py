"""Streams recorded from real clients (``tests/data/golden/HARNESS/CASE.jsonl``), and adapters' results from them."""

import json
from pathlib import Path

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.events import ERROR, RESULT, Event
from swarm_mcp.agents.harness.outcome import Ending

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


class Recordings:
    """The recorded runs of one harness. `expected` has their results by name."""

    def __init__(self, harness: str):
        self.adapter = registry.get(harness)
        self.folder = GOLDEN / harness
        self.cases = sorted(path.name.removesuffix(".jsonl") for path in self.folder.glob("*.jsonl"))
        self.expected: dict[str, dict] = json.loads((self.folder / "expected.json").read_text(encoding="utf-8"))

    def lines(self, case: str) -> list[str]:
        """Return the client's standard output."""
        return (self.folder / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()

    def errors(self, case: str) -> list[str]:
        """Return its standard error."""
        return self._meta(case)["stderr"].splitlines()

    def parsed(self, lines: list[str], errors: list[str] = []) -> list[Event]:  # noqa: B006 - it is only read
        """The events of these lines."""
        state: dict = {}
        found = [event for line in lines for event in self.adapter.parse(line, state)]
        found += [event for line in errors for event in self.adapter.parse_stderr(line, state)]
        return found + self.adapter.finish(state)

    def replayed(self, case: str) -> tuple[list[Event], Ending]:
        """The events of a recorded run, and how it ended."""
        found, meta = self.parsed(self.lines(case), self.errors(case)), self._meta(case)
        return found, ended(found, meta["rc"], meta["stderr"])

    def _meta(self, case: str) -> dict:
        return json.loads((self.folder / f"{case}.meta.json").read_text(encoding="utf-8"))


def ended(events: list[Event], exit_code: int, stderr: str = "") -> Ending:
    """Return the end of a run with these events."""
    results, errors = data_of(events, RESULT), tuple(data_of(events, ERROR))
    return Ending(exit_code, max(0, -exit_code), results[-1] if results else None, errors, stderr)


def data_of(events: list[Event], kind: str) -> list[dict]:
    """The data of the events of one kind."""
    return [event.data for event in events if event.kind == kind]


def named(event: Event) -> str:
    """The kind of an event, or the name of one that only its harness has."""
    return event.data["name"] if event.kind == "custom" else event.kind
