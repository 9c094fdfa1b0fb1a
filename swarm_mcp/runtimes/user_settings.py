"""A person's settings: those for hooks (``swarm_hook_core.settings`` reads them), and those of an identity.

Changes go into ``config.json`` in this user's configuration folder, whole or not at all, and leave everything else in
it as it was. Nothing is written into a checkout.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from time import localtime, strftime
from typing import Any

from swarm_hook_core import settings
from swarm_hook_core.environment import first_set, is_word
from swarm_hook_core.paths import git_root
from swarm_hook_core.settings import Setting
from swarm_hook_core.state import config_path, make_private, write_private
from swarm_hook_core.untrusted_text import token
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.runtimes import DEFAULT_HARNESS, MERGING, NAMES, harness_of, hook_config

CHECKOUTS = "checkouts"
OFF, NOTICE, KEEP, TURN = settings.WORDS["protect"]
MEANS = {
    OFF: "only locks count",
    NOTICE: "a session that edits a file with another session's uncommitted change is told about it",
    KEEP: "a call that would destroy another session's uncommitted change, or a person's, is denied",
    TURN: "the first write of a file locks it until its session's turn ends",
}


def checkout_here() -> str:
    """The folder that this command's settings are for: the real path of the git root, else of the folder itself."""
    return git_root(os.path.realpath(here()))


def in_force(name: str, folder: str) -> tuple[Setting, dict[str, Setting]]:
    """Return the setting ``protect`` or ``fail`` in `folder`, and the exceptions by runtime that variables make."""
    ask = getattr(settings, name)
    general = ask("", folder)
    own = {runtime: ask(hook_config(runtime).env_prefix, folder) for runtime in NAMES}
    return general, {runtime: found for runtime, found in own.items() if found.source != general.source}


def level_in_words(found: Setting) -> tuple[str, str]:
    """Return a level of protection with the end of its time, and its meaning."""
    if not found.until:
        return found.value, MEANS[found.value]
    meaning = MEANS[found.value]
    if found.value == OFF:
        meaning = "swarm checks nothing and says nothing here, locks included"
    return f"{found.value} until {strftime('%H:%M:%S', localtime(found.until))}", meaning


def lowered(folder: str) -> str:
    """Return a line about a protection below the default in `folder`; an empty text at the default or above."""
    found = settings.protect("", folder)
    if found.value in (KEEP, TURN):
        return ""
    return "protection is {}: {}".format(*level_in_words(found))


def merging(folder: str) -> tuple[list[str], list[str]]:
    """Return the clients in which outdated texts are merged in `folder`, and those that could, but are set not to."""
    found: tuple[list[str], list[str]] = [], []
    for name, prefix in MERGING.items():
        is_on = settings.merge(prefix, folder).value == "on"
        found[not is_on].append(name)
    return found


def merging_in_words(found: tuple[list[str], list[str]]) -> str:
    """Return the result of `merging` as one line."""
    on, off = found
    words = f"on in {', '.join(on)}" if on else ""
    return "; ".join(filter(None, [words, f"off in {', '.join(off)}" if off else ""]))


def whose(found: Setting) -> str:
    """Return the source of the setting, in a few words."""
    if found.source == "checkout":
        return f"set for {found.folder} in {config_path()}"
    return {"user": f"set in {config_path()}", "default": "by default"}.get(found.source, f"by {found.source}")


def described(found: Setting) -> dict[str, Any]:
    """The same for machines."""
    shown = {"value": found.value, "source": found.source, "folder": found.folder, "until": int(found.until)}
    return {name: value for name, value in shown.items() if value}


def unknown_words(name: str) -> list[str]:
    """Return the variables of the setting `name` with an unknown value, such as ``SWARM_PROTECT=on``."""
    prefixes = [hook_config(runtime).env_prefix for runtime in NAMES]
    variables = dict.fromkeys(one for prefix in prefixes for one in settings.variables(name, prefix))
    given = [(one, first_set(one)) for one in variables]
    return [f"{one}={word}" for one, word in given if word and word.lower() not in settings.WORDS[name]]


def change(name: str, value: str | bool | dict[str, Any], checkout: str = "") -> bool:
    """Set `name` to `value` for this checkout, or for the user if `checkout` is empty; an empty or false value removes
    it.

    Returns True if that changes it. Raises SwarmError if the file cannot be read or written.
    """
    # A link in its place is a person's own arrangement, and stays one.
    path = os.path.realpath(config_path())
    try:
        make_private(os.path.dirname(path))
        with _AloneIn(os.path.dirname(path)):
            whole = _read(path)
            if not _put(whole, name, value, checkout):
                return False
            write_private(path, _text(whole))
    except OSError as error:
        raise SwarmError(f"{path} cannot be written: {error.strerror or error}") from None
    return True


def change_for_a_while(name: str, value: str, until: int, checkout: str) -> bool:
    """Set `name` to `value` for this checkout until `until` (Unix seconds); otherwise as `change`."""
    return change(name + settings.FOR_A_WHILE, {"value": value, "until": until}, checkout)


def _put(whole: dict[str, Any], name: str, value: str | bool | dict[str, Any], checkout: str) -> bool:
    """Change `whole`, the file's object. Returns True if it differs now."""
    given = whole
    if checkout:
        given = whole.get(CHECKOUTS, {}).get(checkout, {})
    others = [old for old, new in settings.OLD_NAMES.items() if new == name] + [name + settings.FOR_A_WHILE]
    stale = [one for one in others if one in given]
    if given.get(name) == (value or None) and not stale:
        return False
    for one in stale:
        del given[one]
    if value:
        given[name] = value
    else:
        given.pop(name, None)
    if checkout and given:
        whole.setdefault(CHECKOUTS, {})[checkout] = given
    elif checkout:
        del whole[CHECKOUTS][checkout]
        if not whole[CHECKOUTS]:
            del whole[CHECKOUTS]
    return True


def _read(path: str) -> dict[str, Any]:
    """Return the object in the file, empty if the file is missing. Raises SwarmError for any other content."""
    if not os.path.lexists(path):
        return {}
    import json  # the readers of settings do without it

    try:
        if not os.path.isfile(path):  # a pipe of that name would keep us waiting
            raise ValueError("it is no file")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            whole: Any = json.load(file)
        if not isinstance(whole, dict):
            raise ValueError("it is no object")
        checkouts = whole.get(CHECKOUTS, {})
        if not isinstance(checkouts, dict) or not all(isinstance(one, dict) for one in checkouts.values()):
            raise ValueError(f"{CHECKOUTS} is no object of objects")
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise SwarmError(f"{path} cannot be read, and was left as it is: {why}") from None
    return dict(whole)


def _text(whole: dict[str, Any]) -> str:
    import json

    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        text = json.dumps(whole, indent=2) + "\n"  # JSON can spell half a surrogate pair, which no file can hold
    return text


class _AloneIn:
    """Keep other processes from changing the settings of a folder meanwhile."""

    def __init__(self, folder: str) -> None:
        self._handle = os.open(folder, os.O_RDONLY)

    def __enter__(self) -> None:
        import fcntl

        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def __exit__(self, *_exception: object) -> None:
        os.close(self._handle)


# Settings of a person for an identity: spawner, harness, socket.
#
# A profile is a file ``<identity>.env`` of ``KEY=VALUE`` lines in ``SWARM_MCP_PROFILE_DIR``, else
# ``$XDG_CONFIG_HOME/swarm-mcp``, else ``~/.config/swarm-mcp``. The environment comes before the profile, so that one
# command can differ. Lines of another form are passed over: a profile must never stop a session.

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
