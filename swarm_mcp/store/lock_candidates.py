"""Candidates: locks that may meet a reach, found by one question that indexes answer.

The question finds every lock that meets, and some that do not: ``lock_request.meet`` tells them apart. Below a folder
there may be any number of locks. So SQLite leaves out locks that a pattern cannot cover, and locks that cannot keep the
asker out.
"""

from __future__ import annotations

from swarm_hook_core import wildmatch
from swarm_hook_core.lookup import GLOB, ascii_lower
from swarm_hook_core.lookup.sqlite import NAME_OF_FILE, SPELLED
from swarm_hook_core.paths import NO_CASE, above
from swarm_mcp.domain.lock import EXCLUSIVE, SHARED
from swarm_mcp.store.database import range_end
from swarm_mcp.store.lock_request import Reach, forms, ignores_case, segments_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NamedTuple
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

# In the very words of its index, or SQLite does not take it.
_UNKEYED = f"c.path_key IS NULL AND {NAME_OF_FILE.replace('file', 'c.file')}"
_TOPS = ["/", NO_CASE + "/"]
# A pattern as a GLOB, and the condition for patterns that are plain enough for that: see `_not_beside`.
_AS_GLOB = "'*' || replace(c.pattern, '**/', '*') || CASE WHEN c.pattern GLOB '*/' THEN '*' ELSE '' END"
_PLAIN = " AND ".join(f"c.pattern NOT GLOB '{odd}'" for odd in ("*[[\\]*", "*//*", "*/.*", ".*"))


_known: dict[Any, tuple[str, list[Any]]] = {}  # questions: a session asks the same of a file over and over
MOST_KNOWN = 500
_texts: dict[str, str] = {}  # statements by their own words


class Asking(NamedTuple):
    """The session that asks for a lock, and the mode: locks that can never keep it out need not be found.

    `only`, SQL of ``context`` as `c` with its values `given`: only such locks count.
    """

    instance_id: str
    agent: str = ""
    mode: str = EXCLUSIVE
    only: str = ""
    given: tuple[Any, ...] = ()


def question(reach: Reach, asking: Asking | None = None, columns: str = "c.rowid") -> tuple[str, list[Any]]:
    """Return the SELECT, and its values, of locks that may meet `reach`; the same row may come more than once.

    With `asking`, locks that cannot keep it out are left out, except its own lock on that very path or pattern.
    """
    known = not reach.pattern and (reach, asking, columns)  # a parsed pattern has no hash
    if known and known in _known:
        return _known[known]
    parts: list[str] = []
    values: list[Any] = []
    only, given = (f" AND {asking.only}", asking.given) if asking and asking.only else ("", ())
    for condition, some in _places(reach, asking):
        parts.append(f"SELECT {columns} FROM context c{condition}{only}")
        values += [*some, *given]
    found = " UNION ALL ".join(parts), values
    if known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[known] = found
    return found


def first_look(reach: Reach, asking: Asking) -> tuple[str, list[Any]]:
    """Return a condition, and its values, that is true if locks may meet `reach`: `question` says which.

    Mostly all locks on paths are keyed as they are spelled, and letter case counts for all of them or for none. Then
    one form of the path and of the folders over it is looked up: the many other places are only asked about where a
    lock of another kind exists.
    """
    found, values = question(reach, asking)
    full = f"EXISTS ({found})"
    caseless = (reach.key or "").startswith(NO_CASE)
    if reach.pattern or reach.key is None or not reach.key.startswith((NO_CASE + "/", "/")):
        return full, values
    where, (others, who) = "SELECT 1 FROM context c WHERE c.type = 'lock' AND", _others(asking)
    same, named = _or_same(reach, others)
    places = [place for place in forms(reach) if place.startswith(NO_CASE) == caseless]
    names = list(dict.fromkeys([*(name for place in places for name in (place, *above(place))), _TOPS[caseless]]))
    looks = [f"{where} c.path_key IN ({','.join('?' * len(names))}){same}"]
    given = [*names, *who, *named]
    for place in places:
        looks.append(f"{where} c.path_key >= ? AND c.path_key < ?{others}")
        given += [place.rstrip("/") + "/", place.rstrip("/") + "0", *who]
    # Left to itself SQLite would look through every lock.
    odd = [f"{where.replace(' WHERE', ' INDEXED BY swarm_lock_spelling_idx WHERE')} {SPELLED}"]
    for low, high in ((GLOB, range_end(GLOB)), ("/", "0") if caseless else (NO_CASE, range_end(NO_CASE))):
        odd.append(f"{where} c.path_key >= '{low}' AND c.path_key < '{high}'")
    some = " OR ".join(f"EXISTS ({one})" for one in odd)
    return f"(EXISTS ({' UNION ALL '.join(looks)}) OR (({some}) AND {full}))", [*given, *values]


