"""xargs, parallel and entr: commands that are run with words from elsewhere."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any

from swarm_hook_core.shell.call import Call, split
from swarm_hook_core.shell.model import UNKNOWN, Found, Stream, is_known, joined, text_of

MOST_RUNS = 24  # of one command with different names, before the rest goes through it as one


def some_of(call: Call, names: list[Any]) -> list[Any]:
    """`names`; those beyond `MOST_RUNS` as one word that stands for them all."""
    if len(names) <= MOST_RUNS or not all(isinstance(one, str) and is_known(one) for one in names):
        return names[: 2 * MOST_RUNS]
    return [*names[: MOST_RUNS // 2], call.walk.each_of(names[MOST_RUNS // 2 :])]


def run_each(call: Call, items: list[Any], words_for: Callable[[Any], list[str]]) -> None:
    """Run the words of `words_for(item)` for each item."""
    printed: list[Any] = []
    for one in some_of(call, items):
        call.run(words_for(one))
        printed.append(call.output)
    call.output = joined(printed)


def placed(word: str, name: str) -> str:
    """`word` with the places for `name` filled, ``{/}`` by its last part and so on; parts of a mark are unknown."""
    last = name.rpartition("/")[2]
    parts = {
        "{/.}": os.path.splitext(last)[0],
        "{//}": os.path.dirname(name) or ".",
        "{/}": last,
        "{.}": os.path.splitext(name)[0],
    }
    for place, part in parts.items():
        if place in word:
            word = word.replace(place, part if is_known(name) else UNKNOWN)
    return word.replace("{}", name)


def xargs(call: Call) -> None:
    takes = "--max-args --max-procs --max-lines --max-chars --delimiter --arg-file --process-slot-var".split()
    options = split(call.words, "IJRLnPsdEaS", takes, optional="ile", stop_early=True)
    source = options.value("-a", "--arg-file")
    if source:
        stream = call.walk.files.text_of(source, call.folder)
    else:
        stream = call.stdin
    place = options.value("-I", "-J", "-i", "--replace") or ("{}" if options.has("-i", "--replace") else None)
    by_line = options.has("-0", "--null", "-d", "--delimiter") or place is not None
    words = options.operands or ["echo"]
    if call.walk.only_reads(words) and stream is not None and stream.text is None and stream.found is not None:
        names = [call.walk.mark(stream.found)]
    else:
        names = _names(call, stream, by_line, options.value("-d", "--delimiter"))
    size = options.value("-n", "--max-args", "-L", "--max-lines") or ""
    if place is not None:
        run_each(call, names, lambda name: [word.replace(place, name) for word in words])
    elif size.isdecimal() and 0 < int(size) < len(names) <= MOST_RUNS * int(size):
        groups = [names[at : at + int(size)] for at in range(0, len(names), int(size))]
        run_each(call, groups, lambda group: [*words, *group])
    elif names or not options.has("-r", "--no-run-if-empty"):
        call.run([*words, *names])


def _names(call: Call, stream: Stream | None, by_line: bool, delimiter: str | None = None) -> list[str]:
    """The words that come in: known ones, or a mark."""
    if stream is None or (stream.text is None and stream.found is None):
        return [UNKNOWN]
    text = text_of(stream)
    if text is None:
        founds = stream.found or []
        if not by_line:
            founds = [_whole(call, one) for one in founds]
        return [call.walk.mark(founds)]
    if delimiter and delimiter not in ("\\n", "\n", "\\0"):
        names = text.rstrip("\n").split(delimiter)
    elif by_line:
        names = text.split("\n")
    else:
        names, breaks_off = _as_xargs(text)
        if breaks_off and stream.found is not None:  # some of them were used before, in the order of the disk
            return [call.walk.some_of([*names, *text.split()])]
    return [name for name in names if name]


def _whole(call: Call, found: Found) -> Found:
    """Return the part of `found` that xargs takes for single words: names without blanks, quotes and backslashes."""

    def admits(path: str) -> bool | None:
        name = path
        if call.folder and path.startswith(call.folder):
            name = path[len(call.folder) :]
        if any(mark in name for mark in " \t\n'\"\\"):
            return False
        return found.admits(path)

    return Found(found.root, admits)


def _as_xargs(text: str) -> tuple[list[str], bool]:
    """Split `text` as xargs does. Return (words, True if an open quote stops it)."""
    try:
        return shlex.split(text), False
    except ValueError:  # a quote is open
        return text.split(), True


_PARALLEL_TAKES = "--jobs --colsep --arg-file --joblog --delay --timeout --retries --results --workdir --halt".split()


def parallel(call: Call) -> None:
    options = split(call.words, "jPIanNdCSL", _PARALLEL_TAKES, stop_early=True)
    words, _mark, given = "\n".join(options.operands).partition("\n:::\n")
    names = given.split("\n") if given else _names(call, call.stdin, by_line=True)
    command = words.split("\n")
    if set(options.given) - {"-j", "--jobs", "-0"} or ":::" in given or set(words).intersection("\"'`$|&;<>()"):
        call.guess("runs commands for names")
        return
    if "{" not in words:
        command.append("{}")
    run_each(call, names, lambda name: [placed(word, name) for word in command])


def entr(call: Call) -> None:
    """Runs its command when files change."""
    words = split(call.words, "", (), stop_early=True).operands
    if words:
        call.run([UNKNOWN if word == "/_" else word for word in words])
