"""Contents of git's objects: of files in the last commit."""

from __future__ import annotations

from swarm_hook_core.git_repository import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.git_repository import Repository


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
