"""The workflow that publishes a release: only it can publish, and only checked files are published."""

import re

import yaml
from support import repository

WORKFLOWS = repository.ROOT / ".github" / "workflows"
RELEASE = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))
BUILD, PUBLISH = (RELEASE["jobs"][name] for name in ("build", "publish"))


def commands(job: dict) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_a_tag_alone_starts_it():
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}  # `on` is a truth value in YAML


def test_only_the_job_that_publishes_is_trusted_by_the_index():
    assert RELEASE["permissions"] == {"contents": "read"}
    assert "permissions" not in BUILD
    assert PUBLISH["permissions"] == {"id-token": "write", "attestations": "write"}
    assert PUBLISH["environment"]["name"] == "pypi"
    assert set(RELEASE["jobs"]) == {"build", "publish"} and PUBLISH["needs"] == "build"
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_nothing_of_the_repository_runs_where_it_is_published():
    assert commands(PUBLISH) == []
    assert not any("checkout" in step["uses"] for step in PUBLISH["steps"])


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
    assert used[-2:] == ["actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]


def test_actions_are_named_by_commits_with_their_release():
    lines = [line for line in (WORKFLOWS / "release.yml").read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert len(lines) == 6
    assert [
        line for line in lines if not re.search(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)
    ] == []


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
