"""Contents of git's objects: of files in the last commit, of many by a few questions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over


def committed_contents(paths: Iterable[str], seconds: float, most_bytes: int) -> dict[str, bytes]:
    """Return ``{path: content in the last commit}`` of absolute `paths`, links resolved; empty without such a file.

    Files are left out that git changes on their way, that are larger than `most_bytes` there, or that are not in this
    clone; and all files of a repository that does not answer in `seconds`.
    """
    found: dict[str, bytes] = {}
    by_top: dict[str, dict[str, str]] = {}
    for path in paths:
        tree = tree_over(os.path.dirname(path))
        if tree is None:
            found[path] = b""
        else:
            by_top.setdefault(tree.top, {})[os.path.relpath(path, tree.top)] = path
    for top, names in by_top.items():
        try:
            contents = _committed_in(Repository(top, seconds), list(names), most_bytes)
        except (NoAnswer, Refused):
            continue  # too slow, or no repository that git accepts
        found.update((names[name], data) for name, data in contents.items())
    return found


def _committed_in(repository: Repository, names: list[str], most_bytes: int) -> dict[str, bytes]:
    plain = repository.without_filter(names)
    try:
        rows = repository.ask("ls-tree", "-l", "-z", "--full-tree", "HEAD", "--", *plain).split("\0")[:-1]
    except Refused:
        rows = []  # no commit yet
    objects, others = {}, set()
    for row in rows:
        facts, _, name = row.partition("\t")
        _mode, _kind, made, size = facts.split()
        if size.isdigit() and int(size) <= most_bytes:
            objects[name] = made
        else:
            others.add(name)
    contents = blobs(repository, list(dict.fromkeys(objects.values())))
    found = {name: contents[objects[name]] if name in objects else b"" for name in plain if name not in others}
    return {name: data for name, data in found.items() if data is not None}


def blob(repository: Repository, name: str) -> bytes:
    """Return the content of the file that git knows by this `name`: an object's id, or ``HEAD:a.txt``.

    Raises Refused if git has no such file, NoAnswer.
    """
    return _bytes(repository.ask("cat-file", "blob", name))


def blobs(repository: Repository, names: Sequence[str]) -> dict[str, bytes | None]:
    """Return ``{name: content}`` of many files, by one question; None for a name without a file. Raises NoAnswer.

    Raises Refused if there is no repository.
    """
    found: dict[str, bytes | None] = {name: _odd(repository, name) for name in names if "\n" in name}
    plain = [name for name in names if "\n" not in name]
    data, at = b"", 0
    if plain:
        data = _bytes(repository.ask("cat-file", "--batch", stdin="".join(f"{name}\n" for name in plain)))
    for name in plain:
        begin = data.index(b"\n", at) + 1
        words = data[at:begin].split()
        found[name], at = None, begin
        if len(words) == 3 and words[2].isdigit():  # else "missing", or "ambiguous"
            at += int(words[2]) + 1
            if words[1] == b"blob":
                found[name] = data[begin : at - 1]
    return found


def sizes(repository: Repository, names: Sequence[str]) -> list[int | None]:
    """Return the size of each object, by its id or as ``HEAD:a.txt``; None for one that is not in this clone.

    Raises Refused if there is no repository, NoAnswer.
    """
    plain = [name for name in names if "\n" not in name]
    asked = "".join(f"{name}\n" for name in plain)
    answers = repository.ask("cat-file", "--batch-check=%(objectsize)", stdin=asked).split("\n")
    found = {name: int(answer) if answer.isdigit() else None for name, answer in zip(plain, answers)}
    return [found[name] if name in found else _odd_size(repository, name) for name in names]


def _odd_size(repository: Repository, name: str) -> int | None:
    """Return the size of a file with a line end in its name, which git does not take among others."""
    try:
        return int(repository.ask("cat-file", "-s", name))
    except Refused:
        return None  # no such file


def _odd(repository: Repository, name: str) -> bytes | None:
    """Return the content of a file with a line end in its name, which git does not take among others."""
    try:
        return blob(repository, name)
    except Refused:
        return None  # no such file


def _bytes(output: str) -> bytes:
    return output.encode("utf-8", "surrogateescape")
