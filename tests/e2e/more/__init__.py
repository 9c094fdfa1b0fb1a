"""The clients beside Claude Code and Codex: a module each, and their common part for tests.

A missing client is skipped, by name. `make e2e` fetches them.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from swarm_mcp import runtimes

from ..client import Call, Client
from ..ground import Ground, Lacking, client_folder

# In the order of the runtimes. A class here has the name of the runtime's.
NAMES = tuple(name for name in runtimes.NAMES if Path(__file__).with_name(f"{name}.py").exists())
NEWER_NODE = ("qwen", "kimi", "letta", "auggie")  # need Node.js 22
PEERS = ("claude", "codex")  # at hand beside each of them


class OtherClient(Client):
    """One of these clients, on a ground with itself, Claude Code and Codex."""

    executable: ClassVar[str]
    # A person's own files in the home that may get an entry of ours: they must come back unchanged.
    settings: ClassVar[tuple[str, ...]] = ()
    # Texts about the two skills in each first request to its model.
    skills: ClassVar[tuple[str, ...]] = (
        "How to work beside other coding sessions", "Show the state of the swarm of coding sessions",
    )  # fmt: skip
    announced: ClassVar[bool] = (
        True  # it tells of a session's start; else the first check registers it, if there is time
    )
    # Unused for these clients: there are no tests of their terminal sessions.
    ready = compacted = leave = ""

    def interactive_command(self) -> list[str]:
        return [self.executable]

    def wired_in(self) -> list[Path]:
        """The person's files with the commands of the hooks themselves."""
        return []

    def patch(self, body: str) -> list[Call]:
        """The calls that apply a patch with `body` between the markers, where its models have a tool for it."""
        raise NotImplementedError

    def typed(self, words: str) -> list[str]:
        """The command that starts a session with /swarm and these words. Raises Lacking where prompts are no commands."""
        raise Lacking(f"{self.name} takes a command that is given with its start for a prompt")

    def add_server(self, name: str, command: str, arguments: list[str]) -> None:
        """Have the client start an MCP server of a person's own, for the tests that follow."""
        self.add_entry("mcpServers", name, {"command": command, "args": arguments})

    def add_entry(self, table: str, name: str, entry: dict[str, Any]) -> None:
        """Put `entry` into a table of the first of the `settings`, JSON that a comment may stand before."""
        file = self.ground.home / self.settings[0]
        before, brace, rest = file.read_text().partition("{")
        tree = json.loads(brace + rest)
        tree.setdefault(table, {})[name] = entry
        file.write_text(f"{before}{json.dumps(tree, indent=2)}\n")

    def swarm_tools(self, *calls: tuple[str, dict[str, Any]]) -> list[Call]:
        return [call for tool, given in calls for call in self.server_tool("swarm", tool, given)]

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """The calls of a tool of that server."""
        raise NotImplementedError


def other_client(name: str, ground: Ground) -> OtherClient:
    """The client called `name`, on a ground that `ground_for` has made."""
    found: OtherClient = getattr(import_module(f"{__name__}.{name}"), type(runtimes.runtime(name)).__name__)(ground)
    return found


@contextmanager
def prepared(name: str) -> Iterator[OtherClient]:
    """The client called `name`, ready on a ground of its own. Skips the test where it is not on this machine."""
    import pytest  # the demo and the benchmarks have none

    try:
        ground = ground_for(name)
    except Lacking as lacking:
        pytest.skip(str(lacking))
    try:
        client = other_client(name, ground)
        client.prepare()
        yield client
    finally:
        ground.close()


def ground_for(*names: str) -> Ground:
    """A ground with these clients and the PEERS on PATH. Raises Lacking."""
    programs = {name: program(name) for name in names}
    ground = Ground("-".join(("with", *names)).replace("-", "_"), clients=client_folder())
    folder = ground.root / "clients"
    folder.mkdir()
    for name, path in programs.items():
        (folder / path.name).symlink_to(path)
        if name == "omp":
            (folder / "bun").symlink_to(path.with_name("bun"))
        if name in NEWER_NODE:  # they need a newer one than the others
            (folder / "node").symlink_to(newer_node())
    for peer in PEERS:
        (folder / peer).symlink_to(client_folder() / peer)
    ground.path[1] = str(folder)
    ground.env["PATH"] = ":".join(ground.path)
    (ground.home / ".profile").write_text(f'export PATH="{ground.env["PATH"]}:$PATH"\n')
    return ground


def program(name: str) -> Path:
    """The executable of the client called `name`. Raises Lacking."""
    if name == "hermes":
        path = Path(os.environ.get("SWARM_E2E_HERMES") or "/nonexistent") / "bin" / "hermes"
    else:
        path = Path(os.environ.get("SWARM_E2E_MORE") or "/nonexistent") / ".bin" / name
    if not path.exists() or (name == "omp" and not path.with_name("bun").exists()):
        raise Lacking(f"{name} is not on this machine: `make e2e` says why it could not be fetched")
    if name in NEWER_NODE:
        newer_node()
    return path.absolute()


def newer_node() -> Path:
    """Node.js 22 or later. Raises Lacking."""
    path = Path(os.environ.get("SWARM_E2E_NODE") or "/nonexistent") / "node"
    if not path.exists():
        raise Lacking("Node.js 22, which is not on this machine, is needed")
    return path.absolute()
