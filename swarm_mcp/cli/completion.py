"""What may stand next on a command line: the verbs, and what each verb's own help says it takes."""

from __future__ import annotations

import re
from typing import NamedTuple

from swarm_mcp.cli.arguments import REPEATABLE, SWITCHES, VALUE_FLAGS
from swarm_mcp.cli.main import ALIASES, COMMANDS, page_of, summary_of

# Names come from other sessions: what a shell would not take for one plain word is never offered.
PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:=-]+")
FILES, FOLDERS = ":files", ":folders"  # the shell is asked to fill these in
INSTANCES, TASKS, KEYS = "instances", "tasks", "keys"
OF_FLAG = {
    "--as": INSTANCES, "--to": INSTANCES, "--from": INSTANCES, "--assignee": INSTANCES,
    "--adopt-instance-id": INSTANCES, "--task": TASKS, "--parent-task": TASKS, "--depends-on": TASKS,
    "--file": FILES, "--file-root": FOLDERS, "--scope": FOLDERS, "--dir": FOLDERS, "--directory": FOLDERS,
    "--skill": FOLDERS,
}  # fmt: skip
OF_WORD = {
    "WHO": INSTANCES, "TASK": TASKS, "TASK-ID": TASKS, "TASK|RUN": TASKS, "KEY": KEYS, "DIR": FOLDERS,
    "DIRECTORY": FOLDERS,
}  # fmt: skip
CHOICES = {
    "TYPE": "review|implement|fix|test|research|other",
    "HOOK": "pre-commit|pre-push",
    "ROLE": "planner|implementer|reviewer|researcher|generalist",
}
STATUSES = {"tasks": "open|claimed|in_progress|blocked|approval_required|done|failed|cancelled",
            "ui": "pending|running|done|failed"}  # fmt: skip
# The tasks that these verbs have a use for, by status.
TASK_VERBS = {
    "claim": ("open", "claimed"),
    "update-task": ("open", "claimed", "in_progress", "blocked", "approval_required"),
}
BUSY_SECONDS = 0.2
MOST = 200  # candidates; more help nobody


class Candidate(NamedTuple):
    """One possible word, and what it is."""

    word: str
    about: str = ""


class Usage(NamedTuple):
    """One line of usage: the verb's `words` in order, and its `flags` with what their value is called.

    With `more` there may be any number of the last word.
    """

    words: list[str]
    flags: dict[str, str]
    more: bool = False

    def begins_with(self, word: str) -> bool:
        """Whether `word` may be its first: any word, where that is not a choice of few."""
        return not self.words or not _is_choice(self.words[0]) or word in self.words[0].split("|")

    def word_after(self, count: int) -> str:
        """What the word is called that follows `count` others; empty where none may follow."""
        if count < len(self.words):
            return self.words[count]
        return self.words[-1] if self.more and self.words else ""


def candidates(words: list[str]) -> list[Candidate]:
    """What may stand for the last of `words`, which follow the command's name; it may be begun already."""
    *before, current = words or [""]
    if not before and current.startswith("-"):
        found = [Candidate("--help"), Candidate("--version")]
    elif not before or before == ["help"]:
        found = [Candidate(verb, summary_of(verb)) for verb in COMMANDS]
    else:
        verb = ALIASES.get(before[0], before[0])
        found = _after(verb, before[1:], current) if verb in COMMANDS else []
    return [one for one in found if one.word in (FILES, FOLDERS) or _offered(one.word, current)][:MOST]


def usages(verb: str) -> list[Usage]:
    """The usage lines of a verb's help; flags that the help describes below them belong to each."""
    text = page_of(verb).partition("usage: ")[2].partition("\nexample:")[0]
    block, _, rest = text.partition("\n\n")
    described = [line for line in rest.splitlines() if re.match(r"  --[a-z]", line)]
    more = _usage(" ".join(" ".join(line.split("  ")[:2]) for line in described)).flags
    found = [_usage(line) for line in re.split(r"(?:^|\n)\s*swarm-mcp " + re.escape(verb), block) if line.strip()]
    return [usage._replace(flags={**more, **usage.flags}) for usage in found] or [Usage([], more)]


def _usage(line: str) -> Usage:
    words: list[str] = []
    flags: dict[str, str] = {}
    many = False
    tokens = iter(re.sub(r"\([^)]*\)|[\[\]]", " ", line).replace("...", " ... ").split())
    for token in tokens:
        if token == "...":
            many = bool(words)
        elif token in VALUE_FLAGS:
            flags[token] = next(tokens, "")
        elif token in SWITCHES:
            flags[token] = ""
        elif token.strip("|-"):
            words.append(token)
    return Usage(words, flags, many)


