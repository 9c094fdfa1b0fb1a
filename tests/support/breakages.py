"""Small programs with uncommitted lines of two to four owners, and one cause of a failure.

The cause is one owner's lines, or those of two together. In half of the programs one owner's lines use a function that
another one's lines define.
"""

import random
import traceback

from swarm_mcp.changes.tries.trial import Failure, failure

CHECKS = "assert values.get('x') is None, 'x is wrong'\nassert not ({'p', 'q'} <= set(values)), 'p beside q'\n"


class Breakage:
    """A program: `owners`, the `culprits` among them, and the outcome with the lines of some of them."""

    def __init__(self, seed: int):
        draw = random.Random(seed)
        self.owners = [f"owner{number}" for number in range(draw.randint(2, 4))]
        self.lines = {owner: [f"{owner} = {seed}", f"assert {owner} == {seed}"] for owner in self.owners}
        self.culprits = draw.sample(self.owners, 2 if seed % 5 == 0 else 1)
        for name, owner in zip("pq" if len(self.culprits) == 2 else "x", self.culprits):
            self.lines[owner].append(f"values[{name!r}] = 1")
        if seed % 2:
            user, maker = draw.sample(self.owners, 2)
            self.lines[maker].insert(0, f"def made_by_{maker}(): return 1")
            self.lines[user].insert(0, f"late.append(lambda: made_by_{maker}())")

    def run(self, some: "frozenset[str]") -> Failure:
        """Return the outcome with the lines of these owners alone."""
        own = [line for owner in self.owners if owner in some for line in self.lines[owner]]
        text = "\n".join(["values, late = {}, []", *own, "for one in late: one()", CHECKS])
        try:
            exec(compile(text, "program", "exec"), {})
        except Exception as error:
            return failure(1, "".join(traceback.format_exception(error)).encode())
        return failure(0, b"all is well")
