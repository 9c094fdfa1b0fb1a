"""The modules of the store call each other one way: the graph of their uses has no circle.

An edge is any way to another module: an import at the top, inside a function or for type checkers, an attribute of an
imported module (also inside a lambda), a name of a module in ``__import__``.
"""

import ast
from pathlib import Path

import pytest

import swarm_mcp.store

FOLDER = Path(swarm_mcp.store.__file__).parent
PACKAGE = "swarm_mcp.store"
ANNOTATIONS_ONLY = {"__init__"}  # the package itself, which names its front door


def edges_of(name: str, text: str, modules: set[str]) -> set[str]:
    """Return the modules of the store that the module `name` with this text uses."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            inner = (node.module or "").removeprefix(PACKAGE).lstrip(".")
            found |= {inner} if inner else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names if PACKAGE in alias.name}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{PACKAGE}."):
            found.add(node.value.removeprefix(f"{PACKAGE}."))  # a module that is loaded by its name
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            found.add(node.value.attr)  # ``store.locks.acquire``, ``self.locks.acquire``
    return (found & modules) - {name}


def graph_of(folder: Path) -> dict[str, set[str]]:
    """Return for each module of the store in `folder` the modules that it uses."""
    texts = {path.stem: path.read_text() for path in folder.glob("*.py") if path.stem not in ANNOTATIONS_ONLY}
    return {name: edges_of(name, text, set(texts)) for name, text in texts.items()}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return one circle of modules, beginning and ending with the same one; else an empty list."""
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for following in sorted(graph[path[-1]]):
            if following in path:
                return [*path[path.index(following) :], following]
            if following not in done:
                found = search([*path, following])
                if found:
                    return found
        done.add(path[-1])
        return []

    for name in sorted(graph):
        found = search([name]) if name not in done else []
        if found:
            return found
    return []


def test_the_store_has_no_circle() -> None:
    assert circle_in(graph_of(FOLDER)) == []


def test_every_module_of_the_store_is_in_the_graph() -> None:
    graph = graph_of(FOLDER)
    assert {"store", "reactions", "locks", "refusals", "messages"} <= set(graph)
    assert {"refusals", "leases", "messages"} <= graph["reactions"], "imports inside functions count"
    assert "session_table" in graph["store"], "the face counts"


PLANTED = {
    "an import at the top": "from swarm_mcp.store import reactions\n",
    "an import inside a function": "def f(tx):\n    from swarm_mcp.store import reactions\n    reactions.f(tx)\n",
    "an import for type checkers": "if TYPE_CHECKING:\n    from swarm_mcp.store.reactions import session_gone\n",
    "a lambda over a part": "def f(store):\n    return lambda: store.reactions.session_gone()\n",
    "an attribute of an object": "class Part:\n    def f(self):\n        self.reactions.session_gone()\n",
    "a module by its name": "def f():\n    return __import__('swarm_mcp.store.reactions')\n",
}


@pytest.mark.parametrize("way", PLANTED)
@pytest.mark.sampled
def test_a_planted_circle_is_found(way: str) -> None:
    graph = graph_of(FOLDER)
    text = (FOLDER / "messages.py").read_text() + "\n\n" + PLANTED[way]
    graph["messages"] |= edges_of("messages", text, set(graph))
    found = circle_in(graph)
    assert "reactions" in found and "messages" in found
