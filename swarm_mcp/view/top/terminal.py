"""The terminal's fitness for a full screen, and for colours."""

from __future__ import annotations

import os
import sys


def obstacle() -> str:
    """Return the obstacle to a full screen here, in a few words; empty without one."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output"), (sys.__stderr__, "error")):
        if stream is None or not stream.isatty():
            return f"standard {name} is no terminal"
    term = os.environ.get("TERM", "")
    if not term or term == "dumb" or _capability("cup") is False:
        return f"the terminal (TERM={term}) cannot place its cursor"
    return ""


def has_colours() -> bool:
    """Return True if colours are wanted and available."""
    return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0" and _capability("setaf") is not False


def _capability(name: str) -> bool | None:
    """Return a capability of this kind of terminal from terminfo; None if unknown."""
    try:
        import curses

        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else -1)
        return curses.tigetstr(name) is not None
    except Exception:  # no such module on this system, or no such terminal in its tables
        return None
