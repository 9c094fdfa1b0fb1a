"""Lost updates: two, then four agents in the real clients make 200 edits of ten files, without any lock.

The agents are scripted (`e2e.busy_agents` defines the mixture of their edits, and lost edits), the clients real. Each
crowd works once without the plugin, and once at each level of `SWARM_AUTO`, with the same plans; their calls interleave
at random, so that the figures of two runs differ.

lost: edits that were reported as made, and that are gone without their author's doing; `told`: those of them that were
removed by a session after a denial of that file. denied: calls that the plugin denied; refused: by the client itself.
wasted: answers of the models without effect (denied, refused, or reading again); `followed`: denied sweeps among them,
each with a `swarm-mcp undo` in the denial that the agent typed next, and that had the sweep's effect on its own lines
(a `checkout .` before a second pop counts only if that pop then works). So wasted is as in tables without that
column, and the answers that came to nothing are wasted less followed. Goals: nothing lost at `turn`; at `keep` nothing
but by a session that had been told, and at most 15 answers of two agents, 30 of four, that came to nothing; no denial
at `off` and `notice`. Without both clients in
SWARM_E2E_CLIENTS (see ``make e2e``), nothing is measured.

``--part auto --crowds 4,4 --levels keep`` measures four agents twice, at that level alone.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from e2e.busy_agents import Outcome, work_together
from e2e.clients import CLIENTS
from e2e.ground import Ground
from e2e.marketplace import Kind, Marketplace

EDITS = 200
CROWDS = (2, 4)
MOST_IN_VAIN = {2: 15, 4: 30}  # answers at `keep` that came to nothing
LEVELS = ("off", "notice", "keep", "turn")
NO_PLUGIN = "no plugin"
PROGRAMS = ("claude", "codex")


class LostUpdates:
    """The measurements; `missed` are the goals that were not reached, in words."""

    def __init__(self, crowds: Sequence[int] = CROWDS, levels: Sequence[str] = (NO_PLUGIN, *LEVELS)) -> None:
        self.crowds, self.levels = crowds, levels
        self.missed: list[str] = []

    def measure(self) -> None:
        """Have every crowd work in every way, one after another."""
        folder = Path(os.environ.get("SWARM_E2E_CLIENTS") or "/nonexistent") / ".bin"
        if not all((folder / program).exists() for program in PROGRAMS):
            print("not measured: no claude and codex in the folder that SWARM_E2E_CLIENTS names")
            return
        for agents in self.crowds:
            print(
                f"{agents} agents, {EDITS} edits   made  undone    lost    told  denied refused  wasted followed  of answers  turns       s"
            )
            if NO_PLUGIN in self.levels:
                self._work(agents, "none", folder, [NO_PLUGIN])
            self._work(agents, "install", folder, [level for level in self.levels if level != NO_PLUGIN])
            print()

    def _work(self, agents: int, kind: Kind, folder: Path, ways: list[str]) -> None:
        ground = Ground("bench", with_swarm=kind != "none", clients=folder)
        marketplace = Marketplace(ground, kind)
        try:
            for name in CLIENTS:
                CLIENTS[name](ground).prepare()
                marketplace.install(name)
            for way in ways:
                ground.renew()
                ground.env["SWARM_AUTO"] = way
                self._show(agents, way, work_together(ground, agents, EDITS))
        finally:
            marketplace.close()
            ground.close()

    def _show(self, agents: int, way: str, came: Outcome) -> None:
        told = sum(loss.told for loss in came.losses)
        count = came.count
        print(
            f"{way:20} {came.edits:6} {came.undone:7} {len(came.losses):7} {told:7} {count['denied']:7} {count['refused']:7}"
            f" {count['wasted']:7} {count['followed']:8} {count['answers']:11} {count['turns']:6} {came.seconds:7.1f}",
            flush=True,
        )
        untold = len(came.losses) - told
        of = f"{agents} agents at {way}"
        if came.given_up:
            self.missed.append(f"{of}: {came.given_up} edits were never made")
        if way == "turn" and came.losses:
            self.missed.append(f"{of}: {len(came.losses)} edits were lost, limit 0")
        if way == "keep" and untold:
            self.missed.append(f"{of}: {untold} edits were lost to a session that had not been told, limit 0")
        in_vain = count["wasted"] - count["followed"]
        if way == "keep" and in_vain > MOST_IN_VAIN[agents]:
            self.missed.append(f"{of}: {in_vain} answers came to nothing, limit {MOST_IN_VAIN[agents]}")
        if way in ("off", "notice") and count["denied"]:
            self.missed.append(f"{of}: {count['denied']} calls were denied, limit 0")
