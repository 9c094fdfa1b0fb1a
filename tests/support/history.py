"""The required truths of a history of locks and answers, of one machine or of several, under any fault.

A history is the record of holders and onlookers, by one clock that no fault moves: the boot clock of the common kernel,
or the order of an explored schedule. It is judged by itself: the code that made it is not asked here, not even if two
patterns meet. A place reaches files of a small world that is given with it.
"""

import re
from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

SHARED = "shared"


class Held(NamedTuple):
    """One grant in its holder's view.

    holder  the session, unique over all machines
    place   a file, a folder (with everything in it) or a pattern, from the top of a work tree
    fence   the number in the answer
    asked   the beginning of the request, in seconds
    began   the first moment of knowledge that it holds
    ended   the last such moment: before the release began, at a look
    mode    ``exclusive`` or ``shared``
    over    the moment after its end: until then it may have held; without it `ended` counts
    """

    holder: str
    place: str
    fence: int
    asked: float
    began: float
    ended: float
    mode: str = "exclusive"
    over: float | None = None

    @property
    def last(self) -> float:
        """The last moment when it may have held."""
        if self.over is None:
            return self.ended
        return self.over


class Answer(NamedTuple):
    """One answer about a file: at some moment from `asked` to `given` it has to be true.

    says    ``free``: no other session has a lock on it; ``held``: one has; ``released``: one has ended
    holder  the only session that the answer is about; empty for any but the asker
    """

    who: str
    says: str
    file: str
    asked: float
    given: float
    holder: str = ""


class Look(NamedTuple):
    """One look into a replica, like a hook's before a write.

    looker  the session that would write
    file    the file to write
    began, ended   the time of the look, in seconds
    fresh   True if the replica counted as fresh until the look had ended
    passed  True if no lock of another was in the way
    """

    looker: str
    file: str
    began: float
    ended: float
    fresh: bool
    passed: bool


class Findings(NamedTuple):
    """The faults of a history; all empty for a right one. Each pair stands in the order of time."""

    doubles: list[tuple[Held, Held]]
    falling: list[tuple[Held, Held]]
    slips: list[tuple[Held, Look]]

    def text(self, most: int = 4) -> str:
        """Return how many there are of each, and the first of them, to be read in a failed test."""
        return listed(("double holders", "falling fences", "slips of a settled grant"), self, most)


class HandedFindings(NamedTuple):
    """The faults of work handed between sessions; all empty for a right history.

    doubles    two sessions with one task at one moment
    lost       things that never arrived, each with its receiver
    doubled    things that arrived more often than they were sent
    differing  differences between machines in the end
    """

    doubles: list[tuple[Held, Held]]
    lost: list[tuple[str, str]]
    doubled: list[tuple[str, str]]
    differing: list[tuple[str, str]]

    def text(self, most: int = 4) -> str:
        """Return how many there are of each, and the first of them, to be read in a failed test."""
        return listed(("tasks of two", "lost", "doubled", "different in the end"), self, most)


def listed(names: tuple[str, ...], findings: tuple[list, ...], most: int) -> str:
    lines = []
    for name, found in zip(names, findings):
        lines.append(f"{len(found)} {name}")
        lines += [f"    {first}\n    {second}" for first, second in found[:most]]
    return "\n".join(lines)


def judge(history: list[Held], world: list[str], settled: list[Held] = (), looks: list[Look] = ()) -> Findings:  # type: ignore[assignment]
    """Return the faults in `history`, and in `looks` made while the grants in `settled` held.

    `world`: every file that can be locked; two places meet if both reach one of them.
    """
    return Findings(doubles(history, world), falling(history), slips(settled, looks))


def judge_handed(
    claims: list[Held], sent: list[tuple[str, str]], heard: list[tuple[str, str]], ends: list[dict[str, str]]
) -> HandedFindings:
    """Return the faults of work handed from session to session.

    claims  holder, task (its `place`) and time: any number of them one after the other, and never two at once
    sent    receiver and thing; `heard`: the same of arrivals. Each thing is sent to each once
    ends    each machine's final state, by a name
    """
    missing = Counter(sent) - Counter(heard)
    more = Counter(heard) - Counter(sent)
    names = {name for end in ends for name in end}
    kept = {name: [end.get(name, "nothing") for end in ends] for name in sorted(names)}
    differing = [(name, " | ".join(values)) for name, values in kept.items() if len(set(values)) > 1]
    tasks = sorted({claim.place for claim in claims})
    return HandedFindings(doubles(claims, tasks), sorted(missing.elements()), sorted(more.elements()), differing)


