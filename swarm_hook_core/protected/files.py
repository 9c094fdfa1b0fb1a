"""Files that a person alone changes: swarm's settings, store and state, and the clients' files that carry its hooks."""

import os
from collections.abc import Callable, Iterator

from swarm_hook_core import EDIT
from swarm_hook_core.paths import own_path, real_paths
from swarm_hook_core.protected import guard
from swarm_hook_core.shell.model import Tree
from swarm_hook_core.state import config_dir, config_path, data_dir, state_dir, store_path

LARGEST = 1024 * 1024  # bytes of a file of settings that are searched
NOT_OURS = ("worktrees", "running")  # in the state folder: the folders of workers, and their clients' files
STORE_ENDINGS = ("", "-wal", "-shm", "-journal")
STORE_WAY = "they type `swarm-mcp steal FILE --force --reason TEXT`, which takes a lock away"
INSTALL_WAY = "they type `swarm-mcp install` or `swarm-mcp uninstall`"
# Variable and usual place of a client's folder; its name; files in it that carry our plugin or hooks among other
# things; and how names of files begin that are ours alone.
CLIENTS = (
    ("CLAUDE_CONFIG_DIR", "~/.claude", "Claude Code", "claude-code",
     ("settings.json", "plugins/installed_plugins.json", "plugins/known_marketplaces.json"),
     ("plugins/cache/swarm", "plugins/marketplaces/swarm", "plugins/data/swarm")),
    ("CODEX_HOME", "~/.codex", "Codex", "codex", ("config.toml",), ("plugins/cache/swarm", "plugins/data/swarm")),
    ("COPILOT_HOME", "~/.copilot", "Copilot", "copilot", ("settings.json",), ()),
    ("GEMINI_CLI_HOME", "~", "Gemini", "gemini",
     (".gemini/settings.json", ".gemini/extensions/extension-enablement.json"), (".gemini/extensions/swarm",)),
    ("QWEN_HOME", "~/.qwen", "Qwen", "qwen", ("settings.json", "extensions/extension-enablement.json"),
     ("extensions/swarm",)),
    ("GROK_HOME", "~/.grok", "Grok", "grok", ("config.toml", "disabled-hooks"), ("hooks/swarm",)),
    ("", "~/.config/opencode", "OpenCode", "opencode", (), ("plugin/swarm-mcp",)),
    ("", "~/.config/kilo", "Kilo", "kilo", (), ("plugin/swarm-mcp",)),
    ("KIMI_CODE_HOME", "~/.kimi-code", "Kimi", "kimi", ("plugins/installed.json",), ()),
    ("CLINE_DIR", "~/.cline", "Cline", "cline",
     ("data/settings/cline_mcp_settings.json", "data/settings/global-settings.json"), ("plugins/swarm",)),
    ("HERMES_HOME", "~/.hermes", "Hermes", "hermes", ("config.yaml",), ("plugins/swarm",)),
    ("", "~/.cursor", "Cursor", "cursor", ("hooks.json", "mcp.json"), ()),
    ("PI_CODING_AGENT_DIR", "~/.pi/agent", "pi", "pi", ("settings.json",), ()),
    ("PI_CODING_AGENT_DIR", "~/.omp/agent", "oh-my-pi", "omp", (), ("extensions/swarm-mcp",)),
    ("", "~/.letta", "Letta Code", "letta", ("settings.json",), ()),
    ("", "~/.augment", "Auggie", "auggie", ("settings.json",), ()),
    ("HARNESS_HOME", "~/.harness", "the bash harness", "hs", (), ("plugins/swarm",)),
)  # fmt: skip


class Matter:
    """A protected thing: the `path` (or command) as named, a word for `what` it is, and the `way` of a person."""

    __slots__ = ("path", "what", "way")

    def __init__(self, path: str, what: str, way: str):
        self.path = path
        self.what = what
        self.way = way


def matter_of(path: str, how: str = EDIT, given: object = None) -> "Matter | None":
    """Return the Matter of a write to absolute `path`, or None. `given`: the call's input."""
    path = os.path.normpath(path)
    resolve = real_paths()
    for real in dict.fromkeys((own_path(path), resolve(path))):
        found = of_swarm(real, resolve) or _of_client(real, resolve) or _of_guard(real, how, given)
        if found is not None:
            found.path = path
            return found
    return None


