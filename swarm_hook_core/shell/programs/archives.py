"""Archives: the files that are packed, and the files that unpacking writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, BinaryIO

from swarm_hook_core import REMOVE
from swarm_hook_core.shell.call import Call, Options, split
from swarm_hook_core.shell.model import Admits, Stream, edit_or_replace, is_known
from swarm_hook_core.shell.programs.places import below, cannot_tell, seen

LONGEST_LETTERS = 30  # of tar's old-style options
MOST = 5000  # members of an archive that are looked at; of one with more nothing is certain
LARGEST_LIST = 2 << 20  # bytes of a zip's list of its members
LISTING_SECONDS = 0.2  # a compressed tar has to be unpacked to be listed
_TAR_LONG = (
    "--file --directory --strip-components --exclude --exclude-from --files-from --transform --xform --owner --group"
    " --mode --mtime --use-compress-program --one-top-level --to-command --listed-incremental --newer --format --suffix"
    " --index-file --warning --checkpoint --checkpoint-action --starting-file --tape-length --blocking-factor --label"
).split()


def tar(call: Call) -> None:
    words = list(call.words)
    if words and words[0][:1].isalpha() and words[0].isalnum() and len(words[0]) < LONGEST_LETTERS:
        words = _old_style(words)
    options = split(words, "fCTXbgHIKLNVs", _TAR_LONG)
    has, file = options.has, options.value("-f", "--file")
    folder = options.value("-C", "--directory")
    if has("--help", "--version", "-t", "--list", "-d", "--diff", "--compare") and not has("-x", "-c"):
        return
    if file and ":" in file.split("/")[0] and not has("--force-local"):
        file = None  # a tape of another machine
    if has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--concatenate", "--catenate", "--delete"):
        if file and file != "-":
            call.write(file, edit_or_replace(not has("-c", "--create")))
        elif has("-c", "--create"):
            call.output = Stream(packed=_packed(call, folder, options))
        if has("--remove-files"):
            for word in options.operands:
                call.tree(_in(folder, word), how=REMOVE)
        return
    if not has("-x", "--extract", "--get") or has("-O", "--to-stdout", "--to-command"):
        return
    top = options.value("--one-top-level")
    if has("--one-top-level"):
        name = top or os.path.basename(file or "").split(".tar")[0]
        folder = _in(folder, name)
    keeps = has("-k", "--keep-old-files", "--skip-old-files")
    strip = options.value("--strip-components", "--strip") or "0"
    plain = not (has("--transform", "--xform", "-s", "--exclude", "-X", "--exclude-from", "-T", "--files-from", "-P"))
    piped = None
    if file in (None, "-"):
        piped = call.stdin
    root = seen(call, folder or ".")
    how = edit_or_replace(keeps)
    packed = piped and piped.packed
    if packed and plain and strip == "0" and not options.operands and root:

        def arrives(path: str) -> bool | None:
            if keeps and os.path.isfile(path):
                return False
            return packed(below(path, root))

        call.tree(folder or ".", arrives, how)
        return
    if piped:
        source = piped.file
    elif file and file != "-":
        source = seen(call, file)
    else:
        source = None
    members = Members(source if plain and strip.isdigit() else None, tar_names, options.operands)
    call.tree(folder or ".", members.landing(root, int(strip) if strip.isdigit() else 0, keeps), how)


def _packed(call: Call, folder: str | None, options: Options) -> Admits:
    """Return a predicate of paths that the new archive holds: the operands, and the files under them."""
    start = seen(call, folder or ".")
    words = [os.path.normpath(word).lstrip("/") for word in options.operands]
    if (
        start is None
        or not all(map(is_known, words))
        or options.has("--transform", "--xform", "-s", "-T", "--files-from")
    ):
        return cannot_tell
    unsure = options.has("--exclude", "-X", "--exclude-from", "--exclude-vcs", "-P")

    def holds(path: str) -> Any:
        if not any(word == "." or path == word or path.startswith(word + "/") for word in words) and path:
            return False
        if not os.path.lexists(os.path.join(start, path)):
            if not os.path.exists(start):
                return None
            return False
        if unsure:
            return None
        return True

    return holds


def _old_style(words: list[str]) -> list[str]:
    """``xzf a.tgz -C d`` as ``-x -z -f a.tgz -C d``: letters first, then their values in the same order."""
    letters, rest, options = words[0], words[1:], []
    for letter in letters:
        options.append("-" + letter)
        if letter in "fCTXbgHIKLNV" and rest:
            options.append(rest.pop(0))
    return options + rest


def _in(folder: str | None, word: str) -> str:
    if folder:
        return os.path.join(folder, word)
    return word


class Members:
    """The names in the archive at absolute `source` (None: unknown), read at the first question.

    `chosen`: members that were asked for; a folder includes its content.
    """

    def __init__(
        self, source: str | None, listing: Callable[[str], list[str] | None], chosen: Iterable[str] = ()
    ) -> None:
        self.source = source
        self.listing = listing
        self.chosen = [word.strip("/").removeprefix("./") for word in chosen]
        self.names: list[str] | None = None
        self.read = False

    def known(self) -> list[str] | None:
        """Return the set of names and of folders over them, or None if unknown."""
        if not self.read:
            self.read = True
            try:
                # A device has no end, and a pipe waits for its writer.
                if self.source and os.path.isfile(self.source) and all(map(is_known, self.chosen)):
                    self.names = self.listing(self.source)
            except Exception:  # a broken archive, or one of a kind that the listing does not know
                self.names = None
            if self.names is not None:
                self.names = [os.path.normpath(name).lstrip("/") for name in self.names]
        return self.names

    def landing(self, root: str | None, strip: int = 0, keeps: bool = False) -> Admits:
        """Return the predicate: a member is unpacked to a path under absolute `root`."""
        places: set[str] = set()

        def admits(path: str) -> bool | None:
            names = self.known()
            if names is None or root is None:
                if keeps and os.path.isfile(path):
                    return False
                return None
            if keeps and os.path.lexists(path) and not os.path.isdir(path):
                return False
            if not places:
                places.update(self.places(names, strip))
            return os.path.relpath(path, root) in places

        return admits

    def places(self, names: Iterable[str], strip: int) -> Iterator[str]:
        yield "."
        for name in names:
            if self.chosen and not any(
                name == word or name.startswith(word + "/") or _fits(name, word) for word in self.chosen
            ):
                continue
            parts = name.split("/")[strip:]
            for end in range(1, len(parts) + 1):
                yield "/".join(parts[:end])


def _fits(name: str, pattern: str) -> bool:
    if not any(char in pattern for char in "*?["):
        return False

    return fnmatchcase(name, pattern)


class _InTime:
    """A file for `tarfile` to read from, that raises TimeoutError when the time is up."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.clock = time.monotonic
        self.end = self.clock() + LISTING_SECONDS

    def read(self, size: int) -> bytes:
        if self.clock() > self.end:
            raise TimeoutError("the archive takes too long to be listed")
        return self.file.read(size)