def _after(verb: str, before: list[str], current: str) -> list[Candidate]:
    """What may follow `verb` and the words behind it."""
    placed, flag, only_words = _read(before)
    matching = [usage for usage in usages(verb) if not placed or usage.begins_with(placed[0])] or usages(verb)
    flags = {name: shape for usage in matching for name, shape in usage.flags.items()}
    scope = _scope(before)
    if flag:
        return _of(verb, OF_FLAG.get(flag) or flags.get(flag, ""), scope)
    name, equals, _ = current.partition("=")
    if equals and name in VALUE_FLAGS and not only_words:
        values = _of(verb, OF_FLAG.get(name) or flags.get(name, ""), scope)
        # The shells put the flag before files and folders themselves.
        return [one if one.word in (FILES, FOLDERS) else Candidate(f"{name}={one.word}", one.about) for one in values]
    given = {word.partition("=")[0] for word in before}
    offered = [Candidate(name) for name in [*flags, "--help"] if name not in given or name in REPEATABLE]
    if current.startswith("-") and not only_words:
        return offered
    shapes = dict.fromkeys(filter(None, (usage.word_after(len(placed)) for usage in matching)))
    found = list(dict.fromkeys(one for shape in shapes for one in _of(verb, shape, scope)))
    return found if shapes or only_words else offered


def _read(before: list[str]) -> tuple[list[str], str, bool]:
    """The words among `before`, the flag that still wants its value, and whether only words follow."""
    placed: list[str] = []
    rest = iter(before)
    for item in rest:
        if item == "--":
            return [*placed, *rest], "", True
        if item in VALUE_FLAGS:
            if next(rest, None) is None:
                return placed, item, False
        elif not item.startswith("--"):
            placed.append(item)
    return placed, "", False


def _scope(before: list[str]) -> str:
    """The scope that the line names so far."""
    chosen = ""
    for at, word in enumerate(before):
        if word == "--scope" and at + 1 < len(before):
            chosen = before[at + 1]
        elif word.startswith("--scope="):
            chosen = word.partition("=")[2]
    return chosen


def _of(verb: str, shape: str, scope: str) -> list[Candidate]:
    """Candidates for a place of this shape: a kind of ours, a choice of words, or what usage calls it."""
    shape = STATUSES.get(verb, shape) if shape == "STATUS" else CHOICES.get(shape, shape)
    if _is_choice(shape):
        return [Candidate(word) for word in shape.split("|")]
    kind = TASKS if shape == "ID" and verb in TASK_VERBS else OF_WORD.get(shape, shape)
    if kind == FOLDERS:
        return [Candidate(FOLDERS)]
    if kind not in (INSTANCES, TASKS, KEYS):
        return [Candidate(FILES)]
    return _from_store(verb, kind, scope)


def _is_choice(shape: str) -> bool:
    return shape == shape.lower() and shape not in ("", FILES, FOLDERS, INSTANCES, TASKS, KEYS)


def _from_store(verb: str, kind: str, scope: str) -> list[Candidate]:
    from swarm_mcp.actor import onlooker_identity
    from swarm_mcp.domain.session import onlooker
    from swarm_mcp.scope import current_scope
    from swarm_mcp.store import Store
    from swarm_mcp.visibility import veiled

    place = current_scope(scope)
    with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
        viewer = onlooker_identity(store)
        if kind == INSTANCES:
            return _instances(veiled(store.instances.in_scope(place), viewer))
        if kind == TASKS:
            useful = TASK_VERBS.get(verb)
            tasks = store.tasks.in_order(onlooker(viewer, place))
            rows = [task for task in tasks if not useful or task["status"] in useful]
            return [Candidate(row["id"], f"[{row['status']}] {row['title']}") for row in rows]
        keys = store.kv.items(place, "", f"identity:{viewer}" if viewer else None)
        return [Candidate(row["key"]) for row in keys]


def _instances(rows: list[dict]) -> list[Candidate]:
    """Ids, short where that is enough, and the words of labels that only one session has."""
    found = []
    for row in rows:
        brief = row["id"][:8]
        alone = sum(other["id"].startswith(brief) for other in rows) == 1
        found.append(Candidate(brief if alone else row["id"], row["label"] or ""))
    labels = [row["label"] or "" for row in rows]
    for label in labels:
        unique = [word for word in label.split() if ":" in word and sum(word in other for other in labels) == 1]
        found += [Candidate(word, label) for word in unique]
    return found


def _offered(word: str, current: str) -> bool:
    return word.startswith(current) and PLAIN.fullmatch(word) is not None
