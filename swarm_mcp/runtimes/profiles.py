"""Settings of a person for an identity: spawner, harness, socket.

A profile is a file ``<identity>.env`` of ``KEY=VALUE`` lines in ``SWARM_MCP_PROFILE_DIR``, else
``$XDG_CONFIG_HOME/swarm-mcp``, else ``~/.config/swarm-mcp``. The environment comes before the profile, so that one
command can differ. Lines of another form are passed over: a profile must never stop a session.
"""

from __future__ import annotations

import os
import shlex

from swarm_hook_core.environment import first_set, is_word
from swarm_hook_core.labels import token
from swarm_mcp.errors import Refused
from swarm_mcp.runtimes import DEFAULT_HARNESS, harness_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LARGEST_PROFILE = 65536
DEFAULT_SPAWNER = "process"


class Settings:
    """The settings of one identity (its name without ``identity:``, empty for none)."""

    def __init__(self, identity: str = ""):
        self.identity = identity
        self._profile = profile(identity)

    def first(self, *names: str) -> str:
        """The first of these that is set, each looked up in the environment and then in the profile; else empty."""
        for name in names:
            value = first_set(name) or self._profile.get(name, "").strip()
            if value:
                return value
        return ""

    @property
    def spawner(self) -> str:
        """Return the spawner for calls that name none."""
        return self.first("SWARM_DISPATCH_SPAWNER", "SWARM_SPAWNER") or DEFAULT_SPAWNER

    def harness(self, label: str = "") -> str:
        """Return the harness for calls that name none: the setting's, else that of a session with `label`."""
        chosen = self.first("SWARM_DISPATCH_HARNESS", "SWARM_WORKER_HARNESS", "HARNESS_PROVIDER")
        return chosen or harness_of(token(label, "origin")) or DEFAULT_HARNESS

    def harness_command(self, name: str) -> list[str]:
        """The words that start harness `name`: ``SWARM_HARNESS_<NAME>``, else the name itself. Raises Refused."""
        if not is_word(name):
            raise Refused(f"{name[:40]!r} is not the name of a harness (letters, digits, _ . -)")
        variable = "SWARM_HARNESS_" + "".join(c if c.isalnum() else "_" for c in name.upper())
        try:
            return shlex.split(self.first(variable)) or [name]
        except ValueError as error:
            raise Refused(f"{variable} cannot be split into words: {error}") from None


def profile_folder() -> str:
    """The folder of profile files."""
    folder = first_set("SWARM_MCP_PROFILE_DIR")
    if folder:
        return os.path.expanduser(folder)
    base = first_set("XDG_CONFIG_HOME")
    if not base:
        home = first_set("HERMES_HOST_HOME", "SWARM_HOST_HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".config")
    return os.path.join(base, "swarm-mcp")


def profile(identity: str) -> dict[str, str]:
    """Return the variables of an identity's profile file. Empty if it cannot be read."""
    if not is_word(identity):  # also keeps the name from leading out of the folder
        return {}
    path = os.path.join(profile_folder(), f"{identity}.env")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        return {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST_PROFILE)
    except OSError:  # a profile must never stop a session
        return {}
    return parse(text, os.environ)


def parse(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a profile's text sets.

    ``KEY=VALUE``, an optional ``export`` before it, quotes around it, a ``# comment`` after it. Outside of single
    quotes, ``$X``, ``${X}`` and ``${X:-else}`` stand for values of earlier lines or of `environment`.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.strip().removeprefix("\ufeff")
        if words.startswith("export") and words[6:7].isspace():
            words = words[7:].lstrip()
        name, equals, value = words.partition("=")
        if equals and _is_name(name):
            shown = _value(value, lambda key: found.get(key, environment.get(key, "")))
            if shown is not None:
                found[name] = shown
    return found


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()


def _value(text: str, known: Callable[[str], str]) -> str | None:
    """Return the value behind the equals sign, or None if quotes are not closed."""
    text = text.strip()
    quote = text[:1]
    if quote in ("'", '"'):
        inner, closed, rest = text[1:].partition(quote)
        if not closed or (rest.strip() and not rest.lstrip().startswith("#")):
            return None
        if quote == "'":
            return inner
        return _expanded(inner, known)
    for comment in (" #", "\t#"):
        text = text.partition(comment)[0]
    if text.startswith("#"):
        return ""
    return _expanded(text.rstrip(), known)


def _expanded(text: str, known: Callable[[str], str]) -> str:
    out, rest = "", text
    while "$" in rest:
        before, _, rest = rest.partition("$")
        out += before
        if rest.startswith("{") and "}" in rest:
            inside, _, after = rest[1:].partition("}")
            name, otherwise, default = inside.partition(":-")
            if _is_name(name):
                out += known(name) or (default if otherwise else "")
                rest = after
                continue
        end = 0
        while end < len(rest) and rest[end].isascii() and (rest[end].isalnum() or rest[end] == "_"):
            end += 1
        if end and _is_name(rest[:end]):
            out, rest = out + known(rest[:end]), rest[end:]
        else:
            out += "$"
    return out + rest
