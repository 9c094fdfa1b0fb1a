"""The commands of a prompt in each harness: found in its own folders and the project's, without starting anything."""

from pathlib import Path

import pytest
from support.fixtures import Ground
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.slash_commands import slash_commands

# Harness -> the variable for its private folder, a skill in it, that skill's invocation, a command of the project's,
# that command's invocation.
PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", "skills", "/knots", ".claude/commands/boats/fold.md", "/boats:fold"),
    "codex": ("CODEX_HOME", "skills", "/knots", "", ""),
    "pi": ("PI_CODING_AGENT_DIR", "skills", "/skill:knots", ".pi/prompts/fold.md", "/fold"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/skills", "Use the skill knots.", ".gemini/commands/boats/fold.toml",
               "/boats:fold"),
    "opencode": ("XDG_CONFIG_HOME", "opencode/skills", "Use the skill knots.", "", ""),
    "hs": ("HARNESS_HOME", "skills", "Use the skill knots.", "", ""),
    "loop": ("HARNESS_HOME", "skills", "Use the skill knots.", "", ""),
}  # fmt: skip


def skill(folder: Path, about: str) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: {about}\n---\nBODY\n")


@pytest.mark.parametrize("name", PLACES)
@requirement("A-04")
def test_skills_and_commands_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, place, invocation, command, invoked = PLACES[name]
    monkeypatch.setenv(variable, str(tmp_path / "mine"))
    skill(tmp_path / "mine" / place / "knots", "Ties knots")
    work = tmp_path / "work"
    work.mkdir()
    if command:
        file = work / command
        file.parent.mkdir(parents=True)
        quote = '"' if command.endswith(".toml") else ""
        words = f"description {'=' if quote else ':'} {quote}Folds boats{quote}\n"
        file.write_text(words if quote else f"---\n{words}---\nFold.\n")
    found = {one.name: one for one in slash_commands(registry.get(name), str(work))}
    assert (found["knots"].invocation, found["knots"].description, found["knots"].kind) == (
        invocation, "Ties knots", "skill",
    )  # fmt: skip
    assert "swarm-mcp" in found, "a run has the swarm's own skill"
    if command:
        made = found[invoked.lstrip("/")]
        assert (made.invocation, made.description, made.kind) == (invoked, "Folds boats", "command")
        assert made.path == str(work / command)


@requirement("A-52")
def test_a_skill_of_the_run_goes_before_one_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "mine"))
    skill(tmp_path / "mine" / "skills" / "knots", "Theirs")
    skill(tmp_path / "knots", "The run's")
    (found,) = [
        one for one in slash_commands(registry.get("claude"), str(tmp_path), (str(tmp_path / "knots"),))
        if one.name == "knots"
    ]  # fmt: skip
    assert found.description == "The run's"


@requirement("A-04")
def test_every_harness_is_asked_and_any_command_has_none(ground: Ground) -> None:
    listed = ground.swarm("harness", "commands", "--json").json
    assert list(listed) == registry.names() and listed["process"] == []
    assert {"name", "invocation", "description", "kind", "path"} == set(listed["claude"][0])
    skill(ground.repo / ".claude" / "skills" / "knots", "Ties knots")
    done = ground.swarm("harness", "commands", "claude")
    assert done.code == 0 and "/knots" in done.out and "Ties knots" in done.out
    assert ground.swarm("harness", "commands", "process").out.strip() == "(none)"
