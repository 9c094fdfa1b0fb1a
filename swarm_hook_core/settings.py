"""A person's settings for hooks: ``config.json`` in this user's configuration folder, and variables that override it.

    {"protect": "keep", "fail": "open", "uvx": "on", "fence": "on", "strict": true, "kernel": true,
     "checkouts": {"/srv/project": {"protect": "turn", "fail": "closed"}},
     "writers": [{"tool": "mcp__wiki__*", "paths": ["target", "pages[].path"], "unless": {"dryRun": true}},
                 {"tool": "mcp__box__run", "command": "line", "folder": "cwd"}]}

``protect_for`` beside ``protect`` holds for a while: ``{"value": "off", "until": Unix seconds}``. ``auto`` is the old
name of ``protect``, here and in variables.

Mistakes in the file, and unknown words in a variable, are left out, and recorded once as a fault.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.environment import ON, first_set
from swarm_hook_core.state import config_path, read_private, record, state_dir, write_private

LARGEST = 256 * 1024
MOST_WRITERS = 500
OPEN, CLOSED = "open", "closed"
# The settings that are one of some words. `traces` has the same levels, and asks here.
WORDS = {
    "protect": ("off", "notice", "keep", "turn"),
    "fail": (OPEN, CLOSED),
    "uvx": ("on", "off"),
    "fence": ("on", "off"),
    "merge": ("on", "off"),
    "authorship": ("off", "on"),
}
DEFAULTS = {
    "protect": "keep", "fail": OPEN, "uvx": "on", "fence": "on", "merge": "on", "strict": False, "kernel": False,
    "authorship": "off",
}  # fmt: skip
OLD_NAMES = {"auto": "protect"}
FOR_A_WHILE = "_for"  # at the end of a name: with a limited time
SWITCHES = ("strict", "kernel")  # those that are on or off


class Config:
    """The settings in the file at `path`, as far as they can be read.

    there      True if the file exists
    faults     a line for each mistake in it
    user       the user's own choices among DEFAULTS; `checkouts` the same for a folder, by its real path
    writers    see Writer
    """

    __slots__ = ("path", "there", "user", "checkouts", "writers", "faults")

    def __init__(self, path: str):
        self.path = path
        self.there = False
        self.user: dict[str, Any] = {}
        self.checkouts: dict[str, Any] = {}
        self.writers: list[Writer] = []
        self.faults: list[str] = []


class Setting:
    """The value in force somewhere, and its source.

    source  the name of the variable; ``checkout``, ``user`` (both in the file) or ``default``
    folder  the folder that the file names, for a ``checkout``
    until   Unix seconds when another value is in force again; 0 for a value without an end
    """

    __slots__ = ("value", "source", "folder", "until")

    def __init__(self, value: Any, source: Any, folder: str = "", until: int = 0):
        self.until = until
        self.value = value
        self.source = source
        self.folder = folder


class Writer:
    """A tool that writes files: whole tool names that match `tool` (``*`` and ``?``).

    paths    places of the paths in its input: ``target``, ``pages[].path``; empty: it writes nothing
    command  the argument that holds shell text; may be empty; `folder`: the argument with the folder it runs in
    unless   argument -> value: a call with one of these writes nothing
    """

    __slots__ = ("tool", "paths", "command", "folder", "unless")

    def __init__(self, tool: Any, paths: Any = (), command: str = "", folder: str = "", unless: Any = None):
        self.tool = tool
        self.paths = paths
        self.command = command
        self.folder = folder
        self.unless = unless or {}


def protect(prefix: str, folder: str) -> Setting:
    """Return the level of protection for uncommitted changes in `folder` (``traces``)."""
    return _word("protect", prefix, folder)


def is_silent(folder: str) -> bool:
    """Return True while `swarm-mcp protect off --for` holds in `folder`: swarm checks nothing there, and says nothing.

    Never raises.
    """
    found = in_file("protect", folder)
    return found.value == "off" and found.until > 0


def fail(prefix: str, folder: str) -> Setting:
    """Return the fate of an unchecked write in `folder`: it goes ahead (OPEN) or is denied (CLOSED)."""
    return _word("fail", prefix, folder)


def uvx(prefix: str, folder: str) -> Setting:
    """Return the setting by which uv may fetch the coordinator for a plugin without one (``coordinator``)."""
    return _word("uvx", prefix, folder)


def fence(prefix: str, folder: str) -> Setting:
    """Return the setting by which a session in the linked work tree `folder` stays in it (``fence``)."""
    return _word("fence", prefix, folder)


def merge(prefix: str, folder: str) -> Setting:
    """Return the setting by which a stale whole write goes ahead merged (``traces.whole_writes``)."""
    return _word("merge", prefix, folder)


def authorship(_prefix: str, folder: str) -> Setting:
    """Return the setting by which commits get notes on the authors of their lines. No variable counts."""
    return in_file("authorship", folder)


def strict(prefix: str, folder: str = "") -> bool:
    """Return True if possible writes are denied too: ``SWARM_<PFX>_STRICT``, ``SWARM_STRICT``, then the file."""
    return _switch("strict", prefix, folder)


def kernel(prefix: str, folder: str = "") -> bool:
    """Return True if the kernel is to hold locked files while an unreadable command runs (``kernel``): likewise."""
    return _switch("kernel", prefix, folder)


def _switch(name: str, prefix: str, folder: str) -> bool:
    value = first_set(*variables(name, prefix))
    if value:
        return value.lower() in ON
    return bool(in_file(name, folder).value)


def _word(name: str, prefix: str, folder: str) -> Setting:
    for variable in variables(name, prefix):
        given = first_set(variable)
        if given.lower() in WORDS[name]:
            return Setting(given.lower(), variable)
        if given:
            _record_once(
                f"{variable} is {given[:60]!r}, not one of {', '.join(WORDS[name])}", given, f"{variable}-fault"
            )
    return in_file(name, folder)


def variables(name: str, prefix: str) -> list[str]:
    """Return the variables for setting `name`; the first one that is set wins, also over the file."""
    names = [name, *(old for old, new in OLD_NAMES.items() if new == name)]
    own = [f"SWARM_{prefix}_{one.upper()}" for one in names] if prefix else []
    return own + [f"SWARM_{one.upper()}" for one in names]


def in_file(name: str, folder: str) -> Setting:
    """Return the file's value of setting `name` in `folder`, without the variables."""
    config = current()
    if config.checkouts and folder:
        checkout = _checkout_over(config.checkouts, folder)
    else:
        checkout = ""
    for_a_while = config.checkouts[checkout].get(name + FOR_A_WHILE) if checkout else None
    if for_a_while is not None and time.time() < for_a_while["until"]:
        return Setting(for_a_while["value"], "checkout", checkout, for_a_while["until"])
    if checkout and name in config.checkouts[checkout]:
        return Setting(config.checkouts[checkout][name], "checkout", checkout)
    if name in config.user:
        return Setting(config.user[name], "user")
    return Setting(DEFAULTS[name], "default")


