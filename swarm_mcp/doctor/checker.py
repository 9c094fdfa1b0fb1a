"""The check of the checkers: the relay of the hooks here, the checkers that answer, their speed, and hooks alone."""

from __future__ import annotations

import os
import time
from collections import Counter

from swarm_hook_core import DISTRIBUTION
from swarm_mcp import installation
from swarm_mcp.checker import checkers_dir, is_living
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes.base import Finding

NAME = "checker"
DAY_SECONDS = 86400
WORDS = {
    "none": "their client had no checker", "busy": "the checker was busy or starting",
    "not taken": "the checker stopped", "not answered": "the checker stopped",
}  # fmt: skip


def findings(_asked: Asked) -> list[Finding]:
    """Return the findings about the relay, and about the checkers of the clients that run now."""
    found = [_relay()]
    names = _names()
    living = [name for name in names if is_living(name)]
    alone = _alone()
    details = {"clients": living, "alone": dict(alone)}
    if not names and not alone:
        text = "no client is running; its first session starts a checker"
        return [*found, Finding(NAME, "info", text, details=details)]
    text = f"{len(living)} client{'s' * (len(living) != 1)} with a checker now"
    count, spent_ns = [sum(numbers) for numbers in zip(*(_answered(name) for name in living), (0, 0))]
    details["answered"] = count
    if count:
        text += f". They answered {count} hooks in {spent_ns / count / 1e6:.1f} ms each"
    if alone:
        whys = ", ".join(f"{count} because {WORDS.get(why, why)}" for why, count in alone.most_common())
        text += f"; hooks that ran as processes of their own today: {whys}"
    return [*found, Finding(NAME, "ok", text, details=details)]


def _relay() -> Finding:
    program = installation.relay()
    if program:
        return Finding("relay", "ok", "hooks are handed to a checker by a program in C", details={"program": program})
    again = f"install it again: pipx install --force {DISTRIBUTION}"
    if os.path.lexists(installation.RELAY):
        return Finding("relay", "warn", f"{installation.RELAY} cannot be run: hooks use the relay in Python", again)
    try:
        with open(installation.NOT_COMPILED, encoding="utf-8") as file:
            why = file.read().strip()
    except OSError:  # a wheel for all platforms
        return Finding("relay", "info", "hooks use the relay in Python: this package was built without the one in C")
    text = f"hooks use the relay in Python: when this was installed, {why}"
    return Finding("relay", "info", text, f"mend that, and {again}")


def _names() -> list[str]:
    try:
        return [name for name in os.listdir(checkers_dir()) if name[:1].isdigit() and "." not in name]
    except OSError:  # no server has started yet
        return []


def _answered(name: str) -> tuple[int, int]:
    """Return the number of a checker's answers since it started, and the nanoseconds for all."""
    try:
        with open(os.path.join(checkers_dir(), f"{name}.answered"), encoding="ascii", errors="replace") as file:
            count, spent_ns, _processor_ns = file.readline().split()
        return int(count), int(spent_ns)
    except (OSError, ValueError):  # it has not started yet
        return 0, 0


def _alone() -> Counter[str]:
    """Return the reasons why hooks ran as processes of their own within a day, and how often each."""
    found: Counter[str] = Counter()
    try:
        with open(os.path.join(checkers_dir(), "alone"), encoding="utf-8", errors="replace") as file:
            for line in file:
                at, _, why = line.strip().partition(" ")
                if at.isdigit() and int(at) > time.time() - DAY_SECONDS:
                    found[why] += 1
    except OSError:  # no server has started yet
        pass
    return found
