"""The outcomes measured so far, their page, and the part that `swarm-mcp doctor` reads."""

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from swarm_mcp.play.playing import ASKED, KEPT
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import Verified

from .playing import BY_DEFAULT, ITSELF, MODE, NOT_HELD, NOT_PLAYED, NOT_THERE, Outcomes
from .scenarios import HELD, SCENARIOS

ROWS = Path(__file__).with_name("rows.json")
MARKS = {HELD: "✓", NOT_HELD: "**✗**", NOT_THERE: "–", NOT_PLAYED: "?"}
HEAD = """\
# Clients, releases, models

`make matrix CLIENT=codex RELEASE=latest` plays each scenario in a release, with a scripted model of each family that the
client treats differently. `tests/matrix/scenarios.py` explains the columns. ✓: held. **✗**: not held. –: not there, or not
driven. ?: not played; `tests/matrix/rows.json` says why. *unread overwrite*: over a change not seen; *its own guard*:
the client alone. Cursor (needs an account) and the bash harness (on no index) have no rows.
"""
MODES_HEAD = """\
`swarm-mcp doctor --play` in each permission mode: locked files kept by our hooks (the client refuses others), a person's
line discarded.

|client|default|mode|locked files|a person's line|
|---|---|---|---|---|"""


class Row(NamedTuple):
    """The outcomes of one release of a client; `date` is ISO."""

    client: str
    release: str
    date: str
    outcomes: Outcomes


def read() -> list[Row]:
    """Return all rows, those of a client oldest release first."""
    return [Row(**row) for row in json.loads(ROWS.read_text())] if ROWS.exists() else []


def last(client: str) -> Row:
    """Return the row of the last release of a client."""
    return [row for row in read() if row.client == client][-1]


def put(client: str, release: str, found: Outcomes) -> Row:
    """Add the outcomes of a release to its row, and return the row."""
    rows, today = read(), date.today().isoformat()
    before = next((row for row in rows if (row.client, row.release) == (client, release)), None)
    merged = dict(before.outcomes) if before else {}
    for model, outcomes in found.items():
        merged[model] = {**merged.get(model, {}), **outcomes}
    new = Row(client, release, today, merged)
    rows = sorted([row for row in rows if row is not before] + [new], key=_age)
    ROWS.write_text(json.dumps([row._asdict() for row in rows], indent=1, ensure_ascii=False) + "\n")
    return new


def _age(row: Row) -> tuple[str, list[int]]:
    return row.client, [int(number) for number in re.findall(r"\d+", row.release)]


def differences(client: str) -> list[str]:
    """Return how the last release of a client went otherwise than the one before, a line each.

    A model that only one of them was played with is no difference.
    """
    rows = [row for row in read() if row.client == client]
    if len(rows) < 2:
        return []
    before, now = rows[-2:]
    return [
        f"{model}, {name}: {_word(before.outcomes[model][name])} before, now {_word(said)}"
        for model, outcomes in now.outcomes.items()
        for name, said in outcomes.items()
        if _word(before.outcomes.get(model, {}).get(name, said)) != _word(said)
    ]


def unlike(client: str, release: str, found: Outcomes) -> list[str]:
    """Print and return the differences between these outcomes and the row of this release."""
    known = next((row.outcomes for row in read() if (row.client, row.release) == (client, release)), {})
    wrong = [
        f"{client} {release}, {model}, {name}: {said}; the row has: {known.get(model, {}).get(name, 'nothing')}"
        for model, outcomes in found.items()
        for name, said in outcomes.items()
        if _word(known.get(model, {}).get(name, "")) != _word(said)
    ]
    print("\n".join(wrong), end="\n" * bool(wrong))
    return wrong


def _word(said: str) -> str:
    return said.partition(":")[0]


