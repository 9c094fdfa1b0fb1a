"""The README, and the pages it links to, match the behaviour of swarm."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib.metadata import distribution, requires
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.command_line import flags_of
from support.fixtures import Ground
from support.sessions import ROOT

from swarm_mcp.cli.help_page import page_of
from swarm_mcp.cli.verbs import NOUNS, all_verbs, words_of

VERBS = all_verbs()

pytestmark = pytest.mark.slow

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def section(title: str, page: str = "README.md") -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_readme_stays_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
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
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "install\ndoctor\n")
