"""The pages for builders: the code they show runs, and the names they use are in the source."""

import functools
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from support.world import World

from swarm_mcp import contributes

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/dev/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SPEC.md"])
# Names of the parts that a reader of these pages makes; of clients' and git's own files and settings; of folders at run time.
MADE_BY_READERS = {"urgency", "jpegoptim", "editor", "EVENT", "parrot", "count_locks", "call."}
OF_CLIENTS = {"index.lock", "allow_managed_hooks_only", "settings.json", ".mcp.json", ".auth.json", "config.json"}
MADE_AT_WORK = (
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
    monkeypatch.setitem(contributes.VERBS, "count", "page_count")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_names_of_a_page_are_in_the_source(page: Path, source: dict[str, set[str]]):
    assert [name for name in names_in(page) if not is_there(name, source)] == []


def test_a_name_that_is_gone_is_found(source: dict[str, set[str]]):
    none = "no_such_" + "function"  # in two parts, since this file is searched too
    gone = ["store/nowhere.py", f"grants.{none}", none, "swarm_mcp/nowhere/"]
    assert [is_there(name, source) for name in gone] == [False] * len(gone)
    there = ["store/grants.py", "reactions.locks_granted", "carry_out", "swarm_mcp/store/"]
    assert [is_there(name, source) for name in there] == [True] * len(there)
