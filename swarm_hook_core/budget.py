"""How much processor time the check of one call may take, all its parts together.

It is the time of this thread, so that a busy machine changes no answer. What there is no time for is a guess: the call
goes ahead, and the files that it may write are compared afterwards.
"""

import time

SECONDS = 0.010  # from the first look at the call to the last lock
LEAST_SECONDS = 0.003  # that each part has, whatever those before it have taken
SECONDS_TO_LOAD = 0.010  # beside those, for importing what knows the programs


class Budget:
    """The time of one check, which begins now; it is over when the thread has taken processor time until `end`.

    What keeps no call waiting may have more `seconds`.
    """

    __slots__ = ("end", "to_load", "imported")

    def __init__(self, seconds: float = 0.0):
        self.end = time.thread_time() + (seconds or SECONDS)
        self.to_load = SECONDS_TO_LOAD
        self.imported = 0.0  # seconds that went into nothing but importing

    def part(self, seconds: "float | None" = None) -> float:
        """When a part of the check that begins now is over: after `seconds`, sooner where there is no more time."""
        now = time.thread_time()
        until = self.end if seconds is None else min(self.end, now + seconds)
        return max(until, now + LEAST_SECONDS)

    def forgive_import(self, seconds: float) -> float:
        """`seconds`, which went into nothing but importing: they are not held against the check, however many.

        They are many without bytecode, and on a slow machine. What imports something in passing has more time then.
        """
        self.imported += seconds
        self.to_load += seconds
        self.end += seconds
        return seconds

    def forgive(self, seconds: float) -> float:
        """How much of `seconds`, in which something was imported too, is not held against the check: up to a limit."""
        seconds = min(seconds, self.to_load)
        self.to_load -= seconds
        self.end += seconds
        return seconds
