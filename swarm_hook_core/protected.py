"""The files that keep sessions off each other's work, and the commands that switch that off: a person's alone.

A call of an agent that would certainly change one of these files, or run one of these commands, is denied. Loaded where
a call names something like it (``state.may_protect``, ``state.speaks_of_protection``).
"""

import os

from swarm_hook_core.change import EDIT, REMOVE, REPLACE
from swarm_hook_core.state import config_dir, config_path, data_dir, state_dir, store_path

LARGEST = 1024 * 1024  # bytes of a file of settings that are looked through
NOT_OURS = ("worktrees", "running")  # in the state folder: where workers work, and what their clients write
STORE_ENDINGS = ("", "-wal", "-shm", "-journal")
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
    ("CLINE_DIR", "~/.cline", "Cline", "cline",
     ("data/settings/cline_mcp_settings.json", "data/settings/global-settings.json"), ("plugins/swarm",)),
    ("HERMES_HOME", "~/.hermes", "Hermes", "hermes", ("config.yaml",), ("plugins/swarm",)),
    ("", "~/.cursor", "Cursor", "cursor", ("hooks.json", "mcp.json"), ()),
    ("PI_CODING_AGENT_DIR", "~/.pi/agent", "pi", "pi", ("settings.json",), ()),
    ("HARNESS_HOME", "~/.harness", "the bash harness", "hs", (), ("plugins/swarm",)),
)  # fmt: skip
MARK = b"# swarm guard, written by"  # in the guard's hooks
GUARD_FOLDER, GUARD_RECORD = "swarm-hooks", "swarm-guard.json"
GUARDED = ("pre-commit", "pre-push")
COMMANDS = ("swarm-mcp", "swarm-locks")
LEVELS = ("off", "notice", "keep", "turn")


class Matter:
    """What is at stake: the `path` (or command) named, `what` it is, and the `way` of a person."""

    __slots__ = ("path", "what", "way")

    def __init__(self, path, what, way):
        self.path = path
        self.what = what
        self.way = way


def denial_of(call, targets, effects):
    """The Denial of a call that would weaken the protection of others, or None.

    `targets`: ``(folder, path, how)`` of the files that it says it writes; `effects`: its Effects, or None.
    """
    found, by = _in_targets(call, targets), ""
    if found is None and effects is not None:
        found, by = _in_effects(call, effects)
    if found is None:
        return None
    from swarm_hook_core.check.denial import Denial
    from swarm_hook_core.untrusted_text import command, named

    part = f" ({command(by)})" if by and found.path != by else ""
    about = command(found.path) if found.path == by else named(found.path)
    denial = Denial(
        found.path, None,
        f"swarm blocked {call.client_tool}{part} for {about}: {found.what}. That protects the work of all sessions, and"
        f" only a person changes it. Do not do it another way; go on without it. If the person who runs you wants it,"
        f" {found.way}, in a terminal of their own.",
    )  # fmt: skip
    denial.deed = by or found.path
    return denial


def _in_targets(call, targets):
    for folder, path, how in targets:
        found = matter_of(os.path.join(folder, path), how, call.input)
        if found is not None:
            return found
    return None


def _in_effects(call, effects):
    for words, folder, by in effects.deeds:
        found = _of_command(words, folder, by)
        if found is not None:
            return found, by
    for one in effects.writes:
        path = os.path.join(one.folder, one.path)
        found = matter_of(path, one.how, None) if "\0" not in path else None
        if found is not None:
            return found, one.by
    for tree in effects.trees:
        found = _in_tree(tree)
        if found is not None:
            return found, tree.by
    return None, ""


# --------------------------------------------------------------------------------------- files


def matter_of(path: str, how=EDIT, given=None):
    """The Matter of a write to absolute `path`; None where that protects nobody. `given`: the call's input."""
    path = os.path.normpath(path)
    for real in dict.fromkeys((os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)),
                               os.path.realpath(path))):  # fmt: skip
        found = _of_ours(real) or _of_client(real) or _of_guard(real, how, given)
        if found is not None:
            found.path = path
            return found
    return None


