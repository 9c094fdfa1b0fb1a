"""The analysis of the corpus compared with the recorded changes of its commands."""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corpora import sandbox
from corpora.blocks import Block
from corpora.finding import met
from swarm_hook_core.shell import effects_of

PORT = 8765  # unused: the analysis asks no server


class Analysed(NamedTuple):
    """One command before it runs. File names are relative to the sandbox.

    real      files that it changed when it was run
    found     those of them that it certainly changes, as the analysis says
    beyond    other files of the sandbox that it certainly changes, as the analysis says; the run did not
    guesses   reasons for unnamed writes, in words
    runs      True if it runs the project's own code
    possible  files that it may change
    seconds   processor time of the analysis
    """

    block: Block
    real: set[str]
    found: set[str]
    beyond: set[str]
    guesses: list[str]
    runs: bool
    possible: set[str]
    seconds: float

    @property
    def missed(self) -> list[str]:
        """Files it changed that the analysis did not find."""
        return sorted(self.real - self.found)

    @property
    def is_open(self) -> bool:
        """True if the analysis says that it may do more than it names."""
        return bool(self.guesses or self.runs or self.possible)


def analyse(blocks: Iterable[Block], record: dict[str, dict]) -> Iterator[Analysed]:
    """Each of these commands in a sandbox as it was before the command ran."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        base = os.path.realpath(folder) + "/base"
        sandbox.make(base)
        roots: dict[str, str] = {}  # set-up -> sandbox: the analysis does not change it
        there: dict[str, list[str]] = {}  # sandbox -> its files
        for block in blocks:
            root = roots.get(block.setup)
            if root is None:
                root = roots[block.setup] = f"{base}-{len(roots)}" if block.setup else base
                if block.setup:
                    sandbox.copy(base, root)
                    sandbox.shell(block.at(root, PORT)[0], root, check=True)
                there[root] = sandbox.files(root)
            files = there[root] + (sandbox.folders(there[root]) if block.folder == "reads" else [])
            yield _one(block, root, files, set(record[block.key]["writes"]))


def _one(block: Block, root: str, files: list[str], real: set[str]) -> Analysed:
    started = time.process_time()
    effects = effects_of(block.at(root, PORT)[1], f"{root}/repo", sandbox.environment(root))
    seconds = time.process_time() - started
    certain, possible = met(effects, root, sorted(real.union(files)))
    guesses = [f"{guess.by}: {guess.why}" for guess in effects.guesses]
    beyond = {path for path in certain - real if os.path.relpath(os.path.realpath(f"{root}/{path}"), root) not in real}
    return Analysed(block, real, certain & real, beyond, guesses, effects.runs, possible, seconds)


def recall(analysed: Iterable[Analysed]) -> dict[str, tuple[int, int]]:
    """Kind -> (writes found, real writes); under ``""`` all kinds."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in analysed:
        for kind in ("", one.block.kind):
            counts[kind][0] += len(one.found)
            counts[kind][1] += len(one.real)
    return {kind: (found, real) for kind, (found, real) in sorted(counts.items())}


def summary(analysed: list[Analysed]) -> str:
    """Writes found by kind of command, the results for harmless commands, and processor time in milliseconds."""
    literal = [one for one in analysed if one.block.folder == "writes" and one.block.is_literal]
    harmless = [one for one in analysed if one.block.folder == "reads"]
    told = [f"{kind or 'all':15}{found:5} of {real:5} writes found" for kind, (found, real) in recall(literal).items()]
    denied, spoken = sum(bool(one.beyond) for one in harmless), sum(one.is_open and not one.runs for one in harmless)
    told.append(f"harmless commands: {len(harmless)}, denied {denied}, told something {spoken}")
    times = sorted(1000 * one.seconds for one in analysed)
    shares = ((0.5, "median"), (0.9, "p90"), (0.99, "p99"), (1.0, "worst"))
    spent = (f"{name} {times[min(len(times) - 1, int(len(times) * share))]:.2f}" for share, name in shares)
    told.append(f"processor time in ms: {', '.join(spent)}")
    return "\n".join(told)


def lines(analysed: list[Analysed]) -> str:
    """The figures, and the missed writes, by kind."""
    told = [f"{kind or 'all':15}{found:5} of {real:5} writes found" for kind, (found, real) in recall(analysed).items()]
    for one in analysed:
        if one.missed:
            said = "; ".join([*one.guesses, *["possible"] * bool(one.possible), *["runs"] * one.runs])
            told.append(f"missed: {one.block.key}: {' '.join(one.missed[:6])} ({len(one.missed)}) [{said}]")
    return "\n".join(told)