def without(name: str, folder: str) -> str:
    """Return the file's value of setting `name` without its entry for `folder`, or with no folder for the user."""
    return str(current().user.get(name, DEFAULTS[name]) if folder else DEFAULTS[name])


def _checkout_over(checkouts: dict[str, Any], folder: str) -> str:
    """Return the nearest of `checkouts` at or above `folder`, up to its git root; may be empty."""
    try:
        probe = os.path.realpath(folder)
    except ValueError:
        return ""  # no folder of that name can be
    while probe not in checkouts:
        parent = os.path.dirname(probe)
        if parent == probe or os.path.lexists(os.path.join(probe, ".git")):
            return ""
        probe = parent
    return probe


def read(path: str) -> Config:
    """The Config in the file at `path`. Never raises."""
    found = Config(path)
    try:
        if not os.path.lexists(path):
            return found
        found.there = True
        data = read_private(path, LARGEST + 1, follows=True)
        if len(data) > LARGEST:
            raise ValueError(f"longer than {LARGEST} bytes")
        text = data.decode("utf-8", "surrogateescape")
        from swarm_hook_core.json_text import loads_object

        _take(found, loads_object(text))
    except (OSError, ValueError, RecursionError) as error:
        found.faults.append(" ".join(str(error).split()) or type(error).__name__)
    return found


_last: tuple[Any, ...] = (None, None)


def current() -> Config:
    """The Config in force. The same object until the file changes; a file with faults is recorded once."""
    global _last
    path = config_path()
    try:
        state = os.stat(path)
        mark: tuple[Any, ...] = (path, state.st_mtime_ns, state.st_size, state.st_ino)
    except (OSError, ValueError):
        mark = (path,)
    if _last[0] != mark:
        _last = (mark, read(path))
        faults = _last[1].faults
        if faults:
            _record_once(f"{path}: {'; '.join(faults)}", " ".join(map(str, mark)), "config-fault")
    config: Config = _last[1]
    return config


