"""Each sentence of the README has a test or a generated figure behind it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.toml_reader import reader

from swarm_hook_core.environment import lease_seconds
from swarm_hook_core.state import DEFAULT_STORE
from swarm_mcp.runtimes import NAMES, runtime

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs/dev/measurements.md").read_text(encoding="utf-8")
LOST = "Edits lost, without locks"  # a section of the measurements
WAYS = {"without swarm": "no plugin", "`keep` (default)": "keep", "`turn`": "turn"}
NOW = (
    r"now +\S+ +\S+ +(\S+)"  # the row of a write in a client: the third figure is in ms beyond a hook that does nothing
)


def rows_of(title: str, edits: int = 200) -> dict[str, list[dict[str, str]]]:
    """Return the rows of a section's tables of so many edits, by their first words: its columns, for each crowd."""
    section = MEASURED.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows: dict[str, list[dict[str, str]]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if heading := re.match(rf"\d agents, {edits} edits +(.*)", line):
            names = heading[1].replace("of answers", "answers").split()
        elif re.match(r"\d agents", line):
            names = []
        elif names and (found := re.match(r"(.*?) {2,}([\d. ]+)$", line)):
            rows.setdefault(found[1], []).append(dict(zip(names, found[2].split())))
    return rows


def the_table_is_the_measured_one() -> None:
    measured = rows_of(LOST)
    for name, way in WAYS.items():
        (row,) = re.findall(rf"^\| {re.escape(name)} \| .* \| (.*) \| (.*) \| (.*) \|$", README, re.MULTILINE)
        cells = [cell.strip("*").split(", ") for cell in row]
        assert cells == [[f"{float(one[of]):.0f}" for one in measured[way]] for of in ("lost", "wasted", "s")], name


def the_longer_run_is_the_measured_one() -> None:
    assert [one["lost"] for one in rows_of(LOST, 1000)["keep"]] == ["0"]


def clients_wait_five_seconds() -> None:
    for client in ("claude-code", "codex"):
        hooks = (ROOT / "integrations" / client / "hooks.json").read_text(encoding="utf-8")
        assert re.findall(r'pre_tool_use[^}]*"timeout": (\d+)', hooks) == ["5"], client


def notice_loses_edits() -> None:
    assert all(int(one["lost"]) > 0 for one in rows_of(LOST)["notice"])


def others_lose_as_played() -> None:
    played = json.loads((ROOT / "tests/evaluate/figures.json").read_text(encoding="utf-8"))
    lost = {way: found["crowds"]["2"]["lost"] for way, found in played.items() if "crowds" in found}
    hooks = [lost[way] for way in lost if way not in ("no tool", "worktrees") and not way.startswith("swarm")]
    assert len(hooks) == 4 and lost["worktrees"] == lost["swarm, keep"] == 0
    assert f"lost {lost['no tool']} of 200 edits without a tool, {min(hooks)} to {max(hooks)} behind" in " ".join(
        README.split()
    )


def the_orders_are_the_explored_ones() -> None:
    explored = (ROOT / "docs/dev/explored.md").read_text(encoding="utf-8")
    (orders,) = re.findall(r"^([\d,]+) schedules .*: \*\*0 violations\*\*", explored, re.MULTILINE)
    assert f"in {orders} [orders of real processes]" in " ".join(README.split())
    assert "`make explore" in explored


def the_clients_are_played() -> None:
    played = (ROOT / "docs/dev/matrix.md").read_text(encoding="utf-8")
    missing = [runtime(name).title for name in NAMES if f"\n|{runtime(name).title.removeprefix('the ')}|" not in played]
    assert all(f"{name.removeprefix('the ')} (" in played for name in missing), missing  # it says why they have no rows


def figure(phrase: str, *lines: str) -> Callable[[], None]:
    """Return a check: the numbers in a phrase of the README are those that these patterns find on the page of measurements."""

    def check() -> None:
        found = [re.search(line, MEASURED, re.MULTILINE) for line in lines]
        assert [one and one[1] for one in found] == re.findall(r"\d+\.\d+", phrase)

    return check


NUMBERS = dict(enumerate("thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(), 13))


def the_clients_are_named() -> None:
    told = README.partition("**Which clients?**")[2].partition("\n\n")[0].replace("\n", " ")
    names = [runtime(name).title for name in NAMES]
    assert [name for name in names if name.removeprefix("the ") not in told] == []
    assert f"[{NUMBERS[len(names)]} clients, and" in (ROOT / "docs" / "README.md").read_text()


def python_is_the_declared_one() -> None:
    project = reader().loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.10"
    assert {"Operating System :: MacOS", "Operating System :: POSIX :: Linux"} <= set(project["classifiers"])


def make_builds_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^SWARM_DEV \?= \$\(or \$\(XDG_CACHE_HOME\),\$\(HOME\)/\.cache\)/swarm-mcp/dev/", makefile, re.M)
    assert re.search(r"^demo: \$\(INSTALLED\)( \$\(EXPLORED\))?$", makefile, re.M) and re.search(
        r"^test: \$\(INSTALLED\)( \$\(EXPLORED\))?$", makefile, re.M
    )


def a_day_of_silence() -> None:
    assert lease_seconds("CC") == 24 * 60 * 60


def the_store_is_there() -> None:
    assert DEFAULT_STORE == "~/.swarm-mcp/swarm.db"


NO_PROSE = re.compile(r"^```.*?^```$|^<picture>.*?</picture>$|^#+ [^\n]*$|^\|[-|]+\|$", re.MULTILINE | re.DOTALL)
KEPT = "test_a_person_s_work_stays"
SWEEPS = "test_a_command_that_would_lose_a_person_s_work_is_denied_to_a_session_that_is_alone"
ELSEWHERE = "the tool's own page, read in November 2026"
PROSE = "says nothing that a test could find wrong"
# A part of each sentence, item and row of the README -> its evidence: a test by name, a check of this file, or the
# reason why there is none.
EVIDENCE: dict[str, str | Callable[[], None]] = {
    "would destroy uncommitted work is refused": KEPT,
    f"[{NUMBERS[len(NAMES) - 2]} other clients]": the_clients_are_named,
    "It checks each write in the client's own hook": "test_the_checker_answers_as_a_hook_alone_does",
    "A small hook can refuse the second writer": ELSEWHERE,
    "`sed -i`, a loop over": "test_a_denied_edit_is_denied_in_every_other_dress",
    "another server's `write_file`": "test_another_server_s_tool",
    "`checkout .`, `stash`, `reset --hard`": SWEEPS,
    "a branch that is switched under the others": "test_what_moves_head_under_another_session_is_denied_once",
    "each line has an author": "test_each_line_has_its_author",
    "`diff`, `commit` and `undo` go by author": "test_one_files_hunks_of_two_sessions_and_a_person",
    "a single agent cannot throw away your own lines": SWEEPS,
    f"**{NUMBERS[len(NAMES)]} clients** in one folder": the_clients_are_named,
    "nor write a file that it has locked": "test_it_plays_in_a_new_home_without_clients_and_leaves_nothing",
    "one command installs it": "test_uninstalling_leaves_nothing",
    "There is no daemon": "test_it_plays_in_a_new_home_without_clients_and_leaves_nothing",
    "the write goes ahead, and `swarm-mcp doctor`": "test_a_write_passes_where_the_store_cannot_be_read",
    "In a clone of this repository:": PROSE,
    "You need Python 3.10": python_is_the_declared_one,
    "[Installing](docs/install.md) covers": PROSE,
    "Only looking?": PROSE,
    "`make demo` plays": make_builds_there,
    "`make test` runs": make_builds_there,
    "Both need only Python and pip": make_builds_there,
    "200 edits to the same ten files": the_table_is_the_measured_one,
    "The table counts edits": the_table_is_the_measured_one,
    "| `swarm-mcp protect` |": PROSE,
    "| without swarm |": the_table_is_the_measured_one,
    "| `keep` (default) |": the_table_is_the_measured_one,
    "| `turn` |": the_table_is_the_measured_one,
    "These agents do little else": PROSE,
    "A longer run of four": the_longer_run_is_the_measured_one,
    "A client waits 5 s": clients_wait_five_seconds,
    "hears only a greeting": "test_who_works_alone_hears_nothing",
    "One on other files is told": "test_what_a_peer_has_changed_is_told_once",
    "`protect notice` only tells": notice_loses_edits,
    "`swarm-mcp protect off --for 1h`": "test_a_level_for_a_while_gives_way_to_the_one_before",
    "[Uncommitted work](docs/uncommitted-work.md) has": PROSE,
    "[orders of real processes]": the_orders_are_the_explored_ones,
    "`make explore` goes on": the_orders_are_the_explored_ones,
    "[Each client](docs/dev/matrix.md)": the_clients_are_played,
    "costs 0.97 starts of a bare Python in Claude Code, and 0.87 in Codex": figure(
        "costs 0.97 starts of a bare Python in Claude Code, and 0.87 in Codex",
        r"^81 calls of claude-code .*\n(?:.*\n)*?a peer at work +\S+ +(\S+)",
        r"^65 calls of codex .*\n(?:.*\n)*?a peer at work +\S+ +(\S+)",
    ),
    "keeps a process that answers for the client's hooks": "test_checks_start_no_python",
    "Without one, a relay in Python": "test_the_checker_answers_as_a_hook_alone_does",
    "`make bench` measures": make_builds_there,
    "| way |": PROSE,
    "| a sentence in the prompt |": the_table_is_the_measured_one,
    "mcp-agent-mail": ELSEWHERE,
    "agent-file-claim, agent-lease-mcp, edit-guard": ELSEWHERE,
    "GitButler": ELSEWHERE,
    "Claude Squad": ELSEWHERE,
    "| **swarm** |": "test_what_nobody_could_see_is_noticed_and_can_be_undone",
    "follow the tools' own pages": ELSEWHERE,
    "[Played side by side]": others_lose_as_played,
    "is denied once before it writes into another": "test_a_write_into_another_work_tree_is_denied_once",
    "holds a file in all that take part": "test_whichever_came_first_they_meet_in_all_work_trees",
    "Agents do the same with tools": "test_a_session_works_with_the_tools_from_joining_to_unlocking",
    "[The first ten minutes]": PROSE,
    "**Which clients?**": PROSE,
    "Claude Code, Codex, GitHub Copilot CLI": the_clients_are_named,
    "Other MCP clients get the tools": "test_a_bare_project_gets_the_server_and_the_skills",
    "[Clients](docs/clients.md)": PROSE,
    "**An agent crashes": PROSE,
    "`kill -9` included": "test_a_killed_session_frees_its_locks",
    "for up to 24 hours": a_day_of_silence,
    "steal FILE --force --reason": "test_what_the_living_hold_goes_only_by_force",
    "**swarm is broken?**": PROSE,
    "names the fault": "test_recorded_faults_are_shown",
    "`SWARM_FAIL=closed`": "test_a_write_is_denied_where_the_store_is_broken",
    "**Where does it keep things?**": PROSE,
    "In `~/.swarm-mcp/swarm.db`": the_store_is_there,
    "nothing into your checkout": "test_the_checkout_holds_nothing_of_ours",
    "**How do I get rid of it?**": PROSE,
    "`swarm-mcp uninstall`, then": "test_uninstalling_leaves_nothing",
    "It lists the files left": "test_what_is_ours_goes_and_what_stays_is_named",
    "**Its limits?**": PROSE,
    "Scripts, builds and computed paths": "test_what_nobody_could_see_is_noticed_and_can_be_undone",
    "Text typed into a running program": PROSE,
    "[The full list]": PROSE,
    "[All documents]": PROSE,
}


def sentences() -> list[str]:
    """Return the README's sentences outside of code blocks, pictures and headings. A row and a heading word are one each."""
    found: list[str] = []
    for block in re.split(r"\n{2,}|\n(?=- |\|)", NO_PROSE.sub("", README)):
        flat = " ".join(block.split())
        if flat.startswith("|"):
            found.append(flat)
        else:
            found += re.split(r"(?<=[.?!]) (?=[A-Z`\[*])|(?<=[.?]\*\*) ", flat)
    return [sentence for sentence in found if sentence]


def test_each_sentence_has_evidence_and_no_evidence_is_left_over() -> None:
    told = sentences()
    assert len(told) > 60
    assert [one for one in told if not any(part in one for part in EVIDENCE)] == []
    assert [part for part in EVIDENCE if not any(part in one for one in told)] == []


def test_the_tests_that_are_named_exist() -> None:
    text = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("unit", "support", "e2e", "team", "browser")
        for file in sorted((ROOT / "tests" / folder).rglob("*.py"))
        if file != Path(__file__)
    )
    named = {one for one in EVIDENCE.values() if isinstance(one, str) and one not in (PROSE, ELSEWHERE)}
    assert len(named) > 15
    assert [one for one in sorted(named) if f"def {one}(" not in text] == []


@pytest.mark.parametrize("part", [part for part, one in EVIDENCE.items() if callable(one)])
def test_the_checks_hold(part: str) -> None:
    check = EVIDENCE[part]
    assert callable(check)
    check()


def test_no_word_needs_the_glossary() -> None:
    text = NO_PROSE.sub("", README)
    assert re.findall(r"\b(?:fences?|values|scopes?|hs|wait in line)\b", text) == []
