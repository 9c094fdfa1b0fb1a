"""Codex's rules that let a command out of the sandbox: nothing is put before a command that one may be about."""

from pathlib import Path

import pytest

from swarm_hook_core.kernel.rules import may_allow


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rules of the user's."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    file = tmp_path / "codex" / "rules" / "default.rules"
    file.parent.mkdir(parents=True)
    return file


@pytest.mark.parametrize(
    "rule, commands",
    [
        (
            'prefix_rule(pattern=["make", "all"], decision="allow")',
            ["make all", "cd sub; make  'all' -s", "m\\ake all"],
        ),
        ('prefix_rule(pattern=["make", ["one", "two"]])', ["make one", "make two"]),
        ('# mine\nprefix_rule(\n    pattern = ["make"],\n    justification = "x",\n)', ["make", "make one"]),
    ],
)
def test_an_allowed_command(rules: Path, rule: str, commands: list[str]) -> None:
    rules.write_text(rule)
    assert [command for command in commands if not may_allow(command, "/")] == []
    assert not may_allow("npm run all", "/")


@pytest.mark.parametrize("decision", ["prompt", "forbidden"])
def test_what_asks_or_forbids_lets_nothing_out(rules: Path, decision: str) -> None:
    rules.write_text(f'prefix_rule(pattern=["make"], decision="{decision}")')
    assert not may_allow("make", "/")


@pytest.mark.parametrize(
    "text",
    [
        'prefix_rule(pattern=["npm"',
        'WORDS = ["npm"]\nprefix_rule(pattern=WORDS)',
        'prefix_rule(["npm"], "allow")',
        'rule = prefix_rule\nrule(pattern=["make"])',
    ],
)
def test_what_cannot_be_read_may_allow_anything(rules: Path, text: str) -> None:
    rules.write_text(text)
    assert may_allow("make", "/")


def test_the_rules_of_a_project(tmp_path: Path, rules: Path) -> None:
    project = tmp_path / "project"
    (project / ".codex" / "rules").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / ".codex" / "rules" / "ours.rules").write_text('prefix_rule(pattern=["make"])')
    assert may_allow("make", str(project / "sub"))
    assert not may_allow("make", str(tmp_path))
