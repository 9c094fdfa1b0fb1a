"""A first look at a shell command's text: may it destroy uncommitted work, or commit another's?

The answer True costs a full reading of the command, so the common commands (`ls`, `git status`, `pytest`) get False. A
text that hides its programs (a script, an alias of the shell, a computed name) gets False, too.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Programs that replace or remove files; a text without one of them, a `>` or git's verbs is harmless.
PROGRAMS = frozenset(
    "rm mv cp tee truncate rsync unlink shred dd install ln curl wget tar unzip patch sponge split sort trash".split()
)
# With these, an option or a word in the text says more.
IN_PLACE = ("sed", "perl", "ruby", "gawk", "awk")
INLINE = ("write_text", "write_bytes", "unlink", "rmtree", "os.remove", "os.rename", "os.replace", "shutil.",
          "'w'", '"w"', "'wb'", '"wb"', "writeFile", "rmSync", "File.write", "-delete", "-exec", "-fprint",
          "*** Begin Patch")  # fmt: skip
# Subcommands of git that neither lose nor commit a change of the work tree. All others are looked at, also aliases.
HARMLESS = frozenset(
    "status diff log show push fetch branch blame grep ls-files rev-parse remote tag config describe init"
    " clone rev-list cat-file ls-tree shortlog reflog merge-base for-each-ref symbolic-ref show-ref ls-remote"
    " check-ignore diff-tree diff-index diff-files notes bisect version help whatchanged name-rev archive"
    " var count-objects fsck gc".split()
)
ADDS = ("add", "stage")
SWEEPING = ("-A", "-u", "--all", "--update", ".", "./", "..", "*", ":/", "-Av", "-vA", "--no-ignore-removal")
QUIET_STASH = ("list", "show")
VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")  # git's options with a value
_APART = str.maketrans(dict.fromkeys(";|&()`'\"\n\t{}=", " "))


def may_destroy(text: str, folder: str) -> bool:
    """Return True if the shell command `text`, run in `folder`, may replace, remove, sweep away or commit a file."""
    words = text.translate(_APART).split()
    names = [word.rpartition("/")[2] for word in words]
    if not PROGRAMS.isdisjoint(names):
        return True
    if ">" in text and any(_may_exist(target, text, folder) for target in _redirected(text)):
        return True
    if "git" in names and any(_is_git_verb(words, place) for place, name in enumerate(names) if name == "git"):
        return True
    if any(word.startswith(("-i", "--in-place", "-pi", "-ni")) for word in words):
        return not set(IN_PLACE).isdisjoint(names)
    return any(mark in text for mark in INLINE)


def _is_git_verb(words: "list[str]", place: int) -> bool:
    """Return True if the git command at index `place` may lose a change of the work tree, or take it along."""
    place += 1
    while place < len(words) and words[place][:1] == "-":
        place += 1 + (words[place] in VALUED)
    verb, after = [*words[place : place + 2], "", ""][:2]
    if verb in HARMLESS or not verb or (verb == "stash" and after in QUIET_STASH):
        return False
    if verb in ADDS:  # files that are named are meant
        return not set(SWEEPING).isdisjoint(words[place:])
    return verb != "worktree" or after not in ("list", "add", "prune")


def _redirected(text: str) -> "Iterator[str]":
    """Yield the word after each `>` that replaces a file; not after `>>`, `>&1`, `=>`, `->` and `>=`."""
    place = text.find(">")
    while place >= 0:
        after = text[place + 1 : place + 400]
        before = text[place - 1 : place]
        if after[:1] in (">", "&", "=", "(") or before in ("=", "-", "<"):
            place = text.find(">", place + 1 + (after[:1] == ">"))
            continue
        words = after.lstrip("|! \t").translate(_APART).split()
        if words and words[0] != "/dev/null":
            yield words[0]
        place = text.find(">", place + 1)


def _may_exist(word: str, text: str, folder: str) -> bool:
    """Return True if `word`, the target of a redirection, may name a file that exists."""
    if any(sign in word for sign in "$*?[~\\") or "cd" in text or "pushd" in text:
        return True
    try:
        return os.path.lexists(os.path.join(folder, word))
    except ValueError:
        return False  # the text cannot be a path
