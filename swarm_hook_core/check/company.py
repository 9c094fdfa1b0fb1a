"""A first look at a call that does not name its files: may it meet others' work, or a person's?

A call that may has to be read, and the answer True costs that full reading. So the common commands (`ls`, `git status`,
`pytest`) get False. A text that hides its programs (a script, an alias of the shell, a computed name) gets False, too.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.check import Check
from swarm_hook_core.config import OPAQUE_TOOLS, SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.state import has_turn_files, local_store
from swarm_hook_core.traces.unread import redirected

# Words of commands that use or move HEAD, or remove a lock of git's; and of those that lead into another work tree.
_OF_HEAD = ("commit", "checkout", "switch", "reset", "rebase", "merge", "pull", "branch", "push", "stash", ".lock",
            "update-ref", "HEAD refs/")  # fmt: skip
_OF_OTHER_TREES = ("-C", "cd ", "--git-dir", "--work-tree", "GIT_DIR", "pushd ")
# Parts of a shell command that may destroy a file; `may_destroy` looks closer at a text with one of them.
DESTROYERS = (
    "git", "rm", "mv", "cp", ">", "tee", "dd", "sed", "truncate", "rsync", "link", "tar", "zip", "shred", "curl",
    "wget", "install", "ln", "patch", "split", "sponge", "sort", "trash", "perl", "ruby", "awk", "write", "shutil",
    "'w", '"w', "os.re", "-delete", "-exec", "-fprint", "jj ", "but ", "gt ", "sl ",
)  # fmt: skip
# Programs that replace or remove files; a text without one of them, a `>` or git's verbs is harmless.
PROGRAMS = frozenset(
    "rm mv cp tee truncate rsync unlink shred dd install ln curl wget tar unzip patch sponge split sort trash"
    " jj but gt sl".split()
)
# With these, an option or a word in the text says more.
IN_PLACE = ("sed", "perl", "ruby", "gawk", "awk")
INLINE = ("write_text", "write_bytes", "unlink", "rmtree", "os.remove", "os.rename", "os.replace", "shutil.",
          "'w'", '"w"', "'wb'", '"wb"', "writeFile", "rmSync", "File.write", "-delete", "-exec", "-fprint",
          "*** Begin Patch")  # fmt: skip
# Programs that run tests and builds, or check the code (``failures``): a look at the text says that a call may be one.
BUILDERS = frozenset(
    "pytest unittest tox nox make ninja cmake ctest cargo go npm npx pnpm yarn bun bunx deno node jest vitest mocha"
    " playwright tsc eslint biome mypy pyright ruff flake8 pylint mvn mvnw gradle gradlew gcc g++ cc c++ clang clang++"
    " rustc javac dotnet swift rspec rake rails mix phpunit composer bazel sbt meson just task nx turbo".split()
)
# Subcommands of git that neither lose nor commit a change of the work tree. All others are looked at, also aliases.
HARMLESS = frozenset(
    "status diff log show push fetch branch blame grep ls-files rev-parse remote tag config describe init"
    " clone rev-list cat-file ls-tree shortlog reflog merge-base for-each-ref symbolic-ref show-ref ls-remote"
    " check-ignore diff-tree diff-index diff-files notes bisect version help whatchanged name-rev archive"
    " var count-objects fsck gc".split()
)
ADDS = ("add", "stage")
SWEEPING = ("-A", "-u", "--all", "--update", ".", "./", "..", "*", ":/", "-Av", "-vA", "--no-ignore-removal")
DELETING = frozenset(("-D", "-f", "--force", "-df", "-fd"))  # of a branch, with its commits
QUIET_STASH = ("list", "show")
VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")  # git's options with a value
_APART = str.maketrans(dict.fromkeys(";|&()`'\"\n\t{}=", " "))


def has_company(check: Check) -> bool:
    """Return True if a call that does not name its files has to be read, although there may be no lock."""
    trail = check.trail
    if _may_destroy(check) and local_store():
        return True
    if trail is not None and (trail.is_by_turn or not trail.is_alone() or trail.may_lead_elsewhere()):
        return True
    if trail is not None and _shares_head(check):
        return True
    if not has_turn_files():
        return False
    from swarm_hook_core.traces.turn_files import of_others

    return bool(of_others(check.config.runtime_name, check.call, time.time_ns()))


def _shares_head(check: Check) -> bool:
    """Return True if the call may use or move HEAD, and other sessions work in the same work tree."""
    command = check.call.input.get("command") if isinstance(check.call.input, dict) else None
    if not isinstance(command, str) or "git" not in command or not any(word in command for word in _OF_HEAD):
        return False
    from swarm_hook_core.traces import head

    top = head.top_of(check.call.folder)
    if check.neighbours and (top in check.neighbours or any(word in command for word in _OF_OTHER_TREES)):
        return True
    if top is not None and not check.is_question:  # it may move HEAD, and is not read
        head.forget_note(check.config.runtime_name, check.call.session_id, top)
    return False


def _may_destroy(check: Check) -> bool:
    """Return True if the call may destroy a person's uncommitted work, by a first look at its text."""
    call = check.call
    if call.tool not in SHELL_TOOLS or not isinstance(call.input, dict):
        return call.tool not in OPAQUE_TOOLS  # few clients; tools of servers are read in any case
    text = call.input.get("command")
    if not isinstance(text, str):
        return True
    if not any(mark in text for mark in DESTROYERS):
        return False
    return may_destroy(text, call.folder)


def may_destroy(text: str, folder: str) -> bool:
    """Return True if the shell command `text`, run in `folder`, may replace, remove, sweep away or commit a file."""
    words = text.translate(_APART).split()
    names = [word.rpartition("/")[2] for word in words]
    if not PROGRAMS.isdisjoint(names):
        return True
    if ">" in text and any(_may_exist(target, text, folder) for target in redirected(text)):
        return True
    if "git" in names and any(_is_git_verb(words, place) for place, name in enumerate(names) if name == "git"):
        return True
    if any(word.startswith(("-i", "--in-place", "-pi", "-ni")) for word in words):
        return not set(IN_PLACE).isdisjoint(names)
    return any(mark in text for mark in INLINE)


def may_build(call: ToolCall) -> bool:
    """Return True if a call may run tests, a build or a check of the code, by a first look at its text."""
    if call.tool not in SHELL_TOOLS or not isinstance(call.input, dict):
        return False
    text = call.input.get("command")
    return isinstance(text, str) and not BUILDERS.isdisjoint(
        word.rpartition("/")[2] for word in text.translate(_APART).split()
    )


def _is_git_verb(words: list[str], place: int) -> bool:
    """Return True if the git command at index `place` may lose a change of the work tree, or take it along."""
    place += 1
    while place < len(words) and words[place][:1] == "-":
        place += 1 + (words[place] in VALUED)
    verb, after = [*words[place : place + 2], "", ""][:2]
    if verb == "branch" and not DELETING.isdisjoint(words[place:]):
        return True
    if verb in HARMLESS or not verb or (verb == "stash" and after in QUIET_STASH):
        return False
    if verb in ADDS:  # files that are named are meant
        return not set(SWEEPING).isdisjoint(words[place:])
    return verb != "worktree" or after not in ("list", "add")


def _may_exist(word: str, text: str, folder: str) -> bool:
    """Return True if `word`, the target of a redirection, may name a file that exists."""
    if any(sign in word for sign in "$*?[~\\") or "cd" in text or "pushd" in text:
        return True
    try:
        return os.path.lexists(os.path.join(folder, word))
    except ValueError:
        return False  # the text cannot be a path
