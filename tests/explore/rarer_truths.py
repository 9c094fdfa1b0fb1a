"""Truths about rarer deeds (``rarer``): waits, plans, mail and tasks of sessions that leave, leases of those that commit."""

from collections.abc import Iterator

from explore.history import NEVER, Ended, Grants, Left
from explore.rarer import FOLDER, LEASE
from explore.world import FAIL, JUMP, KILL, PAUSE

WAIT_NS = 2_000_000_000  # an edit waits so long for another session's write
Lines = list[tuple[int, list[str]]]


def rarer_truths(ended: Ended, left: Left | None, text: str) -> Iterator[str]:
    """Yield the false answers about these. `text`: the file at the end."""
    yield from whole(ended, text)
    if not ended.did(KILL, FAIL, JUMP, PAUSE):
        yield from circles(ended.words)
        yield from stale_commits(ended)
        yield from overtaken(ended.words)
        yield from undone_beside(ended.words)
        yield from replaced_unseen(ended.words, text)
        yield from edited_beside(ended)
        yield from removed_over(ended.words)
        yield from redone(ended, text)
    asked, ran = _at(ended.words, "asks", "Edit"), _at(ended.words, "runs")
    if _at(ended.words, "blamed") and asked and asked[0] > ran[0]:  # else the holder did not know of the command
        yield "a command that changes nothing is blamed for a change"
    if any(words == ["restored", ""] for _process, words in ended.words):
        yield "a restore has not kept the content that it replaced"
    yield from plans(ended)
    yield from orders(ended.words)
    if left is not None:
        yield from lapses_told(ended, left)
        yield from thefts_told(ended, left)
        yield from unanswered(ended, left)
        yield from vacated(ended, left)
        yield from deaths_told(ended, left)
        yield from sent_to_nobody(ended)


def _at(words: Lines, *deed: str) -> list[tuple[int, int]]:
    """Return (place, process) of each such word."""
    return [(at, process) for at, (process, one) in enumerate(words) if one[: len(deed)] == list(deed)]


def whole(ended: Ended, text: str) -> Iterator[str]:
    """Yield that a process has left half a file: undo and restore, in the middle of them, leave a whole one.

    Behind the kill another session may replace the file: with the change undone there is nothing to lose (SPEC 5.3).
    """
    for process in ended.killed:
        if any(at > ended.words.index((process, ["dies"])) for at, _other in _at(ended.words, "wrote", "Write")):
            continue
        own = [words[0] for other, words in ended.words if other == process and words[0] != "dies"]
        if own[-1:] in (["undoes"], ["restores"]) and "last\n" not in text:
            yield f"{process} was killed, and has left half a file"


def circles(words: Lines) -> Iterator[str]:
    """Yield that two sessions have waited for each other: the second one has to be told at once, and gives way."""
    if _at(words, "in", "vain"):
        yield "two sessions have waited for each other"


def stale_commits(ended: Ended) -> Iterator[str]:
    """Yield each commit that passed though the session's lock had lapsed and another has had the file since."""
    for let, process in _at(ended.words, "let", "commit"):
        asked = [at for at, other in _at(ended.words, "wants") if other == process and float(ended.words[at][1][3])]
        own = [at for at, other in _at(ended.words, "locked", "notes.md") if other == process]
        if not asked or not own:
            continue
        over = ended.moments[own[-1]] + LEASE * 1e9
        begun = next(at for at in range(let, -1, -1) if ended.words[at] == (process, ["asks", "commit", "notes.md"]))
        taken = [at for at, other in _at(ended.words, "locked", "notes.md") if other != process and at < begun]
        if any(ended.moments[at] > over for at in taken):
            yield f"instance-{process} may commit notes.md, though others have had it since its lock lapsed"


def plans(ended: Ended) -> Iterator[str]:
    """Yield that the plan has changed hands, though its owner is there."""
    owners = {words[1] for _process, words in ended.words if words[0] == "plan"}
    if len(owners) > 1 or "None" in owners:
        yield f"the plan was owned by {sorted(owners)}"


def orders(words: Lines) -> Iterator[str]:
    """Yield each task that was claimed before those that it waits for had ended."""
    needs = {one[1]: one[2:] for _process, one in words if one[0] == "requested"}
    for at, process in _at(words, "claimed"):
        early = [
            task
            for task in needs.get(words[at][1][1], ())
            if not any(before < at for before, _ in _at(words, "ends", task))
        ]
        if early:
            yield f"{process} was given task {words[at][1][1]} before {early[0]}, a condition of it"