def _of_ours(real: str):
    if real == os.path.realpath(config_path()):
        way = "they type `swarm-mcp auto LEVEL`, or edit the file"
        return Matter(real, "swarm's settings", way)
    store = os.path.realpath(store_path())
    if real in [store + ending for ending in STORE_ENDINGS]:
        return Matter(real, "the store of all locks", STORE_WAY)
    state = os.path.realpath(state_dir())
    is_inside = real == state or real.startswith(state + "/")
    if is_inside and real[len(state) + 1 :].split("/")[0] not in NOT_OURS:
        return Matter(real, "swarm's own state", "they type `swarm-mcp uninstall`")
    data = os.path.realpath(data_dir())
    if os.path.basename(data) == "swarm-mcp" and (real == data or real.startswith(data + "/")):
        return Matter(real, "the installed plugin of swarm", INSTALL_WAY)
    if real == os.path.realpath(config_dir()):
        return Matter(real, "the folder of swarm's settings", "they type `swarm-mcp auto LEVEL`")
    return None


STORE_WAY = "they type `swarm-mcp steal FILE --force --reason TEXT`, which takes a lock away"
INSTALL_WAY = "they type `swarm-mcp install` or `swarm-mcp uninstall`"


def _of_client(real: str):
    for home, title, name, files, starts in _homes():
        if not real.startswith(home + "/"):
            continue
        inner = real[len(home) + 1 :]
        way = f"they edit it, or type `swarm-mcp uninstall --client {name}`"
        if inner.startswith(starts):
            return Matter(real, f"swarm's plugin in {title}", INSTALL_WAY)
        if inner in files and holds_swarm(real):
            return Matter(real, f"{title}'s settings, which carry swarm's hooks", way)
    return None


def _homes():
    """``(real folder, title, client, files, beginnings)`` of each client."""
    for variable, usual, title, name, files, starts in CLIENTS:
        chosen = os.environ.get(variable, "").strip() if variable else ""
        if not variable and usual.startswith("~/.config/") and os.environ.get("XDG_CONFIG_HOME", "").strip():
            chosen = os.path.join(os.environ["XDG_CONFIG_HOME"].strip(), usual[len("~/.config/") :])
        yield os.path.realpath(os.path.expanduser(chosen or usual)), title, name, files, starts


def settings_files() -> list:
    """``(path, title of the client)`` of each file of settings that may carry our plugin or hooks."""
    return [(os.path.join(home, file), title) for home, title, _, files, _ in _homes() for file in files]


