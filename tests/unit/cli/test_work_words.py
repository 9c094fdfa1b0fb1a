"""The end of a worker's task in words: its report, its changes, its cost."""

import json

from swarm_mcp.agents.commands.work_words import report_lines, run_lines
from swarm_mcp.agents.harness.narration import MOST_NAMED, changes_in_words
from swarm_mcp.domain.run import Run


def test_a_report_is_told_part_by_part() -> None:
    report = {
        "summary": "Renumbered.\nTwo files.", "files_changed": ["/src/a", "b"], "followups": ["run it again"],
        "tests": [{"status": "passed", "command": "make check"}, {"status": "skipped", "notes": "no server"}, "odd"],
    }  # fmt: skip
    assert report_lines(json.dumps(report)) == [
        "Renumbered.", "Two files.", "files it names: /src/a, b", "tests passed: make check",
        "tests skipped: (unknown command) (no server)", "left to do: run it again",
    ]  # fmt: skip


def test_other_results_are_told_as_they_are() -> None:
    for text, lines in (("done", ["done"]), ("a\nb\n", ["a", "b"]), ('{"a": 1}', ['{"a": 1}']), ("", []), (None, [])):
        assert report_lines(text) == lines


def test_what_a_run_changed_and_took() -> None:
    changes = {"files": ["a", "b"], "commits": ["1234567 as told"], "more_files": 3}
    row = Run({"id": "12ab34cd-1", "state": "ended", "harness": "codex", "model": "m-1", "cost_usd": 0.25, "usage": {"input": 7, "output": 2},
               "result": {"changes": changes, "duration_ms": 65_000}})  # fmt: skip
    assert run_lines(row) == [
        "changed a, b and 3 more", "commit 1234567 as told",
        "took 1m05s, m-1, 7 tokens in, 2 tokens out, cost $0.2500; swarm-mcp worker logs 12ab34cd",
    ]  # fmt: skip
    row = Run({"id": "12ab34cd-1", "state": "ended"})
    assert run_lines(row) == ["cost unknown; swarm-mcp worker logs 12ab34cd"]
    assert run_lines(Run({**row, "state": "running"})) == [
        "its worker has not ended yet; swarm-mcp worker logs 12ab34cd -f"
    ]


def test_of_many_changes_the_first_are_named() -> None:
    names = [f"n{number}" for number in range(MOST_NAMED + 4)]
    first, *commits = changes_in_words({"files": names, "commits": names, "more_files": 10})
    assert first.endswith(f"n{MOST_NAMED - 1} and 14 more")
    assert len(commits) == MOST_NAMED + 1 and commits[-1] == "and 4 commits more"
    assert changes_in_words(None) == changes_in_words({}) == changes_in_words({"files": [], "commits": None}) == []
