"""What a git call would touch of the files that peers hold, asked of git itself, read-only and in time."""

from swarm_hook_core.shell.git.inquiry import Inquiry, Touch
from swarm_hook_core.shell.git.repository import Refused, Repository, Untold
from swarm_hook_core.shell.git.words import READS, REPOSITORY_ONLY, only_reads, tree_of, work_tree

SECONDS = 0.5
MOST_ALIASES = 5  # that lead to one another

_SUBCOMMANDS = {  # -> (module, function)
    "add": ("staging", "add"),
    "am": ("history", "am"),
    "bisect": ("history", "bisect"),
    "checkout": ("switching", "checkout"),
    "checkout-index": ("switching", "checkout_index"),
    "cherry-pick": ("history", "pick"),
    "clean": ("aside", "clean"),
    "commit": ("staging", "commit"),
    "merge": ("history", "merge"),
    "mv": ("staging", "move"),
    "pull": ("history", "pull"),
    "read-tree": ("switching", "read_tree"),
    "rebase": ("history", "rebase"),
    "reset": ("switching", "reset"),
    "restore": ("switching", "restore"),
    "revert": ("history", "pick"),
    "rm": ("staging", "remove"),
    "stage": ("staging", "add"),
    "stash": ("aside", "stash"),
    "switch": ("switching", "switch"),
    "update-index": ("staging", "update_index"),
}
_NOBODY_KNOWS = frozenset(
    "filter-branch filter-repo sparse-checkout submodule lfs mergetool subtree merge-index merge-one-file quiltimport"
    " svn p4 cvsimport cvsexportcommit annex flow absorb rebase--interactive".split()
)


def touched(call, locked, seconds: float = SECONDS, covers=()) -> Touch:
    """What GitCall `call` would do to `locked`: absolute paths of files or folders, by any of their names.

    And to what `covers` (``cover.Cover``) cover, whether it is there by now or not.

    Changes nothing. Takes at most about `seconds`; what could not be asked in that time is `unsure`.
    """
    touch = Touch()
    top = tree_of(call)
    if top is None or not call.words:
        return touch
    repository = Repository(top, seconds, call.top, call.environment)
    try:
        words = _without_aliases(call.words, repository)
        if words is None:
            touch.unsure = bool(locked or covers)
            return touch
        if only_reads(words):
            return touch
        touch.changes_repository = True
        if words[0] not in REPOSITORY_ONLY or words[0] == "am":
            _ask(Inquiry(call, words, repository, locked, touch, covers))
    except (Untold, Refused):
        touch.unsure = bool(locked or covers)
    return touch


def _ask(inquiry: Inquiry) -> None:
    name = inquiry.words[0]
    if not inquiry.locked and not inquiry.nested:
        return
    if name in _NOBODY_KNOWS:
        inquiry.cannot_tell()
        return
    module, function = _SUBCOMMANDS[name]
    full = f"swarm_hook_core.shell.git.{module}"
    getattr(__import__(full, fromlist=[function]), function)(inquiry)


def _without_aliases(words, repository):
    """`words` with aliases put in their place; None for those that run a shell, and for commands git does not have."""
    for _ in range(MOST_ALIASES):
        name = words[0]
        if is_subcommand(name):
            return words
        if "\0" in name or not name or name.startswith("-"):
            return None
        value = repository.setting(f"alias.{name}").strip()
        if not value or value.startswith("!"):
            return None
        import shlex

        try:
            words = [*shlex.split(value), *words[1:]]
        except ValueError:
            return None
    return None


def is_subcommand(name: str) -> bool:
    """Whether `name` is a command of git's own, or of a well-known extension; else it may be an alias."""
    return any(name in known for known in (READS, REPOSITORY_ONLY, _SUBCOMMANDS, _NOBODY_KNOWS))


__all__ = ["SECONDS", "Touch", "is_subcommand", "touched", "tree_of", "work_tree"]
