"""The checker finds planted faults in a history, and accepts a right one."""

import random

import pytest
from explore.history import Ended, Left, judged
from explore.world import KILL, Decision
from support.history import Answer, Held, Look, doubles, falling, false_answers, judge, judge_handed, reaches, slips

WORLD = ["src/a.py", "src/b.py", "src/deep/c.py", "docs/x.md", "README.md"]
PLACES = ["src/a.py", "src", "src/b.py", "docs/x.md", "*.md", "src/**/*.py", "src/*.py"]


def held(
    holder: str, place: str, fence: int, began: float, ended: float, mode: str = "exclusive", asked: float | None = None
) -> Held:
    return Held(holder, place, fence, began - 0.01 if asked is None else asked, began, ended, mode)


@pytest.mark.parametrize("place, files", [
    ("src/a.py", ["src/a.py"]), ("src", ["src/a.py", "src/b.py", "src/deep/c.py"]), ("src/", ["src/a.py", "src/b.py", "src/deep/c.py"]),
    ("", WORLD), ("*.md", ["docs/x.md", "README.md"]), ("src/*.py", ["src/a.py", "src/b.py"]), ("src/**/*.py", ["src/a.py", "src/b.py", "src/deep/c.py"]),
    ("src/?.py", ["src/a.py", "src/b.py"]), ("sr", []), ("docs/**", ["docs/x.md"]),
])  # fmt: skip
def test_a_place_reaches_files(place: str, files: list[str]) -> None:
    assert [file for file in WORLD if reaches(place, file)] == files


@pytest.mark.parametrize(
    "first, second", [("src/a.py", "src/a.py"), ("src", "src/a.py"), ("src/a.py", "src/*.py"), ("*.md", "docs")]
)
def test_two_who_hold_one_file_at_once_are_found(first: str, second: str) -> None:
    history = [held("A", first, 1, 0, 2), held("B", second, 2, 1, 3)]
    assert doubles(history, WORLD) == [(history[0], history[1])]


@pytest.mark.parametrize("other", [
    held("B", "src/a.py", 2, 2, 3), held("A", "src/a.py", 2, 1, 3), held("B", "src/b.py", 2, 1, 3), held("B", "*.md", 2, 1, 3),
])  # fmt: skip
def test_one_after_the_other_and_apart_are_no_double_holders(other: Held) -> None:
    assert doubles([held("A", "src/a.py", 1, 0, 2), other], WORLD) == []


def test_readers_share_and_a_writer_among_them_is_found() -> None:
    readers = [held("A", "src", 1, 0, 9, "shared"), held("B", "src/a.py", 2, 1, 8, "shared")]
    assert doubles(readers, WORLD) == []
    writer = held("C", "src/a.py", 3, 2, 3)
    assert {pair[0].holder for pair in doubles([*readers, writer], WORLD)} == {"A", "B"}


def test_a_fence_that_goes_down_is_found_wherever_it_is() -> None:
    history = [held("A", "src/a.py", 5, 0, 1), held("B", "docs/x.md", 4, 2, 3)]
    assert falling(history) == [(history[0], history[1])]


def test_requests_at_one_time_may_get_their_fences_in_any_order() -> None:
    assert falling([held("A", "src/a.py", 5, 1, 2), held("B", "docs/x.md", 4, 1.5, 2, asked=0.5)]) == []


def test_a_fence_belongs_to_one_grant() -> None:
    history = [held("A", "src/a.py", 5, 1, 2), held("B", "docs/x.md", 5, 1.5, 2, asked=0.5)]
    assert falling(history) == [(history[0], history[1])]
    renewed = [held("A", "src/a.py", 5, 1, 2), held("B", "docs/x.md", 6, 2.5, 3), held("A", "src/a.py", 5, 4, 5)]
    assert falling(renewed) == [], "the first and the last are one grant"
    assert falling([*renewed, held("A", "src/a.py", 4, 6, 7)]) != []


def test_a_fresh_look_that_passes_a_settled_grant_is_found() -> None:
    grant = held("A", "src", 1, 1, 5)
    inside = Look("B", "src/a.py", 2, 2.1, fresh=True, passed=True)
    assert slips([grant], [inside]) == [(grant, inside)]
    for right in (
        inside._replace(fresh=False), inside._replace(passed=False), inside._replace(looker="A"), inside._replace(file="docs/x.md"),
        inside._replace(began=0.9, ended=1.2), inside._replace(began=4.9, ended=5.1),
    ):  # fmt: skip
        assert slips([grant], [right]) == []


def test_an_answer_is_false_that_was_true_at_no_moment_since_its_question() -> None:
    grants = [held("A", "src", 1, 1, 5)._replace(over=6), held("B", "docs/x.md", 2, 1, 9)]
    free, kept, over = (Answer("B", says, "src/a.py", 2, 4) for says in ("free", "held", "released"))
    assert false_answers(grants, [free, over]) == [(free, grants[0]), (over, f"not one of {grants[:1]}")]
    late = (free._replace(given=5.5), over._replace(given=5.5), free._replace(who="A"), free._replace(holder="B"))
    assert false_answers(grants, [kept, kept._replace(asked=5.9, given=7), *late]) == []
    assert false_answers(grants, [kept._replace(asked=6.5, given=7), kept._replace(holder="B")]) != []


