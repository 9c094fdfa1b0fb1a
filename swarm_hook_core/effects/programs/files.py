"""Programs that remove, make or mark files, and leave their content alone."""

import os

from swarm_hook_core.effects.model import is_known
from swarm_hook_core.effects.options import split
from swarm_hook_core.effects.programs.places import seen


def _rm(call) -> None:
    options = split(call.words)
    deep = options.has("-r", "-R", "--recursive")
    for word in options.operands:
        (call.tree if deep else call.write)(word)


def _rmdir(call) -> None:
    _each(call, split(call.words).operands)


def _unlink(call) -> None:
    _each(call, split(call.words).operands)


def _mkdir(call) -> None:
    _each(call, split(call.words, "m", ("--mode",)).operands)


def _touch(call) -> None:
    options = split(call.words, "drtA", ("--date", "--reference", "--time"))
    for word in options.operands:
        path = seen(call, word)
        if word != "-" and not (options.has("-c", "-h", "--no-create") and path and not os.path.lexists(path)):
            call.write(word)


def _truncate(call) -> None:
    _each(call, split(call.words, "sr", ("--size", "--reference")).operands)


def _shred(call) -> None:
    _each(call, split(call.words, "ns", ("--iterations", "--size", "--random-source")).operands)


def _mknod(call) -> None:
    _each(call, split(call.words, "m", ("--mode",)).operands[:1])


def _mkfifo(call) -> None:
    _each(call, split(call.words, "m", ("--mode",)).operands)


def _chmod(call) -> None:
    """A mode may begin with a dash: ``chmod -x f``."""
    words, mode = [], None
    for word in call.words:
        if mode is None and len(word) > 1 and word[0] == "-" and all(char in "rwxXstugoa,+=-" for char in word[1:]):
            mode = word
        else:
            words.append(word)
    options = split(words, "", ("--reference",))
    operands = options.operands if mode or options.has("--reference") else options.operands[1:]
    _marked(call, options, operands)


def _chown(call) -> None:
    options = split(call.words, "", ("--reference", "--from"))
    _marked(call, options, options.operands if options.has("--reference") else options.operands[1:])


def _chflags(call) -> None:
    options = split(call.words)
    _marked(call, options, options.operands[1:])


def _setfacl(call) -> None:
    options = split(
        call.words, "mxMX", ("--modify", "--remove", "--set", "--set-file", "--modify-file", "--remove-file")
    )
    if not options.has("--test"):
        _marked(call, options, options.operands)


def _xattr(call) -> None:
    options = split(call.words)
    if options.has("-w", "-d", "-c"):
        taken = 2 if options.has("-w") else 1 if options.has("-d") else 0
        _marked(call, options, options.operands[taken:])


def _marked(call, options, operands) -> None:
    for word in operands:
        if options.has("-R", "--recursive", "-r"):
            call.tree(word)
        else:
            call.write(word, keeps_text=True)


def _mktemp(call) -> None:
    """Makes a file under a name that was free, and prints it: what is written there harms nobody."""
    options = split(call.words, "p", ("--suffix",))
    template = options.operands[-1] if options.operands else ""
    folder = options.value("-p", "--tmpdir")
    everywhere = os.environ.get("TMPDIR") or "/tmp"
    if options.has("-t", "--tmpdir", "-p") or not template:
        folder = folder or everywhere
    path = os.path.join(folder or "", os.path.basename(template) if options.has("-t") else template or "tmp.XXXXXXXXXX")
    path += options.value("--suffix") or ""
    if is_known(path):
        if not options.has("-u", "--dry-run"):
            call.write(path)
        call.says(path + "\n")


def _rename(call) -> None:
    """Two programs have this name: perl's (``rename 's/a/b/' files``) and util-linux's (``rename a b files``)."""
    options = split(call.words, "e")
    if options.has("-n", "--nono", "--no-act", "--just-print", "--dry-run", "-V", "--version", "-h", "--help"):
        return
    operands = list(options.operands)
    code = options.value("-e") or (operands.pop(0) if operands else "")
    is_perl = (
        options.has("-e") or (len(code) > 2 and code[0] in "sy" and not code[1].isalnum()) or code.startswith("tr/")
    )
    taken, given = code, None
    if not is_perl:
        given = operands.pop(0) if operands else ""
    elif code[0] == "s":
        parts = code[2:].split(code[1])
        plain = parts[0].removesuffix("$").removeprefix("^").replace("\\.", ".")
        if len(parts) == 3 and all(char.isalnum() or char in "._- " for char in plain + parts[1]):
            taken, given = plain, parts[1]
    for word in operands:
        call.write(word)
        folder, name = os.path.split(word)
        if given is None or not is_known(word + taken + given):
            call.guess("renames files", folder or None)
        elif taken in name:
            call.write(os.path.join(folder, name.replace(taken, given, 1)))


def _trash(call) -> None:
    for word in split(call.words).operands:
        call.tree(word)


def _gio(call) -> None:
    verb, options = (call.words or [""])[0], split(call.words[1:], "at", ("--attribute", "--type"))
    operands = options.operands
    if verb in ("copy", "move") and len(operands) > 1:
        call.run(["cp" if verb == "copy" else "mv", *operands])
    elif verb in ("remove", "trash"):
        for word in operands if not options.has("--empty", "--list", "--restore") else ():
            call.tree(word)
    elif verb in ("save", "mkdir", "set", "rename"):
        for word in operands if verb == "mkdir" else operands[:1]:
            call.write(word)
        if verb == "rename" and len(operands) > 1:
            call.write(os.path.join(os.path.dirname(operands[0]), operands[1]))


def _dos2unix(call) -> None:
    options = split(call.words, "c", ("--convmode",))
    if options.has("-i", "--info", "-O", "--to-stdout", "-h", "--help", "-V", "--version"):
        return
    if options.has("-n", "--newfile"):
        _each(call, options.operands[1::2])
    else:
        _each(call, options.operands)


def _each(call, words) -> None:
    for word in words:
        if word != "-":
            call.write(word)


RUN = {
    "rm": _rm,
    "grm": _rm,
    "rmdir": _rmdir,
    "unlink": _unlink,
    "mkdir": _mkdir,
    "touch": _touch,
    "gtouch": _touch,
    "truncate": _truncate,
    "shred": _shred,
    "mknod": _mknod,
    "mkfifo": _mkfifo,
    "chmod": _chmod,
    "chown": _chown,
    "chgrp": _chown,
    "chflags": _chflags,
    "setfacl": _setfacl,
    "xattr": _xattr,
    "mktemp": _mktemp,
    "rename": _rename,
    "prename": _rename,
    "trash": _trash,
    "trash-put": _trash,
    "gio": _gio,
    "dos2unix": _dos2unix,
    "unix2dos": _dos2unix,
}
