"""The rows of `make matrix`: their page, the declarations that name the last ones, and the differences between releases."""

import json
import re
import shutil
from pathlib import Path

import pytest
from documents.clients_table import UNTRIED
from matrix import rows
from matrix.playing import BY_DEFAULT, MODE, NOT_HELD, NOT_PLAYED, ONLY
from matrix.releases import CLIENTS, families
from matrix.scenarios import MERGED, SCENARIOS

from swarm_mcp.play.playing import ASKED, KEPT
from swarm_mcp.play.playing import CLIENTS as DRIVEN
from swarm_mcp.runtimes import hook_config, runtime
from swarm_mcp.runtimes.installed import YES, Verified

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "dev" / "matrix.md"
PATCHES_ASIDE = ("omp",)  # its tool for changes takes one form of them at a time
PLAYED = sorted({row.client for row in rows.read()})


@pytest.mark.parametrize("client", PLAYED)
def test_a_declaration_names_the_last_row(client: str) -> None:
    assert runtime(client).coverage.verified == rows.verified(client)


@pytest.mark.parametrize("client", PLAYED)
def test_the_oldest_release_that_works_is_named(client: str) -> None:
    named = runtime(client)
    assert bool(named.oldest) is (client not in UNTRIED), "the table of clients says why"
    assert not named.too_old(rows.last(client).release)


@pytest.mark.parametrize("client", PLAYED)
def test_a_declaration_is_written_where_it_stands(client: str, tmp_path: Path) -> None:
    declared, written = (folder / "swarm_mcp" / "runtimes" for folder in (REPOSITORY, tmp_path))
    shutil.copytree(declared, written)
    for file in written.glob("*.py"):
        file.write_text(re.sub(r"Verified\(\"[^)]*\)", 'Verified("0.1", "2026-01-01")', file.read_text()))
    rows.write_verified(client, tmp_path)
    assert repr(rows.verified(client).version).replace("'", '"') in "".join(
        file.read_text() for file in written.glob("*.py")
    )


def test_each_client_has_a_row_of_each_family_and_scenario_and_none_failed() -> None:
    assert set(PLAYED) == set(CLIENTS)
    for client in CLIENTS:
        last = rows.last(client)
        assert {family.model for family in families(client)} <= set(last.outcomes)
        for model, outcomes in last.outcomes.items():
            assert {name for name in outcomes if not name.startswith(MODE)} == set(SCENARIOS), (client, model)
            assert not [said for said in outcomes.values() if said.startswith((NOT_HELD, NOT_PLAYED))], (client, model)


@pytest.mark.parametrize("client", DRIVEN)
def test_each_permission_mode_was_played_with_each_family(client: str) -> None:
    wanted = {f"{MODE}{mode}" for mode in DRIVEN[client].modes or (ONLY,)}
    for model, outcomes in rows.last(client).outcomes.items():
        assert {name for name in outcomes if name.startswith(MODE)} == {*wanted, BY_DEFAULT}, model
        assert outcomes[f"{MODE}{outcomes[BY_DEFAULT]}"].startswith((ASKED, KEPT)), model


@pytest.mark.parametrize("client", DRIVEN)
def test_what_a_client_is_declared_to_have_was_played(client: str) -> None:
    covered, config, played = runtime(client).coverage, hook_config(client), rows.last(client).outcomes.values()
    ways = {
        way
        for outcomes in played
        for mode in outcomes
        if mode.startswith(MODE)
        for way in rows.denied_in(outcomes[mode])
    }
    assert (covered.other_tools == YES) is ("another server's tool" in ways)
    assert (covered.subagents == YES) is ("held" in {outcomes["sub-agent"] for outcomes in played})
    assert (covered.patches == YES) is any("patch" in way for way in ways) or client in PATCHES_ASIDE
    assert (config.asks is not None) is any(ASKED in ends for ends in rows.in_modes(client).values())


def test_the_table_of_merges_is_what_was_played() -> None:
    table = (REPOSITORY / "docs/dev/uncommitted-work.md").read_text().partition("## Merging")[2].partition("\n## ")[0]
    told = {row.split("|")[1]: row.split("|")[4] for row in table.splitlines() if row.startswith("|")}
    for client in DRIVEN:
        ends = {outcomes["unread overwrite"].partition(":")[0] for outcomes in rows.last(client).outcomes.values()}
        said = [
            cell
            for names, cell in told.items()
            if re.search(rf"\b{runtime(client).title.removesuffix(' CLI')}\b", names)
        ]
        assert (said[:1] == ["yes"]) is (MERGED in ends), (client, said, ends)


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
    first = {"one": {"locked files": "held", "compact": "not there: no terminal"}}
    rows.put("codex", "1.0", first)
    assert rows.differences("codex") == []
    rows.put(
        "codex", "1.1", {"one": {**first["one"], "locked files": "NOT HELD: it was written"}, "two": {"kill": "held"}}
    )
    assert rows.differences("codex") == ["one, locked files: held before, now NOT HELD"]
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
    declared.write_text('class Codex(Runtime):\n        verified=Verified("0.9", "2026-01-01"),\n')
    for release, said in (("1.0", "held"), ("1.1", "writes")):
        rows.put("codex", release, {"gpt-6-luna": dict.fromkeys(SCENARIOS, said)})
    rows.write_verified("codex", tmp_path)
    text = declared.read_text()
    assert max(map(len, text.splitlines())) <= 120
    names: dict[str, Verified] = {}
    exec(f"names.update({text.partition(chr(10))[2].strip().rstrip(',')})", {"Verified": Verified, "names": names})
    assert names["verified"] == rows.verified("codex") and names["verified"].changed


@pytest.mark.usefixtures("own_rows")
def test_a_release_that_is_played_again_keeps_its_other_outcomes() -> None:
    rows.put("codex", "1.0", {"one": {"edit": "held", "kill": "held"}})
    rows.put("codex", "1.0", {"one": {"edit": "writes"}})
    (row,) = rows.read()
    assert row.outcomes == {"one": {"edit": "writes", "kill": "held"}}
    assert rows.unlike("codex", "1.0", {"one": {"edit": "writes", "kill": "NOT HELD"}})
    assert json.loads(rows.ROWS.read_text())[0]["client"] == "codex"
