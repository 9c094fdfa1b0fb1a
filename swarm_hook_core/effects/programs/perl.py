"""perl: ``-i``, and inline programs whose ``open``, ``unlink`` and the like name their files."""

from swarm_hook_core.effects.model import UNKNOWN, is_known
from swarm_hook_core.effects.programs.sed import backup

_TAKING = "eEIF"  # -F is attached in truth, but a lone one takes the next word since 5.20
_WRITERS = (
    *("open", "unlink", "rename", "system", "exec", "qx", "`", "truncate", "mkdir", "rmdir", "copy", "move", "symlink"),
    *(
        "spew",
        "write_file",
        "link",
        "chmod",
        "utime",
        "eval",
        "require",
        "do ",
        "write",
        "store",
        "rmtree",
        "make_path",
    ),
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
    for code in codes:
        _code(call, code)
    if suffix is not None:
        for word in operands:
            call.write(word)
            if suffix:
                call.write(backup(word, suffix))


def _arguments(words):
    """``(suffix of -i or None, codes, operands, whether nothing runs)``."""
    suffix, codes, checks, at = None, [], False, 0
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


def _code(call, code: str) -> None:
    if not any(name in code for name in _WRITERS):
        return
    import re

    opaque = False
    opened = re.compile(
        r"""\bopen\s*\(?\s*(?:(?:my|our|local)\s+)?[$*\w:]+\s*,\s*(["'])\s*([<>+|-]*)\s*([^"']*)\1\s*(,\s*)?"""
        r"""(?:(["'])((?:[^"'\\]|\\.)*)\5)?"""
    )
    matches = list(opened.finditer(code))
    for match in matches:
        mode, inline, comma, path = match[2], match[3], match[4], match[6]
        name = path if comma else inline
        if mode.startswith("<") and "+" not in mode or (not mode and not comma and not inline.endswith("|")):
            continue
        if mode.startswith("|") or mode.startswith("-|") or inline.endswith("|"):
            _shell(call, name.rstrip("|") if name and not _is_computed(name) else UNKNOWN)
        elif mode == "+<" or mode.startswith((">", "+>")):
            _write(call, name)
    opaque = opaque or len(re.findall(r"\bopen\b", code)) > len(matches)
    for name, places in (
        ("unlink", None),
        ("rename", None),
        ("truncate", 1),
        ("copy", -1),
        ("move", None),
        ("write_file", 1),
    ):
        for match in re.finditer(rf"\b{name}\b\s*\(?\s*((?:(?:\"[^\"]*\"|'[^']*')\s*,?\s*)*)([$@\w]?)", code):
            literals = [double or single for double, single in re.findall(r"\"([^\"]*)\"|'([^']*)'", match[1])]
            chosen = literals if places is None else literals[:1] if places == 1 else literals[-1:]
            for path in chosen:
                _write(call, path)
            opaque = opaque or not literals or (places != 1 and match[2] not in ("",))
    for match in re.finditer(
        r"\b(?:system|exec)\b\s*\(?\s*(?:\"([^\"]*)\"|'([^']*)'|(.))|`([^`]*)`|\bqx\s*[({/]([^)}/]*)", code
    ):
        text = next((group for place, group in enumerate(match.groups()) if group is not None and place != 2), None)
        _shell(call, UNKNOWN if text is None or _is_computed(text) or match[3] else text)
    if opaque or re.search(
        r"\b(?:spew\w*|symlink|link|rmtree|make_path|store|eval\s*\"|do\s+[\"'$]|require\s+[\"'$])", code
    ):
        call.guess("a program that computes its paths")


def _is_computed(text: str) -> bool:
    return "$" in text or "@" in text or not is_known(text)


def _shell(call, text: str) -> None:
    call.script(text)


def _write(call, name) -> None:
    call.write(UNKNOWN if not name or _is_computed(name) else name)


RUN = {"perl": _perl}