def holds_swarm(path: str) -> bool:
    """Whether swarm stands in this file of settings."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return b"swarm" in file.read(LARGEST)
    except (OSError, ValueError):
        return False


def _in_tree(tree):
    """The Matter of what is at and under a folder, all of which is written or removed."""
    root = os.path.realpath(tree.root)
    found = matter_of(tree.root, tree.how)
    if found is not None and (tree.is_whole or tree.admits(tree.root) is True):
        return found
    for place in _places(root):
        if place.startswith(root.rstrip("/") + "/") and tree.admits(place) is True:
            return matter_of(place, tree.how)
    return None


def _places(root: str):
    """What of all this is there, as a folder over it may be written or removed."""
    data = data_dir()
    hooks = [os.path.join(root, name) for name in GUARDED] if "/.git/" in root else []
    for path in (store_path(), config_path(), state_dir(), data, *hooks, *_files_of_clients(root)):
        real = os.path.realpath(path)
        if real.startswith(root.rstrip("/") + "/") and os.path.lexists(real) and matter_of(real) is not None:
            yield real


def _files_of_clients(root: str):
    for home, _title, _name, files, starts in _homes():
        if not f"{home}/".startswith(f"{root}/") and not root.startswith(f"{home}/"):
            continue
        for file in files:
            yield os.path.join(home, file)
        for start in starts:
            folder, name = os.path.split(os.path.join(home, start))
            try:
                yield from (os.path.join(folder, one) for one in os.listdir(folder) if one.startswith(name))
            except OSError:
                continue


# --------------------------------------------------------------------------------------- git's hooks


def git_folder(folder: str) -> str:
    """The git folder that all work trees of the repository around `folder` share; empty for none."""
    from swarm_hook_core.repository import tree_over

    tree = tree_over(folder)
    return tree.common if tree is not None else ""


def guard_is_wired(common: str) -> bool:
    """Whether the guard's hooks are where git looks, as far as the repository's own files tell."""
    looked = hooks_path(common)
    if looked:
        own = os.path.realpath(os.path.join(common, GUARD_FOLDER))
        return os.path.realpath(os.path.join(os.path.dirname(common), looked)) == own and _is_guards(
            os.path.join(own, GUARDED[0])
        )
    return all(_is_guards(os.path.join(common, "hooks", name)) for name in GUARDED)


def has_guard_record(common: str) -> bool:
    """Whether the guard has been installed in this git folder by way of a folder of its own, and not taken away."""
    return os.path.isdir(os.path.join(common, GUARD_FOLDER))


def hooks_path(common: str) -> str:
    """What the repository's own configuration says of ``core.hooksPath``; empty for nothing."""
    try:
        with open(os.path.join(common, "config"), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(LARGEST).splitlines()
    except (OSError, ValueError):
        return ""
    found, section = "", ""
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[] \t").lower()
        name, equals, value = line.partition("=")
        if equals and section == "core" and name.strip().lower() == "hookspath":
            found = value.strip().strip('"')
    return found


def _is_guards(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK in file.read(4096)
    except (OSError, ValueError):
        return False


def _of_guard(real: str, how, given):
    common, between, inner = real.rpartition("/.git/")
    if not between:
        return None
    common += "/.git"
    is_own = inner.startswith((GUARD_FOLDER, GUARD_RECORD)) or (inner.startswith("hooks/") and _is_guards(real))
    if inner in ("config", "config.worktree") and GUARD_FOLDER in hooks_path(common):
        # Other settings of a repository are the session's own business.
        is_own = how in (REPLACE, REMOVE) or _speaks_of_hooks(given)
    if not is_own or not guard_is_wired(common):
        return None
    return Matter(real, "the guard of this repository's commits", "they type `swarm-mcp guard uninstall`")


def _speaks_of_hooks(given) -> bool:
    if isinstance(given, dict):
        return any(_speaks_of_hooks(value) for value in given.values())
    if isinstance(given, list):
        return any(_speaks_of_hooks(value) for value in given)
    return isinstance(given, str) and "hookspath" in given.lower()


# --------------------------------------------------------------------------------------- commands


def _of_command(words, folder, by):
    """The Matter of a command, `words` with the program's name first, that only a person gives; None for others."""
    program, words = words[0], words[1:]
    if program in COMMANDS:
        return _of_swarm(words, folder, by)
    if program == "git":
        return _of_git(words, folder)
    return _of_sqlite(words, folder) if program.startswith(("sqlite", "duckdb")) else None


def _of_swarm(words, folder, by):
    verb, rest = (words[0], words[1:]) if words else ("", [])
    way = f"they type `{by}`"
    if verb == "auto" and folder is not None:
        level = next((word for word in rest if word in LEVELS), "")
        if level and LEVELS.index(level) < LEVELS.index(_level(folder, "--user" in rest)):
            return Matter(by, "it lowers the level of protection", way)
    if verb == "uninstall" and "--dry-run" not in rest:
        return Matter(by, "it takes swarm out of the clients", way)
    if verb == "guard" and rest[:1] == ["uninstall"]:
        return Matter(by, "it takes the guard out of the repository", way)
    if verb == "install" and "--no-kernel" in rest and "--dry-run" not in rest:
        return Matter(by, "it ends the kernel's hold on locked files", way)
    if verb == "team" and rest[:1] == ["leave"]:
        return Matter(by, "it ends the sharing of locks with other machines", way)
    if verb == "steal" and "--force" in rest:
        return Matter(by, "it takes a lock from a live session", way)
    return None


def _level(folder: str, of_user: bool) -> str:
    from swarm_hook_core import settings

    return settings.in_file("auto", "" if of_user else folder).value


def _of_git(words, folder):
    """Of ``git config core.hooksPath ...``, where that would pass over a guard."""
    lowered = [word.lower() for word in words]
    if lowered[:1] != ["config"] or "core.hookspath" not in lowered or folder is None:
        return None
    key = lowered.index("core.hookspath")
    changes = any(word in lowered for word in ("--unset", "--unset-all", "--replace-all", "--add", "unset", "set"))
    if not changes and (key + 1 >= len(words) or any(word.startswith("--get") or word == "get" for word in lowered)):
        return None  # it only asks
    common = git_folder(folder)
    if not common or not guard_is_wired(common):
        return None
    what = "the setting by which git finds the guard of this repository's commits"
    return Matter("core.hooksPath", what, "they type `swarm-mcp guard uninstall`")


def _of_sqlite(words, folder):
    """Of a database program on the store, whatever it is asked: what is only read, ``swarm-mcp`` tells."""
    for word in words:
        name = word.removeprefix("file:").split("?")[0]
        if name[:1] in ("", "-") or "\0" in name or len(name) > 4096 or (folder is None and name[0] != "/"):
            continue
        found = _of_ours(os.path.realpath(os.path.join(folder or "/", name)))
        if found is not None:
            found.what, found.way = (
                "the store of all locks",
                f"`swarm-mcp locks` and `swarm-mcp log` show it; {STORE_WAY}",
            )
            return found
    return None