def page() -> str:
    """Return the text of the page: the last two releases of each client, and their differences."""
    news: list[str] = []
    parts = [f"{HEAD}\n|client|release|model|{'|'.join(SCENARIOS)}|", f"|{'---|' * (len(SCENARIOS) + 3)}"]
    for client in dict.fromkeys(row.client for row in read()):
        for row in [row for row in read() if row.client == client][-2:]:
            of = f"{runtime(client).title}|{row.release}, {row.date}"
            for model, outcomes in row.outcomes.items():
                cells = (_cell(outcomes.get(name, "")) for name in SCENARIOS)
                parts.append(f"|{of}|{model}|{'|'.join(cells)}|")
                of = "|"  # as above
        news += [f"- {runtime(client).title}, {line}" for line in differences(client)]
    if news:
        parts += ["", *news]
    parts += ["", MODES_HEAD]
    for client in dict.fromkeys(row.client for row in read()):
        parts += _mode_lines(client)
    return "\n".join(parts) + "\n"


def _mode_lines(client: str) -> Iterator[str]:
    """Yield the lines of the second table for a client: its last release in each permission mode."""
    played = last(client).outcomes.values()
    usual = dict.fromkeys(outcomes[BY_DEFAULT] for outcomes in played if BY_DEFAULT in outcomes)
    told: dict[str, dict[str, None]] = {}
    for name, said in (pair for outcomes in played for pair in outcomes.items() if _is_mode(pair[0])):
        told.setdefault(_mode_cells(said), {})[name.removeprefix(MODE)] = None
    of = f"{runtime(client).title}|{'/'.join(usual)}"
    for cells, modes in told.items():
        yield f"|{of}|{'/'.join(modes)}|{cells}|"
        of = "|"  # as above


def _is_mode(name: str) -> bool:
    return name.startswith(MODE) and name != BY_DEFAULT


def _mode_cells(said: str) -> str:
    """Return two cells about one mode: the ways denied of all, and the end of a person's line."""
    line, _, ways = said.partition(":")
    if line in MARKS:
        return f"{MARKS[line]}|{MARKS[line]}"
    _, itself, others = ways.partition(ITSELF)
    if not itself:
        return f"all|{line}"
    kept = denied_in(said)
    return f"{len(kept)}/{len([*kept, *others.split(', ')])}|{line}"


def in_modes(client: str) -> dict[str, set[str]]:
    """Return the permission modes of a client in its last release -> the ends that a person's line had there."""
    found: dict[str, set[str]] = {}
    for outcomes in last(client).outcomes.values():
        for name, said in outcomes.items():
            if _is_mode(name) and _word(said) != NOT_THERE:
                found.setdefault(name.removeprefix(MODE), set()).add(_word(said))
    return found


def persons_line(client: str) -> str:
    """Return the end of a person's line that a command would throw away, for the table in docs/clients.md."""
    if client not in {row.client for row in read()}:
        return "–"
    ends = in_modes(client)
    others = [mode for mode in ends if ASKED not in ends[mode]]
    if len(others) == len(ends):
        return KEPT
    return ASKED + f" ({', '.join(others)}: {KEPT})" * bool(others)


def denied_in(said: str) -> list[str]:
    """Return the ways of writing that our hooks denied in a mode."""
    ways = said.partition(":")[2].partition(ITSELF)[0]
    return [way.strip() for way in ways.split(",") if way.strip()]


def _cell(said: str) -> str:
    return MARKS.get(_word(said), said)


def verified(client: str) -> Verified:
    """Return the declaration of a client's last row."""
    row = last(client)
    return Verified(row.release, row.date, "; ".join(differences(client)))


def write_verified(client: str, folder: Path) -> None:
    """Name the last release in the client's declaration, for `doctor` and the table in docs/clients.md."""
    played = verified(client)
    said = f"{json.dumps(played.version)}, {json.dumps(played.date)}"
    if played.changed:
        texts = (json.dumps(text, ensure_ascii=False) for text in re.split(r"(?<=; )", played.changed))
        said += "," + "".join(f"\n            {text}" for text in texts)
    declared = type(runtime(client))
    path = folder / f"{declared.__module__.replace('.', '/')}.py"
    before, head, after = path.read_text().partition(f"class {declared.__name__}(")
    after = re.sub(r"Verified\([^)]*\)", lambda _found: f"Verified({said})", after, count=1)
    path.write_text(before + head + after)
