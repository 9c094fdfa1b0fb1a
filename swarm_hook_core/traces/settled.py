"""Files about the unparsed commands of a journal that are parsed, for the program in front of the check (``native/``).

    <state folder>/settled/<place>/<time of the journal's first line>

The program cannot parse a command. It leaves a call to Python if another session has run a command that may have
written any file, such as ``cp * there``. This file says up to which byte of the journal such commands are parsed, and
lists the files that they wrote:

    <bytes>\\n
    \\0<key>\\n        for each key of a written file

It speaks of commands of the last day, and of as many as a check parses (``unread.MOST_COMMANDS``).
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.state import read_private, state_dir, write_private
from swarm_hook_core.traces import escaped, journal, names_in, unread
from swarm_hook_core.traces.unread import UnreadCommands

MOST_BYTES = 48 * 1024  # of a file's keys


def settled_dir(place: str) -> str:
    """Return the folder of these files for a place. It need not exist."""
    return os.path.join(state_dir(), "settled", os.path.basename(place))


def note(path: str, commands: UnreadCommands) -> None:
    """Write the file of each part of the journal at `path`, as far as its `commands` are parsed. Raises OSError."""
    for part in (path, path + ".1"):
        try:
            data = read_private(part, journal.LARGEST)
        except FileNotFoundError:
            continue  # never rotated, or removed just now
        name = _name(data)
        if name:
            _note(os.path.join(settled_dir(os.path.dirname(path)), name), data, commands)


def prune(now: float) -> None:
    """Remove files without a change for a day: they speak of commands of that day. Raises OSError."""
    base = os.path.join(state_dir(), "settled")
    for place in names_in(base):
        folder = os.path.join(base, place)
        for name in names_in(folder):
            file = os.path.join(folder, name)
            try:
                if os.lstat(file).st_mtime < now - journal.DAY_SECONDS:
                    os.remove(file)
            except FileNotFoundError:
                continue  # removed by another process
        try:
            os.rmdir(folder)
        except OSError:
            continue  # it has other files, or is gone


def _name(data: bytes) -> str:
    """Return the time of a journal's first line, "" without such a line."""
    head = data[:100].lstrip(b"\n").split(b" ", 2)
    if len(head) == 3 and head[1] == b"session" and head[0].isdigit():
        return head[0].decode()
    return ""


def _note(file: str, data: bytes, commands: UnreadCommands) -> None:
    """Write `file` about one part of a journal, unless an earlier one has said as much."""
    keys: set[bytes] = set()
    at = end = 0  # `end` is that of the last such command: other entries are no reason to write
    since_ns = time.time_ns() - journal.DAY_SECONDS * 10**9
    for line in data.split(b"\n")[:-1]:
        at += len(line) + 1
        if not unread.is_wide(line) or not _is_since(line, since_ns):
            continue
        written = commands.known_writes(line)
        if written is None:
            break
        keys |= {escaped(key) for key in written}
        end = at
    text = b"%d\n" % end + b"".join(b"\0%s\n" % key for key in sorted(keys))
    if len(text) <= MOST_BYTES and end > _told(file):
        write_private(file, text.decode("utf-8", "surrogateescape"))


def _is_since(line: bytes, at_ns: int) -> bool:
    number = line.partition(b" ")[0]
    return not number.isdigit() or int(number) >= at_ns


def _told(file: str) -> int:
    """Return the number of bytes that the file at `file` speaks of."""
    try:
        number = read_private(file, 20).partition(b"\n")[0]
    except OSError:  # no such file yet
        return 0
    return int(number) if number.isdigit() else 0
