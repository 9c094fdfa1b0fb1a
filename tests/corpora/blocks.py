"""The commands of the corpus, as they stand in ``shell/``.

A file is a kind. A block of it starts with ``%% name`` and attributes behind semicolons; then come any number of
``%setup`` lines, run by bash before the command, and the command itself, up to the next ``%%``:

    %% sponge; needs: sponge
    %setup echo more >> scratch.txt
    sort scratch.txt | sponge scratch.txt

Attributes: ``needs: a b``: programs that must be there for the record to be made; ``opaque``: what is written
stands nowhere in the command; ``computed``: where it is written only a run can tell. ``@ROOT@`` is the sandbox,
``@PORT@`` the port of a web server on loopback that serves its folder ``web``.
"""

from pathlib import Path
from typing import NamedTuple

SHELL = Path(__file__).parent / "shell"
FOLDERS = ("writes", "reads", "staging")
FLAGS = {"opaque", "computed"}


class Block(NamedTuple):
    """One command of the corpus. `key` is ``writes/tee/append``: folder, file and name."""

    key: str
    text: str
    setup: str
    needs: tuple[str, ...]
    flags: frozenset[str]

    @property
    def folder(self) -> str:
        """One of `FOLDERS`."""
        return self.key.split("/")[0]

    @property
    def kind(self) -> str:
        """The file it stands in."""
        return self.key.split("/")[1]

    @property
    def is_literal(self) -> bool:
        """True if the command names the files that it writes."""
        return not self.flags

    def at(self, root: str, port: int) -> tuple[str, str]:
        """Set-up and command for the sandbox at `root`."""
        return tuple(text.replace("@ROOT@", root).replace("@PORT@", str(port)) for text in (self.setup, self.text))


def load(folder: str) -> list[Block]:
    """The blocks of ``shell/<folder>``, in order. Raises ValueError for an unknown attribute, or a name twice."""
    blocks: list[Block] = []
    for file in sorted((SHELL / folder).glob("*.txt")):
        for part in ("\n" + file.read_text(encoding="utf-8")).split("\n%% ")[1:]:
            blocks.append(_block(f"{folder}/{file.stem}", part))
    keys = [block.key for block in blocks]
    if len(set(keys)) < len(keys):
        raise ValueError(f"twice: {sorted({key for key in keys if keys.count(key) > 1})}")
    return blocks


def _block(place: str, part: str) -> Block:
    head, _, rest = part.partition("\n")
    name, *attributes = [piece.strip() for piece in head.split(";")]
    needs: tuple[str, ...] = ()
    flags = set()
    for attribute in attributes:
        if attribute.startswith("needs:"):
            needs = tuple(attribute.removeprefix("needs:").split())
        elif attribute in FLAGS:
            flags.add(attribute)
        else:
            raise ValueError(f"{place}/{name}: {attribute!r}")
    lines = rest.split("\n")
    setup = []
    while lines and lines[0].startswith("%setup "):
        setup.append(lines.pop(0).removeprefix("%setup "))
    return Block(f"{place}/{name}", "\n".join(lines).strip("\n"), "\n".join(setup), needs, frozenset(flags))
