"""The README, and the pages it links to: they match the behaviour of swarm, and each sentence has evidence."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution, requires
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.command_line import flags_of
from support.fixtures import Ground
from support.sessions import ROOT
from support.toml_reader import reader

from swarm_hook_core.environment import lease_seconds
from swarm_hook_core.state import DEFAULT_STORE
from swarm_mcp import contributions
from swarm_mcp.cli.arguments import NOUNS, words_of
from swarm_mcp.cli.help_page import page_of
from swarm_mcp.runtimes import NAMES, runtime

pytestmark = pytest.mark.slow


VERBS = contributions.verbs()

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def section(title: str, page: str = "README.md") -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_readme_stays_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if len(line) > 125 and not line.startswith("|")] == []
    assert "REPOSITORY" not in "".join(lines), "a placeholder cannot be typed"


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/daily-use.md", "docs/workers.md"])
def test_the_commands_are_there(page: str):
    """Verbs and flags of each command line in a block; in the README in a sentence, too."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shown = [line.partition(" #")[0] for block in blocks for line in block.splitlines()]
    if page == "README.md":
        shown += re.findall(r"`([^`]+)`", " ".join(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split()))
    shown = [command for line in shown for command in re.findall(r"\bswarm-mcp +([^ ;|&)][^;|&)]*)", line)]
    assert len(shown) > 1
    for command in shown:
        verb, *words = command.split(" -- ")[0].split()
        if verb in NOUNS:
            verb = words_of(verb)[words[0]]
        assert verb in VERBS, command
        assert {word for word in words if word.startswith("--")} <= flags_of(verb).keys(), command


def _recorder(monkeypatch: pytest.MonkeyPatch) -> dict:
    """Return the names in the script that draws the demo; its neighbours are importable, as in a real run."""
    folder = ROOT / "tests" / "documents"
    monkeypatch.syspath_prepend(folder)
    return runpy.run_path(str(folder / "demo_picture.py"))


def test_the_pictures_show_what_the_demo_prints_today(monkeypatch: pytest.MonkeyPatch):
    """Both of the README, light and dark. Ids, spans and line ends differ from run to run, and are left out."""
    recorder = _recorder(monkeypatch)
    argv, columns = [str(Path(sys.executable).with_name("swarm-mcp")), "demo"], recorder["NARROW"]
    windows = recorder["refusals"](recorder["rows_of"](recorder["recorded"](argv, columns), columns))

    def said(text: str) -> str:
        return re.sub(rf"{UUID.pattern}|\d+(?=sago)|\|", "", re.sub(r"\s", "", text))

    today = said("".join(heading + "".join(recorder["text_of"](rows)) for heading, rows in windows))
    assert "gitcheckout." in today and "4lines(2to5)" in today
    names = re.findall(r'(?:srcset|src)="(docs/images/demo[\w-]*\.svg)"', (ROOT / "README.md").read_text())
    assert len(set(names)) == 2
    for name in names:
        texts = ElementTree.parse(ROOT / name).iter("{http://www.w3.org/2000/svg}text")
        assert said("".join("".join(text.itertext()) for text in texts)) == today, "run: make picture"


def test_the_picture_is_of_what_a_terminal_shows(monkeypatch: pytest.MonkeyPatch):
    recorder = _recorder(monkeypatch)
    rows = recorder["rows_of"](
        "one\x1b[1;31m two\x1b[0m <&>\r\n\x1b[2m...\x1b[0m\r\x1b[Kdone\r\nabcdefgh\x1b[?25h\r\n", 6
    )
    assert recorder["text_of"](rows) == ["one tw", "o <&>", "done", "abcdef", "gh"]
    assert rows[0] == [("", "one"), ("s1 s31", " tw")]
    svg = ElementTree.fromstring(recorder["picture"](rows * 10, "a <title>"))
    assert "".join(svg.itertext()).count("o <&>") == 10


