"""The judge of answers: each that a session was given must be true of one history of grants."""

from typing import NamedTuple

from support.history import Answer, Held, doubles, false_answers, listed

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
    passed: list[tuple[Answer, Held | str]]
    not_free: list[tuple[Answer, Held | str]]
    not_released: list[tuple[Answer, Held | str]]
    untold: list[tuple[Belief, str]]

    def text(self, most: int = 4) -> str:
        names = (
            "double holders",
            "checks that passed",
            "files that were not free",
            "releases that were none",
            "untold losses",
        )
        return listed(names, self, most)


def judge_answers(beliefs: list[Belief], freed: list[Freed], vanished: list[Vanished]) -> AnswerFindings:
    """Return the answers that are not true of these grants."""
    owed = [
        Held(one.holder, one.file, 0, one.began, one.began, one.good) for one in beliefs if one.good > one.began > 0
    ]
    ends = [
        Held(one.holder, one.file, 0, one.began, one.began, one.ended, over=one.over)
        for one in beliefs
        if one.how == "released"
    ]
    passed = [Answer("", "free", one.file, one.seen, one.at, one.holder) for one in vanished]
    not_free = [Answer(one.session, "free", one.file, one.refused - PREFIX_SECONDS, one.at) for one in freed]
    said_so = [one for one in freed if " released " in one.text]
    releases = [Answer(one.session, "released", one.file, one.refused - LAG_SECONDS, one.at) for one in said_so]
    files = sorted({one.file for one in beliefs})
    untold = [(one, "was not told") for one in beliefs if one.how == "untold"]
    return AnswerFindings(
        doubles(owed, files),
        false_answers(owed, passed),
        false_answers(owed, not_free),
        false_answers(ends, releases),
        untold,
    )
