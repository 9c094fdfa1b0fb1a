"""cp, mv, ln, install and rsync: a source goes to, or over, a destination."""

import os
import sys

from swarm_hook_core.shell.model import absolute, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import (
    cannot_tell,
    exists,
    is_folder,
    lay_over,
    matching,
    put,
    seen,
    targets,
)

_BACKUPS = ("-b", "--backup")


def _operands(call, options):
    """``(sources, dest, inside)`` of the GNU and BSD grammar, or None where there is nothing to do."""
    dest, operands = options.value("-t", "--target-directory"), options.operands
    if dest is not None:
        return _there(call, operands), dest, True
    if len(operands) < 2:
        return None
    flat = options.has("-T", "--no-target-directory")
    return _there(call, operands[:-1]), operands[-1], False if flat else True if len(operands) > 2 else None


def _there(call, sources) -> list[str]:
    """`sources` without the patterns that have matched nothing: there is no such file to be copied."""

    def matched(word: str) -> bool:
        path = seen(call, word) if any(sign in word for sign in "*?[") else None
        return path is None or not call.walk.is_missing(path)

    return [word for word in sources if matched(word)]


def _back_up(call, options, named) -> None:
    if not options.has(*_BACKUPS, "-S", "--suffix") or options.value("--backup") in ("none", "off"):
        return
    suffix = options.value("-S", "--suffix") or "~"
    for word in named:
        call.write(word + suffix)
        if options.value("--backup") in ("numbered", "t", "existing", "nil"):
            call.write(word + ".~1~")


def _spares(options) -> bool:
    """Whether what exists stays as it is."""
    return options.has("-n", "--no-clobber") or options.value("--update") in ("none", "none-fail")


def _cp(call) -> None:
    options = split(call.words, "tS", ("--target-directory", "--suffix"))
    found = _operands(call, options)
    if found is None or options.has("--help", "--version"):
        return
    sources, dest, inside = found
    deep = options.has("-r", "-R", "-a", "--recursive", "--archive")
    spared = _spares(options)
    for source in sources:
        if options.has("--parents"):
            call.write(os.path.join(dest, source.lstrip("/")))
            if deep:
                lay_over(call, source, os.path.join(dest, source.lstrip("/")), False, spared)
            continue
        # BSD's cp takes `folder/` for what is in it.
        bare = inside is None and sys.platform == "darwin" and source.endswith("/")
        if deep and (is_folder(call, source) or not exists(call, source)) and is_known(source):
            named = lay_over(call, source, dest, False if bare else inside, spared)
            if is_folder(call, source):
                continue
        named = put(call, source, dest, inside, spared)
        if options.has("-l", "--link", "-s", "--symbolic-link"):
            _linked(call, source, named, options.has("-s", "--symbolic-link"))
        if deep and not is_known(source):
            call.tree(dest, cannot_tell)
        _back_up(call, options, named)


def _mv(call) -> None:
    options = split(call.words, "tS", ("--target-directory", "--suffix"))
    found = _operands(call, options)
    if found is None or options.has("--help", "--version"):
        return
    sources, dest, inside = found
    spared = _spares(options)
    for source in sources:
        if spared and all(exists(call, word) for word in targets(call, source, dest, inside)):
            continue
        if is_folder(call, source):
            call.tree(source)
            lay_over(call, source, dest, inside, spared)
            for word in targets(call, source, dest, inside):
                call.write(word)
            continue
        call.write(source)
        _back_up(call, options, put(call, source, dest, inside, spared))


def _ln(call) -> None:
    options = split(call.words, "tS", ("--target-directory", "--suffix"))
    sources, dest, inside = options.operands[:-1], (options.operands or [""])[-1], None
    if options.value("-t", "--target-directory") is not None:
        sources, dest, inside = options.operands, options.value("-t", "--target-directory"), True
    elif len(options.operands) == 1:
        sources, dest, inside = options.operands, ".", True
    elif len(options.operands) > 2:
        inside = True
    elif options.has("-T", "--no-target-directory"):
        inside = False
    elif options.has("-n", "-h", "--no-dereference"):
        path = seen(call, dest)
        inside = False if path and os.path.islink(path.rstrip("/")) else None
    for source in sources:
        named = put(call, source, dest, inside)
        _back_up(call, options, named)
        _linked(call, source, named, options.has("-s", "--symbolic"))


def _linked(call, source: str, named, symbolic: bool) -> None:
    """What is written to `named` from here on goes to `source`."""
    for word in named:
        path = seen(call, word)
        target = absolute(os.path.dirname(path) if symbolic else call.folder, source) if path else None
        if target:
            call.walk.links[path] = target


def _link(call) -> None:
    if len(call.words) == 2:
        call.write(call.words[1])


def _install(call) -> None:
    options = split(
        call.words, "gmotSfB", ("--group", "--mode", "--owner", "--target-directory", "--suffix", "--strip-program")
    )
    if options.has("-d", "--directory"):
        for word in options.operands:
            call.write(word)
        return
    found = _operands(call, options)
    if found is None:
        return
    sources, dest, inside = found
    if options.has("-D") and inside is None and not is_folder(call, dest):
        inside = False
    for source in sources:
        _back_up(call, options, put(call, source, dest, inside))