def tar_names(path: str) -> list[str] | None:
    import tarfile

    names: list[Any] = []
    # The stubs want a whole file object; a stream ("r|") is only read from.
    with open(path, "rb") as file, tarfile.open(fileobj=_InTime(file), mode="r|*") as archive:  # type: ignore[call-overload]
        for member in archive:
            names.append(member.name)
            if len(names) > MOST:
                return None
    return names


def zip_names(path: str) -> list[str] | None:
    import zipfile

    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(-min(file.tell(), 66_000), os.SEEK_END)
        tail = file.read()
        mark = tail.rfind(b"PK\5\6")  # the end record: it says how many members there are
        members, size = (int.from_bytes(tail[mark + at : mark + end], "little") for at, end in ((10, 12), (12, 16)))
        if mark < 0 or members > MOST or size > LARGEST_LIST:
            return None
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()


def unzip(call: Call) -> None:
    words, excluded = list(call.words), False
    operands, folder, letters = [], ".", ""
    while words:
        word = words.pop(0)
        if not word.startswith("-") or len(word) == 1:
            if not excluded:
                operands.append(word)
        elif word[1] == "d" and word[2:]:
            folder = word[2:]
        elif word[-1] == "d":
            letters += word[1:-1]
            folder = ""
            if words:
                folder = words.pop(0)
        elif word[1] == "x":
            excluded = True
        else:
            letters += word[1:]
            if word == "-P":
                del words[:1]
    if not operands or any(letter in letters for letter in "lptvzZc"):
        return
    source = seen(call, operands[0])
    if source and not os.path.exists(source):
        source += ".zip"
    keeps = "n" in letters
    how = edit_or_replace(keeps)
    if excluded or "j" in letters:
        call.tree(folder, cannot_tell, how)
    else:
        call.tree(folder, Members(source, zip_names, operands[1:]).landing(seen(call, folder), 0, keeps), how)