def lapses_told(ended: Ended, left: Left) -> Iterator[str]:
    """Yield each session that was not told that its lock has lapsed, though another has been given the file since."""
    if ended.did(KILL, FAIL, JUMP, PAUSE):
        return
    grants = Grants(ended)
    for one in grants.found:
        if (one.holder, one.place) not in grants.leased or one.last >= NEVER:
            continue
        later = [other for other in grants.found if other.holder != one.holder and other.place == one.place
                 and other.asked > one.last and other.began < NEVER]  # fmt: skip
        freed = [at for at, process in _at(ended.words, "frees", one.place) if f"instance-{process}" == one.holder]
        if (
            later
            and not freed
            and not any(to == one.holder and "lapsed" in text for to, text, _read, _id in left.messages)
        ):
            yield f"{one.holder} was not told that its lock on {one.place} has lapsed"


def overtaken(words: Lines) -> Iterator[str]:
    """Yield each session that was given a lock, though another one had been in the line before it asked."""
    for asked, waiter in _at(words, "wants"):
        own = [at for at, process in _at(words, "wants") if process == waiter and at > asked][:1] or [len(words)]
        looks = [
            at for at, process in _at(words, "looks", words[asked][1][1]) if process == waiter and asked < at < own[0]
        ]
        for at, other in _at(words, "wants", words[asked][1][1]) if looks else ():
            if other == waiter or not looks[0] < at < looks[-1] or {words[at][1][2], words[asked][1][2]} == {"shared"}:
                continue
            said = next((then for then in range(at + 1, len(words)) if words[then][0] == other), len(words))
            if said < looks[-1] and words[said][1][0] == "locked":
                yield f"instance-{other} was given {words[at][1][1]} before instance-{waiter}, though that had asked earlier"


def undone_beside(words: Lines) -> Iterator[str]:
    """Yield each undo that was planned and made between the check of another session's write and the write.

    A write that was let pass before an earlier undo counts as made.
    """
    for made, process in _at(words, "replaces"):
        planned = max(at for at, other in _at(words, "plans") if other == process and at < made)
        before = max([at for at, other in _at(words, "replaces") if other == process and at < planned], default=-1)
        after = next((one for other, one in words[made + 1 :] if other == process), ["dies"])
        for let, other in _at(words, "let") if after[0] in ("undid", "redone") else ():
            written = next((at for at, one in _at(words, "writes") if one == other and at > let), 0)
            if other != process and before < let < planned and written > made:
                yield f"{process} has undone its change while {other} was about to write"


def replaced_unseen(words: Lines, text: str) -> Iterator[str]:
    """Yield each line that a person saved before an undo's last look at the file, and that is gone.

    Not so if a client was writing meanwhile, or the undo itself: it had read the file before.
    """
    if any(one[0] in ("restores", "swept") or one[:2] == ["wrote", "Write"] for _process, one in words):
        return
    writing, is_alone = set[int](), False
    looked = max([at for at, _process in _at(words, "replaces")], default=-1)
    for process, one in words[: looked + 1]:
        writing.discard(process)
        if one[0] in ("writes", "replaces"):
            writing.add(process)
            is_alone = False
        elif one[0] == "saves":
            is_alone = not writing
        elif one[0] == "saved" and is_alone and f"\n{one[1]}\n" not in text:
            yield f"an undo has replaced the line {one[1]}, which a person saved before"


def edited_beside(ended: Ended) -> Iterator[str]:
    """Yield each edit that was let pass between the check of another session's write and the write: it has to wait."""
    for let, process in _at(ended.words, "let", "Edit"):
        asked = max(at for at, other in _at(ended.words, "asks") if other == process and at < let)
        for before, other in _at(ended.words, "let"):
            made = [at for at, one in _at(ended.words, "writes") if one == other and at > before][:1]
            is_long = ended.moments[let] - ended.moments[before] > WAIT_NS
            if other != process and before < asked and made and made[0] > let and not is_long:
                yield f"{process} may edit the file while {other} is about to write it"


def removed_over(words: Lines) -> Iterator[str]:
    """Yield each new file that went with its folder: one of the two calls has to be denied, or to wait."""
    made = [at for at, _process in _at(words, "wrote", "Write", f"{FOLDER}/new.md")]
    if any(at > made[0] for at, _process in _at(words, "writes", "Bash", FOLDER) if made):
        yield "a new file was removed with its folder"


