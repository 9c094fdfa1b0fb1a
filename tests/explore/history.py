"""The answers of one schedule as a history: `support.history` judges it, for a team's storms as well.

The time is the place of a word among all words. A deed that failed, or that a kill cut short, may have been done or not.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from support.history import SHARED, Answer, Held, doubles, falling, false_answers, judge_handed, reaches

from explore.world import FAIL, JUMP, KILL, PAUSE, Decision

WORLD = ["notes.md", "other.md", "name:port"]
NEVER, END = math.inf, 10**6  # a moment that does not come; and one after all words
FAR, ELSEWHERE = "far", -1  # the session of another machine, and the process there
# Words of a process that may write the file from then on, and of one that has ended that.
BEGINS, ENDS = ("asks", "undoes", "restores"), ("denied", "missing", "redone", "restored", "failed", "crashed")
ASK = ("wants", "tries")  # for a lock
WAITERS = ("waits", "waits_by_tool", "cancels_wait", "shares_in_line", "circles")  # roles that wait in line
ABOUT = re.compile(r"\[auto\] (?:\S*/)?(\S+) is free")
FORMER = re.compile(r"\(instance (\S+?)\) released it")


class Ended(NamedTuple):
    """One schedule that has ended.

    words      (process, its words) in the order of the schedule; `moments`: of each, in nanoseconds
    killed     processes that were killed
    has_lost_power  True if a kill was a power cut: it may take the last commits
    """

    roles: tuple[str, ...]
    level: str
    words: list[tuple[int, list[str]]]
    moments: list[int]
    decisions: list[Decision]
    killed: set[int]
    has_lost_power: bool = False
    has_old_turn: bool = False

    def did(self, *actions: int) -> bool:
        """Return True if an action of one of these kinds was decided."""
        return any(decision.action in actions for decision in self.decisions)


class Left(NamedTuple):
    """The rows of the store in the end.

    locks     (holder, file, seconds of its lease)
    messages  (recipient, content, read, id)
    tasks     (id, status, assignee)
    """

    locks: list[tuple[str, str, float | None]]
    messages: list[tuple[str, str, int, int]]
    tasks: list[tuple[str, str, str | None]]
    values: list[str]


class Grants:
    """The grants of a schedule, from the words of its processes: each method takes in one word.

    found   all grants; `lapsed`: the ones with leases that ended before their release; `leased`: holders and places of leases
    none    answers that nothing was released; `some`: that something was
    """

    def __init__(self, ended: Ended):
        self.ended, self.found = ended, list[Held]()
        self.leased = set[tuple[str, str]]()
        self.lapsed = list[Held]()
        self.some = list[Answer]()
        self._open: dict[tuple[int, str], Held] = {}
        self._asked: dict[int, Held] = {}
        self._bound = set[int]()  # processes that take their locks with them
        self._leases: dict[tuple[int, str], tuple[float, int]] = {}
        self._thefts: dict[int, tuple[int, int, str]] = {}
        self._released = set[tuple[str, str, float]]()  # holder, file and question of grants that nobody had taken
        self._told_late = set[tuple[int, str]]()  # releases that are told when the lock is theirs anew
        self._for_nothing: list[tuple[int, Held]] = []
        for at, (process, words) in enumerate(ended.words):
            take = getattr(self, "_" + words[0], None)
            if take:
                take(at, process, *words[1:])
        self.found += [*self._asked.values(), *(self._bounded(key, one) for key, one in self._open.items())]
        self.found = [self._rests(one) for one in self.found]
        self.none = [
            Answer("", "free", held.place, at - 0.5, at - 0.5, held.holder)
            for at, held in self._for_nothing
            if self._rests(held) == held and (held.holder, held.place) not in self.leased
        ]

    def _close(self, key: tuple[int, str], ended: float, over: float) -> None:
        held = self._open.pop(key, None)
        if held is not None:
            self.found.append(self._bounded(key, held._replace(ended=min(ended, held.ended), over=over)))

    def _bounded(self, key: tuple[int, str], held: Held) -> Held:
        """Return a grant within its lease: it holds until then for certain, and so long after its last sign of life."""
        if key not in self._leases:
            return held
        seconds, asked = self._leases[key]
        self.leased.add((held.holder, held.place))
        until, over = self.ended.moments[asked] + seconds * 1e9, self._over(key[0], held, seconds * 1e9)
        sure = [at for at, moment in enumerate(self.ended.moments) if moment <= until]
        maybe = [at for at, moment in enumerate(self.ended.moments) if moment <= over]
        found = held._replace(ended=min(held.ended, sure[-1]), over=min(held.last, maybe[-1] + 1))
        if held.ended < NEVER and self.ended.moments[int(held.ended)] > over:
            self.lapsed.append(found)
        return found

    def _over(self, process: int, held: Held, lease: float) -> float:
        """Return the last moment of a lease: each word may have renewed it, before it was over."""
        begun = int(held.asked if held.began == NEVER else held.began)
        signs = [
            self.ended.moments[at]
            for at, (other, _words) in enumerate(self.ended.words)
            if other == process and begun <= at < held.ended
        ]
        if self.ended.did(FAIL, JUMP, PAUSE):  # a deed may have begun long before the word of its end
            return max([self.ended.moments[begun], *signs]) + lease
        over = self.ended.moments[begun] + lease
        for moment in signs:
            if moment <= over:
                over = max(over, moment + lease)
        return over

    def _binds(self, _at: int, process: int) -> None:
        self._bound.add(process)

    def _dies(self, at: int, process: int) -> None:
        if process not in self._bound:
            return
        for key in [key for key in self._open if key[0] == process]:
            self._close(key, at, at)
        if process in self._asked:
            self.found.append(self._asked.pop(process)._replace(ended=at, over=at))

    def _wants(self, at: int, process: int, place: str, mode: str, lease: str) -> None:
        self._asked[process] = Held(f"instance-{process}", place, 0, at, NEVER, NEVER, mode)
        self._leases.pop((process, place), None)
        if float(lease):
            self._leases[process, place] = float(lease), at

    def _locked(self, at: int, process: int, place: str, _id: str, _number: str = "") -> None:
        asked = self._asked.pop(process)._replace(began=at)
        known = self._open.get((process, place))
        if known is not None and known.began == NEVER:  # it was handed over, and the giver is not told yet
            self._open[process, place] = known = known._replace(began=at)
        if known is None or known.mode != asked.mode or known.ended < NEVER:
            self._close((process, place), at, at)
            self._open[process, place] = asked

    def _refused(self, _at: int, process: int, *_more: str) -> None:
        self._asked.pop(process, None)

    _waits = _circle = _refused

    def _frees(self, at: int, process: int, place: str) -> None:
        if (process, place) in self._open:
            self._open[process, place] = self._open[process, place]._replace(ended=at, over=NEVER)

    def _freed(self, at: int, process: int, place: str, released: str) -> None:
        if (process, place) in self._told_late:
            self._told_late.remove((process, place))
            return
        held = self._open.get((process, place))
        if held is not None and not int(released):
            self._for_nothing.append((int(held.ended), held))
        elif held is not None and held.began < NEVER:
            self._released.add((held.holder, held.place, held.asked))
            self.some.append(Answer("", "held", reached(place)[0], held.ended, at, held.holder))
        self._close((process, place), at, at)

    def _gives(self, at: int, process: int, place: str, to: str) -> None:
        key = (int(to.rpartition("-")[2]), place)
        if key in self._open and self._open[key].ended < NEVER:  # its release is done, and the taker not told yet
            self._told_late.add(key)
        self._close(key, at, at)
        if (process, place) in self._leases:
            self._leases[key] = self._leases[process, place][0], at
        self._frees(at, process, place)
        self._open[key] = Held(to, place, 0, at, NEVER, NEVER)  # from some moment on

    def _gave(self, at: int, process: int, place: str, to: str, _fence: str) -> None:
        key = (int(to.rpartition("-")[2]), place)
        self._close((process, place), at, at)
        if key in self._open:  # else it has been released before the giver was told
            self._open[key] = self._open[key]._replace(began=min(at, self._open[key].began))

    def _takes(self, at: int, process: int, place: str) -> None:
        self._wants(at, process, place, "exclusive", "0")
        self._thefts[process] = at, END, place

    def _took(self, at: int, process: int, place: str, _number: str) -> None:
        self._thefts[process] = self._thefts[process][0], at, place
        self._locked(at, process, place, "")

    def _rests(self, held: Held) -> Held:
        """Return the rest of a grant when another session has taken the lock by force, at a moment in an interval."""
        if (held.holder, held.place, held.asked) in self._released:
            return held
        for process, (begun, done, place) in self._thefts.items():
            if held.holder == f"instance-{process}" or place not in reached(held.place) or held.asked > done:
                continue
            if held.began < begun:
                held = held._replace(ended=min(held.ended, begun), over=min(held.last, done))
            elif held.began < NEVER:
                held = held._replace(began=NEVER, ended=NEVER, over=held.last)
        return held

    def _undoes(self, at: int, process: int) -> None:
        for place in WORLD[:2]:
            self._tries(at, process, place)

    def _redone(self, at: int, process: int, *_more: str) -> None:
        for place in WORLD[:2]:
            self._close((process, place), at, at)

    _restores, _restored = _undoes, _redone

    def _far(self, at: int, _process: int, how: str, place: str) -> None:
        """Take in a word about a session of another machine: it holds for certain once this machine knows it."""
        key = (ELSEWHERE, place)
        if how == "asks":
            self._open.setdefault(key, Held(FAR, place, 0, at, NEVER, NEVER))
        elif how == "refused":
            self._open.pop(key)
        elif how == "has":
            self._open[key] = self._open[key]._replace(began=at)
        elif how == "frees":
            self._frees(at, ELSEWHERE, place)
        else:
            self._close(key, at, at)

    def _tries(self, at: int, process: int, place: str) -> None:
        """Open a grant that may begin and end at any moment from now on."""
        self._open[process, place] = Held(f"instance-{process}", place, 0, at, NEVER, at, over=NEVER)

    def _tried(self, at: int, process: int, place: str) -> None:
        self._close((process, place), at, at)

    def _leaves(self, at: int, process: int) -> None:
        for other, place in list(self._open):
            if other == process:
                self._frees(at, process, place)

    def _left(self, at: int, process: int) -> None:
        if self.ended.did(FAIL, PAUSE):
            return  # a hook that finds the store busy for long leaves the end to the client's own
        for key in [key for key in self._open if key[0] == process]:
            self._close(key, at, at)


def reached(place: str) -> list[str]:
    return [file for file in WORLD if reaches(place, file)]


def judged(ended: Ended, left: Left | None) -> list[str]:
    """Return the false answers of a schedule, in a few words each."""
    grants = Grants(ended)
    found = [
        f"{one.holder} has {one.place}, and {other.holder} is given {other.place}"
        for one, other in doubles([*(one for one in grants.found if one.holder != FAR), *turns(ended)], WORLD)
    ]
    asked = [*answers(ended), *grants.some]
    if not has_team(ended):
        asked += grants.none
    found += numbers(ended)
    if left is not None:
        asked += at_the_end(ended, left, grants.leased)
        found += [*mail(ended, left), *told_once(ended, left, grants), *ends_of_tasks(ended, left), *kept(ended, left)]
    known = [*grants.found, *turns(ended, is_sure=False)]
    if ended.did(FAIL):  # a lock that is compared with a turn denies meanwhile; the turn's end may be lost by a fault
        known += waits(ended)
    found += [sentence(one) for one, _why in false_answers(known, asked)]
    if left is not None:
        found += releases(ended, left, [one for one in known if one not in grants.lapsed])
    found += [f"{sentence(answer)}; nor was it asked for" for answer, _why in behind(ended, known)]
    return found + claims(ended)


def has_team(ended: Ended) -> bool:
    """Return True if a lock may be lost that holds on this machine only."""
    return any(words[0] == FAR for _process, words in ended.words)


def behind(ended: Ended, known: list[Held]) -> Iterator[tuple[Answer, Held | str]]:
    """Yield the false answers that another session has asked first: there is no waiter, or both would only read.

    And the looks of waiters that were in vain, though nothing in `known` was in the way.
    """
    line, mode, asked = waits(ended), dict[int, str](), dict[int, int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] in ASK:
            asked[process], mode[process] = at, mode_of(words)
        elif words[0] == "looks" and words[1] in WORLD:
            answer = Answer(f"instance-{process}", "held", reached(words[1])[0], asked[process], at)
            asked[process] = at
            if not ended.did(KILL, FAIL, JUMP, PAUSE):
                yield from false_answers(_in_the_way([*known, *line], mode[process]), [answer])
        elif words[0] == "waits":
            answer = Answer(f"instance-{process}", "held", reached(words[2])[0], asked[process], at, words[3])
            yield from false_answers(_in_the_way(line, mode[process]), [answer])


def _in_the_way(known: list[Held], mode: str) -> list[Held]:
    """Return the locks and waiters that keep out a session asking in this mode: readers go together."""
    return [one for one in known if {one.mode, mode} != {SHARED}]


def mode_of(words: list[str]) -> str:
    """Return the mode that these words ask for a lock in."""
    if words[0] == "wants":
        return words[2]
    return "exclusive"


def numbers(ended: Ended) -> list[str]:
    """The number of a grant is above that of each one known before, and no two grants have one."""
    if ended.has_lost_power and ended.killed:
        return []
    grants, asked = [], dict[int, tuple[int, str]]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] in ("wants", "takes", "gives"):
            asked[process] = at, mode_of(words)
        elif words[0] in ("took", "gave") or (words[0] == "locked" and len(words) > 3):  # a tool tells no number
            holder = words[2] if words[0] == "gave" else f"instance-{process}"
            begun, mode = asked[process]
            grants.append(Held(holder, words[1], int(words[-1]), begun, at, at, mode))
    return [f"{one.holder} has {one.place} by number {one.fence}, and {other.holder} {other.place} by {other.fence}"
            for one, other in falling(grants)]  # fmt: skip


def sentence(answer: Answer) -> str:
    """Return a false answer for a person."""
    if answer.asked == END:
        who = "in the end the store says"
    elif answer.who:
        who = f"{answer.who} was answered"
    else:
        who = "an onlooker was answered"
    whose = answer.holder or "another session"
    what = {
        "free": f"{whose} has no lock on {answer.file}",
        "held": f"{whose} keeps {answer.file}",
    }
    return f"{who} that {what[answer.says]}, which is not true"


def waits(ended: Ended) -> list[Held]:
    """Return the times between questions for locks and their answers: a refusal may be for a session that asked first."""
    found, begun = list[Held](), dict[int, tuple[int, str, str]]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] in ASK:
            begun[process] = at, words[1], mode_of(words)
        elif words[0] in ("locked", "refused", "waits", "tried", "circle", "dies") and process in begun:
            asked, place, mode = begun.pop(process)
            found.append(Held(f"instance-{process}", place, 0, asked, NEVER, NEVER, mode, over=at))
    return found + [Held(f"instance-{one}", place, 0, at, NEVER, NEVER, mode)
                    for one, (at, place, mode) in begun.items()]  # fmt: skip


def turns(ended: Ended, is_sure: bool = True) -> list[Held]:
    """Return the files that sessions have for their turns: at `turn` a written file is its writer's until the turn ends.

    Not `is_sure`: also those that a write may have, for a refusal. A session has a file as its journal says (SPEC 6):
    where a fault has met a denied call, the note that takes the file may stand until the turn ends.
    """
    if ended.level != "turn" or (is_sure and (ended.did(FAIL, JUMP) or ended.killed)):
        return []
    found, began = [], dict[int, tuple[int, int]]()
    asked: dict[int, int] = {}
    let = set[int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] == "asks":
            asked[process] = at
            if not is_sure:
                began.setdefault(process, (at, at))
        elif words[0] == "let":
            began.setdefault(process, (asked[process], at))
            let.add(process)
        elif words[0] == "denied" and process in began and process not in let:
            if (process, ["errs"]) in ended.words[asked[process] : at]:
                continue
            first, at_first = began.pop(process)
            found.append(Held(f"instance-{process}", "notes.md", 0, first, at_first, at_first, over=at))
        elif words[:2] == ["frees", "notes.md"] and process in began:  # a release ends the turn's hold as well
            first, known = began.pop(process)
            let.discard(process)
            found.append(Held(f"instance-{process}", "notes.md", 0, first, known, at, over=NEVER))
        elif words == ["turn", "ends"] and process in began:
            first, known = began.pop(process)
            let.discard(process)
            over = next((n for n in range(at, len(ended.words)) if ended.words[n] == (process, ["turned"])), NEVER)
            if ended.did(FAIL, JUMP):
                over = NEVER
            found.append(Held(f"instance-{process}", "notes.md", 0, first, known, at, over=over))
    found += [Held(f"instance-{one}", "notes.md", 0, first, known, NEVER) for one, (first, known) in began.items()]
    if not is_sure:
        found = [one._replace(began=NEVER, ended=NEVER, over=one.last) for one in found]
    return found


def answers(ended: Ended) -> Iterator[Answer]:
    """Yield the answers about files that sessions were given."""
    asked: dict[int, int] = {}
    is_whole = not ended.did(FAIL, JUMP)  # else hooks fail open
    for at, (process, words) in enumerate(ended.words):
        me, since = f"instance-{process}", asked.get(process, at)
        if words[0] in ("asks", "wants", "looks", "undoes"):
            asked[process] = at
        elif words[0] == "undid" and is_whole:
            yield Answer(me, "free", "notes.md", since, at)
        elif words[0] == "let" and is_whole:
            yield Answer(me, "free", words[2], since, at)
        elif words[0] == "locked":
            yield Answer(me, "free", reached(words[1])[0], since, at, FAR)
        elif ended.roles[process] == "lapses_and_commits":
            continue  # it is denied for the lapse of its own lock
        elif words[0] == "denied" and words[3:] == ["by", "a", "lock"] and not ended.has_old_turn:
            yield Answer(me, "held", words[2], since, at)
        elif words[0] == "refused" and not ended.has_old_turn:
            yield Answer(me, "held", reached(words[1])[0], since, at, words[2])
        elif words[0] == "sees":
            seen = words[2].split(",")
            for one in range(len(ended.roles)):
                says = "held" if f"instance-{one}" in seen else "free"
                if says == "free" and has_team(ended):
                    continue
                yield Answer("", says, words[1], since, at, f"instance-{one}")
        elif words[0] == "hears" and (file := freed_in(" ".join(words[1:]))):
            yield Answer(me, "free", file, since_question(ended, process, file), at)


def freed_in(text: str) -> str:
    """Return the file that a message says to be free; empty for another message."""
    about = ABOUT.match(text)
    if about is None:
        return ""
    return (reached(about[1]) or reached("") * (about[1] == "work") or [about[1]])[0]


def refused(ended: Ended, process: int, file: str) -> list[int]:
    """Return the places of the words that tell of refusals of a file."""
    return [
        at
        for at, (other, words) in enumerate(ended.words)
        if other == process and words[0] in ("refused", "waits") and file in reached(words[-2])
    ]


def since_question(ended: Ended, process: int, file: str) -> int:
    """Return the place of the first question of a process for a file: it may have been refused from then on."""
    asked = (
        at
        for at, (other, words) in enumerate(ended.words)
        if other == process and (words[0] == "undoes" or (words[0] in ASK and file in reached(words[1])))
    )
    return next(asked, END)


def at_the_end(ended: Ended, left: Left, leased: set[tuple[str, str]]) -> Iterator[Answer]:
    """Yield the store's own answers, at the very end, about each holder and file."""
    held = {(holder, file) for holder, file, lease in left.locks if lease is None}
    lost = {(to, one) for to, text, *_ in left.messages for one in WORLD if f"{one} held on this machine only" in text}
    for one in range(len(ended.roles)):
        for place in (*WORLD, "*.md"):
            me = f"instance-{one}"
            if (me, place) in leased or ((one, ["binds"]) in ended.words and (one, ["dies"]) in ended.words):
                continue  # void, and there until the next cleaning
            if (me, place) in held:
                yield Answer("", "held", reached(place)[0], END, END, me)
            elif (me, reached(place)[0]) in lost:
                continue  # a team's server had given it to another machine
            elif not any(holder == me and reached(place)[0] in reached(file) for holder, file in held):
                yield Answer("", "free", reached(place)[0], END, END, me)


