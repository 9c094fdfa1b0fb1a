"""The figures of each way and work, kept as data, and the page that is written from them."""

import json
from pathlib import Path
from typing import Any

from .ways import Way, ways

FIGURES = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "dev" / "evaluated.md"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->\n"
# column -> the figure, as work and name; two crowds are written side by side
COLUMNS = {
    "lost": ("crowds", "lost"),
    "refused": ("crowds", "refused"),
    "in vain": ("crowds", "vain"),
    "never made": ("crowds", "unmade"),
    "s": ("crowds", "seconds"),
    "lost ": ("pairs", "lost"),
    "bundled": ("pairs", "bundled"),
    "conflicts": ("pairs", "conflicts"),
    "refused ": ("pairs", "refused"),
    "in vain ": ("pairs", "vain"),
    "lost  ": ("afternoon", "lost"),
    "refused  ": ("afternoon", "refused"),
    "ms a call": ("pairs", "ms"),
    "files inside": ("pairs", "inside"),
    "outside": ("pairs", "outside"),
}


def known() -> dict[str, Any]:
    """Return the figures so far: ``{way: {work: {name: number}}}``; of crowds ``{"2": ..., "4": ...}``."""
    return dict(json.loads(FIGURES.read_text()))


def put(way: str, work: str, found: dict[str, Any]) -> None:
    """Keep the figures of a way and work."""
    figures = known()
    figures.setdefault(way, {}).setdefault(work, {}).update(found)
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


def write_page() -> None:
    """Write the table and the ways into the page, in the place of the earlier ones."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}", encoding="utf-8")


def table() -> str:
    """Return the table, the sentence on better ways, and how each way was wired."""
    figures = known()
    rows = [way for way in ways() if way.name in figures]
    lines = [f"|way|{'|'.join(name.strip() for name in COLUMNS)}|", f"|---|{'---|' * len(COLUMNS)}"]
    for way in rows:
        cells = [_cell(figures[way.name], *place) for place in COLUMNS.values()]
        lines.append(f"|{way.name}|{'|'.join(cells)}|")
    return "\n".join([*lines, "", _better(figures), "", *_wired(rows), ""])


def _cell(figures: dict[str, Any], work: str, name: str) -> str:
    found = figures.get(work)
    if not found:
        return "–"
    if work != "crowds":
        return f"{found[name]:.0f}"
    return "/".join(f"{found[crowd][name]:.0f}" if crowd in found else "–" for crowd in ("2", "4"))


def _better(figures: dict[str, Any]) -> str:
    """Return the ways with lower figures than swarm has at its default."""
    ours, said = figures["swarm, keep"], []
    for name, found in figures.items():
        if name == "no tool" or name.startswith("swarm"):
            continue
        fewer = [
            column.strip()
            for column, (work, of) in COLUMNS.items()
            if work in found and work in ours and _sum(found[work], of) < _sum(ours[work], of)
        ]
        if fewer:
            said.append(f"{name} ({', '.join(dict.fromkeys(fewer))})")
    return f"Lower than swarm at `keep`: {'; '.join(said)}."


def _sum(found: dict[str, Any], name: str) -> float:
    """Return a figure; of crowds, that of two agents."""
    return float(found.get("2", found)[name])


def _wired(rows: list[Way]) -> list[str]:
    return [f"- **{way.name}**{f' (`{way.package}`)' if way.package else ''}: {way.wired}." for way in rows]
