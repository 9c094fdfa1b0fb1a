"""The documents: short, with links, names, figures and programs that hold, and an answer for a reader's question."""

import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from documents import requirements_page
from documents.clients_table import with_tables
from support.command_line import flags_of
from support.world import World

from swarm_mcp import contributions
from swarm_mcp.cli.arguments import NOUNS, called, is_verb, parse, verb_named
from swarm_mcp.cli.arguments import words_of as verbs_words_of
from swarm_mcp.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("skills/**/*.md")])
NAMED = re.compile(r"`((?:swarm_hook_core|swarm_mcp|integrations|skills|tests|docs)/[\w./-]+)`")
WORDS = 28_000  # of all pages in docs/; this number may only fall


def words_of(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def anchors_of(page: Path) -> set[str]:
    """The anchors that a web page makes of the headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_documents_stay_short():
    pages = list(ROOT.glob("docs/**/*.md"))
    assert sum(map(words_of, pages)) <= WORDS, sorted((words_of(page), page.name) for page in pages)[-10:]
    assert len((ROOT / "SPEC.md").read_text(encoding="utf-8").splitlines()) < 300


def test_there_are_ten_pages_for_users_and_the_index_names_them():
    pages = {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert len(pages) <= 10
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages


def test_the_index_names_every_page_for_builders():
    pages = {page.name for page in ROOT.glob("docs/dev/*.md")}
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(dev/([\w-]+\.md)\)", index)) == pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path):
    # EVENT is a placeholder. Pages about adding a part name files that their readers will make.
    made_up = ["EVENT"] if not page.name.startswith("adding-") else ["EVENT", "parrot", "editor", "count"]
    names = [
        name for name in NAMED.findall(page.read_text(encoding="utf-8")) if not any(word in name for word in made_up)
    ]
    assert [name for name in names if not (ROOT / name.rstrip("./")).exists()] == []


def test_each_guarantee_names_tests_that_exist():
    text = "".join(
        file.read_text()
        for folder in ("unit", "support", "e2e", "team")
        for file in (ROOT / "tests" / folder).rglob("*.py")
    )
    named = set(re.findall(r"`(test_[a-z_0-9]+)`", (ROOT / "docs/dev/guarantees.md").read_text(encoding="utf-8")))
    assert len(named) > 60
    assert [name for name in sorted(named) if f"def {name}(" not in text] == []


def test_each_requirement_has_a_test():
    untested = re.findall(r"^\|([A-Z]-\d+)\|.*\*\*no test\*\*\|$", requirements_page.page(), re.MULTILINE)
    assert untested == ["D-25", "D-27"]  # about the tests themselves, and about code


def test_a_requirement_without_a_test_is_shown_as_such(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requirements_page, "marked", lambda: {"A-01": [("unit/test_docs.py", "test_x")]})
    page = requirements_page.page()
    assert re.search(r"^\|A-01\|.*\|tests/unit/test_docs.py\|$", page, re.MULTILINE)
    assert re.search(r"^\|A-02\|.*\|\*\*no test\*\*\|$", page, re.MULTILINE)
    monkeypatch.setattr(requirements_page, "marked", lambda: {"Z-01": [("unit/test_docs.py", "test_x")]})
    with pytest.raises(ValueError, match="Z-01"):
        requirements_page.page()


def test_the_tables_of_clients_are_what_the_runtimes_declare():
    page = (ROOT / "docs/clients.md").read_text()
    assert page == with_tables(page), "run: make clients-table"


BUILDERS_PAGES = sorted([*ROOT.glob("docs/dev/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SPEC.md"])
# Names of the parts that a reader of these pages makes; of clients' and git's own files and settings; of folders at run time.
MADE_BY_READERS = {"urgency", "jpegoptim", "editor", "EVENT", "parrot", "count_locks", "call."}
OF_CLIENTS = {"index.lock", "allow_managed_hooks_only", "settings.json", ".mcp.json", ".auth.json", "config.json"}
MADE_AT_WORK = (
    "faults.jsonl",
    "awaited/",
    "claims/",
    "traces/",
    "ended/",
    "heads/",
    "kept/",
    "worktrees/",
    "locked.files/",
    "person.undo",
    "edited/",
)


def shown_code(page: str) -> str:
    """Return the first Python block of a page."""
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "docs/dev" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found, page
    return found[1]


def made(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module `name` with this code."""
    module = ModuleType(name)
    exec(compile(code, name, "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def test_the_verb_that_the_page_shows_works(world: World, monkeypatch: pytest.MonkeyPatch):
    made("page_count", shown_code("adding-a-verb.md"), monkeypatch)
    monkeypatch.setitem(contributions.VERBS, "count", "page_count")
    me = world.session()
    world.lock(me, "notes.md")
    assert world.swarm("count", as_=me).json == {"count": 1}
    assert world.swarm("count", "--path", "sub", as_=me).json == {"count": 0}
    assert "example: swarm-mcp count --path src" in world.ground.swarm("count", "--help").out


def test_the_tool_that_the_page_shows_works(world: World, monkeypatch: pytest.MonkeyPatch):
    (tool,) = made("page_tools", shown_code("adding-a-tool.md"), monkeypatch).TOOLS
    me = world.session()
    world.lock(me, "notes.md")
    with world.store() as store:
        call = SimpleNamespace(store=store, member=lambda: store.instances.get(me.id))
        assert tool.call(call, {"path": ""}).value == {"count": 1}
    assert tool.described()["annotations"]["readOnlyHint"] is True


@functools.cache
def tracked() -> list[str]:
    """Return the paths of the repository's files."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).is_file() and not path.startswith("docs/images/")]


@pytest.fixture(scope="module")
def source() -> dict[str, set[str]]:
    """The words of each source file, by its path."""
    found = {}
    for path in tracked():
        if not path.startswith("tests/data/") and not path.endswith((".png", ".svg", ".md", ".lock")):
            found[path] = set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8", errors="replace")))
    return found


def names_in(page: Path) -> list[str]:
    """Return the names that a page has in backquotes, without commands and code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [name for name in re.findall(r"`([^`\s]+)`", text) if not any(made in name for made in MADE_BY_READERS)]


def is_there(name: str, source: dict[str, set[str]]) -> bool:
    """Return True if a name is in the source: a path, a folder, ``module.function``, a function, a word."""
    if name in OF_CLIENTS or name.startswith(MADE_AT_WORK):
        return True
    if re.fullmatch(r"[\w./-]*\w\.(py|sh|ts|c|h|md|json|txt|yml|toml)|[\w-]+(/[\w-]+)*/", name):
        return any(f"/{name}" in f"/{path}" for path in tracked())
    dotted = re.fullmatch(r"(?:\w+\.)?(\w+)\.(\w{2,})(?:\(.*\))?", name)
    if dotted and (files := [path for path in source if Path(path).stem == dotted[1]]):
        return any(dotted[2] in source[path] for path in files)
    if re.fullmatch(r"\w+(\(.*\))?", name) and "_" in name.strip("_"):
        return any(name.partition("(")[0] in words for words in source.values())
    return True


@pytest.mark.parametrize("page", BUILDERS_PAGES, ids=lambda page: page.name)
@pytest.mark.sampled
def test_the_names_of_a_page_are_in_the_source(page: Path, source: dict[str, set[str]]):
    assert [name for name in names_in(page) if not is_there(name, source)] == []


def test_a_name_that_is_gone_is_found(source: dict[str, set[str]]):
    none = "no_such_" + "function"  # in two parts, since this file is searched too
    gone = ["store/nowhere.py", f"grants.{none}", none, "swarm_mcp/nowhere/"]
    assert [is_there(name, source) for name in gone] == [False] * len(gone)
    there = ["store/grants.py", "reactions.locks_granted", "carry_out", "swarm_mcp/store/"]
    assert [is_there(name, source) for name in there] == [True] * len(there)


INDEX = ROOT / "docs" / "README.md"
QUESTION_PAGES = sorted(
    [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/dev/*.md"), *ROOT.glob("skills/**/*.md")]
)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
BLOCK = re.compile(r"^```(sh|text|)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PLACEHOLDERS = ("COMMAND", "help", "NOUN")

# A question, and words of the answer: in the first paragraph behind the link, with the commands below it.
ANSWERS = {
    "A test fails: is it mine?": "swarm-mcp try",
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
    "When do I need a lock?": "must stay still for longer than one edit",
    "Does it work with my client?": "swarm-mcp install",
    "VS Code and desktop apps?": "swarm-mcp status",
    "What do I see in my own editor?": "A language server",
    "Does it work with worktrees?": "Each work tree is a checkout",
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
        verb, given = verbs_words_of(name).get(given[0], ""), given[1:]
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


@pytest.mark.parametrize("page", QUESTION_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_that_a_page_names_exist(page: Path):
    faults = {command: wrong(command, whole) for command, whole in commands_in(page)}
    assert {command: fault for command, fault in faults.items() if fault} == {}


def test_a_wrong_command_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nswarm-mcp lock f --nonsense\nswarm-mcp claim X\nswarm-mcp lock f   # why\n```\n`swarm-mcp frob x`\n"
    )
    assert [bool(wrong(*each)) for each in commands_in(page)] == [True, True, False, True]
