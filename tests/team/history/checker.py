"""What must be true of a history of locks that several machines have had, whatever broke meanwhile.

A history is what holders and onlookers have seen, by one clock that none of the faults moves (the boot clock of the
kernel that all of them run on). It is judged by itself: nothing of the code that made it is asked here, not even when
two patterns meet. A place reaches files of a small world that is given with it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

SHARED = "shared"


class Held(NamedTuple):
    """One grant, as its holder saw it.

    holder  the session, unique over all machines
    place   a file, a folder (which reaches all that is in it) or a pattern, from the top of a work tree
    fence   the number in the answer
    asked   when the holder began to ask, in seconds
    began   when it first knew that it holds
    ended   when it last knew so: before it began to release, and at a moment at which it looked
    mode    ``exclusive`` or ``shared``
    """

    holder: str
    place: str
    fence: int
    asked: float
    began: float
    ended: float
    mode: str = "exclusive"


class Look(NamedTuple):
    """One look into a replica, as a hook looks before a write.

    looker  the session that would write
    file    what it would write
    began, ended   when the look was made, in seconds
    fresh   whether the replica counted as fresh until the look had ended
    passed  whether no lock of another was found in the way
    """

    looker: str
    file: str
    began: float
    ended: float
    fresh: bool
    passed: bool


class Findings(NamedTuple):
    """What is wrong with a history; all empty where nothing is. Each pair stands in the order of time."""

    doubles: list[tuple[Held, Held]]
    falling: list[tuple[Held, Held]]
    slips: list[tuple[Held, Look]]

    def text(self, most: int = 4) -> str:
        """Return how many there are of each, and the first of them, to be read in a failed test."""
        return _listed(("double holders", "falling fences", "slips of a settled grant"), self, most)


class HandedFindings(NamedTuple):
    """What is wrong with what sessions have handed to each other; all empty where nothing is.

    doubles    two who had one task at one moment
    lost       what was sent and never arrived, each with whom it was for
    doubled    what arrived more often than it was sent
    differing  what machines have differently in the end
    """

    doubles: list[tuple[Held, Held]]
    lost: list[tuple[str, str]]
    doubled: list[tuple[str, str]]
    differing: list[tuple[str, str]]

    def text(self, most: int = 4) -> str:
        """Return how many there are of each, and the first of them, to be read in a failed test."""
        return _listed(("tasks of two", "lost", "doubled", "different in the end"), self, most)


def _listed(names: tuple[str, ...], findings: tuple[list, ...], most: int) -> str:
    lines = []
    for name, found in zip(names, findings):
        lines.append(f"{len(found)} {name}")
        lines += [f"    {first}\n    {second}" for first, second in found[:most]]
    return "\n".join(lines)


def judge(history: list[Held], world: list[str], settled: list[Held] = (), looks: list[Look] = ()) -> Findings:  # type: ignore[assignment]
    """Return what is wrong with `history`, and with `looks` made while the grants in `settled` held.

    `world`: every file that there is to lock; two places meet where both reach one of them.
    """
    return Findings(doubles(history, world), falling(history), slips(settled, looks))


def judge_handed(
    claims: list[Held], sent: list[tuple[str, str]], heard: list[tuple[str, str]], ends: list[dict[str, str]]
) -> HandedFindings:
    """Return what is wrong with what was handed from session to session.

    claims  who had which task (its `place`), when: any number of one after the other, and never two at once
    sent    for whom, and what; `heard`: by whom, and what. Each thing is sent to each once
    ends    what each machine has in the end, by a name
    """
    missing = Counter(sent) - Counter(heard)
    more = Counter(heard) - Counter(sent)
    names = {name for end in ends for name in end}
    kept = {name: [end.get(name, "nothing") for end in ends] for name in sorted(names)}
    differing = [(name, " | ".join(values)) for name, values in kept.items() if len(set(values)) > 1]
    tasks = sorted({claim.place for claim in claims})
    return HandedFindings(doubles(claims, tasks), sorted(missing.elements()), sorted(more.elements()), differing)


def reaches(place: str, file: str) -> bool:
    """Tell whether a lock on `place` holds `file`: the very file, a folder over it, or a pattern that fits.

    ``*`` and ``?`` stop at a slash, ``**/`` stands for any number of folders; a pattern without a slash counts at
    every depth.
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
    """Return each grant that was asked for after another was known, and has no greater fence, with the greatest such.

    A holder that gets what it holds once more keeps its fence: that is one grant, asked for when it was first. No two
    grants have one fence.
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


def _grant(one: Held) -> tuple[str, str, int, str]:
    """Return what tells one grant from another."""
    return one.holder, one.place, one.fence, one.mode


def _is_same(one: Held, other: Held) -> bool:
    return _grant(one) == _grant(other)
