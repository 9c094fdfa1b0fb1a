"""A person's alone: the files that keep sessions off each other's work, and the commands that switch that off.

A call of an agent that would certainly change one of these files, or run one of these commands, is denied. Loaded only
for a call that names something like it (the rule ``protections``).

    files     swarm's settings, store and state; the clients' settings and plugins that carry its hooks
    guard     the guard of a repository's commits
    commands  swarm's own verbs, git's settings, database programs
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from swarm_hook_core import EDIT, REMOVE, REPLACE, settings
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.paths import own_path, real_paths
from swarm_hook_core.repository import small_text, tree_over
from swarm_hook_core.shell.model import Effects, Tree
from swarm_hook_core.state import config_dir, config_path, data_dir, read_private, state_dir, store_path
from swarm_hook_core.untrusted_text import command, named

# The guard of a repository's commits: its hooks in git's folder, and the setting by which git finds them.

MARK = b"# swarm guard, written by"  # in the guard's hooks
GUARD_FOLDER, GUARD_RECORD = "swarm-hooks", "swarm-guard.json"
GUARDED = ("pre-commit", "pre-push")
WAY = "they type `swarm-mcp guard uninstall`"


def git_folder(folder: str) -> str:
    """Return the git folder that all work trees of the repository around `folder` share; may be empty."""
    tree = tree_over(folder)
    if tree is None:
        return ""
    return tree.common


def guard_is_wired(common: str) -> bool:
    """Return True if git finds the guard's hooks, by the repository's own files."""
    looked = hooks_path(common)
    if looked:
        own = os.path.realpath(os.path.join(common, GUARD_FOLDER))
        return os.path.realpath(os.path.join(os.path.dirname(common), looked)) == own and _is_guards(
            os.path.join(own, GUARDED[0])
        )
    return all(_is_guards(os.path.join(common, "hooks", name)) for name in GUARDED)


def has_guard_record(common: str) -> bool:
    """Return True if the guard has a hook folder of its own in this git folder."""
    return os.path.isdir(os.path.join(common, GUARD_FOLDER))


def hooks_path(common: str) -> str:
    """Return ``core.hooksPath`` of the repository's own configuration; may be empty."""
    try:
        text = os.fsdecode(read_private(os.path.join(common, "config"), LARGEST, follows=True))
    except OSError:  # no repository
        return ""
    found, section = "", ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[] \t").lower()
        name, equals, value = line.partition("=")
        if equals and section == "core" and name.strip().lower() == "hookspath":
            found = value.strip().strip('"')
    return found


def _is_guards(path: str) -> bool:
    try:
        return MARK in read_private(path, 4096, follows=True)
    except (OSError, ValueError):  # no such hook
        return False


def is_weakened(real: str, how: str, given: object) -> bool:
    """Return True if a write to this path, without links, changes the guard. `given`: the call's input."""
    common, between, inner = real.rpartition("/.git/")
    if not between:
        return False
    common += "/.git"
    is_own = inner.startswith((GUARD_FOLDER, GUARD_RECORD)) or (inner.startswith("hooks/") and _is_guards(real))
    if inner in ("config", "config.worktree") and GUARD_FOLDER in hooks_path(common):
        # Other settings of a repository are the session's own business.
        is_own = how in (REPLACE, REMOVE) or _speaks_of_hooks(given)
    return is_own and guard_is_wired(common)


def _speaks_of_hooks(given: object) -> bool:
    if isinstance(given, dict):
        return any(_speaks_of_hooks(value) for value in given.values())
    if isinstance(given, list):
        return any(_speaks_of_hooks(value) for value in given)
    return isinstance(given, str) and "hookspath" in given.lower()


# Files that a person alone changes: swarm's settings, store and state, and the clients' files that carry its hooks.

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


def matter_of_file(path: str, how: str = EDIT, given: object = None) -> Matter | None:
    """Return the Matter of a write to absolute `path`, or None. `given`: the call's input."""
    path = os.path.normpath(path)
    resolve = real_paths()
    for real in dict.fromkeys((own_path(path), resolve(path))):
        found = of_swarm(real, resolve) or _of_client(real, resolve) or _of_guard(real, how, given)
        if found is not None:
            found.path = path
            return found
    return None


