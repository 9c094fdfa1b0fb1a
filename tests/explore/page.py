"""Writes the figures of an exploration into docs/dev/explored.md, between its marks."""

from collections import Counter
from pathlib import Path
from typing import Any


def put(page: Path, name: str, text: str) -> None:
    """Replace the text between the marks of this name."""
    whole, begin, end = page.read_text(encoding="utf-8"), f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, _, rest = whole.partition(begin)
    page.write_text(f"{before}{begin}{text}{end}{rest.partition(end)[2]}", encoding="utf-8")


def write(page: Path, reports: list[dict[str, Any]], seconds: float) -> None:
    """Put the figures of these reports in the place of the earlier ones."""
    put(page, "figures", _figures(reports, seconds))


def _figures(reports: list[dict[str, Any]], seconds: float) -> str:
    meetings: Counter[str] = Counter()
    for report in reports:
        meetings.update(report["meetings"])
    done, stops = meetings.total(), sum(report["steps"] for report in reports)
    wrong, processor = sum(len(report["violations"]) for report in reports), sum(one["processor"] for one in reports)
    many = "" if round(seconds / 60) == 1 else "s"
    return (
        f"{done:,} schedules of {len(meetings)} meetings, {stops:,} stops, in {seconds / 60:.0f} minute{many} on {len(reports)} core{'' if len(reports) == 1 else 's'}"
        f" ({done / max(processor, 0.001):.0f} schedules for a second of processor time): **{wrong} violation{'' if wrong == 1 else 's'}**.\n"
    )