def releases(ended: Ended, left: Left, known: list[Held]) -> Iterator[str]:
    """Yield each message of a release that is not true: there was none, or another session had a lock all the while."""
    for to, text, _read, _id in left.messages:
        file, holder = freed_in(text), FORMER.search(text)
        if not file or holder is None:
            continue
        asked = since_question(ended, int(to[-1]), file)
        theirs = [one for one in known if one.holder == holder[1] and file in reached(one.place) and one.last >= asked]
        looks = [Answer(to, "free", file, one.ended, one.last) for one in theirs if one.ended < NEVER]
        if len(false_answers(known, looks)) == len(looks):
            yield f"{to} was told that {holder[1]} has released {file} and it is free, which is not true"


def mail(ended: Ended, left: Left) -> list[str]:
    """A message is sent once, and read once; an unread one is there."""
    if (1, ["leaves"]) in ended.words or (1, ["binds"]) in ended.words:
        return []  # its mail goes with it
    sent = [("instance-1", words[1]) for _process, words in ended.words if words[0] == "sent"]
    begun = {words[1] for _process, words in ended.words if words[0] == "sends"}
    read = [("instance-1", words[1]) for _process, words in ended.words if words[0] == "read"]
    there = [(to, text, is_read) for to, text, is_read, _id in left.messages if "[auto]" not in text]
    heard = read + [(to, text) for to, text, is_read in there if not is_read]
    if ended.killed or ended.did(FAIL):  # it may have been told that they were read, and not we
        heard += [(to, text) for to, text, is_read in there if is_read and (to, text) not in read]
        sent += sorted({(to, text) for to, text in heard if text in begun} - set(sent))
    findings = judge_handed([], sent, heard, [])
    found = [f"a message was lost: {one}" for one in findings.lost]
    if not ended.did(JUMP):  # of a reader that has not confirmed them in time they come again
        found += [f"a message came twice: {one}" for one in findings.doubled]
    copies = Counter((to, text) for to, text, _read in there)
    return found + [f"a message is there {count} times: {one}" for one, count in copies.items() if count > 1]