def of_swarm(real: str, resolve: Callable[[str], str] = os.path.realpath) -> Matter | None:
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


def _of_client(real: str, resolve: Callable[[str], str]) -> Matter | None:
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


def _of_guard(real: str, how: str, given: object) -> Matter | None:
    if not is_weakened(real, how, given):
        return None
    return Matter(real, "the guard of this repository's commits", WAY)


def _homes(resolve: Callable[[str], str]) -> Iterator[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]]:
    """Yield ``(real folder, title, client, files, beginnings)`` of each client."""
    for variable, usual, title, name, files, starts in CLIENTS:
        chosen = os.environ.get(variable or "-", "").strip()
        if not variable and usual.startswith("~/.config/") and os.environ.get("XDG_CONFIG_HOME", "").strip():
            chosen = os.path.join(os.environ["XDG_CONFIG_HOME"].strip(), usual[len("~/.config/") :])
        yield resolve(os.path.expanduser(chosen or usual)), title, name, files, starts


def settings_files() -> list[tuple[str, str]]:
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


def matter_in_tree(tree: Tree) -> Matter | None:
    """Return the first Matter at or below a folder whose files are written or removed."""
    root = os.path.realpath(tree.root)
    found = matter_of_file(tree.root, tree.how)
    if found is not None and (tree.is_whole or tree.admits(tree.root) is True):
        return found
    for place in _places(root):
        if place.startswith(root.rstrip("/") + "/") and tree.admits(place) is True:
            return matter_of_file(place, tree.how)
    return None


def _places(root: str) -> Iterator[str]:
    """Yield the protected places below `root` that exist."""
    data = data_dir()
    hooks = [os.path.join(root, name) for name in GUARDED if "/.git/" in root]
    for path in (store_path(), config_path(), state_dir(), data, *hooks, *_files_of_clients(root)):
        real = os.path.realpath(path)
        if real.startswith(root.rstrip("/") + "/") and os.path.lexists(real) and matter_of_file(real) is not None:
            yield real


def _files_of_clients(root: str) -> Iterator[str]:
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


# Commands that a person alone gives: swarm's verbs that lower protection, git's ``core.hooksPath``, databases.

COMMANDS = ("swarm-mcp", "swarm-locks")
AS_A_PERSON = ("commit", "undo", "lock", "unlock")  # verbs with `--person`
LEVELS = ("off", "notice", "keep", "turn")


def matter_of_command(words: list[str], folder: str | None, by: str) -> Matter | None:
    """Return the Matter of a command, or None.

    words   the program's name first
    folder  the folder that it runs in, or None if that is not known
    by      the command as text
    """
    program, words = words[0], words[1:]
    if program in COMMANDS:
        return _of_swarm(words, folder, by)
    if program == "git":
        return _of_git(words, folder)
    if program.startswith(("sqlite", "duckdb")):
        return _of_database(words, folder)
    return None


def _of_swarm(words: list[str], folder: str | None, by: str) -> Matter | None:
    verb, *rest = words or [""]
    way = f"they type `{by}`"
    if verb in ("protect", "auto") and folder is not None:
        level = next((word for word in rest if word in LEVELS), "")
        if level and LEVELS.index(level) < LEVELS.index(_level(folder, "--user" in rest)):
            return Matter(by, "it lowers the level of protection", way)
        if "--fence=off" in rest:  # with a blank, `off` was taken for a level above
            return Matter(by, "it lets sessions leave their work trees", way)
    if verb == "uninstall" and "--dry-run" not in rest:
        return Matter(by, "it takes swarm out of the clients", way)
    if verb == "guard" and rest[:1] == ["uninstall"]:
        return Matter(by, "it takes the guard out of the repository", way)
    if verb == "install" and "--no-kernel" in rest and "--dry-run" not in rest:
        return Matter(by, "it ends the kernel's hold on locked files", way)
    if verb == "team" and rest[:1] == ["leave"]:
        return Matter(by, "it ends the sharing of locks with other machines", way)
    if verb == "answer" or (verb == "task" and rest[:1] == ["answer"]):
        return Matter(by, "it answers what a person was asked", way)
    if verb == "steal" and "--force" in rest:
        return Matter(by, "it takes a lock from a live session", way)
    if verb in AS_A_PERSON and "--person" in rest:
        return Matter(by, "it acts as a person", way)
    return None