def numbered(sql: str, values: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a statement in which a value that comes more than once is given once.

    Two statements with the same words are one object: SQLite's driver finds a prepared statement by its words, and
    would read a long text for its hash each time.
    """
    numbers = {value: str(at) for at, value in enumerate(dict.fromkeys(values), 1)}
    parts = sql.split("?")
    text = parts[0] + "".join(f"?{numbers[value]}{part}" for value, part in zip(values, parts[1:]))
    if len(_texts) >= MOST_KNOWN:
        _texts.clear()
    return _texts.setdefault(text, text), tuple(numbers)


def _places(reach: Reach, asking: Asking | None) -> Iterator[tuple[str, list[Any]]]:
    """Yield where to look: each a condition, from its WHERE on, and the values in it."""
    if reach.key is None:
        yield f" WHERE c.type = 'lock' AND {SPELLED} AND c.file = ?", [reach.file]
        return
    where, (others, who) = " WHERE c.type = 'lock' AND ", _others(asking)
    same, named = _or_same(reach, others)
    places = forms(reach)
    names = list(dict.fromkeys([*(name for place in places for name in (place, *above(place))), *_TOPS]))
    marks = ",".join("?" * len(names))
    yield f"{where}c.path_key IN ({marks}){same}", [*names, *who, *named]
    yield f"{where}{SPELLED} AND c.file IN ({marks}){same}", [*names, *who, *named]
    # Without a key, and perhaps by a link. Left to itself SQLite would read every lock without a key.
    last = list({ascii_lower(name.rsplit("/", 1)[-1]) for name in names})
    in_it = f"{_UNKEYED} IN ({','.join('?' * len(last))})"
    yield f" INDEXED BY swarm_lock_name_idx{where}{in_it}", last
    # Patterns, by the folder that all they cover is in.
    deep = bool(reach.pattern) or reach.segments[-1:] == (wildmatch.DEEP,)
    covering, paths = ("", []) if deep else _not_beside(reach)
    tops = [GLOB + name for name in names]
    yield f"{where}c.path_key IN ({marks}){same}{covering}", [*tops, *who, *named, *paths]
    for place in places:
        low, high = place.rstrip("/") + "/", place.rstrip("/") + "0"
        if deep:
            yield f"{where}c.path_key >= ? AND c.path_key < ?{others}", [GLOB + low, GLOB + high, *who]
        if reach.pattern:
            for condition, some in _covered(reach, place):
                yield f"{where}{condition}{others}", [*some, *who]
        else:
            yield f"{where}c.path_key >= ? AND c.path_key < ?{others}", [low, high, *who]
            if not place.startswith(NO_CASE):
                yield f"{where}{SPELLED} AND c.file >= ? AND c.file < ?{others}", [low, high, *who]


def _others(asking: Asking | None) -> tuple[str, list[Any]]:
    """Return a condition, and its values, for locks that can keep `asking` out: as ``domain.lock.keeps_out``."""
    if asking is None:
        return "", []
    if asking.mode == SHARED:
        shared = f" AND c.mode IS NOT '{SHARED}'"
    else:
        shared = ""
    own = "c.instance_id = ? AND coalesce(c.agent, '') IN ('', ?)"
    return f" AND NOT ({own}){shared}", [asking.instance_id, asking.agent]


def _or_same(reach: Reach, others: str) -> tuple[str, list[Any]]:
    """Return `others` with an exception for locks on this very path or pattern, and the further values."""
    if not others:
        return "", []
    if reach.pattern:
        return f" AND (TRUE{others} OR c.pattern = ?)", [reach.pattern]
    marks = ",".join("?" * len(reach.keys))
    return f" AND (TRUE{others} OR +c.path_key IN ({marks}) OR +c.file IN ({marks}))", [*reach.keys, *reach.keys]


def _covered(reach: Reach, place: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield where to look below the folder `place`, a form of the one that all a pattern covers is in."""
    between = [place.rstrip("/") + "/", place.rstrip("/") + "0"]
    in_range = "c.path_key >= ? AND c.path_key < ?"
    if ignores_case(reach) and not place.startswith(NO_CASE):
        yield in_range, between  # a place of letter case inside of one without: nearly never
        return
    files, folders, too_deep = globs(segments_of(reach, place.startswith(NO_CASE)), place)
    within, values = (
        (f"{in_range} AND c.path_key NOT GLOB ?", [*between, too_deep]) if too_deep else (in_range, between)
    )
    yield f"{within} AND c.path_key GLOB ?", [*values, files]
    some = " OR ".join(["c.path_key GLOB ?"] * len(folders))
    yield f"c.base IS NOT NULL AND {within} AND ({some})", [*values, *folders]
    if not place.startswith(NO_CASE):
        # By another name than its key; those that share a file stand under spellings of it, with `/./`.
        spelled = f"{SPELLED} AND c.file >= ? AND c.file < ?"
        yield f"{spelled} AND (c.file GLOB ? OR c.file GLOB '*/./*') AND c.pattern IS NULL", [*between, files]
        yield f"{spelled} AND c.base IS NOT NULL AND c.pattern IS NULL", between


def _not_beside(reach: Reach) -> tuple[str, list[str]]:
    """Return the condition, and its values, without most patterns that do not cover the path of `reach`.

    Only plain patterns are told so. Between the letters of a GLOB a pattern's ``**/`` is any letters; a pattern that
    ends in a slash covers the files below.
    """
    if ignores_case(reach):
        return "", []
    paths = list(dict.fromkeys(key for key in (reach.key or "", *reach.keys) if not key.startswith(NO_CASE)))
    beside = " AND ".join([f"? NOT GLOB {_AS_GLOB}"] * len(paths))
    return f" AND (c.base NOT GLOB '{NO_CASE}*' AND {_PLAIN} AND {beside}) IS NOT TRUE", paths


def globs(segments: tuple[Any, ...], folder: str) -> tuple[str, list[str], str]:
    """Return SQLite's GLOBs for a parsed pattern below `folder`; the ``*`` of a GLOB crosses slashes.

    One GLOB for the files, some for folders that may hold a covered file, and one for paths that are too deep to be
    either (empty without such a limit).
    """
    begun = len([part for part in folder.removeprefix(NO_CASE).split("/") if part])
    text = start = _literal(folder.rstrip("/"))
    folders: list[str] = []
    deep = glued = False
    for part in segments[begun:]:
        if part is wildmatch.DEEP:
            text, glued = text + "/*", True
            if not deep:
                folders.append(text)
            deep = True
        else:
            if isinstance(part, str):
                segment = _literal(part)
            else:
                exact = [ranges[0][0] if ranges and ranges[0][0] == ranges[-1][1] else None for ranges in part]
                segment = "".join("*" if code is None else _literal(chr(code)) for code in exact)
            text, glued = text + ("" if glued else "/") + segment, False
            if not deep:
                folders.append(text)
    return text, folders, "" if deep else start + "/*" * (len(segments) - begun + 1)


def _literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