def of_swarm(real: str, resolve: "Callable[[str], str]" = os.path.realpath) -> "Matter | None":
    """Return the Matter of a file of swarm's own, by its path without links, or None. `resolve`: ``real_paths()``."""
    if real == resolve(config_path()):
        way = "they type `swarm-mcp protect LEVEL`, or edit the file"
        return Matter(real, "swarm's settings", way)
    store = resolve(store_path())
    if real in [store + ending for ending in STORE_ENDINGS]:
        return Matter(real, "the store of all locks", STORE_WAY)
    state = resolve(state_dir())
    is_inside = real == state or real.startswith(state + "/")
    if is_inside and real[len(state) + 1 :].split("/")[0] not in NOT_OURS:
        return Matter(real, "swarm's own state", "they type `swarm-mcp uninstall`")
    data = resolve(data_dir())
    if os.path.basename(data) == "swarm-mcp" and (real == data or real.startswith(data + "/")):
        return Matter(real, "the installed plugin of swarm", INSTALL_WAY)
    if real == resolve(config_dir()):
        return Matter(real, "the folder of swarm's settings", "they type `swarm-mcp protect LEVEL`")
    return None


def _of_client(real: str, resolve: "Callable[[str], str]") -> "Matter | None":
    for home, title, name, files, starts in _homes(resolve):
        if not real.startswith(home + "/"):
            continue
        inner = real[len(home) + 1 :]
        way = f"they edit it, or type `swarm-mcp uninstall --client {name}`"
        if inner.startswith(starts):
            return Matter(real, f"swarm's plugin in {title}", INSTALL_WAY)
        if inner in files and holds_swarm(real):
            return Matter(real, f"{title}'s settings, which carry swarm's hooks", way)
    return None


def _of_guard(real: str, how: str, given: object) -> "Matter | None":
    if not guard.is_weakened(real, how, given):
        return None
    return Matter(real, "the guard of this repository's commits", guard.WAY)


def _homes(resolve: "Callable[[str], str]") -> "Iterator[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]]":
    """Yield ``(real folder, title, client, files, beginnings)`` of each client."""
    for variable, usual, title, name, files, starts in CLIENTS:
        chosen = os.environ.get(variable or "-", "").strip()
        if not variable and usual.startswith("~/.config/") and os.environ.get("XDG_CONFIG_HOME", "").strip():
            chosen = os.path.join(os.environ["XDG_CONFIG_HOME"].strip(), usual[len("~/.config/") :])
        yield resolve(os.path.expanduser(chosen or usual)), title, name, files, starts


def settings_files() -> "list[tuple[str, str]]":
    """Return ``(path, title of the client)`` of each file of settings that may carry our plugin or hooks."""
    return [(os.path.join(home, file), title) for home, title, _, files, _ in _homes(real_paths()) for file in files]


def holds_swarm(path: str) -> bool:
    """Return True if swarm is in this file of settings."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return b"swarm" in file.read(LARGEST)
    except (OSError, ValueError):  # gone, or a name that no file has
        return False


def matter_in_tree(tree: "Tree") -> "Matter | None":
    """Return the first Matter at or below a folder whose files are written or removed."""
    root = os.path.realpath(tree.root)
    found = matter_of(tree.root, tree.how)
    if found is not None and (tree.is_whole or tree.admits(tree.root) is True):
        return found
    for place in _places(root):
        if place.startswith(root.rstrip("/") + "/") and tree.admits(place) is True:
            return matter_of(place, tree.how)
    return None


def _places(root: str) -> "Iterator[str]":
    """Yield the protected places below `root` that exist."""
    data = data_dir()
    hooks = [os.path.join(root, name) for name in guard.GUARDED if "/.git/" in root]
    for path in (store_path(), config_path(), state_dir(), data, *hooks, *_files_of_clients(root)):
        real = os.path.realpath(path)
        if real.startswith(root.rstrip("/") + "/") and os.path.lexists(real) and matter_of(real) is not None:
            yield real


def _files_of_clients(root: str) -> "Iterator[str]":
    for home, _title, _name, files, starts in _homes(real_paths()):
        if not f"{home}/".startswith(f"{root}/") and not root.startswith(f"{home}/"):
            continue
        for file in files:
            yield os.path.join(home, file)
        for start in starts:
            folder, name = os.path.split(os.path.join(home, start))
            try:
                yield from (os.path.join(folder, one) for one in os.listdir(folder) if one.startswith(name))
            except OSError:  # the client is not installed
                continue
