"""Programs that turn text into text, and can be told to put it into a file."""

import os

from swarm_hook_core.shell.model import Stream, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import directly_in, seen

MOST_PIECES = 700  # of a file that is split, that are named one by one


def _write(call, word) -> None:
    """`word`, where it is given and not the standard output."""
    if word and word != "-":
        call.write(word)


def _tee(call) -> None:
    for word in split(call.words).operands:
        _write(call, word)
    call.output = call.stdin


def _dd(call) -> None:
    for word in call.words:
        if word.startswith("of="):
            _write(call, word[3:])


_SORT_TAKES = "--key --output --field-separator --buffer-size --temporary-directory --parallel --batch-size".split()


def _sort(call) -> None:
    options = split(call.words, "koStT", (*_SORT_TAKES, "--compress-program", "--files0-from", "--random-source"))
    _write(call, options.value("-o", "--output"))
    _passes_names(call, options.operands)


def _uniq(call) -> None:
    options = split(call.words, "fsw", ("--skip-fields", "--skip-chars", "--check-chars"))
    _write(call, options.operands[1] if len(options.operands) > 1 else "")
    _passes_names(call, options.operands)


def _passes_names(call, operands) -> None:
    """Names that come in go out, in another order or fewer."""
    if call.stdin is not None and call.stdin.found is not None and not operands:
        call.output = Stream(None, call.stdin.found)


def _sponge(call) -> None:
    operands = split(call.words).operands
    if operands:
        _write(call, operands[0])
    else:
        call.output = call.stdin


def _split(call) -> None:
    takes = "--suffix-length --additional-suffix --bytes --line-bytes --lines --number --separator --filter".split()
    options = split(call.words, "abClnpt", takes)
    if options.value("--filter"):
        call.script(options.value("--filter"))
        return
    prefix = options.operands[1] if len(options.operands) > 1 else "x"
    length = options.value("-a", "--suffix-length") or "2"
    digit = "0" if options.has("-d", "-x", "--numeric-suffixes", "--hex-suffixes") else "a"
    first = options.value("--numeric-suffixes", "--hex-suffixes")
    size = int(length) if length.isdigit() and len(length) < 3 else 2
    ending = options.value("--additional-suffix") or ""
    file = options.operands[0] if options.operands else "-"
    stream = call.stdin if file == "-" else call.walk.text_of(file, call.folder)
    count = _pieces_of(options, stream.text if stream else None)
    start = int(first) if first and first.isdigit() else 0
    if digit == "a":
        names = [_letters(number, size) for number in range(count)]
    else:
        names = [
            f"{number:0{size}{'x' if options.has('-x', '--hex-suffixes') else 'd'}}"
            for number in range(start, start + count)
        ]
    _pieces(call, prefix, [name + ending for name in names], ending)


def _pieces_of(options, text) -> int:
    """How many files `split` makes of `text`; where that cannot be told, the one that it makes of anything."""
    chunks = options.value("-n", "--number") or ""
    if chunks.isdigit():
        return min(int(chunks), MOST_PIECES)
    if text is None or chunks:
        return 1
    size = options.value("-b", "-C", "--bytes", "--line-bytes")
    if size is None:
        lines = options.value("-l", "--lines") or "1000"
        whole, each = text.count("\n") + (not text.endswith("\n") and bool(text)), int(lines) if lines.isdigit() else 0
    else:
        whole, each = (
            len(text.encode("utf-8", "surrogateescape")),
            int(size) if size.isdigit() and not options.has("-C") else 0,
        )
    return min(-(-whole // each), MOST_PIECES) if each else 1


def _letters(number: int, size: int) -> str:
    letters = ""
    for _ in range(size):
        number, rest = divmod(number, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _csplit(call) -> None:
    options = split(call.words, "fnb", ("--prefix", "--digits", "--suffix-format"))
    digits = options.value("-n", "--digits") or "2"
    ending = None if options.has("-b", "--suffix-format") else ""
    size = int(digits) if digits.isdigit() and len(digits) < 3 else 2
    cuts = sum(
        int(word[1:-1]) if word[1:-1].isdigit() else 0 if word[:1] in "{%" else 1 for word in options.operands[1:]
    )
    names = [f"{number:0{size}d}" for number in range(min(cuts + 1, MOST_PIECES))]
    _pieces(call, options.value("-f", "--prefix") or "xx", names if ending is not None else [], ending)


def _pieces(call, prefix: str, sure, ending) -> None:
    """Files named `prefix`, a counter, and `ending` (None: not known): with the endings `sure` for certain."""
    folder, start = os.path.split(prefix)
    if not is_known(prefix):
        call.guess("a computed path")
        return

    def admits(name: str):
        if not name.startswith(start) or (ending and not name.endswith(ending)):
            return False
        counter = name[len(start) : len(name) - len(ending or "")]
        if name[len(start) :] in sure:
            return True
        return None if counter.isalnum() or ending is None else False

    call.tree(folder or ".", directly_in(seen(call, folder or "."), admits))


def _tree(call) -> None:
    _write(call, split(call.words, "oLPIHTi", ("--filelimit", "--charset", "--timefmt", "--sort")).value("-o"))


def _less(call) -> None:
    options = split(call.words, "oObhjkptTxyzP", ("--log-file", "--LOG-FILE", "--lesskey-file", "--tag", "--pattern"))
    _write(call, options.value("-o", "-O", "--log-file", "--LOG-FILE"))


def _xxd(call) -> None:
    """Its options are words of their own, single-dashed: ``xxd -c 8 -ps in out``."""
    operands, words = [], list(call.words)
    while words:
        word = words.pop(0)
        if word in ("-c", "-cols", "-g", "-groupsize", "-l", "-len", "-n", "-name", "-o", "-s", "-seek", "-R"):
            words[:1] = []
        elif not word.startswith("-") or word == "-":
            operands.append(word)
    _write(call, operands[1] if len(operands) > 1 else "")


def _iconv(call) -> None:
    _write(call, split(call.words, "fto", ("--from-code", "--to-code", "--output")).value("-o", "--output"))


def _shuf(call) -> None:
    options = split(call.words, "ino", ("--input-range", "--head-count", "--output", "--random-source"))
    _write(call, options.value("-o", "--output"))


def _base64(call) -> None:
    options = split(call.words, "bio", ("--wrap", "--input", "--output", "--break"), optional="w")
    if options.has("-o", "--output"):
        _write(call, options.value("-o", "--output"))


def _uu(call) -> None:
    _write(call, split(call.words, "o").value("-o"))


RUN = {
    "tee": _tee,
    "dd": _dd,
    "sort": _sort,
    "gsort": _sort,
    "uniq": _uniq,
    "sponge": _sponge,
    "split": _split,
    "gsplit": _split,
    "csplit": _csplit,
    "tree": _tree,
    "less": _less,
    "xxd": _xxd,
    "iconv": _iconv,
    "shuf": _shuf,
    "gshuf": _shuf,
    "base64": _base64,
    "base32": _base64,
    "uudecode": _uu,
}
