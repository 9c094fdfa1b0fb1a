"""Programs that print names or text for another command."""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core.shell.call import Call, split
from swarm_hook_core.shell.lexer import ansi
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, at_most_possible, is_known
from swarm_hook_core.shell.spans import spans_of_head

MOST_NAMES = 256  # that `ls` lists
MOST_NUMBERS = 512  # that `seq` counts
LONGEST_TEXT = 64 * 1024  # characters
LONGEST_FLAGS = 5  # characters of a number's form in printf


def silent(call: Call) -> None:
    call.says("")


def echo(call: Call) -> None:
    words, end, escapes = call.words, "\n", False
    while words and len(words[0]) > 1 and words[0][0] == "-" and not words[0][1:].strip("neE"):
        if "n" in words[0]:
            end = ""
        escapes = "e" in words[0] or escapes
        words = words[1:]
    text = " ".join(words)
    if escapes:
        text = ansi(text)
    call.says(text + end)


def printf(call: Call) -> None:
    words, name = call.words, None
    if words[:1] == ["-v"] and len(words) > 1:
        name, words = words[1], words[2:]
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        return
    text = _formatted(words[0], words[1:])
    if name is None:
        call.says(text)
    else:
        if text is None:
            text = UNKNOWN
        call.walk.scope.variables[name] = text


def _formatted(form: str, arguments: list[str]) -> str | None:
    """Return the output of printf, with NUL as a newline; None if it is too long."""
    form = ansi(form.replace("\\0", "\n").replace("\\x00", "\n"))
    out: list[str] = []
    left = list(arguments)
    for _round in range(MOST_NUMBERS):
        used, at = False, 0
        while at < len(form):
            if form[at] != "%":
                close = form.find("%", at)
                if close < 0:
                    close = len(form)
                out.append(form[at:close])
                at = close
                continue
            close = at + 1
            while close < len(form) and form[close] in "-+ #0123456789.*":
                close += 1
            letter = form[close : close + 1]
            if letter == "%":
                out.append("%")
            elif letter == "(":
                out.append(UNKNOWN)
                if "T" in form[close:]:
                    close = form.find("T", close)
                else:
                    close = len(form)
            elif letter:
                used = True
                word = ""
                if left:
                    word = left.pop(0)
                out.append(_converted(form[at + 1 : close], letter, word))
            at = close + 1
        if not left or not used:
            text = "".join(out)
            if len(text) <= LONGEST_TEXT:
                return text
            return None
    return None


def _converted(flags: str, letter: str, word: str) -> str:
    if letter in "sbqc":
        if letter == "b":
            text = ansi(word)
        elif letter == "c" and is_known(word):
            text = word[:1]
        else:
            text = word
        if flags:  # it is padded
            return UNKNOWN
        return text
    if letter in "di" and is_known(word) and len(flags) < LONGEST_FLAGS:  # a width of millions is not made
        try:
            return ("%" + flags + "d") % int(word or "0")
        except (ValueError, TypeError):  # no number, or no valid format
            return UNKNOWN
    return UNKNOWN


def pwd(call: Call) -> None:
    if call.folder is not None:
        call.says(call.folder + "\n")


def ls(call: Call) -> None:
    options = split(call.words, "IwT", ("--ignore", "--width", "--tabsize"))
    operands = options.operands
    if set(options.given) - {"-1", "-a", "-A", "-d", "-r", "-t", "-S", "-U", "-p", "--color"}:
        return
    if len(operands) == 1 and call.found(operands[0]):
        call.says(None, call.found(operands[0]))
        return
    if not all(map(is_known, operands)) or call.folder is None:
        return
    places = (absolute(call.folder, word) for word in operands or ["."])
    folders = [path for path in places if path is not None and os.path.isdir(path)]
    where = next(iter(folders), call.folder)
    names = operands or ["."]
    if folders and not options.has("-d"):
        if len(operands) > 1:
            return
        try:
            names = sorted(name for name in os.listdir(where) if name[0] != "." or options.has("-a", "-A"))
        except OSError:  # the folder is unreadable, so its names are unknown
            return
    if len(names) > MOST_NAMES:
        call.says(None, Found(where, lambda path: os.path.dirname(path) == where))
    else:
        call.says("".join(name + "\n" for name in names))


def cat(call: Call) -> None:
    options = split(call.words)
    call.shows(options.operands)
    streams = [
        call.stdin if word == "-" else call.walk.files.text_of(word, call.folder) for word in options.operands or ["-"]
    ]
    if len(streams) == 1 and not options.given:
        call.output = streams[0]
        return
    texts = [stream.text for stream in streams if stream is not None and stream.text is not None]
    if len(texts) < len(streams):
        call.output = None
        if len(streams) == 1:
            call.output = streams[0]
    elif sum(map(len, texts)) <= 4 * LONGEST_TEXT:
        call.says("".join(texts))