_RSYNC_TAKES = (
    "--exclude --include --exclude-from --include-from --files-from --rsh --filter --backup-dir --suffix --temp-dir"
    " --compare-dest --copy-dest --link-dest --log-file --log-file-format --bwlimit --max-size --min-size --chmod"
    " --chown"
    " --partial-dir --port --timeout --contimeout --password-file --out-format --rsync-path --block-size"
    " --modify-window"
    " --skip-compress --compress-level --iconv --info --debug --usermap --groupmap --max-delete --protocol --sockopts"
    " --write-batch --only-write-batch --read-batch --stop-after --stop-at --remote-option --max-alloc --checksum-seed"
).split()


def is_remote(word: str) -> bool:
    """Whether rsync and scp take `word` for a file of another machine: ``host:path``, ``rsync://...``."""
    colon = word.find(":")
    return colon > 0 and "/" not in word[:colon]


def _rsync(call) -> None:
    options = split(call.words, "efBTM", _RSYNC_TAKES)
    if options.value("--log-file"):
        call.write(options.value("--log-file"))
    if options.has("-n", "--dry-run", "--list-only", "--help", "--version") or len(options.operands) < 2:
        return
    *sources, dest = options.operands
    gone = options.has("--remove-source-files", "--remove-sent-files")
    if gone:
        for source in sources:
            if not is_remote(source):
                call.tree(source)
    if is_remote(dest):
        return
    if options.value("--backup-dir"):
        call.tree(options.value("--backup-dir"), cannot_tell)
    for source in sources:
        _sync(call, options, source, dest, len(sources) > 1)


def _sync(call, options, source: str, dest: str, several: bool) -> None:
    deletes = any(name.startswith("--del") for name in options.given)
    allowed = _let_through(options)
    spared = options.has("--ignore-existing")
    deep = options.has("-r", "-a", "-d", "--recursive", "--archive", "--dirs", "--delete")
    contents = source.endswith("/") or os.path.basename(source) in (".", "..")
    if options.has("-R", "--relative"):
        marked = source.find("/./")
        call.tree(os.path.join(dest, source[marked + 3 :] if marked >= 0 else source.lstrip("/")), cannot_tell)
        return
    if is_remote(source) or options.has("--files-from") or not is_known(source):
        call.tree(dest, cannot_tell)
        if not is_remote(source) or contents or is_folder(call, dest):
            return
        put(call, source[source.index(":") + 1 :], dest, True if several else None)
        return
    if is_folder(call, source) or not exists(call, source):
        inside = False if contents else True if several or is_folder(call, dest) else None
        if not deep:
            return
        if deletes:
            for word in targets(call, source, dest, inside):
                call.tree(word, _or_removed(seen(call, word), allowed))
            return
        if is_folder(call, source):
            lay_over(call, source, dest, inside, spared, allowed)
            return
        if contents:
            call.tree(dest, cannot_tell)
            return
    _back_up(call, options, put(call, source, dest, True if several else None, spared))


def _let_through(options):
    """What ``--exclude`` leaves, as `allowed` of `places.lay_over`; None where all goes."""
    patterns = options.values("--exclude")
    if options.has(
        "--exclude-from",
        "--filter",
        "-f",
        "--include",
        "--include-from",
        "-F",
        "-C",
        "--cvs-exclude",
        "-u",
        "--update",
        "--existing",
    ):
        return cannot_tell
    if not patterns:
        return None
    if not all(map(is_known, patterns)):
        return cannot_tell

    rules = [
        (pattern.startswith("/"), matching(pattern.strip("/").removesuffix("/**").removesuffix("/*"), "/"))
        for pattern in patterns
    ]

    def allowed(rest: str):
        parts = rest.split("/")
        for anchored, matches in rules:
            for start in range(1 if anchored else len(parts)):
                for end in range(start + 1, len(parts) + 1):
                    if matches("/" + "/".join(parts[start:end])):
                        return False
        return True

    return allowed


def _or_removed(root, allowed):
    """The predicate of a destination that ``--delete`` makes the same as the source: all but what is excluded."""

    def admits(path: str):
        rest = path[len(root) :].strip("/") if root and path.startswith(root) else ""
        return True if allowed is None or not rest else allowed(rest)

    return admits


def _ditto(call) -> None:
    options = split(call.words, "", ("--arch", "--bom"))
    *sources, dest = options.operands or [""]
    for source in sources:
        if options.has("-x", "-c"):
            (call.tree if options.has("-x") else call.write)(dest, *([cannot_tell] if options.has("-x") else []))
        elif is_folder(call, source):
            lay_over(call, source, dest, False)
        else:
            put(call, source, dest)


RUN = {
    "cp": _cp,
    "gcp": _cp,
    "mv": _mv,
    "gmv": _mv,
    "ln": _ln,
    "gln": _ln,
    "link": _link,
    "install": _install,
    "ginstall": _install,
    "rsync": _rsync,
    "ditto": _ditto,
}
