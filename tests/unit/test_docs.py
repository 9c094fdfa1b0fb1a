"""The documents: short enough to be read, links and names that exist, tests for each guarantee, generated parts up to date."""

import re
from pathlib import Path

import pytest
from documents import requirements_page
from documents.clients_table import with_tables

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