def told_once(ended: Ended, left: Left, grants: Grants) -> list[str]:
    """A session that was refused a file is told once that it is free, unless it has it by then."""
    found = []
    told = Counter((to, freed_in(text)) for to, text, _read, _id in left.messages)
    for process in range(len(ended.roles)):
        me = f"instance-{process}"
        for file in WORLD:
            refusals = refused(ended, process, file)
            inner = sum(words[0] in ASK for other, words in ended.words if other == process)
            is_waiter = ended.roles[process] in WAITERS
            most = len(refusals) + inner * is_waiter  # it may be refused before it is in the line
            most += 9 * ((process, ["undoes"]) in ended.words)  # and an undo takes locks
            if told[me, file] > most and not ended.did(KILL, FAIL):
                found.append(f"{me} was told {told[me, file]} times that {file} is free, refused {len(refusals)} times")
            if not refusals or told[me, file] or ended.did(KILL, FAIL, JUMP, PAUSE) or ended.level == "turn":
                continue
            own = [one for one in grants.found if one.holder == me and file in reached(one.place)]
            others = [one for one in grants.found if one.holder != me and file in reached(one.place)]
            has_left = any(words[0] == "leaves" for other, words in ended.words if other == process)
            if has_left or any(one.last > refusals[-1] for one in own):
                continue
            are_over = all(one.last < NEVER and (one.holder, one.place) not in grants.leased for one in others)
            if others and are_over and (me, file) not in grants.leased:
                found.append(f"{me} was never told that {file} is free")
    return found


