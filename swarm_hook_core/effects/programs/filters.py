"""Programs that turn text into text, and can be told to put it into a file."""

import os

from swarm_hook_core.effects.model import Stream, is_known
from swarm_hook_core.effects.options import split
from swarm_hook_core.effects.programs.places import directly_in, is_folder, seen

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


def _openssl(call) -> None:
    words = call.words
    for option, value in zip(words, words[1:], strict=False):
        if option in ("-out", "-keyout", "-writerand", "-CAserial", "-noout-file", "-sigfile-out", "-signature-out"):
            _write(call, value)


def _gpg(call) -> None:
    takes = (
        "--output --local-user --recipient --homedir --passphrase --passphrase-file --keyserver --default-key".split()
    )
    options = split(call.words, "oruN", takes)
    out = options.value("-o", "--output")
    if out:
        _write(call, out)
        return
    operand = options.operands[0] if options.operands else ""
    if not operand:
        return
    if options.has("-e", "-s", "-c", "--encrypt", "--sign", "--symmetric"):
        _write(call, operand + (".asc" if options.has("-a", "--armor") else ".gpg"))
    elif options.has("-b", "--detach-sign"):
        _write(call, operand + (".asc" if options.has("-a", "--armor") else ".sig"))
    elif options.has("--clearsign", "--clear-sign"):
        _write(call, operand + ".asc")


def _age(call) -> None:
    _write(
        call,
        split(call.words, "oriR", ("--output", "--recipient", "--identity", "--recipients-file")).value(
            "-o", "--output"
        ),
    )


def _ssh_keygen(call) -> None:
    options = split(call.words, "fbtCNPFRHrsIVznDmaOwWYZJjKM")
    name = options.value("-f")
    if not name or options.has("-l", "-y", "-F", "-e", "-B", "-L", "-Q"):
        return
    _write(call, name)
    if not options.has("-R", "-H"):
        _write(call, name + ".pub")


def _mlr(call) -> None:
    """Miller edits in place with -I, the files at the end."""
    if "-I" in call.words:
        for word in call.words:
            if (
                "." in word
                and not word.startswith("-")
                and (not is_known(word) or os.path.isfile(seen(call, word) or ""))
            ):
                call.write(word)


def _strip(call) -> None:
    takes = ("--input-target", "--output-target", "--remove-section", "--strip-symbol", "--keep-symbol")
    options = split(call.words, "oFIOKNRT", takes)
    if options.has("-V", "--version", "--info", "-h"):
        return
    if options.value("-o"):
        _write(call, options.value("-o"))
        return
    for word in options.operands[-1:] if call.name == "objcopy" else options.operands:
        _write(call, word)


def _pdftotext(call) -> None:
    """Its options are words of their own; without a second operand the name is that of the first."""
    operands, words = [], list(call.words)
    while words:
        word = words.pop(0)
        if word in ("-f", "-l", "-r", "-x", "-y", "-W", "-H", "-enc", "-eol", "-opw", "-upw", "-fixed", "-cropbox"):
            words[:1] = []
        elif not word.startswith("-") or word == "-":
            operands.append(word)
    if len(operands) > 1:
        _write(call, operands[1])
    elif operands:
        _write(call, os.path.splitext(operands[0])[0] + ".txt")


def _reported(call) -> None:
    """What a report goes to, where it does not go to the screen."""
    options = split(
        call.words, _REPORTS[call.name], ("--output", "--output-file", "--filename", "--output-file-path", "--file")
    )
    for name in options.values(
        "-o" if "o" in _REPORTS[call.name] else "--output", "--output", "--output-file", "--filename"
    ):
        _write(call, name)
    if call.name == "nvidia-smi":
        _write(call, options.value("-f"))


_REPORTS = {
    **{
        "sdiff": "owW",
        "xsv": "odsn",
        "sar": "osef",
        "cppcheck": "DUIij",
        "nvidia-smi": "filq",
        "trivy": "ofs",
        "grype": "o",
    },
    **{"pygmentize": "olfOFSNxP", "highlight": "oOiS", "qrencode": "osltvm"},
}


def _xmlstarlet(call) -> None:
    if call.words[:1] in (["ed"], ["edit"]) and any(word in ("-L", "--inplace") for word in call.words):
        _write(call, call.words[-1])


def _ptx(call) -> None:
    operands = split(call.words, "AFMSWbgiowx").operands
    if any(word in ("-G", "--traditional") for word in call.words) and len(operands) > 1:
        _write(call, operands[1])


def _file(call) -> None:
    if split(call.words, "fFmeP").has("-C", "--compile"):
        call.guess("compiles a magic file")


def _m4(call) -> None:
    options = split(call.words, "DUIFRo", ("--define", "--include", "--freeze-state", "--debugfile"))
    _write(call, options.value("--debugfile", "-o"))
    _write(call, options.value("-F", "--freeze-state"))


def _plutil(call) -> None:
    """macOS: what does not only look is written in place, or to -o."""
    words = call.words
    if not words or words[0] in ("-lint", "-p", "-type", "-help") or (words[0] == "-extract" and "-o" not in words):
        return
    if words[0].startswith("-"):
        out = words[words.index("-o") + 1 :][:1] if "-o" in words else words[-1:]
        for word in out:
            _write(call, word)


def _defaults(call) -> None:
    if call.words[:1] and call.words[0] in ("write", "delete", "rename", "import") and "/" in "".join(call.words[1:2]):
        for word in (call.words[1], call.words[1] + ".plist"):
            _write(call, word)


def _screencapture(call) -> None:
    if call.words and is_known(call.words[-1]) and not is_folder(call, call.words[-1]):
        _write(call, call.words[-1] if not call.words[-1].startswith("-") else "")


RUN = {
    **dict.fromkeys(_REPORTS, _reported),
    "xmlstarlet": _xmlstarlet,
    "ptx": _ptx,
    "file": _file,
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
    "openssl": _openssl,
    "gpg": _gpg,
    "gpg2": _gpg,
    "age": _age,
    "ssh-keygen": _ssh_keygen,
    "mlr": _mlr,
    "strip": _strip,
    "objcopy": _strip,
    "ranlib": _strip,
    "pdftotext": _pdftotext,
    "m4": _m4,
    "plutil": _plutil,
    "defaults": _defaults,
    "screencapture": _screencapture,
}
