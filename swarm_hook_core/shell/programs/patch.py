"""patch and apply_patch; and the files that a diff is about, as GNU patch and as ``git apply`` take it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.patch import PatchUnreadable, patch_changes
from swarm_hook_core.shell.call import Call, Options, split
from swarm_hook_core.shell.model import absolute, edit_or_replace, is_known, text_of

LONGEST = 4 * 1024 * 1024  # characters of a diff that are read
MOST_TARGETS = 300  # files that `targets` names
ENVELOPE = "*** Begin Patch"
_MOVES = ("from", "to")  # kinds of headers of a file that is renamed, or of its copy
_LONG = (
    "--strip --input --output --directory --fuzz --ifdef --prefix --basename-prefix --suffix --reject-file --get"
    " --version-control --quoting-style --read-only --reject-format"
).split()


def patch(call: Call) -> None:
    options = split(call.words, "pioDdFBYzrgVx", _LONG)
    if options.has("--dry-run", "-C", "--check", "-v", "--version", "--help"):
        return
    folder = call.folder
    inside = options.value("-d", "--directory")
    if inside:
        folder = absolute(folder, inside)
    operands = options.operands
    written = options.value("-o", "--output") or next(iter(operands), None)
    if written is not None:
        if written != "-":
            _write(call, folder, written, edit_or_replace(written in operands))
        if operands and not options.value("-o", "--output"):
            _back_up(call, folder, options, written)
        return
    source = options.value("-i", "--input")
    if source and source != "-":
        stream = call.walk.files.text_of(source, folder)
    else:
        stream = call.stdin
    text = None
    if stream:
        text = stream.text
    if text is None:
        call.guess("a diff that cannot be read yet", inside)
        return
    strip = options.value("-p", "--strip")
    named = targets(text, folder, int(strip) if strip and strip.isdigit() else None, options.has("-R", "--reverse"))
    if len(named) >= MOST_TARGETS:
        call.guess("a diff of more files than are looked at", inside)
    for name, how in named.items():
        _write(call, folder, name, how)
        _back_up(call, folder, options, name)


def _write(call: Call, folder: str | None, name: str, how: str = EDIT) -> None:
    if folder not in (call.folder, None):
        name = os.path.join(folder, name)
    call.write(name, how)


def _back_up(call: Call, folder: str | None, options: Options, name: str) -> None:
    suffix, prefix = options.value("-z", "--suffix"), options.value("-B", "--prefix")
    if prefix:
        _write(call, folder, prefix + name, REPLACE)
    elif suffix or options.has("-b", "--backup"):
        _write(call, folder, name + (suffix or ".orig"), REPLACE)


def apply_patch(call: Call) -> None:
    """Codex's apply_patch: the patch is its argument or, without one, its standard input."""
    texts = [word for word in call.words if ENVELOPE in word]
    if not texts:
        text = None
        if not any(not is_known(word) for word in call.words):
            text = text_of(call.stdin)
        texts = []
        if text is not None:
            texts = [text]
    unread = not texts
    for text in texts:
        # `echo` and `printf` of some shells make line ends of these.
        if ENVELOPE + "\\n" in text:
            text = text.replace("\\n", "\n")
        try:
            changes = patch_changes(text)
        except PatchUnreadable:
            changes = []
        unread = unread or not changes or not is_known(text)
        for path, how in changes:
            call.write(path, how)
    if unread:
        call.guess("a patch that cannot be read yet")


def codex(call: Call) -> None:
    if call.words[:1] == ["--codex-run-as-apply-patch"]:
        apply_patch(call)
    else:
        call.guess("codex is not known")


def files_in(
    text: str, strip: int | None = None, directory: str = "", prefix: str = "", reverse: bool = False
) -> Iterator[tuple[str, bool, str]]:
    """Yield each file of `text` once, as git takes it: (path, True if relative to the work tree's top, how).

    `how` is REMOVE for a file that is renamed, else EDIT: git makes, changes or removes only a file that is as the text
    says. Names of ``diff --git`` are relative to the top, those of plain diffs to the folder of the command. `strip`:
    leading parts that are taken off (None: not given); `directory`: put before; `prefix`: the folder of the command,
    relative to the top, with which a plain diff's names may begin.
    """
    seen: set[tuple[str, bool]] = set()
    for kind, of_git, names in _headers(text[:LONGEST]):
        names = [name for name in names[:2] if name != "/dev/null"]
        if kind == "files" and strip is None and not of_git:
            strip = _guessed(names, prefix)
        if kind in _MOVES:
            taken_off = 0
        elif strip is None:
            taken_off = 1
        else:
            taken_off = strip
        how = _how(kind, reverse)
        for name in names:
            parts = name.split("/")
            if len(parts) > taken_off:
                found = os.path.join(directory, "/".join(parts[taken_off:])), of_git or kind != "files"
                if found not in seen:
                    seen.add(found)
                    yield (*found, how)


def targets(text: str, folder: str | None, strip: int | None, reverse: bool = False) -> dict[str, str]:
    """Return the names of the files that `text` changes, makes or removes, as GNU patch takes it, with the fate of
    each.

    `folder`: absolute; patch looks there for the existing name of a header (None: unknown). `strip`: number of leading
    folders that go; None, as without -p: all of them.
    """
    found: dict[str, Any] = {}
    for kind, _of_git, names in _headers(text[:LONGEST]):
        if kind in _MOVES:
            # git writes these without a/ and b/; patch strips them as though they had it.
            name = _stripped("b/" + names[0], strip)
            how = _how(kind, reverse)
            if name in found:
                how = EDIT  # a file renamed to itself stays
            found[name] = how
        elif kind == "files":
            old, new, index = names
            if reverse:
                ordered = (new, old, index)
            else:
                ordered = (old, new, index)
            found.setdefault(_chosen([_stripped(name, strip) for name in ordered if name != "/dev/null"], folder), EDIT)
        if len(found) >= MOST_TARGETS:
            break
    found.pop("", None)
    return found


