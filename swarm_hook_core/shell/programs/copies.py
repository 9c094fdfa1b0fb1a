"""cp, mv, ln, install and rsync: a source goes to, or over, a destination."""

from __future__ import annotations

import os
import sys

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.shell.call import Call, Options, split
from swarm_hook_core.shell.model import Admits, Stream, absolute, edit_or_replace, is_known
from swarm_hook_core.shell.programs.places import (
    cannot_tell,
    exists,
    is_folder,
    is_remote,
    lay_over,
    matching,
    put,
    seen,
    targets,
)

_TAKES = ("--target-directory", "--suffix")


class _Transfer:
    """The arguments of cp, mv, ln and install: `sources`, `dest`, and `inside`: True if they go into the folder `dest`.

    `inside` is None if the disk decides.
    """

    def __init__(self, call: Call, short: str = "tS", long: tuple[str, ...] = _TAKES) -> None:
        self.call = call
        self.options = options = split(call.words, short, long)
        folder = options.value("-t", "--target-directory")
        self.sources, self.dest = options.operands[:-1], (options.operands or [""])[-1]
        self.inside = None
        if len(self.sources) > 1:
            self.inside = True
        if folder is not None:
            self.sources, self.dest, self.inside = options.operands, folder, True
        elif options.has("-T", "--no-target-directory"):
            self.inside = False
        if options.has("--help", "--version"):
            self.sources = []

    def existing(self) -> list[str]:
        """The sources without the patterns that have matched nothing: there is no such file to be copied."""

        def matched(word: str) -> bool:
            path = None
            if any(sign in word for sign in "*?["):
                path = seen(self.call, word)
            return path is None or not self.call.walk.files.is_missing(path)

        return [word for word in self.sources if matched(word)]

    @property
    def spares(self) -> bool:
        """True if existing files stay as they are."""
        return self.options.has("-n", "--no-clobber") or self.options.value("--update") in ("none", "none-fail")

    def made(self, source: str) -> Stream | None:
        """Return the Stream of the file `source` if this script has made it; else None."""
        return self.call.walk.files.contents.get(absolute(self.call.folder, source) or "")

    def put(self, source: str, spared: bool = False, how: str = REPLACE, made: Stream | None = None) -> list[str]:
        """Write `source`, a file, to where it goes; the targets that were named. `made`: as `made` has it."""
        call = self.call
        made = made or self.made(source)
        named = put(call, source, self.dest, self.inside, spared, how)
        for word in named:
            path = absolute(call.folder, word)
            if made is not None and path is not None:
                call.walk.effects.copied[path] = made
        _back_up(call, self.options, named)
        return named


def _back_up(call: Call, options: Options, named: list[str]) -> None:
    kind = options.value("--backup")
    if not options.has("-b", "--backup", "-S", "--suffix") or kind in ("none", "off"):
        return
    suffix = options.value("-S", "--suffix") or "~"
    for word in named:
        call.write(word + suffix, REPLACE)
        if kind in ("numbered", "t", "existing", "nil"):
            call.write(word + ".~1~")


def cp(call: Call) -> None:
    given = _Transfer(call)
    options, dest = given.options, given.dest
    deep = options.has("-r", "-R", "-a", "--recursive", "--archive")
    for source in given.existing():
        folder = is_folder(call, source)
        if options.has("--parents"):
            under = os.path.join(dest, source.lstrip("/"))
            call.write(under, edit_or_replace(given.spares))
            if deep:
                lay_over(call, source, under, False, given.spares)
            continue
        if deep and is_known(source) and (folder or not exists(call, source)):
            # BSD's cp takes `folder/` for its content.
            bare = given.inside is None and sys.platform == "darwin" and source.endswith("/")
            lay_over(call, source, dest, False if bare else given.inside, given.spares)
            if folder:
                continue
        named = given.put(source, given.spares)
        if options.has("-l", "--link", "-s", "--symbolic-link"):
            _linked(call, source, named, options.has("-s", "--symbolic-link"))
        if deep and not is_known(source):
            call.tree(dest, cannot_tell, edit_or_replace(given.spares))


def mv(call: Call) -> None:
    given = _Transfer(call)
    for source in given.existing():
        goes_to = targets(call, source, given.dest, given.inside)
        if given.spares and all(exists(call, word) for word in goes_to):
            continue
        if is_folder(call, source):
            call.tree(source, how=REMOVE)
            lay_over(call, source, given.dest, given.inside, given.spares)
            for word in goes_to:
                call.write(word, edit_or_replace(given.spares))
        else:
            made = given.made(source)
            call.write(source, REMOVE)
            given.put(source, given.spares, made=made)


def ln(call: Call) -> None:
    given = _Transfer(call)
    if len(given.options.operands) == 1 and given.inside is None:
        given.sources, given.dest, given.inside = given.options.operands, ".", True
    elif given.inside is None and given.options.has("-n", "-h", "--no-dereference"):
        path = seen(call, given.dest)
        given.inside = None
        if path and os.path.islink(path.rstrip("/")):
            given.inside = False
    how = edit_or_replace(not given.options.has("-f", "--force"))  # without it an existing file stays
    for source in given.sources:
        _linked(call, source, given.put(source, how=how), given.options.has("-s", "--symbolic"))


