"""The rows of `make matrix`: their page, the declarations that name the last ones, and the differences between releases."""

import json
import re
from pathlib import Path

import pytest
from matrix import rows
from matrix.playing import NOT_HELD, NOT_PLAYED
from matrix.releases import CLIENTS, families
from matrix.scenarios import SCENARIOS

from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import Verified

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "dev" / "matrix.md"
PLAYED = sorted({row.client for row in rows.read()})


@pytest.mark.parametrize("client", PLAYED)
def test_a_declaration_names_the_last_row(client: str) -> None:
    assert runtime(client).coverage.verified == rows.verified(client)


def test_each_client_has_a_row_of_each_family_and_scenario_and_none_failed() -> None:
    assert set(PLAYED) == set(CLIENTS)
    for client in CLIENTS:
        last = [row for row in rows.read() if row.client == client][-1]
        assert {family.model for family in families(client)} <= set(last.outcomes)
        for model, outcomes in last.outcomes.items():
            assert set(outcomes) == set(SCENARIOS), (client, model)
            assert not [said for said in outcomes.values() if said.startswith((NOT_HELD, NOT_PLAYED))], (client, model)


def test_each_client_is_played_every_night() -> None:
    (listed,) = re.findall(r"client: \[(.+)\]", (REPOSITORY / ".github" / "workflows" / "matrix.yml").read_text())
    assert set(listed.split(", ")) == set(CLIENTS)


def test_the_page_is_the_rows() -> None:
    assert PAGE.read_text() == rows.page(), "run: make matrix"


@pytest.fixture
def own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows yet."""
    monkeypatch.setattr(rows, "ROWS", tmp_path / "rows.json")


@pytest.mark.usefixtures("own_rows")
def test_what_was_new_in_a_release() -> None:
    first = {"one": {"edit": "held", "compact": "not there: no terminal"}}
    rows.put("codex", "1.0", first)
    assert rows.differences("codex") == []
    rows.put("codex", "1.1", {"one": {**first["one"], "edit": "NOT HELD: it was written"}, "two": {"edit": "held"}})
    assert rows.differences("codex") == ["one, edit: held before, now NOT HELD"]
    assert rows.verified("codex").version == "1.1"
    shown = [line for line in rows.page().splitlines() if line.startswith("|Codex|1.1")][0]
    assert shown.split("|")[3:5] == ["one", "**✗**"]


@pytest.mark.usefixtures("own_rows")
def test_an_older_release_that_is_played_later_is_not_the_last() -> None:
    for release in ("1.10.0", "1.9.1", "1.10.0-beta.2"):
        rows.put("codex", release, {"one": {"edit": "held"}})
    assert [row.release for row in rows.read()] == ["1.9.1", "1.10.0", "1.10.0-beta.2"]
    rows.put("codex", "1.9.1", {"one": {"kill": "held"}})
    assert rows.verified("codex").version == "1.10.0-beta.2"


@pytest.mark.usefixtures("own_rows")
def test_a_declaration_says_what_was_new_in_lines_that_fit(tmp_path: Path) -> None:
    declared = tmp_path / "swarm_mcp" / "runtimes" / "codex.py"
    declared.parent.mkdir(parents=True)
    declared.write_text('        verified=Verified("0.9", "2026-01-01"),\n')
    for release, said in (("1.0", "held"), ("1.1", "writes")):
        rows.put("codex", release, {"gpt-6-luna": dict.fromkeys(SCENARIOS, said)})
    rows.write_verified("codex", tmp_path)
    text = declared.read_text()
    assert max(map(len, text.splitlines())) <= 120
    names: dict[str, Verified] = {}
    exec(f"names.update({text.strip().rstrip(',')})", {"Verified": Verified, "names": names})
    assert names["verified"] == rows.verified("codex") and names["verified"].changed


@pytest.mark.usefixtures("own_rows")
def test_a_release_that_is_played_again_keeps_its_other_outcomes() -> None:
    rows.put("codex", "1.0", {"one": {"edit": "held", "kill": "held"}})
    rows.put("codex", "1.0", {"one": {"edit": "writes"}})
    (row,) = rows.read()
    assert row.outcomes == {"one": {"edit": "writes", "kill": "held"}}
    assert rows.unlike("codex", "1.0", {"one": {"edit": "writes", "kill": "NOT HELD"}})
    assert json.loads(rows.ROWS.read_text())[0]["client"] == "codex"