def test_pysqlite3_is_asked_for_where_the_table_has_a_wheel():
    machines = {"x86-64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}
    requirements = [Requirement(one) for one in requires("swarm-locks") or () if one.startswith("pysqlite3")]
    rows = re.findall(
        r"^\| (Linux|macOS), (.*?) \| wheels \| (.*?) \|$", section("Platforms", "docs/install.md"), re.MULTILINE
    )
    assert len(rows) == 6
    for system, kind, cell in rows:
        place = {
            "implementation_name": "cpython",
            "python_version": "3.14",
            "sys_platform": {"Linux": "linux", "macOS": "darwin"}[system],
            "platform_machine": machines[kind.split(", ")[-1]],
        }
        asked = any(one.marker and one.marker.evaluate(place) for one in requirements)
        assert asked is cell.startswith("wheel"), (system, kind)
        assert not any(one.marker and one.marker.evaluate({**place, "python_version": "3.15"}) for one in requirements)


def test_the_table_of_platforms_has_all_that_is_not_pure_python():
    """All installed packages count, direct or not; MarkupSafe works without its compiled part."""
    asked = runpy.run_path(str(ROOT / "tests" / "documents" / "platforms.py"))["PACKAGES"]
    found, waiting = set(), ["swarm-locks"]
    while waiting:
        name = waiting.pop()
        for one in map(Requirement, requires(name) or ()):
            needed = canonicalize_name(one.name)
            if needed not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
                found.add(needed)
                waiting.append(needed)
    assert {"jsonschema", "platformdirs", "sqlite-utils"} < found and len(found) <= 17, found
    compiled = {name for name in found if "Root-Is-Purelib: false" in (distribution(name).read_text("WHEEL") or "")}
    assert compiled - {"markupsafe"} <= set(asked)
    assert all(name in section("Platforms", "docs/install.md") for name in asked)


def test_a_free_threaded_build_gets_all_that_we_need_but_pysqlite3():
    (line,) = re.findall(r"^~/\.swarm/bin/pip install ('.*)$", section("Platforms", "docs/install.md"), re.MULTILINE)
    needed = [Requirement(one) for one in requires("swarm-locks") or ()]
    named = {str(one) for one in needed if one.name != "pysqlite3" and not (one.marker and "extra" in str(one.marker))}
    assert {str(Requirement(one)) for one in shlex.split(line)} == named


def test_every_exit_code_of_the_help_pages_is_in_the_table(ground: Ground):
    listed = {
        code
        for row in re.findall(r"^\| ([\d, ]+) \|", section("Exit codes", "docs/reference.md"), re.MULTILINE)
        for code in row.split(", ")
    }
    assert listed >= {"0", "1", "3", "75", "76", "124", "125", "126", "127", "130"}
    named = {code for verb in ("hold", "run") for code in re.findall(r"\b(7[56]|12[4-7])\b", page_of(verb))}
    assert named == {"75", "76", "124", "125", "126", "127"} and named <= listed


FAKE_PYTHON = """#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "#!/bin/sh\\\\necho \\$*\\\\n" >"%s/bin/swarm-mcp"; chmod +x "%s/bin/swarm-mcp"\\n' "$3" "$3" >"$3/bin/pip"
chmod +x "$3/bin/pip"
"""


def test_the_installation_without_pipx_ends_with_the_command_on_path(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(FAKE_PYTHON)  # `-m venv DIR`, with a pip that installs a command
    (tmp_path / "bin" / "python3").chmod(0o755)
    usual = re.search(r"^```sh\n(.*?)\n```", section("Install"), re.MULTILINE | re.DOTALL)
    without_pipx = re.search(
        r"^```sh\n(python3 .*?)\n```", section("The package", "docs/install.md"), re.MULTILINE | re.DOTALL
    )
    assert usual and without_pipx
    first, rest = usual[1].split("\n", 1)
    assert re.fullmatch(r"pipx install ('(\.|swarm-locks)\[all\]') +# or: uv tool install \1( .*|;.*)?", first)
    lines = f"{without_pipx[1]}\n{rest}"
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.defpath}"}
    done = subprocess.run(["sh", "-ec", lines], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "install\ndoctor --play\n")


CLAIMS_ROOT = Path(__file__).resolve().parents[3]
README = (CLAIMS_ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (CLAIMS_ROOT / "docs/dev/measurements.md").read_text(encoding="utf-8")
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


def clients_wait_five_seconds() -> None:
    for client in ("claude-code", "codex"):
        hooks = (CLAIMS_ROOT / "integrations" / client / "hooks.json").read_text(encoding="utf-8")
        assert re.findall(r'pre_tool_use[^}]*"timeout": (\d+)', hooks) == ["5"], client


def notice_loses_edits() -> None:
    assert all(int(one["lost"]) > 0 for one in rows_of(LOST)["notice"])


def others_lose_as_played() -> None:
    played = json.loads((CLAIMS_ROOT / "tests/evaluate/figures.json").read_text(encoding="utf-8"))
    lost = {way: found["crowds"]["2"]["lost"] for way, found in played.items() if "crowds" in found}
    hooks = [lost[way] for way in lost if way not in ("no tool", "worktrees") and not way.startswith("swarm")]
    assert len(hooks) == 4 and lost["worktrees"] == lost["swarm, keep"] == 0
    assert f"lost {lost['no tool']} of 200 edits without a tool, {min(hooks)} to {max(hooks)} behind" in " ".join(
        README.split()
    )


def the_orders_are_the_explored_ones() -> None:
    explored = (CLAIMS_ROOT / "docs/dev/explored.md").read_text(encoding="utf-8")
    (last,) = re.findall(r"^([\d,]+) schedules .*: \*\*0 violations\*\*", explored, re.MULTILINE)
    (before,) = re.findall(r"^Before: ([\d,]+) ", explored, re.MULTILINE)
    orders = sum(int(number.replace(",", "")) for number in (last, before))
    assert f"in {orders:,} [orders of real processes]" in " ".join(README.split())
    assert "`make explore" in explored


def the_clients_are_played() -> None:
    played = (CLAIMS_ROOT / "docs/dev/matrix.md").read_text(encoding="utf-8")
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
    assert f"[{NUMBERS[len(names)]} clients, and" in (CLAIMS_ROOT / "docs" / "README.md").read_text()


def python_is_the_declared_one() -> None:
    project = reader().loads((CLAIMS_ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.10"
    assert {"Operating System :: MacOS", "Operating System :: POSIX :: Linux"} <= set(project["classifiers"])


def make_builds_there() -> None:
    makefile = (CLAIMS_ROOT / "Makefile").read_text()
    assert re.search(r"^SWARM_DEV \?= \$\(or \$\(XDG_CACHE_HOME\),\$\(HOME\)/\.cache\)/swarm-mcp/dev/", makefile, re.M)
    assert re.search(r"^demo:$", makefile, re.M), "it plays before anything is installed"
    assert re.search(r"^test: \$\(INSTALLED\)$", makefile, re.M)


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
    "One command installs it": "test_uninstalling_leaves_nothing",
    "There is no daemon": "test_it_plays_in_a_new_home_without_clients_and_leaves_nothing",
    "the write goes ahead, and `swarm-mcp doctor`": "test_an_odd_store",
    "| place |": PROSE,
    "| VS Code and its forks": PROSE,
    "| devcontainers |": PROSE,
    "You need Python 3.10": python_is_the_declared_one,
    "[Installing](docs/install.md) covers": PROSE,
    "Only looking?": PROSE,
    "`make demo` plays": make_builds_there,
    "`make test` passes": make_builds_there,
    "Both build in": make_builds_there,
    "200 edits to the same ten files": the_table_is_the_measured_one,
    "The table counts edits": the_table_is_the_measured_one,
    "| `swarm-mcp protect` |": PROSE,
    "| without swarm |": the_table_is_the_measured_one,
    "| `keep` (default) |": the_table_is_the_measured_one,
    "| `turn` |": the_table_is_the_measured_one,
    "A client waits 5 s": clients_wait_five_seconds,
    "`protect notice` only tells": notice_loses_edits,
    "`swarm-mcp protect off --for 1h`": "test_a_level_for_a_while_gives_way_to_the_one_before",
    "[Uncommitted work](docs/uncommitted-work.md) has": PROSE,
    "[orders of real processes]": the_orders_are_the_explored_ones,
    "[Each client](docs/dev/matrix.md)": the_clients_are_played,
    "takes 39.2 ms in Claude Code (30.9 without swarm) and 32.2 in Codex (21.3)": figure(
        "takes 39.2 ms in Claude Code (30.9 without swarm) and 32.2 in Codex (21.3)",
        *(
            rf"^{client}, ms a write .*\n(?:.*\n)*?{row} +(\S+)"
            for client in ("claude-code", "codex")
            for row in ("now", "no plugin")
        ),
    ),
    "| way |": PROSE,
    "mcp-agent-mail": ELSEWHERE,
    "agent-file-claim, agent-lease-mcp, edit-guard": ELSEWHERE,
    "GitButler": ELSEWHERE,
    "Claude Squad": ELSEWHERE,
    "| **swarm** |": "test_what_nobody_could_see_is_noticed_and_can_be_undone",
    "follow the tools' own pages": ELSEWHERE,
    "[Played side by side]": others_lose_as_played,
    "is denied once before it writes into another": "test_a_write_into_another_work_tree_is_denied_once",
    "holds a file in all": "test_whichever_came_first_they_meet_in_all_work_trees",
    "**Which clients?**": PROSE,
    "Claude Code, Codex, GitHub Copilot CLI": the_clients_are_named,
    "Other MCP clients get the tools": "test_a_bare_project_gets_the_server_and_the_skills",
    "[Clients](docs/clients.md)": PROSE,
    "**An agent crashes": PROSE,
    "`kill -9` included": "test_a_killed_session_frees_its_locks",
    "for up to 24 hours": a_day_of_silence,
    "steal FILE --force --reason": "test_what_the_living_hold_goes_only_by_force",
    "**Where does it keep things?**": PROSE,
    "In `~/.swarm-mcp/swarm.db`": the_store_is_there,
    "nothing into your checkout": "test_the_checkout_holds_nothing_of_ours",
    "`swarm-mcp uninstall --purge`": "test_all_that_is_left_is_listed_and_goes_after_a_question",
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
    assert len(told) > 50
    assert [one for one in told if not any(part in one for part in EVIDENCE)] == []
    assert [part for part in EVIDENCE if not any(part in one for one in told)] == []


def test_the_tests_that_are_named_exist() -> None:
    text = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("unit", "support", "e2e", "team", "browser")
        for file in sorted((CLAIMS_ROOT / "tests" / folder).rglob("*.py"))
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
