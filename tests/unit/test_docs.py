"""What the documents name is there: pages that they link to, files, and the tests that hold each guarantee."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import requirements_page
from documents.clients_table import with_tables

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMED = re.compile(r"`((?:swarm_hook_core|swarm_mcp|integrations|skills|tests|docs)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path):
    # Pages that say how to add something name what the reader is to make.
    made_up = () if not page.name.startswith("adding-") else ("parrot", "editor", "count", "swarm_mcp/runtimes/editor")
    names = [name for name in NAMED.findall(page.read_text()) if not any(word in name for word in made_up)]
    assert [name for name in names if not (ROOT / name.rstrip("./")).exists()] == []


def test_each_guarantee_names_tests_that_exist():
    text = "".join(
        file.read_text() for folder in ("unit", "support") for file in (ROOT / "tests" / folder).rglob("*.py")
    )
    named = set(re.findall(r"`(test_[a-z_]+)`", (ROOT / "SPEC.md").read_text()))
    assert len(named) > 20
    assert [name for name in sorted(named) if f"def {name}(" not in text] == []


def test_the_requirements_are_those_that_tests_are_marked_with():
    assert (ROOT / "docs/dev/requirements.md").read_text() == requirements_page.page(), "run: make requirements-page"


def test_a_requirement_without_a_test_is_shown_as_such(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requirements_page, "marked", lambda: {"A-01": [("unit/test_docs.py", "test_x")]})
    page = requirements_page.page()
    assert re.search(r"^\| A-01 \| .* \| tested \| .*`test_x` \|$", page, re.MULTILINE)
    assert re.search(r"^\| A-02 \| .* \| \*\*no test\*\* \|  \|$", page, re.MULTILINE)
    monkeypatch.setattr(requirements_page, "marked", lambda: {"Z-01": [("unit/test_docs.py", "test_x")]})
    with pytest.raises(ValueError, match="Z-01"):
        requirements_page.page()


def test_the_tables_of_clients_are_what_the_runtimes_declare():
    page = (ROOT / "docs/clients.md").read_text()
    assert page == with_tables(page), "run: make clients-table"
