"""Programs that are told where their output goes: keys and certificates, reports, object files, macOS's own."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import is_folder, seen


def _write(call, word) -> None:
    """`word`, where it is given and not the standard output."""
    if word and word != "-":
        call.write(word)


def _openssl(call) -> None:
    words = call.words
    for option, value in zip(words, words[1:]):
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
    "sdiff": "owW",
    "xsv": "odsn",
    "sar": "osef",
    "cppcheck": "DUIij",
    "nvidia-smi": "filq",
    "trivy": "ofs",
    "grype": "o",
    "pygmentize": "olfOFSNxP",
    "highlight": "oOiS",
    "qrencode": "osltvm",
}


def _watched_network(call) -> None:
    """nmap, tcpdump and their kin: what they saw goes to a file only where one is named."""
    for option, value in zip(call.words, [*call.words[1:], ""]):
        if option in ("-oN", "-oX", "-oG", "-oS", "-oJ", "-oL") or option == "-w" and call.name != "nmap":
            _write(call, value)
        elif option == "-oA" and value:
            for ending in (".nmap", ".xml", ".gnmap"):
                _write(call, value + ending)
        elif option[:2] == "-w" and call.name != "nmap":
            _write(call, option[2:])


def _rpm(call) -> None:
    """Changes the machine, or looks; what it builds goes where its configuration says."""
    if any(word in ("--rebuild", "--recompile", "-b", "-ba", "-bb") for word in call.words):
        call.guess("builds a package")


def _screen(call) -> None:
    if not call.words or call.words[0] not in ("-ls", "-list", "-wipe", "-v", "-r", "-x", "-rd", "-d", "-D"):
        call.guess("may type into a terminal")


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


_TMUX_LOOKS = ("ls", "capture-pane", "capturep", "display-message", "display", "has-session", "has", "show-options")
_TMUX_LOOKS += ("attach", "attach-session", "a", "kill-session", "kill-pane", "kill-window", "kill-server", "info")


def _tmux(call) -> None:
    verbs = [word for word in call.words if not word.startswith("-")]
    if not verbs or not (verbs[0] in _TMUX_LOOKS or verbs[0].startswith("list-")):
        call.guess("may type into a terminal")


RUN = {
    **dict.fromkeys(_REPORTS, _reported),
    "tmux": _tmux,
    "screen": _screen,
    "rpm": _rpm,
    **dict.fromkeys(("nmap", "masscan", "tcpdump", "tshark", "dumpcap", "ngrep"), _watched_network),
    "xmlstarlet": _xmlstarlet,
    "ptx": _ptx,
    "file": _file,
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