def redone(ended: Ended, text: str) -> Iterator[str]:
    """Yield each line that a session has taken back and brought back, and that is gone though all others only edit."""
    words = ended.words
    replaced = [*_at(words, "restores"), *_at(words, "swept"), *_at(words, "wrote", "Write")]
    for _done, process in [] if replaced else _at(words, "undid"):
        is_back = ended.roles[process] == "edits_and_undoes" and (process, ["not", "undone"]) not in words
        if is_back and f"\n{process}.0\n" not in text:
            yield f"{process} has brought its line back, and it was lost"


def deaths_told(ended: Ended, left: Left) -> Iterator[str]:
    """Yield each session that was not told of a file of a dead holder, though another session has joined since."""
    words = ended.words
    if ended.did(FAIL, PAUSE, JUMP) or not _at(words, "joins"):
        return
    for died, dead in _at(words, "dies"):
        held = [at for at, process in _at(words, "locked", "notes.md") if process == dead]
        if not held or [at for at, process in _at(words, "frees") if process == dead and at > held[-1]]:
            continue
        joined = [at for at, _process in _at(words, "joins") if at > died]
        for at, process in _at(words, "refused", "notes.md", f"instance-{dead}"):
            is_told = any(to == f"instance-{process}" and "is free" in text for to, text, _read, _id in left.messages)
            if joined and at < died and not is_told and len(_at(words, "joined")) == 1:
                yield f"instance-{process} was not told that the file of the dead instance-{dead} is free"


def thefts_told(ended: Ended, left: Left) -> Iterator[str]:
    """Yield each holder that was not told of a theft."""
    if ended.did(KILL, FAIL):
        return
    words = ended.words
    for took, thief in _at(words, "took"):
        begun = max(at for at, process in _at(words, "takes") if process == thief and at < took)
        for at, holder in _at(words, "locked", words[took][1][1]):
            ends = [then for then, process in _at(words, "frees", words[took][1][1]) if process == holder and then > at]
            is_held = holder != thief and at < begun and (not ends or ends[0] > took)
            later = any(
                process == holder and at < then < took for then, process in _at(words, "locked", words[took][1][1])
            )
            if (
                is_held
                and not later
                and not any(
                    to == f"instance-{holder}" and "was taken by" in text for to, text, _read, _id in left.messages
                )
            ):
                yield f"instance-{holder} was not told that its lock was taken"


def unanswered(ended: Ended, left: Left) -> Iterator[str]:
    """Yield each message that counts as read, and was in no answer; or that a poll was not given though no other process had it."""
    if ended.did(FAIL, JUMP, PAUSE):
        return
    words = ended.words
    answered = {int(one) for _process, said in words if said[0] == "answers" for one in said[1:]}
    over = max([at for at, _process in _at(words, "dies")], default=-1)
    for to, text, is_read, number in left.messages:
        if "[auto]" in text:
            continue
        if is_read and number not in answered:
            yield f"the message {text} counts as read, and was in no answer"
        sent = [at for at, _process in _at(words, "sent", text)]
        polls = [at for at, process in _at(words, "polls", to) if sent and at > max(over, *sent)
                 and any(then > at and one == process for then, one in _at(words, "answers"))]  # fmt: skip
        if not is_read and polls and number not in answered:
            yield f"the message {text} was there, and a poll was not given it"


def vacated(ended: Ended, left: Left) -> Iterator[str]:
    """Yield each task that is still a session's that has left."""
    if ended.did(FAIL, PAUSE):
        return
    gone = {f"instance-{process}" for _at_word, process in _at(ended.words, "left")}
    for task, status, who in left.tasks:
        if who in gone and status in ("claimed", "in_progress"):
            yield f"the task {task} is {status} by {who}, a session that has left"


def sent_to_nobody(ended: Ended) -> Iterator[str]:
    """Yield each message that was sent to a session behind its end, or behind the death of its client.

    Where a call has failed, the end of the session may not be noted.
    """
    words = [] if ended.did(FAIL) else ended.words
    own = [(at, one[0]) for at, (process, one) in enumerate(words) if process == 1]
    ends = [at for at, deed in own if deed == "left" or (deed == "dies" and (1, ["binds"]) in words[:at])]
    for at, _process in _at(words, "sends") if ends else ():
        if at > ends[0] and any(then > at for then, _ in _at(words, "sent", words[at][1][1])):
            yield f"{words[at][1][1]} was sent to a session that had left"
