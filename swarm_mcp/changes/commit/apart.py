"""A work tree apart: exactly the content of the coming commit, for the repository's hooks.

Hooks stage files (`git add -A`), put unstaged changes aside (pre-commit, lint-staged) and read files. Beside
uncommitted changes of others they would take these along, or away for a while. So they run in a folder of their own
then, with a git folder of its own that shares branches, settings and objects with the repository. `git worktree list`
does not know it, and nothing of it is in the repository.

Files that git ignores (``node_modules``, ``.venv``) are linked there, the topmost ones first. Submodules are empty, and
files of git-lfs are pointers.
"""

from __future__ import annotations

import os
import shutil

from swarm_hook_core.state import make_private, write_private
from swarm_mcp.changes.commit.git import Git, last_words, split
from swarm_mcp.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_mcp.changes.commit.landing import Workshop

MOST_LINKS = 1000
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")


def has_hooks(git: Git) -> bool:
    """Return True if the repository has a hook that runs before a commit."""
    folder = git.path("hooks")
    if any(os.access(os.path.join(folder, name), os.X_OK) for name in HOOKS):
        return True
    return bool(git.line("config", "--get-regexp", r"^hook\..*\.command$"))


def is_as_the_commit(git: Git) -> bool:
    """Return True if the work tree has exactly the content of git's private index, ignored files aside."""
    words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
    return all(part[1] == " " for part in split(git.ask(*words)))


def make_apart(shared: Git, private: Git, workshop: Workshop) -> Git:
    """Make the work tree apart, and return git in it. Raises Refused.

    `shared`: git in the shared work tree; `private`: git with the index of the coming commit.
    """
    if shared.line("config", "extensions.refStorage") == "reftable":
        raise Refused(
            "others have uncommitted changes here, and in a repository with reftable the hooks cannot run apart from"
            " them: commit when these are committed"
        )
    top = os.path.join(workshop.path("apart"), os.path.basename(shared.top) or "work")
    own = os.path.join(top, ".git")
    make_private(own)
    branch = shared.line("symbolic-ref", "-q", "HEAD")
    head = f"ref: {branch}" if branch else shared.head()
    common = os.path.join(shared.top, shared.ask("rev-parse", "--git-common-dir").rstrip("\n"))
    write_private(os.path.join(own, "HEAD"), head + "\n")
    write_private(os.path.join(own, "commondir"), os.path.realpath(common) + "\n")
    _copy_settings(shared, workshop.own, own)
    index = os.path.join(own, "index")
    shutil.copy2(private.index, index)
    settings = {"core.fsmonitor": "false"}
    git = Git(top, index, _with_settings(shared, settings))
    done = Git(top, index, {**git.environment, "GIT_LFS_SKIP_SMUDGE": "1"}).run(["checkout-index", "-a", "-f", "-u"])
    if done.returncode:
        raise Refused(f"the hooks' own work tree cannot be made: {last_words(done)}")
    links = _link_ignored(shared, top)
    if links:
        settings["core.excludesFile"] = os.path.join(own, "excludes")
        write_private(settings["core.excludesFile"], _excludes(shared, links))
    hooks = shared.path("hooks")
    if hooks.startswith(shared.top + os.sep) and not os.path.isdir(git.path("hooks")):
        settings["core.hooksPath"] = hooks  # neither in the commit nor ignored
    return Git(top, index, _with_settings(shared, settings))


def _copy_settings(shared: Git, from_own: str, own: str) -> None:
    """Copy git's files of one work tree: its settings, and the paths of a sparse checkout."""
    for name in ("config.worktree", "info/sparse-checkout"):
        source, target = os.path.join(from_own, name), os.path.join(own, name)
        if os.path.isfile(source):
            make_private(os.path.dirname(target))
            shutil.copyfile(source, target)
    target = os.path.join(own, "config.worktree")
    if os.path.isfile(target):
        for name in ("core.worktree", "core.bare"):
            shared.run(["config", "--file", target, "--unset-all", name])


def _link_ignored(shared: Git, top: str) -> list[str]:
    """Link the ignored files and folders of the shared work tree into `top`; return their names."""
    words = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--no-empty-directory")
    names = [name.rstrip("/") for name in split(shared.ask(*words))]
    found = []
    for name in sorted(names, key=lambda one: one.count("/"))[:MOST_LINKS]:
        link = os.path.join(top, name)
        if os.path.isdir(os.path.dirname(link)) and not os.path.lexists(link):
            try:
                os.symlink(os.path.join(shared.top, name), link)
            except OSError:
                break  # no links on this platform, or for this user
            found.append(name)
    return found


def _excludes(shared: Git, links: Iterable[str]) -> str:
    """Return the user's own ignore rules, and one for each link: rules for folders do not match it."""
    path = shared.line("config", "--type=path", "core.excludesFile")
    if not path:
        path = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "ignore")
    rules = ""
    try:
        with open(os.path.join(shared.top, path), encoding="utf-8", errors="surrogateescape") as file:
            rules = file.read()
    except OSError:
        pass  # the user has no rules
    return "\n".join([rules, *("/" + _escaped(name) for name in links), ""])


def _escaped(name: str) -> str:
    return "".join("\\" + sign if sign in "\\*?[ " else sign for sign in name)


def _with_settings(shared: Git, settings: dict[str, str]) -> dict[str, str]:
    """Return the environment that adds these settings to those that git's environment has already."""
    count = int(shared.environment.get("GIT_CONFIG_COUNT") or 0)
    found = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (name, value) in enumerate(settings.items(), count):
        found[f"GIT_CONFIG_KEY_{number}"] = name
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found
