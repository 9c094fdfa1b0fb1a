"""Skills for one run of Codex: named to the model, and put into the prompt where the prompt asks for one.

Codex looks for skills in its own home, in the user's and in the project, and takes no further folder on its command
line. Nothing is written to any of those: the model is told the name, the purpose and the place of each skill (it
reads the file when the work calls for it), and a prompt that begins with ``/name`` or ``$name`` has the text itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from swarm_mcp.agents.harness.plugin import FILE, described

_ASKED = re.compile(r"\s*([/$])([A-Za-z0-9:_-]+)(?=\s|\Z)[ \t]*")
LARGEST_SKILL = 200_000  # characters
_HEADING = """\
## Skills for this run
Each of these files tells how to do one kind of work. When what you are about to do fits a description, read that \
file first and follow it; names in it are relative to its folder.
"""


class Prompt(NamedTuple):
    """The prompt for Codex, and notes for the watching person."""

    text: str
    notes: tuple[str, ...] = ()


def with_skill(prompt: str, skills: Sequence[str], folders: Iterable[str]) -> Prompt:
    """Return `prompt` with the text of the skill that it begins with. `skills` are the run's own;
    `folders` hold the user's.

    ``$name`` of one of the user's skills stays: Codex knows it. ``/name`` of an unknown skill stays too, with a
    note: it may well be no skill at all.
    """
    asked = _ASKED.match(prompt)
    if not asked:
        return Prompt(prompt)
    sign, name = asked.groups()
    own = next((folder for folder in skills if name in (os.path.basename(folder), described(folder)[0])), None)
    if own is None and sign == "$":
        return Prompt(prompt)
    folder = own or next(filter(_has_skill, (os.path.join(base, name) for base in folders)), None)
    if folder:
        try:
            with open(os.path.join(folder, FILE), encoding="utf-8", errors="replace") as file:
                text = file.read(LARGEST_SKILL)
        except OSError:  # unreadable, so no skill
            text = None
    else:
        text = None
    if text is None:
        return Prompt(prompt, (f"swarm: there is no skill called {name[:80]!r}; the prompt goes as it is",))
    rest = prompt[asked.end() :]
    return Prompt(f"{text.rstrip()}\n\nFolder of this skill: {folder}\nUser request: {rest}")


def listed_in_prompt(skills: Sequence[str], folders: Iterable[str]) -> str:
    """Return the text for the model about the run's skills, without those that Codex finds by itself."""
    lines = []
    known = {name for base in folders for name in _names(base)}
    for folder in skills:
        name, description = described(folder)
        if os.path.basename(folder) not in known:
            lines.append(f"- {name}: {description or 'no description'} (file: {os.path.join(folder, FILE)})")
    if lines:
        return _HEADING + "\n".join(lines)
    return ""


def user_folders(home: str, codex_home: str, cwd: str) -> list[str]:
    """Return where Codex itself looks for skills, and where ``CODEX_SKILLS_DIR`` says that there are some."""
    named = os.environ.get("CODEX_SKILLS_DIR", "").strip()
    places = [os.path.join(codex_home, "skills"), os.path.join(home, ".agents", "skills"),
              os.path.join(cwd, ".agents", "skills")]  # fmt: skip
    if named:
        return [os.path.expanduser(named), *places]
    return places


def _has_skill(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, FILE))


def _names(base: str) -> list[str]:
    try:
        return [name for name in os.listdir(base) if _has_skill(os.path.join(base, name))]
    except OSError:  # no such folder
        return []
