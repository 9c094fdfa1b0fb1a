"""patch: the files that a diff names, as GNU patch chooses them."""

import os

from swarm_hook_core.effects.model import absolute
from swarm_hook_core.effects.options import split

LONGEST = 512 * 1024  # bytes of a diff that are read
_LONG = (
    "--strip --input --output --directory --fuzz --ifdef --prefix --basename-prefix --suffix --reject-file --get"
    " --version-control --quoting-style --read-only --reject-format"
).split()


def _patch(call) -> None:
    options = split(call.words, "pioDdFBYzrgVx", _LONG)
    if options.has("--dry-run", "-C", "--check", "-v", "--version", "--help"):
        return
    folder = call.folder
    if options.value("-d", "--directory"):
        folder = absolute(folder, options.value("-d", "--directory"))
    operands = options.operands
    written = options.value("-o", "--output") or (operands[0] if operands else None)
    if written is not None:
        if written != "-":
            _write(call, folder, written)
        if operands and not options.value("-o", "--output"):
            _back_up(call, folder, options, written)
        return
    source = options.value("-i", "--input")
    text = _text(folder, source) if source and source != "-" else call.stdin.text if call.stdin else None
    if text is None:
        call.guess("a diff that cannot be read yet", options.value("-d", "--directory"))
        return
    strip = options.value("-p", "--strip")
    for name in targets(text, folder, int(strip) if strip and strip.isdigit() else None, options.has("-R", "--reverse")):
        _write(call, folder, name)
        _back_up(call, folder, options, name)


def _write(call, folder, name: str) -> None:
    call.write(name if folder == call.folder or folder is None else os.path.join(folder, name))


def _back_up(call, folder, options, name: str) -> None:
    suffix, prefix = options.value("-z", "--suffix"), options.value("-B", "--prefix")
    if prefix:
        _write(call, folder, prefix + name)
    elif suffix or options.has("-b", "--backup"):
        _write(call, folder, name + (suffix or ".orig"))


def _text(folder, source: str):
    path = absolute(folder, source)
    try:
        with open(path or "", encoding="utf-8", errors="replace") as file:
            return file.read(LONGEST)
    except (OSError, ValueError):
        return None


def targets(diff: str, folder, strip, reverse=False) -> list[str]:
    """The names of the files that `diff` changes, makes or removes.

    `folder`: absolute, where patch looks which of the names in a header exists (None: not known). `strip`: how many
    leading folders go; None as where -p is not given: all of them.
    """
    found: list = []
    heads: list = []
    for line in diff[:LONGEST].split("\n"):
        tag = next((tag for tag in _TAGS if line.startswith(tag)), None)
        if tag is None:
            continue
        if tag in ("rename from ", "rename to ", "copy to "):
            # git's headers name files without a/ and b/, which patch counts all the same.
            found.append(_stripped("x/" + line[len(tag) :].rstrip("\r"), strip))
            continue
        name = _name(line[len(tag) :])
        if tag == "diff --git ":
            heads = []
        elif tag == "Index: ":
            heads = [("index", name)]
        elif tag in ("--- ", "*** "):
            heads = [head for head in heads if head[0] == "index"] + [("old", name)]
        elif heads and heads[-1][0] == "old":
            pass
        if (tag == "+++ " or (tag == "--- " and False)) and heads:
            heads.append(("new", name))
            found.append(_chosen([_stripped(one, strip) for _kind, one in heads if one], folder, reverse))
            heads = []
        elif tag == "--- " and len(heads) > 1 and heads[0][0] == "context":
            heads = []
    found += _context(diff, folder, strip, reverse)
    return list(dict.fromkeys(name for name in found if name))
