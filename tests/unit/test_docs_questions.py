"""A reader with a question: the answer is two links from the README, and each command that the pages name exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import flags_of

from swarm_mcp.cli.arguments import parse
from swarm_mcp.cli.verbs import NOUNS, called, is_verb, verb_named, words_of
from swarm_mcp.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/dev/*.md"), *ROOT.glob("skills/**/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
BLOCK = re.compile(r"^```(sh|text|)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PLACEHOLDERS = ("COMMAND", "help", "NOUN")

# A question, and words of the answer: in the first paragraph behind the link, with the commands below it.
ANSWERS = {
    "Why was I refused?": "swarm-mcp why FILE",
    "The denial names uncommitted work": "cat FILE",
    "My agent seems stuck": "swarm-mcp status",
    "A session is gone, its lock is not": "swarm-mcp steal FILE",
    "How do I switch it off for an hour?": "swarm-mcp protect off --for 1h",
    "Who changed this line?": "swarm-mcp blame FILE",
    "Can I commit only my part?": "swarm-mcp commit",
    "I want back what an agent overwrote": "swarm-mcp restore FILE",
    "I want to undo what one agent did": "swarm-mcp undo --session",
    "What did the agents do this morning?": "swarm-mcp log --since",
    "When do I need a lock?": "You rarely need one",
    "Does it work with my client?": "swarm-mcp install",
    "VS Code and desktop apps?": "swarm-mcp status",
    "What do I see in my own editor?": "A language server",
    "Does it work with worktrees?": "swarm works with `git worktree`",
    "CI, containers, SSH, WSL?": "Install where the agent client runs",
    "With a colleague?": "share locks over a PostgreSQL server",
    "Nothing is checked": "swarm-mcp doctor",
    "What does it cost?": "before each write",
    "Does it send anything anywhere?": "Nothing of your work",
    "What does it not see?": "cannot see in advance",
    "What if swarm itself breaks?": "the call passes",
    "What is left after uninstall?": "swarm-mcp uninstall",
}


def anchor_of(heading: str) -> str:
    """Return the anchor that a web page makes of a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def first_paragraph(page: Path, anchor: str) -> str:
    """Return the first paragraph below a heading (default: the page's own), with the commands or the list below it."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^#+ (.*)$", text, re.MULTILINE):
        if not anchor or anchor_of(found[1]) == anchor:
            parts = text[found.end() :].strip().split("\n\n")
            return parts[0] + (parts[1] if re.match("```|- |\\|", parts[1]) or parts[1].startswith("##") else "")
    raise AssertionError(f"{page} has no heading #{anchor}")


def rows() -> dict[str, str]:
    """Return the questions of the index with their answers."""
    table = re.findall(r"^\|([^|*]+)\|(.+)\|$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    return {question: answer for question, answer in table if question not in ("question", "---")}


def test_the_readme_links_to_the_index():
    assert "docs/README.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_index_has_these_questions():
    assert rows().keys() == ANSWERS.keys()


@pytest.mark.parametrize("question", ANSWERS)
def test_the_answer_is_two_links_away(question: str):
    (link, *_others) = LINK.findall(rows()[question])
    name, _, anchor = link.partition("#")
    answer = " ".join([rows()[question], first_paragraph(INDEX.parent / name, anchor)])
    assert ANSWERS[question] in " ".join(answer.split()), answer


def commands_in(page: Path) -> Iterator[tuple[str, bool]]:
    """Yield each command of ours that a page names, and True if it stands in a block, whole."""
    text = page.read_text(encoding="utf-8")
    for kind, block in BLOCK.findall(text):
        typed = "\n".join(re.findall(r"^\$ (.*)", block, re.MULTILINE)) if kind == "text" else block
        for part in re.findall(r"(?:^|&& |[;|] |=\S* )(swarm-mcp [^;|&#\n]*)", typed, re.MULTILINE):
            yield part, True
    for inline in re.findall(r"`([^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        for part in re.findall(r"swarm-mcp [^;|&#]*", " ".join(inline.split())):
            yield part.strip(), False


def wrong(command: str, whole: bool) -> str:
    """Return the fault of a command line, or an empty text."""
    words = [word for word in shlex.split(command)[1:] if word not in ("...", "\\")]
    name, *given = words or ["help"]
    if name in PLACEHOLDERS or name.startswith("-"):
        return ""
    verb = name
    if name in NOUNS:
        if not given or given[0] in ("WORD", "..."):
            return ""
        verb, given = words_of(name).get(given[0], ""), given[1:]
    if not is_verb(verb):
        return "there is no such command"
    if name not in NOUNS and called(verb) != verb:
        return f"say: {called(verb)}"
    given = given[: given.index("--")] if "--" in given else given
    if unknown := [word for word in given if word.startswith("--") and word.split("=")[0] not in flags_of(verb)]:
        return f"unknown: {unknown}"
    if whole and "--" not in command.split():
        try:
            parse(verb, verb_named(verb).usages, given)
        except UsageError as error:  # shown with its command
            return str(error)
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_that_a_page_names_exist(page: Path):
    faults = {command: wrong(command, whole) for command, whole in commands_in(page)}
    assert {command: fault for command, fault in faults.items() if fault} == {}


def test_a_wrong_command_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nswarm-mcp lock f --nonsense\nswarm-mcp claim X\nswarm-mcp lock f   # why\n```\n`swarm-mcp frob x`\n"
    )
    assert [bool(wrong(*each)) for each in commands_in(page)] == [True, True, False, True]
