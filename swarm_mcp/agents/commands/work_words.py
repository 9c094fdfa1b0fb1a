"""The outcome of a worker's task in lines for people: report, changes, tests, cost."""

from __future__ import annotations

from typing import Any

from swarm_mcp.agents.harness.narration import changes_in_words, named_of
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.answers.views import short
from swarm_mcp.cli.words import clause, dollars, span
from swarm_mcp.domain.run import ENDED, Run


def report_lines(result: str | None) -> list[str]:
    """Return the lines of a task's result: one for each part of a report (``complete_task``), else its own lines."""
    text = (result or "").strip()
    if not text:
        return []
    report = parse_object(text)
    if not isinstance(report.get("summary"), str):
        return text.split("\n")
    lines = [*report["summary"].strip().split("\n")]
    files, followups = _texts(report.get("files_changed")), _texts(report.get("followups"))
    if files:
        lines.append(f"files it names: {named_of(files)}")
    tests = report.get("tests")
    if not isinstance(tests, list):
        tests = []
    for test in tests:
        if isinstance(test, dict):
            notes = clause(" ({})", test.get("notes"))
            lines.append(
                f"tests {test.get('status') or 'unknown'}: {test.get('command') or '(unknown command)'}{notes}"
            )
    return [*lines, *(f"left to do: {text}" for text in followups)]


def run_lines(run: Run) -> list[str]:
    """Return lines on the changes, duration and cost of a run; unknown parts are left out."""
    if run.state != ENDED:
        return [f"its worker has not ended yet; swarm-mcp worker logs {short(run.id)} -f"]
    result = run.result or {}
    lines = changes_in_words(result.get("changes"))
    return [*lines, f"{_taken(run, result)}; swarm-mcp worker logs {short(run.id)}"]


def _taken(run: Run, result: dict[str, Any]) -> str:
    usage = run.usage or {}
    known = (("input", "in"), ("output", "out"), ("cached", "cached"))
    tokens = [f"{usage[name]} tokens {words}" for name, words in known if isinstance(usage.get(name), int)]
    took, parts = result.get("duration_ms"), []
    if isinstance(took, (int, float)):
        parts.append(f"took {span(took / 1000)}")
    if run.model:
        parts.append(run.model)
    return ", ".join([*parts, *tokens, f"cost {dollars(run.cost_usd)}"])


def _texts(found: object) -> list[str]:
    if not isinstance(found, list):
        return []
    return [text for text in found if isinstance(text, str)]
