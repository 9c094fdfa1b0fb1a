"""Programs that remove, make or mark files, and leave their content alone."""

import os

from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import seen


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
    from swarm_hook_core.shell.programs.renaming import in_perl, in_words, is_perl

    options = split(call.words, "e", ("--expr", "--expression"))
    if options.has("-n", "--nono", "--no-act", "--just-print", "--dry-run", "-V", "--version", "-h", "--help"):
        return
    operands = list(options.operands)
    codes = options.values("-e", "--expr", "--expression") or operands[:1]
    if options.has("-e", "--expr", "--expression"):
        new_name = in_perl(codes, options)
    elif codes and is_perl(codes[0]):
        new_name, operands = in_perl(codes, options), operands[1:]
    else:
        new_name, operands = in_words(operands[:2], options), operands[2:]
    for word in operands:
        path = seen(call, word)
        if path is not None and call.walk.is_missing(path):
            continue
        new = new_name(word) if is_known(word) else None
        if new == word:
            continue
        call.write(word)
        if new is None:
            call.guess("renames files", os.path.dirname(word) or None)
        else:
            call.write(new)


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
    **dict.fromkeys(("rename.ul", "file-rename", "perl-rename"), _rename),
    "rename": _rename,
    "prename": _rename,
    "trash": _trash,
    "trash-put": _trash,
    "gio": _gio,
    "dos2unix": _dos2unix,
    "unix2dos": _dos2unix,
}
