"""The model's texts beside the conversation: the system prompt, the skills, and complaints about an answer.

The system prompt is ours, then those of every source and its project, from the farthest to the nearest. Skills are
folders with a SKILL.md. The model sees its name and description, and asks for its text. Skills come, lowest priority
first: ours, from ``skills/`` of plugin packs, from ``.harness/skills`` and ``.agents/skills`` of the home folder and of
every folder down to the session's, and those of the run itself.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.agents.harness.adapter import mismatch
from swarm_mcp.agents.harness.query import parse_json
from swarm_mcp.agents.loop.settings import LoopRun, LoopSettings
from swarm_mcp.folders import names_in
from swarm_mcp.installation import plugin_source

OURS = """\
You are a coding agent. You work in the folder {cwd} through the tools you are given, until the task is done or you
cannot go on; then answer in a few lines: what you did, how you know that it works, what is left.

- Look before you change: read the files you are about to edit. Prefer small edits to rewriting whole files.
- LoopRun what shows that a change works, where there is something to run.
- Calls that do not depend on each other may be made in one answer; they run side by side.
- Other sessions may edit this checkout too. A write that is refused because another session has locked the file is no
  failure of yours: do not write the file another way, do other work, or say in your answer what is blocked by whom."""
READ_ONLY = "This run is read-only: there is no tool to write files or run commands with. Report what you would do."
LONGEST_SECTION, LONGEST = 20_000, 150_000  # characters


def system(loop: LoopRun) -> str:
    """Return the system prompt, without skills and the texts of plugins."""
    config = loop.settings.config
    parts = [str(config.get("system_prompt") or OURS.format(cwd=loop.cwd))]
    if loop.settings.read_only:
        parts.append(READ_ONLY)
    for source in loop.sources:
        parts.append(_read(os.path.join(os.path.dirname(source), "AGENTS.md")))
        folder = os.path.join(source, "prompts")
        parts += [_read(os.path.join(folder, name)) for name in names_in(folder) if name.endswith(".md")]
    parts.append(str(config.get("append_system_prompt") or ""))
    if config.get("output_schema"):
        parts.append(_schema_instruction(config["output_schema"]))
    return "\n\n".join(part for part in dict.fromkeys(part.strip() for part in parts) if part)[:LONGEST]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST_SECTION + 1)
    except OSError:  # this source has no such file
        return ""
    if len(text) <= LONGEST_SECTION:
        return text
    return text[:LONGEST_SECTION] + "\n[cut]"


TRIES = 2


def _schema_instruction(wanted: dict[str, Any]) -> str:
    """Return the system prompt's part about an answer by schema."""
    return (
        "Your last answer, when all work is done, must be one JSON object that follows this JSON Schema, without"
        f" any other text and without a code fence:\n{json.dumps(wanted, ensure_ascii=False)}"
    )


def schema_complaint(loop: LoopRun, output: str) -> str:
    """Return the mistake in an answer, for the model; empty if it fits, or after TRIES."""
    if loop.corrections < TRIES:
        why = mismatched(loop.settings, output)
    else:
        why = ""
    if not why:
        return ""
    loop.corrections += 1
    return f"That answer does not follow the schema: {why}. Answer with the JSON object alone."


def mismatched(settings: LoopSettings, output: str) -> str:
    """Return the mistake of an answer against the run's schema; empty if it fits, or without a schema."""
    wanted = settings.config.get("output_schema")
    if isinstance(wanted, dict):
        return mismatch(structured(output), wanted)
    return ""


def structured(output: str) -> object:
    """Return the JSON value of an answer, with or without a code fence around it, or `None` for other text."""
    text = output.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    return parse_json(text)


RESOURCES = ("scripts", "references", "assets")
LONGEST_HEAD = 16384
_SKILL_GUIDE = (
    "Skills are instructions for certain kinds of work. Where one below fits what you are asked, load it with the tool"
    " `skill` before you begin, and follow it."
)


class Skill(NamedTuple):
    """One skill: its name, its purpose, and its folder."""

    name: str
    description: str
    folder: str


