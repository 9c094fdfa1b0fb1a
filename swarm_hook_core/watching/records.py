"""The records of calls that are being watched, and the marks of what holders do themselves meanwhile.

    <state>/watched/<session>/<call>.<when>-<id>-<random>   one call that has begun; nothing was heard of its end
    <state>/acting/<instance>           calls that this session began itself: lines "<ns> <file's digest or *> <call>",
                                        and, of one of its agents, " <agent's digest>"
    <state>/acting/_ended               calls that have ended: lines "<ns> <call> -"

`call` is what its beginning and its end have in common (``call_key``), `id` a digest of the client's own id for it,
which not every way of asking carries.

`watched` is there only while some call is watched: a hook that finds none has nothing to do. A record belongs to
whoever has renamed it, so two hooks that end at once never take the same one.
"""

import os

from swarm_hook_core.json_text import LEVELS, dumps, loads, loads_outer
from swarm_hook_core.state import (
    acting_dir,
    edited_dir,
    make_private,
    name_of,
    open_private,
    read_private,
    watched_dir,
    write_private,
)
from swarm_hook_core.watching.snapshot import digest_of

DROPPED_SECONDS = 86400  # a session silent for so long will not ask what became of its calls
RECORDS_AT_ONCE = 16  # of one session; more would only be calls whose end nobody tells
MOST_MARKS = 100  # files that one call is said to write by name
MARKS_BYTES = 64 * 1024  # of one session, before all but the newest go
MARKS_LEFT = 400
LARGEST_RECORD = 64 << 20  # bytes
UNENDED_NS = 600 * 10**9

# No plain id has an underscore, and what `name_of` makes of others ends in digits: none can mean these.
_ENDED, _TAKEN = "_ended", ".taken"


def folder_of(session_id: str) -> str:
    """The folder of this session's records."""
    return os.path.join(watched_dir(), name_of(session_id))


def call_key(runtime: str, call) -> str:
    """What the beginning and the end of one call have in common."""
    tool_input = call.input
    if isinstance(tool_input, str) and tool_input.lstrip().startswith("{"):
        try:
            tool_input = loads_outer(tool_input)  # the way Claude Code hands it to an MCP server
        except ValueError:
            pass
    parts = [runtime, call.session_id, call.tool, _canonical(tool_input)]
    return digest_of(dumps(parts).encode("utf-8", "surrogatepass"))


class Record:
    """One watched call: what is known of it (`facts`, as JSON has it) and where that stands (`path`)."""

    __slots__ = ("path", "facts")

    def __init__(self, path: str, facts: dict):
        self.path = path
        self.facts = facts


def write(session_id: str, key: str, call_id: str, facts: dict, now_ns: int) -> None:
    """Add a record. Raises OSError."""
    path = os.path.join(folder_of(session_id), f"{key}.{now_ns:x}-{_id_of(call_id)}-{os.urandom(3).hex()}")
    text = _text(facts)
    for attempt in range(3):
        try:
            write_private(path, text)
            return
        except FileNotFoundError:  # somebody else's last record has just gone, and the folder with it
            if attempt == 2:
                raise


def names_of(session_id: str) -> list:
    """The names of this session's records, in order of their beginning."""
    try:
        names = os.listdir(folder_of(session_id))
    except OSError:
        return []
    return sorted((name for name in names if "." in name and not name.endswith(".tmp")), key=_begun)


def ended(session_id: str, key: str, call_id: str) -> list:
    """The names of the records that the end of this call may belong to, the likeliest first."""
    alike = [name for name in names_of(session_id) if name.startswith(key + ".") and not is_taken(name)]
    likely = {_id_of(call_id): 0, _id_of(""): 1}
    return sorted(alike, key=lambda name: likely.get(name.split("-")[1], 2))


def is_taken(name: str) -> bool:
    """Whether a hook is busy with this record, or was when it was killed."""
    return name.endswith(_TAKEN)