def claims(ended: Ended) -> list[str]:
    """A task has one claimant at a time."""
    held: dict[str, Held] = {}
    found = []
    for at, (process, words) in enumerate(ended.words):
        if words[0] == "claimed":
            if words[1] in held:
                found.append(held.pop(words[1]))
            held[words[1]] = Held(f"instance-{process}", words[1], 0, at, at, NEVER)
        elif words[0] == "leaves":
            for task, one in held.items():
                if one.holder == f"instance-{process}":
                    held[task] = one._replace(ended=at)
    found += held.values()
    twice = judge_handed(found, [], [], []).doubles
    return [f"{one.holder} and {other.holder} have task {one.place}" for one, other in twice]


def ends_of_tasks(ended: Ended, left: Left) -> list[str]:
    """A task that was requested is there; one that was ended is done."""
    status = {task: (how, who) for task, how, who in left.tasks}
    found = []
    for process, words in ended.words:
        if words[0] == "requested" and words[1] not in status:
            found.append(f"the task {words[1]} is lost")
        elif words[0] == "ended" and status.get(words[1]) != ("done", f"instance-{process}"):
            found.append(f"the task {words[1]} was ended by {process}, and is {status.get(words[1])}")
        elif (
            words[0] == "claimed"
            and (process, ["leaves"]) not in ended.words
            and status.get(words[1], ("", ""))[1] != f"instance-{process}"
        ):
            found.append(f"the task {words[1]} was claimed by {process}, and is {status.get(words[1])}")
    return found