def _level(folder: str, of_user: bool) -> str:
    if of_user:
        folder = ""
    return str(settings.in_file("protect", folder).value)


def _of_git(words: list[str], folder: str | None) -> Matter | None:
    """Return the Matter of ``git config core.hooksPath ...`` in a guarded repository, or None.

    So it is with ``include.path``, if the file that it names has that setting, or is not there yet.
    """
    lowered = [word.lower() for word in words]
    if lowered[:1] != ["config"] or folder is None:
        return None
    key = next((at for at, word in enumerate(lowered) if word == "core.hookspath" or _includes(word)), -1)
    if key < 0:
        return None
    changes = any(word in lowered for word in ("--unset", "--unset-all", "--replace-all", "--add", "unset", "set"))
    if not changes and (key + 1 >= len(words) or any(word.startswith("--get") or word == "get" for word in lowered)):
        return None  # it only asks
    common = git_folder(folder)
    if not common or not guard_is_wired(common):
        return None
    if _includes(lowered[key]):
        named = os.path.join(common, os.path.expanduser("".join(words[key + 1 : key + 2])))
        if os.path.lexists(named) and not _speaks_of_hooks(small_text(named)):
            return None
    what = "the setting by which git finds the guard of this repository's commits"
    return Matter("core.hooksPath", what, WAY)


def _includes(word: str) -> bool:
    """Return True for the name of a setting, in lower case, that includes another file of settings."""
    return word == "include.path" or (word.startswith("includeif.") and word.endswith(".path"))


def _of_database(words: list[str], folder: str | None) -> Matter | None:
    """Return the Matter of a database program on the store, even to read: ``swarm-mcp`` shows the locks."""
    for word in words:
        name = word.removeprefix("file:").split("?")[0]
        if name[:1] in ("", "-") or "\0" in name or len(name) > 4096 or (folder is None and name[0] != "/"):
            continue
        found = of_swarm(os.path.realpath(os.path.join(folder or "/", name)))
        if found is not None:
            found.what, found.way = (
                "the store of all locks",
                f"`swarm-mcp locks` and `swarm-mcp log` show it; {STORE_WAY}",
            )
            return found
    return None


def denial_of(call: ToolCall, targets: Iterable[tuple[str, str, str]], effects: Effects | None) -> Denial | None:
    """Return the Denial of a call that would weaken the protection of others, or None.

    targets  ``(folder, path, how)`` of the files that the call names
    effects  the Effects of a call without names, or None
    """
    matter, by = _in_targets(call, targets), ""
    if matter is None and effects is not None:
        matter, by = _in_effects(effects)
    if matter is None:
        return None

    part, about = "", named(matter.path)
    if matter.path == by:
        about = command(by)
    elif by:
        part = f" ({command(by)})"
    denial = Denial(
        matter.path, None,
        f"swarm blocked {call.client_tool}{part} for {about}: {matter.what}. That protects the work of all sessions,"
        f" and only a person changes it. Do not do it another way; go on without it. If the person who runs you wants"
        f" it, {matter.way}, in a terminal of their own.",
    )  # fmt: skip
    denial.deed = by or matter.path
    return denial


def _in_targets(call: ToolCall, targets: Iterable[tuple[str, str, str]]) -> Matter | None:
    for folder, path, how in targets:
        found = matter_of_file(os.path.join(folder, path), how, call.input)
        if found is not None:
            return found
    return None


def _in_effects(effects: Effects) -> tuple[Matter | None, str]:
    """Return the first Matter, and the part of the command that it is about."""
    for words, folder, by in effects.deeds:
        found = matter_of_command(words, folder, by)
        if found is not None:
            return found, by
    for write in effects.writes:
        path = os.path.join(write.folder, write.path)
        if "\0" in path:
            continue
        found = matter_of_file(path, write.how)
        if found is not None:
            return found, write.by
    for tree in effects.trees:
        found = matter_in_tree(tree)
        if found is not None:
            return found, tree.by
    return None, ""
