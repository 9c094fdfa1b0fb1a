"""The workflow that publishes a release, the changelog that it reads, and the command's own script."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import repository
from support.files import folder_at, program_at
from support.repository import ROOT

from swarm_mcp import __version__
from swarm_mcp.runtimes import installed as changelog
from swarm_mcp.runtimes.installed import Entry, entries, newer, since

WORKFLOWS = repository.ROOT / ".github" / "workflows"
RELEASE = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))
BUILD, PUBLISH, BESIDE = (RELEASE["jobs"][name] for name in ("build", "publish", "release"))


def commands(job: dict) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_a_tag_alone_starts_it():
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}  # `on` is a truth value in YAML


def test_only_the_job_that_publishes_is_trusted_by_the_index():
    assert RELEASE["permissions"] == {"contents": "read"}
    assert "permissions" not in BUILD
    assert PUBLISH["permissions"] == {"id-token": "write", "attestations": "write"}
    assert PUBLISH["environment"]["name"] == "pypi"
    assert set(RELEASE["jobs"]) == {"build", "publish", "release"} and PUBLISH["needs"] == "build"
    assert BESIDE["needs"] == "publish" and BESIDE["permissions"] == {"contents": "write"}
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_nothing_of_the_repository_runs_where_it_is_published():
    assert commands(PUBLISH) == []
    assert not any("checkout" in step.get("uses", "") for step in (*PUBLISH["steps"], *BESIDE["steps"]))
    assert [run.partition(" --")[0] for run in commands(BESIDE)] == ['gh release create "$GITHUB_REF_NAME"']


def test_the_version_is_checked_before_anything_runs_and_all_before_it_is_built():
    first, *others = commands(BUILD)
    assert first == 'python .ci/release.py check "$GITHUB_REF_NAME"'
    order = [
        others.index("make check"),
        others.index("make test"),
        next(i for i, run in enumerate(others) if "make dist" in run),
    ]
    assert order == sorted(order)
    assert "diff --recursive" in others[order[-1]], "two builds are compared"
    uploaded = next(step["with"] for step in BUILD["steps"] if "upload-artifact" in step.get("uses", ""))
    fetched = next(step["with"] for step in PUBLISH["steps"] if "download-artifact" in step["uses"])
    assert (uploaded["name"], uploaded["path"]) == (fetched["name"], fetched["path"])
    used = [step["uses"].partition("@")[0] for step in PUBLISH["steps"]]
    assert "actions/attest-sbom" in used and used[-2:] == [
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]


@pytest.mark.parametrize("workflow", sorted(path.name for path in WORKFLOWS.glob("*.yml")))
def test_actions_are_named_by_commits_with_their_release(workflow: str):
    lines = [line for line in (WORKFLOWS / workflow).read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_it_installs_what_the_tests_need():
    """Compare with the packages that the workflow of each push installs for the unit tests."""
    tests = yaml.safe_load((WORKFLOWS / "tests.yml").read_text(encoding="utf-8"))["jobs"]["linux"]
    (needed,) = [run for run in commands(tests) if "apt-get install" in run]
    assert needed in commands(BUILD)


def test_contributors_are_told_in_a_few_lines_how_a_release_is_made():
    page = (repository.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("\n## Releases\n")[2].partition("\nBy sending")[0]
    assert 5 < len(section.strip().splitlines()) <= 15
    for name in (".ci/release.py version", ".ci/release.py check", "make dist", "git tag", "environment `pypi`"):
        assert name in section


KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
SAMPLE = """# Changelog

Words about it.

## [Unreleased]

### Added
- Something that
  takes [two](docs/lines.md) lines. And more of it.

## [0.10.0] - 2026-12-01

### Changed
- `x` is 0.4 s late: `y`.

### Fixed
- A fault

