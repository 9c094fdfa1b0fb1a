"""The outcomes measured so far, their page, and the part that `swarm-mcp doctor` reads."""

import json
import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import Verified

from .playing import NOT_HELD, NOT_PLAYED, NOT_THERE, Outcomes
from .scenarios import HELD, SCENARIOS

ROWS = Path(__file__).with_name("rows.json")
MARKS = {HELD: "✓", NOT_HELD: "**✗**", NOT_THERE: "–", NOT_PLAYED: "?"}
HEAD = """\
# Clients, releases, models

`make matrix CLIENT=codex RELEASE=latest` fetches a release, installs swarm into it in a private home, and plays each
scenario with scripted models, under a name of each family that the client treats differently. `tests/matrix/scenarios.py`
explains the columns. ✓: swarm's promise held. **✗**: it did not. –: the client has no such thing, or is not driven
there. ?: it could not be played; `tests/matrix/rows.json` has the reasons. *its own guard*: the client alone, at a write
over a change that the session has not seen. Cursor (needs an account) and the bash harness (on no index) have no rows.
"""


class Row(NamedTuple):
    """The outcomes of one release of a client; `date` is ISO."""

    client: str
    release: str
    date: str
    outcomes: Outcomes


def read() -> list[Row]:
    """Return all rows, those of a client oldest release first."""
    return [Row(**row) for row in json.loads(ROWS.read_text())] if ROWS.exists() else []


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
            for model, outcomes in row.outcomes.items():
                cells = (_cell(outcomes.get(name, "")) for name in SCENARIOS)
                title = runtime(client).title
                parts.append(f"|{title}|{row.release}, {row.date}|{model}|{'|'.join(cells)}|")
        news += [f"- {runtime(client).title}, {line}" for line in differences(client)]
    if news:
        parts.append("")
    return "\n".join([*parts, *news]) + "\n"


def _cell(said: str) -> str:
    return MARKS.get(_word(said), said)


def verified(client: str) -> Verified:
    """Return the declaration of a client's last row."""
    last = [row for row in read() if row.client == client][-1]
    return Verified(last.release, last.date, "; ".join(differences(client)))


def write_verified(client: str, folder: Path) -> None:
    """Name the last release in the client's declaration, for `doctor` and the table in docs/clients.md."""
    last = verified(client)
    said = f"{json.dumps(last.version)}, {json.dumps(last.date)}"
    if last.changed:
        texts = (json.dumps(text, ensure_ascii=False) for text in re.split(r"(?<=; )", last.changed))
        said += "," + "".join(f"\n            {text}" for text in texts)
    path = folder / "swarm_mcp" / "runtimes" / f"{client.replace('-', '_')}.py"
    path.write_text(re.sub(r"Verified\([^)]*\)", lambda _found: f"Verified({said})", path.read_text(), count=1))