def _linked(call: Call, source: str, named: list[str], symbolic: bool) -> None:
    """Note that later writes to `named` go to `source`."""
    for word in named:
        path, folder = seen(call, word), call.folder
        if not path:
            continue
        if symbolic:
            folder = os.path.dirname(path)
        target = absolute(folder, source)
        if target:
            call.walk.files.links[path] = target


def install(call: Call) -> None:
    given = _Transfer(call, "gmotSfB", (*_TAKES, "--group", "--mode", "--owner", "--strip-program"))
    if given.options.has("-d", "--directory"):
        for word in given.options.operands:
            call.write(word)
        return
    if given.options.has("-D") and given.inside is None and not is_folder(call, given.dest):
        given.inside = False
    for source in given.existing():
        given.put(source)


_RSYNC_TAKES = (
    "--exclude --include --exclude-from --include-from --files-from --rsh --filter --backup-dir --suffix --temp-dir"
    " --compare-dest --copy-dest --link-dest --log-file --log-file-format --bwlimit --max-size --min-size --chmod"
    " --chown"
    " --partial-dir --port --timeout --contimeout --password-file --out-format --rsync-path --block-size"
    " --modify-window"
    " --skip-compress --compress-level --iconv --info --debug --usermap --groupmap --max-delete --protocol --sockopts"
    " --write-batch --only-write-batch --read-batch --stop-after --stop-at --remote-option --max-alloc --checksum-seed"
).split()


def rsync(call: Call) -> None:
    options = split(call.words, "efBTM", _RSYNC_TAKES)
    log = options.value("--log-file")
    if log:
        call.write(log)
    if options.has("-n", "--dry-run", "--list-only", "--help", "--version") or len(options.operands) < 2:
        return
    *sources, dest = options.operands
    gone = options.has("--remove-source-files", "--remove-sent-files")
    if gone:
        for source in sources:
            if not is_remote(source):
                call.tree(source, how=REMOVE)
    if is_remote(dest):
        return
    backups = options.value("--backup-dir")
    if backups:
        call.tree(backups, cannot_tell)
    for source in sources:
        _sync(call, options, source, dest, len(sources) > 1)


def _sync(call: Call, options: Options, source: str, dest: str, several: bool) -> None:
    deletes = any(name.startswith("--del") for name in options.given)
    allowed = _let_through(options)
    spared = options.has("--ignore-existing")
    how = edit_or_replace(spared)
    deep = options.has("-r", "-a", "-d", "--recursive", "--archive", "--dirs", "--delete")
    contents = source.endswith("/") or os.path.basename(source) in (".", "..")
    if options.has("-R", "--relative"):
        marked = source.find("/./")
        call.tree(os.path.join(dest, source[marked + 3 :] if marked >= 0 else source.lstrip("/")), cannot_tell, how)
        return
    if is_remote(source) or options.has("--files-from") or not is_known(source):
        call.tree(dest, cannot_tell, how)
        if not is_remote(source) or contents or is_folder(call, dest):
            return
        put(call, source[source.index(":") + 1 :], dest, several or None, how=how)
        return
    if is_folder(call, source) or not exists(call, source):
        if contents:
            inside = False
        elif several or is_folder(call, dest):
            inside = True
        else:
            inside = None
        if not deep:
            return
        if deletes:
            for word in targets(call, source, dest, inside):
                call.tree(word, _or_removed(seen(call, word), allowed), REPLACE)
            return
        if is_folder(call, source):
            lay_over(call, source, dest, inside, spared, allowed)
            return
        if contents:
            call.tree(dest, cannot_tell, how)
            return
    _back_up(call, options, put(call, source, dest, several or None, spared))


_OTHER_FILTERS = (
    "--exclude-from --filter -f --include --include-from -F -C --cvs-exclude -u --update --existing"
).split()


def _let_through(options: Options) -> Admits | None:
    """Return the files that ``--exclude`` leaves, as `allowed` of `places.lay_over`; None for all."""
    patterns = options.values("--exclude")
    if options.has(*_OTHER_FILTERS) or not all(map(is_known, patterns)):
        return cannot_tell
    if not patterns:
        return None
    rules = [
        (pattern.startswith("/"), matching(pattern.strip("/").removesuffix("/**").removesuffix("/*"), "/"))
        for pattern in patterns
    ]

    def allowed(rest: str) -> bool:
        parts = rest.split("/")
        return not any(
            matches("/" + "/".join(parts[start:end]))
            for anchored, matches in rules
            for start in range(1 if anchored else len(parts))
            for end in range(start + 1, len(parts) + 1)
        )

    return allowed


def _or_removed(root: str | None, allowed: Admits | None) -> Admits:
    """Return the predicate of a destination that ``--delete`` makes the same as the source: all but excluded files."""

    def admits(path: str) -> bool | None:
        rest = ""
        if root and path.startswith(root):
            rest = path[len(root) :].strip("/")
        if allowed is None or not rest:
            return True
        return allowed(rest)

    return admits
