"""One step of a file, parted by what the inputs of write tools explain.

Between two known contents of a file there are calls with known inputs. Each is replayed on the content before it. The
lines that an input brings, and those that it removes, are its call's, whenever the write was made. What is left over
between the last replayed content and the one that was found is another's.

A call may have failed, or its user may have refused it: its lines are not there. If nothing of it is there, and all
that it would remove still is, it counts as never made. If what it would remove is gone but nothing that it would bring
is there, another one may have removed it: then both are authors.

A client may run a formatter after a call. A change that only lays out anew the lines that a call has just brought is
that call's (``layout``). Another change beside such a one may be the formatter's or a person's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from swarm_hook_core.traces.equal_lines import split_lines
from swarm_hook_core.traces.versions.layout import Words, laid_out, letters_of, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    Lines = Counter[bytes]
    # the possible contents after a call, by the content before it
    Replay = Callable[["bytes | None"], "list[bytes | None]"]

MOST_CALLS = 60  # of one step that are parted; of more, the first ones count as one
MOST_TESTED = 40  # calls that are left out in turn, to see if they were made


class Part:
    """A content that one call has left.

    call      the caller's own value for the call; of several, the last one
    content   None: no file
    is_sure   False if another author may have removed what the call would have removed
    is_layout True if it only lays out the lines before it anew
    others    calls that may have left it just as well
    """

    __slots__ = ("call", "content", "is_sure", "is_layout", "others")

    def __init__(self, call: Any, content: bytes | None, is_layout: bool = False):
        self.others: list[Any] = []
        self.is_layout = is_layout
        self.call = call
        self.content = content
        self.is_sure = True


class Explained:
    """The result.

    parts      the contents that calls have left, in order; the last one is `after` if nothing is left over
    fitting    calls that were replayed, or changed nothing: their writes are over
    unfitting  calls with an input that did not fit: they may have made what is left over, or have failed
    formatted  True if a formatter has changed lines of the calls
    """

    __slots__ = ("parts", "fitting", "unfitting", "formatted")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.fitting: list[Any] = []
        self.unfitting: list[Any] = []
        self.formatted = False


def explain(
    before: bytes | None, after: bytes | None, calls: Sequence[tuple[Any, Replay, bool]]
) -> Explained:  # fmt: skip
    """Part the step from `before` to `after`; None: no file.

    `calls`: ``[(value, replay, may be made later)]`` in the order of time.
    """
    found = Explained()
    made = _replayed(before, after, calls, found)
    if _last(before, made) != after and not _is_laid_out(before, _last(before, made), after):
        made = _without_unmade(before, after, made, calls, found)
    found.parts = [Part(calls[index][0], content) for index, content in made]
    found.fitting += [calls[index][0] for index, _content in made]
    last = _last(before, made)
    if found.unfitting:
        for part, (index, _content) in zip(found.parts[:MOST_TESTED], made):
            if _last(before, _replayed(before, after, calls, None, without=index)) == last:
                part.others = list(found.unfitting)
    if last != after and made:
        base, is_same = before, _is_laid_out(before, last, after)
        words = Words(before or b"", after or b"")
        for part, (index, content) in zip(found.parts, made):
            is_evident = _is_evident(base, content, after, words)
            part.is_sure = is_same or is_evident or _is_needed(before, after, made, calls, index)
            base = content
        _add_formatted(found, before, after)
    # The last parts. The first of them has the lines of all earlier ones: any of their calls may be its own.
    few = found.parts[-MOST_CALLS:]
    for part in found.parts[:-MOST_CALLS]:
        few[0].others += [part.call, *part.others]
        few[0].is_sure = few[0].is_sure and part.is_sure
    found.parts = few
    return found


def _last(before: bytes | None, made: list[tuple[int, bytes | None]]) -> bytes | None:
    if not made:
        return before
    return made[-1][1]


def _replayed(
    before: bytes | None, after: bytes | None, calls: Sequence[tuple[Any, Replay, bool]], found: Explained | None,
    without: int = -1,
) -> list[tuple[int, bytes | None]]:  # fmt: skip
    """Return ``[(index of the call, content after it)]`` of the calls that change something."""
    made: list[tuple[int, bytes | None]] = []
    content = before
    for index, (call, replay, _is_open) in enumerate(calls):
        options = [content]
        if index != without:
            options = replay(content)
        if not options:
            if found is not None:
                found.unfitting.append(call)
            continue
        best = options[0]
        if after in options:
            best = after
        elif len(options) > 1:
            wanted = _counted(after)
            best = min(options, key=lambda option: _distance(_counted(option), wanted))
        if best != content:
            made.append((index, best))
            content = best
        elif found is not None and index != without:
            found.fitting.append(call)
    return made


def _without_unmade(
    before: bytes | None, after: bytes | None, made: list[tuple[int, bytes | None]],
    calls: Sequence[tuple[Any, Replay, bool]], found: Explained,
) -> list[tuple[int, bytes | None]]:  # fmt: skip
    """Return `made` without the calls that were never made, as far as the content that was found tells."""
    kept = list(calls)
    wanted, base, unmade = _counted(after), before, []
    words = Words(before or b"", after or b"")
    for index, content in made:
        old, new = _counted(base), _counted(content)
        brought, removed = new - old, old - new
        is_there = words.are_found(brought, removed) or _is_shown(brought, old, wanted)
        if not is_there and _are_kept(removed, old, wanted):
            unmade.append(index)
        base = content
    for index in unmade[:MOST_TESTED]:
        if _is_needed(before, after, made, kept, index):
            continue
        call, _replay, is_open = kept[index]
        kept[index] = (call, lambda content: [content], is_open)
        if not is_open:
            found.fitting.append(call)
        made = _replayed(before, after, kept, None)
    return made


def _is_laid_out(before: bytes | None, content: bytes | None, after: bytes | None) -> bool:
    """Return True if `after` is `content` in another layout, and both have other words than `before`."""
    if content is None or after is None or words_of(content) != words_of(after):
        return False
    return words_of(content) != words_of(before or b"")


def _is_evident(base: bytes | None, content: bytes | None, after: bytes | None, words: Words) -> bool:
    """Return True if a line that the call has brought is there; of a call that only removes, if all that is gone."""
    old, new, wanted = _counted(base), _counted(content), _counted(after)
    brought, removed = new - old, old - new
    if words.are_found(brought, removed) or _is_shown(brought, old, wanted):
        return True
    return not brought and all(wanted[line] < old[line] for line in removed) and not _are_kept(removed, old, wanted)


def _is_shown(brought: Lines, old: Lines, wanted: Lines) -> bool:
    """Return True if one of these lines is there more often than before, perhaps in another layout."""
    if any(wanted[line] > old[line] for line in brought):
        return True
    before, after = _lettered(old), _lettered(wanted)
    return any(after[letters] > before[letters] for letters in _lettered(brought))


def _are_kept(removed: Lines, old: Lines, wanted: Lines) -> bool:
    """Return True if all of these lines are there as often as before, perhaps in another layout."""
    if all(wanted[line] >= old[line] for line in removed):
        return True
    before, after, gone = _lettered(old), _lettered(wanted), _lettered(removed)
    return bool(gone) and all(after[letters] >= before[letters] for letters in gone)


def _lettered(lines: Lines) -> Lines:
    """Return the lines by their letters and digits alone, without those that have none."""
    found: Lines = Counter()
    for line, count in lines.items():
        found[letters_of(line)] += count
    del found[b""]
    return found


def _is_needed(
    before: bytes | None, after: bytes | None, made: list[tuple[int, bytes | None]],
    calls: Sequence[tuple[Any, Replay, bool]], index: int,
) -> bool:  # fmt: skip
    """Return True if the content that was found is farther away without this call: a later one may rest upon it.

    So it is also without a look at the layout, which a formatter may have changed in all lines.
    """
    if len(made) > MOST_TESTED:
        return False
    without = _replayed(before, after, calls, None, without=index)
    contents = (_last(before, without), _last(before, made), after)
    farther, nearer, wanted = map(_counted, contents)
    if _distance(farther, wanted) <= _distance(nearer, wanted):
        return False
    return _distance(_lettered(farther), _lettered(wanted)) > _distance(_lettered(nearer), _lettered(wanted))


def _counted(content: bytes | None) -> Lines:
    return Counter(split_lines(content or b""))


def _distance(one: Lines, other: Lines) -> int:
    return sum(((one - other) + (other - one)).values())


# ------------------------------------------------------------------------------------------- formatters


def _add_formatted(found: Explained, before: bytes | None, after: bytes | None) -> None:
    """Add a part with the changes of the calls' own lines that a formatter may have made, if there are any."""
    last = found.parts[-1]
    if last.content is None or after is None:
        return
    own, base = Counter[bytes](), before
    for part in found.parts:
        own |= _counted(part.content) - _counted(base)
        base = part.content
    made = b"".join(laid_out(split_lines(last.content), split_lines(after), own))
    if made != last.content:
        found.formatted = True
        found.parts.append(Part(last.call, made, is_layout=True))
