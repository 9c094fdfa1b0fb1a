"""Commands that a person alone gives: swarm's verbs that lower protection, git's ``core.hooksPath``, databases."""

import os

from swarm_hook_core import settings
from swarm_hook_core.protected import guard
from swarm_hook_core.protected.files import STORE_WAY, Matter, of_swarm

COMMANDS = ("swarm-mcp", "swarm-locks")
AS_A_PERSON = ("commit", "undo", "lock", "unlock")  # verbs with `--person`
LEVELS = ("off", "notice", "keep", "turn")


def matter_of(words: "list[str]", folder: "str | None", by: str) -> "Matter | None":
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


def _of_swarm(words: "list[str]", folder: "str | None", by: str) -> "Matter | None":
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


def _of_git(words: "list[str]", folder: "str | None") -> "Matter | None":
    """Return the Matter of ``git config core.hooksPath ...`` in a guarded repository, or None."""
    lowered = [word.lower() for word in words]
    if lowered[:1] != ["config"] or "core.hookspath" not in lowered or folder is None:
        return None
    key = lowered.index("core.hookspath")
    changes = any(word in lowered for word in ("--unset", "--unset-all", "--replace-all", "--add", "unset", "set"))
    if not changes and (key + 1 >= len(words) or any(word.startswith("--get") or word == "get" for word in lowered)):
        return None  # it only asks
    common = guard.git_folder(folder)
    if not common or not guard.guard_is_wired(common):
        return None
    what = "the setting by which git finds the guard of this repository's commits"
    return Matter("core.hooksPath", what, guard.WAY)


def _of_database(words: "list[str]", folder: "str | None") -> "Matter | None":
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