def kept(ended: Ended, left: Left) -> list[str]:
    """A value that was added stands at the place of the answer, and each reader saw those before its question."""
    found, asked = [], dict[int, int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] == "added" and left.values[int(words[2]) - 1 : int(words[2])] != [words[1]]:
            found.append(f"{process} added {words[1]} as number {words[2]} of {left.values}")
        elif words[0] == "asks" and words[1] == "for":
            asked[process] = at
        elif words[:2] == ["has", "values"]:
            seen = words[2:]
            before = [one[1] for _process, one in ended.words[: asked[process]] if one[0] == "added"]
            if seen != left.values[: len(seen)] or not set(before) <= set(seen):
                found.append(f"{process} read {seen} of {left.values}, behind {before}")
    return found


class Commit(NamedTuple):
    """A commit of the branch: its name, the process that made it, and the lines of the file in it."""

    name: str
    by: str
    lines: list[str]


def commits(ended: Ended, chain: list[Commit]) -> Iterator[str]:
    """Yield the false answers about commits. `chain`: those of the branch, the oldest first.

    A commit has changes of its own session alone; one that was told of is there, with all that the session had written.
    """
    for before, one in zip(chain, [] if ended.did(FAIL, JUMP) else chain[1:]):  # authors are known by notes and times
        for line in set(before.lines) ^ set(one.lines):
            if not line.startswith(f"{one.by}."):
                yield f"the commit of {one.by} has a change of the line {line}"
    known, last = {one.name: one for one in chain}, chain[-1].lines
    own = dict[int, list[str]]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] == "wrote" and is_alone(ended, at) and not ended.did(FAIL, JUMP):
            own.setdefault(process, []).extend(words[3:])
        elif words[0] == "committed":
            made = known.get(words[1])
            if made is None or made.by != str(process):
                yield f"{process} was told of a commit {words[1][:12]} that is not there"
            elif not set(own.get(process, ())) <= set(made.lines):
                yield f"{process} has written {own[process]}, and committed {made.lines}"
        elif words[:2] == ["declined", "nothing"] and not ended.did(FAIL):
            if not set(own.get(process, ())) <= set(last):
                yield f"{process} has nothing to commit, and has written {own[process]}"
        elif words[0] == "declined" and "locked" in words:
            yield f"{process} found the index locked, and no git was at work"


def is_alone(ended: Ended, at: int) -> bool:
    """Return True if no other process was in the middle of anything during the call with the word `at`.

    Else the times of files do not tell the writers for certain.
    """
    process = ended.words[at][0]
    begun = max(n for n in range(at) if ended.words[n][0] == process and ended.words[n][1][0] == "asks")
    ends = (n for n in range(at, len(ended.words)) if ended.words[n] == (process, ["hook", *ended.words[n][1][1:]]))
    busy = set[int]()
    for n, (other, words) in enumerate(ended.words[: next(ends, END)]):
        if words[0] in (*BEGINS, "saves"):
            busy.add(other)
        elif words[0] in (*ENDS, "saved") or words[:2] == ["hook", "PostToolUse"]:
            busy.discard(other)
        if n >= begun and busy - {process}:
            return False
    return True


def values_in(text: str | None) -> list[str]:
    """Return the items of a kept list."""
    return [str(one) for one in json.loads(text or "[]")]