def skills(loop: LoopRun) -> dict[str, Skill]:
    """Return name -> skill, sorted by name; of several with one name the one of highest priority."""
    found = {}
    for folder in _skill_folders(loop):
        skill = _skill_in(folder)
        if skill:
            found[skill.name] = skill
    return dict(sorted(found.items()))


def skill_catalogue(loop: LoopRun) -> str:
    """Return the system prompt's part about the skills; empty without skills."""
    found = skills(loop)
    if not found:
        return ""
    lines = [
        f'  <skill name="{one.name}" path="{os.path.join(one.folder, "SKILL.md")}">\n    {one.description}\n  </skill>'
        for one in found.values()
    ]
    return _SKILL_GUIDE + "\n\n<available-skills>\n" + "\n".join(lines) + "\n</available-skills>"


def load_skill(loop: LoopRun, name: str) -> str | None:
    """Return a skill's text and the place of its files, or `None` for an unknown name."""
    skill = skills(loop).get(name)
    if skill is None:
        return None
    with open(os.path.join(skill.folder, "SKILL.md"), encoding="utf-8", errors="replace") as file:
        body = _frontmatter(file.read())[1].strip("\n")
    lines = [f'<skill name="{name}">', body, "", f"Skill directory: {skill.folder}"]
    lines.append("Relative paths in this skill count from there.")
    resources = [f"  {part}/{file}" for part in RESOURCES for file in names_in(os.path.join(skill.folder, part))]
    if resources:
        lines += ["", "<skill-resources>", *resources, "</skill-resources>"]
    return "\n".join([*lines, "</skill>"])


def with_skill(loop: LoopRun, prompt: str) -> str:
    """Return a prompt. If its first line begins with ``/NAME`` of a skill, the skill's text comes before the rest."""
    first, _, rest = prompt.lstrip().partition("\n")
    word, _, more = first.partition(" ")
    if word.startswith("/") and len(word) > 1:
        text = load_skill(loop, word[1:])
    else:
        text = None
    if text is None:
        return prompt
    asked = "\n".join(filter(None, (more.strip(), rest.strip())))
    if asked:
        return f"{text}\n\nUser request: {asked}"
    return text


def _skill_folders(loop: LoopRun) -> list[str]:
    places = [str(plugin_source() / "skills")]
    inside = [source for source in loop.sources if os.path.basename(source) != ".harness"]
    places += [os.path.join(source, "skills") for source in inside if source != loop.settings.home]
    walked = [loop.cwd, *map(str, Path(loop.cwd).parents)]
    home = os.path.expanduser("~")
    walked += [] if home in walked else [home]
    for folder in reversed(walked):
        places += [os.path.join(folder, ".harness", "skills"), os.path.join(folder, ".agents", "skills")]
    found = [os.path.join(place, name) for place in dict.fromkeys(places) for name in names_in(place)]
    given = loop.settings.config.get("skills")
    if isinstance(given, list):
        return found + [str(path) for path in given]
    return found


def _skill_in(folder: str) -> Skill | None:
    try:
        with open(os.path.join(folder, "SKILL.md"), encoding="utf-8", errors="replace") as file:
            head = _frontmatter(file.read(LONGEST_HEAD))[0]
    except OSError:  # a folder without a SKILL.md
        return None
    name, description = head.get("name", ""), head.get("description", "")
    if name and description:
        return Skill(name, description, folder)
    return None


def _frontmatter(text: str) -> tuple[dict[str, str], str]:
    """Frontmatter (a value that goes on over indented lines is joined) and the rest."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return {}, text
    head: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return {name: value.strip().strip("\"'") for name, value in head.items()}, "\n".join(lines[number + 1 :])
        if line[:1] in (" ", "\t") and key:
            head[key] = f"{head[key].lstrip('>|-')} {line.strip()}"
        elif ":" in line:
            key, _, value = line.partition(":")
            key = key.strip()
            head[key] = value.strip()
    return {name: value.strip().strip("\"'") for name, value in head.items()}, ""
