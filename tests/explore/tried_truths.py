"""Truths about tries (``trying``): lines that a command saw, authors that were blamed, files that are left."""

import os
from collections.abc import Iterator

from explore.ground import FILES, Ground, files, session_id
from explore.history import BEGINS, END, ENDS, Ended, is_alone
from explore.trying import DOUBT, MADE, left_by_tries
from explore.world import FAIL, JUMP, KILL

Words = tuple[str, ...]
WRITTEN = ("wrote", "missing", "failed", "crashed", "dies")  # a file that is being written is empty at a moment of that


def tried(ended: Ended, ground: Ground, saved: list[str]) -> Iterator[str]:
    """Yield the false answers about tries. `saved`: lines that are a person's for certain."""
    if not any(words[0] in ("tests", "seeks") for _process, words in ended.words):
        return
    yield from untouched(ground)
    yield from left_by_tries(ground.work, is_again=ended.did(KILL, FAIL))
    with open(os.path.join(ground.work, FILES[0]), encoding="utf-8", errors="replace") as file:
        lines = _Lines(ended, saved, file.read().split())
    for begun, over, process, words in _answers(ended):
        ran = [one[2:] for other, one in ended.words[begun:over] if other == process and one[:2] == ["ran", FILES[0]]]
        if any(MADE in text for text in ran):
            yield f"the command of {process} saw a line that an earlier one has written"
        if ended.did(FAIL, JUMP):  # hooks fail open, and authors are known by times
            continue
        if words in (["tested"], ["tested", DOUBT]):
            yield from lines.ran(process, begun, over, ran[-1], has_doubt=DOUBT in words)
        elif words[0] == "blames":
            yield from lines.blamed(process, begun, over, words[1], words[2:])


def untouched(ground: Ground) -> Iterator[str]:
    """Yield the files that a command has written in the checkout itself."""
    for path in files(ground.work):
        name = path[len(ground.work) + 1 :]
        if name.startswith(".git/"):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            if name not in FILES or MADE in file.read():
                yield f"a try has written {name} in the checkout"


def _answers(ended: Ended) -> Iterator[tuple[int, int, int, list[str]]]:
    """Yield each try that was answered: (its beginning, its end, its process, the answer)."""
    begun = dict[int, int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] in ("tests", "seeks"):
            begun[process] = at
        elif words[0] in ("tested", "blames"):
            yield begun[process], at, process, words


class _Lines:
    """The lines that a schedule has brought. `saved`: a person's for certain; `left`: of the file in the end."""

    def __init__(self, ended: Ended, saved: list[str], left: list[str]):
        self._ended = ended
        self._at: dict[str, int] = {}  # when a line was there
        self._certain, self._persons = set(saved), set[str]()
        self._left = left
        self._behind = set[tuple[int, str]]()  # processes, and lines that came while their commands ran
        running = set[int]()
        for at, (process, words) in enumerate(ended.words):
            if words[0] == "runs":
                running.add(process)
            elif words[:2] == ["hook", "PostToolUse"]:
                running.discard(process)
            elif words[0] in ("saved", "built"):
                self._at[words[1]] = at
                self._persons.update(words[1:] if words[0] == "saved" else ())
                self._behind.update((one, words[1]) for one in running)
            elif words[:2] == ["wrote", "Edit"]:
                self._at[words[3]] = at
                if is_alone(ended, at):
                    self._certain.add(words[3])

    def ran(self, process: int, begun: int, over: int, text: list[str], has_doubt: bool) -> Iterator[str]:
        """Yield the lines that a command has, or has not, seen by mistake."""
        own = {line for line in self._of(process) if self._at[line] < begun and line in self._left}
        if self._is_beside(process, begun, over, BEGINS, ENDS):
            own.intersection_update(self._certain)  # of a command's lines the makers are not known yet
        if not self._is_beside(process, begun, over, ("writes",), WRITTEN):
            yield from (f"the command of {process} did not see its line {line}" for line in sorted(own - set(text)))
        for line in {*text} & self._at.keys() - self._of(process):
            is_known = has_doubt or (process, line) in self._behind
            if line in self._persons:
                is_wrong = line in self._certain and not is_known
            else:
                is_wrong = line in self._certain or not is_known
            if is_wrong and not self._is_committed(line, over):
                yield f"the command of {process} saw the line {line} of another session"

    def blamed(self, process: int, begun: int, over: int, kind: str, culprits: list[str]) -> Iterator[str]:
        """Yield that an answer about the lines of another process is false."""
        other = int(self._ended.words[begun][1][1])
        every = self._of(other)
        there = [line for line in every if self._at[line] < begun and line in self._left]
        if kind == "green" and there and not self._is_beside(process, begun, over, ("writes",), WRITTEN):
            yield f"{process} found no lines of {other} to blame, and there was {there[0]}"
        if kind == "flaky" or (kind == "head" and not any(self._is_committed(line, over) for line in every)):
            yield f"{process} was told `{kind}` of the lines of {other}"
        maker = "person" if self._ended.roles[other] == "saves" else session_id(other)
        if self._certain.issuperset(every) and any(maker not in group.split("+") for group in culprits):
            yield f"{process} was told that {culprits} made the lines of {other}"

    def _of(self, process: int) -> list[str]:
        return [line for line in self._at if line.startswith(f"{process}.")]

    def _is_committed(self, line: str, before: int) -> bool:
        """Return True if a commit that has begun by then may have this line."""
        process = int(line.partition(".")[0])
        return (process, ["commits"]) in self._ended.words[self._at.get(line, END) : before]

    def _is_beside(self, process: int, begun: int, over: int, begins: Words, ends: Words) -> bool:
        """Return True if another process is between such words meanwhile."""
        busy = set[int]()
        for at, (other, words) in enumerate(self._ended.words[:over]):
            if words[0] in begins:
                busy.add(other)
            if at >= begun and busy - {process}:
                return True
            if words[0] in ends or words[:2] == ["hook", "PostToolUse"]:
                busy.discard(other)
        return False
