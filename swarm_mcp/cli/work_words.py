"""The outcome of a worker's task in lines for people: report, changes, tests, cost."""

from __future__ import annotations

from swarm_mcp.cli.progress import span
from swarm_mcp.domain.run import ENDED, Run
from swarm_mcp.harness.narration import changes_in_words, named_of
from swarm_mcp.harness.query import parse_object
from swarm_mcp.views import short


def report_lines(result: str | None) -> list[str]:
    """Return the lines of a task's result: one for each part of a report (``complete_task``), else its own lines."""
    report = parse_object(result or "")
    if not isinstance(report.get("summary"), str):
        return (result or "").strip().split("\n") if (result or "").strip() else []
    lines = [*report["summary"].strip().split("\n")]
    files, followups = _texts(report.get("files_changed")), _texts(report.get("followups"))
    lines += [f"files it names: {named_of(files)}"] if files else []
    tests = report.get("tests")
    for test in tests if isinstance(tests, list) else []:
        if isinstance(test, dict):
            notes = f" ({test['notes']})" if test.get("notes") else ""
            lines.append(
                f"tests {test.get('status') or 'unknown'}: {test.get('command') or '(unknown command)'}{notes}"
            )
    return [*lines, *(f"left to do: {text}" for text in followups)]


def run_lines(run: Run) -> list[str]:
    """Return lines on the changes, duration and cost of a run; unknown parts are left out."""
    if run.state != ENDED:
        return [f"its worker has not ended yet; swarm-mcp logs {short(run.id)} -f"]
    result = run.result or {}
    lines = changes_in_words(result.get("changes"))
    return [*lines, f"{_taken(run, result)}; swarm-mcp logs {short(run.id)}"]


def _taken(run: Run, result: dict) -> str:
    cost = "cost unknown" if run.cost_usd is None else f"cost ${run.cost_usd:.4f}"
    usage = run.usage or {}
    known = (("input", "in"), ("output", "out"), ("cached", "cached"))
    tokens = [f"{usage[name]} tokens {words}" for name, words in known if isinstance(usage.get(name), int)]
    took = result.get("duration_ms")
    length = [f"took {span(took / 1000)}"] if isinstance(took, (int, float)) else []
    return ", ".join([*length, *([run.model] if run.model else []), *tokens, cost])


def _texts(found: object) -> list[str]:
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
