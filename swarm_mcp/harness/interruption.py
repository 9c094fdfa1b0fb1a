"""Ending runs in order when their own process is about to end: by a signal, or because its work is done."""

from __future__ import annotations

import atexit
import contextlib
import signal
import weakref
from collections.abc import Iterator

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_live: weakref.WeakSet = weakref.WeakSet()


@contextlib.contextmanager
def ended_by_signals(*runs) -> Iterator[list[int]]:
    """Abort `runs` on SIGINT, SIGTERM and SIGHUP while the block runs, instead of ending this process.

    Gives a list of the signals that came. Only for the main thread.
    """
    came: list[int] = []

    def end(number: int, _frame: object) -> None:
        came.append(number)
        for run in runs:
            run.abort(f"ended by {signal.Signals(number).name}")

    # What is ignored stays ignored: `nohup` means it.
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended_at_exit(run) -> None:
    """Abort `run` and wait for it, should this process end first."""
    if not _live:
        atexit.register(_end_all)
    _live.add(run)


def _end_all() -> None:
    runs = list(_live)
    for run in runs:
        run.abort("its supervisor ended")
    for run in runs:
        run.wait(60)