def head(call: Call) -> None:
    """head and tail: some of the lines of the input."""
    words = [f"-n{word[1:]}" if word[:1] == "-" and word[1:].isdecimal() else word for word in call.words]
    options = split(words, "nc", ("--lines", "--bytes", "--pid", "--sleep-interval"))
    stream = call.stdin
    spans, files = spans_of_head(call.name[-4:], call.words)
    if spans is not None:
        call.shows(files, spans)
    if options.operands:
        stream = None
        if len(options.operands) == 1:
            stream = call.walk.files.text_of(options.operands[0], call.folder)
    if stream is None or options.has("-c", "--bytes"):
        return
    if stream.text is None:
        if stream.found is not None:
            founds = stream.found
            whole = None
            if len(founds) == 1:
                whole = _all_of(founds[0], options.value("-n", "--lines") or "10")
            call.says(None, [Found(one.root, at_most_possible(one.admits), whole) for one in founds])
        return
    count = options.value("-n", "--lines") or "10"
    lines = stream.text.splitlines(keepends=True)
    if not count.lstrip("+-").isdecimal():
        return
    number = int(count.lstrip("+-"))
    if call.name in ("tail", "gtail"):
        if count.startswith("+"):
            kept = lines[max(number - 1, 0) :]
        elif number:
            kept = lines[-number:]
        else:
            kept = []
    else:
        if count.startswith("-"):
            kept = lines[: -number or None]
        else:
            kept = lines[:number]
    call.says("".join(kept))


def _all_of(found: Found, count: str) -> Callable[[], list[str] | None] | None:
    """Return the names in `found` if there are at most `count`, as ``Found.names``: the order of the names is
    unknown.
    """
    list_names = found.names
    if list_names is None or not count.isdecimal():
        return None

    def names() -> list[str] | None:
        every = list_names()
        if every is not None and len(every) <= int(count):
            return every
        return None

    return names


def basename(call: Call) -> None:
    options = split(call.words, "s", ("--suffix",))
    operands, end = options.operands, options.value("-s", "--suffix") or ""
    if not options.has("-a", "--multiple", "-s", "--suffix") and len(operands) == 2:
        operands, end = operands[:1], operands[1]

    def last(text: str) -> str:
        name = text.rstrip("/").rpartition("/")[2]
        if end and name.endswith(end) and name != end:
            return name[: -len(end)]
        return name

    call.says("".join(_of_name(call, word, last) + "\n" for word in operands))


def dirname(call: Call) -> None:
    def above(text: str) -> str:
        return os.path.dirname(text.rstrip("/")) or ("/" if text.startswith("/") else ".")

    call.says("".join(_of_name(call, word, above) + "\n" for word in split(call.words).operands))


def _of_name(call: Call, word: str, change: Callable[[str], str]) -> str:
    if call.walk.has_found(word):
        return call.walk.renamed(word, change, "", "")
    return change(word)


def realpath(call: Call) -> None:
    """realpath, readlink."""
    options = split(call.words, "", ("--relative-to", "--relative-base"))
    if options.has("--relative-to", "--relative-base"):
        return
    follows = call.name not in ("readlink", "greadlink") or options.has("-f", "-e", "-m")
    lines: list[str] = []
    for word in options.operands:
        path = absolute(call.folder, word)
        if path is None:
            if not call.walk.has_found(word):
                word = UNKNOWN
            lines.append(word)
        elif follows:
            if not options.has("-s", "--no-symlinks"):
                path = os.path.realpath(path)
            lines.append(path)
        else:
            try:
                lines.append(os.readlink(path))
            except OSError:  # not a link: readlink prints nothing
                continue
    call.says("".join(line + "\n" for line in lines))


def seq(call: Call) -> None:
    words, separator, wide = list(call.words), "\n", False
    while words[:1] in (["-w"], ["-s"]):
        wide = wide or words[0] == "-w"
        if words.pop(0) == "-s" and words:
            separator = words.pop(0)
    if not 1 <= len(words) <= 3 or not all(word.lstrip("-").isdecimal() and len(word) < 10 for word in words):
        return
    first, step, last = {1: [1, 1], 2: [int(words[0]), 1]}.get(len(words), list(map(int, words[:2]))) + [int(words[-1])]
    if step:
        counted = range(first, last + (1 if step > 0 else -1), step)
    else:
        counted = range(MOST_NUMBERS + 1)
    if len(counted) <= MOST_NUMBERS:
        width = 0
        if wide:
            width = max((len(str(number)) for number in counted), default=0)
        call.says(separator.join(str(number).zfill(width) for number in counted) + "\n" * bool(counted))


def processes(call: Call) -> None:
    """kill, pgrep and their kin: their words are kept for the rule about processes of others (``kills``)."""
    call.walk.effects.add_deed([call.name, *call.words], call.folder, call.by)
