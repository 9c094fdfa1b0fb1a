"""Checks of the kernel's hold on locked files during unreadable commands, for `doctor` and `install --kernel`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from swarm_hook_core import settings
from swarm_hook_core.environment import first_set
from swarm_hook_core.kernel import probe
from swarm_mcp.runtimes import NAMES, hook_config, user_settings
from swarm_mcp.runtimes.base import Finding, Runtime

NAME = "kernel"
SWITCH = "swarm-mcp install --kernel"


class Ability(NamedTuple):
    """The kernel's ability for this user: `how` it holds files, or `why` it cannot, and the `mend`."""

    how: str
    why: str = ""
    mend: str = ""

    def said(self) -> str:
        """Return it as part of a line."""
        if not self.why:
            return f"works {self.how}"
        return f"does not work here: {self.why}" + (f"; mend: {self.mend}" if self.mend else "")


def ability() -> Ability:
    """Try it anew (some 30 ms), and return the result."""
    why = probe.again()
    if why:
        return Ability("", why, probe.mend(why))
    if sys.platform == "darwin":
        return Ability(f"as far as can be told, unverified: {probe.UNVERIFIED}")
    return Ability("as root" if os.geteuid() == 0 else "in a user namespace")


def is_on() -> dict[str, bool]:
    """Return runtime -> True if it is switched on in this folder."""
    folder = user_settings.checkout_here()
    return {name: settings.kernel(hook_config(name).env_prefix, folder) for name in NAMES}


def overridden(wanted: bool) -> str:
    """Return the source of a setting that overrides the user's own, in a few words, or an empty text."""
    folder = user_settings.checkout_here()
    if settings.kernel("", folder) == wanted:
        return ""
    if first_set("SWARM_KERNEL"):
        return "SWARM_KERNEL"
    return user_settings.whose(settings.in_file(NAME, folder))


def finding(clients: Sequence[Runtime]) -> Finding:
    """Return the finding: is it on, does it work, and for commands of which of these `clients`?"""
    on = is_on()
    if not any(on.values()):
        text = "off: changes to locked files by a command that cannot be read are seen once it has ended"
        return Finding(NAME, "info", text, SWITCH, {"on": []})
    found = ability()
    details: dict[str, Any] = {"on": [name for name, is_it in on.items() if is_it], "why": found.why or None}
    if found.why:
        return Finding(NAME, "warn", f"on, and {found._replace(mend='').said()}", found.mend, details)
    held, others = whose([client for client in clients if on[client.name]])
    text = f"on, and {found.said()}{said_of(held, others)}"
    is_unverified = sys.platform == "darwin"
    details.update(held=held, not_held=others)
    return Finding(NAME, "info" if is_unverified else "ok", text, details=details)


def whose(clients: Sequence[Runtime]) -> tuple[list[str], list[str]]:
    """Return the clients with held commands, and the others, each with its release if that matters."""
    about = [_said_of(client) for client in clients]
    held, others = ([name for is_held, name in about if is_held is wanted] for wanted in (True, False))
    return held, others


def said_of(held: list[str], others: list[str]) -> str:
    """Return the result of `whose` as the end of a line."""
    text = ""
    if held:
        text = f"; held: commands of {', '.join(held)}"
    return text + (f"; not held: those of {', '.join(others)}" if others else "")


def _said_of(client: Runtime) -> tuple[bool, str]:
    """Return True if commands of this client are held, and its name with a remark."""
    config = hook_config(client.name)
    if not config.kernel_versions:
        return bool(config.kernel), client.title
    release, tested = client.release(), ", ".join(config.kernel_versions)
    if release in config.kernel_versions:
        return True, f"{client.title} {release}"
    return False, f"{client.title} {release or 'of an unknown release'} (tested with {tested})"