def reaches(place: str, file: str) -> bool:
    """Return True if a lock on `place` holds `file`: the very file, a folder over it, or a matching pattern.

    ``*`` and ``?`` stop at a slash, ``**/`` stands for any number of folders; a pattern without a slash counts at every
    depth.
    """
    if "*" not in place and "?" not in place:
        return not place or file == place or file.startswith(place.rstrip("/") + "/")
    wanted = place if "/" in place.rstrip("/") else f"**/{place}"
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    text = re.sub(r"\*\*/|\*\*|\*|\?|[^*?]+", lambda found: parts.get(found[0], re.escape(found[0])), wanted)
    return re.fullmatch(text, file) is not None


def doubles(history: list[Held], world: list[str]) -> list[tuple[Held, Held]]:
    """Return each two grants of different holders that held one file at one moment, unless both only read."""
    reached = {place: {file for file in world if reaches(place, file)} for place in {one.place for one in history}}
    found, open_ones = [], []
    for one in sorted(history, key=lambda held: held.began):
        open_ones = [other for other in open_ones if other.ended > one.began]
        for other in open_ones:
            both_read = one.mode == other.mode == SHARED
            if other.holder != one.holder and not both_read and reached[one.place] & reached[other.place]:
                found.append((other, one))
        open_ones.append(one)
    return found


def falling(history: list[Held]) -> list[tuple[Held, Held]]:
    """Return each grant with a fence that is not above that of a grant known before its request, with the greatest
    such.

    A repeated grant keeps its fence: it is one grant, requested at its first time. No two grants have one fence.
    """
    known = sorted(history, key=lambda held: held.began)
    first: dict[tuple, Held] = {}
    known = [one._replace(asked=min(one.asked, first.setdefault(_grant(one), one).asked)) for one in known]
    moments = [held.began for held in known]
    greatest: list[Held] = []
    for held in known:
        greatest.append(held if not greatest or held.fence > greatest[-1].fence else greatest[-1])
    found = []
    for one in known:
        before = bisect_right(moments, one.asked)
        if before and greatest[before - 1].fence >= one.fence and not _is_same(greatest[before - 1], one):
            found.append((greatest[before - 1], one))
    owners: dict[int, Held] = {}
    for one in known:
        owner = owners.setdefault(one.fence, one)
        if not _is_same(owner, one) and (owner, one) not in found:
            found.append((owner, one))
    return found


def slips(settled: list[Held], looks: list[Look]) -> list[tuple[Held, Look]]:
    """Return each look by another session that found its replica fresh, and passed, while a settled grant held the file."""
    ordered = sorted(looks, key=lambda look: look.began)
    moments = [look.began for look in ordered]
    found = []
    for held in settled:
        for look in ordered[bisect_right(moments, held.began) :]:
            if look.began > held.ended:
                break
            if (
                look.fresh
                and look.passed
                and look.ended <= held.ended
                and look.looker != held.holder
                and reaches(held.place, look.file)
            ):
                found.append((held, look))
    return sorted(found, key=lambda pair: pair[1].began)


def false_answers(history: list[Held], answers: list[Answer]) -> list[tuple[Answer, Held | str]]:
    """Return each answer that was true at no moment between its question and itself, with the grant against it."""
    return [(one, why) for one in answers if (why := _against(one, history)) is not None]


def _against(answer: Answer, history: list[Held]) -> Held | str | None:
    theirs = [
        one
        for one in history
        if one.holder != answer.who and answer.holder in ("", one.holder) and reaches(one.place, answer.file)
    ]
    if answer.says == "free":
        return next((one for one in theirs if one.began <= answer.asked and answer.given < one.ended), None)
    if answer.says == "held" and any(one.asked <= answer.given and answer.asked <= one.last for one in theirs):
        return None
    if answer.says == "released" and any(one.ended <= answer.given and answer.asked < one.last for one in theirs):
        return None
    return f"not one of {theirs}"


def _grant(one: Held) -> tuple[str, str, int, str]:
    """Return the identity of a grant."""
    return one.holder, one.place, one.fence, one.mode


def _is_same(one: Held, other: Held) -> bool:
    return _grant(one) == _grant(other)
