"""What a person has set for hooks: ``config.json`` in this user's configuration folder, and what overrides it.

    {"strict": true,
     "writers": [{"tool": "mcp__wiki__*", "paths": ["target", "pages[].path"], "unless": {"dryRun": true}},
                 {"tool": "mcp__box__run", "command": "line", "folder": "cwd"}]}

What is wrong in the file is left out, and recorded once as a fault.
"""

import os

from swarm_hook_core.environment import ON, first_set
from swarm_hook_core.state import config_dir, state_dir

LARGEST = 256 * 1024
MOST_WRITERS = 500


class Config:
    """The settings in the file at `path`, as far as they can be read; `faults` says what cannot, a line each.

    `there`: whether there is such a file. `writers`: see Writer.
    """

    __slots__ = ("path", "there", "strict", "writers", "faults")

    def __init__(self, path):
        self.path = path
        self.there = False
        self.strict = False
        self.writers: list = []
        self.faults: list = []


class Writer:
    """A tool that writes files: whole tool names that match `tool` (``*`` and ``?``).

    paths    where in its input the paths are: ``target``, ``pages[].path``; none of them: it writes nothing
    command  the argument that holds shell text, empty for none; `folder`: the one that says where it runs
    unless   argument -> value: a call with one of these writes nothing
    """

    __slots__ = ("tool", "paths", "command", "folder", "unless")

    def __init__(self, tool, paths=(), command="", folder="", unless=None):
        self.tool = tool
        self.paths = paths
        self.command = command
        self.folder = folder
        self.unless = unless or {}


def config_path() -> str:
    """The file itself."""
    return os.path.join(config_dir(), "config.json")


def strict(prefix: str) -> bool:
    """Whether what is only possible is denied: ``SWARM_<PFX>_STRICT``, ``SWARM_STRICT``, then the file."""
    value = first_set(f"SWARM_{prefix}_STRICT", "SWARM_STRICT")
    return value.lower() in ON if value else current().strict


def read(path: str) -> Config:
    """The Config in the file at `path`. Never raises."""
    found = Config(path)
    try:
        if not os.path.lexists(path):
            return found
        found.there = True
        if not os.path.isfile(path):  # a pipe of that name would keep us waiting
            raise ValueError("not a file")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError(f"longer than {LARGEST} characters")
        from swarm_hook_core.json_text import loads_object

        _take(found, loads_object(text))
    except (OSError, ValueError, RecursionError) as error:
        found.faults.append(" ".join(str(error).split()) or type(error).__name__)
    return found


_last: tuple = (None, None)


def current() -> Config:
    """The Config in force. The same object until the file changes; a file with faults is recorded once."""
    global _last
    path = config_path()
    try:
        state = os.stat(path)
        mark: tuple = (path, state.st_mtime_ns, state.st_size, state.st_ino)
    except (OSError, ValueError):
        mark = (path,)
    if _last[0] != mark:
        _last = (mark, read(path))
        if _last[1].faults:
            _record_once(_last[1], mark)
    return _last[1]


def _take(found: Config, settings: dict) -> None:
    for name in settings:
        if name not in ("strict", "writers"):
            found.faults.append(f"{name[:60]!r} is no setting (strict, writers)")
    value = settings.get("strict", False)
    if isinstance(value, bool):
        found.strict = value
    else:
        found.faults.append("strict is neither true nor false")
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


def _writer(entry) -> Writer:
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


def _record_once(config: Config, mark: tuple) -> None:
    """Hooks are short-lived and many: that this state of the file was recorded is kept in the state folder."""
    from swarm_hook_core import faults
    from swarm_hook_core.state import write_private

    told = os.path.join(state_dir(), "config-fault")
    text = " ".join(map(str, mark))
    try:
        with open(told, encoding="utf-8", errors="surrogateescape") as file:
            if file.read(8192) == text:
                return
    except OSError:
        pass
    try:
        write_private(told, text)
    except OSError:
        return  # nowhere to remember it: better silent than at each call
    faults.record("settings", "config", f"{config.path}: {'; '.join(config.faults)}")