## 0.9.1 - 2026-11-30
### Added
- The beginning.
"""


def test_the_changelog_has_the_form_that_it_names():
    text = (repository.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    releases = []
    for heading in headings[1:]:
        found = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})", heading)
        assert found, heading
        releases.append((tuple(map(int, found[1].split("."))), found[2]))
    assert releases == sorted(releases, reverse=True), "the newest comes first"
    for part in text.split("\n## ")[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], "each kind once, in the usual order"
    listed = entries(text)
    assert len(listed) == len(re.findall(r"^- ", text, re.MULTILINE))
    firsts = [entry.first_sentence for entry in listed]
    assert len(set(firsts)) == len(firsts), "nothing is said twice"
    assert [one for one in firsts if len(one) > 250 or not one.endswith((".", "!", ")"))] == []


def test_entries_are_read_with_their_release_and_kind():
    assert entries(SAMPLE) == [
        Entry("Unreleased", "Added", "Something that takes two lines. And more of it."),
        Entry("0.10.0", "Changed", "`x` is 0.4 s late: `y`."),
        Entry("0.10.0", "Fixed", "A fault"),
        Entry("0.9.1", "Added", "The beginning."),
    ]
    assert [entry.first_sentence for entry in entries(SAMPLE)] == [
        "Something that takes two lines.", "`x` is 0.4 s late: `y`.", "A fault", "The beginning.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "count"),
    [("0.9.0", 4), ("0.9.1", 3), ("0.9.1rc1", 3), ("0.10.0", 1), ("1.0.0", 1), ("", 4), ("odd", 4)],
)
def test_what_is_newer_than_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, count: int):
    (tmp_path / "CHANGELOG.md").write_text(SAMPLE)
    monkeypatch.setattr(changelog, "plugin_folder", lambda: str(tmp_path))
    assert len(since(version)) == count


def test_an_installation_without_one_knows_of_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(changelog, "plugin_folder", lambda: str(tmp_path))
    assert since("0.1.0") == []


def test_releases_are_compared_by_their_numbers():
    assert newer("0.10.0", "0.9.12") and newer("1.0.0", "0.99.99")
    assert not newer("0.1.0", "0.1.0") and not newer("0.1", "0.2")


def test_the_installed_package_carries_it():
    carried = entries(changelog.file().read_text(encoding="utf-8"))
    assert len(carried) > 10
    assert not any(newer(entry.release, __version__) for entry in carried if entry.release != changelog.UNRELEASED)


SAYS = '#!/bin/sh\necho "${0##*/}" "$@"\n'


def program(path: Path, text: str = SAYS) -> None:
    program_at(path, text)


def installed(folder: Path) -> Path:
    program(folder / "bin/swarm-locks")
    shutil.copy(ROOT / "swarm_mcp/cli/launcher.sh", folder / "bin/swarm-mcp")
    return folder / "bin/swarm-mcp"


def said(program: str | Path, cwd: Path, *words: str) -> list[str]:
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("called", ["itself", "link", "link of a link", "relative"])
@pytest.mark.parametrize("name", ["env", "with a blank"])
def test_the_python_beside_the_script_runs_it_without_site(called: str, name: str, tmp_path: Path) -> None:
    script = installed(tmp_path / name)
    program(tmp_path / name / "bin/python")
    (tmp_path / name / "pyvenv.cfg").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/one").symlink_to(script)
    (tmp_path / "bin/two").symlink_to("one")
    starts = {"itself": script, "link": tmp_path / "bin/one", "link of a link": tmp_path / "bin/two",
              "relative": f"./{name}/bin/swarm-mcp"}  # fmt: skip
    (line,) = said(starts[called], tmp_path, "lock", "a b")
    assert line.startswith("python -S ") and line.endswith(f"{name}/bin/swarm-mcp lock a b")


def test_outside_of_a_virtual_environment_the_installers_script_runs(tmp_path: Path) -> None:
    script = installed(tmp_path)
    program(tmp_path / "bin/python")
    assert said(script, tmp_path, "lock", "f") == ["swarm-locks lock f"]


def test_a_link_is_followed_without_programs_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = installed(tmp_path / "env")
    (tmp_path / "one").symlink_to(script)
    (tmp_path / "two").symlink_to("one")
    monkeypatch.setenv("PATH", "/nowhere")
    assert said(tmp_path / "two", tmp_path, "locks") == ["swarm-locks locks"]


def test_a_copy_of_the_script_runs_the_command_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(installed(tmp_path / "env"), tmp_path / "swarm-mcp")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin:{os.environ['PATH']}")
    assert said(tmp_path / "swarm-mcp", tmp_path, "locks") == ["swarm-locks locks"]


@pytest.mark.parametrize(
    "word, settings, more, has_site",
    [
        ("lock", "include-system-site-packages = false\n", "", False),
        ("--version", "include-system-site-packages = false\n", "distutils-precedence.pth", False),
        ("serve", "include-system-site-packages = false\n", "", True),
        ("lock", "include-system-site-packages = true\n", "", True),
        ("lock", "", "", True),
        ("lock", "include-system-site-packages = false\n", "theirs.pth", True),
    ],
)
def test_short_commands_do_without_site(word: str, settings: str, more: str, has_site: bool, tmp_path: Path) -> None:
    script = installed(tmp_path)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = folder_at(tmp_path / "lib" / version / "site-packages/swarm_mcp/cli")
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    main = """import sys

def main():
    behind = sys.path.index(__file__[: -len("/swarm_mcp/cli/main.py")])
    print('site' in sys.modules, any(path.endswith(".zip") for path in sys.path[:behind]), flush=True)
    return 0
"""
    (package / "main.py").write_text(main)
    shutil.copy(ROOT / "swarm_mcp/start.py", package.parent)
    if more:
        (package.parents[1] / more).write_text("")
    base = os.path.realpath(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\n{settings}")
    (tmp_path / "bin/python").symlink_to(base)
    assert said(script, tmp_path, word) == [f"{has_site} True"], "or the packages are before Python's own"


@pytest.mark.parametrize("left_behind", [False, True])
def test_packages_that_are_elsewhere_are_found_by_site(left_behind: bool, tmp_path: Path) -> None:
    """As those of a checkout: a file of paths leads to them, and a folder may be left of an earlier installation."""
    script = installed(tmp_path)
    packages = folder_at(tmp_path / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages")
    if left_behind:
        (packages / "swarm_mcp/__pycache__").mkdir(parents=True)
    there = folder_at(tmp_path / "checkout/swarm_mcp/cli")
    for folder in (there.parent, there):
        (folder / "__init__.py").touch()
    (there / "main.py").write_text("def main():\n    print(__file__, flush=True)\n    return 0\n")
    (packages / "checkout.pth").write_text(f"{there.parents[1]}\n")
    base = os.path.realpath(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
    (tmp_path / "bin/python").symlink_to(base)
    assert said(script, tmp_path, "lock") == [f"{there}/main.py"]
