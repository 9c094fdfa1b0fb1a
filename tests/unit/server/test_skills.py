"""The skills: they are short, and every name in them exists."""

import re
from pathlib import Path

import pytest
from support.command_line import FLAGS, flags_of
from support.requirement import requirement

from swarm_mcp import contributions
from swarm_mcp.cli.arguments import NOUNS, words_of
from swarm_mcp.domain import STATUSES, TYPES
from swarm_mcp.installation import plugin_source
from swarm_mcp.server.tools import all_tools
from swarm_mcp.server.tools.instances import ROLES, for_label

VERBS = contributions.verbs()
NOUN = re.compile(rf"swarm-mcp ({'|'.join(NOUNS)}) ([a-z]+)")

SKILLS = plugin_source() / "skills"
FILES = sorted(SKILLS.rglob("*.md"))
IDS = [str(path.relative_to(SKILLS)) for path in FILES]


def tools() -> dict:
    return all_tools()


def test_there_are_two_skills_which_each_client_lists_to_its_models():
    assert [path.parent.name for path in FILES if path.name == "SKILL.md"] == ["swarm", "swarm-mcp"]
    assert {"swarm-mcp/SKILL.md", "swarm/SKILL.md", "swarm-mcp/references/tasks.md"} <= set(IDS)


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_file_is_short(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150 and all(len(line) <= 125 for line in lines if not line.startswith(("description:", "|")))


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "SKILL.md"], ids=str)
def test_front_matter_says_what_and_when(path: Path):
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert fields["name"] == path.parent.name
    assert 100 < len(fields["description"]) <= 1024 and "Use " in fields["description"]
    assert body.strip().startswith("# ")


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_commands_tools_and_files_exist(path: Path):
    text = path.read_text(encoding="utf-8")
    text = NOUN.sub(lambda found: f"swarm-mcp {words_of(found[1])[found[2]]}", text)
    for verb in re.findall(r"`swarm-mcp ([a-z-]+)", text):
        assert verb in VERBS or verb == "help", verb
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        assert flag in FLAGS, flag
    for verb, rest in re.findall(r"swarm-mcp ([a-z-]+)((?: [^`|\n]*)?)", text):
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest.partition(" -- ")[0]) if verb in VERBS else ():
            assert flag in flags_of(verb), (verb, flag)
    for name in re.findall(r"`(references/[^`<]+)`", text):
        assert (path.parent / name).is_file(), name
    known = tools()
    arguments = {name for tool in known.values() for name in tool.properties} | set(TYPES) | set(STATUSES)
    answers = {"new_messages", "instance_changes", "kv_updates", "next_action", "work_tracker"}
    task_fields = {"fixes_task_id", "review_of_task_id", "depends_on", "approval_required", "idempotency_key"}
    for span in re.findall(r"`([a-z]+(?:_[a-z]+)+)[`(]", text):
        assert span in known or span in arguments | answers | task_fields, span


def test_each_role_that_sessions_are_told_of_has_its_reference():
    for role in ROLES:
        reference = f"references/{role}.md"
        assert reference in for_label(f"role:{role}")[1]
        assert (SKILLS / "swarm-mcp" / reference).is_file()


@requirement("C-66")
def test_the_skill_shows_every_verb_of_its_table():
    table = [line for line in (SKILLS / "swarm-mcp" / "SKILL.md").read_text().splitlines() if line.startswith("| ")]
    shell = " ".join(line.rsplit("|", 2)[1] for line in table)
    spans = re.findall(r"`(?:swarm-mcp )?([a-z-]+)(?: ([A-Za-z-][^` ]*)[^`]*)?`", shell)
    named = {words_of(word).get(second, word) for word, second in spans}
    assert named <= set(VERBS) and {"claim", "send", "watch", "lock"} <= named
    alone = {verb for noun in NOUNS for verb in words_of(noun).values()}
    assert not {word for word, _second in spans} & alone - set(NOUNS), "a verb of a noun is called by its noun"


@requirement("C-66")
def test_the_skill_names_only_listed_tools():
    text = (SKILLS / "swarm-mcp" / "SKILL.md").read_text()
    unlisted = {name for name, tool in tools().items() if not tool.is_listed}
    assert unlisted and not unlisted & set(re.findall(r"`([a-z_]+)`", text))
