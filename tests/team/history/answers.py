"""The judge of answers: each that a session was given must be true of one history of grants."""

from typing import NamedTuple

from .checker import Held, _listed, doubles

PREFIX_SECONDS = 2.0  # a machine may not know yet of a grant so shortly before
LAG_SECONDS = 20.0  # a refusal may be by a lock that was released on another machine: its news are under way


class Belief(NamedTuple):
    """A session's lock as its holder knew it.

    began   the first moment after its confirmation; 0 for never confirmed
    good    the last moment when the server still owed it to the holder: there, and within the lease of its session
    ended   the moment before its release, or of the look that did not find it any more
    over    the moment after its release: a busy store may take long
    how     ``released``, ``told`` of its loss, or lost ``untold``
    """

    holder: str
    file: str
    began: float
    good: float
    ended: float
    over: float
    how: str


class Freed(NamedTuple):
    """A session heard at `at` that a file is free; it was first refused at `refused`."""

    session: str
    file: str
    refused: float
    at: float
    text: str


class Vanished(NamedTuple):
    """A check would have met the lock of `holder` at `seen`, and did not meet it any more at `at`."""

    file: str
    holder: str
    seen: float
    at: float


class AnswerFindings(NamedTuple):
    """The false answers of a history; all empty for a right one."""

    doubles: list[tuple[Held, Held]]
    passed: list[tuple[Belief, Vanished]]
    not_free: list[tuple[Belief, Freed]]
    not_released: list[tuple[Freed, str]]
    untold: list[tuple[Belief, str]]

    def text(self, most: int = 4) -> str:
        names = (
            "double holders",
            "checks that passed",
            "files that were not free",
            "releases that were none",
            "untold losses",
        )
        return _listed(names, self, most)


def judge_answers(beliefs: list[Belief], freed: list[Freed], vanished: list[Vanished]) -> AnswerFindings:
    """Return the answers that are not true of these grants."""
    owed: dict[tuple[str, str], list[Belief]] = {}
    for one in beliefs:
        if one.good > one.began > 0:
            owed.setdefault((one.file, one.holder), []).append(one)
    held = [Held(one.holder, one.file, 0, one.began, one.began, one.good) for each in owed.values() for one in each]
    passed = [
        (one, look)
        for look in vanished
        for one in owed.get((look.file, look.holder), ())
        if one.began <= look.seen and look.at < one.good
    ]
    not_free = [
        (one, told)
        for told in freed
        for (file, holder), theirs in owed.items()
        for one in theirs
        if file == told.file
        and holder != told.session
        and one.began <= told.refused - PREFIX_SECONDS
        and told.at < one.good
    ]
    not_released = [
        (told, f"not one of {[one for one in beliefs if one.file == told.file and abs(one.ended - told.at) < 60]}")
        for told in freed
        if " released " in told.text and not any(
            one.how == "released" and one.file == told.file and one.holder != told.session
            and one.ended <= told.at and told.refused - LAG_SECONDS < one.over
            for one in beliefs
        )
    ]  # fmt: skip
    files = sorted({one.file for one in beliefs})
    untold = [(one, "was not told") for one in beliefs if one.how == "untold"]
    return AnswerFindings(doubles(held, files), passed, not_free, not_released, untold)
