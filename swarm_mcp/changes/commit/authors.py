"""The author of a commit, and the names of all other authors."""

from __future__ import annotations

from swarm_mcp.changes.owners import A_PERSON, session_in_words
from swarm_mcp.sessions.agents_shell import NO_AGENTS
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_hook_core.traces.versions.acts import Author
    from swarm_mcp.domain.session import Session


class Authorship:
    """The changes of `session`; those of a person for None, or for the session of a person's shell."""

    def __init__(self, store: Store, session: Session | None):
        self._store = store
        self._key: tuple[str, str] | None = None
        self._session = session
        self._names: dict[tuple[str, str], str] = {}
        if session is not None and session.runtime not in NO_AGENTS:
            self._key = session.runtime or "", session.session_id or ""

    def is_own(self, author: Author) -> bool:
        if self._key is None:
            return author.is_person
        return author.session == self._key

    def named(self, authors: Sequence[Author]) -> str:
        """Return the authors in words: ``you, codex 5f0c and a person``."""
        names = list(dict.fromkeys(map(self._name, authors))) or ["an unknown author"]
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    def _name(self, author: Author) -> str:
        if self.is_own(author):
            return "you"
        if author.is_person:
            return A_PERSON
        if author.session not in self._names:
            self._names[author.session] = session_in_words(self._store, author.session, self._session)
        return self._names[author.session]
