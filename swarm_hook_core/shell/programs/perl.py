"""perl: ``-i``; what inline programs write is for `scripts`."""

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.sed import backup

_TAKING = "eEIF"  # -F is attached in truth, but a lone one takes the next word since 5.20

_WRITES = (
    *("open", "unlink", "rename", "system", "exec", "qx", "`", "truncate", "mkdir", "rmdir", "copy", "move", "symlink"),
    *(
        "spew",
        "write",
        "link",
        "chmod",
        "utime",
        "eval",
        "require",
        "do ",
        "do(",
        "store",
        "rmtree",
        "make_path",
        "File::",
    ),
    *("IO::", "Path::", "tie", "dbmopen", "syscall", "->append", "edit", "print {", "use "),
    *("append_file", "chown", "mkpath", "mv", "cp", "remove_tree", "fcopy", "dircopy"),
)


def _perl(call) -> None:
    suffix, codes, operands, checks = _arguments(call.words)
    if checks:
        return
    if not codes and operands[:1] in ([], ["-"]):
        text = call.stdin.text if call.stdin else None
        operands = operands[1:]
        if text is None:
            call.guess("a program that cannot be read")
        else:
            codes = [text]
    elif not codes:
        call.guess(f"runs {operands.pop(0)}" if is_known(operands[0]) else "a computed program")
    if any("$^I" in code for code in codes):
        call.guess("Perl code that edits in place")
    if UNKNOWN in codes or any(word in code for code in codes for word in _WRITES):
        from swarm_hook_core.shell.inline.scanner import scan

        scan(call, "perl", "\n".join(codes), operands)
    if suffix is not None:
        for word in operands:
            call.write(word)
            if suffix:
                call.write(backup(word, suffix))


def _arguments(words):
    """``(suffix of -i or None, codes, operands, whether nothing runs)``."""
    codes: list[str] = []
    suffix, checks, at = None, False, 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return suffix, codes, list(words[at + 1 :]), checks
        if word == "-" or not word.startswith("-"):
            break
        at += 1
        place = 1
        while place < len(word):
            letter, rest = word[place], word[place + 1 :]
            place += 1
            if letter in _TAKING:
                if letter == "F" and rest:
                    break
                if not rest and at < len(words):
                    rest = words[at]
                    at += 1
                if letter in "eE":
                    codes.append(rest)
                break
            if letter == "i":
                suffix = rest
                break
            if letter in "mMxdDCV":
                checks = checks or letter == "V"
                break
            if letter in "0l":
                while place < len(word) and (
                    word[place].isdigit() or word[place] in "xabcdefABCDEF" and word[2:3] == "x"
                ):
                    place += 1
            checks = checks or letter in "cv"
    return suffix, codes, list(words[at:]), checks


RUN = {"perl": _perl}
