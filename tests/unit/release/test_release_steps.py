"""One version everywhere, and the steps of a release: `.ci/release.py`, in a copy of the repository."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
from support import repository
from support.toml_reader import reader

import swarm_hook_core
import swarm_mcp

pytestmark = pytest.mark.slow

ROOT = repository.ROOT
FILES = (
    ".ci/release.py", "CHANGELOG.md", "README.md", "docs/install.md", "pyproject.toml", "swarm_hook_core/__init__.py",
    ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", ".codex-plugin/plugin.json", "integrations/pi/package.json",
    ".github/plugin/plugin.json", "qwen-extension.json",
    "integrations/hook.sh", "integrations/relay.py", "integrations/checker.ts",
)  # fmt: skip
ASSIGNED = r'^(?:__version__ = "|RELEASE = "|const RELEASE = "|release=)([\d.]+)'
PLACES = "pipx install '.[all]'  # in a clone\ncodex plugin marketplace add ./ && codex plugin add swarm@swarm"
CHANGES = "\n### Added\n- Something new.\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that a release changes, with one unreleased change."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("docs/install.md",):  # as before the first release
        (tmp_path / name).write_text(f"```sh\n{PLACES}\n```\n")
    project = tmp_path / "pyproject.toml"
    project.write_text(re.sub(r"^\[project\.urls\]\n(\w.*\n)*\n", "", project.read_text(), flags=re.MULTILINE))
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n{CHANGES}")
    return tmp_path


def step(copy: Path, *words: str) -> tuple[int, str]:
    argv = [sys.executable, "-B", str(copy / ".ci" / "release.py"), *words]
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def versions(folder: Path) -> set[str]:
    """Every version that the files name."""
    trees = {name: json.loads((folder / name).read_text()) for name in FILES if name.endswith(".json")}
    found = {tree.get("version") or tree["metadata"]["version"] for tree in trees.values()}
    for name in (name for name in FILES if not name.endswith(".json")):
        found |= set(re.findall(ASSIGNED, (folder / name).read_text(), re.MULTILINE))
    return found


def test_there_is_one_version():
    assert versions(ROOT) == {swarm_mcp.__version__} == {swarm_hook_core.__version__}
    assert metadata("swarm-locks")["Version"].partition("+")[0] == swarm_mcp.__version__
    # A recording names the release that it was made from, and other tools have releases, too.
    elsewhere = [":!tests", ":!CHANGELOG.md", ":!docs/first-ten-minutes.md", ":!docs/dev/evaluated.md"]
    argv = ["git", "grep", "-lwF", swarm_mcp.__version__, "--", *elsewhere]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:  # outside a clone there is nothing to search
        assert set(listed.stdout.split()) <= set(FILES), "nothing else names it"


def test_manifests_say_what_they_are_and_whose():
    project = reader().loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in FILES:
        if not name.endswith("plugin.json"):
            continue
        told = json.loads((ROOT / name).read_text())
        assert told["license"] == project["license"] == "MIT"
        assert told["author"]["name"] == project["authors"][0]["name"]
        assert told["description"] and told["keywords"]
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    assert market["owner"]["name"] == project["authors"][0]["name"]
    assert [plugin["license"] for plugin in market["plugins"]] == ["MIT"]
    assert json.loads((ROOT / "integrations/pi/package.json").read_text())["license"] == "MIT"


def test_a_release_from_its_first_step_to_the_tag(copy: Path):
    code, told = step(copy, "check")
    assert code == 1 and "Unreleased" in told and "address" in told
    readme = copy / "README.md"
    readme.write_text(
        "# swarm\n\n```sh\npipx install '.[all]'   # or: uv tool install '.[all]'; in a clone of this repository\n```\n"
    )
    assert step(copy, "version", "4.5.6")[0] == 0
    assert versions(copy) == {"4.5.6"}
    once = readme.read_text()
    assert re.fullmatch(
        r"# swarm\n\n```sh\npipx install 'swarm-locks\[all\]' +# or: uv tool install 'swarm-locks\[all\]'; .*\n```\n",
        once,
    )
    text = (copy / "CHANGELOG.md").read_text()
    assert re.fullmatch(
        rf"# Changelog\n\n## \[Unreleased\]\n\n## \[4\.5\.6\] - \d{{4}}-\d\d-\d\d\n{re.escape(CHANGES)}", text
    )
    assert step(copy, "address", "https://example.org/us/swarm.git")[0] == 0
    assert step(copy, "check", "v4.5.6") == (0, "nothing is in the way of 4.5.6\n")
    assert step(copy, "version", "4.5.7")[0] == 0
    assert readme.read_text() == once, "a second release finds the line"
    code, told = step(copy, "check", "v4.5.6")
    assert code == 1 and "v4.5.6 is not that of version 4.5.7" in told
    readme.write_text(once.replace("pipx install 'swarm-locks", "pipx install 'elsewhere"))
    assert "the README installs from a clone" in step(copy, "check")[1]


def test_the_readme_has_the_place_for_the_line_of_the_index(copy: Path):
    """As it stands it installs from a clone, or from the index after the first release."""
    step(copy, "version", "4.5.6")
    assert "\n```sh\npipx install 'swarm-locks[all]' " in (copy / "README.md").read_text()


def test_a_tag_of_another_version_is_in_the_way(copy: Path):
    step(copy, "version", "4.5.6")
    step(copy, "address", "https://example.org/us/swarm")
    code, told = step(copy, "check", "v4.5.7")
    assert code == 1 and told == "the tag v4.5.7 is not that of version 4.5.6: v4.5.6\n"


def test_the_address_goes_wherever_it_belongs(copy: Path):
    for url in ("https://example.org/us/swarm", "https://example.org/us/swarm/", "https://example.com/moved.git"):
        assert step(copy, "address", url)[0] == 0
        url = url.removesuffix("/").removesuffix(".git")
        for name in ("docs/install.md",):
            source = f"'swarm-locks[all] @ git+{url}'"
            line = f"pipx install {source}  # or: uv tool install {source}\n"
            assert (copy / name).read_text() == f"```sh\n{line}{PLACES.replace(' ./', f' {url}.git')}\n```\n"
        project = reader().loads((copy / "pyproject.toml").read_text())["project"]
        assert set(project["urls"].values()) == {url}
        assert project["optional-dependencies"] and project["scripts"]
        for name in FILES:
            if name.endswith(".json"):
                tree = json.loads((copy / name).read_text())
                assert tree.get("plugins", [tree])[0]["homepage"] == url


def test_the_registry_is_told_of_the_server_that_the_index_has(copy: Path):
    assert step(copy, "registry")[0] == 1
    step(copy, "address", "https://github.com/us/swarm")
    code, told = step(copy, "registry")
    entry = json.loads(told)
    (package,) = entry["packages"]
    assert code == 0 and entry["name"] == "io.github.us/swarm" and len(entry["description"]) <= 100
    assert (package["identifier"], package["version"]) == ("swarm-locks", entry["version"])
    command = [package["identifier"], *(one["value"] for one in package["packageArguments"])]
    assert command == ["swarm-locks", "serve"] and command[0] in scripts()


def scripts() -> dict[str, str]:
    return reader().loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def test_the_pages_have_a_place_for_the_address_and_no_line_that_cannot_be_typed():
    install, readme = ((ROOT / name).read_text() for name in ("docs/install.md", "README.md"))
    line = r"^(pipx install 'swarm-locks\[all\] @ git\+https://\S+ .*\n)?pipx install '\.\[all\]'"
    assert re.search(line, install, re.MULTILINE)
    assert "git+REPOSITORY" not in install + readme
    assert re.search(r"claude plugin marketplace add (\./|https://\S+\.git) && claude plugin install", install)


def test_every_build_has_a_number_of_its_own(tmp_path: Path):
    """The release's number is its tagged commit's alone; a source archive keeps the number that it was built with."""
    number, folder = swarm_mcp.__version__, tmp_path / "clone"
    for name in (".ci/version.py", ".ci/release.py", "swarm_hook_core/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)

    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def version() -> str:
        code = "import runpy; print(runpy.run_path('.ci/version.py')['__version__'])"
        return subprocess.run([sys.executable, "-BIc", code], cwd=folder, capture_output=True, text=True).stdout.strip()

    assert version() == number, "neither a clone nor a source archive"
    git("init", "-q")
    assert version() == f"{number}+unknown", "a clone in which git does not answer"
    git("add", ".")
    git("commit", "-qm", "one")
    assert version() == f"{number}+g{git('rev-parse', 'HEAD')[:12]}"
    git("tag", f"v{number}")
    assert version() == number
    (folder / "more").write_text("more")
    assert version() == f"{number}+g{git('rev-parse', 'HEAD')[:12]}.dirty"
    git("add", ".")
    git("commit", "-qm", "two")
    assert version() == f"{number}+g{git('rev-parse', 'HEAD')[:12]}"
    (folder / "PKG-INFO").write_text(f"Metadata-Version: 2.4\nVersion: {number}+gabc\n")
    assert version() == f"{number}+gabc"
    argv = [sys.executable, "-BIc", "import runpy; r = runpy.run_path('.ci/release.py'); print(r['_commit']('HEAD'))"]
    assert subprocess.run(argv, cwd=folder, capture_output=True, text=True).stdout.strip() == git("rev-parse", "HEAD")


def test_a_number_that_another_commit_has_is_in_the_way(copy: Path):
    step(copy, "version", "4.5.6")
    step(copy, "address", "https://example.org/us/swarm")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v4.5.6"]):
        subprocess.run(["git", "-C", str(copy), *who, *words], check=True)
    assert step(copy, "check", "v4.5.6")[0] == 0
    subprocess.run(["git", "-C", str(copy), *who, "commit", "-qm", "two", "--allow-empty"], check=True)
    code, told = step(copy, "check", "v4.5.6")
    assert code == 1 and told.startswith("the number 4.5.6 is taken: "), told


@pytest.mark.parametrize(
    "words",
    [
        ("version", "1.2"),
        ("version", "v1.2.3"),
        ("address", "example.org/x"),
        ("address", "https://example.org"),
        (),
        ("publish",),
    ],
)
def test_what_cannot_be_done_changes_nothing(copy: Path, words: tuple[str, ...]):
    before = {name: (copy / name).read_bytes() for name in FILES}
    code, told = step(copy, *words)
    assert code in (1, 2) and told and "Traceback" not in told
    assert {name: (copy / name).read_bytes() for name in FILES} == before


def test_a_version_is_made_once(copy: Path):
    assert step(copy, "version", "4.5.6")[0] == 0
    code, told = step(copy, "version", "4.5.6")
    assert (code, told) == (1, "CHANGELOG.md has a section 4.5.6\n")


@pytest.mark.parametrize("name", [".codex-plugin/plugin.json", "integrations/hook.sh", "integrations/checker.ts"])
def test_a_file_of_another_version_is_in_the_way(copy: Path, name: str):
    step(copy, "version", "4.5.6")
    step(copy, "address", "https://example.org/us/swarm")
    file = copy / name
    file.write_text(file.read_text().replace("4.5.6", "4.5.5"))
    assert step(copy, "check") == (1, f"{name} says version 4.5.5, not 4.5.6\n")
