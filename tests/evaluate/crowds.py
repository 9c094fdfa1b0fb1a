"""Work 1: two, then four scripted agents in the real clients make 200 edits of the same ten files.

`e2e.busy_agents` defines the mixture, and a lost edit. An agent obeys all that it is told; sweeps are a part of its day.
"""

import copy
from pathlib import Path
from typing import NamedTuple

from e2e.appserver import trust_hooks
from e2e.busy_agents import Outcome, work_together
from e2e.clients import CLIENTS
from e2e.ground import Ground
from e2e.marketplace import Marketplace

from .ways import Way, wire, with_programs

EDITS = 200
BETWEEN = "\n\n---\n\n"  # the headings of two agents: else git could merge no two edits of one file


class Crowd(NamedTuple):
    """The result of a crowd: edits lost, calls refused, answers in vain, conflicts left by merges, edits never made."""

    lost: int
    refused: int
    vain: int
    conflicts: int
    unmade: int
    seconds: float


def play(way: Way, programs: Path | None, agents: int, edits: int = EDITS) -> Crowd:
    """Have so many agents work in one way, in a private home."""
    ground = Ground("rivals", with_swarm=bool(way.level))
    marketplace = Marketplace(ground, "install" if way.level else "none")
    try:
        if programs:
            ground.env.update(with_programs(ground.env, programs))
            profile = ground.home / ".profile"
            profile.write_text(f'{profile.read_text()}export PATH="{programs}:$PATH"\n')
        for name in CLIENTS:
            CLIENTS[name](ground).prepare()
            marketplace.install(name)
        if way.level:
            ground.env["SWARM_PROTECT"] = way.level
        else:
            wire(way, ground.home, ground.checkout, ground.env)
            if (ground.home / ".codex" / "hooks.json").exists():
                trust_hooks(ground)
        trees = _Trees(ground) if way.apart else None
        came = work_together(
            ground, agents, edits, own=trees and trees.add, together=trees and trees.merge, between=BETWEEN
        )
        return _counted(came, trees.conflicts if trees else 0)
    finally:
        marketplace.close()
        ground.close()


def _counted(came: Outcome, conflicts: int) -> Crowd:
    count = came.count
    refused = count["denied"] + count["refused"]
    return Crowd(len(came.losses), refused, count["wasted"] - count["followed"], conflicts, came.given_up, came.seconds)


class _Trees:
    """The work trees of one repository, one for each agent. `conflicts`: places that the merges left to a person."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._trees, self.conflicts = ground, [], 0  # type: ignore[var-annotated]

    def add(self, number: int) -> Ground:
        """Return the ground as agent `number` has it: its checkout is a new work tree."""
        own = copy.copy(self._ground)
        own.checkout = self._ground.root / f"tree-{number}"
        self._ground.git(self._ground.checkout, "worktree", "add", "-q", "-b", f"agent-{number}", str(own.checkout))
        self._trees.append(own.checkout)
        return own

    def merge(self) -> None:
        """Commit the work of each tree, and merge it; both sides of a conflict stay in the file."""
        for tree in self._trees:
            self._ground.git(tree, "add", "-A")
            self._ground.git(tree, "commit", "-q", "--allow-empty", "-m", tree.name)
        for tree in self._trees:
            branch = tree.name.replace("tree", "agent")
            done = self._ground.run(
                ["git", "-c", "user.name=e2e", "-c", "user.email=e2e@localhost", "merge", "-q", branch]
            )
            if done.returncode:
                for file in filter(Path.is_file, self._ground.checkout.iterdir()):
                    self.conflicts += file.read_text().count("<<<<<<< ")
                self._ground.commit(self._ground.checkout)