def _how(kind: str, reverse: bool) -> str:
    """Return REMOVE for the name that a renaming takes away, else EDIT."""
    if (kind, reverse) in (("from", False), ("to", True)):
        return REMOVE
    return EDIT


def _headers(text: str) -> Iterator[tuple[str, bool, list[str]]]:
    """Yield ``(kind, True if git made it, names)`` of the header before each change.

    ``files``: the names before and after, and that of an ``Index:`` line, or empty; ``git``: the name of a ``diff
    --git`` line; ``from``, ``to``: the source of a renaming, or the target of a renaming or copy.
    """
    of_git, before, mark, index = False, "", "", ""
    removed = added = 0
    for line in text.replace("\r\n", "\n").split("\n"):
        kind, mark = mark, line[:4]
        if removed or added:  # inside a hunk, "--- x" is a line that goes
            removed = max(removed - (mark[:1] not in ("+", "\\")), 0)
            added = max(added - (mark[:1] not in ("-", "\\")), 0)
            mark = ""
        elif line.startswith("@@ -"):
            removed, added = _sizes(line)
        elif line.startswith("diff --git "):
            of_git = True
            names = _same_names(line[11:])
            if names:
                yield "git", True, names
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            yield ("from" if line.startswith("rename from ") else "to"), True, [unquoted(line.split(" ", 2)[2])]
        elif line.startswith("Index: "):
            of_git, index = False, _name(line[7:])
        elif (mark, kind) in (("+++ ", "--- "), ("--- ", "*** ")):
            yield "files", of_git, [before, _name(line[4:]), index]
            index = mark = ""
        elif mark in ("--- ", "*** "):
            before = _name(line[4:])


def _name(text: str) -> str:
    """The name in a header: up to the tab, or the blank, before its time, and without quotes."""
    text = text.rstrip()
    if text.startswith('"'):
        return unquoted(text.partition("\t")[0].rstrip())
    name, _tab, _time = text.partition("\t")
    first, _blank, rest = name.partition(" ")
    if rest[:4].isdigit() and rest[4:5] == "-":
        return first
    return name.rstrip()


def unquoted(name: str) -> str:
    """A name as git prints it, without the quotes and backslashes that it puts around odd ones."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    plain = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, '"': 34, "\\": 92}
    out, at, inner = bytearray(), 0, name[1:-1]
    while at < len(inner):
        letter = inner[at]
        if letter == "\\" and inner[at + 1 : at + 4].isdigit() and len(inner[at + 1 : at + 4]) == 3:
            out.append(int(inner[at + 1 : at + 4], 8) & 255)
            at += 4
        elif letter == "\\" and inner[at + 1 : at + 2] in plain:
            out.append(plain[inner[at + 1]])
            at += 2
        else:
            out += os.fsencode(letter)
            at += 1
    return os.fsdecode(bytes(out))


def _sizes(line: str) -> tuple[int, int]:
    """(old, new) number of lines of the hunk that ``@@ -1,2 +3,4 @@`` begins."""
    sizes = [0, 0]
    for place, part in enumerate(line.split(" ")[1:3]):
        number = part.partition(",")[2] or "1"
        if number.isdigit():
            sizes[place] = int(number)
    return sizes[0], sizes[1]


def _same_names(rest: str) -> list[str]:
    """The name in ``a/x b/x``, where both are one file; renames say theirs on lines of their own."""
    if rest.startswith('"'):
        first = rest[: rest.find('" ', 1) + 1]
        if first:
            return [unquoted(first)]
        return []
    half = len(rest) // 2
    left, right = rest[:half], rest[half + 1 :]
    if rest[half : half + 1] == " " and left.partition("/")[2] == right.partition("/")[2]:
        return [left]
    return []


def _guessed(names: list[str], prefix: str) -> int | None:
    """Return the number of parts that git takes off the names of a plain diff without -p, or None for the usual one."""
    guesses: set[int | None] = set()
    for name in names:
        start = prefix + "/"
        if "/" not in name:
            guesses.add(0)
        elif prefix and name.startswith(start):
            guesses.add(start.count("/"))
        elif prefix and name.partition("/")[2].startswith(start):
            guesses.add(start.count("/") + 1)
        else:
            guesses.add(None)
    if len(guesses) == 1:
        return guesses.pop()
    return None


def _stripped(name: str, strip: int | None) -> str:
    parts = [part for part in name.split("/") if part]
    if strip is None:
        if parts:
            return parts[-1]
        return ""
    if strip == 0:
        return name
    absolute_one = parts
    if name.startswith("/"):
        absolute_one = ["/"] + parts
    return "/".join(absolute_one[strip:])


def _chosen(names: list[str], folder: str | None) -> str:
    """Of the names in one header: the existing one with the fewest folders, then the shortest; else the new one."""
    names = [name for name in names if name]
    there = [name for name in names if folder is not None and os.path.lexists(os.path.join(folder, name))]
    if there:
        return min(there, key=lambda name: (name.count("/"), len(os.path.basename(name)), len(name)))
    if len(names) > 1:
        return names[1]
    if names:
        return names[0]
    return ""
