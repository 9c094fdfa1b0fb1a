"""What a git call would touch of the files that peers hold, asked of git itself, read-only and in time."""

from swarm_hook_core.shell.git.command_line import only_reads, tree_of
from swarm_hook_core.shell.git.question import Question, Touch
from swarm_hook_core.shell.git.repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.git.table import REPOSITORY_ONLY, UNPREDICTABLE, is_subcommand, listed

SECONDS = 0.5
MOST_ALIASES = 5  # that lead to one another


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
            _ask(Question(call, words, repository, locked, touch, covers))
    except (NoAnswer, Refused):
        touch.unsure = bool(locked or covers)
    return touch


def _ask(question: Question) -> None:
    name = question.words[0]
    if not question.locked and not question.nested:
        return
    if name in UNPREDICTABLE:
        question.cannot_tell()
        return
    module, function = listed(name, "asks")[0].split(".")
    full = f"swarm_hook_core.shell.git.{module}"
    getattr(__import__(full, fromlist=[function]), function)(question)


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