def take(session_id: str, name: str):
    """The Record of that name, from now on nobody else's; None where somebody else has it, or it cannot be read."""
    path = os.path.join(folder_of(session_id), name)
    if not is_taken(name):
        try:
            os.rename(path, path + _TAKEN)
        except OSError:
            return None
        path += _TAKEN
    try:
        facts = loads(read_private(path, LARGEST_RECORD).decode("utf-8", "surrogateescape"))
    except (OSError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        drop(path)
        return None
    return Record(path, facts)


def age_of(name: str, now: float) -> float:
    """How long ago, in seconds, the call of this record began."""
    return now - _begun(name) / 1e9


def is_stale(name: str, now: float) -> bool:
    """Whether a taken record is one whose taker did not live to finish."""
    return age_of(name, now) > 60


def put_back(record: Record) -> None:
    """Have the record, as its facts are now, wait for the call's end again. Raises OSError."""
    write_private(record.path, _text(record.facts))
    os.rename(record.path, record.path.removesuffix(_TAKEN))


def drop(path: str) -> None:
    """Remove a record, and the folders that are empty then."""
    try:
        os.remove(path)
    except OSError:
        pass
    try:
        os.rmdir(os.path.dirname(path))
    except OSError:
        return
    close()


def sweep(now: float) -> None:
    """Drop the records of sessions that have been silent for a day."""
    try:
        names = os.listdir(watched_dir())
    except OSError:
        names = []
    for name in names:
        folder = os.path.join(watched_dir(), name)
        try:
            if os.lstat(folder).st_mtime < now - DROPPED_SECONDS:
                for entry in os.listdir(folder):
                    os.remove(os.path.join(folder, entry))
                os.rmdir(folder)
        except OSError:
            continue
    close()


# ------------------------------------------------------------------------------------------------- own marks


def mark_own(instance_id: str, files, call: str, now_ns: int, agent: str = "") -> None:
    """Note that this session, or its `agent`, begins `call`, which may write absolute `files` (none: anything).

    `call` is its ``call_key``, by which `mark_end` knows it. Very many files count as anything. Raises OSError.
    """
    files = files if len(files) <= MOST_MARKS else ()
    end = f" {call or '-'}{' ' + _id_of(agent) if agent else ''}\n"
    _append(name_of(instance_id), [f"{now_ns} {_mark_of(file)}{end}" for file in files] or [f"{now_ns} *{end}"])


def mark_end(call: str, now_ns: int) -> None:
    """Note that `call` has ended, whoever made it; nothing where nobody marks his own. Raises OSError."""
    if os.path.isdir(acting_dir()):
        _append(_ENDED, [f"{now_ns} {call} -\n"])


def acted(
    instance_id: str, file: str, began_ns: int, first_ns: int, last_ns: int, agent: str = "", is_edit: bool = False
) -> bool:
    """Whether what happened to absolute `file` between `first_ns` and `last_ns` may be this session's own doing.

    With `agent` only what that one of its agents did counts; else what any of them did.

    It may, if a call of its own that writes the file began after `began_ns`, or one that may write anything was
    running. One whose end nobody told counts as running if it is not much older than that; beside an edit (`is_edit`),
    while nobody is told of ends, until the same agent's next call.
    """
    wanted, ends, whose = _mark_of(file), None, _id_of(agent)
    marks = _lines(name_of(instance_id))
    for place, (when, what, call, *by) in enumerate(marks):
        if when > last_ns or (agent and by != [whose]):
            continue
        if what == wanted and when >= began_ns:
            return True
        if what == "*":
            if ends is None:
                ends = _lines(_ENDED)
            end = min((at for at, ended, _ in ends if ended == call and at >= when), default=0)
            if is_edit and not end:
                end = min((at for at, _what, _call, *other in marks[place + 1 :] if other == by), default=0)
            if end >= first_ns or (not end and when >= began_ns - UNENDED_NS):
                return True
    return False


def _append(name: str, lines: list) -> None:
    path = os.path.join(acting_dir(), name)
    make_private(os.path.dirname(path))
    handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, "".join(lines).encode())  # one write call: lines of two hooks do not mix
        size = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if size > MARKS_BYTES:
        newest = _lines(name)[-MARKS_LEFT:]
        write_private(path, "".join(" ".join(map(str, line)) + "\n" for line in newest))


def _lines(name: str) -> list:
    try:
        marks = read_private(os.path.join(acting_dir(), name), 2 * MARKS_BYTES).decode("ascii", "replace")
        parts = [line.split() for line in marks.splitlines()]
    except OSError:
        return []
    return [(int(part[0]), *part[1:]) for part in parts if len(part) in (3, 4) and part[0].isdigit()]


def _mark_of(file: str) -> str:
    return digest_of(os.fsencode(os.path.realpath(file)))


# --------------------------------------------------------------------------------------------------- innards


def close() -> None:
    """Remove the folders of records and marks where nothing is watched any more."""
    try:
        os.rmdir(watched_dir())
    except FileNotFoundError:
        pass
    except OSError:
        return  # somebody has begun another
    if os.path.isdir(edited_dir()) or not os.path.isdir(acting_dir()):
        return
    try:
        for name in os.listdir(acting_dir()):
            os.remove(os.path.join(acting_dir(), name))
        os.rmdir(acting_dir())
    except OSError:
        return


def _id_of(call_id: str) -> str:
    return digest_of(call_id.encode("utf-8", "surrogatepass")) if call_id else "0"


def _begun(name: str) -> int:
    text = name.partition(".")[2].partition("-")[0]
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _text(facts: dict) -> str:
    """`facts` as JSON, by the C encoder where there is one: a record may hold hundreds of files."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        # The stubs ask for a dict of markers; None turns the search for circles off, as `json.dumps` has it too.
        encode = make_encoder(None, None, encode_basestring_ascii, None, ":", ",", False, False, True)  # type: ignore[arg-type]
        return "".join(encode(facts, 0))
    except (ImportError, TypeError):
        return dumps(facts)


def _canonical(value, levels: int = LEVELS // 2):
    """`value` with the same text whatever the order of keys, and however a client writes whole numbers.

    Only so many `levels` of it: how deep a payload is read depends on how it came.
    """
    if isinstance(value, (dict, list)) and not levels:
        return None
    if isinstance(value, dict):
        return {key: _canonical(value[key], levels - 1) for key in sorted(value)}
    if isinstance(value, list):
        return [_canonical(item, levels - 1) for item in value]
    if isinstance(value, float) and value == value // 1:
        return int(value)
    return value