def right_history(seed: int) -> list[Held]:
    """Grants of nine sessions as a correct server would give them: one at a time for every file, fences in order."""
    chance, now, fence, free = random.Random(seed), 0.0, 0, dict.fromkeys(WORLD, 0.0)
    history = []
    for _ in range(200):
        place = chance.choice(PLACES)
        files = [file for file in WORLD if reaches(place, file)]
        asked = now
        now = began = max(now, *(free[file] for file in files)) + chance.random() / 100
        ended, fence = began + chance.random() * 3, fence + 1
        free.update(dict.fromkeys(files, ended))
        history.append(Held(f"session {chance.randrange(9)}", place, fence, asked, began, ended))
    return history


@pytest.mark.parametrize("seed", range(5))
def test_one_fault_in_a_long_history_is_found(seed: int) -> None:
    history = right_history(seed)
    assert not any(judge(history, WORLD))
    chance = random.Random(seed)
    at = chance.randrange(100, 190)
    victim = history[at]
    file = next(file for file in WORLD if reaches(victim.place, file))
    moment = (victim.began + victim.ended) / 2
    thief = Held("thief", file, 1000, moment - 0.001, moment, moment + 0.0001)
    assert [pair for pair in doubles([*history, thief], WORLD) if thief in pair] == [(victim, thief)]
    back = victim._replace(fence=history[at - 50].fence)
    assert any(back in pair for pair in falling([*history[:at], back, *history[at + 1 :]]))
    look = Look("onlooker", file, moment, moment, fresh=True, passed=True)
    assert slips(history, [look]) == [(victim, look)]


def test_what_is_wrong_with_what_was_handed_is_found() -> None:
    claims = [held("A", "t1", 0, 0, 2), held("B", "t1", 0, 3, 4), held("B", "t2", 0, 1, 2)]
    sent, ends = [("A", "x"), ("B", "x"), ("B", "y")], [{"t1": "done"}, {"t1": "done"}]
    assert not any(judge_handed(claims, sent, sent[::-1], ends)), "one after the other, in any order"
    thief = held("C", "t1", 0, 1, 1.5)
    assert judge_handed([*claims, thief], sent, sent, ends).doubles == [(claims[0], thief)]
    assert judge_handed(claims, sent, sent[1:], ends).lost == [("A", "x")]
    assert judge_handed(claims, sent, [*sent, ("A", "x"), ("A", "z")], ends).doubled == [("A", "x"), ("A", "z")]
    assert judge_handed(claims, sent, sent, [*ends, {}]).differing == [("t1", "done | done | nothing")]


def schedule(*lines: str, level: str = "keep", killed: int | None = None) -> Ended:
    """Return a schedule of these words, each behind the number of its process; `killed`: a process at its end."""
    words = [(int(line[0]), line[2:].split(" ")) for line in lines]
    roles = ("holds",) * (1 + max(process for process, _words in words))
    if killed is None:
        return Ended(roles, level, words, list(range(len(words))), [], set())
    words.append((killed, ["dies"]))
    return Ended(roles, level, words, list(range(len(words))), [Decision(killed, 1, KILL, 0)], {killed})


def test_a_release_that_is_told_after_the_lock_has_come_back_ends_the_earlier_grant() -> None:
    before = ("1 wants notes.md exclusive 0", "1 locked notes.md a 1", "1 frees notes.md", "0 wants notes.md exclusive 0",
        "0 locked notes.md b 2", "0 gives notes.md instance-1", "0 gave notes.md instance-1 3")  # fmt: skip
    told = schedule(*before, "1 freed notes.md 1")
    assert judged(told, Left([("instance-1", "notes.md", None)], [], [], [])) == []
    assert "in the end the store says that instance-1 has no lock" in judged(told, Left([], [], [], []))[0]
    released = schedule(*before, "1 freed notes.md 1", "1 frees notes.md", "1 freed notes.md 1")
    assert judged(released, Left([], [], [], [])) == []


def test_a_lock_that_a_killed_call_had_for_a_moment_was_released() -> None:
    lines = ["0 tries notes.md", "1 wants notes.md exclusive 0", "1 refused notes.md instance-0"]
    text = "[auto] notes.md is free: claude-code session 0 (instance instance-0) released it"
    left = Left([], [("instance-1", text, 0, 1)], [], [])
    assert judged(schedule(*lines, killed=0), left) == []
    assert judged(schedule(lines[1], "1 waits behind notes.md instance-0", killed=0), left) != []


def test_a_lock_that_a_team_has_not_confirmed_may_be_lost_if_its_holder_is_told() -> None:
    ended = schedule("1 wants notes.md exclusive 0", "1 locked notes.md a 1", "0 far asks notes.md", killed=1)
    text = "[auto] Your lock on /work/notes.md held on this machine only, and holds no longer: far has had it"
    assert judged(ended, Left([], [("instance-1", text, 0, 1)], [], [])) == []
    assert "instance-1 has no lock" in judged(ended, Left([], [], [], []))[0]
