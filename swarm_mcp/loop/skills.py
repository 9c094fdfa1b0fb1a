"""Skills: folders with a SKILL.md, whose name and description the model sees and whose text it asks for.

Looked for, lowest priority first: ours, in ``skills/`` of plugin packs, in ``.harness/skills`` and ``.agents/skills``
of the home folder and of every folder down to the session's, and those that the run was given.
"""

from __future__ import annotations

import os
from typing import NamedTuple

RESOURCES = ("scripts", "references", "assets")
LONGEST_HEAD = 16384
_GUIDE = (
    "Skills are instructions for certain kinds of work. Where one below fits what you are asked, load it with the tool"
    " `skill` before you begin, and follow it."
)


class Skill(NamedTuple):
    """One skill: its name, what it is for, and its folder."""

    name: str
    description: str
    folder: str


def discover(loop) -> dict[str, Skill]:
    """Return name -> skill, sorted by name; of several with one name the one of highest priority."""
    found = {}
    for folder in _folders(loop):
        skill = _read(folder)
        if skill:
            found[skill.name] = skill
    return dict(sorted(found.items()))


def catalogue(loop) -> str:
    """Return what the system prompt says about the skills; empty where there are none."""
    found = discover(loop)
    if not found:
        return ""
    lines = [
        f'  <skill name="{one.name}" path="{os.path.join(one.folder, "SKILL.md")}">\n    {one.description}\n  </skill>'
        for one in found.values()
    ]
    return _GUIDE + "\n\n<available-skills>\n" + "\n".join(lines) + "\n</available-skills>"


def load(loop, name: str) -> str | None:
    """Return a skill's text and where its files are; None where there is no such skill."""
    skill = discover(loop).get(name)
    if skill is None:
        return None
    with open(os.path.join(skill.folder, "SKILL.md"), encoding="utf-8", errors="replace") as file:
        body = _parts(file.read())[1].strip("\n")
    lines = [f'<skill name="{name}">', body, "", f"Skill directory: {skill.folder}"]
    lines.append("Relative paths in this skill count from there.")
    resources = [
        f"  {part}/{file}"
        for part in RESOURCES
        if os.path.isdir(os.path.join(skill.folder, part))
        for file in sorted(os.listdir(os.path.join(skill.folder, part)))
    ]
    if resources:
        lines += ["", "<skill-resources>", *resources, "</skill-resources>"]
    return "\n".join([*lines, "</skill>"])


def resolved(loop, prompt: str) -> str:
    """Return a prompt whose first line begins with ``/NAME`` of a skill, with that skill's text before the rest."""
    first, _, rest = prompt.lstrip().partition("\n")
    word, _, more = first.partition(" ")
    text = load(loop, word[1:]) if word.startswith("/") and len(word) > 1 else None
    if text is None:
        return prompt
    asked = "\n".join(filter(None, (more.strip(), rest.strip())))
    return f"{text}\n\nUser request: {asked}" if asked else text


def _folders(loop) -> list[str]:
    from swarm_mcp.installation import plugin_source

    places = [str(plugin_source() / "skills")]
    inside = [source for source in loop.sources if os.path.basename(source) != ".harness"]
    places += [os.path.join(source, "skills") for source in inside if source != loop.settings.home]
    walked = []
    folder = loop.cwd
    while True:
        walked.append(folder)
        if folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    home = os.path.expanduser("~")
    walked += [] if home in walked else [home]
    for folder in reversed(walked):
        places += [os.path.join(folder, ".harness", "skills"), os.path.join(folder, ".agents", "skills")]
    found = []
    for place in dict.fromkeys(places):
        if os.path.isdir(place):
            found += [os.path.join(place, name) for name in sorted(os.listdir(place))]
    given = loop.settings.config.get("skills")
    return found + [str(path) for path in given] if isinstance(given, list) else found


def _read(folder: str) -> Skill | None:
    try:
        with open(os.path.join(folder, "SKILL.md"), encoding="utf-8", errors="replace") as file:
            head = _parts(file.read(LONGEST_HEAD))[0]
    except OSError:
        return None
    name, description = head.get("name", ""), head.get("description", "")
    return Skill(name, description, folder) if name and description else None


def _parts(text: str) -> tuple[dict[str, str], str]:
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
