"""The test of a coming commit: `swarm-mcp commit --try COMMAND`."""

from __future__ import annotations

import os

from swarm_mcp.changes.commit.landing import Moved
from swarm_mcp.changes.tries.picture import Picture
from swarm_mcp.changes.tries.running import Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.errors import Refused

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_hook_core.repository import Tree


def tester(tree: Tree, folder: str, text: str, is_caught: bool) -> Callable[[str, str], None]:
    """Return the `test` for ``Commit.make``: it runs a shell command in `folder`, on the content of the commit.

    It raises Refused if the command fails, and Moved if the command may have seen files that changed meanwhile.
    """
    command = Command(["/bin/sh", "-c", text], os.path.realpath(folder), os.environ)

    def test(head: str, made: str) -> None:
        picture = Picture(tree.top)
        if picture.head != head:
            raise Moved
        with Run(tree, picture, picture.of_commit(made), command, is_caught) as run:
            run.begin()
            result = run.end()
        if result.changed:
            raise Moved
        if result.code:
            words = f"nothing was committed: on the commit's files the command ended with exit code {result.code}"
            raise Refused(words, exit=result.code, output=result.output.decode(errors="replace"))

    return test
