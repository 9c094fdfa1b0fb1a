"""The parts of files that an undo cannot take back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_hook_core.traces.versions.acts import Author

NOT_KEPT = "what was there before is neither kept nor in the last commit (over 1 MiB, a link, or older than 7 days)"
BEYOND = "it is beyond a symbolic link now"
TOO_EARLY = "no content is kept from the time that you name, only from before"
DELETED_TOO = "the file itself was made by the session"
PARTLY = "the last commit has these lines alone of the change"


class Problem:
    """A part of a file that cannot be taken back.

    lines    in the present file, counted from 1; may be empty
    authors  the others who have these lines, or may have made the change
    reason   further words, or ""
    """

    __slots__ = ("path", "lines", "authors", "reason")

    def __init__(self, path: str, lines: list[int], authors: Iterable[Author] = (), reason: str = ""):
        self.path = path
        self.lines = lines
        self.authors = list(authors)
        self.reason = reason
