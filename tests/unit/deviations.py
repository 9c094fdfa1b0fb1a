"""Where this coordinator differs on purpose from the one whose answers are recorded, call by call.

`where` is a glob over ``<number of the call> <who> <tool>`` or ``<number of the run> <arguments>``,
`what` one over the differences that `captures.differences` finds there. A difference that nothing here
explains fails the conformance tests, and so does a line here that explains none.
"""

from __future__ import annotations

from typing import NamedTuple


class Deviation(NamedTuple):
    """One difference that is meant to be."""

    where: str
    what: str
    because: str


MCP: tuple[Deviation, ...] = ()
CLI: tuple[Deviation, ...] = ()
TOOLS: tuple[Deviation, ...] = ()