def _take(found: Config, settings: dict[str, Any]) -> None:
    found.user = _choices(settings, "", ("checkouts", "writers"), found.faults)
    checkouts = settings.get("checkouts", {})
    if not isinstance(checkouts, dict):
        found.faults.append("checkouts is no object")
        checkouts = {}
    for folder, given in checkouts.items():
        where = f"checkout {folder[:200]!r}: "
        if not os.path.isabs(folder):
            found.faults.append(where + "not the whole path of a folder")
        elif not isinstance(given, dict):
            found.faults.append(where + "not an object")
        else:
            found.checkouts[os.path.normpath(folder)] = _choices(given, where, (), found.faults)
    entries = settings.get("writers", [])
    if not isinstance(entries, list):
        found.faults.append("writers is no list")
        return
    if len(entries) > MOST_WRITERS:
        found.faults.append(f"more than {MOST_WRITERS} writers")
    for number, entry in enumerate(entries[:MOST_WRITERS], 1):
        try:
            found.writers.append(_writer(entry))
        except ValueError as error:
            found.faults.append(f"writer {number}: {error}")


def _choices(given: dict[str, Any], where: str, others: tuple[str, ...], faults: list[str]) -> dict[str, Any]:
    """Return the valid choices among DEFAULTS in `given`. `others`: further keys that are allowed."""
    taken: dict[str, Any] = {}
    for name, value in given.items():
        if name in OLD_NAMES:
            if OLD_NAMES[name] in given:
                continue  # the new name counts
            name = OLD_NAMES[name]
        if name.removesuffix(FOR_A_WHILE) in WORDS and name.endswith(FOR_A_WHILE):
            if _is_for_a_while(name.removesuffix(FOR_A_WHILE), value):
                taken[name] = value
            else:
                faults.append(f"{where}{name} has no known value and time")
        elif name in WORDS:
            if value in WORDS[name]:
                taken[name] = value
            else:
                faults.append(f"{where}{name} is none of {', '.join(WORDS[name])}")
        elif name in SWITCHES:
            if isinstance(value, bool):
                taken[name] = value
            else:
                faults.append(f"{where}{name} is neither true nor false")
        elif name not in others:
            faults.append(f"{where}{name[:60]!r} is no setting ({', '.join((*DEFAULTS, *others))})")
    return taken


def _is_for_a_while(name: str, given: object) -> bool:
    """Return True if `given` is ``{"value": a word of setting `name`, "until": a time}``."""
    if not isinstance(given, dict):
        return False
    return given.get("value") in WORDS[name] and type(given.get("until")) in (int, float)


def _writer(entry: Any) -> Writer:
    if not isinstance(entry, dict):
        raise ValueError("not an object")
    unknown = [name for name in entry if name not in ("tool", "paths", "command", "folder", "unless")]
    if unknown:
        raise ValueError(f"{unknown[0][:60]!r} is not known (tool, paths, command, folder, unless)")
    texts = {name: entry.get(name, "") for name in ("tool", "command", "folder")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} is no text")
    if not texts["tool"]:
        raise ValueError("tool is missing: the name of a tool, such as mcp__wiki__*")
    paths, unless = entry.get("paths"), entry.get("unless", {})
    if not isinstance(paths or [], list) or not all(isinstance(one, str) and one for one in paths or ()):
        raise ValueError("paths is no list of argument names")
    if paths is None and not texts["command"]:
        raise ValueError("neither paths nor command: where does its input say what is written?")
    if not isinstance(unless, dict):
        raise ValueError("unless is no object")
    return Writer(texts["tool"], paths or [], texts["command"], texts["folder"], unless)


def _record_once(fault: str, state: str, name: str) -> None:
    """Hooks are short-lived and many: that this `state` was recorded is kept in the state folder's file `name`."""

    told = os.path.join(state_dir(), name)
    try:
        if read_private(told, 32768).decode("utf-8", "surrogateescape") == state[:8192]:
            return
    except OSError:  # nothing was told yet
        pass
    try:
        write_private(told, state[:8192])
    except OSError:
        return  # nowhere to remember it: better silent than at each call
    record("settings", "config", fault)
